# SPDX-License-Identifier: Apache-2.0
"""gzip_bomb.py FILE WHERE: a trace of a few hundred kB that inflates to 300 MB in one name (WHERE is event), in the text
before the events (before) or in that after them (after)."""

import gzip
import sys

HEAD = {"event": b'{"traceEvents": [{"ph": "X", "cat": "kernel", "name": "', "before": b'{"a": "',
        "after": b'{"traceEvents": [], "a": "'}[sys.argv[2]]
with gzip.open(sys.argv[1], "wb") as file:
    file.write(HEAD)
    for _ in range(300):
        file.write(b"a" * 1_000_000)
    file.write(b'"}')
