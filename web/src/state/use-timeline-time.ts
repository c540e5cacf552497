// SPDX-License-Identifier: Apache-2.0
import { useMemo, useRef, useState } from "preact/hooks";
import { fitted, spanOf } from "../timeline/span";
import type { Range } from "./view";

// What a live page shows at first.
const NEWEST_US = 10e6;

// What the timeline can show and what the address selects: the brush, else all time or, of a live page, the newest. A
// live timeline doesn't follow new data by itself.
export function useTimelineTime(available: Range, brush: Range | null, live: boolean) {
  const [held, setHeld] = useState(available);
  const originUs = useRef(held.from).current;
  // A later brush extends what can be shown.
  const end = Math.max(held.to, Math.min(brush?.to ?? 0, available.to));
  const all = useMemo(() => ({ from: Math.min(held.from, originUs), to: end }), [held, end]);
  const bounds = useMemo(() => spanOf(all, originUs), [all]);
  const newest = live ? { from: Math.max(all.from, held.to - NEWEST_US), to: held.to } : all;
  const wanted = brush ?? newest;
  const span = useMemo(() => fitted(spanOf(wanted, originUs), bounds), [wanted.from, wanted.to, bounds]);
  return { originUs, all, bounds, span, catchUp: () => setHeld(available) };
}
