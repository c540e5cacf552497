#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures private fleet telemetry, as a result for bench/run.py: the cost of the schemes (bench_privacy), cost and
results of a fleet of 100,000 devices (`gpusonde fleet simulate`), what its services can do (bench_fleet_services), how well
applications are identified
(bench_fleet_identification), and whether run times depend on secrets (bench_timing).

    bench/fleet_bench.py [--devices N] [--timing-runs N] FILE
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import run

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUILD = pathlib.Path(os.environ.get("GPUSONDE_BUILD", ROOT / "build/release"))
TRACES = ROOT.parent / "shared/traces"
SLOTS = 4096  # counters of a report
PAILLIER = "Paillier-3072 packed"


def row(name, value, unit, relation=None, bound=None, **more):
    result = {"name": name, "value": value, "unit": unit} | more
    if relation is not None:
        result["goal"] = f"{relation} {bound:,g}"
        result["met"] = value >= bound if relation == "≥" else value <= bound
    return result


def nanoseconds(entry):
    return entry["real_time"] * {"ns": 1, "us": 1e3, "ms": 1e6}[entry["time_unit"]]


def schemes():
    """Rows of bench_privacy, and each scheme's cost per counter beside Paillier's from the same run."""
    done = subprocess.run([BUILD / "bin/bench_privacy", "--benchmark_format=json", "--benchmark_repetitions=5",
                           "--benchmark_report_aggregates_only=true"], check=True, stdout=subprocess.PIPE, text=True)
    median = {entry["run_name"]: entry for entry in json.loads(done.stdout)["benchmarks"]
              if entry.get("aggregate_name") == "median"}
    # Items are counters or bytes per second; the table has ns per counter instead.
    rows = [one for one in run.read_google_benchmark(done.stdout) if one["unit"] != "items/s"]

    def per_item(name, items=1):
        return items * 1e9 / median[name]["items_per_second"]

    for what, peer, ours in (
            ("encrypted", per_item(f"{PAILLIER}, counters encrypted (peer)"),
             {"masks, three decryptors": nanoseconds(median["masked report, three decryptors"]) / SLOTS,
              "BFV": nanoseconds(median["BFV encryption, 4,096 slots"]) / SLOTS}),
            ("added", per_item(f"{PAILLIER}, counters added (peer)"),
             {"masks": per_item("masked reports added, bytes", 4),
              "BFV": nanoseconds(median["BFV addition, 4,096 slots"]) / SLOTS,
              "in the clear": per_item("plaintext reports added, bytes (peer)", 4)})):
        for scheme, value in ours.items():
            rows.append(row(f"a counter {what}: {scheme}", value, "ns",
                            peer=f"{PAILLIER}: {peer:,.0f} ns", ratio=value / peer))
    read = median["memory read, bytes (peer)"]["items_per_second"]
    added = median["masked reports added, bytes"]["items_per_second"]
    rows.append(row("masked reports added", 100 * added / read, "% of memory read bandwidth", "≥", 60,
                    peer=f"reading: {read / 1e9:.1f} GB/s", ratio=added / read))
    rows.append(row("answer of a private identification among 1,000",
                    median["private identification among 1,000"]["answer_bytes"] / 1e3, "KB", "≤", 300))
    return rows


def simulate(*arguments):
    done = subprocess.run([BUILD / "bin/gpusonde", "fleet", "simulate", "--format", "json", *arguments], check=True,
                          stdout=subprocess.PIPE, text=True)
    return json.loads(done.stdout)["runs"]


def fleet(devices):
    """Coverage, overhead and cost of the whole fleet."""
    (one,) = simulate("--devices", devices, "--hours", "1")
    hour, measured, found = one["hours"][0], one["measured"], one["identification"]
    rows = [
        row(f"{devices} reports made, verified, added, released in one process", measured["pipeline_s"], "s", "≤", 90),
        row("sampled coverage in an hour, 61 applications", 100 * hour["sampled_coverage"], "%", "≥", 99),
        row("released coverage in an hour, 61 applications, ε < 1", 100 * hour["released_coverage"], "%"),
        row("simulated fleet: known applications identified", 100 * found["known_right_share"], "%", "≥", 98),
        row("simulated fleet: unknown ones called unknown", 100 * found["unknown_right_share"], "%", "≥", 95),
        row("error of sums before noise", one["error"]["largest_before_noise"], "", "≤", 0),
        row("a device, private query included", 100 * measured["device_share"], "% of its node's cores", "≤", 0.0035),
        row("a device, catalog in the open", 100 * measured["device_share_public"], "% of its node's cores"),
        row("90 % of reports acknowledged within", measured["report_latency"]["p90_ms"], "ms", "≤", 8000,
            note="without the network"),
        row("90 % of private queries answered within", measured["query_latency"]["p90_ms"], "ms", "≤", 8000,
            note="without the network"),
    ]
    (many,) = simulate("--devices", devices, "--hours", "1", "--applications", "1000", "--cohorts", "1",
                       "--min-reports", "500")
    rows.append(row("sampled coverage in an hour, 1,000 applications", 100 * many["hours"][0]["sampled_coverage"], "%"))
    rows.append(row("released coverage in an hour, 1,000 applications",
                    100 * many["hours"][0]["released_coverage"], "%"))
    (joint,) = simulate("--devices", str(int(devices) // 10), "--hours", "1", "--reports", "bfv", "--cohorts", "1",
                        "--cheats", "0", "--min-reports", "500")
    for name, key in (("made and signed", "report_us"), ("verified and added", "accept_us")):
        rows.append(row(f"a masked report {name}", measured[key], "us",
                        peer=f"Penrose's way (BFV): {joint['measured'][key]:,.0f} us",
                        ratio=measured[key] / joint["measured"][key]))
    rows.append(row("a masked report's size", one["report_bytes"] / 1e3, "KB",
                    peer=f"Penrose's way (BFV): {joint['report_bytes'] / 1e3:,.0f} KB",
                    ratio=one["report_bytes"] / joint["report_bytes"]))
    return rows


def services(devices):
    """What an aggregator and its decryptors can do, beside what that many devices need in epochs of an hour, whose reports are
    spread over two fifths of it."""
    done = subprocess.run([BUILD / "bin/bench_fleet_services", devices], check=True, stdout=subprocess.PIPE, text=True)
    one = json.loads(done.stdout)
    needed = one["devices"] / (0.4 * 3600)
    beside = "with the devices' side on the same CPUs"
    return [
        row("services: enrolments, each durable", one["enrolments_per_s"], "/s", note=beside),
        row("services: reports over HTTP, verified, added, each durable", one["reports_per_s"], "/s", "≥", 10 * needed,
            peer=f"{devices} devices send {needed:,.0f} /s", ratio=one["reports_per_s"] / needed, note=beside),
        row("services: journal of an epoch", one["journal_bytes"] / 1e9, "GB"),
        row("services: aggregator restarted before an epoch's end", one["restart_s"], "s", note="all its reports verified again"),
        row(f"services: a decryptor enrols {devices} devices", one["enrolled_s"], "s of CPU time"),
        row(f"services: a decryptor answers for {devices} reports", one["answered_s"], "s of CPU time"),
        row("services: largest error of a released slot", one["largest_error_deviations"], "σ of the noise", "≤", 7,
            note=f"of {4096 * one['lists']:,} slots"),
    ]


def identification():
    """On the streams of all available traces, which are more than data/kernel-streams has."""
    with tempfile.TemporaryDirectory() as folder:
        streams = ROOT / "data/kernel-streams"
        if TRACES.is_dir():
            subprocess.run([sys.executable, ROOT / "tools/kernel_streams.py", "--evaluation", "--out", folder],
                           check=True, stdout=subprocess.DEVNULL)
            streams = folder
        done = subprocess.run([BUILD / "bin/bench_fleet_identification", streams], check=True,
                              stdout=subprocess.PIPE, text=True)
    return json.loads(done.stdout)["rows"]


def timing(runs):
    """How much run times depend on secrets."""
    done = subprocess.run([BUILD / "bin/bench_timing", runs], check=True, stdout=subprocess.PIPE, text=True)
    return json.loads(done.stdout)["rows"]


def main():
    parser = argparse.ArgumentParser(description="Measure private fleet telemetry.")
    parser.add_argument("--devices", default="100000")
    parser.add_argument("--timing-runs", default="1000000")
    parser.add_argument("file", type=pathlib.Path)
    arguments = parser.parse_args()
    rows = schemes() + fleet(arguments.devices) + services(arguments.devices) + identification() + timing(arguments.timing_runs)
    arguments.file.write_text(json.dumps({"rows": rows}))


if __name__ == "__main__":
    main()
