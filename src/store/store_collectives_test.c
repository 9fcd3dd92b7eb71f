/* SPDX-License-Identifier: BSD-3-Clause
 *
 * store_collectives_test.c
 * Goal    each collective over a store gives every rank what it promises, refuses a key that was used,
 *         and names who did not come.
 * Method  ranks are threads; once on each of a hash, a file and a tcp store, whose ranks are clients
 *         of their own. A rank's assertions are statuses that the main thread looks at. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>
#include <tutti/store_collectives.h>
#include "base/thread.h"

/* A call that gives something before it waits in vain must have the time to give it. */
enum { RANKS = 4, WAIT_MS = 30000, VAIN_MS = 500 };

static const char *const kinds[] = { "hash", "file", "tcp" };

static char         dir[40], path[64];
static tutti_store *stores[RANKS]; /* one handle for each rank */

static int open_files(void)
{
    int i;

    snprintf(dir, sizeof dir, "/tmp/tutti-coll-XXXXXX");
    if (mkdtemp(dir) == NULL)
        return -1;
    snprintf(path, sizeof path, "%s/log", dir);
    for (i = 0; i < RANKS; i++)
        if (tutti_file_store_open(path, RANKS, &stores[i]) != TUTTI_OK)
            return -1;
    return 0;
}

static int open_clients(void)
{
    tutti_tcp_store_options options = TUTTI_TCP_STORE_OPTIONS;
    int                     i;

    options.host = "127.0.0.1";
    options.is_master = true;
    for (i = 0; i < RANKS; i++) {
        if (tutti_tcp_store_open(&options, &stores[i]) != TUTTI_OK)
            return -1;
        options.is_master = false;
        options.port = tutti_tcp_store_port(stores[0]);
    }
    return 0;
}

static int setup(void **state)
{
    const char *kind = *state;
    int         i;

    if (strcmp(kind, "file") == 0)
        return open_files();
    if (strcmp(kind, "tcp") == 0)
        return open_clients();
    if (tutti_hash_store_open(&stores[0]) != TUTTI_OK)
        return -1;
    for (i = 1; i < RANKS; i++)
        stores[i] = tutti_store_retain(stores[0]);
    return 0;
}

static int teardown(void **state)
{
    int i;

    for (i = RANKS - 1; i >= 0; i--)
        tutti_store_close(stores[i]);
    return strcmp(*state, "file") == 0 ? rmdir(dir) : 0;
}

/* ---- ranks as threads ---- */

typedef struct rank_run {
    tti_thread               thread;
    tutti_store_collectives *c;
    int                      rank;
    tutti_status (*body)(struct rank_run *r);
    tutti_status st;
    bool         right; /* what came is what should have come */
    char         words[512];
    int64_t      number;
} rank_run;

static void run_rank(void *arg)
{
    rank_run *r = arg;

    r->st = r->body(r);
    snprintf(r->words, sizeof r->words, "%s", r->st == TUTTI_OK ? "" : tutti_last_error());
}

static void make_ranks(rank_run *ranks, tutti_status (*body)(rank_run *r))
{
    int i;

    memset(ranks, 0, RANKS * sizeof *ranks);
    for (i = 0; i < RANKS; i++) {
        ranks[i].rank = i;
        ranks[i].body = body;
        assert_int_equal(tutti_store_collectives_create(stores[i], i, RANKS, &ranks[i].c),
                         TUTTI_OK);
    }
}

/* Run body on every rank; all must come back with TUTTI_OK and the right things. */
static void on_all(tutti_status (*body)(rank_run *r))
{
    rank_run ranks[RANKS];
    int      i;

    make_ranks(ranks, body);
    for (i = 0; i < RANKS; i++)
        assert_int_equal(tti_thread_start(&ranks[i].thread, "rank", run_rank, &ranks[i]),
                         TUTTI_OK);
    for (i = 0; i < RANKS; i++)
        tti_thread_join(&ranks[i].thread);
    for (i = 0; i < RANKS; i++) {
        if (ranks[i].st != TUTTI_OK || !ranks[i].right)
            fail_msg("rank %d: %s, right: %d, %s", i, tutti_status_name(ranks[i].st),
                     ranks[i].right, ranks[i].words);
        tutti_store_collectives_free(ranks[i].c);
    }
}

/* What rank `from` sends: of a length of its own, 0 for rank 0. */
static size_t part_of(int from, char *out, size_t bytes)
{
    int i;

    memset(out, 0, bytes);
    for (i = 0; i < from * 3; i++)
        out[i] = (char)('a' + from);
    return (size_t)from * 3;
}

static bool is_part_of(int from, tutti_bytes *value)
{
    char         want[3 * RANKS + 1];
    const size_t size = part_of(from, want, sizeof want);
    const bool   same = value->size == size && memcmp(value->data, want, size) == 0;

    tutti_bytes_free(value);
    return same;
}

/* ---- each collective ---- */

static tutti_status broadcast(rank_run *r)
{
    tutti_bytes  value = { .data = NULL };
    char         part[3 * RANKS + 1];
    const size_t size = part_of(2, part, sizeof part);
    tutti_status st;

    if (r->rank == 2) {
        r->right = true;
        return tutti_store_collectives_broadcast_send(r->c, "b", part, size, WAIT_MS);
    }
    st = tutti_store_collectives_broadcast_recv(r->c, "b", WAIT_MS, &value);
    r->right = st == TUTTI_OK && is_part_of(2, &value);
    return st;
}

static void broadcast_reaches_all(void **state)
{
    (void)state;
    on_all(broadcast);
}

static bool are_parts_of_all(tutti_bytes values[RANKS])
{
    bool all = true;
    int  i;

    for (i = 0; i < RANKS; i++)
        all = is_part_of(i, &values[i]) && all;
    return all;
}

static tutti_status gather(rank_run *r)
{
    tutti_bytes  values[RANKS] = { { .data = NULL } };
    char         part[3 * RANKS + 1];
    const size_t size = part_of(r->rank, part, sizeof part);
    tutti_status st;

    if (r->rank != 1) {
        r->right = true;
        return tutti_store_collectives_gather_send(r->c, "g", part, size, 0);
    }
    st = tutti_store_collectives_gather_recv(r->c, "g", part, size, WAIT_MS, values);
    r->right = st == TUTTI_OK && are_parts_of_all(values);
    return st;
}

static void gather_sorts_by_rank(void **state)
{
    (void)state;
    on_all(gather);
}

static tutti_status scatter(rank_run *r)
{
    tutti_bytes  values[RANKS], value = { .data = NULL };
    char         parts[RANKS][3 * RANKS + 1];
    tutti_status st;
    int          i;

    if (r->rank == 0) {
        for (i = 0; i < RANKS; i++)
            values[i] = (tutti_bytes){ .data = parts[i],
                                       .size = part_of(i, parts[i], sizeof parts[i]) };
        r->right = true;
        return tutti_store_collectives_scatter_send(r->c, "s", values, WAIT_MS);
    }
    st = tutti_store_collectives_scatter_recv(r->c, "s", TUTTI_INFINITE, &value);
    r->right = st == TUTTI_OK && is_part_of(r->rank, &value);
    return st;
}

static void scatter_gives_each_its_own(void **state)
{
    (void)state;
    on_all(scatter);
}

static tutti_status all_gather(rank_run *r)
{
    tutti_bytes  values[RANKS] = { { .data = NULL } };
    char         part[3 * RANKS + 1];
    const size_t size = part_of(r->rank, part, sizeof part);
    tutti_status st = tutti_store_collectives_all_gather(r->c, "a", part, size, WAIT_MS, values);

    r->right = st == TUTTI_OK && are_parts_of_all(values);
    return st;
}

static void all_gather_gives_all_to_all(void **state)
{
    (void)state;
    on_all(all_gather);
}

static tutti_status all_sum(rank_run *r)
{
    int64_t      first = 0, second = 0;
    tutti_status st;

    st = tutti_store_collectives_all_sum(r->c, "sum/1", 10 - 7 * r->rank, WAIT_MS, &first);
    if (st == TUTTI_OK)
        st = tutti_store_collectives_all_sum(r->c, "sum/2", INT64_MAX / 2, WAIT_MS, &second);
    r->right = first == 40 - 7 * 6 && second == -4; /* 4 * (2^62 - 1), modulo 2^64 */
    return st;
}

static void all_sum_adds_up(void **state)
{
    (void)state;
    on_all(all_sum);
}

/* The last but one arrives without waiting: the others need it, it does not need them. */
static tutti_status barriers(rank_run *r)
{
    static _Atomic int came[3];
    char               key[24];
    tutti_status       st = TUTTI_OK;
    int                i;

    r->right = true;
    for (i = 0; i < 3 && st == TUTTI_OK; i++) {
        const bool blocking = r->rank != 2;

        snprintf(key, sizeof key, "gate/%d", i);
        atomic_fetch_add(&came[i], 1);
        st = tutti_store_collectives_barrier(r->c, key, WAIT_MS, blocking);
        if (blocking && atomic_load(&came[i]) % RANKS != 0)
            r->right = false;
    }
    return st;
}

static void barrier_holds_until_all_have_come(void **state)
{
    (void)state;
    on_all(barriers);
}

/* ---- what is refused, and who is named ---- */

static void says(const char *words)
{
    if (strstr(tutti_last_error(), words) == NULL)
        fail_msg("'%s' does not say '%s'", tutti_last_error(), words);
}

static void missing_ranks_are_named(void **state)
{
    tutti_bytes values[RANKS] = { { .data = NULL } };
    rank_run    r[RANKS];
    int64_t     sum = 7;
    int         i;

    (void)state;
    make_ranks(r, NULL);
    assert_int_equal(tutti_store_collectives_barrier(r[2].c, "b", WAIT_MS, false), TUTTI_OK);
    assert_int_equal(tutti_store_collectives_barrier(r[0].c, "b", VAIN_MS, true), TUTTI_E_TIMEOUT);
    says("barrier 'b' over a store: 2 of 4 ranks did not come within ");
    says("not arrived: ranks 1, 3");
    assert_int_equal(tutti_store_collectives_all_sum(r[3].c, "s", 1, VAIN_MS, &sum), TUTTI_E_TIMEOUT);
    says("all_sum 's' over a store: 3 of 4");
    assert_int_equal(sum, 7);
    assert_int_equal(tutti_store_collectives_gather_send(r[1].c, "g", "x", 1, 0), TUTTI_OK);
    assert_int_equal(tutti_store_collectives_gather_recv(r[0].c, "g", "y", 1, VAIN_MS, values),
                     TUTTI_E_TIMEOUT);
    says("not arrived: ranks 2, 3");
    assert_null(values[0].data);
    assert_int_equal(tutti_store_collectives_all_gather(r[1].c, "a", "x", 1, VAIN_MS, values),
                     TUTTI_E_TIMEOUT);
    says("not arrived: ranks 0, 2, 3");
    assert_int_equal(tutti_store_collectives_broadcast_recv(r[1].c, "v", 20, values),
                     TUTTI_E_TIMEOUT);
    says("broadcast 'v' over a store: nothing came for rank 1");
    assert_int_equal(tutti_store_collectives_scatter_recv(r[3].c, "w", 20, values),
                     TUTTI_E_TIMEOUT);
    says("nothing came for rank 3");
    /* Who was missing comes: the call of the others has failed, its own is complete. */
    assert_int_equal(tutti_store_collectives_barrier(r[1].c, "b", WAIT_MS, false), TUTTI_OK);
    assert_int_equal(tutti_store_collectives_barrier(r[3].c, "b", WAIT_MS, true), TUTTI_OK);
    for (i = 0; i < RANKS; i++)
        tutti_store_collectives_free(r[i].c);
}

static void long_lists_of_missing_ranks_are_cut(void **state)
{
    tutti_store_collectives *c = NULL;

    (void)state;
    assert_int_equal(tutti_store_collectives_create(stores[0], 99, 100, &c), TUTTI_OK);
    assert_int_equal(tutti_store_collectives_barrier(c, "b", VAIN_MS, true), TUTTI_E_TIMEOUT);
    says(" of 100 ranks did not come"); /* 99, or "at least" fewer, of a store that has no time to say all that */
    says("ranks 0, 1, 2, 3, 4, 5, 6, 7 and ");
    tutti_store_collectives_free(c);
}

/* By any two calls of an instance, also after a failure; another instance may use it. */
static void a_key_serves_once(void **state)
{
    tutti_store_collectives *c = NULL, *other = NULL;
    tutti_bytes              value = { .data = NULL };

    (void)state;
    assert_int_equal(tutti_store_collectives_create(stores[0], 0, 2, &c), TUTTI_OK);
    assert_int_equal(tutti_store_collectives_create(stores[1], 1, 2, &other), TUTTI_OK);
    assert_int_equal(tutti_store_collectives_broadcast_recv(c, "k", 10, &value), TUTTI_E_TIMEOUT);
    assert_int_equal(tutti_store_collectives_broadcast_recv(c, "k", 10, &value), TUTTI_E_STATE);
    says("have used the key 'k' before");
    assert_int_equal(tutti_store_collectives_barrier(c, "k", 10, false), TUTTI_E_STATE);
    assert_int_equal(tutti_store_collectives_broadcast_send(other, "k", "v", 1, WAIT_MS), TUTTI_OK);
    assert_int_equal(tutti_store_collectives_barrier(c, "gate", 0, false), TUTTI_OK);
    assert_int_equal(tutti_store_collectives_barrier(other, "gate", WAIT_MS, true), TUTTI_OK);
    tutti_store_collectives_free(c);
    /* A fresh instance does not know of it, but the store does. */
    assert_int_equal(tutti_store_collectives_create(stores[0], 0, 2, &c), TUTTI_OK);
    assert_int_equal(tutti_store_collectives_barrier(c, "gate", WAIT_MS, true), TUTTI_E_STATE);
    says("rank 0 is number 3 to come, of 2");
    tutti_store_collectives_free(c);
    tutti_store_collectives_free(other);
}

static void bad_arguments_are_refused(void **state)
{
    tutti_store_collectives *c = NULL;
    char                     key[TUTTI_STORE_KEY_MAX];

    (void)state;
    assert_int_equal(tutti_store_collectives_create(NULL, 0, 1, &c), TUTTI_E_ARG);
    assert_int_equal(tutti_store_collectives_create(stores[0], 0, 1, NULL), TUTTI_E_ARG);
    assert_int_equal(tutti_store_collectives_create(stores[0], -1, 1, &c), TUTTI_E_ARG);
    assert_int_equal(tutti_store_collectives_create(stores[0], 1, 1, &c), TUTTI_E_ARG);
    assert_int_equal(tutti_store_collectives_create(stores[0], 0, 0, &c), TUTTI_E_ARG);
    assert_null(c);
    assert_int_equal(tutti_store_collectives_create(stores[0], 0, 1, &c), TUTTI_OK);
    assert_int_equal(tutti_store_collectives_barrier(NULL, "k", 0, true), TUTTI_E_ARG);
    assert_int_equal(tutti_store_collectives_barrier(c, NULL, 0, true), TUTTI_E_ARG);
    assert_int_equal(tutti_store_collectives_barrier(c, "", 0, true), TUTTI_E_ARG);
    assert_int_equal(tutti_store_collectives_barrier(c, "k", -2, true), TUTTI_E_ARG);
    assert_non_null(strstr(tutti_last_error(), "next: 0 for 5 minutes, -1 for none"));
    assert_int_equal(tutti_store_collectives_all_sum(c, "k", 1, 0, NULL), TUTTI_E_ARG);
    assert_int_equal(tutti_store_collectives_broadcast_recv(c, "k", 0, NULL), TUTTI_E_ARG);
    assert_int_equal(tutti_store_collectives_scatter_send(c, "k", NULL, 0), TUTTI_E_ARG);
    memset(key, 'k', sizeof key);
    key[TUTTI_STORE_KEY_MAX - 15] = '\0';
    assert_int_equal(tutti_store_collectives_barrier(c, key, 0, true), TUTTI_E_ARG);
    key[TUTTI_STORE_KEY_MAX - 16] = '\0';
    assert_int_equal(tutti_store_collectives_barrier(c, key, 0, true), TUTTI_OK);
    /* What was refused used nothing up. */
    assert_int_equal(tutti_store_collectives_barrier(c, "k", 0, true), TUTTI_OK);
    tutti_store_collectives_free(c);
    tutti_store_collectives_free(NULL);
}

typedef struct one_test {
    const char *name;
    void (*run)(void **state);
} one_test;

#define ONE(test)   \
    {               \
#test, test \
    }

static const one_test all_tests[] = {
    ONE(broadcast_reaches_all),
    ONE(gather_sorts_by_rank),
    ONE(scatter_gives_each_its_own),
    ONE(all_gather_gives_all_to_all),
    ONE(all_sum_adds_up),
    ONE(barrier_holds_until_all_have_come),
    ONE(missing_ranks_are_named),
    ONE(long_lists_of_missing_ranks_are_cut),
    ONE(a_key_serves_once),
    ONE(bad_arguments_are_refused),
};

int main(void)
{
    enum { TESTS = sizeof all_tests / sizeof all_tests[0], KINDS = sizeof kinds / sizeof kinds[0] };
    static char       names[KINDS * TESTS][96];
    struct CMUnitTest tests[KINDS * TESTS];
    size_t            k, i;

    unsetenv("TUTTI_SECRET_FILE");
    for (k = 0; k < KINDS; k++)
        for (i = 0; i < TESTS; i++) {
            const size_t n = k * TESTS + i;

            snprintf(names[n], sizeof names[n], "%s: %s", kinds[k], all_tests[i].name);
            tests[n] = (struct CMUnitTest){ .name = names[n],
                                            .test_func = all_tests[i].run,
                                            .setup_func = setup,
                                            .teardown_func = teardown,
                                            .initial_state = (void *)(uintptr_t)kinds[k] };
        }
    return _cmocka_run_group_tests("collectives over stores", tests, KINDS * TESTS, NULL, NULL);
}
