/* SPDX-License-Identifier: BSD-3-Clause
 *
 * debug_sites.c
 * Goal    where calls differ under "debug-NAME", the words of every rank say in which function of its program each of the two was
 *         made: of calls that wait, of those that run later on a thread of the library's, of amounts that differ, and of who has not come.
 * Method  one rank of two, a program that shows its symbols, on the shared library; with each case the functions are others. Says
 *         "rank R: fine". */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tutti/tutti.h>

enum { RANKS = 2, SHORT_MS = 1500 };

#define CHECK(condition)                                                                                                \
    do {                                                                                                                \
        if (!(condition)) {                                                                                             \
            fprintf(stderr, "%s:%d: rank %d: not so: %s\n  last error: %s\n", __FILE__, __LINE__, tutti_get_rank(NULL), \
                    #condition, tutti_last_error());                                                                    \
            exit(1);                                                                                                    \
        }                                                                                                               \
    } while (0)

/* Seen by name, and each with a frame of its own while it calls. */
#define PLACE __attribute__((noinline, visibility("default")))

tutti_status  sum_here(tutti_group *group);
tutti_status  spread_here(tutti_group *group);
tutti_status  sum_later_here(tutti_group *group, tutti_work **work_out);
tutti_status  spread_later_here(tutti_group *group, tutti_work **work_out);
tutti_status  swap_here(tutti_group *group, int given);
tutti_status  meet_here(tutti_group *group);

static float        x[4], y[RANKS][2], z[RANKS][2];
static volatile int calls; /* counted behind each, so that none is the last thing that its function does */

PLACE tutti_status sum_here(tutti_group *group)
{
    const tutti_status st = tutti_all_reduce(TUTTI_SPAN(x, 4), TUTTI_SUM, group);

    calls++;
    return st;
}

PLACE tutti_status spread_here(tutti_group *group)
{
    const tutti_status st = tutti_broadcast(TUTTI_SPAN(x, 4), 1, group);

    calls++;
    return st;
}

PLACE tutti_status sum_later_here(tutti_group *group, tutti_work **work_out)
{
    const tutti_status st = tutti_all_reduce_async(TUTTI_SPAN(x, 4), TUTTI_SUM, group, work_out);

    calls++;
    return st;
}

PLACE tutti_status spread_later_here(tutti_group *group, tutti_work **work_out)
{
    const tutti_status st = tutti_broadcast_async(TUTTI_SPAN(x, 4), 1, group, work_out);

    calls++;
    return st;
}

PLACE tutti_status swap_here(tutti_group *group, int given)
{
    tutti_span   ins[RANKS] = { TUTTI_SPAN(y[0], given), TUTTI_SPAN(y[1], 1) };
    tutti_span   outs[RANKS] = { TUTTI_SPAN(z[0], 1), TUTTI_SPAN(z[1], 1) };
    tutti_status st = tutti_all_to_all(outs, RANKS, ins, RANKS, group);

    calls++;
    return st;
}

PLACE tutti_status meet_here(tutti_group *group)
{
    const tutti_status st = tutti_barrier(group);

    calls++;
    return st;
}

static bool is_said(const char *words)
{
    return strstr(tutti_last_error(), words) != NULL;
}

static tutti_group *new_pair(void)
{
    const int    ranks[RANKS] = { 0, 1 };
    tutti_group *pair = NULL;

    CHECK(tutti_new_group(ranks, RANKS, NULL, &pair) == TUTTI_OK);
    return pair;
}

static void at_once(int rank, tutti_group *pair)
{
    CHECK((rank == 0 ? sum_here(pair) : spread_here(pair)) == TUTTI_E_MISMATCH);
    CHECK(is_said("all_reduce #1 (sum, 4 f32) at debug_sites+0x") && is_said(" (sum_here+0x"));
    CHECK(is_said("broadcast #1 (4 f32, root 1) at debug_sites+0x") && is_said(" (spread_here+0x"));
}

static void later(int rank, tutti_group *pair)
{
    tutti_work *work = NULL;

    CHECK((rank == 0 ? sum_later_here(pair, &work) : spread_later_here(pair, &work)) == TUTTI_OK);
    CHECK(tutti_work_wait(work) == TUTTI_E_MISMATCH);
    CHECK(is_said(" (sum_later_here+0x") && is_said(" (spread_later_here+0x"));
    tutti_work_free(work);
}

/* Rank 1 gives rank 0 more than that expects; it does not see so itself, and its time may run out. */
static void too_much(int rank, tutti_group *pair)
{
    tutti_status st;

    CHECK(tutti_set_timeout(pair, SHORT_MS) == TUTTI_OK);
    st = swap_here(pair, rank == 1 ? 2 : 1);
    CHECK(st != TUTTI_OK);
    if (rank == 0)
        CHECK(st == TUTTI_E_MISMATCH && is_said("given at debug_sites+0x") && is_said("expected at debug_sites+0x") &&
              is_said(" (swap_here+0x"));
}

/* Rank 1 does not come to the second barrier. */
static void missing(int rank, tutti_group *pair)
{
    CHECK(meet_here(pair) == TUTTI_OK);
    CHECK(tutti_set_timeout(pair, SHORT_MS) == TUTTI_OK);
    if (rank == 1)
        return;
    CHECK(sum_here(pair) == TUTTI_E_TIMEOUT);
    CHECK(is_said("all_reduce #2 (sum, 4 f32) at debug_sites+0x") && is_said(" (sum_here+0x"));
    CHECK(is_said("not arrived: rank 1, last at barrier #1 at debug_sites+0x") && is_said(" (meet_here+0x"));
}

int main(void)
{
    void (*const cases[])(int rank, tutti_group *pair) = { at_once, later, too_much, missing };
    enum { CASES = sizeof cases / sizeof cases[0] };
    tutti_init_options opts = TUTTI_INIT_OPTIONS;
    tutti_group       *pairs[CASES];
    int                i;

    opts.backend = "debug-native";
    CHECK(tutti_init_process_group(&opts) == TUTTI_OK);
    for (i = 0; i < CASES; i++)
        pairs[i] = new_pair(); /* all of them before a rank is left alone in one */
    for (i = 0; i < CASES; i++)
        cases[i](tutti_get_rank(NULL), pairs[i]);
    CHECK(tutti_barrier(NULL) == TUTTI_OK); /* rank 1 is asked where it was until rank 0 is through */
    printf("rank %d: fine\n", tutti_get_rank(NULL));
    CHECK(tutti_destroy_process_group(NULL) == TUTTI_OK);
    return 0;
}
