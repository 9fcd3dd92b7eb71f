#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""overlap_test
Goal    the rows of a round have computed the same, and one that has not, or could not, is no figure.
Method  contenders that are made up, who find different numbers of products right and note what they are asked for.
"""
import types
import unittest
from unittest import mock

import overlap
from crew import Lost


class Madeup:
    """A contender that finds so many products right, and computes what it is told, or what it likes."""

    def __init__(self, finds, computes=None):
        self.finds, self.computes, self.told = finds, computes, []

    def ask(self, words, verb):
        if isinstance(self.finds, Exception):
            raise self.finds
        if verb == "products":
            return self.finds if isinstance(self.finds, str) else f"ok {self.finds}"
        assert verb == "overlap"
        self.told.append(int(words.split()[9]))
        computed = self.computes or self.told[-1]
        return f"ok 4 {computed} 200.0 300.0 330.0 325.0 0.8500 1.0833"


def settings(crews, core=False):
    return types.SimpleNamespace(contenders=tuple(crews), link="2x1 1G", budget_ms=5, seed=1, commit="x", cores=2, ranks=2,
                                 near_below=200, core=core)


def a_round(number=0, **crews):
    return overlap.a_round(settings(crews), crews, number, 4096)


class Rounds(unittest.TestCase):
    def test_all_compute_the_same(self):
        crews = {"tutti": Madeup(120), "gloo": Madeup(169), "limit": Madeup(76)}
        for number in range(3):
            found = a_round(number, **crews)
            self.assertEqual({(r["status"], r["products"]) for r in found}, {("ok", 169)})
        self.assertEqual({n for crew in crews.values() for n in crew.told}, {169})

    def test_who_computes_something_else_has_no_figures(self):
        found = {r["contender"]: r for r in a_round(tutti=Madeup(120), before=Madeup(90, computes=90))}
        self.assertEqual(found["tutti"]["status"], "ok")
        self.assertEqual(found["before"]["status"], "failed: it computed 90 products, 120 were asked for")
        self.assertNotIn("hidden", found["before"])

    def test_who_does_not_choose_is_not_asked(self):
        gone, unwilling = Madeup(Lost("no answer within 60 s")), Madeup("cannot limits are blocking and warm")
        found = {r["contender"]: r for r in a_round(tutti=Madeup(12), gloo=gone, limit=unwilling)}
        self.assertEqual(found["tutti"]["products"], 12)
        self.assertEqual(found["gloo"]["status"], "failed: no answer within 60 s")
        self.assertEqual(found["limit"]["status"], "cannot limits are blocking and warm")
        self.assertEqual(gone.told + unwilling.told, [])

    def test_a_row_says_what_was_computed(self):
        row, = a_round(tutti=Madeup(7))
        words = dict(zip(overlap.COLUMNS, overlap.text_of(row).rstrip("\n").split("\t")))
        self.assertEqual((words["products"], words["hidden"], words["alone_us"]), ("7", "0.85", "200"))

    def test_what_an_operation_takes_of_a_core(self):
        # each ask takes 5 ms of two cores to get ready; a turn: two operations of 40 ms of a core each, two products of 10
        clock = {"now": 0.0, "idle": 0.0}
        crew = Madeup(1)

        def ask(words, verb):
            turns = 10 if words.split()[6] == "5" else 3
            clock["now"] += 0.005 + turns * 0.460
            clock["idle"] += turns * 2 * (0.460 - 0.080 - 0.020) * 1e6
            return f"ok {turns} 1 220000.0 10000.0 221000.0 10000.0 0.9 1.0"

        crew.ask = ask
        s = settings({"tutti": crew}, core=True)
        with mock.patch.object(overlap, "idle_us", lambda: clock["idle"]), \
                mock.patch.object(overlap.time, "monotonic", lambda: clock["now"]), \
                mock.patch.object(overlap.os, "cpu_count", lambda: 2):
            self.assertAlmostEqual(overlap.core_us(s, crew, "tutti", 4096), 40000, places=3)


if __name__ == "__main__":
    unittest.main()
