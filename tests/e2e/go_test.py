# SPDX-License-Identifier: Apache-2.0
"""Go programs: stacks are complete across the runtime's own stacks, also in stripped programs."""

import collections
import os
import shutil
import subprocess
import tempfile
import unittest

import program

# Allocates and collects, sleeps and wakes, grows stacks, reads the clock, and calls C if available.
SOURCE = """
package main

import (
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"time"
)

//go:noinline
func deep(n int) int {
	var room [256]int
	for i := range room {
		room[i] = n * i
	}
	if n == 0 {
		return room[1]
	}
	return deep(n-1) + room[n%256]
}

//go:noinline
func allocate() int {
	sum := 0
	for i := 0; i < 2000; i++ {
		sum += len(strings.Repeat(strconv.Itoa(i), 9))
	}
	return sum
}

//go:noinline
func clock() (n int) {
	for end := time.Now().Add(time.Millisecond); time.Now().Before(end); n++ {
	}
	return n
}

func shop(end time.Time, all *sync.WaitGroup) {
	defer all.Done()
	for time.Now().Before(end) {
		allocate()
		clock()
		visit()
		grown := make(chan int)
		go func() { grown <- deep(60) }()
		<-grown
		runtime.Gosched()
	}
}

func main() {
	milliseconds, _ := strconv.Atoi(os.Args[1])
	end := time.Now().Add(time.Duration(milliseconds) * time.Millisecond)
	var all sync.WaitGroup
	for i := 0; i < 2; i++ {
		all.Add(1)
		go shop(end, &all)
	}
	all.Wait()
}
"""
WITHOUT_C = "package main\nfunc visit() {}\n"
WITH_C = """
package main

// static unsigned in_c(unsigned n) { for (volatile unsigned i = 0; i < 300000; ++i) n += i; return n; }
import "C"

func visit() { C.in_c(1) }
"""

STARTS = ("runtime.goexit", "runtime.mstart", "runtime.rt0_go", "_start", "clone3", "__clone3", "clone", "__GI___clone3")


@unittest.skipUnless(shutil.which("go"), "the go command is not installed")
class Go(program.TestCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.cache = cls.enterClassContext(tempfile.TemporaryDirectory(prefix="gpusonde-go-"))

    def build(self, *flags, visit=WITHOUT_C):
        (self.folder / "shop.go").write_text(SOURCE)
        (self.folder / "visit.go").write_text(visit)
        subprocess.run(["go", "build", *flags, "-o", "shop", "shop.go", "visit.go"], check=True, cwd=self.folder,
                       env=dict(os.environ, GO111MODULE="off", GOFLAGS="", GOCACHE=self.cache))

    def stacks(self):
        done = self.record(self.folder / "shop", "3000", options=("--hz", "499"))
        self.assertEqual(done.returncode, 0, done.stderr)
        stacks = [([frame.removesuffix(".abi0") for frame in frames[1:]], n) for frames, n in self.folded()]
        return [(frames, n) for frames, n in stacks if any(frame.startswith(("main.", "runtime.")) for frame in frames)]

    def check_whole(self, stacks):
        total = sum(n for _, n in stacks)
        self.assertGreater(total, 300)
        broken = collections.Counter()
        for frames, n in stacks:
            if frames[0] not in STARTS:
                broken[" > ".join(frames[:4])] += n
        # In the first fraction of a second stacks are unwound by frame pointers and may be incomplete.
        self.assertLess(broken.total() / total, 0.1, broken.most_common(10))
        # A stack that was switched continues on the other stack.
        lent = [frames for frames, _ in stacks if "runtime.systemstack" in frames]
        self.assertTrue(lent)
        unknown = collections.Counter(" > ".join(frames[:frames.index("runtime.systemstack") + 1]) for frames in lent
                                      if frames[0] not in STARTS)
        self.assertLess(unknown.total() / len(lent), 0.1, unknown.most_common(10))

    def check_calls(self, stacks):
        """Adjacent frames call one another."""
        callers = collections.Counter()
        for frames, n in stacks:
            if "main.allocate" in frames and "runtime.systemstack" in frames:
                callers[frames.index("main.allocate") < frames.index("runtime.systemstack")] += n
        self.assertEqual(callers[False], 0)
        self.assertTrue(any(frames[:3] == ["runtime.goexit", "main.main.func1", "main.shop"] for frames, _ in stacks))
        self.assertTrue(any("main.clock" in frames and frames[0] == "runtime.goexit" for frames, _ in stacks))

    def test_stacks_are_whole(self):
        self.build()
        stacks = self.stacks()
        self.check_whole(stacks)
        self.check_calls(stacks)

    def test_stacks_of_a_stripped_program_are_whole_and_named(self):
        self.build("-ldflags=-s -w")
        stacks = self.stacks()
        self.check_whole(stacks)
        self.check_calls(stacks)

    @unittest.skipUnless(shutil.which("gcc"), "gcc is not installed, so Go can't call C")
    def test_c_functions_have_their_go_callers(self):
        self.build(visit=WITH_C)
        stacks = self.stacks()
        self.check_whole(stacks)
        in_c = [(frames, n) for frames, n in stacks if "in_c" in " ".join(frames)]
        total = sum(n for _, n in in_c)
        self.assertGreater(total, 30)
        called = sum(n for frames, n in in_c
                     if frames[:4] == ["runtime.goexit", "main.main.func1", "main.shop", "main.visit"])
        self.assertGreater(called / total, 0.9, in_c[:3])


if __name__ == "__main__":
    unittest.main()
