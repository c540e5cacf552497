# SPDX-License-Identifier: Apache-2.0
"""What tests start ends with them, even if they are killed."""

import os
import select
import subprocess
import sys
import time
import unittest

import program

# Prints the process ids of a child and of its child, which has left its process group and session.
STARTS = """
import program, subprocess, sys, time
child = subprocess.Popen(["sh", "-c", "setsid sleep 300 & echo $!; wait"]).pid
sys.stdout.write(str(child) + "\\n")  # at once: the other one's line would come between the parts
sys.stdout.flush()
{then}
"""

BELOW_ANOTHER = "import program, subprocess, sys; subprocess.run([sys.executable, '-c', sys.argv[1]])"


class Guardian(unittest.TestCase):
    def started(self, then, below_another=False):
        """A process that imports `program`, and two processes below it, as files that are readable when they have ended."""
        outer = [BELOW_ANOTHER] if below_another else []
        test = subprocess.Popen([sys.executable, "-c", *outer, STARTS.format(then=then)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                env={**os.environ, "PYTHONPATH": str(program.ROOT / "tests/e2e")})
        self.addCleanup(test.wait)
        self.addCleanup(test.kill)
        self.addCleanup(test.stdin.close)
        self.addCleanup(test.stdout.close)
        below = [os.pidfd_open(int(test.stdout.readline())) for _ in range(2)]
        for file in below:
            self.addCleanup(os.close, file)
        return test, below

    def assert_ended(self, files):
        deadline = time.monotonic() + 30
        for file in files:
            ended, _, _ = select.select([file], [], [], max(0, deadline - time.monotonic()))
            self.assertTrue(ended, "it still runs")

    def test_what_a_killed_test_started_ends(self):
        test, below = self.started("time.sleep(300)")
        self.assertEqual(select.select(below, [], [], 0.5)[0], [], "both run while the test does")
        test.kill()
        self.assert_ended(below)

    # The one of the test above it would kill the guardian of the test below, and nobody what that had started.
    def test_what_a_test_below_a_killed_test_started_ends(self):
        test, below = self.started("time.sleep(300)", below_another=True)
        test.kill()
        self.assert_ended(below)

    def test_what_a_test_leaves_behind_ends(self):
        test, below = self.started("sys.stdin.read()")
        test.stdin.close()
        self.assertEqual(test.wait(timeout=30), 0)
        self.assert_ended(below)


if __name__ == "__main__":
    unittest.main()
