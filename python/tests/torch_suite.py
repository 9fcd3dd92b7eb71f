#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The test suite of torch.distributed that ships in PyTorch's wheel, on tutti and on gloo.

Method  The name tutti is added to the suite's sets of backends that have gloo, and to "plugin", and nothing else is changed.
        Each test is run by itself, its ranks forked, and gives a row: backend, how many ranks, test, passed, failed or skipped,
        seconds, why. Rows that are there already are not run again, so that the whole may be interrupted, and goes on where it
        was. A skip is not a pass, and some tests skip themselves on any number of ranks but one: 3, 4 and 8 are different runs.
        The suite needs the package expecttest.
        --report compares, for each number of ranks: what gloo passes and tutti does not is listed, tests that ask for gloo by
        name apart.

usage: torch_suite.py --rows FILE [--backends tutti,gloo] [--ranks 3,4,8] [--minutes N] [--limit SECONDS] [--only TEXT]
                      [--again] [--report]
"""
import argparse
import io
import os
import pathlib
import sys
import tempfile
import time
import unittest

ARGS = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
ARGS.add_argument("--rows", required=True, type=pathlib.Path)
ARGS.add_argument("--backends", default="tutti,gloo")
ARGS.add_argument("--ranks", default="3")
ARGS.add_argument("--minutes", type=float, default=1e9)
ARGS.add_argument("--limit", type=int, default=300, help="seconds for a test, where the suite has no limit of its own")
ARGS.add_argument("--only", default="", help="tests whose name has this")
ARGS.add_argument("--again", action="store_true", help="run what has failed again; the last row of a test counts")
ARGS.add_argument("--report", action="store_true")


def read_rows(path):
    """{(backend, ranks, test): (what, why)}, the last row of each."""
    if not path.exists():
        return {}
    split = [line.split("\t") for line in path.read_text().splitlines()]
    return {(row[0], int(row[1]), row[2]): (row[3], row[5]) for row in split if len(row) == 6}


def load_suite(backend, ranks, limit, folder):
    """The suite's class for one backend. It reads the environment when it is imported."""
    os.environ.update(BACKEND=backend, WORLD_SIZE=str(ranks), TEMP_DIR=folder, INIT_METHOD=f"file://{folder}/shared",
                      MASTER_ADDR="127.0.0.1", OMP_NUM_THREADS="1", DISTRIBUTED_TESTS_DEFAULT_TIMEOUT=str(limit))
    import torch
    import torch.distributed as dist
    from torch.testing._internal import common_distributed

    if backend == "tutti":
        import tutti_torch  # noqa: F401: registers the name

        features = common_distributed.DistTestCases.backend_feature
        features["plugin"].add("tutti")
        for backends in features.values():
            if "gloo" in backends:
                backends.add("tutti")
    from torch.testing._internal.distributed import distributed_test

    if backend == "tutti":
        distributed_test.PROFILING_SUPPORTED_BACKENDS.append("tutti")
        distributed_test.SEND_RECV_PROFILING_SUPPORTED_BACKENDS.append("tutti")

    class Suite(distributed_test.TestDistBackend, distributed_test.DistributedTest._DistTestBase):
        def setUp(self):
            super().setUp()
            self._start_processes(torch.multiprocessing.get_context("fork").Process)

    Suite.__module__ = "__main__"
    assert dist.is_available()
    return Suite


def run_one(suite, name):
    """What it came to, and the last line of why."""
    result = unittest.TextTestRunner(stream=io.StringIO(), verbosity=0).run(suite(name))
    if result.skipped:
        return "skipped", result.skipped[0][1]
    wrong = result.failures + result.errors
    if not wrong:
        return "passed", ""
    told = [line for line in wrong[0][1].splitlines() if "Error" in line]
    return "failed", told[-1] if told else wrong[0][1][-300:]


def run_backend(backend, ranks, until, args):
    """Everything of one backend on as many ranks that has no row yet, until time is up. In a process of its own."""
    done = read_rows(args.rows)
    with tempfile.TemporaryDirectory() as folder:
        os.makedirs(f"{folder}/barrier", exist_ok=True)
        os.makedirs(f"{folder}/test_dir", exist_ok=True)
        suite = load_suite(backend, ranks, args.limit, folder)
        names = [n for n in unittest.TestLoader().getTestCaseNames(suite) if args.only in n]
        for name in names:
            had = done.get((backend, ranks, name), ("", ""))[0]
            if (had and not (args.again and had == "failed")) or time.monotonic() > until:
                continue
            began = time.monotonic()
            what, why = run_one(suite, name)
            why = " ".join(why.split())[:300]
            with args.rows.open("a") as rows:
                rows.write(f"{backend}\t{ranks}\t{name}\t{what}\t{time.monotonic() - began:.1f}\t{why}\n")
            print(f"{backend} {ranks} {name} {what} {why if what == 'failed' else ''}", flush=True)


def compare(rows):
    """rows: {(backend, test): (what, why)} of one number of ranks."""
    for backend in sorted({b for b, _ in rows}):
        whats = [what for (b, _), (what, _) in rows.items() if b == backend]
        print(" ", backend, *(f"{whats.count(what)} {what}" for what in ("passed", "failed", "skipped")))
    missing = [(test, *rows.get(("tutti", test), ("not run", ""))) for (b, test), (what, _) in rows.items()
               if b == "gloo" and what == "passed" and rows.get(("tutti", test), ("not run",))[0] != "passed"]
    by_name = [m for m in missing if m[1] == "skipped" and "gloo" in m[2].lower()]
    print(f"  gloo passes, tutti does not: {len(missing) - len(by_name)}")
    for m in missing:
        if m not in by_name:
            print("    ", *m)
    print(f"  of tests that ask for gloo by name: {len(by_name)}")
    for m in by_name:
        print("    ", m[0])


def report(path):
    rows = read_rows(path)
    for ranks in sorted({n for _, n, _ in rows}):
        print(f"{ranks} ranks")
        compare({(backend, test): came for (backend, n, test), came in rows.items() if n == ranks})


def main():
    args = ARGS.parse_args()
    until = time.monotonic() + 60 * args.minutes
    if args.report:
        report(args.rows)
        return
    for ranks in map(int, args.ranks.split(",")):
        for backend in args.backends.split(","):
            pid = os.fork()
            if pid == 0:
                run_backend(backend, ranks, until, args)
                sys.stdout.flush()
                os._exit(0)
            os.waitpid(pid, 0)
    report(args.rows)


if __name__ == "__main__":
    sys.exit(main())
