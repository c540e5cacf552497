# SPDX-License-Identifier: Apache-2.0
"""Run times of kernel programs, as Linux counts them while kernel.bpf_stats_enabled is set. Needs root, bpftool and
clang."""

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
    """The kernel counts meanwhile. Yields whether it does."""
    try:
        before = ENABLED.read_text()
        ENABLED.write_text("1")
    except OSError:
        yield False
        return
    try:
        yield shutil.which("bpftool") is not None
    finally:
        ENABLED.write_text(before)


def runs():
    """{id of a kernel program: (its run time so far, ns; how often it ran)}"""
    shown = subprocess.run(["bpftool", "--json", "prog", "show"], check=True, stdout=subprocess.PIPE).stdout
    return {program["id"]: (program.get("run_time_ns", 0), program.get("run_cnt", 0)) for program in json.loads(shown)}


def run_s(counted, others, counting_ns):
    """Run time of those of runs() that aren't among `others`, without what counting took of it."""
    return sum(ns - count * counting_ns for number, (ns, count) in counted.items() if number not in others) / 1e9


def counting_ns():
    """What counting adds to each run, ns: the run time of a program that does nothing."""
    with tempfile.TemporaryDirectory() as folder:
        program, packet = pathlib.Path(folder) / "empty.o", pathlib.Path(folder) / "packet"
        pinned = pathlib.Path(f"/sys/fs/bpf/empty-{os.getpid()}")
        packet.write_bytes(bytes(64))
        subprocess.run([shutil.which("clang-19") or "clang", "-O2", "-target", "bpf", "-c", EMPTY, "-o", program], check=True)
        subprocess.run(["bpftool", "prog", "load", program, pinned], check=True)
        try:
            with counting():
                subprocess.run(["bpftool", "prog", "run", "pinned", pinned, "data_in", packet, "repeat", str(EMPTY_RUNS)],
                               check=True, stdout=subprocess.DEVNULL)
            shown = subprocess.run(["bpftool", "--json", "prog", "show", "pinned", pinned], check=True,
                                   stdout=subprocess.PIPE).stdout
        finally:
            pinned.unlink()
    one = json.loads(shown)
    if not one.get("run_cnt"):
        raise RuntimeError(f"the kernel doesn't count run times: {ENABLED} can't be set")
    return one["run_time_ns"] / one["run_cnt"]
