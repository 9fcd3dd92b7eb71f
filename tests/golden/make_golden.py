#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Write tutorial_losses.tsv: the first 20 losses of the tutorial's network as PyTorch computes them.

    make_digits build/golden --train 15000 --test 2000 --seed 1
    OMP_NUM_THREADS=1 /usr/bin/python3 tests/golden/make_golden.py build/golden

needs PyTorch 1.13 (Debian 12: python3-torch) and numpy. One process, dropout off (the modules are the
identity, as in eval mode), seed 1234, batch 128, SGD with lr 0.01 and momentum 0.5. Samples come in the
order of the tutorial: the slice of rank 0 of 1 of its partitioner, shuffled by a DataLoader.

Each step's loss is taken twice: from the f32 run, and from the same run in f64 (the f32 parameters of
the start and the f32 pixels, widened). The second says how far rounding alone moves the first.
"""
import hashlib
import math
import os
import random
import sys

import numpy
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset

SEED, BATCH, STEPS = 1234, 128, 20
FILES = ("train-images-idx3-ubyte", "train-labels-idx1-ubyte")


class Digits(Dataset):
    """The slice that the tutorial's partitioner gives to rank 0 of 1."""

    def __init__(self, images, labels):
        x = torch.from_numpy(images.copy()).float().div(255)
        self.x = x.sub_(0.1307).div_(0.3081).unsqueeze(1)
        self.y = torch.from_numpy(labels.astype(numpy.int64))
        self.index = list(range(len(labels)))
        random.Random(SEED).shuffle(self.index)

    def __len__(self):
        return len(self.index)

    def __getitem__(self, i):
        return self.x[self.index[i]], self.y[self.index[i]], self.index[i]


class Net(nn.Module):
    """The network of the tutorial, without its dropout."""

    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 10, kernel_size=5)
        self.conv2 = nn.Conv2d(10, 20, kernel_size=5)
        self.fc1 = nn.Linear(320, 50)
        self.fc2 = nn.Linear(50, 10)

    def forward(self, x):
        x = F.relu(F.max_pool2d(self.conv1(x), 2))
        x = F.relu(F.max_pool2d(self.conv2(x), 2))
        x = F.relu(self.fc1(x.view(-1, 320)))
        return F.log_softmax(self.fc2(x), dim=1)


def read_idx(folder):
    raw = [open(os.path.join(folder, name), "rb").read() for name in FILES]
    labels = numpy.frombuffer(raw[1], numpy.uint8, offset=8)
    images = numpy.frombuffer(raw[0], numpy.uint8, offset=16).reshape(len(labels), 28, 28)
    return images, labels, hashlib.sha256(raw[0] + raw[1]).hexdigest()


def train(net, batches):
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.5)
    losses = []
    for x, y in batches:
        optimizer.zero_grad()
        loss = F.nll_loss(net(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    torch.set_num_threads(1)
    images, labels, digest = read_idx(sys.argv[1])
    data = Digits(images, labels)

    torch.manual_seed(SEED)
    net = Net()
    wide = Net().double()
    wide.load_state_dict(net.state_dict())
    torch.manual_seed(SEED)     # as if only the first network had been made
    Net()
    first = []
    for x, y, index in DataLoader(data, batch_size=BATCH, shuffle=True):
        first.append((x, y, index))
        if len(first) == STEPS:
            break
    losses = train(net, [(x, y) for x, y, _ in first])
    exact = train(wide, [(x.double(), y) for x, y, _ in first])

    here = os.path.dirname(os.path.abspath(__file__))
    with open(os.path.join(here, "tutorial_losses.tsv"), "w") as out:
        out.write("# made by make_golden.py with torch %s\n" % torch.__version__)
        out.write("# data: make_digits --train %d --test 2000 --seed 1; sha256 of %s then %s: %s\n"
                  % (len(labels), FILES[0], FILES[1], digest))
        out.write("# seed %d, one rank, batch %d, lr 0.01, momentum 0.5, dropout off\n"
                  % (SEED, BATCH))
        out.write("# loss: step, f32 loss, the same in f64\n")
        for step, (a, b) in enumerate(zip(losses, exact)):
            out.write("loss\t%d\t%.9g\t%.17g\n" % (step, a, b))
        out.write("# samples: the first 8 of step 0, numbers in the file\n")
        out.write("samples\t0\t%s\n" % "\t".join(str(int(i)) for i in first[0][2][:8]))
        out.write("# param: after the last step: name, elements, sum and L2 norm in f64 of the f32"
                  " values; the same two of the f64 run\n")
        for (name, p), q in zip(net.named_parameters(), wide.parameters()):
            p, q = p.detach().double(), q.detach()
            out.write("param\t%s\t%d\t%.17g\t%.17g\t%.17g\t%.17g\n"
                      % (name, p.numel(), p.sum(), p.norm(), q.sum(), q.norm()))
    worst = max(math.fabs(a - b) / b for a, b in zip(losses, exact))
    print("%d losses, %.6f to %.6f; f32 is within %.1e of f64"
          % (STEPS, losses[0], losses[-1], worst))


if __name__ == "__main__":
    main()
