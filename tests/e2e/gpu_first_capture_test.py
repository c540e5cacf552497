# SPDX-License-Identifier: Apache-2.0
"""The first CUDA graph that a program captures has stacks."""

import sys
import time
import unittest

import consumers
import program
from consumers import LAUNCHES

OWN_MACHINE = "up profiles every GPU program of the machine"
CPUS = 1  # `up` must know a program half a second after its start, or its first capture has no stacks

CAPTURERS = f"SELECT functions.name AS name, count(*) AS kernels {program.GRAPH_CAPTURERS} GROUP BY ALL"


class FirstCapture(consumers.ConsumersTestCase):
    def lingering_launches(self, go):
        """A program that ends once there is the file `go`: when the names of its functions, which are in its memory, have been read."""
        code = (f"import os, sys, time; sys.path.insert(0, '{LAUNCHES.parent}'); import gpu_launches; sys.argv = ['', '10']\n"
                f"gpu_launches.main()\nwhile not os.path.exists('{go}') and os.path.exists('{self.folder}'): time.sleep(0.1)")
        return sys.executable, "-c", code

    def test_that_of_a_recorded_program_is_whole(self):
        go = self.folder / "go"
        record = self.start_record(self.recording.name, "--", *self.lingering_launches(go))
        self.await_spooled(f"SELECT count(*) FILTER (functions.name = 'make_graph') {program.GRAPH_CAPTURERS}",
                           lambda kernels: kernels == 3 * 10)
        go.touch()
        self.end(record)
        capturers = {row["name"]: row["kernels"] for row in self.query(CAPTURERS, record.recording)}
        self.assertEqual(capturers.get("make_graph"), 3 * 10, capturers)

    def test_that_of_a_program_is_whole_under_up(self):
        up = self.start_up()
        # Its first rounds compile the unwind tables of all running programs, the interpreter's too.
        spinner = self.start(sys.executable, "-c", "def spin():\n    while True: pass\nspin()")
        self.await_frame(up.url, spinner.pid, "spin")
        spinner.kill()
        go = self.folder / "go"
        launches = self.start(*self.lingering_launches(go))
        self.await_frame(up.url, launches.pid, "make_graph", "gpu")
        go.touch()
        self.end(launches)
        time.sleep(1.5)
        self.stop(up)
        capturers = {row["name"]: row["kernels"] for row in self.query(CAPTURERS, self.day())}
        self.assertEqual(capturers.get("make_graph"), 3 * 10, capturers)


if __name__ == "__main__":
    unittest.main()
