#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""slurm: what a Slurm that really runs makes of jobs, beside the plain srun of launchers_table.py.

Goal    steps     those that run side by side, jobs at the same time, arrays and heterogeneous jobs are worlds of their own
        places    ranks are dealt to hosts as Slurm likes; where rank 0 is not on the first host, both hosts that see it say so
        shells    sbatch's script and salloc's shells are no ranks, and say so at once; what they start with srun is
        deaths    of a task that is killed all others name the end, and srun ends with its signal's code
Method  examples/12_any_launcher and left_alone.c on the two hosts of slurm.py.
Skips   (77) where Slurm, or a namespace, cannot be had.

usage: slurm_test.py --program FILE --killed FILE --tutti FILE
"""
import argparse
import pathlib
import re
import sys

from launchers_table import BLOCK, ONE_HOST, end_of, place, wanted
from slurm import SKIPPED

PAIR = [0, 1]
APART = [0, 0]
BATCH = "rm -f said-*; printf '#!/bin/sh\\n%s\\n' \"$script\" > batch; sbatch -Q --wait {options} -o said-%a batch || wrong=1; cat said-*; exit ${{wrong-0}}"
SHELL = "salloc -Q -n 4 srun --interactive --preserve-env "  # what salloc does by itself where it is set up so

# Title, worlds, each by the numbers on their hosts of its ranks, and script.
WORLDS = [
    ("two steps of a job, one host", [PAIR, PAIR], "salloc -Q -N 1 -n 4 sh -c 'srun --exact -n 2 $PROGRAM & srun --exact -n 2 $PROGRAM; wait'"),
    ("two steps of a job, two hosts", [APART, APART],
     "salloc -Q -N 2 --ntasks-per-node=2 sh -c 'srun --exact -N 2 -n 2 $PROGRAM & srun --exact -N 2 -n 2 $PROGRAM; wait'"),
    ("three jobs at once, two hosts", [BLOCK] * 3, "for i in 1 2 3; do srun -Q -N 2 --ntasks-per-node=2 $PROGRAM & done; wait"),
    ("an array of two jobs", [BLOCK] * 2,
     "script='srun $PROGRAM'; " + BATCH.format(options="--array=1-2 -N 2 --ntasks-per-node=2")),
    ("a heterogeneous job", [[0, 0, 1]], "srun -Q -w n1 -n 1 : -w n2 -n 2 $PROGRAM"),
    ("a heterogeneous job, rank 0 on the second host", [[0, 0, 1]], "MASTER_ADDR=n2 srun -Q -w n2 -n 1 : -w n1 -n 2 $PROGRAM"),
    ("-m cyclic", [[0, 0, 1, 1]], "srun -N 2 --ntasks-per-node=2 -m cyclic $PROGRAM"),
    ("-m arbitrary, rank 0 on the first host", [[0, 0, 1, 1]],
     "printf 'n1\\nn2\\nn1\\nn2\\n' > hosts; SLURM_HOSTFILE=hosts srun -m arbitrary -n 4 $PROGRAM"),
    ("-m arbitrary, rank 0 on the second host", [[0, 0, 1, 1]],
     "printf 'n2\\nn1\\nn2\\nn1\\n' > hosts; MASTER_ADDR=n2 SLURM_HOSTFILE=hosts srun -m arbitrary -n 4 $PROGRAM"),
    ("one rank", [[0]], "srun -n 1 $PROGRAM"),
    ("the second host alone", [ONE_HOST], "srun -w n2 -n 4 $PROGRAM"),
    ("srun in salloc's shell", [ONE_HOST], SHELL + "sh -c 'srun $PROGRAM'"),
    ("tutti run in salloc's shell", [PAIR], SHELL + "tutti run --standalone --nproc-per-node=2 $PROGRAM"),
]

# Title, words, how often, and script of what has to be refused, by each rank that can know.
REFUSED = [
    ("rank 0 on the second host", "Slurm has put rank 0", 4,
     "printf 'n2\\nn1\\nn2\\nn1\\n' > hosts; SLURM_HOSTFILE=hosts srun -m arbitrary -n 4 $PROGRAM"),
    ("a heterogeneous job, rank 0 on the second host", "Slurm has put rank 0", 3, "srun -Q -w n2 -n 1 : -w n1 -n 2 $PROGRAM"),
    ("no srun in sbatch's script", "start the program with srun", 1, "script=$PROGRAM; " + BATCH.format(options="-n 4")),
    ("no srun below salloc", "start the program with srun", 1, "salloc -Q -n 4 $PROGRAM"),
    ("no srun in salloc's shell", "start the program with srun", 1, SHELL + "$PROGRAM"),
    ("two hosts without a secret", "next: set TUTTI_SECRET_FILE", 2, "srun -N 2 -n 2 env -u TUTTI_SECRET_FILE $PROGRAM"),
]


def is_as_wanted(said, worlds):
    lines = sorted(re.findall(r"rank \d+ of .*", said))
    return lines == sorted(line for world in worlds for line in wanted(world))


def check_worlds(here):
    for title, worlds, script in WORLDS:
        said, fine = here.run(BLOCK, script)
        yield title, "" if fine and is_as_wanted(said, worlds) else said or "it said nothing"


def check_refused(here):
    for title, words, times, script in REFUSED:
        said, fine = here.run(BLOCK, script)
        good = not fine and said.count(words) == times and "1 + " not in said and "ended after" not in said
        yield title, "" if good else said or "it said nothing"


def check_deaths(here, program):
    """srun leaves the others alone, as it does where it is told nothing: they end by what they are told."""
    for hosts, where in ((1, "inside a host"), (2, "between hosts")):
        env = {**here.env, "TUTTI_SECRET_FILE": str(here.folder / "secret")}
        said, code = end_of(here.hosts[0].start(f"srun -N {hosts} --ntasks-per-node={4 // hosts} {program}", env))
        told = [f"rank {rank} was told: " in said for rank in range(3)]
        named = re.findall(r"rank \d was told: .*rank 3 .* is gone: its process has ended \(signal 9", said)
        good = all(told) and len(named) == 3 and code == 128 + 9
        print(*(f"    {line}" for line in said.splitlines() if "was told" in line), sep="\n")
        yield f"a task is killed {where}", "" if good else f"{said}(ended with {code})"


def main():
    args = argparse.ArgumentParser()
    for name in ("--program", "--killed", "--tutti"):
        args.add_argument(name, required=True)
    args = args.parse_args()
    killed = pathlib.Path(args.killed).resolve()
    bad = 0
    with place(args.tutti, args.program) as here:
        if here.no_slurm:
            print("skipped:", here.no_slurm)
            return SKIPPED
        for check in (check_worlds(here), check_refused(here), check_deaths(here, killed)):
            for title, wrong in check:
                print(f"{title:40} {'FAILED, and said:' if wrong else 'as it should'}\n{wrong}".rstrip(), flush=True)
                bad += bool(wrong)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
