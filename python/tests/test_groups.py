# SPDX-License-Identifier: BSD-3-Clause
"""Groups, stores to meet at, and everything that goes wrong: time-outs, deaths, calls that differ."""
import os
import pathlib
import socket
import subprocess
import sys
import tempfile
import time
import unittest
from datetime import timedelta

import torch
import torch.distributed as dist
import tutti_torch
from ranks import LIMIT_S, Dies, on, open_store, run
from torch.distributed.device_mesh import init_device_mesh

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent.parent / "tests/harness"))
from own_net import take_port  # noqa: E402


def summed(group=None):
    t = torch.tensor([float(dist.get_rank())])
    dist.all_reduce(t, group=group)
    return t.item()


def open_files():
    """What this process has open, as the kernel calls it."""
    for fd in os.listdir("/proc/self/fd"):
        try:
            yield os.readlink(f"/proc/self/fd/{fd}")
        except FileNotFoundError:  # that of the list
            pass


def listens_at(address):
    """Whether this process has a socket that listens at this address of IPv4, and at no other."""
    number = socket.inet_aton(address)[::-1].hex().upper()
    with open("/proc/self/net/tcp") as table:
        rows = [line.split() for line in table]
    there = {f"socket:[{row[9]}]" for row in rows if row[1].startswith(number + ":") and row[3] == "0A"}
    return not there.isdisjoint(open_files())


class Groups(unittest.TestCase):
    @on(4)
    def test_groups_of_some_ranks(self, rank, size):
        even, odd = dist.new_group([0, 2]), dist.new_group([1, 3])
        mine = odd if rank % 2 else even
        self.assertEqual(summed(mine), 4 if rank % 2 else 2)
        self.assertEqual(dist.get_backend(mine), "tutti")
        t = torch.full((2,), float(rank))
        dist.broadcast(t, 3 if rank % 2 else 2, group=mine)
        self.assertEqual(t[0].item(), 3 if rank % 2 else 2)
        late = dist.new_group([2, 3], use_local_synchronization=True) if rank > 1 else None
        if rank > 1:
            self.assertEqual(summed(late), 5)
        self.assertEqual(summed(), 6)
        dist.destroy_process_group(mine)
        self.assertEqual(summed(), 6)

    @on(4)
    def test_a_group_that_is_split(self, rank, size):
        pg = dist.group.WORLD
        backend = pg._get_backend(torch.device("cpu"))
        self.assertTrue(backend.supports_splitting)
        mine = pg.split_group([0, 2] if rank % 2 == 0 else [1, 3], group_name=f"half{rank % 2}")
        t = torch.tensor([float(rank)])
        mine.allreduce([t]).wait()
        self.assertEqual(t.item(), 4 if rank % 2 else 2)
        dist.barrier()  # rank 0 serves the store: it goes last

    @on(4)
    def test_groups_of_one_with_one_name(self, rank, size):
        """Each half makes groups of its own, and so PyTorch counts to the same number in both."""
        half, _ = dist.new_subgroups_by_enumeration([[0, 2], [1, 3]])
        alone, both = dist.new_subgroups(group_size=1, group=half)
        self.assertEqual((alone.size(), len(both)), (1, 2))
        self.assertEqual(summed(alone), rank)
        self.assertEqual(summed(half), 4 if rank % 2 else 2)
        dist.barrier()

    @on(4)
    def test_a_mesh(self, rank, size):
        mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("a", "b"))
        self.assertEqual(summed(mesh.get_group("a")), (0 + 2, 1 + 3)[rank % 2])
        self.assertEqual(summed(mesh.get_group("b")), (0 + 1, 2 + 3)[rank // 2])

    @on(2, backend="gloo")
    def test_a_group_of_tuttis_beside_gloos(self, rank, size):
        self.assertEqual(summed(dist.new_group(backend="tutti")), 1)
        self.assertEqual(summed(dist.new_group(backend="cpu:tutti")), 1)

    @on(1)
    def test_a_world_of_one(self, rank, size):
        self.assertEqual(summed(), 0)
        dist.barrier()

    @on(2)
    def test_the_world_again(self, rank, size):
        store = dist.distributed_c10d._get_default_store()
        for _ in range(3):
            dist.destroy_process_group()
            dist.init_process_group("tutti", store=store, rank=rank, world_size=size)
            self.assertEqual(summed(), 1)

    def test_every_way_to_meet(self):
        def by_file(rank, size, sock):
            dist.init_process_group("tutti", init_method=f"file://{folder}/store", rank=rank, world_size=size)
            self.assertEqual(summed(), 1)
            dist.destroy_process_group()

        def by_url(rank, size, sock):
            sock.close()  # a URL cannot hand it over: rank 0 takes another port, and tells
            told = dist.FileStore(f"{folder}/port")
            if rank == 0:
                port, lock = take_port()
                told.set("port", str(port))
            port = told.get("port").decode()
            os.environ.pop("MASTER_ADDR", None)
            os.environ["TUTTI_TRANSPORT"] = "tcp"
            changed = []
            sys.addaudithook(lambda event, args: changed.append(args[0]) if event == "os.putenv" else None)
            dist.init_process_group("tutti", init_method=f"tcp://127.0.0.7:{port}", rank=rank, world_size=size)
            self.assertEqual(summed(), 1)
            self.assertTrue(listens_at("127.0.0.7"))  # tutti does: PyTorch's store is at all addresses
            self.assertNotIn(b"MASTER_ADDR", changed)  # for no moment: other threads may read it
            dist.destroy_process_group()
            if rank == 0:
                lock.close()

        def by_prefix(rank, size, sock):
            store = dist.PrefixStore("job", open_store(sock, rank, size))
            dist.init_process_group("cpu:tutti", store=store, rank=rank, world_size=size)
            self.assertEqual(summed(), 1)
            dist.destroy_process_group()

        with tempfile.TemporaryDirectory() as folder:
            for body in (by_file, by_url, by_prefix):
                with self.subTest(body.__name__):
                    run(body, 2, backend=None)


PROGRAM = """
import sys, torch, torch.distributed as dist, tutti_torch
rank = int(sys.argv[1])
dist.init_process_group("tutti", init_method="file://" + sys.argv[2], rank=rank, world_size=2)
t = torch.full((1000,), float(rank))
kept = dist.all_reduce(t, async_op=True).get_future().then(lambda f: f.value()[0].sum().item())
assert kept.wait() == 1000.0
if rank == 0:
    late = dist.irecv(torch.zeros(1), 1)  # never comes: it ends with the program
    asked = late.get_future().then(lambda f: print("called"))
"""

# A callback has the last reference to its group's backend. Rank 1 stays until rank 0 has left all groups, or leaves first.
OWNER = """
import atexit, sys, torch, torch.distributed as dist
from datetime import timedelta
rank, path, how = int(sys.argv[1]), sys.argv[2], sys.argv[3]
store = dist.FileStore(path, 2)
if how == "stay":
    atexit.register(lambda: store.get("over") if rank else store.set("over", "yes"))
import tutti_torch  # its own function at the end runs before that one
backend = tutti_torch._C.make_backend(store, rank, 2, timedelta(seconds=30))
if rank == 0:
    owner, t = [backend], torch.zeros(1)
    late = backend.recv([t], 1, 0).get_future().then(lambda f: owner.clear())
    del backend
    if how == "leave":
        try:
            late.wait()
        except RuntimeError:
            pass
elif how == "stay":
    tutti_torch.atexit.unregister(tutti_torch._C.leave_all)
"""


# tutti_work_then() refuses. Rank 1 comes when rank 0 has dropped what it had; the second call is looked at, and never waited for.
REFUSED = """
import gc, sys, torch, weakref, numpy, torch.distributed as dist, tutti_torch
rank = int(sys.argv[1])
dist.init_process_group("tutti", init_method="file://" + sys.argv[2], rank=rank, world_size=2)
store = dist.distributed_c10d._get_default_store()
try:
    dist.all_reduce(torch.ones(3), async_op=True).get_future()
    raise SystemExit("the function was taken")
except RuntimeError as error:
    assert "tutti:all_reduce" in str(error)
with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]):
    t = torch.full((1000,), float(rank))
    work = dist.all_reduce(t, async_op=True)
    work.wait()
    assert t.sum().item() == 1000
memory = numpy.zeros(1000, dtype=numpy.float32)
t, seen = torch.from_numpy(memory), weakref.ref(memory)
if rank == 1:
    store.get("dropped")
work = dist.broadcast(t, 1, async_op=True)
if rank == 0:
    del t, memory, work
    gc.collect()
    assert seen() is not None, "freed under way"
    store.set("dropped", "")
dist.barrier()
dist.destroy_process_group()
"""
E_NOMEM = 4  # tutti/status.h


class Endings(unittest.TestCase):
    def ends_well(self, program, *args, **environment):
        """Two ranks of program end by themselves, with 0."""
        with tempfile.TemporaryDirectory() as folder:
            ranks = [subprocess.Popen([sys.executable, "-c", program, str(rank), f"{folder}/store", *args],
                                      env={**os.environ, **environment}) for rank in range(2)]
            try:
                self.assertEqual([rank.wait(LIMIT_S) for rank in ranks], [0, 0])
            finally:
                for rank in ranks:
                    rank.kill()
                    rank.wait()

    def test_a_callback_may_have_the_last_reference(self):
        for how in ("stay", "leave"):
            with self.subTest(how):
                self.ends_well(OWNER, how)

    def test_a_program_that_just_ends(self):
        self.ends_well(PROGRAM)

    def test_nobody_can_be_called_at_the_end(self):
        """Where the library takes no function for the end, as for want of memory, calls go on, and their memory stays."""
        with tempfile.TemporaryDirectory() as folder:
            source = pathlib.Path(folder, "refuses.c")
            source.write_text("int tutti_work_then(void *w, void *f, void *c) { (void)w, (void)f, (void)c; return %d; }" % E_NOMEM)
            subprocess.run([os.environ.get("CC", "cc"), "-shared", "-fPIC", "-o", f"{folder}/refuses.so", source], check=True)
            self.ends_well(REFUSED, LD_PRELOAD=f"{folder}/refuses.so")


class Failures(unittest.TestCase):
    def fails_with(self, kind, words, call):
        """The time that call took to fail so."""
        began = time.monotonic()
        with self.assertRaisesRegex(kind, words):
            call()
        return time.monotonic() - began

    @on(4, dies=[2])
    def test_a_rank_that_dies_is_named(self, rank, size):
        dist.barrier()
        if rank == 2:
            raise Dies
        took = self.fails_with(dist.DistBackendError, "rank 2", lambda: dist.all_reduce(torch.zeros(10)))
        self.assertLess(took, 10)
        self.fails_with(dist.DistBackendError, "rank 2", lambda: dist.barrier())

    @on(2, dies=[1])
    def test_a_work_and_its_future_have_the_failure(self, rank, size):
        dist.barrier()
        if rank == 1:
            raise Dies
        work = dist.all_reduce(torch.zeros(10), async_op=True)
        future = work.get_future()
        self.fails_with(dist.DistBackendError, "rank 1", work.wait)
        self.fails_with(RuntimeError, "rank 1", future.wait)
        self.assertTrue(work.is_completed())
        self.fails_with(dist.DistBackendError, "rank 1", work.wait)

    @on(3)
    def test_who_is_late_is_named(self, rank, size):
        group = dist.new_group(timeout=timedelta(seconds=1))
        if rank != 1:
            took = self.fails_with(dist.DistBackendError, "timed out(.|\n)*rank 1",
                                   lambda: dist.all_reduce(torch.zeros(4), group=group))
            self.assertLess(took, 10)
            self.assertGreater(took, 0.9)
        dist.barrier()

    @on(2)
    def test_a_call_may_have_its_own_time(self, rank, size):
        backend = dist.group.WORLD._get_backend(torch.device("cpu"))
        group = dist.new_group()
        if rank == 0:
            options = dist.BarrierOptions()
            options.timeout = timedelta(seconds=1)
            theirs = group._get_backend(torch.device("cpu"))
            took = self.fails_with(dist.DistBackendError, "timed out(.|\n)*rank 1", lambda: theirs.barrier(options).wait())
            self.assertLess(took, 10)
        self.assertEqual(backend.options._timeout, timedelta(minutes=30))
        dist.barrier()

    @on(2)
    def test_a_groups_time_can_be_changed(self, rank, size):
        group = dist.new_group()
        dist.distributed_c10d._set_pg_timeout(timedelta(seconds=1), group)
        if rank == 0:
            self.assertLess(self.fails_with(dist.DistBackendError, "rank 1", lambda: dist.barrier(group=group)), 10)
        dist.barrier()

    @on(2)
    def test_calls_that_differ_are_told(self, rank, size):
        call = (lambda: dist.all_reduce(torch.zeros(4))) if rank else (lambda: dist.all_reduce(torch.zeros(5)))
        self.fails_with(dist.DistBackendError, "4(.|\n)*5|5(.|\n)*4", call)

    @on(2)
    def test_an_aborted_group(self, rank, size):
        group = dist.new_group()
        work = dist.barrier(group=group, async_op=True) if rank == 0 else None
        if rank == 0:
            group.abort()
            self.fails_with(dist.DistBackendError, "abort", work.wait)
            self.fails_with(dist.DistBackendError, "abort", lambda: dist.barrier(group=group))
        dist.barrier()

    @on(2)
    def test_a_group_that_is_over(self, rank, size):
        group = dist.new_group()
        backend = group._get_backend(torch.device("cpu"))
        dist.destroy_process_group(group)
        self.fails_with(RuntimeError, "tutti:all_reduce", lambda: backend.allreduce([torch.zeros(1)]))

    @on(3)
    def test_a_barrier_that_says_who_is_missing(self, rank, size):
        tutti_torch.monitored_barrier()
        dist.monitored_barrier(timeout=timedelta(seconds=20))
        group = dist.new_group()
        if rank == 0:
            self.fails_with(dist.DistBackendError, "1(.|\n)*2", lambda: tutti_torch.monitored_barrier(
                group, timedelta(seconds=1), wait_all_ranks=True))
        dist.barrier()

    def test_ranks_that_do_not_come(self):
        def body(rank, size, sock):
            store = open_store(sock, rank, size)
            if rank == 1:
                store.wait(["done"])
                return
            took = self.fails_with(dist.DistBackendError, "rank 1", lambda: dist.init_process_group(
                "tutti", store=store, rank=rank, world_size=size, timeout=timedelta(seconds=2)))
            self.assertLess(took, 20)
            store.set("done", "")

        run(body, 2, backend=None)


if __name__ == "__main__":
    unittest.main()
