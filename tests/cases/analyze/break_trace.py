#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""break_trace.py HOW IN OUT: damages an Nsight Systems export.

    cut      removes the last third
    circle   makes the root of the kernels' table its own first child
    types    adds kernels with texts as times, times out of range and reversed, a negative device, a span of 200 years
    noise    writes eight files OUT.1 … OUT.8 with 40 random bytes each, always the same ones
"""

import pathlib
import random
import shutil
import sqlite3
import struct
import sys

TABLE = "CUPTI_ACTIVITY_KIND_KERNEL"


def circle(data, root):
    """The b-tree page header is at the beginning of the page; type 5 is an interior page of a table."""
    size = struct.unpack_from(">H", data, 16)[0]
    page = (root - 1) * size
    if data[page] != 5:
        raise SystemExit("the table has one page only")
    (cell,) = struct.unpack_from(">H", data, page + 12)
    struct.pack_into(">I", data, page + cell, root)


def add_odd_rows(path):
    database = sqlite3.connect(path)
    columns = [row[1] for row in database.execute(f"PRAGMA table_info({TABLE})")]
    row = dict(zip(columns, database.execute(f"SELECT * FROM {TABLE} LIMIT 1").fetchone()))
    for change in ({"start": "soon"}, {"end": 2**62}, {"start": 100, "end": 50}, {"deviceId": -5},
                   {"start": 0, "end": 1}, {"start": 2 * 10**18, "end": 2 * 10**18 + 1},
                   {"start": -2 * 10**18, "end": -2 * 10**18 + 1}):
        changed = row | change
        database.execute(f"INSERT INTO {TABLE} ({', '.join(columns)}) VALUES ({', '.join('?' * len(columns))})",
                         [changed[name] for name in columns])
    database.commit()


def main():
    how, source, target = sys.argv[1:]
    data = bytearray(pathlib.Path(source).read_bytes())
    if how == "cut":
        data = data[:len(data) * 2 // 3]
    elif how == "circle":
        (root,) = sqlite3.connect(f"file:{source}?immutable=1", uri=True).execute(
            "SELECT rootpage FROM sqlite_schema WHERE name = ?", (TABLE,)).fetchone()
        circle(data, root)
    elif how == "types":
        shutil.copyfile(source, target)
        return add_odd_rows(target)
    elif how == "noise":
        random.seed(1)
        for number in range(1, 9):
            noisy = bytearray(data)
            for _ in range(40):
                noisy[random.randrange(100, len(noisy))] = random.randrange(256)
            pathlib.Path(f"{target}.{number}").write_bytes(noisy)
        return None
    pathlib.Path(target).write_bytes(data)
    return None


main()
