// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { incidents } from "../fixture-data.mjs";

export const tests = [
  {
    name: "with several hosts the page opens on their list, and a host leads to its pages and back",
    scenario: "hosts",
    async run(page, server) {
      await page.raw.waitForSelector(".hosts");
      const [silent, busy] = await page.raw.locator(".hosts:not(.host-incidents) tbody tr").allInnerTexts();
      assert.match(busy, /train-07[^]*8[^]*54[^]*48\.0\sh \(25\.0\s%\)[^]*2[^]*3,200 MB/);
      assert.match(silent, /train-08[^]*silent since \S/);
      assert.match(await page.text(".lost"), /Rows of train-09 are refused/);
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
      assert.match(await page.text("[aria-label='Incidents of all hosts'] > p"), /1,234 more are only on the pages of their hosts/);
      const size = page.raw.viewportSize();
      await page.raw.setViewportSize({ width: 320, height: size.height });
      const lines = await page.raw.locator(".host-incidents tbody a").evaluateAll((links) => links.map((link) => link.getClientRects().length));
      assert.deepEqual(lines, [1, 1], "a host's name stays on one line");
      await page.raw.setViewportSize(size);
      await page.raw.locator(".host-incidents").getByRole("link", { name: "train-08" }).click();
      await page.raw.getByText("No steps in this selection").waitFor();
      assert.equal(page.param("host"), "train-08");
      assert.equal(page.param("page"), "incidents");
      assert.equal(page.param("last"), "86400", "an incident of the last 24 hours is in the window");
    },
  },
  {
    name: "one GPU is no plural",
    scenario: "hosts",
    async run(page) {
      await page.raw.route("**/api/v1/hosts", async (route) => {
        const json = await (await route.fetch()).json();
        await route.fulfill({ json: { ...json, hosts: json.hosts.map((host, i) => ({ ...host, gpus: i })) } });
      });
      await page.raw.reload();
      assert.match(await page.text(".hosts-line p"), /^1 GPU, /);
    },
  },
  {
    name: "on a phone the list of hosts shows silence, waste and incidents without scrolling",
    scenario: "cluster",
    context: { viewport: { width: 390, height: 800 } },
    async run(page) {
      const heads = page.raw.locator(".hosts:not(.host-incidents) thead th");
      await heads.first().waitFor();
      const shown = await heads.evaluateAll((all) => all.filter((head) => head.clientWidth > 0 && head.getBoundingClientRect().right <= innerWidth).map((head) => head.innerText.trim()));
      assert.deepEqual(shown, ["Host", "Last data", "Held idle", "Incidents"]);
    },
  },
  {
    name: "of many hosts those with problems come first, and the list is filtered and sorted",
    scenario: "cluster",
    async run(page) {
      const rows = page.raw.locator(".hosts:not(.host-incidents) tbody tr");
      await rows.first().waitFor();
      assert.match(await page.text(".hosts-line p"), /1,600 GPUs, 3 silent, 9 with incidents in 24 hours; held for 38,400 h of GPU time in 24 hours, \d\d\.\d % idle/);
      assert.equal(await rows.count(), 25);
      const names = async (count) => (await rows.locator("th").allInnerTexts()).slice(0, count);
      assert.deepEqual(await names(4), ["node-005", "node-072", "node-139", "node-007"]);
      await page.raw.getByRole("button", { name: "Held idle" }).click();
      assert.deepEqual(await names(2), ["node-086", "node-183"]);
      await page.raw.getByRole("button", { name: "Show all 200" }).click();
      assert.equal(await rows.count(), 200);
      await page.raw.getByLabel("Filter hosts").fill("node-19");
      assert.equal(await rows.count(), 10);
      await page.raw.getByLabel("Filter hosts").fill("gone");
      assert.match(await page.text(".all-hosts"), /No host’s name contains “gone”/);
    },
  },
  {
    name: "a list of hosts that can't be read again stays, and the page says that it is old",
    scenario: "hosts",
    async run(page, server) {
      await page.raw.waitForSelector(".hosts");
      server.state.failing = "hosts";
      assert.match(await page.text("[role=alert]"), /the hosts can't be listed\. Older data is shown\./);
      assert.equal(await page.raw.getByRole("link", { name: "train-07" }).first().isVisible(), true);
      server.state.failing = "";
      await page.raw.getByRole("alert").waitFor({ state: "detached" });
    },
  },
  {
    name: "keys of a host's pages leave the list of hosts and the history alone",
    scenario: "hosts",
    async run(page) {
      await page.raw.waitForSelector(".hosts tbody tr");
      const [before, steps] = [page.raw.url(), await page.raw.evaluate(() => history.length)];
      for (const key of ["g", "m", "w", "f", "?", "Escape"]) await page.press(key);
      await page.settle();
      assert.equal(page.raw.url(), before);
      assert.equal(await page.raw.evaluate(() => history.length), steps);
    },
  },
  {
    name: "an address with an unknown host leads to all hosts, and to the host once it sends",
    scenario: "hosts",
    query: "?host=train-99",
    async run(page) {
      let known = false;
      const missing = { error: { code: "not_found", message: "no host 'train-99' has sent anything" } };
      await page.raw.route("**/api/v1/overview?host=train-99", (route) => (known ? route.continue() : route.fulfill({ status: 404, json: missing })));
      await page.raw.reload();
      assert.match(await page.text(".message.failed"), /No such host[^]*train-99 has sent nothing to this server/);
      await page.raw.getByRole("button", { name: "All hosts" }).click();
      await page.raw.getByRole("link", { name: "train-07" }).first().waitFor();
      assert.equal(page.param("host"), null);
      await page.back();
      known = true;
      await page.ready();
      assert.equal(page.param("host"), "train-99");
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
    name: "the time of an incident is shown of its host, and in the window that had it",
    scenario: "hosts",
    query: "?host=train-07&page=incidents&last=86400",
    async run(page) {
      await page.raw.route("**/api/v1/incidents*", (route) => route.fulfill({ json: incidents() }));
      await page.raw.reload();
      for (const [button, shows] of [["Flame graph of that time", null], ["Timeline", "timeline"]]) {
        await page.raw.getByRole("button", { name: button }).first().click();
        await page.settle();
        assert.equal(page.param("page"), shows);
        assert.equal(page.param("host"), "train-07");
        assert.equal(page.param("last"), "86400");
        await page.back();
      }
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
