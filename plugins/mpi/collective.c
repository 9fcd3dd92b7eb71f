/* SPDX-License-Identifier: BSD-3-Clause
 *
 * collective.c - one call, from its card to its end. */
#include "mpi_backend.h"

static tutti_status check_device(const tmpi_backend *b, const tutti_call *call)
{
    if (call->device == TUTTI_CPU)
        return TUTTI_OK;
    return tmpi_host->fail(TUTTI_E_UNSUPPORTED, "group '%s': backend 'mpi' takes memory of the CPU only\n"
                                                "  next: copy it to the host first", b->name);
}

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

tutti_status tmpi_run(tutti_backend *backend, const tutti_call *call)
{
    tmpi_backend    *b = (tmpi_backend *)backend;
    char             what[TMPI_CALL_TEXT];
    const tmpi_wait  wait = { .what = what, .seq = call->seq, .deadline_ns = call->deadline_ns,
                              .began_ns = tmpi_host->now_ns(), .in_background = call->in_background };
    const tmpi_card *cards = NULL;
    tutti_status     st = check_device(b, call);

    if (st == TUTTI_OK)
        st = begin(b, call->seq);
    if (st != TUTTI_OK)
        return st;
    tmpi_describe(call, what);
    st = tmpi_cards_exchange(b, call, &wait, &cards);
    if (st == TUTTI_OK && tmpi_is_small(call))
        tmpi_take_small(b, call, cards);
    else if (st == TUTTI_OK && call->kind != TUTTI_CALL_BARRIER)
        st = tmpi_move(b, call, cards, &wait);
    end(b, st);
    return st;
}
