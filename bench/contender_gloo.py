#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""contender_gloo: PyTorch's gloo as a contender of peers.py, one rank per process.

The twin of contender.c and measure.c: the same lines on the socket, the same values, check, warming up and
two measures, from a barrier of its own, in a file that the ranks map. Each rank has a line there, which only
it writes. Calls are torch's, from Python: their times include its way to gloo, some microseconds.

usage: contender_gloo.py SOCKET BOARD INIT_FILE [PRODUCT], with RANK and WORLD_SIZE; PRODUCT is product.c as a shared object
"""
import ctypes
import itertools
import mmap
import os
import socket
import sys
import time

LINE, PLACES, SAMPLES = 128, 32, 8192
CHAIN_BLOCKS, CHAIN_CALLS_MAX, CALLS_MIN, BLOCK_CALLS, WARM_CALLS = 12, 100000, 3, 16, 5
COLD_BYTES, COLD_BUFFERS_MAX = 512 << 20, 1024
GIVE_UP_NS = 120_000_000_000
PARTS = ("all_gather", "reduce_scatter", "all_to_all", "gather", "scatter")
UNEVEN = ("all_gather_v", "gather_v", "scatter_v", "all_to_all_v")  # of which PyTorch has the last

rank, ranks = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
allowed = sorted(os.sched_getaffinity(0))
os.sched_setaffinity(0, {allowed[rank % len(allowed)]})  # before torch makes threads

import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402


class Board:
    def __init__(self, path):
        size = LINE * PLACES + 8 * SAMPLES * ranks
        with open(path, "r+b") as file:
            file.truncate(size)
            self.words = memoryview(mmap.mmap(file.fileno(), size)).cast("Q")
        self.turn, self.crowded = 0, ranks > len(allowed)

    def barrier(self):
        words, step = self.words, LINE // 8
        self.turn += 1
        words[rank * step] = self.turn
        begun = time.monotonic_ns()
        for other in range(ranks):
            while words[other * step] < self.turn:
                if self.crowded:
                    os.sched_yield()
                if time.monotonic_ns() - begun > GIVE_UP_NS:
                    raise TimeoutError("another rank did not come to the barrier within two minutes")

    def all_words(self, word):
        at = 1 + (self.turn + 1) % 2
        self.words[rank * LINE // 8 + at] = word
        self.barrier()
        return [self.words[r * LINE // 8 + at] for r in range(ranks)]

    def samples(self, r, n):
        first = LINE * PLACES // 8 + r * SAMPLES
        return self.words[first:first + n]


def quantile(values, q):
    at = q * (len(values) - 1)
    below = int(at)
    above = min(below + 1, len(values) - 1)
    return values[below] + (at - below) * (values[above] - values[below])


class Cell:
    def __init__(self, line):
        self.verb, self.op, dtype, size, self.form, mode, buffers, budget_ms, seed, self.memory, *products = line.split()
        self.products = int(products[0]) if products else 0
        self.dtype = {"f32": torch.float32, "f64": torch.float64, "bf16": torch.bfloat16}[dtype]
        self.asynchronous, self.cold = mode == "async", buffers == "cold"
        self.budget, self.seed = int(budget_ms) * 1_000_000, int(seed)
        self.size = self.dtype.itemsize
        elements = int(size) // self.size
        self.part = max(1, elements // ranks)
        self.count = 0 if self.op == "barrier" else self.part * ranks if self.op in PARTS else max(1, elements)
        self.n_in = self.part if self.op in ("all_gather", "gather") else self.count
        begins = self.begins(rank) if self.op == "all_to_all_v" else []
        self.splits = [b - a for a, b in zip(begins, begins[1:])]  # of what it gives, and of what it takes
        self.n_out = 0 if self.op not in PARTS + UNEVEN else self.part if self.op in ("reduce_scatter", "scatter") else self.count

    def begins(self, of_rank):
        """Where blocks begin in what a rank gives, and gets, in all_to_all_v: cell.c has the same."""
        edges = [self.count * i * (i + 1) // (ranks * (ranks + 1)) for i in range(ranks + 1)]
        sizes = [b - a for a, b in zip(edges, edges[1:])]
        return list(itertools.accumulate((sizes[(of_rank + i) % ranks] for i in range(ranks)), initial=0))

    def values(self, of_rank, index):
        """Contents of a rank's input: values.c has the same."""
        return ((index ^ (index >> 7)) + 5 * of_rank + self.seed % 16) & 15

    def sums(self, index):
        """The same of all ranks added up: a value depends on four bits that the index gives."""
        table = sum(self.values(q, torch.arange(16, dtype=torch.int32)) for q in range(ranks))
        return table[((index ^ (index >> 7)) & 15).long()]

    def expected(self, root, i):
        """What this rank must have at indices i of its result; None: whatever is there."""
        part = torch.div(i, self.part, rounding_mode="floor")
        if self.op in ("reduce", "gather") and rank != root:
            return None
        if self.op in ("all_reduce", "reduce"):
            return self.sums(i)
        if self.op == "reduce_scatter":
            return self.sums(rank * self.part + i)
        if self.op == "broadcast":
            return self.values(root, i)
        if self.op == "scatter":
            return self.values(root, rank * self.part + i)
        if self.op in ("all_gather", "gather"):
            return self.values(part, i - part * self.part)
        if self.op == "all_to_all_v":
            return self.of_blocks(i)
        if self.op == "all_to_all":
            return self.values(part, rank * self.part + i - part * self.part)
        return self.values(rank - rank % 2, i)

    def of_blocks(self, i):
        mine = torch.tensor(self.begins(rank), dtype=i.dtype)
        giver = torch.bucketize(i, mine[1:], right=True).to(i.dtype)  # blocks may be empty: whose end is beyond i
        there = torch.tensor([self.begins(q)[rank] for q in range(ranks)], dtype=i.dtype)
        return self.values(giver, there[giver] + i - mine[giver])

    def fill(self, tensor):
        for i in pieces(len(tensor)):
            tensor[i[0]:i[-1] + 1] = self.values(rank, i)

    def is_right(self, result, root):
        for i in pieces(len(result)):
            wanted = self.expected(root, i)
            if wanted is not None and not torch.equal(result[i[0]:i[-1] + 1], wanted.to(self.dtype)):
                return False
        return True


def pieces(n):
    """Indices 0 .. n-1 in runs that take little memory."""
    return (torch.arange(at, min(n, at + (1 << 18)), dtype=torch.int32) for at in range(0, n, 1 << 18))


def call(cell, given, taken, parts, root):
    """parts: of the tensor that has one for each rank, for gather and scatter."""
    op, later = cell.op, cell.asynchronous
    if op == "all_reduce":
        work = dist.all_reduce(given, async_op=later)
    elif op == "broadcast":
        work = dist.broadcast(given, root, async_op=later)
    elif op == "reduce":
        work = dist.reduce(given, root, async_op=later)
    elif op == "all_gather":
        work = dist.all_gather_into_tensor(taken, given, async_op=later)
    elif op == "reduce_scatter":
        work = dist.reduce_scatter_tensor(taken, given, async_op=later)
    elif op == "all_to_all":
        work = dist.all_to_all_single(taken, given, async_op=later)
    elif op == "all_to_all_v":
        work = dist.all_to_all_single(taken, given, cell.splits, cell.splits, async_op=later)
    elif op == "gather":
        work = dist.gather(given, parts if rank == root else None, root, async_op=later)
    elif op == "scatter":
        work = dist.scatter(taken, parts if rank == root else None, root, async_op=later)
    elif op == "barrier":
        work = dist.barrier(async_op=later)
    elif rank % 2 == 1:
        work = dist.irecv(given, rank - 1) if later else dist.recv(given, rank - 1)
    elif rank + 1 < ranks:
        work = dist.isend(given, rank + 1) if later else dist.send(given, rank + 1)
    else:
        return
    if later:
        work.wait()


class Run:
    def __init__(self, cell, board):
        self.cell, self.board = cell, board
        size = (cell.n_in + cell.n_out) * cell.size
        wanted = COLD_BYTES // ranks // size if size else 1
        self.buffers = min(max(wanted, 2), COLD_BUFFERS_MAX) if cell.cold else 1
        self.given = [torch.zeros(cell.n_in, dtype=cell.dtype) for _ in range(self.buffers)]
        self.taken = [torch.zeros(cell.n_out, dtype=cell.dtype) for _ in range(self.buffers)]
        whole = {"gather": self.taken, "scatter": self.given}.get(cell.op, [])
        self.parts = [list(tensor.split(cell.part)) for tensor in whole] or [None] * self.buffers

    def call(self, i):
        call(self.cell, self.given[i % self.buffers], self.taken[i % self.buffers], self.parts[i % self.buffers], i % ranks)

    def check(self, root):
        cell, given, taken = self.cell, self.given[0], self.taken[0]
        cell.fill(given)
        taken.fill_(-1)
        self.board.barrier()
        call(cell, given, taken, self.parts[0], root)
        wrong = not cell.is_right(taken if cell.n_out else given, root)
        if any(self.board.all_words(int(wrong))):
            raise ValueError(f"wrong result with root {root}" + ("" if wrong else ", on another rank"))

    def goes_on(self, end):
        return self.board.all_words(int(time.monotonic_ns() < end))[0] != 0

    def chain(self, calls):
        self.board.barrier()
        begun = time.monotonic_ns()
        for i in range(calls):
            self.call(i)
        return begun, time.monotonic_ns()

    def warm_up(self, budget):
        end, calls, more = time.monotonic_ns() + budget, 1, True
        while more:
            begun, ended = self.chain(calls)
            longest = max(self.board.all_words(ended - begun))
            each = max(1, longest // calls)
            more = self.goes_on(end)
            calls = 2 * calls if longest < budget // 8 and calls < CHAIN_CALLS_MAX else calls
        return each

    def columns(self, times):
        """Each of our times with those of all ranks."""
        mine = self.board.samples(rank, len(times))
        for i, t in enumerate(times):
            mine[i] = t
        self.board.barrier()
        found = list(zip(*(self.board.samples(r, len(times)) for r in range(ranks))))
        self.board.barrier()
        return found

    def synchronised(self, budget, each):
        block = 1 if each > 1_000_000 else BLOCK_CALLS
        least = 1 if each > budget else CALLS_MIN
        end, times, more = time.monotonic_ns() + budget, [], True
        while (more or len(times) < least) and len(times) + block <= SAMPLES:
            for _ in range(block):
                self.board.barrier()
                begun = time.monotonic_ns()
                self.call(len(times))
                times.append(time.monotonic_ns() - begun)
            more = self.goes_on(end)
        return sorted(max(column) for column in self.columns(times))

    def back_to_back(self, budget, each):
        calls = min(max(1, budget // CHAIN_BLOCKS // each), CHAIN_CALLS_MAX)
        end, blocks, more = time.monotonic_ns() + budget, [], True
        while more and len(blocks) < SAMPLES // 2:
            blocks.append(self.chain(calls))
            more = self.goes_on(end)
        starts, ends = zip(*blocks)
        times = sorted(max(last) - min(first) for first, last in zip(self.columns(starts), self.columns(ends)))
        return calls * len(times), quantile(times, 0.5) / calls


def measure(cell, board):
    run = Run(cell, board)
    if cell.count:
        for root in sorted({0, ranks - 1}):
            run.check(root)
    for tensor in run.given + run.taken:
        tensor.zero_()
    board.barrier()
    each = run.warm_up(cell.budget // 4)
    times = run.synchronised(cell.budget * 9 // 20, each)
    chained, one = run.back_to_back(cell.budget * 3 // 10, each)
    if rank != 0:
        return "ok"
    figures = [times[0]] + [quantile(times, q) for q in (0.1, 0.5, 0.9, 0.99)]
    return (f"ok {len(times)} " + " ".join(f"{f / 1e3:.4f}" for f in figures) +
            f" {chained} {one / 1e3:.5f} {run.buffers} {cell.count * cell.size} {cell.memory}")


def overlap(cell, board):
    """The twin of overlap.c, with the same product; ctypes lets go of the interpreter meanwhile."""
    run, computing_code = Run(cell, board), ctypes.CDLL(sys.argv[4])
    run.check(0)
    run.given[0].zero_()

    def once(operation, products):
        board.barrier()
        begun = time.monotonic_ns()
        work = dist.all_reduce(run.given[0], async_op=True) if operation else None
        computing = time.monotonic_ns()
        computing_code.bench_product(products)
        computed = time.monotonic_ns()
        if work is not None:
            work.wait()
        ended = time.monotonic_ns()
        return max(board.all_words(ended - begun)), max(board.all_words(computed - computing))

    products = cell.products if cell.verb == "overlap" and cell.products else choose_products(once)
    if cell.verb == "products":
        return f"ok {products}"
    rounds, more, end = [], True, time.monotonic_ns() + cell.budget
    while more or len(rounds) < 3:
        rounds.append((once(True, 0)[0], once(False, products)[0], *once(True, products)))
        more = run.goes_on(end)
    if rank != 0:
        return "ok"
    alone, product, both, beside = (quantile(sorted(times), 0.5) / 1e3 for times in zip(*rounds))
    cost = sorted((r[2] - r[1]) / 1e3 for r in rounds)[len(rounds) // 2]
    slowed = sorted(r[3] / r[1] for r in rounds)[len(rounds) // 2]
    return (f"ok {len(rounds)} {products} {alone:.3f} {product:.3f} {both:.3f} {beside:.3f} "
            f"{1 - cost / alone:.4f} {slowed:.4f}")


def choose_products(once):
    """How many take half as long again as the operation, by the medians of all that was measured."""
    products, alone, each = 1, [], []
    for _ in range(WARM_CALLS):  # one product says little: as many as were found are taken together, and counted again
        alone.append(once(True, 0)[0])
        each.append(max(1, once(False, products)[0] // products))
        operation, product = sorted(alone)[len(alone) // 2], sorted(each)[len(each) // 2]
        products = max(1, (3 * operation + product) // (2 * product))
    return products


def answer(line, board):
    """(what to say, whether to go on)"""
    cell = Cell(line)
    if cell.form != "plain" or cell.memory != "ordinary":
        return "cannot for limits and for tutti only", True
    if cell.op in UNEVEN and not cell.splits:
        return "cannot: parts of one size only", True
    try:
        return (overlap if cell.verb in ("overlap", "products") else measure)(cell, board), True
    except Exception as failure:
        words = " ".join(str(failure).split())[:300]
        refused = isinstance(failure, NotImplementedError) or "not support" in words
        return ("cannot " if refused else "failed ") + words, refused


def main():
    torch.set_num_threads(1)
    board = Board(sys.argv[2])
    dist.init_process_group("gloo", init_method=f"file://{sys.argv[3]}", rank=rank, world_size=ranks)
    control = socket.socket(socket.AF_UNIX)
    control.connect(sys.argv[1])
    lines = control.makefile("r")
    control.sendall(f"hello {rank} {ranks} PyTorch {torch.__version__}\n".encode())
    more = True
    while more and (line := lines.readline()):
        said, more = answer(line, board)
        control.sendall(f"{said}\n".encode())
    os._exit(0)  # the others may be gone: nothing to take leave of


if __name__ == "__main__":
    main()
