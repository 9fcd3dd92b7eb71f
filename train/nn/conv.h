/* SPDX-License-Identifier: BSD-3-Clause
 *
 * conv.h - what the two ways to convolve share. */
#ifndef TTI_TRAIN_NN_CONV_H
#define TTI_TRAIN_NN_CONV_H

#include "nn/nn.h"

typedef struct tti_convolution {
    int64_t n, c, h, w;     /* of the input */
    int64_t o, kh, kw;      /* of the kernels */
    int64_t sh, sw, ph, pw; /* stride, padding */
    int64_t dh, dw, groups; /* dilation */
    int64_t ho, wo;         /* of the output */
    int64_t cg, og;         /* channels in and out, per group */
    int64_t rows, cols;     /* of the columns of an image: K and L of conv2d.c */
    int64_t batch;          /* images taken together there */
} tti_convolution;

/* The outputs ow in [lo, hi) whose input column ow * sw + shift lies within the image. */
static inline void tti_conv_valid_range(const tti_convolution *g, int64_t shift, int64_t *lo_out,
                                        int64_t *hi_out)
{
    int64_t lo = shift >= 0 ? 0 : (-shift + g->sw - 1) / g->sw;
    int64_t hi = g->w - shift <= 0 ? 0 : (g->w - shift + g->sw - 1) / g->sw;

    hi = hi > g->wo ? g->wo : hi;
    *lo_out = lo > hi ? hi : lo;
    *hi_out = hi;
}

/* conv_planes.c: f32 without columns. Whether it is the quicker way; by the shape alone. */
bool tti_conv_planes_fit(const tti_convolution *g, tutti_dtype dtype);
/* y, of contiguous operands; b may be NULL. Inside of a scope. False: no memory, which is kept. */
bool tti_conv_planes_forward(const tti_convolution *g, const float *x, const float *w,
                             const float *b, float *y);
/* Into zeroed dx and dw, either of which may be NULL. */
bool tti_conv_planes_backward(const tti_convolution *g, const float *x, const float *w,
                              const float *dy, float *dx, float *dw);

#endif
