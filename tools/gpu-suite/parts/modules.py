# SPDX-License-Identifier: Apache-2.0
"""Programs that unload modules, as compilers at run time do."""

import sys

from suite import Result, WORKLOADS

TITLE = "Modules that are unloaded"
NEEDS = "a CUDA device"

MODULES = 100


def run(suite):
    suite.needs_gpu()
    result = Result()
    recorded = suite.record(sys.executable, WORKLOADS / "modules.py", MODULES, timeout=60)
    result.fact("a recorded program that unloads modules ends", "done" in recorded.stdout, recorded.stdout.strip())
    (kernels,) = suite.query(recorded, "SELECT count(*) AS n, count(DISTINCT name) AS names FROM kernels")
    result.fact(f"{MODULES} modules are {MODULES} kernels", kernels["n"] == MODULES, kernels)
    result.fact("each with its own name", kernels["names"] == MODULES, f"{kernels['names']} names")
    return result
