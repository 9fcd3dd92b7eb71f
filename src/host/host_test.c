/* SPDX-License-Identifier: BSD-3-Clause
 *
 * host_test.c
 * Goal    of every variable that is set it is told whether it can be meant, in the words of the code that reads it; what
 *         is told of the host is what there is.
 * Method  values that are right and values that are wrong, one at a time. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>
#include <tutti/host.h>

static const char *const who[] = { "RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT", "LOCAL_RANK", "LOCAL_WORLD_SIZE",
                                   "OMPI_COMM_WORLD_RANK", "SLURM_PROCID", "PMI_RANK", "PMI_SIZE" };

static int clear(void **state)
{
    size_t i;

    (void)state;
    for (i = 0; i < sizeof who / sizeof who[0]; i++)
        unsetenv(who[i]);
    return 0;
}

static void check(const char *name, const char *value, bool right, const char *words)
{
    tutti_status st;

    setenv(name, value, 1);
    st = tutti_env_check(name);
    unsetenv(name);
    if ((st == TUTTI_OK) != right)
        fail_msg("%s=%s: %s", name, value, st == TUTTI_OK ? "fine" : tutti_last_error());
    if (words != NULL && strstr(tutti_last_error(), words) == NULL)
        fail_msg("%s=%s: '%s' is not in: %s", name, value, words, tutti_last_error());
}

static void values_are_checked_by_their_readers(void **state)
{
    (void)state;
    check("RANK", "3", true, NULL);
    check("RANK", "-1", false, "RANK is '-1'");
    check("RANK", "3x", false, "RANK is '3x'");
    check("WORLD_SIZE", "0", false, "WORLD_SIZE is '0'");
    check("MASTER_PORT", "70000", false, "between 0 and 65535");
    check("MASTER_ADDR", "127.0.0.1", true, NULL);
    check("MASTER_ADDR", "[::1]", true, NULL);
    check("MASTER_ADDR", "no.such.host.invalid", false, "no.such.host.invalid");
    check("TUTTI_TIMEOUT_MS", "0", false, "TUTTI_TIMEOUT_MS is 0");
    check("TUTTI_TIMEOUT_MS", "-1", true, NULL);
    check("TUTTI_LOG", "loud", false, "TUTTI_LOG is 'loud'");
    check("TORCH_DISTRIBUTED_DEBUG", "DETAIL", true, NULL);
    check("TORCH_DISTRIBUTED_DEBUG", "2", false, "TORCH_DISTRIBUTED_DEBUG");
    check("TUTTI_AGENT_STORE", "perhaps", false, "neither yes nor no");
    check("TUTTI_TRANSPORT", "shm", false, "not 'auto' or 'tcp'");
    check("TUTTI_TCP_STRIPES", "9", false, "between 1 and 8");
    check("TUTTI_PORT_RANGE", "50-40", false, "FIRST-LAST");
    check("TUTTI_LISTEN", "all", false, "not 'route' or 'any'");
    check("TUTTI_SOCKET_IFNAME", "lo", true, NULL);
    check("TUTTI_SOCKET_IFNAME", "127.0.0.1", true, NULL);
    check("TUTTI_SOCKET_IFNAME", "192.0.2.7", false, "TUTTI_SOCKET_IFNAME is '192.0.2.7': no interface with an address matches");
    check("GLOO_SOCKET_IFNAME", "192.0.2.7", false, "GLOO_SOCKET_IFNAME is '192.0.2.7'");
    check("TUTTI_SOCKET_IFNAME", "nope0", false, "no interface with an address matches");
    check("TUTTI_TCP_CONGESTION", "nope", false, "congestion control 'nope'");
    check("TUTTI_ALGO", "all_reduce=magic", false, "magic");
    check("TUTTI_TUNE", "/nowhere/table.json", false, "'/nowhere/table.json': No such file or directory\n  next: name a file");
    check("TUTTI_LINK_MBIT", "1000", true, NULL);
    check("TUTTI_LINK_MBIT", "0", true, NULL);
    check("TUTTI_LINK_MBIT", "-1", false, "between 0 and");
    check("TUTTI_REPRODUCIBLE", "1", true, NULL);
    check("TUTTI_ISA", "portable", true, NULL);
    check("TUTTI_ISA", "mmx", false, "TUTTI_ISA is 'mmx'");
    check("TUTTI_RECORDER", "no", true, NULL);
    check("TUTTI_RECORDER", "2", false, "TUTTI_RECORDER is '2'");
    check("TUTTI_TRACE_BUFFER_SIZE", "-5", false, "TUTTI_TRACE_BUFFER_SIZE is '-5'");
    check("TUTTI_HEARTBEAT_MS", "0", false, "TUTTI_HEARTBEAT_MS is '0'");
    check("TUTTI_SILENT_MS", "x", false, "TUTTI_SILENT_MS is 'x'");
    check("TUTTI_DEBUGGER", "anything", true, NULL);
    check("TUTTI_AUTH", "maybe", false, "not 'secret' or 'none'");
    check("TUTTI_SECRET_FILE", "/nowhere/secret", false, "cannot open secret file");
}

/* Whoever makes a world would fail with them, be the value right as a text or not. */
static void backends_have_to_be_there(void **state)
{
    char directory[] = "/tmp/tutti-host-test-XXXXXX";

    (void)state;
    check("TUTTI_BACKEND", "native", true, NULL);
    check("TUTTI_BACKEND", "debug-native", true, NULL);
    check("TUTTI_BACKEND", "natvie", false, "there is no backend 'natvie'");
    check("TUTTI_BACKEND", "cpu:native,cpu:fake", false, "device 'cpu' has two backends");
    check("TUTTI_BACKEND", "ucc", false, "backend 'ucc' is a plug-in, and 'tutti-backend-ucc.so' is not in");
    check("TUTTI_BACKEND", "cpu:native,cuda:ucc", true, NULL); /* a group works until memory of a GPU comes */
    check("TUTTI_PLUGIN_PATH", "/nowhere:", true, NULL);       /* the search goes on behind it */
    check("TUTTI_PLUGIN_PATH", "/nowhere:relative", false, "TUTTI_PLUGIN_PATH has 'relative', which is not absolute");
    assert_non_null(mkdtemp(directory));
    check("TUTTI_PLUGIN_PATH", directory, true, NULL);
    assert_int_equal(chmod(directory, 0707), 0);
    check("TUTTI_PLUGIN_PATH", directory, false, "has mode 0707, so others may write to it");
    assert_int_equal(rmdir(directory), 0);
}

/* Two mistakes at once: each is told of its own variable, and a right one beside them is not blamed. */
static void mistakes_are_told_apart(void **state)
{
    (void)state;
    setenv("TUTTI_TRANSPORT", "carrier-pigeon", 1);
    check("TUTTI_PORT_RANGE", "9-1", false, "TUTTI_PORT_RANGE is '9-1'");
    check("TUTTI_PORT_RANGE", "10-20", true, NULL);
    check("TUTTI_TCP_STRIPES", "2", true, NULL);
    setenv("TUTTI_PORT_RANGE", "9-1", 1);
    check("TUTTI_TRANSPORT", "tcp", true, NULL);
    setenv("TUTTI_ALGO", "all_reduce=magic", 1);
    check("TUTTI_TUNE", "/nowhere/table.json", false, "/nowhere/table.json");
    check("TUTTI_REPRODUCIBLE", "1", true, NULL);
    check("TUTTI_TLS", "yes", false, "TUTTI_TLS is 'yes', not '0' or '1'");
    setenv("TUTTI_TLS", "yes", 1);
    check("TUTTI_SECRET_FILE", "/nowhere/secret", false, "cannot open secret file");
    check("TUTTI_AUTH", "none", true, NULL);
    check("TUTTI_TLS_CERT", "/nowhere/cert", true, NULL); /* with the next one it is looked at */
    setenv("TUTTI_TLS", "1", 1);
    check("TUTTI_TLS_CERT", "/nowhere/cert", false, "certificates need TUTTI_TLS_CERT, TUTTI_TLS_KEY and TUTTI_TLS_CA; 1 of them is set");
    check("TUTTI_TRACE_SIGNAL", "KILL", false, "TUTTI_TRACE_SIGNAL is 'KILL'");
    check("TUTTI_TRACE_SIGNAL", "SIGUSR1", true, NULL);
    setenv("TORCH_CPP_LOG_LEVEL", "LOUD", 1);
    check("TUTTI_LOG", "info", true, NULL);
    setenv("TUTTI_LOG", "info", 1);
    check("TORCH_CPP_LOG_LEVEL", "LOUD", false, "TORCH_CPP_LOG_LEVEL is 'LOUD'");
}

static void a_name_that_nobody_reads_is_refused(void **state)
{
    (void)state;
    assert_int_equal(tutti_env_check("TUTTI_TRANSPROT"), TUTTI_E_ARG);
    assert_string_equal(tutti_env_nearest("TUTTI_TRANSPROT"), "TUTTI_TRANSPORT");
    assert_null(tutti_env_nearest("TUTTI_TRANSPORT"));
    assert_null(tutti_env_nearest("TUTTI_TEST_X"));
    assert_null(tutti_env_nearest("RANKS"));
    assert_null(tutti_env_nearest(NULL));
}

static void all_variables_are_listed_and_known(void **state)
{
    tutti_env_variable v = { .name = NULL };
    size_t             i;

    (void)state;
    for (i = 0; tutti_env_variable_at(i, &v); i++) {
        assert_non_null(v.name);
        assert_non_null(v.what);
        unsetenv(v.name);
        assert_int_equal(tutti_env_check(v.name), TUTTI_OK);
    }
    assert_true(i > 40);
    assert_false(tutti_env_variable_at(i, &v));
}

static void who_this_is_must_be_told_whole(void **state)
{
    (void)state;
    setenv("RANK", "1", 1);
    assert_int_equal(tutti_env_check(NULL), TUTTI_E_ARG);
    assert_non_null(strstr(tutti_last_error(), "WORLD_SIZE, which is not set"));
    setenv("WORLD_SIZE", "1", 1);
    assert_int_equal(tutti_env_check(NULL), TUTTI_E_ARG);
    assert_non_null(strstr(tutti_last_error(), "rank 1 is outside"));
    setenv("WORLD_SIZE", "2", 1);
    setenv("MASTER_ADDR", "127.0.0.1", 1);
    assert_int_equal(tutti_env_check(NULL), TUTTI_E_ARG);
    assert_non_null(strstr(tutti_last_error(), "MASTER_PORT"));
    setenv("MASTER_PORT", "29500", 1);
    assert_int_equal(tutti_env_check(NULL), TUTTI_OK);
    clear(NULL);
}

static void the_host_is_what_it_is(void **state)
{
    tutti_host host = TUTTI_HOST, wrong = { .size = 1 };
    char       address[TUTTI_ADDRESS_MAX];

    (void)state;
    assert_int_equal(tutti_host_look(&host), TUTTI_OK);
    assert_true(host.cores_allowed >= 1 && host.cores_running >= 1);
    assert_true(strlen(host.isa) > 0);
    assert_int_equal(tutti_host_look(NULL), TUTTI_E_ARG);
    assert_int_equal(tutti_host_look(&wrong), TUTTI_E_ARG);
    assert_int_equal(tutti_listen_address("127.0.0.1", address), TUTTI_OK);
    assert_string_equal(address, "127.0.0.1");
    assert_int_equal(tutti_listen_address(NULL, address), TUTTI_OK);
    assert_string_equal(address, "127.0.0.1");
    assert_int_equal(tutti_listen_address("[::1]", address), TUTTI_OK);
    assert_string_equal(address, "::1");
    assert_int_not_equal(tutti_listen_address("no.such.host.invalid", address), TUTTI_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(values_are_checked_by_their_readers, clear),
        cmocka_unit_test_setup(backends_have_to_be_there, clear),
        cmocka_unit_test_setup(mistakes_are_told_apart, clear),
        cmocka_unit_test(a_name_that_nobody_reads_is_refused),
        cmocka_unit_test_setup(all_variables_are_listed_and_known, clear),
        cmocka_unit_test_setup(who_this_is_must_be_told_whole, clear),
        cmocka_unit_test_setup(the_host_is_what_it_is, clear),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
