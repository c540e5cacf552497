#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A victim of the benchmark: an inference server whose requests arrive at irregular times in batches of any size; it logs every
request.

A request is decompressed and copied to the GPU, which does the work of a real network (data/kernel-streams; larger batches have
larger grids and take longer); then its answer is hashed. Nothing marks its beginning: there is no NVTX, and each answer is
followed by a pause of random length. All batch sizes are equally frequent, in random order, so that the mean time of a request
doesn't change by itself. SIGUSR1 makes another thread hold the lock of the records most of the time while it does nothing (and
stops that again).

A line of the log is a request: begin and end (CLOCK_MONOTONIC, ns), ns of it until its records are decompressed, 0, and ns
waiting for the GPU.
"""

import argparse
import hashlib
import os
import pathlib
import random
import signal
import sys
import threading
import time
import zlib

ROOT = pathlib.Path(__file__).resolve().parents[3]
HOLD_S = 0.03
sys.path.insert(0, str(ROOT / "examples/train"))

from device import Device  # noqa: E402
from replay import Stream  # noqa: E402


def scaled(step, batch):
    """The operations of a step for a batch: the first grid dimension grows in proportion, the time half as much."""
    made = []
    for phase, operations in step:
        made.append((phase, [(kind, stream, rest[0], (rest[1][0] * batch, *rest[1][1:]), rest[2], rest[3] * (1 + batch) // 2)
                             if kind == "k" else (kind, stream, *rest) for kind, stream, *rest in operations]))
    return made


def upload_of(kilobytes, batch):
    return [("upload", [("c", 0, "htod", kilobytes * batch << 10)])]


class Holder:
    """Another thread that holds a lock for long times while enabled."""

    def __init__(self):
        self.lock, self.wanted = threading.Lock(), threading.Event()
        signal.signal(signal.SIGUSR1, self.switch)
        threading.Thread(target=self.hold, daemon=True).start()

    def switch(self, _number, _frame):
        (self.wanted.clear if self.wanted.is_set() else self.wanted.set)()

    def hold(self):
        while self.wanted.wait():
            with self.lock:
                time.sleep(HOLD_S)
            time.sleep(HOLD_S / 20)


class Server:
    def __init__(self, path, batches, record_kb):
        self.holder = Holder()
        stream = Stream(path)
        (step, *_) = stream.steps
        stream.steps = [upload_of(record_kb, batch) + scaled(step, batch) for batch in batches]
        stream.largest_copy = max(stream.largest_copy, record_kb * max(batches) << 10)
        self.device = Device(stream)
        self.record = zlib.compress(os.urandom(record_kb << 9) * 2, 6)

    def serve(self, index, batch):
        """(ns until the records are decompressed, ns waiting for the GPU)"""
        begin = time.monotonic_ns()
        with self.holder.lock:
            pass  # the records may be read
        for _ in range(batch):
            answer = zlib.decompress(self.record)
        loaded = time.monotonic_ns()
        for calls in self.device.steps[index].values():
            for function, arguments in calls:
                if (code := function(*arguments)) != 0:
                    self.device.cuda.check(code)
        waits = time.monotonic_ns()
        self.device.synchronize()
        synced = time.monotonic_ns()
        for _ in range(batch):
            hashlib.sha256(answer).digest()
        return loaded - begin, synced - waits


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--step-log", type=pathlib.Path, required=True)
    parser.add_argument("--seconds", type=float, required=True)
    parser.add_argument("--stream", default="alexnet-infer-a100")
    parser.add_argument("--batches", type=int, nargs="+", default=[1, 2, 4, 8])
    parser.add_argument("--record-kb", type=int, default=256)
    parser.add_argument("--pause-ms", type=float, default=15, help="mean time between requests")
    parser.add_argument("--seed", type=int, default=0, help="seed of the order and the pauses; 0: random")
    arguments = parser.parse_args()
    generator = random.Random(arguments.seed or None)
    server = Server(ROOT / f"data/kernel-streams/{arguments.stream}.stream", arguments.batches, arguments.record_kb)
    ends = time.monotonic() + arguments.seconds
    queue = []
    with open(arguments.step_log, "w", encoding="ascii", buffering=1) as log:
        while time.monotonic() < ends:
            if not queue:
                queue = list(enumerate(arguments.batches))
                generator.shuffle(queue)
            begin = time.monotonic_ns()
            data_ns, gpu_ns = server.serve(*queue.pop())
            log.write(f"{begin} {time.monotonic_ns()} {data_ns} 0 {gpu_ns}\n")
            time.sleep(generator.expovariate(1e3 / arguments.pause_ms))


if __name__ == "__main__":
    main()
