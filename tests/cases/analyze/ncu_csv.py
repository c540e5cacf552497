#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""ncu_csv.py LONG WIDE GERMAN: a synthetic job of two ranks in Nsight Compute's format: a metric per row, a metric per
column, and a metric per row with the numbers of a German locale. Longer launches of gemm read more and reach less
throughput; copy reads twice as much on the second rank."""

import random
import sys

METRICS = ("gpu__time_duration.sum", "dram__bytes_read.sum", "sm__throughput.avg.pct_of_peak_sustained_elapsed",
           "launch__registers_per_thread")
UNITS = ("nsecond", "byte", "%", "register/thread")


def launches():
    random.seed(7)
    for i in range(80):
        process, kernel, grid = 1000 + i % 2, "gemm" if i // 2 % 2 else "copy", 1 + i // 4 % 2
        load = random.randrange(1000)
        duration = 10_000 * grid * (5 if kernel == "gemm" else 1) + 3 * load
        read = 2_000_000 * grid + 100 * load if kernel == "gemm" else 1_000_000 * (1 + i % 2) + load
        if i == 2:
            duration, read, load = 50_000, 2_000_000, 0
        throughput = 90_000_000 - 30_000 * load
        identity = (str(i), str(process), "python", "node1", kernel, "1", "7", "(128, 1, 1)", f"({grid}, 1, 1)",
                    str(process - 1000), "8.0")
        yield identity, (duration, read, throughput, 64)


def plain(micro):
    """A number of millionths, in C's format."""
    return f"{micro // 10**6}.{micro % 10**6:06d}"


def grouped(number, group):
    return f"{number:,}".replace(",", group)


def row(cells):
    return ",".join('"' + str(cell) + '"' for cell in cells) + "\n"


def main():
    names = ("ID", "Process ID", "Process Name", "Host Name", "Kernel Name", "Context", "Stream", "Block Size", "Grid Size",
             "Device", "CC")
    long_form, wide, german = (open(path, "w") for path in sys.argv[1:])
    for file in (long_form, german):
        file.write("epoch 1, \"loss 2.5\n==PROF== Connected to process 1000\n")
        file.write(row(names + ("Section Name", "Metric Name", "Metric Unit", "Metric Value")))
    wide.write(row(names + METRICS))
    wide.write(row(("",) * len(names) + UNITS))
    for number, (identity, (duration, read, throughput, registers)) in enumerate(launches()):
        wide.write(row(identity + (grouped(duration, ","), read, plain(throughput), registers)))
        # Nsight Compute chooses a unit for each row by its value.
        time = (("usecond", f"{duration // 1000}.{duration % 1000:03d}") if number % 2 else
                ("nsecond", grouped(duration, ",")))
        size = ("Mbyte", plain(read)) if number % 3 else ("byte", grouped(read, ","))
        values = (time, size, ("%", plain(throughput)), ("register/thread", registers))
        for metric, (unit, value) in zip(METRICS, values):
            long_form.write(row(identity + ("a section", metric, unit, value)))
            swapped = str(value).translate(str.maketrans(",.", ".,"))
            german.write(row(identity + ("a section", metric, unit, swapped)))
        if number == 40:
            long_form.write("step 40: \"done\n")


main()
