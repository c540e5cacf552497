#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the unittest tests of the *_test.py files in the folders given, and the programs */run, as one suite for tools/test.

    tests/python_suite.py FOLDER|FILE|FILE:CLASS.TEST…

Each file is a separate process, as many at a time as the CPUs suffice for. Constants at the top of a file say how it runs:

    ALONE = "WHY"        after the others, and nothing runs meanwhile: it measures time, or takes the CPUs from others
    OWN_MACHINE = "WHY"  beside others, on a machine of its own (tests/own_machine.py): what programs of other tests do
                         would be observed. Where no namespaces can be made, it runs alone instead
    CPUS = 0.25          it uses a CPU for about so much of its time, which is printed; 1 by default
    TAKES_S = SECONDS    it starts before those that take less; worth saying from 25 s on

A program FOLDER/*/run has tests in another language, and the contract of a suite (tools/test). It has a machine of its own, and uses
half of a CPU unless one of its comments is `CPUS = …`; TAKES_S is a comment there, too.

FILE:CLASS.TEST, FILE:CLASS or PROGRAM is what `failed …` says of a failure; only these tests run then, one after the other.

Prints a line per test, for each skip `skipped NAME: REASON`, for each failure `failed NAME` and why, the CPU time of each file,
and the files that took longest; closes with `N passed, N failed, N skipped`.
"""

import concurrent.futures
import dataclasses
import importlib.util
import os
import pathlib
import re
import resource
import subprocess
import sys
import tempfile
import time
import unittest

import own_machine

ROOT = pathlib.Path(__file__).resolve().parent.parent
TAKES_S = re.compile(r"^(?:# )?TAKES_S = (\d+)$", re.MULTILINE)
CPUS = re.compile(r"^(?:# )?CPUS = ([\d.]+)\b", re.MULTILINE)
SLOWEST = 12  # files whose time is printed
SET_UP = re.compile(r"^(?:setUp|tearDown)(?:Class|Module) \((?:.*\.)?(\w+)\)$")
FRAME = re.compile(r'^  File ".*\n(?:    .*\n)*', re.MULTILINE)  # of a traceback; the exception follows the last
CLOSING = re.compile(r"(\d+) passed, (\d+) failed, (\d+) skipped\n\Z")


def module_name(path):
    return re.sub(r"\W", "_", os.path.relpath(path.with_suffix(""), ROOT))


def load(path, names=()):
    """The tests of one file, or those with these names. Its folder is importable, so that a test can import the code under test."""
    sys.path.insert(0, str(path.parent))
    name = module_name(path)
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    loader = unittest.defaultTestLoader
    return loader.loadTestsFromNames(names, module) if names else loader.loadTestsFromModule(module)


class Result(unittest.TextTestResult):
    """Counts passed tests: a class that is skipped or fails as a whole ran no test."""

    passed = 0

    def addSuccess(self, test):
        super().addSuccess(test)
        self.passed += 1

    def addExpectedFailure(self, test, err):
        super().addExpectedFailure(test, err)
        self.passed += 1


def failures_of(result, path):
    """Why the tests failed by their names: FILE:CLASS.TEST, however many of its subtests failed; FILE:CLASS if that wasn't set up."""
    found = {}
    for test, why in [*result.failures, *result.errors, *((test, "it was expected to fail\n") for test in result.unexpectedSuccesses)]:
        of = SET_UP.sub(r"\1", test.id().removeprefix(f"{module_name(path)}.")).partition(" ")[0]
        found.setdefault(f"{os.path.relpath(path, ROOT)}:{of}", FRAME.split(why)[-1])
    return found


def run_here(path, names=()):
    """Runs the tests of one file, or those with these names; the output ends with their sums."""
    result = unittest.TextTestRunner(stream=sys.stdout, verbosity=2, resultclass=Result).run(load(path, names))
    for test, reason in result.skipped:
        print(f"skipped {test.id()}: {reason}")
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    print(f"CPU time {sum(one.ru_utime + one.ru_stime for one in used):.1f} s")
    failures = failures_of(result, path)
    for name, why in failures.items():
        print(f"failed {name}\n{why}")
    print(f"{result.passed} passed, {len(failures)} failed, {len(result.skipped)} skipped")
    return 1 if failures else 0


def is_program(path):
    return path.name == "run"


@dataclasses.dataclass(frozen=True)
class File:
    """A file of tests, or a program that runs some, and what it says of how it runs."""

    path: pathlib.Path
    alone: bool
    own_machine: bool
    cpus: float
    takes_s: int
    names: tuple = ()  # only these tests

    @staticmethod
    def read(path, names=()):
        text = path.read_text(encoding="utf-8")
        takes, cpus = TAKES_S.search(text), CPUS.search(text)
        alone, own = (re.search(rf'^{name} = "', text, re.MULTILINE) is not None for name in ("ALONE", "OWN_MACHINE"))
        program = is_program(path)
        return File(path, alone or bool(names), own or program, float(cpus[1]) if cpus else 0.5 if program else 1,
                    int(takes[1]) if takes else 0, tuple(names))

    @property
    def name(self):
        return self.path.parent.name if is_program(self.path) else self.path.stem.removesuffix("_test")


@dataclasses.dataclass(frozen=True)
class Outcome:
    """Of the tests of a file: how many passed, failed and were skipped, what to say of failures, and how long they took."""

    file: File
    sums: tuple
    failures: str
    seconds: float


def run_apart(file):
    """Runs the tests of one file in a separate process."""
    begun = time.monotonic()
    named = [f"{file.path}:{name}" for name in file.names] or [file.path]
    command = [file.path] if is_program(file.path) else [sys.executable, __file__, *named]
    if file.own_machine and not file.alone:
        command = [sys.executable, own_machine.__file__, *command]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          errors="replace", check=False)
    closing, seconds = CLOSING.search(done.stdout), time.monotonic() - begun
    title = f"{os.path.relpath(file.path, ROOT)}, {seconds:.1f} s"
    if closing is None or (done.returncode != 0) != (closing[2] != "0"):
        return Outcome(file, (0, 1, 0), f"{title}\n{done.stdout}ended with status {done.returncode} and no sums to match\n", seconds)
    report = f"{title}\n{done.stdout[:closing.start()]}"
    if closing[2] == "0":
        print(report, flush=True)
        report = ""
    return Outcome(file, tuple(int(number) for number in closing.groups()), report, seconds)


def schedule(files, machines_allowed):
    """The files in the order in which they start: (those that run beside others, those that run alone)."""
    if not machines_allowed:
        files = [dataclasses.replace(file, alone=file.alone or file.own_machine) for file in files]
    longest_first = sorted(files, key=lambda file: -file.takes_s)
    return [file for file in longest_first if not file.alone], [file for file in longest_first if file.alone]


def run_beside(files, cpus, run):
    """What run(file) returns for each. A file starts once its part of the CPUs is free; later ones that need less don't wait."""
    free, waiting, running, outcomes = cpus, list(files), {}, []
    with concurrent.futures.ThreadPoolExecutor(len(files) or 1) as pool:
        while waiting or running:
            for file in list(waiting):
                if file.cpus <= free:
                    free -= file.cpus
                    waiting.remove(file)
                    running[pool.submit(run, file)] = file
            for ended in concurrent.futures.wait(running, return_when=concurrent.futures.FIRST_COMPLETED).done:
                free += running.pop(ended).cpus
                outcomes.append(ended.result())
    return outcomes


def run_all(tests):
    files = [File.read(path, names) for path, names in tests.items()]
    beside, alone = schedule(files, machines_allowed=any(file.own_machine for file in files) and own_machine.allowed())
    with tempfile.TemporaryDirectory(prefix="gpusonde-suite-") as folder:
        os.environ["GPUSONDE_SUITE_FOLDER"] = folder  # for what files share
        # With one more than CPUs, some programs get too little CPU for the least number of samples that their tests expect.
        outcomes = run_beside(beside, os.cpu_count() or 1, run_apart)
        outcomes += map(run_apart, alone)
    for outcome in outcomes:  # last, where they are looked for
        print(outcome.failures, end="")
    slowest = sorted(outcomes, key=lambda outcome: -outcome.seconds)[:SLOWEST]
    print("slowest: " + ", ".join(f"{one.file.name} {one.seconds:.0f} s" for one in slowest))
    passed, failed, skipped = (sum(column) for column in zip(*(outcome.sums for outcome in outcomes)))
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    return 1 if failed else 0


def main(arguments):
    tests = {}  # the names of those to run by path; none: all
    for argument in arguments:
        path, _, name = argument.partition(":")
        path = (ROOT / path).resolve()
        for found in [path] if path.is_file() else sorted([*path.glob("*_test.py"), *path.glob("*/run")]):
            tests.setdefault(found, []).extend([name] if name else [])
    if not tests:
        sys.exit(f"python_suite: no *_test.py in: {' '.join(arguments) or 'nothing was named'}")
    path = next(iter(tests))
    return run_here(path, tests[path]) if len(tests) == 1 and not is_program(path) else run_all(tests)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
