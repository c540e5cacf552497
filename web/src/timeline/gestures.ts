// SPDX-License-Identifier: Apache-2.0
import { panned, zoomed, type Span } from "./span";

// A pointer that moved less was a click.
const DRAG_PX = 3;
// Fingers that are closer count as so far apart.
const MIN_PINCH_PX = 20;

export interface GestureEvents {
  // What is visible and what can be, ns since the origin; null while there is nothing to move.
  place(): { visible: Span; bounds: Span } | null;
  // A press: what still glides has to arrive.
  onPress(): void;
  // Panned or zoomed by so much; more may follow.
  onMove(span: Span): void;
  onRest(): void;
  // `selected` has changed.
  onSelecting(): void;
  onSelect(span: Span): void;
  // Where the pointer is; null if it has left, or is a second finger.
  onPoint(event: PointerEvent | null): void;
}

export interface Surfaces {
  scroller: HTMLElement;
  canvas: HTMLCanvasElement;
  // Drags on it select; elsewhere they do with Shift.
  ruler: HTMLCanvasElement;
}

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

// Dragging, pinching and wheels: they pan and zoom the visible span, scroll the lanes, or select a time.
export class Gestures {
  #drag: Drag | null = null;
  // Fingers by their pointers' ids, the last event of each.
  readonly #fingers = new Map<number, PointerEvent>();
  #pinch: Pinch | null = null;
  #selected: Span | null = null;
  #wasDrag = false;

  constructor(
    readonly surfaces: Surfaces,
    readonly events: GestureEvents,
    signal: AbortSignal,
  ) {
    for (const surface of [surfaces.canvas, surfaces.ruler]) {
      surface.addEventListener("wheel", (event) => this.#wheel(event), { signal, passive: false });
      surface.addEventListener("pointerdown", (event) => this.#down(event), { signal });
      surface.addEventListener("pointermove", (event) => this.#move(event), { signal });
      surface.addEventListener("pointerup", (event) => this.#up(event), { signal });
      surface.addEventListener("pointercancel", (event) => this.#cancel(event), { signal });
      // The browser scrolls with one finger; what two do is a pinch, even if they begin to move upwards.
      surface.addEventListener("touchmove", (event) => event.touches.length > 1 && event.cancelable && event.preventDefault(), { signal, passive: false });
      surface.addEventListener("pointerleave", () => events.onPoint(null), { signal });
    }
  }

  // What a drag selects so far.
  get selected(): Span | null {
    return this.#selected;
  }

  get isDragging(): boolean {
    return this.#drag?.moved === true;
  }

  // The last press of the pointer was a drag, so the click that follows is none.
  get wasDrag(): boolean {
    return this.#wasDrag;
  }

  #width(): number {
    return Math.max(1, this.surfaces.canvas.getBoundingClientRect().width);
  }

  // The part of the width, 0…1, at which a pointer is.
  partAt(event: MouseEvent): number {
    const { left, width } = this.surfaces.canvas.getBoundingClientRect();
    return (event.clientX - left) / Math.max(1, width);
  }

  #wheel(event: WheelEvent): void {
    const place = this.events.place();
    if (!place || event.altKey) return;
    const { visible, bounds } = place;
    const pixels = event.deltaMode === WheelEvent.DOM_DELTA_LINE ? 16 : 1;
    if (event.ctrlKey || event.metaKey) {
      // A notch of a wheel is 100 px or more, a pinch a few; neither shall more than halve or double the span.
      const by = Math.max(-60, Math.min(60, event.deltaY * pixels));
      event.preventDefault();
      this.events.onMove(zoomed(visible, Math.exp(by * 0.008), this.partAt(event), bounds));
      return;
    }
    const across = event.shiftKey && event.deltaX === 0 ? event.deltaY : event.deltaX;
    if (!event.shiftKey && Math.abs(event.deltaX) <= Math.abs(event.deltaY)) return; // scrolls
    event.preventDefault();
    this.events.onMove(panned(visible, (across * pixels * (visible.to - visible.from)) / this.#width(), bounds));
  }

  #down(event: PointerEvent): void {
    if (event.button !== 0 || !this.events.place()) return;
    const surface = event.currentTarget as HTMLElement;
    this.events.onPress();
    const span = this.events.place()!.visible;
    if (event.pointerType === "touch") this.#fingers.set(event.pointerId, event);
    if (this.#fingers.size > 1) {
      this.#endDrag();
      this.events.onPoint(null);
      this.#pinch = { span, ...this.#spread() };
      return;
    }
    const { scroller, ruler } = this.surfaces;
    const selects = event.shiftKey || surface === ruler;
    this.#drag = { x: event.clientX, y: event.clientY, span, scroll: scroller.scrollTop, selects, moved: false };
    surface.setPointerCapture(event.pointerId);
  }

  #move(event: PointerEvent): void {
    if (this.#fingers.has(event.pointerId)) this.#fingers.set(event.pointerId, event);
    if (this.#pinch) {
      if (this.#fingers.size > 1) this.#pinchBy(this.#pinch);
      return;
    }
    const drag = this.#drag;
    if (drag && !drag.moved) drag.moved = Math.hypot(event.clientX - drag.x, event.clientY - drag.y) > DRAG_PX;
    if (drag?.moved) this.#dragTo(drag, event);
    this.events.onPoint(event);
  }

  #dragTo(drag: Drag, event: PointerEvent): void {
    const { left, width } = this.surfaces.canvas.getBoundingClientRect();
    const perPixel = (drag.span.to - drag.span.from) / Math.max(1, width);
    if (drag.selects) {
      const timeAt = (x: number) => drag.span.from + Math.max(0, Math.min(width, x - left)) * perPixel;
      const [from, to] = [timeAt(drag.x), timeAt(event.clientX)];
      this.#selected = { from: Math.min(from, to), to: Math.max(from, to) };
      this.events.onSelecting();
    } else {
      this.surfaces.scroller.scrollTop = drag.scroll - (event.clientY - drag.y);
      this.events.onMove(panned(drag.span, -(event.clientX - drag.x) * perPixel, this.events.place()!.bounds));
    }
  }

  #up(event: PointerEvent): void {
    if (this.#lift(event)) return;
    const selected = this.#selected;
    const moved = this.isDragging;
    this.#endDrag();
    if (selected) this.events.onSelect(selected);
    else if (moved) this.events.onRest();
    this.#wasDrag = moved;
    this.events.onPoint(event);
  }

  #cancel(event: PointerEvent): void {
    this.#lift(event);
    this.#endDrag();
  }

  #endDrag(): void {
    this.#drag = null;
    this.#selected = null;
    this.events.onSelecting();
  }

  // How far apart the first two fingers are, px, and the part of the width in their middle.
  #spread(): { distance: number; middle: number } {
    const [a, b] = [...this.#fingers.values()] as [PointerEvent, PointerEvent];
    return { distance: Math.max(MIN_PINCH_PX, Math.abs(a.clientX - b.clientX)), middle: (this.partAt(a) + this.partAt(b)) / 2 };
  }

  // The time that was between the fingers stays there.
  #pinchBy({ span, distance, middle }: Pinch): void {
    const { bounds } = this.events.place()!;
    const now = this.#spread();
    const zoom = zoomed(span, distance / now.distance, middle, bounds);
    this.events.onMove(panned(zoom, (middle - now.middle) * (zoom.to - zoom.from), bounds));
  }

  // True if it belonged to a pinch. The finger that remains after one does nothing.
  #lift({ pointerId }: PointerEvent): boolean {
    this.#fingers.delete(pointerId);
    if (!this.#pinch) return false;
    this.#wasDrag = true;
    if (this.#fingers.size > 1) this.#pinch = { span: this.events.place()!.visible, ...this.#spread() };
    if (this.#fingers.size === 0) {
      this.#pinch = null;
      this.events.onRest();
    }
    return true;
  }
}
