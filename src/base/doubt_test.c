/* SPDX-License-Identifier: BSD-3-Clause
 *
 * doubt_test.c
 * Goal    a poll of a thread that doubts ends when its wait is in vain, and not before; without a doubt nothing is asked.
 * Method  the machine's port, a bell that nobody rings, and a doubt that comes true when it was asked some times. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include "base/doubt.h"
#include <tutti/private.h>

typedef struct count {
    int asked, most;
} count;

static bool asked_often(void *context)
{
    count *c = context;

    return ++c->asked >= c->most;
}

static int poll_bell(bool rung, int64_t until_ns)
{
    tti_port *port = tti_port_system();
    tti_poll  set = { .want = TTI_READ };
    int       got;

    assert_int_equal(port->ops->bell_create(port, &set.handle), 0);
    if (rung)
        port->ops->bell_ring(port, set.handle);
    got = tti_doubt_poll(port, &set, 1, until_ns);
    port->ops->close(port, set.handle);
    return got;
}

static void a_wait_in_vain_ends(void **state)
{
    count           c = { .most = 3 };
    const tti_doubt doubt = { .is_vain = asked_often, .context = &c };

    (void)state;
    tti_doubt_waits(&doubt);
    assert_int_equal(poll_bell(false, TTI_FOREVER), 0); /* or it hangs */
    assert_int_equal(c.asked, 3);
    assert_true(tti_doubt_is_vain());
    assert_int_equal(tti_doubt_fail("somebody"), TUTTI_E_NETWORK);
    tti_doubt_waits(NULL);
    assert_false(tti_doubt_is_vain());
    assert_int_equal(c.asked, 4);
}

static void what_comes_is_taken(void **state)
{
    count           c = { .most = 1 };
    const tti_doubt doubt = { .is_vain = asked_often, .context = &c };

    (void)state;
    tti_doubt_waits(&doubt);
    assert_int_equal(poll_bell(true, TTI_FOREVER), 1);
    assert_int_equal(c.asked, 0);
    tti_doubt_waits(NULL);
}

static void time_is_up_as_without(void **state)
{
    count           c = { .most = 1000000 };
    const tti_doubt doubt = { .is_vain = asked_often, .context = &c };
    const int64_t   until_ns = tti_now_ns() + 50 * TTI_MS;

    (void)state;
    assert_int_equal(poll_bell(false, until_ns), 0);
    assert_true(tti_now_ns() >= until_ns);
    tti_doubt_waits(&doubt);
    assert_int_equal(poll_bell(false, until_ns + 50 * TTI_MS), 0);
    assert_true(tti_now_ns() >= until_ns + 50 * TTI_MS);
    tti_doubt_waits(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_wait_in_vain_ends),
        cmocka_unit_test(what_comes_is_taken),
        cmocka_unit_test(time_is_up_as_without),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
