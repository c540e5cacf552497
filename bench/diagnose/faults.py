# SPDX-License-Identifier: Apache-2.0
"""Disturbances that slow victims, or shouldn't. A fault is a context manager over a running trial. The manifest uses these
names; nothing that gpusonde sees contains them."""

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

import groups
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
    """Runs work.py in the injector's group, or in `group`; `start` adds further settings."""
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
    """Runs a command in an endless loop, `times` in parallel, in the injector's group."""
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
    """Runs stress-ng under a neutral name."""
    program = shutil.which("stress-ng")
    if program is None:
        raise OSError("stress-ng is missing: run tools/setup bench")
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
            process.terminate()  # it deletes its files
            try:
                process.wait(timeout=5)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()


@contextlib.contextmanager
def heavy(trial, disturber):
    """Gives the injector's group a larger CPU weight than the victim's, as a group that has requested more CPUs has. With equal
    weights the scheduler protects a group that needs one CPU from one that would use both."""
    trial.groups["injector"].write("cpu", "cpu.shares", HEAVY * trial.shares)
    try:
        with disturber:
            yield
    finally:
        trial.groups["injector"].write("cpu", "cpu.shares", trial.shares)


DEFAULT_PERIOD_US = 100_000


@contextlib.contextmanager
def quota(trial, share, period_us=DEFAULT_PERIOD_US):
    """Limits the victim's group to this share of its usual CPU time per period."""
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
    """Limits the memory of the victim's group to the memory of its processes plus this many MB of page cache."""
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
    """Limits the memory of the victim's group to little more than it uses; then another process in it allocates this much."""
    group = trial.groups["victim"]
    group.write("memory", "memory.limit_in_bytes", int(group.read("memory", "memory.usage_in_bytes")) + (SLACK_MB << 20))
    try:
        with work(trial, "memory", megabytes, group="victim"):
            yield
    finally:
        group.write("memory", "memory.limit_in_bytes", -1)


@contextlib.contextmanager
def one_cpu(trial):
    """Pins all of the victim's threads to one CPU."""
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
def cpuset(trial):
    """Moves the victim's processes into a cpuset with one CPU, and then allows that all of them."""
    root = groups.ROOT / "cpuset"
    group = root / f"bench-{os.getpid()}"
    group.mkdir()
    (group / "cpuset.mems").write_text((root / "cpuset.mems").read_text())
    (group / "cpuset.cpus").write_text(str(trial.last_cpu()))

    def move(to):
        for pid in trial.groups["victim"].pids():
            with contextlib.suppress(ProcessLookupError):
                (to / "cgroup.procs").write_text(str(pid))

    try:
        move(group)
        yield
    finally:
        move(root)
        group.rmdir()


@contextlib.contextmanager
def gpu_rival(trial, batch):
    """Runs another program that uses the GPU with long kernels, and little else."""
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
    """Drops one in this many packets between the ranks, at random."""
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
    """Limits the victim's group to this many bytes ("bps") or operations ("iops") per second on the disk of the data files."""
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
    """Sends from one end of the ranks' link to the other."""
    address = trial.link.addresses[1]
    with work(trial, "receive", 1, address, lambda command: trial.link.command(1, command)), \
            work(trial, kind, streams, address, lambda command: trial.link.command(0, command)):
        yield


@contextlib.contextmanager
def interrupts(trial, kind, streams):
    """Floods the link with packets that the last CPU sends and the first one receives, in softirqs."""
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
    """Shortens the link's queue; packets that don't fit are dropped."""
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
    """Makes the driver report an error repeatedly, with a pause of the GPU each time."""
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
    """Stops one of the victim's processes: a hang, or a slow-down that no cause models."""
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)


@contextlib.contextmanager
def limiter(trial, milliseconds):
    """Stops the process whose steps are logged for these ms of each 90, as cpulimit does."""
    try:
        with work(trial, "stop", milliseconds, str(trial.logged)):
            yield
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(trial.logged, signal.SIGCONT)


@contextlib.contextmanager
def freezer(trial, milliseconds):
    """Freezes all of the victim's processes for these ms of each 430."""
    group = groups.ROOT / "freezer" / f"bench-{os.getpid()}"
    group.mkdir()
    pids = trial.groups["victim"].pids()
    try:
        for pid in pids:
            (group / "cgroup.procs").write_text(str(pid))
        with work(trial, "freeze", milliseconds, str(group)):
            yield
    finally:
        (group / "freezer.state").write_text("THAWED")
        for pid in (group / "cgroup.procs").read_text().split():
            (group.parent / "cgroup.procs").write_text(pid)
        group.rmdir()


@contextlib.contextmanager
def nothing(_trial, _amount):
    yield


FAULTS = {
    "nothing": nothing,
    # train split
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
    "more-work": lambda trial, _amount: signalled(trial.logged, signal.SIGUSR1),
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
    "cpuset": lambda trial, _amount: cpuset(trial),
    "stopped-loader": lambda trial, _amount: stopped(trial.loader_pid()),
    "limiter": limiter,
    # test split
    "idle": nothing,
    "compile": lambda trial, amount: heavy(trial, loop(trial, COMPILE, amount)),
    "compress-little": lambda trial, amount: loop(
        trial, f"sleep 0.2; head -c 64k {trial.cached_file} | nice -n 19 xz -1 -c", amount),
    "short-quota": lambda trial, share: quota(trial, share, 20_000),
    "sidecar": sidecar,
    "checks": lambda trial, _amount: signalled(trial.victim_pid(), signal.SIGUSR1),
    "more-rounds": lambda trial, _amount: signalled(trial.logged, signal.SIGUSR1),
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
    "freezer": freezer,
    "compress": lambda trial, amount: heavy(trial, loop(trial, f"head -c 8M {trial.cached_file} | xz -9 -T1 -c", amount)),
    "disk-write": lambda trial, amount: work(trial, "disk-write", amount, trial.disk_file),
    "copy-file": lambda trial, amount: loop(
        trial, f"dd if={trial.disk_file} of=/dev/null bs=1M iflag=direct", amount),
    "io-operations": lambda trial, amount: io_limit(trial, amount, "iops"),
    "transfers": lambda trial, amount: traffic(trial, "fetch", amount),
    "held-rank": lambda trial, amount: work(
        trial, "cpu", amount, "", lambda command: ["taskset", "-c", str(trial.last_cpu()), *command]),
}
# For these, a smaller amount is a stronger fault.
LIMITS = ("quota", "short-quota", "memory-limit", "gpu-power-cap", "gpu-clock-limit", "gpu-pcie-width", "io-limit",
          "io-operations", "short-queue", "lossy-link")
RAMP = (1 / 3, 2 / 3, 1)  # of the amount, in this order
PULSE_S, PULSE_PERIOD_S = 1, 3


def scaled(fault, amount, share):
    """A share of an amount; counts are integers and at least one."""
    less = amount / share if fault in LIMITS else amount * share
    return less if amount < 1 else max(1, round(less))


@contextlib.contextmanager
def both(trial, faults):
    """Applies all of [(fault, amount), …] at once."""
    with contextlib.ExitStack() as stack:
        for fault, amount in faults:
            stack.enter_context(FAULTS[fault](trial, amount))
        yield


def apply(trial, faults, shape, length_s):
    """Runs the faults for the given time: steadily, one second on and two off, or as a ramp. Returns when all of them were
    fully active: [(begin, end), …], CLOCK_MONOTONIC in ns."""
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
