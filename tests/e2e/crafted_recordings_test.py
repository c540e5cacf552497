# SPDX-License-Identifier: Apache-2.0
"""Malicious recordings give a result or a plain error, even if the process that reads them crashes."""

import os
import pathlib
import signal
import subprocess
import sys
import time
import unittest

import program

sys.path.insert(0, str(program.ROOT / "tests/programs"))
import craft_recording  # noqa: E402

CPUS = 0.5
# DuckDB 1.4 corrupts its memory or aborts with about one in nine; which ones depends on the file's content.
SEEDS = range(16)
FORMATS = ("folded", "chrome", "perfetto", "parquet")
ENDLESS = "WITH RECURSIVE t(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM t) SELECT count(*) FROM t"


class CraftedRecordings(program.TestCase):
    def setUp(self):
        super().setUp()
        self.sample = self.folder / "sample.sonde"
        subprocess.run([program.BUILD / "tests/sample_recording", self.sample, "--gpu"], check=True)
        self.crafted = self.folder / "crafted.sonde"

    def export(self, seed):
        self.crafted.write_bytes(craft_recording.craft(self.sample.read_bytes(), seed))
        output = self.folder / f"output-{seed}"
        done = program.run("export", self.crafted, "--format", FORMATS[seed % len(FORMATS)], "-o", output)
        self.assertEqual(output.exists(), done.returncode == 0, f"seed {seed}")
        self.assertIn(done.returncode, (0, 1, 2), f"seed {seed}: {done.stderr}")
        if done.returncode != 0:
            self.assertIn("gpusonde export: ", done.stderr, f"seed {seed}")
            self.assertNotRegex(done.stderr, "Serialization Error|Stack Trace", f"seed {seed}")
        return done

    def start(self, *arguments):
        running = subprocess.Popen([program.GPUSONDE, *map(str, arguments)], stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(running.communicate)
        self.addCleanup(running.kill)
        return running

    def wait_for(self, condition, what):
        deadline = time.monotonic() + 30
        while not (found := condition()):
            self.assertLess(time.monotonic(), deadline, what)
            time.sleep(0.02)
        return found

    def reader_of(self, command):
        """The child process that reads the recording."""
        children = pathlib.Path(f"/proc/{command.pid}/task/{command.pid}/children")
        return int(self.wait_for(lambda: children.read_text(encoding="ascii").split(), "no reader")[0])

    def wait_until_it_spins(self, process):
        def cpu_s():
            fields = pathlib.Path(f"/proc/{process}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
            return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
        self.wait_for(lambda: cpu_s() > 0.5, "it doesn't spin")

    def test_a_crash_is_one_sentence(self):
        for number, name in ((signal.SIGSEGV, "Segmentation fault"), (signal.SIGABRT, "Aborted")):
            view = self.start("view", self.sample, "--listen", "127.0.0.1:0", "--no-open")
            self.assertIn("http://", view.stdout.readline())
            os.kill(self.reader_of(view), number)
            _, errors = view.communicate(timeout=30)
            self.assertEqual(view.returncode, 1)
            # The file may be damaged, or gpusonde may have a bug.
            self.assertIn(f"the process that read {self.sample} crashed ({name}): either the file is damaged, or", errors)

    def test_a_query_without_end_ends_when_asked_to(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            query = self.start("query", self.sample, ENDLESS)
            self.wait_until_it_spins(self.reader_of(query))
            query.send_signal(number)
            query.communicate(timeout=30)
            self.assertEqual(query.returncode, -number)

    def test_a_reader_that_minds_no_signal_is_killed(self):
        view = self.start("view", self.sample, "--listen", "127.0.0.1:0", "--no-open")
        self.assertIn("http://", view.stdout.readline())
        reader = self.reader_of(view)
        os.kill(reader, signal.SIGSTOP)  # it handles SIGINT, but never gets to it
        view.send_signal(signal.SIGINT)
        view.communicate(timeout=30)
        self.assertEqual(view.returncode, -signal.SIGINT)
        self.assertFalse(pathlib.Path(f"/proc/{reader}").exists())

    def test_damage_gives_an_answer_or_an_error(self):
        for seed in SEEDS:
            self.export(seed)

    def test_a_large_result_stays_within_the_memory_limit(self):
        done = program.run("query", self.sample, "SELECT repeat('x', 1000) || i FROM range(4000000) AS t(i)",
                           "--memory-limit-mb", "128")
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertEqual(done.stdout, "")
        self.assertIn("--memory-limit-mb", done.stderr)


if __name__ == "__main__":
    unittest.main()
