/* SPDX-License-Identifier: BSD-3-Clause
 *
 * collective_test.c
 * Goal    each public collective hands the right call to the backend, on every rank, and refuses
 *         every wrong argument before anything happens, naming it.
 * Method  three ranks as threads for the data; a world of one for the arguments. */
#include "fake_backend.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <cmocka.h>
#include "group/check.h"

enum { N = 3, COUNT = 4, ROOT = 1, LONG_MS = 30000 };

/* ---- data ---- */

static void fill(int32_t *x, int n, int base)
{
    int i;

    for (i = 0; i < n; i++)
        x[i] = base + i;
}

static bool is(const int32_t *x, int n, int base, int step)
{
    int i;

    for (i = 0; i < n; i++)
        if (x[i] != base + step * i)
            return false;
    return true;
}

static tutti_span part(int32_t *x)
{
    return TUTTI_SPAN(x, COUNT);
}

static void finish(tutti_status st, tutti_work **work)
{
    CHECK(st == TUTTI_OK);
    if (*work != NULL)
        CHECK(tutti_work_wait(*work) == TUTTI_OK);
    tutti_work_free(*work);
    *work = NULL;
}

/* Values of rank r are 100 r + i. The sum over ranks 0, 1, 2 is 300 + 3 i. */
static void reduce_kinds(fake_rank *r, bool async)
{
    int32_t     x[COUNT];
    tutti_work *w = NULL;

    fill(x, COUNT, 100 * r->rank);
    finish(async ? tutti_all_reduce_async(part(x), TUTTI_SUM, NULL, &w)
                 : tutti_all_reduce(part(x), TUTTI_SUM, NULL),
           &w);
    CHECK(is(x, COUNT, 300, 3));

    fill(x, COUNT, 100 * r->rank);
    finish(async ? tutti_reduce_async(part(x), ROOT, TUTTI_SUM, NULL, &w)
                 : tutti_reduce(part(x), ROOT, TUTTI_SUM, NULL),
           &w);
    CHECK(r->rank == ROOT ? is(x, COUNT, 300, 3) : is(x, COUNT, 100 * r->rank, 1));

    fill(x, COUNT, 100 * r->rank);
    finish(async ? tutti_broadcast_async(part(x), ROOT, NULL, &w)
                 : tutti_broadcast(part(x), ROOT, NULL),
           &w);
    CHECK(is(x, COUNT, 100 * ROOT, 1));
}

static void gather_kinds(fake_rank *r, bool async)
{
    int32_t     all[N][COUNT];
    tutti_span  list[N] = { part(all[0]), part(all[1]), part(all[2]) };
    const bool  root = r->rank == ROOT;
    int32_t     x[COUNT];
    tutti_work *w = NULL;
    int         i;

    memset(all, 0, sizeof all);
    fill(x, COUNT, 100 * r->rank);
    finish(async ? tutti_all_gather_async(list, N, part(x), NULL, &w)
                 : tutti_all_gather(list, N, part(x), NULL),
           &w);
    for (i = 0; i < N; i++)
        CHECK(is(all[i], COUNT, 100 * i, 1));

    memset(all, 0, sizeof all);
    finish(async ? tutti_gather_async(root ? list : NULL, root ? N : 0, part(x), ROOT, NULL, &w)
                 : tutti_gather(root ? list : NULL, root ? N : 0, part(x), ROOT, NULL),
           &w);
    for (i = 0; i < N; i++)
        CHECK(is(all[i], COUNT, root ? 100 * i : 0, root ? 1 : 0));

    for (i = 0; i < N; i++)
        fill(all[i], COUNT, 1000 * i);
    finish(async ? tutti_scatter_async(part(x), root ? list : NULL, root ? N : 0, ROOT, NULL, &w)
                 : tutti_scatter(part(x), root ? list : NULL, root ? N : 0, ROOT, NULL),
           &w);
    CHECK(is(x, COUNT, 1000 * r->rank, 1));
}

/* Entry j of rank r has 1000 j + 100 r + i; its sum over ranks is 3000 j + 300 + 3 i. */
static void fill_entries(int32_t entries[N][COUNT], int rank)
{
    int i;

    for (i = 0; i < N; i++)
        fill(entries[i], COUNT, 1000 * i + 100 * rank);
}

static void reduce_scatter_kinds(fake_rank *r, bool async)
{
    int32_t     all[N][COUNT];
    tutti_span  list[N] = { part(all[0]), part(all[1]), part(all[2]) };
    tutti_span  uneven[N] = { part(all[0]), part(all[1]), part(all[2]) };
    tutti_span  flat = TUTTI_SPAN(&all[0][0], N * COUNT);
    int32_t     x[COUNT];
    tutti_work *w = NULL;
    int         i;

    fill_entries(all, r->rank);
    finish(async ? tutti_reduce_scatter_async(part(x), list, N, TUTTI_SUM, NULL, &w)
                 : tutti_reduce_scatter(part(x), list, N, TUTTI_SUM, NULL),
           &w);
    CHECK(is(x, COUNT, 3000 * r->rank + 300, 3));
    for (i = 0; i < N; i++)
        CHECK(is(all[i], COUNT, 1000 * i + 100 * r->rank, 1)); /* only read */

    /* in place: out is the own part of in */
    finish(async ? tutti_reduce_scatter_tensor_async(list[r->rank], flat, TUTTI_SUM, NULL, &w)
                 : tutti_reduce_scatter_tensor(list[r->rank], flat, TUTTI_SUM, NULL),
           &w);
    for (i = 0; i < N; i++)
        CHECK(i == r->rank ? is(all[i], COUNT, 3000 * i + 300, 3)
                           : is(all[i], COUNT, 1000 * i + 100 * r->rank, 1));

    /* rank i's part has i + 1 elements */
    fill_entries(all, r->rank);
    for (i = 0; i < N; i++)
        uneven[i].count = i + 1;
    finish(async ? tutti_reduce_scatter_async(TUTTI_SPAN(x, r->rank + 1), uneven, N, TUTTI_SUM, NULL, &w)
                 : tutti_reduce_scatter(TUTTI_SPAN(x, r->rank + 1), uneven, N, TUTTI_SUM, NULL),
           &w);
    CHECK(is(x, r->rank + 1, 3000 * r->rank + 300, 3));
}

/* Rank r gives rank j: r + j elements (none to itself and from 0 to 0), 1000 j + 100 r + i. */
static void all_to_all_kinds(fake_rank *r, bool async)
{
    int32_t     in[N][COUNT], out[N][COUNT], flat[N * COUNT], got[N * COUNT];
    tutti_span  ins[N], outs[N];
    int64_t     splits[N];
    tutti_work *w = NULL;
    int         i, n = 0;

    fill_entries(in, r->rank);
    memset(out, 0, sizeof out);
    for (i = 0; i < N; i++) {
        splits[i] = i == r->rank ? 0 : i + r->rank;
        ins[i] = TUTTI_SPAN(in[i], splits[i]);
        outs[i] = TUTTI_SPAN(out[i], splits[i]);
        fill(flat + n, (int)splits[i], 1000 * i + 100 * r->rank);
        n += (int)splits[i];
    }
    finish(async ? tutti_all_to_all_async(outs, N, ins, N, NULL, &w)
                 : tutti_all_to_all(outs, N, ins, N, NULL),
           &w);
    for (i = 0; i < N; i++)
        CHECK(is(out[i], (int)splits[i], 1000 * r->rank + 100 * i, 1));

    finish(async ? tutti_all_to_all_single_async(TUTTI_SPAN(got, n), TUTTI_SPAN(flat, n), splits, splits,
                                                 NULL, &w)
                 : tutti_all_to_all_single(TUTTI_SPAN(got, n), TUTTI_SPAN(flat, n), splits, splits, NULL),
           &w);
    for (n = 0, i = 0; i < N; n += (int)splits[i++])
        CHECK(is(got + n, (int)splits[i], 1000 * r->rank + 100 * i, 1));

    /* equal blocks */
    for (i = 0; i < N; i++)
        fill(flat + COUNT * i, COUNT, 1000 * i + 100 * r->rank);
    finish(async ? tutti_all_to_all_single_async(TUTTI_SPAN(got, N * COUNT), TUTTI_SPAN(flat, N * COUNT),
                                                 NULL, NULL, NULL, &w)
                 : tutti_all_to_all_single(TUTTI_SPAN(got, N * COUNT), TUTTI_SPAN(flat, N * COUNT), NULL,
                                           NULL, NULL),
           &w);
    for (i = 0; i < N; i++)
        CHECK(is(got + COUNT * i, COUNT, 1000 * r->rank + 100 * i, 1));
}

/* In place: in is this rank's own part of out. */
static void into_tensor(fake_rank *r, bool async)
{
    int32_t     out[N * COUNT] = { 0 };
    int32_t    *own = out + r->rank * COUNT;
    tutti_span  whole = TUTTI_SPAN(out, N * COUNT);
    tutti_work *w = NULL;
    int         i;

    fill(own, COUNT, 100 * r->rank);
    finish(async ? tutti_all_gather_into_tensor_async(whole, part(own), NULL, &w)
                 : tutti_all_gather_into_tensor(whole, part(own), NULL),
           &w);
    for (i = 0; i < N; i++)
        CHECK(is(out + i * COUNT, COUNT, 100 * i, 1));
}

static void empty_kinds(fake_rank *r, bool async)
{
    tutti_span  none = tutti_span_of(NULL, 0, TUTTI_F32);
    tutti_span  list[N] = { none, none, none };
    const bool  root = r->rank == ROOT;
    tutti_work *w = NULL;

    finish(async ? tutti_all_reduce_async(none, TUTTI_AVG, NULL, &w)
                 : tutti_all_reduce(none, TUTTI_AVG, NULL),
           &w);
    finish(async ? tutti_all_gather_into_tensor_async(none, none, NULL, &w)
                 : tutti_all_gather_into_tensor(none, none, NULL),
           &w);
    finish(async ? tutti_scatter_async(none, root ? list : NULL, root ? N : 0, ROOT, NULL, &w)
                 : tutti_scatter(none, root ? list : NULL, root ? N : 0, ROOT, NULL),
           &w);
    finish(async ? tutti_reduce_scatter_tensor_async(none, none, TUTTI_SUM, NULL, &w)
                 : tutti_reduce_scatter_tensor(none, none, TUTTI_SUM, NULL),
           &w);
    finish(async ? tutti_all_to_all_async(list, N, list, N, NULL, &w)
                 : tutti_all_to_all(list, N, list, N, NULL),
           &w);
    finish(async ? tutti_barrier_async(NULL, &w) : tutti_barrier(NULL), &w);
}

static void all_kinds(fake_rank *r)
{
    const bool async = *(const bool *)r->arg;

    reduce_kinds(r, async);
    gather_kinds(r, async);
    into_tensor(r, async);
    reduce_scatter_kinds(r, async);
    all_to_all_kinds(r, async);
    empty_kinds(r, async);
    CHECK(tti_queue_next(r->world) == 20); /* 19 operations, the empty ones too took their turn */
}

static void test_blocking_data(void **state)
{
    bool async = false;

    (void)state;
    assert_int_equal(fake_ranks(N, all_kinds, &async), 0);
}

static void test_async_data(void **state)
{
    bool async = true;

    (void)state;
    assert_int_equal(fake_ranks(N, all_kinds, &async), 0);
}

/* Roots are global ranks: in the group {0, 2} the root 2 is group rank 1. */
static void sub_group(fake_rank *r)
{
    const int    members[] = { 2, 0 };
    tutti_group *group = TUTTI_NO_GROUP;
    int32_t      x = 10 + r->rank;

    CHECK(tutti_new_group(members, 2, NULL, &group) == TUTTI_OK);
    CHECK((group == TUTTI_NON_MEMBER) == (r->rank == 1));
    CHECK(tutti_broadcast(TUTTI_SPAN(&x, 1), 2, group) == TUTTI_OK);
    CHECK(x == (r->rank == 1 ? 11 : 12));
    if (r->rank != 1) {
        CHECK(tutti_broadcast(TUTTI_SPAN(&x, 1), 1, group) == TUTTI_E_ARG);
        CHECK(strstr(tutti_last_error(), "src 1 is not in the group") != NULL);
    }
}

static void test_roots_are_global(void **state)
{
    (void)state;
    assert_int_equal(fake_ranks(N, sub_group, NULL), 0);
}

/* ---- one span that is cut into equal parts, beside, over and in the other ---- */

enum { PAIR = 2 };

static void test_apart(void **state)
{
    uint8_t          b[8];
    const tutti_span four = TUTTI_SPAN(b + 2, 4);

    (void)state;
    assert_true(tti_are_apart(four, TUTTI_SPAN(b + 6, 2)));
    assert_true(tti_are_apart(TUTTI_SPAN(b + 6, 2), four));
    assert_true(tti_are_apart(four, TUTTI_SPAN(b, 2)));
    assert_true(tti_are_apart(TUTTI_SPAN(b, 2), four));
    assert_false(tti_are_apart(four, TUTTI_SPAN(b + 5, 3)));
    assert_false(tti_are_apart(TUTTI_SPAN(b + 5, 3), four));
    assert_false(tti_are_apart(four, TUTTI_SPAN(b, 3)));
    assert_false(tti_are_apart(TUTTI_SPAN(b, 3), four));
    assert_false(tti_are_apart(four, four));
    assert_false(tti_are_apart(four, TUTTI_SPAN(b + 3, 1)));
    assert_false(tti_are_apart(four, TUTTI_SPAN(b + 6, 0))); /* the way of lists knows what is empty */
    assert_false(tti_are_apart(TUTTI_SPAN(b + 6, 0), four));
}

/* Where the span that begins a row of both ends, the other one begins. */
static void gather_beside(fake_rank *r, bool out_first)
{
    int32_t  row[(PAIR + 1) * COUNT] = { 0 };
    int32_t *out = out_first ? row : row + COUNT, *in = out_first ? row + PAIR * COUNT : row;
    int      i;

    fill(in, COUNT, 100 * r->rank + 7);
    CHECK(tutti_all_gather_into_tensor(TUTTI_SPAN(out, PAIR * COUNT), part(in), NULL) == TUTTI_OK);
    for (i = 0; i < PAIR; i++)
        CHECK(is(out + i * COUNT, COUNT, 100 * i + 7, 1));
    CHECK(is(in, COUNT, 100 * r->rank + 7, 1));
}

static void reduce_scatter_beside(fake_rank *r, bool out_first)
{
    int32_t  row[(PAIR + 1) * COUNT] = { 0 };
    int32_t *out = out_first ? row : row + PAIR * COUNT, *in = out_first ? row + COUNT : row;
    int      i;

    for (i = 0; i < PAIR; i++)
        fill(in + i * COUNT, COUNT, 1000 * i + 100 * r->rank);
    CHECK(tutti_reduce_scatter_tensor(part(out), TUTTI_SPAN(in, PAIR * COUNT), TUTTI_SUM, NULL) == TUTTI_OK);
    CHECK(is(out, COUNT, 2000 * r->rank + 100, 2));
    for (i = 0; i < PAIR; i++)
        CHECK(is(in + i * COUNT, COUNT, 1000 * i + 100 * r->rank, 1));
}

static void all_to_all_beside(fake_rank *r, bool out_first)
{
    int32_t  row[2 * PAIR * COUNT] = { 0 };
    int32_t *out = out_first ? row : row + PAIR * COUNT, *in = out_first ? row + PAIR * COUNT : row;
    int      i;

    for (i = 0; i < PAIR; i++)
        fill(in + i * COUNT, COUNT, 1000 * i + 100 * r->rank);
    CHECK(tutti_all_to_all_single(TUTTI_SPAN(out, PAIR * COUNT), TUTTI_SPAN(in, PAIR * COUNT), NULL, NULL, NULL) == TUTTI_OK);
    for (i = 0; i < PAIR; i++) {
        CHECK(is(out + i * COUNT, COUNT, 1000 * r->rank + 100 * i, 1));
        CHECK(is(in + i * COUNT, COUNT, 1000 * i + 100 * r->rank, 1));
    }
}

static void spans_that_touch(fake_rank *r)
{
    int out_first;

    for (out_first = 0; out_first < 2; out_first++) {
        gather_beside(r, out_first);
        reduce_scatter_beside(r, out_first);
        all_to_all_beside(r, out_first);
    }
}

static void test_spans_that_touch(void **state)
{
    (void)state;
    assert_int_equal(fake_ranks(PAIR, spans_that_touch, NULL), 0);
}

#define CHECK_REFUSED(call, words) \
    do { \
        CHECK((call) == TUTTI_E_ARG); \
        CHECK(strstr(tutti_last_error(), words) != NULL); \
    } while (0)

/* The last byte of one is the first of the other. */
static void spans_that_meet(fake_rank *r)
{
    uint8_t    b[2 * PAIR * COUNT] = { 0 };
    tutti_span whole = TUTTI_SPAN(b, PAIR * COUNT), after_whole = TUTTI_SPAN(b + PAIR * COUNT - 1, COUNT);
    tutti_span small = TUTTI_SPAN(b, COUNT), after_small = TUTTI_SPAN(b + COUNT - 1, PAIR * COUNT);
    tutti_span second = TUTTI_SPAN(b + PAIR * COUNT - 1, PAIR * COUNT);

    CHECK_REFUSED(tutti_all_gather_into_tensor(whole, after_whole, NULL), "part of out[1] overlaps this rank's part\n");
    CHECK_REFUSED(tutti_all_gather_into_tensor(after_small, small, NULL), "part of out[0] overlaps this rank's part\n");
    CHECK(strstr(tutti_last_error(), r->rank == 0 ? "only its own entry [0] may" : "only its own entry [1] may") != NULL);
    CHECK_REFUSED(tutti_reduce_scatter_tensor(after_whole, whole, TUTTI_SUM, NULL),
                  "part of in[1] overlaps this rank's part\n");
    CHECK_REFUSED(tutti_reduce_scatter_tensor(small, after_small, TUTTI_SUM, NULL),
                  "part of in[0] overlaps this rank's part\n");
    CHECK_REFUSED(tutti_all_to_all_single(whole, second, NULL, NULL, NULL), "part of out[1] overlaps part of in[0]\n");
    CHECK_REFUSED(tutti_all_to_all_single(second, whole, NULL, NULL, NULL), "part of out[0] overlaps part of in[1]\n");
    /* all of it: the own parts may be one, the others may not */
    CHECK_REFUSED(tutti_all_to_all_single(whole, whole, NULL, NULL, NULL),
                  r->rank == 0 ? "part of out[1] overlaps part of in[1]\n" : "part of out[0] overlaps part of in[0]\n");
    /* the part of the other member */
    CHECK_REFUSED(tutti_all_gather_into_tensor(whole, TUTTI_SPAN(b + COUNT * (1 - r->rank), COUNT), NULL),
                  "overlaps this rank's part\n");
    CHECK_REFUSED(tutti_reduce_scatter_tensor(TUTTI_SPAN(b + COUNT * (1 - r->rank), COUNT), whole, TUTTI_SUM, NULL),
                  "overlaps this rank's part\n");
    CHECK(tti_queue_next(r->world) == 1); /* nothing of this has taken a number */
}

static void test_spans_that_meet(void **state)
{
    (void)state;
    assert_int_equal(fake_ranks(PAIR, spans_that_meet, NULL), 0);
}

/* Rank 0 gives rank 1 the second half of what it has, and gets nothing: out and in begin with its own part. Rank 1 gives
 * nothing: both end with its own. */
static void all_to_all_in_place(fake_rank *r)
{
    const int64_t both[] = { COUNT, COUNT }, own_of_0[] = { COUNT, 0 }, own_of_1[] = { 0, COUNT };
    int32_t       x[2 * COUNT];
    tutti_span    all = TUTTI_SPAN(x, 2 * COUNT);

    fill(x, 2 * COUNT, 100 * r->rank);
    if (r->rank == 0)
        CHECK(tutti_all_to_all_single(part(x), all, own_of_0, both, NULL) == TUTTI_OK);
    else
        CHECK(tutti_all_to_all_single(all, part(x + COUNT), both, own_of_1, NULL) == TUTTI_OK);
    CHECK(r->rank == 0 ? is(x, 2 * COUNT, 0, 1) : is(x, COUNT, COUNT, 1) && is(x + COUNT, COUNT, 100 + COUNT, 1));
}

static void own_parts_in_place(fake_rank *r)
{
    int32_t    x[PAIR * COUNT] = { 0 };
    tutti_span own = part(x + r->rank * COUNT), whole = TUTTI_SPAN(x, PAIR * COUNT);
    int        i;

    fill(own.data, COUNT, 100 * r->rank + 7);
    CHECK(tutti_all_gather_into_tensor(whole, own, NULL) == TUTTI_OK);
    for (i = 0; i < PAIR; i++)
        CHECK(is(x + i * COUNT, COUNT, 100 * i + 7, 1));
    for (i = 0; i < PAIR; i++)
        fill(x + i * COUNT, COUNT, 1000 * i + 100 * r->rank);
    CHECK(tutti_reduce_scatter_tensor(own, whole, TUTTI_SUM, NULL) == TUTTI_OK);
    for (i = 0; i < PAIR; i++)
        CHECK(i == r->rank ? is(x + i * COUNT, COUNT, 2000 * i + 100, 2) : is(x + i * COUNT, COUNT, 1000 * i + 100 * r->rank, 1));
    all_to_all_in_place(r);
}

/* Of one member the whole is the own part. */
static void alone_in_place(fake_rank *r)
{
    int32_t    x[COUNT];
    tutti_span s = part(x);

    (void)r;
    fill(x, COUNT, 7);
    CHECK(tutti_all_gather_into_tensor(s, s, NULL) == TUTTI_OK);
    CHECK(tutti_reduce_scatter_tensor(s, s, TUTTI_SUM, NULL) == TUTTI_OK);
    CHECK(tutti_all_to_all_single(s, s, NULL, NULL, NULL) == TUTTI_OK);
    CHECK(is(x, COUNT, 7, 1));
}

static void test_in_place(void **state)
{
    (void)state;
    assert_int_equal(fake_ranks(PAIR, own_parts_in_place, NULL), 0);
    assert_int_equal(fake_ranks(1, alone_in_place, NULL), 0);
}

/* ---- more members than there is room for on the stack ---- */

enum { CROWD = 100 };

static int32_t crowd_in[CROWD * 2], crowd_out[CROWD * 2];
static int     crowd_runs;

/* Entry r of both lists is the r-th pair of numbers; r of reduce_scatter's has 1 + r % 2. */
static tutti_status crowd_run(tutti_backend *backend, const tutti_call *call)
{
    const bool scatters = call->kind == TUTTI_CALL_REDUCE_SCATTER;
    int        r;

    (void)backend;
    crowd_runs++;
    CHECK(call->n_parts == CROWD && call->count == (scatters ? CROWD * 3 / 2 : 0));
    for (r = 0; r < call->n_parts; r++) {
        CHECK(call->list_counts[r] == (scatters ? 1 + r % 2 : 2));
        CHECK(call->list[r] == (scatters ? crowd_in : crowd_out) + 2 * r);
        CHECK(scatters || (call->in_counts[r] == 2 && call->ins[r] == crowd_in + 2 * r));
    }
    return TUTTI_OK;
}

/* One of a hundred, the others of which nobody needs. */
static tutti_status crowd_create(const tutti_backend_config *config, tutti_backend **backend_out)
{
    static tutti_backend alone;

    CHECK(config->n_ranks == CROWD);
    alone.ops = &fake_ops;
    *backend_out = &alone;
    return TUTTI_OK;
}

static void crowd_destroy(tutti_backend *backend)
{
    (void)backend;
}

static tutti_group *crowd_world(const tutti_backend_ops *ops)
{
    tti_port    *port = tti_port_system();
    tutti_group *world = NULL;
    tti_join     join = { .user_store = true, .world_size = CROWD, .timeout_ms = LONG_MS,
                          .deadline_ns = tti_deadline(port, LONG_MS, LONG_MS),
                          .listen_host = "127.0.0.1" };

    assert_int_equal(tutti_hash_store_open(&join.store), TUTTI_OK);
    assert_int_equal(tti_world_create(port, &(tti_backing){ .ops = ops }, &join, &world), TUTTI_OK);
    tutti_store_close(join.store);
    return world;
}

static void test_a_crowd(void **state)
{
    tutti_backend_ops ops = fake_ops;
    tutti_span        ins[CROWD], outs[CROWD];
    tutti_span        in = TUTTI_SPAN(crowd_in, CROWD * 2), out = TUTTI_SPAN(crowd_out, CROWD * 2);
    tutti_group      *world;
    tutti_work       *w = NULL;
    int               r;

    (void)state;
    ops.create = crowd_create;
    ops.run = crowd_run;
    ops.destroy = crowd_destroy;
    world = crowd_world(&ops);
    for (r = 0; r < CROWD; r++) {
        ins[r] = TUTTI_SPAN(crowd_in + 2 * r, 1 + r % 2);
        outs[r] = TUTTI_SPAN(crowd_out + 2 * r, 2);
    }
    crowd_runs = 0;
    finish(tutti_reduce_scatter(TUTTI_SPAN(crowd_out, 1), ins, CROWD, TUTTI_SUM, world), &w);
    finish(tutti_reduce_scatter_async(TUTTI_SPAN(crowd_out, 1), ins, CROWD, TUTTI_SUM, world, &w), &w);
    for (r = 0; r < CROWD; r++)
        ins[r].count = 2;
    finish(tutti_all_to_all(outs, CROWD, ins, CROWD, world), &w);
    finish(tutti_all_to_all_async(outs, CROWD, ins, CROWD, world, &w), &w);
    finish(tutti_all_to_all_single(out, in, NULL, NULL, world), &w);
    finish(tutti_all_to_all_single_async(out, in, NULL, NULL, world, &w), &w);
    assert_int_equal(crowd_runs, 6);
    assert_int_equal(tutti_destroy_process_group(world), TUTTI_OK);
}

/* ---- arguments ---- */

static tutti_group *world;

static int setup_world(void **state)
{
    fake_setup(state);
    world = fake_world_of_one(LONG_MS);
    return world == NULL;
}

static int teardown_world(void **state)
{
    int bad = tti_queue_next(world) != 1; /* nothing wrong has taken a number */

    tutti_destroy_process_group(world);
    return bad + fake_teardown(state);
}

static void assert_refused(tutti_status got, tutti_status wanted, const char *word)
{
    assert_int_equal(got, wanted);
    if (strstr(tutti_last_error(), word) == NULL)
        fail_msg("'%s' is not in: %s", word, tutti_last_error());
}

static int32_t     some[8];
static tutti_work *untouched;

#define REFUSED(call, word) assert_refused((call), TUTTI_E_ARG, (word))

/* Every call that takes one buffer, with a bad one; the async twin goes the same way. */
static void refuse_buffer(tutti_span bad, tutti_status st, const char *word)
{
    tutti_span good = TUTTI_SPAN(some, 1);
    tutti_span list[1] = { good };

    assert_refused(tutti_all_reduce(bad, TUTTI_SUM, world), st, word);
    assert_refused(tutti_all_reduce_async(bad, TUTTI_SUM, world, &untouched), st, word);
    assert_refused(tutti_broadcast(bad, 0, world), st, word);
    assert_refused(tutti_broadcast_async(bad, 0, world, &untouched), st, word);
    assert_refused(tutti_reduce(bad, 0, TUTTI_SUM, world), st, word);
    assert_refused(tutti_reduce_async(bad, 0, TUTTI_SUM, world, &untouched), st, word);
    assert_refused(tutti_all_gather(list, 1, bad, world), st, word);
    assert_refused(tutti_all_gather_async(list, 1, bad, world, &untouched), st, word);
    assert_refused(tutti_all_gather(&bad, 1, good, world), st, word);
    assert_refused(tutti_all_gather_into_tensor(good, bad, world), st, word);
    assert_refused(tutti_all_gather_into_tensor(bad, good, world), st, word);
    assert_refused(tutti_all_gather_into_tensor_async(bad, good, world, &untouched), st, word);
    assert_refused(tutti_gather(list, 1, bad, 0, world), st, word);
    assert_refused(tutti_gather_async(&bad, 1, good, 0, world, &untouched), st, word);
    assert_refused(tutti_scatter(bad, list, 1, 0, world), st, word);
    assert_refused(tutti_scatter_async(good, &bad, 1, 0, world, &untouched), st, word);
    assert_refused(tutti_reduce_scatter(bad, list, 1, TUTTI_SUM, world), st, word);
    assert_refused(tutti_reduce_scatter_async(good, &bad, 1, TUTTI_SUM, world, &untouched), st, word);
    assert_refused(tutti_reduce_scatter_tensor(bad, good, TUTTI_SUM, world), st, word);
    assert_refused(tutti_reduce_scatter_tensor_async(good, bad, TUTTI_SUM, world, &untouched), st, word);
    assert_refused(tutti_all_to_all(&bad, 1, &good, 1, world), st, word);
    assert_refused(tutti_all_to_all_async(&good, 1, &bad, 1, world, &untouched), st, word);
    assert_refused(tutti_all_to_all_single(bad, good, NULL, NULL, world), st, word);
    assert_refused(tutti_all_to_all_single_async(good, bad, NULL, NULL, world, &untouched), st, word);
    assert_null(untouched);
}

static void test_bad_buffers(void **state)
{
    tutti_span bad = TUTTI_SPAN(some, 1);

    (void)state;
    bad.count = -1;
    refuse_buffer(bad, TUTTI_E_ARG, "count of -1");
    bad.count = INT64_MAX;
    refuse_buffer(bad, TUTTI_E_ARG, "count of 9223372036854775807");
    bad = tutti_span_of(NULL, 3, TUTTI_I32);
    refuse_buffer(bad, TUTTI_E_ARG, "no data for 3 i32");
    bad = tutti_span_of(some, 1, TUTTI_DTYPE_COUNT);
    refuse_buffer(bad, TUTTI_E_ARG, "dtype 17");
    bad = TUTTI_SPAN(some, 1);
    bad.device.type = TUTTI_CUDA;
    refuse_buffer(bad, TUTTI_E_UNSUPPORTED, "no backend for 'cuda'");
}

static void test_bad_ops(void **state)
{
    tutti_span f = tutti_span_of(some, 1, TUTTI_F32);
    tutti_op   none = { .kind = TUTTI_OP_COUNT };

    (void)state;
    REFUSED(tutti_all_reduce(TUTTI_SPAN(some, 1), TUTTI_AVG, world), "'avg'");
    REFUSED(tutti_all_reduce(f, TUTTI_BAND, world), "'band'");
    REFUSED(tutti_reduce(f, 0, TUTTI_BXOR, world), "'bxor'");
    REFUSED(tutti_reduce_async(f, 0, none, world, &untouched), "no reduction");
    REFUSED(tutti_reduce_scatter(f, &f, 1, TUTTI_BAND, world), "'band'");
    REFUSED(tutti_reduce_scatter_tensor(f, f, TUTTI_BOR, world), "'bor'");
}

static void test_bad_roots(void **state)
{
    tutti_span s = TUTTI_SPAN(some, 1);

    (void)state;
    REFUSED(tutti_broadcast(s, 1, world), "src 1 is not in the group of 1");
    REFUSED(tutti_broadcast_async(s, -1, world, &untouched), "src -1");
    REFUSED(tutti_reduce(s, 1, TUTTI_SUM, world), "dst 1");
    REFUSED(tutti_gather(&s, 1, s, 1, world), "dst 1");
    REFUSED(tutti_scatter(s, &s, 1, 7, world), "src 7");
}

static void test_bad_lists(void **state)
{
    tutti_span s = TUTTI_SPAN(some, 2);
    tutti_span two[2] = { TUTTI_SPAN(some + 2, 2), TUTTI_SPAN(some + 4, 2) };
    tutti_span shorter = TUTTI_SPAN(some + 2, 1);
    tutti_span typed = tutti_span_of(some + 2, 2, TUTTI_U32);
    tutti_span shifted = TUTTI_SPAN(some + 1, 2);

    (void)state;
    REFUSED(tutti_all_gather(two, 2, s, world), "outs has 2 entries, the group has 1");
    REFUSED(tutti_all_gather(NULL, 1, s, world), "outs is NULL, and the group has 1");
    REFUSED(tutti_all_gather(two, 0, s, world), "0 entries");
    REFUSED(tutti_gather(two, 2, s, 0, world), "outs has 2");
    REFUSED(tutti_gather(NULL, 0, s, 0, world), "outs has 0");
    REFUSED(tutti_scatter(s, two, 2, 0, world), "ins has 2");
    REFUSED(tutti_all_gather(&shorter, 1, s, world), "outs[0] is 1 i32");
    REFUSED(tutti_gather(&typed, 1, s, 0, world), "outs[0] is 2 u32");
    REFUSED(tutti_scatter(s, &shifted, 1, 0, world), "overlaps");
    REFUSED(tutti_all_gather_async(&shifted, 1, s, world, &untouched), "overlaps");
}

static void test_bad_into(void **state)
{
    tutti_span s = TUTTI_SPAN(some, 2);

    (void)state;
    REFUSED(tutti_all_gather_into_tensor(TUTTI_SPAN(some + 2, 3), s, world), "out has 3 elements");
    REFUSED(tutti_all_gather_into_tensor(tutti_span_of(some + 2, 2, TUTTI_F32), s, world),
            "out is f32");
    REFUSED(tutti_all_gather_into_tensor(TUTTI_SPAN(some + 1, 2), s, world), "overlaps");
}

static void test_bad_reduce_scatter(void **state)
{
    tutti_span s = TUTTI_SPAN(some, 2);
    tutti_span two[2] = { TUTTI_SPAN(some + 2, 2), TUTTI_SPAN(some + 4, 2) };
    tutti_span shorter = TUTTI_SPAN(some + 2, 1);
    tutti_span typed = tutti_span_of(some + 2, 2, TUTTI_U32);
    tutti_span shifted = TUTTI_SPAN(some + 1, 2);

    (void)state;
    REFUSED(tutti_reduce_scatter(s, two, 2, TUTTI_SUM, world), "ins has 2 entries, the group has 1");
    REFUSED(tutti_reduce_scatter(s, NULL, 1, TUTTI_SUM, world), "ins is NULL");
    REFUSED(tutti_reduce_scatter(s, &shorter, 1, TUTTI_SUM, world), "ins[0] is 1 i32, but this rank's part is 2");
    REFUSED(tutti_reduce_scatter(s, &typed, 1, TUTTI_SUM, world), "ins[0] is u32, others are i32");
    REFUSED(tutti_reduce_scatter(s, &shifted, 1, TUTTI_SUM, world), "ins[0] overlaps");
    REFUSED(tutti_reduce_scatter_tensor(s, TUTTI_SPAN(some + 2, 3), TUTTI_SUM, world), "in has 3 elements");
    REFUSED(tutti_reduce_scatter_tensor(s, tutti_span_of(some + 2, 2, TUTTI_F32), TUTTI_SUM, world),
            "out is i32, but in is f32");
    REFUSED(tutti_reduce_scatter_tensor(s, shifted, TUTTI_SUM, world), "part of in[0] overlaps");
}

static void test_bad_all_to_all(void **state)
{
    tutti_span    s = TUTTI_SPAN(some, 2);
    tutti_span    two[2] = { TUTTI_SPAN(some + 2, 2), TUTTI_SPAN(some + 4, 2) };
    tutti_span    shorter = TUTTI_SPAN(some + 2, 1);
    tutti_span    typed = tutti_span_of(some + 2, 2, TUTTI_U32);
    tutti_span    shifted = TUTTI_SPAN(some + 1, 2);
    const int64_t none = 0, one = 1, minus = -1, three = 3;

    (void)state;
    REFUSED(tutti_all_to_all(two, 2, &s, 1, world), "outs has 2 entries, the group has 1");
    REFUSED(tutti_all_to_all(&s, 1, two, 2, world), "ins has 2 entries");
    REFUSED(tutti_all_to_all(&s, 1, NULL, 1, world), "ins is NULL");
    REFUSED(tutti_all_to_all(&s, 1, &shorter, 1, world), "outs[0] is 2 i32, but ins[0], this rank's own, is 1");
    REFUSED(tutti_all_to_all(&s, 1, &typed, 1, world), "ins[0] is u32, others are i32");
    REFUSED(tutti_all_to_all(&shifted, 1, &s, 1, world), "outs[0] overlaps ins[0]");
    REFUSED(tutti_all_to_all_single(s, typed, NULL, NULL, world), "out is i32, but in is u32");
    REFUSED(tutti_all_to_all_single(s, two[0], &minus, NULL, world), "out_splits[0] is -1");
    REFUSED(tutti_all_to_all_single(s, two[0], NULL, &minus, world), "in_splits[0] is -1");
    REFUSED(tutti_all_to_all_single(s, two[0], &three, NULL, world),
            "out_splits add up to more than the 2 elements of out");
    REFUSED(tutti_all_to_all_single(s, two[0], NULL, &one, world), "in_splits add up to 1, but in has 2");
    REFUSED(tutti_all_to_all_single(s, two[0], &none, &none, world), "out_splits add up to 0");
    REFUSED(tutti_all_to_all_single(shifted, s, NULL, NULL, world), "part of out[0] overlaps part of in[0]");
}

/* Five elements for two ranks; and lists whose entries meet across ranks, or are beyond memory together. */
static void bad_for_two(fake_rank *r)
{
    int32_t       x[8] = { 0 }, y[8] = { 0 };
    const int64_t splits[] = { 2, 3 };
    tutti_span    outs[2] = { TUTTI_SPAN(x, 2), TUTTI_SPAN(x + 2, 2) };
    tutti_span    ins[2] = { TUTTI_SPAN(y, 2), TUTTI_SPAN(y + 2, 2) };

    CHECK(tutti_all_to_all_single(TUTTI_SPAN(x, 5), TUTTI_SPAN(y, 5), NULL, splits, NULL) == TUTTI_E_ARG);
    CHECK(strstr(tutti_last_error(), "out has 5 elements, which 2 members cannot share") != NULL);
    CHECK(tutti_all_to_all_single(TUTTI_SPAN(x, 5), TUTTI_SPAN(y, 5), splits, NULL, NULL) == TUTTI_E_ARG);
    CHECK(strstr(tutti_last_error(), "in has 5 elements, which 2 members cannot share") != NULL);
    ins[1 - r->rank] = outs[1 - r->rank];
    CHECK(tutti_all_to_all(outs, 2, ins, 2, NULL) == TUTTI_E_ARG);
    CHECK(strstr(tutti_last_error(), "overlaps ins[") != NULL);
    ins[0].count = ins[1].count = INT64_MAX / 8 + 1;
    ins[0].data = ins[1].data = y;
    CHECK(tutti_all_to_all(outs, 2, ins, 2, NULL) == TUTTI_E_ARG);
    CHECK(strstr(tutti_last_error(), "more bytes than memory") != NULL);
}

static void test_bad_for_two(void **state)
{
    (void)state;
    assert_int_equal(fake_ranks(2, bad_for_two, NULL), 0);
}

static void test_no_work_out(void **state)
{
    tutti_span s = TUTTI_SPAN(some, 1);

    (void)state;
    REFUSED(tutti_all_reduce_async(s, TUTTI_SUM, world, NULL), "work_out");
    REFUSED(tutti_broadcast_async(s, 0, world, NULL), "work_out");
    REFUSED(tutti_reduce_async(s, 0, TUTTI_SUM, world, NULL), "work_out");
    REFUSED(tutti_all_gather_async(&s, 1, s, world, NULL), "work_out");
    REFUSED(tutti_all_gather_into_tensor_async(s, s, world, NULL), "work_out");
    REFUSED(tutti_gather_async(&s, 1, s, 0, world, NULL), "work_out");
    REFUSED(tutti_scatter_async(s, &s, 1, 0, world, NULL), "work_out");
    REFUSED(tutti_reduce_scatter_async(s, &s, 1, TUTTI_SUM, world, NULL), "work_out");
    REFUSED(tutti_reduce_scatter_tensor_async(s, s, TUTTI_SUM, world, NULL), "work_out");
    REFUSED(tutti_all_to_all_async(&s, 1, &s, 1, world, NULL), "work_out");
    REFUSED(tutti_all_to_all_single_async(s, s, NULL, NULL, world, NULL), "work_out");
    REFUSED(tutti_barrier_async(world, NULL), "work_out");
    REFUSED(tutti_isend(s, 0, 0, world, NULL), "work_out");
    REFUSED(tutti_irecv(s, 0, 0, world, NULL), "work_out");
}

/* A list on a rank that is not the root. */
static void lists_elsewhere(fake_rank *r)
{
    int32_t    x = 1;
    int32_t    y = 2;
    tutti_span s = TUTTI_SPAN(&x, 1);
    tutti_span list[2] = { TUTTI_SPAN(&y, 1), TUTTI_SPAN(&y, 1) };

    if (r->rank == 0)
        return;
    CHECK(tutti_gather(list, 2, s, 0, NULL) == TUTTI_E_ARG);
    CHECK(strstr(tutti_last_error(), "not the root") != NULL);
    CHECK(tutti_scatter(s, list, 2, 0, NULL) == TUTTI_E_ARG);
    CHECK(tutti_scatter(s, list, 0, 0, NULL) == TUTTI_E_ARG);
    CHECK(tutti_gather(NULL, 2, s, 0, NULL) == TUTTI_E_ARG);
}

static void test_lists_elsewhere(void **state)
{
    (void)state;
    assert_int_equal(fake_ranks(2, lists_elsewhere, NULL), 0);
}

/* ---- no member, no group, no world ---- */

static void call_all(tutti_group *group, tutti_status wanted)
{
    tutti_span  s = tutti_span_of(NULL, -5, TUTTI_F32); /* not even looked at */
    tutti_work *work = NULL;
    int         source = 5;

    assert_int_equal(tutti_all_reduce(s, TUTTI_SUM, group), wanted);
    assert_int_equal(tutti_broadcast(s, 0, group), wanted);
    assert_int_equal(tutti_reduce(s, 0, TUTTI_SUM, group), wanted);
    assert_int_equal(tutti_all_gather(&s, 1, s, group), wanted);
    assert_int_equal(tutti_all_gather_into_tensor(s, s, group), wanted);
    assert_int_equal(tutti_gather(&s, 1, s, 0, group), wanted);
    assert_int_equal(tutti_scatter(s, &s, 1, 0, group), wanted);
    assert_int_equal(tutti_reduce_scatter(s, &s, 1, TUTTI_SUM, group), wanted);
    assert_int_equal(tutti_reduce_scatter_tensor(s, s, TUTTI_SUM, group), wanted);
    assert_int_equal(tutti_all_to_all(&s, 1, &s, 1, group), wanted);
    assert_int_equal(tutti_all_to_all_single(s, s, NULL, NULL, group), wanted);
    assert_int_equal(tutti_barrier(group), wanted);
    assert_int_equal(tutti_send(s, 0, 0, group), wanted);
    assert_int_equal(tutti_recv(s, 0, 0, group, &source), wanted);
    assert_int_equal(source, wanted == TUTTI_OK ? -1 : 5);
    assert_int_equal(tutti_isend(s, 0, 0, group, &work), wanted);
    assert_int_equal(tutti_irecv(s, 0, 0, group, &work), wanted);
    assert_int_equal(tutti_barrier_async(group, &work), wanted);
    if (wanted == TUTTI_OK) {
        assert_true(tutti_work_is_completed(work));
        assert_int_equal(tutti_work_wait(work), TUTTI_OK);
        assert_int_equal(tutti_work_source_rank(work), -1);
        tutti_work_free(work);
        tutti_work_free(work); /* the constant may be freed by everybody */
    } else {
        assert_null(work);
    }
    assert_int_equal(tutti_get_rank(group), -1);
    assert_int_equal(tutti_get_world_size(group), -1);
    assert_int_equal(tutti_get_global_rank(group, 0), -1);
    assert_int_equal(tutti_get_group_rank(group, 0), -1);
}

static void test_non_member(void **state)
{
    (void)state;
    call_all(TUTTI_NON_MEMBER, TUTTI_OK);
}

static void test_no_group(void **state)
{
    (void)state;
    call_all(TUTTI_NO_GROUP, TUTTI_E_STATE);
    assert_refused(tutti_barrier(TUTTI_NO_GROUP), TUTTI_E_STATE, "barrier");
}

static void test_no_world(void **state)
{
    (void)state;
    assert_false(tutti_is_initialized());
    call_all(NULL, TUTTI_E_STATE);
    assert_refused(tutti_barrier(NULL), TUTTI_E_STATE, "tutti_init_process_group");
}

#define TEST(name)       cmocka_unit_test_setup_teardown(name, fake_setup, fake_teardown)
#define TEST_WORLD(name) cmocka_unit_test_setup_teardown(name, setup_world, teardown_world)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_blocking_data),     TEST(test_async_data),     TEST(test_roots_are_global),
        TEST_WORLD(test_bad_buffers), TEST_WORLD(test_bad_ops),  TEST_WORLD(test_bad_roots),
        TEST_WORLD(test_bad_lists),   TEST_WORLD(test_bad_into), TEST_WORLD(test_no_work_out),
        TEST_WORLD(test_bad_reduce_scatter), TEST_WORLD(test_bad_all_to_all), TEST(test_bad_for_two),
        TEST(test_a_crowd),           cmocka_unit_test(test_apart),
        TEST(test_spans_that_touch),  TEST(test_spans_that_meet), TEST(test_in_place),
        TEST(test_lists_elsewhere),   TEST(test_non_member),     TEST(test_no_group),
        TEST(test_no_world),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
