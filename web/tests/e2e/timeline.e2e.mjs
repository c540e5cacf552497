// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { START_US } from "../fixture-data.mjs";

// 120 ms with two steps: the second kernel of the optimizer is alone from 13.2 ms on.
const FROM = START_US + 100e6;
const QUERY = `?page=timeline&from_us=${FROM}&to_us=${FROM + 120e3}`;
const ADAM = 13.5 / 120;
const STREAM_7 = 32;

const canvas = ".timeline-spacer canvas";

async function ready(page) {
  await page.raw.waitForSelector(`${canvas}[data-drawn]`);
  await page.raw.waitForSelector(".lane.heading");
  await page.settle();
}

async function at(page, across, y) {
  const box = await page.raw.locator(canvas).boundingBox();
  return [box.x + across * box.width, box.y + y];
}

const asked = (server, path) => server.requests.filter((request) => request.includes(`/api/v1/${path}`));
const length = (page) => Number(page.param("to_us")) - Number(page.param("from_us"));

// Moves fingers in steps from one list of points to another, of the same length.
async function swipe(page, from, to) {
  const session = await page.raw.context().newCDPSession(page.raw);
  const send = (type, points) => session.send("Input.dispatchTouchEvent", { type, touchPoints: points.map(([x, y], id) => ({ x, y, id })) });
  const steps = 8;
  for (let count = 1; count <= from.length; count++) await send("touchStart", from.slice(0, count));
  for (let step = 1; step <= steps; step++) await send("touchMove", from.map(([x, y], i) => [x + ((to[i][0] - x) * step) / steps, y + ((to[i][1] - y) * step) / steps]));
  for (let count = to.length - 1; count >= 0; count--) await send("touchEnd", to.slice(0, count));
  await page.settle();
}

export const tests = [
  {
    name: "timeline: a page after the profile, with lanes for devices, streams, processes and threads",
    scenario: "gpu",
    async run(page, server) {
      await page.ready();
      await page.raw.getByRole("link", { name: "Timeline" }).click();
      await ready(page);
      assert.equal(page.param("page"), "timeline");
      const lanes = await page.raw.locator(".lane").allInnerTexts();
      assert.deepEqual(lanes.slice(0, 4).map((text) => text.split("\n")[0]), ["GPU 0", "stream 7", "stream 13", "stream 16"]);
      assert.ok(lanes.some((text) => text.includes("loader-0 431")));
      assert.equal(await page.count(".lane .simulated"), 1);
      assert.equal(await page.text(".timeline .summary strong"), "15.0 min");
      assert.equal(asked(server, "timeline").length, 1, "the whole recording is asked for once");
      assert.match(await page.text(".timeline-legend"), /kernels[^]*communication[^]*running[^]*not observed/);
    },
  },
  {
    name: "timeline: on a phone the name of a simulated GPU is whole",
    scenario: "gpu",
    query: "?page=timeline",
    context: { viewport: { width: 420, height: 860 } },
    async run(page) {
      await ready(page);
      const name = page.raw.locator(".lane:has(.simulated) .lane-name");
      assert.equal(await name.innerText(), "GPU 0");
      assert.ok(await name.evaluate((text) => text.scrollWidth <= text.clientWidth));
    },
  },
  {
    name: "timeline: zooming changes the address without a step in the history, and Profile follows",
    scenario: "gpu",
    query: QUERY,
    async run(page, server) {
      await ready(page);
      await page.raw.mouse.move(...(await at(page, 0.5, STREAM_7)));
      await page.raw.keyboard.down("Control");
      await page.raw.mouse.wheel(0, -100);
      await page.raw.keyboard.up("Control");
      await page.settle();
      assert.ok(length(page) > 60e3 && length(page) < 90e3, `${length(page)} µs`);
      const [from, to] = [page.param("from_us"), page.param("to_us")];
      const middle = (Number(from) + Number(to)) / 2;
      assert.ok(Math.abs(middle - FROM - 60e3) < 500, "the time under the pointer stays");
      await page.raw.getByRole("link", { name: "Profile" }).click();
      await page.ready();
      assert.ok(asked(server, "flamegraph").at(-1).includes(`from_us=${from}&to_us=${to}`));
      await page.back();
      await ready(page);
      assert.equal(page.param("from_us"), from);
    },
  },
  {
    name: "timeline: a drag pans within what was read, and a click after it is none",
    scenario: "gpu",
    query: QUERY,
    async run(page, server) {
      await ready(page);
      const before = asked(server, "timeline").length;
      await page.raw.mouse.move(...(await at(page, 0.5, STREAM_7)));
      await page.raw.mouse.down();
      await page.raw.mouse.move(...(await at(page, 0.48, STREAM_7)), { steps: 4 });
      await page.raw.mouse.up();
      await page.settle();
      assert.ok(Math.abs(Number(page.param("from_us")) - FROM - 2400) < 200, page.param("from_us"));
      assert.equal(length(page), 120e3);
      assert.equal(asked(server, "timeline").length, before);
      assert.equal(await page.count(".timeline-details"), 0);
    },
  },
  {
    name: "timeline: a drag on the ruler selects a time, Back and Escape undo",
    scenario: "gpu",
    query: QUERY,
    async run(page) {
      await ready(page);
      const [x0, y] = await at(page, 0.25, -10);
      const [x1] = await at(page, 0.75, 0);
      await page.raw.mouse.move(x0, y);
      await page.raw.mouse.down();
      await page.raw.mouse.move(x1, y, { steps: 4 });
      await page.raw.mouse.up();
      await page.settle();
      assert.ok(Math.abs(length(page) - 60e3) < 300, `${length(page)}`);
      await page.back();
      assert.equal(length(page), 120e3);
      await page.press("Escape");
      await page.settle();
      assert.equal(page.param("from_us"), null);
      assert.equal(await page.text(".timeline .summary strong"), "15.0 min");
    },
  },
  {
    name: "timeline: a drag over a strip moves it there",
    scenario: "gpu",
    query: "?page=timeline",
    async run(page, server) {
      await ready(page);
      await page.drag(0.2, 0.3);
      assert.ok(length(page) > 80e6 && length(page) < 100e6);
      assert.match(await page.text(".timeline .summary strong"), /^(8|9)\d\.\d s$/);
      assert.equal(asked(server, "timeline").length, 2);
    },
  },
  {
    name: "timeline: hovering names a slice, a click shows the work and its launch, and the profile has it",
    scenario: "gpu",
    query: QUERY,
    async run(page, server) {
      await ready(page);
      await page.raw.mouse.move(...(await at(page, ADAM, STREAM_7)));
      assert.match(await page.text(".tooltip"), /^void multi_tensor_apply_kernel<AdamFunctor>\(float\)\nkernel · GPU 0, stream 7, python3 train.py[^]*2\.40 ms/);
      await page.raw.mouse.click(...(await at(page, ADAM, STREAM_7)));
      await page.settle();
      const details = await page.text(".timeline-details");
      assert.match(details, /128 × 4 × 1 blocks of 256 × 1 × 1 threads/);
      assert.match(details, /Launched 152 µs before it started, by cudaLaunchKernel/);
      assert.match(details, /step \(train\.py:88\)/);
      assert.ok(asked(server, "work")[0].includes(`start_ns=${FROM}`.slice(0, -5)));
      await page.press("Escape");
      await page.settle();
      assert.equal(await page.count(".timeline-details"), 0);
      assert.equal(length(page), 120e3, "Escape closed the details only");
      await page.raw.mouse.click(...(await at(page, ADAM, STREAM_7)));
      await page.settle();
      await page.raw.getByRole("button", { name: "Show in profile" }).click();
      await page.ready();
      assert.equal(page.param("pick"), "void multi_tensor_apply_kernel<AdamFunctor>(float)");
      assert.equal(length(page), 120e3);
    },
  },
  {
    name: "timeline: a click on a sum zooms into it, a double click to a slice",
    scenario: "gpu",
    query: "?page=timeline",
    async run(page) {
      await ready(page);
      await page.raw.mouse.move(...(await at(page, 0.2, STREAM_7)));
      assert.match(await page.text(".tooltip"), /^[\d,]+ kernels and copies in .* busy\n[^]*most: /);
      await page.raw.mouse.click(...(await at(page, 0.2, STREAM_7)));
      await page.settle();
      assert.ok(length(page) < 2e6, `${length(page)}`);
      await page.open(QUERY);
      await ready(page);
      await page.raw.mouse.dblclick(...(await at(page, ADAM, STREAM_7)));
      await page.settle();
      assert.ok(Math.abs(length(page) - 2880) <= 2, `${length(page)}`);
    },
  },
  {
    name: "timeline: a sum that keys picked has no launch and no shape of one of its kernels",
    scenario: "gpu",
    query: "?page=timeline",
    async run(page, server) {
      await page.settle();
      await page.raw.locator(".timeline-scroller").focus();
      await page.press("ArrowDown");
      await page.press("Enter");
      await page.settle();
      assert.match(await page.text(".timeline-details h2"), /^[\d,]+ kernels and copies in /);
      assert.doesNotMatch(await page.text(".timeline-details"), /grid|launched|CUDA graph/i);
      assert.deepEqual(asked(server, "work"), []);
    },
  },
  {
    name: "timeline: closed groups are in the address, and open again",
    scenario: "gpu",
    query: QUERY,
    async run(page) {
      await ready(page);
      const before = await page.count(".lane");
      await page.raw.getByRole("button", { name: /^GPU 0/ }).click();
      await page.settle();
      assert.equal(await page.count(".lane"), before - 3);
      await page.raw.getByRole("button", { name: /^python3 411/ }).click();
      await page.settle();
      assert.equal(page.params("closed").length, 2);
      assert.equal(await page.count(".lane"), before - 6);
      await page.raw.reload();
      await ready(page);
      await page.raw.getByRole("button", { name: /^GPU 0/, expanded: false }).click();
      await page.settle();
      assert.equal(page.params("closed").length, 1);
    },
  },
  {
    name: "timeline: keys pan, zoom, choose a track and walk its slices",
    scenario: "gpu",
    query: QUERY,
    async run(page) {
      await ready(page);
      await page.raw.locator(".timeline-scroller").focus();
      await page.press("ArrowRight");
      await page.settle();
      assert.equal(Number(page.param("from_us")), FROM + 18e3);
      await page.press("+");
      await page.settle();
      assert.equal(length(page), 60e3);
      await page.press("ArrowDown");
      await page.settle();
      assert.match(await page.raw.locator("#timeline-spoken").textContent(), /GPU 0, stream 7/);
      assert.equal(await page.text(".lane.focused .lane-name"), "stream 7");
      const ring = await page.raw.evaluate(() => getComputedStyle(document.querySelector(".timeline-chart"), "::after"));
      assert.equal(ring.outlineStyle, "solid", "the focus is seen around the whole chart");
      await page.press("Enter");
      await page.settle();
      const first = await page.text(".timeline-details");
      await page.press(".");
      await page.settle();
      assert.notEqual(await page.text(".timeline-details"), first);
      await page.press(",");
      await page.settle();
      assert.equal(await page.text(".timeline-details"), first);
    },
  },
  {
    name: "timeline: too many events say so, and a shorter time is one click away",
    scenario: "gpu",
    query: "?page=timeline",
    async run(page, server) {
      await ready(page);
      server.state.failing = "timeline";
      await page.raw.reload();
      assert.match(await page.text(".message.failed"), /31,204,511 events[^]*shorter time/);
      server.state.failing = "";
      await page.raw.getByRole("button", { name: "Show a tenth of it" }).click();
      await ready(page);
      assert.equal(length(page), 90e6);
      assert.equal(await page.count(".message"), 0);
      server.state.failing = "timeline";
      await page.press("Escape");
      assert.match(await page.text(".lost"), /31,204,511 events[^]*Older data is shown/);
      assert.ok((await page.count(".lane")) > 5, "the tracks stay");
    },
  },
  {
    name: "timeline: a kernel whose shape is not known has none in its details",
    scenario: "gpu",
    query: QUERY,
    async run(page) {
      await ready(page);
      await page.raw.route(/api\/v1\/work/, async (route) => {
        const response = await route.fetch();
        const { work, launch } = await response.json();
        await route.fulfill({ response, json: { work: { ...work, grid: [0, 0, 0], block: [0, 0, 0] }, launch } });
      });
      await page.raw.mouse.click(...(await at(page, ADAM, STREAM_7)));
      await page.settle();
      const details = await page.text(".timeline-details");
      assert.match(details, /168 a thread[^]*Launched 152 µs before/);
      assert.doesNotMatch(details, /blocks of/);
    },
  },
  {
    name: "timeline: the picked slice is in the address: reload keeps it, Back and Escape close it",
    scenario: "gpu",
    query: QUERY,
    async run(page, server) {
      const details = () => page.text(".timeline-details");
      await ready(page);
      await page.raw.mouse.click(...(await at(page, ADAM, STREAM_7)));
      await page.settle();
      const key = page.param("slice");
      assert.match(key, /^stream,[0-9a-f]{32},[0-9a-f]{32},7,,0,\d{19},2400000$/);
      const first = await details();
      await page.raw.reload();
      await ready(page);
      assert.equal(await details(), first);
      assert.match(first, /Launched 152 µs before it started/);
      await page.back();
      assert.equal(await page.count(".timeline-details"), 0);
      await page.raw.goForward();
      await page.settle();
      await page.raw.locator(".timeline-scroller").focus();
      await page.press("ArrowDown");
      await page.press(",");
      await page.settle();
      assert.notEqual(page.param("slice"), key);
      await page.back();
      assert.equal(page.param("slice"), null, "walking to a neighbour is no step in the history");
      assert.ok(asked(server, "work").length >= 3);
    },
  },
  {
    name: "timeline: a link to a slice that is not shown says why, and leads to its time",
    scenario: "gpu",
    query: QUERY,
    async run(page) {
      await ready(page);
      await page.raw.mouse.click(...(await at(page, ADAM, STREAM_7)));
      await page.settle();
      const key = page.param("slice");
      await page.open(`?page=timeline&slice=${key}`);
      await ready(page);
      assert.match(await page.text(".timeline-details"), /not here[^]*too short to be shown alone at this zoom/);
      await page.open(`?page=timeline&from_us=${FROM - 50e6}&to_us=${FROM - 49e6}&slice=${key}`);
      await ready(page);
      assert.match(await page.text(".timeline-details"), /outside the time that is shown/);
      await page.raw.getByRole("button", { name: "Go to its time" }).click();
      await page.settle();
      assert.equal(length(page), 2400);
      assert.match(await page.text(".timeline-details"), /multi_tensor_apply_kernel/);
      await page.open(`${QUERY}&slice=${key.replace(/,2400000$/, ",2400001")}`);
      await ready(page);
      assert.match(await page.text(".timeline-details"), /Nothing of this length starts there any more/);
      await page.press("Escape");
      await page.settle();
      assert.equal(page.param("slice"), null);
      assert.equal(await page.count(".timeline-details"), 0);
      assert.equal(length(page), 120e3);
    },
  },
  {
    name: "timeline: one finger pans, or scrolls the tracks; two zoom; a tap near a slice shows its details",
    scenario: "gpu",
    query: QUERY,
    context: { hasTouch: true, viewport: { width: 900, height: 500 } },
    async run(page, server) {
      await ready(page);
      const scrolled = () => page.raw.evaluate(() => document.querySelector(".timeline-scroller").scrollTop);
      const [x0, y] = await at(page, 0.5, 60);
      const [x1] = await at(page, 0.25, 60);
      await swipe(page, [[x0, y]], [[x1, y]]);
      const from = Number(page.param("from_us"));
      assert.ok(Math.abs(from - FROM - 30e3) < 4e3, `${from - FROM} µs`);
      assert.equal(length(page), 120e3);
      assert.equal(await scrolled(), 0);
      await swipe(page, [[x0, y]], [[x0, y - 50]]);
      assert.ok((await scrolled()) > 20, "scrolls");
      assert.equal(Number(page.param("from_us")), from, "scrolling doesn’t pan");
      await swipe(page, [[x0 - 50, y], [x0 + 50, y]], [[x0 - 100, y - 40], [x0 + 100, y + 40]]);
      assert.ok(Math.abs(length(page) - 60e3) < 3e3, `${length(page)} µs`);
      assert.ok(Math.abs(Number(page.param("from_us")) - from - 30e3) < 2e3, "the time between the fingers stays");
      assert.equal(await page.count(".timeline-details"), 0);
      assert.equal(await page.raw.evaluate(() => visualViewport.scale), 1, "the page itself isn’t zoomed");
      await page.open(QUERY);
      await ready(page);
      const [x, above] = await at(page, ADAM, STREAM_7);
      await page.raw.touchscreen.tap(x + 17, above);
      await page.settle();
      assert.match(await page.text(".timeline-details"), /multi_tensor_apply_kernel/);
    },
  },
  {
    name: "timeline: it is read in a worker; a server that is gone is said, and Retry finds it again",
    scenario: "gpu",
    query: "?page=timeline",
    async run(page, server) {
      await ready(page);
      const fetched = await page.raw.evaluate(() => performance.getEntriesByType("resource").map(({ name }) => new URL(name).pathname));
      assert.ok(fetched.includes("/api/v1/overview") && !fetched.includes("/api/v1/timeline"), `${fetched}`);
      assert.equal(asked(server, "timeline").length, 1);
      const file = /worker-.*\.js/;
      await page.raw.route(file, (route) => route.abort());
      await page.raw.reload();
      assert.match(await page.text(".message.failed"), /A file of this page could not be read from 127\.0\.0\.1/);
      await page.raw.unroute(file);
      await page.raw.getByRole("button", { name: "Try again" }).click();
      await ready(page);
      server.state.down = true;
      await page.raw.getByRole("button", { name: "Zoom in" }).click();
      assert.match(await page.text(".lost"), /gpusonde does not respond at 127\.0\.0\.1/);
    },
  },
  {
    name: "timeline: a live page says once that the server is gone, and goes on when it is back",
    scenario: "live",
    query: "?page=timeline",
    async run(page, server) {
      await ready(page);
      server.state.down = true;
      await page.raw.waitForSelector(".live.gone");
      const count = asked(server, "timeline").length;
      await page.raw.getByRole("button", { name: "Zoom in" }).click();
      await page.until(() => asked(server, "timeline").length > count, "request for the shorter time");
      await page.settle();
      assert.equal(await page.count(".timeline .progress"), 0, "reading the shorter time has failed");
      assert.equal(await page.count(".lost"), 1);
      assert.match(await page.text(".lost"), /gpusonde does not respond at 127\.0\.0\.1/);
      server.state.down = false;
      await page.raw.waitForSelector(".live.gone", { state: "detached" });
    },
  },
  {
    name: "timeline: opened while the server is gone, it is read by itself when the server is back",
    scenario: "live",
    async run(page, server) {
      await page.ready();
      server.state.down = true;
      await page.raw.waitForSelector(".live.gone");
      await page.raw.getByRole("link", { name: "Timeline" }).click();
      assert.match(await page.text(".timeline .message"), /No response/);
      server.state.down = false;
      await page.raw.waitForSelector(".timeline-labels .lane");
      await page.settle();
      assert.equal(await page.count(".lost, .timeline .message"), 0);
    },
  },
  {
    name: "timeline: a time without anything, and tracks that were left out",
    scenario: "gpu",
    query: "?page=timeline",
    async run(page, server) {
      await ready(page);
      const answer = (edit) => (selection) => ({ from_us: selection.from_us, to_us: selection.to_us, resolution_ns: 1, events: 0, names: [], devices: [], processes: [], gpu_users: [], tracks: [], omitted_tracks: 0, ...edit });
      server.state.timeline = answer({});
      await page.raw.reload();
      assert.match(await page.text(".message.empty"), /No GPU work, calls or samples in this time/);
      server.state.timeline = answer({ omitted_tracks: 10000 });
      await page.raw.reload();
      assert.match(await page.text(".incomplete"), /10,000 quieter threads and streams are not shown; choose a process/);
    },
  },
  {
    name: "timeline: hostile names are text, and a malformed answer is refused",
    scenario: "gpu",
    query: "?page=timeline",
    async run(page, server) {
      const evil = `<img src=x onerror="window.hurt=1">\u202e${"n".repeat(3000)}`;
      const process = "1".repeat(32);
      const slices = { start: [-5e9, 2e9, 3e9], length: [6e9, 0, 1e15], name: [0, 0, 0] };
      const answer = (tracks) => (selection) => ({ from_us: selection.from_us, to_us: selection.to_us, resolution_ns: 1, events: 3, names: [{ name: evil, kind: "evil" }], devices: [], processes: [{ process, pid: 1, name: evil }], gpu_users: [], tracks, omitted_tracks: 0 });
      server.state.timeline = answer([{ kind: "ranges", process, tid: 1, thread: evil, rows: 1, slices }]);
      await page.raw.reload();
      await ready(page);
      await page.raw.mouse.click(...(await at(page, 0.5, STREAM_7)));
      await page.settle();
      assert.match(await page.text(".timeline-details h2"), /^<img src=x onerror="window\.hurt=1">\\u202en/);
      assert.doesNotMatch(await page.raw.evaluate(() => document.documentElement.outerHTML), /\u202e/);
      assert.ok(await page.raw.evaluate(() => document.querySelector(".timeline-details").scrollWidth <= innerWidth), "long names are broken");
      assert.equal(await page.raw.evaluate(() => window.hurt), undefined);
      server.state.timeline = answer([{ kind: "ranges", process, tid: 1, thread: "t", rows: 1, slices: { ...slices, name: [9] } }]);
      await page.raw.reload();
      assert.match(await page.text(".message.failed"), /track 0/);
    },
  },
  {
    name: "timeline: a live page shows the newest 10 s, stays there, and Newest moves it",
    scenario: "live",
    query: "?page=timeline",
    async run(page, server) {
      await ready(page);
      assert.equal(await page.text(".timeline .summary strong"), "10.0 s");
      const count = asked(server, "timeline").length;
      const polls = () => asked(server, "overview").length;
      const begun = polls();
      await page.until(() => polls() > begun + 1, "two polls");
      await page.settle();
      assert.equal(asked(server, "timeline").length, count, "it isn't polled");
      const before = await page.text(".timeline-base");
      await page.raw.getByRole("button", { name: "Newest" }).click();
      await page.settle();
      assert.notEqual(await page.text(".timeline-base"), before);
      assert.equal(page.param("from_us"), null);
      await page.raw.locator(".timeline-scroller").focus();
      await page.press("ArrowDown");
      await page.press("Enter");
      await page.settle();
      assert.ok(page.param("slice") && page.param("from_us"), "a link to a slice has its time");
    },
  },
  {
    name: "timeline: an incident opens its time, which the ruler marks",
    scenario: "gpu",
    query: "?page=incidents",
    async run(page) {
      await page.raw.getByRole("button", { name: "Timeline" }).click();
      await ready(page);
      assert.equal(page.param("page"), "timeline");
      assert.equal(length(page), 12e6);
      const [x, y] = await at(page, 0.5, -6);
      await page.raw.mouse.move(x, y);
      assert.match(await page.raw.locator(".timeline-ruler canvas").getAttribute("title"), /taken by cc1plus/);
    },
  },
  ...[["light", 1440], ["dark", 1024]].map(([colorScheme, width]) => ({
    name: `timeline: ${colorScheme}, ${width} px wide: drawn over the whole width, nothing overflows`,
    scenario: "gpu",
    query: QUERY,
    context: { colorScheme, viewport: { width, height: 900 } },
    async run(page) {
      await ready(page);
      const { colours, overflow, right } = await page.raw.evaluate((selector) => {
        const surface = document.querySelector(selector);
        const { data } = surface.getContext("2d").getImageData(0, 0, surface.width, surface.height);
        const scroller = document.querySelector(".timeline-scroller");
        return { colours: new Set(new Uint32Array(data.buffer)).size, overflow: document.documentElement.scrollWidth - innerWidth, right: scroller.clientWidth - 220 - surface.clientWidth };
      }, canvas);
      assert.ok(colours > 12, `${colours} colours`);
      assert.ok(overflow <= 0, `${overflow} px wider than the window`);
      assert.equal(right, 0);
    },
  })),
];
