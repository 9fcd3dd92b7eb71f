#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""report: tables and pictures of rows that peers.py measured.

How     A ratio is formed inside a round, between contenders that were measured one after the other; then the
        median over rounds is taken, among rounds of one label. Worst and lost cells come before any mean.
        The floor of a cell is the time of its loads and stores alone, or of a change of hands (a line exchange;
        with more ranks than cores, giving the core away), whichever is longer.

usage: report.py ROWS ... [--page FILE --pictures DIR]: a file of rows is one run; without --page to the
standard output
"""
import argparse
import collections
import pathlib
import shutil
import subprocess
import sys

import goals
import rows

BEGIN, END = "<!-- begin of what bench/report.py writes -->", "<!-- end of what bench/report.py writes -->"
VERDICTS = ("won", "tie", "behind", "lost", "unknown")
OPS = goals.OPS
LABELS = ("near", "far", "unknown")  # not mixed: where it changed on the way, rows of one round cannot be compared


class Summary:
    """One cell: medians over the rounds of its label."""

    def __init__(self, cell, rounds, measure, yields):
        self.cell, self.n_rounds = cell, len(rounds)
        mine = [t for c in rounds.values() if (t := rows.time_of(c, measure)) is not None]
        rivals = [r for c in rounds.values() if (r := rows.best_rival(c, measure)) is not None]
        self.us = rows.median(mine) if mine else None
        self.rival = collections.Counter(name for name, _ in rivals).most_common(1)[0][0] if rivals else None
        self.rival_us = rows.median([t for _, t in rivals]) if rivals else None
        per_run = rows.ratios(rounds, measure, lambda _, c: (rows.best_rival(c, measure) or (None, None))[1])
        self.verdict = rows.verdict(per_run)
        self.ratio = rows.median(rows.together(per_run)) if per_run else None
        self.floors = {}
        for name, forms, who in (("pass", rows.PASS, "registered"), ("staged", rows.STAGED, rows.US)):
            found = rows.ratios(rounds, measure, lambda key, c, f=forms: rows.floor(
                c, f, measure, yields.get((*key, cell.ranks))), who)
            self.floors[name] = rows.median(rows.together(found)) if found else None
        mine = [t for c in rounds.values() if (t := rows.time_of(c, measure, "registered")) is not None]
        self.registered_us = rows.median(mine) if mine else None
        found = rows.ratios(rounds, measure, lambda _, c: (rows.best_rival(c, measure) or (None, None))[1],
                            "registered")
        self.registered_ratio = rows.median(rows.together(found)) if found else None
        moved = [row["moved"] for c in rounds.values() for row in c.values()]
        self.moved = max(moved, default=0)

    def gb_per_s(self):
        return self.moved / self.us / 1e3 if self.us else None

    def name(self):
        return name_of(self.cell)


def name_of(c):
    extra = "".join(f", {v}" for v in (c.mode, c.buffers) if v not in ("blocking", "warm"))
    return f"{c.op} {c.dtype} {size(c.bytes)}, {c.ranks} ranks{extra}"


def size(n):
    for unit, shift in (("MiB", 20), ("KiB", 10)):
        if n >= 1 << shift and n % (1 << shift) == 0:
            return f"{n >> shift} {unit}"
    return f"{n} B"


def number(value, digits=3):
    if value is None:
        return "-"
    return f"{value:,.0f}" if value >= 1000 else f"{value:.{digits}g}"


def times(value):
    return "-" if value is None else f"{value:.2f}"


def summaries(runs, measure):
    """{label: [Summary]}, and which rows were not measured: {(contender, status): how many}."""
    cells = rows.by_cell(runs)
    yields = rows.yields_of(cells)
    found = collections.defaultdict(list)
    for cell, rounds in cells.items():
        if cell.op in OPS:
            found[cell.label].append(Summary(cell, rounds, measure, yields))
    for label in found:
        found[label].sort(key=lambda s: (OPS.index(s.cell.op), s.cell.dtype, s.cell.mode, s.cell.buffers,
                                         s.cell.ranks, s.cell.bytes))
    return found


# ---- goals -----------------------------------------------------------------------------------------------

def goal_lines(runs, column):
    """Worst and lost cells first, then shares, limits and means; below, the cells that miss something."""
    some, worst = goals.all_of(runs, column), goals.worst(runs, column)
    if not some:
        return []
    lines = []
    if worst is not None:
        ratio, cell = worst
        lines += [f"Worst cell: {name_of(cell)} ({cell.label}): {ratio:.2f} times the time of the best peer.", ""]
    lines += ["| goal | wanted | found | |", "|---|---|---|---|"]
    for g in some:
        lines.append(f"| {g.what} | {g.wanted} | {g.found} | {goals.mark(g)} |")
    lines.append("")
    for g in some:
        if g.missed and not g.reached:
            what = g.what[0].upper() + g.what[1:]
            lines += [f"{what}; these cells " + ("are:" if g.wanted in ("none", "-") else "are not:"),
                      "; ".join(f"{name_of(cell)}, {cell.label} ({times(figure)})" for figure, cell in g.missed) + ".", ""]
    return lines


# ---- words -----------------------------------------------------------------------------------------------

def verdict_lines(label, cells):
    judged = [s for s in cells if s.ratio is not None]
    counts = collections.Counter(s.verdict for s in cells)
    lines = [f"Cells with a line exchange that is {label}: " +
             ", ".join(f"{counts[v]} {v}" for v in VERDICTS if counts[v]) + ".", ""]
    if not judged:
        return lines
    worst = max(judged, key=lambda s: s.ratio)
    lines += [f"Worst cell: {worst.name()}: {worst.ratio:.2f} times the time of {worst.rival} "
              f"({number(worst.us)} against {number(worst.rival_us)} us, {worst.verdict}).", ""]
    for verdict, words in (("lost", "Lost, in two runs"), ("behind", "Behind, in one run")):
        some = sorted((s for s in judged if s.verdict == verdict), key=lambda s: -s.ratio)
        if some:
            lines += [f"{words}: " + "; ".join(f"{s.name()} ({s.ratio:.2f} of {s.rival})" for s in some) + ".", ""]
    mean = rows.geometric_mean([1 / s.ratio for s in judged])
    return lines + [f"Geometric mean of (best rival's time / ours): {mean:.2f}.", ""]


def table(cells):
    lines = ["| ranks | bytes | us | GB/s | bus GB/s | best rival | its us | ours / its | | ours / staged floor "
             "| registered us | registered / rival | registered / one-pass floor | rounds |", "|" + "---|" * 14]
    for s in cells:
        rate, c = s.gb_per_s(), s.cell
        bus = None if rate is None else rate * rows.bus_factor(c.op, c.ranks)
        lines.append(f"| {c.ranks} | {size(c.bytes)} | {number(s.us)} | {number(rate)} | {number(bus)} "
                     f"| {s.rival or '-'} | {number(s.rival_us)} | {times(s.ratio)} | {s.verdict} "
                     f"| {times(s.floors['staged'])} | {number(s.registered_us)} | {times(s.registered_ratio)} "
                     f"| {times(s.floors['pass'])} | {s.n_rounds} |")
    return lines + [""]


def kinds(cells):
    """Cells of one table: an operation, a type, a way of calling."""
    found = collections.OrderedDict()
    for s in cells:
        c = s.cell
        found.setdefault((c.op, c.dtype, c.mode, c.buffers), []).append(s)
    return found


def not_measured(runs):
    counts = collections.Counter((r["contender"], r["op"], r["ranks"], r["status"]) for run in runs for r in run
                                 if r["status"] != "ok")
    if not counts:
        return []
    lines = ["Not measured:", ""]
    lines += [f"- {who}, {op}, {ranks} ranks, {n} rows: {why[:160]}" for (who, op, ranks, why), n in
              sorted(counts.items())]
    return lines + [""]


def about(files):
    """What the runs were made on: the files beside the rows."""
    lines = []
    for file in files:
        env = pathlib.Path(f"{file}.env")
        words = env.read_text().splitlines() if env.exists() else []
        facts = dict(line.split("\t", 1) for line in words if "\t" in line)
        told = [facts[name] for name in ("date", "kernel", "processor") if name in facts]
        told += [f"{facts['cores']} cores"] if "cores" in facts else []
        told += [f"commit {facts['commit']}"] if "commit" in facts else []
        told += [f"before: commit {facts['commit before']}"] if facts.get("commit before", "-") != "-" else []
        told += [value for name, value in facts.items() if name.startswith("contender ")]
        told += [f"{name} ({value})" for name, value in facts.items() if name.startswith("missing ")]
        lines.append(f"- `{pathlib.Path(file).name}`: " + ("; ".join(told) or "nothing beside it says on what"))
    return lines + [""]


def text(files, runs, pictures):
    lines = ["Runs:", ""] + about(files)
    for measure, column in rows.MEASURES.items():
        found = summaries(runs, column)
        lines += [f"## {measure.capitalize()}", ""] + goal_lines(runs, column)
        for label in LABELS:
            if label in found:
                lines += verdict_lines(label, found[label])
        for label in LABELS:
            for kind, cells in kinds(found.get(label, [])).items():
                lines += [f"### {kind[0]}, {', '.join(kind[1:])}; {measure}, {label}", ""]
                picture = pictures.get((column, label, kind))
                lines += [f"![{kind[0]}]({picture})", ""] if picture else []
                lines += table(cells)
    return "\n".join(lines + not_measured(runs)).rstrip() + "\n"


# ---- few words, for whoever changes something ------------------------------------------------------------

def brief(runs):
    """A line for each cell and measure: medians over its rounds, and ratios, which are formed inside a round."""
    cells = rows.by_cell(runs)
    lines = [f"{'op':15}{'dtype':6}{'bytes':>9} {'ranks':>5} {'label':8}{'measure':13}{'us':>10} {'/before':>8}"
             f" {'/rival':>7}  {'rival':9}{'registered':>10} {'/before':>8} {'/rival':>7} {'rounds':>6}"]
    for cell, rounds in sorted(cells.items()):
        if cell.op not in OPS:
            continue
        for name, column in rows.MEASURES.items():
            lines.append(brief_line(cell, rounds, name, column))
    return "\n".join(lines) + "\n"


def brief_line(cell, rounds, name, column):
    def us(who):
        mine = [t for c in rounds.values() if (t := rows.time_of(c, column, who)) is not None]
        return number(rows.median(mine) if mine else None, 4)

    def ratio(who, other):
        found = rows.together(rows.ratios(rounds, column, other, who))
        return times(rows.median(found) if found else None)

    def rival(_, contenders):
        return (rows.best_rival(contenders, column) or (None, None))[1]

    def before(who):
        return lambda _, contenders: rows.time_of(contenders, column, who)

    names = collections.Counter(b[0] for c in rounds.values() if (b := rows.best_rival(c, column)) is not None)
    return (f"{cell.op:15}{cell.dtype:6}{size(cell.bytes):>9} {cell.ranks:>5} {cell.label:8}{name:13}{us(rows.US):>10}"
            f" {ratio(rows.US, before('before')):>8} {ratio(rows.US, rival):>7}"
            f"  {names.most_common(1)[0][0] if names else '-':9}{us('registered'):>10}"
            f" {ratio('registered', before('before-registered')):>8} {ratio('registered', rival):>7}"
            f" {len(rounds):>6}")


# ---- pictures --------------------------------------------------------------------------------------------

def curves(runs, column, label, kind, ranks):
    """{name: [(bytes, median us)]}"""
    found = collections.defaultdict(lambda: collections.defaultdict(list))
    for cell, rounds in rows.by_cell(runs).items():
        same = (cell.op, cell.dtype, cell.mode, cell.buffers) == kind
        if same and (cell.label, cell.ranks) == (label, ranks):
            for contenders in rounds.values():
                for (name, form), row in contenders.items():
                    found[name if form == "plain" else f"{name} {form}"][cell.bytes].append(row[column])
    return {name: sorted((b, rows.median(t)) for b, t in points.items()) for name, points in sorted(found.items())}


def script(runs, column, label, kind, cells, out):
    """gnuplot's commands for one kind: a panel for each number of ranks."""
    all_ranks = sorted({s.cell.ranks for s in cells})
    lines = [f"set terminal svg size {460 * len(all_ranks)},420 background rgb 'white'", f"set output '{out}'",
             "set logscale xy", "set grid", "set key left top font ',9'", "set format x '%.0s%c'",
             "set xlabel 'bytes'", "set ylabel 'us'", f"set multiplot layout 1,{len(all_ranks)}"]
    for ranks in all_ranks:
        plots = []
        for i, (name, points) in enumerate(curves(runs, column, label, kind, ranks).items()):
            block = f"$r{ranks}_{i}"
            lines += [f"{block} << END", *(f"{b} {t}" for b, t in points), "END"]
            plots.append(f"{block} using 1:2 with linespoints title '{name}' noenhanced" +
                         (" dashtype 2" if name.startswith(rows.LIMIT) else " linewidth 2" if name == rows.US else ""))
        lines += [f"set title '{kind[0]}, {ranks} ranks, {label}' noenhanced", "plot " + ", ".join(plots)]
    return "\n".join(lines + ["unset multiplot"]) + "\n"


def draw(runs, folder, page):
    """{(column, label, kind): path from the page}; one picture for each kind with more than one size."""
    found = {}
    folder.mkdir(parents=True, exist_ok=True)
    column = rows.MEASURES["synchronised"]
    for label, cells in summaries(runs, column).items():
        for kind, some in kinds(cells).items():
            if label not in LABELS or len({s.cell.bytes for s in some}) < 2:
                continue
            out = folder / ("-".join((*kind, label)) + ".svg")
            subprocess.run(["gnuplot"], input=script(runs, column, label, kind, some, out), text=True, check=True)
            found[column, label, kind] = out.resolve().relative_to(page.resolve().parent).as_posix()
    return found


def into_page(page, words, begin=BEGIN, end=END):
    old = page.read_text()
    if begin not in old or end not in old:
        sys.exit(f"report: {page} has no place for it: {begin} ... {end}")
    page.write_text(old[:old.index(begin) + len(begin)] + "\n" + words + old[old.index(end):])


def run(description, brief, draw, text, marks=(BEGIN, END)):
    """The command of a report: brief(runs), draw(runs, folder, page), text(files, runs, pictures)."""
    p = argparse.ArgumentParser(description=description)
    p.add_argument("rows", nargs="+", help="files of rows, each one run")
    p.add_argument("--page", type=pathlib.Path, help="replace what stands between the marks of this page")
    p.add_argument("--brief", action="store_true", help="a line for each cell and measure instead")
    p.add_argument("--pictures", type=pathlib.Path, help="folder, below the page's, for gnuplot's pictures")
    args = p.parse_args()
    runs = [rows.read(open(file)) for file in args.rows]
    if args.brief:
        print(brief(runs), end="")
        return 0
    pictures = {}
    if args.pictures and not shutil.which("gnuplot"):
        print("report: no pictures: gnuplot is not there; next: make bench-deps", file=sys.stderr)
    elif args.pictures:
        pictures = draw(runs, args.pictures, args.page or args.pictures)
    words = text(args.rows, runs, pictures)
    if args.page:
        into_page(args.page, words, *marks)
    else:
        print(words, end="")
    return 0


if __name__ == "__main__":
    sys.exit(run("tables and pictures of measured rows", brief, draw, text))
