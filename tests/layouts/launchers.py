# SPDX-License-Identifier: BSD-3-Clause
"""Programs under launchers that set no RANK: each MPI's mpirun, and srun's variables.

Goal    what was started as one job is one world of that size, never worlds of one; two jobs on one host at
        the same time do not meet; a wrapper between launcher and program does not matter.
Method  real launchers start examples/01_init, which prints "rank R of W is here"; Slurm is played by processes with its
        variables, so that this needs no Slurm; slurm_test.py asks a real one.

    launchers.py mpirun.openmpi|mpirun.mpich|slurm PROGRAM
"""
import os
import pathlib
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "harness"))
from own_net import go_alone  # noqa: E402

RANKS, JOBS, LIMIT_S, SKIPPED = 3, 3, 60, 77
OF_A_JOB = ("RANK", "WORLD_SIZE", "LOCAL_", "MASTER_", "TORCHELASTIC_", "TUTTI_", "SLURM_", "OMPI_", "PMI", "MPI_")


def environment(extra=()):
    env = {name: value for name, value in os.environ.items() if not name.startswith(OF_A_JOB)}
    env.update(extra)
    return env


def start(command, env):
    return subprocess.Popen(command, env=env, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)


def finish(processes):
    """What each said; ends those that take too long."""
    said = []
    for process in processes:
        try:
            said.append(process.communicate(timeout=LIMIT_S)[0])
        except subprocess.TimeoutExpired:
            process.kill()
            said.append(process.communicate()[0] + "\n(ended after %d s)" % LIMIT_S)
    return said


def check(text, ranks):
    lines = sorted(line for line in text.splitlines() if line.startswith("rank "))
    if lines != ["rank %d of %d is here" % (rank, ranks) for rank in range(ranks)]:
        sys.exit("a job of %d ranks said:\n%s" % (ranks, text))


def mpirun(launcher, program):
    if shutil.which(launcher) is None:
        print("skipped: there is no", launcher)
        sys.exit(SKIPPED)
    env = environment({"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"})
    command = [launcher] + (["--oversubscribe"] if "openmpi" in launcher else [])
    probe = subprocess.run(command + ["-n", "1", "true"], env=env, capture_output=True, text=True, timeout=LIMIT_S)
    if probe.returncode != 0:
        print("skipped:", launcher, "does not start anything here:", probe.stderr.strip().splitlines()[:1])
        sys.exit(SKIPPED)
    plain = command + ["-n", str(RANKS), program]
    wrapped = command + ["-n", str(RANKS), "sh", "-c", '"$0"; exit $?', program]
    jobs = [start(plain if job % 2 == 0 else wrapped, env) for job in range(JOBS)]
    for said in finish(jobs):
        check(said, RANKS)


def slurm_job(job, nodes, program):
    ranks = []
    for rank in range(RANKS):
        env = environment({"SLURM_JOB_ID": str(os.getpid()), "SLURM_STEP_ID": str(job), "SLURM_PROCID": str(rank),
                           "SLURM_NTASKS": str(RANKS), "SLURM_STEP_NUM_NODES": str(nodes), "SLURM_LOCALID": "0",
                           "SLURMD_NODENAME": ("localhost", "x")[rank % nodes], "SLURM_STEP_NODELIST": "localhost,[x-z]"})
        ranks.append(start([program], env))
    return ranks


def slurm(program):
    for nodes in (1, 2):  # told by a beacon; a port made of job and step, on the first host of the list
        jobs = [slurm_job(10 * nodes + job, nodes, program) for job in range(JOBS)]
        for job in jobs:
            check("".join(finish(job)), RANKS)


if __name__ == "__main__":
    if sys.argv[1] == "slurm":
        go_alone()  # a port made of the job's name may be another test's
        slurm(sys.argv[2])
    else:
        mpirun(sys.argv[1], sys.argv[2])
