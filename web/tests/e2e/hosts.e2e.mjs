// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";

export const tests = [
  {
    name: "with several hosts the page opens on their list, and a host leads to its pages and back",
    scenario: "hosts",
    async run(page, server) {
      await page.raw.waitForSelector(".hosts");
      const [busy, silent] = await page.raw.locator(".hosts:not(.host-incidents) tbody tr").allInnerTexts();
      assert.match(busy, /train-07[^]*8[^]*54[^]*2[^]*3,200 MB/);
      assert.match(silent, /train-08[^]*silent for \d/);
      await page.raw.getByRole("link", { name: "train-07" }).first().click();
      await page.ready();
      assert.equal(page.param("host"), "train-07");
      const asked = server.requests.filter((url) => /flamegraph|strips|processes|devices|incidents/.test(url));
      assert.ok(asked.length >= 5 && asked.every((url) => url.includes("host=train-07")), asked.join("\n"));
      await page.raw.getByLabel("Host", { exact: true }).selectOption("train-08");
      await page.ready();
      assert.equal(page.param("host"), "train-08");
      await page.raw.goBack();
      await page.ready();
      assert.equal(await page.raw.getByLabel("Host", { exact: true }).inputValue(), "train-07");
      await page.raw.getByLabel("Host", { exact: true }).selectOption("");
      await page.raw.waitForSelector(".hosts");
      assert.equal(page.param("host"), null);
    },
  },
  {
    name: "the list has the incidents of all hosts, which lead to those of their host",
    scenario: "hosts",
    async run(page) {
      await page.raw.waitForSelector(".host-incidents");
      const [newest, older] = await page.raw.locator(".host-incidents tbody tr").allInnerTexts();
      assert.match(newest, /train-08[^]*hpc \(411\)[^]*2\.2×[^]*Another program took the CPU\./);
      assert.match(older, /train-07[^]*train \(7\)[^]*1\.6×/);
      await page.raw.locator(".host-incidents").getByRole("link", { name: "train-08" }).click();
      await page.raw.getByText("No steps in this selection").waitFor();
      assert.equal(page.param("host"), "train-08");
      assert.equal(page.param("page"), "incidents");
    },
  },
  {
    name: "a choice on a host's page keeps the host",
    scenario: "hosts",
    query: "?host=train-07",
    async run(page) {
      await page.ready();
      await page.press("i");
      assert.equal(page.param("graph"), "flame");
      assert.equal(page.param("host"), "train-07");
    },
  },
  {
    name: "without hosts there is no picker",
    scenario: "live",
    async run(page, server) {
      await page.ready();
      assert.equal(await page.raw.getByLabel("Host", { exact: true }).count(), 0);
      assert.ok(!server.requests.some((url) => url.includes("hosts")), "nothing is asked that the server lacks");
    },
  },
];
