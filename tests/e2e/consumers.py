# SPDX-License-Identifier: Apache-2.0
"""Programs with GPU work, and consumers of it, that tests start and end."""

import json
import re
import signal
import subprocess
import sys
import time

import program

LAUNCHES = program.ROOT / "tests/programs/gpu_launches.py"
LIBRARY = program.BUILD / "lib/libgpusonde-inject.so"
KERNELS_A_ROUND = 153
# A rate at which the governor does not suspend profiling.
PAUSE_S = "0.1"
PATIENCE_S = 120

IDENTITIES = """
    SELECT count(*) AS kernels, count(*) FILTER (kernels.name = '') AS nameless,
           count(*) FILTER (devices.device IS NULL) AS of_no_device, count(DISTINCT kernels.device) AS devices
    FROM kernels LEFT JOIN devices USING (device)"""


class ConsumersTestCase(program.TestCase):
    def setUp(self):
        super().setUp()
        self.state = self.folder / "state"
        self.environment = self.simulated_machine()
        # Like a rank of a recorded program, so that no governor ends its sessions and all of its work is counted.
        self.injected = dict(self.environment, CUDA_INJECTION64_PATH=str(LIBRARY), GPUSONDE_INJECT_SOCKET="99:1")

    def start(self, *command, environment=None):
        process = subprocess.Popen([str(part) for part in command], env=environment or self.injected,
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        return process

    def start_up(self, state=None):
        """Starts `gpusonde up` and waits until it profiles."""
        up = self.start(program.GPUSONDE, "up", "--state", state or self.state, "--listen", "127.0.0.1:0", "--no-open")
        up.url = next(found.group(1) for line in up.stdout if (found := re.search(r"the UI is at (http://\S+/)", line)))
        return up

    def start_record(self, name, *options):
        record = self.start(program.GPUSONDE, "record", "-o", self.folder / name, *options)
        record.recording = self.folder / name
        return record

    def launches(self, rounds, loading_s=0, through=()):
        return self.start(*through, sys.executable, LAUNCHES, rounds, loading_s, PAUSE_S)

    def await_kernels(self, process, count):
        """Waits until the device has executed this many kernels of a process."""
        deadline = time.monotonic() + PATIENCE_S
        while True:
            done = subprocess.run([program.SIMGPU, "status"], env=self.environment, capture_output=True, text=True, check=True)
            (device,) = json.loads(done.stdout)["devices"]
            if any(one["pid"] == process.pid and one["kernels"] >= count for one in device["processes"]):
                return
            self.assertLess(time.monotonic(), deadline, device)
            time.sleep(0.05)

    def stop(self, consumer, how=signal.SIGINT):
        consumer.send_signal(how)
        _, errors = consumer.communicate(timeout=PATIENCE_S)
        self.assertEqual(consumer.returncode, 0, errors)
        return errors

    def end(self, process):
        _, errors = process.communicate(timeout=PATIENCE_S)
        self.assertEqual(process.returncode, 0, errors)
        return errors

    def day(self, state=None):
        (day,) = ((state or self.state) / "days").glob("*.sonde")
        return day

    def assert_identified(self, recording, kernels=None):
        """Every kernel has a name and the machine's only device. Returns the number of kernels."""
        (row,) = self.query(IDENTITIES, recording)
        self.assertEqual((row["nameless"], row["of_no_device"], row["devices"]), (0, 0, 1), row)
        self.assertGreater(row["kernels"], 0)
        if kernels is not None:
            self.assertEqual(row["kernels"], kernels)
        self.assertEqual(self.query("SELECT * FROM drops WHERE reason LIKE 'gpu%'", recording), [])
        self.assertEqual(self.value("SELECT count(*) FROM gpu_sessions WHERE start_ns <= 0", recording), 0)
        self.assertEqual(self.value("SELECT count(*) FROM devices", recording), 1)
        return row["kernels"]
