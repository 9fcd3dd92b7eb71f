# SPDX-License-Identifier: BSD-3-Clause
"""Every collective, with the values it has to give.

Method  Inputs are made from the rank, so that each process can say what every other one gave. Numbers are small integers, which
        all element types have exactly: results are compared for equality.
"""
import unittest
from datetime import timedelta

import torch
import torch.distributed as dist
from ranks import on

INTEGERS = [torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.uint16, torch.uint32, torch.uint64]
FLOATS = [torch.float16, torch.bfloat16, torch.float32, torch.float64]
EIGHTS = [torch.float8_e4m3fn, torch.float8_e5m2]
COMPLEX = [torch.complex64, torch.complex128]
ALL = [torch.bool] + INTEGERS + FLOATS + EIGHTS + COMPLEX


def given(rank, dtype=torch.float32, count=5):
    """What a rank gives: count small numbers, its own."""
    return (torch.arange(count) % 3 + rank + 1).to(dtype)


def plain(tensor):
    """As numbers that can be compared, whatever the type."""
    return tensor.to(torch.complex128) if tensor.is_complex() else tensor.to(torch.float64)


def same(found, expected):
    torch.testing.assert_close(plain(found), plain(expected), rtol=0, atol=0)


def folded(size, dtype, what):
    """The inputs of all ranks, folded one after the other."""
    total = plain(given(0, dtype))
    for rank in range(1, size):
        total = what(total, plain(given(rank, dtype)))
    return total


class Collectives(unittest.TestCase):
    @on(2, 4)
    def test_broadcast_of_every_type_from_every_root(self, rank, size):
        for dtype in ALL:
            for root in range(size):
                t = given(rank, dtype)
                dist.broadcast(t, root)
                same(t, given(root, dtype))

    @on(2, 4)
    def test_all_reduce_of_every_type(self, rank, size):
        for dtype in INTEGERS + FLOATS + EIGHTS:
            for op, what in ((dist.ReduceOp.SUM, torch.add), (dist.ReduceOp.MIN, torch.minimum),
                             (dist.ReduceOp.MAX, torch.maximum)):
                t = given(rank, dtype)
                dist.all_reduce(t, op)
                same(t, folded(size, dtype, what).to(dtype))
        for dtype in (torch.int32, torch.float32, torch.float64):
            t = given(rank, dtype)
            dist.all_reduce(t, dist.ReduceOp.PRODUCT)
            same(t, folded(size, dtype, torch.mul))
        for dtype in FLOATS:
            t = given(rank, dtype)
            dist.all_reduce(t, dist.ReduceOp.AVG)
            same(t, folded(size, dtype, torch.add).div(size).to(dtype))
        for dtype in COMPLEX:
            t = given(rank, dtype) * 1j
            dist.all_reduce(t)
            same(t, folded(size, dtype, torch.add) * 1j)

    @on(2, 4)
    def test_all_reduce_of_bits(self, rank, size):
        for dtype in INTEGERS[:5]:
            for op, what in ((dist.ReduceOp.BAND, torch.bitwise_and), (dist.ReduceOp.BOR, torch.bitwise_or),
                             (dist.ReduceOp.BXOR, torch.bitwise_xor)):
                t, total = given(rank, dtype), given(0, dtype)
                for r in range(1, size):
                    total = what(total, given(r, dtype))
                dist.all_reduce(t, op)
                same(t, total)
        mine = torch.tensor([rank == 0, True, False])
        dist.all_reduce(mine, dist.ReduceOp.BAND)
        same(mine, torch.tensor([False, True, False]))

    @on(2, 4)
    def test_each_ranks_own_factor(self, rank, size):
        for factor in (float(rank + 1), torch.tensor([rank + 1.0])):
            t = given(rank)
            dist.all_reduce(t, dist._make_nccl_premul_sum(factor))
            same(t, sum(given(r) * (r + 1) for r in range(size)))

    @on(2, 4)
    def test_reduce_to_every_root(self, rank, size):
        for root in range(size):
            t = given(rank)
            dist.reduce(t, root)
            same(t, folded(size, torch.float32, torch.add) if rank == root else given(rank))

    @on(2, 4)
    def test_all_gather(self, rank, size):
        for dtype in ALL:
            outs = [torch.zeros(5).to(dtype) for _ in range(size)]
            dist.all_gather(outs, given(rank, dtype))
            for r in range(size):
                same(outs[r], given(r, dtype))

    @on(2, 4)
    def test_all_gather_of_different_sizes(self, rank, size):
        outs = [torch.zeros(r) for r in range(size)]
        dist.all_gather(outs, given(rank, count=rank))
        for r in range(size):
            same(outs[r], given(r, count=r))

    @on(2, 4)
    def test_all_gather_into_tensor_joined_and_stacked(self, rank, size):
        joined, stacked = torch.zeros(5 * size), torch.zeros(size, 5)
        dist.all_gather_into_tensor(joined, given(rank))
        dist.all_gather_into_tensor(stacked, given(rank))
        same(stacked, torch.stack([given(r) for r in range(size)]))
        same(joined, stacked.flatten())

    @on(2, 4)
    def test_gather_and_scatter_at_every_root(self, rank, size):
        for root in range(size):
            outs = [torch.zeros(5) for _ in range(size)] if rank == root else None
            dist.gather(given(rank), outs, root)
            for r in range(size if rank == root else 0):
                same(outs[r], given(r))
            t = torch.zeros(5)
            dist.scatter(t, [given(10 * root + r) for r in range(size)] if rank == root else None, root)
            same(t, given(10 * root + rank))

    @on(2, 4)
    def test_reduce_scatter(self, rank, size):
        ins = [given(rank + 10 * r) for r in range(size)]
        expected = sum(given(r + 10 * rank) for r in range(size))
        out = torch.zeros(5)
        dist.reduce_scatter(out, ins)
        same(out, expected)
        for whole in (torch.cat(ins), torch.stack(ins)):
            out = torch.zeros(5)
            dist.reduce_scatter_tensor(out, whole)
            same(out, expected)
            same(whole.flatten(), torch.cat(ins))

    @on(2, 4)
    def test_all_to_all(self, rank, size):
        ins = [given(10 * rank + r, count=1 + rank + r) for r in range(size)]
        outs = [torch.zeros(1 + rank + r) for r in range(size)]
        dist.all_to_all(outs, ins)
        for r in range(size):
            same(outs[r], given(10 * r + rank, count=1 + rank + r))

    @on(2, 4)
    def test_all_to_all_single_of_rows(self, rank, size):
        rows = torch.arange(2 * size * 3).view(2 * size, 3) + 100 * rank
        out = torch.zeros_like(rows)
        dist.all_to_all_single(out, rows)
        same(out, torch.cat([torch.arange(2 * size * 3).view(2 * size, 3)[2 * rank:2 * rank + 2] + 100 * r
                             for r in range(size)]))

        to = [(rank + r) % 3 for r in range(size)]  # as many rows to rank r, some of them none
        rows = torch.full((sum(to), 2), float(rank))
        out = torch.zeros(sum(to), 2)
        dist.all_to_all_single(out, rows, to, to)
        same(out, torch.cat([torch.full((to[r], 2), float(r)) for r in range(size)]))

    @on(2)
    def test_splits_that_do_not_add_up(self, rank, size):
        with self.assertRaisesRegex(RuntimeError, "doesn't match total dim 0"):
            dist.all_to_all_single(torch.zeros(4), torch.zeros(4), [2, 2], [1, 1])
        with self.assertRaisesRegex(RuntimeError, "does not divide equally"):
            dist.all_to_all_single(torch.zeros(5), torch.zeros(5))

    @on(2, 4)
    def test_several_at_once(self, rank, size):
        several = [given(rank, count=n) for n in (1, 7, 0, 3)]
        dist.all_reduce_coalesced(several)
        for n, t in zip((1, 7, 0, 3), several):
            same(t, sum(given(r, count=n) for r in range(size)))

        outs = [[torch.zeros(2), torch.zeros(3)] for _ in range(size)]
        dist.all_gather_coalesced(outs, [given(rank, count=2), given(rank + 5, count=3)])
        for r in range(size):
            same(outs[r][0], given(r, count=2))
            same(outs[r][1], given(r + 5, count=3))

        gathered, mixed = torch.zeros(2 * size), torch.zeros(3 * size, dtype=torch.int64)
        pg = dist.group.WORLD
        pg.allgather_into_tensor_coalesced([gathered, mixed], [given(rank, count=2), given(rank, torch.int64, 3)]).wait()
        same(gathered, torch.cat([given(r, count=2) for r in range(size)]))
        same(mixed, torch.cat([given(r, torch.int64, 3) for r in range(size)]))

        parts = [torch.zeros(2), torch.zeros(1)]
        pg.reduce_scatter_tensor_coalesced(parts, [given(rank, count=2 * size), given(rank, count=size)]).wait()
        same(parts[0], sum(given(r, count=2 * size) for r in range(size))[2 * rank:2 * rank + 2])
        same(parts[1], sum(given(r, count=size) for r in range(size))[rank:rank + 1])

    @on(2, 4)
    def test_a_coalescing_scope(self, rank, size):
        a, b = given(rank), given(rank + 1)
        with dist._coalescing_manager():
            dist.all_reduce(a)
            dist.all_reduce(b)
        same(a, folded(size, torch.float32, torch.add))
        same(b, folded(size, torch.float32, torch.add) + size)

    @on(2, 4)
    def test_sums_of_sparse_tensors(self, rank, size):
        def mine(r):
            return torch.sparse_coo_tensor([[0, r, r], [1, 0, 0]], torch.tensor([1.0, 2.0, r + 1.0]), (size + 1, 2))

        t = mine(rank)
        dist.all_reduce(t)
        same(t.to_dense(), sum(mine(r).to_dense() for r in range(size)))
        self.assertTrue(t.is_coalesced())
        with self.assertRaisesRegex(RuntimeError, "op is 'max'"):
            dist.all_reduce(mine(rank), dist.ReduceOp.MAX)

    @on(2)
    def test_a_sum_that_cannot_be_stored(self, rank, size):
        """The call's own time-out ends with it, also by an exception: the group's is what it was."""
        group = dist.new_group()
        with torch.inference_mode():
            t = torch.sparse_coo_tensor([[rank]], [1.0], (2,))  # nobody may write to it outside
        options = dist.AllreduceOptions()
        options.timeout = timedelta(minutes=10)
        dist.distributed_c10d._set_pg_timeout(timedelta(seconds=1), group)
        with self.assertRaisesRegex(RuntimeError, "inference"):
            group._get_backend(torch.device("cpu")).allreduce([t], options).wait()
        if rank == 0:
            with self.assertRaisesRegex(dist.DistBackendError, "timed out after"):  # and not after ten minutes
                dist.barrier(group=group)
        dist.barrier()

    @on(2, 4)
    def test_objects(self, rank, size):
        mine = {"rank": rank, "list": list(range(rank))}
        everybody = [{"rank": r, "list": list(range(r))} for r in range(size)]
        outs = [None] * size
        dist.all_gather_object(outs, mine)
        self.assertEqual(outs, everybody)
        outs = [None] * size if rank == 1 else None
        dist.gather_object(mine, outs, dst=1)
        self.assertEqual(outs, everybody if rank == 1 else None)
        some = [mine, "x"] if rank == 0 else [None, None]
        dist.broadcast_object_list(some, src=0)
        self.assertEqual(some, [everybody[0], "x"])
        got = [None]
        dist.scatter_object_list(got, everybody if rank == 0 else None, src=0)
        self.assertEqual(got, [mine])


class Memory(unittest.TestCase):
    @on(2)
    def test_tensors_that_are_not_contiguous(self, rank, size):
        def whole(r):
            return torch.arange(12.0).view(3, 4) + 100 * r

        t = whole(rank)
        dist.all_reduce(t.t())
        same(t, whole(0) + whole(1))
        t = whole(rank)
        dist.broadcast(t[:, 1], 1)
        expected = whole(rank)
        expected[:, 1] = whole(1)[:, 1]
        same(t, expected)

        wide = torch.zeros(3, 8)
        outs = [wide[:, 0:4], wide[:, 4:8]]
        dist.all_gather(outs, whole(rank).t().contiguous().t())
        same(wide, torch.cat([whole(0), whole(1)], 1))

        out = torch.zeros(4, 3).t()
        dist.reduce_scatter_tensor(out, torch.cat([whole(rank), whole(rank + 1)]))
        same(out, whole(rank) + whole(rank + 1) if rank == 0 else whole(1) + whole(2))

        out = torch.zeros(4, 6).t()
        dist.all_gather_into_tensor(out, whole(rank)[:, :])
        same(out, torch.cat([whole(0), whole(1)]))

        if rank == 0:
            dist.send(whole(0)[:, 2], 1)
        else:
            t = torch.zeros(3, 2)
            dist.recv(t[:, 0], 0)
            same(t, torch.stack([whole(0)[:, 2], torch.zeros(3)], 1))

    @on(2)
    def test_tensors_that_are_lazily_conjugated(self, rank, size):
        t = (torch.ones(3) * (1 + rank * 1j)).conj()
        outs = [torch.zeros(3, dtype=torch.complex64) for _ in range(size)]
        dist.group.WORLD.allgather([outs], [t]).wait()  # dist.all_gather does not take such a tensor
        same(outs[1], torch.ones(3) * (1 - 1j))

    @on(2)
    def test_results_that_lie_in_inputs(self, rank, size):
        whole = torch.zeros(10)
        whole[5 * rank:5 * rank + 5] = given(rank)
        dist.all_gather_into_tensor(whole, whole[5 * rank:5 * rank + 5])  # its own part: no detour
        same(whole, torch.cat([given(0), given(1)]))
        whole = torch.zeros(10)
        whole[2:7] = given(rank)
        dist.all_gather_into_tensor(whole, whole[2:7])
        same(whole, torch.cat([given(0), given(1)]))
        whole = torch.cat([given(rank), given(rank + 1)])
        dist.reduce_scatter_tensor(whole[3:8], whole)
        same(whole[3:8], given(rank) + given(rank + 1) if rank == 0 else given(1) + given(2))
        whole = torch.arange(4.0) + 10 * rank
        dist.all_to_all_single(whole, whole)
        same(whole, torch.tensor([0.0, 1, 10, 11]) + 2 * rank)

    @on(2)
    def test_nothing_and_single_numbers(self, rank, size):
        dist.all_reduce(torch.zeros(0))
        dist.broadcast(torch.zeros(0, 3), 0)
        outs = [torch.zeros(0)] * 2
        dist.all_gather(outs, torch.zeros(0))
        t = torch.tensor(rank + 1)
        dist.all_reduce(t)
        self.assertEqual(t.item(), 3)

    @on(2)
    def test_an_expanded_output_is_refused(self, rank, size):
        with self.assertRaisesRegex(RuntimeError, "single memory location"):
            dist.all_reduce(torch.zeros(1).expand(4))

    @on(2)
    def test_registered_memory(self, rank, size):
        import tutti_torch

        t = tutti_torch.empty(4, 1000, dtype=torch.float64)
        t.fill_(rank + 1)
        for _ in range(3):
            dist.broadcast(t, 1)
        dist.all_reduce(t)
        same(t, torch.full((4, 1000), 4.0))

    @on(2)
    def test_types_without_arithmetic_move(self, rank, size):
        for dtype in (torch.float8_e4m3fnuz, torch.complex32):
            t = torch.full((4,), rank + 1.0).to(dtype)
            dist.broadcast(t, 1)
            same(t, torch.full((4,), 2.0).to(dtype))
        with self.assertRaisesRegex(NotImplementedError, "Float8_e4m3fnuz(.|\n)*next: to"):
            dist.all_reduce(torch.zeros(4).to(torch.float8_e4m3fnuz))

    @on(2)
    def test_what_is_refused_is_worded(self, rank, size):
        backend = dist.group.WORLD._get_backend(torch.device("cpu"))
        with self.assertRaisesRegex(RuntimeError, "avg(.|\n)*i32"):
            dist.all_reduce(torch.zeros(4, dtype=torch.int32), dist.ReduceOp.AVG)
        with self.assertRaisesRegex(RuntimeError, "on meta"):
            backend.broadcast(torch.zeros(4, device="meta"), 0)
        with self.assertRaisesRegex(RuntimeError, "layout"):
            backend.broadcast(torch.zeros(4).to_sparse(), 0)
        dist.barrier()  # nothing of it was sent: the group goes on


if __name__ == "__main__":
    unittest.main()
