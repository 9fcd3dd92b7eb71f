#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""sim_far: what messages between hosts take, from messages alone, into a file of figures for `tutti sim`.

How     Rows of net.py on two hosts of one rank, whose link has no rate (--gbit 0): send_recv of 4 B and 16 KiB, exchange64 of
        512 KiB.
          message_us   one tiny message, from a common start until the receiver has it
          post_us      half of it: nothing is under way between hosts that are one machine, a core works all the time
          uneven_us    tiny messages one after the other take what the slower end takes for one, which is the sender: the
                       kernel receives on its core; so much more than half
          ns per byte  of the difference between the two messages: one end copies after the other, each takes half
          bulk         of 32 messages each way, 16 MiB, which outgrow the caches: a core sends as many bytes as it receives
        The median over rounds of each. No collective is looked at.

usage: sim_far.py --rows FILE --figures FILE --out FILE
"""
import argparse
import json
import pathlib
import sys

import rows as bench_rows

TINY, SMALL, LARGE, BATCH = 4, 16 << 10, 512 << 10, 32
PLACE = "2x1"  # links.Link: without a rate


def far_figures(rows):
    """"far" of a file of figures, but for the rate."""
    def taken(op, size, measure):
        found = [row[measure] for row in rows if row["op"] == op and row["bytes"] == size and row["label"] == PLACE and
                 row["contender"] == "tutti" and row["status"] == "ok"]
        if not found:
            raise ValueError(f"there is no {op} of {size} B on {PLACE} among the rows")
        return bench_rows.median(found)

    message, stream = taken("send_recv", TINY, "median_us"), taken("send_recv", TINY, "each_us")
    byte = 1000 * max(0, taken("send_recv", SMALL, "median_us") - message) / SMALL / 2
    bulk = 1000 * taken("exchange64", LARGE, "median_us") / (BATCH * LARGE) / 2
    uneven = min(max(0, stream - message / 2), message / 2)
    return {"message_us": round(message, 3), "post_us": round(message / 2, 3), "uneven_us": round(uneven, 3),
            "send_ns_per_byte": round(byte, 4), "recv_ns_per_byte": round(byte, 4),
            "bulk_ns_per_byte": round(bulk, 4)}


def main():
    p = argparse.ArgumentParser()
    for name in ("rows", "figures", "out"):
        p.add_argument(f"--{name}", type=pathlib.Path, required=True)
    s = p.parse_args()
    figures = json.loads(s.figures.read_text())
    figures["far"] = {**figures.get("far", {}), **far_figures(bench_rows.read(s.rows.read_text().splitlines()))}
    s.out.write_text(json.dumps(figures, indent=2) + "\n")
    print(f"{s.out}: {figures['far']}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
