/* SPDX-License-Identifier: BSD-3-Clause
 *
 * trouble.c - last words on the board.
 *
 * Why     The first words are the reason of all, and stay. Who gives up later, for the same reason perhaps, hangs up on others as
 *         well, and they see nothing of it but that it is gone.
 * How     The first words say who has left them. Who finds them there leaves a mark under its own number instead. Whoever loses a
 *         rank looks for both: one that has given up has gone because of something else, and is not told of as lost.
 * True    Words and marks are on the board before anything is closed that others look at. So whoever sees such an end finds
 *         either, and a rank with neither did not give up. */
#include "transport/trouble.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tutti/private.h>
#include "base/clip.h"

#define PATIENCE_NS TTI_SECOND

enum { NAME_MAX_BYTES = 40, OWN_WORDS_MAX = TTI_LAST_ERROR_MAX, MENTIONS_MAX = 4 /* ranks in it that are asked about */ };

static void mark_who_gave_up(const tti_board *board, int rank, int64_t deadline_ns)
{
    const char mark = 1;
    char       key[TTI_BOARD_KEY_BYTES];

    snprintf(key, sizeof key, TTI_GAVE_UP_KEY, rank);
    (void)board->put(board->context, key, &mark, sizeof mark, deadline_ns);
}

void tti_trouble_leave(const tti_board *board, tti_port *port, int rank, tutti_status st)
{
    const int64_t deadline_ns = tti_port_now(port) + PATIENCE_NS;
    tti_trouble   trouble = { .status = (int32_t)st, .who = rank + 1 };
    char          words[OWN_WORDS_MAX];

    snprintf(words, sizeof words, "%s", tutti_last_error());
    tti_clip(trouble.words, sizeof trouble.words, "%s", words);
    if (board->put(board->context, TTI_TROUBLE_KEY, &trouble, sizeof trouble, deadline_ns) == TUTTI_E_STATE)
        mark_who_gave_up(board, rank, deadline_ns);
    tti_fail(st, "%s", words);
}

static bool find_at(const tti_board *board, const char *key, int64_t deadline_ns, tti_trouble *trouble_out)
{
    tti_trouble trouble;
    bool        there = false;

    if (board->has(board->context, key, deadline_ns, &there) != TUTTI_OK || !there ||
        board->get(board->context, key, &trouble, sizeof trouble, deadline_ns) != TUTTI_OK ||
        trouble.status <= TUTTI_OK || trouble.status > TUTTI_E_REMOTE)
        return false;
    trouble.words[sizeof trouble.words - 1] = '\0';
    *trouble_out = trouble;
    return true;
}

bool tti_trouble_find(const tti_board *board, int64_t deadline_ns, tti_trouble *trouble_out)
{
    return find_at(board, TTI_TROUBLE_KEY, deadline_ns, trouble_out);
}

bool tti_refusal_find(const tti_board *board, int rank, int64_t deadline_ns, tti_trouble *trouble_out)
{
    char key[TTI_BOARD_KEY_BYTES];

    snprintf(key, sizeof key, TTI_REFUSAL_KEY, rank);
    if (find_at(board, key, deadline_ns, trouble_out))
        return true;
    snprintf(key, sizeof key, TTI_OTHERWISE_KEY, rank);
    return find_at(board, key, deadline_ns, trouble_out);
}

/* Everybody's words have the process of whom they speak as "pid 4711)". */
static bool name_the_same(const char *own, const char *theirs)
{
    const char *at = strstr(own, "pid ");
    char        name[NAME_MAX_BYTES];
    size_t      n = at != NULL ? strcspn(at, ")") : 0;

    if (at == NULL || at[n] != ')' || n + 2 > sizeof name)
        return false;
    memcpy(name, at, n + 1);
    name[n + 1] = '\0';
    return strstr(theirs, name) != NULL;
}

/* The number behind the next "rank " from *at on, and *at behind it; -1: there is none. */
static int next_mention(const char **at)
{
    char *end;
    long  rank;

    while ((*at = strstr(*at, "rank ")) != NULL) {
        *at += strlen("rank ");
        rank = strtol(*at, &end, 10);
        if (end > *at && rank >= 0 && rank < INT_MAX) {
            *at = end;
            return (int)rank;
        }
    }
    return -1;
}

static bool has_given_up(const tti_board *board, const tti_trouble *trouble, int rank, int64_t deadline_ns)
{
    char key[TTI_BOARD_KEY_BYTES];
    bool there = false;

    if (rank == trouble->who - 1)
        return true;
    snprintf(key, sizeof key, TTI_GAVE_UP_KEY, rank);
    return board->has(board->context, key, deadline_ns, &there) == TUTTI_OK && there;
}

/* Whether what this rank has seen is of one that has given up. */
static bool is_of_who_gave_up(const tti_board *board, const tti_trouble *trouble, const char *seen, int64_t deadline_ns)
{
    const char *at = seen;
    int         n, rank;

    for (n = 0; n < MENTIONS_MAX && (rank = next_mention(&at)) >= 0; n++)
        if (has_given_up(board, trouble, rank, deadline_ns))
            return true;
    return false;
}

/* What somebody has left, and what this rank has seen, unless the other is said already. */
static tutti_status fail_as_told(const tti_trouble *trouble, const char *seen, bool is_said)
{
    char who[32] = "another rank";

    if (trouble->who > 0)
        snprintf(who, sizeof who, "rank %d", trouble->who - 1);
    return tti_fail((tutti_status)trouble->status, "%s has given up, and reported: %s%s%s", who, trouble->words,
                    is_said ? "" : "\n  seen here: ", is_said ? "" : seen);
}

bool tti_trouble_explains(const tti_board *board, tti_port *port, tutti_status *st)
{
    const int64_t deadline_ns = tti_port_now(port) + PATIENCE_NS;
    tti_trouble   trouble;
    char          words[OWN_WORDS_MAX];

    snprintf(words, sizeof words, "%s", tutti_last_error());
    if (!tti_trouble_find(board, deadline_ns, &trouble) || name_the_same(words, trouble.words)) {
        tti_fail(*st, "%s", words);
        return false;
    }
    *st = fail_as_told(&trouble, words, is_of_who_gave_up(board, &trouble, words, deadline_ns));
    return true;
}

tutti_status tti_trouble_explain(const tti_board *board, tti_port *port, tutti_status st)
{
    (void)tti_trouble_explains(board, port, &st);
    return st;
}
