# SPDX-License-Identifier: Apache-2.0
"""Opens the labels and compares frozen predictions with them. Knows nothing of gpusonde but its answers as JSON."""

import collections
import datetime
import hashlib
import json
import random
import statistics

import label

CONFIDENT = 0.5
GRACE_NS = 3_000_000_000  # an incident that begins so shortly after the fault ended still counts as its
RESAMPLES = 2000
ASKED = ("gpusonde", "rule", "zscore", "excess")


class NotFrozen(RuntimeError):
    pass


def open_predictions(out, split):
    text = (out / f"predictions-{split}.json").read_text()
    frozen = (out / f"predictions-{split}.sha256").read_text().strip()
    if hashlib.sha256(text.encode()).hexdigest() != frozen:
        raise NotFrozen(f"predictions-{split}.json is not what was frozen: predict again")
    with open(out / "openings.log", "a", encoding="utf-8") as log:
        log.write(f"{datetime.datetime.now(datetime.timezone.utc):%Y-%m-%dT%H:%M:%SZ} {split} {frozen}\n")
    return json.loads(text)


def incidents_within(prediction, begin_ns, end_ns, offset_ns, pid=None):
    """Incidents that touch the window (CLOCK_MONOTONIC), the longest within it first; of one process's steps where its
    pid is known."""
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


def answer(name, prediction, record):
    """(first cause: a name, "abstain" or "none"; all that are named) of one who was asked."""
    if name != "gpusonde":
        causes = prediction["baselines"][name]
        return (causes[0] if causes else "none"), set(causes)
    incidents = incidents_within(prediction, record["begin_ns"] - GRACE_NS // 3, record["end_ns"] + GRACE_NS,
                                 record["epoch_offset_ns"], record.get("logged_pid"))
    if not incidents:
        return "none", set()
    named = {cause["cause"] for incident in incidents for cause in incident["causes"]
             if cause["confidence"] >= CONFIDENT and incident["cause"] != "abstain"}
    first = incidents[0]["cause"]
    if first == "abstain" and named:  # the same disturbance, found out about in one of its incidents
        first = next(incident["cause"] for incident in incidents if incident["cause"] != "abstain")
    return first, named


def interval(outcomes):
    """(mean, lower, upper) of a list of 0 and 1: 95 %, by a bootstrap over runs."""
    if not outcomes:
        return None
    generator = random.Random(1)
    means = sorted(statistics.fmean(generator.choices(outcomes, k=len(outcomes))) for _ in range(RESAMPLES))
    return [round(statistics.fmean(outcomes), 3), round(means[int(0.025 * RESAMPLES)], 3),
            round(means[int(0.975 * RESAMPLES)], 3)]


def macro_f1(pairs):
    """Of (labels, first cause); over the causes that are labels."""
    causes = {cause for labels, _ in pairs for cause in labels}
    scores = []
    for cause in causes:
        right = sum(cause in labels and first == cause for labels, first in pairs)
        said = sum(first == cause for _, first in pairs)
        was = sum(cause in labels and (first not in labels or first == cause) for labels, first in pairs)
        scores.append(2 * right / (said + was) if said + was else 0.0)
    return round(statistics.fmean(scores), 3) if scores else None


def score(out, split, with_foreign_load):
    predictions = open_predictions(out, split)
    trials = []
    failed = len(list((out / "trials").glob(f"{split}-*/failed.txt")))
    for name, prediction in predictions.items():
        folder = out / "trials" / name
        record = json.loads((folder / "trial.json").read_text())
        trials.append((name, record, label.label(folder), prediction))
    void = [made["void"] for _, _, made, _ in trials if made["void"]]
    used = [one for one in trials if one[2]["state"] != "unusable" and (with_foreign_load or not one[2]["void"])]
    result = {"split": split, "foreign_load": bool(with_foreign_load and void), "trials": len(trials), "failed": failed,
              "void": len(void), "used": len(used), "asked": {}, "details": []}
    result["delays"] = delays(used)
    result["twos"] = twos(used)
    for who in ASKED:
        result["asked"][who] = judge(who, used)
    for name, record, made, prediction in used:
        first, named = answer("gpusonde", prediction, record)
        result["details"].append({
            "trial": name, "victim": record["plan"]["victim"], "fault": record["plan"]["fault"],
            "amount": record["plan"]["amount"], "shape": record["plan"]["shape"], "state": made["state"],
            "slowdown": made["slowdown"], "labels": made["causes"], "said": first, "named": sorted(named),
            "void": made["void"], "explained_ms": made["explained_ms"],
            "excess_ms": round(made["ms_during"] - made["ms_before"], 2)})
    return result


def delays(used):
    """Seconds from the end of the first slow step, and from the fault's onset, until an incident was seen and until a
    right cause was named, live, of effective trials with a slow-down of at least 1.5. Of those that were never seen or
    named there is no delay: they count in `of`."""
    made = {"of": 0, "seen_s": [], "named_s": [], "seen_from_onset_s": [], "first_three_steps_s": []}
    for _, record, truth, prediction in used:
        if truth["state"] != "effective" or truth["slowdown"] < 1.5 or not truth["first_slow_ns"]:
            continue
        made["of"] += 1
        offset_ns = record["epoch_offset_ns"]
        during = [one for one in prediction["live"] if one["seen_ns"] is not None
                  and record["begin_ns"] <= one["seen_ns"] - offset_ns <= record["end_ns"] + GRACE_NS]
        if not during:
            continue
        first = min(during, key=lambda one: one["seen_ns"])
        seen_ns = first["seen_ns"] - offset_ns
        made["seen_s"].append(round((seen_ns - truth["first_slow_ns"]) / 1e9, 2))
        made["seen_from_onset_s"].append(round((seen_ns - record["begin_ns"]) / 1e9, 2))
        made["first_three_steps_s"].append(round(3 * truth["ms_during"] / 1e3, 2))
        named = [one["named_ns"] - offset_ns for one in during
                 if one["named_ns"] is not None and one["cause"] in truth["causes"]]
        if named:
            made["named_s"].append(round((min(named) - truth["first_slow_ns"]) / 1e9, 2))
    return made


def twos(used):
    """Of trials in which two mechanisms are labels: how often both were named, and how often without a third."""
    made = {"of": 0, "both_named": 0, "no_third": 0}
    for _, record, truth, prediction in used:
        if truth["state"] != "effective" or len(truth["causes"]) < 2:
            continue
        _first, named = answer("gpusonde", prediction, record)
        made["of"] += 1
        made["both_named"] += int(set(truth["causes"]) <= named)
        made["no_third"] += int(named <= set(truth["causes"]))
    return made


def judge(who, used):
    right, confusion, pairs, alarms, faint = [], collections.Counter(), [], [], []
    for _, record, made, prediction in used:
        first, _named = answer(who, prediction, record)
        if made["state"] == "negative":
            alarms.append(int(first != "none"))
            continue
        expected = made["causes"] or ["abstain"]  # slow, and no mechanism was confirmed
        hit = int(first in expected)
        if made["state"] == "faint":
            faint.append(hit)
            continue
        right.append(hit)
        if made["causes"]:
            pairs.append((set(expected), first))
        confusion["+".join(expected) + " → " + first] += 1
    return {"effective": len(right), "accuracy": interval(right), "macro_f1": macro_f1(pairs),
            "seen": interval([int(not key.endswith("→ none")) for key, count in confusion.items() for _ in range(count)]),
            "confusion": dict(sorted(confusion.items())), "negatives": len(alarms), "false_alarms": sum(alarms),
            "faint": len(faint), "faint_right": sum(faint)}


def text(result):
    lines = [f"{result['split']}: {result['trials']} trials, {result['failed']} failed, {result['void']} void, "
             f"{result['used']} used" + (" WITH FOREIGN LOAD: no accuracy" if result["foreign_load"] else "")]
    for who, judged in result["asked"].items():
        lines.append(f"{who}: {judged['effective']} effective, right {judged['accuracy']}, macro-F1 {judged['macro_f1']}, "
                     f"seen {judged['seen']}, false alarms {judged['false_alarms']} of {judged['negatives']}")
        if who == "gpusonde":
            lines += [f"    {count}× {key}" for key, count in judged["confusion"].items()]
    lines.append("two causes at once: {of}, both named {both_named}, no third {no_third}".format(**result["twos"]))
    waited = result["delays"]
    for name in ("seen_s", "seen_from_onset_s", "named_s"):
        if waited[name]:
            ordered = sorted(waited[name])
            lines.append(f"{name}: median {statistics.median(ordered):.2f}, most {ordered[-1]:.2f}, {len(ordered)} of "
                         f"{waited['of']} slow-downs of at least 1.5×")
    for one in result["details"]:
        lines.append(f"  {one['trial']} {one['victim']} {one['fault']} {one['amount']:g} {one['shape']}: {one['state']} "
                     f"{one['slowdown']}× {'+'.join(one['labels']) or '-'} | said {one['said']} {one['named']}"
                     + (f" | {one['void']}" if one["void"] else ""))
    return "\n".join(lines)
