# SPDX-License-Identifier: Apache-2.0
"""The machine as the trial itself measures it, independently of gpusonde: from files of /proc and of the control groups that
gpusonde's diagnosis doesn't read (run delays of schedstat, CPU time and memory failures of the groups, disk statistics), and
pressure for the baselines."""

import contextlib
import json
import os
import pathlib
import threading
import time

PERIOD_S = 0.25
PROC = pathlib.Path("/proc")
FREEZER = pathlib.Path("/sys/fs/cgroup/freezer")


def machine_cpu_ns():
    """(busy, stolen) CPU time of the whole machine, ns."""
    fields = [int(field) for field in (PROC / "stat").read_text().split("\n", 1)[0].split()[1:]]
    user, nice, system, _idle, _iowait, irq, softirq, steal = fields[:8]
    return (user + nice + system + irq + softirq) * 10_000_000, steal * 10_000_000


def interrupts_ns():
    """CPU time of the whole machine in interrupts and softirqs."""
    fields = (PROC / "stat").read_text().split("\n", 1)[0].split()
    return (int(fields[6]) + int(fields[7])) * 10_000_000


def schedstat(pid):
    """{tid: (running, run delay)} of a process's threads, ns."""
    times = {}
    for task in (PROC / str(pid) / "task").glob("*"):
        try:
            running, delay, _ = (task / "schedstat").read_text().split()
        except (OSError, ValueError):
            continue
        times[task.name] = (int(running), int(delay))
    return times


def disk():
    """(bytes, ns with requests in flight) of the machine's disks."""
    sectors = busy_ms = 0
    for line in (PROC / "diskstats").read_text().splitlines():
        fields = line.split()
        if fields[2].startswith(("loop", "ram")):
            continue
        sectors += int(fields[5]) + int(fields[9])
        busy_ms += int(fields[12])
    return sectors * 512, busy_ms * 1_000_000


def pressure_ns(resource):
    try:
        line = (PROC / "pressure" / resource).read_text().split("\n", 1)[0]
        return int(line.rsplit("total=", 1)[1]) * 1000
    except (OSError, IndexError, ValueError):
        return 0


def switches(pids):
    """Context switches of these processes."""
    total = 0
    for pid in pids:
        try:
            for line in (PROC / str(pid) / "status").read_text().splitlines():
                if "ctxt_switches" in line:
                    total += int(line.split()[1])
        except OSError:
            continue
    return total


def allowed_cpus(pids):
    """The most CPUs that one of these processes may use: its main thread's affinity, within its cpuset; 0 without any."""
    most = 0
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            most = max(most, len(os.sched_getaffinity(pid)))
    return most


def is_stopped(pid):
    """Whether a process is stopped by a signal or a tracer, or frozen with its control group."""
    with contextlib.suppress(OSError):
        if (PROC / str(pid) / "stat").read_text().rsplit(")", 1)[1].split()[0] in "Tt":
            return True
        groups = (PROC / str(pid) / "cgroup").read_text().splitlines()
        path = next(line.rsplit(":", 1)[1] for line in groups if ":freezer:" in line)
        return path != "/" and (FREEZER / path[1:] / "freezer.state").read_text().strip() == "FROZEN"
    return False


def retransmits(pid="self"):
    """Reads a file in the network namespace of a process."""
    lines = (PROC / str(pid) / "net/snmp").read_text().splitlines()
    names, values = (line.split() for line in lines if line.startswith("Tcp:"))
    return int(values[names.index("RetransSegs")])


def sent_bytes(pid):
    """Bytes sent through all devices of that namespace except the loopback."""
    total = 0
    for line in (PROC / str(pid) / "net/dev").read_text().splitlines():
        name, _, counters = line.partition(":")
        if counters and name.strip() != "lo":
            total += int(counters.split()[8])
    return total


def networks(pids):
    """(retransmitted segments, sent bytes) in the namespaces of these processes, each counted once."""
    found = {}
    for pid in pids:
        try:
            found.setdefault(os.readlink(PROC / str(pid) / "ns/net"), (retransmits(pid), sent_bytes(pid)))
        except OSError:
            continue
    return sum(one[0] for one in found.values()), sum(one[1] for one in found.values())


def received():
    """Softirqs of all CPUs that handled received packets."""
    for line in (PROC / "softirqs").read_text().splitlines():
        if line.lstrip().startswith("NET_RX:"):
            return sum(map(int, line.split()[1:]))
    return 0


class Sampler:
    """Writes a JSON line four times a second until stop()."""

    def __init__(self, path, groups, ranks=()):
        self.groups = groups  # {name: Group}; "victim" is sampled per thread
        self.ranks = list(ranks)  # pids whose network namespaces are sampled; the machine's own if there are none
        self.file = open(path, "w", encoding="utf-8")
        self.stopped = threading.Event()
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def sample(self):
        busy_ns, stolen_ns = machine_cpu_ns()
        disk_bytes, disk_ns = disk()
        victim = self.groups["victim"]
        pids = victim.pids()
        again, sent = networks(self.ranks or [os.getpid()])
        return {
            "time_ns": time.monotonic_ns(), "busy_ns": busy_ns, "stolen_ns": stolen_ns, "disk_bytes": disk_bytes,
            "disk_ns": disk_ns, "pressure_ns": {name: pressure_ns(name) for name in ("cpu", "io", "memory")},
            "cpu_ns": {name: group.cpu_ns() for name, group in self.groups.items()},
            "failcnt": int(victim.read("memory", "memory.failcnt")), "switches": switches(pids),
            "retransmits": again, "sent_bytes": sent, "net_rx": received(), "interrupts_ns": interrupts_ns(),
            "allowed_cpus": allowed_cpus(pids), "stopped": any(map(is_stopped, pids)),
            "threads": {str(pid): schedstat(pid) for pid in pids}}

    def run(self):
        while not self.stopped.wait(PERIOD_S):
            self.file.write(json.dumps(self.sample(), separators=(",", ":")) + "\n")

    def stop(self):
        self.stopped.set()
        self.thread.join()
        self.file.close()
