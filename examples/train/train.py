#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains on compressed records, with a GPU that replays the work of a real training, and prints where the time goes."""

import argparse
import math
import pathlib
import signal
import sys
import time

from cuda import CudaError
from data import CLASSES, FEATURES, Loader, make_dataset
from device import Device
from model import Model
from nvtx import annotate
from replay import Stream, StreamError

STREAMS = pathlib.Path(__file__).resolve().parent.parent.parent / "data/kernel-streams"
BATCHES = 4
LEARNT = 32  # records per batch that the model learns from: more would delay the launches
RATE = 0.5
REPORT_EVERY_S = 1.0


class Times:
    """The cost of steps: seconds of waiting for data, and of the steps themselves."""

    def __init__(self):
        self.steps = 0
        self.data_s = 0.0
        self.compute_s = 0.0
        self.loss = math.nan  # of the last step

    def add(self, data_s, compute_s, loss):
        self.steps += 1
        self.loss = loss
        self.data_s += data_s
        self.compute_s += compute_s

    def __str__(self):
        total_ms, data_ms, compute_ms = (1e3 * seconds / max(self.steps, 1) for seconds in
                                         (self.data_s + self.compute_s, self.data_s, self.compute_s))
        return f"{total_ms:.1f} ms a step: {data_ms:.1f} ms for its data, {compute_ms:.1f} ms computing"


def forward(device, model, inputs):
    device.upload(inputs)
    device.run("load")
    device.run("forward")
    device.run("work")  # of a kernel stream whose phases are not known
    model.forward(inputs[:LEARNT])


def backward(device, model, labels):
    device.run("backward")
    return model.backward(labels[:LEARNT])


def optimizer_step(device, model, gradient):
    device.run("zero_grad")
    device.run_as_graph("optimizer")
    model.optimizer_step(gradient, RATE)


def train_step(device, model, inputs, labels):
    with annotate("step"):
        device.begin_step()
        forward(device, model, inputs)
        loss = model.loss(labels[:LEARNT])
        optimizer_step(device, model, backward(device, model, labels))
        device.synchronize()
    return loss


class CtrlC:
    """Whether Ctrl-C was pressed. A flag instead of KeyboardInterrupt, which is lost if it is raised while Python runs a
    destructor."""

    def __init__(self):
        self.pressed = False
        signal.signal(signal.SIGINT, self.on_signal)

    def on_signal(self, _number, _frame):
        self.pressed = True


def train(loader, device, model, steps, seconds, times, ctrl_c):
    """Trains until `steps` steps, `seconds` or Ctrl-C, whichever is first; keeps `times` up to date."""
    started = reported = time.perf_counter()
    recent = Times()
    while not ctrl_c.pressed and times.steps < steps and time.perf_counter() - started < seconds:
        before = time.perf_counter()
        inputs, labels = next(loader)
        loaded = time.perf_counter()
        loss = train_step(device, model, inputs, labels)
        done = time.perf_counter()
        for sums in (times, recent):
            sums.add(loaded - before, done - loaded, loss)
        if done - reported >= REPORT_EVERY_S:
            print(f"step {times.steps}: loss {loss:.3f}; {recent}", flush=True)
            reported, recent = done, Times()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workers", type=int, default=1, help="processes that load data; 0: the training loop loads it")
    parser.add_argument("--stream", type=pathlib.Path, default=STREAMS / "dlrm-train-a100.stream",
                        help="the GPU's work in a step (default: data/kernel-streams/dlrm-train-a100.stream)")
    parser.add_argument("--steps", type=int, help="stop after this many steps")
    parser.add_argument("--seconds", type=float, help="stop after this time (default: 10 s, unless --steps is given)")
    arguments = parser.parse_args()
    if arguments.workers < 0:
        parser.error("--workers can't be negative")
    steps = math.inf if arguments.steps is None else arguments.steps
    seconds = arguments.seconds
    if seconds is None:
        seconds = 10 if arguments.steps is None else math.inf

    dataset = make_dataset(BATCHES)  # before the device, which would wait for it
    try:
        device = Device(Stream(arguments.stream))
    except (CudaError, StreamError, OSError) as error:
        sys.exit(f"train: {error}")
    print(f"on {device.name}", flush=True)

    times = Times()
    ctrl_c = CtrlC()
    loader = Loader(dataset, arguments.workers)
    try:
        train(loader, device, Model(FEATURES, CLASSES), steps, seconds, times, ctrl_c)
    finally:
        loader.close()
    print(f"{times.steps} steps, {arguments.workers} workers; loss {times.loss:.6f}; {times}", flush=True)
    return 130 if ctrl_c.pressed else 0  # the shell's status for Ctrl-C


if __name__ == "__main__":
    sys.exit(main())
