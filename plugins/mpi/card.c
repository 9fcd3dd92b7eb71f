/* SPDX-License-Identifier: BSD-3-Clause
 *
 * card.c - what each member calls, compared before anything moves.
 *
 * Why     MPI trusts its callers: members that call different things hang, get each other's bytes, or end.
 * How     Every call begins with one MPI_Iallgather of cards of one size, whatever is called. All see the same cards, so
 *         all find the same difference, and none waits for the other. Data that fit go with the card: then this is all.
 * True    A call of one kind leaves the same number of MPI's collectives behind on all members, or the group has failed. */
#include "mpi_backend.h"

#include <stdio.h>
#include <string.h>

static const char *const kind_names[TUTTI_CALL_KIND_COUNT] = {
    [TUTTI_CALL_BARRIER] = "barrier",       [TUTTI_CALL_ALL_REDUCE] = "all_reduce",
    [TUTTI_CALL_BROADCAST] = "broadcast",   [TUTTI_CALL_REDUCE] = "reduce",
    [TUTTI_CALL_ALL_GATHER] = "all_gather", [TUTTI_CALL_GATHER] = "gather",
    [TUTTI_CALL_SCATTER] = "scatter",       [TUTTI_CALL_REDUCE_SCATTER] = "reduce_scatter",
    [TUTTI_CALL_ALL_TO_ALL] = "all_to_all", [TUTTI_CALL_GATHER_V] = "gather_v",
    [TUTTI_CALL_SCATTER_V] = "scatter_v",
};

static bool reduces(uint32_t kind)
{
    return kind == TUTTI_CALL_ALL_REDUCE || kind == TUTTI_CALL_REDUCE || kind == TUTTI_CALL_REDUCE_SCATTER;
}

/* Whether each pair of members has counts of its own. */
static bool is_private(uint32_t kind)
{
    return kind == TUTTI_CALL_ALL_TO_ALL || kind == TUTTI_CALL_GATHER_V || kind == TUTTI_CALL_SCATTER_V;
}

static void describe_card(const tmpi_card *card, char text[TMPI_CALL_TEXT])
{
    const char *name = card->kind < TUTTI_CALL_KIND_COUNT && kind_names[card->kind] != NULL ? kind_names[card->kind] : "?";
    char       *at = text;
    char *const end = text + TMPI_CALL_TEXT;

    at += snprintf(at, (size_t)(end - at), "%s #%llu", name, (unsigned long long)card->seq);
    if (card->kind == TUTTI_CALL_BARRIER)
        return;
    at += snprintf(at, (size_t)(end - at), " (");
    if (reduces(card->kind))
        at += snprintf(at, (size_t)(end - at), "%s, ", tmpi_host->op_name((tutti_op_kind)card->op));
    if (!is_private(card->kind))
        at += snprintf(at, (size_t)(end - at), "%lld ", (long long)card->count);
    at += snprintf(at, (size_t)(end - at), "%s", tmpi_host->dtype_name((tutti_dtype)card->dtype));
    if (card->root >= 0)
        at += snprintf(at, (size_t)(end - at), ", root %d", card->root);
    snprintf(at, (size_t)(end - at), "%s)", card->device != TUTTI_CPU ? ", on a GPU" : "");
}

static uint64_t number_of(const int64_t *counts, int n)
{
    uint64_t hash = 0xcbf29ce484222325u;
    int      i;

    for (i = 0; i < n; i++)
        hash = (hash ^ (uint64_t)counts[i]) * 0x100000001b3u;
    return hash;
}

static int64_t largest(const int64_t *counts, int n)
{
    int64_t most = 0;
    int     i;

    for (i = 0; i < n; i++)
        most = counts[i] > most ? counts[i] : most;
    return most;
}

static tmpi_card card_of(const tutti_call *call)
{
    tmpi_card card = { .seq = call->seq, .count = call->count, .kind = (uint32_t)call->kind,
                       .dtype = (uint32_t)call->dtype, .whole = (uint32_t)call->whole, .root = call->root,
                       .device = (uint32_t)call->device };

    if (reduces(card.kind))
        card.op = (uint32_t)call->op.kind;
    if (is_private(card.kind)) {
        const int64_t gives = largest(call->in_counts, call->n_parts);
        const int64_t takes = largest(call->list_counts, call->n_parts);

        card.most = gives > takes ? gives : takes;
    } else if (call->n_parts > 0) {
        card.parts = number_of(call->list_counts, call->n_parts);
    }
    return card;
}

void tmpi_describe(const tutti_call *call, char text[TMPI_CALL_TEXT])
{
    const tmpi_card card = card_of(call);

    describe_card(&card, text);
}

bool tmpi_is_small(const tutti_call *call)
{
    const size_t element = tmpi_host->dtype_size(call->dtype);

    if (call->device != TUTTI_CPU)
        return false; /* only MPI can read them */
    switch (call->kind) {
    case TUTTI_CALL_ALL_REDUCE:
    case TUTTI_CALL_REDUCE:
    case TUTTI_CALL_BROADCAST:
    case TUTTI_CALL_ALL_GATHER:
    case TUTTI_CALL_GATHER: return call->n_parts == 0 && call->count <= (int64_t)(TMPI_INLINE / element);
    default: return false;
    }
}

/* What this member gives: everybody, but of a broadcast the root only. */
static void put_data(const tmpi_backend *b, const tutti_call *call, tmpi_card *card)
{
    const size_t element = tmpi_host->dtype_size(call->dtype);

    if (!tmpi_is_small(call) || call->count == 0 || (call->kind == TUTTI_CALL_BROADCAST && call->root != b->rank))
        return;
    if (reduces(card->kind) && call->op.kind == TUTTI_OP_PREMUL_SUM)
        tmpi_host->scale(call->dtype, card->data, call->in, call->count, call->op.factor);
    else
        memcpy(card->data, call->in, (size_t)call->count * element);
}

static bool same_call(const tmpi_card *a, const tmpi_card *b)
{
    return a->seq == b->seq && a->count == b->count && a->parts == b->parts && a->kind == b->kind && a->dtype == b->dtype &&
           a->op == b->op && a->whole == b->whole && a->root == b->root && a->device == b->device;
}

static tutti_status compare(tmpi_backend *b, const tmpi_card *cards)
{
    const tmpi_card *mine = &cards[b->rank];
    char             ours[TMPI_CALL_TEXT], theirs[TMPI_CALL_TEXT];
    const char      *parts = "";
    int              i, other = -1;

    for (i = 0; i < b->n_ranks && other < 0; i++)
        if (!same_call(&cards[i], mine))
            other = i;
    if (other < 0)
        return TUTTI_OK;
    describe_card(mine, ours);
    describe_card(&cards[other], theirs);
    if (strcmp(ours, theirs) == 0)
        parts = mine->whole != cards[other].whole ? ", as a part of another operation" : ", with parts of other sizes";
    return tmpi_host->fail(TUTTI_E_MISMATCH,
                           "ranks of group '%s' called different things\n  rank %d: %s\n  rank %d: %s%s\n"
                           "  next: let all members make the group's calls in the same order, with equal arguments",
                           b->name, b->global_ranks[b->rank], ours, b->global_ranks[other], theirs, parts);
}

tutti_status tmpi_cards_exchange(tmpi_backend *b, const tutti_call *call, const tmpi_wait *wait,
                                 const tmpi_card **cards_out)
{
    tmpi_card   *cards = (tmpi_card *)(void *)b->cards, *own = &cards[b->n_ranks];
    MPI_Request  request;
    tutti_status st;
    int          code;

    *own = card_of(call);
    put_data(b, call, own);
    tmpi_lock();
    code = TMPI_CALL(MPI_Iallgather(own, (int)sizeof *own, MPI_BYTE, cards, (int)sizeof *own, MPI_BYTE, b->comm, &request));
    tmpi_unlock();
    if (code != MPI_SUCCESS)
        return tmpi_fail_mpi(code, wait->what, b->name);
    st = tmpi_await(b, &request, wait);
    if (st == TUTTI_OK)
        st = compare(b, cards);
    if (st == TUTTI_OK)
        *cards_out = cards;
    return st;
}
