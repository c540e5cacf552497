#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures `gpusonde serve` with the agents of many machines, as a result for bench/run.py.

    bench/serve_bench.py [--hosts N] [--hours H] [--live S] [--limit S] [--cores N] FILE

bench_serve_feed sends what N simulated agents do, each 2,000 distinct stacks in every 10 s. Their clocks begin H hours ago: the
server first catches up, as fast as it can, then works in real time for `--live` seconds. `--limit` ends catching up where it is.
Meanwhile the pages' questions are asked one after the other and the server's memory, files and CPU time are read. In the end the
server is stopped and every row that was sent is counted in the hosts' files. The server has `--cores` CPUs; the feed and the
questions share them, and their CPU time isn't in the figures.
"""

import argparse
import json
import os
import pathlib
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "bench/diagnose"))

import measures  # noqa: E402

BUILD = pathlib.Path(os.environ.get("GPUSONDE_BUILD", ROOT / "build/release"))
GPUSONDE = os.environ.get("GPUSONDE", str(BUILD / "bin/gpusonde"))
SAMPLE_EVERY_S = 2
ASK_EVERY_S = 1
HOUR_US = 3600 * 1_000_000
FACTS = ("samples", "kernel_packs", "memcpys", "api_calls", "metrics", "steps", "incidents")
TICKS = os.sysconf("SC_CLK_TCK")


class Server:
    """`gpusonde serve` over a folder of its own."""

    def __init__(self, folder, cores, memory_mb):
        self.folder = folder
        tokens = folder / "tokens"
        (folder / "token").write_text(self.token(tokens, "nodes", "ingest"))
        self.read = {"Authorization": "Bearer " + self.token(tokens, "ada", "read")}
        available = sorted(os.sched_getaffinity(0))
        self.errors = (folder / "errors").open("w+", encoding="utf-8")
        self.process = subprocess.Popen(
            [GPUSONDE, "serve", "--state", folder / "state", "--tokens", tokens, "--listen", "127.0.0.1:0",
             "--pages-listen", "127.0.0.1:0", *(["--memory-mb", str(memory_mb)] if memory_mb else [])], stdout=subprocess.PIPE, stderr=self.errors, text=True,
            preexec_fn=lambda: os.sched_setaffinity(0, available[:cores]))
        found = [re.search(r"http://\S+", self.process.stdout.readline()) for _ in range(2)]
        if None in found:
            raise RuntimeError(f"gpusonde serve did not start: {(folder / 'errors').read_text()}")
        self.agents, self.pages = (match[0].rstrip(",/") for match in found)

    @staticmethod
    def token(tokens, name, scope):
        return subprocess.run([GPUSONDE, "token", "new", "--tokens", tokens, "--name", name, "--scope", scope],
                              check=True, stdout=subprocess.PIPE, text=True).stdout.strip()

    def use(self):
        """(CPU seconds, resident bytes, threads, open files)"""
        folder = pathlib.Path(f"/proc/{self.process.pid}")
        fields = (folder / "stat").read_text().rsplit(")", 1)[1].split()
        status = (folder / "status").read_text()
        return ((int(fields[11]) + int(fields[12])) / TICKS, 1024 * int(re.search(r"VmRSS:\s+(\d+)", status)[1]),
                int(fields[17]), len(list((folder / "fd").iterdir())))

    def ask(self, path):
        """Milliseconds that an answer took."""
        begin = time.monotonic()
        request = urllib.request.Request(f"{self.pages}/api/v1/{path}", headers=self.read)
        with urllib.request.urlopen(request, timeout=300) as answer:
            answer.read()
        return 1000 * (time.monotonic() - begin)

    def stop(self):
        self.process.send_signal(signal.SIGINT)
        self.process.communicate(timeout=600)
        if self.process.returncode != 0:
            raise RuntimeError(f"gpusonde serve ended with {self.process.returncode}")


class Run:
    """One run of the feed, and what is read meanwhile."""

    def __init__(self, server, arguments):
        self.server = server
        self.hosts = arguments.hosts
        self.feed = subprocess.Popen(
            [BUILD / "bin/bench_serve_feed", server.agents, server.folder / "token", str(arguments.hosts),
             str(arguments.hours), str(arguments.live), str(arguments.limit)], stdout=subprocess.PIPE, text=True)
        self.now = {"elapsed_s": 0, "simulated_s": 0, "now_us": 0, "live": False, "pause_s": 0}
        self.marks = []  # (elapsed, simulated, CPU seconds, live), each second
        self.sizes = []  # (live, resident bytes, threads, files)
        self.ingest = {False: [], True: []}  # ms, by live
        self.questions = {}  # (name, live): ms
        self.failures = []
        self.end = None

    def watch(self):
        asking = threading.Thread(target=self.ask, daemon=True)
        asking.start()
        sampled = 0
        for line in self.feed.stdout:
            now = json.loads(line)
            if "rows" in now:
                self.end = now
                continue
            self.now = now
            self.ingest[now["live"]] += now["ms"]
            cpu_s, resident, threads, files = self.server.use()
            self.marks.append((now["elapsed_s"], now["simulated_s"], cpu_s, now["live"]))
            if now["elapsed_s"] >= sampled + SAMPLE_EVERY_S:
                sampled = now["elapsed_s"]
                self.sizes.append((now["live"], resident, threads, files))
            if int(now["elapsed_s"]) % 30 == 0:
                print(f"  {now['elapsed_s']:.0f} s: {now['simulated_s']} s simulated, {cpu_s:.0f} s of CPU time, "
                      f"{resident / 1e6:.0f} MB, {files} files, pause {now['pause_s']} s", file=sys.stderr, flush=True)
        asking.join(timeout=320)
        if self.feed.wait() != 0 or self.end is None:
            raise RuntimeError("bench_serve_feed failed")

    def ask(self):
        number = 0
        while self.feed.poll() is None:
            time.sleep(ASK_EVERY_S)
            to_us = self.now["now_us"]
            if self.now["simulated_s"] < 60:  # until every host has sent
                continue
            number += 1
            # A few hosts: whoever is looked at sends every second.
            host = f"host=node-{number % min(3, self.hosts):03}"
            hour = f"{host}&from_us={to_us - HOUR_US}&to_us={to_us}"
            name, path = (("list of hosts", "hosts"), ("overview of a host", f"overview?{host}"),
                          ("CPU profile of a host's hour", f"flamegraph?type=cpu&{hour}"),
                          ("strips of a host's hour", f"strips?{hour}&metrics=1"),
                          ("usage of all hosts", f"usage?from_us={to_us - HOUR_US}&to_us={to_us}"))[number % 5]
            live = self.now["live"]
            try:
                self.questions.setdefault((name, live), []).append(self.server.ask(path))
            except OSError as error:
                self.failures.append(f"{path}: {error}")


def rows_of(run, arguments, cores):
    """The result's rows of a run."""
    catching = [mark for mark in run.marks if not mark[3]]
    live = [mark for mark in run.marks if mark[3]]
    rows = []
    if len(catching) > 1:
        elapsed = catching[-1][0] - catching[0][0]
        simulated = catching[-1][1] - catching[0][1]
        cpu = catching[-1][2] - catching[0][2]
        share = 100 * cpu / simulated / cores
        rows += [{"name": f"{run.hosts} agents, {simulated / 3600:.1f} simulated hours: time to real time",
                  "value": simulated / elapsed, "unit": "x", "goal": "≥ 1", "met": simulated >= elapsed},
                 {"name": f"{run.hosts} agents: CPU time of the server that real time needs", "value": share,
                  "unit": f"% of {cores} cores", "goal": "≤ 100", "met": share <= 100},
                 {"name": "CPU time of the server for an agent", "value": share / run.hosts,
                  "unit": f"% of {cores} cores"}]
    if len(live) > 1:
        share = 100 * (live[-1][2] - live[0][2]) / (live[-1][0] - live[0][0]) / cores
        rows.append({"name": f"in real time: CPU time of the server, {live[-1][0] - live[0][0]:.0f} s", "value": share,
                     "unit": f"% of {cores} cores"})
    resident = [size[1] for size in run.sizes]
    quarter = max(1, len(resident) // 4)
    rows += [{"name": "resident memory of the server, most", "value": max(resident) / 1e6, "unit": "MB"},
             {"name": "resident memory in the last quarter beside the third",
              "value": statistics.mean(resident[-quarter:]) / statistics.mean(resident[-2 * quarter:-quarter] or resident),
              "unit": "x"},
             {"name": "threads of the server", "value": max(size[2] for size in run.sizes), "unit": ""},
             {"name": "open files of the server", "value": max(size[3] for size in run.sizes), "unit": ""}]
    for phase, name in ((False, "catching up"), (True, "in real time")):
        times = run.ingest[phase]
        if times:
            rows.append({"name": f"{name}: p99 of a request of rows", "value": measures.quantile(times, 0.99), "unit": "ms",
                         "spread": f"median {statistics.median(times):.0f}, most {max(times):.0f}"})
    for (name, phase), times in sorted(run.questions.items()):
        rows.append({"name": f"{'in real time' if phase else 'catching up'}: {name}, p95", "value": measures.quantile(times, 0.95),
                     "unit": "ms", "spread": f"median {statistics.median(times):.0f}, {len(times)} times"})
    return rows


def check(run, folder, hosts):
    """Counts what is stored of this many hosts. Returns (rows sent, rows missing or there twice)."""
    sent = wrong = 0
    sql = "SELECT " + ", ".join(f"(SELECT count(*) FROM {table})::BIGINT AS {table}" for table in FACTS)
    sql += ", (SELECT count(DISTINCT stack) FROM stacks)::BIGINT AS stacks"
    sql += ", (SELECT count(DISTINCT sequence) - max(sequence) FROM batches)::BIGINT AS frames"
    for number in range(hosts):
        files = sorted((folder / f"state/hosts/node-{number:03}").glob("*.sonde"))
        done = subprocess.run([GPUSONDE, "query", *files, sql, "--format", "json"], stdout=subprocess.PIPE, check=True,
                              text=True)
        (stored,) = json.loads(done.stdout)
        expected = run.end["rows"][number % len(run.end["rows"])]
        for table in (*FACTS, "stacks"):
            sent += expected.get(table, 0)
            wrong += abs(expected.get(table, 0) - stored[table])
        wrong += abs(stored["frames"])
    return sent, wrong


def main():
    parser = argparse.ArgumentParser(description="Measure `gpusonde serve` with many agents.")
    parser.add_argument("--hosts", type=int, default=200)
    parser.add_argument("--hours", type=float, default=6, help="simulated")
    parser.add_argument("--live", type=int, default=120, help="seconds of real time at the end")
    parser.add_argument("--limit", type=int, default=4 * 3600, help="seconds after which it stops wherever it is")
    parser.add_argument("--cores", type=int, default=2)
    parser.add_argument("--check", type=int, help="count the rows of so many hosts; default: all")
    parser.add_argument("--memory-mb", type=int, help="of the server; default: its own")
    parser.add_argument("file", type=pathlib.Path)
    arguments = parser.parse_args()
    cores = min(arguments.cores, len(os.sched_getaffinity(0)))
    try:
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            server = Server(folder, cores, arguments.memory_mb)
            try:
                run = Run(server, arguments)
                run.watch()
            finally:
                server.stop()
            stored = sum(file.stat().st_size for file in folder.glob("state/hosts/*/*"))
            checked = min(arguments.check or run.hosts, run.hosts)
            sent, wrong = check(run, folder, checked)
            errors = (folder / "errors").read_text().splitlines()
    except (OSError, RuntimeError, ValueError, subprocess.SubprocessError) as error:
        sys.exit(f"serve_bench: {error}")
    rows = rows_of(run, arguments, cores)
    host_hours = run.hosts * run.end["sent_s"] / 3600
    rows += [{"name": "on disk", "value": stored / host_hours / 1e6, "unit": "MB per host and hour",
              "note": f"received: {run.end['bytes'] / host_hours / 1e6:.1f} MB"},
             {"name": f"rows of {checked} hosts that are missing or stored twice", "value": wrong, "unit": f"of {sent:,}", "goal": "≤ 0",
              "met": wrong == 0},
             {"name": "requests that were tried again", "value": run.end["tried_again"],
              "unit": f"of {run.end['requests']:,}"},
             {"name": "questions that failed", "value": len(run.failures), "unit": "", "goal": "≤ 0",
              "met": not run.failures}]
    for line in [*run.failures[:5], *errors[:5]]:
        print(f"  {line}", file=sys.stderr)
    arguments.file.write_text(json.dumps({"rows": rows}, ensure_ascii=False))


if __name__ == "__main__":
    main()
