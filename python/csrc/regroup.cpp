/* SPDX-License-Identifier: BSD-3-Clause
 *
 * regroup.cpp - groups out of groups: parts, several in one, without some members, with others.
 *
 * How     A part, and several in one, are new worlds that meet at the store that PyTorch hands over. Shrinking and
 *         reconfiguring are the library's own (tutti/regroup.h): the first gives another group, which a new backend takes
 *         over, while the old one is over; the second leaves group and backend what they are, with other ranks in it.
 * True    Membership (backend.h) tells who may touch the group meanwhile. */
#include "backend.h"

#include "errors.h"
#include "types.h"
#include "work.h"

#include <algorithm>
#include <tutti/regroup.h>

namespace tutti_torch {

/* ---- backends like this one ---- */

c10::intrusive_ptr<c10d::Backend> TuttiBackend::make_another(const c10::intrusive_ptr<c10d::Store> &store, int rank,
                                                             int size, c10::intrusive_ptr<Options> options)
{
    return c10::make_intrusive<TuttiBackend>(store, rank, size, std::move(options));
}

c10::intrusive_ptr<c10d::Backend> TuttiBackend::take_over(tutti_group *group, c10::intrusive_ptr<Options> options)
{
    return c10::make_intrusive<TuttiBackend>(group, std::move(options));
}

/* Options of a group that is made of this one: theirs where they give some. */
c10::intrusive_ptr<TuttiBackend::Options>
TuttiBackend::options_like(const c10::intrusive_ptr<c10d::Backend::Options> &theirs) const
{
    auto options = c10::make_intrusive<Options>(theirs ? theirs->timeout : options_->timeout);

    if (theirs) {
        options->group_name = theirs->group_name;
        options->group_desc = theirs->group_desc;
        options->global_ranks_in_group = theirs->global_ranks_in_group;
    }
    options->store_host = options_->store_host;
    return options;
}

/* ---- by a store ---- */

c10::intrusive_ptr<c10d::Backend> TuttiBackend::merge(const c10::intrusive_ptr<c10d::Store> &store,
                                                      const c10::intrusive_ptr<c10d::Backend::Options> &opts,
                                                      const int &rank, const int &size)
{
    const auto options = options_like(opts);
    auto       made = make_another(store, rank, size, options);

    made->setGroupUid(options->group_name);
    return made;
}

/* Ranks that the list leaves out get none. */
c10::intrusive_ptr<c10d::Backend> TuttiBackend::split(const c10::intrusive_ptr<c10d::Store> &store,
                                                      const std::vector<int> &ranks,
                                                      const c10::intrusive_ptr<c10d::Backend::Options> &opts)
{
    const auto mine = std::find(ranks.begin(), ranks.end(), rank_);

    if (mine == ranks.end())
        return nullptr;
    return merge(store, opts, static_cast<int>(mine - ranks.begin()), static_cast<int>(ranks.size()));
}

/* ---- by the library ---- */

/* After take(): the group is there again, whatever st says, and what failed is thrown. put() may word a failure of its own. */
static void put_back(Membership &own, tutti_group *group, tutti_status st, const char *what)
{
    const std::exception_ptr error = st == TUTTI_OK ? nullptr : as_exception(st, what);

    own.put(group);
    if (error)
        std::rethrow_exception(error);
}

c10::intrusive_ptr<c10d::Backend> TuttiBackend::shrink(const std::vector<int64_t> &ranks_to_exclude, int shrink_flags,
                                                       const c10::intrusive_ptr<c10d::Backend::Options> &opts)
{
    const char *const      what = "shrink";
    const std::vector<int> ranks(ranks_to_exclude.begin(), ranks_to_exclude.end());
    const unsigned         flags = shrink_flags != 0 ? TUTTI_SHRINK_ABORT : TUTTI_SHRINK_DEFAULT;
    const auto             options = options_like(opts);
    tutti_group_options    theirs = TUTTI_GROUP_OPTIONS;
    tutti_group           *group = own_->take(what, (flags & TUTTI_SHRINK_ABORT) != 0);
    tutti_group           *smaller = TUTTI_NO_GROUP;

    theirs.timeout_ms = timeout_of(options->timeout, 0);
    const tutti_status st =
        tutti_shrink_group(ranks.data(), static_cast<int>(ranks.size()), group, flags, &theirs, &smaller);
    if (st != TUTTI_OK)
        put_back(*own_, group, st, what);
    return take_over(smaller, options);
}

c10d::ReconfigureHandle TuttiBackend::get_reconfigure_handle() const
{
    std::shared_lock<std::shared_mutex> inside(own_->calls);
    const char                         *handle = tutti_get_reconfigure_handle(own_->group);

    TORCH_CHECK(handle != nullptr, "get_reconfigure_handle: the group is over");
    return handle;
}

/* The texts stay opts'. */
static std::vector<const char *> texts_of(const c10d::ReconfigureOptions &opts)
{
    std::vector<const char *> texts;
    const auto                add = [&](const auto &handles) {
        for (const c10d::ReconfigureHandle &handle : handles)
            texts.push_back(handle.c_str());
    };

    std::visit(add, opts.handles);
    return texts;
}

WorkPtr TuttiBackend::reconfigure(const c10d::ReconfigureOptions &opts)
{
    const char *const               what = "tutti:reconfigure";
    const std::vector<const char *> handles = texts_of(opts);
    tutti_reconfigure_options       theirs = TUTTI_RECONFIGURE_OPTIONS;
    const auto                      done = std::make_shared<Operation>(what); /* it has no work: it has ended */
    tutti_group                    *group = own_->take(what);

    theirs.uuid = opts.uuid;
    theirs.handles = handles.data();
    theirs.n_handles = static_cast<int>(handles.size());
    theirs.as_set = opts.handles.index() == 0;
    theirs.timeout_ms = opts.timeout ? timeout_of(*opts.timeout, 0) : 0;
    const tutti_status st = tutti_reconfigure(group, &theirs);
    if (st == TUTTI_OK) {
        rank_ = tutti_get_rank(group);
        size_ = tutti_get_world_size(group);
        seq_ = 0;
    }
    put_back(*own_, group, st, what);
    done->settle();
    return c10::make_intrusive<TuttiWork>(Label{ c10d::OpType::UNKNOWN, what, 0, options_->timeout, rank_ }, done, Tensors());
}

} // namespace tutti_torch
