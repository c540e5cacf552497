#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Kills every process that has NAME=VALUE in its environment, once standard input ends:

    tests/e2e/guardian.py NAME=VALUE

Whoever started it holds the other end of that pipe, which closes however its holder ends.
"""

import os
import pathlib
import signal
import sys
import time

PATIENCE_S = 30  # for processes that the kernel doesn't end at once
# A process has no environment for a moment while it executes a program.
LOOKS_IN_VAIN = 10


def marked(variable):
    """The processes, other than zombies, with this in their environment."""
    for environment in pathlib.Path("/proc").glob("[0-9]*/environ"):
        try:
            if variable in environment.read_bytes().split(b"\0"):
                yield int(environment.parent.name)
        except OSError:  # it has ended, or is another user's
            continue


def main(variable):
    sys.stdin.buffer.read()
    deadline = time.monotonic() + PATIENCE_S
    # Repeatedly: a process may start another one just before it is killed.
    in_vain = 0
    while in_vain < LOOKS_IN_VAIN and time.monotonic() < deadline:
        found = list(marked(variable.encode()))
        in_vain = 0 if found else in_vain + 1
        for pid in found:
            try:
                os.kill(pid, signal.SIGKILL)
            except OSError:
                continue
        time.sleep(0.02)


if __name__ == "__main__":
    main(sys.argv[1])
