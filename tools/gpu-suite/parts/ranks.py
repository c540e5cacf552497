# SPDX-License-Identifier: Apache-2.0
"""NCCL's profiler plugin, with two ranks on one GPU."""

import sys

from suite import Result, WORKLOADS, last_lines

TITLE = "Ranks: NCCL's profiler plugin"
NEEDS = "PyTorch with NCCL"

STEPS, SLOW_AFTER = 400, 200


def run(suite):
    suite.needs_python("torch")
    suite.needs_gpu()
    suite.needs_a_real_gpu("PyTorch does not run")
    result = Result()
    recorded = suite.record(sys.executable, WORKLOADS / "two_ranks.py", STEPS, SLOW_AFTER, timeout=120)
    communicators = suite.query(recorded, "SELECT rank, ranks, dropped, plugin_version FROM communicators ORDER BY rank")
    result.fact("NCCL takes the plugin", [row["rank"] for row in communicators] == [0, 1], communicators)
    (seen,) = suite.query(recorded, f"""
        SELECT count(*) AS n, count(end_ns) AS ended, count(gpu_ns) AS timed, count(DISTINCT sequence) AS sequences
        FROM collectives WHERE operation = 'AllReduce'""")
    result.fact("every collective is there, with its end and the GPU's time",
                seen == {"n": 2 * STEPS, "ended": 2 * STEPS, "timed": 2 * STEPS, "sequences": STEPS}, seen)
    matched = suite.value(recorded, """
        SELECT count(*) FROM (SELECT sequence FROM collectives WHERE operation = 'AllReduce'
                              GROUP BY communicator, sequence HAVING count(DISTINCT rank) = 2)""")
    result.fact("sequence numbers are alike on all ranks", matched == STEPS, f"{matched} of {STEPS}")
    said = suite.run(suite.gpusonde, "diagnose", recorded.path).stdout
    slow = [line.strip() for line in said.splitlines() if "Straggling rank" in line]
    result.fact("the rank that is late is named", any("rank 1" in line for line in slow), slow or last_lines(said))
    return result
