// SPDX-License-Identifier: Apache-2.0
import { useRef } from "preact/hooks";
import type { Selection } from "../api/types";
import { isSettled, timeSelection, windowOf, type Range } from "./view";

// A stretch of time to ask about.
export interface Span {
  time: Selection;
  // Stays the same while a live window moves.
  name: string;
  // Data of it is fetched again when this changes.
  revision: string;
}

// The time that a page shows, as it was at some moment.
export interface Times {
  // What the strips cover; null without data.
  window: Range | null;
  all: Span;
  // The brush, or all without one.
  selected: Span;
}

export interface Shown {
  brush: Range | null;
  // The seconds that the strips cover; null for all.
  last: number | null;
  available: Range | null;
}

// The times as they were when `tick` last changed. Data of them is fetched again when it changes, and for a retry; that
// of a brush that ended more than a minute ago only for a retry.
export function useTimes({ brush, last, available }: Shown, tick: string, retries: number): Times {
  const window = windowOf(last, useHeld(available, `${tick} ${available === null}`));
  const revision = `${tick} ${retries}`;
  // The whole time is left out of the query, so that the address stays the same while data arrives.
  const all = { time: last === null ? {} : timeSelection(window), name: `last ${last}`, revision };
  if (!brush) return { window, all, selected: all };
  const selected = {
    time: timeSelection(brush),
    name: `${brush.from} to ${brush.to}`,
    revision: isSettled(brush, available) ? `settled ${retries}` : revision,
  };
  return { window, all, selected };
}

// The value as it was when the key last changed.
function useHeld<T>(value: T, key: string): T {
  const held = useRef({ key, value });
  if (held.current.key !== key) held.current = { key, value };
  return held.current.value;
}
