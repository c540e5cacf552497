# SPDX-License-Identifier: Apache-2.0
"""The simulated GPU keeps its own time: what the host does moves no kernel's duration. Else faults of the host would be
faults of the GPU too, and bench/diagnose would measure nothing."""

import os
import subprocess
import sys

import program

ALONE = "it takes all CPUs"
BUSY = "while True: sum(range(10_000))"
STEPS = 200
KERNELS_NS = {"interior_stencil": 6_000_000, "boundary_stencil": 400_000, "pack_halo": 150_000, "unpack_halo": 150_000,
              "residual_norm": 80_000}  # as examples/hpc/hpc.cpp tells them


class SimulatedKernels(program.TestCase):
    def setUp(self):
        super().setUp()
        done = subprocess.run([program.BUILD / "bin/simgpu", "env"], capture_output=True, text=True, check=True)
        self.environment = dict(os.environ, LD_LIBRARY_PATH=done.stdout.strip(), SIMGPU_MACHINE=self.folder.name)
        self.addCleanup(subprocess.run, [program.BUILD / "bin/simgpu", "reset"], env=self.environment, capture_output=True,
                        check=False)

    def durations(self):
        """{kernel: (how many, shortest, longest)}, and ms of a step."""
        log = self.folder / "steps"
        done = self.record(program.BUILD / "bin/hpc", "--steps", str(STEPS), "--step-log", log, env=self.environment)
        self.assertEqual(done.returncode, 0, done.stderr)
        rows = self.query("SELECT name, count(*) AS n, min(end_ns - start_ns) AS least, max(end_ns - start_ns) AS most "
                          "FROM kernels GROUP BY name")
        steps = [tuple(map(int, line.split()[:2])) for line in log.read_text().splitlines()]
        self.recording.unlink()
        return {row["name"]: (row["n"], row["least"], row["most"]) for row in rows}, sum(e - b for b, e in steps) / len(steps)

    def test_kernels_take_the_same_time_however_busy_the_host_is(self):
        alone, step_ns = self.durations()
        for _ in range(3 * os.cpu_count()):
            self.addCleanup(subprocess.Popen([sys.executable, "-c", BUSY]).kill)
        busy, busy_step_ns = self.durations()
        self.assertEqual(alone, busy)
        self.assertGreater(busy_step_ns, 1.05 * step_ns, "the host was not busy enough for this to say anything")
        for name, duration_ns in KERNELS_NS.items():
            (found,) = (times for mangled, times in busy.items() if mangled.lstrip("_Z0123456789") == f"{name}m")
            self.assertEqual(found, (STEPS, duration_ns, duration_ns))


if __name__ == "__main__":
    import unittest
    unittest.main()
