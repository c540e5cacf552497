#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Uses the resource that its arguments name until its standard input ends. Its process name doesn't reveal the purpose.

    work.py KIND AMOUNT [FILE]

KIND is cpu (AMOUNT processes that compute), idle-cpu (the same at the lowest priority, one tenth of the time), disk-read or
disk-write (AMOUNT processes, with direct I/O), cached-read (of FILE, through the page cache), memory (MB that are written once
and kept), memory-copy (AMOUNT processes that copy more than the caches hold), memory-fill (that write as much), receive (accepts
all traffic to the address FILE), send (AMOUNT streams to that address), fetch (AMOUNT streams of short transfers to it), flood
(AMOUNT streams of small datagrams to it), fragments (of datagrams that have to be fragmented), wake (two threads that wake each
other, AMOUNT times per second), stop (process FILE, for AMOUNT ms of each 90), freeze (the control group FILE, for AMOUNT ms of
each 430).
"""

import ctypes
import mmap
import os
import random
import select
import signal
import socket
import sys
import threading
import time

MB = 1 << 20
PORT = 9009
STOP_EVERY_MS, FREEZE_EVERY_MS = 90, 430  # no multiples of the instruments' period


def compute():
    while True:
        sum(range(20_000))


def compute_little():
    os.nice(19)
    while True:
        until = time.monotonic() + 0.01
        while time.monotonic() < until:
            pass
        time.sleep(0.09)


def read(path, flags):
    file = os.open(path, os.O_RDONLY | flags)
    size = os.fstat(file).st_size
    buffer = mmap.mmap(-1, 4 * MB)
    while True:
        os.preadv(file, [buffer], random.randrange(max(1, size // (4 * MB))) * 4 * MB)
        if not flags:
            time.sleep(0.02)


def write(path):
    file = os.open(f"{path}.{os.getpid()}", os.O_WRONLY | os.O_CREAT | os.O_DIRECT | os.O_DSYNC)
    os.unlink(f"{path}.{os.getpid()}")
    buffer = mmap.mmap(-1, MB)
    while True:
        os.pwritev(file, [buffer], random.randrange(64) * MB)


def hold(megabytes):
    held = mmap.mmap(-1, megabytes * MB)
    for at in range(0, len(held), mmap.PAGESIZE):
        held[at] = 1
    time.sleep(1e6)


def copy():
    source, target = (mmap.mmap(-1, 64 * MB) for _ in range(2))
    addresses = [ctypes.addressof(ctypes.c_char.from_buffer(buffer)) for buffer in (target, source)]
    while True:
        ctypes.memmove(*addresses, 64 * MB)


def fill():
    target = mmap.mmap(-1, 192 * MB)
    address = ctypes.addressof(ctypes.c_char.from_buffer(target))
    while True:
        ctypes.memset(address, 1, 192 * MB)


def receive(address):
    with socket.create_server((address, PORT), backlog=64) as server:
        while True:
            connection, _ = server.accept()
            if os.fork() == 0:
                ctypes.CDLL(None).prctl(1, 9, 0, 0, 0)
                while connection.recv(MB):
                    pass
                os._exit(0)
            connection.close()


def answer(requests, answers):
    while os.read(requests, 1):
        os.write(answers, b"a")


def wake(times_a_second):
    """Catches up on the scheduler's delays, so that the rate is the same on a busy machine."""
    requests, ask = os.pipe()
    answers, reply = os.pipe()
    threading.Thread(target=answer, args=(requests, reply), daemon=True).start()
    next_s = time.monotonic()
    while True:
        next_s += 1 / times_a_second
        if (left := next_s - time.monotonic()) > 0:
            time.sleep(left)
        os.write(ask, b"q")
        os.read(answers, 1)


def connect(address):
    while True:
        try:
            return socket.create_connection((address, PORT))
        except OSError:
            time.sleep(0.05)


def send(address, size):
    """Sends forever over one connection, or over a new one after this many bytes."""
    block = bytes(MB)
    while True:
        with connect(address) as connection:
            sent = 0
            while not size or sent < size:
                connection.sendall(block)
                sent += MB


def datagrams(address, size):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        data = bytes(size)
        while True:
            try:
                sender.sendto(data, (address, PORT))
            except OSError:  # there is no receiver
                pass


def stop(pid, milliseconds):
    while True:
        os.kill(pid, signal.SIGSTOP)
        time.sleep(milliseconds / 1000)
        os.kill(pid, signal.SIGCONT)
        time.sleep(max(0.0, STOP_EVERY_MS - milliseconds) / 1000)


def freeze(group, milliseconds):
    with open(f"{group}/freezer.state", "w", encoding="ascii", buffering=1) as state:
        while True:
            state.write("FROZEN\n")
            time.sleep(milliseconds / 1000)
            state.write("THAWED\n")
            time.sleep(max(0.0, FREEZE_EVERY_MS - milliseconds) / 1000)


def main():
    kind, amount, path = sys.argv[1], int(sys.argv[2]), (sys.argv[3:] or [""])[0]
    ctypes.CDLL(None).prctl(15, f"job-{random.randrange(16 ** 4):04x}".encode(), 0, 0, 0)
    jobs = {"cpu": compute, "idle-cpu": compute_little, "disk-read": lambda: read(path, os.O_DIRECT),
            "disk-write": lambda: write(path), "cached-read": lambda: read(path, 0), "memory": lambda: hold(amount),
            "memory-copy": copy, "memory-fill": fill, "receive": lambda: receive(path), "send": lambda: send(path, 0),
            "fetch": lambda: send(path, 4 * MB), "wake": lambda: wake(amount), "flood": lambda: datagrams(path, 32),
            "fragments": lambda: datagrams(path, 60_000), "stop": lambda: stop(int(path), amount),
            "freeze": lambda: freeze(path, amount)}
    children = []
    for _ in range(1 if kind in ("memory", "wake", "stop", "freeze") else amount):
        child = os.fork()
        if child == 0:
            ctypes.CDLL(None).prctl(1, 9, 0, 0, 0)  # PR_SET_PDEATHSIG, SIGKILL: end with the parent
            jobs[kind]()
        children.append(child)
    print("ready", flush=True)
    select.select([sys.stdin], [], [])
    for child in children:
        os.kill(child, 9)


if __name__ == "__main__":
    main()
