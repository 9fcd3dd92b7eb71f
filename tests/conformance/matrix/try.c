/* SPDX-License-Identifier: BSD-3-Clause */
#include "try.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "device.h"
#include "ops.h"

enum { GUARD = 96, OFFSETS = 17, BLOCK = 512, ELEMENT_MAX = 16, PERIOD = 256 };

bool tt_untagged;

int tt_roll(const tt_try *t, int about, int a, int b, int n)
{
    return (int)(tt_mix(t->seed ^ tt_mix((uint64_t)about << 32 | (uint64_t)a << 16 | (uint64_t)b)) %
                 (uint64_t)n);
}

int tt_roll_own(const tt_try *t, int about, int n)
{
    return tt_roll(t, about, 1000 + t->rank, 0, n);
}

int64_t tt_any_count(const tt_try *t, int about, int a, int b)
{
    const int64_t n = t->count * tt_roll(t, about, a, b, 5) / 2;

    return t->count > 3 ? n + tt_roll(t, about + 1, a, b, 4) : n;
}

bool tt_is_root(const tt_try *t)
{
    return t->rank == t->root;
}

int tt_global(const tt_try *t, int rank)
{
    return tutti_get_global_rank(t->group, rank);
}

tutti_work **tt_work(tt_try *t)
{
    return &t->works[t->n_works];
}

tutti_status tt_begun(tt_try *t, tutti_status st)
{
    t->n_works += st == TUTTI_OK;
    return st;
}

tt_content tt_part(int from, int part)
{
    return (tt_content){ .kind = TT_PART, .from = from, .part = part };
}

tt_content tt_folded(int part)
{
    return (tt_content){ .kind = TT_FOLDED, .part = part };
}

tt_content tt_blank(void)
{
    return (tt_content){ .kind = TT_BLANK };
}

bool tt_wrong(tt_try *t, const char *format, ...)
{
    va_list args;

    if (t->words[0] == '\0') {
        va_start(args, format);
        vsnprintf(t->words, sizeof t->words, format, args);
        va_end(args);
    }
    return false;
}

/* ---- buffers ------------------------------------------------------------------------------------ */

/* What untouched memory looks like; it repeats after PERIOD bytes. */
static unsigned char pattern(size_t at)
{
    return (unsigned char)(0xa5 ^ (at * 37));
}

static void fill_pattern(unsigned char *mem, size_t bytes)
{
    unsigned char period[PERIOD];
    size_t        i;

    for (i = 0; i < PERIOD; i++)
        period[i] = pattern(i);
    for (i = 0; i < bytes; i += PERIOD)
        memcpy(mem + i, period, bytes - i < PERIOD ? bytes - i : PERIOD);
}

/* Objects are byte strings of the host, and so are sparse tensors. */
static bool is_of_host(const tt_try *t)
{
    return (t->row->traits & (TT_BYTES | TT_SUMS)) != 0;
}

tt_buf *tt_buf_new(tt_try *t, int64_t count)
{
    const size_t size = tutti_dtype_size(t->dtype);
    const size_t offset = size * (size_t)tt_roll_own(t, 900 + t->n_bufs, OFFSETS);
    tt_buf      *buf = &t->bufs[t->n_bufs < TT_BUFS_MAX ? t->n_bufs : TT_BUFS_MAX - 1];

    if (t->n_bufs < TT_BUFS_MAX)
        t->n_bufs++;
    else
        tt_wrong(t, "more buffers than TT_BUFS_MAX");
    buf->n_pieces = 0;
    buf->bytes = 2 * GUARD + offset + (size_t)count * size;
    buf->mem = tt_device_alloc(buf->bytes, is_of_host(t));
    if (buf->mem == NULL) {
        tt_wrong(t, "no memory for %lld elements", (long long)count);
        return buf;
    }
    fill_pattern(buf->mem, buf->bytes);
    buf->span = tutti_span_of(buf->mem + GUARD + offset, count, t->dtype);
    if (!is_of_host(t))
        buf->span.device = tt_device();
    return buf;
}

tutti_span tt_slice(tutti_span span, int64_t first, int64_t count)
{
    span.data = (char *)span.data + (size_t)first * tutti_dtype_size(span.dtype);
    span.count = count;
    return span;
}

tutti_span tt_buf_piece(tt_buf *buf, int64_t first, int64_t count, tt_content before, tt_content after)
{
    tt_piece *piece = &buf->pieces[buf->n_pieces++];

    *piece = (tt_piece){ .first = first, .count = count, .before = before, .after = after };
    return tt_slice(buf->span, first, count);
}

tutti_span tt_make(tt_try *t, int64_t count, tt_content before, tt_content after)
{
    return tt_buf_piece(tt_buf_new(t, count), 0, count, before, after);
}

/* ---- contents ----------------------------------------------------------------------------------- */

static uint64_t seed_of(const tt_try *t, int from, int part)
{
    return tt_mix(t->seed ^ tt_mix(0x70617274u + (uint64_t)from * 1009 + (uint64_t)part * 1000003));
}

void tt_part_elements(const tt_try *t, tt_content part, int64_t first, int64_t n, void *out)
{
    tt_elements(out, t->dtype, seed_of(t, part.from, part.part), first, n);
}

/* The factor of a rank, for PREMUL_SUM: exact and inexact ones. */
static double factor_of(const tt_try *t, int rank)
{
    static const double factors[] = { 0.5, 1.0 / 3.0, -2.0, 0.1, 1.0, 3.0 };

    return factors[tt_roll(t, 800, rank, 0, sizeof factors / sizeof factors[0])];
}

/* n elements of a content from element first on; blank has none. */
static void content(const tt_try *t, tt_content what, int64_t first, int64_t n, void *out)
{
    _Alignas(16) static _Thread_local unsigned char rows[TT_WORLD_MAX][BLOCK * ELEMENT_MAX];
    const void *pointers[TT_WORLD_MAX];
    double      factors[TT_WORLD_MAX];
    int         r;

    if (what.kind == TT_PART) {
        tt_part_elements(t, what, first, n, out);
        return;
    }
    for (r = 0; r < t->size; r++) {
        tt_elements(rows[r], t->dtype, seed_of(t, r, what.part), first, n);
        pointers[r] = rows[r];
        factors[r] = factor_of(t, r);
    }
    tt_fold(out, t->dtype, t->red, pointers, factors, t->host_of, t->size, n);
}

/* Buffers of a call are touched by memcpy and memcmp only: these the thread sanitizer sees, while values.c,
 * which would take it most of its time, works without it on memory of the thread's own. */
static void fill(const tt_try *t, const tt_buf *buf, const tt_piece *piece)
{
    _Alignas(16) unsigned char block[BLOCK * ELEMENT_MAX];
    const size_t               size = tutti_dtype_size(t->dtype);
    int64_t                    first, n;

    for (first = 0; piece->before.kind == TT_PART && first < piece->count; first += BLOCK) {
        n = piece->count - first < BLOCK ? piece->count - first : BLOCK;
        content(t, piece->before, first, n, block);
        memcpy(tt_slice(buf->span, piece->first + first, n).data, block, (size_t)n * size);
    }
}

static void describe(const tt_piece *piece, char *out, size_t bytes)
{
    if (piece->after.kind == TT_FOLDED)
        snprintf(out, bytes, "part %d of all ranks combined", piece->after.part);
    else
        snprintf(out, bytes, "part %d of rank %d%s", piece->after.part, piece->after.from,
                 piece->before.kind == TT_PART && piece->before.from == piece->after.from &&
                         piece->before.part == piece->after.part
                     ? ", which is only read,"
                     : "");
}

static bool wrong_element(tt_try *t, int number, const tt_piece *piece, int64_t at, const void *got,
                          const void *want)
{
    char is[80], must[80], what[96];

    tt_element_text(is, sizeof is, t->dtype, got);
    tt_element_text(must, sizeof must, t->dtype, want);
    describe(piece, what, sizeof what);
    return tt_wrong(t, "buffer %d: element %lld of %lld of %s is %s, not %s", number, (long long)at,
                    (long long)piece->count, what, is, must);
}

/* A piece against its content, block by block; what is combined goes into the bits. */
static bool check_piece(tt_try *t, int number, const tt_piece *piece)
{
    _Alignas(16) static _Thread_local unsigned char want[BLOCK * ELEMENT_MAX], got[BLOCK * ELEMENT_MAX];
    const size_t     size = tutti_dtype_size(t->dtype);
    const tutti_span span = tt_slice(t->bufs[number].span, piece->first, piece->count);
    int64_t          first, n, at;

    for (first = 0; first < piece->count; first += BLOCK) {
        n = piece->count - first < BLOCK ? piece->count - first : BLOCK;
        memcpy(got, (const unsigned char *)span.data + (size_t)first * size, (size_t)n * size);
        content(t, piece->after, first, n, want);
        at = tt_first_wrong(got, want, t->dtype, t->red, piece->after.kind != TT_FOLDED, n);
        if (at >= 0)
            return wrong_element(t, number, piece, first + at, got + (size_t)at * size,
                                 want + (size_t)at * size);
        if (piece->after.kind == TT_FOLDED)
            t->bits = tt_mix_bytes(t->bits, got, (size_t)n * size);
    }
    return true;
}

/* Where the next piece that holds something begins, at or after an element; count where there is none. */
static const tt_piece *next_piece(const tt_buf *buf, int64_t at)
{
    const tt_piece *found = NULL;
    int             p;

    for (p = 0; p < buf->n_pieces; p++)
        if (buf->pieces[p].after.kind != TT_BLANK && buf->pieces[p].count > 0 && buf->pieces[p].first >= at &&
            (found == NULL || buf->pieces[p].first < found->first))
            found = &buf->pieces[p];
    return found;
}

static bool check_pattern(tt_try *t, int number, const tt_buf *buf, size_t from, size_t to)
{
    size_t i;

    for (i = from; i < to; i++)
        if (buf->mem[i] != pattern(i))
            return tt_wrong(t, "buffer %d: byte %lld of %lld, counted from its first, was written to", number,
                            (long long)i - (long long)((unsigned char *)buf->span.data - buf->mem),
                            (long long)buf->span.count * (long long)tutti_dtype_size(t->dtype));
    return true;
}

/* Everything that no piece claims: before, between and after. */
static bool check_rest(tt_try *t, int number)
{
    const tt_buf   *buf = &t->bufs[number];
    const size_t    begin = (size_t)((unsigned char *)buf->span.data - buf->mem);
    const size_t    size = tutti_dtype_size(t->dtype);
    const tt_piece *piece;
    size_t          from = 0;
    int64_t         at = 0;

    while ((piece = next_piece(buf, at)) != NULL) {
        if (!check_pattern(t, number, buf, from, begin + (size_t)piece->first * size))
            return false;
        at = piece->first + piece->count;
        from = begin + (size_t)at * size;
    }
    return check_pattern(t, number, buf, from, buf->bytes);
}

/* ---- a try -------------------------------------------------------------------------------------- */

bool tt_try_prepare(tt_try *t)
{
    int b, p, r;

    for (r = 0; r < t->size; r++)
        t->host_of[r] = tt_global(t, r) * t->hosts / t->world;
    t->root = tt_roll(t, 1, 0, 0, t->size);
    t->in_place = tt_roll(t, 2, 0, 0, 2) == 1;
    t->op = (tutti_op){ .kind = t->red, .factor = factor_of(t, t->rank) };
    t->row->prepare(t);
    for (b = 0; b < t->n_bufs && t->words[0] == '\0'; b++)
        for (p = 0; p < t->bufs[b].n_pieces; p++)
            fill(t, &t->bufs[b], &t->bufs[b].pieces[p]);
    return t->words[0] == '\0';
}

static bool came_to(tt_try *t, tutti_status st)
{
    t->refused = t->refused || (st == TUTTI_E_UNSUPPORTED && t->may_refuse && t->words[0] == '\0');
    return st == TUTTI_OK || tt_wrong(t, "%s: %s", tutti_status_name(st), tutti_last_error());
}

static bool call(tt_try *t, tutti_status (*fn)(tt_try *t))
{
    return came_to(t, fn(t));
}

bool tt_try_block(tt_try *t)
{
    const bool ok = call(t, t->row->block);

    tt_device_wait();
    return ok;
}

bool tt_try_start(tt_try *t)
{
    return call(t, t->row->start);
}

bool tt_try_wait(tt_try *t)
{
    const int from = t->n_works > 0 ? tt_roll_own(t, 3, t->n_works) : 0;
    bool      ok = true;
    int       i;

    for (i = 0; i < t->n_works && (ok || t->refused); i++)
        ok = came_to(t, tutti_work_wait(t->works[(from + i) % t->n_works])) && ok;
    tt_device_wait();
    return ok;
}

bool tt_try_check(tt_try *t)
{
    int b, p;

    if (t->row->settle != NULL && !t->row->settle(t))
        return false;
    for (b = 0; b < t->n_bufs; b++) {
        for (p = 0; p < t->bufs[b].n_pieces; p++)
            if (t->bufs[b].pieces[p].after.kind != TT_BLANK && !check_piece(t, b, &t->bufs[b].pieces[p]))
                return false;
        if (!check_rest(t, b))
            return false;
    }
    return true;
}

static bool all_ended(const tt_try *t)
{
    int i;

    for (i = 0; i < t->n_works; i++)
        if (!tutti_work_is_completed(t->works[i]))
            return false;
    return true;
}

void tt_try_release(tt_try *t)
{
    const bool free_buffers = all_ended(t);
    int        i;

    for (i = 0; i < t->n_works; i++)
        tutti_work_free(t->works[i]);
    for (i = 0; i < t->n_bufs && free_buffers; i++)
        tt_device_free(t->bufs[i].mem, is_of_host(t));
    tutti_objects_free(&t->objects);
    tutti_sparse_free(&t->summed);
    free(t->indices);
    t->indices = NULL;
    t->n_works = 0;
    t->n_bufs = 0;
}
