/* SPDX-License-Identifier: BSD-3-Clause
 *
 * operation.h - one operation under way: its work, the tensors it works on, and what is done when it has ended.
 *
 * Why     A span is bare memory. What holds the memory must live as long as the library may touch it, which can be
 *         longer than the c10d::Work that Python has dropped, and also where there never was one, since an exception
 *         came between: an operation that goes before its end leaves what it has borrowed to the library.
 * How     An operation is shared by the Work, by the function that the library calls at the end, and by nobody else.
 *         settle() is what the end consists of: results that had to take a detour are copied to where they belong,
 *         the failure, if any, becomes an exception, borrowed tensors are let go, and the future is completed.
 *         Whoever sees the end first does it: a wait, a look at is_completed(), or the library's call.
 * True    Whoever builds the operation writes it before it is shared. After that ending_ guards what the end changes:
 *         work is read, borrowed_, detours_, on_end and error_ are written under it, once, and done_ is set last, with
 *         release; who has seen done_ reads error_ without the lock. lock_ guards future_ and futured_.
 *         The last reference to a tensor may need Python's lock, and callbacks of a future do: tensors are let go and
 *         futures completed with neither lock held, and who may hold Python's lock (has_ended) only tries for ending_.
 * Detours A tensor that is not contiguous, or is lazily conjugated or negated, is packed first, and unpacked in
 *         settle(). So is memory that lies where the call must not have it (backend.cpp: untangle). */
#ifndef TUTTI_TORCH_OPERATION_H
#define TUTTI_TORCH_OPERATION_H

#include <ATen/ATen.h>
#include <ATen/core/ivalue.h>

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <tutti/group.h>

namespace tutti_torch {

class Operation : public std::enable_shared_from_this<Operation> {
public:
    explicit Operation(const char *name) : name_(name) {}
    ~Operation();
    Operation(const Operation &) = delete;
    Operation &operator=(const Operation &) = delete;

    /* While it is built. Spans count elements of dtype, which stands for the tensor's own where only bytes are moved. */
    tutti_span read(const at::Tensor &tensor, tutti_dtype dtype);
    tutti_span write(const at::Tensor &tensor, tutti_dtype dtype);
    tutti_span update(const at::Tensor &tensor, tutti_dtype dtype);
    /** The same where the tensor's own memory may not be used, whatever its layout. */
    tutti_span read_copy(const at::Tensor &tensor, tutti_dtype dtype);
    tutti_span write_aside(const at::Tensor &tensor, tutti_dtype dtype);

    tutti_work             *work = nullptr; /* NULL: it has ended already, well */
    std::vector<at::Tensor> outputs;        /* what result() and the future have */
    std::function<void()>   on_end;         /* the profiler's */

    /* When it is shared. */
    bool               has_ended();   /* does not wait; settles it if so, unless another thread is just doing that */
    void               settle();      /* the work has ended */
    void               arm();         /* have settle() called by the library at the end */
    bool               is_settled() const { return done_.load(std::memory_order_acquire); }
    std::exception_ptr error() const { return error_; } /* once settled */
    const char        *name() const { return name_; }

    c10::intrusive_ptr<c10::ivalue::Future> future();

private:
    using Detours = std::vector<std::pair<at::Tensor, at::Tensor>>; /* where it belongs, where it is */
    struct Spent {
        std::vector<at::Tensor> borrowed;
        Detours                 detours;
    };

    Spent end();
    void  complete_future();
    void  lend_until_the_end();

    const char                             *name_;
    std::vector<at::Tensor>                 borrowed_;
    Detours                                 detours_;
    std::mutex                              ending_;
    std::exception_ptr                      error_;
    std::atomic<bool>                       done_{ false };
    std::atomic<bool>                       armed_{ false };
    std::mutex                              lock_;
    c10::intrusive_ptr<c10::ivalue::Future> future_;
    bool                                    futured_ = false; /* the future has been completed */
};

} // namespace tutti_torch
#endif
