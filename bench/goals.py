# SPDX-License-Identifier: BSD-3-Clause
"""goals: what is aimed at, and how far it was reached.

Rounds in which the cores changed from near to far, or back, are left out: what was measured one after the other
did not meet the same machine. A cell counts once for each of near and far. It is lost when it was behind (rows.py)
in two runs, whatever the label of either: of one run alone that is not known. Each goal says which cells it is about, so that a run of few cells
shows what it has; a goal of no cells is left out.
"""
import collections

import rows

KIB, MIB = 1 << 10, 1 << 20
OPS = ("all_reduce", "broadcast", "reduce", "all_gather", "reduce_scatter", "all_to_all", "gather", "scatter", "all_gather_v",
       "gather_v", "scatter_v", "all_to_all_v", "send_recv", "barrier")
REDUCTIONS = ("all_reduce", "reduce", "reduce_scatter")
THIN = ("all_gather", "all_to_all")  # whoever copies once is there: above 1 MiB a tie is the goal
WON_BY, WON_SHARE = 1.3, 0.8
LINE_BYTES = 64

# One line of the table; cells: [(figure, Cell)] of those that miss it, worst first.
Goal = collections.namedtuple("Goal", "what wanted found reached missed")


class Cells:
    """The cells of some runs in one measure, and ratios of them."""

    def __init__(self, runs, measure):
        everything = rows.by_cell(runs)
        self.measure, self.yields = measure, rows.yields_of(everything)
        self.cells = {c: r for c, r in everything.items() if c.op in OPS and c.label != "mixed"}

    def per_run(self, cell, other, who=rows.US):
        return rows.ratios(self.cells[cell], self.measure, other, who)

    def medians(self, other, who=rows.US, about=lambda cell: True):
        """[(median of ratios, Cell)] of the cells that have any, worst first."""
        found = [(self.per_run(cell, other, who), cell) for cell in self.cells if about(cell)]
        return sorted(((rows.median(rows.together(r)), cell) for r, cell in found if r), reverse=True)

    def rival(self, _, contenders):
        return (rows.best_rival(contenders, self.measure) or (None, None))[1]

    def peer(self, name):
        return lambda _, contenders: rows.time_of(contenders, self.measure, name)

    def floor(self, forms, cell):
        return lambda key, contenders: rows.floor(contenders, forms, self.measure,
                                                  self.yields.get((*key, cell.ranks)))

    def floors(self, forms, who, about):
        found = [(self.per_run(cell, self.floor(forms, cell), who), cell) for cell in self.cells if about(cell)]
        return sorted(((rows.median(rows.together(r)), cell) for r, cell in found if r), reverse=True)

    def hands(self, about):
        """Of tiny cells: how many changes of hands they take."""
        def other(cell):
            return lambda key, contenders: rows.latency_floor(contenders, self.yields.get((*key, cell.ranks)))
        found = [(self.per_run(cell, other(cell)), cell) for cell in self.cells if about(cell)]
        return sorted(((rows.median(rows.together(r)), cell) for r, cell in found if r), reverse=True)

    @staticmethod
    def same(cell):
        """What a cell is one with in other runs: there the cores may have been near or far."""
        return cell._replace(label="")

    def runs_at_most(self, who=rows.US):
        """In how many runs a cell was measured beside a peer, of that with the most. Rounds of one run are not counted."""
        found = collections.defaultdict(set)
        for cell in self.cells:
            found[self.same(cell)].update(self.per_run(cell, self.rival, who))
        return max(map(len, found.values()), default=0)

    def runs_behind(self, who=rows.US):
        """{same(cell): runs in which it was behind}"""
        found = collections.defaultdict(set)
        for cell in self.cells:
            for run, values in self.per_run(cell, self.rival, who).items():
                if rows.behind(values):
                    found[self.same(cell)].add(run)
        return found


def mark(goal):
    """The last column: nothing is aimed at, or it is not known, or it is."""
    return {True: "yes", False: "no"}.get(goal.reached, "" if goal.wanted == "-" else "-")


def is_thin(cell):
    return cell.op in THIN and cell.bytes > MIB


def won_clearly(cells, cell):
    ratios = rows.together(cells.per_run(cell, cells.rival))
    return rows.verdict({0: ratios}) == "won" and 1 / rows.median(ratios) >= WON_BY


def lost(cells, who=rows.US):
    behind = cells.runs_behind(who)
    judged = cells.medians(cells.rival, who)
    found = [(ratio, cell) for ratio, cell in judged if len(behind[cells.same(cell)]) >= 2]
    once = [(ratio, cell) for ratio, cell in judged if len(behind[cells.same(cell)]) == 1]
    if not judged:
        return []
    words = "on registered memory, " if who != rows.US else ""
    twice = f"{words}cells lost to the best peer, in two runs"
    return [Goal(twice, "none", f"{len(found)} of {len(judged)}", not found, found) if cells.runs_at_most(who) > 1 else
            Goal(twice, "none", "one run", None, []),
            Goal(f"{words}cells behind the best peer in one run", "-", f"{len(once)} of {len(judged)}", None, once)]


def won(cells):
    judged = [(ratio, cell) for ratio, cell in cells.medians(cells.rival) if not is_thin(cell)]
    missed = [(ratio, cell) for ratio, cell in judged if not won_clearly(cells, cell)]
    if not judged:
        return []
    share = 1 - len(missed) / len(judged)
    return [Goal(f"cells won by {WON_BY} times and more, but for all_gather and all_to_all above 1 MiB",
                 f"{WON_SHARE:.0%}", f"{len(judged) - len(missed)} of {len(judged)}, {share:.0%}", share >= WON_SHARE,
                 missed)]


def mean(what, wanted, found):
    if not found:
        return []
    value = rows.geometric_mean([1 / ratio for ratio, _ in found])
    return [Goal(f"{what}, geometric mean of {len(found)} cells", f"{wanted:g}", f"{value:.2f}", value >= wanted, [])]


def within(what, most, found):
    if not found:
        return []
    missed = [(ratio, cell) for ratio, cell in found if ratio > most]
    return [Goal(what, f"{most:g} times", f"{len(found) - len(missed)} of {len(found)} cells", not missed, missed)]


def means(cells):
    medians = cells.medians
    return (mean("time of the best peer / ours, ordinary memory", 2.5, medians(cells.rival)) +
            mean("time of the best peer / ours, registered memory, reductions from 8 KiB up", 4,
                 medians(cells.rival, "registered", lambda c: c.op in REDUCTIONS and c.bytes >= 8 * KIB)) +
            mean("time of gloo / ours up to 16 KiB", 20,
                 medians(cells.peer("gloo"), about=lambda c: c.bytes <= 16 * KIB)) +
            mean("time of gloo / ours above 16 KiB", 4,
                 medians(cells.peer("gloo"), about=lambda c: c.bytes > 16 * KIB)))


def limits(cells):
    def two(least):
        return lambda c: c.ranks == 2 and c.bytes >= least

    def more(least):
        return lambda c: c.ranks > 2 and c.bytes >= least
    found = []
    for who, forms, least, words in (
            ("registered", rows.PASS, 512 * KIB, "registered memory / one pass, from 512 KiB up"),
            (rows.US, rows.STAGED, 64 * KIB, "ordinary memory / staged, from 64 KiB up")):
        found += within(f"{words}, 2 ranks", 1.3, cells.floors(forms, who, two(least)))
        found += within(f"{words}, more ranks", 2, cells.floors(forms, who, more(least)))
    tiny = cells.hands(lambda c: c.ranks == 2 and c.bytes <= LINE_BYTES)
    crowded = cells.hands(lambda c: c.ranks > 2 and c.bytes <= LINE_BYTES)
    return (found + within("up to 64 B / a bare exchange of lines, 2 ranks", 2.5, tiny) +
            within("up to 64 B / every rank giving its core away once, more ranks", 2, crowded))


def beside_bare(cells):
    """Beside the same schemes in a program that does nothing else."""
    found = []
    for who, form, words in ((rows.US, rows.BARE, "ordinary"), ("registered", rows.BARE_PASS, "registered")):
        for ranks, is_meant in (("2 ranks", lambda c: c.ranks == 2), ("more ranks", lambda c: c.ranks > 2)):
            found += within(f"{words} memory / a bare program, {ranks}", 1.2, cells.medians(
                lambda _, contenders, f=form: rows.bare(contenders, f, cells.measure), who, is_meant))
    return found


def all_of(runs, measure):
    cells = Cells(runs, measure)
    return (lost(cells) + lost(cells, "registered") + won(cells) + limits(cells) + beside_bare(cells) +
            means(cells))


def worst(runs, measure):
    """(ratio to the best peer, Cell), None without any."""
    cells = Cells(runs, measure)
    return next(iter(cells.medians(cells.rival)), None)
