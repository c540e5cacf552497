// SPDX-License-Identifier: Apache-2.0
import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { launchChromium } from "../chromium.mjs";
import { startFixture } from "../fixture-server.mjs";
import { tests as compare } from "./compare.e2e.mjs";
import { tests as gpu } from "./gpu.e2e.mjs";
import { tests as hosts } from "./hosts.e2e.mjs";
import { tests as incidents } from "./incidents.e2e.mjs";
import { Page } from "./page.mjs";
import { tests as profile } from "./profile.e2e.mjs";
import { tests as signIn } from "./sign-in.e2e.mjs";
import { tests as states } from "./states.e2e.mjs";
import { tests as timeline } from "./timeline.e2e.mjs";
import { tests as usage } from "./usage.e2e.mjs";

// A test is { name, run(page, server), scenario, query, anyServer, context }. `anyServer` marks one
// that holds for every profile, not only the generated one: it also runs against GPUSONDE_URL.
const DIST = fileURLToPath(new URL("../../dist/index.html", import.meta.url));
const TIMEOUT_MS = 60_000;

export async function runE2e(report, only) {
  const tests = [...profile, ...gpu, ...compare, ...hosts, ...incidents, ...signIn, ...states, ...timeline, ...usage].filter(({ name }) => name.includes(only));
  const skipAll = (why) => tests.forEach(({ name }) => report("skipped", name, why));
  const real = process.env.GPUSONDE_URL;
  if (!real && !existsSync(DIST)) return skipAll("web/dist is not built (npm run build)");
  const { browser, reason } = await launchChromium({ shell: true });
  if (!browser) return skipAll(reason);
  for (const test of tests) {
    if (real && !test.anyServer) report("skipped", test.name, "needs the fixture's data, not GPUSONDE_URL");
    else await runOne(browser, test, real, report);
  }
  await browser.close();
}

async function runOne(browser, test, real, report) {
  const server = real ? { url: real.endsWith("/") ? real : `${real}/`, requests: [], state: {}, close: () => {} } : await startFixture({ scenario: test.scenario });
  const context = await browser.newContext({ viewport: { width: 1440, height: 900 }, timezoneId: "UTC", locale: "en-GB", ...test.context });
  const page = new Page(await context.newPage(), server);
  let timer;
  try {
    const late = new Promise((_, reject) => {
      timer = setTimeout(() => reject(new Error(`took more than ${TIMEOUT_MS} ms`)), TIMEOUT_MS);
    });
    await Promise.race([late, page.open(test.query ?? "").then(() => test.run(page, server))]);
    if (page.errors.length > 0) throw new Error(`the page threw: ${page.errors[0]}`);
    report("passed", test.name);
  } catch (error) {
    report("failed", test.name, error.message);
  } finally {
    clearTimeout(timer);
    await context.close();
    await server.close();
  }
}
