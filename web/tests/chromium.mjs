// SPDX-License-Identifier: Apache-2.0
import { existsSync } from "node:fs";

const BROWSERS = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];
// The same engine without a browser around it, for which the tests use a quarter less CPU time. The benchmarks measure what users have.
const SHELL = "/usr/bin/chromium-headless-shell";

// Chromium takes the last list of a command line. These are Playwright's, and first the popups of the address bar, whose pages
// Chromium loads, unseen, for each context: a third of the CPU time of these tests.
const DISABLED = [
  "WebUIOmniboxPopup", "WebUIOmniboxAimPopup", "AvoidUnnecessaryBeforeUnloadCheckSync", "BoundaryEventDispatchTracksNodeRemoval",
  "DestroyProfileOnBrowserClose", "DialMediaRouteProvider", "GlobalMediaControls", "HttpsUpgrades", "LensOverlay", "MediaRouter",
  "OptimizationHints", "PaintHolding", "RenderDocument", "ThirdPartyStoragePartitioning", "Translate",
];

// Without network access and without a graphics card, which is the slowest case.
const ARGS = [
  "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
  "--disable-background-networking", "--disable-component-update", "--disable-sync", `--disable-features=${DISABLED.join(",")}`,
];

// A running browser, or the reason why there is none. With `shell`, it may be one without a user interface.
export async function launchChromium({ shell = false } = {}) {
  const executablePath = [process.env.CHROMIUM, ...(shell ? [SHELL] : []), ...BROWSERS].find((path) => path && existsSync(path));
  if (!executablePath) return { browser: null, reason: "no Chromium (set CHROMIUM to its path)" };
  const { chromium } = await import("playwright-core");
  return { browser: await chromium.launch({ executablePath, args: ARGS }), reason: "" };
}
