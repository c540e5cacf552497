# SPDX-License-Identifier: Apache-2.0
"""The runner of Python tests puts each file where it may run, and own machines are apart."""

import os
import pathlib
import subprocess
import sys
import tempfile
import threading
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests"))
import own_machine  # noqa: E402
import python_suite  # noqa: E402


def names(files):
    return [file.path.name for file in files]


class Schedule(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def file(self, name, text):
        path = self.folder / name
        path.write_text(text)
        return python_suite.File.read(path)

    def files(self):
        return [self.file("a", "import x\n"), self.file("b", 'ALONE = "it measures"\n'),
                self.file("c", 'OWN_MACHINE = "it profiles"\nTAKES_S = 70\n'), self.file("d", "x = 'TAKES_S = 9'\nTAKES_S = 90\n"),
                self.file("e", 'ALONE = "it measures"\nOWN_MACHINE = "it profiles"\nTAKES_S = 80\n')]

    def test_the_longest_start_first_and_those_that_measure_last(self):
        beside, alone = python_suite.schedule(self.files(), machines_allowed=True)
        self.assertEqual((names(beside), names(alone)), (["d", "c", "a"], ["e", "b"]))

    def test_without_namespaces_they_run_alone(self):
        beside, alone = python_suite.schedule(self.files(), machines_allowed=False)
        self.assertEqual((names(beside), names(alone)), (["d", "a"], ["e", "c", "b"]))

    def program(self, script):
        path = self.folder / "other/run"
        path.parent.mkdir(exist_ok=True)
        path.write_text("#!/bin/sh\n" + script)
        path.chmod(0o755)
        return path

    def test_a_program_has_a_machine_of_its_own_and_may_say_what_it_uses(self):
        file = python_suite.File.read(self.program("# CPUS = 0.25\n# TAKES_S = 40\n"))
        self.assertEqual((file.name, file.alone, file.own_machine, file.cpus, file.takes_s), ("other", False, True, 0.25, 40))
        self.assertEqual(python_suite.File.read(self.program("true\n")).cpus, 0.5)

    def test_a_program_counts_as_its_last_line_says(self):
        def outcome(script):
            command = [sys.executable, python_suite.__file__, self.program(script)]
            done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
            return done.returncode, done.stdout.splitlines()[-1]

        self.assertEqual(outcome("echo skipped it: why; echo 3 passed, 0 failed, 1 skipped\n"), (0, "3 passed, 0 failed, 1 skipped"))
        self.assertEqual(outcome("echo 3 passed, 2 failed, 0 skipped; exit 1\n"), (1, "3 passed, 2 failed, 0 skipped"))
        self.assertEqual(outcome("echo 3 passed, 0 failed, 0 skipped; exit 1\n"), (1, "0 passed, 1 failed, 0 skipped"))
        self.assertEqual(outcome("true\n"), (1, "0 passed, 1 failed, 0 skipped"))

    def test_failures_have_names_by_which_they_run_again(self):
        path = self.folder / "fails_test.py"
        path.write_text("""
import unittest
class A(unittest.TestCase):
    def test_passes(self): pass
    def test_fails(self):
        for number in 1, 2:
            with self.subTest(number=number): self.assertEqual(number, 3, "why")
class B(unittest.TestCase):
    @classmethod
    def setUpClass(cls): raise OSError("no room")
    def test_c(self): pass
""")

        def lines(*names):
            command = [sys.executable, python_suite.__file__, *([f"{path}:{name}" for name in names] or [path])]
            out = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, timeout=60, check=False).stdout
            return out.split("CPU time")[1].splitlines()[1:]

        name = os.path.relpath(path, ROOT)
        of_a, of_b = [f"failed {name}:A.test_fails", "AssertionError: 1 != 3 : why", ""], [f"failed {name}:B", "OSError: no room", ""]
        self.assertEqual(lines(), [*of_a, *of_b, "1 passed, 2 failed, 0 skipped"])
        self.assertEqual(lines("A.test_fails"), [*of_a, "0 passed, 1 failed, 0 skipped"])
        self.assertEqual(lines("A.test_passes", "B"), [*of_b, "1 passed, 1 failed, 0 skipped"])

    def test_as_many_files_run_at_once_as_the_cpus_suffice_for(self):
        hungry, waiting = self.file("a", ""), self.file("b", "CPUS = 0.25  # it waits for a reply\n")
        at_once = {hungry: threading.Barrier(2), waiting: threading.Barrier(8)}
        running, cpus, lock = [], [], threading.Lock()

        def run(file):
            with lock:
                running.append(file)
                cpus.append(sum(one.cpus for one in running))
            at_once[file].wait(60)  # fails unless as many run at once
            with lock:
                running.remove(file)
            return file

        ran = python_suite.run_beside([hungry] * 2 + [waiting] * 16, 2, run)
        self.assertEqual((ran.count(hungry), ran.count(waiting)), (2, 16))
        self.assertLessEqual(max(cpus), 2)

    def test_no_file_of_the_tree_says_what_excludes_another(self):
        for path in [*(ROOT / "tests/e2e").glob("*_test.py"), *(ROOT / "tests/e2e").glob("*/run")]:
            file = python_suite.File.read(path)
            self.assertFalse(file.alone and (file.own_machine or file.cpus != 1), path)
            self.assertIn(file.cpus, (0.125, 0.25, 0.5, 1), path)


class OwnMachine(unittest.TestCase):
    def setUp(self):
        if not own_machine.allowed():
            self.skipTest("this user may not make namespaces; run it as root")

    def run_there(self, script, **more):
        return subprocess.run([own_machine.__file__, "sh", "-c", script], capture_output=True, text=True, timeout=60, check=False, **more)

    def test_processes_and_shared_memory_are_its_own(self):
        with tempfile.NamedTemporaryFile(dir="/dev/shm") as ours:
            done = self.run_there(f"test ! -e {ours.name} && touch /dev/shm/theirs-{os.getpid()} && ps -e -o comm=")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertLessEqual(len(done.stdout.splitlines()), 3, done.stdout)
        self.assertFalse(pathlib.Path(f"/dev/shm/theirs-{os.getpid()}").exists())

    def test_loopback_answers(self):
        code = ("import socket; server = socket.create_server(('127.0.0.1', 4711)); "
                "socket.create_connection(server.getsockname(), 5); print('answered')")
        first, second = (self.run_there(f'{sys.executable} -c "{code}"') for _ in range(2))
        self.assertEqual((first.stdout, second.stdout), ("answered\n", "answered\n"), first.stderr)

    def test_its_programs_have_an_inject_library_of_their_own(self):
        with tempfile.TemporaryDirectory() as build:
            library = pathlib.Path(build, "lib/libgpusonde-inject.so")
            library.parent.mkdir()
            library.write_text("content", encoding="ascii")
            done = self.run_there(f"cat {library} && stat -L -c ' %d:%i' {library}", env={**os.environ, "GPUSONDE_BUILD": build})
            status = library.stat()
        content, _, inode = done.stdout.strip().partition(" ")
        self.assertEqual(content, "content", done.stderr)
        self.assertNotEqual(inode, f"{status.st_dev}:{status.st_ino}")

    def test_the_status_is_the_commands(self):
        self.assertEqual(self.run_there("exit 41").returncode, 41)
        self.assertEqual(self.run_there("kill -9 $$").returncode, 128 + 9)

    def test_what_it_started_ends_with_it(self):
        with tempfile.TemporaryDirectory() as folder:
            alive = pathlib.Path(folder, "alive")
            os.mkfifo(alive)
            reader = os.open(alive, os.O_RDONLY | os.O_NONBLOCK)
            self.addCleanup(os.close, reader)
            self.assertEqual(self.run_there(f"exec 9>{alive}; sleep 300 >/dev/null 2>&1 & exit 0").returncode, 0)
            self.assertEqual(os.read(reader, 1), b"", "its only writer has ended")

    def test_processes_whose_parents_ended_are_waited_for(self):
        done = self.run_there("sh -c 'true & echo $!' && sleep 0.5 && ps -e -o stat=")
        self.assertNotIn("Z", done.stdout)


if __name__ == "__main__":
    unittest.main()
