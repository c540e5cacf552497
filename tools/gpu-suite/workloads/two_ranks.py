# SPDX-License-Identifier: Apache-2.0
"""two_ranks.py STEPS SLOW_AFTER: two ranks of NCCL on one GPU, which take each other for ranks on other hosts, and so
communicate over sockets. After SLOW_AFTER steps rank 1 is 30 ms late."""

import os
import sys
import time

import torch
import torch.distributed
import torch.multiprocessing

PORT = 29511


def work(rank, steps, slow_after):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(PORT), NCCL_HOSTID=f"host{rank}", NCCL_SOCKET_IFNAME="lo",
                      NCCL_IB_DISABLE="1")
    torch.cuda.set_device(0)
    torch.distributed.init_process_group("nccl", rank=rank, world_size=2)
    gradient = torch.ones(1 << 18, device="cuda")
    for step in range(steps):
        if rank == 1 and step >= slow_after:
            time.sleep(0.03)
        torch.distributed.all_reduce(gradient)
        torch.cuda.synchronize()
        gradient.fill_(1)
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    torch.multiprocessing.spawn(work, tuple(map(int, sys.argv[1:3])), nprocs=2)
