# SPDX-License-Identifier: BSD-3-Clause
"""TORCH_DISTRIBUTED_DEBUG=DETAIL: PyTorch's wrapper stands in front of tutti, and asks a group of gloo's before each call."""
import tempfile
import unittest
from datetime import timedelta

import torch
import torch.distributed as dist
import tutti_torch
from ranks import open_store, run
from test_collectives import given, same
from test_groups import summed
from test_recorder import Analysis


def detailed(body, size):
    """Run body(rank, size) on ranks that have the wrapper."""
    def wrapped(rank, size, sock):
        dist.set_debug_level(dist.DebugLevel.DETAIL)
        dist.init_process_group("tutti", store=open_store(sock, rank, size), rank=rank, world_size=size)
        backend = dist.group.WORLD._get_backend(torch.device("cpu"))
        if type(backend).__name__ != "_ProcessGroupWrapper":
            raise AssertionError(f"nothing is wrapped: {backend}")
        body(rank, size)
        dist.barrier()  # rank 0 serves the store: it goes last
        dist.destroy_process_group()

    run(wrapped, size, backend=None)


class Wrapped(unittest.TestCase):
    def test_every_collective(self):
        def body(rank, size):
            mine, many = given(rank), [torch.zeros(5) for _ in range(size)]
            everybody = [given(r) for r in range(size)]
            t = given(rank)
            dist.broadcast(t, 1)
            same(t, given(1))
            dist.all_reduce(t)
            same(t, size * given(1))
            t = given(rank)
            dist.reduce(t, 1)
            same(t, sum(everybody) if rank == 1 else mine)
            dist.all_gather(many, mine)
            same(torch.stack(many), torch.stack(everybody))
            joined = torch.zeros(5 * size)
            dist.all_gather_into_tensor(joined, mine)
            same(joined, torch.cat(everybody))
            dist.gather(mine, many if rank == 1 else None, 1)
            dist.scatter(t, everybody if rank == 0 else None, 0)
            same(t, mine)
            dist.reduce_scatter(t, [given(rank + r) for r in range(size)])
            same(t, sum(given(rank + r) for r in range(size)))
            dist.reduce_scatter_tensor(t, torch.cat(everybody))
            same(t, size * mine)
            rows = torch.arange(2.0 * size) + 100 * rank
            out = torch.zeros(2 * size)
            dist.all_to_all_single(out, rows)
            same(out, torch.cat([torch.arange(2.0) + 2 * rank + 100 * r for r in range(size)]))
            dist.all_to_all(many, [given(10 * rank + r) for r in range(size)])
            same(torch.stack(many), torch.stack([given(10 * r + rank) for r in range(size)]))
            told = [None] * size
            dist.all_gather_object(told, {"rank": rank})
            self.assertEqual(told, [{"rank": r} for r in range(size)])
            works = [dist.isend(mine, (rank + 1) % size), dist.irecv(t, (rank - 1) % size)]
            for work in works:
                work.wait()
            same(t, given((rank - 1) % size))
            pair = dist.new_group([0, 1])
            if rank < 2:
                self.assertEqual(summed(pair), 1)
            tutti_torch.monitored_barrier(timeout=timedelta(seconds=30))

        detailed(body, 3)

    def test_calls_that_differ_are_told_by_the_wrapper(self):
        """Before tutti has them, so that the group goes on."""
        def body(rank, size):
            with self.assertRaisesRegex(RuntimeError, "Detected mismatch between collectives on ranks"):
                dist.all_reduce(torch.ones(4 if rank else 5))
            self.assertEqual(summed(), 1)

        detailed(body, 2)

    def test_the_recorder_finds_groups_behind_it(self):
        def body(rank, size):
            pair = dist.new_group([0, 2], group_desc="pair")
            for group in (None, pair) if rank != 1 else (None,):
                dist.all_reduce(torch.ones(4), group=group)
            tutti_torch.dump_recorder(f"{folder}/rank_")

        with tempfile.TemporaryDirectory() as folder:
            detailed(body, 3)
            found = Analysis(folder)
        self.assertTrue(found.has_no_faults(), found.text)
        self.assertEqual({g.desc: g.size for g in found.table.groups}, {"default_pg": 3, "pair": 2})
        self.assertEqual([c.pass_check for c in found.table.collectives], [True, True])


if __name__ == "__main__":
    unittest.main()
