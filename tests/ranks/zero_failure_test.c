/* SPDX-License-Identifier: BSD-3-Clause
 *
 * zero_failure_test.c
 * Goal    what is wrong with a divided optimizer on one rank is an error on all of them, in the same call; nobody waits
 *         for the time-out, and training goes on after, unless a rank is gone.
 * Method  mistakes on the last rank alone, of each kind; after each a good step. */
#include "zero_nets.h"

#include <stdio.h>
#include <tutti/private.h>

static bool last(const tt_ctx *t)
{
    return t->rank == t->size - 1;
}

/* A call that fails on the last rank in these words, and on the others because of it. */
static void expect_told(tt_ctx *t, tutti_status st, tutti_status on_last, const char *words)
{
    char rank[32];

    snprintf(rank, sizeof rank, "rank %d", t->size - 1);
    if (st != (last(t) ? on_last : TUTTI_E_REMOTE) || strstr(tutti_last_error(), last(t) ? words : rank) == NULL)
        fail_msg("rank %d: %s instead of '%s': %s", t->rank, tutti_status_name(st), words, tutti_last_error());
}

/* The same where the others hear these words too. */
static void expect_told_why(tt_ctx *t, tutti_status st, tutti_status on_last, const char *words)
{
    char failed[64];

    snprintf(failed, sizeof failed, "rank %d failed [%s]: ", t->size - 1, tutti_status_name(on_last));
    if (st != (last(t) ? on_last : TUTTI_E_REMOTE) || strstr(tutti_last_error(), words) == NULL ||
        (!last(t) && strstr(tutti_last_error(), failed) == NULL))
        fail_msg("rank %d: %s instead of '%s': %s", t->rank, tutti_status_name(st), words, tutti_last_error());
}

static void ranks_make_other_things(tt_ctx *t)
{
    static const tutti_optim_option lr[] = { { "lr", { 0.5 } } };
    static const tutti_optim_option betas[] = { { "betas", { 0.9, 0.5 } } };
    tutti_zero_options opts = TUTTI_ZERO_OPTIONS;
    tutti_optim *zero = NULL;
    set s, wide;

    opts.group = t->group;
    set_make(&s, TUTTI_F32);
    set_make(&wide, TUTTI_F64);
    REFUSED(tutti_zero_create("adam", s.p, last(t) ? 5 : 6, NULL, 0, &opts, &zero), TUTTI_E_MISMATCH, "has 6 parameters");
    REFUSED(tutti_zero_create("adam", last(t) ? s.p : s.p + 1, 6, NULL, 0, &opts, &zero), TUTTI_E_MISMATCH,
            "parameter 0 has 7 elements on rank 0, and 10 on rank 2");
    REFUSED(tutti_zero_create("adam", last(t) ? s.p : wide.p, SET, NULL, 0, &opts, &zero), TUTTI_E_MISMATCH,
            "other shapes or types");
    REFUSED(tutti_zero_create(last(t) ? "sgd" : "adam", s.p, SET, NULL, 0, &opts, &zero), TUTTI_E_MISMATCH,
            "the optimizer is 'adam' on rank 0, and 'sgd' on rank 2");
    REFUSED(tutti_zero_create("adam", s.p, SET, lr, last(t), &opts, &zero), TUTTI_E_MISMATCH,
            "option 'lr' of group 0 is 0.001 on rank 0, and 0.5 on rank 2");
    REFUSED(tutti_zero_create("adam", s.p, SET, betas, last(t), &opts, &zero), TUTTI_E_MISMATCH,
            "option 'betas' (the second) of group 0 is 0.999 on rank 0, and 0.5 on rank 2");
    opts.parameters_as_bucket_view = last(t);
    REFUSED(tutti_zero_create("adam", s.p, SET, NULL, 0, &opts, &zero), TUTTI_E_MISMATCH,
            "parameters_as_bucket_view is false on rank 0, and true on rank 2");
    opts.parameters_as_bucket_view = false;

    expect_told_why(t, tutti_zero_create(last(t) ? "atom" : "adam", s.p, SET, NULL, 0, &opts, &zero), TUTTI_E_ARG,
                    "there is no optimizer 'atom'");
    expect_told_why(t, tutti_zero_create("adam", last(t) ? NULL : s.p, SET, NULL, 0, &opts, &zero), TUTTI_E_ARG,
                    "no parameters");
    expect_told_why(t, tutti_zero_create("adam", last(t) ? (tutti_tensor *[]){ s.p[0], wide.p[1] } : s.p, 2, NULL, 0, &opts,
                                         &zero),
                    TUTTI_E_ARG, "must be of one type");
    assert_null(zero);
    assert_int_equal(tutti_zero_create("adam", s.p, SET, NULL, 0, &(tutti_zero_options){ .size = 1 }, &zero), TUTTI_E_ARG);
    OK(tutti_zero_create("adam", s.p, SET, NULL, 0, &opts, &zero)); /* and then it is right */
    set_gradients(&s, 0);
    OK(tutti_optim_step(zero));
    tutti_optim_free(zero);
    set_free(&s);
    set_free(&wide);
}

static void groups_that_differ(tt_ctx *t)
{
    tutti_optim *zero;
    set s;
    int n;

    for (int views = 0; views < 2; views++) {
        set_make(&s, TUTTI_F32);
        zero = zero_of(t, "adam", s.p, 3, NULL, 0, views);
        REFUSED(tutti_optim_add_param_group(zero, s.p + 3, last(t) ? 3 : 4, NULL), TUTTI_E_MISMATCH, "parameters");
        expect_told_why(t, tutti_optim_add_param_group(zero, last(t) ? s.p : s.p + 3, 2, NULL), TUTTI_E_ARG, "already");
        assert_int_equal(tutti_optim_n_groups(zero), 1);
        (void)tutti_optim_parameters(zero, -1, &n);
        assert_int_equal(n, 3);
        OK(tutti_optim_add_param_group(zero, s.p + 3, 4, NULL));
        set_gradients(&s, 0);
        OK(tutti_optim_step(zero));
        for (int i = 0; i < SET; i++)
            expect_same_bits(t, s.p[i]);
        tutti_optim_free(zero);
        set_free(&s);
    }
}

/* ---- steps that fail --------------------------------------------------------------------------- */

typedef struct closing {
    tt_ctx *t;
    set *s;
    bool fails;
} closing;

static tutti_status closure(void *ctx, double *loss_out)
{
    closing *c = ctx;

    set_gradients(c->s, 1);
    *loss_out = 5;
    return c->fails && last(c->t) ? tti_fail(TUTTI_E_IO, "no input any more") : TUTTI_OK;
}

static void steps_that_fail(tt_ctx *t, bool views)
{
    closing c = { .t = t };
    tutti_tensor *g[SET];
    tutti_optim *zero;
    double loss = 0;
    set s;

    set_make(&s, TUTTI_F32);
    c.s = &s;
    zero = zero_of(t, "adam", s.p, SET, NULL, 0, views);
    tutti_scope_begin();
    for (int i = 0; i < SET; i++)
        g[i] = set_elements(TUTTI_F32, i, 0);

    if (last(t)) /* an expression has failed before */
        assert_null(tutti_tensor_add(g[0], g[1]));
    expect_told(t, tutti_optim_step_grads(zero, g, SET), TUTTI_E_ARG, "add");
    OK(tutti_optim_step_grads(zero, g, SET));
    if (last(t)) /* a gradient of another shape, of a parameter of its own: the only one that another rank could not see */
        for (int i = 0; i < SET; i++)
            if (tutti_zero_owner(zero, s.p[i]) == t->rank)
                g[i] = tutti_tensor_zeros(TUTTI_F32, 1, SHAPE(77));
    expect_told(t, tutti_optim_step_grads(zero, g, SET), TUTTI_E_ARG, "of shape [77]");
    expect_told(t, tutti_optim_step_grads(zero, g, last(t) ? 3 : SET), TUTTI_E_ARG, "3 gradients for 7");

    c.fails = true;
    expect_told(t, tutti_optim_step_closure(zero, closure, &c, &loss), TUTTI_E_IO, "no input any more");
    assert_true(loss == 0);
    c.fails = false;
    OK(tutti_optim_step_closure(zero, closure, &c, &loss));
    assert_true(loss == 5);
    for (int i = 0; i < SET; i++)
        expect_same_bits(t, s.p[i]);
    tutti_scope_end();
    tutti_optim_free(zero);
    set_free(&s);
}

static void a_step_fails_on_one_rank(tt_ctx *t)
{
    steps_that_fail(t, false);
    steps_that_fail(t, true);
}

/* ---- the state --------------------------------------------------------------------------------- */

static void the_state_is_to_come_to_two_ranks(tt_ctx *t)
{
    tutti_state_dict *sd = NULL;
    tutti_optim *zero;
    set s;

    set_make(&s, TUTTI_F32);
    zero = zero_of(t, "adam", s.p, SET, NULL, 0, false);
    set_gradients(&s, 0);
    OK(tutti_optim_step(zero));
    REFUSED(tutti_zero_consolidate_state_dict(zero, last(t) ? 1 : 0), TUTTI_E_MISMATCH,
            "to rank 0, says rank 0, and to rank 1, says rank 2");
    REFUSED(tutti_zero_consolidate_state_dict(zero, last(t) ? 9 : 0), TUTTI_E_MISMATCH, "and to rank 9, says rank 2");
    REFUSED(tutti_zero_state_dict(zero, &sd), TUTTI_E_STATE, "has not been brought together");
    OK(tutti_zero_consolidate_state_dict(zero, 1));
    if (t->rank == 1)
        OK(tutti_zero_state_dict(zero, &sd));
    tutti_state_dict_free(sd);
    tutti_optim_free(zero);
    set_free(&s);
}

/* ---- ranks that go ------------------------------------------------------------------------------ */

enum { VICTIM = 1 };

static void die_in_a_step(tt_ctx *t, bool views)
{
    tutti_optim *zero;
    set s;

    set_make(&s, TUTTI_F32);
    zero = zero_of(t, "adam", s.p, SET, NULL, 0, views);
    set_gradients(&s, 0);
    OK(tutti_optim_step(zero));
    await_all(t, VICTIM);
    if (t->rank == VICTIM)
        tt_die();
    REFUSED(tutti_optim_step(zero), TUTTI_E_PEER, "rank 1");
    REFUSED(tutti_optim_step(zero), TUTTI_E_PEER, "rank 1"); /* so does all that comes after */
    REFUSED(tutti_zero_consolidate_state_dict(zero, 0), TUTTI_E_PEER, "rank 1");
    tutti_optim_free(zero);
    set_free(&s);
}

static void a_rank_dies(tt_ctx *t)
{
    die_in_a_step(t, false);
}

static void a_rank_dies_with_views(tt_ctx *t)
{
    die_in_a_step(t, true);
}

int main(void)
{
    static const tt_test tests[] = {
        TT_TEST(ranks_make_other_things, .ranks = 3, .transports = "shm,tcp,threads"),
        TT_TEST(groups_that_differ, .ranks = 2, .transports = "shm,tcp"),
        TT_TEST(a_step_fails_on_one_rank, .ranks = 3, .transports = "shm,tcp,threads"),
        TT_TEST(the_state_is_to_come_to_two_ranks, .ranks = 3, .transports = "shm,tcp"),
        TT_TEST(a_rank_dies, .ranks = 3, .transports = "shm,tcp", .dies = VICTIM),
        TT_TEST(a_rank_dies_with_views, .ranks = 3, .transports = "shm,tcp", .dies = VICTIM),
    };

    return tt_main(tests, sizeof tests / sizeof tests[0]);
}
