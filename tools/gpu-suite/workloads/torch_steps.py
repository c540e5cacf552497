# SPDX-License-Identifier: Apache-2.0
"""torch_steps.py SECONDS: training steps of a small model; prints a line when it is warm, and at the end
{"steps": [[start (CLOCK_REALTIME, ns), ms]…]}."""

import json
import sys
import time

import torch
import torch_work


def main():
    train = torch_work.training_of("mlp")

    def step():
        train()
        torch.cuda.synchronize()

    for _ in range(torch_work.WARM_UP):
        step()
    print("warm", flush=True)
    steps, ends = [], time.monotonic() + float(sys.argv[1])
    while time.monotonic() < ends:
        start_ns, started = time.time_ns(), time.perf_counter()
        step()
        steps.append((start_ns, round(1000 * (time.perf_counter() - started), 4)))
    print(json.dumps({"steps": steps}))


if __name__ == "__main__":
    main()
