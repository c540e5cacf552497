# SPDX-License-Identifier: Apache-2.0
"""Step time of programs alone, with the library asleep in them, and recorded."""

import re
import sys

from suite import Failed, Result, WORKLOADS, all_json, find, have, median, spread

TITLE = "Step time with and without gpusonde"
NEEDS = "a CUDA device; PyTorch for three of its four programs"

ROUNDS = 3
MAX_PERCENT = 0.5
TORCH_MODELS = ("mlp", "transformer", "convolutions")  # launch-bound to GPU-bound
TORCH_STEPS = 150


def stencil_ms(output):
    """{program: mean step in ms} of examples/hpc, from its last line."""
    found = re.search(r"([\d.]+) ms a step", output)
    if not found:
        raise Failed(f"no step time in: {output[-200:]}")
    return {"examples/hpc": float(found.group(1))}


def torch_ms(output):
    return {f"PyTorch, {said['model']}": median(said["steps_ms"]) for said in all_json(output)}


def commands(quick):
    """(command, how to read the step times of its programs)…"""
    found = [([find("bin/gpusonde-hpc", "bin/hpc"), "--steps", 20 if quick else 400], stencil_ms)]
    if have("torch"):
        found.append(([sys.executable, WORKLOADS / "torch_work.py", "--model", *TORCH_MODELS, "--steps", TORCH_STEPS],
                      torch_ms))
    return found


def run(suite):
    suite.needs_gpu()
    result = Result()
    goal = None if suite.simulated() else MAX_PERCENT  # the cost of simgpu's CUPTI means nothing
    if not have("torch"):
        result.notes.append("no PyTorch here: only examples/hpc was measured")
    for command, read in commands(suite.quick):
        runs = []  # [{way: {program: ms}}]
        for _ in range(1 if suite.quick else ROUNDS):  # alternately, so that drift affects all
            if suite.seconds_left() < 45:
                result.left = [str(command[0])]
                break
            alone = read(suite.run(*command).stdout)
            asleep = read(suite.run(*command, env=suite.injected()).stdout)
            recorded = suite.record(*command)
            suite.forget(recorded)
            runs.append({"alone": alone, "asleep": asleep, "recorded": read(recorded.stdout)})
        for name in runs[0]["alone"] if runs else ():
            alone = [ways["alone"][name] for ways in runs]
            result.row(f"{name}: step alone", median(alone), "ms", spread=spread(alone))
            for way in ("asleep", "recorded"):
                more = [100 * (ways[way][name] / median(alone) - 1) for ways in runs]
                result.row(f"{name}: step when {way}", median(more), "% longer", spread=spread(more, 2), at_most=goal)
    return result
