# SPDX-License-Identifier: Apache-2.0
"""The examples that use a GPU do what their READMEs say, on the simulated GPU."""

import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time
import unittest

from program import BUILD, ROOT, SIMGPU

HPC = BUILD / "bin/hpc"
TRAIN = ROOT / "examples/train/train.py"


def on_simgpu(*command, **options):
    """Starts a command with simulated devices of its own."""
    environment = {**os.environ, "SIMGPU_MACHINE": f"simgpu-e2e-{os.getpid()}", **options.pop("env", {})}
    return subprocess.Popen([str(SIMGPU), "run", "--", *map(str, command)], stdout=subprocess.PIPE,
                            stderr=subprocess.STDOUT, text=True, env=environment, **options)


def start(*flags):
    return on_simgpu(sys.executable, TRAIN, *flags, start_new_session=True)


def tearDownModule():
    for file in pathlib.Path("/dev/shm").glob(f"simgpu-e2e-{os.getpid()}.*"):
        file.unlink()


def last_loss(*flags):
    program = start(*flags)
    output, _ = program.communicate(timeout=120)
    assert program.returncode == 0, output
    return float(re.search(r"loss (\S+);", output.splitlines()[-1])[1])


def account(log):
    """Lines of a SIMGPU_LOG by their kind."""
    lines = [line.split("\t") for line in pathlib.Path(log).read_text(encoding="utf-8").splitlines()]
    return {kind: [line for line in lines if line[0] == kind] for kind in ("kernel", "memcpy", "memset", "sync")}


class Train(unittest.TestCase):
    def test_it_learns_the_same_with_any_number_of_workers(self):
        losses = {last_loss("--steps", "10", "--workers", str(workers)) for workers in (0, 1, 3)}
        self.assertEqual(len(losses), 1)
        self.assertLess(losses.pop(), 0.5 * last_loss("--steps", "1", "--workers", "0"))

    def test_a_step_puts_the_recorded_kernels_on_the_device(self):
        with tempfile.TemporaryDirectory() as folder:
            log = pathlib.Path(folder, "log")
            program = on_simgpu(sys.executable, TRAIN, "--steps", "4", "--workers", "0", env={"SIMGPU_LOG": str(log)})
            output, _ = program.communicate(timeout=120)
            self.assertEqual(program.returncode, 0, output)
            done = account(log)
        self.assertIn("on Simulated", output)
        stream = (ROOT / "data/kernel-streams/dlrm-train-a100.stream").read_text(encoding="utf-8").splitlines()
        recorded = [line for line in stream if line.startswith("k ")]  # two steps
        self.assertEqual(len(done["kernel"]), 2 * len(recorded))
        self.assertGreater(sum(line[9] != "0" for line in done["kernel"]), 0, "the optimizer runs as a graph")
        uploads = 4
        copies = sum(line.startswith("c ") for line in stream)
        self.assertEqual(len(done["memcpy"]), 2 * copies + uploads)

    def test_without_a_driver_it_says_what_to_do(self):
        environment = {**os.environ, "LD_LIBRARY_PATH": ""}
        for command in ([sys.executable, str(TRAIN)], [str(HPC)]):
            program = subprocess.run(command, capture_output=True, text=True, timeout=60, env=environment, check=False)
            if program.returncode == 0:
                self.skipTest("this machine has a CUDA driver")
            self.assertIn("simgpu run", program.stderr)
            self.assertEqual(program.returncode, 1)

    def test_a_stream_that_makes_no_sense_is_refused_with_its_line(self):
        with tempfile.NamedTemporaryFile("w", suffix=".stream") as file:
            file.write("kernel-stream 1\nk 0 5 1 1 1\n")
            file.flush()
            program = start("--stream", file.name, "--steps", "1")
            output, _ = program.communicate(timeout=60)
        self.assertEqual(program.returncode, 1)
        self.assertIn(":2: can't read", output)

    def test_ctrl_c_ends_all_its_processes_with_a_summary(self):
        program = start("--workers", "2", "--seconds", "100")
        self.assertIn("on ", program.stdout.readline())
        self.assertIn("loss", program.stdout.readline())
        os.killpg(program.pid, signal.SIGINT)
        output, _ = program.communicate(timeout=60)
        self.assertEqual(program.returncode, 130)
        self.assertNotIn("Traceback", output)
        self.assertRegex(output.splitlines()[-1], r"^\d+ steps, 2 workers; loss")
        with self.assertRaises(ProcessLookupError):  # Python's resource tracker ends a little later
            for _ in range(100):
                os.killpg(program.pid, 0)
                time.sleep(0.1)


class Hpc(unittest.TestCase):
    def test_what_it_computes_depends_on_the_steps_alone(self):
        checksums = set()
        for _ in range(2):
            program = on_simgpu(HPC, "--steps", "5", "--halo-mb", "1")
            output, _ = program.communicate(timeout=60)
            self.assertEqual(program.returncode, 0, output)
            self.assertRegex(output, r"^on Simulated")
            checksums.add(re.search(r"checksum (\w+)", output)[1])
        self.assertEqual(len(checksums), 1)


if __name__ == "__main__":
    unittest.main()
