#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures the cost of an open page for `gpusonde up` with a day of data, as a result for bench/run.py.

    bench/page_bench.py [--build FOLDER] [--hours H] [--rate N] [--seconds S] [--repetitions N] [--state FOLDER] FILE

bench_fill_days makes the day, with a program that launches kernels continuously. A program on the simulated GPU keeps
launching while `up` runs, alternately without a page and with each of the pages open in Chromium. The cost is the CPU time
of `up` with the page less that without, as a share of one core; it excludes the browser's CPU time, but includes sampling the
browser. Each page is measured after it has been open for a while. `--state` keeps the day's files for another run.
"""

import argparse
import contextlib
import json
import os
import pathlib
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time

from gpu_bench import RATE, children_s
from record_bench import BUILD, cpu_s

ROOT = pathlib.Path(__file__).resolve().parent.parent
MACHINE = f"simgpu-bench-page-{os.getpid()}"
SETTLE_S = 20  # the first queries
GOAL_PERCENT = 2
PAGES = {"the profile page": "", "the incidents page": "?page=incidents", "the profile page of the whole day": "?last=all"}


def fill(build, state, hours, rate):
    """Makes the day unless it exists."""
    days = state / "days"
    if days.exists() and any(days.glob("*.sonde")):
        return
    print(f"  {hours} hours at {rate:,} kernels a second …", file=sys.stderr, flush=True)
    days.mkdir(parents=True, mode=0o700)
    subprocess.run([build / "bin/bench_fill_days", days, str(hours), str(rate)], check=True)


@contextlib.contextmanager
def running_up(build, state):
    """Runs `up` over the day, beside a program that launches: (its process id, its URL)"""
    environment = {**os.environ, "LD_LIBRARY_PATH": str(build / "lib/simgpu"), "SIMGPU_MACHINE": MACHINE,
                   "CUDA_INJECTION64_PATH": str(build / "lib/libgpusonde-inject.so")}
    up = subprocess.Popen([build / "bin/gpusonde", "up", "--state", state, "--listen", "127.0.0.1:0", "--no-open"],
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        url = next((match[0] for line in up.stdout if (match := re.search(r"http://\S+/", line))), None)
        if url is None:
            raise RuntimeError("gpusonde up did not start")
        # It ends by itself after at most ten minutes.
        again_and_again = ["sh", "-c", 'while "$@"; do :; done', "sh"]
        programs = subprocess.Popen([*again_and_again, build / "bin/launch_cost", "--rate", str(RATE), "--depth", "20",
                                     "--seconds", "600"], env=environment, stdout=subprocess.DEVNULL,
                                    start_new_session=True)
        try:
            yield up.pid, url
            if programs.poll() is not None:
                raise RuntimeError("the program that launches kernels ended")
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(programs.pid, signal.SIGKILL)
            programs.wait()
    finally:
        up.terminate()
        up.communicate(timeout=120)


@contextlib.contextmanager
def open_page(url):
    with subprocess.Popen(["node", ROOT / "web/tests/bench/open_page.mjs", url], stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE, text=True) as browser:
        try:
            if browser.stdout.readline() != "open\n":
                raise RuntimeError(f"the page {url} did not open")
            yield
        finally:
            browser.stdin.close()


def percent_of_a_core(pid, seconds):
    def used_s():
        return cpu_s(pid) + children_s(pid)

    before_s, started = used_s(), time.monotonic()
    time.sleep(seconds)
    return 100 * (used_s() - before_s) / (time.monotonic() - started)


def row(name, values, goal=None):
    made = {"name": name, "value": statistics.median(values), "unit": "% of a core"}
    if len(values) > 1:
        made["spread"] = f"{min(values):.2f} to {max(values):.2f}"
    if goal is not None:
        made |= {"goal": f"≤ {goal}", "met": made["value"] <= goal}
    return made


def main():
    parser = argparse.ArgumentParser(description="Measure what an open page costs `gpusonde up`.")
    parser.add_argument("--build", type=pathlib.Path, default=BUILD)
    parser.add_argument("--hours", type=int, default=24)
    parser.add_argument("--rate", type=int, default=100, help="kernels per second of the day")
    parser.add_argument("--seconds", type=float, default=120, help="of each measurement")
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--state", type=pathlib.Path, help="where the day is kept, made if it isn't there")
    parser.add_argument("file", type=pathlib.Path)
    arguments = parser.parse_args()
    build = arguments.build.resolve()
    alone, added = [], {name: [] for name in PAGES}
    try:
        with tempfile.TemporaryDirectory() as folder:
            state = arguments.state or pathlib.Path(folder) / "state"
            fill(build, state, arguments.hours, arguments.rate)
            with running_up(build, state) as (pid, url):
                time.sleep(SETTLE_S)
                for _ in range(arguments.repetitions):
                    without = percent_of_a_core(pid, arguments.seconds)
                    alone.append(without)
                    print(f"  without a page: {without:.2f} %", file=sys.stderr, flush=True)
                    for name, query in PAGES.items():
                        with open_page(url + query):
                            time.sleep(SETTLE_S)
                            added[name].append(percent_of_a_core(pid, arguments.seconds) - without)
                        print(f"  {name}: + {added[name][-1]:.2f} %", file=sys.stderr, flush=True)
    except (OSError, RuntimeError, ValueError, subprocess.SubprocessError) as error:
        sys.exit(f"page_bench: {error}")
    finally:
        for file in pathlib.Path("/dev/shm").glob(f"{MACHINE}.*"):
            file.unlink()
    rows = [row(f"CPU of `up` without a page, at {RATE:,} kernels/s", alone)]
    rows += [row(f"CPU that {name} adds to it", values, GOAL_PERCENT) for name, values in added.items()]
    arguments.file.write_text(json.dumps({"rows": rows}, ensure_ascii=False))


if __name__ == "__main__":
    main()
