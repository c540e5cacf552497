// SPDX-License-Identifier: Apache-2.0
import { binaryOf, type FunctionTable, type Tree } from "./model";

// Frames that tell how and not what: the interpreter's own, those of the CUDA libraries below the call
// that a program made, and how a process begins. Python's functions are not among them.
const BINARIES = /^((lib)?python\d|libffi\.so|_ctypes\.|lib(cuda|cudart|cupti|nvrtc|nvidia-[\w-]+)\.so)/;
const BEGINNINGS = new Set(["_start", "__libc_start_main", "__libc_start_call_main", "__libc_start_main_impl", "start_thread", "clone", "clone3"]);

// 1 for each such function.
export function internalFunctions({ functions, function: fn, parent, count }: Tree): Uint8Array {
  const internal = Uint8Array.from(functions.name, (_, f) => Number(isInternal(functions, f)));
  // A stripped C library doesn't name what it calls main() from: that is whatever only follows a beginning.
  const follows = Uint8Array.from(functions.name, (name) => Number(name.startsWith("[libc.so.6+")));
  for (let i = 1; i < count; i++) {
    const f = fn[i]!;
    const caller = fn[parent[i]!]!;
    if (follows[f] && (caller < 0 || !BEGINNINGS.has(functions.name[caller]!))) follows[f] = 0;
  }
  return internal.map((is, f) => is | follows[f]!);
}

function isInternal(functions: FunctionTable, f: number): boolean {
  if (functions.kind[f] !== "native") return false;
  return BEGINNINGS.has(functions.name[f]!) || BINARIES.test(binaryOf(functions, f)?.name ?? "");
}
