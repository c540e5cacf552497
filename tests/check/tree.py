# SPDX-License-Identifier: Apache-2.0
"""The files of the tree, as the checks see them: {path: text}, and what they found: "path:line: what"."""

import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent


def paths():
    """Every file that git knows or would add."""
    listed = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=ROOT,
                            capture_output=True, check=True).stdout
    # What is deleted and not yet committed is listed too.
    return [name for name in listed.decode().split("\0") if name and (ROOT / name).is_file()]


def read():
    """The text of each; what is no text (pictures) has none."""
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
    """Runs one check over the tree; exit status 1 when it found something."""
    findings = check(read())
    for finding in findings:
        print(finding)
    sys.exit(1 if findings else 0)
