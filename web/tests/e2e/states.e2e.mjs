// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";

const background = (page) => page.raw.evaluate(() => getComputedStyle(document.body).backgroundColor);

export const tests = [
  {
    name: "with the colours of a high-contrast theme bars and what is chosen stay visible",
    scenario: "gpu",
    context: { forcedColors: "active" },
    async run(page) {
      await page.ready();
      const look = (selector, ...properties) => page.raw.locator(selector).first().evaluate((e, all) => all.map((name) => getComputedStyle(e)[name]), properties);
      const [bar] = await look(".answer-line.busy .answer-bar", "backgroundColor");
      const [part] = await look(".answer-line.busy .answer-bar span", "backgroundColor");
      assert.notEqual(part, bar);
      const [chosen] = await look(".segments [aria-pressed=true]", "backgroundColor");
      const [other] = await look(".segments [aria-pressed=false]", "backgroundColor");
      assert.notEqual(chosen, other);
      assert.deepEqual(await look(".pages a[aria-current]", "borderBottomStyle"), ["solid"], "the page that is shown");
      await page.open("?page=usage");
      await page.raw.locator(".usage tbody .bar").first().waitFor();
      assert.notDeepEqual(await look(".usage tbody .bar .busy", "backgroundColor"), await look(".usage tbody .bar .idle", "backgroundColor"));
    },
  },
  {
    name: "without data the page says what to run",
    scenario: "empty",
    async run(page) {
      const text = await page.text(".message.empty");
      assert.match(text, /No samples yet/);
      assert.match(text, /gpusonde record -- COMMAND/);
    },
  },
  {
    name: "a recording that ended before its first sample says what to run",
    async run(page) {
      await page.raw.route("**/api/v1/overview*", async (route) => {
        const response = await route.fetch();
        await route.fulfill({ response, json: { ...(await response.json()), samples: 0 } });
      });
      await page.open("?filter=nosuchfunction");
      assert.match(await page.text(".message.empty"), /This recording has no samples[^]*gpusonde record -- COMMAND/);
    },
  },
  {
    name: "while its script is loaded the page says so, and not afterwards",
    async run(page) {
      let show;
      const shown = new Promise((resolve) => (show = resolve));
      await page.raw.route("**/assets/*.js", async (route) => {
        await shown;
        await route.continue();
      });
      await page.raw.reload({ waitUntil: "commit" });
      assert.match(await page.text(".message.loading"), /Loading gpusonde/);
      show();
      await page.ready();
      assert.doesNotMatch(await page.text("body"), /Loading gpusonde/);
    },
  },
  {
    name: "while samples are read the page says so",
    scenario: "slow",
    async run(page) {
      // Before the overview has arrived, the page has no header.
      await page.raw.waitForSelector(".header");
      assert.match(await page.text(".message.loading"), /Reading samples/);
    },
  },
  {
    name: "an error shows the server's message, and trying again recovers",
    scenario: "error",
    async run(page, server) {
      assert.match(await page.text(".message.failed"), /bad checksum at offset 8192/);
      assert.match(await page.text(".message.failed"), /corrupt/);
      server.state.scenario = "realistic";
      await page.raw.getByRole("button", { name: "Try again" }).click();
      await page.ready();
      assert.equal(await page.count(".message.failed"), 0);
    },
  },
  {
    name: "a lost server is named, and the page recovers by itself",
    scenario: "live",
    async run(page, server) {
      await page.ready();
      server.state.down = true;
      await page.raw.waitForSelector(".lost");
      assert.match(await page.text(".lost"), /does not respond/);
      assert.equal(await page.text(".header .live"), "disconnected", "nothing is live without a server");
      assert.equal(await page.count(".flame canvas"), 1, "what was read stays");
      server.state.down = false;
      await page.raw.waitForSelector(".lost", { state: "detached" });
      assert.equal(await page.text(".header .live"), "live");
    },
  },
  {
    name: "a failed update keeps the previous data, and says so",
    scenario: "live",
    async run(page, server) {
      await page.ready();
      server.state.failing = "flamegraph";
      assert.match(await page.text(".lost"), /bad checksum[^]*Older data/);
      assert.equal(await page.count(".flame canvas"), 1);
      server.state.failing = "";
      await page.raw.waitForSelector(".lost", { state: "detached" });
    },
  },
  {
    name: "a failed request is not shown as the answer to the next question",
    async run(page, server) {
      await page.ready();
      server.state.failing = "flamegraph";
      await page.raw.getByRole("button", { name: "Waiting" }).click();
      await page.raw.waitForSelector(".message.failed");
      server.state.failing = "";
      server.state.delayMs = 3000;
      await page.raw.getByRole("button", { name: "a lock", exact: true }).click();
      await page.raw.waitForSelector(".app.busy .flame canvas");
      assert.equal(await page.count(".message.failed"), 0);
    },
  },
  {
    name: "an empty selection is not shown as the answer to the next one",
    query: "?type=off_cpu&wait=gpu_wait",
    async run(page, server) {
      await page.raw.waitForSelector(".message.empty");
      server.state.delayMs = 3000;
      await page.raw.getByRole("button", { name: "CPU time", exact: true }).click();
      assert.match(await page.text(".message"), /Reading samples/);
    },
  },
  {
    name: "a live page shows that it reads what was asked for, but not that it reads news",
    scenario: "live",
    async run(page, server) {
      await page.ready();
      server.state.delayMs = 1500;
      await page.until(() => server.requests.filter((r) => r.includes("flamegraph")).length > 1, "second profile");
      assert.equal(await page.count(".app.busy"), 0);
      await page.raw.getByRole("button", { name: "Waiting" }).click();
      await page.raw.waitForSelector(".app.busy");
      await page.raw.waitForSelector(".app.busy", { state: "detached" });
    },
  },
  {
    name: "older data is mentioned only where there is some",
    async run(page, server) {
      await page.ready();
      assert.equal(await page.count(".lost"), 0);
      server.state.failing = "strips";
      await page.raw.reload();
      assert.match(await page.text(".lost"), /^strips can't be read\.?$/);
    },
  },
  {
    name: "a selection without samples says what to reset",
    query: "?filter=nosuchfunction",
    async run(page) {
      assert.match(await page.text(".message.empty"), /No samples in this selection/);
      await page.raw.getByRole("button", { name: /filter “nosuchfunction”/ }).click();
      await page.ready();
      assert.equal(page.param("filter"), null);
    },
  },
  {
    name: "missing data is listed: drops and omitted frames",
    scenario: "partial",
    async run(page) {
      await page.ready();
      const text = await page.text(".incomplete");
      assert.match(text, /1,204 dropped: Samples lost because the kernel's buffer was full/);
      assert.match(text, /12,031 frames too small to see/);
    },
  },
  {
    name: "a notice is above every page",
    scenario: "partial",
    async run(page) {
      await page.ready();
      assert.match(await page.text(".lost"), /stopped without warning/);
      await page.open("?page=incidents");
      await page.raw.waitForSelector(".lost");
      assert.match(await page.text(".lost"), /stopped without warning/);
    },
  },
  {
    name: "simulated data has a badge, real data has none",
    scenario: "simulated",
    async run(page, server) {
      await page.ready();
      assert.equal(await page.text(".simulated"), "simulated");
      server.state.scenario = "realistic";
      await page.raw.reload();
      await page.ready();
      assert.equal(await page.count(".simulated"), 0);
    },
  },
  {
    name: "the first stop of Tab skips what is above the page",
    async run(page) {
      await page.ready();
      await page.press("Tab");
      const skip = page.raw.getByRole("button", { name: "Skip to the page" });
      assert.equal(await skip.evaluate((button) => button === document.activeElement && button.getBoundingClientRect().top >= 0), true);
      await page.press("Enter");
      await page.press("Tab");
      assert.equal(await page.raw.evaluate(() => document.activeElement.closest("main.profile") !== null), true);
      assert.equal(await skip.evaluate((button) => button.getBoundingClientRect().bottom <= 0), true, "it is seen only while it has the focus");
    },
  },
  {
    name: "live data grows, and zoom, search, focus and tooltip stay",
    scenario: "live",
    query: "?search=libc",
    async run(page) {
      await page.ready();
      await page.click(0.1, 5);
      const zoom = page.param("zoom");
      await page.raw.locator(".flame-scroller").focus();
      await page.press("ArrowDown");
      await page.press("ArrowDown");
      const spoken = () => page.raw.locator("#flame-spoken").textContent();
      const focused = (await spoken()).split(",")[0];
      assert.ok(focused && focused !== "all", `focused: ${focused}`);
      await page.hover(0.1, 5);
      const before = await page.text(".summary strong");
      await page.raw.waitForFunction(
        (old) => document.querySelector(".summary strong").textContent.replace(/\u202f/g, " ") !== old,
        before,
      );
      await page.settle();
      assert.equal((await spoken()).split(",")[0], focused);
      assert.match(await page.text(".tooltip"), /total/);
      assert.equal(page.param("zoom"), zoom);
      assert.equal(page.param("search"), "libc");
      assert.match(await page.text(".chip"), /zoomed to/);
      assert.equal(await page.text(".live"), "live");
    },
  },
  {
    name: "unobserved time is hatched and has no value",
    async run(page) {
      await page.ready();
      // Of 450 slices the fixture leaves out 330 to 342.
      const unobserved = 336 / 450;
      const box = await page.raw.locator(".strip .u-over").last().boundingBox();
      await page.raw.mouse.move(box.x + unobserved * box.width, box.y + 10);
      assert.match(await page.text(".strip:last-child .strip-figures"), /–.*not observed/s);
      const drawn = await page.raw.locator(".strip .u-wrap").last().evaluate((wrap, across) => {
        const canvas = wrap.querySelector("canvas");
        const over = wrap.querySelector(".u-over");
        const x = Math.round((over.offsetLeft + across * over.offsetWidth) * devicePixelRatio);
        const { data } = canvas.getContext("2d").getImageData(x, (over.offsetTop + 2) * devicePixelRatio, 1, (over.offsetHeight - 4) * devicePixelRatio);
        return data.filter((_, i) => i % 4 === 3 && data[i] > 0).length;
      }, unobserved);
      assert.ok(drawn > 5, `${drawn} pixels of a column`);
    },
  },
  {
    name: "without new data a live page only polls the overview",
    scenario: "live",
    async run(page, server) {
      await page.ready();
      server.state.quiet = true;
      await page.raw.waitForTimeout(2500);
      await page.settle();
      server.requests.length = 0;
      server.unchanged.length = 0;
      await page.raw.waitForTimeout(4500);
      await page.until(() => server.requests.length >= 2, "second poll");
      await page.settle();
      assert.deepEqual(server.requests, server.requests.map(() => "/api/v1/overview"));
      assert.deepEqual(server.unchanged, server.requests, "and gets no data");
    },
  },
  {
    name: "a live page says how old its data is, and fetches new data on request",
    scenario: "live",
    async run(page, server) {
      await page.ready();
      assert.equal(await page.text(".header .live"), "live");
      server.state.quiet = true;
      await page.raw.waitForTimeout(2500);
      await page.settle();
      await page.raw.evaluate(() => {
        const now = performance.now.bind(performance);
        performance.now = () => now() + 200_000;
      });
      await page.raw.waitForSelector("button.live");
      assert.equal(await page.text(".header .live"), "live, 3 min behind");
      await page.raw.locator(".header .live").click();
      await page.ready();
      assert.equal(await page.text(".header .live"), "live");
    },
  },
  {
    name: "the incidents page requests no profile",
    scenario: "live",
    query: "?page=incidents",
    async run(page, server) {
      await page.raw.waitForSelector(".message.empty");
      await page.raw.waitForTimeout(4500);
      const asked = () => server.requests.map((request) => request.replace(/^.*v1\//, "").replace(/\?.*$/, ""));
      await page.until(() => new Set(asked()).size >= 6, "request of each kind");
      assert.deepEqual([...new Set(asked())].sort(), ["devices", "incidents", "overview", "processes", "session", "strips"]);
      assert.equal(asked().filter((endpoint) => endpoint === "processes").length, 1, "the header's choices are renewed seldom");
    },
  },
  {
    name: "a hidden page sends no requests, and polls again when it is shown",
    scenario: "live",
    async run(page, server) {
      await page.ready();
      const show = (hidden) =>
        page.raw.evaluate((value) => {
          Object.defineProperty(document, "hidden", { configurable: true, get: () => value });
          document.dispatchEvent(new Event("visibilitychange"));
        }, hidden);
      await show(true);
      await page.raw.waitForTimeout(1000);
      await page.settle();
      server.requests.length = 0;
      await page.raw.waitForTimeout(4500);
      assert.deepEqual(server.requests, []);
      await show(false);
      await page.until(() => server.requests.includes("/api/v1/overview"), "a request for the overview");
    },
  },
  {
    name: "a recording is read once",
    async run(page, server) {
      await page.ready();
      await page.raw.waitForTimeout(2600);
      assert.equal(server.requests.filter((r) => r.includes("overview")).length, 1);
      assert.equal(server.requests.filter((r) => r.includes("flamegraph")).length, 1);
    },
  },
  {
    name: "the theme follows the system until one is chosen, and the choice stays",
    anyServer: true,
    context: { colorScheme: "dark" },
    async run(page) {
      await page.ready();
      assert.equal(await background(page), "rgb(18, 20, 24)");
      await page.raw.getByRole("combobox", { name: "Theme" }).selectOption("light");
      assert.equal(await background(page), "rgb(255, 255, 255)");
      await page.raw.reload();
      await page.ready();
      assert.equal(await background(page), "rgb(255, 255, 255)");
    },
  },
  {
    name: "200,000 frames are drawn and can be zoomed",
    scenario: "large",
    async run(page) {
      await page.ready();
      const before = await page.pixels();
      assert.ok(before.colours > 20);
      await page.click(0.2, 3);
      assert.notEqual((await page.pixels()).hash, before.hash);
    },
  },
  {
    name: "no request goes to another host",
    anyServer: true,
    async run(page, server) {
      const hosts = new Set();
      page.raw.on("request", (request) => request.url().startsWith("http") && hosts.add(new URL(request.url()).host));
      await page.raw.reload();
      await page.ready();
      assert.deepEqual([...hosts], [new URL(server.url).host]);
    },
  },
  {
    name: "every control has a name, and the graph has a table",
    anyServer: true,
    async run(page) {
      await page.ready();
      const nameless = await page.raw.locator("button, input, select, [tabindex='0']").evaluateAll((all) =>
        all.filter((e) => !(e.getAttribute("aria-label") || e.innerText?.trim() || e.labels?.length)).map((e) => e.outerHTML),
      );
      assert.deepEqual(nameless, []);
      assert.ok((await page.count(".flame table tr")) > 2);
      assert.ok((await page.count(".strip table tr")) > 2);
    },
  },
  {
    name: "a phone: no page is wider than the screen, and each has room for what it is for",
    scenario: "gpu",
    context: { viewport: { width: 390, height: 800 }, hasTouch: true },
    async run(page) {
      const widest = () => page.raw.evaluate(() => document.documentElement.scrollWidth);
      const box = (selector) => page.raw.locator(selector).boundingBox();
      await page.ready();
      assert.equal(await widest(), 390);
      await page.raw.setViewportSize({ width: 320, height: 800 });
      await page.raw.getByRole("button", { name: "Waiting" }).click();
      await page.settle();
      assert.equal(await widest(), 320, "the kinds of waits and the links to the pages wrap");
      await page.raw.getByRole("button", { name: "GPU time" }).click();
      await page.raw.setViewportSize({ width: 390, height: 800 });
      await page.settle();
      const [flame, table] = [await box(".flame canvas"), await box(".top")];
      assert.ok(flame.width === 390 && flame.height >= 300, JSON.stringify(flame));
      assert.ok(table.y >= flame.y + flame.height && table.width === 390 && table.height >= 160, JSON.stringify(table));
      for (const other of ["Timeline", "Compare", "Incidents", "Usage"]) {
        await page.raw.getByRole("navigation", { name: "Pages" }).getByRole("link", { name: other }).click();
        await page.settle();
        assert.equal(await widest(), 390, other);
        if (other !== "Timeline") continue;
        const chart = await box(".timeline-spacer canvas");
        assert.ok(chart.width >= 240 && chart.height >= 200, JSON.stringify(chart));
      }
    },
  },
  {
    name: "a finger hits no button that only a pointer shows",
    context: { viewport: { width: 390, height: 800 }, hasTouch: true, isMobile: true },
    async run(page) {
      await page.ready();
      const item = page.raw.locator(".legend li", { hasText: "libz" });
      const [share, only] = [await item.locator("button").first().boundingBox(), await item.locator(".only").boundingBox()];
      assert.ok(only.x >= share.x + share.width, "the two don't cover each other");
      await page.raw.touchscreen.tap(share.x + share.width - 8, share.y + share.height / 2);
      await page.settle();
      assert.deepEqual([page.param("only"), ...page.params("hide")], [null, "libz.so.1.2.13"]);
    },
  },
  {
    name: "the kinds of waits are within a narrow window",
    context: { viewport: { width: 1024, height: 768 } },
    query: "?type=off_cpu",
    async run(page) {
      await page.ready();
      const box = await page.raw.getByRole("button", { name: "sleep", exact: true }).boundingBox();
      assert.ok(box.x + box.width <= 1024, JSON.stringify(box));
    },
  },
  {
    name: "the graph's tools are within a window of any width, and in one line where that is possible",
    scenario: "gpu",
    async run(page) {
      for (const width of [1280, 1024, 900, 800, 700]) {
        await page.raw.setViewportSize({ width, height: 800 });
        await page.ready();
        const boxes = await page.raw.locator(".toolbar > *:not(.matched)").evaluateAll((all) => all.map((one) => one.getBoundingClientRect().toJSON()));
        for (const { right } of boxes) assert.ok(right <= width, `${right} of ${width}`);
        assert.equal(new Set(boxes.map(({ y, height }) => y + height / 2)).size, 1, `${width} px`);
        assert.ok((await page.raw.evaluate(() => document.documentElement.scrollWidth)) <= width);
      }
    },
  },
  {
    name: "the list of keys begins at its top, in a low window, too",
    context: { viewport: { width: 1024, height: 500 } },
    async run(page) {
      await page.ready();
      await page.press("?");
      await page.raw.waitForSelector("dialog.help[open]");
      assert.equal(await page.raw.locator("dialog.help").evaluate((dialog) => dialog.scrollTop), 0);
      assert.equal(await page.raw.evaluate(() => document.activeElement.textContent), "Close");
    },
  },
  {
    name: "a print of the dark flame graph is white, as wide as the paper, and has every row and the time",
    scenario: "large",
    context: { colorScheme: "dark", viewport: { width: 1100, height: 500 } },
    async run(page) {
      await page.ready();
      // In one task with its microtasks, as when a browser prints: no frame is drawn between.
      const printed = await page.raw.evaluate(async () => {
        dispatchEvent(new Event("beforeprint"));
        for (let microtask = 0; microtask < 20; microtask++) await null;
        const canvas = document.querySelector(".flame canvas");
        const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
        return {
          corner: [...data.slice(-4)].join(), canvas: canvas.getBoundingClientRect().toJSON(), pane: document.querySelector(".flame").getBoundingClientRect().toJSON(),
          spacer: document.querySelector(".flame-spacer").clientHeight, app: document.querySelector(".app").clientWidth,
          strips: [...document.querySelectorAll(".strip-plot")].map((plot) => plot.clientWidth - plot.querySelector(".uplot").clientWidth),
        };
      });
      assert.equal(printed.corner, "255,255,255,255");
      assert.equal(printed.app, 950);
      assert.equal(printed.canvas.width, printed.pane.width);
      assert.ok(printed.canvas.height >= printed.spacer && printed.spacer > 500, JSON.stringify(printed));
      assert.deepEqual([...new Set(printed.strips)], [0]);
      await page.raw.emulateMedia({ media: "print" });
      assert.ok(await page.raw.locator(".header .range").isVisible());
      await page.raw.emulateMedia({ media: "screen" });
      await page.raw.evaluate(() => dispatchEvent(new Event("afterprint")));
      await page.settle();
      assert.equal(await background(page), "rgb(18, 20, 24)");
      assert.equal(await page.raw.locator(".app").evaluate((app) => app.clientWidth), 1100);
    },
  },
  {
    name: "a print has the largest functions and whole sentences, as nothing scrolls on paper",
    scenario: "large",
    context: { viewport: { width: 1100, height: 500 } },
    async run(page) {
      await page.ready();
      await page.raw.locator(".top-scroller").evaluate((box) => box.scrollTo(0, 5000));
      await page.settle();
      const printed = await page.raw.evaluate(async () => {
        dispatchEvent(new Event("beforeprint"));
        for (let microtask = 0; microtask < 20; microtask++) await null;
        const rows = [...document.querySelectorAll(".top tbody tr[aria-rowindex]")];
        const box = document.querySelector(".top-scroller");
        return { rows: rows.map((row) => Number(row.getAttribute("aria-rowindex"))), hidden: box.scrollHeight - box.clientHeight, rest: document.querySelector(".top-rest").innerText };
      });
      assert.deepEqual(printed.rows, Array.from({ length: 30 }, (_, i) => i + 2));
      assert.equal(printed.hidden, 0);
      assert.match(printed.rest, /^and [\d,]+ more$/);
      await page.raw.evaluate(() => dispatchEvent(new Event("afterprint")));
      await page.settle();
      assert.ok(!(await page.raw.locator(".top-rest").isVisible()));
    },
  },
  {
    name: "the first lines of a print have all their words",
    scenario: "gpu",
    context: { viewport: { width: 1024, height: 700 } },
    async run(page) {
      await page.ready();
      await page.raw.evaluate(() => dispatchEvent(new Event("beforeprint")));
      await page.settle();
      const cut = await page.raw.locator(".answer-why").evaluateAll((all) => all.filter((line) => line.scrollWidth > line.clientWidth).length);
      assert.equal(cut, 0);
    },
  },
  {
    name: "a print has all incidents, on white",
    scenario: "gpu",
    query: "?page=incidents",
    context: { colorScheme: "dark", viewport: { width: 1024, height: 500 } },
    async run(page) {
      await page.raw.waitForSelector(".incident");
      await page.raw.emulateMedia({ media: "print" });
      assert.equal(await background(page), "rgb(255, 255, 255)");
      const [height, whole] = await page.raw.locator(".incidents").evaluate((e) => [e.clientHeight, e.scrollHeight]);
      assert.equal(height, whole);
      assert.ok(await page.raw.evaluate(() => document.documentElement.scrollHeight > 600), "the page is as long as its content");
    },
  },
];
