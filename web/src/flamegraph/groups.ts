// SPDX-License-Identifier: Apache-2.0
import type { View } from "../state/view";
import { binaryOf, type FunctionTable, type Tree } from "./model";
import { assignSlots, GREY, KIND_SLOTS } from "./palette";

// What the legend lists: the functions of one binary, or of one kind.
export interface Group {
  name: string;
  // What the hover says: a path and build id, or a sentence.
  detail: string;
  self: number;
  // Index into the palette.
  slot: number;
}

export interface Groups {
  // Falling by self time.
  groups: Group[];
  // Function to group.
  ofFunction: Int32Array;
}

const NO_BINARY = "[no binary]";

const KIND_MEANING: Record<string, string> = {
  native: "Machine code of programs and libraries",
  kernel: "The operating system's kernel",
  python: "Python functions",
  gpu: "GPU kernels, under the call that launched them",
  jit: "Code that was generated at run time",
  unknown: "Addresses for which no function is known",
};

export function groupFunctions(tree: Tree, by: View["colour"]): Groups {
  const { functions } = tree;
  const index = new Map<string, number>();
  const groups: Group[] = [];
  const ofFunction = new Int32Array(functions.count);
  for (let f = 0; f < functions.count; f++) {
    const name = groupName(functions, f, by);
    let group = index.get(name);
    if (group === undefined) {
      group = groups.length;
      index.set(name, group);
      groups.push({ name, detail: groupDetail(functions, f, by), self: 0, slot: GREY });
    }
    ofFunction[f] = group;
  }
  for (let i = 0; i < tree.count; i++) {
    const f = tree.function[i]!;
    if (f >= 0) groups[ofFunction[f]!]!.self += tree.self[i]!;
  }

  const order = groups.map((_, g) => g).sort((a, b) => groups[b]!.self - groups[a]!.self);
  const rank = new Int32Array(groups.length);
  order.forEach((g, r) => (rank[g] = r));
  for (let f = 0; f < functions.count; f++) ofFunction[f] = rank[ofFunction[f]!]!;
  const sorted = order.map((g) => groups[g]!);
  if (by === "kind") for (const group of sorted) group.slot = KIND_SLOTS[group.name] ?? GREY;
  else assignSlots(sorted);
  return { groups: sorted, ofFunction };
}

// 1 for each function whose frames the legend hides; null when it hides none.
export function hiddenFunctions({ groups, ofFunction }: Groups, view: View): Uint8Array | null {
  const hidden = groups.map(({ name }) => (view.only === null ? view.hide.includes(name) : name !== view.only));
  return hidden.includes(true) ? Uint8Array.from(ofFunction, (group) => Number(hidden[group])) : null;
}

function groupName(functions: FunctionTable, f: number, by: View["colour"]): string {
  return by === "kind" ? functions.kind[f]! : (binaryOf(functions, f)?.name ?? NO_BINARY);
}

function groupDetail(functions: FunctionTable, f: number, by: View["colour"]): string {
  if (by === "kind") return KIND_MEANING[functions.kind[f]!] ?? "";
  const binary = binaryOf(functions, f);
  if (!binary) return "Frames that belong to no file";
  return binary.build_id ? `${binary.path}\nbuild id ${binary.build_id}` : binary.path;
}
