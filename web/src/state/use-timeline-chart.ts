// SPDX-License-Identifier: Apache-2.0
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { formatDuration, formatRangeUtc } from "../format";
import { TimelineChart, type Pointed, type TimelinePicture } from "../timeline/chart";
import type { Hit } from "../timeline/hit";
import { formatMoment, type Span } from "../timeline/span";

export interface Handlers {
  // In every frame in which the visible span or the width, px, changes.
  onSight(span: Span, width: number): void;
  onRest(span: Span, step: boolean): void;
  onPick(hit: Hit, walked: boolean): void;
}

// Where the chart is and writes.
export type TimelineRefs = ReturnType<typeof useTimelineChart>["refs"];

// A chart that shows the picture in the elements of the refs. The visible span's length and what the ruler counts from
// change in every frame: they bypass the rendering.
export function useTimelineChart(picture: TimelinePicture, handlers: Handlers) {
  const scroller = useRef<HTMLDivElement>(null);
  const spacer = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const ruler = useRef<HTMLCanvasElement>(null);
  const length = useRef<HTMLElement>(null);
  const base = useRef<HTMLDivElement>(null);
  const chart = useRef<TimelineChart | null>(null);
  const [hovered, setHovered] = useState<Pointed | null>(null);
  const [focused, setFocused] = useState<number | null>(null);
  const { originUs } = picture;
  // The chart outlives a render, so it reads the latest handlers here.
  const latest = useRef(handlers);
  latest.current = handlers;

  useLayoutEffect(() => {
    const elements = { scroller: scroller.current!, spacer: spacer.current!, canvas: canvas.current!, ruler: ruler.current! };
    chart.current = new TimelineChart(elements, {
      onSpan: (span, ticks, width) => {
        const { from, to } = span;
        length.current!.textContent = formatDuration(to - from);
        const origin = ticks.base === null ? formatMoment(from, originUs, 1e9) : `${formatMoment(ticks.base, originUs, (to - from) / 10)} +`;
        base.current!.textContent = origin;
        base.current!.title = formatRangeUtc(originUs + from / 1000, originUs + to / 1000);
        latest.current.onSight(span, width);
      },
      onRest: (span, step) => latest.current.onRest(span, step),
      onHover: setHovered,
      onFocus: setFocused,
      onPick: (hit, walked) => latest.current.onPick(hit, walked),
    });
    return () => chart.current!.destroy();
  }, []);
  useLayoutEffect(() => chart.current!.show(picture), [picture]);

  const refs = { scroller, spacer, canvas, ruler, length, base };
  return { refs, hovered, focused, zoomBy: (factor: number) => chart.current!.zoomBy(factor) };
}
