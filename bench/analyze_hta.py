#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""analyze_hta.py FILE.json: HTA's analyses of a Kineto trace on plain pandas: parses it with Python's json, makes a data frame
of the events, joins launches by correlation, and computes kernel sums, busy time, communication overlap, idle time by
stream, launch delay and queue length. Written from HTA's documents; prints {"events", "busy_ns", …}."""

import json
import sys
from decimal import Decimal

import numpy
import pandas

GPU = {"kernel", "gpu_memcpy", "gpu_memset", "Kernel", "Memcpy", "Memset"}


def union_ns(events):
    if events.empty:
        return 0
    events = events.sort_values("start")
    start, end = events["start"].to_numpy(), events["end"].to_numpy()
    covered = numpy.concatenate(([start[0]], numpy.maximum.accumulate(end)[:-1]))
    return int(numpy.maximum(0, end - numpy.maximum(start, covered)).sum())


def nanos(text):
    return int(Decimal(str(text)).scaleb(3).to_integral_value())


def main():
    with open(sys.argv[1], encoding="utf-8", errors="replace") as file:
        trace = json.load(file, parse_float=Decimal)
    events = trace["traceEvents"] if isinstance(trace, dict) else trace
    frame = pandas.DataFrame([event for event in events if event.get("ph") == "X" and "ts" in event and "dur" in event])
    frame["start"] = frame["ts"].map(nanos)
    frame["end"] = frame["start"] + frame["dur"].map(nanos)
    arguments = frame["args"].map(lambda value: value if isinstance(value, dict) else {})
    frame["correlation"] = arguments.map(lambda value: value.get("correlation", -1))
    frame["stream"] = arguments.map(lambda value: value.get("stream", -1))
    frame["device"] = arguments.map(lambda value: value.get("device", -1))
    frame = frame[frame["end"] >= frame["start"]]
    gpu = frame[frame["cat"].isin(GPU)].copy()
    calls = frame[frame["cat"].isin({"cuda_runtime", "cuda_driver", "Runtime"})]
    busy = sum(union_ns(device) for _, device in gpu.groupby("device"))
    kernels = gpu[gpu["cat"].isin({"kernel", "Kernel"})].copy()
    kernels["duration"] = kernels["end"] - kernels["start"]
    summary = kernels.groupby("name")["duration"].agg(["count", "sum", "min", "max", "mean", "std", "median"])
    comm = kernels[kernels["name"].str.contains("nccl", case=False)]
    overlap = union_ns(comm) + union_ns(kernels.drop(comm.index)) - union_ns(kernels)
    gaps = gpu.sort_values("start").groupby("stream").apply(
        lambda stream: (stream["start"] - stream["end"].cummax().shift()).clip(lower=0).sum()) if len(gpu) else pandas.Series()
    joined = gpu.merge(calls[calls["correlation"] >= 0], on="correlation", suffixes=("", "_call"))
    delay = int((joined["start"] - joined["end_call"]).clip(lower=0).sum())
    changes = pandas.concat([pandas.DataFrame({"time": joined["start_call"], "by": 1}),
                             pandas.DataFrame({"time": joined["start"], "by": -1})]).sort_values("time", kind="stable")
    print(json.dumps({"events": len(frame), "busy_ns": busy, "kernels": len(summary), "overlap_ns": overlap,
                      "gap_ns": int(gaps.sum()) if len(gaps) else 0, "delay_ns": delay,
                      "queue": int(changes["by"].cumsum().max()) if len(changes) else 0}))


main()
