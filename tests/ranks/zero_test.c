/* SPDX-License-Identifier: BSD-3-Clause
 *
 * zero_test.c
 * Goal    a divided optimizer goes the way of the whole one to the last bit: steps of all kinds, options, schedules,
 *         more groups, state; in one buffer or not; each rank remembers its own part alone.
 * Method  both side by side, with gradients by a formula, or averaged by ddps over the same network. */
#include "zero_nets.h"

#include <tutti/private.h>

static const tutti_optim_option momentum[] = { { "lr", { 0.1 } }, { "momentum", { 0.9 } }, { "weight_decay", { 0.01 } } };
static const tutti_optim_option amsgrad[] = { { "lr", { 0.05 } }, { "amsgrad", { 1 } }, { "betas", { 0.8, 0.99 } } };

static void steps(tt_ctx *t, const char *name, const tutti_optim_option *options, int n, tutti_dtype dtype, bool views)
{
    tutti_optim *plain, *zero;
    tutti_lr_scheduler *s[2];
    set a, b;

    set_make(&a, dtype);
    set_make(&b, dtype);
    plain = tutti_optim_create(name, a.p, SET, options, n);
    zero = zero_of(t, name, b.p, SET, options, n, views);
    s[0] = tutti_step_lr(plain, 3, 0.5);
    s[1] = tutti_step_lr(zero, 3, 0.5);
    OK(tutti_tensor_check());
    for (int step = 0; step < 8; step++) {
        set_gradients(&a, step);
        set_gradients(&b, step);
        if (step == 5)
            for (int k = 0; k < 2; k++)
                OK(tutti_optim_set_option(k == 0 ? plain : zero, 0, "lr", (double[]){ 0.3 }, 1));
        OK(tutti_optim_step(plain));
        OK(tutti_optim_step(zero));
        expect_same_set(&a, &b, step);
        OK(tutti_lr_scheduler_step(s[0]));
        OK(tutti_lr_scheduler_step(s[1]));
    }
    tutti_optim_zero_grad(zero);
    assert_null(tutti_tensor_grad(b.p[0]));
    for (int k = 0; k < 2; k++)
        tutti_lr_scheduler_free(s[k]);
    tutti_optim_free(plain);
    tutti_optim_free(zero);
    expect_same_set(&a, &b, 8); /* parameters outlive the buffer's owner */
    set_free(&a);
    set_free(&b);
}

static void steps_have_the_bits_of_the_whole(tt_ctx *t)
{
    for (int views = 0; views < 2; views++) {
        steps(t, "sgd", momentum, 3, TUTTI_F32, views);
        steps(t, "sgd", NULL, 0, TUTTI_F64, views);
        steps(t, "adam", amsgrad, 3, TUTTI_F32, views);
        steps(t, "adamw", NULL, 0, TUTTI_F64, views);
        steps(t, "adagrad", NULL, 0, TUTTI_F32, views);
        steps(t, "rprop", NULL, 0, TUTTI_F32, views);
        steps(t, "adam", NULL, 0, TUTTI_BF16, views);
    }
}

/* All forms of a step, and parameters with strides of their own. */
static void forms_of_steps(tt_ctx *t)
{
    tutti_tensor *p[2], *q[2], *g[2];
    tutti_optim *plain, *zero;

    tutti_scope_begin();
    for (int k = 0; k < 2; k++) {
        p[k] = tutti_tensor_transpose(tutti_tensor_full(TUTTI_F32, 2, SHAPE(3, 2), k + 1), 0, 1);
        q[k] = tutti_tensor_transpose(tutti_tensor_full(TUTTI_F32, 2, SHAPE(3, 2), k + 1), 0, 1);
        (void)tutti_tensor_requires_grad_(p[k], true);
        (void)tutti_tensor_requires_grad_(q[k], true);
        g[k] = tutti_tensor_view(tutti_tensor_arange(TUTTI_F32, k, k + 6, 1), 2, SHAPE(2, 3));
    }
    plain = tutti_optim_create("adam", p, 2, NULL, 0);
    for (int views = 0; views < 2; views++) {
        zero = zero_of(t, "adam", q, 2, NULL, 0, views);
        assert_int_equal(tutti_tensor_is_contiguous(q[0]), views);
        if (views == 0) {
            OK(tutti_optim_step_grads(plain, g, 2));
            OK(tutti_optim_step_grads(plain, (tutti_tensor *[]){ NULL, g[1] }, 2));
        }
        for (int k = 0; k < 2 && views == 1; k++)
            OK(tutti_tensor_copy_(tutti_tensor_detach(q[k]), tutti_tensor_full(TUTTI_F32, 0, NULL, k + 1)));
        OK(tutti_optim_step_grads(zero, g, 2));
        OK(tutti_optim_step_grads(zero, (tutti_tensor *[]){ NULL, g[1] }, 2));
        for (int k = 0; k < 2; k++)
            assert_true(same_bits(tutti_tensor_clone(tutti_tensor_detach(p[k])),
                                  tutti_tensor_clone(tutti_tensor_detach(q[k]))));
        REFUSED(tutti_optim_step_param(zero, q[0], g[0]), TUTTI_E_STATE, "divided among ranks");
        tutti_optim_free(zero);
    }
    tutti_optim_free(plain);
    tutti_scope_end();
    OK(tutti_tensor_check());
}

/* ---- who has what ------------------------------------------------------------------------------ */

static void each_parameter_has_one_owner(tt_ctx *t)
{
    static const int two[SET] = { 0, 1, 1, 0, 0, 1, 0 }, four[SET] = { 0, 1, 2, 3, 3, 3, 1 };
    const int *want = t->size == 2 ? two : four;
    tutti_optim *zero;
    set s;

    set_make(&s, TUTTI_F32);
    zero = zero_of(t, "adam", s.p, SET, NULL, 0, false);
    set_gradients(&s, 0);
    OK(tutti_optim_step(zero));
    for (int i = 0; i < SET; i++) {
        assert_int_equal(tutti_zero_owner(zero, s.p[i]), want[i]);
        assert_int_equal(tutti_optim_state(zero, s.p[i], "exp_avg") != NULL, want[i] == t->rank && i != 3);
    }
    assert_int_equal(tutti_zero_owner(zero, NULL), -1);
    assert_int_equal(tutti_zero_owner(NULL, s.p[0]), -1);
    tutti_optim_free(zero);
    set_free(&s);
}

static void groups_come_later(tt_ctx *t, bool views)
{
    tutti_optim *plain, *zero;
    set a, b;
    int g = -1;

    set_make(&a, TUTTI_F32);
    set_make(&b, TUTTI_F32);
    plain = tutti_optim_create("adam", a.p, 3, NULL, 0);
    zero = zero_of(t, "adam", b.p, 3, NULL, 0, views);
    for (int step = 0; step < 6; step++) {
        set_gradients(&a, step);
        set_gradients(&b, step);
        if (step == 2) {
            OK(tutti_optim_add_param_group(plain, a.p + 3, 4, NULL));
            OK(tutti_optim_add_param_group(zero, b.p + 3, 4, &g));
            assert_int_equal(g, 1);
            assert_int_equal(tutti_optim_n_groups(zero), 2);
            for (int k = 0; k < 2; k++)
                OK(tutti_optim_set_option(k == 0 ? plain : zero, 1, "lr", (double[]){ 0.2 }, 1));
        }
        OK(tutti_optim_step(plain));
        OK(tutti_optim_step(zero));
        expect_same_set(&a, &b, step);
    }
    tutti_optim_free(plain);
    tutti_optim_free(zero);
    set_free(&a);
    set_free(&b);
}

static void groups_may_be_added(tt_ctx *t)
{
    groups_come_later(t, false);
    groups_come_later(t, true);
}

/* ---- state ------------------------------------------------------------------------------------- */

static void state_of(tt_ctx *t, const char *name, const tutti_optim_option *options, int n, tutti_dtype dtype)
{
    const int to = t->size - 1;
    tutti_state_dict *want = NULL, *got = NULL, *part = NULL;
    tutti_optim *plain, *zero, *again;
    set a, b, c;

    set_make(&a, dtype);
    set_make(&b, dtype);
    set_make(&c, dtype);
    plain = tutti_optim_create(name, a.p, SET, options, n);
    zero = zero_of(t, name, b.p, SET, options, n, false);
    again = zero_of(t, name, c.p, SET, NULL, 0, true);
    REFUSED(tutti_zero_state_dict(zero, &got), TUTTI_E_STATE, "has not been brought together");
    for (int step = 0; step < 3; step++) {
        set_gradients(&a, step);
        set_gradients(&b, step);
        OK(tutti_optim_step(plain));
        OK(tutti_optim_step(zero));
    }
    OK(tutti_optim_state_dict(plain, &want));
    OK(tutti_zero_consolidate_state_dict(zero, to));
    if (t->rank == to) {
        OK(tutti_zero_state_dict(zero, &got));
        expect_same_state(want, got);
    } else {
        REFUSED(tutti_zero_state_dict(zero, &got), TUTTI_E_STATE, "has not been brought together");
    }
    OK(tutti_optim_state_dict(zero, &part)); /* this rank's */
    for (int64_t i = 0; i < tutti_state_dict_length(part); i++)
        assert_true(same_bits(tutti_state_dict_tensor(part, i),
                              tutti_state_dict_get(want, tutti_state_dict_name(part, i))));

    /* A whole state into a divided optimizer, which goes on. */
    OK(tutti_optim_load_state_dict(again, want));
    for (int i = 0; i < SET; i++)
        memcpy(tutti_tensor_data(c.p[i]), tutti_tensor_data(a.p[i]), (size_t)set_numel[i] * tutti_dtype_size(dtype));
    for (int step = 3; step < 6; step++) {
        set_gradients(&a, step);
        set_gradients(&c, step);
        OK(tutti_optim_step(plain));
        OK(tutti_optim_step(again));
        expect_same_set(&a, &c, step);
    }
    REFUSED(tutti_zero_consolidate_state_dict(zero, t->size), TUTTI_E_ARG, "there is no rank");
    REFUSED(tutti_zero_consolidate_state_dict(plain, 0), TUTTI_E_ARG, "not divided");
    tutti_state_dict_free(want);
    tutti_state_dict_free(got);
    tutti_state_dict_free(part);
    tutti_optim_free(plain);
    tutti_optim_free(zero);
    tutti_optim_free(again);
    set_free(&a);
    set_free(&b);
    set_free(&c);
}

static void the_state_is_that_of_the_whole(tt_ctx *t)
{
    state_of(t, "adam", amsgrad, 3, TUTTI_F32);
    state_of(t, "adamw", NULL, 0, TUTTI_F16);
    state_of(t, "sgd", momentum, 3, TUTTI_F32);
    state_of(t, "sgd", NULL, 0, TUTTI_F64);
}

/* By names: each rank has its part, and takes it out of all. */
static void names_work_as_ever(tt_ctx *t)
{
    static const char *const names[SET] = { "a", "b", "c", "d", "e", "f", "g" };
    tutti_named_optim *named[2] = { NULL };
    tutti_state_dict *sd = NULL;
    tutti_optim *plain, *zero;
    set a, b;

    set_make(&a, TUTTI_F32);
    set_make(&b, TUTTI_F32);
    plain = tutti_optim_create("adam", a.p, SET, NULL, 0);
    zero = zero_of(t, "adam", b.p, SET, NULL, 0, false);
    OK(tutti_named_optim_create(plain, names, a.p, SET, &named[0]));
    OK(tutti_named_optim_create(zero, names, b.p, SET, &named[1]));
    set_gradients(&a, 0);
    OK(tutti_optim_step(plain));
    OK(tutti_optim_init_state(plain));
    OK(tutti_named_optim_state_dict(named[0], &sd));
    OK(tutti_optim_init_state(zero));
    OK(tutti_named_optim_load_state_dict(named[1], sd));
    for (int i = 0; i < SET; i++) {
        memcpy(tutti_tensor_data(b.p[i]), tutti_tensor_data(a.p[i]), (size_t)set_numel[i] * sizeof(float));
        assert_int_equal(tutti_optim_state(zero, b.p[i], "exp_avg") != NULL, tutti_zero_owner(zero, b.p[i]) == t->rank);
    }
    for (int step = 1; step < 4; step++) {
        set_gradients(&a, step);
        set_gradients(&b, step);
        OK(tutti_optim_step(plain));
        OK(tutti_optim_step(zero));
        expect_same_set(&a, &b, step);
    }
    tutti_state_dict_free(sd);
    for (int k = 0; k < 2; k++)
        tutti_named_optim_free(named[k]);
    tutti_optim_free(plain);
    tutti_optim_free(zero);
    set_free(&a);
    set_free(&b);
}

/* ---- what requires gradients changes ----------------------------------------------------------- */

static bool share_memory(const tutti_tensor *a, const tutti_tensor *b, int64_t between)
{
    return (char *)tutti_tensor_data((tutti_tensor *)b) - (char *)tutti_tensor_data((tutti_tensor *)a) ==
           between * (int64_t)sizeof(float);
}

static void frozen_parameters_leave_the_buffer(tt_ctx *t)
{
    tutti_optim *plain, *zero;
    set a, b;

    set_make(&a, TUTTI_F32);
    set_make(&b, TUTTI_F32);
    plain = tutti_optim_create("adam", a.p, SET, NULL, 0);
    zero = zero_of(t, "adam", b.p, SET, NULL, 0, true);
    assert_true(share_memory(b.p[0], b.p[3], 10)); /* rank 0 has both */
    for (int step = 0; step < 6; step++) {
        const bool frozen = step >= 2 && step < 4;

        (void)tutti_tensor_requires_grad_(b.p[3], !frozen);
        set_gradients(&a, step);
        set_gradients(&b, step);
        if (frozen)
            OK(tutti_tensor_set_grad(a.p[3], NULL)); /* it rests, though it has a gradient */
        OK(tutti_optim_step(plain));
        OK(tutti_optim_step(zero));
        expect_same_set(&a, &b, step);
        assert_int_equal(share_memory(b.p[0], b.p[3], 10), !frozen);
        assert_true(share_memory(b.p[0], b.p[4], frozen ? 10 : 13));
    }
    tutti_optim_free(plain);
    tutti_optim_free(zero);
    set_free(&a);
    set_free(&b);
}

/* ---- under a ddp ------------------------------------------------------------------------------- */

static tutti_status step_net(tt_ctx *t, tutti_ddp *ddp, tutti_optim *o, int step)
{
    const tutti_status st = net_backward(t, ddp, o, step);

    return st == TUTTI_OK ? tutti_optim_step(o) : st;
}

static void under_ddps(tt_ctx *t, const char *name, bool ddp_views, bool views)
{
    tutti_ddp_options opts = TUTTI_DDP_OPTIONS;
    tutti_ddp *ddp[2] = { NULL };
    tutti_tensor *const *p[2];
    tutti_module *net[2];
    tutti_optim *o[2];
    int n;

    opts.group = t->group;
    opts.gradient_as_bucket_view = ddp_views;
    opts.bucket_cap_bytes = 100;
    for (int k = 0; k < 2; k++) {
        net[k] = make_net();
        p[k] = tutti_module_parameters(net[k], &n);
        OK(tutti_ddp_create(net[k], &opts, &ddp[k]));
    }
    o[0] = tutti_optim_create(name, p[0], n, NULL, 0);
    o[1] = zero_of(t, name, p[1], n, NULL, 0, views);
    for (int step = 0; step < 6; step++) {
        OK(step_net(t, ddp[0], o[0], step));
        OK(step_net(t, ddp[1], o[1], step));
        for (int i = 0; i < n; i++) {
            if (!same_bits(p[0][i], p[1][i]))
                fail_msg("%s, step %d: parameter %d has other bits", name, step, i);
            expect_same_bits(t, p[1][i]);
        }
    }
    for (int k = 0; k < 2; k++) {
        tutti_optim_free(o[k]);
        tutti_ddp_free(ddp[k]);
        tutti_module_free(net[k]);
    }
    OK(tutti_tensor_check());
}

static void under_a_ddp_the_bits_are_the_same(tt_ctx *t)
{
    for (int mode = 0; mode < 4; mode++) {
        under_ddps(t, "adam", mode & 1, mode & 2);
        under_ddps(t, "sgd", mode & 1, mode & 2);
    }
}

/* ---- inputs of different lengths ----------------------------------------------------------------- */

/* Rank r has r + 2 inputs. A ddp and a divided optimizer in one scope; and the optimizer alone. */
static void uneven_inputs(tt_ctx *t)
{
    tutti_ddp_options opts = TUTTI_DDP_OPTIONS;
    tutti_joinable joinables[2];
    tutti_tensor *const *p;
    tutti_join *join = NULL;
    tutti_ddp *ddp = NULL;
    tutti_module *net = make_net();
    tutti_status st = TUTTI_OK;
    tutti_optim *zero;
    set s;
    int n;

    opts.group = t->group;
    OK(tutti_ddp_create(net, &opts, &ddp));
    p = tutti_module_parameters(net, &n);
    zero = zero_of(t, "adam", p, n, NULL, 0, t->size == 4);
    OK(tutti_ddp_joinable(ddp, NULL, &joinables[0]));
    OK(tutti_zero_joinable(zero, &joinables[1]));
    OK(tutti_join_begin(joinables, 2, NULL, &join));
    for (int step = 0; step < t->rank + 2 && st == TUTTI_OK; step++)
        st = step_net(t, ddp, zero, step);
    OK(tutti_join_end(join, st));
    for (int i = 0; i < n; i++)
        expect_same_bits(t, p[i]);
    tutti_optim_free(zero);
    tutti_ddp_free(ddp);
    tutti_module_free(net);

    set_make(&s, TUTTI_F32);
    zero = zero_of(t, "sgd", s.p, SET, NULL, 0, false);
    OK(tutti_zero_joinable(zero, &joinables[0]));
    OK(tutti_join_begin(joinables, 1, NULL, &join));
    for (int step = 0; step < t->rank + 2; step++) {
        set_gradients(&s, step);
        OK(tutti_optim_step(zero));
    }
    OK(tutti_join_end(join, TUTTI_OK));
    for (int i = 0; i < SET; i++)
        expect_same_bits(t, s.p[i]);
    tutti_optim_free(zero);
    set_free(&s);
    REFUSED(tutti_zero_joinable(NULL, &joinables[0]), TUTTI_E_ARG, "NULL");
}

int main(void)
{
    static const tt_test tests[] = {
        TT_TEST(steps_have_the_bits_of_the_whole, .ranks = 1),
        TT_TEST(steps_have_the_bits_of_the_whole, .ranks = 2, .transports = "shm,tcp,threads"),
        TT_TEST(steps_have_the_bits_of_the_whole, .ranks = 4, .transports = "shm,threads-tcp", .limit_ms = 40000),
        TT_TEST(forms_of_steps, .ranks = 3),
        TT_TEST(each_parameter_has_one_owner, .ranks = 2),
        TT_TEST(each_parameter_has_one_owner, .ranks = 4),
        TT_TEST(groups_may_be_added, .ranks = 3),
        TT_TEST(the_state_is_that_of_the_whole, .ranks = 1),
        TT_TEST(the_state_is_that_of_the_whole, .ranks = 3, .transports = "shm,tcp,threads"),
        TT_TEST(names_work_as_ever, .ranks = 2),
        TT_TEST(frozen_parameters_leave_the_buffer, .ranks = 2, .transports = "shm,tcp"),
        TT_TEST(under_a_ddp_the_bits_are_the_same, .ranks = 2, .transports = "shm,tcp,threads", .limit_ms = 40000),
        TT_TEST(under_a_ddp_the_bits_are_the_same, .ranks = 4, .limit_ms = 60000),
        TT_TEST(uneven_inputs, .ranks = 2, .transports = "shm,tcp"),
        TT_TEST(uneven_inputs, .ranks = 4, .transports = "shm,threads", .limit_ms = 40000),
    };

    return tt_main(tests, sizeof tests / sizeof tests[0]);
}
