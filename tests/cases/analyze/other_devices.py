#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""other_devices.py FORMAT FILE: 100 launches of kernels of 10 µs, 30 µs apart, and a copy after every tenth.

FORMAT:
    xla            as JAX and TensorFlow write them, with a step of ten launches on the host, and the lines that XLA
                   derives from the streams
    xpu            of an Intel GPU, by PyTorch
    early          as PyTorch writes them, but the GPU's clock is 20 µs behind
"""

import gzip
import json
import sys

HOST, DEVICE = 701, 1
KERNEL_US, PERIOD_US, DELAY_US = 10, 30, 8
COPY_US, COPY_BYTES = 4, 4096


def meta(what, pid, name, tid=None):
    event = {"ph": "M", "pid": pid, "name": what, "args": {"name": name}}
    return event if tid is None else event | {"tid": tid}


def xla_events():
    yield meta("process_name", DEVICE, "/device:GPU:3")
    yield meta("process_name", HOST, "/host:CPU")
    yield meta("thread_name", DEVICE, "Stream #14(Compute,MemcpyH2D)", 5)
    yield meta("thread_name", DEVICE, "XLA Ops", 6)
    yield meta("thread_name", HOST, "python", 9)
    for i in range(100):
        at = 100 + i * PERIOD_US
        event = lambda pid, tid, name, start, took, **args: {
            "ph": "X", "pid": pid, "tid": tid, "ts": start, "dur": took, "name": name, "args": args}
        if i % 10 == 0:
            yield event(HOST, 9, "train", at - 1, 10 * PERIOD_US - 1, step_num=str(i // 10))
            yield event(HOST, 9, "cuMemcpyHtoDAsync_v2", at + 16, 2, correlation_id=str(1000 + i))
            yield event(DEVICE, 5, "MemcpyH2D", at + 20, COPY_US, correlation_id=str(1000 + i),
                        memcpy_details=f"kind_src:pinned kind_dst:device size:{COPY_BYTES} dest:0 async:1")
        yield event(HOST, 9, "PjitFunction(step)", at - 0.5, 6)
        yield event(HOST, 9, "cuLaunchKernel", at, 5, correlation_id=str(i))
        yield event(DEVICE, 5, "loop_add_fusion", at + DELAY_US, KERNEL_US, correlation_id=str(i), hlo_op="add.1",
                    kernel_details="regs:32 static_shared:0 dynamic_shared:0 grid:64,1,1 block:128,1,1 occ_pct:100")
        yield event(DEVICE, 6, "add.1", at + DELAY_US, KERNEL_US, hlo_op="add.1")
    yield {}


def torch_events(runtime, launch, copy, behind_us):
    for i in range(100):
        at = 100 + i * PERIOD_US
        call = lambda name, start, number: {"ph": "X", "cat": runtime, "name": name, "pid": HOST, "tid": 9, "ts": start,
                                            "dur": 2, "args": {"correlation": number}}
        work = lambda category, name, start, took, number: {
            "ph": "X", "cat": category, "name": name, "pid": 0, "tid": 2, "ts": start - behind_us, "dur": took,
            "args": {"device": 0, "correlation": number, "bytes": COPY_BYTES}}
        yield call(launch, at, i)
        yield work("kernel", "add", at + DELAY_US, KERNEL_US, i)
        if i % 10 == 0:
            yield call("copy", at + 16, 1000 + i)
            yield work("gpu_memcpy", copy, at + 20, COPY_US, 1000 + i)


def main():
    kind, path = sys.argv[1:]
    if kind == "xla":
        events = list(xla_events())
    elif kind == "xpu":
        events = list(torch_events("xpu_runtime", "urEnqueueKernelLaunch", "zeCommandListAppendMemoryCopy(M2D)", 0))
    else:
        events = list(torch_events("cuda_runtime", "cudaLaunchKernel", "Memcpy HtoD (Pageable -> Device)", 20))
    text = json.dumps({"displayTimeUnit": "ns", "metadata": {"highres-ticks": True}, "traceEvents": events})
    with (gzip.open(path, "wt") if path.endswith(".gz") else open(path, "w")) as file:
        file.write(text)


main()
