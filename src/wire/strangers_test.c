/* SPDX-License-Identifier: BSD-3-Clause
 *
 * strangers_test.c
 * Goal    a flood of strangers drops its own, whoever else stands there.
 * Method  a line of addresses, and a port whose random numbers are those of a generator. */
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <cmocka.h>
#include "wire/strangers.h"

enum { LINE = 64, FLOOD = 9, MEMBER = 1, KNOWN = 0 };

typedef struct line {
    int             n;
    int             who[LINE];
    tti_addr_source sources[10];
} line;

static uint32_t dice = 1;

static void roll(tti_port *port, void *out, size_t bytes)
{
    uint8_t *at = out;
    size_t   i;

    (void)port;
    for (i = 0; i < bytes; i++) {
        dice = dice * 1664525u + 1013904223u;
        at[i] = (uint8_t)(dice >> 24);
    }
}

static const tti_port_ops ops = { .name = "dice", .random = roll };
static tti_port           port = { &ops };

static const tti_addr_source *stranger_at(const void *context, int i)
{
    const line *l = context;

    return l->who[i] == KNOWN ? NULL : &l->sources[l->who[i]];
}

static line line_of(int n, int who)
{
    line l = { .n = n };
    int  i;

    for (i = 0; i < 10; i++)
        l.sources[i] = tti_addr_source_of(&(tti_addr){ .family = TTI_ADDR_IP4, .ip = { 10, 0, 0, (uint8_t)i }, .port = (uint16_t)i });
    for (i = 0; i < n; i++)
        l.who[i] = who;
    return l;
}

static int victim_for(const line *l, int comer)
{
    const tti_strangers crowd = { .context = l, .n = l->n, .stranger_at = stranger_at };

    return tti_stranger_to_go(&crowd, &port, &l->sources[comer]);
}

static void a_flood_drops_its_own(void **state)
{
    line l = line_of(LINE, FLOOD);
    int  i;

    (void)state;
    l.who[0] = MEMBER; /* the oldest of all */
    for (i = 0; i < 1000; i++)
        assert_int_equal(victim_for(&l, FLOOD), 1);
}

/* Another member comes: two of those that stand there are drawn, and nearly all of those are the flood's. */
static void who_comes_from_elsewhere_drops_the_flood(void **state)
{
    line l = line_of(LINE, FLOOD);
    int  i, wrong = 0;

    (void)state;
    l.who[0] = MEMBER;
    for (i = 0; i < 1000; i++)
        wrong += victim_for(&l, MEMBER) != 1;
    assert_in_range(wrong, 0, 5);
}

static void members_do_not_go(void **state)
{
    line l = line_of(LINE, KNOWN);
    int  i;

    (void)state;
    assert_int_equal(victim_for(&l, FLOOD), -1);
    l.who[LINE - 1] = FLOOD;
    for (i = 0; i < 1000; i++)
        assert_int_equal(victim_for(&l, FLOOD), LINE - 1);
    l = line_of(0, KNOWN);
    assert_int_equal(victim_for(&l, FLOOD), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_flood_drops_its_own),
        cmocka_unit_test(who_comes_from_elsewhere_drops_the_flood),
        cmocka_unit_test(members_do_not_go),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
