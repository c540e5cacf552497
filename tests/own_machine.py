#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs a command on a machine of its own, as far as gpusonde and simulated GPUs can tell:

    tests/own_machine.py COMMAND…

It has its own processes (agents observe those of their pid namespace: src/sources/ebpf/bpf/pids.h), loopback, shared memory
(/dev/shm, where simulated GPUs are), and copy of the inject library: consumers attach to a file, so those of another machine
would wake this one's programs. Its CPUs, its kernel's counters, its cgroups and its disk are everyone's. What the command
started ends with it. Exits with the command's status, or with NOT_ALLOWED if this user may not make namespaces.
"""

import fcntl
import os
import pathlib
import shutil
import socket
import struct
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
NAMESPACES = ("unshare", "--pid", "--fork", "--kill-child", "--mount-proc", "--net", "--ipc", "--mount")
NOT_ALLOWED = 126
SHARED_MEMORY = pathlib.Path("/dev/shm")
# linux/sockios.h, linux/if.h
SIOCSIFFLAGS, IFF_UP = 0x8914, 1


def entering(command):
    """The command that runs this one on a new machine."""
    return [*NAMESPACES, sys.executable, __file__, "--inside", *command]


def allowed():
    return shutil.which("unshare") is not None and subprocess.run(entering(["true"]), capture_output=True, check=False).returncode == 0


def mount(*arguments):
    subprocess.run(["mount", *map(str, arguments)], check=True)


def prepare():
    """Makes these namespaces, which have just been made, a machine."""
    with socket.socket() as any_socket:
        fcntl.ioctl(any_socket, SIOCSIFFLAGS, struct.pack("16sH14x", b"lo", IFF_UP))
    mount("-t", "tmpfs", "-o", "mode=1777", "tmpfs", SHARED_MEMORY)
    library = pathlib.Path(os.environ.get("GPUSONDE_BUILD", ROOT / "build/release")) / "lib/libgpusonde-inject.so"
    if library.exists():
        own = SHARED_MEMORY / library.name
        shutil.copy(library, own)
        mount("--bind", own, library)


def run(command):
    """The status of the command. Process 1 also waits for processes whose parents have ended."""
    child = subprocess.Popen(command)
    while (ended := os.wait())[0] != child.pid:
        pass
    return os.waitstatus_to_exitcode(ended[1])


def main(arguments):
    if not arguments:
        sys.exit(__doc__)
    if arguments[0] == "--inside":
        prepare()
        status = run(arguments[1:])
        return status if status >= 0 else 128 - status
    if not allowed():
        print("own_machine: this user may not make namespaces; run it as root", file=sys.stderr)
        return NOT_ALLOWED
    command = entering(arguments)
    os.execvp(command[0], command)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
