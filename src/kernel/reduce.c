/* SPDX-License-Identifier: BSD-3-Clause
 *
 * reduce.c - k inputs to one output or many: which loop an operation takes, and over what.
 *
 * Why     Sums of floating-point numbers depend on their order, so the order is a promise:
 *         ((in0 + in1) + in2) + ..., however many inputs there are and however they are cut.
 * How     The table below says for each operation and dtype which loop it is (level.h), how many units an
 *         element has, and what is done to a finished number. A long run is cut in two: up to the first
 *         boundary of a cache line in outs[0], and from there, so that stores do not straddle lines. */
#include <assert.h>
#include <float.h>
#include <stddef.h>
#include "kernel/fp_mode.h"
#include "kernel/kernel.h"
#include "kernel/level.h"
#if defined(__x86_64__)
#include <emmintrin.h>
#endif

enum { LINE = 64, LONG_RUN = 2048 };

/* Sums are rounded to the type they stand in, not kept in wider registers. */
_Static_assert(FLT_EVAL_METHOD == 0, "float arithmetic must round to float");

struct tti_reduce_kernel {
    tutti_op_kind row; /* of the table of loops: AVG adds */
    tutti_dtype unit;  /* column of it */
    int units;         /* of one element; 0: the operation is not defined for the dtype */
    int unit_bytes;
    tti_last_step last;
};

/* An element of PLAIN is one unit; of BITS it is bytes, combined bit by bit; of PAIR a complex number. */
#define PLAIN(op, dtype, unit, bytes)      [dtype] = { op, unit, 1, bytes, TTI_LAST_NONE }
#define BITS(op, dtype, bytes)             [dtype] = { op, TUTTI_U8, bytes, 1, TTI_LAST_NONE }
#define REAL(op, dtype, bytes, last)       [dtype] = { op, dtype, 1, bytes, last }
#define PAIR(op, dtype, unit, bytes, last) [dtype] = { op, unit, 2, bytes, last }

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

#define REALS(op, last)                                                                       \
    REAL(op, TUTTI_F32, 4, last), REAL(op, TUTTI_F64, 8, last), REAL(op, TUTTI_F16, 2, last), \
        REAL(op, TUTTI_BF16, 2, last), REAL(op, TUTTI_F8E4M3FN, 1, last),                     \
        REAL(op, TUTTI_F8E5M2, 1, last)

#define COMPLEX(op, last) \
    PAIR(op, TUTTI_C64, TUTTI_F32, 4, last), PAIR(op, TUTTI_C128, TUTTI_F64, 8, last)

#define BITWISE(op)                                                                     \
    PLAIN(op, TUTTI_BOOL, TUTTI_BOOL, 1), BITS(op, TUTTI_U8, 1), BITS(op, TUTTI_I8, 1), \
        BITS(op, TUTTI_U16, 2), BITS(op, TUTTI_I16, 2), BITS(op, TUTTI_U32, 4),         \
        BITS(op, TUTTI_I32, 4), BITS(op, TUTTI_U64, 8), BITS(op, TUTTI_I64, 8)

static const tti_reduce_kernel kernels[TUTTI_OP_COUNT][TUTTI_DTYPE_COUNT] = {
    [TUTTI_OP_SUM] = { UNSIGNED(TUTTI_OP_SUM), SIGNED_AS_UNSIGNED(TUTTI_OP_SUM),
                       REALS(TUTTI_OP_SUM, TTI_LAST_NONE), COMPLEX(TUTTI_OP_SUM, TTI_LAST_NONE) },
    [TUTTI_OP_AVG] = { REALS(TUTTI_OP_SUM, TTI_LAST_DIVIDE),
                       COMPLEX(TUTTI_OP_SUM, TTI_LAST_DIVIDE) },
    [TUTTI_OP_PRODUCT] = { UNSIGNED(TUTTI_OP_PRODUCT), SIGNED_AS_UNSIGNED(TUTTI_OP_PRODUCT),
                           REALS(TUTTI_OP_PRODUCT, TTI_LAST_NONE) },
    [TUTTI_OP_MIN] = { UNSIGNED(TUTTI_OP_MIN), SIGNED(TUTTI_OP_MIN),
                       REALS(TUTTI_OP_MIN, TTI_LAST_NONE) },
    [TUTTI_OP_MAX] = { UNSIGNED(TUTTI_OP_MAX), SIGNED(TUTTI_OP_MAX),
                       REALS(TUTTI_OP_MAX, TTI_LAST_NONE) },
    [TUTTI_OP_BAND] = { BITWISE(TUTTI_OP_BAND) },
    [TUTTI_OP_BOR] = { BITWISE(TUTTI_OP_BOR) },
    [TUTTI_OP_BXOR] = { BITWISE(TUTTI_OP_BXOR) },
    [TUTTI_OP_PREMUL_SUM] = { REALS(TUTTI_OP_SUM, TTI_LAST_NONE),
                              COMPLEX(TUTTI_OP_SUM, TTI_LAST_NONE) },
};

const tti_reduce_kernel *tti_reduce_kernel_for(tutti_op_kind kind, tutti_dtype dtype)
{
    const tti_reduce_kernel *kernel;

    if ((unsigned)kind >= TUTTI_OP_COUNT || (unsigned)dtype >= TUTTI_DTYPE_COUNT)
        return NULL;
    kernel = &kernels[kind][dtype];
    return kernel->units == 0 ? NULL : kernel;
}

/* Units up to the first boundary of a line in outs[0]; 0 if none is in reach. */
static int64_t head_of(const tti_reduce_kernel *kernel, const void *out)
{
    const int64_t bytes = (int64_t)(-(uintptr_t)out % LINE);

    return bytes % kernel->unit_bytes == 0 ? bytes / kernel->unit_bytes : 0;
}

/* All outputs begin lines where the first does, from unit first on. */
static bool lines_agree(const tti_reduce_kernel *kernel, void *const *outs, int n_outs,
                        int64_t first)
{
    const uintptr_t bytes = (uintptr_t)(first * kernel->unit_bytes);
    bool agree = true;

    for (int m = 0; m < n_outs; m++)
        agree = agree && ((uintptr_t)outs[m] + bytes) % LINE == 0;
    return agree;
}

static void run_long(const tti_reduce_kernel *kernel, tti_loop *loop, tti_pass *pass,
                     bool past_caches)
{
    const int64_t head = head_of(kernel, pass->outs[0]), to = pass->to;

    if (head > 0) {
        pass->to = head;
        loop(pass);
        pass->from = head;
        pass->to = to;
    }
    pass->past_caches = past_caches && lines_agree(kernel, pass->outs, pass->n_outs, head);
    loop(pass);
#if defined(__x86_64__)
    /* Stores past the caches are not ordered before later ones, not even before one with release order,
     * which compilers make a plain store of. The fence orders them, for the flag that the caller raises. */
    if (pass->past_caches)
        _mm_sfence();
#endif
}

static void reduce_to(const tti_reduce_kernel *kernel, tti_pass *pass, bool past_caches)
{
    tti_loop *loop;
    uint64_t mode;

    if (pass->to == 0)
        return;
    loop = (*tti_loops())[kernel->row][kernel->unit];
    mode = tti_fp_enter();
    assert(pass->n_outs >= 1 && pass->n_in >= 1 && pass->to >= 0);
    assert(pass->last == TTI_LAST_NONE || pass->by >= 1);
    if (pass->to * kernel->unit_bytes < LONG_RUN)
        loop(pass);
    else
        run_long(kernel, loop, pass, past_caches);
    tti_fp_leave(mode);
}

void tti_reduce(const tti_reduce_kernel *kernel, void *out, const void *const *in, int n_in,
                int64_t count, int n_ranks)
{
    tti_reduce_to(kernel, &out, 1, in, n_in, count, n_ranks);
}

static tti_pass pass_of(const tti_reduce_kernel *kernel, void *const *outs, int n_outs, const void *const *in,
                        int n_in, int64_t count, int n_ranks)
{
    return (tti_pass){ .outs = outs,
                       .n_outs = n_outs,
                       .in = in,
                       .n_in = n_in,
                       .to = count * kernel->units,
                       .last = kernel->last,
                       .by = n_ranks };
}

void tti_reduce_to(const tti_reduce_kernel *kernel, void *const *outs, int n_outs,
                   const void *const *in, int n_in, int64_t count, int n_ranks)
{
    tti_pass pass = pass_of(kernel, outs, n_outs, in, n_in, count, n_ranks);

    reduce_to(kernel, &pass, false);
}

void tti_reduce_to_nt(const tti_reduce_kernel *kernel, void *const *outs, int n_outs,
                      const void *const *in, int n_in, int64_t count, int n_ranks)
{
    tti_pass pass = pass_of(kernel, outs, n_outs, in, n_in, count, n_ranks);

    reduce_to(kernel, &pass, true);
}
