#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What ran at the same time, computed from its definition in docs/analyze.md, compared with a report's JSON.

    concurrency.py TRACE REPORT.json     prints "N ranks agree: …" or the differences, and exits with 1
    concurrency.py --made TRACE.json     writes a Kineto trace of 2 devices with 80 streams and 3

TRACE is a Kineto trace (.json.gz or .json) or an Nsight Systems export (.sqlite). Each rank's time is cut at every
begin and end of an event, and for each piece of it, the events are counted that run in it.
"""

import collections
import itertools
import json
import random
import re
import sys

from traces import CALLS, GPU, Nsys, complete_events

MAX_STREAMS, MAX_PAIRS = 64, 100
COPIES = {0: "unknown_copy", 1: "htod", 2: "dtoh", 8: "dtod", 9: "htoh", 10: "ptop"}  # of CUPTI
KINDS = ("compute", "communication", "unknown_copy", "htod", "dtoh", "dtod", "ptop", "htoh", "memset", "graph")

Work = collections.namedtuple("Work", "start end stream kind key")  # key: (process, correlation)


def kind_of(category, name):
    """`name`: also that of a copy's kind, of Kineto."""
    if "graph" in category:
        return "graph"
    if "memset" in category:
        return "memset"
    if "mem" in category:
        return next((kind for text, kind in (("HtoD", "htod"), ("DtoH", "dtoh"), ("DtoD", "dtod"), ("PtoP", "ptop"),
                                             ("HtoH", "htoh")) if text in name), "unknown_copy")
    return "communication" if re.search("nccl|rccl|cross_device_reduce|two_shot|one_shot|multimem", name, re.IGNORECASE) else "compute"


# Both readers return GPU work {(process, device): [Work]} and the begins of calls {(process, correlation): [begin]}.


def from_kineto(path):
    gpu, calls = collections.defaultdict(list), collections.defaultdict(list)
    for category, begin, end, event in complete_events(path):
        arguments = event.get("args", {})
        if category in CALLS and "correlation" in arguments:
            calls[0, arguments["correlation"]].append(begin)
        elif category in GPU:
            gpu[0, arguments["device"]].append(
                Work(begin, end, arguments["stream"], kind_of(category, event["name"]), (0, arguments.get("correlation"))))
    return gpu, calls


def from_nsys(path):
    trace = Nsys(path)
    gpu, calls = collections.defaultdict(list), collections.defaultdict(list)
    for begin, thread, correlation in trace.activities("RUNTIME", "start, globalTid, correlationId"):
        calls[thread >> 24, correlation].append(begin)
    for table, name in (("KERNEL", "demangledName"), ("MEMCPY", "copyKind"), ("MEMSET", "NULL"), ("GRAPH_TRACE", "NULL")):
        for begin, end, process, device, stream, correlation, text in trace.activities(
                table, f"start, end, globalPid, deviceId, streamId, correlationId, {name}"):
            kind = COPIES[text] if table == "MEMCPY" else kind_of(table.lower(), trace.strings.get(text, ""))
            gpu[process >> 24, device].append(Work(begin, end, stream, kind, (process >> 24, correlation)))
    return gpu, calls


def launch_of(work, calls):
    of_id = sorted(calls.get(work.key, []))
    before = [begin for begin in of_id if begin <= work.start]
    found = before[-1] if before else of_id[0] if of_id else None
    return None if found is None or abs(work.start - found) > 60_000_000_000 else found


def pieces(work):
    """(length, the events that run in it) between any two times at which something begins or ends."""
    changes = sorted([(item.start, 1, number) for number, item in enumerate(work) if item.end > item.start] +
                     [(item.end, 0, number) for number, item in enumerate(work) if item.end > item.start])
    running, last = set(), None
    for time, begins, number in changes:
        if running and time > last:
            yield time - last, [work[one] for one in running]
        last = time
        (running.add if begins else running.remove)(number)


def gaps_of(work, calls):
    causes, ended = dict.fromkeys(("host_ns", "back_to_back_ns", "device_ns", "unknown_ns"), 0), None
    for item in work:
        if ended is not None and item.start > ended:
            call, gap = launch_of(item, calls), item.start - ended
            cause = ("host_ns" if call is not None and call > ended else "back_to_back_ns" if gap < 30_000 else
                     "unknown_ns" if call is None else "device_ns")
            causes[cause] += gap
        ended = max(item.end, item.end if ended is None else ended)
    return causes


def order(stream):
    return (stream is None, stream or 0)


def sum_up(work, calls):
    work = sorted(work, key=lambda item: (item.start, item.end, item.stream))
    own = list(dict.fromkeys(item.stream for item in work))  # by their first events
    shown = {stream: stream if place < MAX_STREAMS else None for place, stream in enumerate(own)}
    running, busy = [0, 0, 0, 0], collections.Counter()
    pairs, kinds, kind_times = collections.Counter(), collections.Counter(), collections.Counter()
    for length, events in pieces(work):
        running[min(len(events), 4) - 1] += length
        streams = sorted({shown[item.stream] for item in events}, key=order)
        for stream in streams:
            busy[stream] += length
        for pair in itertools.combinations(streams, 2):
            pairs[pair] += length
        running_kinds = [kind for kind in KINDS if any(item.kind == kind for item in events)]
        for kind in running_kinds:
            kind_times[kind] += length
        for pair in itertools.combinations(running_kinds, 2):
            kinds[pair] += length
    by_stream = collections.defaultdict(list)
    for item in work:
        by_stream[item.stream].append(item)
    streams = {}
    for stream in own:
        line = streams.setdefault(shown[stream], {"stream": shown[stream], "events": 0, "busy_ns": busy[shown[stream]],
                                                  "gaps": collections.Counter()})
        line["events"] += len(by_stream[stream])
        line["gaps"].update(gaps_of(by_stream[stream], calls))
    for line in streams.values():
        line["gaps"] = dict(line["gaps"])
    return {"running_ns": running, "mean": sum(item.end - item.start for item in work) / max(1, sum(running)),
            "kinds": [{"first": first, "second": second, "shared_ns": ns} for (first, second), ns in sorted(
                kinds.items(), key=lambda one: (-one[1], KINDS.index(one[0][1]), KINDS.index(one[0][0])))],
            "kind_times": [{"kind": kind, "busy_ns": kind_times[kind]} for kind in KINDS if kind_times[kind]],
            "streams": sorted(streams.values(), key=lambda line: (-line["busy_ns"], order(line["stream"]))),
            "pairs": [{"first": first, "second": second, "shared_ns": ns} for (first, second), ns in sorted(
                pairs.items(), key=lambda one: (-one[1], *map(order, one[0])))][:MAX_PAIRS]}


def make(path):
    """Overlaps of all kinds: within a stream, events within others, empty ones, equal times, more streams than are told apart."""
    chance, events = random.Random(7), []
    for number in range(6000):
        device, begin = number % 2, chance.randrange(30_000)
        category, name = chance.choice((("kernel", "gemm"), ("kernel", "ncclDevKernel_AllReduce"), ("gpu_memcpy", "Memcpy HtoD (Pinned -> Device)"),
                                        ("gpu_memcpy", "Memcpy DtoH (Device -> Pinned)"), ("gpu_memcpy", "Memcpy DtoD (Device -> Device)"),
                                        ("gpu_memcpy", "Memcpy PtoP (Device -> Device)"), ("gpu_memset", "Memset (Device)")))
        events.append({"ph": "X", "cat": category, "name": name, "pid": device, "tid": 1, "ts": begin,
                       "dur": chance.choice((0, 1, 3, 10, 100)),
                       "args": {"device": device, "stream": chance.randrange(3 if device else 80), "correlation": number + 1}})
        if chance.random() < 0.7:
            events.append({"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 9, "tid": 9, "dur": 2,
                           "ts": max(0, begin - chance.randrange(200)), "args": {"correlation": number + 1}})
    with open(path, "w", encoding="utf-8") as file:
        file.write(json.dumps({"traceEvents": events}))


def main():
    if sys.argv[1] == "--made":
        make(sys.argv[2])
        return 0
    gpu, calls = (from_nsys if sys.argv[1].endswith(".sqlite") else from_kineto)(sys.argv[1])
    expected = [sum_up(work, calls) for _, work in sorted(gpu.items())]
    lines = json.load(open(sys.argv[2], encoding="utf-8"))["concurrency"]
    for line in lines:
        del line["rank"], line["trace"]
    differences = [f"{key}: {one[key]} expected, {line.get(key)} reported" for one, line in zip(expected, lines, strict=True)
                   for key in one if (abs(one[key] - line[key]) > 1e-9 if key == "mean" else one[key] != line[key])]
    several = [sum(line["running_ns"][1:]) for line in lines]
    print("\n".join(differences) or f"{len(lines)} ranks agree: several for {sum(several)} ns, "
          f"{sum(len(line['streams']) for line in lines)} streams, {sum(len(line['pairs']) for line in lines)} pairs")
    return 1 if differences else 0


if __name__ == "__main__":
    sys.exit(main())
