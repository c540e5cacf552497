// SPDX-License-Identifier: Apache-2.0
import type { Layout, Span } from "./layout";
import { ROOT, type Tree } from "./model";

export type Step = "caller" | "callee" | "left" | "right";

// The frame that an arrow key leads to, or the frame itself if there is none. Skips frames narrower than `minWidth`
// (in the unit of x), which are invisible, and frames outside `span`.
export function walk(tree: Tree, layout: Layout, node: number, step: Step, span: Span, minWidth: number): number {
  const wide = (n: number) => {
    const k = layout.slot[n]!;
    return Math.min(layout.right[k]!, span.to) - Math.max(layout.left[k]!, span.from) >= minWidth;
  };
  switch (step) {
    case "caller":
      return node === ROOT ? ROOT : tree.parent[node]!;
    case "callee": {
      // The largest visible child: siblings are sorted by total, but the first may be outside the span.
      for (let i = node + 1; i < tree.end[node]!; i = tree.end[i]!) if (wide(i)) return i;
      return node;
    }
    case "left":
    case "right": {
      const row = tree.depth[node]!;
      const direction = step === "left" ? -1 : 1;
      const first = layout.rowStart[row]!;
      const end = layout.rowStart[row + 1]!;
      for (let k = layout.slot[node]! + direction; k >= first && k < end; k += direction) {
        if (layout.right[k]! <= span.from || layout.left[k]! >= span.to) break;
        if (wide(layout.nodes[k]!)) return layout.nodes[k]!;
      }
      return node;
    }
  }
}
