#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""scale_table_test
Goal    what docs/scale.md prints of all_reduce is what the command prints today.
Method  the columns of its tables that take a second or two, cell by cell: 16 ranks in all sizes, 256 up to 64 KiB, several ranks on 4
        and 32 hosts. Those of thousands of ranks take some minutes, and are left to whoever changes plans, choice or figures:
        they go by the same.

usage: scale_table_test.py --bin DIR
"""
import argparse
import pathlib
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
import scale_table  # noqa: E402
from scale_table import Cluster  # noqa: E402

LIMIT_S = 100
PAGE = HERE.parent / "docs" / "scale.md"
args = argparse.Namespace()


def table(text, title, columns):
    """{(column, size): cell} of the first table behind a line that begins so; columns: of its head, by their names."""
    lines = text[text.index("\n" + title):].split("\n")
    first = next(i for i, line in enumerate(lines) if line.startswith("| bytes |"))
    head, _, *rows = ([word.strip() for word in line.strip("|").split("|")] for line in lines[first:lines.index("", first)])
    return {(columns[name], row[0]): said for row in rows for name, said in zip(head, row) if name in columns}


class Page(unittest.TestCase):
    def predicted(self, *commands):
        with tempfile.TemporaryDirectory() as folder:
            rows = pathlib.Path(folder) / "rows.tsv"
            for words in commands:
                done = subprocess.run([args.bin / "tutti", "sim", "all_reduce", "--messages", "400K", "--tsv", rows, *words.split()],
                                      capture_output=True, text=True, timeout=LIMIT_S, check=False)
                self.assertEqual(done.returncode, 0, done.stderr)
            found = scale_table.cells(scale_table.read(rows))
        return {(cluster, scale_table.size_text(size)): said for (cluster, size), said in found.items()}

    def test_a_rank_on_each_host(self):
        for gbit in ("10", "100"):
            page = table(PAGE.read_text(encoding="utf-8"), f"Ports of {gbit} Gb/s, one rank",
                         {"16 ranks": Cluster(16, 1, gbit), "256 ranks": Cluster(256, 1, gbit)})
            found = self.predicted(f"--hosts 16 --gbit {gbit}", f"--hosts 256 --gbit {gbit} --sizes 4,1K,8K,64K")
            self.assertEqual(len(page), 16)
            self.assertEqual(len(found), 8 + 4)
            self.assertEqual({key: page[key] for key in found}, found)

    def test_several_ranks_on_a_host(self):
        page = table(PAGE.read_text(encoding="utf-8"), "Eight ranks on each host",
                     {"4 hosts": Cluster(4, 8, "100"), "32 hosts": Cluster(32, 8, "100")})
        self.assertEqual(page, self.predicted(*(
            f"--hosts 4,32 --per-host 8 --gbit 100 --sizes 4,8K,64K,512K,4M,32M --algorithm {name}" for name in scale_table.LEVELS)))


class Texts(unittest.TestCase):
    def test_cells(self):
        def row(algorithm, us, candidate):
            return {"algorithm": algorithm, "us": str(us), "candidate": candidate}

        self.assertEqual(scale_table.cell([row("ring", 1500, "1"), row("direct", 1000, "0")]), "direct, 1.0 ms (ring, 1.50)")
        self.assertEqual(scale_table.cell([row("ring", 99.6, "1"), row("direct", 1000, "0")]), "ring, 100 us")
        self.assertEqual(scale_table.cell([row("leaders", 40, "1"), row("two_level", 120000, "1"), row("ring", 3, "0")]), "40 us")
        self.assertEqual([scale_table.time_text(us) for us in (999.4, 999.6, 123456)], ["999 us", "1.0 ms", "123 ms"])
        self.assertEqual([scale_table.size_text(n) for n in (4, 8 << 10, 256 << 20)], ["4 B", "8 KiB", "256 MiB"])


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", type=pathlib.Path, required=True)
    args, rest = parser.parse_known_args()
    unittest.main(argv=[sys.argv[0], *rest])
