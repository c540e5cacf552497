// SPDX-License-Identifier: Apache-2.0
import type { RefObject } from "preact";
import { useEffect, useState } from "preact/hooks";
import type { Navigation } from "../state/use-view";
import type { Lane } from "../timeline/layout";
import { laneAt } from "../timeline/layout";
import { Simulated } from "./simulated";

// Labels are in the document a little beyond the visible part; a new set every so many pixels of scrolling.
const STEP_PX = 256;

interface Props {
  lanes: readonly Lane[];
  // The lane that the keyboard walks.
  focused: number | null;
  scroller: RefObject<HTMLDivElement>;
  nav: Navigation;
}

// The column of labels beside the canvas. Those of devices, processes and threads close and open what is below them.
export function TimelineLabels({ lanes, focused, scroller, nav }: Props) {
  const [sight, setSight] = useState({ top: 0, bottom: 1000 });
  useEffect(() => {
    const box = scroller.current!;
    const measure = () => {
      const top = Math.floor(box.scrollTop / STEP_PX) * STEP_PX;
      const bottom = top + Math.ceil(box.clientHeight / STEP_PX + 1) * STEP_PX;
      setSight((old) => (old.top === top && old.bottom === bottom ? old : { top, bottom }));
    };
    const resizes = new ResizeObserver(measure);
    resizes.observe(box);
    box.addEventListener("scroll", measure, { passive: true });
    return () => {
      resizes.disconnect();
      box.removeEventListener("scroll", measure);
    };
  }, []);

  const first = Math.max(0, laneAt(lanes, sight.top));
  const last = laneAt(lanes, sight.bottom);
  const toggle = (key: string) => nav.adjust((now) => ({ closed: now.closed.includes(key) ? now.closed.filter((other) => other !== key) : [...now.closed, key] }));
  return (
    <div class="timeline-labels">
      {lanes.slice(first, last < 0 ? lanes.length : last + 1).map((lane, i) => (
        <div key={lane.id} class={`lane depth-${lane.depth} ${lane.track === null ? "heading" : ""} ${first + i === focused ? "focused" : ""}`} style={{ top: `${lane.top}px`, height: `${lane.height}px` }}>
          <LaneLabel lane={lane} onToggle={() => toggle(lane.key)} />
        </div>
      ))}
    </div>
  );
}

function LaneLabel({ lane, onToggle }: { lane: Lane; onToggle: () => void }) {
  const title = `${lane.label} ${lane.detail}`.trim();
  const text = (
    <>
      {lane.label && <span class="lane-name">{lane.label}</span>}
      <span class="lane-detail">{lane.detail}</span>
      {lane.simulated && <Simulated />}
    </>
  );
  if (lane.closed === null) {
    return (
      <span class="lane-text" title={title}>
        {text}
      </span>
    );
  }
  return (
    <button type="button" class="lane-text" aria-expanded={!lane.closed} title={`${title}\nClick to ${lane.closed ? "show" : "hide"} its tracks`} onClick={onToggle}>
      {text}
    </button>
  );
}
