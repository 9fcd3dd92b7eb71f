# SPDX-License-Identifier: BSD-3-Clause
"""libtutti's flight recorder in the layout that PyTorch's analyser reads, torch.distributed.flight_recorder.

How     A group of PyTorch's is found in the recorder by its handle, and is called there what PyTorch calls it, with its ranks.
        Groups that this process has left are not in a dump, nor is what a group was before it was reconfigured: the
        analyser has one group to a name. Sizes are one number each, since the library knows memory, and not shapes.
        An operation that failed, or ran out of time, is "started", not "completed".
Numbers The analyser drops what has a lower record_id than the first of any other rank, to begin where all have records.
        Ours is how many collectives the process had issued by then on the groups of the dump. Members of the same groups
        have the same numbers, whatever messages each of them has sent, and wherever its ring begins.
"""
import os
import pickle

import torch
import torch.distributed as dist
from torch.distributed import distributed_c10d

from . import _C

_VERSION = "2.10"  # of the layout

# The library in front of an operation's name. The analyser of 2.15 has a name for what is none of PyTorch's own, and that of
# 2.14 refuses whatever it does not know.
_LIBRARY = "c10d" if torch.torch_version.TorchVersion(torch.__version__) >= (2, 15) else "gloo"

_DTYPES = {"bool": "Bool", "u8": "Byte", "i8": "Char", "u16": "UInt16", "i16": "Short", "u32": "UInt32", "i32": "Int",
           "u64": "UInt64", "i64": "Long", "f16": "Half", "bf16": "BFloat16", "f32": "Float", "f64": "Double",
           "f8e4m3fn": "Float8_e4m3fn", "f8e5m2": "Float8_e5m2", "c64": "ComplexFloat", "c128": "ComplexDouble"}


def _handle_of(pg):
    """The handle of the world that a group is on the CPU; None: it is another backend's, or over."""
    try:
        backend = pg._get_backend(torch.device("cpu"))
        backend = getattr(backend, "wrapped_pg", backend)  # TORCH_DISTRIBUTED_DEBUG=DETAIL
        return backend.get_reconfigure_handle() if backend.name() == "tutti" else None
    except RuntimeError:
        return None


def _known_groups(found):
    """{place among the recorder's groups: PyTorch's group}, of those that are there: the newest of a handle."""
    by_handle = {_handle_of(pg): pg for pg in list(distributed_c10d._world.pg_map)}
    by_handle.pop(None, None)
    newest = {group["world"]: i for i, group in enumerate(found)}
    return {i: by_handle[handle] for handle, i in newest.items() if handle in by_handle}


def _global_ranks(pg):
    """By group rank. What PyTorch has of the world is from before it was reconfigured."""
    return list(range(pg.size())) if pg == dist.group.WORLD else dist.get_process_group_ranks(pg)


def _config(pg):
    return {"name": pg.group_name, "desc": pg.group_desc, "ranks": str(_global_ranks(pg))}


def _status(group):
    return {"last_enqueued_collective": group["issued"], "last_started_collective": group["began"],
            "last_completed_collective": group["ended"]}


def _count(record, n_bytes):
    """Elements. Of a broadcast, and of a reduction to one, that layout has the buffer of every member, read or not."""
    if record["op"] in ("broadcast", "reduce"):
        return record["count"]
    return n_bytes // record["dtype_bytes"]


def _title(record, group):
    """A message's has the ranks in the group, which is a world of the library's: its peer is one."""
    if not record["is_message"]:
        return f"{_LIBRARY}:{record['op'].removesuffix('_v')}"
    peer = record["peer"] if record["peer"] >= 0 else "?"
    return f"{_LIBRARY}:{record['op']} {group['rank']}{'->' if record['op'] == 'send' else '<-'}{peer}"


def _entry(record, group, pg, record_id):
    is_message, dtype = record["is_message"], _DTYPES[record["dtype"]]
    return {
        "record_id": record_id, "pg_id": record["group"], "process_group": (pg.group_name, pg.group_desc),
        "collective_seq_id": 0 if is_message else record["seq"], "p2p_seq_id": record["seq"] if is_message else 0,
        "op_id": record["seq"], "profiling_name": _title(record, group), "is_p2p": is_message,
        "input_sizes": [[_count(record, record["in_bytes"])]], "input_dtypes": [dtype],
        "output_sizes": [[_count(record, record["out_bytes"])]], "output_dtypes": [dtype],
        "time_created_ns": record["issued_ns"], "time_discovered_started_ns": record["began_ns"],
        "time_discovered_completed_ns": record["ended_ns"], "timeout_ms": None,
        "state": "completed" if record["is_done"] else "started" if record["is_started"] else "scheduled",
        "retired": record["is_done"] or record["has_failed"], "frames": [],
    }


class _Numbers:
    """How many collectives were issued by then, record by record."""

    def __init__(self, groups, records):
        """groups: {place: group}; records: of these, in their order."""
        self.latest = {i: max(group["issued"], group["began"], group["ended"]) for i, group in groups.items()}
        for record in reversed(records):
            if record["is_collective"]:
                self.latest[record["group"]] = record["seq"] - 1

    def of(self, record):
        if record["is_collective"]:
            self.latest[record["group"]] = max(self.latest[record["group"]], record["seq"])
        return sum(self.latest.values())


def layout(messages=False):
    """This process's recorder as PyTorch's dumps are, before they are pickled."""
    found = _C.read_recorder()
    known = _known_groups(found["groups"])
    groups = {i: found["groups"][i] for i in known}
    records = [r for r in found["records"] if r["group"] in known and (r["is_collective"] or (messages and r["is_message"]))]
    numbers = _Numbers(groups, records)
    return {
        "version": _VERSION, "comm_lib_version": "tutti",
        "pg_config": {pg.group_name: _config(pg) for pg in known.values()},
        "pg_status": {pg.group_name: _status(groups[i]) for i, pg in known.items()},
        "entries": [_entry(r, groups[r["group"]], known[r["group"]], numbers.of(r)) for r in records],
    }


def dump_recorder(prefix, messages=False):
    """Write what this process did last on its groups, for PyTorch's analyser: to prefix with the global rank behind it.

        tutti_torch.dump_recorder("traces/rank_")                                on each rank, also after a failure
        python -m torch.distributed.flight_recorder.fr_trace traces -p rank_     somewhere, once

    Messages are left out: where a group has more than two ranks the analyser takes them for collectives that some ranks did
    not join, and compares nothing behind them. messages=True has them, to be printed: fr_trace -j, with the package tabulate.

    Returns the path. The file can be read by its owner only. TUTTI_RECORDER=0 is a RuntimeError: nothing was recorded.
    """
    content = pickle.dumps(layout(messages))
    path = f"{prefix}{dist.get_rank()}"
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
        file.write(content)
    return path
