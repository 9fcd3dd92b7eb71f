# SPDX-License-Identifier: BSD-3-Clause
"""Dumps of the flight recorder, read by PyTorch's own analyser: what it says where all is well, and of who is missing, differs,
or is dead."""
import os
import pathlib
import pickle
import re
import subprocess
import sys
import tempfile
import unittest
from datetime import timedelta

import torch
import torch.distributed as dist
import tutti_torch
from ranks import Dies, run

FAULTS = ("Not all ranks joining", "has errors", "mismatch in the collective", "cannot decide", "Culprit")


class Analysis:
    """What the analyser printed, and the table that it made."""

    def __init__(self, folder, *options):
        table = pathlib.Path(folder) / "table"
        ended = subprocess.run([sys.executable, "-m", "torch.distributed.flight_recorder.fr_trace", str(folder), "-p", "rank_",
                                "-o", str(table), *options], capture_output=True, text=True, timeout=300)
        self.text = ended.stdout + ended.stderr
        if ended.returncode != 0:
            raise AssertionError(f"the analyser ended with {ended.returncode}\n{self.text}")
        self.table = pickle.loads(table.read_bytes())[1] if table.exists() else None

    def has_no_faults(self):
        return not any(words in self.text for words in FAULTS)

    def culprits(self):
        """Those whose call is another than that of the rank that the analyser begins with, which is any; and how it is."""
        found = re.findall(r"Culprit rank (\d+); Error type: (\w+)", self.text)
        return {int(rank) for rank, _ in found}, {how for _, how in found}


def sums(n, group=None):
    for _ in range(n):
        dist.all_reduce(torch.ones(4), group=group)


class Recorder(unittest.TestCase):
    def analysed(self, body, size, *options, **ranks):
        """The analysis of what body(rank, size, dump) dumps by dump()."""
        with tempfile.TemporaryDirectory() as folder:
            run(lambda rank, size: body(rank, size, lambda: tutti_torch.dump_recorder(f"{folder}/rank_")), size, **ranks)
            return Analysis(folder, *options)

    def test_all_is_well(self):
        """Every kind of collective, on the world and on two groups."""
        def body(rank, size, dump):
            pair = dist.new_group([0, 2], group_desc="pair")
            rest = dist.new_group([1, 2])
            for dtype in (torch.float32, torch.bfloat16, torch.int64, torch.bool):
                t, many = torch.ones(6, dtype=dtype), [torch.ones(6, dtype=dtype) for _ in range(size)]
                dist.broadcast(t, 1)
                dist.all_reduce(t, dist.ReduceOp.MAX)
                dist.reduce(t, 2, dist.ReduceOp.MAX)
                dist.all_gather(many, t)
                dist.all_gather_into_tensor(torch.ones(6 * size, dtype=dtype), t)
                dist.gather(t, many if rank == 1 else None, 1)
                dist.scatter(t, many if rank == 0 else None, 0)
                dist.reduce_scatter(t, many, dist.ReduceOp.MAX)
                dist.reduce_scatter_tensor(t, torch.ones(6 * size, dtype=dtype), dist.ReduceOp.MAX)
                dist.all_to_all_single(t, t.clone())
            mine = torch.ones(sum(range(size)) + size * rank)  # row r of rank r
            dist.all_to_all_single(torch.ones(mine.numel()), mine, [rank + r for r in range(size)], [rank + r for r in range(size)])
            dist.all_gather_object([None] * size, {"rank": rank})
            dist.all_reduce(torch.ones(3), async_op=True).wait()
            for group, members, n in ((pair, (0, 2), 3), (rest, (1, 2), 2)):
                if rank in members:
                    sums(n, group)
            if rank == 0:
                dist.send(torch.ones(2), 1)
            elif rank == 1:
                dist.recv(torch.ones(2), 0)
            tutti_torch.monitored_barrier()
            dist.barrier()
            os.chmod(dump(), 0o600)  # it is there, and ours

        found = self.analysed(body, 3)
        self.assertTrue(found.has_no_faults(), found.text)
        self.assertTrue(all(c.pass_check for c in found.table.collectives))
        self.assertEqual({c.collective_state for c in found.table.collectives}, {"completed"})
        groups = {g.desc: g.size for g in found.table.groups}
        self.assertEqual(groups, {"default_pg": 3, "pair": 2, "undefined": 2})
        self.assertEqual(sum(c.pg_desc.endswith("pair") for c in found.table.collectives), 3)
        self.assertGreater(len(found.table.collectives), 4 * 10 + 3 + 2 + 3)

    def test_calls_that_differ(self):
        def body(rank, size, dump):
            sums(2)
            with self.assertRaises(dist.DistBackendError):
                dist.all_reduce(torch.ones(5 if rank == 1 else 4))
            dump()

        found = self.analysed(body, 3)
        self.assertIn("Collective sequence number: 3 has errors", found.text)
        self.assertIn(found.culprits(), [({1}, {"SIZE_OR_SYNTAX_MISMATCH"}), ({0, 2}, {"SIZE_OR_SYNTAX_MISMATCH"})])
        self.assertEqual([c.pass_check for c in found.table.collectives], [True, True, False])

    def test_other_calls(self):
        def body(rank, size, dump):
            sums(2)
            with self.assertRaises(dist.DistBackendError):
                dist.broadcast(torch.ones(4), 0) if rank == 2 else dist.all_reduce(torch.ones(4))
            dump()

        found = self.analysed(body, 3)
        self.assertIn("Collective sequence number: 3 has errors", found.text)
        self.assertIn(found.culprits(), [({2}, {"COLLECTIVE_TYPE_MISMATCH"}), ({0, 1}, {"COLLECTIVE_TYPE_MISMATCH"})])

    def test_a_rank_that_does_not_come(self):
        def body(rank, size, dump):
            group = dist.new_group([1, 2, 3], group_desc="three")
            if rank in (1, 2):
                sums(3, group)
                dist.distributed_c10d._set_pg_timeout(timedelta(seconds=2), group)
                with self.assertRaises(dist.DistBackendError):
                    sums(1, group)
            elif rank == 3:
                sums(3, group)
            dist.barrier()
            dump()

        found = self.analysed(body, 4)
        self.assertIn("Not all ranks joining collective, sequence number: 4", found.text)
        self.assertIn("missing ranks: {3}", found.text)
        self.assertIn("three", found.text)
        failed = [c for c in found.table.collectives if c.missing_ranks]
        self.assertEqual([(c.missing_ranks, c.collective_state) for c in failed], [({3}, "started")])

    def test_a_rank_that_died(self):
        def body(rank, size, dump):
            sums(2)
            dist.barrier()
            if rank == 2:
                raise Dies
            with self.assertRaises(dist.DistBackendError):
                sums(1)
            dump()

        found = self.analysed(body, 3, "--allow-incomplete-ranks", dies=[2])
        self.assertIn("missed FR dumps from ranks ({2})", found.text)

    def test_rings_that_begin_elsewhere(self):
        """More was done than the ring has, and messages by two of three ranks only: all that is compared is there on all."""
        def body(rank, size, dump):
            for i in range(200):
                sums(1)
                if rank == 0:
                    dist.send(torch.ones(1), 1)
                elif rank == 1:
                    dist.recv(torch.ones(1), 0)
            dist.barrier()
            dump()

        before = os.environ.get("TUTTI_TRACE_BUFFER_SIZE")
        os.environ["TUTTI_TRACE_BUFFER_SIZE"] = "128"
        try:
            found = self.analysed(body, 3)
        finally:
            del os.environ["TUTTI_TRACE_BUFFER_SIZE"]
            if before is not None:
                os.environ["TUTTI_TRACE_BUFFER_SIZE"] = before
        self.assertTrue(found.has_no_faults(), found.text)
        self.assertGreater(len(found.table.collectives), 40)
        self.assertLess(len(found.table.collectives), 128)

    def test_messages_are_printed(self):
        def body(rank, size):
            if rank == 0:
                dist.send(torch.ones(7), 1)
            else:
                dist.recv(torch.ones(7))
            entries = tutti_torch._recorder.layout(messages=True)["entries"]
            self.assertEqual([e["profiling_name"].split(":")[1] for e in entries if e["is_p2p"]], [["send 0->1"], ["recv 1<-?"]][rank])
            self.assertEqual([e for e in tutti_torch._recorder.layout()["entries"] if e["is_p2p"]], [])
            dist.barrier()  # rank 0 serves the store: it goes last

        run(body, 2)


if __name__ == "__main__":
    unittest.main()
