#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Victims of the benchmark's test split that differ in how their work is arranged. None marks its steps.

async-server     asyncio: connections over TCP, decoding in an executor, a task that makes batches
process-pool     futures of a concurrent.futures.ProcessPoolExecutor
double-buffer    a child fills shared memory; both ends wait on eventfds
phases           60 training steps, then 15 evaluation steps of other kernels, a natural phase
spinner          asks the stream whether it has finished, and never sleeps
launcher-thread  the main thread prepares, another one launches and waits (queue.Queue)
slow-steps       steps of 2 s, accumulated from 8 batches with a wait each
two-streams      copies on a stream of their own, joined by waits for both
mpi-ranks        OpenMPI, two ranks that reduce gradients in each step
actor-learner    a thread simulates, with a policy on a stream of its own; the main thread trains on what it collects
"""

import asyncio
import concurrent.futures
import ctypes
import mmap
import multiprocessing
import os
import queue
import random
import struct
import sys
import threading
import time
import zlib

from program import MB, Gpu, StepLog, Switch, compute, main

PACKED = zlib.compress(os.urandom(MB // 4) * 3, 9)
NOT_READY = 600  # cudaErrorNotReady


def unpack(records):
    for _ in range(records):
        zlib.decompress(PACKED)


def ask_forever(port, seed):
    async def ask():
        generator = random.Random(seed)
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        while True:
            await asyncio.sleep(generator.expovariate(40))
            writer.write(struct.pack("!I", 8 << 10) + bytes(8 << 10))
            await reader.readexactly(1024)

    try:
        asyncio.run(ask())
    except (OSError, EOFError):
        pass


def async_server(arguments):
    work, log, gpu = Switch(arguments.heavier), StepLog(arguments), Gpu("tokens", "layers", "logits")
    waiting = []

    def infer(count):
        gpu.upload(count * 8 << 10)
        for name, duration_us in (("tokens", 150), ("layers", 2200 + 500 * count), ("logits", 250)):
            gpu.launch(name, duration_us)
        gpu.download(count << 10)
        return gpu.wait()

    async def answer(reader, writer):
        loop = asyncio.get_running_loop()
        try:
            while True:
                (size,) = struct.unpack("!I", await reader.readexactly(4))
                await reader.readexactly(size)
                begin = time.monotonic_ns()
                await loop.run_in_executor(None, unpack, work.factor.value)
                done = loop.create_future()
                waiting.append((begin, done))
                await done
                writer.write(bytes(1024))
        except (EOFError, OSError, asyncio.CancelledError):
            pass

    async def serve():
        server = await asyncio.start_server(answer, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        clients = [multiprocessing.get_context("spawn").Process(target=ask_forever, args=(port, seed), daemon=True)
                   for seed in (3, 4)]
        for client in clients:
            client.start()
        while log.goes_on():
            if not waiting:
                await asyncio.sleep(0.001)
                continue
            batch, waiting[:] = waiting[:4], waiting[4:]
            gpu_ns = infer(len(batch))
            for begin, done in batch:
                done.set_result(None)
                log.write(begin, gpu_ns=gpu_ns)
        for client in clients:
            client.kill()

    asyncio.run(serve())


def set_work(factor):
    global FACTOR
    FACTOR = factor


def load(_index):
    unpack(6 * FACTOR.value)
    return bytes(64 << 10)


def process_pool(arguments):
    context, work = multiprocessing.get_context("spawn"), Switch(arguments.heavier)
    shared = context.Value("i", 1)  # the switch's own value can't be passed to workers that are spawned
    with concurrent.futures.ProcessPoolExecutor(2, context, set_work, (shared,)) as workers:
        ahead = [workers.submit(load, index) for index in range(4)]
        ahead[0].result()
        log, gpu = StepLog(arguments), Gpu("encode", "decode", "adam")
        while log.goes_on():
            shared.value = work.factor.value
            begin = time.monotonic_ns()
            ahead.pop(0).result()
            ahead.append(workers.submit(load, 0))
            loaded = time.monotonic_ns()
            gpu.upload(64 << 10)
            for name, duration_us in (("encode", 3000), ("decode", 4500), ("adam", 700)):
                gpu.launch(name, duration_us)
            log.write(begin, loaded - begin, gpu_ns=gpu.wait())
        for future in ahead:
            future.cancel()


def take(semaphore):
    """Waits for an eventfd; Python, unlike for other calls, doesn't go on after a signal."""
    while True:
        try:
            return os.eventfd_read(semaphore)
        except InterruptedError:
            continue


def double_buffer(arguments):
    work = Switch(arguments.heavier)
    buffers = mmap.mmap(-1, 2 * MB)
    full, empty = os.eventfd(0, os.EFD_SEMAPHORE), os.eventfd(2, os.EFD_SEMAPHORE)

    def fill():
        ctypes.CDLL(None).prctl(1, 9, 0, 0, 0)  # PR_SET_PDEATHSIG, SIGKILL: end with the parent
        turn = 0
        while True:
            take(empty)
            unpack(8 * work.factor.value)
            buffers[turn * MB:turn * MB + 4096] = os.urandom(4096)
            turn = 1 - turn
            os.eventfd_write(full, 1)

    child = multiprocessing.get_context("fork").Process(target=fill, daemon=True)
    child.start()
    log, gpu = StepLog(arguments), Gpu("resize", "detect", "suppress")
    while log.goes_on():
        begin = time.monotonic_ns()
        take(full)
        loaded = time.monotonic_ns()
        gpu.upload(MB)
        for name, duration_us in (("resize", 800), ("detect", 6500), ("suppress", 900)):
            gpu.launch(name, duration_us)
        gpu_ns = gpu.wait()
        os.eventfd_write(empty, 1)
        log.write(begin, loaded - begin, gpu_ns=gpu_ns)
    child.kill()


def phases(arguments):
    log, gpu, work = StepLog(arguments), Gpu("forward", "backward", "update", "predict", "metric"), Switch(arguments.heavier)
    training = (("forward", 1700), ("backward", 3300), ("update", 450))
    evaluation = (("predict", 1600), ("metric", 350))
    step = 0
    while log.goes_on():
        begin = time.monotonic_ns()
        compute(220 * work.factor.value)
        gpu.upload(512 << 10)
        for name, duration_us in training if step % 75 < 60 else evaluation:
            gpu.launch(name, duration_us)
        log.write(begin, gpu_ns=gpu.wait())
        step += 1


def spinner(arguments):
    log, gpu, work = StepLog(arguments), Gpu("relax", "residual"), Switch(arguments.heavier)
    query = gpu.cuda.runtime.cudaStreamQuery
    while log.goes_on():
        begin = time.monotonic_ns()
        compute(130 * work.factor.value)
        gpu.launch("relax", 2600)
        gpu.launch("residual", 300)
        waits = time.monotonic_ns()
        while query(gpu.stream) == NOT_READY:
            pass
        log.write(begin, gpu_ns=time.monotonic_ns() - waits)


def launcher_thread(arguments):
    log, work = StepLog(arguments), Switch(arguments.heavier)
    batches = queue.Queue(2)

    def launch():
        gpu = Gpu("project", "mix", "update")
        while True:
            begin = time.monotonic_ns()
            size = batches.get()
            loaded = time.monotonic_ns()
            gpu.upload(size)
            for name, duration_us in (("project", 1100), ("mix", 3700), ("update", 380)):
                gpu.launch(name, duration_us)
            log.write(begin, loaded - begin, gpu_ns=gpu.wait())

    threading.Thread(target=launch, daemon=True).start()
    while log.goes_on():
        unpack(3 * work.factor.value)
        try:
            batches.put(512 << 10, timeout=0.5)
        except queue.Full:
            pass
    log.file.flush()
    os._exit(0)


def slow_steps(arguments):
    log, gpu, work = StepLog(arguments), Gpu("qkv", "scores", "experts", "adam"), Switch(arguments.heavier)
    while log.goes_on():
        begin, gpu_ns = time.monotonic_ns(), 0
        for _batch in range(8):
            for _layer in range(12):
                compute(350 * work.factor.value)
                for name, duration_us in (("qkv", 4000), ("scores", 5000), ("experts", 9000)):
                    gpu.launch(name, duration_us)
            gpu_ns += gpu.wait()
        gpu.launch("adam", 40_000)
        log.write(begin, gpu_ns=gpu_ns + gpu.wait())


def two_streams(arguments):
    log, gpu, work = StepLog(arguments), Gpu("render", "denoise"), Switch(arguments.heavier)
    copies = gpu.cuda.stream()
    while log.goes_on():
        begin = time.monotonic_ns()
        compute(180 * work.factor.value)
        gpu.cuda.check(gpu.cuda.copy(gpu.memory, gpu.pinned, 8 * MB, 1, copies))
        gpu.launch("render", 4200)
        gpu.launch("denoise", 1300)
        waits = time.monotonic_ns()
        gpu.cuda.check(gpu.cuda.runtime.cudaStreamSynchronize(copies))
        gpu.wait()
        log.write(begin, gpu_ns=time.monotonic_ns() - waits)


def actor_learner(arguments):
    episodes = queue.Queue(2)

    def act():
        gpu = Gpu("policy")
        while True:
            for _step in range(8):
                compute(35)
                gpu.launch("policy", 450)
                gpu.wait()
            episodes.put(128 << 10)

    log, gpu = StepLog(arguments), Gpu("value", "gradient", "clip", "adam")
    threading.Thread(target=act, daemon=True).start()
    while log.goes_on():
        begin = time.monotonic_ns()
        size = episodes.get()
        loaded = time.monotonic_ns()
        gpu.upload(size)
        for name, duration_us in (("value", 1900), ("gradient", 4100), ("clip", 150), ("adam", 550)):
            gpu.launch(name, duration_us)
        log.write(begin, loaded - begin, gpu_ns=gpu.wait())
    log.file.flush()
    os._exit(0)


def mpi_ranks(arguments):
    os.execvp("mpirun", ["mpirun", "--allow-run-as-root", "--oversubscribe", "-n", "2", sys.executable, __file__, "mpi-rank",
                         "--step-log", str(arguments.step_log), "--seconds", str(arguments.seconds)])


def mpi_rank(arguments):
    """Calls OpenMPI's C interface, in which communicators, types and operations are addresses of exported objects."""
    mpi = ctypes.CDLL("libmpi.so.40", ctypes.RTLD_GLOBAL)
    world, floats, total = (ctypes.byref(ctypes.c_char.in_dll(mpi, name))
                            for name in ("ompi_mpi_comm_world", "ompi_mpi_float", "ompi_mpi_op_sum"))
    mpi.MPI_Init(None, None)
    rank = ctypes.c_int()
    mpi.MPI_Comm_rank(world, ctypes.byref(rank))
    if rank.value:
        arguments.step_log = f"{arguments.step_log}.{rank.value}"
    count = 64 << 10
    ours, summed, more = (ctypes.c_float * count)(), (ctypes.c_float * count)(), (ctypes.c_int * 1)()
    log, gpu, work = StepLog(arguments), Gpu("stencil", "boundary"), Switch(arguments.heavier)
    while True:
        begin = time.monotonic_ns()
        compute(200 * work.factor.value)
        gpu.launch("stencil", 3100)
        gpu.launch("boundary", 350)
        gpu_ns = gpu.wait()
        synced = time.monotonic_ns()
        mpi.MPI_Allreduce(ours, summed, count, floats, total, world)
        log.write(begin, time.monotonic_ns() - synced, gpu_ns=gpu_ns)
        more[0] = log.goes_on()
        mpi.MPI_Bcast(more, 4, ctypes.byref(ctypes.c_char.in_dll(mpi, "ompi_mpi_byte")), 0, world)
        if not more[0]:
            break
    mpi.MPI_Finalize()


if __name__ == "__main__":
    main({"async-server": async_server, "process-pool": process_pool, "double-buffer": double_buffer, "phases": phases,
          "spinner": spinner, "launcher-thread": launcher_thread, "slow-steps": slow_steps, "two-streams": two_streams,
          "mpi-ranks": mpi_ranks, "mpi-rank": mpi_rank, "actor-learner": actor_learner}, __doc__)
    sys.exit(0)
