// SPDX-License-Identifier: Apache-2.0
import { expect, test } from "vitest";
import { formatClock, formatCount, formatDifference, formatDuration, formatInterval, formatRange, formatRangeUtc, formatShare, formatTick, formatTime, lowerBound, threeDigits, tickLabels, unbroken, withLocalClock } from "../../src/format";

const plain = (text: string) => text.replaceAll("\u202f", " ");

test.each([
  [0, "0"], [0.041234, "0.0412"], [0.5, "0.500"], [9.12345, "9.12"], [9.999, "10.0"], [31.25, "31.3"], [812, "812"], [1352, "1,350"], [-4.5, "-4.50"],
])("%d has three significant digits: %s", (value, text) => expect(threeDigits(value)).toBe(text));

test.each([
  [0, "0 s"], [1.5e-10, "0 s"], [7, "7.00 ns"], [1500, "1.50 µs"], [999_600, "1.00 ms"], [812e6, "812 ms"], [9.12e9, "9.12 s"], [90e9, "90.0 s"], [600e9, "10.0 min"], [9120e9, "2.53 h"], [147600e9, "41.0 h"],
])("%d ns is %s", (ns, text) => expect(plain(formatDuration(ns))).toBe(text));

test.each([
  [0, 10, "0 %"], [5, 0, "0 %"], [1, 3, "33.3 %"], [10, 10, "100 %"], [1, 1e4, "0.01 %"], [1234, 1e6, "0.123 %"], [999, 1e6, "0.10 %"], [99, 1e6, "<0.01 %"], [1, 1e9, "<0.01 %"], [-1, 5, "−20.0 %"],
])("%d of %d is %s", (part, whole, text) => expect(plain(formatShare(part, whole))).toBe(text));

test.each([[1.2e6, "+1.20 ms"], [-1.2e6, "−1.20 ms"], [0, "±0 s"], [-1e-9, "±0 s"]])("a difference of %d ns is %s", (ns, text) =>
  expect(plain(formatDifference(ns, "ns"))).toBe(text));

test("a time of another day has its day, with a year", () => {
  const [noon, later] = [Date.UTC(2025, 10, 21, 12), Date.UTC(2025, 10, 21, 12, 5)];
  const yesterday = Date.UTC(2025, 10, 20, 12);
  expect(formatTime(noon * 1000, later)).not.toMatch(/2025/);
  expect(formatTime(noon * 1000, later + 3 * 86400e3)).toMatch(/2025, /);
  expect(formatRange(yesterday * 1000, noon * 1000, later)).toMatch(/2025.* – .*2025/);
  expect(formatRange(noon * 1000, later * 1000, later)).not.toMatch(/2025/);
});

test("the ends of a short time can be told apart", () => {
  const us = Date.UTC(2025, 10, 21, 12, 0, 3) * 1000;
  const ends = (from: number, to: number) => plain(formatRange(us + from, us + to, us / 1000)).replaceAll(formatClock(us), "#");
  expect(ends(0, 10e6)).toMatch(/^# – [\d:]+$/);
  expect(ends(7_000, 742_105)).toBe("#.007 – #.742");
  expect(ends(742_105, 742_115)).toBe("#.742 105 – #.742 115");
});

test("a tick at midnight has its day, as the times of several days would be the same", () => {
  const midnight = new Date(2025, 10, 21).getTime() / 1000;
  expect(formatTick(midnight, 7200)).toMatch(/21/);
  expect(formatTick(midnight + 7200, 7200)).toBe("02:00");
  expect(formatTick(midnight + 7203.5, 0.5)).toBe("02:00:03.500");
});

test("labels of a time axis that would be cut, or cover the scale, are left out", () => {
  const second = new Date(2025, 10, 21, 2, 0, 0).getTime() / 1000;
  const ticks = [0, 0.1, 0.2, 0.3].map((s) => second + s);
  const positions = (tick: number) => Math.round((tick - second) * 1000) * 4 + 10;
  expect(tickLabels(ticks, 0.1, positions, 1250)).toEqual(["", "02:00:00.100", "02:00:00.200", "02:00:00.300"]);
  expect(tickLabels(ticks, 0.1, positions, 1240)).toEqual(["", "02:00:00.100", "02:00:00.200", ""]);
});

test("an incident's sentence says when it began in the reader's zone", () => {
  const at = (hours: number, minutes: number, seconds: number) => Date.UTC(2025, 10, 21, hours, minutes, seconds) * 1000;
  const sentence = (clock: string) => `Steps slowed 2.2× from ${clock}. CPU contention (0.96): taken from 01:02:03.py.`;
  expect(withLocalClock(sentence("23:59:31"), at(23, 59, 31.9))).toBe(sentence(formatClock(at(23, 59, 31))));
  expect(withLocalClock(sentence("23:59:59"), at(24, 0, 1)), "about then").toBe(sentence(formatClock(at(23, 59, 59))));
  expect(withLocalClock("No step was slow.", at(1, 2, 3))).toBe("No step was slow.");
});

test("exact and unknown values have no interval", () => {
  expect(plain(formatInterval(1.5e6, "ns"))).toBe("± 1.50 ms");
  expect([formatInterval(0, "ns"), formatInterval(NaN, "ns")]).toEqual(["", ""]);
});

test("no line of a sentence ends between a number and its unit", () => {
  const sentence = "Waiting took 99 % of 30 ms, 3 s of 2 GB at 1.5 GB/s; 2 steps, 4 minutes, 5 Bytes";
  expect(unbroken(sentence)).toBe("Waiting took 99\u202f% of 30\u202fms, 3\u202fs of 2\u202fGB at 1.5\u202fGB/s; 2 steps, 4 minutes, 5 Bytes");
});

test("names in a sentence hide and reorder nothing", () => expect(unbroken("taken by safe\u202elive in 3 s")).toBe("taken by safe\\u202elive in 3\u202fs"));

test("a busy share that lacks much of a process's work is a lower bound", () => {
  expect(lowerBound(0.005)).toBeNull();
  expect(lowerBound(0.32)).toMatchObject({ sign: "≥\u2009" });
  expect(plain(lowerBound(0.32)!.why)).toMatch(/^A lower bound: in 32\.0 % of the observed time/);
});

test("counts are exact", () => expect(formatCount(1234567)).toBe("1,234,567"));

test("UTC is written to the millisecond", () =>
  expect(formatRangeUtc(1763687200000000, 1763687201500000)).toBe("2025-11-21 01:06:40.000 – 2025-11-21 01:06:41.500 UTC"));
