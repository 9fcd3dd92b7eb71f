/* SPDX-License-Identifier: BSD-3-Clause
 *
 * share.c - after a step parameters go from their owners to all ranks.
 *
 * How     Everything is begun before the first is waited for: a broadcast of each parameter, those of rank 0 first, or one
 *         all_gather where they live side by side; behind them one number, by which a rank tells that its step has failed.
 *         What does not lie row by row travels as a copy that does.
 * True    All ranks begin the same operations in the same order, whatever their steps came to: nobody waits for a rank
 *         that has failed. One that cannot even begin them ends the group. */
#include "zero/zero.h"

#include <tutti/private.h>

tutti_status tti_zero_send_span(tti_zero *z, tutti_span span, int from)
{
    const tutti_status st = tutti_broadcast_in_group_async(span, from, z->group, &z->works[z->n_works]);

    z->n_works += st == TUTTI_OK;
    return st;
}

tutti_status tti_zero_send(tti_zero *z, int i)
{
    z->rows[i] = tti_raw_contiguous(z->o->params[i]);
    if (z->rows[i] == NULL || tti_ready(z->rows[i]) != TUTTI_OK)
        return tti_take_kept();
    return tti_zero_send_span(z, tutti_tensor_span(z->rows[i]), z->owner[i]);
}

static tutti_status send_flat(tti_zero *z)
{
    const tutti_span all = tutti_tensor_span(z->flat);
    tutti_span ours = all;
    tutti_status st;
    int64_t before = 0;

    for (int r = 0; r < z->rank; r++)
        before += z->counts[r];
    if (all.count > 0)
        ours.data = (char *)all.data + (size_t)before * tutti_dtype_size(all.dtype);
    ours.count = z->counts[z->rank];
    st = tutti_all_gather_into_tensor_v_async(all, ours, z->counts, z->group, &z->works[z->n_works]);
    z->n_works += st == TUTTI_OK;
    return st;
}

static tutti_status send_all(tti_zero *z)
{
    tutti_status st = TUTTI_OK;

    if (z->views)
        return send_flat(z);
    for (int r = 0; r < z->size && st == TUTTI_OK; r++)
        for (int i = 0; i < z->o->n && st == TUTTI_OK; i++)
            if (z->owner[i] == r)
                st = tti_zero_send(z, i);
    return st;
}

/* Parameter i has come. */
static tutti_status put_back(tti_zero *z, int i)
{
    tutti_tensor *p = z->o->params[i];
    tutti_status st = TUTTI_OK;

    if (z->rows[i] != NULL && z->rows[i] != p && z->owner[i] != z->rank)
        st = tti_raw_copy_(p, z->rows[i]);
    if (z->owner[i] != z->rank)
        tti_version_bump(p);
    return st;
}

tutti_status tti_zero_await(tti_zero *z, tutti_status st)
{
    tti_zero_words words = tti_zero_keep_words();

    if (st != TUTTI_OK)
        (void)tutti_abort_process_group(z->group); /* the others wait for what this rank has not begun */
    for (int w = 0; w < z->n_works; w++) {
        const tutti_status waited = tutti_work_wait(z->works[w]);

        if (waited != TUTTI_OK && st == TUTTI_OK) {
            words = tti_zero_keep_words();
            st = waited;
        }
        tutti_work_free(z->works[w]);
    }
    z->n_works = 0;
    if (st != TUTTI_OK)
        (void)tti_fail(st, "%s", words.text);
    for (int i = 0; i < z->o->n; i++) {
        if (st == TUTTI_OK)
            st = put_back(z, i);
        tutti_tensor_release(z->rows[i]);
        z->rows[i] = NULL;
    }
    return st;
}

tutti_status tti_zero_share(tti_zero *z, tutti_status st)
{
    const tti_zero_words words = tti_zero_keep_words();
    tutti_status sent;

    z->failing = st != TUTTI_OK ? 1 + z->rank : 0;
    sent = send_all(z);
    if (sent == TUTTI_OK) {
        sent = tutti_all_reduce_async(TUTTI_SPAN(&z->failing, 1), TUTTI_MAX, z->group, &z->works[z->n_works]);
        z->n_works += sent == TUTTI_OK;
    }
    sent = tti_zero_await(z, sent);
    if (st != TUTTI_OK)
        return tti_fail(st, "%s", words.text);
    if (sent == TUTTI_OK && z->failing != 0)
        return tti_fail(TUTTI_E_REMOTE, "zero: rank %d failed in its step: its parameters have not moved, the others have",
                        z->failing - 1);
    return sent;
}
