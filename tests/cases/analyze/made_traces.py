#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""made_traces.py FOLDER: small traces in the forms of real ones, so that the cases need nothing but the tree.

    nsys/two_ranks.sqlite       two processes of one job, correlation ids of both from 1
    nsys/one_rank.sqlite        one process; names that are not UTF-8, as in the Rodinia traces
    kineto/rank0.json.gz        two ranks of a job, with operators, communication and copies
    kineto/rank1.json.gz
    kineto/reversed.json.gz     the events of rank 0 in the opposite order, without distributedInfo
    kineto/cpu_only.json.gz     no GPU events

The events come from tools/synthetic_trace, which must be built.
"""

import gzip
import os
import pathlib
import re
import sqlite3
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[3]
KERNELS = 4020  # of each job: ten steps of two ranks


def synthetic(*options):
    build = os.environ.get("GPUSONDE_BUILD", str(ROOT / "build/release"))
    subprocess.run([build + "/bin/synthetic_trace", "--kernels", str(KERNELS), *options], check=True)


def spoil_names(path):
    """Puts bytes that are not UTF-8 into the names of two kernels."""
    database = sqlite3.connect(path)
    for place, (row,) in enumerate(database.execute(
            "SELECT id FROM StringIds WHERE value LIKE '%kernel_%' ORDER BY id LIMIT 2").fetchall()):
        database.execute("UPDATE StringIds SET value = CAST(? AS TEXT) WHERE id = ?",
                         (b"Fan\xff%d(float*, \xe2\x28)" % place, row))
    database.commit()
    database.close()


def compress(path, text):
    with gzip.GzipFile(path, "wb", mtime=0) as file:
        file.write(text.encode())


def kineto_event_texts(text):
    """The head of a trace, and the text of its events."""
    head, _, body = text.partition('"traceEvents": [')
    events = re.split(r",\n(?=  \{)", body[: body.rindex("]")].strip("\n "))
    return head, events


def main():
    folder = pathlib.Path(sys.argv[1])
    (folder / "nsys").mkdir(parents=True)
    (folder / "kineto").mkdir()
    synthetic("-o", str(folder / "nsys/two_ranks.sqlite"), "--ranks", "2")
    synthetic("-o", str(folder / "nsys/one_rank.sqlite"), "--seed", "2", "--variable-factor", "3")
    spoil_names(folder / "nsys/one_rank.sqlite")
    plain = folder / "kineto/plain.{}.json"
    synthetic("--format", "kineto", "-o", str(plain), "--ranks", "2", "--copy-effect", "1.3", "--late-rank", "1",
              "--late-ns", "200000")
    for rank in (0, 1):
        source = pathlib.Path(str(plain).replace("{}", str(rank)))
        text = source.read_text()
        compress(folder / f"kineto/rank{rank}.json.gz", text)
        source.unlink()
        if rank == 0:
            head, events = kineto_event_texts(text)
            head = re.sub(r'"distributedInfo": \{.*?\},', "", head)
            for name, chosen in (("reversed", events[::-1]),
                                 ("cpu_only", [event for event in events if '"cat": "cpu_op"' in event])):
                compress(folder / f"kineto/{name}.json.gz", head + '"traceEvents": [\n' + ",\n".join(chosen) + "\n]}\n")


main()
