#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Ranks that wait for each other in collectives (a simulated NCCL with a real profiler plugin interface, ours): the rank
that hangs or comes late is named, with its process and what it did, live and from a recording."""

import json
import os
import re
import signal
import subprocess
import time
import unittest
import urllib.request

import program

OWN_MACHINE = "up profiles every program with the library"
CPUS = 0.125  # it waits for ranks that hang, and their incidents
TAKES_S = 100

RANKS = program.PROGRAMS / "nccl_ranks"
LIBRARY = program.BUILD / "lib/libgpusonde-inject.so"
NAMED_WITHIN_S = 10
PATIENCE_S = 180


class Nccl(program.TestCase):
    def setUp(self):
        super().setUp()
        self.environment = self.simulated_machine()
        self.pids_file = self.folder / "pids"

    def start(self, command, **environment):
        process = subprocess.Popen(list(map(str, command)), env=dict(self.environment, **environment), stdin=subprocess.DEVNULL,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        self.addCleanup(process.stderr.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def start_recorded(self, *arguments):
        return self.start([program.GPUSONDE, "record", "-o", self.recording, "--", RANKS, "--pids", self.pids_file, *arguments])

    def pids(self):
        """The ranks' processes, once they all run."""
        deadline = time.monotonic() + PATIENCE_S
        while not self.pids_file.exists() or not self.pids_file.read_text().endswith("\n"):
            self.assertLess(time.monotonic(), deadline, "the job has not started")
            time.sleep(0.05)
        return [int(line) for line in self.pids_file.read_text().split()]

    def stop(self, pid, seconds):
        """Stops a process for a while; when, in ns since the epoch."""
        at = time.time_ns()
        os.kill(pid, signal.SIGSTOP)
        self.addCleanup(lambda: os.path.exists(f"/proc/{pid}") and os.kill(pid, signal.SIGCONT))
        time.sleep(seconds)
        os.kill(pid, signal.SIGCONT)
        return at

    def incidents(self, *options):
        done = program.run("diagnose", self.recording, "--format", "json", *options)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)["incidents"]

    def check_bandwidth(self):
        """What analyze says of the recording's collectives, beside SQL on its table."""
        (found,) = self.query(
            "WITH whole AS (SELECT sequence, max(bytes) AS bytes, min(coalesce(gpu_ns, end_ns - begin_ns)) AS ns, "
            "max(coalesce(gpu_ns, end_ns - begin_ns)) AS longest FROM collectives WHERE end_ns IS NOT NULL AND operation = 'AllReduce' "
            "GROUP BY sequence HAVING count(DISTINCT rank) = 4) "
            "SELECT count(*) AS count, sum(bytes)::BIGINT AS bytes, sum(ns)::BIGINT AS total_ns, sum(longest - ns)::BIGINT AS skew_ns FROM whole")
        done = program.run("analyze", self.recording, "--format", "json")
        self.assertEqual(done.returncode, 0, done.stderr)
        (line,) = json.loads(done.stdout)["bandwidth"]
        self.assertEqual([line[key] for key in ("operation", "ranks", "skew_removed")], ["all_reduce", 4, True])
        self.assertEqual({key: line[key] for key in found}, found)
        self.assertAlmostEqual(line["bus_bytes_per_s"], 1.5 * found["bytes"] / found["total_ns"] * 1e9, delta=1)

    def check_hang(self, incident, rank, pid, ranks, stopped_ns):
        self.assertEqual((incident["cause"], incident["pid"]), ("hang", pid), incident["sentence"])
        self.assertIn(f"{ranks - 1} rank{'s wait' if ranks > 2 else ' waits'} in AllReduce #", incident["sentence"])
        self.assertIn(f"of {ranks} ranks since", incident["sentence"])
        self.assertIn(f"for rank {rank} (rank{rank}, process {pid}), which has not called it", incident["sentence"])
        self.assertLess(abs(incident["start_ns"] - stopped_ns), 2e9)

    def test_a_stopped_rank_is_named_within_ten_seconds(self):
        recorder = self.start_recorded("--ranks", 4, "--steps", 500, "--work-us", 20000)
        pids = self.pids()
        time.sleep(4)
        stopped_ns = self.stop(pids[2], 12)
        status, said = recorder.wait(timeout=PATIENCE_S), recorder.stderr.read()
        self.assertEqual(status, 0, said)
        (slow,) = [line for line in said.splitlines() if line.startswith("slow ")]
        self.assertNotIn("No known cause", slow, "an incident with a cause comes first")
        hangs = [one for one in self.incidents() if one["cause"] == "hang"]
        self.assertEqual(len(hangs), 1, hangs)
        self.check_hang(hangs[0], 2, pids[2], 4, stopped_ns)
        self.assertIn("None of its threads has run since", hangs[0]["sentence"])
        self.assertIsNotNone(hangs[0]["end_ns"])
        # What was reported while it was recorded.
        (live,) = self.query("SELECT seen_ns, cause, sentence FROM incidents WHERE cause = 'hang'")
        self.assertLess(live["seen_ns"] - stopped_ns, NAMED_WITHIN_S * 1e9)
        self.assertIn(f"process {pids[2]}", live["sentence"])
        # Every collective of every rank is there, once with its end.
        self.assertEqual(self.value("SELECT count(*) FROM collectives WHERE end_ns IS NOT NULL"), 4 * 500)
        self.assertEqual(self.value("SELECT count(DISTINCT (rank, sequence)) FROM collectives"), 4 * 500)
        self.assertEqual(self.value("SELECT sum(dropped) FROM communicators"), 0)
        self.check_bandwidth()

    def test_one_of_64_ranks_is_named_within_ten_seconds(self):
        recorder = self.start_recorded("--ranks", 64, "--steps", 100, "--work-us", 100000)
        pids = self.pids()
        deadline = time.monotonic() + PATIENCE_S
        while len(os.listdir(f"/proc/{pids[-1]}/task")) < 3:  # the communicator's thread and the library's
            self.assertLess(time.monotonic(), deadline, "the last rank has not joined")
            time.sleep(0.1)
        time.sleep(5)
        stopped_ns = self.stop(pids[37], 12)
        self.assertEqual(recorder.wait(timeout=PATIENCE_S), 0, recorder.stderr.read())
        (live,) = self.query("SELECT seen_ns, start_ns, sentence FROM incidents WHERE cause = 'hang'")
        self.assertLess(live["seen_ns"] - stopped_ns, NAMED_WITHIN_S * 1e9)
        hangs = [one for one in self.incidents() if one["cause"] == "hang"]
        self.assertEqual(len(hangs), 1, hangs)
        self.check_hang(hangs[0], 37, pids[37], 64, stopped_ns)

    def test_up_names_a_rank_that_becomes_slow_and_why(self):
        up = subprocess.Popen([program.GPUSONDE, "up", "--state", self.folder / "state", "--listen", "127.0.0.1:0", "--no-open"],
                              env=self.environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.addCleanup(up.stdout.close)
        self.addCleanup(up.wait)
        self.addCleanup(up.kill)
        for line in up.stdout:
            if found := re.search(r"http://\S+/", line):
                url = found.group() + "api/v1/incidents"
                break
        # 10 ms steps for 10 s, then rank 1 computes for 40 ms more in each.
        self.start([RANKS, "--pids", self.pids_file, "--ranks", 3, "--steps", 1500, "--work-us", 10000, "--slow", 1, "--slow-us",
                    40000, "--slow-after", 800, "--busy"], NCCL_PROFILER_PLUGIN=str(LIBRARY))
        pids = self.pids()
        deadline = time.monotonic() + PATIENCE_S
        # On a busy machine it waits for a CPU as well.
        why = re.compile("The thread that calls NCCL (ran on|waited for) a CPU")
        while True:
            with urllib.request.urlopen(url, timeout=30) as answer:
                sentences = [one["sentence"] for one in json.load(answer)["incidents"] if one["cause"] == "straggler"]
            if any(why.search(sentence) for sentence in sentences):
                break
            self.assertLess(time.monotonic(), deadline, f"no straggler was named with its reason: {sentences}")
            time.sleep(0.5)
        for sentence in sentences:
            self.assertIn(f"rank 1 (rank1, process {pids[1]}) came last in", sentence)


if __name__ == "__main__":
    unittest.main()
