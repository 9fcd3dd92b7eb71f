#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Write ddp_losses.tsv: 50 losses of the tutorial's network under PyTorch's DistributedDataParallel; and
tutorial_grads.safetensors: its gradients at step 0, on one rank, all elements, in f32.

    make_digits build/golden --train 15000 --test 2000 --seed 1
    OMP_NUM_THREADS=1 python3 tests/golden/make_ddp.py build/golden

needs PyTorch 2.x, safetensors and numpy. 1, 2 and 4 processes over gloo, dropout off, seed 1234 on rank 0 and others
elsewhere (DDP has to send the parameters), SGD with lr 0.01 and momentum 0.5. Step s takes samples 128 s to 128 s + 127
in the order of the file, rank r of W part r of W of them. A loss is the mean over the ranks, before the step.
Each is taken twice, in f32 and in f64 (the f32 parameters of the start, widened). The gradients of 2 and 4 ranks, and
those in f64, are those in the file but for rounding: it is told how far they are from them.
"""
import os
import sys

import numpy
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn.functional as F
from safetensors.torch import load_file, save_file

from make_golden import Net, read_idx

SEED, BATCH, STEPS, SIZES = 1234, 128, 50, (1, 2, 4)


def run(rank, size, folder, path, wide):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="29577")
    dist.init_process_group("gloo", rank=rank, world_size=size)
    torch.set_num_threads(1)
    images, labels, _ = read_idx(folder)
    x = torch.from_numpy(images[:BATCH * STEPS].copy()).float().div(255).sub_(0.1307).div_(0.3081).unsqueeze(1)
    y = torch.from_numpy(labels[:BATCH * STEPS].astype(numpy.int64))
    torch.manual_seed(SEED + rank)
    net = Net()
    if wide:
        net, x = net.double(), x.double()
    ddp = torch.nn.parallel.DistributedDataParallel(net)
    optimizer = torch.optim.SGD(ddp.parameters(), lr=0.01, momentum=0.5)
    part, losses = BATCH // size, []
    for step in range(STEPS):
        at = BATCH * step + part * rank
        optimizer.zero_grad()
        loss = F.nll_loss(ddp(x[at:at + part]), y[at:at + part])
        loss.backward()
        if rank == 0 and step == 0:
            save_file({name: p.grad.clone() for name, p in net.named_parameters()}, path + ".grads")
        optimizer.step()
        mean = loss.detach().double()
        dist.all_reduce(mean)
        losses.append(float(mean) / size)
    if rank == 0:
        numpy.save(path, losses)
    dist.destroy_process_group()


def keep_gradients(here, grads):
    """grads: those of each run, the one to keep first."""
    for got in grads[1:]:
        off = {n: ((g - grads[0][n].double()).norm() / g.norm()).item() for n, g in got.items()}
        worst = max(off, key=off.get)
        print("gradients are within %.1e of those in the file, norm-wise: %s" % (off[worst], worst))
    save_file(grads[0], os.path.join(here, "tutorial_grads.safetensors"),
              metadata={"format": "pt", "made by": "make_ddp.py with torch " + torch.__version__})


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    here = os.path.dirname(os.path.abspath(__file__))
    path = os.path.join(sys.argv[1], "losses.npy")
    _, labels, digest = read_idx(sys.argv[1])
    grads = []
    with open(os.path.join(here, "ddp_losses.tsv"), "w") as out:
        out.write("# made by make_ddp.py with torch %s\n" % torch.__version__)
        out.write("# data: make_digits --train %d --test 2000 --seed 1; sha256 of images then labels: %s\n"
                  % (len(labels), digest))
        out.write("# loss: ranks, step, f32 loss, the same in f64\n")
        for size in SIZES:
            kept = []
            for wide in (False, True):
                mp.start_processes(run, (size, sys.argv[1], path, wide), size, start_method="fork")
                kept.append(numpy.load(path))
                grads.append(load_file(path + ".grads"))
            for step in range(STEPS):
                out.write("loss\t%d\t%d\t%.9g\t%.17g\n" % (size, step, kept[0][step], kept[1][step]))
            print("%d ranks: f32 is within %.1e of f64" % (size, max(abs(kept[0] - kept[1]) / kept[1])))
    keep_gradients(here, grads)


if __name__ == "__main__":
    main()
