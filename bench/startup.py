#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""startup: how long many processes of this host take from the command to the end of their first all_reduce.

How     `tutti run --standalone` starts startup_rank, which says when main() began, when it had joined, when the sum was
        there, and what it holds open. gloo gets a head start: one Python imports torch, then forks the ranks, so that
        neither exec nor import is in its times (startup_gloo.py). Rounds are interleaved, the order turns around from one
        to the next; a contender that takes longer than --limit for a number of ranks is not asked for more of them.
        What the store is asked is counted by its server, in a run apart, because that writes a log.

A row is one contender with one number of ranks in one round. Times are ms from the start of the launcher, or of the first
fork, to the last rank's; memory in KiB, the most of any rank.

usage: startup.py --bin DIR --out FILE [--ranks 2,8,32,64,128,256 --rounds 3 --torch PYTHON --before DIR]
       startup.py --table FILE ...
"""
import argparse
import os
import pathlib
import re
import resource
import signal
import statistics
import subprocess
import sys
import time

import peers

HERE = pathlib.Path(__file__).resolve().parent
COLUMNS = ("commit cores round contender ranks status main_ms joined_ms done_ms end_ms cpu_s descriptors connections "
           "own_kib shared_kib tables_kib requests came_bytes went_bytes").split()
SERVED = re.compile(r"store: served (\d+) requests of \d+ connections: (\d+) bytes came, (\d+) went")
FIGURES = "descriptors connections own_kib shared_kib tables_kib".split()


def numbers(text):
    return tuple(int(n) for n in text.split(","))


def arguments():
    p = argparse.ArgumentParser(description="from the command to the first all_reduce")
    p.add_argument("--bin", type=pathlib.Path, help="where tutti and startup_rank were built")
    p.add_argument("--before", type=pathlib.Path, help="the same of an older build, measured as `before`")
    p.add_argument("--torch", type=pathlib.Path, default=peers.torch_python(), help="a Python with PyTorch, for gloo")
    p.add_argument("--out", type=pathlib.Path, help="rows are added")
    p.add_argument("--ranks", type=numbers, default=(2, 8, 32, 64, 128, 256))
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--limit", type=float, default=60, help="seconds for one start")
    p.add_argument("--table", type=pathlib.Path, nargs="+", help="print what rows say, as docs/performance.md has it")
    return p.parse_args()


def commit():
    said = subprocess.run(["git", "-C", HERE, "describe", "--always", "--dirty"], capture_output=True, text=True)
    return said.stdout.strip() or "unknown"


def cpu_seconds():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def run(command, limit, **settings):
    """What it printed, or why it did not; nothing of it is left."""
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                               text=True, start_new_session=True, env={**os.environ, **settings})
    try:
        out, err = process.communicate(timeout=limit)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGTERM)  # ranks of ours have groups of their own, which the launcher ends
        try:
            process.communicate(timeout=30)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
        return None, f"more than {limit:g} s"
    if process.returncode != 0:
        return None, f"exit code {process.returncode}: {err.strip()[-200:]}"
    return out, err


def launch(directory, ranks):
    return [str(directory / "tutti"), "run", "--standalone", f"--nproc-per-node={ranks}",
            str(directory / "startup_rank")]


def measured(command, ranks, limit, since):
    """A row's figures from lines 'startup MAIN JOINED DONE ...' in ns of the monotonic clock."""
    cpu, began = cpu_seconds(), time.monotonic_ns()
    out, why = run(command, limit)
    ended = time.monotonic_ns()
    if out is None:
        return {"status": why}
    lines = [[int(n) for n in line.split("startup ", 1)[1].split()] for line in out.splitlines() if "startup " in line]
    if len(lines) != ranks:
        return {"status": f"{len(lines)} of {ranks} ranks answered"}
    began = since(out, began)
    most = [max(column) for column in zip(*lines)]
    return {"status": "ok", "main_ms": (most[0] - began) / 1e6, "joined_ms": (most[1] - began) / 1e6,
            "done_ms": (most[2] - began) / 1e6, "end_ms": (ended - began) / 1e6, "cpu_s": cpu_seconds() - cpu,
            **dict(zip(FIGURES, most[3:]))}


def ours(directory, ranks, limit):
    return measured(launch(directory, ranks), ranks, limit, lambda out, began: began)


def gloo(python, ranks, limit):
    def since(out, began):
        return int(re.search(r"^forking (\d+)$", out, re.MULTILINE).group(1))
    return measured([str(python), "-B", str(HERE / "startup_gloo.py"), str(ranks)], ranks, limit + 20, since)


def counted(directory, ranks, limit):
    """What the store was asked."""
    out, err = run(launch(directory, ranks), limit, TUTTI_LOG="info")
    found = SERVED.search(err) if out is not None else None
    return dict(zip(("requests", "came_bytes", "went_bytes"), map(int, found.groups()))) if found else {}


def text(value):
    if value is None:
        return "-"
    return f"{value:.5g}" if isinstance(value, float) else str(value).replace("\t", " ").replace("\n", " ")


def measure(s):
    askers = {"tutti": lambda n: ours(s.bin, n, s.limit)}
    if s.before:
        askers["before"] = lambda n: ours(s.before, n, s.limit)
    if s.torch.exists():
        askers["gloo"] = lambda n: gloo(s.torch, n, s.limit)
    else:
        print(f"without gloo: {s.torch} is not there; next: make torch-venv, or TUTTI_TORCH_PYTHON")
    what, given_up, asked = commit(), {}, {}
    first = 1 + max((int(row["round"]) for row in read([s.out])), default=-1) if s.out.exists() else 0
    with open(s.out, "a", encoding="ascii", errors="replace") as file:
        if file.tell() == 0:
            file.write("\t".join(COLUMNS) + "\n")
        for number in range(first, first + s.rounds):
            for n in s.ranks:
                names = list(askers)
                for name in names[number % len(names):] + names[:number % len(names)]:
                    if n >= given_up.get(name, n + 1):
                        continue
                    row = askers[name](n)
                    if row["status"] != "ok":
                        given_up[name] = n
                    if name != "gloo" and (name, n) not in asked:
                        asked[name, n] = counted(s.bin if name == "tutti" else s.before, n, s.limit)
                    row.update({"commit": what, "cores": os.cpu_count(), "round": number, "contender": name, "ranks": n,
                                **asked.get((name, n), {})})
                    file.write("\t".join(text(row.get(c)) for c in COLUMNS) + "\n")
                    file.flush()
                    print(f"round {number} {name} {n}: {row['status']}, {text(row.get('done_ms'))} ms", flush=True)


def read(paths):
    for path in paths:
        with open(path, encoding="ascii") as file:
            for line in file:
                if line.strip() and not line.startswith(("#", "commit\t")):
                    yield dict(zip(COLUMNS, line.rstrip("\n").split("\t")))


def table(paths):
    cells = {}
    for row in read(paths):
        cells.setdefault((int(row["ranks"]), row["contender"]), []).append(row)

    def median(rows, name):
        values = [float(r[name]) for r in rows if r["status"] == "ok" and r[name] != "-"]
        return statistics.median(values) if values else None
    print("| ranks | who | to main() | joined | first sum | CPU s | descriptors | connections | own MiB | page tables MiB "
          "| store requests per rank | bytes from the store | rounds |\n" + "|---" * 13 + "|")
    for (n, name), rows in sorted(cells.items()):
        if median(rows, "done_ms") is None:
            print(f"| {n} | {name} | {rows[-1]['status'].split(':')[0]} |" + " - |" * 9 + f" {len(rows)} |")
            continue
        asked, went = ([float(r[c]) for r in rows if r[c] != "-"] or [float("nan")] for c in ("requests", "went_bytes"))
        print(f"| {n} | {name} | " + " | ".join(f"{median(rows, c):,.0f} ms" for c in ("main_ms", "joined_ms", "done_ms")) +
              f" | {median(rows, 'cpu_s'):.2f} | {median(rows, 'descriptors'):.0f} | {median(rows, 'connections'):.0f} | "
              f"{median(rows, 'own_kib') / 1024:.1f} | {median(rows, 'tables_kib') / 1024:.1f} | "
              f"{asked[-1] / n:.1f} | {went[-1] / 1e6:.3g} MB | {len(rows)} |".replace("nan MB", "-").replace("nan", "-"))


def main():
    s = arguments()
    if s.table:
        table(s.table)
    elif s.bin is None or s.out is None:
        sys.exit("startup: --bin and --out are needed")
    else:
        measure(s)


if __name__ == "__main__":
    main()
