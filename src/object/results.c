/* SPDX-License-Identifier: BSD-3-Clause
 *
 * results.c - results of functions, with their stage and their failures, on all ranks.
 *
 * How     Every rank brings one object: a head of 4 numbers, the name of its stage (or type), the words of its
 *         failure, its value. All ranks read all of them, so that all find the same disagreement or failure. In
 *         a broadcast the other ranks' values are empty: they come to compare the stage.
 * True    What came is checked against its own size before it is used. */
#include "object/object.h"
#include "object/ranks_text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "group/collective.h"
#include "wire/bytes.h"
#include <tutti/collective_utils.h>
#include <tutti/private.h>

enum { HEAD_BYTES = 16, VERSION = 1, WORDS_MAX = 4096 };

/* One rank's object, taken apart. */
typedef struct result {
    tutti_status status;
    const char  *stage; /* not terminated */
    size_t       stage_size;
    const char  *words;
    size_t       words_size;
    tutti_bytes  value;
} result;

/* ---- to bytes and back ---- */

static tutti_status encode(const char *stage, tutti_status status, const char *words, const tutti_bytes *value,
                           tutti_bytes *bytes_out)
{
    const size_t stage_size = strlen(stage);
    const size_t words_size = strnlen(words, WORDS_MAX);
    const size_t size = HEAD_BYTES + stage_size + words_size + value->size;
    uint8_t     *data = malloc(size + 1);
    uint8_t     *at = data;

    if (data == NULL)
        return tti_fail(TUTTI_E_NOMEM, "no memory for a result of %zu bytes", value->size);
    at = tti_put_u32(at, VERSION);
    at = tti_put_u32(at, (uint32_t)status);
    at = tti_put_u32(at, (uint32_t)stage_size);
    at = tti_put_u32(at, (uint32_t)words_size);
    memcpy(at, stage, stage_size);
    memcpy(at + stage_size, words, words_size);
    if (value->size > 0)
        memcpy(at + stage_size + words_size, value->data, value->size);
    *bytes_out = (tutti_bytes){ .data = data, .size = size };
    return TUTTI_OK;
}

static bool decode(const tutti_bytes *bytes, result *result_out)
{
    const uint8_t *data = bytes->data;
    const size_t   room = bytes->size - HEAD_BYTES;
    uint32_t       stage_size, words_size;

    if (bytes->size < HEAD_BYTES || tti_get_u32(data) != VERSION)
        return false;
    stage_size = tti_get_u32(data + 8);
    words_size = tti_get_u32(data + 12);
    if (stage_size > room || words_size > room - stage_size || stage_size > INT32_MAX || words_size > WORDS_MAX)
        return false;
    result_out->status = (tutti_status)tti_get_u32(data + 4);
    result_out->stage = (const char *)data + HEAD_BYTES;
    result_out->stage_size = stage_size;
    result_out->words = result_out->stage + stage_size;
    result_out->words_size = words_size;
    result_out->value = tutti_bytes_of(result_out->words + words_size, room - stage_size - words_size);
    return true;
}

/* ---- the verdict: of the same objects the same on all ranks ---- */

static tutti_status check_stages(const tutti_group *group, const char *what, const char *kind, const result *all)
{
    int r;

    for (r = 1; r < group->size; r++)
        if (all[r].stage_size != all[0].stage_size || memcmp(all[r].stage, all[0].stage, all[0].stage_size) != 0)
            return tti_fail(TUTTI_E_MISMATCH, "%s on group '%s': the %s of index %d (rank %d) is '%.*s', the first is '%.*s'",
                            what, group->name, kind, r, group->ranks[r], (int)all[r].stage_size, all[r].stage,
                            (int)all[0].stage_size, all[0].stage);
    return TUTTI_OK;
}

static tutti_status report_failures(const tutti_group *group, const char *what, const result *all, int *failed,
                                    int n)
{
    const size_t  bytes = (size_t)n * TTI_RANKS_TEXT_EACH;
    const result *first;
    char         *text = malloc(bytes);
    tutti_status  st;
    int           r = 0;

    while (all[r].status == TUTTI_OK)
        r++;
    first = &all[r];
    if (text != NULL)
        tti_ranks_text(failed, n, text, bytes);
    st = tti_fail(TUTTI_E_REMOTE, "%s on group '%s': stage '%.*s' failed on %s %s\n  rank %d [%s]: %.*s", what,
                  group->name, (int)first->stage_size, first->stage, n > 1 ? "ranks" : "rank",
                  text != NULL ? text : "...", group->ranks[r], tutti_status_name(first->status),
                  (int)first->words_size, first->words);
    free(text);
    return st;
}

static tutti_status check_results(const tutti_group *group, const char *what, const result *all)
{
    const result *own = &all[group->rank];
    int          *failed = calloc((size_t)group->size, sizeof *failed);
    int           n = 0, r;
    tutti_status  st = TUTTI_OK;

    if (failed == NULL)
        return tti_fail(TUTTI_E_NOMEM, "no memory for a list of %d ranks", group->size);
    for (r = 0; r < group->size; r++)
        if (all[r].status != TUTTI_OK)
            failed[n++] = group->ranks[r];
    if (own->status != TUTTI_OK)
        st = tti_fail(own->status, "%.*s", (int)own->words_size, own->words);
    else if (n > 0)
        st = report_failures(group, what, all, failed, n);
    free(failed);
    return st;
}

/* Take all apart and judge; results are borrowed from objects. */
static tutti_status judge(const tutti_group *group, const char *what, const char *kind,
                          const tutti_objects *objects, result *all)
{
    tutti_status st;
    int          r;

    for (r = 0; r < group->size; r++)
        if (!decode(&objects->at[r], &all[r]))
            return tti_fail(TUTTI_E_MISMATCH, "%s on group '%s': rank %d sent no result", what, group->name,
                            group->ranks[r]);
    st = check_stages(group, what, kind, all);
    return st == TUTTI_OK ? check_results(group, what, all) : st;
}

/* ---- making and exchanging ---- */

/* This rank's value: fn's, or a copy of the one that is given. */
static tutti_status make_value(tutti_result_fn fn, void *ctx, tutti_bytes *value_out)
{
    const tutti_bytes *given = ctx;
    char              *data;

    if (fn != NULL)
        return fn(ctx, value_out);
    data = calloc(1, given->size + 1);
    if (data == NULL)
        return tti_fail(TUTTI_E_NOMEM, "no memory for a value of %zu bytes", given->size);
    if (given->size > 0)
        memcpy(data, given->data, given->size);
    *value_out = (tutti_bytes){ .data = data, .size = given->size };
    return TUTTI_OK;
}

/* Run, tell, hear: all [members], their values in *objects. runs: this rank makes a value. */
static tutti_status exchange(tutti_group *group, const char *what, const char *kind, const char *stage, bool runs,
                             tutti_result_fn fn, void *ctx, tutti_objects *objects, result *all)
{
    tutti_bytes  value = { 0 }, bytes = { 0 };
    tti_offer    offer = { .list = &bytes, .n = 1 };
    tutti_status made = TUTTI_OK, st;

    if (runs)
        made = make_value(fn, ctx, &value);
    if (made != TUTTI_OK)
        value = (tutti_bytes){ 0 };
    offer.st = encode(stage, made, made != TUTTI_OK ? tutti_last_error() : "", &value, &bytes);
    st = tti_object_all_gather(group, what, &offer, objects);
    tutti_bytes_free(&bytes);
    tutti_bytes_free(&value);
    return st == TUTTI_OK ? judge(group, what, kind, objects, all) : st;
}

static tutti_status copy_values(const result *all, int n, tutti_objects *values_out)
{
    int64_t     *sizes = calloc((size_t)n, sizeof *sizes);
    tutti_status st;
    int          i;

    if (sizes == NULL)
        return tti_fail(TUTTI_E_NOMEM, "no memory for %d sizes", n);
    for (i = 0; i < n; i++)
        sizes[i] = (int64_t)all[i].value.size;
    st = tti_objects_create(sizes, n, values_out);
    for (i = 0; st == TUTTI_OK && i < n; i++)
        if (all[i].value.size > 0)
            memcpy(values_out->at[i].data, all[i].value.data, all[i].value.size);
    free(sizes);
    return st;
}

/* A collective that all ranks' values come from: of one rank (index), or of all (-1). */
static tutti_status collect(tutti_group *group, const char *what, const char *kind, const char *stage, int index,
                            tutti_result_fn fn, void *ctx, tutti_objects *values_out)
{
    result       *all = calloc((size_t)group->size, sizeof *all);
    tutti_objects objects = { 0 };
    const bool    runs = index < 0 || index == group->rank;
    tutti_status  st;

    if (all == NULL)
        return tti_fail(TUTTI_E_NOMEM, "no memory for the results of %d ranks", group->size);
    st = exchange(group, what, kind, stage, runs, fn, ctx, &objects, all);
    if (st == TUTTI_OK)
        st = index < 0 ? copy_values(all, group->size, values_out) : copy_values(&all[index], 1, values_out);
    tutti_objects_free(&objects);
    free(all);
    return st;
}

/* ---- the calls ---- */

static tutti_status check(const char *what, const char *kind, const char *stage, tutti_result_fn fn, const void *ctx,
                          bool runs, const void *out)
{
    const tutti_bytes *given = ctx;

    if (stage == NULL || out == NULL)
        return tti_fail(TUTTI_E_ARG, "%s: the %s is NULL", what, stage == NULL ? kind : "output");
    if (strlen(stage) > WORDS_MAX)
        return tti_fail(TUTTI_E_ARG, "%s: the %s has %zu bytes, the limit is %d", what, kind, strlen(stage), WORDS_MAX);
    if (runs && fn == NULL && (ctx == NULL || (given->data == NULL && given->size > 0)))
        return tti_fail(TUTTI_E_ARG, "%s: neither a function nor a value is given", what);
    return TUTTI_OK;
}

/* No group is asked for, and there is no world: the caller is all there is. */
static bool alone(const tutti_group *group)
{
    return group == NULL && tti_group_peek(NULL) == NULL;
}

static tutti_status broadcast_alone(const char *what, const char *stage, tutti_result_fn fn, void *ctx,
                                    tutti_bytes *value_out)
{
    tutti_bytes  value = { 0 }; /* as in a group: what fn leaves as it is is empty, and a failure writes nothing */
    tutti_status st = check(what, "stage", stage, fn, ctx, true, value_out);

    if (st == TUTTI_OK)
        st = make_value(fn, ctx, &value);
    if (st == TUTTI_OK)
        *value_out = value;
    return st;
}

tutti_status tutti_broadcast_result(const char *stage, tutti_result_fn fn, void *ctx, int src,
                                    tutti_group *group, tutti_bytes *value_out)
{
    const char   *what = "broadcast_result";
    tutti_group  *g = NULL;
    tutti_objects values = { 0 };
    int           root = -1;
    tutti_status  st;

    if (alone(group))
        return broadcast_alone(what, stage, fn, ctx, value_out);
    st = tti_group_resolve(group, what, &g);
    if (st != TUTTI_OK || g == NULL)
        return st;
    st = tti_check_root(g, what, "src", src, &root);
    if (st == TUTTI_OK)
        st = check(what, "stage", stage, fn, ctx, root == g->rank, value_out);
    if (st == TUTTI_OK)
        st = collect(g, what, "stage", stage, root, fn, ctx, &values);
    if (st == TUTTI_OK)
        st = make_value(NULL, &values.at[0], value_out);
    tutti_objects_free(&values);
    return st;
}

static tutti_status run_alone(const char *what, const char *kind, const char *stage, tutti_result_fn fn, void *ctx,
                              tutti_objects *values_out)
{
    result       one = { 0 };
    tutti_status st = check(what, kind, stage, fn, ctx, true, values_out);

    if (st == TUTTI_OK)
        st = make_value(fn, ctx, &one.value);
    if (st != TUTTI_OK)
        return st;
    st = copy_values(&one, 1, values_out);
    tutti_bytes_free(&one.value);
    return st;
}

static tutti_status all_gather(const char *what, const char *kind, const char *stage, tutti_result_fn fn,
                               void *ctx, tutti_group *group, tutti_objects *values_out)
{
    tutti_group *g = NULL;
    tutti_status st;

    if (alone(group))
        return run_alone(what, kind, stage, fn, ctx, values_out);
    st = tti_group_resolve(group, what, &g);
    if (st != TUTTI_OK || g == NULL)
        return st;
    st = check(what, kind, stage, fn, ctx, true, values_out);
    return st == TUTTI_OK ? collect(g, what, kind, stage, -1, fn, ctx, values_out) : st;
}

tutti_status tutti_all_gather_results(const char *stage, tutti_result_fn fn, void *ctx, tutti_group *group,
                                      tutti_objects *values_out)
{
    return all_gather("all_gather_results", "stage", stage, fn, ctx, group, values_out);
}

tutti_status tutti_all_gather_object_enforce_type(const void *data, size_t size, const char *type,
                                                  tutti_group *group, tutti_objects *objects_out)
{
    tutti_bytes own = tutti_bytes_of(data, size);

    return all_gather("all_gather_object_enforce_type", "type", type, NULL, &own, group, objects_out);
}
