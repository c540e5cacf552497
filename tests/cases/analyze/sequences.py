#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Sequences of kernels, computed from their definition in docs/analyze.md, compared with a report's JSON.

    sequences.py TRACE REPORT.json     prints "N sequences agree" or the differences, and exits with 1

TRACE is a Kineto trace (.json.gz) of one rank or an Nsight Systems export (.sqlite) of one rank.
"""

import collections
import json
import sys

from traces import GPU, Nsys, complete_events

LONGEST, LEAST, LISTED = 8, 3, 20
Sequence = collections.namedtuple("Sequence", "kernels count kernel_ns gap_ns first_ns")


def read(path):
    """(start, end, name or None for other work) of each stream's work, by start."""
    streams = collections.defaultdict(list)
    if path.endswith(".sqlite"):
        trace = Nsys(path)
        for kind, name in (("KERNEL", "demangledName"), ("MEMCPY", "NULL"), ("MEMSET", "NULL")):
            for stream, start, end, text in trace.activities(kind, f"streamId, start, end, {name}"):
                streams[stream].append((start, end, trace.strings.get(text)))
    else:
        for category, start, end, event in complete_events(path):
            if category in GPU:
                name = event["name"] if category == "kernel" else None
                streams[event["args"]["stream"]].append((start, end, name))
    return [sorted(work, key=lambda one: one[:2]) for work in streams.values()]


def count(streams):
    """Every sequence of 2 to LONGEST kernels."""
    found = {}
    for work in streams:
        free_from = {}
        for end in range(len(work)):
            for length in range(2, LONGEST + 1):
                first = end + 1 - length
                if first < 0 or work[first][2] is None or work[end][2] is None:
                    break
                part = work[first:end + 1]
                kernels = tuple(name for _, _, name in part)
                if None in kernels:
                    break
                if first < free_from.get(kernels, 0):
                    continue
                free_from[kernels] = end + 1
                kernel_ns = sum(stop - start for start, stop, _ in part)
                gap_ns = sum(max(0, after[0] - before[1]) for before, after in zip(part, part[1:]))
                old = found.get(kernels, Sequence(kernels, 0, 0, 0, part[0][0]))
                found[kernels] = Sequence(kernels, old.count + 1, old.kernel_ns + kernel_ns, old.gap_ns + gap_ns,
                                          min(old.first_ns, part[0][0]))
    return found.values()


def is_repetition(kernels):
    return any(kernels[period:] == kernels[:-period] for period in range(1, len(kernels) // 2 + 1))


def choose(sequences):
    chosen, listed = [], set()
    for one in sorted(sequences, key=lambda one: (-one.kernel_ns - one.gap_ns, len(one.kernels), one.first_ns)):
        pairs = set(zip(one.kernels, one.kernels[1:]))
        if one.count < LEAST or is_repetition(one.kernels) or pairs & listed:
            continue
        listed |= pairs | {(one.kernels[-1], one.kernels[0])}
        chosen.append(one)
        if len(chosen) == LISTED:
            break
    return chosen


def main():
    expected = choose(count(read(sys.argv[1])))
    lines = json.load(open(sys.argv[2], encoding="utf-8"))["sequences"]
    ours = [Sequence(tuple(one["kernels"]), *(one[key] for key in Sequence._fields[1:]))
            for line in lines for one in line["sequences"]]
    differences = [f"expected {a}\ngot {b}" for a, b in zip(expected, ours) if a != b]
    if len(expected) != len(ours):
        differences.append(f"expected {len(expected)} sequences, not {len(ours)}")
    print("\n".join(differences) or f"{len(ours)} sequences agree")
    return 1 if differences else 0


if __name__ == "__main__":
    sys.exit(main())
