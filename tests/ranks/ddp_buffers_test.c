/* SPDX-License-Identifier: BSD-3-Clause
 *
 * ddp_buffers_test.c
 * Goal    a hook of the program takes the place of the broadcast of buffers: before the forward or after it, whenever
 *         they would be sent, with the names of all that are not ignored; what it begins is over when the backward is.
 * Method  a module with two buffers; hooks that count, average them, begin an average, and fail. */
#include "ddp_nets.h"

#include <tutti/private.h>

/* A module of four numbers with two buffers. */
typedef struct buffered {
    numbers n;
    tutti_tensor *mean, *count;
} buffered;

static void make(buffered *b, tt_ctx *t, const tutti_ddp_options *opts)
{
    tutti_ddp_options o = *opts;

    numbers_make(&b->n, t);
    tutti_scope_begin();
    b->mean = tutti_tensor_full(TUTTI_F32, 2, SHAPE(2, 3), t->rank);
    b->count = tutti_tensor_full(TUTTI_F32, 1, SHAPE(1), 10.0 * t->rank);
    OK(tutti_module_register_buffer(b->n.m, "mean", b->mean, true));
    OK(tutti_module_register_buffer(b->n.m, "count", b->count, true));
    tutti_scope_end();
    o.group = t->group;
    OK(tutti_ddp_create(b->n.m, &o, &b->n.ddp));
}

/* The buffers of this rank, for the next forward to see. */
static void set(buffered *b, double mean)
{
    OK(tutti_tensor_fill_(b->mean, mean));
}

static double first_of(const tutti_tensor *t)
{
    return *(const float *)tutti_tensor_data(t);
}

/* What hooks note, and are told. */
typedef struct notes {
    tutti_group *group;
    int calls, n;
    char names[64];
    bool fails;
    tutti_future *given;
} notes;

static tutti_status note(notes *s, const char *const *names, int n)
{
    s->calls++;
    s->n = n;
    s->names[0] = '\0';
    for (int i = 0; i < n; i++)
        strcat(strcat(s->names, names[i]), " ");
    return s->fails ? tti_fail(TUTTI_E_IO, "a buffer hook has failed") : TUTTI_OK;
}

/* Averages the first buffer, and is done. */
static tutti_status average(void *state, const char *const *names, tutti_tensor *const *buffers, int n,
                            tutti_future **future_out)
{
    notes *s = state;
    const tutti_status st = note(s, names, n);

    assert_null(*future_out);
    return st == TUTTI_OK ? tutti_all_reduce(tutti_tensor_span(buffers[0]), TUTTI_AVG, s->group) : st;
}

/* Begins to. */
static tutti_status begin_average(void *state, const char *const *names, tutti_tensor *const *buffers, int n,
                                  tutti_future **future_out)
{
    notes *s = state;
    tutti_work *work = NULL;
    tutti_status st = note(s, names, n);

    if (st == TUTTI_OK)
        st = tutti_all_reduce_async(tutti_tensor_span(buffers[0]), TUTTI_AVG, s->group, &work);
    if (st == TUTTI_OK)
        st = tutti_work_get_future(work, future_out);
    tutti_work_free(work);
    return st;
}

/* Gives a future that somebody else completes. */
static tutti_status promise(void *state, const char *const *names, tutti_tensor *const *buffers, int n,
                            tutti_future **future_out)
{
    notes *s = state;

    (void)buffers;
    *future_out = tutti_future_retain(s->given);
    return note(s, names, n);
}

static tutti_status step(buffered *b)
{
    return numbers_step(&b->n, (double[]){ b->n.t->rank + 1, 2, 3, 4 });
}

static void a_hook_takes_the_place_of_the_broadcast(tt_ctx *t)
{
    const double mean = (t->size - 1) / 2.0;
    tutti_ddp_options opts = TUTTI_DDP_OPTIONS;
    notes s = { .group = t->group };
    buffered b;

    make(&b, t, &opts);
    for (int place = TUTTI_BUFFER_HOOK_AFTER_FORWARD; place <= TUTTI_BUFFER_HOOK_BEFORE_FORWARD; place++)
        for (int async = 0; async < 2; async++) {
            s.calls = 0;
            OK(tutti_ddp_register_buffer_hook(b.n.ddp, async ? begin_average : average, &s,
                                              (tutti_buffer_hook_place)place));
            for (int i = 0; i < 3; i++) {
                set(&b, t->rank);
                OK(step(&b));
                assert_int_equal(s.calls, i + 1);
                assert_true(fabs(first_of(b.mean) - mean) < 1e-6);
                assert_int_equal(s.n, 2);
                assert_string_equal(s.names, "mean count ");
                expect_grad(&b.n, 0, (t->size + 1) / 2.0);
                tutti_module_zero_grad(b.n.m);
            }
        }
    OK(tutti_ddp_register_buffer_hook(b.n.ddp, NULL, NULL, TUTTI_BUFFER_HOOK_AFTER_FORWARD));
    set(&b, t->rank + 5.0);
    OK(step(&b));
    assert_true(first_of(b.mean) == 5.0); /* rank 0's again */
    numbers_free(&b.n);
}

/* As the broadcast: not in the forward after one without sync, or without recording; never with local buffers. */
static void a_hook_is_called_when_buffers_are_due(tt_ctx *t)
{
    const char *ignored[] = { "mean" };
    tutti_ddp_options opts = TUTTI_DDP_OPTIONS;
    notes s = { .group = t->group };
    buffered b;

    make(&b, t, &opts);
    OK(tutti_ddp_register_buffer_hook(b.n.ddp, begin_average, &s, TUTTI_BUFFER_HOOK_AFTER_FORWARD));
    OK(step(&b));
    assert_int_equal(s.calls, 1);
    (void)tutti_ddp_set_sync(b.n.ddp, false);
    OK(step(&b)); /* the forward before has averaged */
    assert_int_equal(s.calls, 2);
    OK(step(&b));
    (void)tutti_ddp_set_sync(b.n.ddp, true);
    OK(step(&b));
    assert_int_equal(s.calls, 2);
    OK(step(&b));
    assert_int_equal(s.calls, 3);
    numbers_free(&b.n); /* what was begun in a forward without a backward is over, too */

    opts.local_buffers = true;
    make(&b, t, &opts);
    OK(tutti_ddp_register_buffer_hook(b.n.ddp, average, &s, TUTTI_BUFFER_HOOK_BEFORE_FORWARD));
    OK(step(&b));
    assert_int_equal(s.calls, 3);
    numbers_free(&b.n);

    opts.local_buffers = false;
    opts.ignored = ignored;
    opts.n_ignored = 1;
    make(&b, t, &opts);
    OK(tutti_ddp_register_buffer_hook(b.n.ddp, average, &s, TUTTI_BUFFER_HOOK_BEFORE_FORWARD));
    OK(step(&b));
    assert_string_equal(s.names, "count ");
    numbers_free(&b.n);
}

static void what_a_hook_begins_fails_the_backward(tt_ctx *t)
{
    tutti_ddp_options opts = TUTTI_DDP_OPTIONS;
    notes s = { .group = t->group };
    buffered b;

    make(&b, t, &opts);
    OK(tutti_ddp_register_buffer_hook(b.n.ddp, promise, &s, TUTTI_BUFFER_HOOK_AFTER_FORWARD));
    OK(tutti_future_create(&s.given));
    OK(tutti_future_set_error(s.given, TUTTI_E_IO, "the promise was not kept"));
    REFUSED(step(&b), TUTTI_E_IO, "the promise was not kept");
    tutti_future_free(s.given);
    OK(tutti_future_create(&s.given));
    OK(tutti_future_set_result(s.given, NULL, NULL));
    OK(step(&b));
    tutti_future_free(s.given);
    numbers_free(&b.n);
}

/* Fails when it is told to, and sends nothing. */
static tutti_status refuse(void *state, const char *const *names, tutti_tensor *const *buffers, int n,
                           tutti_future **future_out)
{
    (void)buffers, (void)future_out;
    return note(state, names, n);
}

/* A hook that fails on rank 0, before or after the forward: the step is lost on all, the next one is a good one. */
static void a_hook_that_fails_loses_the_step(tt_ctx *t)
{
    tutti_ddp_options opts = TUTTI_DDP_OPTIONS;
    notes s = { .group = t->group };
    tutti_module *net = tutti_linear(3, 2, true);
    tutti_tensor *x, *y;
    tutti_ddp *ddp = NULL;
    tutti_status st;

    opts.group = t->group;
    tutti_scope_begin();
    x = tutti_tensor_ones(TUTTI_F32, 2, SHAPE(1, 3));
    OK(tutti_module_register_buffer(net, "seen", tutti_tensor_zeros(TUTTI_F32, 1, SHAPE(1)), true));
    OK(tutti_ddp_create(net, &opts, &ddp));
    for (int i = 0; i < 6; i++) {
        OK(tutti_ddp_register_buffer_hook(ddp, refuse, &s, (tutti_buffer_hook_place)(i % 2)));
        s.fails = t->rank == 0 && i / 2 == 1;
        y = tutti_ddp_forward(ddp, x);
        st = tutti_tensor_backward(tutti_tensor_sum(y, NULL, 0, false));
        if (st != (i / 2 != 1 ? TUTTI_OK : t->rank == 0 ? TUTTI_E_IO : TUTTI_E_REMOTE))
            fail_msg("step %d: %s", i, tutti_last_error());
        if (i / 2 == 1)
            assert_non_null(strstr(tutti_last_error(), "a buffer hook has failed"));
    }
    tutti_scope_end();
    tutti_ddp_free(ddp);
    tutti_module_free(net);
    OK(tutti_tensor_check());
}

static void what_makes_no_sense(tt_ctx *t)
{
    tutti_ddp_options opts = TUTTI_DDP_OPTIONS;
    tutti_joinable joinable;
    buffered b;

    make(&b, t, &opts);
    assert_int_equal(tutti_ddp_register_buffer_hook(NULL, average, NULL, TUTTI_BUFFER_HOOK_AFTER_FORWARD), TUTTI_E_ARG);
    REFUSED(tutti_ddp_register_buffer_hook(b.n.ddp, average, NULL, (tutti_buffer_hook_place)7), TUTTI_E_ARG, "no such place");
    OK(tutti_ddp_register_buffer_hook(b.n.ddp, average, NULL, TUTTI_BUFFER_HOOK_BEFORE_FORWARD));
    REFUSED(tutti_ddp_joinable(b.n.ddp, NULL, &joinable), TUTTI_E_UNSUPPORTED, "buffer hook");
    OK(tutti_ddp_register_buffer_hook(b.n.ddp, NULL, NULL, TUTTI_BUFFER_HOOK_BEFORE_FORWARD));
    OK(tutti_ddp_joinable(b.n.ddp, NULL, &joinable));
    REFUSED(tutti_ddp_register_buffer_hook(b.n.ddp, average, NULL, TUTTI_BUFFER_HOOK_AFTER_FORWARD), TUTTI_E_UNSUPPORTED,
            "uneven");
    numbers_free(&b.n);
}

int main(void)
{
    static const tt_test tests[] = {
        TT_TEST(a_hook_takes_the_place_of_the_broadcast, .ranks = 3, .transports = "shm,tcp,threads"),
        TT_TEST(a_hook_is_called_when_buffers_are_due, .ranks = 2),
        TT_TEST(what_a_hook_begins_fails_the_backward, .ranks = 2),
        TT_TEST(a_hook_that_fails_loses_the_step, .ranks = 2),
        TT_TEST(what_makes_no_sense, .ranks = 2),
    };

    return tt_main(tests, sizeof tests / sizeof tests[0]);
}
