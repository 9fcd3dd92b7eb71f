/* SPDX-License-Identifier: BSD-3-Clause
 *
 * url_test.c
 * Goal    init URLs are taken apart exactly, and every missing or wrong piece is named. */
#include "rendezvous/url.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

static void test_good(void **state)
{
    tti_url url;

    (void)state;
    assert_int_equal(tti_url_parse("env://", &url), TUTTI_OK);
    assert_int_equal(url.scheme, TTI_URL_ENV);
    assert_int_equal(url.rank, -1);
    assert_int_equal(url.world_size, 0);
    assert_int_equal(tti_url_parse("env://?world_size=8&rank=7", &url), TUTTI_OK);
    assert_int_equal(url.rank, 7);
    assert_int_equal(url.world_size, 8);
    assert_int_equal(tti_url_parse("tcp://node-1:29500?rank=0&world_size=2", &url), TUTTI_OK);
    assert_int_equal(url.scheme, TTI_URL_TCP);
    assert_string_equal(url.host, "node-1");
    assert_int_equal(url.port, 29500);
    assert_int_equal(tti_url_parse("tcp://[fe80::1%2]:0/?use_libuv=1", &url), TUTTI_OK);
    assert_string_equal(url.host, "fe80::1%2");
    assert_int_equal(url.port, 0);
    assert_int_equal(tti_url_parse("torch-tcp://node-1:29500?rank=1&world_size=2", &url), TUTTI_OK);
    assert_int_equal(url.scheme, TTI_URL_TORCH);
    assert_string_equal(url.host, "node-1");
    assert_int_equal(url.port, 29500);
    assert_int_equal(tti_url_parse("file:///tmp/a b?rank=1&world_size=3", &url), TUTTI_OK);
    assert_int_equal(url.scheme, TTI_URL_FILE);
    assert_string_equal(url.path, "/tmp/a b");
    assert_int_equal(url.rank, 1);
}

static void assert_bad(const char *text, tutti_status status, const char *word)
{
    tti_url url = { .rank = 42 };

    if (tti_url_parse(text, &url) != status)
        fail_msg("'%s' gave another status", text);
    if (strstr(tutti_last_error(), word) == NULL)
        fail_msg("'%s': '%s' is not in: %s", text, word, tutti_last_error());
    assert_int_equal(url.rank, 42); /* untouched */
}

static void test_bad(void **state)
{
    (void)state;
    assert_bad("", TUTTI_E_ARG, "no scheme");
    assert_bad("localhost:29500", TUTTI_E_ARG, "no scheme");
    assert_bad("http://x:1", TUTTI_E_UNSUPPORTED, "'http://'");
    assert_bad("env://x", TUTTI_E_ARG, "nothing may stand behind");
    assert_bad("tcp://", TUTTI_E_ARG, "port");
    assert_bad("tcp://host", TUTTI_E_ARG, "port");
    assert_bad("torch-tcp://host:0", TUTTI_E_ARG, "port");
    assert_bad("torch-tcp://host", TUTTI_E_ARG, "port");
    assert_bad("tcp://:29500", TUTTI_E_ARG, "host");
    assert_bad("tcp://host:", TUTTI_E_ARG, "port");
    assert_bad("tcp://host:65536", TUTTI_E_ARG, "port");
    assert_bad("tcp://host:-1", TUTTI_E_ARG, "port");
    assert_bad("tcp://host:80x", TUTTI_E_ARG, "port");
    assert_bad("tcp://host:80/path", TUTTI_E_ARG, "port");
    assert_bad("tcp://::1:80", TUTTI_E_ARG, "colons");
    assert_bad("file://", TUTTI_E_ARG, "no path");
    assert_bad("file://?rank=0", TUTTI_E_ARG, "no path");
    assert_bad("file://relative/x", TUTTI_E_ARG, "absolute path");
    assert_bad("env://?rank", TUTTI_E_ARG, "'rank' has no value");
    assert_bad("env://?rank=", TUTTI_E_ARG, "rank ''");
    assert_bad("env://?rank=-1", TUTTI_E_ARG, "rank '-1'");
    assert_bad("env://?rank=1x", TUTTI_E_ARG, "rank '1x'");
    assert_bad("env://?rank=+1", TUTTI_E_ARG, "rank '+1'");
    assert_bad("env://?rank=99999999999999999999", TUTTI_E_ARG, "between 0");
    assert_bad("env://?world_size=0", TUTTI_E_ARG, "world_size '0'");
    assert_bad("env://?rank=1&rank=1", TUTTI_E_ARG, "'rank' twice");
    assert_bad("env://?world_size=2&world_size=2", TUTTI_E_ARG, "'world_size' twice");
    assert_bad("env://?worldsize=2", TUTTI_E_ARG, "'worldsize'");
}

static void test_too_long(void **state)
{
    char text[TTI_URL_MAX + 64];

    (void)state;
    memset(text, 'a', sizeof text);
    memcpy(text, "file:///", 8);
    text[sizeof text - 1] = '\0';
    assert_bad(text, TUTTI_E_ARG, "longer than");
    text[7 + TTI_URL_PATH_MAX] = '\0';
    assert_bad(text, TUTTI_E_ARG, "path has 4096 bytes");
    memcpy(text, "tcp:////", 8);
    memcpy(text + 400, ":80", 4);
    assert_bad(text, TUTTI_E_ARG, "too long");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_good),
        cmocka_unit_test(test_bad),
        cmocka_unit_test(test_too_long),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
