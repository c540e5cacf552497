# SPDX-License-Identifier: Apache-2.0
"""Trials with several faults in one recording: two to four, one after the other or overlapping. Generated from a seed, apart from
the trials of manifest.py, which they leave as they are."""

import contextlib
import dataclasses
import json
import random
import time

import faults
import label
import manifest
import trial

UNSUITED = ("", "hang")  # intended causes: none has no model, and after a hang too little time is left
MIN_CAUSES = 3           # of a victim
LENGTHS = (2, 3, 4)      # links of a chain
FAULT_S = (4.5, 7.0)
APART_S, CLOSE_S, AGAIN_S = (3.0, 8.0), (1.5, 3.0), (1.5, 8.0)
# How a fault follows the one before it: another cause after a long or short gap or in its middle; or the same fault once more.
KINDS = ("apart", "apart", "close", "overlap", "again")
EARLY_S = (3.0, 9.0)     # when the first fault of every fourth chain begins, after the victim's first step
EARLY_SHARE = 0.25
AFTER_S = 8.0
ALONE_NS = 1_500_000_000  # a fault is labelled by the time in which it acts alone, which has to be this long
DRIFT = 1.15              # of calm steps: then what is usual isn't known


@dataclasses.dataclass(frozen=True)
class Link:
    """One fault of a chain."""
    fault: str
    amount: float
    intended: str    # the label if the instruments confirm it
    kind: str        # "first", "early", or one of KINDS
    begin_s: float   # after the victim's first step
    length_s: float

    @property
    def end_s(self):
        return self.begin_s + self.length_s


@dataclasses.dataclass(frozen=True)
class Chain:
    name: str
    split: str
    victim: str
    links: tuple
    after_s: float
    seed: int

    @property
    def clean_s(self):
        return self.links[0].begin_s

    @property
    def fault_s(self):
        return max(link.end_s for link in self.links) - self.clean_s

    def __str__(self):
        return " ".join([self.name, self.victim, *(f"{link.kind}:{link.fault} {link.amount:g}" for link in self.links)])


def name_of(split):
    """The name under which chains of a split are predicted and kept."""
    return f"chains-{split}"


def faults_of_victims(split):
    """{victim: {intended cause: [(fault, amounts), …]}} of the victims that enough causes can slow."""
    found = {}
    for fault, (victims, amounts, intended) in (manifest.TRAIN if split == "train" else manifest.TEST).items():
        if intended not in UNSUITED:
            for victim in victims:
                found.setdefault(victim, {}).setdefault(intended, []).append((fault, amounts))
    return {victim: causes for victim, causes in found.items() if len(causes) >= MIN_CAUSES}


def next_link(generator, causes, before):
    # At most two at a time: what each of three explains can't be told.
    kind = generator.choice([kind for kind in KINDS if kind != "overlap" or before.kind != "overlap"])
    begin_s = before.begin_s + before.length_s / 2
    if kind != "overlap":
        begin_s = before.end_s + generator.uniform(*{"apart": APART_S, "close": CLOSE_S, "again": AGAIN_S}[kind])
    length_s = generator.uniform(*FAULT_S)
    if kind == "again":
        return dataclasses.replace(before, kind=kind, begin_s=round(begin_s, 2), length_s=round(length_s, 2))
    return new_link(generator, causes, kind, begin_s, length_s, before.intended)


def new_link(generator, causes, kind, begin_s, length_s, other_than=None):
    intended = generator.choice([cause for cause in causes if cause != other_than])
    fault, amounts = generator.choice(causes[intended])
    return Link(fault, generator.choice(amounts), intended, kind, round(begin_s, 2), round(length_s, 2))


def make(split, seed, count):
    """`count` chains of the split; deterministic in its arguments."""
    generator = random.Random(f"chains-{split}-{seed}")
    victims = faults_of_victims(split)
    made = []
    for index in range(count):
        victim = generator.choice(list(victims))
        early = generator.random() < EARLY_SHARE
        links = [new_link(generator, victims[victim], "early" if early else "first",
                          generator.uniform(*(EARLY_S if early else manifest.CLEAN_S)), generator.uniform(*FAULT_S))]
        for _ in range(generator.choice(LENGTHS) - 1):
            links.append(next_link(generator, victims[victim], links[-1]))
        made.append(Chain(f"{name_of(split)}-{seed}-{index:03d}", split, victim, tuple(links), AFTER_S, generator.randrange(1 << 30)))
    return made


class ChainTrial(trial.Trial):
    def disturb(self):
        """Each link's `begin_ns` and `end_ns` enclose its start and its end, which take time."""
        first_s, first = self.plan.clean_s, time.monotonic()
        changes = sorted((at_s, number) for number, link in enumerate(self.plan.links) for at_s in (link.begin_s, link.end_s))
        links = [{} for _ in self.plan.links]
        with contextlib.ExitStack() as every:
            stacks = [every.enter_context(contextlib.ExitStack()) for _ in links]
            for at_s, number in changes:
                self.sleep(max(0.0, first + at_s - first_s - time.monotonic()))
                link, now_ns = links[number], time.monotonic_ns()
                if "begin_ns" in link:
                    stacks[number].close()
                    link |= {"inactive_ns": now_ns, "end_ns": time.monotonic_ns()}
                else:
                    planned = self.plan.links[number]
                    stacks[number].enter_context(faults.FAULTS[planned.fault](self, planned.amount))
                    link |= {"begin_ns": now_ns, "active_ns": time.monotonic_ns()}
        return {"begin_ns": links[0]["begin_ns"], "end_ns": max(link["end_ns"] for link in links), "links": links}


def without(windows, begin_ns, end_ns):
    """The windows' parts before and after a stretch of time."""
    parts = [part for begin, end in windows for part in ((begin, min(end, begin_ns)), (max(begin, end_ns), end))]
    return [(begin, end) for begin, end in parts if begin < end]


def alone(links, number):
    """The windows in which only one link is active."""
    windows = [(links[number]["active_ns"], links[number]["inactive_ns"])]
    for other, link in enumerate(links):
        if other != number:
            windows = without(windows, link["begin_ns"], link["end_ns"])
    return windows


def has_drifted(steps, calm, begin_ns):
    """Whether calm steps after the first fault began differ from those before."""
    calm_steps = label.enclosed(steps, calm)
    before = [step for step in calm_steps if step[1] <= begin_ns]
    after = [step for step in calm_steps if step[0] >= begin_ns]
    if len(before) < 10 or len(after) < 10:
        return False
    ratio = label.mean_ms(after) / label.mean_ms(before)
    return not 1 / DRIFT <= ratio <= DRIFT


def label_link(folder, record, steps, samples, calm, number, void):
    """A link's label: as label.label, by the time in which only this fault acts."""
    link, plan = record["links"][number], record["plan"]["links"][number]
    active = alone(record["links"], number)
    before, during = label.enclosed(steps, calm), label.touching(steps, active)
    made = {"begin_ns": link["begin_ns"], "end_ns": link["end_ns"], "kind": plan["kind"], "fault": plan["fault"],
            "causes": [], "slowdown": None}
    if len(before) < 10 or not during or sum(end - begin for begin, end in active) < ALONE_NS:
        return made | {"state": "unclear"}
    ms_before, ms_during = label.mean_ms(before), label.mean_ms(during)
    made |= {"slowdown": round(ms_during / ms_before, 3), "ms_before": round(ms_before, 2), "ms_during": round(ms_during, 2),
             "state": label.state_of(ms_during / ms_before)}
    if made["state"] == "negative":
        slow = (label.is_slow_from(steps, link["end_ns"], label.RECOVERY_NS, ms_before)
                or label.has_slow_stretch(steps, link["begin_ns"], link["end_ns"], ms_before))
        return made | ({"state": "unclear"} if slow else {})
    of_link = record | {"plan": {"intended": plan["intended"]}}
    explained = label.mechanisms(of_link, samples, calm, active, before, during)
    explained["late_rank"] = label.late_rank_ms(folder, calm, active)
    causes = label.causes_of(of_link, samples, calm, active, explained, ms_before, ms_during, void is not None)
    if not causes:  # what slowed it isn't known
        made["state"] = "unclear"
    return made | {"causes": causes, "explained_ms": {name: round(ms, 2) for name, ms in explained.items()}}


def label_of(folder):
    """The label of a chain's trial: `void`, and the label of each link."""
    record = json.loads((folder / "trial.json").read_text())
    steps, samples = label.read_steps(folder), label.read_samples(folder)
    first_ns = steps[0][0] + label.SETTLE_NS
    calm = [(first_ns, steps[-1][1])]
    for link in record["links"]:
        calm = without(calm, link["begin_ns"], link["end_ns"] + label.RECOVERY_NS)
    intended = [link["intended"] for link in record["plan"]["links"]]
    interrupts = {"intended": "interrupt_pressure" if "interrupt_pressure" in intended else ""}
    void = label.void_reason(record | {"plan": interrupts}, samples, [(first_ns, record["end_ns"])])
    if void is None and has_drifted(steps, calm, record["begin_ns"]):
        void = "no recovery"
    return {"void": void,
            "links": [label_link(folder, record, steps, samples, calm, number, void) for number in range(len(intended))]}
