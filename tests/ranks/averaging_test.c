/* SPDX-License-Identifier: BSD-3-Clause
 *
 * averaging_test.c
 * Goal    parameters with gradients become averages, over the ranks and at the steps that the rules say, in every type and
 *         layout; ranks that disagree hear of it; a run that goes on from a state goes the same way.
 * Method  parameters whose averages can be told; a table of steps; ranks that do other things, or die. */
#include "zero_nets.h"

#include <tutti/private.h>

/* A parameter of one value, with a gradient or without. Owned by the scope. */
static tutti_tensor *param(tutti_dtype dtype, double value, bool has_grad)
{
    tutti_tensor *p = tutti_tensor_full(dtype, 2, SHAPE(3, 2), value);

    if (has_grad)
        OK(tutti_tensor_set_grad(p, tutti_tensor_zeros(dtype, 2, SHAPE(3, 2))));
    return p;
}

static double at(const tutti_tensor *t, int64_t row, int64_t column)
{
    tutti_tensor *x = tutti_tensor_select(tutti_tensor_select(tutti_tensor_detach((tutti_tensor *)t), 0, row), 0, column);

    return value_of(tutti_tensor_to(x, TUTTI_F64));
}

static void expect_all(const tutti_tensor *t, double want)
{
    for (int64_t i = 0; i < 6; i++)
        if (at(t, i / 2, i % 2) != want)
            fail_msg("element %d is %g, not %g", (int)i, at(t, i / 2, i % 2), want);
}

static void parameters_become_averages(tt_ctx *t)
{
    const double mine = t->rank + 1, mean = (t->size + 1) / 2.0;
    tutti_tensor *p[6], *turned;
    tutti_group *few = NULL;
    const int first = 0;

    tutti_scope_begin();
    p[0] = param(TUTTI_F32, mine, true);
    p[1] = param(TUTTI_F32, mine, false); /* stays */
    p[2] = param(TUTTI_F64, 10 * mine, true);
    p[3] = param(TUTTI_BF16, mine, true);
    p[4] = param(TUTTI_F16, 2 * mine, true);
    turned = tutti_tensor_transpose(tutti_tensor_full(TUTTI_F32, 2, SHAPE(2, 3), mine), 0, 1);
    OK(tutti_tensor_set_grad(turned, tutti_tensor_zeros(TUTTI_F32, 2, SHAPE(3, 2))));
    p[5] = turned;
    assert_false(tutti_tensor_is_contiguous(turned));
    OK(tutti_average_parameters(p, 6, t->group));
    expect_all(p[0], mean);
    expect_all(p[1], mine);
    expect_all(p[2], 10 * mean);
    expect_all(p[3], mean);
    expect_all(p[4], 2 * mean);
    expect_all(p[5], mean);

    OK(tutti_new_group(&first, 1, NULL, &few)); /* who is not in a group does nothing */
    OK(tutti_average_parameters(p, 6, few));
    expect_all(p[0], mean);
    OK(tutti_average_parameters(NULL, 0, t->group));
    REFUSED(tutti_average_parameters(NULL, 1, t->group), TUTTI_E_ARG, "1 parameters at NULL");
    REFUSED(tutti_average_parameters((tutti_tensor *[]){ NULL }, 1, t->group), TUTTI_E_ARG, "parameter 0 is NULL");
    tutti_scope_end();
    OK(tutti_tensor_check());
}

/* Rank 0 has no gradient where the others have one: everybody hears of it, nobody waits for the time-out. */
static void ranks_disagree(tt_ctx *t)
{
    tutti_tensor *p;

    tt_post(t, 0);
    tt_await(t, 0, (uint32_t)t->size); /* two that differ end their world also for a third one, which may still be making it */
    tutti_scope_begin();
    p = param(TUTTI_F32, 1, t->rank != 0);
    assert_int_equal(tutti_average_parameters(&p, 1, t->group), TUTTI_E_MISMATCH);
    tutti_scope_end();
    OK(tutti_tensor_check());
}

enum { VICTIM = 1 };

static void a_rank_dies(tt_ctx *t)
{
    tutti_tensor *p;

    tutti_scope_begin();
    p = param(TUTTI_F32, t->rank, true);
    OK(tutti_average_parameters(&p, 1, t->group));
    await_all(t, VICTIM);
    if (t->rank == VICTIM)
        tt_die();
    REFUSED(tutti_average_parameters(&p, 1, t->group), TUTTI_E_PEER, "rank 1");
    tutti_scope_end();
    OK(tutti_tensor_check());
}

/* ---- averagers -------------------------------------------------------------------------------- */

/* One step of an averager: ranks have their own values, and then the averages of groups of so many. */
static void step_of(tt_ctx *t, tutti_model_averager *a, int size)
{
    const int first = size > 0 ? t->rank / size * size : t->rank;
    const double want = size > 0 ? first + (size - 1) / 2.0 : t->rank;
    tutti_tensor *p;

    assert_int_equal(tutti_model_averager_next_size(a), size);
    tutti_scope_begin();
    p = param(TUTTI_F32, t->rank, true);
    OK(tutti_model_averager_average_parameters(a, &p, 1));
    expect_all(p, want);
    tutti_scope_end();
}

static void periods_count_from_the_warm_up(tt_ctx *t)
{
    tutti_model_averager *a = NULL;

    OK(tutti_periodic_model_averager(3, 2, t->group, &a));
    for (int step = 0; step < 10; step++) {
        assert_int_equal(tutti_model_averager_step(a), step);
        step_of(t, a, step >= 2 && (step - 2) % 3 == 0 ? t->size : 0);
    }
    OK(tutti_model_averager_set_step(a, 2));
    step_of(t, a, t->size);
    tutti_model_averager_free(a);
    REFUSED(tutti_periodic_model_averager(0, 0, t->group, &a), TUTTI_E_ARG, "a period of 0");
    REFUSED(tutti_periodic_model_averager(1, -1, t->group, &a), TUTTI_E_ARG, "-1 warm-up steps");
    REFUSED(tutti_model_averager_set_step(NULL, 1), TUTTI_E_ARG, "NULL");
    tutti_model_averager_free(NULL);
}

/* Periods 2, 4 and 8 over 2, 4 and 8 ranks, from step 5 on: steps are divided as they are, not less the warm-up. */
static void levels_take_the_largest_period(tt_ctx *t)
{
    static const tutti_averaging_level levels[] = { { 2, 2 }, { 4, 4 }, { 8, 8 } };
    static const int sizes[] = { 0, 0, 0, 0, 0, 0, 2, 0, 8, 0, 2, 0, 4, 0, 2, 0, 8 };
    tutti_model_averager *a = NULL;

    OK(tutti_hierarchical_model_averager(levels, 3, 5, t->group, &a));
    for (size_t step = 0; step < sizeof sizes / sizeof sizes[0]; step++)
        step_of(t, a, sizes[step]);
    tutti_model_averager_free(a);
    OK(tutti_hierarchical_model_averager(levels, 3, 0, t->group, &a));
    step_of(t, a, 8); /* 0 is divided by all of them */
    tutti_model_averager_free(a);
}

static void levels_that_make_no_sense(tt_ctx *t)
{
    tutti_model_averager *a = NULL;

#define LEVELS(...) ((const tutti_averaging_level[]){ __VA_ARGS__ })
    REFUSED(tutti_hierarchical_model_averager(NULL, 1, 0, t->group, &a), TUTTI_E_ARG, "at NULL");
    REFUSED(tutti_hierarchical_model_averager(LEVELS({ 2, 2 }), 0, 0, t->group, &a), TUTTI_E_ARG, "0 levels");
    REFUSED(tutti_hierarchical_model_averager(LEVELS({ 0, 4 }), 1, 0, t->group, &a), TUTTI_E_ARG, "a period of 0");
    REFUSED(tutti_hierarchical_model_averager(LEVELS({ 2, 2 }), 1, 0, t->group, &a), TUTTI_E_ARG, "the last level has 2");
    REFUSED(tutti_hierarchical_model_averager(LEVELS({ 2, 3 }, { 4, 4 }), 2, 0, t->group, &a), TUTTI_E_ARG,
            "groups of 3 of 4");
    REFUSED(tutti_hierarchical_model_averager(LEVELS({ 4, 2 }, { 2, 4 }), 2, 0, t->group, &a), TUTTI_E_ARG, "must grow");
    REFUSED(tutti_hierarchical_model_averager(LEVELS({ 4, 4 }), 1, -1, t->group, &a), TUTTI_E_ARG, "warm-up");
    assert_null(a);
    OK(tutti_hierarchical_model_averager(LEVELS({ 4, 4 }), 1, 0, t->group, &a));
    tutti_model_averager_free(a);
}

/* Each rank goes on to its own first average. */
static void expect_other_settings(tt_ctx *t, int64_t period, int64_t warmup, int64_t step, const char *words)
{
    tutti_model_averager *a = NULL;
    tutti_status st = TUTTI_OK;
    tutti_tensor *p;

    OK(tutti_periodic_model_averager(period, warmup, t->group, &a));
    OK(tutti_model_averager_set_step(a, step));
    tutti_scope_begin();
    p = param(TUTTI_F32, t->rank, true);
    while (tutti_model_averager_next_size(a) == 0)
        OK(tutti_model_averager_average_parameters(a, &p, 1));
    st = tutti_model_averager_average_parameters(a, &p, 1);
    if (st != TUTTI_E_MISMATCH || strstr(tutti_last_error(), words) == NULL)
        fail_msg("%s instead of '%s': %s", tutti_status_name(st), words, tutti_last_error());
    expect_all(p, t->rank); /* nothing has been averaged */
    tutti_scope_end();
    tutti_model_averager_free(a);
    OK(tutti_tensor_check());
}

static void settings_differ(tt_ctx *t)
{
    const bool last = t->rank == t->size - 1;
    const tutti_averaging_level levels[] = { { last ? 3 : 2, 1 }, { 6, t->size } };
    tutti_model_averager *a = NULL;

    expect_other_settings(t, last ? 3 : 2, 1, 0, "a period of 2 on rank 0, and of 3 on rank 2");
    expect_other_settings(t, 2, last ? 4 : 0, 0, "0 warm-up steps on rank 0, and 4 on rank 2");
    expect_other_settings(t, 2, 0, last ? 4 : 2, "at step 2 on rank 0, and at 4 on rank 2");
    REFUSED(tutti_hierarchical_model_averager(levels, 2, 0, t->group, &a), TUTTI_E_MISMATCH,
            "level 0 has a period of 2 for 1 ranks on rank 0, and of 3 for 1 on rank 2");
    REFUSED(tutti_hierarchical_model_averager(levels + last, last ? 1 : 2, 0, t->group, &a), TUTTI_E_MISMATCH,
            "2 levels on rank 0, and 1 on rank 2");
    REFUSED(tutti_hierarchical_model_averager(levels + 1, 1, last, t->group, &a), TUTTI_E_MISMATCH,
            "0 warm-up steps on rank 0, and 1 on rank 2");
    assert_null(a);
}

/* ---- behind an optimizer ---------------------------------------------------------------------- */

typedef struct training {
    tutti_tensor *p[2];
    tutti_optim *optim;
    tutti_model_averager *averager;
    tutti_post_local_sgd *local;
} training;

static void training_make(training *tr, tt_ctx *t)
{
    tutti_sgd_options opts = TUTTI_SGD_OPTIONS;

    opts.lr = 0.5;
    opts.momentum = 0.5;
    tutti_scope_begin();
    for (int i = 0; i < 2; i++)
        tr->p[i] = tutti_tensor_retain(tutti_tensor_requires_grad_(tutti_tensor_ones(TUTTI_F64, 1, SHAPE(2)), true));
    tutti_scope_end();
    tr->optim = tutti_sgd(tr->p, 2, &opts);
    OK(tutti_tensor_check());
    OK(tutti_periodic_model_averager(2, 3, t->group, &tr->averager));
    OK(tutti_post_local_sgd_create(tr->optim, tr->averager, &tr->local));
}

static void training_free(training *tr)
{
    tutti_post_local_sgd_free(tr->local);
    tutti_model_averager_free(tr->averager);
    tutti_optim_free(tr->optim);
    tutti_tensor_release(tr->p[0]);
    tutti_tensor_release(tr->p[1]);
    OK(tutti_tensor_check());
}

static void training_step(training *tr, tt_ctx *t, int step)
{
    tutti_scope_begin();
    for (int i = 0; i < 2; i++)
        OK(tutti_tensor_set_grad(tr->p[i], tutti_tensor_full(TUTTI_F64, 1, SHAPE(2), step + t->rank + i)));
    OK(tutti_post_local_sgd_step(tr->local));
    tutti_scope_end();
}

static double number_of(const tutti_tensor *p)
{
    return ((const double *)tutti_tensor_data((tutti_tensor *)p))[1];
}

/* The same sums by hand: momentum stays local, parameters are averaged after steps 3, 5, ... */
static void steps_are_followed_by_averages(tt_ctx *t)
{
    double p[64] = { 0 }, momentum[64] = { 0 };
    training tr;

    training_make(&tr, t);
    for (int r = 0; r < t->size; r++)
        p[r] = 1;
    for (int step = 0; step < 8; step++) {
        double sum = 0;

        for (int r = 0; r < t->size; r++) {
            momentum[r] = step == 0 ? step + r : 0.5 * momentum[r] + step + r;
            p[r] -= 0.5 * momentum[r];
            sum += p[r];
        }
        for (int r = 0; r < t->size && step >= 3 && (step - 3) % 2 == 0; r++)
            p[r] = sum / t->size;
        training_step(&tr, t, step);
        assert_true(fabs(number_of(tr.p[0]) - p[t->rank]) < 1e-12);
    }
    expect_same_bits(t, tr.p[0]); /* the last step was one of those */
    expect_same_bits(t, tr.p[1]);
    training_free(&tr);
}

static void a_run_goes_on_from_a_state(tt_ctx *t)
{
    tutti_state_dict *sd = NULL, *bad = NULL;
    training a, b;

    training_make(&a, t);
    training_make(&b, t);
    for (int step = 0; step < 4; step++)
        training_step(&a, t, step);
    OK(tutti_post_local_sgd_state_dict(a.local, &sd));
    assert_int_equal(value_of(tutti_state_dict_get(sd, "step")), 4);
    OK(tutti_post_local_sgd_load_state_dict(b.local, sd));
    assert_int_equal(tutti_model_averager_step(b.averager), 4);
    for (int i = 0; i < 2; i++)
        memcpy(tutti_tensor_data(b.p[i]), tutti_tensor_data(a.p[i]), 2 * sizeof(double));
    for (int step = 4; step < 8; step++) {
        training_step(&a, t, step);
        training_step(&b, t, step);
    }
    assert_memory_equal(tutti_tensor_data(a.p[1]), tutti_tensor_data(b.p[1]), 2 * sizeof(double));

    OK(tutti_optim_state_dict(a.optim, &bad)); /* the optimizer's alone: a warning, and step 0 */
    OK(tutti_post_local_sgd_load_state_dict(b.local, bad));
    assert_int_equal(tutti_model_averager_step(b.averager), 0);
    tutti_scope_begin();
    OK(tutti_state_dict_set(bad, "step", tutti_tensor_scalar(TUTTI_F64, 1.5)));
    tutti_scope_end();
    REFUSED(tutti_post_local_sgd_load_state_dict(b.local, bad), TUTTI_E_MISMATCH, "'step'");
    REFUSED(tutti_post_local_sgd_load_state_dict(NULL, sd), TUTTI_E_ARG, "NULL");
    REFUSED(tutti_post_local_sgd_create(NULL, a.averager, &a.local), TUTTI_E_ARG, "the optimizer is NULL");
    assert_int_equal(tutti_post_local_sgd_step(NULL), TUTTI_E_ARG);
    tutti_state_dict_free(sd);
    tutti_state_dict_free(bad);
    training_free(&a);
    training_free(&b);
}

/* ---- together with a ddp ------------------------------------------------------------------------ */

static bool same_as_rank_0(tt_ctx *t, const tutti_tensor *x)
{
    const size_t bytes = (size_t)tutti_tensor_numel(x) * sizeof(float);
    uint8_t *copy = tt_alloc(t, bytes);

    memcpy(copy, tutti_tensor_data((tutti_tensor *)x), bytes);
    OK(tutti_broadcast_in_group(TUTTI_SPAN(copy, (int64_t)bytes), 0, t->group));
    return memcmp(copy, tutti_tensor_data((tutti_tensor *)x), bytes) == 0;
}

/* The hook of the ddp ends with the step at which the averager begins: ranks are together up to it, and then after every
 * second step. */
static void a_ddp_ends_where_an_averager_begins(tt_ctx *t)
{
    tutti_post_local_hook_options hopts = TUTTI_POST_LOCAL_HOOK_OPTIONS;
    tutti_ddp_options opts = TUTTI_DDP_OPTIONS;
    tutti_model_averager *averager = NULL;
    tutti_post_local_hook *hook = NULL;
    tutti_post_local_sgd *local = NULL;
    tutti_module *net = make_net();
    tutti_tensor *const *p;
    tutti_ddp *ddp = NULL;
    tutti_optim *o;
    int n;

    opts.group = t->group;
    p = tutti_module_parameters(net, &n);
    OK(tutti_ddp_create(net, &opts, &ddp));
    hopts.start_iter = 3;
    hopts.no_gradient_all_reduce = true;
    OK(tutti_post_local_hook_create(tutti_ddp_reducer(ddp), &hopts, &hook));
    OK(tutti_reducer_register_comm_hook(tutti_ddp_reducer(ddp), tutti_post_local_hook_table(hook), hook));
    OK(tutti_periodic_model_averager(2, 3, t->group, &averager));
    o = tutti_optim_create("sgd", p, n, (tutti_optim_option[]){ { "lr", { 0.1 } } }, 1);
    OK(tutti_post_local_sgd_create(o, averager, &local));
    for (int step = 0; step < 8; step++) {
        OK(net_backward(t, ddp, o, step));
        OK(tutti_post_local_sgd_step(local));
        for (int i = 0; i < n; i++)
            assert_int_equal(same_as_rank_0(t, p[i]), t->rank == 0 || step < 3 || (step - 3) % 2 == 0);
    }
    tutti_post_local_sgd_free(local);
    tutti_model_averager_free(averager);
    tutti_optim_free(o);
    tutti_ddp_free(ddp);
    tutti_module_free(net);
    OK(tutti_tensor_check());
}

/* ---- over time -------------------------------------------------------------------------------- */

static void averages_follow_slowly(tt_ctx *t)
{
    tutti_tensor *const *averages, *p[2];
    tutti_ema *ema = NULL;
    double want = 3;
    int n;

    tutti_scope_begin();
    p[0] = tutti_tensor_full(TUTTI_F64, 2, SHAPE(3, 2), 3);
    p[1] = tutti_tensor_transpose(tutti_tensor_full(TUTTI_BF16, 2, SHAPE(2, 3), 4), 0, 1);
    OK(tutti_ema_create(p, 2, 0.75, &ema));
    OK(tutti_ema_update(ema));
    averages = tutti_ema_averages(ema, &n);
    assert_int_equal(n, 2);
    expect_all(averages[0], 3); /* a copy */
    for (int k = 0; k < 3; k++) {
        OK(tutti_tensor_fill_(p[0], k));
        OK(tutti_tensor_fill_(p[1], 8));
        OK(tutti_ema_update(ema));
        want = 0.75 * want + 0.25 * k;
        expect_all(averages[0], want);
    }
    expect_all(averages[1], 8 - 4 * 0.75 * 0.75 * 0.75);
    tutti_ema_free(ema);
    REFUSED(tutti_ema_create(p, 2, 1.5, &ema), TUTTI_E_ARG, "a decay of 1.5");
    REFUSED(tutti_ema_create(p, 0, 0.5, &ema), TUTTI_E_ARG, "0 parameters");
    p[1] = tutti_tensor_arange(TUTTI_I64, 0, 3, 1);
    REFUSED(tutti_ema_create(p, 2, 0.5, &ema), TUTTI_E_ARG, "parameter 1 is i64");
    assert_null(tutti_ema_averages(NULL, &n));
    assert_int_equal(tutti_ema_update(NULL), TUTTI_E_ARG);
    tutti_scope_end();
    OK(tutti_tensor_check());
    (void)t;
}

int main(void)
{
    static const tt_test tests[] = {
        TT_TEST(parameters_become_averages, .ranks = 1),
        TT_TEST(parameters_become_averages, .ranks = 3, .transports = "shm,tcp,threads"),
        TT_TEST(ranks_disagree, .ranks = 3, .transports = "shm,tcp"),
        TT_TEST(a_rank_dies, .ranks = 3, .transports = "shm,tcp", .dies = VICTIM),
        TT_TEST(periods_count_from_the_warm_up, .ranks = 2, .transports = "shm,threads"),
        TT_TEST(levels_take_the_largest_period, .ranks = 8, .transports = "shm,threads-tcp", .limit_ms = 40000),
        TT_TEST(levels_that_make_no_sense, .ranks = 4),
        TT_TEST(settings_differ, .ranks = 3, .transports = "shm,tcp,threads"),
        TT_TEST(steps_are_followed_by_averages, .ranks = 3, .transports = "shm,tcp,threads"),
        TT_TEST(a_run_goes_on_from_a_state, .ranks = 2),
        TT_TEST(a_ddp_ends_where_an_averager_begins, .ranks = 3, .transports = "shm,tcp,threads"),
        TT_TEST(averages_follow_slowly, .ranks = 1),
    };

    return tt_main(tests, sizeof tests / sizeof tests[0]);
}
