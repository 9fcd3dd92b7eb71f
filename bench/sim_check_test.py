#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""sim_check_test
Goal    Figures of messages are those of the rows of messages, and of nothing else; a cell of a network is predicted with its
        shaper's burst, and with so many calls that the bucket has settled; choices are compared with what was measured.
Method  Rows made here; the built `tutti sim`.

usage: sim_check_test.py --bin DIR
"""
import argparse
import pathlib
import sys
import tempfile
import types
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
import rows  # noqa: E402
import sim_check  # noqa: E402
import sim_far  # noqa: E402
from sim_check import Cell  # noqa: E402

args = argparse.Namespace()


def row(op, size, us, label="2x1", form="plain", each=None, contender="tutti"):
    return {"op": op, "bytes": size, "label": label, "form": form, "contender": contender, "status": "ok", "memory": "ordinary",
            "ranks": 2, "round": 0, "median_us": us, "each_us": us if each is None else each}


MESSAGES = [row("send_recv", 4, 12.0, each=8.0), row("send_recv", 16 << 10, 12.0 + 16.384), row("exchange64", 512 << 10, 33554.432)]


class Far(unittest.TestCase):
    def test_what_messages_take(self):
        self.assertEqual(sim_far.far_figures(MESSAGES),
                         {"message_us": 12.0, "post_us": 6.0, "uneven_us": 2.0, "send_ns_per_byte": 0.5, "recv_ns_per_byte": 0.5,
                          "bulk_ns_per_byte": 1.0})

    def test_nothing_else_counts(self):
        others = [row("send_recv", 4, 1.0, label="2x1 1G"), row("all_reduce", 4, 1.0), row("send_recv", 4, 1.0, contender="gloo")]
        self.assertEqual(sim_far.far_figures(MESSAGES + others), sim_far.far_figures(MESSAGES))
        with self.assertRaises(ValueError):
            sim_far.far_figures(others)

    def test_neither_end_does_more_than_all(self):
        slow = [row("send_recv", 4, 12.0, each=30.0), *MESSAGES[1:]]
        quick = [row("send_recv", 4, 12.0, each=2.0), *MESSAGES[1:]]
        self.assertEqual([sim_far.far_figures(r)["uneven_us"] for r in (slow, quick)], [6.0, 0])


class Networks(unittest.TestCase):
    def test_bursts_and_calls(self):
        tiny, large, host = Cell("reduce", 4, 4, 1, "1"), Cell("reduce", 16 << 20, 4, 1, "10"), Cell("reduce", 4, 1, 4, "0")
        self.assertEqual([sim_check.burst_of(c) for c in (tiny, large, host)], [80 << 10, 250000, 0])
        self.assertEqual([sim_check.calls_of(c) for c in (tiny, large, host)],
                         [sim_check.CALLS_MOST, sim_check.CALLS_LEAST, 1])
        middle = Cell("reduce", 64 << 10, 2, 1, "1")
        self.assertGreater(sim_check.calls_of(middle) * middle.bytes, 10 * sim_check.burst_of(middle))

    def settings(self, measured):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        figures, choices = pathlib.Path(folder.name) / "figures.json", pathlib.Path(folder.name) / "rows.tsv"
        figures.write_text('{ "tutti_figures": 1 }')
        choices.write_text("".join(rows.write({"part": 0, "seed": 1, "cores": 2, **r}) for r in measured))
        return types.SimpleNamespace(bin=args.bin, figures=str(figures), cores=2, choices=[choices], each=False)

    def test_choices_are_judged_by_what_was_measured(self):
        label = "4x1 1G"
        measured = [row("all_gather", 4, us, label, form) for form, us in
                    (("plain", 30.0), ("bruck", 30.0), ("direct", 20.0), ("ring", 60.0))]
        found, = sim_check.check_choices(self.settings(measured))
        self.assertEqual(found[:2] + found[3:4] + found[5:], (Cell("all_gather", 4, 4, 1, "1"), 1.5, "bruck", "direct"))
        self.assertEqual(found[2], {"direct": 1.0, "bruck": 1.5, "ring": 3.0}[found[4]])

    def test_times_of_named_algorithms_are_compared(self):
        settings = self.settings([row("all_gather", 4, 1.0, "4x1 1G", form) for form in ("plain", "bruck", "direct")])
        predicted = {r["algorithm"]: float(r["us"]) for r in sim_check.predict(settings, [Cell("all_gather", 4, 4, 1, "1")]).popitem()[1]}
        self.assertEqual(sim_check.form_errors(settings), sorted(predicted[form] - 1 for form in ("bruck", "direct")))

    def test_rows_of_other_elements_and_sizes_are_left_out(self):
        measured = [{**row("all_gather", size, us, "near"), "dtype": dtype} for size, us, dtype in
                    ((4, 1.0, "f32"), (4, 9.0, "bf16"), (64, 2.0, "f32"))]
        small, large = Cell("all_gather", 4, 1, 2, "0"), Cell("all_gather", 64, 1, 2, "0")
        self.assertEqual(sim_check.measured_cells(measured, "median_us"), {(small, "near"): 1.0, (large, "near"): 2.0})
        self.assertEqual(sim_check.measured_cells(measured, "median_us", {64}), {(large, "near"): 2.0})

    def test_cells_without_the_own_choice_are_left_out(self):
        label = "4x1 1G"
        measured = [row("all_gather", 4, us, label, form) for form, us in (("bruck", 30.0), ("direct", 20.0))]
        self.assertEqual(sim_check.check_choices(self.settings(measured)), [])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", type=pathlib.Path, required=True)
    global args  # pylint: disable=global-statement
    args, rest = parser.parse_known_args()
    unittest.main(argv=[sys.argv[0], *rest])


if __name__ == "__main__":
    main()
