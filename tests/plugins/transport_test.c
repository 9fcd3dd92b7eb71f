/* SPDX-License-Identifier: BSD-3-Clause
 *
 * transport_test.c
 * Goal    TUTTI_TRANSPORT finds a transport's plug-in where those of backends are found; one that is wrong in any way, or
 *         might be somebody else's, is refused with words that name it, and so is a name that nobody has.
 * Method  plug-ins that the build has made (transport_variant.c), each wrong in one way, in the build's folder; for trust a
 *         copy in a folder of this program's. Finding and trusting are shared with backends (plugin_test.c): here is that
 *         they are asked. */
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>
#include <tutti/tutti.h>
#include "backend/native/native.h"
#include "backend/plugin/transport.h"

static void assert_said(const char *word)
{
    if (strstr(tutti_last_error(), word) == NULL)
        fail_msg("'%s' is not in: %s", word, tutti_last_error());
}

static void wants(const char *value)
{
    assert_int_equal(setenv("TUTTI_TRANSPORT", value, 1), 0);
}

static void assert_refused(const char *value, tutti_status status, const char *word)
{
    wants(value);
    assert_int_equal(tti_native_check_env(NULL), status);
    assert_said("TUTTI_TRANSPORT is '");
    assert_said(value);
    assert_said(word);
    assert_said("\n  next: ");
    unsetenv("TUTTI_TRANSPORT");
}

/* Before anybody is waited for, and with the file. */
static void test_broken(void **state)
{
    (void)state;
    setenv("TUTTI_PLUGIN_PATH", TT_PLUGINS, 1);
    assert_refused("t-too-old", TUTTI_E_UNSUPPORTED, "tutti-transport-t-too-old.so' is too old: it is of version 0");
    assert_refused("t-too-new", TUTTI_E_UNSUPPORTED, "too new: it is of version 99");
    assert_refused("t-wrong-size", TUTTI_E_BACKEND, "has 16 bytes");
    assert_refused("t-no-table", TUTTI_E_BACKEND, "has no table");
    assert_refused("t-no-init", TUTTI_E_BACKEND, "has no init");
    assert_refused("t-old-table", TUTTI_E_UNSUPPORTED, "too old");
    assert_refused("t-short-table", TUTTI_E_BACKEND, "with headers of one release only");
    assert_refused("t-misnamed", TUTTI_E_BACKEND, "called 'somebody'");
    assert_refused("t-other-table", TUTTI_E_BACKEND, "called 'somebody'");
    assert_refused("t-no-send", TUTTI_E_BACKEND, "no entry 'send'");
    assert_refused("t-half-handle", TUTTI_E_BACKEND, "no entry 'arm'");
    assert_refused("only:t-no-send", TUTTI_E_BACKEND, "no entry 'send'");
    assert_refused("t-backend", TUTTI_E_BACKEND, "does not show 'tutti_transport_entry'");
    unsetenv("TUTTI_PLUGIN_PATH");
}

static void test_nowhere(void **state)
{
    (void)state;
    setenv("TUTTI_PLUGIN_PATH", "/nowhere/first:" TT_PLUGINS, 1);
    assert_refused("pigeon", TUTTI_E_ARG, "not 'auto' or 'tcp', and the plug-in 'tutti-transport-pigeon.so' is not in '/nowhere/");
    assert_said(TT_PLUGINS);
    assert_said("/tutti'"); /* the library's own directory */
    assert_said("\n  next: ");
    assert_refused("only:pigeon", TUTTI_E_ARG, "tutti-transport-pigeon.so");
    assert_refused("only:", TUTTI_E_ARG, "no plug-in can have that name");
    assert_refused("only:tcp", TUTTI_E_ARG, "'only:' goes before the name of a plug-in\n  next: set it to tcp");
    assert_refused("only:auto", TUTTI_E_ARG, "'only:' goes before the name of a plug-in\n  next: set it to auto");
    assert_refused("Only:Pigeon", TUTTI_E_ARG, "tutti-transport-pigeon.so");
    assert_refused("../pigeon", TUTTI_E_ARG, "no plug-in can have that name");
    assert_refused("good", TUTTI_E_ARG, "tutti-transport-good.so"); /* there is a backend of that name */
    setenv("TUTTI_PLUGIN_PATH", "relative", 1);
    assert_refused("pigeon", TUTTI_E_ARG, "not absolute");
    unsetenv("TUTTI_PLUGIN_PATH");
}

static void test_shy(void **state)
{
    const tutti_transport_ops *ops = NULL, *again = NULL;
    char                       places[TTI_PLACES_TEXT];

    (void)state;
    setenv("TUTTI_PLUGIN_PATH", TT_PLUGINS, 1);
    setenv("VARIANT_IS_SHY", "1", 1);
    assert_refused("t-good", TUTTI_E_IO, "cannot be used: the library below is not there");
    unsetenv("VARIANT_IS_SHY");
    assert_int_equal(tti_transport_find("t-good", &ops, places), TUTTI_OK);
    assert_string_equal(ops->name, "t-good");
    unsetenv("TUTTI_PLUGIN_PATH");
    assert_int_equal(tti_transport_find("t-good", &again, places), TUTTI_OK); /* it is known, wherever it was */
    assert_ptr_equal(again, ops);
}

/* A file that others may write to is not loaded, as for backends. */
static void test_trust(void **state)
{
    char folder[] = "/tmp/tutti-transports-XXXXXX";
    char path[PATH_MAX], bytes[65536];
    FILE *in = fopen(TT_PLUGINS "/tutti-transport-t-trusted.so", "rb"), *out;
    size_t n;

    (void)state;
    assert_non_null(in);
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/tutti-transport-t-trusted.so", folder);
    out = fopen(path, "wb");
    assert_non_null(out);
    while ((n = fread(bytes, 1, sizeof bytes, in)) > 0)
        assert_int_equal(fwrite(bytes, 1, n, out), n);
    fclose(in);
    assert_int_equal(fclose(out), 0);
    setenv("TUTTI_PLUGIN_PATH", folder, 1);
    assert_int_equal(chmod(path, 0702), 0);
    assert_refused("t-trusted", TUTTI_E_AUTH, "mode 0702, so others may write to it");
    assert_int_equal(chmod(path, 0700), 0);
    wants("T-Trusted"); /* letters of any case mean the small ones */
    assert_int_equal(tti_native_check_env(NULL), TUTTI_OK);
    wants("TCP");
    assert_int_equal(tti_native_check_env(NULL), TUTTI_OK);
    unsetenv("TUTTI_TRANSPORT");
    unsetenv("TUTTI_PLUGIN_PATH");
    assert_int_equal(unlink(path), 0);
    assert_int_equal(rmdir(folder), 0);
}

/* A world of one has nobody to reach: it is made, and does not even open the transport. */
static void test_alone(void **state)
{
    tutti_init_options opts = TUTTI_INIT_OPTIONS;
    tutti_group       *world = NULL;

    (void)state;
    setenv("TUTTI_PLUGIN_PATH", TT_PLUGINS, 1);
    setenv("VARIANT_HAS_NO_CABLE", "1", 1);
    wants("only:t-good");
    opts.init_method = "tcp://127.0.0.1:0";
    opts.rank = 0;
    opts.world_size = 1;
    assert_int_equal(tutti_create_process_group(&opts, &world), TUTTI_OK);
    assert_int_equal(tutti_barrier(world), TUTTI_OK);
    assert_int_equal(tutti_destroy_process_group(world), TUTTI_OK);
    unsetenv("VARIANT_HAS_NO_CABLE");
    unsetenv("TUTTI_TRANSPORT");
    unsetenv("TUTTI_PLUGIN_PATH");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_broken), cmocka_unit_test(test_nowhere), cmocka_unit_test(test_shy),
        cmocka_unit_test(test_trust),  cmocka_unit_test(test_alone),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
