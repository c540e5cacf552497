// SPDX-License-Identifier: Apache-2.0
import { describe, expect, test } from "vitest";
import { differenceFills } from "../../src/flamegraph/difference";
import { DARK, fillTable, hueOf, KIND_SLOTS, LIGHT, SHADES } from "../../src/flamegraph/palette";
import { coloursOf, LEVELS } from "../../src/timeline/colours";

type Colour = [number, number, number];

const linear = (hex: string) =>
  [1, 3, 5].map((at) => {
    const value = Number.parseInt(hex.slice(at, at + 2), 16) / 255;
    return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
  }) as Colour;

const luminance = (hex: string) => linear(hex).reduce((sum, value, i) => sum + value * [0.2126, 0.7152, 0.0722][i]!, 0);

// WCAG 2.2, contrast ratio.
function contrast(a: string, b: string): number {
  const [high, low] = [luminance(a), luminance(b)].sort((x, y) => y - x) as [number, number];
  return (high + 0.05) / (low + 0.05);
}

// The inverse of packColour.
function unpacked(packed: number): string {
  return `#${[0, 8, 16].map((by) => ((packed >>> by) & 255).toString(16).padStart(2, "0")).join("")}`;
}

// Ottosson's OKLab, times 100.
function oklab([r, g, b]: Colour): Colour {
  const l = Math.cbrt(0.4122214708 * r + 0.5363325363 * g + 0.0514459929 * b);
  const m = Math.cbrt(0.2119034982 * r + 0.6806995451 * g + 0.1073969566 * b);
  const s = Math.cbrt(0.0883024619 * r + 0.2817188376 * g + 0.6299787005 * b);
  return [
    100 * (0.2104542553 * l + 0.793617785 * m - 0.0040720468 * s),
    100 * (1.9779984951 * l - 2.428592205 * m + 0.4505937099 * s),
    100 * (0.0259040371 * l + 0.7827717662 * m - 0.808675766 * s),
  ];
}

// Machado, Oliveira, Fernandes (2009), severity 1.
const VISION: Record<string, [Colour, Colour, Colour]> = {
  normal: [[1, 0, 0], [0, 1, 0], [0, 0, 1]],
  protanope: [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
  deuteranope: [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.01182, 0.04294, 0.968881]],
  tritanope: [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.3039]],
};

function seen(matrix: [Colour, Colour, Colour], colour: Colour): Colour {
  return matrix.map((row) => Math.min(1, Math.max(0, row[0] * colour[0] + row[1] * colour[1] + row[2] * colour[2]))) as Colour;
}

describe.each([["light", LIGHT], ["dark", DARK]])("the %s palette", (_, theme) => {
  test("every label is readable on every fill and shade", () => {
    const table = fillTable(theme);
    for (const fill of table.slice(0, -1)) expect(contrast(fill, theme.label)).toBeGreaterThan(4.5);
    expect(contrast(table.at(-1)!, theme.fadedLabel)).toBeGreaterThan(4.5);
  });

  test("labels of a difference can be read on all of its shades", () => {
    for (const fill of differenceFills(theme, theme === DARK)) expect(contrast(unpacked(fill), theme.label)).toBeGreaterThan(4.5);
  });

  test("a slice of the timeline that was hardly busy still stands out from the background", () => {
    const { fills } = coloursOf({ name: ["a"], shown: ["a"], kind: ["call"] }, theme);
    const palest = theme.fills.map((_, slot) => unpacked(fills[slot * SHADES * LEVELS]!));
    const distance = (a: string, b: string) => Math.hypot(...oklab(linear(a)).map((v, k) => v - oklab(linear(b))[k]!));
    // Near black a distance is harder to see than near white.
    for (const colour of palest) expect(distance(colour, theme.background)).toBeGreaterThan(theme === DARK ? 9 : 4.5);
  });

  test.each(Object.entries(VISION))("any two fills differ in %s vision", (vision, matrix) => {
    const colours = theme.fills.map((fill) => oklab(seen(matrix, linear(fill))));
    let least = Infinity;
    for (let i = 0; i < colours.length; i++) {
      for (let j = 0; j < i; j++) least = Math.min(least, Math.hypot(...colours[i]!.map((v, k) => v - colours[j]![k]!)));
    }
    // Adjacent hues of the published light scheme are 3.7 apart at worst; 2 is just noticeable.
    expect(least).toBeGreaterThan(vision === "normal" ? 7 : 3.5);
  });
});

describe("hues", () => {
  test("a file's hue depends only on its name without versions", () => {
    expect(hueOf("libcuda.so.1")).toBe(hueOf("libcuda.so.550.54"));
    expect(hueOf("libpython3.11.so.1.0")).toBe(hueOf("python3.12"));
    expect(hueOf("libmine.so.2")).toBe(hueOf("libmine-1.3.so"));
  });

  test("Python and GPU kernels have hues of their own", () => {
    for (let i = 0; i < 100; i++) expect([KIND_SLOTS.python, KIND_SLOTS.gpu]).not.toContain(hueOf(`library${String.fromCharCode(97 + (i % 26))}${i}x`));
  });

  test("files that often appear together differ", () => {
    const together = ["libc.so.6", "libpython3.11.so.1.0", "libcuda.so.1", "libz.so.1"].map(hueOf);
    expect(new Set(together).size).toBe(together.length);
  });
});
