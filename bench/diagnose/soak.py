# SPDX-License-Identifier: Apache-2.0
"""False alarms per day: hours of undisturbed victims, with harmless changes of load.

A soak consists of pieces of a few minutes, each with a victim under `gpusonde record`, divided into segments: nothing, or a
disturber that should disturb no victim. Every incident reported live counts, however slow its steps were: what a detector picks
from noise always looks slow. Excluded, with their hours and incidents, are segments in which the machine was used by others, and
those whose disturber slowed the victim on average. Pieces of the same build are combined.
"""

import dataclasses
import json
import os
import random
import time

import faults
import label
import manifest
import measures
import overhead
import predict
import trial

PIECE_S = 300.0
SEGMENT_S = (15.0, 45.0)
AFTER_S = 5.0  # the victim runs on, so that it doesn't end within a segment
VICTIMS = ("stencil", "trainer", "inference", "streamer", "trainer-2", "reader", "ranks")
SLOWED = "slowed by its load"


def plan_of(name, victim, seed, seconds):
    return manifest.Trial(name=name, split="soak", victim=victim, fault="nothing", amount=0, shape="steady", clean_s=0.0,
                          fault_s=seconds, after_s=AFTER_S, intended="", seed=seed)


def segments_of(plan):
    """[(fault, amount, seconds), …]: every other segment is undisturbed, beginning with the first."""
    generator = random.Random(plan.seed)
    loads = [(fault, amount) for fault, (victims, amounts, _) in manifest.TRAIN_NEGATIVES.items()
             if plan.victim in victims and fault != "nothing" for amount in amounts]
    made, left_s = [], plan.fault_s
    while left_s > 0:
        length_s = min(left_s, generator.uniform(*SEGMENT_S))
        fault = generator.choice(loads) if loads and len(made) % 2 else ("nothing", 0)
        made.append((*fault, round(length_s, 2)))
        left_s -= length_s
    return made


def run_piece(one, build, program):
    """Runs the piece and returns its record, which is also written to piece.json. Raises trial.TrialFailed."""
    segments = []
    with one.running():
        own_cpu_ns, piece_begin_ns = time.process_time_ns(), time.monotonic_ns()
        for fault, amount, seconds in segments_of(one.plan):
            begin_ns = time.monotonic_ns()
            faults.apply(one, [(fault, amount)], "steady", seconds)
            segments.append({"fault": fault, "amount": amount, "begin_ns": begin_ns, "end_ns": time.monotonic_ns()})
        record = {"plan": dataclasses.asdict(one.plan), "program": program, "segments": segments, "cpus": os.cpu_count(),
                  "begin_ns": piece_begin_ns, "end_ns": time.monotonic_ns(), "logged_pid": one.logged,
                  "own_cpu_ns": time.process_time_ns() - own_cpu_ns,
                  "epoch_offset_ns": time.time_ns() - time.monotonic_ns()}
    record["live"] = predict.ask(build, "query", one.folder / "run.sonde", predict.LIVE)
    (one.folder / "piece.json").write_text(json.dumps(record, indent=1))
    if not record["live"]:
        (one.folder / "run.sonde").unlink()  # recordings with alarms are kept for inspection


def judge(folder):
    """The piece's segments, each with the reason for its exclusion (None if it counts) and the incidents that began in it."""
    record = json.loads((folder / "piece.json").read_text())
    steps, samples = label.read_steps(folder), label.read_samples(folder)
    segments, warm_ns = record["segments"], steps[0][0] + label.SETTLE_NS

    def ms_of(chosen):
        return label.mean_ms([step for step in steps if step[0] >= warm_ns and any(
            one["begin_ns"] <= step[0] < one["end_ns"] for one in chosen)])

    quiet_ms = ms_of([one for one in segments if one["fault"] == "nothing"])
    judged = []
    for one in segments:
        void = label.void_reason(record, samples, [(one["begin_ns"], one["end_ns"])])
        reason = void.rstrip(" %.0123456789") if void else None
        if reason is None and one["fault"] != "nothing" and ms_of([one]) >= label.FAINT * quiet_ms:
            reason = SLOWED
        alarms = [incident for incident in record["live"]
                  if one["begin_ns"] <= incident["start_ns"] - record["epoch_offset_ns"] < one["end_ns"]]
        judged.append({"victim": record["plan"]["victim"], "fault": one["fault"], "left_out": reason,
                       "hours": (one["end_ns"] - one["begin_ns"]) / 3.6e12, "alarms": len(alarms),
                       "causes": [incident["cause"] for incident in alarms]})
    return judged


def rate(segments):
    """False alarms per day in these segments, with the exact one-sided 95 % bound of a Poisson mean."""
    hours, alarms = sum(one["hours"] for one in segments), sum(one["alarms"] for one in segments)
    if not hours:
        return {"hours": 0.0, "alarms": 0, "per_day": None, "per_day_at_most": None}
    return {"hours": round(hours, 3), "alarms": alarms, "per_day": round(24 * alarms / hours, 2),
            "per_day_at_most": round(24 * measures.most_events(alarms) / hours, 2)}


def sum_up(out, program):
    """The result over all pieces of this build."""
    segments = []
    for piece in sorted((out / "pieces").glob("*/piece.json")):
        if json.loads(piece.read_text())["program"] == program:
            segments += judge(piece.parent)
    counted = [one for one in segments if one["left_out"] is None]
    reasons = sorted({one["left_out"] for one in segments if one["left_out"]})
    return {"program": program, **rate(counted),
            "victims": {victim: rate([one for one in counted if one["victim"] == victim])
                        for victim in sorted({one["victim"] for one in counted})},
            "causes": sorted(cause for one in counted for cause in one["causes"]),
            "left_out": {reason: rate([one for one in segments if one["left_out"] == reason]) for reason in reasons},
            "failed": len(list((out / "pieces").glob("*/failed.txt")))}


def text(result):
    def line(name, one):
        return (f"{name}: {one['alarms']} in {one['hours']:.2f} h" +
                ("" if one["per_day"] is None else f", {one['per_day']} per day, at most {one['per_day_at_most']} (95 %)"))

    lines = [line("false alarms", result)]
    if result["causes"]:
        lines.append("  causes named: " + ", ".join(result["causes"]))
    lines += [line(f"  {victim}", one) for victim, one in result["victims"].items()]
    lines += [line(f"not counted, {reason}", one) for reason, one in result["left_out"].items()]
    lines.append(f"{result['failed']} pieces failed")
    return "\n".join(lines)


def run(build, out, minutes, seed):
    """Runs pieces for the given time, continuing after those of this seed that exist."""
    program = overhead.program_id(build)
    shared = out / "data"
    shared.mkdir(parents=True, exist_ok=True)
    number, left_s = 0, minutes * 60
    while left_s > 0:
        folder = out / "pieces" / f"{seed}-{number:04d}"
        number += 1
        if folder.exists():
            continue
        seconds = min(PIECE_S, left_s)
        left_s -= seconds
        folder.mkdir(parents=True)
        victim = VICTIMS[(number - 1) % len(VICTIMS)]
        print(f"{folder.name}: {victim}, {seconds:.0f} s", flush=True)
        plan = plan_of(f"soak-{folder.name}", victim, hash((seed, number)), seconds)
        try:
            run_piece(trial.Trial(plan, build, folder, shared), build, program)
        except (trial.TrialFailed, OSError, ValueError, RuntimeError) as error:
            (folder / "failed.txt").write_text(f"{error}\n")
            print(f"  failed: {error}", flush=True)
    return sum_up(out, program)
