// SPDX-License-Identifier: Apache-2.0
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { AnimatedSpan } from "../../src/flamegraph/animated-span";

let reduced = false;
let now = 0;

beforeEach(() => {
  reduced = false;
  now = 1000;
  vi.stubGlobal("matchMedia", () => ({ matches: reduced }));
  vi.stubGlobal("performance", { now: () => now });
});
afterEach(() => vi.unstubAllGlobals());

function spanAt(from: number, to: number): AnimatedSpan {
  const span = new AnimatedSpan();
  span.jumpTo({ from, to });
  return span;
}

test("a glide passes what is between and arrives", () => {
  const span = spanAt(0, 100);
  const to = { from: 40, to: 60 };
  span.glideTo(to);
  expect(span.target).toBe(to);
  let last = span.now;
  for (const after of [0, 40, 80, 120]) {
    expect(span.advance(1000 + after)).toBe(true);
    expect(span.now.from).toBeGreaterThanOrEqual(last.from);
    expect(span.now.to).toBeLessThanOrEqual(last.to);
    last = span.now;
  }
  expect(last.from).toBeGreaterThan(20);
  expect(span.advance(1160)).toBe(false);
  expect(span.now).toBe(to);
  expect(span.advance(1176)).toBe(false);
});

test("another glide begins where the first one is", () => {
  const span = spanAt(0, 100);
  span.glideTo({ from: 40, to: 60 });
  span.advance(1080);
  const half = span.now;
  now = 1080;
  span.glideTo({ from: 0, to: 100 });
  expect(span.advance(1080)).toBe(true);
  expect(span.now).toEqual(half);
});

test("a jump ends a glide, and a frame before its start shows its beginning", () => {
  const span = spanAt(0, 100);
  span.glideTo({ from: 40, to: 60 });
  span.advance(990);
  expect(span.now).toEqual({ from: 0, to: 100 });
  span.jumpTo(span.target);
  expect(span.advance(1040)).toBe(false);
  expect(span.now).toEqual({ from: 40, to: 60 });
});

test("with reduced motion a glide is a jump", () => {
  reduced = true;
  const span = spanAt(0, 100);
  span.glideTo({ from: 40, to: 60 });
  expect(span.advance(1000)).toBe(false);
  expect(span.now).toEqual({ from: 40, to: 60 });
});
