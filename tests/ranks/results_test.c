/* SPDX-License-Identifier: BSD-3-Clause
 *
 * results_test.c
 * Goal    the result of a work is the spans that its operation has written, of every kind; before the end it is
 *         an error; a work's future has the same spans, outlives work and group, and passes failures on.
 * Method  every asynchronous collective and messages, each rank looks at its own spans. */
#include <string.h>
#include "harness/harness.h"
#include <tutti/tutti.h>

#define OK(call)                                                                                       \
    do {                                                                                               \
        if ((call) != TUTTI_OK)                                                                        \
            fail_msg("%s: %s", #call, tutti_last_error());                                             \
    } while (0)

enum { RANKS = 3 };

static void expect_span(tutti_span got, tutti_span wanted)
{
    assert_ptr_equal(got.data, wanted.data);
    assert_int_equal(got.count, wanted.count);
    assert_int_equal(got.dtype, wanted.dtype);
    assert_int_equal(got.device.type, wanted.device.type);
}

/* Wait for a work, which is freed: its future's spans are these. */
static void expect(tutti_work *work, int n, const tutti_span *wanted)
{
    tutti_future *future = NULL;
    tutti_spans  *spans;
    tutti_span    got[RANKS * 2] = { 0 };
    void         *value = NULL;
    int           i, n_got = -1;

    OK(tutti_work_get_future(work, &future));
    OK(tutti_future_wait(future, 0));
    OK(tutti_work_result(work, got, RANKS * 2, &n_got));
    assert_int_equal(n_got, n);
    tutti_work_free(work);
    OK(tutti_future_value(future, &value));
    spans = value;
    assert_int_equal(spans->n, n);
    for (i = 0; i < n; i++) {
        expect_span(got[i], wanted[i]);
        expect_span(spans->at[i], wanted[i]);
    }
    tutti_future_free(future);
}

static void every_kind_tells_its_spans(tt_ctx *t)
{
    int32_t     own[RANKS] = { 1, 2, 3 }, all[RANKS * 4] = { 0 }, out[1] = { 0 };
    const bool  root = t->rank == 1;
    tutti_span  parts[RANKS], ins[RANKS], uneven[RANKS];
    tutti_span  buf = TUTTI_SPAN(own, RANKS), one = TUTTI_SPAN(out, 1), mine = TUTTI_SPAN(own, 1);
    tutti_work *work = NULL;
    int         r;

    for (r = 0; r < RANKS; r++) {
        parts[r] = TUTTI_SPAN(all + r, 1);
        ins[r] = TUTTI_SPAN(own + r, 1);
        uneven[r] = TUTTI_SPAN(all + r * 3, r + 1);
    }
    OK(tutti_barrier_async(t->group, &work));
    expect(work, 0, NULL);
    OK(tutti_all_reduce_async(buf, TUTTI_SUM, t->group, &work));
    expect(work, 1, &buf);
    OK(tutti_broadcast_async(buf, 1, t->group, &work));
    expect(work, 1, &buf);
    OK(tutti_reduce_async(buf, 1, TUTTI_SUM, t->group, &work));
    expect(work, root ? 1 : 0, &buf);
    OK(tutti_all_gather_async(parts, RANKS, mine, t->group, &work));
    expect(work, RANKS, parts);
    OK(tutti_all_gather_async(uneven, RANKS, TUTTI_SPAN(own, t->rank + 1), t->group, &work));
    expect(work, RANKS, uneven);
    OK(tutti_all_gather_into_tensor_async(TUTTI_SPAN(all, RANKS), mine, t->group, &work));
    expect(work, RANKS, parts);
    OK(tutti_gather_async(root ? parts : NULL, root ? RANKS : 0, mine, 1, t->group, &work));
    expect(work, root ? RANKS : 0, parts);
    OK(tutti_gather_v_async(root ? uneven : NULL, root ? RANKS : 0, TUTTI_SPAN(own, t->rank + 1), 1, t->group,
                            &work));
    expect(work, root ? RANKS : 0, uneven);
    OK(tutti_scatter_async(one, root ? ins : NULL, root ? RANKS : 0, 1, t->group, &work));
    expect(work, 1, &one);
    OK(tutti_scatter_v_async(one, root ? ins : NULL, root ? RANKS : 0, 1, t->group, &work));
    expect(work, 1, &one);
    OK(tutti_reduce_scatter_async(one, ins, RANKS, TUTTI_SUM, t->group, &work));
    expect(work, 1, &one);
    OK(tutti_all_to_all_async(parts, RANKS, ins, RANKS, t->group, &work));
    expect(work, RANKS, parts);
}

static void several_buffers_and_scopes(tt_ctx *t)
{
    int32_t     a = 1, b[2] = { 1, 2 };
    tutti_span  bufs[] = { TUTTI_SPAN(&a, 1), TUTTI_SPAN(b, 2) };
    tutti_work *work = NULL, *scope = NULL;
    tutti_span  got;
    int         n = -1;

    OK(tutti_all_reduce_coalesced_async(bufs, 2, TUTTI_SUM, t->group, &work));
    expect(work, 2, bufs);
    OK(tutti_coalescing_begin(t->group));
    OK(tutti_all_reduce_async(bufs[0], TUTTI_SUM, t->group, &work));
    OK(tutti_all_reduce(bufs[1], TUTTI_SUM, t->group));
    assert_int_equal(tutti_work_result(work, &got, 1, &n), TUTTI_E_STATE);
    OK(tutti_coalescing_end(t->group, &scope));
    OK(tutti_work_wait(work));
    assert_int_equal(tutti_work_result(work, &got, 1, &n), TUTTI_E_UNSUPPORTED);
    assert_non_null(strstr(tutti_last_error(), "tutti_coalescing_end"));
    tutti_work_free(work);
    expect(scope, 2, bufs);
}

static void messages_tell_what_came(tt_ctx *t)
{
    int32_t     x = 7, y = 0;
    tutti_span  in = TUTTI_SPAN(&y, 1);
    tutti_span  none;
    tutti_work *work = NULL;
    int         n = -1;

    if (t->rank == 0) {
        OK(tutti_irecv(in, 1, 0, t->group, &work));
        assert_int_equal(tutti_work_result(work, &none, 1, &n), TUTTI_E_STATE);
        assert_int_equal(n, -1);
    }
    OK(tutti_barrier(t->group)); /* now it may come */
    if (t->rank == 0) {
        expect(work, 1, &in);
        assert_int_equal(y, 7);
    } else if (t->rank == 1) {
        OK(tutti_isend(TUTTI_SPAN(&x, 1), 0, 0, t->group, &work));
        expect(work, 0, NULL);
    }
    OK(tutti_all_reduce_async(in, TUTTI_SUM, TUTTI_NON_MEMBER, &work));
    expect(work, 0, NULL);
    assert_int_equal(tutti_work_result(NULL, &none, 1, &n), TUTTI_E_ARG);
    OK(tutti_barrier(t->group));
}

/* The sum of a number over the ranks, as the value of a chain. */
static tutti_status read_sum(tutti_future *future, void *ctx, void **value_out, tutti_value_free_fn *free_out)
{
    void        *value = NULL;
    tutti_status st = tutti_future_value(future, &value);

    (void)free_out;
    *(int32_t *)ctx = *(int32_t *)((tutti_spans *)value)->at[0].data;
    *value_out = ctx;
    return st;
}

static void chains_on_works_run(tt_ctx *t)
{
    enum { N = 5 };
    int32_t       x[N], sums[N];
    tutti_future *futures[N], *all = NULL, *of_work = NULL;
    tutti_work   *work = NULL;
    int           i;

    for (i = 0; i < N; i++) {
        x[i] = t->rank + i;
        OK(tutti_all_reduce_async(TUTTI_SPAN(&x[i], 1), TUTTI_SUM, t->group, &work));
        OK(tutti_work_get_future(work, &of_work));
        OK(tutti_future_then(of_work, read_sum, &sums[i], &futures[i]));
        tutti_future_free(of_work);
        tutti_work_free(work); /* nobody waits for the work itself */
    }
    OK(tutti_collect_all(futures, N, &all));
    OK(tutti_future_wait(all, 0));
    for (i = 0; i < N; i++) {
        assert_int_equal(sums[i], 3 + 3 * i);
        tutti_future_free(futures[i]);
    }
    tutti_future_free(all);
}

static void failures_reach_the_end_of_a_chain(tt_ctx *t)
{
    const int     pair[] = { 0, 1 };
    tutti_group  *group = TUTTI_NO_GROUP;
    tutti_future *future = NULL, *next = NULL;
    tutti_work   *work = NULL;
    int32_t       x = 0, sum = 5;

    if (t->group != NULL)
        tutti_use_group(t->group);
    OK(tutti_new_group(pair, 2, NULL, &group));
    if (t->rank == 0) {
        OK(tutti_irecv(TUTTI_SPAN(&x, 1), 1, 0, group, &work)); /* nobody sends it */
        OK(tutti_work_get_future(work, &future));
        OK(tutti_future_then(future, read_sum, &sum, &next));
        tutti_work_free(work);
        OK(tutti_destroy_process_group(group));
        assert_int_equal(tutti_future_wait(next, 0), TUTTI_E_ABORTED);
        assert_non_null(strstr(tutti_last_error(), "irecv from rank 1"));
        assert_int_equal(sum, 5);
        tutti_future_free(next);
        tutti_future_free(future);
    }
    OK(tutti_barrier(t->group));
}

int main(void)
{
    static const tt_test tests[] = {
        TT_TEST(every_kind_tells_its_spans, .ranks = RANKS, .transports = "shm,tcp,threads", .limit_ms = 60000),
        TT_TEST(several_buffers_and_scopes, .ranks = RANKS, .transports = "shm,threads", .limit_ms = 60000),
        TT_TEST(messages_tell_what_came, .ranks = RANKS, .transports = "shm,tcp,threads-tcp", .limit_ms = 60000),
        TT_TEST(chains_on_works_run, .ranks = RANKS, .transports = "shm,tcp,threads", .limit_ms = 60000),
        TT_TEST(chains_on_works_run, .ranks = RANKS, .hosts = 2, .limit_ms = 60000),
        TT_TEST(failures_reach_the_end_of_a_chain, .ranks = RANKS, .transports = "shm,tcp,threads",
                .limit_ms = 60000),
    };

    return tt_main(tests, sizeof tests / sizeof tests[0]);
}
