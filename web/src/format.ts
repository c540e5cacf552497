// SPDX-License-Identifier: Apache-2.0
import { printable } from "./printable";

// Formats numbers with three significant digits and a unit. The space before a unit is a narrow no-break one
// (U+202F).
const SPACE = "\u202f";

// 9.12, 31.2, 812, 1 350: never an exponent, never more than three significant digits.
export function threeDigits(value: number): string {
  if (value === 0) return "0";
  const rounded = Number(value.toPrecision(3));
  const decimals = Math.max(0, 2 - Math.floor(Math.log10(Math.abs(rounded))));
  return grouped(rounded.toFixed(Math.min(decimals, 12)));
}

const DURATIONS: [limit: number, divisor: number, unit: string][] = [
  [1e3, 1, "ns"],
  [1e6, 1e3, "µs"],
  [1e9, 1e6, "ms"],
  [120e9, 1e9, "s"],
  [7200e9, 60e9, "min"],
  [Infinity, 3600e9, "h"],
];

export function formatDuration(ns: number): string {
  if (Math.abs(ns) < 0.1) return `0${SPACE}s`; // what is left when means are subtracted
  // 0.9996 ms is 1.00 ms, not 1,000 µs: the unit follows the rounded value.
  const rounded = Number(ns.toPrecision(3));
  const [, divisor, unit] = DURATIONS.find(([limit]) => Math.abs(rounded) < limit)!;
  return threeDigits(ns / divisor) + SPACE + unit;
}

const BEFORE_UNIT = /(?<=\d) (?=(?:%|[nµm]?s|min|h|[kMGT]?i?B(?:\/s)?|[kMG]?Hz|°C|m?W)(?!\w))/g;

// A sentence of the server, which may contain names of programs, as it is shown: no line ends between a number and its unit.
export function unbroken(sentence: string): string {
  return printable(sentence).replace(BEFORE_UNIT, SPACE);
}

// A value in the profile's own unit; only times get SI prefixes.
export function formatValue(value: number, unit: string): string {
  return unit === "ns" ? formatDuration(value) : `${threeDigits(value)}${SPACE}${unit}`;
}

// A difference of values, always with its sign: "+1.20 ms", "±0 s".
export function formatDifference(difference: number, unit: string): string {
  const text = formatValue(Math.abs(difference), unit);
  return (text.startsWith(`0${SPACE}`) ? "±" : difference < 0 ? "−" : "+") + text;
}

// "± 1.20 ms", or empty if the interval is negligible.
export function formatInterval(interval: number, unit: string): string {
  return interval > 0 ? `±${SPACE}${formatValue(interval, unit)}` : "";
}

// Of less time than this share, work that is missing doesn't change a figure of three digits by much.
const MIN_PARTIAL = 0.005;

// What precedes a busy share of which a part lacks the work of a process, and the sentence that says so.
export function lowerBound(partial: number): { sign: string; why: string } | null {
  if (!(partial > MIN_PARTIAL)) return null;
  return { sign: "≥\u2009", why: `A lower bound: in ${formatShare(partial, 1)} of the observed time, GPU profiling of another process was paused, and its work is missing` };
}

export function formatShare(part: number, whole: number): string {
  if (part < 0) return `−${formatShare(-part, whole)}`;
  if (whole <= 0 || part === 0) return `0${SPACE}%`;
  const percent = (100 * part) / whole;
  if (percent < 0.01) return `<0.01${SPACE}%`;
  return (percent < 0.1 ? percent.toFixed(2) : threeDigits(percent)) + SPACE + "%";
}

const SIZES = ["B", "kB", "MB", "GB", "TB"];

export function formatBytes(bytes: number): string {
  let unit = 0;
  // 999.9 kB is 1.00 MB, not 1,000 kB: the unit follows the rounded value.
  for (; Number((bytes / 1000 ** unit).toPrecision(3)) >= 1000 && unit < SIZES.length - 1; ) unit++;
  return threeDigits(bytes / 1000 ** unit) + SPACE + SIZES[unit]!;
}

// Counts are exact: no rounding.
export function formatCount(count: number): string {
  return grouped(String(count));
}

function grouped(digits: string): string {
  const [whole = "", fraction] = digits.split(".");
  const spaced = whole.replace(/\B(?=(\d{3})+$)/g, ",");
  return fraction === undefined ? spaced : `${spaced}.${fraction}`;
}

const clock = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" });
const date = new Intl.DateTimeFormat(undefined, { year: "numeric", month: "short", day: "numeric" });

export function formatClock(us: number): string {
  return clock.format(us / 1000);
}

const DAY_S = 86400;

// An incident's sentence, which says in UTC when it began ("Steps slowed 2.2× from 12:59:31."), with the time of the
// reader's zone; `us` is about when that was.
export function withLocalClock(sentence: string, us: number): string {
  return sentence.replace(/(?<= from )(\d\d):(\d\d):(\d\d)(?=\.)/, (_, hours, minutes, seconds) => {
    const clock = Number(hours) * 3600 + Number(minutes) * 60 + Number(seconds);
    const later = (((clock - Math.floor(us / 1e6)) % DAY_S) + DAY_S) % DAY_S;
    return formatClock(us + (later > DAY_S / 2 ? later - DAY_S : later) * 1e6);
  });
}

// "12:01:03", with the day in front when it is not that of `now`, ms.
export function formatTime(us: number, now: number = Date.now()): string {
  const day = date.format(us / 1000);
  return (day === date.format(now) ? "" : `${day}, `) + formatClock(us);
}

// "12:01:03 – 12:01:20", with the day in front when it is not today. Of a short time with as many digits as tell its ends
// apart: "12:01:03.742 – 12:01:03.791".
export function formatRange(from: number, to: number, now: number = Date.now()): string {
  const length = to - from;
  const digits = length < 10e3 ? 6 : length < 10e6 ? 3 : 0;
  return `${formatTime(from, now)}${fractionOf(from, digits)} – ${formatTime(to, from / 1000)}${fractionOf(to, digits)}`;
}

// ".742", ".742 105"; empty without digits.
function fractionOf(us: number, digits: number): string {
  const fraction = String(us % 1e6).padStart(6, "0").slice(0, digits);
  return fraction && `.${fraction.replace(/(\d{3})(?=\d)/, `$1${SPACE}`)}`;
}

// Labels a tick of a time axis, of which the next is `step` seconds away.
export function formatTick(seconds: number, step: number): string {
  const when = new Date(seconds * 1000);
  const two = (value: number) => String(value).padStart(2, "0");
  // At midnight, too: the times of several days would be the same.
  const isMidnight = step >= 60 && when.getHours() === 0 && when.getMinutes() === 0;
  if (step >= 86400 || isMidnight) return when.toLocaleDateString(undefined, { month: "short", day: "numeric" });
  const minutes = `${two(when.getHours())}:${two(when.getMinutes())}`;
  if (step >= 60) return minutes;
  const fraction = step >= 1 ? "" : `.${String(when.getMilliseconds()).padStart(3, "0")}`;
  return `${minutes}:${two(when.getSeconds())}${fraction}`;
}

// The labels of a strip's time axis, of ticks `step` seconds apart at these positions (CSS pixels). Left out are one that would cover
// the scale at the axis's beginning, and one that would be cut at `end`.
export function tickLabels(ticks: number[], step: number, positionOf: (tick: number) => number, end: number): string[] {
  const beginning = 24;
  const characterWidth = 6.4; // of the 11 px font
  return ticks.map((tick) => {
    const label = formatTick(tick, step);
    const position = positionOf(tick);
    return position < beginning || position + (label.length * characterWidth) / 2 > end ? "" : label;
  });
}

// In UTC, to the millisecond, for the hover.
export function formatUtc(us: number): string {
  return `${isoTime(us)} UTC`;
}

export function formatRangeUtc(from: number, to: number): string {
  return `${isoTime(from)} – ${isoTime(to)} UTC`;
}

function isoTime(us: number): string {
  return new Date(us / 1000).toISOString().replace("T", " ").replace("Z", "");
}
