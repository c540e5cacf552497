// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";

const PYTHON = "0000000000000000000000000000a411";
const POSTGRES = "0000000000000000000000000000b207";

export const tests = [
  {
    name: "names of thousands of characters leave room for figures, and those from right to left leave these in their place",
    context: { viewport: { width: 1000, height: 600 } },
    async run(page) {
      await page.raw.route("**/api/v1/flamegraph*", async (route) => {
        const response = await route.fetch();
        const json = await response.json();
        const { functions, binaries, strings } = json;
        for (const name of functions.name) if (strings[name].length < 100) strings[name] += `<${"std::vector<std::pair<漢字, T>>, ".repeat(80)}>`;
        binaries.forEach((binary, i) => (binary.name = `${"ספרייה ".repeat(1 + (i % 3))}${i}`));
        await route.fulfill({ response, json });
      });
      await page.raw.reload();
      await page.ready();
      await page.hover(0.3, 2);
      const { top, bottom } = await page.raw.locator(".tooltip tbody tr").last().evaluate((row) => row.getBoundingClientRect());
      assert.ok(top >= 0 && bottom <= 600, `the figures are at ${top} to ${bottom}`);
      const legend = page.raw.locator(".legend li", { hasText: "ספרייה" }).filter({ hasText: "%" }).first();
      const [name, share] = await Promise.all([".legend-name", ".figure"].map((part) => legend.locator(part).boundingBox()));
      assert.ok(share.x >= name.x + name.width, "a share is behind its name");
    },
  },
  {
    name: "the graph is drawn in several colours",
    anyServer: true,
    async run(page) {
      await page.ready();
      const { colours, drawn } = await page.pixels();
      assert.ok(colours > 5, `${colours} colours`);
      assert.ok(drawn > 0.02, `${drawn} of the canvas is drawn`);
    },
  },
  {
    name: "the first row spans everything, and a tooltip has self, total and share",
    anyServer: true,
    async run(page) {
      await page.ready();
      await page.hover(0.5, 0);
      const tooltip = await page.text(".tooltip");
      assert.match(tooltip, /^all\n/);
      assert.match(tooltip, /self\s+0 s\s+0 %/);
      assert.match(tooltip, /total\s+\S+ (ns|µs|ms|s|min|h)\s+100 %/);
    },
  },
  {
    name: "a click zooms: the address, the canvas and the table follow, Back restores",
    query: "?fold=none",
    async run(page) {
      await page.ready();
      const before = await page.pixels();
      await page.hover(0.1, 5);
      assert.match(await page.text(".tooltip"), /^step\ntrain\.py:88/);
      await page.click(0.1, 5);
      assert.match(page.param("zoom"), /^[0-9a-f]{16}$/);
      assert.match(await page.text(".chip"), /zoomed to\s*step/);
      assert.notEqual((await page.pixels()).hash, before.hash);
      // The frame that had half of the width now has all of it: its right end is still the same frame.
      await page.hover(0.98, 5);
      assert.match(await page.text(".tooltip"), /^step\n[^]*of zoomed[^]*100 %/);
      assert.ok(!(await page.rows(40)).some(([name]) => name === "inflate_fast"), "the table is of the zoomed frame");
      await page.back();
      assert.equal(page.param("zoom"), null);
      await page.raw.mouse.move(5, 5);
      await page.settle();
      assert.equal((await page.pixels()).hash, before.hash);
    },
  },
  {
    name: "the reason of a wait is below the stack that waited, and one reason can be selected",
    async run(page, server) {
      await page.ready();
      await page.raw.getByRole("button", { name: "Waiting" }).click();
      await page.settle();
      assert.match(await page.text(".summary"), /of waiting in/);
      assert.deepEqual((await page.rows(3)).map(([name]) => name).sort(), ["[sleeps]", "[waits for I/O]", "[waits for a lock]"]);
      await page.raw.getByRole("button", { name: "a lock", exact: true }).click();
      await page.settle();
      assert.equal(page.param("wait"), "lock");
      assert.match(await page.text(".summary"), /of waiting for a lock/);
      assert.equal((await page.rows(1))[0][0], "[waits for a lock]");
      assert.ok(server.requests.some((r) => r.includes("type=off_cpu") && r.includes("wait=lock")));
      await page.raw.getByRole("button", { name: "a GPU", exact: true }).click();
      await page.settle();
      assert.match(await page.text(".message"), /No waits in this selection/);
      await page.raw.getByRole("button", { name: /waits for a GPU/ }).click();
      await page.settle();
      assert.equal(page.param("wait"), null);
    },
  },
  {
    name: "the lines of a source file: from the table, at the hottest line, and back",
    async run(page, server) {
      await page.ready();
      await page.raw.getByRole("searchbox", { name: "Search frames" }).fill("load_batch");
      await page.settle();
      await page.raw.getByRole("button", { name: "train.py" }).first().click();
      await page.settle();
      assert.equal(page.param("source"), "train.py");
      assert.ok(server.requests.some((r) => r.includes("/source?") && r.includes("file=train.py")));
      const hottest = await page.text(".source tr.hottest");
      assert.match(hottest, /^40\.0 s\s+12\.0 s\s+41\.0 s\s+41\s+def part_4/);
      assert.match(await page.text(".source .lost"), /changed at .* after it was profiled/);
      await page.raw.keyboard.press("Escape");
      await page.settle();
      assert.equal(page.param("source"), null);
      await page.ready();
    },
  },
  {
    name: "the lines of an unreadable source file have numbers and times, with the reason",
    query: "?source=/elsewhere/model.py",
    async run(page) {
      await page.settle();
      assert.match(await page.text(".source .lost"), /not in any source folder/);
      assert.deepEqual(await page.raw.locator(".source tbody td.number").allInnerTexts(), ["?", "41", "77", "140"]);
      await page.raw.getByRole("link", { name: "Profile" }).click();
      await page.ready();
    },
  },
  {
    name: "a link to a zoomed view opens it",
    query: "?fold=none",
    async run(page) {
      await page.ready();
      await page.click(0.1, 5);
      const zoomed = await page.pixels();
      await page.raw.mouse.move(5, 5);
      await page.raw.reload();
      await page.ready();
      assert.match(await page.text(".chip"), /step/);
      await page.hover(0.1, 5);
      assert.equal((await page.pixels()).hash, zoomed.hash);
    },
  },
  {
    name: "a link to a missing frame says so and shows everything",
    query: "?zoom=00000000deadbeef",
    async run(page) {
      await page.ready();
      assert.match(await page.text(".lost"), /does not have the frame/);
      await page.hover(0.5, 0);
      assert.match(await page.text(".tooltip"), /100 %/);
    },
  },
  {
    name: "dragging on the strip selects time, everything follows, a double click undoes it",
    async run(page, server) {
      await page.ready();
      const whole = await page.text(".summary");
      await page.drag(0.54, 0.69);
      const [from, to] = [Number(page.param("from_us")), Number(page.param("to_us"))];
      const part = (us) => (us - 1763687200000000) / 900e6;
      assert.ok(Math.abs(part(from) - 0.54) < 0.005, `from ${part(from)}`);
      assert.ok(Math.abs(part(to) - 0.69) < 0.005, `to ${part(to)}`);
      assert.ok(server.requests.some((r) => r.includes("flamegraph") && r.includes(`from_us=${from}`)), "the server was asked for it");
      assert.notEqual(await page.text(".summary"), whole);
      assert.equal((await page.rows(1))[0][0], "inflate_fast");
      assert.match(await page.text(".brush"), /01:14:4\d – 01:17:0\d/);
      await page.raw.locator(".strip .u-over").dblclick();
      await page.settle();
      assert.equal(page.param("from_us"), null);
      assert.equal(await page.text(".summary"), whole);
      await page.back();
      assert.equal(Number(page.param("from_us")), from, "Back goes to the brushed view");
    },
  },
  {
    name: "a click on the strip keeps the brush",
    async run(page) {
      await page.ready();
      await page.drag(0.2, 0.4);
      const before = page.raw.url();
      const box = await page.raw.locator(".strip .u-over").boundingBox();
      await page.raw.mouse.click(box.x + 0.8 * box.width, box.y + 10);
      await page.settle();
      assert.equal(page.raw.url(), before);
      const width = await page.raw.locator(".strip .u-select").evaluate((e) => e.offsetWidth / e.parentElement.clientWidth);
      assert.ok(Math.abs(width - 0.2) < 0.01, `the selection is ${width} wide`);
    },
  },
  {
    name: "arrow keys on the strip select and move time, Escape undoes it",
    anyServer: true,
    async run(page) {
      await page.ready();
      await page.raw.locator(".strip").first().focus();
      await page.press("ArrowRight");
      const from = Number(page.param("from_us"));
      const steps = () => page.raw.evaluate(() => history.length);
      const before = await steps();
      await page.press("ArrowRight");
      assert.ok(Number(page.param("from_us")) > from);
      assert.equal(await steps(), before, "Back undoes the selection, not each move");
      await page.press("Escape");
      assert.equal(page.param("from_us"), null);
    },
  },
  {
    name: "the search shows the matched share, dims the rest and narrows the table",
    async run(page) {
      await page.ready();
      const before = await page.pixels();
      await page.press("/");
      await page.raw.keyboard.type("INFLATE");
      await page.settle();
      assert.equal(page.param("search"), "INFLATE");
      const [, share] = (await page.text(".matched")).match(/^([\d.]+) % matched in 2 frames$/);
      const rows = await page.rows();
      assert.deepEqual(rows.map(([name]) => name).sort(), ["inflate", "inflate_fast"]);
      // The outer frame's total is the share: the inner one counts once.
      assert.equal(rows.find(([name]) => name === "inflate")[4], `${share} %`);
      assert.notEqual((await page.pixels()).hash, before.hash);
      await page.press("Escape");
      assert.equal(page.param("search"), null);
    },
  },
  {
    name: "Tab leads to one function of the table, and the arrow keys to the others",
    async run(page) {
      await page.ready();
      const stops = () => page.raw.locator(".top tbody button:not(.source-link)").evaluateAll((all) => all.filter((button) => button.tabIndex === 0).map((button) => button.textContent));
      const [first, second] = (await page.rows()).map(([name]) => name);
      assert.deepEqual(await stops(), [first]);
      await page.raw.locator(".top tbody button").first().focus();
      await page.press("ArrowDown");
      await page.settle();
      assert.deepEqual(await stops(), [second], "the way back leads to the row that was left");
    },
  },
  {
    name: "arrows walk the frames, Enter zooms, Escape zooms out",
    query: "?fold=none",
    async run(page) {
      await page.ready();
      await page.raw.locator(".flame-scroller").focus();
      const spoken = () => page.raw.locator("#flame-spoken").textContent();
      await page.press("ArrowDown");
      assert.match(await spoken(), /^all,/);
      await page.press("ArrowDown");
      assert.match(await spoken(), /^main,.*python3\.11/);
      await page.press("ArrowRight");
      assert.match(await spoken(), /^main,.*postgres/);
      await page.press("ArrowLeft");
      await page.press("ArrowDown");
      assert.match(await spoken(), /^Py_BytesMain,/);
      await page.press("ArrowUp");
      assert.match(await spoken(), /^main,/);
      await page.press("Enter");
      await page.settle();
      assert.match(await page.text(".chip"), /zoomed to\s*main/);
      await page.press("Escape");
      assert.equal(page.param("zoom"), null);
    },
  },
  {
    name: "the legend hides a binary and brings it back; only keeps one",
    query: "?fold=none",
    async run(page) {
      await page.ready();
      const before = await page.pixels();
      const total = await page.text(".summary strong");
      await page.raw.getByRole("button", { name: /^python3\.11/ }).click();
      await page.settle();
      assert.deepEqual(page.params("hide"), ["python3.11"]);
      assert.notEqual((await page.pixels()).hash, before.hash);
      assert.equal(await page.text(".summary strong"), total, "time is kept");
      await page.hover(0.2, 1);
      assert.match(await page.text(".tooltip"), /^<module>/, "callees moved up to the hidden frames' caller");
      await page.raw.getByRole("button", { name: /^python3\.11/ }).click();
      assert.deepEqual(page.params("hide"), []);
      await page.raw.getByRole("button", { name: "Show only libz.so.1.2.13" }).click({ force: true });
      await page.settle();
      assert.equal(page.param("only"), "libz.so.1.2.13");
      assert.deepEqual((await page.rows(9)).map(([name]) => name).sort(), ["crc32_z", "inflate", "inflate_fast"]);
      await page.back();
      assert.equal(page.param("only"), null);
    },
  },
  {
    name: "colour by kind lists kinds",
    async run(page) {
      await page.ready();
      await page.raw.getByRole("button", { name: "by kind" }).click();
      assert.equal(page.param("colour"), "kind");
      const legend = await page.text(".legend");
      for (const kind of ["native", "Python", "OS kernel", "unknown"]) assert.match(legend, new RegExp(kind));
    },
  },
  {
    name: "the table sorts by each column, both ways",
    anyServer: true,
    async run(page) {
      await page.ready();
      const shares = (rows, column) => rows.map((row) => Number.parseFloat((row[column] || "0").replace("<0.01", "0.005")));
      const falling = (values) => values.every((value, i) => i === 0 || value <= values[i - 1]);
      assert.ok(falling(shares(await page.rows(20), 2)), "by self first");
      await page.raw.locator(".top th.total button").click();
      assert.equal(page.param("sort"), "-total");
      assert.ok(falling(shares(await page.rows(20), 4)));
      await page.raw.locator(".top th.total button").click();
      assert.equal(page.param("sort"), "total");
      assert.ok(falling(shares(await page.rows(20), 4).reverse()));
      await page.raw.locator(".top th.name button").click();
      const names = (await page.rows(20)).map(([name]) => name);
      assert.deepEqual(names, [...names].sort());
      assert.equal(await page.raw.locator(".top th.name").getAttribute("aria-sort"), "ascending");
    },
  },
  {
    name: "a click on a row highlights its function, another click undoes it",
    anyServer: true,
    async run(page) {
      await page.ready();
      const before = await page.pixels();
      const [name, , , , share] = (await page.rows(1))[0];
      await page.raw.locator(".top tbody tr[aria-rowindex] button").first().click();
      await page.settle();
      assert.equal(page.param("pick"), name);
      assert.ok((await page.text(".matched")).startsWith(`${share} matched`), `${await page.text(".matched")}, not ${share}`);
      assert.notEqual((await page.pixels()).hash, before.hash);
      await page.press("Escape");
      assert.equal(page.param("pick"), null);
    },
  },
  {
    name: "an icicle is an inverted flame graph",
    async run(page) {
      await page.ready();
      await page.raw.getByRole("button", { name: "Flame", exact: true }).click();
      await page.settle();
      assert.equal(page.param("graph"), "flame");
      const box = await page.raw.locator(".flame canvas").boundingBox();
      await page.raw.mouse.move(box.x + 40, box.y + box.height - 9);
      await page.settle();
      assert.match(await page.text(".tooltip"), /^all\n/);
    },
  },
  {
    name: "process and thread filter on the server, and resetting the process resets the thread",
    async run(page, server) {
      await page.ready();
      await page.chooseProcess("train.py");
      await page.raw.getByRole("combobox", { name: "Thread" }).selectOption("431");
      await page.settle();
      assert.equal(page.param("process"), PYTHON);
      assert.equal(page.param("tid"), "431");
      assert.ok(server.requests.some((r) => r.includes("flamegraph") && r.includes(`process=${PYTHON}`) && r.includes("tid=431")));
      assert.ok(!(await page.rows(40)).some(([name]) => name === "cuLaunchKernel"));
      await page.raw.getByRole("button", { name: "Show all processes" }).click();
      assert.equal(page.param("tid"), null);
      await page.back();
      assert.equal(page.param("tid"), "431");
    },
  },
  {
    name: "processes are searched by name, process id and command line, with keys only",
    async run(page) {
      await page.ready();
      const field = page.raw.getByRole("combobox", { name: "Process" });
      await field.focus();
      const listed = () => page.raw.locator("#process-list [role=option]").allInnerTexts();
      assert.ok((await listed()).length > 2);
      await page.raw.keyboard.type("TRAIN 411");
      assert.equal((await listed()).length, 2, "all processes, and the one that has both words");
      assert.match((await listed())[1], /^python3[^]*411[^]*train\.py[^]*CPU/);
      assert.equal(await field.getAttribute("aria-activedescendant"), "process-1");
      await page.press("Enter");
      await page.settle();
      assert.equal(page.param("process"), PYTHON);
      assert.equal(await field.inputValue(), "python3 411");
      await field.focus();
      await page.raw.keyboard.type("nothing like it");
      assert.match(await page.text("#process-list"), /No process matches/);
      await page.press("Escape");
      assert.equal(await page.count("#process-list"), 0);
      assert.equal(page.param("process"), PYTHON, "Escape chooses nothing");
    },
  },
  {
    name: "several processes are chosen by keys or boxes, stay in the address, and Back undoes each",
    scenario: "ranks",
    async run(page, server) {
      await page.ready();
      const field = page.raw.getByRole("combobox", { name: "Process" });
      await field.focus();
      await page.raw.keyboard.type("postgres");
      await page.press("Shift+Enter");
      await page.settle();
      assert.equal(page.param("process"), POSTGRES);
      assert.equal(await page.count("#process-list"), 1, "the list stays open");
      await field.fill("411");
      await page.raw.locator("#process-list [role=option]", { hasText: "train.py" }).locator(".picker-box").click();
      await page.settle();
      assert.equal(page.param("process"), `${POSTGRES},${PYTHON}`);
      assert.equal(await page.raw.locator("#process-list [aria-checked=true]").count(), 1);
      await page.press("Escape");
      assert.equal(await field.inputValue(), "2 processes");
      assert.match(await field.getAttribute("title"), /postgres 207\npython3 411/);
      assert.equal(await page.raw.getByRole("combobox", { name: "Thread" }).count(), 0, "a thread is one of a process");
      for (const endpoint of ["flamegraph", "strips"])
        assert.ok(server.requests.some((r) => r.includes(endpoint) && decodeURIComponent(r).includes(`process=${POSTGRES},${PYTHON}`)), endpoint);
      await page.back();
      assert.equal(page.param("process"), POSTGRES);
      await page.back();
      assert.equal(page.param("process"), null);
    },
  },
  {
    name: "all that match are chosen at once, and the chosen ones come first in a list of 200",
    scenario: "ranks",
    async run(page) {
      await page.ready();
      const field = page.raw.getByRole("combobox", { name: "Process" });
      const listed = () => page.raw.locator("#process-list [role=option]").allInnerTexts();
      await field.fill("rank");
      assert.match(await page.text("#process-list"), /100 more: type to narrow the list/);
      await field.fill("rank 519");
      assert.match((await listed())[1], /All 10 that match/);
      assert.equal(await field.getAttribute("aria-activedescendant"), "process-2", "Enter takes the best match");
      await page.press("ArrowUp");
      await page.press("Enter");
      await page.settle();
      assert.equal(page.param("process").split(",").length, 10);
      assert.match(await page.text("main, .message"), /No samples|nothing/i);
      await field.focus();
      assert.deepEqual((await listed()).slice(1, 11).map((text) => text.match(/5\d\d\d/)[0]), Array.from({ length: 10 }, (_, i) => String(5190 + i)));
      await page.press("Escape");
      await page.raw.getByRole("button", { name: "Show all processes" }).click();
      assert.equal(page.param("process"), null);
    },
  },
  {
    name: "the processes of a trace are listed by their GPU time",
    scenario: "trace",
    async run(page, server) {
      const field = page.raw.getByRole("combobox", { name: "Process" });
      await field.focus();
      await page.raw.locator("#process-list", { hasText: "trace rank 1" }).waitFor();
      assert.match(await page.text("#process-list"), /trace rank 0[^]*4\.00 s GPU/);
      assert.ok(server.requests.some((r) => r.includes("processes") && r.includes("gpus=1")));
    },
  },
  {
    name: "a link to a thread shows it as selected once its name is known",
    query: `?process=${PYTHON}&tid=431&filter=inflate`,
    async run(page) {
      await page.ready();
      const chosen = (label) => page.raw.getByRole("combobox", { name: label }).evaluate((e) => e.selectedOptions[0].text);
      assert.equal(await page.raw.getByRole("combobox", { name: "Process" }).inputValue(), "python3 411");
      assert.match(await chosen("Thread"), /^loader-0 431/);
      assert.equal(await page.raw.locator(".filter input").inputValue(), "inflate");
    },
  },
  {
    name: "the filter goes to the server on Enter",
    async run(page, server) {
      await page.ready();
      await page.raw.locator(".filter input").fill("jpeg");
      assert.ok(!server.requests.some((r) => r.includes("filter=")), "not while typing");
      await page.press("Enter");
      await page.settle();
      assert.equal(page.param("filter"), "jpeg");
      assert.ok(server.requests.some((r) => r.includes("strips") && r.includes("filter=jpeg")));
      assert.ok(!(await page.rows(40)).some(([name]) => name === "inflate"));
    },
  },
  {
    name: "the window of time moves the strip too",
    async run(page, server) {
      await page.ready();
      await page.raw.getByRole("combobox", { name: "Time" }).selectOption("300");
      await page.settle();
      assert.equal(page.param("last"), "300");
      const from = 1763687200000000 + 600e6;
      for (const endpoint of ["strips", "flamegraph", "processes"]) {
        assert.ok(server.requests.some((r) => r.includes(endpoint) && r.includes(`from_us=${from}`)), endpoint);
      }
    },
  },
  {
    name: "? lists the keys, Escape closes the list and nothing else",
    query: "?search=main",
    async run(page) {
      await page.ready();
      await page.press("?");
      assert.match(await page.text("dialog[open]"), /Walk the frames/);
      await page.press("Escape");
      assert.equal(await page.count("dialog[open]"), 0);
      assert.equal(page.param("search"), "main");
    },
  },
  {
    name: "keys of the graph leave other pages and the history alone",
    query: "?search=main&page=timeline",
    async run(page) {
      await page.settle();
      const [before, steps] = [page.raw.url(), await page.raw.evaluate(() => history.length)];
      for (const key of ["i", "c", "f", "g", "w", "s", "Escape"]) await page.press(key);
      await page.settle();
      assert.equal(page.raw.url(), before);
      assert.equal(await page.raw.evaluate(() => history.length), steps, "Back would do nothing so often");
      await page.press("m");
      assert.equal(page.param("metrics"), "1");
    },
  },
  {
    name: "the title says which page of which data a tab has",
    async run(page) {
      await page.ready();
      assert.equal(await page.raw.title(), "Profile · train-07 · gpusonde");
      await page.raw.getByRole("navigation", { name: "Pages" }).getByRole("link", { name: "Timeline" }).click();
      await page.settle();
      assert.equal(await page.raw.title(), "Timeline · train-07 · gpusonde");
      await page.open("?source=/src/train.py");
      await page.settle();
      assert.equal(await page.raw.title(), "train.py · train-07 · gpusonde");
      // gpusonde was started twice on the same host.
      await page.raw.route("**/api/v1/overview*", async (route) => {
        const response = await route.fetch();
        const json = await response.json();
        await route.fulfill({ response, json: { ...json, title: "this machine", sources: [...json.sources, { ...json.sources[0], id: "1" }] } });
      });
      await page.open("");
      await page.settle();
      assert.equal(await page.raw.title(), "Profile · train-07 · gpusonde");
    },
  },
  {
    name: "before the processes are read the list says so",
    async run(page) {
      await page.ready();
      let answer;
      await page.raw.route("**/api/v1/processes*", async (route) => {
        await new Promise((resolve) => (answer = resolve));
        await route.continue();
      });
      await page.raw.reload();
      await page.raw.getByRole("combobox", { name: "Process" }).focus();
      assert.match(await page.text(".picker-list"), /Reading the processes…/);
      await page.until(() => answer, "request for the processes");
      answer();
      await page.raw.locator(".picker-name").first().waitFor();
      assert.doesNotMatch(await page.text(".picker-list"), /Reading/);
    },
  },
  {
    name: "the entry that is chosen in the list of processes stays so when news reorder the list",
    scenario: "live",
    async run(page) {
      await page.ready();
      let reversed = false;
      await page.raw.route("**/api/v1/processes*", async (route) => {
        const { "if-none-match": _, ...headers } = route.request().headers();
        const response = await route.fetch({ headers });
        const { processes } = await response.json();
        reversed = true;
        await route.fulfill({ response, json: { processes: processes.reverse() } });
      });
      await page.raw.getByRole("combobox", { name: "Process" }).focus();
      await page.press("ArrowDown");
      const selected = () => page.raw.locator("#process-list [aria-selected=true]").innerText();
      const before = await selected();
      // As many polls as make the page ask for its choices again.
      await page.raw.evaluate(() => {
        for (let i = 0; i < 15; i++) document.dispatchEvent(new Event("visibilitychange"));
      });
      await page.until(() => reversed, "second list of processes");
      await page.settle();
      assert.equal((await selected()).split("\n")[0], before.split("\n")[0]);
      assert.notEqual(await page.raw.getByRole("combobox", { name: "Process" }).getAttribute("aria-activedescendant"), "process-1");
    },
  },
  {
    name: "a link to a window of any length shows it in the list of windows",
    query: "?last=420",
    async run(page) {
      await page.ready();
      assert.equal(await page.raw.getByRole("combobox", { name: "Time" }).evaluate((e) => e.selectedOptions[0].text.replace("\u202f", " ")), "last 7.00 min");
    },
  },
];
