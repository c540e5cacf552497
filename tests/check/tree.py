# SPDX-License-Identifier: Apache-2.0
"""The files of the tree for the checks, {path: text}, and their findings, "path:line: what"."""

import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent


def paths():
    """Every file that git tracks or would add."""
    listed = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=ROOT,
                            capture_output=True, check=True).stdout
    # The list includes deletions that are not committed.
    return [name for name in listed.decode().split("\0") if name and (ROOT / name).is_file()]


def read():
    """The text of each file; binary files (pictures) are left out."""
    files = {}
    for name in paths():
        try:
            files[name] = (ROOT / name).read_text(encoding="utf-8")
        except UnicodeDecodeError:
            files[name] = ""
    return files


def numbered(text):
    return enumerate(text.splitlines(), 1)


def main(check):
    """Runs one check over the tree; exit status 1 if it has findings."""
    findings = check(read())
    for finding in findings:
        print(finding)
    sys.exit(1 if findings else 0)
