#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""bandwidth.py TRACE…: the bandwidth of the collectives of a job's PyTorch traces, one per rank, as JSON.

An independent implementation of docs/analyze.md's definitions for comparison with `gpusonde analyze`, which matches
collectives by sequence number only. Rates are in whole MB/s.
"""

import collections
import decimal
import gzip
import json
import re
import sys

ELEMENT_BYTES = {"Float": 4, "Long": 8, "BFloat16": 2, "Half": 2}
NAMES = {"allreduce": "all_reduce", "broadcast": "broadcast", "_allgather_base": "all_gather",
         "_reduce_scatter_base": "reduce_scatter", "all_to_allv": "all_to_all"}
TOGETHER = ("all_reduce", "all_gather", "reduce_scatter", "all_to_all")


def kernels(path):
    opened = gzip.open(path, "rt") if path.endswith(".gz") else open(path)
    trace = json.load(opened, parse_float=decimal.Decimal)
    for event in sorted(trace["traceEvents"], key=lambda event: event.get("ts", 0)):
        args = event.get("args", {})
        if event.get("cat") != "kernel" or "In msg nelems" not in args or "nccl" not in event["name"].lower():
            continue
        size = ELEMENT_BYTES[args["dtype"]] * max(args["In msg nelems"], args["Out msg nelems"])
        duration = decimal.Decimal(event["dur"]) * 1000
        group = f'{args.get("Process Group Description", args["Process Group Name"])} {args["Process Group Ranks"]}'
        if size:
            yield (group, args["Group size"], NAMES[args["Collective name"]], args.get("Seq"), size,
                   int(duration))


def bus_factor(operation, ranks):
    if operation == "all_reduce":
        return 2 * (ranks - 1) / ranks
    return 1 if operation == "broadcast" else (ranks - 1) / ranks


def main():
    together, measured = collections.defaultdict(list), []
    for path in sys.argv[1:]:
        for group, ranks, operation, number, size, duration in kernels(path):
            if number is not None and operation in TOGETHER:
                together[group, ranks, operation, number].append((size, duration))
            else:
                measured.append((group, ranks, operation, False, size, duration, 0))
    for (group, ranks, operation, _), parts in together.items():
        durations = [duration for _, duration in parts]
        if len(parts) == ranks:
            measured.append((group, ranks, operation, True, max(size for size, _ in parts), min(durations),
                             max(durations) - min(durations)))
        else:
            measured += [(group, ranks, operation, False, size, duration, 0) for size, duration in parts]
    lines = collections.defaultdict(list)
    for group, ranks, operation, removed, size, duration, skew in measured:
        lines[group, ranks, operation, removed, size.bit_length()].append((size, duration, skew))
    found = []
    for (group, ranks, operation, removed, _), parts in lines.items():
        sizes, durations, skews = zip(*parts)
        rate = sum(sizes) / sum(durations) * 1e9
        found.append({"group": group, "ranks": ranks, "operation": operation, "min_bytes": min(sizes),
                      "max_bytes": max(sizes), "count": len(parts), "bytes": sum(sizes), "total_ns": sum(durations),
                      "skew_removed": removed, "skew_ns": sum(skews), "algorithm": round(rate / 1e6),
                      "bus": round(rate * bus_factor(operation, ranks) / 1e6)})
    json.dump(sorted(found, key=lambda line: (line["group"], line["operation"], line["max_bytes"], line["skew_removed"])),
              sys.stdout)
    print()


main()
