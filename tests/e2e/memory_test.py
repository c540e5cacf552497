# SPDX-License-Identifier: Apache-2.0
"""A hundredth of a busy day (10,000 kernels a second for 15 minutes) within 128 MB: it opens, answers, is diagnosed, restarts.
GPUSONDE_TEST_HOURS=24 tests a whole day (864 M kernels; `make nightly`), GPUSONDE_TEST_DAYS=FOLDER/days one that fill_days made."""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

import program
from view_test import get, view

OWN_MACHINE = "the GPU work of other programs would count"
TAKES_S = 27

HOURS = float(os.environ.get("GPUSONDE_TEST_HOURS", "0.25"))
RATE = 10_000  # kernels per second
KERNELS = round(HOURS * 3600) * RATE
TIMEOUT_S = 300 + 600 * HOURS  # of each step
LIMIT = ("--memory-limit-mb", "128")
QUESTIONS = ("overview", "strips", "devices", "processes", "flamegraph", "flamegraph?type=gpu", "flamegraph?type=off_cpu",
             "flamegraph?while_gpu_idle=1", "incidents", "summary")


def run(*arguments):
    return program.run(*LIMIT, *arguments, timeout=TIMEOUT_S)


class BusyHours(program.TestCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        if days := os.environ.get("GPUSONDE_TEST_DAYS"):
            cls.state = pathlib.Path(days).parent
        else:
            made = tempfile.TemporaryDirectory(prefix="gpusonde-days-")
            cls.addClassCleanup(made.cleanup)
            cls.state = pathlib.Path(made.name) / "state"
            (cls.state / "days").mkdir(parents=True)
            subprocess.run([program.BUILD / "tests/fill_days", cls.state / "days", str(HOURS), str(RATE)], check=True,
                           timeout=TIMEOUT_S)
        cls.days = sorted((cls.state / "days").glob("*.sonde"))

    def ask(self, url):
        for question in QUESTIONS:
            with self.subTest(question):
                endpoint, _, parameters = question.partition("?")
                get(url, endpoint, TIMEOUT_S, **dict(pair.split("=") for pair in parameters.split("&") if pair))
        self.assertEqual(sum(device["kernels"] for device in get(url, "devices", TIMEOUT_S)["devices"]), KERNELS)

    def test_the_page_is_answered(self):
        with view(*self.days, *LIMIT) as url:
            self.ask(url)

    def test_up_starts_again_on_it(self):
        command = [program.GPUSONDE, *LIMIT, "up", "--state", self.state, "--listen", "127.0.0.1:0", "--no-open"]
        with program.serving(command) as url:
            self.ask(url)

    def test_it_is_diagnosed(self):
        done = run("diagnose", *self.days)
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    @unittest.skipIf(HOURS > 1, "joining a day's kernels with themselves would spill more than twice what they take on disk")
    def test_joins_sorts_and_windows_spill(self):
        for sql in ("SELECT count(*) FROM kernels k JOIN kernels l USING (process, correlation)",
                    "SELECT count(*) FROM (SELECT correlation FROM kernels GROUP BY correlation)",
                    "SELECT count(*) FROM (SELECT start_ns, lag(start_ns) OVER (ORDER BY start_ns) AS before FROM kernels) "
                    "WHERE before IS NULL OR before <= start_ns"):
            with self.subTest(sql):
                done = run("query", "--format", "json", *self.days, sql)
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertEqual(list(json.loads(done.stdout)[0].values()), [KERNELS])

    def test_what_cannot_spill_says_what_to_do(self):
        done = run("query", *self.days, "SELECT len(list(start_ns)) FROM kernels GROUP BY name")
        self.assertEqual(done.returncode, 1)
        self.assertIn("--memory-limit-mb", done.stderr)
        self.assertNotIn("Out of Memory", done.stderr)


if __name__ == "__main__":
    sys.exit(unittest.main())
