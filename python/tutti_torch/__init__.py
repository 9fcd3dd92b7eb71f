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
import re
from datetime import timedelta

import torch
import torch.distributed as dist

_AGAIN = "build it again with the PyTorch that runs this: pip install --force-reinstall --no-build-isolation ./python"

try:
    from . import _C
except ImportError as error:
    raise ImportError(f"tutti_torch cannot be loaded with PyTorch {torch.__version__}: {error}\n"
                      f"  next: if it is libtutti that is missing, install it where it was; else {_AGAIN}") from error


def _check_release():
    """Before anything of the shim is used: what a backend looks like in memory is another in each release of PyTorch."""
    runs = re.match(r"[\d.]*\d", torch.__version__).group()
    if runs != _C.torch_version:
        raise ImportError(f"tutti_torch was built with PyTorch {_C.torch_version}, and this is {runs}\n  next: {_AGAIN}")


_check_release()

from ._recorder import dump_recorder  # noqa: E402: it uses the shim

__all__ = ["monitored_barrier", "empty", "registered_memory", "dump_recorder"]


def _host_of(store):
    """Where the store stands, if it says so: a TCPStore, maybe behind prefixes. "": it does not."""
    while isinstance(store, dist.PrefixStore):
        store = store.underlying_store
    return getattr(store, "host", "")


def _meets_nobody(options):
    """A group of one in a world has no use for a store. PyTorch counts groups to name them, and ranks that have made different
    ones count differently: several groups of one can have the same name, and place in the store."""
    return options.group_size == 1 and dist.is_initialized() and not options.enable_reconfigure


def _create(options, backend_options=None):
    """What init_process_group and new_group call for a group with this backend.

    tutti listens at the address that leads to MASTER_ADDR; after init_method="tcp://host:port" only the store knows it.
    """
    timeout = getattr(backend_options, "_timeout", None) or options.timeout
    store = dist.HashStore() if _meets_nobody(options) else options.store
    return _C.make_backend(store, options.group_rank, options.group_size, timeout, options.group_id,
                           list(options.global_ranks_in_group), options.enable_reconfigure, _host_of(options.store))


def register():
    """Make the name known. `import tutti_torch` has done it; init_process_group("tutti") without it comes here."""
    if "TUTTI" not in dist.Backend._plugins:
        dist.Backend.register_backend("tutti", _create, extended_api=True, devices=["cpu"])


def _group_of(group):
    """The group itself, or the world for None."""
    pg = group if group is not None else dist.group.WORLD
    if pg is None:
        raise ValueError("Default process group has not been initialized, please make sure to call init_process_group.")
    return pg


def monitored_barrier(group=None, timeout=None, wait_all_ranks=False):
    """torch.distributed.monitored_barrier: a barrier that says which ranks have not come.

    timeout is a timedelta for all ranks together; None: the group's.
    """
    pg = _group_of(group)
    if pg is dist.GroupMember.NON_GROUP_MEMBER:
        return
    pg.monitored_barrier(timedelta(milliseconds=-1) if timeout is None else timeout, wait_all_ranks=wait_all_ranks)


def empty(*size, dtype=None, group=None):
    """A tensor in registered memory, on which collectives inside a host are fastest (tutti/memory.h). Zeroed."""
    pg = _group_of(group)
    if pg is dist.GroupMember.NON_GROUP_MEMBER:
        raise ValueError("tutti_torch.empty: this rank is not in the group\n  next: call it on members only, or without a group")
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
