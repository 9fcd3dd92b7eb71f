#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""sim_check: what `tutti sim` predicts beside what was measured.

How     Two kinds of measurements, neither of which the figures were fitted on:
          rows     of peers.py and net.py: tutti on ordinary memory; the median over rounds of each cell is predicted. Of a
                   network the label says what it is: "4x2 10G" is four hosts of two ranks on links of 10 Gb/s, which are
                   namespaces of one machine, with shapers that let a burst through (links.py); calls are predicted one
                   after the other, as they were measured
          choices  of net_choice.py: the library's own choice, and all that it could have taken, of a network
          ratios   as `tutti bench --tune` prints them: of each algorithm to the usual choice. A prediction is right if the
                   algorithm that it puts first was measured within TIE of the quickest, of those that the library may take
        Errors are |predicted / measured - 1|. Two cores of a virtual machine may be near each other or far, which figures of one
        moment do not know: for rows the time of a line is that of the exchange that was timed beside each of them.
Fails   with the command's own words, and the line or cell.

usage: sim_check.py --bin DIR --figures FILE [--cores N] [--rows FILE ... [--sizes N,...]] [--ratios FILE ...]
       [--choices FILE ...] [--worst N]
"""
import argparse
import collections
import json
import pathlib
import re
import subprocess
import sys
import tempfile

import links
import rows as bench_rows

TIE, NEAR = 1.05, 1.10
OPS = ("all_reduce", "broadcast", "reduce", "all_gather", "gather", "scatter", "reduce_scatter", "all_to_all", "barrier")
CALLS_MOST, CALLS_LEAST = 400, 4  # of a size: until what buckets hold has passed many times
NETWORK = re.compile(r"(\d+)x(\d+) ([\d.]+)G$")  # links.Link: with a rate, and neither delay nor loss
RATIO = re.compile(r"(\w+) ([\d.]+)\*?")
Cell = collections.namedtuple("Cell", "op bytes hosts per_host gbit")


def figures_for(settings, line_ns, scratch):
    """The figures, with a line's time of the moment."""
    if line_ns is None:
        return settings.figures
    figures = json.loads(pathlib.Path(settings.figures).read_text())
    figures["host"]["line_ns"] = line_ns
    path = pathlib.Path(scratch) / "figures.json"
    path.write_text(json.dumps(figures))
    return str(path)


def burst_of(cell):
    return links.Link(cell.hosts, cell.per_host, float(cell.gbit)).burst() if cell.hosts > 1 and float(cell.gbit) > 0 else 0


def calls_of(cell):
    """So many that a port is given what a bucket holds twenty times over."""
    if burst_of(cell) == 0:
        return 1
    return min(CALLS_MOST, max(CALLS_LEAST, 20 * burst_of(cell) // max(1, cell.bytes)))


def predict(settings, cells, line_ns=None):
    """cell -> rows of the simulation, one for each algorithm, the best first."""
    found = {}
    groups = collections.defaultdict(set)
    for cell in cells:
        groups[(cell.op, cell.hosts, cell.per_host, cell.gbit, burst_of(cell), calls_of(cell))].add(cell.bytes)
    with tempfile.TemporaryDirectory() as scratch:
        figures = figures_for(settings, line_ns, scratch)
        for (op, hosts, per_host, gbit, burst, calls), sizes in sorted(groups.items()):
            out = pathlib.Path(scratch) / "rows.tsv"
            out.unlink(missing_ok=True)
            words = [settings.bin / "tutti", "sim", op, "--hosts", str(hosts), "--per-host", str(per_host), "--sizes",
                     ",".join(str(s) for s in sorted(sizes)), "--cores", str(settings.cores), "--figures", figures,
                     "--tsv", str(out)]
            words += ["--one-machine", "--gbit", gbit, "--burst", str(burst), "--calls", str(calls)] if hosts > 1 else []
            subprocess.run(words, check=True, stdout=subprocess.DEVNULL)
            head, *lines = (line.split("\t") for line in out.read_text().splitlines())
            for line in lines:
                row = dict(zip(head, line))
                found.setdefault(Cell(op, int(row["bytes"]), hosts, per_host, gbit), []).append(row)
    return found


def taken(rows):
    """The time of what the library takes."""
    times = [float(row["us"]) for row in rows if row["taken"] == "1"]
    return times[0] if times else None


# ---- rows ------------------------------------------------------------------------------------------------

def measured_cells(rows, measure, sizes=()):
    """(cell, label) -> times of its rounds."""
    found = collections.defaultdict(list)
    for row in rows:
        if row["contender"] != "tutti" or row["status"] != "ok" or row["memory"] != "ordinary" or row["op"] not in OPS:
            continue
        if row.get("dtype") == "bf16" or (sizes and row["bytes"] not in sizes):  # elements have 4 bytes where it is simulated
            continue
        network = NETWORK.match(row["label"])
        if network is None and row["label"] not in ("near", "far", "mixed"):
            continue
        hosts, per_host, gbit = (int(network[1]), int(network[2]), network[3]) if network else (1, row["ranks"], "0")
        found[(Cell(row["op"], row["bytes"], hosts, per_host, gbit), row["label"])].append(row[measure])
    return {key: bench_rows.median(values) for key, values in found.items()}


def size_class(size):
    return "tiny" if size < 1024 else "to 64 KiB" if size <= 65536 else "to 4 MiB" if size <= 4 << 20 else "above"


def check_rows(settings):
    rows = [row for path in settings.rows for row in bench_rows.read(path.read_text().splitlines())]
    cells = measured_cells(rows, "each_us" if settings.each else "median_us", settings.sizes)
    lines = collections.defaultdict(list)
    for row in rows:
        lines[row["label"]] += [row["line_before_ns"]] if row["line_before_ns"] else []
    predictions = {label: predict(settings, {cell for cell, l in cells if l == label},
                                  bench_rows.median(lines[label]) if lines[label] else None)
                   for label in {label for _, label in cells}}
    errors = []
    for (cell, label), us in cells.items():
        predicted = taken(predictions[label].get(cell, []))
        if predicted and us:
            errors.append((abs(predicted / us - 1), predicted / us, cell, label, us, predicted))
    return sorted(errors, key=lambda e: e[0])


def say_errors(name, errors):
    values = [e[0] for e in errors]
    ratios = [e[1] for e in errors]
    print(f"| {name} | {len(errors)} | {100 * bench_rows.median(values):.0f} % | {100 * bench_rows.quantile(values, 0.9):.0f} % | "
          f"{100 * values[-1]:.0f} % | {bench_rows.median(ratios):.2f} |")


def report_rows(errors, n_worst):
    print("| cells | number | median error | 90 % below | worst | median of predicted / measured |\n|---|---|---|---|---|---|")
    say_errors("all", errors)
    groups = collections.defaultdict(list)
    for e in errors:
        groups[("0", e[3] if e[2].hosts > 1 else f"{e[2].per_host} ranks of a host")].append(e)
        groups[("1", size_class(e[2].bytes))].append(e)
        groups[("2", e[2].op)].append(e)
    for key in sorted(groups):
        say_errors(key[1], groups[key])
    for e in errors[::-1][:n_worst]:
        print(f"worst: {e[2].op} {e[2].bytes} B, {e[2].hosts}x{e[2].per_host}, {e[3]}: {e[4]:.1f} us measured, {e[5]:.1f} predicted")


# ---- ratios ----------------------------------------------------------------------------------------------

def read_ratios(lines):
    """[(cell, {algorithm: ratio to the usual choice})] of what `tutti bench --tune` has printed."""
    found, ranks = [], None
    for line in lines:
        head = re.match(r"(\d+) ranks on", line)
        if head:
            ranks = int(head[1])
            continue
        row = re.match(r"(\w+) +(\d+)  (.*)", line)
        if row is None or ranks is None or row[1] not in OPS:
            continue
        found.append((Cell(row[1], int(row[2]), 1, ranks, "0"), {m[1]: float(m[2]) for m in RATIO.finditer(row[3])}))
    return found


def check_ratios(settings):
    """[(right, how many times the quickest the predicted one is, cell, predicted, quickest)]"""
    measured = [m for path in settings.ratios for m in read_ratios(path.read_text().splitlines())]
    predictions = predict(settings, {cell for cell, _ in measured})
    found = []
    for cell, ratios in measured:
        rows = [row for row in predictions.get(cell, []) if row["candidate"] == "1"]
        names = [row["algorithm"] for row in rows if row["algorithm"] in ratios]
        ratios = {name: ratio for name, ratio in ratios.items() if name in names}
        if not names:
            continue
        quickest = min(ratios, key=ratios.get)
        lost = ratios[names[0]] / ratios[quickest] if ratios[quickest] > 0 else 1.0
        found.append((lost <= TIE, lost, cell, names[0], quickest))
    return found


def report_ratios(found, n_worst):
    right = sum(1 for f in found if f[0])
    near = sum(1 for f in found if f[1] <= 1.15)
    print(f"choice: of {len(found)} cells the algorithm predicted to be the best was within 5 % of the quickest in "
          f"{100 * right / len(found):.0f} %, within 15 % in {100 * near / len(found):.0f} %")
    for f in sorted(found, key=lambda f: -f[1])[:n_worst]:
        print(f"worst: {f[2].op} {f[2].bytes} B, {f[2].per_host} ranks: '{f[3]}' is predicted, '{f[4]}' was quicker, {f[1]:.2f} times")


# ---- choices ---------------------------------------------------------------------------------------------

def measured_choices(rows, measure):
    """Cell -> {form: the median over rounds}, "plain" being the library's own choice."""
    found = collections.defaultdict(lambda: collections.defaultdict(list))
    for row in rows:
        network = NETWORK.match(row["label"])
        if row["status"] == "ok" and network is not None:
            cell = Cell(row["op"], row["bytes"], int(network[1]), int(network[2]), network[3])
            found[cell][row["form"]].append(row[measure])
    return {cell: {form: bench_rows.median(values) for form, values in forms.items()} for cell, forms in found.items()}


def check_choices(settings):
    """[(cell, the library's over the quickest, the predicted one's over the quickest, predicted, quickest)]"""
    rows = [row for path in settings.choices for row in bench_rows.read(path.read_text().splitlines())]
    cells = measured_choices(rows, "each_us" if settings.each else "median_us")
    predictions = predict(settings, cells)
    found = []
    for cell, forms in cells.items():
        plain = forms.pop("plain", None)
        names = [row["algorithm"] for row in predictions.get(cell, []) if row["candidate"] == "1" and row["algorithm"] in forms]
        own = [row["algorithm"] for row in predictions.get(cell, []) if row["taken"] == "1"]
        if plain is None or len(names) < 2 or own[0] not in forms:
            continue
        quickest = min(names, key=forms.get)
        # the library's choice was measured twice, as such and by name: noise between the two is no other choice
        found.append((cell, min(plain, forms[own[0]]) / forms[quickest], forms[names[0]] / forms[quickest], own[0], names[0], quickest))
    return found


def form_errors(settings):
    """|predicted / measured - 1| of every algorithm that was asked for by its name, sorted."""
    rows = [row for path in settings.choices for row in bench_rows.read(path.read_text().splitlines())]
    cells = measured_choices(rows, "each_us" if settings.each else "median_us")
    predictions = predict(settings, cells)
    return sorted(abs(float(row["us"]) / forms[row["algorithm"]] - 1) for cell, forms in cells.items()
                  for row in predictions.get(cell, []) if forms.get(row["algorithm"]))


def report_choices(found, n_worst):
    def shares(name, column, of):
        ratios = [f[column] for f in of]
        print(f"| {name} | {len(of)} | {100 * sum(r <= 1.0001 for r in ratios) / len(of):.0f} % | "
              f"{100 * sum(r <= TIE for r in ratios) / len(of):.0f} % | {100 * sum(r <= NEAR for r in ratios) / len(of):.0f} % | "
              f"{max(ratios):.2f} |")

    print("| choice | cells | quickest | within 5 % | within 10 % | at worst, times |\n|---|---|---|---|---|---|")
    for column, who in ((1, "the library's"), (2, "the simulation's")):
        shares(who, column, found)
        for rate in sorted({f[0].gbit for f in found}, key=float):
            shares(f"{who}, {rate} Gb/s", column, [f for f in found if f[0].gbit == rate])
        for op in sorted({f[0].op for f in found}):
            shares(f"{who}, {op}", column, [f for f in found if f[0].op == op])
    for f in sorted(found, key=lambda f: -f[1])[:n_worst]:
        print(f"worst: {f[0].op} {f[0].bytes} B, {f[0].hosts}x{f[0].per_host} {f[0].gbit}G: '{f[3]}' is taken ({f[1]:.2f} times), '{f[4]}' "
              f"is predicted ({f[2]:.2f}), '{f[5]}' was the quickest")


def main():
    args = argparse.ArgumentParser()
    args.add_argument("--bin", type=pathlib.Path, required=True)
    args.add_argument("--figures", required=True)
    args.add_argument("--cores", type=int, default=2)
    args.add_argument("--rows", type=pathlib.Path, nargs="*", default=[])
    args.add_argument("--ratios", type=pathlib.Path, nargs="*", default=[])
    args.add_argument("--choices", type=pathlib.Path, nargs="*", default=[])
    args.add_argument("--each", action="store_true", help="calls back to back instead of synchronised ones")
    args.add_argument("--sizes", type=lambda text: {int(size) for size in text.split(",")}, default=set(), help="only rows of so many bytes")
    args.add_argument("--worst", type=int, default=8)
    settings = args.parse_args()
    if settings.rows:
        report_rows(check_rows(settings), settings.worst)
    if settings.ratios:
        report_ratios(check_ratios(settings), settings.worst)
    if settings.choices:
        report_choices(check_choices(settings), settings.worst)
        errors = form_errors(settings)
        print(f"times of {len(errors)} cells by an algorithm that was asked for: median error {100 * bench_rows.median(errors):.0f} %, "
              f"90 % below {100 * bench_rows.quantile(errors, 0.9):.0f} %")
    return 0


if __name__ == "__main__":
    sys.exit(main())
