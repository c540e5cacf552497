// SPDX-License-Identifier: Apache-2.0
import type { SortKey } from "../state/view";
import { ROOT_KINDS, type Tree } from "./model";

// Time by function over one subtree.
export interface FunctionTotals {
  // Functions that occur in the subtree, ascending.
  functions: Int32Array;
  // Both are indexed by function.
  self: Float64Array;
  total: Float64Array;
}

// A recursive function's inner calls lie inside the outer one's total, which counts once.
export function totalsByFunction(tree: Tree, root: number): FunctionTotals {
  const { function: fn, self: nodeSelf, total: nodeTotal, end } = tree;
  const size = tree.functions.count;
  const self = new Float64Array(size);
  const total = new Float64Array(size);
  const seen = new Uint8Array(size);
  // One past the last node of the outermost open call of a function: nodes before it are inside.
  const openUntil = new Int32Array(size);
  for (let i = root; i < end[root]!; i++) {
    const f = fn[i]!;
    if (f < 0) continue;
    seen[f] = 1;
    self[f]! += nodeSelf[i]!;
    if (i >= openUntil[f]!) {
      total[f]! += nodeTotal[i]!;
      openUntil[f] = end[i]!;
    }
  }
  const functions: number[] = [];
  for (let f = 0; f < size; f++) if (seen[f] && !ROOT_KINDS.has(tree.functions.kind[f]!)) functions.push(f);
  return { functions: Int32Array.from(functions), self, total };
}

// The functions in the table's order; only those in `matches`, if given. Ties are sorted by name in either direction.
export function sortedFunctions(
  totals: FunctionTotals,
  names: string[],
  key: SortKey,
  ascending: boolean,
  matches: Uint8Array | null,
): Int32Array {
  const order = matches ? totals.functions.filter((f) => matches[f]) : totals.functions.slice();
  const direction = ascending ? 1 : -1;
  const byName = (a: number, b: number) => (names[a]! < names[b]! ? -1 : names[a]! > names[b]! ? 1 : a - b);
  if (key === "name") return order.sort((a, b) => direction * byName(a, b));
  const value = totals[key];
  return order.sort((a, b) => direction * (value[a]! - value[b]!) || byName(a, b));
}
