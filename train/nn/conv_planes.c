/* SPDX-License-Identifier: BSD-3-Clause
 *
 * conv_planes.c - convolution without columns, for windows that step down one row at a time.
 *
 * How     A channel is spread along its rows only: for each column j of the window a plane of as many columns as the
 *         output has,
 *             P[c, j] [rows of the padded image, W']       kw times the image, where columns are kh kw times
 *         Then row i of the window is P[c, j] from its row i dil on, and all outputs of a channel are one run of numbers:
 *             y[o] [H' W'] = sum over c, j, i of w[o, c, i, j] P[c, j] [i dil W' ..]
 * Back    dw[o, c, i, j] = sum over images of dy[o] . P[c, j] [i dil W' ..]
 *         dP[c, j] = sum over o, i of w[o, c, i, j] dy[o] moved down by i dil rows, which is again a sum of
 *         planes, of dy between rows of zeros; then each dP[c, j] is added to its columns of the image.
 * True    How many images are taken together depends on the shape alone, and sums go in the order of the terms. Sums
 *         of dw are kept in lanes until all images are through. */
#include <string.h>

#include "nn/conv.h"
#include "nn/planes.h"

enum {
    TOGETHER_BYTES = 256 << 10, /* of spread images, which should stay near */
    TERMS_MAX = 2048,           /* beyond, and with more outputs, a matrix product is well served */
    OUTS_MAX = 64
};

/* Work space of one call, for one group. */
typedef struct work {
    const tti_convolution *g;
    const tti_plane_ops *ops;
    int64_t rows;     /* of a spread plane: those of the padded image */
    int64_t plane;    /* of P[c, j], in floats */
    int64_t spread;   /* of all planes of an image */
    int64_t together; /* images */
    float *p, *w;     /* spread images; weights as packed */
    int64_t *at;
} work;

bool tti_conv_planes_fit(const tti_convolution *g, tutti_dtype dtype)
{
    return dtype == TUTTI_F32 && g->sh == 1 && g->kh > 1 && g->kh <= 16 && g->n > 0 && g->rows <= TERMS_MAX &&
           g->og <= OUTS_MAX && g->cols >= TTI_PLANES_LANES;
}

/* Zeroed room that belongs to the open scope. */
static void *room(int64_t count, size_t size)
{
    const int64_t bytes = count * (int64_t)size;
    tutti_tensor *t = tti_temp(tti_raw_zeros(TUTTI_U8, 1, &bytes));

    return t != NULL ? tti_at(t) : NULL;
}

static float *floats(int64_t count)
{
    return room(count + TTI_PLANES_SLACK, sizeof(float));
}

static bool prepare(const tti_convolution *g, int64_t images, work *k_out)
{
    work k = { .g = g, .ops = tti_planes_now() };
    int64_t terms = g->cg * g->kh * g->kw;

    k.rows = g->h + 2 * g->ph;
    k.plane = k.rows * g->wo;
    k.spread = g->cg * g->kw * k.plane;
    k.together = TOGETHER_BYTES / ((int64_t)sizeof(float) * k.spread);
    k.together = k.together < 1 ? 1 : k.together > images ? images : k.together;
    terms = terms > g->og * g->kh ? terms : g->og * g->kh;
    k.p = floats(k.together * k.spread);
    k.w = floats(g->og * g->cg * g->kh * g->kw);
    k.at = room(terms, sizeof *k.at);
    *k_out = k;
    return k.p != NULL && k.w != NULL && k.at != NULL;
}

/* ---- planes ----------------------------------------------------------------------------------- */

/* Rows are short: eight at a time in registers beat a call of memcpy; the last eight may overlap. */
static inline void copy(float *to, const float *from, int64_t n)
{
    int64_t i = 0;

    if (n < 8) {
        for (; i < n; i++)
            to[i] = from[i];
        return;
    }
    for (; i + 8 <= n; i += 8)
        memcpy(to + i, from + i, 8 * sizeof *to);
    memcpy(to + n - 8, from + n - 8, 8 * sizeof *to);
}

/* Row by row of the image into the rows of P[c, j] that are not padding, which are zero from the start. */
static void spread_plane(const work *k, const float *im, int64_t j, float *p)
{
    const tti_convolution *g = k->g;
    const int64_t shift = j * g->dw - g->pw;
    int64_t lo, hi;

    tti_conv_valid_range(g, shift, &lo, &hi);
    p += g->ph * g->wo;
    for (int64_t r = 0; r < g->h; r++, im += g->w, p += g->wo) {
        if (g->sw == 1)
            copy(p + lo, im + lo + shift, hi - lo);
        else
            for (int64_t ow = lo; ow < hi; ow++)
                p[ow] = im[ow * g->sw + shift];
    }
}

/* The channels of a group of one image. */
static void spread(const work *k, const float *x, float *p)
{
    for (int64_t c = 0; c < k->g->cg; c++)
        for (int64_t j = 0; j < k->g->kw; j++, p += k->plane)
            spread_plane(k, x + c * k->g->h * k->g->w, j, p);
}

/* Add dP to the image: the way back. */
static void fold(const work *k, const float *p, float *dx)
{
    const tti_convolution *g = k->g;
    int64_t lo, hi;

    for (int64_t c = 0; c < g->cg; c++, dx += g->h * g->w)
        for (int64_t j = 0; j < g->kw; j++, p += k->plane) {
            const int64_t shift = j * g->dw - g->pw;

            tti_conv_valid_range(g, shift, &lo, &hi);
            for (int64_t r = 0; r < g->h; r++) {
                const float *from = p + (r + g->ph) * g->wo;
                float *to = dx + r * g->w + shift;

                if (g->sw == 1)
                    for (int64_t ow = lo; ow < hi; ow++)
                        to[ow] += from[ow];
                else
                    for (int64_t ow = lo; ow < hi; ow++)
                        to[ow * g->sw] += from[ow];
            }
        }
}

/* ---- forward ---------------------------------------------------------------------------------- */

bool tti_conv_planes_forward(const tti_convolution *g, const float *x, const float *w, const float *b, float *y)
{
    work k;

    if (!prepare(g, 1, &k))
        return false;
    for (int64_t c = 0, t = 0; c < g->cg; c++)
        for (int64_t i = 0; i < g->kh; i++)
            for (int64_t j = 0; j < g->kw; j++)
                k.at[t++] = (c * g->kw + j) * k.plane + i * g->dh * g->wo;
    for (int64_t q = 0; q < g->groups; q++) {
        tti_plane_sums s = { g->og, g->rows, g->cols, k.w, k.at, k.p, b != NULL ? b + q * g->og : NULL, NULL, g->cols };

        k.ops->pack(g->og, g->rows, w + q * g->og * g->rows, k.w);
        for (int64_t m = 0; m < g->n; m++) {
            spread(&k, x + (m * g->c + q * g->cg) * g->h * g->w, k.p);
            s.y = y + (m * g->o + q * g->og) * g->cols;
            k.ops->sums(&s);
        }
    }
    return true;
}

/* ---- backward --------------------------------------------------------------------------------- */

/* Lanes of sums for dw: [O/groups][C/groups, j, i][LANES]. */
static void add_slopes(const work *k, int64_t images, const float *dy, float *sums)
{
    const tti_convolution *g = k->g;
    tti_plane_slopes s = { g->og,
                           g->kh,
                           images,
                           g->cols,
                           dy,
                           g->cols,
                           g->o * g->cols,
                           NULL,
                           g->dh * g->wo,
                           k->spread,
                           NULL,
                           g->rows * TTI_PLANES_LANES };

    for (int64_t plane = 0; plane < g->cg * g->kw; plane++) {
        s.x = k->p + plane * k->plane;
        s.sums = sums + plane * g->kh * TTI_PLANES_LANES;
        k->ops->slopes(&s);
    }
}

/* The lanes of a group into its part of dw. */
static void put_slopes(const tti_convolution *g, const float *sums, float *dw)
{
    for (int64_t o = 0; o < g->og; o++)
        for (int64_t c = 0; c < g->cg; c++)
            for (int64_t j = 0; j < g->kw; j++)
                for (int64_t i = 0; i < g->kh; i++, sums += TTI_PLANES_LANES) {
                    float lane[TTI_PLANES_LANES];

                    memcpy(lane, sums, sizeof lane);
                    for (int half = TTI_PLANES_LANES / 2; half > 0; half /= 2)
                        for (int l = 0; l < half; l++)
                            lane[l] += lane[l + half];
                    dw[((o * g->cg + c) * g->kh + i) * g->kw + j] = lane[0];
                }
}

static bool backward_weights(work *k, int64_t q, const float *x, const float *dy, float *dw)
{
    const tti_convolution *g = k->g;
    float *sums = floats(g->og * g->rows * TTI_PLANES_LANES);

    if (sums == NULL)
        return false;
    for (int64_t first = 0; first < g->n; first += k->together) {
        const int64_t images = g->n - first < k->together ? g->n - first : k->together;

        for (int64_t m = 0; m < images; m++)
            spread(k, x + ((first + m) * g->c + q * g->cg) * g->h * g->w, k->p + m * k->spread);
        add_slopes(k, images, dy + (first * g->o + q * g->og) * g->cols, sums);
    }
    put_slopes(g, sums, dw + q * g->og * g->rows);
    return true;
}

/* Weights for dP: [C/groups, j][O/groups, i], packed. turned: room for them. */
static void turn_weights(const work *k, const float *w, float *turned)
{
    const tti_convolution *g = k->g;
    const int64_t terms = g->og * g->kh;

    for (int64_t o = 0; o < g->og; o++)
        for (int64_t c = 0; c < g->cg; c++)
            for (int64_t i = 0; i < g->kh; i++)
                for (int64_t j = 0; j < g->kw; j++)
                    turned[(c * g->kw + j) * terms + o * g->kh + i] = w[((o * g->cg + c) * g->kh + i) * g->kw + j];
    k->ops->pack(g->cg * g->kw, terms, turned, k->w);
}

static bool backward_input(work *k, int64_t q, const float *w, const float *dy, float *dx)
{
    const tti_convolution *g = k->g;
    const int64_t above = (g->kh - 1) * g->dh * g->wo, padded = g->cols + 2 * above;
    float *planes = floats(g->og * padded), *dp = floats(k->spread), *turned = floats(g->og * g->rows);
    tti_plane_sums s = { g->cg * g->kw, g->og * g->kh, k->plane, k->w, k->at, planes, NULL, dp, k->plane };

    if (planes == NULL || dp == NULL || turned == NULL)
        return false;
    turn_weights(k, w + q * g->og * g->rows, turned);
    for (int64_t o = 0, t = 0; o < g->og; o++)
        for (int64_t i = 0; i < g->kh; i++)
            k->at[t++] = o * padded + above - i * g->dh * g->wo;
    for (int64_t m = 0; m < g->n; m++) {
        for (int64_t o = 0; o < g->og; o++)
            memcpy(planes + o * padded + above, dy + (m * g->o + q * g->og + o) * g->cols,
                   (size_t)g->cols * sizeof *dy);
        k->ops->sums(&s);
        fold(k, dp, dx + (m * g->c + q * g->cg) * g->h * g->w);
    }
    return true;
}

bool tti_conv_planes_backward(const tti_convolution *g, const float *x, const float *w, const float *dy, float *dx,
                              float *dw)
{
    work k;
    bool ok = prepare(g, g->n, &k);

    for (int64_t q = 0; q < g->groups && ok; q++)
        ok = (dw == NULL || backward_weights(&k, q, x, dy, dw)) && (dx == NULL || backward_input(&k, q, w, dy, dx));
    return ok;
}
