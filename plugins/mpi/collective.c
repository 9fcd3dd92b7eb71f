/* SPDX-License-Identifier: BSD-3-Clause
 *
 * collective.c - one call, from its card to its end. */
#include "mpi_backend.h"

/* Others may have ended the group while this member was elsewhere: what they began, and MPI still has, is no answer then. */
static tutti_status begin(tmpi_backend *b, uint64_t seq)
{
    tutti_status st = TUTTI_OK;

    tmpi_lock();
    tmpi_notices_look(b);
    if (b->home->status != TUTTI_OK)
        st = tmpi_say(b->home);
    else
        b->last_seq = seq;
    tmpi_unlock();
    return st;
}

/* A failure that nobody else has noted is this group's from now on. All members see a mismatch by themselves. */
static void end(tmpi_backend *b, tutti_status st)
{
    tmpi_lock();
    if (st != TUTTI_OK && b->home->status == TUTTI_OK) {
        tmpi_finish(b, st, tmpi_host->last_error());
        if (st != TUTTI_E_MISMATCH)
            tmpi_notices_end(b);
    }
    tmpi_unlock();
}

static bool adds(const tutti_call *call)
{
    return call->kind == TUTTI_CALL_ALL_REDUCE || call->kind == TUTTI_CALL_REDUCE || call->kind == TUTTI_CALL_REDUCE_SCATTER;
}

static bool is_private(const tutti_call *call)
{
    return call->kind == TUTTI_CALL_ALL_TO_ALL || call->kind == TUTTI_CALL_GATHER_V || call->kind == TUTTI_CALL_SCATTER_V;
}

/* Once the cards agree. */
static tutti_status move(tmpi_backend *b, const tutti_call *call, const tmpi_card *cards, const tmpi_wait *wait)
{
    tutti_status st = TUTTI_OK;

    if (call->kind == TUTTI_CALL_BARRIER)
        return TUTTI_OK;
    if (call->device == TUTTI_CPU || adds(call))
        return tmpi_move(b, call, cards, wait);
    if (is_private(call))
        st = tmpi_agree_on_counts(b, call, wait);
    return st == TUTTI_OK ? tmpi_move_on_device(b, call, wait) : st;
}

/* One buffer. */
static tutti_status run(tmpi_backend *b, const tutti_call *call, tmpi_wait *wait)
{
    char             what[TMPI_CALL_TEXT];
    const tmpi_card *cards = NULL;
    tutti_status     st;

    tmpi_describe(call, what);
    wait->what = what;
    st = tmpi_await_stream(b, call, wait); /* at once, but for the first one of a call */
    if (st == TUTTI_OK)
        st = begin(b, call->seq);
    if (st == TUTTI_OK)
        st = tmpi_cards_exchange(b, call, wait, &cards);
    if (st == TUTTI_OK && tmpi_is_small(call))
        tmpi_take_small(b, call, cards);
    else if (st == TUTTI_OK)
        st = move(b, call, cards, wait);
    end(b, st);
    return st;
}

tutti_status tmpi_run(tutti_backend *backend, const tutti_call *call)
{
    tmpi_backend *b = (tmpi_backend *)backend;
    tmpi_wait     wait = { .seq = call->seq, .deadline_ns = call->deadline_ns, .began_ns = tmpi_host->now_ns(),
                           .in_background = call->in_background };
    tutti_call    one = *call;
    tutti_status  st = TUTTI_OK;
    int           i;

    if (call->n_segments == 0)
        return run(b, call, &wait);
    one.n_segments = 0;
    one.segments = NULL;
    for (i = 0; i < call->n_segments && st == TUTTI_OK; i++) {
        one.count = call->segments[i].count;
        one.in = call->segments[i].in;
        one.out = call->segments[i].out;
        one.list = call->list != NULL ? call->list + (size_t)i * (size_t)b->n_ranks : NULL;
        st = run(b, &one, &wait);
    }
    return st;
}
