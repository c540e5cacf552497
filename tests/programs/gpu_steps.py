#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""GPU programs that count their own steps: `gpu_steps.py KIND STEPS`; prints their number. KIND is one of KINDS
below: each is a function that receives the step's number and does one step."""

import ctypes
import pathlib
import random
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "examples/train"))
import cuda  # noqa: E402
import nvtx  # noqa: E402

KERNELS = {"embed": 30, "gemm": 200, "softmax": 40, "norm": 20, "loss": 50, "grad": 250, "update": 60, "eval_gemm": 150,
           "tiny": 10, "decode": 80, "stage": 120}  # microseconds
PTX = ".version 7.0\n.target sm_70\n.address_size 64\n" + "".join(
    f"// simgpu: duration_ns={us * 1000}\n.visible .entry {name}() {{ ret; }}\n" for name, us in KERNELS.items())


class Program:
    def __init__(self):
        self.gpu = cuda.Cuda()
        self.stream, self.second = self.gpu.stream(), self.gpu.stream()
        self.functions = self.gpu.functions(PTX, KERNELS)
        self.memory, self.pinned = self.gpu.device_memory(1 << 20), self.gpu.pinned_memory(1 << 20)
        self.random = random.Random(1)

    def run(self, *names, times=1, stream=None):
        for _ in range(times):
            for name in names:
                self.gpu.check(self.gpu.launch(self.functions[name], 8, 1, 1, 256, 1, 1, 0, stream or self.stream, None,
                                               None))

    def load(self, size=4096):
        self.gpu.check(self.gpu.copy(self.memory, self.pinned, ctypes.c_size_t(size), cuda.HOST_TO_DEVICE, self.stream))

    def train(self, layers=12):
        self.load()
        self.run("embed")
        self.run("gemm", "softmax", "norm", times=layers)
        self.run("loss")
        self.run("grad", times=layers)
        self.run("update")

    # --- kinds -----------------------------------------------------------------------------------------------------

    def training(self, _):
        self.train()
        self.gpu.synchronize()

    def named(self, _):
        """Steps have NVTX names; data is loaded between them."""
        self.load()
        with nvtx.annotate("train_step"):
            self.train()
            self.gpu.synchronize()
        time.sleep(0.002)

    def numbered(self, step):
        with nvtx.annotate(f"ProfilerStep#{step}"):
            with nvtx.annotate("forward"):
                self.train()
            self.gpu.synchronize()

    def evaluating(self, step):
        """Every tenth step is followed by an evaluation."""
        self.train()
        self.gpu.synchronize()
        if step % 10 == 9:
            self.run("eval_gemm", "softmax", times=40)

    def accumulating(self, _):
        """Four micro-batches a step."""
        for _ in range(4):
            self.load()
            self.run("gemm", "norm", times=4)
            self.run("grad", times=4)
        self.run("update")
        self.gpu.synchronize()

    def warming(self, step):
        """The first steps launch each kernel many times."""
        if step < 5:
            self.run("gemm", "grad", times=100)
        self.train()
        self.gpu.synchronize()

    def short(self, _):
        """Steps of two milliseconds."""
        self.run("tiny", times=5)
        self.gpu.synchronize()
        time.sleep(0.0015)

    def graphs(self, step):
        if step == 0:
            self.graph = self.gpu.capture(self.stream, self.train)
        self.gpu.launch_graph(self.graph, self.stream)
        self.gpu.synchronize()

    def serving(self, _):
        """Requests arrive at irregular times."""
        time.sleep(self.random.expovariate(100))
        self.load()
        self.run("embed")
        self.run("gemm", "softmax", times=6)
        self.gpu.synchronize()

    def decoding(self, _):
        """A step is a token; each reads more of the cache."""
        self.run("embed")
        self.run("decode", "norm", times=8)
        self.load(4)
        self.gpu.synchronize()

    def pipeline(self, _):
        """Two streams, and a wait only at the end of the step."""
        self.load()
        self.run("stage", times=6)
        self.run("gemm", times=6, stream=self.second)
        self.gpu.synchronize()

    def logging(self, step):
        """No waits within steps; the loss is read every twentieth step."""
        self.train()
        if step % 20 == 19:
            self.gpu.synchronize()
        time.sleep(0.01)

    def synchronizing(self, _):
        """Three micro-batches and an update, each with a sync of its own."""
        for _ in range(3):
            self.load()
            self.run("gemm", "norm", times=4)
            self.gpu.synchronize()
        self.run("grad", times=6)
        self.run("update")
        self.gpu.synchronize()

    def checkpointing(self, step):
        """Every twentieth step is followed by a copy of the model, which has a sync of its own."""
        self.train(6)
        self.gpu.synchronize()
        if step % 20 == 19:
            for _ in range(20):
                self.load(1 << 20)
            self.gpu.synchronize()
            time.sleep(0.05)


KINDS = ("training", "named", "numbered", "evaluating", "accumulating", "warming", "short", "graphs", "serving", "decoding",
         "pipeline", "logging", "synchronizing", "checkpointing")


def main():
    kind, steps = sys.argv[1], int(sys.argv[2])
    program = Program()
    for step in range(steps):
        getattr(program, kind)(step)
    print(steps)


if __name__ == "__main__":
    main()
