# SPDX-License-Identifier: Apache-2.0
"""planted.py IN OUT FACTOR [NAME]: a copy of a Kineto trace in which the kernels NAME (default: all) take FACTOR times as
long, and everything behind them on the timeline starts later."""

import gc
import json
import sys

gc.disable()  # it would walk the events again and again
source, target, factor = sys.argv[1], sys.argv[2], float(sys.argv[3])
name = sys.argv[4] if len(sys.argv) > 4 else None
with open(source, encoding="utf-8") as file:
    trace = json.load(file)
later = 0
for event in sorted((e for e in trace["traceEvents"] if e.get("ph") == "X"), key=lambda e: float(e["ts"])):
    event["ts"] = float(event["ts"]) + later
    if event.get("cat") == "kernel" and name in (None, event["name"]):
        more = float(event["dur"]) * (factor - 1)
        event["dur"] = float(event["dur"]) + more
        later += more
with open(target, "w", encoding="utf-8") as file:
    file.write(json.dumps(trace))  # compiled, unlike json.dump
