# SPDX-License-Identifier: Apache-2.0
"""Nsight Compute's measurements of models, as CSV for the importer."""

import shutil
import sys
import tarfile

from suite import Failed, Result, WORKLOADS, last_lines

TITLE = "Nsight Compute"
NEEDS = "ncu, the right to read hardware counters, PyTorch with CUDA"

MODELS = ("resnet18", "hf_Bert", "nanogpt", "dcgan", "lennard_jones", "dlrm")
LAUNCHES = 100  # of each; a launch is replayed for every pass
SECTIONS = ("SpeedOfLight", "LaunchStats", "Occupancy", "MemoryWorkloadAnalysis", "ComputeWorkloadAnalysis")
MIN_S = 60


def run(suite):
    ncu = suite.needs_program("ncu")
    suite.needs_python("torch")
    suite.needs_gpu()
    result = Result()
    folder = suite.out / "ncu"
    folder.mkdir(exist_ok=True)
    todo = [model for model in MODELS if model not in suite.done]
    while todo:
        if suite.seconds_left() < MIN_S:
            result.left = todo
            break
        model, todo = todo[0], todo[1:]
        path = folder / f"{model}.csv"
        sections = [word for section in SECTIONS for word in ("--section", section)]
        # Clocks are not changed: the card's settings are not ours.
        try:
            done = suite.run(ncu, "--csv", "--page", "raw", "--clock-control", "none", "--profile-from-start", "off",
                             "--launch-count", LAUNCHES, "--target-processes", "all", *sections, "--log-file", path,
                             sys.executable, WORKLOADS / "torch_models.py", model, "--modes", "infer", "--steps", 1,
                             "--ncu", timeout=150, check=False)
        except Failed as reason:
            result.notes.append(f"{model}: {reason}")
            continue
        lines = sum(1 for line in path.open(errors="replace") if line.startswith('"')) if path.exists() else 0
        if lines < 2:
            text = path.read_text(errors="replace") if path.exists() else ""
            result.notes.append(f"{model}: ncu measured nothing: {last_lines(text + done.stdout + done.stderr)}")
            path.unlink(missing_ok=True)
            continue
        result.done.append(model)
        result.row(f"launches of {model} measured", lines - 2, "")  # names and units come first
    if result.done:
        with tarfile.open(suite.out / "ncu.tar.gz", "w:gz") as archive:
            archive.add(folder, "ncu")
    shutil.rmtree(folder)
    return result
