/* SPDX-License-Identifier: BSD-3-Clause
 *
 * words.c - what is said of a call by messages that cannot go on: who is silent, and at which step; what another rank
 * called instead. */
#include "coll/net/motion.h"

#include <stdlib.h>
#include <tutti/private.h>

enum { SEQUENCE_SHIFT = 24 };

static const tti_chunk *chunk_at(const tti_net *net, int k)
{
    return &net->chunks[k % net->cut.window];
}

/* Receives, or sends, of a chunk that have been posted and not ended: how many, by peers that are marked. */
static int mark_silent(const tti_chunk *chunk, bool receiving, bool *silent)
{
    const tti_transfer *all = receiving ? chunk->schedule.recvs.items : chunk->schedule.sends.items;
    tti_request *const *requests = receiving ? chunk->recvs : chunk->sends;
    const int           end = receiving ? tti_motion_recvs_end(chunk) : chunk->n_sending;
    int                 n = 0, i;

    for (i = receiving ? chunk->n_received : chunk->n_sent; i < end; i++)
        if (!tti_request_ended(requests[i])) {
            silent[all[i].peer] = true;
            n++;
        }
    return n;
}

/* "; no connection to rank 5": which of the silent do not even take one, so that they are stopped or out of
 * reach, and not merely late. */
static void add_unreached(const tti_team *team, bool *silent, tti_words *words)
{
    bool any = false;
    int  r;

    for (r = 0; r < team->n_ranks; r++) {
        silent[r] = silent[r] && !tti_messenger_connected(team->messenger, team->ranks[r]);
        any = any || silent[r];
    }
    if (!any)
        return;
    tti_words_add(words, "; no connection to ");
    tti_team_add_ranks(team, words, silent);
}

/* Where the call stands: its oldest chunk. */
static void add_step(const tti_net *net, tti_words *words)
{
    const tti_chunk *chunk = chunk_at(net, net->n_over);

    tti_words_add(words, " (step %d of %d", chunk->phase + 1, chunk->schedule.phases.n);
    if (net->cut.n_chunks > 1)
        tti_words_add(words, ", chunk %d of %d", net->n_over + 1, net->cut.n_chunks);
    tti_words_add(words, ")");
}

static bool is_any(const bool *marked, int n)
{
    int i;

    for (i = 0; i < n && !marked[i]; i++)
        continue;
    return i < n;
}

/* Whether a root's word is awaited here, after which this rank is to begin (turns.h): a message of nothing. */
static bool awaits_word(const tti_net *net)
{
    int k, i;

    for (k = net->n_over; k < net->n_begun && tti_call_root(&net->note) >= 0; k++) {
        const tti_chunk    *chunk = chunk_at(net, k);
        const tti_transfer *recvs = chunk->schedule.recvs.items;

        for (i = chunk->n_received; i < tti_motion_recvs_end(chunk); i++)
            if (recvs[i].block.bytes == 0 && !tti_request_ended(chunk->recvs[i]))
                return true;
    }
    return false;
}

/* "no message from ranks 2, 5": whose messages have not come, in all chunks under way, or, if all have, have not been
 * taken. peer_out: one of them. False: nobody is, as it has ended since the time was up. */
static bool add_silent(const tti_net *net, tti_words *words, int *peer_out)
{
    bool receiving = true;
    bool *silent = calloc((size_t)net->team->n_ranks, sizeof *silent);
    bool  any;
    int   n = 0, k;

    if (silent == NULL)
        return true;
    for (k = net->n_over; k < net->n_begun; k++)
        n += mark_silent(chunk_at(net, k), true, silent);
    if (n == 0) {
        receiving = false;
        for (k = net->n_over; k < net->n_begun; k++)
            (void)mark_silent(chunk_at(net, k), false, silent);
    }
    any = is_any(silent, net->team->n_ranks);
    for (k = 0; k < net->team->n_ranks - 1 && !silent[k]; k++)
        ;
    if (any) {
        *peer_out = k;
        tti_words_add(words, receiving ? "no message from " : "message not taken by ");
        tti_team_add_ranks(net->team, words, silent);
        if (receiving && awaits_word(net))
            tti_words_add(words, "; rank %d has not told this one to begin: it may be waiting for others", net->team->ranks[k]);
        add_unreached(net->team, silent, words);
    }
    free(silent);
    return any;
}

/* A peer may be silent because nothing leads to it: a firewall, say. */
static bool add_unconnected(const tti_team *team, int peer, tti_words *words)
{
    char text[TTI_LISTENS_TEXT_MAX];

    if (peer == team->rank || !tti_messenger_unconnected(team->messenger, team->ranks[peer], text, sizeof text))
        return false;
    tti_words_add(words, ", and no connection yet to rank %d at %s", team->ranks[peer], text);
    return true;
}

/* Of another rank's time-out this thread's last error has the words; what it called here goes before them. */
static tutti_status fail_told(const tti_net *net)
{
    tti_words words = { .used = 0 };
    char      call[TTI_CALL_TEXT_MAX];

    tti_words_add(&words, "%s", tutti_last_error());
    tti_team_describe(net->team, &net->note, call);
    return tti_fail(TUTTI_E_TIMEOUT, "%s on rank %d: %s", call, net->team->ranks[net->team->rank], words.text);
}

tutti_status tti_net_fail_timeout(const tti_net *net)
{
    const tti_team *team = net->team;
    const int64_t   waited_ns = tti_port_now(team->port) - net->entered_ns;
    tti_words       words = { .used = 0 };
    char            call[TTI_CALL_TEXT_MAX], way[TTI_WAY_TEXT_MAX] = "", step[TTI_NEXT_TEXT_MAX];
    const char     *next;
    int             peer = team->rank;

    tti_team_describe(team, &net->note, call);
    if (!add_silent(net, &words, &peer) && tti_messenger_heard(team->messenger, team->group_id) == TUTTI_E_TIMEOUT)
        return fail_told(net); /* another rank's time was up first, and what it said has ended all that was under way here */
    next = add_unconnected(team, peer, &words)
               ? "let that port through between the hosts, or set TUTTI_PORT_RANGE to ports that are"
           : tti_call_root(&net->note) >= 0
               ? "see what the ranks named do instead, and whether all name the same root; or give the "
                 "group a longer time-out"
           : tti_team_whole(team) != team /* they carry for hosts */
               ? "see what the ranks named do instead, and the others of their hosts, for which they may be waiting; or "
                 "give the group a longer time-out"
               : "see what the ranks named do instead, or give the group a longer time-out";
    add_step(net, &words);
    tti_team_add_unwell(team, &words, NULL);
    if (peer != team->rank)
        (void)tti_messenger_describe(team->messenger, team->ranks[peer], way);
    return tti_fail(TUTTI_E_TIMEOUT,
                    "%s on group '%s' timed out after %lld ms on rank %d of %d members\n"
                    "  %s%s\n"
                    "  next: %s",
                    call, team->name, (long long)(waited_ns / TTI_MS), team->ranks[team->rank],
                    tti_team_whole(team)->n_ranks, words.text, way, tti_team_next_step(team, next, step));
}

/* The message was of another call. Of that its frame has all but the count, and 40 bits of the number. */
static tutti_status fail_mismatch(const tti_net *net, const tti_request *request, int peer)
{
    const tti_team *team = net->team;
    const uint64_t  word = tti_request_word(request);
    const bool      counts = tti_request_what(request) == net->note.what;
    tti_call_note   other = { .word = word, .what = tti_request_what(request),
                              .count = TTI_CALL_COUNT_UNKNOWN, .seq = word >> SEQUENCE_SHIFT };
    char            call[TTI_CALL_TEXT_MAX], theirs[TTI_CALL_TEXT_MAX];

    if (word == 0 || word == net->note.word)
        return TUTTI_E_MISMATCH; /* size or type: the messenger has said it */
    tti_team_describe(team, &net->note, call);
    tti_team_describe(team, &other, theirs);
    return tti_fail(TUTTI_E_MISMATCH,
                    "ranks of group '%s' called different things\n  rank %d: %s\n"
                    "  rank %d: %s%s\n"
                    "  next: let all members make the group's calls in the same order, with equal "
                    "arguments",
                    team->name, team->ranks[team->rank], call, team->ranks[peer], theirs,
                    other.seq != net->note.word >> SEQUENCE_SHIFT ? ", another of the group's calls"
                    : counts                                      ? " with other counts"
                                                                  : "");
}

tutti_status tti_net_fail_message(const tti_net *net, const tti_request *request, int peer, tutti_status st)
{
    if (st == TUTTI_E_TIMEOUT) /* a request may end with what a peer has failed with, in the peer's words */
        return fail_told(net);
    return st == TUTTI_E_MISMATCH ? fail_mismatch(net, request, peer) : st;
}
