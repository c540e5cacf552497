# SPDX-License-Identifier: Apache-2.0
"""How the programs of this folder read traces that compute a report's figures from their definitions."""

import gc
import gzip
import json
import sqlite3

gc.disable()  # it would walk the events again and again: a third of the time that reading them takes

GPU = {"kernel", "gpu_memcpy", "gpu_memset", "memcpy", "memset"}  # categories, in lower case
CALLS = {"cuda_runtime", "cuda_driver", "hip_runtime", "runtime"}


def nanoseconds(value):
    """Microseconds, as the text that stands in a trace: 12.3456 is 12345 ns."""
    whole, _, fraction = str(value).partition(".")
    return int(whole) * 1000 + int((fraction + "000")[:3])


def read_kineto(path):
    """The trace's JSON, numbers with a fraction as text. `path` ends with .json or .json.gz."""
    with (gzip.open if path.endswith(".gz") else open)(path, "rt", encoding="utf-8", errors="replace") as file:
        return json.load(file, parse_float=str)


def complete_events(path):
    """(category in lower case, begin, end, event) of each complete event of a Kineto trace, in its order."""
    trace = read_kineto(path)
    for event in trace["traceEvents"] if isinstance(trace, dict) else trace:
        if event.get("ph") == "X":
            begin = nanoseconds(event["ts"])
            yield event.get("cat", "").lower(), begin, begin + nanoseconds(event.get("dur", 0)), event


class Nsys:
    """An Nsight Systems export."""

    def __init__(self, path):
        self.database = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
        self.database.text_factory = lambda text: text.decode(errors="replace")
        self.strings = dict(self.database.execute("SELECT id, value FROM StringIds"))
        self.tables = {name for (name,) in self.database.execute("SELECT name FROM sqlite_master")}

    def activities(self, kind, columns):
        """The rows of CUPTI_ACTIVITY_KIND_`kind`; none where the export lacks the table."""
        table = f"CUPTI_ACTIVITY_KIND_{kind}"
        return self.database.execute(f"SELECT {columns} FROM {table}") if table in self.tables else []
