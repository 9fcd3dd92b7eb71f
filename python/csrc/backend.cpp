/* SPDX-License-Identifier: BSD-3-Clause
 *
 * backend.cpp - a group's life: joining, leaving, time-outs, handing a call over. collectives.cpp has the calls, regroup.cpp
 * what makes groups out of groups. */
#include "call.h"

#include "errors.h"
#include "scope.h"
#include "store.h"
#include "types.h"
#include "work.h"

#include <algorithm>
#include <thread>
#include <tutti/debug.h>
#include <tutti/hooks.h>
#include <tutti/memory.h>
#include <utility>

namespace tutti_torch {

/* ---- which groups there are ---- */

static std::mutex                             joined_lock; /* guards joined, and is not held while a group is left */
static std::vector<std::weak_ptr<Membership>> joined;

static void remember(const std::shared_ptr<Membership> &one)
{
    const auto                  is_over = [](const std::weak_ptr<Membership> &other) { return other.expired(); };
    std::lock_guard<std::mutex> hold(joined_lock);

    joined.erase(std::remove_if(joined.begin(), joined.end(), is_over), joined.end());
    joined.push_back(one);
}

void leave_all()
{
    std::vector<std::weak_ptr<Membership>> all;
    {
        std::lock_guard<std::mutex> hold(joined_lock);

        all = joined;
    }
    for (const auto &one : all)
        if (const std::shared_ptr<Membership> held = one.lock())
            held->leave();
}

/* ---- joining and leaving ---- */

enum { THROUGH_MS = 5000 };

/* Rank 0 of the world serves PyTorch's store as a rule, and takes it along when it ends, as it may right behind a send: so it is the last one
 * to leave the making. Nobody is told of a store that does not answer here: the group is made. */
static void await_others(tutti_store *store, const TuttiBackend::Options &options, int rank, int size)
{
    const auto &ranks = options.global_ranks_in_group;
    const bool  may_serve = ranks.empty() ? rank == 0 : ranks[static_cast<size_t>(rank)] == 0;
    const char *all = "tutti_torch/all_through";
    int64_t     n = 0;

    if (size == 1 || tutti_store_add(store, "tutti_torch/through", 1, &n) != TUTTI_OK)
        return;
    if (n % size == 0)
        (void)tutti_store_set(store, all, "", 0);
    else if (may_serve)
        (void)tutti_store_wait(store, &all, 1, THROUGH_MS);
}

TuttiBackend::TuttiBackend(const c10::intrusive_ptr<c10d::Store> &store, int rank, int size,
                           c10::intrusive_ptr<Options> options)
    : Backend(rank, size), options_(std::move(options)), own_(std::make_shared<Membership>()),
      timeout_ms_(timeout_of(options_->timeout, 0))
{
    tutti_init_options opts = TUTTI_INIT_OPTIONS;
    tutti_group       *group = TUTTI_NO_GROUP;
    tutti_status       st;

    opts.store = wrap_store(store);
    opts.rank = rank;
    opts.world_size = size;
    opts.timeout_ms = timeout_ms_;
    opts.enable_reconfigure = options_->enable_reconfigure;
    opts.store_host = options_->store_host.empty() ? nullptr : options_->store_host.c_str();
    st = tutti_create_process_group(&opts, &group);
    if (st == TUTTI_OK && !opts.enable_reconfigure)
        await_others(opts.store, *options_, rank, size);
    tutti_store_close(opts.store);
    check(st, "tutti cannot make the group");
    own_->group = group;
    remember(own_);
}

TuttiBackend::TuttiBackend(tutti_group *group, c10::intrusive_ptr<Options> options)
    : Backend(tutti_get_rank(group), tutti_get_world_size(group)), options_(std::move(options)),
      own_(std::make_shared<Membership>()), timeout_ms_(timeout_of(options_->timeout, 0))
{
    own_->group = group;
    remember(own_);
}

TuttiBackend::~TuttiBackend()
{
    own_->leave();
}

/* Whoever is inside a call comes out of it. */
static void abort_under_way(Membership &own)
{
    std::shared_lock<std::shared_mutex> inside(own.calls);

    if (own.group != TUTTI_NO_GROUP)
        tutti_abort_process_group(own.group);
}

static tutti_group *take_away(Membership &own)
{
    std::unique_lock<std::shared_mutex> alone(own.calls, std::try_to_lock);

    if (!alone.owns_lock()) {
        abort_under_way(own);
        alone.lock();
    }
    own.is_left = true;
    return std::exchange(own.group, TUTTI_NO_GROUP);
}

/* A callback of the group's cannot end it, since that waits for callbacks: then a thread of its own does, behind it. */
static void destroy(tutti_group *mine)
{
    if (mine != TUTTI_NO_GROUP && tutti_destroy_process_group(mine) == TUTTI_E_STATE)
        std::thread([mine] { tutti_destroy_process_group(mine); }).detach();
}

void Membership::leave()
{
    destroy(take_away(*this));
}

tutti_group *Membership::take(const char *what, bool aborts)
{
    std::unique_lock<std::shared_mutex> alone(calls, std::try_to_lock);

    if (!alone.owns_lock()) {
        if (aborts)
            abort_under_way(*this);
        alone.lock();
    }
    TORCH_CHECK(group != TUTTI_NO_GROUP, what, ": the group is over, or another thread is changing its members");
    return std::exchange(group, TUTTI_NO_GROUP);
}

void Membership::put(tutti_group *mine)
{
    {
        std::unique_lock<std::shared_mutex> alone(calls);

        if (!is_left) {
            group = mine;
            return;
        }
    }
    destroy(mine);
}

void TuttiBackend::shutdown()
{
    own_->leave();
}

void TuttiBackend::abort()
{
    std::shared_lock<std::shared_mutex> inside(own_->calls);

    if (own_->group != TUTTI_NO_GROUP)
        check(tutti_abort_process_group(own_->group), "abort");
}

/* ---- time-outs, numbers, memory ---- */

void TuttiBackend::setTimeout(std::chrono::milliseconds timeout)
{
    std::shared_lock<std::shared_mutex> inside(own_->calls);
    std::lock_guard<std::mutex>         hold(issue_);
    const int64_t                       ms = timeout_of(timeout, 0);

    check(tutti_set_timeout(own_->group, ms), "setTimeout");
    timeout_ms_ = ms;
    options_->timeout = timeout;
}

uint64_t TuttiBackend::getSequenceNumberForGroup()
{
    return seq_.load();
}

bool TuttiBackend::supportsTensorAlloc(c10::DeviceIndex)
{
    return true;
}

/* Registered memory: members on one host read and write it directly. */
at::Tensor TuttiBackend::allocateTensor(long size, at::TensorOptions options)
{
    const at::TensorOptions on_host = options.device(at::kCPU);
    const size_t            bytes = static_cast<size_t>(size) * on_host.dtype().itemsize();
    void                   *data = nullptr;

    TORCH_CHECK(size >= 0, "allocateTensor: ", size, " elements");
    if (bytes == 0)
        return at::empty({ 0 }, on_host);
    check(tutti_alloc(bytes, &data), "allocateTensor");
    return at::from_blob(
        data, { size }, [](void *mine) { tutti_free(mine); }, on_host);
}

/* ---- handing a call over ---- */

/* As long as it lives, what this thread issues has the name that torch.distributed.record_comm() gave, if it did, also in
 * libtutti's recorder, logs and hooks; of a longer one what fits. */
class Named {
public:
    explicit Named(const std::string &name)
        : is_given_(!name.empty() && tutti_record_comm_begin(name.substr(0, TUTTI_COMM_NAME_MAX - 1).c_str()) == TUTTI_OK)
    {
    }
    ~Named()
    {
        if (is_given_)
            tutti_record_comm_end();
    }
    Named(const Named &) = delete;
    Named &operator=(const Named &) = delete;

private:
    bool is_given_;
};

/* Let the group have a time-out of the call's own, for as long as begin() takes, however that ends. */
tutti_status TuttiBackend::begin_within(int64_t own_ms, const Begin &begin, Operation &operation, const char *title)
{
    if (own_ms == timeout_ms_)
        return begin(own_->group, &operation.work);
    check(tutti_set_timeout(own_->group, own_ms), title);

    const AtEnd back([this] { tutti_set_timeout(own_->group, timeout_ms_); });

    return begin(own_->group, &operation.work);
}

/* The operation's spans stand by the time of begin(); what it fails with at once is thrown here, the rest is the work's. */
WorkPtr TuttiBackend::start(const Call &call, std::shared_ptr<Operation> operation, const Tensors &inputs,
                            const Begin &begin)
{
    std::shared_lock<std::shared_mutex> inside(own_->calls);
    std::unique_lock<std::mutex>        hold(issue_);
    const Named                         named(c10d::get_comm_profiling_name());
    const int64_t                       own_ms = timeout_of(call.timeout, timeout_ms_);
    Label                               label = { call.type, call.title, 0, options_->timeout, rank_ };

    check(begin_within(own_ms, begin, *operation, call.title), call.title);
    if (call.timeout.count() >= 0)
        label.timeout = call.timeout;
    label.seq = call.is_message ? seq_.load() : ++seq_;
    hold.unlock();
    return c10::make_intrusive<TuttiWork>(label, std::move(operation), inputs);
}

void TuttiBackend::monitoredBarrier(const c10d::BarrierOptions &opts, bool wait_all_ranks)
{
    std::shared_lock<std::shared_mutex> inside(own_->calls);

    check(tutti_monitored_barrier(own_->group, timeout_of(opts.timeout, 0), wait_all_ranks), "monitored_barrier");
}

} // namespace tutti_torch
