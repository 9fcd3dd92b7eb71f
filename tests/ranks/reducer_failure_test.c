/* SPDX-License-Identifier: BSD-3-Clause
 *
 * reducer_failure_test.c
 * Goal    what one rank does wrong ends in an error on every rank, in time, with words that name the parameter and the
 *         ranks; then the next step, and the next reducer, go well. A rank that dies in a backward is named by the others.
 * Method  ranks that differ in one thing each; nothing is waited for but the library. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "harness/harness.h"
#include <tutti/tutti.h>

#define OK(call)                                                                                       \
    do {                                                                                               \
        if ((call) != TUTTI_OK)                                                                        \
            fail_msg("%s: %s", #call, tutti_last_error());                                             \
    } while (0)
#define REFUSED(call, st, word)                                                                        \
    do {                                                                                               \
        assert_int_equal((call), (st));                                                                \
        if (strstr(tutti_last_error(), (word)) == NULL)                                                \
            fail_msg("%s: no '%s' in: %s", #call, (word), tutti_last_error());                         \
    } while (0)

enum { N = 3, ODD = 1, COUNT = 4096 };

static void words(const char *part)
{
    if (strstr(tutti_last_error(), part) == NULL)
        fail_msg("'%s' is not in: %s", part, tutti_last_error());
}

typedef struct setup {
    tutti_reducer_options opts;
    tutti_reducer_param   params[N];
    int64_t               sizes[2], strides[2];
    int                   n;
} setup;

static void prepare(tt_ctx *t, setup *s)
{
    static const char *const names[N] = { "a", "b", "c" };
    int                      i;

    *s = (setup){ .opts = TUTTI_REDUCER_OPTIONS, .sizes = { 64, COUNT / 64 }, .strides = { COUNT / 64, 1 }, .n = N };
    s->opts.group = t->group;
    s->opts.bucket_cap_bytes = COUNT;
    for (i = 0; i < N; i++)
        s->params[i] = (tutti_reducer_param){ .name = names[i], .dtype = TUTTI_F32, .numel = COUNT, .ndim = 2,
                                              .sizes = s->sizes, .strides = s->strides,
                                              .grad = tt_floats(t, COUNT, 1.0f) };
}

/* One way for a rank to differ, and what all ranks say of it. */
typedef struct difference {
    void (*make)(setup *s);
    tutti_status here, there; /* on the odd rank, and on the others */
    const char  *here_words, *there_words;
} difference;

static void fewer(setup *s)
{
    s->n = N - 1;
}

static void other_dtype(setup *s)
{
    s->params[2].dtype = TUTTI_F16;
}

static int64_t flipped[2] = { COUNT / 32, 32 }, turned[2] = { 1, 64 };

static void other_sizes(setup *s)
{
    s->params[1].sizes = flipped;
    s->params[1].strides = NULL;
}

static void other_strides(setup *s)
{
    s->params[0].strides = turned;
}

static void other_mode(setup *s)
{
    s->opts.find_unused_parameters = true;
}

static void other_cap(setup *s)
{
    s->opts.bucket_cap_bytes = 77;
}

static void senseless(setup *s)
{
    s->params[2].numel = 5;
}

static const difference differences[] = {
    { fewer, TUTTI_E_MISMATCH, TUTTI_E_MISMATCH, "Rank 1 has 2 params, while rank 0 has inconsistent 3 params",
      "has 3 params, while rank 1 has inconsistent 2 params" },
    { other_dtype, TUTTI_E_MISMATCH, TUTTI_E_MISMATCH, "parameter 2 ('c') is f16 on rank 1",
      "parameter 2 ('c') is f16 on rank 1 of the group, and f32 on rank 0" },
    { other_sizes, TUTTI_E_MISMATCH, TUTTI_E_MISMATCH, "[1]: params[1] ('b') in this process has sizes [128, 32]",
      "do not match sizes [64, 64] of the same parameter in process 0" },
    { other_strides, TUTTI_E_MISMATCH, TUTTI_E_MISMATCH, "[1]: params[0] ('a') in this process has strides [1, 64]",
      "strides [64, 1]" },
    { other_mode, TUTTI_E_MISMATCH, TUTTI_E_MISMATCH, "find_unused_parameters is 1 on rank 1", "and 0 on rank 0" },
    { other_cap, TUTTI_E_MISMATCH, TUTTI_E_MISMATCH, "77 bytes on rank 1", "4096 on rank 0" },
    { senseless, TUTTI_E_ARG, TUTTI_E_REMOTE, "the sizes of parameter 2 ('c')", "rank 1 of the group could not" },
};

static void models_that_differ(tt_ctx *t)
{
    tutti_reducer *r = NULL;
    setup          s;
    size_t         k;

    for (k = 0; k < sizeof differences / sizeof differences[0]; k++) {
        const difference *d = &differences[k];
        const bool        odd = t->rank == ODD;

        prepare(t, &s);
        if (odd)
            d->make(&s);
        REFUSED(tutti_reducer_create(s.params, s.n, &s.opts, &r), odd ? d->here : d->there,
                odd ? d->here_words : d->there_words);
        assert_null(r);
        OK(tutti_barrier(t->group)); /* nobody is left behind */
    }
    prepare(t, &s);
    OK(tutti_reducer_create(s.params, s.n, &s.opts, &r));
    tutti_reducer_free(r);
}

/* ---- steps that fail ---- */

static void good_step(tt_ctx *t, tutti_reducer *r, int step)
{
    const float want = (float)step + 0.5f * (float)(t->size - 1);
    int         i, k;

    OK(tutti_reducer_prepare_for_forward(r));
    OK(tutti_reducer_prepare_for_backward(r, NULL, 0));
    for (i = N - 1; i >= 0; i--) {
        for (k = 0; k < COUNT; k++)
            ((float *)tutti_reducer_grad(r, i))[k] = (float)(step + t->rank);
        OK(tutti_reducer_mark_ready(r, i));
    }
    OK(tutti_reducer_finish(r));
    for (i = 0; i < N; i++)
        for (k = 0; k < COUNT; k++)
            assert_true(((float *)tutti_reducer_grad(r, i))[k] == want);
}

/* The odd rank forgets parameter missing, or marks the first one of its step twice. */
static void bad_step(tt_ctx *t, tutti_reducer *r, int missing, bool twice)
{
    const bool odd = t->rank == ODD;
    int        i;

    OK(tutti_reducer_prepare_for_backward(r, NULL, 0));
    for (i = N - 1; i >= 0; i--) {
        if (odd && i == missing)
            continue;
        OK(tutti_reducer_mark_ready(r, i));
        if (odd && twice && i == N - 1)
            REFUSED(tutti_reducer_mark_ready(r, i), TUTTI_E_STATE, "name c has been marked as ready twice");
    }
    assert_int_equal(tutti_reducer_finish(r), odd ? TUTTI_E_STATE : TUTTI_E_REMOTE);
    if (!odd)
        words("rank 1 failed [TUTTI_E_STATE]");
    words(twice ? "Parameter at index 2 with name c" : "Parameters which did not receive grad for rank 1: ");
    if (missing == 1)
        words("for rank 1: b\n");
}

static void mistakes_are_told_to_all(tt_ctx *t)
{
    tutti_reducer *r = NULL;
    setup          s;
    int            mode, missing;

    for (mode = 0; mode < 8; mode++) {
        prepare(t, &s);
        s.opts.gradient_as_bucket_view = mode & 1;
        s.opts.find_unused_parameters = mode & 2;
        OK(tutti_reducer_create(s.params, s.n, &s.opts, &r));
        if (mode & 4)
            OK(tutti_reducer_register_builtin_comm_hook(r, TUTTI_HOOK_ALLREDUCE));
        for (missing = 0; missing < N; missing++) {
            bad_step(t, r, missing, false);
            good_step(t, r, missing);
        }
        bad_step(t, r, -1, true);
        good_step(t, r, 9);
        tutti_reducer_free(r);
    }
}

/* What says that a rank fails goes through sums of every dtype, and is not mistaken where nobody does. */
static void mistakes_travel_in_every_dtype(tt_ctx *t)
{
    static const tutti_dtype dtypes[] = { TUTTI_F16, TUTTI_BF16, TUTTI_F8E4M3FN, TUTTI_F8E5M2, TUTTI_F64, TUTTI_C64,
                                          TUTTI_C128 };
    tutti_reducer           *r = NULL;
    setup                    s;
    size_t                   d;
    int                      i, k;

    for (d = 0; d < sizeof dtypes / sizeof dtypes[0]; d++) {
        prepare(t, &s);
        for (i = 0; i < N; i++) {
            s.params[i].dtype = dtypes[d];
            s.params[i].grad = tt_alloc(t, COUNT * 16); /* zeros */
        }
        OK(tutti_reducer_create(s.params, s.n, &s.opts, &r));
        for (k = 0; k < 3; k++) {
            bad_step(t, r, k, false);
            OK(tutti_reducer_prepare_for_backward(r, NULL, 0));
            for (i = 0; i < N; i++)
                OK(tutti_reducer_mark_ready(r, i));
            OK(tutti_reducer_finish(r));
        }
        tutti_reducer_free(r);
    }
}

/* The odd rank gives a step up, the others finish theirs: they hear of it. */
static void a_step_is_given_up_by_all(tt_ctx *t)
{
    tutti_reducer *r = NULL;
    setup          s;

    prepare(t, &s);
    OK(tutti_reducer_create(s.params, s.n, &s.opts, &r));
    good_step(t, r, 0);
    OK(tutti_reducer_prepare_for_backward(r, NULL, 0));
    if (t->rank != ODD)
        OK(tutti_reducer_mark_ready(r, 2));
    OK(tutti_reducer_reset_state(r));
    good_step(t, r, 1);
    good_step(t, r, 2);
    tutti_reducer_free(r);
}

static tutti_status refuse(void *state, const tutti_grad_bucket *bucket, tutti_future **future_out)
{
    (void)bucket;
    (void)state;
    (void)future_out;
    return TUTTI_E_BACKEND;
}

static void a_hook_that_fails_everywhere(tt_ctx *t)
{
    static const tutti_comm_hook hook = { .api = TUTTI_COMM_HOOK_API, .size = sizeof hook, .name = "no", .run = refuse };
    tutti_reducer               *r = NULL;
    setup                        s;
    int                          i;

    prepare(t, &s);
    OK(tutti_reducer_create(s.params, s.n, &s.opts, &r));
    OK(tutti_reducer_register_comm_hook(r, &hook, NULL));
    OK(tutti_reducer_prepare_for_backward(r, NULL, 0));
    assert_int_equal(tutti_reducer_mark_ready(r, 0), TUTTI_OK); /* the first bucket is that of all three */
    for (i = 1; i < N; i++)
        tutti_reducer_mark_ready(r, i);
    REFUSED(tutti_reducer_finish(r), TUTTI_E_BACKEND, "communication hook 'no' failed on bucket 0 [TUTTI_E_BACKEND]");
    tutti_reducer_free(r);
    OK(tutti_barrier(t->group));
}

/* One rank does not take part in a reduction: what others wait for does not come, and is not mistaken. */
static tutti_status refuse_on_one(void *state, const tutti_grad_bucket *bucket, tutti_future **future_out)
{
    tutti_work  *work = NULL;
    tutti_status st;

    if (tutti_get_rank(bucket->group) == ODD && bucket->index == *(int *)state)
        return TUTTI_E_BACKEND;
    st = tutti_all_reduce_async(bucket->buffer, TUTTI_AVG, bucket->group, &work);
    if (st == TUTTI_OK)
        st = tutti_work_get_future(work, future_out);
    tutti_work_free(work);
    return st;
}

static void fail_in_bucket(tt_ctx *t, tutti_group *group, int number)
{
    static const tutti_comm_hook hook = { .api = TUTTI_COMM_HOOK_API, .size = sizeof hook, .name = "one",
                                          .run = refuse_on_one };
    tutti_reducer               *r = NULL;
    setup                        s;
    int                          when = 9, i;

    prepare(t, &s);
    s.opts.group = group;
    OK(tutti_reducer_create(s.params, s.n, &s.opts, &r));
    OK(tutti_reducer_register_comm_hook(r, &hook, &when));
    good_step(t, r, 0);
    when = number; /* of the three buckets that there are now */
    OK(tutti_reducer_prepare_for_backward(r, NULL, 0));
    assert_int_equal(tutti_reducer_bucket_count(r), N);
    tt_post(t, number);
    tt_await(t, number, (uint32_t)t->size); /* all are in the step */
    for (i = N - 1; i >= 0; i--)
        tutti_reducer_mark_ready(r, i);
    assert_int_equal(tutti_reducer_finish(r), t->rank == ODD ? TUTTI_E_BACKEND : TUTTI_E_MISMATCH);
    if (t->rank == ODD) { /* why, and not what came of it */
        words("communication hook 'one' failed on bucket");
    } else {
        words("rank 1: all_reduce");
        words("is reduced by communication hook 'one'");
    }
    tutti_reducer_free(r);
}

static void a_hook_that_fails_on_one_rank(tt_ctx *t)
{
    tutti_group *group = NULL;
    int          number;

    for (number = 0; number < N; number++) {
        OK(tutti_split_group_by_color(t->group, 0, NULL, &group));
        fail_in_bucket(t, group, number);
        OK(tutti_destroy_process_group(group));
    }
}

/* ---- death ---- */

static void death_in_a_backward_names_the_rank(tt_ctx *t)
{
    tutti_reducer *r = NULL;
    setup          s;
    tutti_status   st;

    prepare(t, &s);
    OK(tutti_reducer_create(s.params, s.n, &s.opts, &r));
    good_step(t, r, 0);
    OK(tutti_reducer_prepare_for_forward(r));
    OK(tutti_reducer_prepare_for_backward(r, NULL, 0));
    tt_post(t, 0);
    OK(tutti_reducer_mark_ready(r, 2)); /* what becomes of its reduction is told by finish() */
    if (t->rank == ODD) {
        tt_await(t, 0, (uint32_t)t->size); /* nobody is in an earlier collective any more */
        tt_die();
    }
    OK(tutti_reducer_mark_ready(r, 1));
    OK(tutti_reducer_mark_ready(r, 0));
    st = tutti_reducer_finish(r);
    assert_true(st == TUTTI_E_PEER || st == TUTTI_E_ABORTED);
    words("rank 1");
    tutti_reducer_free(r); /* ends, too */
}

/* ---- steps that a rank gives up ---- */

/* Parameters are marked down to this one; then the odd rank says that it cannot go on. -1: it does not even begin. */
static void give_up_after(tt_ctx *t, tutti_reducer *r, int marked)
{
    const bool   odd = t->rank == ODD;
    int          i;

    if (odd && marked < 0)
        REFUSED(tutti_reducer_fail(r, TUTTI_E_IO, "cannot read the input 'x.bin'"), TUTTI_E_IO, "'x.bin'");
    else {
        OK(tutti_reducer_prepare_for_forward(r));
        OK(tutti_reducer_prepare_for_backward(r, NULL, 0));
        for (i = N - 1; i >= (odd ? N - marked : 0); i--)
            OK(tutti_reducer_mark_ready(r, i));
        if (odd)
            REFUSED(tutti_reducer_fail(r, TUTTI_E_IO, "cannot read the input 'x.bin'"), TUTTI_E_IO, "'x.bin'");
    }
    assert_int_equal(tutti_reducer_finish(r), odd ? TUTTI_E_IO : TUTTI_E_REMOTE);
    words("cannot read the input 'x.bin'");
    if (!odd)
        words("rank 1 failed [TUTTI_E_IO]");
}

static void a_rank_says_that_it_fails(tt_ctx *t)
{
    tutti_reducer *r = NULL;
    setup          s;
    int            mode, marked;

    for (mode = 0; mode < 16; mode++) {
        prepare(t, &s);
        s.opts.gradient_as_bucket_view = mode & 1;
        s.opts.find_unused_parameters = mode & 2;
        s.opts.static_graph = mode & 8;
        OK(tutti_reducer_create(s.params, s.n, &s.opts, &r));
        if (mode & 4)
            OK(tutti_reducer_register_builtin_comm_hook(r, TUTTI_HOOK_ALLREDUCE));
        for (marked = -1; marked < N; marked++) {
            give_up_after(t, r, marked);
            good_step(t, r, marked);
        }
        tutti_reducer_free(r);
    }
    assert_int_equal(tutti_reducer_fail(NULL, TUTTI_E_IO, "no"), TUTTI_E_ARG);
}

/* Without sync nobody else has to know. */
static void a_failure_without_sync_is_local(tt_ctx *t)
{
    tutti_reducer *r = NULL;
    setup          s;

    prepare(t, &s);
    OK(tutti_reducer_create(s.params, s.n, &s.opts, &r));
    assert_int_equal(tutti_reducer_fail(r, TUTTI_OK, "no failure"), TUTTI_E_ARG);
    assert_int_equal(tutti_reducer_fail(r, TUTTI_E_IO, NULL), TUTTI_E_ARG);
    tutti_reducer_set_sync(r, false);
    if (t->rank == ODD)
        REFUSED(tutti_reducer_fail(r, TUTTI_E_IO, "mine alone"), TUTTI_E_IO, "mine alone");
    OK(tutti_reducer_finish(r));
    tutti_reducer_set_sync(r, true);
    good_step(t, r, 1);
    tutti_reducer_free(r);
}

/* ---- another group ---- */

static void a_group_without_the_dead(tt_ctx *t)
{
    tutti_reducer *r = NULL;
    tutti_group   *rest = NULL;
    tt_ctx         there;
    setup          s;

    prepare(t, &s);
    OK(tutti_reducer_create(s.params, s.n, &s.opts, &r));
    good_step(t, r, 0);
    OK(tutti_reducer_prepare_for_backward(r, NULL, 0));
    tt_post(t, 0);
    tt_await(t, 0, (uint32_t)t->size); /* nobody is in a collective any more */
    if (t->rank == ODD)
        tt_die();
    OK(tutti_reducer_mark_ready(r, 2));
    if (t->rank == 0)
        REFUSED(tutti_reducer_update_process_group(r, t->group), TUTTI_E_STATE, "a step is under way");
    tutti_reducer_mark_ready(r, 1);
    tutti_reducer_mark_ready(r, 0);
    assert_int_not_equal(tutti_reducer_finish(r), TUTTI_OK);
    OK(tutti_shrink_group((int[]){ ODD }, 1, t->group, TUTTI_SHRINK_DEFAULT, NULL, &rest));
    OK(tutti_reducer_update_process_group(r, rest));
    assert_int_equal(tutti_reducer_update_process_group(NULL, rest), TUTTI_E_ARG);
    there = *t;
    there.group = rest;
    there.rank = tutti_get_rank(rest);
    there.size = tutti_get_world_size(rest);
    good_step(&there, r, 1);
    good_step(&there, r, 2);
    tutti_reducer_free(r);
    OK(tutti_destroy_process_group(rest));
}

int main(void)
{
    static const tt_test tests[] = {
        TT_TEST(models_that_differ, .ranks = 2, .transports = "shm,tcp,threads"),
        TT_TEST(models_that_differ, .ranks = 4, .transports = "shm"),
        TT_TEST(mistakes_are_told_to_all, .ranks = 2, .transports = "shm,tcp,threads"),
        TT_TEST(mistakes_are_told_to_all, .ranks = 4, .transports = "shm", .limit_ms = 40000),
        TT_TEST(mistakes_travel_in_every_dtype, .ranks = 3, .transports = "shm,tcp"),
        TT_TEST(a_step_is_given_up_by_all, .ranks = 3, .transports = "shm,tcp"),
        TT_TEST(a_rank_says_that_it_fails, .ranks = 3, .transports = "shm,tcp,threads", .limit_ms = 40000),
        TT_TEST(a_failure_without_sync_is_local, .ranks = 2),
        TT_TEST(a_group_without_the_dead, .ranks = 4, .transports = "shm,tcp", .dies = ODD),
        TT_TEST(a_hook_that_fails_everywhere, .ranks = 2, .transports = "shm"),
        TT_TEST(a_hook_that_fails_on_one_rank, .ranks = 3, .transports = "shm,tcp,threads"),
        TT_TEST(death_in_a_backward_names_the_rank, .ranks = 3, .transports = "shm,tcp", .dies = ODD),
    };

    return tt_main(tests, sizeof tests / sizeof tests[0]);
}
