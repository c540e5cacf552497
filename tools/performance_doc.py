#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes docs/performance.md from bench/results/*.json, which `make bench` writes.

    tools/performance_doc.py [--results FOLDER] [--output FILE]

A result file is one run of one benchmark:
    {"benchmark": "record", "title": "…", "date": "2026-11-21",
     "machine": {"cpu": "…", "cores": 2, …},
     "rows": [{"name": "…", "value": 0.31, "unit": "% of the machine", "spread": "0.29-0.34", "goal": "≤ 0.5",
               "met": true, "peer": "perf record -g: 0.52", "ratio": 0.6}, …]}
`title`, and all keys of a row but name, value and unit, may be missing or null. A `value` of null was not measured, and
`note` gives the reason.
"""

import argparse
import json
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent

INTRO = """<!-- Made from bench/results by `make docs` and `make bench`; `make check` compares. -->
# Performance

Every number here was measured by `make bench`, on the machine and day named above its table: medians, with the
spread over the runs. A *peer* is another program that does the same work, run beside ours in the same run, and the
*ratio* is ours to the peer's. A missed goal is marked ✗ and stays until it is met.
"""
NOTHING = "\nNothing has been measured yet.\n"


def number(value):
    """Four significant digits, without exponents or trailing zeros."""
    if value is None:
        return "not measured"
    if isinstance(value, str):
        return value
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    text = f"{value:.4g}"
    return text if "e" not in text else f"{value:.10f}".rstrip("0")


def cell(value):
    return "" if value is None else str(value).replace("|", "\\|")


def goal(row):
    if row.get("goal") is None:
        return ""
    mark = {True: " ✓", False: " ✗"}.get(row.get("met"), "")
    return cell(row["goal"]) + mark


def machine(about):
    return ", ".join(f"{key.replace('_', ' ')} {value}" for key, value in about.items())


def section(result):
    lines = [f"\n## {result.get('title') or result['benchmark']}", "",
             f"{result['date']}; {machine(result.get('machine', {}))}.", "",
             "| what | measured | spread | goal | peer | ratio |", "|---|---|---|---|---|---|"]
    notes = []
    for row in result["rows"]:
        measured = number(row["value"]) + (f" {row['unit']}" if row.get("unit") and row["value"] is not None else "")
        ratio = number(row["ratio"]) if row.get("ratio") is not None else ""
        lines.append(f"| {cell(row['name'])} | {cell(measured)} | {cell(row.get('spread'))} | {goal(row)} | "
                     f"{cell(row.get('peer'))} | {ratio} |")
        if row.get("note"):
            notes.append(f"- {row['name']}: {row['note']}")
    return "\n".join(lines + ([""] + notes if notes else [])) + "\n"


def page(results):
    ordered = sorted(results, key=lambda result: result["benchmark"])
    return INTRO + ("".join(map(section, ordered)) or NOTHING)


def main():
    parser = argparse.ArgumentParser(description="Make docs/performance.md from the results of the benchmarks.")
    parser.add_argument("--results", type=pathlib.Path, default=ROOT / "bench/results")
    parser.add_argument("--output", type=pathlib.Path, default=ROOT / "docs/performance.md")
    arguments = parser.parse_args()
    results = []
    for path in sorted(arguments.results.glob("*.json")):
        try:
            results.append(json.loads(path.read_text()))
            section(results[-1])
        except (ValueError, KeyError, TypeError) as error:
            sys.exit(f"{path}: not a result of a benchmark: {type(error).__name__} {error}")
    arguments.output.write_text(page(results))


if __name__ == "__main__":
    main()
