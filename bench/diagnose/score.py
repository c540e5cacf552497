# SPDX-License-Identifier: Apache-2.0
"""Opens the labels and compares frozen predictions with them. Of gpusonde it uses only the JSON output."""

import collections
import dataclasses
import datetime
import hashlib
import json

import label
import measures

CONFIDENT = 0.5
GRACE_NS = 3_000_000_000  # an incident that begins up to this long after the fault still counts
ASKED = ("gpusonde", "rule", "zscore", "excess")
SIMULATED = {"gpu_clocks", "gpu_fault", "gpu_neighbour", "pcie_pressure"}
LARGER = 1.25       # the ratio from which on one of two mechanisms counts as larger
EASY = 0.05         # the benchmark is too easy if a simple rule comes this close
DELAYED_FROM = 1.5  # the slow-down from which on delays are reported
# Required for a claim: effective trials and victims per cause, negatives, trials of two causes.
CAUSE_TRIALS, CAUSE_VICTIMS, NEGATIVES, TWOS = 40, 3, 236, 76
SEEN_S, SEEN_STEPS, NAMED_S = 1.0, 3, 1.0  # goals: detected after the later of these, its cause named this much later


class NotFrozen(RuntimeError):
    pass


@dataclasses.dataclass(frozen=True)
class Answer:
    """The answer to one trial."""
    first: str  # first cause named, or "abstain" or "none"
    named: tuple = ()  # causes, in the order named
    confidence: float | None = None  # of the first, if that is a cause
    root: str | None = None  # behind a straggler
    incidents: tuple = ()  # gpusonde's incidents in the window


@dataclasses.dataclass(frozen=True)
class Trial:
    """A trial whose label was opened."""
    name: str
    record: dict
    truth: dict
    prediction: dict

    def kind(self):
        """The kind of its labels; kinds are never pooled."""
        causes = set(self.truth["causes"])
        if not causes:
            return "no model"
        if causes == {"slow_cpu"}:
            return "slow_cpu"  # reported separately, as there are no hardware counters
        collective = {"straggler"} | ({"hang"} if self.record.get("rank_pids") else set())
        kinds = {"simulated" if cause in SIMULATED else "collective" if cause in collective else "host" for cause in causes}
        return kinds.pop() if len(kinds) == 1 else "mixed"

    def expected(self):
        return self.truth["causes"] or ["abstain"]  # slow without a confirmed mechanism


def log_opening(out, split, why):
    """Logs that labels are opened."""
    with open(out / "openings.log", "a", encoding="utf-8") as log:
        log.write(f"{datetime.datetime.now(datetime.timezone.utc):%Y-%m-%dT%H:%M:%SZ} {split} {why}\n")


def open_predictions(out, split):
    text = (out / f"predictions-{split}.json").read_text()
    frozen = (out / f"predictions-{split}.sha256").read_text().strip()
    if hashlib.sha256(text.encode()).hexdigest() != frozen:
        raise NotFrozen(f"predictions-{split}.json differs from what was frozen: predict again")
    log_opening(out, split, frozen)
    return json.loads(text)


def incidents_within(prediction, begin_ns, end_ns, offset_ns, pid=None):
    """Incidents that overlap the window (CLOCK_MONOTONIC), the longest overlap first; only those of one process if its pid is
    known."""
    found = []
    for incident in prediction["replayed"]["incidents"]:
        if pid is not None and incident.get("pid", pid) != pid:
            continue
        start_ns = incident["start_ns"] - offset_ns
        stop_ns = (incident["end_ns"] or 1 << 62) - offset_ns
        overlap_ns = min(stop_ns, end_ns) - max(start_ns, begin_ns)
        if overlap_ns > 0:
            found.append((overlap_ns, incident))
    found.sort(key=lambda pair: -pair[0])
    return [incident for _, incident in found]


def confident(incident):
    """{cause: confidence} of the causes that an incident names, in order."""
    if incident["cause"] == "abstain":
        return {}
    return {cause["cause"]: cause["confidence"] for cause in incident["causes"] if cause["confidence"] >= CONFIDENT}


def root_told(incidents):
    """The root that was named behind a straggler; None if there is none."""
    for incident in incidents:
        if "straggler" in confident(incident):
            for evidence in incident.get("evidence", ()):
                if evidence["signal"].startswith("root."):
                    return evidence["signal"].removeprefix("root.")
    return None


def answer_of(incidents):
    if not incidents:
        return Answer("none")
    sure = {}
    for incident in incidents:
        for cause, confidence in confident(incident).items():
            sure.setdefault(cause, confidence)
    first = incidents[0]["cause"]
    if first == "abstain" and sure:  # one of the incidents of the same disturbance names a cause
        first = next(incident["cause"] for incident in incidents if incident["cause"] != "abstain")
    return Answer(first, tuple(sure), sure.get(first), root_told(incidents), tuple(incidents))


def answer(who, trial):
    """`who`'s answer to a trial."""
    if who != "gpusonde":
        causes = trial.prediction["baselines"][who]
        return Answer(causes[0] if causes else "none", tuple(causes))
    record = trial.record
    return answer_of(incidents_within(trial.prediction, record["begin_ns"] - GRACE_NS // 3, record["end_ns"] + GRACE_NS,
                                      record["epoch_offset_ns"], record.get("logged_pid")))


def without(incident, left_out):
    """The incident as it would be if a cause didn't exist. Each cause is judged independently, so the others don't change."""
    causes = [cause for cause in incident["causes"] if cause["cause"] != left_out]
    cause = incident["cause"]
    if cause == left_out:
        cause = causes[0]["cause"] if causes and causes[0]["confidence"] >= CONFIDENT else "abstain"
    return incident | {"cause": cause, "causes": causes}


def opened(out, split, label_of=label.label):
    """[Trial, …] of all frozen predictions, with their labels."""
    trials = []
    for name, prediction in open_predictions(out, split).items():
        folder = out / "trials" / name
        record = json.loads((folder / "trial.json").read_text())
        trials.append(Trial(name, record, label_of(folder), prediction))
    return trials


def failures(out, split):
    """[the file with the reason, for each trial that could not be run]"""
    return sorted((out / "trials").glob(f"{split}-*/failed.txt"))


def score(out, split, with_foreign_load):
    return {"split": split, "failed": len(failures(out, split))} | compare(opened(out, split), with_foreign_load)


def compare(trials, with_foreign_load):
    """The result for opened trials."""
    voids = [trial.truth["void"] for trial in trials if trial.truth["void"]]
    used = [trial for trial in trials
            if trial.truth["state"] != "unusable" and (with_foreign_load or not trial.truth["void"])]
    effective = [trial for trial in used if trial.truth["state"] == "effective"]
    asked = {who: judge(who, used) for who in ASKED
             if who == "gpusonde" or all(who in trial.prediction["baselines"] for trial in trials)}
    right = {who: one["effective"]["right"] for who, one in asked.items()}
    easy = [who for who in right if who != "gpusonde" and right[who] >= right["gpusonde"] - EASY * len(effective)]
    causes, both = by_cause(effective), twos(effective)
    return {"foreign_load": bool(with_foreign_load and voids), "trials": len(trials), "void": len(voids),
            "short_of": short_of(causes, asked["gpusonde"]["negatives"], both["of"]),
            "void_reasons": dict(sorted(collections.Counter(reason.rstrip(" %.0123456789") for reason in voids).items())),
            "used": len(used), "asked": asked, "too_easy_for": easy if effective else [], "causes": causes,
            "calibration": calibration(used), "left_out": left_out(effective), "roots": roots(effective),
            "twos": both, "delays": delays(effective), "details": [detail(trial) for trial in used]}


def detail(trial):
    verdict, plan, truth = answer("gpusonde", trial), trial.record["plan"], trial.truth
    return {"trial": trial.name, "victim": plan["victim"], "fault": plan["fault"], "amount": plan["amount"],
            "shape": plan["shape"], "state": truth["state"], "slowdown": truth["slowdown"], "labels": truth["causes"],
            "root": truth.get("root"), "said": verdict.first, "named": sorted(verdict.named), "root_said": verdict.root,
            "confidence": verdict.confidence, "void": truth["void"], "explained_ms": truth["explained_ms"],
            "excess_ms": round(truth["ms_during"] - truth["ms_before"], 2)}


def rightness(who, trials):
    """How often the first cause named is one of the labels, and how often anything was detected."""
    right, pairs, seen, confusion = [], [], [], collections.Counter()
    for trial in trials:
        first = answer(who, trial).first
        right.append(int(first in trial.expected()))
        seen.append(int(first != "none"))
        if trial.truth["causes"]:
            pairs.append((set(trial.expected()), first))
        confusion["+".join(trial.expected()) + " → " + first] += 1
    bound = measures.lower_bound(sum(right), len(right))
    return {"trials": len(right), "right": sum(right), "accuracy": measures.interval(right),
            "lower_bound": None if bound is None else round(bound, 4), "macro_f1": measures.macro_f1(pairs),
            "seen": measures.interval(seen), "confusion": dict(sorted(confusion.items()))}


def judge(who, used):
    """Effective trials, faint trials and negatives separately; effective ones also by the kind of their causes."""
    kinds = collections.defaultdict(list)
    apart = collections.defaultdict(list)
    for trial in used:
        apart[trial.truth["state"]].append(trial)
        if trial.truth["state"] == "effective":
            kinds[trial.kind()].append(trial)
    alarms = sum(answer(who, trial).first != "none" for trial in apart["negative"])
    bound = measures.upper_bound(alarms, len(apart["negative"]))
    return {"effective": rightness(who, apart["effective"]), "faint": rightness(who, apart["faint"]),
            "kinds": {kind: rightness(who, kinds[kind]) for kind in sorted(kinds)},
            "negatives": len(apart["negative"]), "false_alarms": alarms,
            "false_alarms_upper_bound": None if bound is None else round(bound, 4)}


def by_cause(effective):
    """{label: number of trials, of victims, and how often gpusonde was right}"""
    made = {}
    for trial in effective:
        for cause in trial.truth["causes"]:
            one = made.setdefault(cause, {"trials": 0, "right": 0, "victims": set()})
            one["trials"] += 1
            one["right"] += int(answer("gpusonde", trial).first in trial.truth["causes"])
            one["victims"].add(trial.record["plan"]["victim"])
    return {cause: one | {"victims": len(one["victims"]),
                          "lower_bound": round(measures.lower_bound(one["right"], one["trials"]), 4)}
            for cause, one in sorted(made.items())}


def short_of(causes, negatives, pairs):
    """What is missing for a claim, as text."""
    lacks = [f"{cause}: {one['trials']} trials of {CAUSE_TRIALS}, {one['victims']} victims of {CAUSE_VICTIMS}"
             for cause, one in causes.items() if one["trials"] < CAUSE_TRIALS or one["victims"] < CAUSE_VICTIMS]
    lacks += [f"{have} {what} of {want}" for have, want, what in (
        (negatives, NEGATIVES, "negatives"), (pairs, TWOS, "trials of two causes")) if have < want]
    return lacks


def calibration(used):
    """Calibration over the first causes named on any trial; a cause named on a negative is wrong. Risk and coverage are over
    effective trials: the share that is answered with at least some confidence, and the share of these answers that is wrong."""
    claims, answered, asked = [], [], 0
    for trial in used:
        verdict = answer("gpusonde", trial)
        claim = None if verdict.confidence is None else (verdict.confidence, int(verdict.first in trial.truth["causes"]))
        if claim:
            claims.append(claim)
        if trial.truth["state"] == "effective":
            asked += 1
            answered += [claim] if claim else []
    return {"reliability": measures.calibration(claims), "risk_coverage": measures.risk_coverage(answered, asked)}


def left_out(effective):
    """By cause: the answers to trials whose only label it is, without that cause's verdicts. *abstain* is right."""
    made = {}
    for trial in effective:
        if len(trial.truth["causes"]) == 1:
            (cause,) = trial.truth["causes"]
            said = answer_of([without(incident, cause) for incident in answer("gpusonde", trial).incidents]).first
            made.setdefault(cause, collections.Counter())[said] += 1
    return {cause: {"trials": sum(said.values()), "abstains": said["abstain"], "unseen": said["none"],
                    "wrong": {name: count for name, count in sorted(said.items()) if name not in ("abstain", "none")}}
            for cause, said in sorted(made.items())}


def roots(effective):
    """For trials with a straggler as a label: how often it was named, and how often the root was right. The root is scored if the
    label has one, whether or not the straggler was named."""
    made = {"of": 0, "proximate_named": 0, "roots_known": 0, "root_right": 0, "confusion": collections.Counter()}
    for trial in effective:
        if "straggler" not in trial.truth["causes"]:
            continue
        verdict = answer("gpusonde", trial)
        made["of"] += 1
        made["proximate_named"] += int("straggler" in verdict.named)
        if trial.truth.get("root"):
            made["roots_known"] += 1
            made["root_right"] += int(verdict.root == trial.truth["root"])
            made["confusion"][f"{trial.truth['root']} → {verdict.root or 'none'}"] += 1
    return made | {"confusion": dict(sorted(made["confusion"].items()))}


def in_order(verdict, cause_ms):
    """Whether two causes are named in the order of their ms. If neither is clearly larger, either order is right."""
    large, small = sorted(cause_ms, key=cause_ms.get, reverse=True)[:2]
    if cause_ms[large] < LARGER * cause_ms[small]:
        return True
    for incident in verdict.incidents:
        names = list(confident(incident))
        if large in names and small in names:
            return names.index(large) < names.index(small)
    return False  # causes in different incidents have no order


def twos(effective):
    """For trials with two mechanisms as labels: how often both were named, in the order of their ms, and without a third."""
    made = {"of": 0, "both_named": 0, "in_order": 0, "no_third": 0, "all": 0}
    for trial in effective:
        truth = set(trial.truth["causes"])
        if len(truth) < 2:
            continue
        verdict = answer("gpusonde", trial)
        both = truth <= set(verdict.named)
        ordered = both and in_order(verdict, trial.truth["cause_ms"])
        alone = set(verdict.named) <= truth
        for name, holds in (("of", True), ("both_named", both), ("in_order", ordered), ("no_third", alone),
                            ("all", ordered and alone)):
            made[name] += int(holds)
    return made


def delays(effective):
    """For slow-downs of at least 1.5: seconds from the end of the first slow step, and from the onset, until live detection, and
    until a right cause was named. Trials that were never detected or named have no delay: they count in `of`, and are late. p95
    is None if too many were never detected. Only slow-downs with a cause can be named."""
    made = {"of": 0, "with_cause": 0, "seen_s": [], "named_s": [], "seen_from_onset_s": [], "seen_in_time": 0, "named_in_time": 0}
    for trial in effective:
        record, truth = trial.record, trial.truth
        if truth["slowdown"] < DELAYED_FROM or not truth["first_slow_ns"]:
            continue
        made["of"] += 1
        made["with_cause"] += int(bool(truth["causes"]))
        offset_ns = record["epoch_offset_ns"]
        during = [one for one in trial.prediction["live"] if one["seen_ns"] is not None
                  and record["begin_ns"] <= one["seen_ns"] - offset_ns <= record["end_ns"] + GRACE_NS]
        if not during:
            continue
        seen_ns = min(one["seen_ns"] for one in during) - offset_ns
        seen_s = (seen_ns - truth["first_slow_ns"]) / 1e9
        made["seen_s"].append(round(seen_s, 2))
        made["seen_from_onset_s"].append(round((seen_ns - record["begin_ns"]) / 1e9, 2))
        made["seen_in_time"] += int(seen_s <= max(SEEN_S, SEEN_STEPS * truth["ms_during"] / 1e3))
        named = [one["named_ns"] - offset_ns for one in during
                 if one["named_ns"] is not None and one["cause"] in truth["causes"]]
        if named:
            made["named_s"].append(round((min(named) - truth["first_slow_ns"]) / 1e9, 2))
            made["named_in_time"] += int(min(named) - seen_ns <= NAMED_S * 1e9)
    for name in ("seen", "named", "seen_from_onset"):
        of = made["with_cause" if name == "named" else "of"]
        late = [float("inf")] * (of - len(made[f"{name}_s"]))
        p95 = measures.quantile(made[f"{name}_s"] + late, 0.95) if of else None
        made[f"{name}_p95_s"] = None if p95 == float("inf") else p95
    return made
