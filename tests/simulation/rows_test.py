#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""A table of seeds: a row for each block, none is run twice, and the report counts each seed once.

usage: rows_test.py SIMULATION
"""
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).parent


def run(*words):
    done = subprocess.run([str(word) for word in words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=120)
    if done.returncode != 0:
        sys.exit(f"{words}: exit code {done.returncode}\n{done.stdout}")
    return done.stdout


def check(what, text, wanted):
    if wanted not in text:
        sys.exit(f"{what}: '{wanted}' is not in:\n{text}")


def main():
    with tempfile.TemporaryDirectory() as folder:
        rows = pathlib.Path(folder) / "seeds.tsv"
        simulation = [sys.argv[1], "--rows", rows, "--commit", "here", "--block", 4, "--jobs", 2, "--seeds"]
        check("first", run(*simulation, "1..10"), "10 seeds in")
        check("again", run(*simulation, "1..10"), "0 seeds in")
        check("more", run(*simulation, "1..18"), "10 seeds in")
        text = rows.read_text()
        spans = sorted((int(line.split("\t")[0]), int(line.split("\t")[1])) for line in text.splitlines()[1:])
        if spans != [(1, 4), (5, 8), (9, 10), (9, 12), (13, 16), (17, 18)]:
            sys.exit(f"rows of {spans}:\n{text}")
        check("report", run(sys.executable, "-B", HERE / "report.py", rows), "18 seeds, by 1 commits")


main()
