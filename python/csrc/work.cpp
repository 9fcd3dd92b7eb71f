/* SPDX-License-Identifier: BSD-3-Clause
 *
 * work.cpp - an operation as PyTorch's Work.
 *
 * How     A wait is tutti_work_wait(): the caller's thread does the operation itself if nobody has begun it, so that
 *         the blocking form of a collective has no hop between threads. The library calls back at the end only where
 *         somebody asked for it: a future, a profiler, or a Work that was dropped before the end. */
#include "work.h"

#include "errors.h"

namespace tutti_torch {

TuttiWork::TuttiWork(const Label &label, std::shared_ptr<Operation> operation, const std::vector<at::Tensor> &inputs)
    : Work(label.rank, label.type, label.title, inputs), operation_(std::move(operation)), seq_(label.seq),
      timeout_(label.timeout)
{
    if (recordFunctionEndCallback_) {
        operation_->on_end = std::move(recordFunctionEndCallback_);
        recordFunctionEndCallback_ = nullptr;
        try {
            operation_->arm();
        } catch (...) {
            /* the operation is under way, and fails by nothing of this: the profiler is told by who waits */
        }
    }
}

/* Results that took a detour come to where they belong also if nobody waits. */
TuttiWork::~TuttiWork()
{
    try {
        if (!operation_->has_ended())
            operation_->arm();
    } catch (...) {
        /* the operation sees to its tensors */
    }
}

bool TuttiWork::isCompleted()
{
    return operation_->has_ended();
}

bool TuttiWork::isSuccess() const
{
    return operation_->is_settled() && !operation_->error();
}

std::exception_ptr TuttiWork::exception() const
{
    return operation_->is_settled() ? operation_->error() : nullptr;
}

/* A world of tutti's is one group of PyTorch's, so its global rank is the group's. */
int TuttiWork::sourceRank() const
{
    TORCH_CHECK(opType_ == c10d::OpType::RECVANYSOURCE, "sourceRank: only a receive from any rank has one");
    return tutti_work_source_rank(operation_->work);
}

std::vector<at::Tensor> TuttiWork::result()
{
    TORCH_CHECK(isCompleted(), "Work needs to be completed before calling result(): call wait() first");
    return operation_->outputs;
}

void TuttiWork::synchronize() {}

bool TuttiWork::wait(std::chrono::milliseconds timeout)
{
    tutti_status st = TUTTI_OK;

    if (!operation_->is_settled() && operation_->work != nullptr) {
        st = timeout <= kNoTimeout ? tutti_work_wait(operation_->work)
                                   : tutti_work_wait_for(operation_->work, timeout.count());
        if (st == TUTTI_E_TIMEOUT && !tutti_work_is_completed(operation_->work))
            check(st, operation_->name());
    }
    operation_->settle();
    if (operation_->error())
        std::rethrow_exception(operation_->error());
    return true;
}

void TuttiWork::abort()
{
    throw_as(TUTTI_E_UNSUPPORTED, std::string(operation_->name()) +
                                      ": one operation cannot be aborted alone\n  next: abort the group, "
                                      "torch.distributed.distributed_c10d._abort_process_group()");
}

c10::intrusive_ptr<c10::ivalue::Future> TuttiWork::getFuture()
{
    return operation_->future();
}

} // namespace tutti_torch
