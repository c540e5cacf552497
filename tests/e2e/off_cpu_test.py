# SPDX-License-Identifier: Apache-2.0
"""Time in which threads wait, by what they wait for."""

import json
import sys
import unittest

import program
from program import PROGRAMS

# Threads that leave their CPU some thousand times a second, so that the sampling probability is small, and sometimes
# sleep for long. Prints each thread's long sleeps as requested and as measured, which includes the wait for a CPU.
HOPPERS = """
import json, random, threading, time
slept = {}
def hop(seed):
    draw = random.Random(seed)
    own = slept.setdefault(threading.get_native_id(), [])
    for _ in range(4):
        for _ in range(300):
            time.sleep(0.0001)
        wanted = draw.uniform(0.52, 1.2)
        begin = time.monotonic()
        time.sleep(wanted)
        own.append((wanted, time.monotonic() - begin))
threads = [threading.Thread(target=hop, args=(seed,)) for seed in range(6)]
time.sleep(0.3)
for thread in threads: thread.start()
for thread in threads: thread.join()
print(json.dumps(slept))
"""

ALONE = "it measures how long threads wait"


class OffCpu(program.SharedRecordings):
    def recorded_waits(self):
        def make():
            done = self.record(PROGRAMS / "waiter")
            self.assertEqual(done.returncode, 0, done.stderr)
        return self.recorded("waiter", make)

    @program.measures
    def test_waits_have_their_length_and_reason(self):
        with self.recorded_waits():
            found = {(row["name"], row["state"]): row["s"] for row in self.query("""
                SELECT name, state, sum(weight_ns) / 1e9 AS s FROM samples JOIN threads USING (process, tid)
                GROUP BY ALL""")}
            for thread, state in (("sleeper", "sleep"), ("writer", "sleep"), ("reader", "io"), ("locked", "lock"),
                                  ("idle", "condition")):
                self.assertAlmostEqual(found[thread, state], 1, delta=0.2, msg=f"{thread}: {found}")
            # Two threads share a CPU for a second, so each waits about half of it, or longer if others use it too.
            waited, ran = found["busy", "run_queue"], found["busy", "on_cpu"]
            self.assertAlmostEqual(waited + ran, 2, delta=0.3, msg=str(found))
            self.assertGreater(waited, 0.8)

    @program.measures
    def test_stacks_say_where_it_waits(self):
        with self.recorded_waits():
            for function, state in (("SleepAlone", "sleep"), ("ReadFromPipe", "io"), ("WantTheLock", "lock"),
                                    ("WaitForNotification", "condition")):
                seconds = self.value(f"""
                    SELECT coalesce(sum(weight_ns), 0) / 1e9 FROM samples JOIN stacks USING (stack)
                    WHERE state = '{state}' AND list_has_any(locations, (
                      SELECT list(location) FROM locations l JOIN functions f ON f.function = l.functions[-1]
                      WHERE contains(f.name, '{function}')))""")
                self.assertAlmostEqual(seconds, 1, delta=0.2, msg=function)

    @program.measures
    def test_long_waits_are_all_there_at_their_length(self):
        done = self.record(sys.executable, "-c", HOPPERS)
        self.assertEqual(done.returncode, 0, done.stderr)
        for tid, slept in json.loads(done.stdout).items():
            rows = self.query(f"""
                SELECT weight_ns / 1e9 AS s, len(locations) AS frames FROM samples JOIN stacks USING (stack)
                WHERE tid = {tid} AND state = 'sleep' AND weight_ns >= 500000000 ORDER BY time_ns""")
            self.assertEqual(len(rows), len(slept), f"{rows} {slept}")
            for row, (wanted, measured) in zip(rows, slept):
                self.assertGreaterEqual(row["s"], wanted - 0.001)
                self.assertLessEqual(row["s"], measured)
                self.assertGreater(row["frames"], 3)
        joined = self.value("""SELECT max(weight_ns) / 1e9 FROM samples JOIN threads USING (process, tid)
                               JOIN processes USING (process) WHERE tid = pid AND state <> 'run_queue'""")
        self.assertGreater(joined, 2, "the main thread's join of the first one is complete")

    @program.measures
    def test_a_wait_that_never_ends_counts_up_to_the_end(self):
        # Longer than what is recorded; the recorder returns when the program has ended.
        done = self.record("sleep", "5", options=("--duration", "2"))
        self.assertEqual(done.returncode, 0, done.stderr)
        slept = self.value("SELECT coalesce(sum(weight_ns), 0) / 1e9 FROM samples WHERE state = 'sleep'")
        self.assertAlmostEqual(slept, 2, delta=0.3)


if __name__ == "__main__":
    unittest.main()
