// SPDX-License-Identifier: Apache-2.0
import { makeTree, ROOT, type Tree } from "./model";

// The tree without the frames of some functions: what they called hangs under their callers, and
// their self time becomes their callers'. Time is kept; siblings that become the same function are
// one frame.
export function foldFunctions(tree: Tree, hidden: Uint8Array): Tree {
  const functionCount = tree.functions.count;
  // Nodes of the result in order of first appearance, which puts parents before children.
  const target = new Int32Array(tree.count);
  const fn: number[] = [-1];
  const parent: number[] = [-1];
  const self: number[] = [tree.self[ROOT]!];
  const known = new Map<number, number>();
  for (let i = 1; i < tree.count; i++) {
    const up = target[tree.parent[i]!]!;
    const f = tree.function[i]!;
    let node: number;
    if (hidden[f]) {
      node = up;
    } else {
      // Exact below 2^53: 10^7 nodes with 10^8 functions.
      const key = up * functionCount + f;
      const found = known.get(key);
      if (found === undefined) {
        node = fn.length;
        known.set(key, node);
        fn.push(f);
        parent.push(up);
        self.push(0);
      } else {
        node = found;
      }
    }
    target[i] = node;
    self[node]! += tree.self[i]!;
  }
  // Totals are carried over, not summed from self times: what the server left out (`omitted`) is in
  // the totals of frames only. A frame's total counts for the node that it lands on unless an
  // ancestor has landed on the same one.
  const total: number[] = new Array<number>(fn.length).fill(0);
  for (let i = 0; i < tree.count; i++) {
    const node = target[i]!;
    if (i === ROOT || node !== target[tree.parent[i]!]) total[node]! += tree.total[i]!;
  }
  return inPreOrder(tree, fn, parent, self, total);
}

// Brings nodes whose parents come first into pre-order, siblings by total falling then name.
function inPreOrder(tree: Tree, fn: number[], parent: number[], self: number[], total: number[]): Tree {
  const { name } = tree.functions;
  const count = fn.length;
  const children: number[][] = fn.map(() => []);
  for (let i = 1; i < count; i++) children[parent[i]!]!.push(i);

  const order = new Int32Array(count);
  const moved = new Int32Array(count);
  const stack = [ROOT];
  for (let k = 0; k < count; k++) {
    const node = stack.pop()!;
    order[k] = node;
    moved[node] = k;
    const below = children[node]!;
    below.sort((a, b) => total[a]! - total[b]! || (name[fn[a]!]! < name[fn[b]!]! ? 1 : -1));
    for (const child of below) stack.push(child);
  }
  return makeTree(
    tree.functions,
    tree.unit,
    Int32Array.from(order, (node) => fn[node]!),
    Int32Array.from(order, (node) => (node === ROOT ? -1 : moved[parent[node]!]!)),
    Float64Array.from(order, (node) => self[node]!),
    Float64Array.from(order, (node) => total[node]!),
  );
}
