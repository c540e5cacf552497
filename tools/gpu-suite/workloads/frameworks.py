# SPDX-License-Identifier: Apache-2.0
"""frameworks.py cupy|jax|triton: a little work with kernels that are compiled at run time; prints {"result": …}."""

import json
import os
import sys


def cupy():
    import cupy
    double = cupy.RawKernel(r"""extern "C" __global__ void doubled(float* a, int n) {
        int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) a[i] *= 2.0f; }""", "doubled")
    x = cupy.ones((1024, 1024), dtype=cupy.float32)
    for _ in range(100):
        y = x @ x
        double((4096,), (256,), (y, 1024 * 1024))
        total = float(y.sum())
    return total


def jax():
    os.environ["XLA_PYTHON_CLIENT_PREALLOCATE"] = "false"
    import jax
    import jax.numpy as jnp

    @jax.jit
    def step(w, x):
        return w - 1e-3 * jax.grad(lambda w: jnp.tanh(x @ w).sum())(w)

    w, x = jnp.ones((512, 512)), jnp.ones((256, 512))
    for _ in range(200):
        w = step(w, x)
    return float(w.block_until_ready().sum())


def triton():
    import torch
    import triton
    import triton.language as tl

    @triton.jit
    def add(x, y, out, n, block: tl.constexpr):
        at = tl.program_id(0) * block + tl.arange(0, block)
        tl.store(out + at, tl.load(x + at, mask=at < n) + tl.load(y + at, mask=at < n), mask=at < n)

    x = torch.ones(1 << 20, device="cuda")
    out = torch.empty_like(x)
    for _ in range(200):
        add[(triton.cdiv(x.numel(), 1024),)](x, x, out, x.numel(), block=1024)
    return float(out.sum())


print(json.dumps({"result": {"cupy": cupy, "jax": jax, "triton": triton}[sys.argv[1]]()}))
