# SPDX-License-Identifier: BSD-3-Clause
"""rounds: a grid of cells, measured by everybody in turn, round after round, at one place after the other.

A place is where a grid is measured: a number of ranks on this host (peers.py), or a network (net.py). What is the same at
all of them stands here: who is asked when and for how long, what becomes of answers and of their absence, and taking up a
run where it was. A subclass of Measuring says who the crews are, and what is found out beside the cells.
"""
import itertools
import os
import pathlib
import platform
import random
import signal
import subprocess
import sys
import tempfile
import time

import rows
from crew import HERE, TOO_LONG, Lost

REDUCTIONS = ("all_reduce", "reduce", "reduce_scatter")
BUDGET_MIN_MS, BUDGET_CORE_MS, BUDGET_FULL_MS = 20, 2000, 5000
# Who is measured by the processes of whom: tutti's, on memory that it gave out.
SERVED_BY = {"registered": "tutti", "before-registered": "before"}
STARTS_MAX = 3


def say(text):
    print(text, flush=True)


# ---- what, and for how long ------------------------------------------------------------------------------

class Grid:
    """The cells that the settings ask for: (op, dtype, bytes), in the order of measuring."""

    def __init__(self, settings):
        self.cells = [("barrier", settings.dtypes[0], 0)] if "barrier" in settings.ops else []
        for dtype in settings.dtypes:
            for op in settings.ops:
                if op != "barrier" and (dtype == settings.dtypes[0] or op in REDUCTIONS):
                    self.cells += [(op, dtype, size) for size in settings.sizes]

    def of_round(self, seed, place, number, done):
        cells = [c for c in self.cells if (str(place), number, *c) not in done]
        random.Random(f"{seed} {place} {number}").shuffle(cells)
        return cells


class Plan:
    """How long contenders may take, and how long all will.

    A visit is a cell of a round. What it costs besides the measuring (starting, filling, checking, answers) is
    found out as visits go by, for each place; what was not visited yet costs in proportion to its ranks."""
    GUESS_S = 0.15  # for a rank of a contender, before anything is known

    def __init__(self, settings, visits, ranks_of=int):
        self.settings, self.left, self.ranks_of = settings, dict(visits), ranks_of  # {place: visits}
        self.spent, self.n = {}, {}
        self.asking = max(1, len([n for n in settings.contenders if n not in settings.missing]))

    def besides_s(self, place):
        """Seconds of a visit that are not measuring."""
        if self.n.get(place):
            return self.spent[place] / self.n[place]
        known = [self.spent[p] / self.n[p] / self.ranks_of(p) for p in self.n]
        return self.ranks_of(place) * (max(known) if known else self.GUESS_S * self.asking)

    def budget_ms(self):
        s = self.settings
        if s.budget_ms is not None:
            return s.budget_ms
        if s.grid == "full" or s.minutes is None:
            return BUDGET_FULL_MS
        besides = sum(n * self.besides_s(place) for place, n in self.left.items())
        visits = max(1, sum(self.left.values()))
        time_left = s.deadline - time.monotonic() - besides
        return int(min(BUDGET_CORE_MS, max(BUDGET_MIN_MS, 1000 * time_left / visits / self.asking)))

    def visited(self, place, wall_s, budget_ms):
        self.left[place] -= 1
        self.n[place] = self.n.get(place, 0) + 1
        self.spent[place] = self.spent.get(place, 0) + wall_s - self.asking * budget_ms / 1000

    def minutes_left(self):
        measuring = self.asking * self.budget_ms() / 1000
        return sum(n * max(0.1, self.besides_s(place) + measuring) for place, n in self.left.items()) / 60


class Measuring:
    """place: whatever str() tells apart from others, and ranks_of() gives a number of ranks to."""

    def __init__(self, settings, part, old, out):
        self.settings, self.part, self.out = settings, part, out
        self.done = {(self.place_of(r), r["round"], r["op"], r["dtype"], r["bytes"]) for r in old}
        self.grid = Grid(settings)
        self.plan = Plan(settings, {place: sum(len(self.cells_of(place, number)) for number in range(settings.rounds))
                                    for place in settings.places}, self.ranks_of)
        self.crews, self.versions = {}, {}
        self.slow = {(r["contender"], r["op"], self.place_of(r), r["bytes"]) for r in old if TOO_LONG in r["status"]}

    # ---- what subclasses say ----

    def place_of(self, row):
        """The str() of the place of a row."""
        raise NotImplementedError

    def ranks_of(self, place):
        raise NotImplementedError

    def make_crews(self, place, names):
        """{name: Crew} of those who take part there."""
        raise NotImplementedError

    def forms_of(self, name, cell, place):
        """The forms in which a contender is asked for a cell there."""
        raise NotImplementedError

    def is_as_slow(self, place, slow):
        """Whether what was too slow at a place, of which there is the str(), is at this one, too."""
        return str(place) == slow

    def conditions(self):
        """What the machine is like at the moment, of which label() gets two."""
        return None

    def label(self, place, before, after):
        """Fields of the rows of a cell that was measured between two conditions."""
        raise NotImplementedError

    def opening(self, place, number):
        """What is measured once in a round, at the beginning."""

    def facts(self):
        """{name: value} for the file beside the rows."""
        return {}

    def words_at_start(self):
        return f"load {os.getloadavg()[0]:.2f}"

    # ---- what is the same everywhere ----

    def cells_of(self, place, number):
        return self.grid.of_round(self.settings.seed, place, number, self.done)

    def row(self, place, number, cell, name, form):
        op, dtype, size = cell
        s = self.settings
        return {"part": self.part, "commit": s.commit, "seed": s.seed, "cores": s.cores, "round": number,
                "ranks": self.ranks_of(place), "op": op, "dtype": dtype, "bytes": size, "mode": s.mode,
                "buffers": s.buffers, "memory": "registered" if name in SERVED_BY else "ordinary", "contender": name,
                "form": form}

    def too_slow(self, name, place, op, size):
        return any(name == n and op == o and size >= s and self.is_as_slow(place, p) for n, o, p, s in self.slow)

    def ask(self, name, place, cell, form, whole_ms):
        """The fields of a row that measuring gives."""
        op, dtype, size = cell
        s = self.settings
        crew = self.crews[SERVED_BY.get(name, name)]
        memory = "registered" if name in SERVED_BY else "ordinary"
        if self.too_slow(name, place, op, size):
            return {"status": "not asked: too slow before"}
        if crew.starts >= STARTS_MAX and not crew.channels:
            return {"status": f"given up after {STARTS_MAX} starts without an answer"}
        budget = whole_ms if crew.name != "limit" else max(BUDGET_MIN_MS, whole_ms // 4)
        mode, buffers = (s.mode, s.buffers) if crew.name != "limit" else ("blocking", "warm")
        try:
            said = crew.ask(f"{op} {dtype} {size} {form} {mode} {buffers} {budget} {s.seed} {memory}").split()
        except Lost as lost:
            if TOO_LONG in str(lost):
                self.slow.add((name, op, str(place), size))
            say(f"  {name}, {place}, {op} {dtype} {size}: {lost}")
            return {"status": f"failed: {lost}"}
        self.versions.setdefault(crew.name, crew.version)
        if said[0] != "ok":
            return {"status": " ".join(said)}
        if memory not in (said[11:] or ["ordinary"]):
            return {"status": f"cannot: a build that knows no {memory} memory"}
        names = ("calls", "least_us", "p10_us", "median_us", "p90_us", "p99_us", "chained", "each_us")
        found = {name: rows.NUMBERS[name](text) for name, text in zip(names, said[1:])}
        return {"status": "ok", "moved": int(said[10]), **found}

    def write(self, found):
        for row in found:
            self.out.write(rows.write(row))
        self.out.flush()

    def cell(self, place, number, index, cell):
        begun, budget_ms = time.monotonic(), self.plan.budget_ms()
        before = self.conditions()
        load = os.getloadavg()[0]
        found = []
        names = [n for n in self.settings.contenders if n not in self.settings.missing]
        first = (number + index) % len(names)
        for name in names[first:] + names[:first]:
            for form in self.forms_of(name, cell, place):
                row = self.row(place, number, cell, name, form)
                row.update(self.ask(name, place, cell, form, budget_ms))
                found.append(row)
        after = self.conditions()
        for row in found:
            row.update(self.label(place, before, after), load=load)
        self.write(found)
        self.plan.visited(place, time.monotonic() - begun, budget_ms)

    def round(self, place, number):
        """Whether there was time for all of it."""
        s, cells = self.settings, self.cells_of(place, number)
        if not cells:
            return True
        crews = {SERVED_BY.get(n, n) for n in s.contenders if n not in s.missing}
        self.crews = self.make_crews(place, sorted(crews))
        say(f"round {number + 1} of {s.rounds}, {s.place_words(place)}: {len(cells)} cells, {self.plan.budget_ms()} ms for a "
            f"contender; about {self.plan.minutes_left():.0f} minutes to the end of all; {self.words_at_start()}")
        self.opening(place, number)
        for index, cell in enumerate(cells):
            if time.monotonic() > s.deadline:
                return False
            self.cell(place, number, index, cell)
        self.end_crews()
        return True

    def all_rounds(self):
        return all(self.round(place, number) for number in range(self.settings.rounds)
                   for place in self.settings.places)

    def end_crews(self):
        for crew in self.crews.values():
            crew.end()
        self.crews = {}

    def end(self):
        self.end_crews()


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


def environment(settings, versions, more=()):
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
                    f"rounds {settings.rounds}, seed {settings.seed}, {settings.mode}, {settings.buffers}",
        "pinning": "rank r on core r % cores, all contenders",
        "variables": " ".join(f"{k}={v}" for k, v in sorted(os.environ.items())
                              if k.startswith(("TUTTI_", "OMPI_MCA", "MPIR_CVAR", "GLOO_", "OMP_"))) or "none",
    }
    facts.update({f"contender {name}": version or "no version" for name, version in sorted(versions.items())})
    facts.update({f"missing {name}": why for name, why in settings.missing.items()})
    facts.update(more)
    return "".join(f"{name}\t{value}\n" for name, value in facts.items())


def numbers(text):
    units = {"K": 1 << 10, "M": 1 << 20}
    return tuple(int(w[:-1]) * units[w[-1].upper()] if w[-1].upper() in units else int(w) for w in text.split(","))


def common_arguments(p):
    """What peers.py and net.py are told alike."""
    p.add_argument("--bin", type=pathlib.Path, required=True, help="where contender_* and tutti were built")
    p.add_argument("--out", type=pathlib.Path, required=True, help="rows; what is there already is not repeated; its folder is made if need be")
    p.add_argument("--grid", choices=("core", "full"), default="core")
    p.add_argument("--sizes", type=numbers, help="bytes, as 4,8K,32M")
    p.add_argument("--dtypes", type=lambda t: tuple(t.split(",")), default=("f32",),
                   help="from the second on only reductions")
    p.add_argument("--before", type=pathlib.Path,
                   help="where an older build's tutti and contender_tutti are: the contender before")
    p.add_argument("--brief", action="store_true", help="a line for each cell when it is over")
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--minutes", type=float, help="end by then (core: 40; full: no end)")
    p.add_argument("--budget-ms", type=int,
                   help="for a contender and cell (core: what the minutes allow, 20 to 2000; full: 5000)")
    p.add_argument("--mode", choices=("blocking", "async"), default="blocking")
    p.add_argument("--buffers", choices=("warm", "cold"), default="warm")
    p.add_argument("--seed", type=int, default=1)


def measure(kind, s, out, part, old):
    """Whether the grid is complete. The environment is written whatever happens."""
    m = kind(s, part, old, out)
    try:
        return m.all_rounds()
    finally:
        m.end()
        with open(f"{s.out}.env", "a") as env:
            env.write(f"part\t{part}\n" + environment(s, m.versions, m.facts()) + "\n")


def run(kind, s):
    """Measure what the settings ask for into s.out; whether it is complete. kind: a subclass of Measuring."""
    for name, why in s.missing.items():
        say(f"missing: {name}: {why}")
    if len(s.missing) == len(s.contenders):
        sys.exit("there is nobody to measure")
    old = rows.read(open(s.out)) if s.out.exists() else []
    part = max((r["part"] for r in old), default=-1) + 1
    say(f"{s.grid} grid into {s.out}: {len(Grid(s).cells)} cells, {', '.join(map(s.place_words, s.places))}, {s.rounds} rounds, " +
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
        whole = measure(kind, s, out, part, old)
    say(f"{s.out}: complete" if whole else f"{s.out}: time is up; the same command goes on from here")
    return whole
