/* SPDX-License-Identifier: BSD-3-Clause
 *
 * states.c - which ranks have the same bytes: their digests, sorted into classes, as a text. All ranks write it
 * from the same digests, so it is the same everywhere. */
#include "object/object.h"
#include "object/ranks_text.h"

#include <openssl/sha.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tutti/collective_utils.h>
#include <tutti/private.h>
#include "wire/crypto.h"

/* A rank's class is the first rank with the same digest. */
static void classify(const tutti_objects *digests, int *class_of, int *counts)
{
    int r, first;

    for (r = 0; r < digests->n; r++) {
        for (first = 0; first < r; first++)
            if (memcmp(digests->at[first].data, digests->at[r].data, SHA256_DIGEST_LENGTH) == 0)
                break;
        class_of[r] = first;
        counts[first]++;
    }
}

static int largest(const int *counts, int n)
{
    int best = 0;
    int i;

    for (i = 1; i < n; i++)
        if (counts[i] > counts[best])
            best = i;
    return best;
}

/* A rank that makes another call may bring a string of any length, which is no digest. */
static tutti_status check_digests(const tutti_group *group, const char *what, const tutti_objects *digests)
{
    int r;

    for (r = 0; r < digests->n; r++)
        if (digests->at[r].size != SHA256_DIGEST_LENGTH)
            return tti_fail(TUTTI_E_MISMATCH, "%s on group '%s': rank %d sent %zu bytes, not a digest of %d", what,
                            group->name, group->ranks[r], digests->at[r].size, SHA256_DIGEST_LENGTH);
    return TUTTI_OK;
}

/* One line; out has room for all ranks and more. */
static size_t write_class(const tutti_group *group, const tutti_objects *digests, const int *class_of, int which,
                          int *members, char *out, size_t bytes)
{
    const uint8_t *digest = digests->at[which].data;
    size_t         at;
    int            n = 0, r;

    for (r = 0; r < group->size; r++)
        if (class_of[r] == which)
            members[n++] = group->ranks[r];
    at = (size_t)snprintf(out, bytes, "state %02x%02x%02x%02x: %s ", digest[0], digest[1], digest[2], digest[3],
                          n > 1 ? "ranks" : "rank");
    tti_ranks_text(members, n, out + at, bytes - at);
    at += strlen(out + at);
    at += (size_t)snprintf(out + at, bytes - at, "\n");
    return at;
}

/* The most frequent class first, then by their first rank. counts is used up. */
static tutti_status write_report(const tutti_group *group, const tutti_objects *digests, int *room,
                                 tutti_bytes *report_out)
{
    const int    n = group->size;
    int         *class_of = room, *counts = room + n, *members = room + 2 * n;
    const size_t bytes = (size_t)n * (TTI_RANKS_TEXT_EACH + 32);
    char        *text;
    size_t       at = 0;
    int          next;

    classify(digests, class_of, counts);
    text = calloc(1, bytes);
    if (text == NULL)
        return tti_fail(TUTTI_E_NOMEM, "no memory for a report on %d ranks", n);
    next = largest(counts, n);
    while (counts[next] < n && counts[next] > 0) {
        at += write_class(group, digests, class_of, next, members, text + at, bytes - at);
        counts[next] = 0;
        next = largest(counts, n);
    }
    *report_out = (tutti_bytes){ .data = text, .size = at };
    return TUTTI_OK;
}

tutti_status tutti_report_random_states(const void *state, size_t size, tutti_group *group,
                                        tutti_bytes *report_out)
{
    const char   *what = "report_random_states";
    uint8_t       digest[SHA256_DIGEST_LENGTH];
    tutti_bytes   own = tutti_bytes_of(digest, sizeof digest);
    tti_offer     offer = { .list = &own, .n = 1 };
    tutti_objects digests = { 0 };
    tutti_group  *g = NULL;
    int          *room;
    tutti_status  st = tti_group_resolve(group, what, &g);

    if (st != TUTTI_OK || g == NULL)
        return st;
    if (report_out == NULL || (state == NULL && size > 0))
        return tti_fail(TUTTI_E_ARG, "%s on group '%s': the %s is NULL", what, g->name,
                        report_out == NULL ? "output" : "state");
    tti_crypto_begin();
    SHA256(size > 0 ? state : "", size, digest);
    st = tti_object_all_gather(g, what, &offer, &digests);
    if (st == TUTTI_OK)
        st = check_digests(g, what, &digests);
    if (st == TUTTI_OK) {
        room = calloc(3 * (size_t)g->size, sizeof *room);
        st = room != NULL ? write_report(g, &digests, room, report_out)
                          : tti_fail(TUTTI_E_NOMEM, "no memory for a report on %d ranks", g->size);
        free(room);
    }
    tutti_objects_free(&digests);
    return st;
}
