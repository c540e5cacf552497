// SPDX-License-Identifier: Apache-2.0
import type { FunctionTable, Tree } from "./model";

// Which functions a search means: 1 where the name contains the text, case-insensitive. Null where
// the search is empty, which is not the same as matching nothing.
export function matchText(functions: FunctionTable, text: string): Uint8Array | null {
  const wanted = text.trim().toLowerCase();
  if (!wanted) return null;
  return Uint8Array.from(functions.name, (name) => Number(name.toLowerCase().includes(wanted)));
}

export function matchName(functions: FunctionTable, wanted: string | null): Uint8Array | null {
  if (wanted === null) return null;
  return Uint8Array.from(functions.name, (name) => Number(name === wanted));
}

export interface Match {
  nodes: number;
  total: number;
}

// Frames of a subtree that match, and the time under them. A match inside another's subtree is
// already in that one's total and not added again: the share never exceeds 100 %.
export function matched(tree: Tree, root: number, matches: Uint8Array): Match {
  const { function: fn, end, total } = tree;
  const result: Match = { nodes: 0, total: 0 };
  let covered = root;
  for (let i = root; i < end[root]!; i++) {
    const f = fn[i]!;
    if (f < 0 || !matches[f]) continue;
    result.nodes++;
    if (i < covered) continue;
    result.total += total[i]!;
    covered = end[i]!;
  }
  return result;
}
