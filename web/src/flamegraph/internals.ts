// SPDX-License-Identifier: Apache-2.0
import { binaryOf, type FunctionTable, type Tree } from "./model";

// Internal frames: those of the interpreter, of the CUDA libraries and gpusonde below a program's CUDA call, of
// starting a process, a thread or an import, and of Go's way to them. Python functions don't count, except those that
// only start others.
const BINARIES = /^((lib)?python\d|libffi\.so|_ctypes\.|ld-linux|libgpusonde-inject\.so|lib(cuda|cudart|cupti|nvrtc|nvidia-[\w-]+)\.so)/;
const BEGINNINGS = new Set(["_start", "__libc_start_main", "__libc_start_call_main", "__libc_start_main_impl", "start_thread", "clone", "clone3", "__clone3"]);
// Not all of Go's runtime: its memory management and scheduler explain something.
const GO = /^(runtime\.(goexit|main|mstart|mstart0|mstart1|rt0_go|systemstack|cgocall|asmcgocall)|_cgo_\w+|.+\._Cfunc_\w+)(\.abi0)?$/;
const PYTHON_BEGINNINGS: [file: RegExp, name: RegExp][] = [
  [/^<frozen importlib\._bootstrap/, /./],
  [/^(<frozen runpy>$|.*\/runpy\.py$)/, /./],
  [/\/threading\.py$/, /^(Thread\.)?(_bootstrap|_bootstrap_inner|run)$/],
  [/\/multiprocessing\/(process|context|spawn|forkserver|popen_\w+)\.py$/, /./],
];

// 1 for each internal function.
export function internalFunctions({ functions, function: fn, parent, count }: Tree): Uint8Array {
  const internal = Uint8Array.from(functions.name, (_, f) => Number(isInternal(functions, f)));
  // A stripped C library has no name for main()'s caller: it is an unnamed frame directly below a start frame.
  const follows = Uint8Array.from(functions.name, (name) => Number(name.startsWith("[libc.so.6+")));
  for (let i = 1; i < count; i++) {
    const f = fn[i]!;
    const caller = fn[parent[i]!]!;
    if (follows[f] && (caller < 0 || !BEGINNINGS.has(functions.name[caller]!))) follows[f] = 0;
  }
  return internal.map((is, f) => is | follows[f]!);
}

function isInternal(functions: FunctionTable, f: number): boolean {
  const name = functions.name[f]!;
  if (functions.kind[f] === "python") return PYTHON_BEGINNINGS.some(([file, begins]) => file.test(functions.file[f]!) && begins.test(name));
  if (functions.kind[f] !== "native") return false;
  return BEGINNINGS.has(name) || GO.test(name) || BINARIES.test(binaryOf(functions, f)?.name ?? "");
}
