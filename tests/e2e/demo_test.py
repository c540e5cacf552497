# SPDX-License-Identifier: Apache-2.0
"""tools/demo: its statements are correct, and the files that it names exist."""

import importlib.util
import json
import os
import pathlib
import random
import re
import subprocess
import tempfile
import threading
import time
import unittest
import urllib.request

from program import BUILD, GPUSONDE, ROOT

SPEC = importlib.util.spec_from_file_location("demo_verdict", ROOT / "tools/demo_verdict.py")
demo_verdict = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(demo_verdict)
MACHINE = f"simgpu-demo-{os.getpid()}"


def tearDownModule():
    for file in pathlib.Path("/dev/shm").glob(f"{MACHINE}.*"):
        file.unlink()


def starts(step_ms, steps=40, noise=0.0, seed=1):
    chance = random.Random(seed)
    times, now = [], 10**18
    for _ in range(steps):
        times.append(now)
        now += int(1e6 * step_ms * (1 + noise * chance.uniform(-1, 1)))
    return times


class Verdict(unittest.TestCase):
    def test_a_clear_difference_is_reported_with_its_size(self):
        text = demo_verdict.verdict(starts(200, noise=0.2), starts(100, noise=0.2, seed=2))
        self.assertRegex(text, r"made steps (1\.9|2\.[01])\d times as fast: ")
        self.assertRegex(demo_verdict.verdict(starts(100), starts(150)), r"made steps 1\.50 times slower")

    def test_the_same_program_twice_on_a_busy_machine_is_no_difference(self):
        claims = sum("no difference beyond the noise" not in demo_verdict.verdict(
            starts(150, noise=0.6, seed=2 * run), starts(150, noise=0.6, seed=2 * run + 1)) for run in range(200))
        self.assertLessEqual(claims, 8, "about 200 / 126 × 2 by chance")

    def test_a_crowded_machine_is_named(self):
        text = demo_verdict.verdict(starts(100), starts(100), load=9.0, cpus=2)
        self.assertIn("9.0 threads shared 2 CPUs", text)
        self.assertNotIn("shared", demo_verdict.verdict(starts(100), starts(100), load=1.0, cpus=2))

    def test_a_handful_of_steps_says_nothing(self):
        self.assertIn("Too few steps", demo_verdict.verdict(starts(100, steps=9), starts(10)))


class Demo(unittest.TestCase):
    def test_it_shows_the_gpus_state_and_names_only_what_it_leaves(self):
        with tempfile.TemporaryDirectory() as folder:
            environment = {**os.environ, "GPUSONDE": str(GPUSONDE), "DURATION": "14", "DEMO_FOLDER": folder,
                           "SIMGPU_MACHINE": MACHINE}
            demo = subprocess.Popen([ROOT / "tools/demo"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                    env=environment)
            lines, metrics = [], set()
            reader = threading.Thread(target=lambda: lines.extend(demo.stdout))
            reader.start()
            end = time.monotonic() + 180
            while demo.poll() is None and time.monotonic() < end:
                url = re.search(r"The UI: (http://\S+)", "".join(lines))
                if url:
                    metrics |= self.metrics(url[1])
                time.sleep(1)
            if demo.poll() is None:
                demo.terminate()
            reader.join()
            text = "".join(lines)
            self.assertEqual(demo.returncode, 0, text)
            self.assertIn("SM clock", metrics, text)
            self.assertIn("Power", metrics, text)
            for path in re.findall(r"\S+\.sonde", text):
                self.assertTrue(pathlib.Path(path.rstrip(":,")).exists(), f"{path} is named but missing")
            self.assertRegex(text, r"1 worker\(s\): GPU busy [\d.]+ % \(simulated\); while idle: [\d.]+ % \S+\.py:\d+ ")
            self.assertRegex(text, r"second worker made|Too few steps")

    def metrics(self, url):
        """Names of the state strips that have values."""
        try:
            with urllib.request.urlopen(f"{url}api/v1/strips?metrics=1", timeout=10) as answer:
                strips = json.load(answer)["strips"]
        except OSError:
            return set()
        return {strip["label"] for strip in strips if "metric" in strip and any(v is not None for v in strip["values"])}


if __name__ == "__main__":
    unittest.main()
