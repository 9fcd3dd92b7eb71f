# SPDX-License-Identifier: BSD-3-Clause
"""Groups that get other members: shrunk, reconfigured, by PyTorch's own calls."""
import threading
import time
import unittest
from datetime import timedelta

import torch
import torch.distributed as dist
import tutti_torch
from ranks import Dies, on, open_store, run
from test_groups import summed


def handles(store, name, places):
    """What each of places has said under name, in their order."""
    return [store.get(f"{name}/{place}").decode() for place in places]


def part(store, rank, ranks):
    """This process may end, where that of rank 0 serves the store for all others."""
    store.set(f"over/{rank}", "")
    if rank == 0:
        store.wait([f"over/{r}" for r in ranks])


def join(store, rank, size):
    """A world that has met nobody yet."""
    dist.init_process_group("tutti", store=store, rank=rank, world_size=size, timeout=timedelta(seconds=60),
                            enable_reconfigure=True)


class Reconfigured(unittest.TestCase):
    def test_in_an_order_of_ones_own(self):
        def body(rank, size, sock):
            store = open_store(sock, rank, size)
            join(store, rank, size)
            self.assertTrue(dist._supports_reconfigure())
            with self.assertRaisesRegex(RuntimeError, "reconfigure"):
                dist.barrier()
            store.set(f"first/{rank}", dist._get_reconfigure_handle())
            work = dist._reconfigure(uuid=1, handles=handles(store, "first", reversed(range(size))))
            self.assertTrue(work.wait())
            self.assertTrue(work.is_completed() and work.is_success())
            self.assertEqual((dist.get_rank(), dist.get_world_size()), (size - 1 - rank, size))
            gathered = [None] * size
            dist.all_gather_object(gathered, rank)
            self.assertEqual(gathered, list(reversed(range(size))))
            dist.destroy_process_group()
            part(store, rank, range(size))

        run(body, 3, backend=None)

    def test_after_a_death_with_one_that_was_spare(self):
        def body(rank, size, sock):
            store = open_store(sock, rank, size)
            join(store, rank, size)
            backend = dist.group.WORLD._get_backend(torch.device("cpu"))
            store.set(f"handle/{rank}", dist._get_reconfigure_handle())
            all_handles = handles(store, "handle", range(size))
            if rank != 3:
                dist._reconfigure(1, all_handles[:3]).wait()
                self.assertEqual(summed(), 0 + 1 + 2)
                if rank == 1:
                    raise Dies
                with self.assertRaisesRegex(dist.DistBackendError, "rank 1"):
                    summed()
            dist._reconfigure(2, {all_handles[i] for i in (0, 2, 3)}, timeout=timedelta(seconds=50)).wait()
            self.assertEqual(dist.get_world_size(), 3)
            self.assertEqual(summed(), 0 + 1 + 2)
            self.assertEqual(backend._get_sequence_number_for_group(), 1)
            self.assertEqual(dist._get_reconfigure_handle(), all_handles[rank])
            group = dist.new_group([0, 1])  # a world of its own: what the first is made of does not matter to it
            if dist.get_rank() < 2:
                self.assertEqual(summed(group), 1)
            part(store, rank, (0, 2, 3))

        run(body, 4, backend=None, dies=[1])

    @on(2)
    def test_what_cannot_be(self, rank, size):
        mine = dist._get_reconfigure_handle()
        with self.assertRaisesRegex(RuntimeError, "tutti:reconfigure(.|\n)*is none"):
            dist._reconfigure(7, [mine, "something"])
        with self.assertRaisesRegex(RuntimeError, "no handles"):
            dist._reconfigure(7, [])
        with self.assertRaisesRegex(dist.DistBackendError, "tutti:reconfigure(.|\n)*did not come"):  # the other one calls with another uuid
            store = dist.distributed_c10d._get_default_store()
            store.set(f"mine/{rank}", mine)
            dist._reconfigure(8 + rank, handles(store, "mine", range(2)), timeout=timedelta(seconds=2))
        self.assertEqual(summed(), 1)  # it is as it was
        dist.barrier()

    @on(2)
    def test_calls_of_other_threads_meanwhile(self, rank, size):
        """They fail, and so does a second change; what is left meanwhile ends."""
        store = dist.distributed_c10d._get_default_store()
        store.set(f"mine/{rank}", dist._get_reconfigure_handle())
        both = handles(store, "mine", range(2))
        group, backend = dist.group.WORLD, dist.group.WORLD._get_backend(torch.device("cpu"))
        if rank == 0:
            failed = []

            def change():
                try:
                    dist._reconfigure(5, both, timeout=timedelta(seconds=5))
                except dist.DistBackendError as error:
                    failed.append(str(error))

            thread = threading.Thread(target=change)
            thread.start()
            while True:  # until it has begun
                try:
                    backend.barrier().wait(timedelta(milliseconds=1))
                except dist.DistBackendError:
                    continue
                except RuntimeError as error:
                    self.assertIn("tutti:barrier", str(error))
                    break
            with self.assertRaisesRegex(RuntimeError, "another thread"):
                dist._reconfigure(6, both)
            group.shutdown()
            thread.join()
            self.assertRegex(failed[0], "did not come")
            with self.assertRaisesRegex(RuntimeError, "is over"):
                dist._reconfigure(6, both)
        part(store, rank, range(2))


class Shrunk(unittest.TestCase):
    @on(4, dies=[2])
    def test_the_world_without_one_that_died(self, rank, size):
        dist.new_group([0, 1])  # goes with the world
        dist.barrier()
        if rank == 2:
            raise Dies
        with self.assertRaisesRegex(dist.DistBackendError, "rank 2"):
            summed()
        world = dist.shrink_group([2], shrink_flags=1)
        self.assertEqual((dist.get_rank(), dist.get_world_size()), (rank - (rank > 2), 3))
        self.assertEqual(dist.group.WORLD, world)
        self.assertEqual(summed(), 0 + 1 + 2)
        pair = dist.new_group([1, 2])
        if dist.get_rank() > 0:
            self.assertEqual(summed(pair), 1 + 2)
        dist.barrier()

    @on(4)
    def test_a_group_without_one_that_lives(self, rank, size):
        group = dist.new_group([1, 2, 3])
        if rank in (1, 3):
            smaller = dist.shrink_group([1], group)
            self.assertEqual((smaller.rank(), smaller.size()), (int(rank == 3), 2))
            self.assertEqual(summed(smaller), 1 + 3)
        self.assertEqual(summed(), 6)
        dist.barrier()

    @on(3)
    def test_a_barrier_of_another_thread_ends_first(self, rank, size):
        group = dist.new_group()
        failed = []

        def waits():
            try:
                tutti_torch.monitored_barrier(group, timeout=timedelta(minutes=10))
            except RuntimeError as error:
                failed.append(error)

        if rank < 2:
            thread = threading.Thread(target=waits)
            thread.start()
            time.sleep(0.5)  # it is inside as a rule; the group is another's, or over, else
            start = time.monotonic()
            smaller = dist.shrink_group([2], group, shrink_flags=1)
            thread.join()
            self.assertLess(time.monotonic() - start, 60)
            self.assertEqual(len(failed), 1)
            self.assertEqual(summed(smaller), 1)
        dist.barrier()

    @on(2)
    def test_a_failure_leaves_it_as_it_was(self, rank, size):
        backend = dist.group.WORLD._get_backend(torch.device("cpu"))
        self.assertTrue(backend.supports_shrinking)
        with self.assertRaisesRegex(RuntimeError, "shrink"):
            backend.shrink([rank])
        self.assertEqual(summed(), 1)


if __name__ == "__main__":
    unittest.main()
