/* SPDX-License-Identifier: BSD-3-Clause
 *
 * words_test.c
 * Goal    who is accused by an error's words, and what becomes of a rank that loses its connections, is judged as words.c and
 *         cut.c say: a guilty one beside one who is not is no right name, and the same number elsewhere in the words is none.
 * Method  sentences of each form that errors of failed groups have, for a world of four ranks of which rank 2 is guilty; and
 *         pages as ranks leave them. */
#include "faults.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

#define FAILED "all_reduce #7 on group 'world' failed on rank 0 of 4 members, and ends the group: "
#define LATE "all_reduce #7 on group 'world' timed out after 1250 ms on rank 0 of 4 members\n  "
#define CARRY_ON "\n  next: see why that rank ended; those that are left can go on with tutti_shrink_group()"

enum { SIZE = 4, VICTIM = 2 };

static void expect(tt_verdict verdict, bool cut, const char *const *all)
{
    static const bool guilty[RANKS_MAX] = { [VICTIM] = true };

    for (; *all != NULL; all++) {
        const tt_verdict got = tt_words_judge(*all, guilty, SIZE, cut);

        if (got != verdict)
            print_error("judged %d, not %d: %s\n", got, verdict, *all);
        assert_int_equal(got, verdict);
    }
}

static void test_the_guilty_alone(void **state)
{
    static const char *const all[] = {
        FAILED "rank 2 (host 'n2', pid 40) is gone: its process has ended (signal 9 (Killed)); it last entered all_reduce #7" CARRY_ON,
        FAILED "the connection to rank 2 (host 'n2', pid 40) was cut: that rank has left or died, or something on the way did it" CARRY_ON,
        FAILED "rank 2 (host 'n2', pid 40) has left" CARRY_ON,
        FAILED "the tcp link to rank 2 (host 'n2', pid 40) failed: No route to host",
        FAILED "rank 1 reported: rank 2 (host 'n2', pid 40) has left or died: nobody listens at 10.0.0.2:999 any more" CARRY_ON,
        "recv from rank 1, tag 5 on group 'world' failed, and ends the group: rank 2 (host 'n2', pid 40) is gone",
        "barrier #3: rank 1 (host 'n1', pid 41) reported TUTTI_E_PEER about rank 2; group 'world' is finished",
        "barrier #3: rank 1 (host 'n1', pid 41) reported TUTTI_E_PEER; group 'world' is finished\n"
        "  rank 1: the peer, rank 2 (host 'n2', pid 40), has ended",
        LATE "not arrived: ranks 1, 2; rank 2 (host 'n2', pid 40) last entered all_reduce #6, and has been stopped by a signal for 1.0 s; "
             "kill -CONT lets it go on\n  rank 1 (host 'n1', pid 41) last entered all_reduce #6\n"
             "  next: let rank 2 (host 'n2', pid 40) go on: kill -CONT",
        LATE "no message from rank 1 (step 2 of 6)\n  rank 2 (host 'n2', pid 40) is unreachable: nothing has come from its host for 1.0 s",
        LATE "arrived but not finished: rank 2\n  next: see what the ranks named do instead",
        "recv on group 'world' timed out after 1250 ms on rank 0: no message with tag 5 came from rank 2 (host 'n2', pid 40)",
        "send on group 'world' timed out after 1250 ms on rank 0: sending 40 bytes with tag 5 to rank 2 (host 'n2', pid 40) is not "
        "finished: it does not receive",
        "shrink_group on group 'world': rank 2 did not come to go on with, or did not answer, on rank 0\n  next: check",
        "rank 0 waited 4000 ms for the world of 4: rank 2 did not come (3 of 4 here)\n  next: check",
        "rank 0 waits for the world of 4, which cannot be made: rank 2 (host 'n2', pid 40) was ended by signal 9 (Killed) before it joined",
        "group 'a' cannot be made: rank 1 has not joined, and rank 2 (host 'n2', pid 40) has left the world",
        "group 'a' timed out on rank 0 of 4 members while it was made\n  not joined: rank 2\n  next: check",
        "rank 1 waits for the world of 4, which cannot be made: rank 0 reported: rank 2 of this host did not come to the local socket of rank 0",
        "group '0' timed out on rank 1 of 4 members while it was made\n  not joined: rank 2\n  here, and waiting for others of their host: rank 0\n  next: check",
        "cannot hand shared memory to rank 2: Broken pipe",
        NULL
    };

    (void)state;
    expect(TT_ACCUSES_RIGHT, false, all);
}

static void test_another(void **state)
{
    static const char *const all[] = {
        FAILED "rank 1 (host 'n1', pid 41) is gone: its process has ended (cause unknown); it last entered all_reduce #7",
        FAILED "rank 2 reported: the connection to rank 1 (host 'n1', pid 41) was cut: that rank has left or died, or something on the way did it",
        FAILED "rank 2 (host 'n2', pid 40) is gone: its process has ended (exit code 0)\n  rank 3 (host 'n3', pid 42) is unreachable: nothing "
               "comes from its host",
        "barrier #3: rank 2 (host 'n2', pid 40) reported TUTTI_E_PEER about rank 1; group 'world' is finished",
        LATE "not arrived: ranks 1, 2\n  next: see what the ranks named do instead",
        LATE "not arrived: rank 2; rank 1 (host 'n1', pid 41) last entered all_reduce #6, and gives no sign of life, though its process is there",
        "rank 0 waited 4000 ms for the world of 4: ranks 2, 3 did not come (2 of 4 here)\n  next: check",
        "shrink_group on group 'world': ranks 1 and 2 did not come to go on with, or did not answer, on rank 0",
        FAILED "lost the connection to rank 3 at the local socket: closed by the other side",
        FAILED "rank 7 (host 'n2', pid 40) is gone",
        NULL
    };

    (void)state;
    expect(TT_ACCUSES_ANOTHER, false, all);
}

static void test_nobody(void **state)
{
    static const char *const all[] = {
        "",
        "broadcast #2 on group 'world' was aborted on rank 2",
        "all_reduce #7: group 'world' was aborted on rank 2",
        "rank 2 reported: lost the connection to the store: closed by the other side",
        "rank 2 (host 'n2', pid 40) last entered all_reduce #6",
        "the store of group 'world' has ended; ranks 0, 2 and 3 have come",
        "barrier on group 'world' ended on rank 2 of 4 members: no memory",
        "broadcast #2 on group 'world', on rank 0: rank 2 (host 'x is gone', pid 40) last entered broadcast #1",
        NULL
    };

    (void)state;
    expect(TT_ACCUSES_NOBODY, false, all);
}

/* Which end of a connection lost it does not say. */
static void test_connections(void **state)
{
    static const char *const right[] = {
        FAILED "the connection to rank 2 (host 'n2', pid 40) was closed: that rank has left or died, or something on the way did it",
        FAILED "rank 2 reported: the connection to rank 1 (host 'n1', pid 41) was cut: that rank has left or died",
        FAILED "rank 1 reported: the connection to rank 2 (host 'n2', pid 40) was cut: that rank has left or died",
        "barrier #3: rank 1 (host 'n1', pid 41) reported TUTTI_E_PEER; group 'world' is finished\n"
        "  rank 2: irecv from rank 0 on group 'world' failed: the new connection to rank 0 (host 'n0', pid 39) was closed",
        NULL
    }, *const wrong[] = {
        FAILED "the connection to rank 1 (host 'n1', pid 41) was closed: that rank has left or died, or something on the way did it",
        FAILED "rank 3 reported: the connection to rank 1 (host 'n1', pid 41) was cut: that rank has left or died",
        FAILED "rank 2 reported: rank 1 (host 'n1', pid 41) is gone: its process has ended (exit code 0)",
        NULL
    };

    (void)state;
    expect(TT_ACCUSES_RIGHT, true, right);
    expect(TT_ACCUSES_ANOTHER, true, wrong);
    expect(TT_ACCUSES_ANOTHER, false, &right[3]); /* the dead do not tell */
}

/* In a list "and 2 more" is no rank. */
static void test_lists(void **state)
{
    const bool guilty[RANKS_MAX] = { [0] = true, [1] = true };

    (void)state;
    assert_int_equal(tt_words_judge("not arrived: ranks 0, 1 and 2 more", guilty, SIZE, false), TT_ACCUSES_RIGHT);
    assert_int_equal(tt_words_judge("not arrived: ranks 0, 1 and 2", guilty, SIZE, false), TT_ACCUSES_ANOTHER);
    assert_int_equal(tt_words_judge("not arrived: ranks 0 and 1", guilty, SIZE, false), TT_ACCUSES_RIGHT);
    assert_int_equal(tt_words_judge("not arrived: ranks 0, 1", guilty, 1, false), TT_ACCUSES_ANOTHER);
}

/* Of four ranks rank 3 leaves, and rank 2 is cut off. */
static tt_outcome outcome_of(unsigned zero, unsigned one, unsigned two)
{
    static round_page page;

    memset(&page, 0, sizeof page);
    page.size = SIZE;
    page.plan = (tt_draw){ .what = F_RESET, .when = P_SHRINK, .victim = VICTIM, .leaves = 3 };
    assert_true(tt_is_cut(&page));
    page.by[0].world = zero;
    page.by[1].world = one;
    page.by[2].world = two;
    return tt_cut_outcome(&page);
}

static void test_cut_off(void **state)
{
    (void)state;
    assert_int_equal(outcome_of(7, 7, 7), CUT_KEPT);
    assert_int_equal(outcome_of(3, 3, 0), CUT_LEFT_OUT);
    assert_int_equal(outcome_of(7, 7, 0), CUT_FAILED); /* it is a member, and has an error */
    assert_int_equal(outcome_of(7, 0, 7), CUT_FAILED);
    assert_int_equal(outcome_of(0, 0, 0), CUT_FAILED);
    assert_int_equal(outcome_of(3, 3, 4), CUT_TWO_WORLDS);
    assert_int_equal(outcome_of(7, 3, 7), CUT_TWO_WORLDS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_guilty_alone), cmocka_unit_test(test_another), cmocka_unit_test(test_nobody),
        cmocka_unit_test(test_connections),      cmocka_unit_test(test_lists),   cmocka_unit_test(test_cut_off),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
