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
    "ranks": ["{python}", "{here}/victims/ranks.py", "--step-log", "{log}", "--seconds", "{seconds}", "--cpus", "0",
              "{last_cpu}"],
    "ranks-net": ["{python}", "{here}/victims/ranks.py", "--step-log", "{log}", "--seconds", "{seconds}", "--namespaces",
                  "{ends[0]}", "{ends[1]}", "--addresses", "{addresses[0]}", "{addresses[1]}"],
    # test alone
    "saver": ["{python}", "{here}/victims/trainer.py", "--step-log", "{log}", "--seconds", "{seconds}",
              "--stream", "cloverleaf-a100", "--records", "32", "--write-kb", "256"],
}
NETWORKED = ("ranks-net",)  # they want two namespaces
RANKS = ("ranks", "ranks-net")
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
    "io-limit": (("streamer",), (20, 40, 80), "io_throttling"),
    "traffic": (("ranks-net",), (1, 2), "network_contention"),
    "short-queue": (("ranks-net",), (16, 24), "packet_loss"),
    "late-rank": (RANKS, (1,), "straggler"),
    "memory-copy": (("stencil",), (1,), "slow_cpu"),
    "stopped-loader": (("trainer",), (1,), ""),
}
# Two at once: [(fault, amount, what the label would be), …] by victim.
TRAIN_PAIRS = {
    "streamer": (("compute", 3, "cpu_contention"), ("disk-read", 4, "block_io")),
    "stencil": (("compute", 3, "cpu_contention"), ("gpu-neighbour", 0.6, "gpu_neighbour")),
    "trainer": (("heavier-data", 1, "slow_data_loading"), ("gpu-power-cap", 150, "gpu_clocks")),
    "ranks-net": (("traffic", 1, "network_contention"), ("late-rank", 1, "straggler")),
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
    "io-operations": (("saver",), (10, 20), "io_throttling"),
    "transfers": (("ranks-net",), (2, 4), "network_contention"),
    "held-rank": (("ranks",), (1, 2), "straggler"),
}
TEST_PAIRS = {
    "saver": (("compress", 2, "cpu_contention"), ("io-operations", 20, "io_throttling")),
    "ranks-net": (("compress", 2, "cpu_contention"), ("transfers", 2, "network_contention")),
}
TEST_NEGATIVES = {
    "nothing": (("stencil", "saver"), (0,), ""),
    "copy-file": (("stencil", "trainer-2"), (1,), ""),
}
SHAPES = ("steady", "steady", "pulse", "ramp")
STEADY = ("nothing", "stopped-loader", "own-threads", "late-rank", "gpu-pcie-width")  # there is no less of these
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
    also: tuple = ()  # (fault, amount, intended) of a second one at the same time

    def faults(self):
        return [(self.fault, self.amount), *([tuple(self.also[:2])] if self.also else [])]


def make(split, seed, count, only=()):
    """`count` trials; one in three is meant to be negative, and some are of two faults."""
    positives, negatives, pairs = (
        (TRAIN, TRAIN_NEGATIVES, TRAIN_PAIRS) if split == "train" else (TEST, TEST_NEGATIVES, TEST_PAIRS))
    generator = random.Random(f"{split}-{seed}")
    trials = []
    queue = []
    while len(trials) < count:
        if not queue:  # each fault in turn, in an order of its own each time
            kinds = [(fault, positives[fault], ()) for fault in positives if not only or fault in only]
            kinds += [(fault, negatives[fault], ()) for fault in negatives if not only or "negative" in only]
            kinds += [(first[0], ((victim,), (first[1],), first[2]), second)
                      for victim, (first, second) in pairs.items() if not only or "pair" in only]
            generator.shuffle(kinds)
            queue = kinds
        fault, (victims, amounts, intended), also = queue.pop()
        index = len(trials)
        trials.append(Trial(
            name=f"{split}-{seed}-{index:03d}", split=split, victim=generator.choice(victims), fault=fault,
            amount=generator.choice(amounts),
            shape="steady" if fault in STEADY or also else generator.choice(SHAPES),
            clean_s=round(generator.uniform(*CLEAN_S), 2), fault_s=FAULT_S, after_s=AFTER_S, intended=intended,
            seed=generator.randrange(1 << 30), also=also))
    return trials
