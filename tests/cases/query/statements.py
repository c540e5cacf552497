#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The SQL statements that pages and a command's help show, each followed by a NUL.

    tests/cases/query/statements.py FILE …

A statement is quoted, in `backticks` or a ```sql block, and begins with SELECT. "…" in one stands for an id.
"""

import pathlib
import re
import sys

STATEMENT = re.compile(r"""(?P<quote>["'`])(?P<quoted>SELECT\s[^…]*?)(?P=quote)(?=\s|[;),|.]|$)|^```sql\n(?P<block>SELECT\s.*?)\n```$""",
                       re.MULTILINE | re.DOTALL)
ID = "'" + 32 * "0" + "'"


def main():
    for page in sys.argv[1:]:
        for found in STATEMENT.finditer(pathlib.Path(page).read_text(encoding="utf-8")):
            print((found["quoted"] or found["block"]).replace("…", ID), end="\0")


if __name__ == "__main__":
    main()
