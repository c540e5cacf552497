# SPDX-License-Identifier: Apache-2.0
"""Google's pprof, built from Debian's source package, reads our pprof files and agrees with our folded stacks."""

import collections
import gzip
import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest
import urllib.error
import urllib.request

import program

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
BUILD = pathlib.Path(os.environ.get("GPUSONDE_BUILD", ROOT / "build/release"))
GPUSONDE = os.environ.get("GPUSONDE", str(BUILD / "bin/gpusonde"))
GO_SOURCES = pathlib.Path("/usr/share/gocode")
PPROF_SOURCE = "github.com/google/pprof"
CONTROL = re.compile(r"[\x00-\x1f]")
BREAK = "\x01"  # stands for a line break in a name while output is split into lines


def run(*command, **options):
    return subprocess.run(command, check=True, capture_output=True, **options).stdout


def build_pprof():
    """The path of the pprof program; built on first use, without any network."""
    if shutil.which("go") is None or not (GO_SOURCES / "src" / PPROF_SOURCE).exists():
        raise unittest.SkipTest("no Go compiler or no source of pprof; install golang-go and "
                                "golang-github-google-pprof-dev")
    program = BUILD / "tests/pprof"
    if not program.exists():
        environment = dict(os.environ, GO111MODULE="off", GOPATH=str(GO_SOURCES), GOFLAGS="", GOPROXY="off",
                           GOCACHE=str(BUILD / "tests/go-cache"))
        run("go", "build", "-o", program, PPROF_SOURCE, env=environment)
    return program


def folded(recording, *flags):
    """Folded stacks as {frames: value}."""
    text = run(GPUSONDE, "export", recording, "--format", "folded", *flags).decode()
    stacks = {}
    for line in text.splitlines():
        stack, value = line.rsplit(" ", 1)
        stacks[tuple(stack.split(";"))] = int(value)
    return stacks


def as_folded(name):
    """A name printed by pprof, as folded stacks write it."""
    name = name.removesuffix(" (inline)").replace(";", ":").replace(BREAK, "\n")
    return CONTROL.sub(lambda control: f"\\x{ord(control[0]):02x}", name)


def as_pprof(frame):
    """A frame without a symbol, as pprof prints it: without the address."""
    return re.sub(r"^\[(.*)\+0x[0-9a-f]+\]$", r"[\1]", frame).replace("[unknown]", "<unknown>")


def traces(program, profile):
    """What `pprof -traces` prints: {(pid, tid, root, …, leaf): samples}."""
    text = run(program, "-traces", "-sample_index=samples", profile).decode()
    stacks = collections.Counter()
    for block in re.split(r"^-+\+-+\n", text, flags=re.MULTILINE)[1:]:
        labels, frames, value = {}, [], None
        # A name with a line break continues at the beginning of the next line.
        for line in re.sub(r"\n(?=[^ \n])", BREAK, block).splitlines():
            label = re.match(r" +(process|thread|pid|tid):  (.*)$", line)
            first = re.match(r" +(\d+)   (.*)$", line)
            if label and value is None:
                labels[label[1]] = label[2]
            elif first and value is None:
                value, frames = int(first[1]), [first[2]]
            elif line.strip():
                frames.append(line.strip())
        if value is not None:
            names = [as_folded(frame) for frame in reversed(frames)]
            stacks[(int(labels["pid"]), int(labels["tid"]), *names)] += value
    return stacks


def folded_by_thread(recording):
    """The same from our folded stacks."""
    stacks = collections.Counter()
    for (process, thread, *frames), value in folded(recording, "--per-thread").items():
        pid = int(re.search(r" \(pid (\d+)\)$", process)[1])
        tid = int(re.search(r" \(tid (\d+)\)$", thread)[1])
        stacks[(pid, tid, *map(as_pprof, frames))] += value
    return stacks


def top(program, profile):
    """The flat column of `pprof -top`: {name: microseconds}."""
    text = run(program, "-top", "-sample_index=cpu", "-unit=us", "-nodecount=100000", profile).decode()
    flat = collections.Counter()
    for line in re.sub(r"\n(?=[^ \n])", BREAK, text.split("cum%\n", 1)[1]).splitlines():
        value, name = re.match(r" +(\S+) +\S+ +\S+ +\S+ +\S+  (.*)$", line).groups()
        if value != "0":
            flat[as_folded(name)] += round(float(value.removesuffix("us")))
    return flat


class Pprof(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.pprof = build_pprof()
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.recording = os.path.join(folder.name, "a.sonde")
        cls.profile = os.path.join(folder.name, "a.pb.gz")
        run(BUILD / "tests/sample_recording", cls.recording)
        run(GPUSONDE, "export", cls.recording, "--format", "pprof")

    def test_traces_are_our_folded_stacks_of_every_thread(self):
        self.assertEqual(traces(self.pprof, self.profile), folded_by_thread(self.recording))

    def test_top_is_the_self_time_of_our_folded_stacks(self):
        self_us = collections.Counter()
        for frames, value in folded(self.recording, "--value", "us").items():
            self_us[as_pprof(frames[-1])] += value
        self.assertEqual(top(self.pprof, self.profile), self_us)

    def test_head_names_the_program_its_build_and_the_time(self):
        text = run(self.pprof, "-top", self.profile).decode()
        for line in ("File: train", "Build ID: ab12cd34", "Type: cpu", "Duration: 2s"):
            self.assertIn(line, text)

    def test_threads_can_be_selected_by_label(self):
        text = run(self.pprof, "-top", "-tagfocus=thread=loader", self.profile).decode()
        self.assertIn("300ms, 50.00% of 600ms total", text)

    def test_go_reads_the_profile_of_a_selection_by_http(self):
        with program.serving([GPUSONDE, "view", self.recording, "--no-open", "--listen", "127.0.0.1:0"]) as url:
            served = f"{url}api/v1/profile.pb.gz"
            with urllib.request.urlopen(served, timeout=30) as answer:
                self.assertEqual(answer.headers["Content-Type"], "application/octet-stream")
                body = answer.read()
            copy = self.profile + ".served.pb.gz"
            with open(copy, "wb") as file:
                file.write(body)
            self.assertEqual(traces(self.pprof, copy), folded_by_thread(self.recording))
            environment = dict(os.environ, PPROF_TMPDIR=os.path.dirname(self.profile))
            text = run("go", "tool", "pprof", "-top", served, env=environment).decode()
            self.assertIn("Type: cpu", text)
            self.assertIn("600ms total", text)
            with self.assertRaises(urllib.error.HTTPError) as refused:
                urllib.request.urlopen(served + "?roots=1", timeout=30)
            self.assertEqual(refused.exception.code, 400)

    def test_go_reads_gpu_time_and_idle_moments_with_the_parameters_of_the_flame_graph(self):
        recording = self.recording.replace("a.sonde", "gpu.sonde")
        run(BUILD / "tests/sample_recording", recording, "--gpu")
        environment = dict(os.environ, PPROF_TMPDIR=os.path.dirname(self.profile))
        with program.serving([GPUSONDE, "view", recording, "--no-open", "--listen", "127.0.0.1:0"]) as url:
            for query, kind in ("type=gpu", "gpu_kernel_time"), ("type=cpu&while_gpu_idle=1", "cpu"):
                with urllib.request.urlopen(f"{url}api/v1/flamegraph?{query}", timeout=30) as answer:
                    drawn_ns = json.load(answer)["total"]
                text = run("go", "tool", "pprof", "-top", "-unit=ns", f"{url}api/v1/profile.pb.gz?{query}", env=environment).decode()
                self.assertIn(f"Type: {kind}", text)
                self.assertIn(f"of {drawn_ns}ns total", text)
                self.assertGreater(drawn_ns, 0)

    def test_every_field_that_we_write_is_in_our_declaration(self):
        with gzip.open(self.profile) as file:
            text = run("protoc", "--decode=gpusonde.exporters.pprof.Profile", f"--proto_path={ROOT}/src/exporters/proto",
                       "pprof.proto", input=file.read()).decode()
        self.assertIn("time_nanos: 1763687000000000000", text)
        self.assertIsNone(re.search(r"^\s*\d+[:\s]", text, re.MULTILINE), "a field without a name")


if __name__ == "__main__":
    unittest.main()
