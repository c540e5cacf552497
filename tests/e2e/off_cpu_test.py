# SPDX-License-Identifier: Apache-2.0
"""Time in which threads wait, by what they wait for."""

import unittest

import program
from program import PROGRAMS

ALONE = "it measures how long threads wait"


class OffCpu(program.TestCase):
    @program.measures
    def test_waits_have_their_length_reason_and_stack(self):
        done = self.record(PROGRAMS / "waiter")
        self.assertEqual(done.returncode, 0, done.stderr)
        found = {(row["name"], row["state"]): row["s"] for row in self.query("""
            SELECT name, state, sum(weight_ns) / 1e9 AS s FROM samples JOIN threads USING (process, tid)
            GROUP BY ALL""")}
        for thread, state in (("sleeper", "sleep"), ("writer", "sleep"), ("reader", "io"), ("locked", "lock")):
            self.assertAlmostEqual(found[thread, state], 1, delta=0.2, msg=f"{thread}: {found}")
        # Two threads share a CPU for a second, so each waits about half of it; others may want it, too.
        waited, ran = found["busy", "run_queue"], found["busy", "on_cpu"]
        self.assertAlmostEqual(waited + ran, 2, delta=0.3, msg=str(found))
        self.assertGreater(waited, 0.8)

    @program.measures
    def test_stacks_say_where_it_waits(self):
        self.assertEqual(self.record(PROGRAMS / "waiter").returncode, 0)
        for function, state in (("SleepAlone", "sleep"), ("ReadFromPipe", "io"), ("WantTheLock", "lock")):
            seconds = self.value(f"""
                SELECT coalesce(sum(weight_ns), 0) / 1e9 FROM samples JOIN stacks USING (stack)
                WHERE state = '{state}' AND list_has_any(locations, (
                  SELECT list(location) FROM locations l JOIN functions f ON f.function = l.functions[-1]
                  WHERE contains(f.name, '{function}')))""")
            self.assertAlmostEqual(seconds, 1, delta=0.2, msg=function)

    @program.measures
    def test_a_wait_that_never_ends_counts_up_to_the_end(self):
        done = self.record("sleep", "30", options=("--duration", "2"))
        self.assertEqual(done.returncode, 0, done.stderr)
        slept = self.value("SELECT coalesce(sum(weight_ns), 0) / 1e9 FROM samples WHERE state = 'sleep'")
        self.assertAlmostEqual(slept, 2, delta=0.3)


if __name__ == "__main__":
    unittest.main()
