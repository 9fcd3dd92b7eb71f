/* SPDX-License-Identifier: BSD-3-Clause
 *
 * agenda_test.c
 * Goal    events come in the order of their times, equal times in the order of their making.
 * Method  many drawn times, few different ones among them, added and taken in turns, beside a plain search. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>
#include "simulate/agenda.h"

enum { EVENTS = 4000 };

/* What is left, in the order of its making. */
typedef struct plain {
    int64_t at[EVENTS];
    bool    taken[EVENTS];
    int     n;
} plain;

static int earliest(const plain *p)
{
    int best = -1, i;

    for (i = 0; i < p->n; i++)
        if (!p->taken[i] && (best < 0 || p->at[i] < p->at[best]))
            best = i;
    return best;
}

static uint32_t drawn(uint32_t *seed)
{
    return *seed = *seed * 1664525u + 1013904223u;
}

static void comes_in_order(void **state)
{
    static plain p;
    tti_agenda    agenda = { .n = 0 };
    tti_agenda_event    event;
    uint32_t     seed = 7;
    int          left = 0;

    (void)state;
    p.n = 0;
    while (p.n < EVENTS || left > 0) {
        if (p.n < EVENTS && (left == 0 || drawn(&seed) >> 30 != 0)) {
            p.at[p.n] = drawn(&seed) >> 24;
            tti_agenda_add(&agenda, p.at[p.n], (uint32_t)p.n);
            p.n++;
            left++;
            continue;
        }
        assert_true(tti_agenda_take(&agenda, &event));
        assert_int_equal(event.what, earliest(&p));
        assert_int_equal(event.at, p.at[event.what]);
        p.taken[event.what] = true;
        left--;
    }
    assert_false(tti_agenda_take(&agenda, &event));
    assert_false(agenda.full);
    tti_agenda_release(&agenda);
}

static void an_empty_queue_has_nothing(void **state)
{
    tti_agenda agenda = { .n = 0 };
    tti_agenda_event event;

    (void)state;
    assert_false(tti_agenda_take(&agenda, &event));
    tti_agenda_release(&agenda);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(comes_in_order),
        cmocka_unit_test(an_empty_queue_has_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
