/* SPDX-License-Identifier: BSD-3-Clause
 *
 * work.h - an operation as PyTorch's Work. */
#ifndef TUTTI_TORCH_WORK_H
#define TUTTI_TORCH_WORK_H

#include "operation.h"

#include <torch/csrc/distributed/c10d/Work.hpp>

namespace tutti_torch {

/** What an operation is called, and by which number. */
struct Label {
    c10d::OpType              type;
    const char               *title; /* of the profiler: "tutti:all_reduce" */
    uint64_t                  seq;   /* of the group's collectives; 0 for a message */
    std::chrono::milliseconds timeout;
    int                       rank;
};

class TuttiWork : public c10d::Work {
public:
    TuttiWork(const Label &label, std::shared_ptr<Operation> operation, const std::vector<at::Tensor> &inputs);
    ~TuttiWork() override;

    bool                                    isCompleted() override;
    bool                                    isSuccess() const override;
    std::exception_ptr                      exception() const override;
    int                                     sourceRank() const override;
    std::vector<at::Tensor>                 result() override;
    void                                    synchronize() override;
    bool                                    wait(std::chrono::milliseconds timeout = kNoTimeout) override;
    void                                    abort() override;
    c10::intrusive_ptr<c10::ivalue::Future> getFuture() override;
    uint64_t                                getSequencenumber() const override { return seq_; }
    std::chrono::milliseconds               getTimeout() const override { return timeout_; }

private:
    std::shared_ptr<Operation> operation_;
    uint64_t                   seq_;
    std::chrono::milliseconds  timeout_;
};

} // namespace tutti_torch
#endif
