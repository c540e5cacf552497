// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";

export const tests = [
  {
    name: "the usage page says who holds GPUs idle, by what one chooses, and what that costs",
    scenario: "gpu",
    async run(page, server) {
      await page.ready();
      await page.raw.getByRole("link", { name: "Usage" }).click();
      assert.match(await page.text(".usage .sentence"), /8 GPUs, held for 177 h of GPU time: 50\.9 % busy, 45\.2 % idle \(6\.77 % allocated to pods without a process on them\), 3\.95 % not observed/);
      const rows = page.raw.locator(".usage tbody tr");
      assert.equal(await rows.count(), 4);
      const text = async (row) => (await rows.nth(row).innerText()).replace(/[\u202f\u00a0]/g, " ");
      assert.match(await text(1), /pod notebooks\/jupyter-anna\s+1\s+1\s+41\.0 h\s+24\.0 min\s+40\.6 h\s+0\.976 %\s+1\.00 %$/);
      assert.match(await text(2), /15\.7 % \(12 to 20\)\s+–$/, "an estimate has its interval");
      assert.match(await text(3), /–\s+22\.0 %$/, "nothing was observed, but NVML read");
      await page.raw.getByPlaceholder("2.50").fill("2 dollars");
      await page.press("Enter");
      assert.equal(await page.count(".usage input:invalid"), 1);
      await page.raw.getByPlaceholder("2.50").fill("2,5");
      await page.press("Enter");
      await page.settle();
      assert.equal(await page.count(".usage input:invalid"), 0);
      assert.match(await text(1), /102$/);
      assert.match(await page.raw.getByRole("link", { name: "CSV" }).getAttribute("href"), /^api\/v1\/usage\.csv\?by=owner&price=2\.5$/);
      await page.raw.getByLabel("Sum by").selectOption("job");
      await page.settle();
      assert.equal(page.param("by"), "job");
      assert.equal(page.param("price"), "2.5");
      assert.match(await text(1), /\(no SLURM job\)/);
      assert.ok(server.requests.some((url) => /usage\?.*by=job/.test(url)));
      await page.raw.getByLabel("Sum by").selectOption({ label: "label team" });
      await page.settle();
      assert.equal(page.param("by"), "label:team");
      assert.match(await page.text(".usage thead"), /Label team/);
      await page.back();
      await page.back();
      assert.equal(page.param("by"), null);
    },
  },
  {
    name: "root is named beside its id",
    scenario: "gpu",
    query: "?page=usage",
    async run(page) {
      await page.raw.route("**/api/v1/usage?*", async (route) => {
        const response = await route.fetch();
        const json = await response.json();
        json.groups[3].name = json.by === "user" ? "0" : "user 0";
        await route.fulfill({ response, json });
      });
      for (const by of ["owner", "user"]) {
        await page.open(`?page=usage&by=${by}`);
        await page.raw.waitForSelector(".usage tbody tr");
        assert.equal(await page.raw.locator(".usage tbody th").nth(3).innerText(), by === "owner" ? "user 0 (root)" : "0 (root)");
        assert.doesNotMatch(await page.raw.locator(".usage tbody th").nth(2).innerText(), /root/);
      }
    },
  },
  {
    name: "long names of pods that begin alike are told apart, and are whole for a pointer",
    scenario: "gpu",
    query: "?page=usage",
    async run(page) {
      const long = (rank) => `pod ml-research/llama-pretraining-with-a-long-name-worker-${rank}`;
      await page.raw.route("**/api/v1/usage?*", async (route) => {
        const response = await route.fetch();
        const json = await response.json();
        json.groups.slice(0, 2).forEach((group, rank) => (group.name = long(rank)));
        await route.fulfill({ response, json });
      });
      await page.raw.reload();
      const name = page.raw.locator(".usage tbody th");
      await name.first().waitFor();
      for (const rank of [0, 1]) {
        assert.match(await name.nth(rank).innerText(), new RegExp(`^pod ml-rese…\\S*${rank}$`));
        assert.equal(await name.nth(rank).evaluate((cell) => cell.scrollWidth <= cell.clientWidth), true);
        assert.equal(await name.nth(rank).getAttribute("title"), long(rank));
      }
      assert.equal(await name.nth(3).innerText(), "user 1000");
    },
  },
  {
    name: "a phone shows who holds GPUs, for how long they are idle and what that costs without scrolling",
    scenario: "gpu",
    query: "?page=usage&price=2.5",
    context: { viewport: { width: 400, height: 800 } },
    async run(page) {
      await page.raw.waitForSelector(".usage tbody tr");
      const box = (name) => page.raw.getByRole("columnheader", { name, exact: true }).boundingBox();
      assert.ok((await box("Owner")).x >= 0);
      const { x, width } = await box("Idle cost");
      assert.ok(x + width <= 400, `${x} + ${width}`);
    },
  },
  {
    name: "without a holder the usage page says so",
    query: "?page=usage",
    async run(page) {
      assert.match(await page.text(".usage .message"), /No process held a GPU in this time/);
    },
  },
  {
    name: "before all hosts are summed up, nothing is said of those that are not",
    scenario: "hosts",
    async run(page) {
      await page.raw.route("**/api/v1/usage?*", async (route) => {
        const json = await (await route.fetch()).json();
        await route.fulfill({ json: { ...json, gpus: 0, groups: [], total: { ...json.total, accountable_ns: 0 } } });
      });
      await page.raw.reload();
      assert.match(await page.text(".usage .message"), /No process held a GPU in what is summed up so far/);
      assert.match(await page.text(".usage .sentence"), /no GPU was seen so far$/);
    },
  },
  {
    name: "the list of hosts has the usage of all of them",
    scenario: "hosts",
    async run(page, server) {
      await page.raw.waitForSelector(".usage tbody tr");
      assert.ok(server.requests.some((url) => url.includes("usage?by=owner") && !url.includes("host=")));
      assert.equal(await page.raw.getByRole("link", { name: "CSV" }).getAttribute("href"), "api/v1/usage.csv?by=owner");
      assert.match(await page.text(".usage"), /All 2 hosts, in whole hours, summed until \d\d:\d\d:\d\d\. Not complete: train-08 \(not read yet\)/);
      await page.raw.getByRole("link", { name: "train-07" }).first().click();
      await page.ready();
      await page.raw.getByRole("link", { name: "Usage" }).click();
      await page.raw.waitForSelector(".usage");
      assert.ok(server.requests.some((url) => url.includes("usage?") && url.includes("host=train-07")));
    },
  },
];
