# SPDX-License-Identifier: Apache-2.0
"""The totals of the suites include every failure."""

import contextlib
import importlib.machinery
import importlib.util
import io
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
        output = """failed m.py:A.test_b
AssertionError: 1 != 2 : detail
and more

failed cli/x
step 1: exit status 2, expected 0
passed cli/y
failed cli/z
1 passed, 3 failed, 0 skipped
"""
        outcome = self.outcome(output, 1)
        self.assertEqual(outcome.failures, {"m.py:A.test_b": "\n    AssertionError: 1 != 2 : detail\n    and more",
                                            "cli/x": "\n    step 1: exit status 2, expected 0", "cli/z": ""})
        self.assertEqual(outcome.problems, [])

    def test_unnamed_failures_are_a_problem(self):
        self.assertEqual(self.outcome("1 passed, 2 failed, 0 skipped\n", 1).problems, ["2 failed, but 0 are named"])

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
        self.assertEqual((outcome.passed, outcome.failed, outcome.failures, outcome.problems), (1, 1, {"b": ""}, []))
        self.assertEqual(outcome.skips, [("c", "needs a GPU"), ("d", "disabled by its name")])

    def test_a_skip_without_a_reason_is_a_failure(self):
        outcome = self.outcome('<testcase name="a" status="run"/><testcase name="c"><skipped/></testcase>')
        self.assertEqual(outcome.problems, ["c is skipped without a reason"])

    def test_a_failure_begins_with_its_first_lines(self):
        outcome = self.outcome('<testcase name="b" status="fail"><failure message=""/><system-out>[ RUN      ] B.b\n'
                               "x/b_test.cpp:12: Failure\nExpected equality\n  1\n  2\n\n[  FAILED  ] B.b\n"
                               "</system-out></testcase>")
        self.assertEqual(outcome.failures, {"b": "\n    x/b_test.cpp:12: Failure\n    Expected equality\n      1\n      2"})

    def test_no_tests_at_all_is_a_failure(self):
        self.assertEqual(self.outcome("").failed, 1)


class Again(unittest.TestCase):
    """Failures run again, alone."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def run_again(self, script, failures, failed=None):
        """What passes when the failures run again, and the outcome then."""
        path = self.folder / "suite"
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)
        outcome = runner.Outcome(passed=3, failed=failed or len(failures), failures=failures)
        with contextlib.redirect_stdout(io.StringIO()):
            passed = runner.run_again(runner.Suite("s", (str(path), "all"), ".", selects=True), outcome, self.folder)
        return passed, outcome

    def test_what_passes_counts_as_passed_and_is_returned(self):
        passed, outcome = self.run_again('[ "$*" = "a b" ] && printf "failed b\\nstill\\n1 passed, 1 failed, 0 skipped\\n"; exit 1',
                                         {"a": "\n    slow", "b": "\n    slow"})
        self.assertEqual(passed, {"a": "\n    slow"})
        self.assertEqual((outcome.passed, outcome.failed, outcome.failures), (4, 1, {"b": "\n    still"}))

    def test_what_is_skipped_then_did_not_pass(self):
        passed, outcome = self.run_again("echo skipped a: why; echo 0 passed, 0 failed, 1 skipped", {"a": ""})
        self.assertEqual((passed, outcome.failed, outcome.skips), ({}, 0, [("a", "why")]))

    def test_a_test_of_a_class_that_could_not_be_set_up_may_fail_then(self):
        passed, outcome = self.run_again("printf 'failed f.py:A.test_b\\n\\n1 passed, 1 failed, 0 skipped\\n'; exit 1", {"f.py:A": ""})
        self.assertEqual((passed, outcome.passed, list(outcome.failures)), ({}, 4, ["f.py:A.test_b"]))

    def test_what_did_not_run_again_failed(self):
        other = "printf 'failed b\\n\\n0 passed, 1 failed, 0 skipped\\n'; exit 1"
        for script in ("echo 0 passed, 0 failed, 0 skipped", "exit 3", other):
            passed, outcome = self.run_again(script, {"a": ""})
            self.assertEqual((passed, outcome.passed, outcome.failed, len(outcome.problems)), ({}, 3, 1, 1), script)

    def test_all_tests_of_a_class_may_run_again_for_its_one_failure(self):
        passed, outcome = self.run_again("echo skipped x: why; echo 2 passed, 0 failed, 1 skipped", {"f.py:A": ""})
        self.assertEqual((list(passed), outcome.passed, outcome.failed), (["f.py:A"], 5, 0))


if __name__ == "__main__":
    unittest.main()
