#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""GPU time by what launched it, computed from its definition in docs/analyze.md, compared with a report's JSON.

    operators.py TRACE REPORT.json     prints "N rows agree" or the differences, and exits with 1

TRACE is a Kineto trace (.json.gz) or an Nsight Systems export (.sqlite).
"""

import collections
import json
import re
import sys

from traces import CALLS, GPU, Nsys, complete_events

COPIES = {1: "htod", 2: "dtoh", 8: "dtod", 10: "ptop", 11: "htod", 12: "dtoh", 13: "dtod"}
MODULE = "nn.Module: "

# Both readers return spans (thread, begin, end, kind, name), calls ((process, correlation): [(begin, thread)]) and
# GPU work (begin, duration, (process, correlation), kernel).


def repeated(name):
    name = name.split(", seq = ")[0].split(", op_id = ")[0]
    return re.sub(r"(?<=.)#[0-9]+$", "", name, flags=re.S)


def from_kineto(path):
    spans, calls, gpu = [], collections.defaultdict(list), []
    for category, begin, end, event in complete_events(path):
        name = event["name"]
        thread = (event["pid"], event["tid"])
        arguments = event.get("args", {})
        if category in ("cpu_op", "operator"):
            spans.append((thread, begin, end, "operator", repeated(name)))
        elif category == "user_annotation":
            spans.append((thread, begin, end, "range", repeated(name)))
        elif category == "python_function" and name.startswith(MODULE):
            spans.append((thread, begin, end, "module", repeated(name[len(MODULE):])))
        elif category in CALLS and "correlation" in arguments:
            calls[0, arguments["correlation"]].append((begin, thread))
        elif category in GPU:
            kernel = name
            if category.endswith("memset"):
                kernel = "[set]"
            elif category.endswith("memcpy"):
                found = re.search(r"(HtoD|DtoH|DtoD|PtoP|HtoH)|(CopyDeviceToDevice|HostToDevice|DeviceToHost|DeviceToDevice)", name)
                known = {"CopyDeviceToDevice": "dtod", "HostToDevice": "htod", "DeviceToHost": "dtoh", "DeviceToDevice": "dtod"}
                kernel = f"[copy {known.get(found[0], found[0].lower()) if found else 'unknown'}]"
            gpu.append((begin, end - begin, (0, arguments.get("correlation")), kernel))
    return spans, calls, gpu


def from_nsys(path):
    trace = Nsys(path)
    spans, calls, gpu = [], collections.defaultdict(list), []
    for begin, end, thread, text, text_id in trace.database.execute(
            "SELECT start, end, globalTid, text, textId FROM NVTX_EVENTS WHERE eventType IN (59, 60) AND end IS NOT NULL ORDER BY rowid"):
        spans.append((thread, begin, end, "range", repeated(text if text is not None else trace.strings[text_id])))
    for begin, thread, correlation in trace.activities("RUNTIME", "start, globalTid, correlationId"):
        calls[thread >> 24, correlation].append((begin, thread))
    for kind, name, kernel in (("KERNEL", "demangledName", trace.strings.get), ("MEMCPY", "copyKind", lambda kind: f"[copy {COPIES[kind]}]"),
                               ("MEMSET", "NULL", lambda _: "[set]")):
        for begin, end, process, correlation, value in trace.activities(kind, f"start, end, globalPid, correlationId, {name}"):
            gpu.append((begin, end - begin, (process >> 24, correlation), kernel(value)))
    return spans, calls, gpu


def sum_up(spans, calls, gpu):
    rows = collections.defaultdict(lambda: {"calls": 0, "host_ns": 0, "launches": 0, "self_ns": 0, "total_ns": 0,
                                            "kernels": collections.defaultdict(lambda: [0, 0])})
    first_use = {}
    by_thread = collections.defaultdict(list)
    for span in spans:
        thread, begin, end, kind, name = span
        row = rows[kind, name]
        row["calls"] += 1
        row["host_ns"] += end - begin
        by_thread[thread].append((begin, -end, first_use.setdefault(name, len(first_use)), 0, kind, name))
    for begin, duration, key, kernel in gpu:
        of_id = sorted(calls.get(key, []))
        if not of_id:
            continue
        before = [call for call in of_id if call[0] <= begin]
        time, thread = before[-1] if before else of_id[0]
        if abs(begin - time) <= 60_000_000_000:
            by_thread[thread].append((time, 1 << 62, 0, duration, "launch", kernel))
    for events in by_thread.values():
        opened = []
        for begin, negative_end, _, duration, kind, name in sorted(events):
            opened = [one for one in opened if one[0] > begin]
            if kind != "launch":
                opened.append((-negative_end, kind, name))
                continue
            for one_kind in ("operator", "module", "range"):
                names = [one[2] for one in opened if one[1] == one_kind]
                if names:
                    rows[one_kind, names[-1]]["self_ns"] += duration
                for one in set(names):
                    row = rows[one_kind, one]
                    row["launches"] += 1
                    row["total_ns"] += duration
                    row["kernels"][name][0] += 1
                    row["kernels"][name][1] += duration
    return rows


def main():
    spans, calls, gpu = (from_nsys if sys.argv[1].endswith(".sqlite") else from_kineto)(sys.argv[1])
    expected = {}
    for key, row in sum_up(spans, calls, gpu).items():
        if row["launches"] > 0:
            largest = sorted(row["kernels"].items(), key=lambda one: (-one[1][1], one[0].encode()))[:3]
            row["kernels"] = [{"name": name, "count": count, "total_ns": total} for name, (count, total) in largest]
            expected[key] = row
    lines = json.load(open(sys.argv[2], encoding="utf-8"))["operators"]
    differences = []
    reported = {(line.pop("kind"), line.pop("name")): line for line in lines}
    for key in sorted(expected.keys() | reported.keys()):
        if expected.get(key) != reported.get(key):
            differences.append(f"{key}: {expected.get(key)} expected, {reported.get(key)} reported")
    print("\n".join(differences[:20]) or f"{len(expected)} rows agree")
    return 1 if differences else 0


if __name__ == "__main__":
    sys.exit(main())
