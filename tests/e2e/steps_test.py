# SPDX-License-Identifier: Apache-2.0
"""The steps of programs that count their own, on the simulated GPU: SQL, `diagnose` and the UI's API find the same number."""

import concurrent.futures
import json
import os
import subprocess
import sys
import unittest

import program
import view_test

ALONE = "a machine at its limit delays the records that end a step"

STEPS = program.ROOT / "tests/programs/gpu_steps.py"
# Kinds of programs (gpu_steps.py), numbers of steps, and anchors.
KINDS = (("training", 200, "sync context"), ("named", 150, "range train_step"), ("numbered", 200, "range ProfilerStep"),
         ("evaluating", 200, "sync context"), ("accumulating", 150, "sync context"), ("warming", 200, "sync context"),
         ("short", 800, "sync context"), ("graphs", 200, "sync context"), ("serving", 150, "sync context"),
         ("decoding", 1000, "sync context"), ("pipeline", 600, "sync context"), ("logging", 120, "kernel"),
         ("synchronizing", 200, "kernel update"), ("checkpointing", 200, "sync context"))


class Steps(program.TestCase):
    def test_are_as_many_as_the_program_made(self):
        # They use half a CPU each. While some are recorded, the recordings before are looked at, in CPU time that nothing else uses.
        idle = (0, os.SCHED_IDLE, os.sched_param(0))
        with (concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as recorders,
              concurrent.futures.ThreadPoolExecutor(1, initializer=os.sched_setscheduler, initargs=idle) as lookers):
            made = [recorders.submit(self.record_steps, kind, steps) for kind, steps, _ in KINDS]
            looked = [lookers.submit(lambda made, *of: self.check_steps(made.result(), *of), recording, steps, anchor)
                      for recording, (_, steps, anchor) in zip(made, KINDS, strict=True)]
        for (kind, _, _), check in zip(KINDS, looked, strict=True):
            with self.subTest(kind=kind):
                check.result()

    def record_steps(self, kind, steps):
        """The recording of a program of this kind, which says that it made this many."""
        recording = self.folder / f"{kind}.sonde"
        done = subprocess.run([program.SIMGPU, "run", "--", program.GPUSONDE, "record", "-o", recording, "--", sys.executable,
                               STEPS, kind, str(steps)], capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(int(done.stdout.splitlines()[0]), steps)
        self.assertRegex(done.stderr, r"\nsteps     \d+ of python[\d.]*: [\d.]+ ms each usually, \d+ % ")
        return recording

    def check_steps(self, recording, made, anchor):
        stored = self.value("SELECT count(*) FROM steps", recording)
        self.assertAlmostEqual(stored, made, delta=max(1, made // 100))
        diagnosed = program.run("diagnose", recording, "--format", "json")
        self.assertEqual(diagnosed.returncode, 0, diagnosed.stderr)
        (found,) = json.loads(diagnosed.stdout)["programs"]
        self.assertEqual(found["steps"], stored)
        self.assertTrue(found["anchor"].startswith(anchor), found)
        with view_test.view(recording) as url:
            answer = view_test.get(url, "incidents")
            self.assertEqual(answer["steps"], stored)
            (usual,) = answer["programs"]
            self.assertEqual(usual["steps"], stored)
            self.assertAlmostEqual(usual["step_ns"], sum(part["time_ns"] for part in usual["parts"]), delta=1)
            for bound, check in (("min", self.assertGreaterEqual), ("max", self.assertLessEqual)):
                check(round(usual["step_ns"]), self.value(f"SELECT {bound}(end_ns - start_ns) FROM steps", recording))
            process = self.value("SELECT process FROM steps LIMIT 1", recording)
            self.assertEqual(view_test.get(url, "incidents", process=process)["steps"], stored)
            self.assertEqual(view_test.get(url, "incidents", process="0" * 31 + "1")["steps"], 0)


if __name__ == "__main__":
    unittest.main()
