#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""What startup_model.py plays is what the library does, as far as that can be counted, and adds up."""
import math
import unittest

from startup_model import CARD_BYTES, CLERK_BYTES, JOIN_BYTES, Model, play


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
