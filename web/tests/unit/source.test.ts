// SPDX-License-Identifier: Apache-2.0
import { describe, expect, test } from "vitest";
import { ApiError } from "../../src/api/client";
import type { SourceJson } from "../../src/api/types";
import { hottestLine, isSourceFile, parseSource } from "../../src/source/lines";

function jsonOf(text: string | null, times: Record<number, [cpu: number, gpu: number, waits: number]>): SourceJson {
  const line = Object.keys(times).map(Number);
  const column = (i: 0 | 1 | 2) => line.map((number) => times[number]![i]);
  return {
    file: "/src/a.py",
    total: { cpu: 100, gpu: 100, waits: 100 },
    lines: { line, cpu_self: column(0), gpu_self: column(1), waits_self: column(2), cpu: column(0), gpu: column(1), waits: column(2) },
    text,
    modified_us: null,
    unreadable: "",
  };
}

describe("the lines of a source file", () => {
  test("are beside their times", () => {
    const source = parseSource(jsonOf("one\r\ntwo\nthree\n", { 2: [30, 5, 0] }));
    expect(source.lines.map(({ number, code, self }) => [number, code, self.cpu])).toEqual([
      [1, "one", 0],
      [2, "two", 30],
      [3, "three", 0],
    ]);
    expect(source.longest).toEqual({ cpu: 30, gpu: 5, waits: 0 });
  });

  test("that the text lacks are kept: those without a number above, those past its end below", () => {
    const source = parseSource(jsonOf("one\n", { 0: [1, 0, 0], 1: [2, 0, 0], 9: [3, 0, 0] }));
    expect(source.lines.map(({ number, code }) => [number, code])).toEqual([
      [0, null],
      [1, "one"],
      [9, null],
    ]);
  });

  test("without text are those with time", () => {
    expect(parseSource(jsonOf(null, { 4: [1, 0, 0], 8: [0, 1, 0] })).lines.map(({ number }) => number)).toEqual([4, 8]);
  });

  test("open at the line with most time of the selected kind, else of any kind", () => {
    const source = parseSource(jsonOf(null, { 4: [9, 0, 0], 6: [9, 0, 0], 8: [1, 7, 0] }));
    expect(hottestLine(source, "cpu")).toBe(0);
    expect(hottestLine(source, "gpu")).toBe(2);
    expect(hottestLine(source, "waits")).toBe(0);
    expect(hottestLine(parseSource(jsonOf("one", {})), "cpu")).toBe(-1);
  });

  test("that contradict each other are rejected", () => {
    const json = jsonOf(null, { 4: [1, 0, 0] });
    json.lines.gpu = [];
    expect(() => parseSource(json)).toThrow(ApiError);
  });

  test("are not requested for names that are not files", () => {
    expect(["/src/a.py", "a.cc", "", "<string>"].map(isSourceFile)).toEqual([true, true, false, false]);
  });
});
