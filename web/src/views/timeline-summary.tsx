// SPDX-License-Identifier: Apache-2.0
import type { RefObject } from "preact";
import { useMemo } from "preact/hooks";
import { DARK, LIGHT } from "../flamegraph/palette";
import { formatCount } from "../format";
import { legendOf } from "../timeline/colours";
import { NO_NAMES, type Names, type Timeline } from "../timeline/model";

interface Props {
  timeline: Timeline | null;
  // Where the chart writes how much is visible.
  length: RefObject<HTMLElement>;
  onZoom: (factor: number) => void;
  // Null if nothing new arrives.
  onNewest: (() => void) | null;
  isDark: boolean;
}

// The line above the chart: how much is visible, what moves it, and what the colours mean.
export function TimelineSummary({ timeline, length, onZoom, onNewest, isDark }: Props) {
  const hatched = timeline?.tracks.some(({ unobserved }) => unobserved.length > 0) ?? false;
  return (
    <div class="summary">
      <span class="figure">
        <strong ref={length} /> visible{" "}
        {timeline && <span class="dim">of {formatCount(timeline.events)} events read</span>}
      </span>
      <span class="toolbar" role="toolbar" aria-label="Timeline">
        <button type="button" class="plain" aria-label="Zoom in" title="Zoom in (+)" onClick={() => onZoom(0.5)}>
          +
        </button>
        <button type="button" class="plain" aria-label="Zoom out" title="Zoom out (-)" onClick={() => onZoom(2)}>
          −
        </button>
        {onNewest && (
          <button type="button" class="plain" title="The newest 10 seconds. The timeline doesn’t move while you read it" onClick={onNewest}>
            Newest
          </button>
        )}
      </span>
      <Legend names={timeline?.names ?? NO_NAMES} hatched={hatched} isDark={isDark} />
    </div>
  );
}

function Legend({ names, hatched, isDark }: { names: Names; hatched: boolean; isDark: boolean }) {
  const entries = useMemo(() => legendOf(names, isDark ? DARK : LIGHT), [names, isDark]);
  return (
    <ul class="timeline-legend" aria-label="Colours">
      {entries.map(({ label, colours }) => (
        <li key={label}>
          {colours.map((colour) => (
            <span key={colour} class="swatch" style={{ background: colour }} />
          ))}
          {label}
        </li>
      ))}
      {hatched && (
        <li title="What the streams did here is not known: the program was not profiled, or its profiling was paused to stay within --overhead">
          <span class="swatch hatched" />
          not observed
        </li>
      )}
    </ul>
  );
}
