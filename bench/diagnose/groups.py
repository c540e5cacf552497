# SPDX-License-Identifier: Apache-2.0
"""The control groups (version 1) of a trial's processes: to limit them, and to measure what each of them uses."""

import os
import pathlib

ROOT = pathlib.Path("/sys/fs/cgroup")
CONTROLLERS = ("blkio", "cpu", "cpuacct", "memory")
ENTER = 'for group in $GROUPS_TO_ENTER; do echo $$ >$group/cgroup.procs; done; exec "$@"'


class Group:
    """One folder in each hierarchy; close() removes it."""

    def __init__(self, name):
        self.paths = {controller: ROOT / controller / f"bench-{os.getpid()}-{name}" for controller in CONTROLLERS}
        for path in self.paths.values():
            path.mkdir()

    def command(self, command):
        """`command`, wrapped so that it starts within the group."""
        where = " ".join(str(path) for path in self.paths.values())
        return ["env", f"GROUPS_TO_ENTER={where}", "sh", "-c", ENTER, "sh", *map(str, command)]

    def enter(self):
        for path in self.paths.values():
            (path / "cgroup.procs").write_text(str(os.getpid()))

    def read(self, controller, file):
        return (self.paths[controller] / file).read_text()

    def write(self, controller, file, value):
        (self.paths[controller] / file).write_text(str(value))

    def cpu_ns(self):
        return int(self.read("cpuacct", "cpuacct.usage"))

    def pids(self):
        return [int(pid) for pid in self.read("cpuacct", "cgroup.procs").split()]

    def close(self):
        for path in self.paths.values():
            try:
                path.rmdir()
            except OSError:  # it still has a process
                for pid in (path / "cgroup.procs").read_text().split():
                    (path.parent / "cgroup.procs").write_text(pid)
                path.rmdir()
