#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""slow_kernels.py KIND FOLDER: four ranks of a job as Kineto traces, of which one has slow kernels.

Each rank runs 2,000 rounds of a large kernel (100 µs) and four small ones (5 µs), which vary by 5 %. KIND:
    one       small_0 takes 80 µs longer on rank 2: 200 ms of work take 160 ms longer
    all       all kernels of rank 2 take 20 % longer
    period    the small kernels of rank 2 take four times as long from round 1000 to 1099: 12 ms take 6 ms longer
"""

import json
import pathlib
import random
import sys

ROUNDS = 2000
KERNELS = [("large", 100_000)] + [(f"small_{i}", 5_000) for i in range(4)]


def duration_ns(kind, rank, round_number, name, usual_ns, chance):
    duration = usual_ns * chance.lognormvariate(0, 0.05)
    if rank == 2 and kind == "one" and name == "small_0":
        duration += 80_000
    if rank == 2 and kind == "all":
        duration *= 1.2
    if rank == 2 and kind == "period" and name != "large" and 1000 <= round_number < 1100:
        duration *= 4
    return round(duration)


def main():
    kind, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    folder.mkdir(parents=True, exist_ok=True)
    for rank in range(4):
        chance = random.Random(rank)
        events, now_ns = [], 1_000_000
        for round_number in range(ROUNDS):
            for name, usual_ns in KERNELS:
                took_ns = duration_ns(kind, rank, round_number, name, usual_ns, chance)
                events.append({"ph": "X", "cat": "kernel", "name": name, "pid": 0, "tid": 7, "ts": now_ns / 1000,
                               "dur": took_ns / 1000, "args": {"device": 0, "stream": 7}})
                now_ns += took_ns + 1000
        trace = {"distributedInfo": {"rank": rank, "world_size": 4}, "traceEvents": events}
        (folder / f"rank{rank}.json").write_text(json.dumps(trace))


main()
