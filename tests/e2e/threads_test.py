# SPDX-License-Identifier: Apache-2.0
"""A program with 10,000 threads: each is recorded with its name or counted as lost, within bounded memory."""

import os
import re
import subprocess
import unittest

import program
from program import GPUSONDE, PROGRAMS

ALONE = "10,000 threads slow down other tests"

THREADS = 10_000
# The goal for `record`: 256 MiB. The rows of threads are written out as they arrive.
MAX_PEAK_KIB = 256 << 10


def most_threads():
    """The number of threads that this machine allows a program, as far as it is known."""
    limits = [int(open(path, encoding="ascii").read())
              for path in ("/proc/sys/kernel/threads-max", "/proc/sys/kernel/pid_max")]
    for path in ("/sys/fs/cgroup/pids.max",):
        if os.path.exists(path):
            text = open(path, encoding="ascii").read().strip()
            limits += [] if text == "max" else [int(text)]
    return min(limits)


@unittest.skipUnless(most_threads() > THREADS + 2000, f"this machine doesn't allow {THREADS} threads")
class Threads(program.TestCase):
    def test_ten_thousand_are_there_by_name_or_counted(self):
        # The recorder is the only child of a process that prints its children's peak memory.
        script = ("import resource, subprocess, sys; code = subprocess.run(sys.argv[1:]).returncode; "
                  "print('peak', resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss); sys.exit(code)")
        done = subprocess.run(["python3", "-c", script, GPUSONDE, "record", "--hz", "499", "-o", str(self.recording), "--",
                               str(PROGRAMS / "many_threads"), str(THREADS)],
                              capture_output=True, text=True, timeout=300, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(f"{THREADS} threads", done.stdout)
        # A recorder that gets no CPU for long loses events and counts them; without a loss, all threads are recorded.
        lost = self.value("SELECT coalesce(sum(count), 0)::BIGINT FROM drops WHERE reason = 'sideband_lost'")
        named = self.value("SELECT count(DISTINCT tid) FROM threads WHERE name LIKE 'worker-%'")
        self.assertGreaterEqual(named + lost, THREADS)
        ended = self.value("SELECT count(DISTINCT tid) FROM threads WHERE name LIKE 'worker-%' AND exited_ns IS NOT NULL")
        self.assertGreaterEqual(ended + lost, THREADS)
        samples = self.value("SELECT count(*) FROM samples WHERE state = 'on_cpu'")
        self.assertGreater(samples, 100)
        nameless = self.value("SELECT count(DISTINCT tid) FROM samples ANTI JOIN threads USING (process, tid)")
        self.assertLessEqual(nameless, lost)
        peak_kib = int(re.search(r"peak (\d+)", done.stdout).group(1))
        self.assertLess(peak_kib, MAX_PEAK_KIB)


if __name__ == "__main__":
    unittest.main()
