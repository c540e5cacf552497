# SPDX-License-Identifier: Apache-2.0
"""A device's computations have no secret-dependent branches or addresses: valgrind checks."""

import shutil
import subprocess
import unittest

from program import PROGRAMS


@unittest.skipUnless(shutil.which("valgrind"), "valgrind isn't installed")
class ConstantTime(unittest.TestCase):
    def valgrind(self, program, *arguments):
        return subprocess.run(["valgrind", "--quiet", "--error-exitcode=9", PROGRAMS / program, *arguments],
                              capture_output=True, text=True, timeout=120, check=False)

    def test_identification_and_reports_depend_on_no_secret(self):
        for program in ("constant_time", "constant_time_clang"):
            with self.subTest(program):
                done = self.valgrind(program)
                self.assertEqual(done.returncode, 0, done.stderr)

    def test_a_branch_on_a_secret_is_found(self):
        for program in ("constant_time", "constant_time_clang"):
            with self.subTest(program):
                done = self.valgrind(program, "leaky")
                self.assertEqual(done.returncode, 9)
                self.assertIn("depends on uninitialised value", done.stderr)


if __name__ == "__main__":
    unittest.main()
