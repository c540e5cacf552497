# SPDX-License-Identifier: Apache-2.0
"""What `gpusonde view` returns for a recording: waits, and source files by line."""

import json
import sys
import unittest
import urllib.error
import urllib.parse
import urllib.request

import program

CPUS = 0.5
SHAPES = program.ROOT / "tests/programs/py_shapes.py"


def view(recording, *options):
    """The URL of a `gpusonde view` of the recording, while it runs."""
    return program.serving([program.GPUSONDE, "view", recording, "--listen", "127.0.0.1:0", "--no-open", *options])


def get(url, endpoint, timeout_s=30, **parameters):
    with urllib.request.urlopen(f"{url}api/v1/{endpoint}?{urllib.parse.urlencode(parameters)}", timeout=timeout_s) as answer:
        return json.load(answer)


class View(program.SharedRecordings):
    def setUp(self):
        super().setUp()
        self.enterContext(self.recorded("shapes", self.record_shapes))

    def record_shapes(self):
        done = self.record(sys.executable, SHAPES, 2, options=("--hz", "499"))
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_a_source_file_has_the_time_of_its_lines(self):
        with view(self.recording, "--sources", SHAPES.parent) as url:
            source = get(url, "source", file=SHAPES)
            self.assertEqual(source["text"], SHAPES.read_text())
            times = source["lines"]
            own = dict(zip(times["line"], times["cpu_self"]))
            hottest = source["text"].splitlines()[max(own, key=own.get) - 1]
            inner = [number for number, text in enumerate(source["text"].splitlines(), 1) if "LINE: spin" in text]
            self.assertIn(max(own, key=own.get), (inner[0], inner[0] - 1), hottest)
            self.assertLessEqual(sum(own.values()), source["total"]["cpu"])
            for line, self_ns, total_ns in zip(times["line"], times["cpu_self"], times["cpu"]):
                self.assertLessEqual(self_ns, total_ns, line)
            self.assertGreater(source["total"]["waits"], 0)

    def test_only_named_files_in_named_folders_are_shown(self):
        with view(self.recording, "--sources", self.folder) as url:
            source = get(url, "source", file=SHAPES)
            self.assertIsNone(source["text"])
            self.assertIn("--sources", source["unreadable"])
            self.assertTrue(source["lines"]["line"])
            with self.assertRaises(urllib.error.HTTPError) as refused:
                get(url, "source", file=self.recording)
            self.assertEqual(refused.exception.code, 404)

    def test_waits_are_named_by_reason(self):
        with view(self.recording) as url:
            waits = get(url, "flamegraph", type="off_cpu")
            self.assertEqual(waits["type"], "off_cpu")
            names = [waits["strings"][name] for name in waits["functions"]["name"]]
            leaves = {names[waits["nodes"]["function"][node]] for node, self_ns in enumerate(waits["nodes"]["self"]) if self_ns > 0}
            self.assertLessEqual(leaves, {"[waits for I/O]", "[waits for a lock]", "[waits for another thread]", "[sleeps]", "[waits for a CPU]", "[waits for a GPU]"})
            parts = [get(url, "flamegraph", type="off_cpu", wait=wait)["total"] for wait in
                     ("io", "lock", "condition", "sleep", "run_queue", "gpu_wait")]
            self.assertEqual(sum(parts), waits["total"])

    def test_a_missing_source_folder_is_an_error(self):
        done = program.run("view", self.recording, "--sources", self.folder / "nowhere", "--no-open")
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr, "^gpusonde view: .*nowhere.*")


class GpuTime(program.TestCase):
    def test_strip_devices_summary_and_sql_agree_on_how_busy_the_device_was(self):
        # It loads for a second, in which the device is idle and the library isn't loaded.
        done = self.record(sys.executable, program.ROOT / "tests/programs/gpu_launches.py", 20, 1,
                           env=self.simulated_machine())
        self.assertEqual(done.returncode, 0, done.stderr)
        by_sql = self.value("""
            WITH work AS (SELECT start_ns, end_ns FROM kernels UNION ALL SELECT start_ns, end_ns FROM memcpys
                          UNION ALL SELECT start_ns, end_ns FROM memsets)
            SELECT sum(greatest(end_ns - greatest(start_ns, coalesce(until_ns, 0)), 0))::BIGINT FROM (
              SELECT start_ns, end_ns, max(end_ns) OVER (ORDER BY start_ns, end_ns
                ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS until_ns FROM work)""")
        self.assertGreater(by_sql, 0)
        with view(self.recording) as url:
            (device,) = get(url, "devices")["devices"]
            summary = get(url, "summary")["gpu"]
            for buckets in (1, 7, 600):
                answer = get(url, "strips", buckets=buckets)
                (strip,) = (strip for strip in answer["strips"] if strip["unit"] == "%" and "device" in strip)
                observed = sum(strip["observed"]) * answer["bucket_us"] * 1000
                busy = sum(value / 100 * seen for value, seen in zip(strip["values"], strip["observed"])
                           if value is not None) * answer["bucket_us"] * 1000
                self.assertAlmostEqual(busy, by_sql, delta=2000 * buckets)
                self.assertAlmostEqual(observed, device["observed_ns"], delta=2000 * buckets)
        self.assertEqual((device["busy_ns"], summary["busy_ns"]), (by_sql, by_sql))
        self.assertEqual(summary["observed_ns"], device["observed_ns"])


if __name__ == "__main__":
    unittest.main()
