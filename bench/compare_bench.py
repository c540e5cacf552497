#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures how often `gpusonde compare` reports a change where there is none, and finds one that is there.

    bench/compare_bench.py RESULT.json          GPUSONDE: the program; PAIRS=200: comparisons of each kind

Compares made runs of one program: 20 kernels of 10 to 200 µs, 300 steps. Launches vary by 5 %, drift together by 0.5 %
over a run as clocks do, and runs differ from each other: all kernels together by 0.5 % and each by another 0.5 % (0.7 %
in all), or twice as much. These are assumptions, as no program has been run repeatedly on a real GPU yet.
"""

import concurrent.futures
import json
import math
import os
import pathlib
import random
import subprocess
import sys
import tempfile

GPUSONDE = os.environ.get("GPUSONDE", "build/release/bin/gpusonde")
PAIRS = int(os.environ.get("PAIRS", "200"))
KERNELS, STEPS = 20, 300
NOISE, DRIFT, BETWEEN_RUNS = 0.05, 0.005, 0.005
PLANTED = f"kernel_{KERNELS - 1}"


def write_run(path, seed, between_runs, slower=1.0):
    """A Kineto trace of one run; its last kernel takes `slower` times as long."""
    rng = random.Random(seed)
    of_run = rng.gauss(0, between_runs)
    typical_us = [10 * (1 + k) * math.exp(of_run + rng.gauss(0, between_runs)) for k in range(KERNELS)]
    typical_us[-1] *= slower
    events, drift, host_us, gpu_us, correlation = [], 0.0, 0.0, 0.0, 0
    for step in range(STEPS):
        drift = 0.9 * drift + math.sqrt(1 - 0.9**2) * rng.gauss(0, DRIFT)
        host_us = max(host_us, gpu_us - 500)
        for kernel, typical in enumerate(typical_us):
            correlation += 1
            duration = typical * math.exp(drift + rng.gauss(0, NOISE))
            start = max(gpu_us + 1, host_us + 5)
            events.append(f'{{"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":1,"tid":1,"ts":{host_us:.3f},'
                          f'"dur":4,"args":{{"correlation":{correlation}}}}},'
                          f'{{"ph":"X","cat":"kernel","name":"kernel_{kernel}","pid":0,"tid":7,"ts":{start:.3f},'
                          f'"dur":{duration:.3f},"args":{{"device":0,"stream":7,"correlation":{correlation},'
                          f'"grid":[{kernel + 1},1,1],"block":[128,1,1]}}}}')
            host_us += 6
            gpu_us = start + duration
    path.write_text('{"schemaVersion":1,"traceEvents":[' + ",".join(events) + "]}")


def compare(seed, runs, between_runs, slower):
    """What was reported of one pair of sides: names of changed kernels, and whether a total is significant."""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        sides = []
        for side in range(2):
            sides.append([folder / f"{'ab'[side]}{i}.json" for i in range(runs)])
            for i, path in enumerate(sides[side]):
                write_run(path, f"{seed} {side} {i}", between_runs, slower if side == 1 else 1.0)
        done = subprocess.run([GPUSONDE, "compare", "--threads", "1", "--format", "json", *sides[0], "vs", *sides[1]],
                              check=True, stdout=subprocess.PIPE)
    found = json.loads(done.stdout)
    changed = {kernel["name"] for kernel in found["kernels"] if kernel["change"] != "none"}
    totals = any(found[total] and found[total]["significant"] for total in ("pace", "duration"))
    return changed, totals


def share(runs, between_runs, slower, is_hit):
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        hits = pool.map(lambda seed: is_hit(*compare(seed, runs, between_runs, slower)), range(PAIRS))
        return 100 * sum(hits) / PAIRS


def anything(changed, totals):
    return bool(changed) or totals


def planted(changed, _):
    return PLANTED in changed


def others(changed, _):
    return bool(changed - {PLANTED})


# Name, runs of each side, variation between runs, factor, what counts, goal.
KINDS = (
    ("equal programs, one run each, which vary only within themselves: anything reported", 1, 0, 1, anything, ("<=", 5)),
    ("5 % planted, one run each, which vary only within themselves: found", 1, 0, 1.05, planted, (">=", 95)),
    ("equal programs, one run each, runs differ by 0.7 %: anything reported", 1, BETWEEN_RUNS, 1, anything, ("<=", 5)),
    ("equal programs, one run each, runs differ by 1.4 %: anything reported", 1, 2 * BETWEEN_RUNS, 1, anything, ("<=", 5)),
    ("5 % planted, one run each, runs differ by 0.7 %: found", 1, BETWEEN_RUNS, 1.05, planted, (">=", 95)),
    ("5 % planted, one run each, runs differ by 0.7 %: another kernel reported", 1, BETWEEN_RUNS, 1.05, others, ("<=", 5)),
    ("5 % planted, one run each, runs differ by 1.4 %: found", 1, 2 * BETWEEN_RUNS, 1.05, planted, None),
    ("equal programs, 5 runs each, which differ by 0.7 %: anything reported", 5, BETWEEN_RUNS, 1, anything, ("<=", 5)),
    ("5 % planted, 5 runs each, which differ by 0.7 %: found", 5, BETWEEN_RUNS, 1.05, planted, (">=", 95)),
    ("5 % planted, 5 runs each, which differ by 0.7 %: another kernel reported", 5, BETWEEN_RUNS, 1.05, others, ("<=", 5)),
    ("5 % planted, 3 runs each, which differ by 0.7 %: found", 3, BETWEEN_RUNS, 1.05, planted, None),
    ("5 % planted, 5 runs each, which differ by 1.4 %: found", 5, 2 * BETWEEN_RUNS, 1.05, planted, None),
    ("5 % planted, 10 runs each, which differ by 1.4 %: found", 10, 2 * BETWEEN_RUNS, 1.05, planted, None),
)


def main():
    rows = []
    for name, runs, between_runs, slower, is_hit, goal in KINDS:
        value = share(runs, between_runs, slower, is_hit)
        row = {"name": name, "value": value, "unit": f"% of {PAIRS} comparisons"}
        if goal:
            relation, bound = goal
            row["goal"] = f"{'≤' if relation == '<=' else '≥'} {bound}"
            row["met"] = value <= bound if relation == "<=" else value >= bound
        rows.append(row)
        print(f"  {value:5.1f} %  {name}", flush=True)
        pathlib.Path(sys.argv[1]).write_text(json.dumps({"rows": rows}))


if __name__ == "__main__":
    main()
