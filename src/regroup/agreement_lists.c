/* SPDX-License-Identifier: BSD-3-Clause
 *
 * agreement_lists.c - members that were given different ranks to exclude find out, and all hear of it.
 *
 * Why     Who is not to stay by somebody's list may be needed by another one's. Without a word they would wait for each other until time
 *         is up, and accuse those that came.
 * How     Every message has the list of who says it, so the first one between two members tells. Who meets another list
 *             of a member that it needs      tells all that are here, stays until that one can be told, too, and fails
 *             of a member that it excludes   tells that one, and goes on: what it says counts for nothing
 * Again   Who was told calls it once more at once, and may meet one that is in the call before still, with its list of then: that one
 *         alone is told, and is waited for. Calls have numbers for that, which members that meet make equal, and each knows up to which
 *         it has failed of lists. That the other one is behind is known from its JOIN; what it says from then on counts for nothing, nor does
 *         what others of that call pass on of it.
 * True    Nobody waits who was told by nobody. Take one whose list leaves a member with another list. It has a connection to whoever
 *         leads by its list, and that one to all that this list leaves, if both have the same: so either the leader has another list
 *         itself, or it meets that member, and tells all. Who came later, and finds them gone, reads it in the store (refused.c), also if
 *         it has no list itself.
 *         Where the leader is late the first few of those that a list leaves meet all others in its place.
 *         Two sides that exclude each other have no connection. Each goes on if all are there that its list leaves: the caller
 *         answers for a list. One that waits in vain reads the other one's list in the store, and says so (refused.c).
 *         Once something is being built all that a list leaves have promised with it, so nobody that is needed can have another one:
 *         what is heard of lists then changes nothing.
 * Fails   Who is to be told and cannot be reached is told by the store, or waits until its time is up. */
#include "regroup/agreement_core.h"

#include <stdio.h>
#include <string.h>

enum { NAMED_MAX = 8 };

bool tti_agree_differs(const tti_agreement *a, const tti_agree_message *m)
{
    if (m->has_list != (a->config.excluded != NULL))
        return true;
    return m->has_list && memcmp(m->list, a->config.excluded, (size_t)a->n * sizeof *m->list) != 0;
}

const char *tti_agreement_list_text(int n, const bool *list, char out[TTI_AGREE_LIST_MAX])
{
    size_t used;
    int    r, named = 0;

    if (list == NULL)
        return "no list";
    used = (size_t)snprintf(out, TTI_AGREE_LIST_MAX, "{");
    for (r = 0; r < n; r++)
        if (list[r] && named++ < NAMED_MAX)
            used += (size_t)snprintf(out + used, TTI_AGREE_LIST_MAX - used, "%s%d", named > 1 ? ", " : "", r);
    snprintf(out + used, TTI_AGREE_LIST_MAX - used, "%s}", named > NAMED_MAX ? ", ..." : "");
    return out;
}

void tti_agreement_word_lists(const char *what, int n, int one, const bool *one_list, int other, const bool *other_list,
                              char words[TTI_AGREE_WORDS_MAX])
{
    const bool  first = one < other;
    char        text[TTI_AGREE_LIST_MAX], other_text[TTI_AGREE_LIST_MAX];
    const char *low = tti_agreement_list_text(n, first ? one_list : other_list, text);
    const char *high = tti_agreement_list_text(n, first ? other_list : one_list, other_text);

    snprintf(words, TTI_AGREE_WORDS_MAX,
             "%.150s: the members passed different ranks to exclude: rank %d %s, and rank %d %s\n"
             "  next: pass the same ranks to exclude on all that go on, or none on any, and nothing on the others",
             what, first ? one : other, low, first ? other : one, high);
}

void tti_agree_word_difference(const tti_agreement *a, int other, const tti_agree_message *m, char words[TTI_AGREE_WORDS_MAX])
{
    tti_agreement_word_lists(a->config.what, a->n, a->rank, a->config.excluded, other, m->has_list ? m->list : NULL, words);
}

static tti_agree_message mismatch(const tti_agreement *a, int other, const tti_agree_message *m)
{
    tti_agree_message no = tti_agree_refusal(a, TUTTI_E_MISMATCH);

    no.origin = 1;
    tti_agree_word_difference(a, other, m, no.words);
    return no;
}

static void fail_parted(tti_agreement *a, const char *words)
{
    a->parted = true;
    tti_agree_fail(a, TUTTI_E_MISMATCH, words);
}

/* Other, whom this one needs, has another list. */
static void begin_to_part(tti_agreement *a, int other, const tti_agree_message *m)
{
    const tti_agree_message no = mismatch(a, other, m);

    tti_agree_tell_all(a, &no);
    if (a->members[other].present || m->type == TTI_AGREE_REFUSE) { /* it is told, or its call is over */
        fail_parted(a, no.words);
        return;
    }
    memcpy(a->odds_words, no.words, sizeof a->odds_words);
    a->odds = other;
    a->odds_until_ns = a->now_ns + TTI_AGREE_ODDS_NS;
}

/* Whether m is of a call of other's, whom this one needs, that is over here. */
static bool is_behind(tti_agreement *a, int other, const tti_agree_message *m)
{
    tti_agree_member *member = &a->members[other];
    const bool        is_over = a->config.over != 0 && m->accepted <= a->config.over && a->building == 0;

    if (m->type == TTI_AGREE_REFUSE && m->status == TUTTI_E_MISMATCH && m->ballot == TTI_AGREE_NO_BALLOT)
        return is_over;
    if (m->type == TTI_AGREE_JOIN)
        member->behind = is_over && tti_agree_differs(a, m);
    if (m->type == TTI_AGREE_JOIN && member->behind) {
        tti_agree_message no = mismatch(a, other, m);

        no.accepted = a->config.over;
        tti_agree_send(a, other, &no);
    }
    return member->behind;
}

bool tti_agree_compare(tti_agreement *a, int from, const tti_agree_message *m)
{
    const bool needed = tti_agree_eligible(a, from);

    if (a->odds >= 0) {
        if (from == a->odds && m->type == TTI_AGREE_REFUSE)
            fail_parted(a, a->odds_words);
        return true;
    }
    if (needed && is_behind(a, from, m))
        return true;
    if (!tti_agree_differs(a, m))
        return false;
    if (!needed && m->type == TTI_AGREE_JOIN) {
        const tti_agree_message no = mismatch(a, from, m);

        tti_agree_send(a, from, &no);
    }
    if (needed && a->building == 0)
        begin_to_part(a, from, m);
    return !needed || a->building == 0;
}

void tti_agree_part(tti_agreement *a)
{
    const tti_agree_member *other = &a->members[a->odds];
    tti_agree_message       no = tti_agree_refusal(a, TUTTI_E_MISMATCH);

    if (!other->present && !other->gone && a->now_ns < a->odds_until_ns && a->now_ns < a->config.deadline_ns)
        return;
    no.origin = 1;
    memcpy(no.words, a->odds_words, sizeof no.words);
    tti_agree_tell_all(a, &no); /* some have come since */
    fail_parted(a, no.words);
}

bool tti_agree_refuse_difference(tti_agreement *a)
{
    int r = 0;

    while (r < a->n && !(a->members[r].asked && a->members[r].answered && a->members[r].differs))
        r++;
    if (r == a->n)
        return false;
    a->parted = true;
    tti_agree_refuse(a, TUTTI_E_MISMATCH, a->odds_words);
    return true;
}
