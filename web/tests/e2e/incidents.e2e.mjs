// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";


export const tests = [
  {
    name: "on a phone the first lines say who slows steps and what to do, to their end",
    scenario: "gpu",
    context: { viewport: { width: 420, height: 860 } },
    async run(page) {
      await page.ready();
      const why = page.raw.locator(".answer-line.slow .answer-why");
      for (const line of await why.all()) {
        assert.match(await line.innerText(), /or lower their CPU weight\.$/);
        assert.ok(await line.evaluate((text) => text.scrollHeight <= text.clientHeight + 1));
      }
      assert.equal(await why.count(), 2);
    },
  },
  {
    name: "on a phone warnings stay inside the page",
    scenario: "gpu",
    query: "?page=incidents",
    context: { viewport: { width: 360, height: 800 } },
    async run(page) {
      await page.raw.locator(".warnings li").first().waitFor();
      const ends = await page.raw.locator(".warnings .figure").evaluateAll((all) => all.map((time) => time.getBoundingClientRect().right - time.closest("ul").getBoundingClientRect().right));
      assert.ok(ends.length === 2 && ends.every((over) => over <= 0), ends.join());
    },
  },
  {
    name: "an incident says what to do, shows its account, and links to the profile of its time",
    scenario: "gpu",
    async run(page) {
      await page.ready();
      await page.raw.getByRole("link", { name: "Incidents 1" }).click();
      await page.settle();
      assert.equal(page.param("page"), "incidents");
      assert.match(await page.text(".sentence"), /taken by cc1plus in \/batch\.slice/);
      assert.equal(await page.raw.locator(".account-bar").count(), 4, "before, during, and what two programs usually do");
      assert.match(await page.text(".warnings"), /itself down\. No incident[^]*from [^]*\d until the end of the recording: [^]*before\. Issued/);
      assert.match(await page.text(".warnings"), /No incident followed[^]*Issued 3\.00.s before steps slowed/);
      assert.match(await page.raw.locator(".account-bar").nth(1).getAttribute("aria-label"), /during: 159.ms a step/);
      assert.equal(await page.raw.locator(".evidence-strip").count(), 3);
      await page.raw.getByRole("button", { name: "Flame graph of that time" }).click();
      await page.ready();
      assert.equal(page.param("page"), null);
      assert.equal(page.param("process"), null, "the culprit is there, too");
      assert.equal(Number(page.param("to_us")) - Number(page.param("from_us")), 12e6);
      await page.back();
      assert.match(await page.text(".sentence"), /CPU contention/);
    },
  },
  {
    name: "an incident that is compared with the time after it shows that time as such, in the order of time",
    scenario: "gpu",
    query: "?page=incidents",
    async run(page) {
      await page.raw.route("**/api/v1/incidents*", async (route) => {
        const response = await route.fetch();
        const json = await response.json();
        json.incidents[0].before_is_later = true;
        await route.fulfill({ response, json });
      });
      await page.raw.reload();
      await page.raw.waitForSelector(".incident");
      const bars = await page.raw.locator(".incident").first().locator(".account-bar").evaluateAll((all) => all.map((bar) => bar.getAttribute("aria-label")));
      assert.match(bars.join("; "), /^during: 159.ms a step; after: 57\.0.ms a step$/);
      assert.match(await page.text(".incident .account-legend"), /CPU taken by others 96\.0 ms → 400 µs/);
    },
  },
  {
    name: "an incident's sentence and its times are in one zone, that of the reader",
    scenario: "gpu",
    query: "?page=incidents",
    context: { timezoneId: "Europe/Berlin" },
    async run(page) {
      await page.raw.waitForSelector(".incident");
      assert.match(await page.text(".incident .sentence"), /slowed 2\.9× from 02:11:40\./);
      assert.match(await page.text(".incident header"), /02:11:40 – 02:11:52/);
    },
  },
  {
    name: "what disturbs all steps of a program is said, of disturbed programs first",
    scenario: "gpu",
    query: "?page=incidents",
    async run(page) {
      await page.raw.waitForSelector(".incident");
      const usual = page.raw.getByRole("article", { name: "Usual steps" });
      assert.equal(await usual.count(), 2);
      assert.match(await usual.first().innerText(), /python3\.11 411[^]*5,000 steps[^]*CPU contention all the time: 23.% of each step[^]*57\.0.ms/);
      assert.match(await usual.first().innerText(), /CPU taken by others 13\.0.ms/);
      assert.equal(await usual.nth(1).locator(".sentence").count(), 0);
      assert.match(await usual.nth(1).innerText(), /calm 500, thread 512/, "one of several loops in its process");
      assert.match(await usual.nth(1).innerText(), /Steps of 2 kinds, by what they launch: 3,000 of 23\.0.ms; from [^;]*\d\d:\d\d:\d\d on 1,000 of 57\.0.ms/);
      assert.match(await usual.nth(1).innerText(), /Waits 150.ms before each step \(75\.0.% of its time\), as a server does for requests/);
      assert.doesNotMatch(await usual.first().innerText(), /before each step/);
      assert.match(await usual.nth(1).locator(".account-bar").getAttribute("aria-label"), /50\.0.ms a step/);
    },
  },
  {
    name: "a signal that stayed 0 around an incident says so",
    scenario: "gpu",
    query: "?page=incidents",
    async run(page) {
      await page.raw.route("**/api/v1/incidents*", async (route) => {
        const response = await route.fetch();
        const json = await response.json();
        json.incidents[0].strips[2].values.fill(0);
        await route.fulfill({ response, json });
      });
      await page.raw.reload();
      await page.raw.waitForSelector(".evidence-strip");
      assert.match(await page.raw.locator(".evidence-strip").nth(2).innerText(), /up to 0 threads$/);
    },
  },
  {
    name: "without a slow step, what steps usually do remains",
    scenario: "gpu",
    query: "?page=incidents",
    async run(page) {
      await page.raw.route("**/api/v1/incidents*", async (route) => {
        const response = await route.fetch();
        await route.fulfill({ response, json: { ...(await response.json()), incidents: [] } });
      });
      await page.raw.reload();
      await page.raw.waitForSelector(".incident");
      assert.match(await page.text(".incidents"), /No step was slow\. 9,000 steps were checked[^]*CPU contention all the time/);
      assert.equal(await page.raw.locator(".message").count(), 0);
    },
  },
  {
    name: "an incident that was not seen to end is ongoing only while data come",
    scenario: "gpu",
    query: "?page=incidents",
    async run(page, server) {
      let facts;
      const change = (path, edit) =>
        page.raw.route(`**/api/v1/${path}*`, async (route) => {
          const response = await route.fetch();
          await route.fulfill({ response, json: edit(await response.json()) });
        });
      await change("incidents", (found) => ({ ...found, incidents: found.incidents.map((one) => ({ ...one, to_us: null })) }));
      await change("overview", (overview) => ({ ...overview, ...facts }));
      for (const [given, state] of [
        [{ live: false, silent: false }, "Until the end of the recording"],
        [{ live: true, silent: true }, "Until its data ended"],
        [{ live: true, silent: false }, "Ongoing"],
      ]) {
        facts = given;
        await page.raw.reload();
        await page.raw.waitForSelector(".incident");
        assert.equal(await page.raw.locator(".incident header span").first().innerText(), state);
        assert.equal(/^since \d\d:|^since 21 Nov/.test(await page.raw.locator(".incident header .figure").first().innerText()), state === "Ongoing");
        assert.equal(/silent since \S/.test(await page.text(".header")), facts.silent, "nor does the header call it live");
        assert.equal(await page.count(".warnings .alarm"), state === "Ongoing" ? 1 : 0, "one of the two warnings is over");
      }
      server.state.down = true;
      await page.raw.unroute("**/api/v1/overview*");
      await page.raw.waitForSelector(".live.gone");
      assert.equal(await page.raw.locator(".incident header span").first().innerText(), "Ongoing when last read");
      assert.match(await page.text(".warnings"), /from [^]*\d ongoing when last read:/);
    },
  },
  {
    name: "without GPU work the incidents' page says what a step is and where to look",
    query: "?page=incidents",
    async run(page) {
      await page.raw.waitForSelector(".message.empty");
      assert.match(await page.text(".message"), /No steps in this selection/);
      assert.match(await page.text(".message"), /launched nothing on a GPU[^]*gpusonde record -- COMMAND[^]*gpusonde doctor/);
    },
  },
  {
    name: "incidents: with too few steps, or none, the page says so, and not that there was no work",
    scenario: "gpu",
    query: "?page=incidents",
    async run(page) {
      let steps;
      await page.raw.route("**/api/v1/incidents*", async (route) => {
        const response = await route.fetch();
        await route.fulfill({ response, json: { ...(await response.json()), steps, incidents: [], programs: [] } });
      });
      for (const [given, words] of [
        [0, /No steps in this selection[^]*There is GPU work, but no steps were found/],
        [1, /Too few steps to compare[^]*1 step was found\./],
        [20, /Too few steps to compare[^]*20 steps were found\./],
        [21, /No step was slow[^]*21 steps were checked/],
      ]) {
        steps = given;
        await page.raw.reload();
        await page.raw.waitForSelector(".message.empty");
        assert.match(await page.text(".message"), words);
        assert.doesNotMatch(await page.text(".message"), /No GPU work|doctor/);
      }
    },
  },
];
