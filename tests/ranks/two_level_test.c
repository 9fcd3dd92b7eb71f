/* SPDX-License-Identifier: BSD-3-Clause
 *
 * two_level_test.c
 * Goal    collectives of ranks on two hosts give what they promise: any groups of them, in any order, any sizes, blocks of
 *         different sizes, also begun and waited for later; sums have the bits of the promised order, on all ranks alike. A
 *         member that dies, stays away or calls something else ends the call on both hosts.
 * Method  real processes in two network namespaces; ranks of a host follow each other, or not. Sums are of inexact numbers,
 *         and are made again by hand, host by host. */
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "harness/harness.h"
#include <tutti/tutti.h>

#define OK(call)                                                                                       \
    do {                                                                                               \
        if ((call) != TUTTI_OK)                                                                        \
            fail_msg("%s: %s", #call, tutti_last_error());                                             \
    } while (0)

enum { MOST = 2 * 1024 * 1024, SOON_MS = 5000, VICTIM = 2, OTHER_VICTIM = 1, BEGUN = TT_MARKS - 1 };

static int64_t now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* A group, as its members see it. */
typedef struct team {
    tutti_group *group;
    const int   *ranks;
    int          n;
} team;

static float value(int rank, int64_t i, int turn)
{
    return 1.0f / (float)(1 + (i * 7 + rank * 13 + turn * 101) % 1009);
}

static int hosts[TT_RANKS_MAX]; /* of the ranks */

static void find_hosts(tt_ctx *t)
{
    OK(tutti_all_gather_into_tensor(TUTTI_SPAN(hosts, t->size), TUTTI_SPAN(&t->host, 1), t->group));
}

static int host_of(int rank)
{
    return hosts[rank];
}

/* The sum of a host's members, in the order of the group; begun: whether there are any. */
static float sum_of_host(const team *m, int host, int64_t i, int turn, bool *any)
{
    float sum = 0;
    int   k;

    *any = false;
    for (k = 0; k < m->n; k++)
        if (host_of(m->ranks[k]) == host) {
            sum = *any ? sum + value(m->ranks[k], i, turn) : value(m->ranks[k], i, turn);
            *any = true;
        }
    return sum;
}

/* Host by host, the host of the first member first. */
static float sum_of_all(const team *m, int64_t i, int turn)
{
    const int first = host_of(m->ranks[0]);
    bool      any, others;
    float     sum = sum_of_host(m, first, i, turn, &any);
    float     rest = sum_of_host(m, 1 - first, i, turn, &others);

    return others ? sum + rest : sum;
}

static void check_sums(const team *m, const float *x, int64_t first, int64_t count, int turn)
{
    int64_t i;

    for (i = 0; i < count; i++) {
        const float want = sum_of_all(m, first + i, turn);

        if (memcmp(&want, &x[i], sizeof want) != 0)
            fail_msg("element %lld of %lld is %.9g, not %.9g", (long long)i, (long long)count, x[i], want);
    }
}

static void fill(float *x, int rank, int64_t count, int turn)
{
    int64_t i;

    for (i = 0; i < count; i++)
        x[i] = value(rank, i, turn);
}

static void reductions(tt_ctx *t, const team *m, float *x, float *y, int64_t count, int turn)
{
    const int     root = m->ranks[turn % m->n], me = tutti_get_rank(m->group);
    const int64_t part = count / m->n;

    fill(x, t->rank, count, turn);
    OK(tutti_all_reduce(TUTTI_SPAN(x, count), TUTTI_SUM, m->group));
    check_sums(m, x, 0, count, turn);
    fill(x, t->rank, count, turn + 1);
    OK(tutti_reduce(TUTTI_SPAN(x, count), root, TUTTI_SUM, m->group));
    if (t->rank == root)
        check_sums(m, x, 0, count, turn + 1);
    fill(x, t->rank, count, turn + 2);
    OK(tutti_reduce_scatter_tensor(TUTTI_SPAN(y, part), TUTTI_SPAN(x, part * m->n), TUTTI_SUM, m->group));
    check_sums(m, y, part * me, part, turn + 2);
}

static void check_values(const float *x, int rank, int64_t count, int turn)
{
    int64_t i;

    for (i = 0; i < count; i++)
        if (x[i] != value(rank, i, turn))
            fail_msg("element %lld of rank %d is %g, not %g", (long long)i, rank, x[i], value(rank, i, turn));
}

static void moves(tt_ctx *t, const team *m, float *x, float *y, int64_t count, int turn)
{
    const int     root = m->ranks[(turn + 1) % m->n];
    const int64_t part = count / m->n;
    int           k;

    fill(x, t->rank, count, turn + 3);
    OK(tutti_broadcast(TUTTI_SPAN(x, count), root, m->group));
    check_values(x, root, count, turn + 3);
    fill(x, t->rank, part, turn + 4);
    OK(tutti_all_gather_into_tensor(TUTTI_SPAN(y, part * m->n), TUTTI_SPAN(x, part), m->group));
    for (k = 0; k < m->n; k++)
        check_values(y + k * part, m->ranks[k], part, turn + 4);
    OK(tutti_barrier(m->group));
}

/* To a member and from it: every member's part. */
static void rooted_moves(tt_ctx *t, const team *m, float *x, float *y, int64_t part, int turn)
{
    const int  root = m->ranks[turn % m->n];
    const bool is_root = t->rank == root;
    tutti_span parts[TT_RANKS_MAX];
    int        k;

    for (k = 0; k < m->n; k++)
        parts[k] = TUTTI_SPAN(y + k * part, part);
    fill(x, t->rank, part, turn + 5);
    OK(tutti_gather(is_root ? parts : NULL, is_root ? m->n : 0, TUTTI_SPAN(x, part), root, m->group));
    for (k = 0; k < m->n && is_root; k++)
        check_values(y + k * part, m->ranks[k], part, turn + 5);
    for (k = 0; k < m->n && is_root; k++)
        fill(y + k * part, m->ranks[k], part, turn + 6);
    OK(tutti_scatter(TUTTI_SPAN(x, part), is_root ? parts : NULL, is_root ? m->n : 0, root, m->group));
    check_values(x, t->rank, part, turn + 6);
}

/* Of group ranks; a third of the blocks is empty. */
static int64_t block_count(int from, int to, int64_t part)
{
    return part * ((from + 2 * to) % 3) / 2;
}

static void blocks(const team *m, float *x, float *y, int64_t part, int turn)
{
    const int me = tutti_get_rank(m->group);
    int64_t   gives[TT_RANKS_MAX], gets[TT_RANKS_MAX], in = 0, out = 0;
    int       k;

    for (k = 0; k < m->n; k++) {
        gives[k] = block_count(me, k, part);
        gets[k] = block_count(k, me, part);
        fill(x + in, me, gives[k], turn + 7 + k);
        in += gives[k];
        out += gets[k];
    }
    OK(tutti_all_to_all_single(TUTTI_SPAN(y, out), TUTTI_SPAN(x, in), gets, gives, m->group));
    for (out = 0, k = 0; k < m->n; k++) {
        check_values(y + out, k, gets[k], turn + 7 + me);
        out += gets[k];
    }
}

static void all_sizes(tt_ctx *t, const team *m)
{
    static const int64_t sizes[] = { 0, 1, 3, 100, 1023, 16385, 70001, 300007, MOST };
    float               *x = tt_floats(t, MOST, 0.0f), *y = tt_floats(t, MOST, 0.0f);
    size_t               i;

    if (m->group == TUTTI_NON_MEMBER)
        return;
    for (i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        reductions(t, m, x, y, sizes[i], (int)i * 5);
        moves(t, m, x, y, sizes[i], (int)i * 5);
        rooted_moves(t, m, x, y, sizes[i] / m->n, (int)i * 5);
        blocks(m, x, y, sizes[i] / m->n, (int)i * 5);
    }
}

static void in_group(tt_ctx *t, const int *ranks, int n)
{
    team m = { .ranks = ranks, .n = n };

    OK(tutti_new_group(ranks, n, NULL, &m.group));
    all_sizes(t, &m);
    OK(tutti_barrier(t->group));
}

static void the_world(tt_ctx *t)
{
    int  ranks[TT_RANKS_MAX], r;
    team m = { .group = t->group, .ranks = ranks, .n = t->size };

    find_hosts(t);
    for (r = 0; r < t->size; r++)
        ranks[r] = r;
    all_sizes(t, &m);
}

/* Members of a host that do not follow each other, that are fewer or more than on the other, and one alone. */
static void any_group(tt_ctx *t)
{
    static const int even[] = { 0, 1, 3, 4 }, other_even[] = { 1, 2, 4, 5 }, uneven[] = { 0, 1, 2, 4 },
                     lonely[] = { 2, 3, 4, 5 }, apart[] = { 1, 5 };

    find_hosts(t);
    in_group(t, even, 4);
    in_group(t, other_even, 4);
    in_group(t, uneven, 4);
    in_group(t, lonely, 4);
    in_group(t, apart, 2);
}

/* Several are under way, and another one in another group, before any is waited for. */
static void begun_and_waited_for(tt_ctx *t)
{
    static const int     three[] = { 0, 2, 3 };
    static const int64_t sizes[] = { 70001, 5, 600001, 1000 };
    int                  ranks[] = { 0, 1, 2, 3 }, turn, i;
    team                 all = { .group = t->group, .ranks = ranks, .n = 4 }, other = { .ranks = three, .n = 3 };
    tutti_work          *works[5];
    float               *x[5];

    find_hosts(t);
    OK(tutti_new_group(three, 3, NULL, &other.group));
    for (i = 0; i < 5; i++)
        x[i] = tt_floats(t, 600001, 0.0f);
    for (turn = 0; turn < 6; turn++) {
        for (i = 0; i < 4; i++) {
            fill(x[i], t->rank, sizes[i], turn + i);
            OK(tutti_all_reduce_async(TUTTI_SPAN(x[i], sizes[i]), TUTTI_SUM, t->group, &works[i]));
        }
        fill(x[4], t->rank, 30000, turn);
        works[4] = NULL;
        if (t->rank != 1)
            OK(tutti_all_reduce_async(TUTTI_SPAN(x[4], 30000), TUTTI_SUM, other.group, &works[4]));
        for (i = t->rank != 1 ? 4 : 3; i >= 0; i--) {
            OK(tutti_work_wait(works[i]));
            tutti_work_free(works[i]);
        }
        for (i = 0; i < 4; i++)
            check_sums(&all, x[i], 0, sizes[i], turn + i);
        if (t->rank != 1)
            check_sums(&other, x[4], 0, 30000, turn);
    }
    OK(tutti_barrier(t->group));
}

/* The layout does not matter where that is asked for. */
static void in_rank_order_if_promised(tt_ctx *t)
{
    tutti_group *group = NULL;
    float       *x = tt_floats(t, 70001, 0.0f), sum;
    int64_t      i;
    int          r;

    assert_int_equal(setenv("TUTTI_REPRODUCIBLE", "1", 1), 0);
    OK(tutti_new_group(NULL, 0, NULL, &group));
    fill(x, t->rank, 70001, 0);
    OK(tutti_all_reduce(TUTTI_SPAN(x, 70001), TUTTI_SUM, group));
    for (i = 0; i < 70001; i++) {
        for (sum = value(0, i, 0), r = 1; r < t->size; r++)
            sum += value(r, i, 0);
        assert_memory_equal(&sum, &x[i], sizeof sum);
    }
    OK(tutti_barrier(t->group));
}

/* ---- failures -------------------------------------------------------------------------------------- */

static void all_have_begun(tt_ctx *t)
{
    OK(tutti_barrier(t->group));
    tt_post(t, BEGUN);
    tt_await(t, BEGUN, (uint32_t)t->size);
}

static void expect_words(const char *part)
{
    if (strstr(tutti_last_error(), part) == NULL)
        fail_msg("'%s' is not in: %s", part, tutti_last_error());
}

static tutti_status sum_all(tt_ctx *t, float *x, float *y)
{
    (void)y;
    return tutti_all_reduce(TUTTI_SPAN(x, MOST), TUTTI_SUM, t->group);
}

/* Short blocks, by way of carriers. */
static tutti_status swap_blocks(tt_ctx *t, float *x, float *y)
{
    return tutti_all_to_all_single(TUTTI_SPAN(y, 100 * t->size), TUTTI_SPAN(x, 100 * t->size), NULL, NULL, t->group);
}

static void survive(tt_ctx *t, int victim, const char *words, tutti_status (*call)(tt_ctx *, float *, float *),
                    const char *name)
{
    float       *x = tt_floats(t, MOST, 1.0f), *y = tt_floats(t, 100 * t->size, 0.0f);
    tutti_status st = TUTTI_OK;
    int64_t      begun;

    all_have_begun(t);
    if (t->rank == victim)
        tt_die();
    begun = now_ms();
    while (st == TUTTI_OK)
        st = call(t, x, y);
    assert_true(st == TUTTI_E_PEER);
    assert_true(now_ms() - begun < SOON_MS);
    expect_words(words);
    expect_words(name);
    assert_int_equal(tutti_barrier(t->group), st);
}

static void a_death_ends_both_hosts(tt_ctx *t)
{
    survive(t, VICTIM, "rank 2", sum_all, "all_reduce #");
}

static void a_death_on_the_first_host_ends_both(tt_ctx *t)
{
    survive(t, OTHER_VICTIM, "rank 1", sum_all, "all_reduce #");
}

static void a_death_among_blocks_ends_both_hosts(tt_ctx *t)
{
    survive(t, VICTIM, "rank 2", swap_blocks, "all_to_all #");
}

static void who_stays_away_is_named(tt_ctx *t)
{
    float *x = tt_floats(t, MOST, 1.0f);

    all_have_begun(t);
    if (t->rank != VICTIM) {
        assert_int_equal(tutti_set_timeout(t->group, 700), TUTTI_OK); /* making the world may take longer */
        assert_int_equal(tutti_all_reduce(TUTTI_SPAN(x, MOST), TUTTI_SUM, t->group), TUTTI_E_TIMEOUT);
        expect_words("all_reduce #");
        expect_words("rank");
        /* The other host misses the message of whoever carries for the one who stays away. */
        if (strstr(tutti_last_error(), "no message from") != NULL)
            expect_words("and the others of their hosts");
        tt_post(t, 0);
    }
    tt_await(t, 0, (uint32_t)t->size - 1);
}

static void who_calls_something_else_is_told(tt_ctx *t)
{
    float  *x = tt_floats(t, MOST, 1.0f);
    int64_t begun;

    all_have_begun(t);
    begun = now_ms();
    assert_int_equal(tutti_all_reduce(TUTTI_SPAN(x, t->rank == VICTIM ? 100 : MOST), TUTTI_SUM, t->group),
                     TUTTI_E_MISMATCH);
    assert_true(now_ms() - begun < SOON_MS);
    expect_words("all_reduce #");
}

int main(void)
{
    static const tt_test tests[] = {
        TT_TEST(the_world, .ranks = 4, .hosts = 2, .limit_ms = 90000),
        TT_TEST(the_world, .ranks = 8, .hosts = 2, .limit_ms = 120000),
        TT_TEST(the_world, .ranks = 3, .hosts = 2, .limit_ms = 90000),
        TT_TEST(the_world, .ranks = 5, .hosts = 2, .mixed = true, .limit_ms = 90000),
        TT_TEST(any_group, .ranks = 6, .hosts = 2, .limit_ms = 180000),
        TT_TEST(any_group, .ranks = 6, .hosts = 2, .mixed = true, .limit_ms = 180000),
        TT_TEST(begun_and_waited_for, .ranks = 4, .hosts = 2, .limit_ms = 60000),
        TT_TEST(in_rank_order_if_promised, .ranks = 4, .hosts = 2, .mixed = true),
        TT_TEST(a_death_ends_both_hosts, .ranks = 4, .hosts = 2, .dies = VICTIM),
        TT_TEST(a_death_on_the_first_host_ends_both, .ranks = 5, .hosts = 2, .mixed = true, .dies = OTHER_VICTIM),
        TT_TEST(a_death_among_blocks_ends_both_hosts, .ranks = 4, .hosts = 2, .dies = VICTIM),
        TT_TEST(who_stays_away_is_named, .ranks = 4, .hosts = 2),
        TT_TEST(who_calls_something_else_is_told, .ranks = 4, .hosts = 2),
    };

    return tt_main(tests, sizeof tests / sizeof tests[0]);
}
