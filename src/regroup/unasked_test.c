/* SPDX-License-Identifier: BSD-3-Clause
 *
 * unasked_test.c
 * Goal    that nobody more will ask is said where it is so, and not while one may still come; whether who ended had asked.
 * Method  a launcher's page and a store in this process, with what launchers and replacements would write there. */
#include "regroup/unasked.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>
#include <tutti/store.h>
#include "group/group.h"

enum { N_PROCESSES = 16, NODE = 0 };

typedef struct job {
    tutti_group  *world;
    tti_admission to;
    int64_t       n_asked;
    int64_t       admitted; /* the numbers up to this one have been let in */
    bool          asked;    /* what was said last of who ended */
} job;

static void begin(job *j)
{
    int fd = -1;

    memset(j, 0, sizeof *j);
    j->world = calloc(1, sizeof *j->world);
    assert_non_null(j->world);
    assert_int_equal(tti_bulletin_make(4, N_PROCESSES, &j->world->bulletin, &fd), TUTTI_OK);
    close(fd);
    assert_int_equal(tutti_hash_store_open(&j->to.folder), TUTTI_OK);
}

static void end(job *j)
{
    tutti_store_close(j->to.folder);
    tti_bulletin_close(j->world->bulletin);
    free(j->world);
}

/* A replacement ends, while so many run on its host, or are about to be started. */
static void one_ends(job *j, int local, int n_coming)
{
    tti_bulletin_post(j->world->bulletin, &(tti_ending){ .version = TTI_ENDING_VERSION, .rank = -1, .node = NODE, .local = local,
                                                         .exit_code = 1, .coming = n_coming + 1, .pid = 1000 + local, .host = "n1" });
}

static void one_asks(job *j, int local)
{
    char key[TTI_ADMISSION_KEY_MAX], place[32];

    assert_int_equal(tutti_store_add(j->to.folder, "asked", 1, &j->n_asked), TUTTI_OK);
    snprintf(key, sizeof key, "ask/%lld", (long long)j->n_asked);
    snprintf(place, sizeof place, "%d %d", NODE, local);
    assert_int_equal(tutti_store_set(j->to.folder, key, place, strlen(place) + 1), TUTTI_OK);
}

/* Whether that no other one comes is said to who waits for a number, of which. */
static int told_of_at(job *j, int64_t number)
{
    tti_unasked found = { .asked = false };

    if (!tti_unasked_find(j->world, &j->to, j->admitted, number, TTI_FOREVER, &found))
        return -1;
    j->asked = found.asked;
    return found.ending.local;
}

static int told_of(job *j)
{
    return told_of_at(j, j->n_asked + 1);
}

static void one_that_ended_is_told_of_once(void **state)
{
    job j;

    (void)state;
    begin(&j);
    assert_int_equal(told_of(&j), -1);
    one_ends(&j, 5, 0);
    assert_int_equal(told_of(&j), 5);
    assert_false(j.asked);
    assert_int_equal(told_of(&j), -1);
    one_ends(&j, 6, 0);
    tti_unasked_settle(j.world);
    assert_int_equal(told_of(&j), -1);
    end(&j);
}

/* It was a member when it ended: the world tells of that. */
static void who_was_let_in_is_not_told_of(void **state)
{
    job j;

    (void)state;
    begin(&j);
    one_asks(&j, 5);
    j.admitted = 1;
    one_asks(&j, 6);
    one_ends(&j, 5, 0);
    assert_int_equal(told_of(&j), -1);
    end(&j);
}

/* Nor is one that was let in by its first number, as it had asked anew before it knew. */
static void who_was_let_in_by_another_number_is_not_told_of(void **state)
{
    job j;

    (void)state;
    begin(&j);
    one_asks(&j, 5);
    one_asks(&j, 5);
    j.admitted = 1;
    one_ends(&j, 5, 0);
    assert_int_equal(told_of(&j), -1);
    end(&j);
}

static void who_has_asked_and_ended_is_told_of(void **state)
{
    job j;

    (void)state;
    begin(&j);
    one_asks(&j, 4);
    j.admitted = 1;
    one_asks(&j, 5);
    one_ends(&j, 5, 2); /* of which one is at work, and another one is about to be started */
    assert_int_equal(told_of(&j), -1);
    one_asks(&j, 6);
    one_ends(&j, 6, 1);
    assert_int_equal(told_of(&j), 5);
    assert_true(j.asked);
    assert_int_equal(told_of(&j), -1);
    end(&j);
}

/* Two run, of which one was to ask anew: the other one may still come. */
static void one_that_asks_twice_is_one(void **state)
{
    job j;

    (void)state;
    begin(&j);
    one_asks(&j, 4);
    one_asks(&j, 4);
    one_ends(&j, 5, 2);
    assert_int_equal(told_of(&j), -1);
    one_asks(&j, 6);
    assert_int_equal(told_of(&j), 5);
    end(&j);
}

/* The other one has asked just before it was counted, and just after it was looked for. */
static void one_that_has_come_meanwhile_is_not_missed(void **state)
{
    job j;

    (void)state;
    begin(&j);
    one_ends(&j, 5, 1);
    assert_int_equal(told_of_at(&j, 1), -1);
    one_asks(&j, 6);
    assert_int_equal(told_of_at(&j, 1), -1);
    assert_int_equal(told_of_at(&j, 2), 5);
    end(&j);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_that_ended_is_told_of_once),
        cmocka_unit_test(who_was_let_in_is_not_told_of),
        cmocka_unit_test(who_was_let_in_by_another_number_is_not_told_of),
        cmocka_unit_test(who_has_asked_and_ended_is_told_of),
        cmocka_unit_test(one_that_asks_twice_is_one),
        cmocka_unit_test(one_that_has_come_meanwhile_is_not_missed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
