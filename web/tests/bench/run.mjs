// SPDX-License-Identifier: Apache-2.0

// Measures the UI in Chromium without a graphics card and prints JSON: frame times of the flame
// graph at 200,000 and 1,000,000 nodes and of a timeline of ten million events, first paint, and the size of the served files.

import { readdirSync, readFileSync } from "node:fs";
import { cpus, loadavg } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import { createServer } from "vite";
import { launchChromium } from "../chromium.mjs";
import { START_US } from "../fixture-data.mjs";
import { startFixture } from "../fixture-server.mjs";
import { largeTimeline } from "../fixture-timeline.mjs";

const WEB = join(dirname(fileURLToPath(import.meta.url)), "../..");
const SIZES = [200_000, 1_000_000];
const LOADS = 7;

const median = (values) => [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)];

async function frameTimes(browser) {
  const vite = await createServer({ root: WEB, configFile: join(WEB, "vite.config.ts"), logLevel: "error", server: { port: 0, host: "127.0.0.1", proxy: {} } });
  await vite.listen();
  const results = [];
  for (const nodes of SIZES) {
    const page = await browser.newPage({ viewport: { width: 1440, height: 900 } });
    await page.goto(new URL("tests/bench/frames.html", vite.resolvedUrls.local[0]).href);
    await page.waitForFunction(() => window.measure);
    results.push(await page.evaluate((n) => window.measure(n), nodes));
    await page.close();
  }
  await vite.close();
  return results;
}

// First contentful paint, and when the graph was first drawn, each from the start of navigation.
async function firstPaint(browser, scenario, nodes) {
  const server = await startFixture({ scenario, nodes });
  const paints = [];
  const graphs = [];
  // One unmeasured load: the fixture generates its data on the first request.
  for (let i = 0; i <= LOADS; i++) {
    const context = await browser.newContext({ viewport: { width: 1440, height: 900 } });
    const page = await context.newPage();
    await page.goto(server.url);
    await page.waitForSelector(".flame canvas[data-drawn]");
    const [paint, graph] = await page.evaluate(async () => {
      const drawn = performance.now();
      const paint = () => performance.getEntriesByName("first-contentful-paint")[0]?.startTime;
      while (paint() === undefined) await new Promise(requestAnimationFrame);
      return [paint(), drawn];
    });
    if (i > 0) {
      paints.push(paint);
      graphs.push(graph);
    }
    await context.close();
  }
  await server.close();
  return { scenario, ...(scenario === "large" && { nodes }), first_paint_ms: Math.round(median(paints)), graph_drawn_ms: Math.round(median(graphs)), loads: LOADS };
}

// Intervals between frames on the page itself while a click zooms.
async function pageZoom(browser, nodes) {
  const server = await startFixture({ scenario: "large", nodes });
  const page = await browser.newPage({ viewport: { width: 1440, height: 900 } });
  await page.goto(server.url);
  await page.waitForSelector(".flame canvas[data-drawn]");
  const box = await page.locator(".flame canvas").boundingBox();
  const intervals = [];
  for (const [x, row] of [[0.1, 2], [0.5, 3], [0.3, 4]]) {
    const recording = page.evaluate(async () => {
      const times = [];
      for (let i = 0; i < 14; i++) times.push(await new Promise(requestAnimationFrame));
      return times.slice(1).map((time, i) => time - times[i]);
    });
    await page.mouse.click(box.x + x * box.width, box.y + (row + 0.5) * 18);
    intervals.push(...(await recording));
    await page.keyboard.press("Escape");
    await page.waitForTimeout(400);
  }
  await page.close();
  await server.close();
  const sorted = intervals.sort((a, b) => a - b);
  return { nodes, median_ms: Number(median(sorted).toFixed(1)), p95_ms: Number(sorted[Math.floor(0.95 * sorted.length)].toFixed(1)), frames: sorted.length };
}

// As many tracks and slices as the server answers with at most: what remains of ten million events.
const TRACKS = 200;
const SLICES = 1500;

// Intervals between frames while the timeline is panned, zoomed and scrolled; answers arrive in between.
async function timelineFrames(browser) {
  const server = await startFixture({ scenario: "gpu" });
  let events = 0;
  server.state.timeline = (selection) => {
    const answer = largeTimeline(selection, TRACKS, SLICES);
    events = Math.max(events, answer.events);
    return answer;
  };
  const page = await browser.newPage({ viewport: { width: 1440, height: 900 } });
  await page.goto(`${server.url}?page=timeline&from_us=${START_US + 400e6}&to_us=${START_US + 500e6}`);
  await page.waitForSelector(".lane.heading");
  await page.waitForTimeout(500);
  const box = await page.locator(".timeline-spacer canvas").boundingBox();
  const result = {};
  for (const [what, wheel] of Object.entries({ pan: { deltaX: 24 }, zoom: { deltaY: -6, ctrlKey: true }, scroll: {} })) {
    const intervals = await page.evaluate(
      async ({ wheel, x, y }) => {
        const canvas = document.querySelector(".timeline-spacer canvas");
        const scroller = document.querySelector(".timeline-scroller");
        const times = [];
        for (let i = 0; i < 120; i++) {
          times.push(await new Promise(requestAnimationFrame));
          if (Object.keys(wheel).length === 0) scroller.scrollTop += 24;
          else canvas.dispatchEvent(new WheelEvent("wheel", { ...wheel, clientX: x, clientY: y, bubbles: true, cancelable: true }));
        }
        return times.slice(1).map((time, i) => time - times[i]);
      },
      { wheel, x: box.x + box.width / 2, y: box.y + 100 },
    );
    const sorted = intervals.sort((a, b) => a - b);
    result[what] = { median_ms: Number(median(sorted).toFixed(1)), p95_ms: Number(sorted[Math.floor(0.95 * sorted.length)].toFixed(1)), max_ms: Number(sorted.at(-1).toFixed(1)), frames: sorted.length };
    await page.waitForTimeout(800);
  }
  await page.close();
  await server.close();
  return { events, tracks: TRACKS, slices: TRACKS * SLICES, ...result };
}

function gzippedBytes() {
  const assets = readdirSync(join(WEB, "dist/assets")).map((name) => join("assets", name));
  const size = (name) => gzipSync(readFileSync(join(WEB, "dist", name))).length;
  return Object.fromEntries(["index.html", ...assets].map((name) => [name.replace(/-[\w-]{8}\./, "."), size(name)]));
}

const { browser, reason } = await launchChromium();
if (!browser) {
  console.error(`can't measure: ${reason}`);
  process.exit(1);
}
const result = {
  machine: { cpu: cpus()[0].model, cores: cpus().length, load_before: Number(loadavg()[0].toFixed(2)), chromium: browser.version(), gpu: false },
  gzipped_bytes: gzippedBytes(),
  first_paint: [await firstPaint(browser, "realistic"), await firstPaint(browser, "large", SIZES[0])],
  flame_graph: await frameTimes(browser),
  timeline_intervals: await timelineFrames(browser),
  page_zoom_intervals: await pageZoom(browser, SIZES[0]),
};
console.log(JSON.stringify(result, null, 2));
await browser.close();
process.exit(0);
