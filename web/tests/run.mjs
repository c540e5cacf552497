// SPDX-License-Identifier: Apache-2.0

// Runs the unit and the end-to-end tests: one line per failure and skip, then exactly
// "N passed, N failed, N skipped". Exits with 0 only if none failed.
//
//   node tests/run.mjs [TEXT]     only end-to-end tests whose name contains TEXT, and no unit tests
//   GPUSONDE_URL=http://…         end-to-end tests against that server, those that need no fixture

import { spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { runE2e } from "./e2e/runner.mjs";

const WEB = join(dirname(fileURLToPath(import.meta.url)), "..");
const only = process.argv[2] ?? "";
const count = { passed: 0, failed: 0, skipped: 0 };

function report(outcome, name, why = "") {
  count[outcome]++;
  if (outcome !== "passed") console.log(`${outcome} ${name}: ${why.split("\n")[0]}`);
}

function runUnit() {
  const folder = mkdtempSync(join(tmpdir(), "gpusonde-web-"));
  const file = join(folder, "unit.json");
  const vitest = join(WEB, "node_modules/vitest/vitest.mjs");
  const { stderr } = spawnSync(process.execPath, [vitest, "run", "--reporter=json", `--outputFile=${file}`], { cwd: WEB, encoding: "utf8" });
  if (!existsSync(file)) {
    report("failed", "unit tests", `vitest did not run: ${stderr.trim()}`);
  } else {
    for (const suite of JSON.parse(readFileSync(file, "utf8")).testResults) {
      // A file that can't be loaded has no tests, only a message.
      if (suite.status === "failed" && suite.assertionResults.length === 0) report("failed", suite.name, suite.message);
      for (const { fullName, status, failureMessages } of suite.assertionResults) {
        if (status === "passed" || status === "failed") report(status, fullName, failureMessages[0]);
        else report("skipped", fullName, "marked so");
      }
    }
  }
  rmSync(folder, { recursive: true });
}

if (!only) runUnit();
await runE2e(report, only);
console.log(`${count.passed} passed, ${count.failed} failed, ${count.skipped} skipped`);
process.exit(count.failed > 0 ? 1 : 0);
