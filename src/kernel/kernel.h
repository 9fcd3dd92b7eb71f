/* SPDX-License-Identifier: BSD-3-Clause
 *
 * kernel.h - arithmetic on buffers: combine k inputs into one, scale, fill. Host memory only.
 *
 * Nothing here fails, waits or allocates: what may be combined with what is tutti_op_check()'s to
 * say, before. Pointers are aligned to the element (complex: to its component), not more. Every
 * function runs in the floating-point mode that C starts in (nearest even, subnormals kept)
 * whatever the calling thread has set, so all threads of all ranks compute the same bits. */
#ifndef TTI_KERNEL_KERNEL_H
#define TTI_KERNEL_KERNEL_H

#include <stdint.h>
#include <tutti/dtype.h>

typedef struct tti_reduce_kernel tti_reduce_kernel;

/** The kernel of an operation on a dtype: a constant, good for ever. NULL exactly where
 * tutti_op_check() refuses. PREMUL_SUM gives the kernel of SUM: each rank has applied its own
 * factor with tti_scale() before. */
const tti_reduce_kernel *tti_reduce_kernel_for(tutti_op_kind kind, tutti_dtype dtype);

/** out[i] = ((in[0][i] op in[1][i]) op in[2][i]) op ..., strictly from left to right.
 *
 * One pass: each input is read once, out written once. f16, bf16 and f8 are combined in f32 and
 * rounded once, at the end. AVG divides the finished sum by n_ranks, still before that rounding;
 * a sum made in several calls is SUM in all of them but the last. bool gives 0 or 1 whatever
 * non-zero bytes stand for true. A NaN that comes out, of one input too, is the positive quiet one without
 * payload, but that f8e4m3fn, which has no infinity, keeps the sign of what is too large. So results have the
 * same bits on all machines, whatever instructions they have (level.h).
 *
 * @param out      may be any one of in[] (the same address), must not overlap them otherwise
 * @param n_in     1 or more
 * @param count    elements; 0 touches nothing, and the pointers may then be NULL
 * @param n_ranks  AVG: how many values the finished sum has, 1 or more; ignored by the others */
void tti_reduce(const tti_reduce_kernel *kernel, void *out, const void *const *in, int n_in,
                int64_t count, int n_ranks);

/** The same into n_outs places, 1 or more, in one pass: every input is read once, every output written
 * once. An output may be any one of the inputs (the same address): all inputs of a cache line are read
 * before anything is written to that line of any output. */
void tti_reduce_to(const tti_reduce_kernel *kernel, void *const *outs, int n_outs,
                   const void *const *in, int n_in, int64_t count, int n_ranks);

/** The same with stores that do not bring the outputs into the caches, where the machine has such: for
 * outputs that are no inputs, do not fit into a core's own cache (tti_cache_near()), and are not
 * read soon. They are in order before what the caller stores afterwards. */
void tti_reduce_to_nt(const tti_reduce_kernel *kernel, void *const *outs, int n_outs,
                      const void *const *in, int n_in, int64_t count, int n_ranks);

/** out[i] = in[i] * factor, the first half of PREMUL_SUM. For dtypes that AVG is defined for;
 * factor is first rounded to the type that computes: f64 for f64 and c128, f32 for the others.
 * Complex elements have both components scaled. NaN as above. out may be in, but not overlap it otherwise. */
void tti_scale(void *out, const void *in, int64_t count, double factor, tutti_dtype dtype);

/** Zero of the dtype in all elements; out may be NULL if count is 0. */
void tti_fill_zero(void *out, int64_t count, tutti_dtype dtype);

#endif
