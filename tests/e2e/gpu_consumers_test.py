# SPDX-License-Identifier: Apache-2.0
"""Several consumers of one program's GPU work, in any order, and awkward programs."""

import json
import re
import signal
import subprocess
import sys
import time
import unittest

import program

OWN_MACHINE = "up profiles every GPU program of the machine"
CPUS = 1  # `up` must know a program half a second after its start, or its first capture has no stacks
TAKES_S = 90
LAUNCHES = program.ROOT / "tests/programs/gpu_launches.py"
LIBRARY = program.BUILD / "lib/libgpusonde-inject.so"
KERNELS_A_ROUND = 153
# A rate at which the governor does not suspend profiling.
PAUSE_S = "0.1"
PATIENCE_S = 120

IDENTITIES = """
    SELECT count(*) AS kernels, count(*) FILTER (kernels.name = '') AS nameless,
           count(*) FILTER (devices.device IS NULL) AS of_no_device, count(DISTINCT kernels.device) AS devices
    FROM kernels LEFT JOIN devices USING (device)"""

CAPTURERS = f"SELECT functions.name AS name, count(*) AS kernels {program.GRAPH_CAPTURERS} GROUP BY ALL"


class Consumers(program.TestCase):
    def setUp(self):
        super().setUp()
        self.state = self.folder / "state"
        self.environment = self.simulated_machine()
        # Like a rank of a recorded program, so that no governor ends its sessions and all of its work is counted.
        self.injected = dict(self.environment, CUDA_INJECTION64_PATH=str(LIBRARY), GPUSONDE_INJECT_SOCKET="99:1")

    def start(self, *command, environment=None):
        process = subprocess.Popen([str(part) for part in command], env=environment or self.injected,
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        return process

    def start_up(self, state=None):
        """Starts `gpusonde up` and waits until it profiles."""
        up = self.start(program.GPUSONDE, "up", "--state", state or self.state, "--listen", "127.0.0.1:0", "--no-open")
        up.url = next(found.group(1) for line in up.stdout if (found := re.search(r"the UI is at (http://\S+/)", line)))
        return up

    def start_record(self, name, *options):
        record = self.start(program.GPUSONDE, "record", "-o", self.folder / name, *options)
        record.recording = self.folder / name
        return record

    def launches(self, rounds, loading_s=0, through=()):
        return self.start(*through, sys.executable, LAUNCHES, rounds, loading_s, PAUSE_S)

    def await_kernels(self, process, count):
        """Waits until the device has executed this many kernels of a process."""
        deadline = time.monotonic() + PATIENCE_S
        while True:
            done = subprocess.run([program.SIMGPU, "status"], env=self.environment, capture_output=True, text=True, check=True)
            (device,) = json.loads(done.stdout)["devices"]
            if any(one["pid"] == process.pid and one["kernels"] >= count for one in device["processes"]):
                return
            self.assertLess(time.monotonic(), deadline, device)
            time.sleep(0.05)

    def stop(self, consumer, how=signal.SIGINT):
        consumer.send_signal(how)
        _, errors = consumer.communicate(timeout=PATIENCE_S)
        self.assertEqual(consumer.returncode, 0, errors)
        return errors

    def end(self, process):
        _, errors = process.communicate(timeout=PATIENCE_S)
        self.assertEqual(process.returncode, 0, errors)
        return errors

    def day(self, state=None):
        (day,) = ((state or self.state) / "days").glob("*.sonde")
        return day

    def assert_identified(self, recording, kernels=None):
        """Every kernel has a name and the machine's only device. Returns the number of kernels."""
        (row,) = self.query(IDENTITIES, recording)
        self.assertEqual((row["nameless"], row["of_no_device"], row["devices"]), (0, 0, 1), row)
        self.assertGreater(row["kernels"], 0)
        if kernels is not None:
            self.assertEqual(row["kernels"], kernels)
        self.assertEqual(self.query("SELECT * FROM drops WHERE reason LIKE 'gpu%'", recording), [])
        self.assertEqual(self.value("SELECT count(*) FROM gpu_sessions WHERE start_ns <= 0", recording), 0)
        self.assertEqual(self.value("SELECT count(*) FROM devices", recording), 1)
        return row["kernels"]

    def test_record_joins_a_program_that_up_profiles(self):
        up = self.start_up()
        launches = self.launches(60)
        self.await_kernels(launches, 10 * KERNELS_A_ROUND)
        record = self.start_record("run.sonde", "-p", launches.pid)
        self.end(launches)
        self.end(record)
        time.sleep(1.5)
        self.stop(up)
        self.assert_identified(self.day(), 60 * KERNELS_A_ROUND)
        joined = self.assert_identified(record.recording)
        self.assertLess(joined, 60 * KERNELS_A_ROUND)
        self.assertGreater(joined, 20 * KERNELS_A_ROUND)
        self.assertEqual(self.value("SELECT count(*) FROM kernel_windows WHERE part = 'lost'", record.recording), 0,
                         "work before it joined doesn't belong to it")

    def test_a_program_that_was_started_without_the_library_is_named(self):
        """Its GPU work can't be seen any more: who attaches to it would only see that it has none."""
        unseen = self.start(sys.executable, LAUNCHES, 6000, 0, PAUSE_S, environment=self.environment)
        seen = self.launches(6000)  # until the test ends
        for process in (unseen, seen):
            self.await_kernels(process, KERNELS_A_ROUND)
        errors = self.end(self.start_record("unseen.sonde", "-p", unseen.pid, "--duration", "1"))
        self.assertIn(f"process {unseen.pid} uses CUDA, but was started without CUDA_INJECTION64_PATH", errors)
        self.assertIn(str(LIBRARY), errors)
        errors = self.end(self.start_record("seen.sonde", "-p", seen.pid, "--duration", "1"))
        self.assertNotIn("uses CUDA", errors)
        report = json.loads(program.run("doctor", "--format", "json").stdout)
        (found,) = (each for each in report["capabilities"] if each["name"] == "gpu_processes")
        self.assertRegex(found["why"], rf"isn.t profiled: {unseen.pid} \(python3[^,]*\)( \(|$)")

    def test_up_joins_a_program_that_is_recorded(self):
        record = self.start_record("run.sonde", "--", sys.executable, LAUNCHES, 60, 0, PAUSE_S)
        time.sleep(2.5)
        up = self.start_up()
        self.end(record)
        time.sleep(1.5)
        self.stop(up)
        self.assert_identified(record.recording, 60 * KERNELS_A_ROUND)
        self.assert_identified(self.day())

    def test_up_is_restarted_while_record_runs(self):
        up = self.start_up()
        launches = self.launches(100)
        self.await_kernels(launches, 10 * KERNELS_A_ROUND)
        record = self.start_record("run.sonde", "-p", launches.pid)
        time.sleep(2)
        self.stop(up)
        up = self.start_up()
        self.end(launches)
        self.end(record)
        time.sleep(1.5)
        self.stop(up)
        self.assert_identified(record.recording)
        self.assert_identified(self.day())
        self.assertEqual(self.value("SELECT count(*) - count(DISTINCT (correlation, graph_node)) FROM kernels", self.day()), 0,
                         "none is there twice")

    def test_one_of_three_leaves(self):
        up = self.start_up()
        launches = self.launches(60)
        self.await_kernels(launches, 10 * KERNELS_A_ROUND)
        leaving = self.start_record("leaving.sonde", "-p", launches.pid, "--duration", "2")
        staying = self.start_record("staying.sonde", "-p", launches.pid)
        self.end(leaving)
        self.end(launches)
        self.end(staying)
        time.sleep(1.5)
        self.stop(up)
        self.assert_identified(self.day(), 60 * KERNELS_A_ROUND)
        left, stayed = self.assert_identified(leaving.recording), self.assert_identified(staying.recording)
        self.assertLess(left, stayed)

    def test_a_graph_captured_before_profiling_appears_marked_under_its_launch(self):
        # Fewer than 100 calls a second, so that every stack is sampled.
        code = (f"import sys, time; sys.path.insert(0, '{LAUNCHES.parent}'); from gpu_launches import *\n"
                "gpu = cuda.Cuda(); stream = gpu.stream()\n"
                "graph = make_graph(gpu, gpu.functions(PTX, ['sgemm', 'relu']), stream)\n"
                "for _ in range(100):\n"
                "    gpu.launch_graph(graph, stream); gpu.synchronize(); time.sleep(0.04)")
        launches = self.start(sys.executable, "-c", code)
        self.await_kernels(launches, 3)
        record = self.start_record("run.sonde", "-p", launches.pid)
        self.end(launches)
        self.end(record)
        done = program.run("export", record.recording, "--format", "folded", "--type", "gpu")
        self.assertEqual(done.returncode, 0, done.stderr)
        graphs = [line for line in done.stdout.splitlines() if "[graph launch]" in line]
        self.assertTrue(graphs, done.stdout)
        self.assertTrue(any("launch_graph" in line for line in graphs), graphs)
        self.assertNotIn("[captured in graph]", done.stdout)

    def lingering_launches(self, go):
        """A program that ends once there is the file `go`: when the names of its functions, which are in its memory, have been read."""
        code = (f"import os, sys, time; sys.path.insert(0, '{LAUNCHES.parent}'); import gpu_launches; sys.argv = ['', '10']\n"
                f"gpu_launches.main()\nwhile not os.path.exists('{go}') and os.path.exists('{self.folder}'): time.sleep(0.1)")
        return sys.executable, "-c", code

    def test_the_first_capture_of_a_recorded_program_is_whole(self):
        go = self.folder / "go"
        record = self.start_record(self.recording.name, "--", *self.lingering_launches(go))
        self.await_spooled(f"SELECT count(*) FILTER (functions.name = 'make_graph') {program.GRAPH_CAPTURERS}",
                           lambda kernels: kernels == 3 * 10)
        go.touch()
        self.end(record)
        capturers = {row["name"]: row["kernels"] for row in self.query(CAPTURERS, record.recording)}
        self.assertEqual(capturers.get("make_graph"), 3 * 10, capturers)

    def test_the_first_capture_of_a_program_is_whole_under_up(self):
        up = self.start_up()
        # Its first rounds compile the unwind tables of all running programs, the interpreter's too.
        spinner = self.start(sys.executable, "-c", "def spin():\n    while True: pass\nspin()")
        self.await_frame(up.url, spinner.pid, "spin")
        spinner.kill()
        go = self.folder / "go"
        launches = self.start(*self.lingering_launches(go))
        self.await_frame(up.url, launches.pid, "make_graph", "gpu")
        go.touch()
        self.end(launches)
        time.sleep(1.5)
        self.stop(up)
        capturers = {row["name"]: row["kernels"] for row in self.query(CAPTURERS, self.day())}
        self.assertEqual(capturers.get("make_graph"), 3 * 10, capturers)

    def test_a_program_that_closes_all_descriptors_before_cuda_starts_is_recorded_whole(self):
        code = f"import os, runpy, sys; os.closerange(3, 1024); sys.argv = {['', '10']}; runpy.run_path('{LAUNCHES}', run_name='__main__')"
        record = self.start_record("run.sonde", "--", sys.executable, "-c", code)
        self.end(record)
        self.assert_identified(record.recording, 10 * KERNELS_A_ROUND)

    def test_ranks_without_the_socket_are_recorded_whole(self):
        code = (f"import subprocess, sys; ranks = [subprocess.Popen([sys.executable, '{LAUNCHES}', '10', '0.3']) "
                "for _ in range(8)]; sys.exit(sum(rank.wait() for rank in ranks))")
        record = self.start_record("run.sonde", "--", sys.executable, "-c", code)
        self.end(record)
        self.assert_identified(record.recording, 8 * 10 * KERNELS_A_ROUND)

    def test_work_that_a_program_does_not_report_before_exit_is_counted(self):
        code = (f"import os, runpy, sys; sys.path.insert(0, '{LAUNCHES.parent}'); import gpu_launches; "
                f"sys.argv = {['', '10']}; gpu_launches.main(); os._exit(0)")
        record = self.start_record("run.sonde", "--", sys.executable, "-c", code)
        errors = self.end(record)
        kernels = self.value("SELECT count(*) FROM kernels", record.recording)
        unreported = sum(row["count"] for row in self.query("SELECT * FROM drops WHERE reason = 'gpu_work_unreported'",
                                                            record.recording))
        # 100 + 50 launches, 20 copies and 1 graph launch in a round; the number of calls is estimated from samples.
        self.assertGreater(kernels * 171 / 153 + unreported, 0.5 * 10 * 171, errors)
        if kernels < 10 * KERNELS_A_ROUND:
            self.assertGreater(unreported, 0)
            self.assertIn("dropped", errors)
            self.assertNotIn("nothing was dropped", errors)

    def test_a_hang_up_ends_consumers_in_an_orderly_way(self):
        # Under nohup, which the tests may run under, they ignore it.
        self.addCleanup(signal.signal, signal.SIGHUP, signal.signal(signal.SIGHUP, signal.SIG_DFL))
        up = self.start_up()
        launches = self.launches(60)
        record = self.start_record(self.recording.name, "-p", launches.pid)
        self.await_spooled("SELECT count(*) FROM kernels", lambda kernels: kernels > 0)
        self.stop(record, signal.SIGHUP)
        self.stop(up, signal.SIGHUP)
        self.end(launches)
        self.assert_identified(record.recording)
        self.assert_identified(self.day())


if __name__ == "__main__":
    unittest.main()
