# SPDX-License-Identifier: Apache-2.0
"""`gpusonde record` on Python programs: the time of each function, of every CPython from 3.9 to 3.13."""

import unittest

import cpython
from program import SharedRecordings, measures

ALONE = "it measures shares of time"
SECONDS = 5

# Locations of functions with this name.
NAMED = "(SELECT list(location) FROM locations l JOIN functions f ON f.function = l.functions[1] WHERE f.name = '{}')"


class Shares(SharedRecordings, cpython.TestCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        # Shares are of CPU time, and one thread at a time is busy.
        cls.record_ahead({version: (path, cpython.SHAPES, SECONDS) for version, path in cls.interpreters}, *cpython.SHAPES_OPTIONS)

    def recorded_shapes(self, version, path):
        return self.recorded(version, lambda: self.record_shapes(path, SECONDS))

    def test_each_function_has_its_share_within_two_points(self):
        for version, path in self.interpreters:
            with self.subTest(version=version):
                self.check_shares(version, path)

    @measures
    def check_shares(self, version, path):
        with self.recorded_shapes(version, path):
            stacks = [(frames, count) for frames, count in self.folded()
                      if {"run_shapes", "spin"} <= set(frames) and "child" not in frames]
            total = sum(count for _, count in stacks)
            load = "load" if version in ("3.9", "3.10") else "Loader.load"
            for function, share in ((load, 50), ("forward", 30), ("backward", 20)):
                found = sum(count for frames, count in stacks if function in frames)
                self.assertAlmostEqual(100 * found / total, share, delta=2, msg=function)

    def test_threads_and_children(self):
        for version, path in self.interpreters:
            with self.subTest(version=version):
                self.check_threads_and_children(version, path)

    @measures
    def check_threads_and_children(self, version, path):
        with self.recorded_shapes(version, path):
            self.assertEqual(self.value("SELECT count(*) FROM processes"), 2)
            seconds = self.query(f"""
                SELECT process, sum(weight_ns) / 1e9 AS s FROM samples JOIN stacks USING (stack)
                WHERE state = 'on_cpu' AND list_has_any(locations, {NAMED.format("child")}) GROUP BY 1""")
            self.assertEqual(len(seconds), 2)
            for row in seconds:
                self.assertAlmostEqual(row["s"], SECONDS / 4, delta=SECONDS / 40)

    def test_every_function_that_lives_on_has_its_name(self):
        """Except the code of modules, which is freed when it has run, and functions first sampled just before their program
        ends."""
        for version, path in self.interpreters:
            with self.subTest(version=version):
                self.check_names(version, path)

    @measures
    def check_names(self, version, path):
        with self.recorded_shapes(version, path):
            in_main = f"list_has_any(locations, {NAMED.format('run_shapes')})"
            early = ("stack IN (SELECT stack FROM samples GROUP BY stack HAVING min(time_ns) < "
                     "(SELECT max(time_ns) FROM samples) - 500000000)")
            unnamed = "(SELECT coalesce(list(location), []) FROM locations WHERE kind = 'python' AND len(functions) = 0)"
            self.assertGreater(self.value(f"SELECT count(*) FROM stacks WHERE {in_main} AND {early}"), 10)
            self.assertEqual(self.value(
                f"SELECT count(*) FROM stacks WHERE {in_main} AND {early} AND list_has_any(locations, {unnamed})"), 0)


if __name__ == "__main__":
    unittest.main()
