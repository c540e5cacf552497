# SPDX-License-Identifier: Apache-2.0
"""`gpusonde record` on Python programs: functions, files and lines of every CPython from 3.9 to 3.13."""

import unittest

import cpython

TAKES_S = 28


class Python(cpython.TestCase):
    def test_frames_stand_in_the_order_of_their_calls(self):
        for version, path in self.interpreters:
            with self.subTest(version=version):
                self.record_shapes(path, 1)
                python = self.python_stacks()
                for names in (["batches"], ["<lambda>"] if version in ("3.9", "3.10") else ["forward.<locals>.<lambda>"]):
                    caller = "backward" if names == ["batches"] else "forward"
                    self.assertTrue(["<module> py_shapes.py", "run_shapes", caller, *names, "spin"] in python, names)

    def test_lines_and_files(self):
        line = next(number for number, text in enumerate(cpython.SHAPES.read_text().splitlines(), 1) if "LINE: spin" in text)
        for version, path in self.interpreters:
            with self.subTest(version=version):
                self.record_shapes(path, 1)
                rows = self.query("""
                    SELECT f.file, f.line AS first_line, l.lines[1] AS line, count(*) AS samples
                    FROM samples JOIN stacks USING (stack), unnest(locations) AS u(location)
                    JOIN locations l USING (location) JOIN functions f ON f.function = l.functions[1]
                    WHERE state = 'on_cpu' AND l.kind = 'python' AND f.name = 'spin' GROUP BY ALL ORDER BY samples DESC""")
                self.assertEqual({row["file"] for row in rows}, {str(cpython.SHAPES)})
                self.assertEqual({row["first_line"] for row in rows}, {line - 5})
                self.assertLessEqual({row["line"] for row in rows}, {line - 5 + i for i in range(7)})
                self.assertIn(rows[0]["line"], (line, line - 1), "most time is in the inner loop")

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
