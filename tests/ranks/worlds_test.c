/* SPDX-License-Identifier: BSD-3-Clause
 *
 * worlds_test.c
 * Goal    worlds and groups come and go in any order: several worlds at once, made at the same instant by
 *         threads of one process, a new world after the last one has ended, groups destroyed in random
 *         orders with operations under way.
 * Method  processes and threads; the random order is drawn from a seed that rank 0 prints, and that
 *         TUTTI_TEST_SEED sets. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "harness/harness.h"
#include <tutti/tutti.h>

enum { PATH_BYTES = 4352, TIMEOUT_MS = 20000, WORLDS = 4, LIVE_MAX = 12, STEPS = 120, ROUNDS = 3 };

static void must(tutti_status st)
{
    if (st != TUTTI_OK)
        fail_msg("%s", tutti_last_error());
}

static void expect_sum(tutti_group *group, int32_t mine, int32_t sum)
{
    must(tutti_all_reduce(TUTTI_SPAN(&mine, 1), TUTTI_SUM, group));
    assert_int_equal(mine, sum);
}

/* ---- at the same instant ---- */

typedef struct opening {
    const char  *url;
    const char  *name;
    tutti_store *store; /* instead of url */
    int          rank;
    int          size;
    tutti_group *world;
    tutti_status status;
    char         words[512];
} opening;

static void *open_world(void *arg)
{
    opening           *o = arg;
    tutti_init_options opts = TUTTI_INIT_OPTIONS;

    opts.init_method = o->url;
    opts.store = o->store;
    if (o->store != NULL) {
        opts.rank = o->rank;
        opts.world_size = o->size;
    }
    opts.group_name = o->name;
    opts.timeout_ms = TIMEOUT_MS;
    o->status = tutti_create_process_group(&opts, &o->world);
    snprintf(o->words, sizeof o->words, "%s", o->status != TUTTI_OK ? tutti_last_error() : "");
    return NULL;
}

/* Every process opens four worlds by four threads at once; they are not mixed up. */
static void named_worlds_at_one_instant(tt_ctx *t)
{
    static const char *const names[] = { "a", "b", "c", "d" };
    opening                  o[WORLDS];
    pthread_t                id[WORLDS];
    int                      i;

    for (i = 0; i < WORLDS; i++) {
        o[i] = (opening){ .url = t->init_method, .name = names[(i + t->rank) % WORLDS] };
        assert_int_equal(pthread_create(&id[i], NULL, open_world, &o[i]), 0);
    }
    for (i = 0; i < WORLDS; i++) {
        pthread_join(id[i], NULL);
        if (o[i].status != TUTTI_OK)
            fail_msg("world %s: %s", o[i].name, o[i].words);
    }
    for (i = 0; i < WORLDS; i++) { /* in the order of names, on all ranks */
        opening *one = &o[(i - t->rank + WORLDS) % WORLDS];

        expect_sum(one->world, 1 << (8 * i), t->size << (8 * i));
    }
    for (i = 0; i < WORLDS; i++)
        must(tutti_destroy_process_group(o[i].world)); /* in another order on each rank */
}

/* Without names a second one of the same rank is refused while the first is on its way. */
static void a_second_one_at_the_same_instant(tt_ctx *t)
{
    tutti_store *store = NULL;
    opening      first, second, other;
    const char  *key = "tutti/world/1";
    pthread_t    id, other_id;

    (void)t;
    must(tutti_hash_store_open(&store));
    first = second = other = (opening){ .store = store, .size = 2 };
    other.rank = 1;
    assert_int_equal(pthread_create(&id, NULL, open_world, &first), 0);
    must(tutti_store_wait(store, &key, 1, TIMEOUT_MS)); /* open: its place is taken */
    open_world(&second);
    assert_int_equal(second.status, TUTTI_E_STATE);
    assert_non_null(strstr(second.words, "in another thread at this moment"));
    assert_int_equal(pthread_create(&other_id, NULL, open_world, &other), 0);
    pthread_join(id, NULL);
    pthread_join(other_id, NULL);
    assert_int_equal(first.status, TUTTI_OK);
    assert_int_equal(other.status, TUTTI_OK);
    /* and afterwards there may be more */
    second = (opening){ .store = store, .size = 1 };
    open_world(&second);
    assert_int_equal(second.status, TUTTI_OK);
    must(tutti_destroy_process_group(first.world));
    must(tutti_destroy_process_group(second.world));
    must(tutti_destroy_process_group(other.world));
    tutti_store_close(store);
}

/* ---- one after the other ---- */

static void a_world_after_the_last_one(tt_ctx *t)
{
    tutti_init_options opts = TUTTI_INIT_OPTIONS;
    tutti_group       *group = NULL;
    int                round;

    opts.init_method = t->init_method;
    opts.timeout_ms = TIMEOUT_MS;
    for (round = 0; round < 4; round++) {
        must(tutti_init_process_group(&opts));
        assert_int_equal(tutti_init_process_group(&opts), TUTTI_E_STATE);
        assert_string_equal(tutti_get_group_name(NULL), "0"); /* names begin anew */
        must(tutti_new_group(NULL, 0, NULL, &group));
        assert_string_equal(tutti_get_group_name(group), "1");
        expect_sum(group, round, round * t->size);
        must(tutti_destroy_process_group(NULL)); /* no barrier: whoever is fast joins the next one */
        assert_false(tutti_is_initialized());
        assert_int_equal(tutti_destroy_process_group(NULL), TUTTI_E_STATE);
    }
}

/* ---- random orders ---- */

typedef struct stress {
    tt_ctx      *t;
    uint32_t     n_busy; /* groups that were destroyed with works under way, in all rounds: what each rank posts, by its number */
    tutti_group *world;
    tutti_group *live[LIVE_MAX]; /* TUTTI_NON_MEMBER: of others */
    int          ranks[LIVE_MAX][TT_RANKS_MAX];
    int          n_ranks[LIVE_MAX];
    int          n;
    int          size;
    uint32_t     state;
} stress;

/* All ranks draw the same numbers. */
static int draw(stress *s, int below)
{
    s->state = s->state * 1664525u + 1013904223u;
    return (int)((s->state >> 8) % (uint32_t)below);
}

static int draw_ranks(stress *s, int out[TT_RANKS_MAX])
{
    int n = 0, r;

    while (n == 0)
        for (r = 0; r < s->size; r++)
            if (draw(s, 2) == 0)
                out[n++] = r;
    return n;
}

static bool is_mine(const tutti_group *group)
{
    return group != TUTTI_NON_MEMBER;
}

static void add_group(stress *s, bool local)
{
    tutti_group_options opts = TUTTI_GROUP_OPTIONS;
    const int           at = s->n;

    if (s->n == LIVE_MAX)
        return;
    opts.use_local_synchronization = local;
    s->n_ranks[at] = draw_ranks(s, s->ranks[at]);
    must(tutti_new_group(s->ranks[at], s->n_ranks[at], &opts, &s->live[at]));
    s->n++;
}

/* The lower half of the members becomes a group; only members take part. */
static void split_one(stress *s, int i)
{
    const int half = (s->n_ranks[i] + 1) / 2;
    const int at = s->n;
    int       list[TT_RANKS_MAX], r;

    if (s->n == LIVE_MAX)
        return;
    for (r = 0; r < half; r++) {
        list[r] = r;
        s->ranks[at][r] = s->ranks[i][r];
    }
    s->n_ranks[at] = half;
    s->live[at] = TUTTI_NON_MEMBER;
    if (is_mine(s->live[i]))
        must(tutti_split_group(s->live[i], (const int *const[]){ list }, &half, 1, NULL, &s->live[at]));
    s->n++;
}

static void remove_at(stress *s, int i)
{
    s->n--;
    s->live[i] = s->live[s->n];
    s->n_ranks[i] = s->n_ranks[s->n];
    memcpy(s->ranks[i], s->ranks[s->n], sizeof s->ranks[i]);
}

/* How works end whose group ends: well, aborted here, or because the others were faster. */
static void check_end(tutti_work *work)
{
    const tutti_status st = tutti_work_wait(work);

    if (st != TUTTI_OK && st != TUTTI_E_ABORTED && st != TUTTI_E_PEER)
        fail_msg("%s", tutti_last_error());
    tutti_work_free(work);
}

/* Whoever ends a group with works under way ends all calls on it, on all members: so nobody is inside of an earlier one any more. */
static void leave_earlier_calls(stress *s, int i)
{
    int k;

    s->n_busy++;
    tt_post(s->t, s->t->rank);
    for (k = 0; k < s->n_ranks[i] && is_mine(s->live[i]); k++)
        tt_await(s->t, s->ranks[i][k], s->n_busy);
}

/* With a collective and a message under way that may never end well. */
static void destroy_busy(stress *s, int i)
{
    tutti_group *group = s->live[i];
    tutti_work  *works[2] = { NULL, NULL };
    int32_t      x = 1, y = 0;
    int          k, peer;

    leave_earlier_calls(s, i);
    if (is_mine(group)) {
        must(tutti_all_reduce_async(TUTTI_SPAN(&x, 1), TUTTI_SUM, group, &works[0]));
        peer = s->ranks[i][0] != s->ranks[i][s->n_ranks[i] - 1] ? tutti_get_rank(group) == 0 : -1;
        if (peer >= 0)
            tutti_irecv_in_group(TUTTI_SPAN(&y, 1), peer, 77, group, &works[1]);
        must(tutti_destroy_process_group(group));
        for (k = 0; k < 2; k++)
            if (works[k] != NULL)
                check_end(works[k]);
    }
    remove_at(s, i);
}

static void use_one(stress *s, int i)
{
    tutti_work *work = NULL;
    int32_t     x = 1;

    if (!is_mine(s->live[i]))
        return;
    must(tutti_all_reduce_async(TUTTI_SPAN(&x, 1), TUTTI_SUM, s->live[i], &work));
    expect_sum(s->live[i], 1, s->n_ranks[i]);
    must(tutti_work_wait(work));
    assert_int_equal(x, s->n_ranks[i]);
    tutti_work_free(work);
}

static void step(stress *s)
{
    const int what = draw(s, 10);
    const int i = s->n > 0 ? draw(s, s->n) : -1;

    if (i < 0 || what < 2)
        add_group(s, what == 0);
    else if (what == 2)
        split_one(s, i);
    else if (what == 3 && is_mine(s->live[i]))
        must(tutti_destroy_process_group(s->live[i])), remove_at(s, i);
    else if (what == 3)
        remove_at(s, i);
    else if (what == 4)
        destroy_busy(s, i);
    else
        use_one(s, i);
}

/* Rank 0's choice reaches all over the world. */
static uint32_t choose_seed(tt_ctx *t, tutti_group *world)
{
    const char *given = getenv("TUTTI_TEST_SEED");
    int32_t     seed = given != NULL ? atoi(given) : (int32_t)(time(NULL) ^ (getpid() << 8)) & 0x7fffffff;

    must(tutti_broadcast(TUTTI_SPAN(&seed, 1), 0, world));
    if (t->rank == 0)
        printf("seed %d (TUTTI_TEST_SEED)\n", seed);
    return (uint32_t)seed;
}

static void groups_in_random_orders(tt_ctx *t)
{
    tutti_init_options opts = TUTTI_INIT_OPTIONS;
    static _Thread_local stress s;
    uint32_t           n_busy = 0;
    int                round, i;

    opts.init_method = t->init_method;
    opts.timeout_ms = TIMEOUT_MS;
    for (round = 0; round < ROUNDS; round++) {
        s = (stress){ .t = t, .n_busy = n_busy, .size = t->size };
        must(tutti_create_process_group(&opts, &s.world));
        tutti_use_group(s.world);
        s.state = choose_seed(t, s.world);
        for (i = 0; i < STEPS; i++)
            step(&s);
        n_busy = s.n_busy;
        expect_sum(s.world, 1, t->size);
        tutti_use_group(NULL);
        must(tutti_destroy_process_group(s.world)); /* with whatever is left */
    }
}

int main(void)
{
    static const tt_test tests[] = {
        TT_TEST(named_worlds_at_one_instant, .ranks = 3, .transports = "shm,tcp", .init = TT_INIT_NONE),
        TT_TEST(a_second_one_at_the_same_instant, .ranks = 1, .init = TT_INIT_NONE),
        TT_TEST(a_world_after_the_last_one, .ranks = 3, .transports = "shm,tcp", .init = TT_INIT_NONE),
        TT_TEST(groups_in_random_orders, .ranks = 4, .transports = "shm,tcp,threads,threads-tcp",
                .limit_ms = 60000, .init = TT_INIT_NONE),
    };

    return tt_main(tests, sizeof tests / sizeof tests[0]);
}
