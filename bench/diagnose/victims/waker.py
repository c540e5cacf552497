#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A victim for the overhead: a GPU program in which two threads wake each other --wakes times a second.

A line of the log is a step, as in trainer.py; it waits only for the GPU.
"""

import argparse
import pathlib
import sys
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[2]
sys.path[:0] = [str(HERE.parent), str(ROOT / "examples/train")]

import work  # noqa: E402
from device import Device  # noqa: E402
from nvtx import annotate  # noqa: E402
from replay import Stream  # noqa: E402


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--step-log", type=pathlib.Path, required=True)
    parser.add_argument("--seconds", type=float, required=True)
    parser.add_argument("--wakes", type=int, required=True)
    arguments = parser.parse_args()
    device = Device(Stream(ROOT / "data/kernel-streams/alexnet-infer-a100.stream"))
    threading.Thread(target=work.wake, args=(arguments.wakes,), daemon=True).start()
    ends = time.monotonic() + arguments.seconds
    with open(arguments.step_log, "w", encoding="ascii", buffering=1) as log:
        while time.monotonic() < ends:
            begin = time.monotonic_ns()
            with annotate("step"):
                device.begin_step()
                device.run("work")
                waits = time.monotonic_ns()
                device.synchronize()
            done = time.monotonic_ns()
            log.write(f"{begin} {done} 0 0 {done - waits}\n")
            time.sleep(0.02)


if __name__ == "__main__":
    main()
