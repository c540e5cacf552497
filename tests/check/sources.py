#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every source has a licence line and a bounded length, and is executable if it begins with `#!`."""

import os
import re

import tree

MAX_LINES = 600

# Files that may be longer, each with its reason.
LONG = {}

SOURCE = re.compile(r"\.(h|cpp|c|py|cmake|ts|tsx|mjs|css|sh)$|(^|/)(CMakeLists\.txt|Makefile)$|\.proto$")
# Written by others and unchanged, with their own licence.
FOREIGN = re.compile(r"(^|/)third_party/")
SPDX = "SPDX-License-Identifier:"


def is_source(path, text):
    return not FOREIGN.search(path) and bool(SOURCE.search(path) or text.startswith("#!"))


def is_executable(path):
    return os.access(tree.ROOT / path, os.X_OK)


def check(files, is_executable=is_executable):
    findings = []
    for path, text in sorted(files.items()):
        if not is_source(path, text) or not text:
            continue
        if not any(SPDX in line for line in text.splitlines()[:3]):
            findings.append(f"{path}:1: no `{SPDX} …` in the first three lines")
        if text.startswith("#!") and not is_executable(path):
            findings.append(f"{path}:1: begins with `#!` and can't be run: chmod +x it, or leave the line out")
        lines = len(text.splitlines())
        if lines > MAX_LINES and path not in LONG:
            findings.append(f"{path}:{MAX_LINES}: {lines} lines; find the second file hiding inside, "
                            "or give tests/check/sources.py the reason why there is none")
    for path in sorted(LONG):
        if len(files.get(path, "").splitlines()) <= MAX_LINES:
            findings.append(f"tests/check/sources.py: {path} needs no exception any more")
    return findings


if __name__ == "__main__":
    tree.main(check)
