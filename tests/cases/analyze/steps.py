#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The steps of a Kineto trace of one rank, computed from their definition in docs/analyze.md, compared with those in the JSON.

    steps.py TRACE.json.gz REPORT.json     prints "N steps agree" or the differences, and exits with 1
"""

import json
import sys

from traces import CALLS, GPU, complete_events


def union(intervals):
    joined = []
    for begin, end in sorted(intervals):
        if joined and begin <= joined[-1][1]:
            joined[-1][1] = max(joined[-1][1], end)
        else:
            joined.append([begin, end])
    return joined


def within(intervals, begin, end):
    return sum(max(0, min(b, end) - max(a, begin)) for a, b in union(intervals))


def steps_of(events):
    ranges, calls, gpu = [], {}, []
    for category, begin, end, event in events:
        if category == "user_annotation" and event["name"].startswith("ProfilerStep#"):
            ranges.append((begin, end))
        elif category in CALLS and "correlation" in event.get("args", {}):
            calls[event["args"]["correlation"]] = begin
        elif category in GPU:
            gpu.append((begin, end, category, event["name"], event["args"].get("correlation")))
    ranges.sort()
    gpu.sort()
    starts = {}  # of a step: its begin on the device
    newest = -1
    for begin, _, _, _, correlation in gpu:
        call = calls.get(correlation)
        if call is None or call >= ranges[-1][1]:
            continue
        step = sum(1 for range_begin, _ in ranges if range_begin <= call) - 1
        if step > newest:
            newest = step
            starts[step] = begin
    kernels = [(a, b) for a, b, kind, _, _ in gpu if kind == "kernel"]
    compute = [(a, b) for a, b, kind, name, _ in gpu if kind == "kernel" and not name.startswith("nccl")]
    everything = [(a, b) for a, b, _, _, _ in gpu]
    order = sorted(starts)
    steps = []
    for i, step in enumerate(order):
        begin = starts[step]
        end = starts[order[i + 1]] if i + 1 < len(order) else max(b for _, b in everything)
        computing = within(compute, begin, end)
        running = within(kernels, begin, end)
        busy = within(everything, begin, end)
        steps.append({"compute_ns": computing, "exposed_comm_ns": running - computing, "other_ns": busy - running,
                      "idle_ns": end - begin - busy})
    lengths = [(ranges[i + 1][0] if i + 1 < len(ranges) else end) - begin for i, (begin, end) in enumerate(ranges)]
    return steps, lengths


def main():
    steps, lengths = steps_of(complete_events(sys.argv[1]))
    (line,) = json.load(open(sys.argv[2], encoding="utf-8"))["steps"]
    differences = []
    if (line["durations"]["count"], line["durations"]["total_ns"], line["durations"]["max_ns"]) != (len(lengths), sum(lengths), max(lengths)):
        differences.append(f"lengths {lengths}: {line['durations']}")
    for part, typical in line["typical"].items():
        expected = sorted(step[part] for step in steps)[len(steps) // 2]
        if typical != expected:
            differences.append(f"typical {part}: {expected} expected, {typical} reported")
    for slow in line["slowest"]:
        for part in line["typical"]:
            if slow["gpu_ns"] > 0 and slow[part] != steps[slow["number"]][part]:
                differences.append(f"step {slow['number']}, {part}: {steps[slow['number']][part]} expected, {slow[part]} reported")
    print("\n".join(differences) or f"{len(lengths)} steps agree")
    return 1 if differences else 0


if __name__ == "__main__":
    sys.exit(main())
