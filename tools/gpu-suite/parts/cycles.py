# SPDX-License-Identifier: Apache-2.0
"""Programs that gpusonde attaches to and leaves again and again: CUPTI is initialised and removed each time."""

import concurrent.futures
import json
import os
import subprocess
import sys

from suite import Failed, Result, WORKLOADS, all_json, find, have, last_lines

TITLE = "Attaching and leaving, again and again"
NEEDS = "a CUDA device, and the right to load eBPF programs"

SECONDS = 24
QUICK_SECONDS = 6
PROFILED_S = 1


def programs(suite):
    """{name: command}: those that print "warm" first come from loops.py."""
    seconds = QUICK_SECONDS if suite.quick else SECONDS
    found = {"launch_cost": [find("bin/gpusonde-launch-cost", "bin/launch_cost"), "--rate", 0, "--seconds", seconds]}
    if suite.simulated():
        return found
    loops = {"torch": "torch", "graph": "torch", "cupy": "cupy", "jax": "jax", "triton": "triton"}
    return found | {name: [sys.executable, WORKLOADS / "loops.py", name, seconds]
                    for name, module in loops.items() if have(module)}


def attach_until_it_ends(suite, name, command):
    """(how it ended, how often it was attached to, kernels seen)."""
    child = subprocess.Popen([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                             env={**os.environ, **suite.injected()})
    try:
        if name != "launch_cost":
            child.stdout.readline()
        cycles = kernels = 0
        path = suite.work / f"cycle-{name}.sonde"
        while child.poll() is None and suite.seconds_left() > 10:
            done = subprocess.run([str(suite.gpusonde), "record", "-o", str(path), "-p", str(child.pid), "--duration",
                                   str(PROFILED_S)], capture_output=True, text=True, check=False)
            if done.returncode != 0 or not path.exists():
                break  # it has ended meanwhile
            kernels += suite.kernels_in(path)
            cycles += 1
            path.unlink()
        output, _ = child.communicate(timeout=suite.timeout(60))
    finally:
        child.kill()
    if child.returncode != 0 or all_json(output)[-1].get("wrong"):
        return f"exit status {child.returncode}: {last_lines(output)}", cycles, kernels
    return "as it should", cycles, kernels


def run(suite):
    suite.needs_gpu()
    if not (bpf := suite.doctor()["bpf"])["works"]:
        raise Failed(f"attaching to a running program needs eBPF: {bpf['why']}")
    result = Result()
    found = programs(suite)
    with concurrent.futures.ThreadPoolExecutor(len(found)) as pool:
        ended = pool.map(lambda item: attach_until_it_ends(suite, *item), found.items())
    for name, (how, cycles, kernels) in zip(found, ended):
        holds = None if cycles < 2 else how == "as it should" and kernels > 0
        result.fact(f"{name}: ends as it should, with right results", holds,
                    json.dumps({"ended": how, "attached": cycles, "kernels": kernels}))
    return result
