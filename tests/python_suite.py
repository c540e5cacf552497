#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the unittest tests of the *_test.py files in the folders given, as one suite for tools/test.

    tests/python_suite.py FOLDER…

Prints a line per test and, for each skip, `skipped NAME: REASON`; closes with `N passed, N failed, N skipped`.
"""

import importlib.util
import pathlib
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent


def load(path):
    """The tests of one file. Its own folder is importable, so that a test can import what it tests."""
    sys.path.insert(0, str(path.parent))
    name = "_".join(path.relative_to(ROOT).with_suffix("").parts)
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return unittest.defaultTestLoader.loadTestsFromModule(module)


class Result(unittest.TextTestResult):
    """Counts what passed: a class that is skipped or fails as a whole ran no test."""

    passed = 0

    def addSuccess(self, test):
        super().addSuccess(test)
        self.passed += 1

    def addExpectedFailure(self, test, err):
        super().addExpectedFailure(test, err)
        self.passed += 1


def main(folders):
    suite = unittest.TestSuite()
    for folder in folders:
        for path in sorted((ROOT / folder).glob("*_test.py")):
            suite.addTests(load(path))
    result = unittest.TextTestRunner(stream=sys.stdout, verbosity=2, resultclass=Result).run(suite)
    failed = len(result.failures) + len(result.errors) + len(result.unexpectedSuccesses)
    for test, reason in result.skipped:
        print(f"skipped {test.id()}: {reason}")
    print(f"{result.passed} passed, {failed} failed, {len(result.skipped)} skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
