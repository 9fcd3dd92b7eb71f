/* SPDX-License-Identifier: BSD-3-Clause
 *
 * agree.c - ranks compare what they are about to make, so that a mistake of one is an error of all.
 *
 * How     Each tells how it fares and three numbers: how many parameters, a hash of their shapes, a hash of options. Only
 *         where something differs, or a rank has failed, further messages have the sizes, the options, or its words.
 * True    What is told decides alone how it goes on: all ranks send a further message, or none. */
#include "zero/zero.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tutti/private.h>

typedef struct digest {
    int64_t status, n, shapes, options;
} digest;

enum { NUMBERS = sizeof(digest) / sizeof(int64_t) };

/* FNV-1a. */
static uint64_t mix(uint64_t hash, const void *data, size_t bytes)
{
    const uint8_t *at = data;

    for (size_t i = 0; i < bytes; i++)
        hash = (hash ^ at[i]) * 0x100000001b3u;
    return hash;
}

static digest digest_of(const tti_zero *z, tutti_status ours, int first, int n)
{
    const uint64_t begin = 0xcbf29ce484222325u;
    uint64_t shapes = begin, options = begin;

    if (ours != TUTTI_OK)
        return (digest){ .status = ours };
    for (int i = first; i < first + n; i++) {
        const tutti_tensor *p = z->o->params[i];

        shapes = mix(shapes, &p->dtype, sizeof p->dtype);
        shapes = mix(shapes, &p->nd, sizeof p->nd);
        shapes = mix(shapes, p->shape, (size_t)p->nd * sizeof *p->shape);
    }
    options = mix(options, z->o->cls->name, strlen(z->o->cls->name));
    options = mix(options, &z->views, sizeof z->views);
    for (int g = 0; g < z->o->n_groups; g++)
        options = mix(options, z->o->groups[g].value,
                      (size_t)tti_option_values(z->o->cls) * sizeof z->o->groups[g].value[0]);
    return (digest){ .n = n, .shapes = (int64_t)shapes, .options = (int64_t)options };
}

/* Words for the first size that differs. all: [size * n] sizes. */
static tutti_status tell_size(const tti_zero *z, const char *what, const int64_t *all, int n)
{
    for (int i = 0; i < n; i++)
        for (int r = 1; r < z->size; r++) {
            const int64_t theirs = all[(size_t)r * (size_t)n + (size_t)i];

            if (theirs != all[i])
                return tti_fail(TUTTI_E_MISMATCH, "%s: parameter %d has %lld elements on rank 0, and %lld on rank %d", what, i,
                                (long long)all[i], (long long)theirs, r);
        }
    return tti_fail(TUTTI_E_MISMATCH, "%s: parameters of ranks have as many elements, but other shapes or types", what);
}

/* Shapes differ: find out where. */
static tutti_status find_shape(tti_zero *z, const char *what, int first, int n)
{
    const size_t mine = (size_t)n * (size_t)z->size;
    int64_t *all = calloc(mine + (size_t)n, sizeof *all);
    tutti_status st;

    if (all == NULL) {
        (void)tutti_abort_process_group(z->group); /* the others wait for it */
        return tti_fail(TUTTI_E_NOMEM, "%s: no memory to compare %d parameters", what, n);
    }
    for (int i = 0; i < n; i++)
        all[mine + (size_t)i] = z->o->params[first + i]->numel;
    st = tutti_all_gather_into_tensor(TUTTI_SPAN(all, (int64_t)mine), TUTTI_SPAN(all + mine, n), z->group);
    if (st == TUTTI_OK)
        st = tell_size(z, what, all, n);
    free(all);
    return st;
}

/* ---- options that differ ----------------------------------------------------------------------- */

/* What a rank makes; options of different optimizers cannot be compared. */
typedef struct kind {
    char name[32];
    int64_t views, n_groups;
} kind;

/* What each rank has, [size], to be freed. */
static tutti_status gather(tti_zero *z, const char *what, const void *mine, size_t bytes, void **all_out)
{
    void *all = malloc(bytes * (size_t)z->size);
    tutti_status st;

    if (all == NULL) {
        (void)tutti_abort_process_group(z->group); /* the others wait for it */
        return tti_fail(TUTTI_E_NOMEM, "%s: no memory to compare %d ranks", what, z->size);
    }
    st = tutti_all_gather_into_tensor(TUTTI_SPAN((uint8_t *)all, (int64_t)bytes * z->size),
                                      TUTTI_SPAN((uint8_t *)mine, (int64_t)bytes), z->group);
    if (st == TUTTI_OK)
        *all_out = all;
    else
        free(all);
    return st;
}

static tutti_status tell_kind(const char *what, const kind *a, const kind *b, int rank)
{
    if (memcmp(a->name, b->name, sizeof a->name) != 0)
        return tti_fail(TUTTI_E_MISMATCH, "%s: the optimizer is '%s' on rank 0, and '%s' on rank %d", what, a->name, b->name,
                        rank);
    if (a->views != b->views)
        return tti_fail(TUTTI_E_MISMATCH, "%s: parameters_as_bucket_view is %s on rank 0, and %s on rank %d", what,
                        a->views ? "true" : "false", b->views ? "true" : "false", rank);
    if (a->n_groups != b->n_groups)
        return tti_fail(TUTTI_E_MISMATCH, "%s: %lld groups of parameters on rank 0, and %lld on rank %d", what,
                        (long long)a->n_groups, (long long)b->n_groups, rank);
    return TUTTI_OK;
}

static tutti_status compare_kinds(tti_zero *z, const char *what)
{
    kind mine = { .views = z->views, .n_groups = z->o->n_groups };
    tutti_status st;
    void *all = NULL;

    strncpy(mine.name, z->o->cls->name, sizeof mine.name - 1);
    st = gather(z, what, &mine, sizeof mine, &all);
    for (int r = 1; r < z->size && st == TUTTI_OK; r++)
        st = tell_kind(what, (const kind *)all, (const kind *)all + r, r);
    free(all);
    return st;
}

/* How many digits tell them apart. */
static int digits_for(double a, double b)
{
    char one[32], other[32];

    snprintf(one, sizeof one, "%g", a);
    snprintf(other, sizeof other, "%g", b);
    return strcmp(one, other) != 0 ? 6 : 17;
}

/* Words for value number v, which is another on a rank. */
static tutti_status tell_value(const tti_zero *z, const char *what, int g, int v, double zeroth, double theirs, int rank)
{
    const tti_option *option = z->o->cls->options;
    const int digits = digits_for(zeroth, theirs);

    while (v >= option->count)
        v -= option++->count;
    return tti_fail(TUTTI_E_MISMATCH, "%s: option '%s'%s of group %d is %.*g on rank 0, and %.*g on rank %d", what,
                    option->name, option->count == 1 ? "" : v == 0 ? " (the first)" : " (the second)", g, digits, zeroth,
                    digits, theirs, rank);
}

/* All ranks have this kind. */
static tutti_status compare_values(tti_zero *z, const char *what)
{
    const size_t n = (size_t)tti_option_values(z->o->cls), total = n * (size_t)z->o->n_groups;
    double *mine = malloc(total * sizeof *mine), *values;
    tutti_status st;
    void *all = NULL;

    if (mine == NULL) {
        (void)tutti_abort_process_group(z->group);
        return tti_fail(TUTTI_E_NOMEM, "%s: no memory to compare %zu options", what, total);
    }
    for (int g = 0; g < z->o->n_groups; g++)
        memcpy(mine + (size_t)g * n, z->o->groups[g].value, n * sizeof *mine);
    st = gather(z, what, mine, total * sizeof *mine, &all);
    values = all;
    for (size_t i = 0; i < total && st == TUTTI_OK; i++)
        for (int r = 1; r < z->size && st == TUTTI_OK; r++)
            if (memcmp(&values[(size_t)r * total + i], &values[i], sizeof *values) != 0)
                st = tell_value(z, what, (int)(i / n), (int)(i % n), values[i], values[(size_t)r * total + i], r);
    free(all);
    free(mine);
    return st != TUTTI_OK ? st : tti_fail(TUTTI_E_MISMATCH, "%s: ranks have other options", what);
}

static tutti_status find_option(tti_zero *z, const char *what)
{
    tutti_status st = compare_kinds(z, what);

    return st == TUTTI_OK ? compare_values(z, what) : st;
}

/* ---- who has failed, and what differs ----------------------------------------------------------- */

/* Rank culprit failed, perhaps others too; each of these has its own failure, in words. */
static tutti_status tell_failure(tti_zero *z, const char *what, const digest *all, int culprit, const tti_zero_words *words)
{
    const tutti_status ours = (tutti_status)all[z->rank].status;
    tti_zero_words theirs = { "" };
    tutti_status st;

    if (culprit == z->rank)
        theirs = *words;
    st = tutti_broadcast_in_group(TUTTI_SPAN((uint8_t *)theirs.text, (int64_t)sizeof theirs.text), culprit, z->group);
    if (st != TUTTI_OK)
        return st;
    if (ours != TUTTI_OK)
        return tti_fail(ours, "%s", words->text);
    theirs.text[sizeof theirs.text - 1] = '\0';
    return tti_fail(TUTTI_E_REMOTE, "%s: rank %d failed [%s]: %s", what, culprit,
                    tutti_status_name((tutti_status)all[culprit].status), theirs.text);
}

static tutti_status compare(tti_zero *z, const char *what, const digest *all, int first, int n,
                            const tti_zero_words *words)
{
    for (int r = 0; r < z->size; r++)
        if (all[r].status != TUTTI_OK)
            return tell_failure(z, what, all, r, words);
    for (int r = 1; r < z->size; r++)
        if (all[r].n != all[0].n)
            return tti_fail(TUTTI_E_MISMATCH, "%s: rank 0 has %lld parameters, and rank %d %lld", what, (long long)all[0].n,
                            r, (long long)all[r].n);
    for (int r = 1; r < z->size; r++)
        if (all[r].shapes != all[0].shapes)
            return find_shape(z, what, first, n);
    for (int r = 1; r < z->size; r++)
        if (all[r].options != all[0].options)
            return find_option(z, what);
    return TUTTI_OK;
}

tutti_status tti_zero_agree(tti_zero *z, const char *what, tutti_status ours, int first, int n)
{
    const tti_zero_words words = tti_zero_keep_words();
    digest *all = calloc((size_t)z->size + 1, sizeof *all);
    tutti_status st;

    if (all == NULL) {
        (void)tutti_abort_process_group(z->group);
        return tti_fail(TUTTI_E_NOMEM, "%s: no memory to compare %d ranks", what, z->size);
    }
    all[z->size] = digest_of(z, ours, first, n);
    st = tutti_all_gather_into_tensor(TUTTI_SPAN((int64_t *)all, (int64_t)NUMBERS * z->size),
                                      TUTTI_SPAN((int64_t *)&all[z->size], NUMBERS), z->group);
    if (st == TUTTI_OK)
        st = compare(z, what, all, first, n, &words);
    free(all);
    return st;
}
