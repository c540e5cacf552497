// SPDX-License-Identifier: Apache-2.0
import type { View } from "../state/view";
import { printable } from "../printable";
import { binaryOf, ROOT_KINDS, type FunctionTable, type Tree } from "./model";
import { GREY, hueOf, KIND_SLOTS } from "./palette";

// A legend entry: the functions of one binary or of one kind.
export interface Group {
  name: string;
  // The displayed name; `name` is for the address.
  label: string;
  // The tooltip: a path and build id, or a sentence.
  detail: string;
  self: number;
  // The kind (see kindOf) of the first function; nearly all functions of a binary have the same kind.
  kind: string;
  // Index into the palette.
  slot: number;
}

export interface Groups {
  // By self time, descending.
  groups: Group[];
  // Function to group.
  ofFunction: Int32Array;
}

const KINDS: Record<string, [label: string, meaning: string]> = {
  native: ["native", "Machine code of programs and libraries"],
  kernel: ["OS kernel", "The operating system's kernel"],
  python: ["Python", "Python functions"],
  gpu: ["GPU compute", "Kernels that ran on a GPU, under the call that launched them"],
  copy: ["GPU copies", "Copies to, from and within a GPU's memory, and sets of it"],
  communication: ["GPU communication", "Kernels of NCCL, which exchange data between GPUs"],
  jit: ["generated", "Code that was generated at run time"],
  wait: ["waiting", "Waits of threads, under the code that waited"],
  process: ["process", "Programs, by their command lines"],
  thread: ["thread", "Threads of programs"],
  unknown: ["unknown", "Addresses without a known file or function, and stacks that were not sampled"],
};

// A function's kind. GPU work and waits are classified by name, as the server has no finer kinds.
function kindOf(functions: FunctionTable, f: number): string {
  const kind = functions.kind[f]!;
  const name = functions.name[f]!;
  if (kind === "kernel" && /^\[(waits|sleeps)/.test(name)) return "wait";
  if (kind !== "gpu") return kind;
  if (name.startsWith("[memcpy") || name.startsWith("[memset")) return "copy";
  return /^(void )?nccl/.test(name) ? "communication" : kind;
}

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
      const [label, detail] = describe(functions, f, by);
      groups.push({ name, label, detail, self: 0, kind: kindOf(functions, f), slot: GREY });
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
  // Only binaries of machine code vary in hue; the kernel, Python and unknown frames have their kind's.
  for (const group of sorted) {
    const isFile = by === "binary" && !group.name.startsWith("[") && group.kind !== "kernel";
    group.slot = isFile ? hueOf(group.name) : (KIND_SLOTS[group.kind] ?? GREY);
  }
  return { groups: sorted, ofFunction };
}

// 1 for each function whose frames the view folds into their callers; null when it folds none.
export function hiddenFunctions({ groups, ofFunction }: Groups, functions: FunctionTable, view: View): Uint8Array | null {
  const hidden = groups.map(({ name, kind }) => !ROOT_KINDS.has(kind) && (view.only === null ? view.hide.includes(name) : name !== view.only));
  const internal = view.fold ? functions.internal : null;
  if (!internal && !hidden.includes(true)) return null;
  const folded = Uint8Array.from(ofFunction, (group, f) => Number(hidden[group]! || internal?.[f] === 1));
  return folded.includes(1) ? folded : null;
}

function groupName(functions: FunctionTable, f: number, by: View["colour"]): string {
  const kind = kindOf(functions, f);
  return by === "kind" ? kind : (binaryOf(functions, f)?.name ?? `[${kind}]`);
}

function describe(functions: FunctionTable, f: number, by: View["colour"]): [label: string, detail: string] {
  const binary = binaryOf(functions, f);
  const kind = kindOf(functions, f);
  if (by === "kind" || !binary) return KINDS[kind] ?? [kind, ""];
  const path = printable(binary.path);
  return [printable(binary.name), binary.build_id ? `${path}\nbuild id ${binary.build_id}` : path];
}
