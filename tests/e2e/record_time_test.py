# SPDX-License-Identifier: Apache-2.0
"""`gpusonde record`: the shares of time that it reports, and the time that is lost when it is killed."""

import concurrent.futures
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


class Shares(program.SharedRecordings):
    def recorded_paths(self):
        def make():
            done = self.record(HOTPATHS, "--seconds", "10", options=("--hz", "499"))
            self.assertEqual(done.returncode, 0, done.stderr)
        return self.recorded("paths", make)

    @measures
    def test_each_path_has_its_share_within_two_points(self):
        with self.recorded_paths():
            stacks = self.folded()
            total = sum(count for _, count in stacks)
            for function, share in (("decode", 50), ("forward", 30), ("backward", 20)):
                found = sum(count for frames, count in stacks if any(f"::{function}(" in frame for frame in frames))
                self.assertAlmostEqual(100 * found / total, share, delta=2, msg=function)

    def test_both_threads_are_there_with_their_names(self):
        with self.recorded_paths():
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
    AT_ONCE = 4 * (os.cpu_count() or 1)
    # Says when it began. Leaves most of the CPU time to the recorders.
    VICTIM = """import os, time
os.nice(5)
print(time.time_ns(), flush=True)
while True:
    end = time.thread_time() + 0.005
    while time.thread_time() < end: pass
    time.sleep(0.02)
"""

    def test_a_killed_recorder_loses_at_most_its_last_second(self):
        generator = random.Random(1)
        with concurrent.futures.ThreadPoolExecutor(self.AT_ONCE) as pool:
            kills = [pool.submit(self.kill_once, self.folder / f"{loop}.sonde", generator.uniform(0.05, 3.0)) for loop in range(self.LOOPS)]
            for loop, kill in enumerate(kills):
                with self.subTest(loop=loop):
                    kill.result()

    def kill_once(self, recording, after_s):
        said = recording.with_suffix(".said")
        with said.open("w") as output:
            recorder = subprocess.Popen(
                [GPUSONDE, "record", "--hz", "499", "-o", recording, "--", sys.executable, "-c", self.VICTIM],
                stdout=output, stderr=subprocess.DEVNULL, start_new_session=True)
        time.sleep(after_s)
        killed_ns = time.time_ns()
        recorder.kill()
        recorder.wait()
        subprocess.run(["pkill", "-KILL", "-s", str(recorder.pid)], check=False)
        if not pathlib.Path(f"{recording}.spool").exists():
            return  # killed before it began
        done = program.run("record", "--recover", "-o", recording)
        self.assertFalse(os.path.exists(f"{recording}.spool"), done.stderr)
        if done.returncode == 125:
            self.assertIn("held no data and was removed", done.stderr)
            self.assertLess(killed_ns - int(said.read_text() or killed_ns), 1e9)
            return
        self.assertEqual(done.returncode, 0, done.stderr)
        (row,) = self.query("""
            SELECT (SELECT coalesce(max(time_ns), 0) FROM samples) AS last_ns,
                   (SELECT coalesce(min(started_ns), 0) FROM sources) AS first_ns,
                   (SELECT count(*) FROM samples ANTI JOIN stacks USING (stack)) AS without_stack""", recording)
        if row["first_ns"] and killed_ns - row["first_ns"] > 1.5e9:
            self.assertLess(killed_ns - row["last_ns"], 1e9)
        self.assertEqual(row["without_stack"], 0)


if __name__ == "__main__":
    unittest.main()
