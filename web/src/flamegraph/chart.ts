// SPDX-License-Identifier: Apache-2.0
import { AnimatedSpan } from "./animated-span";
import { Painter, ROW_HEIGHT, rowAt, rowTop, type Viewport } from "./draw";
import { nodeAt, spanOf, type Layout } from "./layout";
import { findPath, pathHash, ROOT, type Tree } from "./model";
import type { Theme } from "./palette";
import { pixelRatio } from "./pixel-ratio";
import { walk, type Step } from "./walk";

// What to show; the chart itself only remembers the scroll position and the focused frame.
export interface Picture {
  tree: Tree;
  layout: Layout;
  zoom: number;
  flame: boolean;
  fillOf: Uint8Array;
  fills: Uint32Array;
  theme: Theme;
  matches: Uint8Array | null;
}

// The frame under the pointer, and the position in window pixels.
export interface Pointed {
  node: number;
  x: number;
  y: number;
}

export interface ChartEvents {
  onZoom(node: number): void;
  onHover(pointed: Pointed | null): void;
  // The arrow keys moved the focus: describe the frame.
  onFocus(pointed: Pointed | null): void;
}

// The canvas and its scrolling element. The canvas has the size of the visible part and sticks to the top; a spacer
// of the graph's full height provides the scrollbar.
export class Chart {
  #picture: Picture | null = null;
  readonly #visible = new AnimatedSpan();
  #hovered: number | null = null;
  #focused: number | null = null;
  // The pointer's last position over the canvas.
  #pointer: PointerEvent | null = null;
  #frame = 0;
  #ratio = 1;
  readonly #painter: Painter;
  readonly #resizes: ResizeObserver;
  readonly #abort = new AbortController();

  constructor(
    readonly scroller: HTMLElement,
    readonly spacer: HTMLElement,
    readonly canvas: HTMLCanvasElement,
    readonly events: ChartEvents,
  ) {
    this.#painter = new Painter(canvas.getContext("2d", { alpha: false })!);
    this.#resizes = new ResizeObserver(() => this.#resize());
    this.#resizes.observe(scroller);
    const options = { signal: this.#abort.signal };
    addEventListener("beforeprint", () => this.#resize(), options);
    scroller.addEventListener("scroll", () => this.#schedule(), { ...options, passive: true });
    scroller.addEventListener("keydown", (event) => this.#key(event), options);
    scroller.addEventListener("blur", () => this.#setFocus(null), options);
    canvas.addEventListener("pointermove", (event) => this.#hover(event), options);
    canvas.addEventListener("pointerleave", () => this.#hover(null), options);
    canvas.addEventListener("click", (event) => {
      const node = this.#nodeUnder(event);
      if (node !== null) events.onZoom(node);
    }, options);
  }

  destroy(): void {
    this.#abort.abort();
    this.#resizes.disconnect();
    cancelAnimationFrame(this.#frame);
  }

  show(picture: Picture): void {
    const before = this.#picture;
    this.#picture = picture;
    const fromFloor = this.spacer.offsetHeight - this.scroller.scrollTop;
    this.spacer.style.height = `${picture.tree.rows * ROW_HEIGHT}px`;
    if (before?.flame !== picture.flame) {
      this.scroller.scrollTop = picture.flame ? this.spacer.offsetHeight : 0;
    } else if (picture.flame) {
      this.scroller.scrollTop = this.spacer.offsetHeight - fromFloor;
    }
    const target = spanOf(picture.layout, picture.zoom);
    if (before?.tree !== picture.tree) {
      // Nodes have new numbers: the focus follows its frame, and the pointer hits the frame now under it.
      const path = before && this.#focused !== null ? pathHash(before.tree, this.#focused) : null;
      this.#visible.jumpTo(target);
      this.#hovered = this.#focused = null;
      this.#setFocus(path === null ? null : findPath(picture.tree, path), true);
      this.#hover(this.#pointer);
    } else if (before.zoom !== picture.zoom) {
      this.#visible.glideTo(target);
      this.#reveal(picture.zoom);
    }
    this.#schedule();
    // A print doesn't wait for a frame.
    if (before && before.theme !== picture.theme) this.#draw(performance.now());
  }

  #schedule(): void {
    if (!this.#frame) this.#frame = requestAnimationFrame((now) => this.#draw(now));
  }

  #draw(now: number): void {
    this.#frame = 0;
    const picture = this.#picture;
    if (!picture || this.canvas.width === 0) return;
    if (this.#visible.advance(now)) this.#schedule();
    const zoomed = spanOf(picture.layout, picture.zoom);
    this.#painter.draw(
      {
        ...picture,
        span: this.#visible.now,
        zoomRow: picture.tree.depth[picture.zoom]!,
        zoomX: (zoomed.from + zoomed.to) / 2,
        hovered: this.#hovered,
        focused: this.#focused,
      },
      this.#viewport(),
    );
    this.canvas.dataset["drawn"] = String(Number(this.canvas.dataset["drawn"] ?? 0) + 1);
  }

  #viewport(): Viewport {
    return {
      width: this.scroller.clientWidth,
      height: this.scroller.clientHeight,
      scroll: this.scroller.scrollTop,
      ratio: this.#ratio,
    };
  }

  #resize(): void {
    const { clientWidth, clientHeight } = this.scroller;
    this.#ratio = pixelRatio();
    this.canvas.width = Math.round(clientWidth * this.#ratio);
    this.canvas.height = Math.round(clientHeight * this.#ratio);
    this.canvas.style.width = `${clientWidth}px`;
    this.canvas.style.height = `${clientHeight}px`;
    // In this very frame: an emptied canvas would flicker.
    cancelAnimationFrame(this.#frame);
    this.#draw(performance.now());
  }

  #nodeUnder(event: PointerEvent | MouseEvent): number | null {
    const picture = this.#picture;
    if (!picture) return null;
    const { tree, layout, zoom, flame } = picture;
    const viewport = this.#viewport();
    const box = this.canvas.getBoundingClientRect();
    const row = rowAt(event.clientY - box.top, tree.rows, flame, viewport);
    if (row < tree.depth[zoom]!) return row < 0 ? null : ancestorAt(tree, zoom, row);
    const { from, to } = this.#visible.now;
    return nodeAt(layout, row, from + ((event.clientX - box.left) / viewport.width) * (to - from));
  }

  #hover(event: PointerEvent | null): void {
    this.#pointer = event;
    const node = event && this.#nodeUnder(event);
    this.canvas.style.cursor = node === null ? "default" : "pointer";
    this.events.onHover(node === null ? null : { node, x: event!.clientX, y: event!.clientY });
    if (node === this.#hovered) return;
    this.#hovered = node;
    this.#schedule();
  }

  #key(event: KeyboardEvent): void {
    const picture = this.#picture;
    if (!picture || event.altKey || event.ctrlKey || event.metaKey) return;
    if (event.key === "Enter" && this.#focused !== null) {
      event.preventDefault();
      this.events.onZoom(this.#focused);
      return;
    }
    const step = stepOf(event.key, picture.flame);
    if (!step) return;
    event.preventDefault();
    if (this.#focused === null) return this.#setFocus(picture.zoom);
    const { from, to } = spanOf(picture.layout, picture.zoom);
    const pixel = (to - from) / Math.max(1, this.scroller.clientWidth);
    this.#setFocus(walk(picture.tree, picture.layout, this.#focused, step, { from, to }, pixel));
  }

  // `moved` is false if the user moved the focus, true if the same frame has a new place.
  #setFocus(node: number | null, moved = false): void {
    if (node === this.#focused && !moved) return;
    this.#focused = node;
    this.#schedule();
    if (node === null) return this.events.onFocus(null);
    // Arriving data must not scroll the graph while someone reads it.
    if (!moved) this.#reveal(node);
    const { tree, layout, flame, zoom } = this.#picture!;
    const span = spanOf(layout, zoom);
    const own = spanOf(layout, node);
    const middle = (Math.max(own.from, span.from) + Math.min(own.to, span.to)) / 2;
    const box = this.canvas.getBoundingClientRect();
    const x = box.left + ((middle - span.from) / (span.to - span.from)) * box.width;
    const y = box.top + rowTop(tree.depth[node]!, tree.rows, flame, this.#viewport()) + ROW_HEIGHT;
    this.events.onFocus({ node, x, y });
  }

  // Scrolls just enough to show a frame's row, with one row of margin.
  #reveal(node: number): void {
    const { tree, flame } = this.#picture!;
    const viewport = this.#viewport();
    const top = rowTop(tree.depth[node]!, tree.rows, flame, viewport);
    const bottom = top + 2 * ROW_HEIGHT - viewport.height;
    if (top < ROW_HEIGHT) this.scroller.scrollTop += top - ROW_HEIGHT;
    else if (bottom > 0) this.scroller.scrollTop += bottom;
  }
}

function ancestorAt(tree: Tree, node: number, row: number): number {
  let i = node;
  while (i !== ROOT && tree.depth[i]! > row) i = tree.parent[i]!;
  return i;
}

function stepOf(key: string, flame: boolean): Step | null {
  switch (key) {
    case "ArrowUp":
      return flame ? "callee" : "caller";
    case "ArrowDown":
      return flame ? "caller" : "callee";
    case "ArrowLeft":
      return "left";
    case "ArrowRight":
      return "right";
    default:
      return null;
  }
}
