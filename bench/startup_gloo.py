#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""startup_gloo: PyTorch's side of startup.py: ranks that are forked by one process, which has imported torch.

Prints 'forking NS', then a line for each rank as startup_rank does: begun, joined, first sum (ns of the monotonic clock),
descriptors, connected TCP sockets, memory. usage: startup_gloo.py RANKS
"""
import os
import socket
import sys
import time

os.environ.setdefault("TORCH_CPP_LOG_LEVEL", "ERROR")
os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")

import torch
import torch.distributed as dist


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def connected():
    n = 0
    for name in os.listdir("/proc/self/fd"):
        try:
            with socket.socket(fileno=os.dup(int(name))) as s:
                n += s.family in (socket.AF_INET, socket.AF_INET6) and s.getpeername() is not None
        except OSError:
            pass
    return n


def status_kib(name):
    with open("/proc/self/status", encoding="ascii") as file:
        return next((int(line.split()[1]) for line in file if line.startswith(name + ":")), 0)


def rank_main(rank, size, port, out):
    began = time.monotonic_ns()
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=size)
    joined = time.monotonic_ns()
    x = torch.ones(1)
    dist.all_reduce(x)
    done = time.monotonic_ns()
    if x.item() != size:
        sys.exit(f"the sum of {size} ones is {x.item()}")
    figures = (began, joined, done, len(os.listdir("/proc/self/fd")) - 1, connected(), status_kib("RssAnon"),
               status_kib("RssShmem"), status_kib("VmPTE"))
    os.write(out, ("startup " + " ".join(map(str, figures)) + "\n").encode())
    dist.barrier()
    dist.destroy_process_group()


def main():
    size, port = int(sys.argv[1]), free_port()
    print(f"forking {time.monotonic_ns()}", flush=True)
    children = []
    for rank in range(size):
        pid = os.fork()
        if pid == 0:
            status = 1
            try:
                rank_main(rank, size, port, 1)
                status = 0
            finally:
                os._exit(status)
        children.append(pid)
    sys.exit(1 if any([os.waitpid(pid, 0)[1] for pid in children]) else 0)


if __name__ == "__main__":
    main()
