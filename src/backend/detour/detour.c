/* SPDX-License-Identifier: BSD-3-Clause
 *
 * detour.c - the life of a detour: its own backend, how it fails, how it ends.
 *
 * Why     A call is cut into pieces, and each is a call of its own for the members that are compared: its number has to be one that no
 *         other call has, and the same on all members. The numbers of the group's calls have no room for that. So pieces
 *         go to a backend of their own, over the same connections, whose numbers go on from piece to piece; they are the
 *         group's as long as no call was cut.
 * When    It is made by the first call on memory of a device, on all members as they all have that call: groups that have none pay
 *         nothing. It waits for the members, until the call's time is up.
 * Fails   The first failure stays, with its words. It ends the detour's backend, so that members that wait there hear of it; the
 *         backend beside ends itself, with the status that run gives. */
#include "backend/detour/detour_core.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tutti/private.h>
#include <tutti/store.h>
#include "base/port.h"

static const int64_t COPIES_NS = 10 * TTI_SECOND; /* of all devices, at the end */

/* ---- its life ---- */

tutti_status tti_detour_open(const tti_detour_plan *plan, tti_detour **detour_out)
{
    const tutti_backend_config *config = plan->config;
    tti_detour                 *d = calloc(1, sizeof *d);
    tutti_status                st;

    if (d == NULL)
        return tti_fail(TUTTI_E_NOMEM, "no memory for a backend of %d ranks", config->n_ranks);
    atomic_init(&d->refs, 1);
    tti_mutex_init(&d->lock);
    d->rank = config->rank;
    d->n_ranks = config->n_ranks;
    d->store = config->store;
    d->has_queued = config->has_queued;
    d->beside = plan->beside;
    d->ops = plan->beside->ops;
    d->group_id = plan->group_id;
    d->find = plan->find;
    d->idle = plan->idle;
    d->global_ranks = config->global_ranks;
    d->name = strdup(config->name);
    st = d->name != NULL ? TUTTI_OK : tti_fail(TUTTI_E_NOMEM, "no memory for a backend of %d ranks", config->n_ranks);
    if (st == TUTTI_OK && plan->like != NULL)
        d->pinned = tti_pinned_hold(plan->like->pinned);
    else if (st == TUTTI_OK)
        st = tti_pinned_create(d->idle, &d->pinned);
    if (st != TUTTI_OK) {
        tti_detour_drop(d);
        return st;
    }
    *detour_out = d;
    return TUTTI_OK;
}

void tti_detour_drop(tti_detour *d)
{
    if (atomic_fetch_sub_explicit(&d->refs, 1, memory_order_acq_rel) != 1)
        return;
    tti_detour_tickets_free(d);
    tti_pinned_drop(d->pinned);
    tti_mutex_release(&d->lock);
    free(d->places);
    free(d->name);
    free(d);
}

/* Copies of the last calls. Nothing else is under way: run has ended, and it has waited for the callers' streams. So nothing but the
 * device's own copies is waited for; one that takes longer has other troubles. Blocks stay its own. */
static void wait_for_copies(tti_detour *d)
{
    const int64_t until_ns = tti_now_ns() + COPIES_NS;
    tti_lane     *lane;
    bool          late;

    for (lane = d->lanes; lane != NULL; lane = lane->next)
        if (lane->used)
            (void)tti_detour_await(d, lane->device, lane->last, until_ns, false, &late);
}

void tti_detour_close(tti_detour *d)
{
    tutti_backend *host;

    if (d == NULL)
        return;
    if (atomic_load_explicit(&d->status, memory_order_acquire) == TUTTI_OK)
        wait_for_copies(d);
    tti_lock(&d->lock);
    host = d->host;
    d->host = NULL;
    tti_unlock(&d->lock);
    if (host != NULL)
        d->ops->destroy(host);
    tutti_store_close(d->own_store);
    tti_detour_drop(d);
}

/* ---- its own backend ---- */

static tutti_status make_host(tti_detour *d, int64_t timeout_ms, tutti_backend **host_out)
{
    const tutti_backend_config config = {
        .size = sizeof config,
        .store = d->own_store,
        .rank = d->rank,
        .n_ranks = d->n_ranks,
        .global_ranks = d->global_ranks,
        .group_id = d->group_id,
        .name = d->name,
        .timeout_ms = timeout_ms,
        .parent = d->beside,
        .heeds_parent = true, /* who has failed before its first call here does not come to it */
        .has_queued = d->has_queued,
        .ops = d->ops,
    };

    return d->ops->create(&config, host_out);
}

/* From here on others may fail it; it may have been aborted while it was made. */
static void show_host(tti_detour *d, tutti_backend *host)
{
    tti_lock(&d->lock);
    d->host = host;
    if (atomic_load_explicit(&d->status, memory_order_relaxed) != TUTTI_OK)
        d->ops->abort(host);
    tti_unlock(&d->lock);
}

tutti_status tti_detour_meet(tti_detour *d, int64_t timeout_ms)
{
    tutti_backend *host = NULL;
    tutti_status   st = TUTTI_OK;

    if (d->host != NULL) /* written by this room's run alone, and by close */
        return TUTTI_OK;
    if (d->own_store == NULL)
        st = tutti_prefix_store_open("detour/", d->store, &d->own_store);
    if (st == TUTTI_OK)
        st = make_host(d, timeout_ms, &host);
    if (st == TUTTI_OK)
        show_host(d, host);
    return st;
}

/* ---- failing ---- */

tutti_status tti_detour_say(tti_detour *d)
{
    return tti_fail((tutti_status)atomic_load_explicit(&d->status, memory_order_acquire), "%s", d->words);
}

/* Lock held. */
static bool is_first(tti_detour *d, tutti_status status)
{
    if (atomic_load_explicit(&d->status, memory_order_relaxed) != TUTTI_OK)
        return false;
    snprintf(d->words, sizeof d->words, "%s", tutti_last_error());
    atomic_store_explicit(&d->status, (int)status, memory_order_release);
    return true;
}

tutti_status tti_detour_end(tti_detour *d, tutti_status status)
{
    tti_lock(&d->lock);
    if (is_first(d, status) && d->host != NULL)
        d->ops->fail(d->host, status);
    tti_unlock(&d->lock);
    return tti_detour_say(d);
}

void tti_detour_fail(tti_detour *d, tutti_status status)
{
    tti_lock(&d->lock);
    if (is_first(d, status) && d->host != NULL)
        d->ops->fail(d->host, status);
    tti_unlock(&d->lock);
}

void tti_detour_abort(tti_detour *d)
{
    tti_lock(&d->lock);
    tti_fail(TUTTI_E_ABORTED, "group '%s' was aborted on rank %d", d->name, d->rank);
    (void)is_first(d, TUTTI_E_ABORTED);
    if (d->host != NULL)
        d->ops->abort(d->host);
    tti_unlock(&d->lock);
}
