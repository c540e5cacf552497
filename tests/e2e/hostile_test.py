# SPDX-License-Identifier: Apache-2.0
"""Programs that unmap or falsify memory while it is read: failures are counted, and there is no crash or invented frame."""

import re
import unittest

import program
from program import PROGRAMS

SECONDS = 4
HZ = 999
# What a thread of `unmapper` has no business with in its stacks. Those that "stack" starts on memory which goes away are
# named like it.
FOREIGN = {"library": ("jit::spin", "Burn("), "jit": ("five::", "Burn("), "stack": ("five::", "jit::spin")}


class Hostile(program.TestCase):
    def record_program(self, *command):
        done = self.record(*command, options=("--hz", str(HZ)))
        self.assertEqual(done.returncode, 0, done.stderr)
        return done

    def drops(self):
        return {row["reason"]: row["n"] for row in
                self.query("SELECT reason, sum(count)::BIGINT AS n FROM drops GROUP BY reason")}

    def test_code_and_stacks_that_are_unmapped(self):
        done = self.record_program(PROGRAMS / "unmapper", SECONDS, PROGRAMS / "libfive_fifth.so")
        for turns in re.findall(r"\d+", done.stdout):
            self.assertGreater(int(turns), 100, done.stdout)
        rows = self.query("""
            SELECT threads.name AS thread, frames, count(*) AS n FROM (
              SELECT process, tid, stack, list(coalesce(functions.name, '[' || kind || ']')) AS frames
              FROM (SELECT DISTINCT process, tid, stack, locations FROM samples JOIN stacks USING (stack)
                    WHERE state = 'on_cpu'), unnest(locations) AS u(location)
              JOIN locations USING (location) LEFT JOIN functions ON function = functions[1] GROUP BY ALL)
            JOIN samples USING (process, tid, stack) JOIN threads USING (process, tid)
            WHERE state = 'on_cpu' GROUP BY ALL""")
        for thread, foreign in FOREIGN.items():
            own = [row for row in rows if row["thread"] == thread]
            self.assertGreater(sum(row["n"] for row in own), 100, thread)
            invented = [row for row in own if any(name.startswith(foreign) for name in row["frames"])]
            self.assertEqual(invented, [], thread)
        named = sum(row["n"] for row in rows if "jit::spin" in row["frames"])
        self.assertGreater(named, 10, "what is still mapped when it is read has a name")

    def test_an_interpreter_that_lies(self):
        done = self.record_program(PROGRAMS / "fake_cpython", SECONDS)
        self.assertGreater(int(done.stdout.split()[0]), 100, "it works on")
        names = self.query("""
            SELECT f.name, f.file, count(DISTINCT stack) AS stacks FROM stacks, unnest(locations) AS u(location)
            JOIN locations l USING (location) JOIN functions f ON f.function = l.functions[1]
            WHERE l.kind = 'python' GROUP BY ALL""")
        self.assertEqual({(row["name"], row["file"]) for row in names}, {("honest", "/honest.py")})
        drops = self.drops()
        lies = drops.get("python_stack_lost", 0) + drops.get("python_unnamed", 0) + drops.get("stack_truncated", 0)
        self.assertGreater(lies, 100, drops)
        honest = self.value("""
            WITH python AS (SELECT stack, list(name) AS names FROM (
                SELECT stack, coalesce(f.name, '?') AS name FROM stacks, unnest(locations) AS u(location)
                JOIN locations l USING (location) LEFT JOIN functions f ON f.function = l.functions[1]
                WHERE l.kind = 'python') GROUP BY stack)
            SELECT count(*) FROM samples JOIN python USING (stack) WHERE state = 'on_cpu' AND names = ['honest']""")
        self.assertGreater(honest, SECONDS * HZ / 8, "valid frames are still recorded")


if __name__ == "__main__":
    unittest.main()
