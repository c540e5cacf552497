# SPDX-License-Identifier: Apache-2.0
"""Beside another user of CUPTI: the first one keeps it, and neither disturbs the program."""

import json
import sys

from suite import Result, WORKLOADS, have, last_json

TITLE = "Beside another user of CUPTI"
NEEDS = "a CUDA device and CUPTI; its second half also needs PyTorch"


def subscriber(suite, result):
    recorded = suite.record(sys.executable, WORKLOADS / "subscriber.py", suite.cupti_path())
    said = last_json(recorded.stdout)
    result.fact("a second subscriber gets error 39", said["second"] == 39, said["second"])
    result.fact("the next subscriber gets the first one's name as CUPTI for NAME", None if said["holder"] is None else
                said["holder"].startswith("CUPTI for gpu-suite"), said["holder"])
    sessions = suite.value(recorded, "SELECT count(*) FROM gpu_sessions")
    result.fact("gpusonde stays out while another tool has CUPTI", sessions == 0, f"{sessions} sessions")
    result.fact("and says so", "CUPTI" in recorded.stderr or "another tool" in recorded.stderr,
                [line for line in recorded.stderr.splitlines() if "tool" in line or "CUPTI" in line])


def kineto(suite, result):
    """PyTorch's profiler in a program that gpusonde records."""
    command = [sys.executable, WORKLOADS / "torch_work.py", "--model", "mlp", "--steps", 30, "--profiler", 1]
    alone = last_json(suite.run(*command, timeout=200).stdout)
    recorded = suite.record(*command, timeout=200)
    beside = last_json(recorded.stdout)
    result.fact("PyTorch's profiler sees the same kernels in a program that gpusonde records",
                {name: kernel["n"] for name, kernel in alone["kernels"].items()} ==
                {name: kernel["n"] for name, kernel in beside["kernels"].items()},
                f"{sum(k['n'] for k in alone['kernels'].values())} alone, {sum(k['n'] for k in beside['kernels'].values())} beside")
    ends = suite.query(recorded, "SELECT end_reason, count(*) AS n FROM gpu_sessions GROUP BY ALL ORDER BY ALL")
    result.notes.append("how gpusonde's sessions ended beside PyTorch's profiler: " + json.dumps(ends))


def run(suite):
    suite.needs_gpu()
    result = Result()
    subscriber(suite, result)
    if have("torch"):
        kineto(suite, result)
    else:
        result.notes.append("PyTorch's profiler was not tried: no torch here")
    return result
