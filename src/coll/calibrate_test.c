/* SPDX-License-Identifier: BSD-3-Clause
 *
 * calibrate_test.c
 * Goal    the figures that are measured are figures, whatever the thread may run on; they are measured once.
 * Method  Measured on a thread that is pinned to one core, which is the hardest case: the helper must go to
 *         another core, and come back. How large they are is nobody's promise. */
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "coll/calibrate.h"

static void figures_are_within_proportion(void **state)
{
    const tti_machine *usual = &tti_machine_default, *m;
    cpu_set_t          one, now;
    const double      *figure, *likely;
    size_t             i;

    (void)state;
    CPU_ZERO(&one);
    CPU_SET((size_t)sched_getcpu(), &one);
    assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
    m = tti_machine_here();
    figure = &m->line;
    likely = &usual->line;
    for (i = 0; i < sizeof *m / sizeof *figure; i++)
        assert_true(figure[i] >= likely[i] / 50.001 && figure[i] <= likely[i] * 50.001);
    assert_int_equal(sched_getaffinity(0, sizeof now, &now), 0);
    assert_true(CPU_EQUAL(&one, &now)); /* the caller stays where it was */
    assert_ptr_equal(tti_machine_here(), m);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(figures_are_within_proportion) };

    return cmocka_run_group_tests_name("calibrate", tests, NULL, NULL);
}
