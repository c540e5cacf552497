#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the measurements of the UI's benchmark (`npm run bench` in web/) in Chromium as a result for bench/run.py.

    bench/web_bench.py FILE
"""

import json
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
FRAME_MS = 1000 / 60  # a frame at 60 fps
FIRST_PAINT_GOAL_MS = 1000
LARGE_NODES = 1_000_000
TIMELINE_GOAL_MS = 20


def rows_of(measured):
    rows = []
    for paint in measured["first_paint"]:
        name = paint["scenario"] + (f", {paint['nodes']:,} nodes" if "nodes" in paint else "")
        rows.append({"name": f"first paint ({name}; median of {paint['loads']} loads)",
                     "value": paint["first_paint_ms"], "unit": "ms", "goal": f"≤ {FIRST_PAINT_GOAL_MS} ms",
                     "met": paint["first_paint_ms"] <= FIRST_PAINT_GOAL_MS})
        rows.append({"name": f"flame graph drawn ({name})", "value": paint["graph_drawn_ms"], "unit": "ms"})
    zoom = measured["page_zoom_intervals"]
    rows.append({"name": f"time between frames while zooming, {zoom['nodes']:,} nodes (median)",
                 "value": zoom["median_ms"], "unit": "ms", "spread": f"95 % within {zoom['p95_ms']} ms",
                 "goal": f"≤ {FRAME_MS:.1f} ms", "met": zoom["median_ms"] <= FRAME_MS + 0.1})
    rows += timeline_rows(measured["timeline_intervals"])
    rows.append({"name": "page and assets, compressed", "value": sum(measured["gzipped_bytes"].values()) / 1024,
                 "unit": "KiB"})
    return rows + [row for graph in measured["flame_graph"] for row in graph_rows(graph)]


def timeline_rows(timeline):
    for movement in ("pan", "zoom", "scroll"):
        frames = timeline[movement]
        yield {"name": f"time between frames of a timeline of {timeline['events'] / 1e6:.0f} million events in "
                       f"{timeline['slices']:,} slices, {movement} (95 % of {frames['frames']})",
               "value": frames["p95_ms"], "unit": "ms", "spread": f"longest {frames['max_ms']} ms",
               "goal": f"≤ {TIMELINE_GOAL_MS} ms", "met": frames["p95_ms"] <= TIMELINE_GOAL_MS}


def graph_rows(graph):
    """One row per number of the canvas's own measurement for this many nodes, with its name."""
    nodes = graph.get("nodes")
    for key, value in graph.items():
        if key != "nodes" and isinstance(value, (int, float)) and key.endswith("_ms"):
            yield {"name": f"flame graph, {nodes:,} nodes: {key.removesuffix('_ms').replace('_', ' ')}",
                   "value": value, "unit": "ms"}


def main():
    done = subprocess.run(["npm", "run", "--silent", "bench"], cwd=ROOT / "web", stdout=subprocess.PIPE, text=True,
                          check=False)
    if done.returncode != 0:
        sys.exit(f"npm run bench ended with exit status {done.returncode}")
    measured = json.loads(done.stdout)
    about = measured["machine"]
    pathlib.Path(sys.argv[1]).write_text(json.dumps({
        "machine": {"cpu": about["cpu"], "cores": about["cores"], "load before": about["load_before"],
                    "Chromium": about["chromium"] + ", no graphics card"},
        "rows": rows_of(measured)}))


if __name__ == "__main__":
    main()
