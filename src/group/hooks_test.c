/* SPDX-License-Identifier: BSD-3-Clause
 *
 * hooks_test.c
 * Goal    hooks are called in their order, around every operation, with what it reads and writes; they can
 *         be removed, also by themselves; works have names, numbers and times; at the debug level "detail"
 *         every operation has its lines.
 * Method  ranks as threads; each rank's hooks write into a log of its own. */
#include "fake_backend.h"

#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <tutti/debug.h>
#include <tutti/hooks.h>
#include <tutti/private.h>
#include <tutti/sparse.h>

enum { LONG_MS = 30000, ENTRIES_MAX = 32 };

/* What hooks of one rank were told. */
typedef struct entry {
    tutti_op_event event;
    char           op[64];
    char           name[TUTTI_COMM_NAME_MAX];
    int64_t        in_count, out_count;
} entry;

typedef struct hook_log {
    tti_mutex lock;
    tti_event changed;
    int       n;
    entry     entries[ENTRIES_MAX];
} hook_log;

static int64_t count_spans(const tutti_span *spans, int n)
{
    int64_t sum = 0;
    int     i;

    for (i = 0; i < n; i++)
        sum += spans[i].count;
    return sum;
}

static void keep(const tutti_op_event *event, void *ctx)
{
    hook_log *log = ctx;
    entry    *e;

    tti_lock(&log->lock);
    if (CHECK(log->n < ENTRIES_MAX)) {
        e = &log->entries[log->n++];
        e->event = *event;
        snprintf(e->op, sizeof e->op, "%s", event->op);
        snprintf(e->name, sizeof e->name, "%s", event->name);
        e->in_count = count_spans(event->ins, event->n_ins);
        e->out_count = count_spans(event->outs, event->n_outs);
    }
    tti_event_signal(tti_port_system(), &log->changed);
    tti_unlock(&log->lock);
}

static void await_entries(hook_log *log, int n)
{
    const int64_t deadline_ns = tti_now_ns() + LONG_MS * TTI_MS;
    uint32_t      seen;

    tti_lock(&log->lock);
    while (log->n < n && tti_now_ns() < deadline_ns) {
        seen = tti_event_now(&log->changed);
        tti_unlock(&log->lock);
        tti_event_wait(tti_port_system(), &log->changed, seen, deadline_ns);
        tti_lock(&log->lock);
    }
    CHECK(log->n == n);
    tti_unlock(&log->lock);
}

static void hook_all(hook_log *log)
{
    int kind, id = 0;

    for (kind = 0; kind < TUTTI_HOOK_KIND_COUNT; kind++) {
        CHECK(tutti_register_hook(NULL, (tutti_hook_kind)kind, keep, log, &id) == TUTTI_OK);
        CHECK(id == kind + 1);
    }
}

static bool is(const hook_log *log, int i, tutti_hook_kind hook, const char *op, uint64_t id, uint64_t seq)
{
    const entry *e = &log->entries[i];

    return e->event.hook == hook && strcmp(e->op, op) == 0 && e->event.id == id && e->event.seq == seq;
}

static void blocking_collectives(fake_rank *r)
{
    hook_log     *log = calloc(1, sizeof *log);
    int32_t       x[3] = { 1, 2, 3 }, all[12] = { 0 };
    tutti_span    outs[4];
    const entry  *e;
    int           i;

    if (!CHECK(log != NULL))
        return;
    tti_mutex_init(&log->lock);
    CHECK(tutti_barrier(NULL) == TUTTI_OK); /* not seen: there are no hooks yet */
    hook_all(log);
    CHECK(tutti_all_reduce(TUTTI_SPAN(x, 3), TUTTI_SUM, NULL) == TUTTI_OK);
    for (i = 0; i < r->size; i++)
        outs[i] = TUTTI_SPAN(all + 3 * i, 3);
    CHECK(tutti_gather(r->rank == 1 ? outs : NULL, r->rank == 1 ? r->size : 0, TUTTI_SPAN(x, 3), 1, NULL) ==
          TUTTI_OK);
    CHECK(log->n == 6);
    CHECK(is(log, 0, TUTTI_HOOK_PRE, "all_reduce", 1, 2));
    CHECK(is(log, 1, TUTTI_HOOK_POST, "all_reduce", 1, 2));
    CHECK(is(log, 2, TUTTI_HOOK_COMPLETION, "all_reduce", 1, 2));
    CHECK(is(log, 3, TUTTI_HOOK_PRE, "gather", 2, 3));
    e = &log->entries[0];
    CHECK(e->in_count == 3 && e->out_count == 3 && e->event.peer == -1 && !e->event.is_async);
    CHECK(e->event.reduce.kind == TUTTI_SUM.kind && strcmp(e->name, "fake:all_reduce") == 0);
    CHECK(log->entries[2].event.duration_ns >= 0);
    e = &log->entries[3];
    CHECK(e->event.peer == 1 && e->in_count == 3 && e->out_count == (r->rank == 1 ? 3 * r->size : 0));
    tti_mutex_release(&log->lock);
    free(log);
}

static void test_blocking(void **state)
{
    (void)state;
    assert_int_equal(fake_ranks(3, blocking_collectives, NULL), 0);
}

/* Every operation, collective or message, blocking or not, has its hooks; names can be given. */
static void asynchronous(fake_rank *r)
{
    hook_log   *log = calloc(1, sizeof *log);
    int32_t     x = 1;
    tutti_work *work = NULL;

    if (!CHECK(log != NULL))
        return;
    tti_mutex_init(&log->lock);
    hook_all(log);
    CHECK(tutti_record_comm_begin("step 7") == TUTTI_OK);
    CHECK(tutti_all_reduce_async(TUTTI_SPAN(&x, 1), TUTTI_SUM, NULL, &work) == TUTTI_OK);
    CHECK(tutti_record_comm_end() == TUTTI_OK);
    CHECK(strcmp(tutti_work_name(work), "step 7") == 0 && tutti_work_sequence(work) == 1);
    CHECK(tutti_work_wait(work) == TUTTI_OK);
    await_entries(log, 3);
    CHECK(is(log, 0, TUTTI_HOOK_PRE, "all_reduce", 1, 1) && log->entries[0].event.work == NULL);
    CHECK(log->entries[0].event.is_async && strcmp(log->entries[0].name, "step 7") == 0);
    CHECK(is(log, 1, TUTTI_HOOK_POST, "all_reduce", 1, 1) || is(log, 2, TUTTI_HOOK_POST, "all_reduce", 1, 1));
    CHECK(log->entries[2].event.work == work && log->entries[2].event.duration_ns == -1);
    tutti_work_free(work);
    if (r->rank == 0) {
        CHECK(tutti_isend(TUTTI_SPAN(&x, 1), 1, 5, NULL, &work) == TUTTI_OK);
        CHECK(strcmp(tutti_work_name(work), "fake:send") == 0 && tutti_work_sequence(work) == 0);
        CHECK(tutti_work_wait(work) == TUTTI_OK);
        await_entries(log, 6);
        CHECK(is(log, 3, TUTTI_HOOK_PRE, "isend", 2, 0) && log->entries[3].event.peer == 1);
        CHECK(log->entries[3].event.tag == 5 && log->entries[3].in_count == 1);
        CHECK(log->entries[5].event.hook == TUTTI_HOOK_COMPLETION);
        tutti_work_free(work);
    } else {
        CHECK(tutti_recv(TUTTI_SPAN(&x, 1), TUTTI_ANY_SOURCE, 5, NULL, NULL) == TUTTI_OK);
        CHECK(log->n == 6 && is(log, 5, TUTTI_HOOK_COMPLETION, "recv", 2, 0));
        CHECK(log->entries[3].event.peer == -1 && log->entries[3].out_count == 1);
        CHECK(strcmp(log->entries[3].name, "fake:recvAnySource") == 0);
    }
    CHECK(tutti_barrier(NULL) == TUTTI_OK);
    tti_mutex_release(&log->lock);
    free(log);
}

static void test_asynchronous(void **state)
{
    (void)state;
    assert_int_equal(fake_ranks(2, asynchronous, NULL), 0);
}

/* A failure reaches post and abort hooks and no completion; its words stay the caller's. */
static void failing(fake_rank *r)
{
    hook_log *log = calloc(1, sizeof *log);
    int       i, aborts = 0;

    (void)r;
    if (!CHECK(log != NULL))
        return;
    tti_mutex_init(&log->lock);
    hook_all(log);
    CHECK(tutti_barrier(NULL) == TUTTI_E_BACKEND);
    CHECK(tutti_last_error()[0] != '\0');
    for (i = 0; i < log->n; i++) {
        CHECK(log->entries[i].event.hook != TUTTI_HOOK_COMPLETION);
        if (log->entries[i].event.hook == TUTTI_HOOK_ABORT) {
            aborts++;
            CHECK(strcmp(log->entries[i].op, "barrier #1") == 0);
            CHECK(log->entries[i].event.status == TUTTI_E_BACKEND);
        }
        if (log->entries[i].event.hook == TUTTI_HOOK_POST)
            CHECK(log->entries[i].event.status == TUTTI_E_BACKEND);
    }
    CHECK(aborts == 1 && log->n == 3);
    tti_mutex_release(&log->lock);
    free(log);
}

static void test_failure(void **state)
{
    (void)state;
    fake_fail_at(1, TUTTI_E_BACKEND);
    assert_int_equal(fake_ranks(2, failing, NULL), 0);
}

/* ---- removing ---- */

typedef struct removal {
    int calls;
    int id;
    int destroyed;
} removal;

/* Removes itself, and may use the group: nobody sees that. */
static void remove_self(const tutti_op_event *event, void *ctx)
{
    removal *r = ctx;

    (void)event;
    r->calls++;
    assert_int_equal(tutti_remove_hook(NULL, r->id), TUTTI_OK);
    assert_int_equal(tutti_remove_hook(NULL, r->id), TUTTI_E_ARG);
    assert_int_equal(tutti_barrier(NULL), TUTTI_OK);
    r->destroyed = tutti_destroy_process_group(NULL) == TUTTI_OK;
}

static void test_removal(void **state)
{
    tutti_group *world = fake_world_of_one(LONG_MS);
    removal      first = { 0 }, second = { 0 };
    int          id = 0;

    (void)state;
    tutti_use_group(world);
    assert_int_equal(tutti_register_hook(NULL, TUTTI_HOOK_PRE, NULL, NULL, &id), TUTTI_E_ARG);
    assert_int_equal(tutti_register_hook(NULL, TUTTI_HOOK_KIND_COUNT, keep, NULL, &id), TUTTI_E_ARG);
    assert_int_equal(tutti_register_hook(NULL, TUTTI_HOOK_PRE, keep, NULL, NULL), TUTTI_E_ARG);
    assert_int_equal(tutti_register_hook(NULL, TUTTI_HOOK_PRE, remove_self, &first, &first.id), TUTTI_OK);
    assert_int_equal(tutti_register_hook(NULL, TUTTI_HOOK_PRE, remove_self, &second, &second.id), TUTTI_OK);
    assert_int_equal(tutti_barrier(NULL), TUTTI_OK);
    assert_int_equal(tutti_barrier(NULL), TUTTI_OK);
    assert_int_equal(first.calls, 1);
    assert_int_equal(second.calls, 1); /* the way past a hook that is gone */
    assert_false(first.destroyed);
    assert_int_equal(tutti_remove_hook(NULL, first.id), TUTTI_E_ARG);
    assert_int_equal(tutti_get_sequence_number(NULL), 4); /* two of the test's, one of each hook's */
    tutti_use_group(NULL);
    assert_int_equal(tutti_destroy_process_group(world), TUTTI_OK);
}

static _Atomic int  inside;
static _Atomic bool let_go;

static void linger(const tutti_op_event *event, void *ctx)
{
    (void)event;
    (void)ctx;
    atomic_store(&inside, 1);
    while (!atomic_load(&let_go))
        sched_yield();
    atomic_store(&inside, 2);
}

static void *barrier_of(void *arg)
{
    return tutti_barrier(arg) == TUTTI_OK ? arg : NULL;
}

static void *let_go_soon(void *arg)
{
    int i;

    for (i = 0; i < 1000; i++)
        sched_yield();
    atomic_store(&let_go, true);
    return arg;
}

/* Whoever removes a hook waits for those inside of it. */
static void test_removal_waits(void **state)
{
    tutti_group *world = fake_world_of_one(LONG_MS);
    pthread_t    caller, helper;
    void        *result = NULL;
    int          id = 0;

    (void)state;
    atomic_store(&inside, 0);
    atomic_store(&let_go, false);
    assert_int_equal(tutti_register_hook(world, TUTTI_HOOK_PRE, linger, NULL, &id), TUTTI_OK);
    assert_int_equal(pthread_create(&caller, NULL, barrier_of, world), 0);
    while (atomic_load(&inside) == 0)
        sched_yield();
    assert_int_equal(pthread_create(&helper, NULL, let_go_soon, NULL), 0);
    assert_int_equal(tutti_remove_hook(world, id), TUTTI_OK);
    assert_int_equal(atomic_load(&inside), 2);
    pthread_join(helper, NULL);
    pthread_join(caller, &result);
    assert_ptr_equal(result, world);
    assert_int_equal(tutti_destroy_process_group(world), TUTTI_OK);
}

/* A hook of one group that removes the one of another, when both are inside. */
typedef struct remover {
    tutti_group *own, *other;
    int          id, other_id;
    tutti_status st;
} remover;

static void remove_other(const tutti_op_event *event, void *ctx)
{
    remover *r = ctx;

    (void)event;
    atomic_fetch_add(&inside, 1);
    while (atomic_load(&inside) < 2)
        sched_yield();
    r->st = tutti_remove_hook(r->other, r->other_id);
}

static void test_hooks_remove_each_other(void **state)
{
    const int    members[] = { 0 };
    tutti_group *world = fake_world_of_one(LONG_MS);
    tutti_group *second = NULL;
    remover      a = { .own = world }, b = { .other = world };
    pthread_t    thread;
    void        *result = NULL;

    (void)state;
    tutti_use_group(world);
    assert_int_equal(tutti_new_group(members, 1, NULL, &second), TUTTI_OK);
    a.other = b.own = second;
    atomic_store(&inside, 0);
    assert_int_equal(tutti_register_hook(a.own, TUTTI_HOOK_PRE, remove_other, &a, &a.id), TUTTI_OK);
    assert_int_equal(tutti_register_hook(b.own, TUTTI_HOOK_PRE, remove_other, &b, &b.id), TUTTI_OK);
    a.other_id = b.id;
    b.other_id = a.id;
    assert_int_equal(pthread_create(&thread, NULL, barrier_of, world), 0);
    assert_int_equal(tutti_barrier(second), TUTTI_OK);
    pthread_join(thread, &result);
    assert_ptr_equal(result, world);
    assert_true(a.st == TUTTI_OK && b.st == TUTTI_OK);
    assert_int_equal(tutti_remove_hook(world, a.id), TUTTI_E_ARG); /* gone */
    tutti_use_group(NULL);
    assert_int_equal(tutti_destroy_process_group(world), TUTTI_OK);
}

/* An abort hook that uses the group is refused: it does not wait for the operation that it is told of. */
typedef struct user {
    tutti_group *group;
    tutti_status st;
    int          n_calls;
} user;

static void use_group(const tutti_op_event *event, void *ctx)
{
    user *u = ctx;

    (void)event;
    u->n_calls++;
    u->st = tutti_barrier(u->group);
}

static void test_abort_hook_uses_group(void **state)
{
    tutti_group *world = fake_world_of_one(LONG_MS);
    tutti_work  *work = NULL;
    user         u = { .group = world, .st = TUTTI_OK };
    int          id = 0;

    (void)state;
    assert_int_equal(tutti_register_hook(world, TUTTI_HOOK_ABORT, use_group, &u, &id), TUTTI_OK);
    fake_fail_at(1, TUTTI_E_BACKEND);
    assert_int_equal(tutti_barrier_async(world, &work), TUTTI_OK);
    assert_int_equal(tutti_work_wait(work), TUTTI_E_BACKEND);
    assert_int_equal(u.n_calls, 1);
    assert_int_equal(u.st, TUTTI_E_BACKEND);
    tutti_work_free(work);
    assert_int_equal(tutti_destroy_process_group(world), TUTTI_OK);
}

/* A sum of sparse tensors is one operation to hooks, and three numbers. */
static void sparse_sum(fake_rank *r)
{
    hook_log        *log = calloc(1, sizeof *log);
    int64_t          places[2] = { r->rank, 2 };
    int32_t          values[2] = { 1, 10 };
    tutti_sparse_coo mine = { .sparse_dim = 1, .sizes = { 4 }, .nnz = 2, .indices = places,
                              .values = TUTTI_SPAN(values, 2) };
    tutti_sparse_coo sum;

    if (!CHECK(log != NULL))
        return;
    tti_mutex_init(&log->lock);
    hook_all(log);
    if (CHECK(tutti_sparse_all_reduce(&mine, TUTTI_SUM, NULL, &sum) == TUTTI_OK)) {
        CHECK(sum.nnz == 3 && ((int32_t *)sum.values.data)[2] == 20);
        tutti_sparse_free(&sum);
    }
    CHECK(log->n == 3);
    CHECK(is(log, 0, TUTTI_HOOK_PRE, "sparse_all_reduce", 1, 1));
    CHECK(is(log, 2, TUTTI_HOOK_COMPLETION, "sparse_all_reduce", 1, 1));
    CHECK(log->entries[0].in_count == 2 && log->entries[0].event.n_outs == 0);
    CHECK(tutti_get_sequence_number(NULL) == 3);
    CHECK(tutti_barrier(NULL) == TUTTI_OK);
    tti_mutex_release(&log->lock);
    free(log);
}

static void test_sparse_sum(void **state)
{
    (void)state;
    assert_int_equal(fake_ranks(2, sparse_sum, NULL), 0);
}

/* ---- names, numbers, times ---- */

static void test_names(void **state)
{
    char long_name[TUTTI_COMM_NAME_MAX + 1];
    int  i;

    (void)state;
    memset(long_name, 'x', sizeof long_name);
    long_name[TUTTI_COMM_NAME_MAX] = '\0';
    assert_int_equal(tutti_record_comm_begin(NULL), TUTTI_E_ARG);
    assert_int_equal(tutti_record_comm_begin(""), TUTTI_E_ARG);
    assert_int_equal(tutti_record_comm_begin(long_name), TUTTI_E_ARG);
    for (i = 0; i < TUTTI_COMM_DEPTH_MAX; i++)
        assert_int_equal(tutti_record_comm_begin("name"), TUTTI_OK);
    assert_int_equal(tutti_record_comm_begin("name"), TUTTI_E_STATE);
    for (i = 0; i < TUTTI_COMM_DEPTH_MAX; i++)
        assert_int_equal(tutti_record_comm_end(), TUTTI_OK);
    assert_int_equal(tutti_record_comm_end(), TUTTI_E_STATE);
    assert_string_equal(tutti_work_name(NULL), "");
    assert_int_equal(tutti_work_sequence(NULL), 0);
}

static void test_times(void **state)
{
    tutti_group        *world = fake_world_of_one(LONG_MS), *timed = NULL;
    tutti_group_options opts = TUTTI_GROUP_OPTIONS;
    tutti_work         *work = NULL;
    double              ms = -1.0;

    (void)state;
    tutti_use_group(world);
    opts.enable_timing = true;
    assert_int_equal(tutti_new_group(NULL, 0, &opts, &timed), TUTTI_OK);
    fake_hold(true);
    assert_int_equal(tutti_barrier_async(timed, &work), TUTTI_OK);
    assert_int_equal(tutti_work_duration(work, &ms), TUTTI_E_STATE);
    fake_hold(false);
    assert_int_equal(tutti_work_wait(work), TUTTI_OK);
    assert_int_equal(tutti_work_duration(work, &ms), TUTTI_OK);
    assert_true(ms >= 0.0 && ms < LONG_MS);
    tutti_work_free(work);
    assert_int_equal(tutti_barrier_async(NULL, &work), TUTTI_OK);
    assert_int_equal(tutti_work_wait(work), TUTTI_OK);
    assert_int_equal(tutti_work_duration(work, &ms), TUTTI_E_UNSUPPORTED);
    assert_non_null(strstr(tutti_last_error(), "enable_timing"));
    tutti_work_free(work);
    tutti_use_group(NULL);
    assert_int_equal(tutti_destroy_process_group(world), TUTTI_OK);
}

/* ---- detail ---- */

static char traced[2048];

static void gather_lines(tutti_log_level level, const char *line, void *ctx)
{
    const char *words = strstr(line, "trace: ");

    (void)ctx;
    if (level == TUTTI_LOG_TRACE && words != NULL)
        snprintf(traced + strlen(traced), sizeof traced - strlen(traced), "%s\n", words + 7);
}

static void test_detail(void **state)
{
    int32_t      x[2] = { 1, 2 };
    tutti_group *world;

    (void)state;
    setenv("TUTTI_LOG", "trace", 1);
    assert_int_equal(tutti_set_debug_level(TUTTI_DEBUG_DETAIL), TUTTI_OK);
    assert_int_equal(tutti_log_set_sink("stderr", NULL, NULL), TUTTI_OK);
    assert_int_equal(tutti_log_set_sink("test", gather_lines, NULL), TUTTI_OK);
    world = fake_world_of_one(LONG_MS);
    assert_int_equal(tutti_all_reduce(TUTTI_SPAN(x, 2), TUTTI_SUM, world), TUTTI_OK);
    assert_int_equal(tutti_destroy_process_group(world), TUTTI_OK);
    assert_int_equal(tutti_log_set_sink("test", NULL, NULL), TUTTI_OK);
    assert_int_equal(tutti_log_restore_stderr(), TUTTI_OK);
    assert_int_equal(tutti_set_debug_level(TUTTI_DEBUG_OFF), TUTTI_OK);
    unsetenv("TUTTI_LOG");
    assert_non_null(
        strstr(traced, "all_reduce #1 (fake:all_reduce) on group '0' begins, reads 2 i32, writes 2 i32, hash "));
    assert_non_null(strstr(traced, "all_reduce #1 (fake:all_reduce) on group '0' is complete after "));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_blocking, fake_setup, fake_teardown),
        cmocka_unit_test_setup_teardown(test_asynchronous, fake_setup, fake_teardown),
        cmocka_unit_test_setup_teardown(test_failure, fake_setup, fake_teardown),
        cmocka_unit_test_setup_teardown(test_removal, fake_setup, fake_teardown),
        cmocka_unit_test_setup_teardown(test_removal_waits, fake_setup, fake_teardown),
        cmocka_unit_test_setup_teardown(test_hooks_remove_each_other, fake_setup, fake_teardown),
        cmocka_unit_test_setup_teardown(test_abort_hook_uses_group, fake_setup, fake_teardown),
        cmocka_unit_test_setup_teardown(test_sparse_sum, fake_setup, fake_teardown),
        cmocka_unit_test_setup_teardown(test_names, fake_setup, fake_teardown),
        cmocka_unit_test_setup_teardown(test_times, fake_setup, fake_teardown),
        cmocka_unit_test_setup_teardown(test_detail, fake_setup, fake_teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
