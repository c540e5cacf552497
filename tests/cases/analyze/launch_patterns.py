#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How threads launch kernels and graphs, computed from its definition in docs/analyze.md, compared with a report's JSON.

    launch_patterns.py TRACE REPORT.json     prints "N ranks agree: …" or the differences, and exits with 1
    launch_patterns.py --made TRACE.json     writes a Kineto trace: a thread launches in bursts, one steadily, 70 more once

TRACE is a Kineto trace (.json.gz or .json) or an Nsight Systems export (.sqlite).
"""

import bisect
import collections
import json
import random
import sys

from traces import CALLS, GPU, Nsys, complete_events

MAX_THREADS, MAX_LINES = 64, 20

Work = collections.namedtuple("Work", "start is_launch key")  # key: (process, correlation)

# Both readers return GPU work {(process, device): [Work]} and calls {(process, correlation): [(begin, thread)]}.


def from_kineto(path):
    gpu, calls = collections.defaultdict(list), collections.defaultdict(list)
    for category, begin, _, event in complete_events(path):
        arguments = event.get("args", {})
        if category in CALLS and "correlation" in arguments:
            calls[0, arguments["correlation"]].append((begin, int(event["tid"])))
        elif category in GPU:
            gpu[0, arguments["device"]].append(Work(begin, "mem" not in category, (0, arguments.get("correlation"))))
    return gpu, calls


def from_nsys(path):
    trace = Nsys(path)
    gpu, calls = collections.defaultdict(list), collections.defaultdict(list)
    for begin, thread, correlation in trace.activities("RUNTIME", "start, globalTid, correlationId"):
        calls[thread >> 24, correlation].append((begin, thread & 0xFFFFFF))
    for kind in ("KERNEL", "MEMCPY", "MEMSET", "GRAPH_TRACE"):
        for begin, process, device, correlation in trace.activities(kind, "start, globalPid, deviceId, correlationId"):
            gpu[process >> 24, device].append(Work(begin, not kind.startswith("MEM"), (process >> 24, correlation)))
    return gpu, calls


def call_of(work, calls):
    of_id = sorted(calls.get(work.key, []))
    before = [call for call in of_id if call[0] <= work.start]
    found = before[-1] if before else of_id[0] if of_id else None
    return None if found is None or abs(work.start - found[0]) > 60_000_000_000 else found


def lower(values, numerator, denominator):
    return sorted(values)[(len(values) - 1) * numerator // denominator] if values else None


def sum_thread(thread, launches, behind):
    """`launches`: [(time, how many launches of the rank wait)]"""
    times = [time for time, _ in launches]
    gaps = [after - before for before, after in zip(times, times[1:])]
    pause = 1 << 16
    while gaps and pause < 10 * lower(gaps, 1, 2):
        pause *= 2
    runs, pauses = [1], [gap for gap in gaps if gap >= pause]
    for gap in gaps:
        if gap >= pause:
            runs.append(0)
        runs[-1] += 1
    bursts = [length for length in runs if length > 1]
    span, paused = times[-1] - times[0], sum(pauses)
    return {"thread": thread, "launches": len(times), "span_ns": span,
            "pattern": "few" if len(times) < 100 else
            "bursts" if len(bursts) >= 4 and 2 * sum(bursts) >= len(times) and 2 * paused >= span else "steady",
            "launches_per_s": 1e9 * (len(times) - 1) / span if span else None,
            "gap_p50_ns": lower(gaps, 1, 2), "gap_p99_ns": lower(gaps, 99, 100), "gap_max_ns": max(gaps, default=None),
            "pause_from_ns": pause, "pauses": len(pauses), "pauses_ns": paused, "pause_p50_ns": lower(pauses, 1, 2),
            "drained_pauses": sum(gap >= pause and waiting == 0 for gap, (_, waiting) in zip(gaps, launches[1:])),
            "bursts": len(bursts), "burst_launches": sum(bursts),
            "burst_gap_p50_ns": lower([gap for gap in gaps if gap < pause], 1, 2),
            "behind_p50_ns": lower(behind, 1, 2), "behind_p99_ns": lower(behind, 99, 100),
            "waiting_mean": sum(waiting for _, waiting in launches) / len(times)}


def sum_up(work, calls):
    launched = [(item, call) for item in work if (call := call_of(item, calls)) is not None]
    joins = sorted((min(call[0], item.start), call[1], item.is_launch) for item, call in launched)
    starts = sorted(item.start for item, _ in launched)
    launches, behind = collections.defaultdict(list), collections.defaultdict(list)
    for place, (time, thread, is_launch) in enumerate(joins):
        if is_launch and (not launches[thread] or launches[thread][-1][0] != time):
            launches[thread].append((time, place - bisect.bisect_left(starts, time)))
    for item, call in launched:
        if item.is_launch:
            behind[call[1]].append(max(0, item.start - call[0]))
    kept = [thread for thread in launches if launches[thread]]
    others = sum(len(launches[thread]) for thread in kept[MAX_THREADS:])
    lines = sorted((sum_thread(thread, launches[thread], behind[thread]) for thread in kept[:MAX_THREADS]),
                   key=lambda line: (-line["launches"], line["thread"]))
    return {"threads": lines[:MAX_LINES], "other_launches": others + sum(line["launches"] for line in lines[MAX_LINES:])}


def differs(key, expected, found):
    if expected is None or found is None:
        return expected is not found
    if isinstance(expected, float):
        return abs(expected - found) > 1e-9 * max(1, abs(expected))
    # From sketches, whose buckets are 0.8 % wide at each side.
    return abs(expected - found) > 0.008 * expected + 1 if "_p50" in key or "_p99" in key else expected != found


def make(path):
    chance, events, time = random.Random(5), [], 1000

    def launch(at, thread, delay):
        number = len(events) // 2 + 1
        events.append({"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 9, "tid": thread, "ts": at,
                       "dur": 2, "args": {"correlation": number}})
        events.append({"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7, "ts": at + delay, "dur": 3,
                       "args": {"device": 0, "stream": 7, "correlation": number}})

    for _ in range(50):
        for _ in range(87):
            launch(time, 4711, chance.randrange(2000, 4200))
            time += 5
        time += 12_000
    for number in range(2000):
        launch(1003 + number * 50, 4712, 4)
    for thread in range(70):
        launch(time + thread, 100 + thread, 4)
    with open(path, "w", encoding="utf-8") as file:
        file.write(json.dumps({"traceEvents": events}))


def main():
    if sys.argv[1] == "--made":
        make(sys.argv[2])
        return 0
    gpu, calls = (from_nsys if sys.argv[1].endswith(".sqlite") else from_kineto)(sys.argv[1])
    expected = [line for _, work in sorted(gpu.items()) if (line := sum_up(work, calls))["threads"]]
    lines = json.load(open(sys.argv[2], encoding="utf-8"))["launch_patterns"]
    differences = [f"{one['other_launches']} others expected, {line['other_launches']} reported"
                   for one, line in zip(expected, lines, strict=True) if one["other_launches"] != line["other_launches"]]
    differences += [f"thread {one['thread']}, {key}: {one[key]} expected, {thread.get(key)} reported"
                    for want, line in zip(expected, lines) for one, thread in zip(want["threads"], line["threads"], strict=True)
                    for key in one if differs(key, one[key], thread[key])]
    print("\n".join(differences) or f"{len(lines)} ranks agree: " + ", ".join(
        f"{thread['launches']} {thread['pattern']}" for line in lines for thread in line["threads"][:3]))
    return 1 if differences else 0


if __name__ == "__main__":
    sys.exit(main())
