#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the text cases, which test the program's behaviour without C++.

    tests/cases/run.py [--jobs N] [CASE …]        a CASE is a .case file, a folder of them, or what
                                                  `failed …` says of a failure; default: all

A case is a file `*.case` under tests/cases. Its lines:

    # TEXT                  a comment; the first states what holds
    needs:  THING, …        skip the case, with the reason, unless the machine has every THING:
                              root                    the tests run as root
                              net                     a network namespace can be made
                              unsanitized             no sanitizer is in the program, which multiplies its memory
                              program NAME            NAME is on the PATH
                              shared/…, tests/…, …    that path is there (shared/ lies beside the tree)
                              NAME                    the capability NAME works, as `gpusonde doctor` says
    input:  PATH            a file or folder, from the tree's root; later lines call it {input}. With several `input:`
                            lines the case runs once with each. made/traces is a folder of small traces that
                            tests/cases/analyze/made_traces.py writes when a case first asks for it
    exclusive: REASON       no other case runs meanwhile, because REASON; the suite `web` may (tools/test)
    timeout: SECONDS        for each run (default 60)
    run:    COMMAND         begins a step: bash runs it in an empty folder; `gpusonde` is the program under test;
                            {input}, {root} (the tree) and {tmp} (the folder) are replaced by paths, and $HOME is
                            in that folder. Standard input is empty.

and, for the step above them, what must hold:

    exit:   N               its exit status (default 0)
    expect: FILTER          standard output is JSON for which jq's FILTER is true: `.kernels | length == 3`
    stdout contains: TEXT   (also `stderr contains`; `stdout lacks`, `stderr lacks`)
    stdout is: TEXT         all of it except the last newline; empty if nothing follows the colon (also `stderr is`)

Prints a line per case, and ends with the totals that tools/test reads.
"""

import argparse
import concurrent.futures
import dataclasses
import functools
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading

CASES = pathlib.Path(__file__).resolve().parent
ROOT = CASES.parent.parent
DEFAULT_TIMEOUT_S = 60
MADE = "made/traces"
SHOWN_OUTPUT_LINES = 15
TEXT_CHECKS = tuple(f"{stream} {relation}" for stream in ("stdout", "stderr")
                    for relation in ("contains", "lacks", "is"))
STEP_KEYS = ("exit", "expect") + TEXT_CHECKS
CASE_KEYS = ("needs", "input", "exclusive", "timeout", "run")


class BadCase(Exception):
    """The file is not a valid case; the message begins with FILE:LINE."""


@dataclasses.dataclass
class Step:
    line: int
    command: str
    exit: int = 0
    checks: list = dataclasses.field(default_factory=list)  # (line, key, value)


@dataclasses.dataclass
class Case:
    path: pathlib.Path
    name: str
    needs: list = dataclasses.field(default_factory=list)
    inputs: list = dataclasses.field(default_factory=list)
    input: str = ""  # the element of `inputs` for this run
    exclusive: str = ""
    timeout_s: int = DEFAULT_TIMEOUT_S
    steps: list = dataclasses.field(default_factory=list)


def parse(path, text, name):
    case = Case(path, name)
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue

        def bad(what, number=number):
            return BadCase(f"{path}:{number}: {what}")

        key, colon, value = line.partition(":")
        key, value = key.strip(), value.strip()
        if not colon or key not in CASE_KEYS + STEP_KEYS:
            raise bad(f"begins with none of {', '.join(CASE_KEYS + STEP_KEYS)}")
        if key in STEP_KEYS and not case.steps:
            raise bad(f"`{key}:` before the first `run:`")
        if not value and not key.endswith(" is"):
            raise bad(f"`{key}:` says nothing")
        if key in ("exit", "timeout") and not value.isdecimal():
            raise bad(f"`{key}:` takes a number")
        if key == "needs":
            case.needs += [need.strip() for need in value.split(",")]
        elif key == "input":
            case.inputs.append(value)
        elif key == "exclusive":
            case.exclusive = value
        elif key == "timeout":
            case.timeout_s = int(value)
        elif key == "run":
            case.steps.append(Step(number, value))
        elif key == "exit":
            case.steps[-1].exit = int(value)
        else:
            case.steps[-1].checks.append((number, key, value))
    if not case.steps:
        raise BadCase(f"{path}:1: has no `run:`")
    return case


class MadeTraces:
    """The folder made/traces, written at first use and removed at the end of the run."""

    def __init__(self):
        self.lock = threading.Lock()
        self.folder = None

    def path(self):
        with self.lock:
            if self.folder is None:
                folder = tempfile.TemporaryDirectory(prefix="gpusonde-made-")
                subprocess.run([CASES / "analyze/made_traces.py", folder.name], check=True, timeout=DEFAULT_TIMEOUT_S)
                pathlib.Path(folder.name).chmod(0o755)
                self.folder = folder
            return pathlib.Path(self.folder.name)


MADE_TRACES = MadeTraces()


def resolve(path):
    """Resolves a path of a case, from the tree's root; shared/ is beside the tree."""
    if path == MADE or path.startswith(MADE + "/"):
        return MADE_TRACES.path() / path.removeprefix(MADE).lstrip("/")
    return (ROOT.parent if path.startswith("shared/") else ROOT) / path


def with_each_input(case):
    """The case once per input, named after the input if there are several."""
    if len(case.inputs) < 2:
        return [dataclasses.replace(case, input="".join(case.inputs))]
    return [dataclasses.replace(case, name=f"{case.name} [{path}]", input=path,
                                needs=case.needs + ([path] if path.startswith("shared/") else []))
            for path in case.inputs]


@functools.cache
def capabilities():
    """The capabilities of `gpusonde doctor`, by name."""
    answer = subprocess.run([program(), "doctor", "--format", "json"], capture_output=True, text=True,
                            stdin=subprocess.DEVNULL, timeout=60, check=False)
    try:
        return {entry["name"]: entry for entry in json.loads(answer.stdout)["capabilities"]}
    except (ValueError, KeyError):
        return {}


def unmet(need):
    """Why a need of the case is unmet, or an empty text."""
    if need == "root":
        return "" if os.geteuid() == 0 else "needs root"
    if need == "net":
        made = subprocess.run(["unshare", "--net", "true"], capture_output=True, text=True, check=False)
        return "" if made.returncode == 0 else "needs a network namespace: " + made.stderr.strip()
    if need == "unsanitized":
        libraries = subprocess.run(["ldd", program()], capture_output=True, text=True, check=False).stdout
        return "needs a program without a sanitizer" if re.search(r"lib[at]san", libraries) else ""
    if need.startswith("program "):
        name = need.removeprefix("program ").strip()
        return "" if shutil.which(name) else f"needs the program {name} on the PATH"
    if "/" in need:
        return "" if resolve(need).exists() else f"needs {need}, which is not there"
    capability = capabilities().get(need)
    if capability is None:
        return f"needs {need}, which `gpusonde doctor` does not know"
    return "" if capability["works"] else f"needs {need}: {capability['why']}"


def program():
    return os.environ.get("GPUSONDE", str(ROOT / "build/release/bin/gpusonde"))


def failed_check(check, stdout, stderr):
    """What is wrong with the output, or an empty text."""
    line, key, value = check
    if key == "expect":
        jq = subprocess.run(["jq", "-e", value], input=stdout, capture_output=True, text=True, check=False)
        if jq.returncode == 0:
            return ""
        compared = re.match(r"(.*?)\s(?:==|!=|<=|>=|<|>)\s", value)
        left = subprocess.run(["jq", "-c", compared.group(1)], input=stdout, capture_output=True, text=True,
                              check=False).stdout.strip() if compared else ""
        return f"{line}: expected {value}" + (f", is {left}" if left else f"; jq: {jq.stderr.strip()}")
    stream, relation = key.split()
    text = stdout if stream == "stdout" else stderr
    if relation == "contains" and value not in text:
        return f"{line}: {stream} lacks: {value}"
    if relation == "lacks" and value in text:
        return f"{line}: {stream} contains: {value}"
    if relation == "is" and text.removesuffix("\n") != value:
        return f"{line}: {stream} is not: {value}"
    return ""


def run_step(case, step, folder, environment):
    """What went wrong, or an empty text."""
    command = step.command
    for placeholder, path in (("{input}", resolve(case.input)), ("{root}", ROOT), ("{tmp}", folder)):
        command = command.replace(placeholder, str(path))
    checks = [(line, key, value.replace("{tmp}", str(folder)).replace("{input}", str(resolve(case.input))))
              for line, key, value in step.checks]
    with subprocess.Popen(["bash", "-c", command], cwd=folder, env=environment, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace",
                          start_new_session=True) as shell:
        try:
            stdout, stderr = shell.communicate(timeout=case.timeout_s)
        except subprocess.TimeoutExpired:
            os.killpg(shell.pid, signal.SIGKILL)  # including its children
            return f"{case.path}:{step.line}: still running after {case.timeout_s} s: {command}"
    problems = []
    if shell.returncode != step.exit:
        problems.append(f"{step.line}: exit status {shell.returncode}, expected {step.exit}")
    problems += filter(None, (failed_check(check, stdout, stderr) for check in checks))
    if not problems:
        return ""
    lines = [f"{case.path}:{problem}" for problem in problems] + [f"  $ {command}"]
    for stream, text in (("stdout", stdout), ("stderr", stderr)):
        lines += [f"  {stream}: {line}" for line in text.splitlines()[:SHOWN_OUTPUT_LINES]]
    return "\n".join(lines)


def run_case(case):
    """(case, "passed" | "failed" | "skipped", why)"""
    for need in case.needs:
        if why := unmet(need):
            return case, "skipped", why
    if case.input and not resolve(case.input).exists():
        return case, "failed", f"{case.path}: input {case.input} is not there; add `needs:` if it may be missing"
    with tempfile.TemporaryDirectory(prefix="gpusonde-case-") as folder:
        work = pathlib.Path(folder).resolve()
        (work / "home").mkdir()
        # Readable by all users, so that a case can run the program as another user.
        work.chmod(0o755)
        bin_folder = os.path.dirname(os.path.abspath(program()))
        environment = dict(os.environ, HOME=str(work / "home"), PATH=f"{bin_folder}:{os.environ['PATH']}",
                           LC_ALL="C.UTF-8")
        for step in case.steps:
            if problem := run_step(case, step, work, environment):
                return case, "failed", problem
    return case, "passed", ""


def find_cases(arguments):
    paths = []
    for argument in arguments or [str(CASES)]:
        path = pathlib.Path(argument).resolve()
        named = CASES / f"{argument.partition(' [')[0]}.case"
        if named.exists():
            path = named
        paths += sorted(path.rglob("*.case")) if path.is_dir() else [path]
    return list(dict.fromkeys(paths))


def main():
    parser = argparse.ArgumentParser(description="Run the text cases.")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 2)
    parser.add_argument("cases", nargs="*")
    arguments = parser.parse_args()
    cases, counts = [], {"passed": 0, "failed": 0, "skipped": 0}
    for path in find_cases(arguments.cases):
        name = str(path.relative_to(CASES).with_suffix("")) if path.is_relative_to(CASES) else str(path)
        try:
            cases += with_each_input(parse(path, path.read_text(), name))
        except (BadCase, OSError) as error:
            counts["failed"] += 1
            print(f"failed {name}\n{error}")

    def report(result):
        case, outcome, why = result
        counts[outcome] += 1
        print({"passed": f"passed {case.name}", "skipped": f"skipped {case.name}: {why}",
               "failed": f"failed {case.name}\n{why}"}[outcome], flush=True)

    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        for result in pool.map(run_case, [case for case in cases if not case.exclusive]):
            report(result)
    for case in cases:
        if case.exclusive:
            report(run_case(case))
    print("{passed} passed, {failed} failed, {skipped} skipped".format(**counts))
    return 1 if counts["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
