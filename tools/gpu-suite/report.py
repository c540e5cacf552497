# SPDX-License-Identifier: Apache-2.0
"""Results as text."""

import json
import re
import sys

MARK = {True: "✓", False: "✗", None: "?"}


def number(value):
    if value is None:
        return "not measured"
    if isinstance(value, str):
        return value
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def summary_of(entry):
    """A part as a few lines for the terminal."""
    lines = [f"{entry['part']}: {entry['status']}" + (f": {entry['why']}" if entry.get("why") else "")]
    for row in entry.get("rows", ()):
        goal = f"  (goal {row['goal']} {MARK[row['met']]})" if row.get("goal") else ""
        lines.append(f"  {row['name']}: {number(row['value'])} {row['unit']}{goal}")
    lines += [f"  {MARK[fact['holds']]} {fact['fact']}: {fact['seen']}" for fact in entry.get("facts", ())]
    lines += [f"  {note}" for note in entry.get("notes", ())]
    if entry.get("left"):
        lines.append(f"  {len(entry['left'])} left: {' '.join(entry['left'])}")
    return "\n".join(lines)


def cell(text):
    return str(text).replace("|", "\\|").replace("\n", " ")


def section(entry):
    lines = [f"\n## {entry['title']}\n"]
    if entry["status"] != "done":
        lines.append(f"{entry['status'].capitalize()}: {cell(entry.get('why', ''))}\n")
    if entry.get("rows"):
        lines.append("| | measured | goal | spread |\n|---|---|---|---|")
        for row in entry["rows"]:
            goal = f"{row['goal']} {MARK[row['met']]}" if row.get("goal") else ""
            lines.append(f"| {cell(row['name'])} | {number(row['value'])} {cell(row['unit'])} | {goal} "
                         f"| {cell(row.get('spread', ''))} |")
        lines.append("")
    if entry.get("facts"):
        lines.append("| assumption | holds | seen |\n|---|---|---|")
        lines += [f"| {cell(fact['fact'])} | {MARK[fact['holds']]} | {cell(fact['seen'])} |" for fact in entry["facts"]]
        lines.append("")
    lines += [f"- {cell(note)}" for note in entry.get("notes", ())]
    if entry.get("left"):
        lines.append(f"\nNo time was left for {', '.join(entry['left'])}.")
    return "\n".join(lines)


def markdown(results):
    about = ", ".join(f"{key} {value}" for key, value in results["machine"].items() if key != "device")
    return (f"<!-- Made by tools/gpu-suite. -->\n# {results['machine']['device']}\n\n{about}\n"
            + ("\nA smoke test: these numbers mean nothing.\n" if results.get("quick") else "")
            + "\n".join(section(entry) for entry in results["parts"]) + "\n")


def merged(all_results):
    """Merges several runs on one device: of each part the newest finished one, else the newest; items add up."""
    devices = {results["machine"]["device"] for results in all_results}
    if len(devices) != 1:
        raise ValueError(f"results of different devices: {', '.join(sorted(devices))}")
    by_part = {}
    for results in sorted(all_results, key=lambda results: results["machine"]["date"]):
        for entry in results["parts"]:
            before = by_part.get(entry["part"])
            if before and before.get("done"):
                done = sorted({*before["done"], *entry.get("done", ())})
                names = {row["name"] for row in entry.get("rows", ())}
                rows = [row for row in before.get("rows", ()) if row["name"] not in names] + entry.get("rows", [])
                left = [item for item in entry.get("left", before.get("left", ())) if item not in done]
                entry = {**entry, "status": "done", "done": done, "rows": rows, "left": left,
                         "notes": before.get("notes", []) + entry.get("notes", [])}
            if not before or entry["status"] == "done" or before["status"] != "done":
                by_part[entry["part"]] = entry
    return {**all_results[-1], "parts": list(by_part.values())}


def write(files, data, docs):
    """Writes a JSON file and a page of these results, named after the day and the device."""
    try:
        results = merged([json.loads(file.read_text()) for file in files])
    except (OSError, ValueError, KeyError) as error:
        print(f"gpu-suite: {error}", file=sys.stderr)
        return 1
    device = re.sub(r"\W+", "-", results["machine"]["device"].lower()).strip("-")
    name = f"{results['machine']['date'][:10]}-{device}"
    for folder, suffix, text in ((data, ".json", json.dumps(results, indent=1, ensure_ascii=False) + "\n"),
                                 (docs, ".md", markdown(results))):
        folder.mkdir(parents=True, exist_ok=True)
        (folder / (name + suffix)).write_text(text, encoding="utf-8")
        print(folder / (name + suffix))
    return 0
