#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""net_report: tables and pictures of rows that net.py measured between hosts.

How     As report.py, whose ratios, verdicts and words these are, network by network. Beside them stands what the link allows:
        goodput   the bytes that the busiest host has to send or receive, at the rate that bare sockets reached in
                  the same round in both directions, as a share of the time that was taken
        bare      the time of a bare exchange on sockets, for cells that are tiny
        "latency only" are cells whose bytes fit into the burst of the shaper, or into the delay: they show nothing of the rate.

usage: net_report.py ROWS ... [--page FILE --pictures DIR | --brief]
"""
import collections
import json
import pathlib
import subprocess
import sys

import goals
import links
import report
import rows

BEGIN, END = "<!-- begin of what bench/net_report.py writes -->", "<!-- end of what bench/net_report.py writes -->"
MIB = 1 << 20
TINY_BYTES, TINY_MOST = 64, 1.5
GOODPUT_FROM, GOODPUT_GBIT, GOODPUT_LEAST = 16 * MIB, 1.0, 0.95
MEAN_LEAST, ROOM_FROM = 1.5, 1.05
RATE, BARE = "rate", ("limit", "bare")


def iperf_figures(text):
    """(bytes that were received, us) of what iperf3 -J says; None: that it failed, which its exit code need not"""
    received = json.loads(text)["end"].get("sum_received") if text.strip() else None
    return (int(received["bytes"]), received["seconds"] * 1e6) if received and received["bytes"] else None


# ---- what the link allows --------------------------------------------------------------------------------

def uneven(rank, ranks):
    """The share of a rank in the forms with sizes of their own: as in cell.h."""
    return 2 * (rank + 1) / (ranks * (ranks + 1))


def uneven_bytes(op, size, link):
    """What the host with the most to do has to receive, or to send, in those forms; of rooted ones with the root that has least."""
    here = [range(h * link.per_host, (h + 1) * link.per_host) for h in range(link.hosts)]
    if op == "all_to_all_v":
        return size * max(sum(uneven((r + q) % link.ranks, link.ranks) for r in ranks for q in range(link.ranks) if q not in ranks)
                          for ranks in here)
    return size * (1 - min(sum(uneven(r, link.ranks) for r in ranks) for ranks in here))


def wire_bytes(op, size, link):
    """What the host with the most to do has to send, or to receive, whichever is more; 0: nothing between hosts."""
    others = (link.hosts - 1) / link.hosts
    if op.endswith("_v"):
        return uneven_bytes(op, size, link)
    if op == "send_recv":  # each even rank to the next one, which is on the same host where a host has an even number
        return size if link.per_host % 2 == 1 else 0
    return {"all_reduce": 2 * others * size, "all_gather": others * size, "reduce_scatter": others * size,
            "all_to_all": others * link.per_host * size, "gather": others * size, "scatter": others * size, "broadcast": size, "reduce": size}.get(op, 0)


def is_latency_only(op, size, link):
    """Whether the bytes fit into the burst of the shaper, or are sent before the first of them has arrived."""
    return bool(link.gbit) and wire_bytes(op, size, link) <= max(link.burst(), link.goodput() * link.delay_ms / 1e3)


def rates_of(cells):
    """{(run, part, round, network): bytes per us that bare sockets carried both ways}"""
    return {(*key, cell.label): row["moved"] / row["each_us"] for cell, rounds in cells.items() if cell.op == RATE
            for key, contenders in rounds.items() for (who, form), row in contenders.items() if (who, form) == BARE}


class Cells(goals.Cells):
    """Cells between hosts; a network is no label that may change from run to run."""

    def __init__(self, runs, measure):
        super().__init__(runs, measure)
        self.rates = rates_of(rows.by_cell(runs))

    @staticmethod
    def same(cell):
        return cell

    def bare(self, _, contenders):
        return rows.bare(contenders, "bare", self.measure)

    def wire_us(self, cell):
        """The least time that the bytes of a cell take on the link, in a round whose rate is known."""
        link = links.Link.read(cell.label)

        def other(key, contenders):
            rate = self.rates.get((*key, cell.label))
            moved = max(row["moved"] for row in contenders.values())
            return wire_bytes(cell.op, moved, link) / rate if rate else None
        return other

    def leaves_room(self, cell):
        """Whether the best peer takes longer than the bytes do on the link: where it does not, nobody can be faster."""
        rounds, wire = self.cells[cell], self.wire_us(cell)
        moved = max(row["moved"] for contenders in rounds.values() for row in contenders.values())
        if is_latency_only(cell.op, moved, links.Link.read(cell.label)):
            return True
        times = [(self.rival(key, contenders), wire(key, contenders)) for key, contenders in rounds.items()]
        found = [theirs / least for theirs, least in times if theirs and least]
        return not found or rows.median(found) > ROOM_FROM

    def goodputs(self, about=lambda cell: True):
        """[(share of the goodput, Cell)], worst first."""
        found = [(rows.together(self.per_run(cell, self.wire_us(cell))), cell) for cell in self.cells if about(cell)]
        return sorted((1 / rows.median(ratios), cell) for ratios, cell in found if ratios)


# ---- goals -----------------------------------------------------------------------------------------------

def fills_the_link(cell):
    link = links.Link.read(cell.label)
    return (link.gbit == GOODPUT_GBIT and not link.relayed and cell.bytes >= GOODPUT_FROM and
            wire_bytes(cell.op, cell.bytes, link) > 0)


def goodput(cells):
    found = cells.goodputs(fills_the_link)
    if not found:
        return []
    missed = [(share, cell) for share, cell in found if share < GOODPUT_LEAST]
    return [goals.Goal(f"share of the goodput, from {report.size(GOODPUT_FROM)} up at {GOODPUT_GBIT:g} Gb/s", f"{GOODPUT_LEAST:.0%}",
                       f"{len(found) - len(missed)} of {len(found)} cells", not missed, missed)]


def is_tiny(cell):
    return cell.bytes <= TINY_BYTES and not links.Link.read(cell.label).relayed


def all_goals(cells):
    return (goals.lost(cells) + goodput(cells) +
            goals.within(f"up to {TINY_BYTES} B / a bare exchange on sockets", TINY_MOST, cells.medians(cells.bare, about=is_tiny)) +
            goals.mean("time of the best peer / ours", MEAN_LEAST, cells.medians(cells.rival)) +
            goals.mean("the same where the best peer is not as fast as the link", MEAN_LEAST,
                       cells.medians(cells.rival, about=cells.leaves_room)))


def name_of(cell):
    return f"{cell.op} {report.size(cell.bytes)}, {cell.label}"


def goal_lines(cells):
    judged = cells.medians(cells.rival)
    lines = []
    if judged:
        lines += [f"Worst cell: {name_of(judged[0][1])}: {judged[0][0]:.2f} times the time of the best peer.", ""]
    some = all_goals(cells)
    lines += ["| goal | wanted | found | |", "|---|---|---|---|"] if some else []
    for g in some:
        lines.append(f"| {g.what} | {g.wanted} | {g.found} | {goals.mark(g)} |")
    lines.append("")
    for g in some:
        if g.missed and not g.reached:
            what = g.what[0].upper() + g.what[1:]
            lines += [f"{what}; these cells " + ("are:" if g.wanted in ("none", "-") else "are not:"),
                      "; ".join(f"{name_of(cell)} ({figure:.2f})" for figure, cell in g.missed) + ".", ""]
    return lines


# ---- tables ----------------------------------------------------------------------------------------------

class Summary:
    """One cell: medians over its rounds; ratios are formed inside a round."""

    def __init__(self, cells, cell):
        rounds, column = cells.cells[cell], cells.measure
        self.cell, self.link, self.n_rounds = cell, links.Link.read(cell.label), len(rounds)
        mine = [t for c in rounds.values() if (t := rows.time_of(c, column)) is not None]
        rivals = [r for c in rounds.values() if (r := rows.best_rival(c, column)) is not None]
        self.us = rows.median(mine) if mine else None
        self.rival = collections.Counter(name for name, _ in rivals).most_common(1)[0][0] if rivals else None
        self.rival_us = rows.median([t for _, t in rivals]) if rivals else None
        per_run = cells.per_run(cell, cells.rival)
        self.verdict, self.ratio = rows.verdict(per_run), self.middle(per_run)
        self.to_before = self.middle(cells.per_run(cell, cells.peer("before")))
        self.to_bare = self.middle(cells.per_run(cell, cells.bare))
        moved = max(row["moved"] for c in rounds.values() for row in c.values())
        self.latency_only = is_latency_only(cell.op, moved, self.link)
        wire = self.middle(cells.per_run(cell, cells.wire_us(cell)))
        self.goodput = None if wire is None or self.latency_only else 1 / wire

    @staticmethod
    def middle(per_run):
        return rows.median(rows.together(per_run)) if per_run else None

    def order(self):
        c = self.cell
        return self.link.gbit, self.link.delay_ms, self.link.loss, self.link.hosts, self.link.per_host, report.OPS.index(c.op), c.bytes


def summaries(cells):
    return sorted((Summary(cells, cell) for cell in cells.cells), key=Summary.order)


def share(value):
    return "-" if value is None else f"{value:.0%}"


def table(some):
    lines = ["| bytes | us | best rival | its us | ours / its | | goodput | ours / bare | rounds |", "|" + "---|" * 9]
    for s in some:
        what = "latency only" if s.latency_only else share(s.goodput)
        lines.append(f"| {report.size(s.cell.bytes)} | {report.number(s.us)} | {s.rival or '-'} | {report.number(s.rival_us)} "
                     f"| {report.times(s.ratio)} | {s.verdict} | {what} | {report.times(s.to_bare)} | {s.n_rounds} |")
    return lines + [""]


def link_lines(runs):
    """What links carried, by whom, in MB/s: medians over all rounds."""
    found = collections.defaultdict(lambda: collections.defaultdict(list))
    for run in runs:
        for row in run:
            if row["op"] == RATE and row["status"] == "ok":
                found[row["label"]][row["form"]].append(row["moved"] / row["each_us"])
    if not found:
        return []
    lines = ["| network | bare sockets, both ways, MB/s | iperf3, one way, MB/s | at most, MB/s |", "|---|---|---|---|"]
    for label, forms in sorted(found.items()):
        link = links.Link.read(label)
        most = f"{link.goodput() / 1e6:.1f}" if link.gbit else "-"
        lines.append(f"| {label} | " + " | ".join(f"{rows.median(forms[f]):.1f}" if forms[f] else "-" for f in ("bare", "iperf3")) +
                     f" | {most} |")
    return lines + [""]


def about(files):
    """What the runs were made on: report.about(), and the links."""
    lines = report.about(files)[:-1]
    for file in files:
        env = pathlib.Path(f"{file}.env")
        words = env.read_text().splitlines() if env.exists() else []
        facts = dict(line.split("\t", 1) for line in words if "\t" in line)
        lines += [f"  - {name}: {value}" for name, value in facts.items()
                  if name.endswith((", shaper", ", relay", ", congestion control", ", large segments", ", left out"))]
    return lines + [""]


def text(files, runs, pictures):
    lines = ["Runs:", ""] + about(files) + link_lines(runs)
    for measure, column in rows.MEASURES.items():
        cells = Cells(runs, column)
        lines += [f"### {measure.capitalize()}", ""] + goal_lines(cells)
        by_table = collections.OrderedDict()
        for s in summaries(cells):
            by_table.setdefault((s.cell.label, s.cell.op), []).append(s)
        for (label, op), some in by_table.items():
            lines += [f"#### {op}, {label}; {measure}", ""]
            lines += [f"![{op}]({pictures[op]})", ""] if op in pictures and label == some[0].cell.label and column == "each_us" else []
            lines += table(some)
    return "\n".join(lines + report.not_measured(runs)).rstrip() + "\n"


def brief(runs):
    lines = [f"{'op':15}{'bytes':>9} {'network':19}{'measure':13}{'us':>11} {'/before':>8} {'/rival':>7}  {'rival':9}{'/bare':>6}"
             f" {'goodput':>8} {'rounds':>6}"]
    for measure, column in rows.MEASURES.items():
        for s in summaries(Cells(runs, column)):
            what = "latency" if s.latency_only else share(s.goodput)
            lines.append(f"{s.cell.op:15}{report.size(s.cell.bytes):>9} {s.cell.label:19}{measure:13}{report.number(s.us, 4):>11} "
                         f"{report.times(s.to_before):>8} {report.times(s.ratio):>7}  {s.rival or '-':9}{report.times(s.to_bare):>6}"
                         f" {what:>8} {s.n_rounds:>6}")
    return "\n".join(lines + link_lines(runs)) + "\n"


# ---- pictures --------------------------------------------------------------------------------------------

def script(runs, op, labels, out):
    """gnuplot's commands for one operation: a panel for each network, times back to back, and what the bytes take at least."""
    lines = [f"set terminal svg size {420 * len(labels)},400 background rgb 'white'", f"set output '{out}'",
             "set logscale xy", "set grid", "set key left top font ',9'", "set format x '%.0s%c'",
             "set xlabel 'bytes'", "set ylabel 'us'", f"set multiplot layout 1,{len(labels)}"]
    for number, label in enumerate(labels):
        link, plots = links.Link.read(label), []
        curves = report.curves(runs, "each_us", label, (op, "f32", "blocking", "warm"), link.ranks)
        sizes = sorted({b for points in curves.values() for b, _ in points})
        if link.gbit:
            curves["link"] = [(b, wire_bytes(op, b, link) / link.goodput() * 1e6) for b in sizes
                              if wire_bytes(op, b, link) > link.burst()]
        for i, (name, points) in enumerate(curves.items()):
            if points:
                block = f"$n{number}_{i}"
                lines += [f"{block} << END", *(f"{b} {t:.5g}" for b, t in points), "END"]
                plots.append(f"{block} using 1:2 with linespoints title '{name}' noenhanced" +
                             (" dashtype 2" if name.startswith(("limit", "link")) else " linewidth 2" if name == rows.US else ""))
        lines += [f"set title '{op}, {label}' noenhanced", "plot " + ", ".join(plots)]
    return "\n".join(lines + ["unset multiplot"]) + "\n"


def draw(runs, folder, page):
    """{op: path from the page}; one picture for each operation with more than one size."""
    found = {}
    folder.mkdir(parents=True, exist_ok=True)
    some = summaries(Cells(runs, "each_us"))
    for op in dict.fromkeys(s.cell.op for s in some):
        labels = list(dict.fromkeys(s.cell.label for s in some if s.cell.op == op and s.us is not None))
        if labels and len({s.cell.bytes for s in some if s.cell.op == op}) > 1:
            out = folder / f"net-{op}.svg"
            subprocess.run(["gnuplot"], input=script(runs, op, labels, out), text=True, check=True)
            found[op] = out.resolve().relative_to(page.resolve().parent).as_posix()
    return found


if __name__ == "__main__":
    sys.exit(report.run("tables and pictures of rows measured between hosts", brief, draw, text, (BEGIN, END)))
