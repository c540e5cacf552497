# SPDX-License-Identifier: Apache-2.0
"""What slows victims, or doesn't. A fault is a context manager over a running trial; the names are the manifest's, and
nothing that gpusonde sees bears them."""

import contextlib
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

import networks

HERE = pathlib.Path(__file__).resolve().parent
SLACK_MB = 16
HEAVY = 2
COMPILE = "echo '#include <regex>' | c++ -std=c++17 -O2 -x c++ -S -o /dev/null -"


def end(process):
    process.kill()
    process.wait()


@contextlib.contextmanager
def work(trial, kind, amount, file="", start=lambda command: command, group="injector"):
    """work.py in the injector's group, or another; `start` says how, beside that."""
    command = start([sys.executable, HERE / "work.py", kind, int(amount), file])
    process = subprocess.Popen(trial.groups[group].command(command),
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
def stress(trial, *arguments):
    """stress-ng, under a name that says nothing."""
    program = shutil.which("stress-ng")
    if program is None:
        raise OSError("stress-ng isn't there: tools/setup bench")
    with tempfile.TemporaryDirectory(dir=trial.folder) as folder:  # on the disk of the data files
        name = pathlib.Path(folder) / f"job-{random.randrange(16 ** 4):04x}"
        name.symlink_to(program)
        process = subprocess.Popen(
            trial.groups["injector"].command([name, "--keep-name", "--quiet", "--temp-path", folder, *arguments]),
            stdin=subprocess.DEVNULL, start_new_session=True)
        try:
            yield
            if process.poll() is not None:
                raise OSError(f"stress-ng ended by itself with {process.returncode}")
        finally:
            process.terminate()  # it takes its files away
            try:
                process.wait(timeout=5)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()


@contextlib.contextmanager
def heavy(trial, disturber):
    """The injector's group weighs so much more than the victim's, as one that has asked for more CPUs does: the scheduler
    shields a group that wants one CPU from another of its weight that wants both."""
    trial.groups["injector"].write("cpu", "cpu.shares", HEAVY * trial.shares)
    try:
        with disturber:
            yield
    finally:
        trial.groups["injector"].write("cpu", "cpu.shares", trial.shares)


DEFAULT_PERIOD_US = 100_000


@contextlib.contextmanager
def quota(trial, share, period_us=DEFAULT_PERIOD_US):
    """The victim's group gets this share of the CPU time that it usually uses, in each such period."""
    group = trial.groups["victim"]
    quota_us = max(2000, int(share * trial.usual_cpus * period_us))
    group.write("cpu", "cpu.cfs_period_us", period_us)
    group.write("cpu", "cpu.cfs_quota_us", quota_us)
    try:
        yield
    finally:
        group.write("cpu", "cpu.cfs_quota_us", -1)
        group.write("cpu", "cpu.cfs_period_us", DEFAULT_PERIOD_US)


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
def sidecar(trial, megabytes):
    """The victim's group may keep little more than it has, and then somebody else within it takes so much."""
    group = trial.groups["victim"]
    group.write("memory", "memory.limit_in_bytes", int(group.read("memory", "memory.usage_in_bytes")) + (SLACK_MB << 20))
    try:
        with work(trial, "memory", megabytes, group="victim"):
            yield
    finally:
        group.write("memory", "memory.limit_in_bytes", -1)


@contextlib.contextmanager
def one_cpu(trial):
    """All of the victim's threads have to share a CPU: a cause without a model."""
    every, one = os.sched_getaffinity(0), {trial.last_cpu()}

    def allow(cpus):
        for pid in trial.groups["victim"].pids():
            for task in pathlib.Path(f"/proc/{pid}/task").glob("*"):
                with contextlib.suppress(ProcessLookupError):
                    os.sched_setaffinity(int(task.name), cpus)

    allow(one)
    try:
        yield
    finally:
        allow(every)


@contextlib.contextmanager
def gpu_rival(trial, batch):
    """Another program that uses the GPU, for long at a time, and little else."""
    process = subprocess.Popen(
        trial.groups["injector"].command([sys.executable, HERE / "victims/inference.py", "--step-log", "/dev/null", "--seconds",
                                          trial.length_s, "--batches", int(batch), "--record-kb", 4, "--pause-ms", 1]),
        env=trial.environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    try:
        yield
    finally:
        end(process)


@contextlib.contextmanager
def lossy_link(trial, one_in):
    """One packet in so many is lost on its way between the ranks."""
    with tempfile.TemporaryDirectory() as folder:
        program = pathlib.Path(folder) / "drop.o"
        subprocess.run([shutil.which("clang-19") or "clang", "-O2", "-target", "bpf", f"-DONE_IN={int(one_in)}", "-c",
                        HERE / "drop.bpf.c", "-o", program], check=True)
        trial.link.tc(1, "qdisc", "add", "dev", "veth0", "clsact")
        try:
            trial.link.tc(1, "filter", "add", "dev", "veth0", "ingress", "bpf", "direct-action", "object-file", program,
                          "section", "classifier")
            yield
        finally:
            trial.link.tc(1, "qdisc", "delete", "dev", "veth0", "clsact")


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
def interrupts(trial, kind, streams):
    """Packets that the last CPU sends and the first one receives, in softirqs."""
    link = networks.Link(f"{trial.plan.name}-i", rate_mbit=None)
    try:
        subprocess.run(link.command(1, ["sh", "-c", "echo 1 > /sys/class/net/veth0/queues/rx-0/rps_cpus"]), check=True)
        with work(trial, kind, streams, link.addresses[1],
                  lambda command: link.command(0, ["taskset", "-c", str(trial.last_cpu()), *command])):
            yield
    finally:
        link.close()


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
def gpu_error(trial, code, stall_s, period_s):
    """The driver reports an error over and over, and each time the GPU does nothing for so long."""
    done = threading.Event()

    def fail():
        while True:
            trial.simgpu("fault", "0", "xid", code)
            trial.simgpu("fault", "0", "stall", stall_s)
            if done.wait(period_s):
                return

    thread = threading.Thread(target=fail)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


@contextlib.contextmanager
def gpu_neighbour(trial, share):
    process = trial.start_simgpu("neighbour", trial.length_s, share)
    try:
        yield
    finally:
        end(process)


@contextlib.contextmanager
def stopped(pid):
    """One of the victim's processes stands still: a hang, or a cause without a model."""
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)


@contextlib.contextmanager
def nothing(_trial, _amount):
    yield


FAULTS = {
    "nothing": nothing,
    # train
    "compute": lambda trial, amount: heavy(trial, work(trial, "cpu", amount)),
    "compute-little": lambda trial, amount: work(trial, "idle-cpu", amount),
    "disk-read": lambda trial, amount: work(trial, "disk-read", amount, trial.disk_file),
    "cached-read": lambda trial, amount: work(trial, "cached-read", amount, trial.cached_file),
    "quota": quota,
    "stress-cpu": lambda trial, amount: heavy(trial, stress(trial, "--cpu", int(amount), "--cpu-method", "matrixprod")),
    "stress-disk": lambda trial, amount: stress(trial, "--hdd", int(amount), "--hdd-opts", "direct,wr-rnd",
                                                "--hdd-bytes", f"{64 * int(amount)}m"),  # divided among them
    "stress-stream": lambda trial, amount: stress(trial, "--stream", int(amount)),
    "memory-limit": memory_limit,
    "heavier-data": lambda trial, _amount: signalled(trial.victim_pid(), signal.SIGUSR1),
    "own-threads": lambda trial, _amount: signalled(trial.victim_pid(), signal.SIGUSR2),
    "gpu-neighbour": gpu_neighbour,
    "gpu-power-cap": lambda trial, watts: gpu(trial, "fault", "0", "power-cap", watts,
                                              undo=("fault", "0", "power-cap", "700")),
    "gpu-firmware": lambda trial, stall_s: gpu_error(trial, 119, stall_s, 1.5),
    "gpu-pcie-width": lambda trial, lanes: gpu(trial, "fault", "0", "pcie-width", lanes,
                                               undo=("fault", "0", "pcie-width", "0")),
    "io-limit": lambda trial, mb_s: io_limit(trial, mb_s * 1e6, "bps"),
    "traffic": lambda trial, amount: traffic(trial, "send", amount),
    "short-queue": queue_limit,
    "flood": lambda trial, amount: interrupts(trial, "flood", amount),
    "late-rank": lambda trial, _amount: signalled(trial.rank_pid(1), signal.SIGUSR1),
    "memory-copy": lambda trial, amount: work(trial, "memory-copy", amount),
    "stopped-loader": lambda trial, _amount: stopped(trial.loader_pid()),
    # test
    "idle": nothing,
    "compile": lambda trial, amount: heavy(trial, loop(trial, COMPILE, amount)),
    "compress-little": lambda trial, amount: loop(
        trial, f"sleep 0.2; head -c 64k {trial.cached_file} | nice -n 19 xz -1 -c", amount),
    "short-quota": lambda trial, share: quota(trial, share, 20_000),
    "sidecar": sidecar,
    "checks": lambda trial, _amount: signalled(trial.victim_pid(), signal.SIGUSR1),
    "own-compress": lambda trial, _amount: signalled(trial.victim_pid(), signal.SIGUSR2),
    "gpu-rival": gpu_rival,
    "gpu-clock-limit": lambda trial, share: gpu(trial, "fault", "0", "clock-limit", min(1.0, share),
                                                undo=("fault", "0", "clock-limit", "1")),
    "gpu-memory-rows": lambda trial, stall_s: gpu_error(trial, 63, stall_s, 0.8),
    "gpu-pcie-generation": lambda trial, generation: gpu(trial, "fault", "0", "pcie-generation", generation,
                                                         undo=("fault", "0", "pcie-generation", "0")),
    "lossy-link": lossy_link,
    "fragments": lambda trial, amount: interrupts(trial, "fragments", amount),
    "memory-fill": lambda trial, amount: work(trial, "memory-fill", amount),
    "stopped-rank": lambda trial, _amount: stopped(trial.rank_pid(1)),
    "held-lock": lambda trial, _amount: signalled(trial.victim_pid(), signal.SIGUSR1),
    "one-cpu": lambda trial, _amount: one_cpu(trial),
    "compress": lambda trial, amount: heavy(trial, loop(trial, f"head -c 8M {trial.cached_file} | xz -9 -T1 -c", amount)),
    "disk-write": lambda trial, amount: work(trial, "disk-write", amount, trial.disk_file),
    "copy-file": lambda trial, amount: loop(
        trial, f"dd if={trial.disk_file} of=/dev/null bs=1M iflag=direct", amount),
    "io-operations": lambda trial, amount: io_limit(trial, amount, "iops"),
    "transfers": lambda trial, amount: traffic(trial, "fetch", amount),
    "held-rank": lambda trial, amount: work(
        trial, "cpu", amount, "", lambda command: ["taskset", "-c", str(trial.last_cpu()), *command]),
}
# Of these the smaller amount is the worse one.
LIMITS = ("quota", "short-quota", "memory-limit", "gpu-power-cap", "gpu-clock-limit", "gpu-pcie-width", "io-limit",
          "io-operations", "short-queue", "lossy-link")
RAMP = (1 / 3, 2 / 3, 1)  # of the amount, one after the other
PULSE_S, PULSE_PERIOD_S = 1, 3


def scaled(fault, amount, share):
    """So much of an amount: counts are whole and at least one."""
    less = amount / share if fault in LIMITS else amount * share
    return less if amount < 1 else max(1, round(less))


@contextlib.contextmanager
def both(trial, faults):
    """All of [(fault, amount), …] at once."""
    with contextlib.ExitStack() as stack:
        for fault, amount in faults:
            stack.enter_context(FAULTS[fault](trial, amount))
        yield


def apply(trial, faults, shape, length_s):
    """Runs the faults for so long: all the time, one second on and two off, or more and more of them. Returns when all of
    them were there: [(begin, end), …], CLOCK_MONOTONIC in ns."""
    begin = time.monotonic()
    active = []

    def sleep_until(second):
        trial.sleep(max(0.0, begin + min(second, length_s) - time.monotonic()))

    def keep(share, until):
        with both(trial, [(fault, scaled(fault, amount, share)) for fault, amount in faults]):
            begin_ns = time.monotonic_ns()
            sleep_until(until)
            if share == 1:
                active.append((begin_ns, time.monotonic_ns()))

    if shape == "ramp":
        for part, share in enumerate(RAMP, 1):
            keep(share, part * length_s / len(RAMP))
    elif shape == "pulse":
        for second in range(0, int(length_s), PULSE_PERIOD_S):
            keep(1, second + PULSE_S)
            sleep_until(second + PULSE_PERIOD_S)
    else:
        keep(1, length_s)
    return active
