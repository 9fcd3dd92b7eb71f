# SPDX-License-Identifier: BSD-3-Clause
"""tutti as a backend of torch.distributed.

    import torch.distributed as dist
    import tutti_torch

    dist.init_process_group("tutti")

Everything else is torch.distributed's: collectives, messages, groups, DDP, FSDP2, DTensor. CPU tensors; with GPUs beside them
init_process_group("cpu:tutti,cuda:nccl").
"""
import atexit
import contextlib
import os
from datetime import timedelta

import torch
import torch.distributed as dist

from . import _C
from ._recorder import dump_recorder

__all__ = ["monitored_barrier", "empty", "registered_memory", "dump_recorder"]


def _host_of(store):
    """Where the store stands, if it says so: a TCPStore, maybe behind prefixes."""
    while isinstance(store, dist.PrefixStore):
        store = store.underlying_store
    return getattr(store, "host", None)


@contextlib.contextmanager
def _told_the_way(store):
    """tutti listens at the address that leads to MASTER_ADDR; after init_method="tcp://host:port" only the store knows it."""
    host = _host_of(store)
    if "MASTER_ADDR" in os.environ or not host:
        yield
        return
    os.environ["MASTER_ADDR"] = host
    try:
        yield
    finally:
        del os.environ["MASTER_ADDR"]


def _create(options, backend_options=None):
    """What init_process_group and new_group call for a group with this backend."""
    timeout = getattr(backend_options, "_timeout", None) or options.timeout
    with _told_the_way(options.store):
        return _C.make_backend(options.store, options.group_rank, options.group_size, timeout, options.group_id,
                               list(options.global_ranks_in_group), options.enable_reconfigure)


def register():
    """Make the name known. `import tutti_torch` has done it; init_process_group("tutti") without it comes here."""
    if "TUTTI" not in dist.Backend._plugins:
        dist.Backend.register_backend("tutti", _create, extended_api=True, devices=["cpu"])


def monitored_barrier(group=None, timeout=None, wait_all_ranks=False):
    """torch.distributed.monitored_barrier: a barrier that says which ranks have not come.

    timeout is a timedelta for all ranks together; None: the group's.
    """
    pg = group if group is not None else dist.group.WORLD
    if pg is None:
        raise ValueError("Default process group has not been initialized, please make sure to call init_process_group.")
    if pg is dist.GroupMember.NON_GROUP_MEMBER:
        return
    pg.monitored_barrier(timedelta(milliseconds=-1) if timeout is None else timeout, wait_all_ranks=wait_all_ranks)


def empty(*size, dtype=None, group=None):
    """A tensor in registered memory, on which collectives inside a host are fastest (tutti/memory.h). Zeroed."""
    pg = group if group is not None else dist.group.WORLD
    shape = torch.Size(size[0] if len(size) == 1 and not isinstance(size[0], int) else size)
    backend = pg._get_backend(torch.device("cpu"))
    return backend.allocate_tensor(shape.numel(), dtype=dtype or torch.get_default_dtype(),
                                   device=torch.device("cpu")).view(shape)


@contextlib.contextmanager
def registered_memory(from_bytes=1 << 16):
    """Tensors on the CPU of from_bytes and more that are made inside lie in registered memory, on all threads.

    So do parameters of a model that is made there, and the buckets of DistributedDataParallel around it, whose sums are
    fastest then. Where there is no room for more they lie where they always do. Registered memory is shared with children
    of fork(): what they write there, this process sees.
    """
    before = _C.use_registered_memory(from_bytes)
    try:
        yield
    finally:
        _C.use_registered_memory(before)


register()
atexit.register(_C.leave_all)
