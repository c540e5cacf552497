#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What calls cost that wait for the GPU, computed from its definition in docs/analyze.md, compared with a report's JSON.

    syncs.py TRACE REPORT.json     prints "N ranks agree: …" or the differences, and exits with 1

TRACE is a Kineto trace (.json.gz) or an Nsight Systems export (.sqlite).
"""

import bisect
import collections
import json
import sys

from traces import CALLS, GPU, Nsys, complete_events

BLOCKING = {"cudaMemcpy", "cudaMemcpy2D", "cudaMemcpy3D", "cudaMemcpyFromSymbol", "cudaMemcpyToSymbol", "cuMemcpy", "cuMemcpyHtoD",
            "cuMemcpyDtoH", "hipMemcpy", "hipMemcpyHtoD", "hipMemcpyDtoH", "hipMemcpy2D", "hipMemcpyWithStream", "hipMemcpy3D"}


def waits(name):
    base = name.split("_")[0]
    return base.endswith("Synchronize") or base in BLOCKING


# Both readers return calls {process: [(begin, end, thread, name)]} and GPU work {(process, device): [(begin, end)]}.


def from_kineto(path):
    calls, gpu = collections.defaultdict(list), collections.defaultdict(list)
    for category, begin, end, event in complete_events(path):
        if category in CALLS:
            calls[0].append((begin, end, event["tid"], event["name"]))
        elif category in GPU:
            gpu[0, event["args"]["device"]].append((begin, end))
    return calls, gpu


def from_nsys(path):
    trace = Nsys(path)
    calls, gpu = collections.defaultdict(list), collections.defaultdict(list)
    for begin, end, thread, name in trace.activities("RUNTIME", "start, end, globalTid, nameId"):
        calls[thread >> 24].append((begin, end, thread & 0xFFFFFF, trace.strings[name]))
    for kind in ("KERNEL", "MEMCPY", "MEMSET"):
        for begin, end, process, device in trace.activities(kind, "start, end, globalPid, deviceId"):
            gpu[process >> 24, device].append((begin, end))
    return calls, gpu


class Union:
    """The time that is covered by any of these intervals."""

    def __init__(self, intervals):
        self.begins, self.ends, self.before = [], [], []
        covered = 0
        for begin, end in sorted(intervals):
            if self.ends and begin <= self.ends[-1]:
                covered += max(0, end - self.ends[-1])
                self.ends[-1] = max(self.ends[-1], end)
                continue
            self.begins.append(begin)
            self.ends.append(end)
            self.before.append(covered)
            covered += end - begin

    def until(self, time):
        at = bisect.bisect_right(self.begins, time) - 1
        return 0 if at < 0 else self.before[at] + min(time, self.ends[at]) - self.begins[at]


def outermost(calls):
    """Those of a thread that don't begin within another one of it."""
    ends = {}
    for begin, end, thread, name in sorted(calls, key=lambda call: (call[0], -call[1])):
        if begin >= ends.get(thread, begin):
            ends[thread] = end
            yield begin, end, thread, name


def sum_up(calls, gpu):
    """[{"count", "total_ns", "busy_ns", "idle_ns", "calls": {…}, "threads": {…}}] of the ranks that wait."""
    found = []
    for (process, _), work in gpu.items():
        busy = Union(work)
        sums = collections.defaultdict(lambda: [0, 0, 0])
        for begin, end, thread, name in outermost([call for call in calls[process] if waits(call[3])]):
            for key in ("all", ("calls", name), ("threads", thread)):
                for at, value in enumerate((1, end - begin, busy.until(end) - busy.until(begin))):
                    sums[key][at] += value
        if sums:
            found.append({key if isinstance(key, str) else " ".join(map(str, key)): value for key, value in sums.items()})
    return found


def reported(line):
    def of(part):
        assert part["idle_ns"] == part["total_ns"] - part["busy_ns"]
        return [part["count"], part["total_ns"], part["busy_ns"]]

    return {"all": of(line), **{f"calls {part['name']}": of(part) for part in line["calls"]},
            **{f"threads {part['thread']}": of(part) for part in line["threads"]}}


def main():
    expected = sum_up(*(from_nsys if sys.argv[1].endswith(".sqlite") else from_kineto)(sys.argv[1]))
    lines = [reported(line) for line in json.load(open(sys.argv[2], encoding="utf-8"))["syncs"]]
    order = lambda one: json.dumps(one, sort_keys=True)  # noqa: E731
    if sorted(expected, key=order) != sorted(lines, key=order):
        print(f"{expected} expected, {lines} reported")
        return 1
    print(f"{len(lines)} ranks agree: {sum(line['all'][0] for line in lines)} calls, "
          f"{sum(line['all'][1] for line in lines)} ns, {sum(line['all'][2] for line in lines)} ns busy")
    return 0


if __name__ == "__main__":
    sys.exit(main())
