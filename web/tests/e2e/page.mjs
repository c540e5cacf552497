// SPDX-License-Identifier: Apache-2.0

const ROW = 18;
const PATIENCE_MS = 20_000; // on a machine with other work; a test that passes waits for none of it

// Runs in the page before its own scripts, and gives it window.settled(): resolves once the page has had nothing to do for two
// frames, that is no frame or timeout requested and no response outstanding. The page's poll is an interval, which doesn't count.
function countPending(patienceMs) {
  const { fetch, requestAnimationFrame, cancelAnimationFrame, setTimeout, clearTimeout } = window;
  const { json } = Response.prototype;
  const frames = new Set();
  const timeouts = new Set();
  let responses = 0;
  const until = async (promise) => {
    responses++;
    try {
      return await promise;
    } finally {
      responses--;
    }
  };
  window.fetch = (...request) => until(fetch(...request));
  Response.prototype.json = function () {
    return until(json.call(this));
  };
  // A worker replies once to each request that has an address; one that can't be loaded replies to none.
  window.Worker = class extends Worker {
    #asked = 0;

    constructor(...file) {
      super(...file);
      const replied = (count) => {
        this.#asked -= count;
        responses -= count;
      };
      this.addEventListener("message", () => replied(1));
      this.addEventListener("error", () => replied(this.#asked));
    }

    postMessage(message, ...more) {
      if (message.url) {
        this.#asked++;
        responses++;
      }
      super.postMessage(message, ...more);
    }
  };
  window.requestAnimationFrame = (draw) => {
    const id = requestAnimationFrame((now) => {
      frames.delete(id);
      draw(now);
    });
    frames.add(id);
    return id;
  };
  window.cancelAnimationFrame = (id) => {
    frames.delete(id);
    cancelAnimationFrame(id);
  };
  window.setTimeout = (callback, ...more) => {
    const id = setTimeout((...values) => {
      timeouts.delete(id);
      callback(...values);
    }, ...more);
    timeouts.add(id);
    return id;
  };
  window.clearTimeout = (id) => {
    timeouts.delete(id);
    clearTimeout(id);
  };
  window.settled = async () => {
    const deadline = performance.now() + patienceMs;
    for (let idle = 0; idle < 2; ) {
      await new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve)));
      const pending = `${responses} responses, ${frames.size} frames and ${timeouts.size} timeouts`;
      idle = responses + frames.size + timeouts.size === 0 ? idle + 1 : 0;
      if (performance.now() > deadline) throw new Error(`the page still waits for ${pending}`);
    }
  };
}

// The Profile page as a user operates it.
export class Page {
  #counting;

  constructor(raw, server) {
    this.raw = raw;
    this.server = server;
    this.errors = [];
    this.#counting = raw.addInitScript(countPending, PATIENCE_MS);
    raw.setDefaultTimeout(PATIENCE_MS);
    raw.on("pageerror", (error) => this.errors.push(error.message));
  }

  async open(query) {
    await this.#counting;
    await this.raw.goto(this.server.url + query);
  }

  // Resolves once the graph has been drawn.
  async ready() {
    await this.raw.waitForSelector(".flame canvas[data-drawn]");
    await this.settle();
  }

  // Waits for a zoom's animation and pending responses.
  async settle() {
    await this.raw.evaluate(() => window.settled());
  }

  // Waits until `holds()`, which is asked here and not in the page.
  async until(holds, what) {
    for (const deadline = performance.now() + PATIENCE_MS; !holds(); ) {
      if (performance.now() > deadline) throw new Error(`no ${what}`);
      await this.raw.waitForTimeout(20);
    }
  }

  param(name) {
    return new URL(this.raw.url()).searchParams.get(name);
  }

  params(name) {
    return new URL(this.raw.url()).searchParams.getAll(name);
  }

  press(key) {
    return this.raw.keyboard.press(key);
  }

  // Finds it by searching.
  async chooseProcess(text) {
    await this.raw.getByRole("combobox", { name: "Process" }).fill(text);
    await this.press("Enter");
    await this.settle();
  }

  async back() {
    await this.raw.goBack();
    await this.settle();
  }

  // Text with plain spaces.
  async text(selector) {
    // Elements with a delay, such as loading states, are invisible at first.
    const element = this.raw.locator(selector).first();
    await element.waitFor({ state: "visible" });
    return (await element.innerText()).replace(/[\u202f\u00a0]/g, " ");
  }

  count(selector) {
    return this.raw.locator(selector).count();
  }

  async #graphPoint(across, row) {
    const box = await this.raw.locator(".flame canvas").boundingBox();
    return [box.x + across * box.width, box.y + (row + 0.5) * ROW];
  }

  // `across` is a part of the graph's width, `row` counts from the top of an icicle.
  async hover(across, row) {
    await this.raw.mouse.move(...(await this.#graphPoint(across, row)));
    await this.raw.waitForSelector(".tooltip");
  }

  async click(across, row) {
    await this.raw.mouse.click(...(await this.#graphPoint(across, row)));
    await this.settle();
  }

  async drag(from, to) {
    const box = await this.raw.locator(".strip .u-over").first().boundingBox();
    const y = box.y + box.height / 2;
    await this.raw.mouse.move(box.x + from * box.width, y);
    await this.raw.mouse.down();
    await this.raw.mouse.move(box.x + ((from + to) / 2) * box.width, y);
    await this.raw.mouse.move(box.x + to * box.width, y);
    await this.raw.mouse.up();
    await this.settle();
  }

  // How many colours the canvas has, and how much of it differs from its bottom right corner.
  pixels() {
    return this.raw.evaluate(() => {
      const canvas = document.querySelector(".flame canvas");
      const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
      const pixels = new Uint32Array(data.buffer);
      const background = pixels[pixels.length - 1];
      let drawn = 0;
      let hash = 0;
      for (const pixel of pixels) {
        if (pixel !== background) drawn++;
        hash = (Math.imul(hash, 31) + pixel) | 0;
      }
      return { colours: new Set(pixels).size, drawn: drawn / pixels.length, hash };
    });
  }

  // The first rows of the table: [name, self, self share, total, total share].
  async rows(count = 5) {
    const rows = await this.raw.locator(".top tbody tr[aria-rowindex]").evaluateAll((all) => all.map((row) => [...row.cells].map((cell) => (cell.querySelector("button") ?? cell).innerText.trim())));
    return rows.slice(0, count).map((row) => row.map((cell) => cell.replace(/[\u202f\u00a0]/g, " ")));
  }
}
