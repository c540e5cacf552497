#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""loader_idle.py TRACE.json.gz: the ns in which the device of a Kineto trace of one rank was idle, as the host had launched nothing,
while the host waited for PyTorch's data loader; from the definitions in docs/analyze.md, by counting gaps one by one."""

import sys

from steps import union
from traces import CALLS, GPU, complete_events


def main():
    waits, calls, gpu = [], {}, []
    for category, begin, end, event in complete_events(sys.argv[1]):
        if event["name"].startswith("enumerate(DataLoader)#") and category == "user_annotation":
            waits.append((begin, end))
        elif category in CALLS and "correlation" in event.get("args", {}):
            calls[event["args"]["correlation"]] = begin
        elif category in GPU:
            gpu.append((begin, end, event["args"].get("correlation")))
    idle, busy_until = 0, None
    for begin, end, correlation in sorted(gpu):
        if busy_until is not None and begin > busy_until and calls.get(correlation, busy_until) > busy_until:
            idle += sum(max(0, min(begin, wait_end) - max(busy_until, wait_begin)) for wait_begin, wait_end in union(waits))
        busy_until = max(end, busy_until or end)
    print(idle)


if __name__ == "__main__":
    main()
