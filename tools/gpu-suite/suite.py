# SPDX-License-Identifier: Apache-2.0
"""What all parts share: finding files, recording programs, results."""

import ctypes
import dataclasses
import glob
import json
import os
import pathlib
import shutil
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent  # of the package, or of the source tree
WORKLOADS = HERE / "workloads"
TRAIN = ROOT / "examples/train"


CUPTI = ("libcupti.so.13", "libcupti.so.12")
RUNTIME = ("libcudart.so.13", "libcudart.so.12")


class Skip(Exception):
    """This part can't run here; the text says what is missing."""


class Failed(Exception):
    """A precondition of the part failed; the text says which."""


@dataclasses.dataclass
class Result:
    """The results of a part. A row is as in bench/results (tools/performance_doc.py); a fact is one of the assumptions of
    docs/gpu-results.md: {"fact", "holds" (None: can't be decided here), "seen"}."""

    rows: list = dataclasses.field(default_factory=list)
    facts: list = dataclasses.field(default_factory=list)
    notes: list = dataclasses.field(default_factory=list)
    done: list = dataclasses.field(default_factory=list)  # items of a part with many of them, such as models
    left: list = dataclasses.field(default_factory=list)  # items for which no time was left

    def row(self, name, value, unit, at_most=None, at_least=None, **more):
        row = {"name": name, "value": value, "unit": unit, **more}
        if at_most is not None:
            row |= {"goal": f"≤ {at_most:g}", "met": value is not None and value <= at_most}
        if at_least is not None:
            row |= {"goal": f"≥ {at_least:g}", "met": value is not None and value >= at_least}
        self.rows.append(row)

    def fact(self, text, holds, seen=""):
        self.facts.append({"fact": text, "holds": holds, "seen": str(seen)})


@dataclasses.dataclass
class Recorded:
    """A finished `gpusonde record`."""

    path: pathlib.Path
    stdout: str
    stderr: str
    returncode: int


def build_folder():
    return pathlib.Path(os.environ.get("GPUSONDE_BUILD", ROOT / "build/release"))


def find(in_package, in_build):
    """A program or library of ours, from this suite's package, else from the build folder."""
    for path in (ROOT / in_package, build_folder() / in_build):
        if path.exists():
            return path
    raise Failed(f"neither {ROOT / in_package} nor {build_folder() / in_build} is there; run the suite from the package, "
                 "or run `make build`, or name the build folder in GPUSONDE_BUILD")


def have(module):
    """Whether a Python package can be imported; tried in another process, as importing may crash or take long."""
    done = subprocess.run([sys.executable, "-c", f"import {module}"], capture_output=True, text=True, timeout=300,
                          check=False)
    return done.returncode == 0


class Suite:
    """A part's view of the machine. `budget_s`: remaining seconds; `out`: folder for files to keep; `done`: items that
    earlier runs finished; `quick`: do just enough to show that a part works."""

    def __init__(self, out, budget_s, done=(), quick=False):
        self.out = pathlib.Path(out)
        self.ends = time.monotonic() + budget_s
        self.done = set(done)
        self.quick = quick
        self.work = self.out / "work"
        self.work.mkdir(parents=True, exist_ok=True)
        self.gpusonde = find("bin/gpusonde", "bin/gpusonde")
        self.inject = find("lib/libgpusonde-inject.so", "lib/libgpusonde-inject.so")
        self.recordings = 0

    def seconds_left(self):
        return self.ends - time.monotonic()

    def timeout(self, seconds):
        """At most this many seconds, and not beyond the budget."""
        return max(1.0, min(seconds, self.seconds_left()))

    def run(self, *command, timeout=120, env=None, check=True):
        """Runs a command; its output is text. Raises Failed if its exit status isn't 0 and `check`."""
        words = [str(word) for word in command]
        try:
            done = subprocess.run(words, capture_output=True, text=True, errors="replace", check=False,
                                  stdin=subprocess.DEVNULL, timeout=self.timeout(timeout),
                                  env={**os.environ, **(env or {})})
        except subprocess.TimeoutExpired as error:
            raise Failed(f"{' '.join(words[:4])} … did not end within {error.timeout:.0f} s") from error
        if check and done.returncode != 0:
            raise Failed(f"{' '.join(words[:4])} … exited with {done.returncode}: {last_lines(done.stderr + done.stdout)}")
        return done

    def record(self, *command, timeout=120, env=None, options=(), check=True):
        """`gpusonde record` of a command."""
        self.recordings += 1
        path = self.work / f"{os.getpid()}-{self.recordings}.sonde"
        done = self.run(self.gpusonde, "record", "-o", path, *options, "--", *command, timeout=timeout, env=env,
                        check=check)
        return Recorded(path, done.stdout, done.stderr, done.returncode)

    def query(self, recorded, sql, timeout=120):
        """The rows of a query, as dicts."""
        done = self.run(self.gpusonde, "query", recorded.path, sql, "--format", "json", timeout=timeout)
        return json.loads(done.stdout)

    def value(self, recorded, sql):
        (row,) = self.query(recorded, sql)
        (value,) = row.values()
        return value

    def forget(self, recorded):
        """Removes a recording that is no longer needed, as recordings are large."""
        recorded.path.unlink(missing_ok=True)

    def injected(self):
        """The environment of a program with the library loaded, without a profiler."""
        return {"CUDA_INJECTION64_PATH": str(self.inject), "NVTX_INJECTION64_PATH": str(self.inject)}

    def doctor(self):
        """{capability: finding} of `gpusonde doctor`."""
        done = self.run(self.gpusonde, "doctor", "--format", "json", check=False)
        return {finding["name"]: finding for finding in json.loads(done.stdout)["capabilities"]}

    def cupti_path(self):
        """The libcupti that gpusonde would use; raises Skip if there is none."""
        for name in CUPTI:
            if path := loaded_from(name):
                return path
        raise Skip("no libcupti.so.13 or .12 is found by the dynamic linker, in Python's packages or in a toolkit")

    def needs_gpu(self):
        if not device_name():
            raise Skip("no CUDA device: libcuda.so.1 doesn't load, or finds none")

    def needs_python(self, *modules):
        missing = [module for module in modules if not have(module)]
        if missing:
            raise Skip(f"{sys.executable} has no {', '.join(missing)}")

    def needs_program(self, name):
        path = shutil.which(name)
        if path is None:
            raise Skip(f"{name} is not on the PATH")
        return path

    def kernels_in(self, path):
        """The number of kernels in the recording at `path`; 0 if it can't be read."""
        done = subprocess.run([str(self.gpusonde), "query", str(path), "SELECT count(*) AS n FROM kernels"],
                              capture_output=True, text=True, check=False)
        return int(done.stdout.split()[-1]) if done.returncode == 0 else 0

    def simulated(self):
        return "imulated" in device_name()

    def needs_a_real_gpu(self, why):
        if self.simulated():
            raise Skip(f"on the simulated GPU {why}")


def loaded_from(name):
    """The path of the library that the dynamic linker finds by this name, or None. Loaded in another process, as libraries
    stay loaded."""
    script = ("import ctypes, sys; ctypes.CDLL(sys.argv[1]); "
              "print(next(line.split(maxsplit=5)[5] for line in open('/proc/self/maps') if sys.argv[1] in line))")
    done = subprocess.run([sys.executable, "-c", script, name], capture_output=True, text=True, timeout=60, check=False)
    return done.stdout.strip() if done.returncode == 0 else None


def library_path():
    """LD_LIBRARY_PATH with which non-Python programs also find CUPTI and the CUDA runtime: in Python's packages or in a
    toolkit, unless the dynamic linker finds them anyway."""
    path = os.environ.get("LD_LIBRARY_PATH", "")
    places = [f"{folder}/nvidia/*/lib" for folder in sys.path if folder]
    places += ["/usr/local/cuda*/lib64", "/usr/local/cuda*/extras/CUPTI/lib64"]
    for names in (CUPTI, RUNTIME):
        if any(loaded_from(name) for name in names):
            continue
        found = [file for name in names for place in places for file in sorted(glob.glob(f"{place}/{name}"))]
        if found:
            path = ":".join(part for part in (path, os.path.dirname(found[0])) if part)
    return path


def device_name():
    """The first CUDA device's name, from the driver alone; empty without one."""
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return ""
    name = ctypes.create_string_buffer(128)
    if driver.cuInit(0) != 0 or driver.cuDeviceGetName(name, len(name), 0) != 0:
        return ""
    return name.value.decode(errors="replace")


def last_lines(text, count=5):
    return " | ".join(text.strip().splitlines()[-count:])


def all_json(text):
    """The lines of a program's output that are JSON objects; at least one."""
    found = [json.loads(line) for line in text.splitlines() if line.startswith("{")]
    if not found:
        raise Failed(f"the program printed no result: {last_lines(text)}")
    return found


def last_json(text):
    return all_json(text)[-1]


def median(values):
    ordered = sorted(values)
    middle = len(ordered) // 2
    return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2


def spread(values, digits=3):
    return f"{min(values):.{digits}g}-{max(values):.{digits}g}"
