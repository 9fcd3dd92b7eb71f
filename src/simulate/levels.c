/* SPDX-License-Identifier: BSD-3-Clause
 *
 * levels.c - calls in two levels, for a simulation.
 *
 * How     Pieces and carriers are those of coll/level; across, a piece is the plan that the library would take for it, among
 *         counterparts; what members of a host do for each other, before and after, is time on their cores: half each of
 *         what the amounts say of it (coll/level/amounts.c). Pieces are lanes, so that some are on the links while others are
 *         collected.
 *         Blocks go as coll/level/blocks.c deals them: messages between counterparts, then long blocks from rank to rank.
 * True    What goes over links is what the library sends, but for what cuts a piece into chunks, which pieces are too short
 *         for. A member does not wait for another one of its host: those that do the same at the same time are as late. */
#include "simulate/levels.h"

#include <stdlib.h>
#include <tutti/private.h>
#include "coll/pattern.h"

enum { ENTRY_HEAD = 16, ENTRY_ROUND = 16 }; /* coll/level/blocks.c */

static int smaller(int a, int b)
{
    return a < b ? a : b;
}

tti_level_figures tti_sim_level_figures(const tti_cluster *c)
{
    return (tti_level_figures){ .hosts = c->hosts, .least = c->per_host, .most = c->per_host,
                                .carriers = smaller(c->cores, c->per_host) };
}

static bool has_blocks(const tti_algorithm *row)
{
    return row->level == tti_blocks_two_level || row->level == tti_blocks_leaders;
}

int tti_sim_carriers_of(const tti_algorithm *row, const tti_level_figures *figures)
{
    if (row->level == tti_leaders || row->level == tti_blocks_leaders)
        return 1;
    return row->level == tti_blocks_two_level ? figures->least : figures->carriers;
}

static bool has_parts(tutti_call_kind kind)
{
    return kind == TUTTI_CALL_ALL_GATHER || kind == TUTTI_CALL_REDUCE_SCATTER || kind == TUTTI_CALL_GATHER ||
           kind == TUTTI_CALL_SCATTER;
}

/* Both halves, of a rank's core: its share of the waits, which ranks that share cores spend together, one after the other,
 * and work, which cores share by themselves. */
static double work_ns(const tti_cluster *c, const tti_sim_levels *levels, double bytes, double whole)
{
    tti_amounts work = levels->row->level_amounts(&levels->figures, bytes);
    tti_amounts waits = { .meets = work.meets, .hears = work.hears };
    const double turns = tti_cluster_turns(c);

    work.meets = work.hears = work.yields = work.messages = work.posts = work.posts_all = work.sent = work.link = 0;
    return tti_cost(&waits, &c->figures.machine, turns, levels->figures.most, bytes) / turns +
           tti_cost(&work, &c->figures.machine, 1, levels->figures.most, whole);
}

tutti_status tti_sim_levels_make(const tti_cluster *cluster, const tti_algorithm *row, const tti_decision *across,
                                 int64_t count, tutti_dtype dtype, tti_sim_levels *levels_out)
{
    tti_sim_levels l = { .row = row, .figures = tti_sim_level_figures(cluster), .across = across,
                         .element = tutti_dtype_size(dtype) };
    const int      parts = has_parts(row->kind) ? tti_cluster_ranks(cluster) : 1;
    const double   element = (double)l.element;

    l.carriers = tti_sim_carriers_of(row, &l.figures);
    l.per_piece = has_blocks(row) ? count : tti_level_piece(count, l.element, parts);
    l.pieces = count > l.per_piece ? (int)((count + l.per_piece - 1) / l.per_piece) : 1;
    l.counts = calloc((size_t)cluster->hosts, sizeof *l.counts);
    if (l.counts == NULL)
        return tti_fail(TUTTI_E_NOMEM, "no memory for the %d hosts of a simulation", cluster->hosts);
    l.half_ps = tti_ps(work_ns(cluster, &l, (double)(count < l.per_piece ? count : l.per_piece) * element,
                               (double)count * element) / 2);
    *levels_out = l;
    return TUTTI_OK;
}

void tti_sim_levels_release(tti_sim_levels *levels)
{
    tti_schedule_release(&levels->inner);
    free(levels->counts);
    levels->counts = NULL;
}

/* Parts of a host's members that the carrier at place has. */
static int carried(const tti_sim_levels *l, int place)
{
    return (l->figures.most - place + l->carriers - 1) / l->carriers;
}

/* Elements that go across; counts are filled where the kind has parts. */
static int64_t count_across(tti_sim_levels *l, int place, int64_t count)
{
    const tutti_call_kind kind = l->row->kind;
    const bool            rooted = kind == TUTTI_CALL_GATHER || kind == TUTTI_CALL_SCATTER;
    const tti_slice       slice = tti_slice_of(count, l->element, l->carriers, place);
    int64_t               sum = 0;
    int                   host;

    if (!has_parts(kind))
        return slice.end - slice.begin;
    for (host = 0; host < l->figures.hosts; host++) {
        l->counts[host] = rooted && host == 0 ? 0 : carried(l, place) * count;
        sum += l->counts[host];
    }
    return sum;
}

static bool has_root(tutti_call_kind kind)
{
    return kind == TUTTI_CALL_BROADCAST || kind == TUTTI_CALL_REDUCE || kind == TUTTI_CALL_GATHER ||
           kind == TUTTI_CALL_SCATTER;
}

/* The hosts' schedule, with the ranks that are the hosts' carriers at this place. */
static void append_across(tti_sim_levels *l, int place, tti_schedule *schedule)
{
    const int first = schedule->sends.n;
    int       k, i;

    for (k = 0; k < l->inner.phases.n; k++) {
        tti_schedule_phase(schedule);
        tti_schedule_join(schedule, &l->inner, k, 0, 0);
    }
    for (i = first; i < schedule->sends.n; i++) {
        tti_transfer *send = (tti_transfer *)schedule->sends.items + i;

        send->peer = send->peer * l->figures.most + place;
    }
    schedule->full = schedule->full || l->inner.full;
}

static void plan_across(tti_sim_levels *l, int host, int place, int64_t count, tti_schedule *schedule)
{
    const tutti_call_kind kind = l->row->kind;
    tti_plan_input        input = { .n_ranks = l->figures.hosts, .rank = host, .root = has_root(kind) ? 0 : -1,
                                    .element = l->element };

    input.count = count_across(l, place, count);
    input.list_counts = has_parts(kind) ? l->counts : NULL;
    tti_schedule_clear(&l->inner);
    tti_choose(l->across, kind, input.count * (int64_t)l->element)->plan(&input, &l->inner);
    append_across(l, place, schedule);
}

/* ---- blocks ---- */

static tti_block of_bytes(int64_t bytes)
{
    return (tti_block){ .place = TTI_PLACE_IN, .bytes = bytes };
}

static int64_t entry_bytes(int64_t bytes)
{
    return (ENTRY_HEAD + bytes + ENTRY_ROUND - 1) / ENTRY_ROUND * ENTRY_ROUND;
}

/* All that a host has for those of each other that are this carrier's. */
static void swap_entries(const tti_sim_levels *l, int host, int place, int64_t body, tti_schedule *schedule)
{
    const int64_t bytes = (int64_t)l->figures.most * carried(l, place) * entry_bytes(body);
    int           i;

    for (i = 1; i < l->figures.hosts; i++) {
        const int to = tti_shifted(host, i, l->figures.hosts), from = tti_shifted(host, -i, l->figures.hosts);

        tti_schedule_send(schedule, to * l->figures.most + place, of_bytes(bytes));
        tti_schedule_recv(schedule, from * l->figures.most + place, of_bytes(bytes));
    }
}

static void swap_long(int rank, int n_ranks, int64_t bytes, tti_schedule *schedule)
{
    int i;

    for (i = 1; i < n_ranks; i++) {
        tti_schedule_send(schedule, tti_shifted(rank, i, n_ranks), of_bytes(bytes));
        tti_schedule_recv(schedule, tti_shifted(rank, -i, n_ranks), of_bytes(bytes));
    }
}

/* Returns the phase in which entries are handed on. */
static int plan_blocks(const tti_sim_levels *l, int rank, int64_t bytes, tti_schedule *schedule)
{
    const int  local = l->figures.most, place = rank % local;
    const bool is_short = (double)bytes <= tti_level_short(&l->figures, l->carriers);

    tti_schedule_phase(schedule);
    if (place < l->carriers)
        swap_entries(l, rank / local, place, is_short ? bytes : 0, schedule);
    tti_schedule_phase(schedule);
    if (!is_short) {
        tti_schedule_phase(schedule);
        swap_long(rank, local * l->figures.hosts, bytes, schedule);
    }
    return 2;
}

/* ---- */

int tti_sim_levels_plan(tti_sim_levels *l, int rank, int64_t count, tti_schedule *schedule)
{
    const int local = l->figures.most, place = rank % local;

    tti_schedule_phase(schedule);
    if (has_blocks(l->row))
        return plan_blocks(l, rank, count * (int64_t)l->element, schedule);
    if (place < l->carriers)
        plan_across(l, rank / local, place, count, schedule);
    tti_schedule_phase(schedule);
    return schedule->phases.n - 1;
}
