#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Write sampler.tsv: what PyTorch's DistributedSampler gives to each rank.

    python3 tests/golden/make_sampler.py

needs PyTorch 2.x. Lines: n, ranks, rank, seed, epoch, shuffle, drop_last, then the samples.
"""
import os

import torch
from torch.utils.data import DistributedSampler

CASES = [(10, 3, 0, 0), (10, 3, 7, 2), (11, 4, 1234, 1), (12, 4, 5, 0), (2, 5, 3, 4), (1, 3, 0, 0),
         (100, 7, 2**32 - 1, 3), (700, 2, 2**40 + 5, 0)]


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    with open(os.path.join(here, "sampler.tsv"), "w") as out:
        out.write("# made by make_sampler.py with torch %s\n" % torch.__version__)
        out.write("# n, ranks, rank, seed, epoch, shuffle, drop_last, samples\n")
        for n, ranks, seed, epoch in CASES:
            for rank in range(ranks):
                for shuffle in (True, False):
                    for drop_last in (False, True):
                        sampler = DistributedSampler(range(n), ranks, rank, shuffle, seed, drop_last)
                        sampler.set_epoch(epoch)
                        out.write("\t".join(str(x) for x in [
                            n, ranks, rank, seed, epoch, int(shuffle), int(drop_last)]
                            + list(sampler)) + "\n")


if __name__ == "__main__":
    main()
