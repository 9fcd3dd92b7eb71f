/* SPDX-License-Identifier: BSD-3-Clause
 *
 * rehearse_test.c - rehearsals: that they are what they say.
 *
 * Goal    a seed is a run, the same every time; ranks do not see each other's thread-local state; who is killed is missed by the
 *         others, at once; who waits for ever is named; virtual time costs none.
 * Method  small programs, some thousand turns each. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>
#include <tutti/tutti.h>
#include "base/port.h"

enum { RANKS = 4 };

typedef struct seen {
    tutti_status made[RANKS], st[RANKS];
    float        x[RANKS];
    char         words[RANKS][512];
} seen;

static tutti_rehearse_options options_of(uint64_t seed, int faults_max)
{
    tutti_rehearse_options o = TUTTI_REHEARSE_OPTIONS;

    o.seed = seed;
    o.faults_max = faults_max;
    return o;
}

static void sum_up(const tutti_rehearsed *me, void *arg)
{
    seen *s = arg;
    float x = 1.0f + (float)me->rank;

    s->made[me->rank] = me->made;
    if (me->made == TUTTI_OK)
        s->st[me->rank] = tutti_all_reduce(TUTTI_SPAN(&x, 1), TUTTI_SUM, NULL);
    s->x[me->rank] = x;
}

static void ranks_add_up(void **state)
{
    tutti_rehearse_options o = options_of(1, -1);
    tutti_rehearse_report  report;
    seen                   s;
    int                    hosts, r;

    (void)state;
    for (hosts = 1; hosts <= RANKS; hosts *= 2) {
        memset(&s, 0, sizeof s);
        o.hosts = hosts;
        o.ranks_per_host = RANKS / hosts;
        assert_int_equal(tutti_rehearse(sum_up, &s, &o, &report), TUTTI_OK);
        for (r = 0; r < RANKS; r++) {
            assert_int_equal(s.made[r], TUTTI_OK);
            assert_int_equal(s.st[r], TUTTI_OK);
            assert_true(s.x[r] == 10.0f);
        }
        assert_true(report.turns > 100);
    }
}

static void a_seed_is_a_run(void **state)
{
    tutti_rehearse_report a, b, c;
    seen                  s;
    tutti_rehearse_options one = options_of(7, 0), other = options_of(8, 0);

    (void)state;
    assert_int_equal(tutti_rehearse(sum_up, &s, &one, &a), TUTTI_OK);
    assert_int_equal(tutti_rehearse(sum_up, &s, &other, &b), TUTTI_OK);
    assert_int_equal(tutti_rehearse(sum_up, &s, &one, &c), TUTTI_OK);
    assert_true(a.trace == c.trace && a.turns == c.turns && a.virtual_ms == c.virtual_ms);
    assert_true(a.trace != b.trace);
}

/* Ranks fail in turns, with words of their own, and pause in between. */
static void fail_and_wait(const tutti_rehearsed *me, void *arg)
{
    char        *wrong = arg;
    char         mine[64];
    tutti_bytes  value = { NULL, 0 };
    tutti_status st;
    int          i;

    snprintf(mine, sizeof mine, "no-such-key-of-rank-%d", me->rank);
    for (i = 0; i < 5; i++) {
        st = tutti_store_get(me->store, mine, 10 + me->rank, &value);
        if (st != TUTTI_E_TIMEOUT)
            *wrong = 'w';
        if (tutti_barrier(NULL) != TUTTI_OK || strstr(tutti_last_error(), mine) == NULL)
            *wrong = 'x';
    }
}

static void ranks_have_errors_of_their_own(void **state)
{
    const tutti_rehearse_options o = options_of(3, -1);
    char                         wrong = 0;

    (void)state;
    assert_int_equal(tutti_rehearse(fail_and_wait, &wrong, &o, NULL), TUTTI_OK);
    assert_int_equal(wrong, 0);
}

static void work_on(const tutti_rehearsed *me, void *arg)
{
    seen *s = arg;
    float x = 1;
    int   i;

    s->made[me->rank] = me->made;
    s->st[me->rank] = me->made;
    for (i = 0; i < 300 && s->st[me->rank] == TUTTI_OK; i++)
        s->st[me->rank] = tutti_all_reduce(TUTTI_SPAN(&x, 1), TUTTI_SUM, NULL);
    snprintf(s->words[me->rank], sizeof s->words[me->rank], "%s", tutti_last_error());
}

/* The time-out is long: whoever is killed in the middle is missed by proof, and named. */
static void who_is_killed_is_missed(void **state)
{
    tutti_rehearse_options o = options_of(1, 1);
    tutti_rehearse_report  report;
    char                   name[16];
    seen                   s;
    int                    r, killed = 0;

    (void)state;
    o.faults = 1u << TUTTI_FAULT_KILL;
    o.timeout_ms = 600000;
    o.turns = 6000;
    for (o.seed = 1; killed < 8 && o.seed < 100; o.seed++) {
        memset(&s, 0, sizeof s);
        assert_int_equal(tutti_rehearse(work_on, &s, &o, &report), TUTTI_OK);
        for (r = 0; r < RANKS && s.made[r] == TUTTI_OK; r++)
            continue;
        if (report.lost == 0 || r < RANKS)
            continue;
        killed++;
        snprintf(name, sizeof name, "rank %d", __builtin_ctzll(report.lost));
        for (r = 0; r < RANKS; r++) {
            if ((report.lost >> r & 1) != 0 || s.st[r] == TUTTI_OK)
                continue;
            assert_int_equal(s.st[r], TUTTI_E_PEER);
            assert_non_null(strstr(s.words[r], name));
        }
    }
    assert_int_equal(killed, 8);
}

/* Rank 0 waits for rank 1, which lives and does not call; rank 3, on the other host, is killed meanwhile. */
static void wait_for_another(const tutti_rehearsed *me, void *arg)
{
    seen *s = arg;
    float x = 0;

    s->made[me->rank] = me->made;
    if (me->made != TUTTI_OK || me->rank != 0) {
        tutti_rehearsed_sleep(60000);
        return;
    }
    if (tutti_rehearsed_fault(TUTTI_FAULT_KILL, 4, 1, 0) != TUTTI_E_ARG || tutti_rehearsed_fault(TUTTI_FAULT_PART, 2, 1, 0) != TUTTI_E_ARG)
        s->made[0] = TUTTI_E_STATE;
    s->st[1] = tutti_rehearsed_fault(TUTTI_FAULT_KILL, 3, 20, 0);
    s->st[0] = tutti_recv(TUTTI_SPAN(&x, 1), 1, 0, NULL, NULL);
    s->x[0] = (float)tutti_rehearsed_ns() / 1e9f;
    snprintf(s->words[0], sizeof s->words[0], "%s", tutti_last_error());
}

/* Nothing but the watch threads can tell it. */
static void a_death_is_told_to_who_waits_for_another(void **state)
{
    tutti_rehearse_options o = options_of(11, -1);
    tutti_rehearse_report  report;
    seen                   s = { .st = { TUTTI_OK } };

    (void)state;
    o.timeout_ms = 600000;
    assert_int_equal(tutti_rehearse(wait_for_another, &s, &o, &report), TUTTI_OK);
    assert_int_equal(s.made[0], TUTTI_OK);
    assert_int_equal(s.st[1], TUTTI_OK);
    assert_int_equal(report.faults[TUTTI_FAULT_KILL], 1);
    assert_true(report.lost == 1u << 3);
    assert_int_equal(s.st[0], TUTTI_E_PEER);
    assert_non_null(strstr(s.words[0], "rank 3"));
    assert_true(s.x[0] < 10.0f); /* the clock begins at 1 s */
}

/* Rank 3 is killed while ranks 0 and 1 make a group with it and with rank 2, which lives and does not call. */
static void make_with_a_dead_one(const tutti_rehearsed *me, void *arg)
{
    seen        *s = arg;
    tutti_group *group = NULL;

    s->made[me->rank] = me->made;
    if (me->rank == 0)
        s->st[3] = tutti_rehearsed_fault(TUTTI_FAULT_KILL, 3, 20, 0);
    if (me->made == TUTTI_OK && me->rank < 2) {
        s->st[me->rank] = tutti_new_group(NULL, 0, NULL, &group);
        s->x[me->rank] = (float)tutti_rehearsed_ns() / 1e9f;
        snprintf(s->words[me->rank], sizeof s->words[0], "%s", tutti_last_error());
    }
    tutti_rehearsed_sleep(60000);
}

static void a_death_is_told_to_who_makes_a_group(void **state)
{
    tutti_rehearse_options o = options_of(11, -1);
    tutti_rehearse_report  report;
    seen                   s = { .st = { TUTTI_OK } };
    int                    r;

    (void)state;
    o.timeout_ms = 600000;
    assert_int_equal(tutti_rehearse(make_with_a_dead_one, &s, &o, &report), TUTTI_OK);
    assert_int_equal(s.st[3], TUTTI_OK);
    assert_true(report.lost == 1u << 3);
    for (r = 0; r < 2; r++) {
        assert_int_equal(s.made[r], TUTTI_OK);
        assert_int_equal(s.st[r], TUTTI_E_PEER);
        assert_non_null(strstr(s.words[r], "rank 3"));
        assert_true(s.x[r] < 10.0f);
    }
}

enum { IN_VAIN_MS = 1200000 };

static void recv_in_vain(const tutti_rehearsed *me, void *arg)
{
    float x;

    (void)arg;
    if (me->rank == 1 && me->made == TUTTI_OK)
        (void)tutti_recv(TUTTI_SPAN(&x, 1), 0, 0, NULL, NULL);
    else if (me->made == TUTTI_OK)
        tutti_rehearsed_sleep(2 * IN_VAIN_MS); /* it is no member of a circle, and not gone */
}

static void time_outs_take_no_time(void **state)
{
    tutti_rehearse_options o = options_of(5, -1);
    tutti_rehearse_report  report;
    const int64_t          really = tti_port_now(tti_port_system());

    (void)state;
    o.timeout_ms = IN_VAIN_MS;
    assert_int_equal(tutti_rehearse(recv_in_vain, NULL, &o, &report), TUTTI_OK);
    assert_true(report.virtual_ms >= IN_VAIN_MS);
    assert_true(tti_port_now(tti_port_system()) - really < 30 * TTI_SECOND);
}

static void options_that_cannot_be(void **state)
{
    tutti_rehearse_options o = options_of(1, 9);

    (void)state;
    assert_int_equal(tutti_rehearse(sum_up, NULL, &o, NULL), TUTTI_E_ARG);
    o.faults_max = 1;
    o.hosts = 33;
    assert_int_equal(tutti_rehearse(sum_up, NULL, &o, NULL), TUTTI_E_ARG);
    assert_int_equal(tutti_rehearsed_ns(), 0);
    assert_int_equal(tutti_rehearsed_fault(TUTTI_FAULT_KILL, 0, 1, 0), TUTTI_E_STATE);
    assert_string_equal(tutti_fault_name(TUTTI_FAULT_POWER), "power");
    assert_string_equal(tutti_fault_name(TUTTI_FAULT_KINDS), "?");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranks_add_up),
        cmocka_unit_test(a_seed_is_a_run),
        cmocka_unit_test(ranks_have_errors_of_their_own),
        cmocka_unit_test(who_is_killed_is_missed),
        cmocka_unit_test(a_death_is_told_to_who_waits_for_another),
        cmocka_unit_test(a_death_is_told_to_who_makes_a_group),
        cmocka_unit_test(time_outs_take_no_time),
        cmocka_unit_test(options_that_cannot_be),
    };

    tutti_log_set_sink("stderr", NULL, NULL);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
