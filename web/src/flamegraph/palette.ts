// SPDX-License-Identifier: Apache-2.0
import { hashText } from "./model";

// Fills for frames: eight hues, grey, and slate for the kernel. Light: Paul Tol's "light" scheme,
// made for labelled cells and safe for colour blindness (https://sronpersonalpages.nl/~pault/,
// "Qualitative colour schemes"). Dark: searched for the largest smallest difference (OKLab) in
// normal and in simulated deuteranope, protanope and tritanope vision, at a contrast of at least 5
// to the label. tests/unit/palette.test.ts holds both.
export interface Theme {
  fills: string[];
  label: string;
  background: string;
  // Frames that a search does not match, and callers of the zoomed frame.
  faded: string;
  fadedLabel: string;
  outline: string;
}

export const LIGHT: Theme = {
  fills: ["#77aadd", "#ee8866", "#eedd88", "#ffaabb", "#99ddff", "#44bb99", "#bbcc33", "#aaaa00", "#d4d4d4", "#a3acb9"],
  label: "#16181c",
  background: "#ffffff",
  faded: "#ececee",
  fadedLabel: "#5f636b",
  outline: "#16181c",
};

export const DARK: Theme = {
  fills: ["#2c3985", "#804718", "#726b26", "#6c2862", "#006088", "#105b46", "#645db0", "#474000", "#5f6166", "#353a42"],
  label: "#f4f5f7",
  background: "#121418",
  faded: "#202329",
  fadedLabel: "#9a9fa9",
  outline: "#f4f5f7",
};

export const GREY = 8;
export const SLATE = 9;

// Neighbouring frames often share a binary; three shades by function name distinguish them.
export const SHADES = 3;
const SHADE_STEP = 0.05;

// A kind has the same colour in every profile.
export const KIND_SLOTS: Record<string, number> = { native: 0, wait: 1, python: 2, jit: 3, copy: 4, gpu: 5, communication: 6, unknown: GREY, kernel: SLATE, process: SLATE, thread: SLATE };

// Hues of machine code. Python and GPU kernels have hues of their own, as they fill most graphs.
const FILE_SLOTS = [0, 1, 3, 4, 6, 7];

// Binaries that often appear together get different hues.
const KNOWN_FILES: Record<string, number> = {
  libc: 0, python: 7, libpython: 7, libcuda: 3, libz: 1, zlib: 3, libcrypto: 6, "libstdc++": 4, libtorch_cpu: 6, libtorch_cuda: 1, libtorch_python: 4, libcudart: 4, libnccl: 6,
};

// The hue of a binary depends only on its name without versions, so it is the same in every profile, selection and
// browser. Two binaries may share one; the legend and the tooltip distinguish them.
export function hueOf(file: string): number {
  const stem = file.replace(/\.(so|cpython)\b.*$/, "").replace(/[-\d.]+$/, "");
  return KNOWN_FILES[stem] ?? FILE_SLOTS[(hashText(stem) >>> 0) % FILE_SLOTS.length]!;
}

// The fill of slot s in shade h is at s * SHADES + h; `faded` comes last.
export function fillTable(theme: Theme): string[] {
  const table: string[] = [];
  for (const fill of theme.fills) {
    for (let shade = 0; shade < SHADES; shade++) table.push(shaded(fill, (shade - 1) * SHADE_STEP));
  }
  table.push(theme.faded);
  return table;
}

// "#rrggbb" as a canvas stores a pixel on little-endian machines, which run all browsers.
export function packColour(colour: string): number {
  const value = Number.parseInt(colour.slice(1), 16);
  return (0xff000000 | ((value & 0xff) << 16) | (value & 0xff00) | (value >>> 16)) >>> 0;
}

export function shadeOf(functionName: string): number {
  return (hashText(functionName) >>> 8) % SHADES;
}

// Mixes with white (amount > 0) or black.
function shaded(colour: string, amount: number): string {
  return mixed(colour, amount > 0 ? "#ffffff" : "#000000", Math.abs(amount));
}

// The first colour with a share (0…1) of the second, both "#rrggbb".
export function mixed(first: string, second: string, share: number): string {
  const part = (at: number) => {
    const [from, to] = [first, second].map((colour) => Number.parseInt(colour.slice(at, at + 2), 16)) as [number, number];
    return Math.round(from + (to - from) * share).toString(16).padStart(2, "0");
  };
  return `#${part(1)}${part(3)}${part(5)}`;
}
