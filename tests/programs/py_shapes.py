# SPDX-License-Identifier: Apache-2.0
"""Python code in the forms that a profiler meets, each busy for a known share of the CPU time.

Usage: py_shapes.py SECONDS. Works with CPython 3.9 and newer.
"""

import functools
import multiprocessing
import multiprocessing.popen_fork  # otherwise imported when the first child starts, and its code freed after it has run
import sys
import threading
import time


def spin(seconds):
    end = time.thread_time() + seconds
    value = 0
    while time.thread_time() < end:
        for i in range(1000):
            value += i  # LINE: spin
    return value


class Loader:
    def load(self, seconds):
        return spin(seconds)


def forward(seconds):
    # Through C: sorted() calls back into Python.
    return sorted([1], key=functools.partial(lambda seconds, _: spin(seconds), seconds))


def batches(seconds):
    yield spin(seconds)
    yield spin(seconds)


def backward(seconds):
    return sum(batches(seconds / 2))


def child(seconds):
    spin(seconds)


def run_shapes(seconds):
    parts = 10
    for _ in range(parts):
        Loader().load(seconds * 0.5 / parts)
        forward(seconds * 0.3 / parts)
        backward(seconds * 0.2 / parts)
    worker = threading.Thread(target=child, args=(seconds * 0.25,), name="loader")
    worker.start()
    worker.join()
    process = multiprocessing.get_context("fork").Process(target=child, args=(seconds * 0.25,))
    process.start()
    process.join()
    sys.exit(process.exitcode)


if __name__ == "__main__":
    run_shapes(float(sys.argv[1]))
