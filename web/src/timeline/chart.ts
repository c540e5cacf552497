// SPDX-License-Identifier: Apache-2.0
import type { Theme } from "../flamegraph/palette";
import type { Viewport } from "../flamegraph/draw";
import type { Colours } from "./colours";
import { TimelinePainter, type Place, type Scene } from "./draw";
import { laneAt, rowAt, SLICE_HEIGHT, type Lane } from "./layout";
import { busyOf, eventsOf, type Timeline } from "./model";
import { drawRuler, RULER_HEIGHT, TICK_SPACE, type SlowTime } from "./ruler";
import { neighbour, sliceAt, statesAt } from "./slices";
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

// A slice of the current answer.
export interface Hit {
  lane: number;
  row: number;
  slice: number;
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

const ZOOM_MS = 160;
const REST_MS = 200;
// A pointer that moved less was a click.
const DRAG_PX = 3;
// A slice is hit if the pointer is so close to it.
const NEAR_PX = 2;
const NEAR_FINGER_PX = 10;
// Fingers that are closer count as so far apart.
const MIN_PINCH_PX = 20;
const PAN_PART = 0.15;

interface Drag {
  x: number;
  y: number;
  span: Span;
  scroll: number;
  selects: boolean;
  moved: boolean;
}

// Two fingers, as they were when the second touched.
interface Pinch {
  span: Span;
  distance: number;
  middle: number;
}

// The canvases and the scrolling element: painting, and pointer, touch, wheel and keys.
export class TimelineChart {
  #picture: TimelinePicture | null = null;
  #span: Span = { from: 0, to: 1 };
  // What the last frame showed.
  #drawn: { span: Span | null; width: number } = { span: null, width: 0 };
  #animation: { from: Span; to: Span; start: number } | null = null;
  // The address's range that this chart shows or was the last to ask for.
  #address = "";
  #rest = 0;
  #drag: Drag | null = null;
  // Fingers by their pointers' ids, the last event of each.
  readonly #fingers = new Map<number, PointerEvent>();
  #pinch: Pinch | null = null;
  // The last press of the pointer was a drag, so the click that follows is none.
  #dragged = false;
  #selected: Span | null = null;
  #hovered: Hit | null = null;
  #focused: number | null = null;
  #pointer: PointerEvent | null = null;
  #frame = 0;
  #ratio = 1;
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
    scroller.addEventListener("scroll", () => this.#schedule(), { ...options, passive: true });
    scroller.addEventListener("keydown", (event) => this.#key(event), options);
    scroller.addEventListener("focusout", () => this.#setFocus(null), options);
    for (const surface of [canvas, ruler]) {
      surface.addEventListener("wheel", (event) => this.#wheel(event), { ...options, passive: false });
      surface.addEventListener("pointerdown", (event) => this.#down(event), options);
      surface.addEventListener("pointermove", (event) => this.#move(event), options);
      surface.addEventListener("pointerup", (event) => this.#up(event), options);
      surface.addEventListener("pointercancel", (event) => this.#cancel(event), options);
      // The browser scrolls with one finger; what two do is a pinch, even if they begin to move upwards.
      surface.addEventListener("touchmove", (event) => event.touches.length > 1 && event.cancelable && event.preventDefault(), { ...options, passive: false });
      surface.addEventListener("pointerleave", () => this.#hover(null), options);
    }
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
  }

  // Zooms around the middle.
  zoomBy(factor: number): void {
    this.#go(zoomed(this.#target(), factor, 0.5, this.#picture!.bounds));
  }

  // One choice: moves there, and is one step in the history.
  #go(span: Span): void {
    const to = fitted(span, this.#picture!.bounds);
    this.#glide(to);
    this.#settle(to, true);
  }

  #target(): Span {
    return this.#animation?.to ?? this.#span;
  }

  #glide(to: Span): void {
    if (matchMedia("(prefers-reduced-motion: reduce)").matches) return this.#moveTo(to);
    this.#animation = { from: this.#span, to, start: performance.now() };
    this.#schedule();
  }

  #moveTo(span: Span): void {
    this.#animation = null;
    this.#span = span;
    this.#schedule();
  }

  // A movement: the address follows when it has come to rest.
  #moveBy(span: Span): void {
    this.#moveTo(span);
    clearTimeout(this.#rest);
    this.#rest = window.setTimeout(() => this.#settle(this.#span, false), REST_MS);
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
    if (this.#animation) {
      const { from, to, start } = this.#animation;
      const t = Math.min(1, Math.max(0, (now - start) / ZOOM_MS));
      const eased = 1 - (1 - t) ** 3;
      this.#span = t === 1 ? to : { from: from.from + (to.from - from.from) * eased, to: from.to + (to.to - from.to) * eased };
      if (t === 1) this.#animation = null;
      else this.#schedule();
    }
    const { width } = this.#viewport();
    const span = this.#span;
    const ticks = ticksOf(span, width / TICK_SPACE, picture.originUs);
    if (span !== this.#drawn.span || width !== this.#drawn.width) {
      this.#drawn = { span, width };
      this.events.onSpan(span, ticks, width);
    }
    const offset = picture.timeline ? (picture.timeline.from_us - picture.originUs) * 1000 : 0;
    const selected = this.#selected;
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
    const ratio = devicePixelRatio || 1;
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

  // The part of the width, 0…1, at which a pointer is.
  #partAt(event: MouseEvent): number {
    const box = this.elements.canvas.getBoundingClientRect();
    return (event.clientX - box.left) / Math.max(1, box.width);
  }

  #timeAt(event: MouseEvent): number {
    return this.#span.from + this.#partAt(event) * (this.#span.to - this.#span.from);
  }

  #hitUnder(event: MouseEvent): Hit | null {
    const picture = this.#picture;
    if (!picture?.timeline || event.target === this.elements.ruler) return null;
    const box = this.elements.canvas.getBoundingClientRect();
    const y = event.clientY - box.top + this.elements.scroller.scrollTop;
    const at = laneAt(picture.lanes, y);
    const lane = picture.lanes[at];
    const row = lane ? rowAt(lane, y) : null;
    if (!lane || row === null) return null;
    const { kind, slices } = this.#timelineOf(at);
    const t = this.#timeAt(event) - this.#offset();
    if (kind !== "states") {
      const reach = (event as PointerEvent).pointerType === "touch" ? NEAR_FINGER_PX : NEAR_PX;
      const near = (reach * (this.#span.to - this.#span.from)) / Math.max(1, box.width);
      const slice = sliceAt(slices, row, t, near);
      return slice === null ? null : { lane: at, row, slice };
    }
    const states = statesAt(slices, t);
    if (!states) return null;
    // The states of an interval lie above each other.
    let height = (1 - (y - lane.top) / SLICE_HEIGHT) * (slices.end[states[0]]! - slices.start[states[0]]!);
    for (let i = states[0]; i < states[1]; i++) {
      height -= busyOf(slices, i);
      if (height <= 0) return { lane: at, row, slice: i };
    }
    return null;
  }

  #hover(event: PointerEvent | null): void {
    this.#pointer = event;
    const hit = event && this.#drag?.moved !== true ? this.#hitUnder(event) : null;
    const { canvas, ruler } = this.elements;
    canvas.style.cursor = this.#drag?.moved ? "grabbing" : hit ? "pointer" : "default";
    const t = event?.target === ruler ? this.#timeAt(event) : null;
    ruler.title = t === null ? "" : (this.#picture?.slow.find(({ from, to }) => from <= t && t <= to)?.text ?? "Drag to select a time");
    this.events.onHover(hit && { ...hit, x: event!.clientX, y: event!.clientY });
    if (hit?.slice === this.#hovered?.slice && hit?.lane === this.#hovered?.lane) return;
    this.#hovered = hit;
    this.#schedule();
  }

  #wheel(event: WheelEvent): void {
    if (!this.#picture || event.altKey) return;
    const pixels = event.deltaMode === WheelEvent.DOM_DELTA_LINE ? 16 : 1;
    const { bounds } = this.#picture;
    const length = this.#span.to - this.#span.from;
    if (event.ctrlKey || event.metaKey) {
      // A notch of a wheel is 100 px or more, a pinch a few; neither shall more than halve or double the span.
      const by = Math.max(-60, Math.min(60, event.deltaY * pixels));
      event.preventDefault();
      this.#moveBy(zoomed(this.#span, Math.exp(by * 0.008), this.#partAt(event), bounds));
      return;
    }
    const across = event.shiftKey && event.deltaX === 0 ? event.deltaY : event.deltaX;
    if (!event.shiftKey && Math.abs(event.deltaX) <= Math.abs(event.deltaY)) return; // scrolls
    event.preventDefault();
    this.#moveBy(panned(this.#span, (across * pixels * length) / Math.max(1, this.#viewport().width), bounds));
  }

  #down(event: PointerEvent): void {
    if (event.button !== 0 || !this.#picture) return;
    const surface = event.currentTarget as HTMLElement;
    const selects = event.shiftKey || surface === this.elements.ruler;
    this.#moveTo(this.#target());
    if (event.pointerType === "touch") this.#fingers.set(event.pointerId, event);
    if (this.#fingers.size > 1) {
      this.#endDrag();
      this.#hover(null);
      this.#pinch = { span: this.#span, ...this.#spread() };
      return;
    }
    this.#drag = { x: event.clientX, y: event.clientY, span: this.#span, scroll: this.elements.scroller.scrollTop, selects, moved: false };
    surface.setPointerCapture(event.pointerId);
  }

  // How far apart the first two fingers are, px, and the part of the width in their middle.
  #spread(): { distance: number; middle: number } {
    const [a, b] = [...this.#fingers.values()] as [PointerEvent, PointerEvent];
    return { distance: Math.max(MIN_PINCH_PX, Math.abs(a.clientX - b.clientX)), middle: (this.#partAt(a) + this.#partAt(b)) / 2 };
  }

  // The time that was between the fingers stays there.
  #pinchBy({ span, distance, middle }: Pinch): void {
    const { bounds } = this.#picture!;
    const now = this.#spread();
    const zoom = zoomed(span, distance / now.distance, middle, bounds);
    this.#moveBy(panned(zoom, (middle - now.middle) * (zoom.to - zoom.from), bounds));
  }

  // True if it belonged to a pinch. The finger that remains after one does nothing.
  #lift({ pointerId }: PointerEvent): boolean {
    this.#fingers.delete(pointerId);
    if (!this.#pinch) return false;
    this.#dragged = true;
    if (this.#fingers.size > 1) this.#pinch = { span: this.#span, ...this.#spread() };
    if (this.#fingers.size === 0) {
      this.#pinch = null;
      this.#settle(this.#span, false);
    }
    return true;
  }

  #cancel(event: PointerEvent): void {
    this.#lift(event);
    this.#endDrag();
  }

  #move(event: PointerEvent): void {
    if (this.#fingers.has(event.pointerId)) this.#fingers.set(event.pointerId, event);
    if (this.#pinch) {
      if (this.#fingers.size > 1) this.#pinchBy(this.#pinch);
      return;
    }
    const drag = this.#drag;
    if (drag && !drag.moved) drag.moved = Math.hypot(event.clientX - drag.x, event.clientY - drag.y) > DRAG_PX;
    if (drag?.moved) {
      const { width } = this.#viewport();
      const perPixel = (drag.span.to - drag.span.from) / Math.max(1, width);
      if (drag.selects) {
        const left = this.elements.canvas.getBoundingClientRect().left;
        const [a, b] = [drag.x, event.clientX].map((x) => drag.span.from + Math.max(0, Math.min(width, x - left)) * perPixel).sort((p, q) => p - q) as [number, number];
        this.#selected = { from: a, to: b };
        this.#schedule();
      } else {
        this.elements.scroller.scrollTop = drag.scroll - (event.clientY - drag.y);
        this.#moveBy(panned(drag.span, -(event.clientX - drag.x) * perPixel, this.#picture!.bounds));
      }
    }
    this.#hover(event);
  }

  #up(event: PointerEvent): void {
    if (this.#lift(event)) return;
    const selected = this.#selected;
    const moved = this.#drag?.moved === true;
    this.#endDrag();
    if (selected) this.#go(selected);
    else if (moved) this.#settle(this.#span, false);
    this.#dragged = moved;
    this.#hover(event);
  }

  #endDrag(): void {
    this.#drag = null;
    this.#selected = null;
    this.#schedule();
  }

  #click(event: MouseEvent): void {
    const hit = event.detail > 1 || this.#dragged ? null : this.#hitUnder(event);
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
      const span = this.#target();
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
    const span = this.#target();
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
