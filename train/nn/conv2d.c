/* SPDX-License-Identifier: BSD-3-Clause
 *
 * conv2d.c - two-dimensional convolution as matrix products.
 *
 * How     The windows of an image, written as columns, make the convolution a product with the
 *         kernels as rows:
 *             columns [K, L], K = C/groups kh kw, L = H' W'       y = W [O/groups, K] * columns
 *         Images with few windows are taken several at a time, so that the product has TARGET
 *         columns or more; its rows are then dealt out to the images.
 * Back    dW += g * columns', columns made again, for they are 25 times the size of the image in the
 *         tutorial's network;  d(columns) = W' * g, added back into the image;  db = sum of g.
 * Else    Windows of f32 that step down one row at a time need no columns: conv_planes.c.
 * True    How many images are taken together depends on the shape alone, hence so do the bits. */
#include "nn/conv.h"

#include <limits.h>
#include <string.h>

enum { TARGET = 512 };

#define SPACE_MAX (INT64_MAX / 16) /* elements of a tensor */

typedef tti_convolution geometry;

/* Work space of a pass: the columns and one gathered result, for `batch` images and one group. */
typedef struct space {
    tutti_tensor *columns; /* [K, batch L] */
    tutti_tensor *dealt;   /* [O/groups, batch L] */
} space;

bool tti_conv2d_options_get(const char *op, const tutti_conv2d_options *opts,
                            tutti_conv2d_options *full_out)
{
    tutti_conv2d_options o = TUTTI_CONV2D_OPTIONS;

    if (opts != NULL)
        o = *opts;
    if (o.size != sizeof o) {
        (void)tti_refuse(TUTTI_E_ARG, op,
                         "options of %zu bytes\n  next: begin with TUTTI_CONV2D_OPTIONS", o.size);
        return false;
    }
    for (int i = 0; i < 2; i++) {
        o.stride[i] = o.stride[i] == 0 ? 1 : o.stride[i];
        o.dilation[i] = o.dilation[i] == 0 ? 1 : o.dilation[i];
        if (o.stride[i] < 1 || o.dilation[i] < 1 || o.padding[i] < 0) {
            (void)tti_refuse(TUTTI_E_ARG, op, "stride %d, padding %d, dilation %d", o.stride[i],
                             o.padding[i], o.dilation[i]);
            return false;
        }
    }
    o.groups = o.groups == 0 ? 1 : o.groups;
    if (o.groups < 1) {
        (void)tti_refuse(TUTTI_E_ARG, op, "%d groups", o.groups);
        return false;
    }
    *full_out = o;
    return true;
}

static geometry measure(const int64_t *x, const int64_t *w, const tutti_conv2d_options *o)
{
    geometry g = { .n = x[0], .c = x[1], .h = x[2], .w = x[3], .o = w[0], .kh = w[2], .kw = w[3] };

    g.sh = o->stride[0];
    g.sw = o->stride[1];
    g.ph = o->padding[0];
    g.pw = o->padding[1];
    g.dh = o->dilation[0];
    g.dw = o->dilation[1];
    g.groups = o->groups;
    g.ho = tti_windows(g.h, g.kh, g.sh, g.ph, g.dh);
    g.wo = tti_windows(g.w, g.kw, g.sw, g.pw, g.dw);
    g.cg = g.c / g.groups;
    g.og = g.o / g.groups;
    g.rows = g.cg * g.kh * g.kw;
    g.cols = g.ho * g.wo;
    g.batch = g.cols >= TARGET || g.cols == 0 ? 1 : (TARGET + g.cols - 1) / g.cols;
    g.batch = g.batch > g.n ? g.n : g.batch;
    return g;
}

/* Columns of one image and group (im), row r at col + r * ld; and the way back, adding up. */
/* Lines are short: eight elements at a time in registers beat a call of memcpy; the last eight may
 * overlap those before. */
#define COLUMNS(word, T)                                                                          \
    static inline void word##_copy(T *to, const T *from, int64_t n)                               \
    {                                                                                             \
        int64_t i = 0;                                                                            \
                                                                                                  \
        if (n < 8) {                                                                              \
            for (; i < n; i++)                                                                    \
                to[i] = from[i];                                                                  \
            return;                                                                               \
        }                                                                                         \
        for (; i + 8 <= n; i += 8)                                                                \
            memcpy(to + i, from + i, 8 * sizeof *to);                                             \
        memcpy(to + n - 8, from + n - 8, 8 * sizeof *to);                                         \
    }                                                                                             \
                                                                                                  \
    static inline void word##_line(const geometry *g, const T *im, int64_t shift, int64_t lo,     \
                                   int64_t hi, T *line)                                           \
    {                                                                                             \
        for (int64_t ow = 0; ow < lo; ow++)                                                       \
            line[ow] = 0;                                                                         \
        if (g->sw == 1)                                                                           \
            word##_copy(line + lo, im + (lo + shift), hi - lo);                                   \
        else                                                                                      \
            for (int64_t ow = lo; ow < hi; ow++)                                                  \
                line[ow] = im[ow * g->sw + shift];                                                \
        for (int64_t ow = hi; ow < g->wo; ow++)                                                   \
            line[ow] = 0;                                                                         \
    }                                                                                             \
                                                                                                  \
    static void word##_spread(const geometry *g, const T *im, T *col, int64_t ld)                 \
    {                                                                                             \
        for (int64_t r = 0; r < g->rows; r++, col += ld) {                                        \
            const int64_t j = r % g->kw, i = r / g->kw % g->kh, c = r / (g->kw * g->kh);          \
            const int64_t shift = j * g->dw - g->pw;                                              \
            int64_t lo, hi;                                                                       \
                                                                                                  \
            tti_conv_valid_range(g, shift, &lo, &hi);                                             \
            for (int64_t oh = 0; oh < g->ho; oh++) {                                              \
                const int64_t ih = oh * g->sh - g->ph + i * g->dh;                                \
                                                                                                  \
                if (ih < 0 || ih >= g->h)                                                         \
                    memset(col + oh * g->wo, 0, (size_t)g->wo * sizeof *col);                     \
                else                                                                              \
                    word##_line(g, im + (c * g->h + ih) * g->w, shift, lo, hi, col + oh * g->wo); \
            }                                                                                     \
        }                                                                                         \
    }                                                                                             \
                                                                                                  \
    static void word##_collect(const geometry *g, const T *col, int64_t ld, T *im)                \
    {                                                                                             \
        for (int64_t r = 0; r < g->rows; r++, col += ld) {                                        \
            const int64_t j = r % g->kw, i = r / g->kw % g->kh, c = r / (g->kw * g->kh);          \
            const int64_t shift = j * g->dw - g->pw;                                              \
            int64_t lo, hi;                                                                       \
                                                                                                  \
            tti_conv_valid_range(g, shift, &lo, &hi);                                             \
            for (int64_t oh = 0; oh < g->ho; oh++) {                                              \
                const int64_t ih = oh * g->sh - g->ph + i * g->dh;                                \
                const T *from = col + oh * g->wo;                                                 \
                T *to = im + (c * g->h + ih) * g->w;                                              \
                                                                                                  \
                if (ih < 0 || ih >= g->h)                                                         \
                    continue;                                                                     \
                if (g->sw == 1)                                                                   \
                    for (int64_t ow = lo; ow < hi; ow++)                                          \
                        to[ow + shift] += from[ow];                                               \
                else                                                                              \
                    for (int64_t ow = lo; ow < hi; ow++)                                          \
                        to[ow * g->sw + shift] += from[ow];                                       \
            }                                                                                     \
        }                                                                                         \
    }                                                                                             \
                                                                                                  \
    /* Rows [O/groups, m L] to m images, with the bias of each channel (NULL: none). */           \
    static void word##_deal(const geometry *g, int64_t m, const T *rows, const T *bias, T *y)     \
    {                                                                                             \
        for (int64_t k = 0; k < m; k++)                                                           \
            for (int64_t o = 0; o < g->og; o++) {                                                 \
                const T *from = rows + (o * m + k) * g->cols;                                     \
                T *to = y + (k * g->o + o) * g->cols;                                             \
                const T add = bias != NULL ? bias[o] : 0;                                         \
                                                                                                  \
                for (int64_t l = 0; l < g->cols; l++)                                             \
                    to[l] = from[l] + add;                                                        \
            }                                                                                     \
    }                                                                                             \
                                                                                                  \
    static void word##_gather(const geometry *g, int64_t m, const T *y, T *rows)                  \
    {                                                                                             \
        for (int64_t o = 0; o < g->og; o++)                                                       \
            for (int64_t k = 0; k < m; k++)                                                       \
                word##_copy(rows + (o * m + k) * g->cols, y + (k * g->o + o) * g->cols, g->cols); \
    }                                                                                             \
                                                                                                  \
    /* Images first .. first+m-1 of group q. */                                                   \
    static void word##_forward(const geometry *g, int64_t q, int64_t first, int64_t m,            \
                               const space *sp, const T *x, const T *w, const T *b, T *y)         \
    {                                                                                             \
        const int64_t ld = m * g->cols;                                                           \
        const tti_gemm_shape s = { false, false, g->og, ld, g->rows, g->rows, ld, ld };           \
        T *col = tti_at(sp->columns), *rows = tti_at(sp->dealt);                                  \
                                                                                                  \
        for (int64_t k = 0; k < m; k++)                                                           \
            word##_spread(g, x + ((first + k) * g->c + q * g->cg) * g->h * g->w,                  \
                          col + k * g->cols, ld);                                                 \
        tti_gemm(sp->columns->dtype, &s, 1.0, w + q * g->og * g->rows, col, 0.0, rows);           \
        word##_deal(g, m, rows, b != NULL ? b + q * g->og : NULL,                                 \
                    y + (first * g->o + q * g->og) * g->cols);                                    \
    }                                                                                             \
                                                                                                  \
    /* Add to dx and dw (either may be NULL) what images first .. first+m-1 of group q give. */   \
    static void word##_backward(const geometry *g, int64_t q, int64_t first, int64_t m,           \
                                const space *sp, const T *x, const T *w, const T *dy, T *dx,      \
                                T *dw)                                                            \
    {                                                                                             \
        const int64_t ld = m * g->cols;                                                           \
        const tti_gemm_shape to_w = { false, true, g->og, g->rows, ld, ld, ld, g->rows };         \
        const tti_gemm_shape to_x = { true, false, g->rows, ld, g->og, g->rows, ld, ld };         \
        const int64_t at = (first * g->c + q * g->cg) * g->h * g->w;                              \
        const int64_t next = g->c * g->h * g->w;                                                  \
        T *col = tti_at(sp->columns), *rows = tti_at(sp->dealt);                                  \
                                                                                                  \
        word##_gather(g, m, dy + (first * g->o + q * g->og) * g->cols, rows);                     \
        if (dw != NULL) {                                                                         \
            for (int64_t k = 0; k < m; k++)                                                       \
                word##_spread(g, x + at + k * next, col + k * g->cols, ld);                       \
            tti_gemm(sp->columns->dtype, &to_w, 1.0, rows, col, 1.0, dw + q * g->og * g->rows);   \
        }                                                                                         \
        if (dx != NULL) {                                                                         \
            tti_gemm(sp->columns->dtype, &to_x, 1.0, w + q * g->og * g->rows, rows, 0.0, col);    \
            for (int64_t k = 0; k < m; k++)                                                       \
                word##_collect(g, col + k * g->cols, ld, dx + at + k * next);                     \
        }                                                                                         \
    }

COLUMNS(f32, float)
COLUMNS(f64, double)

/* Work space that belongs to the open scope. */
static bool take_space(const geometry *g, tutti_dtype dtype, space *sp_out)
{
    const int64_t width = g->batch * g->cols;

    sp_out->columns = tti_temp(tti_raw_empty(dtype, 2, (const int64_t[]){ g->rows, width }));
    sp_out->dealt = tti_temp(tti_raw_empty(dtype, 2, (const int64_t[]){ g->og, width }));
    return sp_out->columns != NULL && sp_out->dealt != NULL;
}

/* y of contiguous operands; owned. */
static tutti_tensor *forward(const geometry *g, const tutti_tensor *x, const tutti_tensor *w,
                             const tutti_tensor *b)
{
    tutti_tensor *y = NULL;
    space sp;

    if (x == NULL || w == NULL)
        return NULL;
    y = tti_raw_empty(x->dtype, 4, (const int64_t[]){ g->n, g->o, g->ho, g->wo });
    if (y != NULL && tti_conv_planes_fit(g, x->dtype)) {
        if (tti_conv_planes_forward(g, tti_at(x), tti_at(w), tutti_tensor_data(b), tti_at(y)))
            return y;
        tutti_tensor_release(y);
        return NULL;
    }
    if (y != NULL && !take_space(g, x->dtype, &sp)) {
        tutti_tensor_release(y);
        return NULL;
    }
    for (int64_t q = 0; y != NULL && q < g->groups; q++)
        for (int64_t first = 0; first < g->n; first += g->batch) {
            const int64_t m = g->n - first < g->batch ? g->n - first : g->batch;

            if (x->dtype == TUTTI_F32)
                f32_forward(g, q, first, m, &sp, tti_at(x), tti_at(w), tutti_tensor_data(b),
                            tti_at(y));
            else
                f64_forward(g, q, first, m, &sp, tti_at(x), tti_at(w), tutti_tensor_data(b),
                            tti_at(y));
        }
    return y;
}

/* Gradients of contiguous operands into zeroed dx and dw, either of which may be NULL. */
static void backward(const geometry *g, const tutti_tensor *x, const tutti_tensor *w,
                     const tutti_tensor *dy, tutti_tensor *dx, tutti_tensor *dw)
{
    space sp;

    if (x == NULL || w == NULL || dy == NULL)
        return; /* the failure is kept */
    if (tti_conv_planes_fit(g, x->dtype)) {
        (void)tti_conv_planes_backward(g, tti_at(x), tti_at(w), tti_at(dy), tutti_tensor_data(dx),
                                       tutti_tensor_data(dw));
        return;
    }
    if (!take_space(g, x->dtype, &sp))
        return;
    for (int64_t q = 0; q < g->groups; q++)
        for (int64_t first = 0; first < g->n; first += g->batch) {
            const int64_t m = g->n - first < g->batch ? g->n - first : g->batch;

            if (x->dtype == TUTTI_F32)
                f32_backward(g, q, first, m, &sp, tti_at(x), tti_at(w), tti_at(dy),
                             tutti_tensor_data(dx), tutti_tensor_data(dw));
            else
                f64_backward(g, q, first, m, &sp, tti_at(x), tti_at(w), tti_at(dy),
                             tutti_tensor_data(dx), tutti_tensor_data(dw));
        }
}

/* Options as numbers of a node, and back. */
static void note_options(tti_node *node, const tutti_conv2d_options *o)
{
    for (int i = 0; i < 2; i++) {
        node->number[i] = o->stride[i];
        node->number[2 + i] = o->padding[i];
        node->number[4 + i] = o->dilation[i];
    }
    node->number[6] = o->groups;
}

static tutti_conv2d_options noted_options(const tti_node *node)
{
    tutti_conv2d_options o = TUTTI_CONV2D_OPTIONS;

    for (int i = 0; i < 2; i++) {
        o.stride[i] = (int)node->number[i];
        o.padding[i] = (int)node->number[2 + i];
        o.dilation[i] = (int)node->number[4 + i];
    }
    o.groups = (int)node->number[6];
    return o;
}

static void conv2d_apply(tti_node *node, tutti_tensor *dy, tutti_tensor **out)
{
    const tutti_conv2d_options opts = noted_options(node);
    const int all_but_channels[] = { 0, 2, 3 };
    const tutti_tensor *x = tti_temp(tti_raw_contiguous(tti_saved(node, 0)));
    const tutti_tensor *w = tti_temp(tti_raw_contiguous(tti_saved(node, 1)));
    geometry g;

    dy = tti_temp(tti_raw_contiguous(dy));
    if (x == NULL || w == NULL || dy == NULL)
        return;
    g = measure(x->shape, w->shape, &opts);
    if (tti_wants(node, 0))
        out[0] = tti_raw_zeros(x->dtype, x->nd, x->shape);
    if (tti_wants(node, 1))
        out[1] = tti_raw_zeros(w->dtype, w->nd, w->shape);
    if (out[0] != NULL || out[1] != NULL)
        backward(&g, x, w, dy, out[0], out[1]);
    if (tti_wants(node, 2))
        out[2] = tti_raw_sum(dy, all_but_channels, 3, false);
}

/* Products take sizes as int. Weights first: windows are computed with their sizes. */
static tutti_status check_sizes(const tutti_tensor *x, const tutti_tensor *w)
{
    if (w->numel == 0)
        return tti_refuse(TUTTI_E_ARG, "conv2d", "weight %s has no elements",
                          tti_shape_str(w->nd, w->shape).s);
    if (w->numel > INT_MAX)
        return tti_refuse(TUTTI_E_UNSUPPORTED, "conv2d",
                          "weight %s has %lld elements, up to %d are offered",
                          tti_shape_str(w->nd, w->shape).s, (long long)w->numel, INT_MAX);
    if (x->shape[2] > INT_MAX / 4 || x->shape[3] > INT_MAX / 4 ||
        x->shape[2] * x->shape[3] > INT_MAX / 4)
        return tti_refuse(TUTTI_E_UNSUPPORTED, "conv2d",
                          "images of input %s have more than the %d pixels that are offered",
                          tti_shape_str(x->nd, x->shape).s, INT_MAX / 4);
    return TUTTI_OK;
}

/* The columns of an image must fit an int as well; work space and output must have a size. */
static tutti_status check_windows(const tutti_tensor *x, const tutti_tensor *w,
                                  const tutti_conv2d_options *o)
{
    const int64_t rows = w->numel / w->shape[0], n = x->shape[0] > 0 ? x->shape[0] : 1;
    int64_t ho, wo, width, planes;

    ho = tti_windows(x->shape[2], w->shape[2], o->stride[0], o->padding[0], o->dilation[0]);
    wo = tti_windows(x->shape[3], w->shape[3], o->stride[1], o->padding[1], o->dilation[1]);
    if (ho == 0 || wo == 0)
        return tti_refuse(TUTTI_E_ARG, "conv2d",
                          "the window of weight %s does not fit into input %s",
                          tti_shape_str(w->nd, w->shape).s, tti_shape_str(x->nd, x->shape).s);
    if (ho > INT_MAX / wo)
        return tti_refuse(TUTTI_E_UNSUPPORTED, "conv2d",
                          "%lld x %lld windows in an image, padding %d and %d: %d are offered",
                          (long long)ho, (long long)wo, o->padding[0], o->padding[1], INT_MAX);
    width = ho * wo > 2 * TARGET ? ho * wo : 2 * TARGET;
    if (__builtin_mul_overflow(n, w->shape[0], &planes) || planes > SPACE_MAX / width ||
        rows > SPACE_MAX / width)
        return tti_refuse(TUTTI_E_UNSUPPORTED, "conv2d",
                          "input %s and weight %s make more than %lld elements",
                          tti_shape_str(x->nd, x->shape).s, tti_shape_str(w->nd, w->shape).s,
                          (long long)SPACE_MAX);
    return TUTTI_OK;
}

static tutti_status check(const tutti_tensor *x, const tutti_tensor *w, const tutti_tensor *b,
                          const tutti_conv2d_options *o)
{
    tutti_status st;

    if (x->dtype != w->dtype || !tti_is_real(x->dtype) || (b != NULL && b->dtype != x->dtype))
        return tti_refuse(TUTTI_E_UNSUPPORTED, "conv2d",
                          "all operands must be of one real type: input is %s, weight %s%s%s", tutti_dtype_name(x->dtype),
                          tutti_dtype_name(w->dtype), b != NULL ? ", bias " : "",
                          b != NULL ? tutti_dtype_name(b->dtype) : "");
    if (x->nd != 4 || w->nd != 4)
        return tti_refuse(TUTTI_E_ARG, "conv2d", "input %s and weight %s need four dimensions each",
                          tti_shape_str(x->nd, x->shape).s, tti_shape_str(w->nd, w->shape).s);
    st = check_sizes(x, w);
    if (st != TUTTI_OK)
        return st;
    if (x->shape[1] != w->shape[1] * o->groups || w->shape[0] % o->groups != 0)
        return tti_refuse(TUTTI_E_ARG, "conv2d", "input %s does not fit to weight %s in %d groups",
                          tti_shape_str(x->nd, x->shape).s, tti_shape_str(w->nd, w->shape).s,
                          o->groups);
    if (b != NULL && (b->nd != 1 || b->shape[0] != w->shape[0]))
        return tti_refuse(TUTTI_E_ARG, "conv2d", "bias %s does not fit to weight %s",
                          tti_shape_str(b->nd, b->shape).s, tti_shape_str(w->nd, w->shape).s);
    return check_windows(x, w, o);
}

tutti_tensor *tutti_tensor_conv2d(tutti_tensor *x, tutti_tensor *weight, tutti_tensor *bias,
                                  const tutti_conv2d_options *opts)
{
    static const tti_node_class conv2d_class = { .name = "conv2d", .apply = conv2d_apply };
    tutti_conv2d_options o;
    tutti_tensor *y;
    tti_node *node;
    geometry g;

    if (x == NULL || weight == NULL)
        return tti_poisoned("conv2d");
    if (tti_has_half(x) && weight->dtype == x->dtype && (bias == NULL || bias->dtype == x->dtype)) {
        tutti_scope_begin();
        return tti_rounded(tutti_tensor_conv2d(tti_widened(x), tti_widened(weight), tti_widened(bias), opts),
                           x->dtype);
    }
    if (!tti_conv2d_options_get("conv2d", opts, &o) || check(x, weight, bias, &o) != TUTTI_OK)
        return NULL;
    g = measure(x->shape, weight->shape, &o);
    tutti_scope_begin();
    y = forward(&g, tti_temp(tti_raw_contiguous(x)), tti_temp(tti_raw_contiguous(weight)),
                bias != NULL ? tti_temp(tti_raw_contiguous(bias)) : NULL);
    tutti_scope_end();
    node = tti_record(&y, &conv2d_class, 3, (tutti_tensor *[]){ x, weight, bias });
    if (node != NULL) {
        note_options(node, &o);
        tti_save(node, 0, x);
        tti_save(node, 1, weight);
    }
    return tti_temp(y);
}
