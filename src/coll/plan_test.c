/* SPDX-License-Identifier: BSD-3-Clause
 *
 * plan_test.c
 * Goal    every plan moves and combines what its kind says, for any number of ranks, root and
 *         count.
 * Method  All ranks in one process: messages are queued by (sender, receiver), phase after phase,
 *         and the results compared bit by bit with plain loops that add from rank 0 on. Sums are of
 *         floats whose sum depends on the order. On the way it is checked that all ranks have as
 *         many phases, that every message sent in a phase is received in it with as many bytes,
 *         that no message lands on memory that is sent in the same phase, and that only memory of
 *         the rank is touched. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "coll/net/plan.h"
#include "coll/pattern.h"

enum { RANKS_MAX = 17, COUNT_MAX = 1023, MESSAGES_MAX = RANKS_MAX * RANKS_MAX };

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
} plan_case;

static const plan_case plans[] = {
    { "all_reduce one_shot", tti_plan_all_reduce_one_shot, ALL_REDUCE, false, true, false },
    { "all_reduce direct", tti_plan_all_reduce_direct, ALL_REDUCE, false, true, false },
    { "reduce to_root", tti_plan_reduce_to_root, REDUCE, true, true, false },
    { "reduce direct", tti_plan_reduce_direct, REDUCE, true, true, false },
    { "broadcast binomial", tti_plan_broadcast_binomial, BROADCAST, true, true, false },
    { "all_gather direct", tti_plan_all_gather_direct, ALL_GATHER, false, false, false },
    { "all_gather direct uneven", tti_plan_all_gather_direct, ALL_GATHER, false, false, true },
    { "gather direct", tti_plan_gather_direct, GATHER, true, false, false },
    { "scatter direct", tti_plan_scatter_direct, SCATTER, true, false, false },
    { "reduce_scatter direct", tti_plan_reduce_scatter_direct, REDUCE_SCATTER, false, false, false },
    { "reduce_scatter direct in place", tti_plan_reduce_scatter_direct, REDUCE_SCATTER, false, true,
      false },
    { "reduce_scatter direct uneven", tti_plan_reduce_scatter_direct, REDUCE_SCATTER, false, true,
      true },
    { "all_to_all direct", tti_plan_all_to_all_direct, ALL_TO_ALL, false, false, false },
    { "all_to_all direct uneven", tti_plan_all_to_all_direct, ALL_TO_ALL, false, true, true },
    { "gather_v direct", tti_plan_all_to_all_direct, GATHER_V, true, true, true },
    { "scatter_v direct", tti_plan_all_to_all_direct, SCATTER_V, true, false, true },
    { "barrier dissemination", tti_plan_barrier_dissemination, BARRIER, false, false, false },
};
enum { N_PLANS = sizeof plans / sizeof plans[0] };

typedef struct member {
    tti_schedule schedule;
    tti_binding  binding;
    float        in[COUNT_MAX], out[COUNT_MAX];
    float        list[RANKS_MAX][COUNT_MAX];
    void        *entries[RANKS_MAX];
    float        ins[RANKS_MAX][COUNT_MAX];
    const void  *in_entries[RANKS_MAX];
    int64_t      list_counts[RANKS_MAX], in_counts[RANKS_MAX];
    tti_block_sizes sizes[2 * RANKS_MAX];
    char        *scratch;
} member;

typedef struct message {
    int     to;
    int     from;
    int64_t bytes;
    char   *data;
} message;

typedef struct play {
    const plan_case *plan;
    int              n;
    int              root;
    int64_t          count;
} play;

static member  members[RANKS_MAX];
static message queue[MESSAGES_MAX];
static int     n_queued;

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

static void prepare(member *m, const play *p, int rank)
{
    tti_plan_input input;
    int64_t              i;
    int                  r;

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
                                .kernel = tti_reduce_kernel_for(TUTTI_OP_SUM, TUTTI_F32),
                                .element = sizeof(float), .n_ranks = p->n };
    if (p->plan->kind == REDUCE_SCATTER)
        m->binding.out = p->plan->in_place ? m->list[rank] : m->out;
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
        message *fresh = &queue[n_queued++];

        assert_in_range(n_queued, 1, MESSAGES_MAX);
        *fresh = (message){ sends[i].peer, rank, sends[i].block.bytes,
                            malloc((size_t)sends[i].block.bytes + 1) };
        assert_non_null(fresh->data);
        if (fresh->bytes > 0)
            memcpy(fresh->data, tti_block_at(&m->binding, &sends[i].block), (size_t)fresh->bytes);
    }
}

static void recv_one(const member *m, int rank, const tti_transfer *recv)
{
    int i;

    for (i = 0; i < n_queued; i++)
        if (queue[i].to == rank && queue[i].from == recv->peer)
            break;
    assert_true(i < n_queued);
    assert_int_equal(queue[i].bytes, recv->block.bytes);
    if (queue[i].bytes > 0)
        memcpy(tti_block_at(&m->binding, &recv->block), queue[i].data, (size_t)queue[i].bytes);
    free(queue[i].data);
    memmove(&queue[i], &queue[i + 1], (size_t)(--n_queued - i) * sizeof queue[0]);
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
        assert_int_equal(n_queued, 0);
        for (rank = 0; rank < p->n; rank++)
            tti_phase_steps(&members[rank].schedule, k, &members[rank].binding);
    }
}

static float sum(const play *p, int64_t i)
{
    float total = value(0, i);
    int   r;

    for (r = 1; r < p->n; r++)
        total += value(r, i);
    return total;
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
    int          r;

    for (i = 0; i < part_count(p, rank); i++) {
        float total = list_value(0, rank, i);

        for (r = 1; r < p->n; r++)
            total += list_value(r, rank, i);
        check_element(p, rank, i, got[i], total);
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
    const int64_t count = p->plan->uneven ? part_count(p, of) : p->count;
    int64_t       i;

    for (i = 0; i < count; i++) {
        const bool  sums = p->plan->kind == ALL_REDUCE || p->plan->kind == REDUCE;
        const float want = sums ? sum(p, i) : of < 0 ? list_value(p->root, rank, i) : value(of, i);

        check_element(p, rank, i, got[i], want);
    }
}

static void check_result(const play *p, int rank)
{
    const member *m = &members[rank];
    const bool    is_root = rank == p->root;
    int           r;

    switch (p->plan->kind) {
    case ALL_REDUCE: check_buffer(p, rank, m->in, 0); break;
    case REDUCE:
        if (is_root)
            check_buffer(p, rank, m->in, 0);
        break;
    case BROADCAST: check_buffer(p, rank, m->in, p->root); break;
    case ALL_GATHER:
    case GATHER:
        for (r = 0; r < p->n && (is_root || p->plan->kind == ALL_GATHER); r++)
            check_buffer(p, rank, m->list[r], r);
        break;
    case SCATTER: check_buffer(p, rank, m->out, -1); break;
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
    for (rank = 0; rank < p->n; rank++) {
        check_result(p, rank);
        free(members[rank].scratch);
    }
}

static void every_plan_does_what_its_kind_says(void **state)
{
    static const int64_t counts[] = { 0, 1, 3, 17, 1000, COUNT_MAX };
    play                 p;
    size_t               i, c;

    (void)state;
    for (i = 0; i < N_PLANS; i++)
        for (p.n = 1; p.n <= RANKS_MAX; p.n++)
            for (p.root = 0; p.root < (plans[i].has_root ? p.n : 1); p.root++)
                for (c = 0; c < sizeof counts / sizeof counts[0]; c++) {
                    p.plan = &plans[i];
                    p.count = counts[c];
                    play_one(&p);
                }
}

/* A rank that owns nothing takes part in the second phase all the same. */
static void a_rank_without_a_slice_gets_the_result(void **state)
{
    const play p = { .plan = &plans[1], .n = RANKS_MAX, .count = 3 };

    (void)state;
    assert_true(tti_slice_of(p.count, sizeof(float), p.n, p.n - 1).begin == p.count);
    play_one(&p);
}

/* The barrier lets nobody through before all have come: knowledge spreads with its messages. */
static void barrier_waits_for_all(void **state)
{
    int n, k, rank, i, n_sends;

    (void)state;
    for (n = 1; n <= RANKS_MAX; n++) {
        uint32_t knows[RANKS_MAX], next[RANKS_MAX];

        for (rank = 0; rank < n; rank++) {
            const tti_plan_input input = { .n_ranks = n, .rank = rank, .root = -1, .element = 1 };

            tti_schedule_clear(&members[rank].schedule);
            tti_plan_barrier_dissemination(&input, &members[rank].schedule);
            knows[rank] = 1u << rank;
        }
        for (k = 0; k < members[0].schedule.phases.n; k++) {
            memcpy(next, knows, sizeof next);
            for (rank = 0; rank < n; rank++) {
                const tti_transfer *sends = tti_phase_sends(&members[rank].schedule, k, &n_sends);

                for (i = 0; i < n_sends; i++)
                    next[sends[i].peer] |= knows[rank];
            }
            memcpy(knows, next, sizeof knows);
        }
        for (rank = 0; rank < n; rank++)
            assert_int_equal(knows[rank], (1u << n) - 1);
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
        cmocka_unit_test(barrier_waits_for_all),
    };

    return cmocka_run_group_tests_name("plan", tests, NULL, release);
}
