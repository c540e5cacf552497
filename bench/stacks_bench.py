#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures how complete the stacks of real programs are, as a result for bench/run.py.

    bench/stacks_bench.py [--gpusonde PROGRAM] [--seconds S] [--only NAME] [--details] FILE

Each program runs under `perf record --call-graph dwarf`, and that under `gpusonde record`, so that both see the same
run. A stack is complete if its outermost frame is where a thread starts, by name. As a second opinion, the share of each of the
ten hottest paths among perf's complete stacks is compared with its share in ours. A path is the functions of the process,
without those that only one of the two can name (generated code by address, Python frames).

Two samplers of one run see different moments of it: of n samples each, a path of share p differs by
sqrt(2 p (1 - p) / n), one point for p = 0.3 and n = 4,000. So a program is run again until the standard error of the
largest difference is half a point; the result includes it. It is a jackknife over the seconds of the runs, so that it
includes the variation of programs that work in phases.

The reasons for incomplete stacks are those of the recording, which includes perf itself with its embedded Python
interpreter.
"""

import argparse
import collections
import contextlib
import dataclasses
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUILD = pathlib.Path(os.environ.get("GPUSONDE_BUILD", ROOT / "build/release")).resolve()
PROGRAMS = ROOT / "bench/stacks"
HZ = 499
GOAL_PERCENT = 99
GOAL_POINTS = 2
JUDGE_PERCENT = 90  # of perf's stacks must be complete for a comparison
HOTTEST = 10
NOISE_POINTS = 0.5
MIN_SECONDS = 16  # to estimate the noise
MAX_RUNS = 4
PERF_STACK_BYTES = 32768

# Where threads begin: programs, the C library's threads, the dynamic loader, Go's two kinds of thread.
STARTS = re.compile(r"(_start|_dl_start_user|(__GI_)?(__)*clone3?|start_thread|runtime\.goexit(\.abi0)?|runtime\.rt0_go(\.abi0)?"
                    r"|runtime\.mstart(\.abi0)?|_rt0_amd64_linux)$")
# Functions that only one of the two names, or both name differently.
LEFT_OUT = re.compile(r"_PyEval_EvalFrameDefault|.*@plt$|\[.*\]$|(Lazy|Eval|Function|Script|Builtin|Bytecode|Stub|RegExp)"
                      r"[^ ]*:|JS:|py::|_PyEval_EvalFrame.*|(__GI_)?(__)*clone3?$")

Stack = tuple  # of function names, outermost first


class Profile:
    """Samples by stack, of one sampler."""

    def __init__(self):
        self.stacks = collections.Counter()  # {Stack: samples}, of stacks with frames of the process
        # {moment: {path: samples}}, a moment being a second of a run: complete stacks in code of the process itself,
        # which is all that perf records
        self.paths = collections.defaultdict(collections.Counter)
        self.without_frames = 0  # of the kernel only: a program that starts or ends
        self.reasons = collections.Counter()

    def add(self, stack, samples, second, in_kernel=False):
        self.stacks[stack] += samples
        if STARTS.match(stack[0]) and not in_kernel:
            path = tuple(without_alias(name) for name in stack if not LEFT_OUT.match(name))
            self.paths[0, second][path] += samples

    def add_run(self, other):
        """The samples of one more run of the same program."""
        run = 1 + max((run for run, _ in self.paths), default=-1)
        self.stacks += other.stacks
        self.without_frames += other.without_frames
        self.reasons += other.reasons
        for (_, second), paths in other.paths.items():
            self.paths[run, second] += paths

    @property
    def whole_percent(self):
        total = sum(self.stacks.values())
        whole = sum(samples for stack, samples in self.stacks.items() if STARTS.match(stack[0]))
        return 100 * whole / total if total else 0.0


@dataclasses.dataclass
class Difference:
    """The difference of the shares of one of perf's hottest paths, ours minus perf's, in points."""
    path: Stack
    ours: float  # percent
    perfs: float
    standard_error: float

    @property
    def points(self):
        return abs(self.ours - self.perfs)


def compare(ours, perfs):
    """Differences of perf's ten hottest paths, the largest first."""
    moments = sorted(ours.paths.keys() & perfs.paths.keys())
    sums = [sum((profile.paths[moment] for moment in moments), collections.Counter()) for profile in (ours, perfs)]
    if not all(map(sum, (sums[0].values(), sums[1].values()))):
        return []

    def shares(path, without=None):
        for profile, counts in zip((ours, perfs), sums):
            left_out = profile.paths[without] if without is not None else collections.Counter()
            yield 100 * (counts[path] - left_out[path]) / max(1, counts.total() - left_out.total())

    differences = []
    for path, _ in sums[1].most_common(HOTTEST):
        own, other = shares(path)
        partial = [one - two for one, two in (shares(path, moment) for moment in moments)]
        mean = sum(partial) / len(partial)
        variance = (len(partial) - 1) / len(partial) * sum((value - mean) ** 2 for value in partial)
        differences.append(Difference(path, own, other, variance ** 0.5))
    return sorted(differences, key=lambda difference: -difference.points)


def plain(name):
    """Strips the suffixes that compilers add to the names of parts and clones of a function."""
    return re.sub(r"(\.(cold|part|isra|constprop|llvm|lto_priv)(\.\d+)*)+$|@@?[A-Z].*$", "", name)


def without_alias(name):
    """The C library's functions have several names at one address, of which each profiler picks another."""
    return name if name.startswith("_Z") else re.sub(r"^_*(GI_)?_*(libc_)?|_impl$", "", name)


def read_ours(gpusonde, recording):
    def query(sql):
        return json.loads(subprocess.run([gpusonde, "query", recording, sql, "--format", "json"], check=True,
                                         stdout=subprocess.PIPE).stdout)

    names = {row["location"]: (row["kind"], row["name"]) for row in query(
        "SELECT l.location, l.kind, coalesce(f.system_name, '[' || coalesce(b.name, 'unknown') || ']') AS name "
        "FROM locations l LEFT JOIN binaries b USING (binary_id) LEFT JOIN functions f ON f.function = l.functions[-1]")}
    profile = Profile()
    for row in query("WITH own AS (SELECT stack, time_ns - min(time_ns) OVER () AS since_ns FROM samples "
                     "JOIN processes USING (process) WHERE state = 'on_cpu' AND name <> 'perf') "
                     "SELECT stacks.locations, since_ns // 1000000000 AS second, count(*) AS n FROM own "
                     "JOIN stacks USING (stack) GROUP BY ALL"):
        frames = [names[location] for location in row["locations"]]
        user = [plain(name) for kind, name in reversed(frames) if kind not in ("kernel", "python")]
        if user:
            profile.add(tuple(user), row["n"], row["second"], any(kind == "kernel" for kind, _ in frames))
        else:
            profile.without_frames += row["n"]
    profile.reasons = collections.Counter({row["reason"]: row["n"] for row in query(
        "SELECT reason, sum(count)::BIGINT AS n FROM drops WHERE reason LIKE 'unwind%' OR reason LIKE 'python%' "
        "OR reason IN ('no_user_stack', 'stack_truncated', 'unknown_mapping') GROUP BY ALL")})
    return profile


def read_perfs(data):
    command = ["perf", "script", "--no-inline", "--no-demangle", "-i", data, "-F", "comm,tid,time,ip,sym,dso"]
    text = subprocess.run(command, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                          errors="replace").stdout
    profile = Profile()
    first_s = None
    for sample in text.split("\n\n"):
        head, _, frames = sample.strip("\n").partition("\n")
        moment = re.search(r" (\d+\.\d+):", head)
        if moment is None or head.startswith("perf"):
            continue
        first_s = float(moment[1]) if first_s is None else first_s
        user = []
        for frame in reversed(frames.splitlines()):
            match = re.match(r"\s*([0-9a-f]+) (.*) \((.*)\)$", frame)
            if not match:
                continue
            _, name, binary = match.groups()
            user.append(plain(name) if name != "[unknown]" else f"[{pathlib.Path(binary).name}]")
        if user:
            profile.add(tuple(user), 1, int(float(moment[1]) - first_s))
        else:
            profile.without_frames += 1
    return profile


def run(gpusonde, command, folder):
    """(ours, perf's or None) of one run of the program."""
    recording, data = f"{folder}/run.sonde", f"{folder}/perf.data"
    if shutil.which("perf"):
        # User space only: paths are those of its own functions. If two profilers differ on whether they want build ids of
    # mappings, Linux 6.1 gives one of them the wrong one, which crashes perf: so both request them.
        command = ["perf", "record", "-q", "--buildid-mmap", "-e", "cpu-clock:u", "-F", str(HZ), "--call-graph",
                   f"dwarf,{PERF_STACK_BYTES}", "-o", data, "--", *command]
    whole = [gpusonde, "record", "--hz", str(HZ), "-o", recording, "--", *command]
    # In the folder, as node writes its log to the current one.
    done = subprocess.run(whole, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False, cwd=folder)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(whole)}: exit status {done.returncode}\n{done.stderr}")
    return read_ours(gpusonde, recording), read_perfs(data) if pathlib.Path(data).exists() else None


def programs(seconds, folder):
    """{name: command, or why it is missing}"""
    found = {"C++ at -O2 -fomit-frame-pointer through five libraries":
             [str(BUILD / "tests/programs/five_libraries"), str(seconds)]}
    for minor in (9, 10, 11, 12, 13):
        python = python_of(minor)
        found[f"CPython 3.{minor}"] = [python, str(PROGRAMS / "cpython.py"), str(seconds)] if python else "not installed"
    node = shutil.which("node")
    found["node --perf-basic-prof"] = ([node, "--perf-basic-prof", str(PROGRAMS / "node.js"), str(seconds)]
                                       if node else "not installed")
    ripgrep = shutil.which("rg")
    corpus = folder / "corpus"
    corpus.write_text("the quick brown fox jumps over the lazy dog 1234-56 and back again\n" * 200_000)
    found["Rust: ripgrep"] = ([ripgrep, "-j2", "-c", r"(\w+)\s+\d+-\d+\s+(x|and\b.*gain)$",
                               *[str(corpus)] * int(24 * seconds)] if ripgrep else "not installed")
    go = shutil.which("go")
    if go:
        made = folder / "goroutines"
        subprocess.run([go, "build", "-o", str(made), str(PROGRAMS / "goroutines.go")], check=True, cwd=folder,
                       env=dict(os.environ, GOFLAGS="-mod=mod", GO111MODULE="off"))
        found["Go"] = [str(made), str(seconds)]
    else:
        found["Go"] = "not installed"
    gofmt = shutil.which("gofmt")
    # Folders that parse, and no link, which gofmt doesn't follow.
    sources = (pathlib.Path(os.path.realpath(gofmt)).parent.parent / "src").resolve() if gofmt else None
    folders = [str(sources / name) for name in ("runtime", "net", "crypto")] if sources else []
    # Debian's has neither .debug_frame nor .symtab. It formats files without writing them.
    found["Go, stripped: gofmt"] = ([gofmt, "-l", *folders * max(1, int(seconds / 2))]
                                    if sources and sources.exists() else "not installed")
    return found


def python_of(minor):
    """A working CPython of this version: Debian's, or pyenv's."""
    candidates = [f"/usr/bin/python3.{minor}", *sorted(map(str, pathlib.Path("/root/.pyenv/versions").glob(
        f"3.{minor}.*/bin/python3.{minor}")))]
    for candidate in candidates:
        with contextlib.suppress(OSError):
            if subprocess.run([candidate, "-c", "import json, zlib"], stderr=subprocess.DEVNULL,
                              check=False).returncode == 0:
                return candidate
    return None


def runs_of(gpusonde, command, folder):
    """(ours, perf's or None) of enough runs of the program to compare their paths."""
    ours, perfs, runs = Profile(), Profile(), 0
    while runs < MAX_RUNS:
        with tempfile.TemporaryDirectory(dir=folder) as own_folder:
            own, others = run(gpusonde, command, own_folder)
        runs += 1
        ours.add_run(own)
        if others is None:
            return ours, None
        perfs.add_run(others)
        differences = compare(ours, perfs) if perfs.whole_percent >= JUDGE_PERCENT else []
        enough = len(perfs.paths) >= MIN_SECONDS
        if not differences or (enough and differences[0].standard_error <= NOISE_POINTS):
            break
    return ours, perfs


def rows_of(name, ours, perfs, details):
    reasons = ", ".join(f"{reason} {n}" for reason, n in ours.reasons.most_common()) or "none"
    row = {"name": f"{name}: stacks that reach the thread's start", "value": round(ours.whole_percent, 2), "unit": "%",
           "goal": f"≥ {GOAL_PERCENT} %", "met": ours.whole_percent >= GOAL_PERCENT,
           "spread": f"{sum(ours.stacks.values())} samples", "note": f"reasons, perf's own start included: {reasons}"}
    if perfs:
        row["peer"] = f"perf record --call-graph dwarf: {perfs.whole_percent:.2f}"
    yield row
    if details:
        report(name, ours, perfs)
    if not perfs or perfs.whole_percent < JUDGE_PERCENT:
        return  # it can't judge paths that it can't unwind itself
    differences = compare(ours, perfs)
    if not differences:
        return
    worst = differences[0]
    yield {"name": f"{name}: largest difference of perf's ten hottest paths", "value": round(worst.points, 2),
           "unit": "points", "goal": f"≤ {GOAL_POINTS} points", "met": worst.points <= GOAL_POINTS,
           "spread": f"± {worst.standard_error:.2f} (standard error)",
           "note": f"of {sum(map(collections.Counter.total, perfs.paths.values()))} samples of perf's and "
                   f"{sum(map(collections.Counter.total, ours.paths.values()))} of ours, in {len(perfs.paths)} seconds; the "
                   f"ten are {sum(difference.perfs for difference in differences):.0f} % of perf's"}


def report(name, ours, perfs):
    """Details behind the numbers, for debugging."""
    print(f"== {name}", file=sys.stderr)
    for label, profile in (("ours", ours), ("perf", perfs)):
        if profile is None:
            continue
        roots = collections.Counter()
        for stack, samples in profile.stacks.items():
            roots[stack[0] if STARTS.match(stack[0]) else "BROKEN " + " > ".join(stack[:3])] += samples
        print(f" {label}: {sum(profile.stacks.values())} samples, {profile.without_frames} without frames",
              dict(profile.reasons), file=sys.stderr)
        for root, samples in roots.most_common(12):
            print(f"  {samples:6} {root}", file=sys.stderr)
    for difference in compare(ours, perfs) if perfs and perfs.whole_percent >= JUDGE_PERCENT else []:
        print(f"  ours {difference.ours:.2f}, perf's {difference.perfs:.2f} ± {difference.standard_error:.2f}: "
              f"{' > '.join(difference.path)}", file=sys.stderr)


def main():
    parser = argparse.ArgumentParser(description="Measure how whole stacks are, beside perf.")
    parser.add_argument("--gpusonde", default=os.environ.get("GPUSONDE", str(BUILD / "bin/gpusonde")))
    parser.add_argument("--seconds", type=float, default=8)
    parser.add_argument("--only", default="", help="programs whose name contains this")
    parser.add_argument("--details", action="store_true", help="print roots and paths to standard error")
    parser.add_argument("file", type=pathlib.Path)
    arguments = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for name, command in programs(arguments.seconds, pathlib.Path(folder)).items():
            if arguments.only not in name:
                continue
            if isinstance(command, str):
                rows.append({"name": name, "value": None, "unit": "%", "note": f"{name}: {command}"})
                continue
            try:
                ours, perfs = runs_of(arguments.gpusonde, command, folder)
            except (OSError, RuntimeError, subprocess.CalledProcessError) as error:
                sys.exit(f"stacks_bench: {error}")
            rows += rows_of(name, ours, perfs, arguments.details)
            # Keeps the results so far if the rest fails or is stopped.
            arguments.file.write_text(json.dumps({"rows": rows}, ensure_ascii=False))
    arguments.file.write_text(json.dumps({"rows": rows}, ensure_ascii=False))


if __name__ == "__main__":
    main()
