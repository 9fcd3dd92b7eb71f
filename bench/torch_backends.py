#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""tutti and gloo as backends of the same PyTorch program, in one interleaved run.

Method  Ranks are processes that have a group on each. Rounds take turns: a few calls on one, as many on the other. Each rank
        takes its times, the slowest rank's counts, and what is printed is the median over rounds, and the ratio's of the
        same round. Steps are of a small convolutional network under DistributedDataParallel, with the same batches; both have the
        same losses to 1e-6, or this ends with an error.

usage: torch_backends.py [--ranks 2,4] [--sizes 4,64K,4M,32M] [--rounds 20]     run by a Python that has torch and tutti_torch
"""
import argparse
import os
import pathlib
import statistics
import sys
import time

os.environ.setdefault("LIMIT_S", "600")
sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "python" / "tests"))

import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402
from ranks import run  # noqa: E402
from torch import nn  # noqa: E402
from torch.nn.parallel import DistributedDataParallel  # noqa: E402

NAMES = ("tutti", "gloo")


def bytes_of(text):
    units = {"K": 1 << 10, "M": 1 << 20}
    return int(text[:-1]) * units[text[-1]] if text[-1] in units else int(text)


def slowest(seconds):
    t = torch.tensor([seconds], dtype=torch.float64)
    dist.all_reduce(t, dist.ReduceOp.MAX)
    return t.item()


def in_turns(calls, rounds, each):
    """[(tutti, gloo) seconds of one call] for each round; which comes first changes."""
    pairs = []
    for r in range(rounds + 1):
        took = {}
        for name in NAMES if r % 2 else NAMES[::-1]:
            dist.barrier()
            began = time.perf_counter()
            for _ in range(each):
                calls[name]()
            took[name] = slowest((time.perf_counter() - began) / each)
        pairs.append(tuple(took[name] for name in NAMES))
    return pairs[1:]  # the first is for warming up


def tell(what, size, pairs):
    ours, theirs = (1e6 * statistics.median(p[i] for p in pairs) for i in (0, 1))
    print(f"{what}\t{size} ranks\ttutti {ours:.1f} us\tgloo {theirs:.1f} us\tratio {statistics.median(o / t for o, t in pairs):.3f}",
          flush=True)


def network():
    torch.manual_seed(1)
    return nn.Sequential(nn.Conv2d(1, 10, 5), nn.MaxPool2d(2), nn.ReLU(), nn.Conv2d(10, 20, 5), nn.MaxPool2d(2), nn.ReLU(),
                         nn.Flatten(), nn.Linear(320, 50), nn.ReLU(), nn.Linear(50, 10))


class Step:
    """A step of training, with the losses so far."""

    def __init__(self, group, rank):
        self.model = DistributedDataParallel(network(), process_group=group)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.01, momentum=0.5)
        self.batches = torch.Generator().manual_seed(rank)
        self.losses = []

    def __call__(self):
        x = torch.randn(64, 1, 28, 28, generator=self.batches)
        y = torch.randint(0, 10, (64,), generator=self.batches)
        self.optimizer.zero_grad()
        loss = nn.functional.cross_entropy(self.model(x), y)
        loss.backward()
        self.optimizer.step()
        self.losses.append(loss.item())


def main():
    args = argparse.ArgumentParser()
    args.add_argument("--ranks", default="2,4")
    args.add_argument("--sizes", default="4,64K,4M,32M")
    args.add_argument("--rounds", type=int, default=20)
    args = args.parse_args()

    def body(rank, size):
        groups = {"tutti": dist.group.WORLD, "gloo": dist.new_group(backend="gloo")}
        for text in args.sizes.split(","):
            t = torch.zeros(max(1, bytes_of(text) // 4))
            each = max(1, min(200, (4 << 20) // bytes_of(text)))
            pairs = in_turns({n: lambda g=g: dist.all_reduce(t, group=g) for n, g in groups.items()}, args.rounds, each)
            if rank == 0:
                tell(f"all_reduce {text}B", size, pairs)
        steps = {n: Step(g, rank) for n, g in groups.items()}
        pairs = in_turns(steps, args.rounds, 5)
        torch.testing.assert_close(torch.tensor(steps["tutti"].losses), torch.tensor(steps["gloo"].losses), rtol=0, atol=1e-6)
        if rank == 0:
            tell("DDP step", size, pairs)

    for size in args.ranks.split(","):
        run(body, int(size))


if __name__ == "__main__":
    main()
