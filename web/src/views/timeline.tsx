// SPDX-License-Identifier: Apache-2.0
import { useMemo, useRef, useState } from "preact/hooks";
import type { Incident, Overview } from "../api/types";
import { DARK, LIGHT } from "../flamegraph/palette";
import { unbroken, withLocalClock } from "../format";
import { useTimeline } from "../state/use-timeline";
import { useTimelineChart } from "../state/use-timeline-chart";
import { useTimelineTime } from "../state/use-timeline-time";
import type { Navigation } from "../state/use-view";
import { OTHER_PROFILE, type Range, type View } from "../state/view";
import type { Spot, TimelinePicture } from "../timeline/chart";
import { coloursOf } from "../timeline/colours";
import { describeLane } from "../timeline/describe";
import { layoutLanes, trackId } from "../timeline/layout";
import { NO_NAMES, type Timeline } from "../timeline/model";
import { findPicked, pickedOf, spanOfKey, whyNot, type Picked } from "../timeline/pick";
import { fitted, quantised, rangeOf, spanOf, type Quantised, type Span } from "../timeline/span";
import { LaneTable, TimelineArea } from "./timeline-area";
import { SliceLost, TimelineDetails, useWork } from "./timeline-details";
import { LeftOut, NothingThen, NotRead } from "./timeline-states";
import { TimelineSummary } from "./timeline-summary";
import { SliceTooltip } from "./timeline-tooltip";

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
  // Failures that the page says above.
  said: string[];
  isDark: boolean;
}

// Who did what when: the visible time is the page's time selection. Zooming and panning change the selection, and the
// selection, from wherever it comes, moves the timeline.
export function TimelinePage(props: Props) {
  const { overview, available, view, nav, ofHost, onRetry, isDark } = props;
  const time = useTimelineTime(available, view.brush, overview.live);
  const { originUs, all, bounds } = time;
  const [sight, setSight] = useState<Sight | null>(null);
  const request = useMemo(() => sight && quantisedOf(sight, all, originUs), [sight, all]);
  const answer = useTimeline(request, view, ofHost, `${props.retries}`);
  const { data, error } = answer;
  const picked = usePicked(data, view.slice, originUs);
  const found = useWork(picked, originUs, ofHost);
  const picture = usePicture(data, time, picked, found.work, props);
  const { lanes, span } = picture;

  const { refs, zoomBy, hovered, focused } = useTimelineChart(picture, {
    onSight: (to, width) => setSight((old) => sameQuestion(old, { span: to, width }, all, originUs)),
    onRest: (to, step) => {
      const whole = !overview.live && to.from <= bounds.from && to.to >= bounds.to;
      const change = { brush: whole ? null : rangeOf(to, originUs) };
      if (step) nav.step(change);
      else nav.adjust(change);
    },
    onPick: (hit, walked) => {
      const { key } = pickedOf(data!, lanes[hit.lane]!.track!, hit, originUs);
      // A link to it must lead to this time, not to what is newest then.
      if (walked) nav.adjust({ slice: key });
      else nav.step({ slice: key, ...(overview.live && !view.brush && { brush: rangeOf(span, originUs) }) });
    },
  });

  const toNewest = () => {
    time.catchUp();
    nav.step({ brush: null });
  };
  const select = (one: Span) => nav.step({ brush: rangeOf(fitted(one, bounds), originUs) });
  const close = () => nav.step({ slice: null });
  const isAnswer = !answer.loading && answer.question === answer.asked?.question;
  const lost = view.slice !== null && !picked && data && isAnswer ? whyNot(data, view.slice) : null;
  const failed = error !== null && !answer.loading && !isAnswer;
  const pointed = hovered && data?.tracks[lanes[hovered.lane]?.track ?? -1];
  const inAnswer = data && spanInAnswer(data, span, originUs);
  return (
    <main class="timeline">
      <TimelineSummary timeline={data} length={refs.length} onZoom={zoomBy} onNewest={overview.live ? toNewest : null} isDark={isDark} />
      <LeftOut timeline={data} view={view} />
      {failed && data && !props.said.includes(error.message) && (
        <p class="lost" role="alert">
          {error.message} <span class="dim">Older data is shown.</span>
        </p>
      )}
      <TimelineArea refs={refs} lanes={lanes} focused={focused} reading={!failed && !isAnswer} nav={nav}>
        {failed && !data && <NotRead error={error} span={span} onShorter={(to) => nav.step({ brush: rangeOf(to, originUs) })} onRetry={onRetry} />}
        {data && data.tracks.length === 0 && <NothingThen overview={overview} />}
      </TimelineArea>
      <div id="timeline-spoken" class="unseen" aria-live="polite">
        {focused !== null && data && lanes[focused] && describeLane(data, lanes[focused], inAnswer!)}
      </div>
      {pointed && hovered.slice < pointed.slices.count && <SliceTooltip timeline={data!} track={pointed} pointed={hovered} />}
      {picked && (
        <TimelineDetails
          picked={picked}
          originUs={originUs}
          found={found}
          onSelect={() => select(picked)}
          onProfile={() => nav.step(profileOf(picked, rangeOf(fitted(picked, bounds), originUs)))}
          onClose={close}
        />
      )}
      {lost && <SliceLost why={lost} onGo={() => select(spanOfKey(view.slice!, originUs))} onClose={close} />}
      {data && <LaneTable timeline={data} lanes={lanes} span={inAnswer!} />}
    </main>
  );
}

// What the chart shows, and how wide it is, px.
interface Sight {
  span: Span;
  width: number;
}

function quantisedOf({ span, width }: Sight, all: Range, originUs: number): Quantised {
  return quantised(rangeOf(span, originUs), width, all);
}

// The new sight, or the old one if what has been read for it is enough.
function sameQuestion(old: Sight | null, now: Sight, all: Range, originUs: number): Sight {
  if (!old || old.width !== now.width) return now;
  const [a, b] = [quantisedOf(old, all, originUs), quantisedOf(now, all, originUs)];
  return a.from === b.from && a.to === b.to && a.columns === b.columns ? old : now;
}

const NO_LANES = { lanes: [], height: 0 };

// What the chart draws. Each step is memoised by its inputs.
function usePicture(
  data: Timeline | null,
  { originUs, all, bounds, span }: ReturnType<typeof useTimelineTime>,
  picked: Picked | null,
  work: ReturnType<typeof useWork>["work"],
  { incidents, view, isDark }: Props,
): TimelinePicture {
  const lanes = useMemo(() => (data ? layoutLanes(data, view.closed) : NO_LANES), [data, view.closed.join()]);
  const theme = isDark ? DARK : LIGHT;
  const names = data?.names ?? NO_NAMES;
  const colours = useMemo(() => coloursOf(names, theme), [names, theme]);
  const slow = useMemo(
    () => incidents.map((one) => ({ ...spanOf({ from: one.from_us, to: one.to_us ?? all.to }, originUs), text: unbroken(withLocalClock(one.sentence, one.from_us)) })),
    [incidents, all],
  );
  const launch = useMemo(() => launchOf(picked, work), [picked, work]);
  const alarm = isDark ? "#ff6b63" : "#c4201d";
  return useMemo(
    () => ({ timeline: data, ...lanes, originUs, bounds, span, colours, theme, alarm, slow, picked, launch }),
    [data, lanes, bounds, span, colours, theme, slow, picked, launch],
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

// A span in the time of an answer.
function spanInAnswer(timeline: Timeline, { from, to }: Span, originUs: number): Span {
  const offset = (timeline.from_us - originUs) * 1000;
  return { from: from - offset, to: to - offset };
}

// The profile of what is picked: of GPU work all of its name in the selection, else its time.
function profileOf({ track, name }: Picked, time: Range): Partial<View> {
  const profile = { page: "profile", source: null, ...OTHER_PROFILE } as const;
  return track.kind === "stream" ? { ...profile, type: "gpu", pick: name } : { ...profile, brush: time };
}

// Where the launch of what is picked is drawn.
function launchOf(picked: Picked | null, work: ReturnType<typeof useWork>["work"]): Spot | null {
  if (!picked || !work?.launch) return null;
  const from = picked.from - work.launch.before_ns;
  const lane = trackId({ kind: "calls", process: picked.track.process, tid: work.launch.tid });
  return { lane, row: 0, from, to: from + work.launch.duration_ns };
}
