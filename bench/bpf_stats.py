# SPDX-License-Identifier: Apache-2.0
"""Run times of eBPF programs, which Linux measures while kernel.bpf_stats_enabled is set. Needs root, bpftool and clang."""

import contextlib
import json
import os
import pathlib
import shutil
import subprocess
import tempfile

ENABLED = pathlib.Path("/proc/sys/kernel/bpf_stats_enabled")
EMPTY = pathlib.Path(__file__).resolve().parent / "empty.bpf.c"
EMPTY_RUNS = 1_000_000


@contextlib.contextmanager
def counting():
    """Enables the measurement. Yields its cost per run of a program, in ns, or None if it is not available."""
    try:
        before = ENABLED.read_text()
        ENABLED.write_text("1")
    except OSError:
        yield None
        return
    try:
        yield empty_run_ns() if shutil.which("bpftool") else None
    finally:
        ENABLED.write_text(before)


def runs():
    """{id of an eBPF program: (its run time so far in ns, number of runs)}"""
    shown = subprocess.run(["bpftool", "--json", "prog", "show"], check=True, stdout=subprocess.PIPE).stdout
    return {program["id"]: (program.get("run_time_ns", 0), program.get("run_cnt", 0)) for program in json.loads(shown)}


class Programs:
    """The programs loaded after this was created. `counting_ns`: from counting(); None: not measured."""

    def __init__(self, counting_ns):
        self.counting_ns = counting_ns
        self.others = set() if counting_ns is None else set(runs())

    def spent_s(self):
        """(their run time so far, the cost of measuring it)"""
        if self.counting_ns is None:
            return 0.0, 0.0
        counted_runs = [counted for number, counted in runs().items() if number not in self.others]
        counting_s = self.counting_ns * sum(count for _, count in counted_runs) / 1e9
        return sum(ns for ns, _ in counted_runs) / 1e9 - counting_s, counting_s


def empty_run_ns():
    """The measured run time of an empty program."""
    with tempfile.TemporaryDirectory() as folder:
        program, packet = pathlib.Path(folder) / "empty.o", pathlib.Path(folder) / "packet"
        pinned = pathlib.Path(f"/sys/fs/bpf/empty-{os.getpid()}")
        packet.write_bytes(bytes(64))
        subprocess.run([shutil.which("clang-19") or "clang", "-O2", "-target", "bpf", "-c", EMPTY, "-o", program], check=True)
        subprocess.run(["bpftool", "prog", "load", program, pinned], check=True)
        try:
            subprocess.run(["bpftool", "prog", "run", "pinned", pinned, "data_in", packet, "repeat", str(EMPTY_RUNS)],
                           check=True, stdout=subprocess.DEVNULL)
            shown = subprocess.run(["bpftool", "--json", "prog", "show", "pinned", pinned], check=True,
                                   stdout=subprocess.PIPE).stdout
        finally:
            pinned.unlink()
    one = json.loads(shown)
    return one["run_time_ns"] / one["run_cnt"]
