// SPDX-License-Identifier: Apache-2.0
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { ApiError } from "../api/client";
import type { Incident, Overview } from "../api/types";
import { DARK, LIGHT } from "../flamegraph/palette";
import { formatClock, formatCount, formatDuration, formatRangeUtc } from "../format";
import { useTimeline } from "../state/use-timeline";
import type { Navigation } from "../state/use-view";
import { OTHER_PROFILE, type Range, type View } from "../state/view";
import { TimelineChart, type Pointed, type Spot, type TimelinePicture } from "../timeline/chart";
import { coloursOf, legendOf } from "../timeline/colours";
import { describeLane } from "../timeline/describe";
import type { Hit } from "../timeline/hit";
import { layoutLanes, trackId, type Lane } from "../timeline/layout";
import type { Names, Timeline } from "../timeline/model";
import { findPicked, pickedOf, spanOfKey, whyNot, type Picked } from "../timeline/pick";
import { fitted, formatMoment, quantised, rangeOf, spanOf, type Quantised, type Span } from "../timeline/span";
import { Failed, Message } from "./states";
import { SliceLost, TimelineDetails, useWork } from "./timeline-details";
import { TimelineLabels } from "./timeline-labels";
import { SliceTooltip } from "./timeline-tooltip";

// What a live page shows at first.
const NEWEST_US = 10e6;
const NO_NAMES: Names = { name: [], shown: [], kind: [] };

interface Props {
  overview: Overview;
  // The time of all data now; the timeline doesn't follow it by itself.
  available: Range;
  incidents: Incident[];
  view: View;
  nav: Navigation;
  ofHost: Record<string, string>;
  retries: number;
  onRetry: () => void;
  isDark: boolean;
}

// Who did what when: the visible time is the page's time selection. Zooming and panning change the selection, and the
// selection, from wherever it comes, moves the timeline.
export function TimelinePage({ overview, available, incidents, view, nav, ofHost, retries, onRetry, isDark }: Props) {
  const [held, setHeld] = useState(available);
  const originUs = useRef(held.from).current;
  const { live } = overview;
  // A later brush extends what can be shown.
  const end = Math.max(held.to, Math.min(view.brush?.to ?? 0, available.to));
  const all = useMemo(() => ({ from: Math.min(held.from, originUs), to: end }), [held, end]);
  const bounds = useMemo(() => spanOf(all, originUs), [all]);
  const newest = live ? { from: Math.max(all.from, held.to - NEWEST_US), to: held.to } : all;
  const wanted = view.brush ?? newest;
  const span = useMemo(() => fitted(spanOf(wanted, originUs), bounds), [wanted.from, wanted.to, bounds]);

  const [sight, setSight] = useState<{ span: Span; width: number } | null>(null);
  const request = useMemo(() => sight && quantised(rangeOf(sight.span, originUs), sight.width, all), [sight, all]);
  const { data, error, loading, question, asked } = useTimeline(request, view, ofHost, `${retries}`);
  const lanes = useMemo(() => (data ? layoutLanes(data, view.closed) : { lanes: [], height: 0 }), [data, view.closed.join()]);
  const theme = isDark ? DARK : LIGHT;
  const names = data?.names ?? NO_NAMES;
  const colours = useMemo(() => coloursOf(names, theme), [names, theme]);
  const slow = useMemo(() => incidents.map((one) => ({ ...spanOf({ from: one.from_us, to: one.to_us ?? all.to }, originUs), text: one.sentence })), [incidents, all]);

  const picked = usePicked(data, view.slice, originUs);
  const found = useWork(picked, originUs, ofHost);
  const launch = useMemo(() => launchOf(picked, found.work), [picked, found.work]);
  const alarm = isDark ? "#ff6b63" : "#c4201d";
  const picture = useMemo<TimelinePicture>(
    () => ({ timeline: data, ...lanes, originUs, bounds, span, colours, theme, alarm, slow, picked, launch }),
    [data, lanes, bounds, span, colours, theme, slow, picked, launch],
  );

  const scroller = useRef<HTMLDivElement>(null);
  const spacer = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const ruler = useRef<HTMLCanvasElement>(null);
  const length = useRef<HTMLElement>(null);
  const base = useRef<HTMLDivElement>(null);
  const chart = useRef<TimelineChart | null>(null);
  const [hovered, setHovered] = useState<Pointed | null>(null);
  const [focused, setFocused] = useState<number | null>(null);

  const rest = (to: Span, step: boolean) => {
    const whole = !live && to.from <= bounds.from && to.to >= bounds.to;
    const change = { brush: whole ? null : rangeOf(to, originUs) };
    if (step) nav.step(change);
    else nav.adjust(change);
  };
  const pick = (hit: Hit, walked: boolean) => {
    const { key } = pickedOf(data!, lanes.lanes[hit.lane]!.track!, hit, originUs);
    // A link to it must lead to this time, not to what is newest then.
    if (walked) nav.adjust({ slice: key });
    else nav.step({ slice: key, ...(live && !view.brush && { brush: rangeOf(span, originUs) }) });
  };
  // The chart's handlers outlive a render, so they read the latest values here.
  const latest = useRef({ rest, pick, all });
  latest.current = { rest, pick, all };

  useEffect(() => {
    const elements = { scroller: scroller.current!, spacer: spacer.current!, canvas: canvas.current!, ruler: ruler.current! };
    chart.current = new TimelineChart(elements, {
      onSpan: (to, ticks, width) => {
        // Texts that change in every frame bypass the rendering.
        length.current!.textContent = formatDuration(to.to - to.from);
        base.current!.textContent = ticks.base === null ? formatMoment(to.from, originUs, 1e9) : `${formatMoment(ticks.base, originUs, (to.to - to.from) / 10)} +`;
        base.current!.title = formatRangeUtc(originUs + to.from / 1000, originUs + to.to / 1000);
        const asks = (one: Span) => quantised(rangeOf(one, originUs), width, latest.current.all);
        setSight((old) => (old && old.width === width && same(asks(old.span), asks(to)) ? old : { span: to, width }));
      },
      onRest: (to, step) => latest.current.rest(to, step),
      onHover: setHovered,
      onFocus: setFocused,
      onPick: (hit, walked) => latest.current.pick(hit, walked),
    });
    return () => chart.current!.destroy();
  }, []);
  useEffect(() => chart.current!.show(picture), [picture]);

  const close = () => nav.step({ slice: null });
  const timeOf = (one: Span): Range => rangeOf(fitted(one, bounds), originUs);
  const toProfile = (one: Picked) =>
    one.track.kind === "stream"
      ? nav.step({ page: "profile", source: null, type: "gpu", ...OTHER_PROFILE, pick: one.name })
      : nav.step({ page: "profile", source: null, ...OTHER_PROFILE, brush: timeOf(one) });

  const pointedLane = hovered && lanes.lanes[hovered.lane];
  const pointedTrack = data && pointedLane ? data.tracks[pointedLane.track ?? -1] : undefined;
  const lost = view.slice !== null && !picked && data && !loading && question === asked?.question ? whyNot(data, view.slice) : null;
  const failed = error !== null && !loading && question !== asked?.question;
  return (
    <main class="timeline">
      <div class="summary">
        <span class="figure">
          <strong ref={length} /> visible{" "}
          {data && <span class="dim">of {formatCount(data.events)} events read</span>}
        </span>
        <span class="toolbar" role="toolbar" aria-label="Timeline">
          <button type="button" class="plain" aria-label="Zoom in" title="Zoom in (+)" onClick={() => chart.current!.zoomBy(0.5)}>
            +
          </button>
          <button type="button" class="plain" aria-label="Zoom out" title="Zoom out (-)" onClick={() => chart.current!.zoomBy(2)}>
            −
          </button>
          {live && (
            <button
              type="button"
              class="plain"
              title="The newest 10 seconds. The timeline doesn’t move while you read it"
              onClick={() => {
                setHeld(available);
                nav.step({ brush: null });
              }}
            >
              Newest
            </button>
          )}
        </span>
        <Legend names={names} hatched={data?.tracks.some(({ unobserved }) => unobserved.length > 0) ?? false} isDark={isDark} />
      </div>
      <Partial timeline={data} view={view} />
      {failed && data && (
        <p class="lost" role="alert">
          {error.message} <span class="dim">What was read before is shown.</span>
        </p>
      )}
      <div class="timeline-chart">
        <div class="timeline-ruler">
          <div class="timeline-base figure" ref={base} />
          <canvas ref={ruler} />
        </div>
        {(loading || asked?.url !== question) && !failed && <div class="progress" role="progressbar" aria-label="Reading the timeline" />}
        <div
          class="timeline-scroller"
          ref={scroller}
          tabIndex={0}
          role="application"
          aria-label="Timeline. Left and right pan, plus and minus zoom, up and down choose a track, Enter and full stop show its slices."
          aria-describedby="timeline-spoken"
        >
          <div class="timeline-spacer" ref={spacer}>
            <TimelineLabels lanes={lanes.lanes} focused={focused} scroller={scroller} nav={nav} />
            <canvas ref={canvas} aria-hidden="true" />
          </div>
        </div>
        {failed && !data && <NotRead error={error} span={span} onShorter={(to) => nav.step({ brush: rangeOf(to, originUs) })} onRetry={onRetry} />}
        {data && data.tracks.length === 0 && <NothingThen overview={overview} />}
      </div>
      <div id="timeline-spoken" class="unseen" aria-live="polite">
        {focused !== null && data && lanes.lanes[focused] && describeLane(data, lanes.lanes[focused]!, inAnswer(data, span, originUs))}
      </div>
      {hovered && pointedTrack && data && hovered.slice < pointedTrack.slices.count && <SliceTooltip timeline={data} track={pointedTrack} pointed={hovered} />}
      {picked && (
        <TimelineDetails picked={picked} originUs={originUs} found={found} onSelect={() => nav.step({ brush: timeOf(picked) })} onProfile={() => toProfile(picked)} onClose={close} />
      )}
      {lost && <SliceLost why={lost} onGo={() => nav.step({ brush: timeOf(spanOfKey(view.slice!, originUs)) })} onClose={close} />}
      {data && <LaneTable timeline={data} lanes={lanes.lanes} span={inAnswer(data, span, originUs)} />}
    </main>
  );
}

// The slice in the address: from the answer that had it first, as later ones may sum it up with others.
function usePicked(timeline: Timeline | null, key: string | null, originUs: number): Picked | null {
  const held = useRef<Picked | null>(null);
  return useMemo(() => {
    if (key === null) return null;
    if (held.current?.key !== key) held.current = timeline && findPicked(timeline, key, originUs);
    return held.current;
  }, [timeline, key, originUs]);
}

function same(a: Quantised, b: Quantised): boolean {
  return a.from === b.from && a.to === b.to && a.columns === b.columns;
}

// A span in the time of an answer.
function inAnswer(timeline: Timeline, { from, to }: Span, originUs: number): Span {
  const offset = (timeline.from_us - originUs) * 1000;
  return { from: from - offset, to: to - offset };
}

// Where the launch of what is picked is drawn.
function launchOf(picked: Picked | null, work: ReturnType<typeof useWork>["work"]): Spot | null {
  if (!picked || !work?.launch) return null;
  const from = picked.from - work.launch.before_ns;
  return { lane: trackId({ kind: "calls", process: picked.track.process, tid: work.launch.tid }), row: 0, from, to: from + work.launch.duration_ns };
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
        <li title="The program wasn’t listened to in this time, to stay within its budget: what its streams did is not known">
          <span class="swatch hatched" />
          not listened to
        </li>
      )}
    </ul>
  );
}

// What is not shown, one line each.
function Partial({ timeline, view }: { timeline: Timeline | null; view: View }) {
  const lines: string[] = [];
  const omitted = timeline?.omitted_tracks ?? 0;
  if (omitted > 0) lines.push(`${formatCount(omitted)} quieter threads and streams are not shown; choose a process${view.processes.length === 1 ? " and a thread" : ""} to see them.`);
  if (view.filter) lines.push("The filter on stacks doesn’t apply to the timeline.");
  if (lines.length === 0) return null;
  return (
    <ul class="incomplete" aria-label="What is missing">
      {lines.map((line) => (
        <li key={line}>{line}</li>
      ))}
    </ul>
  );
}

// Nothing is there to be shown: too many events, or the server failed.
function NotRead({ error, span, onShorter, onRetry }: { error: ApiError; span: Span; onShorter: (span: Span) => void; onRetry: () => void }) {
  if (error.code !== "invalid_argument") {
    return (
      <div class="timeline-over">
        <Failed error={error} onRetry={onRetry} />
      </div>
    );
  }
  const middle = (span.from + span.to) / 2;
  const half = (span.to - span.from) / 20;
  return (
    <div class="timeline-over">
      <Message title="This time could not be read" kind="failed">
        <p>{error.message}</p>
        <p>
          <button type="button" class="plain" onClick={() => onShorter({ from: middle - half, to: middle + half })}>
            Show a tenth of it
          </button>
        </p>
        <p class="dim">Or drag over a strip above to choose a time.</p>
      </Message>
    </div>
  );
}

function NothingThen({ overview }: { overview: Overview }) {
  return (
    <div class="timeline-over">
      <Message title="No GPU work, calls or samples in this time" kind="empty">
        {overview.kernels === 0 ? (
          <>
            <p>To record a CUDA program with its kernels, its calls and the states of its threads:</p>
            <pre>gpusonde record -- COMMAND</pre>
          </>
        ) : (
          <p>The strips above show when there was some: drag over one to go there.</p>
        )}
      </Message>
    </div>
  );
}

const SPOKEN_LANES = 40;

// The tracks as a table for screen readers.
function LaneTable({ timeline, lanes, span }: { timeline: Timeline; lanes: readonly Lane[]; span: Span }) {
  const rows = useMemo(() => lanes.filter(({ track }) => track !== null).slice(0, SPOKEN_LANES), [lanes]);
  const from = formatClock(timeline.from_us + span.from / 1000);
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
