# SPDX-License-Identifier: Apache-2.0
"""The package (docs/package.md), unpacked into a folder with a space in its name and run in an empty root."""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
import urllib.request

import program
from program import ROOT

CPUS = 0.5
TAKES_S = 40
MACHINE = f"simgpu-package-{os.getpid()}"
WHERE_IT_IS = "/a package"  # in the empty root


class Package(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.top = pathlib.Path(tempfile.mkdtemp(prefix="gpusonde-package-"))
        cls.addClassCleanup(cls.remove)
        cls.package = program.unpacked_package(cls.top / "un packed")

    @classmethod
    def remove(cls):
        # Never through a mount: there are none unless a test has failed.
        mounted = pathlib.Path("/proc/self/mountinfo").read_text()
        assert str(cls.top) not in mounted, f"something is still mounted below {cls.top}"
        shutil.rmtree(cls.top)
        for file in pathlib.Path("/dev/shm").glob(f"{MACHINE}.*"):
            file.unlink()

    def setUp(self):
        self.work = pathlib.Path(tempfile.mkdtemp(prefix="work-", dir=self.top))

    def run_here(self, program_name, *arguments, **options):
        return subprocess.run([self.package / "bin" / program_name, *arguments], capture_output=True, text=True,
                              timeout=120, stdin=subprocess.DEVNULL, check=False, **options)

    def empty_root(self, *command):
        """The command line that runs `command` in a root with only the package."""
        root = self.work / "root"
        root.mkdir(exist_ok=True)
        return ["unshare", "--mount", "--propagation", "private", str(ROOT / "tests/e2e/empty_root"), str(root),
                str(self.package), str(self.work), *command]

    def run_there(self, *command):
        environment = {"SIMGPU_MACHINE": MACHINE, "SIMGPU_LOG": "/work/device.log"}
        return subprocess.run(self.empty_root(*command), capture_output=True, text=True, timeout=120,
                              stdin=subprocess.DEVNULL, check=False, env={**environment, "PATH": os.environ["PATH"]})

    def needs_an_empty_root(self):
        done = self.run_there(f"{WHERE_IT_IS}/bin/gpusonde", "--version")
        if done.returncode != 0 and os.geteuid() != 0:
            self.skipTest(f"only root can make an empty root here: {done.stderr.strip()}")
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_it_is_reached_by_a_symbolic_link_from_any_folder(self):
        link = self.work / "gps"
        link.symlink_to(os.path.relpath(self.package / "bin/gpusonde", self.work))
        done = subprocess.run(["./gps", "doctor", "--format", "json"], cwd=self.work, capture_output=True, text=True,
                              check=False)
        findings = {finding["name"]: finding for finding in json.loads(done.stdout)["capabilities"]}
        self.assertTrue(findings["duckdb"]["works"], findings["duckdb"])
        self.assertIn(str(self.package), findings["ui"]["why"])

    def test_nothing_in_it_looks_for_libraries_elsewhere(self):
        for file in self.package.rglob("*"):
            if not file.is_file():
                continue
            with file.open("rb") as content:
                if content.read(4) != b"\x7fELF":
                    continue
            dynamic = subprocess.run(["readelf", "-d", file], capture_output=True, text=True, check=True).stdout
            for folders in re.findall(r"(?:RPATH|RUNPATH).*\[(.*)\]", dynamic):
                for folder in folders.split(":"):
                    self.assertTrue(folder.startswith("$ORIGIN"), f"{file}: {folder}")

    def test_every_library_comes_with_its_licence(self):
        licences = {path.name for path in (self.package / "share/doc/gpusonde/licences").iterdir()}
        self.assertLessEqual({"libc6", "libstdc++6", "libelf1", "duckdb", "npm-preact", "npm-uplot"}, licences)
        for path in (self.package / "share/doc/gpusonde").rglob("*"):
            self.assertTrue(path.is_dir() or path.stat().st_size > 0, path)

    def test_it_has_every_page_that_its_help_and_its_pages_refer_to(self):
        def read(path):
            return (self.package / path).read_text()

        commands = re.findall(r"^  ([a-z]+) ", self.run_here("gpusonde", "--help").stdout.partition("Commands:")[2], re.MULTILINE)
        self.assertIn("record", commands)
        named = {page for command in commands
                 for page in re.findall(r"docs/[\w/-]+\.md", self.run_here("gpusonde", command, "--help").stdout)}
        self.assertIn("docs/schema.md", named)
        for page in ("README.md", "docs/deploy.md", "deploy/kubernetes/README.md"):
            links = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", read(page))
            self.assertTrue(links, page)
            named |= {os.path.normpath(pathlib.Path(page).parent / link) for link in links}
        self.assertEqual([], sorted(page for page in named if not (self.package / page).exists()))

    def test_every_user_may_read_what_was_packed_under_any_umask(self):
        for path in self.package.rglob("*"):
            if not path.is_symlink():
                wanted = 0o755 if path.is_dir() or path.stat().st_mode & 0o100 else 0o644
                self.assertEqual(oct(path.stat().st_mode & 0o777), oct(wanted), path)

    def test_a_recorded_program_has_the_environment_it_would_have_anyway(self):
        if not program.can_record():
            self.skipTest("gpusonde can't record on this machine: see `gpusonde doctor`")
        environment = {**os.environ, "LD_LIBRARY_PATH": "/somebody's/libraries"}
        show = [sys.executable, "-c", "import json, os; print(json.dumps(dict(os.environ)))"]
        alone = json.loads(subprocess.run(show, env=environment, capture_output=True, text=True, check=True).stdout)
        done = self.run_here("gpusonde", "record", "-o", self.work / "run.sonde", "--", *show, env=environment)
        self.assertEqual(done.returncode, 0, done.stderr)
        recorded = json.loads(done.stdout)
        ours = {name: recorded.pop(name) for name in set(recorded) - set(alone)}
        self.assertEqual(recorded, alone)
        self.assertLessEqual(set(ours), {"CUDA_INJECTION64_PATH", "NVTX_INJECTION64_PATH", "NCCL_PROFILER_PLUGIN",
                                         "GPUSONDE_INJECT_SOCKET"})
        self.assertEqual(ours["CUDA_INJECTION64_PATH"], str(self.package / "lib/libgpusonde-inject.so"))

    def test_traces_are_analysed_by_several_ranks_of_mpi(self):
        if shutil.which("mpirun") is None:
            self.skipTest("mpirun isn't installed")
        events = [{"ph": "X", "cat": "kernel", "name": f"k{i % 3}", "pid": 0, "tid": 7, "ts": 10 * i, "dur": 5}
                  for i in range(1000)]
        (self.work / "trace.json").write_text(json.dumps({"traceEvents": events}))
        command = [self.package / "bin/gpusonde", "analyze", "--format", "json", "trace.json"]
        several = ["mpirun", "--allow-run-as-root", "--oversubscribe", "-n", "2"]
        alone, together = (subprocess.run([*prefix, *command], cwd=self.work, capture_output=True, text=True, timeout=120,
                                          check=False) for prefix in ([], several))
        self.assertEqual(together.returncode, 0, together.stderr)
        self.assertEqual(together.stdout, alone.stdout)
        self.assertEqual(json.loads(alone.stdout)["traces"][0]["kernels"], 1000)

    def test_the_suite_for_real_gpus_runs_from_it(self):
        if not program.can_record():
            self.skipTest("gpusonde can't record on this machine: see `gpusonde doctor`")
        environment = {name: value for name, value in os.environ.items() if not name.startswith("GPUSONDE")}
        done = self.run_here("simgpu", "run", "--", sys.executable, self.package / "tools/gpu-suite", "run", "--quick", "--out",
                             self.work / "out", "examples", "launches", env={**environment, "SIMGPU_MACHINE": MACHINE})
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        results = json.loads((self.work / "out/results.json").read_text())
        self.assertEqual([entry["status"] for entry in results["parts"]], ["done", "done"], results)
        self.assertLessEqual(len(list((self.work / "out").iterdir())), 8, "a lent machine returns at most this many files")

    def test_alone_in_an_empty_root_it_records_a_simulated_gpu_and_shows_it(self):
        self.needs_an_empty_root()
        there = f"{WHERE_IT_IS}/bin/"
        doctor = self.run_there(there + "gpusonde", "doctor", "--format", "json")
        findings = {finding["name"]: finding for finding in json.loads(doctor.stdout)["capabilities"]}
        for name in ("duckdb", "ui"):
            self.assertTrue(findings[name]["works"], findings[name])
        if doctor.returncode != 0:
            self.skipTest("gpusonde can't record on this machine: see `gpusonde doctor`")
        self.assertTrue(findings["uprobes"]["works"], findings["uprobes"])

        done = self.run_there(there + "simgpu", "run", "--", there + "gpusonde", "record", "-o", "/work/run.sonde", "--",
                              there + "gpusonde-hpc", "--seconds", "2")
        self.assertEqual(done.returncode, 0, done.stderr)
        device = [line.split("\t") for line in (self.work / "device.log").read_text().splitlines()]
        kernels = [int(line[7]) - int(line[6]) for line in device if line[0] == "kernel"]
        sql = """SELECT count(*) AS n, sum(end_ns - start_ns) AS ns,
                        (SELECT count(*) FROM samples JOIN threads USING (process, tid) WHERE name = 'gpusonde-hpc') > 0
                        AS sampled FROM kernels"""
        done = self.run_there(there + "gpusonde", "query", "/work/run.sonde", sql, "--format", "json")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(json.loads(done.stdout), [{"n": len(kernels), "ns": sum(kernels), "sampled": True}])

        self.view("/work/run.sonde")

    def view(self, recording):
        command = self.empty_root(f"{WHERE_IT_IS}/bin/gpusonde", "view", recording, "--listen", "127.0.0.1:0", "--no-open")
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as view:
            try:
                url = next((found.group() for line in view.stdout if (found := re.search(r"http://\S+/", line))), None)
                self.assertIsNotNone(url, "it says where the UI is")
                self.assertEqual(pathlib.Path(f"/proc/{view.pid}/comm").read_text(), "gpusonde\n")
                with urllib.request.urlopen(url, timeout=30) as answer:
                    script = re.search(r'src="(?:\./|/)?(\S+\.js)"', answer.read().decode()).group(1)
                with urllib.request.urlopen(url + script, timeout=30) as answer:
                    self.assertIn("javascript", answer.headers["Content-Type"])
                with urllib.request.urlopen(url + "api/v1/overview", timeout=30) as answer:
                    self.assertGreater(json.load(answer)["samples"], 0)
            finally:
                view.kill()


if __name__ == "__main__":
    unittest.main()
