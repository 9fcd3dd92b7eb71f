/* SPDX-License-Identifier: BSD-3-Clause
 *
 * lines.c - giving and taking through lines.
 *
 * Why     With data and flag in one line a reader has both in one transfer, and a call costs what it must: each
 *         member's line goes once to each other member. Nothing says afterwards that it was read.
 * How     post   stores the call's word in the line, after what goes with it
 *         await  polls that word until it is the call's
 *         The word is that of the call and of all before it (channel.c), so that whoever finds its own has found
 *         that the other called the same.
 * True    Words are stored with release order and read with acquire order.
 *         Call n is here the n-th that enters the channel, which is the same on all members. Its number in the group
 *         may be a larger one: turns are given back, and others go to another backend.
 *         1. A place is not overwritten while it is read. Call n writes where call n-P did (P = TTI_HOST_PLACES), or
 *            one before it. Nobody begins call n before all have entered call n-P+1 (channel.c), and who has entered
 *            that has left n-P. Each member has that from each other member, by a load with acquire order of what that
 *            one stored after its last read.
 *         2. Neither is a block: call n writes where n-2 did, and whoever writes to one has caught up (channel.c):
 *            all have entered n-1, and left n-2.
 *         3. A word is never taken for another's. A line holds words of calls n-P, n-2P, ... until that of n is
 *            stored, and nobody who is in call n is looked at by one in n-P. Numbers are compared for equality of
 *            40 bits; 2^40 numbers ago the line was overwritten.
 *         4. Nobody waits in a circle: a member posts before it waits, and waits for nothing but posts of this call,
 *            or for others to enter calls before it.
 *         Calls that go in rounds do not touch places, and these do not touch slots; both may follow each other.
 * Fails   A member that has called something else stores another word, or none: the waiting one compares the boards
 *         (trouble.c). */
#include "coll/host/lines.h"

enum { LINE = 64, ASKED_MAX = 64 * LINE }; /* beyond, the processor sees what comes next */

static void ask_to_write(const char *line)
{
#if defined(__x86_64__)
    __asm__ volatile("prefetchw %0" : : "m"(*line)); /* needs no option of the compiler; does nothing where unknown */
#else
    __builtin_prefetch(line, 1);
#endif
}

void tti_lines_ask(const char *at, size_t bytes)
{
    const size_t most = bytes < ASKED_MAX ? bytes : ASKED_MAX;
    size_t       i;

    for (i = 0; i < most; i += LINE)
        ask_to_write(at + i);
}

tutti_status tti_lines_to_give(tti_host_channel *channel, size_t bytes, char **at_out)
{
    tutti_status st = TUTTI_OK;

    if (bytes > TTI_LINES_MIDDLE)
        st = channel->in_haste && !tti_host_has_caught_up(channel) ? TTI_NOT_YET : tti_host_catch_up(channel);
    if (st != TUTTI_OK)
        return st;
    *at_out = tti_lines_at(channel, channel->team->rank, bytes);
    tti_lines_ask(*at_out, bytes);
    return TUTTI_OK;
}

/* What all have read long since comes back while this rank waits, or returns. */
static void ask_for_next(const tti_host_channel *channel)
{
    const tti_host_place *own = channel->members[channel->team->rank].places;

    ask_to_write(own[(channel->place + 1) % TTI_HOST_PLACES].line);
}

static bool is_there(const tti_host_channel *channel, int rank)
{
    const tti_host_place *place = tti_lines_place(channel, rank);

    return atomic_load_explicit(&place->word.value, memory_order_acquire) == channel->word;
}

void tti_lines_post(tti_host_channel *channel)
{
    tti_host_lines *own = channel->members[channel->team->rank].lines;

    tti_host_store(channel, &tti_lines_place(channel, channel->team->rank)->word, &own->place_waiters,
                   channel->word);
    channel->given = true;
}

tutti_status tti_lines_await(tti_host_channel *channel, int rank)
{
    if (!is_there(channel, rank)) {
        tutti_status st;

        if (channel->in_haste) {
            channel->given = true; /* givers have; others give nothing */
            return TTI_NOT_YET;
        }
        ask_for_next(channel);
        st = tti_host_wait(channel, rank, TTI_PLACED, channel->word);
        if (st != TUTTI_OK)
            return st;
    }
    channel->members[rank].agreed = channel->note.seq;
    return TUTTI_OK;
}

tutti_status tti_lines_await_all(tti_host_channel *channel)
{
    const int    n_ranks = channel->team->n_ranks, own = channel->team->rank;
    tutti_status st = TUTTI_OK;
    int          r;

    /* All lines are asked for before the first is waited for. A single one is not: it may be about to be written. */
    for (r = 0; r < n_ranks && n_ranks > 2; r++)
        __builtin_prefetch(tti_lines_place(channel, r)->line);
    for (r = own + 1; r < n_ranks && st == TUTTI_OK; r++)
        st = tti_lines_await(channel, r);
    for (r = 0; r < own && st == TUTTI_OK; r++)
        st = tti_lines_await(channel, r);
    if (st != TUTTI_OK)
        return st;
    channel->all_agreed = channel->note.seq;
    ask_for_next(channel);
    return TUTTI_OK;
}
