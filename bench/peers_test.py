#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""peers_test
Goal    peers.py measures tutti and the limits, with whatever peers this machine has; says who is missing; goes on
        where it stopped; lives through a contender that does not; and leaves no process behind. Not how fast.
Method  The built contenders, two and three ranks, tiny budgets.

usage: peers_test.py --bin DIR [--contenders LIST]
"""
import argparse
import os
import pathlib
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
import rows  # noqa: E402

LIMIT_S = 150


def run(*words, mark=""):
    done = subprocess.run([sys.executable, "-B", *map(str, words)], capture_output=True, text=True, timeout=LIMIT_S,
                          check=False, env=dict(os.environ, TMPDIR=mark) if mark else None)
    if done.returncode != 0:
        sys.exit(f"{words} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
    return done.stdout


def peers(folder, out, *more):
    return run(HERE / "peers.py", "--bin", folder, "--out", out, "--budget-ms", 4, "--sizes", "4,8K", *more,
               mark=str(out.parent))


def expect(truth, words):
    if not truth:
        sys.exit(f"not so: {words}")


def everybody_is_measured_or_named(folder, out, contenders):
    said = peers(folder, out, "--ranks", "2,3", "--rounds", 1, "--contenders", contenders)
    found = rows.read(open(out))
    for name in contenders.split(","):
        fine = [r for r in found if r["contender"] == name and r["status"] == "ok"]
        expect(fine or f"missing: {name}: " in said, f"{name} was measured, or is said to be missing")
        expect(fine or name not in ("tutti", "limit"), f"{name} was measured")
    wrong = [r for r in found if "wrong result" in r["status"]]
    expect(not wrong, f"all results are right: {wrong}")
    ours = [r for r in found if r["contender"] == "tutti"]
    expect(len(ours) == 2 * (7 * 2 + 1) and all(r["status"] == "ok" for r in ours),
           "tutti has seven operations in two sizes and a barrier, for two numbers of ranks")
    expect(os.path.getsize(f"{out}.env") > 0, "the environment stands beside the rows")


def a_run_is_taken_up(folder, out):
    before = rows.read(open(out))
    peers(folder, out, "--ranks", "2", "--rounds", 2, "--contenders", "tutti,limit", "--ops", "all_reduce,barrier")
    added = rows.read(open(out))[len(before):]
    expect(added and all(r["round"] == 1 and r["part"] == 1 for r in added), "only the second round was measured")


def older_builds_and_registered_memory_take_part(folder, scratch):
    out = scratch / "before.tsv"
    said = peers(folder, out, "--ranks", "2", "--rounds", 1, "--contenders", "tutti,registered", "--before", folder,
                 "--ops", "all_reduce,barrier", "--brief")
    found = {(r["contender"], r["op"], r["memory"]) for r in rows.read(open(out)) if r["status"] == "ok"}
    expect(found == {("tutti", "all_reduce", "ordinary"), ("before", "all_reduce", "ordinary"),
                     ("registered", "all_reduce", "registered"), ("tutti", "barrier", "ordinary"),
                     ("before", "barrier", "ordinary")}, f"three contenders, and no barrier of registered memory: {found}")
    expect("/before" in said and "all_reduce     f32         4 B     2" in said, f"a few words at the end: {said}")


def everybody_computes_behind_an_all_reduce(folder, scratch, contenders):
    out = scratch / "overlap.tsv"
    said = run(HERE / "overlap.py", "--bin", folder, "--out", out, "--budget-ms", 4, "--bytes", "64K", "--rounds", 1,
               "--contenders", contenders + ",registered,limit-pass", mark=str(scratch))
    lines = [line.split("\t") for line in out.read_text().splitlines()]
    found = {dict(zip(lines[0], line))["contender"]: dict(zip(lines[0], line))["status"] for line in lines[1:]}
    computed = {dict(zip(lines[0], line))["products"] for line in lines[1:]} - {"-"}
    expect(len(computed) == 1, f"all computed the same: {computed}")
    for name in contenders.split(",") + ["registered", "limit-pass"]:
        expect(found.get(name) == "ok" or f"missing: {name}: " in said, f"{name} was measured, or is missing: {found}")
    expect(found["tutti"] == found["limit-pass"] == "ok", f"tutti and the limits were measured: {said}")


def a_contender_that_dies_is_named(real, scratch):
    folder = scratch / "bin"
    folder.mkdir()
    for name in ("tutti", "contender_tutti"):
        (folder / name).symlink_to(real / name)
    (folder / "contender_limit").write_text("#!/bin/sh\necho no core today >&2\nexit 3\n")
    (folder / "contender_limit").chmod(0o755)
    out = scratch / "dies.tsv"
    peers(folder, out, "--ranks", "2", "--rounds", 1, "--contenders", "tutti,limit", "--ops", "all_reduce")
    found = rows.read(open(out))
    why = {r["status"] for r in found if r["contender"] == "limit"}
    expect(any("no core today" in w for w in why), f"its last words are in the rows: {why}")
    expect(any("given up after 3 starts" in w for w in why), f"it was given up: {why}")
    expect(all(r["status"] == "ok" for r in found if r["contender"] == "tutti"), "tutti was measured")


def nothing_is_left(scratch):
    """No process has the folder in its environment, where peers() has put it; one that was told to end may need a moment for it."""
    until = time.monotonic() + 20
    while True:
        left = [p.parent.name for p in pathlib.Path("/proc").glob("[0-9]*/environ") if f"TMPDIR={scratch}" in read(p)]
        if not left or time.monotonic() > until:
            break
        time.sleep(0.05)
    expect(not left, f"no process is left: {left}")


def read(path):
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--bin", type=pathlib.Path, required=True)
    p.add_argument("--contenders", default="tutti,openmpi,mpich,gloo,limit")
    args = p.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        scratch = pathlib.Path(folder)
        out = scratch / "rows.tsv"
        everybody_is_measured_or_named(args.bin.resolve(), out, args.contenders)
        a_run_is_taken_up(args.bin.resolve(), out)
        expect("### all_reduce" in run(HERE / "report.py", out), "a report is written")
        older_builds_and_registered_memory_take_part(args.bin.resolve(), scratch)
        everybody_computes_behind_an_all_reduce(args.bin.resolve(), scratch, args.contenders)
        a_contender_that_dies_is_named(args.bin.resolve(), scratch)
        nothing_is_left(scratch)
    print("peers_test: all as it should be")
    return 0


if __name__ == "__main__":
    sys.exit(main())
