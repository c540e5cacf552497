#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""advice_traces.py FOLDER: Kineto traces RULE.json, for which a rule gives advice, and RULE.nearly.json, for which it
nearly does."""

import json
import pathlib
import sys


class Trace:
    """Events of one stream, each right after the other but for gaps; times in µs."""

    def __init__(self):
        self.events, self.now, self.count = [], 1000, 0

    def launch(self, name, duration, gap=0, late=False, category="kernel", call="cudaLaunchKernel", call_duration=1,
               ahead=50, args=()):
        """`late`: the host launches only after the work before has ended; else `ahead` of the end."""
        start = self.now + gap
        called = start - 1 if late else self.now - ahead
        self.count += 1
        args = {"correlation": self.count, "stream": 7, "device": 0, **dict(args)}
        self.events.append({"ph": "X", "cat": "cuda_runtime", "name": call, "pid": 9, "tid": 9, "ts": called,
                            "dur": call_duration, "args": {"correlation": self.count}})
        self.events.append({"ph": "X", "cat": category, "name": name, "pid": 0, "tid": 7, "ts": start, "dur": duration,
                            "args": args})
        self.now = start + duration


def launch_bound(nearly):  # gaps of 10.8 % of the span, or 9.0 %
    trace = Trace()
    for _ in range(100):
        trace.launch("gemm", 90, gap=9 if nearly else 11, late=True)
    return trace


def host_stalls(nearly):  # 5.7 %, or 3.8 %
    trace = Trace()
    for i in range(100):
        trace.launch("gemm", 1000, gap=2000 if i in ((20, 40) if nearly else (20, 40, 60)) else 0, late=True)
    return trace


def small_kernels(nearly):  # the gaps are 9.1 % and 8.3 % of the span
    trace = Trace()
    for _ in range(200):
        trace.launch("relu", 11 if nearly else 9.9, gap=1)
    return trace


def copies(memory, call, call_duration):
    trace = Trace()
    for _ in range(50):
        trace.launch("gemm", 2000)
        trace.launch(f"Memcpy HtoD ({memory} -> Device)", 100, category="gpu_memcpy", call=call,
                     call_duration=call_duration, args={"bytes": 1_000_000})
    return trace


def pageable_memory(nearly):  # 4.8 % of the span
    return copies("Pinned" if nearly else "Pageable", "cudaMemcpyAsync", 1)


def synchronous_copies(nearly):  # 9.5 %
    return copies("Pinned", "cudaMemcpyAsync" if nearly else "cudaMemcpy", 200)


def exposed_communication(nearly):  # 10.7 %, or 9.1 %
    trace = Trace()
    for _ in range(100):
        trace.launch("gemm", 1000)
        trace.launch("ncclDevKernel_AllReduce_Sum_f32_RING_LL", 100 if nearly else 120)
    return trace


def full_queue(nearly):  # 1,009 launches wait, or 899
    trace = Trace()
    trace.now = 1_000_000
    for _ in range(3000):
        trace.launch("gemm", 100, ahead=89_950 if nearly else 100_950, call_duration=90)
    return trace


folder = pathlib.Path(sys.argv[1])
folder.mkdir()
for rule in (full_queue, launch_bound, host_stalls, small_kernels, pageable_memory, synchronous_copies, exposed_communication):
    for nearly in (False, True):
        path = folder / f"{rule.__name__}{'.nearly' if nearly else ''}.json"
        path.write_text(json.dumps({"traceEvents": rule(nearly).events}))
