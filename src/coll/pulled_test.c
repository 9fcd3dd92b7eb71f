/* SPDX-License-Identifier: BSD-3-Clause
 *
 * pulled_test.c
 * Goal    members read each other's buffers only where all of them can, and a buffer that is not there is an
 *         error with words on all of them, in time.
 * Method  The probe on members made by hand, this process being all of them. Then ranks as threads, one of which
 *         gives memory that nobody may read. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/mman.h>
#include <cmocka.h>
#include "coll/coll_ranks.h"
#include "coll/host/pull.h"

enum { MEMBERS = 3, PAGE = 4096, SOON_MS = 10000 };

/* ---- the probe --------------------------------------------------------------------------------- */

typedef struct some_members {
    tti_team         team;
    tti_host_channel channel;
    tti_host_member  members[MEMBERS];
    tti_host_lines   lines[MEMBERS];
    tti_join         joins[MEMBERS];
    uint64_t         nonces[MEMBERS];
} some_members;

/* All have come, and can be read. */
static some_members *make_members(void)
{
    some_members *all = aligned_alloc(_Alignof(some_members), sizeof *all);
    int           r;

    assert_non_null(all);
    memset(all, 0, sizeof *all);
    all->team.n_ranks = MEMBERS;
    all->team.port = tti_port_system();
    all->channel.team = &all->team;
    all->channel.members = all->members;
    for (r = 0; r < MEMBERS; r++) {
        all->nonces[r] = 1000 + (uint64_t)r;
        all->joins[r] = (tti_join){ .nonce = all->nonces[r], .pid = (uint64_t)getpid(),
                                    .nonce_at = (uint64_t)(uintptr_t)&all->nonces[r] };
        all->members[r].lines = &all->lines[r];
        atomic_store(&all->lines[r].counters[TTI_DONE].at.value, 1);
    }
    return all;
}

static void probe_by_all(some_members *all)
{
    for (all->team.rank = 0; all->team.rank < MEMBERS; all->team.rank++)
        tti_host_pull_probe(&all->channel, all->joins);
    all->team.rank = 0;
}

static bool ready(some_members *all)
{
    bool is = false;

    assert_int_equal(tti_host_pull_ready(&all->channel, &is), TUTTI_OK);
    return is;
}

static void all_can_where_each_reads_the_others(void **state)
{
    some_members *all = make_members();

    (void)state;
    probe_by_all(all);
    assert_true(ready(all));
    assert_true(ready(all)); /* it is remembered */
    free(all);
}

static void nobody_does_where_one_cannot(void **state)
{
    some_members *all = make_members();

    (void)state;
    probe_by_all(all);
    all->joins[1].nonce++; /* as if the number were another process there */
    all->team.rank = 2;
    tti_host_pull_probe(&all->channel, all->joins);
    all->team.rank = 0;
    assert_false(ready(all));
    free(all);
}

static void an_address_that_is_not_there_is_no(void **state)
{
    some_members *all = make_members();

    (void)state;
    all->joins[2].nonce_at = 8;
    probe_by_all(all);
    assert_false(ready(all));
    free(all);
}

/* ---- a buffer that is not there ---------------------------------------------------------------- */

static void one_gives_nothing(tt_rank *t)
{
    const int64_t count = 4 * PAGE, begin_ns = tt_in_ms(0);
    tutti_call    call = tt_call(t, TUTTI_CALL_ALL_GATHER, TUTTI_U8, count);
    char         *out = malloc((size_t)(count * t->size));
    void         *none = mmap(NULL, (size_t)count, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    void         *list[TT_RANKS_MAX];
    tutti_status  st;
    int           r;

    if (out == NULL || none == MAP_FAILED) {
        TT_CHECK(t, out != NULL && none != MAP_FAILED);
        return;
    }
    memset(out, 1, (size_t)(count * t->size));
    for (r = 0; r < t->size; r++)
        list[r] = out + r * count;
    if (t->rank == 1)
        list[1] = none; /* in place: it does not touch it itself */
    call.in = list[t->rank];
    call.list = list;
    st = tti_coll_run(t->coll, &call);
    TT_CHECK(t, st == TUTTI_E_BACKEND);
    TT_CHECK(t, strstr(tutti_last_error(), "cannot read 16384 bytes of the memory of rank 1 (") != NULL);
    TT_CHECK(t, tt_in_ms(0) < begin_ns + SOON_MS * TTI_MS);
    tt_all_here(t);
    munmap(none, (size_t)count);
    free(out);
}

static void a_buffer_that_is_not_there_is_named(void **state)
{
    tt_rank ranks[TT_RANKS_MAX];

    (void)state;
    assert_int_equal(setenv("TUTTI_ALGO", "all_gather=pull", 1), 0);
    tt_run(2, false, one_gives_nothing, ranks);
    tt_run(4, false, one_gives_nothing, ranks);
    assert_int_equal(unsetenv("TUTTI_ALGO"), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_can_where_each_reads_the_others),
        cmocka_unit_test(nobody_does_where_one_cannot),
        cmocka_unit_test(an_address_that_is_not_there_is_no),
        cmocka_unit_test(a_buffer_that_is_not_there_is_named),
    };

    return cmocka_run_group_tests_name("pulled", tests, NULL, NULL);
}
