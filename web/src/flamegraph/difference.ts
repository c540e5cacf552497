// SPDX-License-Identifier: Apache-2.0
import { ApiError } from "../api/client";
import type { CompareJson, StacksJson } from "../api/types";
import { threeDigits } from "../format";
import { makeTree, type FunctionTable, type Tree } from "./model";
import { shownNames } from "./names";
import { mixed, packColour, type Theme } from "./palette";

// A change by this share has the strongest colour, as in the page of `gpusonde compare`.
const STRONGEST = 0.4;
const SHADES = 4;
// Less time in B, about equal, more time in B.
const LESS = { light: "#4f94d4", dark: "#2c6aa8" };
const MORE = { light: "#e8871e", dark: "#9c560c" };
const EQUAL = { light: "#e4e6ea", dark: "#353a42" };

// A comparison as it is shown: the answer, and its stacks as a tree.
export interface Comparison {
  json: CompareJson;
  tree: Tree;
}

export function parseComparison(json: CompareJson): Comparison {
  return { json, tree: differenceTree(json.stacks, new Set(json.gpu?.kernels.map(({ name }) => name))) };
}

// The tree of a difference. Every node is a function of its own, as its colour depends on its change. `kernels` are the
// names that are those of GPU kernels.
export function differenceTree({ strings, nodes }: StacksJson, kernels: ReadonlySet<string>): Tree {
  const count = nodes.name.length;
  if (nodes.a_ns.length !== count || nodes.b_ns.length !== count) {
    throw new ApiError("malformed", "The server's comparison can't be read: the columns of its frames differ in length.");
  }
  const a = Float64Array.from(nodes.a_ns);
  const b = Float64Array.from(nodes.b_ns);
  const total = a.map((before, i) => (before + b[i]!) / 2);
  const self = total.slice();
  for (let i = 1; i < count; i++) self[nodes.parent[i]!]! -= total[i]!;
  const name = nodes.name.map((index) => strings[index] ?? "");
  const shown = shownNames(name, name.map((text) => (kernels.has(text) ? "gpu" : "")));
  const functions: FunctionTable = {
    count, name, shown, binary: new Int32Array(count).fill(-1), kind: name.map(() => ""), file: name.map(() => ""), line: new Int32Array(count), internal: new Uint8Array(count), binaries: [],
  };
  // The root has no function.
  const fn = Int32Array.from(name, (_, i) => (i === 0 ? -1 : i));
  const tree = makeTree(functions, "ns", fn, Int32Array.from(nodes.parent), self.map((time) => Math.max(0, time)), total, null);
  return { ...tree, sides: { a, b }, labels: shown.map((text, i) => `${text}  ${changeOf(a[i]!, b[i]!)}`) };
}

// "+12.3 %", "only in B".
export function changeOf(a: number, b: number): string {
  if (a <= 0) return b <= 0 ? "" : "only in B";
  if (b <= 0) return "only in A";
  return signedShare(b / a - 1);
}

export function signedShare(change: number): string {
  if (Math.abs(change) < 0.0005) return "±0\u202f%";
  return `${change < 0 ? "−" : "+"}${threeDigits(Math.abs(change) * 100)}\u202f%`;
}

// Which of differenceFills a frame has: the middle one for about equal.
export function shadeOfChange(a: number, b: number): number {
  const larger = Math.max(a, b);
  const change = larger > 0 ? (b - a) / larger : 0;
  const strength = Math.min(SHADES, Math.round((Math.abs(change) / STRONGEST) * SHADES));
  return SHADES + Math.sign(change) * strength;
}

// From the strongest of less to the strongest of more; the last is for faded frames.
export function differenceFills(theme: Theme, isDark: boolean): Uint32Array {
  const mode = isDark ? "dark" : "light";
  const shades = Array.from({ length: 2 * SHADES + 1 }, (_, i) => mixed(EQUAL[mode], (i < SHADES ? LESS : MORE)[mode], Math.abs(i - SHADES) / SHADES));
  return Uint32Array.from([...shades, theme.faded], packColour);
}
