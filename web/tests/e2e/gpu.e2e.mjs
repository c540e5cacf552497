// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { DEVICES, START_US as DATA_START_US } from "../fixture-data.mjs";

const GPU0 = DEVICES[0].device;
const pressed = (page, name) => page.raw.getByRole("button", { name, exact: true }).getAttribute("aria-pressed");

// The position of a frame: walks the graph from its root to the frame with arrow keys.
async function focusOn(page, name) {
  await page.raw.locator(".flame-scroller").focus();
  const spoken = () => page.raw.locator("#flame-spoken").textContent();
  for (let i = 0; i < 40; i++) {
    await page.press("ArrowDown");
    if ((await spoken()).startsWith(name)) return (await spoken()).replace(/[\u202f\u00a0]/g, " ");
  }
  throw new Error(`${name} is not on the way down; at ${await spoken()}`);
}

export const tests = [
  {
    name: "a busy share without the work of a paused process is marked as a lower bound",
    scenario: "gpu",
    async run(page) {
      await page.ready();
      const figures = () => page.raw.locator(".strip .figure strong").allInnerTexts();
      assert.ok((await figures()).every((text) => !text.includes("≥")));
      await page.raw.route(/api.v1.(strips|summary|devices)/, async (route) => {
        const response = await route.fetch();
        const json = await response.json();
        if (json.gpu) json.gpu.partial_ns = json.gpu.observed_ns / 4;
        if (json.devices) json.devices[0].partial_ns = json.devices[0].observed_ns / 4;
        if (json.strips) Object.assign(json.strips[0], { observed: json.strips[0].values.map(() => 1), partial: json.strips[0].values.map(() => 0.25) });
        await route.fulfill({ response, json });
      });
      await page.raw.reload();
      await page.ready();
      const [first, second] = await figures();
      assert.match(first, /^≥/);
      assert.doesNotMatch(second, /≥/);
      assert.match(await page.raw.locator(".strip").first().getAttribute("aria-label"), /^GPU 0 over time: at least \d/);
      assert.match(await page.raw.locator(".strip .figure").first().getAttribute("title"), /in 25\.0.% of the observed time, GPU profiling of another process was paused/);
      const lines = await page.raw.locator(".answer-line .answer-share").allInnerTexts();
      assert.deepEqual(lines.filter((text) => /[≥≤]/.test(text)).map((text) => text[0]), ["≥", "≤"]);
      assert.match(await page.raw.getByLabel("Device").locator("option").nth(1).innerText(), /· ≥.*busy$/);
    },
  },
  {
    name: "with GPU work the page opens on GPU time, and says how busy the GPUs were and why idle",
    scenario: "gpu",
    async run(page, server) {
      await page.ready();
      assert.equal(await pressed(page, "GPU time"), "true");
      assert.equal(page.param("type"), null);
      assert.match(await page.text(".summary"), /of GPU time in [\d,]+ kernels and copies/);
      const [busy, idle] = (await page.raw.locator(".answer-line:not(.slow)").allInnerTexts()).map((text) => text.replace(/[\u202f\s]+/g, " "));
      assert.match(busy, /^2 GPUs busy 54\.0 % SM activity 41 %, tensor pipe 12 %; 31 % sm90_xmma_gemm_bf16 ← train\.py:88 step.* GPU time →$/);
      assert.match(idle, /^2 GPUs idle 46\.0 % 61 % of the CPU time during that was in train\.py:41 load_batch → zlib_decompress CPU time while idle →$/);
      await page.raw.locator(".answer-line.idle").click();
      await page.settle();
      assert.equal(page.param("type"), "cpu");
      assert.equal(page.param("while_gpu_idle"), "1");
      await page.raw.locator(".summary", { hasText: "of CPU time while the GPU was idle" }).waitFor();
      assert.equal(await page.raw.locator(".answer-line.idle").getAttribute("aria-current"), "true");
      await page.back();
      await page.raw.locator(".summary", { hasText: "of GPU time" }).waitFor();
      assert.ok(server.requests.some((r) => r.includes("/summary")));
    },
  },
  {
    name: "the page begins with what made steps slow, which leads to the incidents",
    scenario: "gpu",
    async run(page) {
      await page.ready();
      const lines = (await page.raw.locator(".answer-line").allInnerTexts()).map((text) => text.replace(/[\u202f\s]+/g, " "));
      assert.equal(lines.length, 4, lines.join("\n"));
      assert.match(lines[0], /^Steps were slow 2\.9× python3\.11 411 \S.* 01:11:40 – 01:11:52: CPU contention \(0\.93\): the step waited for a CPU 57 %.* Incidents →$/);
      assert.match(lines[1], /^Every step python3\.11 411 CPU contention all the time: 23 % of each step; .* Usual steps →$/);
      const cut = await page.raw.locator(".slow .answer-why").evaluateAll((all) => all.filter((line) => line.scrollHeight > line.clientHeight || line.scrollWidth > line.clientWidth).length);
      assert.equal(cut, 0, "who slowed them comes last");
      assert.match(lines[2], /^2 GPUs busy/);
      await page.raw.locator(".answer-line").first().click();
      await page.raw.locator(".incident").first().waitFor();
      assert.equal(page.param("page"), "incidents");
    },
  },
  {
    name: "an incident that lasts is said to, and those of other processes and times are not the answer",
    scenario: "gpu",
    async run(page) {
      const change = (path, edit) =>
        page.raw.route(`**/api/v1/${path}*`, async (route) => {
          const response = await route.fetch();
          await route.fulfill({ response, json: edit(await response.json()) });
        });
      await change("overview", (overview) => ({ ...overview, live: true }));
      await change("incidents", (found) => {
        const [ended] = found.incidents;
        const newer = { ...ended, id: "6".repeat(32), process: "6".repeat(32), name: "newer", from_us: ended.from_us + 60e6, to_us: ended.to_us + 60e6 };
        const eased = { ...newer, id: "8".repeat(32), process: "8".repeat(32), to_us: null, slowdown: 0.9 };
        return { ...found, programs: [], incidents: [eased, newer, { ...ended, to_us: null }] };
      });
      const line = page.raw.locator(".answer-line.slow");
      await page.raw.reload();
      await page.ready();
      assert.match(await line.innerText(), /^Steps slow now\s+2\.9×\s+python3\.11 411\s+since \S.*01:11:40: CPU contention[^]*3 incidents/);
      await page.open(`?last=all&process=${"6".repeat(32)}`);
      await page.raw.locator(".answer-line").first().waitFor();
      assert.match(await line.innerText(), /^Steps were slow\s+2\.9×\s+newer 411/);
      await page.open(`?last=all&from_us=${DATA_START_US}&to_us=${DATA_START_US + 60e6}`);
      await page.raw.locator(".answer-line.busy").waitFor();
      await page.settle();
      assert.equal(await line.count(), 0);
    },
  },
  {
    name: "the strips of many simulated GPUs say which GPU each is",
    scenario: "gpu",
    async run(page) {
      await page.raw.route("**/api/v1/strips*", async (route) => {
        const response = await route.fetch();
        const found = await response.json();
        const strips = Array.from({ length: 64 }, (_, i) => ({ ...found.strips[0], id: `gpu${i}`, label: `GPU ${100 + i}`, ordinal: 100 + i }));
        await route.fulfill({ response, json: { ...found, marks: [], strips: [...strips, found.strips.at(-1)] } });
      });
      await page.raw.reload();
      await page.ready();
      const cut = await page.raw.locator(".strip-label").evaluateAll((all) => all.filter((label) => label.scrollWidth > label.clientWidth).map((label) => label.innerText));
      assert.deepEqual(cut, []);
      assert.equal(await page.count(".strip-label"), 65);
    },
  },
  {
    name: "Tab leads to one strip, and the arrow keys to the others",
    scenario: "gpu",
    async run(page) {
      await page.ready();
      const here = () => page.raw.evaluate(() => document.activeElement.closest(".strip")?.querySelector("h2").innerText.trim() ?? "");
      await page.raw.locator(".strip").first().focus();
      const seen = [await here()];
      for (let i = 0; i < 3; i++) {
        await page.press("ArrowDown");
        seen.push(await here());
      }
      assert.deepEqual(seen.map((text) => text.slice(0, 5)), ["GPU 0", "GPU 1", "CPU", "CPU"]);
      await page.press("Tab");
      assert.equal(await here(), "", "the next stop is behind all strips");
      await page.press("Shift+Tab");
      assert.equal(await here(), "CPU", "and the way back leads to the strip that was left");
    },
  },
  {
    name: "a trace is named by its file, and its idle GPU leads to the timeline, as no CPU was sampled",
    scenario: "gpu",
    async run(page) {
      await page.raw.route("**/api/v1/overview*", async (route) => {
        const response = await route.fetch();
        const json = await response.json();
        await route.fulfill({ response, json: { ...json, samples: 0, title: "rank0.json.gz", sources: json.sources.map((source) => ({ ...source, host: "", kind: "trace" })) } });
      });
      await page.raw.reload();
      await page.ready();
      assert.equal(await page.text(".header .host"), "rank0.json.gz");
      assert.equal(await page.raw.title(), "Profile · rank0.json.gz · gpusonde");
      await page.raw.locator(".answer-line.idle").click();
      await page.raw.waitForSelector(".timeline canvas");
      assert.equal(page.param("page"), "timeline");
    },
  },
  {
    name: "devices of two traces are told apart, and CPUs of which nothing is known have no strip",
    scenario: "gpu",
    async run(page) {
      const change = (path, edit) =>
        page.raw.route(`**/api/v1/${path}*`, async (route) => {
          const response = await route.fetch();
          await route.fulfill({ response, json: edit(await response.json()) });
        });
      const named = (device) => ({ ...device, label: `GPU 0, the_same_job_on_8_nodes.rank_${device.ordinal}.json` });
      await change("overview", (overview) => ({ ...overview, samples: 0 }));
      await change("devices", ({ devices }) => ({ devices: devices.map(named) }));
      await change("strips", (found) => ({
        ...found, strips: found.strips.map((strip) => (strip.id === "cpu" ? { ...strip, values: strip.values.map(() => null) } : named(strip))),
      }));
      await page.raw.reload();
      await page.ready();
      const shown = await page.raw.locator(".strip h2").allInnerTexts();
      assert.deepEqual(shown.map((label) => label.replace(/\s+/g, " ").trim()), ["GPU 0, the_…rank_0.json simulated", "GPU 0, the_…rank_1.json simulated"]);
      const choices = await page.raw.getByLabel("Device").locator("option").allInnerTexts();
      assert.match(choices[2], /^GPU 0, the_same_job_on_8_nodes\.rank_1\.json · /);
    },
  },
  {
    name: "process and thread are the graph's roots, with the command line; interpreter, start-up and driver are folded",
    scenario: "gpu",
    async run(page) {
      await page.ready();
      await page.hover(0.1, 1);
      assert.match(await page.text(".tooltip"), /^python3 train\.py --data \/mnt\/data \(pid 411\)\nprocess/);
      await page.hover(0.1, 2);
      assert.match(await page.text(".tooltip"), /^main thread\nthread/);
      const names = (await page.rows(100)).map(([name]) => name);
      assert.match(names[0], /^sm90_xmma_gemm/, "kernels come first");
      for (const name of ["Py_BytesMain", "cuLaunchKernel", "main thread"]) assert.ok(!names.includes(name), name);
      assert.ok(!/libcuda/.test(await page.text(".legend")), "the legend lists only drawn groups");
    },
  },
  {
    name: "threads of profilers are hidden, counted, and shown on demand",
    scenario: "gpu",
    async run(page, server) {
      await page.ready();
      await page.raw.getByRole("button", { name: /\+ 41\.0\sms in 2 profiler threads/ }).click();
      await page.settle();
      assert.equal(page.param("threads"), "all");
      assert.ok(server.requests.some((r) => r.includes("helper_threads=1")));
      await page.raw.getByRole("button", { name: "hide profiler threads" }).click();
      assert.equal(page.param("threads"), null);
    },
  },
  {
    name: "a click selects CPU time, GPU time or waiting, the address follows, and Back returns",
    scenario: "gpu",
    query: "?type=cpu",
    async run(page, server) {
      await page.ready();
      await page.press("g");
      await page.settle();
      assert.equal(page.param("type"), null, "what the page opens on needs no address");
      assert.ok(server.requests.some((r) => r.includes("flamegraph") && r.includes("type=gpu")));
      assert.match((await page.rows(1))[0][0], /^sm90_xmma_gemm/);
      await page.back();
      assert.equal(page.param("type"), "cpu");
      assert.match(await page.text(".summary"), /of CPU time/);
    },
  },
  {
    name: "a kernel's share of time has an interval, exact values have none",
    scenario: "gpu",
    query: "?type=gpu",
    async run(page) {
      await page.ready();
      const spoken = await focusOn(page, "sm90_xmma_gemm");
      assert.match(spoken, /total [\d.]+ (s|min) ± [\d.]+ s/);
      assert.match(await page.text(".tooltip"), /± is the 95 % interval/);
      await page.raw.locator(".search").fill("multi_tensor");
      await page.settle();
      await page.raw.getByRole("button", { name: "by kind" }).click();
      await page.raw.getByRole("button", { name: "Show only GPU compute" }).click({ force: true });
      await page.settle();
      assert.deepEqual(page.params("only"), ["gpu"]);
    },
  },
  {
    name: "frames that folding merges have no interval",
    scenario: "gpu",
    query: "?type=gpu&colour=kind&only=gpu",
    async run(page) {
      await page.ready();
      await page.hover(0.1, 3);
      const tooltip = await page.text(".tooltip");
      assert.match(tooltip, /^sm90_xmma_gemm/);
      assert.match(tooltip, /Estimated; folding merged frames/);
      assert.ok(!tooltip.includes("±"));
    },
  },
  {
    name: "internals are shown on demand",
    scenario: "gpu",
    async run(page) {
      await page.ready();
      await page.press("f");
      await page.settle();
      assert.equal(page.param("fold"), "none");
      const names = (await page.rows(100)).map(([name]) => name);
      for (const name of ["forward", "cuLaunchKernel", "Py_BytesMain"]) assert.ok(names.includes(name), name);
    },
  },
  {
    name: "work of graphs is marked, and so is unsampled work",
    scenario: "gpu",
    query: "?type=gpu&search=%5B",
    async run(page) {
      await page.ready();
      const names = (await page.rows(100)).map(([name]) => name);
      assert.ok(names.includes("[captured in graph]") && names.includes("[stack not sampled]"), names.join());
      assert.match(await page.text(".legend"), /GPU compute[^]*GPU communication[^]*GPU copies/);
    },
  },
  {
    name: "each device has a strip above the CPU's, and they share one brush",
    scenario: "gpu",
    async run(page) {
      await page.ready();
      const labels = await page.raw.locator(".strip h2").allInnerTexts();
      assert.deepEqual(labels.map((label) => label.replace(/\s+/g, " ").trim()), ["GPU 0 simulated", "GPU 1 simulated", "CPU"]);
      await page.drag(0.56, 0.67);
      const widths = await page.raw.locator(".strip .u-select").evaluateAll((all) => all.map((e) => e.offsetWidth / e.parentElement.clientWidth));
      for (const width of widths) assert.ok(Math.abs(width - 0.11) < 0.01, `widths ${widths}`);
      assert.match(await page.text(".strip"), /1\d\.\d %/);
    },
  },
  {
    name: "the devices' state is shown on demand, each under its device, and stays in the address",
    scenario: "gpu",
    async run(page, server) {
      await page.ready();
      assert.equal(await page.count(".strip.state"), 0);
      assert.ok(!server.requests.some((r) => r.includes("metrics=1")), "hidden strips are not requested");
      await page.raw.getByRole("button", { name: "GPU state" }).click();
      await page.settle();
      assert.equal(page.param("metrics"), "1");
      const labels = (await page.raw.locator(".strip h2").allInnerTexts()).map((label) => label.replace(/\s+/g, " ").trim());
      const state = ["SM activity", "Memory used", "SM clock", "Throttling", "Power"];
      assert.deepEqual(labels, ["GPU 0 simulated", ...state, "GPU 1 simulated", ...state, "CPU"]);
      assert.match(await page.raw.locator(".strip.state").nth(4).innerText(), /\d+ W/);
      assert.match(await page.raw.locator(".strip.state").nth(4).getAttribute("aria-label"), /^Power of GPU 0 over time/);
      await page.press("m");
      await page.settle();
      assert.equal(await page.count(".strip.state"), 0);
    },
  },
  {
    name: "XIDs and throttling are marks on their device's strip, with a description",
    scenario: "gpu",
    async run(page) {
      await page.ready();
      const xid = page.raw.locator(".strip").nth(1).locator(".mark.xid");
      assert.match(await xid.getAttribute("title"), /XID 79: the GPU has fallen off the bus/);
      const plot = await page.raw.locator(".strip .u-over").nth(1).boundingBox();
      const needle = await xid.boundingBox();
      assert.ok(Math.abs((needle.x + needle.width / 2 - plot.x) / plot.width - 0.25) < 0.005, "at its time");
      const slow = page.raw.locator(".strip").nth(0).locator(".mark.throttled");
      assert.match(await slow.getAttribute("title"), /slowed down by power cap/);
      const bar = await slow.boundingBox();
      assert.ok(Math.abs((bar.x - plot.x) / plot.width - 0.8) < 0.005 && Math.abs(bar.width / plot.width - 0.2) < 0.005, "for its time");
      assert.match(await page.text(".toggle .alarm"), /1 XID/);
      assert.equal(await page.raw.locator(".strip").nth(2).locator(".mark").count(), 0, "the CPU has none");
    },
  },
  {
    name: "a device and a stream select GPU work, strips and all",
    scenario: "gpu",
    query: "?type=gpu",
    async run(page, server) {
      await page.ready();
      await page.raw.getByRole("combobox", { name: "Device" }).selectOption(GPU0);
      await page.settle();
      assert.equal(await page.count(".strip"), 2);
      await page.raw.getByRole("combobox", { name: "Stream" }).selectOption("13");
      await page.settle();
      assert.equal(page.param("device"), GPU0);
      assert.equal(page.param("stream"), "13");
      assert.ok(server.requests.some((r) => r.includes("flamegraph") && r.includes(`device=${GPU0}`) && r.includes("stream=13")));
      assert.deepEqual((await page.rows(1)).map(([name]) => name), ["[memcpy htod]"]);
      await page.raw.getByRole("combobox", { name: "Device" }).selectOption("");
      assert.equal(page.param("stream"), null);
    },
  },
  {
    name: "while the GPU is idle: by button and by key, of CPU time only",
    scenario: "gpu",
    query: "?type=cpu",
    async run(page, server) {
      await page.ready();
      const whole = await page.text(".summary strong");
      await page.raw.getByRole("button", { name: "while GPU idle" }).click();
      await page.settle();
      assert.equal(page.param("while_gpu_idle"), "1");
      assert.match(await page.text(".summary"), /of CPU time while the GPU was idle/);
      assert.notEqual(await page.text(".summary strong"), whole);
      for (const endpoint of ["strips", "flamegraph"]) assert.ok(server.requests.some((r) => r.includes(endpoint) && r.includes("while_gpu_idle=1")), endpoint);
      for (const type of ["gpu", "off_cpu"]) {
        await page.press("g");
        await page.settle();
        assert.equal(page.param("type") ?? "gpu", type);
        assert.equal(page.param("while_gpu_idle"), null, "an idle GPU has no GPU time, and waits are wholes");
        assert.equal(await page.raw.getByRole("button", { name: "while GPU idle" }).count(), 0);
      }
      await page.press("g");
      await page.settle();
      await page.press("w");
      assert.equal(page.param("while_gpu_idle"), "1");
    },
  },
  {
    name: "every key counts, even faster than the page draws",
    scenario: "gpu",
    async run(page) {
      await page.ready();
      await page.raw.evaluate(() => {
        for (const key of ["g", "g", "f"]) dispatchEvent(new KeyboardEvent("keydown", { key }));
      });
      await page.settle();
      assert.equal(page.param("type"), "cpu", "two on from GPU time");
      assert.equal(page.param("fold"), "none");
    },
  },
  {
    name: "simulated GPU time has a badge beside its total",
    scenario: "gpu",
    query: "?type=gpu",
    async run(page) {
      await page.ready();
      assert.equal(await page.text(".summary .simulated"), "simulated");
      assert.equal(await page.text(".header .simulated"), "simulated");
    },
  },
  {
    name: "without any GPU work the page says why and what to do, and keeps the way back",
    query: "?type=gpu",
    async run(page) {
      assert.match(await page.text(".message.empty"), /no GPU work[^]*gpusonde record -- COMMAND[^]*gpusonde doctor/);
      await page.raw.getByRole("button", { name: "CPU time" }).click();
      await page.ready();
      assert.equal(page.param("type"), null);
    },
  },
  {
    name: "while no program was profiled the page has the lines to start one with, for a shell",
    scenario: "live",
    query: "?type=gpu",
    async run(page) {
      const lines = (await page.text(".message.empty pre")).split("\n");
      assert.deepEqual(lines, [
        "export CUDA_INJECTION64_PATH='/opt/gpu sonde/lib/libgpusonde-inject.so'",
        'export NVTX_INJECTION64_PATH="$CUDA_INJECTION64_PATH"',
        "COMMAND",
      ]);
      await page.raw.setViewportSize({ width: 320, height: 600 });
      const right = await page.raw.locator(".message.empty pre").first().evaluate((e) => e.getBoundingClientRect().right);
      assert.ok(right <= 320, `they wrap in a narrow window: ${right}`);
    },
  },
  {
    name: "a selection without GPU work says what to reset",
    scenario: "gpu",
    query: `?type=gpu&device=${GPU0}&stream=99`,
    async run(page) {
      assert.match(await page.text(".message.empty"), /No GPU work in this selection/);
      await page.raw.getByRole("button", { name: /stream 99/ }).click();
      await page.ready();
      assert.equal(page.param("stream"), null);
      assert.equal(page.param("device"), GPU0);
    },
  },
];
