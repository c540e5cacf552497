#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the demo's second run with its first: demo_verdict.py FIRST SECOND

Each file has the begins of steps, one time in ns per line. Other programs disturb the runs, so a difference is only
claimed if every fifth of one run is faster than every fifth of the other: by chance, that happens in 1 of 126 cases.
"""

import os
import statistics
import sys

PARTS = 5
# The first steps of a run fill the loader's queue and load the GPU's code.
WARM_UP_STEPS = 2
MIN_STEPS = 3 * PARTS  # a median of three steps tolerates a slow one


def part_medians(starts_ns):
    """The median step of each fifth of a run, in ms; None if there are too few steps."""
    steps_ms = [(after - before) / 1e6 for before, after in zip(starts_ns, starts_ns[1:])][WARM_UP_STEPS:]
    if len(steps_ms) < MIN_STEPS:
        return None
    ends = [round(part * len(steps_ms) / PARTS) for part in range(PARTS + 1)]
    return [statistics.median(steps_ms[first:end]) for first, end in zip(ends, ends[1:])]


def verdict(first, second, load=0.0, cpus=1):
    """One or two sentences. `first`, `second`: starts of steps; `load`: runnable threads on `cpus` CPUs."""
    before, after = part_medians(first), part_medians(second)
    if before is None or after is None:
        return f"Too few steps to compare: at least {MIN_STEPS + WARM_UP_STEPS + 1} are needed in each run."
    was, now = statistics.median(before), statistics.median(after)
    medians = f"{was:.0f} ms before, {now:.0f} ms with it (medians)"
    if max(after) < min(before):
        return f"The second worker made steps {was / now:.2f} times as fast: {medians}."
    if min(after) > max(before):
        return f"The second worker made steps {now / was:.2f} times slower: {medians}.{crowd(load, cpus)}"
    return (f"The second worker made no difference beyond the noise: {medians}; fifths of the runs took "
            f"{min(before):.0f} to {max(before):.0f} ms and {min(after):.0f} to {max(after):.0f} ms.{crowd(load, cpus)}")


def crowd(load, cpus):
    if load <= cpus:
        return ""
    return f" {load:.1f} threads shared {cpus} CPUs, so there was no CPU to spare for it."


def read(path):
    with open(path, encoding="utf-8") as lines:
        return sorted(int(line) for line in lines if line.strip().isdigit())


if __name__ == "__main__":
    print(verdict(read(sys.argv[1]), read(sys.argv[2]), os.getloadavg()[0], os.cpu_count() or 1))
