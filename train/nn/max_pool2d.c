/* SPDX-License-Identifier: BSD-3-Clause
 *
 * max_pool2d.c - the largest element of each window.
 *
 * How     Forward writes down, beside each result, where in its plane the winner stood (i32);
 *         backward adds each gradient to that place. Windows are scanned row by row and a later
 *         element must be larger to win; a NaN wins over everything before it.
 * True    A window always holds at least one element of the image; others are refused. */
#include "nn/nn.h"

#include <limits.h>

typedef struct pooling {
    int64_t planes, h, w; /* of the input: N times C images */
    int64_t ho, wo;
    int kh, kw, sh, sw, ph, pw, dh, dw;
} pooling;

/* The first index of a window that lies within the image, from a start that may be negative. */
static int64_t first_inside(int64_t start, int64_t step)
{
    return start >= 0 ? start : start + (-start + step - 1) / step * step;
}

static int64_t min_of(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Does a later element v take over from the best so far? */
#define WINS(v, best) (((v) > (best)) | ((v) != (v)))

#define POOL(word, T)                                                                            \
    /* One row of 2 x 2 windows side by side, without branches. */                               \
    static void word##_pair_row(const pooling *p, const T *im, int64_t oh, T *y, int32_t *at)    \
    {                                                                                            \
        const T *a = im + 2 * oh * p->w, *b = a + p->w;                                          \
        const int32_t base = (int32_t)(a - im), below = (int32_t)p->w;                           \
                                                                                                 \
        for (int32_t ow = 0; ow < (int32_t)p->wo; ow++) {                                        \
            const T v1 = a[2 * ow + 1], v2 = b[2 * ow], v3 = b[2 * ow + 1];                      \
            T best = a[2 * ow];                                                                  \
            int32_t where = 0;                                                                   \
                                                                                                 \
            where = WINS(v1, best) ? 1 : where;                                                  \
            best = WINS(v1, best) ? v1 : best;                                                   \
            where = WINS(v2, best) ? below : where;                                              \
            best = WINS(v2, best) ? v2 : best;                                                   \
            where = WINS(v3, best) ? below + 1 : where;                                          \
            best = WINS(v3, best) ? v3 : best;                                                   \
            y[ow] = best;                                                                        \
            at[ow] = base + 2 * ow + where;                                                      \
        }                                                                                        \
    }                                                                                            \
                                                                                                 \
    static int32_t word##_winner(const pooling *p, const T *im, int64_t oh, int64_t ow)          \
    {                                                                                            \
        const int64_t h0 = oh * p->sh - p->ph, w0 = ow * p->sw - p->pw;                          \
        const int64_t h1 = min_of(h0 + (int64_t)p->kh * p->dh, p->h);                            \
        const int64_t w1 = min_of(w0 + (int64_t)p->kw * p->dw, p->w);                            \
        int64_t best = -1;                                                                       \
                                                                                                 \
        for (int64_t ih = first_inside(h0, p->dh); ih < h1; ih += p->dh)                         \
            for (int64_t iw = first_inside(w0, p->dw); iw < w1; iw += p->dw) {                   \
                const T v = im[ih * p->w + iw];                                                  \
                                                                                                 \
                if (best < 0 || WINS(v, im[best]))                                               \
                    best = ih * p->w + iw;                                                       \
            }                                                                                    \
        return (int32_t)best;                                                                    \
    }                                                                                            \
                                                                                                 \
    static void word##_forward(const pooling *p, const T *x, T *y, int32_t *at)                  \
    {                                                                                            \
        const bool pairs = p->kh == 2 && p->kw == 2 && p->sh == 2 && p->sw == 2 && p->ph == 0 && \
                           p->pw == 0 && p->dh == 1 && p->dw == 1;                               \
                                                                                                 \
        for (int64_t i = 0; i < p->planes * p->ho; i++, y += p->wo, at += p->wo) {               \
            const T *im = x + i / p->ho * p->h * p->w;                                           \
                                                                                                 \
            if (pairs) {                                                                         \
                word##_pair_row(p, im, i % p->ho, y, at);                                        \
                continue;                                                                        \
            }                                                                                    \
            for (int64_t ow = 0; ow < p->wo; ow++) {                                             \
                at[ow] = word##_winner(p, im, i % p->ho, ow);                                    \
                y[ow] = im[at[ow]];                                                              \
            }                                                                                    \
        }                                                                                        \
    }                                                                                            \
                                                                                                 \
    static void word##_backward(int64_t planes, int64_t out, int64_t in, const T *g,             \
                                const int32_t *at, T *dx)                                        \
    {                                                                                            \
        for (int64_t i = 0; i < planes; i++, g += out, at += out, dx += in)                      \
            for (int64_t j = 0; j < out; j++)                                                    \
                dx[at[j]] += g[j];                                                               \
    }

POOL(f32, float)
POOL(f64, double)

static void max_pool2d_apply(tti_node *node, tutti_tensor *g, tutti_tensor **out)
{
    const tti_edge *in = &node->edge[0];
    const tutti_tensor *at = tti_saved(node, 0);
    const int64_t planes = in->shape[0] * in->shape[1];
    const int64_t n_in = in->shape[2] * in->shape[3], n_out = at->shape[2] * at->shape[3];

    g = tti_temp(tti_raw_contiguous(g));
    out[0] = tti_raw_zeros(in->dtype, in->nd, in->shape);
    if (g == NULL || out[0] == NULL)
        return;
    if (in->dtype == TUTTI_F32)
        f32_backward(planes, n_out, n_in, tti_at(g), tti_at(at), tti_at(out[0]));
    else
        f64_backward(planes, n_out, n_in, tti_at(g), tti_at(at), tti_at(out[0]));
}

/* True if some window of a dimension, dilated, steps over the image: nothing in it could win. */
static bool misses(int64_t n, int64_t windows, int k, int stride, int pad, int dil)
{
    for (int64_t i = 0; i < windows; i++) {
        const int64_t start = i * stride - pad;

        if (first_inside(start, dil) >= min_of(start + (int64_t)k * dil, n))
            return true;
    }
    return false;
}

static bool options_get(int kh, int kw, const tutti_pool2d_options *opts,
                        tutti_pool2d_options *full_out)
{
    const int k[2] = { kh, kw };
    tutti_pool2d_options o = TUTTI_POOL2D_OPTIONS;

    if (opts != NULL)
        o = *opts;
    if (o.size != sizeof o) {
        (void)tti_refuse(TUTTI_E_ARG, "max_pool2d",
                         "options of %zu bytes\n  next: begin with TUTTI_POOL2D_OPTIONS", o.size);
        return false;
    }
    for (int i = 0; i < 2; i++) {
        o.stride[i] = o.stride[i] == 0 ? k[i] : o.stride[i];
        o.dilation[i] = o.dilation[i] == 0 ? 1 : o.dilation[i];
        if (k[i] < 1 || o.stride[i] < 1 || o.dilation[i] < 1 || o.padding[i] < 0 ||
            o.padding[i] > k[i] / 2) {
            (void)tti_refuse(TUTTI_E_ARG, "max_pool2d",
                             "window %d, stride %d, padding %d, dilation %d", k[i], o.stride[i],
                             o.padding[i], o.dilation[i]);
            return false;
        }
    }
    *full_out = o;
    return true;
}

static tutti_status measure(const tutti_tensor *x, int kh, int kw, const tutti_pool2d_options *o,
                            pooling *p_out)
{
    pooling p = { .kh = kh, .kw = kw };

    if (!tti_is_real(x->dtype))
        return tti_refuse(TUTTI_E_UNSUPPORTED, "max_pool2d",
                          "elements of %s, floating ones are offered", tutti_dtype_name(x->dtype));
    if (x->nd != 4)
        return tti_refuse(TUTTI_E_ARG, "max_pool2d", "input %s needs four dimensions",
                          tti_shape_str(x->nd, x->shape).s);
    p.planes = x->shape[0] * x->shape[1];
    p.h = x->shape[2];
    p.w = x->shape[3];
    p.sh = o->stride[0];
    p.sw = o->stride[1];
    p.ph = o->padding[0];
    p.pw = o->padding[1];
    p.dh = o->dilation[0];
    p.dw = o->dilation[1];
    p.ho = tti_windows(p.h, kh, p.sh, p.ph, p.dh);
    p.wo = tti_windows(p.w, kw, p.sw, p.pw, p.dw);
    if (p.ho == 0 || p.wo == 0 || p.h == 0 || p.w == 0 || p.h > INT_MAX / p.w)
        return tti_refuse(TUTTI_E_ARG, "max_pool2d",
                          "a window of %d x %d does not fit into input %s", kh, kw,
                          tti_shape_str(x->nd, x->shape).s);
    if (misses(p.h, p.ho, kh, p.sh, p.ph, p.dh) || misses(p.w, p.wo, kw, p.sw, p.pw, p.dw))
        return tti_refuse(TUTTI_E_ARG, "max_pool2d", "a window of %d x %d steps over input %s", kh,
                          kw, tti_shape_str(x->nd, x->shape).s);
    *p_out = p;
    return TUTTI_OK;
}

tutti_tensor *tutti_tensor_max_pool2d(tutti_tensor *x, int kh, int kw,
                                      const tutti_pool2d_options *opts)
{
    static const tti_node_class pool_class = { .name = "max_pool2d", .apply = max_pool2d_apply };
    tutti_tensor *from, *at = NULL, *y = NULL;
    tutti_pool2d_options o;
    tti_node *node;
    pooling p = { 0 };

    if (x == NULL)
        return tti_poisoned("max_pool2d");
    if (tti_has_half(x)) { /* which is exact: nothing is computed */
        tutti_scope_begin();
        return tti_rounded(tutti_tensor_max_pool2d(tti_widened(x), kh, kw, opts), x->dtype);
    }
    if (!options_get(kh, kw, opts, &o) || measure(x, kh, kw, &o, &p) != TUTTI_OK)
        return NULL;
    from = tti_raw_contiguous(x);
    if (from != NULL) {
        const int64_t shape[4] = { x->shape[0], x->shape[1], p.ho, p.wo };

        at = tti_raw_empty(TUTTI_I32, 4, shape);
        y = at != NULL ? tti_raw_empty(x->dtype, 4, shape) : NULL;
    }
    if (y != NULL && x->dtype == TUTTI_F32)
        f32_forward(&p, tti_at(from), tti_at(y), tti_at(at));
    else if (y != NULL)
        f64_forward(&p, tti_at(from), tti_at(y), tti_at(at));
    node = tti_record(&y, &pool_class, 1, &x);
    if (node != NULL)
        tti_save(node, 0, at);
    tutti_tensor_release(at);
    tutti_tensor_release(from);
    return tti_temp(y);
}
