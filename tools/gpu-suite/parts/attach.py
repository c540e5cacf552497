# SPDX-License-Identifier: Apache-2.0
"""The cost of attaching to a running program."""

import subprocess
import sys
import time

from suite import Failed, Result, WORKLOADS, last_json

TITLE = "Late attach"
NEEDS = "a CUDA device, and the right to load eBPF programs"

SECONDS = 16
ATTACH_AFTER_S = 6  # the program is past its start
LISTEN_S = 5


def run(suite):
    suite.needs_gpu()
    result = Result()
    findings = suite.doctor()
    if not findings["bpf"]["works"]:
        raise Failed(f"attaching to a running program needs eBPF: {findings['bpf']['why']}")
    import os
    child = subprocess.Popen([sys.executable, str(WORKLOADS / "steady.py"), str(SECONDS)], stdout=subprocess.PIPE,
                             env={**os.environ, **suite.injected()}, text=True)
    try:
        time.sleep(ATTACH_AFTER_S)
        path = suite.work / "attach.sonde"
        attached_s = time.monotonic()
        suite.run(suite.gpusonde, "record", "-o", path, "-p", child.pid, "--duration", LISTEN_S)
        output, _ = child.communicate(timeout=suite.timeout(60))
    finally:
        child.kill()
    steps = last_json(output)["steps"]  # [(monotonic seconds at its start, milliseconds)…]
    before = [ms for start, ms in steps if start < attached_s - 0.5]
    during = [ms for start, ms in steps if attached_s <= start < attached_s + LISTEN_S]
    after = [ms for start, ms in steps if start > attached_s + LISTEN_S + 2]
    if not before or not during or not after:
        raise Failed(f"steps before, while and after: {len(before)}, {len(during)}, {len(after)}")
    done = subprocess.run([str(suite.gpusonde), "query", str(path), "SELECT count(*) AS n FROM kernels"],
                          capture_output=True, text=True, check=False)
    kernels = int(done.stdout.split()[-1]) if done.returncode == 0 else 0
    result.fact("a running program can be profiled", kernels > 0, f"{kernels} kernels")
    result.fact("enabling kernel records after modules were loaded costs seconds", max(during) > 1000,
                f"the longest step while attaching took {max(during):.1f} ms, before {max(before):.1f} ms")
    middles = [sorted(values)[len(values) // 2] for values in (before, after)]
    result.row("median step after gpusonde has left", 100 * (middles[1] / middles[0] - 1), "% longer", at_most=0.5)
    for name, values in (("before", before), ("while attached", during), ("after", after)):
        middle = sorted(values)[len(values) // 2]
        result.row(f"median step {name}", middle, "ms")
        result.row(f"longest step {name}", max(values), "ms")
    return result
