#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""clock_jump.py FOLDER: traces of a hundred steps whose clock jumps between the 50th and the next one.

    steady.json     it doesn't jump
    forward.json    an hour ahead
    back.json       an hour back
    operator.json   an hour ahead, but an operator runs across it, so it is known that the program waited
    pause.json      five minutes ahead: as long as a program may wait
    forward.sqlite  an hour ahead, in the form of an Nsight Systems export
    system.sqlite   the same, but a call of the operating system lasts from before the jump until after it

A step takes 10 ms: its range 9.9 ms, with ten kernels of 500 µs, each 20 µs after the end of its launch.
"""

import json
import pathlib
import sqlite3
import sys

BASE_US = 1_700_000_000_000_000
HOUR_US = 3_600_000_000
FIRST, LAST = 50 * 10_000 - 100, 50 * 10_000  # where nothing is in progress


def events():
    """Kind, name, start and duration in us, and number of the launch."""
    launch = 0
    for step in range(100):
        at = step * 10_000
        yield "user_annotation", f"ProfilerStep#{step}", at, 9_900, None
        for kernel in range(10):
            launch += 1
            begin = at + 100 + kernel * 600
            yield "cuda_runtime", "cudaLaunchKernel", begin, 10, launch
            yield "kernel", "kernel", begin + 30, 500, launch


def jumping(by_us):
    for kind, name, start, duration, launch in events():
        yield kind, name, start + (by_us if start >= LAST else 0), duration, launch


def write_json(path, all_events):
    lines = []
    for kind, name, start, duration, launch in all_events:
        gpu = kind == "kernel"
        args = {"correlation": launch, **({"device": 0, "stream": 7} if gpu else {})} if launch else {}
        lines.append(json.dumps({"ph": "X", "cat": kind, "name": name, "pid": 0 if gpu else 1, "tid": 7 if gpu else 1,
                                 "ts": BASE_US + start, "dur": duration, "args": args}))
    path.write_text('{"traceEvents": [\n' + ",\n".join(lines) + "\n]}\n")


def write_sqlite(path, all_events, system_calls):
    path.unlink(missing_ok=True)
    database = sqlite3.connect(path)
    database.executescript("""
        CREATE TABLE META_DATA_EXPORT (name TEXT, value TEXT);
        INSERT INTO META_DATA_EXPORT VALUES ('EXPORT_SCHEMA_VERSION', '3.11.0');
        CREATE TABLE StringIds (id INTEGER NOT NULL PRIMARY KEY, value TEXT NOT NULL);
        CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER NOT NULL,
            contextId INTEGER NOT NULL, streamId INTEGER NOT NULL, correlationId INTEGER, globalPid INTEGER,
            demangledName INTEGER NOT NULL, shortName INTEGER NOT NULL, gridX INTEGER, gridY INTEGER, gridZ INTEGER,
            blockX INTEGER, blockY INTEGER, blockZ INTEGER);
        CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INTEGER NOT NULL, end INTEGER NOT NULL, eventClass INTEGER NOT NULL,
            globalTid INTEGER, correlationId INTEGER, nameId INTEGER NOT NULL, returnValue INTEGER NOT NULL,
            callchainId INTEGER);
        CREATE TABLE NVTX_EVENTS (start INTEGER NOT NULL, end INTEGER, eventType INTEGER NOT NULL, text TEXT,
            globalTid INTEGER, domainId INTEGER, textId INTEGER);
        CREATE TABLE OSRT_API (start INTEGER NOT NULL, end INTEGER NOT NULL, eventClass INTEGER NOT NULL,
            globalTid INTEGER, correlationId INTEGER, nameId INTEGER NOT NULL, returnValue INTEGER NOT NULL,
            nestingLevel INTEGER, callchainId INTEGER);
        INSERT INTO StringIds VALUES (1, 'kernel'), (2, 'cudaLaunchKernel'), (3, 'poll');
    """)
    pid = 4321 << 24
    for kind, name, start, duration, launch in all_events:
        times = (start * 1000, (start + duration) * 1000)
        if kind == "kernel":
            database.execute("INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (?,?,0,1,7,?,?,1,1,8,1,1,128,1,1)",
                             (*times, launch, pid))
        elif kind == "cuda_runtime":
            database.execute("INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (?,?,0,?,?,2,0,NULL)",
                             (*times, pid | 4321, launch))
        else:
            database.execute("INSERT INTO NVTX_EVENTS VALUES (?,?,59,?,?,0,NULL)", (*times, name, pid | 4321))
    for start, end in system_calls:
        database.execute("INSERT INTO OSRT_API VALUES (?,?,0,?,NULL,3,0,0,NULL)", (start * 1000, end * 1000, pid | 4321))
    database.commit()
    database.close()


def main():
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    write_json(folder / "steady.json", events())
    write_json(folder / "forward.json", jumping(HOUR_US))
    write_json(folder / "back.json", jumping(-HOUR_US))
    across = ("cpu_op", "aten::item", FIRST - 50, HOUR_US + 500, None)
    write_json(folder / "operator.json", [*jumping(HOUR_US), across])
    write_json(folder / "pause.json", jumping(300_000_000))
    write_sqlite(folder / "forward.sqlite", jumping(HOUR_US), [(10, 20)])
    write_sqlite(folder / "system.sqlite", jumping(HOUR_US), [(FIRST - 50, HOUR_US + FIRST + 500)])


main()
