#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""peers: tutti, Open MPI, MPICH, PyTorch's gloo and the machine's limits, in one run.

Why     Times of different runs, or of different minutes, do not compare on a machine that others share.
How     For each round and number of ranks every contender is started once, by its own launcher, and sleeps in a
        read (contender.c). Cell after cell each is asked to measure for a while, one after the other, in an order
        that rotates; what was measured together is written together. Before and after each cell two processes
        exchange lines, which tells whether the two cores are near each other or far: report.py compares only
        within a round, and within a label.
        With an end in sight (--minutes) the while is what is left, divided by the cells that are left, less what
        cells have been found to cost besides: rows say how many calls that gave.
True    A cell stands in the file completely or not at all: a run that ended early is taken up where it was by
        the same command. Nobody is left out in silence: a contender that is missing, refuses a cell, takes too
        long or returns a wrong result has a row that says so.
Fails   A contender that fails is ended and started anew for the next cell. One that answers nothing between three
        starts is given up for this number of ranks. An operation that takes too long is given up from that size
        and number of ranks on, also when the run is taken up again.

usage: peers.py --bin DIR --out FILE [options]; make bench-peers, make bench-peers-full
"""
import argparse
import itertools
import os
import pathlib
import platform
import random
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

import report
import rows

HERE = pathlib.Path(__file__).resolve().parent
OPS = ("all_reduce", "broadcast", "reduce", "all_gather", "reduce_scatter", "all_to_all", "send_recv")
REDUCTIONS = ("all_reduce", "reduce", "reduce_scatter")
CORE = (4, 8 << 10, 64 << 10, 512 << 10, 4 << 20, 32 << 20)
FULL = tuple(4 << (2 * i) for i in range(14))  # 4 B .. 256 MiB
BUDGET_MIN_MS, BUDGET_CORE_MS, BUDGET_FULL_MS = 20, 2000, 5000
BYPASS_FROM = 4 << 20  # limits also with stores past the caches
CONTENDERS = ("tutti", "registered", "openmpi", "mpich", "gloo", "limit")
# Who is measured by the processes of whom: tutti's, on memory that it gave out.
SERVED_BY = {"registered": "tutti", "before-registered": "before"}
STARTS_MAX = 3
START_S, LEAVE_S = 90, 10
LINE_MS = 40
TOO_LONG = "no answer within"


def say(text):
    print(text, flush=True)


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


# ---- one contender, with so many ranks -------------------------------------------------------------------

class Crew:
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
            return [str(s.torch), "-B", str(HERE / "contender_gloo.py"), *place, str(init)], False
        return mine, False

    def launch(self, place, log):
        arguments, launcher = self.command(place)
        env = dict(os.environ, OMP_NUM_THREADS="1", GLOO_SOCKET_IFNAME="lo", OMPI_ALLOW_RUN_AS_ROOT="1",
                   OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
        for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT"):
            env.pop(name, None)
        for rank in range(1 if launcher else self.ranks):
            if not launcher:
                env.update(RANK=str(rank), WORLD_SIZE=str(self.ranks))
            self.processes.append(subprocess.Popen(arguments, env=env, stdin=subprocess.DEVNULL, stdout=log,
                                                   stderr=log, start_new_session=True))

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


# ---- who is there ----------------------------------------------------------------------------------------

def torch_python():
    named = os.environ.get("TUTTI_TORCH_PYTHON")
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return pathlib.Path(named or os.path.join(cache, "tutti", "torch-venv", "bin", "python"))


def why_missing(name, settings):
    """None: it can be started."""
    name = SERVED_BY.get(name, name)
    if name == "gloo":
        if not settings.torch.exists():
            return f"{settings.torch} is not there; next: make torch-venv, or TUTTI_TORCH_PYTHON"
        words = "import torch.distributed as d; assert d.is_gloo_available()"
        asked = subprocess.run([settings.torch, "-c", words], capture_output=True, check=False)
        return None if asked.returncode == 0 else f"{settings.torch} has no torch.distributed with gloo"
    if name == "before":
        there = settings.before is not None and all((settings.before / n).exists() for n in ("tutti", "contender_tutti"))
        return None if there else f"{settings.before} has no tutti and contender_tutti; next: --before DIR"
    if not (settings.bin / f"contender_{name}").exists():
        return f"contender_{name} is not built; next: make bench-deps"
    if name in settings.mpirun and settings.mpirun[name] is None:
        return f"there is no mpirun.{name}; next: make bench-deps"
    return None


# ---- the grid --------------------------------------------------------------------------------------------

class Grid:
    """The cells that the settings ask for: (op, dtype, bytes), in the order of measuring."""

    def __init__(self, settings):
        self.cells = [("barrier", settings.dtypes[0], 0)] if "barrier" in settings.ops else []
        for dtype in settings.dtypes:
            for op in settings.ops:
                if op != "barrier" and (dtype == settings.dtypes[0] or op in REDUCTIONS):
                    self.cells += [(op, dtype, size) for size in settings.sizes]

    def of_round(self, seed, ranks, number, done):
        cells = [c for c in self.cells if (ranks, number, *c) not in done]
        random.Random(f"{seed} {ranks} {number}").shuffle(cells)
        return cells


def forms_of(name, op, size):
    if op == "barrier" and name in SERVED_BY:
        return []
    if name != "limit":
        return ["plain"]
    if op == "barrier":
        return []
    return ["pass", "staged", "bare", "bare-pass"] + (["pass-nt", "staged-nt"] if size >= BYPASS_FROM else [])


class Plan:
    """How long contenders may take, and how long all will.

    A visit is a cell of a round. What it costs besides the measuring (starting, filling, checking, answers) is
    found out as visits go by, for each number of ranks; what was not visited yet costs in proportion to ranks."""
    GUESS_S = 0.15  # for a rank of a contender, before anything is known

    def __init__(self, settings, visits):
        self.settings, self.left = settings, dict(visits)  # {ranks: visits}
        self.spent, self.n = {}, {}
        self.asking = max(1, len([n for n in settings.contenders if n not in settings.missing]))

    def besides_s(self, ranks):
        """Seconds of a visit that are not measuring."""
        if self.n.get(ranks):
            return self.spent[ranks] / self.n[ranks]
        known = [self.spent[r] / self.n[r] / r for r in self.n]
        return ranks * (max(known) if known else self.GUESS_S * self.asking)

    def budget_ms(self):
        s = self.settings
        if s.budget_ms is not None:
            return s.budget_ms
        if s.grid == "full" or s.minutes is None:
            return BUDGET_FULL_MS
        besides = sum(n * self.besides_s(ranks) for ranks, n in self.left.items())
        visits = max(1, sum(self.left.values()))
        time_left = s.deadline - time.monotonic() - besides
        return int(min(BUDGET_CORE_MS, max(BUDGET_MIN_MS, 1000 * time_left / visits / self.asking)))

    def visited(self, ranks, wall_s, budget_ms):
        self.left[ranks] -= 1
        self.n[ranks] = self.n.get(ranks, 0) + 1
        self.spent[ranks] = self.spent.get(ranks, 0) + wall_s - self.asking * budget_ms / 1000

    def minutes_left(self):
        measuring = self.asking * self.budget_ms() / 1000
        return sum(n * max(0.1, self.besides_s(ranks) + measuring) for ranks, n in self.left.items()) / 60


class Measuring:
    def __init__(self, settings, part, old, out):
        self.settings, self.part, self.out = settings, part, out
        self.done = {(r["ranks"], r["round"], r["op"], r["dtype"], r["bytes"]) for r in old}
        self.grid = Grid(settings)
        self.plan = Plan(settings, {ranks: sum(len(self.cells_of(ranks, number)) for number in range(settings.rounds))
                                    for ranks in settings.ranks})
        self.crews, self.versions = {}, {}
        self.line_crew = Crew("limit", 2, settings) if settings.cores > 1 and settings.has_limit else None
        self.slow = {(r["contender"], r["op"], r["ranks"], r["bytes"]) for r in old if TOO_LONG in r["status"]}

    def cells_of(self, ranks, number):
        return self.grid.of_round(self.settings.seed, ranks, number, self.done)

    def line_ns(self):
        """A line exchange of two processes; None where there are no two cores or no limits."""
        if self.line_crew is None:
            return None
        try:
            said = self.line_crew.ask(f"line f32 0 plain blocking warm {LINE_MS} 0 ordinary").split()
        except Lost as lost:
            say(f"no line exchange: {lost}")
            self.line_crew = None
            return None
        return float(said[8]) * 1000

    def row(self, ranks, number, cell, name, form):
        op, dtype, size = cell
        s = self.settings
        return {"part": self.part, "commit": s.commit, "seed": s.seed, "cores": s.cores, "round": number,
                "ranks": ranks, "op": op, "dtype": dtype, "bytes": size, "mode": s.mode,
                "buffers": s.buffers, "memory": "registered" if name in SERVED_BY else "ordinary", "contender": name,
                "form": form}

    def too_slow(self, name, ranks, op, size):
        return any(name == n and op == o and ranks >= r and size >= s for n, o, r, s in self.slow)

    def ask(self, name, ranks, cell, form, whole_ms):
        """The fields of a row that measuring gives."""
        op, dtype, size = cell
        s = self.settings
        crew = self.crews[SERVED_BY.get(name, name)]
        memory = "registered" if name in SERVED_BY else "ordinary"
        if self.too_slow(name, ranks, op, size):
            return {"status": "not asked: too slow before"}
        if crew.starts >= STARTS_MAX and not crew.channels:
            return {"status": f"given up after {STARTS_MAX} starts without an answer"}
        budget = whole_ms if crew.name != "limit" else max(BUDGET_MIN_MS, whole_ms // 4)
        mode, buffers = (s.mode, s.buffers) if crew.name != "limit" else ("blocking", "warm")
        try:
            said = crew.ask(f"{op} {dtype} {size} {form} {mode} {buffers} {budget} {s.seed} {memory}").split()
        except Lost as lost:
            if TOO_LONG in str(lost):
                self.slow.add((name, op, ranks, size))
            say(f"  {name}, {ranks} ranks, {op} {dtype} {size}: {lost}")
            return {"status": f"failed: {lost}"}
        self.versions.setdefault(crew.name, crew.version)
        if said[0] != "ok":
            return {"status": " ".join(said)}
        if memory not in (said[11:] or ["ordinary"]):
            return {"status": f"cannot: a build that knows no {memory} memory"}
        names = ("calls", "least_us", "p10_us", "median_us", "p90_us", "p99_us", "chained", "each_us")
        found = {name: rows.NUMBERS[name](text) for name, text in zip(names, said[1:])}
        return {"status": "ok", "moved": int(said[10]), **found}

    def cell(self, ranks, number, index, cell):
        begun, budget_ms = time.monotonic(), self.plan.budget_ms()
        before = self.line_ns()
        load = os.getloadavg()[0]
        found = []
        names = [n for n in self.settings.contenders if n not in self.settings.missing]
        first = (number + index) % len(names)
        for name in names[first:] + names[:first]:
            for form in forms_of(name, cell[0], cell[2]):
                row = self.row(ranks, number, cell, name, form)
                row.update(self.ask(name, ranks, cell, form, budget_ms))
                found.append(row)
        after = self.line_ns()
        label = rows.label_of(before, after, self.settings.near_below)
        for row in found:
            row.update(line_before_ns=before, line_after_ns=after, load=load, label=label)
            self.out.write(rows.write(row))
        self.out.flush()
        self.plan.visited(ranks, time.monotonic() - begun, budget_ms)

    def yields(self, ranks, number):
        """What it costs that every process gives its core away once: the floor of crowded tiny operations."""
        for op in ("yield", "empty") if "limit" in self.crews else ():
            row = self.row(ranks, number, (op, "f32", 0), "limit", "plain")
            row.update(self.ask("limit", ranks, (op, "f32", 0), "plain", self.plan.budget_ms()), label="-")
            self.out.write(rows.write(row))

    def round(self, ranks, number):
        """Whether there was time for all of it."""
        s, cells = self.settings, self.cells_of(ranks, number)
        if not cells:
            return True
        crews = {SERVED_BY.get(n, n) for n in s.contenders if n not in s.missing}
        self.crews = {n: Crew(n, ranks, s) for n in sorted(crews)}
        say(f"round {number + 1} of {s.rounds}, {ranks} ranks: {len(cells)} cells, {self.plan.budget_ms()} ms for a "
            f"contender; about {self.plan.minutes_left():.0f} minutes to the end of all; "
            f"load {os.getloadavg()[0]:.2f}, line {self.line_ns() or 0:.0f} ns")
        self.yields(ranks, number)
        for index, cell in enumerate(cells):
            if time.monotonic() > s.deadline:
                return False
            self.cell(ranks, number, index, cell)
        self.end_crews()
        return True

    def all_rounds(self):
        return all(self.round(ranks, number) for number in range(self.settings.rounds)
                   for ranks in self.settings.ranks)

    def end_crews(self):
        for crew in self.crews.values():
            crew.end()
        self.crews = {}


# ---- around it -------------------------------------------------------------------------------------------

def commit(folder=HERE):
    def git(*words):
        return subprocess.run(["git", "-C", folder, *words], capture_output=True, text=True,
                              check=False).stdout.strip()
    found = git("rev-parse", "--short", "HEAD")
    return "unknown" if not found else found + ("+" if git("status", "--porcelain", "-uno") else "")


def first_of(path, start):
    try:
        return next((line.split(":", 1)[1].strip() for line in open(path) if line.startswith(start)), "?")
    except OSError:
        return "?"


def text_of(path):
    try:
        return pathlib.Path(path).read_text().strip()
    except OSError:
        return "?"


def environment(settings, versions):
    facts = {
        "date": time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime()),
        "kernel": f"{platform.system()} {platform.release()} {platform.machine()}",
        "processor": first_of("/proc/cpuinfo", "model name"), "flags": first_of("/proc/cpuinfo", "flags"),
        "cores": settings.cores, "memory": first_of("/proc/meminfo", "MemTotal"),
        "clock source": text_of("/sys/devices/system/clocksource/clocksource0/current_clocksource"),
        "huge pages": text_of("/sys/kernel/mm/transparent_hugepage/enabled"),
        "governor": text_of("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
        "commit": settings.commit, "command": " ".join(sys.argv),
        "commit before": commit(settings.before) if settings.before is not None else "-",
        "load at the start": "%.2f %.2f %.2f" % os.getloadavg(),
        "settings": f"budget {settings.budget_ms or 'what the time allows'} ms, minutes {settings.minutes}, "
                    f"rounds {settings.rounds}, seed {settings.seed}, "
                    f"near below {settings.near_below} ns, {settings.mode}, {settings.buffers}",
        "pinning": "rank r on core r % cores, all contenders",
        "variables": " ".join(f"{k}={v}" for k, v in sorted(os.environ.items())
                              if k.startswith(("TUTTI_", "OMPI_MCA", "MPIR_CVAR", "GLOO_", "OMP_"))) or "none",
    }
    facts.update({f"contender {name}": version or "no version" for name, version in sorted(versions.items())})
    facts.update({f"missing {name}": why for name, why in settings.missing.items()})
    return "".join(f"{name}\t{value}\n" for name, value in facts.items())


def numbers(text):
    units = {"K": 1 << 10, "M": 1 << 20}
    return tuple(int(w[:-1]) * units[w[-1].upper()] if w[-1].upper() in units else int(w) for w in text.split(","))


def arguments():
    p = argparse.ArgumentParser(description="tutti and its peers in one run")
    p.add_argument("--bin", type=pathlib.Path, required=True, help="where contender_* and tutti were built")
    p.add_argument("--out", type=pathlib.Path, required=True, help="rows; what is there already is not repeated")
    p.add_argument("--grid", choices=("core", "full"), default="core")
    p.add_argument("--ops", type=lambda t: tuple(t.split(",")), default=OPS + ("barrier",))
    p.add_argument("--sizes", type=numbers, help="bytes, as 4,8K,32M")
    p.add_argument("--ranks", type=numbers, default=(2, 4, 8))
    p.add_argument("--dtypes", type=lambda t: tuple(t.split(",")), default=("f32",),
                   help="from the second on only reductions")
    p.add_argument("--contenders", type=lambda t: tuple(t.split(",")), default=CONTENDERS,
                   help=",".join(CONTENDERS) + ", before, before-registered")
    p.add_argument("--before", type=pathlib.Path,
                   help="where an older build's tutti and contender_tutti are: the contender before")
    p.add_argument("--brief", action="store_true", help="a line for each cell when it is over")
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--minutes", type=float, help="end by then (core: 40; full: no end)")
    p.add_argument("--budget-ms", type=int,
                   help="for a contender and cell (core: what the minutes allow, 20 to 2000; full: 5000)")
    p.add_argument("--cell-limit", type=float, default=15,
                   help="s until a contender that does not answer is ended")
    p.add_argument("--mode", choices=("blocking", "async"), default="blocking")
    p.add_argument("--buffers", choices=("warm", "cold"), default="warm")
    p.add_argument("--near-below", type=float, default=200, help="ns of a line exchange")
    p.add_argument("--seed", type=int, default=1)
    return p.parse_args()


def complete(s):
    """What follows from the arguments and the machine."""
    s.sizes = s.sizes or (CORE if s.grid == "core" else FULL)
    s.minutes = s.minutes if s.minutes is not None else 40 if s.grid == "core" else None
    s.deadline = time.monotonic() + s.minutes * 60 if s.minutes is not None else float("inf")
    if s.before is not None and not {"before", "before-registered"} & set(s.contenders):
        s.contenders += ("before",)
    s.cores = len(os.sched_getaffinity(0))
    s.commit = commit()
    s.mpirun = {name: shutil.which(f"mpirun.{name}") for name in ("openmpi", "mpich")}
    s.torch = torch_python()
    s.missing = {n: why for n in s.contenders if (why := why_missing(n, s)) is not None}
    s.has_limit = "limit" in s.contenders and "limit" not in s.missing
    return s


def measure(s, out, part, old):
    """Whether the grid is complete. The environment is written whatever happens."""
    m = Measuring(s, part, old, out)
    try:
        return m.all_rounds()
    finally:
        m.end_crews()
        if m.line_crew is not None:
            m.line_crew.end()
        with open(f"{s.out}.env", "a") as env:
            env.write(f"part\t{part}\n" + environment(s, m.versions) + "\n")


def main():
    s = complete(arguments())
    for name, why in s.missing.items():
        say(f"missing: {name}: {why}")
    if len(s.missing) == len(s.contenders):
        sys.exit("peers: nobody to measure")
    old = rows.read(open(s.out)) if s.out.exists() else []
    part = max((r["part"] for r in old), default=-1) + 1
    say(f"{s.grid} grid into {s.out}: {len(Grid(s).cells)} cells, ranks {s.ranks}, {s.rounds} rounds, " +
        (f"at most {s.minutes:g} minutes" if s.minutes is not None else "without an end") +
        (f", taken up: part {part}" if old else ""))
    if os.getloadavg()[0] > 0.5:
        say(f"the machine is busy (load {os.getloadavg()[0]:.2f}): these figures will tell little")
    s.out.parent.mkdir(parents=True, exist_ok=True)
    fast = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    with tempfile.TemporaryDirectory(prefix="tutti-bench-", dir=fast) as scratch, open(s.out, "a") as out:
        s.scratch, s.stems = pathlib.Path(scratch), itertools.count()
        if not old:
            out.write("\t".join(rows.COLUMNS) + "\n")
        for name, why in s.missing.items():
            out.write(f"# missing: {name}: {why}\n")
        whole = measure(s, out, part, old)
    say(f"{s.out}: complete" if whole else f"{s.out}: time is up; the same command goes on from here")
    if s.brief:
        print(report.brief([rows.read(open(s.out))]), end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
