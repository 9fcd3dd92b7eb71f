# SPDX-License-Identifier: BSD-3-Clause
"""Backend "mpi" under one of the mpiruns.

Goal    ranks      what mpi_ranks.c and
        failures   mpi_failures.c say holds, for two and for three ranks
        regroup    what mpi_regroup.c says holds, and mpirun says nothing against the end of that job
        beside     the same for mpi_beside.c, a program that calls MPI itself; it leaves nothing in MPI, and is refused, and not ended,
                   where it finds the plug-in of another library
        store      what mpi_store.c says holds: a store of the program's own
        worlds     a world that is not MPI's is refused by every rank, in words: never a world of one that says nothing; and one
                   that asks for encryption
        mnist      the tutorial's training is the same, loss by loss, as over our own backend
        matrix     the conformance matrix's core, for a few values
        debug_matrix  the same with the wrapper around it, "debug-mpi"
        device     on memory of GPUs, over the stand-in for the CUDA runtime: what mpi_device.c says holds, where the library claims to
                   take such memory (claims_cuda.c has it do so) and where it does not; it is noticed if the program's stream is not
                   waited for
        device_matrix  the matrix's core on such memory
Method  programs under mpirun, with the plug-in that was built with its library; those that must fail, with another.

    mpi_test.py ranks|failures|regroup|store|beside|worlds|mnist|matrix|debug_matrix mpirun.openmpi|mpirun.mpich --bin DIR --plugins DIR
    mpi_test.py device|device_matrix mpirun.openmpi|mpirun.mpich --bin DIR --plugins DIR --cudart FILE --claims FILE
"""
import argparse
import os
import pathlib
import re
import shutil
import socket
import subprocess
import sys
import tempfile

LIMIT_S, SKIPPED = 75, 77
ENCRYPTION = "the backend 'mpi' sends in the clear, and TUTTI_TLS asks for encryption"
OF_A_JOB = ("RANK", "WORLD_SIZE", "LOCAL_", "MASTER_", "TORCHELASTIC_", "TUTTI_", "FAKE_", "SLURM_", "OMPI_", "PMI", "MPI_")
# Processes that wait give up their core: there may be more of them than cores.
KIND = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMPI_MCA_mpi_yield_when_idle": "1"}


def environment(extra=()):
    env = {name: value for name, value in os.environ.items() if not name.startswith(OF_A_JOB)}
    env.update(KIND)
    env.update(extra)
    return env


def what_is_left(process):
    """What one said that has been asked to end."""
    try:
        return process.communicate(timeout=10)[0]
    except subprocess.TimeoutExpired:
        process.kill()
        return process.communicate()[0]


def run(command, env, ok=True, forgiven=None):
    """What it said. One that ends too late, or another way than it should, ends this, but for one that said what is forgiven."""
    process = subprocess.Popen(command, env=env, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    try:
        said = process.communicate(timeout=LIMIT_S)[0]
    except subprocess.TimeoutExpired:
        process.terminate()  # mpirun, asked like this, ends its ranks
        sys.exit("%s\nhas not ended within %d s; it said:\n%s" % (command, LIMIT_S, what_is_left(process)))
    if ok is not None and (process.returncode == 0) != ok and (forgiven is None or forgiven not in said):
        sys.exit("%s\nended with %d; it said:\n%s" % (command, process.returncode, said))
    return said


class Job:
    def __init__(self, options):
        self.bin = pathlib.Path(options.bin)
        self.plugins = pathlib.Path(options.plugins)
        self.launcher = options.launcher
        self.options = options
        self.name = options.launcher.split(".")[-1]
        self.head = [self.launcher] + (["--oversubscribe"] if self.name == "openmpi" else [])

    def backend(self, plugin=None, **extra):
        path = self.plugins / (plugin or self.name)
        return environment({"TUTTI_BACKEND": "mpi", "TUTTI_PLUGIN_PATH": str(path), **extra})

    def others(self):
        """Plug-ins that were built for another library."""
        return [d.name for d in self.plugins.iterdir() if d.name != self.name and (d / "tutti-backend-mpi.so").exists()]

    def ranks(self, n, *command):
        return self.head + ["-n", str(n)] + [str(word) for word in command]


def check_lines(said, n):
    for rank in range(n):
        if "rank %d of %d: fine" % (rank, n) not in said.splitlines():
            sys.exit("rank %d of %d has not said that it is fine:\n%s" % (rank, n, said))


def ranks(job):
    for n in (2, 3):
        check_lines(run(job.ranks(n, job.bin / "mpi_ranks"), job.backend()), n)


def failures(job):
    for n in (2, 3):  # how it ends is mpirun's to say, which sees processes that have not finalized
        check_lines(run(job.ranks(n, job.bin / "mpi_failures"), job.backend(), ok=None), n)


def regroup(job):
    for n in (2, 3):
        said = run(job.ranks(n, job.bin / "mpi_regroup"), job.backend())
        check_lines(said, n)
        if "without MPI_Finalize" in said:
            sys.exit("a refusal is taken for a failure:\n" + said)


def store(job):
    with tempfile.TemporaryDirectory() as scratch:
        check_lines(run(job.ranks(2, job.bin / "mpi_store", scratch + "/store"), job.backend()), 2)


def run_early(job, program, level):
    """MPICH lets its locks be from the moment in which MPI_Finalize begins, before it tells anybody; if the plug-in's thread is within a
    call then, one stays locked, and MPICH ends the process for it. That happens once in a hundred times, and is tried again."""
    locked = "pthread_mutex_destroy: Device or resource busy" if job.name == "mpich" else None
    for _ in range(2):
        said = run(job.ranks(2, program, level), job.backend(), forgiven=locked)
        if locked is None or locked not in said:
            return said
    return run(job.ranks(2, program, level), job.backend())


def beside(job):
    program = job.bin / ("mpi_beside_" + job.name)
    for level in ("multiple", "funneled", "first", "second"):
        look_beside(level, run(job.ranks(2, program, level), job.backend()))
    for level in ("early", "early-theirs"):
        look_beside(level, run_early(job, program, level))
    for other in job.others():
        said = run(job.ranks(2, program, "other"), job.backend(other))
        check_lines(said, 2)


def look_beside(level, said):
    check_lines(said, 2)
    if "leaked" in said:  # MPICH counts what a program has made, and not freed, when it ends
        sys.exit("%s: something of MPI's was left when it ended:\n%s" % (level, said))


def reserved_port():
    """One that nobody else is given while this is open; it does not listen, so a server, which sets SO_REUSEADDR, can."""
    s = socket.socket()
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    s.bind(("127.0.0.1", 0))
    return s


def refused(what, command, env, words):
    said = run(command, env, ok=False)
    if words not in said or "fine" in said:
        sys.exit("%s: no '%s' in what was said:\n%s" % (what, words, said))
    if "the store at" in said:  # of rank 0, which has left before all had been told
        sys.exit("%s: a rank knows only that it has lost the store:\n%s" % (what, said))
    return said


def worlds(job):
    program = job.bin / "mpi_ranks"
    for other in job.others():
        refused("the library of " + other, job.ranks(3, program), job.backend(other), "has 3 ranks, but MPI's world has 1")
    said = refused("no mpirun", [str(job.bin / "tutti"), "run", "--standalone", "--nproc-per-node=2", str(program)], job.backend(),
            "has 2 ranks, but MPI's world has 1")
    if "mpirun will end" in said:
        sys.exit("no mpirun: its doings are told:\n" + said)
    swapped = 'own=${OMPI_COMM_WORLD_RANK-$PMI_RANK}; exec env RANK=$((1 - own)) WORLD_SIZE=2 "$0"'
    with reserved_port() as port:
        meeting = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port.getsockname()[1])}
        refused("other numbers", job.ranks(2, "sh", "-c", swapped, program), job.backend(**meeting), "of MPI's world")
    alone = 'exec env RANK=0 WORLD_SIZE=1 MASTER_PORT=0 "$0"'
    said = refused("worlds of one", job.ranks(2, "sh", "-c", alone, program), job.backend(MASTER_ADDR="127.0.0.1"),
            "has 1 ranks, but MPI's world has 2")
    if "mpirun will end the other ranks" not in said:
        sys.exit("worlds of one: nothing was said of the other ranks:\n" + said)
    refused("encryption", job.ranks(2, program), job.backend(TUTTI_TLS="1"), ENCRYPTION)
    refused("encryption, before the job", [str(job.bin / "tutti"), "doctor", "env"], job.backend(TUTTI_TLS="1"), ENCRYPTION)
    run([str(job.bin / "tutti"), "doctor", "env"], job.backend())


def losses(path):
    return pathlib.Path(path).read_text().split()


def mnist(job):
    with tempfile.TemporaryDirectory() as scratch:
        data = scratch + "/digits"
        run([str(job.bin / "make_digits"), data, "--train", "640", "--test", "100"], environment())
        train = [str(job.bin / "mnist"), "--data", data, "--epochs", "1", "--batch", "64", "--global-batches", "--losses"]
        said = run(job.ranks(2, *train, scratch + "/mpi"), job.backend())
        if "parameters are bitwise equal on all ranks (2)" not in said:
            sys.exit("ranks have other parameters:\n" + said)
        run([str(job.bin / "tutti"), "run", "--standalone", "--nproc-per-node=2"] + train + [scratch + "/native"], environment())
        ours, theirs = losses(scratch + "/native"), losses(scratch + "/mpi")
        if ours != theirs or len(ours) != 10:
            sys.exit("losses over 'native': %s\nover 'mpi': %s" % (ours, theirs))


def core(job, n, backend, *chosen):
    with tempfile.TemporaryDirectory() as scratch:
        said = run(job.ranks(n, job.bin / "conformance_matrix", "--core", "--backend", backend, "--launched", scratch + "/board",
                             *chosen), job.backend())
        print(said)
        if "failed 0, skipped 0" not in said:
            sys.exit("not all cells were run and passed")


def matrix(job):
    core(job, 3, "mpi", "--size", "0,1,1000,65537")


def debug_matrix(job):  # each call has its meeting, of milliseconds
    core(job, 2, "debug-mpi", "--size", "0,1,1000", "--dtype", "f32,i64", "--red", "none,sum,max")


# Of these there are no messages; and what adds is in the matrix on memory of the host, with the same kernels.
ON_DEVICE = """all_reduce reduce reduce_scatter reduce_scatter_tensor broadcast all_gather all_gather_into_tensor gather scatter all_to_all
    all_to_all_single gather_v scatter_v all_gather_uneven all_gather_into_tensor_v reduce_scatter_tensor_v all_reduce_coalesced
    all_gather_coalesced all_gather_into_tensor_coalesced reduce_scatter_tensor_coalesced""".split()


def on_device(job, claims=True, **extra):
    path = "%s:%s" % (job.plugins / job.name, job.plugins)
    env = job.backend(TUTTI_CUDART_LIBRARY=job.options.cudart, **{"TUTTI_PLUGIN_PATH": path, **extra})
    return env, (["env", "LD_PRELOAD=" + job.options.claims] if claims else [])


def device_case(job, n, case, claims=True, **extra):
    with tempfile.TemporaryDirectory() as scratch:
        env, head = on_device(job, claims, **extra)
        said = run(job.ranks(n, *head, job.bin / "mpi_device", case, scratch + "/aside"), env, ok=None if case in ("differ", "stuck") else True)
    check_lines(said, n)  # where a group has failed its end is mpirun's to say
    return said


def wrong_numbers(said, n):
    found = [int(x) for x in re.findall(r"rank \d+: (\d+) of \d+ numbers are wrong", said)]
    if len(found) != n:
        sys.exit("not all said how many numbers are wrong:\n" + said)
    return found


def device(job):
    for n, seed in ((1, 1), (2, 2), (3, 3)):
        if any(wrong_numbers(device_case(job, n, "order", FAKE_CUDA_SEED=str(seed)), n)):
            sys.exit("numbers are wrong")
    if not any(any(wrong_numbers(device_case(job, 2, "order", FAKE_CUDA_SEED=str(seed), FAKE_CUDA_LEAVE_OUT="host"), 2))
               for seed in range(4, 9)):
        sys.exit("nobody has noticed that the stream was not waited for")
    said = device_case(job, 2, "refused", claims=False)
    print(said[said.index("refused:"):].splitlines()[0])
    for case in ("differ", "stuck"):
        device_case(job, 2, case)


def device_matrix(job):
    with tempfile.TemporaryDirectory() as scratch:
        env, head = on_device(job, FAKE_CUDA_DELAY_US="100")
        said = run(job.ranks(2, *head, job.bin / "conformance_matrix", "--core", "--backend", "mpi", "--device", "cuda", "--op",
                             ",".join(ON_DEVICE), "--launched", scratch + "/board", "--size", "0,1,1000,65537"), env)
        print(said)
        if "failed 0, skipped 0" not in said:
            sys.exit("not all cells were run and passed")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("what", choices=["ranks", "failures", "regroup", "store", "beside", "worlds", "mnist", "matrix", "debug_matrix", "device", "device_matrix"])
    parser.add_argument("launcher")
    parser.add_argument("--bin", required=True)
    parser.add_argument("--plugins", required=True)
    parser.add_argument("--cudart")
    parser.add_argument("--claims")
    options = parser.parse_args()
    job = Job(options)
    if shutil.which(job.launcher) is None:
        print("skipped: there is no", job.launcher)
        sys.exit(SKIPPED)
    probe = subprocess.run(job.ranks(1, "true"), env=environment(), capture_output=True, text=True, timeout=LIMIT_S)
    if probe.returncode != 0:
        print("skipped:", job.launcher, "does not start anything here:", probe.stderr.strip().splitlines()[:1])
        sys.exit(SKIPPED)
    globals()[options.what](job)


if __name__ == "__main__":
    main()
