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
  // Frames that a search does not mean, and callers of the zoomed frame.
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
const HUES = 8;

// Frames side by side often share a binary; three shades by the function's name keep them apart.
export const SHADES = 3;
const SHADE_STEP = 0.05;

// A kind means the same colour in every profile.
export const KIND_SLOTS: Record<string, number> = { native: 0, wait: 1, python: 2, jit: 3, copy: 4, gpu: 5, communication: 6, unknown: GREY, kernel: SLATE };

// Hues that names have been given since the page was opened: a brush must not recolour the graph.
const given = new Map<string, number>();

// Gives each name a hue from its hash, so that a binary looks the same in every profile. A name whose
// hue is `reserved`, or another one's here, takes the next that is free, while there are any; the
// order of names says who goes first.
export function hueSlots(names: string[], reserved: number[] = []): number[] {
  const taken = new Set([...reserved, ...names.map((name) => given.get(name))]);
  return names.map((name) => {
    let slot = given.get(name);
    if (slot === undefined) {
      slot = (hashText(name) >>> 0) % HUES;
      for (let tries = 0; tries < HUES && taken.has(slot); tries++) slot = (slot + 1) % HUES;
      given.set(name, slot);
      taken.add(slot);
    }
    return slot;
  });
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

// "#rrggbb" as a canvas keeps a pixel on little-endian machines, which all that run browsers are.
export function packColour(colour: string): number {
  const value = Number.parseInt(colour.slice(1), 16);
  return (0xff000000 | ((value & 0xff) << 16) | (value & 0xff00) | (value >>> 16)) >>> 0;
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
