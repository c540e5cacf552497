// SPDX-License-Identifier: Apache-2.0
import { printable } from "../printable";

// Names of GPU kernels where there is little room. Titles and tooltips have the whole ones.

const QUALIFIERS = /(?<!\w)(?:\(anonymous namespace\)::|<unnamed>::|\w+::(?!operator\b)(?=\w|\(anonymous namespace\)|<unnamed>))+/g;
const RETURN_TYPES = /(?<!\w)void (?!const\b)(?=\w)/g;
const CASTS = /(?<=[<, (]|^)\([\w: ]+\)(?=[-\d])/g;

// The demangled name without return type, parameters, namespaces and types of constants, as in the reports of
// `gpusonde analyze` (src/analyze/report/short_names.h).
export function condensedName(name: string): string {
  return withoutParameters(name.replace(/ \[clone \.kd\]$/, ""))
    .replace(QUALIFIERS, "")
    .replace(RETURN_TYPES, "")
    .replace(CASTS, "");
}

function withoutParameters(name: string): string {
  if (!name.endsWith(")")) return name;
  let open = 0;
  for (let at = name.length - 1; at > 0; at--) {
    if (name[at] === ")") open++;
    else if (name[at] === "(" && --open === 0) return /[\w>]/.test(name[at - 1]!) ? name.slice(0, at) : name;
  }
  return name;
}

const FOLDERS = /(?<!\S)\/(?:[^\s/]*\/)*(?=[^\s/])/g;

// A command line without the folders of its files, which are often long and alike: "python3 train.py --seed 1".
export function withoutFolders(command: string): string {
  return command.replace(FOLDERS, "");
}

// "411 python3 train.py" of "/usr/bin/python3 /home/me/train.py (pid 411)": the ranks of a job have the same command, and
// their frames are too narrow for all of it.
function processLabel(name: string): string {
  const [, command, pid] = /^(.*) \(pid (\d+)\)$/s.exec(name) ?? [];
  return pid === undefined ? withoutFolders(name) : `${pid} ${withoutFolders(command!)}`;
}

const LABELS: Record<string, (name: string) => string> = { gpu: condensedName, process: processLabel };

// What to show for each function: kernels' names are condensed where no other kernel's would look the same, processes
// begin with their ids, and all are printable.
export function shownNames(names: string[], kinds: string[]): string[] {
  const condensed = names.map((name, f) => LABELS[kinds[f]!]?.(name) ?? name);
  const owners = new Map<string, string | null>();
  names.forEach((name, f) => {
    if (kinds[f] !== "gpu") return;
    const owner = owners.get(condensed[f]!);
    owners.set(condensed[f]!, owner === undefined || owner === name ? name : null);
  });
  return condensed.map((text, f) => printable(owners.get(text) === null ? names[f]! : text));
}

const HEAD = 11;
const ALIKE = 18;

// Of a word that differs later than this only the last part is shown: "…OnSelf_add" of "CUDAFunctorOnSelf_add".
const LONG_WORD = 8;

// Where the word begins of which a character at a place is a part, or if that is far, its part: "FunctorOnSelf_add" has
// three.
function beginOfWord(name: string, place: number): number {
  let from = place;
  while (from > 0 && /\w/.test(name[from - 1]!)) from--;
  if (place - from < LONG_WORD) return from;
  let part = place;
  while (part > from && !/^(?:_.|.[\W_]|[^A-Z][A-Z])$/s.test(name.slice(part - 1, part + 1))) part--;
  return part;
}

// So much of a name is seen in a narrow column.
const SEEN = 26;
// How much is shown from the first of two places on.
const MIDDLE = 10;

// For a narrow column: of names that begin alike, the beginning and what follows where they differ from the most similar
// one. Those that look the same even so also have the place at which they differ from each other.
export function narrowNames(names: string[]): string[] {
  const places = names.map((): number[] => []);
  const shown = names.slice();
  const distinguish = (group: number[]) => {
    group.sort((a, b) => (names[a]! < names[b]! ? -1 : 1));
    group.forEach((index, i) => {
      const name = names[index]!;
      const common = Math.max(...[group[i - 1], group[i + 1]].map((other) => (other === undefined ? 0 : commonBeginning(name, names[other]!))));
      const from = beginOfWord(name, common);
      if (common < name.length && from >= ALIKE) places[index]!.push(from);
    });
    for (const index of group) shown[index] = cutTo(names[index]!, places[index]!);
  };
  distinguish(names.map((_, i) => i));
  const alike = new Map<string, number[]>();
  shown.forEach((text, i) => {
    if (places[i]!.length === 0) return;
    const seen = text.slice(0, SEEN);
    const group = alike.get(seen);
    if (group) group.push(i);
    else alike.set(seen, [i]);
  });
  for (const group of alike.values()) if (group.length > 1) distinguish(group);
  return shown;
}

// The same for those of the names that are longer than what fits, in characters.
export function narrowLongNames(names: string[], fits: number): string[] {
  const long = names.map((_, i) => i).filter((i) => names[i]!.length > fits);
  const narrow = narrowNames(long.map((i) => names[i]!));
  const all = names.slice();
  long.forEach((i, at) => (all[i] = narrow[at]!));
  return all;
}

// The beginning of a name and what follows one or two places.
function cutTo(name: string, places: number[]): string {
  if (places.length === 0) return name;
  const [first, last] = [Math.min(...places), Math.max(...places)];
  const middle = last - first > MIDDLE ? `${part(name, first, first + MIDDLE)}…` : "";
  return `${part(name, 0, HEAD)}…${middle}${part(name, middle ? last : first)}`;
}

// A part of a name that contains characters such as emoji, which are two units of UTF-16, whole or not at all.
function part(name: string, from: number, to = name.length): string {
  const [first, end] = [from, to].map((at) => (/^[\udc00-\udfff]/.test(name.slice(at, at + 1)) ? at - 1 : at));
  return name.slice(first, end);
}

function commonBeginning(a: string, b: string): number {
  let length = 0;
  while (length < a.length && a[length] === b[length]) length++;
  return length;
}
