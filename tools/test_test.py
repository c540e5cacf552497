# SPDX-License-Identifier: Apache-2.0
"""The totals of the suites include every failure."""

import importlib.machinery
import importlib.util
import pathlib
import sys
import tempfile
import unittest

LOADER = importlib.machinery.SourceFileLoader("test_runner", str(pathlib.Path(__file__).with_name("test")))
runner = importlib.util.module_from_spec(importlib.util.spec_from_loader("test_runner", LOADER))
sys.modules["test_runner"] = runner
LOADER.exec_module(runner)


class ClosingLine(unittest.TestCase):
    def outcome(self, output, status=0):
        return runner.read_closing_line(output, status)

    def test_counts_and_reasons_are_parsed(self):
        outcome = self.outcome("skipped a/b: needs root\nskipped the page loads: no Chromium\n3 passed, 0 failed, 2 skipped\n")
        self.assertEqual((outcome.passed, outcome.failed), (3, 0))
        self.assertEqual(outcome.skips, [("a/b", "needs root"), ("the page loads", "no Chromium")])

    def test_failures_are_counted(self):
        self.assertEqual(self.outcome("1 passed, 2 failed, 0 skipped\n", 1).failed, 2)

    def test_failures_are_named_with_their_reasons(self):
        output = """test_b (m.A.test_b)
How it works. ... FAIL

======================================================================
FAIL: test_b (m.A.test_b)
How it works.
----------------------------------------------------------------------
Traceback (most recent call last):
  File "m.py", line 3, in test_b
    self.assertEqual(1, 2)

AssertionError: 1 != 2 : detail
and more

----------------------------------------------------------------------
Ran 1 test in 0.1s
failed cli/x
step 1: exit status 2, expected 0

passed cli/y
1 passed, 2 failed, 0 skipped
"""
        self.assertEqual(self.outcome(output, 1).problems, ["m.A.test_b\n    AssertionError: 1 != 2 : detail\n    and more",
                                                            "cli/x\n    step 1: exit status 2, expected 0"])

    def test_unnamed_failures_are_a_problem(self):
        self.assertEqual(self.outcome("1 passed, 2 failed, 0 skipped\n", 1).problems, ["2 failed"])

    def test_a_suite_that_ends_without_its_closing_line_failed(self):
        outcome = self.outcome("Traceback …\n", 1)
        self.assertEqual(outcome.failed, 1)
        self.assertIn("without a closing line", outcome.problems[0])

    def test_a_suite_that_crashes_after_its_closing_line_failed(self):
        self.assertEqual(self.outcome("3 passed, 0 failed, 0 skipped\n", 139).failed, 1)

    def test_a_skip_without_a_reason_is_a_failure(self):
        outcome = self.outcome("3 passed, 0 failed, 1 skipped\n")
        self.assertEqual(outcome.failed, 1)
        self.assertIn("1 skipped, but reasons for 0", outcome.problems[0])

    def test_the_last_closing_line_counts(self):
        self.assertEqual(self.outcome("9 passed, 9 failed, 0 skipped\n3 passed, 0 failed, 0 skipped\n").passed, 3)


class JUnit(unittest.TestCase):
    def outcome(self, cases):
        with tempfile.NamedTemporaryFile("w", suffix=".xml") as file:
            file.write(f"<testsuite>{cases}</testsuite>")
            file.flush()
            return runner.read_junit(file.name)

    def test_each_kind_is_counted_separately(self):
        outcome = self.outcome('<testcase name="a" status="run"/>'
                               '<testcase name="b" status="fail"><failure message=""/></testcase>'
                               '<testcase name="c" status="notrun"><skipped/><system-out>'
                               "x/c_test.cpp:12: Skipped\nneeds a GPU\n\n[  SKIPPED ] C.c (0 ms)\n"
                               "</system-out></testcase>"
                               '<testcase name="d" status="disabled"/>')
        self.assertEqual((outcome.passed, outcome.failed, outcome.problems), (1, 1, ["b"]))
        self.assertEqual(outcome.skips, [("c", "needs a GPU"), ("d", "disabled by its name")])

    def test_a_skip_without_a_reason_is_a_failure(self):
        outcome = self.outcome('<testcase name="a" status="run"/><testcase name="c"><skipped/></testcase>')
        self.assertEqual(outcome.problems, ["c is skipped without a reason"])

    def test_a_failure_begins_with_its_first_lines(self):
        outcome = self.outcome('<testcase name="b" status="fail"><failure message=""/><system-out>[ RUN      ] B.b\n'
                               "x/b_test.cpp:12: Failure\nExpected equality\n  1\n  2\n\n[  FAILED  ] B.b\n"
                               "</system-out></testcase>")
        self.assertEqual(outcome.problems, ["b\n    x/b_test.cpp:12: Failure\n    Expected equality\n      1\n      2"])

    def test_no_tests_at_all_is_a_failure(self):
        self.assertEqual(self.outcome("").failed, 1)


if __name__ == "__main__":
    unittest.main()
