# SPDX-License-Identifier: Apache-2.0
"""Training steps of small models on random data, one after the other; prints the durations as a JSON line per model, and
the totals of PyTorch's profiler with --profiler 1. The same arguments launch the same kernels."""

import argparse
import json
import pathlib
import tempfile
import time

import torch

WARM_UP = 15
PROFILER_WARM_UP = 5


def mlp():
    layers = []
    for _ in range(24):
        layers += [torch.nn.Linear(256, 256), torch.nn.ReLU()]
    return torch.nn.Sequential(*layers), torch.randn(64, 256, device="cuda")


def transformer():
    layer = torch.nn.TransformerEncoderLayer(512, 8, 2048, dropout=0.0, batch_first=True)
    return torch.nn.TransformerEncoder(layer, 6), torch.randn(16, 128, 512, device="cuda")


def convolutions():
    layers, channels = [], 3
    for more in (64, 64, 128, 128, 256, 256, 512, 512):
        layers += [torch.nn.Conv2d(channels, more, 3, stride=2 if more != channels and channels > 3 else 1, padding=1),
                   torch.nn.BatchNorm2d(more), torch.nn.ReLU()]
        channels = more
    return torch.nn.Sequential(*layers), torch.randn(32, 3, 128, 128, device="cuda")


MODELS = {"convolutions": convolutions, "mlp": mlp, "transformer": transformer}


def totals_of(profiler):
    """({"kernels": {"n", "ns"}, "copies": …, "sets": …}, {kernel: {"n", "ns"}}) of a finished profile."""
    path = pathlib.Path(tempfile.mkdtemp()) / "trace.json"
    profiler.export_chrome_trace(str(path))
    events = json.loads(path.read_text())["traceEvents"]
    path.unlink()
    path.parent.rmdir()
    totals = {what: {"n": 0, "ns": 0} for what in ("kernels", "copies", "sets")}
    kernels = {}
    what = {"kernel": "kernels", "gpu_memcpy": "copies", "gpu_memset": "sets"}
    for event in events:
        if event.get("cat") not in what:
            continue
        duration_ns = round(1000 * event["dur"])
        sums = [totals[what[event["cat"]]]]
        if event["cat"] == "kernel":
            sums.append(kernels.setdefault(event["name"], {"n": 0, "ns": 0}))
        for each in sums:
            each["n"] += 1
            each["ns"] += duration_ns
    return totals, kernels


def training_of(name):
    """A function that makes a training step of this model, without waiting for the GPU."""
    model, data = MODELS[name]()
    model = model.cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)

    def step():
        optimizer.zero_grad(set_to_none=False)
        model(data).square().mean().backward()
        optimizer.step()

    return step


def measure(name, arguments):
    """Trains one model; returns what is printed about it."""
    torch.manual_seed(1)
    step = training_of(name)
    stream = torch.cuda.Stream()  # as capture requires
    with torch.cuda.stream(stream):
        for _ in range(WARM_UP):
            step()
    torch.cuda.synchronize()
    if arguments.graph:
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            step()
        step = graph.replay
        for _ in range(WARM_UP):
            step()
        torch.cuda.synchronize()

    profiler, seen = None, {}
    if arguments.profiler:
        def keep(finished):
            seen["totals"], seen["kernels"] = totals_of(finished)

        # A warm-up of the profiler: without it, the first step would lack the work before it was ready.
        profiler = torch.profiler.profile(
            activities=[torch.profiler.ProfilerActivity.CUDA], on_trace_ready=keep,
            schedule=torch.profiler.schedule(wait=0, warmup=PROFILER_WARM_UP, active=arguments.steps, repeat=1))
        profiler.start()
        for _ in range(PROFILER_WARM_UP):
            step()
            torch.cuda.synchronize()
            profiler.step()
    time.sleep(0.01)
    start_ns, steps_ms = time.time_ns(), []
    for _ in range(arguments.steps):
        started = time.perf_counter()
        step()
        torch.cuda.synchronize()
        steps_ms.append(round(1000 * (time.perf_counter() - started), 4))
        if profiler:
            profiler.step()
    end_ns = time.time_ns()
    time.sleep(0.01)
    if profiler:
        profiler.stop()
    return {"model": name, "start_ns": start_ns, "end_ns": end_ns, "steps_ms": steps_ms, **seen}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", choices=MODELS, nargs="+", default=["mlp"])
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument("--profiler", type=int, default=0)
    parser.add_argument("--graph", type=int, default=0, help="1: replays one step as a CUDA graph")
    arguments = parser.parse_args()
    torch.backends.cudnn.benchmark = False
    torch.backends.cudnn.deterministic = True
    for name in arguments.model:
        print(json.dumps(measure(name, arguments)), flush=True)


if __name__ == "__main__":
    main()
