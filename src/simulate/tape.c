/* SPDX-License-Identifier: BSD-3-Clause
 *
 * tape.c - from the plans of coll/net to what a simulation plays.
 *
 * How     A rank's schedule is made as the library makes it, for each size of piece, and shortened: of a send its peer
 *         and bytes are kept, of receives their number, of local steps the time they take. So a rank takes twelve
 *         bytes for a message. Of calls in two levels levels.c makes the schedule.
 * Units   Ten thousand ranks that all send to all are too many messages for a tape, and the same ones again and again: where
 *         every host (where racks have uplinks: every rack) does what the first one does, with peers as far away, the
 *         tape has the first one only, and motion.c lets it receive from itself what its neighbours would send.
 *         Slices that differ by a line count as equal. Ranks of all units are compared, or of some, evenly spread,
 *         where there are too many.
 * True    A tape of few messages has all ranks: symmetry is no more than a way to do with less. */
#include "simulate/tape.h"

#include <stdlib.h>
#include <string.h>
#include <tutti/private.h>
#include "coll/level/levels.h"
#include "coll/pattern.h"

enum { COMPARED_MESSAGES = 4 << 20, UNITS_COMPARED = 8, ALIKE_BYTES = TTI_SLICE_ALIGN };

typedef struct maker {
    const tti_cluster   *cluster;
    const tti_tape_call *call;
    tti_tape            *tape;
    tti_schedule         schedule; /* of the rank at hand */
    int64_t             *counts;   /* [ranks] of blocks, or NULL */
    size_t               element;
    tti_cut              cut;
} maker;

void tti_tape_release(tti_tape *tape)
{
    free(tape->parts);
    free(tape->phases);
    free(tape->sends);
    *tape = (tti_tape){ .n_ranks = 0 };
}

static tutti_status fail_memory(void)
{
    return tti_fail(TUTTI_E_NOMEM, "no memory for what the ranks of a simulation do");
}

/* items with room for n, or NULL: then they are as they were. */
static void *with_room(void *items, size_t *room, size_t n, size_t size)
{
    size_t wanted = *room > 0 ? *room : 1024;
    void  *grown = items;

    while (wanted < n)
        wanted *= 2;
    if (wanted != *room)
        grown = realloc(items, wanted * size);
    if (grown != NULL)
        *room = wanted;
    return grown;
}

static bool make_room(tti_tape *tape, const tti_schedule *from)
{
    tti_tape_part  *parts = with_room(tape->parts, &tape->parts_room, tape->parts_n + 2, sizeof *parts);
    tti_tape_phase *phases = with_room(tape->phases, &tape->phases_room, tape->n_phases + (size_t)from->phases.n,
                                       sizeof *phases);
    tti_tape_send  *sends = with_room(tape->sends, &tape->sends_room, tape->n_sends + (size_t)from->sends.n,
                                      sizeof *sends);

    tape->parts = parts != NULL ? parts : tape->parts;
    tape->phases = phases != NULL ? phases : tape->phases;
    tape->sends = sends != NULL ? sends : tape->sends;
    return parts != NULL && phases != NULL && sends != NULL;
}

/* ---- one rank ---------------------------------------------------------------------------------- */

static int64_t work_of(const maker *m, int k)
{
    const tti_machine *machine = &m->cluster->figures.machine;
    const bool         far = 2.0 * (double)m->call->count * (double)m->element > machine->cache_bytes;
    const tti_phase   *phases = m->schedule.phases.items;
    const tti_step    *steps = m->schedule.steps.items;
    double             ns = 0;
    int                i;

    for (i = k > 0 ? phases[k - 1].steps_end : 0; i < phases[k].steps_end; i++)
        ns += (double)steps[i].to.bytes *
              (steps[i].reduces ? steps[i].n * machine->combine : far ? machine->copy_far : machine->copy);
    return tti_ps(ns);
}

/* more_ps: work that is not in the steps. */
static void shorten_phase(const maker *m, int k, int64_t more_ps)
{
    tti_tape           *tape = m->tape;
    int                 n_sends, n_recvs, i;
    const tti_transfer *sends = tti_phase_sends(&m->schedule, k, &n_sends);
    const int64_t       work_ps = work_of(m, k) + more_ps;

    (void)tti_phase_recvs(&m->schedule, k, &n_recvs);
    if (n_sends == 0 && n_recvs == 0 && work_ps == 0)
        return;
    for (i = 0; i < n_sends; i++) {
        const uint64_t bytes = (uint64_t)sends[i].block.bytes;

        tape->sends[tape->n_sends++] = (tti_tape_send){ .peer = sends[i].peer, .bytes_low = (uint32_t)bytes,
                                                        .bytes_high = (uint32_t)(bytes >> 32) };
    }
    tape->phases[tape->n_phases++] = (tti_tape_phase){ .number = (uint32_t)k, .sends_end = (uint32_t)tape->n_sends,
                                                       .n_recvs = (uint32_t)n_recvs, .work_ps = work_ps };
}

/* What rank does in a piece, at the tape's end. */
static tutti_status add_part(maker *m, int rank, int piece)
{
    const tti_tape_call *call = m->call;
    const tti_plan_input input = { .n_ranks = tti_cluster_ranks(m->cluster), .rank = rank, .root = call->root,
                                   .count = tti_cut_count(&m->cut, call->count, piece), .element = m->element,
                                   .list_counts = m->counts, .in_counts = m->counts, .chunk = piece };
    tti_tape            *tape = m->tape;
    tti_tape_part       *part;
    int                  k, half = -1;

    tti_schedule_clear(&m->schedule);
    if (call->levels != NULL)
        half = tti_sim_levels_plan(call->levels, rank, input.count, &m->schedule);
    else
        call->plan(&input, &m->schedule);
    if (m->schedule.full || tape->n_sends + (size_t)m->schedule.sends.n > UINT32_MAX || !make_room(tape, &m->schedule))
        return fail_memory();
    part = &tape->parts[tape->parts_n++];
    *part = (tti_tape_part){ .sends_begin = (uint32_t)tape->n_sends, .phases_begin = (uint32_t)tape->n_phases };
    for (k = 0; k < m->schedule.phases.n; k++)
        shorten_phase(m, k, half >= 0 && (k == 0 || k == half) ? call->levels->half_ps : 0);
    part->n_phases = (uint32_t)tape->n_phases - part->phases_begin;
    return TUTTI_OK;
}

static tutti_status add_rank(maker *m, int rank)
{
    tti_tape          *tape = m->tape;
    const tutti_status st = add_part(m, rank, 0);

    if (st != TUTTI_OK || tape->n_pieces > 1)
        return st == TUTTI_OK ? add_part(m, rank, tape->n_pieces - 1) : st;
    tape->parts[tape->parts_n] = tape->parts[tape->parts_n - 1]; /* the only piece is the last one, too */
    tape->parts_n++;
    return TUTTI_OK;
}

/* Forget all ranks from n on. */
static void cut_at(tti_tape *tape, int n)
{
    if ((size_t)(2 * n) >= tape->parts_n)
        return;
    tape->n_sends = tape->parts[2 * n].sends_begin;
    tape->n_phases = tape->parts[2 * n].phases_begin;
    tape->parts_n = (size_t)(2 * n);
}

/* Of all pieces together, as far as the tape goes. */
static int64_t messages_of(const tti_tape *tape)
{
    return tape->n_pieces > 1 ? (int64_t)(tape->n_sends / 2) * tape->n_pieces : (int64_t)tape->n_sends;
}

/* ---- units ------------------------------------------------------------------------------------- */

/* The ranks of a unit; all of them, where there are no units. */
static int unit_of(const tti_cluster *cluster)
{
    const int hosts = cluster->rack_hosts > 0 ? cluster->rack_hosts : 1;

    if (cluster->one_machine || cluster->hosts % hosts != 0)
        return tti_cluster_ranks(cluster);
    return hosts * cluster->per_host;
}

static bool same_bytes(const tti_tape_send *a, const tti_tape_send *b)
{
    return llabs(tti_tape_bytes(a) - tti_tape_bytes(b)) <= ALIKE_BYTES;
}

/* Whether b does what a does, shift ranks further. */
static bool same_part(const tti_tape *tape, const tti_tape_part *a, const tti_tape_part *b, int shift, int n_ranks)
{
    const tti_tape_phase *in_a = tape->phases + a->phases_begin, *in_b = tape->phases + b->phases_begin;
    const tti_tape_send  *from_a = tape->sends + a->sends_begin, *from_b = tape->sends + b->sends_begin;
    uint32_t              k, i, n;

    if (a->n_phases != b->n_phases)
        return false;
    for (k = 0; k < a->n_phases; k++)
        if (in_a[k].number != in_b[k].number || in_a[k].n_recvs != in_b[k].n_recvs ||
            in_a[k].sends_end - a->sends_begin != in_b[k].sends_end - b->sends_begin)
            return false;
    n = a->n_phases > 0 ? in_a[a->n_phases - 1].sends_end - a->sends_begin : 0;
    for (i = 0; i < n; i++)
        if (tti_shifted(from_a[i].peer, shift, n_ranks) != from_b[i].peer || !same_bytes(&from_a[i], &from_b[i]))
            return false;
    return true;
}

/* Whether a unit does what the first one does, whose tape there is. Leaves the tape as it was. */
static tutti_status compare_unit(maker *m, int unit, int first, bool *same_out)
{
    const int    n = tti_cluster_ranks(m->cluster);
    tutti_status st = TUTTI_OK;
    bool         same = true;
    int          r;

    for (r = 0; r < unit && same && st == TUTTI_OK; r++) {
        st = add_rank(m, first + r);
        if (st == TUTTI_OK)
            same = same_part(m->tape, &m->tape->parts[2 * r], &m->tape->parts[2 * unit], first, n) &&
                   same_part(m->tape, &m->tape->parts[2 * r + 1], &m->tape->parts[2 * unit + 1], first, n);
        cut_at(m->tape, unit);
    }
    *same_out = same;
    return st;
}

/* The tape has the first unit. */
static tutti_status compare_units(maker *m, int unit, bool *same_out)
{
    const int     n_units = tti_cluster_ranks(m->cluster) / unit;
    const int64_t each = (int64_t)m->tape->n_sends + 1;
    const int     n = each * n_units <= COMPARED_MESSAGES || n_units <= UNITS_COMPARED ? n_units - 1 : UNITS_COMPARED;
    tutti_status  st = TUTTI_OK;
    int           i;

    *same_out = true;
    for (i = 1; i <= n && *same_out && st == TUTTI_OK; i++)
        st = compare_unit(m, unit, (int)((int64_t)i * (n_units - 1) / n) * unit, same_out);
    return st;
}

/* ---- all ranks --------------------------------------------------------------------------------- */

/* Ranks from n on, until there are all, or more messages than most. */
static tutti_status add_ranks(maker *m, int *n, int64_t most)
{
    const int    all = tti_cluster_ranks(m->cluster);
    tutti_status st = TUTTI_OK;

    for (; *n < all && messages_of(m->tape) <= most && st == TUTTI_OK; *n += st == TUTTI_OK)
        st = add_rank(m, *n);
    return st;
}

static tutti_status fail_many(int64_t messages_max)
{
    return tti_fail(TUTTI_E_UNSUPPORTED,
                    "ranks send more than the %lld messages that are simulated, and not all hosts do the same\n"
                    "  next: take fewer ranks, or allow more messages",
                    (long long)messages_max);
}

/* From all ranks' to the first unit's, where the others do the same. */
static tutti_status try_unit(maker *m, int *n, int64_t most)
{
    const int    unit = unit_of(m->cluster);
    bool         same = false;
    tutti_status st = TUTTI_OK;

    while (*n < unit && messages_of(m->tape) <= most && st == TUTTI_OK) {
        st = add_rank(m, *n);
        *n += st == TUTTI_OK;
    }
    if (st != TUTTI_OK || *n < unit || unit == tti_cluster_ranks(m->cluster))
        return st;
    cut_at(m->tape, unit);
    *n = unit;
    st = compare_units(m, unit, &same);
    if (same)
        m->tape->n_ranks = unit;
    return st;
}

static tutti_status make(maker *m, const tti_tape_limits *limits)
{
    int          n = 0;
    tutti_status st;

    m->tape->n_ranks = tti_cluster_ranks(m->cluster);
    st = add_ranks(m, &n, limits->full < limits->most ? limits->full : limits->most);
    if (st == TUTTI_OK && n < m->tape->n_ranks)
        st = try_unit(m, &n, limits->most);
    if (st == TUTTI_OK && n < m->tape->n_ranks)
        st = add_ranks(m, &n, limits->most);
    if (st == TUTTI_OK && messages_of(m->tape) > limits->most)
        st = fail_many(limits->most);
    return st;
}

/* As the library cuts it. */
static void cut_call(maker *m, int n_ranks)
{
    const tutti_call call = { .kind = m->call->kind, .dtype = m->call->dtype, .op = { .kind = TUTTI_OP_SUM },
                              .root = m->call->root, .count = m->call->count, .n_parts = m->counts != NULL ? n_ranks : 0,
                              .in_counts = m->counts, .list_counts = m->counts };

    if (m->call->levels != NULL) {
        m->cut = tti_cut_into(&call, n_ranks, m->call->levels->per_piece, TTI_LEVEL_FLIGHTS);
        m->cut.n_chunks = m->call->levels->pieces;
    } else {
        m->cut = tti_cut_over(m->call->plan, &call, n_ranks, m->call->wire, 2 * m->cluster->figures.far.latency);
    }
    m->tape->n_pieces = m->cut.n_chunks;
    m->tape->window = m->cut.window < m->cut.n_chunks ? m->cut.window : m->cut.n_chunks;
    m->tape->in_flight = m->cut.sends;
}

tutti_status tti_tape_make(const tti_cluster *cluster, const tti_tape_call *call, const tti_tape_limits *limits,
                           tti_tape *tape_out)
{
    const int    n = tti_cluster_ranks(cluster);
    tti_tape     tape = { .n_ranks = 0 };
    maker        m = { .cluster = cluster, .call = call, .tape = &tape, .element = tutti_dtype_size(call->dtype) };
    tutti_status st;
    int          r;

    if (call->kind == TUTTI_CALL_ALL_TO_ALL && call->levels == NULL) { /* its plans read the sizes of blocks from lists */
        m.counts = malloc((size_t)n * sizeof *m.counts);
        if (m.counts == NULL)
            return fail_memory();
        for (r = 0; r < n; r++)
            m.counts[r] = call->count;
    }
    cut_call(&m, n);
    st = make(&m, limits);
    tti_schedule_release(&m.schedule);
    free(m.counts);
    if (st == TUTTI_OK)
        *tape_out = tape;
    else
        tti_tape_release(&tape);
    return st;
}
