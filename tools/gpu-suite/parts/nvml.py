# SPDX-License-Identifier: Apache-2.0
"""The device's state as recorded by gpusonde and as printed by nvidia-smi: the median difference between values nearest
in time."""

import bisect
import subprocess
import threading
import time

from suite import Failed, Result, find, median

TITLE = "NVML against nvidia-smi"
NEEDS = "nvidia-smi"

SECONDS = 15
NEAREST_NS = 300_000_000
# Our metric: nvidia-smi's field, its unit in ours, and the allowed difference (in the metric's unit, or as a share).
FIELDS = {
    "gpu.utilization": ("utilization.gpu", 1, {"points": 5}),
    "gpu.memory.used": ("memory.used", 1 << 20, {"share": 0.02}),
    "gpu.clock.sm": ("clocks.sm", 1, {"share": 0.02}),
    "gpu.clock.memory": ("clocks.mem", 1, {"share": 0.01}),
    "gpu.power": ("power.draw", 1, {"share": 0.05}),
    "gpu.power.limit": ("power.limit", 1, {"share": 0.001}),
    "gpu.temperature": ("temperature.gpu", 1, {"points": 2}),
    "gpu.pcie.generation": ("pcie.link.gen.current", 1, {"points": 0}),
    "gpu.pcie.width": ("pcie.link.width.current", 1, {"points": 0}),
}


def watch(lines, printed):
    """Adds (CLOCK_REALTIME in ns, values) to `printed` for each line; None for a value that the device doesn't have."""
    for line in lines:
        values = []
        for text in line.split(","):
            try:
                values.append(float(text))
            except ValueError:
                values.append(None)
        if len(values) == len(FIELDS):
            printed.append((time.time_ns(), values))


def differences(ours, theirs):
    """(here, there) of values of the same time; both are [(time in ns, value)…], sorted."""
    times = [moment for moment, _ in ours]
    for moment, there in theirs:
        at = bisect.bisect(times, moment)
        near = [ours[i] for i in (at - 1, at) if 0 <= i < len(ours)]
        here = min(near, key=lambda each: abs(each[0] - moment), default=None)
        if here is not None and abs(here[0] - moment) <= NEAREST_NS:
            yield here[1], there


def counters(suite, recorded, ours, result):
    """The facts about performance counters (GPM), of a program that keeps the device busy."""
    active = [value for _, value in ours.get("gpu.sm.active", [])]
    failed = suite.query(recorded, "SELECT sum(count) AS failed FROM drops WHERE reason LIKE 'gpu_readings_%'")[0]["failed"]
    seen = f"SM activity {min(active):.1f} to {max(active):.1f} %, {failed or 0} readings failed or absurd" if active else \
        "not recorded; gpusonde doctor says why"
    result.fact("GPM's percentages are 0 to 100", max(active) > 0 and not failed if active else None, seen)
    rows = [metric for metric in ours if metric.startswith(("gpu.rows.", "gpu.nvlink."))]
    result.fact("remapped rows and NVLink's counters can be read", bool(rows) or None, ", ".join(sorted(rows)) or "neither")


def run(suite):
    smi = suite.needs_program("nvidia-smi")
    suite.needs_gpu()
    result = Result()
    fields = ",".join(field for field, _, _ in FIELDS.values())
    watching = subprocess.Popen([smi, "-i", "0", f"--query-gpu={fields}", "--format=csv,noheader,nounits", "-lms", "200"],
                                stdout=subprocess.PIPE, text=True)
    printed = []
    reader = threading.Thread(target=watch, args=(watching.stdout, printed))
    reader.start()
    try:
        recorded = suite.record(find("bin/gpusonde-hpc", "bin/hpc"), "--seconds", 6 if suite.quick else SECONDS)
    finally:
        watching.terminate()
        reader.join(30)
    ours = {}
    for row in suite.query(recorded, "SELECT metric, time_ns, value FROM metrics WHERE metric LIKE 'gpu.%' AND process IS NULL "
                                     "ORDER BY time_ns"):
        ours.setdefault(row["metric"], []).append((row["time_ns"], row["value"]))
    if not ours:
        raise Failed("the recording has no metric of the GPU")
    for column, (metric, (field, unit, bound)) in enumerate(FIELDS.items()):
        theirs = [(moment, values[column] * unit) for moment, values in printed if values[column] is not None]
        pairs = list(differences(ours.get(metric, []), theirs))
        if not pairs:
            result.notes.append(f"{metric}: {'not recorded' if theirs else 'not printed by nvidia-smi'}")
        elif "share" in bound:
            result.row(f"{metric} against {field}", median([100 * abs(here - there) / max(abs(there), 1e-9)
                                                            for here, there in pairs]), "%", at_most=100 * bound["share"])
        else:
            result.row(f"{metric} against {field}", median([abs(here - there) for here, there in pairs]), "",
                       at_most=bound["points"])
    counters(suite, recorded, ours, result)
    quickest = max(ours.values(), key=len)
    result.row("values per second of the fastest metric",
               (len(quickest) - 1) / max((quickest[-1][0] - quickest[0][0]) / 1e9, 1e-9), "Hz")
    return result
