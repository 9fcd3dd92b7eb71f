/* SPDX-License-Identifier: BSD-3-Clause
 *
 * module_state_test.c
 * Goal    names and order of parameters and buffers are PyTorch's, tied tensors come with each name in the state and once
 *         in lists; loading copies in place and converts, says what is missing, unexpected or of another shape, and
 *         copies all or nothing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>
#include <tutti/nn.h>

#define SHAPE(...) ((const int64_t[]){ __VA_ARGS__ })

/* lead.weight, lead.bias, norm.weight, norm.mean, norm.count, (norm.mask), tail.weight = lead.weight */
static tutti_module *make(double weight)
{
    tutti_module *m = tutti_sequential(), *norm, *tail;
    tutti_tensor *w;

    assert_non_null(tutti_module_add(m, "lead", tutti_linear(2, 3, true)));
    norm = tutti_module_add(m, "norm", tutti_module_create("norm", NULL, NULL, NULL));
    w = tutti_tensor_full(TUTTI_F32, 1, SHAPE(3), weight);
    assert_int_equal(
        tutti_module_register_buffer(norm, "mean", tutti_tensor_zeros(TUTTI_F64, 0, NULL), true),
        TUTTI_OK);
    assert_int_equal(tutti_module_register_parameter(norm, "weight", w), TUTTI_OK);
    assert_int_equal(tutti_module_register_buffer(
                         norm, "count", tutti_tensor_full(TUTTI_I64, 0, NULL, weight), true),
                     TUTTI_OK);
    assert_int_equal(
        tutti_module_register_buffer(norm, "mask", tutti_tensor_ones(TUTTI_BOOL, 0, NULL), false),
        TUTTI_OK);
    tail = tutti_module_add(m, "tail", tutti_module_create("tail", NULL, NULL, NULL));
    assert_int_equal(
        tutti_module_register_parameter(tail, "weight", tutti_module_parameter(m, "lead.weight")),
        TUTTI_OK);
    return m;
}

static int begin(void **state)
{
    tutti_scope_begin();
    tutti_manual_seed(1);
    *state = make(1.0);
    return 0;
}

static int end(void **state)
{
    tutti_module_free(*state);
    tutti_scope_end();
    return tutti_tensor_check() == TUTTI_OK ? 0 : -1;
}

static tutti_state_dict *state_of(tutti_module *m)
{
    tutti_state_dict *sd = NULL;

    assert_int_equal(tutti_module_state_dict(m, &sd), TUTTI_OK);
    return sd;
}

static double item(const tutti_tensor *t)
{
    double v = -1.0;

    assert_int_equal(tutti_tensor_item(t, &v), TUTTI_OK);
    return v;
}

static void lists_have_each_tensor_once(void **state)
{
    static const char *const params[] = { "lead.weight", "lead.bias", "norm.weight" };
    static const char *const buffers[] = { "norm.mean", "norm.count", "norm.mask" };
    int n = -1;
    const char *const *names = tutti_module_parameter_names(*state, &n);

    assert_int_equal(n, 3);
    for (int i = 0; i < n; i++)
        assert_string_equal(names[i], params[i]);
    names = tutti_module_buffer_names(*state, &n);
    assert_int_equal(n, 3);
    for (int i = 0; i < n; i++) {
        assert_string_equal(names[i], buffers[i]);
        assert_ptr_equal(tutti_module_buffers(*state, &n)[i],
                         tutti_module_buffer(*state, buffers[i]));
    }
    assert_null(tutti_module_buffer(*state, "norm.weight"));
    assert_null(tutti_module_buffer(*state, "no.mean"));
    assert_null(tutti_module_buffer(*state, "mean"));
    assert_null(tutti_module_buffer(NULL, "mean"));
    assert_null(tutti_module_parameter(*state, "norm.mean"));
}

static void the_state_has_every_name(void **state)
{
    static const char *const want[] = { "lead.weight", "lead.bias",  "norm.weight",
                                        "norm.mean",   "norm.count", "tail.weight" };
    tutti_state_dict *sd = state_of(*state);

    assert_int_equal(tutti_state_dict_length(sd), 6);
    for (int i = 0; i < 6; i++)
        assert_string_equal(tutti_state_dict_name(sd, i), want[i]);
    assert_ptr_equal(tutti_tensor_data(tutti_state_dict_get(sd, "tail.weight")),
                     tutti_tensor_data(tutti_module_parameter(*state, "lead.weight")));
    tutti_state_dict_free(sd);
}

static void loading_copies_in_place(void **state)
{
    tutti_module *other = make(5.0);
    tutti_state_dict *sd = state_of(other);
    tutti_tensor *w = tutti_module_parameter(*state, "lead.weight");
    const void *memory = tutti_tensor_data(w);
    tutti_incompatible_keys *keys = NULL;

    /* Another type is converted. */
    assert_int_equal(
        tutti_state_dict_set(sd, "norm.weight", tutti_tensor_full(TUTTI_F64, 1, SHAPE(3), 0.1)),
        TUTTI_OK);
    assert_int_equal(tutti_module_load_state_dict(*state, sd, true, &keys), TUTTI_OK);
    assert_true(keys->n_missing == 0 && keys->n_unexpected == 0);
    assert_ptr_equal(tutti_module_parameter(*state, "lead.weight"), w);
    assert_ptr_equal(tutti_tensor_data(w), memory);
    assert_true(tutti_tensor_equal(w, tutti_module_parameter(other, "lead.weight")));
    assert_true(((float *)tutti_tensor_data(tutti_module_parameter(*state, "norm.weight")))[2] ==
                0.1f);
    assert_true(item(tutti_module_buffer(*state, "norm.count")) == 5.0);
    assert_true(tutti_tensor_requires_grad(w));
    tutti_incompatible_keys_free(keys);
    tutti_state_dict_free(sd);
    tutti_module_free(other);
}

static void names_that_differ_are_listed(void **state)
{
    tutti_module *other = make(5.0);
    tutti_state_dict *sd = state_of(other);
    tutti_incompatible_keys *keys = NULL;

    assert_true(tutti_state_dict_remove(sd, "norm.weight"));
    assert_true(tutti_state_dict_remove(sd, "tail.weight"));
    assert_int_equal(tutti_state_dict_set(sd, "head.bias", tutti_tensor_scalar(TUTTI_F32, 1)),
                     TUTTI_OK);
    assert_int_equal(tutti_module_load_state_dict(*state, sd, true, &keys), TUTTI_E_MISMATCH);
    assert_null(keys);
    assert_non_null(strstr(tutti_last_error(), "2 names are missing, 1 unexpected, 0 shapes"));
    assert_non_null(strstr(tutti_last_error(), "not in the state: 'norm.weight', 'tail.weight'"));
    assert_non_null(strstr(tutti_last_error(), "not in the module: 'head.bias'"));
    assert_true(item(tutti_module_buffer(*state, "norm.count")) == 1.0); /* nothing was copied */
    assert_int_equal(tutti_module_load_state_dict(*state, sd, false, &keys), TUTTI_OK);
    assert_true(keys->n_missing == 2 && keys->n_unexpected == 1);
    assert_string_equal(keys->missing[0], "norm.weight");
    assert_string_equal(keys->missing[1], "tail.weight");
    assert_string_equal(keys->unexpected[0], "head.bias");
    assert_true(item(tutti_module_buffer(*state, "norm.count")) == 5.0);
    tutti_incompatible_keys_free(keys);
    tutti_state_dict_free(sd);
    tutti_module_free(other);
}

static void shapes_that_differ_are_an_error_always(void **state)
{
    tutti_state_dict *sd = state_of(*state);
    tutti_module *other = make(5.0);

    assert_int_equal(
        tutti_state_dict_set(sd, "lead.bias", tutti_tensor_zeros(TUTTI_F32, 1, SHAPE(1))),
        TUTTI_OK);
    assert_true(tutti_state_dict_remove(sd, "norm.mean"));
    assert_int_equal(tutti_module_load_state_dict(other, sd, false, NULL), TUTTI_E_MISMATCH);
    assert_non_null(
        strstr(tutti_last_error(), "'lead.bias' has shape [1] in the state, [3] in the module"));
    assert_true(item(tutti_module_buffer(other, "norm.count")) == 5.0);
    assert_int_equal(tutti_module_load_state_dict(other, NULL, false, NULL), TUTTI_E_ARG);
    assert_int_equal(tutti_module_load_state_dict(NULL, sd, false, NULL), TUTTI_E_ARG);
    assert_int_equal(tutti_module_state_dict(NULL, &sd), TUTTI_E_ARG);
    tutti_incompatible_keys_free(NULL);
    tutti_state_dict_free(sd);
    tutti_module_free(other);
}

/* A long list is cut, and counted. */
static void many_names_are_counted(void **state)
{
    tutti_module *m = tutti_sequential();
    tutti_state_dict *sd = NULL;
    char name[] = "a-rather-long-name-of-a-parameter-that-nobody-would-like-to-type-00";

    (void)state;
    for (int i = 0; i < 20; i++) {
        name[sizeof name - 3] = (char)('0' + i / 10);
        name[sizeof name - 2] = (char)('0' + i % 10);
        assert_int_equal(
            tutti_module_register_parameter(m, name, tutti_tensor_zeros(TUTTI_F32, 0, NULL)),
            TUTTI_OK);
    }
    assert_int_equal(tutti_state_dict_create(&sd), TUTTI_OK);
    assert_int_equal(tutti_module_load_state_dict(m, sd, true, NULL), TUTTI_E_MISMATCH);
    assert_non_null(strstr(tutti_last_error(), "20 names are missing"));
    assert_non_null(strstr(tutti_last_error(), " and 16 more"));
    tutti_state_dict_free(sd);
    tutti_module_free(m);
}

static void a_step_is_seen_in_the_state(void **state)
{
    tutti_state_dict *sd = state_of(*state);
    bool recorded = tutti_set_grad_enabled(false);

    assert_int_equal(tutti_tensor_fill_(tutti_module_parameter(*state, "norm.weight"), 3.0),
                     TUTTI_OK);
    (void)tutti_set_grad_enabled(recorded);
    assert_true(((float *)tutti_tensor_data(tutti_state_dict_get(sd, "norm.weight")))[1] == 3.0f);
    tutti_state_dict_free(sd);
}

static void buffers_are_checked(void **state)
{
    tutti_tensor *leaf = tutti_tensor_requires_grad_(tutti_tensor_zeros(TUTTI_F32, 0, NULL), true);
    tutti_tensor *plain = tutti_tensor_zeros(TUTTI_F32, 0, NULL);

    assert_int_equal(tutti_module_register_buffer(*state, "b", leaf, true), TUTTI_E_ARG);
    assert_int_equal(tutti_tensor_check(), TUTTI_E_ARG);
    assert_non_null(strstr(tutti_last_error(), "buffer 'b' requires gradients"));
    assert_int_equal(tutti_module_register_buffer(*state, "b.c", plain, true), TUTTI_E_ARG);
    assert_int_equal(tutti_module_register_buffer(*state, "lead", plain, true), TUTTI_E_ARG);
    assert_int_equal(tutti_module_register_buffer(*state, "b", plain, true), TUTTI_OK);
    assert_int_equal(tutti_module_register_parameter(*state, "b", leaf), TUTTI_E_ARG);
    assert_int_equal(tutti_tensor_check(), TUTTI_E_ARG);
    assert_ptr_equal(tutti_module_buffer(*state, "b"), plain);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(lists_have_each_tensor_once, begin, end),
        cmocka_unit_test_setup_teardown(the_state_has_every_name, begin, end),
        cmocka_unit_test_setup_teardown(loading_copies_in_place, begin, end),
        cmocka_unit_test_setup_teardown(names_that_differ_are_listed, begin, end),
        cmocka_unit_test_setup_teardown(shapes_that_differ_are_an_error_always, begin, end),
        cmocka_unit_test_setup_teardown(many_names_are_counted, begin, end),
        cmocka_unit_test_setup_teardown(a_step_is_seen_in_the_state, begin, end),
        cmocka_unit_test_setup_teardown(buffers_are_checked, begin, end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
