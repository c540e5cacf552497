# SPDX-License-Identifier: Apache-2.0
"""The predictions of gpusonde and the baselines for each recording, made without the labels; frozen and hashed.

gpusonde's prediction is what it wrote while it recorded (tables incidents and evidence); the answer of a later `gpusonde
diagnose` is kept as well."""

import hashlib
import json
import subprocess

import baselines

LIVE = "SELECT start_ns, end_ns, seen_ns, named_ns, slowdown, cause, confidence FROM incidents "\
       "WHERE NOT withdrawn ORDER BY start_ns"


def run(build, *arguments):
    """gpusonde's output. Raises RuntimeError if it fails: that doesn't count as *abstain*."""
    done = subprocess.run([build / "bin/gpusonde", *arguments], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"gpusonde {arguments[0]} failed: {done.stderr.strip()}")
    return done.stdout


def ask(build, *arguments):
    """gpusonde's answer as JSON."""
    return json.loads(run(build, *arguments, "--format", "json"))


def situations(build, recording):
    """{incident: the quantities that its cause was judged by}"""
    lines = run(build, "diagnose", recording, "--format", "situations").splitlines()
    return {one["incident"]: one["situation"] for one in map(json.loads, lines)}


def of_recording(build, recording):
    """The prediction from a recording alone, with what it was made from; the baselines need the instruments' samples, too."""
    return {"replayed": ask(build, "diagnose", recording), "situations": situations(build, recording),
            "live": ask(build, "query", recording, LIVE), "baselines": {}}


def one(build, folder):
    return of_recording(build, folder / "run.sonde") | {"baselines": baselines.ask(folder)}


def write(out, split, predictions):
    """Writes predictions-SPLIT.json and its hash."""
    text = json.dumps(predictions, indent=1, sort_keys=True)
    (out / f"predictions-{split}.json").write_text(text)
    (out / f"predictions-{split}.sha256").write_text(hashlib.sha256(text.encode()).hexdigest() + "\n")


def freeze(out, build, split):
    """Predicts every trial that has run. Only the names of the trials' folders are read."""
    write(out, split, {folder.name: one(build, folder) for folder in sorted((out / "trials").glob(f"{split}-*"))
                       if (folder / "trial.json").exists()})
