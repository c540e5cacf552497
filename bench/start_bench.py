#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures the time from the start of `gpusonde up` until its flame graph names a function of a program that was
running before, as a result for bench/run.py.

    bench/start_bench.py [--repetitions N] FILE
"""

import argparse
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUILD = pathlib.Path(os.environ.get("GPUSONDE_BUILD", ROOT / "build/release"))
GPUSONDE = os.environ.get("GPUSONDE", str(BUILD / "bin/gpusonde"))
FUNCTION = "hotpaths::multiply"
GOAL_S = 2
PATIENCE_S = 30


def first_flame_graph_s():
    with tempfile.TemporaryDirectory() as folder:
        started = time.monotonic()
        up = subprocess.Popen([GPUSONDE, "up", "--state", f"{folder}/state", "--listen", "127.0.0.1:0", "--no-open"],
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        try:
            url = next(found.group() for line in up.stdout if (found := re.search(r"http://\S+/", line)))
            while time.monotonic() - started < PATIENCE_S:
                with urllib.request.urlopen(f"{url}api/v1/flamegraph", timeout=PATIENCE_S) as answer:
                    if FUNCTION in answer.read().decode():
                        return time.monotonic() - started
                time.sleep(0.02)
            raise RuntimeError(f"no {FUNCTION} in the flame graph after {PATIENCE_S} s")
        finally:
            up.kill()
            up.communicate()


def main():
    parser = argparse.ArgumentParser(description="Measure the time to the first flame graph.")
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("file", type=pathlib.Path)
    arguments = parser.parse_args()
    busy = subprocess.Popen([str(BUILD / "bin/hotpaths"), "--seconds", "600"], stdout=subprocess.DEVNULL)
    try:
        times = [first_flame_graph_s() for _ in range(arguments.repetitions)]
    except (OSError, RuntimeError, StopIteration) as error:
        sys.exit(f"start_bench: {error}")
    finally:
        busy.kill()
        busy.wait()
    median = statistics.median(times)
    arguments.file.write_text(json.dumps({"rows": [{
        "name": "from the start of `gpusonde up` at 19 Hz to a flame graph with a program's functions", "value": median,
        "unit": "s", "spread": f"{min(times):.2f}-{max(times):.2f}", "goal": f"≤ {GOAL_S} s", "met": median <= GOAL_S}]},
        ensure_ascii=False))


if __name__ == "__main__":
    main()
