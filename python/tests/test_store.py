# SPDX-License-Identifier: BSD-3-Clause
"""PyTorch's store under a group of tutti's: connections that break."""
import contextlib
import socket
import threading
import time
import unittest
from datetime import timedelta

import torch
import torch.distributed as dist
import tutti_torch  # noqa: F401: registers the name
from ranks import LIMIT_S, Dies, open_store, run
from test_groups import summed


class Relay:
    """Hands on what comes to its port to another port of this host, and back, until its connections are cut."""

    def __init__(self, to):
        self.to, self.lock, self.under_way = to, threading.Lock(), []
        self.door = socket.create_server(("127.0.0.1", 0))
        self.port = self.door.getsockname()[1]
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self):
        while True:
            near = self.door.accept()[0]
            far = socket.create_connection(("127.0.0.1", self.to))
            with self.lock:
                self.under_way += [near, far]
            for source, sink in ((near, far), (far, near)):
                threading.Thread(target=self._hand_on, args=(source, sink), daemon=True).start()

    def _hand_on(self, source, sink):
        with contextlib.suppress(OSError), source:
            while part := source.recv(65536):
                sink.sendall(part)
            sink.shutdown(socket.SHUT_WR)

    def cut(self):
        """All connections that there are end. Returns how many these were; others may be made after it."""
        with self.lock:
            cut, self.under_way = self.under_way, []
        for end in cut:
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
        return len(cut) // 2


class Connections(unittest.TestCase):
    def test_a_store_that_has_gone_is_told_of_at_once(self):
        def body(rank, size, sock):
            store = open_store(sock, rank, size)
            if rank == 0:
                store.wait(["here"])
                raise Dies
            store.set("here", "1")
            with contextlib.suppress(ConnectionRefusedError, ConnectionResetError):
                while True:  # until nobody listens
                    socket.create_connection(("127.0.0.1", store.port)).close()
            begin = time.monotonic()
            with self.assertRaises(Exception):
                dist.init_process_group("tutti", store=store, rank=rank, world_size=size)
            self.assertLess(time.monotonic() - begin, LIMIT_S / 3)
        run(body, 2, backend=None, dies=(0,))

    def test_who_serves_leaves_last(self):
        """Rank 0 is through at once, sends, and ends with its store; the other one still makes its group."""
        def body(rank, size):
            if rank == 0:
                dist.send(torch.ones(1), 1)
                return
            t = torch.zeros(1)
            dist.recv(t, 0)
            self.assertEqual(t.item(), 1)
        for _ in range(8):
            run(body, 2)

    def test_one_that_broke_is_not_used_again(self):
        def body(rank, size, sock):
            served = open_store(sock, rank, size)
            relay = Relay(served.port)
            store = dist.TCPStore("127.0.0.1", relay.port, None, False, timedelta(seconds=LIMIT_S), wait_for_workers=False)
            dist.init_process_group("tutti", store=store, rank=rank, world_size=size, timeout=timedelta(seconds=20),
                                    enable_reconfigure=True)
            mine = dist._get_reconfigure_handle()
            dist._reconfigure(1, [mine]).wait()
            self.assertEqual(summed(), 0)
            self.assertGreater(relay.cut(), 1)  # the program's own, and what the group has of it
            with self.assertRaisesRegex(dist.DistStoreError, "PyTorch's store could not"):
                dist._reconfigure(2, [mine])
            dist._reconfigure(3, [mine]).wait()
            self.assertEqual(summed(), 0)

        run(body, 1, backend=None)


if __name__ == "__main__":
    unittest.main()
