// SPDX-License-Identifier: Apache-2.0
import { fitText, LABEL_FONT, type Viewport } from "../flamegraph/draw";
import { withoutFolders } from "../flamegraph/names";
import { mixed, packColour, type Theme } from "../flamegraph/palette";
import { LEVELS, type Colours } from "./colours";
import { laneAt, SLICE_HEIGHT, type Lane } from "./layout";
import { busyOf, eventsOf, type Timeline, type Track } from "./model";
import { endOfStates, firstEndingAfter } from "./slices";
import type { Span, Ticks } from "./span";

// A place in the chart, ns since the origin.
export interface Place {
  lane: number;
  row: number;
  from: number;
  to: number;
}

// The picture on the canvas. Lengths are CSS pixels, times ns since the origin.
export interface Scene {
  timeline: Timeline | null;
  lanes: readonly Lane[];
  // Where the answer's time begins.
  offset: number;
  span: Span;
  ticks: Ticks;
  colours: Colours;
  theme: Theme;
  hovered: Place | null;
  picked: Place | null;
  // The call that launched what is picked.
  launch: Place | null;
  // The lane that the keyboard walks.
  focused: number | null;
  // What a drag selects.
  selected: Span | null;
}

const LABEL_MIN_WIDTH = 26;
const LABEL_PADDING = 4;
// Slices wider than this end one pixel early, so that neighbours can be told apart.
const GAP_FROM = 3;
// Between the lines of hatching, and how strong these are.
const HATCH_PX = 6;
const HATCH_SHARE = 0.35;

// Paints scenes on one canvas, as flamegraph/draw.ts does: a row of slices is the same line of pixels from top to
// bottom, painted once and copied down. Only the lanes in sight cost anything.
export class TimelinePainter {
  #image = new ImageData(1, 1);
  #pixels = new Uint32Array(this.#image.data.buffer);
  #base = new Uint32Array(1);

  constructor(readonly context: CanvasRenderingContext2D) {}

  draw(scene: Scene, viewport: Viewport): void {
    const { ratio, scroll } = viewport;
    const width = Math.round(viewport.width * ratio);
    const height = Math.round(viewport.height * ratio);
    if (width < 1 || height < 1) return;
    if (this.#image.width !== width || this.#image.height !== height) {
      this.#image = new ImageData(width, height);
      this.#pixels = new Uint32Array(this.#image.data.buffer);
      this.#base = new Uint32Array(width);
    }
    const pixels = this.#pixels;
    this.#paintBase(scene);
    pixels.set(this.#base);
    for (let filled = 1; filled < height; filled *= 2) pixels.copyWithin(filled * width, 0, Math.min(filled, height - filled) * width);
    const labels: number[] = [];
    const heading = packColour(mixed(scene.theme.background, scene.theme.faded, 0.7));
    const first = Math.max(0, laneAt(scene.lanes, scroll));
    for (let at = first; at < scene.lanes.length && scene.lanes[at]!.top < scroll + viewport.height; at++) {
      const lane = scene.lanes[at]!;
      const track = lane.track === null ? null : scene.timeline!.tracks[lane.track]!;
      if (!track) {
        const [y0, y1] = [Math.round((lane.top - scroll) * ratio), Math.round((lane.top + lane.height - scroll) * ratio)];
        pixels.fill(heading, Math.max(0, y0) * width, Math.max(0, Math.min(height, y1)) * width);
        continue;
      }
      for (let row = 0; row < lane.rows; row++) {
        const top = lane.top + row * SLICE_HEIGHT - scroll;
        const y0 = Math.round(top * ratio);
        const y1 = Math.round((top + SLICE_HEIGHT) * ratio) - 1;
        if (y1 <= 0 || y0 >= height) continue;
        if (track.kind === "states") paintStates(pixels, width, height, y0, y1, track, scene);
        else paintRow(pixels, width, height, y0, y1, track, row, scene, at, LABEL_MIN_WIDTH * ratio, labels);
        if (track.unobserved.length > 0) this.#hatch(width, height, y0, y1, track, scene, ratio);
      }
    }
    this.context.putImageData(this.#image, 0, 0);
    this.context.setTransform(ratio, 0, 0, ratio, 0, 0);
    drawLabels(this.context, scene, labels, viewport);
    drawOver(this.context, scene, viewport);
  }

  // Time in which GPU profiling was not active, hatched as in the strips, where nothing else is.
  #hatch(width: number, height: number, y0: number, y1: number, { unobserved }: Track, { span, offset, theme }: Scene, ratio: number): void {
    const scale = width / (span.to - span.from);
    const colour = packColour(mixed(theme.background, theme.label, HATCH_SHARE));
    const every = Math.round(HATCH_PX * ratio);
    for (const { from, to } of unobserved) {
      const x0 = Math.max(0, Math.round((from + offset - span.from) * scale));
      const x1 = Math.min(width, Math.round((to + offset - span.from) * scale));
      for (let y = Math.max(0, y0); y < Math.min(height, y1); y++) {
        for (let x = x0 + ((every - ((x0 + y) % every)) % every); x < x1; x += every) {
          if (this.#pixels[y * width + x] === this.#base[x]) this.#pixels[y * width + x] = colour;
        }
      }
    }
  }

  // The line of pixels under everything: ticks, and time that the answer doesn't have.
  #paintBase({ theme, span, timeline, offset, ticks }: Scene): void {
    const base = this.#base;
    const scale = base.length / (span.to - span.from);
    const at = (ns: number) => Math.min(base.length, Math.max(0, Math.round((ns - span.from) * scale)));
    const unread = packColour(mixed(theme.background, theme.faded, 0.55));
    if (timeline) {
      base.fill(packColour(theme.background));
      base.fill(unread, 0, at(offset));
      base.fill(unread, at(offset + (timeline.to_us - timeline.from_us) * 1000));
    } else {
      base.fill(unread);
    }
    const line = packColour(theme.faded);
    for (const tick of ticks.at) base[Math.min(base.length - 1, at(tick))] = line;
  }
}

// One row's slices. Those that can have a label are appended to `labels`: lane, row, slice, x, width.
function paintRow(
  pixels: Uint32Array, width: number, height: number, y0: number, y1: number,
  { slices }: Track, row: number, scene: Scene, lane: number, labelMinWidth: number, labels: number[],
): void {
  const { span, offset, colours } = scene;
  const { start, end, name } = slices;
  const { fillOf, fills } = colours;
  const first = Math.max(0, y0) * width;
  const line = pixels.subarray(first, first + width);
  const from = span.from - offset;
  const to = span.to - offset;
  const scale = width / (to - from);
  const last = slices.rowStart[row + 1]!;
  for (let k = firstEndingAfter(slices, row, from); k < last && start[k]! < to; ) {
    const x0 = Math.max(0, Math.round((start[k]! - from) * scale));
    const x1 = Math.min(width, Math.round((end[k]! - from) * scale));
    let shown = k;
    if (x1 > x0) {
      const share = slices.busy === null ? 1 : slices.busy[k]! / Math.max(1, end[k]! - start[k]!);
      const w = x1 - x0 > GAP_FROM && eventsOf(slices, k) === 1 ? x1 - x0 - 1 : x1 - x0;
      line.fill(fills[fillOf[name[k]!]! * LEVELS + levelOf(share)]!, x0, x0 + w);
      if (w >= labelMinWidth) labels.push(lane, row, k, x0, w);
      k++;
    } else {
      // Too short for a pixel: one stands for all slices that end in it, in the colour of the one with the most time.
      const limit = from + (x0 + 0.5) / scale;
      let busy = 0;
      let most = -1;
      do {
        const time = busyOf(slices, k);
        busy += time;
        if (time > most) {
          most = time;
          shown = k;
        }
        k++;
      } while (k < last && end[k]! < limit && start[k]! < to);
      if (x0 < width) line[x0] = fills[fillOf[name[shown]!]! * LEVELS + levelOf(busy * scale)]!;
    }
  }
  for (let y = Math.max(0, y0) + 1; y < Math.min(height, y1); y++) pixels.copyWithin(y * width, first, first + width);
}

function levelOf(share: number): number {
  return Math.max(0, Math.min(LEVELS - 1, Math.round(share * (LEVELS - 1))));
}

// Of each interval, the time in each state as a part of the height.
function paintStates(pixels: Uint32Array, width: number, height: number, y0: number, y1: number, { slices }: Track, scene: Scene): void {
  const { span, offset, colours } = scene;
  const { start, end, name, count } = slices;
  const from = span.from - offset;
  const to = span.to - offset;
  const scale = width / (to - from);
  for (let k = firstEndingAfter(slices, 0, from); k < count && start[k]! < to; ) {
    const next = endOfStates(slices, k);
    const x0 = Math.max(0, Math.round((start[k]! - from) * scale));
    // An interval narrower than a pixel is drawn if it is the first to begin there.
    const x1 = Math.min(width, Math.max(x0 + 1, Math.round((end[k]! - from) * scale)));
    const length = Math.max(1, end[k]! - start[k]!);
    let below = 0;
    for (let i = k; i < next; i++) {
      const bottom = Math.round(y1 - ((y1 - y0) * below) / length);
      below = Math.min(length, below + busyOf(slices, i));
      const top = Math.round(y1 - ((y1 - y0) * below) / length);
      const fill = colours.fills[colours.fillOf[name[i]!]! * LEVELS + LEVELS - 1]!;
      for (let y = Math.max(0, top); y < Math.min(height, bottom); y++) {
        if (x1 - x0 === 1) pixels[y * width + x0] = fill;
        else pixels.fill(fill, y * width + x0, y * width + x1);
      }
    }
    k = next;
  }
}

// The command line if it fits, else as much as does of it without the folders of its files.
export function fitCommand(context: CanvasRenderingContext2D, command: string, room: number): string {
  const fitted = fitText(context, command, room);
  return fitted === command ? command : fitText(context, withoutFolders(command), room);
}

function drawLabels(context: CanvasRenderingContext2D, scene: Scene, labels: number[], { ratio, scroll, width, height }: Viewport): void {
  const { timeline, lanes, theme } = scene;
  if (!timeline) return;
  context.font = LABEL_FONT;
  context.textBaseline = "middle";
  context.fillStyle = theme.fadedLabel;
  for (let at = Math.max(0, laneAt(lanes, scroll)); lanes[at] && lanes[at]!.top < scroll + height; at++) {
    const { note, top, height: tall } = lanes[at]!;
    const text = note && fitCommand(context, note, width - 2 * LABEL_PADDING);
    if (text) context.fillText(text, LABEL_PADDING, top - scroll + tall / 2);
  }
  context.fillStyle = theme.label;
  for (let i = 0; i < labels.length; i += 5) {
    const lane = lanes[labels[i]!]!;
    const { slices } = timeline.tracks[lane.track!]!;
    const slice = labels[i + 2]!;
    const events = eventsOf(slices, slice);
    const name = timeline.names.shown[slices.name[slice]!]!;
    const text = fitText(context, events === 1 ? name : `${events} × ${name}`, labels[i + 4]! / ratio - 2 * LABEL_PADDING);
    if (text) context.fillText(text, labels[i + 3]! / ratio + LABEL_PADDING, lane.top - scroll + (labels[i + 1]! + 0.5) * SLICE_HEIGHT - 0.5);
  }
}

// Outlines, the line from a launch to its work, and what a drag selects.
function drawOver(context: CanvasRenderingContext2D, scene: Scene, viewport: Viewport): void {
  const { span, theme, lanes } = scene;
  const toX = (ns: number) => ((ns - span.from) / (span.to - span.from)) * viewport.width;
  context.strokeStyle = theme.outline;
  const middleOf = (place: Place) => lanes[place.lane]!.top - viewport.scroll + (place.row + 0.5) * SLICE_HEIGHT;
  const outline = (place: Place | null, lineWidth: number) => {
    if (!place || !lanes[place.lane] || place.to < span.from || place.from > span.to) return;
    const x0 = Math.max(-4, toX(place.from));
    const x1 = Math.min(viewport.width + 4, toX(place.to));
    const y = middleOf(place) - SLICE_HEIGHT / 2;
    context.lineWidth = lineWidth;
    context.strokeRect(Math.round(x0) + lineWidth / 2, y + lineWidth / 2, Math.max(2, Math.round(x1) - Math.round(x0) - lineWidth), SLICE_HEIGHT - 1 - lineWidth);
  };
  outline(scene.hovered, 1);
  outline(scene.picked, 2);
  const { picked, launch } = scene;
  const isVisible = ({ lane, from, to }: Place) => lanes[lane] !== undefined && to >= span.from && from <= span.to;
  if (picked && launch && isVisible(picked) && isVisible(launch)) {
    const [x0, y0, x1, y1] = [toX(launch.from), middleOf(launch), toX(picked.from), middleOf(picked)];
    context.lineWidth = 1.5;
    context.beginPath();
    context.moveTo(x0, y0);
    context.bezierCurveTo((x0 + x1) / 2, y0, (x0 + x1) / 2, y1, x1, y1);
    context.stroke();
    context.fillStyle = theme.outline;
    context.beginPath();
    context.arc(x0, y0, 3, 0, 2 * Math.PI);
    context.fill();
  }
  const lane = scene.focused === null ? undefined : lanes[scene.focused];
  if (lane) {
    context.fillStyle = theme.outline;
    context.fillRect(0, lane.top - viewport.scroll, 2, lane.height - 1);
  }
  if (scene.selected) {
    const [x0, x1] = [toX(scene.selected.from), toX(scene.selected.to)];
    context.fillStyle = `${theme.outline}22`;
    context.fillRect(x0, 0, x1 - x0, viewport.height);
    context.fillStyle = theme.outline;
    context.fillRect(Math.round(x0), 0, 1, viewport.height);
    context.fillRect(Math.round(x1), 0, 1, viewport.height);
  }
}
