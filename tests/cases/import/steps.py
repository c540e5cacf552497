#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes a PyTorch trace of steps of 10 ms, of which the kernels of 40 take three times as long, to standard output."""

import json

events, now_us = [], 1_000_000.0
for step in range(200):
    kernel_us = 24_000 if 100 <= step < 140 else 8_000
    events += [
        {"ph": "X", "cat": "user_annotation", "name": f"ProfilerStep#{step}", "pid": 7, "tid": 8, "ts": now_us, "dur": kernel_us + 2_000},
        {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 7, "tid": 8, "ts": now_us + 100, "dur": 10,
         "args": {"correlation": 2 * step + 1}},
        {"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7, "ts": now_us + 200, "dur": kernel_us,
         "args": {"correlation": 2 * step + 1, "device": 0, "stream": 7}},
        {"ph": "X", "cat": "cuda_runtime", "name": "cudaStreamSynchronize", "pid": 7, "tid": 8, "ts": now_us + 150, "dur": kernel_us + 100,
         "args": {"correlation": 2 * step + 2}},
    ]
    now_us += kernel_us + 2_000
print(json.dumps({"deviceProperties": [{"id": 0, "name": "Card"}], "traceEvents": events}))
