# SPDX-License-Identifier: Apache-2.0
"""`gpusonde diagnose` of a recording without GPU work, and `gpusonde up` without diagnosis."""

import json
import signal
import subprocess
import sys
import unittest

import program

OWN_MACHINE = "up profiles every GPU program of the machine"
CPUS = 0.25  # it waits for a program with GPU work


class Undiagnosed(program.TestCase):
    def test_a_program_without_a_gpu_has_no_steps(self):
        done = self.record(sys.executable, "-c", "pass")
        self.assertEqual(done.returncode, 0, done.stderr)
        done = program.run("diagnose", self.recording, "--format", "json")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(json.loads(done.stdout), {"version": 1, "programs": [], "incidents": [], "warnings": []})

    def test_up_runs_without_diagnosis_on_request(self):
        state = self.folder / "state"
        environment = self.simulated_machine(CUDA_INJECTION64_PATH=str(program.BUILD / "lib/libgpusonde-inject.so"))
        up = self.enterContext(subprocess.Popen(
            [program.GPUSONDE, "up", "--no-diagnose", "--state", state, "--listen", "127.0.0.1:0", "--no-open"],
            env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True))
        self.addCleanup(up.kill)
        self.assertTrue(any("http://" in line for line in up.stdout))
        subprocess.run([program.BUILD / "bin/hpc", "--seconds", "5"], env=environment, stdout=subprocess.DEVNULL, check=True)
        up.send_signal(signal.SIGINT)
        self.assertEqual(up.wait(timeout=60), 0)
        (day,) = (state / "days").glob("*.sonde")
        (rows,) = self.query("SELECT (SELECT count(*) FROM kernel_packs) AS packs, (SELECT count(*) FROM signals) AS signals, "
                             "(SELECT count(*) FROM steps) AS steps", day)
        self.assertGreater(rows["packs"], 0)
        self.assertEqual((rows["signals"], rows["steps"]), (0, 0))


if __name__ == "__main__":
    unittest.main()
