// SPDX-License-Identifier: Apache-2.0
import type { Theme } from "../flamegraph/palette";
import { formatTick } from "../format";
import { formatOffset, type Span, type Ticks } from "./span";

export const RULER_HEIGHT = 24;
// One label needs about as much.
export const TICK_SPACE = 92;
const MARK_HEIGHT = 4;

// Time in which steps were slow, ns since the origin.
export interface SlowTime extends Span {
  text: string;
}

export interface RulerScene {
  span: Span;
  ticks: Ticks;
  theme: Theme;
  alarm: string;
  slow: readonly SlowTime[];
  originUs: number;
  selected: Span | null;
}

// Ticks with their labels, and slow time along the bottom.
export function drawRuler(context: CanvasRenderingContext2D, scene: RulerScene, width: number, ratio: number): void {
  const { span, ticks, theme } = scene;
  const toX = (ns: number) => ((ns - span.from) / (span.to - span.from)) * width;
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.fillStyle = theme.background;
  context.fillRect(0, 0, width, RULER_HEIGHT);
  context.font = "11px system-ui, sans-serif";
  context.textBaseline = "middle";
  for (const at of ticks.at) {
    const x = Math.round(toX(at));
    context.fillStyle = theme.faded;
    context.fillRect(x, 0, 1, RULER_HEIGHT);
    context.fillStyle = theme.fadedLabel;
    const label = ticks.base === null ? formatTick((scene.originUs + at / 1000) / 1e6, ticks.step / 1e9) : `+${formatOffset(at - ticks.base, ticks.step, span.to - span.from)}`;
    // A label that is cut would say another time.
    if (x + 4 + context.measureText(label).width <= width) context.fillText(label, x + 4, RULER_HEIGHT / 2 - 1);
  }
  context.fillStyle = scene.alarm;
  for (const { from, to } of scene.slow) {
    if (to < span.from || from > span.to) continue;
    const x = Math.max(0, toX(from));
    context.fillRect(x, RULER_HEIGHT - MARK_HEIGHT, Math.max(2, Math.min(width, toX(to)) - x), MARK_HEIGHT);
  }
  if (scene.selected) {
    context.fillStyle = `${theme.outline}33`;
    context.fillRect(toX(scene.selected.from), 0, toX(scene.selected.to) - toX(scene.selected.from), RULER_HEIGHT);
  }
}
