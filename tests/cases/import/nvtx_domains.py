# SPDX-License-Identifier: Apache-2.0
"""nvtx_domains.py FILE: a made Nsight Systems export with ranges in the default domain, in two named ones (by a text and by a
registered string), in one that another process numbers the same, and in one that is not named."""

import sqlite3
import sys

database = sqlite3.connect(sys.argv[1])
run = database.execute
run("CREATE TABLE StringIds (id INTEGER NOT NULL PRIMARY KEY, value TEXT NOT NULL)")
run("INSERT INTO StringIds VALUES (1, 'NCCL'), (2, 'ncclAllReduce')")
run("""CREATE TABLE NVTX_EVENTS (start INTEGER NOT NULL, end INTEGER, eventType INTEGER NOT NULL, text TEXT, globalTid INTEGER,
    textId INTEGER, domainId INTEGER)""")
for start, end, kind, text, pid, text_id, domain in (
        (1, None, 75, None, 1, 1, 1), (2, None, 75, "CCCL", 1, None, 2), (3, None, 75, "mine", 2, None, 1),
        (10, 20, 59, "step", 1, None, 0), (11, 15, 59, None, 1, 2, 1), (12, 14, 60, "sort", 1, None, 2),
        (13, 14, 59, "x", 2, None, 1), (16, 17, 59, "y", 1, None, 9), (18, 19, 59, "z", 1, None, None)):
    run("INSERT INTO NVTX_EVENTS VALUES (?, ?, ?, ?, ?, ?, ?)", (start, end, kind, text, pid << 24 | 5, text_id, domain))
database.commit()
