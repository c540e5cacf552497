# SPDX-License-Identifier: Apache-2.0
"""`gpusonde record`: the shares of time that it reports, and the time that is lost when it is killed."""

import os
import pathlib
import random
import subprocess
import sys
import time
import unittest

import program
from program import GPUSONDE, HOTPATHS, measures

ALONE = "it measures shares of time"


class Shares(program.TestCase):
    @measures
    def test_each_path_has_its_share_within_two_points(self):
        done = self.record(HOTPATHS, "--seconds", "10", options=("--hz", "499"))
        self.assertEqual(done.returncode, 0, done.stderr)
        stacks = self.folded()
        total = sum(count for _, count in stacks)
        for function, share in (("decode", 50), ("forward", 30), ("backward", 20)):
            found = sum(count for frames, count in stacks if any(f"::{function}(" in frame for frame in frames))
            self.assertAlmostEqual(100 * found / total, share, delta=2, msg=function)

    def test_both_threads_are_there_with_their_names(self):
        self.assertEqual(self.record(HOTPATHS, "--seconds", "2").returncode, 0)
        names = [row["name"] for row in self.query(
            "SELECT t.name FROM threads t JOIN samples s USING (process, tid) GROUP BY 1 ORDER BY 1")]
        self.assertEqual(len(names), 2, names)

    @measures
    def test_time_sampled_is_time_used(self):
        code = "import time\nend = time.process_time() + 2\nwhile time.process_time() < end: pass"
        self.assertEqual(self.record("python3", "-c", code, options=("--hz", "199")).returncode, 0)
        self.assertAlmostEqual(self.value("SELECT sum(weight_ns) / 1e9 FROM samples WHERE state = 'on_cpu'"), 2, delta=0.2)


class Killed(program.TestCase):
    LOOPS = 50

    def test_a_killed_recorder_loses_at_most_its_last_second(self):
        generator = random.Random(1)
        for loop in range(self.LOOPS):
            with self.subTest(loop=loop):
                self.kill_once(generator.uniform(0.05, 2.0))

    def kill_once(self, after_s):
        self.recording.unlink(missing_ok=True)
        recorder = subprocess.Popen(
            [GPUSONDE, "record", "--hz", "499", "-o", self.recording, "--", sys.executable, "-c", "while True: pass"],
            stderr=subprocess.DEVNULL, start_new_session=True)
        time.sleep(after_s)
        killed_ns = time.time_ns()
        recorder.kill()
        recorder.wait()
        subprocess.run(["pkill", "-KILL", "-s", str(recorder.pid)], check=False)
        if not pathlib.Path(f"{self.recording}.spool").exists():
            return  # killed before it began
        done = program.run("record", "--recover", "-o", self.recording)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertFalse(os.path.exists(f"{self.recording}.spool"))
        (row,) = self.query("""
            SELECT (SELECT coalesce(max(time_ns), 0) FROM samples) AS last_ns,
                   (SELECT coalesce(min(started_ns), 0) FROM sources) AS first_ns,
                   (SELECT count(*) FROM samples ANTI JOIN stacks USING (stack)) AS without_stack""")
        if row["first_ns"] and killed_ns - row["first_ns"] > 1.5e9:
            self.assertLess(killed_ns - row["last_ns"], 1e9)
        self.assertEqual(row["without_stack"], 0)


if __name__ == "__main__":
    unittest.main()
