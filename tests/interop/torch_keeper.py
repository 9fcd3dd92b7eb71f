#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""torch_keeper: for each line on standard input a fresh TCPStore of PyTorch's, its port on standard output.

Runs in the Python that has PyTorch. The last few stores live on, so that clients can end in peace.

usage: torch_keeper.py [--old]     --old: the server without libuv, which knows no queues
"""
import collections
import sys

import torch.distributed as dist

stores = collections.deque(maxlen=4)
for _ in sys.stdin:
    stores.append(dist.TCPStore("127.0.0.1", 0, None, True, wait_for_workers=False,
                                use_libuv="--old" not in sys.argv))
    print(stores[-1].port, flush=True)
