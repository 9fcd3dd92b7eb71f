# SPDX-License-Identifier: BSD-3-Clause
"""PyTorch's own ways to train in parallel, on tutti: they have gloo's losses."""
import tempfile
import unittest

import torch
import torch.distributed as dist
import tutti_torch
from ranks import on, run
from torch import nn
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import Replicate, Shard, distribute_tensor, init_device_mesh
from torch.nn.parallel import DistributedDataParallel

STEPS = 8


def network():
    torch.manual_seed(1)
    return nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(4 * 36, 32), nn.ReLU(), nn.Linear(32, 10))


def batch(step, rank):
    torch.manual_seed(100 * step + rank)
    return torch.randn(6, 1, 8, 8), torch.randint(0, 10, (6,))


def train(model, rank, steps=STEPS):
    """The losses of this rank, step by step."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    losses = []
    for step in range(steps):
        x, y = batch(step, rank)
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def losses_of(size, wrap, backend):
    """What train(wrap(network())) gives each rank, [size][STEPS]."""
    with tempfile.TemporaryDirectory() as folder:
        def body(rank, size):
            torch.save(train(wrap(network()), rank), f"{folder}/{rank}")

        run(body, size, backend=backend)
        return torch.tensor([torch.load(f"{folder}/{rank}") for rank in range(size)], dtype=torch.float64)


class Training(unittest.TestCase):
    def has_gloos_losses(self, wrap):
        for size in (2, 4):
            with self.subTest(ranks=size):
                ours, theirs = losses_of(size, wrap, "tutti"), losses_of(size, wrap, "gloo")
                torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-6)
                self.assertGreater((ours[:, 0] - ours[:, -1]).abs().min().item(), 1e-3)  # it has learnt something

    def test_ddp(self):
        self.has_gloos_losses(DistributedDataParallel)

    def test_ddp_with_small_buckets_and_a_static_graph(self):
        self.has_gloos_losses(lambda m: DistributedDataParallel(m, bucket_cap_mb=0.001, static_graph=True))

    def test_fsdp2(self):
        def wrap(model):
            mesh = init_device_mesh("cpu", (dist.get_world_size(),))
            fully_shard(model[3], mesh=mesh)
            return fully_shard(model, mesh=mesh)

        self.has_gloos_losses(wrap)

    def test_ddp_in_registered_memory(self):
        """Made inside, and with the first step, after which its buckets are made anew."""
        def body(rank, size):
            torch.manual_seed(1)
            big = nn.Sequential(nn.Linear(200, 300), nn.Linear(300, 10))  # convolutions take bare memory of the allocator
            with tutti_torch.registered_memory():
                convolved = nn.functional.conv2d(torch.ones(8, 3, 64, 64), torch.ones(8, 3, 3, 3))
                model = DistributedDataParallel(big, gradient_as_bucket_view=True)
                for _ in range(2):
                    model(torch.ones(4, 200)).sum().backward()
                inside = torch.ones(1 << 14)
            model.zero_grad(set_to_none=True)
            model(torch.ones(4, 200)).sum().backward()  # outside: its gradients lie in the buckets that are there
            self.assertTrue(tutti_torch._C.is_registered(big[0].weight.grad))
            self.assertEqual(convolved.max().item(), 27)
            self.assertTrue(tutti_torch._C.is_registered(inside))
            self.assertTrue(tutti_torch._C.is_registered(convolved))
            self.assertFalse(tutti_torch._C.is_registered(torch.ones(1 << 14)))
            inside.resize_(1 << 20).fill_(1)  # grows by the allocator that it has, where that is at the moment
            self.assertEqual(inside.sum().item(), 1 << 20)
            with tutti_torch.registered_memory(1):
                small = torch.ones(3)
                with tutti_torch.registered_memory(1 << 20):
                    self.assertFalse(tutti_torch._C.is_registered(torch.ones(3)))
                self.assertTrue(tutti_torch._C.is_registered(small) and tutti_torch._C.is_registered(torch.ones(3)))
            dist.all_reduce(small)
            self.assertEqual(small.tolist(), [size] * 3)

        run(body, 2)

    @on(2, 4)
    def test_ddp_keeps_ranks_equal(self, rank, size):
        model = DistributedDataParallel(network())
        train(model, rank)
        mine = torch.cat([p.detach().flatten() for p in model.parameters()])
        theirs = [torch.empty_like(mine) for _ in range(size)]
        dist.all_gather(theirs, mine)
        for other in theirs:
            self.assertTrue(torch.equal(mine, other))

    @on(2, 4)
    def test_dtensor(self, rank, size):
        mesh = init_device_mesh("cpu", (size,))
        torch.manual_seed(0)
        whole = torch.randn(8, 6)
        sharded = distribute_tensor(whole, mesh, [Shard(0)])
        self.assertEqual(sharded.to_local().shape[0], 8 // size)
        torch.testing.assert_close(sharded.redistribute(mesh, [Shard(1)]).full_tensor(), whole)
        torch.testing.assert_close(sharded.redistribute(mesh, [Replicate()]).to_local(), whole)
        product = distribute_tensor(whole.t().contiguous(), mesh, [Shard(1)]) @ sharded  # a partial sum on each rank
        torch.testing.assert_close(product.full_tensor(), whole.t() @ whole)


if __name__ == "__main__":
    unittest.main()
