#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs clang-tidy-19 (.clang-tidy) over every source of the tree that a compiler reads.

    tests/check/tidy.py [FILE …]

Uses the commands of the preset `tidy` (build/tidy), whose generated headers must be there. A file that was clean is
not looked at again until it, a header that it includes, its command or .clang-tidy changes: what the compiler would
see is hashed, comments included.
"""

import argparse
import concurrent.futures
import hashlib
import json
import os
import pathlib
import shlex
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
BUILD = ROOT / "build/tidy"
CLEAN = BUILD / "clean"  # an empty file per content that was found clean
TIDY = "clang-tidy-19"


def commands():
    """(file, arguments) of every C++ source that is ours, not generated."""
    for entry in json.loads((BUILD / "compile_commands.json").read_text()):
        path = pathlib.Path(entry["file"])
        if path.suffix == ".cpp" and not path.is_relative_to(BUILD):
            yield path, shlex.split(entry["command"])


def preprocess(arguments):
    """What the compiler would see of a source, with its comments (NOLINT is one)."""
    kept, skip = [], False
    for argument in arguments:
        if skip or argument in ("-o", "-MF", "-MT", "-MQ"):
            skip = not skip
        elif argument not in ("-c", "-MD", "-MMD"):
            kept.append(argument)
    done = subprocess.run(kept + ["-E", "-CC"], cwd=BUILD, capture_output=True, check=False)
    return done.stdout if done.returncode == 0 else None


def check(path, text, key):
    """What clang-tidy says about one source; empty when it is clean."""
    done = subprocess.run([TIDY, "-p", str(BUILD), "--quiet", str(path)], capture_output=True, text=True, check=False)
    if done.returncode == 0 and not done.stdout.strip():
        if text is not None:
            (CLEAN / key).touch()
        return ""
    return done.stdout.strip() or done.stderr.strip()


def main():
    parser = argparse.ArgumentParser(description="Run clang-tidy over the tree.")
    parser.add_argument("files", nargs="*", help="only these; default: all")
    chosen = {pathlib.Path(name).resolve() for name in parser.parse_args().files}
    CLEAN.mkdir(parents=True, exist_ok=True)
    common = (ROOT / ".clang-tidy").read_bytes()
    common += subprocess.run([TIDY, "--version"], capture_output=True, check=True).stdout

    sources = [(path, arguments) for path, arguments in commands() if not chosen or path in chosen]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count() or 2) as pool:
        texts = list(pool.map(lambda source: preprocess(source[1]), sources))
        todo = []
        for (path, arguments), text in zip(sources, texts):
            key = hashlib.sha256(common + shlex.join(arguments).encode() + (text or b"")).hexdigest()
            if not (CLEAN / key).exists():
                todo.append((path, text, key))
        todo.sort(key=lambda item: -len(item[1] or b""))  # the long ones first, so that no core waits at the end
        findings = [finding for finding in pool.map(lambda item: check(*item), todo) if finding]
    for finding in findings:
        print(finding.replace(f"{ROOT}/", ""))
    print(f"  {len(sources)} sources, {len(todo)} looked at, {len(findings)} with findings")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
