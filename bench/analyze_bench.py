#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures `gpusonde analyze` beside what it can't be expected to beat, and what it should, as a result for bench/run.py.

    bench/analyze_bench.py [--kernels N] [--pandas-kernels N] [--repetitions N] FILE

Traces are made by synthetic_trace, and the real ones of ../shared/traces are read where they are. Each pair of programs
runs in turns, files are in the page cache, and a figure is the fastest of the repetitions: on a shared machine the
others measure the neighbours. Times are CPU seconds, user and system, of one thread; only efficiencies compare time on
the clock, and are meaningful on a quiet machine only.
"""

import argparse
import gzip
import json
import os
import pathlib
import resource
import shutil
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUILD = pathlib.Path(os.environ.get("GPUSONDE_BUILD", ROOT / "build/release"))
TRACES = ROOT.parent / "shared/traces"
PROGRAM = str(BUILD / "bin/gpusonde")
BASELINES = str(BUILD / "bin/bench_analyze_baselines")
SYNTHETIC = str(BUILD / "bin/synthetic_trace")
MEMORY_GOAL_MIB = 256


class Used:
    """What a command used: CPU seconds, wall seconds, peak memory in MiB; and what it printed."""

    def __init__(self, command):
        begin, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            process = subprocess.Popen(command, stdout=out, stderr=err)
            _, status, own = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
            self.wall_s = time.perf_counter() - begin
            out.seek(0)
            self.output = out.read().decode()
            if process.returncode != 0:
                err.seek(0)
                raise subprocess.CalledProcessError(process.returncode, command, stderr=err.read().decode())
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        self.cpu_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        self.peak_mib = own.ru_maxrss / 1024


def fastest(runs, key):
    return min(runs, key=key)


def row(name, value, unit, **more):
    return {"name": name, "value": value, "unit": unit} | more


def goal(relation, bound, value):
    met = value <= bound if relation == "≤" else value >= bound
    return {"goal": f"{relation} {bound:g}", "met": met}


def sqlite_rows(folder, kernels, repetitions):
    path = str(folder / "synthetic.sqlite")
    subprocess.run([SYNTHETIC, "-o", path, "--kernels", str(kernels), "--ranks", "2"], check=True)
    scans, ones, twos = [], [], []
    for _ in range(repetitions):
        scans.append(json.loads(Used([BASELINES, "scan", path]).output))
        ones.append(Used([PROGRAM, "analyze", "--threads", "1", "--format", "json", path]))
        twos.append(Used([PROGRAM, "analyze", "--threads", "2", "--format", "json", path]))
    scan = min(scans, key=lambda run: run["seconds"])
    one, two = fastest(ones, lambda run: run.cpu_s), fastest(twos, lambda run: run.wall_s)
    ratio = one.cpu_s / scan["seconds"]
    events = f"{scan['rows'] / 1e6:.3g} M events"
    yield row(f"Nsight SQLite, {events}: full report", one.cpu_s / scan["rows"] * 1e9, "ns/event",
              peer=f"libsqlite3's scan: {scan['seconds'] / scan['rows'] * 1e9:.1f} ns", ratio=round(ratio, 2))
    yield row(f"Nsight SQLite, {events}: full report to scan", ratio, "×", **goal("≤", 2, ratio))
    efficiency = fastest(ones, lambda run: run.wall_s).wall_s / two.wall_s / 2
    yield row(f"Nsight SQLite, {events}: efficiency of 2 threads", efficiency, "", **goal("≥", 0.85, efficiency))
    peak = max(run.peak_mib for run in ones + twos)
    yield row(f"Nsight SQLite, {events}: peak memory", peak, "MiB", **goal("≤", MEMORY_GOAL_MIB, peak))
    yield from rank_rows(path, events, fastest(ones, lambda run: run.wall_s).wall_s, repetitions)
    os.unlink(path)


def rank_rows(path, events, alone_s, repetitions):
    name = f"Nsight SQLite, {events}: efficiency of 2 MPI ranks"
    if not shutil.which("mpirun"):
        yield row(name, None, "", note="mpirun isn't installed")
        return
    mpirun = ["mpirun", "--allow-run-as-root", "--oversubscribe", "-n", "2"]
    two_s = min(Used([*mpirun, PROGRAM, "analyze", "--threads", "1", "--format", "json", path]).wall_s
                for _ in range(repetitions))
    efficiency = alone_s / two_s / 2
    yield row(name, efficiency, "", note="MPI_Init included", **goal("≥", 0.85, efficiency))


def json_row(name, path, repetitions):
    passes, runs = [], []
    for _ in range(repetitions):
        passes.append(json.loads(Used([BASELINES, "simdjson", path]).output))
        runs.append(Used([PROGRAM, "analyze", "--threads", "1", "--format", "json", path]))
    best = min(passes, key=lambda run: run["seconds"])
    one = fastest(runs, lambda run: run.cpu_s)
    rate, peer = best["bytes"] / one.cpu_s / 1e9, best["bytes"] / best["seconds"] / 1e9
    return rate, peer, row(f"Kineto JSON, {name}, {best['bytes'] / 1e6:.0f} MB", rate, "GB/s",
                           peer=f"simdjson: {peer:.2f} GB/s", ratio=round(rate / peer, 2),
                           **goal("≥", 0.5, rate / peer) | {"goal": "ratio ≥ 0.5"})


def json_rows(folder, kernels, repetitions):
    path = folder / "synthetic.json"
    subprocess.run([SYNTHETIC, "--format", "kineto", "-o", str(path), "--kernels", str(kernels)], check=True)
    rate, _, made = json_row("synthetic", str(path), repetitions)
    yield made
    yield row("Kineto JSON, synthetic: rate", rate, "GB/s", **goal("≥", 1, rate))
    path.unlink()
    if not TRACES.exists():
        yield row("Kineto JSON, real traces", None, "GB/s", note="../shared/traces isn't there")
        return
    for packed in sorted((TRACES / "kineto").glob("*.json.gz")):
        plain = folder / "plain.json"
        with gzip.open(packed) as source, open(plain, "wb") as target:
            shutil.copyfileobj(source, target)
        if plain.stat().st_size < 10e6:  # below, starting the program is what is measured
            continue
        try:
            yield json_row(packed.name.removesuffix(".json.gz"), str(plain), repetitions)[2]
        except subprocess.CalledProcessError as error:
            yield row(f"Kineto JSON, {packed.name}", None, "GB/s", note=f"failed: {error.stderr}")


def pandas_rows(folder, kernels):
    name = f"pandas over SQLite, {kernels / 1e6:g} M kernels"
    path = str(folder / "pandas.sqlite")
    subprocess.run([SYNTHETIC, "-o", path, "--kernels", str(kernels), "--ranks", "2"], check=True)
    try:
        peer = Used(["/usr/bin/python3", str(ROOT / "bench/analyze_pandas.py"), path])
    except subprocess.CalledProcessError as error:
        yield row(name, None, "×", note=f"not measured: {error.stderr.strip().splitlines()[-1]}")
        return
    said = json.loads(peer.output)
    ours = Used([PROGRAM, "analyze", "--threads", "1", "--format", "json", path])
    report = json.loads(ours.output)
    for key, ranks in (("busy_ns", [rank["busy_ns"] for rank in report["ranks"]]),
                       ("queue_delay_ns", [rank["queue_delay"]["total_ns"] for rank in report["ranks"]])):
        if said[key] != sum(ranks):
            raise ValueError(f"{key}: pandas says {said[key]}, gpusonde {sum(ranks)}")
    ratio = peer.cpu_s / ours.cpu_s
    yield row(name + ": times faster", ratio, "×", peer=f"pandas: {peer.cpu_s:.2f} s, {peer.peak_mib:.0f} MiB",
              note=f"{ours.cpu_s:.2f} s, {ours.peak_mib:.0f} MiB, one thread each; busy time and queue delay are equal",
              **goal("≥", 30, ratio))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kernels", type=int, default=4_500_000, help="of the SQLite trace; the JSON has a fifth")
    parser.add_argument("--pandas-kernels", type=int, default=1_000_000)
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("file")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(dir="/var/tmp") as name:
        folder = pathlib.Path(name)
        rows = [*sqlite_rows(folder, arguments.kernels, arguments.repetitions),
                *json_rows(folder, arguments.kernels // 5, arguments.repetitions),
                *pandas_rows(folder, arguments.pandas_kernels)]
    rows.append(row("HTA's analyses on pandas", None, "×", note="not measured: not rebuilt yet"))
    rows.append(row("DuckDB, file to Parquet to SQL", None, "×", note="not measured: not built yet"))
    pathlib.Path(arguments.file).write_text(json.dumps({"rows": rows}, ensure_ascii=False))


if __name__ == "__main__":
    sys.exit(main())
