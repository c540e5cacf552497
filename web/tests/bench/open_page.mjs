// SPDX-License-Identifier: Apache-2.0

// Opens a page in Chromium and keeps it open until its standard input ends: for bench/page_bench.py.
//
//   node tests/bench/open_page.mjs URL
//
// Prints a line once the strips are drawn.

import { launchChromium } from "../chromium.mjs";

const { browser, reason } = await launchChromium();
if (!browser) {
  console.error(`can't open a page: ${reason}`);
  process.exit(1);
}
const page = await browser.newPage({ viewport: { width: 1440, height: 900 } });
await page.goto(process.argv[2]);
await page.waitForSelector(".strip .u-over", { timeout: 120_000 });
console.log("open");
process.stdin.resume();
await new Promise((resolve) => process.stdin.once("end", resolve));
await browser.close();
process.exit(0);
