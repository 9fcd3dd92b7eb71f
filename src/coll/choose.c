/* SPDX-License-Identifier: BSD-3-Clause
 *
 * choose.c - the table of algorithms, and the choice among them.
 *
 * How     A new algorithm is a row, with what it does in a call (cost.h). When a group is made, the
 *         question is answered once for every kind and class of sizes: what TUTTI_ALGO asks for, wherever
 *         that can serve at all; else what the table of TUTTI_TUNE says; else the cheapest row by the cost
 *         model, among those that can serve, are within the sizes that they are meant for, and combine in
 *         the order that the call has. On one host what goes through shared memory comes before what
 *         goes through messages, without a look at costs. A call then takes one look at a table.
 * True    Every rank takes the same row: kind, count and dtype are compared by the control word, and the
 *         question is the same on all ranks (choice.c). The answer is a pure function of it.
 *         The choice never changes a bit: the order of summation is a static rule of what all ranks
 *         share (tti_order_of), and only rows of that order are candidates. So far that order is 0..P-1
 *         everywhere, but in groups of several hosts with several members on one, where sums are made inside the
 *         hosts first, at every size; TUTTI_REPRODUCIBLE keeps them from it. */
#include "coll/choose.h"

#include <string.h>
#include <tutti/private.h>

#define ANY_SIZE INT64_MAX
#define ANY_RANKS INT32_MAX

#define ONLY_ASKED (-1)

enum {
    KIB = 1024,
    LEADERS_MOST = 16 * KIB, /* beyond, others should carry some of it; less of parts, of which there are several */
    LINES_ONE_WAY = 16 * KIB, /* from a root or to it: beyond, slots are written sooner, of which there are more */
    PULL_ALL_MOST = 24 * 1024 * KIB /* beyond, the second pass of an all_reduce finds nothing in a cache any more */
};

/* Taken by coll.c before the others, where all members have it. */
#define ON_REGISTERED(kind) \
    { kind, "fused", NULL, NULL, TTI_HOST_RANKS_MAX, ANY_SIZE, NULL, TTI_IN_RANK_ORDER }

/* In two levels; several hosts, and several members on one. */
#define IN_LEVELS(kind, name, most, amounts, order, level) \
    { kind, name, NULL, NULL, ANY_RANKS, most, NULL, order, level, amounts }

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmissing-field-initializers" /* most rows end before level */
static const tti_algorithm table[] = {
    { TUTTI_CALL_BARRIER, "lines", tti_one_phase_barrier, NULL, TTI_HOST_RANKS_MAX, ANY_SIZE,
      tti_amounts_meet, TTI_IN_RANK_ORDER },
    { TUTTI_CALL_BARRIER, "flags", tti_staged_barrier, NULL, TTI_HOST_RANKS_MAX, ANY_SIZE,
      tti_amounts_meet, TTI_IN_RANK_ORDER },
    { TUTTI_CALL_BARRIER, "dissemination", NULL, tti_plan_barrier_dissemination, ANY_RANKS, ANY_SIZE,
      tti_amounts_net_doubling, TTI_IN_RANK_ORDER },
    IN_LEVELS(TUTTI_CALL_BARRIER, "leaders", ANY_SIZE, tti_amounts_level_barrier, TTI_IN_RANK_ORDER, tti_leaders),

    ON_REGISTERED(TUTTI_CALL_ALL_REDUCE),
    { TUTTI_CALL_ALL_REDUCE, "lines", tti_one_phase_all_reduce, NULL, TTI_HOST_RANKS_MAX, TTI_LINES_BYTES,
      tti_amounts_all_one_phase, TTI_IN_RANK_ORDER },
    { TUTTI_CALL_ALL_REDUCE, "one_phase", tti_staged_all_reduce_one_phase, NULL, TTI_HOST_RANKS_MAX,
      ONLY_ASKED, tti_amounts_all_one_phase, TTI_IN_RANK_ORDER },
    { TUTTI_CALL_ALL_REDUCE, "sliced", tti_staged_all_reduce_sliced, NULL, TTI_HOST_RANKS_MAX, ANY_SIZE,
      tti_amounts_all_sliced, TTI_IN_RANK_ORDER },
    { TUTTI_CALL_ALL_REDUCE, "pull", tti_pulled_all_reduce, NULL, TTI_HOST_RANKS_MAX, PULL_ALL_MOST,
      tti_amounts_all_pulled, TTI_IN_RANK_ORDER },
    { TUTTI_CALL_ALL_REDUCE, "one_shot", NULL, tti_plan_all_reduce_one_shot, ANY_RANKS, 64 * KIB,
      tti_amounts_net_all_to_all_one, TTI_IN_RANK_ORDER },
    { TUTTI_CALL_ALL_REDUCE, "direct", NULL, tti_plan_all_reduce_direct, ANY_RANKS, ANY_SIZE,
      tti_amounts_net_slices, TTI_IN_RANK_ORDER },
    IN_LEVELS(TUTTI_CALL_ALL_REDUCE, "leaders", LEADERS_MOST, tti_amounts_leaders, TTI_IN_HOST_ORDER, tti_leaders),
    IN_LEVELS(TUTTI_CALL_ALL_REDUCE, "two_level", ANY_SIZE, tti_amounts_level_all_reduce, TTI_IN_HOST_ORDER, tti_two_level),

    ON_REGISTERED(TUTTI_CALL_REDUCE),
    { TUTTI_CALL_REDUCE, "lines", tti_one_phase_reduce, NULL, TTI_HOST_RANKS_MAX, LINES_ONE_WAY,
      tti_amounts_root_one_phase, TTI_IN_RANK_ORDER },
    { TUTTI_CALL_REDUCE, "one_phase", tti_staged_reduce_one_phase, NULL, TTI_HOST_RANKS_MAX, 128 * KIB,
      tti_amounts_root_one_phase, TTI_IN_RANK_ORDER },
    { TUTTI_CALL_REDUCE, "sliced", tti_staged_reduce_sliced, NULL, TTI_HOST_RANKS_MAX, ANY_SIZE,
      tti_amounts_root_sliced, TTI_IN_RANK_ORDER },
    { TUTTI_CALL_REDUCE, "to_root", NULL, tti_plan_reduce_to_root, ANY_RANKS, 64 * KIB,
      tti_amounts_net_to_root, TTI_IN_RANK_ORDER },
    { TUTTI_CALL_REDUCE, "direct", NULL, tti_plan_reduce_direct, ANY_RANKS, ANY_SIZE,
      tti_amounts_net_slices_to_root, TTI_IN_RANK_ORDER },
    IN_LEVELS(TUTTI_CALL_REDUCE, "leaders", LEADERS_MOST, tti_amounts_leaders, TTI_IN_HOST_ORDER, tti_leaders),
    IN_LEVELS(TUTTI_CALL_REDUCE, "two_level", ANY_SIZE, tti_amounts_level_rooted, TTI_IN_HOST_ORDER, tti_two_level),

    ON_REGISTERED(TUTTI_CALL_BROADCAST),
    { TUTTI_CALL_BROADCAST, "lines", tti_one_phase_broadcast, NULL, TTI_HOST_RANKS_MAX, LINES_ONE_WAY,
      tti_amounts_one_to_all, TTI_IN_RANK_ORDER },
    { TUTTI_CALL_BROADCAST, "staged", tti_staged_broadcast, NULL, TTI_HOST_RANKS_MAX, ANY_SIZE,
      tti_amounts_one_in_pieces, TTI_IN_RANK_ORDER },
    { TUTTI_CALL_BROADCAST, "pull", tti_pulled_broadcast, NULL, TTI_HOST_RANKS_MAX, ONLY_ASKED,
      tti_amounts_one_pulled, TTI_IN_RANK_ORDER },
    { TUTTI_CALL_BROADCAST, "binomial", NULL, tti_plan_broadcast_binomial, ANY_RANKS, ANY_SIZE,
      tti_amounts_net_tree, TTI_IN_RANK_ORDER },
    IN_LEVELS(TUTTI_CALL_BROADCAST, "leaders", LEADERS_MOST, tti_amounts_leaders, TTI_IN_RANK_ORDER, tti_leaders),
    IN_LEVELS(TUTTI_CALL_BROADCAST, "two_level", ANY_SIZE, tti_amounts_level_rooted, TTI_IN_RANK_ORDER, tti_two_level),

    ON_REGISTERED(TUTTI_CALL_ALL_GATHER),
    { TUTTI_CALL_ALL_GATHER, "lines", tti_one_phase_all_gather, NULL, TTI_HOST_RANKS_MAX,
      TTI_LINES_BYTES, tti_amounts_all_parts, TTI_IN_RANK_ORDER },
    { TUTTI_CALL_ALL_GATHER, "staged", tti_staged_all_gather, NULL, TTI_HOST_RANKS_MAX, ANY_SIZE,
      tti_amounts_all_parts, TTI_IN_RANK_ORDER },
    { TUTTI_CALL_ALL_GATHER, "pull", tti_pulled_all_gather, NULL, TTI_HOST_RANKS_MAX, ANY_SIZE,
      tti_amounts_parts_pulled, TTI_IN_RANK_ORDER },
    { TUTTI_CALL_ALL_GATHER, "direct", NULL, tti_plan_all_gather_direct, ANY_RANKS, ANY_SIZE,
      tti_amounts_net_parts, TTI_IN_RANK_ORDER },
    IN_LEVELS(TUTTI_CALL_ALL_GATHER, "leaders", LEADERS_MOST / 8, tti_amounts_leaders, TTI_IN_RANK_ORDER, tti_leaders),
    IN_LEVELS(TUTTI_CALL_ALL_GATHER, "two_level", ANY_SIZE, tti_amounts_level_all_gather, TTI_IN_RANK_ORDER, tti_two_level),

    ON_REGISTERED(TUTTI_CALL_GATHER),
    { TUTTI_CALL_GATHER, "lines", tti_one_phase_gather, NULL, TTI_HOST_RANKS_MAX, TTI_LINES_BYTES,
      tti_amounts_root_parts, TTI_IN_RANK_ORDER },
    { TUTTI_CALL_GATHER, "staged", tti_staged_gather, NULL, TTI_HOST_RANKS_MAX, ANY_SIZE,
      tti_amounts_root_parts, TTI_IN_RANK_ORDER },
    { TUTTI_CALL_GATHER, "pull", tti_pulled_gather, NULL, TTI_HOST_RANKS_MAX, ANY_SIZE,
      tti_amounts_parts_pulled, TTI_IN_RANK_ORDER },
    { TUTTI_CALL_GATHER, "direct", NULL, tti_plan_gather_direct, ANY_RANKS, ANY_SIZE,
      tti_amounts_net_parts, TTI_IN_RANK_ORDER },

    ON_REGISTERED(TUTTI_CALL_SCATTER),
    { TUTTI_CALL_SCATTER, "lines", tti_one_phase_scatter, NULL, TTI_HOST_RANKS_MAX, TTI_LINES_BYTES / 2,
      tti_amounts_root_parts, TTI_IN_RANK_ORDER },
    { TUTTI_CALL_SCATTER, "staged", tti_staged_scatter, NULL, TTI_HOST_RANKS_MAX, ANY_SIZE,
      tti_amounts_root_parts, TTI_IN_RANK_ORDER },
    { TUTTI_CALL_SCATTER, "pull", tti_pulled_scatter, NULL, TTI_HOST_RANKS_MAX, ANY_SIZE,
      tti_amounts_one_pulled, TTI_IN_RANK_ORDER },
    { TUTTI_CALL_SCATTER, "direct", NULL, tti_plan_scatter_direct, ANY_RANKS, ANY_SIZE,
      tti_amounts_net_parts, TTI_IN_RANK_ORDER },

    ON_REGISTERED(TUTTI_CALL_REDUCE_SCATTER),
    { TUTTI_CALL_REDUCE_SCATTER, "lines", tti_one_phase_reduce_scatter, NULL, TTI_HOST_RANKS_MAX,
      TTI_LINES_BYTES / 2, tti_amounts_own_slices, TTI_IN_RANK_ORDER },
    { TUTTI_CALL_REDUCE_SCATTER, "staged", tti_staged_reduce_scatter, NULL, TTI_HOST_RANKS_MAX, ANY_SIZE,
      tti_amounts_own_slices, TTI_IN_RANK_ORDER },
    { TUTTI_CALL_REDUCE_SCATTER, "pull", tti_pulled_reduce_scatter, NULL, TTI_HOST_RANKS_MAX, ANY_SIZE,
      tti_amounts_own_pulled, TTI_IN_RANK_ORDER },
    { TUTTI_CALL_REDUCE_SCATTER, "direct", NULL, tti_plan_reduce_scatter_direct, ANY_RANKS, ANY_SIZE,
      tti_amounts_net_own_slices, TTI_IN_RANK_ORDER },
    IN_LEVELS(TUTTI_CALL_REDUCE_SCATTER, "leaders", LEADERS_MOST / 8, tti_amounts_leaders, TTI_IN_HOST_ORDER, tti_leaders),
    IN_LEVELS(TUTTI_CALL_REDUCE_SCATTER, "two_level", ANY_SIZE, tti_amounts_level_reduce_scatter, TTI_IN_HOST_ORDER, tti_two_level),

    ON_REGISTERED(TUTTI_CALL_ALL_TO_ALL),
    { TUTTI_CALL_ALL_TO_ALL, "lines", tti_one_phase_all_to_all, NULL, TTI_HOST_RANKS_MAX, ANY_SIZE,
      tti_amounts_blocks, TTI_IN_RANK_ORDER },
    { TUTTI_CALL_ALL_TO_ALL, "pull", tti_pulled_all_to_all, NULL, TTI_HOST_RANKS_MAX, ANY_SIZE,
      tti_amounts_blocks, TTI_IN_RANK_ORDER },
    { TUTTI_CALL_ALL_TO_ALL, "staged", tti_staged_all_to_all, NULL, TTI_HOST_RANKS_MAX, ANY_SIZE,
      tti_amounts_blocks, TTI_IN_RANK_ORDER },
    { TUTTI_CALL_ALL_TO_ALL, "direct", NULL, tti_plan_all_to_all_direct, ANY_RANKS, ANY_SIZE,
      tti_amounts_net_blocks, TTI_IN_RANK_ORDER },

    ON_REGISTERED(TUTTI_CALL_GATHER_V),
    { TUTTI_CALL_GATHER_V, "lines", tti_one_phase_all_to_all, NULL, TTI_HOST_RANKS_MAX, ANY_SIZE,
      tti_amounts_blocks, TTI_IN_RANK_ORDER },
    { TUTTI_CALL_GATHER_V, "pull", tti_pulled_all_to_all, NULL, TTI_HOST_RANKS_MAX, ANY_SIZE,
      tti_amounts_blocks, TTI_IN_RANK_ORDER },
    { TUTTI_CALL_GATHER_V, "staged", tti_staged_all_to_all, NULL, TTI_HOST_RANKS_MAX, ANY_SIZE,
      tti_amounts_blocks, TTI_IN_RANK_ORDER },
    { TUTTI_CALL_GATHER_V, "direct", NULL, tti_plan_all_to_all_direct, ANY_RANKS, ANY_SIZE,
      tti_amounts_net_blocks, TTI_IN_RANK_ORDER },

    ON_REGISTERED(TUTTI_CALL_SCATTER_V),
    { TUTTI_CALL_SCATTER_V, "lines", tti_one_phase_all_to_all, NULL, TTI_HOST_RANKS_MAX, ANY_SIZE,
      tti_amounts_blocks, TTI_IN_RANK_ORDER },
    { TUTTI_CALL_SCATTER_V, "pull", tti_pulled_all_to_all, NULL, TTI_HOST_RANKS_MAX, ANY_SIZE,
      tti_amounts_blocks, TTI_IN_RANK_ORDER },
    { TUTTI_CALL_SCATTER_V, "staged", tti_staged_all_to_all, NULL, TTI_HOST_RANKS_MAX, ANY_SIZE,
      tti_amounts_blocks, TTI_IN_RANK_ORDER },
    { TUTTI_CALL_SCATTER_V, "direct", NULL, tti_plan_all_to_all_direct, ANY_RANKS, ANY_SIZE,
      tti_amounts_net_blocks, TTI_IN_RANK_ORDER },
};
#pragma GCC diagnostic pop
enum { ROWS = sizeof table / sizeof table[0] };
_Static_assert((int)ROWS < (int)TTI_ROW_NONE, "a row fits into a byte of tti_decision");

const tti_algorithm *tti_algorithms(int *n_out)
{
    *n_out = ROWS;
    return table;
}

tti_order tti_order_of(tutti_call_kind kind, int64_t bytes, bool one_host, int n_ranks)
{
    /* The rule has one case: every kind, size and layout is combined from rank 0 to rank P-1. */
    (void)kind;
    (void)bytes;
    (void)one_host;
    (void)n_ranks;
    return TTI_IN_RANK_ORDER;
}

tti_order tti_order_in_levels(tutti_call_kind kind)
{
    const bool combines = kind == TUTTI_CALL_ALL_REDUCE || kind == TUTTI_CALL_REDUCE || kind == TUTTI_CALL_REDUCE_SCATTER;

    return combines ? TTI_IN_HOST_ORDER : TTI_IN_RANK_ORDER;
}

/* ---- sizes ------------------------------------------------------------------------------------- */

int tti_size_class(int64_t bytes)
{
    const uint64_t x = (uint64_t)bytes - 1;
    int            log2;

    if (bytes <= 4)
        return bytes <= 0 ? 0 : (int)bytes;
    log2 = 63 - __builtin_clzll(x);
    if (log2 > TTI_SIZE_CLASSES / 4)
        return TTI_SIZE_CLASSES - 1;
    return 1 + 4 * (log2 - 1) + (int)(x >> (log2 - 2) & 3);
}

int64_t tti_size_class_most(int size_class)
{
    const int quarter = (size_class - 1) % 4;

    if (size_class <= 4)
        return size_class;
    if (size_class >= TTI_SIZE_CLASSES - 1)
        return INT64_MAX;
    return (INT64_C(5) + quarter) << ((size_class - 1) / 4 - 1);
}

/* ---- the choice -------------------------------------------------------------------------------- */

static bool can_serve(const tti_algorithm *row, bool one_host, int n_ranks)
{
    return n_ranks <= row->ranks_max && (row->staged == NULL || one_host);
}

static bool has_levels_for(const tti_question *q, const tti_algorithm *row)
{
    return row->level == NULL || q->levels != NULL;
}

/* Of what a rank sends, as much as goes to other hosts takes turns with that of the other ranks of its host. */
static double on_one_link(const tti_question *q, double sent)
{
    const double local = q->levels->most, ranks = q->n_ranks;

    return sent * local * (ranks - local) / (ranks - 1);
}

static double cost_of(const tti_question *q, const tti_algorithm *row, double bytes)
{
    tti_amounts amounts = row->level != NULL ? row->level_amounts(q->levels, bytes) : row->amounts(q->n_ranks, bytes);

    if (q->levels != NULL && row->level == NULL)
        amounts.sent = on_one_link(q, amounts.sent);
    return tti_cost(&amounts, q->machine, q->turns, q->n_ranks, bytes);
}

/* What is asked for: rows of one kind and one order, for so many bytes. */
typedef struct cell {
    tutti_call_kind kind;
    int64_t         bytes;
    tti_order       order;
} cell;

static bool is_candidate(const tti_question *q, const tti_algorithm *row, const cell *c)
{
    return !tti_is_fused(row) && row->kind == c->kind && row->order == c->order && c->bytes <= row->bytes_best &&
           can_serve(row, q->one_host, q->n_ranks) && has_levels_for(q, row);
}

static int cheapest(const tti_question *q, const tti_algorithm *rows, int n_rows, const cell *c)
{
    const double bytes = c->bytes == INT64_MAX ? 0x1p50 : (double)c->bytes;
    double       least = 0;
    int          best = TTI_ROW_NONE, i;

    for (i = 0; i < n_rows; i++) {
        double cost;

        if (!is_candidate(q, &rows[i], c))
            continue;
        if (best != TTI_ROW_NONE && rows[best].staged != NULL && rows[i].staged == NULL)
            continue;
        cost = cost_of(q, &rows[i], bytes);
        if (best == TTI_ROW_NONE || cost < least) {
            best = i;
            least = cost;
        }
    }
    return best;
}

/* The first row of the group's table of which the algorithm can serve and keeps the order. */
static int tuned(const tti_question *q, const tti_algorithm *rows, const cell *c)
{
    int i;

    for (i = 0; i < q->tune->n; i++) {
        const tti_tune_row  *row = &q->tune->rows[i];
        const tti_algorithm *algorithm = &rows[row->row];

        if (tti_tune_fits(row, c->kind, c->bytes, q->n_ranks, q->one_host) &&
            can_serve(algorithm, q->one_host, q->n_ranks) && has_levels_for(q, algorithm) &&
            algorithm->order == c->order)
            return row->row;
    }
    return TTI_ROW_NONE;
}

static int answer(const tti_question *q, const tti_algorithm *rows, int n_rows, const cell *c)
{
    const int wanted = q->wishes->rows[c->kind];
    int       row;

    if (wanted >= 0 && !tti_is_fused(&rows[wanted]) && can_serve(&rows[wanted], q->one_host, q->n_ranks) &&
        has_levels_for(q, &rows[wanted]) && (!q->reproducible || rows[wanted].order == TTI_IN_RANK_ORDER))
        return wanted;
    row = tuned(q, rows, c);
    return row != TTI_ROW_NONE ? row : cheapest(q, rows, n_rows, c);
}

void tti_decide(const tti_question *q, const tti_algorithm *rows, int n_rows, tti_decision *decision_out)
{
    int kind, size;

    memset(decision_out->rows, TTI_ROW_NONE, sizeof decision_out->rows);
    for (kind = 1; kind < TUTTI_CALL_KIND_COUNT; kind++)
        for (size = 0; size < TTI_SIZE_CLASSES; size++) {
            cell c = { .kind = (tutti_call_kind)kind, .bytes = tti_size_class_most(size) };

            c.order = q->reproducible     ? TTI_IN_RANK_ORDER
                      : q->levels != NULL ? tti_order_in_levels(c.kind)
                                          : tti_order_of(c.kind, c.bytes, q->one_host, q->n_ranks);
            decision_out->rows[kind][size] = (uint8_t)answer(q, rows, n_rows, &c);
        }
}

tti_fused_wish tti_wish_for_fused(const tti_wishes *wishes, tutti_call_kind kind)
{
    const int wanted = wishes->rows[kind];

    if (wanted < 0)
        return TTI_FUSED_WHERE_BEST;
    return tti_is_fused(&table[wanted]) ? TTI_FUSED_ALWAYS : TTI_FUSED_NEVER;
}

const tti_algorithm *tti_choose(const tti_decision *decision, tutti_call_kind kind, int64_t bytes)
{
    return &table[decision->rows[kind][tti_size_class(bytes)]];
}
