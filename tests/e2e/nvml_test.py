#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The state of GPUs in recordings and in the store of `up`, on the simulated GPU."""

import json
import re
import signal
import subprocess
import time
import unittest

import program

CPUS = 0.25  # it waits for readings
TAKES_S = 32


class Nvml(program.TestCase):
    def setUp(self):
        super().setUp()
        self.environment = self.simulated_machine()

    def simgpu(self, *arguments):
        subprocess.run([program.SIMGPU, *arguments], env=self.environment, check=True)

    def record_script(self, script, options=()):
        done = self.record("sh", "-ec", script.replace("simgpu", str(program.SIMGPU)), options=options, env=self.environment)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done

    def values(self, metric):
        return [row["value"] for row in
                self.query(f"SELECT value FROM metrics WHERE metric = '{metric}' ORDER BY time_ns")]

    def test_errors_that_begin_to_grow_are_a_warning(self):
        self.record_script("sleep 4; simgpu fault 0 pcie-replays 40; sleep 4")
        (row,) = self.query("SELECT indicator, value, end_ns, incident, lead_ns, sentence FROM warnings JOIN devices USING (device)")
        self.assertEqual((row["indicator"], row["value"], row["incident"], row["lead_ns"]), ("pcie_replays", 40, None, None))
        self.assertIsNone(row["end_ns"], "the errors have not been absent for long enough")
        self.assertEqual(row["sentence"], "40 PCIe packets were replayed in the last 30 s (usually 0)")
        text = program.run("diagnose", self.recording)
        self.assertIn(f"warning: {row['sentence']}\n  no step slowed because of it\n", text.stdout)
        answer = json.loads(program.run("diagnose", self.recording, "--format", "json").stdout)
        self.assertEqual([(one["indicator"], one["value"]) for one in answer["warnings"]], [("pcie_replays", 40)])

    def test_everything_is_read_while_the_program_runs(self):
        self.record_script("sleep 3")
        counts = {row["metric"]: row["n"] for row in
                  self.query("SELECT metric, count(*) AS n FROM metrics GROUP BY metric")}
        for often in ("clock.sm", "memory.used", "memory.utilization", "pcie.rx", "pcie.tx", "power",
                      "throttle.reasons", "utilization"):
            self.assertGreaterEqual(counts[f"gpu.{often}"], 10, often)
        for seldom in ("clock.memory", "ecc.corrected", "ecc.uncorrected", "energy", "pcie.generation", "pcie.replays",
                       "pcie.width", "power.limit", "temperature"):
            self.assertGreaterEqual(counts[f"gpu.{seldom}"], 2, seldom)
            self.assertLessEqual(counts[f"gpu.{seldom}"], counts["gpu.power"] / 2, seldom)
        self.assertEqual(self.query("SELECT reason FROM drops WHERE reason LIKE 'gpu%'"), [])
        self.assertEqual(self.value("""
            SELECT count(*) FROM metrics, sources WHERE metrics.source = sources.source AND
            (time_ns < started_ns OR time_ns > ended_ns)"""), 0, "times are within the recording")
        self.assertEqual(self.value("SELECT count(DISTINCT device) FROM metrics JOIN devices USING (device)"), 1)

    def test_an_xid_is_a_row_with_its_code_and_time(self):
        done = self.record_script("sleep 1; simgpu fault 0 xid 79; sleep 0.5; simgpu fault 0 xid 48; sleep 1")
        self.assertEqual(self.values("gpu.xid"), [79, 48])
        self.assertIn("XID 79: the GPU has fallen off the bus", done.stderr)
        (row,) = self.query("""
            SELECT max(time_ns) - min(time_ns) AS between, min(time_ns) - min(started_ns) AS after
            FROM metrics JOIN sources USING (source) WHERE metric = 'gpu.xid'""")
        self.assertGreaterEqual(row["between"], 500_000_000)
        self.assertGreaterEqual(row["after"], 1_000_000_000)

    def test_what_is_broken_shows(self):
        changes = {"gpu.pcie.width": (16, 4), "gpu.pcie.generation": (5, 1), "gpu.pcie.replays": (0, 5),
                   "gpu.ecc.corrected": (0, 7), "gpu.ecc.uncorrected": (0, 2), "gpu.power.limit": (700, 300)}
        recorder = self.start_recording(self.environment)
        self.await_spooled(f"SELECT count(DISTINCT metric) FROM metrics WHERE metric IN {tuple(changes)}",
                           lambda read: read == len(changes))
        for fault in ("pcie-width 4", "pcie-generation 1", "pcie-replays 5", "ecc-corrected 7", "ecc-uncorrected 2", "power-cap 300"):
            self.simgpu("fault", "0", *fault.split())
        self.start_neighbour(self.environment)
        self.await_spooled(f"""
            SELECT count(DISTINCT metric) FROM metrics
            WHERE (metric, value) IN {tuple((metric, after) for metric, (_, after) in changes.items())}
            OR metric = 'gpu.throttle.reasons' AND (value::BIGINT & 4) != 0 OR metric = 'gpu.utilization' AND value > 50
            OR metric = 'gpu.process.utilization'""", lambda seen: seen == len(changes) + 3)
        self.end_recording(recorder)
        for metric, (before, after) in changes.items():
            values = self.values(metric)
            self.assertEqual((values[0], values[-1]), (before, after), metric)
        self.assertGreater(self.value("""
            SELECT count(*) FROM metrics WHERE metric = 'gpu.throttle.reasons' AND (value::BIGINT & 4) != 0"""), 0,
            "the neighbour's work reaches the power cap")
        self.assertGreater(max(self.values("gpu.utilization")), 50)
        rows = self.query("""
            SELECT DISTINCT processes.name FROM metrics JOIN processes USING (process)
            WHERE metric = 'gpu.process.utilization'""")
        self.assertEqual([row["name"] for row in rows], ["simgpu"])

    def test_it_can_be_left_out(self):
        self.record_script("sleep 1", options=("--nvml-hz", "0"))
        self.assertEqual(self.value("SELECT count(*) FROM metrics"), 0)

    def test_a_machine_without_a_driver_has_no_readings(self):
        done = self.record("sleep", "0.5")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertNotIn("NVML", done.stderr)
        self.assertEqual(self.value("SELECT count(*) FROM metrics"), 0)

    def test_up_reads_it_too(self):
        up = subprocess.Popen([program.GPUSONDE, "up", "--state", self.folder / "state", "--listen", "127.0.0.1:0",
                               "--no-open", "--nvml-hz", "5"], env=self.environment, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True)
        self.addCleanup(up.communicate)
        self.addCleanup(up.kill)
        while not re.search(r"http://\S+/", up.stdout.readline()):
            self.assertIsNone(up.poll())
        time.sleep(1.5)
        self.simgpu("fault", "0", "xid", "31")
        time.sleep(2.5)
        up.send_signal(signal.SIGINT)
        _, errors = up.communicate(timeout=120)
        self.assertEqual(up.returncode, 0, errors)
        self.assertIn("XID 31", errors)
        days = sorted((self.folder / "state/days").glob("*.sonde"))
        self.assertEqual(sum(self.value("SELECT count(*) FROM metrics WHERE metric = 'gpu.xid' AND value = 31", day)
                             for day in days), 1)
        self.assertGreaterEqual(sum(self.value("SELECT count(*) FROM metrics WHERE metric = 'gpu.power'", day)
                                    for day in days), 5)


if __name__ == "__main__":
    unittest.main()
