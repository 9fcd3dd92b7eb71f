/* SPDX-License-Identifier: BSD-3-Clause
 *
 * control.c - control words and the ring of calls behind them.
 *
 * A ring entry is overwritten while others may read it: the writer clears its sequence first and sets it
 * last, a reader takes the entry only if the sequence is the wanted one before and after. All fields are
 * atomics, so a torn entry is seen as one and never trusted. */
#include "watch/control.h"

#include <stdio.h>
#include <string.h>

enum { NOTE_WORD = 0, NOTE_WHAT = 1, NOTE_COUNT = 2, NOTE_SEQ = 3 };

/* In `what`: the root and above; above it what the call is a part of, and whether it has segments. A step of grow_group has no
 * root: there the number of newcomers and above, 0 where it is too large. It is told in texts, and no part of the fingerprint: members
 * that were given different ones find that out by themselves, and go on. */
#define NOTE_SEGMENTS (UINT64_C(1) << 63)
enum { ROOT_AT = 32, WHOLE_AT = 56, WHOLE_MASK = 0x7f };
#define NOTE_ROOT (((UINT64_C(1) << (WHOLE_AT - ROOT_AT)) - 1) << ROOT_AT)

static const char *const whole_names[TUTTI_WHOLE_COUNT] = {
    "", " of all_reduce_quantized", " of all_reduce_block_sparse", " of sparse_all_reduce", " of grow_group",
};

static bool is_growing(uint64_t what)
{
    return (what >> WHOLE_AT & WHOLE_MASK) == TUTTI_WHOLE_GROW;
}

static const char *whole_of(const tti_call_note *note)
{
    const unsigned whole = (unsigned)(note->what >> WHOLE_AT & WHOLE_MASK);

    return whole < TUTTI_WHOLE_COUNT ? whole_names[whole] : "";
}

/* The bits of a sum that leaves out blocks of zeros: their number is not that of the caller's numbers. */
static bool counts_blocks(const tti_call_note *note)
{
    return (note->what >> WHOLE_AT & WHOLE_MASK) == TUTTI_WHOLE_BLOCK_SPARSE && (note->what >> 16 & 0xff) == TUTTI_OP_BOR;
}

static const char *const kind_names[TUTTI_CALL_KIND_COUNT] = {
    "?", "barrier", "all_reduce", "broadcast", "reduce", "all_gather", "gather", "scatter",
    "reduce_scatter", "all_to_all", "gather_v", "scatter_v",
};

const char *tti_call_kind_name(tutti_call_kind kind)
{
    return (unsigned)kind < TUTTI_CALL_KIND_COUNT ? kind_names[kind] : "?";
}

static bool reduces(tutti_call_kind kind)
{
    return kind == TUTTI_CALL_ALL_REDUCE || kind == TUTTI_CALL_REDUCE ||
           kind == TUTTI_CALL_REDUCE_SCATTER;
}

/* A multiplicative mix; equality matters, secrecy does not. */
static uint64_t mix(uint64_t a, uint64_t b)
{
    uint64_t x = a * UINT64_C(0x9e3779b97f4a7c15) ^ (b + UINT64_C(0x7f4a7c159e3779b9));

    x ^= x >> 32;
    x *= UINT64_C(0xd6e8feb86659fd93);
    return x ^ (x >> 32);
}

static bool sizes_are_private(tutti_call_kind kind)
{
    return kind == TUTTI_CALL_ALL_TO_ALL || kind == TUTTI_CALL_GATHER_V ||
           kind == TUTTI_CALL_SCATTER_V;
}

/* Sizes of parts and segments that all ranks must agree on, as one number; 0: there are none. */
static uint64_t parts_of(const tutti_call *call)
{
    uint64_t parts = 0;
    int      i;

    for (i = 0; i < call->n_segments; i++)
        parts = mix(parts, (uint64_t)call->segments[i].count);
    if (sizes_are_private(call->kind))
        return parts;
    for (i = 0; i < call->n_parts; i++)
        parts = mix(parts, (uint64_t)call->list_counts[i]);
    return parts;
}

/* The 8 bits of it that are kept for texts: never 0. */
static uint64_t mark_of(uint64_t parts)
{
    return parts == 0 ? 0 : parts % 255 + 1;
}

static uint64_t root_bits(const tutti_call *call)
{
    const double most = (double)((NOTE_ROOT >> ROOT_AT) - 1);

    if (call->whole != TUTTI_WHOLE_GROW)
        return (uint64_t)(uint32_t)(call->root + 1) << ROOT_AT & NOTE_ROOT;
    return call->op.factor >= 0 && call->op.factor <= most ? ((uint64_t)call->op.factor + 1) << ROOT_AT : 0;
}

static uint64_t compared(uint64_t what)
{
    return is_growing(what) ? what & ~NOTE_ROOT : what;
}

tti_call_note tti_call_note_of(const tutti_call *call)
{
    const uint64_t parts = parts_of(call);
    tti_call_note  note = { .seq = call->seq };

    note.what = (uint64_t)call->kind | (uint64_t)call->dtype << 8 |
                (uint64_t)(reduces(call->kind) ? call->op.kind : 0) << 16 |
                mark_of(parts) << 24 | root_bits(call) |
                (uint64_t)call->whole << WHOLE_AT |
                (call->n_segments > 0 ? NOTE_SEGMENTS : 0);
    note.count = (uint64_t)call->count;
    note.word = call->seq << TTI_CALL_MARK_BITS |
                (mix(compared(note.what), note.count ^ parts) & ((UINT64_C(1) << TTI_CALL_MARK_BITS) - 1));
    return note;
}

void tti_call_publish(tti_call_board *board, const tti_call_note *note)
{
    const uint64_t    before = atomic_load_explicit(&board->published, memory_order_relaxed);
    _Atomic uint64_t *entry = board->ring[before % TTI_CALL_RING];

    atomic_store_explicit(&entry[NOTE_SEQ], 0, memory_order_relaxed);
    atomic_store_explicit(&entry[NOTE_WORD], note->word, memory_order_release);
    atomic_store_explicit(&entry[NOTE_WHAT], note->what, memory_order_release);
    atomic_store_explicit(&entry[NOTE_COUNT], note->count, memory_order_release);
    atomic_store_explicit(&entry[NOTE_SEQ], note->seq, memory_order_release);
    atomic_store_explicit(&board->published, before + 1, memory_order_release);
    atomic_store_explicit(&board->word, note->word, memory_order_release);
}

/* The entry of number seq, unless it is overwritten by now: newest first, so that who has not come that far is known at
 * once. */
static const _Atomic uint64_t *entry_of(const tti_call_board *board, uint64_t seq)
{
    const uint64_t published = atomic_load_explicit(&board->published, memory_order_acquire);
    uint64_t       back, found;

    for (back = 1; back <= TTI_CALL_RING && back <= published; back++) {
        const _Atomic uint64_t *entry = board->ring[(published - back) % TTI_CALL_RING];

        found = atomic_load_explicit(&entry[NOTE_SEQ], memory_order_acquire);
        if (found == seq)
            return entry;
        if (found != 0 && found < seq)
            break;
    }
    return NULL;
}

bool tti_call_find(const tti_call_board *board, uint64_t seq, tti_call_note *note_out)
{
    const _Atomic uint64_t *entry = seq != 0 ? entry_of(board, seq) : NULL;
    tti_call_note           note;

    if (entry == NULL)
        return false;
    note.word = atomic_load_explicit(&entry[NOTE_WORD], memory_order_acquire);
    note.what = atomic_load_explicit(&entry[NOTE_WHAT], memory_order_acquire);
    note.count = atomic_load_explicit(&entry[NOTE_COUNT], memory_order_acquire);
    note.seq = atomic_load_explicit(&entry[NOTE_SEQ], memory_order_acquire);
    if (note.seq != seq)
        return false;
    *note_out = note;
    return true;
}

/* The `back`-th newest entry. Its owner may be writing to it. */
static bool read_back(const tti_call_board *board, uint64_t back, tti_call_note *note_out)
{
    const uint64_t published = atomic_load_explicit(&board->published, memory_order_acquire);
    uint64_t       seq;

    if (back > TTI_CALL_RING || back > published)
        return false;
    seq = atomic_load_explicit(&board->ring[(published - back) % TTI_CALL_RING][NOTE_SEQ], memory_order_acquire);
    return tti_call_find(board, seq, note_out);
}

bool tti_call_last(const tti_call_board *board, tti_call_note *note_out)
{
    return read_back(board, 1, note_out);
}

bool tti_call_find_near(const tti_call_board *board, uint64_t word, tti_call_note *note_out)
{
    tti_call_note note;
    uint64_t      back;

    for (back = 1; read_back(board, back, &note); back++)
        if (tti_call_number_of(note.word) == tti_call_number_of(word)) {
            *note_out = note;
            return true;
        }
    return false;
}

int tti_call_root(const tti_call_note *note)
{
    return is_growing(note->what) ? -1 : (int)((note->what & NOTE_ROOT) >> ROOT_AT) - 1;
}

tti_call_note tti_call_with_root(const tti_call_note *note, int root)
{
    tti_call_note other = *note;

    other.what = (note->what & ~NOTE_ROOT) | ((uint64_t)(uint32_t)(root + 1) << ROOT_AT & NOTE_ROOT);
    return other;
}

tutti_call_kind tti_call_kind_of(const tti_call_note *note)
{
    return (tutti_call_kind)(note->what & 0xff);
}

bool tti_call_has_parts(const tti_call_note *note)
{
    return (note->what >> 24 & 0xff) != 0 && (note->what & NOTE_SEGMENTS) == 0;
}

static void describe_growing(const tti_call_note *note, char out[TTI_CALL_TEXT_MAX])
{
    const int n = (int)((note->what & NOTE_ROOT) >> ROOT_AT) - 1;
    char      who[32] = "";

    if (n > 0)
        snprintf(who, sizeof who, " (%d newcomer%s)", n, n > 1 ? "s" : "");
    snprintf(out, TTI_CALL_TEXT_MAX, "grow_group #%llu%s", (unsigned long long)note->seq, n == 0 ? " (those that have asked)" : who);
}

void tti_call_describe(const tti_call_note *note, char out[TTI_CALL_TEXT_MAX])
{
    const tutti_call_kind kind = tti_call_kind_of(note);
    const tutti_dtype     dtype = (tutti_dtype)(note->what >> 8 & 0xff);
    const int             root = tti_call_root(note);
    const unsigned        mark = (unsigned)(note->what >> 24 & 0xff);
    char                  count[24] = "";
    char                  tail[80] = "";

    if (is_growing(note->what)) {
        describe_growing(note, out);
        return;
    }
    if (kind == TUTTI_CALL_BARRIER) {
        snprintf(out, TTI_CALL_TEXT_MAX, "barrier #%llu", (unsigned long long)note->seq);
        return;
    }
    if (root >= 0)
        snprintf(tail, sizeof tail, ", root %d", root);
    if (sizes_are_private(kind)) {
        snprintf(out, TTI_CALL_TEXT_MAX, "%s #%llu (%s%s)", tti_call_kind_name(kind),
                 (unsigned long long)note->seq, tutti_dtype_name(dtype), tail);
        return;
    }
    if (mark != 0)
        snprintf(tail, sizeof tail, " in %s, list of counts %02x",
                 (note->what & NOTE_SEGMENTS) != 0 ? "segments" : "parts that differ from rank to rank", mark);
    else if (counts_blocks(note))
        snprintf(tail, sizeof tail, ", a bit for each block");
    if (note->count != TTI_CALL_COUNT_UNKNOWN)
        snprintf(count, sizeof count, "%llu ", (unsigned long long)note->count);
    snprintf(out, TTI_CALL_TEXT_MAX, "%s #%llu (%s%s%s%s%s)%s", tti_call_kind_name(kind),
             (unsigned long long)note->seq,
             reduces(kind) ? tutti_op_name((tutti_op_kind)(note->what >> 16 & 0xff)) : "",
             reduces(kind) ? ", " : "", count, tutti_dtype_name(dtype), tail, whole_of(note));
}

const char *tti_call_difference(const tti_call_note *a, const tti_call_note *b)
{
    const uint64_t what = a->what ^ b->what;

    if ((what & 0xff) != 0 || (what >> WHOLE_AT & WHOLE_MASK) != 0)
        return "the kinds of call";
    if ((what >> 8 & 0xff) != 0)
        return "the dtypes";
    if ((what >> 16 & 0xff) != 0)
        return "the operations";
    if ((what & NOTE_ROOT) != 0)
        return "the roots";
    return what == 0 && a->count != b->count ? "the counts" : "the lists of counts";
}

bool tti_call_differs(const tti_call_board *board, const tti_call_note *mine, tti_call_note *other_out)
{
    tti_call_note other;

    if (!tti_call_find(board, mine->seq, &other) || other.word == mine->word)
        return false;
    *other_out = other;
    return true;
}
