# SPDX-License-Identifier: Apache-2.0
"""Statistics for scores, independent of trials, causes and gpusonde."""

import math
import random
import statistics

RESAMPLES = 2000
BOUND = 0.95  # confidence of one-sided bounds
BINS = 5      # of the reliability diagram, between 0.5 (no cause is named below) and 1


def interval(values, digits=3):
    """[mean, lower, upper]: a 95 % bootstrap interval. None for no values."""
    if not values:
        return None
    generator = random.Random(1)
    means = sorted(statistics.fmean(generator.choices(values, k=len(values))) for _ in range(RESAMPLES))
    return [round(statistics.fmean(values), digits), round(means[int(0.025 * RESAMPLES)], digits),
            round(means[int(0.975 * RESAMPLES)], digits)]


def at_most(successes, trials, chance):
    """Binomial probability of at most this many successes."""
    if chance <= 0:
        return 1.0
    if chance >= 1:
        return 1.0 if successes >= trials else 0.0
    whole = math.lgamma(trials + 1)
    return math.fsum(math.exp(whole - math.lgamma(k + 1) - math.lgamma(trials - k + 1) + k * math.log(chance)
                              + (trials - k) * math.log1p(-chance)) for k in range(successes + 1))


def solve(function, low, high):
    """The root of a decreasing function, by bisection."""
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (middle, high) if function(middle) > 0 else (low, middle)
    return (low + high) / 2


def upper_bound(successes, trials):
    """One-sided 95 % upper bound of a proportion (Clopper and Pearson: exact, conservative). None without trials."""
    if not trials:
        return None
    if successes == trials:
        return 1.0
    return solve(lambda chance: at_most(successes, trials, chance) - (1 - BOUND), 0.0, 1.0)


def lower_bound(successes, trials):
    """One-sided 95 % lower bound of a proportion, likewise."""
    return 1 - upper_bound(trials - successes, trials) if trials else None


def most_events(events):
    """One-sided 95 % upper bound of the mean of a Poisson variable with this many observed events."""
    return solve(lambda mean: math.fsum(math.exp(k * math.log(mean) - mean - math.lgamma(k + 1))
                                        for k in range(events + 1)) - (1 - BOUND), 1e-9, 10 * (events + 3))


def quantile(values, share):
    """The smallest value that at least this share of the values don't exceed."""
    return sorted(values)[max(0, math.ceil(share * len(values)) - 1)]


def macro_f1(pairs):
    """Macro-F1 of pairs (labels, first cause), over the causes that are labels."""
    scores = []
    for cause in {cause for labels, _ in pairs for cause in labels}:
        right = sum(cause in labels and first == cause for labels, first in pairs)
        said = sum(first == cause for _, first in pairs)
        was = sum(cause in labels and (first not in labels or first == cause) for labels, first in pairs)
        scores.append(2 * right / (said + was) if said + was else 0.0)
    return round(statistics.fmean(scores), 3) if scores else None


def calibration(claims):
    """Brier score and reliability by bin of [(confidence, 1 if right), …]."""
    if not claims:
        return None
    bins = [[] for _ in range(BINS)]
    for confidence, right in claims:
        at = int((confidence - 0.5) * 2 * BINS)
        bins[min(BINS - 1, max(0, at))].append((confidence, right))
    return {"claims": len(claims), "brier": round(statistics.fmean((sure - right) ** 2 for sure, right in claims), 4),
            "bins": [{"from": round(0.5 + at / (2 * BINS), 2), "claims": len(inside),
                      "confidence": round(statistics.fmean(sure for sure, _ in inside), 3),
                      "right": round(statistics.fmean(right for _, right in inside), 3)}
                     for at, inside in enumerate(bins) if inside]}


def risk_coverage(claims, asked):
    """[[share of the questions answered, share of these answers that are wrong], …], the most confident answers first; answers
    of equal confidence form one point."""
    curve, wrong = [], 0
    ordered = sorted(claims, reverse=True)
    for number, (confidence, right) in enumerate(ordered, 1):
        wrong += 1 - right
        if number == len(ordered) or ordered[number][0] != confidence:
            curve.append([round(number / asked, 3), round(wrong / number, 3)])
    return curve
