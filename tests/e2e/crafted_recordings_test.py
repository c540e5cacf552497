# SPDX-License-Identifier: Apache-2.0
"""Recordings that somebody made to do harm: an answer or a plain error, whatever becomes of the process that reads them."""

import os
import pathlib
import signal
import subprocess
import sys
import unittest

import program

sys.path.insert(0, str(program.ROOT / "tests/programs"))
import craft_recording  # noqa: E402

# DuckDB 1.4 corrupts its memory, or stops itself, with about one of nine; which ones depends on what the file holds.
SEEDS = range(16)
CRASHED = "damaged: the process that read it ended with"


class CraftedRecordings(program.TestCase):
    def setUp(self):
        super().setUp()
        self.sample = self.folder / "sample.sonde"
        subprocess.run([program.BUILD / "tests/sample_recording", self.sample], check=True)
        self.crafted = self.folder / "crafted.sonde"

    def export(self, seed):
        self.crafted.write_bytes(craft_recording.craft(self.sample.read_bytes(), seed))
        done = program.run("export", self.crafted, "--format", "folded")
        self.assertIn(done.returncode, (0, 1, 2), f"seed {seed}: {done.stderr}")
        if done.returncode != 0:
            self.assertIn("gpusonde export: ", done.stderr, f"seed {seed}")
            self.assertNotRegex(done.stderr, "Serialization Error|Stack Trace", f"seed {seed}")
        return done

    def test_a_crash_is_one_sentence(self):
        command = [program.GPUSONDE, "view", str(self.sample), "--listen", "127.0.0.1:0", "--no-open"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as view:
            self.addCleanup(view.kill)
            self.assertIn("http://", view.stdout.readline())
            children = pathlib.Path(f"/proc/{view.pid}/task/{view.pid}/children").read_text(encoding="ascii").split()
            self.assertEqual(len(children), 1)
            os.kill(int(children[0]), signal.SIGSEGV)
            _, errors = view.communicate(timeout=30)
        self.assertEqual(view.returncode, 1)
        self.assertIn(f"{self.sample}: {CRASHED}: Segmentation fault", errors)

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
