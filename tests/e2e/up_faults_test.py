# SPDX-License-Identifier: Apache-2.0
"""`gpusonde up` on a disk that fills up and empties: it shows a notice, answers queries, recovers, and duplicates nothing."""

import time
import unittest
import urllib.error

import program

OWN_MACHINE = "it samples the whole machine"
TAKES_S = 25
DISK_MB = 96


class FullDisk(program.UpTestCase):
    def setUp(self):
        super().setUp()
        self.disk = program.SmallDisk(self, self.folder / "disk", DISK_MB)
        self.state = self.disk.folder / "state"

    def wait_for_notice(self, up, wanted):
        """Waits until the page has a notice, or none, and returns its notices. A query makes the store commit buffered frames."""
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
        self.burn()
        up = self.start("--disk-reserve-mb", "40")
        seen = self.wait_for_samples(up)["samples"]
        for _ in range(2):
            self.disk.fill(30 << 20)
            (notice,) = self.wait_for_notice(up, True)
            self.assertIn("nearly full", notice)
            self.assertGreater(len(self.get(up, "flamegraph?type=cpu")["strings"]), 1)
            self.disk.make_room()
            self.wait_for_notice(up, False)
            seen = self.wait_for_samples(up, more_than=seen)["samples"]
        self.stop(up)
        self.check_the_day()
        # The spool had space: data received while the store was stopped is stored now.
        (day,) = (self.state / "days").glob("*.sonde")
        self.assertEqual(self.query("SELECT reason FROM drops WHERE reason = 'spool_failed'", day), [])

    def test_it_recovers_from_a_full_disk(self):
        self.burn()
        up = self.start("--disk-reserve-mb", "0")
        seen = self.wait_for_samples(up)["samples"]
        for leave_bytes in (0, 64 << 10, 256 << 10, 1 << 20):
            self.disk.fill(leave_bytes)
            try:
                (notice,) = self.wait_for_notice(up, True)
                self.assertIn("no space", notice.lower())
            except urllib.error.HTTPError as error:  # the store may be closed, which a notice says
                self.assertEqual(error.code, 503)
            time.sleep(2)
            self.assertIsNone(up.poll(), "it goes on")
            self.disk.make_room()
            self.wait_for_notice(up, False)
            seen = self.wait_for_samples(up, more_than=seen)["samples"]
        self.stop(up)
        self.check_the_day()


if __name__ == "__main__":
    unittest.main()
