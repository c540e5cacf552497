# SPDX-License-Identifier: Apache-2.0
"""stable_kernels.py PREFIX: PyTorch traces PREFIX0.json and PREFIX1.json of two ranks whose kernels vary by 0.5 to 4 %,
with a few outliers, and one that varies widely. Prints each kernel's robust coefficient of variation, exactly, as JSON."""

import json
import random
import sys

draw = random.Random(1)
durations = {}
for rank in (0, 1):
    events, ts = [], 0
    for i in range(3000):
        for name, median, variation in (("small", 3_000, 0.023), ("medium", 90_000, 0.005), ("large", 4_000_000, 0.04),
                                        ("wide", 20_000, 0.3)):
            factor = 3 if i % 40 == 0 else 1
            duration = round(max(1, draw.gauss(median * (1 + 0.01 * rank), median * variation)) * factor)
            durations.setdefault(name, []).append(duration)
            events.append({"ph": "X", "cat": "kernel", "name": name, "pid": 0, "tid": 7, "ts": ts / 1000,
                           "dur": duration / 1000})
            ts += duration + 1_000
    with open(f"{sys.argv[1]}{rank}.json", "w") as file:
        file.write(json.dumps({"distributedInfo": {"rank": rank}, "traceEvents": events}))


def lower_median(values):
    return sorted(values)[(len(values) - 1) // 2]


def robust_cv(values):
    center = lower_median(values)
    return 1.4826 * lower_median([abs(value - center) for value in values]) / center


print(json.dumps({name: robust_cv(values) for name, values in durations.items()}))
