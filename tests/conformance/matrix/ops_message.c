/* SPDX-License-Identifier: BSD-3-Clause
 *
 * ops_message.c - messages between two ranks. Tags are the try's own, so that what a fast rank sends for
 * its next try is never taken for this one. */
#include "ops.h"

enum { MESSAGES_MAX = 3 };

static void add(tt_try *t, bool is_send, tutti_span span, int peer, int tag)
{
    t->messages[t->n_messages++] =
        (tutti_p2p_op){ .is_send = is_send, .span = span, .peer = peer, .tag = tag };
}

static void add_send(tt_try *t, int to, int part, int tag)
{
    add(t, true, tt_make(t, t->count, tt_part(t->rank, part), tt_part(t->rank, part)),
        tt_global(t, to), tag);
}

static void add_recv(tt_try *t, int from, int part, int tag)
{
    add(t, false, tt_make(t, t->count, tt_blank(), tt_part(from, part)), tt_global(t, from), tag);
}

/* ---- send and recv: around a ring, even ranks send first ---- */

void tt_send_recv_prepare(tt_try *t)
{
    const int right = (t->rank + 1) % t->size;
    const int left = (t->rank + t->size - 1) % t->size;
    const int n = 1 + tt_roll(t, 30, 0, 0, MESSAGES_MAX);
    int turn, k;

    for (turn = 0; turn < 2; turn++)
        for (k = 0; k < n; k++) {
            const int tag = t->tag + (t->in_place && !tt_untagged ? k : 0);

            if (turn == t->rank % 2)
                add_send(t, right, k, tag);
            else
                add_recv(t, left, k, tag);
        }
}

tutti_status tt_send_recv_block(tt_try *t)
{
    tutti_status st = TUTTI_OK;
    int source;
    int i;

    for (i = 0; i < t->n_messages && st == TUTTI_OK; i++) {
        const tutti_p2p_op *m = &t->messages[i];

        if (m->is_send) {
            st = tutti_send(m->span, m->peer, m->tag, t->group);
            continue;
        }
        st = tutti_recv(m->span, m->peer, m->tag, t->group, &source);
        if (st == TUTTI_OK && source != m->peer)
            tt_wrong(t, "a message from rank %d came from rank %d", m->peer, source);
    }
    return st;
}

/* ---- isend, irecv and batches: none to several messages between any two ranks ---- */

static int n_messages(const tt_try *t, int from, int to)
{
    return tt_roll(t, 31, from, to, t->count > 100000 ? 2 : MESSAGES_MAX);
}

/* Messages of one tag arrive in order; of several tags they may be taken in any, so here backwards. */
static void add_pair(tt_try *t, int peer, bool sends)
{
    const int n = sends ? n_messages(t, t->rank, peer) : n_messages(t, peer, t->rank);
    const bool tags = t->in_place && !tt_untagged;
    int k;

    for (k = 0; k < n; k++)
        if (sends)
            add_send(t, peer, peer * MESSAGES_MAX + k, t->tag + (tags ? k : 0));
        else if (tags)
            add_recv(t, peer, t->rank * MESSAGES_MAX + n - 1 - k, t->tag + n - 1 - k);
        else
            add_recv(t, peer, t->rank * MESSAGES_MAX + k, t->tag);
}

void tt_messages_prepare(tt_try *t)
{
    const bool sends_first = tt_roll_own(t, 32, 2) == 0;
    const int begin = tt_roll_own(t, 33, t->size);
    int turn, i;

    for (turn = 0; turn < 2; turn++)
        for (i = 0; i < t->size; i++) {
            const int peer = (begin + i) % t->size;

            if (peer != t->rank)
                add_pair(t, peer, sends_first == (turn == 0));
        }
}

tutti_status tt_isend_irecv_start(tt_try *t)
{
    tutti_status st = TUTTI_OK;
    int i;

    for (i = 0; i < t->n_messages && st == TUTTI_OK; i++) {
        const tutti_p2p_op *m = &t->messages[i];
        tutti_work **out = &t->works[t->n_works];

        st = m->is_send ? tutti_isend(m->span, m->peer, m->tag, t->group, out)
                        : tutti_irecv(m->span, m->peer, m->tag, t->group, out);
        t->n_works += st == TUTTI_OK;
    }
    return st;
}

tutti_status tt_batch_start(tt_try *t)
{
    tutti_status st;

    if (t->n_messages == 0)
        return TUTTI_OK; /* an empty batch is refused */
    st = tutti_batch_isend_irecv(t->messages, t->n_messages, t->group, t->works);
    if (st == TUTTI_OK)
        t->n_works = t->n_messages;
    return st;
}

/* ---- any source: one rank takes a message of each other, in the order they come ---- */

void tt_any_source_prepare(tt_try *t)
{
    int r;

    if (t->rank != t->root) {
        add_send(t, t->root, 0, t->tag);
        return;
    }
    for (r = 1; r < t->size; r++)
        add(t, false, tt_make(t, t->count, tt_blank(), tt_blank()), TUTTI_ANY_SOURCE, t->tag);
}

tutti_status tt_any_source_block(tt_try *t)
{
    tutti_status st = TUTTI_OK;
    int source;
    int i;

    if (t->rank != t->root)
        return tutti_send(t->messages[0].span, t->messages[0].peer, t->tag, t->group);
    for (i = 0; i < t->n_messages && st == TUTTI_OK; i++) {
        st = tutti_recv(t->messages[i].span, TUTTI_ANY_SOURCE, t->tag, t->group, &source);
        if (st == TUTTI_OK)
            t->sources[i] = tutti_get_group_rank(t->group, source);
    }
    return st;
}

tutti_status tt_any_source_start(tt_try *t)
{
    return tt_isend_irecv_start(t);
}

/* Who it was is known now: each other rank once. */
bool tt_any_source_settle(tt_try *t)
{
    unsigned seen = 0;
    int i;

    if (t->rank != t->root)
        return true;
    for (i = 0; i < t->n_messages; i++) {
        const int source = t->n_works > 0
                               ? tutti_get_group_rank(t->group, tutti_work_source_rank(t->works[i]))
                               : t->sources[i];

        if (source < 0 || source == t->rank || (seen & 1u << source) != 0)
            return tt_wrong(t, "message %d came from rank %d of the group, or said so", i, source);
        seen |= 1u << source;
        t->bufs[i].pieces[0].after = tt_part(source, 0);
    }
    return true;
}
