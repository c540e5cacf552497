# SPDX-License-Identifier: Apache-2.0
"""Trials whose labels were opened, kept in the repository. Recordings are too large to keep, and machines come and go, but hours
of trials have to add up. A line of KEPT/SPLIT.jsonl is a trial: its record, its label, and the prediction that was made while
the label was sealed."""

import dataclasses
import datetime
import json
import pathlib
import platform

import label
import score

ROOT = pathlib.Path(__file__).resolve().parents[2]
KEPT = ROOT / "bench/results/diagnosis"
SMALL_SHARE = 0.01


@dataclasses.dataclass(frozen=True)
class Kept:
    """The kept trials of a split."""
    trials: dict  # by build (hash of the program) that predicted them; the newest build last
    failed: set  # trials that could not be run

    @staticmethod
    def read(split, folder=KEPT):
        path = folder / f"{split}.jsonl"
        lines = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
        trials = {}
        for one in lines:
            if "failed" not in one:
                trials.setdefault(one["program"], []).append(
                    score.Trial(one["name"], one["record"], one["truth"], one["prediction"]))
        return Kept(trials, {one["name"] for one in lines if "failed" in one})


def slim(value):
    """A situation without what takes most of its space and ranks no cause: command lines, and processes with less than 1 % of a
    sum."""
    if isinstance(value, dict):
        return {key: "" if key == "command" else slim(part) for key, part in value.items()}
    if isinstance(value, list):
        total = sum(part["amount"] for part in value if isinstance(part, dict) and "amount" in part)
        return [slim(part) for part in value
                if not isinstance(part, dict) or "amount" not in part or part["amount"] >= SMALL_SHARE * total]
    return value


def keep(out, split, program, folder=KEPT, label_of=label.label):
    """Opens the labels of the frozen predictions in `out` and adds the trials that aren't kept yet, as predictions of this build
    (overhead.program_id). Only the first prediction of a trial counts. Returns how many were added."""
    kept = Kept.read(split, folder)
    known = {trial.name for trials in kept.trials.values() for trial in trials} | kept.failed
    about = {"program": program, "date": f"{datetime.datetime.now(datetime.timezone.utc):%Y-%m-%d}",
             "kernel": platform.release(), "frozen": (out / f"predictions-{split}.sha256").read_text().strip()}
    lines = [{"name": trial.name, **about, "record": trial.record, "truth": trial.truth,
              "prediction": trial.prediction | {"situations": slim(trial.prediction.get("situations", {}))}}
             for trial in score.opened(out, split, label_of)]
    lines += [{"name": path.parent.name, "failed": path.read_text().strip()} for path in score.failures(out, split)]
    new = [line for line in lines if line["name"] not in known]
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / f"{split}.jsonl", "a", encoding="utf-8") as file:
        file.writelines(json.dumps(line, separators=(",", ":"), sort_keys=True) + "\n" for line in new)
    return len(new)


def total(split, folder=KEPT, compare=score.compare):
    """The result of the newest build, with a summary of the earlier ones, whose errors it was improved on. Raises RuntimeError if
    nothing is kept."""
    kept = Kept.read(split, folder)
    if not kept.trials:
        raise RuntimeError(f"nothing is kept of the split {split}")
    results = {program: compare(trials, with_foreign_load=False) for program, trials in kept.trials.items()}
    newest, result = results.popitem()
    return {"split": split, "failed": len(kept.failed), "program": newest, "earlier": results} | result
