# SPDX-License-Identifier: Apache-2.0
"""Several consumers of one program's GPU work, in any order, and awkward programs."""

import json
import signal
import sys
import time
import unittest

import consumers
import program
from consumers import KERNELS_A_ROUND, LAUNCHES, LIBRARY, PAUSE_S

OWN_MACHINE = "up profiles every GPU program of the machine"
CPUS = 0.5
TAKES_S = 80


class Consumers(consumers.ConsumersTestCase):
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
        launches = self.launches(120)  # after 60 it had ended before `leaving` on a busy machine
        self.await_kernels(launches, 10 * KERNELS_A_ROUND)
        leaving = self.start_record("leaving.sonde", "-p", launches.pid, "--duration", "2")
        staying = self.start_record("staying.sonde", "-p", launches.pid)
        self.end(leaving)
        self.end(launches)
        self.end(staying)
        time.sleep(1.5)
        self.stop(up)
        self.assert_identified(self.day(), 120 * KERNELS_A_ROUND)
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
