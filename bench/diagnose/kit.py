# SPDX-License-Identifier: Apache-2.0
"""A kit from elsewhere: recordings and sealed labels that are predicted and scored like our own. README.md describes the format
of the folder. Everything in it is untrusted."""

import hashlib
import json

import label
import predict
import score

SPLIT = "kit"
CAUSES = ("block_io", "cpu_contention", "cpu_contention_own", "cpu_quota", "fewer_cpus", "gpu_clocks", "gpu_fault",
          "gpu_neighbour", "hang", "host_steal", "interrupt_pressure", "io_throttling", "memory_pressure", "more_cpu_work",
          "network_contention", "packet_loss", "pcie_pressure", "slow_cpu", "slow_data_loading", "stopped",
          "straggler")
WANTED = {"begin_ns": int, "end_ns": int, "ms_before": (int, float), "ms_during": (int, float), "causes": list}
MAY_BE = {"pid": int, "first_slow_ns": int, "cause_ms": dict, "root": str, "void": str, "victim": str, "fault": str}


class KitError(ValueError):
    """What is wrong with the kit, for the person who made it."""


def kind_of(value, kinds):
    return isinstance(value, kinds) and not isinstance(value, bool)


def check(name, one):
    """Raises KitError unless this is a valid label."""
    def wrong(what):
        raise KitError(f"labels.json: {name}: {what}")

    if not isinstance(one, dict):
        wrong("not an object")
    for key, kinds in WANTED.items():
        if not kind_of(one.get(key), kinds):
            wrong(f"`{key}` is missing or of another type")
    for key, value in one.items():
        if key not in WANTED and (key not in MAY_BE or (value is not None and not kind_of(value, MAY_BE[key]))):
            wrong(f"`{key}` is unknown or of another type")
    if not one["begin_ns"] < one["end_ns"]:
        wrong("ends before it begins")
    if not (0 < one["ms_before"] < 1e9 and 0 < one["ms_during"] < 1e9):
        wrong("step times must be more than 0 and less than 11 days")
    for cause in (*one["causes"], *([one["root"]] if one.get("root") else [])):
        if cause not in CAUSES:
            wrong(f"no cause is named {cause!r}; label other causes as none (`[]`): then abstaining is right")
    if len(set(one["causes"])) != len(one["causes"]):
        wrong("a cause comes twice")
    cause_ms = one.get("cause_ms") or {}
    if len(one["causes"]) > 1 and (set(cause_ms) != set(one["causes"]) or not all(
            kind_of(ms, (int, float)) for ms in cause_ms.values())):
        wrong("with several causes, `cause_ms` must give the ms per step that each explains")
    if label.state_of(one["ms_during"] / one["ms_before"]) == "negative" and one["causes"]:
        wrong(f"steps that are slower by less than a factor of {label.FAINT} have no cause")


def trial_of(name, one, prediction):
    slowdown = one["ms_during"] / one["ms_before"]
    truth = {"void": one.get("void"), "state": label.state_of(slowdown), "slowdown": round(slowdown, 3),
             "ms_before": one["ms_before"], "ms_during": one["ms_during"], "first_slow_ns": one.get("first_slow_ns"),
             "causes": sorted(one["causes"]), "cause_ms": one.get("cause_ms") or {}, "root": one.get("root"),
             "explained_ms": {}}
    plan = {"victim": one.get("victim") or "?", "fault": one.get("fault") or "?", "amount": 0, "shape": "?"}
    record = {"plan": plan, "begin_ns": one["begin_ns"], "end_ns": one["end_ns"], "epoch_offset_ns": 0,
              "logged_pid": one.get("pid")}
    return score.Trial(name, record, truth, prediction)


def read_labels(folder):
    data = (folder / "labels.json").read_bytes()
    sealed = folder / "labels.sha256"
    if sealed.exists() and sealed.read_text().split()[:1] != [hashlib.sha256(data).hexdigest()]:
        raise KitError("labels.json is not what labels.sha256 sealed")
    try:
        whole = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise KitError(f"labels.json: {error}") from error
    if not isinstance(whole, dict) or whole.get("version") != 1 or not isinstance(whole.get("trials"), dict):
        raise KitError('labels.json: not {"version": 1, "trials": {…}}')
    for name, one in whole["trials"].items():
        check(name, one)
    return whole["trials"]


def run(folder, build):
    """The result; None if the predictions were frozen and there are no labels yet. Raises KitError, RuntimeError."""
    recordings = {path.stem: path for path in sorted(folder.glob("*.sonde"))}
    if not recordings:
        raise KitError(f"no *.sonde in {folder}")
    if not (folder / f"predictions-{SPLIT}.json").exists():
        predict.write(folder, SPLIT, {name: predict.of_recording(build, path) for name, path in recordings.items()})
    if not (folder / "labels.json").exists():
        return None
    labels = read_labels(folder)
    predictions = score.open_predictions(folder, SPLIT)
    for names, what in ((set(labels) ^ set(recordings), "there is either a recording or a label, but not both"),
                        (set(labels) ^ set(predictions), "appeared or disappeared since the predictions were frozen")):
        if names:
            raise KitError(f"{', '.join(sorted(names))}: {what}")
    trials = [trial_of(name, one, predictions[name]) for name, one in labels.items()]
    return {"split": SPLIT, "failed": 0} | score.compare(trials, False)
