#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""begin_end.py PAIRS WHOLE: the same Kineto trace with events in two parts (ph B and E), and with whole ones (X)."""

import json
import sys

STEPS, LAUNCHES = 100, 200
pairs, whole = [], []


def event(time, duration, category, name, pid, tid, args, inner=()):
    """Appends an event, and what is in it between its begin and its end."""
    common = {"cat": category, "name": name, "pid": pid, "tid": tid, "args": args}
    pairs.append({"ph": "B", "ts": time, **common})
    whole.append({"ph": "X", "ts": time, "dur": duration, **common})
    for make in inner:
        make()
    pairs.append({"ph": "E", "pid": pid, "tid": tid, "ts": time + duration})


def launch(begin, number):
    call = begin + 2
    event(begin, 9, "cpu_op", f"aten::op{number % 2}", 1, 1, {"padding": "x" * 40}, [
        lambda: event(call, 3, "cuda_runtime", "cudaLaunchKernel", 1, 1, {"correlation": number}),
        lambda: event(call + 6, 8, "kernel", f"kernel{number % 5}", 0, 7, {"correlation": number, "grid": [number % 3 + 1, 1, 1]})])


def step(number):
    begin = number * (LAUNCHES * 10 + 5)
    event(begin, LAUNCHES * 10 + 4, "user_annotation", f"ProfilerStep#{number}", 1, 1, {},
          [lambda i=i: launch(begin + 1 + i * 10, number * LAUNCHES + i) for i in range(LAUNCHES)])


for one in range(STEPS):
    step(one)
for path, events in zip(sys.argv[1:], (pairs, whole)):
    with open(path, "w", encoding="utf-8") as file:
        file.write(json.dumps({"traceEvents": events}))
