#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""scale_table: the tables of docs/scale.md from rows of `tutti sim --tsv`.

How     A column is a cluster, a line a size. With a rank on each host a cell is the best algorithm with its time, and in brackets
        the best of those that the library may take, where that is another one, with its time over the best one's. With several
        ranks on a host it is the time of the quicker one of two_level and leaders.

usage: scale_table.py FILE ...
"""
import collections
import sys

LEVELS = ("two_level", "leaders")
Cluster = collections.namedtuple("Cluster", "hosts per_host gbit")


def read(path):
    with open(path, encoding="ascii") as file:
        head, *lines = [line.rstrip("\n").split("\t") for line in file]
    return [dict(zip(head, line)) for line in lines if line != head]


def size_text(size):
    for unit, name in ((1 << 20, "MiB"), (1 << 10, "KiB")):
        if size >= unit:
            return f"{size // unit} {name}"
    return f"{size} B"


def time_text(us):
    if us < 999.5:
        return f"{us:.0f} us"
    return f"{us / 1000:.1f} ms" if us < 99950 else f"{us / 1000:.0f} ms"


def cell(rows):
    """Of one cluster and size."""
    levels = [float(r["us"]) for r in rows if r["algorithm"] in LEVELS]
    if levels:
        return time_text(min(levels))
    best = min(rows, key=lambda r: float(r["us"]))
    text = f"{best['algorithm']}, {time_text(float(best['us']))}"
    may = [r for r in rows if r["candidate"] == "1"]
    if best in may or not may:
        return text
    taken = min(may, key=lambda r: float(r["us"]))
    return f"{text} ({taken['algorithm']}, {float(taken['us']) / float(best['us']):.2f})"


def cells(rows):
    """{(Cluster, bytes): text}"""
    found = collections.defaultdict(list)
    for row in rows:
        found[Cluster(int(row["hosts"]), int(row["per_host"]), row["gbit"]), int(row["bytes"])].append(row)
    return {key: cell(of) for key, of in found.items()}


def main():
    texts = cells([row for path in sys.argv[1:] for row in read(path)])
    clusters, sizes = (list(dict.fromkeys(key[i] for key in texts)) for i in (0, 1))
    print("| bytes | " + " | ".join(f"{c.hosts} hosts of {c.per_host}, {c.gbit} Gb/s" for c in clusters) + " |")
    print("|---" * (len(clusters) + 1) + "|")
    for size in sizes:
        print(f"| {size_text(size)} | " + " | ".join(texts.get((c, size), "-") for c in clusters) + " |")


if __name__ == "__main__":
    main()
