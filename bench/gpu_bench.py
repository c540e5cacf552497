#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures the cost of profiling GPU work, beside `perf record -g`, as a result for bench/run.py.

    bench/gpu_bench.py [--build FOLDER] [--seconds S] [--up-seconds S] [--repetitions N] FILE

A program launches 10,000 kernels a second on the simulated GPU, from 20 frames deep, profiled by `gpusonde up` (19 Hz,
continuously, within the governor's budget), completely by `gpusonde record` (19 Hz), and, CPU only, by perf. Our cost is the
CPU time of the profiler (of `up` with its child processes), of its eBPF programs (less the cost of measuring them: needs
root), and of the inject library's thread in the program. bench_inject measures the library's work on the program's own
threads, and tools/gpu-suite the cost of CUPTI on real GPUs. `up` runs alternately without and with the diagnosis. It stores
once in two minutes and computes roll-ups then, in a burst, so it is measured for two minutes, after it has created the file
of the day and read the program's files; how many of the kernels it has stored shows whether the governor let the library
sleep meanwhile. What a launch costs is that of the simulated CUPTI mostly: `libcupti_only.so` (tools/gpu-suite) in the
library's place subscribes to the same and ignores it, and what `record` adds to that is ours. Asleep, the library is loaded
without a profiler; the peer is the same program without it. Memory is resident memory while profiling; `record` doesn't load
DuckDB until it ends, so its memory is that of the agent.
"""

import argparse
import dataclasses
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request

import bpf_stats
import record_bench
from record_bench import CORES, cpu_s, row

ROOT = pathlib.Path(__file__).resolve().parent.parent
RATE = 10_000
DEPTH = 20
HZ = 19
WARM_UP_S = 4.0  # of the program, and of the profiler's start
UP_WARM_UP_S = 60.0  # half of it before the first query, half after: source lines come up to 30 s late
TICKS_PER_S = os.sysconf("SC_CLK_TCK")
CPU_GOAL_PERCENT = 0.5
AGENT_GOAL_MIB = 32
MAPS_GOAL_MIB = 64
UP_GOAL_MIB = 256
LAUNCH_GOAL_NS = 1_000  # mean, above the simulated CUPTI's own
LAUNCH_P99_GOAL_NS = 15_000
MACHINE = f"simgpu-bench-{os.getpid()}"


@dataclasses.dataclass
class Run:
    percent: float  # CPU time of the whole machine
    mib: float  # resident, without the maps
    map_mib: float  # maps of eBPF programs, resident in it
    launches: dict  # as the program sees them (launch_cost)
    stored_percent: float = 0.0  # of the kernels


def resident_mib(pid):
    """(resident memory without the maps of eBPF programs, those maps)"""
    sizes = {True: 0, False: 0}
    is_map = False
    for line in pathlib.Path(f"/proc/{pid}/smaps").read_text().splitlines():
        if re.match(r"[0-9a-f]+-[0-9a-f]+ ", line):
            is_map = "bpf-map" in line
        elif line.startswith("Rss:"):
            sizes[is_map] += int(line.split()[1])
    return sizes[False] / 1024, sizes[True] / 1024


def children_s(pid):
    """CPU time of a process's children, including ended ones."""
    waited_ticks = sum(int(ticks) for ticks in pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[13:15])
    living = pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return waited_ticks / TICKS_PER_S + sum(cpu_s(child) for child in living)


def library_s(pid):
    """CPU time of the inject library's thread in a program."""
    for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
        if (task / "comm").read_text().strip() == "gpusonde":
            return int((task / "schedstat").read_text().split()[0]) / 1e9
    return 0.0


def child_of(parent, name):
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        for child in pathlib.Path(f"/proc/{parent}/task/{parent}/children").read_text().split():
            if pathlib.Path(f"/proc/{child}/comm").read_text().strip() == name:
                return int(child)
        time.sleep(0.05)
    raise RuntimeError(f"{name} was not started")


def measure(profiler_s, program, kernel_programs, seconds):
    """The cost of profiling as a percentage of the machine, from now on while the program runs. `profiler_s` returns the
    profiler's CPU time."""
    def used_s():
        return profiler_s() + kernel_programs.spent_s()[0] + library_s(program)

    before_s, started = used_s(), time.monotonic()
    time.sleep(seconds)
    after_s, elapsed_s = used_s(), time.monotonic() - started
    return 100 * (after_s - before_s) / (elapsed_s * CORES)


def run_around(command, workload, environment, counting_ns, seconds):
    """A profiler that starts the program itself."""
    kernel_programs = bpf_stats.Programs(counting_ns)
    with subprocess.Popen([*command, "--", *workload], env=environment, stdout=subprocess.PIPE, text=True,
                          stderr=subprocess.DEVNULL) as profiler:
        try:
            program = child_of(profiler.pid, pathlib.Path(workload[0]).name[:15])
            time.sleep(WARM_UP_S)
            percent = measure(lambda: cpu_s(profiler.pid), program, kernel_programs, seconds)
            sizes = resident_mib(profiler.pid)
            output, _ = profiler.communicate(timeout=60)
        finally:
            profiler.kill()
    return Run(percent, *sizes, launches_of(output))


def launches_of(output):
    """What launch_cost printed: mean_ns, p50_ns, p99_ns and so on."""
    return json.loads(output.splitlines()[-1])


def stored_kernels(build, state, since_ns, until_ns):
    """The number of kernels in a state folder of `up` that began in this time, by the wall clock."""
    sql = f"SELECT count(*) FROM kernels WHERE start_ns BETWEEN {since_ns} AND {until_ns}"
    answer = subprocess.run([build / "bin/gpusonde", "query", *pathlib.Path(state, "days").glob("*.sonde"), sql,
                             "--format", "csv"], check=True, stdout=subprocess.PIPE, text=True)
    return int(answer.stdout.split()[-1])


def run_beside_up(build, folder, flags, workload, environment, counting_ns, seconds):
    kernel_programs = bpf_stats.Programs(counting_ns)
    state = tempfile.mkdtemp(dir=folder)
    up = subprocess.Popen([build / "bin/gpusonde", "up", "--state", state, "--hz", str(HZ), "--listen", "127.0.0.1:0",
                           "--no-open", *flags], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        urls = (match[0] for line in up.stdout if (match := re.search(r"http://\S+/", line)))
        url = next(urls, None)
        if url is None:
            raise RuntimeError("gpusonde up did not start")
        library = str(build / "lib/libgpusonde-inject.so")
        with subprocess.Popen(workload, env={**environment, "CUDA_INJECTION64_PATH": library}, stdout=subprocess.PIPE,
                              text=True) as program:
            time.sleep(UP_WARM_UP_S / 2)
            with urllib.request.urlopen(url + "api/v1/overview", timeout=60) as answer:  # makes the day's file
                answer.read()
            time.sleep(UP_WARM_UP_S / 2)
            since_ns = time.time_ns()
            percent = measure(lambda: cpu_s(up.pid) + children_s(up.pid), program.pid, kernel_programs, seconds)
            until_ns = time.time_ns()
            sizes = resident_mib(up.pid)
            output, _ = program.communicate(timeout=60)
    finally:
        up.terminate()
        up.communicate(timeout=60)
    stored = stored_kernels(build, state, since_ns, until_ns)
    return Run(percent, *sizes, launches_of(output), 100 * stored / (RATE * (until_ns - since_ns) / 1e9))


@dataclasses.dataclass
class Alone:
    launches: dict
    percent: float  # CPU time of the library's thread


def run_alone(added, workload, environment, seconds):
    """The program without profilers, with these variables in its environment."""
    with subprocess.Popen(workload, env={**environment, **added}, stdout=subprocess.PIPE, text=True) as program:
        time.sleep(WARM_UP_S)
        before_s, started = library_s(program.pid), time.monotonic()
        time.sleep(seconds)
        percent = 100 * (library_s(program.pid) - before_s) / ((time.monotonic() - started) * CORES)
        output, _ = program.communicate(timeout=60)
    return Alone(launches_of(output), percent)


def alone_environments(build):
    """Ways to run the program without profilers, each a dict of variables."""
    return {"asleep": {"CUDA_INJECTION64_PATH": str(build / "lib/libgpusonde-inject.so")},
            "cupti": {"CUDA_INJECTION64_PATH": str(build / "lib/libcupti_only.so"),
                      "GPU_SUITE_CUPTI": str(build / "lib/simgpu/libcupti.so.13")},
            "without": {}}


def rows_of(runs, alone, counted):
    def both(name, value):
        return [value(run) for run in runs[name]], [value(run) for run in runs.get("perf", [])]

    def both_alone(name, value):
        return [value(run) for run in alone[name]], [value(run) for run in alone["without"]]

    peer = f"perf record -g -F {HZ}, of the CPU alone, its kernel side unknown"
    adds = [whole.percent - profiling.percent for whole, profiling in zip(runs["up"], runs["profiling"])]
    ours = [run.launches["mean_ns"] - cupti.launches["mean_ns"] for run, cupti in zip(runs["record"], alone["cupti"])]
    made = [
        row("CPU of `up --no-diagnose` at 10,000 GPU events/s", "% of the machine",
            *both("profiling", lambda run: run.percent), peer),
        row("CPU that the diagnosis adds to it", "% of the machine", adds, [], ""),
        row("CPU of `up`, diagnosis included", "% of the machine", *both("up", lambda run: run.percent), peer,
            CPU_GOAL_PERCENT),
        row("kernels that it stored", "%", [run.stored_percent for run in runs["up"]], [], ""),
        row("p99 of a launch profiled by `up`", "ns", [run.launches["p99_ns"] for run in runs["up"]],
            [run.launches["p99_ns"] for run in alone["cupti"]], "with the simulated CUPTI only",
            LAUNCH_P99_GOAL_NS),
        row("mean of a launch profiled by `record`", "ns", *both("record", lambda run: run.launches["mean_ns"]), peer),
        row("mean of a launch with the simulated CUPTI only", "ns",
            *both_alone("cupti", lambda run: run.launches["mean_ns"]), "the program without the library"),
        row("mean of a launch: what `record` adds to the simulated CUPTI's own", "ns", ours, [], "", LAUNCH_GOAL_NS),
        row("CPU of `record` at 10,000 GPU events/s", "% of the machine", *both("record", lambda run: run.percent), peer),
        row("memory of the agent's part (`record` while it profiles)", "MiB", *both("record", lambda run: run.mib), peer,
            AGENT_GOAL_MIB),
        row("maps of kernel programs, resident in it", "MiB", *both("record", lambda run: run.map_mib), peer, MAPS_GOAL_MIB),
        row("memory of `up`, the store included", "MiB", *both("up", lambda run: run.mib), peer, UP_GOAL_MIB),
    ]
    made += [
        row("median of a launch, the library asleep", "ns", *both_alone("asleep", lambda run: run.launches["p50_ns"]),
            "the program without the library"),
        row("CPU of the library's thread, asleep", "% of the machine", [run.percent for run in alone["asleep"]], [], ""),
    ]
    if not counted:
        for each in made:
            if each["name"].startswith("CPU of `") or each["name"].startswith("CPU that"):
                each |= {"met": None, "note": f"{each['name']}: without the kernel programs; counting needs root and bpftool"}
    return made


def main():
    parser = argparse.ArgumentParser(description="Measure what GPU profiling costs, beside perf.")
    parser.add_argument("--build", type=pathlib.Path, default=record_bench.BUILD)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--up-seconds", type=float, default=120, help="of `up`: a multiple of 120")
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("file", type=pathlib.Path)
    arguments = parser.parse_args()
    build = arguments.build.resolve()

    def workload(seconds):
        return [str(build / "bin/launch_cost"), "--rate", str(RATE), "--depth", str(DEPTH), "--seconds", str(seconds + 4)]

    environment = {**os.environ, "LD_LIBRARY_PATH": str(build / "lib/simgpu"), "SIMGPU_MACHINE": MACHINE}
    runs, alone = {}, {}
    try:
        with tempfile.TemporaryDirectory() as folder, bpf_stats.counting() as counting_ns:
            around = {"record": [str(build / "bin/gpusonde"), "record", "--hz", str(HZ), "-o", f"{folder}/run.sonde"]}
            if shutil.which("perf"):
                around["perf"] = ["perf", "record", "-q", "-g", "-F", str(HZ), "-o", f"{folder}/perf.data"]
            for repetition in range(arguments.repetitions):
                print(f"  turn {repetition + 1} of {arguments.repetitions} …", file=sys.stderr, flush=True)
                for name, flags in (("profiling", ["--no-diagnose"]), ("up", [])):
                    runs.setdefault(name, []).append(run_beside_up(
                        build, folder, flags, workload(UP_WARM_UP_S + arguments.up_seconds), environment, counting_ns,
                        arguments.up_seconds))
                for name, added in alone_environments(build).items():
                    alone.setdefault(name, []).append(
                        run_alone(added, workload(arguments.seconds), environment, arguments.seconds))
                for name, command in around.items():
                    runs.setdefault(name, []).append(run_around(
                        command, workload(arguments.seconds), environment, counting_ns if name != "perf" else None,
                        arguments.seconds))
    except (OSError, RuntimeError, ValueError, subprocess.SubprocessError) as error:
        sys.exit(f"gpu_bench: {error}")
    finally:
        for file in pathlib.Path("/dev/shm").glob(f"{MACHINE}.*"):
            file.unlink()
    arguments.file.write_text(json.dumps({"rows": rows_of(runs, alone, counting_ns is not None)}, ensure_ascii=False))


if __name__ == "__main__":
    main()
