#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures the cost of `gpusonde record`, beside `perf record` with frame pointers and with DWARF, as a result for
bench/run.py.

    bench/record_bench.py [--gpusonde PROGRAM] [--hotpaths PROGRAM] [--seconds S] [--repetitions N] FILE

The hotpaths example keeps every core busy and counts its work, alternately alone and under each sampler at 19 and
99 Hz, so that other load affects all of them. The sampler's CPU time and the run time of its eBPF programs (which Linux
measures while kernel.bpf_stats_enabled is set: needs root) are read twice: after hotpaths has run for a second, and after
it has printed its result; the cost of the measurement is subtracted. The start is before the first reading, sampling between
the two, and writing the file after. perf's kernel side can't be measured; only the lost work shows it. Maps are those
created with the sampler, by the size that the kernel reports.
"""

import argparse
import contextlib
import dataclasses
import json
import os
import pathlib
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

import bpf_stats

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUILD = pathlib.Path(os.environ.get("GPUSONDE_BUILD", ROOT / "build/release"))
FREQUENCIES_HZ = (19, 99)
CPU_GOAL_PERCENT = 0.5
MEMORY_GOAL_MIB = 256
MAPS_GOAL_MIB = 64
POLL_S = 0.02
WARM_UP_S = 1.0
CORES = os.cpu_count()
PEERS = ("fp", "dwarf")  # of perf record --call-graph


@dataclasses.dataclass
class Run:
    """A run of hotpaths; the fields after the first are of the sampler."""
    units_per_s: float
    start_cpu_s: float = 0.0
    sampling_percent: float = 0.0  # CPU time of it and its eBPF programs, of the whole machine
    end_cpu_s: float = 0.0
    sampling_mib: float = 0.0
    peak_mib: float = 0.0
    map_mib: float = 0.0  # in the kernel


def bpf_map_bytes():
    """{map id: bytes of the kernel's memory}"""
    shown = subprocess.run(["bpftool", "--json", "map", "show"], check=True, stdout=subprocess.PIPE).stdout
    return {made["id"]: int(made.get("bytes_memlock", 0)) for made in json.loads(shown)}


def cpu_s(pid):
    """CPU time of all threads of a process."""
    total_ns = 0
    for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
        total_ns += int((task / "schedstat").read_text().split()[0])
    return total_ns / 1e9


def peak_mib(pid):
    """The peak resident memory of a process so far; None after it has ended."""
    try:
        match = re.search(r"^VmHWM:\s+(\d+) kB", pathlib.Path(f"/proc/{pid}/status").read_text(), re.MULTILINE)
    except (FileNotFoundError, ProcessLookupError):
        return None
    return int(match[1]) / 1024 if match else None


def run_alone(workload):
    result = json.loads(subprocess.run(workload, check=True, stdout=subprocess.PIPE).stdout)
    return Run(units_per_s=result["units"] / result["seconds"])


def wait_for_program(sampler, name):
    """Waits until `sampler` has a child that runs the program `name`."""
    while sampler.poll() is None:
        for child in pathlib.Path(f"/proc/{sampler.pid}/task/{sampler.pid}/children").read_text().split():
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):
                if pathlib.Path(f"/proc/{child}/comm").read_text().strip() == name:
                    return
        time.sleep(POLL_S)


def watch(sampler, kernel_programs, maps_before, workload, run):
    """Fills in what is known of a running sampler. maps_before: maps that aren't its own, or None: not counted."""
    wait_for_program(sampler, pathlib.Path(workload[0]).name)
    time.sleep(WARM_UP_S)
    run.start_cpu_s, kernel_before_s, started = cpu_s(sampler.pid), kernel_programs.spent_s()[0], time.monotonic()
    line = sampler.stdout.readline()
    cpu_after_s, kernel_after_s = cpu_s(sampler.pid), kernel_programs.spent_s()[0]
    sampling_s = time.monotonic() - started
    used_s = cpu_after_s - run.start_cpu_s + kernel_after_s - kernel_before_s
    run.sampling_percent = 100 * used_s / (sampling_s * CORES)
    run.sampling_mib = run.peak_mib = peak_mib(sampler.pid)
    if maps_before is not None:
        run.map_mib = sum(size for made, size in bpf_map_bytes().items() if made not in maps_before) / 2**20
    while (mib := peak_mib(sampler.pid)) is not None:
        run.peak_mib = mib
        time.sleep(POLL_S)
    result = json.loads(line)
    run.units_per_s = result["units"] / result["seconds"]
    _, status, usage = os.wait4(sampler.pid, 0)
    sampler.returncode = os.waitstatus_to_exitcode(status)
    run.end_cpu_s = usage.ru_utime + usage.ru_stime - result["process_cpu_ns"] / 1e9 - cpu_after_s


def run_sampled(command, workload, counting_ns):
    """`counting_ns`: as in bpf_stats.Programs."""
    run = Run(units_per_s=0.0)
    kernel_programs = bpf_stats.Programs(counting_ns)
    maps_before = None if counting_ns is None else set(bpf_map_bytes())
    with tempfile.TemporaryFile() as messages:
        sampler = subprocess.Popen([*command, "--", *workload], stdout=subprocess.PIPE, stderr=messages)
        failure = None
        try:
            watch(sampler, kernel_programs, maps_before, workload, run)
        except (OSError, ValueError, TypeError) as error:  # it ended too early for its /proc files or its result
            failure = error
        sampler.stdout.close()
        if sampler.wait() != 0 or failure is not None:
            messages.seek(0)
            raise RuntimeError(f"{' '.join(command)}: exit status {sampler.returncode}\n"
                               f"{messages.read().decode(errors='replace')}") from failure
    return run


def samplers(gpusonde, folder):
    """{(name, Hz): command} of the installed samplers."""
    commands = {}
    for hz in FREQUENCIES_HZ:
        if gpusonde.exists():
            commands["gpusonde", hz] = (str(gpusonde), "record", "--hz", str(hz), "-o", f"{folder}/run.sonde")
        if shutil.which("perf"):
            for graph in PEERS:
                commands[graph, hz] = ("perf", "record", "-q", "--call-graph", graph, "-F", str(hz), "-o",
                                       f"{folder}/perf.data")
    return commands


def measure(gpusonde, workload, repetitions):
    """{("alone", 0) or (sampler, Hz): [Run, …]}, run alternately; and whether eBPF programs were measured."""
    runs = {}
    with tempfile.TemporaryDirectory() as folder, bpf_stats.counting() as counting_ns:
        commands = samplers(gpusonde, folder)
        for repetition in range(repetitions):
            print(f"  turn {repetition + 1} of {repetitions} …", file=sys.stderr, flush=True)
            runs.setdefault(("alone", 0), []).append(run_alone(workload))
            for key, command in commands.items():
                runs.setdefault(key, []).append(run_sampled(command, workload, counting_ns if key[0] == "gpusonde" else None))
    return runs, counting_ns is not None


def spread(values):
    return f"{min(values):.3g}-{max(values):.3g}"


def row(name, unit, ours, peers, peer_name, goal=None, more_peers=None):
    """A row of medians; `ours` and `peers` have one value per turn, or are empty if the program is missing. The ratio is to
    `peers`; `more_peers` are others by name."""
    if not ours:
        return {"name": name, "value": None, "unit": unit, "note": f"{name}: no gpusonde to run"}
    made = {"name": name, "value": statistics.median(ours), "unit": unit, "spread": spread(ours)}
    if peers:
        peer = statistics.median(peers)
        made["peer"] = f"{peer_name}: {peer:.3g} ({spread(peers)})"
        if made["value"] > 0 and peer > 0:
            made["ratio"] = round(made["value"] / peer, 3)
        for other_name, values in (more_peers or {}).items():
            made["peer"] += f"; {other_name}: {statistics.median(values):.3g} ({spread(values)})"
    if goal is not None:
        made["goal"] = f"≤ {goal:g} {unit}"
        made["met"] = made["value"] <= goal
    return made


def rows_of(runs, bpf_counted):
    alone = [run.units_per_s for run in runs["alone", 0]]

    def made(name, unit, hz, value, goal=None, note=""):
        """A row of one number of each run, beside every peer's."""
        peers = {f"perf record --call-graph {graph}{note}": [value(run, turn) for turn, run in enumerate(runs[graph, hz])]
                 for graph in PEERS if (graph, hz) in runs}
        first = next(iter(peers), "")
        return row(name, unit, [value(run, turn) for turn, run in enumerate(runs.get(("gpusonde", hz), []))],
                   peers.pop(first, []), first, goal, peers)

    for hz in FREQUENCIES_HZ:
        cpu = made(f"CPU while sampling at {hz} Hz, kernel programs included", "% of the machine", hz,
                   lambda run, _: run.sampling_percent, CPU_GOAL_PERCENT, ", its kernel side unknown")
        if cpu["value"] is not None and not bpf_counted:
            cpu |= {"met": None, "note": f"at {hz} Hz without the kernel programs: counting needs root and bpftool"}
        yield cpu
        yield made(f"work lost at {hz} Hz", "%", hz, lambda run, turn: 100 * (1 - run.units_per_s / alone[turn]))
        yield made(f"CPU to start at {hz} Hz, with the first second of sampling", "s", hz, lambda run, _: run.start_cpu_s)
        yield made(f"CPU to write the file at {hz} Hz", "s", hz, lambda run, _: run.end_cpu_s)
        yield made(f"memory while sampling at {hz} Hz", "MiB", hz, lambda run, _: run.sampling_mib, MEMORY_GOAL_MIB)
        yield made(f"memory at its peak at {hz} Hz", "MiB", hz, lambda run, _: run.peak_mib, MEMORY_GOAL_MIB)
        if bpf_counted:
            maps = [run.map_mib for run in runs.get(("gpusonde", hz), [])]
            yield row(f"maps of kernel programs at {hz} Hz", "MiB", maps, [], "", MAPS_GOAL_MIB)


def main():
    parser = argparse.ArgumentParser(description="Measure what recording costs, beside perf.")
    parser.add_argument("--gpusonde", type=pathlib.Path, default=os.environ.get("GPUSONDE", BUILD / "bin/gpusonde"))
    parser.add_argument("--hotpaths", type=pathlib.Path, default=BUILD / "bin/hotpaths")
    parser.add_argument("--seconds", type=float, default=8)
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("file", type=pathlib.Path)
    arguments = parser.parse_args()
    workload = (str(arguments.hotpaths), "--seconds", str(arguments.seconds), "--threads", str(CORES))
    try:
        runs, bpf_counted = measure(arguments.gpusonde, workload, arguments.repetitions)
    except (OSError, RuntimeError, subprocess.CalledProcessError) as error:
        sys.exit(f"record_bench: {error}")
    arguments.file.write_text(json.dumps({"rows": list(rows_of(runs, bpf_counted))}, ensure_ascii=False))


if __name__ == "__main__":
    main()
