# SPDX-License-Identifier: Apache-2.0
"""Occupies a CPU two thirds of the time, except for programs with higher priority, while its standard input is open.

greedy.py CPU NAME: prints "ready" when it begins.
"""

import ctypes
import os
import select
import sys
import time

PR_SET_NAME = 15

ctypes.CDLL(None).prctl(PR_SET_NAME, sys.argv[2].encode(), 0, 0, 0)
os.sched_setaffinity(0, {int(sys.argv[1])})
os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(50))
print("ready", flush=True)
while not select.select([sys.stdin], [], [], 0.004)[0]:
    until = time.monotonic() + 0.008
    while time.monotonic() < until:
        pass
