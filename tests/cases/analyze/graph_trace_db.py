# SPDX-License-Identifier: Apache-2.0
"""graph_trace_db.py FILE: a small Nsight Systems export in which CUDA graphs are traced as a whole: 100 launches of 1 ms,
60 of graph 7 and 40 of graph 9, every 1.14 ms, each launched 10 µs before, and then one kernel of 1 ms. The process is
4711 on device 0."""

import sqlite3
import sys

PROCESS = 4711 << 24
database = sqlite3.connect(sys.argv[1])
run = database.execute
run("CREATE TABLE StringIds (id INTEGER NOT NULL PRIMARY KEY, value TEXT NOT NULL)")
run("INSERT INTO StringIds VALUES (1, 'gemm'), (2, 'cudaGraphLaunch_v10000'), (3, 'cudaLaunchKernel_v7000')")
run("""CREATE TABLE CUPTI_ACTIVITY_KIND_GRAPH_TRACE (start INTEGER NOT NULL, end INTEGER NOT NULL,
    deviceId INTEGER NOT NULL, graphId INTEGER NOT NULL, graphExecId INTEGER NOT NULL, contextId INTEGER NOT NULL,
    streamId INTEGER NOT NULL, correlationId INTEGER, globalPid INTEGER)""")
run("""CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER NOT NULL,
    contextId INTEGER NOT NULL, streamId INTEGER NOT NULL, correlationId INTEGER, globalPid INTEGER,
    demangledName INTEGER NOT NULL, shortName INTEGER NOT NULL, gridX INTEGER NOT NULL, gridY INTEGER NOT NULL,
    gridZ INTEGER NOT NULL, blockX INTEGER NOT NULL, blockY INTEGER NOT NULL, blockZ INTEGER NOT NULL)""")
run("""CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INTEGER NOT NULL, end INTEGER NOT NULL, eventClass INTEGER NOT NULL,
    globalTid INTEGER, correlationId INTEGER, nameId INTEGER NOT NULL, returnValue INTEGER NOT NULL)""")
for i in range(101):
    start = 1_140_000 * i
    run("INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (?, ?, 0, ?, ?, ?, 0)",
        (start - 10_000, start - 5_000, PROCESS + 4711, i + 1, 2 if i < 100 else 3))
    if i < 100:
        run("INSERT INTO CUPTI_ACTIVITY_KIND_GRAPH_TRACE VALUES (?, ?, 0, ?, ?, 1, 7, ?, ?)",
            (start, start + 1_000_000, 7 if i < 60 else 9, 8, i + 1, PROCESS))
    else:
        run("INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (?, ?, 0, 1, 7, ?, ?, 1, 1, 4, 1, 1, 256, 1, 1)",
            (start, start + 1_000_000, i + 1, PROCESS))
database.commit()
