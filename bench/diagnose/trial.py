# SPDX-License-Identifier: Apache-2.0
"""One trial: a victim under `gpusonde record`, a fault at a random time, and the instruments' samples."""

import contextlib
import dataclasses
import json
import os
import pathlib
import subprocess
import sys
import time

import faults
import groups
import instruments
import label
import manifest
import networks

HERE = pathlib.Path(__file__).resolve().parent
FILE_MB = {"disk": 1024, "cached": 96}
START_S = 60.0
USUAL_S = 5.0  # before the fault, to measure the victim's usual CPU use


class TrialFailed(RuntimeError):
    """The trial could not be run: it has no result, and is counted."""


def data_file(folder, kind):
    """Creates a file of random bytes for victims and injectors, once."""
    path = folder / f"{kind}.data"
    size = FILE_MB[kind] << 20
    if not path.exists() or path.stat().st_size != size:
        with open(path, "wb") as file:
            for _ in range(size >> 20):
                file.write(os.urandom(1 << 20))
            os.fsync(file.fileno())
    return path


class Trial:
    """Runs `plan` (manifest.Trial) in `folder`. `build` is the build folder, `shared` the folder of the data files, `shares` the
    CPU weight of the trial's groups against all others (1024)."""

    def __init__(self, plan, build, folder, shared, shares=1024):
        self.plan, self.build, self.folder, self.shares = plan, build, folder, shares
        self.disk_file, self.cached_file = (str(data_file(shared, kind)) for kind in ("disk", "cached"))
        self.length_s = plan.clean_s + plan.fault_s + plan.after_s
        done = subprocess.run([build / "bin/simgpu", "env"], capture_output=True, text=True, check=True)
        self.environment = dict(os.environ, LD_LIBRARY_PATH=done.stdout.strip(),
                                SIMGPU_MACHINE=f"bench-{os.getpid()}-{plan.name}", PYTHONDONTWRITEBYTECODE="1")
        self.groups = {}
        self.recorder = None
        self.link = None  # for a victim whose ranks run in network namespaces
        self.usual_cpus = 0.0
        self.logged, self.ranks = 0, []  # pid of the process whose steps are logged; pids of the ranks

    def simgpu(self, *arguments):
        subprocess.run([self.build / "bin/simgpu", *map(str, arguments)], env=self.environment, capture_output=True,
                       check=True)

    def start_simgpu(self, *arguments):
        return subprocess.Popen(self.groups["injector"].command([self.build / "bin/simgpu", *arguments]),
                                env=self.environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def sleep(self, seconds):
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            if self.recorder.poll() is not None:
                raise TrialFailed("the recorder or its victim has ended")
            time.sleep(min(left, 0.1))

    def victim_pid(self):
        return min(self.groups["victim"].pids())

    def loader_pid(self):
        children = [pid for pid in self.groups["victim"].pids()
                    if b"spawn_main" in pathlib.Path(f"/proc/{pid}/cmdline").read_bytes()]
        if not children:
            raise TrialFailed("the victim has no loader")
        return children[0]

    def rank_pid(self, rank):
        """The pid of a rank, from the head of its log."""
        log = self.folder / (f"steps.log.{rank}" if rank else "steps.log")
        head = log.read_text().partition("\n")[0] if log.exists() else ""
        if not head.startswith("pid "):
            raise TrialFailed(f"the victim has no rank {rank}")
        return int(head.removeprefix("pid "))

    def logged_pid(self):
        """The pid of the process whose steps are logged."""
        has_pid = (self.folder / "steps.log").read_text().startswith("pid ")
        return self.rank_pid(0) if has_pid else self.victim_pid()

    @staticmethod
    def last_cpu():
        return max(os.sched_getaffinity(0))

    def look_for(self, seconds):
        """Sleeps, and measures how many CPUs the victim uses meanwhile."""
        before, begin = self.groups["victim"].cpu_ns(), time.monotonic_ns()
        self.sleep(seconds)
        self.usual_cpus = (self.groups["victim"].cpu_ns() - before) / (time.monotonic_ns() - begin)

    def start(self):
        fill = {"build": self.build, "here": HERE, "python": sys.executable, "log": self.folder / "steps.log",
                "seconds": self.length_s, "disk": self.disk_file, "cached": self.cached_file, "last_cpu": self.last_cpu()}
        if self.link:
            fill |= {"ends": self.link.names, "addresses": self.link.addresses}
        victim = [part.format(**fill) for part in manifest.VICTIMS[self.plan.victim]]
        if self.plan.victim in manifest.CACHED:
            # Evict the file from the page cache: its pages belong to the group that reads them first.
            with open(self.cached_file, "rb") as file:
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        self.recorder = subprocess.Popen(
            self.groups["agent"].command([self.build / "bin/gpusonde", "record", "-o", self.folder / "run.sonde", "--",
                                          *self.groups["victim"].command(victim)]),
            env=self.environment, stdin=subprocess.DEVNULL, stdout=open(self.folder / "record.log", "wb"),
            stderr=subprocess.STDOUT)
        deadline = time.monotonic() + START_S
        while not (self.folder / "steps.log").exists() or not label.read_steps(self.folder):
            if self.recorder.poll() is not None or time.monotonic() > deadline:
                raise TrialFailed("the victim made no step")
            time.sleep(0.02)

    @contextlib.contextmanager
    def running(self):
        """Runs the victim under its recorder, with the instruments; finally waits for the victim to end. Raises TrialFailed."""
        with contextlib.ExitStack() as stack:
            for name in ("victim", "agent", "injector"):
                self.groups[name] = groups.Group(f"{self.plan.name}-{name}")
                stack.callback(self.groups[name].close)
                self.groups[name].write("cpu", "cpu.shares", self.shares)
            stack.callback(lambda: subprocess.run([self.build / "bin/simgpu", "reset"], env=self.environment,
                                                  capture_output=True, check=False))
            if self.plan.victim in manifest.NETWORKED:
                self.link = networks.Link(self.plan.name)
                stack.callback(self.link.close)
            stack.callback(self.end)
            self.start()
            self.logged = self.logged_pid()
            self.ranks = [self.rank_pid(rank) for rank in (0, 1)] if self.plan.victim in manifest.RANKS else []
            sampler = instruments.Sampler(self.folder / "samples.jsonl", self.groups, self.ranks)
            stack.callback(sampler.stop)
            yield
            if self.recorder.wait(timeout=START_S) != 0:
                raise TrialFailed(f"gpusonde record ended with {self.recorder.returncode}")

    def disturb(self):
        """Applies the faults, and returns when, for the trial's record."""
        begin_ns = time.monotonic_ns()
        active_ns = faults.apply(self, self.plan.faults(), self.plan.shape, self.plan.fault_s)
        return {"begin_ns": begin_ns, "end_ns": time.monotonic_ns(), "active_ns": active_ns}

    def run(self):
        """The trial's record, also written to trial.json. Raises TrialFailed."""
        with self.running():
            own_cpu_ns = time.process_time_ns()
            usual_s = min(USUAL_S, self.plan.clean_s)
            self.sleep(self.plan.clean_s - usual_s)
            self.look_for(usual_s)
            disturbed = self.disturb()
            with contextlib.suppress(TrialFailed):  # the victim ends after its own time
                self.sleep(self.plan.after_s)
            record = {"plan": dataclasses.asdict(self.plan), "logged_pid": self.logged, "rank_pids": self.ranks,
                      **disturbed,
                      "epoch_offset_ns": time.time_ns() - time.monotonic_ns(),
                      "own_cpu_ns": time.process_time_ns() - own_cpu_ns, "cpus": os.cpu_count()}
        (self.folder / "trial.json").write_text(json.dumps(record, indent=1))
        return record

    def end(self):
        if self.recorder is not None and self.recorder.poll() is None:
            self.recorder.terminate()
            try:
                self.recorder.wait(timeout=10)
            except subprocess.TimeoutExpired:
                self.recorder.kill()
                self.recorder.wait()
