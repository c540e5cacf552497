#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the unittest tests of the *_test.py files in the folders given, as one suite for tools/test.

    tests/python_suite.py FOLDER|FILE…

Each file is a separate process, as many at a time as there are CPUs. Files with `ALONE = "WHY"` at the top run after
the others and one at a time: they measure, or use the whole machine.

Prints a line per test, for each skip `skipped NAME: REASON`, and the files that took longest; closes with `N passed, N failed,
N skipped`.
"""

import concurrent.futures
import importlib.util
import os
import pathlib
import re
import subprocess
import sys
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent
ALONE = re.compile(r'^ALONE = "', re.MULTILINE)
SLOWEST = 12  # files whose time is printed
CLOSING = re.compile(r"(\d+) passed, (\d+) failed, (\d+) skipped\n\Z")


def load(path):
    """The tests of one file. Its folder is importable, so that a test can import the code under test."""
    sys.path.insert(0, str(path.parent))
    name = "_".join(path.relative_to(ROOT).with_suffix("").parts)
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return unittest.defaultTestLoader.loadTestsFromModule(module)


class Result(unittest.TextTestResult):
    """Counts passed tests: a class that is skipped or fails as a whole ran no test."""

    passed = 0

    def addSuccess(self, test):
        super().addSuccess(test)
        self.passed += 1

    def addExpectedFailure(self, test, err):
        super().addExpectedFailure(test, err)
        self.passed += 1


def run_here(path):
    """Runs the tests of one file; the output ends with their sums."""
    result = unittest.TextTestRunner(stream=sys.stdout, verbosity=2, resultclass=Result).run(load(path))
    failed = len(result.failures) + len(result.errors) + len(result.unexpectedSuccesses)
    for test, reason in result.skipped:
        print(f"skipped {test.id()}: {reason}")
    print(f"{result.passed} passed, {failed} failed, {len(result.skipped)} skipped")
    return 1 if failed else 0


def run_apart(path):
    """Runs the tests of one file in a separate process. Returns its sums, the text for failures, and the seconds it took."""
    begun = time.monotonic()
    done = subprocess.run([sys.executable, __file__, path], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, errors="replace", check=False)
    closing, seconds = CLOSING.search(done.stdout), time.monotonic() - begun
    title = f"{path.relative_to(ROOT)}, {seconds:.1f} s"
    if closing is None or (done.returncode != 0) != (closing[2] != "0"):
        return (0, 1, 0), f"{title}\n{done.stdout}ended with status {done.returncode} and no sums to match\n", seconds
    report = f"{title}\n{done.stdout[:closing.start()]}"
    if closing[2] == "0":
        print(report, flush=True)
        report = ""
    return tuple(int(number) for number in closing.groups()), report, seconds


def run_all(paths):
    alone = [path for path in paths if ALONE.search(path.read_text())]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        outcomes = list(pool.map(run_apart, [path for path in paths if path not in alone]))
    outcomes += map(run_apart, alone)
    for _, failure, _ in outcomes:  # last, where they are looked for
        print(failure, end="")
    tests = [path for path in paths if path not in alone] + alone
    slowest = sorted(zip((seconds for _, _, seconds in outcomes), tests), reverse=True)[:SLOWEST]
    print("slowest: " + ", ".join(f"{path.stem.removesuffix('_test')} {seconds:.0f} s" for seconds, path in slowest))
    passed, failed, skipped = (sum(column) for column in zip(*(sums for sums, _, _ in outcomes)))
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    return 1 if failed else 0


def main(arguments):
    paths = [(ROOT / argument).resolve() for argument in arguments]
    tests = [test for path in paths for test in ([path] if path.is_file() else sorted(path.glob("*_test.py")))]
    if not tests:
        sys.exit(f"python_suite: no *_test.py in: {' '.join(arguments) or 'nothing was named'}")
    return run_here(tests[0]) if len(tests) == 1 else run_all(tests)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
