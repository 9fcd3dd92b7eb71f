/* SPDX-License-Identifier: BSD-3-Clause
 *
 * window_test.c
 * Goal    one-sided access moves the right bytes, in the order that tutti/window.h promises, while targets compute;
 *         what is outside of a window is refused; a death ends waits, and cuts memory off.
 * Method  the same bodies over shared memory, TCP, threads and two hosts. Targets that are to make no call wait on
 *         the harness's marks, outside of the library. */
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "harness/harness.h"
#include <tutti/tutti.h>

#define OK(call)                                                                                       \
    do {                                                                                               \
        if ((call) != TUTTI_OK)                                                                        \
            fail_msg("%s: %s", #call, tutti_last_error());                                             \
    } while (0)

enum { VICTIM = 2, BEGUN = 50, PASSED = 51, DIED_AT = 52 };

static int64_t now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void expect_words(const char *part)
{
    if (strstr(tutti_last_error(), part) == NULL)
        fail_msg("'%s' is not in: %s", part, tutti_last_error());
}

/* By a clock that is the machine's. */
static int64_t ms_since_death(const tt_ctx *t)
{
    return (int64_t)((uint32_t)now_ms() - atomic_load(&t->marks[DIED_AT]));
}

static int32_t *take(size_t count)
{
    void *p = NULL;

    OK(tutti_alloc(count * sizeof(int32_t), &p));
    return p;
}

static tutti_window *open_window(const tt_ctx *t, int32_t *part, int64_t count)
{
    const tutti_span buf = TUTTI_SPAN(part, count);
    tutti_window    *window = NULL;

    OK(tutti_window_create(&buf, t->group, &window));
    return window;
}

static void close_window(tutti_window *window, int32_t *part)
{
    OK(tutti_window_free(window));
    OK(tutti_free(part));
}

/* Round and round: each puts to its right neighbour, signals, and finds its left neighbour's values; the answer
 * frees the place for the next round. */
static void a_signal_comes_behind_its_puts(tt_ctx *t)
{
    enum { N = 5000, ROUNDS = 30 };
    const int     right = (t->rank + 1) % t->size, left = (t->rank + t->size - 1) % t->size;
    int32_t      *part = take(N), *out = tt_alloc(t, N * sizeof *out);
    tutti_window *window = open_window(t, part, N);
    int           round, i;

    for (round = 0; round < ROUNDS; round++) {
        for (i = 0; i < N; i++)
            out[i] = round * 1000 + t->rank;
        OK(tutti_window_put(window, TUTTI_SPAN(out, N / 2), right, 0));
        OK(tutti_window_put(window, TUTTI_SPAN(out + N / 2, N - N / 2), right, N / 2));
        OK(tutti_window_signal(window, right));
        OK(tutti_window_wait_signal(window, left, 0));
        for (i = 0; i < N; i++)
            assert_int_equal(part[i], round * 1000 + left);
        OK(tutti_window_signal(window, left));
        OK(tutti_window_wait_signal(window, right, 0));
    }
    assert_int_equal(tutti_window_wait_signal(window, left, 1), TUTTI_E_TIMEOUT); /* each wait has taken one */
    expect_words("no signal");
    close_window(window, part);
}

static uint32_t next_random(uint32_t *seed)
{
    *seed = *seed * 1664525u + 1013904223u;
    return *seed >> 8;
}

/* What rank `from` stores in element i of rank `to`'s stripe for it, in a round; the same on all ranks. */
static int32_t model(int from, int to, int round, int i)
{
    return (int32_t)((unsigned)from * 1000003u + (unsigned)to * 10007u + (unsigned)round * 101u + (unsigned)i);
}

/* All put random pieces into all windows, each into stripes of its own, and get them back; then each compares its
 * own memory with what the model says. Sizes beyond a ring and a socket's buffer are among them. */
static void random_puts_agree_with_a_model(tt_ctx *t)
{
    enum { STRIPE = 60000, PUTS = 40 };
    const int64_t count = (int64_t)STRIPE * t->size;
    int32_t      *part = take((size_t)count), *out = tt_alloc(t, STRIPE * sizeof *out);
    int32_t      *back = tt_alloc(t, STRIPE * sizeof *back);
    tutti_window *window = open_window(t, part, count);
    uint32_t      seed, mine = 7u + (uint32_t)t->rank;
    int           k, i, from;

    for (k = 0; k < PUTS; k++) {
        const int peer = (int)(next_random(&mine) % (uint32_t)t->size);
        const int at = (int)(next_random(&mine) % STRIPE), n = (int)(next_random(&mine) % (uint32_t)(STRIPE - at));

        for (i = 0; i < n; i++)
            out[i] = model(t->rank, peer, k, at + i);
        OK(tutti_window_put(window, TUTTI_SPAN(out, n), peer, (int64_t)STRIPE * t->rank + at));
        memset(back, 0, STRIPE * sizeof *back);
        OK(tutti_window_get(window, TUTTI_SPAN(back, n), peer, (int64_t)STRIPE * t->rank + at));
        assert_memory_equal(back, out, (size_t)n * sizeof *out);
    }
    OK(tutti_window_flush(window, -1));
    OK(tutti_barrier(t->group));
    for (from = 0; from < t->size; from++) { /* do what `from` did to this rank */
        memset(out, 0, STRIPE * sizeof *out);
        for (seed = 7u + (uint32_t)from, k = 0; k < PUTS; k++) {
            const int peer = (int)(next_random(&seed) % (uint32_t)t->size);
            const int at = (int)(next_random(&seed) % STRIPE), n = (int)(next_random(&seed) % (uint32_t)(STRIPE - at));

            for (i = 0; peer == t->rank && i < n; i++)
                out[at + i] = model(from, t->rank, k, at + i);
        }
        assert_memory_equal(part + (size_t)STRIPE * (size_t)from, out, STRIPE * sizeof *out);
    }
    close_window(window, part);
}

/* Rank 1 makes no call of the library at all while rank 0 writes and reads its memory. */
static void targets_need_no_calls(tt_ctx *t)
{
    enum { N = 100000 };
    int32_t      *part = take(N), *buf = tt_alloc(t, N * sizeof *buf);
    tutti_window *window = open_window(t, part, N);
    int           i;

    if (t->rank == 0) {
        for (i = 0; i < N; i++)
            buf[i] = i;
        OK(tutti_window_put(window, TUTTI_SPAN(buf, N), 1, 0));
        OK(tutti_window_flush(window, 1));
        memset(buf, 0, N * sizeof *buf);
        OK(tutti_window_get(window, TUTTI_SPAN(buf, N), 1, 0));
        for (i = 0; i < N; i++)
            assert_int_equal(buf[i], i);
        tt_post(t, 0);
    } else {
        tt_await(t, 0, 1);
    }
    close_window(window, part);
}

static void works_complete(tt_ctx *t)
{
    enum { N = 50000 };
    const int     right = (t->rank + 1) % t->size, left = (t->rank + t->size - 1) % t->size;
    int32_t      *part = take(2 * N), *out = tt_alloc(t, N * sizeof *out), *in = tt_alloc(t, N * sizeof *in);
    tutti_window *window = open_window(t, part, 2 * N);
    tutti_work   *works[3] = { NULL };
    int           i;

    for (i = 0; i < N; i++) {
        out[i] = i + t->rank;
        part[N + i] = i * 3 + t->rank;
    }
    OK(tutti_barrier(t->group)); /* all parts are filled */
    OK(tutti_window_wait_signal_async(window, left, &works[0]));
    OK(tutti_window_put_async(window, TUTTI_SPAN(out, N), right, 0, &works[1]));
    OK(tutti_window_get_async(window, TUTTI_SPAN(in, N), right, N, &works[2]));
    OK(tutti_window_signal(window, right));
    OK(tutti_wait_all(works, 3, 0));
    for (i = 0; i < 3; i++) {
        tutti_span result = { .count = 0 };
        int        n = -1;

        OK(tutti_work_result(works[i], &result, 1, &n));
        assert_int_equal(n, i == 2); /* of a get what it has read */
        assert_ptr_equal(result.data, i == 2 ? in : NULL);
        tutti_work_free(works[i]);
    }
    for (i = 0; i < N; i++) {
        assert_int_equal(part[i], i + left);
        assert_int_equal(in[i], i * 3 + right);
    }
    close_window(window, part);
}

/* Parts of other sizes, none on rank 1; register and deregister in turn. */
static void parts_may_differ(tt_ctx *t)
{
    const int64_t     count = t->rank == 1 ? 0 : 10 + t->rank;
    int32_t          *part = take(100), value = 5;
    tutti_window     *window = NULL;
    tutti_window_attr attr;
    int               round, peer;

    OK(tutti_window_create(NULL, t->group, &window));
    assert_int_equal(tutti_window_put(window, TUTTI_SPAN(&value, 1), 0, 0), TUTTI_E_STATE);
    assert_int_equal(tutti_window_deregister(window), TUTTI_E_STATE);
    for (round = 0; round < 3; round++) {
        OK(tutti_window_register(window, TUTTI_SPAN(part + round, count)));
        assert_int_equal(tutti_free(part), count > 0 ? TUTTI_E_STATE : TUTTI_OK);
        if (count == 0)
            part = take(100);
        for (peer = 0; peer < t->size; peer++) {
            OK(tutti_window_get_attr(window, peer, &attr));
            assert_int_equal(attr.count, peer == 1 ? 0 : 10 + peer);
            assert_int_equal(attr.dtype, TUTTI_I32);
        }
        OK(tutti_window_put(window, TUTTI_SPAN(&value, 1), 0, t->rank));
        assert_int_equal(tutti_window_put(window, TUTTI_SPAN(&value, 1), 1, 0), TUTTI_E_ARG);
        OK(tutti_window_deregister(window));
        for (peer = 0; t->rank == 0 && peer < t->size; peer++)
            assert_int_equal(part[round + peer], 5);
    }
    close_window(window, part);
}

static void what_does_not_fit_is_refused(tt_ctx *t)
{
    enum { N = 100 };
    int32_t      *part = take(N), ordinary[4] = { 0 };
    float         other[4] = { 0 };
    tutti_window *window = open_window(t, part, N), *second = NULL;
    tutti_span    buf = TUTTI_SPAN(ordinary, 4);

    assert_int_equal(tutti_window_put(window, buf, 0, N - 3), TUTTI_E_ARG);
    assert_int_equal(tutti_window_put(window, buf, 0, -1), TUTTI_E_ARG);
    assert_int_equal(tutti_window_get(window, buf, 0, INT64_MAX), TUTTI_E_ARG);
    assert_int_equal(tutti_window_put(window, buf, t->size, 0), TUTTI_E_ARG);
    assert_int_equal(tutti_window_put(window, TUTTI_SPAN(other, 4), 0, 0), TUTTI_E_ARG);
    assert_int_equal(tutti_window_signal(window, -2), TUTTI_E_ARG);
    assert_int_equal(tutti_window_put(NULL, buf, 0, 0), TUTTI_E_ARG);
    assert_int_equal(tutti_window_register(window, TUTTI_SPAN(part, N)), TUTTI_E_STATE);
    buf = TUTTI_SPAN(part, N); /* stands in a window */
    assert_int_equal(tutti_window_create(&buf, t->group, &second), TUTTI_E_STATE);
    if (t->rank == 1) /* one rank's memory is not registered: all are told */
        buf = TUTTI_SPAN(ordinary, 4);
    else
        buf = TUTTI_SPAN(part, 0);
    assert_int_equal(tutti_window_create(&buf, t->group, &second), TUTTI_E_ARG);
    expect_words("rank 1");
    expect_words("not registered memory");
    buf = t->rank == 1 ? TUTTI_SPAN(other, 0) : TUTTI_SPAN(ordinary, 0);
    assert_int_equal(tutti_window_create(&buf, t->group, &second), TUTTI_E_MISMATCH);
    assert_null(second);
    OK(tutti_barrier(t->group)); /* the group goes on */
    close_window(window, part);
}

/* What the members of a group tell each other when they register: see src/group/window_make.c. */
typedef struct card {
    int32_t  status;
    uint32_t id;
    int64_t  count;
    int32_t  dtype, zero;
    uint64_t bytes, offset, control, backend[5]; /* see src/transport/window.h */
    char     words[400];
} card;

/* Rank 1 has no memory, and says that it has a lot: others would copy to where nothing is. */
static void a_count_without_memory_is_refused(tt_ctx *t)
{
    static const int64_t counts[] = { INT64_C(1) << 40, -1, INT64_MAX };
    card                 cards[2], mine = { .dtype = TUTTI_I32, .control = 1 << 20 };
    const tutti_span     in = tutti_span_of(&mine, sizeof mine, TUTTI_U8);
    const tutti_span     out = tutti_span_of(cards, sizeof cards, TUTTI_U8);
    tutti_window        *window = NULL;
    tutti_span           buf;
    int                  i, step;

    for (i = 0; i < 3; i++) {
        mine.id = (uint32_t)i;
        mine.count = counts[i];
        for (step = 0; t->rank == 1 && step < 2; step++)
            OK(tutti_all_gather_into_tensor(out, in, t->group));
        if (t->rank == 1)
            continue;
        buf = TUTTI_SPAN(take(8), 8);
        assert_int_equal(tutti_window_create(&buf, t->group, &window), TUTTI_E_AUTH);
        expect_words("rank 1 announces");
        assert_null(window);
        OK(tutti_free(buf.data));
    }
    OK(tutti_barrier(t->group));
}

/* A member may destroy the group while others still write: that ends the window for them, and nothing else. */
static void a_destroyed_group_leaves_the_others_alone(tt_ctx *t)
{
    enum { N = 1000, DESTROYED = 40 };
    tutti_group  *pair = NULL;
    int32_t      *part = take(N), value[N] = { 7 };
    tutti_span    buf = TUTTI_SPAN(part, N);
    tutti_window *window = NULL;
    int           i;

    OK(tutti_new_group(NULL, 0, NULL, &pair));
    OK(tutti_window_create(&buf, pair, &window));
    if (t->rank == 1) {
        OK(tutti_destroy_process_group(pair));
        tt_post(t, DESTROYED);
    } else {
        tt_await(t, DESTROYED, 1);
        for (i = 0; i < 3; i++) { /* whatever they come to: between hosts they are sent, and dropped there */
            (void)tutti_window_put(window, TUTTI_SPAN(value, N), 1, 0);
            (void)tutti_window_signal(window, 1);
        }
        OK(tutti_destroy_process_group(pair));
    }
    assert_int_equal(part[0], 0);
    OK(tutti_window_free(window));
    OK(tutti_free(part));
    OK(tutti_barrier(t->group));
}

/* Inside a host a peer's part can be had as a pointer, between hosts it cannot. */
static void memory_is_mapped_inside_a_host(tt_ctx *t)
{
    enum { N = 64 };
    const bool        tcp = strstr(t->transport, "tcp") != NULL;
    const int         peer = (t->rank + 1) % t->size, left = (t->rank + t->size - 1) % t->size;
    int32_t          *part = take(N);
    tutti_window     *window = open_window(t, part, N);
    tutti_span        span = { .count = 0 };
    tutti_window_attr attr;

    OK(tutti_window_get_attr(window, t->rank, &attr));
    assert_int_equal(attr.access, TUTTI_WINDOW_UNIFIED);
    OK(tutti_window_map_remote(window, t->rank, &span));
    assert_ptr_equal(span.data, part);
    OK(tutti_window_get_attr(window, peer, &attr));
    if (attr.access == TUTTI_WINDOW_UNIFIED) {
        assert_false(tcp);
        OK(tutti_window_map_remote(window, peer, &span));
        assert_int_equal(span.count, N);
        ((int32_t *)span.data)[N - 1] = 77 + t->rank;
    } else {
        const int32_t value = 77 + t->rank;

        assert_int_equal(tutti_window_map_remote(window, peer, &span), TUTTI_E_UNSUPPORTED);
        expect_words("another host");
        OK(tutti_window_put(window, tutti_span_of(&value, 1, TUTTI_I32), peer, N - 1));
    }
    OK(tutti_window_signal(window, peer));
    OK(tutti_window_wait_signal(window, left, 0));
    assert_int_equal(part[N - 1], 77 + left);
    close_window(window, part);
}

/* A signal passed on: what rank 0 flushed to rank 2 is there when rank 1 tells of it. */
static void a_flush_makes_puts_visible_to_all(tt_ctx *t)
{
    enum { N = 30000, ROUNDS = 10 };
    int32_t      *part = take(N), *out = tt_alloc(t, N * sizeof *out);
    tutti_window *window = open_window(t, part, N);
    int           round, i;

    for (round = 1; round <= ROUNDS; round++) {
        for (i = 0; i < N; i++)
            out[i] = round;
        if (t->rank == 0) {
            OK(tutti_window_put(window, TUTTI_SPAN(out, N), 2, 0));
            OK(tutti_window_flush(window, 2));
            OK(tutti_window_signal(window, 1));
            OK(tutti_window_wait_signal(window, 2, 0));
        } else if (t->rank == 1) {
            OK(tutti_window_wait_signal(window, 0, 0));
            OK(tutti_window_signal(window, 2));
        } else if (t->rank == 2) {
            OK(tutti_window_wait_signal(window, 1, 0));
            assert_memory_equal(part, out, N * sizeof *out);
            OK(tutti_window_signal(window, 0));
        }
    }
    close_window(window, part);
}

/* Two windows on two groups; the world's is not hurt by the end of the other group. */
static void groups_have_windows_of_their_own(tt_ctx *t)
{
    enum { N = 16 };
    tutti_group  *all = NULL;
    int32_t      *part = take(N), *other = take(N), value = 9;
    tutti_span    buf = TUTTI_SPAN(other, N);
    tutti_window *window = open_window(t, part, N), *second = NULL;

    OK(tutti_new_group(NULL, 0, NULL, &all));
    OK(tutti_window_create(&buf, all, &second));
    OK(tutti_window_put(second, TUTTI_SPAN(&value, 1), t->rank, 3));
    OK(tutti_barrier(t->group));
    OK(tutti_destroy_process_group(all));
    assert_int_equal(tutti_window_put(second, TUTTI_SPAN(&value, 1), t->rank, 3), TUTTI_E_STATE);
    assert_false(tutti_is_registered(other, 1)); /* the others were not asked, so they were cut off */
    assert_int_equal(other[3], 9);
    OK(tutti_window_free(second));
    OK(tutti_free(other));
    OK(tutti_window_signal(window, t->rank));
    OK(tutti_window_wait_signal(window, t->rank, 0));
    close_window(window, part);
}

/* The victim dies having sent one signal: it is taken, unless rank 0 gets no core until the window has ended of the death; then the
 * wait ends in time, and names it. */
static void a_death_ends_waits(tt_ctx *t)
{
    enum { N = 1000, ALONE_MS = 150 /* it does not before */ };
    int32_t      *part = take(N), value = 3;
    tutti_window *window = open_window(t, part, N);
    int64_t       start, waited;
    tutti_status  st;

    part[5] = 55;
    OK(tutti_barrier(t->group));
    if (t->rank == VICTIM) {
        OK(tutti_window_put(window, TUTTI_SPAN(&value, 1), 0, 0));
        OK(tutti_window_signal(window, 0));
        OK(tutti_window_flush(window, 0));
        tt_post(t, BEGUN);
        tt_await(t, BEGUN, (uint32_t)t->size);
        atomic_store(&t->marks[DIED_AT], (uint32_t)now_ms());
        tt_die();
    }
    tt_post(t, BEGUN);
    tt_await(t, BEGUN, (uint32_t)t->size);
    start = now_ms();
    if (t->rank == 0) {
        st = tutti_window_wait_signal(window, VICTIM, 0);
        assert_true(st == TUTTI_OK || (st == TUTTI_E_PEER && ms_since_death(t) >= ALONE_MS));
        assert_int_equal(part[0], 3);
        assert_int_equal(tutti_window_wait_signal(window, VICTIM, 0), TUTTI_E_PEER);
    } else { /* waits for somebody who lives, and is told */
        assert_int_equal(tutti_window_wait_signal(window, 0, 0), TUTTI_E_PEER);
    }
    waited = now_ms() - start;
    assert_true(waited < 2000 || ms_since_death(t) < 2000); /* it dies when it gets a core */
    expect_words("rank 2");
    assert_int_equal(tutti_window_put(window, TUTTI_SPAN(&value, 1), 0, 0), TUTTI_E_PEER);
    assert_false(tutti_is_registered(part, 1));
    assert_int_equal(part[5], 55);
    OK(tutti_window_free(window));
    OK(tutti_free(part));
}

/* Rank 0 has met the death, and its part of the window is closed: rank 1 has heard of nothing yet. */
static void a_closed_window_says_what_for(tt_ctx *t)
{
    int32_t      *part = take(10), value = 3;
    tutti_window *window = open_window(t, part, 10);
    const int64_t until = now_ms() + 10000;
    tutti_status  st;

    OK(tutti_barrier(t->group));
    tt_post(t, PASSED);
    tt_await(t, PASSED, (uint32_t)t->size); /* nobody is in the barrier any more */
    if (t->rank == VICTIM)
        tt_die();
    if (t->rank == 0) {
        assert_int_equal(tutti_window_wait_signal(window, VICTIM, 0), TUTTI_E_PEER);
        tt_post(t, BEGUN);
        tt_await(t, BEGUN, 2);
    } else {
        tt_await(t, BEGUN, 1);
        while ((st = tutti_window_put(window, TUTTI_SPAN(&value, 1), 0, 0)) == TUTTI_OK && now_ms() < until)
            continue; /* it closes while rank 0 tells the others */
        assert_int_equal(st, TUTTI_E_PEER);
        expect_words("rank 2 (");
        tt_post(t, BEGUN);
    }
    OK(tutti_window_free(window));
    OK(tutti_free(part));
}

/* Rank 1 is stopped, rank 0 gives up, takes its memory back, and lets rank 1 go on, which writes through the pointer
 * that it has: rank 0 does not see it. */
static void a_stopped_writer_hits_other_pages(tt_ctx *t)
{
    enum { N = 1000 };
    int32_t      *part = take(N), pid = (int32_t)getpid();
    tutti_window *window = open_window(t, part, N);
    tutti_span    span;

    if (t->rank == 1) {
        OK(tutti_window_map_remote(window, 0, &span));
        OK(tutti_send(TUTTI_SPAN(&pid, 1), 0, 0, t->group));
        tt_post(t, PASSED); /* out of the call, which the group's end would end */
        tt_await(t, 0, 1);
        ((volatile int32_t *)span.data)[7] = 99; /* late */
        tt_post(t, 1);
        assert_int_not_equal(tutti_barrier(t->group), TUTTI_OK);
    } else {
        OK(tutti_recv(TUTTI_SPAN(&pid, 1), 1, 0, t->group, NULL));
        tt_await(t, PASSED, 1);
        part[7] = 1;
        OK(tutti_set_timeout(t->group, 500)); /* making the world may take longer */
        assert_int_equal(tutti_recv(TUTTI_SPAN(&pid, 1), 1, 1, t->group, NULL), TUTTI_E_TIMEOUT);
        tt_post(t, 0);
        tt_await(t, 1, 1);
        assert_int_equal(part[7], 1);
        assert_false(tutti_is_registered(part, 1));
    }
    OK(tutti_window_free(window));
    OK(tutti_free(part));
}

int main(void)
{
    static const tt_test tests[] = {
        TT_TEST(a_signal_comes_behind_its_puts, .ranks = 3, .transports = "shm,tcp,threads,threads-tcp"),
        TT_TEST(a_signal_comes_behind_its_puts, .ranks = 4, .hosts = 2),
        TT_TEST(random_puts_agree_with_a_model, .ranks = 4, .transports = "shm,tcp,threads,threads-tcp",
                .limit_ms = 60000),
        TT_TEST(random_puts_agree_with_a_model, .ranks = 4, .hosts = 2, .limit_ms = 60000),
        TT_TEST(random_puts_agree_with_a_model, .name = "random_puts_agree_with_a_model_with_tls", .ranks = 4, .hosts = 2, .tls = true,
                .limit_ms = 60000),
        TT_TEST(targets_need_no_calls, .ranks = 2, .transports = "shm,tcp,threads,threads-tcp"),
        TT_TEST(targets_need_no_calls, .ranks = 2, .hosts = 2),
        TT_TEST(works_complete, .ranks = 3, .transports = "shm,tcp,threads,threads-tcp"),
        TT_TEST(works_complete, .ranks = 4, .hosts = 2),
        TT_TEST(works_complete, .ranks = 1),
        TT_TEST(parts_may_differ, .ranks = 3, .transports = "shm,tcp,threads"),
        TT_TEST(what_does_not_fit_is_refused, .ranks = 2, .transports = "shm,tcp,threads"),
        TT_TEST(a_count_without_memory_is_refused, .ranks = 2, .transports = "shm,tcp,threads"),
        TT_TEST(a_destroyed_group_leaves_the_others_alone, .ranks = 2, .transports = "shm,tcp,threads,threads-tcp"),
        TT_TEST(memory_is_mapped_inside_a_host, .ranks = 3, .transports = "shm,tcp,threads,threads-tcp"),
        TT_TEST(memory_is_mapped_inside_a_host, .ranks = 4, .hosts = 2),
        TT_TEST(a_flush_makes_puts_visible_to_all, .ranks = 3, .transports = "shm,tcp,threads,threads-tcp"),
        TT_TEST(a_flush_makes_puts_visible_to_all, .ranks = 4, .hosts = 2),
        TT_TEST(groups_have_windows_of_their_own, .ranks = 2, .transports = "shm,tcp,threads"),
        TT_TEST(a_death_ends_waits, .ranks = 3, .transports = "shm,tcp", .dies = VICTIM),
        TT_TEST(a_death_ends_waits, .ranks = 4, .hosts = 2, .dies = VICTIM),
        TT_TEST(a_closed_window_says_what_for, .ranks = 3, .transports = "shm", .dies = VICTIM),
        TT_TEST(a_stopped_writer_hits_other_pages, .ranks = 2, .transports = "shm"),
    };

    return tt_main(tests, sizeof tests / sizeof tests[0]);
}
