# SPDX-License-Identifier: Apache-2.0
"""`gpusonde up`: continuous profiling, whose acknowledged data survives."""

import unittest

import program

OWN_MACHINE = "it samples the whole machine"
CPUS = 0.5
TAKES_S = 29


class Up(program.UpTestCase):
    def test_the_whole_machine_is_sampled_while_it_is_asked(self):
        burner = self.burn()
        up = self.start()
        first = self.wait_for_samples(up)
        self.assertTrue(first["live"])
        self.assertEqual(first["mode"], "up")
        self.wait_for_samples(up, more_than=first["samples"])
        self.assertEqual(self.await_frame(up.url, burner.pid, "::decode(")["name"], "hotpaths")
        self.stop(up)

    def test_a_stopped_days_file_is_a_recording(self):
        self.burn()
        up = self.start()
        self.wait_for_samples(up)
        self.stop(up)
        (day,) = (self.state / "days").glob("*.sonde")
        self.assertGreater(self.value("SELECT count(*) FROM samples", day), 0)
        self.assertEqual(self.value("SELECT count(*) FROM samples ANTI JOIN stacks USING (stack)", day), 0)
        self.assertEqual(self.value("SELECT count(*) FROM samples ANTI JOIN processes USING (process)", day), 0)

    def test_killed_repeatedly_it_keeps_what_it_had_acknowledged(self):
        self.burn()
        acknowledged = 0
        for run in range(1, 6):
            up = self.start()
            # Data of its own, too, not only what the one before it had left in the spool.
            acknowledged = self.wait_for_samples(up, more_than=acknowledged, agents=run)["samples"]
            up.kill()
            up.communicate()
        up = self.start()
        self.assertGreaterEqual(self.get(up, "overview")["samples"], acknowledged)
        self.stop(up)
        (day,) = (self.state / "days").glob("*.sonde")
        self.assertEqual(self.value("SELECT count(*) - count(DISTINCT (cpu, time_ns)) FROM samples WHERE state = 'on_cpu'", day), 0,
                         "nothing was added twice")
        self.assertEqual(self.value("SELECT count(*) FROM sources WHERE kind = 'agent'", day), 6)

    def test_a_second_one_on_the_same_state_is_refused(self):
        self.start()
        done = program.run("up", "--state", self.state, "--no-open")
        self.assertEqual(done.returncode, 1)
        self.assertIn(str(self.state), done.stderr)

    def test_a_port_in_use_is_an_error(self):
        up = self.start()
        port = up.url.rsplit(":", 1)[1].strip("/")
        done = program.run("up", "--state", self.folder / "other", "--listen", f"127.0.0.1:{port}", "--no-open")
        self.assertEqual(done.returncode, 1)
        self.assertIn(port, done.stderr)

    def test_a_state_folder_that_cannot_be_made_is_an_error(self):
        done = program.run("up", "--state", "/proc/nothing", "--no-open")
        self.assertEqual(done.returncode, 1)
        self.assertIn("/proc/nothing", done.stderr)

    def test_it_ends_by_itself_after_its_duration(self):
        done = program.run("up", "--state", self.state, "--listen", "127.0.0.1:0", "--no-open", "--duration", "2")
        self.assertEqual(done.returncode, 0, done.stderr)


if __name__ == "__main__":
    unittest.main()
