#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures `gpusonde analyze` beside what it can't be expected to beat, and what it should, as a result for bench/run.py.

    bench/analyze_bench.py [--quick] [--kernels N …] [--json-kernels N …] [--repetitions N] FILE

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


def million(count):
    return f"{count / 1e6:.3g} M"


def sqlite_rows(folder, kernels, repetitions):
    """Of one size: the full report and the kernels' summary beside libsqlite3's scans, two threads, several ranks."""
    path = str(folder / "synthetic.sqlite")
    subprocess.run([SYNTHETIC, "-o", path, "--kernels", str(kernels), "--ranks", "2"], check=True)
    ours = [PROGRAM, "analyze", "--format", "json", path, "--threads"]
    scans, kernel_scans, ones, twos, summaries = [], [], [], [], []
    for _ in range(repetitions):
        scans.append(json.loads(Used([BASELINES, "scan", path]).output))
        ones.append(Used([*ours, "1"]))
        kernel_scans.append(json.loads(Used([BASELINES, "scan-kernels", path]).output))
        summaries.append(Used([*ours, "1", "--kernel-summary"]))
        twos.append(Used([*ours, "2"]))
    scan = min(scans, key=lambda run: run["seconds"])
    kernel_scan = min(kernel_scans, key=lambda run: run["seconds"])
    one, summary = fastest(ones, lambda run: run.cpu_s), fastest(summaries, lambda run: run.cpu_s)
    name = f"Nsight SQLite, {million(scan['rows'])} events"
    for what, run, peer, bound in (("full report", one, scan, 2), ("kernel summary", summary, kernel_scan, 1)):
        ratio = run.cpu_s / peer["seconds"]
        yield row(f"{name}: {what}", run.cpu_s / peer["rows"] * 1e9, "ns/event", ratio=round(ratio, 2),
                  peer=f"libsqlite3's scan: {peer['seconds'] / peer['rows'] * 1e9:.1f} ns",
                  **goal("≤", bound, ratio) | {"goal": f"ratio ≤ {bound}"})
    alone_s = fastest(ones, lambda run: run.wall_s).wall_s
    efficiency = alone_s / fastest(twos, lambda run: run.wall_s).wall_s / 2
    yield row(f"{name}: efficiency of 2 threads", efficiency, "", **goal("≥", 0.85, efficiency))
    peak = max(run.peak_mib for run in ones + twos)
    yield row(f"{name}: peak memory, resident file pages included", peak, "MiB", **goal("≤", MEMORY_GOAL_MIB, peak))
    yield from rank_rows(path, name, alone_s, repetitions)
    os.unlink(path)


def rank_rows(path, name, alone_s, repetitions):
    """Wall time over MPI ranks; of more ranks than cores only the trend says something."""
    if not shutil.which("mpirun"):
        yield row(f"{name}: MPI ranks", None, "s", note="mpirun isn't installed")
        return
    seconds = {}
    for ranks in (1, 2, 4, 8):
        mpirun = ["mpirun", "--allow-run-as-root", "--oversubscribe", "-n", str(ranks)]
        seconds[ranks] = min(Used([*mpirun, PROGRAM, "analyze", "--threads", "1", "--format", "json", path]).wall_s
                             for _ in range(repetitions))
    cores = len(os.sched_getaffinity(0))
    trend = ", ".join(f"{ranks}: {second:.2f} s" for ranks, second in seconds.items())
    efficiency = seconds[1] / seconds[2] / 2
    # Amdahl: t(n) = t(1) (s + (1 - s) / n).
    serial = max(0.0, 2 * seconds[2] / seconds[1] - 1)
    yield row(f"{name}: efficiency of 2 MPI ranks", efficiency, "", **goal("≥", 0.85, efficiency),
              note=f"on {cores} cores, MPI_Init included (one rank takes {seconds[1] - alone_s:.2f} s more than no MPI); "
                   f"wall seconds by ranks: {trend}; serial part {100 * serial:.0f} %")


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


def synthetic_json(folder, kernels, repetitions):
    path = folder / "synthetic.json"
    subprocess.run([SYNTHETIC, "--format", "kineto", "-o", str(path), "--kernels", str(kernels)], check=True)
    rate, _, made = json_row(f"synthetic, {million(kernels)} kernels", str(path), repetitions)
    yield made
    yield row(f"Kineto JSON, synthetic, {million(kernels)} kernels: rate", rate, "GB/s", **goal("≥", 1, rate))
    path.unlink()


def real_json(folder, repetitions, most):
    if not TRACES.exists():
        yield row("Kineto JSON, real traces", None, "GB/s", note="../shared/traces isn't there")
        return
    for packed in sorted((TRACES / "kineto").glob("*.json.gz")):
        plain = folder / "plain.json"
        with gzip.open(packed) as source, open(plain, "wb") as target:
            shutil.copyfileobj(source, target)
        if plain.stat().st_size < 10e6:  # below, starting the program is what is measured
            continue
        if most == 0:
            return
        most -= 1
        name = packed.name.removesuffix(".json.gz")
        try:
            yield json_row(name, str(plain), repetitions)[2]
            yield from hta_row(name, plain)
        except subprocess.CalledProcessError as error:
            yield row(f"Kineto JSON, {packed.name}", None, "GB/s", note=f"failed: {error.stderr}")


def hta_row(name, path):
    """HTA's analyses, rebuilt on Debian's pandas (HTA itself isn't in Debian)."""
    what = f"HTA's analyses on pandas, {name}: times faster"
    try:
        peer = Used(["/usr/bin/python3", str(ROOT / "bench/analyze_hta.py"), str(path)])
    except subprocess.CalledProcessError as error:
        yield row(what, None, "×", note=f"not measured: {error.stderr.strip().splitlines()[-1]}")
        return
    ours = Used([PROGRAM, "analyze", "--threads", "1", "--format", "json", str(path)])
    said, ranks = json.loads(peer.output), json.loads(ours.output)["ranks"]
    busy_ns = sum(rank["busy_ns"] for rank in ranks)
    same = "busy time is equal" if said["busy_ns"] == busy_ns else f"pandas finds {said['busy_ns']} ns busy, not {busy_ns}"
    ratio = peer.cpu_s / ours.cpu_s
    yield row(what, ratio, "×", peer=f"pandas: {peer.cpu_s:.2f} s, {peer.peak_mib:.0f} MiB", **goal("≥", 40, ratio),
              note=f"{ours.cpu_s:.3f} s, {ours.peak_mib:.0f} MiB; {same}")


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


def duckdb_rows(folder, kernels):
    """What a cache in Parquet costs and gives: the kernels' summary from SQLite by way of DuckDB."""
    path = str(folder / "duckdb.sqlite")
    subprocess.run([SYNTHETIC, "-o", path, "--kernels", str(kernels), "--ranks", "2"], check=True)
    name = f"DuckDB, kernel summary of {million(kernels)} kernels"
    try:
        peer = json.loads(Used([BASELINES, "duckdb", path, str(folder / "cache.parquet")]).output)
    except subprocess.CalledProcessError as error:
        yield row(name, None, "×", note=f"not measured: {error.stderr.strip()}")
        return
    ours = Used([PROGRAM, "analyze", "--threads", "1", "--format", "json", "--kernel-summary", path])
    report = json.loads(ours.output)
    if peer["kernel_ns"] != report["traces"][0]["kernel_ns"]:
        raise ValueError(f"DuckDB says {peer['kernel_ns']}, gpusonde {report['traces'][0]['kernel_ns']}")
    for state in ("cold", "warm"):
        yield row(f"{name}, {state}: times faster", peer[state + "_s"] / ours.cpu_s, "×",
                  peer=f"DuckDB: {peer[state + '_s']:.3f} s",
                  note=f"{ours.cpu_s:.3f} s from the file itself. Cold: file to Parquet to SQL; warm: SQL over Parquet")
    os.unlink(path)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kernels", type=int, nargs="+", help="of the SQLite traces, of which each has 2.2 events; "
                        "default: 450,000 and 4,500,000 (10 M events; 45,000,000 are 100 M, 6 GB of disk)")
    parser.add_argument("--json-kernels", type=int, nargs="+",
                        help="of the JSON traces, each 6.5 events and 1.7 kB; default: 150,000 and 1,500,000 (10 M events)")
    parser.add_argument("--pandas-kernels", type=int, default=450_000, help="1 M events")
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--quick", action="store_true", default=bool(os.environ.get("QUICK")),
                        help="small traces, once each: whether it runs (also QUICK=1)")
    parser.add_argument("file")
    arguments = parser.parse_args()
    if arguments.quick:
        arguments.repetitions, arguments.pandas_kernels = 1, 20_000
    kernels = arguments.kernels or ([45_000] if arguments.quick else [450_000, 4_500_000])
    json_kernels = arguments.json_kernels or ([15_000] if arguments.quick else [150_000, 1_500_000])
    rows = []

    def add(made):
        for one in made:
            print(f"  … {one['name']}: {one['value']}", flush=True)
            rows.append(one)

    with tempfile.TemporaryDirectory(dir="/var/tmp") as name:
        folder = pathlib.Path(name)
        for count in kernels:
            add(sqlite_rows(folder, count, arguments.repetitions))
        for count in json_kernels:
            add(synthetic_json(folder, count, arguments.repetitions))
        add(real_json(folder, arguments.repetitions, 1 if arguments.quick else 100))
        add(pandas_rows(folder, arguments.pandas_kernels))
        add(duckdb_rows(folder, arguments.pandas_kernels))
    pathlib.Path(arguments.file).write_text(json.dumps({"rows": rows}, ensure_ascii=False))


if __name__ == "__main__":
    sys.exit(main())
