# SPDX-License-Identifier: BSD-3-Clause
"""crew: the processes of one contender, and what is said with them.

A crew is started by the contender's own launcher; each of its ranks connects to a socket and sleeps in a read
(contender.c). Nothing is known here of rounds and rows.
"""
import os
import pathlib
import select
import signal
import socket
import subprocess
import time

HERE = pathlib.Path(__file__).resolve().parent
START_S, LEAVE_S = 90, 10
TOO_LONG = "no answer within"
PRODUCT = "bench_product.so"  # what is computed behind operations, for who is called from Python
RANK_VARIABLES = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")


class Lost(Exception):
    """A contender that will answer no more, and why."""


class Channel:
    """A rank's end of the socket: one line each way at a time."""

    def __init__(self, door):
        self.socket, _ = door.accept()
        self.reader = self.socket.makefile("r")

    def fileno(self):
        return self.socket.fileno()

    def tell(self, line):
        self.socket.sendall(f"{line}\n".encode())

    def hear(self):
        try:
            return self.reader.readline().strip()
        except OSError:
            return ""

    def close(self):
        self.reader.close()
        self.socket.close()


class Crew:
    """settings: bin, before, mpirun, torch, cores, cell_limit; scratch, a folder, and stems, names of files in it."""

    def __init__(self, name, ranks, settings):
        self.name, self.ranks, self.settings = name, ranks, settings
        self.processes, self.channels, self.version = [], {}, ""
        self.starts, self.why_gone = 0, None

    def command(self, place):
        """(arguments, whether a launcher starts all ranks)"""
        s = self.settings
        mine = [str(s.bin / f"contender_{self.name}"), *place]
        if self.name in ("tutti", "before"):
            folder = s.bin if self.name == "tutti" else s.before
            return [str(folder / "tutti"), "run", "--standalone", f"--nproc-per-node={self.ranks}",
                    str(folder / "contender_tutti"), *place], True
        if self.name == "openmpi":
            crowded = ["--oversubscribe", "--mca", "mpi_yield_when_idle", "1"] if self.ranks > s.cores else []
            return [s.mpirun["openmpi"], "-np", str(self.ranks), "--bind-to", "none", *crowded, *mine], True
        if self.name == "mpich":
            return [s.mpirun["mpich"], "-n", str(self.ranks), *mine], True
        if self.name == "gloo":
            init = pathlib.Path(place[1] + ".init")
            init.unlink(missing_ok=True)
            return [str(s.torch), "-B", str(HERE / "contender_gloo.py"), *place, str(init), str(s.bin / PRODUCT)], False
        return mine, False

    @staticmethod
    def environment(**more):
        """What all contenders are started with, and nothing of a job that we may be a part of."""
        env = {name: value for name, value in os.environ.items() if name not in RANK_VARIABLES}
        return dict(env, OMP_NUM_THREADS="1", OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1", **more)

    def spawn(self, arguments, env, log):
        self.processes.append(subprocess.Popen(arguments, env=env, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                               start_new_session=True))

    def launch(self, place, log):
        arguments, launcher = self.command(place)
        for rank in range(1 if launcher else self.ranks):
            mine = {} if launcher else {"RANK": str(rank), "WORLD_SIZE": str(self.ranks)}
            self.spawn(arguments, self.environment(GLOO_SOCKET_IFNAME="lo", **mine), log)

    def start(self):
        self.starts += 1
        stem = self.settings.scratch / f"{next(self.settings.stems)}-{self.name}"
        self.log = pathlib.Path(f"{stem}.log")
        pathlib.Path(f"{stem}.board").touch()
        with socket.socket(socket.AF_UNIX) as door, open(self.log, "wb") as log:
            door.bind(f"{stem}.sock")
            door.listen(self.ranks)
            self.launch((f"{stem}.sock", f"{stem}.board"), log)
            try:
                self.meet(door, time.monotonic() + START_S)
            except Lost as lost:
                self.end(by_force=True)
                self.why_gone = str(lost)
                raise

    def meet(self, door, deadline):
        while len(self.channels) < self.ranks:
            ready, _, _ = select.select([door], [], [], 0.2)
            if ready:
                channel = Channel(door)
                words = channel.hear().split(maxsplit=3)
                if len(words) < 3 or words[0] != "hello" or int(words[2]) != self.ranks:
                    raise Lost(f"it said {words} instead of hello")
                self.channels[int(words[1])] = channel
                self.version = words[3].strip() if len(words) > 3 and words[1] == "0" else self.version
            elif time.monotonic() > deadline or any(p.poll() is not None for p in self.processes):
                raise Lost(f"{len(self.channels)} of {self.ranks} ranks have come; {self.last_words()}")

    def last_words(self):
        text = self.log.read_text(errors="replace").split("\n")
        text = [line.strip() for line in text if line.strip(" -=*") != ""]
        return "its log ends: " + " | ".join(text[-3:]) if text else "its log is empty"

    def answers(self, deadline):
        """What each rank says, rank 0's first."""
        waiting, said = dict(self.channels), {}
        while waiting:
            ready, _, _ = select.select(list(waiting.values()), [], [], max(0.0, deadline - time.monotonic()))
            if not ready:
                raise Lost(f"{TOO_LONG} {self.settings.cell_limit:g} s")
            for rank in [r for r, channel in waiting.items() if channel in ready]:
                said[rank] = waiting.pop(rank).hear()
                if not said[rank]:
                    raise Lost(f"rank {rank} has ended; {self.last_words()}")
                if said[rank].startswith("failed"):
                    raise Lost(f"rank {rank}: {said[rank][7:]}")
        return [said[rank] for rank in sorted(said)]

    def ask(self, cell, verb="cell"):
        """The words of rank 0 about a cell. Lost when there will be none; then the crew is gone."""
        if not self.channels:
            self.start()
        try:
            for channel in self.channels.values():
                channel.tell(f"{verb} {cell}")
            said = self.answers(time.monotonic() + self.settings.cell_limit)[0]
            self.starts = 0
            return said
        except (Lost, OSError) as lost:
            self.end(by_force=True)
            raise Lost(str(lost)) from None

    def end(self, by_force=False):
        for channel in self.channels.values():
            channel.close()
        self.channels = {}
        deadline = time.monotonic() + (0 if by_force else LEAVE_S)
        for process in self.processes:
            try:
                process.wait(max(0, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                pass
            try:
                os.killpg(process.pid, signal.SIGKILL)  # a launcher's ranks, too
            except ProcessLookupError:
                pass
            process.wait()
        self.processes = []


def torch_python():
    named = os.environ.get("TUTTI_TORCH_PYTHON")
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return pathlib.Path(named or os.path.join(cache, "tutti", "torch-venv", "bin", "python"))
