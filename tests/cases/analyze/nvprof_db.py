# SPDX-License-Identifier: Apache-2.0
"""nvprof_db.py FILE [serial] [uncollected] [ranges] [clock=NS]: a database with nvprof's documented tables, with two kernels (in the table of serialised
kernels, if `serial`), copies, a set, calls, a range, and empty tables, as nvprof writes them. `uncollected` adds a kernel and a call whose times nvprof could
not collect; `ranges` adds two ranges and a mark; `clock` is added to the times of the GPU."""

import sqlite3
import sys

KERNEL = """(_id_ INTEGER PRIMARY KEY AUTOINCREMENT, cacheConfig BLOB NOT NULL, sharedMemoryConfig INT NOT NULL,
    registersPerThread INT NOT NULL, start INT NOT NULL, end INT NOT NULL, completed INT NOT NULL, deviceId INT NOT NULL,
    contextId INT NOT NULL, streamId INT NOT NULL, gridX INT NOT NULL, gridY INT NOT NULL, gridZ INT NOT NULL,
    blockX INT NOT NULL, blockY INT NOT NULL, blockZ INT NOT NULL, correlationId INT NOT NULL, gridId INT NOT NULL,
    name INT NOT NULL)"""
COPY = """(_id_ INTEGER PRIMARY KEY AUTOINCREMENT, copyKind INT NOT NULL, srcKind INT NOT NULL, dstKind INT NOT NULL,
    flags INT NOT NULL, bytes INT NOT NULL, start INT NOT NULL, end INT NOT NULL, deviceId INT NOT NULL,
    contextId INT NOT NULL, streamId INT NOT NULL, {} correlationId INT NOT NULL)"""
CALL = """(_id_ INTEGER PRIMARY KEY AUTOINCREMENT, cbid INT NOT NULL, start INT NOT NULL, end INT NOT NULL,
    processId INT NOT NULL, threadId INT NOT NULL, correlationId INT NOT NULL, returnValue INT NOT NULL)"""
SECOND = 1_600_000_000_000_000_000
GPU = SECOND + sum(int(argument[6:]) for argument in sys.argv[2:] if argument.startswith("clock="))

database = sqlite3.connect(sys.argv[1])
kernels = "KERNEL" if "serial" in sys.argv[2:] else "CONCURRENT_KERNEL"
run = database.execute
run("CREATE TABLE StringTable (_id_ INTEGER PRIMARY KEY AUTOINCREMENT, value TEXT NOT NULL UNIQUE)")
run("CREATE TABLE Version (version INTEGER)")
run("INSERT INTO Version VALUES (9)")
for table, columns in (("KERNEL", KERNEL), ("CONCURRENT_KERNEL", KERNEL), ("MEMCPY", COPY.format("")),
                       ("MEMCPY2", COPY.format("srcDeviceId INT NOT NULL, dstDeviceId INT NOT NULL,")),
                       ("RUNTIME", CALL), ("DRIVER", CALL)):
    run(f"CREATE TABLE CUPTI_ACTIVITY_KIND_{table} {columns}")
run("""CREATE TABLE CUPTI_ACTIVITY_KIND_MEMSET (_id_ INTEGER PRIMARY KEY AUTOINCREMENT, value INT NOT NULL,
    bytes INT NOT NULL, start INT NOT NULL, end INT NOT NULL, deviceId INT NOT NULL, contextId INT NOT NULL,
    streamId INT NOT NULL, correlationId INT NOT NULL, flags INT NOT NULL, memoryKind INT NOT NULL)""")
run("""CREATE TABLE CUPTI_ACTIVITY_KIND_MARKER (_id_ INTEGER PRIMARY KEY AUTOINCREMENT, flags INT NOT NULL,
    timestamp INT NOT NULL, id INT NOT NULL, objectKind INT NOT NULL, objectId BLOB NOT NULL, name INT NOT NULL,
    domain INT NOT NULL)""")
run("INSERT INTO StringTable VALUES (1, '_Z4gemmPKfi'), (2, 'relu'), (3, 'step')")
for start, end, correlation, name in ((1000, 5000, 7, 1), (6000, 7000, 8, 2)):
    run(f"INSERT INTO CUPTI_ACTIVITY_KIND_{kernels} VALUES (NULL, x'00', 1, 32, ?, ?, 0, 0, 1, 7, 4, 1, 1, 256, 1, 1, ?, 1, ?)",
        (GPU + start, GPU + end, correlation, name))
if "uncollected" in sys.argv[2:]:
    run(f"INSERT INTO CUPTI_ACTIVITY_KIND_{kernels} VALUES (NULL, x'00', 1, 32, 0, 0, 0, 0, 1, 7, 4, 1, 1, 256, 1, 1, 13, 1, 1)")
    run("INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (NULL, 211, 0, 0, 4711, 4711, 13, 0)")
run("INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES (NULL, 1, 1, 3, 0, 4096, ?, ?, 0, 1, 7, 9)", (GPU + 8000, GPU + 8500))
run("INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY2 VALUES (NULL, 10, 3, 3, 0, 512, ?, ?, 1, 1, 7, 0, 1, 10)",
    (GPU + 8000, GPU + 8250))
run("INSERT INTO CUPTI_ACTIVITY_KIND_MEMSET VALUES (NULL, 0, 64, ?, ?, 0, 1, 7, 11, 0, 3)", (GPU + 9000, GPU + 9010))
for table, cbid, start, end, correlation in (("RUNTIME", 211, 100, 200, 7), ("RUNTIME", 211, 300, 350, 8),
                                             ("DRIVER", 307, 120, 180, 12)):
    run(f"INSERT INTO CUPTI_ACTIVITY_KIND_{table} VALUES (NULL, ?, ?, ?, 4711, 4711, ?, 0)",
        (cbid, SECOND + start, SECOND + end, correlation))
for flags, time, name in ((2, 50, 3), (4, 9500, 0)):
    run("INSERT INTO CUPTI_ACTIVITY_KIND_MARKER VALUES (NULL, ?, ?, 1, 2, x'00', ?, 0)", (flags, SECOND + time, name))
if "ranges" in sys.argv[2:]:  # one in another, and a mark, which is no range
    for flags, time, number in ((2, 1000, 2), (2, 2000, 3), (1, 2500, 4), (4, 3000, 3), (4, 4000, 2)):
        run("INSERT INTO CUPTI_ACTIVITY_KIND_MARKER VALUES (NULL, ?, ?, ?, 2, x'00', 3, 0)", (flags, SECOND + time, number))
database.commit()
