# SPDX-License-Identifier: Apache-2.0
"""The training example: what its README promises."""

import os
import pathlib
import re
import signal
import subprocess
import sys
import time
import unittest

TRAIN = pathlib.Path(__file__).resolve().parent.parent.parent / "examples/train/train.py"


def start(*flags):
    return subprocess.Popen([sys.executable, str(TRAIN), *flags], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                            text=True, start_new_session=True)


def last_loss(*flags):
    program = start(*flags)
    output, _ = program.communicate(timeout=120)
    assert program.returncode == 0, output
    return float(re.search(r"loss (\S+);", output.splitlines()[-1])[1])


class Train(unittest.TestCase):
    def test_it_learns_the_same_with_any_number_of_workers(self):
        losses = {last_loss("--steps", "20", "--workers", str(workers)) for workers in (0, 1, 3)}
        self.assertEqual(len(losses), 1)
        self.assertLess(losses.pop(), 0.5 * last_loss("--steps", "1", "--workers", "0"))

    def test_ctrl_c_ends_all_its_processes_with_a_summary(self):
        program = start("--workers", "2", "--seconds", "100")
        self.assertIn("loss", program.stdout.readline())
        os.killpg(program.pid, signal.SIGINT)
        output, _ = program.communicate(timeout=60)
        self.assertEqual(program.returncode, 130)
        self.assertNotIn("Traceback", output)
        self.assertRegex(output.splitlines()[-1], r"^\d+ steps, 2 workers; loss")
        with self.assertRaises(ProcessLookupError):  # Python's own tracker of resources ends a little later
            for _ in range(100):
                os.killpg(program.pid, 0)
                time.sleep(0.1)


if __name__ == "__main__":
    unittest.main()
