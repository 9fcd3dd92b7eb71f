#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Write hooks.tsv: gradients after PyTorch's communication hooks, on 2 and 4 ranks.

    OMP_NUM_THREADS=1 python3 tests/golden/make_hooks.py

needs PyTorch 2.x and numpy. Processes over gloo on the loopback. The module has parameters of SHAPES, and the
gradient of each is drawn() of case, step, parameter and rank: its loss is the sum of parameter times gradient. It is wrapped
by DistributedDataParallel with buckets of CAP bytes, so that the second step has other ones than the first.

The batched form of PyTorch 2.x hands matrices to a function that takes batches of them, and fails; here it hands batches
of one.

PowerSGD's random columns are drawn(), too: torch.randn is replaced while its hook runs. Which matrix gets which follows
from the order in which the hook asks: by shape, in the order in which shapes appear in the bucket.
"""
import collections
import os
import sys

import numpy
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks, post_localSGD_hook, powerSGD_hook
from torch.distributed.algorithms.ddp_comm_hooks import quantization_hooks

SHAPES = ((16, 24), (24,), (8, 3, 3, 3), (5,), (16, 24), (40, 30))
CAP, STEPS, START, SIZES, SIGNS = 4000, 5, 2, (2, 4), 3
COLUMNS, COMMON = 1000, 2000


def drawn(step, what, rank, n):
    """n numbers in [-1, 1), multiples of 2^-23, by a hash that the test has, too."""
    with numpy.errstate(over="ignore"):
        x = numpy.arange(n, dtype=numpy.uint32) * numpy.uint32(2654435761)
        x += numpy.uint32((step * 7919 + what * 104729 + rank * 1299709) & 0xffffffff)
        x ^= x >> numpy.uint32(16)
        x *= numpy.uint32(0x7feb352d)
        x ^= x >> numpy.uint32(15)
        x *= numpy.uint32(0x846ca68b)
        x ^= x >> numpy.uint32(16)
    return (x >> numpy.uint32(8)).astype(numpy.float64) / 2**23 - 1.0


def gradient(step, i, rank):
    n = int(numpy.prod(SHAPES[i]))
    values = drawn(0, COMMON + i, 0, n) + 0.5 * drawn(step, i, rank, n)
    return torch.from_numpy(values.astype(numpy.float32)).view(SHAPES[i])


ORTHOGONALIZE = powerSGD_hook._orthogonalize


def orthogonalize(matrices, epsilon=0):
    ORTHOGONALIZE(matrices.unsqueeze(0) if matrices.dim() == 2 else matrices, epsilon)


powerSGD_hook._orthogonalize = orthogonalize


class Columns:
    """In the place of torch.randn: the columns of the matrices that the hook has next."""

    def __init__(self):
        self.step, self.waiting = 0, collections.deque()

    def __call__(self, *shape, **kwargs):
        if len(shape) == 2:
            shape = (1,) + shape
        count, rows, cols = shape
        values = numpy.stack([drawn(self.step, COLUMNS + self.waiting.popleft(), 0, rows * cols).reshape(rows, cols)
                              for _ in range(count)])
        return torch.from_numpy(values.astype(numpy.float32)).to(kwargs["dtype"])


def matrices(state, bucket, index_of):
    """Parameters of a bucket that are compressed, in the order in which columns are drawn."""
    by_shape = collections.OrderedDict()
    for p in bucket.parameters():
        n, m = p.shape[0], p.numel() // p.shape[0]
        k = min(n, m, state.matrix_approximation_rank)
        if (n + m) * k * state.min_compression_rate < n * m:
            by_shape.setdefault((n, m), []).append(index_of[p])
    return [i for found in by_shape.values() for i in found]


def with_columns(hook, state, columns, index_of, batched):
    def run(_, bucket):
        columns.waiting.clear()
        columns.waiting.extend([bucket.index()] if batched else matrices(state, bucket, index_of))
        kept = torch.randn
        torch.randn = (lambda *s, **k: columns(*s, **k)[0]) if batched else columns
        try:
            return hook(state, bucket)
        finally:
            torch.randn = kept
    return run


def cases(size):
    yield "allreduce", lambda *_: default_hooks.allreduce_hook
    yield "fp16", lambda *_: default_hooks.fp16_compress_hook
    yield "bf16", lambda *_: default_hooks.bf16_compress_hook
    yield "fp16_wrapper", lambda *_: default_hooks.fp16_compress_wrapper(default_hooks.allreduce_hook)
    yield "bf16_wrapper", lambda *_: default_hooks.bf16_compress_wrapper(default_hooks.allreduce_hook)
    yield "quantize_tensor", lambda *_: quantization_hooks.quantization_pertensor_hook
    yield "quantize_channel", lambda *_: quantization_hooks.quantization_perchannel_hook
    for batched in (False, True):
        for rank in (1, 2) if batched else (1, 2, 4):
            for feedback in (False, True):
                for warm in (False, True):
                    name = "%s_k%d_ef%d_ws%d" % ("batched" if batched else "power", rank, feedback, warm)
                    yield name, power(rank, feedback, warm, batched)
    yield "stacked_k2_ef1_ws1", power(2, True, True, False, stack=True)
    yield "epsilon_k2_ef1_ws1", power(2, True, True, False, epsilon=0.01)
    yield "post_local", post_local
    yield "post_local_own", post_local


def power(rank, feedback, warm, batched, stack=False, epsilon=0.0):
    def make(columns, index_of):
        state = powerSGD_hook.PowerSGDState(
            None, matrix_approximation_rank=rank, start_powerSGD_iter=START, use_error_feedback=feedback,
            warm_start=warm, orthogonalization_epsilon=epsilon, batch_tensors_with_same_shape=stack)
        hook = powerSGD_hook.batched_powerSGD_hook if batched else powerSGD_hook.powerSGD_hook
        return with_columns(hook, state, columns, index_of, batched)
    return make


def post_local(columns, index_of, averages=True):
    near, _ = dist.new_subgroups(dist.get_world_size() // 2)
    state = post_localSGD_hook.PostLocalSGDState(None, near, START, post_local_gradient_allreduce=averages)
    return lambda _, bucket: post_localSGD_hook.post_localSGD_hook(state, bucket)


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.all = torch.nn.ParameterList([torch.nn.Parameter(torch.zeros(s)) for s in SHAPES])

    def forward(self, grads):
        return sum((p * g).sum() for p, g in zip(self.all, grads))


def fnv(data):
    print_ = 0xcbf29ce484222325
    for byte in data:
        print_ = (print_ ^ byte) * 0x100000001b3 & 0xffffffffffffffff
    return print_


def tell(out, case, size, rank, step, i, grad):
    values = grad.detach().numpy().astype(numpy.float64).ravel()
    sums = [float((values * numpy.where(drawn(s, 3000 + i, 0, values.size) < 0, -1.0, 1.0)).sum()) for s in range(SIGNS)]
    out.write("grad\t%s\t%d\t%d\t%d\t%d\t%.9g\t%s\t%016x\n"
              % (case, size, rank, step, i, float(numpy.linalg.norm(values)), "\t".join("%.7g" % s for s in sums),
                 fnv(grad.detach().contiguous().numpy().tobytes())))


def run(rank, size, folder):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="29578")
    dist.init_process_group("gloo", rank=rank, world_size=size)
    torch.set_num_threads(1)
    out = open(os.path.join(folder, "%d.%d" % (size, rank)), "w")
    layout = {}
    for case, make in cases(size):
        net = Net()
        index_of = {p: i for i, p in enumerate(net.all)}
        ddp = torch.nn.parallel.DistributedDataParallel(net, bucket_cap_mb=CAP / 2**20)
        columns = Columns()
        hook = make(columns, index_of) if case != "post_local_own" else make(columns, index_of, False)

        def seen(state, bucket, hook=hook, columns=columns, index_of=index_of):
            layout.setdefault(columns.step, {})[bucket.index()] = [index_of[p] for p in bucket.parameters()]
            future = hook(state, bucket)
            future.wait()  # the next bucket's first collective must not come between this one's: over gloo it does
            return future
        ddp.register_comm_hook(None, seen)
        for step in range(STEPS):
            columns.step = step
            for p in net.all:
                p.grad = None
            ddp([gradient(step, i, rank) for i in range(len(SHAPES))]).backward()
            for i, p in enumerate(net.all):
                if rank == 0 or case.startswith("post"):
                    tell(out, case, size, rank, step, i, p.grad)
        if rank == 0 and case == "allreduce":
            for step in range(2):
                for b in sorted(layout[step]):
                    out.write("bucket\t%d\t%d\t%d\t%s\n" % (size, step, b, " ".join(map(str, layout[step][b]))))
    out.close()
    dist.destroy_process_group()


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    folder = sys.argv[1] if len(sys.argv) > 1 else here
    with open(os.path.join(folder, "hooks.tsv"), "w") as out:
        out.write("# made by make_hooks.py with torch %s\n" % torch.__version__)
        out.write("# bucket: ranks, step, bucket, parameters in it\n")
        out.write("# grad: hook, ranks, rank, step, parameter, norm, %d sums with drawn signs, FNV-1a of the bits\n" % SIGNS)
        for size in SIZES:
            mp.start_processes(run, (size, folder), size, start_method="spawn")
            for rank in range(size):
                path = os.path.join(folder, "%d.%d" % (size, rank))
                with open(path) as part:
                    out.write(part.read())
                os.remove(path)


if __name__ == "__main__":
    main()
