# SPDX-License-Identifier: Apache-2.0
"""loops.py torch|graph|cupy|jax|triton SECONDS: the same work with a known result again and again; prints "warm", and
at the end {"rounds": …, "wrong": rounds with another result}."""

import json
import os
import sys
import time


def torch_loop(as_graph):
    import torch
    weight = torch.eye(256, device="cuda")
    data = torch.ones(256, 256, device="cuda")

    def work():
        out = data
        for _ in range(50):
            out = torch.relu(out @ weight)
        return out

    if not as_graph:
        return lambda: float(work().sum()), 65536.0
    work()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        out = work()

    def replay(_inputs=(data, weight)):  # the graph reads them: they must live as long
        for _ in range(5):
            graph.replay()
        return float(out.sum())

    return replay, 65536.0


def cupy_loop():
    import cupy
    x = cupy.ones((256, 256), dtype=cupy.float32)

    def work():
        y = x
        for _ in range(50):
            y = y + x
        return float(y.sum())

    return work, 51 * 65536.0


def jax_loop():
    os.environ["XLA_PYTHON_CLIENT_PREALLOCATE"] = "false"
    import jax
    import jax.numpy as jnp

    @jax.jit
    def step(x):
        return jnp.cumsum(jnp.sort(x)) * 0 + 1

    def work():
        x = jnp.ones((256,))
        for _ in range(20):
            x = step(x)
        return float(x.sum())

    return work, 256.0


def triton_loop():
    import torch
    import triton
    import triton.language as tl

    @triton.jit
    def add(x, y, out, n, block: tl.constexpr):
        at = tl.program_id(0) * block + tl.arange(0, block)
        tl.store(out + at, tl.load(x + at, mask=at < n) + tl.load(y + at, mask=at < n), mask=at < n)

    x = torch.ones(65536, device="cuda")
    out = torch.empty_like(x)

    def work():
        for _ in range(50):
            add[(triton.cdiv(65536, 1024),)](x, x, out, 65536, block=1024)
        return float(out.sum())

    return work, 2 * 65536.0


def main():
    loops = {"torch": lambda: torch_loop(False), "graph": lambda: torch_loop(True), "cupy": cupy_loop, "jax": jax_loop,
             "triton": triton_loop}
    work, expected = loops[sys.argv[1]]()
    work()
    print("warm", flush=True)
    rounds = wrong = 0
    ends = time.monotonic() + float(sys.argv[2])
    while time.monotonic() < ends:
        rounds += 1
        wrong += work() != expected
    print(json.dumps({"rounds": rounds, "wrong": wrong}))


if __name__ == "__main__":
    main()
