/* SPDX-License-Identifier: BSD-3-Clause
 *
 * one_pass_test.c
 * Goal    collectives on registered memory give what they give on ordinary memory; when one fails, no other process
 *         writes into the memory any more, not even one that was stopped in the middle of writing.
 * Method  Values: every rank computes what it must get. Failures: TUTTI_ALGO asks for this way; a page that
 *         the call may not touch stops or kills the process when the call comes to it. */
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
#include "harness/harness.h"
#include <tutti/tutti.h>

#define OK(call)                                                                                       \
    do {                                                                                               \
        if ((call) != TUTTI_OK)                                                                        \
            fail_msg("%s: %s", #call, tutti_last_error());                                             \
    } while (0)

enum { VICTIM = 1, TIMEOUT_MS = 4000, DEATH_MS = 1500, LARGE = 4 << 20, SMALL = 1 << 16, PAGE = 4096, BLOCK = 5000 };
enum { DONE_AT = 10, DIED_AT = 20, MET_AT = 30 }; /* counters of the harness that ranks share */

static int64_t now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static float *take(int64_t count)
{
    void *p = NULL;

    OK(tutti_alloc((size_t)count * sizeof(float), &p));
    return p;
}

static void fill(float *x, int64_t count, float value)
{
    int64_t i;

    for (i = 0; i < count; i++)
        x[i] = value;
}

static void expect_all(const float *x, int64_t count, float value)
{
    int64_t i;

    for (i = 0; i < count; i++)
        if (x[i] != value)
            fail_msg("element %lld is %g, not %g", (long long)i, x[i], value);
}

/* ---- values ---------------------------------------------------------------------------------------- */

/* What rank gives to the part of owner in turn k: no two are equal, all sums are exact. */
static float given(int rank, int owner, int k)
{
    return (float)(1 + rank * 64 + owner * 4 + k);
}

static float sum_of(int size, int owner, int k)
{
    float sum = 0.0f;
    int   r;

    for (r = 0; r < size; r++)
        sum += given(r, owner, k);
    return sum;
}

static void one_to_all_and_back(tt_ctx *t, float *x, int64_t count, int k)
{
    const int root = k % t->size;

    fill(x, count, given(t->rank, 0, k));
    OK(tutti_all_reduce(TUTTI_SPAN(x, count), TUTTI_SUM, t->group));
    expect_all(x, count, sum_of(t->size, 0, k));
    fill(x, count, given(t->rank, 0, k));
    OK(tutti_broadcast(TUTTI_SPAN(x, count), root, t->group));
    expect_all(x, count, given(root, 0, k));
    fill(x, count, given(t->rank, 0, k));
    OK(tutti_reduce(TUTTI_SPAN(x, count), root, TUTTI_SUM, t->group));
    expect_all(x, count, t->rank == root ? sum_of(t->size, 0, k) : given(t->rank, 0, k));
}

/* x has a part for each rank, y is one; they lie in one piece. */
static void parts_to_all(tt_ctx *t, float *x, float *y, int64_t count, int k)
{
    float *all = take(count * t->size);
    int    r;

    for (r = 0; r < t->size; r++)
        fill(x + r * count, count, given(t->rank, r, k));
    OK(tutti_reduce_scatter_tensor(TUTTI_SPAN(y, count), TUTTI_SPAN(x, count * t->size), TUTTI_SUM, t->group));
    expect_all(y, count, sum_of(t->size, t->rank, k));
    OK(tutti_all_to_all_single(TUTTI_SPAN(all, count * t->size), TUTTI_SPAN(x, count * t->size), NULL, NULL, t->group));
    for (r = 0; r < t->size; r++)
        expect_all(all + r * count, count, given(r, t->rank, k));
    OK(tutti_all_gather_into_tensor(TUTTI_SPAN(x, count * t->size), TUTTI_SPAN(y, count), t->group));
    for (r = 0; r < t->size; r++)
        expect_all(x + r * count, count, sum_of(t->size, r, k));
    OK(tutti_free(all));
}

static void values_are_right(tt_ctx *t)
{
    static const int64_t counts[] = { 1, 3000, BLOCK, 70001 };
    size_t               i;
    int                  k;

    for (i = 0; i < sizeof counts / sizeof counts[0]; i++)
        for (k = 0; k < 3; k++) {
            float *x = take(counts[i] * (t->size + 1) + 1);

            /* One element further each time: not at the beginning of a line. */
            one_to_all_and_back(t, x + k % 2, counts[i], k);
            parts_to_all(t, x + k % 2, x + k % 2 + counts[i] * t->size, counts[i], k);
            OK(tutti_free(x));
        }
}

static void works_are_right(tt_ctx *t)
{
    enum { N = 4 };
    float      *x = take((int64_t)N * BLOCK);
    tutti_work *works[N];
    int         k;

    for (k = 0; k < N; k++) {
        fill(x + k * BLOCK, BLOCK, given(t->rank, 0, k));
        OK(tutti_all_reduce_async(TUTTI_SPAN(x + k * BLOCK, BLOCK), TUTTI_SUM, t->group, &works[k]));
    }
    for (k = 0; k < N; k++) {
        OK(tutti_work_wait(works[k]));
        tutti_work_free(works[k]);
        expect_all(x + k * BLOCK, BLOCK, sum_of(t->size, 0, k));
    }
    OK(tutti_free(x));
}

static void some_have_ordinary_memory(tt_ctx *t)
{
    float *x = take(BLOCK), *y = tt_floats(t, BLOCK, 0.0f);
    int    k;

    for (k = 0; k < 12; k++) {
        float *mine = (t->rank + k) % 4 == 0 ? y : x;

        fill(mine, BLOCK, given(t->rank, 0, k));
        OK(tutti_all_reduce(TUTTI_SPAN(mine, BLOCK), TUTTI_SUM, t->group));
        expect_all(mine, BLOCK, sum_of(t->size, 0, k));
    }
    OK(tutti_free(x));
}

/* ---- failures -------------------------------------------------------------------------------------- */

/* Pages in the middle of what this rank combines, which it may not touch at first: when its call comes to them
 * it ends this process by a signal, and may go on when the process does. The time is noted first. */
static struct trap {
    char             *at;
    int               signal;
    _Atomic uint32_t *when_ms;
} trap;

static void on_fault(int number, siginfo_t *info, void *context)
{
    const char *at = info->si_addr;

    (void)context;
    if (trap.at == NULL || at < trap.at || at >= trap.at + PAGE) {
        signal(number, SIG_DFL); /* a mistake: comes again */
        return;
    }
    atomic_store(trap.when_ms, (uint32_t)now_ms());
    kill(getpid(), trap.signal);
    mprotect(trap.at, PAGE, PROT_READ | PROT_WRITE);
}

/* In the last quarter of x. Of all_reduce the second of two ranks combines it. */
static void set_trap(tt_ctx *t, float *x, int64_t count, int number)
{
    const struct sigaction action = { .sa_sigaction = on_fault, .sa_flags = SA_SIGINFO };

    trap = (struct trap){ .at = (char *)(x + count / 4 * 3), .signal = number, .when_ms = &t->marks[DIED_AT] };
    assert_int_equal((uintptr_t)trap.at % PAGE, 0);
    assert_int_equal(sigaction(SIGSEGV, &action, NULL), 0);
    assert_int_equal(mprotect(trap.at, PAGE, PROT_NONE), 0);
}

/* A group whose calls are done in one pass, as algorithms say. */
static tutti_group *one_pass_group(const char *algorithms)
{
    tutti_group *group = NULL;

    assert_int_equal(setenv("TUTTI_ALGO", algorithms, 1), 0);
    OK(tutti_new_group(NULL, 0, NULL, &group));
    assert_int_equal(unsetenv("TUTTI_ALGO"), 0);
    return group;
}

/* Memory that all have touched, so that the call's time goes into its own work. */
static float *warm(tutti_group *group)
{
    float *x = take(LARGE);

    fill(x, LARGE, 1.0f);
    OK(tutti_all_reduce(TUTTI_SPAN(x, LARGE), TUTTI_SUM, group));
    fill(x, LARGE, 1.0f);
    OK(tutti_barrier(group));
    return x;
}

/* Both are here, and nobody is inside of a call that has to go well: the next one gives up soon. */
static void meet_for_the_last_time(tt_ctx *t, tutti_group *group, int mark)
{
    OK(tutti_barrier(group));
    OK(tutti_set_timeout(group, TIMEOUT_MS));
    tt_post(t, mark);
    tt_await(t, mark, (uint32_t)t->size);
}

/* Until it says that it is done: it may come to the signal that stops it only now. */
static void let_go_on(tt_ctx *t, int pid, int done)
{
    const struct timespec pause = { .tv_nsec = 5000000 };

    while (atomic_load(&t->marks[done]) == 0) {
        assert_int_equal(kill(pid, SIGCONT), 0);
        nanosleep(&pause, NULL);
    }
}

/* The victim combines the second half: rank 0 finds it begun and not finished. */
static void expect_half_way(const float *x)
{
    assert_true(x[LARGE / 2] == 2.0f);
    assert_true(x[LARGE / 4 * 3] == 1.0f);
    assert_true(x[LARGE - 1] == 1.0f);
}

static void write_down_pid(const tt_ctx *t, int turn)
{
    char  path[512];
    FILE *file;

    snprintf(path, sizeof path, "%s/pid%d", t->dir, turn);
    file = fopen(path, "w");
    assert_non_null(file);
    fprintf(file, "%d\n", (int)getpid());
    fclose(file);
}

static int read_pid(const tt_ctx *t, int turn)
{
    char  path[512];
    FILE *file;
    int   pid = 0;

    snprintf(path, sizeof path, "%s/pid%d", t->dir, turn);
    file = fopen(path, "r");
    assert_non_null(file);
    assert_int_equal(fscanf(file, "%d", &pid), 1);
    fclose(file);
    return pid;
}

static void be_stopped(tt_ctx *t, tutti_group *group, float *x, int turn)
{
    write_down_pid(t, turn);
    meet_for_the_last_time(t, group, MET_AT + turn);
    set_trap(t, x, LARGE, SIGSTOP);
    assert_int_equal(tutti_all_reduce(TUTTI_SPAN(x, LARGE), TUTTI_SUM, group), TUTTI_E_TIMEOUT);
    assert_false(tutti_is_registered(x, 1));
    tt_post(t, DONE_AT + turn);
}

/* Gives up while the other one is stopped, lets it go on, and finds its memory as it was. */
static void give_up(tt_ctx *t, tutti_group *group, float *x, int turn)
{
    const size_t bytes = (size_t)LARGE * sizeof *x;
    float       *kept = malloc(bytes);
    int          pid;

    assert_non_null(kept);
    meet_for_the_last_time(t, group, MET_AT + turn);
    pid = read_pid(t, turn);
    assert_int_equal(tutti_all_reduce(TUTTI_SPAN(x, LARGE), TUTTI_SUM, group), TUTTI_E_TIMEOUT);
    expect_half_way(x);
    assert_false(tutti_is_registered(x, 1));
    memcpy(kept, x, bytes);
    let_go_on(t, pid, DONE_AT + turn);
    assert_int_equal(memcmp(kept, x, bytes), 0);
    free(kept);
}

/* On one core whoever runs may do all of the work, and no half is anybody's. */
static bool each_has_its_half(void)
{
    cpu_set_t cpus;

    return sched_getaffinity(0, sizeof cpus, &cpus) == 0 && CPU_COUNT(&cpus) >= 2;
}

static void a_stopped_writer_hits_other_pages(tt_ctx *t)
{
    int turn;

    if (!each_has_its_half())
        return;

    for (turn = 0; turn < 2; turn++) {
        tutti_group *group = one_pass_group("all_reduce=fused");
        float       *x = warm(group);

        if (t->rank == VICTIM)
            be_stopped(t, group, x, turn);
        else
            give_up(t, group, x, turn);
        OK(tutti_destroy_process_group(group));
        OK(tutti_free(x));
    }
    OK(tutti_barrier(t->group));
}

static void a_death_half_way_is_an_error(tt_ctx *t)
{
    tutti_group *group = one_pass_group("all_reduce=fused");
    float       *x = warm(group);

    meet_for_the_last_time(t, group, MET_AT);
    OK(tutti_set_timeout(group, t->limit_ms / 2)); /* it ends before, by the death, and not by its time */
    if (t->rank == VICTIM)
        set_trap(t, x, LARGE, SIGKILL);
    assert_int_equal(tutti_all_reduce(TUTTI_SPAN(x, LARGE), TUTTI_SUM, group), TUTTI_E_PEER);
    assert_true((uint32_t)now_ms() - atomic_load(&t->marks[DIED_AT]) < DEATH_MS);
    assert_non_null(strstr(tutti_last_error(), "rank 1"));
    expect_half_way(x);
    assert_false(tutti_is_registered(x, 1));
    fill(x, LARGE, 3.0f);
    OK(tutti_free(x));
}

/* Who only reads waits for nobody, and yet must not believe what it has read of a rank that has failed meanwhile:
 * its memory is its own again. */
static void a_stopped_reader_believes_nothing(tt_ctx *t)
{
    tutti_group *group = one_pass_group("scatter=fused");
    float       *x = take(2 * SMALL), *out = take(SMALL);
    tutti_span   ins[2] = { TUTTI_SPAN(x, SMALL), TUTTI_SPAN(x + SMALL, SMALL) };

    fill(x, 2 * SMALL, 1.0f);
    if (t->rank == VICTIM)
        write_down_pid(t, 0);
    meet_for_the_last_time(t, group, MET_AT);
    if (t->rank == VICTIM) {
        set_trap(t, out, SMALL, SIGSTOP);
        assert_int_equal(tutti_scatter(TUTTI_SPAN(out, SMALL), NULL, 0, 0, group), TUTTI_E_TIMEOUT);
        tt_post(t, DONE_AT);
    } else {
        const int pid = read_pid(t, 0);

        assert_int_equal(tutti_scatter(TUTTI_SPAN(out, SMALL), ins, 2, 0, group), TUTTI_E_TIMEOUT);
        fill(x, 2 * SMALL, 9.0f);
        let_go_on(t, pid, DONE_AT);
    }
    tt_await(t, DONE_AT, 1);
    OK(tutti_destroy_process_group(group));
    OK(tutti_free(x));
    OK(tutti_free(out));
}

int main(void)
{
    static const tt_test tests[] = {
        TT_TEST(values_are_right, .ranks = 2, .transports = "shm,tcp,threads", .limit_ms = 60000),
        TT_TEST(values_are_right, .ranks = 3, .transports = "shm,threads", .limit_ms = 60000),
        TT_TEST(values_are_right, .ranks = 5, .transports = "shm,threads", .limit_ms = 60000),
        TT_TEST(values_are_right, .ranks = 8, .limit_ms = 60000),
        TT_TEST(values_are_right, .ranks = 4, .hosts = 2, .limit_ms = 60000),
        TT_TEST(works_are_right, .ranks = 3, .transports = "shm,tcp,threads"),
        TT_TEST(some_have_ordinary_memory, .ranks = 3, .transports = "shm,threads"),
        TT_TEST(a_stopped_writer_hits_other_pages, .ranks = 2, .limit_ms = 60000),
        TT_TEST(a_stopped_reader_believes_nothing, .ranks = 2, .limit_ms = 60000),
        TT_TEST(a_death_half_way_is_an_error, .ranks = 2, .limit_ms = 60000, .dies = VICTIM),
    };

    return tt_main(tests, sizeof tests / sizeof tests[0]);
}
