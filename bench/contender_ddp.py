#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""contender_ddp: one rank that trains with PyTorch's DistributedDataParallel over gloo; the twin of contender_ddp.c.

The same lines, networks, parameters and batches. What makes PyTorch quicker on CPUs without changing what it computes
is taken: fused optimizers, gradients as views of buckets.

usage: contender_ddp.py SOCKET BOARD INIT_FILE, with RANK and WORLD_SIZE
"""
import contextlib
import os
import socket
import sys
import time

from contender_gloo import Board, dist, rank, ranks, torch

import numpy
import torch.nn.functional as F
from torch import nn

BATCHES, T, V, D, HEADS, LAYERS, CLASSES = 4, 128, 256, 384, 6, 6, 10


# ---- numbers by formula: ddp_nets.c has the same -----------------------------------------------------------

def units(k, n):
    """n numbers of stream k in [0, 1), multiples of 2^-24."""
    with numpy.errstate(over="ignore"):
        z = (numpy.uint64(k << 32) | numpy.arange(n, dtype=numpy.uint64)) + numpy.uint64(0x9e3779b97f4a7c15)
        z = (z ^ z >> numpy.uint64(30)) * numpy.uint64(0xbf58476d1ce4e5b9)
        z = (z ^ z >> numpy.uint64(27)) * numpy.uint64(0x94d049bb133111eb)
    return ((z ^ z >> numpy.uint64(31)) >> numpy.uint64(40)) * 2.0 ** -24


def filled(k, shape, around, bound):
    values = around + (2 * units(k, int(numpy.prod(shape))) - 1) * bound
    return torch.from_numpy(values.astype(numpy.float32).reshape(shape))


def fill_parameters(net):
    with torch.no_grad():
        for k, (name, p) in enumerate(net.named_parameters()):
            if p.dim() > 1:
                p.copy_(filled(k, p.shape, 0.0, 1 / (p.numel() // p.shape[0]) ** 0.5))
            else:
                p.copy_(filled(k, p.shape, 1.0 if "ln_" in name and name.endswith("weight") else 0.0, 0.05))
    return net


# ---- networks ----------------------------------------------------------------------------------------------

class Mnist(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(1, 10, 5), nn.Conv2d(10, 20, 5)
        self.fc1, self.fc2 = nn.Linear(320, 50), nn.Linear(50, CLASSES)

    def forward(self, x):
        x = F.relu(F.max_pool2d(self.conv1(x), 2))
        x = F.relu(F.max_pool2d(F.dropout2d(self.conv2(x), training=self.training), 2))
        x = F.dropout(F.relu(self.fc1(x.view(-1, 320))), training=self.training)
        return F.log_softmax(self.fc2(x), dim=1)

    def optim(self):
        return torch.optim.SGD(self.parameters(), lr=0.01, momentum=0.5, fused=True)

    loss = staticmethod(F.nll_loss)

    @staticmethod
    def batch(number, n):
        return (filled(1000 + number, (n, 1, 28, 28), 1.0, 1.5), (number + 3 * torch.arange(n)) % CLASSES)


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.ln_1, self.c_attn, self.attn_proj = nn.LayerNorm(D), nn.Linear(D, 3 * D), nn.Linear(D, D)
        self.ln_2, self.c_fc, self.mlp_proj = nn.LayerNorm(D), nn.Linear(D, 4 * D), nn.Linear(4 * D, D)

    def forward(self, x):
        n = x.shape[0]
        q, k, v = (a.view(n, T, HEADS, D // HEADS).transpose(1, 2) for a in self.c_attn(self.ln_1(x)).chunk(3, -1))
        h = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.attn_proj(h.transpose(1, 2).reshape(n, T, D))
        return x + self.mlp_proj(F.gelu(self.c_fc(self.ln_2(x)), approximate="tanh"))


class Gpt(nn.Module):
    def __init__(self):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(V, D), nn.Embedding(T, D)
        self.h = nn.ModuleList(Block() for _ in range(LAYERS))
        self.ln_f = nn.LayerNorm(D)

    def forward(self, tokens):
        x = self.wte(tokens) + self.wpe.weight
        for block in self.h:
            x = block(x)
        return F.linear(self.ln_f(x), self.wte.weight)

    def optim(self):
        return torch.optim.AdamW(self.parameters(), lr=1e-3, betas=(0.9, 0.95), weight_decay=0.1, fused=True)

    @staticmethod
    def loss(y, target):
        return F.cross_entropy(y.view(-1, V), target)

    @staticmethod
    def batch(number, n):
        t = torch.arange(T + 1)
        tokens = (7 * number + 13 * torch.arange(n)[:, None] + t * t) % V
        return tokens[:, :T].contiguous(), tokens[:, 1:].reshape(-1)


NETS = {"mnist": Mnist, "gpt": Gpt}


# ---- steps -------------------------------------------------------------------------------------------------

class Trainer:
    def __init__(self, name, batch):
        torch.manual_seed(1234 + rank)
        self.name, self.size, self.net = name, batch, fill_parameters(NETS[name]())
        self.ddp = nn.parallel.DistributedDataParallel(self.net, gradient_as_bucket_view=True)
        self.optim = self.net.optim()
        self.batches = [self.net.batch(BATCHES * rank + i, batch) for i in range(BATCHES)]
        self.next, self.buckets = 0, []

    def learn(self):
        x, target = self.batches[self.next]
        self.next = (self.next + 1) % BATCHES
        loss = self.net.loss(self.ddp(x), target)
        value = loss.item()
        self.optim.zero_grad()
        loss.backward()
        self.optim.step()
        return value

    def check(self, steps):
        self.ddp.eval()
        losses = torch.tensor([self.learn() for _ in range(steps)], dtype=torch.float64)
        self.ddp.train()
        dist.all_reduce(losses)
        return " ".join(f"{loss / ranks:.9g}" for loss in losses.tolist())

    def reduce_all(self):
        for work in [dist.all_reduce(bucket, async_op=True) for bucket in self.buckets]:
            work.wait()

    def tail(self, steps, board):
        """From the end of a backward to that of its reductions, by the reducer's clock, on the rank that waits least."""
        self.ddp._set_ddp_runtime_logging_sample_rate(1)
        total = 0
        for _ in range(steps):
            self.learn()
            told = self.ddp._get_ddp_logging_data()
            total += min(board.all_words(told["backward_comm_time"] - told["backward_compute_comm_overlap_time"]))
        return total / steps

    def ns_of(self, verb, steps, board):
        if verb == "comm" and not self.buckets:
            sizes = self.ddp._get_ddp_logging_data()["rebuilt_bucket_sizes"]
            self.buckets = [torch.zeros(int(size) // 4) for size in sizes.split(",")]
        if verb == "tail":
            return self.tail(steps, board)
        alone = self.ddp.no_sync() if verb == "local" else contextlib.nullcontext()
        board.barrier()
        begun = time.monotonic_ns()
        with alone:
            for _ in range(steps):
                if verb == "comm":
                    self.reduce_all()
                else:
                    self.learn()
                if verb == "local":
                    board.barrier()
        return max(board.all_words(time.monotonic_ns() - begun)) / steps


def answer(line, board, trainer):
    verb, name, batch, steps = line.split()
    if verb == "check":
        trainer = Trainer(name, int(batch))
        return trainer, trainer.check(int(steps))
    return trainer, f"{trainer.ns_of(verb, int(steps), board):.1f}"


def main():
    torch.set_num_threads(1)
    board, trainer, more = Board(sys.argv[2]), None, True
    dist.init_process_group("gloo", init_method=f"file://{sys.argv[3]}", rank=rank, world_size=ranks)
    control = socket.socket(socket.AF_UNIX)
    control.connect(sys.argv[1])
    lines = control.makefile("r")
    control.sendall(f"hello {rank} {ranks} PyTorch {torch.__version__}\n".encode())
    while more and (line := lines.readline()):
        try:
            trainer, said = answer(line, board, trainer)
            control.sendall(f"ok {said}\n".encode())
        except Exception as failure:
            control.sendall(f"failed {' '.join(str(failure).split())[:300]}\n".encode())
            more = False
    os._exit(0)  # the others may be gone: nothing to take leave of


if __name__ == "__main__":
    main()
