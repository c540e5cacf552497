#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A victim of the benchmark: data-parallel training with one process per rank; it logs every step.

In each step a rank computes on its CPU, launches the GPU work of one step of a real training, and then all ranks sum their
gradients over TCP: to rank 0 and back. --namespaces puts each rank into a network namespace of its own (which must exist), where
it is reached at --addresses. SIGUSR1 to a rank makes its own CPU work --heavier times as long (and normal again).

A log (that of rank 0; those of the others end in .1, .2, …) begins with `pid N`; a line of it is a step: begin and end (CLOCK_MONOTONIC, ns), ns of
it spent in the sum over all ranks, 0, and ns waiting for the GPU.
"""

import argparse
import ctypes
import hashlib
import os
import pathlib
import signal
import socket
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "examples/train"))

from device import Device  # noqa: E402
from nvtx import annotate  # noqa: E402
from replay import Stream  # noqa: E402

PATIENCE_S = 60
NEW_NETWORK = 0x40000000  # CLONE_NEWNET
DIE_WITH_PARENT = 1       # PR_SET_PDEATHSIG


def enter_namespace(name):
    libc = ctypes.CDLL(None, use_errno=True)
    with open(f"/run/netns/{name}", "rb") as file:
        if libc.setns(file.fileno(), NEW_NETWORK) != 0:
            raise OSError(ctypes.get_errno(), f"enter the network namespace {name}")


def receive(connection, size):
    data = bytearray(size)
    view = memoryview(data)
    while view:
        got = connection.recv_into(view)
        if got == 0:
            raise EOFError("another rank has ended")
        view = view[got:]
    return data


class Collective:
    """A sum over all ranks, as a star around rank 0."""

    def __init__(self, rank, ranks, address, port):
        if rank == 0:
            with socket.create_server((address, port), reuse_port=False, backlog=ranks) as server:
                server.settimeout(PATIENCE_S)
                self.others = [server.accept()[0] for _ in range(ranks - 1)]
        else:
            self.others = [self.connect(address, port)]
        for connection in self.others:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.rank = rank

    @staticmethod
    def connect(address, port):
        deadline = time.monotonic() + PATIENCE_S
        while True:
            try:
                return socket.create_connection((address, port))
            except OSError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.05)

    def add_up(self, gradient):
        """Only transfers the bytes; nothing is added."""
        if self.rank == 0:
            for connection in self.others:
                receive(connection, len(gradient))
            for connection in self.others:
                connection.sendall(gradient)
        else:
            self.others[0].sendall(gradient)
            receive(self.others[0], len(gradient))


class Work:
    """A rank's CPU work in each step."""

    def __init__(self, rounds, heavier):
        self.rounds, self.heavier, self.factor = rounds, heavier, 1
        self.block = os.urandom(64 << 10)
        signal.signal(signal.SIGUSR1, self.switch)

    def switch(self, _number, _frame):
        self.factor = self.heavier if self.factor == 1 else 1

    def run(self):
        for _ in range(self.rounds * self.factor):
            hashlib.sha256(self.block).digest()


def run_rank(arguments):
    ctypes.CDLL(None).prctl(DIE_WITH_PARENT, signal.SIGKILL, 0, 0, 0)
    if arguments.namespaces:
        enter_namespace(arguments.namespaces[arguments.rank])
    device = Device(Stream(ROOT / f"data/kernel-streams/{arguments.stream}.stream"))
    collective = Collective(arguments.rank, arguments.ranks, arguments.addresses[0], arguments.port)
    work = Work(arguments.work, arguments.heavier)
    gradient = os.urandom(arguments.gradient_kb << 10)
    ends = time.monotonic() + arguments.seconds
    name = f"{arguments.step_log}.{arguments.rank}" if arguments.rank else str(arguments.step_log)
    with open(name, "w", encoding="ascii", buffering=1) as log:
        log.write(f"pid {os.getpid()}\n")
        while time.monotonic() < ends:
            begin = time.monotonic_ns()
            with annotate("step"):
                work.run()
                device.begin_step()
                for phase in ("load", "forward", "work", "backward", "zero_grad"):
                    device.run(phase)
                device.run_as_graph("optimizer")
                waits = time.monotonic_ns()
                device.synchronize()
                synced = time.monotonic_ns()
                try:
                    collective.add_up(gradient)
                except (EOFError, ConnectionError):  # the other ranks have ended
                    return
            done = time.monotonic_ns()
            log.write(f"{begin} {done} {done - synced} 0 {synced - waits}\n")


def free_port():
    with socket.create_server(("", 0)) as server:
        return server.getsockname()[1]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--step-log", type=pathlib.Path, required=True)
    parser.add_argument("--seconds", type=float, required=True)
    parser.add_argument("--stream", default="alexnet-infer-a100")
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--gradient-kb", type=int, default=256)
    parser.add_argument("--work", type=int, default=60, help="64 KiB blocks hashed in each step")
    parser.add_argument("--heavier", type=int, default=4)
    parser.add_argument("--cpus", type=int, nargs="*", default=[], help="of each rank")
    parser.add_argument("--namespaces", nargs="*", default=[])
    parser.add_argument("--addresses", nargs="*", default=["127.0.0.1"])
    parser.add_argument("--rank", type=int, default=-1, help=argparse.SUPPRESS)
    parser.add_argument("--port", type=int, default=0, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.rank >= 0:
        if arguments.cpus:
            os.sched_setaffinity(0, {arguments.cpus[arguments.rank]})
        run_rank(arguments)
        return
    port = free_port()
    ranks = [subprocess.Popen([sys.executable, *sys.argv, "--rank", str(rank), "--port", str(port)])
             for rank in range(arguments.ranks)]
    sys.exit(max(abs(rank.wait()) for rank in ranks))


if __name__ == "__main__":
    main()
