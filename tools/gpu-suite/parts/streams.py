# SPDX-License-Identifier: Apache-2.0
"""Kernel streams (data/kernel-streams/README.md) of models with random weights, recorded by gpusonde: training and
inference, small batches in fp32 and large ones in bf16."""

import shutil
import sys
import tarfile

from suite import Failed, Result, WORKLOADS, device_name, last_json, last_lines

TITLE = "Kernel streams of models"
NEEDS = "PyTorch with CUDA; torchvision, timm, transformers and torch-geometric for most models"

PROCESS_MODELS = 5  # models per process: importing takes long, and a crash loses the models of its process
PROCESS_S = 150
MIN_S = 60


def run(suite):
    suite.needs_python("torch")
    suite.needs_gpu()
    suite.needs_a_real_gpu("models do not run")
    result = Result()
    names = last_json(suite.run(sys.executable, WORKLOADS / "torch_models.py", "--list").stdout)["models"]
    todo = [name for name in names if name not in suite.done]
    folder = suite.out / "streams"
    folder.mkdir(exist_ok=True)
    written = 0
    while todo:
        if suite.seconds_left() < MIN_S:
            result.left = todo
            break
        group, todo = todo[:PROCESS_MODELS], todo[PROCESS_MODELS:]
        try:
            written += record_models(suite, result, group, folder)
        except Failed as reason:
            result.notes.append(f"{', '.join(group)}: {reason}")
        result.done += group
    if written:
        with tarfile.open(suite.out / "streams.tar.gz", "w:gz") as archive:
            archive.add(folder, "kernel-streams")
    shutil.rmtree(folder)
    result.row("models with a stream", len({name.split(" ")[0] for name in result.done}) if written else 0, "")
    result.row("streams", written, "")
    return result


def record_models(suite, result, group, folder):
    """Writes the streams of these models; returns their number."""
    recorded = suite.record(sys.executable, WORKLOADS / "torch_models.py", *group, timeout=PROCESS_S, check=False)
    said = [line for line in recorded.stdout.splitlines() if line.startswith("{")]
    if not said:
        raise Failed(f"exit status {recorded.returncode}: {last_lines(recorded.stderr + recorded.stdout)}")
    lost = suite.query(recorded, "SELECT reason, sum(count) AS n FROM drops WHERE reason LIKE 'gpu%' GROUP BY reason")
    if lost:
        result.notes.append(f"{', '.join(group)}: {lost}")
    written = 0
    for line in said:
        run_of_model = last_json(line)
        if "error" in run_of_model:
            result.notes.append(f"{run_of_model['model']} {run_of_model.get('mode', '')}: {run_of_model['error']}")
            continue
        operations = read_operations(suite, recorded, run_of_model["steps"])
        if not operations:
            result.notes.append(f"{run_of_model['model']} {run_of_model['mode']}: nothing was recorded")
            continue
        write_stream(folder, run_of_model, operations)
        written += 1
    suite.forget(recorded)
    return written


def read_operations(suite, recorded, steps):
    """The operations within these steps ([start, end] in ns) in launch order, each with the number of its step."""
    spans = " ".join(f"WHEN start_ns BETWEEN {start} AND {end} THEN {index}" for index, (start, end) in enumerate(steps))
    columns = "correlation, stream, start_ns, end_ns"
    return suite.query(recorded, f"""
        WITH operations AS (
          SELECT {columns}, name, grid_x, grid_y, grid_z, block_x, block_y, block_z,
                 coalesce(static_shared_bytes, 0) + coalesce(dynamic_shared_bytes, 0) AS shared, NULL AS kind, 0 AS bytes
          FROM kernels
          UNION ALL SELECT {columns}, NULL, 0, 0, 0, 0, 0, 0, 0,
                 CASE WHEN kind IN ('htod', 'dtoh') THEN kind ELSE 'dtod' END, bytes FROM memcpys
          UNION ALL SELECT {columns}, NULL, 0, 0, 0, 0, 0, 0, 0, NULL, bytes FROM memsets)
        SELECT *, CASE {spans} END AS step FROM operations WHERE step IS NOT NULL
        ORDER BY step, correlation, start_ns""", timeout=300)


def short_device():
    """h100 of "NVIDIA H100 80GB HBM3"."""
    words = [word for word in device_name().split() if any(letter.isdigit() for letter in word)]
    return (words[0] if words else device_name().split()[-1]).lower()


def write_stream(folder, run_of_model, operations):
    label = f"{run_of_model['model']}-{run_of_model['mode']}-b{run_of_model['batch']}-{run_of_model['dtype']}"
    names, streams, ends, lines, step = {}, {}, {}, [], None
    for operation in operations:
        if operation["step"] != step:
            step = operation["step"]
            lines.append("mark step")
        stream = streams.setdefault(operation["stream"], len(streams))
        start, end = operation["start_ns"], operation["end_ns"]
        gap_ns = max(0, start - ends.get(stream, start))
        ends[stream] = max(ends.get(stream, 0), end)
        times = f"{gap_ns} {max(0, end - start)}"
        if operation["name"] is not None:
            name = names.setdefault(operation["name"], len(names))
            shape = " ".join(str(operation[f"{what}_{axis}"]) for what in ("grid", "block") for axis in "xyz")
            lines.append(f"k {stream} {name} {shape} {operation['shared']} {times}")
        elif operation["kind"] is not None:
            lines.append(f"c {stream} {operation['kind']} {operation['bytes']} {times}")
        else:
            lines.append(f"m {stream} {operation['bytes']} {times}")
    text = ["kernel-stream 1", f"source gpusonde/gpu-suite {label}", "licence Apache-2.0", f"device {device_name()}",
            *(f"name {index} {name}" for name, index in names.items()), *lines]
    (folder / f"{label}-{short_device()}.stream").write_text("\n".join(text) + "\n", encoding="utf-8")
