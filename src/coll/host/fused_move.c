/* SPDX-License-Identifier: BSD-3-Clause
 *
 * fused_move.c - broadcast, gather, scatter, all_gather and all_to_all on registered memory.
 *
 * How     broadcast: every member copies its share of the root's buffer to all others', the root as well.
 *         gather: each writes its part to the root. All others: each reads what it needs, from the next rank on, so
 *         that not all read from one at a time; nobody writes to anybody. */
#include "coll/host/fused_core.h"
#include "coll/host/past.h"
#include "coll/pattern.h"
#include "coll/segments.h"

enum { BLOCK = 16 * 1024 }; /* of a source: it stays in the first-level cache for all outputs */

static void copy(const tti_fused_call *f, void *to, const void *from, tti_fused_piece piece)
{
    const size_t at = (size_t)piece.begin * f->element;

    tti_host_put((char *)to + at, (const char *)from + at, (size_t)(piece.end - piece.begin) * f->element, f->past);
}

static void spread(const tti_fused_call *f, tti_fused_piece piece)
{
    const int64_t block = (int64_t)(BLOCK / f->element);
    const int64_t end = piece.end;
    const int     root = f->call->root;
    int           i;

    for (; piece.begin < end; piece.begin = piece.end) {
        piece.end = end - piece.begin < block ? end : piece.begin + block;
        for (i = 1; i < f->n_ranks; i++)
            copy(f, f->fused->outs[tti_shifted(root, i, f->n_ranks)], f->fused->ins[root], piece);
    }
}

tutti_status tti_fused_broadcast(tti_fused_call *f)
{
    return tti_fused_share(f, f->call->count, spread);
}

static void push(const tti_fused_call *f, tti_fused_piece piece)
{
    copy(f, f->fused->outs[f->call->root], f->call->in, piece);
}

tutti_status tti_fused_gather(tti_fused_call *f)
{
    return tti_fused_alone(f, f->call->count, push);
}

static void fetch(const tti_fused_call *f, tti_fused_piece piece)
{
    copy(f, f->call->out, f->fused->ins[f->call->root], piece);
}

tutti_status tti_fused_scatter(tti_fused_call *f)
{
    return tti_fused_alone(f, f->call->count, fetch);
}

static void pull(const tti_fused_call *f, tti_fused_piece piece)
{
    copy(f, f->call->list[f->giver], f->fused->ins[f->giver], piece);
}

tutti_status tti_fused_pull(tti_fused_call *f)
{
    tutti_status st = TUTTI_OK;
    int          i;

    for (i = 1; i <= f->n_ranks && st == TUTTI_OK; i++) {
        f->giver = tti_shifted(f->rank, i, f->n_ranks);
        st = tti_fused_alone(f, tti_part_count(f->call, f->giver), pull);
    }
    return st;
}
