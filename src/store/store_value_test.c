/* SPDX-License-Identifier: BSD-3-Clause
 *
 * store_value_test.c - numbers as text: what strtoll in base 10 would take, without its NUL. */
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <cmocka.h>
#include "store/store_value.h"

static void numbers_are_read_like_strtoll(void **state)
{
    static const struct {
        const char *text;
        bool        number;
        int64_t     value;
    } cases[] = {
        { "0", true, 0 },
        { "-0", true, 0 },
        { "42", true, 42 },
        { "+42", true, 42 },
        { " \t\n\v\f\r-42", true, -42 },
        { "007", true, 7 },
        { "12abc", true, 12 },
        { "12 34", true, 12 },
        { "9223372036854775807", true, INT64_MAX },
        { "9223372036854775808", true, INT64_MAX },
        { "99999999999999999999999", true, INT64_MAX },
        { "-9223372036854775808", true, INT64_MIN },
        { "-9223372036854775809", true, INT64_MIN },
        { "", false, 0 },
        { " ", false, 0 },
        { "-", false, 0 },
        { "+-1", false, 0 },
        { "- 1", false, 0 },
        { "x1", false, 0 },
    };
    size_t i;

    (void)state;
    for (i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        int64_t value = 77;

        assert_int_equal(tti_store_number(cases[i].text, strlen(cases[i].text), &value),
                         cases[i].number);
        assert_true(value == (cases[i].number ? cases[i].value : 77));
    }
}

/* The value ends where its size says, not at a NUL. */
static void sizes_are_kept_to(void **state)
{
    int64_t value = 0;

    (void)state;
    assert_true(tti_store_number("1234", 2, &value));
    assert_int_equal(value, 12);
    assert_false(tti_store_number("-5", 1, &value));
    assert_false(tti_store_number(NULL, 0, &value));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_are_read_like_strtoll),
        cmocka_unit_test(sizes_are_kept_to),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
