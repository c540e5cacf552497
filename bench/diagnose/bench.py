#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The benchmark of `gpusonde diagnose`. README.md describes how it works.

    bench.py run --split train --seed 1 --count 20      runs a slice of trials, except those that exist already
    bench.py predict                                    runs gpusonde on every recording, and freezes its predictions
    bench.py score                                      opens the labels and scores the predictions
    bench.py keep                                       opens the labels and adds the trials to those kept in the repository
    bench.py total                                      prints the result of the kept trials of the newest build
    bench.py quick                                      does all of this with a few trials of each kind: a smoke test
    bench.py overhead [--quick]                         measures the cost of the diagnosis; adds to earlier measurements
    bench.py soak --minutes 60                          measures false alarms per day, on undisturbed victims; adds up as well
    bench.py export FOLDER                              writes the trials of a split as Parquet files with a data card
    bench.py kit FOLDER                                 predicts and scores recordings and sealed labels from elsewhere
"""

import argparse
import dataclasses
import datetime
import json
import os
import pathlib
import shutil
import subprocess
import sys

import chain_score
import chains
import dataset
import kept
import kit
import manifest
import overhead
import predict
import report
import score
import soak
import trial

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("GPUSONDE_BUILD", ROOT / "build/release")).resolve()


# For `quick`: each way to make and label a trial, once.
QUICK = ("compute", "io-limit", "late-rank", "traffic", "negative", "pair")


def describe(plan):
    if isinstance(plan, chains.Chain):
        return str(plan)
    return f"{plan.name} {plan.victim} {plan.fault} {plan.amount:g} {plan.shape}"


def run_slice(out, build, plans, shares, kind=trial.Trial):
    """Runs the trials of `plans` that don't exist yet, one after the other."""
    shared = out / "data"
    shared.mkdir(parents=True, exist_ok=True)
    for number, plan in enumerate(plans, 1):
        folder = out / "trials" / plan.name
        if (folder / "trial.json").exists() or (folder / "failed.txt").exists():
            continue
        if folder.exists():
            shutil.rmtree(folder)  # left by an interrupted slice
        folder.mkdir(parents=True)
        print(f"{number} of {len(plans)}: {describe(plan)}", flush=True)
        try:
            kind(plan, build, folder, shared, shares).run()
        except (trial.TrialFailed, OSError, ValueError, subprocess.SubprocessError) as error:
            (folder / "failed.txt").write_text(f"{error}\n")
            print(f"  failed: {error}", flush=True)


def report_result(result, text, path):
    """Prints a result, and writes it as JSON if there is a path."""
    if path:
        path.write_text(json.dumps(result, indent=1) + "\n")
    print(text(result))


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("run", "predict", "score", "keep", "total", "quick", "overhead", "soak", "export",
                                         "kit"))
    parser.add_argument("folder", nargs="?", type=pathlib.Path, help="export: the target; kit: the kit")
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "build/bench-diagnose")
    parser.add_argument("--build", type=pathlib.Path, default=BUILD)
    parser.add_argument("--split", choices=("train", "test"), default="train")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=20)
    parser.add_argument("--only", nargs="*", default=(), help="run: faults, `negative`, `pair`; overhead: `curve`")
    parser.add_argument("--chains", action="store_true",
                        help="run, predict, score, keep, total: trials of several faults each, reported apart from the others")
    parser.add_argument("--with-foreign-load", action="store_true",
                        help="for development: score void runs as well; the result says so")
    parser.add_argument("--shares", type=int, default=1024,
                        help="for development on a shared machine: CPU weight of a trial's groups")
    parser.add_argument("--result", type=pathlib.Path, help="write the result here as JSON")
    parser.add_argument("--minutes", type=float, default=60, help="soak: how much time to add")
    parser.add_argument("--quick", action="store_true", help="overhead: a few windows in two minutes, a smoke test")
    arguments = parser.parse_args()
    if (arguments.folder is None) == (arguments.what in ("export", "kit")):
        parser.error("export and kit need a folder; other commands take none")
    if arguments.chains and (arguments.only or arguments.what not in ("run", "predict", "score", "keep", "total")):
        parser.error("--chains is for run, predict, score, keep and total, without --only")
    if arguments.what in ("run", "quick", "overhead", "soak") and os.geteuid() != 0:
        sys.exit("bench-diagnose: root is required for control groups and kernel signals")
    return arguments


def ask_kit(arguments):
    result = kit.run(arguments.folder, arguments.build)
    if result is None:
        frozen = (arguments.folder / "predictions-kit.sha256").read_text().strip()
        print(f"frozen: {frozen}; now add labels.json and run again")
    else:
        report_result(result, report.text, arguments.result)


def measure_overhead(arguments):
    plan, name = (overhead.QUICK, "overhead-quick") if arguments.quick else (overhead.WHOLE, "overhead")
    if arguments.only == ["curve"]:
        plan = dataclasses.replace(plan, victims=())
    report_result(overhead.run(arguments.build, arguments.out / name, plan, arguments.seed), overhead.text, arguments.result)


def soak_for(arguments):
    report_result(soak.run(arguments.build, arguments.out / "soak", arguments.minutes, arguments.seed), soak.text, arguments.result)


def keep(arguments):
    program = overhead.program_id(arguments.build)
    if arguments.chains:
        count = kept.keep(arguments.out, chains.name_of(arguments.split), program, label_of=chains.label_of)
    else:
        count = kept.keep(arguments.out, arguments.split, program)
    print(f"kept {count} more trials in {kept.KEPT.relative_to(ROOT)}")


def report_total(arguments):
    if arguments.chains:
        result = kept.total(chains.name_of(arguments.split), compare=chain_score.compare)
        report_result(result, chain_score.text, arguments.result)
    else:
        report_result(kept.total(arguments.split), report.text, arguments.result)


def run_chains(arguments):
    """Runs, predicts or scores chains."""
    out, split = arguments.out, chains.name_of(arguments.split)
    if arguments.what == "run":
        plans = chains.make(arguments.split, arguments.seed, arguments.count)
        run_slice(out, arguments.build, plans, arguments.shares, chains.ChainTrial)
    if arguments.what == "predict":
        predict.freeze(out, arguments.build, split)
    if arguments.what == "score":
        opened = score.opened(out, split, chains.label_of)
        result = {"split": split, "failed": len(score.failures(out, split))} | chain_score.compare(opened, arguments.with_foreign_load)
        report_result(result, chain_score.text, arguments.result)


def export(arguments):
    print(dataset.export(arguments.out, arguments.build, arguments.split, arguments.folder))


def run_trials(arguments):
    """Runs, predicts or scores; `quick` does all of it with a few trials of its own."""
    out, quick = arguments.out, arguments.what == "quick"
    only, count = arguments.only, arguments.count
    if quick:
        out = out / f"quick-{datetime.datetime.now(datetime.timezone.utc):%Y%m%d-%H%M%S}"
        only, count = QUICK, 12
    if quick or arguments.what == "run":
        run_slice(out, arguments.build, manifest.make(arguments.split, arguments.seed, count, only), arguments.shares)
    if quick or arguments.what == "predict":
        predict.freeze(out, arguments.build, arguments.split)
    if quick or arguments.what == "score":
        result = score.score(out, arguments.split, arguments.with_foreign_load)
        report_result(result | ({"claim": "none: smoke"} if quick else {}), report.text, arguments.result)


def main():
    arguments = parse()
    doer = {"overhead": measure_overhead, "soak": soak_for, "export": export, "kit": ask_kit, "keep": keep,
            "total": report_total}.get(arguments.what, run_chains if arguments.chains else run_trials)
    try:
        doer(arguments)
    except (kit.KitError, score.NotFrozen, RuntimeError, OSError, subprocess.SubprocessError) as error:
        sys.exit(f"bench-diagnose: {error}")


if __name__ == "__main__":
    main()
