# SPDX-License-Identifier: Apache-2.0
"""What really happened in a trial, from the victim's own step log and from instruments that gpusonde doesn't read. A cause is a
label if its mechanism explains a quarter of the slow-down; the injected fault alone is never a label."""

import itertools
import json
import statistics

EFFECTIVE = 1.15  # slow-down from which on an incident must be found
FAINT = 1.05      # slow-downs between the two are reported separately; smaller ones are negatives
SHARE = 0.25      # share of the excess that a mechanism must explain
FOREIGN = 0.05    # of the machine's CPU time, used by processes outside the trial: void
STOLEN = 0.01
AGAIN = 0.3       # additional retransmits per second; few, as the timeout doubles each time when everything is lost
RECEIVED = 5_000  # additional softirqs per second that handle received packets
HUNG_NS = 5_000_000_000  # a step this long without another explanation is a hang by its symptom
RECOVERY_NS = 1_500_000_000  # after the fault, for queues to drain
STRETCH_NS = 2_000_000_000  # a trial that is slow for this long is no negative, whatever its mean
BEGINS_NS = 1_000_000_000  # a slow-down begins with a step from which on steps are slow on average for this long
SETTLE_NS = 3_000_000_000  # warm-up, excluded


def state_of(slowdown):
    return "effective" if slowdown >= EFFECTIVE else "faint" if slowdown >= FAINT else "negative"


def read_steps(folder, name="steps.log"):
    """[(begin, end, data (or other ranks), disk, GPU ns), …]"""
    steps = []
    for line in (folder / name).read_text().splitlines():
        fields = line.split()
        if len(fields) == 5:
            steps.append(tuple(map(int, fields)))
    return steps


def read_samples(folder):
    return [json.loads(line) for line in (folder / "samples.jsonl").read_text().splitlines()]


def mean_ms(steps, value=lambda step: step[1] - step[0]):
    return statistics.fmean(map(value, steps)) / 1e6 if steps else 0.0


def within(samples, windows):
    """The samples of each window that has at least two."""
    found = ([sample for sample in samples if begin_ns <= sample["time_ns"] < end_ns] for begin_ns, end_ns in windows)
    return [inside for inside in found if len(inside) >= 2]


def sampled_s(inside):
    return (inside[-1]["time_ns"] - inside[0]["time_ns"]) / 1e9


def rate(samples, windows, value):
    """Growth of a counter per second within the windows [(begin, end), …]; 0 if it was sampled less than twice."""
    found = within(samples, windows)
    if not found:
        return 0.0
    return sum(value(inside[-1]) - value(inside[0]) for inside in found) / sum(map(sampled_s, found))


def level(samples, windows, value):
    """Mean of a value within the windows; 0 if it wasn't sampled."""
    found = [value(sample) for inside in within(samples, windows) for sample in inside]
    return statistics.fmean(found) if found else 0.0


def thread_rates(samples, windows):
    """{(pid, tid): (CPU seconds, seconds of run delay) per second of the windows}; for a thread that started or ended within
    them, what it used until then."""
    found = within(samples, windows)
    length_s = sum(map(sampled_s, found))
    used = {}
    for inside in found:
        first, last = {}, {}
        for sample in inside:
            for pid, times in sample["threads"].items():
                for tid, both in times.items():
                    first.setdefault((pid, tid), both)
                    last[pid, tid] = both
        for key, both in last.items():
            so_far = used.get(key, (0.0, 0.0))
            used[key] = tuple(so_far[i] + (both[i] - first[key][i]) / 1e9 / length_s for i in (0, 1))
    return used


def windows_of(record, first_ns):
    """(before the fault, while it is fully active, from its begin to its end), each [(begin, end), …]. The effect of a pulsed
    or growing fault is measured while it is active: the calm in between would hide it."""
    whole = [(record["begin_ns"], record["end_ns"])]
    return [(first_ns, record["begin_ns"])], [tuple(one) for one in record.get("active_ns", whole)], whole


def enclosed(steps, windows):
    return [step for step in steps if any(begin_ns <= step[0] and step[1] <= end_ns for begin_ns, end_ns in windows)]


def touching(steps, windows):
    return [step for step in steps if any(step[1] > begin_ns and step[0] < end_ns for begin_ns, end_ns in windows)]


def void_reason(record, samples, windows):
    """Why the machine was used by others during the trial; None if it wasn't."""
    cpus_ns = rate(samples, windows, lambda sample: sample["busy_ns"])
    own_ns = rate(samples, windows, lambda sample: sum(sample["cpu_ns"].values()))
    own_ns += record["own_cpu_ns"] * 1e9 / max(1, record["end_ns"] - record["begin_ns"])
    if "interrupt_pressure" in intended_of(record["plan"]):  # caused by the trial, but in no group's CPU time
        cpus_ns -= rate(samples, windows, lambda sample: sample["interrupts_ns"])
    cpus = record["cpus"]
    foreign = (cpus_ns - own_ns) / 1e9 / cpus
    stolen = rate(samples, windows, lambda sample: sample["stolen_ns"]) / 1e9 / cpus
    if foreign > FOREIGN:
        return f"foreign CPU {100 * foreign:.0f} %"
    if stolen > STOLEN:
        return f"steal {100 * stolen:.1f} %"
    return None


def mechanisms(record, samples, clean, active, before, during):
    """{mechanism: upper bound of the ms of a step's excess that it explains}; `before` and `during` are the steps of these
    windows."""
    ms_before, ms_during = mean_ms(before), mean_ms(during)
    # Threads of other ranks don't count: what delays those is the root behind a straggler.
    others = {str(pid) for pid in record.get("rank_pids", [])[1:]}
    threads_before, threads_during = ({key: both for key, both in rates.items() if key[0] not in others}
                                      for rates in (thread_rates(samples, clean), thread_rates(samples, active)))

    def waited_ms(rates, ms):
        # The thread that waits most, as steps wait for the slowest of their threads. Disturbers of the victim's own start with
        # the fault and don't count.
        return max((delay for key, (_, delay) in rates.items() if key in threads_before), default=0.0) * ms

    def cpu_ms(rates, ms):
        return max((cpu for key, (cpu, _) in rates.items() if key in threads_before), default=0.0) * ms

    def log_ms(column):
        return mean_ms(during, lambda step: step[column]) - mean_ms(before, lambda step: step[column])

    stopped_ms = (level(samples, active, was_stopped) - level(samples, clean, was_stopped)) * ms_during
    return {"stopped": stopped_ms, "run_delay": waited_ms(threads_during, ms_during) - waited_ms(threads_before, ms_before),
            "cpu": cpu_ms(threads_during, ms_during) - cpu_ms(threads_before, ms_before),
            "data": log_ms(2), "disk": log_ms(3), "gpu": log_ms(4)}


def ms_of(cause, explained):
    """ms of a step's excess that a cause explains which is a label: the smallest, if several mechanisms confirm it."""
    late = max(0.0, explained["late_rank"])
    return {"block_io": explained["disk"], "io_throttling": explained["disk"], "memory_pressure": explained["disk"],
            "slow_data_loading": min(explained["data"], explained["cpu"]), "slow_cpu": explained["cpu"],
            "more_cpu_work": explained["cpu"], "interrupt_pressure": max(explained["cpu"], explained["run_delay"]),
            "network_contention": explained["data"] - late, "packet_loss": explained["data"] - late,
            "straggler": min(explained["data"], late), "gpu_neighbour": explained["gpu"], "gpu_clocks": explained["gpu"],
            "gpu_fault": explained["gpu"], "pcie_pressure": explained["gpu"], "stopped": explained["stopped"]}.get(cause, explained["run_delay"])


def root_of(record, samples, clean, active, late_ms, ms_before, ms_during):
    """Why the rank that comes last is late, by its own threads; None if unknown."""
    if not record.get("rank_pids"):
        return None
    pid = str(record["rank_pids"][1])
    before, during = thread_rates(samples, clean), thread_rates(samples, active)

    def grew_ms(which):
        keys = [key for key in during if key[0] == pid and key in before]
        return max((during[key][which] * ms_during - before[key][which] * ms_before for key in keys), default=0.0)

    cpu_ms, waited_ms = grew_ms(0), grew_ms(1)
    if max(cpu_ms, waited_ms) < SHARE * late_ms:
        return None
    return "cpu_contention" if waited_ms > cpu_ms else "slow_cpu"


def intended_of(plan):
    return {plan.get("intended"), *([plan["also"][2]] if plan.get("also") else [])}


def late_rank_ms(folder, clean, active):
    """By how much the other rank's own part of a step got longer: the step without the sum over all ranks."""
    if not (folder / "steps.log.1").exists():
        return 0.0
    steps = read_steps(folder, "steps.log.1")

    def own(step):
        return step[1] - step[0] - step[2]

    return mean_ms(touching(steps, active), own) - mean_ms(enclosed(steps, clean), own)


def allowed_cpus(sample):
    return sample.get("allowed_cpus", 0)


def was_stopped(sample):
    return sample.get("stopped", False)


def sent_bytes(sample):
    return sample["sent_bytes"]


def causes_of(record, samples, clean, active, explained, ms_before, ms_during, void):
    """The labels: mechanisms that explain enough, distinguished by the faults that were active."""
    def grew(value):
        return rate(samples, active, value) - rate(samples, clean, value)

    faults = intended_of(record["plan"])
    slowdown = ms_during / ms_before
    enough = {name for name, ms in explained.items() if ms >= SHARE * (ms_during - ms_before)}
    labels = set()
    own_cpus = grew(lambda sample: sample["cpu_ns"]["victim"]) / 1e9
    others_cpus = max(grew(lambda sample: sample["busy_ns"] - sample["cpu_ns"]["victim"]),
                      grew(lambda sample: sample["cpu_ns"]["injector"])) / 1e9
    # Softirqs count as CPU time or run delay of the thread that they interrupt; the sender runs on another CPU.
    interrupted = ("interrupt_pressure" in faults and enough & {"cpu", "run_delay"}
                   and grew(lambda sample: sample.get("net_rx", 0)) > RECEIVED)
    if interrupted:
        labels.add("interrupt_pressure")
    elif "run_delay" in enough:
        # A throttled thread has run delay, too.
        if "cpu_quota" in faults:
            labels.add("cpu_quota")
        elif "fewer_cpus" in faults and level(samples, active, allowed_cpus) < level(samples, clean, allowed_cpus) - 0.5:
            labels.add("fewer_cpus")
        # The victim's own disturbers use more CPUs, or, if it has all of them, take them from its other threads.
        elif "cpu_contention_own" in faults and (own_cpus > 0.2 or others_cpus < 0.1):
            labels.add("cpu_contention_own")
        # On a machine that others keep busy there is no growth; such runs are void.
        elif others_cpus > 0.2 or void:
            labels.add("cpu_contention")
    # At a limit the disk does less than before, and the victim waits for it longer.
    if "disk" in enough and "io_throttling" in faults and grew(lambda sample: sample["disk_ns"]) < 0:
        labels.add("io_throttling")
    elif "disk" in enough and grew(lambda sample: sample["disk_bytes"]) > 10e6:
        labels.add("memory_pressure" if "memory_pressure" in faults and grew(lambda sample: sample["failcnt"]) > 0
                   else "block_io")
    if "slow_data_loading" in faults and {"data", "cpu"} <= enough:
        labels.add("slow_data_loading")
    if "cpu" in enough:
        labels |= faults & {"slow_cpu", "more_cpu_work"}
    # The ranks send as much per step as before, in fewer steps.
    if "network_contention" in faults and "data" in enough and (
            rate(samples, active, sent_bytes) - rate(samples, clean, sent_bytes) / slowdown > 1e6):
        labels.add("network_contention")
    if "packet_loss" in faults and "data" in enough and grew(lambda sample: sample["retransmits"]) > AGAIN:
        labels.add("packet_loss")
    if "straggler" in faults and {"data", "late_rank"} <= enough:
        labels.add("straggler")
    labels |= faults & {"stopped"} & enough
    if "gpu" in enough:
        labels |= faults & {"gpu_neighbour", "gpu_clocks", "gpu_fault", "pcie_pressure"}
    return sorted(labels)


def is_slow_from(steps, from_ns, length_ns, ms_before):
    """Whether the steps that begin within a stretch of time are slow on average; too few steps count as no."""
    inside = [step for step in steps if from_ns <= step[0] < from_ns + length_ns]
    return len(inside) >= 3 and state_of(mean_ms(inside) / ms_before) == "effective"


def first_slow_ns(steps, windows, ms_before):
    """End of the first step of a slow-down within the windows; None without one. A step that is long by chance begins none. Where
    every other step is long anyway, it may be one from the second before, so that delays are overestimated."""
    for at, step in enumerate(steps):
        if step[1] - step[0] <= EFFECTIVE * 1e6 * ms_before or not touching([step], windows):
            continue
        following = itertools.takewhile(lambda other: other[0] < step[0] + BEGINS_NS, steps[at:])
        if mean_ms(list(following)) >= EFFECTIVE * ms_before:
            return step[1]
    return None


def has_slow_stretch(steps, begin_ns, end_ns, ms_before):
    inside = enclosed(steps, [(begin_ns, end_ns)])
    return any(is_slow_from(inside, from_ns, STRETCH_NS, ms_before)
               for from_ns in range(begin_ns, end_ns - STRETCH_NS + 1, STRETCH_NS // 4))


def has_recovered(steps, end_ns, ms_before, ms_during):
    """Whether steps became faster again when the fault ended; True if unknown."""
    after = [step for step in steps if step[0] >= end_ns + RECOVERY_NS]
    return not after or mean_ms(after) - ms_before < (ms_during - ms_before) / 2


def label(folder):
    """The trial's label as a dict."""
    record = json.loads((folder / "trial.json").read_text())
    steps, samples = read_steps(folder), read_samples(folder)
    first_ns, begin_ns, end_ns = steps[0][0] + SETTLE_NS, record["begin_ns"], record["end_ns"]
    clean, active, whole = windows_of(record, first_ns)
    before = enclosed(steps, [(first_ns, begin_ns)])
    during = touching(steps, active)
    made = {"void": void_reason(record, samples, [(first_ns, end_ns)]), "causes": [], "slowdown": None}
    if len(before) < 10 or not during:
        return made | {"state": "unusable", "void": made["void"] or "too few steps"}
    ms_before, ms_during = mean_ms(before), mean_ms(during)
    explained = mechanisms(record, samples, clean, active, before, during)
    explained["late_rank"] = late_rank_ms(folder, clean, active)
    made |= {"slowdown": round(ms_during / ms_before, 3), "ms_before": round(ms_before, 2), "ms_during": round(ms_during, 2),
             "explained_ms": {name: round(ms, 2) for name, ms in explained.items()},
             "first_slow_ns": first_slow_ns(steps, whole, ms_before)}
    made["state"] = state_of(ms_during / ms_before)
    if made["state"] == "negative":
        if made["void"] is None and is_slow_from(steps, end_ns, RECOVERY_NS, ms_before):  # a delayed effect
            made["void"] = "slow afterwards"
        if made["void"] is None and has_slow_stretch(steps, begin_ns, end_ns, ms_before):
            made["void"] = "slow for a while"
        return made
    if made["void"] is None and not has_recovered(steps, end_ns, ms_before, ms_during):
        made["void"] = "no recovery"
    causes = causes_of(record, samples, clean, active, explained, ms_before, ms_during, made["void"] is not None)
    if not causes and max(step[1] - step[0] for step in during) > HUNG_NS:
        causes = ["hang"]
    if made["void"] is None and not causes and intended_of(record["plan"]) - {"", None}:
        made["void"] = "not confirmed"  # that there was no cause isn't known either
    made["cause_ms"] = {cause: round(ms_of(cause, explained), 2) for cause in causes if cause != "hang"}
    if "straggler" in causes:
        made["root"] = root_of(record, samples, clean, active, explained["late_rank"], ms_before, ms_during)
    return made | {"causes": causes}
