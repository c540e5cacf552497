// SPDX-License-Identifier: Apache-2.0

// The least on paper, where text of one pixel per CSS pixel is blurred.
const ON_PAPER = 3;

// Device pixels of a canvas per CSS pixel.
export function pixelRatio(): number {
  const ratio = devicePixelRatio || 1;
  return document.documentElement.classList.contains("printing") ? Math.max(ratio, ON_PAPER) : ratio;
}
