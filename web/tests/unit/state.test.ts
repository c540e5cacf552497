// SPDX-License-Identifier: Apache-2.0
import { describe, expect, test } from "vitest";
import type { Strip, Strips } from "../../src/api/types";
import { bucketAt, meanOver, nudge, observedIn, partialIn, seriesOf } from "../../src/state/brush";
import { isKeyOf, oneLevelOut } from "../../src/state/keys";
import { baseSelection, DEFAULT_VIEW, formatView, isSameSide, isSettled, lastOf, LIVE_SECONDS, MAX_PROCESSES, parseView, stackSelection, swapped, timeBefore, windowOf, type View } from "../../src/state/view";

const PROCESS = "00000000000000000000000000000abc";
const OTHER = "00000000000000000000000000000def";

describe("the view in the address", () => {
  test("a plain view has a plain address", () => {
    expect(formatView(DEFAULT_VIEW)).toBe("");
    expect(parseView("")).toEqual(DEFAULT_VIEW);
  });

  test("every part survives a round trip through the address", () => {
    const view: View = {
      host: "train-07",
      page: "incidents",
      last: 900,
      brush: { from: 1763687000000000, to: 1763687900000000 },
      base: { time: { from: 1763686000000000, to: 1763686900000000 }, processes: [OTHER] },
      metrics: true,
      type: "gpu",
      wait: null,
      idle: false,
      processes: [PROCESS],
      tid: 12,
      device: PROCESS,
      stream: 7,
      filter: "a & b=c",
      orientation: "flame",
      colour: "kind",
      fold: false,
      helpers: true,
      hide: ["libc.so.6", "a,b"],
      only: "[kernel]",
      zoom: "0123456789abcdef",
      search: "operator<< (int)",
      source: "/src/a b&c.py",
      pick: "std::vector<int>::push_back",
      sort: "name",
      ascending: true,
      closed: [OTHER, `${PROCESS}.12`],
      slice: `stream,${PROCESS},${OTHER},7,,0,1763687200000000123,31000`,
      by: "application",
      price: 2.5,
    };
    expect(parseView(formatView(view))).toEqual(view);
  });

  test("the page opens on GPU time where there is any, and the address says when it is another", () => {
    expect(parseView("", "gpu").type).toBe("gpu");
    expect(parseView("?type=cpu", "gpu").type).toBe("cpu");
    expect(parseView("?while_gpu_idle=1", "gpu")).toEqual({ ...DEFAULT_VIEW, type: "cpu", idle: true });
    expect(formatView({ ...DEFAULT_VIEW, type: "gpu" }, "gpu")).toBe("");
    expect(formatView({ ...DEFAULT_VIEW, type: "cpu" }, "gpu")).toBe("?type=cpu");
  });

  test.each([
    ["from_us=5&to_us=5", "an empty brush"],
    ["from_us=abc&to_us=9", "a brush that is no number"],
    ["process=xyz", "a process that is no id"],
    ["by=colour", "a sum that there is not"],
    ["price=-1", "a price below nothing"],
    ["page=colour", "a page that there is not"],
    ["tid=7", "a thread without a process"],
    ["stream=7", "a stream without a device"],
    ["type=npu", "a type that is not there"],
    ["wait=lock", "a wait in CPU time"],
    ["device=0", "a device that is no id"],
    ["sort=-colour", "an unknown column"],
    ["graph=pie&colour=blue&last=-3", "unknown words"],
    ["last=0", "a window without a length"],
  ])("%s (%s) counts as not given", (query) => {
    expect(parseView(query)).toEqual(DEFAULT_VIEW);
  });

  test("a thread is requested only with its process", () => {
    expect(stackSelection({ ...DEFAULT_VIEW, processes: [PROCESS], tid: 3, filter: "x" })).toEqual({ process: PROCESS, tid: 3, filter: "x" });
    expect(stackSelection({ ...DEFAULT_VIEW, tid: 3 })).toEqual({});
    expect(stackSelection({ ...DEFAULT_VIEW, processes: [PROCESS, OTHER], tid: 3 })).toEqual({ process: `${PROCESS},${OTHER}` });
  });

  test("several processes are one parameter with commas, which holds as many as the server takes", () => {
    const view = { ...DEFAULT_VIEW, processes: [PROCESS, OTHER] };
    expect(formatView(view)).toBe(`?process=${PROCESS},${OTHER}`);
    expect(parseView(formatView(view))).toEqual(view);
    expect(parseView(`?process=${PROCESS},${PROCESS}`).processes).toEqual([PROCESS]);
    expect(parseView(`?process=${PROCESS},xyz`).processes).toEqual([]);
    const many = Array.from({ length: MAX_PROCESSES + 1 }, (_, i) => i.toString(16).padStart(32, "0"));
    expect(parseView(`?process=${many.slice(1).join()}`).processes).toHaveLength(MAX_PROCESSES);
    expect(parseView(`?process=${many.join()}`).processes).toEqual([]);
  });

  test("side A of a comparison has its time and processes, and always says them", () => {
    const available = { from: 100, to: 900 };
    expect(baseSelection({ time: null, processes: [] }, available)).toEqual({ base_from_us: 100, base_to_us: 900, base_process: "all" });
    expect(baseSelection({ time: { from: 200, to: 300 }, processes: [PROCESS, OTHER] }, available)).toEqual({ base_from_us: 200, base_to_us: 300, base_process: `${PROCESS},${OTHER}` });
    const all = { ...DEFAULT_VIEW, base: { time: null, processes: [] } };
    expect(parseView(formatView(all))).toEqual(all);
    expect(parseView("?base_from_us=1&base_to_us=2").base).toBeNull();
    expect(parseView("?base_process=xyz").base).toBeNull();
    expect(parseView("?base_from_us=9&base_to_us=2&base_process=all").base).toEqual({ time: null, processes: [] });
  });

  test("sides that are the same are recognised, and sides can be swapped", () => {
    const view: View = { ...DEFAULT_VIEW, brush: { from: 5, to: 9 }, base: { time: { from: 1, to: 5 }, processes: [PROCESS] } };
    expect(isSameSide(view)).toBe(false);
    expect(isSameSide({ ...view, brush: { from: 1, to: 5 }, processes: [PROCESS] })).toBe(true);
    expect(isSameSide(DEFAULT_VIEW)).toBe(false);
    const other = { ...view, ...swapped(view) };
    expect(other).toMatchObject({ brush: { from: 1, to: 5 }, processes: [PROCESS], base: { time: { from: 5, to: 9 }, processes: [] } });
    expect({ ...other, ...swapped(other) }).toEqual(view);
  });

  test("the time before is as long, within the data", () => {
    expect(timeBefore({ from: 50, to: 60 }, { from: 0, to: 90 })).toEqual({ from: 40, to: 50 });
    expect(timeBefore({ from: 5, to: 60 }, { from: 0, to: 90 })).toEqual({ from: 0, to: 5 });
    expect(timeBefore({ from: 0, to: 60 }, { from: 0, to: 90 })).toBeNull();
  });

  test("the window is the last stretch, but never longer than the data", () => {
    const available = { from: 1_000_000, to: 61_000_000 };
    expect(windowOf(null, available)).toEqual(available);
    expect(windowOf(10, available)).toEqual({ from: 51_000_000, to: 61_000_000 });
    expect(windowOf(999, available)).toEqual(available);
    expect(windowOf(10, null)).toBeNull();
  });

  test("live data opens on its newest stretch, a recording on all of it", () => {
    expect(lastOf(DEFAULT_VIEW, true)).toBe(LIVE_SECONDS);
    expect(lastOf(DEFAULT_VIEW, false)).toBeNull();
    expect(lastOf(parseView("?last=all"), true)).toBeNull();
    expect(lastOf(parseView("?last=60"), true)).toBe(60);
    expect(formatView(parseView("?last=all"))).toBe("?last=all");
  });

  test("an old time range gets no new data", () => {
    const available = { from: 0, to: 200e6 };
    expect(isSettled({ from: 0, to: 100e6 }, available)).toBe(true);
    expect(isSettled({ from: 0, to: 190e6 }, available)).toBe(false);
    expect(isSettled(null, available)).toBe(false);
  });
});

describe("GPU time", () => {
  test("the reason of waits is part of the address", () => {
    const view: View = { ...DEFAULT_VIEW, type: "off_cpu", wait: "run_queue" };
    expect(formatView(view)).toBe("?type=off_cpu&wait=run_queue");
    expect(parseView(formatView(view))).toEqual(view);
    expect(parseView("?type=off_cpu&wait=lunch")).toEqual({ ...view, wait: null });
  });

  test("an idle GPU has no GPU time", () => {
    expect(parseView("?type=gpu&while_gpu_idle=1")).toEqual({ ...DEFAULT_VIEW, type: "gpu" });
    expect(stackSelection({ ...DEFAULT_VIEW, type: "gpu", idle: true })).toEqual({});
    expect(stackSelection(parseView("?while_gpu_idle=1"))).toEqual({ while_gpu_idle: 1 });
  });

  test("device and stream are part of a request", () =>
    expect(stackSelection(parseView(`?device=${PROCESS}&stream=0`))).toEqual({ device: PROCESS, stream: 0 }));
});

describe("Escape", () => {
  test("undoes one choice at a time", () => {
    let view: View = { ...DEFAULT_VIEW, pick: "f", search: "s", zoom: "z", brush: { from: 1, to: 2 } };
    const gone: string[] = [];
    for (let i = 0; i < 5; i++) {
      const change = oneLevelOut(view);
      gone.push(...Object.keys(change));
      view = { ...view, ...change };
    }
    expect(gone).toEqual(["pick", "search", "zoom", "brush"]);
    expect(oneLevelOut({ ...view, page: "timeline", slice: "s", brush: { from: 1, to: 2 } })).toEqual({ slice: null });
  });

  test("leaves alone what the page doesn't show", () => {
    const view: View = { ...DEFAULT_VIEW, source: "a.py", pick: "f", search: "s", zoom: "z", slice: "s", brush: { from: 1, to: 2 } };
    for (const page of ["incidents", "usage"] as const) expect(oneLevelOut({ ...view, page })).toEqual({ brush: null });
    expect(oneLevelOut({ ...view, page: "timeline", slice: null })).toEqual({ brush: null });
    expect(oneLevelOut({ ...view, page: "compare" })).toEqual({ search: "" });
  });
});

test("keys of the graph do nothing on pages without one", () => {
  const keysOf = (change: Partial<View>) => [..."icfgsw?m/"].filter((key) => isKeyOf({ ...DEFAULT_VIEW, ...change }, key)).join("");
  expect(keysOf({ page: "profile" })).toBe("icfgsw?m/");
  expect(keysOf({ page: "profile", source: "a.py" })).toBe("gw?m/");
  expect(keysOf({ page: "compare" })).toBe("igw?m/");
  for (const page of ["timeline", "incidents", "usage"] as const) expect(keysOf({ page })).toBe("?m/");
});

describe("the strip", () => {
  const strip: Strip = { id: "cpu", label: "CPU", unit: "cores", max: 2, values: [1, null, 3, 0] };
  const strips: Strips = { from_us: 0, to_us: 4e6, bucket_us: 1e6, marks: [], marks_omitted: 0, strips: [strip] };

  test("the last bucket has a width", () => {
    expect(seriesOf(strips, strip)).toEqual([[0, 1, 2, 3, 4], [1, null, 3, 0, 0]]);
  });

  test("no spike is drawn where next to nothing was observed", () => {
    const gpu: Strip = { ...strip, id: "gpu", values: [100, 100, 40, 0], observed: [0.01, 0.02, 1, 0.6] };
    expect(seriesOf(strips, gpu)[1]).toEqual([null, 100, 40, 0, 0]);
    // Of buckets of 10 ms most of one is enough.
    expect(seriesOf({ ...strips, bucket_us: 10e3 }, gpu)[1]).toEqual([null, null, 40, 0, 0]);
  });

  test("a bucket is under all of its width", () => {
    expect([-1, 0, 999_999, 1e6, 3_999_999, 4e6].map((us) => bucketAt(strips, strip, us))).toEqual([null, 0, 0, 1, 3, null]);
  });

  test("unobserved values are not zero", () => {
    expect(meanOver(strips, strip, { from: 0, to: 4e6 })).toBeCloseTo(4 / 3);
    expect(meanOver(strips, strip, { from: 1e6, to: 2e6 })).toBeNull();
    expect(meanOver(strips, strip, { from: 2_100_000, to: 2_200_000 })).toBe(3);
  });

  test("a mean is over observed time, with its share", () => {
    const partly = { ...strip, observed: [1, 0, 0.25, 0.75] };
    expect(meanOver(strips, partly, { from: 0, to: 4e6 })).toBeCloseTo((1 + 3 * 0.25) / 2);
    expect(observedIn(strips, partly, { from: 0, to: 4e6 })).toBeCloseTo(0.5);
    expect(observedIn(strips, strip, { from: 0, to: 4e6 })).toBeCloseTo(0.75);
  });

  test("the share of observed time in which work is missing is that of the range", () => {
    const partly = { ...strip, observed: [1, 0, 0.25, 0.75], partial: [0.5, 0, 0, 0.75] };
    expect(partialIn(strips, partly, { from: 0, to: 4e6 })).toBeCloseTo(1.25 / 2);
    expect(partialIn(strips, partly, { from: 2e6, to: 3e6 })).toBe(0);
    expect(partialIn(strips, partly, { from: 1e6, to: 2e6 })).toBe(0);
    expect(partialIn(strips, strip, { from: 0, to: 4e6 })).toBe(0);
  });

  test("arrow keys select, move, resize and stop at the ends", () => {
    const window = { from: 0, to: 1000 };
    const first = nudge(null, window, "ArrowRight", false)!;
    expect(first).toEqual({ from: 450, to: 550 });
    expect(nudge(first, window, "ArrowRight", false)).toEqual({ from: 500, to: 600 });
    expect(nudge(first, window, "ArrowLeft", true)).toEqual({ from: 450, to: 500 });
    expect(nudge({ from: 0, to: 100 }, window, "ArrowLeft", false)).toEqual({ from: 0, to: 100 });
    expect(nudge({ from: 900, to: 990 }, window, "ArrowRight", false)).toEqual({ from: 910, to: 1000 });
    expect(nudge(first, window, "Enter", false)).toBeNull();
  });
});
