/* SPDX-License-Identifier: BSD-3-Clause
 *
 * agreement_lead.c - what a member does that leads: gathers, asks, proposes, decides.
 *
 *     GATHER   until each of the others is there, dead, or silent for too long
 *     ASK      for promises; with them the value is clear
 *     MAKE     a new value: all of its members build, this one too, and vote; then it is decided
 *     RECOVER  a value that may have been decided by a leader that is gone: votes, no building
 *
 * agreement.c says why that is right. */
#include "regroup/agreement_core.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tutti/private.h>

enum { NAMED_MAX = 8, LIST_MAX = 96, ABSENCE_MAX = TTI_AGREE_WORDS_MAX - 180 };

#define YIELD_NS (100 * TTI_MS)
/* What is left to who comes too late. */
#define JOIN_AGAIN "let this process end, or destroy its groups and call tutti_join_group() while they call tutti_grow_group()"

/* ---- saying it to many ---- */

void tti_agree_tell_all(tti_agreement *a, const tti_agree_message *m)
{
    int r;

    for (r = 0; r < a->n; r++)
        if (r != a->rank && a->members[r].present)
            tti_agree_send(a, r, m); /* also to those that say nothing: it may be heard yet */
}

/* Higher than any that was heard of. */
static uint64_t next_ballot(const tti_agreement *a)
{
    return (a->promised / TTI_AGREE_RANKS_MAX + 1) * TTI_AGREE_RANKS_MAX + (uint64_t)a->rank;
}

/* Before anybody was asked it is said in the ballot that would have been: who has promised one of a leader that has died since
 * is to hear it, too. */
void tti_agree_refuse(tti_agreement *a, tutti_status status, const char *words)
{
    tti_agree_message no = tti_agree_refusal(a, status);

    no.ballot = a->phase == TTI_AGREE_GATHER ? next_ballot(a) : a->ballot;
    snprintf(no.words, sizeof no.words, "%s", words);
    if (a->phase != TTI_AGREE_FOLLOW)
        tti_agree_tell_all(a, &no);
    tti_agree_fail(a, status, words);
}

static void decide(tti_agreement *a, uint64_t origin, bool *value)
{
    const tti_agree_message m = { .type = TTI_AGREE_COMMIT, .origin = origin, .value = value };

    tti_agree_tell_all(a, &m);
    tti_agree_decided(a, a->rank, origin, value);
}

/* ---- who is missing ---- */

/* The list leaves it, and it is not here, or has not answered what it was asked. */
static bool is_missing(const tti_agreement *a, int rank)
{
    const tti_agree_member *member = &a->members[rank];

    return rank != a->rank && tti_agree_eligible(a, rank) &&
           (!member->present || member->behind || member->silent || (a->phase != TTI_AGREE_GATHER && member->asked && !member->answered));
}

static int list_missing(const tti_agreement *a, bool *set)
{
    int r, n = 0;

    for (r = 0; r < a->n; r++)
        n += set[r] = is_missing(a, r);
    return n;
}

/* "ranks 3, 5": those of a set but for this one. How many. */
static int name(const tti_agreement *a, const bool *set, char out[LIST_MAX])
{
    size_t used = 0;
    int    r, n = 0;

    for (r = 0; r < a->n; r++)
        n += set[r] && r != a->rank;
    used += (size_t)snprintf(out, LIST_MAX, "rank%s", n == 1 ? "" : "s");
    for (r = 0, n = 0; r < a->n; r++)
        if (set[r] && r != a->rank && n++ < NAMED_MAX)
            used += (size_t)snprintf(out + used, LIST_MAX - used, "%s%d", n > 1 ? ", " : " ", r);
    if (n > NAMED_MAX)
        snprintf(out + used, LIST_MAX - used, ", ...");
    return n;
}

static void refuse_for_missing(tti_agreement *a, tutti_status status, const char *how, const char *next)
{
    char words[TTI_AGREE_WORDS_MAX], list[LIST_MAX];

    list_missing(a, a->absent);
    name(a, a->absent, list);
    snprintf(words, sizeof words, "%.150s: %s %s, on rank %d\n  next: %s", a->config.what, list, how, a->rank, next);
    tti_agree_refuse(a, status, words);
}

/* ---- time is up ---- */

#define CHECK_SURVIVORS "check that all survivors call it, and pass the same ranks to exclude"

/* Who follows knows of the others what its leader has said. */
static void word_expiry(const tti_agreement *a, char words[TTI_AGREE_WORDS_MAX])
{
    const bool gathers = a->config.excluded != NULL && a->building == 0;
    char       list[LIST_MAX];

    if (gathers && a->was_told && name(a, a->missing, list) > 0)
        snprintf(words, TTI_AGREE_WORDS_MAX, "%.150s: %s did not come to go on with, or did not answer, as rank %d, which leads the others, says, on rank %d\n"
                 "  next: " CHECK_SURVIVORS, a->config.what, list, a->heard_of, a->rank);
    else if (gathers && !tti_agreement_has_come(a, a->heard_of))
        snprintf(words, TTI_AGREE_WORDS_MAX, "%.150s: rank %d, which is to lead the others, did not come to go on with, on rank %d\n"
                 "  next: " CHECK_SURVIVORS, a->config.what, a->heard_of, a->rank);
    else
        snprintf(words, TTI_AGREE_WORDS_MAX, "%.150s: rank %d, which leads the others, did not say who goes on, on rank %d\n"
                 "  next: " CHECK_SURVIVORS, a->config.what, a->heard_of, a->rank);
}

/* With a list nobody can go on without this one: the others are told, or they would take it for one that did not come. */
static void expire_following(tti_agreement *a)
{
    tti_agree_message no = tti_agree_refusal(a, TUTTI_E_TIMEOUT);

    word_expiry(a, no.words);
    if (a->config.excluded != NULL)
        tti_agree_tell_all(a, &no);
    tti_agree_fail(a, TUTTI_E_TIMEOUT, no.words);
}

void tti_agree_expire(tti_agreement *a)
{
    if (a->phase != TTI_AGREE_FOLLOW || a->heard_of < 0) /* below 0: its time was up before it could look */
        refuse_for_missing(a, TUTTI_E_TIMEOUT, "did not come to go on with, or did not answer", CHECK_SURVIVORS);
    else
        expire_following(a);
}

/* ---- a ballot ---- */

void tti_agree_yield(tti_agreement *a, uint64_t ballot)
{
    if (a->phase == TTI_AGREE_FOLLOW || ballot <= a->ballot)
        return;
    a->vain = a->vain || a->phase == TTI_AGREE_MAKE;
    a->phase = TTI_AGREE_FOLLOW;
    a->yield_ns = a->now_ns + YIELD_NS + (a->rank % 8) * (YIELD_NS / 4);
}

void tti_agree_note(tti_agreement *a, tutti_status status, const char *words)
{
    if (a->failure != TUTTI_OK)
        return;
    a->failure = status;
    snprintf(a->words, sizeof a->words, "%s", words);
}

static void gather(tti_agreement *a)
{
    a->phase = TTI_AGREE_GATHER;
    tti_agree_begin(a, a->config.patience_ns);
    a->vain = false;
    a->own_built = false;
}

void tti_agree_lose(tti_agreement *a, int rank)
{
    if (a->phase == TTI_AGREE_ASK && a->members[rank].asked)
        gather(a);
    else if (a->phase == TTI_AGREE_MAKE && a->chosen[rank])
        a->vain = true;
}

static void ask(tti_agreement *a)
{
    tti_agree_message m = { .type = TTI_AGREE_PREPARE };
    int               r;

    a->phase = TTI_AGREE_ASK;
    tti_agree_begin(a, tti_agree_silence_ns(a));
    a->ballot = next_ballot(a);
    a->promised = a->ballot;
    m.ballot = a->ballot;
    for (r = 0; r < a->n; r++) {
        tti_agree_member *member = &a->members[r];

        member->answered = member->differs = false;
        member->asked = r != a->rank && member->present && !member->behind && !tti_agree_is_away(member) && tti_agree_eligible(a, r);
        if (member->asked)
            tti_agree_send(a, r, &m);
    }
}

/* Whether all that were asked have answered, or will not. */
static bool all_answered(const tti_agreement *a)
{
    int r;

    for (r = 0; r < a->n; r++)
        if (a->members[r].asked && !a->members[r].answered && !a->members[r].gone && !a->members[r].silent)
            return false;
    return true;
}

/* Who is with this ballot. */
static void list_with(const tti_agreement *a, bool *set)
{
    int r;

    for (r = 0; r < a->n; r++)
        set[r] = r == a->rank || (a->members[r].asked && a->members[r].answered && !a->members[r].gone);
}

static int count(const bool *set, int n)
{
    int r, sum = 0;

    for (r = 0; r < n; r++)
        sum += set[r];
    return sum;
}

/* ---- the value ---- */

/* Whether the new value of ballot k was voted for by all its members that can be asked: else it was not decided. */
static bool may_be_decided(const tti_agreement *a, const bool *with, uint64_t k, const bool *value)
{
    int r;

    for (r = 0; r < a->n; r++)
        if (value[r] && with[r] && (r == a->rank ? a->accepted : a->members[r].accepted) != k)
            return false;
    return true;
}

/* The vote of the highest ballot below limit that somebody reports: its ballot; 0: none. */
static uint64_t highest_vote(const tti_agreement *a, const bool *with, uint64_t limit, uint64_t *origin_out, bool **value_out)
{
    uint64_t best = 0;
    int      r;

    for (r = 0; r < a->n; r++) {
        const tti_agree_member *member = &a->members[r];
        const uint64_t          k = r == a->rank ? a->accepted : member->accepted;

        if (!with[r] || k <= best || k >= limit)
            continue;
        best = k;
        *origin_out = r == a->rank ? a->origin : member->origin;
        *value_out = r == a->rank ? a->value : member->value;
    }
    return best;
}

/* The value that must be kept; NULL: none. */
static bool *find_bound(const tti_agreement *a, const bool *with, uint64_t *origin_out)
{
    bool    *value = NULL;
    uint64_t k = UINT64_MAX;

    while ((k = highest_vote(a, with, k, origin_out, &value)) != 0)
        if (k != *origin_out || may_be_decided(a, with, k, value))
            return value;
    return NULL;
}

static void propose(tti_agreement *a, uint64_t origin, bool *value)
{
    tti_agree_message m = { .type = TTI_AGREE_PROPOSE, .ballot = a->ballot, .origin = origin, .value = value, .list = a->lost };
    int               r;

    memcpy(m.place, a->place, sizeof m.place);
    tti_agree_begin(a, tti_agree_silence_ns(a));
    for (r = 0; r < a->n; r++)
        a->lost[r] = a->lost[r] || a->members[r].gone;
    for (r = 0; r < a->n; r++) {
        tti_agree_member *member = &a->members[r];

        member->asked = member->asked && member->answered && !member->gone;
        member->answered = false;
        if (member->asked)
            tti_agree_send(a, r, &m);
    }
}

static void recover(tti_agreement *a, uint64_t origin, const bool *value)
{
    a->phase = TTI_AGREE_RECOVER;
    memmove(a->value, value, (size_t)a->n * sizeof *a->value);
    a->accepted = a->ballot;
    a->origin = origin;
    propose(a, origin, a->value);
}

static void make(tti_agreement *a, const bool *with)
{
    tutti_status st;

    memcpy(a->chosen, with, (size_t)a->n * sizeof *a->chosen);
    memset(a->place, 0, sizeof a->place);
    st = a->config.open(a->config.ctx, a->chosen, a->place);
    if (st != TUTTI_OK) {
        tti_agree_refuse(a, st, tutti_last_error());
        return;
    }
    a->phase = TTI_AGREE_MAKE;
    a->vain = a->own_built = false;
    a->failure = TUTTI_OK;
    tti_agree_build(a, a->ballot);
    propose(a, a->ballot, a->chosen);
}

/* "3, 5": those that are not with this member, and are known to have left the group, or else to run. How many. */
static int list_living(const tti_agreement *a, const bool *with, bool left, char out[LIST_MAX])
{
    size_t used = 0;
    int    r, n = 0;

    out[0] = '\0';
    for (r = 0; r < a->n; r++) {
        const bool has_left = a->config.has_left != NULL && a->config.has_left(a->config.ctx, r);

        if (with[r] || has_left != left || (!left && (a->members[r].gone || a->members[r].silent || !tti_agree_is_alive(a, r))))
            continue;
        if (n++ < NAMED_MAX)
            used += (size_t)snprintf(out + used, LIST_MAX - used, "%s%d", n > 1 ? ", " : "", r);
    }
    if (n > NAMED_MAX)
        snprintf(out + used, LIST_MAX - used, ", ...");
    return n;
}

/* Why so few are here, and what helps. Where one of the others is known to live, to go on as a minority is no advice: there would
 * be two worlds. */
static void word_absence(const tti_agreement *a, const bool *with, char *out, size_t bytes)
{
    char list[LIST_MAX];
    int  n = list_living(a, with, true, list);

    if (n > 0) {
        snprintf(out, bytes, "rank%s %s left the group before this call: %s gone on without, or ended\n"
                 "  next: " JOIN_AGAIN "; a longer time-out waits longer", n == 1 ? "" : "s", list, n == 1 ? "it has" : "they have");
        return;
    }
    n = list_living(a, with, false, list);
    if (n > 0)
        snprintf(out, bytes, "rank%s %s live%s, and did not come: the others may have gone on without, so these may not\n"
                 "  next: check that all that are left call it; a longer time-out waits longer for who is late",
                 n == 1 ? "" : "s", list, n == 1 ? "s" : "");
    else
        snprintf(out, bytes, "the others may have gone on without, so these may not\n"
                 "  next: if they have not, pass TUTTI_SHRINK_MINORITY on all that are here");
}

static void refuse_minority(tti_agreement *a, const bool *with)
{
    char      words[TTI_AGREE_WORDS_MAX], absence[ABSENCE_MAX];
    const int n = count(with, a->n);

    word_absence(a, with, absence, sizeof absence);
    snprintf(words, sizeof words, "%.80s: only %d of the last %d members %s here, %s: %s", a->config.what, n, a->n, n == 1 ? "is" : "are",
             2 * n == a->n ? "exactly half, without rank 0" : "fewer than half", absence);
    tti_agree_refuse(a, TUTTI_E_PEER, words);
}

/* All promises that will come are here. */
static void conclude(tti_agreement *a)
{
    const bool listed = a->config.excluded != NULL;
    bool      *with = calloc((size_t)a->n, sizeof *with), *bound;
    uint64_t   origin = 0;

    if (with == NULL) {
        tti_agree_refuse(a, TUTTI_E_NOMEM, "no memory to agree who goes on");
        return;
    }
    list_with(a, with);
    bound = find_bound(a, with, &origin);
    if (tti_agree_refuse_difference(a)) {
        ;
    } else if (listed && list_missing(a, a->absent) > 0) {
        refuse_for_missing(a, TUTTI_E_TIMEOUT, "did not answer", "check that they are not stopped");
    } else if (!listed && !a->config.minority && !tti_agree_quorum(a, with)) {
        refuse_minority(a, with);
    } else if (bound != NULL) {
        recover(a, origin, bound);
    } else {
        make(a, with);
    }
    free(with);
}

/* ---- its phases ---- */

/* Whether nothing is to be waited for any more. */
static bool all_known(tti_agreement *a)
{
    const bool out_of_patience = a->now_ns >= a->until_ns && a->config.excluded == NULL;
    bool       all = true;
    int        r;

    for (r = 0; r < a->n; r++) {
        tti_agree_member *member = &a->members[r];

        if (r == a->rank || !tti_agree_eligible(a, r) || (member->present && !member->behind) || tti_agree_is_away(member))
            continue;
        member->given_up = out_of_patience;
        all = all && out_of_patience;
    }
    return all;
}

/* Some that the list leaves have left the group, and may have gone on: to exclude them as well would make two worlds then. */
static bool refuse_leaving(tti_agreement *a)
{
    char      words[TTI_AGREE_WORDS_MAX], list[LIST_MAX];
    const int n = list_living(a, a->config.excluded, true, list);

    if (n == 0)
        return false;
    snprintf(words, sizeof words, "%.80s: rank%s %s left the group before this call: %s gone on without those that call it now, or ended\n"
             "  next: " JOIN_AGAIN "; exclude %s as well only where %s ended", a->config.what, n == 1 ? "" : "s", list,
             n == 1 ? "it has" : "they have", n == 1 ? "it" : "them", n == 1 ? "it has" : "they have");
    tti_agree_refuse(a, TUTTI_E_STATE, words);
    return true;
}

/* One of those that the list leaves is gone: it was not in it. */
static bool refuse_gone(tti_agreement *a)
{
    char words[TTI_AGREE_WORDS_MAX];
    int  r = 0;

    if (a->config.excluded == NULL)
        return false;
    while (r < a->n && !(tti_agree_eligible(a, r) && a->members[r].gone))
        r++;
    if (r == a->n)
        return false;
    if (refuse_leaving(a))
        return true;
    snprintf(words, sizeof words, "%.200s: rank %d is gone, and not among those to exclude\n"
             "  next: exclude it as well, on all that go on", a->config.what, r);
    tti_agree_refuse(a, TUTTI_E_PEER, words);
    return true;
}

/* The build of this ballot cannot be decided any more, or has all votes. */
static void look_at_make(tti_agreement *a)
{
    char words[TTI_AGREE_WORDS_MAX];

    if (a->task == TTI_AGREE_BUILD)
        return;
    if (!a->vain && a->own_built && all_answered(a)) {
        a->accepted = a->origin = a->ballot;
        memcpy(a->value, a->chosen, (size_t)a->n * sizeof *a->value);
        decide(a, a->ballot, a->value);
    } else if (a->vain || tti_agree_is_over(a)) {
        if (++a->attempts < TTI_AGREE_ATTEMPTS) {
            gather(a);
            return;
        }
        if (a->failure != TUTTI_OK)
            snprintf(words, sizeof words, "%s", a->words);
        else
            snprintf(words, sizeof words, "%.200s: in %d attempts members came and went, or did not answer, on rank %d\n"
                     "  next: check that they are not stopped", a->config.what, TTI_AGREE_ATTEMPTS, a->rank);
        tti_agree_refuse(a, a->failure != TUTTI_OK ? a->failure : TUTTI_E_TIMEOUT, words);
    }
}

static void look_at_recover(tti_agreement *a)
{
    bool *with = calloc((size_t)a->n, sizeof *with);

    if (with == NULL)
        return;
    list_with(a, with);
    if (tti_agree_quorum(a, with) || (all_answered(a) && (a->config.minority || a->config.excluded != NULL)))
        decide(a, a->origin, a->value);
    else if (all_answered(a) || tti_agree_is_over(a))
        gather(a);
    free(with);
}

/* Those that wait for this one are not to think it silent; with a list they are to know whom it waits for. */
static void say_alive(tti_agreement *a)
{
    const tti_agree_message m = { .type = TTI_AGREE_ALIVE, .value = a->absent };
    const int               n_missing = a->config.excluded != NULL ? list_missing(a, a->absent) : 0;
    const int64_t           often_ns = n_missing != a->said_missing ? tti_agree_alive_ns(a) / 10 : tti_agree_alive_ns(a);

    if (a->now_ns - a->said_ns < often_ns)
        return;
    a->said_ns = a->now_ns;
    a->said_missing = n_missing;
    tti_agree_tell_all(a, &m);
}

void tti_agree_lead(tti_agreement *a)
{
    say_alive(a);
    if (a->phase == TTI_AGREE_FOLLOW) {
        if (a->now_ns < a->yield_ns || a->task == TTI_AGREE_BUILD)
            return;
        gather(a);
    }
    if (a->phase == TTI_AGREE_GATHER && all_known(a)) { /* also a refusal is to reach all */
        if (refuse_gone(a))
            return;
        ask(a);
    }
    if (a->phase == TTI_AGREE_ASK && (all_answered(a) || tti_agree_is_over(a)))
        conclude(a);
    if (a->phase == TTI_AGREE_MAKE)
        look_at_make(a);
    else if (a->phase == TTI_AGREE_RECOVER)
        look_at_recover(a);
}

/* ---- answers ---- */

static void take_promise(tti_agreement *a, int from, const tti_agree_message *m)
{
    tti_agree_member *member = &a->members[from];

    if (a->phase != TTI_AGREE_ASK)
        return;
    if (member->value == NULL && (member->value = malloc((size_t)a->n * sizeof *member->value)) == NULL)
        return; /* as if it had not answered */
    memcpy(member->value, m->value, (size_t)a->n * sizeof *member->value);
    member->accepted = m->accepted;
    member->origin = m->origin;
    member->differs = tti_agree_differs(a, m);
    if (member->differs)
        tti_agree_word_difference(a, from, m, a->odds_words);
    member->answered = true;
}

static void take_rejection(tti_agreement *a, const tti_agree_message *m)
{
    if (a->phase != TTI_AGREE_MAKE)
        return;
    a->vain = true;
    tti_agree_note(a, m->status != TUTTI_OK ? m->status : TUTTI_E_STATE, m->words);
}

void tti_agree_answer(tti_agreement *a, int from, const tti_agree_message *m)
{
    if (a->phase == TTI_AGREE_FOLLOW || m->ballot != a->ballot)
        return;
    if (m->type == TTI_AGREE_PROMISE) {
        take_promise(a, from, m);
    } else if (m->type == TTI_AGREE_ACCEPT && a->phase >= TTI_AGREE_MAKE) {
        a->members[from].answered = true;
    } else if (m->type == TTI_AGREE_REJECT) {
        take_rejection(a, m);
    } else if (m->type == TTI_AGREE_BUSY) {
        if (m->accepted > a->promised)
            a->promised = m->accepted; /* the next ballot is higher */
        tti_agree_yield(a, UINT64_MAX);
    }
}
