#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures `gpusonde analyze` beside what it can't be expected to beat, and what it should, as a result for bench/run.py.

    bench/analyze_bench.py [--quick] [--large] [--traces FOLDER] [--kernels N …] [--json-kernels N …] [--repetitions N] FILE

Traces are made by synthetic_trace, and kept for the next time where --traces says; the real ones of ../shared/traces
are read where they are. Programs that are
compared run in turns, files are in the page cache, and a figure is the median of the repetitions, a ratio the median of
the turns' own ratios, with the range over the turns beside it. Times are CPU seconds, user and system, of one thread;
only efficiencies compare time on the clock, and are meaningful on a quiet machine only. A part that fails is a row that
says why, and FILE is written after every row, so that a stop keeps what was measured.
"""

import argparse
import gzip
import hashlib
import json
import os
import pathlib
import resource
import shutil
import signal
import statistics
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
MIN_BYTES = 5e6


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


def row(name, value, unit, **more):
    return {"name": name, "value": value, "unit": unit} | more


def goal(relation, bound, value):
    met = value <= bound if relation == "≤" else value >= bound
    return {"goal": f"{relation} {bound:g}", "met": met}


def middle(values, unit=""):
    """The median of the turns, and their range as a spread."""
    values = sorted(values)
    spread = {"spread": f"{values[0]:.3g}-{values[-1]:.3g}{unit}"} if len(values) > 1 else {}
    return statistics.median(values), spread


def million(count):
    return f"{count / 1e6:.3g} M"


def baseline(*arguments):
    return json.loads(Used([BASELINES, *arguments]).output)


def ours(path, *arguments, threads=1):
    return Used([PROGRAM, "analyze", "--format", "json", str(path), "--threads", str(threads), *arguments])


def beside_scan(name, turns, bound):
    """`turns`: of (a run of ours, what the scan said)."""
    ratio, spread = middle([run.cpu_s / scan["seconds"] for run, scan in turns])
    cost = statistics.median(run.cpu_s / scan["rows"] * 1e9 for run, scan in turns)
    scanned = statistics.median(scan["seconds"] / scan["rows"] * 1e9 for _, scan in turns)
    return row(name, cost, "ns/event", peer=f"libsqlite3's scan: {scanned:.1f} ns", ratio=round(ratio, 2),
               **{key: f"ratio {value}" for key, value in spread.items()},
               **goal("≤", bound, ratio) | {"goal": f"ratio ≤ {bound}"})


def wall_of_all(commands):
    """Seconds on the clock until all of the commands have ended, which run at the same time."""
    begin = time.perf_counter()
    running = [subprocess.Popen(command, stdout=subprocess.DEVNULL) for command in commands]
    statuses = [process.wait() for process in running]
    if any(statuses):
        raise ValueError(f"{commands} ended with {statuses}")
    return time.perf_counter() - begin


def under_mpirun(ranks, path):
    return ["mpirun", "--allow-run-as-root", "--oversubscribe", "-n", str(ranks),
            PROGRAM, "analyze", "--threads", "1", "--format", "json", str(path)]


class Traces:
    """Makes synthetic traces in a folder, each once: the name of a file has all that decides what is in it."""

    def __init__(self, folder):
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        sources = sorted((ROOT / "tools/synthetic_trace").glob("*.[ch]*"))
        self.version = hashlib.sha256(b"".join(source.read_bytes() for source in sources)).hexdigest()[:8]

    def sqlite(self, kernels):
        return self._make(f"nsys-{kernels}-{self.version}.sqlite", "--kernels", str(kernels), "--ranks", "2")

    def halves(self, kernels):
        """The traces of two jobs of one rank each, which together have as many kernels."""
        half = str(kernels // 2)
        return [self._make(f"nsys-{half}-alone{seed}-{self.version}.sqlite", "--kernels", half, "--seed", str(seed))
                for seed in (1, 2)]

    def json(self, kernels):
        return self._make(f"kineto-{kernels}-{self.version}.json", "--format", "kineto", "--kernels", str(kernels))

    def _make(self, name, *arguments):
        path = self.folder / name
        if not path.exists():
            unfinished = path.with_suffix(".unfinished")
            subprocess.run([SYNTHETIC, "-o", str(unfinished), *arguments], check=True)
            unfinished.rename(path)
        else:  # into the page cache, as one that was just made is
            with open(path, "rb", buffering=0) as file:
                while file.read(1 << 20):
                    pass
        return path


def sqlite_rows(traces, kernels, repetitions):
    """Of one size: the full report and the kernels' summary beside libsqlite3's scans, two threads, several ranks."""
    path = str(traces.sqlite(kernels))
    full, summaries, twos = [], [], []
    for _ in range(repetitions):
        full.append((ours(path), baseline("scan", path)))
        summaries.append((ours(path, "--kernel-summary"), baseline("scan-kernels", path)))
        twos.append(ours(path, threads=2))
    name = f"Nsight SQLite, {million(full[0][1]['rows'])} events"
    yield beside_scan(f"{name}: full report", full, 2)
    yield beside_scan(f"{name}: kernel summary", summaries, 1)
    efficiency, spread = middle([one.wall_s / two.wall_s / 2 for (one, _), two in zip(full, twos)])
    yield row(f"{name}: efficiency of 2 threads", efficiency, "", **spread, **goal("≥", 0.85, efficiency))
    peak = max(run.peak_mib for run in [one for one, _ in full] + twos)
    yield row(f"{name}: peak memory, resident file pages included", peak, "MiB", **goal("≤", MEMORY_GOAL_MIB, peak))
    yield from rank_rows(path, name, repetitions)


def rank_rows(path, name, repetitions):
    """Wall time over MPI ranks; of more ranks than cores only the trend says something."""
    if not shutil.which("mpirun"):
        yield row(f"{name}: MPI ranks", None, "s", note="mpirun isn't installed")
        return
    counts = (1, 2, 4, 8)
    turns = []
    for _ in range(repetitions):
        alone = ours(path)
        runs = {}
        for count in counts:
            runs[count] = Used(under_mpirun(count, path))
        turns.append((alone, runs))
    seconds = {count: statistics.median(runs[count].wall_s for _, runs in turns) for count in counts}
    work = {count: statistics.median(runs[count].cpu_s for _, runs in turns) for count in counts}
    start_s = statistics.median(runs[1].wall_s - alone.wall_s for alone, runs in turns)
    efficiency, spread = middle([runs[1].wall_s / runs[2].wall_s / 2 for _, runs in turns])
    # Amdahl: t(n) = t(1) (s + (1 - s) / n).
    serial = max(0.0, 2 * seconds[2] / seconds[1] - 1)
    trend = ", ".join(f"{count}: {seconds[count]:.2f} s ({work[count]:.2f} s of CPU)" for count in counts)
    yield row(f"{name}: efficiency of 2 MPI ranks", efficiency, "", **spread, **goal("≥", 0.85, efficiency),
              note=f"on {len(os.sched_getaffinity(0))} cores, mpirun and MPI_Init included (one rank takes {start_s:.2f} s "
                   f"more than no MPI); on the clock, by ranks: {trend}; serial part from 1 to 2: {100 * serial:.0f} %")


def halves_row(traces, kernels, repetitions):
    """Two ranks that analyse one job, beside two processes that know nothing of each other, with half each."""
    name = f"Nsight SQLite, {million(kernels)} kernels: 2 MPI ranks beside two processes with half each"
    if not shutil.which("mpirun"):
        yield row(name, None, "", note="mpirun isn't installed")
        return
    whole, small = traces.sqlite(kernels), traces.sqlite(2_010)
    alone = [[PROGRAM, "analyze", "--threads", "1", "--format", "json", str(path)] for path in traces.halves(kernels)]
    turns = []
    for _ in range(repetitions):
        turns.append((wall_of_all(alone), wall_of_all([under_mpirun(2, whole)]), wall_of_all([under_mpirun(2, small)]),
                      wall_of_all([alone[0][:-1] + [str(small)]])))
    ratio, spread = middle([halves / ranks for halves, ranks, _, _ in turns])
    halves_s, ranks_s, start_s, process_s = (statistics.median(column) for column in zip(*turns))
    without = statistics.median(halves / (ranks - start + process) for halves, ranks, start, process in turns)
    yield row(name, ratio, "", **spread, **goal("≥", 0.95, ratio),
              note=f"on the clock: {ranks_s:.2f} s beside {halves_s:.2f} s, one thread each; mpirun and MPI_Init included, which take "
                   f"{start_s - process_s:.2f} s (a trace of 2,010 kernels, with and without); less that, the ratio is {without:.2f}")


def json_rows(name, path, repetitions, rate_goal=None):
    turns = [(ours(path), baseline("simdjson", str(path))) for _ in range(repetitions)]
    size = turns[0][1]["bytes"]
    ratio, spread = middle([said["seconds"] / run.cpu_s for run, said in turns])
    rate = statistics.median(size / run.cpu_s / 1e9 for run, _ in turns)
    peer = statistics.median(size / said["seconds"] / 1e9 for _, said in turns)
    yield row(f"Kineto JSON, {name}, {size / 1e6:.0f} MB", rate, "GB/s", peer=f"simdjson: {peer:.2f} GB/s",
              ratio=round(ratio, 2), **{key: f"ratio {value}" for key, value in spread.items()},
              **goal("≥", 0.5, ratio) | {"goal": "ratio ≥ 0.5"})
    if rate_goal is not None:
        rate, spread = middle([size / run.cpu_s / 1e9 for run, _ in turns])
        yield row(f"Kineto JSON, {name}: rate per core", rate, "GB/s", **spread, **goal("≥", rate_goal, rate))


def synthetic_json(traces, kernels, repetitions):
    path = traces.json(kernels)
    name = f"synthetic, {million(kernels)} kernels"
    yield from json_rows(name, path, repetitions, rate_goal=1)
    runs = [(ours(path), ours(path, threads=2)) for _ in range(repetitions)]
    efficiency, spread = middle([one.wall_s / two.wall_s / 2 for one, two in runs])
    yield row(f"Kineto JSON, {name}: efficiency of 2 threads", efficiency, "", **spread, **goal("≥", 0.85, efficiency))
    peak = max(max(one.peak_mib, two.peak_mib) for one, two in runs)
    yield row(f"Kineto JSON, {name}: peak memory", peak, "MiB", **goal("≤", MEMORY_GOAL_MIB, peak))


def huge_json(traces, kernels):
    """Larger than 4 GB, which simdjson itself doesn't take: whether it is read, how fast and in what memory."""
    path = traces.json(kernels)
    size = path.stat().st_size
    run = ours(path)
    found = json.loads(run.output)["traces"][0]["kernels"]
    if size <= 1 << 32 or abs(found - kernels) > 201:  # steps are of 201
        raise ValueError(f"{found} kernels found in {size} bytes, not {kernels}")
    name = f"Kineto JSON, synthetic, {size / 1e9:.2f} GB"
    yield row(name, size / run.cpu_s / 1e9, "GB/s", note="simdjson takes documents up to 4 GB")
    yield row(f"{name}: peak memory", run.peak_mib, "MiB", **goal("≤", MEMORY_GOAL_MIB, run.peak_mib))


def real_json(folder, repetitions, most):
    if not TRACES.exists():
        yield row("Kineto JSON, real traces", None, "GB/s", note="../shared/traces isn't there")
        return
    small = []
    for packed in sorted((TRACES / "kineto").glob("*.json.gz")):
        name = packed.name.removesuffix(".json.gz")
        plain = folder / "plain.json"
        with gzip.open(packed) as source, open(plain, "wb") as target:
            shutil.copyfileobj(source, target)
        if plain.stat().st_size < MIN_BYTES:
            small.append(name)
        elif most > 0:
            most -= 1
            yield from tried(f"Kineto JSON, {name}", json_rows(name, plain, repetitions))
            yield from tried(f"HTA, {name}", hta_row(name, plain))
    yield row(f"Kineto JSON, traces under {MIN_BYTES / 1e6:.0f} MB", None, "GB/s",
              note=f"of {', '.join(small)} the start of the program would be measured")


def hta_row(name, path):
    """HTA's analyses, rebuilt on Debian's pandas (HTA itself isn't in Debian)."""
    what = f"HTA's analyses on pandas, {name}: times faster"
    try:
        peer = Used(["/usr/bin/python3", str(ROOT / "bench/analyze_hta.py"), str(path)])
    except subprocess.CalledProcessError as error:
        yield row(what, None, "×", note=f"not measured: {error.stderr.strip().splitlines()[-1]}")
        return
    run = ours(path)
    said, ranks = json.loads(peer.output), json.loads(run.output)["ranks"]
    busy_ns = sum(rank["busy_ns"] for rank in ranks)
    same = "busy time is equal" if said["busy_ns"] == busy_ns else f"pandas finds {said['busy_ns']} ns busy, not {busy_ns}"
    ratio = peer.cpu_s / run.cpu_s
    yield row(what, ratio, "×", peer=f"pandas: {peer.cpu_s:.2f} s, {peer.peak_mib:.0f} MiB", **goal("≥", 40, ratio),
              note=f"{run.cpu_s:.3f} s, {run.peak_mib:.0f} MiB; {same}")


def pandas_rows(traces, kernels):
    name = f"pandas over SQLite, {kernels / 1e6:g} M kernels"
    path = str(traces.sqlite(kernels))
    try:
        peer = Used(["/usr/bin/python3", str(ROOT / "bench/analyze_pandas.py"), path])
    except subprocess.CalledProcessError as error:
        yield row(name, None, "×", note=f"not measured: {error.stderr.strip().splitlines()[-1]}")
        return
    said = json.loads(peer.output)
    run = ours(path)
    report = json.loads(run.output)
    for key, ranks in (("busy_ns", [rank["busy_ns"] for rank in report["ranks"]]),
                       ("queue_delay_ns", [rank["queue_delay"]["total_ns"] for rank in report["ranks"]])):
        if said[key] != sum(ranks):
            raise ValueError(f"{key}: pandas says {said[key]}, gpusonde {sum(ranks)}")
    ratio = peer.cpu_s / run.cpu_s
    yield row(name + ": times faster", ratio, "×", peer=f"pandas: {peer.cpu_s:.2f} s, {peer.peak_mib:.0f} MiB",
              note=f"{run.cpu_s:.2f} s, {run.peak_mib:.0f} MiB, one thread each; busy time and queue delay are equal",
              **goal("≥", 30, ratio))


def duckdb_rows(traces, folder, kernels):
    """What a cache in Parquet costs and gives: the kernels' summary from SQLite by way of DuckDB."""
    path = str(traces.sqlite(kernels))
    name = f"DuckDB, kernel summary of {million(kernels)} kernels"
    try:
        peer = json.loads(Used([BASELINES, "duckdb", path, str(folder / "cache.parquet")]).output)
    except subprocess.CalledProcessError as error:
        yield row(name, None, "×", note=f"not measured: {error.stderr.strip()}")
        return
    run = ours(path, "--kernel-summary")
    report = json.loads(run.output)
    if peer["kernel_ns"] != report["traces"][0]["kernel_ns"]:
        raise ValueError(f"DuckDB says {peer['kernel_ns']}, gpusonde {report['traces'][0]['kernel_ns']}")
    for state in ("cold", "warm"):
        yield row(f"{name}, {state}: times faster", peer[state + "_s"] / run.cpu_s, "×",
                  peer=f"DuckDB: {peer[state + '_s']:.3f} s",
                  note=f"{run.cpu_s:.3f} s from the file itself. Cold: file to Parquet to SQL; warm: SQL over Parquet")


def tried(what, rows):
    """The rows of a part; where it fails, one that says why instead of the rest."""
    try:
        yield from rows
    except subprocess.CalledProcessError as error:
        said = (error.stderr or "").strip().splitlines()
        yield row(what, None, "", note=f"failed: {said[-1] if said else error}")
    except (OSError, ValueError, KeyError) as error:
        yield row(what, None, "", note=f"failed: {type(error).__name__}: {error}")


def parts(arguments, traces, folder):
    """Every part with its name, the quickest first."""
    repetitions = arguments.repetitions
    for count in arguments.kernels:
        yield f"Nsight SQLite, {million(count)} kernels", sqlite_rows(traces, count, repetitions)
    yield "MPI ranks beside processes", halves_row(traces, arguments.rank_kernels, repetitions)
    for count in arguments.json_kernels:
        yield f"Kineto JSON, {million(count)} kernels", synthetic_json(traces, count, repetitions)
    yield "Kineto JSON, real traces", real_json(folder, repetitions, 1 if arguments.quick else 100)
    yield "pandas over SQLite", pandas_rows(traces, arguments.pandas_kernels)
    yield "DuckDB", duckdb_rows(traces, folder, arguments.pandas_kernels)
    if arguments.large:
        yield "Kineto JSON over 4 GB", huge_json(traces, 2_700_000)
        yield "Nsight SQLite, 100 M events", sqlite_rows(traces, 45_000_000, 1)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kernels", type=int, nargs="+", help="of the SQLite traces, of which each has 2.2 events; "
                        "default: 450,000 and 4,500,000 (10 M events)")
    parser.add_argument("--json-kernels", type=int, nargs="+",
                        help="of the JSON traces, each 6.5 events and 1.7 kB; default: 150,000 and 1,500,000 (10 M events)")
    parser.add_argument("--rank-kernels", type=int, default=10_000_000, help="of the trace of two MPI ranks")
    parser.add_argument("--pandas-kernels", type=int, default=450_000, help="1 M events")
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--quick", action="store_true", default=bool(os.environ.get("QUICK")),
                        help="small traces, once each: whether it runs (also QUICK=1)")
    parser.add_argument("--large", action="store_true", default=bool(os.environ.get("LARGE")),
                        help="also 100 M events of SQLite and JSON of more than 4 GB, once each: 15 GB of disk and a "
                        "quarter of an hour (also LARGE=1)")
    parser.add_argument("--traces", type=pathlib.Path, default=os.environ.get("TRACES"),
                        help="a folder that keeps the synthetic traces for the next time (also TRACES=FOLDER)")
    parser.add_argument("file", type=pathlib.Path)
    arguments = parser.parse_args()
    if arguments.quick:
        arguments.repetitions, arguments.pandas_kernels, arguments.rank_kernels = 1, 20_000, 45_000
    arguments.kernels = arguments.kernels or ([45_000] if arguments.quick else [450_000, 4_500_000])
    arguments.json_kernels = arguments.json_kernels or ([15_000] if arguments.quick else [150_000, 1_500_000])
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("stopped"))  # so that the folder goes
    rows = []
    with tempfile.TemporaryDirectory(dir="/var/tmp") as name:
        folder = pathlib.Path(name)
        traces = Traces(arguments.traces or folder / "traces")
        for what, made in parts(arguments, traces, folder):
            for one in tried(what, made):
                print(f"  … {one['name']}: {one['value'] if one['value'] is not None else one.get('note')}", flush=True)
                rows.append(one)
                arguments.file.write_text(json.dumps({"rows": rows}, ensure_ascii=False))


if __name__ == "__main__":
    sys.exit(main())
