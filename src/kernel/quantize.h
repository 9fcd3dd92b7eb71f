/* SPDX-License-Identifier: BSD-3-Clause
 *
 * kernel/quantize.h - numbers of 8 bits that share a scale in blocks, and sums of them.
 *
 * Of n numbers x, m the largest magnitude:
 *     scale = m / 127 if m >= 2^-119, else 0;  code = x * (127 / m), rounded to the nearest whole number, ties to even
 *     x'    = code * scale
 * So -127 <= code <= 127, and |x' - x| <= m / 254, but for the rounding of f32. Blocks of tiny numbers become zeros.
 * Where a number is not finite the scale is NaN, and with it all of the block: nothing is hidden.
 *
 * Everything computes in f32, one rounding for each operation, in the floating-point mode that C starts in, and gives the
 * same bits whatever instructions there are (level.h). Nothing fails, waits or allocates. Pointers are aligned to the
 * element, counts are those of one block or less: what is given here is small enough for the nearest cache. */
#ifndef TTI_KERNEL_QUANTIZE_H
#define TTI_KERNEL_QUANTIZE_H

#include <stdbool.h>
#include <stdint.h>
#include <tutti/dtype.h>

/* The largest block, which callers may keep on the stack in f32. */
enum { TTI_QUANTIZE_BLOCK_MAX = 1024 };

/* The loops of one set of instructions. f32, f16 and bf16 are the formats that there are. */
typedef struct tti_quantize_loops {
    /* The largest of x's bits without their signs: 0x7f800000 or more where one is not finite. */
    uint32_t (*most)(const float *x, int64_t n);
    void (*encode)(int8_t *codes, const float *x, int64_t n, float by);
    void (*decode)(float *out, const int8_t *codes, int64_t n, float scale);
    void (*add_decoded)(float *sum, const int8_t *codes, int64_t n, float scale);
    void (*add)(float *sum, const float *x, int64_t n);
    void (*divide)(float *x, int64_t n, float by);
    /* rest[i] = (x[i] - codes[i] * scale) * by */
    void (*rest)(float *rest, const float *x, const int8_t *codes, int64_t n, float scale, float by);
    void (*load[TUTTI_DTYPE_COUNT])(float *out, const void *in, int64_t n);
    void (*store[TUTTI_DTYPE_COUNT])(void *out, const float *in, int64_t n);
} tti_quantize_loops;

/* Of the files of that name. */
extern const tti_quantize_loops tti_quantize_sse2, tti_quantize_avx2, tti_quantize_avx512, tti_quantize_neon;

/** Whether numbers of a dtype can be quantised: f32, f16, bf16. */
bool tti_quantize_takes(tutti_dtype dtype);

/** count numbers in blocks, the last one shorter, into count codes, and a scale for each block.
 *
 * @param error  NULL, or [count]: it is added to the numbers first, and what rounding leaves out is in it afterwards; NaN and
 *               infinity leave zeros */
void tti_quantize(int8_t *codes, float *scales, const void *in, tutti_dtype dtype, int64_t count, int block,
                  float *error);

/** Back: out[i] = codes[i] * scale of its block, rounded to the dtype. A NaN is the positive quiet one. */
void tti_dequantize(void *out, tutti_dtype dtype, const int8_t *codes, const float *scales, int64_t count, int block);

/** What one rank has of a sum: codes and scales; or, with codes NULL, the numbers themselves. */
typedef struct tti_quantized {
    const int8_t *codes;
    const float  *scales;
    const void   *numbers; /* of the dtype that the call says */
} tti_quantized;

/** Sum n_in of them, from left to right, divide the sum by `by` unless that is 1, and quantise it. numbers' error is added to
 * them, and what quantising the sum leaves out goes there, times `by`, as the error of one rank's numbers.
 *
 * @param codes, scales  may be those of an input
 * @param error          of the one input that has numbers; NULL: none is kept */
void tti_quantize_sum(int8_t *codes, float *scales, const tti_quantized *in, int n_in, tutti_dtype dtype, int64_t count,
                      int block, float by, float *error);

#endif
