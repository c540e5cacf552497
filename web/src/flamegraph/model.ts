// SPDX-License-Identifier: Apache-2.0
import { ApiError } from "../api/client";
import type { Binary, FlamegraphJson } from "../api/types";
import { printable } from "../printable";
import { shownNames } from "./names";

// A call tree as columns. Nodes are in pre-order, so the subtree of node i is the range [i, end[i]) and loops over
// ranges replace recursion.
export interface Tree {
  functions: FunctionTable;
  unit: string;
  count: number;
  // -1 for the root, which has no function and no parent.
  function: Int32Array;
  parent: Int32Array;
  self: Float64Array;
  total: Float64Array;
  // Half the width of the 95 % interval of each total: 0 if the total is exact, NaN if unknown. Null if nothing is
  // estimated.
  interval: Float64Array | null;
  end: Int32Array;
  depth: Int32Array;
  // Depth of the longest stack, including the root.
  rows: number;
  // What frames say instead of their names only.
  labels?: string[];
  // Of a difference, whose totals are the means of both: the totals of each.
  sides?: { a: Float64Array; b: Float64Array };
}

export interface FunctionTable {
  count: number;
  name: string[];
  // The names as frames and tables show them: those of GPU kernels are shorter.
  shown: string[];
  // Index into binaries, or -1.
  binary: Int32Array;
  kind: string[];
  file: string[];
  line: Int32Array;
  // 1 for functions that explain nothing to a user (src/server/internal_functions.h).
  internal: Uint8Array;
  binaries: Binary[];
}

export interface Profile {
  type: string;
  samples: number;
  // Of only one second in so many; times are estimates if it is above 1.
  oneSecondIn: number;
  omitted: { nodes: number; total: number };
  hidden: { threads: number; total: number };
  tree: Tree;
}

// Kinds of root frames, which say whose time it is: never folded, and not in the legend or the table.
export const ROOT_KINDS = new Set(["process", "thread"]);

export const ROOT = 0;
export const ROOT_NAME = "all";

// Throws ApiError (malformed) if the columns contradict docs/api.md: all code below indexes them unchecked.
export function parseProfile(json: FlamegraphJson): Profile {
  const { functions, nodes, strings } = json;
  const text = (index: number) => strings[index] ?? "";
  const name = functions.name.map(text);
  const table: FunctionTable = {
    count: name.length,
    name,
    shown: shownNames(name, functions.kind),
    binary: Int32Array.from(functions.binary),
    kind: functions.kind,
    file: functions.file.map(text),
    line: Int32Array.from(functions.line),
    internal: Uint8Array.from(functions.internal),
    binaries: json.binaries,
  };
  for (const [key, column] of Object.entries(functions)) {
    if (column.length !== table.count) throw malformed(`functions.${key} has ${column.length} of ${table.count} values`);
  }
  if (table.binary.some((binary) => binary < -1 || binary >= json.binaries.length)) {
    throw malformed("a function refers to a missing binary");
  }
  return {
    type: json.type,
    samples: json.samples,
    oneSecondIn: json.one_second_in,
    omitted: json.omitted,
    hidden: json.hidden ?? { threads: 0, total: 0 },
    tree: makeTree(
      table,
      json.unit,
      Int32Array.from(nodes.function),
      Int32Array.from(nodes.parent),
      Float64Array.from(nodes.self),
      Float64Array.from(nodes.total),
      nodes.interval ? Float64Array.from(nodes.interval) : null,
    ),
  };
}

// Adds depth and end to columns in pre-order; takes ownership of the arrays.
export function makeTree(
  functions: FunctionTable,
  unit: string,
  fn: Int32Array,
  parent: Int32Array,
  self: Float64Array,
  total: Float64Array,
  interval: Float64Array | null,
): Tree {
  const count = fn.length;
  if (count === 0 || parent.length !== count || self.length !== count || total.length !== count || (interval && interval.length !== count)) {
    throw malformed("the columns of nodes are empty or differ in length");
  }
  const depth = new Int32Array(count);
  const end = new Int32Array(count);
  let rows = 1;
  for (let i = 1; i < count; i++) {
    const up = parent[i]!;
    if (up < 0 || up >= i) throw malformed(`node ${i} has parent ${up}`);
    if (fn[i]! < 0 || fn[i]! >= functions.count) throw malformed(`node ${i} has function ${fn[i]}`);
    depth[i] = depth[up]! + 1;
    if (depth[i]! >= rows) rows = depth[i]! + 1;
  }
  for (let i = count - 1; i >= 0; i--) {
    if (end[i]! < i + 1) end[i] = i + 1;
    if (i > 0 && end[i]! > end[parent[i]!]!) end[parent[i]!] = end[i]!;
  }
  return { functions, unit, count, function: fn, parent, self, total, interval, end, depth, rows };
}

// The node's whole name, printable.
export function nodeName(tree: Tree, node: number): string {
  return node === ROOT ? ROOT_NAME : printable(tree.functions.name[tree.function[node]!]!);
}

// The node's name as its frame shows it.
export function nodeLabel(tree: Tree, node: number): string {
  return tree.labels?.[node] ?? (node === ROOT ? ROOT_NAME : tree.functions.shown[tree.function[node]!]!);
}

export function binaryOf(functions: FunctionTable, fn: number): Binary | null {
  return functions.binaries[functions.binary[fn]!] ?? null;
}

// From the root's child down to the node.
export function pathTo(tree: Tree, node: number): number[] {
  const path: number[] = [];
  for (let i = node; i > ROOT; i = tree.parent[i]!) path.push(i);
  return path.reverse();
}

// Identifies a frame by the functions on the path to it, so that a link survives new data, another selection and
// another order of siblings. 64 bits as 16 hex digits: two 32-bit FNV-1a chains.
export function pathHash(tree: Tree, node: number): string {
  const hashes = functionHashes(tree.functions);
  let a = SEED_A;
  let b = SEED_B;
  for (const i of pathTo(tree, node)) {
    const h = hashes[tree.function[i]!]!;
    a = Math.imul(a ^ h, PRIME_A);
    b = Math.imul(b ^ h, PRIME_B) ^ (b >>> 15);
  }
  return hex(a) + hex(b);
}

// The node with that path hash, or null if this tree has no such frame. One pass.
export function findPath(tree: Tree, hash: string): number | null {
  const hashes = functionHashes(tree.functions);
  const a = new Int32Array(tree.count);
  const b = new Int32Array(tree.count);
  a[ROOT] = SEED_A;
  b[ROOT] = SEED_B;
  const wantA = Number.parseInt(hash.slice(0, 8), 16) | 0;
  const wantB = Number.parseInt(hash.slice(8), 16) | 0;
  for (let i = 1; i < tree.count; i++) {
    const h = hashes[tree.function[i]!]!;
    const up = tree.parent[i]!;
    a[i] = Math.imul(a[up]! ^ h, PRIME_A);
    b[i] = Math.imul(b[up]! ^ h, PRIME_B) ^ (b[up]! >>> 15);
    if (a[i] === wantA && b[i] === wantB) return i;
  }
  return null;
}

const SEED_A = 0x811c9dc5 | 0;
const SEED_B = 0x1b873593;
const PRIME_A = 0x01000193;
const PRIME_B = 0x85ebca6b;

const hashCache = new WeakMap<FunctionTable, Int32Array>();

function functionHashes(functions: FunctionTable): Int32Array {
  let hashes = hashCache.get(functions);
  if (!hashes) {
    hashes = Int32Array.from(functions.name, (name, fn) =>
      hashText(`${binaryOf(functions, fn)?.name ?? ""}\0${name}`),
    );
    hashCache.set(functions, hashes);
  }
  return hashes;
}

// FNV-1a over UTF-16 code units, as a signed 32-bit integer.
export function hashText(text: string): number {
  let hash = SEED_A;
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), PRIME_A);
  return hash;
}

function hex(value: number): string {
  return (value >>> 0).toString(16).padStart(8, "0");
}

function malformed(what: string): ApiError {
  return new ApiError("malformed", `The server's flame graph can't be read: ${what}.`);
}
