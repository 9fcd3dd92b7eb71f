# SPDX-License-Identifier: BSD-3-Clause
"""rows: the table that peers.py writes and report.py reads, and what is computed from it.

A row is one contender in one cell of one round. A file of rows is one run, also where it was interrupted and
taken up again (part counts that). Times are microseconds but for the line's, in nanoseconds.
"""
import collections
import math

COLUMNS = ("part commit seed cores round ranks op dtype bytes moved mode buffers memory contender form status label "
           "line_before_ns line_after_ns load calls least_us p10_us median_us p90_us p99_us chained each_us").split()
NUMBERS = {"part": int, "seed": int, "cores": int, "round": int, "ranks": int, "bytes": int, "moved": int, "calls": int,
           "chained": int, "load": float, "line_before_ns": float, "line_after_ns": float, "least_us": float,
           "p10_us": float, "median_us": float, "p90_us": float, "p99_us": float, "each_us": float}
MEASURES = {"synchronised": "median_us", "back to back": "each_us"}
TIES_NEAR_ONE = {"lost": 1.05, "won": 0.95}
US, LIMIT = "tutti", "limit"
LIMITS = (LIMIT, "limit-each")  # the second between hosts: a process for each rank
OURS = (US, "registered", "before", "before-registered")
PASS, STAGED = ("pass", "pass-nt"), ("staged", "staged-nt")
BARE, BARE_PASS = "bare", "bare-pass"

# Everything that makes two rows comparable but for the round and who it is. Ours are also told apart by memory.
Cell = collections.namedtuple("Cell", "op dtype bytes ranks mode buffers label")


def read(lines):
    """Rows as dicts; comments and the head are skipped. ValueError on a row of another shape."""
    rows = []
    for number, line in enumerate(lines, 1):
        line = line.rstrip("\n")
        if not line or line.startswith("#") or line.startswith("part\t"):
            continue
        fields = line.split("\t")
        if len(fields) != len(COLUMNS):
            raise ValueError(f"line {number} has {len(fields)} columns instead of {len(COLUMNS)}")
        row = dict(zip(COLUMNS, fields))
        for name, kind in NUMBERS.items():
            row[name] = kind(row[name]) if row[name] != "-" else None
        rows.append(row)
    return rows


def write(row):
    def text(value):
        if value is None:
            return "-"
        return f"{value:.5g}" if isinstance(value, float) else str(value).replace("\t", " ").replace("\n", " ")
    return "\t".join(text(row.get(name)) for name in COLUMNS) + "\n"


def quantile(values, q):
    """Between two of the sorted values by how near it is to each: bench_quantile() of sample.c."""
    values = sorted(values)
    at = q * (len(values) - 1)
    below = int(at)
    above = min(below + 1, len(values) - 1)
    return values[below] + (at - below) * (values[above] - values[below])


def median(values):
    return quantile(values, 0.5)


def label_of(before_ns, after_ns, near_below_ns):
    """near: the two cores share a cache that is fast; far: they do not; mixed: it changed on the way."""
    if before_ns is None or after_ns is None:
        return "unknown"
    sides = {"near" if ns < near_below_ns else "far" for ns in (before_ns, after_ns)}
    return sides.pop() if len(sides) == 1 else "mixed"


def by_cell(runs):
    """{Cell: {(run, part, round): {(contender, form): row}}} of rows that were measured."""
    cells = collections.defaultdict(lambda: collections.defaultdict(dict))
    for run, rows in enumerate(runs):
        for row in rows:
            if row["status"] == "ok":
                cell = Cell(*(row[name] for name in Cell._fields))
                cells[cell][run, row["part"], row["round"]][row["contender"], row["form"]] = row
    return cells


def yields_of(cells):
    """{(run, part, round, ranks): us that it took when every rank gave its core away once}"""
    return {(*key, cell.ranks): row["each_us"] for cell, rounds in cells.items() if cell.op == "yield"
            for key, contenders in rounds.items() for row in contenders.values()}


def time_of(contenders, measure, who=US):
    row = contenders.get((who, "plain"))
    return row[measure] if row else None


def best_rival(contenders, measure):
    """(name, time) of the fastest that is neither ours nor a limit; None without any."""
    rivals = [(row[measure], name) for (name, _), row in contenders.items() if name not in (*OURS, *LIMITS)]
    return min(rivals)[::-1] if rivals else None


def bare(contenders, form, measure):
    """The time of the operation with the least of synchronisation; None where it was not measured."""
    return contenders[LIMIT, form][measure] if (LIMIT, form) in contenders else None


def latency_floor(contenders, yield_us):
    """What a change of hands costs: a line exchange, or where ranks are more than cores giving the core away."""
    row = next(iter(contenders.values()))
    if row["ranks"] > row["cores"]:
        return yield_us
    lines = [row[name] for name in ("line_before_ns", "line_after_ns") if row[name] is not None]
    return sum(lines) / len(lines) / 1000 if lines else None


def floor(contenders, forms, measure, yield_us):
    """The least that it could take: loads and stores in the better of some forms, or a change of hands, whichever
    is longer; None where neither was measured. With more ranks than cores the calls of all ranks have to pass
    through the cores, of which a single call of a limit, that waits for nobody, shows nothing: back to back."""
    crowded = any(row["ranks"] > row["cores"] for row in contenders.values())
    moved = [row["each_us" if crowded else measure] for (name, form), row in contenders.items() if name == LIMIT and form in forms]
    least = [min(moved)] if moved else []
    latency = latency_floor(contenders, yield_us)
    return max(least + ([latency] if latency is not None else []), default=None)


def ratios(rounds, measure, other, who=US):
    """{run: [time of one of ours / other(key, contenders) of each round]}: never a quotient across rounds."""
    found = collections.defaultdict(list)
    for key, contenders in sorted(rounds.items()):
        mine, theirs = time_of(contenders, measure, who), other(key, contenders)
        if mine is not None and theirs:
            found[key[0]].append(mine / theirs)
    return found


def together(per_run):
    return [value for values in per_run.values() for value in values]


def geometric_mean(values):
    return math.exp(sum(math.log(v) for v in values) / len(values))


def behind(values):
    return median(values) > TIES_NEAR_ONE["lost"] and quantile(values, 0.25) > 1.0


def verdict(per_run):
    """won: median below 0.95 and p90 below 1. lost: median above 1.05 and lower quartile above 1, in two runs;
    in one run only it is 'behind', which another run has to confirm. All else is a tie."""
    all_rounds = together(per_run)
    if not all_rounds:
        return "unknown"
    if median(all_rounds) < TIES_NEAR_ONE["won"] and quantile(all_rounds, 0.9) < 1.0:
        return "won"
    n_behind = sum(behind(values) for values in per_run.values())
    if n_behind >= 2:
        return "lost"
    return "behind" if n_behind == 1 and behind(all_rounds) else "tie"


def bus_factor(op, ranks):
    """Bytes that cross the bus per byte of the tensor, as others count it."""
    if op == "all_reduce":
        return 2 * (ranks - 1) / ranks
    if op in ("all_gather", "reduce_scatter", "all_to_all", "gather", "scatter") or op.endswith("_v"):
        return (ranks - 1) / ranks
    return 1.0
