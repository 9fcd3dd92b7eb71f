/* SPDX-License-Identifier: BSD-3-Clause
 *
 * ranks_text_test.c
 * Goal    lists of ranks are short to read, and say the same.
 * Method  rows of lists and texts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "object/ranks_text.h"

static void lists_become_ranges(void **state)
{
    static const struct {
        int         n;
        int         ranks[8];
        const char *text;
    } rows[] = {
        { 0, { 0 }, "" },
        { 1, { 5 }, "5" },
        { 2, { 0, 1 }, "0:2:1" },
        { 2, { 0, 5 }, "0, 5" },
        { 4, { 0, 2, 4, 6 }, "0:7:2" },
        { 5, { 0, 2, 3, 4, 5 }, "0, 2:6:1" },
        { 4, { 0, 1, 5, 6 }, "0:2:1, 5:7:1" },
        { 8, { 1, 2, 3, 10, 20, 30, 31, 40 }, "1:4:1, 10:31:10, 31, 40" },
    };
    char   text[8 * TTI_RANKS_TEXT_EACH];
    size_t i;

    (void)state;
    for (i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        tti_ranks_text(rows[i].ranks, rows[i].n, text, sizeof text);
        assert_string_equal(text, rows[i].text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(lists_become_ranges) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
