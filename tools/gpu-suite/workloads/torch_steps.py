# SPDX-License-Identifier: Apache-2.0
"""torch_steps.py SECONDS: training steps of a small model; prints a line when it is warm, and at the end
{"steps": [[start (CLOCK_REALTIME, ns), ms]…]}."""

import json
import sys
import time

import torch
import torch_work


def main():
    model, data = torch_work.MODELS["mlp"]()
    model = model.cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)

    def step():
        optimizer.zero_grad(set_to_none=False)
        model(data).square().mean().backward()
        optimizer.step()
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
