#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes data/kernel-streams/ from the traces of ../shared/traces: the work that each program launched, in the order of
its launches. data/kernel-streams/README.md describes the format.

    tools/kernel_streams.py [--traces FOLDER] [--out FOLDER] [--evaluation]
"""

import argparse
import bisect
import gzip
import json
import pathlib
import sqlite3
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
VERSION = 1

# The streams: file, trace, source, licence, device number, and part. A part is `steps`: this many complete profiler
# steps after the first one, `after`: everything launched after the annotation began, or everything.
STREAMS = [
    ("alexnet-infer-a100", "kineto/hta_critical_path_alexnet.json.gz", "facebookresearch/HolisticTraceAnalysis", "MIT",
     0, {"after": "[param|pytorch.model.alex_net|0|0|0|measure|forward]", "which": 1}),
    ("bert-small-h100", "kineto/tracelens_h100_bert_small.json.gz", "AMD-AGI/TraceLens", "MIT", None, {}),
    ("cloverleaf-a100", "nsys/cloverleaf.sqlite", "hpcgroup/pipit", "MIT", 0, {}),
    ("dlrm-train-a100", "kineto/hta_diff_control.json.gz", "facebookresearch/HolisticTraceAnalysis", "MIT", None,
     {"steps": 2}),
    ("llm-train-h100", "nsys/mfu_2gpu_before.sqlite", "GindaChen/nsys-ai", "MIT", 0, {}),
    ("qwen-infer-h100", "kineto/tracelens_h100_qwen.json.gz", "AMD-AGI/TraceLens", "MIT", None, {}),
    ("vit-classifier-h100", "kineto/tracelens_h100_vit_classifier.json.gz", "AMD-AGI/TraceLens", "MIT", None, {}),
]

# For the evaluation of identification (--evaluation): MODEL+RUN, every trace of a known model, complete. Runs of a model
# on one GPU: two ranks of a job, two configurations; on GPUs of two makers: h100 and mi300.
EVALUATION = [
    ("alexnet+1", "kineto/hta_critical_path_alexnet.json.gz", None),
    ("bert-small+1", "kineto/tracelens_h100_bert_small.json.gz", None),
    ("cloverleaf+1", "nsys/cloverleaf.sqlite", 0),
    ("dlrm+control", "kineto/hta_diff_control.json.gz", None),
    ("dlrm+test", "kineto/hta_diff_test.json.gz", None),
    ("flux+1", "kineto/tracelens_flux_rank0.json.gz", None),
    ("fuser+1", "nsys/fuser1.sqlite", 0),
    ("gaussian+r2", "nsys/rodinia_r2.sqlite", 0),
    ("gaussian+r3", "nsys/rodinia_r3.sqlite", 0),
    ("hta-job+rank0", "kineto/hta_rank0.json.gz", None),
    ("hta-job+rank1", "kineto/hta_rank1.json.gz", None),
    ("llm-1s+gpu0", "nsys/h100_2gpu_1s.sqlite", 0),
    ("llm-1s+gpu1", "nsys/h100_2gpu_1s.sqlite", 1),
    ("llm-mfu+after0", "nsys/mfu_2gpu_after.sqlite", 0),
    ("llm-mfu+after1", "nsys/mfu_2gpu_after.sqlite", 1),
    ("llm-mfu+before0", "nsys/mfu_2gpu_before.sqlite", 0),
    ("llm-mfu+before1", "nsys/mfu_2gpu_before.sqlite", 1),
    ("owlv2+h100", "kineto/tracelens_h100_owlv2.json.gz", None),
    ("owlv2+mi300", "kineto/tracelens_mi300_owlv2.json.gz", None),
    ("qwen+h100", "kineto/tracelens_h100_qwen.json.gz", None),
    ("qwen+mi300", "kineto/tracelens_mi300_qwen.json.gz", None),
    ("sglang+1", "kineto/tracelens_sglang_capture.json.gz", None),
    ("vit-classifier+1", "kineto/tracelens_h100_vit_classifier.json.gz", None),
    ("vllm+1", "kineto/tracelens_vllm_prefilldecode_graph.json.gz", None),
]

PHASES = (("zero_grad", "zero_grad"), ("optimizer", "optimizer"), ("Optimizer.step", "optimizer"),
          ("forward", "forward"), ("backward", "backward"), ("load_batch", "load"))
DIRECTIONS = {1: "htod", 2: "dtoh", 8: "dtod"}  # CUpti_ActivityMemcpyKind


class Operation:
    """One line of a stream: a kernel (name), a copy (direction) or a set (neither)."""

    def __init__(self, launch_ns, start_ns, end_ns, stream, name=None, grid=(1, 1, 1), block=(1, 1, 1), shared=0,
                 direction=None, size=0):
        self.launch_ns, self.start_ns, self.end_ns, self.stream = launch_ns, start_ns, end_ns, stream
        self.name, self.grid, self.block, self.shared = name, grid, block, shared
        self.direction, self.size = direction, size
        self.marks = []


def read_nsys(path, device):
    """(operations, device name) of an Nsight Systems SQLite export. Names are mangled."""
    connection = sqlite3.connect(f"file:{path}?mode=ro&immutable=1", uri=True)
    tables = {row[0] for row in connection.execute("select name from sqlite_master where type = 'table'")}
    names = dict(connection.execute("select id, value from StringIds"))
    launches = {(row[0] >> 24, row[1]): row[2] for row in connection.execute(
        "select globalTid, correlationId, start from CUPTI_ACTIVITY_KIND_RUNTIME")}

    def launch(process, correlation, start):
        return launches.get((process >> 24, correlation), start)

    operations = []
    for row in connection.execute(
            "select globalPid, correlationId, start, end, streamId, coalesce(mangledName, demangledName), gridX, gridY,"
            " gridZ, blockX, blockY, blockZ, staticSharedMemory + dynamicSharedMemory from CUPTI_ACTIVITY_KIND_KERNEL"
            " where deviceId = ?", (device,)):
        operations.append(Operation(launch(row[0], row[1], row[2]), row[2], row[3], row[4], names[row[5]], row[6:9],
                                    row[9:12], row[12]))
    for row in connection.execute(
            "select globalPid, correlationId, start, end, streamId, copyKind, bytes from CUPTI_ACTIVITY_KIND_MEMCPY"
            " where deviceId = ?", (device,)):
        operations.append(Operation(launch(row[0], row[1], row[2]), row[2], row[3], row[4],
                                    direction=DIRECTIONS.get(row[5], "dtod"), size=row[6]))
    if "CUPTI_ACTIVITY_KIND_MEMSET" in tables:
        for row in connection.execute("select globalPid, correlationId, start, end, streamId, bytes"
                                      " from CUPTI_ACTIVITY_KIND_MEMSET where deviceId = ?", (device,)):
            operations.append(Operation(launch(row[0], row[1], row[2]), row[2], row[3], row[4], size=row[5]))
    gpu = connection.execute("select name from TARGET_INFO_GPU").fetchone() if "TARGET_INFO_GPU" in tables else None
    return operations, gpu[0] if gpu else "unknown"


def copy_direction(name):
    return next((short for long, short in (("HtoD", "htod"), ("DtoH", "dtoh")) if long in name), "dtod")


def read_kineto(path, part):
    """(operations, device name) of a PyTorch profiler trace. Names are demangled."""
    with gzip.open(path) as file:
        trace = json.load(file)
    events = trace["traceEvents"]
    annotations = [e for e in events if e.get("cat") == "user_annotation"]
    launches = {e["args"]["correlation"]: round(1000 * e["ts"]) for e in events
                if e.get("cat") in ("cuda_runtime", "cuda_driver") and "correlation" in e.get("args", {})}
    operations = []
    for event in events:
        category, arguments = event.get("cat"), event.get("args", {})
        if category not in ("kernel", "gpu_memcpy", "gpu_memset"):
            continue
        start_ns = round(1000 * event["ts"])
        operation = Operation(launches.get(arguments.get("correlation"), start_ns), start_ns,
                              start_ns + round(1000 * event["dur"]), arguments.get("stream", 0))
        if category == "kernel":
            operation.name = event["name"]
            operation.grid = arguments.get("grid", (0, 0, 0))  # AMD's traces may lack both
            operation.block = arguments.get("block", (0, 0, 0))
            operation.shared = arguments.get("shared memory", 0)
        elif category == "gpu_memcpy":
            operation.direction, operation.size = copy_direction(event["name"]), arguments.get("bytes", 0)
        else:
            operation.size = arguments.get("bytes", 0)
        operations.append(operation)
    device = (trace.get("deviceProperties") or [{}])[0].get("name", "unknown")
    return cut(sorted(operations, key=lambda o: o.launch_ns), annotations, part), device


def cut(operations, annotations, part):
    """The selected part of a trace, with its steps and phases marked."""
    def span(annotation):
        return round(1000 * annotation["ts"]), round(1000 * (annotation["ts"] + annotation.get("dur", 0)))

    steps = sorted((span(a), a["name"]) for a in annotations if a["name"].startswith("ProfilerStep#"))
    if "after" in part:
        spans = sorted(span(a) for a in annotations if a["name"] == part["after"])
        operations = [o for o in operations if o.launch_ns >= spans[part["which"]][0]]
    if "steps" in part:
        steps = steps[1:1 + part["steps"]]
        operations = [o for o in operations if steps[0][0][0] <= o.launch_ns < steps[-1][0][1]]
    phases = sorted((*span(a), phase) for a in annotations for text, phase in PHASES
                    if a["name"].strip("# ").startswith(text) and ":" not in a["name"].strip("# "))
    current = None
    starts = [step[0][0] for step in steps]
    step_now = None
    for operation in operations:
        step = bisect.bisect_right(starts, operation.launch_ns) - 1
        if step >= 0 and step != step_now and "steps" in part:
            operation.marks.append("step")
            step_now, current = step, None
        phase = next((p for begin, end, p in phases if begin <= operation.launch_ns < end), None)
        if phase is not None and phase != current:
            operation.marks.append(phase)
            current = phase
    return operations


def write(path, operations, header):
    operations.sort(key=lambda o: (o.launch_ns, o.start_ns))
    names, streams, ends, lines = {}, {}, {}, []
    for operation in operations:
        stream = streams.setdefault(operation.stream, len(streams))
        gap_ns = max(0, operation.start_ns - ends.get(stream, operation.start_ns))
        ends[stream] = max(ends.get(stream, 0), operation.end_ns)
        duration_ns = max(0, operation.end_ns - operation.start_ns)
        lines += [f"mark {mark}" for mark in operation.marks]
        if operation.name is not None:
            name = names.setdefault(operation.name, len(names))
            shape = " ".join(str(int(n)) for n in (*operation.grid, *operation.block))
            lines.append(f"k {stream} {name} {shape} {int(operation.shared)} {gap_ns} {duration_ns}")
        elif operation.direction is not None:
            lines.append(f"c {stream} {operation.direction} {int(operation.size)} {gap_ns} {duration_ns}")
        else:
            lines.append(f"m {stream} {int(operation.size)} {gap_ns} {duration_ns}")
    text = [f"kernel-stream {VERSION}", *header, *(f"name {index} {name}" for name, index in names.items()), *lines]
    path.write_text("\n".join(text) + "\n", encoding="utf-8")
    return len(operations), len(names)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--traces", type=pathlib.Path, default=ROOT.parent / "shared/traces")
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "data/kernel-streams")
    parser.add_argument("--evaluation", action="store_true", help="a stream of every trace of a known model")
    arguments = parser.parse_args()
    if not arguments.traces.is_dir():
        sys.exit(f"kernel_streams: no traces in {arguments.traces}; name their folder with --traces")
    streams = STREAMS
    if arguments.evaluation:
        streams = [(name, trace, "shared/traces", "see there", device, {}) for name, trace, device in EVALUATION]
    for name, trace, repository, licence, device, part in streams:
        path = arguments.traces / trace
        operations, gpu = read_nsys(path, device) if trace.endswith(".sqlite") else read_kineto(path, part)
        count, names = write(arguments.out / f"{name}.stream", operations,
                             [f"source {repository} {path.name}", f"licence {licence}", f"device {gpu}"])
        print(f"{name}: {count} operations, {names} kernel names")


if __name__ == "__main__":
    main()
