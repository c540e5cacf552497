#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What kernels lose in last waves of blocks, computed from its definition in docs/analyze.md, compared with a report's JSON.

    waves.py TRACE REPORT.json     prints "N kernels agree" or the differences, and exits with 1

TRACE is a Kineto trace (.json.gz) of one device or an Nsight Systems export (.sqlite) of one rank.
"""

import collections
import json
import math
import sys

from traces import Nsys, nanoseconds, read_kineto

BLOCKS = {(8, 0): 32, (9, 0): 32}  # per multiprocessor, by compute capability


def read(path):
    """The limits of a multiprocessor, their number, and (name, ns, blocks, threads, registers, shared memory) of each kernel."""
    if path.endswith(".sqlite"):
        trace = Nsys(path)
        (device,) = {device for (device,) in trace.activities("KERNEL", "deviceId")}
        warps, blocks, registers, shared, multiprocessors, major = trace.database.execute(
            "SELECT maxWarpsPerSm, maxBlocksPerSm, maxRegistersPerSm, maxShmemPerSm, smCount, computeMajor FROM TARGET_INFO_GPU "
            "WHERE id IN (SELECT gpuId FROM TARGET_INFO_CUDA_DEVICE WHERE cudaId = ?)", (device,)).fetchone()
        kernels = [(trace.strings[name], ns, blocks_, threads, registers_, static + dynamic)
                   for name, ns, blocks_, threads, registers_, static, dynamic in trace.activities(
                       "KERNEL", "demangledName, end - start, gridX * gridY * gridZ, blockX * blockY * blockZ, registersPerThread, "
                       "staticSharedMemory, dynamicSharedMemory")]
        return (warps * 32, blocks, registers, shared, 1024 if major >= 8 else 0), multiprocessors, kernels
    trace = read_kineto(path)
    device = trace["deviceProperties"][0]
    capability = (device["computeMajor"], device["computeMinor"])
    kernels = []
    for event in trace["traceEvents"]:
        if event.get("cat") == "kernel":
            args = event["args"]
            kernels.append((event["name"], nanoseconds(event["dur"]), math.prod(args["grid"]), math.prod(args["block"]),
                            args["registers per thread"], args["shared memory"]))
    return ((device["maxThreadsPerMultiprocessor"], BLOCKS[capability], device["regsPerMultiprocessor"],
             device["sharedMemPerMultiprocessor"], 1024), device["numSms"], kernels)


def up(value, unit):
    return -(-value // unit) * unit


def main():
    (max_threads, max_blocks, registers, shared, reserved), multiprocessors, kernels = read(sys.argv[1])
    totals = collections.Counter()
    for name, ns, *shape in kernels:
        totals[name, tuple(shape)] += ns
    lost = collections.Counter()
    known = 0
    for (name, (blocks, threads, needed, bytes_)), ns in totals.items():
        warps = -(-threads // 32)
        by_registers = registers // up(needed * 32, 256) // 4 * 4 // warps
        at_a_time = multiprocessors * min(max_blocks, max_threads // (warps * 32), by_registers, shared // up(bytes_ + reserved, 128))
        known += ns
        if blocks > at_a_time:
            waves = -(-blocks // at_a_time)
            lost[name] += ns * (waves * at_a_time - blocks) // (waves * at_a_time)
    (line,) = json.load(open(sys.argv[2], encoding="utf-8"))["waves"]
    differences = []
    if (line["known_ns"], line["unknown_ns"], line["lost_ns"]) != (known, 0, sum(lost.values())):
        differences.append(f"known {known}, lost {sum(lost.values())} expected: {line}")
    for kernel in line["kernels"]:
        if kernel["lost_ns"] != lost[kernel["name"]]:
            differences.append(f"{lost[kernel['name']]} expected: {kernel}")
    print("\n".join(differences) or f"{len(line['kernels'])} kernels agree")
    return 1 if differences else 0


if __name__ == "__main__":
    sys.exit(main())
