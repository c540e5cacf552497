# SPDX-License-Identifier: Apache-2.0
"""CUDA graphs: every replayed node is counted and attributed to the code that captured it."""

import sys

from suite import Result, WORKLOADS

TITLE = "CUDA graphs"
NEEDS = "a CUDA device and libcudart"

NODES, LAUNCHES = 5, 100


def run(suite):
    suite.needs_gpu()
    result = Result()
    recorded = suite.record(sys.executable, WORKLOADS / "graphs.py", NODES, LAUNCHES)
    (kernels,) = suite.query(recorded, "SELECT count(*) AS n, count(graph_node) AS of_graphs FROM kernels WHERE name = 'node'")
    result.fact(f"{LAUNCHES} launches of {NODES} captured kernels are {NODES * LAUNCHES} kernels",
                kernels["n"] == NODES * LAUNCHES, kernels)
    result.fact("records of replayed graphs carry the id of their node", kernels["of_graphs"] == kernels["n"], kernels)
    mapped = suite.value(recorded, """
        SELECT count(*) FROM kernels
        JOIN graph_nodes AS ran ON ran.process = kernels.process AND ran.node = kernels.graph_node
        JOIN graph_nodes AS made ON made.process = ran.process AND made.node = ran.original_node
        WHERE name = 'node'""")
    result.fact("a replayed node is the clone of the one that was captured", mapped == kernels["n"], f"{mapped} of {kernels['n']}")
    spans = suite.value(recorded, """
        SELECT count(DISTINCT correlation) FROM kernels WHERE name = 'node' AND graph_node IS NOT NULL""")
    result.fact("the kernels of one launch share its correlation id", spans == LAUNCHES, f"{spans} ids")
    callers = [row["name"] for row in suite.query(recorded, """
        SELECT DISTINCT functions.name FROM graph_nodes JOIN stacks USING (stack), unnest(stacks.locations) AS part(location)
        JOIN locations ON locations.location = part.location
        JOIN functions ON functions.function = locations.functions[1] WHERE locations.kind = 'python'""")]
    if suite.doctor()["bpf"]["works"]:
        result.fact("the stacks of nodes name the function that captured them", "make_graph" in callers, callers)
    else:
        result.notes.append("no stacks here: eBPF programs can't be loaded")
    return result
