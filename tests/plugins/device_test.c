/* SPDX-License-Identifier: BSD-3-Clause
 *
 * device_test.c
 * Goal    a device's plug-in is found where those of backends are, and known from then on; one that is wrong in any way is refused
 *         with words that name it.
 * Method  plug-ins that the build has made (device_variant.c), each wrong in one way. Finding and trusting are shared with
 *         backends (plugin_test.c). */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <tutti/tutti.h>
#include "backend/plugin/device.h"
#include "backend/plugin/plugin.h"

static tutti_status find(const char *name, const tutti_device_ops **ops_out)
{
    char places[TTI_PLACES_TEXT];

    return tti_device_ops_find(name, ops_out, places);
}

static void assert_refused(const char *name, tutti_status status, const char *word)
{
    const tutti_device_ops *ops = NULL;

    assert_int_equal(find(name, &ops), status);
    assert_null(ops);
    if (strstr(tutti_last_error(), word) == NULL || strstr(tutti_last_error(), name) == NULL ||
        strstr(tutti_last_error(), "\n  next: ") == NULL)
        fail_msg("'%s', '%s' or a next step is not in: %s", word, name, tutti_last_error());
}

static void test_broken(void **state)
{
    (void)state;
    assert_refused("d-too-old", TUTTI_E_UNSUPPORTED, "is too old: it is of version 0");
    assert_refused("d-too-new", TUTTI_E_UNSUPPORTED, "too new: it is of version 99");
    assert_refused("d-wrong-size", TUTTI_E_BACKEND, "has 16 bytes");
    assert_refused("d-no-table", TUTTI_E_BACKEND, "has no table");
    assert_refused("d-no-init", TUTTI_E_BACKEND, "has no init");
    assert_refused("d-old-table", TUTTI_E_UNSUPPORTED, "too old");
    assert_refused("d-short-table", TUTTI_E_BACKEND, "with headers of one release only");
    assert_refused("d-no-copy", TUTTI_E_BACKEND, "no entry 'copy'");
    assert_refused("d-backend", TUTTI_E_BACKEND, "does not show 'tutti_device_entry'");
}

static void test_found(void **state)
{
    const tutti_device_ops *ops = NULL, *again = NULL, *none = NULL;

    (void)state;
    assert_int_equal(find("d-nobody", &none), TUTTI_OK);
    assert_null(none);
    assert_int_equal(find("d-good", &ops), TUTTI_OK);
    assert_string_equal(ops->name, "d-good");
    unsetenv("TUTTI_PLUGIN_PATH");
    assert_int_equal(find("d-good", &again), TUTTI_OK);
    assert_ptr_equal(again, ops);
}

/* What plug-ins ask for by its kind. */
static void test_for_plug_ins(void **state)
{
    const tutti_device_ops *ops = NULL;

    (void)state;
    assert_int_equal(tti_plugin_host.device(TUTTI_CPU, &ops), TUTTI_E_ARG);
    assert_null(ops);
    assert_non_null(strstr(tutti_last_error(), "device type 0"));
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_broken), cmocka_unit_test(test_found),
                                        cmocka_unit_test(test_for_plug_ins) };

    setenv("TUTTI_PLUGIN_PATH", TT_PLUGINS, 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
