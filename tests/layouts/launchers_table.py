#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""launchers-table: one program, without change, under every launcher that is here, on one host and on two.

Goal    tutti run, torchrun, the mpiruns of Open MPI and MPICH, and Slurm's srun make one world of what they start, with ranks
        that can add up, each with its number on its host. A table says what was started, and what came of it.
Method  examples/12_any_launcher under each of them. Hosts are the network namespaces of tour_hosts.py: what an mpirun would ask
        ssh for, a script does that enters a host. Slurm is the real one (slurm.py). A job of two hosts has a secret.
Skips   rows of launchers that are not here, by name and with the reason; on a machine without namespaces, all of two hosts.

usage: launchers_table.py --program FILE --tutti FILE [--only WORD]
"""
import argparse
import contextlib
import io
import os
import pathlib
import re
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "interop"))
import slurm  # noqa: E402
import torch_python  # noqa: E402
from tour_hosts import Host, join, wait_for_namespaces  # noqa: E402

LIMIT_S = 120  # for one job; PyTorch alone takes seconds to load
OF_A_JOB = ("RANK", "WORLD_SIZE", "LOCAL_", "MASTER_", "TORCH", "PET_", "TUTTI_", "SLURM", "OMPI_", "PMI", "MPI_")
BLOCK, CYCLIC = [0, 1, 0, 1], [0, 0, 1, 1]  # numbers on their hosts of the ranks 0 to 3, on two hosts
ONE_HOST = [0, 1, 2, 3]

# Launcher, how it is called, numbers on their hosts, script of the first host, script of the second one ("": none).
ROWS = [
    ("tutti run", "--standalone", ONE_HOST, "tutti run --standalone --nproc-per-node=4 $PROGRAM", ""),
    ("tutti run", "--nnodes 2", BLOCK, *(f"tutti run --nnodes 2 --node-rank {node} --master-addr n1 --nproc-per-node 2 $PROGRAM"
                                         for node in (0, 1))),
    ("torchrun", "--standalone", ONE_HOST, "torchrun --standalone --nproc-per-node 4 --no-python $PROGRAM", ""),
    ("torchrun", "--nnodes 2", BLOCK, *(f"torchrun --nnodes 2 --node-rank {node} --master-addr n1 --master-port 29600 "
                                        "--nproc-per-node 2 --no-python $PROGRAM" for node in (0, 1))),
    ("mpirun.openmpi", "-n 4", ONE_HOST, "mpirun.openmpi --oversubscribe -n 4 $PROGRAM", ""),
    ("mpirun.openmpi", "--host n1:2,n2:2", BLOCK,
     "mpirun.openmpi --host n1:2,n2:2 --mca plm_rsh_agent $ENTER -x MASTER_ADDR=n1 -x TUTTI_SECRET_FILE -n 4 $PROGRAM", ""),
    ("mpirun.mpich", "-n 4", ONE_HOST, "mpirun.mpich -n 4 $PROGRAM", ""),
    ("mpirun.mpich", "-hosts n1,n2", BLOCK, "mpirun.mpich -hosts n1,n2 -ppn 2 -launcher rsh -launcher-exec $ENTER "
     "-genv MASTER_ADDR n1 -genv MASTER_PORT 20000 -n 4 $PROGRAM", ""),
    ("srun", "-n 4", ONE_HOST, "srun -n 4 $PROGRAM", ""),
    ("srun", "-N 2 --ntasks-per-node=2", BLOCK, "srun -N 2 --ntasks-per-node=2 $PROGRAM", ""),
    ("srun", "-N 2 --mpi=pmi2", BLOCK, "srun -N 2 --ntasks-per-node=2 --mpi=pmi2 $PROGRAM", ""),
    ("srun", "-N 2 --mpi=pmix", BLOCK, "srun -N 2 --ntasks-per-node=2 --mpi=pmix $PROGRAM", ""),
    ("sbatch", "srun in its script", BLOCK,
     "printf '#!/bin/sh\\nsrun %s\\n' $PROGRAM > batch; sbatch -Q --wait -N 2 --ntasks-per-node=2 -o said batch || wrong=1; "
     "cat said; exit ${wrong-0}", ""),
    ("salloc", "srun below it", BLOCK, "salloc -Q -N 2 --ntasks-per-node=2 srun $PROGRAM", ""),
    ("salloc", "tutti run below srun", BLOCK,
     "salloc -Q -N 2 --ntasks-per-node=1 srun sh -c 'tutti run --nnodes 2 --node-rank $SLURM_NODEID --master-addr n1 "
     "--nproc-per-node 2 $PROGRAM'", ""),
    ("salloc", "torchrun below srun", BLOCK,
     "salloc -Q -N 2 --ntasks-per-node=1 srun sh -c 'torchrun --nnodes 2 --node-rank $SLURM_NODEID --master-addr n1 "
     "--master-port 29600 --nproc-per-node 2 --no-python $PROGRAM'", ""),
    ("salloc", "mpirun.openmpi below it", BLOCK,
     "salloc -Q -N 2 --ntasks-per-node=2 mpirun.openmpi -x MASTER_ADDR=n1 -x TUTTI_SECRET_FILE $PROGRAM", ""),
    ("salloc", "mpirun.mpich below it", BLOCK,
     "salloc -Q -N 2 --ntasks-per-node=2 mpirun.mpich -genv MASTER_ADDR n1 -genv MASTER_PORT 20000 $PROGRAM", ""),
]


class ThisHost:
    """The machine itself, where there may be no namespaces."""

    def __init__(self, home):
        self.home = home

    def start(self, script, env):
        return subprocess.Popen(["bash", "-euc", f"cd {self.home}\n{script}"], env=env, text=True, stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT, start_new_session=True)

    def end(self):
        pass


class Place:
    """The hosts, what programs are told on them, and why something cannot be had here."""

    def __init__(self, folder, hosts, env, no_slurm):
        self.folder, self.hosts, self.env, self.no_slurm = folder, hosts, env, no_slurm

    def lacks(self, row):
        launcher, how, numbers = row[:3]
        words = f"{launcher} {how}"
        if numbers is not ONE_HOST and len(self.hosts) < 2:
            return "no namespaces to make a second host of"
        if launcher in ("srun", "sbatch", "salloc") and self.no_slurm:
            return self.no_slurm
        for name in ("torchrun", "mpirun.openmpi", "mpirun.mpich"):
            if name in words and shutil.which(name, path=self.env["PATH"]) is None:
                return f"there is no {name}"
        return ""

    def run(self, numbers, *scripts):
        """What the scripts, one for a host, said, and whether each ended with 0."""
        env = dict(self.env)
        if len(set(numbers)) < len(numbers):
            env["TUTTI_SECRET_FILE"] = str(self.folder / "secret")
        jobs = [host.start(script, env) for host, script in zip(self.hosts, scripts) if script]
        ends = [end_of(job) for job in jobs]
        return "".join(said for said, _ in ends), all(code == 0 for _, code in ends)


def end_of(job):
    """What it said, and its exit code. One that takes too long is ended; what it started elsewhere may go on until the test ends."""
    try:
        return job.communicate(timeout=LIMIT_S)[0], job.returncode
    except subprocess.TimeoutExpired:
        os.killpg(job.pid, signal.SIGKILL)
    words = f"(ended after {LIMIT_S} s)\n"
    try:
        return job.communicate(timeout=5)[0] + words, None
    except subprocess.TimeoutExpired:
        return words, None


def wanted(numbers):
    n = len(numbers)
    return [f"rank {rank} of {n}, number {number} of its host: 1 + ... + {n} = {n * (n + 1) // 2}"
            for rank, number in enumerate(numbers)]


def outcome(place, row):
    """"worked", "skipped: ..." or what went wrong."""
    _, _, numbers, *scripts = row
    reason = place.lacks(row)
    if reason:
        return f"skipped: {reason}"
    said, fine = place.run(numbers, *scripts)
    lines = sorted(re.findall(r"rank \d+ of .*", said))
    return "worked" if fine and lines == wanted(numbers) else f"FAILED, and said:\n{said}"


def show(row, result):
    launcher, how, numbers = row[:3]
    hosts = 1 if numbers is ONE_HOST else 2
    print(f"{launcher:14} | {how:25} | {hosts} | {len(numbers)} | {result}", flush=True)


def torch_folder():
    """Where torchrun is; "" where there is none."""
    with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):
        return str(torch_python.find().parent)
    return ""


def environment(tutti, program, folder):
    env = {name: value for name, value in os.environ.items() if not name.startswith(OF_A_JOB)}
    path = [str(pathlib.Path(tutti).resolve().parent), env["PATH"], torch_folder()]
    env.update(PATH=":".join(filter(None, path)), PROGRAM=str(pathlib.Path(program).resolve()), ENTER=str(folder / "enter"),
               OMP_NUM_THREADS="1", OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
    return env


def make_enter(folder, hosts):
    """What an mpirun calls in the place of ssh: enter HOST COMMAND..."""
    cases = "".join(f"{host.name}) pid={host.keeper.pid};;\n" for host in hosts)
    path = folder / "enter"
    path.write_text("#!/bin/sh\n"
                    'while :; do case $1 in -*) shift;; *) break;; esac; done\n'
                    f'case $1 in\n{cases}*) echo "no host $1" >&2; exit 1;;\nesac\n'
                    'shift\nexec nsenter --target $pid --net --mount --uts sh -c "$*"\n')
    path.chmod(0o755)


def make_secret(folder):
    with open(os.open(folder / "secret", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(secrets.token_hex(32) + "\n")


@contextlib.contextmanager
def place(tutti, program, more_slurm=""):
    """A Place, with as much of it as can be had here."""
    why = slurm.in_own_pids()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended by a signal"))  # the first process of a namespace has no default for it
    with tempfile.TemporaryDirectory() as name, contextlib.ExitStack() as stack:
        folder = pathlib.Path(name)
        env = environment(tutti, program, folder)
        make_secret(folder)
        hosts = [] if why else [Host("n1", folder), Host("n2", folder)]
        for host in hosts:
            stack.callback(host.end)
        if not hosts or not all(map(wait_for_namespaces, hosts)) or join(*hosts, folder, env):
            yield Place(folder, [ThisHost(folder)], env, "no namespaces to make hosts of")
            return
        make_enter(folder, hosts)
        absent = slurm.missing()
        if absent:
            yield Place(folder, hosts, env, f"no {absent} (make slurm-deps installs Slurm)")
            return
        cluster = slurm.Slurm(hosts, folder, env, more_slurm)
        stack.callback(cluster.end)
        yield Place(folder, hosts, cluster.env, cluster.start())


def main():
    args = argparse.ArgumentParser()
    args.add_argument("--program", required=True)
    args.add_argument("--tutti", required=True)
    args.add_argument("--only", default="")
    args = args.parse_args()
    bad = 0
    with place(args.tutti, args.program) as here:
        for row in ROWS:
            if args.only in f"{row[0]} {row[1]}":
                result = outcome(here, row)
                show(row, result)
                bad += result.startswith("FAILED")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
