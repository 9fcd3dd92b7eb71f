/* SPDX-License-Identifier: BSD-3-Clause
 *
 * agree.c - ranks compare what they are about to make, so that a mistake of one is an error of all.
 *
 * How     Each tells how it fares and three numbers: how many parameters, a hash of their shapes, a hash of options. Only
 *         where shapes differ a second message has the sizes, for the words.
 * True    What is told decides alone how it goes on: all ranks send the second message, or none. */
#include "zero/zero.h"

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

static tutti_status compare(tti_zero *z, const char *what, const digest *all, int first, int n)
{
    for (int r = 0; r < z->size; r++)
        if (all[r].status != TUTTI_OK)
            return tti_fail(TUTTI_E_REMOTE, "%s: rank %d failed [%s]", what, r,
                            tutti_status_name((tutti_status)all[r].status));
    for (int r = 1; r < z->size; r++)
        if (all[r].n != all[0].n)
            return tti_fail(TUTTI_E_MISMATCH, "%s: rank 0 has %lld parameters, and rank %d %lld", what, (long long)all[0].n,
                            r, (long long)all[r].n);
    for (int r = 1; r < z->size; r++)
        if (all[r].shapes != all[0].shapes)
            return find_shape(z, what, first, n);
    for (int r = 1; r < z->size; r++)
        if (all[r].options != all[0].options)
            return tti_fail(TUTTI_E_MISMATCH, "%s: rank %d has another optimizer, or other options, than rank 0", what, r);
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
        st = ours != TUTTI_OK ? tti_fail(ours, "%s", words.text) : compare(z, what, all, first, n);
    free(all);
    return st;
}
