# SPDX-License-Identifier: Apache-2.0
"""Trials whose labels were opened, kept in the repository: recordings are too large for it, and machines come and go, but
hours of trials have to add up. A line of KEPT/SPLIT.jsonl is a trial: its record, its label, and what was said of it while
that was sealed."""

import dataclasses
import datetime
import json
import pathlib
import platform

import score

ROOT = pathlib.Path(__file__).resolve().parents[2]
KEPT = ROOT / "bench/results/diagnosis"


@dataclasses.dataclass(frozen=True)
class Kept:
    """All that is kept of a split."""
    trials: dict  # those that a program (by its hash) answered; the newest program last
    failed: set  # trials that could not be made

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


def keep(out, split, program, folder=KEPT):
    """Opens the labels of what is frozen in `out` and adds those trials that aren't kept yet, as what this program
    (overhead.program_id) said: what was said first counts, however often somebody asks again. Returns how many."""
    kept = Kept.read(split, folder)
    known = {trial.name for trials in kept.trials.values() for trial in trials} | kept.failed
    about = {"program": program, "date": f"{datetime.datetime.now(datetime.timezone.utc):%Y-%m-%d}",
             "kernel": platform.release(), "frozen": (out / f"predictions-{split}.sha256").read_text().strip()}
    lines = [{"name": trial.name, **about, "record": trial.record, "truth": trial.truth, "prediction": trial.prediction}
             for trial in score.opened(out, split)]
    lines += [{"name": path.parent.name, "failed": path.read_text().strip()} for path in score.failures(out, split)]
    new = [line for line in lines if line["name"] not in known]
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / f"{split}.jsonl", "a", encoding="utf-8") as file:
        file.writelines(json.dumps(line, separators=(",", ":"), sort_keys=True) + "\n" for line in new)
    return len(new)


def total(split, folder=KEPT):
    """The result of what the newest program was asked, and beside it, in short, of those before: it was mended by what
    they got wrong. Raises RuntimeError where nothing is kept."""
    kept = Kept.read(split, folder)
    if not kept.trials:
        raise RuntimeError(f"nothing is kept of the split {split}")
    results = {program: score.compare(trials, with_foreign_load=False) for program, trials in kept.trials.items()}
    newest, result = results.popitem()
    return {"split": split, "failed": len(kept.failed), "program": newest, "earlier": results} | result
