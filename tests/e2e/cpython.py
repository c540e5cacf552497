# SPDX-License-Identifier: Apache-2.0
"""The CPython interpreters of this machine, for tests that record them."""

import pathlib
import shutil
import subprocess
import unittest

import program

SHAPES = program.ROOT / "tests/programs/py_shapes.py"
SHAPES_OPTIONS = ("--hz", "499")
VERSIONS = ("3.9", "3.10", "3.11", "3.12", "3.13")


def interpreters():
    """(version, path) of one CPython of each installed version, under pyenv or on the PATH."""
    found = {}
    for version in VERSIONS:
        candidates = sorted(pathlib.Path.home().glob(f".pyenv/versions/{version}.*/bin/python{version}"))
        candidates += [pathlib.Path(f"/usr/bin/python{version}"), pathlib.Path(shutil.which(f"python{version}") or "/-")]
        for path in candidates:
            if path.exists() and subprocess.run([path, "-c", ""], check=False, capture_output=True).returncode == 0:
                found.setdefault(version, path)
    return list(found.items())


class TestCase(program.TestCase):
    """A test with `interpreters`; skipped, with the reason, if there are none."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.interpreters = interpreters()
        if not cls.interpreters:
            raise unittest.SkipTest("this machine has no CPython from 3.9 to 3.13")

    def record_shapes(self, interpreter, seconds):
        done = self.record(interpreter, SHAPES, seconds, options=SHAPES_OPTIONS)
        self.assertEqual(done.returncode, 0, done.stderr)
