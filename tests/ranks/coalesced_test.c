/* SPDX-License-Identifier: BSD-3-Clause
 *
 * coalesced_test.c
 * Goal    several buffers in one operation end with what one operation for each gives, bit by bit, whatever
 *         their sizes; a scope records three kinds of call and no other, refuses what does not go together
 *         without running any of it, and its works are complete when its operation is.
 * Method  sizes around the limits of packing and staging, none and long ones mixed; the reference is the
 *         same call for each buffer alone. */
#include <pthread.h>
#include <string.h>
#include "harness/harness.h"
#include <tutti/tutti.h>

#define OK(call)                                                                                       \
    do {                                                                                               \
        if ((call) != TUTTI_OK)                                                                        \
            fail_msg("%s: %s", #call, tutti_last_error());                                             \
    } while (0)
#define REFUSED(call, st, word)                                                                        \
    do {                                                                                               \
        assert_int_equal((call), (st));                                                                \
        if (strstr(tutti_last_error(), (word)) == NULL)                                                \
            fail_msg("%s: no '%s' in: %s", #call, (word), tutti_last_error());                         \
    } while (0)

/* In f32: 16384 elements are the most that is packed between hosts, 32768 fill a slot of one host. */
static const int64_t sizes[] = { 1, 0, 16384, 16385, 3, 100000, 32768, 1000, 7, 0, 40000, 5, 6, 7, 8, 9, 10, 11, 12, 200 };
enum { N = sizeof sizes / sizeof sizes[0] };

static float value_of(int64_t i, int rank, int part, int buffer)
{
    return 1.0f / (float)(1 + (i * 7 + rank * 13 + part * 101 + buffer * 29) % 1009);
}

static void fill(tutti_span span, int rank, int part, int buffer)
{
    int64_t i;

    for (i = 0; i < span.count; i++)
        ((float *)span.data)[i] = value_of(i, rank, part, buffer);
}

static tutti_span make(tt_ctx *t, int64_t count)
{
    return TUTTI_SPAN((float *)tt_alloc(t, (size_t)count * sizeof(float) + 1), count);
}

static void expect_same(tutti_span got, tutti_span want, int buffer)
{
    if (got.count > 0 && memcmp(got.data, want.data, (size_t)got.count * sizeof(float)) != 0)
        fail_msg("buffer %d of %lld elements has other bits", buffer, (long long)got.count);
}

static void finish(tutti_work *work)
{
    OK(tutti_work_wait(work));
    tutti_work_free(work);
}

static void sum_lists(tt_ctx *t, tutti_op op, bool async)
{
    tutti_span  bufs[N], want[N], listed[N];
    tutti_work *work = NULL;
    int         i;

    for (i = 0; i < N; i++) {
        fill(bufs[i] = make(t, sizes[i]), t->rank, 0, i);
        fill(want[i] = make(t, sizes[i]), t->rank, 0, i);
        OK(tutti_all_reduce(want[i], op, t->group));
        listed[i] = bufs[i];
    }
    if (async)
        OK(tutti_all_reduce_coalesced_async(listed, N, op, t->group, &work));
    else
        OK(tutti_all_reduce_coalesced(listed, N, op, t->group));
    memset(listed, 0, sizeof listed);
    if (async)
        finish(work);
    for (i = 0; i < N; i++)
        expect_same(bufs[i], want[i], i);
}

/* Whole buffers, of which parts are equal. */
static void gather_pairs(tt_ctx *t, bool async)
{
    tutti_span  ins[N], outs[N];
    tutti_work *work = NULL;
    int64_t     k;
    int         i, r;

    for (i = 0; i < N; i++) {
        outs[i] = make(t, sizes[i] * t->size);
        ins[i] = make(t, sizes[i]);
        if (i % 2) /* in place */
            ins[i].data = (float *)outs[i].data + sizes[i] * t->rank;
        fill(ins[i], t->rank, 0, i);
    }
    if (async)
        OK(tutti_all_gather_into_tensor_coalesced_async(outs, ins, N, t->group, &work));
    else
        OK(tutti_all_gather_into_tensor_coalesced(outs, ins, N, t->group));
    if (async)
        finish(work);
    for (i = 0; i < N; i++)
        for (r = 0; r < t->size; r++)
            for (k = 0; k < sizes[i]; k++) {
                const float got = ((float *)outs[i].data)[sizes[i] * r + k], want = value_of(k, r, 0, i);

                if (memcmp(&got, &want, sizeof got) != 0)
                    fail_msg("element %lld of rank %d in buffer %d", (long long)k, r, i);
            }
}

static void gather_lists(tt_ctx *t, bool async)
{
    tutti_span        ins[N];
    tutti_span        outs[8][N], want = make(t, 100000);
    const tutti_span *lists[8];
    tutti_work       *work = NULL;
    int               i, r;

    for (i = 0; i < N; i++)
        fill(ins[i] = make(t, sizes[i]), t->rank, 0, i);
    for (r = 0; r < t->size; r++) {
        lists[r] = outs[r];
        for (i = 0; i < N; i++)
            outs[r][i] = make(t, sizes[i]);
    }
    if (async)
        OK(tutti_all_gather_coalesced_async(lists, t->size, ins, N, t->group, &work));
    else
        OK(tutti_all_gather_coalesced(lists, t->size, ins, N, t->group));
    if (async)
        finish(work);
    for (r = 0; r < t->size; r++)
        for (i = 0; i < N; i++) {
            fill(want, r, 0, i);
            expect_same(outs[r][i], want, i);
        }
}

static void scatter_pairs(tt_ctx *t, tutti_op op, bool async)
{
    tutti_span  ins[N], outs[N], want[N];
    tutti_work *work = NULL;
    int         i, r;

    for (i = 0; i < N; i++) {
        ins[i] = make(t, sizes[i] * t->size);
        outs[i] = make(t, sizes[i]);
        want[i] = make(t, sizes[i]);
        for (r = 0; r < t->size; r++)
            fill(TUTTI_SPAN((float *)ins[i].data + sizes[i] * r, sizes[i]), t->rank, r, i);
        OK(tutti_reduce_scatter_tensor(want[i], ins[i], op, t->group));
        if (i % 2) /* in place */
            outs[i].data = (float *)ins[i].data + sizes[i] * t->rank;
    }
    if (async)
        OK(tutti_reduce_scatter_tensor_coalesced_async(outs, ins, N, op, t->group, &work));
    else
        OK(tutti_reduce_scatter_tensor_coalesced(outs, ins, N, op, t->group));
    if (async)
        finish(work);
    for (i = 0; i < N; i++)
        expect_same(outs[i], want[i], i);
}

static void every_form(tt_ctx *t)
{
    int async;

    for (async = 0; async < 2; async++) {
        sum_lists(t, TUTTI_SUM, async);
        sum_lists(t, tutti_premul_sum(0.5 + t->rank), async);
        gather_pairs(t, async);
        gather_lists(t, async);
        scatter_pairs(t, TUTTI_AVG, async);
        scatter_pairs(t, tutti_premul_sum(0.5 + t->rank), async);
    }
}

/* One operation, so it takes one number. */
static void a_list_is_one_operation(tt_ctx *t)
{
    tutti_span  bufs[N];
    tutti_work *before = NULL, *work = NULL, *after = NULL;
    int         i;

    for (i = 0; i < N; i++)
        fill(bufs[i] = make(t, sizes[i]), t->rank, 0, i);
    OK(tutti_barrier_async(t->group, &before));
    OK(tutti_all_reduce_coalesced_async(bufs, N, TUTTI_SUM, t->group, &work));
    OK(tutti_barrier_async(t->group, &after));
    OK(tutti_work_wait(after));
    assert_int_equal(tutti_work_sequence(work), tutti_work_sequence(before) + 1);
    assert_int_equal(tutti_work_sequence(after), tutti_work_sequence(before) + 2);
    tutti_work_free(before);
    tutti_work_free(work);
    tutti_work_free(after);
}

/* ---- scopes ---- */

static void a_scope_records_and_does_all_at_once(tt_ctx *t)
{
    tutti_span  bufs[N], want[N];
    tutti_work *works[N] = { NULL };
    tutti_work *all = NULL;
    int32_t     n = t->rank;
    int         round, i;

    for (round = 0; round < 2; round++) {
        for (i = 0; i < N; i++) {
            fill(bufs[i] = make(t, sizes[i]), t->rank, 0, i);
            fill(want[i] = make(t, sizes[i]), t->rank, 0, i);
            OK(tutti_all_reduce(want[i], TUTTI_SUM, t->group));
        }
        OK(tutti_coalescing_begin(t->group));
        for (i = 0; i < N; i++)
            if (i % 2)
                OK(tutti_all_reduce(bufs[i], TUTTI_SUM, t->group));
            else
                OK(tutti_all_reduce_async(bufs[i], TUTTI_SUM, t->group, &works[i]));
        assert_true(sizes[0] == 1 && ((float *)bufs[0].data)[0] == value_of(0, t->rank, 0, 0)); /* not yet */
        assert_false(tutti_work_is_completed(works[0]));
        REFUSED(tutti_work_wait(works[0]), TUTTI_E_STATE, "recorded, not issued");
        REFUSED(tutti_wait_any(works, N, 0, &i), TUTTI_E_STATE, "recorded, not issued");
        OK(tutti_broadcast(TUTTI_SPAN(&n, 1), 0, t->group)); /* any other kind runs at once */
        assert_int_equal(n, 0);
        if (round == 0) {
            OK(tutti_coalescing_end(t->group, NULL));
            for (i = 0; i < N; i += 2)
                assert_true(tutti_work_is_completed(works[i]));
        } else {
            OK(tutti_coalescing_end(t->group, &all));
        }
        for (i = 0; i < N; i += 2)
            finish(works[i]);
        if (round == 1) {
            assert_true(tutti_work_is_completed(all));
            finish(all);
        }
        for (i = 0; i < N; i++)
            expect_same(bufs[i], want[i], i);
    }
}

static void scopes_take_the_other_kinds(tt_ctx *t)
{
    float a[3] = { 1, 2, 3 }, b[2] = { 4, 5 }, c[64], d[64], x[8], y[8];
    int   i, r;

    for (i = 0; i < 8; i++)
        x[i] = y[i] = (float)(i + t->rank);
    OK(tutti_coalescing_begin(t->group));
    OK(tutti_all_gather_into_tensor(TUTTI_SPAN(c, 3 * t->size), TUTTI_SPAN(a, 3), t->group));
    OK(tutti_all_gather_into_tensor(TUTTI_SPAN(d, 2 * t->size), TUTTI_SPAN(b, 2), t->group));
    OK(tutti_coalescing_end(t->group, NULL));
    for (r = 0; r < t->size; r++)
        assert_true(c[3 * r + 2] == 3 && d[2 * r] == 4);
    OK(tutti_coalescing_begin(t->group));
    OK(tutti_reduce_scatter_tensor(TUTTI_SPAN(a, 1), TUTTI_SPAN(x, t->size), TUTTI_MAX, t->group));
    OK(tutti_reduce_scatter_tensor(TUTTI_SPAN(b, 1), TUTTI_SPAN(y, t->size), TUTTI_MAX, t->group));
    OK(tutti_coalescing_end(t->group, NULL));
    assert_true(a[0] == (float)(2 * t->rank + t->size - 1 - t->rank) && b[0] == a[0]);
    /* a scope of one call is that call, also to ranks that make it alone */
    if (t->rank == 0)
        OK(tutti_coalescing_begin(t->group));
    OK(tutti_all_reduce(TUTTI_SPAN(a, 1), TUTTI_SUM, t->group));
    if (t->rank == 0)
        OK(tutti_coalescing_end(t->group, NULL));
    assert_true(a[0] > 0);
}

static void end_mixed(tt_ctx *t, tutti_work *work, const float *x, const char *word)
{
    tutti_work *all = NULL;

    if (t->rank % 2)
        REFUSED(tutti_coalescing_end(t->group, &all), TUTTI_E_ARG, word);
    else
        REFUSED(tutti_coalescing_end(t->group, NULL), TUTTI_E_ARG, word);
    assert_null(all);
    REFUSED(tutti_work_wait(work), TUTTI_E_ARG, word);
    tutti_work_free(work);
    assert_true(x[0] == 1.0f && x[1] == 2.0f); /* nothing ran */
    REFUSED(tutti_coalescing_end(t->group, NULL), TUTTI_E_STATE, "no scope open"); /* the scope is over */
}

static void mixed_scopes_run_nothing(tt_ctx *t)
{
    float       x[64] = { 1, 2 }, y[64] = { 0 };
    double      z[2] = { 0 };
    tutti_work *work = NULL;

    OK(tutti_coalescing_begin(t->group));
    OK(tutti_all_reduce_async(TUTTI_SPAN(x, 2), TUTTI_SUM, t->group, &work));
    OK(tutti_all_gather_into_tensor(TUTTI_SPAN(y, t->size), TUTTI_SPAN(x, 1), t->group));
    end_mixed(t, work, x, "its kind is all_gather");

    OK(tutti_coalescing_begin(t->group));
    OK(tutti_all_reduce_async(TUTTI_SPAN(x, 2), TUTTI_SUM, t->group, &work));
    OK(tutti_all_reduce(TUTTI_SPAN(y, 2), TUTTI_MAX, t->group));
    OK(tutti_all_reduce(TUTTI_SPAN(y + 2, 2), TUTTI_SUM, t->group));
    end_mixed(t, work, x, "its op is max");

    OK(tutti_coalescing_begin(t->group));
    OK(tutti_all_reduce_async(TUTTI_SPAN(x, 2), TUTTI_SUM, t->group, &work));
    OK(tutti_all_reduce(TUTTI_SPAN(z, 2), TUTTI_SUM, t->group));
    end_mixed(t, work, x, "its dtype is f64");

    OK(tutti_coalescing_begin(t->group));
    OK(tutti_all_reduce_async(TUTTI_SPAN(x, 2), tutti_premul_sum(2), t->group, &work));
    OK(tutti_all_reduce(TUTTI_SPAN(y, 2), tutti_premul_sum(3), t->group));
    end_mixed(t, work, x, "its factor");
    OK(tutti_barrier(t->group));
}

static void *on_another_thread(void *arg)
{
    tt_ctx *t = arg;
    bool    ok;

    ok = tutti_coalescing_end(t->group, NULL) == TUTTI_E_STATE;
    ok &= tutti_coalescing_begin(t->group) == TUTTI_E_STATE;
    ok &= strstr(tutti_last_error(), "on another thread") != NULL;
    ok &= tutti_barrier(t->group) == TUTTI_OK; /* all others run at once */
    return ok ? t : NULL;
}

static void scopes_have_rules(tt_ctx *t)
{
    float       x = 1;
    tutti_work *work = NULL;
    pthread_t   thread;
    void       *ok = NULL;

    REFUSED(tutti_coalescing_end(t->group, NULL), TUTTI_E_STATE, "no scope open");
    OK(tutti_coalescing_begin(t->group)); /* nothing in it */
    OK(tutti_coalescing_end(t->group, &work));
    assert_true(tutti_work_is_completed(work));
    finish(work);
    OK(tutti_coalescing_begin(t->group));
    REFUSED(tutti_coalescing_begin(t->group), TUTTI_E_STATE, "on this thread");
    OK(tutti_all_reduce(TUTTI_SPAN(&x, 1), TUTTI_SUM, t->group));
    REFUSED(tutti_coalescing_begin(t->group), TUTTI_E_STATE, "on this thread");
    /* a wrong argument is told at once, and leaves the scope as it was */
    REFUSED(tutti_all_reduce(tutti_span_of(NULL, 1, TUTTI_F32), TUTTI_SUM, t->group), TUTTI_E_ARG, "no data");
    assert_int_equal(pthread_create(&thread, NULL, on_another_thread, t), 0);
    pthread_join(thread, &ok);
    assert_ptr_equal(ok, t);
    OK(tutti_coalescing_end(t->group, NULL));
    assert_true(x == (float)t->size);
    OK(tutti_coalescing_begin(TUTTI_NON_MEMBER));
    OK(tutti_coalescing_end(TUTTI_NON_MEMBER, &work));
    finish(work);
}

static void a_scope_that_is_left_open_ends_with_its_group(tt_ctx *t)
{
    tutti_group *group = NULL;
    tutti_work  *work = NULL;
    float        x = 1;

    OK(tutti_new_group(NULL, 0, NULL, &group));
    OK(tutti_coalescing_begin(group));
    OK(tutti_all_reduce_async(TUTTI_SPAN(&x, 1), TUTTI_SUM, group, &work));
    OK(tutti_destroy_process_group(group));
    REFUSED(tutti_work_wait(work), TUTTI_E_ABORTED, "was not ended");
    tutti_work_free(work);
    OK(tutti_barrier(t->group));
}

/* Rank 0 has the same elements in other buffers. */
static void ranks_with_other_buffers_are_a_mismatch(tt_ctx *t)
{
    float        x[10] = { 0 };
    tutti_span   bufs[2] = { TUTTI_SPAN(x, t->rank == 0 ? 4 : 6), TUTTI_SPAN(x + 6, t->rank == 0 ? 6 : 4) };
    tutti_status st;

    if (t->rank == 0)
        bufs[1] = TUTTI_SPAN(x + 4, 6);
    st = tutti_all_reduce_coalesced(bufs, 2, TUTTI_SUM, t->group);
    assert_int_equal(st, TUTTI_E_MISMATCH);
}

static void wrong_arguments_are_refused(tt_ctx *t)
{
    float             x[8] = { 0 };
    double            d = 0;
    tutti_span        some[2] = { TUTTI_SPAN(x, 2), TUTTI_SPAN(&d, 1) };
    tutti_span        odd[2] = { TUTTI_SPAN(x, t->size), TUTTI_SPAN(x + t->size, t->size + 1) };
    tutti_span        ones[2] = { TUTTI_SPAN(x + 6, 1), TUTTI_SPAN(x + 7, 1) };
    const tutti_span *lists[8] = { NULL };
    tutti_work       *work = NULL;

    REFUSED(tutti_all_reduce_coalesced(some, 0, TUTTI_SUM, t->group), TUTTI_E_ARG, "0 buffers");
    REFUSED(tutti_all_reduce_coalesced(NULL, 1, TUTTI_SUM, t->group), TUTTI_E_ARG, "at NULL");
    REFUSED(tutti_all_reduce_coalesced(some, 2, TUTTI_SUM, t->group), TUTTI_E_ARG, "its dtype is f64");
    REFUSED(tutti_all_reduce_coalesced(some, 2, TUTTI_BOR, t->group), TUTTI_E_ARG, "'bor' is not defined");
    REFUSED(tutti_all_reduce_coalesced_async(some, 1, TUTTI_SUM, t->group, NULL), TUTTI_E_ARG, "work_out");
    REFUSED(tutti_all_gather_into_tensor_coalesced(odd, ones, 2, t->group), TUTTI_E_ARG, "coalesced[1]");
    REFUSED(tutti_reduce_scatter_tensor_coalesced_async(ones, odd, 2, TUTTI_SUM, t->group, &work), TUTTI_E_ARG,
            "coalesced[1]");
    REFUSED(tutti_all_gather_coalesced(lists, t->size, ones, 2, t->group), TUTTI_E_ARG, "outs[0] is NULL");
    REFUSED(tutti_all_gather_coalesced(lists, t->size + 1, ones, 2, t->group), TUTTI_E_ARG, "lists");
    assert_null(work);
    OK(tutti_barrier(t->group));
}

int main(void)
{
    static const tt_test tests[] = {
        TT_TEST(every_form, .ranks = 3, .transports = "shm,tcp,threads,threads-tcp", .limit_ms = 120000),
        TT_TEST(every_form, .ranks = 1, .transports = "threads", .limit_ms = 60000),
        TT_TEST(every_form, .ranks = 4, .hosts = 2, .limit_ms = 120000),
        TT_TEST(a_list_is_one_operation, .ranks = 2, .transports = "shm,tcp,threads", .limit_ms = 60000),
        TT_TEST(a_scope_records_and_does_all_at_once, .ranks = 3, .transports = "shm,tcp,threads",
                .limit_ms = 60000),
        TT_TEST(scopes_take_the_other_kinds, .ranks = 4, .transports = "shm,tcp,threads", .limit_ms = 60000),
        TT_TEST(mixed_scopes_run_nothing, .ranks = 2, .transports = "shm,threads", .limit_ms = 60000),
        TT_TEST(scopes_have_rules, .ranks = 2, .transports = "shm,tcp", .limit_ms = 60000),
        TT_TEST(a_scope_that_is_left_open_ends_with_its_group, .ranks = 2, .transports = "shm,threads",
                .limit_ms = 60000),
        TT_TEST(ranks_with_other_buffers_are_a_mismatch, .ranks = 2, .transports = "shm,tcp", .limit_ms = 60000),
        TT_TEST(wrong_arguments_are_refused, .ranks = 2, .transports = "threads", .limit_ms = 60000),
    };

    return tt_main(tests, sizeof tests / sizeof tests[0]);
}
