/* SPDX-License-Identifier: BSD-3-Clause
 *
 * step_test.c
 * Goal    the reducer of one rank goes through its states as told: gradients stay, places move when buckets are rebuilt,
 *         steps without sync leave gradients alone, mistakes are refused in torch's words and with names, and the next
 *         step goes well; what is broadcast and converted arrives.
 * Method  a world of one rank, whose average is the gradient itself. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "parallel/parallel.h"
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

enum { N = 4 };

static tutti_group *world;
static float        grads[N][6];
/* The parameters of two layers: 2 x 2 and 2 each. */
static const int64_t sizes[2] = { 2, 2 };

static tutti_reducer *make(bool views, bool find_unused, bool static_graph)
{
    static const char *const names[N] = { "a.weight", "a.bias", "b.weight", NULL };
    tutti_reducer_options    opts = TUTTI_REDUCER_OPTIONS;
    tutti_reducer_param      params[N] = { { 0 } };
    tutti_reducer           *r = NULL;
    int                      i;

    for (i = 0; i < N; i++) {
        params[i] = (tutti_reducer_param){ .name = names[i], .dtype = TUTTI_F32, .numel = i % 2 ? 2 : 4,
                                           .grad = views ? NULL : grads[i] };
        if (i % 2 == 0) {
            params[i].ndim = 2;
            params[i].sizes = sizes;
        }
    }
    opts.group = world;
    opts.name = "net";
    opts.gradient_as_bucket_view = views;
    opts.find_unused_parameters = find_unused;
    opts.static_graph = static_graph;
    OK(tutti_reducer_create(params, N, &opts, &r));
    return r;
}

static void set(tutti_reducer *r, int i, float value)
{
    float *grad = tutti_reducer_grad(r, i);
    int    k;

    for (k = 0; k < (i % 2 ? 2 : 4); k++)
        grad[k] = value + (float)k;
}

static void expect(tutti_reducer *r, int i, float value)
{
    const float *grad = tutti_reducer_grad(r, i);
    int          k;

    for (k = 0; k < (i % 2 ? 2 : 4); k++)
        if (grad[k] != value + (float)k)
            fail_msg("gradient %d[%d] is %g, not %g", i, k, (double)grad[k], (double)value + k);
}

/* Backward in the order of definition, turned round. */
static void step(tutti_reducer *r, float value)
{
    int i;

    OK(tutti_reducer_prepare_for_forward(r));
    OK(tutti_reducer_prepare_for_backward(r, NULL, 0));
    for (i = N - 1; i >= 0; i--) {
        set(r, i, value + (float)(10 * i));
        OK(tutti_reducer_mark_ready(r, i));
    }
    OK(tutti_reducer_finish(r));
    for (i = 0; i < N; i++)
        expect(r, i, value + (float)(10 * i));
}

static void offsets_follow_the_order_of_gradients(void **state)
{
    tutti_reducer    *r = make(true, false, false);
    tutti_grad_bucket b;
    float            *before = tutti_reducer_grad(r, 0);

    (void)state;
    b = tutti_reducer_bucket(r, 0);
    assert_int_equal(tutti_reducer_bucket_count(r), 1);
    assert_int_equal(b.params[0], 0);
    assert_int_equal(b.offsets[1], 4);
    assert_true(b.is_last);
    step(r, 1.0f);
    assert_ptr_equal(tutti_reducer_grad(r, 0), before);
    OK(tutti_reducer_prepare_for_forward(r));
    b = tutti_reducer_bucket(r, 0);
    assert_int_equal(b.params[0], 3);
    assert_int_equal(b.offsets[1], 2);
    assert_ptr_not_equal(tutti_reducer_grad(r, 0), before);
    expect(r, 0, 1.0f); /* moved with its contents */
    assert_ptr_equal(tutti_reducer_grad(r, 0), tutti_reducer_bucket_view(r, 0).data);
    step(r, 2.0f);
    step(r, 3.0f);
    assert_int_equal(tutti_reducer_bucket(r, 7).n_params, 0);
    tutti_reducer_free(r);
}

static void memory_of_the_program_stays_its_own(void **state)
{
    tutti_reducer *r = make(false, false, false);

    (void)state;
    step(r, 1.0f);
    step(r, 2.0f);
    assert_ptr_equal(tutti_reducer_grad(r, 2), grads[2]);
    tutti_reducer_free(r);
}

/* With views a gradient that comes from elsewhere moves to its place; undefined ones find it there. */
static void given_gradients_move_into_buckets(void **state)
{
    tutti_reducer *r = make(true, false, false);
    float          mine[4] = { 5, 6, 7, 8 };
    int            i;

    (void)state;
    OK(tutti_reducer_set_grad(r, 0, mine));
    OK(tutti_reducer_set_grad(r, 1, NULL));
    OK(tutti_reducer_prepare_for_backward(r, NULL, 0));
    for (i = 0; i < N; i++)
        OK(tutti_reducer_mark_ready(r, i));
    assert_ptr_equal(tutti_reducer_grad(r, 0), tutti_reducer_bucket_view(r, 0).data);
    assert_null(tutti_reducer_grad(r, 1));
    OK(tutti_reducer_finish(r));
    expect(r, 0, 5.0f);
    assert_ptr_equal(tutti_reducer_grad(r, 1), tutti_reducer_bucket_view(r, 1).data);
    tutti_reducer_free(r);
}

static void without_sync_nothing_is_awaited(void **state)
{
    tutti_reducer *r = make(false, false, false);

    (void)state;
    tutti_reducer_set_sync(r, false);
    OK(tutti_reducer_prepare_for_backward(r, NULL, 0));
    OK(tutti_reducer_mark_ready(r, 1));
    OK(tutti_reducer_mark_ready(r, 1)); /* as often as there are micro-batches */
    OK(tutti_reducer_finish(r));
    tutti_reducer_set_sync(r, true);
    step(r, 1.0f);
    tutti_reducer_free(r);
}

static void missing_marks_are_named(void **state)
{
    tutti_reducer *r = make(false, false, false);

    (void)state;
    OK(tutti_reducer_prepare_for_backward(r, NULL, 0));
    OK(tutti_reducer_mark_ready(r, 1));
    REFUSED(tutti_reducer_prepare_for_forward(r), TUTTI_E_STATE, "Expected to have finished reduction in the prior");
    REFUSED(tutti_reducer_finish(r), TUTTI_E_STATE, "Parameter indices which did not receive grad for rank 0: 0 2 3\n");
    REFUSED(tutti_reducer_prepare_for_backward(NULL, NULL, 0), TUTTI_E_ARG, "NULL");
    step(r, 1.0f); /* and it goes on */
    tutti_reducer_free(r);
}

static void a_second_mark_is_refused(void **state)
{
    tutti_reducer *r = make(false, false, false);
    int            i;

    (void)state;
    OK(tutti_reducer_prepare_for_backward(r, NULL, 0));
    OK(tutti_reducer_mark_ready(r, 2));
    REFUSED(tutti_reducer_mark_ready(r, 2), TUTTI_E_STATE, "Expected to mark a variable ready only once");
    REFUSED(tutti_reducer_mark_ready(r, 2), TUTTI_E_STATE,
            "Parameter at index 2 with name b.weight has been marked as ready twice");
    for (i = 0; i < N; i++)
        if (i != 2)
            OK(tutti_reducer_mark_ready(r, i));
    REFUSED(tutti_reducer_finish(r), TUTTI_E_STATE, "Parameter at index 2");
    step(r, 1.0f);
    REFUSED(tutti_reducer_mark_ready(r, N), TUTTI_E_ARG, "no parameter 4");
    tutti_reducer_free(r);
}

typedef struct wanted {
    const char *key;
    char        value[256];
} wanted;

static void look(const char *key, const char *value, void *ctx)
{
    wanted *w = ctx;

    if (strcmp(key, w->key) == 0)
        strncpy(w->value, value, sizeof w->value - 1);
}

static void expect_entry(tutti_reducer *r, const char *key, const char *value)
{
    wanted w = { .key = key };

    tutti_reducer_logging_data(r, look, &w);
    assert_string_equal(w.value, value);
}

static void unused_parameters_keep_their_gradients(void **state)
{
    static const int unused[] = { 0, 3 };
    bool             views = false;
    tutti_reducer   *r;

    (void)state;
    do {
        r = make(views, true, false);
        set(r, 0, 70.0f); /* stale */
        OK(tutti_reducer_prepare_for_backward(r, unused, 2));
        set(r, 1, 1.0f);
        set(r, 2, 2.0f);
        OK(tutti_reducer_mark_ready(r, 2));
        OK(tutti_reducer_mark_ready(r, 1));
        OK(tutti_reducer_finish(r));
        expect(r, 0, 70.0f);
        expect(r, 1, 1.0f);
        expect_entry(r, "can_set_static_graph", "1");
        expect_entry(r, "unused_parameter_size", "24");
        step(r, 5.0f);
        expect_entry(r, "can_set_static_graph", "0");
        REFUSED(tutti_reducer_prepare_for_backward(r, (const int[]){ 9 }, 1), TUTTI_E_ARG, "unused[0] is 9");
        OK(tutti_reducer_prepare_for_backward(r, unused, 2));
        OK(tutti_reducer_mark_ready(r, 1));
        REFUSED(tutti_reducer_mark_ready(r, 3), TUTTI_E_STATE, "among the unused ones");
        REFUSED(tutti_reducer_finish(r), TUTTI_E_STATE, "Parameter at index 3");
        tutti_reducer_free(r);
        views = !views;
    } while (views);
}

/* Twice each but the last, which is never used. */
static tutti_status static_step(tutti_reducer *r, int first, int extra)
{
    tutti_status st = tutti_reducer_prepare_for_backward(r, NULL, 0);
    int          i, k;

    for (k = 0; k < 2; k++)
        for (i = first; i < N - 1; i++) {
            set(r, i, (float)i);
            if (st == TUTTI_OK)
                st = tutti_reducer_mark_ready(r, i);
        }
    if (st == TUTTI_OK && extra >= 0)
        st = tutti_reducer_mark_ready(r, extra);
    return st == TUTTI_OK ? tutti_reducer_finish(r) : st;
}

static void a_static_graph_stays_as_it_was(void **state)
{
    tutti_reducer *r = make(true, false, true);
    int            i, k;

    (void)state;
    set(r, N - 1, 90.0f);
    tutti_reducer_set_sync(r, false); /* marks of such a step do not count */
    OK(static_step(r, 0, -1));
    tutti_reducer_set_sync(r, true);
    for (k = 0; k < 4; k++) {
        OK(static_step(r, 0, -1));
        for (i = 0; i < N - 1; i++)
            expect(r, i, (float)i);
        expect(r, N - 1, 90.0f);
    }
    assert_int_equal(tutti_reducer_bucket(r, 0).params[N - 1], N - 1); /* rebuilt, what is unused at the end */
    REFUSED(static_step(r, 0, 1), TUTTI_E_STATE, "Your training graph has changed in this iteration");
    REFUSED(tutti_reducer_finish(r), TUTTI_E_STATE, "'a.bias'");
    REFUSED(static_step(r, 1, -1), TUTTI_E_STATE, "did not receive grad for rank 0: 0\n");
    OK(static_step(r, 0, -1));
    tutti_reducer_free(r);
}

static void a_step_can_be_given_up(void **state)
{
    tutti_reducer *r = make(false, false, false);

    (void)state;
    step(r, 1.0f);
    OK(tutti_reducer_prepare_for_backward(r, NULL, 0));
    OK(tutti_reducer_mark_ready(r, 0));
    OK(tutti_reducer_reset_state(r));
    step(r, 2.0f);
    step(r, 3.0f);
    tutti_reducer_free(r);
}

static void bad_parameters_are_refused(void **state)
{
    static const int64_t  strides[2] = { 1, 3 };
    tutti_reducer_options opts = TUTTI_REDUCER_OPTIONS;
    tutti_reducer_param   p = { .name = "x", .dtype = TUTTI_F32, .numel = 4, .ndim = 2, .sizes = sizes };
    tutti_reducer        *r = NULL;

    (void)state;
    opts.group = world;
    REFUSED(tutti_reducer_create(NULL, 0, &opts, &r), TUTTI_E_ARG, "doesn't have any parameter");
    p.strides = strides;
    REFUSED(tutti_reducer_create(&p, 1, &opts, &r), TUTTI_E_ARG, "leave gaps");
    p.strides = NULL;
    p.numel = 5;
    REFUSED(tutti_reducer_create(&p, 1, &opts, &r), TUTTI_E_ARG, "make 4 elements, not 5");
    p.numel = 4;
    p.dtype = TUTTI_I32;
    REFUSED(tutti_reducer_create(&p, 1, &opts, &r), TUTTI_E_ARG, "cannot be averaged");
    p.dtype = TUTTI_F32;
    opts.bucket_cap_bytes = -1;
    REFUSED(tutti_reducer_create(&p, 1, &opts, &r), TUTTI_E_ARG, "bucket_cap_bytes is -1");
    opts.bucket_cap_bytes = 0;
    opts.group = NULL;
    REFUSED(tutti_reducer_create(&p, 1, &opts, &r), TUTTI_E_STATE, "not in the group");
    assert_null(r);
}

/* ---- logging data ---- */

static void logging_data_tells(void **state)
{
    tutti_reducer *r = make(false, false, false);
    wanted         w = { .key = "error" };

    (void)state;
    expect_entry(r, "module_name", "net");
    expect_entry(r, "total_parameter_size_bytes", "48");
    expect_entry(r, "dtypes", "f32");
    expect_entry(r, "bucket_cap_bytes", "26214400");
    expect_entry(r, "rebuilt_bucket_sizes", "");
    step(r, 1.0f);
    OK(tutti_reducer_prepare_for_forward(r));
    expect_entry(r, "iteration", "2");
    expect_entry(r, "rebuilt_bucket_sizes", "48");
    expect_entry(r, "rebuilt_per_bucket_param_indices", "3 2 1 0");
    expect_entry(r, "prev_iteration_grad_ready_order_indices", "3, 2, 1, 0");
    expect_entry(r, "has_error", "0");
    OK(tutti_reducer_prepare_for_backward(r, NULL, 0));
    assert_int_equal(tutti_reducer_finish(r), TUTTI_E_STATE);
    expect_entry(r, "has_error", "1");
    tutti_reducer_logging_data(r, look, &w);
    assert_non_null(strstr(w.value, "Expected to have finished reduction"));
    tutti_reducer_free(r);
}

/* ---- numbers ---- */

static void numbers_are_rounded_once(void **state)
{
    const float    in[3] = { 1.0f, 1.0f / 3.0f, 1e6f };
    const uint16_t f16[3] = { 0x3c00, 0x3555, 0x7c00 }, bf16[3] = { 0x3f80, 0x3eab, 0x4974 };
    uint16_t       out[3];
    double         wide[3];
    float          many[1500], back[1500];
    uint16_t       codes[1500], narrow[1500];
    int            i;

    (void)state;
    tti_convert(out, TUTTI_F16, in, TUTTI_F32, 3);
    assert_memory_equal(out, f16, sizeof f16);
    tti_convert(out, TUTTI_BF16, in, TUTTI_F32, 3);
    assert_memory_equal(out, bf16, sizeof bf16);
    tti_convert(wide, TUTTI_F64, bf16, TUTTI_BF16, 3);
    assert_true(wide[2] == 999424.0);
    for (i = 0; i < 1500; i++)
        many[i] = (float)(i % 256);
    tti_convert(codes, TUTTI_BF16, many, TUTTI_F32, 1500); /* more than one piece, and each exact */
    tti_convert(back, TUTTI_F32, codes, TUTTI_BF16, 1500);
    assert_memory_equal(back, many, sizeof many);
    tti_convert(narrow, TUTTI_F16, codes, TUTTI_BF16, 1500); /* neither is f32 */
    tti_convert(back, TUTTI_F32, narrow, TUTTI_F16, 1500);
    assert_memory_equal(back, many, sizeof many);
    assert_false(tti_can_convert(TUTTI_F16, TUTTI_C64));
    assert_true(tti_can_convert(TUTTI_C64, TUTTI_C64));
}

static int open_world(void **state)
{
    tutti_init_options opts = TUTTI_INIT_OPTIONS;
    tutti_store       *store = NULL;

    (void)state;
    if (tutti_hash_store_open(&store) != TUTTI_OK)
        return -1;
    opts.store = store;
    opts.world_size = 1;
    if (tutti_create_process_group(&opts, &world) != TUTTI_OK)
        return -1;
    tutti_store_close(store);
    return 0;
}

static int close_world(void **state)
{
    (void)state;
    return tutti_destroy_process_group(world) == TUTTI_OK ? 0 : -1;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(offsets_follow_the_order_of_gradients),
        cmocka_unit_test(memory_of_the_program_stays_its_own),
        cmocka_unit_test(given_gradients_move_into_buckets),
        cmocka_unit_test(without_sync_nothing_is_awaited),
        cmocka_unit_test(missing_marks_are_named),
        cmocka_unit_test(a_second_mark_is_refused),
        cmocka_unit_test(unused_parameters_keep_their_gradients),
        cmocka_unit_test(a_static_graph_stays_as_it_was),
        cmocka_unit_test(a_step_can_be_given_up),
        cmocka_unit_test(bad_parameters_are_refused),
        cmocka_unit_test(logging_data_tells),
        cmocka_unit_test(numbers_are_rounded_once),
    };

    return cmocka_run_group_tests(tests, open_world, close_world);
}
