#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures how well the inject library estimates its profiling overhead, and keeps to its budget, as a result for
bench/run.py.

    bench/overhead_bench.py [--seconds S] [--repetitions N] FILE

A program that the CPU bounds launches 20 kernels a step on the simulated GPU, whose CUPTI takes a known time for each
callback. `gpusonde up --overhead` profiles it; its estimate and what it says to have spent are read from /metrics when
the program has run for S seconds. The truth is the program's own: the mean time of its steps profiled without a
pause (as a rank of a recorded program, which no governor ends), and not at all, in turns. Not the median: much of the
cost falls on few steps, such as records that CUPTI delivers within a launch, sampled launches, and flushes. What was
really spent is how much longer the mean step took under the budget than without profiling.
"""

import argparse
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUILD = pathlib.Path(os.environ.get("GPUSONDE_BUILD", ROOT / "build/release"))
GPUSONDE = os.environ.get("GPUSONDE", str(BUILD / "bin/gpusonde"))
CALLBACKS_NS = (1000, 4000)
BUDGET_PERCENT = 1
WORK_US = 50
TRUTH_S = 6
MACHINE = f"simgpu-bench-{os.getpid()}"
GOAL_PERCENT = 20


def start_program(seconds, callback_ns, profiled, governed=True):
    environment = {**os.environ, "SIMGPU_MACHINE": MACHINE, "SIMGPU_CUPTI_CALLBACK_NS": str(callback_ns),
                   "LD_LIBRARY_PATH": str(BUILD / "lib/simgpu")}
    environment.pop("CUDA_INJECTION64_PATH", None)
    if profiled:
        environment["CUDA_INJECTION64_PATH"] = str(BUILD / "lib/libgpusonde-inject.so")
    if not governed:
        environment["GPUSONDE_INJECT_SOCKET"] = "99:1"  # a socket that it doesn't have
    return subprocess.Popen([BUILD / "tests/programs/inject_client", f"steps={WORK_US},{seconds}"], env=environment,
                            stdout=subprocess.PIPE, text=True)


def mean_step_ns(program):
    """When it has ended."""
    output, _ = program.communicate(timeout=600)
    _, mean_ns = map(int, output.split())
    return mean_ns


def ratios_of(url, pid):
    """What /metrics says of the program: {budget, spent, cost, cost_low, cost_high}, in per cent."""
    with urllib.request.urlopen(f"{url}metrics", timeout=10) as answer:
        text = answer.read().decode()
    found = re.findall(rf'gpusonde_process_listening_(\w+)_ratio{{[^}}]*pid="{pid}"[^}}]*}} (\S+)', text)
    return {name: 100 * float(value) for name, value in found}


def measure(url, callback_ns, seconds, repetitions):
    program = start_program(seconds, callback_ns, profiled=True)
    said = {}
    while program.poll() is None:
        said = ratios_of(url, program.pid) or said
        time.sleep(1)
    governed_ns = mean_step_ns(program)
    alone, profiled = [], []
    for _ in range(repetitions):
        alone.append(mean_step_ns(start_program(TRUTH_S, callback_ns, profiled=False)))
        profiled.append(mean_step_ns(start_program(TRUTH_S, callback_ns, profiled=True, governed=False)))
    costs = [100 * (with_ns / without_ns - 1) for without_ns, with_ns in zip(alone, profiled)]
    spent = 100 * (governed_ns / statistics.median(alone) - 1)
    return said, costs, spent


def rows_of(url, callback_ns, seconds, repetitions):
    said, costs, really_spent = measure(url, callback_ns, seconds, repetitions)
    where = f"CUPTI simulated, {callback_ns / 1000:g} µs a callback"
    truth = statistics.median(costs)
    if "cost" not in said:
        raise RuntimeError(f"no estimate after {seconds} s; {where}")
    off = 100 * abs(said["cost"] / truth - 1)
    yield {"name": f"profiling overhead, estimated; {where}", "value": round(said["cost"], 3), "unit": "%",
           "spread": f"{said['cost_low']:.2f}-{said['cost_high']:.2f}", "goal": f"within {GOAL_PERCENT} % of the program's own",
           "met": off <= GOAL_PERCENT, "peer": f"by the program's own steps: {truth:.3g} ({min(costs):.3g}-{max(costs):.3g})",
           "ratio": round(said["cost"] / truth, 3)}
    yield {"name": f"spent of a budget of {BUDGET_PERCENT} %; {where}", "value": round(said["spent"], 3), "unit": "%",
           "goal": f"≤ {BUDGET_PERCENT} %", "met": said["spent"] <= 1.02 * BUDGET_PERCENT,
           "peer": f"by the program's own mean step: {really_spent:.3g}"}


def main():
    parser = argparse.ArgumentParser(description="Measure how well the profiling overhead is known and bounded.")
    parser.add_argument("--seconds", type=int, default=120)
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("file", type=pathlib.Path)
    arguments = parser.parse_args()
    try:
        with tempfile.TemporaryDirectory() as folder:
            up = subprocess.Popen([GPUSONDE, "up", "--state", f"{folder}/state", "--listen", "127.0.0.1:0", "--no-open",
                                   "--overhead", f"{BUDGET_PERCENT}%"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                  text=True)
            try:
                url = next(found.group() for line in up.stdout if (found := re.search(r"http://\S+/", line)))
                rows = [row for callback_ns in CALLBACKS_NS
                        for row in rows_of(url, callback_ns, arguments.seconds, arguments.repetitions)]
            finally:
                up.kill()
                up.communicate()
    except (OSError, RuntimeError, StopIteration, ValueError) as error:
        sys.exit(f"overhead_bench: {error}")
    arguments.file.write_text(json.dumps({"rows": rows}, ensure_ascii=False))


if __name__ == "__main__":
    main()
