/* SPDX-License-Identifier: BSD-3-Clause
 *
 * powersgd_matrices.c - what PowerSGD computes of a bucket: before, between and after its two messages.
 *
 * How     first    M = gradient + error; draw or take Q, make it orthonormal; P = M Q. What is whole goes with P.
 *         second   average of P, made orthonormal; Q = M^T P.
 *         finish   average of Q; gradient = P Q^T; error = M - that; Q for the next step.
 *         With error feedback M is made where the error is, which it becomes again: no copy. Without, the bucket is
 *         M. f16 and bf16 have an M of f32. Batched, M is the bucket, made square with zeros behind it.
 * True    P and Q are averages over the group, and everything that is made of them alone is the same on all ranks: the
 *         result, which columns are zero and drawn anew, whether something was not finite. Only M is a rank's own.
 *         P is divided by the ranks like Q. That changes nothing of what is orthonormal, once epsilon is, too. */
#include "parallel/powersgd.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/fnv.h"
#include <tutti/private.h>

static void *at(const void *base, tutti_dtype dtype, int64_t element)
{
    return (char *)base + (size_t)element * tutti_dtype_size(dtype);
}

static bool has_feedback(const tti_powersgd_bucket *b)
{
    return !b->of->opts.no_error_feedback;
}

/* Whether the bucket can be computed with where it is. */
static bool is_native(const tti_powersgd_bucket *b)
{
    return b->buffer.dtype == b->dtype;
}

static tti_powersgd_param *param(const tti_powersgd_bucket *b, int k)
{
    return &b->of->params[b->params[k]];
}

/* ---- going through the matrices ---- */

static void view_square(tti_powersgd_bucket *b, tti_powersgd_view *v)
{
    v->id = b->index;
    v->of.rows = v->of.cols = b->side;
    v->of.k = b->of->opts.matrix_approximation_rank < b->side ? b->of->opts.matrix_approximation_rank : (int)b->side;
    v->m = b->square;
    v->kept = &b->q;
    v->offset = 0;
    v->at = b->n_params;
}

static void view_param(const tti_powersgd_bucket *b, tti_powersgd_view *v)
{
    tti_powersgd_param *p = param(b, v->at);

    v->id = b->params[v->at];
    v->of.rows = p->rows;
    v->of.cols = p->cols;
    v->of.k = p->k;
    v->kept = &p->q;
    v->offset = b->offsets[v->at];
    v->m = p->m != NULL ? p->m : at(b->buffer.data, b->dtype, v->offset);
    v->at++;
}

bool tti_powersgd_next(tti_powersgd_bucket *b, tti_powersgd_view *v)
{
    if (v->at == 0) {
        v->of.dtype = b->dtype;
        v->p_at = b->n_whole;
    }
    while (!b->of->opts.batched && v->at < b->n_params && param(b, v->at)->k == 0)
        v->at++;
    if (v->at >= b->n_params || (b->of->opts.batched && b->side == 0))
        return false;
    if (b->of->opts.batched)
        view_square(b, v);
    else
        view_param(b, v);
    v->p = at(b->first.data, b->dtype, v->p_at);
    v->q = at(b->second.data, b->dtype, v->q_at);
    v->p_at += v->of.rows * v->of.k;
    v->q_at += v->of.cols * v->of.k;
    return true;
}

/* ---- memory ---- */

static tutti_status fit_memory(void **data, size_t bytes)
{
    free(*data);
    *data = calloc(1, bytes > 0 ? bytes : 1);
    return *data != NULL ? TUTTI_OK : tti_fail(TUTTI_E_NOMEM, "no memory for PowerSGD: %zu bytes", bytes);
}

void tti_powersgd_param_forget(tti_powersgd_param *p)
{
    free(p->m);
    free(p->q.data);
    p->m = NULL;
    p->q = (tti_columns){ 0 };
}

void tti_powersgd_bucket_release(tti_powersgd_bucket *b)
{
    tti_hook_buffer_release(&b->first);
    tti_hook_buffer_release(&b->second);
    free(b->row);
    free(b->square);
    free(b->tail);
    free(b->q.data);
}

/* Room for the error of a parameter, and for its matrix where the bucket is not one. */
static tutti_status fit_param(const tti_powersgd_bucket *b, tti_powersgd_param *p)
{
    const bool needed = has_feedback(b) || (!is_native(b) && !b->of->opts.batched);

    if (p->m != NULL && p->m_dtype != b->dtype)
        tti_powersgd_param_forget(p); /* loaded from where it was computed otherwise */
    if (!needed || p->m != NULL || (p->k == 0 && !b->of->opts.batched))
        return TUTTI_OK;
    p->m_dtype = b->dtype;
    return fit_memory(&p->m, (size_t)p->numel * tutti_dtype_size(b->dtype));
}

static tutti_status fit_columns(const tti_matrix *of, tti_columns *columns)
{
    if (columns->data != NULL && columns->dtype == of->dtype)
        return TUTTI_OK;
    *columns = (tti_columns){ .data = columns->data, .dtype = of->dtype };
    return fit_memory(&columns->data, (size_t)(of->k * of->cols) * tutti_dtype_size(of->dtype));
}

static uint64_t fingerprint(const tti_powersgd_bucket *b)
{
    return tti_fnv(TTI_FNV_BEGIN, b->params, (size_t)b->n_params * sizeof *b->params);
}

/* The square of another list of parameters has other columns, and another end. What was loaded says which one it is of:
 * the number of columns follows from the side, whatever the rest says. */
static void forget_others(tti_powersgd_bucket *b, uint64_t list, int64_t side)
{
    const int64_t n_tail = side * side - b->buffer.count;

    if (b->list == list && b->kept_dtype == b->dtype && b->side == side && b->n_tail == n_tail)
        return;
    free(b->q.data);
    free(b->tail);
    b->q = (tti_columns){ 0 };
    b->tail = NULL;
    b->list = list;
    b->kept_dtype = b->dtype;
    b->side = side;
    b->n_tail = n_tail;
}

static tutti_status fit_square(tti_powersgd_bucket *b)
{
    const size_t each = tutti_dtype_size(b->dtype);
    tutti_status st = TUTTI_OK;

    if (b->square == NULL || b->square_bytes != (size_t)(b->side * b->side) * each) {
        b->square_bytes = (size_t)(b->side * b->side) * each;
        st = fit_memory(&b->square, b->square_bytes);
    }
    if (st == TUTTI_OK && has_feedback(b) && b->tail == NULL)
        st = fit_memory(&b->tail, (size_t)b->n_tail * each);
    return st;
}

/* Which matrices it has, and how many elements its messages have. */
static void look(tti_powersgd_bucket *b, const tutti_grad_bucket *bucket)
{
    tti_powersgd_view v = { .at = 0 };
    int               k;

    b->buffer = bucket->buffer;
    b->n_params = bucket->n_params;
    b->params = bucket->params;
    b->offsets = bucket->offsets;
    b->dtype = bucket->buffer.dtype == TUTTI_F64 ? TUTTI_F64 : TUTTI_F32;
    b->n_whole = 0;
    b->n_matrices = 0;
    for (k = 0; k < b->n_params && !b->of->opts.batched; k++)
        if (param(b, k)->k == 0)
            b->n_whole += param(b, k)->numel;
    if (b->of->opts.batched)
        forget_others(b, fingerprint(b), (int64_t)ceil(sqrt((double)b->buffer.count)));
    while (tti_powersgd_next(b, &v))
        b->n_matrices++;
    b->n_first = b->n_matrices > 0 ? v.p_at : 0;
    b->n_second = v.q_at;
}

tutti_status tti_powersgd_fit(tti_powersgd_bucket *b, const tutti_grad_bucket *bucket)
{
    look(b, bucket);
    if (b->n_matrices == 0)
        return TUTTI_OK;
    return tti_hook_buffer_fit(&b->first, (size_t)b->n_first * tutti_dtype_size(b->dtype));
}

/* Columns, the second message, and the longest row of a result. */
static tutti_status fit_matrices(tti_powersgd_bucket *b)
{
    const size_t      each = tutti_dtype_size(b->dtype);
    tti_powersgd_view v = { .at = 0 };
    int64_t           longest = 0;
    tutti_status      st = TUTTI_OK;

    while (st == TUTTI_OK && tti_powersgd_next(b, &v)) {
        longest = v.of.cols > longest ? v.of.cols : longest;
        st = fit_columns(&v.of, v.kept);
    }
    if (st == TUTTI_OK)
        st = tti_hook_buffer_fit(&b->second, (size_t)b->n_second * each);
    if (st == TUTTI_OK && (b->row == NULL || b->row_bytes < (size_t)longest * each)) {
        b->row_bytes = (size_t)longest * each;
        st = fit_memory(&b->row, b->row_bytes);
    }
    return st;
}

/* Everything but the first message. */
static tutti_status fit_rest(tti_powersgd_bucket *b)
{
    tutti_status st = TUTTI_OK;
    int          k;

    for (k = 0; k < b->n_params && st == TUTTI_OK; k++)
        st = fit_param(b, param(b, k));
    if (st == TUTTI_OK && b->of->opts.batched)
        st = fit_square(b);
    return st == TUTTI_OK ? fit_matrices(b) : st;
}

/* ---- columns to begin with ---- */

static tutti_status draw_by_program(const tti_powersgd_bucket *b, const tti_powersgd_view *v, int64_t iter)
{
    const tutti_powersgd_matrix wanted = { .size = sizeof wanted, .iter = iter, .index = v->id, .rows = v->of.cols,
                                           .cols = v->of.k };
    double                     *q = calloc((size_t)(v->of.cols * v->of.k), sizeof *q);
    int64_t                     j;
    int                         c;

    if (q == NULL)
        return tti_fail(TUTTI_E_NOMEM, "no memory for columns that the program draws");
    b->of->opts.draw(b->of->opts.draw_ctx, &wanted, q);
    for (c = 0; c < v->of.k; c++)
        for (j = 0; j < v->of.cols; j++)
            tti_convert(at(v->kept->data, b->dtype, c * v->of.cols + j), b->dtype, &q[j * v->of.k + c], TUTTI_F64, 1);
    free(q);
    return TUTTI_OK;
}

static void *column(const tti_powersgd_view *v, int c)
{
    return at(v->kept->data, v->of.dtype, c * v->of.cols);
}

static void draw_column(const tti_powersgd_bucket *b, const tti_powersgd_view *v, int c, int64_t iter)
{
    const uint64_t key = tti_lowrank_key(b->of->opts.random_seed, (uint64_t)iter, (uint64_t)v->id);

    tti_lowrank_draw(b->dtype, column(v, c), v->of.cols, key, (uint64_t)(c * v->of.cols));
}

/* A column that has become zero would stay so: it is drawn again. */
static void draw_what_is_zero(const tti_powersgd_bucket *b, const tti_powersgd_view *v, int64_t iter)
{
    bool lacks = false;
    int  c;

    for (c = 0; c < v->of.k; c++)
        if (tti_lowrank_is_zero(b->dtype, column(v, c), v->of.cols)) {
            draw_column(b, v, c, iter);
            lacks = true;
        }
    if (lacks)
        tti_lowrank_orthogonalise(b->dtype, v->kept->data, v->of.cols, v->of.k,
                                  b->of->opts.orthogonalization_epsilon);
}

/* Orthonormal columns in v->kept. */
static tutti_status begin_columns(const tti_powersgd_bucket *b, const tti_powersgd_view *v, int64_t iter)
{
    tutti_status st = TUTTI_OK;
    int          c;

    if (!v->kept->valid && b->of->opts.draw != NULL)
        st = draw_by_program(b, v, iter);
    else
        for (c = 0; c < v->of.k && !v->kept->valid; c++)
            draw_column(b, v, c, iter);
    if (st != TUTTI_OK)
        return st;
    tti_lowrank_orthogonalise(b->dtype, v->kept->data, v->of.cols, v->of.k, b->of->opts.orthogonalization_epsilon);
    if (v->kept->valid)
        draw_what_is_zero(b, v, iter);
    return TUTTI_OK;
}

/* ---- the first message ---- */

/* m, if it is not the bucket's own memory, becomes the gradient, or the gradient on top of the error. */
static void add_gradient(const tti_powersgd_bucket *b, void *m, int64_t offset, int64_t n)
{
    enum { PIECE = 512 };
    const char *gradient = at(b->buffer.data, b->buffer.dtype, offset);
    float       piece[PIECE];
    int64_t     done, some;

    if (!has_feedback(b))
        tti_convert(m, b->dtype, gradient, b->buffer.dtype, n);
    else if (is_native(b))
        tti_lowrank_add(b->dtype, m, gradient, n);
    else
        for (done = 0; done < n; done += some) {
            some = n - done < PIECE ? n - done : PIECE;
            tti_convert(piece, TUTTI_F32, at(gradient, b->buffer.dtype, done), b->buffer.dtype, some);
            tti_lowrank_add(TUTTI_F32, at(m, TUTTI_F32, done), piece, some);
        }
}

static void make_square(tti_powersgd_bucket *b)
{
    const int64_t count = b->buffer.count;
    void         *tail = at(b->square, b->dtype, count);
    int           k;

    tti_convert(b->square, b->dtype, b->buffer.data, b->buffer.dtype, count);
    memset(tail, 0, (size_t)b->n_tail * tutti_dtype_size(b->dtype));
    if (!has_feedback(b))
        return;
    for (k = 0; k < b->n_params; k++)
        tti_lowrank_add(b->dtype, at(b->square, b->dtype, b->offsets[k]), param(b, k)->m, param(b, k)->numel);
    tti_lowrank_add(b->dtype, tail, b->tail, b->n_tail);
}

/* Parameters that are sent whole: one after the other, to the message or back. */
static void copy_whole(tti_powersgd_bucket *b, bool back)
{
    int64_t to = 0;
    int     k;

    for (k = 0; k < b->n_params && !b->of->opts.batched; k++) {
        const tti_powersgd_param *p = param(b, k);
        void                     *here = at(b->buffer.data, b->buffer.dtype, b->offsets[k]);
        void                     *there = at(b->first.data, b->dtype, to);

        if (p->k > 0)
            continue;
        if (back)
            tti_convert(here, b->buffer.dtype, there, b->dtype, p->numel);
        else
            tti_convert(there, b->dtype, here, b->buffer.dtype, p->numel);
        to += p->numel;
    }
}

tutti_status tti_powersgd_fill_first(tti_powersgd_bucket *b, int64_t iter)
{
    tti_powersgd_view v = { .at = 0 };
    tutti_status      st = fit_rest(b);

    if (st != TUTTI_OK)
        return st;
    copy_whole(b, false);
    if (b->of->opts.batched)
        make_square(b);
    while (st == TUTTI_OK && tti_powersgd_next(b, &v)) {
        if (!b->of->opts.batched && v.m != at(b->buffer.data, b->dtype, v.offset))
            add_gradient(b, v.m, v.offset, v.of.rows * v.of.cols);
        st = begin_columns(b, &v, iter);
        if (st == TUTTI_OK)
            tti_lowrank_left(&v.of, v.m, v.kept->data, v.p);
    }
    return st;
}

/* ---- the second one ---- */

void tti_powersgd_fill_second(tti_powersgd_bucket *b)
{
    const double      epsilon = b->of->opts.orthogonalization_epsilon / b->of->size;
    tti_powersgd_view v = { .at = 0 };

    copy_whole(b, true);
    while (tti_powersgd_next(b, &v)) {
        tti_lowrank_orthogonalise(b->dtype, v.p, v.of.rows, v.of.k, epsilon);
        tti_lowrank_right(&v.of, v.m, v.p, v.q);
    }
}

/* ---- the result ---- */

/* Elements of row i that are in the bucket: all but those that make it square. */
static int64_t row_in_bucket(const tti_powersgd_bucket *b, const tti_powersgd_view *v, int64_t i)
{
    const int64_t left = b->buffer.count - v->offset - i * v->of.cols;

    return left < v->of.cols ? left > 0 ? left : 0 : v->of.cols;
}

static void put_result(tti_powersgd_bucket *b, const tti_powersgd_view *v)
{
    int64_t i, n;

    for (i = 0; i < v->of.rows; i++) {
        tti_lowrank_row(&v->of, v->p, v->q, i, b->row);
        if (has_feedback(b))
            tti_lowrank_subtract(b->dtype, at(v->m, b->dtype, i * v->of.cols), b->row, v->of.cols);
        n = row_in_bucket(b, v, i);
        if (n > 0)
            tti_convert(at(b->buffer.data, b->buffer.dtype, v->offset + i * v->of.cols), b->buffer.dtype, b->row,
                        b->dtype, n);
    }
}

/* The errors of the square to their parameters. */
static void keep_square(tti_powersgd_bucket *b)
{
    const size_t  each = tutti_dtype_size(b->dtype);
    const int64_t count = b->buffer.count;
    int           k;

    for (k = 0; k < b->n_params; k++)
        if (param(b, k)->numel > 0)
            memcpy(param(b, k)->m, at(b->square, b->dtype, b->offsets[k]), (size_t)param(b, k)->numel * each);
    memcpy(b->tail, at(b->square, b->dtype, count), (size_t)b->n_tail * each);
}

/* Columns for the next step; not those of gradients that were not finite, nor their errors. */
static void keep_columns(tti_powersgd_bucket *b, const tti_powersgd_view *v)
{
    const size_t bytes = (size_t)(v->of.k * v->of.cols) * tutti_dtype_size(b->dtype);
    const bool   finite = tti_lowrank_is_finite(b->dtype, v->q, v->of.k * v->of.cols);

    v->kept->valid = finite && !b->of->opts.no_warm_start;
    if (v->kept->valid)
        memcpy(v->kept->data, v->q, bytes);
    if (!finite && has_feedback(b))
        memset(v->m, 0, (size_t)(v->of.rows * v->of.cols) * tutti_dtype_size(b->dtype));
}

void tti_powersgd_finish(tti_powersgd_bucket *b)
{
    tti_powersgd_view v = { .at = 0 };

    while (tti_powersgd_next(b, &v)) {
        put_result(b, &v);
        keep_columns(b, &v);
    }
    if (b->of->opts.batched && has_feedback(b))
        keep_square(b);
}
