# SPDX-License-Identifier: Apache-2.0
"""tools/gpu-suite on the simulated GPU: its parts without PyTorch, and parts that can't run."""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

import program
from program import BUILD, ROOT

SUITE = ROOT / "tools/gpu-suite"
sys.path.insert(0, str(ROOT / "examples/train"))
import replay  # noqa: E402

CPUS = 0.5
TAKES_S = 75
MACHINE = f"simgpu-suite-{os.getpid()}"


def tearDownModule():
    for file in pathlib.Path("/dev/shm").glob(f"{MACHINE}.*"):
        file.unlink()


class Folder(unittest.TestCase):
    def setUp(self):
        self.out = pathlib.Path(tempfile.mkdtemp(prefix="gpusonde-suite-"))
        self.addCleanup(shutil.rmtree, self.out)
        self.environment = {**os.environ, "GPUSONDE_BUILD": str(BUILD), "SIMGPU_MACHINE": MACHINE}

    def suite(self, *arguments, simulated=False, timeout=280):
        before = [str(BUILD / "bin/simgpu"), "run", "--"] if simulated else []
        return subprocess.run([*before, sys.executable, str(SUITE), *map(str, arguments)], env=self.environment,
                              capture_output=True, text=True, timeout=timeout, check=False)

    def results(self):
        results = json.loads((self.out / "results.json").read_text())
        return {entry["part"]: entry for entry in results["parts"]}


class WithoutAGpu(Folder):
    def test_every_part_that_needs_one_is_skipped_with_its_reason(self):
        done = self.suite("run", "--out", self.out, "--quick")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        parts = self.results()
        self.assertEqual({name for name, entry in parts.items() if entry["status"] == "done"}, {"machine", "doctor"})
        for name, entry in parts.items():
            if entry["status"] != "done":
                self.assertEqual(entry["status"], "skipped", entry)
                self.assertGreater(len(entry["why"]), 10, name)

    def test_a_part_that_dies_or_has_no_time_stops_no_other(self):
        tools = self.out / "bin"
        tools.mkdir()
        (tools / "nvidia-smi").write_text("#!/bin/sh\nkill -9 $PPID\n")
        (tools / "nvidia-smi").chmod(0o755)
        self.environment["PATH"] = f"{tools}:{os.environ['PATH']}"
        done = self.suite("run", "--out", self.out, "--quick", "machine", "doctor")
        self.assertEqual(done.returncode, 1)
        parts = self.results()
        self.assertEqual(parts["machine"]["status"], "failed")
        self.assertIn("status -9", parts["machine"]["why"])
        self.assertEqual(parts["doctor"]["status"], "done")
        self.suite("run", "--out", self.out, "--budget", "5", "doctor")
        self.assertEqual(self.results()["doctor"]["status"], "not run")

    def test_results_of_several_runs_are_one_dated_file_and_page(self):
        first, second = self.out / "1.json", self.out / "2.json"
        machine = {"device": "NVIDIA H100", "date": "2026-11-21T10:00:00+00:00"}
        first.write_text(json.dumps({"machine": machine, "parts": [
            {"part": "streams", "title": "S", "status": "done", "done": ["a"], "left": ["b"], "rows": []},
            {"part": "ncu", "title": "N", "status": "failed", "why": "no"}]}))
        second.write_text(json.dumps({"machine": machine | {"date": "2026-11-21T11:00:00+00:00"}, "parts": [
            {"part": "streams", "title": "S", "status": "done", "done": ["b"], "left": [], "rows": []},
            {"part": "ncu", "title": "N", "status": "done", "rows": [
                {"name": "x", "value": 2, "unit": "ns", "goal": "≤ 3", "met": True}]}]}))
        done = self.suite("report", first, second, "--data", self.out / "data", "--docs", self.out / "docs")
        self.assertEqual(done.returncode, 0, done.stderr)
        merged = json.loads((self.out / "data/2026-11-21-nvidia-h100.json").read_text())
        streams, ncu = merged["parts"]
        self.assertEqual((streams["done"], streams["left"], ncu["status"]), (["a", "b"], [], "done"))
        self.assertIn("| x | 2 ns | ≤ 3 ✓ |", (self.out / "docs/2026-11-21-nvidia-h100.md").read_text())

        self.suite("run", "--out", self.out, "--quick", "--done", first)
        self.assertIn("ncu", self.results(), "it had failed")
        self.assertIn("streams", self.results(), "something was left")
        self.suite("run", "--out", self.out, "--quick", "--done", first, "--done", second)
        self.assertFalse({"ncu", "streams"} & set(self.results()), "both were done in the end")


class OnTheSimulatedGpu(Folder):
    @classmethod
    def setUpClass(cls):
        if not program.can_record():
            raise unittest.SkipTest("gpusonde can't record on this machine: see `gpusonde doctor`")

    def test_the_suite_and_gpusonde_see_the_same_device(self):
        done = self.suite("run", "--out", self.out, "--quick", "examples", "graphs", "other-tool", "attach", simulated=True)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        for name, entry in self.results().items():
            self.assertEqual(entry["status"], "done", (name, entry.get("why")))
            for fact in entry["facts"]:
                if fact["fact"].startswith("enabling kernel records after modules were loaded"):
                    self.assertFalse(fact["holds"], "simgpu takes no time for that by default")
                else:
                    self.assertTrue(fact["holds"], fact)

    def test_costs_are_measured_in_every_way_and_not_judged(self):
        done = self.suite("run", "--out", self.out, "--quick", "launches", "steps", simulated=True)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        parts = self.results()
        names = [row["name"] for row in parts["launches"]["rows"]]
        for rate in ("80 launches/s, each with its stack", "10,000 launches/s", "as many as go"):
            for way in ("asleep adds", "CUPTI itself adds", "gpusonde adds to that"):
                self.assertIn(f"{rate}: {way}", names)
        for entry in parts.values():
            for row in entry["rows"]:
                self.assertNotIn("goal", row)
                self.assertIsInstance(row["value"], (int, float), row)
        self.assertIn("these numbers mean nothing", (self.out / "results.md").read_text())

    def test_the_device_state_matches_nvidia_smi(self):
        tools = self.out / "bin"
        tools.mkdir()
        (tools / "nvidia-smi").write_text(f"#!/bin/sh\nexec {sys.executable} {ROOT}/tests/programs/nvidia_smi.py \"$@\"\n")
        (tools / "nvidia-smi").chmod(0o755)
        self.environment["PATH"] = f"{tools}:{os.environ['PATH']}"
        done = self.suite("run", "--out", self.out, "--quick", "nvml", simulated=True)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        nvml = self.results()["nvml"]
        self.assertEqual(nvml["notes"], [], "both report the same metrics")
        compared = [row for row in nvml["rows"] if "goal" in row]
        self.assertEqual(len(compared), 9)
        for row in compared:
            self.assertTrue(row["met"], row)

    def test_a_recorded_stream_is_one_that_examples_can_replay(self):
        # Written like the part `streams` does, from a program with known launches.
        script = f"""
import pathlib, sys, time
sys.path.insert(0, {str(SUITE)!r})
import suite
from parts import streams
here = suite.Suite({str(self.out)!r}, 100)
begin = time.time_ns()
recorded = here.record({str(BUILD / "bin/hpc")!r}, "--steps", 5)
operations = streams.read_operations(here, recorded, [[begin, time.time_ns()]])
streams.write_stream(here.out, {{"model": "hpc", "mode": "infer", "batch": 1, "dtype": "fp64"}}, operations)
"""
        done = subprocess.run([BUILD / "bin/simgpu", "run", "--", sys.executable, "-c", script], env=self.environment,
                              capture_output=True, text=True, timeout=120, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        stream = replay.Stream(self.out / "hpc-infer-b1-fp64-h100.stream")
        ((_, operations),) = stream.steps[0]
        kinds = [operation[0] for operation in operations]
        self.assertEqual({kind: kinds.count(kind) for kind in "kcm"}, {"k": 25, "c": 15, "m": 6})
        self.assertEqual([operation[2] for operation in operations if operation[0] == "k"][:5], [
            "_Z16interior_stencilm", "_Z16boundary_stencilm", "_Z9pack_halom", "_Z11unpack_halom", "_Z13residual_normm"])
        interior = next(operation for operation in operations if operation[2] == "_Z16interior_stencilm")
        self.assertEqual(interior[3:], ((4096, 1, 1, 256, 1, 1), 0, 6_000_000))


if __name__ == "__main__":
    unittest.main()
