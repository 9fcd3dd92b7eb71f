/* SPDX-License-Identifier: BSD-3-Clause
 *
 * math_f32.h - e^x, log, tanh, erf and their kin in f32, for loops that the compiler vectorises.
 *
 * Why     libm is called one number at a time, and rounds differently from one version, and one
 *         processor, to the next.
 * How     Branch-free: both sides of a choice are computed and one is taken. Arguments are brought near
 *         0 and put into polynomials, whose coefficients math_fit.py makes.
 * True    Only additions, products, quotients and bit patterns, in the order written and none fused:
 *         the same bits on every processor, in vectors of any width. Off by at most 2 units (sigmoid: 3)
 *         in the last place of f32 everywhere, which math_test looks at; subnormal results included.
 *         NaN gives NaN, infinities and zeros what libm makes of them. */
#ifndef TTI_TRAIN_TENSOR_MATH_F32_H
#define TTI_TRAIN_TENSOR_MATH_F32_H

#include <float.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

static inline float tti_f32_of(uint32_t bits)
{
    float x;

    memcpy(&x, &bits, sizeof x);
    return x;
}

static inline uint32_t tti_bits_of(float x)
{
    uint32_t bits;

    memcpy(&bits, &x, sizeof bits);
    return bits;
}

/* log(2) in two parts; products of the first with whole numbers below 2^9 are exact. */
#define TTI_LN2_HIGH 0x1.62e4p-1f
#define TTI_LN2_LOW  1.42860682e-06f

/* x = n log 2 + r;  e^x = 2^n e^r. Adding 1.5 * 2^23 rounds to a whole number and leaves it in the low
 * bits. 2^n is multiplied in two halves, so that it neither overflows nor underflows before it must. */
static inline float tti_exp_f32(float x)
{
    const float shift = 0x1.8p23f;
    const float low = x < -104.0f ? -104.0f : x;
    const float in = low > 89.0f ? 89.0f : low;
    const float t = in * 0x1.715476p0f + shift;
    const float n = t - shift;
    const float r = (in - n * TTI_LN2_HIGH) - n * TTI_LN2_LOW;
    const uint32_t k = tti_bits_of(t) - tti_bits_of(shift);
    const uint32_t half = (uint32_t)((int32_t)k >> 1);
    float p = 0.00138145173f;

    p = p * r + 0.00836875569f;
    p = p * r + 0.0416683927f;
    p = p * r + 0.166665196f;
    p = p * r + 0.49999994f;
    p = 1.0f + (r + r * r * p);
    return p * tti_f32_of((half + 127u) << 23) * tti_f32_of((k - half + 127u) << 23);
}

/* x = 2^e (1 + f) with 1 + f from sqrt(1/2) to sqrt(2). */
static inline float tti_log_f32(float x)
{
    const uint32_t root = 0x3f3504f3u; /* sqrt(1/2) */
    const float up = x < FLT_MIN ? x * 0x1p23f : x;
    const uint32_t u = tti_bits_of(up) - root;
    const float e = (float)((int32_t)u >> 23) - (x < FLT_MIN ? 23.0f : 0.0f);
    const float f = tti_f32_of((u & 0x7fffffu) + root) - 1.0f;
    float p = 0.0674663857f, y;

    p = p * f - 0.116756514f;
    p = p * f + 0.118881628f;
    p = p * f - 0.124055892f;
    p = p * f + 0.142195523f;
    p = p * f - 0.166679963f;
    p = p * f + 0.200021192f;
    p = p * f - 0.250000089f;
    p = p * f + 0.333333135f;
    p = f * f * f * p + e * TTI_LN2_LOW;
    y = e * TTI_LN2_HIGH + (f - (0.5f * f * f - p));
    y = x > FLT_MAX ? x : y;
    y = x == 0.0f ? -INFINITY : y;
    y = x < 0.0f ? NAN : y;
    return x != x ? x : y;
}

static inline float tti_tanh_f32(float x)
{
    const float a = fabsf(x), z = x * x;
    const float far = 1.0f - 2.0f / (tti_exp_f32(2.0f * a) + 1.0f);
    float p = -0.0057170419f;

    p = p * z + 0.0206505843f;
    p = p * z - 0.0537434965f;
    p = p * z + 0.133314908f;
    p = p * z - 0.333332837f;
    return a < 0.625f ? x + x * (z * p) : copysignf(far, x);
}

/* The logistic function: e to a negative power only, so that nothing overflows. */
static inline float tti_sigmoid_f32(float x)
{
    const float e = tti_exp_f32(-fabsf(x));
    const float top = x < 0.0f ? e : 1.0f;

    return top / (1.0f + e);
}

/* erf(x) for |x| below TTI_ERF_NEAR. */
#define TTI_ERF_NEAR 0.9375f
static inline float tti_erf_near_f32(float x)
{
    const float z = x * x;
    float p = 8.29661149e-05f;

    p = p * z - 0.000812580693f;
    p = p * z + 0.00519960001f;
    p = p * z - 0.0268588513f;
    p = p * z + 0.11283686f;
    p = p * z - 0.376126319f;
    p = p * z + 0.128379166f;
    return x + x * p;
}

/* 1 - erf(t) for t from TTI_ERF_NEAR on; e is e^(-t^2). */
static inline float tti_erfc_far_f32(float t, float e)
{
    const float s = 1.0f / (1.0f + 0.5f * t);
    float p = 0.0918902084f;

    p = p * s - 0.224033087f;
    p = p * s + 0.0827553421f;
    p = p * s + 0.0588731468f;
    p = p * s + 0.180286586f;
    p = p * s + 0.246495277f;
    p = p * s + 0.282108039f;
    p = p * s + 0.282094628f;
    return e * s * p;
}

static inline float tti_erf_f32(float x)
{
    const float a = fabsf(x);
    const float far = 1.0f - tti_erfc_far_f32(a, tti_exp_f32(-a * a));

    return a < TTI_ERF_NEAR ? tti_erf_near_f32(x) : copysignf(far, x);
}

/* The share of a normal distribution below x; e is e^(-x^2 / 2). Its left tail keeps its digits. */
static inline float tti_normal_f32(float x, float e)
{
    const float t = x * 0.707106781f, a = fabsf(t);
    const float far = 0.5f * tti_erfc_far_f32(a, e);

    return a < TTI_ERF_NEAR ? 0.5f + 0.5f * tti_erf_near_f32(t) : x < 0.0f ? far : 1.0f - far;
}

#endif
