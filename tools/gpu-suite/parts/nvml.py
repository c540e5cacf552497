# SPDX-License-Identifier: Apache-2.0
"""The device's state as gpusonde records it and as nvidia-smi tells it at the same time."""

import csv
import subprocess

from suite import Failed, Result, find, median

TITLE = "NVML against nvidia-smi"
NEEDS = "nvidia-smi"

SECONDS = 15
# Metric of ours: nvidia-smi's field, its unit in ours, by how much medians over the same time may differ (in the
# metric's unit, or as a share).
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


def run(suite):
    smi = suite.needs_program("nvidia-smi")
    suite.needs_gpu()
    result = Result()
    fields = ",".join(field for field, _, _ in FIELDS.values())
    watching = subprocess.Popen([smi, "-i", "0", f"--query-gpu={fields}", "--format=csv,noheader,nounits", "-lms", "200"],
                                stdout=subprocess.PIPE, text=True)
    try:
        recorded = suite.record(find("bin/gpusonde-hpc", "bin/hpc"), "--seconds", SECONDS)
    finally:
        watching.terminate()
    told = [row for row in csv.reader(watching.communicate(timeout=30)[0].splitlines()) if len(row) == len(FIELDS)]
    ours = {row["metric"]: row for row in suite.query(
        recorded, "SELECT metric, median(value) AS middle, count(*) AS n, min(time_ns) AS a, max(time_ns) AS b FROM metrics "
                  "WHERE metric LIKE 'gpu.%' AND process IS NULL GROUP BY metric")}
    if not ours:
        raise Failed("the recording has no metric of the GPU")
    for column, (metric, (field, unit, bound)) in enumerate(FIELDS.items()):
        values = []
        for row in told:
            try:
                values.append(float(row[column]) * unit)
            except ValueError:
                continue  # [N/A]
        if not values or metric not in ours:
            result.notes.append(f"{metric}: {'not told by nvidia-smi' if not values else 'not recorded'}")
            continue
        theirs, here = median(values), ours[metric]["middle"]
        if "share" in bound:
            result.row(f"{metric} against {field}", 100 * abs(here / theirs - 1) if theirs else abs(here), "%",
                       at_most=100 * bound["share"])
        else:
            result.row(f"{metric} against {field}", abs(here - theirs), "", at_most=bound["points"])
    rate = max((row["n"] - 1) / max((row["b"] - row["a"]) / 1e9, 1e-9) for row in ours.values())
    result.row("values a second of the quickest metric", rate, "Hz")
    return result
