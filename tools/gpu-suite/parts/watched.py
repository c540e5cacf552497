# SPDX-License-Identifier: Apache-2.0
"""`gpusonde up` beside a PyTorch program: what it costs the machine, and whether it names a disturbance."""

import json
import os
import subprocess
import sys
import time

from suite import Failed, Result, WORKLOADS, all_json, median, spread

TITLE = "A program under gpusonde up"
NEEDS = "PyTorch with CUDA, and the right to load eBPF programs"

CPU = 2  # the program's, which another program shares for a while
ALONE_S, WATCHED_S, DISTURBED_S, AFTER_S = 10, 30, 10, 6
RIVAL = "while True: pass"
MARGIN_NS = 100_000_000  # attaching and leaving


def cpu_seconds(pid):
    """CPU time of a process and its ended children."""
    with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return sum(int(ticks) for ticks in fields[11:15]) / os.sysconf("SC_CLK_TCK")


def run(suite):
    suite.needs_python("torch")
    suite.needs_gpu()
    suite.needs_a_real_gpu("PyTorch's kernels do not run")
    if not (bpf := suite.doctor()["bpf"])["works"]:
        raise Failed(f"gpusonde up needs eBPF: {bpf['why']}")
    result = Result()
    state = suite.work / "state"
    seconds = ALONE_S + WATCHED_S + DISTURBED_S + AFTER_S
    program = subprocess.Popen([sys.executable, str(WORKLOADS / "torch_steps.py"), str(seconds)], stdout=subprocess.PIPE,
                               text=True, env={**os.environ, **suite.injected()},
                               preexec_fn=lambda: os.sched_setaffinity(0, {CPU}))
    up = rival = None
    try:
        program.stdout.readline()  # it has warmed up
        time.sleep(ALONE_S)
        up_ns = time.time_ns()
        up = subprocess.Popen([str(suite.gpusonde), "up", "--state", str(state), "--no-open", "--listen", "127.0.0.1:0"],
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(WATCHED_S / 3)
        used, since = cpu_seconds(up.pid), time.monotonic()
        time.sleep(2 * WATCHED_S / 3)
        share = 100 * (cpu_seconds(up.pid) - used) / (time.monotonic() - since) / os.cpu_count()
        rival_ns = time.time_ns()
        rival = subprocess.Popen([sys.executable, "-c", RIVAL], preexec_fn=lambda: os.sched_setaffinity(0, {CPU}))
        time.sleep(DISTURBED_S)
        rival.kill()
        output, _ = program.communicate(timeout=suite.timeout(60))
        up.terminate()
        up.wait(suite.timeout(30))
    finally:
        for child in (program, up, rival):
            if child is not None and child.poll() is None:
                child.kill()
    (said,) = all_json(output)
    spans = {"alone": (0, up_ns), "watched": (up_ns + WATCHED_S * 10**9 // 3, rival_ns),
             "disturbed": (rival_ns, rival_ns + DISTURBED_S * 10**9)}
    steps = {way: [ms for start, ms in said["steps"] if begin <= start < end] for way, (begin, end) in spans.items()}
    (day,) = (state / "days").glob("*.sonde")
    windows = active_times(suite, day)
    awake = [ms for start, ms in said["steps"] if any(begin <= start < end for begin, end in windows)
             and start < rival_ns]
    asleep = [ms for start, ms in said["steps"] if windows and windows[0][1] <= start < rival_ns
              and not any(begin - MARGIN_NS <= start < end + MARGIN_NS for begin, end in windows)]
    result.row("median step alone, with the library asleep", median(steps["alone"]), "ms", spread=spread(steps["alone"]))
    result.row("median step when watched", 100 * (median(steps["watched"]) / median(steps["alone"]) - 1), "% longer",
               at_most=0.5)
    result.row("mean step when watched", 100 * (mean(steps["watched"]) / mean(steps["alone"]) - 1), "% longer")
    for name, those in (("between windows", asleep), ("while it is profiled", awake)):
        if those:
            result.row(f"median step {name}", median(those), "ms", spread=spread(those))
    active = sum(max(0, min(end, rival_ns) - max(begin, up_ns)) for begin, end in windows)
    result.row("time profiled", 100 * active / (rival_ns - up_ns), "%")
    result.row("median step beside a busy loop on its CPU", median(steps["disturbed"]), "ms")
    result.row("CPU time of gpusonde up", share, "% of the machine", at_most=0.5)
    kernels = subprocess.run([str(suite.gpusonde), "query", str(day), "SELECT sum(count) FROM kernel_windows"],
                             capture_output=True, text=True, check=False)
    result.notes.append(f"kernels counted: {kernels.stdout.split()[-1] if kernels.returncode == 0 else kernels.stderr}")
    diagnosed = suite.run(suite.gpusonde, "diagnose", day).stdout
    incidents = [line.strip() for line in diagnosed.splitlines() if line.startswith("  ") and "CPU" in line and "→" not in line]
    seen_ns = sum(max(0, min(end, spans["disturbed"][1]) - max(begin, rival_ns)) for begin, end in windows)
    named = any("CPU contention" in line for line in incidents)
    result.fact("the busy loop is named as the cause", named or (None if seen_ns < 3 * 10**9 else False),
                f"profiled for {seen_ns / 1e9:.1f} s of {DISTURBED_S}: {diagnosed[:1500]}")
    return result


def active_times(suite, day):
    """[(begin, end)] in ns of the times in which GPU profiling was active."""
    done = suite.run(suite.gpusonde, "query", day, "SELECT start_ns, coalesce(end_ns, start_ns) AS end_ns FROM gpu_sessions "
                     "ORDER BY start_ns", "--format", "json")
    return [(row["start_ns"], row["end_ns"]) for row in json.loads(done.stdout)]


def mean(values):
    return sum(values) / len(values)
