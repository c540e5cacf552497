// SPDX-License-Identifier: Apache-2.0
import { binaryOf, type FunctionTable } from "./model";

// Frames that tell how and not what: the interpreter's own, those of the CUDA libraries below the call
// that a program made, and how a process begins. Python's functions are not among them.
const BINARIES = /^((lib)?python\d|libffi\.so|_ctypes\.|lib(cuda|cudart|cupti|nvrtc|nvidia-[\w-]+)\.so)/;
const BEGINNINGS = new Set(["_start", "__libc_start_main", "__libc_start_call_main", "__libc_start_main_impl", "start_thread", "clone", "clone3"]);

// 1 for each such function.
export function internalFunctions(functions: FunctionTable): Uint8Array {
  return Uint8Array.from(functions.name, (name, f) => {
    if (functions.kind[f] !== "native") return 0;
    return Number(BEGINNINGS.has(name) || BINARIES.test(binaryOf(functions, f)?.name ?? ""));
  });
}
