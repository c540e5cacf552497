// SPDX-License-Identifier: Apache-2.0
import { busyOf, type Slices } from "./model";

// The first slice of a row that ends after t; the row's end if none does.
export function firstEndingAfter({ rowStart, reach }: Slices, row: number, t: number): number {
  let low = rowStart[row]!;
  let high = rowStart[row + 1]!;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (reach[middle]! > t) high = middle;
    else low = middle + 1;
  }
  return low;
}

// The slice of a row at t; if there is none, the nearest at most `near` away; null without one. Of several, the one
// that began last, which is drawn over the others.
export function sliceAt(slices: Slices, row: number, t: number, near: number): number | null {
  const { start, end } = slices;
  const last = slices.rowStart[row + 1]!;
  let best: number | null = null;
  let distance = near;
  // A slice that ends exactly `near` before t, and one without a length, still count.
  for (let i = firstEndingAfter(slices, row, t - near - 1); i < last && start[i]! <= t + near; i++) {
    const away = Math.max(0, start[i]! - t, t - end[i]!);
    if (away > distance) continue;
    best = i;
    distance = away;
  }
  return best;
}

// The interval of a track of states that contains t, as [first, end) of its states; null without one.
export function statesAt(slices: Slices, t: number): [number, number] | null {
  const { start, end, count } = slices;
  const first = firstEndingAfter(slices, 0, t);
  if (first >= count || start[first]! > t || end[first]! <= t) return null;
  return [first, endOfStates(slices, first)];
}

// The end of the states of one interval, of which `first` is the first.
export function endOfStates({ start, count }: Slices, first: number): number {
  let i = first + 1;
  while (i < count && start[i] === start[first]) i++;
  return i;
}

// The slice before (-1) or after (1) a time in a row, by the slices' starts; null at the end.
export function neighbour({ start, rowStart }: Slices, row: number, t: number, step: -1 | 1): number | null {
  let low = rowStart[row]!;
  let high = rowStart[row + 1]!;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (step > 0 ? start[middle]! > t : start[middle]! >= t) high = middle;
    else low = middle + 1;
  }
  const found = step > 0 ? low : low - 1;
  return found >= rowStart[row]! && found < rowStart[row + 1]! ? found : null;
}

// What a track did in a time: how many events, how busy, and the name with the most time; for the table behind the chart.
export function sumOf(slices: Slices, from: number, to: number): { events: number; busy: number; most: number | null } {
  const { start, end, name, events } = slices;
  const times = new Map<number, number>();
  let sum = 0;
  let busy = 0;
  for (let row = 0; row + 1 < slices.rowStart.length; row++) {
    const last = slices.rowStart[row + 1]!;
    for (let i = firstEndingAfter(slices, row, from); i < last && start[i]! < to; i++) {
      const length = end[i]! - start[i]!;
      const part = length > 0 ? (Math.min(end[i]!, to) - Math.max(start[i]!, from)) / length : 1;
      const time = busyOf(slices, i) * Math.max(0, part);
      sum += events ? events[i]! : 1;
      // Nested rows run at the same time as the first.
      if (row === 0) busy += time;
      times.set(name[i]!, (times.get(name[i]!) ?? 0) + time);
    }
  }
  let most: number | null = null;
  for (const [key, time] of times) if (most === null || time > times.get(most)!) most = key;
  return { events: sum, busy, most };
}
