// SPDX-License-Identifier: Apache-2.0
import type { FlamegraphJson } from "../../src/api/types";
import { parseProfile, type Tree } from "../../src/flamegraph/model";

// A flame graph from stacks written as text: "main;parse;read 30". A frame is "name" or
// "binary!name"; frames of "kernel" are of that kind.
export function jsonOf(...stacks: string[]): FlamegraphJson {
  interface Node { fn: number; self: number; total: number; children: Map<number, Node> }
  const make = (fn: number): Node => ({ fn, self: 0, total: 0, children: new Map() });
  const root = make(-1);
  const functions: string[] = [];
  for (const stack of stacks) {
    const [frames = "", weight] = stack.split(" ");
    let node = root;
    node.total += Number(weight);
    for (const frame of frames.split(";")) {
      if (!functions.includes(frame)) functions.push(frame);
      const fn = functions.indexOf(frame);
      if (!node.children.has(fn)) node.children.set(fn, make(fn));
      node = node.children.get(fn)!;
      node.total += Number(weight);
    }
    node.self += Number(weight);
  }
  const split = functions.map((frame) => (frame.includes("!") ? frame.split("!") : ["", frame]) as [string, string]);
  const binaries = [...new Set(split.map(([binary]) => binary))].filter(Boolean);
  const strings = ["", ...new Set(split.map(([, name]) => name))];
  const nodes: FlamegraphJson["nodes"] = { function: [], parent: [], self: [], total: [] };
  const visit = (node: Node, parent: number) => {
    const me = nodes.function.length;
    nodes.function.push(node.fn);
    nodes.parent.push(parent);
    nodes.self.push(node.self);
    nodes.total.push(node.total);
    const name = (child: Node) => split[child.fn]![1];
    [...node.children.values()]
      .sort((a, b) => b.total - a.total || (name(a) < name(b) ? -1 : 1))
      .forEach((child) => visit(child, me));
  };
  visit(root, -1);
  return {
    type: "cpu",
    unit: "ns",
    total: root.total,
    samples: root.total,
    one_second_in: 1,
    strings,
    binaries: binaries.map((name) => ({ name, path: `/lib/${name}`, build_id: "" })),
    functions: {
      name: split.map(([, name]) => strings.indexOf(name)),
      binary: split.map(([binary]) => binaries.indexOf(binary)),
      kind: split.map(([binary]) => (binary === "kernel" ? "kernel" : "native")),
      file: split.map(() => 0),
      line: split.map(() => 0),
      internal: split.map(() => 0),
    },
    nodes,
    omitted: { nodes: 0, total: 0 },
    hidden: { threads: 0, total: 0 },
  };
}

export function treeOf(...stacks: string[]): Tree {
  return parseProfile(jsonOf(...stacks)).tree;
}

// The stacks of a tree as text, sorted, without those that have no self time.
export function stacksOf(tree: Tree): string[] {
  const lines: string[] = [];
  for (let i = 0; i < tree.count; i++) {
    if (tree.self[i] === 0) continue;
    const names: string[] = [];
    for (let n = i; n > 0; n = tree.parent[n]!) names.unshift(tree.functions.name[tree.function[n]!]!);
    lines.push(`${names.join(";")} ${tree.self[i]}`);
  }
  return lines.sort();
}

// The first node with that name.
export function find(tree: Tree, name: string): number {
  for (let i = 1; i < tree.count; i++) if (tree.functions.name[tree.function[i]!] === name) return i;
  throw new Error(`no frame ${name}`);
}
