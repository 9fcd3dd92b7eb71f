#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""ddp_step: the time of a training step, tutti's DDP beside PyTorch's on gloo, one and two processes of one core each.

How     All contenders are there all the time, as in peers.py, and are asked in turn. For each network they first train
        a few steps from the same parameters on the same batches: their losses must agree. Then, round after round in an
        order that rotates, each trains a block of steps; with two processes or more also a block without communication,
        and the reductions of a step alone. Ratios are formed inside a round, and the median over rounds is told.
        Of communication there is hidden   1 - (step - step without) / reductions alone, and of the reductions of a step
        there is covered by its backward   1 - what of them lies behind the last rank's backward / reductions alone.
True    OPENBLAS_CORETYPE is set, as OpenBLAS chooses kernels by the processor's model, which a hypervisor may hide or
        which may be younger than OpenBLAS: it then computes with SSE3. PyTorch's libraries go by features.
        Threads: one each, one core each.

usage: ddp_step.py --bin DIR --out FILE [--before DIR --cells mnist:128,mnist:64,gpt:4 --ranks 1,2 --rounds 10]
"""
import argparse
import itertools
import os
import pathlib
import signal
import sys
import tempfile

import rounds
import rows
from crew import HERE, Crew, torch_python

COLUMNS = "commit cores net batch ranks round contender status load steps step_us local_us comm_us hidden tail_us covered".split()
CHECKED, CLOSE = 6, 1e-4  # losses, and how near in relation
OURS, THEIRS = "tutti", "torch"


class Trainers(Crew):
    def command(self, place):
        s = self.settings
        if self.name == THEIRS:
            init = pathlib.Path(place[1] + ".init")
            init.unlink(missing_ok=True)
            return [str(s.torch), "-B", str(HERE / "contender_ddp.py"), *place, str(init)], False
        folder = s.bin if self.name == OURS else s.before
        return [str(folder / "tutti"), "run", "--standalone", f"--nproc-per-node={self.ranks}",
                str(folder / "contender_ddp"), *place], True

    def numbers(self, verb, net, batch, steps):
        return [float(word) for word in self.ask(f"{net} {batch} {steps}", verb).split()[1:]]


def cells(text):
    return tuple((net, int(batch)) for net, batch in (word.split(":") for word in text.split(",")))


def blas_core():
    """What OpenBLAS is told to be: see above. None: what it finds is right."""
    flags = rounds.first_of("/proc/cpuinfo", "flags").split()
    return "SKYLAKEX" if "avx512f" in flags else "HASWELL" if "avx2" in flags else None


def arguments():
    p = argparse.ArgumentParser(description="the time of a training step")
    p.add_argument("--bin", type=pathlib.Path, required=True, help="where contender_ddp and tutti were built")
    p.add_argument("--before", type=pathlib.Path, help="where an older build's are: the contender before")
    p.add_argument("--out", type=pathlib.Path, required=True, help="rows are added; rounds count on")
    p.add_argument("--cells", type=cells, default=cells("mnist:128,mnist:64,gpt:4"), help="network:samples of a rank")
    p.add_argument("--ranks", type=rounds.numbers, default=(1, 2))
    p.add_argument("--rounds", type=int, default=10)
    p.add_argument("--block-ms", type=float, default=150, help="of steps, for a contender and round")
    p.add_argument("--cell-limit", type=float, default=60)
    p.add_argument("--without-torch", action="store_true")
    s = p.parse_args()
    s.torch, s.cores, s.commit = torch_python(), len(os.sched_getaffinity(0)), rounds.commit()
    s.contenders = [OURS] + (["before"] if s.before is not None else []) + ([] if s.without_torch else [THEIRS])
    if THEIRS in s.contenders and not s.torch.exists():
        sys.exit(f"ddp_step: {s.torch} is not there\n  next: make torch-venv, or TUTTI_TORCH_PYTHON, or --without-torch")
    return s


def agree(found, net, batch, ranks):
    """All contenders' first losses against the first one's."""
    first_name, first = next(iter(found.items()))
    for name, losses in found.items():
        worst = max(abs(a - b) / abs(b) for a, b in zip(losses, first))
        if not worst <= CLOSE:
            sys.exit(f"ddp_step: {net}, batch {batch}, {ranks} ranks: the losses of {name} are {worst:.1e} away from "
                     f"{first_name}'s: {losses}, {first}")
    print(f"{net}, batch {batch}, {ranks} ranks: losses agree, {' '.join(f'{x:.5f}' for x in first)}", flush=True)


def block_of(crew, net, batch, s):
    """So many steps as fill the block; they were warmed up by the check."""
    return max(2, round(s.block_ms * 1e6 / crew.numbers("step", net, batch, 2)[0]))


def a_round(crews, blocks, cell, number, s):
    net, batch = cell
    names = list(crews)
    first = number % len(names)
    for name, ranks in names[first:] + names[:first]:
        crew, steps, load = crews[name, ranks], blocks[name, ranks], os.getloadavg()[0]
        row = {"commit": s.commit, "cores": s.cores, "net": net, "batch": batch, "ranks": ranks, "round": number,
               "contender": name, "status": "ok", "load": load, "steps": steps}
        row["step_us"] = crew.numbers("step", net, batch, steps)[0] / 1e3
        if ranks > 1:
            row["local_us"] = crew.numbers("local", net, batch, steps)[0] / 1e3
            row["comm_us"] = crew.numbers("comm", net, batch, steps)[0] / 1e3
            row["hidden"] = 1 - (row["step_us"] - row["local_us"]) / row["comm_us"]
            row["tail_us"] = crew.numbers("tail", net, batch, steps)[0] / 1e3
            row["covered"] = 1 - row["tail_us"] / row["comm_us"]
        yield row


def text_of(row):
    def text(value):
        return "-" if value is None else f"{value:.6g}" if isinstance(value, float) else str(value).replace("\t", " ")
    return "\t".join(text(row.get(name)) for name in COLUMNS) + "\n"


def rows_of(path):
    """What was measured before into the same file."""
    lines = path.read_text().splitlines() if path.exists() else []
    old = [dict(zip(COLUMNS, line.split("\t"))) for line in lines if not line.startswith("commit\t")]
    for row in old:
        for name in ("batch", "ranks", "round"):
            row[name] = int(row[name])
        for name in COLUMNS[COLUMNS.index("step_us"):]:
            row[name] = float(row[name]) if row.get(name, "-") != "-" else None
    return old


def measure(s, out, old):
    crews = {(name, ranks): Trainers(name, ranks, s) for ranks in s.ranks for name in s.contenders}
    found = []
    try:
        for cell in s.cells:
            for ranks in s.ranks:
                agree({name: crews[name, ranks].numbers("check", *cell, CHECKED) for name in s.contenders}, *cell, ranks)
            blocks = {key: block_of(crew, *cell, s) for key, crew in crews.items()}
            first = 1 + max((r["round"] for r in old if (r["net"], r["batch"]) == cell), default=-1)
            for number in range(first, first + s.rounds):
                for row in a_round(crews, blocks, cell, number, s):
                    found.append(row)
                    out.write(text_of(row))
                out.flush()
        versions = {f"{name}": crew.version for (name, _), crew in crews.items()}
    finally:
        for crew in crews.values():
            crew.end()
    return found, versions


def ratios(some, name, other, figure="step_us"):
    theirs = {r["round"]: r[figure] for r in some if r["contender"] == other}
    return [r[figure] / theirs[r["round"]] for r in some if r["contender"] == name and r["round"] in theirs]


def summary(found):
    lines = [f"{'':18}{'ranks':>6}{'contender':>10}{'step us':>10}{'without':>10}{'comm':>9}{'tail':>9}{'covered':>9}"
             f"{'/torch':>8}{'10-90 %':>12}{'/before':>9}"]
    for net, batch, ranks in dict.fromkeys((r["net"], r["batch"], r["ranks"]) for r in found):
        some = [r for r in found if (r["net"], r["batch"], r["ranks"]) == (net, batch, ranks)]
        for name in dict.fromkeys(r["contender"] for r in some):
            mine = [r for r in some if r["contender"] == name]

            def of(figure, form):
                values = [r[figure] for r in mine if r.get(figure) is not None]
                return format(rows.median(values), form) if values else "-"
            against, before = ratios(some, name, THEIRS), ratios(some, name, "before")
            spread = f"{rows.quantile(against, .1):.2f}-{rows.quantile(against, .9):.2f}" if against else "-"
            lines.append(f"{net + ', batch ' + str(batch):18}{ranks:>6}{name:>10}{of('step_us', '.0f'):>10}"
                         f"{of('local_us', '.0f'):>10}{of('comm_us', '.0f'):>9}{of('tail_us', '.0f'):>9}"
                         f"{of('covered', '.0%'):>9}"
                         f"{rows.median(against) if against else float('nan'):>8.2f}{spread:>12}"
                         f"{rows.median(before) if before else float('nan'):>9.2f}")
    return "\n".join(lines)


def environment(s, versions):
    facts = {"processor": rounds.first_of("/proc/cpuinfo", "model name"), "flags": rounds.first_of("/proc/cpuinfo", "flags"),
             "kernel": os.uname().release, "cores": s.cores, "commit": s.commit, "command": " ".join(sys.argv),
             "commit before": rounds.commit(s.before) if s.before is not None else "-",
             "OPENBLAS_CORETYPE": os.environ.get("OPENBLAS_CORETYPE", "-"), "threads": "1 each, rank r on core r % cores",
             "losses": f"{CHECKED} agree to {CLOSE:g}", **{f"contender {n}": v or "?" for n, v in versions.items()}}
    return "".join(f"{name}\t{value}\n" for name, value in facts.items())


def main():
    s = arguments()
    core = blas_core()
    if core is not None:
        os.environ.setdefault("OPENBLAS_CORETYPE", core)
    old = rows_of(s.out)
    s.out.parent.mkdir(parents=True, exist_ok=True)
    fast = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    with tempfile.TemporaryDirectory(prefix="tutti-bench-", dir=fast) as scratch, open(s.out, "a") as out:
        s.scratch, s.stems = pathlib.Path(scratch), itertools.count()
        out.write("\t".join(COLUMNS) + "\n" if not old else "")
        found, versions = measure(s, out, old)
    with open(f"{s.out}.env", "a") as env:
        env.write(environment(s, versions) + "\n")
    print(summary(old + found))
    return 0


if __name__ == "__main__":
    sys.exit(main())
