# SPDX-License-Identifier: Apache-2.0
"""Files of recorded programs that are small but expensive to read: recording continues, within bounds."""

import os
import signal
import subprocess
import sys
import time
import unittest

import program

BOMBS = program.ROOT / "tests/programs/bombs.py"
SECONDS = 3
# Upper bound of finishing the recording on a busy machine. Read completely, each bomb takes a minute or forever.
DEADLINE_S = SECONDS + 20
MAX_RSS_MB = 512
# Files that take half a second each.
COPIES = 60
# A second, and a margin for a busy machine.
ANSWER_S = 4


class Bombs(program.TestCase):
    def record_within_bounds(self, perf_map):
        """Records the bombs; returns the recorder's log."""
        with (self.folder / "log").open("w+", encoding="utf-8") as log:
            began = time.monotonic()
            recorder = subprocess.Popen([program.GPUSONDE, "record", "-o", self.recording, "--", sys.executable, BOMBS, self.folder,
                                         str(SECONDS), perf_map], stderr=log, env=dict(os.environ, GPUSONDE_LOG="info"))
            self.addCleanup(recorder.kill)
            while (ended := os.wait4(recorder.pid, os.WNOHANG))[0] == 0:
                self.assertLess(time.monotonic() - began, DEADLINE_S)
                time.sleep(0.05)
            recorder.returncode = os.waitstatus_to_exitcode(ended[1])
            log.seek(0)
            logged = log.read()
        self.assertEqual(recorder.returncode, 0, logged)
        self.assertLess(ended[2].ru_maxrss >> 10, MAX_RSS_MB)
        self.assertIn(f"no unwind table for {self.folder}/unwind: ", logged)
        self.assertIn(f"no symbols for {self.folder}/symbols: ", logged)
        return logged

    def samples_of(self, condition):
        return self.value(f"""
            SELECT count(*) FROM samples JOIN stacks USING (stack) JOIN locations l ON l.location = stacks.locations[1]
            LEFT JOIN binaries USING (binary_id) WHERE state = 'on_cpu' AND {condition}""")

    def check_samples(self):
        """At least a quarter of the time of each kind of code was sampled."""
        for condition in ("binaries.name = 'symbols'", "binaries.name = 'unwind'", "l.kind = 'jit'"):
            self.assertGreater(self.samples_of(condition), SECONDS * 99 / 3 / 4, condition)

    def test_symbols_instructions_and_a_fifo(self):
        self.record_within_bounds("fifo")
        self.check_samples()

    def test_a_perf_map_of_ten_million_lines(self):
        self.record_within_bounds("large")
        self.check_samples()

    @unittest.skipUnless(os.geteuid() == 0, "only root can start processes of another user")
    def test_an_interrupt_is_answered_while_costly_files_of_another_user_are_read(self):
        """Read one after the other in the agent, they would stall it for half a minute."""
        self.folder.chmod(0o777)
        bombs = subprocess.Popen(["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", sys.executable, BOMBS, self.folder,
                                  "60", "none", str(COPIES)], stdout=subprocess.PIPE)
        self.addCleanup(bombs.wait)
        self.addCleanup(bombs.kill)
        bombs.stdout.readline()
        recorder = self.attach(bombs.pid)
        time.sleep(SECONDS)
        for _ in range(2):
            recorder.send_signal(signal.SIGINT)
            began = time.monotonic()
            while recorder.poll() is None and "Ctrl-C" not in self.logged():
                self.assertLess(time.monotonic() - began, ANSWER_S)
                time.sleep(0.02)
        self.assertEqual(recorder.wait(timeout=ANSWER_S), 0, self.logged())
        self.assertGreater(self.value("SELECT count(*) FROM samples WHERE state = 'on_cpu'"), SECONDS * 99 / 10)


if __name__ == "__main__":
    unittest.main()
