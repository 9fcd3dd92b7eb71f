#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""What the rows of `simulation --rows` come to, all together.

usage: report.py [seeds.tsv]
"""
import csv
import pathlib
import sys

FAULTS = ("kill", "power", "stop", "part", "reset", "clog", "slow", "double")


def distinct(rows):
    """How many seeds: those that several rows have count once."""
    spans = sorted((int(row["from"]), int(row["to"])) for row in rows)
    n, end = 0, 0
    for first, last in spans:
        n += max(0, last - max(first, end + 1) + 1)
        end = max(end, last)
    return n


def total(rows, column):
    return sum(float(row[column]) for row in rows)


def main():
    path = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).with_name("seeds.tsv")
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file, delimiter="\t"))
    if not rows:
        sys.exit(f"{path} has no rows")
    n, seconds = distinct(rows), total(rows, "seconds")
    runs = sum(int(row["to"]) - int(row["from"]) + 1 for row in rows)
    print(f"{n} seeds, by {len({row['commit'] for row in rows})} commits, {runs / max(seconds, 0.1):.0f} a second of one process; "
          f"{total(rows, 'virtual_s') / 3600:.1f} hours of virtual time, {total(rows, 'turns') / 1e6:.0f} million turns")
    print("faults: " + ", ".join(f"{total(rows, kind):.0f} {kind}" for kind in FAULTS)
          + f"; {total(rows, 'harmless'):.0f} seeds had nothing that may make a call fail")
    print(f"{total(rows, 'results'):.0f} calls with the right result, {total(rows, 'errors'):.0f} ranks with an error, "
          f"{total(rows, 'shrunk'):.0f} went on in a smaller world")
    wrong = [(row["commit"], row["wrong_seeds"]) for row in rows if int(row["wrong"]) > 0]
    print(f"wrong: {total(rows, 'wrong'):.0f} seeds")
    for commit, seeds in wrong:
        print(f"  {commit}: {seeds}")


main()
