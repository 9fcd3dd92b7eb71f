/* SPDX-License-Identifier: BSD-3-Clause
 *
 * module.cpp - what Python sees of the shim: how a backend is made.
 *
 * Leaving a group waits for functions that the library is just calling, which may wait for Python's lock: it is
 * released around that, also where the last reference is dropped by the collector. When the interpreter ends, threads that
 * want its lock are ended where they are, so all groups are left before that (leave_all, from atexit). */
#include "backend.h"

#include "memory.h"
#include "recorder.h"

#include <torch/csrc/utils/pybind.h>
#include <tutti/memory.h>

#include <optional>
#include <pybind11/chrono.h>
#include <pybind11/stl.h>

namespace tutti_torch {
namespace {

/* Python's lock is let go as long as this lives, where the thread has it. */
class WithoutLock {
public:
    WithoutLock()
    {
        if (Py_IsInitialized() && PyGILState_Check())
            released_.emplace();
    }

private:
    std::optional<pybind11::gil_scoped_release> released_;
};

/* What waits for functions that the library calls, without Python's lock, whoever calls it. */
class PyBackend : public TuttiBackend {
public:
    using TuttiBackend::TuttiBackend;
    ~PyBackend() override
    {
        WithoutLock released;

        shutdown();
    }

    WorkPtr reconfigure(const c10d::ReconfigureOptions &opts) override
    {
        WithoutLock released;

        return TuttiBackend::reconfigure(opts);
    }

    c10::intrusive_ptr<c10d::Backend> shrink(const std::vector<int64_t> &ranks_to_exclude, int shrink_flags,
                                             const c10::intrusive_ptr<c10d::Backend::Options> &opts) override
    {
        WithoutLock released;

        return TuttiBackend::shrink(ranks_to_exclude, shrink_flags, opts);
    }

protected:
    c10::intrusive_ptr<c10d::Backend> make_another(const c10::intrusive_ptr<c10d::Store> &store, int rank, int size,
                                                   c10::intrusive_ptr<Options> options) override
    {
        return c10::make_intrusive<PyBackend>(store, rank, size, std::move(options));
    }

    c10::intrusive_ptr<c10d::Backend> take_over(tutti_group *group, c10::intrusive_ptr<Options> options) override
    {
        return c10::make_intrusive<PyBackend>(group, std::move(options));
    }
};

c10::intrusive_ptr<c10d::Backend> make_backend(const c10::intrusive_ptr<c10d::Store> &store, int rank, int size,
                                               std::chrono::milliseconds timeout, const std::string &name,
                                               const std::vector<uint64_t> &global_ranks, bool enable_reconfigure,
                                               const std::string &store_host)
{
    auto options = c10::make_intrusive<TuttiBackend::Options>(timeout);

    options->group_name = name;
    options->global_ranks_in_group = global_ranks;
    options->enable_reconfigure = enable_reconfigure;
    options->store_host = store_host;
    return c10::make_intrusive<PyBackend>(store, rank, size, options);
}

} // namespace
} // namespace tutti_torch

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m)
{
    m.doc() = "tutti as a backend of torch.distributed; use it by `import tutti_torch`";
    m.attr("torch_version") = TORCH_VERSION; /* of the headers that this was compiled with */
    m.def("make_backend", &tutti_torch::make_backend, pybind11::arg("store"), pybind11::arg("rank"), pybind11::arg("size"),
          pybind11::arg("timeout"), pybind11::arg("name") = "", pybind11::arg("global_ranks") = std::vector<uint64_t>(),
          pybind11::arg("enable_reconfigure") = false, pybind11::arg("store_host") = "",
          pybind11::call_guard<pybind11::gil_scoped_release>());
    m.def("leave_all", &tutti_torch::leave_all, pybind11::call_guard<pybind11::gil_scoped_release>());
    m.def("read_recorder", &tutti_torch::read_recorder);
    m.def("use_registered_memory", &tutti_torch::use_registered_memory, pybind11::arg("from_bytes"));
    m.def("is_registered", [](const at::Tensor &t) { return tutti_is_registered(t.data_ptr(), t.nbytes()); });
}
