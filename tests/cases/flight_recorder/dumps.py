#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes dumps as PyTorch's Flight Recorder does, of a made job that hangs: made-up calls, real formats.

    dumps.py FOLDER RANKS STUCK [--calls N] [--protocol 2|5] [--json]

FOLDER/nccl_trace_rank_N holds the last N calls of each rank. All are all_reduce of the default group, but for one in
seven of a group of each pair of ranks. Rank STUCK hasn't made the last call of the default group; -1: all have, and it
has completed. The dictionary is that of torch/csrc/distributed/c10d/FlightRecorderDetail.hpp, version 2.10; Python's own
pickle module writes it, or json without frames, as PyTorch does.
"""

import argparse
import json
import pathlib
import pickle

FRAMES = [{"name": "all_reduce", "filename": "/usr/lib/python3/dist-packages/torch/distributed/distributed_c10d.py", "line": 2501},
          {"name": "wrapper", "filename": "/usr/lib/python3/dist-packages/torch/distributed/c10d_logger.py", "line": 83}]
FRAMES += [{"name": f"layer_{depth}", "filename": "model.py", "line": 100 + depth} for depth in range(25)]
START_NS = 1_763_000_000_000_000_000


def entry(rank, record, group, sequence, state):
    called_ns = START_NS + record * 10_000_000 + rank * 1000
    done_ns = called_ns + 5_000_000 if state == "completed" else None
    return {"record_id": record, "pg_id": int(group[0]), "process_group": group, "collective_seq_id": sequence, "p2p_seq_id": 0,
            "op_id": sequence, "profiling_name": "nccl:all_reduce", "time_created_ns": called_ns, "input_sizes": [[1024, 1024]],
            "input_dtypes": ["Float"], "output_sizes": [[1024, 1024]], "output_dtypes": ["Float"], "state": state,
            "time_discovered_started_ns": None, "time_discovered_completed_ns": done_ns, "retired": state == "completed",
            "timeout_ms": 600000, "is_p2p": False, "thread_id": "1", "thread_name": "pt_main", "frames": FRAMES}


def dump(rank, ranks, stuck, calls):
    pair = str(1 + rank // 2)
    members = [one for one in (rank // 2 * 2, rank // 2 * 2 + 1) if one < ranks]
    entries, sequences = [], {"0": 0, pair: 0}
    for record in range(calls):
        last = record == calls - 1
        if last and rank == stuck:
            break
        name = pair if record % 7 == 3 and not last else "0"
        sequences[name] += 1
        group = (name, "default_pg" if name == "0" else "pair")
        entries.append(entry(rank, record, group, sequences[name], "scheduled" if last and stuck >= 0 else "completed"))
    config = {"0": {"name": "0", "desc": "default_pg", "ranks": str(list(range(ranks)))},
              pair: {"name": pair, "desc": "pair", "ranks": str(members)}}
    return {"version": "2.10", "comm_lib_version": "2.27.3", "pg_config": config, "pg_status": {}, "entries": entries}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("ranks", type=int)
    parser.add_argument("stuck", type=int)
    parser.add_argument("--calls", type=int, default=50)
    parser.add_argument("--protocol", type=int, default=2)
    parser.add_argument("--json", action="store_true")
    wanted = parser.parse_args()
    wanted.folder.mkdir(parents=True, exist_ok=True)
    for rank in range(wanted.ranks):
        made = dump(rank, wanted.ranks, wanted.stuck, wanted.calls)
        path = wanted.folder / f"nccl_trace_rank_{rank}"
        if wanted.json:
            for one in made["entries"]:
                del one["frames"]
                one["time_discovered_started_ns"] = one["time_discovered_started_ns"] or 0
            path.write_text(json.dumps(made, sort_keys=True))
        else:
            path.write_bytes(pickle.dumps(made, protocol=wanted.protocol))


if __name__ == "__main__":
    main()
