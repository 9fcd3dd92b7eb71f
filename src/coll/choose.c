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
 *         The choice never changes a bit: where rounding tells orders apart, the order of summation is a static
 *         rule of what all ranks share (tti_order_of), and only rows of that order are candidates. Integers come out
 *         the same in any order, so that all rows are.
 * Orders  Of several hosts with several members on one sums are made inside the hosts first, at every size.
 *         By memory that all share ranks are summed in their order, and by messages up to 16 ranks. Beyond, what
 *         that takes grows with P: each rank would have to see the contributions of all to something. A tree takes
 *         log2 P messages; it has one shape for all operations and sizes, so that reduce, reduce_scatter and all_reduce
 *         still agree in their bits, however a call is cut into slices or pieces. A ring's order goes by the owners of
 *         slices: it is for exact numbers, and by asking. In 16 bits or less a tree rounds log2 P times, a ring P - 1
 *         times; carrying 32 bits would double what the wire takes, for half a unit in the last place of each level.
 *         Averages of types with a narrow range are not summed on the way, whatever is asked for (tti_needs_one_go). */
#include "coll/choose.h"

#include <string.h>
#include <tutti/private.h>
#include "base/dtype.h"
#include "coll/net/cut.h"
#include "coll/net/turns.h"

#define ANY_SIZE INT64_MAX
#define ANY_RANKS INT32_MAX

#define ONLY_ASKED (-1)
#define WIRE_LEAST 0.01 /* ns of a byte: none is quicker */

enum {
    KIB = 1024,
    SWAP_MOST = 1024 * KIB, /* of two ranks: beyond, to sum a half each is as quick or quicker, and takes less of a core */
    LEADERS_MOST = 16 * KIB, /* beyond, others should carry some of it; less of parts, of which there are several */
    ON_THE_WAY_MOST = 8 * KIB, /* of a contribution: beyond, to be copied at each step takes longer than messages of its own */
    PASS_ON_NS = 64 * KIB, /* what a rank on the way takes to pass something on, about */
    LOPSIDED_SHARE = 8,
    PART_MOST = 1024 * 1024 * KIB, /* of one rank: longer ones are as long, where turns are counted */
    PEERS_BEST = 256, /* where others do with fewer connections */
    LINES_ONE_WAY = 16 * KIB, /* from a root or to it: beyond, slots are written sooner, of which there are more */
    PULL_ALL_MOST = 24 * 1024 * KIB /* beyond, the second pass of an all_reduce finds nothing in a cache any more */
};

/* Taken by coll.c before the others, where all members have it. */
#define ON_REGISTERED(kind) \
    { kind, "fused", NULL, NULL, TTI_HOST_RANKS_MAX, ANY_SIZE, NULL, TTI_IN_RANK_ORDER, 0 }

/* In two levels; several hosts, and several members on one. */
#define IN_LEVELS(kind, name, most, amounts, order, level) \
    { kind, name, NULL, NULL, ANY_RANKS, most, NULL, order, 0, level, amounts }

/* The same with a lane for each rank in a slot. */
#define BLOCKS_IN_LEVELS(kind)                                                                                         \
    { kind, "leaders", NULL, NULL, TTI_HOST_RANKS_MAX, ANY_SIZE, NULL, TTI_IN_RANK_ORDER, 0, tti_blocks_leaders,       \
      tti_amounts_leaders_blocks },                                                                                    \
    { kind, "two_level", NULL, NULL, TTI_HOST_RANKS_MAX, ANY_SIZE, NULL, TTI_IN_RANK_ORDER, 0, tti_blocks_two_level,   \
      tti_amounts_level_blocks }

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmissing-field-initializers" /* most rows end before level */
static const tti_algorithm table[] = {
    { TUTTI_CALL_BARRIER, "lines", tti_one_phase_barrier, NULL, TTI_HOST_RANKS_MAX, ANY_SIZE,
      tti_amounts_meet, TTI_IN_RANK_ORDER, 0 },
    { TUTTI_CALL_BARRIER, "flags", tti_staged_barrier, NULL, TTI_HOST_RANKS_MAX, ANY_SIZE,
      tti_amounts_meet, TTI_IN_RANK_ORDER, 0 },
    { TUTTI_CALL_BARRIER, "dissemination", NULL, tti_plan_barrier_dissemination, ANY_RANKS, ANY_SIZE,
      tti_amounts_net_dissemination, TTI_IN_RANK_ORDER, 0 },
    { TUTTI_CALL_BARRIER, "flat", NULL, tti_plan_barrier_flat, ANY_RANKS, ANY_SIZE,
      tti_amounts_net_tokens, TTI_IN_RANK_ORDER, PEERS_BEST },
    IN_LEVELS(TUTTI_CALL_BARRIER, "leaders", ANY_SIZE, tti_amounts_level_barrier, TTI_IN_RANK_ORDER, tti_leaders),

    ON_REGISTERED(TUTTI_CALL_ALL_REDUCE),
    { TUTTI_CALL_ALL_REDUCE, "lines", tti_one_phase_all_reduce, NULL, TTI_HOST_RANKS_MAX, TTI_LINES_BYTES,
      tti_amounts_all_one_phase, TTI_IN_RANK_ORDER, 0 },
    { TUTTI_CALL_ALL_REDUCE, "one_phase", tti_staged_all_reduce_one_phase, NULL, TTI_HOST_RANKS_MAX,
      ONLY_ASKED, tti_amounts_all_one_phase, TTI_IN_RANK_ORDER, 0 },
    { TUTTI_CALL_ALL_REDUCE, "sliced", tti_staged_all_reduce_sliced, NULL, TTI_HOST_RANKS_MAX, ANY_SIZE,
      tti_amounts_all_sliced, TTI_IN_RANK_ORDER, 0 },
    { TUTTI_CALL_ALL_REDUCE, "pull", tti_pulled_all_reduce, NULL, TTI_HOST_RANKS_MAX, PULL_ALL_MOST,
      tti_amounts_all_pulled, TTI_IN_RANK_ORDER, 0 },
    { TUTTI_CALL_ALL_REDUCE, "swap", NULL, tti_plan_all_reduce_one_shot, 2, SWAP_MOST,
      tti_amounts_net_all_to_all_one, TTI_IN_RANK_ORDER, 0 },
    { TUTTI_CALL_ALL_REDUCE, "one_shot", NULL, tti_plan_all_reduce_one_shot, ANY_RANKS, 64 * KIB,
      tti_amounts_net_all_to_all_one, TTI_IN_RANK_ORDER, PEERS_BEST },
    { TUTTI_CALL_ALL_REDUCE, "one_shot_tree", NULL, tti_plan_all_reduce_one_shot_tree, ANY_RANKS, 64 * KIB,
      tti_amounts_net_all_to_all_tree, TTI_IN_TREE_ORDER, PEERS_BEST },
    { TUTTI_CALL_ALL_REDUCE, "bruck", NULL, tti_plan_all_reduce_bruck, ANY_RANKS, 64 * KIB,
      tti_amounts_net_all_by_others, TTI_IN_RANK_ORDER, PEERS_BEST },
    { TUTTI_CALL_ALL_REDUCE, "direct", NULL, tti_plan_all_reduce_direct, ANY_RANKS, ANY_SIZE,
      tti_amounts_net_slices, TTI_IN_RANK_ORDER, PEERS_BEST },
    { TUTTI_CALL_ALL_REDUCE, "direct_tree", NULL, tti_plan_all_reduce_direct_tree, ANY_RANKS, ANY_SIZE,
      tti_amounts_net_slices_tree, TTI_IN_TREE_ORDER, PEERS_BEST },
    { TUTTI_CALL_ALL_REDUCE, "doubling", NULL, tti_plan_all_reduce_doubling, ANY_RANKS, ANY_SIZE,
      tti_amounts_net_doubling, TTI_IN_TREE_ORDER, 0 },
    { TUTTI_CALL_ALL_REDUCE, "halving", NULL, tti_plan_all_reduce_halving, ANY_RANKS, ANY_SIZE,
      tti_amounts_net_halving, TTI_IN_TREE_ORDER, 0 },
    { TUTTI_CALL_ALL_REDUCE, "ring", NULL, tti_plan_all_reduce_ring, ANY_RANKS, ANY_SIZE,
      tti_amounts_net_ring, TTI_IN_RING_ORDER, 0 },
    IN_LEVELS(TUTTI_CALL_ALL_REDUCE, "leaders", LEADERS_MOST, tti_amounts_leaders, TTI_IN_HOST_ORDER, tti_leaders),
    IN_LEVELS(TUTTI_CALL_ALL_REDUCE, "two_level", ANY_SIZE, tti_amounts_level_all_reduce, TTI_IN_HOST_ORDER, tti_two_level),

    ON_REGISTERED(TUTTI_CALL_REDUCE),
    { TUTTI_CALL_REDUCE, "lines", tti_one_phase_reduce, NULL, TTI_HOST_RANKS_MAX, LINES_ONE_WAY,
      tti_amounts_root_one_phase, TTI_IN_RANK_ORDER, 0 },
    { TUTTI_CALL_REDUCE, "one_phase", tti_staged_reduce_one_phase, NULL, TTI_HOST_RANKS_MAX, 128 * KIB,
      tti_amounts_root_one_phase, TTI_IN_RANK_ORDER, 0 },
    { TUTTI_CALL_REDUCE, "sliced", tti_staged_reduce_sliced, NULL, TTI_HOST_RANKS_MAX, ANY_SIZE,
      tti_amounts_root_sliced, TTI_IN_RANK_ORDER, 0 },
    { TUTTI_CALL_REDUCE, "to_root", NULL, tti_plan_reduce_to_root, ANY_RANKS, ANY_SIZE,
      tti_amounts_net_to_root, TTI_IN_RANK_ORDER, PEERS_BEST },
    { TUTTI_CALL_REDUCE, "direct", NULL, tti_plan_reduce_direct, ANY_RANKS, ANY_SIZE,
      tti_amounts_net_slices_to_root, TTI_IN_RANK_ORDER, PEERS_BEST },
    { TUTTI_CALL_REDUCE, "direct_tree", NULL, tti_plan_reduce_direct_tree, ANY_RANKS, ANY_SIZE,
      tti_amounts_net_slices_to_root_tree, TTI_IN_TREE_ORDER, PEERS_BEST },
    { TUTTI_CALL_REDUCE, "binomial", NULL, tti_plan_reduce_binomial, ANY_RANKS, ANY_SIZE,
      tti_amounts_net_climb, TTI_IN_TREE_ORDER, 0 },
    { TUTTI_CALL_REDUCE, "knomial4", NULL, tti_plan_reduce_knomial4, ANY_RANKS, ANY_SIZE,
      tti_amounts_net_climb4, TTI_IN_TREE_ORDER, 0 },
    { TUTTI_CALL_REDUCE, "chain", NULL, tti_plan_reduce_chain, ANY_RANKS, ANY_SIZE,
      tti_amounts_net_chain_up, TTI_IN_RING_ORDER, 0 },
    IN_LEVELS(TUTTI_CALL_REDUCE, "leaders", LEADERS_MOST, tti_amounts_leaders, TTI_IN_HOST_ORDER, tti_leaders),
    IN_LEVELS(TUTTI_CALL_REDUCE, "two_level", ANY_SIZE, tti_amounts_level_rooted, TTI_IN_HOST_ORDER, tti_two_level),

    ON_REGISTERED(TUTTI_CALL_BROADCAST),
    { TUTTI_CALL_BROADCAST, "lines", tti_one_phase_broadcast, NULL, TTI_HOST_RANKS_MAX, LINES_ONE_WAY,
      tti_amounts_one_to_all, TTI_IN_RANK_ORDER, 0 },
    { TUTTI_CALL_BROADCAST, "staged", tti_staged_broadcast, NULL, TTI_HOST_RANKS_MAX, ANY_SIZE,
      tti_amounts_one_in_pieces, TTI_IN_RANK_ORDER, 0 },
    { TUTTI_CALL_BROADCAST, "pull", tti_pulled_broadcast, NULL, TTI_HOST_RANKS_MAX, ONLY_ASKED,
      tti_amounts_one_pulled, TTI_IN_RANK_ORDER, 0 },
    { TUTTI_CALL_BROADCAST, "flat", NULL, tti_plan_broadcast_flat, ANY_RANKS, ANY_SIZE,
      tti_amounts_net_from_root, TTI_IN_RANK_ORDER, PEERS_BEST },
    { TUTTI_CALL_BROADCAST, "binomial", NULL, tti_plan_broadcast_binomial, ANY_RANKS, ANY_SIZE,
      tti_amounts_net_tree, TTI_IN_RANK_ORDER, 0 },
    { TUTTI_CALL_BROADCAST, "knomial4", NULL, tti_plan_broadcast_knomial4, ANY_RANKS, ANY_SIZE,
      tti_amounts_net_tree4, TTI_IN_RANK_ORDER, 0 },
    { TUTTI_CALL_BROADCAST, "sliced", NULL, tti_plan_broadcast_sliced, ANY_RANKS, ANY_SIZE,
      tti_amounts_net_slices_from_root, TTI_IN_RANK_ORDER, PEERS_BEST },
    { TUTTI_CALL_BROADCAST, "chain", NULL, tti_plan_broadcast_chain, ANY_RANKS, ANY_SIZE,
      tti_amounts_net_chain, TTI_IN_RANK_ORDER, 0 },
    IN_LEVELS(TUTTI_CALL_BROADCAST, "leaders", LEADERS_MOST, tti_amounts_leaders, TTI_IN_RANK_ORDER, tti_leaders),
    IN_LEVELS(TUTTI_CALL_BROADCAST, "two_level", ANY_SIZE, tti_amounts_level_rooted, TTI_IN_RANK_ORDER, tti_two_level),

    ON_REGISTERED(TUTTI_CALL_ALL_GATHER),
    { TUTTI_CALL_ALL_GATHER, "lines", tti_one_phase_all_gather, NULL, TTI_HOST_RANKS_MAX,
      TTI_LINES_BYTES, tti_amounts_all_parts, TTI_IN_RANK_ORDER, 0 },
    { TUTTI_CALL_ALL_GATHER, "staged", tti_staged_all_gather, NULL, TTI_HOST_RANKS_MAX, ANY_SIZE,
      tti_amounts_all_parts, TTI_IN_RANK_ORDER, 0 },
    { TUTTI_CALL_ALL_GATHER, "pull", tti_pulled_all_gather, NULL, TTI_HOST_RANKS_MAX, ANY_SIZE,
      tti_amounts_parts_pulled, TTI_IN_RANK_ORDER, 0 },
    { TUTTI_CALL_ALL_GATHER, "direct", NULL, tti_plan_all_gather_direct, ANY_RANKS, ANY_SIZE,
      tti_amounts_net_parts, TTI_IN_RANK_ORDER, PEERS_BEST },
    { TUTTI_CALL_ALL_GATHER, "ring", NULL, tti_plan_all_gather_ring, ANY_RANKS, ANY_SIZE,
      tti_amounts_net_parts_ring, TTI_IN_RANK_ORDER, 0 },
    { TUTTI_CALL_ALL_GATHER, "bruck", NULL, tti_plan_all_gather_bruck, ANY_RANKS, ANY_SIZE,
      tti_amounts_net_bruck, TTI_IN_RANK_ORDER, 0 },
    IN_LEVELS(TUTTI_CALL_ALL_GATHER, "leaders", LEADERS_MOST / 8, tti_amounts_leaders, TTI_IN_RANK_ORDER, tti_leaders),
    IN_LEVELS(TUTTI_CALL_ALL_GATHER, "two_level", ANY_SIZE, tti_amounts_level_all_gather, TTI_IN_RANK_ORDER, tti_two_level),

    ON_REGISTERED(TUTTI_CALL_GATHER),
    { TUTTI_CALL_GATHER, "lines", tti_one_phase_gather, NULL, TTI_HOST_RANKS_MAX, TTI_LINES_BYTES,
      tti_amounts_root_parts, TTI_IN_RANK_ORDER, 0 },
    { TUTTI_CALL_GATHER, "staged", tti_staged_gather, NULL, TTI_HOST_RANKS_MAX, ANY_SIZE,
      tti_amounts_root_parts, TTI_IN_RANK_ORDER, 0 },
    { TUTTI_CALL_GATHER, "pull", tti_pulled_gather, NULL, TTI_HOST_RANKS_MAX, ANY_SIZE,
      tti_amounts_parts_pulled, TTI_IN_RANK_ORDER, 0 },
    { TUTTI_CALL_GATHER, "direct", NULL, tti_plan_gather_direct, ANY_RANKS, ANY_SIZE,
      tti_amounts_net_parts_to_root, TTI_IN_RANK_ORDER, PEERS_BEST },
    { TUTTI_CALL_GATHER, "binomial", NULL, tti_plan_gather_binomial, ANY_RANKS, ANY_SIZE,
      tti_amounts_net_subtrees, TTI_IN_RANK_ORDER, 0 },
    IN_LEVELS(TUTTI_CALL_GATHER, "leaders", LEADERS_MOST / 8, tti_amounts_leaders_gather, TTI_IN_RANK_ORDER, tti_leaders),
    IN_LEVELS(TUTTI_CALL_GATHER, "two_level", ONLY_ASKED, tti_amounts_level_gather, TTI_IN_RANK_ORDER, tti_two_level),

    ON_REGISTERED(TUTTI_CALL_SCATTER),
    { TUTTI_CALL_SCATTER, "lines", tti_one_phase_scatter, NULL, TTI_HOST_RANKS_MAX, TTI_LINES_BYTES / 2,
      tti_amounts_root_parts, TTI_IN_RANK_ORDER, 0 },
    { TUTTI_CALL_SCATTER, "staged", tti_staged_scatter, NULL, TTI_HOST_RANKS_MAX, ANY_SIZE,
      tti_amounts_root_parts, TTI_IN_RANK_ORDER, 0 },
    { TUTTI_CALL_SCATTER, "pull", tti_pulled_scatter, NULL, TTI_HOST_RANKS_MAX, ANY_SIZE,
      tti_amounts_one_pulled, TTI_IN_RANK_ORDER, 0 },
    { TUTTI_CALL_SCATTER, "direct", NULL, tti_plan_scatter_direct, ANY_RANKS, ANY_SIZE,
      tti_amounts_net_root_parts, TTI_IN_RANK_ORDER, PEERS_BEST },
    { TUTTI_CALL_SCATTER, "binomial", NULL, tti_plan_scatter_binomial, ANY_RANKS, ANY_SIZE,
      tti_amounts_net_subtrees, TTI_IN_RANK_ORDER, 0 },
    IN_LEVELS(TUTTI_CALL_SCATTER, "leaders", LEADERS_MOST / 8, tti_amounts_leaders_scatter, TTI_IN_RANK_ORDER, tti_leaders),
    IN_LEVELS(TUTTI_CALL_SCATTER, "two_level", ONLY_ASKED, tti_amounts_level_scatter, TTI_IN_RANK_ORDER, tti_two_level),

    ON_REGISTERED(TUTTI_CALL_REDUCE_SCATTER),
    { TUTTI_CALL_REDUCE_SCATTER, "lines", tti_one_phase_reduce_scatter, NULL, TTI_HOST_RANKS_MAX,
      TTI_LINES_BYTES / 2, tti_amounts_own_slices, TTI_IN_RANK_ORDER, 0 },
    { TUTTI_CALL_REDUCE_SCATTER, "staged", tti_staged_reduce_scatter, NULL, TTI_HOST_RANKS_MAX, ANY_SIZE,
      tti_amounts_own_slices, TTI_IN_RANK_ORDER, 0 },
    { TUTTI_CALL_REDUCE_SCATTER, "pull", tti_pulled_reduce_scatter, NULL, TTI_HOST_RANKS_MAX, ANY_SIZE,
      tti_amounts_own_pulled, TTI_IN_RANK_ORDER, 0 },
    { TUTTI_CALL_REDUCE_SCATTER, "direct", NULL, tti_plan_reduce_scatter_direct, ANY_RANKS, ANY_SIZE,
      tti_amounts_net_own_slices, TTI_IN_RANK_ORDER, PEERS_BEST },
    { TUTTI_CALL_REDUCE_SCATTER, "direct_tree", NULL, tti_plan_reduce_scatter_direct_tree, ANY_RANKS, ANY_SIZE,
      tti_amounts_net_own_slices_tree, TTI_IN_TREE_ORDER, PEERS_BEST },
    { TUTTI_CALL_REDUCE_SCATTER, "bruck", NULL, tti_plan_reduce_scatter_bruck, ANY_RANKS, ON_THE_WAY_MOST,
      tti_amounts_net_own_bruck, TTI_IN_RANK_ORDER, 0 },
    { TUTTI_CALL_REDUCE_SCATTER, "halving", NULL, tti_plan_reduce_scatter_halving, ANY_RANKS, ANY_SIZE,
      tti_amounts_net_halving_parts, TTI_IN_TREE_ORDER, 0 },
    { TUTTI_CALL_REDUCE_SCATTER, "ring", NULL, tti_plan_reduce_scatter_ring, ANY_RANKS, ANY_SIZE,
      tti_amounts_net_ring_parts, TTI_IN_RING_ORDER, 0 },
    IN_LEVELS(TUTTI_CALL_REDUCE_SCATTER, "leaders", LEADERS_MOST / 8, tti_amounts_leaders, TTI_IN_HOST_ORDER, tti_leaders),
    IN_LEVELS(TUTTI_CALL_REDUCE_SCATTER, "two_level", ANY_SIZE, tti_amounts_level_reduce_scatter, TTI_IN_HOST_ORDER, tti_two_level),

    ON_REGISTERED(TUTTI_CALL_ALL_TO_ALL),
    { TUTTI_CALL_ALL_TO_ALL, "lines", tti_one_phase_all_to_all, NULL, TTI_HOST_RANKS_MAX, ANY_SIZE,
      tti_amounts_blocks, TTI_IN_RANK_ORDER, 0 },
    { TUTTI_CALL_ALL_TO_ALL, "pull", tti_pulled_all_to_all, NULL, TTI_HOST_RANKS_MAX, ANY_SIZE,
      tti_amounts_blocks, TTI_IN_RANK_ORDER, 0 },
    { TUTTI_CALL_ALL_TO_ALL, "staged", tti_staged_all_to_all, NULL, TTI_HOST_RANKS_MAX, ANY_SIZE,
      tti_amounts_blocks, TTI_IN_RANK_ORDER, 0 },
    { TUTTI_CALL_ALL_TO_ALL, "direct", NULL, tti_plan_all_to_all_direct, ANY_RANKS, ANY_SIZE,
      tti_amounts_net_blocks, TTI_IN_RANK_ORDER, 0 },
    { TUTTI_CALL_ALL_TO_ALL, "bruck", NULL, tti_plan_all_to_all_bruck, ANY_RANKS, ANY_SIZE,
      tti_amounts_net_journeys, TTI_IN_RANK_ORDER, 0 },
    BLOCKS_IN_LEVELS(TUTTI_CALL_ALL_TO_ALL),

    ON_REGISTERED(TUTTI_CALL_GATHER_V),
    { TUTTI_CALL_GATHER_V, "lines", tti_one_phase_all_to_all, NULL, TTI_HOST_RANKS_MAX, ANY_SIZE,
      tti_amounts_blocks, TTI_IN_RANK_ORDER, 0 },
    { TUTTI_CALL_GATHER_V, "pull", tti_pulled_all_to_all, NULL, TTI_HOST_RANKS_MAX, ANY_SIZE,
      tti_amounts_blocks, TTI_IN_RANK_ORDER, 0 },
    { TUTTI_CALL_GATHER_V, "staged", tti_staged_all_to_all, NULL, TTI_HOST_RANKS_MAX, ANY_SIZE,
      tti_amounts_blocks, TTI_IN_RANK_ORDER, 0 },
    { TUTTI_CALL_GATHER_V, "direct", NULL, tti_plan_all_to_all_direct, ANY_RANKS, ANY_SIZE,
      tti_amounts_net_blocks, TTI_IN_RANK_ORDER, 0 },
    BLOCKS_IN_LEVELS(TUTTI_CALL_GATHER_V),

    ON_REGISTERED(TUTTI_CALL_SCATTER_V),
    { TUTTI_CALL_SCATTER_V, "lines", tti_one_phase_all_to_all, NULL, TTI_HOST_RANKS_MAX, ANY_SIZE,
      tti_amounts_blocks, TTI_IN_RANK_ORDER, 0 },
    { TUTTI_CALL_SCATTER_V, "pull", tti_pulled_all_to_all, NULL, TTI_HOST_RANKS_MAX, ANY_SIZE,
      tti_amounts_blocks, TTI_IN_RANK_ORDER, 0 },
    { TUTTI_CALL_SCATTER_V, "staged", tti_staged_all_to_all, NULL, TTI_HOST_RANKS_MAX, ANY_SIZE,
      tti_amounts_blocks, TTI_IN_RANK_ORDER, 0 },
    { TUTTI_CALL_SCATTER_V, "direct", NULL, tti_plan_all_to_all_direct, ANY_RANKS, ANY_SIZE,
      tti_amounts_net_blocks, TTI_IN_RANK_ORDER, 0 },
    BLOCKS_IN_LEVELS(TUTTI_CALL_SCATTER_V),
};
#pragma GCC diagnostic pop
enum { ROWS = sizeof table / sizeof table[0] };
_Static_assert((int)ROWS < (int)TTI_ROW_NONE, "a row fits into a byte of tti_decision");

const tti_algorithm *tti_algorithms(int *n_out)
{
    *n_out = ROWS;
    return table;
}

static bool combines(tutti_call_kind kind)
{
    return kind == TUTTI_CALL_ALL_REDUCE || kind == TUTTI_CALL_REDUCE || kind == TUTTI_CALL_REDUCE_SCATTER;
}

tti_numbers tti_numbers_of(tutti_dtype dtype)
{
    switch (dtype) {
    case TUTTI_BOOL:
    case TUTTI_U8:
    case TUTTI_I8:
    case TUTTI_U16:
    case TUTTI_I16:
    case TUTTI_U32:
    case TUTTI_I32:
    case TUTTI_U64:
    case TUTTI_I64: return TTI_EXACT;
    default: return TTI_ROUNDED;
    }
}

/* Not of kind and size: so reduce and reduce_scatter have the bits of all_reduce. */
tti_order tti_order_of(tutti_call_kind kind, int64_t bytes, bool one_host, int n_ranks)
{
    (void)bytes;
    if (!combines(kind) || n_ranks <= TTI_RANK_ORDER_RANKS || (one_host && n_ranks <= TTI_HOST_RANKS_MAX))
        return TTI_IN_RANK_ORDER;
    return TTI_IN_TREE_ORDER;
}

tti_order tti_order_in_levels(tutti_call_kind kind)
{
    return combines(kind) ? TTI_IN_HOST_ORDER : TTI_IN_RANK_ORDER;
}

/* f32 and bf16 have room for sums of all the ranks there are, but at the very end of what they hold. */
bool tti_needs_one_go(const tutti_call *call)
{
    return combines(call->kind) && call->op.kind == TUTTI_OP_AVG &&
           (call->dtype == TUTTI_F16 || call->dtype == TUTTI_F8E4M3FN || call->dtype == TUTTI_F8E5M2);
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

/* Of what a rank sends, as much as goes to other hosts takes turns with that of the other ranks of its host; but all that goes
 * to a root, or comes from it, passes its host's link by itself. */
static double on_one_link(const tti_question *q, const tti_amounts *amounts, double sent)
{
    const double local = q->levels->most, ranks = q->n_ranks, sharers = amounts->rooted > 0 ? 1 : local;

    return sent * sharers * (ranks - local) / (ranks - 1);
}

/* Of the messages to a root, or from it, those of its own host go through memory: the others are what it takes. Counted so
 * for parts, where it was measured. */
static double across_hosts(const tti_question *q, const tti_algorithm *row, double posts)
{
    const bool   is_of_parts = row->kind == TUTTI_CALL_GATHER || row->kind == TUTTI_CALL_SCATTER;
    const double ranks = q->n_ranks;

    return is_of_parts ? posts * (ranks - q->levels->most) / (ranks - 1) : posts;
}

tti_question tti_question_across(const tti_question *whole, const tti_level_figures *levels, tti_machine *machine)
{
    tti_question across = *whole;

    *machine = *whole->machine;
    machine->wire *= levels->carriers;
    machine->wire_at_once *= levels->carriers;
    machine->at_once /= levels->carriers;
    across.machine = machine;
    across.n_ranks = levels->hosts;
    across.levels = NULL;
    return across;
}

/* What is asked for: rows of one kind and one order, for so many bytes. */
typedef struct cell {
    tutti_call_kind kind;
    int64_t         bytes;
    tti_numbers     numbers;
    tti_order       order; /* of rounded numbers */
} cell;

static bool keeps_order(const cell *c, tti_order order)
{
    return c->numbers == TTI_EXACT || order == c->order;
}

/* Parts that share what may be on the way from their root (turns.h) wait for it to come back to its core. In pieces, which carriers
 * take, they are so short that they do not: between hosts at 10 Gb/s that was quicker, or as quick, at 1 Gb/s as quick, where
 * hosts are one machine; elsewhere it was not measured. Costs do not know of it. */
static bool goes_in_pieces(const tti_question *q, const tti_algorithm *row, const cell *c)
{
    return row->kind == TUTTI_CALL_SCATTER && row->level == tti_two_level && q->levels != NULL && q->machine->crowd > 0 &&
           tti_beside(q->n_ranks, c->bytes < PART_MOST ? c->bytes : PART_MOST, 1) > 0;
}

static bool is_candidate(const tti_question *q, const tti_algorithm *row, const cell *c)
{
    return !tti_is_fused(row) && row->kind == c->kind && keeps_order(c, row->order) &&
           (c->bytes <= row->bytes_best || goes_in_pieces(q, row, c)) &&
           can_serve(row, q->one_host, q->n_ranks) && has_levels_for(q, row);
}

static bool has_few_peers(const tti_question *q, const tti_algorithm *row)
{
    return row->ranks_best == 0 || q->n_ranks <= row->ranks_best;
}

/* Whatever they cost: a scatter in pieces before one in parts; what goes through memory before what goes by messages; and with very
 * many ranks, who has to do with a few of them before who has to do with all. */
static bool comes_first(const tti_question *q, const cell *c, const tti_algorithm *row, const tti_algorithm *than)
{
    const bool in_pieces = goes_in_pieces(q, row, c);

    if (in_pieces || goes_in_pieces(q, than, c))
        return in_pieces;
    if (row->staged != NULL || than->staged != NULL)
        return than->staged == NULL;
    return has_few_peers(q, row) && !has_few_peers(q, than);
}

/* Chunks that a call of a row takes: elements are bytes here, which is within one line of any other type. */
static double chunks_of(const tti_question *q, const tti_algorithm *row, int64_t bytes)
{
    const tutti_call call = { .kind = row->kind, .dtype = TUTTI_U8, .root = -1, .count = bytes };

    return row->plan == NULL || bytes == INT64_MAX ? 1 : tti_cut_of(row->plan, &call, q->n_ranks, q->wire).n_chunks;
}

static bool has_root(tutti_call_kind kind)
{
    return kind == TUTTI_CALL_BROADCAST || kind == TUTTI_CALL_REDUCE || kind == TUTTI_CALL_GATHER || kind == TUTTI_CALL_SCATTER ||
           kind == TUTTI_CALL_GATHER_V || kind == TUTTI_CALL_SCATTER_V;
}

/* In two levels it is the members of a host who wait for each other, and share slots. */
double tti_believed_cost(const tti_question *q, const tti_algorithm *row, int64_t most)
{
    const double bytes = most == INT64_MAX ? 0x1p50 : (double)most;
    tti_amounts  amounts = row->level != NULL ? row->level_amounts(q->levels, bytes) : row->amounts(q->n_ranks, bytes);

    amounts.chunks = chunks_of(q, row, most);
    amounts.has_root = has_root(row->kind) ? 1 : 0;
    if (q->levels != NULL && row->level == NULL) {
        amounts.sent = on_one_link(q, &amounts, amounts.sent);
        amounts.link = on_one_link(q, &amounts, amounts.link);
        amounts.carried = amounts.from_all = 0; /* what goes through memory is none of it, and of levels it is not known either */
        amounts.posts = across_hosts(q, row, amounts.posts);
        amounts.posts_all = across_hosts(q, row, amounts.posts_all);
    }
    return tti_cost(&amounts, q->machine, q->turns, row->level != NULL ? q->levels->most : q->n_ranks, bytes);
}

static int cheapest(const tti_question *q, const tti_algorithm *rows, int n_rows, const cell *c)
{
    double least = 0;
    int    best = TTI_ROW_NONE, i;

    for (i = 0; i < n_rows; i++) {
        double cost;

        if (!is_candidate(q, &rows[i], c) || (best != TTI_ROW_NONE && comes_first(q, c, &rows[best], &rows[i])))
            continue;
        cost = tti_believed_cost(q, &rows[i], c->bytes);
        if (best == TTI_ROW_NONE || cost < least || comes_first(q, c, &rows[i], &rows[best])) {
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
            keeps_order(c, algorithm->order))
            return row->row;
    }
    return TTI_ROW_NONE;
}

static int answer(const tti_question *q, const tti_algorithm *rows, int n_rows, const cell *c)
{
    const int wanted = q->wishes->rows[c->kind];
    int       row;

    if (wanted >= 0 && !tti_is_fused(&rows[wanted]) && can_serve(&rows[wanted], q->one_host, q->n_ranks) &&
        has_levels_for(q, &rows[wanted]) && (!q->reproducible || keeps_order(c, rows[wanted].order)))
        return wanted;
    row = tuned(q, rows, c);
    return row != TTI_ROW_NONE ? row : cheapest(q, rows, n_rows, c);
}

static uint8_t answer_for(const tti_question *q, const tti_algorithm *rows, int n_rows, tutti_call_kind kind, int size,
                          tti_numbers numbers)
{
    cell c = { .kind = kind, .bytes = tti_size_class_most(size), .numbers = numbers };

    c.order = q->reproducible     ? TTI_IN_RANK_ORDER
              : q->levels != NULL ? tti_order_in_levels(kind)
                                  : tti_order_of(kind, c.bytes, q->one_host, q->n_ranks);
    return (uint8_t)answer(q, rows, n_rows, &c);
}

/* By messages, where nobody asked for an algorithm: whoever has the longest part sends it to each, P - 1 times. Around the circle it
 * does so once. */
static uint8_t around_instead(const tti_question *q, const tti_algorithm *rows, int n_rows, int size, uint8_t usual)
{
    const cell c = { .kind = TUTTI_CALL_ALL_GATHER, .bytes = tti_size_class_most(size) };
    int        i;

    if (usual == TTI_ROW_NONE || rows[usual].plan == NULL || q->wishes->rows[c.kind] >= 0 || tuned(q, rows, &c) != TTI_ROW_NONE)
        return TTI_ROW_NONE;
    for (i = 0; i < n_rows; i++)
        if (rows[i].plan == tti_plan_all_gather_ring)
            return (uint8_t)i;
    return TTI_ROW_NONE;
}

void tti_decide(const tti_question *q, const tti_algorithm *rows, int n_rows, tti_decision *decision_out)
{
    uint8_t *const gathers = decision_out->rows[TUTTI_CALL_ALL_GATHER];
    int            kind, size;

    memset(decision_out, TTI_ROW_NONE, sizeof *decision_out);
    for (kind = 1; kind < TUTTI_CALL_KIND_COUNT; kind++)
        for (size = 0; size < TTI_SIZE_CLASSES; size++) {
            uint8_t *exact = &decision_out->exact_rows[kind][size];
            uint8_t *rounded = &decision_out->rows[kind][size];

            *rounded = answer_for(q, rows, n_rows, (tutti_call_kind)kind, size, TTI_ROUNDED);
            *exact = combines((tutti_call_kind)kind)
                         ? answer_for(q, rows, n_rows, (tutti_call_kind)kind, size, TTI_EXACT)
                         : *rounded;
        }
    decision_out->lopsided_least = (int64_t)(PASS_ON_NS / (q->machine->wire > WIRE_LEAST ? q->machine->wire : WIRE_LEAST));
    for (size = 0; size < TTI_SIZE_CLASSES; size++)
        decision_out->lopsided[size] = around_instead(q, rows, n_rows, size, gathers[size]);
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

/* Whether the rank with the longest part would send so much more than goes around the circle that it is worth the way there:
 * by which every rank sends all parts but its right neighbour's. */
static bool is_lopsided(const tti_decision *decision, const tutti_call *call)
{
    const int64_t element = (int64_t)tti_dtype_bytes(call->dtype);
    int64_t       longest = 0, shortest = INT64_MAX, direct, around;
    int           r;

    if (call->kind != TUTTI_CALL_ALL_GATHER || call->list_counts == NULL)
        return false;
    for (r = 0; r < call->n_parts; r++) {
        longest = call->list_counts[r] > longest ? call->list_counts[r] : longest;
        shortest = call->list_counts[r] < shortest ? call->list_counts[r] : shortest;
    }
    direct = longest * element * (call->n_parts - 1);
    around = (call->count - shortest) * element;
    return direct - around > decision->lopsided_least * (call->n_parts - 2) && direct - around > around / LOPSIDED_SHARE;
}

static const tti_algorithm *choose(const tti_decision *decision, bool exact, const tutti_call *call)
{
    const int     size = tti_size_class(call->count * (int64_t)tti_dtype_bytes(call->dtype));
    const uint8_t around = is_lopsided(decision, call) ? decision->lopsided[size] : TTI_ROW_NONE;

    return &table[around != TTI_ROW_NONE ? around : (exact ? decision->exact_rows : decision->rows)[call->kind][size]];
}

const tti_algorithm *tti_choose_for(const tti_decision *decision, const tutti_call *call)
{
    return choose(decision, tti_numbers_of(call->dtype) == TTI_EXACT, call);
}

tti_plan *tti_choose_across(const tti_decision *decision, const tutti_call *across)
{
    return choose(decision, false, across)->plan;
}
