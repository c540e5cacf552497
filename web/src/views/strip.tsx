// SPDX-License-Identifier: Apache-2.0
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import uPlot from "uplot";
import type { Mark, Strip, Strips } from "../api/types";
import { formatClock, formatRange, formatShare, lowerBound, tickLabels, threeDigits } from "../format";
import { printable } from "../printable";
import { bucketAt, meanOver, nudge, observedIn, partialIn, rangeOf, seriesOf } from "../state/brush";
import type { Range } from "../state/view";
import { Marks } from "./marks";
import { Simulated } from "./simulated";

interface Props {
  strips: Strips;
  strip: Strip;
  // Its label as the column has room for it.
  shown: string;
  window: Range;
  brush: Range | null;
  // Side A of a comparison, if a time was chosen for it.
  base: Range | null;
  // `step` unless it only moves the brush that there was.
  onBrush: (brush: Range | null, step: boolean) => void;
  // Whether Tab leads to it.
  isStop: boolean;
  onFocus: () => void;
  isDark: boolean;
  // Events of its device.
  marks: Mark[];
  // Lower, when there are many strips.
  low: boolean;
  // The last strip has the time axis for all.
  axis: boolean;
}

// The plot's height; lower if there are many strips.
const HEIGHT = 50;
const LOW_HEIGHT = 32;
const AXIS_HEIGHT = 18;

// One metric over time, and the brush that selects a time range.
export function MetricStrip({ strips, strip, shown: label, window, brush, base, onBrush, isStop, onFocus, isDark, marks, low, axis }: Props) {
  const host = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const [cursor, setCursor] = useState<number | null>(null);
  const height = (low ? LOW_HEIGHT : HEIGHT) + (axis ? AXIS_HEIGHT : 0);
  // uPlot's handlers outlive a render, so they read the latest props here.
  const latest = useRef({ strips, strip, onBrush, brush });
  latest.current = { strips, strip, onBrush, brush };

  useLayoutEffect(() => {
    const u = makePlot(host.current!, strip, { height, low, axis }, {
      onSelect: (range) => latest.current.onBrush(range, true),
      onClick: () => showBrush(u, latest.current.brush),
      onCursor: (us) => setCursor(us === null ? null : bucketAt(latest.current.strips, latest.current.strip, us)),
    });
    plot.current = u;
    const resize = () => {
      u.setSize({ width: host.current!.clientWidth, height });
      showBrush(u, latest.current.brush);
    };
    const resizes = new ResizeObserver(resize);
    resizes.observe(host.current!);
    addEventListener("beforeprint", resize);
    return () => {
      resizes.disconnect();
      removeEventListener("beforeprint", resize);
      u.destroy();
    };
  }, [isDark, strip.id, strip.max, height, low, axis]);

  useLayoutEffect(() => {
    const u = plot.current!;
    u.setData(seriesOf(strips, strip) as uPlot.AlignedData, false);
    u.setScale("x", { min: window.from / 1e6, max: window.to / 1e6 });
    showBrush(u, brush);
  }, [isDark, height, axis, strips, strip, window.from, window.to, brush?.from, brush?.to]);

  const shown = brush ?? window;
  const mean = meanOver(strips, strip, shown);
  const hovered = cursor === null ? undefined : strip.values[cursor];
  const at = strips.from_us + (cursor ?? 0) * strips.bucket_us;
  const bound = lowerBound(partialIn(strips, strip, cursor === null ? shown : rangeOf(strips, cursor)));
  return (
    <section
      class={`strip ${low ? "low" : ""} ${strip.metric ? "state" : ""}`}
      style={{ height: `${height + 3}px` }}
      tabIndex={isStop ? 0 : -1}
      role="group"
      aria-label={`${nameOf(strip)} over time: ${mean === null ? "not observed" : `${bound ? "at least " : ""}${figure(mean)} ${strip.unit}`}. Left and right select and move a stretch, with Shift they change its length; up and down lead to other strips.`}
      onFocus={onFocus}
      onKeyDown={(event) => {
        const next = nudge(brush, window, event.key, event.shiftKey);
        if (!next) return;
        event.preventDefault();
        onBrush(next, brush === null);
      }}
    >
      <div class="strip-figures">
        <h2 title={[printable(strip.label), strip.meaning, strip.name, strip.uuid].filter(Boolean).join("\n")}>
          <span class="strip-label">{label}</span> {strip.simulated && !strip.metric && <Simulated />}
        </h2>
        <div class="figure" title={bound?.why}>
          <strong>
            {bound?.sign}
            {figure(hovered === undefined ? mean : hovered)}
          </strong>{" "}
          {strip.unit}
        </div>
        {!low && <div class="figure dim">{hovered === undefined ? (partOf(observedIn(strips, strip, shown)) ?? scaleOf(strip)) : hovered === null ? "not observed" : formatClock(at)}</div>}
      </div>
      <div class="strip-plot" ref={host} />
      {base && base.to > window.from && base.from < window.to && (
        <div class="marks-area" aria-hidden="true">
          <span class="base-band" style={bandOf(base, window)} />
        </div>
      )}
      <Marks marks={marks} window={window} label={nameOf(strip)} />
      <StripTable strips={strips} strip={strip} />
    </section>
  );
}

function bandOf(base: Range, window: Range): { left: string; right: string } {
  const share = (us: number) => (100 * (us - window.from)) / (window.to - window.from);
  return { left: `${Math.max(0, share(base.from))}%`, right: `${Math.max(0, 100 - share(base.to))}%` };
}

// A device's state names the device if it isn't shown under the device's strip.
function nameOf({ label, metric, ordinal }: Strip): string {
  return metric && ordinal !== undefined ? `${label} of GPU ${ordinal}` : printable(label);
}

// The unit of a strip's upper end; percentages need none.
function scaleOf({ max, unit, name }: Strip): string {
  if (unit === "%") return name ?? "";
  return max === null ? "" : `of ${max} ${unit}`;
}

// The observed share of the time, if it isn't all.
function partOf(observed: number): string | null {
  if (observed > 0.995) return null;
  return observed === 0 ? "not observed" : `${formatShare(observed, 1)} observed`;
}

function figure(value: number | null): string {
  return value === null ? "–" : threeDigits(value);
}

interface PlotEvents {
  onSelect(range: Range | null): void;
  onClick(): void;
  // The time under the pointer.
  onCursor(us: number | null): void;
}

// Room on the right of a strip, for half of the last label.
const RIGHT_PX = 28;

// The end of a scale on which nothing was observed; it has no label.
const NOTHING = Number.MIN_VALUE;

// A low strip only has room for two labels.
function ends(_: uPlot, __: number, min: number, max: number): number[] {
  return max > NOTHING ? [min, max] : [min];
}

interface Shape {
  height: number;
  low: boolean;
  axis: boolean;
}

function makePlot(host: HTMLElement, strip: Strip, { height, low, axis }: Shape, events: PlotEvents): uPlot {
  const style = getComputedStyle(host);
  const colour = (name: string) => style.getPropertyValue(name).trim();
  const drawn: uPlot.Axis = {
    stroke: colour("--dim"),
    font: "11px system-ui, sans-serif",
    grid: { stroke: colour("--line"), width: 1 },
    ticks: { show: false },
  };
  const u = new uPlot(
    {
      width: host.clientWidth,
      height,
      padding: [6, RIGHT_PX, axis ? 0 : 3, 0],
      legend: { show: false },
      cursor: {
        y: false,
        points: { show: false },
        // Only the pointer's position is shared between strips; the brush comes from the address.
        sync: { key: "moment", filters: { pub: (type: string) => type === "mousemove" || type === "mouseleave" } },
        drag: { x: true, y: false, setScale: false },
        bind: {
          dblclick: () => () => {
            events.onSelect(null);
            return null;
          },
          mouseup: (_, __, handler) => (event) => {
            handler(event);
            // A click without a drag has hidden the selection, which still applies.
            if (u.select.width === 0) events.onClick();
            return null;
          },
        },
      },
      scales: {
        x: { time: true },
        y: { range: (_, __, max) => [0, Math.max(strip.max ?? NOTHING, max ?? 0)] },
      },
      axes: [
        { ...drawn, show: axis, size: AXIS_HEIGHT, gap: 2, space: 90, values: (u, ticks, _, __, step) => tickLabels(ticks, step, (tick) => u.valToPos(tick, "x"), u.over.clientWidth + RIGHT_PX) },
        { ...drawn, size: 38, gap: 4, space: 18, ...(low && { splits: ends }), values: (_, splits) => splits.map((s) => String(Number(s.toPrecision(3)))) },
      ],
      series: [
        {},
        {
          stroke: colour("--accent"),
          fill: colour("--accent-fill"),
          width: 1,
          points: { show: false },
          // A value is the mean over its bucket, hence steps.
          paths: uPlot.paths.stepped!({ align: 1 }),
        },
      ],
      hooks: {
        drawClear: [(u) => hatchUnobserved(u, colour("--dim"))],
        setSelect: [
          () => {
            const { left, width } = u.select;
            if (width < 2) return;
            events.onSelect({ from: Math.round(u.posToVal(left, "x") * 1e6), to: Math.round(u.posToVal(left + width, "x") * 1e6) });
          },
        ],
        setCursor: [() => events.onCursor(u.cursor.left! >= 0 ? u.posToVal(u.cursor.left!, "x") * 1e6 : null)],
      },
    },
    [[], []],
    host,
  );
  return u;
}

const HATCH_PX = 6;

// Hatches unobserved time, which must not look like 0.
function hatchUnobserved(u: uPlot, colour: string): void {
  const [xs, values] = u.data as unknown as [number[], (number | null)[]];
  const { ctx, bbox } = u;
  ctx.save();
  ctx.beginPath();
  for (let i = 0, end = 0; i + 1 < xs.length; i = end) {
    end = i + 1;
    if (values[i] != null) continue;
    while (end + 1 < xs.length && values[end] == null) end++;
    const left = u.valToPos(xs[i]!, "x", true);
    ctx.rect(left, bbox.top, u.valToPos(xs[end]!, "x", true) - left, bbox.height);
  }
  ctx.clip();
  ctx.beginPath();
  ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
  ctx.clip();
  ctx.beginPath();
  for (let x = bbox.left - bbox.height; x < bbox.left + bbox.width; x += HATCH_PX * devicePixelRatio) {
    ctx.moveTo(x, bbox.top + bbox.height);
    ctx.lineTo(x + bbox.height, bbox.top);
  }
  ctx.globalAlpha = 0.35;
  ctx.strokeStyle = colour;
  ctx.lineWidth = devicePixelRatio;
  ctx.stroke();
  ctx.restore();
}

function showBrush(u: uPlot, brush: Range | null): void {
  const left = brush ? Math.max(0, u.valToPos(brush.from / 1e6, "x")) : 0;
  const right = brush ? Math.min(u.over.clientWidth, u.valToPos(brush.to / 1e6, "x")) : 0;
  u.setSelect({ left, width: Math.max(0, right - left), top: 0, height: u.over.clientHeight }, false);
}

const TABLE_ROWS = 12;

// The strip as a table for screen readers: means over a dozen intervals.
function StripTable({ strips, strip }: { strips: Strips; strip: Strip }) {
  const length = (strips.to_us - strips.from_us) / TABLE_ROWS;
  return (
    <table class="unseen">
      <caption>
        {nameOf(strip)}, mean in {strip.unit}
      </caption>
      <tbody>
        {Array.from({ length: TABLE_ROWS }, (_, i) => {
          const range = { from: strips.from_us + i * length, to: strips.from_us + (i + 1) * length };
          return (
            <tr key={i}>
              <th scope="row">{formatRange(range.from, range.to)}</th>
              <td>{figure(meanOver(strips, strip, range))}</td>
            </tr>
          );
        })}
      </tbody>
    </table>
  );
}
