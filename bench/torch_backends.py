#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""tutti and gloo as backends of the same PyTorch program, in one interleaved run.

Method  Ranks are processes that have a group on each backend; rank r is pinned to core r, counted round, and computes with one
        thread. Rounds take turns: a few calls on one contender, as many on the next; who begins changes. Each rank takes its
        times, and the slowest rank's count. A row is a round: the time of one call, or step, on each contender. Ratios are
        formed inside a round, and what is printed is their median, and 10 and 90 per cent of rounds.
        `registered` is tutti on tensors in registered memory: tutti_torch.empty(), and a model whose buckets were made inside
        tutti_torch.registered_memory().
Steps   The tutorial's network, dropout and all, under DistributedDataParallel; SGD with momentum; 128 images of all ranks
        together. Each contender begins with the same parameters, and has the same batches and the same random numbers in step
        s: the loss of a step is the same on all. What it is off gloo's at most, on any rank in the first 50 steps, is in the
        row, and more than 1e-6 ends the run with an error. Results of sums are verified before they are timed.
Resume  Rounds that the file has are not measured again; a stage (a number of ranks, and what is measured on them) that has all
        its rounds is left out. --minutes ends a run after the round in which they are over. Steps begin anew in each run, so
        that losses are compared from the first step on.

usage: torch_backends.py --out FILE [--ranks 2,4] [--sizes 4,64K,4M,32M] [--rounds 20] [--minutes N]
       torch_backends.py --table FILE               what the rows say, as the page has it
                                                    run by a Python that has torch and tutti_torch
"""
import argparse
import collections
import os
import pathlib
import platform
import statistics
import subprocess
import sys
import time

os.environ.setdefault("LIMIT_S", "600")
HERE = pathlib.Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "python" / "tests"))

NAMES = ("tutti", "registered", "gloo")
COLUMNS = "part commit ranks what bytes round calls tutti_us registered_us gloo_us loss_off".split()
IMAGES = 128
LOSS_OFF_MAX = 1e-6
STEPS_COMPARED = 50
STEP = "ddp step"

# A stage: what is measured on some ranks, and which rounds of it are there.
Stage = collections.namedtuple("Stage", "ranks what bytes done")


def bytes_of(text):
    units = {"K": 1 << 10, "M": 1 << 20}
    return int(text[:-1]) * units[text[-1]] if text[-1] in units else int(text)


# ---- rows ----

def read_rows(path):
    if not path.exists():
        return []
    lines = [line.split("\t") for line in path.read_text().splitlines()]
    return [dict(zip(COLUMNS, line)) for line in lines if len(line) == len(COLUMNS) and line != COLUMNS]


def stages_of(args, rows):
    cells = [("all_reduce", bytes_of(text)) for text in args.sizes.split(",")] + [(STEP, 0)]
    for ranks in map(int, args.ranks.split(",")):
        for what, size in cells:
            done = {int(r["round"]) for r in rows if (r["ranks"], r["what"], r["bytes"]) == (str(ranks), what, str(size))}
            if len(done) < args.rounds:
                yield Stage(ranks, what, size, done)


def environment(part):
    import torch
    cpu = next((line.split(":", 1)[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")), "?")
    facts = {"part": part, "date": time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime()), "processor": cpu,
             "kernel": f"{platform.system()} {platform.release()} {platform.machine()}", "cores": os.cpu_count(),
             "load": f"{os.getloadavg()[0]:.2f}", "torch": torch.__version__,
             "threads": "1 each, rank r on core r % cores"}
    return "".join(f"{name}\t{value}\n" for name, value in facts.items())


def commit():
    return subprocess.run(["git", "rev-parse", "--short=7", "HEAD"], cwd=HERE, capture_output=True, text=True).stdout.strip() or "?"


# ---- on a rank ----

def slowest(dist, torch, seconds):
    t = torch.tensor([seconds], dtype=torch.float64)
    dist.all_reduce(t, dist.ReduceOp.MAX)
    return t.item()


def one_round(dist, torch, calls, number, each):
    """{name: seconds of one call}; who begins changes."""
    took = {}
    for i in range(len(NAMES)):
        name = NAMES[(number + i) % len(NAMES)]
        dist.barrier()
        began = time.perf_counter()
        for _ in range(each):
            calls[name]()
        took[name] = slowest(dist, torch, (time.perf_counter() - began) / each)
    return took


class Sums:
    """An all_reduce of some bytes, of numbers that stay what they are."""

    def __init__(self, torch, dist, tutti_torch, groups, size):
        n = max(1, size // 4)
        tensors = {"tutti": torch.zeros(n), "registered": tutti_torch.empty(n), "gloo": torch.zeros(n)}
        for name, t in tensors.items():
            t.copy_(torch.arange(n) % 7 + dist.get_rank())
            dist.all_reduce(t, group=groups[name])
            want = (torch.arange(n) % 7) * dist.get_world_size() + sum(range(dist.get_world_size()))
            assert torch.equal(t, want.float()), f"all_reduce of {size} bytes on {name} gave a wrong sum"
            t.zero_()
        self.calls = {name: lambda name=name: dist.all_reduce(tensors[name], group=groups[name]) for name in NAMES}
        self.each = max(2, min(200, (16 << 20) // max(1, size)))

    def loss_off(self):
        return "-"


class Steps:
    """A step of training on each contender, and its losses so far."""

    def __init__(self, torch, dist, tutti_torch, groups, _size):
        self.torch, self.dist, self.each = torch, dist, 5
        self.losses = {name: [] for name in NAMES}
        self.calls = {name: self._make(name, groups[name], tutti_torch) for name in NAMES}

    def _make(self, name, group, tutti_torch):
        torch, losses = self.torch, self.losses[name]
        rank, images = self.dist.get_rank(), IMAGES // self.dist.get_world_size()

        def step():
            torch.manual_seed(1000003 * rank + len(losses))
            x, y = torch.randn(images, 1, 28, 28), torch.randint(0, 10, (images,))
            optimizer.zero_grad()
            loss = torch.nn.functional.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())

        torch.manual_seed(1)
        with tutti_torch.registered_memory(1 if name == "registered" else 0):
            model = torch.nn.parallel.DistributedDataParallel(network(torch), process_group=group)
            optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.5)
            for _ in range(2):  # after the first step it makes its buckets anew
                step()
        return step

    def loss_off(self):
        torch = self.torch
        mine = {name: torch.tensor(losses[:STEPS_COMPARED], dtype=torch.float64) for name, losses in self.losses.items()}
        off = max((mine[name] - mine["gloo"]).abs().max().item() for name in NAMES)
        off = slowest(self.dist, torch, off)
        assert off <= LOSS_OFF_MAX, f"after {len(mine['gloo'])} steps a loss is {off:.2g} off gloo's"
        return f"{off:.2g}"


def network(torch):
    nn = torch.nn
    return nn.Sequential(nn.Conv2d(1, 10, 5), nn.MaxPool2d(2), nn.ReLU(), nn.Conv2d(10, 20, 5), nn.Dropout2d(), nn.MaxPool2d(2),
                         nn.ReLU(), nn.Flatten(), nn.Linear(320, 50), nn.ReLU(), nn.Dropout(), nn.Linear(50, 10))


def measure(stage, args, part, until):
    """Measure what a stage lacks, rank 0 writing rows, until the time is over."""
    import torch
    import torch.distributed as dist
    import tutti_torch
    from ranks import run

    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    made_of = commit()

    def body(rank, size):
        os.sched_setaffinity(0, {sorted(os.sched_getaffinity(0))[rank % len(os.sched_getaffinity(0))]})
        groups = {"tutti": dist.group.WORLD, "registered": dist.group.WORLD, "gloo": dist.new_group(backend="gloo")}
        side = (Steps if stage.what == STEP else Sums)(torch, dist, tutti_torch, groups, stage.bytes)
        one_round(dist, torch, side.calls, 0, side.each)  # for warming up
        for number in sorted(set(range(args.rounds)) - stage.done):
            took = one_round(dist, torch, side.calls, number, side.each)
            off = side.loss_off()
            if rank == 0:
                row = [part, made_of, size, stage.what, stage.bytes, number, side.each,
                       *(f"{1e6 * took[name]:.2f}" for name in NAMES), off]
                with open(args.out, "a", encoding="ascii") as out:
                    out.write("\t".join(map(str, row)) + "\n")
            if slowest(dist, torch, float(time.monotonic() > until)):
                return

    run(body, stage.ranks)


# ---- the table ----

def spread(values):
    """Median, and 10 and 90 per cent between which rounds lie."""
    tenths = statistics.quantiles(values, n=10, method="inclusive") if len(values) > 1 else values * 9
    return f"{statistics.median(values):.2f} ({tenths[0]:.2f} to {tenths[-1]:.2f})"


def table(path):
    cells = collections.defaultdict(list)
    for row in read_rows(path):
        cells[row["what"], int(row["bytes"]), int(row["ranks"])].append(row)
    print("| | ranks | rounds | tutti us | registered us | gloo us | tutti / gloo | registered / gloo |\n" + "|---" * 8 + "|")
    for (what, size, ranks), rows in cells.items():
        us = {name: [float(row[f"{name}_us"]) for row in rows] for name in NAMES}
        named = f"{what}, {size:,} B" if size else what
        print(f"| {named} | {ranks} | {len(rows)} | " + " | ".join(f"{statistics.median(us[name]):,.1f}" for name in NAMES) +
              "".join(f" | {spread([a / b for a, b in zip(us[name], us['gloo'])])}" for name in ("tutti", "registered")) + " |")
    offs = [float(row["loss_off"]) for row in read_rows(path) if row["loss_off"] != "-"]
    if offs:
        print(f"\nlosses: {max(offs):.2g} off gloo's at most, of {len(offs)} rounds")


def arguments():
    args = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    args.add_argument("--out", type=pathlib.Path, help="rows; what is there already is not measured again")
    args.add_argument("--table", type=pathlib.Path, metavar="FILE")
    args.add_argument("--ranks", default="2,4")
    args.add_argument("--sizes", default="4,64K,4M,32M")
    args.add_argument("--rounds", type=int, default=20)
    args.add_argument("--minutes", type=float, default=1e9)
    args = args.parse_args()
    if (args.out is None) == (args.table is None):
        sys.exit("torch_backends.py: --out FILE to measure, or --table FILE")
    return args


def main():
    args = arguments()
    if args.table:
        table(args.table)
        return
    until = time.monotonic() + 60 * args.minutes
    rows = read_rows(args.out)
    part = 1 + max((int(row["part"]) for row in rows), default=0)
    if not rows:
        args.out.write_text("\t".join(COLUMNS) + "\n")
    with open(f"{args.out}.env", "a", encoding="ascii") as env:
        env.write(environment(part))
    for stage in stages_of(args, rows):
        if time.monotonic() > until:
            print("the time is over: the same command goes on")
            return
        print(f"{stage.what}, {stage.bytes} bytes, {stage.ranks} ranks: {args.rounds - len(stage.done)} rounds", flush=True)
        measure(stage, args, part, until)
    table(args.out)


if __name__ == "__main__":
    main()
