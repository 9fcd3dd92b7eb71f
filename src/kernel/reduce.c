/* SPDX-License-Identifier: BSD-3-Clause
 *
 * reduce.c - k inputs to one output: which loops an operation takes, and in which order.
 *
 * Why     Sums of floating-point numbers depend on their order, so the order is a promise:
 *         ((in0 + in1) + in2) + ..., however many inputs there are and however they are cut.
 * How     A step (step.h) takes 1, 2, 3, 4 or 8 inputs. If that is how many there are and nothing
 *         is to be converted, one step runs over everything. Else the buffers are cut in blocks
 *         that stay in the first-level cache, and for each block
 *           step over the first inputs -> scratch[0]
 *           step over scratch[0] and the next ones -> scratch[0], ..., the last one -> out
 *         f16, bf16 and f8 inputs are widened to f32 into scratch rows on the way in, their last
 *         step ends in scratch[0], and that is narrowed into out: one rounding for all inputs.
 *         AVG divides the finished block before it is narrowed.
 * True    All inputs of a block are read before out is written, so out may be any one of them.
 * Memory  16 KiB of stack. */
#include <assert.h>
#include <float.h>
#include <stddef.h>
#include <string.h>
#include "base/half.h"
#include "kernel/copy.h"
#include "kernel/fp_mode.h"
#include "kernel/kernel.h"
#include "kernel/step.h"

enum { BLOCK_BYTES = 2048 };

/* Sums are rounded to the type they stand in, not kept in wider registers. */
_Static_assert(FLT_EVAL_METHOD == 0, "float arithmetic must round to float");

typedef void divide_fn(void *data, int64_t count, int by);

struct tti_reduce_kernel {
    tutti_op_kind row; /* of the step table: AVG adds */
    tutti_dtype unit;  /* column of the step table: the type that is computed in */
    int element_bytes; /* of the dtype in memory */
    int unit_bytes;
    int units;           /* units of one element: 2 for complex */
    divide_fn *divide;   /* AVG only */
    tti_widen_fn *widen; /* formats below f32 only, both */
    tti_narrow_fn *narrow;
};

/* Room for one block of each input of a step. Only rows that are used are touched. */
typedef union scratch_row {
    uint8_t u8[BLOCK_BYTES];
    uint16_t u16[BLOCK_BYTES / 2];
    uint32_t u32[BLOCK_BYTES / 4];
    uint64_t u64[BLOCK_BYTES / 8];
    float f32[BLOCK_BYTES / 4];
    double f64[BLOCK_BYTES / 8];
} scratch_row;

static void divide_f32(void *data, int64_t count, int by)
{
    float *x = data;
    const float n = (float)by;

    for (int64_t i = 0; i < count; i++)
        x[i] /= n;
}

static void divide_f64(void *data, int64_t count, int by)
{
    double *x = data;
    const double n = by;

    for (int64_t i = 0; i < count; i++)
        x[i] /= n;
}

/* The fields in their order above. An element of PLAIN is one unit; of BITS it is bytes, combined
 * bit by bit; of PAIR a complex number; of SMALL a format below f32. */
#define PLAIN(op, dtype, unit, bytes) [dtype] = { op, unit, bytes, bytes, 1, NULL, NULL, NULL }
#define BITS(op, dtype, bytes)        [dtype] = { op, TUTTI_U8, bytes, 1, bytes, NULL, NULL, NULL }
#define REAL(op, dtype, bytes, by)    [dtype] = { op, dtype, bytes, bytes, 1, by, NULL, NULL }
#define PAIR(op, dtype, unit, bytes, by) \
    [dtype] = { op, unit, 2 * (bytes), bytes, 2, by, NULL, NULL }
#define SMALL(op, dtype, bytes, word, by) \
    [dtype] = { op, TUTTI_F32, bytes, 4, 1, by, tti_widen_##word, tti_narrow_##word }

#define UNSIGNED(op)                                                            \
    PLAIN(op, TUTTI_BOOL, TUTTI_BOOL, 1), PLAIN(op, TUTTI_U8, TUTTI_U8, 1),     \
        PLAIN(op, TUTTI_U16, TUTTI_U16, 2), PLAIN(op, TUTTI_U32, TUTTI_U32, 4), \
        PLAIN(op, TUTTI_U64, TUTTI_U64, 8)

/* Signed integers that wrap: computed as unsigned. */
#define SIGNED_AS_UNSIGNED(op)                                            \
    PLAIN(op, TUTTI_I8, TUTTI_U8, 1), PLAIN(op, TUTTI_I16, TUTTI_U16, 2), \
        PLAIN(op, TUTTI_I32, TUTTI_U32, 4), PLAIN(op, TUTTI_I64, TUTTI_U64, 8)

#define SIGNED(op)                                                        \
    PLAIN(op, TUTTI_I8, TUTTI_I8, 1), PLAIN(op, TUTTI_I16, TUTTI_I16, 2), \
        PLAIN(op, TUTTI_I32, TUTTI_I32, 4), PLAIN(op, TUTTI_I64, TUTTI_I64, 8)

#define REALS(op, by_f32, by_f64)                                                     \
    REAL(op, TUTTI_F32, 4, by_f32), REAL(op, TUTTI_F64, 8, by_f64),                   \
        SMALL(op, TUTTI_F16, 2, f16, by_f32), SMALL(op, TUTTI_BF16, 2, bf16, by_f32), \
        SMALL(op, TUTTI_F8E4M3FN, 1, f8e4m3fn, by_f32), SMALL(op, TUTTI_F8E5M2, 1, f8e5m2, by_f32)

#define COMPLEX(op, by_f32, by_f64) \
    PAIR(op, TUTTI_C64, TUTTI_F32, 4, by_f32), PAIR(op, TUTTI_C128, TUTTI_F64, 8, by_f64)

#define BITWISE(op)                                                                     \
    PLAIN(op, TUTTI_BOOL, TUTTI_BOOL, 1), BITS(op, TUTTI_U8, 1), BITS(op, TUTTI_I8, 1), \
        BITS(op, TUTTI_U16, 2), BITS(op, TUTTI_I16, 2), BITS(op, TUTTI_U32, 4),         \
        BITS(op, TUTTI_I32, 4), BITS(op, TUTTI_U64, 8), BITS(op, TUTTI_I64, 8)

/* An entry that is not listed has element_bytes 0: the operation is not defined for the dtype. */
static const tti_reduce_kernel kernels[TUTTI_OP_COUNT][TUTTI_DTYPE_COUNT] = {
    [TUTTI_OP_SUM] = { UNSIGNED(TUTTI_OP_SUM), SIGNED_AS_UNSIGNED(TUTTI_OP_SUM),
                       REALS(TUTTI_OP_SUM, NULL, NULL), COMPLEX(TUTTI_OP_SUM, NULL, NULL) },
    [TUTTI_OP_AVG] = { REALS(TUTTI_OP_SUM, divide_f32, divide_f64),
                       COMPLEX(TUTTI_OP_SUM, divide_f32, divide_f64) },
    [TUTTI_OP_PRODUCT] = { UNSIGNED(TUTTI_OP_PRODUCT), SIGNED_AS_UNSIGNED(TUTTI_OP_PRODUCT),
                           REALS(TUTTI_OP_PRODUCT, NULL, NULL) },
    [TUTTI_OP_MIN] = { UNSIGNED(TUTTI_OP_MIN), SIGNED(TUTTI_OP_MIN),
                       REALS(TUTTI_OP_MIN, NULL, NULL) },
    [TUTTI_OP_MAX] = { UNSIGNED(TUTTI_OP_MAX), SIGNED(TUTTI_OP_MAX),
                       REALS(TUTTI_OP_MAX, NULL, NULL) },
    [TUTTI_OP_BAND] = { BITWISE(TUTTI_OP_BAND) },
    [TUTTI_OP_BOR] = { BITWISE(TUTTI_OP_BOR) },
    [TUTTI_OP_BXOR] = { BITWISE(TUTTI_OP_BXOR) },
    [TUTTI_OP_PREMUL_SUM] = { REALS(TUTTI_OP_SUM, NULL, NULL), COMPLEX(TUTTI_OP_SUM, NULL, NULL) },
};

const tti_reduce_kernel *tti_reduce_kernel_for(tutti_op_kind kind, tutti_dtype dtype)
{
    const tti_reduce_kernel *kernel;

    if ((unsigned)kind >= TUTTI_OP_COUNT || (unsigned)dtype >= TUTTI_DTYPE_COUNT)
        return NULL;
    kernel = &kernels[kind][dtype];
    return kernel->element_bytes == 0 ? NULL : kernel;
}

static tti_step_fn *step_of(const tti_reduce_kernel *kernel)
{
    return tti_steps_c[kernel->row][kernel->unit];
}

/* How many of n inputs the next step takes. */
static int width_of(int n)
{
    return n >= TTI_STEP_WIDTH_MAX ? TTI_STEP_WIDTH_MAX : n >= 4 ? 4 : n;
}

/* Where a step reads the block of one input that begins at element first: in place, or widened. */
static const void *load_block(const tti_reduce_kernel *kernel, const void *in, int64_t first,
                              int64_t count, scratch_row *row)
{
    const void *block = (const unsigned char *)in + first * kernel->element_bytes;

    if (kernel->widen == NULL)
        return block;
    kernel->widen(row->f32, block, count);
    return row->f32;
}

/* All inputs of count elements from element first on; the result goes to end_at. Each step after
 * the first has what the steps before came to as its leftmost input. */
static void fold_block(const tti_reduce_kernel *kernel, const void *const *in, int n_in,
                       int64_t first, int64_t count, scratch_row *scratch, void *end_at)
{
    tti_step_fn *step = step_of(kernel);
    const void *from[TTI_STEP_WIDTH_MAX];
    int done = 0;

    while (done < n_in) {
        const int carried = done > 0;
        const int width = width_of(n_in - done + carried);

        if (carried)
            from[0] = scratch;
        for (int k = carried; k < width; k++)
            from[k] = load_block(kernel, in[done + k - carried], first, count, &scratch[k]);
        done += width - carried;
        step(done == n_in ? end_at : scratch, from, width, count * kernel->units);
    }
}

static void reduce_in_blocks(const tti_reduce_kernel *kernel, void *out, const void *const *in,
                             int n_in, int64_t count, int n_ranks)
{
    const int64_t block = BLOCK_BYTES / (kernel->unit_bytes * kernel->units);
    _Alignas(64) scratch_row scratch[TTI_STEP_WIDTH_MAX];

    for (int64_t first = 0; first < count; first += block) {
        const int64_t n = count - first < block ? count - first : block;
        void *out_block = (unsigned char *)out + first * kernel->element_bytes;
        void *end_at = kernel->narrow == NULL ? out_block : scratch;

        fold_block(kernel, in, n_in, first, n, scratch, end_at);
        if (kernel->divide != NULL)
            kernel->divide(end_at, n * kernel->units, n_ranks);
        if (kernel->narrow != NULL)
            kernel->narrow(out_block, scratch->f32, n);
    }
}

void tti_reduce(const tti_reduce_kernel *kernel, void *out, const void *const *in, int n_in,
                int64_t count, int n_ranks)
{
    uint64_t mode;

    assert(kernel != NULL && n_in >= 1 && count >= 0);
    assert(kernel->divide == NULL || n_ranks >= 1);
    if (count == 0)
        return;
    mode = tti_fp_enter();
    if (kernel->widen == NULL && kernel->divide == NULL && width_of(n_in) == n_in)
        step_of(kernel)(out, in, n_in, count * kernel->units);
    else
        reduce_in_blocks(kernel, out, in, n_in, count, n_ranks);
    tti_fp_leave(mode);
}

/* The block of all inputs that begins at element first, combined into result. */
static void reduce_block(const tti_reduce_kernel *kernel, scratch_row *result,
                         const void *const *in, int n_in, int64_t first, int64_t count, int n_ranks)
{
    _Alignas(64) scratch_row scratch[TTI_STEP_WIDTH_MAX];
    void *end_at = kernel->narrow == NULL ? result : scratch;

    fold_block(kernel, in, n_in, first, count, scratch, end_at);
    if (kernel->divide != NULL)
        kernel->divide(end_at, count * kernel->units, n_ranks);
    if (kernel->narrow != NULL)
        kernel->narrow(result, scratch->f32, count);
}

static void reduce_to(const tti_reduce_kernel *kernel, void *const *outs, int n_outs,
                      const void *const *in, int n_in, int64_t count, int n_ranks,
                      void (*store)(void *, const void *, size_t))
{
    const int64_t block = BLOCK_BYTES / (kernel->unit_bytes * kernel->units);
    const uint64_t mode = tti_fp_enter();
    _Alignas(64) scratch_row result;

    assert(n_outs >= 1 && n_in >= 1 && (kernel->divide == NULL || n_ranks >= 1));
    for (int64_t first = 0; first < count; first += block) {
        const int64_t n = count - first < block ? count - first : block;

        reduce_block(kernel, &result, in, n_in, first, n, n_ranks);
        for (int k = 0; k < n_outs; k++)
            store((unsigned char *)outs[k] + first * kernel->element_bytes, &result,
                  (size_t)(n * kernel->element_bytes));
    }
    tti_fp_leave(mode);
}

static void store_block(void *to, const void *from, size_t bytes)
{
    tti_copy(to, from, bytes);
}

void tti_reduce_to(const tti_reduce_kernel *kernel, void *const *outs, int n_outs,
                   const void *const *in, int n_in, int64_t count, int n_ranks)
{
    reduce_to(kernel, outs, n_outs, in, n_in, count, n_ranks, store_block);
}

void tti_reduce_to_nt(const tti_reduce_kernel *kernel, void *const *outs, int n_outs,
                      const void *const *in, int n_in, int64_t count, int n_ranks)
{
    reduce_to(kernel, outs, n_outs, in, n_in, count, n_ranks, tti_copy_nt);
}
