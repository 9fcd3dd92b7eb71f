/* SPDX-License-Identifier: BSD-3-Clause
 *
 * fork_test.c
 * Goal    after a fork the parent goes on as if nothing had been; in the child every call on what it inherited fails
 *         at once, in words, and ends nothing of the parent's; a child may join a world of its own; a child that
 *         lives on does not hide the death of its parent from the peers.
 * Method  real forks in the midst of operations. A child reports by its exit code, and ends through exit(), so that
 *         handlers and destructors run in it; its parent then uses all that the child touched. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "harness/harness.h"
#include <tutti/tutti.h>

#if defined(__SANITIZE_THREAD__)
enum { CHILDREN_HAVE_THREADS = 0 }; /* a thread sanitizer ends a child of a process with threads that starts one */
#else
enum { CHILDREN_HAVE_THREADS = 1 };
#endif

enum { READY = TT_MARKS - 1, CHILD = TT_MARKS - 2, OVER = TT_MARKS - 3, DIED = TT_MARKS - 4, VICTIM = 1 };

#define OK(call)                                                                                       \
    do {                                                                                               \
        if ((call) != TUTTI_OK)                                                                        \
            fail_msg("%s: %s", #call, tutti_last_error());                                             \
    } while (0)

/* A child leaves what it inherited: a search for leaks finds nothing that is wrong. */
const char *__lsan_default_options(void);
const char *__lsan_default_options(void)
{
    return "detect_leaks=0";
}

static int64_t now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void check_sum(tt_ctx *t)
{
    float x = 1.0f;

    OK(tutti_all_reduce(TUTTI_SPAN(&x, 1), TUTTI_SUM, t->group));
    assert_true(x == (float)t->size);
}

/* Run child(arg) in a child, and wait for it: false if it fails. */
static bool run_child(bool (*child)(void *arg), void *arg)
{
    const pid_t pid = fork();
    int         status = -1;

    if (pid == 0)
        exit(child(arg) ? 0 : 1);
    return pid > 0 && waitpid(pid, &status, 0) == pid && status == 0;
}

/* ---- what was inherited is refused ---- */

typedef struct inheritance {
    tutti_group  *group; /* NULL: the world */
    tutti_group  *part;
    tutti_work   *work;
    tutti_window *window;
    tutti_store  *store;
    tutti_future *future;
    int           peer;
} inheritance;

static void on_end(tutti_work *work, void *ctx)
{
    (void)work;
    (void)ctx;
}

static void on_hook(const tutti_op_event *event, void *ctx)
{
    (void)event;
    (void)ctx;
}

#define REFUSED(call)                                                                                  \
    do {                                                                                               \
        const tutti_status refused_st = (call);                                                        \
        if (refused_st != TUTTI_E_STATE || strstr(tutti_last_error(), "forked") == NULL) {             \
            fprintf(stderr, "%s: %s: %s\n", #call, tutti_status_name(refused_st), tutti_last_error()); \
            return false;                                                                              \
        }                                                                                              \
    } while (0)

#define TRUE(what)                                                                                     \
    do {                                                                                               \
        if (!(what)) {                                                                                 \
            fprintf(stderr, "%s is not so\n", #what);                                                  \
            return false;                                                                              \
        }                                                                                              \
    } while (0)

static bool groups_are_refused(const inheritance *in, tutti_group *group)
{
    float        x[2] = { 1.0f, 2.0f };
    tutti_span   span = TUTTI_SPAN(x, 2);
    tutti_group *made = NULL;
    tutti_work  *work = NULL;
    tutti_bytes  bytes = { .data = NULL };
    tutti_window *window = NULL;
    tutti_p2p_op  op = { .is_send = true, .span = TUTTI_SPAN(x, 1), .peer = in->peer };
    int           id = 0;

    REFUSED(tutti_all_reduce(TUTTI_SPAN(x, 2), TUTTI_SUM, group));
    REFUSED(tutti_all_reduce_async(TUTTI_SPAN(x, 2), TUTTI_SUM, group, &work));
    REFUSED(tutti_broadcast(TUTTI_SPAN(x, 2), 0, group));
    REFUSED(tutti_barrier(group));
    REFUSED(tutti_monitored_barrier(group, 1000, true));
    REFUSED(tutti_send(TUTTI_SPAN(x, 1), in->peer, 0, group));
    REFUSED(tutti_recv(TUTTI_SPAN(x, 1), in->peer, 0, group, NULL));
    REFUSED(tutti_irecv(TUTTI_SPAN(x, 1), in->peer, 0, group, &work));
    REFUSED(tutti_batch_isend_irecv(&op, 1, group, &work));
    REFUSED(tutti_coalescing_begin(group));
    REFUSED(tutti_send_object_list(&bytes, 1, in->peer, 0, group));
    REFUSED(tutti_window_create(&span, group, &window));
    REFUSED(tutti_split_group_by_color(group, 0, NULL, &made));
    REFUSED(tutti_register_hook(group, TUTTI_HOOK_ABORT, on_hook, NULL, &id));
    REFUSED(tutti_set_timeout(group, 1000));
    REFUSED(tutti_abort_process_group(group));
    REFUSED(tutti_destroy_process_group(group));
    TRUE(tutti_get_rank(group) == -1 && tutti_get_world_size(group) == -1);
    return true;
}

static bool works_are_refused(const inheritance *in)
{
    double ms;
    int    index = -1;

    REFUSED(tutti_work_wait(in->work));
    REFUSED(tutti_work_wait_for(in->work, 10));
    REFUSED(tutti_work_status(in->work));
    REFUSED(tutti_work_then(in->work, on_end, NULL));
    REFUSED(tutti_work_duration(in->work, &ms));
    REFUSED(tutti_wait_all(&in->work, 1, 10));
    REFUSED(tutti_wait_any(&in->work, 1, 10, &index));
    REFUSED(tutti_future_wait(in->future, 10));
    REFUSED(tutti_future_set_result(in->future, NULL, NULL));
    TRUE(tutti_work_is_completed(in->work) && tutti_work_source_rank(in->work) == -1);
    tutti_work_free(in->work);
    tutti_future_free(in->future);
    return true;
}

static bool stores_are_refused(const inheritance *in)
{
    tutti_init_options opts = TUTTI_INIT_OPTIONS;
    tutti_store       *view = NULL;
    tutti_group       *made = NULL;
    tutti_bytes        value = { .data = NULL };

    REFUSED(tutti_store_set(in->store, "k", "v", 1));
    REFUSED(tutti_store_get(in->store, "k", 10, &value));
    REFUSED(tutti_store_barrier(in->store, "b", 1, 10));
    REFUSED(tutti_store_clone(in->store, &view));
    REFUSED(tutti_prefix_store_open("p", in->store, &view));
    opts.store = in->store;
    opts.rank = 0;
    opts.world_size = 1;
    REFUSED(tutti_create_process_group(&opts, &made));
    tutti_store_close(in->store);
    return true;
}

static bool all_is_refused(void *arg)
{
    const inheritance *in = arg;
    float              x = 1.0f;
    tutti_group       *made = NULL;
    const int64_t      start = now_ms();

    TRUE(groups_are_refused(in, NULL) && groups_are_refused(in, in->part));
    TRUE(works_are_refused(in) && stores_are_refused(in));
    REFUSED(tutti_new_group(NULL, 0, NULL, &made));
    REFUSED(tutti_window_put(in->window, TUTTI_SPAN(&x, 1), in->peer, 0));
    REFUSED(tutti_window_free(in->window));
    TRUE(!tutti_is_initialized() && tutti_current_group() == NULL);
    TRUE(now_ms() - start < 5000); /* at once: none has waited for its group's time-out */
    return true;
}

/* A lot is under way while the child looks at it, and is what it was when the child is gone. */
static void a_child_is_refused(tt_ctx *t)
{
    inheritance  in = { .peer = 1 - t->rank };
    float       *memory = NULL, x = 1.0f;
    tutti_span   span;

    OK(tutti_alloc(4 * sizeof *memory, (void **)&memory));
    span = TUTTI_SPAN(memory, 4);
    OK(tutti_new_group(NULL, 0, NULL, &in.part));
    OK(tutti_window_create(&span, in.part, &in.window));
    OK(tutti_hash_store_open(&in.store));
    OK(tutti_future_create(&in.future));
    check_sum(t);
    if (t->rank == 0)
        tt_await(t, READY, 1); /* the other one has forked with its works under way */
    OK(tutti_all_reduce_async(TUTTI_SPAN(&x, 1), TUTTI_SUM, t->group, &in.work));
    assert_true(run_child(all_is_refused, &in));
    tt_post(t, READY);
    OK(tutti_work_wait(in.work));
    assert_true(x == 2.0f);
    tutti_work_free(in.work);
    OK(tutti_store_set(in.store, "k", "v", 1));
    OK(tutti_window_put(in.window, TUTTI_SPAN(&x, 1), in.peer, 0));
    check_sum(t);
    OK(tutti_window_free(in.window));
    OK(tutti_destroy_process_group(in.part));
    tutti_future_free(in.future);
    tutti_store_close(in.store);
    tutti_free(memory);
}

/* ---- the parent ---- */

static bool does_nothing(void *arg)
{
    (void)arg;
    return true;
}

/* Messages, works and collectives go on around many forks. */
static void a_parent_goes_on(tt_ctx *t)
{
    enum { ROUNDS = 20, COUNT = 1 << 16 };
    float      *x = tt_floats(t, COUNT, 0.0f), y = 0.0f;
    tutti_work *works[2] = { NULL };
    int         round, i;

    for (round = 0; round < ROUNDS; round++) {
        for (i = 0; i < COUNT; i++)
            x[i] = 1.0f;
        OK(tutti_all_reduce_async(TUTTI_SPAN(x, COUNT), TUTTI_SUM, t->group, &works[0]));
        OK(tutti_irecv(TUTTI_SPAN(&y, 1), 1 - t->rank, round, t->group, &works[1]));
        if (round % 2 == t->rank)
            assert_true(run_child(does_nothing, NULL));
        OK(tutti_send(TUTTI_SPAN(&(float){ (float)round }, 1), 1 - t->rank, round, t->group));
        OK(tutti_wait_all(works, 2, 0));
        assert_true(x[0] == 2.0f && x[COUNT - 1] == 2.0f && y == (float)round);
        tutti_work_free(works[0]);
        tutti_work_free(works[1]);
    }
    check_sum(t);
}

/* ---- worlds of children ---- */

static bool join_own_world(void *arg)
{
    const tt_ctx      *t = arg;
    tutti_init_options opts = TUTTI_INIT_OPTIONS;
    char               url[512];
    float              x = 1.0f;

    snprintf(url, sizeof url, "file://%s/children?rank=%d&world_size=%d", t->dir, t->rank, t->size);
    opts.init_method = url;
    opts.timeout_ms = 15000;
    if (tutti_init_process_group(&opts) != TUTTI_OK ||
        tutti_all_reduce(TUTTI_SPAN(&x, 1), TUTTI_SUM, NULL) != TUTTI_OK || x != (float)t->size ||
        tutti_destroy_process_group(NULL) != TUTTI_OK) {
        fprintf(stderr, "%s\n", tutti_last_error());
        return false;
    }
    return true;
}

static void children_join_a_world_of_their_own(tt_ctx *t)
{
    check_sum(t);
    if (!CHILDREN_HAVE_THREADS)
        skip();
    assert_true(run_child(join_own_world, t));
    check_sum(t);
}

/* ---- a child that outlives its parent ---- */

/* Nothing of the library keeps it, so it needs no words: it waits for its end. It is not of its parent's process group, which the
 * harness ends with that one, and ends by itself when the test's time is over. */
static void live_on(tt_ctx *t)
{
    const pid_t pid = fork();

    if (pid != 0) {
        assert_true(pid > 0);
        assert_int_equal(setpgid(pid, pid), 0);
        atomic_store(&t->marks[CHILD], (uint32_t)pid);
        return;
    }
    alarm((unsigned)(t->limit_ms / 1000));
    tt_await(t, OVER, 1);
    _exit(0);
}

/* Wait for the end of a process that is nobody's child here. */
static void await_end(uint32_t pid)
{
    struct pollfd fd = { .fd = (int)syscall(SYS_pidfd_open, (pid_t)pid, 0), .events = POLLIN };

    if (fd.fd < 0) {
        assert_int_equal(errno, ESRCH);
        return;
    }
    while (poll(&fd, 1, -1) != 1)
        continue;
    (void)syscall(SYS_close, fd.fd); /* a thread sanitizer has not seen it opened, and takes its number for an older one's */
}

static void a_child_does_not_hide_a_death(tt_ctx *t)
{
    float        x = 1.0f;
    tutti_status st;

    check_sum(t);
    OK(tutti_send(TUTTI_SPAN(&x, 1), (t->rank + 1) % t->size, 0, t->group)); /* every connection is there */
    OK(tutti_recv(TUTTI_SPAN(&x, 1), (t->rank + 1) % t->size, 0, t->group, NULL));
    tt_post(t, READY);
    tt_await(t, READY, (uint32_t)t->size);
    if (t->rank == VICTIM) {
        live_on(t);
        atomic_store(&t->marks[DIED], (uint32_t)now_ms()); /* to fork may take a while */
        tt_die();
    }
    st = tutti_recv(TUTTI_SPAN(&x, 1), VICTIM, 1, t->group, NULL);
    tt_post(t, OVER);
    if (st != TUTTI_E_PEER || strstr(tutti_last_error(), "rank 1") == NULL)
        fail_msg("%s: %s", tutti_status_name(st), tutti_last_error());
    assert_true((uint32_t)now_ms() - atomic_load(&t->marks[DIED]) < 3000);
    if (atomic_load(&t->marks[CHILD]) != 0)
        await_end(atomic_load(&t->marks[CHILD]));
}

/* ---- exec ---- */

/* What a program that was started finds open. */
static void a_program_inherits_nothing(tt_ctx *t)
{
    char  line[512];
    FILE *list;

    check_sum(t);
    list = popen("for f in /proc/self/fd/*; do readlink $f; done; true", "r");
    assert_non_null(list);
    while (fgets(line, sizeof line, list) != NULL)
        if (strstr(line, "socket:") != NULL || strstr(line, "memfd:") != NULL || strstr(line, "[event") != NULL)
            fail_msg("a program that was started has: %s", line);
    assert_int_equal(pclose(list), 0);
    check_sum(t);
}

#define EVERYWHERE(body, ...) TT_TEST(body, .transports = "shm,tcp", __VA_ARGS__), TT_TEST(body, .hosts = 2, __VA_ARGS__)

int main(void)
{
    static const tt_test tests[] = {
        EVERYWHERE(a_child_is_refused, .ranks = 2),
        EVERYWHERE(a_parent_goes_on, .ranks = 2, .limit_ms = 40000),
        TT_TEST(children_join_a_world_of_their_own, .ranks = 2, .transports = "shm,tcp", .limit_ms = 40000),
        EVERYWHERE(a_child_does_not_hide_a_death, .ranks = 2, .dies = VICTIM),
        EVERYWHERE(a_program_inherits_nothing, .ranks = 2),
    };

    return tt_main(tests, sizeof tests / sizeof tests[0]);
}
