# SPDX-License-Identifier: Apache-2.0
"""What the victims of the benchmark have in common: a GPU to give work to, work for a CPU, and the log of their steps."""

import argparse
import ctypes
import hashlib
import os
import pathlib
import signal
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "examples/train"))

import cuda  # noqa: E402
from replay import KERNEL  # noqa: E402

BLOCK = os.urandom(32 << 10)
MB = 1 << 20


class Gpu:
    """The first device, with kernels of any name and duration, on one stream unless another is given. Raises cuda.CudaError."""

    def __init__(self, *names):
        self.cuda = cuda.Cuda()
        self.stream = self.cuda.stream()
        head = ".version 7.0\n.target sm_70\n.address_size 64\n\n"
        self.functions = self.cuda.functions(head + "\n".join(KERNEL.format(name=name) for name in names), names)
        self.memory, self.pinned = self.cuda.device_memory(16 * MB), self.cuda.pinned_memory(16 * MB)
        self.parameters = {}  # by duration; calls hold their addresses

    def launch(self, name, duration_us, stream=None):
        if duration_us not in self.parameters:
            duration = ctypes.c_uint64(int(duration_us * 1000))
            self.parameters[duration_us] = ((ctypes.c_void_p * 1)(ctypes.addressof(duration)), duration)
        self.cuda.check(self.cuda.launch(self.functions[name], 64, 1, 1, 256, 1, 1, 0, stream or self.stream,
                                         self.parameters[duration_us][0], None))

    def upload(self, size):
        self.cuda.check(self.cuda.copy(self.memory, self.pinned, size, cuda.HOST_TO_DEVICE, self.stream))

    def download(self, size):
        self.cuda.check(self.cuda.copy(self.pinned, self.memory, size, cuda.DEVICE_TO_HOST, self.stream))

    def wait(self):
        """Waits for all work of the stream; returns the ns that it took."""
        begin = time.monotonic_ns()
        self.cuda.check(self.cuda.runtime.cudaStreamSynchronize(self.stream))
        return time.monotonic_ns() - begin


def compute(blocks):
    """CPU work without Python's lock: about 16 us a block."""
    for _ in range(blocks):
        hashlib.sha256(BLOCK).digest()


class Switch:
    """A factor that SIGUSR1 switches between 1 and `heavier`; in shared memory, so that workers of the program see it."""

    def __init__(self, heavier):
        import multiprocessing

        self.factor, self.heavier = multiprocessing.RawValue("i", 1), heavier
        signal.signal(signal.SIGUSR1, self.switch)

    def switch(self, _number, _frame):
        self.factor.value = self.heavier if self.factor.value == 1 else 1


class StepLog:
    """A line is a step: begin and end (CLOCK_MONOTONIC, ns), and ns of it spent waiting for data, for a disk (within that), and
    for the GPU. Before them is `pid N`, the process whose steps these are."""

    def __init__(self, arguments):
        self.file = open(arguments.step_log, "w", encoding="ascii", buffering=1)
        self.file.write(f"pid {os.getpid()}\n")
        self.ends = time.monotonic() + arguments.seconds

    def goes_on(self):
        return time.monotonic() < self.ends

    def write(self, begin, data_ns=0, disk_ns=0, gpu_ns=0):
        self.file.write(f"{begin} {time.monotonic_ns()} {data_ns} {disk_ns} {gpu_ns}\n")


def main(structures, text):
    """Runs the structure that the command line names."""
    parser = argparse.ArgumentParser(description=text, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("structure", choices=sorted(structures))
    parser.add_argument("--step-log", type=pathlib.Path, required=True)
    parser.add_argument("--seconds", type=float, required=True)
    parser.add_argument("--file", type=pathlib.Path, help="of random bytes, for those that read from a disk")
    parser.add_argument("--heavier", type=int, default=4, help="times the usual CPU work after SIGUSR1")
    arguments = parser.parse_args()
    structures[arguments.structure](arguments)
