# SPDX-License-Identifier: BSD-3-Clause
"""Tests whose body runs on several ranks, each a process.

Method  The processes are forked after torch was imported, which is quicker than starting Python anew. They meet at a TCPStore
        on a socket that this process has bound before, so that no port is guessed. Each tells through a pipe what it came to,
        a traceback or nothing, and leaves by os._exit(): nothing of unittest's goes on in it. Who is not through in time is
        killed by his pid, and the test fails with the stack that faulthandler has written.
"""
import faulthandler
import functools
import os
import selectors
import signal
import socket
import tempfile
import time
import traceback
from datetime import timedelta

import torch
import torch.distributed as dist

import tutti_torch  # noqa: F401: registers the name

LIMIT_S = float(os.environ.get("LIMIT_S", 60))


class Dies(Exception):
    """What a body raises on a rank that is meant to end here, without a word to its peers."""


def open_store(sock, rank, size):
    """The store that rank 0 serves on sock. Nobody else keeps the socket, so that it ends with rank 0."""
    port = sock.getsockname()[1]
    fd = sock.detach() if rank == 0 else None
    sock.close()
    return dist.TCPStore("127.0.0.1", port, size, rank == 0, timedelta(seconds=LIMIT_S), master_listen_fd=fd,
                         wait_for_workers=False)


def _be_rank(body, rank, size, sock, backend, options):
    torch.set_num_threads(1)
    torch.manual_seed(rank)
    if backend is None:
        body(rank, size, sock)
        return
    dist.init_process_group(backend, store=open_store(sock, rank, size), rank=rank, world_size=size, **options)
    body(rank, size)
    dist.destroy_process_group()


def _child(body, rank, size, sock, backend, options, out):
    code = 0
    try:
        _be_rank(body, rank, size, sock, backend, options)
    except Dies:
        os.kill(os.getpid(), signal.SIGKILL)
    except BaseException:
        os.write(out, traceback.format_exc()[-60000:].encode())
        code = 1
    os._exit(code)


def _fork(body, rank, size, sock, backend, options, trace):
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(read)
        faulthandler.enable(trace)
        faulthandler.dump_traceback_later(LIMIT_S - 5, file=trace)
        _child(body, rank, size, sock, backend, options, write)
    os.close(write)
    return pid, read


def _collect(pipes, until):
    """What each rank has written, and which are not through in time."""
    words, late = {rank: b"" for rank in pipes}, set(pipes)
    with selectors.DefaultSelector() as ready:
        for rank, fd in pipes.items():
            ready.register(fd, selectors.EVENT_READ, rank)
        while late and time.monotonic() < until:
            for key, _ in ready.select(until - time.monotonic()):
                part = os.read(key.fd, 65536)
                words[key.data] += part
                if not part:
                    ready.unregister(key.fd)
                    late.discard(key.data)
    return words, late


def run(body, size, backend="tutti", dies=(), **options):
    """Run body(rank, size) on ranks 0 .. size-1. backend None: body(rank, size, socket), which joins nothing by itself."""
    with socket.socket() as sock, tempfile.TemporaryFile("w+") as trace:
        sock.bind(("127.0.0.1", 0))
        sock.listen(64)
        made = {r: _fork(body, r, size, sock, backend, options, trace) for r in range(size)}
        sock.close()
        words, late = _collect({r: fd for r, (_, fd) in made.items()}, time.monotonic() + LIMIT_S)
        for r, (pid, fd) in made.items():
            os.close(fd)
            if r in late:
                os.kill(pid, signal.SIGKILL)
        codes = {r: os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for r, (pid, _) in made.items()}
        trace.seek(0)
        stacks = trace.read()
    wrong = [f"rank {r} of {size} ended with {code}\n{words[r].decode()}" for r, code in codes.items()
             if code != (-signal.SIGKILL if r in dies else 0)]
    if late or wrong:
        raise AssertionError("\n".join([f"not through in {LIMIT_S} s: {sorted(late)}"] * bool(late) + wrong + [stacks[-6000:]]))


def on(*sizes, **options):
    """A test method self.test(rank, size) becomes one that runs on each of these numbers of ranks."""
    def wrap(method):
        @functools.wraps(method)
        def test(self):
            for size in sizes:
                with self.subTest(ranks=size):
                    run(functools.partial(method, self), size, **options)
        return test
    return wrap
