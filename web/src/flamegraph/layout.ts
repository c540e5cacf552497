// SPDX-License-Identifier: Apache-2.0
import { ROOT, type Tree } from "./model";

// The place of every frame: along x in the profile's unit (the root spans [0, total]), along y by depth. The frames
// of each row are adjacent in `nodes`, left to right, with their edges in parallel columns, so that visible frames
// are found by binary search.
export interface Layout {
  // Row r is [rowStart[r], rowStart[r + 1]) of nodes, left and right.
  rowStart: Int32Array;
  nodes: Int32Array;
  left: Float64Array;
  right: Float64Array;
  // The index of a node in `nodes`.
  slot: Int32Array;
}

// A stretch of x.
export interface Span {
  from: number;
  to: number;
}

export function layoutTree(tree: Tree): Layout {
  const { count, rows, depth, parent, total } = tree;
  const rowStart = new Int32Array(rows + 1);
  for (let i = 0; i < count; i++) rowStart[depth[i]! + 1]!++;
  for (let r = 0; r < rows; r++) rowStart[r + 1]! += rowStart[r]!;

  const nodes = new Int32Array(count);
  const left = new Float64Array(count);
  const right = new Float64Array(count);
  const slot = new Int32Array(count);
  const fill = rowStart.slice(0, rows);
  // The x of a node's next child. Pre-order visits siblings left to right, and a row's nodes in order. Self time,
  // which no child covers, stays free on the right.
  const next = new Float64Array(count);
  for (let i = 0; i < count; i++) {
    const k = fill[depth[i]!]!++;
    const x = i === ROOT ? 0 : next[parent[i]!]!;
    nodes[k] = i;
    slot[i] = k;
    left[k] = x;
    right[k] = x + total[i]!;
    next[i] = x;
    if (i !== ROOT) next[parent[i]!] = right[k]!;
  }
  return { rowStart, nodes, left, right, slot };
}

export function spanOf(layout: Layout, node: number): Span {
  const k = layout.slot[node]!;
  return { from: layout.left[k]!, to: layout.right[k]! };
}

// The first k in [low, high) whose right edge is beyond x, or `high`.
export function firstBeyond(right: Float64Array, low: number, high: number, x: number): number {
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (right[middle]! > x) high = middle;
    else low = middle + 1;
  }
  return low;
}

// The same by galloping search from `low`, as the result is usually near.
export function nextBeyond(right: Float64Array, low: number, high: number, x: number): number {
  let step = 1;
  let at = low;
  while (at < high && right[at]! <= x) {
    low = at + 1;
    at += step;
    step *= 2;
  }
  return firstBeyond(right, low, Math.min(at, high), x);
}

// The frame at x in a row; null in a gap (a caller's self time) or outside the rows.
export function nodeAt(layout: Layout, row: number, x: number): number | null {
  if (row < 0 || row + 1 >= layout.rowStart.length) return null;
  const end = layout.rowStart[row + 1]!;
  const k = firstBeyond(layout.right, layout.rowStart[row]!, end, x);
  return k < end && layout.left[k]! <= x ? layout.nodes[k]! : null;
}
