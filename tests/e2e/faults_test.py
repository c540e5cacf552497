# SPDX-License-Identifier: Apache-2.0
"""Failing disks: stored data stays, lost data is counted, and recording continues when there is space again."""

import errno
import os
import pathlib
import resource
import signal
import subprocess
import time
import unittest

import program
from program import GPUSONDE, HOTPATHS, PROGRAMS

CPUS = 0.5
FAULTS = PROGRAMS / "disk_faults.so"


class Faults(program.TestCase):
    def fault(self, text):
        return dict(os.environ, LD_PRELOAD=str(FAULTS), DISK_FAULT=text)

    def spool(self):
        return pathlib.Path(f"{self.recording}.spool")

    def wait_for(self, condition, what, seconds=30):
        deadline = time.monotonic() + seconds
        while not condition():
            self.assertLess(time.monotonic(), deadline, f"{what} after {seconds} s")
            time.sleep(0.05)


class Record(Faults):
    def start(self, seconds):
        recorder = subprocess.Popen([GPUSONDE, "record", "-o", self.recording, "--", HOTPATHS, "--seconds", str(seconds)],
                                    stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        self.addCleanup(recorder.communicate)
        self.addCleanup(recorder.kill)
        self.wait_for(lambda: list(self.spool().glob("*")), "no spool")
        return recorder

    def test_a_failed_fsync_costs_one_round_which_is_counted(self):
        # The program runs for at least ten rounds; the failure is in the middle.
        done = self.record(HOTPATHS, "--seconds", "4", env=self.fault(f"fsync:{errno.EIO}:6:1:.spool"))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("rows could not be written", done.stderr)
        self.assertNotIn("nothing was dropped", done.stderr)
        self.assertGreater(self.value("SELECT sum(count) FROM drops WHERE reason = 'spool_failed'"), 0)
        # Samples cover the whole time except that round.
        span_s = self.value("SELECT (max(time_ns) - min(time_ns)) / 1e9 FROM samples")
        self.assertGreater(span_s, 3)
        gap_s = self.value("SELECT max(gap) / 1e9 FROM (SELECT time_ns - lag(time_ns) OVER (ORDER BY time_ns) AS gap "
                           "FROM samples)")
        self.assertLess(gap_s, 1.5)
        self.assertEqual(self.value("SELECT count(*) FROM samples LEFT JOIN stacks USING (stack) "
                                    "WHERE stacks.locations IS NULL"), 0)

    def test_fsync_that_fails_to_the_end_is_never_called_complete(self):
        done = self.record(HOTPATHS, "--seconds", "1", env=self.fault(f"fsync:{errno.EIO}:4:1000:.spool"))
        self.assertNotIn("nothing was dropped", done.stderr)
        self.assertIn("rows could not be written", done.stderr)

    def test_recover_leaves_a_living_recorder_alone(self):
        recorder = self.start(3)
        beside = program.run("record", "--recover", "-o", self.recording)
        self.assertEqual(beside.returncode, 125)
        self.assertIn("another recorder is still writing", beside.stderr)
        self.assertIn("wait until it ends, or give another -o", " ".join(beside.stderr.split()))
        self.assertIn(f"process {recorder.pid}", beside.stderr)
        again = self.record("true")
        self.assertEqual(again.returncode, 125)
        self.assertIn(f"process {recorder.pid}", again.stderr)
        self.assertNotIn("--recover", again.stderr)
        _, errors = recorder.communicate(timeout=60)
        self.assertEqual(recorder.returncode, 0, errors)
        self.assertGreater(self.value("SELECT count(*) FROM samples"), 0)

    def test_a_killed_recorder_leaves_what_recover_finishes(self):
        recorder = self.start(60)
        recorded = subprocess.run(["pgrep", "-P", str(recorder.pid)], capture_output=True, text=True, check=True).stdout.split()
        self.addCleanup(subprocess.run, ["kill", *recorded], check=False)
        self.await_spooled("SELECT count(*) FROM samples", lambda samples: samples > 0)
        recorder.kill()
        recorder.wait()
        blocked = self.record("true")
        self.assertEqual(blocked.returncode, 125)
        self.assertIn("--recover", blocked.stderr)
        done = program.run("record", "--recover", "-o", self.recording)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertGreater(self.value("SELECT count(*) FROM samples"), 0)
        self.assertFalse(self.spool().exists())

    def test_an_empty_spool_blocks_nothing(self):
        self.spool().mkdir()
        done = program.run("record", "--recover", "-o", self.recording)
        self.assertEqual(done.returncode, 125)
        self.assertIn("nothing to recover", done.stderr)
        self.assertFalse(self.spool().exists())
        self.spool().mkdir()
        self.assertEqual(self.record("true").returncode, 0)

    def test_a_disk_that_is_full_at_the_start_leaves_nothing_behind(self):
        disk = program.SmallDisk(self, self.folder / "disk", 8)
        self.recording = disk.folder / "run.sonde"
        disk.fill(0)
        done = self.record("true")
        self.assertEqual(done.returncode, 125)
        self.assertIn("No space left on device", done.stderr)
        self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
        self.assertFalse(self.spool().exists())
        disk.make_room()
        self.assertEqual(self.record("true").returncode, 0)

    def test_a_limit_on_the_size_of_files_is_an_error_like_a_full_disk(self):
        def limit():
            resource.setrlimit(resource.RLIMIT_FSIZE, (10 << 10, resource.RLIM_INFINITY))

        done = self.record(HOTPATHS, "--seconds", "1", preexec_fn=limit)
        self.assertEqual(done.returncode, 125, done.stderr)
        self.assertIn("File too large", done.stderr)
        # What is recorded has the limit as it would have without us.
        self.recording = self.folder / "other.sonde"
        done = self.record("sh", "-c", "kill -XFSZ $$")
        self.assertEqual(done.returncode, 128 + signal.SIGXFSZ, done.stderr)

    def test_a_recording_that_does_not_fit_stays_in_its_spool(self):
        disk = program.SmallDisk(self, self.folder / "disk", 16)
        self.recording = disk.folder / "run.sonde"
        disk.fill(240 << 10)  # space for the spool of a second, but not for a recording: the smallest is 260 KB
        done = self.record(HOTPATHS, "--seconds", "1")
        self.assertEqual(done.returncode, 125)
        for words in ("duckdb", "Error:", "Transaction"):
            self.assertNotIn(words.lower(), done.stderr.lower())
        self.assertIn("no space", done.stderr.lower())
        self.assertIn("--recover", done.stderr)
        disk.make_room()
        done = program.run("record", "--recover", "-o", self.recording)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertGreater(self.value("SELECT count(*) FROM samples"), 0)

    def test_a_recording_that_cannot_be_renamed_stays_in_its_spool(self):
        done = self.record(HOTPATHS, "--seconds", "1", env=self.fault(f"rename:{errno.EIO}:1:1:run.sonde$"))
        self.assertEqual(done.returncode, 125)
        self.assertIn(f"rename to {self.recording}: Input/output error", done.stderr)
        self.assertIn("--recover", done.stderr)
        self.assertEqual(list(self.folder.iterdir()), [self.spool()])
        done = program.run("record", "--recover", "-o", self.recording)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertGreater(self.value("SELECT count(*) FROM samples"), 0)

    def test_a_folder_that_cannot_be_written_is_one_sentence(self):
        if not pathlib.Path("/proc/sys").is_dir():
            self.skipTest("no /proc/sys, in which no files can be created")
        done = program.run("record", "-o", "/proc/sys/run.sonde", "--", "true")
        self.assertEqual(done.returncode, 125)
        self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
        self.assertIn("/proc/sys: ", done.stderr)
        self.assertIn("give another file with -o", done.stderr)


if __name__ == "__main__":
    unittest.main()
