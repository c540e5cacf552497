# SPDX-License-Identifier: Apache-2.0
"""`gpusonde top` beside a real `gpusonde up`, on the simulated GPU, in a pipe and in a pseudo-terminal."""

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time
import unittest
import urllib.request

import program

OWN_MACHINE = "up profiles every GPU program of the machine"
CPUS = 0.5
LIBRARY = program.BUILD / "lib/libgpusonde-inject.so"
ENTER, LEAVE = b"\x1b[?1049h\x1b[?25l", b"\x1b[?25h\x1b[?1049l"
GPU_LINE = re.compile(r"^0 simulated +(\d+) % .* \d+\.\d/\d+\.\d GiB", re.MULTILINE)


class Terminal:
    """`gpusonde top` in a pseudo-terminal of this size."""

    def __init__(self, test, columns, rows, *options):
        self.test, self.output = test, b""
        self.master, self.slave = pty.openpty()
        test.addCleanup(os.close, self.master)
        test.addCleanup(os.close, self.slave)
        self.resize(columns, rows)
        self.before = termios.tcgetattr(self.slave)
        self.process = subprocess.Popen([program.GPUSONDE, "top", "--url", test.url, "--interval", "500ms", *options],
                                        stdin=self.slave, stdout=self.slave, stderr=self.slave, start_new_session=True,
                                        env=dict(os.environ, TERM="xterm-256color"),
                                        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))
        test.addCleanup(self.process.wait)
        test.addCleanup(self.process.kill)

    def resize(self, columns, rows):
        fcntl.ioctl(self.slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def read(self, seconds):
        deadline = time.monotonic() + seconds
        while (left := deadline - time.monotonic()) > 0:
            if select.select([self.master], [], [], left)[0]:
                self.output += os.read(self.master, 65536)

    def screens(self):
        """What was drawn as a whole, a list of lines each, without colours."""
        text = self.output.split(ENTER, 1)[-1].split(LEAVE)[0].decode("utf-8", "replace")
        drawn = [part.split("\x1b[J")[0] for part in text.split("\x1b[H")[1:]]
        # The terminal adds a carriage return to each line feed.
        screens = [re.split(r"\r*\n", re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", screen)) for screen in drawn]
        return [lines for lines in screens if lines[-1].startswith("q quit")]

    def await_screen(self, holds, what):
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            self.read(0.3)
            if (screens := self.screens()) and holds(screens[-1]):
                return screens[-1]
        return self.test.fail(f"{what}: {self.screens()[-1:]}")

    def end(self, how):
        """Ends it, and checks that the terminal is as before."""
        how()
        self.process.wait(timeout=10)
        self.read(0.3)
        self.test.assertEqual(self.process.returncode, 0)
        self.test.assertEqual((self.output.count(ENTER), self.output.count(LEAVE)), (1, 1))
        self.test.assertTrue(self.output.endswith(LEAVE), self.output[-200:])
        self.test.assertEqual(termios.tcgetattr(self.slave), self.before)

    def press(self, key):
        os.write(self.master, key)


class Beside(program.TestCase):
    """`gpusonde top` beside `up` and a worker."""

    up_options = ()
    # Like a rank of a recorded program, so that no governor ends its sessions.
    worker_variables = {"GPUSONDE_INJECT_SOCKET": "99:1"}

    def setUp(self):
        super().setUp()
        environment = self.simulated_machine()
        self.up = self.start(program.GPUSONDE, "up", "--state", self.folder / "state", "--listen", "127.0.0.1:0",
                             "--no-open", *self.up_options, environment=environment)
        self.url = next(found.group(1) for line in self.up.stdout if (found := re.search(r"UI is at (http://\S+[0-9])/", line)))
        injected = dict(environment, CUDA_INJECTION64_PATH=str(LIBRARY), **self.worker_variables)
        self.worker = self.start(program.BUILD / "bin/hpc", "--seconds", "300", environment=injected)

    def start(self, *command, environment):
        process = subprocess.Popen([str(part) for part in command], env=environment, stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        return process

    def once(self, *options):
        done = program.run("top", "--url", self.url, *options)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return done.stdout

    def await_work(self):
        """A table of `top --once` in which the worker keeps the GPU busy."""
        line = re.compile(rf"^ *{self.worker.pid}  0 +([1-9]\d*) % +(\d+) .*hpc --seconds 300$", re.MULTILINE)
        deadline = time.monotonic() + 90
        while time.monotonic() < deadline:
            text = self.once()
            # GPM has values from its second sample on.
            if (found := line.search(text)) and (busy := GPU_LINE.search(text)) and int(busy.group(1)) > 0 and "TENSOR" in text:
                return text, int(found.group(1)), int(found.group(2))
            time.sleep(0.5)
        return self.fail(text)


class Top(Beside):
    def test_a_pipe_gets_one_plain_table(self):
        text, busy, kernels = self.await_work()
        self.assertNotIn("\x1b", text)
        self.assertRegex(text, r"^gpusonde top · this machine · \d\d:\d\d:\d\d UTC · ")
        self.assertRegex(text, r"\d+/\d+ W +\d+ °C +\d+ MHz")
        self.assertIn("imulated", text)
        self.assertLessEqual(busy, 100)
        self.assertGreater(kernels, 10)
        self.assertNotIn("q quit", text)
        self.assertEqual(self.once("--once").splitlines()[1].split(), text.splitlines()[1].split(), "the same columns")

    def test_screens_of_80_and_60_columns_and_a_resize(self):
        self.await_work()
        terminal = Terminal(self, 80, 24)
        screen = terminal.await_screen(lambda lines: any(f"{self.worker.pid} 0 " in line for line in lines), "the worker's line")
        self.assertRegex(screen[1], r"^GPU +BUSY +SM +TENSOR 5 MIN +MEMORY +POWER +TEMP +CLOCK")
        self.assertIn("COMMAND", "\n".join(screen))
        self.assertEqual(screen[23], "q quit · b busy (sorted) · m memory · k kernels · c cpu")
        for drawn in terminal.screens():
            self.assertEqual(len(drawn), 24)
            self.assertLessEqual(max(map(len, drawn)), 80)
        first = screen[0]
        terminal.await_screen(lambda lines: lines[0] != first and lines[0].startswith("gpusonde top"), "it refreshes")
        terminal.press(b"k")
        terminal.await_screen(lambda lines: "k kernels (sorted)" in lines[-1], "another order")
        drawn = len(terminal.screens())
        terminal.resize(60, 20)
        narrow = terminal.await_screen(lambda lines: len(lines) == 20 and any(str(self.worker.pid) in line for line in lines),
                                       "the new size")
        self.assertGreater(len(terminal.screens()), drawn)
        self.assertLessEqual(max(map(len, narrow)), 60)
        self.assertRegex("\n".join(narrow), GPU_LINE)
        self.assertNotIn("CLOCK", narrow[1])
        terminal.end(lambda: terminal.press(b"q"))

    def test_ctrl_c_and_a_signal_restore_the_terminal(self):
        for how in (lambda terminal: terminal.press(b"\x03"), lambda terminal: terminal.process.send_signal(signal.SIGTERM)):
            terminal = Terminal(self, 80, 24)
            terminal.await_screen(lambda lines: lines[0].startswith("gpusonde top"), "a screen")
            terminal.end(lambda: how(terminal))  # pylint: disable=cell-var-from-loop

    def test_a_server_that_goes_leaves_the_last_table_and_says_why(self):
        terminal = Terminal(self, 80, 24)
        terminal.await_screen(lambda lines: lines[0].startswith("gpusonde top"), "a screen")
        self.up.kill()
        screen = terminal.await_screen(lambda lines: "can't reach gpusonde" in lines[1], "the reason")
        self.assertTrue(screen[0].startswith("gpusonde top · this machine"))
        terminal.end(lambda: terminal.press(b"q"))


class Overhead(Beside):
    """What is spent of which budget, where a person looks for it."""

    up_options = ("--overhead", "2%")
    worker_variables = {}

    def test_a_process_shows_what_is_spent_of_its_budget(self):
        self.await_work()
        # Until `up` has told it, a process counts with the default budget.
        deadline = time.monotonic() + 60
        while "/2 %" not in (text := self.once()) and time.monotonic() < deadline:
            time.sleep(0.5)
        self.assertRegex(text, rf"(?m)^ *{self.worker.pid} .* \d+\.\d\d/2 % +\S.* \S*hpc --seconds 300$")
        with urllib.request.urlopen(f"{self.url}/metrics", timeout=30) as answer:
            metrics = answer.read().decode()
        of_worker = rf'{{pid="{self.worker.pid}",command="hpc"[^}}]*}}'
        self.assertRegex(metrics, rf"(?m)^gpusonde_process_listening_budget_ratio{of_worker} 0\.02$")
        self.assertRegex(metrics, rf"(?m)^gpusonde_process_listening_spent_ratio{of_worker} 0\.0[01]\d*")


if __name__ == "__main__":
    unittest.main()
