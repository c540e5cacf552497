# SPDX-License-Identifier: Apache-2.0
"""Processes of another user can only damage their own rows in what root records."""

import os
import shutil
import subprocess
import sys
import unittest

import program

NOBODY = 65534
AS_NOBODY = f"setpriv --reuid={NOBODY} --regid={NOBODY} --clear-groups"
PROGRAM = """
__attribute__((noinline)) unsigned NAME(unsigned x) {
  for (int i = 0; i < 1000; ++i) x = x * 1664525 + 1013904223;
  return x;
}
int main(int count, char** arguments) {
  unsigned sum = 0;
  for (long i = 0; i < 1000000; ++i) sum += NAME((unsigned)i);
  return count == 99 ? (int)sum : 0;
}
"""


# Maps a file as code repeatedly while it runs.
MAPPER = """
import mmap, sys, time
end = time.monotonic() + 3
with open(sys.argv[1], "rb") as file:
    while time.monotonic() < end:
        mapped = mmap.mmap(file.fileno(), 4096, flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ | mmap.PROT_EXEC)
        sum(range(100_000))
        mapped.close()
"""


@unittest.skipUnless(os.geteuid() == 0, "only root can start processes of another user")
class Strangers(program.TestCase):
    def setUp(self):
        super().setUp()
        self.folder.chmod(0o755)

    def build(self, name, owner):
        """A program whose hot function has this name; code and build id don't depend on it."""
        (self.folder / f"{name}.c").write_text(PROGRAM.replace("NAME", name))
        subprocess.run(["gcc", "-O1", "-Wl,--build-id=0x0123456789abcdef0123", "-o", name, f"{name}.c"], check=True,
                       cwd=self.folder)
        os.chown(self.folder / name, owner, owner)
        return self.folder / name

    def hot_functions(self, of):
        """The names of the leaf functions of processes with this name."""
        return {row["name"] for row in self.query(f"""
            SELECT DISTINCT f.name FROM samples JOIN processes p USING (process) JOIN stacks USING (stack)
            JOIN locations l ON l.location = stacks.locations[1] JOIN functions f ON f.function = l.functions[1]
            WHERE p.name = '{of}' AND state = 'on_cpu' AND l.kind = 'native'""")}

    def test_a_build_id_of_roots_renames_nothing_of_roots(self):
        genuine, poisoned = self.build("genuine", 0), self.build("poisoned", NOBODY)
        for first, second in ((f"{AS_NOBODY} {poisoned}", genuine), (genuine, f"{AS_NOBODY} {poisoned}")):
            done = self.record("sh", "-c", f"{first} & sleep 1; {second} & wait")
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn("genuine", self.hot_functions("genuine"))
            self.assertNotIn("poisoned", self.hot_functions("genuine"))
            self.assertIn("poisoned", self.hot_functions("poisoned"))
            self.assertNotIn("genuine", self.hot_functions("poisoned"))
            self.recording.unlink()

    def test_a_debug_file_of_theirs_renames_nothing_of_roots(self):
        genuine = self.build("genuine", 0)
        shutil.move(self.build("poisoned", NOBODY), self.folder / "genuine.debug")
        subprocess.run(["strip", genuine], check=True)
        subprocess.run(["objcopy", "--add-gnu-debuglink=genuine.debug", "genuine"], check=True, cwd=self.folder)
        done = self.record(genuine)
        self.assertEqual(done.returncode, 0, done.stderr)
        names = self.hot_functions("genuine")
        self.assertNotIn("poisoned", names)
        self.assertTrue(any(name.startswith("[genuine+0x") for name in names), names)

    def test_a_program_that_changes_the_user_is_followed_after_its_exec(self):
        # The kernel reports an exit of its process then.
        program = self.build("changes_user", NOBODY)
        program.chmod(0o4755)
        done = self.record(program)
        self.assertEqual(done.returncode, 0, done.stderr)
        unknown, all_samples = self.query("""
            SELECT count(*) FILTER (kind = 'unknown') AS unknown, count(*) AS n FROM samples JOIN stacks USING (stack)
            JOIN locations ON location = locations[1] WHERE state = 'on_cpu'""")[0].values()
        self.assertGreater(all_samples, 10)
        self.assertLess(unknown, all_samples / 10)
        self.assertEqual(self.value("SELECT count(*) FROM processes"), 1)

    def test_a_file_without_unwind_tables_is_read_once_however_often_it_is_mapped(self):
        (self.folder / "zeros").write_bytes(bytes(4096))
        done = self.record(sys.executable, "-c", MAPPER, self.folder / "zeros", env=dict(os.environ, GPUSONDE_LOG="info"))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stderr.count(f"no unwind table for {self.folder}/zeros"), 1, done.stderr)


if __name__ == "__main__":
    unittest.main()
