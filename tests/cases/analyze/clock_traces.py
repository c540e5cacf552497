# SPDX-License-Identifier: Apache-2.0
"""clock_traces.py FILE [low=FROM-TO] [slow=STEP] [steps=N]: a made Nsight Systems export with N steps (20) of ten kernels of 1 ms
on GPU 1, which the process numbers 0, each kernel of the step `slow` of 2 ms, and GPU metrics (made: no trace that we have
holds any): a clock of 1980 MHz each 100 µs, in Hz as Nsight Systems stores it, and of 990 MHz in the steps FROM to TO."""

import sqlite3
import sys

options = {"low": "-1--1", "slow": "-1", "steps": "20"} | dict(argument.split("=") for argument in sys.argv[2:])
first, last = (int(step) for step in options["low"].rsplit("-", 1)) if options["low"] != "-1--1" else (-1, -1)
PROCESS, TYPE = 4711 << 24, 1 << 56 | 1
database = sqlite3.connect(sys.argv[1])
run = database.execute
run("CREATE TABLE StringIds (id INTEGER NOT NULL PRIMARY KEY, value TEXT NOT NULL)")
run("INSERT INTO StringIds VALUES (1, 'gemm'), (2, 'cudaLaunchKernel')")
run("""CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER NOT NULL,
    streamId INTEGER NOT NULL, correlationId INTEGER, globalPid INTEGER, demangledName INTEGER NOT NULL)""")
run("""CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INTEGER NOT NULL, end INTEGER NOT NULL, globalTid INTEGER,
    correlationId INTEGER, nameId INTEGER NOT NULL)""")
run("CREATE TABLE NVTX_EVENTS (start INTEGER NOT NULL, end INTEGER, eventType INTEGER NOT NULL, text TEXT, globalTid INTEGER)")
run("CREATE TABLE TARGET_INFO_CUDA_DEVICE (gpuId INTEGER NOT NULL, cudaId INTEGER NOT NULL, pid INTEGER NOT NULL)")
run("INSERT INTO TARGET_INFO_CUDA_DEVICE VALUES (1, 0, 4711)")
run("""CREATE TABLE TARGET_INFO_GPU_METRICS (typeId INTEGER NOT NULL, sourceId INTEGER NOT NULL, typeName TEXT NOT NULL,
    metricId INTEGER NOT NULL, metricName TEXT NOT NULL)""")
run("INSERT INTO TARGET_INFO_GPU_METRICS VALUES (?, 1, 'made', 0, 'GPC Clock Frequency [MHz]'), (?, 1, 'made', 1, 'SMs Active')",
    (TYPE, TYPE))
run("""CREATE TABLE GPU_METRICS (rawTimestamp INTEGER, timestamp INTEGER, typeId INTEGER NOT NULL, metricId INTEGER NOT NULL,
    value INTEGER NOT NULL)""")
now, correlation = 1_000_000, 0
for step in range(int(options["steps"])):
    begin = now
    for _ in range(10):
        correlation += 1
        run("INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (?, ?, ?, ?, 2)",
            (now - 10_000, now - 5_000, PROCESS + 4711, correlation))
        end = now + (2_000_000 if step == int(options["slow"]) else 1_000_000)
        run("INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (?, ?, 0, 7, ?, ?, 1)", (now, end, correlation, PROCESS))
        now = end
    run("INSERT INTO NVTX_EVENTS VALUES (?, ?, 59, ?, ?)",
        (begin - 20_000, now - 20_000, f"step {step}", PROCESS + 4711))
    for time in range(begin, now, 100_000):
        clock = 990_000_000 if first <= step <= last else 1_980_000_000
        run("INSERT INTO GPU_METRICS VALUES (?, ?, ?, 0, ?), (?, ?, ?, 1, 98)", (time, time, TYPE, clock, time, time, TYPE))
database.commit()
