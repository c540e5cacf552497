# SPDX-License-Identifier: Apache-2.0
"""The first half second of a recording and its end: signals at any moment, and what is recorded."""

import os
import pathlib
import signal
import subprocess
import time
import unittest

import program
from program import GPUSONDE

CPUS = 0.5
TAKES_S = 28
STEP_MS = int(os.environ.get("GPUSONDE_SIGNAL_STEP_MS", "50"))  # 5 was tried by hand
LAST_MS = 500


def running(marker):
    """Processes with this argument."""
    found = []
    for path in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
        try:
            arguments = path.read_bytes().split(b"\0")
        except OSError:
            continue
        if marker.encode() in arguments and b"record" not in arguments:
            found.append(path.parent.name)
    return found


def heed_interrupts():
    """Programs that a shell starts in the background ignore interrupts, and so do all that they start."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


class Interrupted(program.TestCase):
    def interrupt(self, after_ms, send, *arguments):
        """The exit status of a recorder that is interrupted `after_ms` after its exec."""
        with subprocess.Popen([GPUSONDE, "record", "-o", self.recording, *arguments], stdout=subprocess.DEVNULL,
                              stderr=subprocess.PIPE, text=True, start_new_session=True,
                              preexec_fn=heed_interrupts) as recorder:
            time.sleep(after_ms / 1000)
            send(recorder)
            try:
                _, errors = recorder.communicate(timeout=30)
            except subprocess.TimeoutExpired:
                os.killpg(recorder.pid, signal.SIGKILL)
                self.fail(f"an interrupt after {after_ms} ms was lost")
        return recorder.returncode, errors

    def assert_clean(self, status, errors):
        if status == -signal.SIGINT:  # before main() there is nothing to finish
            self.assertEqual(list(self.folder.iterdir()), [])
            return
        self.assertEqual(status, 128 + signal.SIGINT, errors)
        self.assertEqual([path.name for path in self.folder.iterdir()], [self.recording.name], errors)
        self.assertEqual(self.value("SELECT count(*) FROM sources WHERE ended_ns IS NOT NULL"), 1)
        self.recording.unlink()

    def try_all(self, send):
        for after_ms in range(0, LAST_MS + 1, STEP_MS):
            with self.subTest(after_ms=after_ms):
                marker = f"97.{os.getpid()}{after_ms}"
                self.assert_clean(*self.interrupt(after_ms, send, "--", "sleep", marker))
                self.assertEqual(running(marker), [])

    def test_from_the_terminal(self):
        self.try_all(lambda recorder: os.killpg(recorder.pid, signal.SIGINT))

    def test_by_kill(self):
        self.try_all(lambda recorder: recorder.send_signal(signal.SIGINT))

    def test_while_it_watches_a_process(self):
        with subprocess.Popen(["sleep", "100"]) as watched:
            self.addCleanup(watched.kill)
            for after_ms in range(0, LAST_MS + 1, 5 * STEP_MS):
                with self.subTest(after_ms=after_ms):
                    status, errors = self.interrupt(after_ms, lambda recorder: recorder.send_signal(signal.SIGINT),
                                                    "-p", str(watched.pid))
                    if status != -signal.SIGINT:
                        self.assertEqual(status, 0, errors)
                        self.recording.unlink()
                    self.assertEqual(list(self.folder.iterdir()), [])
            watched.kill()


class Beginning(program.TestCase):
    def test_a_duration_is_what_is_recorded(self):
        done = self.record("sleep", "5", options=("--duration", "2"))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(" for 2.0 s ", done.stderr)
        recorded = self.value("SELECT (ended_ns - started_ns) / 1e9 FROM sources")
        self.assertGreaterEqual(recorded, 2)
        self.assertLess(recorded, 2.1)

    def test_setting_up_is_not_recorded(self):
        self.assertEqual(self.record("sh", "-c", "true").returncode, 0)
        self.assertEqual(self.value("SELECT count(*) FROM samples WHERE time_ns < (SELECT started_ns FROM sources)"), 0)
        # One sample stands for 10 ms, however short the recording is: setting up would be some tens.
        self.assertLessEqual(self.value("SELECT count(*) FROM samples WHERE state = 'on_cpu'"),
                             1 + 2 * 99 * self.value("SELECT (ended_ns - started_ns) / 1e9 FROM sources"))


class Size(program.TestCase):
    def test_a_recording_of_nothing_is_small(self):
        self.assertEqual(self.record("true").returncode, 0)
        self.assertLess(self.recording.stat().st_size, 1_000_000)


if __name__ == "__main__":
    unittest.main()
