#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the benchmarks, prints their results and writes them to bench/results/NAME.json.

    bench/run.py --build build/release [NAME …]

The format of a result is in tools/performance_doc.py, which makes docs/performance.md from them. A benchmark is one
of:
  - a Google Benchmark program `bench_NAME` in the build's bin folder. Its rows are medians of several repetitions:
    items per second if it counts items, else time. A goal is a benchmark's label, e.g.
    state.SetLabel("goal: >= 1000000 rows/s"); the unit follows the number.
  - a program that writes its result to the file that is last on its command line.
Missing benchmarks are reported; if one fails, the exit status is 1.
"""

import argparse
import dataclasses
import datetime
import json
import os
import pathlib
import platform
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
RESULTS = ROOT / "bench/results"
REPETITIONS = 5
GOAL = re.compile(r"goal: (>=|<=) ([\d.]+) (.+)")


@dataclasses.dataclass(frozen=True)
class Benchmark:
    name: str
    title: str
    needs: str  # the benchmark exists if this path does; {build} is the build folder
    command: tuple = ()  # empty for a Google Benchmark program
    folder: str = "."


BENCHMARKS = (
    Benchmark("analyze", "Trace analysis, beside libsqlite3's scan, simdjson and pandas",
              "{build}/bin/bench_analyze_baselines", ("bench/analyze_bench.py",)),
    Benchmark("compare", "Comparing runs: how often a change is reported where there is none, and found where there is one",
              "{build}/bin/gpusonde", ("bench/compare_bench.py",)),
    Benchmark("fleet", "Private fleet telemetry: masks, BFV and sums in the clear, beside Paillier",
              "{build}/bin/bench_privacy", ("bench/fleet_bench.py",)),
    Benchmark("gpu", "GPU questions over an hour at 10,000 kernels a second", "{build}/bin/bench_gpu"),
    Benchmark("inject", "The inject library's own cost per CUDA launch", "{build}/bin/bench_inject"),
    Benchmark("launches", "GPU profiling, beside perf record -g", "{build}/lib/libgpusonde-inject.so",
              ("bench/gpu_bench.py",)),
    Benchmark("listening", "Profiling overhead: the library's estimate and its budget",
              "{build}/tests/programs/inject_client", ("bench/overhead_bench.py",)),
    Benchmark("metrics", "A week of a GPU's state", "{build}/bin/bench_metrics"),
    Benchmark("nccl", "The NCCL plugin's own cost per collective", "{build}/bin/bench_nccl"),
    Benchmark("nvml", "Reading the GPUs' state", "bench/nvml_bench.py", ("bench/nvml_bench.py",)),
    Benchmark("page", "An open page over a day's data", "{build}/bin/bench_fill_days", ("bench/page_bench.py",)),
    Benchmark("record", "Sampling, beside perf record", "bench/record_bench.py", ("bench/record_bench.py",)),
    Benchmark("serve", "Serve: the agents of 200 machines, simulated", "{build}/bin/bench_serve_feed",
              ("bench/serve_bench.py",)),
    Benchmark("server", "Server", "{build}/bin/bench_server"),
    Benchmark("start", "From the start to the first flame graph", "bench/start_bench.py", ("bench/start_bench.py",)),
    Benchmark("stacks", "Whole stacks, beside perf record --call-graph dwarf", "bench/stacks_bench.py",
              ("bench/stacks_bench.py",)),
    Benchmark("store", "Store", "{build}/bin/bench_store"),
    Benchmark("symbols", "Symbols, beside libdw", "{build}/bin/bench_symbols"),
    Benchmark("unwind", "Unwind tables", "{build}/bin/bench_unwind", ("{build}/bin/bench_unwind",)),
    Benchmark("web", "UI", "web/package.json", ("bench/web_bench.py",)),
)


def machine():
    cpu = next((line.split(":", 1)[1].strip() for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines()
                if line.startswith("model name")), platform.machine())
    memory_kib = int(re.search(r"MemTotal:\s+(\d+)", pathlib.Path("/proc/meminfo").read_text()).group(1))
    return {"cpu": cpu, "cores": os.cpu_count(), "memory": f"{round(memory_kib / 2**20)} GiB",
            "kernel": platform.release(), "load before": round(os.getloadavg()[0], 2)}


def row_of(name, runs):
    """One row from the aggregates of one Google Benchmark benchmark: {"median": …, "min": …, "max": …}."""
    median = runs["median"]
    key, unit = ("items_per_second", "items/s") if "items_per_second" in median else ("real_time",
                                                                                      median["time_unit"])
    row = {"name": name, "value": median[key], "unit": unit}
    if "cv" in runs:
        row["spread"] = f"± {100 * runs['cv'][key]:.1f} %"
    goal = GOAL.fullmatch(median.get("label", ""))
    if goal:
        relation, bound, row["unit"] = goal.group(1), float(goal.group(2)), goal.group(3)
        row["goal"] = ("≥ " if relation == ">=" else "≤ ") + f"{bound:,g}"
        row["met"] = row["value"] >= bound if relation == ">=" else row["value"] <= bound
    return row


def read_google_benchmark(text):
    by_name = {}
    for run in json.loads(text)["benchmarks"]:
        if run.get("run_type") == "aggregate":
            by_name.setdefault(run["run_name"], {})[run["aggregate_name"]] = run
    return [row_of(name, runs) for name, runs in by_name.items()]


def measure(benchmark, build):
    """The result of one benchmark, and the reason if it is incomplete: if it fails or is stopped, the part written by
    then. Raises CalledProcessError if there is none."""
    about = machine()
    environment = dict(os.environ, GPUSONDE=str(build / "bin/gpusonde"), GPUSONDE_BUILD=str(build))
    result = {"benchmark": benchmark.name, "title": benchmark.title,
              "date": datetime.datetime.now(datetime.timezone.utc).date().isoformat(), "machine": about}
    if benchmark.command:
        with tempfile.NamedTemporaryFile(suffix=".json") as file:
            program = ROOT / benchmark.command[0].format(build=build)
            failure = None
            try:
                subprocess.run([str(program), *benchmark.command[1:], file.name],
                               cwd=ROOT / benchmark.folder, env=environment, check=True)
            except (subprocess.CalledProcessError, KeyboardInterrupt) as error:
                failure = error if isinstance(error, subprocess.CalledProcessError) else "stopped"
                if not pathlib.Path(file.name).stat().st_size:
                    raise
            return result | json.loads(pathlib.Path(file.name).read_text()), failure
    program = str(benchmark.needs).format(build=build)
    done = subprocess.run([program, "--benchmark_format=json", f"--benchmark_repetitions={REPETITIONS}",
                           "--benchmark_report_aggregates_only=true"], cwd=ROOT, env=environment, check=True,
                          stdout=subprocess.PIPE, text=True)
    return result | {"rows": read_google_benchmark(done.stdout)}, None


def main():
    parser = argparse.ArgumentParser(description="Run the benchmarks.")
    parser.add_argument("--build", default="build/release")
    parser.add_argument("names", nargs="*", help="only these; default: all")
    arguments = parser.parse_args()
    build = (ROOT / arguments.build).resolve()
    unknown = set(arguments.names) - {benchmark.name for benchmark in BENCHMARKS}
    if unknown:
        parser.error(f"no benchmark {', '.join(sorted(unknown))}; "
                     f"there are {', '.join(benchmark.name for benchmark in BENCHMARKS)}")
    RESULTS.mkdir(parents=True, exist_ok=True)
    failed = []
    for benchmark in BENCHMARKS:
        if arguments.names and benchmark.name not in arguments.names:
            continue
        if not (ROOT / benchmark.needs.format(build=build)).exists():
            print(f"{benchmark.name}: not there ({benchmark.needs.format(build=arguments.build)})")
            continue
        print(f"{benchmark.name} …", flush=True)
        try:
            result, failure = measure(benchmark, build)
        except (subprocess.CalledProcessError, OSError, ValueError, KeyError) as error:
            print(f"  failed: {error}")
            failed.append(benchmark.name)
            continue
        if failure is not None:
            print(f"  not whole: {failure}")
            failed.append(benchmark.name)
        (RESULTS / f"{benchmark.name}.json").write_text(json.dumps(result, indent=1, ensure_ascii=False) + "\n")
        for row in result["rows"]:
            goal = f"  (goal {row['goal']}{'' if row.get('met', True) else ', missed'})" if row.get("goal") else ""
            value = f"{row['value']:,.4g}" if isinstance(row["value"], (int, float)) else "not measured"
            print(f"  {row['name']}: {value} {row.get('unit', '')}{goal}")
    if failed:
        print(f"failed: {', '.join(failed)}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
