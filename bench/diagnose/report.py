# SPDX-License-Identifier: Apache-2.0
"""Formats a result of score.py as text."""

import statistics


def share(right, of):
    return f"{right} of {of}"


def rightness(name, one):
    return (f"{name}: {share(one['right'], one['trials'])} right {one['accuracy']}, at least {one['lower_bound']} (one-sided "
            f"95 %), macro-F1 {one['macro_f1']}, detected {one['seen']}")


def judged(who, one):
    lines = [rightness(f"{who}, effective", one["effective"])]
    lines.append(f"  false alarms {share(one['false_alarms'], one['negatives'])} negatives, at most "
                 f"{one['false_alarms_upper_bound']} (one-sided 95 %)")
    if who != "gpusonde":
        return lines
    lines += [f"    {count}× {key}" for key, count in one["effective"]["confusion"].items()]
    lines += [rightness(f"  {kind}", of_kind) for kind, of_kind in one["kinds"].items()]
    if one["faint"]["trials"]:
        lines.append(rightness("  faint (1.05 to 1.15×), separately", one["faint"]))
    return lines


def calibration(one):
    reliability = one["reliability"]
    if reliability is None:
        return ["calibration: no cause was named"]
    lines = [f"calibration: Brier {reliability['brier']} over {reliability['claims']} causes named"]
    lines += [f"    confidence {inside['confidence']:.2f}, right {inside['right']:.2f} of {inside['claims']}"
              for inside in reliability["bins"]]
    curve = one["risk_coverage"]
    at = sorted({0, len(curve) // 4, len(curve) // 2, 3 * len(curve) // 4, len(curve) - 1} if curve else ())
    lines.append("  share answered, and wrong of these: " + ", ".join(f"{curve[i][0]:.0%} {curve[i][1]:.1%}" for i in at))
    return lines


def delays(one):
    lines = []
    for name in ("seen", "seen_from_onset", "named"):
        waited = one[f"{name}_s"]
        if waited:
            p95 = one[f"{name}_p95_s"]
            of = one["with_cause" if name == "named" else "of"]
            lines.append(f"{name}: median {statistics.median(waited):.2f} s, p95 "
                         f"{'never' if p95 is None else f'{p95:.2f} s'}, {share(len(waited), of)} slow-downs of at least 1.5×")
    lines.append(f"detected within max(1 s, 3 slow steps): {share(one['seen_in_time'], one['of'])}; its cause 1 s later: "
                 f"{share(one['named_in_time'], one['with_cause'])}")
    return lines


def text(result):
    voids = ", ".join(f"{count}× {reason}" for reason, count in result["void_reasons"].items())
    lines = [f"{result['split']}: {result['trials']} trials, {result['failed']} failed, {result['void']} void"
             + (f" ({voids})" if voids else "") + f", {result['used']} used"
             + (" WITH FOREIGN LOAD: no accuracy" if result["foreign_load"] else "")]
    if "program" in result:
        lines.append(f"build (hash of the program): {result['program']}")
    for program, earlier in result.get("earlier", {}).items():
        one = earlier["asked"]["gpusonde"]
        lines.append(f"earlier build {program}: {share(one['effective']['right'], one['effective']['trials'])} right, false "
                     f"alarms {share(one['false_alarms'], one['negatives'])} negatives")
    for who, one in result["asked"].items():
        lines += judged(who, one)
    if result["too_easy_for"]:
        lines.append(f"too easy: {', '.join(result['too_easy_for'])} within 5 points of gpusonde")
    for cause, one in result["causes"].items():
        lines.append(f"{cause}: {share(one['right'], one['trials'])} right with {one['victims']} victims, at least "
                     f"{one['lower_bound']}")
    if result["short_of"]:
        lines.append("too few for a claim: " + "; ".join(result["short_of"]))
    lines += calibration(result["calibration"])
    for cause, one in result["left_out"].items():
        wrong = ", ".join(f"{count}× {name}" for name, count in one["wrong"].items())
        lines.append(f"without {cause}: {share(one['abstains'], one['trials'])} abstain, {one['unseen']} undetected"
                     + (f", wrongly {wrong}" if wrong else ""))
    lines.append("root behind a straggler: {of}, straggler named {proximate_named}; root known {roots_known}, right {root_right}"
                 .format(**result["roots"]))
    lines.append("two causes at once: {of}, both named {both_named}, in the order of their ms {in_order}, no third {no_third}, "
                 "all of this {all}".format(**result["twos"]))
    lines += delays(result["delays"])
    for one in result["details"]:
        lines.append(f"  {one['trial']} {one['victim']} {one['fault']} {one['amount']:g} {one['shape']}: {one['state']} "
                     f"{one['slowdown']}× {'+'.join(one['labels']) or '-'} | said {one['said']} {one['named']}"
                     + (f" | {one['void']}" if one["void"] else ""))
    return "\n".join(lines)
