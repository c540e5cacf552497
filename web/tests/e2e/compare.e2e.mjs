// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { START_US } from "../fixture-data.mjs";

const PYTHON = "0000000000000000000000000000a411";
const A = `base_from_us=${START_US}&base_to_us=${START_US + 100e6}&base_process=all`;
const B = `from_us=${START_US + 200e6}&to_us=${START_US + 300e6}`;
const button = (page, name) => page.raw.getByRole("button", { name, exact: true });
const compareRequests = (server) => server.requests.filter((url) => url.includes("/compare"));

export const tests = [
  {
    name: "two ranges are chosen in the strips and compared, the address has both, and Back undoes each step",
    scenario: "gpu",
    async run(page, server) {
      await page.ready();
      await page.raw.getByRole("link", { name: "Compare" }).click();
      assert.match(await page.text(".message"), /Compare two times or two processes[^]*drag over a strip[^]*gpusonde view A\.sonde B\.sonde/);
      assert.equal(compareRequests(server).length, 0, "nothing is asked for one side");
      await page.drag(0.1, 0.2);
      await button(page, "Use this selection as A").click();
      assert.match(await page.text(".message"), /A and B are the same[^]*select B/);
      assert.equal(page.param("base_process"), "all");
      await page.drag(0.5, 0.7);
      await page.ready();
      assert.equal(await page.raw.locator(".base-band").count(), 3, "each strip shows A");
      const [a, b] = ["base_from_us", "from_us"].map((name) => Number(page.param(name)));
      assert.ok(a < b, `${a} ${b}`);
      assert.match(await page.text(".findings"), /B takes 19\.3 % more time than A for the same work/);
      const asked = new URL(compareRequests(server).at(-1), "http://x").searchParams;
      assert.equal(asked.get("type"), "gpu");
      assert.deepEqual([asked.get("base_from_us"), asked.get("from_us")], [String(a), String(b)]);
      await button(page, "Swap").click();
      await page.settle();
      assert.equal(Number(page.param("base_from_us")), b);
      await page.back();
      assert.equal(Number(page.param("base_from_us")), a);
      await button(page, "End the comparison").click();
      assert.equal(page.param("base_process"), null);
      assert.match(await page.text(".message"), /Compare two times/);
    },
  },
  {
    name: "the time before a selection is compared in one step",
    scenario: "gpu",
    query: `?page=compare&${B}`,
    async run(page) {
      await button(page, "Compare with the time before").click();
      await page.ready();
      assert.equal(page.param("base_from_us"), String(START_US + 100e6));
      assert.equal(page.param("base_to_us"), String(START_US + 200e6));
    },
  },
  {
    name: "two processes are compared at the same time",
    scenario: "gpu",
    query: `?page=compare&process=${PYTHON}`,
    async run(page, server) {
      await button(page, "Use this selection as A").click();
      await page.chooseProcess("postgres");
      await page.ready();
      const asked = new URL(compareRequests(server).at(-1), "http://x").searchParams;
      assert.equal(asked.get("base_process"), PYTHON);
      assert.notEqual(asked.get("process"), PYTHON);
      assert.match((await page.text(".sides")).replace(/\s+/g, " "), /A all time python3 411[^]*B all time postgres 207/);
    },
  },
  {
    name: "kernels are listed by their change, with what is not by chance in bold, and a click finds them in the graph",
    scenario: "gpu",
    query: `?page=compare&${A}&${B}`,
    async run(page) {
      await page.ready();
      const rows = (await page.raw.locator(".compared tbody tr").allInnerTexts()).map((text) => text.replace(/[\u202f\u00a0]/g, " ").replace(/\s+/g, " "));
      assert.match(rows[0], /^sm90_xmma_gemm\S+ \+4\.20 s \+20\.0 % 21\.0 s 25\.2 s$/);
      assert.match(rows[1], /^vectorized_elementwise_kernel<4, BinaryFunctor<[^]*\+2\.10 s only in B 0 s 2\.10 s$/);
      assert.match(rows[3], /^ProfilerStep# /);
      assert.deepEqual((await page.raw.locator(".compared strong").allInnerTexts()).length, 2);
      assert.match(await page.raw.locator(".compared td[title]").first().getAttribute("title"), /95 % interval: \+19\.6.% to \+20\.4.%; slower, not by chance/);
      assert.match(await page.text(".compared"), /12 more with smaller differences are left out/);
      assert.match(await page.text(".findings details"), /What is missing \(1\)/);
      const before = (await page.pixels()).hash;
      await page.raw.locator(".compared tbody tr").first().click();
      await page.settle();
      assert.match(page.param("search"), /^sm90_xmma_gemm/);
      assert.notEqual((await page.pixels()).hash, before);
    },
  },
  {
    name: "a frame says what it took on either side, by pointer and by keys, and Enter zooms",
    scenario: "gpu",
    query: `?page=compare&${A}&${B}`,
    async run(page) {
      await page.ready();
      await page.hover(0.1, 2);
      assert.match(await page.text(".tooltip"), /^forward\n28\.0 s in B instead of 22\.0 s in A: \+6\.00 s, \+27\.3 %/);
      await page.raw.locator(".flame-scroller").focus();
      for (let i = 0; i < 3; i++) await page.press("ArrowDown");
      assert.match((await page.raw.locator("#flame-spoken").textContent()).replace(/\u202f/g, " "), /^forward: 28\.0 s in B, 22\.0 s in A, \+27\.3 %/);
      await page.press("Enter");
      await page.settle();
      assert.match(page.param("zoom"), /^[0-9a-f]{16}$/);
      await page.press("Escape");
      assert.equal(page.param("zoom"), null);
      const { colours } = await page.pixels();
      assert.ok(colours > 4, `${colours} colours`);
    },
  },
  {
    name: "without GPU work CPU time is compared, and the page says why kernels are not",
    query: `?page=compare&type=cpu&${A}&${B}`,
    async run(page) {
      await page.ready();
      assert.match(await page.text(".findings"), /GPU work is not compared: neither A nor B has GPU work/);
      assert.equal(await page.count(".compared"), 0);
      assert.match(await page.text(".summary"), /of CPU time instead of[^]*for the same length of time/);
      await button(page, "GPU time").click();
      assert.match(await page.text(".message"), /No GPU time on either side/);
    },
  },
  {
    name: "a side with too much work is an error that says what to do, and trying again works",
    scenario: "gpu",
    query: `?page=compare&${B}`,
    async run(page, server) {
      server.state.failing = "compare";
      await button(page, "Compare with the time before").click();
      assert.match(await page.text(".message"), /4123456 kernels, copies and sets; at most 3000000 are read at once: select a shorter time/);
      server.state.failing = "";
      await page.raw.getByRole("button", { name: /again|retry/i }).click();
      await page.ready();
    },
  },
];
