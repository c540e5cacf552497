#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""reference.py TRACE: totals and the timeline of each rank of an Nsight export or a Kineto trace, as JSON.

An independent implementation of docs/analyze.md's definitions, which sorts everything in memory, for comparison
with `gpusonde analyze`:

    {"kernels": …, "kernel_ns": …, "memcpys": …, "memcpy_ns": …, "api_calls": …, "ranks": [{"events": …, …}, …]}
"""

import collections
import decimal
import gzip
import itertools
import json
import re
import sqlite3
import sys

BACK_TO_BACK_NS = 30_000
LONG_GAP_NS = 1_000_000

Call = collections.namedtuple("Call", "start end")
Work = collections.namedtuple("Work", "kind name stream start end call")  # call: None without a launch row


def read_sqlite(path):
    database = sqlite3.connect(f"file:{path}?immutable=1", uri=True)
    database.text_factory = lambda text: text.decode(errors="replace")
    tables = {name for (name,) in database.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")}
    columns = lambda table: {row[1] for row in database.execute(f"PRAGMA table_info({table})")}
    process = lambda global_id: (global_id or 0) >> 24 & 0xFFFFFF
    calls, api_calls = {}, 0
    if "CUPTI_ACTIVITY_KIND_RUNTIME" in tables:
        for start, end, thread, correlation in database.execute(
                "SELECT start, end, globalTid, correlationId FROM CUPTI_ACTIVITY_KIND_RUNTIME"):
            calls[process(thread), correlation] = Call(start, end)
            api_calls += 1
    ranks = collections.defaultdict(list)
    for table, kind in (("KERNEL", "kernel"), ("MEMCPY", "memcpy"), ("MEMSET", "memset")):
        table = "CUPTI_ACTIVITY_KIND_" + table
        if table not in tables:
            continue
        pid = "globalPid" if "globalPid" in columns(table) else "0"
        name = "(SELECT value FROM StringIds WHERE id = demangledName)" if kind == "kernel" else "''"
        for start, end, device, stream, correlation, owner, text in database.execute(
                f"SELECT start, end, deviceId, streamId, correlationId, {pid}, {name} FROM {table}"):
            call = calls.get((process(owner), correlation))
            ranks[process(owner), device].append(Work(kind, text or "", stream, start, end, call))
    return ranks, api_calls


def read_kineto(path):
    trace = json.load(gzip.open(path, "rt"), parse_float=decimal.Decimal)
    events = trace["traceEvents"] if isinstance(trace, dict) else trace
    nanoseconds = lambda micros: int(decimal.Decimal(micros) * 1000)
    calls, api_calls, ranks = {}, 0, collections.defaultdict(list)
    for event in events:
        if event.get("cat") in ("cuda_runtime", "cuda_driver", "Runtime"):
            start = nanoseconds(event["ts"])
            calls[event["args"].get("correlation")] = Call(start, start + nanoseconds(event["dur"]))
            api_calls += 1
    kinds = {"kernel": "kernel", "Kernel": "kernel", "gpu_memcpy": "memcpy", "Memcpy": "memcpy",
             "gpu_memset": "memset", "Memset": "memset"}
    for event in events:
        kind = kinds.get(event.get("cat"))
        if kind is None or event.get("ph") != "X":
            continue
        start = nanoseconds(event["ts"])
        ranks[event["args"]["device"]].append(
            Work(kind, event["name"], event["args"]["stream"], start, start + nanoseconds(event["dur"]),
                 calls.get(event["args"].get("correlation"))))
    return ranks, api_calls


def union(intervals):
    merged = []
    for start, end in sorted(intervals):
        if merged and start <= merged[-1][1]:
            merged[-1][1] = max(merged[-1][1], end)
        else:
            merged.append([start, end])
    return merged


def length(intervals):
    return sum(end - start for start, end in intervals)


def intersection(left, right):
    return length(left) + length(right) - length(union([*map(tuple, left), *map(tuple, right)]))


def queue_lengths(work):
    """The number of launches that have begun and not reached the device, after each change."""
    launches = [item for item in work if item.call]
    changes = sorted([(min(item.call.start, item.start), 0, 1) for item in launches] +
                     [(item.start, 1, -1) for item in launches])
    return list(itertools.accumulate(change for _, _, change in changes))


def host_gaps(work):
    """Times without work on the device that end with a launch made after they had begun."""
    gaps, end = [], None
    for item in sorted(work, key=lambda item: (item.start, item.end)):
        if end is not None and item.start > end and item.call and item.call.start > end:
            gaps.append(item.start - end)
        end = item.end if end is None else max(end, item.end)
    return gaps


def timeline(work):
    is_comm = lambda item: item.kind == "kernel" and re.search("nccl|rccl", item.name, re.IGNORECASE)
    comm = union((item.start, item.end) for item in work if is_comm(item))
    compute = union((item.start, item.end) for item in work if item.kind == "kernel" and not is_comm(item))
    busy = union((item.start, item.end) for item in work)
    span = max(item.end for item in work) - min(item.start for item in work)
    gaps, last_end = collections.Counter(), {}
    for item in sorted(work, key=lambda item: (item.start, item.end)):
        if (before := last_end.get(item.stream)) is not None and item.start > before:
            gap = item.start - before
            if item.call is not None and item.call.start > before:
                gaps["host"] += gap
            elif gap < BACK_TO_BACK_NS:
                gaps["back_to_back"] += gap
            else:
                gaps["unknown" if item.call is None else "device"] += gap
        last_end[item.stream] = max(item.end, last_end.get(item.stream, item.end))
    return {"events": len(work), "span_ns": span, "idle_ns": span - length(busy), "compute_ns": length(compute),
            "comm_ns": length(comm), "overlap_ns": intersection(comm, compute),
            "queue_delay_ns": sum(max(0, item.start - item.call.end) for item in work if item.call),
            "host_ns": gaps["host"], "back_to_back_ns": gaps["back_to_back"], "device_ns": gaps["device"],
            "queue_max": max(queue_lengths(work), default=0),
            "host_gaps_ns": [sum(gap for gap in host_gaps(work) if (gap < LONG_GAP_NS) == short)
                             for short in (True, False)]}


def main():
    path = sys.argv[1]
    ranks, api_calls = (read_sqlite if path.endswith(".sqlite") else read_kineto)(path)
    of = lambda kind: [item for work in ranks.values() for item in work if item.kind == kind]
    total = lambda items: sum(item.end - item.start for item in items)
    json.dump({"kernels": len(of("kernel")), "kernel_ns": total(of("kernel")), "memcpys": len(of("memcpy")),
               "memcpy_ns": total(of("memcpy")), "api_calls": api_calls,
               "ranks": [timeline(ranks[key]) for key in sorted(ranks)]}, sys.stdout)
    print()


main()
