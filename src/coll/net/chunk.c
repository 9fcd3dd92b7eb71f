/* SPDX-License-Identifier: BSD-3-Clause
 *
 * chunk.c - a chunk of a call: which part of the buffers it is, its schedule, and what that is bound to.
 *
 * How     The chunk is a call of its own: in, out and the entries of lists begin where its range does, counts
 *         are those of its range, segments are the stretches that it has of them. Plan, scaling and packing work on
 *         that call and know of no other.
 * True    Chunks touch ranges of the buffers that are apart from each other's, whatever the kind: what holds of
 *         IN and OUT within a chunk, which may be one memory, holds of the call. Where a range ends before the
 *         chunk's begins it points to its end, with nothing to move.
 *         A chunk's scratch memory has what its plan wants, what PREMUL_SUM scales, the sizes that ranks tell each other,
 *         and what is packed; it grows when it must, and stays. */
#include "coll/net/chunk.h"

#include <stdlib.h>
#include <tutti/private.h>
#include "coll/segments.h"

void tti_chunk_release(tti_chunk *chunk)
{
    tti_schedule_release(&chunk->schedule);
    tti_pack_release(&chunk->pack);
    free(chunk->arrays);
    free(chunk->scratch);
    free(chunk->recvs);
    *chunk = (tti_chunk){ .number = 0 };
}

bool tti_exchanges_sizes(const tutti_call *call)
{
    return call->kind == TUTTI_CALL_ALL_TO_ALL || call->kind == TUTTI_CALL_GATHER_V ||
           call->kind == TUTTI_CALL_SCATTER_V;
}

/* ---- the chunk as a call ---- */

/* A chunk being cut out. */
typedef struct slicing {
    tti_chunk        *chunk;
    const tutti_call *whole;
    const tti_cut    *cut;
    int               n_ranks;
    size_t            element;
    int64_t           first; /* element of every range */
    void            **next;  /* free in the chunk's arrays */
} slicing;

/* Memory for n pointers, or counts, of the chunk's call. */
static tutti_status take_arrays(slicing *s, size_t n)
{
    void **arrays;

    if (n > s->chunk->arrays_room) {
        arrays = realloc(s->chunk->arrays, n * sizeof *arrays);
        if (arrays == NULL)
            return tti_fail(TUTTI_E_NOMEM, "no memory for the lists of a collective of %d ranks", s->n_ranks);
        s->chunk->arrays = arrays;
        s->chunk->arrays_room = n;
    }
    s->next = s->chunk->arrays;
    return TUTTI_OK;
}

static void *next_array(slicing *s, size_t n)
{
    void **array = s->next;

    s->next += n;
    return array;
}

/* Where the chunk's range begins, in memory that has count elements. */
static void *range_at(const slicing *s, const void *buffer, int64_t count)
{
    const int64_t first = s->first < count ? s->first : count;

    return buffer != NULL ? (char *)(uintptr_t)buffer + (size_t)first * s->element : NULL;
}

/* Of a list of counts; NULL stays NULL. */
static const int64_t *cut_counts(slicing *s, const int64_t *counts)
{
    int64_t *cut = counts != NULL ? next_array(s, (size_t)s->n_ranks) : NULL;
    int      r;

    for (r = 0; cut != NULL && r < s->n_ranks; r++)
        cut[r] = tti_cut_count(s->cut, counts[r], s->chunk->number);
    return cut;
}

/* Of a list of buffers, of count elements each unless counts says so. */
static void **cut_list(slicing *s, const void *const *list, const int64_t *counts)
{
    void **cut = list != NULL ? next_array(s, (size_t)s->n_ranks) : NULL;
    int    r;

    for (r = 0; cut != NULL && r < s->n_ranks; r++)
        cut[r] = range_at(s, list[r], counts != NULL ? counts[r] : s->whole->count);
    return cut;
}

static int64_t sum_of(const int64_t *counts, int n)
{
    int64_t sum = 0;
    int     r;

    for (r = 0; r < n; r++)
        sum += counts[r];
    return sum;
}

/* A call of one buffer, or of one block for each rank. */
static tutti_status slice_buffers(slicing *s, int rank)
{
    const tutti_call *whole = s->whole;
    tutti_call       *call = &s->chunk->call;
    const int64_t     own = whole->list_counts != NULL ? whole->list_counts[rank] : whole->count;
    tutti_status      st = take_arrays(s, 4 * (size_t)s->n_ranks);

    if (st != TUTTI_OK)
        return st;
    call->in = range_at(s, whole->in, own);
    call->out = range_at(s, whole->out, own);
    call->list = cut_list(s, (const void *const *)whole->list, whole->list_counts);
    call->ins = (const void *const *)cut_list(s, whole->ins, whole->in_counts);
    call->list_counts = cut_counts(s, whole->list_counts);
    call->in_counts = cut_counts(s, whole->in_counts);
    call->count = tti_cut_count(s->cut, whole->count, s->chunk->number);
    if (call->list_counts != NULL)
        call->count = call->in_counts != NULL ? 0 : sum_of(call->list_counts, s->n_ranks);
    return TUTTI_OK;
}

enum { SEGMENT_ENTRIES = sizeof(tutti_segment) / sizeof(void *) };

_Static_assert(sizeof(void *) == sizeof(int64_t), "pointers and counts share a chunk's arrays");
_Static_assert(sizeof(tutti_segment) % sizeof(void *) == 0, "segments follow each other in them");

/* A call of several buffers: the stretches of them that lie in the chunk. */
static tutti_status slice_segments(slicing *s)
{
    const tutti_call *whole = s->whole;
    tutti_call       *call = &s->chunk->call;
    const int64_t     count = tti_cut_count(s->cut, whole->count, s->chunk->number);
    tti_segments      all;
    tutti_segment    *segments;
    void            **list;
    tutti_status      st;
    int               n = 0, r;

    tti_segments_init(&all, whole);
    TTI_EACH_STRETCH(at, &all, s->first, count)
        n++;
    st = take_arrays(s, (size_t)n * (SEGMENT_ENTRIES + (size_t)s->n_ranks));
    if (st != TUTTI_OK)
        return st;
    segments = next_array(s, (size_t)n * SEGMENT_ENTRIES);
    list = whole->list != NULL ? next_array(s, (size_t)n * (size_t)s->n_ranks) : NULL;
    *call = *whole;
    call->count = count;
    call->segments = segments;
    call->n_segments = n;
    call->list = list;
    n = 0;
    TTI_EACH_STRETCH(at, &all, s->first, count) {
        const tutti_segment *from = &whole->segments[at.segment];
        const size_t         skip = (size_t)at.first * s->element;

        segments[n] = (tutti_segment){ .count = at.count,
                                       .in = from->in != NULL ? (const char *)from->in + skip : NULL,
                                       .out = from->out != NULL ? (char *)from->out + skip : NULL };
        for (r = 0; list != NULL && r < s->n_ranks; r++)
            list[n * s->n_ranks + r] = tti_entry_at(whole, s->n_ranks, r, at);
        n++;
    }
    return TUTTI_OK;
}

static tutti_status slice(tti_chunk *chunk, const tti_team *team, const tutti_call *whole, const tti_cut *cut)
{
    slicing s = { .chunk = chunk, .whole = whole, .cut = cut, .n_ranks = team->n_ranks,
                  .element = tutti_dtype_size(whole->dtype), .first = chunk->number * cut->elements };

    chunk->call = *whole;
    if (cut->n_chunks == 1)
        return TUTTI_OK;
    return whole->n_segments > 0 ? slice_segments(&s) : slice_buffers(&s, team->rank);
}

/* ---- its schedule ---- */

static tutti_status make_schedule(tti_chunk *chunk, const tti_team *team, tti_plan *plan, const tti_cut *cut)
{
    const tutti_call    *call = &chunk->call;
    const tti_plan_input input = { .n_ranks = team->n_ranks, .rank = team->rank, .root = call->root,
                                   .count = call->count, .element = tutti_dtype_size(call->dtype),
                                   .list_counts = call->list_counts, .in_counts = call->in_counts,
                                   .chunk = chunk->number,
                                   .together = cut->n_chunks < cut->window ? cut->n_chunks : cut->window };
    tutti_status         st = TUTTI_OK;

    tti_schedule_clear(&chunk->schedule);
    if (call->n_segments > 0)
        st = tti_pack_plan(&chunk->pack, call, &input, plan, &chunk->schedule);
    else
        plan(&input, &chunk->schedule);
    if (st == TUTTI_OK && chunk->schedule.full)
        st = tti_fail(TUTTI_E_NOMEM, "no memory for the schedule of a collective of %d ranks", input.n_ranks);
    return st;
}

/* ---- what it is bound to ---- */

static tutti_status grow_scratch(tti_chunk *chunk, size_t bytes)
{
    void *fresh;

    if (bytes <= chunk->scratch_bytes)
        return TUTTI_OK;
    fresh = aligned_alloc(64, (bytes + 63) & ~(size_t)63);
    if (fresh == NULL)
        return tti_fail(TUTTI_E_NOMEM, "no memory for the %zu bytes that a collective works in", bytes);
    free(chunk->scratch);
    chunk->scratch = fresh;
    chunk->scratch_bytes = bytes;
    return TUTTI_OK;
}

static bool reduces(const tutti_call *call)
{
    return call->kind == TUTTI_CALL_ALL_REDUCE || call->kind == TUTTI_CALL_REDUCE ||
           call->kind == TUTTI_CALL_REDUCE_SCATTER;
}

static size_t lines(size_t bytes)
{
    return (bytes + 63) & ~(size_t)63;
}

/* What PREMUL_SUM needs behind the schedule's scratch memory: all of this rank's elements times its
 * factor; where those are a list, first the pointers to its entries. */
static size_t scaled_bytes(const tutti_call *call, int n_ranks)
{
    const size_t element = tutti_dtype_size(call->dtype);
    size_t       bytes;
    int          r;

    if (!reduces(call) || call->op.kind != TUTTI_OP_PREMUL_SUM || call->n_segments > 0)
        return 0;
    if (call->kind != TUTTI_CALL_REDUCE_SCATTER)
        return lines((size_t)call->count * element);
    bytes = lines((size_t)n_ranks * sizeof(void *));
    for (r = 0; r < n_ranks; r++)
        bytes += (size_t)tti_part_count(call, r) * element;
    return lines(bytes);
}

static void scale_list(tti_chunk *chunk, int n_ranks, char *room)
{
    const tutti_call *call = &chunk->call;
    void            **list = (void **)(void *)room;
    char             *to = room + lines((size_t)n_ranks * sizeof *list);
    int               r;

    for (r = 0; r < n_ranks; r++) {
        const int64_t count = tti_part_count(call, r);

        if (count > 0)
            tti_scale(to, call->list[r], count, call->op.factor, call->dtype);
        list[r] = to;
        to += (size_t)count * chunk->binding.element;
    }
    chunk->binding.list = list;
}

/* The schedule reads the scaled elements as its input. */
static void scale(tti_chunk *chunk, int n_ranks, char *room)
{
    const tutti_call *call = &chunk->call;

    if (call->kind == TUTTI_CALL_REDUCE_SCATTER) {
        scale_list(chunk, n_ranks, room);
    } else if (call->count > 0) {
        tti_scale(room, call->in, call->count, call->op.factor, call->dtype);
        chunk->binding.in = room;
    }
}

/* What this rank tells the others of its blocks, which are the whole call's. Who tells it nothing agrees. */
static void write_sizes(const tutti_call *whole, int n, tti_block_sizes *sizes)
{
    int r;

    for (r = 0; r < n; r++) {
        sizes[r] = (tti_block_sizes){ .gives = whole->in_counts[r], .wants = whole->list_counts[r] };
        sizes[n + r] = (tti_block_sizes){ .gives = sizes[r].wants, .wants = sizes[r].gives };
    }
}

tutti_status tti_chunk_compare_sizes(const tti_chunk *chunk, const tti_team *team, const tti_call_note *note)
{
    const tti_block_sizes *mine = chunk->binding.sizes;
    const tti_block_sizes *theirs = mine + team->n_ranks;
    tutti_status           st = TUTTI_OK;
    int                    r;

    /* Both ranks of a pair have both sizes of both blocks, and come to the same end. */
    for (r = 0; r < team->n_ranks && st == TUTTI_OK; r++) {
        if (r == team->rank)
            continue;
        if (theirs[r].gives != mine[r].wants)
            st = tti_team_fail_block(team, note, r, team->rank, theirs[r].gives, mine[r].wants);
        else if (theirs[r].wants != mine[r].gives)
            st = tti_team_fail_block(team, note, team->rank, r, mine[r].gives, theirs[r].wants);
    }
    return st;
}

static tutti_status bind(tti_chunk *chunk, const tti_team *team, const tutti_call *whole)
{
    const tutti_call *call = &chunk->call;
    const size_t      planned = (size_t)chunk->schedule.scratch_bytes; /* whole lines */
    const size_t      scaled = scaled_bytes(call, team->n_ranks);
    const bool        has_sizes = tti_exchanges_sizes(call) && chunk->number == 0;
    const size_t      sizes = has_sizes ? 2 * (size_t)team->n_ranks * sizeof(tti_block_sizes) : 0;
    const size_t      packed = call->n_segments > 0 ? tti_pack_bytes(&chunk->pack) : 0;
    tutti_status      st = grow_scratch(chunk, planned + scaled + sizes + packed);
    char             *behind; /* one of the others at most */

    if (st != TUTTI_OK)
        return st;
    behind = chunk->scratch + planned;
    chunk->binding = (tti_binding){ .in = call->in, .out = call->out, .list = call->list, .ins = call->ins,
                                    .scratch = chunk->scratch, .sizes = has_sizes ? behind : NULL,
                                    .element = tutti_dtype_size(call->dtype),
                                    .n_ranks = tti_team_whole(team)->n_ranks };
    if (has_sizes)
        write_sizes(whole, team->n_ranks, chunk->binding.sizes);
    if (reduces(call)) {
        chunk->binding.kernel = tti_reduce_kernel_for(call->op.kind, call->dtype);
        chunk->binding.partial = tti_partial_kernel(call->op.kind, call->dtype);
    }
    if (scaled > 0)
        scale(chunk, team->n_ranks, behind);
    if (call->n_segments > 0) {
        tti_pack_fill(&chunk->pack, behind);
        chunk->binding.parts = chunk->pack.bounds;
    }
    return TUTTI_OK;
}

tutti_status tti_chunk_make(tti_chunk *chunk, const tti_team *team, tti_plan *plan, const tutti_call *call,
                            const tti_cut *cut, int k)
{
    tutti_status st;

    chunk->number = k;
    st = slice(chunk, team, call, cut);
    if (st == TUTTI_OK)
        st = make_schedule(chunk, team, plan, cut);
    return st == TUTTI_OK ? bind(chunk, team, call) : st;
}

void tti_chunk_finish(tti_chunk *chunk)
{
    if (chunk->call.n_segments > 0)
        tti_pack_empty(&chunk->pack);
}
