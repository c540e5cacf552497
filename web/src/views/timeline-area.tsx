// SPDX-License-Identifier: Apache-2.0
import type { ComponentChildren } from "preact";
import { useMemo } from "preact/hooks";
import { formatTime } from "../format";
import type { TimelineRefs } from "../state/use-timeline-chart";
import type { Navigation } from "../state/use-view";
import { describeLane } from "../timeline/describe";
import type { Lane } from "../timeline/layout";
import type { Timeline } from "../timeline/model";
import type { Span } from "../timeline/span";
import { TimelineLabels } from "./timeline-labels";

interface Props {
  refs: TimelineRefs;
  lanes: readonly Lane[];
  focused: number | null;
  // An answer is on its way.
  reading: boolean;
  nav: Navigation;
  // Over the lanes: why there are none.
  children: ComponentChildren;
}

// The ruler, the labels and the canvas.
export function TimelineArea({ refs: { scroller, spacer, canvas, ruler, base }, lanes, focused, reading, nav, children }: Props) {
  return (
    <div class="timeline-chart">
      <div class="timeline-ruler">
        <div class="timeline-base figure" ref={base} />
        <canvas ref={ruler} />
      </div>
      {reading && <div class="progress" role="progressbar" aria-label="Reading the timeline" />}
      <div
        class="timeline-scroller"
        ref={scroller}
        tabIndex={0}
        role="application"
        aria-label="Timeline. Left and right pan, plus and minus zoom, up and down choose a track, Enter and full stop show its slices."
        aria-describedby="timeline-spoken"
      >
        <div class="timeline-spacer" ref={spacer}>
          <TimelineLabels lanes={lanes} focused={focused} scroller={scroller} nav={nav} />
          <canvas ref={canvas} aria-hidden="true" />
        </div>
      </div>
      {children}
    </div>
  );
}

const SPOKEN_LANES = 40;

// The tracks as a table for screen readers.
export function LaneTable({ timeline, lanes, span }: { timeline: Timeline; lanes: readonly Lane[]; span: Span }) {
  const rows = useMemo(() => lanes.filter(({ track }) => track !== null).slice(0, SPOKEN_LANES), [lanes]);
  const from = formatTime(timeline.from_us + span.from / 1000);
  return (
    <table class="unseen">
      <caption>Tracks from {from} on</caption>
      <tbody>
        {rows.map((lane) => (
          <tr key={lane.id}>
            <td>{describeLane(timeline, lane, span)}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}
