/* SPDX-License-Identifier: BSD-3-Clause
 *
 * handed_test.c
 * Goal    the ranks of a host read what all have left once, of the world and of every group that is made later; the results are
 *         those of ranks that read by themselves, and the memory in between is given back. Who gives up is told of as without it.
 * Method  ranks are threads that take themselves for members of two hosts, over sockets, on a board that counts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "coll/coll_ranks.h"
#include "coll/cost.h"

enum { RANKS = 7, HOSTS = 2, GROUPS = 6, PENDING = 2 };

static const int hosts[RANKS] = { 0, 1, 0, 0, 1, 0, 1 };

static void add_up(tt_rank *t, tti_coll *coll, uint64_t seq)
{
    int64_t    x[3] = { t->rank, 1, 1 << t->rank };
    tutti_call call = tt_call(t, TUTTI_CALL_ALL_REDUCE, TUTTI_I64, 3);

    call.seq = seq;
    call.in = call.out = x;
    TT_CHECK(t, tti_coll_run(coll, &call) == TUTTI_OK);
    TT_CHECK(t, x[0] == RANKS * (RANKS - 1) / 2 && x[1] == RANKS && x[2] == (1 << RANKS) - 1);
}

static void body_groups(tt_rank *t)
{
    tti_heap *heap = tti_mesh_heap(t->mesh, t->rank);
    size_t    regions = tti_heap_regions(heap);
    tti_coll *coll;
    char      key[24];
    int       g;

    add_up(t, t->coll, 1);
    TT_CHECK(t, tt_count_read(t, "card/") == HOSTS * RANKS);
    TT_CHECK(t, tt_count_read(t, "g0/member/") == HOSTS * RANKS);
    for (g = 1; g <= GROUPS; g++) {
        coll = NULL;
        TT_CHECK(t, tt_open(t, (uint32_t)g, t->deadline_ns, &coll) == TUTTI_OK);
        if (coll != NULL)
            add_up(t, coll, 1);
        tt_all_here(t);
        snprintf(key, sizeof key, "g%d/member/", g);
        TT_CHECK(t, tt_count_read(t, key) == HOSTS * RANKS);
        tt_all_here(t);
        tti_coll_close(coll);
    }
    TT_CHECK(t, tti_heap_regions(heap) <= regions + PENDING); /* the last group's wait until something is made */
}

static void a_host_reads_once(void **state)
{
    const tt_setting setting = { .machine = &tti_machine_default, .hosts = hosts, .together_from = 2,
                                 .patient_readers = true };
    tt_rank          ranks[RANKS];

    (void)state;
    tt_run_in(&setting, RANKS, false, body_groups, ranks);
}

static void body_alone(tt_rank *t)
{
    add_up(t, t->coll, 1);
    TT_CHECK(t, tt_count_read(t, "g0/member/") == RANKS * RANKS);
}

/* Of fewer ranks than that everybody reads, and so does who shares no memory. */
static void small_groups_read_by_themselves(void **state)
{
    const tt_setting fewer = { .machine = &tti_machine_default, .hosts = hosts, .together_from = RANKS + 1, .patient_readers = true };
    const tt_setting apart = { .machine = &tti_machine_default, .together_from = 2, .patient_readers = true };
    tt_rank          ranks[RANKS];

    (void)state;
    tt_run_in(&fewer, RANKS, false, body_alone, ranks);
    tt_run_in(&apart, RANKS, true, body_alone, ranks);
}

static void who_gives_up_is_told_of(void **state)
{
    const tt_setting setting = { .machine = &tti_machine_default, .hosts = hosts, .together_from = 2,
                                 .given_up_for = "the lights are out" };
    tt_rank          ranks[RANKS];
    int              r;

    (void)state;
    tt_run_in(&setting, RANKS, false, body_alone, ranks);
    for (r = 1; r < RANKS; r++)
        if (strstr(ranks[r].said, "the lights are out") == NULL)
            fail_msg("rank %d: %s", r, ranks[r].said);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_host_reads_once),
        cmocka_unit_test(small_groups_read_by_themselves),
        cmocka_unit_test(who_gives_up_is_told_of),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
