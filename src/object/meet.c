/* SPDX-License-Identifier: BSD-3-Clause
 *
 * meet.c - what every object collective begins with.
 *
 * Why     Sizes are known to their makers alone; a length that is wrong, by mistake or malice, must not
 *         become an allocation; and a rank that cannot take part must not leave the others waiting.
 * How     Each member tells all others a card: the call, its root, how many objects and bytes it brings,
 *         whether making them failed, and the limits that it keeps. One all_gather of CARD numbers.
 * True    All ranks read the same cards and apply the smallest of all limits, so all come to the same
 *         verdict before anybody takes memory or sends an object. Cards are checked before they are used.
 * Fails   Where the verdict is an error the group goes on: nothing but cards was sent. */
#include "object/object.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/env.h"
#include <tutti/private.h>

/* What a card has, in this order: it travels as int64. */
enum { KIND, ROOT, N, STATUS, LARGEST, TOTAL, LIMIT_EACH, LIMIT_TOTAL, CARD };

static const int64_t LIMIT_MAX = INT64_C(1) << 40;

tutti_status tti_object_limits_read(tti_object_limits *limits_out)
{
    tti_object_limits limits = { 0 };
    tutti_status      st = tti_env_int("TUTTI_OBJECT_MAX", 1, LIMIT_MAX, &limits.each);

    if (st == TUTTI_OK)
        st = tti_env_int("TUTTI_OBJECTS_MAX", 1, LIMIT_MAX, &limits.total);
    if (st == TUTTI_OK)
        *limits_out = limits;
    return st;
}

tutti_status tti_object_limits_check(const tutti_group *group, const char *what, const char *whose,
                                     int64_t largest, int64_t total, const tti_object_limits *limits)
{
    if (largest > limits->each)
        return tti_fail(TUTTI_E_ARG,
                        "%s on group '%s': an object of %s has %lld bytes, the limit is %lld\n"
                        "  next: raise TUTTI_OBJECT_MAX on all ranks",
                        what, group->name, whose, (long long)largest, (long long)limits->each);
    if (total > limits->total)
        return tti_fail(TUTTI_E_ARG,
                        "%s on group '%s': the objects of %s have %lld bytes together, the limit is %lld\n"
                        "  next: raise TUTTI_OBJECTS_MAX on all ranks",
                        what, group->name, whose, (long long)total, (long long)limits->total);
    return TUTTI_OK;
}

void tti_objects_measure(const tutti_bytes *list, int n, int64_t *largest_out, int64_t *total_out)
{
    const int64_t beyond = INT64_C(1) << 50; /* more than memory has; sums of 2^20 of them are exact */
    int64_t       largest = 0;
    int64_t       total = 0;
    int64_t       size;
    int           i;

    for (i = 0; i < n; i++) {
        size = list[i].size < (size_t)beyond ? (int64_t)list[i].size : beyond;
        total = total + size < beyond ? total + size : beyond;
        largest = size > largest ? size : largest;
    }
    *largest_out = largest;
    *total_out = total;
}

static const char *kind_name(int64_t kind)
{
    switch (kind) {
    case TTI_OBJECT_ALL_GATHER: return "all_gather_object";
    case TTI_OBJECT_GATHER: return "gather_object";
    case TTI_OBJECT_BROADCAST: return "broadcast_object_list";
    case TTI_OBJECT_SCATTER: return "scatter_object_list";
    default: return "something else";
    }
}

static void fill_card(int64_t *card, tti_object_kind kind, int root, const tti_offer *offer, bool agreed_n)
{
    tti_object_limits limits = { LIMIT_MAX, LIMIT_MAX };

    card[KIND] = kind;
    card[ROOT] = root;
    card[N] = agreed_n ? offer->n : 0;
    card[STATUS] = offer->st != TUTTI_OK ? offer->st : tti_object_limits_read(&limits);
    tti_objects_measure(offer->list, offer->list != NULL ? offer->n : 0, &card[LARGEST], &card[TOTAL]);
    card[LIMIT_EACH] = limits.each;
    card[LIMIT_TOTAL] = limits.total;
}

/* ---- the verdict: of the same cards the same on all ranks ---- */

static tutti_status check_calls(const tutti_group *group, const char *what, const int64_t *first,
                                const int64_t *card, int rank)
{
    if (card[KIND] != first[KIND])
        return tti_fail(TUTTI_E_MISMATCH, "%s on group '%s': rank %d calls %s, rank %d %s", what, group->name,
                        group->ranks[0], kind_name(first[KIND]), group->ranks[rank], kind_name(card[KIND]));
    if (card[ROOT] != first[ROOT])
        return tti_fail(TUTTI_E_MISMATCH, "%s on group '%s': the root is %lld on rank %d, %lld on rank %d", what,
                        group->name, (long long)tutti_get_global_rank(group, (int)first[ROOT]), group->ranks[0],
                        (long long)tutti_get_global_rank(group, (int)card[ROOT]), group->ranks[rank]);
    if (card[N] != first[N])
        return tti_fail(TUTTI_E_MISMATCH,
                        "%s on group '%s': the list has %lld objects on rank %d, %lld on rank %d", what,
                        group->name, (long long)first[N], group->ranks[0], (long long)card[N],
                        group->ranks[rank]);
    return TUTTI_OK;
}

static tutti_status check_ready(const tutti_group *group, const char *what, const int64_t *card, int rank,
                                const char *own_words)
{
    if (card[STATUS] == TUTTI_OK)
        return TUTTI_OK;
    if (rank == group->rank)
        return tti_fail((tutti_status)card[STATUS], "%s", own_words);
    return tti_fail(TUTTI_E_REMOTE, "%s on group '%s': rank %d could not make its objects [%s]", what,
                    group->name, group->ranks[rank], tutti_status_name((tutti_status)card[STATUS]));
}

static bool plausible(const int64_t *card)
{
    return card[LARGEST] >= 0 && card[TOTAL] >= card[LARGEST] && card[TOTAL] <= INT64_C(1) << 50 &&
           card[N] >= 0 && card[N] <= TUTTI_OBJECT_LIST_MAX && card[LIMIT_EACH] > 0 && card[LIMIT_TOTAL] > 0;
}

static tti_object_limits smallest_limits(const int64_t *cards, int n)
{
    tti_object_limits limits = { LIMIT_MAX, LIMIT_MAX };
    int               r;

    for (r = 0; r < n; r++) {
        if (cards[r * CARD + LIMIT_EACH] < limits.each)
            limits.each = cards[r * CARD + LIMIT_EACH];
        if (cards[r * CARD + LIMIT_TOTAL] < limits.total)
            limits.total = cards[r * CARD + LIMIT_TOTAL];
    }
    return limits;
}

static tutti_status check_sizes(const tutti_group *group, const char *what, const int64_t *cards)
{
    const tti_object_limits limits = smallest_limits(cards, group->size);
    tutti_status            st = TUTTI_OK;
    int64_t                 total = 0;
    char                    whose[32];
    int                     r;

    for (r = 0; r < group->size && st == TUTTI_OK; r++) {
        snprintf(whose, sizeof whose, "rank %d", group->ranks[r]);
        st = tti_object_limits_check(group, what, whose, cards[r * CARD + LARGEST], cards[r * CARD + TOTAL],
                                     &limits);
        total += cards[r * CARD + TOTAL]; /* found to be no more than LIMIT_MAX each: no overflow */
    }
    return st == TUTTI_OK ? tti_object_limits_check(group, what, "all ranks", 0, total, &limits) : st;
}

static tutti_status judge(const tutti_group *group, const char *what, const int64_t *cards,
                          const char *own_words)
{
    tutti_status st = TUTTI_OK;
    int          r;

    for (r = 0; r < group->size && st == TUTTI_OK; r++) {
        if (!plausible(&cards[r * CARD]))
            return tti_fail(TUTTI_E_MISMATCH, "%s on group '%s': rank %d sent numbers that cannot be", what,
                            group->name, group->ranks[r]);
        st = check_calls(group, what, cards, &cards[r * CARD], r);
    }
    if (st == TUTTI_OK && cards[group->rank * CARD + STATUS] != TUTTI_OK)
        return check_ready(group, what, &cards[group->rank * CARD], group->rank, own_words);
    for (r = 0; r < group->size && st == TUTTI_OK; r++)
        st = check_ready(group, what, &cards[r * CARD], r, own_words);
    return st == TUTTI_OK ? check_sizes(group, what, cards) : st;
}

/* ---- meeting ---- */

/* Lists, not all_gather_into_tensor: that one a coalescing scope would only record. */
static tutti_status exchange(tutti_group *group, const int64_t *own, int64_t *cards)
{
    tutti_span  *outs = calloc((size_t)group->size, sizeof *outs);
    tutti_status st;
    int          r;

    if (outs == NULL)
        return tti_fail(TUTTI_E_NOMEM, "no memory for the sizes of %d ranks", group->size);
    for (r = 0; r < group->size; r++)
        outs[r] = tutti_span_of(&cards[r * CARD], CARD, TUTTI_I64);
    st = tutti_all_gather(outs, group->size, tutti_span_of((void *)(uintptr_t)own, CARD, TUTTI_I64), group);
    free(outs);
    return st;
}

tutti_status tti_object_meet(tutti_group *group, const char *what, tti_object_kind kind, int root,
                             const tti_offer *offer, bool agreed_n, int64_t *sizes_out, int64_t *largest_out)
{
    int64_t     *cards = calloc((size_t)group->size, CARD * sizeof *cards);
    int64_t      own[CARD];
    char         words[TTI_GROUP_WORDS_MAX];
    tutti_status st;
    int          r;

    if (cards == NULL)
        return tti_fail(TUTTI_E_NOMEM, "no memory for the sizes of %d ranks", group->size);
    fill_card(own, kind, root, offer, agreed_n);
    snprintf(words, sizeof words, "%s", tutti_last_error());
    st = exchange(group, own, cards);
    if (st == TUTTI_OK)
        st = judge(group, what, cards, words);
    if (st == TUTTI_OK) {
        *largest_out = 0;
        for (r = 0; r < group->size; r++) {
            sizes_out[r] = cards[r * CARD + TOTAL];
            if (cards[r * CARD + LARGEST] > *largest_out)
                *largest_out = cards[r * CARD + LARGEST];
        }
    }
    free(cards);
    return st;
}

tutti_status tti_object_give_up(tutti_group *group, const char *what, tutti_status st)
{
    char words[TTI_GROUP_WORDS_MAX];

    snprintf(words, sizeof words, "%s", tutti_last_error());
    tti_lock(&group->runner->lock);
    tti_group_fail(group, what, TUTTI_E_BACKEND, words);
    tti_unlock(&group->runner->lock);
    return tti_fail(st, "%s", words);
}
