#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""loader_idle.py TRACE.json.gz: the ns in which the device of a Kineto trace of one rank was idle, as the host had launched nothing,
while the host waited for PyTorch's data loader; from the definitions in docs/analyze.md, by counting gaps one by one."""

import gzip
import json
import sys

from steps import CALLS, GPU, nanoseconds, union


def main():
    with gzip.open(sys.argv[1], "rt", encoding="utf-8") as trace:
        events = [event for event in json.load(trace)["traceEvents"] if event.get("ph") == "X"]
    waits, calls, gpu = [], {}, []
    for event in events:
        begin = nanoseconds(event["ts"])
        end = begin + nanoseconds(event.get("dur", 0))
        if event["name"].startswith("enumerate(DataLoader)#") and event.get("cat") == "user_annotation":
            waits.append((begin, end))
        elif event.get("cat") in CALLS and "correlation" in event.get("args", {}):
            calls[event["args"]["correlation"]] = begin
        elif event.get("cat") in GPU:
            gpu.append((begin, end, event["args"].get("correlation")))
    idle, busy_until = 0, None
    for begin, end, correlation in sorted(gpu):
        if busy_until is not None and begin > busy_until and calls.get(correlation, busy_until) > busy_until:
            idle += sum(max(0, min(begin, wait_end) - max(busy_until, wait_begin)) for wait_begin, wait_end in union(waits))
        busy_until = max(end, busy_until or end)
    print(idle)


if __name__ == "__main__":
    main()
