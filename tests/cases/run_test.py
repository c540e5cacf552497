# SPDX-License-Identifier: Apache-2.0
"""The runner of the text cases detects failures and reports where they are."""

import pathlib
import unittest

import run


def outcomes_of(text):
    cases = run.with_each_input(run.parse(pathlib.Path("x.case"), text, "x"))
    return [(case.name, outcome, why) for case, outcome, why in map(run.run_case, cases)]


def outcome_of(text):
    ((_, outcome, why),) = outcomes_of(text)
    return outcome, why


class TextCase(unittest.TestCase):
    def test_what_holds_passes(self):
        outcome, why = outcome_of("run: echo '{\"a\":[1,2]}'\nexpect: .a | length == 2\nstdout contains: [1\n")
        self.assertEqual((outcome, why), ("passed", ""))

    def test_a_wrong_number_fails_with_the_line_and_what_it_is(self):
        outcome, why = outcome_of("run: echo '{\"a\":41}'\nexpect: .a == 42\n")
        self.assertEqual(outcome, "failed")
        self.assertIn("x.case:2: expected .a == 42, is 41", why)

    def test_output_that_is_no_json_fails(self):
        outcome, why = outcome_of("run: echo no\nexpect: .a == 42\n")
        self.assertEqual(outcome, "failed")
        self.assertIn("jq", why)

    def test_an_exit_status_that_nobody_expected_fails(self):
        self.assertEqual(outcome_of("run: exit 3\n")[0], "failed")
        self.assertEqual(outcome_of("run: exit 3\nexit: 3\n")[0], "passed")

    def test_every_step_must_hold(self):
        outcome, why = outcome_of("run: true\nrun: echo out; echo err >&2\nstderr is: out\n")
        self.assertEqual(outcome, "failed")
        self.assertIn("x.case:3: stderr is not: out", why)

    def test_text_that_must_be_absent_fails_when_present(self):
        self.assertEqual(outcome_of("run: echo secret\nstdout lacks: secret\n")[0], "failed")

    def test_empty_output_can_be_demanded(self):
        self.assertEqual(outcome_of("run: true\nstdout is:\n")[0], "passed")
        self.assertEqual(outcome_of("run: echo x\nstdout is:\n")[0], "failed")

    def test_a_command_that_hangs_fails(self):
        outcome, why = outcome_of("timeout: 1\nrun: sleep 20\n")
        self.assertEqual(outcome, "failed")
        self.assertIn("after 1 s", why)

    def test_an_unmet_need_is_a_skip_with_its_reason(self):
        outcome, why = outcome_of("needs: program no-such-program\nrun: false\n")
        self.assertEqual((outcome, why), ("skipped", "needs the program no-such-program on the PATH"))

    def test_an_input_that_is_not_there_is_a_failure_not_a_skip(self):
        self.assertEqual(outcome_of("input: tests/no-such-file\nrun: true\n")[0], "failed")

    def test_a_case_runs_once_with_each_input_and_skips_what_only_shared_has(self):
        text = "input: tests/cases\ninput: tests/check\ninput: shared/no-such-folder\nrun: [ -e {input}/run.py ]\n"
        first, second, third = outcomes_of(text)
        self.assertEqual(first, ("x [tests/cases]", "passed", ""))
        self.assertEqual(second[:2], ("x [tests/check]", "failed"))
        self.assertEqual(third[1:], ("skipped", "needs shared/no-such-folder, which is not there"))

    def test_steps_share_a_folder_of_their_own(self):
        outcome, why = outcome_of("run: echo 1 > f\nrun: cat {tmp}/f\nstdout is: 1\n")
        self.assertEqual((outcome, why), ("passed", ""))

    def test_a_misspelt_key_is_refused_with_file_and_line(self):
        for text in ("run: true\nexpct: .a\n", "expect: .a\n", "", "run:\n", "run: true\nexit: x\n"):
            with self.assertRaisesRegex(run.BadCase, r"x\.case:\d+: "):
                run.parse(pathlib.Path("x.case"), text, "x")


if __name__ == "__main__":
    unittest.main()
