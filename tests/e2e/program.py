# SPDX-License-Identifier: Apache-2.0
"""The program under test, for the end-to-end tests in this folder."""

import concurrent.futures
import contextlib
import errno
import fcntl
import functools
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
import unittest
import urllib.request
import uuid

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
BUILD = pathlib.Path(os.environ.get("GPUSONDE_BUILD", ROOT / "build/release")).resolve()
GPUSONDE = os.environ.get("GPUSONDE", str(BUILD / "bin/gpusonde"))
HOTPATHS = str(BUILD / "bin/hotpaths")
SIMGPU = BUILD / "bin/simgpu"
PROGRAMS = BUILD / "tests/programs"


# Cached lines of an earlier build would hide failures of this one.
_cache = tempfile.TemporaryDirectory(prefix="gpusonde-cache-")
os.environ["XDG_CACHE_HOME"] = _cache.name


# All that a test starts is killed when its process has ended, however that ended. The guardian outlives a test that
# started this one.
MARK = "GPUSONDE_TEST", uuid.uuid4().hex
_guardian = subprocess.Popen([sys.executable, pathlib.Path(__file__).with_name("guardian.py"), "=".join(MARK)], stdin=subprocess.PIPE,
                             stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
                             env={name: value for name, value in os.environ.items() if name != MARK[0]})
os.environ[MARK[0]] = MARK[1]


def run(*arguments, timeout=120, **options):
    """gpusonde with these arguments; the finished process, its output as text."""
    return subprocess.run([GPUSONDE, *map(str, arguments)], capture_output=True, text=True, timeout=timeout,
                          stdin=subprocess.DEVNULL, check=False, **options)


def new_token(tokens, name, scope):
    """A new token in this file of tokens."""
    done = run("token", "new", "--tokens", tokens, "--name", name, "--scope", scope)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@functools.cache
def can_record():
    return run("doctor", "--format", "json").returncode == 0


@contextlib.contextmanager
def packed_package():
    """The archive of the package (tools/package) of the build under test. The files of a suite share one, which the first makes."""
    with contextlib.ExitStack() as stack:
        given = os.environ.get("GPUSONDE_SUITE_FOLDER")  # tests/python_suite.py
        folder = pathlib.Path(given or stack.enter_context(tempfile.TemporaryDirectory(prefix="gpusonde-package-")))
        archive = folder / "package.tar.gz"
        with (folder / "package.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not archive.exists():
                done = subprocess.run([ROOT / "tools/package", "--build", BUILD, "--output", archive, "--level", "1"],
                                      capture_output=True, text=True, timeout=300, check=False, umask=0o077)
                assert done.returncode == 0, done.stderr
        yield archive


def unpacked_package(folder):
    """The folder of the package (tools/package) of the build under test, unpacked below `folder`."""
    if re.search(r"^GPUSONDE_SANITIZE:\w+=.+", (BUILD / "CMakeCache.txt").read_text(), re.MULTILINE):
        raise unittest.SkipTest("packages are made of builds without sanitizers")
    if not (ROOT / "web/dist/index.html").exists():
        raise unittest.SkipTest("the UI is not built (web/dist)")
    with packed_package() as archive, tarfile.open(archive) as content:
        content.extractall(folder, filter="data")
    (package,) = folder.iterdir()
    return package


def cpu_ticks():
    """(the machine's CPU time so far, the part stolen by the hypervisor), in clock ticks"""
    with open("/proc/stat", encoding="ascii") as file:
        ticks = [int(field) for field in file.readline().split()[1:9]]
    return sum(ticks), ticks[7]


# SQL after SELECT: the Python functions (functions.name) in the stacks that captured what ran in graphs.
GRAPH_CAPTURERS = """
    FROM kernels
    JOIN graph_nodes AS ran ON ran.process = kernels.process AND ran.node = kernels.graph_node
    JOIN graph_nodes AS made ON made.process = ran.process AND made.node = ran.original_node
    JOIN stacks ON stacks.stack = made.stack, unnest(stacks.locations) AS part(location)
    JOIN locations ON locations.location = part.location
    JOIN functions ON functions.function = locations.functions[1]
    WHERE locations.kind = 'python'"""

MAX_STOLEN = 0.01
ATTEMPTS = 3


def stolen_since(before):
    """The part of the CPUs' time that the hypervisor stole since cpu_ticks() returned `before`."""
    now, stolen = cpu_ticks()
    return (stolen - before[1]) / max(1, now - before[0])


def measures(test):
    """Runs a test, or a part of one, that measures time. A failure while the hypervisor stole more than MAX_STOLEN of the
    CPU time proves nothing: the test is repeated, and after ATTEMPTS skipped with that reason."""
    @functools.wraps(test)
    def measured(self, *arguments):
        for _ in range(ATTEMPTS):
            before = cpu_ticks()
            try:
                return test(self, *arguments)
            except self.failureException as failure:
                stolen = max(stolen_since(before), self.stolen_earlier)
                if stolen <= MAX_STOLEN:
                    raise
                void = f"the hypervisor took {100 * stolen:.1f} % of the CPUs' time, and {str(failure).splitlines()[0]}"
                print("void:", void, flush=True)
            self.doCleanups()
            self.setUp()
        return self.skipTest(void)
    return measured


class TestCase(unittest.TestCase):
    """A test with a folder of its own; skipped, with the reason, if recording isn't possible."""

    needs_recording = True

    @classmethod
    def setUpClass(cls):
        if cls.needs_recording and not can_record():
            raise unittest.SkipTest("gpusonde can't record on this machine: see `gpusonde doctor`")

    def setUp(self):
        self.stolen_earlier = 0  # while what the test looks at was recorded, if before it
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="gpusonde-e2e-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.recording = self.folder / "run.sonde"

    def simulated_machine(self, **variables):
        """The environment of programs on a simulated machine that no other test uses, with these variables."""
        done = subprocess.run([SIMGPU, "env"], capture_output=True, text=True, check=True)
        environment = dict(os.environ, LD_LIBRARY_PATH=done.stdout.strip(), SIMGPU_MACHINE=self.folder.name, **variables)
        self.addCleanup(subprocess.run, [SIMGPU, "reset"], env=environment, check=True)
        return environment

    def record(self, *command, options=(), **more):
        return run("record", "-o", self.recording, *options, "--", *command, **more)

    def start_recording(self, environment):
        """Starts a recorder of a program that runs until end_recording() is called."""
        recorder = subprocess.Popen(
            [GPUSONDE, "record", "-o", self.recording, "--", "sh", "-c", f"until [ -e {self.folder}/end ]; do sleep 0.1; done"],
            env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        self.enterContext(recorder)
        self.addCleanup(recorder.kill)
        return recorder

    def end_recording(self, recorder):
        (self.folder / "end").touch()
        _, errors = recorder.communicate(timeout=120)
        self.assertEqual(recorder.returncode, 0, errors)

    def attach(self, pid, *options):
        """Starts to record a process; returns the recorder once it does. What it logs is in the file `log`."""
        with (self.folder / "log").open("w", encoding="utf-8") as log:
            recorder = subprocess.Popen([GPUSONDE, "record", "-o", self.recording, "-p", str(pid), *options],
                                        stderr=log, env=dict(os.environ, GPUSONDE_LOG="info"))
        self.addCleanup(recorder.wait)
        self.addCleanup(recorder.kill)
        deadline = time.monotonic() + 60
        while "recording began" not in self.logged():
            self.assertIsNone(recorder.poll(), self.logged())
            self.assertLess(time.monotonic(), deadline, self.logged())
            time.sleep(0.02)
        return recorder

    def logged(self):
        """What the recorder that attach() started has logged."""
        return (self.folder / "log").read_text(encoding="utf-8")

    def start_neighbour(self, environment):
        """Starts a program that keeps the simulated GPU busy for 90 % of the time until the test ends."""
        neighbour = self.enterContext(subprocess.Popen([SIMGPU, "neighbour", "600", "0.9"], env=environment))
        self.addCleanup(neighbour.kill)

    def query(self, sql, recording=None):
        """The rows of a query as a list of dicts."""
        done = run("query", recording or self.recording, sql, "--format", "json")
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def value(self, sql, recording=None):
        """The single value of a query."""
        (row,) = self.query(sql, recording)
        (value,) = row.values()
        return value

    def await_spooled(self, sql, holds, patience_s=60):
        """Waits until the single value of a query over what the running recorder has written by then is as wanted."""
        copy = self.folder / "so-far.sonde"
        deadline = time.monotonic() + patience_s
        while True:
            value = None
            if os.path.exists(f"{self.recording}.spool"):
                # What is being written may be renamed before it is copied.
                unfinished = shutil.ignore_patterns("*.tmp")
                shutil.copytree(f"{self.recording}.spool", f"{copy}.spool", ignore=unfinished)
            if run("record", "--recover", "-o", copy).returncode == 0:
                value = self.value(sql, copy)
                if holds(value):
                    return
            self.assertLess(time.monotonic(), deadline, f"{sql} is {value}")
            shutil.rmtree(f"{copy}.spool", ignore_errors=True)
            copy.unlink(missing_ok=True)
            time.sleep(0.2)

    def await_frame(self, url, pid, function, sample_type="cpu"):
        """The process of this pid, once its flame graph in this `gpusonde up` has a function whose name contains this."""
        def get(path):
            with urllib.request.urlopen(f"{url}api/v1/{path}", timeout=30) as answer:
                return json.load(answer)

        deadline = time.monotonic() + 120  # the first round compiles the unwind tables of all running programs
        while time.monotonic() < deadline:
            for process in get("processes")["processes"]:
                if process["pid"] == pid and any(function in text for text in get(
                        f"flamegraph?type={sample_type}&process={process['id']}")["strings"]):
                    return process
            time.sleep(0.2)
        return self.fail(f"no {function} in the flame graph of process {pid} after 120 s")

    def folded(self):
        """The recording as (frames root first, samples)."""
        done = run("export", self.recording, "--format", "folded")
        self.assertEqual(done.returncode, 0, done.stderr)
        stacks = []
        for line in done.stdout.splitlines():
            frames, _, count = line.rpartition(" ")
            stacks.append((frames.split(";"), int(count)))
        return stacks


class SharedRecordings(TestCase):
    """Tests that look at the same recordings, each of which is made by the first test that needs it."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.shared = pathlib.Path(tempfile.mkdtemp(prefix="gpusonde-e2e-"))
        cls.addClassCleanup(shutil.rmtree, cls.shared, ignore_errors=True)
        cls.stolen = {}  # by name

    @classmethod
    def record_ahead(cls, commands, *options):
        """Makes the recordings of these names, of {name: command}, as many at a time as there are CPUs, for commands that use one.
        One that fails is left to recorded()."""
        before = cpu_ticks()
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            made = {name: pool.submit(run, "record", "-o", cls.shared / f"{name}.sonde", *options, "--", *command)
                    for name, command in commands.items()}
        stolen = stolen_since(before)
        cls.stolen |= {name: stolen for name, done in made.items() if done.result().returncode == 0}

    @contextlib.contextmanager
    def recorded(self, name, make):
        """With the recording of this name, which make() makes. One that fails a test isn't used again."""
        self.recording = self.shared / f"{name}.sonde"
        if name not in self.stolen:
            before = cpu_ticks()
            make()
            self.stolen[name] = stolen_since(before)
        self.stolen_earlier = self.stolen[name]
        try:
            yield
        except self.failureException:
            del self.stolen[name]
            self.recording.unlink()
            raise


@contextlib.contextmanager
def serving(command):
    """The URL of this `gpusonde view` or `up`, while it runs."""
    with subprocess.Popen(list(map(str, command)), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as running:
        try:
            url = next((found.group() for line in running.stdout if (found := re.search(r"http://\S+/", line))), None)
            assert url, "it says where the UI is"
            yield url
        finally:
            running.terminate()


class SmallDisk:
    """A file system of this many MB at `folder` until the test ends; skips the test if mounting isn't allowed."""

    def __init__(self, test, folder, megabytes):
        self.folder = folder
        folder.mkdir()
        done = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={megabytes}m", "tmpfs", folder], capture_output=True,
                              text=True, check=False)
        if done.returncode != 0:
            test.skipTest("mounting is not allowed here: " + done.stderr.strip())
        test.addCleanup(subprocess.run, ["umount", "-l", folder], check=False)

    def fill(self, leave_bytes):
        """Fills it with a file, except for about `leave_bytes`, while others write to it."""
        def wanted():
            space = os.statvfs(self.folder)
            return space.f_bavail * space.f_frsize - leave_bytes

        with (self.folder / "ballast").open("wb") as file:
            while (size := wanted()) > 0:
                try:
                    os.posix_fallocate(file.fileno(), 0, size)
                    return
                except OSError as error:
                    if error.errno != errno.ENOSPC:
                        raise
                    file.truncate(0)

    def make_room(self):
        (self.folder / "ballast").unlink()


class UpTestCase(TestCase):
    """A test of `gpusonde up`, with a state folder of its own."""

    def setUp(self):
        super().setUp()
        self.state = self.folder / "state"

    def start(self, *options):
        """Starts `gpusonde up`; its URL is in .url."""
        up = subprocess.Popen([GPUSONDE, "up", "--state", self.state, "--hz", "99", "--listen", "127.0.0.1:0",
                               "--no-open", *options], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(self.end, up)
        up.url = None
        for line in up.stdout:
            if found := re.search(r"http://\S+/", line):
                up.url = found.group()
                break
        self.assertIsNotNone(up.url, "it says where the UI is")
        return up

    def end(self, up):
        up.kill()
        up.communicate()

    def stop(self, up):
        up.send_signal(signal.SIGINT)
        _, errors = up.communicate(timeout=120)
        self.assertEqual(up.returncode, 0, errors)

    def get(self, up, path):
        with urllib.request.urlopen(up.url + "api/v1/" + path, timeout=30) as answer:
            return json.load(answer)

    def wait_for_samples(self, up, more_than=0, agents=0):
        """The overview once it has more samples than these, and data of at least so many runs of an agent."""
        deadline = time.monotonic() + 120  # the first round compiles the unwind tables of all running programs
        while time.monotonic() < deadline:
            overview = self.get(up, "overview")
            if overview["samples"] > more_than and sum(source["kind"] == "agent" for source in overview["sources"]) >= agents:
                return overview
            time.sleep(0.2)
        self.fail(f"no more than {more_than} samples, or not of {agents} agents, after 120 s: {overview}")

    def burn(self):
        """Starts a program that uses a CPU until the test ends."""
        burner = subprocess.Popen([HOTPATHS, "--threads", "1", "--seconds", "600"], stdout=subprocess.DEVNULL)
        self.addCleanup(burner.wait)
        self.addCleanup(burner.kill)
        return burner
