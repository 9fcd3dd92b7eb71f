#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""What startup_model.py plays is what the library does, as far as that can be counted, and adds up."""
import math
import pathlib
import re
import unittest

from startup_model import CARD_BYTES, CLERK_BYTES, JOIN_BYTES, TOGETHER, Model, line, play

ROOT = pathlib.Path(__file__).resolve().parent.parent


def number_in(path, pattern):
    """What a source says; an error where it says it no more, or twice."""
    (found,) = re.findall(pattern, (ROOT / path).read_text())
    return int(found)


class Sources(unittest.TestCase):
    def test_what_a_rank_leaves_is_as_long_as_the_library_s(self):
        for path, kind, is_here in (("src/transport/card.h", "tti_card", CARD_BYTES), ("src/coll/team.h", "tti_join", JOIN_BYTES)):
            self.assertEqual(number_in(path, rf"_Static_assert\(sizeof\({kind}\) == (\d+),"), is_here, kind)
        name = number_in("src/base/port.h", r"TTI_LOCAL_NAME_MAX = (\d+)")
        self.assertEqual(number_in("src/transport/card.h", r"_Static_assert\(sizeof\(tti_clerk\) == (\d+) \+ TTI_LOCAL_NAME_MAX") + name, CLERK_BYTES)
        self.assertEqual(number_in("src/transport/scribe.h", r"TTI_SCRIBE_FROM = (\d+)"), TOGETHER)
        self.assertEqual(number_in("bench/startup_store.c", r"\bCARD = (\d+)"), CARD_BYTES)

    def test_the_page_has_what_is_played(self):
        page = (ROOT / "docs/scale.md").read_text()
        constants = [float(n) for n in re.search(r'startup_model\.py --constants "([0-9. ]+)"', page)[1].split()]
        for ranks in (256, 1024, 4096):
            self.assertIn(line(Model(*constants), Model(*constants, together=math.inf), ranks), page)
        for bytes_each in (CARD_BYTES, JOIN_BYTES):
            self.assertIn(f"| {bytes_each} bytes for each rank, on each rank or host |", page)


class Starts(unittest.TestCase):
    def test_requests_are_those_of_the_library(self):
        for ranks, each in ((2, 8), (8, 8), (63, 8), (256, 8), (257, 10), (1024, 14)):
            _, server = play(Model(1000, 100, 1, together=math.inf), ranks)
            # rank 0 waits for no number, and writes two keys instead
            self.assertEqual(server.requests, each * ranks + 1)

    def test_requests_of_hosts_that_read_together(self):
        for ranks, per_host, lists in ((64, 64, 1), (256, 8, 1), (257, 8, 2), (1024, 8, 4)):
            _, server = play(Model(1000, 100, 1, per_host=per_host), ranks)
            hosts, alone = math.ceil(ranks / per_host), ranks % per_host == 1  # who is alone tells nobody of joins
            self.assertEqual(server.requests, 10 * (ranks - hosts) + (9 + 2 * lists) * hosts - alone + 1)

    def test_all_cards_are_sent_to_all(self):
        _, server = play(Model(1000, 100, 1, together=math.inf), 600)
        cards = server.sent - 600 * (100 + 16 * 6) + 16  # rank 0's number
        self.assertEqual(cards, 600 * 600 * (CARD_BYTES + JOIN_BYTES))

    def test_all_cards_are_sent_to_all_hosts(self):
        _, server = play(Model(1000, 100, 1), 600)
        hosts, others = 75, 525
        cards = server.sent - 600 * (100 + 16 * 7) + 16 - others * (CLERK_BYTES + 2 * 16) - hosts * 2 * 16
        self.assertEqual(cards, 75 * 600 * (CARD_BYTES + JOIN_BYTES))

    def test_a_busy_server_bounds_the_end(self):
        for ranks in (16, 512):
            ended, server = play(Model(50000, 5000, 150), ranks)
            self.assertGreaterEqual(ended, server.busy_ns)

    def test_nothing_ends_before_the_last_rank_was_started(self):
        model = Model(0, 0, 0, per_host=64, exec_ms=5.0)
        ended, _ = play(model, 64)
        self.assertGreater(ended, 64 * 5e6)

    def test_more_ranks_take_longer(self):
        ends = [play(Model(50000, 5000, 150), ranks)[0] for ranks in (8, 64, 512, 1024)]
        self.assertEqual(ends, sorted(ends))


if __name__ == "__main__":
    unittest.main()
