/* SPDX-License-Identifier: BSD-3-Clause
 *
 * rebuild.c - buckets in the order in which gradients come, once that is known.
 *
 * How     Rank 0 assigns parameters to buckets in its own order, and tells all ranks in one message: how many buckets
 *         there are, the parameters one after the other, how many each bucket has. Each makes the buckets, all tell each
 *         other whether they could, and then all take the new ones, or none does.
 * True    Ranks have the same buckets before and after, whatever the order of gradients on each. */
#include "parallel/parallel.h"

#include <stdlib.h>
#include <string.h>
#include <tutti/private.h>

/* [0] how many buckets, 0: rank 0 has failed; [1 .. n] parameters; behind them what each bucket has. */
static void pack(const tti_layout *layout, int32_t *wire)
{
    int b;

    wire[0] = layout->n_buckets;
    memcpy(wire + 1, layout->params, (size_t)layout->n_params * sizeof *wire);
    for (b = 0; b < layout->n_buckets; b++)
        wire[1 + layout->n_params + b] = layout->first[b + 1] - layout->first[b];
}

static tutti_status unpack(const tutti_reducer *r, const int32_t *wire, tti_layout *layout)
{
    tutti_status st;
    int          b;

    if (wire[0] < 1 || wire[0] > r->n)
        return tti_fail(TUTTI_E_REMOTE, "rank 0 of the group could not rebuild the buckets of gradients");
    st = tti_layout_create(r->n, layout);
    if (st != TUTTI_OK)
        return st;
    layout->n_buckets = wire[0];
    memcpy(layout->params, wire + 1, (size_t)r->n * sizeof *wire);
    for (b = 0; b < layout->n_buckets; b++)
        layout->first[b + 1] = layout->first[b] + wire[1 + r->n + b];
    return tti_layout_is_whole(layout) ? TUTTI_OK
                                       : tti_fail(TUTTI_E_MISMATCH, "rank 0 of the group sent buckets that are not those "
                                                                    "of %d parameters", r->n);
}

/* Whether all ranks could. */
static tutti_status agree(const tutti_reducer *r, tutti_status ours)
{
    int32_t      good = ours == TUTTI_OK;
    char         words[TTI_REDUCER_WORDS_MAX];
    tutti_status st;

    strncpy(words, tutti_last_error(), sizeof words - 1);
    words[sizeof words - 1] = '\0';
    st = tutti_all_reduce(TUTTI_SPAN(&good, 1), TUTTI_MIN, r->group);
    if (st != TUTTI_OK || good)
        return st;
    return ours != TUTTI_OK ? tti_fail(ours, "%s", words)
                            : tti_fail(TUTTI_E_REMOTE, "a rank of the group could not rebuild the buckets of gradients");
}

tutti_status tti_reducer_rebuild(tutti_reducer *r)
{
    int32_t            *wire = calloc(2 * (size_t)r->n + 1, sizeof *wire);
    tti_layout          layout = { 0 };
    tti_reducer_bucket *buckets = NULL;
    tutti_status        st;

    r->may_rebuild = false;
    if (wire == NULL) {
        tutti_abort_process_group(r->group); /* the others wait for it */
        return tti_fail(TUTTI_E_NOMEM, "no memory to rebuild the buckets of %d parameters", r->n);
    }
    if (r->rank == 0 && tti_layout_for(r, r->recorded, &layout) == TUTTI_OK) {
        pack(&layout, wire);
        tti_layout_release(&layout);
    }
    st = tutti_broadcast_in_group(TUTTI_SPAN(wire, 2 * (int64_t)r->n + 1), 0, r->group);
    if (st == TUTTI_OK) {
        st = unpack(r, wire, &layout);
        if (st == TUTTI_OK)
            st = tti_buckets_create(r, &layout, &buckets);
        st = agree(r, st);
    }
    if (st == TUTTI_OK) {
        tti_buckets_adopt(r, &layout, buckets);
        buckets = NULL;
        r->has_rebuilt = true;
    }
    if (buckets != NULL)
        tti_buckets_free(buckets, layout.n_buckets);
    tti_layout_release(&layout);
    free(wire);
    return st;
}
