#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What labelled trials say about the weights of src/diagnose/causes/weights.h.

    bench/diagnose/fit.py                   how much each weight matters to the train split's trials, and their best values
    bench/diagnose/fit.py --write           the same, and writes the values into weights.h if the test split is no worse for it

Trials come from build/bench-diagnose and from those kept in the repository, if their predictions include situations (the
quantities that each incident's cause was judged by). build/release/bin/rank_situations ranks them with other weights.

Each cause is judged independently, so the loss of an incident is the sum over the causes that it considers of the negative
log-likelihood of "is one of the labels". A weight is believed to be right as it is, within a factor of 1.2 (one standard
deviation of its logarithm): few trials move it little. Weights are changed one after the other, until none improves the sum.
"""

import argparse
import dataclasses
import json
import math
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import kept
import score

ROOT = pathlib.Path(__file__).resolve().parents[2]
WEIGHTS = ROOT / "src/diagnose/causes/weights.h"
FACTORS = (0.5, 0.7, 0.85, 0.95, 1.05, 1.2, 1.4, 2.0)
SPREAD = math.log(1.2)    # of a weight's logarithm, before any trial: README.md says what others did
# They decide above all whether a second cause, of a quarter of the lost time, is named as well: of that there are too few trials.
HELD = ("ranking.even_share", "ranking.share")
MAX_SWEEPS = 6
MIN_GAIN = 0.5          # nats: less is no reason to change a weight
CERTAIN = 1e-6            # confidences are kept this far from 0 and 1


class FitError(RuntimeError):
    pass


@dataclasses.dataclass(frozen=True)
class Incident:
    """What one incident of a trial was explained from, and the right answers."""
    trial: str
    victim: str
    situation: str       # JSON
    labels: frozenset    # causes; empty: abstaining is right
    weight: float        # a trial's incidents share its weight


@dataclasses.dataclass(frozen=True)
class Weight:
    """A number of the table."""
    name: str            # block_io.user_known
    value: float
    unit: str
    begin: int           # where the value's text is in weights.h
    end: int

    def may_be(self, value):
        """Whether the table's unit allows the value: shares are at most 1."""
        return value <= 1 or self.value > 1 or not self.unit.startswith("of the")


def read_table(text):
    """[Weight, …] of weights.h, in its order."""
    weights = []
    for block in re.finditer(r"struct \{(.*?)\n  \} (\w+);", text, re.DOTALL):
        for one in re.finditer(r'Tuned<double> (\w+)\{\s*([^,]+?),\s*"([^"]*)"', block[1]):
            start = block.start(1)
            weights.append(Weight(f"{block[2]}.{one[1]}", number(one[2]), one[3], start + one.start(2), start + one.end(2)))
    if len({weight.name for weight in weights}) != len(weights):
        raise FitError("weights.h: two weights have the same name")
    return weights


def number(text):
    """The value of `0.36`, `1e6` or `1. / 3`."""
    above, _, below = text.partition("/")
    return float(above) / float(below or 1)


class Ranker:
    """Ranks the incidents by any vector of weights."""

    def __init__(self, program, incidents, weights):
        self.incidents = incidents
        self.file = tempfile.NamedTemporaryFile("w", suffix=".jsonl")
        self.file.writelines(one.situation + "\n" for one in incidents)
        self.file.flush()
        self.process = subprocess.Popen([program, self.file.name], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        built = json.loads(self._answer())
        if [unit for _, unit in built] != [weight.unit for weight in weights] or any(
                not math.isclose(value, weight.value) for (value, _), weight in zip(built, weights)):
            raise FitError(f"{program} was built from another weights.h: build it again")

    def _answer(self):
        line = self.process.stdout.readline()
        if not line:
            raise FitError(f"{self.process.args[0]} ended with {self.process.wait()}")
        return line

    def verdicts(self, values):
        """[(named cause or "abstain", {cause: confidence}), …] of the incidents."""
        self.process.stdin.write(" ".join(map(repr, values)) + "\n")
        self.process.stdin.flush()
        return json.loads(self._answer())

    def close(self):
        self.process.stdin.close()
        self.process.wait()
        self.file.close()


def surprise(incident, confidences):
    """The negative log-likelihood of the labels, nats."""
    total = 0.0
    for cause, confidence in confidences.items():
        likely = min(max(confidence, CERTAIN), 1 - CERTAIN)
        total -= math.log(likely if cause in incident.labels else 1 - likely)
    return total


def loss(incidents, verdicts):
    return sum(one.weight * surprise(one, confidences) for one, (_, confidences) in zip(incidents, verdicts))


def right(incidents, verdicts):
    """The weight of the incidents whose first cause is right, and of all."""
    good = sum(one.weight for one, (named, _) in zip(incidents, verdicts)
               if (named in one.labels if one.labels else named == "abstain"))
    return good, sum(one.weight for one in incidents)


def belief(values, weights):
    """The penalty for leaving the table's values, nats."""
    return sum(math.log(value / weight.value) ** 2 for value, weight in zip(values, weights)) / (2 * SPREAD ** 2)


def with_value(values, index, value):
    return values[:index] + [value] + values[index + 1:]


def fit(ranker, weights, chosen=None):
    """The values with the smallest sum of loss and penalty that coordinate descent finds. `chosen` selects incidents by index."""
    def judge(values):
        verdicts = ranker.verdicts(values)
        pairs = list(zip(ranker.incidents, verdicts))
        pairs = pairs if chosen is None else [pairs[index] for index in chosen]
        return loss([one for one, _ in pairs], [verdict for _, verdict in pairs]) + belief(values, weights)

    values = [weight.value for weight in weights]
    best = judge(values)
    for _ in range(MAX_SWEEPS):
        before = best
        for index, weight in enumerate(weights):
            if weight.name in HELD:
                continue
            tried = [(judge(with_value(values, index, values[index] * factor)), values[index] * factor)
                     for factor in FACTORS if weight.may_be(values[index] * factor)]
            lowest, value = min(tried)
            if lowest < best - MIN_GAIN:
                best, values = lowest, with_value(values, index, value)
        if best == before:
            break
    return values


@dataclasses.dataclass(frozen=True)
class Importance:
    weight: Weight
    halved: float        # how much larger the loss is, nats
    doubled: float
    absent: float        # at next to nothing
    answers: int         # incidents whose named cause differs in any of these


def importances(ranker, weights):
    values = [weight.value for weight in weights]
    verdicts = ranker.verdicts(values)
    usual, said = loss(ranker.incidents, verdicts), [named for named, _ in verdicts]
    found = []
    for index, weight in enumerate(weights):
        more, changed = [], set()
        for factor in (0.5, 2.0, 1e-3):
            tried = ranker.verdicts(with_value(values, index, weight.value * factor))
            more.append(loss(ranker.incidents, tried) - usual)
            changed |= {at for at, (named, _) in enumerate(tried) if named != said[at]}
        found.append(Importance(weight, *more, len(changed)))
    return found


def incidents_of(trials):
    """The incidents of non-void slow trials, as score.py selects them, that have situations."""
    found = []
    for one in trials:
        truth, situations = one.truth, one.prediction.get("situations")
        if truth["void"] or truth["state"] not in ("effective", "faint") or not situations:
            continue
        mine = [situations[incident["id"]] for incident in score.answer("gpusonde", one).incidents
                if incident["id"] in situations]
        found += [Incident(one.name, one.record["plan"]["victim"], json.dumps(situation), frozenset(truth["causes"]),
                           1 / len(mine)) for situation in mine]
    return found


def trials_of(out, split):
    """The trials of build/bench-diagnose and those kept, each once."""
    found = {one.name: one for trials in kept.Kept.read(split).trials.values() for one in trials}
    if (out / f"predictions-{split}.json").exists():
        found |= {one.name: one for one in score.opened(out, split)}
    return list(found.values())


def held_out(ranker, weights):
    """The loss of each victim's incidents by the table, and by weights fitted to the other victims'; sums."""
    table = fitted = 0.0
    usual = ranker.verdicts([weight.value for weight in weights])
    for victim in sorted({one.victim for one in ranker.incidents}):
        theirs = [index for index, one in enumerate(ranker.incidents) if one.victim == victim]
        others = [index for index, one in enumerate(ranker.incidents) if one.victim != victim]
        verdicts = ranker.verdicts(fit(ranker, weights, others))
        mine = [ranker.incidents[index] for index in theirs]
        table += loss(mine, [usual[index] for index in theirs])
        fitted += loss(mine, [verdicts[index] for index in theirs])
    return table, fitted


def replaced(text, weights, values):
    """weights.h with other values."""
    for weight, value in sorted(zip(weights, values), key=lambda pair: -pair[0].begin):
        if value != weight.value:
            text = text[:weight.begin] + f"{value:.3g}" + text[weight.end:]
    return text


def print_importances(found):
    print(f"{'weight':44} {'value':>8} {'halved':>8} {'doubled':>8} {'absent':>8} answers")
    for one in sorted(found, key=lambda one: -max(abs(one.halved), abs(one.doubled), abs(one.absent))):
        if one.halved or one.doubled or one.absent or one.answers:
            print(f"{one.weight.name:44} {one.weight.value:8.3g} {one.halved:+8.2f} {one.doubled:+8.2f} {one.absent:+8.2f} "
                  f"{one.answers:7}")
    idle = [one.weight.name for one in found if not (one.halved or one.doubled or one.absent or one.answers)]
    print(f"Without any effect on these trials, {len(idle)} of {len(found)}: {', '.join(idle) or 'none'}.")


def describe(split, ranker, values):
    """A line about a split; returns its loss and how many answers are right."""
    verdicts = ranker.verdicts(values)
    good, of = right(ranker.incidents, verdicts)
    total = loss(ranker.incidents, verdicts)
    print(f"  {split}: {good:.1f} of {of:.0f} trials right, loss {total:.2f} nats")
    return total, good


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "build/bench-diagnose")
    parser.add_argument("--build", type=pathlib.Path, default=pathlib.Path(os.environ.get("GPUSONDE_BUILD", ROOT / "build/release")))
    parser.add_argument("--write", action="store_true", help="write the values into weights.h if the test split is no worse")
    arguments = parser.parse_args()
    try:
        program, text = arguments.build / "bin/rank_situations", WEIGHTS.read_text()
        weights = read_table(text)
        splits = {split: incidents_of(trials_of(arguments.out, split)) for split in ("train", "test")}
        if not splits["train"]:
            raise FitError("no slow trial of the train split has situations: run `make bench-diagnose` and `bench.py predict` first")
        rankers = {split: Ranker(program, incidents, weights) for split, incidents in splits.items()}
        train = rankers["train"]
        print(f"{len({one.trial for one in train.incidents})} slow trials of {len({one.victim for one in train.incidents})} "
              f"victims of the train split. Change of the loss, nats, and answers that change, if a weight is …")
        print_importances(importances(train, weights))
        table, values = [weight.value for weight in weights], fit(train, weights)
        for weight, value in zip(weights, values):
            if value != weight.value:
                print(f"fitted: {weight.name} {weight.value:g} → {value:.3g}")
        print("Victims held out, one after the other: loss {:.2f} by the table, {:.2f} fitted to the others.".format(
            *held_out(train, weights)))
        results = {}
        for name, vector in (("table", table), ("fitted", values)):
            print(f"{name}:")
            results[name] = {split: describe(split, ranker, vector) for split, ranker in rankers.items()}
        for ranker in rankers.values():
            ranker.close()
        better = values != table and splits["test"] and all(
            results["fitted"]["test"][at] * sign <= results["table"]["test"][at] * sign for at, sign in ((0, 1), (1, -1)))
        print("The fit is " + ("no worse on the test split." if better else "not taken: it isn't better, or not on the test split."))
        if arguments.write and better:
            WEIGHTS.write_text(replaced(text, weights, values))
    except (FitError, score.NotFrozen, OSError) as error:
        sys.exit(f"fit: {error}")


if __name__ == "__main__":
    main()
