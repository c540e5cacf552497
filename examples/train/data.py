# SPDX-License-Identifier: Apache-2.0
"""Batches of compressed records, and the loader processes."""

import hashlib
import multiprocessing
import random
import signal
import zlib

CLASSES = 8
FEATURES = 64
RECORDS = 224  # per batch: loading it takes one core longer than a step takes the GPU
RECORD_BYTES = 96 * 1024
PATCH_BYTES = RECORD_BYTES // FEATURES


def make_record(generator, label):
    """Noise that is brighter in the patches of its class: compresses to about half, and can be learnt."""
    noise = generator.getrandbits(8 * RECORD_BYTES).to_bytes(RECORD_BYTES, "little")
    dark, bright = (bytes(base + (i & 15) for i in range(256)) for base in (96, 104))
    return b"".join(noise[at:at + PATCH_BYTES].translate(bright if patch % CLASSES == label else dark)
                    for patch, at in enumerate(range(0, RECORD_BYTES, PATCH_BYTES)))


def make_dataset(batches, seed=1):
    """[(compressed records, their SHA-256, labels), …]"""
    generator = random.Random(seed)
    dataset = []
    for _ in range(batches):
        labels = [generator.randrange(CLASSES) for _ in range(RECORDS)]
        packed = zlib.compress(b"".join(make_record(generator, label) for label in labels), 1)
        dataset.append((packed, hashlib.sha256(packed).digest(), labels))
    return dataset


def preprocess(record):
    """The features of a record: the mean brightness of each patch, around 0."""
    sampled = [record[at:at + PATCH_BYTES:8] for at in range(0, RECORD_BYTES, PATCH_BYTES)]
    return [(sum(patch) / len(patch) - 104) / 8 for patch in sampled]


def load_batch(entry):
    """(features, labels) of an entry of the data set. Raises ValueError if it is damaged."""
    packed, digest, labels = entry
    if hashlib.sha256(packed).digest() != digest:
        raise ValueError("a batch of the data set is damaged: its checksum differs")
    records = zlib.decompress(packed)
    return [preprocess(records[at:at + RECORD_BYTES]) for at in range(0, len(records), RECORD_BYTES)], labels


def load_forever(dataset, first, stride, pipe):
    """A worker: sends the batches first, first + stride, … until its reader ends. The pipe's buffer bounds how far it runs
    ahead."""
    index = first
    try:
        while True:
            pipe.send(load_batch(dataset[index % len(dataset)]))
            index += stride
    except BrokenPipeError:
        pass


class Loader:
    """An endless iterator over the batches, loaded by `workers` processes, or on demand without workers. The order of
    batches is the same for any number of workers."""

    def __init__(self, dataset, workers):
        self.dataset = dataset
        self.next_index = 0
        self.pipes = []
        self.processes = []
        # Ctrl-C reaches every process of the terminal. The workers ignore it: close() ends them.
        handler = signal.signal(signal.SIGINT, signal.SIG_IGN)
        for first in range(workers):
            self.start_worker(first, workers)
        signal.signal(signal.SIGINT, handler)

    def start_worker(self, first, workers):
        context = multiprocessing.get_context("spawn")
        ours, theirs = context.Pipe(duplex=False)
        process = context.Process(target=load_forever, args=(self.dataset, first, workers, theirs), daemon=True)
        process.start()
        theirs.close()  # the worker's end is now the only one, and its death an EOFError here
        self.pipes.append(ours)
        self.processes.append(process)

    def __iter__(self):
        return self

    def __next__(self):
        index = self.next_index
        self.next_index += 1
        if self.pipes:
            return self.pipes[index % len(self.pipes)].recv()
        return load_batch(self.dataset[index % len(self.dataset)])

    def close(self):
        for pipe in self.pipes:
            pipe.close()
        for process in self.processes:
            process.join()
