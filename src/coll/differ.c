/* SPDX-License-Identifier: BSD-3-Clause
 *
 * differ.c - two members have called different things: whether, and in which words.
 *
 * On one host a member reads the others' boards (host/trouble.c). Elsewhere the messenger hears of their calls, and asks here
 * (transport/agree.c): on any thread, so all that is read is constant, or on this rank's own board, which is made of
 * atomics. */
#include "coll/team.h"

#include <stdio.h>
#include <tutti/private.h>

/* What is said of a call: of one that was only seen in passing, how far it is known. */
static void add_call(const tti_team *team, tti_words *words, int rank, const tti_call_note *note, const char *but)
{
    char call[TTI_CALL_TEXT_MAX];

    tti_team_describe(team, note, call);
    tti_words_add(words, "\n  rank %d: %s%s", rank, call, but);
}

void tti_team_add_difference(const tti_team *team, tti_words *words, const tti_call_note *ours, int other,
                             const tti_call_note *theirs)
{
    const int   own = team->ranks[team->rank];
    const bool  one_number = tti_call_number_of(ours->word) == tti_call_number_of(theirs->word);
    const bool  counts = theirs->count == TTI_CALL_COUNT_UNKNOWN && theirs->what == ours->what;
    const char *but = !one_number ? ", another of the group's calls" : counts ? " with other counts" : "";

    tti_words_add(words, "ranks of group '%s' called different things", team->name);
    if (own < other)
        add_call(team, words, own, ours, "");
    add_call(team, words, other, theirs, but);
    if (own > other)
        add_call(team, words, own, ours, "");
    if (one_number)
        tti_words_add(words, "\n  what differs: %s", tti_call_difference(ours, theirs));
    tti_words_add(words, "\n  next: let all members make the group's calls in the same order, with equal arguments");
}

static void describe(void *context, const tti_call_note *note, char *out, size_t bytes)
{
    const tti_team *team = context;
    char            call[TTI_CALL_TEXT_MAX];

    tti_team_describe(team, note, call);
    snprintf(out, bytes, "%s on group '%s'", call, team->name);
}

static bool differs(void *context, int peer, const tti_call_note *theirs, bool in_place, tti_call_note *ours_out,
                      char *words_out, size_t bytes)
{
    const tti_team *team = context;
    tti_words       words = { .used = 0 };
    tti_call_note   ours;
    const bool      is_message = theirs->count == TTI_CALL_COUNT_UNKNOWN;

    if (tti_call_find_near(team->board, theirs->word, &ours)) {
        if (ours.word == theirs->word)
            return false;
    } else if (!tti_call_last(team->board, &ours) ||
               !(in_place || (is_message && tti_call_is_later(ours.word, theirs->word)))) {
        return false; /* this rank has not come so far; or the board has it no more, and what is told may be old */
    }
    tti_team_add_difference(team, &words, &ours, peer, theirs);
    snprintf(words_out, bytes, "%s", words.text);
    *ours_out = ours;
    return true;
}

tti_comparer tti_team_comparer(tti_team *team)
{
    return (tti_comparer){ .differs = differs, .describe = describe, .board = team->board, .finished = &team->finished,
                           .name = team->name, .ctx = team };
}
