/* SPDX-License-Identifier: BSD-3-Clause
 *
 * state.c - what owners remember, from one rank to another: all of it to one rank, or that of parameters to new owners.
 *
 * How     All ranks add up which tensors there are of each parameter, as only its owner knows. Who is to receive some makes
 *         room for all of them, and says whether it could; then they go one by one, as messages, from where they lie.
 * True    Messages go in the order of parameters on all ranks, so that no two wait for each other. Nothing has changed
 *         on any rank before all messages have come. */
#include "zero/zero.h"

#include <stdio.h>
#include <stdlib.h>
#include <tutti/private.h>

/* Tensors of all parameters: which there are, and room for those that come here. */
typedef struct moving {
    tti_zero *z;
    const char *what;
    int32_t *there; /* [n] bits of tensors, in the order of tti_kept_name() */
    tutti_tensor *(*kept)[TTI_KEPT_MAX]; /* [n] counted; NULL: does not come here */
} moving;

static void moving_free(moving *m)
{
    for (int i = 0; i < m->z->o->n && m->kept != NULL; i++)
        for (int k = 0; k < TTI_KEPT_MAX; k++)
            tutti_tensor_release(m->kept[i][k]);
    free(m->kept);
    free(m->there);
}

static tutti_status count_tensors(moving *m)
{
    tutti_optim *o = m->z->o;

    for (int i = 0; i < o->n; i++)
        for (int k = 0; k < tti_kept_count(o->cls); k++)
            if (m->z->mine[i] && tti_slot_is_saved(o, i) && *tti_kept_at(o->cls, &o->slots[i], k) != NULL)
                m->there[i] |= 1 << k;
    return tutti_all_reduce(TUTTI_SPAN(m->there, o->n), TUTTI_SUM, m->z->group);
}

static tutti_status moving_begin(moving *m, tti_zero *z, const char *what)
{
    const size_t n = (size_t)z->o->n;

    *m = (moving){ .z = z, .what = what };
    m->there = calloc(n, sizeof *m->there);
    m->kept = calloc(n, sizeof *m->kept);
    if (m->there == NULL || m->kept == NULL) {
        (void)tutti_abort_process_group(z->group); /* the others wait for it */
        return tti_fail(TUTTI_E_NOMEM, "%s: no memory for %d parameters", what, z->o->n);
    }
    return count_tensors(m);
}

/* Room for all tensors of parameter i. */
static tutti_status make_room(moving *m, int i)
{
    const tutti_optim *o = m->z->o;
    const tutti_tensor *p = o->params[i];

    for (int k = 0; k < tti_kept_count(o->cls); k++) {
        const bool is_step = o->cls->counts && k == 0;

        if ((m->there[i] >> k & 1) == 0)
            continue;
        m->kept[i][k] = is_step ? tti_raw_empty(TUTTI_F32, 0, NULL) : tti_raw_empty(tti_state_dtype(p), p->nd, p->shape);
        if (m->kept[i][k] == NULL)
            return tti_take_kept();
    }
    return TUTTI_OK;
}

/* Whether all ranks could make room. */
static tutti_status agree(const moving *m, tutti_status ours)
{
    const tti_zero_words words = tti_zero_keep_words();
    int32_t good = ours == TUTTI_OK;
    tutti_status st = tutti_all_reduce(TUTTI_SPAN(&good, 1), TUTTI_MIN, m->z->group);

    if (st != TUTTI_OK || good)
        return st;
    return ours != TUTTI_OK ? tti_fail(ours, "%s", words.text)
                            : tti_fail(TUTTI_E_REMOTE, "%s: a rank has no memory for the state that was to come", m->what);
}

/* The tensors of parameter i, from its owner to another rank. */
static tutti_status transfer(moving *m, int i, int to)
{
    tutti_optim *o = m->z->o;
    tutti_status st = TUTTI_OK;

    for (int k = 0; k < tti_kept_count(o->cls) && st == TUTTI_OK; k++) {
        tutti_tensor *ours = *tti_kept_at(o->cls, &o->slots[i], k);

        if ((m->there[i] >> k & 1) == 0)
            continue;
        if (m->z->rank == to && m->z->mine[i])
            st = tti_raw_copy_(m->kept[i][k], ours) == TUTTI_OK ? TUTTI_OK : tti_take_kept();
        else if (m->z->rank == to)
            st = tutti_recv_in_group(tutti_tensor_span(m->kept[i][k]), m->z->owner[i], 0, m->z->group, NULL);
        else if (m->z->mine[i])
            st = tutti_send_in_group(tutti_tensor_span(ours), to, 0, m->z->group);
    }
    return st;
}

/* ---- all of it on one rank --------------------------------------------------------------------- */

static tutti_status put_all(const moving *m, tutti_state_dict *sd)
{
    const tutti_optim *o = m->z->o;
    tutti_status st = TUTTI_OK;
    char word[16];

    for (int i = 0; i < o->n; i++) {
        snprintf(word, sizeof word, "%d", i);
        for (int k = 0; k < tti_kept_count(o->cls) && st == TUTTI_OK; k++)
            if (m->kept[i][k] != NULL)
                st = tti_state_put(sd, word, tti_kept_name(o->cls, k), m->kept[i][k]);
    }
    for (int g = 0; g < o->n_groups && st == TUTTI_OK; g++)
        st = tti_group_put(o, g, sd);
    return st;
}

static tutti_status bring_together(moving *m, int to, tutti_state_dict **sd_out)
{
    const int n = m->z->o->n;
    tutti_state_dict *sd = NULL;
    tutti_status st = TUTTI_OK;

    for (int i = 0; i < n && st == TUTTI_OK && m->z->rank == to; i++)
        st = make_room(m, i);
    if (st == TUTTI_OK && m->z->rank == to)
        st = tutti_state_dict_create(&sd);
    st = agree(m, st);
    for (int i = 0; i < n && st == TUTTI_OK; i++)
        st = transfer(m, i, to);
    if (st == TUTTI_OK && sd != NULL)
        st = put_all(m, sd);
    if (st == TUTTI_OK)
        *sd_out = sd;
    else
        tutti_state_dict_free(sd);
    return st;
}

/* All ranks bring it to the same one, of those that there are. */
static tutti_status agree_on_target(const tti_zero *z, int to)
{
    int32_t *all = calloc((size_t)z->size + 1, sizeof *all);
    tutti_status st;

    if (all == NULL) {
        (void)tutti_abort_process_group(z->group); /* the others wait for it */
        return tti_fail(TUTTI_E_NOMEM, "consolidate_state_dict: no memory to compare %d ranks", z->size);
    }
    all[z->size] = to;
    st = tutti_all_gather_into_tensor(TUTTI_SPAN(all, z->size), TUTTI_SPAN(all + z->size, 1), z->group);
    for (int r = 1; r < z->size && st == TUTTI_OK; r++)
        if (all[r] != all[0])
            st = tti_fail(TUTTI_E_MISMATCH, "consolidate_state_dict: the state is to come to rank %d, says rank 0, and "
                                            "to rank %d, says rank %d\n  next: give the same rank on all ranks",
                          all[0], all[r], r);
    if (st == TUTTI_OK && (to < 0 || to >= z->size))
        st = tti_fail(TUTTI_E_ARG, "consolidate_state_dict: there is no rank %d in a group of %d", to, z->size);
    free(all);
    return st;
}

tutti_status tutti_zero_consolidate_state_dict(tutti_optim *optim, int to)
{
    tti_zero *z = tti_zero_of(optim, "consolidate_state_dict");
    const tutti_status before = tti_kept();
    tutti_state_dict *sd = NULL;
    tutti_status st;
    moving m;

    if (z == NULL)
        return TUTTI_E_ARG;
    st = agree_on_target(z, to);
    if (st != TUTTI_OK)
        return tti_unkeep(before, st);
    st = moving_begin(&m, z, "consolidate_state_dict");
    if (st == TUTTI_OK)
        st = bring_together(&m, to, &sd);
    moving_free(&m);
    if (st != TUTTI_OK)
        return tti_unkeep(before, st);
    tutti_state_dict_free(z->whole);
    z->whole = sd; /* NULL on the other ranks */
    return TUTTI_OK;
}

tutti_status tutti_zero_state_dict(const tutti_optim *optim, tutti_state_dict **sd_out)
{
    const tti_zero *z = tti_zero_of(optim, "zero_state_dict");
    tutti_state_dict *sd = NULL;
    tutti_status st;

    if (z == NULL)
        return TUTTI_E_ARG;
    if (z->whole == NULL)
        return tti_fail(TUTTI_E_STATE, "zero_state_dict: the state has not been brought together on this rank, %d"
                                       "\n  next: tutti_zero_consolidate_state_dict(optim, %d), on all ranks", z->rank, z->rank);
    st = tutti_state_dict_create(&sd);
    if (st == TUTTI_OK)
        st = tutti_state_dict_merge(sd, z->whole, NULL);
    if (st == TUTTI_OK)
        *sd_out = sd;
    else
        tutti_state_dict_free(sd);
    return st;
}

/* ---- other owners ------------------------------------------------------------------------------ */

/* The tensors of parameter i are another rank's, or have come here. */
static void settle(moving *m, int i)
{
    tutti_optim *o = m->z->o;

    for (int k = 0; k < tti_kept_count(o->cls); k++) {
        tutti_tensor **slot = tti_kept_at(o->cls, &o->slots[i], k);

        tutti_tensor_release(*slot);
        *slot = m->kept[i][k];
        m->kept[i][k] = NULL;
    }
    o->slots[i].fresh = 0;
}

tutti_status tti_zero_move(tti_zero *z, const int *owner)
{
    const tutti_status before = tti_kept();
    tutti_status st;
    moving m;

    st = moving_begin(&m, z, "zero");
    if (st == TUTTI_OK) {
        for (int i = 0; i < z->o->n && st == TUTTI_OK; i++)
            if (owner[i] == z->rank && owner[i] != z->owner[i])
                st = make_room(&m, i);
        st = agree(&m, st);
    }
    for (int i = 0; i < z->o->n && st == TUTTI_OK; i++)
        if (owner[i] != z->owner[i])
            st = transfer(&m, i, owner[i]);
    for (int i = 0; i < z->o->n && st == TUTTI_OK; i++) {
        if (owner[i] != z->owner[i])
            settle(&m, i);
        z->owner[i] = owner[i];
    }
    moving_free(&m);
    return st == TUTTI_OK ? tti_zero_own(z) : tti_unkeep(before, st);
}
