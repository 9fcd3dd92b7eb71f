/* SPDX-License-Identifier: BSD-3-Clause
 *
 * device_map_test.c
 * Goal    backend strings are read as torch reads them; what cannot be read is told with the format; which
 *         backends are there can be asked. */
#include "backend/device_map.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <cmocka.h>
#include <tutti/backends.h>

static void assert_map(const char *text, const char *expected)
{
    tti_device_map map;
    char           written[TTI_DEVICE_MAP_TEXT];

    assert_int_equal(tti_device_map_parse(text, &map), TUTTI_OK);
    tti_device_map_write(&map, written);
    assert_string_equal(written, expected);
}

static void test_read(void **state)
{
    (void)state;
    assert_map(NULL, "cpu:native,cuda:native");
    assert_map("native", "cpu:native,cuda:native");
    assert_map("Native", "cpu:native,cuda:native");
    assert_map("undefined", "cpu:native,cuda:native");
    assert_map("fake", "cpu:fake,cuda:fake");
    assert_map("nccl", "cuda:nccl");
    assert_map("cpu:native", "cpu:native");
    assert_map("cuda:native", "cuda:native");
    assert_map("cuda:NCCL,CPU:native", "cpu:native,cuda:nccl");
    assert_map("cpu:fake,cuda:fake", "cpu:fake,cuda:fake");
}

static void assert_refused(const char *text, const char *word)
{
    tti_device_map map = { .names = { "untouched" } };

    assert_int_equal(tti_device_map_parse(text, &map), TUTTI_E_ARG);
    if (strstr(tutti_last_error(), word) == NULL)
        fail_msg("'%s' is not in '%s'", word, tutti_last_error());
    assert_string_equal(map.names[0], "untouched");
}

static void test_refused(void **state)
{
    (void)state;
    assert_refused("", "device:backend,device:backend");
    assert_refused("cpu:native,", "device:backend,device:backend");
    assert_refused("cpu:native:x", "device:backend,device:backend");
    assert_refused("cpu:", "device:backend,device:backend");
    assert_refused(":native", "no device ''");
    assert_refused("native,fake", "device:backend,device:backend");
    assert_refused("cpu:native,cpu:fake", "two backends, 'native' and 'fake'");
    assert_refused("tpu:native", "no device 'tpu'");
    assert_refused("cpu:nccl", "does not take memory of 'cpu'");
    assert_refused("gloo", "no backend 'gloo'");
    assert_refused("cpu:gloo", "no backend 'gloo'");
    assert_refused("cpu:a-name-that-is-longer-than-any-backend's", "no pair");
}

static void test_available(void **state)
{
    const char *name = NULL;

    (void)state;
    assert_true(tutti_is_available());
    assert_true(tutti_is_backend_available("native"));
    assert_true(tutti_is_backend_available("cpu:native,cuda:fake"));
    assert_false(tutti_is_backend_available("cpu:native,cuda:nccl"));
    assert_false(tutti_is_backend_available("gloo"));
    assert_false(tutti_is_backend_available(NULL));
    assert_false(tutti_is_gloo_available() || tutti_is_nccl_available() || tutti_is_mpi_available() ||
                 tutti_is_ucc_available() || tutti_is_xccl_available());
    assert_int_equal(tutti_get_default_backend_for_device("cpu", &name), TUTTI_OK);
    assert_string_equal(name, "native");
    assert_int_equal(tutti_get_default_backend_for_device("cuda:3", &name), TUTTI_OK);
    assert_string_equal(name, "nccl");
    assert_int_equal(tutti_get_default_backend_for_device("tpu", &name), TUTTI_E_ARG);
    assert_int_equal(tutti_get_default_backend_for_device(NULL, &name), TUTTI_E_ARG);
}

static void test_complex(void **state)
{
    static const struct {
        tutti_op_kind kind;
        bool          complex;
    } rows[] = {
        { TUTTI_OP_SUM, true },      { TUTTI_OP_AVG, true }, { TUTTI_OP_PREMUL_SUM, true },
        { TUTTI_OP_PRODUCT, false }, { TUTTI_OP_MIN, false }, { TUTTI_OP_MAX, false },
        { TUTTI_OP_BAND, false },    { TUTTI_OP_BOR, false }, { TUTTI_OP_BXOR, false },
    };
    size_t i;

    (void)state;
    for (i = 0; i < sizeof rows / sizeof rows[0]; i++)
        assert_int_equal(tutti_supports_complex((tutti_op){ .kind = rows[i].kind }), rows[i].complex);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_read),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_available),
        cmocka_unit_test(test_complex),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
