# SPDX-License-Identifier: Apache-2.0
"""many_names.py FILE COUNT: an Nsight Systems export with COUNT kernels of 1 µs, each with a name of its own."""

import sqlite3
import sys

count = int(sys.argv[2])
database = sqlite3.connect(sys.argv[1])
database.execute("CREATE TABLE StringIds (id INTEGER NOT NULL PRIMARY KEY, value TEXT NOT NULL)")
database.execute("""CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER NOT NULL, end INTEGER NOT NULL,
    deviceId INTEGER NOT NULL, contextId INTEGER NOT NULL, streamId INTEGER NOT NULL, correlationId INTEGER,
    globalPid INTEGER, demangledName INTEGER NOT NULL, shortName INTEGER NOT NULL, gridX INTEGER NOT NULL,
    gridY INTEGER NOT NULL, gridZ INTEGER NOT NULL, blockX INTEGER NOT NULL, blockY INTEGER NOT NULL,
    blockZ INTEGER NOT NULL)""")
database.executemany("INSERT INTO StringIds VALUES (?, ?)", ((i, f"fused_kernel_{i}_of_a_graph") for i in range(count)))
database.executemany("INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (?, ?, 0, 1, 7, ?, 79037, ?, ?, 1, 1, 1, 1, 1, 1)",
                     ((i * 2000, i * 2000 + 1000, i, i, i) for i in range(count)))
database.commit()
