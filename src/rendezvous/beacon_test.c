/* SPDX-License-Identifier: BSD-3-Clause
 *
 * beacon_test.c
 * Goal    whoever asks, before or after rank 0 has come, is told the port of its own job; two jobs do not
 *         see each other; nobody telling ends at the deadline, and a second rank 0 at once.
 * Method  threads ask, on this machine's own abstract sockets. */
#include "rendezvous/beacon.h"

#include "base/thread.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>
#include <tutti/private.h>

enum { ASKERS = 40, LONG_MS = 30000, SHORT_MS = 60 };

typedef struct asker {
    tti_thread   thread;
    const char  *name;
    tutti_status status;
    uint16_t     tcp_port;
    char         words[256];
} asker;

static void ask(void *arg)
{
    asker *a = arg;

    a->status = tti_beacon_ask(tti_port_system(), a->name, tti_deadline(tti_port_system(), LONG_MS, 0),
                               &a->tcp_port);
    if (a->status != TUTTI_OK)
        snprintf(a->words, sizeof a->words, "%s", tutti_last_error());
}

/* A name that no other run of this test has. */
static const char *job(char out[64], const char *word)
{
    snprintf(out, 64, "beacon-test-%ld-%s", (long)getpid(), word);
    return out;
}

static void everybody_is_told(void **state)
{
    static asker askers[ASKERS];
    tti_beacon  *a = NULL, *b = NULL;
    char         name_a[64], name_b[64];
    int          i;

    (void)state;
    job(name_a, "a");
    job(name_b, "b");
    for (i = 0; i < ASKERS; i++) {
        askers[i].name = i % 2 == 0 ? name_a : name_b;
        assert_int_equal(tti_thread_start(&askers[i].thread, "asker", ask, &askers[i]), TUTTI_OK);
        if (i == ASKERS / 2) /* half of them were here before */
            assert_int_equal(tti_beacon_open(tti_port_system(), name_a, 1111, &a), TUTTI_OK);
    }
    assert_int_equal(tti_beacon_open(tti_port_system(), name_b, 2222, &b), TUTTI_OK);
    for (i = 0; i < ASKERS; i++) {
        tti_thread_join(&askers[i].thread);
        if (askers[i].status != TUTTI_OK)
            fail_msg("%s", askers[i].words);
        assert_int_equal(askers[i].tcp_port, i % 2 == 0 ? 1111 : 2222);
    }
    tti_beacon_close(a);
    tti_beacon_close(b);
}

static void nobody_tells(void **state)
{
    tti_port *port = tti_port_system();
    char      name[64];
    uint16_t  tcp_port = 7;

    (void)state;
    assert_int_equal(tti_beacon_ask(port, job(name, "none"), tti_deadline(port, SHORT_MS, 0), &tcp_port),
                     TUTTI_E_NETWORK);
    assert_non_null(strstr(tutti_last_error(), "did not come to this host within"));
    assert_non_null(strstr(tutti_last_error(), "MASTER_ADDR"));
    assert_int_equal(tcp_port, 7);
}

static void one_rank_0_per_job(void **state)
{
    tti_beacon *first = NULL, *second = NULL;
    char        name[64];

    (void)state;
    assert_int_equal(tti_beacon_open(tti_port_system(), job(name, "one"), 1, &first), TUTTI_OK);
    assert_int_equal(tti_beacon_open(tti_port_system(), name, 2, &second), TUTTI_E_NETWORK);
    assert_non_null(strstr(tutti_last_error(), "another rank 0"));
    assert_null(second);
    tti_beacon_close(first);
    assert_int_equal(tti_beacon_open(tti_port_system(), name, 3, &second), TUTTI_OK); /* free again */
    tti_beacon_close(second);
    tti_beacon_close(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(everybody_is_told),
        cmocka_unit_test(nobody_tells),
        cmocka_unit_test(one_rank_0_per_job),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
