# SPDX-License-Identifier: Apache-2.0
"""Exports the trials of a split as Parquet files, with a data card that describes them.

The files hold what was injected and measured, the labels, the victims' step logs and the instruments' samples; and gpusonde's
tables `signals` (host), `metrics` (GPU), `steps` and `processes` of each recording. The export opens the labels, and is logged
as such.
"""

import datetime
import hashlib
import json
import pathlib
import platform
import subprocess
import tempfile

import duck
import label
import overhead
import score

TRIALS = {"trial": "VARCHAR", "split": "VARCHAR", "victim": "VARCHAR", "fault": "VARCHAR", "amount": "DOUBLE",
          "second_fault": "VARCHAR", "second_amount": "DOUBLE", "shape": "VARCHAR", "seed": "BIGINT",
          "epoch_offset_ns": "BIGINT", "begin_ns": "BIGINT", "end_ns": "BIGINT", "logged_pid": "INTEGER", "cpus": "INTEGER",
          "state": "VARCHAR", "void": "VARCHAR", "slowdown": "DOUBLE", "ms_before": "DOUBLE", "ms_during": "DOUBLE",
          "first_slow_ns": "BIGINT", "causes": "VARCHAR[]", "cause_ms": "MAP(VARCHAR, DOUBLE)", "root": "VARCHAR",
          "explained_ms": "MAP(VARCHAR, DOUBLE)"}
STEPS = {"trial": "VARCHAR", "rank": "INTEGER", "begin_ns": "BIGINT", "end_ns": "BIGINT", "data_ns": "BIGINT",
         "disk_ns": "BIGINT", "gpu_ns": "BIGINT"}
SAMPLES = {"trial": "VARCHAR", "time_ns": "BIGINT", "busy_ns": "BIGINT", "stolen_ns": "BIGINT", "disk_bytes": "BIGINT",
           "disk_ns": "BIGINT", "pressure_ns": "MAP(VARCHAR, BIGINT)", "cpu_ns": "MAP(VARCHAR, BIGINT)", "failcnt": "BIGINT",
           "switches": "BIGINT", "retransmits": "BIGINT", "sent_bytes": "BIGINT",
           "net_rx": "BIGINT", "interrupts_ns": "BIGINT"}
THREADS = {"trial": "VARCHAR", "time_ns": "BIGINT", "pid": "INTEGER", "tid": "INTEGER", "running_ns": "BIGINT",
           "run_delay_ns": "BIGINT"}
SEEN = {"signals": "*", "metrics": "*", "steps": "*",
        "processes": "process, pid, parent_pid, name, cgroup, started_ns, exited_ns"}
MEANINGS = {
    "trials": "one row per trial: what was injected, and the label. Times are CLOCK_MONOTONIC, ns; add `epoch_offset_ns` for the "
              "recordings' times",
    "step_log": "the victim's own log: one row per step and rank, with its stopwatches",
    "samples": "the instruments' samples, four times a second: monotonic counters",
    "threads": "schedstat of the victim's threads at the same times",
    "signals": "gpusonde's host signals (docs/schema.md, docs/metrics.md)",
    "metrics": "gpusonde's values of the GPU's state, from NVML",
    "steps": "the steps found by gpusonde",
    "processes": "the processes of the three tables above, without command lines",
}


def trial_row(name, folder):
    record = json.loads((folder / "trial.json").read_text())
    plan, made = record["plan"], label.label(folder)
    also = plan.get("also") or (None, None)
    values = {"trial": name, "split": plan["split"], "second_fault": also[0], "second_amount": also[1]} | {
        key: value for source in (plan, record, made) for key, value in source.items() if key in TRIALS}
    return {key: values.get(key) for key in TRIALS}


def step_rows(name, folder):
    for rank, file in enumerate(["steps.log", *sorted(path.name for path in folder.glob("steps.log.[0-9]*"))]):
        for step in label.read_steps(folder, file):
            yield dict(zip(STEPS, (name, rank, *step)))


def sample_rows(name, folder):
    for sample in label.read_samples(folder):
        yield {"trial": name} | {key: sample.get(key) for key in SAMPLES if key != "trial"}


def thread_rows(name, folder):
    for sample in label.read_samples(folder):
        for pid, threads in sample["threads"].items():
            for tid, (running_ns, delay_ns) in threads.items():
                yield dict(zip(THREADS, (name, sample["time_ns"], int(pid), int(tid), running_ns, delay_ns)))


def columns_of(kinds):
    return "{" + ", ".join(f"{duck.quoted(name)}: {duck.quoted(kind)}" for name, kind in kinds.items()) + "}"


def write_rows(database, work, target, name, kinds, rows):
    lines = work / f"{name}.jsonl"
    with open(lines, "w", encoding="utf-8") as file:
        for row in rows:
            file.write(json.dumps(row) + "\n")
    database.run(f"COPY (FROM read_json({duck.quoted(lines)}, format = 'newline_delimited', columns = {columns_of(kinds)})) "
                 f"TO {duck.quoted(target / f'{name}.parquet')} (FORMAT parquet, COMPRESSION zstd)")


def query(build, recording, sql, form):
    done = subprocess.run([build / "bin/gpusonde", "query", recording, sql, "--format", form], capture_output=True, text=True,
                          check=False)
    if done.returncode != 0:
        raise RuntimeError(f"gpusonde query {recording} failed: {done.stderr.strip()}")
    return done.stdout


def write_seen(database, build, work, target, table, recordings):
    """Writes a table of all recordings ({trial: path})."""
    kinds = {}
    for trial, recording in recordings.items():
        if not kinds:
            kinds = {row["column_name"]: row["column_type"] for row in json.loads(
                query(build, recording, f"DESCRIBE SELECT {SEEN[table]} FROM {table}", "json"))}
        (work / f"{trial}.csv").write_text(query(build, recording, f"SELECT {SEEN[table]} FROM {table}", "csv"))
    files = "[" + ", ".join(duck.quoted(work / f"{trial}.csv") for trial in recordings) + "]"
    rows = f"read_csv({files}, header = true, filename = true, columns = {columns_of(kinds)})"
    database.run(f"COPY (SELECT parse_filename(filename, true) AS trial, * EXCLUDE (filename) FROM {rows}) "
                 f"TO {duck.quoted(target / f'{table}.parquet')} (FORMAT parquet, COMPRESSION zstd)")


def count(rows, key):
    counted = {}
    for row in rows:
        for value in (row[key] or ["-"]) if isinstance(row[key], list) else [row[key]]:
            counted[value] = counted.get(value, 0) + 1
    return ", ".join(f"{number} {value}" for value, number in sorted(counted.items(), key=lambda one: -one[1]))


def card(target, split, trials, build, database):
    """The README.md of the data set."""
    files = []
    for name, meaning in MEANINGS.items():
        path = target / f"{name}.parquet"
        ((rows,),) = database.run(f"SELECT count(*) FROM {duck.quoted(path)}")
        files.append(f"| `{path.name}` | {int(rows):,} | {meaning} | `{hashlib.sha256(path.read_bytes()).hexdigest()}` |")
    used = [row for row in trials if not row["void"] and row["state"] != "unusable"]
    void = [row | {"void": row["void"].rstrip(" %.0123456789")} for row in trials if row["void"]]
    # An empty list of causes means a slow step without a confirmed mechanism only if there was a slow step.
    slow = [row for row in used if row["state"] in ("effective", "faint")]
    return "\n".join([
        f"# Slow steps and their causes: gpusonde's `{split}` split", "",
        f"Made {datetime.datetime.now(datetime.timezone.utc):%Y-%m-%d} by gpusonde's bench/diagnose (`bench.py export`), "
        f"with the build {overhead.program_id(build)}, on Linux {platform.release()}, {trials[0]['cpus']} CPUs.", "",
        f"**{len(trials)} trials, {len(used)} of them usable.** Of these: {count(used, 'state') or 'none'}. Victims: "
        f"{count(used, 'victim') or 'none'}. Labels (`-`: slow without a confirmed mechanism; one trial may have several): "
        f"{count(slow, 'causes') or 'none'}. Void: {count(void, 'void') or 'none'}; they are in the files, and `void` says "
        "why.",
        "", "| file | rows | what | SHA-256 |", "|---|---|---|---|", *files, "",
        "## How it was made", "",
        "A victim works on a simulated GPU (simgpu: kernels take the time that they took in public traces of real programs), "
        "beside one or two disturbers, or none; those of the host are real. A trial's label is what the victim's own step "
        "log and the instruments show, not what was injected: a cause is a label if its mechanism explains a quarter of the "
        "excess.",
        "", "## What it isn't", "",
        "- No real GPU: faults of the GPU are simulated, and host load doesn't slow simulated kernels.",
        "- One machine. Its kernel lacks hardware counters, so `slow_cpu` rests on CPU time for the same work.",
        "- Void trials must not be used for an accuracy. Faint ones (1.05 to 1.15 ×) must be reported separately.",
        "- Labels are as good as the instruments: a mechanism that they can't measure is a slow step without a label.", "",
        "## Licence", "",
        "Apache-2.0, like the code that made it. Names, shapes and durations of kernels are from the traces that "
        "data/kernel-streams names, each with its licence. No personal data: processes are those of the trials and of the "
        "machine's own system, by name.", ""])


def export(out, build, split, target):
    """Writes the data set into `target`, and returns its data card. Raises RuntimeError."""
    path = duck.library(build)
    if path is None:
        raise RuntimeError("DuckDB's library is missing: run tools/setup build")
    folders = {folder.name: folder for folder in sorted((out / "trials").glob(f"{split}-*"))
               if (folder / "trial.json").exists()}
    if not folders:
        raise RuntimeError(f"no trial of the {split} split in {out}")
    target.mkdir(parents=True, exist_ok=True)
    score.log_opening(out, split, "export")
    trials = [trial_row(name, folder) for name, folder in folders.items()]
    with duck.Duck(path) as database, tempfile.TemporaryDirectory() as work:
        work = pathlib.Path(work)
        for name, kinds, rows_of in (("step_log", STEPS, step_rows), ("samples", SAMPLES, sample_rows),
                                     ("threads", THREADS, thread_rows)):
            write_rows(database, work, target, name, kinds,
                       (row for trial, folder in folders.items() for row in rows_of(trial, folder)))
        write_rows(database, work, target, "trials", TRIALS, trials)
        for table in SEEN:
            write_seen(database, build, work, target, table,
                       {name: folder / "run.sonde" for name, folder in folders.items()})
        text = card(target, split, trials, build, database)
    (target / "README.md").write_text(text)
    return text
