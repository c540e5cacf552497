# SPDX-License-Identifier: Apache-2.0
"""full_queue.py TRACE…: for each Kineto trace a line with the launch calls that a full queue blocked, as [count, total in
ns], summed over devices: calls of kernels of 20 µs and more that began while 1,000 earlier calls of their stream waited. An
independent script: it compares each call with all before it."""

import bisect
import collections
import gzip
import json
import sys


def ns(microseconds):
    return round(microseconds * 1000)


for path in sys.argv[1:]:
    trace = json.load(gzip.open(path) if path.endswith(".gz") else open(path))
    events = [event for event in (trace["traceEvents"] if isinstance(trace, dict) else trace) if event.get("ph") == "X"]
    calls = {event["args"]["correlation"]: event for event in events
             if event.get("cat") in ("cuda_runtime", "cuda_driver") and "correlation" in event.get("args", {})}
    streams = collections.defaultdict(dict)  # of each call its first work on a stream
    for event in events:
        call = calls.get(event.get("args", {}).get("correlation"))
        if event.get("cat") not in ("kernel", "gpu_memcpy", "gpu_memset") or call is None:
            continue
        works = streams[event["args"]["device"], event["args"]["stream"]]
        begin = ns(call["ts"])
        if begin not in works or ns(event["ts"]) < works[begin][0]:
            works[begin] = (ns(event["ts"]), ns(call["dur"]), event["cat"] == "kernel")
    count = total = 0
    for works in streams.values():
        waiting = []  # when earlier calls' work started
        for begin, (start, duration, is_kernel) in sorted(works.items(), key=lambda item: item[1][0]):
            if len(waiting) - bisect.bisect_right(waiting, begin) >= 1000 and duration >= 20_000 and is_kernel:
                count += 1
                total += duration
            bisect.insort(waiting, start)
    print(json.dumps([count, total]))
