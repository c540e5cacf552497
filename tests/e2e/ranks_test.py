#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`gpusonde diagnose` of a job of two ranks that sum their gradients over TCP: a straggler, a link that others keep busy,
lost packets. Simulated GPU, real sockets, devices and faults.

The ranks run with real-time priority, so that only the test's own load slows them, even on a loaded machine.
"""

import json
import os
import pathlib
import signal
import shutil
import subprocess
import sys
import time
import unittest

import program

BENCH = program.ROOT / "bench/diagnose"
sys.path.insert(0, str(BENCH))

import networks  # noqa: E402

ALONE = "its ranks have the CPUs to themselves, with real-time priority"

RANKS = BENCH / "victims/ranks.py"
BEFORE_STEPS = 400
DURING_S = 5
SECONDS = 600  # upper bound: they are ended before
PATIENCE_S = 120


def real_time_allowed():
    return subprocess.run(["chrt", "-f", "20", "true"], capture_output=True, check=False).returncode == 0


class Ranks(program.TestCase):
    def setUp(self):
        super().setUp()
        if not real_time_allowed():
            self.skipTest("this machine grants no real-time priority, and without it every other program is a disturber")
        self.environment = self.simulated_machine(PYTHONDONTWRITEBYTECODE="1")
        self.log = self.folder / "steps"

    def link(self):
        """Two namespaces with a link of limited rate, if the machine supports it."""
        if os.geteuid() != 0 or not shutil.which("tc") or not shutil.which("ip"):
            self.skipTest("making network namespaces and shaping a link needs root, ip and tc")
        try:
            link = networks.Link("e2e")
        except (OSError, subprocess.CalledProcessError) as error:
            self.skipTest(f"this kernel can't make a shaped link between namespaces: {error}")
        self.addCleanup(link.close)
        return link

    def start(self, *arguments):
        """Starts a recorder with two ranks, and waits until they have made enough clean steps."""
        recorder = subprocess.Popen(
            [program.GPUSONDE, "record", "-o", self.recording, "--", "chrt", "-f", "20", sys.executable, RANKS,
             "--seconds", str(SECONDS), "--step-log", self.log, *arguments],
            env=self.environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        self.addCleanup(recorder.kill)
        self.await_steps(recorder, BEFORE_STEPS)
        return recorder

    def steps(self):
        return self.log.read_bytes().count(b"\n") if self.log.exists() else 0

    def await_steps(self, recorder, steps):
        deadline = time.monotonic() + PATIENCE_S
        while self.steps() < steps:
            self.assertIsNone(recorder.poll(), "the recorder has ended")
            self.assertLess(time.monotonic(), deadline, f"{self.steps()} of {steps} steps")
            time.sleep(0.1)

    def ranks(self):
        """{rank: pid}"""
        found = {}
        for path in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
            try:
                words = path.read_bytes().split(b"\0")
            except OSError:
                continue
            if str(self.log).encode() in words and b"--rank" in words:
                found[int(words[words.index(b"--rank") + 1])] = int(path.parent.name)
        return found

    def finish(self, recorder, ranks):
        for pid in ranks.values():
            os.kill(pid, signal.SIGTERM)
        recorder.communicate(timeout=PATIENCE_S)
        done = program.run("diagnose", self.recording, "--format", "json")
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    @staticmethod
    def incidents(answer, pid, begun_ns, ended_ns):
        return [one for one in answer["incidents"] if one["pid"] == pid and one["start_ns"] < ended_ns
                and (one["end_ns"] or ended_ns) > begun_ns]

    def disturbers(self, link, kind):
        """A process that sends through the link, under a neutral name."""
        for end, what in ((1, "receive"), (0, kind)):
            process = subprocess.Popen(link.command(end, [sys.executable, BENCH / "work.py", what, 1, link.addresses[1]]),
                                       stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            self.addCleanup(process.wait)
            self.addCleanup(process.stdin.close)
            self.assertEqual(process.stdout.readline(), "ready\n")

    @program.measures
    def test_a_straggler_is_named_in_the_incidents_of_the_others(self):
        cpus = sorted(os.sched_getaffinity(0))
        if len(cpus) < 2:
            self.skipTest("two ranks need two CPUs to be late by themselves")
        recorder = self.start("--cpus", str(cpus[0]), str(cpus[-1]), "--heavier", "8")
        ranks = self.ranks()
        begun_ns = time.time_ns()
        os.kill(ranks[1], signal.SIGUSR1)
        time.sleep(DURING_S)
        ended_ns = time.time_ns()
        answer = self.finish(recorder, ranks)

        # Their launcher has closed the inherited socket, so their work was reported through probes only.
        self.assertEqual({one["pid"] for one in answer["programs"]}, set(ranks.values()))
        self.assertGreater(min(one["steps"] for one in answer["programs"]), 100)
        found = self.incidents(answer, ranks[0], begun_ns, ended_ns)
        self.assertIn("straggler", [one["cause"] for one in found], answer["incidents"])
        said = next(one for one in found if one["cause"] == "straggler")
        self.assertIn(f"(process {ranks[1]}) came last", said["sentence"])
        # The straggler waits for nobody, so its own incident has another cause.
        self.assertNotIn("straggler", [one["cause"] for one in self.incidents(answer, ranks[1], begun_ns, ended_ns)])

    @program.measures
    def test_a_link_that_others_keep_busy_is_network_contention_and_names_them(self):
        link = self.link()
        recorder = self.start("--namespaces", *link.names, "--addresses", *link.addresses)
        ranks = self.ranks()
        begun_ns = time.time_ns()
        self.disturbers(link, "send")
        time.sleep(DURING_S)
        ended_ns = time.time_ns()
        answer = self.finish(recorder, ranks)
        found = [one for pid in ranks.values() for one in self.incidents(answer, pid, begun_ns, ended_ns)]
        causes = [one["cause"] for one in found]
        self.assertIn("network_contention", causes, found)
        sentences = [one["sentence"] for one in found if one["cause"] == "network_contention"]
        self.assertTrue(any("job-" in sentence for sentence in sentences), sentences)

    @program.measures
    def test_packets_that_are_lost_are_packet_loss(self):
        link = self.link()
        recorder = self.start("--namespaces", *link.names, "--addresses", *link.addresses)
        ranks = self.ranks()
        begun_ns = time.time_ns()
        link.shape(0, limit_kb=24)
        time.sleep(DURING_S)
        ended_ns = time.time_ns()
        answer = self.finish(recorder, ranks)
        found = [one for pid in ranks.values() for one in self.incidents(answer, pid, begun_ns, ended_ns)]
        self.assertIn("packet_loss", [one["cause"] for one in found], found)


if __name__ == "__main__":
    unittest.main()
