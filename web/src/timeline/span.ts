// SPDX-License-Identifier: Apache-2.0
import type { Range } from "../state/view";

// Times are ns since an origin in µs since the epoch: as ns since the epoch they would exceed what a number holds.
export interface Span {
  from: number;
  to: number;
}

export const MIN_SPAN_NS = 10_000;

export function spanOf({ from, to }: Range, originUs: number): Span {
  return { from: (from - originUs) * 1000, to: (to - originUs) * 1000 };
}

// In whole µs, as the address has it.
export function rangeOf({ from, to }: Span, originUs: number): Range {
  return { from: originUs + Math.round(from / 1000), to: originUs + Math.max(Math.round(to / 1000), Math.round(from / 1000) + 10) };
}

// The span within the bounds that is most like this one.
export function fitted({ from, to }: Span, bounds: Span): Span {
  const length = Math.min(Math.max(to - from, MIN_SPAN_NS), Math.max(bounds.to - bounds.from, MIN_SPAN_NS));
  // What is too short or too long grows or shrinks around its middle.
  const begin = length === to - from ? from : (from + to - length) / 2;
  const moved = Math.max(bounds.from, Math.min(begin, bounds.to - length));
  return { from: moved, to: moved + length };
}

// `factor` < 1 zooms in; the time at `part` (0…1) of the span stays where it is.
export function zoomed({ from, to }: Span, factor: number, part: number, bounds: Span): Span {
  const least = MIN_SPAN_NS / (to - from);
  const most = Math.max((bounds.to - bounds.from) / (to - from), least);
  const by = Math.min(Math.max(factor, least), most);
  const at = from + (to - from) * part;
  return fitted({ from: at - (at - from) * by, to: at + (to - at) * by }, bounds);
}

export function panned({ from, to }: Span, by: number, bounds: Span): Span {
  return fitted({ from: from + by, to: to + by }, bounds);
}

// A request's time: three spans of a length that is a power of two of µs, or half as much again, at multiples of half
// of it. Panning within it asks nothing new, and the same places have the same addresses. `columns` is quantised too.
export interface Quantised extends Range {
  columns: number;
}

const MAX_COLUMNS = 8000;

export function quantised(visible: Range, width: number, bounds: Range): Quantised {
  const length = stepOf(visible.to - visible.from);
  const middle = (visible.from + visible.to) / 2;
  // Of the steps, the one before the middle minus a span and a half: at least half a span remains on either side.
  const from = Math.floor((middle - 1.5 * length) / (length / 2)) * (length / 2);
  return {
    from: Math.floor(Math.max(from, bounds.from)),
    to: Math.ceil(Math.min(from + 3 * length, bounds.to)),
    columns: Math.min(MAX_COLUMNS, 3 * Math.ceil(Math.max(width, 1) / 100) * 100),
  };
}

function stepOf(us: number): number {
  let power = 16;
  while (power < us) power *= 2;
  return power * 0.75 >= us ? power * 0.75 : power;
}

export interface Ticks {
  // What labels count from, ns since the origin: a round time of day at or before the span's beginning. Null: labels are
  // times of day.
  base: number | null;
  // Between two ticks, ns.
  step: number;
  // Ns since the origin.
  at: number[];
}

// Steps of a clock, s.
const CLOCK_STEPS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400];

// Of the step; those of an hour that clocks skip may be closer.
const CLOSEST_TICKS = 0.7;

// At most so many ticks: at seconds and minutes of the clock in a long span, else at multiples of 1, 2 or 5 of a power
// of ten.
export function ticksOf({ from, to }: Span, most: number, originUs: number): Ticks {
  const length = to - from;
  const clock = length / 1e9 > most ? (CLOCK_STEPS.find((s) => length / (s * 1e9) <= most) ?? 604800) : null;
  const power = 10 ** Math.floor(Math.log10(length / Math.max(most, 1)));
  const step = clock === null ? Math.max(1, [1, 2, 5, 10].map((factor) => factor * power).find((s) => length / s <= most)!) : clock * 1e9;
  const unit = clock === null ? 10 ** Math.ceil(Math.log10(length)) : step;
  // The origin's distance from a multiple of the unit in local time; units below 1 µs divide it.
  const zoneOf = (ns: number) => new Date((originUs + ns / 1000) / 1000).getTimezoneOffset() * 60e9;
  const zone = zoneOf(from);
  const local = originUs - zone / 1000;
  const shift = unit >= 1000 ? (local % (unit / 1000)) * 1000 : 0;
  const base = Math.floor((from + shift) / unit) * unit - shift;
  const at: number[] = [];
  for (let i = Math.ceil((from - base) / step); base + i * step <= to + step; i++) {
    const even = base + i * step;
    // Where the clocks have been changed meanwhile, later ticks keep their time of day.
    const change = clock === null ? 0 : zoneOf(even) - zone;
    const tick = change % step === 0 ? even : even + change;
    if (tick <= to && tick - (at.at(-1) ?? -Infinity) >= CLOSEST_TICKS * step) at.push(tick);
  }
  return { base: clock === null ? base : null, step, at };
}

const UNITS: [length: number, unit: string][] = [
  [1e9, "s"],
  [1e6, "ms"],
  [1e3, "µs"],
  [1, "ns"],
];

// A tick's label: the time since the base in the unit that suits the span, with the digits that the step needs.
export function formatOffset(ns: number, step: number, length: number): string {
  const [divisor, unit] = UNITS.find(([one]) => length >= one) ?? UNITS[3]!;
  const digits = Math.max(0, Math.ceil(Math.log10(divisor / step) - 1e-9));
  return `${(ns / divisor).toFixed(Math.min(digits, 9))}\u202f${unit}`;
}

// The time of day to the digit that matters at a precision: "12:01:03.120 4".
export function formatMoment(ns: number, originUs: number, precision: number): string {
  const us = originUs + Math.floor(ns / 1000);
  const rest = ((ns % 1000) + 1000) % 1000;
  const date = new Date(us / 1000);
  const two = (value: number) => String(value).padStart(2, "0");
  const fraction = String((us % 1e6) * 1000 + Math.round(rest)).padStart(9, "0");
  const digits = Math.min(9, Math.max(0, Math.ceil(Math.log10(1e9 / Math.max(precision, 1)) - 1e-9)));
  const groups = fraction.slice(0, digits).replace(/(\d{3})(?=\d)/g, "$1\u202f");
  return `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}${groups && "."}${groups}`;
}

// Ns since the epoch as decimal digits, which a number could not hold.
export function exactNs(ns: number, originUs: number): string {
  return String(BigInt(originUs) * 1000n + BigInt(Math.round(ns)));
}

// What of [0, length) is in none of the intervals, which are sorted and disjoint.
export function gapsOf({ start, length }: { start: number[]; length: number[] }, end: number): Span[] {
  const gaps: Span[] = [];
  let from = 0;
  start.forEach((at, i) => {
    if (at > from) gaps.push({ from, to: at });
    from = Math.max(from, at + length[i]!);
  });
  if (from < end) gaps.push({ from, to: end });
  return gaps;
}
