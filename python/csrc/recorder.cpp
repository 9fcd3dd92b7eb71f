/* SPDX-License-Identifier: BSD-3-Clause
 *
 * recorder.cpp - libtutti's flight recorder as dicts of Python; recorder.py makes of them what PyTorch's analyser reads. */
#include "recorder.h"

#include "errors.h"

#include <memory>
#include <tutti/recorder.h>

namespace tutti_torch {

namespace py = pybind11;

using Reader = std::unique_ptr<tutti_recorder, decltype(&tutti_recorder_close)>;

/* Copying is not done with Python's lock: it may take a millisecond. */
static Reader open_own()
{
    py::gil_scoped_release released;
    tutti_recorder        *recorder = nullptr;

    check(tutti_recorder_open_pid(0, &recorder), "dump_recorder");
    return Reader(recorder, tutti_recorder_close);
}

static py::dict group_of(const tutti_recorder *recorder, int i)
{
    tutti_recorder_group group = TUTTI_RECORDER_GROUP;
    py::dict             found;

    check(tutti_recorder_get_group(recorder, i, &group), "dump_recorder");
    found["world"] = group.world;
    found["rank"] = group.rank;
    found["issued"] = group.issued;
    found["began"] = group.began;
    found["ended"] = group.ended;
    return found;
}

static py::dict record_of(const tutti_recorder *recorder, int i, int64_t real_ns)
{
    tutti_record record = TUTTI_RECORD;
    py::dict     found;

    /* A time since the epoch; none where it is not known. */
    const auto wall = [=](int64_t ns) { return ns != 0 ? py::object(py::int_(ns + real_ns)) : py::object(py::none()); };

    check(tutti_recorder_get_record(recorder, i, &record), "dump_recorder");
    found["is_collective"] = static_cast<unsigned>(record.kind) < TUTTI_RECORD_SEND;
    found["is_message"] = record.kind == TUTTI_RECORD_SEND || record.kind == TUTTI_RECORD_RECV;
    found["op"] = record.op;
    found["name"] = record.name;
    found["group"] = record.group;
    found["seq"] = record.seq;
    found["dtype"] = tutti_dtype_name(record.dtype);
    found["dtype_bytes"] = tutti_dtype_size(record.dtype);
    found["peer"] = record.peer;
    found["count"] = record.count;
    found["in_bytes"] = record.in_bytes;
    found["out_bytes"] = record.out_bytes;
    found["is_started"] = record.state != TUTTI_RECORD_ISSUED;
    found["is_done"] = record.state == TUTTI_RECORD_DONE;
    found["has_failed"] = record.state == TUTTI_RECORD_FAILED;
    found["issued_ns"] = wall(record.issued_ns);
    found["began_ns"] = wall(record.began_ns);
    found["ended_ns"] = wall(record.ended_ns);
    return found;
}

py::dict read_recorder()
{
    const Reader        recorder = open_own();
    tutti_recorder_info info = TUTTI_RECORDER_INFO;
    py::list            groups, records;
    py::dict            found;

    check(tutti_recorder_get_info(recorder.get(), &info), "dump_recorder");
    for (int i = 0; i < tutti_recorder_count_groups(recorder.get()); i++)
        groups.append(group_of(recorder.get(), i));
    for (int i = 0; i < tutti_recorder_count_records(recorder.get()); i++)
        records.append(record_of(recorder.get(), i, info.real_ns));
    found["groups"] = groups;
    found["records"] = records;
    return found;
}

} // namespace tutti_torch
