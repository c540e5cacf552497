# SPDX-License-Identifier: Apache-2.0
"""What `gpusonde view` answers about a recording just made: waits, and source files line by line."""

import json
import subprocess
import sys
import unittest
import urllib.error
import urllib.parse
import urllib.request

import program

SHAPES = program.ROOT / "tests/programs/py_shapes.py"


def view(recording, *options):
    """Where a `gpusonde view` of the recording answers, while it runs."""
    return program.serving([program.GPUSONDE, "view", recording, "--listen", "127.0.0.1:0", "--no-open", *options])


def get(url, endpoint, **parameters):
    with urllib.request.urlopen(f"{url}api/v1/{endpoint}?{urllib.parse.urlencode(parameters)}", timeout=30) as answer:
        return json.load(answer)


class View(program.TestCase):
    def setUp(self):
        super().setUp()
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

    def test_waits_are_told_by_what_they_are_for(self):
        with view(self.recording) as url:
            waits = get(url, "flamegraph", type="off_cpu")
            self.assertEqual(waits["type"], "off_cpu")
            names = [waits["strings"][name] for name in waits["functions"]["name"]]
            leaves = {names[waits["nodes"]["function"][node]] for node, self_ns in enumerate(waits["nodes"]["self"]) if self_ns > 0}
            self.assertLessEqual(leaves, {"[waits for I/O]", "[waits for a lock]", "[waits for another thread]", "[sleeps]", "[waits for a CPU]", "[waits for a GPU]"})
            parts = [get(url, "flamegraph", type="off_cpu", wait=wait)["total"] for wait in
                     ("io", "lock", "condition", "sleep", "run_queue", "gpu_wait")]
            self.assertEqual(sum(parts), waits["total"])

    def test_a_folder_of_sources_that_is_not_there_is_said(self):
        done = program.run("view", self.recording, "--sources", self.folder / "nowhere", "--no-open")
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr, "^gpusonde view: .*nowhere.*")


if __name__ == "__main__":
    unittest.main()
