/* SPDX-License-Identifier: BSD-3-Clause
 *
 * fused_cards.c - what members show of their registered memory, and what the others make of it.
 *
 * How     A card says whether all buffers of a member that others need lie in registered memory, and where. What a member
 *         has for each of the others stands in its table, in its staging slot. What others write to is listed first, in
 *         the uses that end with the call (transport/lent.c).
 * True    Offsets become pointers by tti_foreign_at() alone, so that a wrong card reaches nothing but the registered
 *         memory of its owner. What a card says is loaded once, checked, and used as it was loaded. Cards and tables are
 *         read after the card's word, which is written last: fused.c. */
#include "coll/host/fused_core.h"

#include <stddef.h>
#include <tutti/private.h>
#include "coll/host/wait.h"
#include "coll/segments.h"

_Static_assert(sizeof(tti_fused_table) + TTI_HOST_RANKS_MAX * sizeof(tti_fused_entry) <= TTI_HOST_CHUNK,
               "a table fits a slot");
_Static_assert(sizeof(tti_host_card) == TTI_LINE && offsetof(tti_host_card, word) == 56, "a card is one line");

/* ---- what each member shows ------------------------------------------------------------------------ */

static void add_use(tti_fused *fused, const void *data, size_t bytes)
{
    fused->uses[fused->n_uses++] = (tti_use){ .data = data, .bytes = bytes };
}

static size_t bytes_of(const tti_fused_call *f, int64_t count)
{
    return (size_t)count * f->element;
}

/* What others write to comes first, and in a place that show_offsets() knows. */
static void list_uses(tti_fused_call *f)
{
    const tutti_call *call = f->call;
    const size_t      bytes = bytes_of(f, call->count);
    tti_fused        *fused = f->fused;
    int               r;

    fused->n_uses = fused->n_written = 0;
    switch (call->kind) {
    case TUTTI_CALL_ALL_REDUCE:
        add_use(fused, call->out, bytes);
        fused->n_written = 1;
        add_use(fused, call->in, bytes);
        break;
    case TUTTI_CALL_REDUCE:
        if (tti_fused_is_root(f))
            add_use(fused, call->out, bytes);
        fused->n_written = fused->n_uses;
        add_use(fused, call->in, bytes);
        break;
    case TUTTI_CALL_BROADCAST:
        add_use(fused, tti_fused_is_root(f) ? call->in : call->out, bytes);
        fused->n_written = tti_fused_is_root(f) ? 0 : 1;
        break;
    case TUTTI_CALL_ALL_GATHER:
        add_use(fused, call->in, bytes_of(f, tti_part_count(call, f->rank)));
        break;
    case TUTTI_CALL_GATHER:
    case TUTTI_CALL_SCATTER:
    case TUTTI_CALL_REDUCE_SCATTER:
        for (r = 0; r < f->n_ranks && (call->kind == TUTTI_CALL_REDUCE_SCATTER || tti_fused_is_root(f)); r++)
            add_use(fused, call->list[r], bytes_of(f, tti_part_count(call, r)));
        fused->n_written = call->kind == TUTTI_CALL_GATHER ? fused->n_uses : 0;
        break;
    default: /* all_to_all and its kin */
        for (r = 0; r < f->n_ranks; r++)
            add_use(fused, call->ins[r], bytes_of(f, call->in_counts[r]));
        break;
    }
}

/* Map what others have, once. Who cannot is never ready. */
static bool map_all(tti_fused_call *f)
{
    const tti_team *team = f->channel->team;
    tti_fused      *fused = f->fused;
    int             r;

    for (r = 0; r < f->n_ranks && !fused->mapped && !fused->unable; r++) {
        fused->unable = tti_mesh_registered(team->mesh, team->ranks[r], &fused->foreign[r]) != TUTTI_OK;
        if (!fused->unable && r != f->rank && tti_foreign_is_ours(fused->foreign[r]))
            fused->threads = true;
    }
    fused->mapped = !fused->unable;
    return fused->mapped;
}

static tti_host_card *card_of(const tti_fused_call *f, int rank)
{
    return &f->channel->members[rank].lines->cards[f->channel->turn];
}

static tti_fused_entry *entry_of(const tti_fused_call *f, int giver, int taker)
{
    return &tti_fused_table_of(f->channel, giver)->entries[taker];
}

static bool has_entries(const tti_fused_call *f)
{
    return f->call->kind > TUTTI_CALL_ALL_GATHER; /* a list of buffers */
}

/* What this rank has for each other; pieces that all share, none taken yet. */
static void fill_table(tti_fused_call *f, tti_host_card *card)
{
    tti_fused_table *table = tti_fused_table_of(f->channel, f->rank);
    int64_t          gives = 0;
    int              r;

    if (f->rank == 0 && f->channel->crowded) {
        atomic_store_explicit(&table->taken, 0, memory_order_relaxed);
        atomic_store_explicit(&table->finished, 0, memory_order_relaxed);
    }
    for (r = 0; has_entries(f) && r < f->n_ranks; r++) {
        tti_fused_entry *entry = &table->entries[r];

        *entry = (tti_fused_entry){ .offset = r < f->fused->n_uses ? f->fused->uses[r].offset : 0 };
        if (f->call->in_counts != NULL) {
            entry->gives = f->call->in_counts[r];
            entry->wants = f->call->list_counts[r];
            gives += f->call->in_counts[r];
        }
    }
    card->gives = gives;
}

/* As kernels need it. Offsets are aligned as addresses are: the memory begins on a page. */
static bool are_aligned(const tti_fused_call *f)
{
    uintptr_t bits = 0;
    int       i;

    for (i = 0; i < f->fused->n_uses; i++)
        if (f->fused->uses[i].bytes > 0)
            bits |= (uintptr_t)f->fused->uses[i].data;
    return bits % f->align == 0;
}

void tti_fused_show(tti_fused_call *f)
{
    tti_host_card *card = card_of(f, f->rank);
    tti_fused     *fused = f->fused;

    list_uses(f);
    f->shown = are_aligned(f) && map_all(f) && tti_registered_use(fused->uses, fused->n_uses);
    card->ready = f->shown;
    card->out = fused->uses[0].offset;
    card->in = fused->uses[fused->n_uses > 0 ? fused->n_uses - 1 : 0].offset;
    fill_table(f, card);
    tti_host_store(f->channel, &card->word, &f->channel->members[f->rank].lines->place_waiters,
                   f->channel->word);
}

tutti_status tti_fused_await_cards(tti_fused_call *f)
{
    tutti_status st = TUTTI_OK;
    int          i;

    for (i = 1; i < f->n_ranks; i++)
        __builtin_prefetch(card_of(f, (f->rank + i) % f->n_ranks));
    for (i = 1; i < f->n_ranks && st == TUTTI_OK; i++) {
        const int rank = (f->rank + i) % f->n_ranks;

        st = tti_host_wait(f->channel, rank, TTI_CARDED, f->channel->word);
        if (st == TUTTI_OK)
            f->channel->members[rank].agreed = f->channel->note.seq;
    }
    if (st == TUTTI_OK)
        f->channel->all_agreed = f->channel->note.seq;
    return st;
}

/* ---- what the others have shown -------------------------------------------------------------------- */

bool tti_fused_all_are_ready(const tti_fused_call *f, tti_fused_wish wish)
{
    const int64_t most = INT64_MAX / (int64_t)f->element / f->n_ranks;
    int64_t       gives = 0;
    bool          ready = f->shown; /* what its own card says by now may be somebody else's word */
    int           r;

    for (r = 0; r < f->n_ranks; r++) {
        const int64_t theirs = tti_host_read_i64(&card_of(f, r)->gives);

        ready = ready && tti_host_read_u64(&card_of(f, r)->ready) != 0;
        gives += theirs < 0 ? 0 : theirs < most ? theirs : most;
    }
    if (f->call->in_counts == NULL)
        return ready;
    tti_fused_note_blocks(f->channel, gives * (int64_t)f->element / f->n_ranks);
    return ready && (wish == TTI_FUSED_ALWAYS || !f->fused->small_blocks);
}

static tutti_status fail_card(tti_fused_call *f, int rank)
{
    const tti_team *team = f->channel->team;

    return tti_fail(TUTTI_E_BACKEND, "group '%s': rank %d (%s) offers buffers that are not in its registered memory",
                    team->name, team->ranks[rank], tti_mesh_whereabouts(team->mesh, team->ranks[rank]));
}

/* The memory of rank at offset; own: where this rank has it. NULL: it is not there. */
static void *at_offset(const tti_fused_call *f, int rank, uint64_t offset, size_t bytes, const void *own)
{
    if (rank == f->rank)
        return (void *)own;
    return offset % f->align == 0 ? tti_foreign_at(f->fused->foreign[rank], offset, bytes) : NULL;
}

/* What rank's card says about what this rank does with its buffers. False: it says what cannot be. */
static bool find_buffers(tti_fused_call *f, int rank)
{
    const tutti_call      *call = f->call;
    const uint64_t         card_in = tti_host_read_u64(&card_of(f, rank)->in);
    const uint64_t         card_out = tti_host_read_u64(&card_of(f, rank)->out);
    const uint64_t         offset = has_entries(f) ? tti_host_read_u64(&entry_of(f, rank, f->rank)->offset) : 0;
    const size_t           bytes = bytes_of(f, call->count);
    const bool             of_root = rank == call->root;
    void                 **in = &f->fused->ins[rank], **out = &f->fused->outs[rank];

    *in = *out = NULL;
    switch (call->kind) {
    case TUTTI_CALL_ALL_REDUCE:
        *in = at_offset(f, rank, card_in, bytes, call->in);
        *out = at_offset(f, rank, card_out, bytes, call->out);
        return *in != NULL && *out != NULL;
    case TUTTI_CALL_REDUCE:
        *in = at_offset(f, rank, card_in, bytes, call->in);
        if (of_root)
            *out = at_offset(f, rank, card_out, bytes, call->out);
        return *in != NULL && (!of_root || *out != NULL);
    case TUTTI_CALL_BROADCAST:
        if (of_root)
            *in = at_offset(f, rank, card_in, bytes, call->in);
        else
            *out = at_offset(f, rank, card_out, bytes, call->out);
        return (of_root ? *in : *out) != NULL;
    case TUTTI_CALL_ALL_GATHER:
        *in = at_offset(f, rank, card_in, bytes_of(f, tti_part_count(call, rank)), call->in);
        return *in != NULL || tti_part_count(call, rank) == 0;
    case TUTTI_CALL_GATHER:
        if (of_root)
            *out = at_offset(f, rank, offset, bytes, call->list != NULL ? call->list[rank] : NULL);
        return !of_root || *out != NULL;
    case TUTTI_CALL_SCATTER:
        if (of_root)
            *in = at_offset(f, rank, offset, bytes, call->list != NULL ? call->list[rank] : NULL);
        return !of_root || *in != NULL;
    case TUTTI_CALL_REDUCE_SCATTER:
        *in = at_offset(f, rank, offset, bytes_of(f, tti_part_count(call, f->rank)), call->list[f->rank]);
        return *in != NULL || tti_part_count(call, f->rank) == 0;
    default:
        *in = at_offset(f, rank, offset, bytes_of(f, call->list_counts[rank]), call->ins[rank]);
        return *in != NULL || call->list_counts[rank] == 0;
    }
}

/* all_to_all: what one gives must be what the other expects. */
static tutti_status compare_entry(tti_fused_call *f, int peer)
{
    const tti_fused_entry *told = entry_of(f, peer, f->rank);
    const tti_fused_entry  entry = { .gives = tti_host_read_i64(&told->gives), .wants = tti_host_read_i64(&told->wants) };
    const int64_t          wants = f->call->list_counts[peer], gives = f->call->in_counts[peer];

    if (entry.gives != wants)
        return tti_team_fail_block(f->channel->team, &f->channel->note, peer, f->rank, entry.gives, wants);
    if (entry.wants != gives)
        return tti_team_fail_block(f->channel->team, &f->channel->note, f->rank, peer, gives, entry.wants);
    return TUTTI_OK;
}

tutti_status tti_fused_find_buffers(tti_fused_call *f)
{
    tutti_status st = TUTTI_OK;
    int          i;

    for (i = 0; i < f->n_ranks && st == TUTTI_OK; i++) {
        const int rank = (f->rank + i) % f->n_ranks;

        if (f->call->in_counts != NULL)
            st = compare_entry(f, rank);
        if (st == TUTTI_OK && !find_buffers(f, rank))
            st = fail_card(f, rank);
    }
    return st;
}
