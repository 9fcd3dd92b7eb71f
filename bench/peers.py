#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""peers: tutti, Open MPI, MPICH, PyTorch's gloo and the machine's limits, in one run.

Why     Times of different runs, or of different minutes, do not compare on a machine that others share.
How     For each round and number of ranks every contender is started once, by its own launcher, and sleeps in a
        read (contender.c). Cell after cell each is asked to measure for a while, one after the other, in an order
        that rotates; what was measured together is written together. Before and after each cell two processes
        exchange lines, which tells whether the two cores are near each other or far: report.py compares only
        within a round, and within a label.
        With an end in sight (--minutes) the while is what is left, divided by the cells that are left, less what
        cells have been found to cost besides: rows say how many calls that gave.
True    A cell stands in the file completely or not at all: a run that ended early is taken up where it was by
        the same command. Nobody is left out in silence: a contender that is missing, refuses a cell, takes too
        long or returns a wrong result has a row that says so.
Fails   A contender that fails is ended and started anew for the next cell. One that answers nothing between three
        starts is given up for this number of ranks. An operation that takes too long is given up from that size
        and number of ranks on, also when the run is taken up again.

usage: peers.py --bin DIR --out FILE [options]; make bench-peers, make bench-peers-full
"""
import argparse
import os
import shutil
import subprocess
import sys
import time

import report
import rounds
import rows
from crew import Crew, Lost, torch_python
from rounds import SERVED_BY, say

OPS = ("all_reduce", "broadcast", "reduce", "all_gather", "reduce_scatter", "all_to_all", "send_recv")
CORE = (4, 8 << 10, 64 << 10, 512 << 10, 4 << 20, 32 << 20)
FULL = tuple(4 << (2 * i) for i in range(14))  # 4 B .. 256 MiB
BYPASS_FROM = 4 << 20  # limits also with stores past the caches
CONTENDERS = ("tutti", "registered", "openmpi", "mpich", "gloo", "limit")
LINE_MS = 40


# ---- who is there ----------------------------------------------------------------------------------------

def why_missing(name, settings):
    """None: it can be started."""
    name = SERVED_BY.get(name, name)
    if name == "gloo":
        if not settings.torch.exists():
            return f"{settings.torch} is not there; next: make torch-venv, or TUTTI_TORCH_PYTHON"
        words = "import torch.distributed as d; assert d.is_gloo_available()"
        asked = subprocess.run([settings.torch, "-c", words], capture_output=True, check=False)
        return None if asked.returncode == 0 else f"{settings.torch} has no torch.distributed with gloo"
    if name == "before":
        there = settings.before is not None and all((settings.before / n).exists() for n in ("tutti", "contender_tutti"))
        return None if there else f"{settings.before} has no tutti and contender_tutti; next: --before DIR"
    if not (settings.bin / f"contender_{name}").exists():
        return f"contender_{name} is not built; next: make bench-deps"
    if name in settings.mpirun and settings.mpirun[name] is None:
        return f"there is no mpirun.{name}; next: make bench-deps"
    return None


# ---- the grid on this host -------------------------------------------------------------------------------

def forms_of(name, op, size):
    if op == "barrier" and name in SERVED_BY:
        return []
    if name != "limit":
        return ["plain"]
    if op == "barrier":
        return []
    return ["pass", "staged", "bare", "bare-pass"] + (["pass-nt", "staged-nt"] if size >= BYPASS_FROM else [])


class Peers(rounds.Measuring):
    """A place is a number of ranks on this host."""

    def __init__(self, settings, part, old, out):
        super().__init__(settings, part, old, out)
        self.line_crew = Crew("limit", 2, settings) if settings.cores > 1 and settings.has_limit else None

    def place_of(self, row):
        return str(row["ranks"])

    def ranks_of(self, place):
        return place

    def make_crews(self, place, names):
        return {name: Crew(name, place, self.settings) for name in names}

    def forms_of(self, name, cell, place):
        return forms_of(name, cell[0], cell[2])

    def is_as_slow(self, place, slow):
        return place >= int(slow)

    def conditions(self):
        """A line exchange of two processes in ns; None where there are no two cores or no limits."""
        if self.line_crew is None:
            return None
        try:
            said = self.line_crew.ask(f"line f32 0 plain blocking warm {LINE_MS} 0 ordinary").split()
        except Lost as lost:
            say(f"no line exchange: {lost}")
            self.line_crew = None
            return None
        return float(said[8]) * 1000

    def label(self, place, before, after):
        return {"line_before_ns": before, "line_after_ns": after,
                "label": rows.label_of(before, after, self.settings.near_below)}

    def opening(self, place, number):
        """What it costs that every process gives its core away once: the floor of crowded tiny operations."""
        for op in ("yield", "empty") if "limit" in self.crews else ():
            row = self.row(place, number, (op, "f32", 0), "limit", "plain")
            row.update(self.ask("limit", place, (op, "f32", 0), "plain", self.plan.budget_ms()), label="-")
            self.write([row])

    def words_at_start(self):
        return f"{super().words_at_start()}, line {self.conditions() or 0:.0f} ns"

    def facts(self):
        return {"near": f"a line exchange below {self.settings.near_below} ns"}

    def end(self):
        super().end()
        if self.line_crew is not None:
            self.line_crew.end()


def arguments():
    p = argparse.ArgumentParser(description="tutti and its peers in one run")
    rounds.common_arguments(p)
    p.add_argument("--ops", type=lambda t: tuple(t.split(",")), default=OPS + ("barrier",))
    p.add_argument("--ranks", type=rounds.numbers, default=(2, 4, 8))
    p.add_argument("--contenders", type=lambda t: tuple(t.split(",")), default=CONTENDERS,
                   help=",".join(CONTENDERS) + ", before, before-registered")
    p.add_argument("--cell-limit", type=float, default=15,
                   help="s until a contender that does not answer is ended")
    p.add_argument("--near-below", type=float, default=200, help="ns of a line exchange")
    return p.parse_args()


def complete(s):
    """What follows from the arguments and the machine."""
    s.sizes = s.sizes or (CORE if s.grid == "core" else FULL)
    s.minutes = s.minutes if s.minutes is not None else 40 if s.grid == "core" else None
    s.deadline = time.monotonic() + s.minutes * 60 if s.minutes is not None else float("inf")
    if s.before is not None and not {"before", "before-registered"} & set(s.contenders):
        s.contenders += ("before",)
    s.places, s.place_words = s.ranks, lambda ranks: f"{ranks} ranks"
    s.cores = len(os.sched_getaffinity(0))
    s.commit = rounds.commit()
    s.mpirun = {name: shutil.which(f"mpirun.{name}") for name in ("openmpi", "mpich")}
    s.torch = torch_python()
    s.missing = {n: why for n in s.contenders if (why := why_missing(n, s)) is not None}
    s.has_limit = "limit" in s.contenders and "limit" not in s.missing
    return s


def main():
    s = complete(arguments())
    rounds.run(Peers, s)
    if s.brief:
        print(report.brief([rows.read(open(s.out))]), end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
