# SPDX-License-Identifier: Apache-2.0
"""The trials of a split, generated from a seed in random order, each with a seed of its own."""

import dataclasses
import random

# victims/train_structures.py and test_structures.py: how programs arrange their work
TRAIN_STRUCTURES = ("short-loop", "pool", "pipeline", "event-loop", "micro-batches", "long-steps", "checkpoints", "graph-loop",
                    "thread-pool", "socket-ranks", "two-models", "request-threads")
TRAIN_LOADING = ("pool", "pipeline", "thread-pool")  # GPU-bound, and wait for data if there is more to do for it
TRAIN_COMPUTING = ("short-loop", "event-loop", "micro-batches", "long-steps", "checkpoints", "graph-loop", "two-models",
                   "request-threads")
TEST_STRUCTURES = ("async-server", "process-pool", "double-buffer", "phases", "spinner", "launcher-thread", "slow-steps",
                   "two-streams", "mpi-ranks", "actor-learner")
TEST_LOADING = ("process-pool", "double-buffer", "launcher-thread")
TEST_COMPUTING = ("phases", "spinner", "slow-steps", "two-streams")
VICTIMS = {
    # name: program, arguments; with placeholders {build}, {log}, {seconds}, {disk}, {cached}
    "stencil": ["{build}/bin/hpc", "--halo-mb", "16", "--seconds", "{seconds}", "--step-log", "{log}"],
    "trainer": ["{python}", "{here}/victims/trainer.py", "--step-log", "{log}", "--seconds", "{seconds}",
                "--records", "96"],
    "trainer-2": ["{python}", "{here}/victims/trainer.py", "--step-log", "{log}", "--seconds", "{seconds}",
                  "--workers", "2", "--records", "160"],
    "streamer": ["{python}", "{here}/victims/trainer.py", "--step-log", "{log}", "--seconds", "{seconds}",
                 "--records", "56", "--read-mb", "16", "--file", "{disk}"],
    "reader": ["{python}", "{here}/victims/trainer.py", "--step-log", "{log}", "--seconds", "{seconds}",
               "--records", "48", "--read-mb", "64", "--cached", "--file", "{cached}"],
    "ranks": ["{python}", "{here}/victims/ranks.py", "--step-log", "{log}", "--seconds", "{seconds}", "--cpus", "0",
              "{last_cpu}", "--work", "120"],
    "ranks-net": ["{python}", "{here}/victims/ranks.py", "--step-log", "{log}", "--seconds", "{seconds}", "--namespaces",
                  "{ends[0]}", "{ends[1]}", "--addresses", "{addresses[0]}", "{addresses[1]}", "--work", "120"],
    "stencil-pinned": ["taskset", "-c", "0", "{build}/bin/hpc", "--halo-mb", "16", "--seconds", "{seconds}", "--step-log",
                       "{log}"],
    "inference": ["{python}", "{here}/victims/inference.py", "--step-log", "{log}", "--seconds", "{seconds}",
                  "--stream", "vit-classifier-h100", "--record-kb", "512"],
    **{name: ["{python}", "{here}/victims/train_structures.py", name, "--step-log", "{log}", "--seconds", "{seconds}"]
       for name in TRAIN_STRUCTURES},
    # only in the test split
    **{name: ["{python}", "{here}/victims/test_structures.py", name, "--step-log", "{log}", "--seconds", "{seconds}"]
       for name in TEST_STRUCTURES},
    "stencil-large": ["{build}/bin/hpc", "--halo-mb", "24", "--seconds", "{seconds}", "--step-log", "{log}"],
    "saver": ["{python}", "{here}/victims/trainer.py", "--step-log", "{log}", "--seconds", "{seconds}",
              "--stream", "qwen-infer-h100", "--records", "60", "--write-kb", "256", "--extra", "hash", "--own", "compress"],
    "hasher": ["{python}", "{here}/victims/trainer.py", "--step-log", "{log}", "--seconds", "{seconds}",
               "--stream", "bert-small-h100", "--workers", "2", "--records", "64", "--extra", "hash", "--own", "compress"],
    "scanner": ["{python}", "{here}/victims/trainer.py", "--step-log", "{log}", "--seconds", "{seconds}",
                "--stream", "vit-classifier-h100", "--records", "24", "--read-mb", "4", "--file", "{disk}", "--extra", "hash",
                "--own", "compress"],
    "rereader": ["{python}", "{here}/victims/trainer.py", "--step-log", "{log}", "--seconds", "{seconds}",
                 "--stream", "alexnet-infer-a100", "--records", "8", "--read-mb", "24", "--cached", "--file", "{cached}"],
    "inference-large": ["{python}", "{here}/victims/inference.py", "--step-log", "{log}", "--seconds", "{seconds}",
                        "--record-kb", "1024", "--batches", "1", "3", "6", "--pause-ms", "30"],
    "inference-pinned": ["taskset", "-c", "0", "{python}", "{here}/victims/inference.py", "--step-log", "{log}", "--seconds",
                         "{seconds}", "--stream", "bert-small-h100", "--record-kb", "768", "--pause-ms", "10"],
    "ranks-large": ["{python}", "{here}/victims/ranks.py", "--step-log", "{log}", "--seconds", "{seconds}", "--cpus", "0",
                    "{last_cpu}", "--stream", "vit-classifier-h100", "--gradient-kb", "1024", "--work", "100"],
    "ranks-net-large": ["{python}", "{here}/victims/ranks.py", "--step-log", "{log}", "--seconds", "{seconds}", "--namespaces",
                        "{ends[0]}", "{ends[1]}", "--addresses", "{addresses[0]}", "{addresses[1]}", "--stream",
                        "bert-small-h100", "--gradient-kb", "160", "--work", "40"],
    "stencil-wide": ["{build}/bin/hpc", "--halo-mb", "40", "--seconds", "{seconds}", "--step-log", "{log}"],
    "stencil-large-pinned": ["taskset", "-c", "0", "{build}/bin/hpc", "--halo-mb", "24", "--seconds", "{seconds}",
                             "--step-log", "{log}"],
    "saver-pinned": ["taskset", "-c", "0", "{python}", "{here}/victims/trainer.py", "--step-log", "{log}", "--seconds",
                     "{seconds}", "--stream", "alexnet-infer-a100", "--records", "24", "--write-kb", "64"],
    "scanner-2": ["{python}", "{here}/victims/trainer.py", "--step-log", "{log}", "--seconds", "{seconds}",
                  "--stream", "bert-small-h100", "--workers", "2", "--records", "40", "--read-mb", "12", "--file", "{disk}"],
    "scanner-3": ["{python}", "{here}/victims/trainer.py", "--step-log", "{log}", "--seconds", "{seconds}",
                  "--stream", "alexnet-infer-a100", "--records", "16", "--read-mb", "8", "--file", "{disk}"],
    "rereader-2": ["{python}", "{here}/victims/trainer.py", "--step-log", "{log}", "--seconds", "{seconds}",
                   "--stream", "bert-small-h100", "--workers", "2", "--records", "16", "--read-mb", "40", "--cached",
                   "--file", "{cached}"],
    "rereader-3": ["{python}", "{here}/victims/trainer.py", "--step-log", "{log}", "--seconds", "{seconds}",
                   "--stream", "vit-classifier-h100", "--records", "24", "--read-mb", "32", "--cached", "--file", "{cached}"],
    "ranks-wide": ["{python}", "{here}/victims/ranks.py", "--step-log", "{log}", "--seconds", "{seconds}", "--cpus", "0",
                   "{last_cpu}", "--stream", "bert-small-h100", "--gradient-kb", "512", "--work", "160"],
    "ranks-deep": ["{python}", "{here}/victims/ranks.py", "--step-log", "{log}", "--seconds", "{seconds}", "--cpus", "0",
                   "{last_cpu}", "--stream", "alexnet-infer-a100", "--gradient-kb", "128", "--work", "240"],
    "ranks-net-wide": ["{python}", "{here}/victims/ranks.py", "--step-log", "{log}", "--seconds", "{seconds}", "--namespaces",
                       "{ends[0]}", "{ends[1]}", "--addresses", "{addresses[0]}", "{addresses[1]}", "--stream",
                       "vit-classifier-h100", "--gradient-kb", "320", "--work", "60"],
    "ranks-net-deep": ["{python}", "{here}/victims/ranks.py", "--step-log", "{log}", "--seconds", "{seconds}", "--namespaces",
                       "{ends[0]}", "{ends[1]}", "--addresses", "{addresses[0]}", "{addresses[1]}", "--stream",
                       "alexnet-infer-a100", "--gradient-kb", "96", "--work", "80"],
}
TEST_NETWORKED = ("ranks-net-large", "ranks-net-wide", "ranks-net-deep")
TEST_RANKS = ("ranks-large", "ranks-wide", "ranks-deep")
TEST_CACHED = ("rereader", "rereader-2", "rereader-3")
NETWORKED = ("ranks-net", *TEST_NETWORKED)  # these need two network namespaces
RANKS = ("ranks", "socket-ranks", "mpi-ranks", *TEST_RANKS, *NETWORKED)
CACHED = ("reader", *TEST_CACHED)  # these need their file outside the page cache
TRAINERS = ("trainer", "trainer-2", "streamer", "reader")
TEST_TRAINERS = ("saver", "hasher", "scanner")
TEST_SCANNERS = ("scanner", "scanner-2", "scanner-3")
TEST_PINNED = ("inference-pinned", "stencil-large-pinned", "saver-pinned")

# By fault: its victims, its amounts, and its label if the instruments confirm it ("": none, a negative or a slow-down without a
# model). The splits share no victim, no fault and no injector (score_test.py).
TRAIN = {
    "compute": (("stencil", *TRAINERS, "inference", *TRAIN_STRUCTURES), (2, 3, 4), "cpu_contention"),
    "stress-cpu": (("stencil", *TRAINERS, "inference", *TRAIN_STRUCTURES), (2, 3), "cpu_contention"),
    "quota": (("stencil", *TRAINERS, "inference", *TRAIN_STRUCTURES), (0.4, 0.6, 0.75), "cpu_quota"),
    "disk-read": (("streamer",), (2, 4, 8), "block_io"),
    "stress-disk": (("streamer",), (6, 10), "block_io"),
    "memory-limit": (("reader",), (16, 24, 32), "memory_pressure"),
    "heavier-data": ((*TRAINERS, *TRAIN_LOADING), (1,), "slow_data_loading"),
    "more-work": (TRAIN_COMPUTING, (1,), "more_cpu_work"),
    "own-threads": (TRAINERS, (1,), "cpu_contention_own"),
    "gpu-neighbour": (("streamer", "trainer", "inference", *TRAIN_LOADING), (0.4, 0.6), "gpu_neighbour"),
    "gpu-power-cap": (("streamer", "trainer", "inference", *TRAIN_LOADING), (150, 250), "gpu_clocks"),
    "gpu-pcie-width": (("stencil",), (1, 2), "pcie_pressure"),
    "gpu-firmware": (("trainer", "stencil", "inference"), (0.4, 0.8), "gpu_fault"),
    "io-limit": (("streamer",), (20, 40, 80), "io_throttling"),
    "traffic": (("ranks-net",), (1, 2), "network_contention"),
    "short-queue": (("ranks-net",), (16, 24), "packet_loss"),
    "flood": (("stencil-pinned",), (1,), "interrupt_pressure"),
    "late-rank": (("ranks", "ranks-net", "socket-ranks"), (1,), "straggler"),
    "memory-copy": (("stencil",), (1,), "slow_cpu"),
    "stress-stream": (("stencil",), (1, 2), "slow_cpu"),
    "cpuset": ((*TRAINERS, *TRAIN_LOADING), (1,), "fewer_cpus"),
    "limiter": (("stencil", *TRAINERS, *TRAIN_LOADING), (20, 40), "stopped"),
    "stopped-loader": (("trainer",), (1,), ""),
}
# Two faults at once: [(fault, amount, label if confirmed), …] by victim.
TRAIN_PAIRS = {
    "streamer": (("compute", 3, "cpu_contention"), ("disk-read", 4, "block_io")),
    "inference": (("compute", 3, "cpu_contention"), ("gpu-neighbour", 0.6, "gpu_neighbour")),
    "trainer": (("heavier-data", 1, "slow_data_loading"), ("gpu-power-cap", 150, "gpu_clocks")),
    "ranks-net": (("traffic", 1, "network_contention"), ("late-rank", 1, "straggler")),
}
TRAIN_NEGATIVES = {
    "nothing": (("stencil", *TRAINERS, "inference", *TRAIN_STRUCTURES), (0,), ""),
    "compute-little": (("stencil", *TRAINERS, "inference"), (1, 2), ""),
    "disk-read": (("stencil", "trainer"), (2, 4), ""),
    "cached-read": (("trainer", "streamer"), (1,), ""),
}
TEST = {
    "compress": (("stencil-large", *TEST_TRAINERS, "inference-large", *TEST_STRUCTURES), (2, 4), "cpu_contention"),
    "compile": (("stencil-large", *TEST_TRAINERS, "inference-large", *TEST_STRUCTURES), (2, 3), "cpu_contention"),
    "short-quota": (("stencil-large", *TEST_TRAINERS, "inference-large", *TEST_STRUCTURES), (0.35, 0.5, 0.7), "cpu_quota"),
    "disk-write": (TEST_SCANNERS, (4, 8), "block_io"),
    "copy-file": (TEST_SCANNERS, (2, 4), "block_io"),
    "io-operations": (("saver", "scanner", "scanner-3"), (10, 20), "io_throttling"),
    "sidecar": (TEST_CACHED, (64, 80), "memory_pressure"),
    "checks": ((*TEST_TRAINERS, *TEST_LOADING), (1,), "slow_data_loading"),
    "more-rounds": (TEST_COMPUTING, (1,), "more_cpu_work"),
    "own-compress": (TEST_TRAINERS, (1,), "cpu_contention_own"),
    "gpu-rival": (("saver", "inference-large", "inference-pinned", *TEST_LOADING), (24, 48), "gpu_neighbour"),
    "gpu-clock-limit": (("saver", "inference-large", "inference-pinned", *TEST_LOADING), (0.3, 0.5), "gpu_clocks"),
    "gpu-pcie-generation": (("stencil-large", "stencil-wide", "stencil-large-pinned"), (1,), "pcie_pressure"),
    "gpu-memory-rows": (("saver", "stencil-large", "inference-large"), (0.15, 0.3), "gpu_fault"),
    "transfers": (TEST_NETWORKED, (2, 4), "network_contention"),
    "lossy-link": (TEST_NETWORKED, (10, 25), "packet_loss"),
    "fragments": (TEST_PINNED, (1,), "interrupt_pressure"),
    "held-rank": (TEST_RANKS, (1, 2), "straggler"),
    "memory-fill": (("stencil-large",), (1,), "slow_cpu"),
    "stopped-rank": ((*TEST_RANKS, *TEST_NETWORKED), (1,), "hang"),
    "one-cpu": (("hasher", *TEST_LOADING), (1,), "fewer_cpus"),
    "freezer": (("stencil-large", *TEST_TRAINERS, *TEST_LOADING), (150, 250), "stopped"),
    "held-lock": (("inference-large",), (1,), ""),
}
TEST_PAIRS = {
    "saver": (("compress", 2, "cpu_contention"), ("io-operations", 20, "io_throttling")),
    "inference-large": (("short-quota", 0.7, "cpu_quota"), ("gpu-clock-limit", 0.4, "gpu_clocks")),
    "stencil-large-pinned": (("fragments", 1, "interrupt_pressure"), ("gpu-pcie-generation", 1, "pcie_pressure")),
    "stencil-large": (("compress", 4, "cpu_contention"), ("gpu-pcie-generation", 1, "pcie_pressure")),
    "scanner": (("copy-file", 4, "block_io"), ("checks", 1, "slow_data_loading")),
    "ranks-net-deep": (("compress", 4, "cpu_contention"), ("transfers", 2, "network_contention")),
}
TEST_NEGATIVES = {
    "idle": (("stencil-large", *TEST_TRAINERS, "inference-large", *TEST_STRUCTURES), (0,), ""),
    "copy-file": (("stencil-large", "hasher"), (1,), ""),
    "compress-little": (("stencil-large", "inference-large"), (1,), ""),
}
SHAPES = ("steady", "steady", "pulse", "ramp")
# These faults can't be pulsed or ramped, or take time to start.
STEADY = ("nothing", "idle", "stopped-loader", "stopped-rank", "more-work", "more-rounds", "own-threads", "own-compress",
          "late-rank", "cpuset", "one-cpu", "held-lock", "sidecar", "gpu-rival", "gpu-pcie-width", "gpu-pcie-generation")
CLEAN_S = (11.0, 15.0)  # from the start of the victim's steps to the onset
FAULT_S = 9.0
AFTER_S = 5.0
PAIRS, NEGATIVES = 2, 6  # per round


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
    intended: str  # the label if the instruments confirm it
    seed: int
    also: tuple = ()  # (fault, amount, intended) of a second fault at the same time

    def faults(self):
        return [(self.fault, self.amount), *([tuple(self.also[:2])] if self.also else [])]


def a_round(generator, positives, negatives, pairs, only):
    """[(fault, its entry, the second fault), …]: each cause once, so that all of them reach their number together, one without
    a model, two pairs and six negatives, shuffled. Forty rounds are what a claim requires."""
    causes = {}
    for fault, entry in positives.items():
        if not only or fault in only:
            causes.setdefault(entry[2], []).append((fault, entry, ()))
    both = [(first[0], ((victim,), (first[1],), first[2]), second)
            for victim, (first, second) in pairs.items() if not only or "pair" in only]
    none = [(fault, entry, ()) for fault, entry in negatives.items() if not only or "negative" in only]
    kinds = [generator.choice(faults) for faults in causes.values()]
    kinds += generator.sample(both, min(PAIRS, len(both))) + generator.choices(none, k=NEGATIVES if none else 0)
    generator.shuffle(kinds)
    return kinds


def make(split, seed, count, only=()):
    """`count` trials of the split, in rounds (`a_round`); deterministic in its arguments."""
    tables = (TRAIN, TRAIN_NEGATIVES, TRAIN_PAIRS) if split == "train" else (TEST, TEST_NEGATIVES, TEST_PAIRS)
    generator = random.Random(f"{split}-{seed}")
    trials = []
    queue = []
    while len(trials) < count:
        queue = queue or a_round(generator, *tables, only)
        fault, (victims, amounts, intended), also = queue.pop()
        index = len(trials)
        trials.append(Trial(
            name=f"{split}-{seed}-{index:03d}", split=split, victim=generator.choice(victims), fault=fault,
            amount=generator.choice(amounts),
            shape="steady" if fault in STEADY or also else generator.choice(SHAPES),
            clean_s=round(generator.uniform(*CLEAN_S), 2), fault_s=FAULT_S, after_s=AFTER_S, intended=intended,
            seed=generator.randrange(1 << 30), also=also))
    return trials
