/* SPDX-License-Identifier: BSD-3-Clause
 *
 * pieces.c - what a call is cut into, and what of it goes where.
 *
 * Why     While one piece is worked on, the next one comes and the last one goes; and a call of any size takes the same
 *         little pinned memory.
 * How     A piece has the same elements of every part: of a buffer, or of each entry of a list. In host memory the own part comes first,
 *         then the list's parts, then those of ins, each from a multiple of 64 bytes on. Each kind of call has at most four
 *         flows: own part and list, each to the host or back (flows[]).
 * True    All members cut alike: by what they have to agree on, and by a constant. Parts of different sizes are not cut, as a
 *         member does not know all of them.
 *         The first of several pieces has a size that is made of the whole count. So ranks whose counts differ have calls that
 *         differ, and are told, before numbers are written that are wrong; most of them: of counts that differ by
 *         chance one in some ten thousand is only found when one rank has no further piece. */
#include "backend/detour/pieces.h"

#include "base/fnv.h"

enum { PLACE = 64, STEP = 16 /* sizes of first pieces are multiples of it */ };

/* Which of the buffers a rank gives and gets. */
enum { OWN_IN = 1, OWN_OUT = 2, LIST_IN = 4, LIST_OUT = 8, INS = 16 };

static unsigned flows_of(const tutti_call *call, int rank)
{
    const bool at_root = call->root == rank;

    switch (call->kind) {
    case TUTTI_CALL_ALL_REDUCE: return OWN_IN | OWN_OUT;
    case TUTTI_CALL_REDUCE: return OWN_IN | (at_root ? OWN_OUT : 0);
    case TUTTI_CALL_BROADCAST: return at_root ? OWN_IN : OWN_OUT;
    case TUTTI_CALL_ALL_GATHER: return OWN_IN | LIST_OUT;
    case TUTTI_CALL_GATHER: return OWN_IN | (at_root ? LIST_OUT : 0);
    case TUTTI_CALL_SCATTER: return OWN_OUT | (at_root ? LIST_IN : 0);
    case TUTTI_CALL_REDUCE_SCATTER: return LIST_IN | OWN_OUT;
    case TUTTI_CALL_ALL_TO_ALL:
    case TUTTI_CALL_GATHER_V:
    case TUTTI_CALL_SCATTER_V: return INS | LIST_OUT;
    default: return 0;
    }
}

bool tti_pieces_give(const tti_pieces *of)
{
    return (flows_of(of->call, of->rank) & (OWN_IN | LIST_IN | INS)) != 0;
}

/* ---- cutting ---- */

static int n_segments(const tutti_call *call)
{
    return call->n_segments > 0 ? call->n_segments : 1;
}

static int64_t count_of(const tutti_call *call, int segment)
{
    return call->n_segments > 0 ? call->segments[segment].count : call->count;
}

tti_pieces tti_pieces_of(const tutti_call *call, int rank, int n_ranks)
{
    const bool    has_list = call->kind >= TUTTI_CALL_ALL_GATHER; /* on some rank */
    const int64_t parts = has_list ? (int64_t)n_ranks + 1 : 1;
    const int64_t most = TTI_PIECE_BYTES / parts / PLACE * PLACE / (int64_t)tutti_dtype_size(call->dtype);

    return (tti_pieces){ .call = call, .rank = rank, .n_ranks = n_ranks, .most = most > 0 ? most : 1 };
}

/* Of several pieces. */
static int64_t size_of_first(const tti_pieces *p, int64_t count)
{
    const int64_t sizes = p->most / 2 / STEP;

    return sizes == 0 ? p->most : p->most - STEP * (int64_t)(tti_fnv(TTI_FNV_BEGIN, &count, sizeof count) % (uint64_t)sizes);
}

bool tti_pieces_next(tti_pieces *p, tti_piece *piece_out)
{
    int64_t left, n;

    if (p->segment == n_segments(p->call))
        return false;
    left = count_of(p->call, p->segment) - p->first;
    n = left <= p->most || p->call->n_parts > 0 ? left : p->first == 0 ? size_of_first(p, left) : p->most;
    *piece_out = (tti_piece){ .segment = p->segment, .first = p->first, .n = n };
    p->first += n;
    if (n == left) {
        p->segment++;
        p->first = 0;
    }
    return true;
}

/* ---- where its buffers are ---- */

/* Elements of a rank's part of the list, of those it gives in ins, and of its own. */
static int64_t listed(const tti_pieces *of, const tti_piece *piece, int rank)
{
    return of->call->n_parts > 0 ? of->call->list_counts[rank] : piece->n;
}

static int64_t given(const tti_pieces *of, int rank)
{
    return of->call->in_counts != NULL ? of->call->in_counts[rank] : 0;
}

static int64_t owned(const tti_pieces *of, const tti_piece *piece)
{
    return of->call->in_counts != NULL ? 0 : listed(of, piece, of->rank);
}

static size_t bytes_of(const tti_pieces *of, int64_t count)
{
    return (size_t)count * tutti_dtype_size(of->call->dtype);
}

static size_t room_of(const tti_pieces *of, int64_t count)
{
    return (bytes_of(of, count) + PLACE - 1) / PLACE * PLACE;
}

size_t tti_piece_bytes(const tti_pieces *of, const tti_piece *piece)
{
    const unsigned flows = flows_of(of->call, of->rank);
    size_t         bytes = room_of(of, owned(of, piece));
    int            r;

    for (r = 0; r < of->n_ranks && (flows & (LIST_IN | LIST_OUT)) != 0; r++)
        bytes += room_of(of, listed(of, piece, r));
    for (r = 0; r < of->n_ranks && (flows & INS) != 0; r++)
        bytes += room_of(of, given(of, r));
    return bytes;
}

tutti_call tti_piece_call(const tti_pieces *of, const tti_piece *piece, char *memory, const void **ins, void **list)
{
    const unsigned flows = flows_of(of->call, of->rank);
    tutti_call     on_host = *of->call;
    char          *at = memory + room_of(of, owned(of, piece));
    int            r;

    on_host.count = of->call->n_parts > 0 ? of->call->count : piece->n;
    on_host.in = (flows & OWN_IN) != 0 ? memory : NULL;
    on_host.out = (flows & OWN_OUT) != 0 ? memory : NULL;
    on_host.list = (flows & (LIST_IN | LIST_OUT)) != 0 ? list : NULL;
    on_host.ins = (flows & INS) != 0 ? ins : NULL;
    for (r = 0; r < of->n_ranks && on_host.list != NULL; at += room_of(of, listed(of, piece, r)), r++)
        list[r] = at;
    for (r = 0; r < of->n_ranks && on_host.ins != NULL; at += room_of(of, given(of, r)), r++)
        ins[r] = at;
    on_host.n_segments = 0;
    on_host.segments = NULL;
    on_host.device = TUTTI_CPU;
    on_host.device_index = -1;
    on_host.ticket = NULL;
    on_host.record = 0;
    return on_host;
}

/* ---- copies ---- */

/* The device's buffers of a segment. */
typedef struct buffers {
    const void  *in;
    void        *out;
    void *const *list;
} buffers;

static buffers on_device(const tti_pieces *of, const tti_piece *piece)
{
    const tutti_call *call = of->call;
    buffers           b = { .in = call->in, .out = call->out, .list = call->list };

    if (call->n_segments > 0) {
        b.in = call->segments[piece->segment].in;
        b.out = call->segments[piece->segment].out;
        b.list = call->list != NULL ? call->list + (size_t)piece->segment * (size_t)of->n_ranks : NULL;
    }
    return b;
}

/* What fetch and return go by: a copy, and how far into the device's buffers it is. */
typedef struct way {
    tti_piece_copy *copy;
    void           *context;
    size_t          skip;
} way;

static tutti_status to_host(const way *w, const void *host, const void *device, size_t bytes)
{
    return bytes > 0 ? w->copy(w->context, (void *)(uintptr_t)host, (const char *)device + w->skip, bytes) : TUTTI_OK;
}

static tutti_status to_device(const way *w, void *device, const void *host, size_t bytes)
{
    return bytes > 0 ? w->copy(w->context, (char *)device + w->skip, host, bytes) : TUTTI_OK;
}

tutti_status tti_piece_fetch(const tti_pieces *of, const tti_piece *piece, const tutti_call *on_host, tti_piece_copy *copy,
                             void *context)
{
    const unsigned flows = flows_of(of->call, of->rank);
    const buffers  b = on_device(of, piece);
    const way      w = { .copy = copy, .context = context, .skip = bytes_of(of, piece->first) };
    tutti_status   st = TUTTI_OK;
    int            r;

    if ((flows & OWN_IN) != 0)
        st = to_host(&w, on_host->in, b.in, bytes_of(of, owned(of, piece)));
    for (r = 0; r < of->n_ranks && (flows & LIST_IN) != 0 && st == TUTTI_OK; r++)
        st = to_host(&w, on_host->list[r], b.list[r], bytes_of(of, listed(of, piece, r)));
    for (r = 0; r < of->n_ranks && (flows & INS) != 0 && st == TUTTI_OK; r++)
        st = to_host(&w, on_host->ins[r], of->call->ins[r], bytes_of(of, given(of, r)));
    return st;
}

tutti_status tti_piece_return(const tti_pieces *of, const tti_piece *piece, const tutti_call *on_host, tti_piece_copy *copy,
                              void *context)
{
    const unsigned flows = flows_of(of->call, of->rank);
    const buffers  b = on_device(of, piece);
    const way      w = { .copy = copy, .context = context, .skip = bytes_of(of, piece->first) };
    tutti_status   st = TUTTI_OK;
    int            r;

    if ((flows & OWN_OUT) != 0)
        st = to_device(&w, b.out, on_host->out, bytes_of(of, owned(of, piece)));
    for (r = 0; r < of->n_ranks && (flows & LIST_OUT) != 0 && st == TUTTI_OK; r++)
        st = to_device(&w, b.list[r], on_host->list[r], bytes_of(of, listed(of, piece, r)));
    return st;
}
