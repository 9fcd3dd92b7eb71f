#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""net_choice: between hosts, the library's own choice of algorithms beside all that it could have taken.

How     As net.py, whose networks, rounds and rows these are; but the contenders are all tutti: one crew as it comes, and one
        for each algorithm, which TUTTI_ALGO names for every operation that has it. All crews of a network are there at once, and
        sleep while another one is measured; in a cell they follow each other, each time from another one on.
        Which algorithms a call may take without being asked to `tutti sim` says (its column "candidate").
        A row's form is the algorithm, or "plain" for the library's own choice. sim_check.py --choices reads them.
Fails   As net.py.

usage: net_choice.py --bin DIR --out FILE [--hosts 4x1,2x2 --gbit 1,10 --ops all_reduce,broadcast --sizes 4,8K,512K,4M ...]
"""
import collections
import pathlib
import subprocess
import sys
import tempfile

import net
import rounds

OWN = "plain"


def candidates(settings, place):
    """{op: {size: (algorithms that the library may take there)}}"""
    found = collections.defaultdict(lambda: collections.defaultdict(list))
    with tempfile.TemporaryDirectory() as scratch:
        out = pathlib.Path(scratch) / "rows.tsv"
        subprocess.run([settings.bin / "tutti", "sim", ",".join(settings.ops), "--hosts", str(place.hosts), "--per-host",
                        str(place.per_host), "--sizes", ",".join(map(str, settings.sizes)), "--tsv", str(out)],
                       check=True, stdout=subprocess.DEVNULL)
        head, *lines = (line.split("\t") for line in out.read_text().splitlines())
    for row in (dict(zip(head, line)) for line in lines):
        if row["candidate"] == "1":
            found[row["op"]][int(row["bytes"])].append(row["algorithm"])
    return found


class FormCrew(net.NetCrew):
    """tutti as it comes, or with one algorithm where an operation has it."""

    def __init__(self, form, ops, network, settings):
        super().__init__("tutti", network, settings)
        self.wish = ",".join(f"{op}={form}" for op in ops)

    def variables(self, place, port):
        found = super().variables(place, port)
        return {**found, "TUTTI_ALGO": self.wish} if self.wish else found


class Forms(net.Networks):
    def __init__(self, settings, part, old, out):
        self.found, self.turn = {}, 0
        super().__init__(settings, part, old, out)

    def make_crews(self, place, names):
        super().make_crews(place, [])
        by_form = collections.defaultdict(list)
        for op, sizes in self.candidates_of(place).items():
            for form in sorted({form for forms in sizes.values() for form in forms}):
                by_form[form].append(op)
        crews = {form: FormCrew(form, ops, self.network, self.settings) for form, ops in by_form.items()}
        return {OWN: FormCrew(OWN, (), self.network, self.settings), **crews}

    def candidates_of(self, place):
        if place not in self.found:
            self.found[place] = candidates(self.settings, place)
        return self.found[place]

    def forms_of(self, name, cell, place):
        op, _, size = cell
        forms = [OWN, *self.candidates_of(place)[op][size]]
        self.turn += 1
        first = self.turn % len(forms)
        return forms[first:] + forms[:first]

    def ask(self, name, place, cell, form, whole_ms):
        """As the contender of that form, which itself knows of none."""
        crews, self.crews = self.crews, {name: self.crews[form]}
        try:
            return super().ask(name, place, cell, OWN, whole_ms)
        finally:
            self.crews = crews

    def opening(self, place, number):
        """The links are those of net.py."""


def main():
    s = net.complete(net.arguments())
    s.contenders, s.missing = ("tutti",), {n: why for n, why in s.missing.items() if n == "tutti"}
    s.iperf = None
    rounds.run(Forms, s)
    return 0


if __name__ == "__main__":
    sys.exit(main())
