/* SPDX-License-Identifier: BSD-3-Clause
 *
 * verify.c - the same parameters and modes on all ranks, or an error on all of them.
 *
 * Why     Ranks that reduce different things would wait for each other, or average what does not belong together.
 * How     All ranks describe themselves as whole numbers, and gather four: a status, how many parameters, how many
 *         numbers, a fingerprint. Where all agree that is all. Else they gather the descriptions, too, and each words the
 *         first difference between rank 0 and the first rank that differs from it.
 * True    What is decided is decided from what all ranks have: no rank goes on alone. */
#include "parallel/parallel.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/fnv.h"
#include <tutti/private.h>

enum { STATUS, PARAMS, LENGTH, PRINT, WORDS, /* of what is gathered first */ MODES = 4, SHAPE_MAX = 160 };

/* find_unused, static_graph, n limits, skip, limits; then for each parameter dtype, ndim, sizes, strides. */
static int64_t *describe(const tutti_reducer *r, int64_t *length_out)
{
    int64_t *text, *at;
    int64_t  length = MODES + 1 + r->caps.n_list;
    int      i;

    for (i = 0; i < r->n; i++)
        length += 2 + 2 * (int64_t)r->slots[i].ndim;
    text = at = calloc((size_t)length, sizeof *text);
    if (text == NULL)
        return NULL;
    *at++ = r->caps.find_unused;
    *at++ = r->caps.static_graph;
    *at++ = r->caps.n_list;
    *at++ = r->skips;
    *at++ = r->caps.cap;
    for (i = 0; i < r->caps.n_list; i++)
        *at++ = r->caps.list[i];
    for (i = 0; i < r->n; i++) {
        const tti_reducer_slot *s = &r->slots[i];

        *at++ = s->dtype;
        *at++ = s->ndim;
        memcpy(at, s->sizes, 2 * (size_t)s->ndim * sizeof *at);
        at += 2 * s->ndim;
    }
    *length_out = length;
    return text;
}

/* ---- words ---- */

static tutti_status fail_count(const tutti_reducer *r, const int64_t *all)
{
    int k;

    for (k = 0; k < r->size && all[k * WORDS + PARAMS] == r->n; k++)
        ;
    return tti_fail(TUTTI_E_MISMATCH,
                    "DDP expects same model across all ranks, but Rank %d has %d params, while rank %d has inconsistent "
                    "%" PRId64 " params",
                    r->rank, r->n, k, all[k * WORDS + PARAMS]);
}

static const char *shape_text(const int64_t *shape, int64_t ndim, char out[SHAPE_MAX])
{
    size_t  used = 0;
    int64_t d;

    out[0] = '\0';
    for (d = 0; d < ndim && used < SHAPE_MAX - 32; d++)
        used += (size_t)snprintf(out + used, SHAPE_MAX - used, "%s%" PRId64, d > 0 ? ", " : "", shape[d]);
    return out;
}

static tutti_status fail_shape(const tutti_reducer *r, int i, int other, const char *what, const int64_t *theirs,
                               int64_t n_theirs, const int64_t *first, int64_t n_first)
{
    const char *name = r->slots[i].name;
    char        a[SHAPE_MAX], b[SHAPE_MAX];

    return tti_fail(TUTTI_E_MISMATCH,
                    "[%d]: params[%d]%s%s%s in this process has %s [%s], which do not match %s [%s] of the same "
                    "parameter in process 0\n  next: make the same model on all ranks, parameters in the same order",
                    other, i, name != NULL ? " ('" : "", name != NULL ? name : "", name != NULL ? "')" : "", what,
                    shape_text(theirs, n_theirs, a), what, shape_text(first, n_first, b));
}

/* The first parameter that differs; at and from are where parameters begin in both descriptions. */
static tutti_status fail_param(const tutti_reducer *r, int other, const int64_t *at, const int64_t *from)
{
    char text[256];
    int  i;

    for (i = 0; i < r->n; i++) {
        if (at[0] != from[0])
            return tti_fail(TUTTI_E_MISMATCH, "%s is %s on rank %d of the group, and %s on rank 0",
                            tti_param_text(r, i, text, sizeof text), tutti_dtype_name((tutti_dtype)at[0]), other,
                            tutti_dtype_name((tutti_dtype)from[0]));
        if (at[1] != from[1] || memcmp(at + 2, from + 2, (size_t)at[1] * sizeof *at) != 0)
            return fail_shape(r, i, other, "sizes", at + 2, at[1], from + 2, from[1]);
        if (memcmp(at + 2 + at[1], from + 2 + at[1], (size_t)at[1] * sizeof *at) != 0)
            return fail_shape(r, i, other, "strides", at + 2 + at[1], at[1], from + 2 + at[1], at[1]);
        from += 2 + 2 * at[1];
        at += 2 + 2 * at[1];
    }
    return tti_fail(TUTTI_E_MISMATCH, "the parameters of rank %d of the group are not those of rank 0", other);
}

static tutti_status fail_difference(const tutti_reducer *r, int other, const int64_t *at, const int64_t *from)
{
    static const char *const modes[MODES] = { "find_unused_parameters", "static_graph", "n_bucket_caps",
                                                 "skip_all_reduce_unused_params" };
    int64_t                  k;

    for (k = 0; k < MODES; k++)
        if (at[k] != from[k])
            return tti_fail(TUTTI_E_MISMATCH, "%s is %" PRId64 " on rank %d of the group, and %" PRId64 " on rank 0",
                            modes[k], at[k], other, from[k]);
    for (; k <= MODES + at[2]; k++)
        if (at[k] != from[k])
            return tti_fail(TUTTI_E_MISMATCH,
                            "the cap of buckets is %" PRId64 " bytes on rank %d of the group, and %" PRId64 " on rank 0",
                            at[k], other, from[k]);
    return fail_param(r, other, at + k, from + k);
}

/* ---- comparing ---- */

/* Gather all descriptions, as one of them differs, and word it. */
static tutti_status find_difference(const tutti_reducer *r, const int64_t *all, int other, int64_t *text)
{
    tutti_span  *spans = calloc((size_t)r->size, sizeof *spans);
    int64_t     *room, *at;
    int64_t      total = 1;
    tutti_status st;
    int          k;

    for (k = 0; k < r->size; k++)
        total += all[k * WORDS + LENGTH];
    room = at = calloc((size_t)total, sizeof *room);
    if (spans == NULL || room == NULL) { /* all leave here with an error, this one at once */
        free(spans);
        free(room);
        tutti_abort_process_group(r->group);
        return tti_fail(TUTTI_E_NOMEM, "no memory for the parameters of %d ranks, which differ", r->size);
    }
    for (k = 0; k < r->size; k++) {
        spans[k] = TUTTI_SPAN(at, all[k * WORDS + LENGTH]);
        at += all[k * WORDS + LENGTH];
    }
    st = tutti_all_gather(spans, r->size, TUTTI_SPAN(text, all[r->rank * WORDS + LENGTH]), r->group);
    if (st == TUTTI_OK)
        st = fail_difference(r, other, spans[other].data, spans[0].data);
    free(spans);
    free(room);
    return st;
}

/* The first rank that is not like rank 0 in one of the words; -1: all are. */
static int unlike(const tutti_reducer *r, const int64_t *all, int word)
{
    int k;

    for (k = 1; k < r->size; k++)
        if (all[k * WORDS + word] != all[word])
            return k;
    return -1;
}

static tutti_status compare(const tutti_reducer *r, const int64_t *all, int64_t *text, tutti_status ours,
                            const char *words)
{
    int other, k;

    if (ours != TUTTI_OK)
        return tti_fail(ours, "%s", words);
    for (k = 0; k < r->size; k++)
        if (all[k * WORDS + STATUS] != TUTTI_OK)
            return tti_fail(TUTTI_E_REMOTE, "rank %d of the group could not make its reducer: %s\n  next: see what that rank reports", k,
                            tutti_status_name((tutti_status)all[k * WORDS + STATUS]));
    if (unlike(r, all, PARAMS) >= 0)
        return fail_count(r, all);
    other = unlike(r, all, PRINT);
    return other < 0 ? TUTTI_OK : find_difference(r, all, other, text);
}

/* Lengths may differ with the same fingerprint only where fingerprints fail: they are part of it. */
tutti_status tti_reducer_verify(tutti_reducer *r, tutti_status ours)
{
    int64_t      mine[WORDS] = { 0 };
    int64_t     *all = calloc((size_t)r->size * WORDS, sizeof *all);
    int64_t     *text = NULL;
    char         words[TTI_REDUCER_WORDS_MAX];
    tutti_status st;

    if (ours == TUTTI_OK && (text = describe(r, &mine[LENGTH])) == NULL)
        ours = tti_fail(TUTTI_E_NOMEM, "no memory to describe %d parameters", r->n);
    snprintf(words, sizeof words, "%s", tutti_last_error());
    mine[STATUS] = ours;
    mine[PARAMS] = r->n;
    if (text != NULL)
        mine[PRINT] = (int64_t)tti_fnv(TTI_FNV_BEGIN, text, (size_t)mine[LENGTH] * sizeof *text);
    st = all != NULL ? tutti_all_gather_into_tensor(TUTTI_SPAN(all, (int64_t)r->size * WORDS), TUTTI_SPAN(mine, WORDS),
                                                    r->group)
                     : tti_fail(TUTTI_E_NOMEM, "no memory to compare %d ranks", r->size);
    if (st == TUTTI_OK)
        st = compare(r, all, text, ours, words);
    free(text);
    free(all);
    return st;
}
