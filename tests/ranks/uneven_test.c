/* SPDX-License-Identifier: BSD-3-Clause
 *
 * uneven_test.c
 * Goal    collectives whose parts have other sizes from rank to rank move every element to its place and
 *         nothing behind it, in and out of place, blocking and asynchronous; ranks that disagree about sizes
 *         get an error that names the rank, or say it before anything is sent.
 * Method  element i of rank r's part p has a value of its own. Rank r's part has none, half, or all of a
 *         number of elements around the boundaries of staging; a guard stands behind every part. */
#include <string.h>
#include "harness/harness.h"
#include <tutti/tutti.h>

#define OK(call)                                                                                       \
    do {                                                                                               \
        if ((call) != TUTTI_OK)                                                                        \
            fail_msg("%s: %s", #call, tutti_last_error());                                             \
    } while (0)

static const int64_t sizes[] = { 0, 1, 2, 1000, 65538, 200002 };
enum { N_SIZES = sizeof sizes / sizeof sizes[0], GUARD = -77 };

/* A third of the parts is empty. */
static int64_t count_of(int64_t count, int rank)
{
    return count * (rank % 3) / 2;
}

static int32_t value_of(int64_t i, int rank, int part)
{
    return (int32_t)(i * 7 + rank * 100003 + part * 1009);
}

/* All parts with one element between them, which nobody may touch. */
typedef struct table {
    tutti_span parts[TT_RANKS_MAX];
    int32_t   *data;
    int64_t    room;
} table;

static table make_table(tt_ctx *t, int64_t count)
{
    table   made = { .room = 1 };
    int64_t at = 0, i;
    int     r;

    for (r = 0; r < t->size; r++)
        made.room += count_of(count, r) + 1;
    made.data = tt_alloc(t, (size_t)made.room * sizeof *made.data);
    for (i = 0; i < made.room; i++)
        made.data[i] = GUARD;
    for (r = 0; r < t->size; r++) {
        made.parts[r] = TUTTI_SPAN(made.data + at, count_of(count, r));
        at += count_of(count, r) + 1;
    }
    return made;
}

static void fill(tutti_span span, int rank, int part)
{
    int64_t i;

    for (i = 0; i < span.count; i++)
        ((int32_t *)span.data)[i] = value_of(i, rank, part);
}

static void expect(tutti_span span, int rank, int part)
{
    const int32_t *got = span.data;
    int64_t        i;

    for (i = 0; i < span.count; i++)
        if (got[i] != value_of(i, rank, part))
            fail_msg("element %lld of %lld of rank %d is %d, not %d", (long long)i, (long long)span.count, rank,
                     got[i], value_of(i, rank, part));
}

static void expect_guards(const tt_ctx *t, const table *of)
{
    int r;

    for (r = 0; r < t->size; r++)
        if (((const int32_t *)of->parts[r].data)[of->parts[r].count] != GUARD)
            fail_msg("something was written behind part %d of %lld", r, (long long)of->parts[r].count);
}

static void finish(tutti_work *work)
{
    OK(tutti_work_wait(work));
    tutti_work_free(work);
}

static void gather_lists(tt_ctx *t, int64_t count, bool async)
{
    table       all = make_table(t, count);
    table       own = make_table(t, count);
    tutti_span  in = own.parts[t->rank];
    tutti_work *work = NULL;
    int         r;

    fill(in, t->rank, 0);
    if (async)
        OK(tutti_all_gather_async(all.parts, t->size, in, t->group, &work));
    else
        OK(tutti_all_gather(all.parts, t->size, in, t->group));
    if (async)
        finish(work);
    for (r = 0; r < t->size; r++)
        expect(all.parts[r], r, 0);
    expect_guards(t, &all);
    expect_guards(t, &own);
    fill(all.parts[t->rank], t->rank, 5);
    OK(tutti_all_gather(all.parts, t->size, all.parts[t->rank], t->group)); /* in place */
    for (r = 0; r < t->size; r++)
        expect(all.parts[r], r, 5);
}

/* One span without gaps, whose parts are where the table says. */
static tutti_span make_flat(tt_ctx *t, int64_t count, tutti_span parts[TT_RANKS_MAX],
                            int64_t counts[TT_RANKS_MAX])
{
    int64_t    total = 0;
    tutti_span flat;
    int32_t   *data;
    int        r;

    for (r = 0; r < t->size; r++)
        total += counts[r] = count_of(count, r);
    data = tt_alloc(t, (size_t)(total + 1) * sizeof *data);
    data[total] = GUARD;
    flat = TUTTI_SPAN(data, total);
    for (r = 0; r < t->size; r++) {
        parts[r] = TUTTI_SPAN(data, counts[r]);
        data += counts[r];
    }
    return flat;
}

static void gather_flat(tt_ctx *t, int64_t count, bool async)
{
    tutti_span  parts[TT_RANKS_MAX];
    int64_t     counts[TT_RANKS_MAX];
    tutti_span  flat = make_flat(t, count, parts, counts);
    tutti_work *work = NULL;
    int         r;

    fill(parts[t->rank], t->rank, 1);
    if (async)
        OK(tutti_all_gather_into_tensor_v_async(flat, parts[t->rank], counts, t->group, &work));
    else
        OK(tutti_all_gather_into_tensor_v(flat, parts[t->rank], counts, t->group));
    memset(counts, 0x5a, sizeof counts);
    if (async)
        finish(work);
    for (r = 0; r < t->size; r++)
        expect(parts[r], r, 1);
    assert_int_equal(((int32_t *)flat.data)[flat.count], GUARD);
}

/* The sum over ranks of value_of(i, r, own part). */
static void expect_sum(const tt_ctx *t, tutti_span out)
{
    const int32_t *got = out.data;
    int64_t        i;
    int            r;

    for (i = 0; i < out.count; i++) {
        uint32_t sum = 0;

        for (r = 0; r < t->size; r++)
            sum += (uint32_t)value_of(i, r, t->rank);
        if ((uint32_t)got[i] != sum)
            fail_msg("sum %lld of %lld is %d, not %d", (long long)i, (long long)out.count, got[i], (int)sum);
    }
}

static void scatter_sums(tt_ctx *t, int64_t count, bool async)
{
    tutti_span  parts[TT_RANKS_MAX];
    int64_t     counts[TT_RANKS_MAX];
    tutti_span  flat = make_flat(t, count, parts, counts);
    tutti_span  out = TUTTI_SPAN((int32_t *)tt_alloc(t, (size_t)(counts[t->rank] + 1) * 4), counts[t->rank]);
    tutti_work *work = NULL;
    int         r;

    for (r = 0; r < t->size; r++)
        fill(parts[r], t->rank, r);
    if (async)
        OK(tutti_reduce_scatter_tensor_v_async(out, flat, counts, TUTTI_SUM, t->group, &work));
    else
        OK(tutti_reduce_scatter_tensor_v(out, flat, counts, TUTTI_SUM, t->group));
    if (async)
        finish(work);
    expect_sum(t, out);
    for (r = 0; r < t->size; r++)
        expect(parts[r], t->rank, r); /* only read */
    OK(tutti_reduce_scatter_tensor_v(parts[t->rank], flat, counts, TUTTI_SUM, t->group)); /* in place */
    expect_sum(t, parts[t->rank]);
}

static void gather_to_root(tt_ctx *t, int64_t count, int root, bool async)
{
    const bool  gets = t->rank == root;
    table       all = make_table(t, count);
    table       own = make_table(t, count);
    tutti_span  in = own.parts[t->rank];
    tutti_work *work = NULL;
    int         r;

    fill(in, t->rank, 2);
    if (async)
        OK(tutti_gather_v_async(gets ? all.parts : NULL, gets ? t->size : 0, in, root, t->group, &work));
    else
        OK(tutti_gather_v(gets ? all.parts : NULL, gets ? t->size : 0, in, root, t->group));
    if (async)
        finish(work);
    for (r = 0; gets && r < t->size; r++)
        expect(all.parts[r], r, 2);
    expect_guards(t, &all);
    fill(all.parts[t->rank], t->rank, 4);
    if (gets) /* in place on the root */
        in = all.parts[t->rank];
    OK(tutti_gather_v(gets ? all.parts : NULL, gets ? t->size : 0, in, root, t->group));
    expect(in, t->rank, gets ? 4 : 2);
}

static void scatter_from_root(tt_ctx *t, int64_t count, int root, bool async)
{
    const bool  gives = t->rank == root;
    table       all = make_table(t, count);
    table       own = make_table(t, count);
    tutti_span  out = own.parts[t->rank];
    tutti_work *work = NULL;
    int         r;

    for (r = 0; r < t->size; r++)
        fill(all.parts[r], root, r);
    if (async)
        OK(tutti_scatter_v_async(out, gives ? all.parts : NULL, gives ? t->size : 0, root, t->group, &work));
    else
        OK(tutti_scatter_v(out, gives ? all.parts : NULL, gives ? t->size : 0, root, t->group));
    if (async)
        finish(work);
    expect(out, root, t->rank);
    expect_guards(t, &own);
}

static void every_form(tt_ctx *t)
{
    int s, async;

    for (s = 0; s < N_SIZES; s++)
        for (async = 0; async < 2; async++) {
            gather_lists(t, sizes[s], async);
            gather_flat(t, sizes[s], async);
            scatter_sums(t, sizes[s], async);
            gather_to_root(t, sizes[s], (s + async) % t->size, async);
            scatter_from_root(t, sizes[s], (s + async) % t->size, async);
        }
}

enum { SAID, ENDED, THERE }; /* marks */

/* Two that differ end their world also for a third one, which may still be making it. */
static void all_are_there(tt_ctx *t)
{
    tt_post(t, THERE);
    tt_await(t, THERE, (uint32_t)t->size);
}

/* Only rank 0's list has other counts. */
static void lists_that_differ_are_a_mismatch(tt_ctx *t)
{
    int64_t      counts[TT_RANKS_MAX];
    int32_t     *all = tt_alloc(t, TT_RANKS_MAX * 8 * sizeof *all);
    int32_t      own[8] = { 0 };
    int64_t      total = 0;
    tutti_status st;
    int          r;

    all_are_there(t);
    for (r = 0; r < t->size; r++)
        total += counts[r] = r == 2 && t->rank == 0 ? 5 : r + 1;
    st = tutti_all_gather_into_tensor_v(TUTTI_SPAN(all, total), TUTTI_SPAN(own, counts[t->rank]), counts, t->group);
    if (st == TUTTI_OK) /* seen at the next call at the latest */
        st = tutti_barrier(t->group);
    assert_true(st != TUTTI_OK && st != TUTTI_E_ARG && st != TUTTI_E_TIMEOUT);
    if (t->rank == 0)
        assert_int_equal(st, TUTTI_E_MISMATCH);
}

/* To rank 1 the others give nothing, so that it has all it needs; it meets them nevertheless. */
static void who_expects_nothing_hears_of_it_in_the_same_call(tt_ctx *t)
{
    int32_t      all[TT_RANKS_MAX * 2] = { 0 };
    int32_t      own[2] = { 0 };
    int64_t      counts[TT_RANKS_MAX], total = 0;
    int          r;

    all_are_there(t);
    for (r = 0; r < t->size; r++)
        total += counts[r] = r == t->rank || t->rank != 1 ? 2 : 0;
    assert_int_equal(tutti_all_gather_into_tensor_v(TUTTI_SPAN(all, total), TUTTI_SPAN(own, 2), counts, t->group),
                     TUTTI_E_MISMATCH);
    assert_non_null(strstr(tutti_last_error(), "called different things"));
    assert_non_null(strstr(tutti_last_error(), "in parts that differ from rank to rank, list of counts "));
}

/* Rank 2 has five elements, the root expects three. Who of the two sees it first says both counts, the other
 * at least of whom it heard; all end. */
static void a_count_that_the_root_does_not_expect_is_a_mismatch(tt_ctx *t)
{
    int32_t      data[TT_RANKS_MAX][8] = { { 0 } };
    int32_t      own[8] = { 0 };
    tutti_span   outs[TT_RANKS_MAX];
    const bool   gets = t->rank == 1;
    tutti_status st;
    int          r;

    all_are_there(t);
    for (r = 0; r < t->size; r++)
        outs[r] = TUTTI_SPAN(data[r], r + 1);
    st = tutti_gather_v(gets ? outs : NULL, gets ? t->size : 0, TUTTI_SPAN(own, t->rank == 2 ? 5 : t->rank + 1), 1,
                        t->group);
    if (st == TUTTI_OK)
        st = tutti_barrier(t->group);
    assert_int_not_equal(st, TUTTI_OK);
    assert_int_not_equal(st, TUTTI_E_TIMEOUT);
    if (t->rank == 1 || t->rank == 2) {
        assert_int_equal(st, TUTTI_E_MISMATCH);
        if (strstr(tutti_last_error(), "rank 2 gives rank 1 5 elements, which expects 3") != NULL)
            tt_post(t, SAID);
        else if (strstr(tutti_last_error(), "reported TUTTI_E_MISMATCH") == NULL) /* about nobody, where it was passed on */
            fail_msg("%s", tutti_last_error());
        tt_post(t, ENDED);
        tt_await(t, ENDED, 2);
        assert_true(t->marks[SAID] >= 1);
    }
}

static void wrong_arguments_are_refused(tt_ctx *t)
{
    int32_t       all[8] = { 0 }, own[8] = { 0 };
    const int64_t counts[] = { 1, 2, 3 }, negative[] = { 4, -1, 3 }, short_of[] = { 1, 2, 2 };
    tutti_span    in = TUTTI_SPAN(own, t->rank + 1), out = TUTTI_SPAN(all, 6);
    tutti_span    outs[] = { TUTTI_SPAN(all, 1), TUTTI_SPAN(all + 1, 2), TUTTI_SPAN(all + 3, 3) };
    tutti_span    longer = TUTTI_SPAN(own, t->rank + 2);

    assert_int_equal(tutti_all_gather_into_tensor_v(out, in, NULL, t->group), TUTTI_E_ARG);
    assert_non_null(strstr(tutti_last_error(), "counts is NULL"));
    assert_int_equal(tutti_all_gather_into_tensor_v(out, in, negative, t->group), TUTTI_E_ARG);
    assert_non_null(strstr(tutti_last_error(), "counts[1] is -1"));
    assert_int_equal(tutti_all_gather_into_tensor_v(out, in, short_of, t->group), TUTTI_E_ARG);
    assert_non_null(strstr(tutti_last_error(), "add up to 5, but out has 6"));
    assert_int_equal(tutti_all_gather_into_tensor_v(out, longer, counts, t->group), TUTTI_E_ARG);
    assert_int_equal(tutti_all_gather(outs, t->size, longer, t->group), TUTTI_E_ARG);
    assert_int_equal(tutti_reduce_scatter_tensor_v(longer, out, counts, TUTTI_SUM, t->group), TUTTI_E_ARG);
    assert_int_equal(tutti_reduce_scatter_tensor_v(in, out, counts, TUTTI_AVG, t->group), TUTTI_E_ARG);
    assert_int_equal(tutti_gather_v(t->rank == 0 ? NULL : outs, t->rank == 0 ? 0 : 3, in, 0, t->group), TUTTI_E_ARG);
    assert_int_equal(tutti_scatter_v(in, outs, t->size, 3, t->group), TUTTI_E_ARG);
    OK(tutti_barrier(t->group)); /* nothing of it took a number */
}

int main(void)
{
    static const tt_test tests[] = {
        TT_TEST(every_form, .ranks = 4, .transports = "shm,tcp,threads,threads-tcp", .limit_ms = 120000),
        TT_TEST(every_form, .ranks = 1, .transports = "threads", .limit_ms = 60000),
        TT_TEST(every_form, .ranks = 4, .hosts = 2, .limit_ms = 120000),
        TT_TEST(lists_that_differ_are_a_mismatch, .ranks = 3, .transports = "shm,tcp", .limit_ms = 60000),
        TT_TEST(who_expects_nothing_hears_of_it_in_the_same_call, .ranks = 3, .transports = "shm,tcp",
                .limit_ms = 60000),
        TT_TEST(a_count_that_the_root_does_not_expect_is_a_mismatch, .ranks = 4,
                .transports = "shm,tcp,threads", .limit_ms = 60000),
        TT_TEST(wrong_arguments_are_refused, .ranks = 3, .transports = "threads", .limit_ms = 60000),
    };

    return tt_main(tests, sizeof tests / sizeof tests[0]);
}
