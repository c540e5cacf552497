# SPDX-License-Identifier: Apache-2.0
"""The CDI device of deploy/cdi, as it is: containers of Debian's podman that ask for it are profiled (on a simulated GPU)."""

import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import time
import unittest
import urllib.request

import program

OWN_MACHINE = "up profiles every GPU program of the machine"
CPUS = 0.25  # it waits for containers
SPECIFICATION = program.ROOT / "deploy/cdi/gpusonde.json"
DEVICE = "gpusonde/profiler=cuda"
VARIABLE = "CUDA_INJECTION64_PATH"
LIBRARY = "/opt/gpusonde/lib/libgpusonde-inject.so"
# The package is /opt/gpusonde, and the specification where runtimes look for it, in a mount namespace that ends with podman.
# crun knows cgroups of version 2 alone or those of version 1, but not both at once.
ENTER = """
set -e
mount -t cgroup2 cgroup2 /sys/fs/cgroup
mount -t tmpfs tmpfs /opt && mkdir /opt/gpusonde && mount --bind "$1" /opt/gpusonde
mount -t tmpfs tmpfs /run && mkdir /run/cdi && cp "$2" /run/cdi
shift 2 && exec "$@"
"""
SHOW = f"""echo "${VARIABLE}"; test -s {LIBRARY} && echo there; (: >{LIBRARY}) 2>/dev/null || echo not writable"""
# What a CUDA driver would do, in a program that musl's loader runs.
LOADS = """
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
int main(void) {
  const char* path = getenv("CUDA_INJECTION64_PATH");
  void* library = path ? dlopen(path, RTLD_NOW) : NULL;
  int (*initialize)(void) = library ? (int (*)(void))dlsym(library, "InitializeInjection") : NULL;
  printf("%s, %s\\n", path ? path : "not set", initialize ? initialize() ? "initialised" : "failed" : "not loaded");
  return 0;
}
"""
GPU_SQL = """
    SELECT count(DISTINCT process) AS processes FROM kernels JOIN processes USING (process) WHERE processes.name = 'hpc'"""


def needed(*files):
    """The shared libraries that these programs and libraries need, and the loader."""
    text = subprocess.run(["ldd", *files], capture_output=True, text=True, check=True).stdout
    return set(re.findall(r"(/\S+) \(0x", text))


class Specification(unittest.TestCase):
    """What the rules of CDI 0.5.0 (SPEC.md of the container-device-interface project) ask of every specification."""

    def setUp(self):
        self.content = json.loads(SPECIFICATION.read_text())

    def test_it_is_a_specification_of_cdi_0_5_0(self):
        self.assertEqual(set(self.content), {"cdiVersion", "kind", "devices"})
        self.assertEqual(self.content["cdiVersion"], "0.5.0")
        self.assertRegex(self.content["kind"], r"^[A-Za-z]([\w.-]*[A-Za-z0-9])?/[A-Za-z]([\w-]*[A-Za-z0-9])?$")
        for device in self.content["devices"]:
            self.assertEqual(set(device), {"name", "containerEdits"})
            self.assertRegex(device["name"], r"^[A-Za-z0-9]([\w.:-]*[A-Za-z0-9])?$")
            edits = device["containerEdits"]
            self.assertLessEqual(set(edits), {"env", "mounts", "deviceNodes"}, "no hook: it runs too late to set a variable")
            for variable in edits["env"]:
                self.assertRegex(variable, r"^\w+=.+$")
            for mount in edits["mounts"]:
                self.assertEqual(set(mount), {"hostPath", "containerPath", "options"})

    def test_it_gives_the_library_read_only_at_the_path_that_the_variables_name(self):
        (device,) = self.content["devices"]
        (mount,) = device["containerEdits"]["mounts"]
        self.assertEqual(f"{self.content['kind']}={device['name']}", DEVICE)
        self.assertEqual(device["containerEdits"]["env"], [f"{VARIABLE}={LIBRARY}", f"NVTX_INJECTION64_PATH={LIBRARY}"])
        self.assertEqual((mount["hostPath"], mount["containerPath"]), (LIBRARY, LIBRARY))
        self.assertIn("ro", mount["options"])


class Containers(program.TestCase):
    needs_recording = False

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        if os.geteuid() != 0 or shutil.which("podman") is None:
            raise unittest.SkipTest("needs root and Debian's packages podman and crun")
        cls.top = pathlib.Path(tempfile.mkdtemp(prefix="gpusonde-cdi-"))
        cls.addClassCleanup(shutil.rmtree, cls.top)
        cls.package = program.unpacked_package(cls.top / "package")
        cls.root = cls.make_root()
        done = cls.run_podman(["/bin/sh", "-c", ":"])
        if done.returncode != 0:
            raise unittest.SkipTest(f"podman can't run a container here: {done.stderr.strip()}")

    @classmethod
    def make_root(cls):
        """A root with a shell, a CUDA program and the simulated GPU."""
        root = cls.top / "root"
        simulated = sorted((program.BUILD / "lib/simgpu").iterdir())
        hpc, shell = program.BUILD / "bin/hpc", pathlib.Path("/bin/sh")
        copies = {"bin/sh": shell, "bin/hpc": hpc, **{f"simgpu/{library.name}": library for library in simulated},
                  **{library.lstrip("/"): library for library in needed(hpc, shell, *simulated)}}
        for name, source in copies.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, root / name)
        return root

    @classmethod
    def run_podman(cls, *arguments, root=None):
        """Runs a container in `root`: options, and the command as a list."""
        state = ["--root", cls.top / "store", "--runroot", "/run/podman", "--storage-driver", "vfs", "--events-backend", "none",
                 "--cgroup-manager", "cgroupfs", "--log-level", "error"]
        # podman's own limits may be above those that this machine allows.
        limits = [f"--ulimit={name}=1024:1024" for name in ("nofile", "nproc")]
        run = ["run", "--rm", "--network", "none", "--cgroups", "disabled", *limits, "--env", "LD_LIBRARY_PATH=/simgpu"]
        inside = ["podman", *state, *run, *arguments[:-1], "--rootfs", root or cls.root, *arguments[-1]]
        return subprocess.run(["unshare", "--mount", "sh", "-c", ENTER, "sh", cls.package, SPECIFICATION, *inside], capture_output=True,
                              text=True, timeout=120, check=False, stdin=subprocess.DEVNULL, env={**os.environ, "HOME": str(cls.top)})

    def output_of(self, *arguments, root=None):
        done = self.run_podman(*arguments, root=root)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout.splitlines()

    def show(self, *options):
        return self.output_of(*options, ["/bin/sh", "-c", SHOW])

    def test_a_container_that_asks_has_the_variable_and_the_library_and_others_have_neither(self):
        self.assertEqual(self.show("--device", DEVICE), [LIBRARY, "there", "not writable"])
        self.assertNotIn("there", (others := self.show()))
        self.assertEqual(others[0], "")

    def test_the_device_wins_over_a_variable_that_is_set_already(self):
        self.assertEqual(self.show("--device", DEVICE, "--env", f"{VARIABLE}=/other/tool.so"), [LIBRARY, "there", "not writable"])
        self.assertEqual(self.show("--env", f"{VARIABLE}=/other/tool.so")[0], "/other/tool.so")

    def test_a_read_only_container_has_both(self):
        self.assertEqual(self.show("--device", DEVICE, "--read-only"), [LIBRARY, "there", "not writable"])

    def test_a_container_of_musl_runs_as_it_would_without(self):
        if shutil.which("musl-gcc") is None:
            self.skipTest("no musl-gcc; install Debian's package musl-tools")
        root = self.folder / "musl"
        (root / "lib").mkdir(parents=True)
        source = self.folder / "loads.c"
        source.write_text(LOADS)
        subprocess.run(["musl-gcc", "-o", root / "loads", source], check=True)
        shutil.copy("/lib/ld-musl-x86_64.so.1", root / "lib")
        self.assertEqual(self.output_of("--device", DEVICE, ["/loads"], root=root), [f"{LIBRARY}, not loaded"])
        self.assertEqual(self.output_of(["/loads"], root=root), ["not set, not loaded"])

    def start_up(self):
        """`gpusonde up` of the package, whose library is the containers'; returns its process and URL."""
        command = [self.package / "bin/gpusonde", "up", "--state", self.folder / "state", "--listen", "127.0.0.1:0", "--no-open"]
        up = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.addCleanup(up.communicate)
        self.addCleanup(up.kill)
        url = next((found.group() for line in up.stdout if (found := re.search(r"http://\S+/", line))), None)
        self.assertIsNotNone(url, "it says where the UI is")
        return up, url

    def kernels(self, url):
        with urllib.request.urlopen(url + "api/v1/overview", timeout=30) as answer:
            return json.load(answer)["kernels"]

    def test_gpu_work_of_containers_that_ask_is_profiled(self):
        if not program.can_record():
            self.skipTest("gpusonde can't record on this machine: see `gpusonde doctor`")
        up, url = self.start_up()
        work = ["/bin/hpc", "--seconds", "6"]
        self.output_of(["/bin/hpc", "--seconds", "2"])
        before = 0
        for options in ((), ("--read-only",)):
            self.output_of("--device", DEVICE, *options, work)
            deadline = time.monotonic() + 30
            while (now := self.kernels(url)) <= before:
                self.assertLess(time.monotonic(), deadline, f"no kernels of {options}")
                time.sleep(0.2)
            before = now
        up.send_signal(2)
        up.wait(timeout=30)
        (day,) = (self.folder / "state/days").glob("*.sonde")
        self.assertEqual(self.query(GPU_SQL, day), [{"processes": 2}], "of three containers, those that asked")


if __name__ == "__main__":
    unittest.main()
