#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`gpusonde diagnose`: when and why steps were slow, on the simulated GPU with real disturbers.

The victim runs with real-time priority and its disturbers with a higher one, so that only the test's own load slows its steps,
even on a loaded machine.
"""

import http.server
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
import unittest
import urllib.request

import program

ALONE = "its victim has a CPU to itself, with real-time priority"

HPC = program.BUILD / "bin/hpc"
GREEDY = program.ROOT / "tests/programs/greedy.py"
CPU = min(os.sched_getaffinity(0))
# Little work on the host: other programs slow down memory whatever their priority.
QUICK_HOST = ["--halo-mb", "1"]
BEFORE_STEPS = 600
BEFORE_S, DURING_S, AFTER_S = 10, 4, 6


def real_time_allowed():
    return subprocess.run(["chrt", "-f", "20", "true"], capture_output=True, check=False).returncode == 0


class Diagnose(program.TestCase):
    def setUp(self):
        super().setUp()
        if not real_time_allowed():
            self.skipTest("this machine grants no real-time priority, and without it every other program is a disturber")
        self.environment = self.simulated_machine()

    def start_victim(self, seconds):
        """Starts a recorder with the victim, and waits until the victim runs."""
        recorder = subprocess.Popen(
            [program.GPUSONDE, "record", "-o", self.recording, "--", "chrt", "-f", "20", "taskset", "-c", str(CPU),
             HPC, *QUICK_HOST, "--seconds", str(seconds), "--step-log", self.folder / "steps"], env=self.environment, stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        self.enterContext(recorder)
        self.addCleanup(recorder.kill)
        return recorder

    def await_steps(self, recorder, steps):
        """Waits until the victim has made this many steps: on a busy machine the recorder starts it late."""
        log = self.folder / "steps"
        while not log.exists() or log.read_bytes().count(b"\n") < steps:
            self.assertIsNone(recorder.poll(), "the recorder has ended")
            time.sleep(0.1)

    def webhook(self):
        """(its URL, the list of objects that it received)"""
        received = []

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                received.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
                self.send_response(204)
                self.end_headers()

            def log_message(self, *_arguments):
                pass

        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        return f"http://127.0.0.1:{server.server_port}/hook", received

    def greedy(self, name="greedy"):
        process = subprocess.Popen([sys.executable, GREEDY, str(CPU), name], stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE, text=True)
        self.enterContext(process)
        self.addCleanup(process.kill)
        self.assertEqual(process.stdout.readline(), "ready\n")
        return process

    def start_up(self, *arguments):
        """(an always-on agent, the address of its incidents)"""
        up = subprocess.Popen([program.GPUSONDE, "up", "--state", self.folder / "state", "--listen", "127.0.0.1:0",
                               "--no-open", *arguments],
                              env=self.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.enterContext(up)
        self.addCleanup(up.kill)
        for line in up.stdout:
            if found := re.search(r"http://\S+/", line):
                return up, found.group() + "api/v1/incidents"
        self.fail(up.stderr.read())

    def start_watched_victim(self):
        environment = dict(self.environment, CUDA_INJECTION64_PATH=str(program.BUILD / "lib/libgpusonde-inject.so"))
        victim = subprocess.Popen(["chrt", "-f", "20", "taskset", "-c", str(CPU), HPC, *QUICK_HOST, "--seconds", "150"],
                                  env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        self.addCleanup(victim.wait)
        self.addCleanup(victim.kill)
        return victim

    @staticmethod
    def incidents(url):
        with urllib.request.urlopen(url, timeout=30) as answer:
            return json.load(answer)

    def await_found_steps(self, url, steps, deadline):
        while (found := self.incidents(url)["steps"]) < steps:
            self.assertLess(time.monotonic(), deadline, f"{found} steps were found")
            time.sleep(0.5)

    def await_incident(self, url, deadline, fits):
        """The first incident that matches."""
        while True:
            answer = self.incidents(url)
            if found := [one for one in answer["incidents"] if fits(one)]:
                return found[0]
            self.assertLess(time.monotonic(), deadline, answer["incidents"])
            time.sleep(0.5)

    def diagnose(self):
        done = program.run("diagnose", self.recording, "--format", "json")
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    @program.measures
    def test_cpu_contention_is_found_with_the_processes_behind_it(self):
        recorder = self.start_victim(BEFORE_S + DURING_S + AFTER_S)
        self.await_steps(recorder, BEFORE_STEPS)
        greedy, begun_ns = self.greedy(), time.time_ns()
        time.sleep(DURING_S)
        ended_ns = time.time_ns()
        greedy.stdin.close()
        _, errors = recorder.communicate(timeout=120)
        self.assertEqual(recorder.returncode, 0, errors)

        answer = self.diagnose()
        (found,) = answer["programs"]
        self.assertEqual(found["process"], "hpc")
        self.assertTrue(found["signals"])
        ours = [one for one in answer["incidents"]
                if one["start_ns"] < ended_ns and (one["end_ns"] or ended_ns) > begun_ns]
        self.assertEqual(len(ours), 1, answer["incidents"])
        incident = ours[0]
        self.assertEqual(incident["cause"], "cpu_contention", incident["sentence"])
        self.assertGreater(incident["confidence"], 0.5)
        self.assertIn("taken by greedy", incident["sentence"])
        self.assertGreater(incident["start_ns"], begun_ns - 1e9)
        self.assertIsNotNone(incident["end_ns"], "it ends when the disturber has ended")

        # The recording's tables have what was found while recording.
        (row,) = self.query(f"SELECT cause, sentence FROM incidents WHERE start_ns BETWEEN {begun_ns} - 1e9 AND {ended_ns}")
        self.assertEqual(row["cause"], "cpu_contention")
        self.assertIn("greedy", row["sentence"])
        self.assertGreater(self.value("SELECT count(*) FROM steps"), 100)
        self.assertGreater(self.value("SELECT count(*) FROM evidence WHERE signal = 'step.run_queue'"), 0)
        self.assertEqual(self.value("SELECT count(*) FROM signals JOIN processes ON processes.process = other WHERE name = 'greedy' "
                                    "AND metric = 'thread.run_queue'") > 0, True)

    @program.measures
    def test_undisturbed_steps_are_no_incident(self):
        recorder = self.start_victim(BEFORE_S)
        _, errors = recorder.communicate(timeout=120)
        self.assertEqual(recorder.returncode, 0, errors)
        answer = self.diagnose()
        self.assertGreater(answer["programs"][0]["steps"], 100)
        self.assertEqual(answer["incidents"], [])

    @program.measures
    def test_up_reports_incidents_while_they_happen(self):
        hook, posted = self.webhook()
        up, url = self.start_up("--webhook", hook)
        victim = self.start_watched_victim()
        deadline = time.monotonic() + 120
        self.await_found_steps(url, 300, deadline)
        self.greedy()
        os.set_blocking(up.stderr.fileno(), False)
        log = b""
        while b"greedy" not in log and time.monotonic() < deadline:
            log += up.stderr.buffer.raw.read() or b""
            time.sleep(0.2)
        up.send_signal(signal.SIGINT)
        self.assertRegex(log.decode(), rf"hpc \({victim.pid}\): Steps slowed .*CPU contention .* taken by greedy")

        def named():
            return [one for one in posted if "taken by greedy" in one.get("incident", {}).get("sentence", "")]
        while not named() and time.monotonic() < deadline:
            time.sleep(0.2)
        self.assertEqual((named()[0]["version"], named()[0]["incident"]["cause"], named()[0]["incident"]["pid"]),
                         (1, "cpu_contention", victim.pid))

        # The file of the day, with kernels in packs, gives the same verdict.
        self.assertEqual(up.wait(timeout=60), 0)
        done = program.run("diagnose", *(self.folder / "state/days").glob("*.sonde"), "--format", "json")
        self.assertEqual(done.returncode, 0, done.stderr)
        answer = json.loads(done.stdout)
        self.assertGreater(answer["programs"][0]["steps"], 300)
        self.assertIn("cpu_contention", [one["cause"] for one in answer["incidents"] if "taken by greedy" in one["sentence"]])

    @program.measures
    def test_an_incident_continues_after_a_restart_of_the_agent(self):
        up, url = self.start_up()
        self.start_watched_victim()
        deadline = time.monotonic() + 120
        self.await_found_steps(url, 300, deadline)
        greedy = self.greedy()
        before = self.await_incident(url, deadline, lambda one: "taken by greedy" in one["sentence"])
        self.assertIsNone(before["to_us"])
        up.kill()
        up.communicate()
        time.sleep(3)

        _, url = self.start_up()
        begun_us = time.time_ns() // 1000
        time.sleep(5)
        greedy.stdin.close()
        after = self.await_incident(url, deadline, lambda one: one["id"] == before["id"] and one["to_us"] is not None)
        self.assertGreater(after["to_us"], begun_us, "it continued while the second agent ran")
        self.assertEqual(after["cause"], "cpu_contention", after["sentence"])
        others = [one for one in self.incidents(url)["incidents"] if one["process"] == before["process"]
                  and one["id"] != before["id"] and before["from_us"] <= one["from_us"] <= after["to_us"]]
        self.assertEqual(others, [], "there is one only")

    def test_a_program_that_died_unseen_did_not_hang(self):
        def end(up):
            up.send_signal(signal.SIGINT)
            up.communicate(timeout=60)

        up, url = self.start_up()
        victim = self.start_watched_victim()
        self.await_found_steps(url, 300, time.monotonic() + 120)
        end(up)
        victim.kill()
        victim.wait()
        up, _ = self.start_up("--no-diagnose")
        time.sleep(7)  # longer than it takes to call a step a hang
        end(up)
        up, url = self.start_up()
        time.sleep(4)
        answer = self.incidents(url)
        end(up)
        self.assertEqual([one["sentence"] for one in answer["incidents"]], [])
        done = program.run("diagnose", *(self.folder / "state/days").glob("*.sonde"), "--format", "json")
        self.assertEqual([one["sentence"] for one in json.loads(done.stdout)["incidents"]], [])


if __name__ == "__main__":
    unittest.main()
