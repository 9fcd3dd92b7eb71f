/* SPDX-License-Identifier: BSD-3-Clause
 *
 * company_test.c
 * Goal    who gives his core away and has it back late sleeps for a while, for longer each time that this is so again, and
 *         gives it away again behind that; who has it back soon does not look at the clock.
 * Method  a port whose clock stands still but where the test moves it, and counts who looks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include "base/company.h"

static int64_t clock_ns;
static int     n_looks;

static int64_t look(tti_port *port)
{
    (void)port;
    n_looks++;
    return clock_ns;
}

static const tti_port_ops ops = { .now_ns = look };
static tti_port           port = { .ops = &ops };

static int begin(void **state)
{
    (void)state;
    clock_ns = 1000 * TTI_MS;
    n_looks = 0;
    return 0;
}

static bool gives(tti_company *company, int times, int64_t takes_ns)
{
    const int64_t began_ns = clock_ns;

    clock_ns += takes_ns;
    return tti_company_gave(company, times, began_ns, clock_ns);
}

/* How long it is believed. */
static int64_t lasts(tti_company *company)
{
    const int64_t began_ns = clock_ns;

    while (tti_company_is_here(company, &port))
        clock_ns += TTI_MS;
    return clock_ns - began_ns;
}

static void who_is_alone_looks_at_no_clock(void **state)
{
    tti_company company = { .until_ns = 0 };

    (void)state;
    assert_false(gives(&company, 1, TTI_MS - 1));
    assert_false(gives(&company, 16, 15 * TTI_MS)); /* one each: others had their turns */
    assert_false(gives(&company, 0, 20 * TTI_MS));  /* it was not given away */
    assert_false(tti_company_is_here(&company, &port));
    assert_int_equal(n_looks, 0);
}

static void who_keeps_the_core_is_found(void **state)
{
    tti_company company = { .until_ns = 0 };

    (void)state;
    assert_true(gives(&company, 1, 4 * TTI_MS));
    assert_true(tti_company_is_here(&company, &port));
    assert_int_equal(lasts(&company), 10 * TTI_MS);
    assert_false(tti_company_is_here(&company, &port)); /* which is to be tried again */
    assert_int_equal(company.until_ns, 0);
}

static void who_stays_is_believed_for_longer(void **state)
{
    static const int64_t ms[] = { 10, 20, 40, 80, 160, 320, 640, 640 };
    tti_company          company = { .until_ns = 0 };
    size_t               i;

    (void)state;
    for (i = 0; i < sizeof ms / sizeof *ms; i++) {
        assert_true(gives(&company, 2, 8 * TTI_MS));
        assert_int_equal(lasts(&company), ms[i] * TTI_MS);
    }
}

static void who_goes_is_forgotten(void **state)
{
    tti_company company = { .until_ns = 0 };
    int         i;

    (void)state;
    for (i = 0; i < 3; i++) {
        assert_true(gives(&company, 1, 4 * TTI_MS));
        assert_int_equal(lasts(&company), (10 << i) * TTI_MS);
    }
    for (i = 0; i < 63; i++)
        assert_false(gives(&company, 1, 1000));
    assert_true(gives(&company, 1, 4 * TTI_MS)); /* not yet */
    assert_int_equal(lasts(&company), 80 * TTI_MS);
    for (i = 0; i < 4; i++)
        assert_false(gives(&company, 64, 64 * 1000));
    assert_true(gives(&company, 1, 4 * TTI_MS));
    assert_int_equal(lasts(&company), 10 * TTI_MS);
}

/* The core was not given away for a second: that tells nothing of who would have had it. */
static void time_alone_forgets_nobody(void **state)
{
    tti_company company = { .until_ns = 0 };

    (void)state;
    assert_true(gives(&company, 1, 4 * TTI_MS));
    assert_int_equal(lasts(&company), 10 * TTI_MS);
    clock_ns += 1000 * TTI_MS;
    assert_true(gives(&company, 1, 4 * TTI_MS));
    assert_int_equal(lasts(&company), 20 * TTI_MS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(who_is_alone_looks_at_no_clock, begin),
        cmocka_unit_test_setup(who_keeps_the_core_is_found, begin),
        cmocka_unit_test_setup(who_stays_is_believed_for_longer, begin),
        cmocka_unit_test_setup(who_goes_is_forgotten, begin),
        cmocka_unit_test_setup(time_alone_forgets_nobody, begin),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
