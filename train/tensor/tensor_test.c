/* SPDX-License-Identifier: BSD-3-Clause
 *
 * tensor_test.c
 * Goal    memory is owned and freed as promised; views, conversions, arithmetic and sums are right;
 *         a failure is kept once, with its words, and NULL passes silently. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <malloc.h>
#include <math.h>
#include <string.h>
#include <tutti/autograd.h>

#include "tensor/tensor.h"
#include "tensor/checks.h"

#define SHAPE(...) ((const int64_t[]){ __VA_ARGS__ })
#define WIDE       (INT64_C(1) << 40)

static double at2(tutti_tensor *t, int64_t i, int64_t j)
{
    return item(tutti_tensor_select(tutti_tensor_select(t, 0, i), 0, j));
}

/* ---- ownership -------------------------------------------------------------------------------- */

static void count_free(void *data, void *ctx)
{
    (void)data;
    ++*(int *)ctx;
}

static void memory_lives_as_long_as_its_last_view(void **state)
{
    float data[6] = { 0 };
    int freed = 0;
    tutti_tensor *view;

    (void)state;
    tutti_scope_begin();
    view = tutti_tensor_from_ptr(data, TUTTI_F32, 2, SHAPE(2, 3), count_free, &freed);
    view = tutti_tensor_retain(tutti_tensor_transpose(view, 0, 1));
    tutti_scope_end();
    assert_int_equal(freed, 0);
    assert_ptr_equal(tutti_tensor_data(view), data);
    tutti_tensor_release(view);
    assert_int_equal(freed, 1);
}

static void failed_from_ptr_leaves_memory_to_the_caller(void **state)
{
    char bytes[17] = { 0 };
    int freed = 0;

    (void)state;
    assert_null(tutti_tensor_from_ptr(bytes + 1, TUTTI_F64, 1, SHAPE(1), count_free, &freed));
    assert_int_equal(tutti_tensor_check(), TUTTI_E_ARG);
    assert_int_equal(freed, 0);
}

static void scopes_release_what_was_not_retained(void **state)
{
    float data = 0;
    int freed = 0;
    tutti_tensor *kept = NULL;

    (void)state;
    tutti_scope_begin();
    tutti_scope_begin();
    for (int i = 0; i < 1500; i++) { /* several chunks of the stack */
        tutti_tensor *t = tutti_tensor_from_ptr(&data, TUTTI_F32, 0, NULL, count_free, &freed);

        if (i == 700)
            kept = tutti_tensor_retain(t);
    }
    tutti_scope_end();
    assert_int_equal(freed, 1499);
    (void)tutti_tensor_from_ptr(&data, TUTTI_F32, 0, NULL, count_free, &freed);
    assert_int_equal(freed, 1499);
    tutti_scope_end();
    assert_int_equal(freed, 1500);
    tutti_tensor_release(kept);
    assert_int_equal(freed, 1501);
}

static void scopes_nest_beyond_their_limit(void **state)
{
    float data = 0;
    int freed = 0;

    (void)state;
    for (int i = 0; i < 100; i++) {
        tutti_scope_begin();
        (void)tutti_tensor_from_ptr(&data, TUTTI_F32, 0, NULL, count_free, &freed);
    }
    for (int i = 0; i < 100; i++)
        tutti_scope_end();
    assert_int_equal(freed, 100);
}

static void without_a_scope_the_caller_owns(void **state)
{
    float data = 0;
    int freed = 0;
    tutti_tensor *t, *view;

    (void)state;
    tutti_scope_end(); /* the one of begin() */
    t = tutti_tensor_from_ptr(&data, TUTTI_F32, 0, NULL, count_free, &freed);
    view = tutti_tensor_contiguous(t); /* the same tensor, one more reference */
    assert_ptr_equal(view, t);
    tutti_tensor_release(t);
    assert_int_equal(freed, 0);
    tutti_tensor_release(view);
    assert_int_equal(freed, 1);
    tutti_scope_end(); /* none is open: nothing happens */
    tutti_scope_begin();
}

static void freed_blocks_serve_the_next_tensor(void **state)
{
    void *first;

    (void)state;
    tutti_scope_begin();
    first = tutti_tensor_data(tutti_tensor_empty(TUTTI_F32, 1, SHAPE(100000)));
    assert_int_equal((uintptr_t)first % 64, 0);
    tutti_scope_end();
#if !defined(__SANITIZE_ADDRESS__)
    assert_ptr_equal(tutti_tensor_data(tutti_tensor_empty(TUTTI_F32, 1, SHAPE(99000))), first);
#endif
    tutti_empty_cache();
}

/* Blocks of different sizes, 640 MiB, of which no more than 160 MiB are in use at once: a thread keeps 256
 * MiB, the rest goes back at once. */
static void the_cache_is_bounded(void **state)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    (void)state;
    skip(); /* mallinfo2() is not the sanitizer's */
#else
    const int64_t sizes[] = { 64, 80, 96, 112, 128, 160 };
    const size_t mib = (size_t)1 << 20;
    size_t before;

    (void)state;
    tutti_empty_cache();
    before = mallinfo2().hblkhd;
    for (int i = 0; i < 6; i++) {
        tutti_scope_begin();
        assert_non_null(tutti_tensor_empty(TUTTI_U8, 1, SHAPE(sizes[i] << 20)));
        assert_true(mallinfo2().hblkhd >= before + (size_t)sizes[i] * mib);
        tutti_scope_end();
    }
    assert_in_range(mallinfo2().hblkhd, before + 192 * mib, before + 260 * mib);
    tutti_empty_cache();
    assert_true(mallinfo2().hblkhd <= before);
#endif
}

/* What a loop had in use at once is kept for its next round, however much it is. */
static void as_much_is_kept_as_was_in_use(void **state)
{
#if defined(__SANITIZE_ADDRESS__)
    (void)state;
    skip(); /* nothing is kept */
#else
    int64_t misses = 0;

    (void)state;
    tutti_empty_cache(); /* blocks that earlier tests left count, too, and are not asked for again */
    for (int round = 0; round < 3; round++) {
        tutti_scope_begin();
        for (int i = 0; i < 5; i++)
            assert_non_null(tutti_tensor_empty(TUTTI_U8, 1, SHAPE(INT64_C(100) << 20)));
        tutti_scope_end();
        if (round == 0)
            misses = tutti_cache_misses();
    }
    assert_int_equal(tutti_cache_misses(), misses);
    tutti_empty_cache();
    assert_non_null(tutti_tensor_empty(TUTTI_U8, 1, SHAPE(INT64_C(100) << 20)));
    assert_true(tutti_cache_misses() > misses);
    tutti_empty_cache();
#endif
}

/* ---- failures --------------------------------------------------------------------------------- */

static void null_passes_silently_and_the_first_failure_is_kept(void **state)
{
    tutti_tensor *a = tutti_tensor_ones(TUTTI_F32, 2, SHAPE(2, 3));
    tutti_tensor *b = tutti_tensor_ones(TUTTI_F32, 1, SHAPE(4));
    tutti_tensor *y = tutti_tensor_add(a, b); /* fails first */
    double v = 5.0;

    (void)state;
    assert_null(y);
    assert_non_null(strstr(tutti_last_error(), "add: shapes [2, 3] and [4]"));
    assert_null(tutti_tensor_view(a, 1, SHAPE(5))); /* fails second: words, but not kept */
    assert_null(tutti_tensor_exp(y));
    assert_null(tutti_tensor_mul(y, a));
    assert_null(tutti_tensor_mul(a, y));
    assert_int_equal(tutti_tensor_copy_(a, y), TUTTI_E_ARG);
    assert_int_equal(tutti_tensor_item(y, &v), TUTTI_E_ARG);
    assert_true(v == 5.0);
    assert_int_equal(tutti_tensor_span(y).count, -1);
    assert_int_equal(tutti_tensor_check(), TUTTI_E_ARG);
    assert_non_null(strstr(tutti_last_error(), "add: shapes"));
    assert_int_equal(tutti_tensor_check(), TUTTI_OK);
}

static void a_null_of_unknown_origin_is_the_failure(void **state)
{
    (void)state;
    assert_null(tutti_tensor_tanh(NULL));
    assert_int_equal(tutti_tensor_check(), TUTTI_E_ARG);
    assert_non_null(strstr(tutti_last_error(), "tanh: an operand is NULL"));
}

static void bad_shapes_and_types_are_refused(void **state)
{
    static const struct {
        int nd;
        int64_t shape[3];
        tutti_dtype dtype;
        tutti_status want;
    } cases[] = {
        { 9, { 1, 1, 1 }, TUTTI_F32, TUTTI_E_ARG },
        { -1, { 0 }, TUTTI_F32, TUTTI_E_ARG },
        { 2, { 2, -1 }, TUTTI_F32, TUTTI_E_ARG },
        { 3, { INT64_MAX / 4, INT64_MAX / 4, 9 }, TUTTI_F32, TUTTI_E_ARG },
        { 3, { WIDE, WIDE, 0 }, TUTTI_F32, TUTTI_E_ARG }, /* strides */
        { 1, { INT64_C(1) << 50 }, TUTTI_F32, TUTTI_E_NOMEM },
        { 1, { 1 }, TUTTI_C64, TUTTI_E_UNSUPPORTED },
        { 1, { 1 }, (tutti_dtype)99, TUTTI_E_UNSUPPORTED },
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_null(tutti_tensor_empty(cases[i].dtype, cases[i].nd, cases[i].shape));
        assert_int_equal(tutti_tensor_check(), cases[i].want);
    }
    assert_null(tutti_tensor_empty(TUTTI_F32, 1, NULL));
    assert_int_equal(tutti_tensor_check(), TUTTI_E_ARG);
}

/* ---- views ------------------------------------------------------------------------------------ */

static void views_show_the_same_elements(void **state)
{
    tutti_tensor *x =
        tutti_tensor_reshape(tutti_tensor_arange(TUTTI_F32, 0, 24, 1), 3, SHAPE(2, 3, 4));
    tutti_tensor *t = tutti_tensor_transpose(x, 0, -1); /* [4, 3, 2] */
    tutti_tensor *n = tutti_tensor_narrow(t, 0, 1, 2);  /* [2, 3, 2] */
    tutti_tensor *flat = tutti_tensor_reshape(n, 1, SHAPE(-1));
    const float want[12] = { 1, 13, 5, 17, 9, 21, 2, 14, 6, 18, 10, 22 };

    (void)state;
    assert_int_equal(tutti_tensor_size(t, 0), 4);
    assert_int_equal(tutti_tensor_stride(t, -1), 12);
    assert_false(tutti_tensor_is_contiguous(n));
    assert_memory_equal(tutti_tensor_data(flat), want, sizeof want);
    assert_int_equal(tutti_tensor_zero_(tutti_tensor_select(x, 0, 1)), TUTTI_OK);
    assert_true(item(tutti_tensor_sum(x, NULL, 0, false)) == 66.0);
    assert_int_equal(tutti_tensor_size(x, 3), -1);
    assert_int_equal(tutti_tensor_dim(NULL), -1);
}

static void views_that_cannot_be_are_refused(void **state)
{
    tutti_tensor *x = tutti_tensor_zeros(TUTTI_F32, 2, SHAPE(3, 4));
    tutti_tensor *t = tutti_tensor_transpose(x, 0, 1);

    (void)state;
    assert_null(tutti_tensor_view(t, 1, SHAPE(12)));
    assert_non_null(strstr(tutti_last_error(), "tutti_tensor_reshape"));
    assert_non_null(tutti_tensor_reshape(t, 1, SHAPE(12)));
    assert_null(tutti_tensor_view(x, 2, SHAPE(-1, -1)));
    assert_null(tutti_tensor_view(x, 1, SHAPE(11)));
    assert_null(tutti_tensor_view(x, 2, SHAPE(-1, 5)));
    assert_null(tutti_tensor_permute(x, (const int[]){ 0, 0 }));
    assert_null(tutti_tensor_narrow(x, 0, 2, 2));
    assert_null(tutti_tensor_select(x, 1, 4));
    assert_null(tutti_tensor_expand(x, 2, SHAPE(6, 4)));
    assert_null(tutti_tensor_squeeze(x, 2));
    assert_int_equal(tutti_tensor_span(t).count, -1);
    assert_int_equal(tutti_tensor_check(), TUTTI_E_ARG);
}

static void tensors_without_elements_work_everywhere(void **state)
{
    tutti_tensor *x = tutti_tensor_zeros(TUTTI_F32, 2, SHAPE(0, 3));
    const int first = 0;

    (void)state;
    assert_int_equal(tutti_tensor_numel(tutti_tensor_add(x, x)), 0);
    assert_int_equal(tutti_tensor_numel(tutti_tensor_view(x, 3, SHAPE(3, 0, 7))), 0);
    assert_int_equal(tutti_tensor_numel(tutti_tensor_clone(tutti_tensor_transpose(x, 0, 1))), 0);
    assert_int_equal(tutti_tensor_numel(tutti_tensor_sum(x, &first, 1, false)), 3);
    assert_true(item(tutti_tensor_sum(x, NULL, 0, false)) == 0.0);
    assert_true(isnan(item(tutti_tensor_mean(x, NULL, 0, false))));
    assert_int_equal(tutti_tensor_span(x).count, 0);
    assert_int_equal(tutti_tensor_numel(tutti_tensor_expand(
                         tutti_tensor_zeros(TUTTI_F32, 2, SHAPE(0, 1)), 2, SHAPE(0, WIDE))),
                     0);
    assert_null(tutti_tensor_view(x, 3, SHAPE(0, WIDE, WIDE)));
    assert_non_null(strstr(tutti_last_error(), "are too large together"));
    assert_int_equal(tutti_tensor_check(), TUTTI_E_ARG);
    assert_true(item(tutti_tensor_sum(tutti_tensor_mm(tutti_tensor_transpose(x, 0, 1), x), NULL, 0,
                                      false)) == 0.0);
}

/* ---- values ----------------------------------------------------------------------------------- */

static void types_meet_in_the_wider_one(void **state)
{
    tutti_tensor *f = tutti_tensor_ones(TUTTI_F32, 1, SHAPE(2));
    tutti_tensor *d = tutti_tensor_ones(TUTTI_F64, 1, SHAPE(2));
    tutti_tensor *i = tutti_tensor_full(TUTTI_I64, 1, SHAPE(2), 7);
    tutti_tensor *d0 = tutti_tensor_scalar(TUTTI_F64, 0.5);
    tutti_tensor *b = tutti_tensor_lt(f, i);

    (void)state;
    assert_int_equal(tutti_tensor_dtype(tutti_tensor_add(f, d)), TUTTI_F64);
    assert_int_equal(tutti_tensor_dtype(tutti_tensor_add(f, i)), TUTTI_F32);
    assert_int_equal(tutti_tensor_dtype(tutti_tensor_mul(f, d0)), TUTTI_F32);
    assert_int_equal(tutti_tensor_dtype(tutti_tensor_mul(i, d0)), TUTTI_F64);
    assert_int_equal(tutti_tensor_dtype(tutti_tensor_mul(i, i)), TUTTI_I64);
    assert_int_equal(tutti_tensor_dtype(tutti_tensor_div(i, i)), TUTTI_F32);
    assert_int_equal(tutti_tensor_dtype(b), TUTTI_BOOL);
    assert_int_equal(tutti_tensor_dtype(tutti_tensor_mul(b, f)), TUTTI_F32);
    assert_int_equal(tutti_tensor_dtype(tutti_tensor_sum(b, NULL, 0, false)), TUTTI_I64);
    assert_true(item(tutti_tensor_sum(b, NULL, 0, false)) == 2.0);
    assert_null(tutti_tensor_add(b, b));
    assert_int_equal(tutti_tensor_check(), TUTTI_E_UNSUPPORTED);
}

static void conversions(void **state)
{
    const double x[5] = { -1.9, NAN, 1e300, 0.5, 258.0 };
    tutti_tensor *t = tutti_tensor_from_data(x, TUTTI_F64, 1, SHAPE(5));
    const int64_t *i = tutti_tensor_data(tutti_tensor_to(t, TUTTI_I64));
    const uint8_t *u = tutti_tensor_data(tutti_tensor_to(t, TUTTI_U8));
    const uint8_t *b = tutti_tensor_data(tutti_tensor_to(t, TUTTI_BOOL));

    (void)state;
    assert_true(i[0] == -1 && i[1] == 0 && i[2] == INT64_MAX && i[3] == 0 && i[4] == 258);
    assert_true(u[4] == 2 && b[0] == 1 && b[1] == 1 && b[3] == 1);
    assert_ptr_equal(tutti_tensor_to(t, TUTTI_F64), t);
}

static void in_place_operations(void **state)
{
    tutti_tensor *x = tutti_tensor_reshape(tutti_tensor_arange(TUTTI_F32, 0, 6, 1), 2, SHAPE(2, 3));
    tutti_tensor *col = tutti_tensor_full(TUTTI_F32, 2, SHAPE(2, 1), 10);

    (void)state;
    assert_int_equal(tutti_tensor_add_(x, col, 0.5), TUTTI_OK);
    assert_int_equal(tutti_tensor_mul_(x, x), TUTTI_OK);
    assert_int_equal(tutti_tensor_div_scalar_(x, 2), TUTTI_OK);
    assert_true(at2(x, 0, 0) == 12.5 && at2(x, 1, 2) == 50.0);
    /* A square matrix copied onto its own transpose: read first, then written. */
    x = tutti_tensor_narrow(x, 1, 0, 2);
    assert_int_equal(tutti_tensor_copy_(x, tutti_tensor_transpose(x, 0, 1)), TUTTI_OK);
    assert_true(at2(x, 0, 1) == 32.0 && at2(x, 1, 0) == 18.0);
    assert_int_equal(tutti_tensor_add_(x, tutti_tensor_transpose(x, 0, 1), 1.0), TUTTI_OK);
    assert_true(at2(x, 0, 1) == 50.0 && at2(x, 1, 0) == 50.0);
    assert_int_equal(tutti_tensor_add_(col, x, 1.0), TUTTI_E_ARG); /* would have to grow */
    assert_int_equal(tutti_tensor_fill_(tutti_tensor_expand(col, 2, SHAPE(2, 9)), 1), TUTTI_E_ARG);
    x = tutti_tensor_zeros(TUTTI_I64, 1, SHAPE(2));
    assert_int_equal(tutti_tensor_add_(x, col, 1.0), TUTTI_E_ARG); /* real into whole */
    assert_int_equal(tutti_tensor_check(), TUTTI_E_ARG);
}

/* 0.1 added up a million times: one f32 addition after the other is off by 958. */
static void sums_are_pairwise(void **state)
{
    tutti_tensor *x = tutti_tensor_full(TUTTI_F32, 2, SHAPE(1000000, 2), 0.1);
    tutti_tensor *t = tutti_tensor_clone(tutti_tensor_transpose(x, 0, 1));
    const double want = 1e6 * (double)0.1f;
    const int first = 0;
    tutti_tensor *rows = tutti_tensor_sum(x, &first, 1, false);

    (void)state;
    assert_true(fabs(item(tutti_tensor_select(rows, 0, 1)) - want) < 0.1);
    assert_true(fabs(item(tutti_tensor_sum(tutti_tensor_select(t, 0, 0), NULL, 0, false)) - want) <
                0.1);
    assert_true(fabs(item(tutti_tensor_mean(x, NULL, 0, false)) - (double)0.1f) < 1e-7);
}

/* Sums over every set of dimensions, of a permuted tensor, against sums by hand. */
static void sums_over_all_sets_of_dimensions(void **state)
{
    tutti_tensor *base =
        tutti_tensor_reshape(tutti_tensor_arange(TUTTI_F64, 0, 120, 1), 4, SHAPE(2, 3, 4, 5));
    tutti_tensor *x = tutti_tensor_permute(base, (const int[]){ 2, 0, 3, 1 }); /* [4, 2, 5, 3] */

    (void)state;
    for (unsigned mask = 1; mask < 16; mask++) {
        double want[120] = { 0 };
        int64_t step[4], n = 1;
        int dims[4], k = 0;
        tutti_tensor *y;

        for (int d = 3; d >= 0; d--) {
            step[d] = mask & 1u << d ? 0 : n;
            n *= mask & 1u << d ? 1 : tutti_tensor_size(x, d);
        }
        for (int d = 0; d < 4; d++)
            if (mask & 1u << d)
                dims[k++] = d;
        for (int i = 0; i < 120; i++) {
            const int64_t a = i / 30, b = i / 15 % 2, c = i / 3 % 5, e = i % 3;

            want[a * step[0] + b * step[1] + c * step[2] + e * step[3]] +=
                (double)(b * 60 + e * 20 + a * 5 + c);
        }
        y = tutti_tensor_sum(x, dims, k, false);
        assert_int_equal(tutti_tensor_dim(y), 4 - k);
        assert_int_equal(tutti_tensor_numel(y), n);
        assert_memory_equal(tutti_tensor_data(y), want, (size_t)n * sizeof want[0]);
    }
}

static void argmax_takes_the_first_and_nan(void **state)
{
    const float x[12] = { 1, 5, 5, 2, NAN, 0, NAN, 9, -1, -2, -3, -1 };
    tutti_tensor *t = tutti_tensor_from_data(x, TUTTI_F32, 2, SHAPE(3, 4));
    const int64_t *row = tutti_tensor_data(tutti_tensor_argmax(t, 1, false));
    const int64_t *col = tutti_tensor_data(tutti_tensor_argmax(t, 0, true));

    (void)state;
    assert_true(row[0] == 1 && row[1] == 0 && row[2] == 0);
    assert_true(col[0] == 1 && col[1] == 0 && col[2] == 1 && col[3] == 1);
    assert_null(tutti_tensor_argmax(tutti_tensor_zeros(TUTTI_F32, 2, SHAPE(2, 0)), 1, false));
    assert_int_equal(tutti_tensor_check(), TUTTI_E_ARG);
}

static void spans_of_tensors(void **state)
{
    tutti_tensor *t = tutti_tensor_zeros(TUTTI_I64, 2, SHAPE(2, 3));
    const tutti_span whole = tutti_tensor_span(t);
    const tutti_span row = tutti_tensor_span(tutti_tensor_select(t, 0, 1));

    (void)state;
    assert_true(whole.count == 6 && whole.dtype == TUTTI_I64);
    assert_true(row.count == 3 && row.data == (char *)whole.data + 24);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(memory_lives_as_long_as_its_last_view, begin, end),
        cmocka_unit_test_setup_teardown(failed_from_ptr_leaves_memory_to_the_caller, begin, end),
        cmocka_unit_test_setup_teardown(scopes_release_what_was_not_retained, begin, end),
        cmocka_unit_test_setup_teardown(scopes_nest_beyond_their_limit, begin, end),
        cmocka_unit_test_setup_teardown(without_a_scope_the_caller_owns, begin, end),
        cmocka_unit_test_setup_teardown(freed_blocks_serve_the_next_tensor, begin, end),
        cmocka_unit_test_setup_teardown(the_cache_is_bounded, begin, end),
        cmocka_unit_test_setup_teardown(as_much_is_kept_as_was_in_use, begin, end),
        cmocka_unit_test_setup_teardown(null_passes_silently_and_the_first_failure_is_kept, begin,
                                        end),
        cmocka_unit_test_setup_teardown(a_null_of_unknown_origin_is_the_failure, begin, end),
        cmocka_unit_test_setup_teardown(bad_shapes_and_types_are_refused, begin, end),
        cmocka_unit_test_setup_teardown(views_show_the_same_elements, begin, end),
        cmocka_unit_test_setup_teardown(views_that_cannot_be_are_refused, begin, end),
        cmocka_unit_test_setup_teardown(tensors_without_elements_work_everywhere, begin, end),
        cmocka_unit_test_setup_teardown(types_meet_in_the_wider_one, begin, end),
        cmocka_unit_test_setup_teardown(conversions, begin, end),
        cmocka_unit_test_setup_teardown(in_place_operations, begin, end),
        cmocka_unit_test_setup_teardown(sums_are_pairwise, begin, end),
        cmocka_unit_test_setup_teardown(sums_over_all_sets_of_dimensions, begin, end),
        cmocka_unit_test_setup_teardown(argmax_takes_the_first_and_nan, begin, end),
        cmocka_unit_test_setup_teardown(spans_of_tensors, begin, end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
