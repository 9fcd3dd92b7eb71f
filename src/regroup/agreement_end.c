/* SPDX-License-Identifier: BSD-3-Clause
 *
 * agreement_end.c - what is decided becomes known to all, whoever dies meanwhile.
 *
 * Why     A leader that dies while it says COMMIT would leave some with the new group, and others with too few to go on.
 * How     Nobody leaves the call before the others know, or can be told by somebody who is still in it:
 *             COMMIT     leader -> all: it is decided
 *             KNOWN      back: this member knows
 *             ALL_KNOW   leader -> all: they all do, or are gone. Whoever hears it leaves
 *         Whoever knows and loses the leader, or hears nothing of it for twice as long as that may take, says COMMIT to all
 *         the others itself, and leaves when they have answered: each then talks to all, which is not to happen where the
 *         leader is merely about to say ALL_KNOW. Whatever else somebody asks who does not know, COMMIT is the answer.
 * True    What is said here was decided: it is passed on, and nothing follows from it.
 * Fails   It takes SPREAD_NS at most, as long again where the leader is lost, and three times as long where it says
 *         nothing. Who is known to be silent is not waited for: one that is stopped then finds out later, from what it was
 *         sent. It is an error for whoever was told by nobody only if all that knew have died. */
#include "regroup/agreement_core.h"

#include <stdio.h>
#include <string.h>

#define SPREAD_NS (1 * TTI_SECOND)

static void fail_left_out(tti_agreement *a)
{
    char words[TTI_AGREE_WORDS_MAX];

    snprintf(words, sizeof words,
             "%.200s: the others have gone on without rank %d, which they had not heard of for too long\n"
             "  next: end this process; a new one can come in by tutti_join_group()",
             a->config.what, a->rank);
    tti_agree_fail(a, TUTTI_E_STATE, words);
}

static void say(tti_agreement *a, int to, tti_agree_type type)
{
    const tti_agree_message m = { .type = type, .origin = a->built, .value = a->chosen };

    tti_agree_send(a, to, &m);
}

/* To all that are in it and do not know, also to those to whom there is no connection yet. */
static void say_to_unknowing(tti_agreement *a)
{
    int r;

    for (r = 0; r < a->n; r++)
        if (r != a->rank && a->chosen[r] && !a->members[r].knows && !a->members[r].gone)
            say(a, r, TTI_AGREE_COMMIT);
}

/* from: who says so; this one: it has decided itself, and has told those that are there. */
void tti_agree_decided(tti_agreement *a, int from, uint64_t origin, const bool *value)
{
    if (a->task == TTI_AGREE_DONE || a->task == TTI_AGREE_FAILED || a->decided)
        return;
    if (a->task == TTI_AGREE_BUILD && a->building == origin) {
        a->committed = origin; /* it is known when that has ended */
        a->committed_by = from;
        return;
    }
    if (!value[a->rank] || a->built != origin) {
        fail_left_out(a);
        return;
    }
    memmove(a->chosen, value, (size_t)a->n * sizeof *value);
    a->decided = true;
    a->told_by = from;
    a->phase = TTI_AGREE_FOLLOW;
    a->spread_until_ns = a->now_ns + (from == a->rank ? SPREAD_NS : 2 * SPREAD_NS);
    if (from != a->rank)
        say(a, from, TTI_AGREE_KNOWN);
}

static bool all_know(const tti_agreement *a)
{
    int r;

    for (r = 0; r < a->n; r++)
        if (r != a->rank && a->chosen[r] && !a->members[r].knows && !a->members[r].gone && !a->members[r].silent)
            return false;
    return true;
}

static void tell_all_know(tti_agreement *a)
{
    int r;

    for (r = 0; r < a->n; r++)
        if (r != a->rank && a->chosen[r] && a->members[r].present)
            say(a, r, TTI_AGREE_ALL_KNOW);
}

/* Who has told this one cannot tell the others any more, or does not say that it has. */
static bool has_lost_teller(const tti_agreement *a)
{
    const tti_agree_member *teller = &a->members[a->told_by];

    return teller->gone || teller->silent || a->now_ns >= a->spread_until_ns;
}

void tti_agree_spread(tti_agreement *a)
{
    if (a->task == TTI_AGREE_DONE)
        return;
    if (a->told_by != a->rank && !a->spreads && has_lost_teller(a)) {
        a->spreads = true;
        a->spread_until_ns = a->now_ns + SPREAD_NS;
        say_to_unknowing(a);
    }
    if (a->told_by != a->rank && !a->spreads)
        return;
    if (!all_know(a) && a->now_ns < a->spread_until_ns && a->now_ns < a->config.deadline_ns)
        return;
    tell_all_know(a);
    a->task = TTI_AGREE_DONE;
}

void tti_agree_hear_knowing(tti_agreement *a, int from, const tti_agree_message *m)
{
    switch (m->type) {
    case TTI_AGREE_COMMIT:
        a->members[from].knows = true;
        say(a, from, TTI_AGREE_KNOWN);
        break;
    case TTI_AGREE_REFUSE: /* its call is over */
    case TTI_AGREE_KNOWN: a->members[from].knows = true; break;
    case TTI_AGREE_ALL_KNOW: a->task = TTI_AGREE_DONE; break;
    case TTI_AGREE_ALIVE: break;
    default: say(a, from, TTI_AGREE_COMMIT); break;
    }
}
