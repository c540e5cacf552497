#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Whether two builds diagnose recordings alike, to the byte.

    bench/diagnose/same_verdicts.py OLD NEW RECORDING …     OLD and NEW: programs (build/release/bin/gpusonde)

Runs `gpusonde diagnose RECORDING --format json` with both. Prints one line per recording that differs: its causes, if these
differ, else the first figures that do. Ends with 1 if any differs, with 2 if one could not be diagnosed.
"""

import argparse
import json
import pathlib
import subprocess
import sys

MAX_FIGURES = 3  # per recording


class Failed(RuntimeError):
    """A build could not diagnose a recording."""


def diagnose(program, recording):
    """The diagnosis as text."""
    done = subprocess.run([program, "diagnose", recording, "--format", "json"], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise Failed(f"{recording}: {program} ended with {done.returncode}: {done.stderr.strip()}")
    return done.stdout


def causes(verdict):
    """What each incident was blamed on, by process, in order."""
    return [(incident["pid"], incident["cause"]) for incident in verdict["incidents"]]


def figures(old, new, path=""):
    """The paths of all values that differ between two JSON values, with both."""
    if isinstance(old, dict) and isinstance(new, dict):
        for key in sorted(old.keys() | new.keys()):
            yield from figures(old.get(key), new.get(key), f"{path}.{key}")
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for index, (one, other) in enumerate(zip(old, new)):
            yield from figures(one, other, f"{path}[{index}]")
    elif old != new:
        yield path, old, new


def difference(old_text, new_text):
    """What differs between two diagnoses, as text; "" if nothing does."""
    if old_text == new_text:
        return ""
    old, new = json.loads(old_text), json.loads(new_text)
    if causes(old) != causes(new):
        return f"causes were {causes(old)}, are {causes(new)}"
    changed = list(figures(old, new))
    if not changed:
        return "the same values, written differently"
    some = "; ".join(f"{path} was {one}, is {other}" for path, one, other in changed[:MAX_FIGURES])
    return f"same causes, {len(changed)} other values: {some}"


def compare(old, new, recordings):
    """Yields (recording, difference) of each recording."""
    for recording in recordings:
        yield recording, difference(diagnose(old, recording), diagnose(new, recording))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old", type=pathlib.Path)
    parser.add_argument("new", type=pathlib.Path)
    parser.add_argument("recordings", nargs="+", type=pathlib.Path)
    arguments = parser.parse_args()
    differ = 0
    try:
        for recording, what in compare(arguments.old.resolve(), arguments.new.resolve(), arguments.recordings):
            if what:
                differ += 1
                print(f"{recording}: {what}", flush=True)
    except (Failed, OSError, ValueError) as error:
        print(f"same_verdicts: {error}", file=sys.stderr)
        return 2
    print(f"{len(arguments.recordings)} recordings, {differ} differ")
    return 1 if differ else 0


if __name__ == "__main__":
    sys.exit(main())
