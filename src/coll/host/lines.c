/* SPDX-License-Identifier: BSD-3-Clause
 *
 * lines.c - giving and taking through lines.
 *
 * Why     With data and flag in one line a reader has both in one transfer, and a call costs what it must: each
 *         member's line goes once to each other member. Nothing says afterwards that it was read.
 * How     post   stores the call's control word in the line, after what goes with it
 *         await  polls that word until it is the call's
 *         The word has the low 40 bits of the call's number and what ranks must agree on, so that whoever finds
 *         its own has found that the other called the same.
 * True    Words are stored with release order and read with acquire order.
 *         Call n is here the n-th that enters the channel, which is the same on all members. Its number in the group
 *         may be a larger one: turns are given back, and others go to another backend.
 *         1. A place is not overwritten while it is read. Call n writes where call n-2 or one before it did. Nobody
 *            begins call n before all have entered call n-1 (channel.c), and who has entered n-1 has left n-2. Each
 *            member has that from each other member, by a load with acquire order of what that one stored after
 *            its last read.
 *         2. A word is never taken for another's. A place holds words of calls n-2, n-4, ... until that of n is
 *            stored, and nobody who is in call n is looked at by one in n-2. Numbers are compared for equality of
 *            40 bits; 2^40 numbers ago the place was overwritten.
 *         3. Nobody waits in a circle: a member posts before it waits, and waits for nothing but posts of this call.
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

char *tti_lines_to_give(const tti_host_channel *channel, size_t bytes)
{
    char *at = tti_lines_at(channel, channel->team->rank, bytes);

    tti_lines_ask(at, bytes);
    return at;
}

static bool is_there(const tti_host_channel *channel, int rank)
{
    const tti_host_place *place = tti_lines_place(channel, rank);

    return atomic_load_explicit(&place->word.value, memory_order_acquire) == channel->note.word;
}

void tti_lines_post(tti_host_channel *channel)
{
    tti_host_lines *own = channel->members[channel->team->rank].lines;

    tti_host_store(channel, &tti_lines_place(channel, channel->team->rank)->word, &own->place_waiters,
                   channel->note.word);
}

tutti_status tti_lines_await(tti_host_channel *channel, int rank)
{
    if (!is_there(channel, rank)) {
        const tutti_status st = tti_host_wait(channel, rank, TTI_PLACED, channel->note.word);

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
    /* What all have read by now comes back while the caller returns. */
    ask_to_write(channel->members[own].places[(channel->place + 1) % TTI_HOST_PLACES].line);
    return TUTTI_OK;
}
