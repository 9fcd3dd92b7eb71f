#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The conformance matrix of every backend and every transport, beside each other.

Goal    One table: of each cells run, passed, failed and skipped, and below it why cells were skipped.
Method  The tests of CTest that run the matrix, one after the other, as the suite has them; what they print is read. A test that
        CTest has not built (no MPI, no UCX) is not in the table, and one that skipped itself is there as that: not as passed.
Fails   Where a test fails, prints no result, or is not through within LIMIT_S; the table has what was there by then.

    backends.py BUILD
"""
import re
import subprocess
import sys

LIMIT_S = 1800
WHO = (("conformance_matrix_shm", "native, shared memory"), ("conformance_matrix_tcp", "native, TCP"),
       ("conformance_matrix_hosts", "native, two hosts"), ("conformance_matrix_tls", "native, TCP with TLS"),
       ("conformance_matrix_launched", "native, under `tutti run`"), ("device_matrix", "native, on memory of GPUs (stand-in)"),
       ("conformance_matrix_debug", "debug-native"), ("mpi_openmpi_matrix", "mpi, Open MPI"), ("mpi_mpich_matrix", "mpi, MPICH"),
       ("nccl_matrix", "nccl (stand-in)"), ("ucx_matrix_tcp", "native over ucx, TCP"), ("ucx_matrix_shm", "native over ucx, shared memory"),
       ("ucx_matrix_rendezvous", "native over ucx, rendezvous"), ("ucx_matrix_hosts", "native over ucx, two hosts"),
       ("conformance_matrix_plugin", "store (example of a plug-in)"), ("install-transport", "native over post (example of a transport)"))
# "core: 440 cells: 374 run, 374 passed, ..." of all, "backend 'nccl': run 374, passed ..." of one that was asked for.
CELLS = re.compile(r"(\d+) run, (\d+) passed, (\d+) failed, (\d+) skipped")
BACKEND = re.compile(r"backend '[^']+': run (\d+), passed (\d+), failed (\d+), skipped (\d+)")
REASON = re.compile(r"skipped +(\d+) of +(\d+) (\S+): (.*)")


def output_of(command, limit_s):
    """What it has said in that time, and whether it was through then; it is ended if not."""
    with subprocess.Popen(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as process:
        try:
            return process.communicate(timeout=limit_s)[0], True
        except subprocess.TimeoutExpired:
            process.terminate()
            return process.communicate()[0], False


def run(build):
    """What each test said, how it ended, and whether all are through."""
    said, ended = {}, {}
    names = "|".join(test for test, _ in WHO)
    numbers = {}
    text, whole = output_of(["ctest", "--test-dir", build, "-V", "-R", "^(%s)$" % names], LIMIT_S)
    for line in text.splitlines():
        test = re.match(r" *\d+/\d+ Test +#(\d+): (\S+) \.+ *(.*?) +[\d.]+ sec", line)
        words = re.match(r"(\d+): (.*)", line)
        if test:
            ended[test.group(2)], numbers[test.group(1)] = test.group(3).strip("* "), test.group(2)
        elif words:
            said.setdefault(words.group(1), []).append(words.group(2))
    return {numbers[n]: lines for n, lines in said.items() if n in numbers}, ended, whole


def row(who, lines, end):
    """The row, why cells were skipped, and whether all is well."""
    text = "\n".join(lines)
    found = BACKEND.findall(text) or CELLS.findall(text)
    if end != "Passed" or not found:
        return "| %s | - | - | - | - | %s |" % (who, end), [], end == "Skipped"
    reasons = ["%s, %s: %s of %s cells: %s" % (who, op, n, of, why) for n, of, op, why in REASON.findall(text)]
    return "| %s | %s | %s |" % (who, " | ".join(found[-1]), "see below" if reasons else ""), reasons, int(found[-1][2]) == 0


def main(build):
    said, ended, whole = run(build)
    if not ended and whole:
        sys.exit("%s has no test that runs the matrix; next: cmake --build %s" % (build, build))
    print("| backend | run | passed | failed | skipped | |\n|---|---|---|---|---|---|")
    well, below = True, []
    for test, who in WHO:
        if test in ended:
            line, reasons, good = row(who, said.get(test, []), ended[test])
            print(line)
            below += reasons
            well = well and good
    print("\n" + "\n".join("- " + reason for reason in below))
    if not whole:
        print("\nnot through within %d s: the tests that are not in the table had not ended by then" % LIMIT_S)
    return 0 if well and whole else 1


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1]))
