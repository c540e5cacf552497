// SPDX-License-Identifier: Apache-2.0
import { printable } from "../printable";
import type { Timeline, Track } from "./model";

// A line of the timeline: a group's heading, or a track. A thread's heading is its first track.
export interface Lane {
  // The same in every answer.
  id: string;
  // Of a heading: what the address names it by when it is closed.
  key: string;
  heading: boolean;
  // Index into the tracks; null for the heading of a device or process.
  track: number | null;
  label: string;
  // What the track has, or the device's name.
  detail: string;
  // Of a process its command line, which the heading has room for.
  note: string;
  depth: number;
  // Null if there is nothing to close.
  closed: boolean | null;
  simulated: boolean;
  top: number;
  height: number;
  // Rows of slices; of a closed thread's ranges only the first.
  rows: number;
}

export const SLICE_HEIGHT = 18;
export const HEADING_HEIGHT = 23;
const LANE_GAP = 4;

export const DETAILS: Record<Track["kind"], string> = {
  stream: "", steps: "steps", states: "states", samples: "on CPU", ranges: "ranges", calls: "calls",
};

// Names a track in every answer.
export function trackId({ kind, process, device, stream, tid }: Pick<Track, "kind" | "process" | "device" | "stream" | "tid">): string {
  return [kind, process, device, stream, tid].join(" ");
}

// Traces of PyTorch repeat the id in the name.
export function threadLabel({ thread, tid = 0 }: Pick<Track, "thread" | "tid">): string {
  return printable(thread?.includes(String(tid)) ? thread : `${thread || "thread"} ${tid}`);
}

// Lanes from the top, and their height together, px. `closed` holds keys.
export function layoutLanes(timeline: Timeline, closed: readonly string[]): { lanes: Lane[]; height: number } {
  const lanes: Lane[] = [];
  const isClosed = new Set(closed);
  const { tracks } = timeline;
  const add = ({ note = "", ...lane }: Omit<Lane, "id" | "top" | "height" | "note"> & { note?: string }) => {
    const last = lanes.at(-1);
    const top = last ? last.top + last.height : 0;
    const id = lane.track === null ? `${group} heading` : trackId(tracks[lane.track]!);
    lanes.push({ ...lane, note, id, top, height: lane.track === null ? HEADING_HEIGHT : lane.rows * SLICE_HEIGHT + LANE_GAP });
  };
  const heading = (key: string, label: string, detail: string, { simulated = false, note = "" }) =>
    add({ key, heading: true, track: null, label, detail, note, depth: 0, closed: isClosed.has(key), simulated, rows: 0 });
  const names = new Map(timeline.processes.map((one) => [one.process, one]));
  const nameOf = (process: string) => printable(names.get(process)?.name || "process");
  let group = "";
  let thread = "";
  tracks.forEach((track, i) => {
    if (track.kind === "stream") {
      const key = track.device ?? "";
      if (group !== `device ${key}`) {
        group = `device ${key}`;
        const device = timeline.devices.find((one) => one.device === key);
        heading(key, printable(device?.label ?? "GPU"), printable(device?.name ?? ""), { simulated: device?.simulated });
      }
      if (isClosed.has(key)) return;
      const label = track.stream === undefined ? "no work" : `stream ${track.stream}`;
      add({ key: "", heading: false, track: i, label, detail: nameOf(track.process), depth: 1, closed: null, simulated: false, rows: track.rows });
      return;
    }
    if (group !== `process ${track.process}`) {
      group = `process ${track.process}`;
      thread = "";
      const owner = names.get(track.process);
      heading(track.process, nameOf(track.process), `pid ${owner?.pid ?? "unknown"}`, { note: printable(owner?.command ?? "") });
    }
    if (isClosed.has(track.process)) return;
    if (track.kind === "steps") {
      const detail = track.tid === undefined ? "" : threadLabel(track);
      add({ key: "", heading: false, track: i, label: "steps", detail, depth: 1, closed: null, simulated: false, rows: track.rows });
      return;
    }
    const detail = DETAILS[track.kind];
    const key = `${track.process}.${track.tid ?? 0}`;
    const first = thread !== key;
    thread = key;
    if (!first && isClosed.has(key)) return;
    const label = first ? threadLabel(track) : "";
    const next = tracks[i + 1];
    const alone = !(next?.process === track.process && next.tid === track.tid) && track.rows === 1;
    add({
      key: first ? key : "", heading: first, track: i, label, detail, depth: first ? 1 : 2,
      closed: first && !alone ? isClosed.has(key) : null, simulated: false, rows: isClosed.has(key) ? 1 : track.rows,
    });
  });
  const last = lanes.at(-1);
  return { lanes, height: last ? last.top + last.height : 0 };
}

// The index of the lane at a y; -1 below the last.
export function laneAt(lanes: readonly Lane[], y: number): number {
  let low = 0;
  let high = lanes.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (lanes[middle]!.top + lanes[middle]!.height > y) high = middle;
    else low = middle + 1;
  }
  return low < lanes.length && y >= 0 ? low : -1;
}

// The row of a lane at a y; null in a heading and in the gap below the rows.
export function rowAt(lane: Lane, y: number): number | null {
  const row = Math.floor((y - lane.top) / SLICE_HEIGHT);
  return lane.track !== null && row >= 0 && row < lane.rows ? row : null;
}
