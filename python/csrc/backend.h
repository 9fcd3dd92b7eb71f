/* SPDX-License-Identifier: BSD-3-Clause
 *
 * backend.h - a group of libtutti's as a backend of PyTorch's.
 *
 * How     A group of PyTorch's is a world of libtutti's that meets at the store which PyTorch hands over. So its global
 *         ranks are the group's, it fails alone, and it needs no other group to have the same backend.
 * True    group is set by the constructor and by leave(). calls is held shared by whoever is inside a call on it, and
 *         alone by leave(), which ends those calls first, and only as long as it takes group away: destroying it waits for
 *         callbacks, one of which may be dropping the backend. issue_ is held while a call is handed over, so that a number,
 *         and a time-out of its own, belong to one call.
 *         What gives the group other members (reconfigure, shrink) waits for callbacks, too. So it takes the group away for as
 *         long as it lasts, with calls held only to do that: calls made meanwhile fail as those on a group that is over, and
 *         leave() leaves word (is_left) for put(), which ends the group then. rank_, size_ and seq_ are written in between.
 * Limits  CPU tensors. One tensor in a call where PyTorch's interface has lists for several devices of a process. */
#ifndef TUTTI_TORCH_BACKEND_H
#define TUTTI_TORCH_BACKEND_H

#include "operation.h"

#include <mutex>
#include <shared_mutex>
#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <torch/version.h>

#if TORCH_VERSION_MAJOR < 2 || (TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR < 14)
#error "tutti_torch is written for PyTorch 2.14 and later"
#endif

namespace tutti_torch {

using Tensors = std::vector<at::Tensor>;
using TensorLists = std::vector<Tensors>;
using WorkPtr = c10::intrusive_ptr<c10d::Work>;

/** A group, and who is inside a call on it. It outlives its backend while leave_all() is at it. */
struct Membership {
    std::shared_mutex calls;
    tutti_group      *group = TUTTI_NO_GROUP;
    bool              is_left = false; /* under calls: leave() was called */

    /** Out of it: calls under way end first, with TUTTI_E_ABORTED. A second time does nothing, and does not wait for the
     * first. @threads any, also one that runs a callback of the group's */
    void leave();

    /** Have the group alone, once calls that are inside are through; with aborts these end first. @throws c10::Error if it is over,
     * or taken already
     * @threads any */
    tutti_group *take(const char *what, bool aborts = false);

    /** After take(): the group is there again, or ends, if it was left meanwhile. @threads that of take() */
    void put(tutti_group *mine);
};

/** Leave every group that this process is in through a backend. @threads any */
void leave_all();

class TuttiBackend : public c10d::Backend {
public:
    struct Options : c10d::Backend::Options {
        explicit Options(std::chrono::milliseconds timeout = kBackendDefaultTimeout)
            : c10d::Backend::Options("tutti", timeout)
        {
        }
        c10::intrusive_ptr<c10d::Backend::Options> clone() const override
        {
            return c10::make_intrusive<Options>(*this);
        }

        std::string store_host; /* where the store stands; empty: not known */
    };

    /** Join the group: returns when all its ranks have come, or at once with enable_reconfigure. @throws as check() */
    TuttiBackend(const c10::intrusive_ptr<c10d::Store> &store, int rank, int size, c10::intrusive_ptr<Options> options);

    /** The backend of a group that is there, and that it takes over. */
    TuttiBackend(tutti_group *group, c10::intrusive_ptr<Options> options);
    ~TuttiBackend() override;

    const std::string                          getBackendName() const override { return "tutti"; }
    c10::intrusive_ptr<c10d::Backend::Options> getBackendOptions() override { return options_; }
    void                                       setTimeout(std::chrono::milliseconds timeout) override;
    uint64_t                                   getSequenceNumberForGroup() override;
    void                                       abort() override;
    void                                       shutdown() override;
    bool                                       supportsTensorAlloc(c10::DeviceIndex device) override;
    at::Tensor                                 allocateTensor(long size, at::TensorOptions options = {}) override;

    WorkPtr broadcast(Tensors &tensors, const c10d::BroadcastOptions &opts = {}) override;
    WorkPtr allreduce(Tensors &tensors, const c10d::AllreduceOptions &opts = {}) override;
    WorkPtr allreduce_sparse(Tensors &tensors, const c10d::AllreduceOptions &opts = {}) override;
    WorkPtr allreduce_coalesced(Tensors &tensors, const c10d::AllreduceCoalescedOptions &opts = {}) override;
    WorkPtr reduce(Tensors &tensors, const c10d::ReduceOptions &opts = {}) override;
    WorkPtr allgather(TensorLists &outputs, Tensors &inputs, const c10d::AllgatherOptions &opts = {}) override;
    WorkPtr _allgather_base(at::Tensor &output, at::Tensor &input, const c10d::AllgatherOptions &opts = {}) override;
    WorkPtr allgather_coalesced(TensorLists &outputs, Tensors &inputs, const c10d::AllgatherOptions &opts = {}) override;
    WorkPtr allgather_into_tensor_coalesced(Tensors &outputs, Tensors &inputs,
                                            const c10d::AllgatherOptions &opts = {}) override;
    WorkPtr gather(TensorLists &outputs, Tensors &inputs, const c10d::GatherOptions &opts = {}) override;
    WorkPtr scatter(Tensors &outputs, TensorLists &inputs, const c10d::ScatterOptions &opts = {}) override;
    WorkPtr reduce_scatter(Tensors &outputs, TensorLists &inputs, const c10d::ReduceScatterOptions &opts = {}) override;
    WorkPtr _reduce_scatter_base(at::Tensor &output, at::Tensor &input,
                                 const c10d::ReduceScatterOptions &opts = {}) override;
    WorkPtr reduce_scatter_tensor_coalesced(Tensors &outputs, Tensors &inputs,
                                            const c10d::ReduceScatterOptions &opts = {}) override;
    WorkPtr alltoall_base(at::Tensor &output, at::Tensor &input, std::vector<int64_t> &output_splits,
                          std::vector<int64_t> &input_splits, const c10d::AllToAllOptions &opts = {}) override;
    WorkPtr alltoall(Tensors &outputs, Tensors &inputs, const c10d::AllToAllOptions &opts = {}) override;
    WorkPtr send(Tensors &tensors, int dst, int tag) override;
    WorkPtr recv(Tensors &tensors, int src, int tag) override;
    WorkPtr recvAnysource(Tensors &tensors, int tag) override;
    WorkPtr barrier(const c10d::BarrierOptions &opts = {}) override;
    void    monitoredBarrier(const c10d::BarrierOptions &opts, bool wait_all_ranks = false) override;

    WorkPtr gather_into_tensor(at::Tensor &output, at::Tensor &input, const c10d::GatherOptions &opts = {}) override;

    bool                              supportsSplitting() const override { return true; }
    c10::intrusive_ptr<c10d::Backend> split(const c10::intrusive_ptr<c10d::Store> &store, const std::vector<int> &ranks,
                                            const c10::intrusive_ptr<c10d::Backend::Options> &opts) override;
    c10::intrusive_ptr<c10d::Backend> merge(const c10::intrusive_ptr<c10d::Store> &store,
                                            const c10::intrusive_ptr<c10d::Backend::Options> &opts, const int &rank,
                                            const int &size) override;

    bool                              supportsShrinking() const override { return true; }
    c10::intrusive_ptr<c10d::Backend> shrink(const std::vector<int64_t> &ranks_to_exclude, int shrink_flags = 0,
                                             const c10::intrusive_ptr<c10d::Backend::Options> &opts = nullptr) override;

    bool                    supportsReconfigure() const override { return true; }
    c10d::ReconfigureHandle get_reconfigure_handle() const override;
    WorkPtr                 reconfigure(const c10d::ReconfigureOptions &opts) override;

protected:
    /** A group of the same kind, for split() and merge(); a backend of the same kind, for shrink(). */
    virtual c10::intrusive_ptr<c10d::Backend> make_another(const c10::intrusive_ptr<c10d::Store> &store, int rank, int size,
                                                           c10::intrusive_ptr<Options> options);
    virtual c10::intrusive_ptr<c10d::Backend> take_over(tutti_group *group, c10::intrusive_ptr<Options> options);

private:
    struct Call; /* what start() has to know */
    using Begin = std::function<tutti_status(tutti_group *, tutti_work **)>;

    c10::intrusive_ptr<Options> options_like(const c10::intrusive_ptr<c10d::Backend::Options> &theirs) const;
    tutti_status begin_within(int64_t own_ms, const Begin &begin, Operation &operation, const char *title);
    WorkPtr start(const Call &call, std::shared_ptr<Operation> operation, const Tensors &inputs, const Begin &begin);
    WorkPtr receive(Tensors &tensors, int src, int tag, c10d::OpType type, const char *title);

    c10::intrusive_ptr<Options> options_;
    std::shared_ptr<Membership> own_;
    std::mutex                  issue_;
    int64_t                     timeout_ms_; /* the group's, as the library has it; under issue_ */
    std::atomic<uint64_t>       seq_{ 0 };
};

} // namespace tutti_torch
#endif
