// SPDX-License-Identifier: Apache-2.0
import type { Strip, Strips } from "../api/types";
import type { Range } from "./view";

// Of less time than this, and less than half of its bucket, a share of busy time would be 0 or 100 % by chance.
const MIN_OBSERVED_US = 20e3;

// The value as it is drawn.
function drawn(strips: Strips, { values, observed }: Strip, i: number): number | null {
  const share = observed?.[i] ?? 1;
  return share >= 0.5 || share * strips.bucket_us >= MIN_OBSERVED_US ? values[i]! : null;
}

// Columns for a stepped plot: x in seconds at the start of each bucket, with the last value repeated at the end, so
// that the last bucket has a width.
export function seriesOf(strips: Strips, strip: Strip): [number[], (number | null)[]] {
  const values = strip.values.map((_, i) => drawn(strips, strip, i));
  const xs = Array.from({ length: values.length + 1 }, (_, i) => (strips.from_us + i * strips.bucket_us) / 1e6);
  return [xs, [...values, values.at(-1) ?? null]];
}

// The bucket at a time; null outside of all.
export function bucketAt(strips: Strips, { values }: Strip, us: number): number | null {
  const bucket = Math.floor((us - strips.from_us) / strips.bucket_us);
  return bucket >= 0 && bucket < values.length ? bucket : null;
}

export function rangeOf(strips: Strips, bucket: number): Range {
  const from = strips.from_us + bucket * strips.bucket_us;
  return { from, to: from + strips.bucket_us };
}

// The buckets of which more than half lies in a range, as [first, last).
function bucketsIn(strips: Strips, { from, to }: Range): [number, number] {
  const first = Math.max(0, Math.round((from - strips.from_us) / strips.bucket_us));
  // A range narrower than a bucket still has one.
  return [first, Math.max(first + 1, Math.round((to - strips.from_us) / strips.bucket_us))];
}

// The mean over the observed time of a range; null where nothing was observed.
export function meanOver(strips: Strips, { values, observed }: Strip, range: Range): number | null {
  const [first, last] = bucketsIn(strips, range);
  let sum = 0;
  let weights = 0;
  values.slice(first, last).forEach((value, i) => {
    if (value === null) return;
    const weight = observed?.[first + i] ?? 1;
    sum += weight * value;
    weights += weight;
  });
  return weights > 0 ? sum / weights : null;
}

// The observed share of a range, 0…1.
export function observedIn(strips: Strips, { values, observed }: Strip, range: Range): number {
  const [first, last] = bucketsIn(strips, range);
  const shares = values.slice(first, last).map((value, i) => (value === null ? 0 : (observed?.[first + i] ?? 1)));
  return shares.reduce((sum, share) => sum + share, 0) / Math.max(shares.length, 1);
}

// The share of a range's observed time in which the work of a process is missing, 0…1.
export function partialIn(strips: Strips, { observed, partial }: Strip, range: Range): number {
  if (!observed || !partial) return 0;
  const [first, last] = bucketsIn(strips, range);
  const sum = (shares: number[]) => shares.slice(first, last).reduce((all, share) => all + share, 0);
  return sum(partial) / (sum(observed) || 1);
}

// Moves the brush with an arrow key by a twentieth of the window; with Shift only its right edge. Null for other
// keys. Without a brush, the first key selects a tenth in the middle.
export function nudge(brush: Range | null, window: Range, key: string, resize: boolean): Range | null {
  if (key !== "ArrowLeft" && key !== "ArrowRight") return null;
  const length = window.to - window.from;
  if (!brush) {
    const middle = window.from + length / 2;
    return { from: Math.round(middle - length / 20), to: Math.round(middle + length / 20) };
  }
  const step = Math.round((key === "ArrowLeft" ? -1 : 1) * (length / 20));
  if (resize) {
    const least = Math.round(brush.from + length / 100);
    return { from: brush.from, to: Math.min(window.to, Math.max(least, brush.to + step)) };
  }
  const moved = Math.max(window.from - brush.from, Math.min(window.to - brush.to, step));
  return { from: brush.from + moved, to: brush.to + moved };
}
