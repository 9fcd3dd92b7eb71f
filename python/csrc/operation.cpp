/* SPDX-License-Identifier: BSD-3-Clause */
#include "operation.h"

#include "errors.h"

#include <new>

namespace tutti_torch {

/* Nobody waits, and nobody will: results that took a detour stay there. What is borrowed is let go when the library has done
 * with it; never, where it cannot say when, and after a wait for it, where there is no memory to put it by. */
void Operation::lend_until_the_end()
{
    Spent *lent = new (std::nothrow) Spent;

    if (lent == nullptr) {
        tutti_work_wait(work);
        return;
    }
    lent->borrowed.swap(borrowed_);
    lent->detours.swap(detours_);
    tutti_work_then(
        work, [](tutti_work *, void *ctx) { delete static_cast<Spent *>(ctx); }, lent);
}

Operation::~Operation()
{
    if (work != nullptr && !is_settled() && !tutti_work_is_completed(work))
        lend_until_the_end();
    tutti_work_free(work);
}

/* ---- spans of tensors ---- */

static bool lies_plainly(const at::Tensor &tensor)
{
    return tensor.is_contiguous() && !tensor.is_conj() && !tensor.is_neg();
}

static at::Tensor packed(const at::Tensor &tensor)
{
    return tensor.detach().resolve_conj().resolve_neg().contiguous();
}

static tutti_span span_of(const at::Tensor &tensor, tutti_dtype dtype)
{
    return tutti_span_of(tensor.data_ptr(), tensor.numel(), dtype);
}

tutti_span Operation::read(const at::Tensor &tensor, tutti_dtype dtype)
{
    borrowed_.push_back(lies_plainly(tensor) ? tensor : packed(tensor));
    return span_of(borrowed_.back(), dtype);
}

tutti_span Operation::read_copy(const at::Tensor &tensor, tutti_dtype dtype)
{
    borrowed_.push_back(packed(tensor).clone());
    return span_of(borrowed_.back(), dtype);
}

tutti_span Operation::write_aside(const at::Tensor &tensor, tutti_dtype dtype)
{
    const at::TensorOptions like = tensor.options().requires_grad(false).memory_format(at::MemoryFormat::Contiguous);
    const at::Tensor        aside = at::empty(tensor.sizes(), like);

    detours_.emplace_back(tensor, aside);
    return span_of(aside, dtype);
}

tutti_span Operation::write(const at::Tensor &tensor, tutti_dtype dtype)
{
    if (!lies_plainly(tensor))
        return write_aside(tensor, dtype);
    borrowed_.push_back(tensor);
    return span_of(tensor, dtype);
}

tutti_span Operation::update(const at::Tensor &tensor, tutti_dtype dtype)
{
    tutti_span span = write(tensor, dtype);

    if (!lies_plainly(tensor))
        detours_.back().second.copy_(tensor.detach());
    return span;
}

/* ---- the end ---- */

/* Once, under ending_. Words of a failure are those of the thread that asks for the status, which is this one. */
Operation::Spent Operation::end()
{
    const tutti_status st = work == nullptr ? TUTTI_OK : tutti_work_status(work);
    Spent              spent;

    try {
        at::NoGradGuard no_grad;

        if (st != TUTTI_OK)
            error_ = as_exception(st, name_);
        else
            for (auto &detour : detours_)
                detour.first.copy_(detour.second);
    } catch (...) {
        error_ = std::current_exception();
    }
    if (on_end)
        on_end();
    on_end = nullptr;
    spent.borrowed.swap(borrowed_);
    spent.detours.swap(detours_);
    done_.store(true, std::memory_order_release);
    return spent;
}

void Operation::settle()
{
    {
        Spent                        spent; /* let go after the lock */
        std::unique_lock<std::mutex> hold(ending_);

        if (!is_settled())
            spent = end();
        hold.unlock();
    }
    complete_future();
}

bool Operation::has_ended()
{
    if (is_settled())
        return true;
    if (work != nullptr && !tutti_work_is_completed(work))
        return false;
    {
        Spent                        spent;
        std::unique_lock<std::mutex> hold(ending_, std::try_to_lock);

        if (!hold.owns_lock())
            return false;
        if (!is_settled())
            spent = end();
        hold.unlock();
    }
    complete_future();
    return true;
}

void Operation::arm()
{
    std::shared_ptr<Operation> *held;
    tutti_status                st;

    if (armed_.exchange(true))
        return;
    if (work == nullptr) {
        settle();
        return;
    }
    held = new std::shared_ptr<Operation>(shared_from_this());
    st = tutti_work_then(
        work,
        [](tutti_work *, void *ctx) {
            auto *mine = static_cast<std::shared_ptr<Operation> *>(ctx);

            (*mine)->settle();
            delete mine;
        },
        held);
    if (st == TUTTI_OK)
        return;
    delete held;
    armed_.store(false);
    check(st, name_);
}

/* ---- the future ---- */

void Operation::complete_future()
{
    c10::intrusive_ptr<c10::ivalue::Future> mine;
    {
        std::lock_guard<std::mutex> hold(lock_);

        if (!future_ || futured_)
            return;
        futured_ = true;
        mine = future_;
    }
    if (error_)
        mine->setError(error_);
    else
        mine->markCompleted(c10::IValue(outputs));
}

c10::intrusive_ptr<c10::ivalue::Future> Operation::future()
{
    c10::intrusive_ptr<c10::ivalue::Future> mine;
    {
        std::lock_guard<std::mutex> hold(lock_);

        if (!future_)
            future_ = c10::make_intrusive<c10::ivalue::Future>(c10::ListType::create(c10::TensorType::get()));
        mine = future_;
    }
    arm();
    if (has_ended())
        complete_future();
    return mine;
}

} // namespace tutti_torch
