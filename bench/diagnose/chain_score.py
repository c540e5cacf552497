# SPDX-License-Identifier: Apache-2.0
"""Compares frozen predictions with the labels of chains: whether each fault has an incident of its own with the right cause, and
which incidents are too many. Reported apart from the accuracy of score.py."""

import collections

import measures
import score

EARLY_NS = 1_000_000_000  # the onset of an incident may be estimated this much too early
COVERED_NS = 1_000_000_000
# right: the first cause of its own incident (the one that began during it) is a label
# wrong: it is another, or none
# joined: it shares an incident with another fault, of which that names the other's label first and this one's as well
# swallowed: it has no incident of its own, and the one that another fault began doesn't name it
# undetected: there is no incident at its time
OUTCOMES = ("right", "wrong", "joined", "swallowed", "undetected")


def incidents_of(prediction, record):
    """[(begin, end, incident), …] of the process whose steps are logged; CLOCK_MONOTONIC, by begin."""
    offset_ns, pid = record["epoch_offset_ns"], record.get("logged_pid")
    return sorted(((one["start_ns"] - offset_ns, (one["end_ns"] or 1 << 62) - offset_ns, one)
                   for one in prediction["replayed"]["incidents"] if pid is None or one.get("pid", pid) == pid),
                  key=lambda found: found[0])


def owner(begin_ns, links):
    """The number of the link during or shortly after which an incident began, the latest of several; None if there is none."""
    during = [number for number, link in enumerate(links)
              if link["begin_ns"] - EARLY_NS <= begin_ns < link["end_ns"] + score.GRACE_NS]
    return max(during, key=lambda number: links[number]["begin_ns"], default=None)


def covers(begin_ns, end_ns, link):
    """Whether an incident overlaps a link by a second, or half of it."""
    length_ns = link["end_ns"] - link["begin_ns"]
    return min(end_ns, link["end_ns"]) - max(begin_ns, link["begin_ns"]) >= min(COVERED_NS, length_ns // 2)


def outcome(number, links, found):
    """One of OUTCOMES, and the first cause named."""
    link = links[number]
    own = sorted((one for one in found if owner(one[0], links) == number),
                 key=lambda one: max(one[0], link["begin_ns"]) - min(one[1], link["end_ns"]))
    if own:
        answer = score.answer_of([incident for _, _, incident in own])
        if answer.first in link["causes"]:
            return "right", answer.first
        shared = {cause for other in links for begin_ns, end_ns, _ in own if covers(begin_ns, end_ns, other) for cause in other["causes"]}
        joined = answer.first in shared and set(answer.named) & set(link["causes"])
        return ("joined" if joined else "wrong"), answer.first
    others = [incident for begin_ns, end_ns, incident in found if covers(begin_ns, end_ns, link)]
    if not others:
        return "undetected", "none"
    named = [cause for incident in others for cause in score.confident(incident)]
    right = [cause for cause in named if cause in link["causes"]]
    return ("joined", right[0]) if right else ("swallowed", others[0]["cause"])


def judge(trial):
    """What became of each link and each incident of a trial."""
    links, found = trial.truth["links"], incidents_of(trial.prediction, trial.record)
    owners = [owner(begin_ns, links) for begin_ns, _, _ in found]
    false = [incident["cause"] for number, (_, _, incident) in zip(owners, found)
             if number is None or links[number]["state"] == "negative"]
    extra = sum(count - 1 for number, count in collections.Counter(owners).items()
                if number is not None and links[number]["state"] != "negative")
    stray = []
    for begin_ns, end_ns, incident in found:
        covered = [link for number, link in enumerate(links) if covers(begin_ns, end_ns, link) or owner(begin_ns, links) == number]
        if covered and all(link["state"] == "effective" for link in covered):
            known = {cause for link in covered for cause in link["causes"]}
            stray += [cause for cause in score.confident(incident) if cause not in known]
    judged = []
    for number, link in enumerate(links):
        if link["state"] in ("effective", "faint"):
            became, said = outcome(number, links, found)
            judged.append({"kind": link["kind"], "fault": link["fault"], "state": link["state"], "slowdown": link["slowdown"],
                           "labels": link["causes"], "outcome": became, "said": said})
    return {"trial": trial.name, "victim": trial.record["plan"]["victim"], "void": trial.truth["void"], "links": judged,
            "incidents": len(found), "extra": extra, "false": false, "stray": stray}


def compare(trials, with_foreign_load):
    """The result for opened trials."""
    voids = [trial for trial in trials if trial.truth["void"]]
    details = [judge(trial) for trial in trials if with_foreign_load or not trial.truth["void"]]
    effective = [link for one in details for link in one["links"] if link["state"] == "effective"]
    faint = [link for one in details for link in one["links"] if link["state"] == "faint"]
    right = sum(link["outcome"] == "right" for link in effective)
    bound = measures.lower_bound(right, len(effective))
    kinds = collections.defaultdict(collections.Counter)
    for link in effective:
        kinds[link["kind"]][link["outcome"]] += 1
    return {"foreign_load": bool(with_foreign_load and voids), "trials": len(trials), "void": len(voids), "used": len(details),
            "faults": len(effective), "right": right, "lower_bound": None if bound is None else round(bound, 4),
            "outcomes": {name: sum(link["outcome"] == name for link in effective) for name in OUTCOMES},
            "kinds": {kind: dict(counts) for kind, counts in sorted(kinds.items())},
            "faint": len(faint), "faint_found": sum(link["outcome"] != "undetected" for link in faint),
            "extra": sum(one["extra"] for one in details), "false": sum(len(one["false"]) for one in details),
            "stray": sum(len(one["stray"]) for one in details), "details": details}


def text(result):
    """Formats a result."""
    lines = [f"{result['split']}: {result['trials']} trials, {result['failed']} failed, {result['void']} void, "
             f"{result['used']} used" + (" WITH FOREIGN LOAD: no accuracy" if result["foreign_load"] else "")]
    if "program" in result:
        lines.append(f"build (hash of the program): {result['program']}")
    lines.append(f"{result['faults']} faults: " + ", ".join(f"{count} {name}" for name, count in result["outcomes"].items())
                 + f"; right at least {result['lower_bound']} (one-sided 95 %)")
    lines += [f"  {kind}: " + ", ".join(f"{count} {name}" for name, count in counts.items())
              for kind, counts in result["kinds"].items()]
    lines.append(f"faint faults (1.05 to 1.15×): {result['faint_found']} of {result['faint']} found")
    lines.append(f"incidents too many: {result['extra']} of a fault that has one already, {result['false']} false; "
                 f"causes of no fault at that time: {result['stray']}")
    for one in result["details"]:
        lines.append(f"  {one['trial']} {one['victim']}: {one['incidents']} incidents, {one['extra']} extra, "
                     f"false {one['false']}, stray {one['stray']}" + (f" | {one['void']}" if one["void"] else ""))
        lines += [f"    {link['kind']} {link['fault']}: {link['state']} {link['slowdown']}× {'+'.join(link['labels']) or '-'} | "
                  f"{link['outcome']}, said {link['said']}" for link in one["links"]]
    return "\n".join(lines)
