# SPDX-License-Identifier: Apache-2.0
"""The program under test, for the end-to-end tests in this folder."""

import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
BUILD = pathlib.Path(os.environ.get("GPUSONDE_BUILD", ROOT / "build/release")).resolve()
GPUSONDE = os.environ.get("GPUSONDE", str(BUILD / "bin/gpusonde"))
HOTPATHS = str(BUILD / "bin/hotpaths")
PROGRAMS = BUILD / "tests/programs"


def run(*arguments, timeout=120, **options):
    """gpusonde with these arguments; the finished process, its output as text."""
    return subprocess.run([GPUSONDE, *map(str, arguments)], capture_output=True, text=True, timeout=timeout,
                          stdin=subprocess.DEVNULL, check=False, **options)


def can_record():
    return run("doctor", "--format", "json").returncode == 0


class TestCase(unittest.TestCase):
    """A test with a folder of its own; skipped, with the reason, where recording isn't possible."""

    needs_recording = True

    @classmethod
    def setUpClass(cls):
        if cls.needs_recording and not can_record():
            raise unittest.SkipTest("this machine doesn't let gpusonde record: see `gpusonde doctor`")

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="gpusonde-e2e-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.recording = self.folder / "run.sonde"

    def record(self, *command, options=(), **more):
        return run("record", "-o", self.recording, *options, "--", *command, **more)

    def query(self, sql, recording=None):
        """The rows of a query as a list of dicts."""
        done = run("query", recording or self.recording, sql, "--format", "json")
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def value(self, sql, recording=None):
        """The one value of a query."""
        (row,) = self.query(sql, recording)
        (value,) = row.values()
        return value

    def folded(self):
        """The recording as (frames root first, samples)."""
        done = run("export", self.recording, "--format", "folded")
        self.assertEqual(done.returncode, 0, done.stderr)
        stacks = []
        for line in done.stdout.splitlines():
            frames, _, count = line.rpartition(" ")
            stacks.append((frames.split(";"), int(count)))
        return stacks
