/* SPDX-License-Identifier: BSD-3-Clause
 *
 * attention.c - scaled dot-product attention, block by block.
 *
 * Why     All products of queries and keys, T S numbers a head, are larger than anything else in a
 *         transformer. They are never held: a block of queries meets a block of keys, and what is left of
 *         it goes into the result.
 * How     Per query, m is the largest product so far, l the sum of e^(s - m). A block of keys with products
 *         s raises m to m', so what was summed is scaled by c = e^(m - m'):
 *             p = e^(s - m')    l = c l + sum of p    y = c y + p v        at the end  y = y / l
 *         Keys that a causal query cannot see are left out, whole blocks of them unmade.
 * Back    D = sum of g y per query. Blocks again: p = e^(s - m) / l, dropped pd = keep p / (1-P):
 *             dv += pd' g    dp = g v', dropped alike    ds = p (dp - D)
 *             dq += ds k scale    dk += ds' q scale
 * Drop    Number (batch, query, key) of a counted stream says whether a probability stays; the stream's
 *         key is one draw of the thread's generator. So forward and backward agree, and nothing is kept.
 * True    Blocks and their order depend on the shape alone, so the bits do. Rows without keys are 0.
 * Source  Milakov & Gimelshein 2018 (running softmax); Rabe & Staats 2021, Dao et al. 2022 (blocks). */
#include "nn/nn.h"

#include <limits.h>
#include <math.h>
#include <string.h>

#include "tensor/level.h"
#include "tensor/philox.h"

enum { QUERIES = 128, KEYS = 256, FEW_QUERIES = 64 };

/* A factor: matrices one after another in some order of memory. */
typedef struct matrices {
    const tutti_tensor *t;
    char *data;
    bool turned; /* columns side by side instead of rows */
    int64_t ld;
} matrices;

typedef struct attention {
    tutti_dtype dtype;
    size_t size; /* of an element */
    const tti_row_ops *rows;
    int n_lead;
    int64_t lead[TUTTI_MAX_DIMS];
    int64_t batches, t, s, e, v; /* queries, keys, their length, that of values */
    double scale, p;
    bool causal;
    uint64_t seed;
    matrices q, k, val, y; /* y: the result */
    double *stats;         /* per query: m, l */
    char *block, *block2;  /* QUERIES x KEYS each */
} attention;

/* ---- which probabilities stay --------------------------------------------------------------------- */

static uint32_t limit_of(double p)
{
    return p >= 1.0 ? UINT32_MAX : (uint32_t)(p * 0x1p32);
}

void tti_attention_keep(uint64_t seed, uint64_t first, int64_t n, double p, uint8_t *keep_out)
{
    const uint32_t limit = limit_of(p);
    uint32_t four[4];

    for (int64_t i = 0; i < n; i++) {
        const uint64_t number = first + (uint64_t)i, group = number / 4;

        if (i == 0 || number % 4 == 0)
            tti_philox((const uint32_t[]){ (uint32_t)group, (uint32_t)(group >> 32), 0, 0 }, seed,
                       four);
        keep_out[i] = four[number % 4] >= limit && p < 1.0;
    }
}

/* Zero what is dropped of a row of n, the keys from j on of query i of batch b; raise the rest. */
static void drop(const attention *a, int64_t b, int64_t i, int64_t j, int64_t n, char *row)
{
    const double raise = a->p < 1.0 ? 1.0 / (1.0 - a->p) : 0.0;
    uint8_t keep[KEYS];

    tti_attention_keep(a->seed, (uint64_t)((b * a->t + i) * a->s + j), n, a->p, keep);
    for (int64_t k = 0; k < n; k++) {
        if (a->dtype == TUTTI_F32)
            ((float *)row)[k] = keep[k] ? ((float *)row)[k] * (float)raise : 0.0f;
        else
            ((double *)row)[k] = keep[k] ? ((double *)row)[k] * raise : 0.0;
    }
}

/* ---- blocks --------------------------------------------------------------------------------------- */

/* Rows from r on of matrix b of m. */
static void *rows_at(const attention *a, const matrices *m, int64_t b, int64_t r)
{
    const int64_t at = tti_matrix_at(a->n_lead, a->lead, m->t, b) + (m->turned ? r : r * m->ld);

    return m->data + at * (int64_t)a->size;
}

/* One block: queries i .. i + n - 1 of batch b, keys j .. j + m - 1. */
typedef struct block {
    int64_t b, i, n, j, m;
} block;

/* How many of the block's keys query row i of it sees. */
static int64_t seen(const attention *a, const block *k, int64_t row)
{
    const int64_t n = a->causal ? k->i + row - k->j + 1 : k->m;

    return n < 0 ? 0 : n > k->m ? k->m : n;
}

/* out [n, m] = rows of x times rows of y, transposed, times alpha */
static void products(const attention *a, const block *k, const matrices *x, const matrices *y,
                     int64_t length, double alpha, char *out)
{
    const tti_gemm_shape s = { .ta = x->turned,
                               .tb = !y->turned,
                               .m = k->n,
                               .n = k->m,
                               .k = length,
                               .lda = x->ld,
                               .ldb = y->ld,
                               .ldc = KEYS };

    tti_gemm(a->dtype, &s, alpha, rows_at(a, x, k->b, k->i), rows_at(a, y, k->b, k->j), 0.0, out);
}

/* to [n or m rows, length] += alpha x (turned: x') times rows of y, where x is the block */
static void add_products(const attention *a, const block *k, bool turned, const char *x,
                         const matrices *y, int64_t length, double alpha, const matrices *to)
{
    const tti_gemm_shape s = { .ta = turned,
                               .tb = y->turned,
                               .m = turned ? k->m : k->n,
                               .n = length,
                               .k = turned ? k->n : k->m,
                               .lda = KEYS,
                               .ldb = y->ld,
                               .ldc = to->ld };

    tti_gemm(a->dtype, &s, alpha, x, rows_at(a, y, k->b, turned ? k->i : k->j), 1.0,
             rows_at(a, to, k->b, turned ? k->j : k->i));
}

/* ---- forward -------------------------------------------------------------------------------------- */

/* Row `row` of the block from products to e^(s - m), and what it does to m, l and y. */
static void fold_row(const attention *a, const block *k, int64_t row)
{
    char *s = a->block + (size_t)(row * KEYS) * a->size;
    double *stats = a->stats + 2 * (k->b * a->t + k->i + row);
    const int64_t n = seen(a, k, row);
    const double max = a->rows->max(n, s), m = max > stats[0] ? max : stats[0];
    const double shift = isinf(m) && m < 0 ? 0.0 : m;
    const double c = isinf(stats[0]) ? 0.0 : exp(stats[0] - shift);

    memset(s + (size_t)n * a->size, 0, (size_t)(k->m - n) * a->size);
    if (n == 0)
        return;
    stats[1] = stats[1] * c + a->rows->exp_sum(n, s, shift, s);
    stats[0] = m;
    if (c != 1.0 && k->j > 0)
        a->rows->scale(a->v, rows_at(a, &a->y, k->b, k->i + row), c);
    if (a->p > 0.0)
        drop(a, k->b, k->i + row, k->j, n, s);
}

static void finish_row(const attention *a, int64_t b, int64_t i)
{
    const double l = a->stats[2 * (b * a->t + i) + 1];

    if (a->s > 0)
        a->rows->scale(a->v, rows_at(a, &a->y, b, i), 1.0 / l);
}

/* Queries of a block. Where one block of keys is all and queries see only a part of it, smaller blocks compute fewer
 * products in vain. */
static int64_t queries_of(const attention *a)
{
    return a->causal && a->s <= KEYS ? FEW_QUERIES : QUERIES;
}

/* The keys that the last query of the block can see. */
static int64_t keys_of(const attention *a, const block *k)
{
    return a->causal && k->i + k->n < a->s ? k->i + k->n : a->s;
}

/* y is zero at first. */
static void forward(const attention *a)
{
    const int64_t queries = queries_of(a);

    for (int64_t b = 0; b < a->batches; b++)
        for (int64_t i = 0; i < a->t; i += queries) {
            block k = { .b = b, .i = i, .n = a->t - i < queries ? a->t - i : queries };
            const int64_t keys = keys_of(a, &k);

            for (int64_t r = 0; r < k.n; r++) {
                a->stats[2 * (b * a->t + i + r)] = -INFINITY;
                a->stats[2 * (b * a->t + i + r) + 1] = 0.0;
            }
            for (k.j = 0; k.j < keys; k.j += KEYS) {
                k.m = keys - k.j < KEYS ? keys - k.j : KEYS;
                products(a, &k, &a->q, &a->k, a->e, a->scale, a->block);
                for (int64_t r = 0; r < k.n; r++)
                    fold_row(a, &k, r);
                add_products(a, &k, false, a->block, &a->val, a->v, 1.0, &a->y);
            }
            for (int64_t r = 0; r < k.n; r++)
                finish_row(a, b, i + r);
        }
}

/* ---- backward ------------------------------------------------------------------------------------- */

typedef struct slopes {
    matrices g, dq, dk, dv; /* data NULL: not wanted */
    double *d;              /* per query: sum of g y */
} slopes;

/* Row `row` of both blocks: from products and g v' to ds in block2, and dropped p in block. */
static void back_row(const attention *a, const slopes *w, const block *k, int64_t row)
{
    const int64_t query = k->b * a->t + k->i + row, n = seen(a, k, row);
    char *s = a->block + (size_t)(row * KEYS) * a->size;
    char *ds = a->block2 + (size_t)(row * KEYS) * a->size;
    const double m = a->stats[2 * query], shift = isinf(m) && m < 0 ? 0.0 : m;

    memset(s + (size_t)n * a->size, 0, (size_t)(k->m - n) * a->size);
    memset(ds + (size_t)n * a->size, 0, (size_t)(k->m - n) * a->size);
    if (n == 0)
        return;
    a->rows->exp_scaled(n, s, shift, 1.0 / a->stats[2 * query + 1], s);
    if (a->p > 0.0)
        drop(a, k->b, k->i + row, k->j, n, ds);
    a->rows->softmax_back(n, ds, s, w->d[query], ds);
    if (a->p > 0.0)
        drop(a, k->b, k->i + row, k->j, n, s);
}

static void back_block(const attention *a, const slopes *w, const block *k)
{
    products(a, k, &a->q, &a->k, a->e, a->scale, a->block);
    products(a, k, &w->g, &a->val, a->v, 1.0, a->block2);
    for (int64_t r = 0; r < k->n; r++)
        back_row(a, w, k, r);
    if (w->dv.data != NULL)
        add_products(a, k, true, a->block, &w->g, a->v, 1.0, &w->dv);
    if (w->dq.data != NULL)
        add_products(a, k, false, a->block2, &a->k, a->e, a->scale, &w->dq);
    if (w->dk.data != NULL)
        add_products(a, k, true, a->block2, &a->q, a->e, a->scale, &w->dk);
}

/* The gradients are zero at first. Rows of g and y are contiguous. */
static void backward(const attention *a, const slopes *w)
{
    const int64_t queries = queries_of(a);

    for (int64_t b = 0; b < a->batches; b++) {
        for (int64_t i = 0; i < a->t; i++)
            w->d[b * a->t + i] =
                a->rows->dot(a->v, rows_at(a, &w->g, b, i), rows_at(a, &a->y, b, i));
        for (int64_t i = 0; i < a->t; i += queries) {
            block k = { .b = b, .i = i, .n = a->t - i < queries ? a->t - i : queries };
            const int64_t keys = keys_of(a, &k);

            for (k.j = 0; k.j < keys; k.j += KEYS) {
                k.m = keys - k.j < KEYS ? keys - k.j : KEYS;
                back_block(a, w, &k);
            }
        }
    }
}

/* ---- operands ------------------------------------------------------------------------------------- */

/* Inside of a scope. False when out of memory. */
static bool take(const tutti_tensor *x, matrices *m_out)
{
    m_out->t = tti_temp(tti_raw_matrices(x, &m_out->turned, &m_out->ld));
    m_out->data = m_out->t != NULL ? tti_at(m_out->t) : NULL;
    return m_out->t != NULL;
}

/* The same with rows side by side. */
static bool take_rows(const tutti_tensor *x, matrices *m_out)
{
    if (!take(x, m_out))
        return false;
    return !m_out->turned || take(tti_temp(tti_raw_clone(x)), m_out);
}

/* Zeros of the leading dimensions and [rows, length]; of four dimensions the second and third lie in
 * memory the other way round, as [B, T, H, E]. Owned. */
static tutti_tensor *zeros(const attention *a, int64_t rows, int64_t length)
{
    int64_t shape[TUTTI_MAX_DIMS];
    tutti_tensor *flat, *y;

    memcpy(shape, a->lead, sizeof shape);
    shape[a->n_lead] = rows;
    shape[a->n_lead + 1] = length;
    if (a->n_lead != 2)
        return tti_raw_zeros(a->dtype, a->n_lead + 2, shape);
    shape[1] = rows;
    shape[2] = a->lead[1];
    flat = tti_raw_zeros(a->dtype, 4, shape);
    y = tti_raw_transpose(flat, 1, 2);
    tutti_tensor_release(flat);
    return y;
}

/* Sizes and work space, in the open scope. */
static bool describe(const tutti_tensor *q, const tutti_tensor *k, const tutti_tensor *v,
                     attention *a)
{
    const int64_t room[2] = { QUERIES, KEYS };
    tutti_tensor *space = tti_temp(tti_raw_empty(q->dtype, 2, room));
    tutti_tensor *space2 = tti_temp(tti_raw_empty(q->dtype, 2, room));

    a->dtype = q->dtype;
    a->size = tutti_dtype_size(q->dtype);
    a->rows = tti_rows(q->dtype);
    a->n_lead = q->nd - 2;
    a->batches = 1;
    for (int d = 0; d < a->n_lead; d++) {
        a->lead[d] = q->shape[d];
        a->batches *= q->shape[d];
    }
    a->t = q->shape[q->nd - 2];
    a->e = q->shape[q->nd - 1];
    a->s = k->shape[k->nd - 2];
    a->v = v->shape[v->nd - 1];
    if (space == NULL || space2 == NULL || !take(q, &a->q) || !take(k, &a->k) || !take(v, &a->val))
        return false;
    a->block = tti_at(space);
    a->block2 = tti_at(space2);
    return true;
}

static bool take_zeros(const attention *a, bool wanted, int64_t rows, int64_t length,
                       tutti_tensor **out, matrices *m_out)
{
    if (!wanted)
        return true;
    *out = zeros(a, rows, length);
    return *out != NULL && take_rows(*out, m_out);
}

/* saved: q, k, v, y, stats. number: causal, seed. real: scale, p. */
static void attention_apply(tti_node *node, tutti_tensor *g, tutti_tensor **out)
{
    attention a = { .causal = node->number[0] != 0, .seed = (uint64_t)node->number[1] };
    slopes w = { 0 };
    tutti_tensor *sums;

    a.scale = node->real[0];
    a.p = node->real[1];
    if (!describe(tti_saved(node, 0), tti_saved(node, 1), tti_saved(node, 2), &a) ||
        !take_rows(tti_saved(node, 3), &a.y) || !take_rows(g, &w.g))
        return;
    a.stats = tti_at(tti_saved(node, 4));
    sums = tti_temp(tti_raw_empty(TUTTI_F64, 2, (const int64_t[]){ a.batches, a.t }));
    if (sums == NULL || !take_zeros(&a, tti_wants(node, 0), a.t, a.e, &out[0], &w.dq) ||
        !take_zeros(&a, tti_wants(node, 1), a.s, a.e, &out[1], &w.dk) ||
        !take_zeros(&a, tti_wants(node, 2), a.s, a.v, &out[2], &w.dv))
        return;
    w.d = tti_at(sums);
    if (a.s > 0)
        backward(&a, &w);
}

static const char op[] = "scaled_dot_product_attention";

static tutti_status check(const tutti_tensor *q, const tutti_tensor *k, const tutti_tensor *v)
{
    const int nd = q->nd;
    bool fits = nd >= 2 && k->nd == nd && v->nd == nd;

    if (!tti_is_real(q->dtype) || k->dtype != q->dtype || v->dtype != q->dtype)
        return tti_refuse(TUTTI_E_UNSUPPORTED, op,
                          "all operands must be of one real type: queries are %s, keys %s, values %s",
                          tutti_dtype_name(q->dtype), tutti_dtype_name(k->dtype), tutti_dtype_name(v->dtype));
    for (int d = 0; d < nd - 2 && fits; d++)
        fits = k->shape[d] == q->shape[d] && v->shape[d] == q->shape[d];
    fits = fits && k->shape[nd - 1] == q->shape[nd - 1] && v->shape[nd - 2] == k->shape[nd - 2];
    if (!fits)
        return tti_refuse(TUTTI_E_ARG, op, "queries %s, keys %s and values %s do not fit",
                          tti_shape_str(q->nd, q->shape).s, tti_shape_str(k->nd, k->shape).s,
                          tti_shape_str(v->nd, v->shape).s);
    for (int d = nd - 2; d < nd; d++)
        if (q->shape[d] > INT_MAX || k->shape[d] > INT_MAX || v->shape[d] > INT_MAX)
            return tti_refuse(TUTTI_E_UNSUPPORTED, op, "sizes above %d are not offered", INT_MAX);
    return TUTTI_OK;
}

static bool options_get(const tutti_attention_options *opts, tutti_attention_options *full_out)
{
    tutti_attention_options o = TUTTI_ATTENTION_OPTIONS;

    if (opts != NULL)
        o = *opts;
    if (o.size != sizeof o || !(o.dropout_p >= 0.0 && o.dropout_p <= 1.0)) {
        (void)tti_refuse(
            TUTTI_E_ARG, op,
            "options of %zu bytes, dropout %g\n  next: begin with TUTTI_ATTENTION_OPTIONS", o.size,
            o.dropout_p);
        return false;
    }
    *full_out = o;
    return true;
}

/* Inside of a scope; owned. */
static tutti_tensor *recorded(tutti_tensor *q, tutti_tensor *k, tutti_tensor *v,
                              const tutti_attention_options *o)
{
    static const tti_node_class attention_class = { .name = op, .apply = attention_apply };
    attention a = { .causal = o->is_causal, .p = o->dropout_p };
    tutti_tensor *stats, *y;
    tti_node *node;

    if (!describe(q, k, v, &a))
        return NULL;
    a.scale = o->scale != 0.0 ? o->scale : 1.0 / sqrt((double)a.e);
    a.seed = a.p > 0.0 ? tutti_generator_random64(NULL) : 0;
    y = zeros(&a, a.t, a.v);
    stats = tti_temp(tti_raw_empty(TUTTI_F64, 3, (const int64_t[]){ a.batches, a.t, 2 }));
    if (y == NULL || stats == NULL || !take_rows(y, &a.y)) {
        tutti_tensor_release(y);
        return NULL;
    }
    a.stats = tti_at(stats);
    forward(&a);
    node = tti_record(&y, &attention_class, 3, (tutti_tensor *[]){ q, k, v });
    if (node != NULL) {
        tti_save(node, 0, q);
        tti_save(node, 1, k);
        tti_save(node, 2, v);
        tti_save_result(node, 3, y);
        tti_save(node, 4, stats);
        node->number[0] = a.causal;
        node->number[1] = (int64_t)a.seed;
        node->real[0] = a.scale;
        node->real[1] = a.p;
    }
    return y;
}

tutti_tensor *tutti_tensor_scaled_dot_product_attention(tutti_tensor *q, tutti_tensor *k,
                                                        tutti_tensor *v,
                                                        const tutti_attention_options *opts)
{
    tutti_attention_options o;
    tutti_tensor *y;

    if (q == NULL || k == NULL || v == NULL)
        return tti_poisoned(op);
    if (tti_has_half(q) && k->dtype == q->dtype && v->dtype == q->dtype) {
        tutti_scope_begin();
        return tti_rounded(tutti_tensor_scaled_dot_product_attention(tti_widened(q), tti_widened(k),
                                                                     tti_widened(v), opts),
                           q->dtype);
    }
    if (!options_get(opts, &o) || check(q, k, v) != TUTTI_OK)
        return NULL;
    tutti_scope_begin();
    y = recorded(q, k, v, &o);
    tutti_scope_end();
    return tti_temp(y);
}
