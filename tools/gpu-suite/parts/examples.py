# SPDX-License-Identifier: Apache-2.0
"""The example programs, whose launches and kernel durations are known."""

import re
import sys

from suite import Failed, Result, TRAIN, find, last_lines, median

TITLE = "Known work: the example programs"
NEEDS = "a CUDA device"

HPC_STEPS = 200
# The launches of a step of examples/hpc, and the requested duration of each kernel.
HPC_KERNELS = {"_Z16interior_stencilm": 6_000_000, "_Z16boundary_stencilm": 400_000, "_Z9pack_halom": 150_000,
               "_Z11unpack_halom": 150_000, "_Z13residual_normm": 80_000}
TRAIN_STEPS = 20
FORK = """
import ctypes, os
driver = ctypes.CDLL("libcuda.so.1")
context, count, memory = ctypes.c_void_p(), ctypes.c_int(), ctypes.c_uint64()
driver.cuInit(0), driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0), driver.cuCtxSetCurrent(context)
if os.fork() == 0:
    print(driver.cuDeviceGetCount(ctypes.byref(count)), driver.cuCtxSynchronize(),
          driver.cuMemAlloc_v2(ctypes.byref(memory), ctypes.c_size_t(4096)), flush=True)
    os._exit(0)
os.wait()
"""
MAX_LATE = 0.02  # a kernel polls %globaltimer, whose resolution is up to 1 µs


def stencil(suite, result):
    hpc = find("bin/gpusonde-hpc", "bin/hpc")
    recorded = suite.record(hpc, "--steps", HPC_STEPS)
    rows = {row["name"]: row for row in suite.query(
        recorded, "SELECT name, count(*) AS n, median(end_ns - start_ns) AS ns FROM kernels GROUP BY name")}
    counts = {name: row["n"] for name, row in rows.items()}
    result.fact(f"{HPC_STEPS} steps of examples/hpc are {HPC_STEPS} launches of each of its kernels",
                counts == dict.fromkeys(HPC_KERNELS, HPC_STEPS), counts)
    copies = suite.query(recorded, "SELECT kind, count(*) AS n, sum(bytes) AS bytes FROM memcpys GROUP BY kind ORDER BY kind")
    result.fact("and a copy out, a copy in and a residual each", {row["kind"]: row["n"] for row in copies} ==
                {"dtoh": 2 * HPC_STEPS, "htod": HPC_STEPS}, copies)
    waits = {name: rows[name]["ns"] / requested - 1 for name, requested in HPC_KERNELS.items() if name in rows}
    result.fact("the PTX of examples/hpc waits for the requested time", bool(waits) and
                all(-0.001 <= late <= MAX_LATE + 2000 / HPC_KERNELS[name] for name, late in waits.items()),
                ", ".join(f"{name} {100 * late:+.2f} %" for name, late in waits.items()))
    (row,) = suite.query(recorded, """
        SELECT count(*) AS calls, count(*) FILTER (kernels.start_ns >= api_calls.start_ns) AS after,
               min(kernels.start_ns - api_calls.start_ns) AS least, median(kernels.start_ns - api_calls.start_ns) AS middle
        FROM api_calls JOIN kernels USING (process, session, correlation)""")
    result.fact("every sampled launch has its kernel, by correlation id", row["calls"] > 0, f"{row['calls']} joined")
    result.fact("no kernel starts before it was launched: the clocks agree", row["calls"] == row["after"],
                f"first {row['least']} ns after its launch began, median {row['middle']:.0f} ns")
    lost = suite.query(recorded, "SELECT reason, sum(count) AS n FROM drops WHERE reason LIKE 'gpu%' GROUP BY reason")
    result.fact("nothing is lost", not lost, lost or "no drops")
    streams = [row["stream"] for row in suite.query(recorded, "SELECT DISTINCT stream FROM kernels ORDER BY stream")]
    result.fact("the first stream that a program makes has id 13", streams[:1] == [13], streams)


def training(suite, result):
    plain = suite.run(sys.executable, TRAIN / "train.py", "--workers", 0, "--steps", TRAIN_STEPS)
    recorded = suite.record(sys.executable, TRAIN / "train.py", "--workers", 0, "--steps", TRAIN_STEPS)
    loss = [re.search(r"loss (\S+);", text.splitlines()[-1]).group(1) for text in (plain.stdout, recorded.stdout)]
    result.fact("a recorded program computes what it computes alone", loss[0] == loss[1], f"loss {loss[0]} and {loss[1]}")
    steps = suite.value(recorded, "SELECT count(*) FROM ranges WHERE name = 'step'")
    result.fact("every NVTX range is there", steps == TRAIN_STEPS, f"{steps} of {TRAIN_STEPS} steps")
    counts = suite.query(recorded, """
        SELECT ranges.start_ns, count(*) AS n FROM ranges JOIN kernels USING (process)
        WHERE ranges.name = 'step' AND kernels.start_ns BETWEEN ranges.start_ns AND ranges.end_ns
        GROUP BY ALL ORDER BY ALL""")
    if not counts:
        raise Failed(f"no kernel lies within a step: {last_lines(recorded.stderr)}")
    # The stream has two steps, which are replayed alternately.
    even, odd = {row["n"] for row in counts[0::2]}, {row["n"] for row in counts[1::2]}
    result.fact("the same step has the same number of kernels", len(even) == len(odd) == 1,
                f"{sorted(even)} and {sorted(odd)}")
    result.row("kernels in a step of examples/train", median([row["n"] for row in counts]), "")


def driver(suite, result):
    """The driver's behaviour that simgpu implements from documents alone."""
    hpc = find("bin/gpusonde-hpc", "bin/hpc")
    done = suite.run(hpc, "--steps", 1, env={"CUDA_INJECTION64_PATH": "/nonexistent/library.so"}, check=False)
    result.fact("a CUDA_INJECTION64_PATH that can't be loaded is silently ignored",
                done.returncode == 0 and not done.stderr, f"exit status {done.returncode}, {last_lines(done.stderr) or 'silence'}")
    done = suite.run(sys.executable, "-c", FORK, check=False)
    result.fact("every driver call in a forked child returns 3 (not initialised)", done.stdout.strip() == "3 3 3",
                done.stdout.strip() or last_lines(done.stderr))


def run(suite):
    suite.needs_gpu()
    result = Result()
    stencil(suite, result)
    training(suite, result)
    driver(suite, result)
    return result
