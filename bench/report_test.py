#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""report_test
Goal    Rows survive being written and read; ratios never mix rounds or labels; verdicts follow the rule; the page
        names worst and lost cells before any mean, and who was not measured.
Method  Rows made here.
"""
import argparse
import pathlib
import sys
import tempfile
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import goals  # noqa: E402
import net_report  # noqa: E402
import peers  # noqa: E402
import report  # noqa: E402
import rounds  # noqa: E402
import rows  # noqa: E402

BASE = {"part": 0, "commit": "abc", "seed": 1, "cores": 2, "round": 0, "ranks": 2, "op": "all_reduce", "dtype": "f32",
        "bytes": 4096, "moved": 4096, "mode": "blocking", "buffers": "warm", "memory": "ordinary",
        "contender": "tutti", "form": "plain", "status": "ok", "label": "near", "line_before_ns": 60.0,
        "line_after_ns": 80.0, "load": 0.1, "calls": 9, "least_us": 1.0, "p10_us": 1.0, "median_us": 1.0, "p90_us": 1.0,
        "p99_us": 1.0, "chained": 9, "each_us": 1.0}


def row(us, **other):
    return {**BASE, "median_us": us, "each_us": us, **other}


def rounds_of(ours, theirs, **other):
    """A run of rounds: our times, and a rival's of the same rounds."""
    return [r for i, (a, b) in enumerate(zip(ours, theirs)) for r in
            (row(a, round=i, **other), row(b, round=i, contender="openmpi", **other))]


def verdict(*runs):
    (cell, rounds), = rows.by_cell(runs).items()
    return rows.verdict(rows.ratios(rounds, "median_us", lambda _, c: rows.best_rival(c, "median_us")[1]))


class Rows(unittest.TestCase):
    def test_written_rows_are_read(self):
        some = [row(1.25), row(2.5, status="failed: it\tdied", median_us=None, calls=None)]
        lines = ["\t".join(rows.COLUMNS) + "\n", "# a word\n"] + [rows.write(r) for r in some]
        back = rows.read(lines)
        self.assertEqual(back[0], some[0])
        self.assertEqual((back[1]["status"], back[1]["median_us"]), ("failed: it died", None))
        with self.assertRaisesRegex(ValueError, "line 1 has 2 columns"):
            rows.read(["a\tb\n"])

    def test_quantiles_are_those_of_the_c_side(self):
        self.assertEqual(rows.quantile([50, 10, 40, 20, 30], 0.125), 15)
        self.assertEqual(rows.median([40, 10, 20, 30]), 25)
        self.assertEqual(rows.quantile([7], 0.99), 7)

    def test_labels(self):
        self.assertEqual(rows.label_of(60, 90, 200), "near")
        self.assertEqual(rows.label_of(400, 390, 200), "far")
        self.assertEqual(rows.label_of(60, 390, 200), "mixed")
        self.assertEqual(rows.label_of(None, 390, 200), "unknown")


class Ratios(unittest.TestCase):
    def test_are_formed_inside_a_round(self):
        run = rounds_of([10, 1], [20, 2]) + [row(1000, round=2)] + [row(0.001, round=3, contender="mpich")]
        (_, rounds), = rows.by_cell([run]).items()
        found = rows.ratios(rounds, "median_us", lambda _, c: (rows.best_rival(c, "median_us") or [None])[-1])
        self.assertEqual(found, {0: [0.5, 0.5]})

    def test_never_mix_labels_or_failures(self):
        run = rounds_of([1], [2]) + rounds_of([9], [2], label="far") + [row(0.1, contender="gloo", status="failed: x")]
        found = {c.label: rows.best_rival(next(iter(r.values())), "median_us") for c, r in rows.by_cell([run]).items()}
        self.assertEqual(found, {"near": ("openmpi", 2), "far": ("openmpi", 2)})

    def test_the_best_rival_is_no_limit(self):
        some = {("tutti", "plain"): row(1), ("limit", "pass"): row(0.5), ("mpich", "plain"): row(3),
                ("gloo", "plain"): row(4)}
        self.assertEqual(rows.best_rival(some, "median_us"), ("mpich", 3))

    def test_verdicts(self):
        self.assertEqual(verdict(rounds_of([8, 9, 7], [10, 10, 10])), "won")
        self.assertEqual(verdict(rounds_of([8, 9, 12], [10, 10, 10])), "tie")  # p90 over rounds is above 1
        self.assertEqual(verdict(rounds_of([9.7, 9.8, 9.6], [10, 10, 10])), "tie")
        slow = rounds_of([12, 11, 13], [10, 10, 10])
        self.assertEqual(verdict(slow), "behind")
        self.assertEqual(verdict(slow, slow), "lost")
        self.assertEqual(verdict(slow, rounds_of([9, 9.5, 9], [10, 10, 10])), "tie")
        self.assertEqual(verdict(rounds_of([12, 9, 9, 12, 12], [10] * 5)), "tie")  # lower quartile is below 1
        self.assertEqual(rows.verdict({}), "unknown")


    def test_ours_are_no_rivals_of_each_other(self):
        run = [row(8), row(4, contender="registered"), row(10, contender="before"), row(16, contender="mpich")]
        (_, rounds), = rows.by_cell([run]).items()
        rival = lambda _, c: rows.best_rival(c, "median_us")[1]  # noqa: E731
        before = lambda _, c: rows.time_of(c, "median_us", "before")  # noqa: E731
        self.assertEqual(rows.ratios(rounds, "median_us", rival), {0: [0.5]})
        self.assertEqual(rows.ratios(rounds, "median_us", rival, "registered"), {0: [0.25]})
        self.assertEqual(rows.ratios(rounds, "median_us", before), {0: [0.8]})
        words = report.brief([run]).splitlines()[1].split()
        self.assertEqual(words[-8:], ["8", "0.80", "0.50", "mpich", "4", "-", "0.25", "1"])


class Floors(unittest.TestCase):
    def test_the_longer_of_bytes_and_a_change_of_hands(self):
        some = {("limit", "pass"): row(5, contender="limit"), ("limit", "pass-nt"): row(4, contender="limit"),
                ("limit", "staged"): row(9, contender="limit")}
        self.assertEqual(rows.floor(some, rows.PASS, "median_us", 2.0), 4)
        self.assertEqual(rows.floor(some, rows.STAGED, "median_us", 2.0), 9)
        tiny = {("limit", "pass"): row(0.01, contender="limit")}
        self.assertAlmostEqual(rows.floor(tiny, rows.PASS, "median_us", 2.0), 0.07)  # lines: 60 and 80 ns

    def test_crowded_ranks_pass_through_the_cores(self):
        crowded = {("limit", "pass"): row(5, contender="limit", ranks=8, each_us=20)}
        self.assertEqual(rows.floor(crowded, rows.PASS, "median_us", 2.0), 20)
        self.assertEqual(rows.floor(crowded, rows.PASS, "median_us", 30.0), 30)
        self.assertEqual(rows.floor({("tutti", "plain"): row(1, ranks=8)}, rows.PASS, "median_us", None), None)

    def test_bus_bytes(self):
        self.assertEqual([rows.bus_factor(op, 4) for op in ("all_reduce", "all_gather", "broadcast")], [1.5, 0.75, 1])


class Goals(unittest.TestCase):
    def goal(self, start, *runs):
        """(found, reached, bytes of the cells that miss it)"""
        some = [g for g in goals.all_of(runs, "median_us") if g.what.startswith(start)]
        self.assertLess(len(some), 2, start)
        return (some[0].found, some[0].reached, [cell.bytes for _, cell in some[0].missed]) if some else None

    def test_lost_is_behind_in_two_runs_whatever_their_labels(self):
        slow = rounds_of([12, 11, 13], [10, 10, 10])
        far = rounds_of([12, 11, 13], [10, 10, 10], label="far")
        fast = rounds_of([9, 9, 9], [10, 10, 10], bytes=8)
        self.assertEqual(self.goal("cells behind", slow + fast), ("1 of 2", None, [4096]))
        self.assertEqual(self.goal("cells lost", slow + fast, slow + fast), ("1 of 2", False, [4096]))
        self.assertEqual(self.goal("cells lost", slow, far), ("2 of 2", False, [4096, 4096]))
        self.assertEqual(self.goal("cells lost", slow, rounds_of([12, 9, 9], [10] * 3)), ("0 of 1", True, []))
        self.assertEqual(self.goal("cells lost", slow, slow[:4], rounds_of([5], [10], label="mixed"))[0], "1 of 1")

    def test_lost_is_not_known_of_one_run(self):
        """However many rounds and parts it has; nor of two that share no cell."""
        slow, other = rounds_of([12] * 5, [10] * 5), rounds_of([12] * 5, [10] * 5, bytes=8)
        again = [{**r, "part": r["part"] + 1} for r in slow]
        for runs in ([slow], [slow + again], [slow, other]):
            self.assertEqual(self.goal("cells lost", *runs), ("one run", None, []))
        self.assertEqual(self.goal("cells lost", slow, slow + other), ("1 of 2", False, [4096]))
        line = "| cells lost to the best peer, in two runs | none | one run | - |"
        for page in (report.text(["x"], [slow], {}), net_report.text(["x"], [rounds_of([12] * 5, [10] * 5, label="2x1 1G")], {})):
            self.assertEqual(page.count(line), len(rows.MEASURES))
            self.assertNotIn("ells lost to the best peer, in two runs; these", page)

    def test_registered_memory_is_judged_for_itself(self):
        run = rounds_of([5, 5], [10, 10]) + [row(12, round=i, contender="registered") for i in (0, 1)]
        self.assertEqual(self.goal("cells lost", run, run)[:2], ("0 of 1", True))
        self.assertEqual(self.goal("on registered memory, cells lost", run, run)[:2], ("1 of 1", False))

    def test_large_copies_need_not_be_won(self):
        run = (rounds_of([10], [10], op="all_gather", bytes=2 << 20) +
               rounds_of([10], [10], op="all_gather", bytes=1 << 20) + rounds_of([9], [10], bytes=8) +
               rounds_of([7], [10], bytes=16) + rounds_of([7.9], [10], bytes=32))
        self.assertEqual(self.goal("cells won by", run), ("1 of 4, 25%", False, [1 << 20, 8, 32]))
        self.assertEqual(self.goal("cells won by", rounds_of([7] * 5, [10] * 5))[1], True)

    def test_means_are_of_the_cells_they_name(self):
        some = ((4, "reduce", 100), (8192, "reduce", 2), (8192, "broadcast", 100), (1 << 20, "reduce", 8))
        run = [r for size, op, us in some for r in
               (row(1, bytes=size, op=op, contender="registered"), row(16, bytes=size, op=op, contender="mpich"),
                row(us, bytes=size, op=op), row(320, bytes=size, op=op, contender="gloo"))]
        found = self.goal("time of the best peer / ours, registered", run)
        self.assertEqual(found[:2], ("16.00", True))  # 16 and 16
        self.assertEqual(self.goal("time of the best peer / ours, ordinary", run)[0], "0.80")  # 0.16 8 0.16 2
        self.assertEqual(self.goal("time of gloo / ours above", run)[:2], ("40.00", True))
        self.assertEqual(self.goal("time of gloo / ours up to", run)[:2], ("11.79", False))  # 3.2 160 3.2

    def limits(self, who, form, us, limit_us, **other):
        return [row(us, contender=who, **other), row(limit_us, contender="limit", form=form, **other)]

    def test_limits_are_stricter_where_each_rank_has_a_core(self):
        run = (self.limits("registered", "pass", 13, 10, bytes=512 << 10) +
               self.limits("registered", "pass", 13.1, 10, bytes=2 << 20) +
               self.limits("registered", "pass", 30, 10, bytes=256 << 10) +
               self.limits("tutti", "staged-nt", 13, 10, bytes=64 << 10) +
               self.limits("tutti", "staged", 20, 10, bytes=1 << 20, ranks=8) +
               self.limits("tutti", "staged", 21, 10, bytes=1 << 22, ranks=4))
        self.assertEqual(self.goal("registered memory / one pass, from 512 KiB up, 2", run),
                         ("1 of 2 cells", False, [2 << 20]))
        self.assertEqual(self.goal("ordinary memory / staged, from 64 KiB up, 2", run), ("1 of 1 cells", True, []))
        self.assertEqual(self.goal("ordinary memory / staged, from 64 KiB up, more", run),
                         ("1 of 2 cells", False, [1 << 22]))
        self.assertIsNone(self.goal("registered memory / one pass, from 512 KiB up, more", run))

    def test_tiny_cells_stand_beside_lines_and_yields(self):
        run = [row(0.17, bytes=64), row(0.18, bytes=4), row(0.5, bytes=256), row(8.1, bytes=4, ranks=8),
               row(8, bytes=64, ranks=8), row(4, op="yield", contender="limit", ranks=8, bytes=0, label="-")]
        self.assertEqual(self.goal("up to 64 B / a bare", run), ("1 of 2 cells", False, [4]))  # lines: 70 ns
        self.assertEqual(self.goal("up to 64 B / every", run), ("1 of 2 cells", False, [4]))

    def test_a_bare_program_is_met_in_the_same_round(self):
        run = (self.limits("tutti", "bare", 12, 10, bytes=8) + self.limits("tutti", "bare", 12.1, 10, bytes=64) +
               self.limits("tutti", "bare", 13, 10, bytes=64, ranks=8) +
               self.limits("registered", "bare-pass", 11, 10, bytes=64))
        self.assertEqual(self.goal("ordinary memory / a bare program, 2", run), ("1 of 2 cells", False, [64]))
        self.assertEqual(self.goal("ordinary memory / a bare program, more", run), ("0 of 1 cells", False, [64]))
        self.assertEqual(self.goal("registered memory / a bare program, 2", run), ("1 of 1 cells", True, []))


class Plan(unittest.TestCase):
    def settings(self, minutes, **other):
        s = argparse.Namespace(contenders=("tutti", "registered", "gloo"), missing={"gloo": "not there"}, budget_ms=None,
                               grid="core", minutes=minutes, deadline=time.monotonic() + 60 * minutes)
        vars(s).update(other)
        return s

    def test_contenders_share_the_time_that_is_left(self):
        plan = rounds.Plan(self.settings(10), {2: 100, 8: 100})
        guess = 100 * (2 + 8) * plan.GUESS_S * 2  # besides, for two contenders
        self.assertAlmostEqual(plan.budget_ms(), 1000 * (600 - guess) / 400, delta=20)
        self.assertAlmostEqual(plan.minutes_left(), 10, delta=0.5)
        for _ in range(50):
            plan.visited(2, 11, 5000)  # a second besides; so four for 8 ranks
        self.assertAlmostEqual(plan.budget_ms(), 1000 * (600 - 50 * 1 - 100 * 4) / 300, delta=20)
        plan = rounds.Plan(self.settings(1), {2: 1000})
        self.assertEqual(plan.budget_ms(), rounds.BUDGET_MIN_MS)
        self.assertEqual(rounds.Plan(self.settings(1000), {2: 1}).budget_ms(), rounds.BUDGET_CORE_MS)

    def test_what_was_asked_for_is_kept(self):
        self.assertEqual(rounds.Plan(self.settings(40, budget_ms=7), {2: 1}).budget_ms(), 7)
        self.assertEqual(rounds.Plan(self.settings(40, grid="full"), {2: 1}).budget_ms(), rounds.BUDGET_FULL_MS)

    def test_what_was_too_slow_is_not_asked_again(self):
        s = self.settings(1, ops=("reduce",), sizes=(4,), dtypes=("f32",), ranks=(4,), places=(4,), rounds=2, seed=1, cores=1,
                          has_limit=False)
        old = [row(None, contender="gloo", op="reduce", ranks=4, bytes=4096, status="failed: no answer within 15 s"),
               row(1, op="reduce", ranks=4, bytes=4)]
        m = peers.Peers(s, 1, old, None)
        self.assertTrue(m.too_slow("gloo", 4, "reduce", 4096) and m.too_slow("gloo", 8, "reduce", 8192))
        self.assertFalse(m.too_slow("gloo", 4, "reduce", 1024) or m.too_slow("gloo", 2, "reduce", 8192) or
                         m.too_slow("tutti", 4, "reduce", 4096) or m.too_slow("gloo", 4, "broadcast", 4096))
        self.assertEqual([m.cells_of(4, number) for number in (0, 1)], [[], [("reduce", "f32", 4)]])
        self.assertEqual(m.plan.left, {4: 1})


class Page(unittest.TestCase):
    def text(self, *runs):
        return report.text([f"run{i}" for i in range(len(runs))], runs, {})

    def test_bad_news_come_first(self):
        slow = rounds_of([12, 11, 13], [10, 10, 10])
        fast = rounds_of([1, 1, 1], [4, 4, 4], op="broadcast")
        words = self.text(slow + fast, slow + fast)
        order = [words.index(w) for w in ("Worst cell: all_reduce f32 4 KiB, 2 ranks (near): 1.20 times",
                                          "| cells lost to", "| time of the best peer",
                                          "Cells lost to the best peer, in two runs; these cells are:",
                                          "1 won, 1 lost", "Worst cell: all_reduce f32 4 KiB, 2 ranks: 1.20 times",
                                          "Lost, in two runs: all_reduce f32 4 KiB, 2 ranks (1.20 of openmpi)",
                                          "Geometric mean of (best rival's time / ours): 1.83", "### all_reduce")]
        self.assertEqual(order, sorted(order))
        self.assertIn("| 2 | 4 KiB | 12 | 0.341 | 0.341 | openmpi | 10 | 1.20 | lost |", words)

    def test_who_was_not_measured_is_named(self):
        words = self.text([row(1), row(None, contender="mpich", status="failed: no answer within 30 s")])
        self.assertIn("- mpich, all_reduce, 2 ranks, 1 rows: failed: no answer within 30 s", words)
        self.assertIn("| 2 | 4 KiB | 1 | 4.1 | 4.1 | - | - | - | unknown |", words)

    def test_only_the_marked_part_of_a_page_changes(self):
        with tempfile.TemporaryDirectory() as folder:
            page = pathlib.Path(folder) / "page.md"
            page.write_text(f"before\n{report.BEGIN}\nold\n{report.END}\nafter\n")
            report.into_page(page, "new\n")
            self.assertEqual(page.read_text(), f"before\n{report.BEGIN}\nnew\n{report.END}\nafter\n")
            page.write_text("nothing\n")
            with self.assertRaises(SystemExit):
                report.into_page(page, "new\n")

    def test_pictures_have_a_panel_for_each_number_of_ranks(self):
        run = [r for ranks in (2, 4) for size in (4, 64) for r in rounds_of([1, 3], [5, 5], ranks=ranks, bytes=size)]
        (label, cells), = report.summaries([run], "median_us").items()
        (kind, some), = report.kinds(cells).items()
        script = report.script([run], "median_us", label, kind, some, "x.svg")
        self.assertIn("layout 1,2", script)
        self.assertIn("$r4_1 << END\n4 2.0\n64 2.0\nEND", script)  # tutti's medians of 1 and 3


if __name__ == "__main__":
    unittest.main()
