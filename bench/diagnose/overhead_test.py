# SPDX-License-Identifier: Apache-2.0
"""When a cost counts as within its goal, with synthetic measurements."""

import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import overhead  # noqa: E402

NOISE = (-0.004, 0.003, -0.002, 0.004, -0.003, 0.002, 0.001, -0.001, 0.004, -0.004, 0.003, -0.003)


def pairs(kind, slower, noise=NOISE, void=None):
    return [{"victim": "stencil", "kind": kind, "without": 10.0, "with": 10 * (1 + slower + more), "void": void}
            for more in noise]


def point(agent, kernel, who="stranger", events=10_000, added_agent=0.001, void=None):
    arm = {"events_s": events + 100, "agent": agent, "kernel": kernel, "counting": 0.0004, "wake_ups_s": 5.0, "void": void}
    return {"who": who, "events": events, "profiling": arm, "diagnosis": arm | {"agent": agent + added_agent}}


class Overhead(unittest.TestCase):
    def met(self, rows):
        return overhead.sum_up_pairs(rows)["stencil"]["diagnosis"]["met"]

    def test_a_goal_is_met_only_if_the_whole_interval_is_within_it(self):
        control = pairs("control", 0)
        self.assertIs(self.met(control + pairs("diagnosis", 0.005)), True)
        self.assertIs(self.met(control + pairs("diagnosis", 0.0095)), False, "its mean is within, its upper end isn't")
        self.assertIs(self.met(control + pairs("diagnosis", 0.03)), False)

    def test_nothing_is_claimed_where_the_control_differs_or_pairs_are_few(self):
        self.assertIsNone(self.met(pairs("control", 0.01) + pairs("diagnosis", 0)))
        self.assertIsNone(self.met(pairs("diagnosis", 0)))
        self.assertIsNone(self.met(pairs("control", 0) + pairs("diagnosis", 0, NOISE[:-1])))

    def test_void_pairs_are_counted_and_not_used(self):
        rows = pairs("control", 0) + pairs("diagnosis", 0.5, void="steal") + pairs("diagnosis", 0.001)
        one = overhead.sum_up_pairs(rows)["stencil"]["diagnosis"]
        self.assertEqual((one["pairs"], one["void"], one["met"]), (12, 12, True))
        self.assertAlmostEqual(one["slower"][0], 0.001, places=3)

    def test_the_diagnosis_is_charged_for_what_it_adds_kernel_programs_included(self):
        (one,) = overhead.sum_up_curve([point(0.004, 0.001), point(0.004, 0.001), point(0.004, 0.001, added_agent=0.002)])
        self.assertAlmostEqual(one["added"][0], 0.00133, places=5)
        self.assertAlmostEqual(one["profiling"], 0.005)
        self.assertIs(one["met"], True)
        (one,) = overhead.sum_up_curve([point(0.004, 0.001, added_agent=0.006)] * 3)
        self.assertIs(one["met"], False)
        (one,) = overhead.sum_up_curve([point(0.004, 0.001), point(0.004, 0.001, void="steal")])
        self.assertEqual((one["points"], one["void"], one["met"]), (1, 1, None))

    def test_unrelated_and_profiled_programs_are_separate_points(self):
        made = overhead.sum_up_curve([point(0.004, 0.001), point(0.004, 0.002, who="feeder")])
        self.assertEqual([one["who"] for one in made], ["feeder", "stranger"])
        self.assertIn("10000 events/s of a stranger: 1 points, 0 void; 10100 seen",
                      overhead.text({"pairs": {}, "curve": made}))

    def test_results_of_another_build_are_not_added(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "pairs.jsonl"
            overhead.keep(path, {"program": "old", "with": 1})
            overhead.keep(path, {"program": "new", "with": 2})
            self.assertEqual(overhead.kept(path, "new"), [{"program": "new", "with": 2}])
        self.assertEqual(overhead.kept(path, "new"), [])


if __name__ == "__main__":
    unittest.main()
