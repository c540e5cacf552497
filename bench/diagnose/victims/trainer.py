#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A victim of the benchmark: a training loop with loader processes; it logs every step.

In each step the GPU does the work of one step of a real training (data/kernel-streams). Loaders decompress records, or read them
from a disk (--read-mb: with direct I/O, --cached: through the page cache), and the main thread may write to it (--write-kb).
Signals change the program's own load: SIGUSR1 makes loading --heavier times the work (and normal again) or, with --extra hash,
makes loaders derive keys as well; SIGUSR2 starts or stops --own-threads processes of its own that keep CPUs busy, by adding up
or (--own compress) by compressing.

A line of the log is a step: begin and end (CLOCK_MONOTONIC, ns), ns of it spent waiting for data, for the disk
(within loading) and for the GPU.
"""

import argparse
import hashlib
import mmap
import multiprocessing
import os
import pathlib
import random
import signal
import sys
import time
import zlib

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "examples/train"))

import data  # noqa: E402
from device import Device  # noqa: E402
from model import Model  # noqa: E402
from nvtx import annotate  # noqa: E402
from replay import Stream  # noqa: E402

MB = 1 << 20
KEY_ROUNDS = 40_000  # for 64 records, about 20 ms


class Disk:
    """Reads random places of a file, with direct I/O unless `cached`."""

    def __init__(self, path, cached):
        self.file = os.open(path, os.O_RDONLY | (0 if cached else os.O_DIRECT))
        self.size = os.fstat(self.file).st_size
        self.buffer = mmap.mmap(-1, MB)

    def read(self, megabytes):
        """Reads one record; returns the ns that it took."""
        begin = time.monotonic_ns()
        for _ in range(megabytes):
            at = random.randrange(self.size // MB) * MB
            os.preadv(self.file, [self.buffer], at)
        return time.monotonic_ns() - begin


def load(dataset, index, times, extra):
    """Loads a batch, and does additional work if `times` isn't 1."""
    if extra == "hash" and times > 1:
        hashlib.pbkdf2_hmac("sha256", b"batch", b"key", KEY_ROUNDS * (times - 1))
        times = 1
    for _ in range(times):
        batch = data.load_batch(dataset[index % len(dataset)])
    return batch


def load_forever(dataset, heavier, extra, disk_path, read_mb, cached, pipe):
    disk = Disk(disk_path, cached) if read_mb else None
    index = 0
    try:
        while True:
            disk_ns = disk.read(read_mb) if disk else 0
            pipe.send((load(dataset, index, heavier.value, extra), disk_ns))
            index += 1
    except (BrokenPipeError, KeyboardInterrupt):
        pass


def busy(parent, own):
    block = os.urandom(256 << 10)
    while os.getppid() == parent:
        zlib.compress(block) if own == "compress" else sum(range(10_000))


class Switches:
    """The settings that signals change."""

    def __init__(self, heavier, own_threads, own):
        self.loads = multiprocessing.get_context("spawn").Value("i", 1)
        self.heavier, self.own_threads, self.own = heavier, own_threads, own
        self.children = []
        signal.signal(signal.SIGUSR1, self.on_heavier)
        signal.signal(signal.SIGUSR2, self.on_own)

    def on_heavier(self, _number, _frame):
        self.loads.value = self.heavier if self.loads.value == 1 else 1

    def on_own(self, _number, _frame):
        if self.children:
            for child in self.children:
                child.terminate()
            self.children = []
            return
        self.children = [multiprocessing.get_context("spawn").Process(target=busy, args=(os.getpid(), self.own), daemon=True)
                         for _ in range(self.own_threads)]
        for child in self.children:
            child.start()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--step-log", type=pathlib.Path, required=True)
    parser.add_argument("--seconds", type=float, required=True)
    parser.add_argument("--stream", default="dlrm-train-a100")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--records", type=int, default=48, help="of a batch")
    parser.add_argument("--learnt", type=int, default=4, help="records of a batch that the model learns from")
    parser.add_argument("--file", type=pathlib.Path)
    parser.add_argument("--read-mb", type=int, default=0)
    parser.add_argument("--cached", action="store_true")
    parser.add_argument("--write-kb", type=int, default=0)
    parser.add_argument("--heavier", type=int, default=3)
    parser.add_argument("--extra", choices=("load", "hash"), default="load")
    parser.add_argument("--own-threads", type=int, default=3)
    parser.add_argument("--own", choices=("add", "compress"), default="add")
    arguments = parser.parse_args()

    data.RECORDS = arguments.records
    dataset = data.make_dataset(4)
    context = multiprocessing.get_context("spawn")
    switches = Switches(arguments.heavier, arguments.own_threads, arguments.own)
    pipes = []
    for _ in range(arguments.workers):
        ours, theirs = context.Pipe(duplex=False)
        context.Process(target=load_forever, daemon=True,
                        args=(dataset, switches.loads, arguments.extra, arguments.file, arguments.read_mb, arguments.cached,
                              theirs)).start()
        theirs.close()
        pipes.append(ours)
    device = Device(Stream(ROOT / f"data/kernel-streams/{arguments.stream}.stream"))
    model = Model(data.FEATURES, data.CLASSES)
    written = os.open(f"{arguments.step_log}.data", os.O_WRONLY | os.O_CREAT | os.O_DSYNC) if arguments.write_kb else -1
    block = os.urandom(arguments.write_kb << 10)
    ends = time.monotonic() + arguments.seconds
    step = 0
    with open(arguments.step_log, "w", encoding="ascii", buffering=1) as log:
        while time.monotonic() < ends:
            begin = time.monotonic_ns()
            (inputs, labels), disk_ns = pipes[step % len(pipes)].recv()
            loaded = time.monotonic_ns()
            with annotate("step"):
                device.begin_step()
                device.upload(inputs[:arguments.learnt])
                for phase in ("load", "forward", "work", "backward", "zero_grad"):
                    device.run(phase)
                model.forward(inputs[:arguments.learnt])
                model.optimizer_step(model.backward(labels[:arguments.learnt]), 0.5)
                device.run_as_graph("optimizer")
                waits = time.monotonic_ns()
                device.synchronize()
                synced = time.monotonic_ns()
            if written >= 0:
                os.pwrite(written, block, 0)
                disk_ns += time.monotonic_ns() - synced
            log.write(f"{begin} {time.monotonic_ns()} {loaded - begin} {disk_ns} {synced - waits}\n")
            step += 1
    for child in multiprocessing.active_children():
        child.terminate()


if __name__ == "__main__":
    main()
