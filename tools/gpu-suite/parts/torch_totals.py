# SPDX-License-Identifier: Apache-2.0
"""GPU time of the same steps by gpusonde and by PyTorch's profiler. Only one of them can use CUPTI at a time, so the
program runs under each alternately."""

import sys

from suite import Failed, Result, WORKLOADS, all_json, last_lines, median, spread

TITLE = "GPU totals against PyTorch's profiler"
NEEDS = "PyTorch with CUDA"

ROUNDS = 3
STEPS = 60
MODELS = ("mlp", "transformer", "convolutions")
MAX_PERCENT = 0.5
TABLES = {"kernels": "kernels", "copies": "memcpys", "sets": "memsets"}


def seen_by_gpusonde(suite, command):
    """{model: {"kernels": {"n", "ns"}, …}} between the times that the program prints, drops, {model: streams of kernels}."""
    recorded = suite.record(*command, timeout=200)
    sums, streams = {}, {}
    for said in all_json(recorded.stdout):
        span = f"start_ns BETWEEN {said['start_ns']} AND {said['end_ns']}"
        ours = sums[said["model"]] = {}
        for what, table in TABLES.items():
            (ours[what],) = suite.query(recorded, f"""
                SELECT count(*) AS n, coalesce(sum(end_ns - start_ns), 0) AS ns FROM {table} WHERE {span}""")
        if ours["kernels"]["n"] == 0:
            raise Failed(f"gpusonde saw no kernel of {said['model']}: {last_lines(recorded.stderr)}")
        streams[said["model"]] = [row["stream"] for row in suite.query(
            recorded, f"SELECT DISTINCT stream FROM kernels WHERE {span}")]
    lost = suite.query(recorded, "SELECT reason, sum(count) AS n FROM drops WHERE reason LIKE 'gpu%' GROUP BY reason")
    suite.forget(recorded)
    return sums, lost, streams


def run(suite):
    suite.needs_python("torch")
    suite.needs_gpu()
    suite.needs_a_real_gpu("PyTorch's kernels do not run")
    result = Result()
    # One process for all models: its start takes longer than its steps.
    command = [sys.executable, WORKLOADS / "torch_work.py", "--model", *MODELS, "--steps", STEPS]
    ours, theirs, lost, streams = [], [], [], {}
    for _ in range(ROUNDS):
        if suite.seconds_left() < 60 and ours:
            result.notes.append(f"time was left for {len(ours)} of {ROUNDS} rounds")
            break
        profiled = suite.run(*command, "--profiler", 1, timeout=200)
        theirs.append({said["model"]: said["totals"] for said in all_json(profiled.stdout)})
        sums, drops, streams = seen_by_gpusonde(suite, command)
        ours.append(sums)
        lost += drops
    for model in MODELS:
        compare(result, model, [sums[model] for sums in ours], [sums[model] for sums in theirs])
        result.fact(f"{model}: the legacy stream has id 7", streams[model] == [7], streams[model])
    result.fact("nothing is lost", not lost, lost or "no drops")
    return result


def compare(result, model, ours, theirs):
    for what in TABLES:
        counts = [[sums[what]["n"] for sums in those] for those in (ours, theirs)]
        result.fact(f"{model}: both see the same number of {what}", len({*counts[0], *counts[1]}) == 1,
                    f"{counts[0]} by gpusonde, {counts[1]} by PyTorch's profiler")
    here = [sums["kernels"]["ns"] / 1e6 for sums in ours]
    there = [sums["kernels"]["ns"] / 1e6 for sums in theirs]
    result.row(f"{model}: kernels, by PyTorch's profiler", median(there), "ms", spread=spread(there, 5))
    result.row(f"{model}: kernels, by gpusonde", median(here), "ms", spread=spread(here, 5))
    result.row(f"{model}: difference", 100 * abs(median(here) / median(there) - 1), "%", at_most=MAX_PERCENT)
