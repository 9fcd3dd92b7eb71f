/* SPDX-License-Identifier: BSD-3-Clause
 *
 * collectives.cpp - each call of PyTorch's backends as one of tutti/group.h or tutti/coalesce.h.
 *
 * How     Tensors become spans (operation.h), options become arguments, the library checks the rest and words it.
 * Memory  The library refuses results that lie in what is still read, except a rank's own part exactly. PyTorch's
 *         backends never looked, so here such an argument takes a detour instead: tangled(). */
#include "call.h"

#include "errors.h"
#include "scope.h"
#include "types.h"

#include <algorithm>
#include <cstring>
#include <torch/csrc/distributed/c10d/Utils.hpp>
#include <tutti/coalesce.h>
#include <tutti/sparse.h>

namespace tutti_torch {

using c10d::OpType;
using Spans = std::vector<tutti_span>;

/* ---- tensors ---- */

static const at::Tensor &on_host(const at::Tensor &tensor, const char *title)
{
    TORCH_CHECK(tensor.device().is_cpu(), title, ": a tensor is on ", tensor.device(),
                ", and tutti moves memory of the host\n  next: init_process_group('cpu:tutti,cuda:nccl')");
    TORCH_CHECK(tensor.layout() == at::kStrided, title, ": a tensor has layout ", tensor.layout(),
                "; only all_reduce takes sparse ones\n  next: to_dense()");
    return tensor;
}

static const at::Tensor &only(const Tensors &tensors, const char *title)
{
    TORCH_CHECK(tensors.size() == 1, title, ": ", tensors.size(), " tensors, where one is expected");
    return tensors[0];
}

static const Tensors &only(const TensorLists &lists, const char *title)
{
    TORCH_CHECK(lists.size() == 1, title, ": ", lists.size(), " lists of tensors, where one is expected");
    return lists[0];
}

static int root_of(int64_t rank, const char *title)
{
    TORCH_CHECK(rank >= 0 && rank <= INT32_MAX, title, ": root rank ", rank, " is none");
    return static_cast<int>(rank);
}

/* Bytes, where the types in a list differ: all that is moved together has one type. */
static bool are_of_one_type(const Tensors &a, const Tensors &b)
{
    const auto is_other = [&](const at::Tensor &t) { return t.scalar_type() != a[0].scalar_type(); };

    return std::none_of(a.begin(), a.end(), is_other) && std::none_of(b.begin(), b.end(), is_other);
}

static tutti_span as_bytes(tutti_span span, const at::Tensor &tensor)
{
    span.count *= static_cast<int64_t>(tensor.element_size());
    span.dtype = TUTTI_U8;
    return span;
}

static Spans reads(Operation &operation, const Tensors &tensors, const char *title)
{
    Spans spans;

    for (const at::Tensor &t : tensors)
        spans.push_back(operation.read(on_host(t, title), moved_as(t.scalar_type())));
    return spans;
}

static Spans writes(Operation &operation, const Tensors &tensors, const char *title)
{
    Spans spans;

    for (const at::Tensor &t : tensors)
        spans.push_back(operation.write(on_host(t, title), moved_as(t.scalar_type())));
    return spans;
}

static Spans reduced(Spans spans, const Tensors &tensors)
{
    for (size_t i = 0; i < spans.size(); i++)
        spans[i].dtype = reduced_as(tensors[i].scalar_type());
    return spans;
}

/* ---- memory that overlaps ---- */

static size_t bytes_of(const tutti_span &span)
{
    return static_cast<size_t>(span.count) * tutti_dtype_size(span.dtype);
}

static bool touch(const tutti_span &a, const tutti_span &b)
{
    const char *at_a = static_cast<const char *>(a.data);
    const char *at_b = static_cast<const char *>(b.data);

    return a.count > 0 && b.count > 0 && at_a < at_b + bytes_of(b) && at_b < at_a + bytes_of(a);
}

/* Whether one lies in any of parts, other than being part own itself. */
static bool tangled(const tutti_span &one, const Spans &parts, int own)
{
    for (size_t i = 0; i < parts.size(); i++)
        if (touch(one, parts[i]) &&
            !(static_cast<int>(i) == own && one.data == parts[i].data && bytes_of(one) == bytes_of(parts[i])))
            return true;
    return false;
}

/* A span in as many equal parts as there are ranks; empty where it cannot be cut, which the library refuses. */
static Spans cut(const tutti_span &span, int n)
{
    Spans        parts;
    const size_t step = bytes_of(span) / static_cast<size_t>(n);

    for (int i = 0; i < n && span.count % n == 0; i++) {
        tutti_span part = span;

        part.count = span.count / n;
        part.data = span.data == nullptr ? nullptr : static_cast<char *>(span.data) + static_cast<size_t>(i) * step;
        parts.push_back(part);
    }
    return parts;
}

/* ---- one tensor, in place ---- */

WorkPtr TuttiBackend::broadcast(Tensors &tensors, const c10d::BroadcastOptions &opts)
{
    const Call       call = { OpType::BROADCAST, "tutti:broadcast", opts.timeout };
    const at::Tensor tensor = on_host(only(tensors, call.title), call.title);
    const int        root = root_of(opts.rootRank, call.title);
    auto             op = std::make_shared<Operation>(call.title);
    const tutti_span span = op->update(tensor, moved_as(tensor.scalar_type()));

    op->outputs = { tensor };
    return start(call, op, tensors,
                 [&](tutti_group *group, tutti_work **work) { return tutti_broadcast_async(span, root, group, work); });
}

WorkPtr TuttiBackend::allreduce(Tensors &tensors, const c10d::AllreduceOptions &opts)
{
    const Call       call = { OpType::ALLREDUCE, "tutti:all_reduce", opts.timeout };
    const at::Tensor tensor = only(tensors, call.title);

    if (tensor.is_sparse())
        return allreduce_sparse(tensors, opts);
    on_host(tensor, call.title);

    const tutti_op   how = op_of(opts.reduceOp);
    auto             op = std::make_shared<Operation>(call.title);
    const tutti_span span = op->update(tensor, reduced_as(tensor.scalar_type()));

    op->outputs = { tensor };
    return start(call, op, tensors,
                 [&](tutti_group *group, tutti_work **work) { return tutti_all_reduce_async(span, how, group, work); });
}

WorkPtr TuttiBackend::allreduce_coalesced(Tensors &tensors, const c10d::AllreduceCoalescedOptions &opts)
{
    const Call     call = { OpType::ALLREDUCE_COALESCED, "tutti:all_reduce", opts.timeout };
    const tutti_op how = op_of(opts.reduceOp);
    auto           op = std::make_shared<Operation>(call.title);
    Spans          spans;

    for (const at::Tensor &t : tensors)
        spans.push_back(op->update(on_host(t, call.title), reduced_as(t.scalar_type())));
    op->outputs = tensors;
    return start(call, op, tensors, [&](tutti_group *group, tutti_work **work) {
        return tutti_all_reduce_coalesced_async(spans.data(), static_cast<int>(spans.size()), how, group, work);
    });
}

WorkPtr TuttiBackend::reduce(Tensors &tensors, const c10d::ReduceOptions &opts)
{
    const Call       call = { OpType::REDUCE, "tutti:reduce", opts.timeout };
    const at::Tensor tensor = on_host(only(tensors, call.title), call.title);
    const int        root = root_of(opts.rootRank, call.title);
    const tutti_op   how = op_of(opts.reduceOp);
    auto             op = std::make_shared<Operation>(call.title);
    const tutti_span span = op->update(tensor, reduced_as(tensor.scalar_type()));

    op->outputs = { tensor };
    return start(call, op, tensors,
                 [&](tutti_group *group, tutti_work **work) { return tutti_reduce_async(span, root, how, group, work); });
}

/* ---- a sparse one ---- */

static tutti_sparse_coo coo_of(const at::Tensor &tensor, const at::Tensor &indices, const at::Tensor &values)
{
    tutti_sparse_coo coo = {};

    coo.sparse_dim = static_cast<int>(tensor.sparse_dim());
    coo.dense_dim = static_cast<int>(tensor.dense_dim());
    for (int64_t i = 0; i < tensor.dim(); i++)
        coo.sizes[i] = tensor.size(i);
    coo.nnz = indices.size(1);
    coo.indices = indices.const_data_ptr<int64_t>();
    coo.values = tutti_span_of(values.const_data_ptr(), values.numel(), reduced_as(values.scalar_type()));
    return coo;
}

static at::Tensor tensor_of(const tutti_sparse_coo &coo, const at::Tensor &like)
{
    std::vector<int64_t> block = { coo.nnz };

    for (int i = 0; i < coo.dense_dim; i++)
        block.push_back(coo.sizes[coo.sparse_dim + i]);
    const at::Tensor indices = at::empty({ coo.sparse_dim, coo.nnz }, at::kLong);
    const at::Tensor values = at::empty(block, like._values().options().requires_grad(false));

    if (coo.nnz > 0) {
        memcpy(indices.data_ptr(), coo.indices, static_cast<size_t>(indices.nbytes()));
        memcpy(values.data_ptr(), coo.values.data, static_cast<size_t>(values.nbytes()));
    }
    return at::_sparse_coo_tensor_unsafe(indices, values, like.sizes(), like.options().requires_grad(false), true);
}

/* The library has it only as a call that waits, so it is over when this returns. */
WorkPtr TuttiBackend::allreduce_sparse(Tensors &tensors, const c10d::AllreduceOptions &opts)
{
    const Call      call = { OpType::_ALLREDUCE_SPARSE, "tutti:sparse_all_reduce", opts.timeout };
    at::NoGradGuard no_grad;
    at::Tensor      tensor = only(tensors, call.title);
    const tutti_op  how = op_of(opts.reduceOp);
    auto            op = std::make_shared<Operation>(call.title);

    TORCH_CHECK(tensor.is_sparse() && tensor.device().is_cpu(), call.title,
                ": the tensor is not sparse (COO) in memory of the host");
    TORCH_CHECK(tensor.sparse_dim() <= TUTTI_SPARSE_DIMS_MAX && tensor.dense_dim() <= TUTTI_SPARSE_DIMS_MAX, call.title,
                ": at most ", TUTTI_SPARSE_DIMS_MAX, " sparse and as many dense dimensions");
    const at::Tensor indices = tensor._indices().contiguous();
    const at::Tensor values = tensor._values().contiguous();

    op->outputs = { tensor };
    return start(call, op, tensors, [&](tutti_group *group, tutti_work **) {
        const tutti_sparse_coo in = coo_of(tensor, indices, values);
        tutti_sparse_coo       out = {};
        const AtEnd            freed([&] { tutti_sparse_free(&out); });
        const tutti_status     st = tutti_sparse_all_reduce(&in, how, group, &out);

        if (st == TUTTI_OK)
            tensor.copy_(tensor_of(out, tensor)); /* may throw: the tensor takes no copy, or there is no memory */
        return st;
    });
}

/* ---- gathering ---- */

WorkPtr TuttiBackend::allgather(TensorLists &outputs, Tensors &inputs, const c10d::AllgatherOptions &opts)
{
    const Call        call = { OpType::ALLGATHER, "tutti:all_gather", opts.timeout };
    const Tensors    &list = only(outputs, call.title);
    const at::Tensor &input = on_host(only(inputs, call.title), call.title);
    auto              op = std::make_shared<Operation>(call.title);
    const Spans       outs = writes(*op, list, call.title);
    tutti_span        in = op->read(input, moved_as(input.scalar_type()));

    if (tangled(in, outs, rank_))
        in = op->read_copy(input, in.dtype);
    op->outputs = list;
    return start(call, op, inputs, [&](tutti_group *group, tutti_work **work) {
        return tutti_all_gather_async(outs.data(), static_cast<int>(outs.size()), in, group, work);
    });
}

WorkPtr TuttiBackend::_allgather_base(at::Tensor &output, at::Tensor &input, const c10d::AllgatherOptions &opts)
{
    const Call       call = { OpType::_ALLGATHER_BASE, "tutti:all_gather_into_tensor", opts.timeout };
    auto             op = std::make_shared<Operation>(call.title);
    const tutti_span out = op->write(on_host(output, call.title), moved_as(output.scalar_type()));
    tutti_span       in = op->read(on_host(input, call.title), moved_as(input.scalar_type()));

    if (tangled(in, cut(out, size_), rank_))
        in = op->read_copy(input, in.dtype);
    op->outputs = { output };
    return start(call, op, { input }, [&](tutti_group *group, tutti_work **work) {
        return tutti_all_gather_into_tensor_async(out, in, group, work);
    });
}

WorkPtr TuttiBackend::allgather_coalesced(TensorLists &outputs, Tensors &inputs, const c10d::AllgatherOptions &opts)
{
    const Call                      call = { OpType::ALLGATHER_COALESCED, "tutti:all_gather", opts.timeout };
    auto                            op = std::make_shared<Operation>(call.title);
    Spans                           ins = reads(*op, inputs, call.title);
    const bool                      bytes = !inputs.empty() && !are_of_one_type(inputs, {});
    std::vector<Spans>              outs;
    std::vector<const tutti_span *> lists;

    for (const Tensors &list : outputs) {
        TORCH_CHECK(list.size() == inputs.size(), call.title, ": a list of ", list.size(), " outputs for ", inputs.size(),
                    " inputs");
        outs.push_back(writes(*op, list, call.title));
        for (size_t i = 0; bytes && i < list.size(); i++)
            outs.back()[i] = as_bytes(outs.back()[i], list[i]);
        op->outputs.insert(op->outputs.end(), list.begin(), list.end());
    }
    for (size_t i = 0; bytes && i < inputs.size(); i++)
        ins[i] = as_bytes(ins[i], inputs[i]);
    for (const Spans &list : outs)
        lists.push_back(list.data());
    return start(call, op, inputs, [&](tutti_group *group, tutti_work **work) {
        return tutti_all_gather_coalesced_async(lists.data(), static_cast<int>(lists.size()), ins.data(),
                                                static_cast<int>(ins.size()), group, work);
    });
}

WorkPtr TuttiBackend::allgather_into_tensor_coalesced(Tensors &outputs, Tensors &inputs,
                                                      const c10d::AllgatherOptions &opts)
{
    const Call call = { OpType::ALLGATHER_INTO_TENSOR_COALESCED, "tutti:all_gather_into_tensor", opts.timeout };
    auto       op = std::make_shared<Operation>(call.title);
    Spans      outs = writes(*op, outputs, call.title);
    Spans      ins = reads(*op, inputs, call.title);

    TORCH_CHECK(outs.size() == ins.size(), call.title, ": ", outs.size(), " outputs for ", ins.size(), " inputs");
    if (!inputs.empty() && !are_of_one_type(inputs, outputs))
        for (size_t i = 0; i < ins.size(); i++) {
            outs[i] = as_bytes(outs[i], outputs[i]);
            ins[i] = as_bytes(ins[i], inputs[i]);
        }
    op->outputs = outputs;
    return start(call, op, inputs, [&](tutti_group *group, tutti_work **work) {
        return tutti_all_gather_into_tensor_coalesced_async(outs.data(), ins.data(), static_cast<int>(ins.size()), group,
                                                            work);
    });
}

WorkPtr TuttiBackend::gather(TensorLists &outputs, Tensors &inputs, const c10d::GatherOptions &opts)
{
    const Call        call = { OpType::GATHER, "tutti:gather", opts.timeout };
    const at::Tensor &input = on_host(only(inputs, call.title), call.title);
    const int         root = root_of(opts.rootRank, call.title);
    auto              op = std::make_shared<Operation>(call.title);
    Spans             outs;

    if (root == rank_ || !outputs.empty()) {
        op->outputs = only(outputs, call.title);
        outs = writes(*op, op->outputs, call.title);
    }
    tutti_span in = op->read(input, moved_as(input.scalar_type()));

    if (tangled(in, outs, rank_))
        in = op->read_copy(input, in.dtype);
    return start(call, op, inputs, [&](tutti_group *group, tutti_work **work) {
        return tutti_gather_async(outs.empty() ? nullptr : outs.data(), static_cast<int>(outs.size()), in, root, group, work);
    });
}

WorkPtr TuttiBackend::gather_into_tensor(at::Tensor &output, at::Tensor &input, const c10d::GatherOptions &opts)
{
    const Call call = { OpType::GATHER, "tutti:gather", opts.timeout };
    const int  root = root_of(opts.rootRank, call.title);
    auto       op = std::make_shared<Operation>(call.title);
    tutti_span in = op->read(on_host(input, call.title), moved_as(input.scalar_type()));
    Spans      outs;

    if (root == rank_) {
        const tutti_span out = op->write(on_host(output, call.title), moved_as(output.scalar_type()));

        TORCH_CHECK(out.count == in.count * size_, call.title, ": an output of ", out.count, " elements for ", size_,
                    " inputs of ", in.count);
        outs = cut(out, size_);
        op->outputs = { output };
    }
    if (tangled(in, outs, rank_))
        in = op->read_copy(input, in.dtype);
    return start(call, op, { input }, [&](tutti_group *group, tutti_work **work) {
        return tutti_gather_async(outs.empty() ? nullptr : outs.data(), static_cast<int>(outs.size()), in, root, group, work);
    });
}

/* ---- scattering ---- */

WorkPtr TuttiBackend::scatter(Tensors &outputs, TensorLists &inputs, const c10d::ScatterOptions &opts)
{
    const Call        call = { OpType::SCATTER, "tutti:scatter", opts.timeout };
    const at::Tensor &output = on_host(only(outputs, call.title), call.title);
    const int         root = root_of(opts.rootRank, call.title);
    auto              op = std::make_shared<Operation>(call.title);
    tutti_span        out = op->write(output, moved_as(output.scalar_type()));
    Spans             ins;

    if (root == rank_ || !inputs.empty())
        ins = reads(*op, only(inputs, call.title), call.title);
    if (tangled(out, ins, rank_))
        out = op->write_aside(output, out.dtype);
    op->outputs = { output };
    return start(call, op, inputs.empty() ? Tensors() : inputs[0], [&](tutti_group *group, tutti_work **work) {
        return tutti_scatter_async(out, ins.empty() ? nullptr : ins.data(), static_cast<int>(ins.size()), root, group, work);
    });
}

WorkPtr TuttiBackend::reduce_scatter(Tensors &outputs, TensorLists &inputs, const c10d::ReduceScatterOptions &opts)
{
    const Call        call = { OpType::REDUCE_SCATTER, "tutti:reduce_scatter", opts.timeout };
    const at::Tensor &output = on_host(only(outputs, call.title), call.title);
    const Tensors    &list = only(inputs, call.title);
    const tutti_op    how = op_of(opts.reduceOp);
    auto              op = std::make_shared<Operation>(call.title);
    tutti_span        out = op->write(output, reduced_as(output.scalar_type()));
    const Spans       ins = reduced(reads(*op, list, call.title), list);

    if (tangled(out, ins, rank_))
        out = op->write_aside(output, out.dtype);
    op->outputs = { output };
    return start(call, op, list, [&](tutti_group *group, tutti_work **work) {
        return tutti_reduce_scatter_async(out, ins.data(), static_cast<int>(ins.size()), how, group, work);
    });
}

WorkPtr TuttiBackend::_reduce_scatter_base(at::Tensor &output, at::Tensor &input, const c10d::ReduceScatterOptions &opts)
{
    const Call       call = { OpType::_REDUCE_SCATTER_BASE, "tutti:reduce_scatter_tensor", opts.timeout };
    const tutti_op   how = op_of(opts.reduceOp);
    auto             op = std::make_shared<Operation>(call.title);
    tutti_span       out = op->write(on_host(output, call.title), reduced_as(output.scalar_type()));
    const tutti_span in = op->read(on_host(input, call.title), reduced_as(input.scalar_type()));

    if (tangled(out, cut(in, size_), rank_))
        out = op->write_aside(output, out.dtype);
    op->outputs = { output };
    return start(call, op, { input }, [&](tutti_group *group, tutti_work **work) {
        return tutti_reduce_scatter_tensor_async(out, in, how, group, work);
    });
}

WorkPtr TuttiBackend::reduce_scatter_tensor_coalesced(Tensors &outputs, Tensors &inputs,
                                                      const c10d::ReduceScatterOptions &opts)
{
    const Call     call = { OpType::REDUCE_SCATTER_TENSOR_COALESCED, "tutti:reduce_scatter_tensor", opts.timeout };
    const tutti_op how = op_of(opts.reduceOp);
    auto           op = std::make_shared<Operation>(call.title);
    const Spans    outs = reduced(writes(*op, outputs, call.title), outputs);
    const Spans    ins = reduced(reads(*op, inputs, call.title), inputs);

    TORCH_CHECK(outs.size() == ins.size(), call.title, ": ", outs.size(), " outputs for ", ins.size(), " inputs");
    op->outputs = outputs;
    return start(call, op, inputs, [&](tutti_group *group, tutti_work **work) {
        return tutti_reduce_scatter_tensor_coalesced_async(outs.data(), ins.data(), static_cast<int>(ins.size()), how, group,
                                                           work);
    });
}

/* ---- all to all ---- */

/* Rows become elements. */
static std::vector<int64_t> elements_of(const std::vector<int64_t> &splits, const at::Tensor &tensor)
{
    const int64_t        rows = tensor.dim() == 0 ? 1 : tensor.size(0);
    const int64_t        row = rows == 0 ? 0 : tensor.numel() / rows;
    std::vector<int64_t> elements;

    for (const int64_t split : splits)
        elements.push_back(split * row);
    return elements;
}

WorkPtr TuttiBackend::alltoall_base(at::Tensor &output, at::Tensor &input, std::vector<int64_t> &output_splits,
                                    std::vector<int64_t> &input_splits, const c10d::AllToAllOptions &opts)
{
    const Call call = { OpType::ALLTOALL_BASE, "tutti:all_to_all", opts.timeout };

    on_host(output, call.title);
    on_host(input, call.title);
    c10d::checkSplitSizes(output_splits, output, size_);
    c10d::checkSplitSizes(input_splits, input, size_);

    const std::vector<int64_t> out_counts = elements_of(output_splits, output);
    const std::vector<int64_t> in_counts = elements_of(input_splits, input);
    auto                       op = std::make_shared<Operation>(call.title);
    const tutti_span           out = op->write(output, moved_as(output.scalar_type()));
    tutti_span                 in = op->read(input, moved_as(input.scalar_type()));

    if (touch(in, out))
        in = op->read_copy(input, in.dtype);
    op->outputs = { output };
    return start(call, op, { input }, [&](tutti_group *group, tutti_work **work) {
        return tutti_all_to_all_single_async(out, in, out_counts.empty() ? nullptr : out_counts.data(),
                                             in_counts.empty() ? nullptr : in_counts.data(), group, work);
    });
}

WorkPtr TuttiBackend::alltoall(Tensors &outputs, Tensors &inputs, const c10d::AllToAllOptions &opts)
{
    const Call  call = { OpType::ALLTOALL, "tutti:all_to_all", opts.timeout };
    auto        op = std::make_shared<Operation>(call.title);
    const Spans outs = writes(*op, outputs, call.title);
    Spans       ins = reads(*op, inputs, call.title);

    for (size_t i = 0; i < ins.size(); i++)
        if (tangled(ins[i], outs, static_cast<int>(i) == rank_ ? rank_ : -1))
            ins[i] = op->read_copy(inputs[i], ins[i].dtype);
    op->outputs = outputs;
    return start(call, op, inputs, [&](tutti_group *group, tutti_work **work) {
        return tutti_all_to_all_async(outs.data(), static_cast<int>(outs.size()), ins.data(), static_cast<int>(ins.size()),
                                      group, work);
    });
}

/* ---- messages ---- */

WorkPtr TuttiBackend::send(Tensors &tensors, int dst, int tag)
{
    const Call        call = { OpType::SEND, "tutti:send", c10d::kUnsetTimeout, true };
    const at::Tensor &tensor = on_host(only(tensors, call.title), call.title);
    auto              op = std::make_shared<Operation>(call.title);
    const tutti_span  span = op->read(tensor, moved_as(tensor.scalar_type()));

    return start(call, op, tensors,
                 [&](tutti_group *group, tutti_work **work) { return tutti_isend(span, dst, tag, group, work); });
}

WorkPtr TuttiBackend::receive(Tensors &tensors, int src, int tag, OpType type, const char *title)
{
    const Call        call = { type, title, c10d::kUnsetTimeout, true };
    const at::Tensor &tensor = on_host(only(tensors, title), title);
    auto              op = std::make_shared<Operation>(title);
    const tutti_span  span = op->write(tensor, moved_as(tensor.scalar_type()));

    op->outputs = { tensor };
    return start(call, op, tensors,
                 [&](tutti_group *group, tutti_work **work) { return tutti_irecv(span, src, tag, group, work); });
}

WorkPtr TuttiBackend::recv(Tensors &tensors, int src, int tag)
{
    TORCH_CHECK(src >= 0, "tutti:recv: source rank ", src, " is none");
    return receive(tensors, src, tag, OpType::RECV, "tutti:recv");
}

WorkPtr TuttiBackend::recvAnysource(Tensors &tensors, int tag)
{
    return receive(tensors, TUTTI_ANY_SOURCE, tag, OpType::RECVANYSOURCE, "tutti:recvAnySource");
}

WorkPtr TuttiBackend::barrier(const c10d::BarrierOptions &opts)
{
    const Call call = { OpType::BARRIER, "tutti:barrier", opts.timeout };

    return start(call, std::make_shared<Operation>(call.title), {},
                 [](tutti_group *group, tutti_work **work) { return tutti_barrier_async(group, work); });
}

} // namespace tutti_torch
