#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""store_peer: PyTorch's side of `tutti bench store`: the server, or one process of clients.

Each step is asked for with a line on standard input and answered with one on standard output, as the C
side's processes do it. A client is a thread with a TCPStore, and so a connection, of its own; PyTorch
lets other threads run while one is in a call.

usage: store_peer.py serve | store_peer.py clients PORT CLIENTS ADDS
"""
import os
import sys
import threading

os.environ.setdefault("TORCH_CPP_LOG_LEVEL", "ERROR")  # it warns of each client whose name it cannot find

import torch.distributed as dist

STACK = 256 * 1024


def say(word):
    sys.stdout.write(f"{word}\n")
    sys.stdout.flush()


def serve():
    store = dist.TCPStore("127.0.0.1", 0, None, True, wait_for_workers=False)
    say(store.port)
    sys.stdin.read()


def in_threads(n, body):
    failures = []

    def guarded(i):
        try:
            body(i)
        except Exception as failure:  # reported by the caller's thread
            failures.append(failure)

    threads = [threading.Thread(target=guarded, args=(i,)) for i in range(n)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        sys.exit(f"store_peer: {failures[0]}")


def clients(port, n, adds):
    stores = [None] * n

    def connect(i):
        stores[i] = dist.TCPStore("127.0.0.1", port, None, False, wait_for_workers=False)

    def count(i):
        for _ in range(adds):
            stores[i].add("counter", 1)

    threading.stack_size(STACK)
    say("ready")
    sys.stdin.readline()
    in_threads(n, connect)
    say("connected")
    sys.stdin.readline()
    in_threads(n, count)
    say("done")
    sys.stdin.read()


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        serve()
    else:
        clients(*map(int, sys.argv[2:]))
