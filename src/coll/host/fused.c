/* SPDX-License-Identifier: BSD-3-Clause
 *
 * fused.c - calls on registered memory: when buffers may be touched, and how a failure ends that.
 *
 * Why     A staged call copies what it combines. Buffers that all members have mapped need no copy: whoever owns
 *         a slice loads it from all inputs and stores it to all outputs, once.
 * How     A call has one round of the channel. In it each member
 *           shows     writes a card: where its buffers lie in its registered memory, and whether they do at all.
 *                     The card is one line, with the call's control word behind the rest, in one of two places
 *                     by turns, as lines.c has it for small calls; what it has for single members stands in
 *                     its staging slot
 *           awaits    all cards. If one is not ready, nobody goes on here, and the call is staged
 *           works     on the others' buffers
 *           ends      sets result, and awaits those who may still read or write its own buffers
 *         What stands on a card, and what follows from it, is fused_cards.c's.
 * Asked   Cards cost a meeting, so they are only shown where they may be ready. A member says once from which
 *         call on it may have registered memory: the one after the call that it says so in. It says so before
 *         it enters that call, and nobody asks in the next before all have entered this one (it catches up, channel.c):
 *         so in every call either all members see all who said so, or none counts it yet.
 *         Nobody knows all sizes of an all_to_all. All learn them in the call, here or through lines, and where they
 *         were small, the next one goes through lines without cards.
 * Same    All members decide from the kind, the size, the wish (all of them shared), from who said so, from sizes of
 *         calls before, and from all cards: so all take this way or none.
 * True    1. Nobody touches a buffer before its owner has entered the call: it is known from the card, whose word is
 *            stored with release order behind the rest, and read with acquire order.
 *         2. Nobody leaves with success while others use its buffers: who reads or writes them sets result
 *            afterwards, and the owner awaits that. Where pieces are taken (fused_share.c) it is enough that
 *            all pieces are finished, for a member that has not come to one yet finds none left.
 *         3. In place is safe: an element of an output is written by the one member that has just read this
 *            element of all inputs.
 *         4. Contributions are combined in the order 0..P-1 by the kernel that staged calls use: same bits.
 * Fails   From its card on a member's buffers may be written by others. If the call fails after that, others may be
 *         anywhere, stopped in the middle of a piece included. So before it returns, the pages that others
 *         could have written are replaced by private ones (transport/lent.c): a late writer hits pages that
 *         nobody reads. What others only read stays as it is.
 *         Ranks that are threads write through the very mapping that the owner uses, where no other pages help:
 *         a thread says that it is in a piece before it looks whether somebody has failed, and who fails says so
 *         before it looks who is in a piece, and waits for those. All four accesses are sequentially
 *         consistent, so one of the two sees the other; a piece is a few megabytes at most.
 *         Who has only read looks once more afterwards (fused_share.c): it may wait for nobody any more.
 *         A member that finds that its pages were cut off by the failure of another group fails, too. */
#include "coll/host/fused_core.h"

#include <stdlib.h>
#include <tutti/private.h>
#include "base/dtype.h"
#include "coll/host/past.h"
#include "coll/host/wait.h"

enum {
    KIB = 1024,
    BYTES_BEST = 4 * KIB,          /* of one rank's part: from here on it pays */
    BYTES_BEST_CROWDED = 32 * KIB,
    IN_PIECE_MS = 30000,
};

tutti_status tti_fused_make(int n_ranks, tti_fused **fused_out)
{
    const size_t n = (size_t)n_ranks;
    tti_fused   *fused = calloc(1, sizeof *fused);

    if (fused != NULL) {
        fused->foreign = calloc(n, sizeof *fused->foreign);
        fused->ins = calloc(n, sizeof *fused->ins);
        fused->outs = calloc(n, sizeof *fused->outs);
        fused->places = calloc(n, sizeof *fused->places);
        fused->uses = calloc(n + 2, sizeof *fused->uses);
    }
    if (fused == NULL || fused->foreign == NULL || fused->ins == NULL || fused->outs == NULL ||
        fused->places == NULL || fused->uses == NULL) {
        tti_fused_free(fused);
        return tti_fail(TUTTI_E_NOMEM, "no memory for registered buffers of %d members", n_ranks);
    }
    *fused_out = fused;
    return TUTTI_OK;
}

void tti_fused_free(tti_fused *fused)
{
    if (fused == NULL)
        return;
    free(fused->foreign);
    free(fused->ins);
    free(fused->outs);
    free(fused->places);
    free(fused->uses);
    free(fused);
}

uint64_t tti_fused_count(const tti_host_channel *channel)
{
    return channel->fused->n_done;
}

/* ---- whether to ask for cards ---------------------------------------------------------------------- */

void tti_fused_tell(tti_host_channel *channel, uint64_t seq)
{
    _Atomic uint64_t *from = &channel->members[channel->team->rank].lines->registered_from;

    if (tti_registered_any() && atomic_load_explicit(from, memory_order_relaxed) == 0)
        atomic_store_explicit(from, seq + 1, memory_order_release);
}

static bool all_have_told(tti_host_channel *channel)
{
    tti_fused *fused = channel->fused;

    for (; fused->n_told < channel->team->n_ranks; fused->n_told++) {
        const uint64_t from = atomic_load_explicit(&channel->members[fused->n_told].lines->registered_from,
                                                   memory_order_acquire);

        if (from == 0 || from > channel->note.seq)
            return false;
    }
    return true;
}

static bool has_body(tutti_call_kind kind);

static int64_t bytes_best(const tti_host_channel *channel)
{
    return channel->crowded ? BYTES_BEST_CROWDED : BYTES_BEST;
}

/* Whether call pays here, as far as is known before cards are shown; the answer is the same on all members. */
static bool may_pay(const tti_host_channel *channel, const tutti_call *call, tti_fused_wish wish)
{
    const int64_t bytes = call->count * (int64_t)tti_dtype_bytes(call->dtype);

    if (wish == TTI_FUSED_NEVER || !has_body(call->kind) || call->n_segments > 0 ||
        call->op.kind == TUTTI_OP_PREMUL_SUM)
        return false;
    if (call->in_counts != NULL) /* nobody knows all sizes yet */
        return wish == TTI_FUSED_ALWAYS || !channel->fused->small_blocks;
    return call->count > 0 && (wish == TTI_FUSED_ALWAYS || bytes >= bytes_best(channel));
}

/* Whether all show cards for call, which may pay; the answer is the same on all members. Who said so is known of those
 * who have entered the call before: so it catches up. */
static tutti_status ask(tti_host_channel *channel, tti_fused_wish wish, bool *asked_out)
{
    const tutti_status st = tti_host_catch_up(channel);

    if (st == TUTTI_OK)
        *asked_out = wish == TTI_FUSED_ALWAYS || all_have_told(channel);
    return st;
}

/* In how many bytes of one rank's blocks, as all members know after a call, the next one is likely to be, too. */
void tti_fused_note_blocks(tti_host_channel *channel, int64_t bytes)
{
    channel->fused->small_blocks = bytes < bytes_best(channel);
}

bool tti_fused_may_ask(tti_host_channel *channel, const tutti_call *call, tti_fused_wish wish)
{
    return may_pay(channel, call, wish) &&
           (wish == TTI_FUSED_ALWAYS || !tti_host_has_caught_up(channel) || all_have_told(channel));
}

/* ---- the call -------------------------------------------------------------------------------------- */

static tti_fused_body *const bodies[TUTTI_CALL_KIND_COUNT] = {
    [TUTTI_CALL_ALL_REDUCE] = tti_fused_all_reduce,         [TUTTI_CALL_REDUCE] = tti_fused_all_reduce,
    [TUTTI_CALL_REDUCE_SCATTER] = tti_fused_reduce_scatter, [TUTTI_CALL_BROADCAST] = tti_fused_broadcast,
    [TUTTI_CALL_ALL_GATHER] = tti_fused_pull,               [TUTTI_CALL_ALL_TO_ALL] = tti_fused_pull,
    [TUTTI_CALL_GATHER_V] = tti_fused_pull,                 [TUTTI_CALL_SCATTER_V] = tti_fused_pull,
    [TUTTI_CALL_GATHER] = tti_fused_gather,                 [TUTTI_CALL_SCATTER] = tti_fused_scatter,
};

static bool has_body(tutti_call_kind kind)
{
    return bodies[kind] != NULL;
}

/* Until nobody else uses this rank's buffers any more. */
static tutti_status await_end(tti_fused_call *f)
{
    const tutti_call_kind kind = f->call->kind;

    tti_host_post(f->channel, TTI_RESULT);
    if ((kind == TUTTI_CALL_GATHER || kind == TUTTI_CALL_SCATTER) && !tti_fused_is_root(f))
        return TUTTI_OK; /* they are its own alone */
    if (f->pieces > 0 && tti_fused_all_finished(f))
        return TUTTI_OK;
    return tti_host_await_all(f->channel, TTI_RESULT);
}

static tutti_status fail_cut_off(const tti_fused_call *f)
{
    char call[TTI_CALL_TEXT_MAX];

    tti_team_describe(f->channel->team, &f->channel->note, call);
    return tti_fail(TUTTI_E_STATE,
                    "%s: another group failed that used the same registered memory on rank %d, and other ranks were "
                    "cut off from it", call, f->channel->team->ranks[f->rank]);
}

/* Threads of this process that are in a piece leave it, and enter no other: this rank has failed. A piece takes
 * milliseconds; a word that still says so after IN_PIECE_MS is not theirs. */
static void await_threads(const tti_fused_call *f)
{
    tti_port     *port = f->channel->team->port;
    const int64_t until_ns = tti_deadline(port, IN_PIECE_MS, 0);
    int           r;

    for (r = 0; f->fused->threads && r < f->n_ranks; r++)
        while (r != f->rank && tti_foreign_is_ours(f->fused->foreign[r]) &&
               atomic_load(&f->channel->members[r].lines->in_piece) != 0) {
            if (tti_port_now(port) >= until_ns)
                return;
            port->ops->yield(port);
        }
}

/* End the uses; after a failure out of everybody's reach. What others only read is whole in any case, and so is
 * what they have not come to write. */
static tutti_status take_back(tti_fused_call *f, tutti_status st, bool ready)
{
    tti_fused *fused = f->fused;
    bool       whole;

    if (!f->shown)
        return st;
    if (st != TUTTI_OK) {
        tti_host_raise_own(f->channel, st, -1);
        await_threads(f);
    }
    whole = tti_registered_used(fused->uses, fused->n_written, st != TUTTI_OK);
    (void)tti_registered_used(fused->uses + fused->n_written, fused->n_uses - fused->n_written, false);
    return st == TUTTI_OK && ready && !whole ? fail_cut_off(f) : st;
}

static tutti_status work(tti_fused_call *f)
{
    tutti_status st = tti_fused_find_buffers(f);

    if (st == TUTTI_OK)
        st = bodies[f->call->kind](f);
    if (st == TUTTI_OK)
        st = await_end(f);
    return st;
}

/* Once for each group and kind: a test, or a user, sees that it is so. */
static void note_first(tti_fused_call *f)
{
    const uint32_t bit = UINT32_C(1) << f->call->kind;

    f->fused->n_done++;
    if ((f->fused->logged & bit) == 0)
        tti_log(TTI_LOG_DEBUG, "group '%s': %s runs on registered memory", f->channel->team->name,
                tti_call_kind_name(f->call->kind));
    f->fused->logged |= bit;
}

static tti_fused_call fused_call_of(tti_host_channel *channel, const tutti_call *call)
{
    const size_t element = tti_dtype_bytes(call->dtype);
    const bool   is_complex = call->dtype == TUTTI_C64 || call->dtype == TUTTI_C128;

    return (tti_fused_call){ .channel = channel, .call = call, .fused = channel->fused, .rank = channel->team->rank,
                             .n_ranks = channel->team->n_ranks, .element = element,
                             .align = is_complex ? element / 2 : element, .past = tti_host_past_caches(channel, call) };
}

tutti_status tti_fused_run(tti_host_channel *channel, const tutti_call *call, tti_fused_wish wish, bool *done_out)
{
    bool           asked = false, ready = false;
    tti_fused_call f;
    tutti_status   st;

    *done_out = false;
    if (!may_pay(channel, call, wish))
        return TUTTI_OK;
    st = ask(channel, wish, &asked);
    if (st != TUTTI_OK || !asked)
        return st;
    f = fused_call_of(channel, call);
    st = tti_host_begin(channel, 1);
    if (st == TUTTI_OK)
        st = tti_host_room(channel);
    if (st == TUTTI_OK) {
        tti_fused_show(&f);
        st = tti_fused_await_cards(&f);
    }
    if (st == TUTTI_OK) {
        ready = tti_fused_all_are_ready(&f, wish);
        st = ready ? work(&f) : TUTTI_OK;
    }
    st = take_back(&f, st, ready);
    if (st != TUTTI_OK)
        return st;
    tti_host_next(channel);
    if (ready)
        note_first(&f);
    *done_out = ready;
    return TUTTI_OK;
}
