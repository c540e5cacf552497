# SPDX-License-Identifier: Apache-2.0
"""Simple rules for the same question: what is wrong in this window? They read the instruments' samples, and the victim's
step log in place of a detector. They don't know the onset, and none reads labels.

- rule: ingero's (p99 over p50 of step times of at least 3 in 10 s, together with switches, retransmits or CPU > 90 %).
- zscore: the signal with the largest z-score.
- excess: the signal with the largest additional time per step.
"""

import statistics

import label
import measures

WINDOW_NS = 10_000_000_000
SIGNALS = {
    "cpu_contention": lambda sample: sample["pressure_ns"]["cpu"],
    "block_io": lambda sample: sample["pressure_ns"]["io"],
    "memory_pressure": lambda sample: sample["pressure_ns"]["memory"],
    "slow_data_loading": lambda sample: sample["cpu_ns"]["victim"],
}


def series(samples, value):
    """[(time, growth per second), …]"""
    made = []
    for before, after in zip(samples, samples[1:]):
        passed_s = (after["time_ns"] - before["time_ns"]) / 1e9
        if passed_s > 0:
            made.append((after["time_ns"], (value(after) - value(before)) / passed_s))
    return made


def rule(steps, samples):
    causes = set()
    for end_ns in range(steps[0][0] + WINDOW_NS, steps[-1][1], 1_000_000_000):
        lengths = [step[1] - step[0] for step in steps if end_ns - WINDOW_NS <= step[0] < end_ns]
        inside = [sample for sample in samples if end_ns - WINDOW_NS <= sample["time_ns"] < end_ns]
        if len(lengths) < 10 or len(inside) < 2 or measures.quantile(lengths, 0.99) < 3 * measures.quantile(lengths, 0.5):
            continue
        passed_ns = inside[-1]["time_ns"] - inside[0]["time_ns"]
        busy = (inside[-1]["busy_ns"] - inside[0]["busy_ns"]) / passed_ns
        if inside[-1]["switches"] - inside[0]["switches"] >= 5 or busy > 1.8:
            causes.add("cpu_contention")
        if inside[-1]["retransmits"] - inside[0]["retransmits"] > 5:
            causes.add("packet_loss")
    return sorted(causes)


def moved(samples, middle_ns):
    """{cause: (z-score, growth)} of each signal in the second half, against the first."""
    made = {}
    for cause, value in SIGNALS.items():
        growth = series(samples, value)
        before = [each for time_ns, each in growth if time_ns < middle_ns]
        after = [each for time_ns, each in growth if middle_ns <= time_ns < middle_ns + 5_000_000_000]
        if len(before) < 4 or not after:
            continue
        rise = statistics.fmean(after) - statistics.fmean(before)
        made[cause] = (rise / max(statistics.pstdev(before), 1e6), rise)
    return made


def onset(steps):
    """The first time at which three of five steps are slower than 1.3 times the median of the first 5 s; None without one."""
    first = [step[1] - step[0] for step in steps if step[0] < steps[0][0] + 8_000_000_000][5:]
    if len(first) < 5:
        return None
    limit = 1.3 * statistics.median(first)
    for at in range(5, len(steps) - 5):
        if steps[at][0] > steps[0][0] + 8_000_000_000 and sum(
                step[1] - step[0] > limit for step in steps[at:at + 5]) >= 3:
            return steps[at][0]
    return None


def ask(folder):
    steps, samples = label.read_steps(folder), label.read_samples(folder)
    answers = {"rule": rule(steps, samples) if steps else [], "zscore": [], "excess": []}
    begin_ns = onset(steps) if len(steps) > 20 else None
    if begin_ns is not None:
        signals = moved(samples, begin_ns)
        for name, which in (("zscore", 0), ("excess", 1)):
            best = max(signals, key=lambda cause, which=which: signals[cause][which], default=None)
            if best is not None and signals[best][which] > 0:
                answers[name] = [best]
    return answers
