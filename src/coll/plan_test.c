/* SPDX-License-Identifier: BSD-3-Clause
 *
 * plan_test.c
 * Goal    every plan moves and combines what its kind says, for any number of ranks, root and
 *         count, in the order that it is said to; and does as much as its amounts say.
 * Method  All ranks in one process: messages are queued by (sender, receiver), phase after phase,
 *         and the results compared bit by bit with plain loops that add in rank order, around the circle or
 *         along the tree. Sums and averages are of floats whose sum depends on the order. On the way it is checked that all
 *         ranks have as many phases, that every message sent in a phase is received in it with as many
 *         bytes, or no more where only the sender knows, that no message lands on memory that is sent in the same phase, and that only memory of
 *         the rank is touched. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "coll/choose.h"
#include "coll/net/plan.h"
#include "coll/pattern.h"

enum { RANKS_MAX = 64, FEW_RANKS = 16, COUNT_MAX = 1023 };
#ifdef __SANITIZE_THREAD__ /* one thread: every number of ranks is for the others, whose minute would be an hour here */
enum { RANKS_STEP = 7 };
#else
enum { RANKS_STEP = 1 };
#endif

typedef enum kind {
    ALL_REDUCE,
    REDUCE,
    BROADCAST,
    ALL_GATHER,
    GATHER,
    SCATTER,
    REDUCE_SCATTER,
    ALL_TO_ALL,
    GATHER_V,
    SCATTER_V,
    BARRIER
} kind;

typedef struct plan_case {
    const char *name;
    tti_plan   *plan;
    kind        kind;
    bool        has_root;
    bool        in_place; /* in and out are one buffer; own entries, where lists are both */
    bool        uneven;   /* parts of different sizes */
    tti_order   order;
} plan_case;

#define RANK TTI_IN_RANK_ORDER
#define RING TTI_IN_RING_ORDER
#define TREE TTI_IN_TREE_ORDER

static const plan_case plans[] = {
    { "all_reduce one_shot", tti_plan_all_reduce_one_shot, ALL_REDUCE, false, true, false, RANK },
    { "all_reduce one_shot_tree", tti_plan_all_reduce_one_shot_tree, ALL_REDUCE, false, true, false, TREE },
    { "all_reduce bruck", tti_plan_all_reduce_bruck, ALL_REDUCE, false, true, false, RANK },
    { "all_reduce bruck out of place", tti_plan_all_reduce_bruck, ALL_REDUCE, false, false, false, RANK },
    { "all_reduce direct", tti_plan_all_reduce_direct, ALL_REDUCE, false, true, false, RANK },
    { "all_reduce direct out of place", tti_plan_all_reduce_direct, ALL_REDUCE, false, false, false, RANK },
    { "all_reduce direct_tree", tti_plan_all_reduce_direct_tree, ALL_REDUCE, false, true, false, TREE },
    { "all_reduce doubling", tti_plan_all_reduce_doubling, ALL_REDUCE, false, true, false, TREE },
    { "all_reduce doubling out of place", tti_plan_all_reduce_doubling, ALL_REDUCE, false, false, false, TREE },
    { "all_reduce halving", tti_plan_all_reduce_halving, ALL_REDUCE, false, true, false, TREE },
    { "all_reduce halving out of place", tti_plan_all_reduce_halving, ALL_REDUCE, false, false, false, TREE },
    { "all_reduce ring", tti_plan_all_reduce_ring, ALL_REDUCE, false, true, false, RING },
    { "all_reduce ring out of place", tti_plan_all_reduce_ring, ALL_REDUCE, false, false, false, RING },
    { "reduce to_root", tti_plan_reduce_to_root, REDUCE, true, true, false, RANK },
    { "reduce direct", tti_plan_reduce_direct, REDUCE, true, true, false, RANK },
    { "reduce direct_tree", tti_plan_reduce_direct_tree, REDUCE, true, true, false, TREE },
    { "reduce binomial", tti_plan_reduce_binomial, REDUCE, true, true, false, TREE },
    { "reduce binomial out of place", tti_plan_reduce_binomial, REDUCE, true, false, false, TREE },
    { "reduce knomial4", tti_plan_reduce_knomial4, REDUCE, true, true, false, TREE },
    { "reduce chain", tti_plan_reduce_chain, REDUCE, true, true, false, RING },
    { "broadcast binomial", tti_plan_broadcast_binomial, BROADCAST, true, true, false, RANK },
    { "broadcast knomial4", tti_plan_broadcast_knomial4, BROADCAST, true, true, false, RANK },
    { "broadcast flat", tti_plan_broadcast_flat, BROADCAST, true, true, false, RANK },
    { "broadcast sliced", tti_plan_broadcast_sliced, BROADCAST, true, true, false, RANK },
    { "broadcast chain", tti_plan_broadcast_chain, BROADCAST, true, true, false, RANK },
    { "all_gather direct", tti_plan_all_gather_direct, ALL_GATHER, false, false, false, RANK },
    { "all_gather direct uneven", tti_plan_all_gather_direct, ALL_GATHER, false, false, true, RANK },
    { "all_gather ring", tti_plan_all_gather_ring, ALL_GATHER, false, false, false, RANK },
    { "all_gather ring in place", tti_plan_all_gather_ring, ALL_GATHER, false, true, false, RANK },
    { "all_gather ring uneven", tti_plan_all_gather_ring, ALL_GATHER, false, false, true, RANK },
    { "all_gather bruck", tti_plan_all_gather_bruck, ALL_GATHER, false, false, false, RANK },
    { "all_gather bruck in place", tti_plan_all_gather_bruck, ALL_GATHER, false, true, false, RANK },
    { "all_gather bruck uneven", tti_plan_all_gather_bruck, ALL_GATHER, false, true, true, RANK },
    { "gather direct", tti_plan_gather_direct, GATHER, true, false, false, RANK },
    { "gather binomial", tti_plan_gather_binomial, GATHER, true, false, false, RANK },
    { "gather binomial in place", tti_plan_gather_binomial, GATHER, true, true, false, RANK },
    { "gather direct uneven", tti_plan_gather_direct, GATHER, true, false, true, RANK },
    { "gather binomial uneven", tti_plan_gather_binomial, GATHER, true, true, true, RANK },
    { "scatter direct uneven", tti_plan_scatter_direct, SCATTER, true, false, true, RANK },
    { "scatter binomial uneven", tti_plan_scatter_binomial, SCATTER, true, true, true, RANK },
    { "scatter direct", tti_plan_scatter_direct, SCATTER, true, false, false, RANK },
    { "scatter binomial", tti_plan_scatter_binomial, SCATTER, true, false, false, RANK },
    { "scatter binomial in place", tti_plan_scatter_binomial, SCATTER, true, true, false, RANK },
    { "reduce_scatter direct", tti_plan_reduce_scatter_direct, REDUCE_SCATTER, false, false, false, RANK },
    { "reduce_scatter direct in place", tti_plan_reduce_scatter_direct, REDUCE_SCATTER, false, true, false, RANK },
    { "reduce_scatter direct uneven", tti_plan_reduce_scatter_direct, REDUCE_SCATTER, false, true, true, RANK },
    { "reduce_scatter direct_tree", tti_plan_reduce_scatter_direct_tree, REDUCE_SCATTER, false, true, false, TREE },
    { "reduce_scatter bruck", tti_plan_reduce_scatter_bruck, REDUCE_SCATTER, false, false, false, RANK },
    { "reduce_scatter bruck in place", tti_plan_reduce_scatter_bruck, REDUCE_SCATTER, false, true, false, RANK },
    { "reduce_scatter bruck uneven", tti_plan_reduce_scatter_bruck, REDUCE_SCATTER, false, true, true, RANK },
    { "reduce_scatter halving", tti_plan_reduce_scatter_halving, REDUCE_SCATTER, false, false, false, TREE },
    { "reduce_scatter halving in place", tti_plan_reduce_scatter_halving, REDUCE_SCATTER, false, true, false, TREE },
    { "reduce_scatter halving uneven", tti_plan_reduce_scatter_halving, REDUCE_SCATTER, false, true, true, TREE },
    { "reduce_scatter ring", tti_plan_reduce_scatter_ring, REDUCE_SCATTER, false, false, false, RING },
    { "reduce_scatter ring in place", tti_plan_reduce_scatter_ring, REDUCE_SCATTER, false, true, false, RING },
    { "reduce_scatter ring uneven", tti_plan_reduce_scatter_ring, REDUCE_SCATTER, false, true, true, RING },
    { "all_to_all direct", tti_plan_all_to_all_direct, ALL_TO_ALL, false, false, false, RANK },
    { "all_to_all direct uneven", tti_plan_all_to_all_direct, ALL_TO_ALL, false, true, true, RANK },
    { "all_to_all bruck", tti_plan_all_to_all_bruck, ALL_TO_ALL, false, false, false, RANK },
    { "all_to_all bruck uneven", tti_plan_all_to_all_bruck, ALL_TO_ALL, false, true, true, RANK },
    { "gather_v direct", tti_plan_all_to_all_direct, GATHER_V, true, true, true, RANK },
    { "scatter_v direct", tti_plan_all_to_all_direct, SCATTER_V, true, false, true, RANK },
    { "barrier dissemination", tti_plan_barrier_dissemination, BARRIER, false, false, false, RANK },
    { "barrier flat", tti_plan_barrier_flat, BARRIER, false, false, false, RANK },
};
enum { N_PLANS = sizeof plans / sizeof plans[0] };

typedef struct member {
    tti_schedule schedule;
    tti_binding  binding;
    float        in[COUNT_MAX], out[COUNT_MAX];
    float       *list[RANKS_MAX];
    void        *entries[RANKS_MAX];
    float       *ins[RANKS_MAX];
    const void  *in_entries[RANKS_MAX];
    int64_t      list_counts[RANKS_MAX], in_counts[RANKS_MAX];
    tti_block_sizes sizes[2 * RANKS_MAX];
    float       *room; /* of list and ins */
    char        *scratch;
} member;

/* From one rank to another, in the order sent. */
typedef struct message {
    struct message *next;
    int64_t         bytes;
    char            data[];
} message;

typedef struct play {
    const plan_case *plan;
    int              n;
    int              root;
    int64_t          count;
} play;

static member   members[RANKS_MAX];
static message *under_way[RANKS_MAX][RANKS_MAX]; /* from, to */
static int      n_under_way;

/* Of very different sizes, so that another order of adding gives other bits. */
static float value(int rank, int64_t i)
{
    return (float)(1 + (rank * 7919 + i * 104729) % 1009) * (rank % 3 == 0 ? 1e-3f : 1e4f) *
           (i % 2 ? 1.0f : -1.0f);
}

static float list_value(int owner, int index, int64_t i)
{
    return value(owner + 31 * index, i);
}

/* Elements of rank's part; a third of the parts is empty. */
static int64_t part_count(const play *p, int rank)
{
    return p->plan->uneven ? p->count * (rank % 3) / 2 : p->count;
}

/* Elements that one rank gives to another: no relation to what it gets back. */
static int64_t block_count(const play *p, int from, int to)
{
    if ((p->plan->kind == GATHER_V && to != p->root) ||
        (p->plan->kind == SCATTER_V && from != p->root))
        return 0;
    return p->plan->uneven ? p->count * ((from * 5 + to * 3) % 4) / 3 : p->count;
}

static bool has_blocks(const play *p)
{
    return p->plan->kind == ALL_TO_ALL || p->plan->kind == GATHER_V || p->plan->kind == SCATTER_V;
}

/* Whether two ranks tell each other sizes. */
static bool is_pair(const play *p, int a, int b)
{
    return a != b && (p->plan->kind == ALL_TO_ALL || a == p->root || b == p->root);
}

/* The places of the own blocks may be one. */
static void prepare_blocks(member *m, const play *p, int rank)
{
    int64_t i;
    int     r;

    for (r = 0; r < p->n; r++) {
        m->list_counts[r] = block_count(p, r, rank);
        m->in_counts[r] = block_count(p, rank, r);
        for (i = 0; i < m->in_counts[r]; i++)
            m->ins[r][i] = list_value(rank, r, i);
        m->in_entries[r] = m->ins[r];
        m->sizes[r] = (tti_block_sizes){ m->in_counts[r], m->list_counts[r] };
        m->sizes[p->n + r] = (tti_block_sizes){ -1, -1 };
    }
    if (p->plan->in_place)
        m->entries[rank] = m->ins[rank];
}

static tti_plan_input input_of(member *m, const play *p, int rank)
{
    tti_plan_input input = { .n_ranks = p->n, .rank = rank, .count = p->count,
                             .root = p->plan->has_root ? p->root : -1,
                             .element = sizeof(float) };
    int            r;

    if (has_blocks(p)) {
        input.list_counts = m->list_counts;
        input.in_counts = m->in_counts;
    } else if (p->plan->uneven) {
        for (input.count = 0, r = 0; r < p->n; r++)
            input.count += m->list_counts[r] = part_count(p, r);
        input.list_counts = m->list_counts;
    }
    return input;
}

static bool has_input_list(const play *p)
{
    return p->plan->kind == SCATTER || p->plan->kind == REDUCE_SCATTER;
}

/* Counts differ by at most a half. */
static void make_room(member *m, const play *p)
{
    const size_t each = (size_t)p->count + 1, all = 2 * (size_t)p->n * each;
    int          r;

    m->room = malloc(all * sizeof *m->room);
    assert_non_null(m->room);
    for (r = 0; r < p->n; r++) {
        m->list[r] = m->room + (size_t)r * each;
        m->ins[r] = m->room + (size_t)(p->n + r) * each;
    }
}

/* Every second number of ranks averages. */
static tutti_op_kind op_of(const play *p)
{
    return p->n % 2 == 0 ? TUTTI_OP_SUM : TUTTI_OP_AVG;
}

static void prepare(member *m, const play *p, int rank)
{
    tti_plan_input input;
    int64_t        i;
    int            r;

    make_room(m, p);
    for (i = 0; i < p->count; i++) {
        m->in[i] = value(rank, i);
        m->out[i] = -1.0f;
    }
    for (r = 0; r < p->n; r++) {
        for (i = 0; i < p->count; i++)
            m->list[r][i] = has_input_list(p) ? list_value(rank, r, i) : -1.0f;
        m->entries[r] = m->list[r];
    }
    if (has_blocks(p))
        prepare_blocks(m, p, rank);
    input = input_of(m, p, rank);
    tti_schedule_clear(&m->schedule);
    p->plan->plan(&input, &m->schedule);
    assert_false(m->schedule.full);
    /* Exact, but for zero: overruns are seen by asan. */
    m->scratch = malloc((size_t)m->schedule.scratch_bytes + (m->schedule.scratch_bytes == 0));
    assert_non_null(m->scratch);
    m->binding = (tti_binding){ .in = m->in, .out = p->plan->in_place ? m->in : m->out,
                                .list = m->entries, .ins = m->in_entries, .sizes = m->sizes,
                                .scratch = m->scratch,
                                .kernel = tti_reduce_kernel_for(op_of(p), TUTTI_F32),
                                .partial = tti_partial_kernel(op_of(p), TUTTI_F32),
                                .element = sizeof(float), .n_ranks = p->n };
    if (p->plan->kind == REDUCE_SCATTER)
        m->binding.out = p->plan->in_place ? m->list[rank] : m->out;
    if (p->plan->in_place && (p->plan->kind == ALL_GATHER || (p->plan->kind == GATHER && rank == p->root))) {
        memcpy(m->list[rank], m->in, (size_t)part_count(p, rank) * sizeof(float));
        m->binding.in = m->list[rank];
    }
    if (p->plan->in_place && p->plan->kind == SCATTER && rank == p->root)
        m->binding.out = m->list[rank];
    /* Who must not write has no place to write to. */
    if (p->plan->kind == REDUCE && rank != p->root)
        m->binding.out = NULL;
    if (p->plan->kind == BROADCAST && rank == p->root)
        m->binding.out = NULL;
    if (p->plan->kind == BROADCAST && rank != p->root)
        m->binding.in = NULL;
    if (p->plan->kind == GATHER && rank != p->root)
        m->binding.list = NULL;
    if (p->plan->kind == SCATTER && rank != p->root)
        m->binding.list = NULL;
}

static bool overlap(const tti_binding *binding, const tti_block *a, const tti_block *b)
{
    const char *at = tti_block_at(binding, a), *bt = tti_block_at(binding, b);

    return a->bytes > 0 && b->bytes > 0 && at < bt + b->bytes && bt < at + a->bytes;
}

static void check_apart(const member *m, int k)
{
    int                 n_sends, n_recvs, i, j;
    const tti_transfer *sends = tti_phase_sends(&m->schedule, k, &n_sends);
    const tti_transfer *recvs = tti_phase_recvs(&m->schedule, k, &n_recvs);

    for (i = 0; i < n_recvs; i++) {
        for (j = 0; j < n_sends; j++)
            assert_false(overlap(&m->binding, &recvs[i].block, &sends[j].block));
        for (j = 0; j < i; j++)
            assert_false(overlap(&m->binding, &recvs[i].block, &recvs[j].block));
    }
}

static void send_all(const member *m, int rank, int k)
{
    int                 n, i;
    const tti_transfer *sends = tti_phase_sends(&m->schedule, k, &n);

    for (i = 0; i < n; i++) {
        const size_t bytes = (size_t)sends[i].block.bytes;
        message     *fresh = malloc(sizeof *fresh + bytes);
        message    **last = &under_way[rank][sends[i].peer];

        assert_non_null(fresh);
        assert_int_not_equal(sends[i].peer, rank);
        *fresh = (message){ .bytes = sends[i].block.bytes };
        if (bytes > 0)
            memcpy(fresh->data, tti_block_at(&m->binding, &sends[i].block), bytes);
        while (*last != NULL)
            last = &(*last)->next;
        *last = fresh;
        n_under_way++;
    }
}

static void recv_one(const member *m, int rank, const tti_transfer *recv)
{
    message *came = under_way[recv->peer][rank];

    assert_non_null(came);
    if (recv->at_most)
        assert_in_range((uint64_t)came->bytes, 0, (uint64_t)recv->block.bytes);
    else
        assert_int_equal(came->bytes, recv->block.bytes);
    if (came->bytes > 0)
        memcpy(tti_block_at(&m->binding, &recv->block), came->data, (size_t)came->bytes);
    under_way[recv->peer][rank] = came->next;
    free(came);
    n_under_way--;
}

static void recv_all(const member *m, int rank, int k)
{
    int                 n, i;
    const tti_transfer *recvs = tti_phase_recvs(&m->schedule, k, &n);

    for (i = 0; i < n; i++)
        recv_one(m, rank, &recvs[i]);
}

static void play_phases(const play *p)
{
    const int phases = members[0].schedule.phases.n;
    int       k, rank;

    for (rank = 0; rank < p->n; rank++)
        assert_int_equal(members[rank].schedule.phases.n, phases);
    for (k = 0; k < phases; k++) {
        for (rank = 0; rank < p->n; rank++) {
            check_apart(&members[rank], k);
            send_all(&members[rank], rank, k);
        }
        for (rank = 0; rank < p->n; rank++)
            recv_all(&members[rank], rank, k);
        assert_int_equal(n_under_way, 0);
        for (rank = 0; rank < p->n; rank++)
            tti_phase_steps(&members[rank].schedule, k, &members[rank].binding);
    }
}

/* ---- what sums are ---- */

static float along_the_tree(float *x, int n)
{
    const tti_seats seats = tti_seats_of(n);
    int             seat, reach;

    for (seat = 0; seat < seats.n; seat++)
        x[seat] = seat < seats.n_pairs ? x[2 * seat] + x[2 * seat + 1] : x[seat + seats.n_pairs];
    for (reach = 1; reach < seats.n; reach *= 2)
        for (seat = 0; seat < seats.n; seat += 2 * reach)
            x[seat] += x[seat + reach];
    return x[0];
}

/* The sum, or average, of x[0] .. x[n-1] as a plan's order has it, of a slice that owner has. */
static float total_of(const play *p, float *x, int owner)
{
    float total = 0;
    int   k;

    if (p->plan->order == RANK)
        for (total = x[0], k = 1; k < p->n; k++)
            total += x[k];
    else if (p->plan->order == RING)
        for (total = x[(owner + 1) % p->n], k = 2; k <= p->n; k++)
            total += x[(owner + k) % p->n];
    else
        total = along_the_tree(x, p->n);
    return op_of(p) == TUTTI_OP_AVG ? total / (float)p->n : total;
}

static int owner_of(const play *p, int64_t i)
{
    int owner = 0;

    while (i >= tti_slice_of(p->count, sizeof(float), p->n, owner).end)
        owner++;
    return owner;
}

static float sum(const play *p, int64_t i)
{
    float x[RANKS_MAX];
    int   r;

    for (r = 0; r < p->n; r++)
        x[r] = value(r, i);
    return total_of(p, x, p->plan->kind == REDUCE ? p->root : owner_of(p, i));
}

static float sum_of_part(const play *p, int owner, int64_t i)
{
    float x[RANKS_MAX];
    int   r;

    for (r = 0; r < p->n; r++)
        x[r] = list_value(r, owner, i);
    return total_of(p, x, owner);
}

static void check_element(const play *p, int rank, int64_t i, float got, float want)
{
    if (memcmp(&got, &want, sizeof want) != 0)
        fail_msg("%s: rank %d of %d, root %d, count %d: element %d is %g, not %g", p->plan->name,
                 rank, p->n, p->root, (int)p->count, (int)i, (double)got, (double)want);
}

static void check_part(const play *p, int rank)
{
    const float *got = members[rank].binding.out;
    int64_t      i;

    for (i = 0; i < part_count(p, rank); i++)
        check_element(p, rank, i, got[i], sum_of_part(p, rank, i));
}

/* The same for all ranks that have a result. */
static void check_sums(const play *p)
{
    float   want[COUNT_MAX];
    int64_t i;
    int     rank;

    for (i = 0; i < p->count; i++)
        want[i] = sum(p, i);
    for (rank = 0; rank < p->n; rank++) {
        const float *got = members[rank].binding.out;

        if (got != NULL && memcmp(got, want, (size_t)p->count * sizeof(float)) != 0)
            for (i = 0; i < p->count; i++)
                check_element(p, rank, i, got[i], want[i]);
    }
}

static void check_blocks(const play *p, int rank)
{
    int64_t i;
    int     r;

    for (r = 0; r < p->n; r++) {
        const float          *got = members[rank].entries[r];
        const tti_block_sizes told = members[rank].sizes[p->n + r];

        assert_true(!is_pair(p, r, rank) || (told.gives == block_count(p, r, rank) &&
                                             told.wants == block_count(p, rank, r)));
        assert_true(is_pair(p, r, rank) || told.gives == -1);
        for (i = 0; i < block_count(p, r, rank); i++)
            check_element(p, rank, i, got[i], list_value(r, rank, i));
    }
}

static void check_buffer(const play *p, int rank, const float *got, int of)
{
    const int64_t count = part_count(p, of < 0 ? rank : of);
    int64_t       i;

    for (i = 0; i < count; i++)
        check_element(p, rank, i, got[i], of < 0 ? list_value(p->root, rank, i) : value(of, i));
}

static void check_only_read(const play *p, int rank)
{
    int64_t i;

    for (i = 0; i < p->count && !p->plan->in_place; i++)
        check_element(p, rank, i, members[rank].in[i], value(rank, i));
}

static void check_result(const play *p, int rank)
{
    const member *m = &members[rank];
    const bool    is_root = rank == p->root;
    int           r;

    switch (p->plan->kind) {
    case ALL_REDUCE:
    case REDUCE:
        check_only_read(p, rank);
        if (rank == 0)
            check_sums(p);
        break;
    case BROADCAST: check_buffer(p, rank, m->in, p->root); break;
    case ALL_GATHER:
    case GATHER:
        for (r = 0; r < p->n && (is_root || p->plan->kind == ALL_GATHER); r++)
            check_buffer(p, rank, m->list[r], r);
        break;
    case SCATTER: check_buffer(p, rank, m->binding.out, -1); break;
    case REDUCE_SCATTER: check_part(p, rank); break;
    case ALL_TO_ALL:
    case GATHER_V:
    case SCATTER_V: check_blocks(p, rank); break;
    case BARRIER: break;
    }
}

static void play_one(const play *p)
{
    int rank;

    for (rank = 0; rank < p->n; rank++)
        prepare(&members[rank], p, rank);
    play_phases(p);
    for (rank = 0; rank < p->n; rank++)
        check_result(p, rank);
    for (rank = 0; rank < p->n; rank++) {
        free(members[rank].scratch);
        free(members[rank].room);
    }
}

static bool takes_root(const play *p)
{
    if (!p->plan->has_root)
        return p->root == 0;
    return p->n <= FEW_RANKS || p->root <= 1 || p->root == p->n / 2 || p->root == p->n - 1;
}

static void play_counts(play *p)
{
    const int64_t few[] = { 0, 1, 3, 17, 1000, COUNT_MAX }, many[] = { 0, 1, p->n - 1, p->n, 131 };
    const bool    is_few = p->n <= FEW_RANKS;
    size_t        c;

    for (c = 0; c < (is_few ? sizeof few / sizeof few[0] : sizeof many / sizeof many[0]); c++) {
        p->count = is_few ? few[c] : many[c];
        play_one(p);
    }
}

static void every_plan_does_what_its_kind_says(void **state)
{
    play   p;
    size_t i;

    (void)state;
    for (i = 0; i < N_PLANS; i++)
        for (p.plan = &plans[i], p.n = 1; p.n <= RANKS_MAX; p.n += RANKS_STEP)
            for (p.root = 0; p.root < p.n; p.root++)
                if (takes_root(&p))
                    play_counts(&p);
}

/* A rank that owns nothing takes part in the second phase all the same. */
static void a_rank_without_a_slice_gets_the_result(void **state)
{
    const play p = { .plan = &plans[2], .n = FEW_RANKS, .count = 3 };

    (void)state;
    assert_true(tti_slice_of(p.count, sizeof(float), p.n, p.n - 1).begin == p.count);
    play_one(&p);
}

/* ---- barriers ---- */

/* Who has sent something to rank in phase k. */
static uint64_t heard_of(const uint64_t *knew, int rank, int k)
{
    int                 n, i;
    const tti_transfer *recvs = tti_phase_recvs(&members[rank].schedule, k, &n);
    uint64_t            knows = knew[rank];

    for (i = 0; i < n; i++)
        knows |= knew[recvs[i].peer];
    return knows;
}

static void check_barrier(tti_plan *plan, int n)
{
    uint64_t knew[RANKS_MAX], knows[RANKS_MAX];
    int      rank, k;

    for (rank = 0; rank < n; rank++) {
        const tti_plan_input input = { .n_ranks = n, .rank = rank, .root = -1, .element = 1 };

        tti_schedule_clear(&members[rank].schedule);
        plan(&input, &members[rank].schedule);
        knows[rank] = UINT64_C(1) << rank;
    }
    for (k = 0; k < members[0].schedule.phases.n; k++) {
        memcpy(knew, knows, sizeof knew);
        for (rank = 0; rank < n; rank++)
            knows[rank] = heard_of(knew, rank, k);
    }
    for (rank = 0; rank < n; rank++)
        assert_true(knows[rank] == UINT64_MAX >> (64 - n));
}

/* A barrier lets nobody through before all have come: knowledge spreads with its messages. */
static void barriers_wait_for_all(void **state)
{
    int n;

    (void)state;
    for (n = 1; n <= RANKS_MAX; n++) {
        check_barrier(tti_plan_barrier_dissemination, n);
        check_barrier(tti_plan_barrier_flat, n);
    }
}

/* ---- blocks ---- */

/* Messages of a rank in an all_to_all of blocks of so many bytes. */
static int messages_of_blocks(int n, int64_t bytes)
{
    int64_t        counts[RANKS_MAX];
    tti_schedule  *s = &members[0].schedule;
    tti_plan_input input = { .n_ranks = n, .rank = 0, .root = -1, .element = 1, .list_counts = counts, .in_counts = counts };
    int            r;

    for (r = 0; r < n; r++)
        counts[r] = bytes;
    tti_schedule_clear(s);
    tti_plan_all_to_all_direct(&input, s);
    assert_false(s->full);
    return s->sends.n;
}

/* A message to each other rank, and none for its sizes alone, as long as that does not take too much memory. */
static void short_blocks_go_with_their_sizes(void **state)
{
    int64_t most;
    int     n;

    (void)state;
    for (n = 2; n <= RANKS_MAX; n++) {
        most = n <= 2 ? 65536 : n <= 16 ? 131072 / n : 8192;
        assert_int_equal(tti_short_block(n), most);
        assert_int_equal(messages_of_blocks(n, 0), n - 1);
        assert_int_equal(messages_of_blocks(n, most), n - 1);
        assert_int_equal(messages_of_blocks(n, most + 1), 2 * (n - 1));
    }
    assert_in_range((uint64_t)tti_short_block(1000), 900, 1048);
    assert_int_equal(tti_short_block(1000000), 240);
}

/* Bytes that one rank gives another: nothing to a fourth of them. */
static int64_t given(int from, int to)
{
    return (from * 5 + to * 3) % 4 * 100;
}

/* What rank receives from another: one message, or none. */
static const tti_transfer *recv_from(int rank, int from)
{
    const tti_schedule *s = &members[rank].schedule;
    int                 i, n = 0;
    const tti_transfer *found = NULL;

    for (i = 0; i < s->recvs.n; i++)
        if (((const tti_transfer *)s->recvs.items)[i].peer == from) {
            found = (const tti_transfer *)s->recvs.items + i;
            n++;
        }
    assert_in_range((uint64_t)n, 0, 1);
    return found;
}

/* All ranks' schedules, where each expects spare bytes more than it is given. */
static void plan_pairs(tti_plan *plan, int n, int64_t spare)
{
    int64_t in_counts[RANKS_MAX], list_counts[RANKS_MAX];
    int     rank, r;

    for (rank = 0; rank < n; rank++) {
        const tti_plan_input input = { .n_ranks = n, .rank = rank, .root = -1, .element = 1, .list_counts = list_counts,
                                       .in_counts = in_counts };

        for (r = 0; r < n; r++) {
            in_counts[r] = given(rank, r);
            list_counts[r] = given(r, rank) > 0 ? given(r, rank) + spare : 0;
        }
        tti_schedule_clear(&members[rank].schedule);
        plan(&input, &members[rank].schedule);
        assert_false(members[rank].schedule.full);
        assert_int_equal(members[rank].schedule.phases.n, 1);
    }
}

/* Each message that is sent is expected, with as much room as it is said to have; nobody expects another one. */
static void check_pairs(int n, int64_t spare, bool at_most)
{
    int rank, i, n_sent = 0, n_expected = 0;

    for (rank = 0; rank < n; rank++) {
        const tti_schedule *s = &members[rank].schedule;
        const tti_transfer *sends = s->sends.items;

        for (i = 0; i < s->sends.n; i++) {
            const tti_transfer *recv = recv_from(sends[i].peer, rank);

            assert_int_equal(sends[i].block.bytes, given(rank, sends[i].peer));
            assert_non_null(recv);
            assert_int_equal(recv->block.bytes, sends[i].block.bytes + spare);
            assert_int_equal(recv->at_most, at_most);
        }
        n_sent += s->sends.n;
        n_expected += s->recvs.n;
        for (i = 0; i < n; i++)
            n_expected -= i != rank && given(i, rank) > 0 && recv_from(rank, i) == NULL;
    }
    assert_int_equal(n_sent, n_expected);
}

static void blocks_of_known_sizes_go_at_once(void **state)
{
    int n;

    (void)state;
    for (n = 1; n <= RANKS_MAX; n++) {
        plan_pairs(tti_plan_blocks_known, n, 0);
        check_pairs(n, 0, false);
        plan_pairs(tti_plan_blocks_packed, n, 32);
        check_pairs(n, 32, true);
    }
}

/* Bytes of blocks of all kinds: none, short ones, and long ones, which are most. */
static int64_t given_long(int from, int to)
{
    static const int64_t bytes[] = { 64 << 10, 200 << 10, 0, 65535, 1 << 20, 100, 64 << 10 };

    return bytes[(from * 5 + to * 3) % 7];
}

static void plan_long_blocks(int n)
{
    int64_t in_counts[RANKS_MAX], list_counts[RANKS_MAX];
    int     rank, r;

    for (rank = 0; rank < n; rank++) {
        const tti_plan_input input = { .n_ranks = n, .rank = rank, .root = -1, .element = 1, .list_counts = list_counts,
                                       .in_counts = in_counts };

        for (r = 0; r < n; r++) {
            in_counts[r] = given_long(rank, r);
            list_counts[r] = given_long(r, rank);
        }
        tti_schedule_clear(&members[rank].schedule);
        tti_plan_blocks_known(&input, &members[rank].schedule);
        assert_false(members[rank].schedule.full);
    }
}

static int long_ones(const tti_transfer *some, int n)
{
    int i, found = 0;

    for (i = 0; i < n; i++)
        found += some[i].block.bytes >= 64 << 10;
    return found;
}

/* How many messages of a rank for peer there are in phase k of what it receives, of so many bytes. */
static int expected(int rank, int k, int peer, int64_t bytes)
{
    int                 i, n = 0, found = 0;
    const tti_transfer *recvs =
        k < members[rank].schedule.phases.n ? tti_phase_recvs(&members[rank].schedule, k, &n) : NULL;

    for (i = 0; i < n; i++)
        found += recvs[i].peer == peer && recvs[i].block.bytes == bytes;
    return found;
}

/* Of a rank's long blocks, how many may go at a time: those of half of all ranks, which share a link at most, are a dozen. */
static int few(int n)
{
    return n <= 12 ? 24 / n : 1;
}

/* Long blocks of a rank go a few after the other, and say how many share a link; so do those that it gets. Giver and taker agree on when, whatever other blocks
 * they have. */
static void check_long_blocks(int n)
{
    int rank, k, i, n_sends, n_recvs, n_long = 0;

    for (rank = 0; rank < n; rank++)
        for (k = 0; k < members[rank].schedule.phases.n; k++) {
            const tti_transfer *sends = tti_phase_sends(&members[rank].schedule, k, &n_sends);
            const tti_transfer *recvs = tti_phase_recvs(&members[rank].schedule, k, &n_recvs);

            assert_in_range((uint64_t)long_ones(sends, n_sends), 0, (uint64_t)few(n));
            assert_in_range((uint64_t)long_ones(recvs, n_recvs), 0, (uint64_t)few(n));
            for (i = 0; i < n_sends; i++) {
                const int at_a_time = few(n) < n - 1 ? few(n) : n - 1, share = at_a_time * (n / 2) < 12 ? at_a_time * (n / 2) : 12;

                assert_int_equal(expected(sends[i].peer, k, rank, sends[i].block.bytes), 1);
                assert_int_equal(sends[i].beside, sends[i].block.bytes >= 64 << 10 ? share - 1 : 0);
            }
            n_long += long_ones(sends, n_sends);
        }
    for (rank = 0; rank < n; rank++)
        for (i = 0; i < n; i++)
            n_long -= i != rank && given_long(rank, i) >= 64 << 10;
    assert_int_equal(n_long, 0);
}

static void long_blocks_go_a_few_after_the_other(void **state)
{
    int n;

    (void)state;
    for (n = 1; n <= RANKS_MAX; n++) {
        plan_long_blocks(n);
        check_long_blocks(n);
    }
}

/* ---- turns ---- */

typedef int64_t lengths(int n, int i); /* of the part that the i-th to the right of the root has */

static int64_t all_small(int n, int i)
{
    (void)i;
    return (1 << 20) / n;
}

static int64_t all_middling(int n, int i)
{
    (void)n;
    (void)i;
    return 100 << 10;
}

static int64_t all_large(int n, int i)
{
    (void)n;
    (void)i;
    return 3 << 20;
}

static int64_t of_all_kinds(int n, int i)
{
    static const int64_t bytes[] = { 200 << 10, 0, 2 << 20, 100, 64 << 10, 700 << 10, (64 << 10) - 1 };

    return bytes[(i * 5 + n) % 7];
}

static int64_t nobody_has_any(int n, int i)
{
    (void)n;
    (void)i;
    return 0;
}

typedef struct turns_case {
    const char *name;
    tti_plan   *plan;
    kind        kind;
    bool        sizes_first; /* two phases before, which are left alone here */
} turns_case;

static const turns_case turns_cases[] = {
    { "gather", tti_plan_gather_direct, GATHER, false },
    { "gather_v", tti_plan_all_to_all_direct, GATHER_V, true },
    { "gather_v, sizes known", tti_plan_blocks_known, GATHER_V, false },
};

/* The schedule of one rank, where the i-th to the right of the root has of(n, i) bytes to give or to get; the root's own part is as
 * long as the first one's. */
static void plan_turns(const turns_case *c, lengths *of, int n, int root, int rank)
{
    int64_t              lists[RANKS_MAX], gives[RANKS_MAX], takes[RANKS_MAX];
    const bool           blocks = c->kind == GATHER_V || c->kind == SCATTER_V;
    const tti_plan_input input = { .n_ranks = n, .rank = rank, .root = root, .count = 1, .element = 1,
                                   .list_counts = blocks ? takes : lists, .in_counts = blocks ? gives : NULL };
    int                  r;

    for (r = 0; r < n; r++) {
        const int64_t bytes = of(n, (r - root + n) % n), own = of(n, (rank - root + n) % n);

        lists[r] = bytes;
        gives[r] = c->kind == GATHER_V ? (r == root ? own : 0) : rank == root ? bytes : 0;
        takes[r] = c->kind == GATHER_V ? (rank == root ? bytes : 0) : r == root ? own : 0;
    }
    tti_schedule_clear(&members[rank].schedule);
    c->plan(&input, &members[rank].schedule);
    assert_false(members[rank].schedule.full);
}

/* The phase in which rank does this with peer, of so many bytes; -1: none. */
static int phase_with(int rank, bool sends, int peer, int64_t bytes, int from)
{
    int k, i, n;

    for (k = from; k < members[rank].schedule.phases.n; k++) {
        const tti_transfer *some = sends ? tti_phase_sends(&members[rank].schedule, k, &n)
                                         : tti_phase_recvs(&members[rank].schedule, k, &n);

        for (i = 0; i < n; i++)
            if (some[i].peer == peer && some[i].block.bytes == bytes)
                return k;
    }
    return -1;
}

enum { TURN = 512 << 10, TURN_BLOCKS = 8, AT_ONCE = 1 << 20 };

/* Of the i-th: both ends have its part in one phase; and who gives one behind the first turn has the root's word in the phase before.
 * Returns that phase, from the first of turns on. */
static int check_turn_of(const turns_case *c, int n, int root, int i, int64_t bytes)
{
    const int  rank = (root + i) % n, first = c->sizes_first ? 2 : 0;
    const bool to_root = c->kind == GATHER || c->kind == GATHER_V;
    const int  at_root = phase_with(root, !to_root, rank, bytes, first), there = phase_with(rank, to_root, root, bytes, first);

    if (at_root < 0 || at_root != there)
        fail_msg("%s, %d ranks, root %d: rank %d has its part in phase %d, the root in %d", c->name, n, root, rank, there, at_root);
    if (to_root && there > first) {
        assert_int_equal(phase_with(rank, false, root, 0, first), there - 1);
        assert_int_equal(phase_with(root, true, rank, 0, first), there - 1);
    } else if (bytes > 0) {
        assert_int_equal(phase_with(rank, false, root, 0, first), -1);
        assert_int_equal(phase_with(root, true, rank, 0, first), -1);
    }
    return there - first;
}

/* As far as is known: where only the root knows all lengths, a rank counts on few others. */
static int others_beside(const turns_case *c, int n)
{
    const int most = c->kind == GATHER ? 16 : 5;

    if (c->kind != GATHER && c->kind != GATHER_V)
        return 0;
    return n - 2 < most ? n - 2 : most;
}

/* Who sends to the root beside others that may be under way then says so, of long parts. */
static void check_beside(const turns_case *c, int n, int root)
{
    int rank, i;

    for (rank = 0; rank < n; rank++)
        for (i = 0; i < members[rank].schedule.sends.n; i++) {
            const tti_transfer *sent = (const tti_transfer *)members[rank].schedule.sends.items + i;
            const bool          is_long = sent->block.bytes >= 64 << 10 && (n - 1) * sent->block.bytes > AT_ONCE && rank != root;

            if (sent->beside != (is_long ? others_beside(c, n) : 0))
                fail_msg("%s, %d ranks, root %d: rank %d sends beside %d", c->name, n, root, rank, sent->beside);
        }
}

/* Every part goes once. What may be under way at once, two turns, has a bound, where all parts are of one size, or their sizes are known
 * to all; little goes in one turn. */
static void check_turns(const turns_case *c, lengths *of, int n, int root)
{
    const bool blocks = c->kind == GATHER_V || c->kind == SCATTER_V, all_know = of != of_all_kinds || !blocks;
    int64_t    in_turn[RANKS_MAX] = { 0 }, total = 0, most = 0;
    int        i;

    for (i = 0; i < n; i++)
        plan_turns(c, of, n, root, i);
    check_beside(c, n, root);
    for (i = 1; i < n; i++) {
        const int64_t bytes = of(n, i);

        if (bytes == 0 || (c->sizes_first && bytes <= tti_short_block(n)))
            continue;
        in_turn[check_turn_of(c, n, root, i, bytes)] += bytes;
        total += bytes;
        most = bytes > most ? bytes : most;
    }
    for (i = 0; i + 1 < n && all_know; i++)
        if (in_turn[i] + in_turn[i + 1] > 2 * (TURN + TURN_BLOCKS * most))
            fail_msg("%s, %d ranks, root %d: %d bytes in turns %d and %d", c->name, n, root, (int)(in_turn[i] + in_turn[i + 1]), i, i + 1);
    if (total <= AT_ONCE && all_know)
        assert_int_equal(in_turn[0], total);
    assert_true(n < TURN_BLOCKS + 3 || most < TURN || in_turn[0] < total || of == of_all_kinds); /* else there are no turns at all */
}

static void what_goes_to_a_root_takes_turns(void **state)
{
    static lengths *const kinds[] = { all_small, all_middling, all_large, of_all_kinds, nobody_has_any };
    size_t                c, k;
    int                   n;

    (void)state;
    for (c = 0; c < sizeof turns_cases / sizeof turns_cases[0]; c++)
        for (k = 0; k < sizeof kinds / sizeof kinds[0]; k++)
            for (n = 2; n <= RANKS_MAX; n += RANKS_STEP) {
                check_turns(&turns_cases[c], kinds[k], n, 0);
                check_turns(&turns_cases[c], kinds[k], n, n - 1);
            }
}

/* The parts that a root deals out share its link, beside as many others as are counted at most; little does not. */
static void what_a_root_deals_out_shares_its_link(void **state)
{
    static lengths *const kinds[] = { all_small, all_middling, all_large, of_all_kinds, nobody_has_any };
    const turns_case      scatter = { "scatter", tti_plan_scatter_direct, SCATTER, false };
    size_t                k;
    int                   n, i;

    (void)state;
    for (k = 0; k < sizeof kinds / sizeof kinds[0]; k++)
        for (n = 2; n <= RANKS_MAX; n += RANKS_STEP) {
            const int others = n - 2 < 16 ? n - 2 : 16;

            plan_turns(&scatter, kinds[k], n, n - 1, n - 1);
            assert_int_equal(members[n - 1].schedule.sends.n, n - 1);
            for (i = 1; i < n; i++) {
                const tti_transfer *sent = (const tti_transfer *)members[n - 1].schedule.sends.items + i - 1;
                const bool          is_long = sent->block.bytes >= 64 << 10 && (n - 1) * sent->block.bytes > AT_ONCE;

                assert_int_equal(sent->peer, i - 1);
                assert_int_equal(sent->block.bytes, kinds[k](n, i));
                assert_int_equal(sent->beside, is_long ? others : 0);
            }
        }
}

static void check_shares(const char *name, tti_plan *plan, const tti_plan_input *of)
{
    const int     n = of->n_ranks, times = of->together > 1 ? of->together : 1;
    tti_schedule *schedule = &members[0].schedule;
    int           rank, i;

    for (rank = 0; rank < n; rank++) {
        tti_plan_input input = *of;

        input.rank = rank;
        tti_schedule_clear(schedule);
        plan(&input, schedule);
        for (i = 0; i < schedule->sends.n; i++) {
            const tti_transfer *sent = (const tti_transfer *)schedule->sends.items + i;
            const bool          is_long = sent->block.bytes >= 64 << 10 && (n - 1) * sent->block.bytes * times > AT_ONCE;

            if (sent->beside != (is_long ? n - 2 : 0))
                fail_msg("%s, %d ranks: rank %d sends %d bytes beside %d", name, n, rank, (int)sent->block.bytes, sent->beside);
        }
    }
}

/* Where each sends to all others, or all to one, or one to all, in slices: what a rank sends says beside how many, if it is long. */
static void slices_to_all_share_links(void **state)
{
    static const struct {
        const char *name;
        tti_plan   *plan;
        int         root;
    } cases[] = {
        { "all_reduce direct", tti_plan_all_reduce_direct, -1 },       { "all_reduce direct_tree", tti_plan_all_reduce_direct_tree, -1 },
        { "reduce direct", tti_plan_reduce_direct, 0 },                { "reduce direct_tree", tti_plan_reduce_direct_tree, 0 },
        { "broadcast sliced", tti_plan_broadcast_sliced, 0 },          { "reduce_scatter direct", tti_plan_reduce_scatter_direct, -1 },
        { "reduce_scatter direct_tree", tti_plan_reduce_scatter_direct_tree, -1 }, { "all_gather direct", tti_plan_all_gather_direct, -1 },
    };
    size_t  c;
    int64_t count;
    int     n;

    (void)state;
    for (c = 0; c < sizeof cases / sizeof cases[0]; c++)
        for (n = 2; n <= 9; n++)
            for (count = 1 << 10; count <= 1 << 20; count *= 4) {
                check_shares(cases[c].name, cases[c].plan, &(tti_plan_input){ .n_ranks = n, .root = cases[c].root, .count = count, .element = 4 });
                check_shares(cases[c].name, cases[c].plan,
                             &(tti_plan_input){ .n_ranks = n, .root = cases[c].root, .count = count, .element = 4, .together = 4 });
            }
}

/* ---- amounts ---- */

enum { AMOUNT_COUNT = 1 << 20 };

/* What the rank with most of it does in phase k. */
static tti_amounts most_of(int n_ranks, int k)
{
    tti_amounts most = { .meets = 0 };
    int         rank, i, n_sends, n_recvs;

    for (rank = 0; rank < n_ranks; rank++) {
        const tti_schedule *s = &members[rank].schedule;
        const tti_transfer *sends = tti_phase_sends(s, k, &n_sends), *recvs = tti_phase_recvs(s, k, &n_recvs);
        const tti_phase    *phases = s->phases.items;
        const tti_step     *steps = s->steps.items;
        double              sent = 0, received = 0, combined = 0;

        for (i = 0; i < n_sends; i++)
            sent += (double)sends[i].block.bytes;
        for (i = 0; i < n_recvs; i++)
            received += (double)recvs[i].block.bytes;
        for (i = k > 0 ? phases[k - 1].steps_end : 0; i < phases[k].steps_end; i++)
            combined += steps[i].reduces ? (double)steps[i].to.bytes * steps[i].n : 0;
        most.posts = fmax(most.posts, n_sends + n_recvs);
        most.posts_all += n_sends + n_recvs;
        most.sent = fmax(most.sent, fmax(sent, received));
        most.combined = fmax(most.combined, combined);
    }
    most.messages = most.posts > 0;
    return most;
}

/* Bytes that pass the busiest rank's link, one way. */
static double busiest_link(int n_ranks)
{
    double most = 0;
    int    rank, i;

    for (rank = 0; rank < n_ranks; rank++) {
        const tti_schedule *s = &members[rank].schedule;
        double              sent = 0, received = 0;

        for (i = 0; i < s->sends.n; i++)
            sent += (double)((const tti_transfer *)s->sends.items)[i].block.bytes;
        for (i = 0; i < s->recvs.n; i++)
            received += (double)((const tti_transfer *)s->recvs.items)[i].block.bytes;
        most = fmax(most, fmax(sent, received));
    }
    return most;
}

static void make_schedules(tti_plan *plan, bool has_root, int n, int root)
{
    int rank;

    for (rank = 0; rank < n; rank++) {
        const tti_plan_input input = { .n_ranks = n, .rank = rank, .root = has_root ? root : -1,
                                       .count = AMOUNT_COUNT, .element = sizeof(float) };

        tti_schedule_clear(&members[rank].schedule);
        plan(&input, &members[rank].schedule);
        assert_false(members[rank].schedule.full);
    }
}

static bool has_root(tutti_call_kind of)
{
    return of == TUTTI_CALL_BROADCAST || of == TUTTI_CALL_REDUCE || of == TUTTI_CALL_GATHER || of == TUTTI_CALL_SCATTER;
}

/* Slices, and parts of seats with two ranks, are not all of one size. */
static void check_near(const tti_algorithm *row, int n, const char *what, double said, double does)
{
    if (fabs(said - does) > does / 6)
        fail_msg("%s %s of %d ranks: %s are said to be %g, and are %g", tti_call_kind_name(row->kind), row->name, n, what,
                 said, does);
}

/* Parts that go to a root in turns: a turn does not wait for the one before to end. */
static bool is_in_turns(const tti_algorithm *row)
{
    return row->plan == tti_plan_gather_direct;
}

static void check_amounts(const tti_algorithm *row, int n, int root)
{
    const double      bytes = row->kind == TUTTI_CALL_BARRIER ? 0 : AMOUNT_COUNT * (double)sizeof(float);
    const tti_amounts said = row->amounts(n, bytes);
    tti_amounts       does = { .meets = 0 };
    int               k;

    make_schedules(row->plan, has_root(row->kind), n, root);
    for (k = 0; k < members[0].schedule.phases.n; k++) {
        const tti_amounts most = most_of(n, k);

        does.messages += most.messages;
        does.posts += most.posts;
        does.posts_all += most.posts_all;
        does.sent += most.sent;
        does.combined += most.combined;
    }
    check_near(row, n, "phases", said.messages, is_in_turns(row) ? 1 : does.messages);
    check_near(row, n, "messages", said.posts, does.posts);
    if (said.posts_all > 0)
        check_near(row, n, "messages of all", said.posts_all, does.posts_all);
    check_near(row, n, "bytes", said.sent, does.sent);
    if (root == 0) /* others may be spared a step */
        check_near(row, n, "bytes of a link", said.link > 0 ? said.link : said.sent, busiest_link(n));
    check_near(row, n, "combined bytes", said.combined, does.combined);
}

/* Of one line one rank has the only slice. */
static void few_lines_have_few_owners(void **state)
{
    tti_amounts said;
    int         n, rank;

    (void)state;
    for (n = 2; n <= RANKS_MAX; n++) {
        double does = 0, most = 0;

        said = tti_amounts_net_slices(n, 4);
        for (rank = 0; rank < n; rank++) {
            const tti_plan_input input = { .n_ranks = n, .rank = rank, .root = -1, .count = 1, .element = sizeof(float) };
            const tti_schedule  *s = &members[rank].schedule;

            tti_schedule_clear(&members[rank].schedule);
            tti_plan_all_reduce_direct(&input, &members[rank].schedule);
            does += s->sends.n + s->recvs.n;
            most = fmax(most, s->sends.n + s->recvs.n);
        }
        assert_true(said.posts == most && said.posts_all == does);
    }
}

/* Blocks are left out: which there are no two ranks but theirs know. */
static void plans_do_what_their_amounts_say(void **state)
{
    int                  n_rows, i, n;
    const tti_algorithm *rows = tti_algorithms(&n_rows);

    (void)state;
    for (i = 0; i < n_rows; i++)
        for (n = 2; n <= RANKS_MAX && n <= rows[i].ranks_max && rows[i].plan != NULL &&
                    rows[i].kind < TUTTI_CALL_ALL_TO_ALL; n++) {
            check_amounts(&rows[i], n, 0);
            check_amounts(&rows[i], n, n / 2);
        }
}

static int release(void **state)
{
    int rank;

    (void)state;
    for (rank = 0; rank < RANKS_MAX; rank++)
        tti_schedule_release(&members[rank].schedule);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_plan_does_what_its_kind_says),
        cmocka_unit_test(a_rank_without_a_slice_gets_the_result),
        cmocka_unit_test(barriers_wait_for_all),
        cmocka_unit_test(short_blocks_go_with_their_sizes),
        cmocka_unit_test(blocks_of_known_sizes_go_at_once),
        cmocka_unit_test(long_blocks_go_a_few_after_the_other),
        cmocka_unit_test(what_goes_to_a_root_takes_turns),
        cmocka_unit_test(what_a_root_deals_out_shares_its_link),
        cmocka_unit_test(slices_to_all_share_links),
        cmocka_unit_test(plans_do_what_their_amounts_say),
        cmocka_unit_test(few_lines_have_few_owners),
    };

    return cmocka_run_group_tests_name("plan", tests, NULL, release);
}
