// SPDX-License-Identifier: Apache-2.0
import { ApiError } from "../api/client";
import type { SlicesJson, TimelineJson, TrackJson } from "../api/types";
import { shownNames } from "../flamegraph/names";
import { gapsOf, type Span } from "./span";

// The slices of a track as columns, sorted by row, then start. Times are ns since the answer's beginning.
export interface Slices {
  count: number;
  start: Float64Array;
  end: Float64Array;
  name: Uint32Array;
  // Null where every slice stands for one event that ran all the time.
  events: Float64Array | null;
  busy: Float64Array | null;
  // The slices of row r are those from rowStart[r] to rowStart[r + 1].
  rowStart: Uint32Array;
  // The latest end of a row's slices so far: never decreases within a row, so that it can be searched.
  reach: Float64Array;
}

export interface Track extends Omit<TrackJson, "slices"> {
  slices: Slices;
  // When the process wasn't profiled: of a stream, time that isn't known to be idle; of steps, time in which there may have
  // been some. Ns since the answer's beginning.
  unobserved: Span[];
}

export interface Names {
  // As recorded, and as shown where there is little room.
  name: string[];
  shown: string[];
  kind: string[];
}

export const NO_NAMES: Names = { name: [], shown: [], kind: [] };

export interface Timeline extends Omit<TimelineJson, "names" | "tracks" | "gpu_users"> {
  names: Names;
  tracks: Track[];
}

// States of a thread, as they are stacked from the bottom: what it does first, then what it waits for.
export const STATES = ["state_running", "state_run_queue", "state_blocked_io", "state_blocked", "state_stopped", "state_waiting", "state_sleeping"];

const MAX_ROWS = 1000;

// Throws ApiError for an answer that violates docs/api.md.
export function parseTimeline({ names, tracks, gpu_users, ...rest }: TimelineJson): Timeline {
  const name = names.map(nameOf);
  const kind = names.map((one) => one.kind);
  const ranks = Uint8Array.from(kind, (one) => Math.max(0, STATES.indexOf(one)));
  const length = (rest.to_us - rest.from_us) * 1000;
  const gaps = new Map(gpu_users.map(({ process, device, observed }) => [`${device} ${process}`, gapsOf(observed, length)]));
  // Steps are found in the work on all devices of their process.
  const stepGaps = (process: string) => {
    const users = gpu_users.filter((user) => user.process === process);
    const observed = users.flatMap((user) => user.observed.start.map((start, i) => ({ start, length: user.observed.length[i]! })));
    observed.sort((a, b) => a.start - b.start);
    const columns = { start: observed.map((one) => one.start), length: observed.map((one) => one.length) };
    return users.length > 0 ? gapsOf(columns, length) : [];
  };
  return {
    ...rest,
    names: { name, kind, shown: shownNames(name, kind.map((one) => (one === "kernel" ? "gpu" : one))) },
    tracks: withIdleUsers(tracks, gpu_users, rest.devices).map((track, i) => ({
      ...track,
      slices: parseSlices(track, i, names.length, ranks),
      unobserved: track.kind === "steps" ? stepGaps(track.process) : ((track.kind === "stream" && gaps.get(`${track.device} ${track.process}`)) || []),
    })),
  };
}

// Who used a device but ran nothing in this time has a track without slices and without a stream.
function withIdleUsers(tracks: TrackJson[], users: TimelineJson["gpu_users"], devices: TimelineJson["devices"]): TrackJson[] {
  const isOf = (track: TrackJson, device: string, process: string) => track.kind === "stream" && track.device === device && track.process === process;
  const idle = users.filter(({ device, process }) => !tracks.some((track) => isOf(track, device, process)));
  if (idle.length === 0) return tracks;
  const streams = [
    ...tracks.filter(({ kind }) => kind === "stream"),
    ...idle.map(({ device, process }): TrackJson => ({ kind: "stream", device, process, rows: 1, slices: { start: [], length: [], name: [] } })),
  ];
  const place = new Map(devices.map(({ device }, i) => [device, i]));
  streams.sort((a, b) => place.get(a.device!)! - place.get(b.device!)!);
  return [...streams, ...tracks.filter(({ kind }) => kind !== "stream")];
}

// Copies and sets as the flame graph names them. What has no name is still something to point at.
function nameOf({ name, kind }: TimelineJson["names"][number]): string {
  if (name === "" && kind !== "memcpy" && kind !== "memset") return "(without a name)";
  return (kind === "memcpy" || kind === "memset") && !name.startsWith("[") ? `[${name.startsWith(kind) ? name : `${kind} ${name}`.trim()}]` : name;
}

function parseSlices(track: TrackJson, index: number, names: number, ranks: Uint8Array): Slices {
  const fail = (what: string) => {
    throw new ApiError("malformed", `The timeline's track ${index} ${what}.`);
  };
  if (!(track.rows >= 1 && track.rows <= MAX_ROWS)) fail(`has ${track.rows} rows`);
  const json = track.kind === "states" ? stacked(track.slices, ranks) : track.slices;
  const { length } = json.start;
  const columns = [json.length, json.name, json.row, json.count, json.busy];
  if (columns.some((column) => column !== undefined && column.length !== length)) fail("has columns of different lengths");
  const start = Float64Array.from(json.start);
  const end = new Float64Array(length);
  const reach = new Float64Array(length);
  const rowStart = new Uint32Array(track.rows + 1).fill(length);
  let row = -1;
  for (let i = 0; i < length; i++) {
    end[i] = start[i]! + json.length[i]!;
    const at = json.row?.[i] ?? 0;
    if (!(at >= row && at < track.rows) || !(end[i]! >= start[i]!) || !(json.name[i]! < names)) fail(`has an invalid slice ${i}`);
    if (at > row) {
      while (row < at) rowStart[++row] = i;
      reach[i] = end[i]!;
    } else {
      if (start[i]! < start[i - 1]!) fail(`is not sorted at slice ${i}`);
      reach[i] = Math.max(reach[i - 1]!, end[i]!);
    }
  }
  const optional = (column: number[] | undefined) => (column === undefined ? null : Float64Array.from(column));
  return { count: length, start, end, name: Uint32Array.from(json.name), events: optional(json.count), busy: optional(json.busy), rowStart, reach };
}

// All columns' memory, to hand it to another thread without a copy.
export function buffersOf({ tracks }: Timeline): ArrayBuffer[] {
  const columns = tracks.flatMap(({ slices: { start, end, name, events, busy, rowStart, reach } }) => [start, end, name, events, busy, rowStart, reach]);
  return columns.flatMap((column) => (column ? [column.buffer as ArrayBuffer] : []));
}

// The states of each interval in the order in which they are drawn.
function stacked(json: SlicesJson, ranks: Uint8Array): SlicesJson {
  const order = json.start.map((_, i) => i);
  order.sort((a, b) => json.start[a]! - json.start[b]! || ranks[json.name[a]!]! - ranks[json.name[b]!]!);
  const ordered = (column: number[]) => order.map((i) => column[i]!);
  return {
    start: ordered(json.start),
    length: ordered(json.length),
    name: ordered(json.name),
    ...(json.busy && { busy: ordered(json.busy) }),
  };
}

export function busyOf({ start, end, busy }: Slices, i: number): number {
  return busy ? busy[i]! : end[i]! - start[i]!;
}

export function eventsOf({ events }: Slices, i: number): number {
  return events ? events[i]! : 1;
}
