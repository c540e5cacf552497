# SPDX-License-Identifier: Apache-2.0
"""The units of deploy/systemd, as they are, under a systemd of their own (tests/e2e/systemd_root)."""

import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import unittest
import urllib.error
import urllib.request

import program

OWN_MACHINE = "up profiles every GPU program of the machine"
CPUS = 0.5
UNITS = program.ROOT / "deploy/systemd"
PROFILERS = ("gpusonde-up", "gpusonde-agent")
MAX_EXPOSURE = {"gpusonde-up": 3.6, "gpusonde-agent": 3.6, "gpusonde-serve": 1.1}
MACHINE = f"simgpu-deploy-{os.getpid()}"
# The program to sample belongs to root, where no other user may read it; the one with GPU work to another user.
WORKLOADS = {
    "sampled": "ExecStart=/var/lib/secret/hotpaths --seconds 120\nStandardOutput=null\n",
    **dict.fromkeys(("gpu", "confined"),
                    f"User=games\nEnvironment=SIMGPU_MACHINE={MACHINE} CUDA_INJECTION64_PATH=/other/tool.so\n"
                    "ExecStart=/opt/gpusonde/bin/simgpu run -- /opt/gpusonde/bin/gpusonde-hpc --seconds 120\nStandardOutput=null\n")}
# A service may do little; a system call that it may not make kills it.
WORKLOADS["confined"] += """\
CapabilityBoundingSet=
NoNewPrivileges=yes
ProtectSystem=strict
ProtectHome=yes
PrivateTmp=yes
LockPersonality=yes
MemoryDenyWriteExecute=yes
RestrictAddressFamilies=AF_UNIX
RestrictNamespaces=yes
RestrictRealtime=yes
SystemCallArchitectures=native
SystemCallFilter=@system-service
"""
PROFILED = ("gpu", "confined")  # by the drop-in
NAMES_SQL = """
    SELECT sum((f.name LIKE 'hotpaths::hash_block%')::int) > 0 AS others_functions,
           sum((l.kind = 'kernel' AND f.name NOT LIKE '[%')::int) > 0 AS kernel_functions
    FROM samples JOIN stacks USING (stack), unnest(stacks.locations) AS part(location)
    JOIN locations AS l ON l.location = part.location JOIN functions AS f ON f.function = l.functions[1]"""
GPU_SQL = """
    SELECT count(DISTINCT process) AS profiled FROM kernels JOIN processes USING (process) WHERE processes.name = 'gpusonde-hpc'"""


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def settings(unit):
    """The lines of a unit's [Service] from the comment about its user on."""
    return (UNITS / f"{unit}.service").read_text().partition("# A user of its own")[2]


def own_cgroup():
    """The folder of this process's cgroup of version 2."""
    mounts = pathlib.Path("/proc/self/mountinfo").read_text()
    mounted = re.search(r"^\S+ \S+ \S+ \S+ (\S+) .* - cgroup2 ", mounts, re.MULTILINE)
    path = re.search(r"^0::(.*)$", pathlib.Path("/proc/self/cgroup").read_text(), re.MULTILINE)
    return pathlib.Path(mounted[1] + path[1]) if mounted and path else None


class Units(program.TestCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        if os.geteuid() != 0 or not pathlib.Path("/lib/systemd/systemd").exists() or own_cgroup() is None:
            raise unittest.SkipTest("needs root, systemd and cgroups of version 2")
        top = pathlib.Path(tempfile.mkdtemp(prefix="gpusonde-deploy-"))
        top.chmod(0o755)
        cls.addClassCleanup(shutil.rmtree, top)
        cls.package = program.unpacked_package(top / "packages")

    def analyze(self, *arguments):
        """systemd-analyze where the package is installed."""
        script = 'mount -t tmpfs tmpfs /opt && mkdir /opt/gpusonde && mount --bind "$0" /opt/gpusonde && exec systemd-analyze "$@"'
        return subprocess.run(["unshare", "--mount", "sh", "-c", script, self.package, *arguments], capture_output=True,
                              text=True, timeout=60, check=False)

    def test_systemd_finds_no_fault_with_them_and_little_exposure(self):
        for unit, most in MAX_EXPOSURE.items():
            path = UNITS / f"{unit}.service"
            done = self.analyze("verify", path)
            self.assertEqual((done.returncode, [line for line in done.stderr.splitlines() if "gpusonde" in line]), (0, []))
            done = self.analyze("security", "--offline=true", "--no-pager", f"--threshold={round(10 * most)}", path)
            self.assertEqual(done.returncode, 0, f"{unit}: {done.stdout.splitlines()[-1:]} {done.stderr}")

    def test_both_profilers_have_the_same_rights(self):
        self.assertGreater(len(settings("gpusonde-up")), 1000)
        self.assertEqual(*map(settings, PROFILERS))

    def boot(self):
        """Starts systemd with all units and the workloads."""
        self.state, etc = self.folder / "state", self.folder / "etc"
        units = etc / "systemd/system"
        shutil.copytree(UNITS, units)
        (self.state / "secret").mkdir(mode=0o700, parents=True)
        shutil.copy(program.HOTPATHS, self.state / "secret")
        wanted = [f"{unit}.service" for unit in (*MAX_EXPOSURE, *WORKLOADS)]
        (units / "test.target").write_text(f"[Unit]\nWants={' '.join(wanted)}\n")
        (units / "network-online.target").write_text("[Unit]\n")
        for name, content in WORKLOADS.items():
            (units / f"{name}.service").write_text(f"[Service]\n{content}")
        for name in PROFILED:
            (units / f"{name}.service.d").mkdir()
            shutil.copy(UNITS / "gpusonde-profile.conf", units / f"{name}.service.d")
        for unit in MAX_EXPOSURE:
            (units / f"{unit}.service.d").mkdir()
            (units / f"{unit}.service.d/test.conf").write_text(
                "[Service]\n" + "".join(f"Standard{way}=append:{self.folder}/{unit}.log\n" for way in ("Output", "Error")))
        port = free_port()
        (etc / "gpusonde").mkdir()
        (etc / "gpusonde/token").touch(mode=0o600)
        (etc / "gpusonde/token").write_text(program.new_token(etc / "gpusonde/tokens", "node", "ingest"))
        self.read_token = program.new_token(etc / "gpusonde/tokens", "ada", "read")
        for name, content in {"up": "GPUSONDE_OPTIONS=--listen 127.0.0.1:0 --hz 99",
                              "serve": f"GPUSONDE_OPTIONS=--listen 127.0.0.1:{port} --pages-listen 127.0.0.1:0",
                              "agent": f"GPUSONDE_SERVER=http://127.0.0.1:{port}\nGPUSONDE_OPTIONS=--host node --hz 99"}.items():
            (etc / f"gpusonde/{name}.env").write_text(content + "\n")
        cgroup = own_cgroup() / f"gpusonde-test-{os.getpid()}"
        cgroup.mkdir()
        self.cgroup = cgroup
        self.addCleanup(self.remove, cgroup)
        with (self.folder / "systemd.log").open("w") as log:
            command = ["sh", "-c", 'echo $$ > "$0/cgroup.procs" && exec "$@"', cgroup, program.ROOT / "tests/e2e/systemd_root",
                       self.package, etc, self.state]
            systemd = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        self.addCleanup(systemd.wait)
        self.addCleanup(systemd.send_signal, signal.SIGKILL)  # with it ends its pid namespace
        return systemd

    def remove(self, cgroup):
        for file in pathlib.Path("/dev/shm").glob(f"{MACHINE}.*"):
            file.unlink()
        deadline = time.monotonic() + 10
        while True:
            try:
                for folder, _, _ in os.walk(cgroup, topdown=False):
                    os.rmdir(folder)
                return
            except OSError:
                self.assertLess(time.monotonic(), deadline, "the cgroup is still in use")
                time.sleep(0.1)

    def await_end(self):
        """Waits until all processes of the pid namespace have ended, which they do after systemd."""
        deadline = time.monotonic() + 30
        while any(pathlib.Path(folder, "cgroup.procs").read_text() for folder, _, _ in os.walk(self.cgroup)):
            self.assertLess(time.monotonic(), deadline, "the services have not ended")
            time.sleep(0.1)

    def logs(self):
        return "\n".join(f"{log.name}:\n{log.read_text()}" for log in self.folder.glob("*.log"))

    def ask(self, unit, path):
        """/api/v1/PATH of a unit's pages; None before there are any."""
        log = self.folder / f"{unit}.log"
        found = re.search(r"UI is at (http://\S+/)", log.read_text() if log.exists() else "")
        try:
            request = urllib.request.Request(f"{found[1]}api/v1/{path}", headers={"Authorization": "Bearer " + self.read_token})
            with urllib.request.urlopen(request, timeout=30) as answer:
                return json.load(answer)
        except (TypeError, urllib.error.URLError):
            return None

    def await_work(self, unit, host=()):
        """Waits until the unit has kernels of each service, and samples of the other user's program with names."""
        deadline = time.monotonic() + 90
        while not ((seen := self.ask(unit, "?".join(("overview", *host)))) and seen["samples"] > 100 and seen["kernels"] > 0 and
                   (users := self.ask(unit, "&".join(("processes?gpus=1", *host)))) and
                   sum(any(gpu["kernels"] for gpu in user["gpus"]) for user in users["processes"]) >= len(PROFILED) and
                   (tree := self.ask(unit, "&".join(("flamegraph?type=cpu", *host)))) and
                   any("hotpaths::hash_block" in text for text in tree["strings"])):
            self.assertLess(time.monotonic(), deadline, f"{unit}: {seen}\n{self.logs()}")
            time.sleep(0.5)

    def test_without_root_they_see_all_that_root_sees(self):
        systemd = self.boot()
        self.await_work("gpusonde-up")
        self.await_work("gpusonde-serve", ("host=node",))
        services = {}
        for status in pathlib.Path("/proc").glob("[0-9]*/status"):
            text = status.read_text()
            cgroup = (status.parent / "cgroup").read_text()
            for unit in MAX_EXPOSURE:
                if f"/gpusonde-test-{os.getpid()}/system.slice/{unit}.service" in cgroup:
                    services.setdefault(unit, []).append(dict(re.findall(r"^(\w+):\s+(\S+)", text, re.MULTILINE)))
        self.assertEqual(set(services), set(MAX_EXPOSURE), self.logs())
        for unit, processes in services.items():
            for process in processes:
                self.assertNotEqual(process["Uid"], "0", unit)
                self.assertEqual((process["NoNewPrivs"], process["Seccomp"]), ("1", "2"), unit)
        systemd.kill()
        systemd.wait()
        self.await_end()
        for days in ("gpusonde/days", "gpusonde-serve/hosts/node"):
            (day,) = (self.state / "private" / days).glob("*.sonde")
            self.assertEqual(self.query(NAMES_SQL, day), [{"others_functions": True, "kernel_functions": True}], days)
            self.assertEqual(self.query(GPU_SQL, day), [{"profiled": len(PROFILED)}], days)


if __name__ == "__main__":
    unittest.main()
