// SPDX-License-Identifier: Apache-2.0
import { describe, expect, test, vi } from "vitest";
import type { TimelineJson, TrackJson } from "../../src/api/types";
import { DARK, LIGHT } from "../../src/flamegraph/palette";
import { coloursOf, kindNameOf, legendOf } from "../../src/timeline/colours";
import { describeSlice } from "../../src/timeline/describe";
import { fitCommand } from "../../src/timeline/draw";
import { hitAt } from "../../src/timeline/hit";
import { laneAt, layoutLanes, rowAt } from "../../src/timeline/layout";
import { parseTimeline } from "../../src/timeline/model";
import { findPicked, isKey, pickedOf, whyNot } from "../../src/timeline/pick";
import { firstEndingAfter, neighbour, sliceAt, statesAt, sumOf } from "../../src/timeline/slices";
import { exactNs, fitted, formatOffset, panned, quantised, rangeOf, spanOf, ticksOf, zoomed } from "../../src/timeline/span";

const P = "0".repeat(31) + "1";
const D = "d".repeat(32);
const ORIGIN = 1763687200000000;

function answer(tracks: TrackJson[], names: TimelineJson["names"] = [{ name: "void gemm(int)", kind: "kernel" }, { name: "[memcpy htod]", kind: "memcpy" }]): TimelineJson {
  return {
    from_us: ORIGIN, to_us: ORIGIN + 1000, resolution_ns: 1024, events: 3, names, tracks, gpu_users: [], omitted_tracks: 0,
    devices: [{ device: D, label: "GPU 0", name: "H100", simulated: false }], processes: [{ process: P, pid: 7, name: "train.py", command: "python3 train.py" }],
  };
}
const stream = (slices: TrackJson["slices"], rows = 1): TrackJson => ({ kind: "stream", device: D, process: P, stream: 7, rows, slices });
const slicesOf = (slices: TrackJson["slices"], rows = 1) => parseTimeline(answer([stream(slices, rows)])).tracks[0]!.slices;

describe("an answer", () => {
  test("has rows that can be searched, empty ones included", () => {
    const slices = slicesOf({ start: [0, 50, 10], length: [20, 5, 1], name: [0, 1, 0], row: [0, 0, 2] }, 4);
    expect([...slices.rowStart]).toEqual([0, 2, 2, 3, 3]);
    expect([...slices.end]).toEqual([20, 55, 11]);
  });

  test.each([
    ["a column of another length", { start: [0, 1], length: [1], name: [0, 0] }, 1],
    ["a name that is not there", { start: [0], length: [1], name: [2] }, 1],
    ["a row that is not there", { start: [0], length: [1], name: [0], row: [1] }, 1],
    ["a negative length", { start: [0], length: [-1], name: [0] }, 1],
    ["slices that are not sorted", { start: [5, 0], length: [1, 1], name: [0, 0] }, 1],
    ["a start that is no number", { start: [Number.NaN], length: [1], name: [0] }, 1],
    ["a billion rows", { start: [], length: [], name: [] }, 1e9],
  ])("with %s is refused", (_, slices, rows) => {
    expect(() => slicesOf(slices, rows)).toThrow(/track 0/);
  });

  test("names copies and sets as the flame graph does", () => {
    const names = [["htod", "memcpy"], ["", "memset"], ["[memcpy dtoh]", "memcpy"], ["memset", "memset"], ["", "kernel"]].map(([name, kind]) => ({ name: name!, kind: kind! }));
    expect(parseTimeline(answer([], names)).names.name).toEqual(["[memcpy htod]", "[memset]", "[memcpy dtoh]", "[memset]", "(without a name)"]);
  });

  test("says when streams were not profiled, and who ran nothing", () => {
    const other = "e".repeat(32);
    const json = answer([stream({ start: [0], length: [10], name: [0] }), { kind: "steps", process: P, rows: 1, slices: { start: [], length: [], name: [] } }]);
    json.devices.push({ device: other, label: "GPU 1", name: "H100", simulated: false });
    json.gpu_users = [
      { process: P, device: D, observed: { start: [100, 500e3], length: [200, 900e3] } },
      { process: P, device: other, observed: { start: [], length: [] } },
    ];
    const timeline = parseTimeline(json);
    expect(timeline.tracks.map(({ kind, device }) => `${kind} ${device}`)).toEqual([`stream ${D}`, `stream ${other}`, "steps undefined"]);
    expect(timeline.tracks[0]!.unobserved).toEqual([{ from: 0, to: 100 }, { from: 300, to: 500e3 }]);
    expect(timeline.tracks[1]!.unobserved).toEqual([{ from: 0, to: 1e6 }]);
    // On either device.
    expect(timeline.tracks[2]!.unobserved).toEqual([{ from: 0, to: 100 }, { from: 300, to: 500e3 }]);
    json.gpu_users[1]!.observed = { start: [200], length: [300] };
    expect(parseTimeline(json).tracks[2]!.unobserved).toEqual([{ from: 0, to: 100 }, { from: 500, to: 500e3 }]);
    json.gpu_users = [];
    expect(parseTimeline(json).tracks.at(-1)!.unobserved).toEqual([]);
    expect(layoutLanes(timeline, []).lanes.map(({ label, detail }) => `${label} ${detail}`)).toEqual(["GPU 0 H100", "stream 7 train.py", "GPU 1 H100", "no work train.py", "train.py pid 7", "steps "]);
    expect(layoutLanes(timeline, []).lanes[4]!.note).toBe("python3 train.py");
  });

  test("stacks the states of an interval in a fixed order", () => {
    const names = [{ name: "sleeping", kind: "state_sleeping" }, { name: "running", kind: "state_running" }];
    const track: TrackJson = { kind: "states", process: P, tid: 1, rows: 1, slices: { start: [0, 0, 100], length: [100, 100, 100], name: [0, 1, 0], busy: [60, 40, 100] } };
    const timeline = parseTimeline(answer([track], names));
    const { slices } = timeline.tracks[0]!;
    expect([...slices.name]).toEqual([1, 0, 0]);
    expect([...slices.busy!]).toEqual([40, 60, 100]);
    expect(statesAt(slices, 50)).toEqual([0, 2]);
    expect(statesAt(slices, 200)).toBeNull();
    expect(describeSlice(timeline, timeline.tracks[0]!, 1)).toMatchObject({ title: "sleeping", parts: [{ label: "running", ns: 40 }, { label: "sleeping", ns: 60 }] });
  });
});

describe("a slice in the address", () => {
  const timeline = parseTimeline(answer([stream({ start: [-5, 50, 50, 50, 2], length: [20, 5, 0, 7, 9], name: [0, 1, 0, 0, 1], row: [0, 0, 0, 0, 1] }, 2)]));
  const origin = ORIGIN - 3600e6;

  test("is found again to the nanosecond, whatever the page's origin is", () => {
    for (let slice = 0; slice < 5; slice++) {
      const picked = pickedOf(timeline, 0, { row: slice === 4 ? 1 : 0, slice }, origin);
      expect(isKey(picked.key)).toBe(true);
      expect(findPicked(timeline, picked.key, origin)).toEqual(picked);
      expect(findPicked(timeline, picked.key, ORIGIN)).toEqual({ ...picked, from: picked.from - 3600e9, to: picked.to - 3600e9 });
    }
    expect(pickedOf(timeline, 0, { row: 0, slice: 0 }, origin).key).toBe(`stream,${P},${D},7,,0,1763687199999999995,20`);
  });

  test("is one state of an interval", () => {
    const names = [{ name: "running", kind: "state_running" }, { name: "sleeping", kind: "state_sleeping" }];
    const states: TrackJson = { kind: "states", process: P, tid: 3, rows: 1, slices: { start: [0, 0], length: [100, 100], name: [0, 1], busy: [60, 40] } };
    const found = parseTimeline(answer([states], names));
    for (const slice of [0, 1]) {
      const { key, name } = pickedOf(found, 0, { row: 0, slice }, origin);
      expect(findPicked(found, key, origin)).toMatchObject({ name, row: 0 });
    }
  });

  test("that is not there has a reason", () => {
    const key = (start: string, length: number, row = 0, streamId = 7) => `stream,${P},${D},${streamId},,${row},17636872000${start},${length}`;
    for (const absent of [key("00000050", 6), key("00000051", 5), key("00000050", 5, 1), key("00000050", 5, 900), key("00000050", 5, 0, 8)]) expect(findPicked(timeline, absent, origin)).toBeNull();
    expect(whyNot(timeline, key("00000050", 5))).toBe("short");
    expect(whyNot(timeline, key("00000050", 2000))).toBe("gone");
    expect(whyNot(timeline, key("01000000", 2000))).toBe("elsewhere");
  });

  test.each(["", "stream", `kernel,${P},${D},7,,0,1,1`, `stream,${P},${D},7,,-1,1,1`, `stream,x,${D},7,,0,1,1`, `stream,${P},${D},7,,0,${"9".repeat(20)},1`])("is not “%s”", (key) => {
    expect(isKey(key)).toBe(false);
  });
});

describe("finding slices", () => {
  // The first is under the second and third, and ends after them.
  const slices = slicesOf({ start: [0, 10, 30, 200, 300], length: [100, 5, 5, 0, 50], name: [0, 1, 0, 0, 1] });

  test("a long slice that began before a time is found behind short ones that ended", () => {
    expect(firstEndingAfter(slices, 0, 40)).toBe(0);
    expect(firstEndingAfter(slices, 0, 100)).toBe(3);
    expect(firstEndingAfter(slices, 0, 400)).toBe(5);
  });

  test("the one that is drawn over the others is hit, then the nearest", () => {
    expect(sliceAt(slices, 0, 12, 0)).toBe(1);
    expect(sliceAt(slices, 0, 50, 0)).toBe(0);
    expect(sliceAt(slices, 0, 150, 10)).toBeNull();
    expect(sliceAt(slices, 0, 198, 3)).toBe(3);
    expect(sliceAt(slices, 0, 202, 3)).toBe(3);
  });

  test("neighbours are in the order of their starts", () => {
    expect(neighbour(slices, 0, 10, 1)).toBe(2);
    expect(neighbour(slices, 0, 10, -1)).toBe(0);
    expect(neighbour(slices, 0, 0, -1)).toBeNull();
    expect(neighbour(slices, 0, 300, 1)).toBeNull();
  });

  test("a sum counts the part of a slice that is in the time", () => {
    const sums = slicesOf({ start: [0, 100], length: [100, 100], name: [0, 1], count: [5, 7], busy: [50, 80] });
    expect(sumOf(sums, 50, 300)).toEqual({ events: 12, busy: 25 + 80, most: 1 });
    expect(sumOf(sums, 500, 600)).toEqual({ events: 0, busy: 0, most: null });
  });
});

describe("the visible time", () => {
  const bounds = { from: 0, to: 1e9 };

  test("stays within the bounds and is never shorter than 10 µs", () => {
    expect(panned({ from: 0, to: 1e6 }, -5e6, bounds)).toEqual({ from: 0, to: 1e6 });
    expect(panned({ from: 0, to: 1e6 }, 5e9, bounds)).toEqual({ from: 999e6, to: 1e9 });
    expect(fitted({ from: -1e12, to: 1e12 }, bounds)).toEqual(bounds);
    expect(fitted({ from: 500, to: 600 }, bounds)).toEqual({ from: 0, to: 10_000 });
    expect(zoomed({ from: 0, to: 20_000 }, 0.001, 0.5, bounds)).toEqual({ from: 5000, to: 15_000 });
  });

  test("zooming keeps the time under the pointer", () => {
    const { from, to } = zoomed({ from: 4e8, to: 6e8 }, 0.5, 0.25, bounds);
    expect(from + 0.25 * (to - from)).toBe(4.5e8);
    expect(to - from).toBe(1e8);
  });

  test("survives the address in whole µs", () => {
    const range = { from: ORIGIN + 12, to: ORIGIN + 40 };
    expect(rangeOf(spanOf(range, ORIGIN), ORIGIN)).toEqual(range);
    expect(exactNs(1_000_000_123, ORIGIN)).toBe("1763687201000000123");
  });

  test("a request covers the visible time with half of it on either side, and seldom changes", () => {
    const all = { from: 0, to: 1e12 };
    const seen = new Set<string>();
    for (let from = 5e8; from < 5e8 + 1e5; from += 500) {
      const asked = quantised({ from, to: from + 1e5 }, 1233, all);
      expect(asked.from).toBeLessThanOrEqual(from - 5e4);
      expect(asked.to).toBeGreaterThanOrEqual(from + 1.5e5);
      expect(asked.to - asked.from).toBeLessThan(5e5);
      expect(asked.columns).toBe(3900);
      seen.add(JSON.stringify(asked));
    }
    expect(seen.size).toBeLessThanOrEqual(3);
    expect(quantised({ from: 0, to: 100 }, 9999, { from: 0, to: 100 })).toEqual({ from: 0, to: 100, columns: 8000 });
  });

  test("ticks are at round times after the base, and long spans have those of a clock", () => {
    const ticks = ticksOf({ from: 12_300, to: 45_600 }, 10, ORIGIN);
    expect(ticks).toMatchObject({ base: 0, step: 5000, at: [15_000, 20_000, 25_000, 30_000, 35_000, 40_000, 45_000] });
    expect(formatOffset(15_000, 5000, 33_300)).toBe("15\u202fµs");
    expect(formatOffset(1_250_000, 50_000, 2e6)).toBe("1.25\u202fms");
    expect(ticksOf({ from: 0, to: 900e9 }, 12, ORIGIN)).toMatchObject({ base: null, step: 120e9 });
  });

  test("ticks keep their times of day after the clocks have changed", () => {
    // Berlin's, of 2025.
    const [spring, autumn] = [Date.UTC(2025, 2, 30, 1), Date.UTC(2025, 9, 26, 1)];
    const zoneOf = (ms: number) => (ms >= spring && ms < autumn ? -120 : -60);
    const zone = vi.spyOn(Date.prototype, "getTimezoneOffset").mockImplementation(function (this: Date) {
      return zoneOf(this.getTime());
    });
    // The local hours of the ticks from a local midnight on.
    const hoursOf = (day: number, hours: number, most: number) => {
      const midnight = day + zoneOf(day) * 60_000;
      return ticksOf({ from: 0, to: hours * 3600e9 }, most, midnight * 1000).at.map((ns) => {
        const ms = midnight + ns / 1e6;
        return ((ms - zoneOf(ms) * 60_000) / 3600e3) % 24;
      });
    };
    expect(hoursOf(Date.UTC(2025, 9, 26), 13, 7)).toEqual([0, 2, 4, 6, 8, 10, 12]);
    expect(hoursOf(Date.UTC(2025, 9, 26), 5, 5)).toEqual([0, 1, 2, 2, 3, 4]);
    expect(hoursOf(Date.UTC(2025, 2, 30), 11, 6)).toEqual([0, 4, 6, 8, 10, 12]);
    expect(hoursOf(Date.UTC(2025, 9, 25), 73, 4)).toEqual([0, 0, 0, 0]);
    zone.mockRestore();
  });
});

test("a command line that doesn't fit loses its folders before its arguments", () => {
  const context = { measureText: (text: string) => ({ width: text.length * 6 }) } as CanvasRenderingContext2D;
  const command = "/usr/bin/python3 /home/me/a/long/way/train.py --rank 3";
  expect(fitCommand(context, command, 6 * 60)).toBe(command);
  expect(fitCommand(context, command, 6 * 30)).toBe("python3 train.py --rank 3");
  expect(fitCommand(context, command, 6 * 12)).toBe("python3 tra…");
});

describe("the lanes", () => {
  const empty = { start: [], length: [], name: [] };
  const timeline = parseTimeline(
    answer([
      stream(empty),
      { kind: "steps", process: P, rows: 1, slices: empty },
      { kind: "steps", process: P, tid: 8, thread: "actor", rows: 1, slices: empty },
      { kind: "states", process: P, tid: 7, thread: "main", rows: 1, slices: empty },
      { kind: "ranges", process: P, tid: 7, thread: "main", rows: 3, slices: empty },
      { kind: "calls", process: P, tid: 8, thread: "", rows: 1, slices: empty },
    ]),
  );

  test("are devices with streams, then processes with threads; a thread's first track is its heading", () => {
    const { lanes, height } = layoutLanes(timeline, []);
    expect(lanes.map(({ label, detail, closed }) => [label, detail, closed])).toEqual([
      ["GPU 0", "H100", false], ["stream 7", "train.py", null], ["train.py", "pid 7", false], ["steps", "", null],
      ["steps", "actor 8", null], ["main 7", "states", false], ["", "ranges", null], ["thread 8", "calls", null],
    ]);
    expect(lanes[6]!.height).toBe(3 * 18 + 4);
    expect(height).toBe(lanes[7]!.top + lanes[7]!.height);
    expect(new Set(lanes.map(({ id }) => id)).size).toBe(lanes.length);
  });

  test("closing hides what is below", () => {
    expect(layoutLanes(timeline, [`${P}.7`]).lanes.map(({ label }) => label)).toEqual(["GPU 0", "stream 7", "train.py", "steps", "steps", "main 7", "thread 8"]);
    expect(layoutLanes(timeline, [P, D]).lanes.map(({ label }) => label)).toEqual(["GPU 0", "train.py"]);
  });

  test("what is at a place: a slice of the row, or of an interval the state drawn there", () => {
    const names = [{ name: "gemm", kind: "kernel" }, { name: "sleeping", kind: "state_sleeping" }, { name: "running", kind: "state_running" }];
    const states: TrackJson = { kind: "states", process: P, tid: 1, rows: 1, slices: { start: [0, 0], length: [100, 100], name: [1, 2], busy: [60, 40] } };
    const timeline = parseTimeline(answer([stream({ start: [0, 50], length: [20, 20], name: [0, 0], row: [0, 1] }, 2), states], names));
    const { lanes } = layoutLanes(timeline, []);
    const [onStream, onStates] = [1, 3].map((lane) => lanes[lane]!.top) as [number, number];
    const at = (y: number, time: number, near = 0) => hitAt(timeline, lanes, y, time, near);
    expect(at(onStream + 9, 10)).toEqual({ lane: 1, row: 0, slice: 0 });
    expect(at(onStream + 27, 60)).toEqual({ lane: 1, row: 1, slice: 1 });
    expect(at(onStream + 27, 10)).toBeNull();
    expect([at(onStream + 9, 25, 4), at(onStream + 9, 25, 6)]).toEqual([null, { lane: 1, row: 0, slice: 0 }]);
    expect(at(onStream - 5, 10)).toBeNull();
    // Running, the first state, is the lower 40 %.
    expect([at(onStates + 17, 50)?.slice, at(onStates + 12, 50)?.slice, at(onStates + 10, 50)?.slice, at(onStates + 1, 50)?.slice]).toEqual([0, 0, 1, 1]);
    expect([at(onStates + 9, 150), at(onStates + 500, 50)]).toEqual([null, null]);
  });

  test("a place is in a lane and a row, or in none", () => {
    const { lanes, height } = layoutLanes(timeline, []);
    const ranges = lanes[6]!;
    expect(laneAt(lanes, ranges.top + 20)).toBe(6);
    expect(rowAt(ranges, ranges.top + 20)).toBe(1);
    expect(rowAt(ranges, ranges.top + 55)).toBeNull();
    expect(rowAt(lanes[0]!, 2)).toBeNull();
    expect(laneAt(lanes, height)).toBe(-1);
    expect(laneAt([], 0)).toBe(-1);
  });
});

describe("colours", () => {
  test("communication is told by the kernel's name", () => {
    expect(kindNameOf("ncclDevKernel_AllReduce_Sum_bf16_RING_LL(Args)", "kernel")).toBe("communication");
    expect(kindNameOf("ncclAllReduce", "annotation")).toBe("annotation");
  });

  test("depend on the name only, and a busier slice is stronger", () => {
    const names = (name: string[]) => ({ name, shown: name, kind: name.map(() => "kernel") });
    const [one, other] = [coloursOf(names(["a", "b"]), LIGHT), coloursOf(names(["b"]), LIGHT)];
    expect(one.fillOf[1]).toBe(other.fillOf[0]);
    const at = one.fillOf[0]! * 8;
    expect(new Set(one.fills.slice(at, at + 8)).size).toBe(8);
  });

  test("the legend lists what there is, each once", () => {
    const names = { name: ["k", "c", "s", "r"], shown: [], kind: ["kernel", "memcpy", "memset", "state_running"] };
    expect(legendOf(names, DARK).map(({ label }) => label)).toEqual(["kernels", "copies", "running"]);
  });

  test("a sum says how many, how busy, and what most of it was", () => {
    const timeline = parseTimeline(answer([stream({ start: [0], length: [1000], name: [0], count: [1234], busy: [610] })]));
    const described = describeSlice(timeline, timeline.tracks[0]!, 0);
    expect(described.title.replaceAll("\u202f", " ")).toBe("1,234 kernels and copies in 1.00 µs, 61.0 % of it busy");
    expect(described.most).toBe("void gemm(int)");
  });
});
