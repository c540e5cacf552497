# SPDX-License-Identifier: Apache-2.0
"""What gpusonde, and the baselines, say of each recording, without looking at labels; frozen and hashed.

gpusonde's answer is what it wrote while it recorded (tables incidents and evidence); `gpusonde diagnose` asked again
later is kept beside it."""

import hashlib
import json
import subprocess

import baselines


def replayed(build, recording):
    done = subprocess.run([build / "bin/gpusonde", "diagnose", recording, "--format", "json"], capture_output=True,
                          text=True, check=False)
    return json.loads(done.stdout) if done.returncode == 0 else {"error": done.stderr}


def one(build, folder):
    record = json.loads((folder / "trial.json").read_text())
    return {"replayed": replayed(build, folder / "run.sonde"), "baselines": baselines.ask(folder, record)}


def freeze(out, build, split):
    """Writes predictions-SPLIT.json and its hash. Trials are taken by their folders' names alone."""
    predictions = {folder.name: one(build, folder) for folder in sorted((out / "trials").glob(f"{split}-*"))
                   if (folder / "trial.json").exists()}
    text = json.dumps(predictions, indent=1, sort_keys=True)
    (out / f"predictions-{split}.json").write_text(text)
    (out / f"predictions-{split}.sha256").write_text(hashlib.sha256(text.encode()).hexdigest() + "\n")
    return predictions
