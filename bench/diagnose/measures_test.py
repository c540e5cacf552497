# SPDX-License-Identifier: Apache-2.0
"""Statistics, against published numbers or those that can be computed by hand."""

import math
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import measures  # noqa: E402


class Measures(unittest.TestCase):
    def test_235_trials_with_6_errors_show_95_percent_and_with_7_they_dont(self):
        self.assertGreaterEqual(measures.lower_bound(229, 235), 0.95)
        self.assertLess(measures.lower_bound(228, 235), 0.95)
        self.assertGreaterEqual(measures.lower_bound(157, 160), 0.95)
        self.assertLess(measures.lower_bound(156, 160), 0.95)

    def test_bounds_of_all_and_of_none_are_what_algebra_says(self):
        self.assertAlmostEqual(measures.lower_bound(10, 10), 0.05 ** 0.1, places=9)
        self.assertEqual(measures.lower_bound(0, 10), 0.0)
        self.assertAlmostEqual(measures.upper_bound(0, 236), 1 - 0.05 ** (1 / 236), places=9)
        self.assertIsNone(measures.lower_bound(0, 0))

    def test_one_false_alarm_of_236_shows_2_percent_and_two_dont(self):
        self.assertLessEqual(measures.upper_bound(1, 236), 0.02)
        self.assertGreater(measures.upper_bound(2, 236), 0.02)

    def test_no_event_at_all_still_leaves_three(self):
        self.assertAlmostEqual(measures.most_events(0), -math.log(0.05), places=6)
        self.assertAlmostEqual(measures.most_events(1), 4.7439, places=3)
        self.assertAlmostEqual(measures.most_events(10), 16.962, places=3)

    def test_quantiles_are_values_that_were_there(self):
        values = list(range(1, 21))
        self.assertEqual([measures.quantile(values, share) for share in (0.05, 0.5, 0.95, 1)], [1, 10, 19, 20])

    def test_a_claim_of_09_that_is_right_nine_times_of_ten_is_calibrated(self):
        made = measures.calibration([(0.9, 1)] * 9 + [(0.9, 0)])
        self.assertEqual(made["bins"], [{"from": 0.9, "claims": 10, "confidence": 0.9, "right": 0.9}])
        self.assertAlmostEqual(made["brier"], 0.09, places=4)
        self.assertIsNone(measures.calibration([]))

    def test_risk_grows_with_coverage_where_confidence_means_something(self):
        self.assertEqual(measures.risk_coverage([(0.9, 1), (0.9, 1), (0.6, 0), (0.7, 1)], 5),
                         [[0.4, 0.0], [0.6, 0.0], [0.8, 0.25]])
        self.assertEqual(measures.risk_coverage([], 5), [])

    def test_macro_f1_weighs_rare_causes_like_frequent_ones(self):
        pairs = [({"a"}, "a")] * 9 + [({"b"}, "a")]
        self.assertAlmostEqual(measures.macro_f1(pairs), (2 * 9 / (10 + 9) + 0) / 2, places=3)


if __name__ == "__main__":
    unittest.main()
