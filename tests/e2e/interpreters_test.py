# SPDX-License-Identifier: Apache-2.0
"""`gpusonde record` on interpreters other than a plain `python3`: embedded into a C program and linked statically,
several in one process, spawned by multiprocessing."""

import contextlib
import pathlib
import subprocess
import tempfile
import time
import unittest

import cpython
import program

TAKES_S = 60

# Burns CPU in a function with a given name for a second.
SPIN = """
import time
def {name}():
    end = time.process_time() + 1
    while time.process_time() < end:
        for _ in range(1000):
            pass
{name}()
"""

EMBEDDING = r"""
#include <Python.h>

int main(void) {
  Py_InitializeEx(0);
  const int failed = PyRun_SimpleString(PROGRAM);
  return Py_FinalizeEx() < 0 || failed;
}
"""

# The module has had three names, and its run function two.
SUBINTERPRETER = """
try:
    import _interpreters as interpreters
except ImportError:
    import _xxsubinterpreters as interpreters
one = interpreters.create()
run = getattr(interpreters, "run_string", None) or interpreters.exec
run(one, {text!r})
interpreters.destroy(one)
"""

SPAWN = """
import multiprocessing
def spin_spawned():
    import time
    end = time.process_time() + 1
    while time.process_time() < end:
        for _ in range(1000):
            pass
if __name__ == "__main__":
    child = multiprocessing.get_context("spawn").Process(target=spin_spawned)
    child.start()
    child.join()
    raise SystemExit(child.exitcode)
"""


def c_string(text):
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'


class Interpreters(cpython.TestCase):
    def check(self, function, command):
        """Nearly all samples between the function's first sample, which may come late, and its last are in it."""
        done = self.record(*command, options=("--hz", "499"))
        self.assertEqual(done.returncode, 0, done.stderr)
        (row,) = self.query(f"""
            WITH all_samples AS (
              SELECT process, tid, time_ns, list_has_any(locations, (
                SELECT coalesce(list(location), []) FROM locations l JOIN functions f ON f.function = l.functions[1]
                WHERE l.kind = 'python' AND f.name = '{function}')) AS within
              FROM samples JOIN stacks USING (stack) WHERE state = 'on_cpu'
            ), run AS (
              SELECT process, tid, min(time_ns) AS first_ns, max(time_ns) AS last_ns FROM all_samples WHERE within GROUP BY ALL
            )
            SELECT count(*) AS samples, count(DISTINCT tid) AS threads, count(*) FILTER (within) AS within
            FROM all_samples JOIN run USING (process, tid) WHERE time_ns BETWEEN first_ns AND last_ns""")
        self.assertEqual(row["threads"], 1)
        self.assertGreater(row["within"], 100)
        self.assertGreaterEqual(row["within"] / row["samples"], 0.98)

    def test_embedded_and_linked_statically(self):
        built = 0
        for version, path in self.interpreters:
            config = pathlib.Path(path).with_name(f"python{version}-config")
            if not config.exists():
                continue
            flags = [subprocess.run([config, *options], check=True, capture_output=True, text=True).stdout.split()
                     for options in (("--includes",), ("--ldflags", "--embed"))]
            with self.subTest(version=version), tempfile.TemporaryDirectory() as folder:
                source = pathlib.Path(folder, "embedding.c")
                source.write_text(f"#define PROGRAM {c_string(SPIN.format(name='spin_embedded'))}\n{EMBEDDING}")
                binary = source.with_suffix("")
                subprocess.run(["cc", "-O1", *flags[0], source, "-o", binary, *flags[1]], check=True)
                built += 1
                self.check("spin_embedded", [binary])
        if built == 0:
            self.skipTest("no CPython here can be embedded")

    def test_a_second_interpreter_of_a_process(self):
        for version, path in self.interpreters:
            with self.subTest(version=version):
                self.check("spin_second", [path, "-c", SUBINTERPRETER.format(text=SPIN.format(name="spin_second"))])

    def test_children_that_multiprocessing_spawns(self):
        for version, path in self.interpreters:
            with self.subTest(version=version), tempfile.TemporaryDirectory() as folder:
                script = pathlib.Path(folder, "spawns.py")
                script.write_text(SPAWN)
                self.check("spin_spawned", [path, script])

    @contextlib.contextmanager
    def spinning(self, *command):
        """A process that is killed at the end."""
        victim = subprocess.Popen(command)
        try:
            yield victim.pid
        finally:
            victim.kill()
            victim.wait()

    def record_running(self, pid, duration_s, began=lambda: None):
        """Calls began() once the process is being recorded."""
        self.recording.unlink(missing_ok=True)
        recorder = self.attach(pid, "--hz", "499", "--duration", str(duration_s))
        began()
        self.assertEqual(recorder.wait(timeout=60), 0, self.logged())

    def cpu_samples(self):
        """The samples on a CPU: (all, those inside the interpreter's loop that lack its frames, counted as such)."""
        return (
            self.value("SELECT count(*) FROM samples WHERE state = 'on_cpu'"),
            self.value("""
                SELECT count(*) FROM samples JOIN stacks USING (stack)
                WHERE state = 'on_cpu' AND list_has_any(locations, (
                    SELECT coalesce(list(location), []) FROM locations l JOIN functions f ON f.function = l.functions[1]
                    WHERE f.name LIKE '_PyEval_EvalFrame%'))
                  AND NOT list_has_any(locations, (
                    SELECT coalesce(list(location), []) FROM locations WHERE kind = 'python'))"""),
            self.value("SELECT coalesce(sum(count), 0)::BIGINT FROM drops WHERE reason = 'python_not_ready'"))

    def test_a_running_interpreter_is_known_before_its_first_sample(self):
        for version, path in self.interpreters:
            with self.subTest(version=version):
                spin = SPIN.format(name="spin_attached").replace("+ 1", "+ 60")
                with self.spinning(path, "-c", spin) as victim:
                    time.sleep(0.5)
                    self.record_running(victim, 2)
                samples, without, _ = self.cpu_samples()
                self.assertGreater(samples, 100)
                self.assertEqual(without, 0)

    def test_what_is_sampled_before_a_new_interpreter_is_known_is_counted(self):
        """A shell that is replaced by an interpreter while it is recorded."""
        for version, path in self.interpreters:
            with self.subTest(version=version):
                spin = SPIN.format(name="spin_later").replace("+ 1", "+ 60")
                begin = self.folder / f"begin-{version}"
                wait = f"until [ -e {begin} ]; do sleep 0.05; done"
                with self.spinning("sh", "-c", f'{wait}; exec {path} -c "$0"', spin) as victim:
                    self.record_running(victim, 4, begin.touch)
                samples, without, counted = self.cpu_samples()
                self.assertGreater(counted, 0)
                self.assertLessEqual(without, counted, "all stacks without Python frames are counted")
                self.assertGreater(samples, without + 100, "later ones have them")


if __name__ == "__main__":
    unittest.main()
