# SPDX-License-Identifier: Apache-2.0
"""What slows victims, or doesn't. A fault is a context manager over a running trial; the names are the manifest's, and
nothing that gpusonde sees bears them."""

import contextlib
import os
import pathlib
import signal
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent


def end(process):
    process.kill()
    process.wait()


@contextlib.contextmanager
def work(trial, kind, amount, file="", start=lambda command: command):
    """work.py in the injector's group; `start` says how, beside that."""
    command = start([sys.executable, HERE / "work.py", kind, int(amount), file])
    process = subprocess.Popen(trial.groups["injector"].command(command),
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        process.stdout.readline()
        yield
    finally:
        process.stdin.close()
        try:
            process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            end(process)


@contextlib.contextmanager
def loop(trial, command, amount):
    """A command over and over, so many times at once, in the injector's group."""
    shell = "while :; do " + command + " >/dev/null 2>&1; done"
    processes = [subprocess.Popen(trial.groups["injector"].command(["sh", "-c", shell]), stdin=subprocess.DEVNULL,
                                  start_new_session=True) for _ in range(int(amount))]
    try:
        yield
    finally:
        for process in processes:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


@contextlib.contextmanager
def quota(trial, share):
    """The victim's group gets this share of the CPU time that it used until now."""
    period_us = 100_000
    trial.groups["victim"].write("cpu", "cpu.cfs_quota_us", max(2000, int(share * trial.victim_cpus() * period_us)))
    try:
        yield
    finally:
        trial.groups["victim"].write("cpu", "cpu.cfs_quota_us", -1)


@contextlib.contextmanager
def memory_limit(trial, keep_mb):
    """The victim's group may keep what its processes hold, and so many MB of the page cache."""
    group = trial.groups["victim"]
    held = next(int(line.split()[1]) for line in group.read("memory", "memory.stat").splitlines()
                if line.startswith("rss "))
    group.write("memory", "memory.limit_in_bytes", held + (int(keep_mb) << 20))
    try:
        yield
    finally:
        group.write("memory", "memory.limit_in_bytes", -1)


@contextlib.contextmanager
def io_limit(trial, amount, kind):
    """The victim's group may read and write so much a second of the disk that the data files are on: bytes ("bps") or
    operations ("iops")."""
    device = os.stat(trial.disk_file).st_dev
    disk = f"{os.major(device)}:{os.minor(device)}"
    files = [f"blkio.throttle.{what}_{kind}_device" for what in ("read", "write")]
    for file in files:
        trial.groups["victim"].write("blkio", file, f"{disk} {int(amount)}")
    try:
        yield
    finally:
        for file in files:
            trial.groups["victim"].write("blkio", file, f"{disk} 0")


@contextlib.contextmanager
def traffic(trial, kind, streams):
    """From the one end of the ranks' link to the other."""
    address = trial.link.addresses[1]
    with work(trial, "receive", 1, address, lambda command: trial.link.command(1, command)), \
            work(trial, kind, streams, address, lambda command: trial.link.command(0, command)):
        yield


@contextlib.contextmanager
def queue_limit(trial, kilobytes):
    """What doesn't fit into so short a queue is lost."""
    trial.link.shape(0, int(kilobytes))
    try:
        yield
    finally:
        trial.link.shape(0)


@contextlib.contextmanager
def signalled(pid, number):
    os.kill(pid, number)
    try:
        yield
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)


@contextlib.contextmanager
def gpu(trial, *arguments, undo=()):
    trial.simgpu(*arguments)
    try:
        yield
    finally:
        if undo:
            trial.simgpu(*undo)


@contextlib.contextmanager
def gpu_neighbour(trial, share):
    process = trial.start_simgpu("neighbour", trial.length_s, share)
    try:
        yield
    finally:
        end(process)


@contextlib.contextmanager
def stopped_loader(trial):
    """A cause without a model: one of the victim's processes stands still, for a while, and again."""
    loader = trial.loader_pid()
    os.kill(loader, signal.SIGSTOP)
    try:
        yield
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(loader, signal.SIGCONT)


@contextlib.contextmanager
def nothing(_trial):
    yield


FAULTS = {
    "nothing": nothing,
    # train
    "compute": lambda trial, amount: work(trial, "cpu", amount),
    "compute-little": lambda trial, amount: work(trial, "idle-cpu", amount),
    "disk-read": lambda trial, amount: work(trial, "disk-read", amount, trial.disk_file),
    "cached-read": lambda trial, amount: work(trial, "cached-read", amount, trial.cached_file),
    "quota": quota,
    "memory-limit": memory_limit,
    "heavier-data": lambda trial, _amount: signalled(trial.victim_pid(), signal.SIGUSR1),
    "own-threads": lambda trial, _amount: signalled(trial.victim_pid(), signal.SIGUSR2),
    "gpu-neighbour": gpu_neighbour,
    "gpu-power-cap": lambda trial, watts: gpu(trial, "fault", "0", "power-cap", watts,
                                              undo=("fault", "0", "power-cap", "700")),
    "gpu-pcie-width": lambda trial, lanes: gpu(trial, "fault", "0", "pcie-width", lanes,
                                               undo=("fault", "0", "pcie-width", "0")),
    "io-limit": lambda trial, mb_s: io_limit(trial, mb_s * 1e6, "bps"),
    "traffic": lambda trial, amount: traffic(trial, "send", amount),
    "short-queue": queue_limit,
    "late-rank": lambda trial, _amount: signalled(trial.rank_pid(1), signal.SIGUSR1),
    "memory-copy": lambda trial, amount: work(trial, "memory-copy", amount),
    "stopped-loader": lambda trial, _amount: stopped_loader(trial),
    # test
    "compress": lambda trial, amount: loop(trial, f"head -c 8M {trial.cached_file} | xz -9 -T1 -c", amount),
    "disk-write": lambda trial, amount: work(trial, "disk-write", amount, trial.disk_file),
    "copy-file": lambda trial, amount: loop(
        trial, f"dd if={trial.disk_file} of=/dev/null bs=1M iflag=direct", amount),
    "io-operations": lambda trial, amount: io_limit(trial, amount, "iops"),
    "transfers": lambda trial, amount: traffic(trial, "fetch", amount),
    "held-rank": lambda trial, amount: work(
        trial, "cpu", amount, "", lambda command: ["taskset", "-c", str(trial.last_cpu()), *command]),
}
# Of these the smaller amount is the worse one.
LIMITS = ("quota", "memory-limit", "gpu-power-cap", "gpu-pcie-width", "io-limit", "io-operations", "short-queue")
RAMP = (1 / 3, 2 / 3, 1.0)  # of the amount, one after the other


def scaled(fault, amount, share):
    """So much of an amount: counts are whole and at least one."""
    less = amount / share if fault in LIMITS else amount * share
    return less if amount < 1 else max(1, round(less))


@contextlib.contextmanager
def both(trial, faults):
    """All of [(fault, amount), …] at once."""
    with contextlib.ExitStack() as stack:
        for fault, amount in faults:
            stack.enter_context(FAULTS[fault](trial, *([] if fault == "nothing" else [amount])))
        yield


def apply(trial, faults, shape, length_s):
    """Runs the faults for so long: all the time, one second on and two off, or more and more of them."""
    until = time.monotonic() + length_s

    def left_s():
        return max(0.0, until - time.monotonic())

    if shape == "ramp":
        for share in RAMP:
            with both(trial, [(fault, scaled(fault, amount, share)) for fault, amount in faults]):
                trial.sleep(min(left_s(), length_s / len(RAMP)))
        return
    while left_s() > 0:
        with both(trial, faults):
            trial.sleep(min(1.0, left_s()) if shape == "pulse" else left_s())
        if shape == "pulse":
            trial.sleep(min(2.0, left_s()))
