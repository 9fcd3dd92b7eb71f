/* SPDX-License-Identifier: BSD-3-Clause
 *
 * fused_share.c - who does which part of work that all members of a host share.
 *
 * How     With a core for each member, each has its slice, the same in every call of a size: its caches know it.
 *         Where ranks outnumber cores a slice waits for its owner to get a core. So the work is cut into more
 *         pieces than members, and who runs takes the next one, counted in member 0's slot; a member that has
 *         not run finds none left, and nobody waits for it.
 *         Who has done a member's share gives its core away before it takes more. A scheduler is fair: to whoever did
 *         the work of all it would deny the core for as long, in its next wait, and that may be the one that
 *         ends the call. So members that run in turn do the same amount each, and only what a member that does
 *         not run leaves is done by others.
 * True    A piece is taken once: fetch_add gives each number once. `finished` is added to with release order after
 *         the piece and read with acquire order, and every addition continues the release sequence of those
 *         before it: who reads the number of pieces sees what all of them wrote.
 *         Results do not depend on who took what: a piece is combined from all inputs in rank order.
 * Fails   Looking before a piece is for who is written to: fused.c. Looking after it is for who was read from: a member
 *         that has failed has its buffers for itself again, and what was read of them may be anything. It said so
 *         before it returned, so whoever has read what it wrote since finds it failed: the store between the reads
 *         and the look, which is sequentially consistent, keeps their order. Such a piece is not counted. */
#include "base/thread.h"
#include "coll/host/fused_core.h"
#include "coll/host/wait.h"
#include "coll/pattern.h"

enum {
    KIB = 1024,
    PIECE_MIN = 32 * KIB,
    PIECE_MAX = 256 * KIB,
    PIECES_A_MEMBER = 4,
    STRIDE = 1024 * KIB, /* of a slice, between two looks at whether somebody has failed */
};

/* Whether rank's failure, if it has failed, is one of this call. */
static tutti_status look_at(const tti_fused_call *f, int rank)
{
    tutti_status st;

    if (rank == f->rank || atomic_load(&f->channel->members[rank].lines->failed) == TUTTI_OK)
        return TUTTI_OK;
    st = tti_host_look(f->channel, rank, TTI_RESULT, f->channel->round + 1);
    tti_host_end_wait(f->channel); /* it does not wait, whatever the look has told */
    return st;
}

static tutti_status look_at_all(const tti_fused_call *f)
{
    tutti_status st = TUTTI_OK;
    int          r;

    for (r = 0; r < f->n_ranks && st == TUTTI_OK; r++)
        st = look_at(f, r);
    return st;
}

static void say_in_piece(const tti_fused_call *f, uint32_t in_piece)
{
    atomic_store(&f->channel->members[f->rank].lines->in_piece, in_piece);
}

static tutti_status do_piece(const tti_fused_call *f, tti_fused_piece piece, tti_fused_do *what)
{
    tutti_status st;

    say_in_piece(f, 1);
    st = look_at_all(f);
    if (st == TUTTI_OK)
        what(f, piece);
    say_in_piece(f, 0);
    return st == TUTTI_OK ? look_at_all(f) : st;
}

static tutti_status do_range(const tti_fused_call *f, tti_fused_piece range, tti_fused_do *what)
{
    const int64_t stride = STRIDE / (int64_t)f->element;
    tutti_status  st = TUTTI_OK;

    for (; range.begin < range.end && st == TUTTI_OK; range.begin += stride) {
        const int64_t left = range.end - range.begin;

        st = do_piece(f, (tti_fused_piece){ range.begin, range.begin + (left < stride ? left : stride) }, what);
    }
    return st;
}

tutti_status tti_fused_alone(tti_fused_call *f, int64_t count, tti_fused_do *what)
{
    return do_range(f, (tti_fused_piece){ 0, count }, what);
}

static tti_fused_table *counters(const tti_fused_call *f)
{
    return tti_fused_table_of(f->channel, 0);
}

/* Elements of a piece: whole lines. */
static int64_t piece_of(const tti_fused_call *f, int64_t count)
{
    int64_t bytes = count * (int64_t)f->element / (PIECES_A_MEMBER * f->n_ranks);

    if (bytes < PIECE_MIN)
        bytes = PIECE_MIN;
    if (bytes > PIECE_MAX)
        bytes = PIECE_MAX;
    return (bytes & ~(int64_t)(TTI_SLICE_ALIGN - 1)) / (int64_t)f->element;
}

static tutti_status take_pieces(tti_fused_call *f, int64_t count, tti_fused_do *what)
{
    const int64_t    piece = piece_of(f, count);
    tti_fused_table *shared = counters(f);
    tti_port        *port = f->channel->team->port;
    tutti_status     st = TUTTI_OK;
    int64_t          i, n_done, share;

    f->pieces = count / piece + (count % piece != 0);
    share = (f->pieces + f->n_ranks - 1) / f->n_ranks;
    for (n_done = 1;; n_done++) {
        i = atomic_fetch_add_explicit(&shared->taken, 1, memory_order_relaxed);
        if (i >= f->pieces || i < 0)
            return TUTTI_OK;
        st = do_piece(f, (tti_fused_piece){ i * piece, i == f->pieces - 1 ? count : (i + 1) * piece }, what);
        if (st != TUTTI_OK)
            return st;
        atomic_fetch_add_explicit(&shared->finished, 1, memory_order_acq_rel);
        if (n_done % share == 0)
            port->ops->yield(port);
    }
}

bool tti_fused_all_finished(const tti_fused_call *f)
{
    const tti_host_patience patience = f->channel->patience;
    tti_fused_table        *shared = counters(f);
    tti_port               *port = f->channel->team->port;
    int                     turn;

    for (turn = 0; turn < patience.checks + patience.yields; turn++) {
        if (atomic_load_explicit(&shared->finished, memory_order_acquire) >= f->pieces)
            return true;
        if (turn < patience.checks)
            tti_pause();
        else
            port->ops->yield(port);
    }
    return false;
}

tutti_status tti_fused_share(tti_fused_call *f, int64_t count, tti_fused_do *what)
{
    tti_slice slice;

    if (f->channel->crowded)
        return take_pieces(f, count, what);
    slice = tti_slice_of(count, f->element, f->n_ranks, f->rank);
    return do_range(f, (tti_fused_piece){ slice.begin, slice.end }, what);
}
