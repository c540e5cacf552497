# SPDX-License-Identifier: Apache-2.0
"""The simulated GPU keeps its own time: what the host does moves no kernel's duration. Else faults of the host would be
faults of the GPU too, and bench/diagnose would measure nothing."""

import os
import subprocess
import sys
import time
import unittest

import program

ALONE = "it takes all CPUs"
BUSY = "while True: sum(range(10_000))"
STEPS = 150
KERNELS_NS = {"interior_stencil": 6_000_000, "boundary_stencil": 400_000, "pack_halo": 150_000, "unpack_halo": 150_000,
              "residual_norm": 80_000}  # as examples/hpc/hpc.cpp tells them


class SimulatedKernels(program.TestCase):
    def setUp(self):
        super().setUp()
        done = subprocess.run([program.BUILD / "bin/simgpu", "env"], capture_output=True, text=True, check=True)
        self.environment = dict(os.environ, LD_LIBRARY_PATH=done.stdout.strip(), SIMGPU_MACHINE=self.folder.name)
        self.addCleanup(subprocess.run, [program.BUILD / "bin/simgpu", "reset"], env=self.environment, capture_output=True,
                        check=False)

    def durations(self, busy=0):
        """{kernel: (how many, shortest, longest)}, and ns of a step, beside so many that keep CPUs busy while it steps."""
        log = self.folder / "steps"
        log.unlink(missing_ok=True)
        hogs = [subprocess.Popen([sys.executable, "-c", BUSY]) for _ in range(busy)]
        recorder = subprocess.Popen(
            [program.GPUSONDE, "record", "-o", self.recording, "--", program.BUILD / "bin/hpc", "--steps", str(STEPS),
             "--step-log", log], env=self.environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL)
        try:
            while recorder.poll() is None and (not log.exists() or log.read_bytes().count(b"\n") < STEPS):
                time.sleep(0.02)
        finally:
            for hog in hogs:
                hog.kill()
                hog.wait()
        self.assertEqual(recorder.wait(timeout=120), 0)
        rows = self.query("SELECT name, count(*) AS n, min(end_ns - start_ns) AS least, max(end_ns - start_ns) AS most "
                          "FROM kernels GROUP BY name")
        steps = [tuple(map(int, line.split()[:2])) for line in log.read_text().splitlines()]
        self.recording.unlink()
        return {row["name"]: (row["n"], row["least"], row["most"]) for row in rows}, sum(e - b for b, e in steps) / len(steps)

    @program.measures
    def test_kernels_take_the_same_time_however_busy_the_host_is(self):
        alone, step_ns = self.durations()
        busy, busy_step_ns = self.durations(busy=2 * os.cpu_count())
        self.assertEqual(alone, busy)
        self.assertGreater(busy_step_ns, 1.05 * step_ns, "the host was not busy enough for this to say anything")
        for name, duration_ns in KERNELS_NS.items():
            (found,) = (times for mangled, times in busy.items() if mangled.lstrip("_Z0123456789") == f"{name}m")
            self.assertEqual(found, (STEPS, duration_ns, duration_ns))


if __name__ == "__main__":
    unittest.main()
