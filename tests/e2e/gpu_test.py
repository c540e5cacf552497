#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""GPU work in recordings, on the simulated GPU."""

import sys
import time
import unittest

import program

CPUS = 0.5
TAKES_S = 27
ROUNDS = 10
# How long a program loads before its first launch. The recorder needs some of that to compile the interpreter's unwind
# tables, and must read names before the program has ended; how long both take depends on the machine.
LOADING_S = ("2", "8", "30")
LAUNCHES = program.ROOT / "tests/programs/gpu_launches.py"


class Gpu(program.TestCase):
    def setUp(self):
        super().setUp()
        self.environment = self.simulated_machine()

    def record_gpu(self, *command, options=(), **more):
        return self.record(*command, options=options, env=self.environment, **more)

    def test_every_kernel_copy_and_graph_launch_is_there_once(self):
        done = self.record_gpu(sys.executable, LAUNCHES, str(ROUNDS))
        self.assertEqual(done.returncode, 0, done.stderr)
        counts = {row["name"]: row["n"] for row in self.query("SELECT name, count(*) AS n FROM kernels GROUP BY name")}
        self.assertEqual(counts, {"sgemm": 100 * ROUNDS, "relu": 53 * ROUNDS})
        self.assertEqual(self.value("SELECT count(*) FROM memcpys WHERE kind = 'htod' AND bytes = 4096"), 20 * ROUNDS)
        self.assertEqual(self.value("SELECT count(*) FROM kernels WHERE graph_node IS NOT NULL"), 3 * ROUNDS)
        self.assertEqual(self.value("SELECT count(*) FROM kernel_windows"), 0, "nothing was lost")
        self.assertEqual(self.query("SELECT reason FROM drops WHERE reason LIKE 'gpu%'"), [])

    def test_kernels_last_as_long_as_they_ran_within_the_recording(self):
        self.record_gpu(sys.executable, LAUNCHES, str(ROUNDS))
        (row,) = self.query("""
            SELECT min(kernels.start_ns) >= min(sources.started_ns) AS begun,
                   max(kernels.end_ns) <= max(sources.ended_ns) AS ended,
                   min(kernels.end_ns - kernels.start_ns) FILTER (kernels.name = 'sgemm') AS shortest
            FROM kernels, sources""")
        self.assertTrue(row["begun"] and row["ended"])
        self.assertGreaterEqual(row["shortest"], 20_000)

    def test_work_in_a_time_namespace_has_the_hosts_time(self):
        """As that of a program that CRIU has restored: its clocks are ahead of the host's."""
        done = self.record_gpu("unshare", "-T", "--monotonic", "100000", sys.executable, LAUNCHES, str(ROUNDS), "1")
        self.assertEqual(done.returncode, 0, done.stderr)
        (row,) = self.query("""
            SELECT count(*) AS n, min(kernels.start_ns) >= min(sources.started_ns) AS begun,
                   max(kernels.end_ns) <= max(sources.ended_ns) AS ended FROM kernels, sources""")
        self.assertEqual(row, {"n": 153 * ROUNDS, "begun": True, "ended": True})
        self.assertEqual(self.query("SELECT reason FROM drops WHERE reason LIKE 'gpu%'"), [])

    def assert_callers(self, sql, holds):
        """Asserts that the query's rows are as expected, for a program that loads long enough."""
        for loading_s in LOADING_S:
            done = self.record_gpu(sys.executable, LAUNCHES, str(ROUNDS), loading_s)
            self.assertEqual(done.returncode, 0, done.stderr)
            rows = self.query(sql)
            if holds(rows):
                return
        self.fail(f"{rows}; {self.query('SELECT * FROM drops')}")

    def test_kernels_have_the_python_function_that_launched_them(self):
        self.assert_callers("""
            SELECT kernels.name AS kernel, functions.name AS caller, count(*) AS n
            FROM kernels JOIN api_calls USING (process, session, correlation) JOIN stacks USING (stack),
                 unnest(stacks.locations) AS part(location)
                 JOIN locations ON locations.location = part.location
                 JOIN functions ON functions.function = locations.functions[1]
            WHERE locations.kind = 'python' AND functions.name IN ('forward', 'backward') AND graph_node IS NULL
            GROUP BY ALL""",
            lambda rows: {(row["kernel"], row["caller"]) for row in rows} == {("sgemm", "forward"), ("relu", "backward")})
        self.assertEqual(self.value("""
            SELECT count(*) FROM api_calls JOIN stacks USING (stack) JOIN locations ON location = locations[1]
            JOIN binaries USING (binary_id) WHERE binaries.name LIKE 'libgpusonde%' OR binaries.name LIKE 'libcupti%'"""),
            0, "frames of the profiler itself are not shown")

    def test_the_summary_names_the_programs_own_callers_above_a_stripped_driver(self):
        stripped = self.folder / "stripped"
        program.shutil.copytree(self.environment["LD_LIBRARY_PATH"], stripped)
        for library in stripped.glob("*.so*"):
            program.subprocess.run(["strip", "--strip-all", library], check=True)
        self.environment["LD_LIBRARY_PATH"] = str(stripped)
        done = self.record_gpu(program.BUILD / "bin/hpc", "--seconds", "3")
        self.assertEqual(done.returncode, 0, done.stderr)
        callers = [line for line in done.stderr.splitlines() if line.startswith("gpu time")]
        self.assertTrue(callers, done.stderr)
        for line in callers:
            self.assertRegex(line, r"← .*\bhpc")
            self.assertNotRegex(line, "LeaveCall|FireProbe|libcuda|libcupti")

    def test_a_graphs_nodes_have_the_stack_that_captured_them(self):
        self.assert_callers(f"SELECT DISTINCT functions.name AS caller {program.GRAPH_CAPTURERS}",
                            lambda rows: "make_graph" in {row["caller"] for row in rows})

    def test_the_device_says_that_it_is_simulated(self):
        self.record_gpu(sys.executable, LAUNCHES, "1")
        (device,) = self.query("SELECT name, simulated FROM devices")
        self.assertTrue(device["simulated"])
        self.assertIn("imulated", device["name"])

    def test_a_program_without_a_gpu_has_none(self):
        done = self.record(sys.executable, "-c", "pass")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.value("SELECT count(*) FROM gpu_sessions"), 0)

    def device_account(self, log):
        """{pid: [kernels, ns]} from complete lines of the simulated device's log (SIMGPU_LOG), which may still grow."""
        account = {}
        for line in log.read_text().split("\n")[:-1]:
            kind, pid, _, _, _, _, start_ns, end_ns, *_ = line.split("\t")
            if kind == "kernel":
                sums = account.setdefault(int(pid), [0, 0])
                sums[0] += 1
                sums[1] += int(end_ns) - int(start_ns)
        return account

    def test_several_processes_on_one_device_have_each_their_own(self):
        log = self.folder / "device.log"
        self.environment["SIMGPU_LOG"] = str(log)
        launches = f"{sys.executable} {LAUNCHES}"
        done = self.record_gpu("sh", "-c", f"{launches} 10 & {launches} 20 & {launches} 30; wait")
        self.assertEqual(done.returncode, 0, done.stderr)
        rows = self.query("""
            SELECT pid, count(*) AS n, sum(end_ns - start_ns)::BIGINT AS ns
            FROM kernels JOIN processes USING (process) GROUP BY pid""")
        self.assertEqual({row["pid"]: [row["n"], row["ns"]] for row in rows}, self.device_account(log))
        self.assertEqual(sorted(row["n"] for row in rows), [153 * 10, 153 * 20, 153 * 30])
        self.assertEqual(self.value("SELECT count(*) FROM devices"), 1)

    def test_programs_that_end_before_their_work_is_read_have_their_start_parent_and_name(self):
        # The stopped recorder reads the work, the fork and the end of a program at once.
        script = f'kill -STOP $PPID; {sys.executable} {LAUNCHES} 1; kill -CONT $PPID; sleep 0.5'
        done = self.record_gpu("sh", "-c", f"{script}; {script}")
        self.assertEqual(done.returncode, 0, done.stderr)
        shell = self.value("SELECT pid FROM processes WHERE name = 'sh'")
        programs = self.query("""
            SELECT name, parent_pid, command, exited_ns - started_ns AS ns FROM processes
            WHERE process IN (SELECT process FROM kernels)""")
        self.assertEqual([(row["name"], row["parent_pid"]) for row in programs], 2 * [("python3", shell)])
        self.assertTrue(all(row["ns"] > 0 for row in programs), programs)
        self.assertTrue(all("kill" not in row["command"] for row in programs), "the shell's command isn't theirs")

    def test_a_killed_recorder_leaves_the_program_as_it_was(self):
        log, result = self.folder / "device.log", self.folder / "result"
        self.environment["SIMGPU_LOG"] = str(log)
        # All its kernels run, and its output and exit status are unchanged.
        go = self.folder / "go"
        script = (f"{sys.executable} {LAUNCHES} 50 && while [ ! -e {go} ]; do sleep 0.1; done && {sys.executable} {LAUNCHES} 50; "
                  f"echo $? > {result}; exit 7")
        recorder = program.subprocess.Popen([program.GPUSONDE, "record", "-o", self.recording, "--", "sh", "-c", script],
                                            env=self.environment, stderr=program.subprocess.DEVNULL)
        self.addCleanup(recorder.wait)
        self.addCleanup(recorder.kill)
        self.addCleanup(go.touch)
        deadline = time.monotonic() + 60
        while not log.exists() or not any(kernels >= 153 * 50 for kernels, _ in self.device_account(log).values()):
            self.assertLess(time.monotonic(), deadline, "the first half never ended")
            time.sleep(0.1)
        self.await_spooled("SELECT count(*) FROM kernels", lambda kernels: kernels == 153 * 50)
        recorder.kill()
        recorder.wait()
        go.touch()
        deadline = time.monotonic() + 60
        while not result.exists() or not result.read_text().strip():
            self.assertLess(time.monotonic(), deadline, "the program never ended")
            time.sleep(0.1)
        self.assertEqual(result.read_text(), "0\n")
        self.assertEqual([kernels for kernels, _ in self.device_account(log).values()], [153 * 50, 153 * 50])
        recovered = program.run("record", "--recover", "-o", self.recording)
        self.assertEqual(recovered.returncode, 0, recovered.stderr)
        self.assertEqual(self.value("SELECT count(*) FROM kernels"), 153 * 50, "received data is kept")

    def test_another_tools_injection_is_left_alone(self):
        self.environment["CUDA_INJECTION64_PATH"] = str(self.folder / "not-ours.so")
        done = self.record_gpu(sys.executable, LAUNCHES, "1")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("CUDA_INJECTION64_PATH is set to", done.stderr)
        self.assertEqual(self.value("SELECT count(*) FROM kernels"), 0)

    def test_a_program_whose_environment_was_cleared_is_named(self):
        done = self.record_gpu("env", "-u", "CUDA_INJECTION64_PATH", sys.executable, LAUNCHES, "1")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.value("SELECT count(*) FROM kernels"), 0)
        self.assertRegex(" ".join(done.stderr.split()),
                         r"process \d+ \(python\S*\) loaded CUDA without gpusonde's library\. If it used a GPU, that isn't recorded")
        self.assertNotIn("without gpusonde's library", self.record_gpu(sys.executable, LAUNCHES, "1").stderr)


class WithoutPrivileges(program.TestCase):
    """Other users may not be able to read the tree, so the program is copied as if installed."""

    needs_recording = False
    NOBODY = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")

    def setUp(self):
        super().setUp()
        if program.os.geteuid() != 0:
            self.skipTest("needs root, to become a user without privileges")
        self.install = self.folder / "install"
        files = {"bin": [program.GPUSONDE, program.SIMGPU],
                 "lib": [program.BUILD / "lib/libgpusonde-inject.so", program.ROOT / "build/deps/duckdb/libduckdb.so"],
                 "lib/simgpu": (program.BUILD / "lib/simgpu").iterdir(),
                 "examples/train": (program.ROOT / "examples/train").glob("*.py"), "tests/programs": [LAUNCHES]}
        for folder, paths in files.items():
            (self.install / folder).mkdir(parents=True, exist_ok=True)
            for path in paths:
                program.shutil.copy(path, self.install / folder)
        (self.folder / "out").mkdir()
        program.os.chown(self.folder / "out", 65534, 65534)
        self.folder.chmod(0o755)
        self.recording = self.folder / "out/run.sonde"
        self.environment = dict(program.os.environ, SIMGPU_MACHINE=self.folder.name, HOME=str(self.folder / "out"),
                                PATH="/usr/local/bin:/usr/bin:/bin")
        self.addCleanup(program.subprocess.run, [*self.NOBODY, self.install / "bin/simgpu", "reset"],
                        env=self.environment, check=False)

    def record_as_nobody(self, *command, through=()):
        return program.subprocess.run(
            [*self.NOBODY, *through, self.install / "bin/gpusonde", "record", "-o", self.recording, "--", *command],
            env=self.environment, cwd=self.folder / "out", capture_output=True, text=True, timeout=120, check=False)

    def test_gpu_work_is_recorded_whole(self):
        script = f"python3 {self.install}/tests/programs/gpu_launches.py {ROUNDS} && exit 7"
        done = self.record_as_nobody("sh", "-c", script, through=(self.install / "bin/simgpu", "run", "--"))
        self.assertEqual(done.returncode, 7, done.stderr)
        self.assertIn("recording GPU work only, without the stacks that launched it", done.stderr)
        self.assertIn("CAP_BPF", done.stderr)
        self.assertIn("cpu       not sampled", done.stderr)
        counts = {row["name"]: row["n"] for row in self.query("SELECT name, count(*) AS n FROM kernels GROUP BY name")}
        self.assertEqual(counts, {"sgemm": 100 * ROUNDS, "relu": 53 * ROUNDS})
        self.assertEqual(self.value("SELECT count(*) FROM memcpys WHERE kind = 'htod' AND bytes = 4096"), 20 * ROUNDS)
        self.assertEqual(self.value("SELECT count(stack) FROM api_calls"), 0)
        self.assertEqual(self.value("SELECT count(*) FROM samples"), 0)
        self.assertEqual(self.value("SELECT sampling_hz FROM sources"), None)
        self.assertGreater(self.value("SELECT count(*) FROM metrics WHERE metric = 'gpu.power'"), 0)
        names = {row["name"]: row["command"] for row in self.query("SELECT name, command FROM processes")}
        self.assertIn("gpu_launches.py", " ".join(names.values()), names)
        self.assertEqual(self.value("SELECT count(*) FROM processes JOIN kernels USING (process) "
                                    "WHERE command LIKE '%gpu_launches%'"), 153 * ROUNDS)

    def test_without_a_gpu_nothing_is_left_to_record(self):
        done = self.record_as_nobody("touch", self.folder / "out/ran")
        self.assertEqual(done.returncode, 125, done.stderr)
        self.assertIn("CAP_BPF", done.stderr)
        self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
        self.assertFalse((self.folder / "out/ran").exists(), "the program was not started")
        self.assertFalse(self.recording.exists())


if __name__ == "__main__":
    unittest.main()
