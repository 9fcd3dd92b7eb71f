/* SPDX-License-Identifier: BSD-3-Clause
 *
 * absent_test.c
 * Goal    where a rank is stopped while the ranks of its host meet, it alone is named by those of another host as one that has not
 *         joined the world's first group, and not those that wait for it.
 * Method  ranks 1, 2 and 3 are threads on a store in memory, 1 and 3 on a host of their own. Rank 0 is a card and a socket that
 *         nobody reads. When rank 2 has said that it waits the others make the group, in a fifth of a second, or, on a board that says
 *         nothing any more when their time is up, or a little before, in longer. Then the socket is closed, which ends rank 2's waiting. */
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>
#include <tutti/private.h>
#include <tutti/store.h>
#include "backend/native/store_board.h"
#include "coll/coll.h"
#include "transport/card.h"
#include "transport/here.h"
#include "transport/messenger.h"

enum { RANKS = 4, STOPPED = 0, WAITS = 2, JOIN = 2 /* ranks 1 and 3 */, LIMIT_MS = 30000, SHORT_MS = 200, LONG_MS = 1500 /* some looks */ };

typedef struct member {
    int          rank;
    tutti_store *store;
    bool         patient; /* it looks around before its time is up */
    bool         silent; /* from its deadline on the board says nothing to it */
    bool         at_once; /* or from when it has said who is here */
    tutti_status st; /* what joining came to */
    char         words[2048];
} member;

static int64_t in_ms(int64_t ms)
{
    return tti_deadline(tti_port_system(), ms, 0);
}

static tti_mesh_config config_of(int rank, const tti_board *board)
{
    return (tti_mesh_config){ .port = tti_port_system(), .board = board, .rank = rank, .n_ranks = RANKS,
                              .listen_host = "127.0.0.1", .as_host = 1 + (uint32_t)rank % 2, .deadline_ns = in_ms(LIMIT_MS) };
}

/* Until rank 2 waits, and nobody else does: else false. */
static bool await_mark(const tti_board *board)
{
    static const int ranks[RANKS] = { 0, 1, 2, 3 };
    bool             here[RANKS];
    char             mark;

    return board->get(board->context, "here/2", &mark, sizeof mark, in_ms(LIMIT_MS)) == TUTTI_OK &&
           tti_here_find(board, ranks, RANKS, in_ms(LIMIT_MS), here) && here[WAITS] && !here[STOPPED] && !here[1] &&
           !here[3];
}

static _Thread_local int64_t silent_from_ns;
static _Thread_local bool    silent_at_once;
static tutti_status        (*said)(void *context, const char *key, int64_t deadline_ns, bool *there_out);

static tutti_status has_in_time(void *context, const char *key, int64_t deadline_ns, bool *there_out)
{
    if (tti_port_now(tti_port_system()) >= silent_from_ns)
        return tti_fail(TUTTI_E_TIMEOUT, "the board does not say whether '%s' is there", key);
    if (silent_at_once && strcmp(key, "here/2") == 0) /* the last question of a look */
        silent_from_ns = 0;
    return said(context, key, deadline_ns, there_out);
}

static _Atomic int n_ready;

/* Until the other one that joins is here, too: who is late for the group by more than it has time for is missed. */
static bool begin_together(void)
{
    const int64_t until_ns = in_ms(LIMIT_MS);

    atomic_fetch_add(&n_ready, 1);
    while (atomic_load(&n_ready) < JOIN && tti_port_now(tti_port_system()) < until_ns)
        sched_yield();
    return atomic_load(&n_ready) >= JOIN;
}

static tutti_status make_group(member *m, tti_mesh *mesh, const tti_board *board)
{
    static const int ranks[RANKS] = { 0, 1, 2, 3 };
    tti_messenger   *messenger = NULL;
    tti_coll        *coll = NULL;
    tutti_status     st = tti_messenger_open(mesh, &messenger);

    if (st == TUTTI_OK && !await_mark(board))
        st = tti_fail(TUTTI_E_STATE, "it is not rank 2 alone that says that it waits");
    if (st == TUTTI_OK && !begin_together())
        st = tti_fail(TUTTI_E_STATE, "the other one that joins does not come");
    if (st == TUTTI_OK) {
        tti_board             hasty = *board;
        const tti_coll_config config = { .mesh = mesh, .messenger = messenger, .founds = true, .rank = m->rank, .n_ranks = RANKS,
                                         .ranks = ranks, .name = "0", .board = m->silent ? &hasty : board,
                                         .deadline_ns = in_ms(m->patient ? LONG_MS : SHORT_MS) };

        hasty.has = has_in_time;
        hasty.has_all = NULL;
        silent_from_ns = config.deadline_ns;
        silent_at_once = m->at_once;
        st = tti_coll_open(&config, &coll);
    }
    snprintf(m->words, sizeof m->words, "%s", st == TUTTI_OK ? "" : tutti_last_error());
    tti_coll_close(coll);
    tti_messenger_close(messenger);
    return st;
}

static void *join(void *arg)
{
    member               *m = arg;
    const tti_board       board = tti_store_board(m->store);
    const tti_mesh_config config = config_of(m->rank, &board);
    tti_mesh             *mesh = NULL;

    m->st = tti_mesh_open(&config, &mesh);
    if (m->st == TUTTI_OK)
        m->st = make_group(m, mesh, &board);
    else
        snprintf(m->words, sizeof m->words, "%s", tutti_last_error());
    tti_mesh_close(mesh);
    return NULL;
}

/* Its card, and a socket where its host's ranks may come. */
static tti_handle stop_rank_0(tutti_store *store)
{
    const tti_board       board = tti_store_board(store);
    const tti_mesh_config config = config_of(STOPPED, &board);
    tti_port             *port = tti_port_system();
    tti_addr              at = { .family = TTI_ADDR_LOCAL }, bound;
    tti_handle            listener = TTI_NO_HANDLE;
    tti_card              card;

    tti_card_begin(&card, &config);
    card.family = 4;
    card.stripes = 1;
    memcpy(at.name, card.local_name, sizeof at.name);
    assert_int_equal(port->ops->listen(port, &at, 4, &bound, &listener), 0);
    assert_int_equal(board.put(board.context, "card/0", &card, sizeof card, in_ms(LIMIT_MS)), TUTTI_OK);
    return listener;
}

static void expect_words(const member *m, const char *words)
{
    if (strstr(m->words, words) == NULL)
        fail_msg("rank %d: '%s' is not in: %s", m->rank, words, m->words);
}

static void run(bool patient, bool silent, bool at_once)
{
    member       members[RANKS];
    pthread_t    threads[RANKS];
    tutti_store *store = NULL;
    tti_handle   listener;
    int          rank;

    assert_int_equal(tutti_hash_store_open(&store), TUTTI_OK);
    said = tti_store_board(store).has;
    atomic_store(&n_ready, 0);
    listener = stop_rank_0(store);
    for (rank = 1; rank < RANKS; rank++) {
        members[rank] = (member){ .rank = rank, .store = store, .patient = patient, .silent = silent, .at_once = at_once };
        assert_int_equal(pthread_create(&threads[rank], NULL, join, &members[rank]), 0);
    }
    pthread_join(threads[1], NULL);
    pthread_join(threads[3], NULL);
    tti_port_system()->ops->close(tti_port_system(), listener);
    pthread_join(threads[WAITS], NULL);
    tutti_store_close(store);
    for (rank = 1; rank < RANKS; rank += 2) {
        assert_int_equal(members[rank].st, TUTTI_E_TIMEOUT);
        expect_words(&members[rank], "not joined: rank 0\n  here, and waiting for others of their host: rank 2\n");
    }
    assert_int_equal(members[WAITS].st, TUTTI_E_PEER);
    expect_words(&members[WAITS], "the first of this host, has ended or given up");
}

static void who_waits_for_a_stopped_one_is_told_apart(void **state)
{
    (void)state;
    run(false, false, false);
    run(true, false, false);
}

/* As it was at the latest look: a board that many ask at once, on a machine that is busy, may be too late with its answers. */
static void what_was_known_before_time_was_up_counts(void **state)
{
    (void)state;
    run(true, true, false);
}

/* Also where looks that the board says nothing to come between. */
static void what_was_known_is_not_forgotten(void **state)
{
    (void)state;
    run(true, true, true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_waits_for_a_stopped_one_is_told_apart),
        cmocka_unit_test(what_was_known_before_time_was_up_counts),
        cmocka_unit_test(what_was_known_is_not_forgotten),
    };

    return cmocka_run_group_tests_name("absent", tests, NULL, NULL);
}
