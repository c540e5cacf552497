# SPDX-License-Identifier: Apache-2.0
"""Frameworks that compile their kernels at run time, alone and recorded."""

import sys

from suite import Failed, Result, Skip, WORKLOADS, have, last_json

TITLE = "Frameworks that compile at run time"
NEEDS = "a CUDA device, and CuPy, JAX or Triton"

# The module that each needs, and one of its kernels with the number of its launches.
FRAMEWORKS = {"cupy": ("cupy", "doubled", 100), "jax": ("jax", None, 200), "triton": ("triton", "add", 200)}


def run(suite):
    suite.needs_gpu()
    suite.needs_a_real_gpu("their kernels do not run")
    result = Result()
    there = [name for name, (module, _, _) in FRAMEWORKS.items() if have(module)]
    if not there:
        raise Skip(f"{sys.executable} has no {', '.join(FRAMEWORKS)}")
    for name in there:
        _, kernel, launches = FRAMEWORKS[name]
        command = [sys.executable, WORKLOADS / "frameworks.py", name]
        try:
            alone = last_json(suite.run(*command, timeout=60).stdout)
            recorded = suite.record(*command, timeout=60)
        except Failed as reason:
            result.fact(f"{name}: a recorded program ends as alone", False, reason)
            continue
        result.fact(f"{name}: a recorded program ends as alone", last_json(recorded.stdout) == alone, alone)
        seen = suite.value(recorded, "SELECT count(*) FROM kernels" + (f" WHERE name = '{kernel}'" if kernel else ""))
        result.fact(f"{name}: its kernels are recorded", seen == launches if kernel else seen >= launches, seen)
        suite.forget(recorded)
    return result
