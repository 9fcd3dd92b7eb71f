/* SPDX-License-Identifier: BSD-3-Clause
 *
 * abort_test.c
 * Goal    aborting a group ends at once what waits in it, on all members, with words that name who did it;
 *         what is not in it goes on.
 * Method  time-outs without a limit, so that nothing else ends a wait; the limit of the test is the bound. */
#include <string.h>
#include "harness/harness.h"
#include <tutti/tutti.h>

#define OK(call)                                                                                       \
    do {                                                                                               \
        if ((call) != TUTTI_OK)                                                                        \
            fail_msg("%s: %s", #call, tutti_last_error());                                             \
    } while (0)

enum { READY, GONE };

static void expect_aborted(tutti_status st, const char *words)
{
    if (st != TUTTI_E_ABORTED || strstr(tutti_last_error(), words) == NULL)
        fail_msg("%s without '%s': %s", tutti_status_name(st), words, tutti_last_error());
}

/* A group of all ranks that nothing but a failure ends. */
static tutti_group *patient_group(void)
{
    tutti_group_options opts = TUTTI_GROUP_OPTIONS;
    tutti_group        *group = NULL;

    opts.timeout_ms = TUTTI_INFINITE;
    OK(tutti_new_group(NULL, 0, &opts, &group));
    return group;
}

/* Nobody leaves before everybody has seen what it came to see. */
static void leave_together(tt_ctx *t)
{
    tt_post(t, GONE);
    tt_await(t, GONE, (uint32_t)t->size);
}

static void an_abort_ends_the_waits_of_others(tt_ctx *t)
{
    tutti_group *group = patient_group();
    float        x = 1.0f;

    OK(tutti_barrier(t->group));
    if (t->rank == 0) {
        tt_await(t, READY, (uint32_t)t->size - 1);
        OK(tutti_abort_process_group(group));
    } else {
        tt_post(t, READY);
        expect_aborted(t->rank == 1 ? tutti_all_reduce(TUTTI_SPAN(&x, 1), TUTTI_SUM, group)
                                    : tutti_recv(TUTTI_SPAN(&x, 1), 0, 0, group, NULL),
                       "rank 0");
    }
    expect_aborted(tutti_barrier(group), "finished since");
    OK(tutti_barrier(t->group)); /* the world goes on */
    leave_together(t);
}

static void an_abort_ends_own_works(tt_ctx *t)
{
    tutti_group *group = patient_group();
    float        x[4] = { 0 };
    tutti_work  *works[3] = { NULL };
    int          i;

    OK(tutti_barrier(t->group));
    if (t->rank == 0) {
        OK(tutti_all_reduce_async(TUTTI_SPAN(&x[0], 1), TUTTI_SUM, group, &works[0]));
        OK(tutti_all_reduce_async(TUTTI_SPAN(&x[1], 1), TUTTI_SUM, group, &works[1]));
        OK(tutti_irecv(TUTTI_SPAN(&x[2], 1), 1, 0, group, &works[2]));
        OK(tutti_abort_process_group(group));
        OK(tutti_abort_process_group(group)); /* again does no harm */
        for (i = 0; i < 3; i++) {
            expect_aborted(tutti_work_wait_for(works[i], TUTTI_INFINITE), "");
            tutti_work_free(works[i]);
        }
        expect_aborted(tutti_send(TUTTI_SPAN(&x[3], 1), 1, 0, group), "tutti_abort_process_group");
    }
    OK(tutti_barrier(t->group));
    OK(tutti_destroy_process_group(group));
    leave_together(t);
}

static void count_aborts(const tutti_op_event *event, void *ctx)
{
    if (event->status == TUTTI_E_ABORTED)
        ++*(int *)ctx;
}

/* Of a world, its groups end, too; hooks of both are called. */
static void the_groups_of_a_world_end_with_it(tt_ctx *t)
{
    tutti_group *group = patient_group();
    int          calls[2] = { 0 }, id;

    OK(tutti_register_hook(group, TUTTI_HOOK_ABORT, count_aborts, &calls[0], &id));
    OK(tutti_register_hook(t->group, TUTTI_HOOK_ABORT, count_aborts, &calls[1], &id));
    OK(tutti_barrier(t->group));
    if (t->rank == 0) {
        tt_await(t, READY, (uint32_t)t->size - 1);
        OK(tutti_abort_process_group(t->group));
        assert_true(calls[0] == 1 && calls[1] == 1);
        expect_aborted(tutti_barrier(group), "tutti_abort_process_group");
    } else {
        tt_post(t, READY);
        expect_aborted(tutti_barrier(group), "rank 0");
    }
    expect_aborted(tutti_barrier(t->group), "");
    leave_together(t);
}

static void what_cannot_be_aborted(tt_ctx *t)
{
    (void)t;
    OK(tutti_abort_process_group(TUTTI_NON_MEMBER));
    assert_int_equal(tutti_abort_process_group(TUTTI_NO_GROUP), TUTTI_E_STATE);
    assert_null(tutti_current_group());
    assert_int_equal(tutti_abort_process_group(NULL), TUTTI_E_STATE);
}

#define EVERYWHERE(body, ...)                                                                          \
    TT_TEST(body, .transports = "shm,tcp,threads", __VA_ARGS__), TT_TEST(body, .hosts = 2, __VA_ARGS__)

int main(void)
{
    static const tt_test tests[] = {
        EVERYWHERE(an_abort_ends_the_waits_of_others, .ranks = 3),
        EVERYWHERE(an_abort_ends_own_works, .ranks = 2),
        EVERYWHERE(the_groups_of_a_world_end_with_it, .ranks = 2),
        TT_TEST(what_cannot_be_aborted, .ranks = 1, .init = TT_INIT_NONE),
    };

    return tt_main(tests, sizeof tests / sizeof tests[0]);
}
