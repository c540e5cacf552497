# SPDX-License-Identifier: Apache-2.0
"""`gpusonde up` on a disk that fills up and empties again: it says so, answers, recovers by itself, and doubles nothing."""

import os
import subprocess
import time
import unittest
import urllib.error

import program

ALONE = "it samples the whole machine"
DISK_MB = 96


class FullDisk(program.UpTestCase):
    def setUp(self):
        super().setUp()
        disk = self.folder / "disk"
        disk.mkdir()
        done = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={DISK_MB}m", "tmpfs", disk], capture_output=True,
                              text=True, check=False)
        if done.returncode != 0:
            self.skipTest("mounting is not allowed here: " + done.stderr.strip())
        self.addCleanup(subprocess.run, ["umount", "-l", disk], check=False)
        self.disk = disk
        self.state = disk / "state"

    def fill(self, leave_bytes):
        space = os.statvfs(self.disk)
        with (self.disk / "ballast").open("wb") as file:
            os.posix_fallocate(file.fileno(), 0, max(1, space.f_bavail * space.f_frsize - leave_bytes))

    def make_room(self):
        (self.disk / "ballast").unlink()

    def wait_for_notice(self, up, wanted):
        """The page's notices, once there is one (or none, as wanted). Asking has the store commit what it holds."""
        deadline = time.monotonic() + 60
        while True:
            notices = self.get(up, "overview")["notices"]
            if bool(notices) == wanted:
                return notices
            self.assertLess(time.monotonic(), deadline, f"notices are {notices}")
            time.sleep(0.3)

    def check_the_day(self):
        (day,) = (self.state / "days").glob("*.sonde")
        self.assertEqual(self.value("SELECT count(*) - count(DISTINCT (cpu, time_ns)) FROM samples WHERE state = 'on_cpu'",
                                    day), 0, "nothing was added twice")
        for table, key in (("stacks", "stack"), ("processes", "process")):
            self.assertEqual(self.value(f"SELECT count(*) FROM samples ANTI JOIN {table} USING ({key})", day), 0,
                             f"every sample has its {table}")

    def test_storing_stops_at_the_reserve_while_the_page_is_answered(self):
        self.burn(300)
        up = self.start("--disk-reserve-mb", "40")
        seen = self.wait_for_samples(up)["samples"]
        for _ in range(2):
            self.fill(30 << 20)
            (notice,) = self.wait_for_notice(up, True)
            self.assertIn("nearly full", notice)
            self.assertGreater(len(self.get(up, "flamegraph?type=cpu")["strings"]), 1)
            self.make_room()
            self.wait_for_notice(up, False)
            seen = self.wait_for_samples(up, more_than=seen)["samples"]
        self.stop(up)
        self.check_the_day()
        # The spool had room: what came while the store took nothing is in it now.
        (day,) = (self.state / "days").glob("*.sonde")
        self.assertEqual(self.query("SELECT reason FROM drops WHERE reason = 'spool_failed'", day), [])

    def test_a_disk_that_fills_up_altogether_is_got_over(self):
        self.burn(300)
        up = self.start("--disk-reserve-mb", "0")
        seen = self.wait_for_samples(up)["samples"]
        for leave_bytes in (0, 64 << 10, 256 << 10, 1 << 20):
            self.fill(leave_bytes)
            try:
                (notice,) = self.wait_for_notice(up, True)
                self.assertIn("no space", notice.lower())
            except urllib.error.HTTPError as error:  # the store may be closed, which is said
                self.assertEqual(error.code, 503)
            time.sleep(2)
            self.assertIsNone(up.poll(), "it goes on")
            self.make_room()
            self.wait_for_notice(up, False)
            seen = self.wait_for_samples(up, more_than=seen)["samples"]
        self.stop(up)
        self.check_the_day()


if __name__ == "__main__":
    unittest.main()
