#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Performance counters (GPM), NVLink, remapped rows and MIG instances of the simulated GPU: in recordings, in `up`, its
page's strips and /metrics, in `doctor`."""

import json
import re
import signal
import subprocess
import time
import unittest
import urllib.request

import program

CPUS = 0.25  # it waits for readings, once a second
TAKES_S = 28
LABELS = re.compile(r'(\w+)="([^"]*)"')


class Gpm(program.TestCase):
    def setUp(self):
        super().setUp()
        self.environment = self.simulated_machine()

    def record_script(self, script, **settings):
        self.environment.update(settings)
        done = self.record("sh", "-ec", script.replace("simgpu", str(program.SIMGPU)), env=self.environment)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done

    def values(self, metric, device="GPU-%"):
        return [row["value"] for row in self.query(f"""
            SELECT value FROM metrics JOIN devices USING (device) WHERE metric = '{metric}' AND uuid LIKE '{device}'
            ORDER BY time_ns""")]

    def test_what_the_sms_did_is_recorded_and_summarised(self):
        done = self.record_script("sleep 1.2; simgpu fault 0 rows-uncorrected 2; simgpu neighbour 4 0.5; sleep 1.2")
        active = self.values("gpu.sm.active")
        self.assertGreaterEqual(len(active), 4)
        self.assertLess(len(active), 9, "once a second")
        self.assertTrue(all(0 <= value <= 100 for value in active), active)
        self.assertGreater(max(active), 20, "the neighbour runs half of the time")
        for metric, share in (("gpu.sm.occupancy", 0.5), ("gpu.tensor.active", 0.4), ("gpu.tensor.hmma", 0.4)):
            self.assertAlmostEqual(max(self.values(metric)), share * max(active), places=6, msg=metric)
        self.assertEqual(set(self.values("gpu.nvlink.rx")), {0})
        self.assertEqual((self.values("gpu.rows.uncorrected")[0], self.values("gpu.rows.uncorrected")[-1]), (0, 2))
        self.assertEqual(self.value("SELECT count(*) FROM metrics WHERE metric LIKE 'gpu.sm%' AND process IS NOT NULL"), 0,
                         "they are the device's")
        self.assertEqual(self.query("SELECT reason FROM drops WHERE reason LIKE 'gpu_readings%'"), [])
        self.assertRegex(done.stderr + done.stdout, r"busy [\d.]+ % of .*; SM activity \d+ %, tensor pipe \d+ %")

    def test_a_failure_in_the_middle_is_counted_and_the_rest_is_read(self):
        done = self.record_script("sleep 2.2; simgpu fault 0 gpm-error 999; sleep 3.2; simgpu fault 0 gpm-error 0; sleep 2.2")
        self.assertGreaterEqual(len(self.values("gpu.sm.active")), 2)
        self.assertGreaterEqual(self.value("SELECT sum(count) FROM drops WHERE reason = 'gpu_readings_failed'"), 2)
        self.assertIn("SM activity (GPM) can't be read", done.stderr)
        self.assertGreaterEqual(len(self.values("gpu.power")), 20)

    def test_devices_before_hopper_have_no_such_rows(self):
        self.record_script("sleep 2.5", SIMGPU_MODEL="a100")
        self.assertEqual(self.values("gpu.sm.active"), [])
        self.assertGreaterEqual(len(self.values("gpu.power")), 5)
        report = program.run("doctor", "--format", "json", env=self.environment)
        (nvml,) = [one for one in json.loads(report.stdout)["capabilities"] if one["name"] == "nvml"]
        self.assertTrue(nvml["works"])
        self.assertIn("SM activity and tensor pipe (GPM) are not read of GPU 0 (Simulated A100-SXM4-80GB): the device has no GPM",
                      nvml["why"])

    def test_mig_instances_are_devices_with_their_parent(self):
        environment = dict(self.environment, SIMGPU_MIG="1")
        recorder = self.start_recording(environment)
        self.start_neighbour(environment)
        self.await_spooled("""
            SELECT count(*) FROM (
              SELECT gpu_instance, count(*) FILTER (metric = 'gpu.memory.used') AS readings,
                     max(value) FILTER (metric = 'gpu.sm.active') AS active
              FROM metrics JOIN devices USING (device) WHERE uuid LIKE 'MIG-%' GROUP BY ALL)
            WHERE readings >= 5 AND active >= if(gpu_instance = 1, 51, 0)""", lambda instances: instances == 2)
        self.end_recording(recorder)
        rows = self.query("""
            SELECT one.uuid, one.name, one.gpu_instance, one.compute_instance, one.sm_count, parent.uuid AS parent
            FROM devices AS one JOIN devices AS parent ON one.parent = parent.device ORDER BY one.gpu_instance""")
        self.assertEqual([row["gpu_instance"] for row in rows], [1, 2])
        self.assertEqual({row["compute_instance"] for row in rows}, {0})
        self.assertEqual({row["sm_count"] for row in rows}, {66})
        self.assertTrue(all(row["uuid"].startswith("MIG-") and row["parent"].startswith("GPU-") for row in rows), rows)
        self.assertEqual(rows[0]["name"], "Simulated H100 80GB HBM3 MIG 3g.40gb (instance 1/0)")
        first, second = (self.values("gpu.sm.active", row["uuid"]) for row in rows)
        self.assertGreater(max(first), 50, "programs run on the first instance")
        self.assertEqual(set(second), {0})
        self.assertGreaterEqual(len(self.values("gpu.memory.used", rows[1]["uuid"])), 5)
        self.assertEqual(self.values("gpu.power", "MIG-%"), [], "the driver answers that for the GPU")
        self.assertEqual(self.values("gpu.utilization"), [], "the driver has none of a GPU that is divided")
        self.assertEqual(self.query("SELECT reason FROM drops WHERE reason LIKE 'gpu_readings%'"), [])

    def test_up_shows_it_on_its_page_and_for_prometheus(self):
        up = subprocess.Popen([program.GPUSONDE, "up", "--state", self.folder / "state", "--listen", "127.0.0.1:0",
                               "--no-open"], env=dict(self.environment, SIMGPU_MIG="1"), stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True)
        self.addCleanup(up.communicate)
        self.addCleanup(up.kill)
        while not (found := re.search(r"http://\S+/", up.stdout.readline())):
            self.assertIsNone(up.poll())
        self.start_neighbour(self.environment)

        def get(path):
            with urllib.request.urlopen(found.group() + path, timeout=60) as answer:
                return answer.read().decode()

        def active():
            lines = [line for line in get("metrics").splitlines() if line.startswith("DCGM_FI_PROF_SM_ACTIVE{")]
            return {dict(LABELS.findall(line)).get("GPU_I_ID", "whole"): float(line.split()[-1]) for line in lines}

        deadline = time.monotonic() + 60
        while (shares := active()).get("1", 0) < 0.5:
            self.assertLess(time.monotonic(), deadline, shares)
            time.sleep(0.5)
        self.assertEqual(sorted(shares), ["1", "2", "whole"])
        self.assertEqual(shares["2"], 0)
        self.assertTrue(0.2 < shares["whole"] <= 1, shares)
        self.assertIn("DCGM_FI_PROF_PIPE_TENSOR_ACTIVE{", get("metrics"))
        while True:
            strips = [strip for strip in json.loads(get("api/v1/strips?metrics=1"))["strips"]
                      if strip.get("metric") == "gpu.sm.active"]
            if len(strips) == 3:
                break
            self.assertLess(time.monotonic(), deadline, strips)
            time.sleep(0.5)
        self.assertEqual([strip["label"] for strip in strips],
                         ["SM activity", "SM activity, MIG 3g.40gb (instance 1/0)", "SM activity, MIG 3g.40gb (instance 2/0)"])
        self.assertEqual({strip["max"] for strip in strips}, {100})
        top = program.run("top", "--once", "--url", found.group())
        self.assertRegex(top.stdout, r"BUSY +SM +TENSOR +5 MIN")
        self.assertIn("0 MIG 1/0 simulated", top.stdout)
        up.send_signal(signal.SIGINT)
        _, errors = up.communicate(timeout=120)
        self.assertEqual(up.returncode, 0, errors)


if __name__ == "__main__":
    unittest.main()
