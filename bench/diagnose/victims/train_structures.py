#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Victims of the benchmark's train split that differ in how their work is arranged. None marks its steps.

short-loop       steps of 2 ms: some CPU work, one kernel, a wait
pool             batches from a multiprocessing.Pool, three ahead
pipeline         threads with condition variables: decode, collate, train
event-loop       an epoll server; a client asks at irregular times over a Unix socket
micro-batches    four micro-batches, each with a wait, and an update
long-steps       steps of 0.7 s of many kernels
checkpoints      writes its state every 150 steps, a natural phase
graph-loop       each step one launch of a CUDA graph
thread-pool      futures of a concurrent.futures.ThreadPoolExecutor
socket-ranks     two ranks that exchange gradients over a Unix socket
two-models       two threads, each with a model and a stream of its own; the steps are those of the first
request-threads  a server that starts a thread for each request, at irregular times
"""

import concurrent.futures
import multiprocessing
import os
import random
import select
import socket
import sys
import threading
import time
import zlib

from program import MB, Gpu, StepLog, Switch, compute, main

PACKED = zlib.compress(os.urandom(MB // 2) * 2, 6)


def unpack(records):
    """About 3 ms a record, without Python's lock."""
    for _ in range(records):
        zlib.decompress(PACKED)


def short_loop(arguments):
    log, gpu, work = StepLog(arguments), Gpu("relax"), Switch(arguments.heavier)
    while log.goes_on():
        begin = time.monotonic_ns()
        compute(40 * work.factor.value)
        gpu.launch("relax", 900)
        log.write(begin, gpu_ns=gpu.wait())


def load_pooled(_index):
    unpack(4 * WORK.factor.value)
    return bytes(256 << 10)


def pool(arguments):
    global WORK  # workers inherit it
    WORK = Switch(arguments.heavier)
    with multiprocessing.get_context("fork").Pool(2) as workers:
        ahead = [workers.apply_async(load_pooled, (index,)) for index in range(3)]
        log, gpu = StepLog(arguments), Gpu("forward", "backward", "update")
        while log.goes_on():
            begin = time.monotonic_ns()
            ahead.pop(0).get()
            ahead.append(workers.apply_async(load_pooled, (0,)))
            loaded = time.monotonic_ns()
            gpu.upload(256 << 10)
            for name, duration_us in (("forward", 1500), ("backward", 3000), ("update", 500)):
                gpu.launch(name, duration_us)
            log.write(begin, loaded - begin, gpu_ns=gpu.wait())


class Handover:
    """A queue of a fixed length between threads."""

    def __init__(self, length):
        self.items, self.length, self.changed = [], length, threading.Condition()

    def put(self, item):
        with self.changed:
            self.changed.wait_for(lambda: len(self.items) < self.length)
            self.items.append(item)
            self.changed.notify_all()

    def get(self):
        with self.changed:
            self.changed.wait_for(lambda: self.items)
            self.changed.notify_all()
            return self.items.pop(0)


def pipeline(arguments):
    log, gpu, work = StepLog(arguments), Gpu("forward", "backward"), Switch(arguments.heavier)
    decoded, collated = Handover(2), Handover(2)

    def decode():
        while True:
            unpack(3 * work.factor.value)
            decoded.put(MB)

    def collate():
        while True:
            size = decoded.get()
            compute(60)
            collated.put(size)

    for stage in (decode, collate):
        threading.Thread(target=stage, daemon=True).start()
    while log.goes_on():
        begin = time.monotonic_ns()
        size = collated.get()
        loaded = time.monotonic_ns()
        gpu.upload(size)
        gpu.launch("forward", 2500)
        gpu.launch("backward", 5000)
        log.write(begin, loaded - begin, gpu_ns=gpu.wait())
    log.file.flush()
    os._exit(0)  # the other threads wait for each other


def ask_forever(path, seed):
    generator = random.Random(seed)
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(path)
        while True:
            time.sleep(generator.expovariate(60))
            connection.sendall(bytes(16 << 10))
            if not connection.recv(4096):
                return


def event_loop(arguments):
    path = f"{arguments.step_log}.socket"
    work = Switch(arguments.heavier)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(path)
        server.listen()
        clients = [multiprocessing.get_context("fork").Process(target=ask_forever, args=(path, seed), daemon=True)
                   for seed in (1, 2)]
        for client in clients:
            client.start()
        log, gpu = StepLog(arguments), Gpu("embed", "attend", "head")
        poller, connections = select.epoll(), {}
        poller.register(server.fileno(), select.EPOLLIN)
        while log.goes_on():
            for number, _events in poller.poll(1):
                if number == server.fileno():
                    connection = server.accept()[0]
                    connections[connection.fileno()] = connection
                    poller.register(connection.fileno(), select.EPOLLIN)
                    continue
                begin = time.monotonic_ns()
                left = 16 << 10
                while left > 0:
                    left -= len(connections[number].recv(left))
                compute(120 * work.factor.value)
                gpu.upload(16 << 10)
                for name, duration_us in (("embed", 200), ("attend", 2400), ("head", 300)):
                    gpu.launch(name, duration_us)
                gpu.download(4096)
                gpu_ns = gpu.wait()
                connections[number].sendall(bytes(1024))
                log.write(begin, gpu_ns=gpu_ns)
        for client in clients:
            client.kill()


def micro_batches(arguments):
    log, gpu, work = StepLog(arguments), Gpu("forward", "backward", "clip", "update"), Switch(arguments.heavier)
    while log.goes_on():
        begin, gpu_ns = time.monotonic_ns(), 0
        for _ in range(4):
            compute(70 * work.factor.value)
            gpu.upload(MB)
            gpu.launch("forward", 700)
            gpu.launch("backward", 1400)
            gpu_ns += gpu.wait()
        gpu.launch("clip", 100)
        gpu.launch("update", 400)
        log.write(begin, gpu_ns=gpu_ns + gpu.wait())


def long_steps(arguments):
    log, gpu, work = StepLog(arguments), Gpu("gemm", "softmax", "norm", "update"), Switch(arguments.heavier)
    while log.goes_on():
        begin = time.monotonic_ns()
        for _layer in range(40):
            compute(250 * work.factor.value)
            for name, duration_us in (("norm", 200), ("gemm", 9000), ("softmax", 900), ("gemm", 6000)):
                gpu.launch(name, duration_us)
        gpu.launch("update", 9000)
        log.write(begin, gpu_ns=gpu.wait())


def checkpoints(arguments):
    log, gpu, work = StepLog(arguments), Gpu("forward", "backward", "update"), Switch(arguments.heavier)
    state, step = os.urandom(8 * MB), 0
    while log.goes_on():
        begin = time.monotonic_ns()
        compute(300 * work.factor.value)
        gpu.upload(MB)
        for name, duration_us in (("forward", 2000), ("backward", 4000), ("update", 600)):
            gpu.launch(name, duration_us)
        log.write(begin, gpu_ns=gpu.wait())
        step += 1
        if step % 150 == 0:
            gpu.download(8 * MB)
            gpu.wait()
            with open(f"{arguments.step_log}.checkpoint", "wb") as file:
                file.write(state)
                os.fsync(file.fileno())


def graph_loop(arguments):
    log, gpu, work = StepLog(arguments), Gpu("advect", "project", "reduce"), Switch(arguments.heavier)

    def step():
        for name, duration_us in (("advect", 1200), ("project", 2800), ("reduce", 90)):
            gpu.launch(name, duration_us)

    graph = gpu.cuda.capture(gpu.stream, step)
    while log.goes_on():
        begin = time.monotonic_ns()
        compute(150 * work.factor.value)
        gpu.cuda.launch_graph(graph, gpu.stream)
        log.write(begin, gpu_ns=gpu.wait())


def thread_pool(arguments):
    log, gpu, work = StepLog(arguments), Gpu("convolve", "classify"), Switch(arguments.heavier)
    with concurrent.futures.ThreadPoolExecutor(2) as workers:
        ahead = [workers.submit(unpack, 3) for _ in range(3)]
        while log.goes_on():
            begin = time.monotonic_ns()
            ahead.pop(0).result()
            ahead.append(workers.submit(unpack, 3 * work.factor.value))
            loaded = time.monotonic_ns()
            gpu.upload(MB)
            gpu.launch("convolve", 3500)
            gpu.launch("classify", 400)
            log.write(begin, loaded - begin, gpu_ns=gpu.wait())


def two_models(arguments):
    log, work, ready = StepLog(arguments), Switch(arguments.heavier), threading.Barrier(2)

    def classify():
        gpu = Gpu("tokenize", "classify")
        ready.wait()
        while True:
            compute(50)
            gpu.launch("tokenize", 200)
            gpu.launch("classify", 1300)
            gpu.wait()

    threading.Thread(target=classify, daemon=True).start()
    gpu = Gpu("encode", "attend", "decode")
    ready.wait()
    while log.goes_on():
        begin = time.monotonic_ns()
        compute(160 * work.factor.value)
        gpu.upload(256 << 10)
        for name, duration_us in (("encode", 1400), ("attend", 2600), ("decode", 1100)):
            gpu.launch(name, duration_us)
        log.write(begin, gpu_ns=gpu.wait())
    log.file.flush()
    os._exit(0)


def request_threads(arguments):
    log, gpu, work = StepLog(arguments), Gpu("embed", "interact", "rank"), Switch(arguments.heavier)
    generator, gpu_ns = random.Random(4), 0

    def serve():
        nonlocal gpu_ns
        compute(140 * work.factor.value)
        gpu.upload(64 << 10)
        for name, duration_us in (("embed", 900), ("interact", 2100), ("rank", 250)):
            gpu.launch(name, duration_us)
        gpu_ns = gpu.wait()

    while log.goes_on():
        time.sleep(generator.expovariate(150))
        begin = time.monotonic_ns()
        request = threading.Thread(target=serve)
        request.start()
        request.join()
        log.write(begin, gpu_ns=gpu_ns)


def receive(connection, size):
    while size > 0:
        received = len(connection.recv(min(size, MB)))
        if not received:
            raise OSError("the other rank has ended")
        size -= received


def run_rank(arguments, rank, connection):
    if rank:
        arguments.step_log = f"{arguments.step_log}.{rank}"
    log, gpu, work = StepLog(arguments), Gpu("forward", "backward"), Switch(arguments.heavier)
    gradient = bytes(512 << 10)
    connection.settimeout(60)
    try:
        while log.goes_on():
            begin = time.monotonic_ns()
            compute(250 * work.factor.value)
            gpu.launch("forward", 1800)
            gpu.launch("backward", 3600)
            gpu_ns = gpu.wait()
            synced = time.monotonic_ns()
            if rank:
                connection.sendall(gradient)
                receive(connection, len(gradient))
            else:
                receive(connection, len(gradient))
                connection.sendall(gradient)
            log.write(begin, time.monotonic_ns() - synced, gpu_ns=gpu_ns)
    except OSError:  # the other rank has ended, or waits no longer
        pass


def socket_ranks(arguments):
    here, there = socket.socketpair()

    def be_other():
        here.close()
        run_rank(arguments, 1, there)

    other = multiprocessing.get_context("fork").Process(target=be_other)
    other.start()
    there.close()
    run_rank(arguments, 0, here)
    here.close()
    other.join()


if __name__ == "__main__":
    main({"short-loop": short_loop, "pool": pool, "pipeline": pipeline, "event-loop": event_loop, "micro-batches": micro_batches,
          "long-steps": long_steps, "checkpoints": checkpoints, "graph-loop": graph_loop, "thread-pool": thread_pool,
          "socket-ranks": socket_ranks, "two-models": two_models, "request-threads": request_threads}, __doc__)
    sys.exit(0)
