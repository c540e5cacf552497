// SPDX-License-Identifier: Apache-2.0
import type { FunctionTable, Tree } from "./model";

// The functions that match a search: 1 if the name contains the text, case-insensitive. Null for an empty search,
// which is not the same as no match.
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

// The matching frames of a subtree and their time. A match inside another match's subtree isn't added again, so the
// share never exceeds 100 %.
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
