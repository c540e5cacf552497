#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""analyze_pandas.py FILE.sqlite: a notebook's analysis of an Nsight export: reads kernels, copies and calls into pandas,
sums kernels by name, computes the union of busy time, and joins launches. Prints {"rows", …}."""

import json
import sqlite3
import sys

import numpy
import pandas


def busy_ns(events):
    """Per device, the length of the union of intervals."""
    total = 0
    for _, device in events.groupby("deviceId"):
        device = device.sort_values("start")
        start, end = device["start"].to_numpy(), device["end"].to_numpy()
        covered = numpy.concatenate(([start[0]], numpy.maximum.accumulate(end)[:-1]))
        total += int(numpy.maximum(0, end - numpy.maximum(start, covered)).sum())
    return total


def main():
    database = sqlite3.connect(f"file:{sys.argv[1]}?immutable=1", uri=True)
    prefix = "CUPTI_ACTIVITY_KIND_"
    kernels = pandas.read_sql(f"SELECT start, end, deviceId, streamId, correlationId, globalPid, demangledName, gridX, "
                              f"blockX FROM {prefix}KERNEL", database)
    copies = pandas.read_sql(f"SELECT start, end, deviceId, streamId, correlationId, globalPid, bytes FROM "
                             f"{prefix}MEMCPY", database)
    calls = pandas.read_sql(f"SELECT start, end, globalTid, correlationId, nameId FROM {prefix}RUNTIME", database)
    kernels["duration"] = kernels["end"] - kernels["start"]
    summary = kernels.groupby("demangledName")["duration"].agg(["count", "sum", "min", "max", "mean", "std", "median"])
    events = pandas.concat([kernels, copies])
    busy = busy_ns(events)
    calls["globalPid"] = calls["globalTid"] & ~0xFFFFFF
    joined = events.merge(calls, on=["globalPid", "correlationId"], suffixes=("", "_call"))
    delay = int((joined["start"] - joined["end_call"]).clip(lower=0).sum())
    print(json.dumps({"rows": len(events) + len(calls), "busy_ns": busy, "queue_delay_ns": delay,
                      "kernel_ns": int(summary["sum"].sum())}))


main()
