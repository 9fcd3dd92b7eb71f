/* SPDX-License-Identifier: BSD-3-Clause
 *
 * exit_test.c
 * Goal    however a process with a world ends, it ends: at once, without a crash, and its peers hear of it: that it has
 *         left, if it destroyed its world, and that it is gone, if it did not.
 * Method  rank 1 leaves its body by each way there is, with nothing, with works, or with callbacks under way; what is
 *         borrowed meanwhile is static. Rank 0 waits for it without a limit. The harness sees how rank 1 ended. */
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "harness/harness.h"
#include <tutti/tutti.h>

#if defined(__SANITIZE_THREAD__)
enum { THREADS_OF_OTHERS = 1 }; /* the sanitizer's keeps the process, whatever we do */
#else
enum { THREADS_OF_OTHERS = 0 };
#endif

enum { LEAVER = 1, READY = TT_MARKS - 1, BEGUN = TT_MARKS - 2, BOUND_MS = 3000, WORKS = 4 };

#define OK(call)                                                                                       \
    do {                                                                                               \
        if ((call) != TUTTI_OK)                                                                        \
            fail_msg("%s: %s", #call, tutti_last_error());                                             \
    } while (0)

/* A process that ends in the midst of things leaves them: a search for leaks finds nothing that is wrong. */
const char *__lsan_default_options(void);
const char *__lsan_default_options(void)
{
    return "detect_leaks=0";
}

/* Still in use when the process ends. */
static float       lent[WORKS];
static tutti_work *works[WORKS];

static int64_t now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static tutti_group *patient_group(void)
{
    tutti_group_options opts = TUTTI_GROUP_OPTIONS;
    tutti_group        *group = NULL;

    opts.timeout_ms = TUTTI_INFINITE;
    OK(tutti_new_group(NULL, 0, &opts, &group));
    return group;
}

/* Rank 0's part: whom it waits for ends. */
static void see_it_go(tt_ctx *t, tutti_group *group, bool has_left)
{
    float        x = 0.0f;
    int64_t      start;
    tutti_status st;

    tt_await(t, READY, 1);
    start = now_ms();
    st = tutti_recv(TUTTI_SPAN(&x, 1), LEAVER, 77, group, NULL);
    if (st != TUTTI_E_PEER || strstr(tutti_last_error(), "rank 1") == NULL)
        fail_msg("%s: %s", tutti_status_name(st), tutti_last_error());
    assert_true(now_ms() - start < BOUND_MS);
    if (strcmp(t->transport, "shm") == 0 && strcmp(t->addr, "127.0.0.1") == 0 &&
        (strstr(tutti_last_error(), "has left") != NULL) != has_left)
        fail_msg("it %s, but: %s", has_left ? "has left" : "is gone", tutti_last_error());
}

/* Rank 1 comes back from here, in the midst of what a program does, to leave; rank 0 comes back when it has gone. */
static bool is_leaver(tt_ctx *t, bool leaves_well)
{
    tutti_group *group = patient_group();
    float        x = 1.0f;

    OK(tutti_all_reduce(TUTTI_SPAN(&x, 1), TUTTI_SUM, group));
    tt_post(t, BEGUN);
    tt_await(t, BEGUN, (uint32_t)t->size); /* nobody is in the sum any more */
    if (t->rank != LEAVER) {
        see_it_go(t, group, leaves_well);
        return false;
    }
    tt_post(t, READY);
    return true;
}

/* ---- nothing under way ---- */

static void by_exit(tt_ctx *t)
{
    if (is_leaver(t, false))
        exit(0);
}

static void by_underscore_exit(tt_ctx *t)
{
    if (is_leaver(t, false))
        _exit(0);
}

static void by_quick_exit(tt_ctx *t)
{
    if (is_leaver(t, false))
        quick_exit(0);
}

static void by_a_signal(tt_ctx *t)
{
    if (is_leaver(t, false))
        raise(SIGTERM);
}

static void by_the_end_of_main(tt_ctx *t)
{
    if (THREADS_OF_OTHERS)
        skip();
    if (is_leaver(t, false))
        pthread_exit(NULL);
}

static void *end_the_process(void *ctx)
{
    (void)ctx;
    exit(0);
}

static void by_exit_of_another_thread(tt_ctx *t)
{
    pthread_t thread;

    if (!is_leaver(t, false))
        return;
    assert_int_equal(pthread_create(&thread, NULL, end_the_process, NULL), 0);
    pthread_join(thread, NULL);
}

/* Threads of the program go on after main, with the world, and the process ends with the last. */
static void *go_on(void *ctx)
{
    tt_ctx *t = ctx;
    float   x = 1.0f;

    if (tutti_all_reduce(TUTTI_SPAN(&x, 1), TUTTI_SUM, NULL) != TUTTI_OK || x != 2.0f)
        _exit(TT_FAILED);
    tt_await(t, BEGUN, 1); /* rank 0 is not in the sum any more */
    tt_post(t, READY);
    return NULL;
}

static void after_the_end_of_main(tt_ctx *t)
{
    tutti_group *group = patient_group();
    static tt_ctx kept;
    pthread_t    thread;
    float        x = 1.0f;

    if (THREADS_OF_OTHERS)
        skip();
    if (t->rank != LEAVER) {
        OK(tutti_all_reduce(TUTTI_SPAN(&x, 1), TUTTI_SUM, t->group));
        tt_post(t, BEGUN);
        see_it_go(t, group, false);
        return;
    }
    kept = *t;
    assert_int_equal(pthread_create(&thread, NULL, go_on, &kept), 0);
    pthread_exit(NULL);
}

/* ---- destroyed ---- */

static void destroyed_then_exit(tt_ctx *t)
{
    if (!is_leaver(t, true))
        return;
    OK(tutti_destroy_process_group(NULL));
    assert_int_equal(tutti_destroy_process_group(NULL), TUTTI_E_STATE); /* twice is said, and does no harm */
    assert_int_equal(tutti_barrier(NULL), TUTTI_E_STATE);
    exit(0);
}

static void destroyed_then_end_of_main(tt_ctx *t)
{
    if (THREADS_OF_OTHERS)
        skip();
    if (!is_leaver(t, true))
        return;
    OK(tutti_destroy_process_group(NULL));
    pthread_exit(NULL);
}

static void destroy_at_exit(void)
{
    if (tutti_destroy_process_group(NULL) != TUTTI_OK)
        _exit(TT_FAILED);
}

static void destroyed_by_a_handler_of_exit(tt_ctx *t)
{
    if (!is_leaver(t, true))
        return;
    assert_int_equal(atexit(destroy_at_exit), 0);
    exit(0);
}

/* ---- something under way ---- */

static void on_end(tutti_work *work, void *ctx)
{
    (void)work;
    (void)ctx;
}

static void issue(tutti_group *group)
{
    int i;

    for (i = 0; i < WORKS; i++) {
        if (i % 2 == 0)
            OK(tutti_all_reduce_async(TUTTI_SPAN(&lent[i], 1), TUTTI_SUM, group, &works[i]));
        else
            OK(tutti_irecv(TUTTI_SPAN(&lent[i], 1), 0, 5, group, &works[i]));
        OK(tutti_work_then(works[i], on_end, NULL));
    }
}

static void *wait_inside(void *group)
{
    static float x;

    (void)tutti_all_reduce(TUTTI_SPAN(&x, 1), TUTTI_SUM, group);
    return NULL;
}

/* Works of a third group, with callbacks, and a thread that waits inside of a collective of a fourth. */
static bool is_busy_leaver(tt_ctx *t, bool leaves_well)
{
    tutti_group *group = patient_group();
    tutti_group *other = patient_group();
    pthread_t    thread;

    if (!is_leaver(t, leaves_well))
        return false;
    issue(group);
    assert_int_equal(pthread_create(&thread, NULL, wait_inside, other), 0);
    pthread_detach(thread);
    return true;
}

static void busy_by_exit(tt_ctx *t)
{
    if (is_busy_leaver(t, false))
        exit(0);
}

static void busy_by_underscore_exit(tt_ctx *t)
{
    if (is_busy_leaver(t, false))
        _exit(0);
}

static void busy_by_a_signal(tt_ctx *t)
{
    if (is_busy_leaver(t, false))
        raise(SIGTERM);
}

static void end_in_callback(tutti_work *work, void *ctx)
{
    (void)work;
    (void)ctx;
    exit(0);
}

static void by_exit_inside_of_a_callback(tt_ctx *t)
{
    tutti_group *group = patient_group();
    sigset_t     none;

    if (!is_leaver(t, false))
        return;
    issue(group);
    OK(tutti_work_then(works[1], end_in_callback, NULL));
    OK(tutti_abort_process_group(group));
    sigemptyset(&none);
    for (;;)
        sigsuspend(&none);
}

#define EVERYWHERE(body, ...) TT_TEST(body, .transports = "shm,tcp", __VA_ARGS__), TT_TEST(body, .hosts = 2, __VA_ARGS__)

int main(void)
{
    static const tt_test tests[] = {
        EVERYWHERE(by_exit, .ranks = 2),
        EVERYWHERE(by_underscore_exit, .ranks = 2),
        TT_TEST(by_quick_exit, .ranks = 2),
        EVERYWHERE(by_a_signal, .ranks = 2, .dies = LEAVER),
        EVERYWHERE(by_the_end_of_main, .ranks = 2),
        TT_TEST(by_exit_of_another_thread, .ranks = 2),
        TT_TEST(after_the_end_of_main, .ranks = 2, .transports = "shm,tcp"),
        EVERYWHERE(destroyed_then_exit, .ranks = 2),
        EVERYWHERE(destroyed_then_end_of_main, .ranks = 2),
        TT_TEST(destroyed_by_a_handler_of_exit, .ranks = 2, .transports = "shm,tcp"),
        EVERYWHERE(busy_by_exit, .ranks = 2),
        EVERYWHERE(busy_by_underscore_exit, .ranks = 2),
        EVERYWHERE(busy_by_a_signal, .ranks = 2, .dies = LEAVER),
        TT_TEST(by_exit_inside_of_a_callback, .ranks = 2, .transports = "shm,tcp"),
    };

    return tt_main(tests, sizeof tests / sizeof tests[0]);
}
