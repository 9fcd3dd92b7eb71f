/* SPDX-License-Identifier: BSD-3-Clause
 *
 * kernel_digest.c - one line for each operation and dtype with a number made of the bits of all its results.
 *
 * Why     Two builds for different processors cannot be compared in one process; what they print can.
 * How     Inputs are drawn bits, the same everywhere: all kinds of numbers, NaN with payloads, subnormals.
 *         1 to 10 inputs, lengths around the sizes of vectors, begun at different places, one output or
 *         three. The number is FNV-1a of everything that was written. Of 8-bit blocks: codes, scales, what comes back,
 *         sums, and errors that are kept. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <tutti/dtype.h>
#include "base/fnv.h"
#include "kernel/kernel.h"
#include "kernel/quantize.h"

enum { COUNT_MAX = 700, N_IN_MAX = 10, ELEMENT_MAX = 16, ROOM = (COUNT_MAX + 4) * ELEMENT_MAX };

static _Alignas(64) unsigned char inputs[N_IN_MAX][ROOM], outputs[3][ROOM];

static void draw_inputs(void)
{
    uint32_t state = 20240607;

    for (int k = 0; k < N_IN_MAX; k++)
        for (int i = 0; i < ROOM; i++) {
            state = state * 1664525u + 1013904223u;
            inputs[k][i] = (unsigned char)(state >> 24);
        }
}

static uint64_t digest_of_call(uint64_t hash, const tti_reduce_kernel *kernel, size_t element, int n_in,
                               int64_t count, size_t at)
{
    const size_t bytes = (size_t)count * element;
    void *outs[] = { outputs[0] + at * element, outputs[1], outputs[2] + element };
    const void *in[N_IN_MAX];

    for (int k = 0; k < n_in; k++)
        in[k] = inputs[k] + (at + (size_t)k) % 4 * element;
    tti_reduce(kernel, outs[0], in, n_in, count, 7);
    hash = tti_fnv(hash, outs[0], bytes);
    tti_reduce_to_nt(kernel, outs, 3, in, n_in, count, 7);
    for (int m = 0; m < 3; m++)
        hash = tti_fnv(hash, outs[m], bytes);
    return hash;
}

static uint64_t digest_of_pair(tutti_op_kind kind, tutti_dtype dtype)
{
    static const int64_t counts[] = { 1, 2, 3, 5, 8, 15, 16, 17, 31, 33, 63, 64, 65, 100, 257, COUNT_MAX };
    uint64_t hash = TTI_FNV_BEGIN;

    for (int n_in = 1; n_in <= N_IN_MAX; n_in++)
        for (size_t c = 0; c < sizeof counts / sizeof *counts; c++)
            hash = digest_of_call(hash, tti_reduce_kernel_for(kind, dtype), tutti_dtype_size(dtype), n_in,
                                  counts[c], c % 4);
    return hash;
}

/* Inputs 1 and 2 as two ranks' codes, input 0 as the numbers of a third. */
static uint64_t digest_of_blocks(tutti_dtype dtype, int64_t count, int block)
{
    static int8_t codes[3][COUNT_MAX];
    static float  scales[3][COUNT_MAX], error[COUNT_MAX];
    tti_quantized in[3] = { { .numbers = inputs[0] } };
    uint64_t      hash = TTI_FNV_BEGIN;
    int           k;

    memset(error, 0, sizeof error);
    for (k = 1; k < 3; k++) {
        tti_quantize(codes[k], scales[k], inputs[k], dtype, count, block, k == 1 ? NULL : error);
        in[k] = (tti_quantized){ .codes = codes[k], .scales = scales[k] };
    }
    tti_quantize_sum(codes[0], scales[0], in, 3, dtype, count, block, 3.0f, error);
    for (k = 0; k < 3; k++) {
        tti_dequantize(outputs[k], dtype, codes[k], scales[k], count, block);
        hash = tti_fnv(hash, codes[k], (size_t)count);
        hash = tti_fnv(hash, scales[k], (size_t)((count + block - 1) / block) * sizeof(float));
        hash = tti_fnv(hash, outputs[k], (size_t)count * tutti_dtype_size(dtype));
    }
    return tti_fnv(hash, error, (size_t)count * sizeof error[0]);
}

/* Bytes that are drawn make a block NaN now and then; the shorter it is, the more often it is not. */
static void print_blocks(void)
{
    static const tutti_dtype dtypes[] = { TUTTI_F32, TUTTI_F16, TUTTI_BF16 };
    static const int         blocks[] = { 8, 64, 128, 256 };
    size_t                   d, b;

    for (d = 0; d < sizeof dtypes / sizeof *dtypes; d++)
        for (b = 0; b < sizeof blocks / sizeof *blocks; b++)
            printf("quantize %s %d %016" PRIx64 "\n", tutti_dtype_name(dtypes[d]), blocks[b],
                   digest_of_blocks(dtypes[d], COUNT_MAX - 5, blocks[b]));
}

int main(void)
{
    draw_inputs();
    print_blocks();
    for (int kind = 0; kind < TUTTI_OP_COUNT; kind++)
        for (int dtype = 0; dtype < TUTTI_DTYPE_COUNT; dtype++)
            if (tti_reduce_kernel_for((tutti_op_kind)kind, (tutti_dtype)dtype) != NULL)
                printf("%s %s %016" PRIx64 "\n", tutti_op_name((tutti_op_kind)kind),
                       tutti_dtype_name((tutti_dtype)dtype),
                       digest_of_pair((tutti_op_kind)kind, (tutti_dtype)dtype));
    return 0;
}
