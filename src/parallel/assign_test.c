/* SPDX-License-Identifier: BSD-3-Clause
 *
 * assign_test.c
 * Goal    buckets are those of torch, in its examples and at its corners: a limit is passed by the last item, each
 *         dtype has limits of its own, given orders and the small first bucket.
 * Method  layouts written down by hand; then many drawn ones, against the rules alone. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "parallel/assign.h"

enum { LINEARS = 12, PARAMS = 2 * LINEARS };

/* 12 layers of 512 x 512 and 512 elements, f32. */
static void make_linears(tti_sized items[PARAMS])
{
    int i;

    for (i = 0; i < PARAMS; i++)
        items[i] = (tti_sized){ .dtype = TUTTI_F32, .bytes = i % 2 == 0 ? 512 * 512 * 4 : 512 * 4 };
}

static int64_t bytes_of(const tti_layout *layout, const tti_sized *items, int b)
{
    int64_t bytes = 0;
    int     p;

    for (p = layout->first[b]; p < layout->first[b + 1]; p++)
        bytes += items[layout->params[p]].bytes;
    return bytes;
}

static void expect_bytes(const tti_layout *layout, const tti_sized *items, const int64_t *want, int n)
{
    int b;

    assert_int_equal(layout->n_buckets, n);
    assert_true(tti_layout_is_whole(layout));
    for (b = 0; b < n; b++)
        assert_int_equal(bytes_of(layout, items, b), want[b]);
}

static void one_bucket_at_first(void **state)
{
    static const int64_t want[] = { 12607488 };
    const tti_caps       caps = { 0 };
    tti_sized            items[PARAMS];
    const int64_t       *limits;
    int64_t              room[2];
    tti_layout           layout;

    (void)state;
    make_linears(items);
    assert_int_equal(tti_initial_limits(&caps, room, &limits), 1);
    assert_int_equal(tti_assign_buckets(items, PARAMS, limits, 1, NULL, &layout), TUTTI_OK);
    expect_bytes(&layout, items, want, 1);
    tti_layout_release(&layout);
}

static void a_small_bucket_first_when_rebuilt(void **state)
{
    static const int64_t want[] = { 1050624, 11556864 };
    const tti_caps       caps = { 0 };
    tti_sized            items[PARAMS];
    int                  order[PARAMS];
    const int64_t       *limits;
    int64_t              room[2];
    tti_layout           layout;
    int                  i;

    (void)state;
    make_linears(items);
    for (i = 0; i < PARAMS; i++)
        order[i] = PARAMS - 1 - i;
    assert_int_equal(tti_rebuilt_limits(&caps, room, &limits), 2);
    assert_int_equal(tti_assign_buckets(items, PARAMS, limits, 2, order, &layout), TUTTI_OK);
    expect_bytes(&layout, items, want, 2);
    assert_int_equal(layout.params[0], 23);
    assert_int_equal(layout.params[1], 22);
    assert_int_equal(layout.params[2], 21);
    assert_int_equal(layout.limits[0], TTI_FIRST_BUCKET);
    assert_int_equal(layout.limits[1], TTI_BUCKET_CAP);
    tti_layout_release(&layout);
}

/* As torch 1.13 has it with find_unused_parameters and 3 MiB: the small bucket comes last. */
static void unused_parameters_keep_the_first_layout(void **state)
{
    static const int64_t want[] = { 2103296, 3151872, 3151872, 3151872, 1048576 };
    static const int64_t limits[] = { TTI_MIB, 3 * TTI_MIB };
    tti_sized            items[PARAMS];
    tti_layout           layout;

    (void)state;
    make_linears(items);
    assert_int_equal(tti_assign_buckets(items, PARAMS, limits, 2, NULL, &layout), TUTTI_OK);
    assert_int_equal(tti_layout_reverse(&layout), TUTTI_OK);
    expect_bytes(&layout, items, want, 5);
    assert_int_equal(layout.params[PARAMS - 1], 0);
    assert_int_equal(layout.params[0], 19); /* inside of a bucket the order of definition */
    tti_layout_release(&layout);
}

static void each_dtype_has_limits_of_its_own(void **state)
{
    static const tti_sized items[] = { { TUTTI_F32, 40 }, { TUTTI_F64, 80 }, { TUTTI_F32, 60 }, { TUTTI_F32, 10 },
                                       { TUTTI_F64, 20 }, { TUTTI_F16, 1 },  { TUTTI_F64, 300 } };
    static const int64_t   limits[] = { 100, 200 };
    static const int       by_first[] = { 0, 2, 1, 4, 3, 5, 6 }, lengths[] = { 2, 2, 1, 1, 1 };
    static const int       order[] = { 6, 5, 4, 3, 2, 1, 0 };
    static const int       by_end[] = { 6, 3, 2, 0, 5, 4, 1 };
    tti_layout             layout;
    int                    b;

    (void)state;
    assert_int_equal(tti_assign_buckets(items, 7, limits, 2, NULL, &layout), TUTTI_OK);
    assert_memory_equal(layout.params, by_first, sizeof by_first);
    assert_int_equal(layout.n_buckets, 5);
    for (b = 0; b < 5; b++)
        assert_int_equal(layout.first[b + 1] - layout.first[b], lengths[b]);
    tti_layout_release(&layout);

    /* In the other order: 6 is full at once; 3, 2, 0 are full with 0; 5 never, nor 4 and 1, opened behind it. */
    assert_int_equal(tti_assign_buckets(items, 7, limits, 2, order, &layout), TUTTI_OK);
    assert_memory_equal(layout.params, by_end, sizeof by_end);
    assert_int_equal(layout.n_buckets, 4);
    assert_int_equal(layout.limits[3], 200);
    tti_layout_release(&layout);
}

static void limits_follow_the_modes(void **state)
{
    static const int64_t list[] = { 1, 2, 3 };
    int64_t              room[2];
    const int64_t       *limits;
    tti_caps             caps = { .find_unused = true };

    (void)state;
    assert_int_equal(tti_initial_limits(&caps, room, &limits), 2); /* unset differs from 25 MiB */
    assert_int_equal(limits[0], TTI_FIRST_BUCKET);
    assert_int_equal(limits[1], TTI_BUCKET_CAP);
    caps.cap = TTI_BUCKET_CAP;
    assert_int_equal(tti_initial_limits(&caps, room, &limits), 1);
    assert_int_equal(limits[0], TTI_BUCKET_CAP);
    caps.static_graph = true;
    assert_int_equal(tti_initial_limits(&caps, room, &limits), 1);
    assert_true(limits[0] == TTI_NO_LIMIT);
    assert_int_equal(tti_rebuilt_limits(&caps, room, &limits), 1);
    assert_int_equal(limits[0], TTI_BUCKET_CAP);
    caps.list = list;
    caps.n_list = 3;
    assert_int_equal(tti_initial_limits(&caps, room, &limits), 3);
    assert_ptr_equal(limits, list);
    assert_int_equal(tti_rebuilt_limits(&caps, room, &limits), 3);
}

/* The rules: nothing twice, one dtype, and below the limit without the last one. */
static void check_rules(const tti_layout *layout, const tti_sized *items)
{
    int b, p;

    assert_true(tti_layout_is_whole(layout));
    for (b = 0; b < layout->n_buckets; b++) {
        const int last = layout->params[layout->first[b + 1] - 1];

        for (p = layout->first[b]; p < layout->first[b + 1]; p++)
            assert_int_equal(items[layout->params[p]].dtype, items[last].dtype);
        assert_true(bytes_of(layout, items, b) - items[last].bytes < layout->limits[b]);
    }
}

static void drawn_layouts_keep_the_rules(void **state)
{
    enum { N = 200, ROUNDS = 200 };
    static const tutti_dtype dtypes[] = { TUTTI_F32, TUTTI_F16, TUTTI_F64 };
    tti_sized                items[N];
    int                      order[N];
    uint64_t                 x = 88172645463325252u;
    tti_layout               layout;
    int64_t                  limits[2];
    int                      round, i, k, t, n;

    (void)state;
    for (round = 0; round < ROUNDS; round++) {
        n = 1 + round % N;
        for (i = 0; i < n; i++) {
            x ^= x << 13, x ^= x >> 7, x ^= x << 17;
            items[i] = (tti_sized){ .dtype = dtypes[x % 3], .bytes = (int64_t)(x / 7 % 1000) };
            order[i] = i;
            k = (int)(x / 11 % (uint64_t)(i + 1));
            t = order[i], order[i] = order[k], order[k] = t;
        }
        limits[0] = 1 + (int64_t)(x % 500);
        limits[1] = 1 + (int64_t)(x % 3000);
        assert_int_equal(tti_assign_buckets(items, n, limits, 2, round % 2 ? order : NULL, &layout), TUTTI_OK);
        check_rules(&layout, items);
        tti_layout_release(&layout);
    }
}

static void what_is_no_layout_is_seen(void **state)
{
    tti_layout layout;

    (void)state;
    assert_int_equal(tti_layout_create(3, &layout), TUTTI_OK);
    layout.n_buckets = 2;
    memcpy(layout.params, (const int[]){ 2, 0, 1 }, 3 * sizeof(int));
    memcpy(layout.first, (const int[]){ 0, 1, 3 }, 3 * sizeof(int));
    assert_true(tti_layout_is_whole(&layout));
    layout.first[1] = 0; /* an empty bucket */
    assert_false(tti_layout_is_whole(&layout));
    layout.first[1] = 1;
    layout.params[2] = 2; /* twice */
    assert_false(tti_layout_is_whole(&layout));
    layout.params[2] = 3; /* none */
    assert_false(tti_layout_is_whole(&layout));
    tti_layout_release(&layout);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_bucket_at_first),
        cmocka_unit_test(a_small_bucket_first_when_rebuilt),
        cmocka_unit_test(unused_parameters_keep_the_first_layout),
        cmocka_unit_test(each_dtype_has_limits_of_its_own),
        cmocka_unit_test(limits_follow_the_modes),
        cmocka_unit_test(drawn_layouts_keep_the_rules),
        cmocka_unit_test(what_is_no_layout_is_seen),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
