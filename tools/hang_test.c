/* SPDX-License-Identifier: BSD-3-Clause
 *
 * hang_test.c
 * Goal    from recorders alone `tutti doctor hang` finds who is behind a hang, of any kind, and does not take fright at
 *         files that are none; `tutti trace` puts them on one time line.
 * Method  recorders that were made up, as files; the built command. Jobs that really hang: tests/hangs. */
#include <jansson.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>
#include "made_recorder.h"

#define NOW_NS INT64_C(1000000000000)
#define S_NS   INT64_C(1000000000)

static char text[65536]; /* of the last command, both streams */
static char folder[] = "/tmp/tutti-hang-XXXXXX";
static made_recorder made[8];

static int run(const char *args)
{
    char command[1024];
    FILE *out;
    size_t n;
    int status;

    snprintf(command, sizeof command, "%s/tutti %s 2>&1", TUTTI_BIN_DIR, args);
    out = popen(command, "r");
    assert_non_null(out);
    n = fread(text, 1, sizeof text - 1, out);
    text[n] = '\0';
    status = pclose(out);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status); /* a shell may become the command */
}

static void says(const char *words)
{
    if (strstr(text, words) == NULL)
        fail_msg("'%s' is not in: %s", words, text);
}

static void says_nothing_of(const char *words)
{
    if (strstr(text, words) != NULL)
        fail_msg("'%s' is in: %s", words, text);
}

static void expect(const char *args, int code, const char *words)
{
    const int got = run(args);

    if (got != code)
        fail_msg("%s: code %d, not %d: %s", args, got, code, text);
    says(words);
}

/* ---- making ------------------------------------------------------------------------------------ */

/* A world of n ranks on one host, each of which has done all_reduce #1. */
static void begin_world(int n)
{
    const made_op first = { TUTTI_RECORD_ALL_REDUCE, TUTTI_RECORD_DONE, 0, 1, -1, 0, 10, NOW_NS - 60 * S_NS, NOW_NS - 59 * S_NS };
    int rank;

    for (rank = 0; rank < n; rank++) {
        made_begin(&made[rank], rank, n, "n1", NOW_NS, 0);
        made_group(&made[rank], 0, "world", NULL, n);
        made_add(&made[rank], &first);
    }
}

/* An operation that has not ended. */
static void add_open(int rank, tutti_record_kind kind, int place, uint64_t seq, int peer, int tag, int64_t count)
{
    made_add(&made[rank], &(made_op){ kind, TUTTI_RECORD_STARTED, place, seq, peer, tag, count, NOW_NS - (30 + rank) * S_NS, 0 });
}

/* Write those of a world's first n ranks, and look at them. */
static void look(int n, int code, const char *words)
{
    char name[16];
    int rank;

    for (rank = 0; rank < n; rank++) {
        snprintf(name, sizeof name, "%d.rec", rank);
        made_write(&made[rank], name);
    }
    expect("doctor hang --dumps *.rec", code, words);
    while (--rank >= 0) {
        snprintf(name, sizeof name, "%d.rec", rank);
        unlink(name);
    }
}

/* ---- tests ------------------------------------------------------------------------------------- */

static void nobody_waits(void **state)
{
    (void)state;
    begin_world(3);
    look(3, 0, "job 'made': 3 ranks, 3 read from files; nobody waits in an operation");
    made_add(&made[0], &(made_op){ TUTTI_RECORD_BARRIER, TUTTI_RECORD_STARTED, 0, 2, -1, 0, 0, NOW_NS - S_NS, 0 });
    look(3, 0, "nobody waits"); /* not that long */
}

static void who_has_not_come_is_named(void **state)
{
    (void)state;
    begin_world(4);
    add_open(0, TUTTI_RECORD_ALL_REDUCE, 0, 2, -1, 0, 1000);
    add_open(1, TUTTI_RECORD_ALL_REDUCE, 0, 2, -1, 0, 1000);
    add_open(3, TUTTI_RECORD_ALL_REDUCE, 0, 2, -1, 0, 1000);
    look(4, 1, "rank 2 (pid 1002, n1) has not come");
    assert_int_equal(strncmp(text, "rank 2", 6), 0); /* it is the first that is read */
    says("3 wait in an operation, the longest for 33.0 s");
    says("ranks 0, 1, 3 wait for it, rank 3 since 33.0 s in all_reduce #2 (sum, 1000 f32) on group 'world'");
    says("its last operation: all_reduce #1 (sum, 10 f32) on group 'world', done 59.0 s ago");
}

/* Others make a group, which is in the recorder from then on; who has not come to that has no such group. */
static void a_group_that_is_made_waits_for_its_members(void **state)
{
    static const int ranks[] = { 0, 1, 2 };
    int rank;

    (void)state;
    begin_world(4);
    for (rank = 1; rank < 3; rank++) {
        made_group(&made[rank], 1, "7", ranks, 3);
        add_open(rank, TUTTI_RECORD_NEW_GROUP, 1, 0, -1, 0, 0);
    }
    look(4, 1, "rank 0 (pid 1000, n1) has not come");
    says("ranks 1, 2 wait for it, rank 2 since 32.0 s in new_group on group '7'");
    says_nothing_of("rank 3 (pid 1003");
}

/* A call that is made of others is told of itself, also when it is over. */
static void who_is_missing_from_a_grow_is_named(void **state)
{
    int rank;

    (void)state;
    begin_world(4);
    for (rank = 0; rank < 4; rank++) {
        if (rank == 2)
            continue;
        add_open(rank, TUTTI_RECORD_GROW_GROUP, 0, 0, -1, 0, 1);
        add_open(rank, TUTTI_RECORD_ALL_REDUCE, 0, 2, -1, 0, 5);
    }
    made_add(&made[2], &(made_op){ TUTTI_RECORD_GROW_GROUP, TUTTI_RECORD_DONE, 0, 0, -1, 0, 0, NOW_NS - 50 * S_NS, NOW_NS - 48 * S_NS });
    made_add(&made[2], &(made_op){ TUTTI_RECORD_BROADCAST, TUTTI_RECORD_DONE, 0, 0, 0, 0, 9, NOW_NS - 49 * S_NS, NOW_NS - 48 * S_NS });
    look(4, 1, "rank 2 (pid 1002, n1) has not come");
    assert_int_equal(strncmp(text, "rank 2", 6), 0); /* it is the first that is read */
    says("ranks 0, 1, 3 wait for it, rank 3 since 33.0 s in grow_group (1 newcomer) on group 'world'");
    says("its last operation: grow_group (those that have asked) on group 'world', done 48.0 s ago");
    says_nothing_of("broadcast");
    says_nothing_of("all_reduce #2");
}

/* All members are there: it is for others to come. */
static void newcomers_that_are_awaited_are_told_of(void **state)
{
    int rank;

    (void)state;
    begin_world(3);
    for (rank = 0; rank < 3; rank++)
        add_open(rank, TUTTI_RECORD_GROW_GROUP, 0, 0, -1, 0, 2);
    add_open(1, TUTTI_RECORD_BROADCAST, 0, 3, 0, 0, 500);
    look(3, 1, "nobody is missing: all members are in it, and wait for newcomers");
    says("in grow_group (2 newcomers) on group 'world', since 30.0 s");
    begin_world(2);
    for (rank = 0; rank < 2; rank++)
        add_open(rank, TUTTI_RECORD_RECONFIGURE, 0, 0, -1, 0, 3);
    look(2, 1, "no member is missing: they wait for processes that are not in this group");
    says("in reconfigure (to be 3) on group 'world'");
}

/* Rank 1 is dead, and the others go on without it: that it is missing is no news, that rank 3 is is. */
static void who_is_missing_from_a_shrink_is_named(void **state)
{
    static const int ranks[] = { 0, 1, 2 };
    int rank;

    (void)state;
    begin_world(4);
    made[1].head.saved_state = 'X';
    add_open(0, TUTTI_RECORD_SHRINK_GROUP, 0, 0, -1, 0, 0);
    add_open(2, TUTTI_RECORD_SHRINK_GROUP, 0, 0, -1, 0, 0);
    look(4, 1, "rank 3 (pid 1003, n1) has not come\n  ranks 0, 2 wait for it, rank 2 since 32.0 s in shrink_group on group 'world'");
    assert_int_equal(strncmp(text, "rank 3", 6), 0); /* it is the first that is read */
    says("rank 1 (pid 1001, n1) is dead\n  nobody waits for it");
    begin_world(4); /* the one that is left out lives */
    add_open(0, TUTTI_RECORD_SHRINK_GROUP, 0, 0, 1, 0, 1);
    add_open(2, TUTTI_RECORD_SHRINK_GROUP, 0, 0, 1, 0, 1);
    look(4, 1, "rank 3 (pid 1003, n1) has not come\n  ranks 0, 2 wait for it, rank 2 since 32.0 s in shrink_group (without rank 1)");
    says_nothing_of("rank 1 (pid 1001");
    add_open(3, TUTTI_RECORD_SHRINK_GROUP, 0, 0, 1, 0, 1);
    look(4, 1, "nobody is missing: all that live, and are to go on, are in it");
    begin_world(4);
    add_open(0, TUTTI_RECORD_SHRINK_GROUP, 0, 0, -1, 0, 2);
    add_open(2, TUTTI_RECORD_SHRINK_GROUP, 0, 0, -1, 0, 2);
    look(4, 1, "nobody is missing: all that live, and are to go on, are in it");
    says("in shrink_group (without 2 ranks) on group 'world'");
    begin_world(4); /* the one that is left out calls it, too */
    for (rank = 0; rank < 3; rank++)
        add_open(rank, TUTTI_RECORD_SHRINK_GROUP, 0, 0, rank == 1 ? 3 : 1, 0, 1);
    look(4, 1, "rank 3 (pid 1003, n1) has not come");
    begin_world(4); /* of a group that rank 3 is not in */
    for (rank = 0; rank < 3; rank++)
        made_group(&made[rank], 1, "7", ranks, 3);
    add_open(0, TUTTI_RECORD_SHRINK_GROUP, 1, 0, -1, 0, 2);
    look(4, 1, "nobody is missing: all that live, and are to go on, are in it");
}

/* Whom a list of several leaves out is not waited for, and named; who is to go on is. */
static void a_list_of_several_is_known(void **state)
{
    static const int ranks[] = { 0, 2, 3 };
    int rank;

    (void)state;
    begin_world(5);
    for (rank = 0; rank < 4; rank += 2) {
        add_open(rank, TUTTI_RECORD_SHRINK_GROUP, 0, 0, -1, 0, 2);
        made_left_out(&made[rank], 1 << 1 | 1 << 4);
    }
    look(5, 1, "rank 3 (pid 1003, n1) has not come\n  ranks 0, 2 wait for it, rank 2 since 32.0 s in shrink_group (without ranks 1, 4)");
    assert_int_equal(strncmp(text, "rank 3", 6), 0); /* it is the first that is read */
    says_nothing_of("rank 1 (pid 1001");
    says_nothing_of("rank 4 (pid 1004");
    add_open(3, TUTTI_RECORD_SHRINK_GROUP, 0, 0, -1, 0, 2);
    made_left_out(&made[3], 1 << 1 | 1 << 4);
    look(5, 1, "nobody is missing: all that live, and are to go on, are in it");
    begin_world(4); /* of a group that rank 1 is not in: bits are for members of that */
    for (rank = 0; rank < 4; rank++)
        if (rank != 1)
            made_group(&made[rank], 1, "7", ranks, 3);
    add_open(0, TUTTI_RECORD_SHRINK_GROUP, 1, 0, -1, 0, 1);
    made_left_out(&made[0], 1 << 1);
    look(4, 1, "rank 3 (pid 1003, n1) has not come");
    says("in shrink_group (without rank 2) on group '7'");
    says_nothing_of("rank 2 (pid 1002, n1) has not come");
}

/* By colours: all tell each other theirs first, in a gather that nobody has called. */
static void who_is_missing_from_a_split_by_colour_is_named(void **state)
{
    int rank;

    (void)state;
    begin_world(3);
    for (rank = 0; rank < 3; rank += 2) {
        add_open(rank, TUTTI_RECORD_SPLIT_GROUP, 0, 0, -1, 0, 0);
        add_open(rank, TUTTI_RECORD_ALL_GATHER, 0, 2, -1, 0, 1);
    }
    look(3, 1, "rank 1 (pid 1001, n1) has not come\n  ranks 0, 2 wait for it, rank 2 since 32.0 s in split_group on group 'world'");
    says_nothing_of("all_gather");
}

static void who_was_not_read_is_named(void **state)
{
    (void)state;
    begin_world(4);
    add_open(0, TUTTI_RECORD_BARRIER, 0, 2, -1, 0, 0);
    add_open(1, TUTTI_RECORD_BARRIER, 0, 2, -1, 0, 0);
    add_open(2, TUTTI_RECORD_BARRIER, 0, 2, -1, 0, 0);
    look(3, 1, "rank 3 is not to be seen here");
    says("ranks 0-2 wait for it");
    says("next: run tutti doctor hang on its host, or bring its dump");
    says("\n      3         -                is not to be seen here"); /* no number of a process */
}

/* Of rank 0, on another host, nothing is known but that it is waited for; rank 1, which has been read, is behind it. */
static void what_was_read_comes_before_what_was_not(void **state)
{
    int rank;

    (void)state;
    begin_world(4);
    add_open(2, TUTTI_RECORD_BARRIER, 0, 2, -1, 0, 0);
    add_open(3, TUTTI_RECORD_BARRIER, 0, 2, -1, 0, 0);
    for (rank = 1; rank < 4; rank++) {
        char name[16];

        snprintf(name, sizeof name, "%d.rec", rank);
        made_write(&made[rank], name);
    }
    expect("doctor hang --dumps *.rec", 1, "\nrank 0 is not to be seen here\n  ranks 2, 3 wait for it");
    assert_int_equal(strncmp(text, "rank 1 (pid 1001, n1) has not come", 34), 0);
    assert_int_equal(system("rm *.rec"), 0);
}

static void different_calls_are_shown(void **state)
{
    (void)state;
    begin_world(2);
    add_open(0, TUTTI_RECORD_ALL_REDUCE, 0, 2, -1, 0, 1000);
    add_open(1, TUTTI_RECORD_ALL_REDUCE, 0, 2, -1, 0, 2000);
    look(2, 1, "ranks 0, 1 wait for each other");
    assert_int_equal(strncmp(text, "ranks 0, 1", 10), 0); /* it is the first that is read */
    says("rank 0 (pid 1000, n1) waits for rank 1, since 30.0 s, in all_reduce #2 (sum, 1000 f32)");
    says("rank 1 (pid 1001, n1) waits for rank 0, since 31.0 s, in all_reduce #2 (sum, 2000 f32)");
    says("next: all members of a group have to call the same");
}

static void a_call_and_a_message_of_one_group_are_told(void **state)
{
    (void)state;
    begin_world(2);
    add_open(0, TUTTI_RECORD_SEND, 0, 1, 1, 5, 5000000);
    add_open(1, TUTTI_RECORD_BARRIER, 0, 1, -1, 0, 0);
    look(2, 1, "ranks 0, 1 wait for each other");
    says("rank 0 (pid 1000, n1) waits for rank 1, since 30.0 s, in send to rank 1, tag 5");
    says("next: all members have to make the calls and messages of a group in one order");
}

static void circles_over_groups_are_found(void **state)
{
    static const int pairs[3][2] = { { 0, 1 }, { 1, 2 }, { 0, 2 } };
    static const char *const names[] = { "a", "b", "c" };
    int rank, g;

    (void)state;
    begin_world(4);
    for (rank = 0; rank < 3; rank++)
        for (g = 0; g < 3; g++)
            if (pairs[g][0] == rank || pairs[g][1] == rank)
                made_group(&made[rank], 1 + g, names[g], pairs[g], 2);
    add_open(0, TUTTI_RECORD_ALL_REDUCE, 1, 1, -1, 0, 4); /* a: waits for 1 */
    add_open(1, TUTTI_RECORD_ALL_REDUCE, 2, 1, -1, 0, 4); /* b: waits for 2 */
    add_open(2, TUTTI_RECORD_ALL_REDUCE, 3, 1, -1, 0, 4); /* c: waits for 0 */
    add_open(3, TUTTI_RECORD_BARRIER, 0, 2, -1, 0, 0);
    look(4, 1, "rank 0 (pid 1000, n1) waits for rank 1, since 30.0 s, in all_reduce #1 (sum, 4 f32) on group 'a'");
    says("rank 1 (pid 1001, n1) waits for rank 2, since 31.0 s, in all_reduce #1 (sum, 4 f32) on group 'b'");
    says("rank 2 (pid 1002, n1) waits for rank 0, since 32.0 s, in all_reduce #1 (sum, 4 f32) on group 'c'");
    says("and rank 3 with them");
    says("next: all ranks have to call operations of several groups in one order");
}

static void messages_are_looked_at_from_both_ends(void **state)
{
    (void)state;
    begin_world(3);
    add_open(0, TUTTI_RECORD_SEND, 0, 1, 1, 7, 1 << 20);
    look(3, 1, "rank 1 (pid 1001, n1) has not come");
    says("rank 0 waits for it, rank 0 since 30.0 s in send to rank 1, tag 7 (1048576 f32) on group 'world'");
    says("next: rank 1 has to post the receive: recv from rank 0, tag 7; or rank 0 sends with tutti_isend()");
    begin_world(3);
    add_open(0, TUTTI_RECORD_SEND, 0, 1, 1, 7, 4);
    add_open(1, TUTTI_RECORD_RECV, 0, 1, 0, 8, 4); /* another tag */
    look(3, 1, "rank 1 (pid 1001, n1) waits for rank 0, since 31.0 s, in recv from rank 0, tag 8 (4 f32)");
    begin_world(3);
    add_open(0, TUTTI_RECORD_SEND, 0, 1, 1, 7, 4);
    add_open(1, TUTTI_RECORD_RECV, 0, 1, 0, 7, 4);
    look(3, 1, "nobody is missing: all members are in it");
}

static void circles_of_messages_say_who_has_to_turn(void **state)
{
    (void)state;
    begin_world(2);
    add_open(0, TUTTI_RECORD_RECV, 0, 1, 1, 1, 4);
    add_open(1, TUTTI_RECORD_RECV, 0, 1, 0, 1, 4);
    look(2, 1, "ranks 0, 1 wait for each other");
    says("next: all of them receive: one has to send before it receives");
    begin_world(2);
    add_open(0, TUTTI_RECORD_SEND, 0, 1, 1, 1, 1 << 20);
    add_open(1, TUTTI_RECORD_SEND, 0, 1, 0, 1, 1 << 20);
    look(2, 1, "next: all of them send: one has to receive before it sends, or to send with tutti_isend()");
    begin_world(2);
    add_open(0, TUTTI_RECORD_SEND, 0, 1, 1, 7, 4);
    add_open(1, TUTTI_RECORD_RECV, 0, 1, 0, 8, 4);
    look(2, 1, "next: see whether both ends of each message have the same tag");
}

/* Rank 1 was killed in its barrier: it waits for nobody, and comes before rank 0, which others wait for. */
static void the_dead_wait_for_nobody(void **state)
{
    (void)state;
    begin_world(2);
    add_open(1, TUTTI_RECORD_BARRIER, 0, 2, -1, 0, 0);
    made[1].head.saved_state = 'X';
    look(2, 1, "rank 1 (pid 1001, n1) is dead\n  nobody waits for it in an operation\n  it ended in barrier #2 on group 'world'");
    assert_int_equal(strncmp(text, "rank 1 (", 8), 0); /* it is the first that is read */
    says_nothing_of("has not come");
    begin_world(4);
    add_open(1, TUTTI_RECORD_BARRIER, 0, 2, -1, 0, 0);
    add_open(2, TUTTI_RECORD_BARRIER, 0, 2, -1, 0, 0);
    add_open(3, TUTTI_RECORD_BARRIER, 0, 2, -1, 0, 0);
    made[1].head.saved_state = 'X';
    look(4, 1, "rank 0 (pid 1000, n1) has not come\n  ranks 2, 3 wait for it");
    assert_int_equal(strncmp(text, "rank 1 (pid 1001, n1) is dead", 29), 0);
}

/* Ranks 0 and 2 failed in all_reduce #2, and wrote their files then; rank 1 was late, and its launcher wrote its. */
static void what_failed_was_under_way_until_then(void **state)
{
    int rank;

    (void)state;
    begin_world(3);
    for (rank = 0; rank < 3; rank += 2) {
        made_add(&made[rank], &(made_op){ TUTTI_RECORD_ALL_REDUCE, TUTTI_RECORD_FAILED, 0, 2, -1, 0, 1000, NOW_NS - S_NS, NOW_NS - 1000 });
        made[rank].head.saved_for = 2;
    }
    made[1].head.saved_state = 'S';
    look(3, 1, "rank 1 (pid 1001, n1) has not come\n  ranks 0, 2 wait for it, rank 0 since 1.0 s in all_reduce #2");
    made[1].head.saved_state = 'T';
    look(3, 1, "rank 1 (pid 1001, n1) is stopped by a signal\n  ranks 0, 2 wait for it");
    for (rank = 0; rank < 3; rank += 2)
        made[rank].head.saved_for = 0; /* of a look by hand, a while after: nobody waits any more */
    made[1].head.saved_state = 'S';
    look(3, 0, "nobody waits in an operation");
}

/* An operation of rank 1 that failed at ended_ns, and had its file written then. */
static void add_failed(int rank, tutti_record_kind kind, uint64_t seq, int64_t began_ns, int64_t ended_ns)
{
    made_add(&made[rank], &(made_op){ kind, TUTTI_RECORD_FAILED, 0, seq, -1, 0, 7, began_ns, ended_ns });
    made[rank].head.saved_for = 2;
    made[rank].head.saved_ns = ended_ns;
    made[rank].head.saved_ticks = (uint64_t)ended_ns;
}

/* Each file is of the moment at which its rank failed: rank 1 came to it when the others had failed in it. */
static void who_came_too_late_is_named(void **state)
{
    static const tutti_record_kind kinds[] = { TUTTI_RECORD_ALL_REDUCE, TUTTI_RECORD_GROW_GROUP };
    size_t i;

    (void)state;
    for (i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        begin_world(3);
        add_failed(0, kinds[i], i == 0 ? 2 : 0, NOW_NS - 10 * S_NS, NOW_NS - 5 * S_NS);
        add_failed(2, kinds[i], i == 0 ? 2 : 0, NOW_NS - 9 * S_NS, NOW_NS - 5 * S_NS);
        add_failed(1, kinds[i], i == 0 ? 2 : 0, NOW_NS - 3 * S_NS, NOW_NS - 3 * S_NS + 1000);
        look(3, 1, "rank 1 (pid 1001, n1) came too late\n  ranks 0, 2 wait for it, rank 0 since 5.0 s in ");
        says(i == 0 ? "it came to all_reduce #2 (sum, 7 f32) on group 'world' 2.0 s after rank 0 had given up"
                    : "it came to grow_group (7 newcomers) on group 'world' 2.0 s after rank 0 had given up");
        says("its last operation: all_reduce #1");
        says("next: see what it did before that");
    }
    begin_world(3); /* hosts whose clocks do not agree that well */
    add_failed(0, TUTTI_RECORD_ALL_REDUCE, 2, NOW_NS - 10 * S_NS, NOW_NS - 5 * S_NS);
    add_failed(2, TUTTI_RECORD_ALL_REDUCE, 2, NOW_NS - 9 * S_NS, NOW_NS - 5 * S_NS);
    add_failed(1, TUTTI_RECORD_ALL_REDUCE, 2, NOW_NS - 5 * S_NS + S_NS / 2, NOW_NS - 4 * S_NS);
    snprintf(made[1].head.host, sizeof made[1].head.host, "n2");
    look(3, 1, "nobody is missing: all members are in it, and what they send moves slowly");
}

static void windows_wait_for_signals_only(void **state)
{
    (void)state;
    begin_world(3);
    add_open(0, TUTTI_RECORD_WAIT_SIGNAL, 0, 0, 1, 0, 0);
    add_open(2, TUTTI_RECORD_PUT, 0, 0, 1, 0, 8);
    look(3, 1, "rank 1 (pid 1001, n1) has not come");
    says("rank 0 waits for it, rank 0 since 30.0 s in");
    begin_world(2); /* a barrier without a number: is the other in one? */
    add_open(0, TUTTI_RECORD_BARRIER, 0, 0, -1, 0, 0);
    look(2, 1, "rank 1 (pid 1001, n1) has not come");
}

static void a_root_that_is_missing_is_enough(void **state)
{
    (void)state;
    begin_world(3);
    add_open(1, TUTTI_RECORD_BROADCAST, 0, 2, 0, 0, 100);
    look(3, 1, "rank 0 (pid 1000, n1) has not come");
    says("in broadcast #2, root rank 0 (100 f32)");
    if (strstr(text, "rank 2 (pid 1002, n1) has not come") != NULL)
        fail_msg("rank 2 is none of it: %s", text);
}

static void who_has_left_or_failed_is_named(void **state)
{
    (void)state;
    begin_world(3);
    made[2].head.use = TUTTI_RECORDER_LEFT;
    add_open(0, TUTTI_RECORD_BARRIER, 0, 2, -1, 0, 0);
    look(3, 1, "rank 2 (pid 1002, n1) has ended");
    says("rank 1 (pid 1001, n1) has not come");
    begin_world(2);
    made_add(&made[1], &(made_op){ TUTTI_RECORD_ALL_REDUCE, TUTTI_RECORD_FAILED, 0, 2, -1, 0, 8, NOW_NS - 9 * S_NS, NOW_NS - 8 * S_NS });
    made[1].head.failures = 1;
    made[1].head.failed_id = 2;
    snprintf(made[1].head.failed_words, sizeof made[1].head.failed_words, "somebody went\n  next: look");
    add_open(0, TUTTI_RECORD_ALL_REDUCE, 0, 2, -1, 0, 8);
    look(2, 1, "under that number it has called all_reduce #2 (sum, 8 f32) on group 'world', which failed");
    says("rank 1 was told 8.0 s ago (1 failure in all, this was the first):\n  somebody went\n");
}

static void who_has_not_joined_is_named(void **state)
{
    int rank;

    (void)state;
    for (rank = 0; rank < 2; rank++)
        made_begin(&made[rank], rank, 3, "n1", NOW_NS, 0); /* they have no group yet */
    look(2, 1, "2 join; nobody waits in an operation");
    says("rank 2 is not to be seen here\n  ranks 0, 1 wait for it to join");
    says("joins, in tutti_init_process_group()");
}

/* Ranks 0 and 1 are in a message that moves slowly; rank 2 waits for rank 0, who waits for nobody that is missing. */
static void a_slow_operation_is_no_circle(void **state)
{
    (void)state;
    begin_world(3);
    add_open(0, TUTTI_RECORD_SEND, 0, 1, 1, 0, 1000000);
    add_open(1, TUTTI_RECORD_RECV, 0, 1, 0, 0, 1000000);
    add_open(2, TUTTI_RECORD_RECV, 0, 1, 0, 7, 4);
    look(3, 1, "rank 0 (pid 1000, n1) waits\n  rank 2 waits for it");
    if (strstr(text, "wait for each other") != NULL)
        fail_msg("a circle of one: %s", text);
}

/* Rank 1 was started again and joins, while rank 0 is in an operation with the former one. */
static void who_joins_may_be_waited_for(void **state)
{
    (void)state;
    begin_world(2);
    add_open(0, TUTTI_RECORD_BARRIER, 0, 2, -1, 0, 0);
    made_begin(&made[1], 1, 2, "n1", NOW_NS, 0);
    look(2, 1, "rank 1 (pid 1001, n1) joins, in tutti_init_process_group()\n  rank 0 waits for it");
}

/* A list that says one rank more often than there are ranks. */
static void a_damaged_list_of_members_does_no_harm(void **state)
{
    static const int zeros[8] = { 0 };
    int i;

    (void)state;
    made_begin(&made[0], 0, 2, "n1", NOW_NS, 0);
    made_begin(&made[1], 1, 2, "n1", NOW_NS, 0);
    for (i = 0; i < 2; i++)
        made_group(&made[i], 0, "zeros", zeros, 8);
    add_open(1, TUTTI_RECORD_BARRIER, 0, 2, -1, 0, 0);
    look(2, 1, "rank 0 (pid 1000, n1) has not come");
}

/* Of four ranks rank 1 was killed; the others went on as ranks 0, 1 and 2 of another world, in which each has done a barrier. */
static void begin_second_world(void)
{
    static const int survivors[] = { 0, 2, 3 };
    int i;

    begin_world(4);
    for (i = 0; i < 4; i++)
        made_world(&made[i], 0, 11, 1, i, -1);
    made[1].head.saved_state = 'X';
    for (i = 0; i < 3; i++) {
        made_recorder *m = &made[survivors[i]];

        m->head.saved_state = 'S';
        made_group(m, 1, "0:shrink", NULL, 3);
        made_world(m, 1, 22, 2, i, 0);
        made_add(m, &(made_op){ TUTTI_RECORD_BARRIER, TUTTI_RECORD_DONE, 1, 1, -1, 0, 0, NOW_NS - 50 * S_NS, NOW_NS - 49 * S_NS });
    }
}

static void worlds_are_told_apart(void **state)
{
    (void)state;
    begin_second_world();
    add_open(0, TUTTI_RECORD_ALL_REDUCE, 1, 2, -1, 0, 8);
    add_open(2, TUTTI_RECORD_ALL_REDUCE, 1, 2, -1, 0, 8);
    look(4, 1, "job 'made', world 2: 3 ranks, 3 read from files; 2 wait in an operation");
    says("rank 2 (pid 1003, n1, rank 3 at first) has not come\n  ranks 0, 1 wait for it");
    says("not in it:\n  rank 1 of world 1 (pid 1001, n1) is dead");
    says_nothing_of("rank 3 (");
    says_nothing_of("rank 1 (pid 1001");
    begin_second_world(); /* a message goes to the new number */
    add_open(0, TUTTI_RECORD_SEND, 1, 1, 2, 7, 1 << 20);
    look(4, 1, "rank 2 (pid 1003, n1, rank 3 at first) has not come\n  rank 0 waits for it");
    begin_second_world(); /* what was not over in the old world is */
    add_open(0, TUTTI_RECORD_ALL_REDUCE, 0, 2, -1, 0, 8);
    look(4, 0, "nobody waits in an operation");
}

/* The others went on without a rank that was stopped; it still has the old world. */
static void who_was_left_behind_is_told(void **state)
{
    (void)state;
    begin_second_world();
    made[1].head.saved_state = 'T';
    add_open(1, TUTTI_RECORD_ALL_REDUCE, 0, 2, -1, 0, 8);
    look(4, 0, "job 'made', world 2: 3 ranks, 3 read from files; nobody waits");
    says("rank 1 of world 1 (pid 1001, n1) is stopped by a signal");
}

/* Two worlds that are there at once, not one in the place of the other. */
static void worlds_beside_each_other_are_both_looked_at(void **state)
{
    int i;

    (void)state;
    begin_world(3);
    for (i = 0; i < 3; i++) {
        made_world(&made[i], 0, 11, 1, i, -1);
        made_group(&made[i], 1, "other", NULL, 3);
        made_world(&made[i], 1, 33, 1, 2 - i, -1); /* the other way round */
    }
    add_open(0, TUTTI_RECORD_BARRIER, 1, 1, -1, 0, 0);
    add_open(1, TUTTI_RECORD_BARRIER, 1, 1, -1, 0, 0);
    add_open(2, TUTTI_RECORD_BARRIER, 0, 2, -1, 0, 0);
    look(3, 1, "rank 0 (pid 1002, n1, rank 2 at first) has not come\n  ranks 1, 2 wait for it, rank 1 since 31.0 s in barrier #1 on group 'other'\n"
               "  it is in barrier #2 on group 'world' of another world");
    says("rank 0 (pid 1000, n1) has not come\n  rank 2 waits for it");
}

/* A process that was told by its launcher that it is rank 1, and is not in the second world, is none of its ranks. */
static void newcomers_are_not_taken_for_members(void **state)
{
    (void)state;
    begin_second_world();
    made_begin(&made[4], 1, 4, "n1", NOW_NS, 0);
    made[4].head.pid = 1004;
    made[4].head.saved_state = 'S';
    add_open(0, TUTTI_RECORD_BARRIER, 1, 2, -1, 0, 0);
    look(5, 1, "job 'made', world 2: 3 ranks, 3 read");
    says("rank 1 (pid 1002, n1, rank 2 at first) has not come");
    says("  pid 1004 (n1) runs, and is in no world yet");
}

/* What was under way when a file was written lasted until then, and what its process was then is known. */
static void files_are_of_their_time(void **state)
{
    (void)state;
    begin_world(3);
    add_open(0, TUTTI_RECORD_BARRIER, 0, 2, -1, 0, 0);
    add_open(2, TUTTI_RECORD_BARRIER, 0, 2, -1, 0, 0);
    made[0].head.saved_ns = (int64_t)(made[0].head.saved_ticks = (uint64_t)(NOW_NS - 20 * S_NS));
    made[1].head.saved_state = 'T';
    look(3, 1, "rank 1 (pid 1001, n1) is stopped by a signal");
    says("3 read from files; 2 wait in an operation, the longest for 32.0 s");
    says("in barrier #2 on group 'world', since 10.0 s"); /* rank 0, 20 s before */
    says("next: kill -CONT 1001");
}

/* The world that was begun last becomes one of another job, with processes of its own. */
static void be_another_job(int n, const char *job)
{
    int rank;

    for (rank = 0; rank < n; rank++) {
        snprintf(made[rank].head.job, sizeof made[rank].head.job, "%s", job);
        made[rank].head.pid = 2000 + rank;
    }
}

static void write_world(int n, const char *prefix)
{
    char name[32];
    int rank;

    for (rank = 0; rank < n; rank++) {
        snprintf(name, sizeof name, "%s%d.rec", prefix, rank);
        made_write(&made[rank], name);
    }
}

/* Files of two jobs of one size: ranks of the one do not wait for those of the other. */
static void jobs_are_told_apart(void **state)
{
    (void)state;
    begin_world(3);
    add_open(0, TUTTI_RECORD_BARRIER, 0, 2, -1, 0, 0);
    add_open(2, TUTTI_RECORD_BARRIER, 0, 2, -1, 0, 0);
    write_world(3, "a");
    begin_world(3);
    be_another_job(3, "other");
    add_open(1, TUTTI_RECORD_BARRIER, 0, 2, -1, 0, 0);
    add_open(2, TUTTI_RECORD_BARRIER, 0, 2, -1, 0, 0);
    write_world(3, "b");
    expect("doctor hang --dumps *.rec", 1, "job 'made': 3 ranks, 3 read from files; 2 wait in an operation");
    says("rank 1 (pid 1001, n1) has not come\n  ranks 0, 2 wait for it");
    says("job 'other': 3 ranks, 3 read from files; 2 wait in an operation");
    says("rank 0 (pid 2000, n1) has not come\n  ranks 1, 2 wait for it");
    says_nothing_of("not in it:");
    begin_world(3); /* nothing hangs any more: both are told of */
    write_world(3, "a");
    begin_world(3);
    be_another_job(3, "other");
    write_world(3, "b");
    expect("doctor hang --dumps *.rec", 0, "job 'made': 3 ranks, 3 read from files; nobody waits");
    says("job 'other': 3 ranks, 3 read from files; nobody waits");
    made_begin(&made[0], 0, 3, "n1", NOW_NS, 0); /* the other one is not there yet */
    made_begin(&made[1], 1, 3, "n1", NOW_NS, 0);
    be_another_job(2, "other");
    write_world(2, "b");
    assert_int_equal(unlink("b2.rec"), 0);
    expect("doctor hang --dumps *.rec", 1, "job 'other': 3 ranks, 2 read from files; 2 join; nobody waits in an operation");
    says("rank 2 is not to be seen here\n  ranks 0, 1 wait for it to join");
    says_nothing_of("job 'made'");
    assert_int_equal(system("rm *.rec"), 0);
}

/* Members of two jobs have one world, whose number tells. */
static void a_merged_world_has_all_of_its_jobs(void **state)
{
    int rank;

    (void)state;
    begin_world(2);
    for (rank = 0; rank < 2; rank++)
        made_world(&made[rank], 0, 11, 1, rank, -1);
    snprintf(made[1].head.job, sizeof made[1].head.job, "guest");
    add_open(0, TUTTI_RECORD_BARRIER, 0, 2, -1, 0, 0);
    look(2, 1, "jobs 'made', 'guest': 2 ranks, 2 read from files");
    says("rank 1 (pid 1001, n1) has not come\n  rank 0 waits for it");
}

/* What was saved at two times is of one process: the later one counts, whatever the order of the files. */
static void a_process_counts_once(void **state)
{
    int rank;

    (void)state;
    begin_world(2);
    write_world(2, "2-early"); /* nobody waits yet */
    for (rank = 0; rank < 2; rank++) {
        made[rank].head.saved_ns = NOW_NS + 5 * S_NS;
        made[rank].head.saved_ticks = (uint64_t)(NOW_NS + 5 * S_NS);
    }
    add_open(0, TUTTI_RECORD_BARRIER, 0, 2, -1, 0, 0);
    write_world(2, "1-late");
    expect("doctor hang --dumps *.rec", 1, "job 'made': 2 ranks, 2 read from files; 1 waits in an operation");
    says("tutti doctor hang: 2 of these are of processes that are there more than once: the latest of each counts\n");
    says_nothing_of("not in it:");
    expect("trace --out t.json --dumps *.rec", 0, "t.json: 3 operations of 2 ranks on 1 host");
    expect("doctor hang --dumps 1-late0.rec 1-late0.rec 1-late1.rec", 1, "2 ranks, 2 read from files");
    says("tutti doctor hang: 1 of these is of processes");
    made[1].head.pid_began = 2; /* a later process of that number is another one */
    made_write(&made[1], "1-late1.rec");
    expect("trace --out t.json --dumps *.rec", 0, "of 3 ranks on 1 host");
    assert_int_equal(system("rm *.rec t.json"), 0);
}

/* What TUTTI_TRACE_FILE has written for other tools leads to what stands beside it. */
static void json_leads_to_what_is_beside_it(void **state)
{
    (void)state;
    begin_world(2);
    add_open(0, TUTTI_RECORD_BARRIER, 0, 2, -1, 0, 0);
    made_write(&made[0], "t0.rec");
    made_write(&made[1], "t1.rec");
    assert_int_equal(system("echo '{ \"version\": \"2.10\" }' > t0; cp t0 t1"), 0);
    expect("doctor hang --dumps t0 t1", 1, "2 ranks, 2 read from files");
    expect("doctor hang --dumps t*", 1, "2 ranks, 2 read from files");
    assert_int_equal(unlink("t1.rec"), 0);
    expect("doctor hang --dumps t0 t1", 2, "'t1' is JSON, for other tools, and 't1.rec' is not beside it");
    assert_int_equal(system("rm t0 t1 t0.rec"), 0);
}

static void programs_read_json(void **state)
{
    json_t *all, *cause;

    (void)state;
    begin_world(3);
    add_open(0, TUTTI_RECORD_BARRIER, 0, 2, -1, 0, 0);
    add_open(2, TUTTI_RECORD_BARRIER, 0, 2, -1, 0, 0);
    made_write(&made[0], "0.rec");
    made_write(&made[1], "1.rec");
    made_write(&made[2], "2.rec");
    assert_int_equal(run("doctor hang --json --dumps *.rec"), 1);
    all = json_loads(text, 0, NULL);
    assert_non_null(all);
    assert_int_equal(json_integer_value(json_object_get(all, "waiting")), 2);
    assert_string_equal(json_string_value(json_object_get(all, "job")), "made");
    cause = json_array_get(json_object_get(all, "causes"), 0);
    assert_int_equal(json_integer_value(json_array_get(json_object_get(cause, "ranks"), 0)), 1);
    assert_int_equal(json_array_size(json_object_get(cause, "waiting")), 2);
    assert_int_equal(json_array_size(json_object_get(all, "ranks")), 3);
    json_decref(all);
    assert_int_equal(run("doctor hang --save saved --dumps *.rec"), 1);
    expect("doctor hang --dumps saved/*.rec", 1, "rank 1 (pid 1001, n1) has not come");
    expect("doctor hang --save /nowhere/x --dumps *.rec", 2, "cannot make '/nowhere/x'"); /* which says nothing of a hang */
    assert_int_equal(system("rm -r saved *.rec"), 0);
}

/* Every word of the head, and some of each table, set to numbers that were not meant. */
static void files_that_are_none_do_no_harm(void **state)
{
    static const uint64_t odd[] = { 0, 1, 3, 0x7fffffff, 0x80000000, 0xffffffff, UINT64_C(1) << 40, UINT64_MAX };
    size_t at, i;
    int code;

    (void)state;
    for (at = 0; at < sizeof made[0]; at += at < 192 ? 8 : 8 * 97)
        for (i = 0; i < sizeof odd / sizeof odd[0]; i += at < 192 ? 1 : 5) {
            begin_world(1);
            add_open(0, TUTTI_RECORD_BARRIER, 0, 2, -1, 0, 0);
            memcpy((char *)&made[0] + at, &odd[i], sizeof odd[i]);
            made_write(&made[0], "odd.rec");
            code = run("doctor hang --dumps odd.rec");
            if (code < 0 || code > 2)
                fail_msg("word %zu set to %llx: code %d: %s", at, (unsigned long long)odd[i], code, text);
            code = run("trace --out - --dumps odd.rec");
            if (code < 0 || code > 2)
                fail_msg("trace: word %zu set to %llx: code %d", at, (unsigned long long)odd[i], code);
        }
    unlink("odd.rec");
}

static void wrong_lines_are_refused(void **state)
{
    (void)state;
    expect("doctor hang --help", 0, "usage: tutti doctor hang");
    expect("doctor hang now", 2, "'now' is one word too many");
    expect("doctor hang --pid", 2, "--pid needs numbers of processes");
    expect("doctor hang --pid one", 2, "'one' is no number of a process");
    expect("doctor hang --pid 1 2", 2, "recorder");
    expect("doctor hang --dumps", 2, "--dumps needs files");
    expect("doctor hang --dumps /nowhere/x.rec", 2, "/nowhere/x.rec");
    expect("doctor hang --dumps /etc/passwd", 2, "/etc/passwd");
    expect("doctor hang --dumps /etc", 2, "'/etc' is a folder\n  next: name the files in it: /etc/*.rec");
    expect("trace --dumps /etc", 2, "'/etc' is a folder");
    expect("doctor hang --job x --pid 1", 2, "exclude each other");
    expect("doctor hang --least soon", 2, "--least 'soon' is no number of seconds");
    expect("doctor hang --job no-such-job", 2, "no process of job 'no-such-job' is found on this host");
    says("those of another user are seen by that user, and by root");
    expect("doctor hang --least 1e300", 2, "no number of seconds below 1e9");
    expect("doctor hang --jbo x", 2, "did you mean '--job'");
    expect("trace --help", 0, "usage: tutti trace");
    expect("trace --dumps", 2, "--dumps needs files");
    expect("trace now", 2, "'now' is one word too many");
    expect("trace --job no-such-job", 2, "no process of job 'no-such-job'");
    expect("trace --dumps /etc/passwd", 2, "/etc/passwd");
}

static int make_folder(void **state)
{
    (void)state;
    return mkdtemp(folder) == NULL || chdir(folder) != 0 ? -1 : 0;
}

static int drop_folder(void **state)
{
    char command[128];

    (void)state;
    snprintf(command, sizeof command, "cd / && rm -r %s", folder);
    return system(command);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nobody_waits),
        cmocka_unit_test(who_has_not_come_is_named),
        cmocka_unit_test(a_group_that_is_made_waits_for_its_members),
        cmocka_unit_test(who_is_missing_from_a_grow_is_named),
        cmocka_unit_test(newcomers_that_are_awaited_are_told_of),
        cmocka_unit_test(who_is_missing_from_a_shrink_is_named),
        cmocka_unit_test(a_list_of_several_is_known),
        cmocka_unit_test(who_is_missing_from_a_split_by_colour_is_named),
        cmocka_unit_test(who_was_not_read_is_named),
        cmocka_unit_test(what_was_read_comes_before_what_was_not),
        cmocka_unit_test(different_calls_are_shown),
        cmocka_unit_test(a_call_and_a_message_of_one_group_are_told),
        cmocka_unit_test(circles_over_groups_are_found),
        cmocka_unit_test(messages_are_looked_at_from_both_ends),
        cmocka_unit_test(circles_of_messages_say_who_has_to_turn),
        cmocka_unit_test(the_dead_wait_for_nobody),
        cmocka_unit_test(what_failed_was_under_way_until_then),
        cmocka_unit_test(who_came_too_late_is_named),
        cmocka_unit_test(windows_wait_for_signals_only),
        cmocka_unit_test(a_root_that_is_missing_is_enough),
        cmocka_unit_test(who_has_left_or_failed_is_named),
        cmocka_unit_test(who_has_not_joined_is_named),
        cmocka_unit_test(a_slow_operation_is_no_circle),
        cmocka_unit_test(who_joins_may_be_waited_for),
        cmocka_unit_test(a_damaged_list_of_members_does_no_harm),
        cmocka_unit_test(worlds_are_told_apart),
        cmocka_unit_test(who_was_left_behind_is_told),
        cmocka_unit_test(worlds_beside_each_other_are_both_looked_at),
        cmocka_unit_test(newcomers_are_not_taken_for_members),
        cmocka_unit_test(files_are_of_their_time),
        cmocka_unit_test(jobs_are_told_apart),
        cmocka_unit_test(a_merged_world_has_all_of_its_jobs),
        cmocka_unit_test(a_process_counts_once),
        cmocka_unit_test(json_leads_to_what_is_beside_it),
        cmocka_unit_test(programs_read_json),
        cmocka_unit_test(files_that_are_none_do_no_harm),
        cmocka_unit_test(wrong_lines_are_refused),
    };

    return cmocka_run_group_tests(tests, make_folder, drop_folder);
}
