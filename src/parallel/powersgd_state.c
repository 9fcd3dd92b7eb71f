/* SPDX-License-Identifier: BSD-3-Clause
 *
 * powersgd_state.c - what PowerSGD keeps from step to step, as bytes and back.
 *
 * How     A head, a record for each parameter (its error, its columns), and, batched, one for each bucket (the error behind
 *         its end, its columns). Numbers as the machine has them: a head from another kind of machine is not one.
 *         Reading goes through everything twice: once to look whether it fits, once to take it. */
#include "parallel/powersgd.h"

#include <stdlib.h>
#include <string.h>
#include "base/fnv.h"
#include <tutti/private.h>

static const char MAGIC[8] = "tuttiPSG";
enum { VERSION = 1, ORDER = 0x01020304 };

typedef struct head {
    char     magic[8];
    uint32_t version, order;
    int32_t  n, k;
    uint8_t  batched, feedback, warm, unused[5];
    uint64_t shapes; /* fingerprint */
    int64_t  iter, n_before, n_after, next_report;
} head;

typedef struct record {
    uint32_t m_each, q_each; /* bytes of an element; 0: there is none */
    int64_t  side;           /* of a bucket */
    int64_t  n_m, n_q;       /* elements */
    uint64_t list;           /* of a bucket */
} record;

/* Bytes that are written, or counted where data is NULL; or read. */
typedef struct tape {
    char  *data;
    size_t size, at;
} tape;

static void put(tape *t, const void *from, size_t bytes)
{
    if (t->data != NULL && bytes > 0)
        memcpy(t->data + t->at, from, bytes);
    t->at += bytes;
}

static uint64_t shapes_of(const tutti_powersgd *s)
{
    uint64_t print = TTI_FNV_BEGIN;
    int      i;

    for (i = 0; i < s->n; i++) {
        print = tti_fnv(print, &s->params[i].rows, sizeof s->params[i].rows);
        print = tti_fnv(print, &s->params[i].cols, sizeof s->params[i].cols);
    }
    return print;
}

static head head_of(const tutti_powersgd *s)
{
    head h = { .version = VERSION, .order = ORDER, .n = s->n, .k = s->opts.matrix_approximation_rank,
               .batched = s->opts.batched, .feedback = !s->opts.no_error_feedback, .warm = !s->opts.no_warm_start,
               .shapes = shapes_of(s), .iter = s->steps.n, .n_before = s->n_before, .n_after = s->n_after,
               .next_report = s->next_report };

    memcpy(h.magic, MAGIC, sizeof h.magic);
    return h;
}

/* ---- writing ---- */

static uint32_t each_of(tutti_dtype dtype, bool is_there)
{
    return is_there ? (uint32_t)tutti_dtype_size(dtype) : 0;
}

static void put_record(tape *t, const record *r, const void *m, const void *q)
{
    put(t, r, sizeof *r);
    put(t, m, (size_t)r->n_m * r->m_each);
    put(t, q, (size_t)r->n_q * r->q_each);
}

static void put_param(tape *t, const tutti_powersgd *s, const tti_powersgd_param *p)
{
    const record r = { .m_each = each_of(p->m_dtype, p->m != NULL && !s->opts.no_error_feedback), .n_m = p->numel,
                       .q_each = each_of(p->q.dtype, p->q.valid), .n_q = p->k * p->cols };

    put_record(t, &r, p->m, p->q.data);
}

static int64_t columns_of(const tutti_powersgd *s, int64_t side)
{
    return s->opts.matrix_approximation_rank < side ? s->opts.matrix_approximation_rank : side;
}

static void put_bucket(tape *t, const tutti_powersgd *s, const tti_powersgd_bucket *b)
{
    const record r = { .m_each = each_of(b->kept_dtype, b->tail != NULL), .n_m = b->n_tail,
                       .q_each = each_of(b->q.dtype, b->q.valid), .n_q = columns_of(s, b->side) * b->side,
                       .side = b->side, .list = b->list };

    put_record(t, &r, b->tail, b->q.data);
}

static void put_all(tape *t, const tutti_powersgd *s)
{
    const head h = head_of(s);
    int        i;

    t->at = 0;
    put(t, &h, sizeof h);
    for (i = 0; i < s->n; i++)
        put_param(t, s, &s->params[i]);
    for (i = 0; i < s->n && s->opts.batched; i++)
        put_bucket(t, s, &s->buckets[i]);
}

tutti_status tutti_powersgd_save(const tutti_powersgd *state, tutti_bytes *bytes_out)
{
    tape t = { .data = NULL };

    if (state == NULL || bytes_out == NULL)
        return tti_fail(TUTTI_E_ARG, "powersgd_save: the %s is NULL", state == NULL ? "state" : "output");
    put_all(&t, state);
    t.data = malloc(t.at + 1);
    if (t.data == NULL)
        return tti_fail(TUTTI_E_NOMEM, "no memory for the state of PowerSGD: %zu bytes", t.at);
    put_all(&t, state);
    t.data[t.at] = '\0';
    *bytes_out = (tutti_bytes){ .data = t.data, .size = t.at };
    return TUTTI_OK;
}

/* ---- reading ---- */

/* The next bytes; NULL: there are not so many. */
static const void *take(tape *t, size_t bytes)
{
    const char *here = t->data + t->at;

    if (bytes > t->size - t->at)
        return NULL;
    t->at += bytes;
    return here;
}

static tutti_status fail_broken(const tape *t)
{
    return tti_fail(TUTTI_E_ARG, "powersgd_load: these %zu bytes are not what powersgd_save() has made, or not all of it",
                    t->size);
}

static tutti_status check_head(const tutti_powersgd *s, const head *h, const tape *t)
{
    if (memcmp(h->magic, MAGIC, sizeof h->magic) != 0 || h->version != VERSION || h->order != ORDER)
        return fail_broken(t);
    if (h->n != s->n || h->shapes != shapes_of(s))
        return tti_fail(TUTTI_E_MISMATCH, "powersgd_load: it was saved with %d parameters%s", h->n,
                        h->n == s->n ? ", of other shapes" : "");
    if (h->k != s->opts.matrix_approximation_rank || h->batched != s->opts.batched)
        return tti_fail(TUTTI_E_MISMATCH, "powersgd_load: it was saved with rank %d%s, and here it is %d%s", h->k,
                        h->batched ? ", batched" : "", s->opts.matrix_approximation_rank,
                        s->opts.batched ? ", batched" : "");
    if (h->feedback == s->opts.no_error_feedback || h->warm == s->opts.no_warm_start)
        return tti_fail(TUTTI_E_MISMATCH, "powersgd_load: it was saved with error feedback %d and warm start %d",
                        h->feedback, h->warm);
    return TUTTI_OK;
}

/* Elements of so many bytes each; 0: none. */
static bool is_width(uint32_t each)
{
    return each == 0 || each == sizeof(float) || each == sizeof(double);
}

static const void *take_array(tape *t, uint32_t each, int64_t n)
{
    return n < 0 || !is_width(each) || (each > 0 && (uint64_t)n > SIZE_MAX / each) ? NULL : take(t, (size_t)n * each);
}

/* A copy of what was read, if there is something. */
static tutti_status copy(const void *from, uint32_t each, int64_t n, void **data, tutti_dtype *dtype)
{
    const size_t bytes = (size_t)n * each;

    free(*data);
    *data = NULL;
    if (each == 0)
        return TUTTI_OK;
    *data = malloc(bytes > 0 ? bytes : 1);
    if (*data == NULL)
        return tti_fail(TUTTI_E_NOMEM, "no memory for the state of PowerSGD: %zu bytes", bytes);
    memcpy(*data, from, bytes);
    *dtype = each == sizeof(double) ? TUTTI_F64 : TUTTI_F32;
    return TUTTI_OK;
}

static tutti_status take_columns(const void *from, const record *r, tti_columns *q)
{
    tutti_status st = copy(from, r->q_each, r->n_q, &q->data, &q->dtype);

    q->valid = st == TUTTI_OK && q->data != NULL;
    return st;
}

static tutti_status take_record(tape *t, record *r, const void **m_out, const void **q_out)
{
    const record *here = take(t, sizeof *r);

    if (here == NULL)
        return fail_broken(t);
    memcpy(r, here, sizeof *r);
    *m_out = take_array(t, r->m_each, r->n_m);
    *q_out = *m_out != NULL ? take_array(t, r->q_each, r->n_q) : NULL;
    return *q_out != NULL ? TUTTI_OK : fail_broken(t);
}

static tutti_status take_param(tape *t, tti_powersgd_param *p, bool for_good)
{
    const void  *m, *q;
    record       r;
    tutti_status st = take_record(t, &r, &m, &q);

    if (st == TUTTI_OK && (r.n_m != p->numel || r.n_q != p->k * p->cols))
        st = fail_broken(t);
    if (st != TUTTI_OK || !for_good)
        return st;
    st = copy(m, r.m_each, r.n_m, &p->m, &p->m_dtype);
    return st == TUTTI_OK ? take_columns(q, &r, &p->q) : st;
}

/* What fits to the bucket is seen when it comes: by its fingerprint, and then by its dtype. */
static tutti_status take_bucket(tape *t, tti_powersgd_bucket *b, bool for_good)
{
    const void  *m, *q;
    record       r;
    tutti_status st = take_record(t, &r, &m, &q);

    if (st == TUTTI_OK && (r.side < 0 || r.side > INT32_MAX || r.n_q != columns_of(b->of, r.side) * r.side))
        st = fail_broken(t);
    if (st != TUTTI_OK || !for_good)
        return st;
    b->list = r.list;
    b->side = r.side;
    b->n_tail = r.n_m;
    st = copy(m, r.m_each, r.n_m, &b->tail, &b->kept_dtype);
    return st == TUTTI_OK ? take_columns(q, &r, &b->q) : st;
}

static tutti_status take_all(tape *t, tutti_powersgd *s, bool for_good)
{
    const void  *here;
    head         h;
    tutti_status st;
    int          i;

    t->at = 0;
    here = take(t, sizeof h);
    if (here == NULL)
        return fail_broken(t);
    memcpy(&h, here, sizeof h);
    st = check_head(s, &h, t);
    for (i = 0; i < s->n && st == TUTTI_OK; i++)
        st = take_param(t, &s->params[i], for_good);
    for (i = 0; i < s->n && st == TUTTI_OK && s->opts.batched; i++)
        st = take_bucket(t, &s->buckets[i], for_good);
    if (st == TUTTI_OK && t->at != t->size)
        st = fail_broken(t);
    if (st != TUTTI_OK || !for_good)
        return st;
    s->steps = (tti_hook_steps){ .n = h.iter, .last = TTI_STEP_OVER };
    s->has_met = false;
    s->n_before = h.n_before;
    s->n_after = h.n_after;
    s->next_report = h.next_report;
    return TUTTI_OK;
}

static void forget(tutti_powersgd *s)
{
    int i;

    for (i = 0; i < s->n; i++) {
        tti_powersgd_param_forget(&s->params[i]);
        s->buckets[i].q.valid = false;
        s->buckets[i].list = 0;
    }
    s->steps = (tti_hook_steps){ .n = 0, .last = TTI_STEP_OVER };
    s->n_before = s->n_after = s->next_report = 0;
    s->has_met = false;
}

tutti_status tutti_powersgd_load(tutti_powersgd *state, const void *data, size_t bytes)
{
    tape         t = { .size = bytes };
    tutti_status st;

    if (state == NULL || data == NULL)
        return tti_fail(TUTTI_E_ARG, "powersgd_load: the %s is NULL", state == NULL ? "state" : "data");
    t.data = malloc(bytes + 1); /* aligned, and not const */
    if (t.data == NULL)
        return tti_fail(TUTTI_E_NOMEM, "no memory for the state of PowerSGD: %zu bytes", bytes);
    memcpy(t.data, data, bytes);
    st = take_all(&t, state, false);
    if (st == TUTTI_OK) {
        st = take_all(&t, state, true);
        if (st != TUTTI_OK)
            forget(state);
    }
    free(t.data);
    return st;
}
