/* SPDX-License-Identifier: BSD-3-Clause
 *
 * planes.h - sums of shifted planes: what a convolution is made of, compiled once for each set of instructions.
 *
 * Why     A convolution of few channels is no good matrix product: the columns are 25 times the image, and the product
 *         has 10 rows where it wants hundreds. Planes that lie row by row need no columns: a tap of the window is the
 *         same plane some rows further on.
 * How     planes_loops.h has the source; planes_base.c, planes_avx2.c and planes_avx512.c compile it. The table is that
 *         of the level of tensor/level.h.
 * True    Sums are formed in the order of the terms, in registers. Where the processor has it, products and sums are
 *         rounded once, so that bits differ between levels, as those of a matrix product do between libraries. */
#ifndef TTI_TRAIN_NN_PLANES_H
#define TTI_TRAIN_NN_PLANES_H

#include <stdint.h>

enum {
    TTI_PLANES_SLACK = 64, /* floats behind the last plane that may be read, whatever they are */
    TTI_PLANES_LANES = 16  /* sums of tti_plane_ops.slopes: floats for each, whatever the level */
};

/* y[o][p] = bias[o] + sum over k of w[o][k] x[at[k] + p], o < outs, p < n. */
typedef struct tti_plane_sums {
    int64_t outs, terms, n;
    const float *w;    /* as pack() made it */
    const int64_t *at; /* [terms] */
    const float *x;
    const float *bias; /* [outs]; NULL: 0 */
    float *y;
    int64_t ld; /* from y[o] to y[o + 1] */
} tti_plane_sums;

/* sums[o][i][lane] += sum over images m and p of y[m][o][p] x[m][i step + p], over every LANES-th p for a lane. */
typedef struct tti_plane_slopes {
    int64_t outs, taps, images, n;
    const float *y;
    int64_t y_out, y_image; /* from one to the next */
    const float *x;
    int64_t step, x_image;
    float *sums;
    int64_t ld; /* from sums[o] to sums[o + 1], in floats */
} tti_plane_slopes;

typedef struct tti_plane_ops {
    /* w [outs][terms] in the order in which sums() reads it; as many floats. */
    void (*pack)(int64_t outs, int64_t terms, const float *w, float *packed_out);
    void (*sums)(const tti_plane_sums *s);
    void (*slopes)(const tti_plane_slopes *s);
} tti_plane_ops;

extern const tti_plane_ops tti_planes_base, tti_planes_avx2, tti_planes_avx512;

/* The table of the level in use. */
const tti_plane_ops *tti_planes_now(void);

#endif
