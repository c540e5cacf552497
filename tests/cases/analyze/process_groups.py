# SPDX-License-Identifier: Apache-2.0
"""process_groups.py FOLDER [OPTION=VALUE …]: PyTorch traces rank0.json … of a made job, whose ranks work in groups that
leave each collective together; groups don't wait for each other. Options, with their defaults:

    groups=[[0,1],[2,3]]    the ranks of each group
    late=-1                 a rank that comes 300 µs late to every collective
    begins=0                how many collectives later the last rank's trace begins
    args=seq                what the traces say: seq (group, ranks and number), group (without number), none
    kernel=AllReduce        SendRecv with pairs=1: only neighbouring ranks of a group take part, in turns
    clock=0                 ns that the last rank's clock is ahead
    jitter=0                ns by which ranks' ends of a collective differ at random
    elements=0              how many numbers of 4 bytes the largest message has, with args=seq or group; the I-th has I % 3
                            halvings less
    operation=allreduce     PyTorch's name of the collective
    dtype=Float             their type
"""

import json
import pathlib
import random
import sys

options = {"groups": [[0, 1], [2, 3]], "late": -1, "begins": 0, "args": "seq", "kernel": "AllReduce", "pairs": 0,
           "clock": 0, "jitter": 0, "elements": 0, "operation": "allreduce", "dtype": "Float"}
for option in sys.argv[2:]:
    key, value = option.split("=")
    options[key] = value if isinstance(options[key], str) else json.loads(value)
folder = pathlib.Path(sys.argv[1])
folder.mkdir(exist_ok=True)
STEPS = 100
last_rank = max(rank for group in options["groups"] for rank in group)


def microseconds(ns):
    return ns / 1000


for number, group in enumerate(options["groups"]):
    draw = random.Random(number)
    events = {rank: [] for rank in group}
    end = 5_000_000 * (number + 1) // 2  # groups are out of step
    for step in range(STEPS):
        members = group
        if options["pairs"]:
            members = [group[step % len(group)], group[(step + 1) % len(group)]]
        end += 2_000_000 + draw.randrange(400_000)
        for rank in members:
            duration = 100_000 if rank == options["late"] else 100_000 + (300_000 if options["late"] in members else 0)
            leaves = end + draw.randrange(options["jitter"] + 1) + (options["clock"] if rank == last_rank else 0)
            arguments = {"stream": 20, "device": 0, "correlation": step, "grid": [1, 1, 1], "block": [256, 1, 1]}
            if options["args"] != "none":
                arguments |= {"Collective name": "collective", "Group size": len(group), "Process Group Name": "tp",
                              "Process Group Ranks": str(group)}
                if options["elements"]:
                    elements = options["elements"] if options["elements"] < 0 else options["elements"] >> step % 3
                    arguments |= {"Collective name": options["operation"], "In msg nelems": elements // len(group),
                                  "Out msg nelems": elements, "dtype": options["dtype"]}
            if options["args"] == "seq":
                arguments["Seq"] = 65_500 + step
            events[rank].append({"ph": "X", "cat": "kernel", "name": f"ncclDevKernel_{options['kernel']}(ncclDevComm*)",
                                 "pid": 0, "tid": 20, "ts": microseconds(leaves - duration),
                                 "dur": microseconds(duration), "args": arguments})
    for rank in group:
        kept = events[rank][options["begins"]:] if rank == last_rank else events[rank]
        (folder / f"rank{rank}.json").write_text(json.dumps(
            {"distributedInfo": {"rank": rank}, "traceEvents": kept}))
