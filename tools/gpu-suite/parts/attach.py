# SPDX-License-Identifier: Apache-2.0
"""The cost of attaching to a running program, and of having been attached to it: against a twin that is left alone, as
machines have phases in which everything is slower."""

import os
import subprocess
import sys
import time

from suite import Failed, Result, WORKLOADS, last_json, median

TITLE = "Late attach"
NEEDS = "a CUDA device, and the right to load eBPF programs"

START_S = 2  # of the program, not measured
SETTLE_S = 2  # until gpusonde has left
PROFILED_S = 4
ATTACH_AFTER_S, SECONDS = (6, 16), 26
QUICK_ATTACH_AFTER_S, QUICK_SECONDS = (4,), 12


def spans(begin_s, attached_s, seconds):
    """{phase: [(begin, end)…]} in monotonic seconds."""
    ends = [*attached_s[1:], begin_s + seconds]
    return {"before": [(begin_s + START_S, attached_s[0] - 0.5)],
            "while attached": [(begin + 1, begin + PROFILED_S) for begin in attached_s],
            "after": [(begin + PROFILED_S + SETTLE_S, end - 0.5) for begin, end in zip(attached_s, ends)]}


def run(suite):
    suite.needs_gpu()
    result = Result()
    findings = suite.doctor()
    if not findings["bpf"]["works"]:
        raise Failed(f"attaching to a running program needs eBPF: {findings['bpf']['why']}")
    attach_after_s, seconds = (QUICK_ATTACH_AFTER_S, QUICK_SECONDS) if suite.quick else (ATTACH_AFTER_S, SECONDS)
    programs = [subprocess.Popen([sys.executable, str(WORKLOADS / "steady.py"), str(seconds)], stdout=subprocess.PIPE,
                                 env={**os.environ, **suite.injected()}, text=True) for _ in range(2)]
    kernels, attached_s = 0, []
    try:
        begin_s = time.monotonic()
        for after_s in attach_after_s:
            time.sleep(max(0.0, begin_s + after_s - time.monotonic()))
            path = suite.work / f"attach-{after_s}.sonde"
            attached_s.append(time.monotonic())
            suite.run(suite.gpusonde, "record", "-o", path, "-p", programs[0].pid, "--duration", PROFILED_S)
            kernels += suite.kernels_in(path)
        steps = [last_json(program.communicate(timeout=suite.timeout(60))[0])["steps"] for program in programs]
    finally:
        for program in programs:
            program.kill()
    # [(monotonic seconds at its start, milliseconds)…] of the program and of its twin
    found = {phase: [[ms for start, ms in those if any(begin <= start < end for begin, end in times)] for those in steps]
             for phase, times in spans(begin_s, attached_s, seconds).items()}
    if not all(all(both) for both in found.values()):
        raise Failed(f"steps before, while and after: { {phase: [len(one) for one in both] for phase, both in found.items()} }")
    result.fact("a running program can be profiled", kernels > 0, f"{kernels} kernels")
    longest = {phase: max(both[0]) for phase, both in found.items()}
    attaching = max(ms for start, ms in steps[0] if any(begin <= start < begin + PROFILED_S for begin in attached_s))
    result.fact("enabling kernel records after modules were loaded costs seconds", attaching > 1000,
                f"the longest step while attaching took {attaching:.1f} ms, before {longest['before']:.1f} ms")
    ratio = {phase: median(both[0]) / median(both[1]) for phase, both in found.items()}
    result.row("median step after gpusonde has left", 100 * (ratio["after"] / ratio["before"] - 1), "% longer",
               at_most=None if suite.simulated() else 0.5)
    result.row("median step while attached", 100 * (ratio["while attached"] / ratio["before"] - 1), "% longer")
    for phase, (program, twin) in found.items():
        result.row(f"median step {phase}", median(program), "ms")
        result.row(f"median step {phase}, of the twin", median(twin), "ms")
        result.row(f"longest step {phase}", longest[phase], "ms")
    return result
