# SPDX-License-Identifier: Apache-2.0
"""Load on the host doesn't change the durations of simulated kernels. Otherwise faults of the host would be faults of the
GPU too, and bench/diagnose would measure nothing."""

import os
import pathlib
import subprocess
import sys
import time
import unittest

import program

ALONE = "it takes all CPUs"
BUSY = "while True: sum(range(10_000))"
STEPS = 150
KERNELS_NS = {"interior_stencil": 6_000_000, "boundary_stencil": 400_000, "pack_halo": 150_000, "unpack_halo": 150_000,
              "residual_norm": 80_000}  # as in examples/hpc/hpc.cpp


def idle_ticks():
    """(idle CPU ticks, all CPU ticks)"""
    ticks = list(map(int, pathlib.Path("/proc/stat").read_text(encoding="ascii").split("\n", 1)[0].split()[1:9]))
    return ticks[3] + ticks[4], sum(ticks)


class SimulatedKernels(program.TestCase):
    def setUp(self):
        super().setUp()
        self.environment = self.simulated_machine()

    def durations(self, busy=0):
        """{kernel: (count, shortest, longest)}, and the idle share of the CPUs, beside this many busy processes."""
        log = self.folder / "steps"
        log.unlink(missing_ok=True)
        hogs = [subprocess.Popen([sys.executable, "-c", BUSY]) for _ in range(busy)]
        recorder = subprocess.Popen(
            [program.GPUSONDE, "record", "-o", self.recording, "--", program.BUILD / "bin/hpc", "--steps", str(STEPS),
             "--step-log", log], env=self.environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL)
        idle, ticks = idle_ticks()
        try:
            while recorder.poll() is None and (not log.exists() or log.read_bytes().count(b"\n") < STEPS):
                time.sleep(0.02)
            idle, ticks = (after - before for after, before in zip(idle_ticks(), (idle, ticks), strict=True))
        finally:
            for hog in hogs:
                hog.kill()
                hog.wait()
        self.assertEqual(recorder.wait(timeout=120), 0)
        rows = self.query("SELECT name, count(*) AS n, min(end_ns - start_ns) AS least, max(end_ns - start_ns) AS most "
                          "FROM kernels GROUP BY name")
        self.recording.unlink()
        return {row["name"]: (row["n"], row["least"], row["most"]) for row in rows}, idle / ticks

    @program.measures
    def test_kernels_take_the_same_time_however_busy_the_host_is(self):
        alone, _ = self.durations()
        busy, idle = self.durations(busy=2 * os.cpu_count())
        self.assertEqual(alone, busy)
        self.assertLess(idle, 0.1, "the host was not busy enough for a conclusion")
        for name, duration_ns in KERNELS_NS.items():
            (found,) = (times for mangled, times in busy.items() if mangled.lstrip("_Z0123456789") == f"{name}m")
            self.assertEqual(found, (STEPS, duration_ns, duration_ns))


if __name__ == "__main__":
    unittest.main()
