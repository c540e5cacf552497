# SPDX-License-Identifier: Apache-2.0
import json
import pathlib
import tempfile
import unittest

import same_verdicts


def verdict(cause="hang", share=0.5):
    return json.dumps({"incidents": [{"pid": 7, "cause": cause, "causes": [{"cause": cause, "share": share}]}]})


class Difference(unittest.TestCase):
    def test_equal_diagnoses_have_none(self):
        self.assertEqual(same_verdicts.difference(verdict(), verdict()), "")

    def test_other_causes_are_named(self):
        text = same_verdicts.difference(verdict("hang"), verdict("straggler"))
        self.assertIn("hang", text)
        self.assertIn("straggler", text)

    def test_the_last_digit_counts(self):
        text = same_verdicts.difference(verdict(share=0.5), verdict(share=0.5000000000000001))
        self.assertIn("same causes, 1 other values: .incidents[0].causes[0].share was 0.5, is 0.5000000000000001", text)

    def test_so_does_another_number_of_incidents(self):
        self.assertIn("causes were", same_verdicts.difference(verdict(), '{"incidents": []}'))

    def test_and_the_way_that_numbers_are_written(self):
        self.assertIn("written differently", same_verdicts.difference(verdict(), verdict() + "\n"))


class Compare(unittest.TestCase):
    def test_runs_both_programs_and_reports_the_recordings_that_differ(self):
        with tempfile.TemporaryDirectory() as folder:
            programs = []
            for name, share in (("old", 0.5), ("new", 0.7)):
                program = pathlib.Path(folder, name)
                program.write_text(f"#!/bin/sh\n[ $1 = diagnose ] && [ \"$3 $4\" = '--format json' ] || exit 3\n"
                                   f"[ $2 = bad ] && exit 4\n[ $2 = same ] && echo '{verdict()}' || echo '{verdict(share=share)}'\n")
                program.chmod(0o755)
                programs.append(program)
            found = dict(same_verdicts.compare(*programs, ["same", "other"]))
            self.assertEqual(found["same"], "")
            self.assertIn("was 0.5, is 0.7", found["other"])
            with self.assertRaisesRegex(same_verdicts.Failed, "bad: .*old ended with 4"):
                list(same_verdicts.compare(*programs, ["bad"]))


if __name__ == "__main__":
    unittest.main()
