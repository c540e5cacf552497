# SPDX-License-Identifier: Apache-2.0
"""Which trials there are: from a seed, in random order, each with a seed of its own."""

import dataclasses
import random

VICTIMS = {
    # name: program, arguments; {build}, {log}, {seconds}, {disk}, {cached} are filled in
    "stencil": ["{build}/bin/hpc", "--halo-mb", "2", "--seconds", "{seconds}", "--step-log", "{log}"],
    "trainer": ["{python}", "{here}/victims/trainer.py", "--step-log", "{log}", "--seconds", "{seconds}"],
    "trainer-2": ["{python}", "{here}/victims/trainer.py", "--step-log", "{log}", "--seconds", "{seconds}",
                  "--workers", "2", "--records", "96"],
    "streamer": ["{python}", "{here}/victims/trainer.py", "--step-log", "{log}", "--seconds", "{seconds}",
                 "--records", "16", "--read-mb", "8", "--file", "{disk}"],
    "reader": ["{python}", "{here}/victims/trainer.py", "--step-log", "{log}", "--seconds", "{seconds}",
               "--records", "16", "--read-mb", "16", "--cached", "--file", "{cached}"],
    # test alone
    "saver": ["{python}", "{here}/victims/trainer.py", "--step-log", "{log}", "--seconds", "{seconds}",
              "--stream", "cloverleaf-a100", "--records", "32", "--write-kb", "256"],
}
TRAINERS = ("trainer", "trainer-2", "streamer", "reader")

# What each fault is tried with: victims, amounts, and what the label would be if the check agrees ("": none, a
# negative or a cause without a model).
TRAIN = {
    "compute": (("stencil", *TRAINERS), (2, 3, 4), "cpu_contention"),
    "quota": (("stencil", *TRAINERS), (0.4, 0.6, 0.75), "cpu_quota"),
    "disk-read": (("streamer",), (2, 4, 8), "block_io"),
    "memory-limit": (("reader",), (8, 16, 24), "memory_pressure"),
    "heavier-data": (TRAINERS, (1,), "slow_data_loading"),
    "own-threads": (TRAINERS, (1,), "cpu_contention_own"),
    "gpu-neighbour": (("stencil", "trainer"), (0.4, 0.6), "gpu_neighbour"),
    "gpu-power-cap": (("stencil", "trainer"), (150, 250), "gpu_clocks"),
    "gpu-pcie-width": (("stencil",), (1, 2), "pcie_pressure"),
    "stopped-loader": (("trainer",), (1,), ""),
}
TRAIN_NEGATIVES = {
    "nothing": (tuple(VICTIMS)[:5], (0,), ""),
    "compute-little": (("stencil", *TRAINERS), (1, 2), ""),
    "disk-read": (("stencil", "trainer"), (2, 4), ""),
    "cached-read": (("trainer", "streamer"), (1,), ""),
}
TEST = {
    "compress": (("stencil", "trainer-2", "saver"), (2, 4), "cpu_contention"),
    "quota": (("stencil", "saver"), (0.5, 0.7), "cpu_quota"),
    "disk-write": (("saver", "streamer"), (2, 4), "block_io"),
    "copy-file": (("streamer",), (2, 4), "block_io"),
}
TEST_NEGATIVES = {
    "nothing": (("stencil", "saver"), (0,), ""),
    "copy-file": (("stencil", "trainer-2"), (1,), ""),
}
SHAPES = ("steady", "steady", "pulse")
CLEAN_S = (11.0, 15.0)  # from the start of the victim's steps to the onset
FAULT_S = 9.0
AFTER_S = 5.0


@dataclasses.dataclass(frozen=True)
class Trial:
    name: str
    split: str
    victim: str
    fault: str
    amount: float
    shape: str
    clean_s: float
    fault_s: float
    after_s: float
    intended: str  # the label, if the check agrees
    seed: int


def make(split, seed, count, only=()):
    """`count` trials; one in three is meant to be negative."""
    positives, negatives = (TRAIN, TRAIN_NEGATIVES) if split == "train" else (TEST, TEST_NEGATIVES)
    generator = random.Random(f"{split}-{seed}")
    trials = []
    queue = []
    while len(trials) < count:
        if not queue:  # each fault in turn, in an order of its own each time
            kinds = [(fault, positives[fault]) for fault in positives if not only or fault in only]
            kinds += [(fault, negatives[fault]) for fault in negatives if not only or "negative" in only]
            generator.shuffle(kinds)
            queue = kinds
        fault, (victims, amounts, intended) = queue.pop()
        index = len(trials)
        trials.append(Trial(
            name=f"{split}-{seed}-{index:03d}", split=split, victim=generator.choice(victims), fault=fault,
            amount=generator.choice(amounts),
            shape="steady" if fault in ("nothing", "stopped-loader", "own-threads") else generator.choice(SHAPES),
            clean_s=round(generator.uniform(*CLEAN_S), 2), fault_s=FAULT_S, after_s=AFTER_S, intended=intended,
            seed=generator.randrange(1 << 30)))
    return trials
