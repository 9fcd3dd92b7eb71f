/* SPDX-License-Identifier: BSD-3-Clause
 *
 * state_dict_test.c
 * Goal    a state dict keeps names in the order of putting in, finds them, shares memory, keeps no graph alive; merging
 *         and extracting are each other's inverse; metadata is sorted. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>
#include <tutti/autograd.h>
#include <tutti/state.h>

#define SHAPE(...) ((const int64_t[]){ __VA_ARGS__ })

static int begin(void **state)
{
    tutti_state_dict *sd = NULL;

    tutti_scope_begin();
    if (tutti_state_dict_create(&sd) != TUTTI_OK)
        return -1;
    *state = sd;
    return 0;
}

static int end(void **state)
{
    tutti_state_dict_free(*state);
    tutti_scope_end();
    return tutti_tensor_check() == TUTTI_OK ? 0 : -1;
}

static tutti_tensor *number(double value)
{
    return tutti_tensor_scalar(TUTTI_F64, value);
}

static double item(const tutti_tensor *t)
{
    double v = -1.0;

    assert_int_equal(tutti_tensor_item(t, &v), TUTTI_OK);
    return v;
}

static void names_are_found_and_keep_their_order(void **state)
{
    tutti_state_dict *sd = *state;
    char name[20];

    for (int i = 0; i < 500;
         i++) { /* 7 and 500 have no common divisor: each number once, out of order */
        snprintf(name, sizeof name, "p%d", i * 7 % 500);
        assert_int_equal(tutti_state_dict_set(sd, name, number(i)), TUTTI_OK);
    }
    assert_int_equal(tutti_state_dict_length(sd), 500);
    for (int i = 0; i < 500; i++) {
        snprintf(name, sizeof name, "p%d", i * 7 % 500);
        assert_string_equal(tutti_state_dict_name(sd, i), name);
        assert_true(item(tutti_state_dict_get(sd, name)) == i);
        assert_ptr_equal(tutti_state_dict_get(sd, name), tutti_state_dict_tensor(sd, i));
    }
    assert_null(tutti_state_dict_get(sd, "p500"));
    assert_null(tutti_state_dict_get(sd, ""));
    assert_null(tutti_state_dict_name(sd, 500));
    assert_null(tutti_state_dict_name(sd, -1));
}

static void setting_again_keeps_the_place(void **state)
{
    tutti_state_dict *sd = *state;

    assert_int_equal(tutti_state_dict_set(sd, "b", number(1)), TUTTI_OK);
    assert_int_equal(tutti_state_dict_set(sd, "a", number(2)), TUTTI_OK);
    assert_int_equal(tutti_state_dict_set(sd, "b", number(3)), TUTTI_OK);
    assert_int_equal(tutti_state_dict_length(sd), 2);
    assert_string_equal(tutti_state_dict_name(sd, 0), "b");
    assert_true(item(tutti_state_dict_get(sd, "b")) == 3.0);
    assert_true(tutti_state_dict_remove(sd, "b"));
    assert_false(tutti_state_dict_remove(sd, "b"));
    assert_string_equal(tutti_state_dict_name(sd, 0), "a");
    assert_true(item(tutti_state_dict_get(sd, "a")) == 2.0);
    assert_int_equal(tutti_state_dict_set(sd, "b", number(4)), TUTTI_OK);
    assert_string_equal(tutti_state_dict_name(sd, 1), "b");
}

static void tensors_share_memory_and_no_graph(void **state)
{
    tutti_state_dict *sd = *state;
    tutti_tensor *x = tutti_tensor_requires_grad_(tutti_tensor_ones(TUTTI_F32, 1, SHAPE(3)), true);
    tutti_tensor *got;

    assert_int_equal(tutti_state_dict_set(sd, "x", x), TUTTI_OK);
    got = tutti_state_dict_get(sd, "x");
    assert_ptr_equal(tutti_tensor_data(got), tutti_tensor_data(x));
    assert_false(tutti_tensor_requires_grad(got));
    assert_int_equal(tutti_tensor_fill_(got, 2.0), TUTTI_OK); /* no leaf: no complaint */
    assert_true(((float *)tutti_tensor_data(x))[2] == 2.0f);
}

static void merging_and_extracting(void **state)
{
    tutti_state_dict *sd = *state, *part = NULL, *back = NULL;

    assert_int_equal(tutti_state_dict_create(&part), TUTTI_OK);
    assert_int_equal(tutti_state_dict_set(part, "w", number(1)), TUTTI_OK);
    assert_int_equal(tutti_state_dict_set(part, "b", number(2)), TUTTI_OK);
    assert_int_equal(tutti_state_dict_set_metadata(part, "k", "v"), TUTTI_OK);
    assert_int_equal(tutti_state_dict_set(sd, "model", number(3)), TUTTI_OK);
    assert_int_equal(tutti_state_dict_merge(sd, part, "model."), TUTTI_OK);
    assert_int_equal(tutti_state_dict_length(sd), 3);
    assert_string_equal(tutti_state_dict_name(sd, 1), "model.w");
    assert_int_equal(tutti_state_dict_extract(sd, "model.", &back), TUTTI_OK);
    assert_int_equal(tutti_state_dict_length(back), 2);
    assert_string_equal(tutti_state_dict_name(back, 1), "b");
    assert_ptr_equal(tutti_tensor_data(tutti_state_dict_get(back, "b")),
                     tutti_tensor_data(tutti_state_dict_get(part, "b")));
    assert_string_equal(tutti_state_dict_metadata(back, "k"), "v");
    assert_int_equal(tutti_state_dict_merge(sd, sd, "x."), TUTTI_E_ARG);
    assert_int_equal(tutti_state_dict_merge(sd, NULL, "x."), TUTTI_E_ARG);
    assert_int_equal(tutti_state_dict_extract(sd, NULL, &back), TUTTI_E_ARG);
    tutti_state_dict_free(part);
    tutti_state_dict_free(back);
}

static void metadata_is_sorted(void **state)
{
    static const char *const keys[] = { "m", "c", "x", "a", "t" };
    tutti_state_dict *sd = *state;

    for (int i = 0; i < 5; i++)
        assert_int_equal(tutti_state_dict_set_metadata(sd, keys[i], "1"), TUTTI_OK);
    assert_int_equal(tutti_state_dict_set_metadata(sd, "c", "2"), TUTTI_OK);
    assert_int_equal(tutti_state_dict_set_metadata(sd, "x", NULL), TUTTI_OK);
    assert_int_equal(tutti_state_dict_set_metadata(sd, "y", NULL), TUTTI_OK);
    assert_string_equal(tutti_state_dict_metadata_key(sd, 0), "a");
    assert_string_equal(tutti_state_dict_metadata_key(sd, 1), "c");
    assert_string_equal(tutti_state_dict_metadata_key(sd, 3), "t");
    assert_null(tutti_state_dict_metadata_key(sd, 4));
    assert_string_equal(tutti_state_dict_metadata(sd, "c"), "2");
    assert_null(tutti_state_dict_metadata(sd, "x"));
}

static void refusals(void **state)
{
    tutti_state_dict *sd = *state;

    assert_int_equal(tutti_state_dict_set(NULL, "a", number(1)), TUTTI_E_ARG);
    assert_int_equal(tutti_state_dict_set(sd, "", number(1)), TUTTI_E_ARG);
    assert_int_equal(tutti_state_dict_set(sd, NULL, number(1)), TUTTI_E_ARG);
    assert_int_equal(tutti_state_dict_set_metadata(sd, NULL, "x"), TUTTI_E_ARG);
    assert_int_equal(tutti_tensor_check(), TUTTI_OK);
    assert_int_equal(tutti_state_dict_set(sd, "a", NULL),
                     TUTTI_E_ARG); /* an expression that failed */
    assert_int_equal(tutti_tensor_check(), TUTTI_E_ARG);
    assert_int_equal(tutti_state_dict_length(sd), 0);
    assert_int_equal(tutti_state_dict_length(NULL), 0);
    tutti_state_dict_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(names_are_found_and_keep_their_order, begin, end),
        cmocka_unit_test_setup_teardown(setting_again_keeps_the_place, begin, end),
        cmocka_unit_test_setup_teardown(tensors_share_memory_and_no_graph, begin, end),
        cmocka_unit_test_setup_teardown(merging_and_extracting, begin, end),
        cmocka_unit_test_setup_teardown(metadata_is_sorted, begin, end),
        cmocka_unit_test_setup_teardown(refusals, begin, end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
