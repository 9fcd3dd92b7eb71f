/* SPDX-License-Identifier: BSD-3-Clause
 *
 * choose_test.c - every call has an algorithm that can do it; TUTTI_ALGO is obeyed or refused
 * clearly. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "coll/choose.h"

static const tti_choice nothing;

static const char *chosen(const tti_choice *choice, tutti_call_kind kind, bool one_host,
                          int n_ranks, int64_t bytes)
{
    const tti_algorithm *row = tti_choose(choice, kind, one_host, n_ranks, bytes);

    assert_non_null(row);
    assert_true((row->staged != NULL) != (row->plan != NULL));
    assert_int_equal(row->kind, kind);
    return row->name;
}

static void every_call_has_an_algorithm(void **state)
{
    static const int64_t sizes[] = { 0, 1, 4096, 4097, 16384, 16385, INT64_C(1) << 40 };
    static const int     ranks[] = { 2, 3, TTI_HOST_RANKS_MAX, TTI_HOST_RANKS_MAX + 1, 1 << 20 };
    int                  kind;
    size_t               s, r;

    (void)state;
    for (kind = 1; kind < TUTTI_CALL_KIND_COUNT; kind++)
        for (s = 0; s < sizeof sizes / sizeof sizes[0]; s++)
            for (r = 0; r < sizeof ranks / sizeof ranks[0]; r++) {
                chosen(&nothing, (tutti_call_kind)kind, true, ranks[r], sizes[s]);
                assert_null(tti_choose(&nothing, (tutti_call_kind)kind, false, ranks[r],
                                       sizes[s])->staged);
            }
    assert_null(tti_choose(&nothing, TUTTI_CALL_BARRIER, true, 1, 0));
}

static void size_and_place_decide(void **state)
{
    const tutti_call_kind kind = TUTTI_CALL_ALL_REDUCE;

    (void)state;
    assert_string_equal(chosen(&nothing, kind, true, 4, 16384), "one_phase");
    assert_string_equal(chosen(&nothing, kind, true, 4, 16385), "sliced");
    assert_string_equal(chosen(&nothing, kind, false, 4, 4096), "one_shot");
    assert_string_equal(chosen(&nothing, kind, false, 4, 4097), "direct");
}

static void wishes_are_obeyed_where_they_can_be(void **state)
{
    tti_choice choice = nothing, other = nothing;

    (void)state;
    assert_int_equal(tti_choice_parse("all_reduce=sliced,broadcast=binomial", &choice), TUTTI_OK);
    assert_string_equal(chosen(&choice, TUTTI_CALL_ALL_REDUCE, true, 4, 8), "sliced");
    assert_string_equal(chosen(&choice, TUTTI_CALL_ALL_REDUCE, false, 4, 8), "one_shot");
    assert_string_equal(chosen(&choice, TUTTI_CALL_BROADCAST, true, 4, 8), "binomial");
    assert_string_equal(chosen(&choice, TUTTI_CALL_REDUCE, true, 4, 8), "one_phase");
    assert_true(tti_choice_fingerprint(&choice) != tti_choice_fingerprint(&nothing));
    assert_int_equal(tti_choice_parse("broadcast=binomial,all_reduce=sliced", &other), TUTTI_OK);
    assert_true(tti_choice_fingerprint(&choice) == tti_choice_fingerprint(&other));
    assert_int_equal(tti_choice_parse(NULL, &choice), TUTTI_OK);
    assert_true(tti_choice_fingerprint(&choice) == tti_choice_fingerprint(&nothing));
}

static void refused(const char *text, const char *says)
{
    tti_choice choice = nothing;

    assert_int_equal(tti_choice_parse(text, &choice), TUTTI_E_ARG);
    assert_non_null(strstr(tutti_last_error(), text));
    assert_non_null(strstr(tutti_last_error(), says));
    assert_null(choice.wanted[TUTTI_CALL_ALL_REDUCE]);
}

static void what_does_not_exist_is_refused(void **state)
{
    (void)state;
    refused("all_reduce=fast", "one_phase, sliced, one_shot, direct");
    refused("all_reduce=sliced,allreduce=sliced", "no operation is called 'allreduce'");
    refused("?=sliced", "no operation is called '?'");
    refused("all_reduce", "op=name");
    refused("all_reduce=", "op=name");
    refused("=sliced", "op=name");
    refused("all_reduce=sliced,,", "op=name");
    refused("a_very_long_word_that_is_no_operation=sliced", "op=name");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_call_has_an_algorithm),
        cmocka_unit_test(size_and_place_decide),
        cmocka_unit_test(wishes_are_obeyed_where_they_can_be),
        cmocka_unit_test(what_does_not_exist_is_refused),
    };

    return cmocka_run_group_tests_name("choose", tests, NULL, NULL);
}
