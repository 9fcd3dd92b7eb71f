/* SPDX-License-Identifier: BSD-3-Clause
 *
 * settings_test.c - launchers that were given different options say which, on whom, and both values, whoever came first; others say
 * nothing. */
#include "elastic/settings.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>
#include <tutti/private.h>
#include "store/store.h"

static tutti_store *store;
static char         words[TTI_SETTINGS_WORDS_MAX];

static int setup(void **state)
{
    (void)state;
    return tutti_hash_store_open(&store) == TUTTI_OK ? 0 : -1;
}

static int teardown(void **state)
{
    (void)state;
    tutti_store_close(store);
    return 0;
}

static tti_settings given(int node)
{
    return (tti_settings){ .node = node, .host = node == 0 ? "n1" : "n2", .run_id = "j5", .nproc = 2, .nnodes = 2 };
}

static bool differ(const tti_settings *own)
{
    words[0] = '\0';
    return tti_settings_differ(store, own, tti_now_ns() + 10 * TTI_SECOND, words);
}

static void the_same_is_no_news(void **state)
{
    const tti_settings a = given(0), b = given(1);

    (void)state;
    assert_false(differ(&a));
    assert_false(differ(&b));
    assert_false(differ(&a));
    assert_string_equal(words, "");
}

static void both_values_are_said(void **state)
{
    tti_settings a = given(0), b = given(1);

    (void)state;
    assert_false(differ(&a));
    b.keep = true;
    assert_true(differ(&b));
    assert_string_equal(words, "--on-failure: kill on host 'n1' (node 0), keep here, on host 'n2' (node 1)\n"
                               "  next: give all launchers of a job the same");
    b.keep = false;
    b.run_id = NULL;
    b.nproc = 4;
    assert_true(differ(&b));
    assert_non_null(strstr(words, "--nproc-per-node: 2 on host 'n1' (node 0), 4 here"));
    assert_non_null(strstr(words, "; --rdzv-id: j5 on host 'n1' (node 0), not given here"));
}

/* A name longer than there is room for is compared as far as it is kept, on both sides alike. */
static void long_names_are_compared(void **state)
{
    tti_settings a = given(0), b = given(1);
    char         name[400];

    (void)state;
    memset(name, 'x', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    a.run_id = b.run_id = name;
    assert_false(differ(&a));
    assert_false(differ(&b));
    name[0] = 'y';
    assert_true(differ(&b));
    assert_non_null(strstr(words, "--rdzv-id: xxx"));
}

static bool hears(const tti_settings *own, const tti_settings *other)
{
    char         text[TTI_SETTINGS_TEXT_MAX];
    const size_t bytes = tti_settings_write(other, text);

    words[0] = '\0';
    assert_true(bytes > 0 && bytes < sizeof text);
    return tti_settings_heard(own, text, bytes, words);
}

/* The first that came is told of one that came later. */
static void the_first_hears_of_it(void **state)
{
    tti_settings a = given(0), b = given(1);
    char         name[400];

    (void)state;
    assert_false(hears(&a, &b));
    assert_false(hears(&a, &a));
    b.keep = true;
    assert_true(hears(&a, &b));
    assert_string_equal(words, "--on-failure: keep on host 'n2' (node 1), kill here, on host 'n1' (node 0)\n"
                               "  next: give all launchers of a job the same");
    assert_false(hears(&b, &b));
    memset(name, 'x', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    b = given(1);
    a.run_id = b.run_id = name;
    assert_false(hears(&a, &b));
    b.nnodes = 3;
    assert_true(hears(&a, &b) && strstr(words, "--nnodes: 3 on host 'n2' (node 1), 2 here") != NULL);
}

/* What launchers tell each other otherwise, and what is cut or longer than any text. */
static void other_news_are_no_settings(void **state)
{
    const tti_settings a = given(0);
    char               text[2 * TTI_SETTINGS_TEXT_MAX];

    (void)state;
    memset(text, '\1', sizeof text);
    assert_false(tti_settings_heard(&a, text, sizeof text, words));
    assert_false(tti_settings_heard(&a, text, 0, words));
    memset(text, '\n', sizeof text);
    memcpy(text, "tutti settings\n", 15);
    assert_false(tti_settings_heard(&a, text, 15, words));
    assert_false(tti_settings_heard(&a, text, 16, words));
    assert_false(tti_settings_heard(&a, text, sizeof text, words));
}

/* Whatever stands in the store. */
static void nonsense_is_nobodys(void **state)
{
    const tti_settings own = given(1);
    static const char *const texts[] = { "", "\n", "\n--nnodes", "\n--nnodes=", "n1\n--nnodes=\n--nproc-per-node=2\n=\n\n" };
    char               large[4096];
    size_t             i;

    (void)state;
    for (i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        assert_int_equal(tutti_store_set(store, "tutti/launcher/settings", texts[i], strlen(texts[i])), TUTTI_OK);
        (void)differ(&own);
        assert_true(strlen(words) < sizeof words);
    }
    memset(large, '\n', sizeof large);
    assert_int_equal(tutti_store_set(store, "tutti/launcher/settings", large, sizeof large), TUTTI_OK);
    assert_false(differ(&own));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_same_is_no_news, setup, teardown),
        cmocka_unit_test_setup_teardown(both_values_are_said, setup, teardown),
        cmocka_unit_test_setup_teardown(long_names_are_compared, setup, teardown),
        cmocka_unit_test_setup_teardown(the_first_hears_of_it, setup, teardown),
        cmocka_unit_test_setup_teardown(other_news_are_no_settings, setup, teardown),
        cmocka_unit_test_setup_teardown(nonsense_is_nobodys, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
