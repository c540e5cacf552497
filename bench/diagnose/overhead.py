# SPDX-License-Identifier: Apache-2.0
"""The cost of the diagnosis: for victims, from pairs of windows with and without it; for the agent, by scheduler events.

A victim runs all the time; beside it `gpusonde up` is started, settles, is measured for a window, and stops. Two consecutive
windows are a pair, in random order. Both windows of a control pair (A/A) are alike: if these differ, the machine is too noisy,
and nothing is claimed. Measurements are appended as JSON lines and add up; only those of the same build (program hash) are
combined.
"""

import contextlib
import dataclasses
import hashlib
import json
import math
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import threading
import time

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent))

import bpf_stats  # noqa: E402
import faults  # noqa: E402
import groups  # noqa: E402
import instruments  # noqa: E402
import label  # noqa: E402
import manifest  # noqa: E402
import measures  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent
ARMS = {"alone": None, "profiling": ["--no-diagnose"], "diagnosis": []}  # flags of `up`; None: `up` doesn't run
# Kinds of pairs: the arms without and with what is measured.
PAIRS = {"control": ("profiling", "profiling"), "diagnosis": ("profiling", "diagnosis"), "whole": ("alone", "diagnosis")}
VICTIMS = ("stencil", "trainer")
START_S = 60.0
ENOUGH = 12            # pairs of a kind that are needed to call a goal met
SLOWER_GOAL = 0.01     # slow-down of a victim under contention
CPU_GOAL = 0.005       # share of the machine's CPU time
EVENTS = (500, 2_000, 5_000, 10_000)  # approximate scheduler events (context switches) per second
EVENTS_OF_A_WAKE = 5   # measured: 4.4 to 5.4 context switches per wake-up
GOAL_EVENTS = 10_000


@dataclasses.dataclass(frozen=True)
class Plan:
    """How much to measure."""
    window_s: float
    settle_s: float        # from the start of the agent to the window
    pairs: int             # of each kind and victim
    events: tuple
    agent_window_s: float  # of the curve: whole minutes, since the store computes roll-ups in a burst each minute
    kernel_window_s: float
    curve_settle_s: float  # the agent reads new executables in its first seconds
    victims: tuple = VICTIMS
    kinds: tuple = tuple(PAIRS)


WHOLE = Plan(window_s=8.0, settle_s=4.0, pairs=12, events=EVENTS, agent_window_s=60.0,
             kernel_window_s=12.0, curve_settle_s=15.0)
QUICK = Plan(window_s=2.0, settle_s=2.0, pairs=1, events=(10_000,), agent_window_s=2.0, kernel_window_s=2.0,
             curve_settle_s=2.0, victims=("stencil",), kinds=("control", "diagnosis"))


def program_id(build):
    """Hash of the measured program."""
    return hashlib.sha256((build / "bin/gpusonde").read_bytes()).hexdigest()[:12]


def context_switches():
    return int(next(line.split()[1] for line in pathlib.Path("/proc/stat").read_text().splitlines()
                    if line.startswith("ctxt ")))


def wake_ups(pids):
    """How often threads of these processes have gone to sleep, and so were woken."""
    total = 0
    for pid in pids:
        for status in pathlib.Path(f"/proc/{pid}/task").glob("*/status"):
            with contextlib.suppress(OSError):
                total += sum(int(line.split()[1]) for line in status.read_text().splitlines()
                             if line.startswith("voluntary_ctxt"))
    return total


class Bench:
    """A machine with groups for victim, agent and disturbers, and a simulated GPU; a context manager."""

    def __init__(self, build, out):
        self.build, self.out = build, out
        self.settle_s = 0  # from the start of an agent to its measurement
        self.environment = {}
        self.groups = {}
        self.stack = contextlib.ExitStack()

    def __enter__(self):
        done = subprocess.run([self.build / "bin/simgpu", "env"], capture_output=True, text=True, check=True)
        self.environment = dict(os.environ, LD_LIBRARY_PATH=done.stdout.strip(), SIMGPU_MACHINE=f"overhead-{os.getpid()}",
                                PYTHONDONTWRITEBYTECODE="1",
                                CUDA_INJECTION64_PATH=str(self.build / "lib/libgpusonde-inject.so"),
                                NVTX_INJECTION64_PATH=str(self.build / "lib/libgpusonde-inject.so"))
        with contextlib.ExitStack() as stack:
            for name in ("victim", "agent", "injector"):
                self.groups[name] = groups.Group(f"overhead-{name}")
                stack.callback(self.groups[name].close)
            stack.callback(subprocess.run, [self.build / "bin/simgpu", "reset"], env=self.environment,
                           capture_output=True, check=False)
            self.stack = stack.pop_all()
        return self

    def __exit__(self, *_error):
        self.stack.close()

    @contextlib.contextmanager
    def victim(self, command):
        """Starts the victim, waits for its first step, and returns its step log."""
        log = self.out / "steps.log"
        log.unlink(missing_ok=True)
        command = [part.format(build=self.build, here=HERE, python=sys.executable, log=log, seconds=100_000)
                   for part in command]
        process = subprocess.Popen(self.groups["victim"].command(command), env=self.environment,
                                   stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        try:
            deadline = time.monotonic() + START_S
            while not log.exists() or log.stat().st_size == 0:
                if process.poll() is not None or time.monotonic() > deadline:
                    raise RuntimeError("the victim made no step")
                time.sleep(0.02)
            yield log
        finally:
            process.terminate()
            process.wait()

    @contextlib.contextmanager
    def agent(self, arm):
        if ARMS[arm] is None:
            time.sleep(self.settle_s)
            yield
            return
        up = subprocess.Popen(
            self.groups["agent"].command([self.build / "bin/gpusonde", "up", "--state", self.out / "state", "--listen",
                                          "127.0.0.1:0", "--no-open", *ARMS[arm]]),
            env=self.environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=open(self.out / "up.log", "ab"), text=True)
        try:
            if not any("http://" in line for line in up.stdout):
                raise RuntimeError(f"gpusonde up did not start: see {self.out / 'up.log'}")
            threading.Thread(target=up.stdout.read, daemon=True).start()  # drains the pipe
            time.sleep(self.settle_s)
            yield
        finally:
            up.terminate()
            up.wait(timeout=START_S)

    def counters(self):
        busy_ns, stolen_ns = instruments.machine_cpu_ns()
        return {"time_ns": time.monotonic_ns(), "busy_ns": busy_ns, "stolen_ns": stolen_ns,
                "own_ns": time.process_time_ns() + sum(group.cpu_ns() for group in self.groups.values()),
                "agent_ns": self.groups["agent"].cpu_ns(), "switches": context_switches(),
                "wake_ups": wake_ups(self.groups["agent"].pids())}

    def window(self, seconds):
        """Rates per second of all counters, and the time."""
        before = self.counters()
        time.sleep(seconds)
        after = self.counters()
        passed_s = (after["time_ns"] - before["time_ns"]) / 1e9
        return {name: (after[name] - before[name]) / passed_s for name in before} | {
            "begin_ns": before["time_ns"], "end_ns": after["time_ns"]}


def void_reason(window):
    """Why the machine was used by others; None if it wasn't."""
    cpus = os.cpu_count()
    foreign = (window["busy_ns"] - window["own_ns"]) / 1e9 / cpus
    stolen = window["stolen_ns"] / 1e9 / cpus
    return "foreign CPU" if foreign > label.FOREIGN else "steal" if stolen > label.STOLEN else None


def step_ms(log, window):
    """Mean step time within a window."""
    steps = [step for step in label.read_steps(log.parent, log.name)
             if step[0] >= window["begin_ns"] and step[1] <= window["end_ns"]]
    if not steps:
        raise RuntimeError("no step within a window")
    return label.mean_ms(steps)


def keep(path, row):
    with open(path, "a", encoding="utf-8") as file:
        file.write(json.dumps(row) + "\n")


def kept(path, program):
    """The earlier measurements of this build."""
    rows = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    return [row for row in rows if row["program"] == program]


def measure_pair(bench, log, kind, plan, generator):
    """The row of a pair: ms per step without and with."""
    order = list(zip(("without", "with"), PAIRS[kind]))
    generator.shuffle(order)
    row = {"void": None, "first": order[0][0]}
    for name, arm in order:
        with bench.agent(arm):
            window = bench.window(plan.window_s)
        row[name] = step_ms(log, window)
        row["void"] = row["void"] or void_reason(window)
    return row


def run_pairs(bench, plan, program, generator):
    """Measures pairs under contention: one compute process per CPU beside the victim."""
    bench.settle_s = plan.settle_s
    for victim in plan.victims:
        with bench.victim(manifest.VICTIMS[victim]) as log, faults.work(bench, "cpu", os.cpu_count()):
            kinds = [kind for kind in plan.kinds for _ in range(plan.pairs)]
            generator.shuffle(kinds)
            for number, kind in enumerate(kinds, 1):
                print(f"{victim}, pair {number} of {len(kinds)}: {kind}", flush=True)
                row = measure_pair(bench, log, kind, plan, generator)
                keep(bench.out / "pairs.jsonl", {"program": program, "victim": victim, "kind": kind} | row)


def measure_cost(bench, arm, plan):
    """A point of the curve: the agent's CPU time by its group, wake-ups, and, from a separate run, the time of its kernel
    programs less the cost of measuring that."""
    with bench.agent(arm):
        window = bench.window(plan.agent_window_s)
    with bpf_stats.counting() as counting_ns:
        if counting_ns is None:
            raise RuntimeError(f"run times of kernel programs can't be measured: {bpf_stats.ENABLED} needs root, and bpftool")
        kernel_programs = bpf_stats.Programs(counting_ns)
        with bench.agent(arm):
            before, begin = kernel_programs.spent_s(), time.monotonic()
            counted = bench.window(plan.kernel_window_s)
            after, passed_s = kernel_programs.spent_s(), time.monotonic() - begin
    kernel_share, counting_share = [(end_s - begin_s) / passed_s for begin_s, end_s in zip(before, after)]
    cpus = os.cpu_count()
    return {"events_s": window["switches"], "agent": window["agent_ns"] / 1e9 / cpus, "kernel": kernel_share / cpus,
            "counting": counting_share / cpus,
            "wake_ups_s": window["wake_ups"], "void": void_reason(window) or void_reason(counted)}


def run_curve(bench, plan, program, generator):
    """Measures scheduler events of an unrelated process beside a GPU program, and of that program's own threads."""
    waker = ["{python}", "{here}/victims/waker.py", "--step-log", "{log}", "--seconds", "{seconds}", "--wakes"]
    points = [(events, who) for events in plan.events for who in ("stranger", "feeder")]
    generator.shuffle(points)
    bench.settle_s = plan.curve_settle_s
    for events, who in points:
        wakes = events // EVENTS_OF_A_WAKE
        print(f"about {events} scheduler events a second, of a {who}", flush=True)
        with contextlib.ExitStack() as stack:
            stack.enter_context(bench.victim([*waker, str(wakes if who == "feeder" else 1)]))
            if who == "stranger":
                stack.enter_context(faults.work(bench, "wake", wakes))
            arms = ["profiling", "diagnosis"]
            generator.shuffle(arms)
            row = {"program": program, "events": events, "who": who}
            for arm in arms:
                row[arm] = measure_cost(bench, arm, plan)
        keep(bench.out / "curve.jsonl", row)


def slower(rows):
    """[mean, lower, upper] of the relative slow-down of the windows with it; 95 %, by a bootstrap over pairs."""
    ratios = measures.interval([math.log(row["with"] / row["without"]) for row in rows], 6)
    return [round(math.expm1(value), 4) for value in ratios] if ratios else None


def sum_up_pairs(rows):
    """{victim: {kind: result}}. A goal is met only with enough pairs whose interval ends within it, and a control whose interval
    contains 0."""
    made = {}
    for victim in sorted({row["victim"] for row in rows}):
        kinds = made[victim] = {}
        for kind in PAIRS:
            all_of_it = [row for row in rows if row["victim"] == victim and row["kind"] == kind]
            good = [row for row in all_of_it if row["void"] is None]
            if all_of_it:
                kinds[kind] = {"pairs": len(good), "void": len(all_of_it) - len(good), "slower": slower(good)}
        control = kinds.get("control", {"pairs": 0})
        sound = control["pairs"] >= ENOUGH and control["slower"][1] <= 0 <= control["slower"][2]
        for kind, one in kinds.items():
            if kind != "control":
                one["met"] = one["slower"][2] <= SLOWER_GOAL if sound and one["pairs"] >= ENOUGH else None
    return made


def sum_up_curve(rows):
    """[{who, requested events, points, measured events, and mean cost of profiling and diagnosis as shares of the machine}, …];
    `added` is the diagnosis's own."""
    made = []
    for who, events in sorted({(row["who"], row["events"]) for row in rows}):
        all_of_it = [row for row in rows if (row["who"], row["events"]) == (who, events)]
        good = [row for row in all_of_it if not row["profiling"]["void"] and not row["diagnosis"]["void"]]
        one = {"who": who, "events": events, "points": len(good), "void": len(all_of_it) - len(good)}
        if good:
            def mean(arm, name, good=good):
                return sum(row[arm][name] for row in good) / len(good)

            whole = {arm: mean(arm, "agent") + mean(arm, "kernel") for arm in ("profiling", "diagnosis")}
            added = [sum(row["diagnosis"][part] - row["profiling"][part] for part in ("agent", "kernel")) for row in good]
            one |= {"events_s": round(mean("diagnosis", "events_s")), "profiling": round(whole["profiling"], 5),
                    "diagnosis": round(whole["diagnosis"], 5), "kernel": round(mean("diagnosis", "kernel"), 5),
                    "counting": round(mean("diagnosis", "counting"), 5),
                    "added": measures.interval(added, 5), "wake_ups_s": round(mean("diagnosis", "wake_ups_s"), 1),
                    "met": None}
            if len(good) >= 3 and events <= GOAL_EVENTS:
                one["met"] = one["added"][2] <= CPU_GOAL
        made.append(one)
    return made


def percent(values):
    return "not measured" if values is None else "{:.2f} % ({:.2f} to {:.2f})".format(*(100 * value for value in values))


GOAL = {True: ", goal met", False: ", goal missed", None: ""}


def text(result):
    lines = []
    for victim, kinds in result["pairs"].items():
        for kind, one in kinds.items():
            lines.append(f"{victim}, {kind}: slower by {percent(one['slower'])}, {one['pairs']} pairs, {one['void']} void"
                         + GOAL[one.get("met")])
    for one in result["curve"]:
        line = f"{one['events']} events/s of a {one['who']}: {one['points']} points, {one['void']} void"
        if one["points"]:
            line += (f"; {one['events_s']} seen, `up` {100 * one['profiling']:.2f} % of the machine, with the diagnosis "
                     f"{100 * one['diagnosis']:.2f} % (kernel programs {100 * one['kernel']:.2f} %, "
                     f"and {100 * one['counting']:.2f} % for counting them, {one['wake_ups_s']} wake-ups/s), "
                     f"adds {percent(one['added'])}" + GOAL[one["met"]])
        lines.append(line)
    return "\n".join(lines or ["nothing was measured"])


def run(build, out, plan, seed):
    """Measures, and combines all kept measurements of this build."""
    out.mkdir(parents=True, exist_ok=True)
    program = program_id(build)
    generator = random.Random(seed)
    with Bench(build, out) as bench:
        run_pairs(bench, plan, program, generator)
        run_curve(bench, plan, program, generator)
    return {"program": program, "pairs": sum_up_pairs(kept(out / "pairs.jsonl", program)),
            "curve": sum_up_curve(kept(out / "curve.jsonl", program))}
