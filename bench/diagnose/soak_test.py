# SPDX-License-Identifier: Apache-2.0
"""What counts as a false alarm, with synthetic soaks."""

import json
import pathlib
import shutil
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import soak  # noqa: E402

SECOND = 1_000_000_000
OFFSET = 1_000 * SECOND
LENGTH_S = 30


class Soak(unittest.TestCase):
    def setUp(self):
        self.out = pathlib.Path(tempfile.mkdtemp(prefix="gpusonde-soak-"))
        self.addCleanup(shutil.rmtree, self.out)

    def piece(self, name, segments, alarms_s=(), program="this"):
        """`segments`: consecutive [(fault, ms per step, share of the CPUs that others use), …] of 30 s each."""
        folder = self.out / "pieces" / name
        folder.mkdir(parents=True)
        lines, samples, at, busy_ns = [], [], 0, 0
        for number, (_, ms, foreign) in enumerate(segments):
            while at < (number + 1) * LENGTH_S * SECOND:
                lines.append(f"{at} {at + ms * 1_000_000} 0 0 0")
                at += ms * 1_000_000
            for quarter in range(LENGTH_S * 4):
                busy_ns += int(2 * foreign * SECOND / 4)
                samples.append({"time_ns": (number * LENGTH_S * 4 + quarter) * SECOND // 4, "busy_ns": busy_ns, "stolen_ns": 0,
                                "cpu_ns": {"victim": 0}})
        (folder / "steps.log").write_text("\n".join(lines) + "\n")
        (folder / "samples.jsonl").write_text("\n".join(map(json.dumps, samples)) + "\n")
        (folder / "piece.json").write_text(json.dumps({
            "plan": {"victim": "stencil"}, "program": program, "cpus": 2, "begin_ns": 0, "own_cpu_ns": 0,
            "end_ns": len(segments) * LENGTH_S * SECOND, "epoch_offset_ns": OFFSET,
            "segments": [{"fault": fault, "amount": 1, "begin_ns": number * LENGTH_S * SECOND,
                          "end_ns": (number + 1) * LENGTH_S * SECOND} for number, (fault, _, _) in enumerate(segments)],
            "live": [{"start_ns": at_s * SECOND + OFFSET, "cause": "abstain"} for at_s in alarms_s]}))

    def test_every_incident_counts_and_hours_are_stated(self):
        self.piece("1-0000", [("nothing", 10, 0), ("compute-little", 10, 0)], alarms_s=[10, 40])
        self.piece("1-0001", [("nothing", 10, 0), ("nothing", 10, 0)])
        result = soak.sum_up(self.out, "this")
        self.assertEqual((result["alarms"], result["hours"]), (2, 0.033))
        self.assertEqual(result["per_day"], 24 * 2 / (4 * LENGTH_S / 3600))
        self.assertAlmostEqual(result["per_day_at_most"], 24 * 6.2958 / (4 * LENGTH_S / 3600), places=0)

    def test_a_quiet_soak_still_has_an_upper_bound(self):
        self.piece("1-0000", [("nothing", 100, 0)] * 120)
        result = soak.sum_up(self.out, "this")
        self.assertEqual((result["alarms"], result["hours"], result["per_day_at_most"]), (0, 1.0, 71.9))

    def test_a_load_that_does_slow_the_victim_is_left_out_with_its_hours(self):
        self.piece("1-0000", [("nothing", 10, 0), ("disk-read", 12, 0), ("disk-read", 10, 0)], alarms_s=[40])
        result = soak.sum_up(self.out, "this")
        self.assertEqual((result["alarms"], result["hours"]), (0, 0.017))
        self.assertEqual(result["left_out"][soak.SLOWED]["alarms"], 1)

    def test_slow_steps_without_a_load_are_no_excuse(self):
        self.piece("1-0000", [("nothing", 10, 0), ("nothing", 20, 0)], alarms_s=[40])
        self.assertEqual(soak.sum_up(self.out, "this")["alarms"], 1)

    def test_time_in_which_others_used_the_machine_is_left_out(self):
        self.piece("1-0000", [("nothing", 10, 0), ("nothing", 10, 0.3)], alarms_s=[40])
        result = soak.sum_up(self.out, "this")
        self.assertEqual((result["alarms"], result["hours"]), (0, 0.008))
        self.assertEqual(list(result["left_out"]), ["foreign CPU"])
        self.assertIn("not counted, foreign CPU: 1 in 0.01 h", soak.text(result))

    def test_results_of_another_build_are_not_added(self):
        self.piece("1-0000", [("nothing", 10, 0)], alarms_s=[4], program="older")
        self.assertEqual(soak.sum_up(self.out, "this")["hours"], 0)

    def test_a_plan_is_its_seed_and_fills_its_time(self):
        plan = soak.plan_of("soak-1-0000", "trainer", 7, 300.0)
        segments = soak.segments_of(plan)
        self.assertEqual(segments, soak.segments_of(plan))
        self.assertAlmostEqual(sum(seconds for _, _, seconds in segments), 300, delta=0.1)
        self.assertEqual({fault for fault, _, _ in segments[::2]}, {"nothing"})
        self.assertGreater(len({fault for fault, _, _ in segments[1::2]}), 1)


if __name__ == "__main__":
    unittest.main()
