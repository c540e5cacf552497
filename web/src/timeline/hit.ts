// SPDX-License-Identifier: Apache-2.0
import { laneAt, rowAt, SLICE_HEIGHT, type Lane } from "./layout";
import { busyOf, type Timeline } from "./model";
import { sliceAt, statesAt } from "./slices";

// A slice of the current answer.
export interface Hit {
  lane: number;
  row: number;
  slice: number;
}

// The slice at `y` below the first lane's top, px, and at a time of the answer, or not further from it than `near`, ns.
export function hitAt({ tracks }: Timeline, lanes: readonly Lane[], y: number, time: number, near: number): Hit | null {
  const at = laneAt(lanes, y);
  const lane = lanes[at];
  const row = lane ? rowAt(lane, y) : null;
  if (!lane || row === null) return null;
  const { kind, slices } = tracks[lane.track!]!;
  if (kind !== "states") {
    const slice = sliceAt(slices, row, time, near);
    return slice === null ? null : { lane: at, row, slice };
  }
  const states = statesAt(slices, time);
  if (!states) return null;
  // The states of an interval lie above each other.
  let height = (1 - (y - lane.top) / SLICE_HEIGHT) * (slices.end[states[0]]! - slices.start[states[0]]!);
  for (let i = states[0]; i < states[1]; i++) {
    height -= busyOf(slices, i);
    if (height <= 0) return { lane: at, row, slice: i };
  }
  return null;
}
