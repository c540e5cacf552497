# SPDX-License-Identifier: Apache-2.0
import unittest

import performance_doc

RESULT = {"benchmark": "store", "date": "2026-11-21", "machine": {"cpu": "EPYC", "cores": 2},
          "rows": [{"name": "ingest", "value": 1234567.8, "unit": "rows/s", "spread": "1.2-1.3 M", "goal": "≥ 1 M",
                    "met": True, "peer": "COPY: 2 M", "ratio": 0.617},
                   {"name": "query", "value": 310, "unit": "ms", "goal": "≤ 200 ms", "met": False},
                   {"name": "on a GPU", "value": None, "unit": "ms", "note": "this machine has none"}]}


class PerformancePage(unittest.TestCase):
    def test_a_row_says_what_was_measured_and_whether_the_goal_is_met(self):
        page = performance_doc.page([RESULT])
        self.assertIn("2026-11-21; cpu EPYC, cores 2.", page)
        self.assertIn("| ingest | 1,234,568 rows/s | 1.2-1.3 M | ≥ 1 M ✓ | COPY: 2 M | 0.617 |", page)
        self.assertIn("| query | 310 ms |  | ≤ 200 ms ✗ |  |  |", page)

    def test_what_was_not_measured_says_so_and_why(self):
        page = performance_doc.page([RESULT])
        self.assertIn("| on a GPU | not measured |", page)
        self.assertIn("- on a GPU: this machine has none", page)

    def test_without_results_the_page_claims_nothing(self):
        self.assertIn("Nothing has been measured yet.", performance_doc.page([]))

    def test_benchmarks_come_in_the_same_order_however_they_are_read(self):
        other = RESULT | {"benchmark": "a first one"}
        self.assertEqual(performance_doc.page([RESULT, other]), performance_doc.page([other, RESULT]))

    def test_small_numbers_have_no_exponent(self):
        self.assertEqual(performance_doc.number(0.0000123), "0.0000123")
        self.assertEqual(performance_doc.number(0.31), "0.31")


if __name__ == "__main__":
    unittest.main()
