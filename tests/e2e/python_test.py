# SPDX-License-Identifier: Apache-2.0
"""`gpusonde record` on Python programs: functions, files and lines of every CPython from 3.9 to 3.13."""

import unittest

import cpython
from program import ROOT, measures

ALONE = "it measures shares of time"

SHAPES = ROOT / "tests/programs/py_shapes.py"

# Locations of functions with this name.
NAMED = "(SELECT list(location) FROM locations l JOIN functions f ON f.function = l.functions[1] WHERE f.name = '{}')"


class Python(cpython.TestCase):
    def record_shapes(self, interpreter, seconds):
        done = self.record(interpreter, SHAPES, seconds, options=("--hz", "499"))
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_each_function_has_its_share_within_two_points(self):
        for version, path in self.interpreters:
            with self.subTest(version=version):
                self.check_shares(version, path)

    @measures
    def check_shares(self, version, path):
        self.record_shapes(path, 5)
        stacks = [(frames, count) for frames, count in self.folded()
                  if {"run_shapes", "spin"} <= set(frames) and "child" not in frames]
        total = sum(count for _, count in stacks)
        load = "load" if version in ("3.9", "3.10") else "Loader.load"
        for function, share in ((load, 50), ("forward", 30), ("backward", 20)):
            found = sum(count for frames, count in stacks if function in frames)
            self.assertAlmostEqual(100 * found / total, share, delta=2, msg=function)

    def test_frames_stand_in_the_order_of_their_calls(self):
        for version, path in self.interpreters:
            with self.subTest(version=version):
                self.record_shapes(path, 1)
                python = self.python_stacks()
                for names in (["batches"], ["<lambda>"] if version in ("3.9", "3.10") else ["forward.<locals>.<lambda>"]):
                    caller = "backward" if names == ["batches"] else "forward"
                    self.assertTrue(["<module> py_shapes.py", "run_shapes", caller, *names, "spin"] in python, names)

    def test_lines_and_files(self):
        line = next(number for number, text in enumerate(SHAPES.read_text().splitlines(), 1) if "LINE: spin" in text)
        for version, path in self.interpreters:
            with self.subTest(version=version):
                self.record_shapes(path, 1)
                rows = self.query("""
                    SELECT f.file, f.line AS first_line, l.lines[1] AS line, count(*) AS samples
                    FROM samples JOIN stacks USING (stack), unnest(locations) AS u(location)
                    JOIN locations l USING (location) JOIN functions f ON f.function = l.functions[1]
                    WHERE state = 'on_cpu' AND l.kind = 'python' AND f.name = 'spin' GROUP BY ALL ORDER BY samples DESC""")
                self.assertEqual({row["file"] for row in rows}, {str(SHAPES)})
                self.assertEqual({row["first_line"] for row in rows}, {line - 5})
                self.assertLessEqual({row["line"] for row in rows}, {line - 5 + i for i in range(7)})
                self.assertIn(rows[0]["line"], (line, line - 1), "most time is in the inner loop")

    def test_threads_and_children(self):
        for version, path in self.interpreters:
            with self.subTest(version=version):
                self.check_threads_and_children(path)

    @measures
    def check_threads_and_children(self, path):
        self.record_shapes(path, 2)
        self.assertEqual(self.value("SELECT count(*) FROM processes"), 2)
        seconds = self.query(f"""
            SELECT process, sum(weight_ns) / 1e9 AS s FROM samples JOIN stacks USING (stack)
            WHERE state = 'on_cpu' AND list_has_any(locations, {NAMED.format("child")}) GROUP BY 1""")
        self.assertEqual(len(seconds), 2)
        for row in seconds:
            self.assertAlmostEqual(row["s"], 0.5, delta=0.05)

    def test_every_function_that_lives_on_has_its_name(self):
        """Except the code of modules, which is freed when it has run, and functions first sampled just before their program
        ends."""
        for version, path in self.interpreters:
            with self.subTest(version=version):
                self.check_names(path)

    @measures
    def check_names(self, path):
        self.record_shapes(path, 1.5)
        in_main = f"list_has_any(locations, {NAMED.format('run_shapes')})"
        early = ("stack IN (SELECT stack FROM samples GROUP BY stack HAVING min(time_ns) < "
                 "(SELECT max(time_ns) FROM samples) - 500000000)")
        unnamed = "(SELECT coalesce(list(location), []) FROM locations WHERE kind = 'python' AND len(functions) = 0)"
        self.assertGreater(self.value(f"SELECT count(*) FROM stacks WHERE {in_main} AND {early}"), 10)
        self.assertEqual(self.value(
            f"SELECT count(*) FROM stacks WHERE {in_main} AND {early} AND list_has_any(locations, {unnamed})"), 0)

    def python_stacks(self):
        """The recording's distinct stacks as the names of their Python frames only, root first."""
        return [row["names"] for row in self.query("""
            WITH names AS (SELECT l.location, f.name FROM locations l JOIN functions f ON f.function = l.functions[1]
                           WHERE l.kind = 'python'),
                 frames AS (SELECT stack, i, locations[i] AS location FROM stacks, range(1, 128) r(i)
                            WHERE i <= len(locations))
            SELECT DISTINCT names FROM (SELECT list(name ORDER BY i DESC) AS names FROM frames JOIN names USING (location)
                                        GROUP BY stack)""")]


if __name__ == "__main__":
    unittest.main()
