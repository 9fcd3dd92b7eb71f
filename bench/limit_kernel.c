/* SPDX-License-Identifier: BSD-3-Clause
 *
 * limit_kernel.c - vectors of 64 bytes, four at a time, which the compiler makes of what the machine has. */
#include "limit_kernel.h"

#include <string.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

enum { BLOCK = 256 };

typedef float f32x16 __attribute__((vector_size(64)));
typedef double f64x8 __attribute__((vector_size(64)));
typedef uint32_t u32x16 __attribute__((vector_size(64)));
typedef uint16_t u16x16 __attribute__((vector_size(32)));

#define INLINE static inline __attribute__((always_inline))

INLINE void store(char *to, const void *from, int bytes, bool bypass)
{
#ifdef __SSE2__
    int i;

    if (bypass && (uintptr_t)to % 16 == 0) {
        for (i = 0; i < bytes; i += 16)
            _mm_stream_si128((__m128i *)(void *)(to + i),
                             _mm_loadu_si128((const __m128i *)(const void *)((const char *)from + i)));
        return;
    }
#endif
    (void)bypass;
    memcpy(to, from, (size_t)bytes);
}

INLINE void end_of_stores(bool bypass)
{
#ifdef __SSE2__
    if (bypass)
        _mm_sfence();
#endif
    (void)bypass;
}

#define SUM_OF(name, type, vector)                                                                     \
    static void name(char *const *outs, int m, const char *const *ins, int k, size_t bytes, bool bypass)   \
    {                                                                                                  \
        vector a[4], b[4];                                                                             \
        size_t at;                                                                                     \
        int j;                                                                                         \
                                                                                                       \
        for (at = 0; at + BLOCK <= bytes; at += BLOCK) {                                               \
            memcpy(a, ins[0] + at, BLOCK);                                                             \
            for (j = 1; j < k; j++) {                                                                  \
                memcpy(b, ins[j] + at, BLOCK);                                                         \
                a[0] += b[0];                                                                          \
                a[1] += b[1];                                                                          \
                a[2] += b[2];                                                                          \
                a[3] += b[3];                                                                          \
            }                                                                                          \
            for (j = 0; j < m; j++)                                                                    \
                store(outs[j] + at, a, BLOCK, bypass);                                                 \
        }                                                                                              \
        for (; at < bytes; at += sizeof(type)) {                                                       \
            type s, x;                                                                                 \
                                                                                                       \
            memcpy(&s, ins[0] + at, sizeof s);                                                         \
            for (j = 1; j < k; j++) {                                                                  \
                memcpy(&x, ins[j] + at, sizeof x);                                                     \
                s += x;                                                                                \
            }                                                                                          \
            for (j = 0; j < m; j++)                                                                    \
                memcpy(outs[j] + at, &s, sizeof s);                                                    \
        }                                                                                              \
    }

SUM_OF(sum_f32, float, f32x16)
SUM_OF(sum_f64, double, f64x8)

/* Up to 16 elements of each input; what is missing is zero. */
INLINE void sum_bf16_block(char *const *outs, int m, const char *const *ins, int k, size_t at, size_t bytes,
                           bool bypass)
{
    f32x16 sum = { 0 };
    u32x16 bits;
    u16x16 half;
    int j;

    for (j = 0; j < k; j++) {
        half = (u16x16){ 0 };
        memcpy(&half, ins[j] + at, bytes);
        bits = __builtin_convertvector(half, u32x16) << 16;
        sum += (f32x16)bits;
    }
    bits = (u32x16)sum;
    half = __builtin_convertvector((bits + 0x7fff + ((bits >> 16) & 1)) >> 16, u16x16);
    for (j = 0; j < m; j++)
        if (bytes == sizeof half)
            store(outs[j] + at, &half, sizeof half, bypass);
        else
            memcpy(outs[j] + at, &half, bytes);
}

static void sum_bf16(char *const *outs, int m, const char *const *ins, int k, size_t bytes, bool bypass)
{
    size_t at;

    for (at = 0; at + sizeof(u16x16) <= bytes; at += sizeof(u16x16))
        sum_bf16_block(outs, m, ins, k, at, sizeof(u16x16), bypass);
    if (at < bytes)
        sum_bf16_block(outs, m, ins, k, at, bytes - at, bypass);
}

void limit_sum(char *const *outs, int m, const char *const *ins, int k, int64_t count, bench_dtype dtype,
               bool bypass)
{
    const size_t bytes = (size_t)count * bench_dtype_size(dtype);

    if (dtype == BENCH_BF16)
        sum_bf16(outs, m, ins, k, bytes, bypass);
    else if (dtype == BENCH_F64)
        sum_f64(outs, m, ins, k, bytes, bypass);
    else
        sum_f32(outs, m, ins, k, bytes, bypass);
    end_of_stores(bypass);
}

void limit_copy(char *const *outs, int m, const char *in, size_t bytes, bool bypass)
{
    size_t at = 0;
    u32x16 a[4];
    int j;

    if (m == 1 && !bypass) { /* libc's choice of instructions for this machine */
        memcpy(outs[0], in, bytes);
        return;
    }
    for (; at + BLOCK <= bytes; at += BLOCK) {
        memcpy(a, in + at, BLOCK);
        for (j = 0; j < m; j++)
            store(outs[j] + at, a, BLOCK, bypass);
    }
    for (j = 0; j < m; j++)
        memcpy(outs[j] + at, in + at, bytes - at);
    end_of_stores(bypass);
}
