#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""shuffle_trace.py TRACE OUT: writes the same events in another, fixed order."""

import gzip
import json
import random
import re
import shutil
import sqlite3
import sys


def shuffle_sqlite(path, out):
    shutil.copy(path, out)
    database = sqlite3.connect(out)
    database.text_factory = bytes
    names = [row[0].decode() for row in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    for name in names:
        if not re.match("CUPTI_ACTIVITY_KIND_|NVTX_EVENTS", name):
            continue
        rows = database.execute(f"SELECT * FROM {name}").fetchall()
        if not rows:
            continue
        random.shuffle(rows)
        database.execute(f"DELETE FROM {name}")
        places = ",".join("?" * len(rows[0]))
        database.executemany(f"INSERT INTO {name} VALUES ({places})", rows)
    database.commit()


def shuffle_kineto(path, out):
    text = gzip.open(path, "rb").read().decode(errors="surrogateescape")
    begin = re.match(r"\s*\[", text) or re.search(r'"traceEvents"\s*:\s*\[', text)
    decode, between = json.JSONDecoder().raw_decode, re.compile(r"[\s,]*")
    # The events keep their text: a double would lose digits.
    events, first = [], between.match(text, begin.end()).end()
    at = first
    while text[at] != "]":
        end = decode(text, at)[1]
        events.append(text[at:end])
        at = between.match(text, end).end()
    random.shuffle(events)
    with open(out, "w", encoding="utf-8", errors="surrogateescape", newline="") as file:
        file.write(text[:first] + ",".join(events) + text[at:])


def main():
    random.seed(4)
    (shuffle_sqlite if sys.argv[1].endswith(".sqlite") else shuffle_kineto)(sys.argv[1], sys.argv[2])


main()
