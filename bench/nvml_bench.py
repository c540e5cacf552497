#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures the cost of reading the GPUs' state, on the simulated GPU, as a result for bench/run.py.

    bench/nvml_bench.py [--build FOLDER] [--seconds S] [--repetitions N] FILE

`gpusonde record --nvml-hz N -- sleep`: the CPU time of its NVML threads, and that of the whole process less that of a run
with `--nvml-hz 0`, alternately. Both from /proc/PID/task/*/schedstat, from a second after the start until the program
ends. simgpu's NVML only advances a timeline; tools/gpu-suite measures a real driver's calls.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
CORES = os.cpu_count()
WARM_UP_S = 1.0
THREADS = ("nvml", "nvml-xid")
# (devices, Hz): `record` with one and with eight devices, and `up` with eight.
CASES = ((1, 10), (8, 10), (8, 1))


def cpu_ns(pid):
    """{thread name: CPU time}; threads with one name together."""
    times = {}
    for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
        name = (task / "comm").read_text().strip()
        times[name] = times.get(name, 0) + int((task / "schedstat").read_text().split()[0])
    return times


def run(build, devices, hertz, seconds, folder):
    """The NVML threads and the whole process in percent of the machine; readings of power per second."""
    simgpu = build / "bin/simgpu"
    environment = dict(os.environ, SIMGPU_DEVICES=str(devices), SIMGPU_MACHINE=pathlib.Path(folder).name)
    recording = f"{folder}/run.sonde"
    recorder = subprocess.Popen([simgpu, "run", "--", build / "bin/gpusonde", "record", "--nvml-hz", str(hertz), "-o",
                                 recording, "--", "sleep", str(seconds + 2 * WARM_UP_S)], env=environment,
                                stderr=subprocess.DEVNULL)
    try:
        time.sleep(WARM_UP_S)
        before, began = cpu_ns(recorder.pid), time.monotonic()
        time.sleep(seconds)
        after, took_s = cpu_ns(recorder.pid), time.monotonic() - began
    finally:
        status = recorder.wait()
        subprocess.run([simgpu, "reset"], env=environment, check=False)
    if status != 0:
        raise RuntimeError(f"gpusonde record: exit status {status}")
    used = {name: after[name] - before.get(name, 0) for name in after}
    percent = 100 / (took_s * 1e9 * CORES)
    rows = json.loads(subprocess.run(
        [build / "bin/gpusonde", "query", recording, "--format", "json",
         "SELECT count(*) AS n, (max(time_ns) - min(time_ns)) / 1e9 AS s FROM metrics WHERE metric = 'gpu.power'"],
        check=True, stdout=subprocess.PIPE).stdout)[0]
    os.remove(recording)
    rate = (rows["n"] / devices - 1) / rows["s"] if rows["n"] > devices else 0.0
    return sum(used.get(name, 0) for name in THREADS) * percent, sum(used.values()) * percent, rate


def row(name, unit, values, **more):
    return {"name": name, "value": statistics.median(values), "unit": unit,
            "spread": f"{min(values):.3g}-{max(values):.3g}", **more}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", type=pathlib.Path,
                        default=pathlib.Path(os.environ.get("GPUSONDE_BUILD", ROOT / "build/release")))
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("file")
    arguments = parser.parse_args()
    measured = {case: [] for case in ((1, 0), *CASES)}
    with tempfile.TemporaryDirectory(prefix="gpusonde-bench-") as folder:
        for turn in range(arguments.repetitions):
            print(f"  turn {turn + 1} of {arguments.repetitions} …", file=sys.stderr, flush=True)
            for case, runs in measured.items():
                runs.append(run(arguments.build, *case, arguments.seconds, folder))
    without = statistics.median(whole for _, whole, _ in measured[1, 0])
    rows = []
    for devices, hertz in CASES:
        runs = measured[devices, hertz]
        what = f"{devices} device{'s' if devices > 1 else ''} at {hertz} Hz"
        rows.append(row(f"{what}: NVML threads", "% of the machine", [threads for threads, _, _ in runs]))
        rows.append(row(f"{what}: all of gpusonde, more than without", "% of the machine",
                        [whole - without for _, whole, _ in runs]))
        rows.append(row(f"{what}: readings", "rounds/s", [rate for _, _, rate in runs]))
    rows[0]["note"] = "simgpu's NVML answers in microseconds; what a real driver's calls take comes on top"
    pathlib.Path(arguments.file).write_text(json.dumps({"rows": rows}))


if __name__ == "__main__":
    main()
