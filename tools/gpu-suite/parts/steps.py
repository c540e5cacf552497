# SPDX-License-Identifier: Apache-2.0
"""Step time of programs alone, with the library asleep in them, and recorded."""

import re
import sys

from suite import Failed, Result, WORKLOADS, find, have, last_json, median, spread

TITLE = "Step time with and without gpusonde"
NEEDS = "a CUDA device; PyTorch for three of its four programs"

ROUNDS = 3
MOST_PERCENT = 0.5
TORCH_STEPS = {"mlp": 300, "transformer": 150, "convolutions": 150}  # launch-bound to GPU-bound


def stencil_ms(output):
    """Mean step of examples/hpc, from its last line."""
    found = re.search(r"([\d.]+) ms a step", output)
    if not found:
        raise Failed(f"no step time in: {output[-200:]}")
    return float(found.group(1))


def programs(quick):
    """{name: (command, how to read its step time)}"""
    hpc = find("bin/gpusonde-hpc", "bin/hpc")
    found = {"examples/hpc": ([hpc, "--steps", 20 if quick else 400], stencil_ms)}
    if have("torch"):
        for model, steps in TORCH_STEPS.items():
            found[f"PyTorch, {model}"] = ([sys.executable, WORKLOADS / "torch_work.py", "--model", model, "--steps", steps],
                                          lambda output: median(last_json(output)["steps_ms"]))
    return found


def run(suite):
    suite.needs_gpu()
    result = Result()
    goal = None if suite.simulated() else MOST_PERCENT  # the cost of simgpu's CUPTI means nothing
    if not have("torch"):
        result.notes.append("no PyTorch here: only examples/hpc was measured")
    for name, (command, read) in programs(suite.quick).items():
        runs = {"alone": [], "asleep": [], "recorded": []}
        for _ in range(1 if suite.quick else ROUNDS):  # alternately, so that drift affects all
            if suite.seconds_left() < 45:
                result.left.append(name)
                break
            runs["alone"].append(read(suite.run(*command).stdout))
            runs["asleep"].append(read(suite.run(*command, env=suite.injected()).stdout))
            recorded = suite.record(*command)
            suite.forget(recorded)
            runs["recorded"].append(read(recorded.stdout))
        if not runs["recorded"]:
            continue
        alone = median(runs["alone"])
        result.row(f"{name}: step alone", alone, "ms", spread=spread(runs["alone"]))
        for way in ("asleep", "recorded"):
            more = [100 * (value / alone - 1) for value in runs[way]]
            result.row(f"{name}: step when {way}", median(more), "% longer", spread=spread(more, 2), at_most=goal)
    return result
