# SPDX-License-Identifier: Apache-2.0
"""The cost of a launch to its thread: alone, with the library asleep, with CUPTI only, and awake."""

from suite import Failed, Result, Skip, find, last_json, median, spread

TITLE = "Cost of a launch"
NEEDS = "a CUDA device"

ROUNDS = 3
SECONDS = 2
DEPTH = 40  # a typical stack of a C++ training program above the launch
# Rates at which all launches, some, and hardly any are sampled (src/inject/call_sampler.h: 100 a second).
EACH_SAMPLED = 80
RATES = {f"{EACH_SAMPLED} launches/s, each with its stack": EACH_SAMPLED, "10,000 launches/s": 10_000, "as many as go": 0}


def ways(suite):
    """{name: how to run launch_cost}; each returns the program's output."""
    program = find("bin/gpusonde-launch-cost", "bin/launch_cost")

    def command(rate):
        return [program, "--rate", rate, "--seconds", 0.2 if suite.quick else SECONDS, "--depth", DEPTH]

    def recorded(rate):
        recording = suite.record(*command(rate))
        seen = suite.value(recording, "SELECT count(*) FROM kernels") + suite.value(
            recording, "SELECT coalesce(sum(count), 0) FROM kernel_windows")
        suite.forget(recording)
        if seen == 0:
            raise Failed("nothing of the program was recorded")
        return recording.stdout

    found = {"alone": lambda rate: suite.run(*command(rate)).stdout,
             "asleep": lambda rate: suite.run(*command(rate), env=suite.injected()).stdout,
             "awake": recorded}
    try:
        cupti_only = {"CUDA_INJECTION64_PATH": str(find("lib/libcupti_only.so", "lib/libcupti_only.so")),
                      "GPU_SUITE_CUPTI": suite.cupti_path()}
        found["CUPTI only"] = lambda rate: suite.run(*command(rate), env=cupti_only).stdout
    except Skip:
        pass  # our cost can't be separated from CUPTI's
    return found


def run(suite):
    suite.needs_gpu()
    result = Result()
    found = ways(suite)
    for title, rate in RATES.items():
        runs = {way: [] for way in found}
        for _ in range(1 if suite.quick else ROUNDS):
            for way, measure in found.items():  # alternately, so that drift affects all
                if suite.seconds_left() < 30:
                    result.left = [*dict.fromkeys([*result.left, title])]
                    continue
                runs[way].append(last_json(measure(rate)))
        compare(result, title, rate, {way: made for way, made in runs.items() if made}, suite.simulated())
    return result


def compare(result, title, rate, runs, simulated):
    """Rows of one rate; without goals on the simulated CUPTI, whose cost means nothing."""
    if "alone" not in runs:
        return
    figure = "p99_ns" if rate == EACH_SAMPLED else "mean_ns"
    name = "p99" if rate == EACH_SAMPLED else "mean"
    middle = {way: median([made[figure] for made in those]) for way, those in runs.items()}
    for way, value in middle.items():
        result.row(f"{title}: {way}, {name}", value, "ns", spread=spread([made[figure] for made in runs[way]]))
    if "asleep" in middle:
        result.row(f"{title}: asleep adds", middle["asleep"] - middle["alone"], "ns")
    if "CUPTI only" in middle:
        result.row(f"{title}: CUPTI itself adds", middle["CUPTI only"] - middle["alone"], "ns")
    if "awake" in middle and "CUPTI only" in middle:
        goal = {EACH_SAMPLED: 15_000, 10_000: 300, 0: 30}[rate]
        result.row(f"{title}: gpusonde adds to that", middle["awake"] - middle["CUPTI only"], "ns",
                   at_most=None if simulated else goal)
