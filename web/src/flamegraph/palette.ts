// SPDX-License-Identifier: Apache-2.0
import { hashText } from "./model";

// Fills for frames. Light: Paul Tol's "light" scheme, made for labelled cells and safe for colour
// blindness (https://sronpersonalpages.nl/~pault/, "Qualitative colour schemes"). Dark: the same
// hues, lightness and chroma searched for the largest smallest difference (OKLab) under simulated
// deuteranopia, protanopia and tritanopia, at a contrast of at least 5 to the label.
// tests/unit/palette.test.ts holds both.
export interface Theme {
  fills: string[];
  label: string;
  background: string;
  // Frames that a search does not mean, and callers of the zoomed frame.
  faded: string;
  fadedLabel: string;
  outline: string;
}

export const LIGHT: Theme = {
  fills: ["#77aadd", "#ee8866", "#eedd88", "#ffaabb", "#99ddff", "#44bb99", "#bbcc33", "#aaaa00", "#d4d4d4"],
  label: "#16181c",
  background: "#ffffff",
  faded: "#ececee",
  fadedLabel: "#5f636b",
  outline: "#16181c",
};

export const DARK: Theme = {
  fills: ["#304f71", "#8f423b", "#816700", "#613a49", "#24698f", "#1f3a29", "#3d4410", "#475703", "#5c5c5c"],
  label: "#f4f5f7",
  background: "#121418",
  faded: "#202329",
  fadedLabel: "#9a9fa9",
  outline: "#f4f5f7",
};

export const GREY = 8;
const HUES = 8;

// Frames side by side often share a binary; three shades by the function's name keep them apart.
export const SHADES = 3;
const SHADE_STEP = 0.055;

// A kind means the same colour in every profile.
export const KIND_SLOTS: Record<string, number> = { native: 0, kernel: 1, python: 2, gpu: 5, jit: 3, unknown: GREY };

// Gives each group a hue from its name, so that a binary looks the same in every profile. A group
// whose hue a bigger one has taken moves on to the next free one, while there are any.
export function assignSlots(groups: { name: string; slot: number }[]): void {
  const taken = new Set<number>();
  for (const group of groups) {
    if (group.name.startsWith("[")) continue;
    let slot = (hashText(group.name) >>> 0) % HUES;
    if (taken.size < HUES) while (taken.has(slot)) slot = (slot + 1) % HUES;
    taken.add(slot);
    group.slot = slot;
  }
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

export function shadeOf(functionName: string): number {
  return (hashText(functionName) >>> 8) % SHADES;
}

// Mixes with white (amount > 0) or black.
function shaded(colour: string, amount: number): string {
  const towards = amount > 0 ? 255 : 0;
  const mix = (at: number) => {
    const value = Number.parseInt(colour.slice(at, at + 2), 16);
    return Math.round(value + (towards - value) * Math.abs(amount))
      .toString(16)
      .padStart(2, "0");
  };
  return `#${mix(1)}${mix(3)}${mix(5)}`;
}
