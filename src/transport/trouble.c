/* SPDX-License-Identifier: BSD-3-Clause
 *
 * trouble.c - last words on the board. */
#include "transport/trouble.h"

#include <stdio.h>
#include <string.h>
#include <tutti/private.h>

#define PATIENCE_NS TTI_SECOND

enum { NAME_MAX_BYTES = 40, OWN_WORDS_MAX = 2048 /* of a last error */ };

void tti_trouble_leave(const tti_board *board, tti_port *port, int rank, tutti_status st)
{
    tti_trouble trouble = { .status = (int32_t)st, .who = rank + 1 };
    char        words[OWN_WORDS_MAX];

    snprintf(words, sizeof words, "%s", tutti_last_error());
    snprintf(trouble.words, sizeof trouble.words, "%.*s", TTI_TROUBLE_WORDS_MAX - 1, words);
    (void)board->put(board->context, TTI_TROUBLE_KEY, &trouble, sizeof trouble, tti_port_now(port) + PATIENCE_NS);
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

/* Whether words have the rank, as "rank 4", and not "rank 47". */
static bool name_rank(const char *words, int rank)
{
    char        name[NAME_MAX_BYTES];
    const char *at = words;
    const int   n = snprintf(name, sizeof name, "rank %d", rank);

    while ((at = strstr(at, name)) != NULL && at[n] >= '0' && at[n] <= '9')
        at += n;
    return at != NULL;
}

/* What somebody has left, and what this rank has seen: but for what it has seen of the one that left it, who has gone because of it. */
static tutti_status fail_as_told(const tti_trouble *trouble, const char *seen)
{
    const bool is_said = trouble->who > 0 && name_rank(seen, trouble->who - 1);

    return tti_fail((tutti_status)trouble->status, "another rank has given up, and reported: %s%s%s", trouble->words,
                    is_said ? "" : "\n  seen here: ", is_said ? "" : seen);
}

bool tti_trouble_explains(const tti_board *board, tti_port *port, tutti_status *st)
{
    tti_trouble trouble;
    char        words[OWN_WORDS_MAX];

    snprintf(words, sizeof words, "%s", tutti_last_error());
    if (!tti_trouble_find(board, tti_port_now(port) + PATIENCE_NS, &trouble) || name_the_same(words, trouble.words)) {
        tti_fail(*st, "%s", words);
        return false;
    }
    *st = fail_as_told(&trouble, words);
    return true;
}

tutti_status tti_trouble_explain(const tti_board *board, tti_port *port, tutti_status st)
{
    (void)tti_trouble_explains(board, port, &st);
    return st;
}
