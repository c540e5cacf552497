// SPDX-License-Identifier: Apache-2.0
import type { Span } from "./layout";

// Long enough to follow where something went, short enough not to wait for.
const ZOOM_MS = 160;

// The visible stretch of x of a chart. It glides, unless the user prefers reduced motion.
export class AnimatedSpan {
  #now: Span = { from: 0, to: 1 };
  #glide: { from: Span; to: Span; start: number } | null = null;

  // The same object while nothing moves.
  get now(): Span {
    return this.#now;
  }

  // Where it is when it has come to rest.
  get target(): Span {
    return this.#glide?.to ?? this.#now;
  }

  jumpTo(span: Span): void {
    this.#glide = null;
    this.#now = span;
  }

  glideTo(span: Span): void {
    if (matchMedia("(prefers-reduced-motion: reduce)").matches) return this.jumpTo(span);
    this.#glide = { from: this.#now, to: span, start: performance.now() };
  }

  // Moves on to the time of a frame, ms. True if another frame must follow.
  advance(time: number): boolean {
    if (!this.#glide) return false;
    const { from, to, start } = this.#glide;
    const part = Math.min(1, Math.max(0, (time - start) / ZOOM_MS));
    if (part === 1) {
      this.jumpTo(to);
      return false;
    }
    const eased = 1 - (1 - part) ** 3;
    this.#now = { from: from.from + (to.from - from.from) * eased, to: from.to + (to.to - from.to) * eased };
    return true;
  }
}
