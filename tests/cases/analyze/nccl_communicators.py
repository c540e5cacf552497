# SPDX-License-Identifier: Apache-2.0
"""nccl_communicators.py FOLDER [late=RANK] [payload=blob|json|none]: made Nsight Systems exports rank0.sqlite to rank3.sqlite
of a job whose ranks work in two communicators, {0, 1} and {2, 3}, whose kernels have one name, the second always 700 µs
behind: by names and ends alone all four ranks would belong together, with clocks that differ. Each rank runs 100
all-reduces, each in a group as PyTorch calls it; the rank that is `late` comes 300 µs after the other. Payloads are as NCCL's layouts say, in the bytes that nsys-ai describes (docs/analyze.md: unconfirmed).

nccl_communicators.py TRACE FILE [one]: a copy of a real trace whose export has no payloads; its ranges of NCCL get made ones:
a communicator for each process, or one for all. Its kernels are called all-gathers, as sends and receives are matched only if
they end together."""

import json
import pathlib
import shutil
import sqlite3
import struct
import sys

CREATED, MOVED = 16777218, 16777223  # layouts, with the numbers of a real export


def blob(layout, *fields):
    payload = struct.pack(*fields)
    return struct.pack("<QQQQ", 1, layout, len(payload), 32 + len(payload)) + payload


def moved(communicator, form):
    if form == "blob":
        return blob(MOVED, "<QQii", communicator, 4096, 0, 0), None
    return None, json.dumps({"NCCL communicator ID": communicator, "Message size [bytes]": 4096})


def declare(database):
    database.execute("""CREATE TABLE NVTX_PAYLOAD_SCHEMA_ENTRIES (domainId INTEGER NOT NULL, schemaId INTEGER NOT NULL,
        idx INTEGER NOT NULL, flags INTEGER, type INTEGER, name TEXT, description TEXT, arrayOrUnionDetail INTEGER,
        offset INTEGER)""")
    for layout, entries in ((CREATED, ("NCCL communicator ID", "No. of ranks", "Rank", "CUDA device")),
                            (MOVED, ("NCCL communicator ID", "Message size [bytes]", "Reduction operation"))):
        for index, name in enumerate(entries):
            offset = [None, 8, 12 if layout == CREATED else 16, 16][index]
            database.execute("INSERT INTO NVTX_PAYLOAD_SCHEMA_ENTRIES VALUES (1, ?, ?, NULL, 18, ?, NULL, NULL, ?)",
                             (layout, index, name, offset))


def made(folder, late, form):
    folder.mkdir(exist_ok=True)
    for rank in range(4):
        communicator = (0xFEDCBA9876543210, 0x0123456789ABCDEF)[rank // 2]
        process = (1000 + rank) << 24
        thread = process + 1000 + rank
        path = folder / f"rank{rank}.sqlite"
        path.unlink(missing_ok=True)
        database = sqlite3.connect(path)
        run = database.execute
        run("CREATE TABLE StringIds (id INTEGER NOT NULL PRIMARY KEY, value TEXT NOT NULL)")
        run("""INSERT INTO StringIds VALUES (1, 'ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgs)'), (2, 'cudaLaunchKernelExC'),
            (3, 'ncclGroupStart'), (4, 'ncclAllReduce'), (5, 'ncclGroupEnd'), (6, 'ncclCommInitRank')""")
        run("""CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER NOT NULL,
            contextId INTEGER NOT NULL, streamId INTEGER NOT NULL, correlationId INTEGER, globalPid INTEGER,
            demangledName INTEGER NOT NULL, shortName INTEGER NOT NULL)""")
        run("""CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INTEGER NOT NULL, end INTEGER NOT NULL, globalTid INTEGER,
            correlationId INTEGER, nameId INTEGER NOT NULL)""")
        run("""CREATE TABLE NVTX_EVENTS (start INTEGER NOT NULL, end INTEGER, eventType INTEGER NOT NULL, text TEXT,
            globalTid INTEGER, textId INTEGER, domainId INTEGER, jsonText TEXT, binaryData TEXT)""")
        declare(database)

        def nvtx(start, name, payload=(None, None)):
            run("INSERT INTO NVTX_EVENTS VALUES (?, ?, 59, NULL, ?, ?, 1, ?, ?)",
                (start, start + 1000, thread, name, payload[1], payload[0]))

        if form == "blob":
            nvtx(1000, 6, (blob(CREATED, "<Qiii", communicator, 2, rank % 2, rank), None))
        end = 10_000_000 + 700_000 * (rank // 2)
        for step in range(100):
            end += 2_000_000
            waits = late // 2 == rank // 2 and late >= 0 and late != rank
            duration = 100_000 + (300_000 if waits else 0)
            call = end - duration - 20_000
            nvtx(call - 6000, 3)
            nvtx(call - 4000, 4, (None, None) if form == "none" else moved(communicator, form))
            nvtx(call - 500, 5)
            run("INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (?, ?, ?, ?, 2)", (call, call + 400, thread, step + 1))
            run("INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (?, ?, ?, 1, 20, ?, ?, 1, 1)",
                (end - duration, end, rank, step + 1, process))
        database.commit()


def filled(trace, file, one):
    shutil.copyfile(trace, file)
    pathlib.Path(file).chmod(0o600)
    database = sqlite3.connect(file)
    run = database.execute
    run("UPDATE StringIds SET value = replace(value, 'SendRecv', 'AllGather')")
    layouts = [row[0] for row in run("""SELECT DISTINCT schemaId FROM NVTX_PAYLOAD_SCHEMA_ENTRIES WHERE name = 'Peer rank'
        ORDER BY 1""")]
    for row, thread in run("""SELECT e.rowid, e.globalTid FROM NVTX_EVENTS e JOIN StringIds s ON s.id = e.textId
            WHERE e.domainId = 1 AND s.value IN ('ncclSend', 'ncclRecv')""").fetchall():
        run("UPDATE NVTX_EVENTS SET binaryData = ? WHERE rowid = ?",
            (blob(layouts[0], "<QQii", 77 + (0 if one else thread >> 24 & 0xFFFFFF), 4096, 0, 0), row))
    database.commit()


options = dict(argument.split("=") for argument in sys.argv[2:] if "=" in argument)
if sys.argv[1].endswith(".sqlite"):
    filled(sys.argv[1], sys.argv[2], "one" in sys.argv[3:])
else:
    made(pathlib.Path(sys.argv[1]), int(options.get("late", -1)), options.get("payload", "blob"))
