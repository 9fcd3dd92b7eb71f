#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""overlap: an all_reduce behind matrix products, by everybody of peers.py, one after the other in each round; with --hosts between
hosts, by everybody of net.py.

How     Each contender measures the operation alone, products alone, and both (overlap.h). All of a round compute the same: each is
        asked how many products take half as long again as its operation, and the largest number is everybody's, so that nobody's
        operation lasts longer than what it could be hidden behind. gloo, which is called from Python, computes the same product,
        from product.c as a shared object. What the machine allows is the limits' lines: the loads and stores alone, in
        a thread of each rank, beside the same products; staged, and for registered memory in one pass. With a rank on
        every core nothing can hide copying: what can be hidden is waiting. So beside the share hidden stands what the
        operation cost besides the products, both - products, as a ratio to the limit's of the same round. And how much longer
        the products took, beside how much longer they took beside the limit.
        Between hosts most of an operation is waiting for the link, which can be hidden. There the limit is a thread that moves the same
        bytes on bare sockets.
        With --core stands beside it for how long the operation by itself keeps a core from being idle, the kernel's work for it included
        (core_us): what a product on the same core could lose to it. Products are then one, few turns are taken from many, and
        what the products took is taken off; it is right as far as nothing else runs on the cores.

usage: overlap.py --bin DIR --out FILE [--contenders LIST --ranks 2 --bytes 25M --rounds 3 --budget-ms 1000]
       overlap.py --bin DIR --out FILE --hosts 2x1 --gbit 1 [...]
"""
import argparse
import itertools
import os
import pathlib
import signal
import sys
import tempfile
import time

import links
import net
import peers
import rounds
import rows
from crew import Crew, Lost

LIMITS = {"limit": "staged", "limit-pass": "pass"}  # and their forms; between hosts there is the one
BETWEEN = "bare"
COLUMNS = ("commit cores ranks bytes round contender status label line_before_ns line_after_ns load rounds products "
           "alone_us product_us both_us beside_us hidden slowed core_us").split()
FIGURES = COLUMNS[-9:-1]
CORE_TURNS_MS = 1  # as few turns as there can be


def arguments():
    p = argparse.ArgumentParser(description="an all_reduce behind matrix products")
    p.add_argument("--bin", type=pathlib.Path, required=True, help="where contender_* and tutti were built")
    p.add_argument("--out", type=pathlib.Path, required=True, help="rows are added")
    p.add_argument("--before", type=pathlib.Path, help="as in peers.py")
    p.add_argument("--contenders", type=lambda t: tuple(t.split(",")))
    p.add_argument("--ranks", type=int, default=2, help="on this host")
    p.add_argument("--hosts", type=net.shapes, help="hosts x ranks on each, as 2x1, instead")
    p.add_argument("--gbit", type=float, default=1, help="of each link")
    p.add_argument("--bytes", type=rounds.numbers, default=(25 << 20,))
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--budget-ms", type=int, default=1000, help="for a contender and round")
    p.add_argument("--core", action="store_true", help="also what an operation takes of a core: as long again")
    p.add_argument("--cell-limit", type=float, default=60)
    p.add_argument("--near-below", type=float, default=200)
    p.add_argument("--dtypes", default=("f32",), help=argparse.SUPPRESS)
    return complete(p.parse_args())


def complete(s):
    s.grid, s.ops, s.sizes, s.minutes, s.seed = "core", ("all_reduce",), s.bytes, None, 1
    s.delay, s.jitter, s.loss = (0.0,), 0.0, (0.0,)
    s.mode, s.buffers = "async", "warm"
    wanted = s.contenders or (net.CONTENDERS if s.hosts else peers.CONTENDERS + ("limit-pass",))
    s.contenders = tuple("limit" if n in LIMITS else n for n in wanted)
    if s.hosts:
        s.gbit = (s.gbit,)
        s = net.complete(s)
        s.link, = s.places
        s.ranks, s.has_limit = s.link.ranks, False
    else:
        ranks, s.ranks, s.link = s.ranks, (s.ranks,), None
        s = peers.complete(s)
        s.ranks = ranks
    s.contenders = tuple(n for n in wanted if program_of(n) not in s.missing)
    return s


def program_of(name):
    return "limit" if name in LIMITS else rounds.SERVED_BY.get(name, name)


def cell_of(name, size, s, budget_ms=None):
    form = "plain" if name not in LIMITS else LIMITS[name] if s.link is None else BETWEEN
    memory = "registered" if name in rounds.SERVED_BY else "ordinary"
    mode = "blocking" if name in LIMITS and s.link is None else "async"
    return f"all_reduce f32 {size} {form} {mode} warm {budget_ms or s.budget_ms} {s.seed} {memory}"


def ask(crew, words, verb):
    """(ok or why not, the words behind it)"""
    try:
        said = crew.ask(words, verb).split()
    except Lost as lost:
        return f"failed: {lost}", []
    return ("ok", said[1:]) if said[0] == "ok" else (" ".join(said), [])


def choose(s, crews, size):
    """(how many products all compute, {contender: why it will not})"""
    wanted, why_not = 0, {}
    for name in s.contenders:
        status, said = ask(crews[program_of(name)], cell_of(name, size, s), "products")
        if status == "ok":
            wanted = max(wanted, int(said[0]))
        else:
            why_not[name] = status
    return wanted, why_not


def behind(crew, cell, products):
    status, said = ask(crew, f"{cell} {products}", "overlap")
    if status != "ok":
        return {"status": status}
    figures = {n: float(v) for n, v in zip(FIGURES, said)}
    if figures["products"] != products:
        return {"status": f"failed: it computed {figures['products']:g} products, {products} were asked for"}
    return {"status": "ok", **figures}


def line_ns(crew):
    if crew is None:
        return None
    try:
        return float(crew.ask(f"line f32 0 plain blocking warm {peers.LINE_MS} 0 ordinary").split()[8]) * 1000
    except Lost:
        return None


def idle_us():
    """Of all cores together, since the machine was started."""
    words = pathlib.Path("/proc/stat").read_text().split("\n", 1)[0].split()
    return (int(words[4]) + int(words[5])) * 1e6 / os.sysconf("SC_CLK_TCK")


def turns(crew, cell):
    """(turns of an operation, a product, and both; us that cores were not idle; us of both products of a turn), or None"""
    idle, began = idle_us(), time.monotonic()
    found = behind(crew, cell, 1)
    busy = os.cpu_count() * (time.monotonic() - began) * 1e6 - (idle_us() - idle)
    return (found["rounds"], busy, found["product_us"] + found["beside_us"]) if found["status"] == "ok" else None


def core_us(s, crew, name, size):
    """What an operation takes of a core, in the mean of those that ranks are on; None: it was not found."""
    few, many = (turns(crew, cell_of(name, size, s, ms)) for ms in (CORE_TURNS_MS, None))
    if few is None or many is None or many[0] <= few[0]:
        return None
    ranks_on_a_core = s.ranks / min(s.ranks, s.cores)
    a_turn = (many[1] - few[1]) / (many[0] - few[0]) / min(s.ranks, s.cores)
    return (a_turn - ranks_on_a_core * many[2]) / 2


def a_round(s, crews, number, size):
    first = number % len(s.contenders)
    products, why_not = choose(s, crews, size)
    before, load = line_ns(crews.get("line")), os.getloadavg()[0]
    found = []
    for name in s.contenders[first:] + s.contenders[:first]:
        row = {"commit": s.commit, "cores": s.cores, "ranks": s.ranks, "bytes": size, "round": number, "contender": name}
        row.update({"status": why_not[name]} if name in why_not else
                   behind(crews[program_of(name)], cell_of(name, size, s), products))
        if s.core and row["status"] == "ok":
            row["core_us"] = core_us(s, crews[program_of(name)], name, size)
        found.append(row)
    after = line_ns(crews.get("line"))
    for row in found:
        row.update(line_before_ns=before, line_after_ns=after, load=load,
                   label=str(s.link) if s.link else rows.label_of(before, after, s.near_below))
    return found


def text_of(row):
    def text(value):
        return "-" if value is None else f"{value:.6g}" if isinstance(value, float) else str(value).replace("\t", " ")
    return "\t".join(text(row.get(name)) for name in COLUMNS) + "\n"


def ratios(some, name, figure):
    """Of a contender to its limit, formed inside a round; the median of them, as text."""
    limit = "limit-pass" if name in (*rounds.SERVED_BY, "limit-pass") else "limit"
    limits = {r["round"]: figure(r) for r in some if r["contender"] == limit}
    found = [figure(r) / limits[r["round"]] for r in some if r["contender"] == name and limits.get(r["round"], 0) > 0]
    return f"{rows.median(found):.2f}" if found else "-"


def cost(row):
    """What both took more than the products of the same turn: the median of turns, as the share hidden is."""
    return (1 - row["hidden"]) * row["alone_us"]


def slower(row):
    return row["slowed"] - 1


def core_text(mine):
    known = [r["core_us"] for r in mine if r.get("core_us") is not None]
    return f"{rows.median(known):.0f}" if known else "-"


def summary(found, label, size):
    """Medians over the rounds of a label."""
    some = [r for r in found if r["status"] == "ok" and r["label"] == label and r["bytes"] == size]
    lines = [f"all_reduce of {size} bytes behind products, {label}; us",
             f"{'':12}{'alone':>10}{'products':>10}{'both':>10}{'hidden':>8}{'slowed':>8}{'cost':>10}{'/limit':>8}"
             f"{'slower/limit':>13}{'core':>10}{'rounds':>7}"]
    for name in dict.fromkeys(r["contender"] for r in some):
        mine = [r for r in some if r["contender"] == name]
        figures = {n: rows.median([r[n] for r in mine]) for n in FIGURES}
        lines.append(f"{name:12}{figures['alone_us']:>10.0f}{figures['product_us']:>10.0f}{figures['both_us']:>10.0f}"
                     f"{figures['hidden']:>8.0%}{figures['slowed']:>8.2f}{rows.median([cost(r) for r in mine]):>10.0f}"
                     f"{ratios(some, name, cost):>8}{ratios(some, name, slower):>13}{core_text(mine):>10}{len(mine):>7}")
    return "\n".join(lines)


def make_crews(s, network):
    names = dict.fromkeys(program_of(c) for c in s.contenders)
    if network is not None:
        return {n: net.NetCrew(n, network, s) for n in names}
    crews = {n: Crew(n, s.ranks, s) for n in names}
    if s.has_limit and s.cores > 1:
        crews["line"] = Crew("limit", 2, s)
    return crews


def environment(s, crews, network):
    versions = {name: crew.version for name, crew in crews.items()}
    return rounds.environment(s, versions, network.facts() if network is not None else ())


def measure(s, out):
    """All rows; those of a round are in the file when it is over, and what they were measured with at the end."""
    network = links.Network(s.link) if s.link else None
    crews, found = make_crews(s, network), []
    try:
        for number, size in itertools.product(range(s.rounds), s.sizes):
            found += (new := a_round(s, crews, number, size))
            out.write("".join(text_of(row) for row in new))
            out.flush()
    finally:
        with open(f"{s.out}.env", "a", encoding="utf-8") as env:
            env.write(environment(s, crews, network) + "\n")
        for crew in crews.values():
            crew.end()
        if network is not None:
            network.close()
    return found


def main():
    s = arguments()
    for name, why in s.missing.items():
        print(f"missing: {name}: {why}", flush=True)
    fresh = not s.out.exists()
    s.out.parent.mkdir(parents=True, exist_ok=True)
    fast = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    with tempfile.TemporaryDirectory(prefix="tutti-bench-", dir=fast) as scratch:
        s.scratch, s.stems = pathlib.Path(scratch), itertools.count()
        with open(s.out, "a", encoding="utf-8") as out:
            out.write("\t".join(COLUMNS) + "\n" if fresh else "")
            found = measure(s, out)
    for row in found:
        if row["status"] != "ok":
            print(f"{row['contender']}: {row['status']}")
    for label, size in sorted({(r["label"], r["bytes"]) for r in found}):
        print(summary(found, label, size))
    return 0


if __name__ == "__main__":
    sys.exit(main())
