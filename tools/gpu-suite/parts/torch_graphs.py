# SPDX-License-Identifier: Apache-2.0
"""PyTorch's CUDA graphs: the same work launched and replayed."""

import sys

from suite import Result, WORKLOADS, last_json

TITLE = "CUDA graphs of PyTorch"
NEEDS = "PyTorch with CUDA"

STEPS = 50


def run(suite):
    suite.needs_python("torch")
    suite.needs_gpu()
    suite.needs_a_real_gpu("PyTorch's kernels do not run")
    result = Result()
    recorded = suite.record(sys.executable, WORKLOADS / "torch_work.py", "--model", "mlp", "--steps", STEPS, "--graph", 1,
                            timeout=200)
    said = last_json(recorded.stdout)
    (replayed,) = suite.query(recorded, f"""
        SELECT count(*) AS n, count(graph_node) AS of_graphs, count(DISTINCT correlation) AS launches,
               count(DISTINCT graph_node) AS nodes
        FROM kernels WHERE start_ns BETWEEN {said['start_ns']} AND {said['end_ns']}""")
    result.fact(f"{STEPS} replays are {STEPS} launches, each of every node",
                replayed["launches"] == STEPS and replayed["n"] == STEPS * replayed["nodes"], replayed)
    result.fact("all of their kernels carry a node", replayed["n"] == replayed["of_graphs"], replayed)
    if suite.doctor()["bpf"]["works"]:
        named = suite.value(recorded, f"""
            SELECT count(*) FROM kernels
            JOIN graph_nodes AS ran ON ran.process = kernels.process AND ran.node = kernels.graph_node
            JOIN graph_nodes AS made ON made.process = ran.process AND made.node = ran.original_node
            WHERE made.stack IS NOT NULL AND start_ns BETWEEN {said['start_ns']} AND {said['end_ns']}""")
        result.row("replayed kernels under the stack that captured them", 100 * named / max(replayed["n"], 1), "%",
                   at_least=99)
    return result
