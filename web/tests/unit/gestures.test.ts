// SPDX-License-Identifier: Apache-2.0
import { setMaxListeners } from "node:events";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { Gestures } from "../../src/timeline/gestures";
import type { Span } from "../../src/timeline/span";

// A canvas of 1000 px from x = 100 on that shows 1 ms of 10.
const BOUNDS = { from: 0, to: 10e6 };

class Surface extends EventTarget {
  scrollTop = 50;
  setPointerCapture(): void {}
  getBoundingClientRect() {
    return { left: 100, width: 1000 };
  }
}

const surfaces = { scroller: new Surface(), canvas: new Surface(), ruler: new Surface() };
let visible: Span;
let calls: string[];
let gestures: Gestures;
let abort: AbortController;

beforeEach(() => {
  vi.stubGlobal("WheelEvent", { DOM_DELTA_LINE: 1 });
  abort = new AbortController();
  setMaxListeners(20, abort.signal);
  visible = { from: 5e6, to: 6e6 };
  calls = [];
  surfaces.scroller.scrollTop = 50;
  const round = ({ from, to }: Span) => `${Math.round(from)}-${Math.round(to)}`;
  gestures = new Gestures(
    surfaces as unknown as ConstructorParameters<typeof Gestures>[0],
    {
      place: () => ({ visible, bounds: BOUNDS }),
      onPress: () => calls.push("press"),
      onMove: (span) => {
        visible = span;
        calls.push(`move ${round(span)}`);
      },
      onRest: () => calls.push("rest"),
      onSelecting: () => gestures.selected && calls.push(`selecting ${round(gestures.selected)}`),
      onSelect: (span) => calls.push(`select ${round(span)}`),
      onPoint: () => {},
    },
    abort.signal,
  );
});
afterEach(() => {
  abort.abort();
  vi.unstubAllGlobals();
});

function send(surface: Surface, type: string, x: number, more: object = {}): Event {
  const event = new Event(type, { cancelable: true });
  surface.dispatchEvent(Object.assign(event, { clientX: x, clientY: 10, button: 0, pointerId: 1, pointerType: "mouse", ...more }));
  return event;
}

test("a drag pans and scrolls from where it began, and rests at its end", () => {
  send(surfaces.canvas, "pointerdown", 500);
  send(surfaces.canvas, "pointermove", 400, { clientY: 0 });
  send(surfaces.canvas, "pointermove", 300, { clientY: 5 });
  expect(gestures.isDragging).toBe(true);
  send(surfaces.canvas, "pointerup", 300);
  expect(calls).toEqual(["press", "move 5100000-6100000", "move 5200000-6200000", "rest"]);
  expect(surfaces.scroller.scrollTop).toBe(55);
  expect([gestures.isDragging, gestures.wasDrag]).toEqual([false, true]);
});

test("a press that hardly moves is a click", () => {
  send(surfaces.canvas, "pointerdown", 500);
  send(surfaces.canvas, "pointermove", 502);
  send(surfaces.canvas, "pointerup", 502);
  expect(calls).toEqual(["press"]);
  expect(gestures.wasDrag).toBe(false);
});

test("a drag on the ruler, or with Shift, selects in either direction", () => {
  for (const [surface, more] of [[surfaces.ruler, {}], [surfaces.canvas, { shiftKey: true }]] as const) {
    calls = [];
    send(surface, "pointerdown", 600, more);
    send(surface, "pointermove", 200);
    expect(gestures.selected).toEqual({ from: 5.1e6, to: 5.5e6 });
    send(surface, "pointermove", -50);
    send(surface, "pointerup", -50);
    expect(calls).toEqual(["press", "selecting 5100000-5500000", "selecting 5000000-5500000", "select 5000000-5500000"]);
    expect(gestures.selected).toBeNull();
  }
});

test("a cancelled drag selects nothing", () => {
  send(surfaces.ruler, "pointerdown", 200);
  send(surfaces.ruler, "pointermove", 600);
  send(surfaces.ruler, "pointercancel", 600);
  expect(calls.at(-1)).toMatch(/^selecting/);
  expect(gestures.selected).toBeNull();
});

test("two fingers zoom around the time between them, and the one that remains does nothing", () => {
  const finger = (id: number) => ({ pointerType: "touch", pointerId: id });
  send(surfaces.canvas, "pointerdown", 500, finger(1));
  send(surfaces.canvas, "pointerdown", 700, finger(2));
  send(surfaces.canvas, "pointermove", 400, finger(1));
  send(surfaces.canvas, "pointermove", 800, finger(2));
  expect(visible).toEqual({ from: 5.25e6, to: 5.75e6 });
  send(surfaces.canvas, "pointerup", 800, finger(2));
  calls = [];
  send(surfaces.canvas, "pointermove", 100, finger(1));
  expect(calls).toEqual([]);
  send(surfaces.canvas, "pointerup", 100, finger(1));
  expect(calls).toEqual(["rest"]);
  expect(gestures.wasDrag).toBe(true);
});

test("a wheel zooms with Ctrl, pans sideways, and else scrolls", () => {
  const wheel = (more: object) => send(surfaces.canvas, "wheel", 600, { deltaMode: 0, deltaX: 0, deltaY: 0, ...more });
  expect(wheel({ deltaY: -1000, ctrlKey: true }).defaultPrevented).toBe(true);
  expect(visible.to - visible.from).toBeCloseTo(1e6 * Math.exp(-0.48), 0);
  expect((visible.from + visible.to) / 2).toBeCloseTo(5.5e6, 0);
  visible = { from: 5e6, to: 6e6 };
  expect(wheel({ deltaX: 100 }).defaultPrevented).toBe(true);
  expect(visible).toEqual({ from: 5.1e6, to: 6.1e6 });
  expect(wheel({ deltaY: 100 }).defaultPrevented).toBe(false);
  expect(visible).toEqual({ from: 5.1e6, to: 6.1e6 });
});
