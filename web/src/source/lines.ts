// SPDX-License-Identifier: Apache-2.0
import { ApiError } from "../api/client";
import type { SourceJson } from "../api/types";

// The kinds of time, one column each, in display order.
export const TIMES = ["cpu", "gpu", "waits"] as const;
export type Time = (typeof TIMES)[number];

export interface Line {
  // From 1; 0 stands for frames without a known line.
  number: number;
  // Null if the file can't be read.
  code: string | null;
  // Time with this line as the innermost line of the file on the stack: the line itself, or its callees in other
  // files.
  self: Record<Time, number>;
  // Time with this line on the stack.
  total: Record<Time, number>;
}

const NONE: Record<Time, number> = { cpu: 0, gpu: 0, waits: 0 };

export interface SourceFile {
  file: string;
  lines: Line[];
  // Time of the whole selection, in this file and elsewhere.
  total: Record<Time, number>;
  // The largest self time of a line.
  longest: Record<Time, number>;
  // Why there is no code; empty if there is.
  unreadable: string;
  modifiedUs: number | null;
}

// Throws ApiError (malformed) if the columns contradict docs/api.md. Lines that have time but are missing from the
// text are appended: the file has changed since.
export function parseSource(json: SourceJson): SourceFile {
  const { line, ...columns } = json.lines;
  for (const [key, column] of Object.entries(columns)) {
    if (column.length !== line.length) {
      throw new ApiError("malformed", `The server's source file can't be read: lines.${key} has ${column.length} of ${line.length} values.`);
    }
  }
  const longest = { cpu: 0, gpu: 0, waits: 0 };
  const timed = new Map<number, Line>();
  line.forEach((number, i) => {
    const self = { cpu: columns.cpu_self[i]!, gpu: columns.gpu_self[i]!, waits: columns.waits_self[i]! };
    for (const key of TIMES) longest[key] = Math.max(longest[key], self[key]);
    timed.set(number, { number, code: null, self, total: { cpu: columns.cpu[i]!, gpu: columns.gpu[i]!, waits: columns.waits[i]! } });
  });
  const { file, total, unreadable, modified_us: modifiedUs } = json;
  return { file, total, longest, unreadable, modifiedUs, lines: json.text === null ? [...timed.values()] : withCode(json.text, timed) };
}

function withCode(text: string, timed: Map<number, Line>): Line[] {
  const code = text.split(/\r?\n/);
  if (code.at(-1) === "") code.pop();
  const lines = code.map((content, i): Line => {
    const known = timed.get(i + 1);
    return known ? { ...known, code: content } : { number: i + 1, code: content, self: NONE, total: NONE };
  });
  const outside = [...timed.values()].filter(({ number }) => number < 1 || number > code.length);
  return [...outside.filter(({ number }) => number < 1), ...lines, ...outside.filter(({ number }) => number > code.length)];
}

// The index of the line with the most self time of one kind, or of the next kind if no line has any. -1: none has
// any.
export function hottestLine(source: SourceFile, first: Time): number {
  for (const time of [first, ...TIMES]) {
    if (source.longest[time] === 0) continue;
    return source.lines.findIndex((line) => line.self[time] === source.longest[time]);
  }
  return -1;
}

// Whether the server can be asked for the file; "<frozen importlib>" and the like are not files.
export function isSourceFile(file: string): boolean {
  return file !== "" && !file.startsWith("<");
}
