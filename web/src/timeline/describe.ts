// SPDX-License-Identifier: Apache-2.0
import { formatCount, formatDuration, formatShare } from "../format";
import { printable } from "../printable";
import { kindOf, STATE_KINDS } from "./colours";
import { DETAILS, threadLabel, type Lane } from "./layout";
import { busyOf, eventsOf, type Timeline, type Track } from "./model";
import { endOfStates, sumOf } from "./slices";
import type { Span } from "./span";

// What a sum of events stands for, by its track.
const MANY: Record<Track["kind"], string> = {
  stream: "kernels and copies", steps: "steps", states: "states", samples: "sampled functions", ranges: "ranges", calls: "calls",
};

export interface Description {
  // The name in full, or a sentence about a sum.
  title: string;
  // What one event is; empty of a state and of a sum.
  kind: string;
  where: string;
  // ns
  length: number;
  // Time within `length`, with labels; of a state all states of that time.
  parts: { label: string; ns: number }[];
  // Of a sum: what had the most time.
  most: string;
}

export function describeSlice(timeline: Timeline, track: Track, slice: number): Description {
  const { slices } = track;
  const { names } = timeline;
  const name = names.name[slices.name[slice]!]!;
  const kind = names.kind[slices.name[slice]!]!;
  const where = placeOf(timeline, track);
  const length = slices.end[slice]! - slices.start[slice]!;
  if (track.kind === "states") {
    const stateOf = (i: number) => STATE_KINDS[names.kind[slices.name[i]!]!]?.label ?? printable(names.name[slices.name[i]!]!);
    let first = slice;
    while (first > 0 && slices.start[first - 1] === slices.start[slice]) first--;
    const parts = Array.from({ length: endOfStates(slices, first) - first }, (_, i) => ({ label: stateOf(first + i), ns: busyOf(slices, first + i) }));
    return { title: stateOf(slice), kind: "", where, length, parts, most: "" };
  }
  const events = eventsOf(slices, slice);
  if (events === 1) return { title: printable(name), kind: kindOf(name, kind).one, where, length, parts: [], most: "" };
  const title = `${formatCount(events)} ${MANY[track.kind]} in ${formatDuration(length)}, ${formatShare(busyOf(slices, slice), length)} of it busy`;
  return { title, kind: "", where, length, parts: [], most: printable(name) };
}

// "GPU 0, stream 7, train.py", or "loader-0 431, train.py".
export function placeOf({ devices, processes }: Pick<Timeline, "devices" | "processes">, track: Pick<Track, "device" | "stream" | "process" | "tid" | "thread">): string {
  const process = printable(processes.find((one) => one.process === track.process)?.name ?? "");
  const device = printable(devices.find((one) => one.device === track.device)?.label ?? "");
  return [device, track.stream !== undefined && `stream ${track.stream}`, track.tid !== undefined && threadLabel(track), process].filter(Boolean).join(", ");
}

// A lane in a sentence, for screen readers; the span is in the answer's time.
export function describeLane(timeline: Timeline, lane: Lane, { from, to }: Span): string {
  if (lane.track === null) return `${lane.label} ${lane.detail}`;
  const track = timeline.tracks[lane.track]!;
  const { events, busy, most } = sumOf(track.slices, from, to);
  const head = `${DETAILS[track.kind] || MANY[track.kind]} of ${placeOf(timeline, track)}`;
  if (events === 0) return `${head}: nothing in the visible time`;
  const share = `${formatShare(busy, to - from)} of the visible time`;
  return `${head}: ${track.kind === "states" ? "" : `${formatCount(events)} ${MANY[track.kind]}, `}${share}${most === null ? "" : `, most ${timeline.names.shown[most]}`}`;
}
