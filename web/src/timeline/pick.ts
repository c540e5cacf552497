// SPDX-License-Identifier: Apache-2.0
import { describeSlice, type Description } from "./describe";
import type { Hit } from "./hit";
import { trackId } from "./layout";
import { STATES, type Slices, type Timeline, type Track } from "./model";
import { neighbour } from "./slices";
import { exactNs, type Span } from "./span";

// What a pick needs to outlive its answer.
export interface Picked extends Span {
  // In the address.
  key: string;
  lane: string;
  row: number;
  name: string;
  kind: string;
  description: Description;
  track: Pick<Track, "kind" | "process" | "device" | "stream" | "tid">;
}

export function pickedOf(timeline: Timeline, track: number, { row, slice }: Omit<Hit, "lane">, originUs: number): Picked {
  const of = timeline.tracks[track]!;
  const offset = (timeline.from_us - originUs) * 1000;
  const { start, end, name } = of.slices;
  const span = { from: start[slice]! + offset, to: end[slice]! + offset };
  const kind = timeline.names.kind[name[slice]!]!;
  return {
    ...span, lane: trackId(of), row, kind, name: timeline.names.name[name[slice]!]!, track: of,
    description: describeSlice(timeline, of, slice),
    key: [...partsOf(of), of.kind === "states" ? rankOf(kind) : row, exactNs(span.from, originUs), span.to - span.from].join(),
  };
}

// Names a slice in the address: its track, row, start (ns since the epoch) and length (ns). States of an interval share
// a row: in its place they have their rank. The server's times need more digits than a number has, so starts are compared
// as integers.
const KEY = /^((?:stream|steps|states|samples|ranges|calls),[0-9a-f]{32},(?:[0-9a-f]{32})?,\d*,\d*),(\d{1,4}),(\d{1,19}),(\d{1,16})$/;

export function isKey(text: string): boolean {
  return KEY.test(text);
}

const partsOf = ({ kind, process, device, stream, tid }: Picked["track"]) => [kind, process, device, stream, tid];
const rankOf = (kind: string) => Math.max(0, STATES.indexOf(kind));

// A key's time, ns since the origin.
export function spanOfKey(key: string, originUs: number): Span {
  const [, , , start, length] = KEY.exec(key)!;
  const from = Number(BigInt(start!) - BigInt(originUs) * 1000n);
  return { from, to: from + Number(length) };
}

// The slice in an answer; null if the answer doesn't have it.
export function findPicked(timeline: Timeline, key: string, originUs: number): Picked | null {
  const [, where, row] = KEY.exec(key)!;
  const { from, to } = spanOfKey(key, timeline.from_us);
  const track = timeline.tracks.findIndex((one) => partsOf(one).join() === where);
  if (track < 0) return null;
  const { kind, slices } = timeline.tracks[track]!;
  const ofStates = kind === "states";
  const inRow = ofStates ? 0 : Number(row);
  if (inRow + 1 >= slices.rowStart.length) return null;
  const isIt = (i: number) => slices.end[i] === to && (!ofStates || rankOf(timeline.names.kind[slices.name[i]!]!) === Number(row));
  const slice = startingAt(slices, inRow, from).find(isIt);
  return slice === undefined ? null : pickedOf(timeline, track, { row: inRow, slice }, originUs);
}

function startingAt(slices: Slices, row: number, start: number): number[] {
  const first = neighbour(slices, row, start - 0.5, 1);
  const found: number[] = [];
  for (let i = first ?? slices.count; i < slices.rowStart[row + 1]! && slices.start[i] === start; i++) found.push(i);
  return found;
}

// Why an answer doesn't have a slice: it has another time, its pixels are longer than the slice, or the slice is not there
// any more.
export function whyNot(timeline: Timeline, key: string): "elsewhere" | "short" | "gone" {
  const { from, to } = spanOfKey(key, timeline.from_us);
  if (to < 0 || from >= (timeline.to_us - timeline.from_us) * 1000) return "elsewhere";
  return to - from < timeline.resolution_ns ? "short" : "gone";
}
