#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Launches known numbers of kernels, copies and graphs: `gpu_launches.py [ROUNDS [SECONDS [PAUSE]]]`. It waits
for SECONDS first, like programs that load data, and for PAUSE seconds after each round. A round is 100 sgemm from forward(), 50 relu from backward(), 20
copies of 4096 bytes and one launch of a graph of three relu captured in make_graph()."""

import ctypes
import pathlib
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent.parent / "examples/train"))
import cuda  # noqa: E402

PTX = """.version 7.0
.target sm_70
.address_size 64
// simgpu: duration_ns=20000
.visible .entry sgemm() { ret; }
// simgpu: duration_ns=5000
.visible .entry relu() { ret; }
"""


def launch(gpu, function, stream, count):
    for _ in range(count):
        gpu.check(gpu.launch(function, 8, 1, 1, 256, 1, 1, 0, stream, None, None))


def forward(gpu, functions, stream):
    launch(gpu, functions["sgemm"], stream, 100)


def backward(gpu, functions, stream):
    launch(gpu, functions["relu"], stream, 50)


def make_graph(gpu, functions, stream):
    return gpu.capture(stream, lambda: launch(gpu, functions["relu"], stream, 3))


def main():
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 10
    pause_s = float(sys.argv[3]) if len(sys.argv) > 3 else 0
    gpu = cuda.Cuda()
    stream = gpu.stream()
    time.sleep(float(sys.argv[2]) if len(sys.argv) > 2 else 0)
    functions = gpu.functions(PTX, ["sgemm", "relu"])
    memory, pinned = gpu.device_memory(4096), gpu.pinned_memory(4096)
    graph = make_graph(gpu, functions, stream)
    for _ in range(rounds):
        forward(gpu, functions, stream)
        backward(gpu, functions, stream)
        for _ in range(20):
            gpu.check(gpu.copy(memory, pinned, ctypes.c_size_t(4096), cuda.HOST_TO_DEVICE, stream))
        gpu.launch_graph(graph, stream)
        gpu.synchronize()
        time.sleep(pause_s)


if __name__ == "__main__":
    main()
