# SPDX-License-Identifier: Apache-2.0
"""`gpusonde record` on real programs, including failures."""

import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time
import unittest

import program
from program import GPUSONDE, HOTPATHS, PROGRAMS

CPUS = 0.5
TAKES_S = 46


def await_start(test):
    """Waits until the test's recorder has begun its recording."""
    deadline = time.monotonic() + 30
    while not pathlib.Path(f"{test.recording}.spool").exists():
        test.assertLess(time.monotonic(), deadline, "it doesn't record")
        time.sleep(0.05)


def root_with_hotpaths(folder):
    """A root folder with hotpaths as /only_in_here, the libraries that it needs and chroot."""
    root = folder / "root"
    root.mkdir()
    libraries = subprocess.run(["ldd", HOTPATHS], capture_output=True, text=True, check=True).stdout.split()
    for library in [path for path in libraries if path.startswith("/")] + ["/usr/sbin/chroot"]:
        target = root / library.lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(library, target)
    shutil.copy(HOTPATHS, root / "only_in_here")
    return root


class ProgramsOfEveryKind(program.TestCase):
    def test_jit_code_is_named_by_its_perf_map(self):
        self.assertEqual(self.record(PROGRAMS / "jitmap", "2").returncode, 0)
        found = sum(count for frames, count in self.folded() if "jit::spin" in frames)
        total = sum(count for _, count in self.folded())
        self.assertGreater(found / total, 0.5)

    def test_jit_code_is_named_by_its_jitdump_with_lines(self):
        self.assertEqual(self.record(PROGRAMS / "jitmap", "2", self.folder).returncode, 0)
        rows = self.query("""
            SELECT l.lines[1] AS line, f.name, f.file, count(*) AS samples FROM samples JOIN stacks USING (stack)
            JOIN locations l ON l.location = stacks.locations[1] LEFT JOIN functions f ON f.function = l.functions[1]
            WHERE state = 'on_cpu' AND l.kind = 'jit' GROUP BY ALL ORDER BY samples DESC""")
        total = self.value("SELECT count(*) FROM samples WHERE state = 'on_cpu'")
        self.assertEqual((rows[0]["line"], rows[0]["name"], rows[0]["file"]), (9, "jit::spin", "/app/spin.js"), rows)
        self.assertGreater(rows[0]["samples"], total / 2)

    def test_a_program_that_ends_before_the_first_sample(self):
        for _ in range(10):  # one of 99 samples per second may hit it
            done = self.record("true")
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(self.value("SELECT count(*) FROM processes"), 1)
            samples = self.value("SELECT count(*) FROM samples WHERE state = 'on_cpu'")
            self.assertIn("(1 sample)" if samples == 1 else f"({samples} samples)" if samples else "no samples", done.stderr)
            if samples == 0:
                return
        self.fail("ten programs that do nothing were all sampled")

    def test_the_exit_status_is_the_programs(self):
        self.assertEqual(self.record("sh", "-c", "exit 41").returncode, 41)
        killed = self.record("sh", "-c", "kill -9 $$")
        self.assertEqual(killed.returncode, 128 + 9)
        self.assertIn("the program was killed by signal 9 (Killed); if nobody sent it, the kernel did", killed.stderr)
        self.assertEqual(self.record(PROGRAMS / "segfaulter").returncode, 128 + 11)
        terminated = self.record("sh", "-c", "kill -TERM $$")
        self.assertEqual(terminated.returncode, 128 + 15)
        self.assertNotIn("killed by", terminated.stderr)

    def test_what_the_program_prints_is_all_there_is_on_standard_output(self):
        self.assertEqual(self.record("echo", "hello").stdout, "hello\n")

    def test_what_outlives_the_program_is_named(self):
        left = self.record("sh", "-c", "sleep 300 >/dev/null 2>&1 & echo $!; sleep 0.3")
        os.kill(int(left.stdout), signal.SIGKILL)
        self.assertIn(f"process {left.stdout.strip()} that it started still runs", left.stderr)

    def test_a_helper_that_ends_after_the_program_is_not_left_running(self):
        tracked = "import multiprocessing.resource_tracker as tracker, time; tracker.ensure_running(); time.sleep(0.5)"
        self.assertNotIn("still runs", self.record(sys.executable, "-c", tracked).stderr)

    def test_a_thousand_children_are_all_there(self):
        done = self.record(PROGRAMS / "forker", options=("--hz", "499"), timeout=180)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.value("SELECT count(*) FROM processes"), 1001)
        self.assertEqual(self.value("SELECT count(*) FROM processes WHERE exited_ns IS NULL"), 0)
        unknown = self.value("SELECT coalesce(sum(count), 0) FROM drops WHERE reason = 'sideband_lost'")
        self.assertEqual(unknown, 0)

    def test_a_program_that_becomes_another(self):
        self.assertEqual(self.record(PROGRAMS / "exec_chain").returncode, 0)
        self.assertEqual(self.value("SELECT count(*) FROM processes"), 1)

    def test_inside_a_root_of_its_own(self):
        """As in a container: the binary is found through /proc/PID/root, as our own root lacks it."""
        done = self.record("chroot", root_with_hotpaths(self.folder), "/only_in_here", "--seconds", "2")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertTrue(any("::hash_block(" in frame for frames, _ in self.folded() for frame in frames))


    def test_from_within_a_container(self):
        """In a pid namespace, the kernel's process ids differ from those that its processes see."""
        contained = ("unshare", "--pid", "--fork", "--mount-proc")
        if subprocess.run([*contained, "true"], capture_output=True, check=False).returncode != 0:
            self.skipTest("no pid namespace can be made here")
        done = subprocess.run([*contained, GPUSONDE, "record", "-o", self.recording, "--", "sh", "-c",
                               f"{HOTPATHS} --seconds 2; true"],
                              capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertGreater(sum(count for frames, count in self.folded() if any("::decode(" in f for f in frames)), 10)
        self.assertLess(self.value("SELECT max(pid) FROM processes"), 100, "numbered as in the container")


class Attaching(program.TestCase):
    def attach_to(self, command, root):
        """Records a program that changes its root, once it has done so; returns all names of frames."""
        victim = subprocess.Popen([*command, root], stdout=subprocess.DEVNULL)
        self.addCleanup(victim.wait)
        self.addCleanup(victim.kill)
        while os.readlink(f"/proc/{victim.pid}/root") != str(root) or os.readlink(f"/proc/{victim.pid}/exe").endswith("/chroot"):
            self.assertIsNone(victim.poll(), "it runs")
            time.sleep(0.02)
        done = program.run("record", "-o", self.recording, "-p", victim.pid, "--duration", "2")
        self.assertEqual(done.returncode, 0, done.stderr)
        return {frame for frames, _ in self.folded() for frame in frames}

    def test_to_a_process_in_a_root_of_its_own(self):
        """Its files have other paths for us than for itself."""
        root = root_with_hotpaths(self.folder)
        frames = self.attach_to(["sh", "-c", 'exec chroot "$0" /only_in_here --seconds 30'], root)
        self.assertTrue(any("::hash_block(" in frame for frame in frames), frames)

    def test_to_a_process_that_has_changed_its_root(self):
        """As daemons do once they have begun: all files that they run are out of their reach."""
        root = self.folder / "empty"
        root.mkdir()
        frames = self.attach_to([sys.executable, "-c", """
import os, sys
def burn_without_files():
    while True:
        sum(range(10_000))
os.chroot(sys.argv[1])
burn_without_files()"""], root)
        self.assertTrue(any("burn_without_files" in frame for frame in frames), frames)
        self.assertTrue("Py_RunMain" in frames, frames)

    def test_to_a_process_and_its_children_for_a_while(self):
        victim = subprocess.Popen(["sh", "-c", f"{HOTPATHS} --seconds 30 >/dev/null & wait"])
        self.addCleanup(subprocess.run, ["pkill", "-P", str(victim.pid)], check=False)
        self.addCleanup(victim.wait)
        self.addCleanup(victim.kill)
        time.sleep(0.5)
        done = program.run("record", "-o", self.recording, "-p", victim.pid, "--duration", "2")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIsNone(victim.poll(), "the process goes on")
        self.assertTrue(any("::hash_block(" in frame for frames, _ in self.folded() for frame in frames))

    def test_its_first_samples_are_complete(self):
        program_of_python = subprocess.Popen([sys.executable, "-c", "while True: sum(i for i in range(9999))"])
        self.addCleanup(program_of_python.wait)
        self.addCleanup(program_of_python.kill)
        time.sleep(0.5)
        done = program.run("record", "-o", self.recording, "-p", program_of_python.pid, "--duration", "1")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertGreater(self.value("SELECT count(*) FROM samples"), 10)
        incomplete = self.value("SELECT coalesce(sum(count), 0) FROM drops WHERE reason IN "
                                "('unwind_not_ready', 'python_not_ready')")
        self.assertEqual(incomplete, 0)

    def test_until_interrupted(self):
        victim = subprocess.Popen([HOTPATHS, "--seconds", "30"], stdout=subprocess.DEVNULL)
        self.addCleanup(victim.wait)
        self.addCleanup(victim.kill)
        recorder = subprocess.Popen([GPUSONDE, "record", "-o", self.recording, "-p", str(victim.pid)],
                                    stderr=subprocess.PIPE, text=True)
        await_start(self)
        time.sleep(2)
        recorder.send_signal(signal.SIGINT)
        _, errors = recorder.communicate(timeout=30)
        self.assertEqual(recorder.returncode, 0, errors)
        self.assertGreater(self.value("SELECT count(*) FROM samples"), 0)

    def test_to_a_thread_of_the_kernel(self):
        if pathlib.Path("/proc/2/comm").read_text(encoding="ascii") != "kthreadd\n":
            self.skipTest("the kernel's threads are not to be seen here")
        done = program.run("record", "-o", self.recording, "-p", 2, "--duration", "0.3")
        self.assertIn("recorded  [kthreadd] for", done.stderr)

    def test_to_a_process_that_is_not_there(self):
        ended = subprocess.Popen(["true"])
        self.addCleanup(ended.wait)
        os.waitid(os.P_PID, ended.pid, os.WEXITED | os.WNOWAIT)
        for pid in (2**22 - 1, ended.pid):
            done = program.run("record", "-o", self.recording, "-p", pid)
            self.assertEqual(done.returncode, 125)
            self.assertIn("no process", done.stderr)
        self.assertFalse(self.recording.exists())
        self.assertEqual(list(self.folder.iterdir()), [])

    def test_a_program_outlives_the_duration(self):
        go = self.folder / "go"
        recorder = subprocess.Popen([GPUSONDE, "record", "-o", self.recording, "--duration", "0.5", "--", "timeout", "100", "sh", "-c",
                                     f"while [ ! -e {go} ]; do sleep 0.1; done; exit 7"], stderr=subprocess.PIPE, text=True)
        self.addCleanup(recorder.communicate)
        self.addCleanup(recorder.kill)
        self.assertTrue(any("keeps running" in line for line in recorder.stderr), "it says so before the program ends")
        self.assertTrue(self.recording.exists())
        go.touch()
        self.assertEqual(recorder.wait(timeout=60), 7)


class BadDays(program.TestCase):
    def assert_fails(self, done, *words, status=125):
        self.assertEqual(done.returncode, status, done.stderr)
        for word in words:
            self.assertIn(word, done.stderr)
        self.assertNotIn("terminate", done.stderr)

    def test_programs_that_cannot_be_started(self):
        self.assert_fails(self.record("/no/such/program"), "/no/such/program", status=127)
        self.assert_fails(self.record("/etc/passwd"), "/etc/passwd", status=126)
        self.assertEqual(list(self.folder.iterdir()), [], "nothing is left behind")

    def test_an_output_that_cannot_be_written(self):
        self.assert_fails(program.run("record", "-o", "/proc/run.sonde", "--", "true"), "/proc")
        self.assert_fails(program.run("record", "-o", self.folder, "--", "true"), str(self.folder))
        self.assert_fails(program.run("record", "-o", self.folder / "no/folder/x.sonde", "--", "true"), "no/folder")

    def test_two_recorders_at_one_file_and_at_two(self):
        first = subprocess.Popen([GPUSONDE, "record", "-o", self.recording, "--", HOTPATHS, "--seconds", "3"],
                                 stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        await_start(self)
        time.sleep(1)
        self.assert_fails(self.record("true"), "another recorder", "run.sonde")
        other = self.folder / "other.sonde"
        self.assertEqual(program.run("record", "-o", other, "--", HOTPATHS, "--seconds", "1").returncode, 0)
        self.assertEqual(first.wait(30), 0)
        for recording in (self.recording, other):
            self.assertGreater(self.value("SELECT count(*) FROM samples", recording), 0)

    def test_without_privileges(self):
        # nobody can't read a build folder under /root; a copy of the program can be anywhere.
        self.folder.chmod(0o777)
        done = subprocess.run(["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups",
                               GPUSONDE, "record", "-o", self.recording, "--", "true"],
                              capture_output=True, text=True, timeout=60, check=False)
        self.assert_fails(done, "root", "CAP_PERFMON")

    def test_without_btf(self):
        done = subprocess.run(["unshare", "-m", "sh", "-c",
                               'mount -t tmpfs none /sys/kernel/btf && exec "$@"', "sh",
                               GPUSONDE, "record", "-o", self.recording, "--", "true"],
                              capture_output=True, text=True, timeout=60, check=False)
        self.assert_fails(done, "BTF")

    def test_a_disk_that_fills_up_keeps_what_was_gathered(self):
        disk = self.folder / "disk"
        disk.mkdir()
        # The program fills the disk while it runs, and frees space before it ends.
        script = f"""
            mount -t tmpfs -o size=24m none {disk} || exit 99
            {GPUSONDE} record --hz 999 -o {disk}/run.sonde -- sh -c '
                {HOTPATHS} --seconds 1; dd if=/dev/zero of={disk}/ballast bs=64k 2>/dev/null
                {HOTPATHS} --seconds 2; rm {disk}/ballast; {HOTPATHS} --seconds 1'
            status=$?; cp {disk}/run.sonde {self.recording}; exit $status"""
        done = subprocess.run(["unshare", "-m", "bash", "-c", script], capture_output=True, text=True, timeout=120,
                              check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("No space left", done.stderr)
        self.assertGreater(self.value("SELECT sum(count) FROM drops WHERE reason = 'spool_failed'"), 0)
        # Samples from before and after, and no reference to a lost row.
        self.assertGreater(self.value("SELECT count(*) FROM samples"), 500)
        self.assertEqual(self.value("SELECT count(*) FROM samples ANTI JOIN stacks USING (stack)"), 0)

    def test_wrong_usage(self):
        self.assert_fails(program.run("record"), "PID", status=2)
        self.assert_fails(program.run("record", "--hz", "0", "--", "true"), "--hz", status=2)
        self.assert_fails(program.run("record", "-p", "1", "--", "true"), "not both", status=2)
        self.assert_fails(program.run("record", "--recover", "-o", self.recording),
                          f"no unfinished recording: {self.recording}.spool")


if __name__ == "__main__":
    unittest.main()
