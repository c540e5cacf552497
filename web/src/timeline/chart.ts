// SPDX-License-Identifier: Apache-2.0
import { AnimatedSpan } from "../flamegraph/animated-span";
import type { Theme } from "../flamegraph/palette";
import { pixelRatio } from "../flamegraph/pixel-ratio";
import type { Viewport } from "../flamegraph/draw";
import type { Colours } from "./colours";
import { TimelinePainter, type Place, type Scene } from "./draw";
import { Gestures } from "./gestures";
import { hitAt, type Hit } from "./hit";
import { laneAt, SLICE_HEIGHT, type Lane } from "./layout";
import { eventsOf, type Timeline } from "./model";
import { drawRuler, RULER_HEIGHT, TICK_SPACE, type SlowTime } from "./ruler";
import { neighbour, sliceAt } from "./slices";
import { fitted, panned, rangeOf, ticksOf, zoomed, type Span, type Ticks } from "./span";

// A slice in the chart, by the lane's id so that it outlives an answer; ns since the origin.
export interface Spot {
  lane: string;
  row: number;
  from: number;
  to: number;
}

// What to show; the chart itself remembers the visible span while it moves, the scroll position and the focused lane.
export interface TimelinePicture {
  timeline: Timeline | null;
  lanes: readonly Lane[];
  height: number;
  originUs: number;
  // What can be shown, and what the address says is visible.
  bounds: Span;
  span: Span;
  colours: Colours;
  theme: Theme;
  alarm: string;
  slow: readonly SlowTime[];
  picked: Spot | null;
  launch: Spot | null;
}

export interface Pointed extends Hit {
  x: number;
  y: number;
}

export interface TimelineEvents {
  // The visible span and the width, px, in every frame in which they change.
  onSpan(span: Span, ticks: Ticks, width: number): void;
  // It has come to rest; `step` if that was one choice and not a movement.
  onRest(span: Span, step: boolean): void;
  onHover(pointed: Pointed | null): void;
  // `walked` from a neighbour: no choice of its own.
  onPick(hit: Hit, walked: boolean): void;
  onFocus(lane: number | null): void;
}

export interface Elements {
  scroller: HTMLElement;
  spacer: HTMLElement;
  canvas: HTMLCanvasElement;
  ruler: HTMLCanvasElement;
}

const REST_MS = 200;
// A slice is hit if the pointer is so close to it.
const NEAR_PX = 2;
const NEAR_FINGER_PX = 10;
const PAN_PART = 0.15;

// The canvases and the scrolling element: painting, pointing and keys. Gestures are in gestures.ts.
export class TimelineChart {
  #picture: TimelinePicture | null = null;
  readonly #visible = new AnimatedSpan();
  // What the last frame showed.
  #drawn: { span: Span | null; width: number } = { span: null, width: 0 };
  // The address's range that this chart shows or was the last to ask for.
  #address = "";
  #rest = 0;
  #hovered: Hit | null = null;
  #focused: number | null = null;
  #pointer: PointerEvent | null = null;
  #frame = 0;
  #ratio = 1;
  readonly #gestures: Gestures;
  readonly #painter: TimelinePainter;
  readonly #ruler: CanvasRenderingContext2D;
  readonly #resizes: ResizeObserver;
  readonly #abort = new AbortController();

  constructor(
    readonly elements: Elements,
    readonly events: TimelineEvents,
  ) {
    const { scroller, spacer, canvas, ruler } = elements;
    this.#painter = new TimelinePainter(canvas.getContext("2d", { alpha: false })!);
    this.#ruler = ruler.getContext("2d", { alpha: false })!;
    canvas.width = 0; // nothing is drawn before it has its size
    this.#resizes = new ResizeObserver(() => this.#resize());
    this.#resizes.observe(scroller);
    // Its width, too, changes when a scrollbar appears.
    this.#resizes.observe(spacer);
    const options = { signal: this.#abort.signal };
    addEventListener("beforeprint", () => this.#resize(), options);
    scroller.addEventListener("scroll", () => this.#schedule(), { ...options, passive: true });
    scroller.addEventListener("keydown", (event) => this.#key(event), options);
    scroller.addEventListener("focusout", () => this.#setFocus(null), options);
    this.#gestures = new Gestures(
      elements,
      {
        place: () => this.#picture && { visible: this.#visible.now, bounds: this.#picture.bounds },
        onPress: () => this.#moveTo(this.#visible.target),
        onMove: (span) => this.#moveBy(span),
        onRest: () => this.#settle(this.#visible.now, false),
        onSelecting: () => this.#schedule(),
        onSelect: (span) => this.#go(span),
        onPoint: (event) => this.#hover(event),
      },
      this.#abort.signal,
    );
    canvas.addEventListener("click", (event) => this.#click(event), options);
    canvas.addEventListener("dblclick", (event) => this.#doubleClick(event), options);
  }

  destroy(): void {
    this.#abort.abort();
    this.#resizes.disconnect();
    cancelAnimationFrame(this.#frame);
    clearTimeout(this.#rest);
  }

  show(picture: TimelinePicture): void {
    const before = this.#picture;
    this.#picture = picture;
    const { scroller, spacer } = this.elements;
    // Tracks that appear or vanish above must not move what is being read.
    const anchor = before && before.lanes[laneAt(before.lanes, scroller.scrollTop)];
    spacer.style.height = `${picture.height}px`;
    if (before && before.lanes !== picture.lanes) {
      const now = anchor && picture.lanes.find(({ id }) => id === anchor.id);
      if (now && now.top !== anchor.top) scroller.scrollTop += now.top - anchor.top;
      const focused = this.#focused === null ? undefined : before.lanes[this.#focused]?.id;
      const at = picture.lanes.findIndex(({ id }) => id === focused);
      this.#focused = at < 0 ? null : at;
    }
    const address = this.#addressOf(picture.span);
    if (address !== this.#address) {
      this.#address = address;
      clearTimeout(this.#rest);
      if (before) this.#glide(picture.span);
      else this.#moveTo(picture.span);
    }
    if (before?.timeline !== picture.timeline || before?.lanes !== picture.lanes) {
      this.#hovered = null;
      this.#hover(this.#pointer);
    }
    this.#schedule();
    // A print doesn't wait for a frame.
    if (before && before.theme !== picture.theme) this.#draw(performance.now());
  }

  // Zooms around the middle.
  zoomBy(factor: number): void {
    this.#go(zoomed(this.#visible.target, factor, 0.5, this.#picture!.bounds));
  }

  // One choice: moves there, and is one step in the history.
  #go(span: Span): void {
    const to = fitted(span, this.#picture!.bounds);
    this.#glide(to);
    this.#settle(to, true);
  }

  #glide(to: Span): void {
    this.#visible.glideTo(to);
    this.#schedule();
  }

  #moveTo(span: Span): void {
    this.#visible.jumpTo(span);
    this.#schedule();
  }

  // A movement: the address follows when it has come to rest.
  #moveBy(span: Span): void {
    this.#moveTo(span);
    clearTimeout(this.#rest);
    this.#rest = window.setTimeout(() => this.#settle(this.#visible.now, false), REST_MS);
  }

  #settle(span: Span, step: boolean): void {
    clearTimeout(this.#rest);
    const address = this.#addressOf(span);
    if (address === this.#address) return;
    this.#address = address;
    this.events.onRest(span, step);
  }

  #addressOf(span: Span): string {
    const { from, to } = rangeOf(span, this.#picture!.originUs);
    return `${from} ${to}`;
  }

  #schedule(): void {
    if (!this.#frame) this.#frame = requestAnimationFrame((now) => this.#draw(now));
  }

  #draw(now: number): void {
    this.#frame = 0;
    const picture = this.#picture;
    const { canvas } = this.elements;
    if (!picture || canvas.width === 0) return;
    if (this.#visible.advance(now)) this.#schedule();
    const { width } = this.#viewport();
    const span = this.#visible.now;
    const ticks = ticksOf(span, width / TICK_SPACE, picture.originUs);
    if (span !== this.#drawn.span || width !== this.#drawn.width) {
      this.#drawn = { span, width };
      this.events.onSpan(span, ticks, width);
    }
    const offset = picture.timeline ? (picture.timeline.from_us - picture.originUs) * 1000 : 0;
    const { selected } = this.#gestures;
    const scene: Scene = {
      ...picture, offset, span, ticks, selected,
      hovered: this.#hovered && this.#placeOf(this.#hovered), picked: this.#placeAt(picture.picked), launch: this.#placeAt(picture.launch), focused: this.#focused,
    };
    this.#painter.draw(scene, this.#viewport());
    drawRuler(this.#ruler, { ...picture, span, ticks, selected }, width, this.#ratio);
    canvas.dataset["drawn"] = String(Number(canvas.dataset["drawn"] ?? 0) + 1);
  }

  #placeOf({ lane, row, slice }: Hit): Place {
    const { slices } = this.#timelineOf(lane);
    const offset = this.#offset();
    return { lane, row, from: slices.start[slice]! + offset, to: slices.end[slice]! + offset };
  }

  #placeAt(spot: Spot | null): Place | null {
    const lane = spot === null ? -1 : this.#picture!.lanes.findIndex(({ id }) => id === spot.lane);
    return lane < 0 || spot!.row >= this.#picture!.lanes[lane]!.rows ? null : { ...spot!, lane };
  }

  #timelineOf(lane: number) {
    const { timeline, lanes } = this.#picture!;
    return timeline!.tracks[lanes[lane]!.track!]!;
  }

  #offset(): number {
    const { timeline, originUs } = this.#picture!;
    return (timeline!.from_us - originUs) * 1000;
  }

  #viewport(): Viewport {
    const { scroller, canvas } = this.elements;
    return { width: canvas.width / this.#ratio, height: scroller.clientHeight, scroll: scroller.scrollTop, ratio: this.#ratio };
  }

  #resize(): void {
    const { scroller, spacer, canvas, ruler } = this.elements;
    const width = spacer.clientWidth - canvas.offsetLeft;
    const height = scroller.clientHeight;
    const ratio = pixelRatio();
    if (canvas.width === Math.round(width * ratio) && canvas.height === Math.round(height * ratio)) return;
    this.#ratio = ratio;
    for (const [surface, tall] of [[canvas, height], [ruler, RULER_HEIGHT]] as const) {
      surface.width = Math.max(0, Math.round(width * ratio));
      surface.height = Math.round(tall * ratio);
      surface.style.width = `${width}px`;
      surface.style.height = `${tall}px`;
    }
    // In this very frame: an emptied canvas would flicker.
    cancelAnimationFrame(this.#frame);
    this.#draw(performance.now());
  }

  #timeAt(event: MouseEvent): number {
    const { from, to } = this.#visible.now;
    return from + this.#gestures.partAt(event) * (to - from);
  }

  #hitUnder(event: MouseEvent): Hit | null {
    const picture = this.#picture;
    if (!picture?.timeline || event.target === this.elements.ruler) return null;
    const box = this.elements.canvas.getBoundingClientRect();
    const y = event.clientY - box.top + this.elements.scroller.scrollTop;
    const { from, to } = this.#visible.now;
    const reach = (event as PointerEvent).pointerType === "touch" ? NEAR_FINGER_PX : NEAR_PX;
    const near = (reach * (to - from)) / Math.max(1, box.width);
    return hitAt(picture.timeline, picture.lanes, y, this.#timeAt(event) - this.#offset(), near);
  }

  #hover(event: PointerEvent | null): void {
    this.#pointer = event;
    const hit = event && !this.#gestures.isDragging ? this.#hitUnder(event) : null;
    const { canvas, ruler } = this.elements;
    canvas.style.cursor = this.#gestures.isDragging ? "grabbing" : hit ? "pointer" : "default";
    const t = event?.target === ruler ? this.#timeAt(event) : null;
    ruler.title = t === null ? "" : (this.#picture?.slow.find(({ from, to }) => from <= t && t <= to)?.text ?? "Drag to select a time");
    this.events.onHover(hit && { ...hit, x: event!.clientX, y: event!.clientY });
    if (hit?.slice === this.#hovered?.slice && hit?.lane === this.#hovered?.lane) return;
    this.#hovered = hit;
    this.#schedule();
  }

  #click(event: MouseEvent): void {
    const hit = event.detail > 1 || this.#gestures.wasDrag ? null : this.#hitUnder(event);
    if (!hit) return;
    const { kind, slices } = this.#timelineOf(hit.lane);
    // A sum has no details: what it stands for is to be seen when zoomed in.
    if (kind !== "states" && eventsOf(slices, hit.slice) > 1) this.#zoomTo(hit);
    else this.events.onPick(hit, false);
  }

  #doubleClick(event: MouseEvent): void {
    const hit = this.#hitUnder(event);
    if (hit && eventsOf(this.#timelineOf(hit.lane).slices, hit.slice) === 1) this.#zoomTo(hit);
  }

  // With a tenth of its length on either side.
  #zoomTo(hit: Hit): void {
    const { from, to } = this.#placeOf(hit);
    this.#go({ from: from - (to - from) / 10, to: to + (to - from) / 10 });
  }

  #key(event: KeyboardEvent): void {
    if (!this.#picture || event.altKey || event.ctrlKey || event.metaKey || event.target !== this.elements.scroller) return;
    const { bounds } = this.#picture;
    const pan = (direction: number) => {
      const span = this.#visible.target;
      this.#moveBy(panned(span, direction * PAN_PART * (span.to - span.from), bounds));
    };
    const actions: Record<string, () => void> = {
      ArrowLeft: () => pan(-1),
      ArrowRight: () => pan(1),
      ArrowUp: () => this.#walk(-1),
      ArrowDown: () => this.#walk(1),
      "+": () => this.zoomBy(0.5),
      "=": () => this.zoomBy(0.5),
      "-": () => this.zoomBy(2),
      Enter: () => this.#pickInLane(0),
      ",": () => this.#pickInLane(-1),
      ".": () => this.#pickInLane(1),
    };
    const action = actions[event.key];
    if (!action) return;
    event.preventDefault();
    action();
  }

  // To the next lane that has slices.
  #walk(step: -1 | 1): void {
    const { lanes } = this.#picture!;
    let at = this.#focused ?? (step > 0 ? laneAt(lanes, this.elements.scroller.scrollTop) - 1 : lanes.length);
    do at += step;
    while (lanes[at] && lanes[at]!.track === null);
    if (!lanes[at]) return;
    this.#setFocus(at);
    const { scroller } = this.elements;
    const { top, height } = lanes[at]!;
    if (top < scroller.scrollTop) scroller.scrollTop = Math.max(0, top - SLICE_HEIGHT);
    else if (top + height > scroller.scrollTop + scroller.clientHeight) scroller.scrollTop = top + height + SLICE_HEIGHT - scroller.clientHeight;
  }

  // Picks the focused lane's slice in the middle, or the neighbour of the one picked before.
  #pickInLane(step: -1 | 0 | 1): void {
    const { timeline, lanes, picked, bounds } = this.#picture!;
    if (this.#focused === null || !timeline) return;
    const lane = lanes[this.#focused]!;
    const { slices } = this.#timelineOf(this.#focused);
    const span = this.#visible.target;
    const offset = this.#offset();
    const here = picked?.lane === lane.id ? picked : null;
    const row = here?.row ?? 0;
    const slice = step === 0 || !here ? sliceAt(slices, row, (span.from + span.to) / 2 - offset, span.to - span.from) : neighbour(slices, row, here.from - offset, step);
    if (slice === null) return;
    const middle = (slices.start[slice]! + slices.end[slice]!) / 2 + offset;
    if (middle < span.from || middle > span.to) this.#moveBy(panned(span, middle - (span.from + span.to) / 2, bounds));
    this.events.onPick({ lane: this.#focused, row, slice }, here !== null);
  }

  #setFocus(lane: number | null): void {
    if (lane === this.#focused) return;
    this.#focused = lane;
    this.events.onFocus(lane);
    this.#schedule();
  }
}
