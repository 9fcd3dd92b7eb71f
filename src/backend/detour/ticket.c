/* SPDX-License-Identifier: BSD-3-Clause
 *
 * ticket.c - the place of a call in streams: what it waits for, who waits for it.
 *
 * How     Two events. `before` is recorded on the caller's stream when the call is issued: both streams of the lane wait for it before
 *         they are given a copy of the call. `after` is recorded behind the last copy back, when run ends: by then
 *         nothing is left of the call but copies that the device has. So tickets have no deadlines: those are run's.
 * True    Whoever asks for the end of a call has seen run end (group/streamed.c), so begun is read without a lock, and the
 *         device knows the rest. A ticket that was never run has nothing under way. */
#include "backend/detour/detour_core.h"

#include <stdlib.h>
#include <tutti/private.h>

/* ---- lanes ---- */

static void drop_lane(const tutti_device_ops *dev, tti_lane *lane)
{
    if (lane->in != NULL)
        dev->stream_drop(lane->device, lane->in);
    if (lane->out != NULL)
        dev->stream_drop(lane->device, lane->out);
    if (lane->last != NULL)
        dev->event_drop(lane->device, lane->last);
    free(lane);
}

static tutti_status make_lane(const tutti_device_ops *dev, int device, tti_lane **lane_out)
{
    tti_lane    *lane = calloc(1, sizeof *lane);
    tutti_status st;

    if (lane == NULL)
        return tti_fail(TUTTI_E_NOMEM, "no memory for what is known of a device");
    lane->device = device;
    st = dev->stream_make(device, &lane->in);
    if (st == TUTTI_OK)
        st = dev->stream_make(device, &lane->out);
    if (st == TUTTI_OK)
        st = dev->event_make(device, &lane->last);
    if (st != TUTTI_OK) {
        drop_lane(dev, lane);
        return st;
    }
    *lane_out = lane;
    return TUTTI_OK;
}

/* Lock held. */
static tti_lane *find_lane(const tti_detour *d, int device)
{
    tti_lane *lane = d->lanes;

    while (lane != NULL && lane->device != device)
        lane = lane->next;
    return lane;
}

/* Two threads may come with the first calls on a device: one of the lanes goes. */
static tti_lane *add_lane(tti_detour *d, const tutti_device_ops *dev, tti_lane *made)
{
    tti_lane *there;

    tti_lock(&d->lock);
    there = find_lane(d, made->device);
    if (there == NULL) {
        if (d->dev == NULL) /* of further devices it is the same, and others read it without the lock */
            d->dev = dev;
        made->next = d->lanes;
        d->lanes = made;
    }
    tti_unlock(&d->lock);
    if (there != NULL)
        drop_lane(dev, made);
    return there != NULL ? there : made;
}

tutti_status tti_detour_lane(tti_detour *d, int device, tti_lane **lane_out)
{
    const tutti_device_ops *dev = NULL;
    tti_lane               *lane;
    tutti_status            st;

    tti_lock(&d->lock);
    lane = find_lane(d, device);
    tti_unlock(&d->lock);
    if (lane != NULL) {
        *lane_out = lane;
        return TUTTI_OK;
    }
    st = d->find(&dev);
    if (st == TUTTI_OK)
        st = make_lane(dev, device, &lane);
    if (st == TUTTI_OK)
        *lane_out = add_lane(d, dev, lane);
    return st;
}

/* ---- tickets ---- */

static void destroy_ticket(tutti_ticket *t)
{
    if (t->before != NULL)
        t->detour->dev->event_drop(t->lane->device, t->before);
    if (t->after != NULL)
        t->detour->dev->event_drop(t->lane->device, t->after);
    free(t);
}

/* A spare one of the same lane, or NULL. */
static tutti_ticket *take_spare(tti_detour *d, const tti_lane *lane)
{
    tutti_ticket **link, *t;

    tti_lock(&d->lock);
    for (link = &d->spare; *link != NULL && (*link)->lane != lane; link = &(*link)->next)
        ;
    t = *link;
    if (t != NULL) {
        *link = t->next;
        d->n_spare--;
    }
    tti_unlock(&d->lock);
    return t;
}

static tutti_status make_ticket(tti_detour *d, tti_lane *lane, tutti_ticket **ticket_out)
{
    tutti_ticket *t = calloc(1, sizeof *t);
    tutti_status  st = TUTTI_OK;

    if (t == NULL)
        return tti_fail(TUTTI_E_NOMEM, "no memory for a call on group '%s'", d->name);
    t->detour = d;
    t->lane = lane;
    if (lane != NULL)
        st = d->dev->event_make(lane->device, &t->before);
    if (st == TUTTI_OK && lane != NULL)
        st = d->dev->event_make(lane->device, &t->after);
    if (st != TUTTI_OK) {
        destroy_ticket(t);
        return st;
    }
    *ticket_out = t;
    return TUTTI_OK;
}

tutti_status tti_detour_ticket_new(tti_detour *d, tti_lane *lane, tutti_ticket **ticket_out)
{
    tutti_ticket *t = take_spare(d, lane);
    tutti_status  st = t != NULL ? TUTTI_OK : make_ticket(d, lane, &t);

    if (st != TUTTI_OK)
        return st;
    t->next = NULL;
    t->begun = false;
    atomic_fetch_add_explicit(&d->refs, 1, memory_order_relaxed);
    *ticket_out = t;
    return TUTTI_OK;
}

void tti_detour_tickets_free(tti_detour *d)
{
    tutti_ticket *t;
    tti_lane     *lane;

    while ((t = d->spare) != NULL) {
        d->spare = t->next;
        destroy_ticket(t);
    }
    while ((lane = d->lanes) != NULL) {
        d->lanes = lane->next;
        drop_lane(d->dev, lane);
    }
}

/* ---- what callers do with one ---- */

tutti_status tti_detour_mark(tti_detour *d, int device_index, void *stream, tutti_ticket **ticket_out)
{
    tti_lane     *lane = NULL;
    tutti_ticket *t = NULL;
    tutti_status  st = TUTTI_OK;

    if (atomic_load_explicit(&d->status, memory_order_acquire) != TUTTI_OK)
        return tti_detour_say(d);
    if (device_index >= 0) /* else there are no buffers: a barrier needs no device */
        st = tti_detour_lane(d, device_index, &lane);
    if (st == TUTTI_OK)
        st = tti_detour_ticket_new(d, lane, &t);
    if (st == TUTTI_OK && lane != NULL)
        st = d->dev->record(device_index, t->before, stream);
    if (st != TUTTI_OK) {
        if (t != NULL)
            tti_detour_release(t);
        return st;
    }
    *ticket_out = t;
    return TUTTI_OK;
}

tutti_status tti_detour_follow(tutti_ticket *t, void *stream)
{
    return t->begun ? t->detour->dev->stream_wait(t->lane->device, stream, t->after) : TUTTI_OK;
}

/* A device that fails at a copy fails the group: what its memory holds is not what the others have. */
bool tti_detour_test(tutti_ticket *t)
{
    bool         come = true;
    tutti_status st = t->begun ? t->detour->dev->has_come(t->lane->device, t->after, &come) : TUTTI_OK;

    if (st != TUTTI_OK)
        tti_detour_end(t->detour, st);
    return st != TUTTI_OK || come;
}

tutti_status tti_detour_wait(tutti_ticket *t, int64_t deadline_ns)
{
    tti_detour  *d = t->detour;
    bool         come = !t->begun;
    uint32_t     rounds = 0;
    tutti_status st = TUTTI_OK;

    while (!come) {
        st = d->dev->has_come(t->lane->device, t->after, &come);
        if (st != TUTTI_OK)
            return tti_detour_end(d, st);
        if (!come && tti_now_ns() >= deadline_ns)
            return tti_fail(TUTTI_E_TIMEOUT, "the results of a call on group '%s' are still on their way to GPU %d", d->name,
                            t->lane->device);
        if (!come)
            d->idle(&rounds, false);
    }
    return TUTTI_OK;
}

void tti_detour_release(tutti_ticket *t)
{
    tti_detour *d = t->detour;
    bool        kept;

    tti_lock(&d->lock);
    kept = t->lane != NULL && d->n_spare < TTI_DETOUR_SPARE;
    if (kept) {
        t->next = d->spare;
        d->spare = t;
        d->n_spare++;
    }
    tti_unlock(&d->lock);
    if (!kept)
        destroy_ticket(t);
    tti_detour_drop(d);
}
