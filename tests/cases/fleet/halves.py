#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""halves.py TRACES: identifies each half of real traces, by time, with a catalog of the whole ones; and whole ones with a
catalog without their model.

Prints {"known": …, "right": …, "unknown": …, "called_unknown": …, "mistakes": [[trace, GPU, found, nearest], …]}; each
counts a GPU in a half, or in a whole trace.
"""

import json
import pathlib
import subprocess
import sys

# GPUs of two makers need an entry each: their kernels have other names.
MODELS = {
    "alexnet": ["kineto/hta_critical_path_alexnet.json.gz"],
    "bert-small": ["kineto/tracelens_h100_bert_small.json.gz"],
    "cloverleaf": ["nsys/cloverleaf.sqlite"],
    "dlrm": ["kineto/hta_diff_control.json.gz", "kineto/hta_diff_test.json.gz"],
    "flux": ["kineto/tracelens_flux_rank0.json.gz"],
    "fuser": ["nsys/fuser1.sqlite"],
    "gaussian": ["nsys/rodinia_r2.sqlite", "nsys/rodinia_r3.sqlite"],
    "hta-job": ["kineto/hta_rank0.json.gz", "kineto/hta_rank1.json.gz"],
    "llm-1s": ["nsys/h100_2gpu_1s.sqlite"],
    "llm-mfu": ["nsys/mfu_2gpu_before.sqlite", "nsys/mfu_2gpu_after.sqlite"],
    "owlv2-h100": ["kineto/tracelens_h100_owlv2.json.gz"],
    "owlv2-mi300": ["kineto/tracelens_mi300_owlv2.json.gz"],
    "qwen-h100": ["kineto/tracelens_h100_qwen.json.gz"],
    "qwen-mi300": ["kineto/tracelens_mi300_qwen.json.gz"],
    "sglang": ["kineto/tracelens_sglang_capture.json.gz"],
    "vit-classifier": ["kineto/tracelens_h100_vit_classifier.json.gz"],
    "vllm": ["kineto/tracelens_vllm_prefilldecode_graph.json.gz"],
}


def gpusonde(*arguments):
    return subprocess.run(["gpusonde", *arguments], check=True, text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL).stdout


def identify(recording, catalog, *times):
    """(GPU, what it ran or None, the nearest) of each GPU that ran kernels."""
    found = json.loads(gpusonde("fleet", "identify", recording, "--catalog", catalog, "--format", "json", *times))
    return [(gpu["uuid"], gpu["application"], gpu["nearest"]) for gpu in found["gpus"] if gpu["kernels"]]


def main():
    traces = pathlib.Path(sys.argv[1])
    recordings = {}
    for model, files in MODELS.items():
        for number, file in enumerate(files):
            recordings.setdefault(model, []).append(f"{model}.{number}.sonde")
            gpusonde("import", str(traces / file), "-o", recordings[model][-1])
    gpusonde("fleet", "catalog", *(f"{model}={file}" for model, files in recordings.items() for file in files),
             "-o", "catalog.json")
    catalog = json.loads(pathlib.Path("catalog.json").read_text())
    result = {"known": 0, "right": 0, "unknown": 0, "called_unknown": 0, "mistakes": []}
    for model, files in recordings.items():
        others = [application for application in catalog["applications"] if application["name"] != model]
        pathlib.Path("others.json").write_text(json.dumps({"version": 1, "applications": others}))
        for file in files:
            half = json.loads(gpusonde("query", file, "--format", "json", "SELECT strftime(make_timestamp_ns("
                                       "((min(start_ns)::HUGEINT + max(start_ns)) / 2)::BIGINT), '%Y-%m-%dT%H:%M:%S.%fZ') "
                                       "AS half FROM kernels"))[0]["half"]
            for times in (["--to", half], ["--from", half]):
                for gpu, found, nearest in identify(file, "catalog.json", *times):
                    result["known"] += 1
                    result["right"] += found == model
                    if found != model:
                        result["mistakes"].append([f"{file} {' '.join(times)}", gpu, found, nearest])
            for gpu, found, nearest in identify(file, "others.json"):
                result["unknown"] += 1
                result["called_unknown"] += found is None
                if found is not None:
                    result["mistakes"].append([f"{file} without {model}", gpu, found, nearest])
    print(json.dumps(result))


main()
