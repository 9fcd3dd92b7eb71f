/* SPDX-License-Identifier: BSD-3-Clause
 *
 * tune_test.c
 * Goal    a table says what its rows say, to the calls that they fit, where their algorithms can serve; what is
 *         wrong in a file is told with its line; and no file, however broken, does harm.
 * Method  Texts, and a good one with bytes changed, cut and put in by a generator with a seed. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>
#include "coll/choose.h"

enum { DAMAGED = 20000, TEXT_MAX = 1024 };

static const char good[] =
    "{ \"tutti_tune\": 1,\n"
    "  \"rows\": [\n"
    "    { \"op\": \"all_reduce\", \"algorithm\": \"sliced\", \"bytes\": [0, 4096], \"ranks\": [2, 4],\n"
    "      \"hosts\": \"one\" },\n"
    "    { \"op\": \"all_reduce\", \"algorithm\": \"direct\", \"bytes\": [0, 64] },\n"
    "    { \"op\": \"broadcast\", \"algorithm\": \"binomial\", \"bytes\": [65536, null], \"ranks\": 3 }\n"
    "  ] }\n";

static tti_tune parsed(const char *text)
{
    tti_tune tune;

    assert_int_equal(tti_tune_parse("t.json", text, strlen(text), &tune), TUTTI_OK);
    return tune;
}

static tti_decision decided(const tti_tune *tune, const char *wish, bool one_host, int n_ranks)
{
    tti_wishes           wishes;
    tti_decision         decision;
    int                  n;
    const tti_algorithm *rows = tti_algorithms(&n);
    const tti_question   q = { .wishes = &wishes, .tune = tune, .machine = &tti_machine_default,
                               .turns = 1, .one_host = one_host, .n_ranks = n_ranks };

    assert_int_equal(tti_wishes_parse(wish, &wishes), TUTTI_OK);
    tti_decide(&q, rows, n, &decision);
    return decision;
}

static const char *name(const tti_decision *d, tutti_call_kind kind, int64_t bytes)
{
    return tti_choose(d, kind, bytes)->name;
}

static void rows_are_for_what_they_fit(void **state)
{
    tti_tune     tune = parsed(good), none = { .n = 0 };
    tti_decision two = decided(&tune, NULL, true, 2), usual = decided(&none, NULL, true, 2);
    tti_decision eight = decided(&tune, NULL, true, 8), hosts = decided(&tune, NULL, false, 3);
    tti_decision wish = decided(&tune, "all_reduce=one_phase", true, 2);

    (void)state;
    assert_int_equal(tune.n, 3);
    assert_string_equal(name(&two, TUTTI_CALL_ALL_REDUCE, 8), "sliced");
    assert_string_equal(name(&two, TUTTI_CALL_ALL_REDUCE, 4096), "sliced");
    assert_string_equal(name(&two, TUTTI_CALL_ALL_REDUCE, 4097), name(&usual, TUTTI_CALL_ALL_REDUCE, 4097));
    assert_string_equal(name(&eight, TUTTI_CALL_ALL_REDUCE, 8), "direct"); /* the second row */
    assert_string_equal(name(&hosts, TUTTI_CALL_ALL_REDUCE, 64), "direct");
    assert_string_equal(name(&hosts, TUTTI_CALL_BROADCAST, INT64_MAX), "binomial");
    assert_string_equal(name(&two, TUTTI_CALL_BROADCAST, 1 << 20), name(&usual, TUTTI_CALL_BROADCAST, 1 << 20));
    assert_string_equal(name(&wish, TUTTI_CALL_ALL_REDUCE, 8), "one_phase"); /* TUTTI_ALGO is stronger */
    tti_tune_release(&tune);
}

static void what_cannot_serve_is_passed_over(void **state)
{
    tti_tune     tune = parsed("{\"tutti_tune\":1,\"rows\":[{\"op\":\"reduce\",\"algorithm\":\"sliced\"}]}");
    tti_decision d = decided(&tune, NULL, false, 2);

    (void)state;
    assert_non_null(tti_choose(&d, TUTTI_CALL_REDUCE, 8)->plan);
    tti_tune_release(&tune);
}

static void refused(const char *text, const char *says)
{
    tti_tune tune = { .n = -1 };

    assert_int_equal(tti_tune_parse("t.json", text, strlen(text), &tune), TUTTI_E_ARG);
    assert_non_null(strstr(tutti_last_error(), "'t.json'"));
    if (strstr(tutti_last_error(), says) == NULL)
        fail_msg("'%s' is not in: %s", says, tutti_last_error());
    assert_int_equal(tune.n, -1);
}

#define ROWS(text) "{\"tutti_tune\":1,\n\"rows\":[\n" text "]}"

static void mistakes_are_told_with_their_line(void **state)
{
    (void)state;
    refused("", "line 1");
    refused("garbage", "next: write one with `tutti bench --tune`");
    refused("{ \"tutti_tune\": 1,\n \"rows\": [ }", "line 2");
    refused("[]", "it is not");
    refused("{}", "it is not");
    refused("{\"tutti_tune\":2,\"rows\":[]}", "another version");
    refused("{\"tutti_tune\":1}", "\"rows\"");
    refused("{\"tutti_tune\":1,\"rows\":[],\"more\":1}", "\"rows\"");
    refused("{\"tutti_tune\":1,\"tutti_tune\":1,\"rows\":[]}", "duplicate");
    refused(ROWS("7"), "line 3: a row is not");
    refused(ROWS("\n\n{}"), "line 5: a row needs");
    refused(ROWS("{\"op\":\"reduce\",\"algorithm\":\"sliced\"},\n{\"op\":\"a,{\\\"\"}"), "line 4: a row needs");
    refused(ROWS("{\"op\":\"sum\",\"algorithm\":\"sliced\"}"), "no operation is called 'sum'");
    refused(ROWS("{\"op\":\"reduce\",\"algorithm\":\"ring\"}"), "take one of ");
    refused(ROWS("{\"op\":\"reduce\",\"algorithm\":\"fused\"}"), "by itself");
    refused(ROWS("{\"op\":\"reduce\",\"algorithm\":\"sliced\",\"byte\":1}"), "no 'byte'");
    refused(ROWS("{\"op\":\"reduce\",\"algorithm\":\"sliced\",\"bytes\":[1]}"), "\"bytes\" is not [from, to]");
    refused(ROWS("{\"op\":\"reduce\",\"algorithm\":\"sliced\",\"bytes\":[null,1]}"), "\"bytes\" is not");
    refused(ROWS("{\"op\":\"reduce\",\"algorithm\":\"sliced\",\"bytes\":null}"), "\"bytes\" is not");
    refused(ROWS("{\"op\":\"reduce\",\"algorithm\":\"sliced\",\"bytes\":[1.5,2]}"), "\"bytes\" is not");
    refused(ROWS("{\"op\":\"reduce\",\"algorithm\":\"sliced\",\"bytes\":[9,8]}"), "from 9 to 8");
    refused(ROWS("{\"op\":\"reduce\",\"algorithm\":\"sliced\",\"bytes\":[-1,8]}"), "from -1 to 8");
    refused(ROWS("{\"op\":\"reduce\",\"algorithm\":\"sliced\",\"bytes\":[0,99999999999999999999]}"), "line 3");
    refused(ROWS("{\"op\":\"reduce\",\"algorithm\":\"sliced\",\"ranks\":[2,4294967298]}"), "\"ranks\" from 2");
    refused(ROWS("{\"op\":\"reduce\",\"algorithm\":\"sliced\",\"hosts\":1}"), "\"hosts\" is not");
    refused(ROWS("{\"op\":\"reduce\",\"algorithm\":\"sliced\",\"hosts\":\"two\"}"), "\"hosts\" is not");
}

static uint32_t drawn(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8;
}

/* Change a few bytes, digits into digits, others into those that JSON is made of as often as into any; cut the end
 * off at times. */
static size_t damage(char text[TEXT_MAX], uint32_t *state)
{
    static const char marks[] = "{}[]\",:\\0123456789-+.eEnul ";
    size_t            bytes = sizeof good - 1;
    uint32_t          changes = 1 + drawn(state) % 4;

    memcpy(text, good, bytes);
    while (changes-- > 0) {
        char *at = &text[drawn(state) % bytes];

        if (*at >= '0' && *at <= '9' && drawn(state) % 4 != 0)
            *at = (char)('0' + drawn(state) % 10);
        else if (*at != ' ')
            *at = drawn(state) % 2 ? marks[drawn(state) % (sizeof marks - 1)] : (char)drawn(state);
    }
    if (drawn(state) % 4 == 0)
        bytes = drawn(state) % bytes;
    return bytes;
}

static void damaged_tables_do_no_harm(void **state)
{
    uint32_t seed = 3;
    int      i, passed = 0, failed = 0;

    (void)state;
    for (i = 0; i < DAMAGED; i++) {
        char         text[TEXT_MAX];
        const size_t bytes = damage(text, &seed);
        char        *exact = malloc(bytes > 0 ? bytes : 1); /* so that a byte too far is seen */
        tti_tune     tune = { .n = 0 };

        assert_non_null(exact);
        memcpy(exact, text, bytes);
        if (tti_tune_parse("t.json", exact, bytes, &tune) == TUTTI_OK) {
            const tti_decision d = decided(&tune, NULL, i % 2, 2 + i % 3);

            assert_true(tti_choose(&d, TUTTI_CALL_ALL_REDUCE, i)->kind == TUTTI_CALL_ALL_REDUCE);
            passed++;
        } else {
            assert_non_null(strstr(tutti_last_error(), "'t.json'"));
            failed++;
        }
        tti_tune_release(&tune);
        free(exact);
    }
    if (passed < DAMAGED / 200 || failed < DAMAGED / 2) /* else it is no test of the one or the other */
        fail_msg("%d passed, %d failed", passed, failed);
}

/* ---- files ------------------------------------------------------------------------------------- */

static void a_file_is_read(void **state)
{
    char     path[] = "/tmp/tutti-tune-XXXXXX", folder[] = "/tmp/tutti-tune-XXXXXX", pipe[64];
    int      fd = mkstemp(path);
    tti_tune tune;

    (void)state;
    assert_true(fd >= 0);
    assert_int_equal(write(fd, good, sizeof good - 1), sizeof good - 1);
    assert_int_equal(tti_tune_read(path, &tune), TUTTI_OK);
    assert_int_equal(tune.n, 3);
    tti_tune_release(&tune);
    assert_int_equal(ftruncate(fd, 8 << 20), 0);
    assert_int_equal(tti_tune_read(path, &tune), TUTTI_E_ARG);
    assert_non_null(strstr(tutti_last_error(), "at most"));
    close(fd);
    unlink(path);
    assert_int_equal(tti_tune_read(path, &tune), TUTTI_E_IO);
    assert_non_null(strstr(tutti_last_error(), path));
    assert_int_equal(tti_tune_read(NULL, &tune), TUTTI_OK);
    assert_int_equal(tune.n, 0);

    assert_non_null(mkdtemp(folder));
    assert_int_equal(tti_tune_read(folder, &tune), TUTTI_E_ARG);
    snprintf(pipe, sizeof pipe, "%s/pipe", folder); /* which nobody writes to */
    assert_int_equal(mkfifo(pipe, 0600), 0);
    assert_int_equal(tti_tune_read(pipe, &tune), TUTTI_E_ARG);
    unlink(pipe);
    rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_are_for_what_they_fit),
        cmocka_unit_test(what_cannot_serve_is_passed_over),
        cmocka_unit_test(mistakes_are_told_with_their_line),
        cmocka_unit_test(damaged_tables_do_no_harm),
        cmocka_unit_test(a_file_is_read),
    };

    return cmocka_run_group_tests_name("tune", tests, NULL, NULL);
}
