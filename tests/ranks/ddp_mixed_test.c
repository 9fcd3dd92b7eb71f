/* SPDX-License-Identifier: BSD-3-Clause
 *
 * ddp_mixed_test.c
 * Goal    with mixed precision a step has the bits of one that computes with rounded parameters and averages what comes
 *         in the type it was told; parameters are f32 whenever nothing computes, and their elements are never rounded.
 * Method  beside the ddp, a copy whose rounded copy goes forward and backward, and whose gradients are averaged by
 *         hand; failures and forwards without a backward in between. */
#include "ddp_nets.h"

enum { IN = 6, HIDDEN = 8, OUT = 3, BATCH = 4, STEPS = 4 };

/* ReLU between two layers, and a buffer. */
static tutti_module *network(uint64_t seed)
{
    tutti_module *net;

    tutti_manual_seed(seed);
    net = tutti_sequential();
    (void)tutti_module_add(net, "fc1", tutti_linear(IN, HIDDEN, true));
    (void)tutti_module_add(net, "relu", tutti_relu());
    (void)tutti_module_add(net, "fc2", tutti_linear(HIDDEN, OUT, true));
    tutti_scope_begin();
    OK(tutti_module_register_buffer(net, "seen", tutti_tensor_full(TUTTI_F32, 1, SHAPE(1), 0.3), true));
    tutti_scope_end();
    return net;
}

static tutti_tensor *input(int step, int rank)
{
    tutti_manual_seed(1000 + 10 * (uint64_t)step + (uint64_t)rank);
    return tutti_tensor_randn(TUTTI_F32, 2, SHAPE(BATCH, IN), NULL);
}

static tutti_tensor *loss_of(tutti_tensor *y)
{
    return tutti_tensor_mean(tutti_tensor_mul(y, y), NULL, 0, false);
}

static void copy_parameters(tutti_module *to, tutti_module *from)
{
    const bool was = tutti_set_grad_enabled(false);
    int n;
    tutti_tensor *const *a = tutti_module_parameters(to, &n), *const *b = tutti_module_parameters(from, &n);

    for (int i = 0; i < n; i++)
        OK(tutti_tensor_copy_(a[i], b[i]));
    (void)tutti_set_grad_enabled(was);
}

/* What a parameter of the reference is to get: the gradient of its rounded copy, averaged. */
static tutti_tensor *averaged(tt_ctx *t, tutti_tensor *grad, tutti_dtype reduce)
{
    tutti_tensor *g = tutti_tensor_clone(tutti_tensor_to(grad, reduce));

    OK(tutti_all_reduce(tutti_tensor_span(g), TUTTI_AVG, t->group));
    return tutti_tensor_to(g, TUTTI_F32);
}

/* Gradients of net's rounded copy at an input, added to those that net has. */
static void step_by_hand(tt_ctx *t, tutti_module *net, const tutti_mixed_precision *mp, int step)
{
    tutti_module *low = network(1);
    int n;
    tutti_tensor *const *params = tutti_module_parameters(net, &n), *const *rounded;

    copy_parameters(low, net);
    OK(tutti_module_to(low, mp->param_dtype));
    OK(tutti_tensor_backward(loss_of(tutti_forward(low, tutti_tensor_to(input(step, t->rank), mp->param_dtype)))));
    rounded = tutti_module_parameters(low, &n);
    for (int i = 0; i < n; i++)
        OK(tutti_tensor_set_grad(params[i], averaged(t, tutti_tensor_grad(rounded[i]), mp->reduce_dtype)));
    tutti_module_free(low);
}

static void expect_f32(tutti_module *net)
{
    int n;
    tutti_tensor *const *params = tutti_module_parameters(net, &n);

    for (int i = 0; i < n; i++) {
        assert_int_equal(tutti_tensor_dtype(params[i]), TUTTI_F32);
        if (tutti_tensor_grad(params[i]) != NULL)
            assert_int_equal(tutti_tensor_dtype(tutti_tensor_grad(params[i])), TUTTI_F32);
    }
}

static void expect_equal(tutti_module *net, tutti_module *copy, bool grads)
{
    int n;
    tutti_tensor *const *a = tutti_module_parameters(net, &n), *const *b = tutti_module_parameters(copy, &n);
    const char *const *names = tutti_module_parameter_names(net, &n);

    expect_f32(net);
    for (int i = 0; i < n; i++) {
        if (!tutti_tensor_equal(a[i], b[i]))
            fail_msg("'%s' is another one", names[i]);
        if (grads && !tutti_tensor_equal(tutti_tensor_grad(a[i]), tutti_tensor_grad(b[i])))
            fail_msg("the gradient of '%s' is another one", names[i]);
    }
}

static tutti_optim *optimizer(tutti_module *net)
{
    tutti_sgd_options opts = TUTTI_SGD_OPTIONS;
    int n;
    tutti_tensor *const *params = tutti_module_parameters(net, &n);

    opts.lr = 0.05;
    return tutti_sgd(params, n, &opts);
}

static tutti_ddp *wrap(tt_ctx *t, tutti_module *net, tutti_ddp_options opts, const tutti_mixed_precision *mp)
{
    tutti_ddp *ddp = NULL;

    opts.group = t->group;
    opts.mixed_precision = mp;
    OK(tutti_ddp_create(net, &opts, &ddp));
    return ddp;
}

static void train_beside_copy(tt_ctx *t, const tutti_ddp_options *opts, const tutti_mixed_precision *mp)
{
    tutti_module *net = network(7 + (uint64_t)t->rank), *copy = network(7);
    tutti_optim *ours = optimizer(net), *hand = optimizer(copy);
    tutti_ddp *ddp = wrap(t, net, *opts, mp);

    for (int step = 0; step < STEPS; step++) {
        tutti_tensor *y;

        tutti_scope_begin();
        y = tutti_ddp_forward(ddp, input(step, t->rank));
        assert_int_equal(tutti_tensor_dtype(y), mp->param_dtype);
        OK(tutti_tensor_backward(loss_of(y)));
        step_by_hand(t, copy, mp, step);
        expect_equal(net, copy, true);
        OK(tutti_optim_step(ours));
        OK(tutti_optim_step(hand));
        tutti_optim_zero_grad(ours);
        tutti_scope_end();
    }
    expect_equal(net, copy, false);
    tutti_ddp_free(ddp);
    expect_equal(net, copy, false);
    tutti_optim_free(ours);
    tutti_optim_free(hand);
    tutti_module_free(net);
    tutti_module_free(copy);
}

static void computes_with_rounded_parameters(tt_ctx *t)
{
    tutti_ddp_options opts = TUTTI_DDP_OPTIONS;
    tutti_mixed_precision mp = TUTTI_MIXED_PRECISION;

    train_beside_copy(t, &opts, &mp);
    opts.gradient_as_bucket_view = true;
    train_beside_copy(t, &opts, &mp);
    opts.find_unused_parameters = true;
    mp.param_dtype = TUTTI_F16;
    train_beside_copy(t, &opts, &mp);
    opts.find_unused_parameters = false;
    opts.static_graph = true;
    train_beside_copy(t, &opts, &mp);
    mp.param_dtype = mp.reduce_dtype = TUTTI_BF16;
    train_beside_copy(t, &opts, &mp);
}

/* Gradients of steps without sync add up in f32, whether they lie in buckets or not. */
static void gradients_accumulate_in_f32(tt_ctx *t)
{
    for (int views = 0; views < 2; views++) {
        tutti_mixed_precision mp = TUTTI_MIXED_PRECISION;
        tutti_ddp_options opts = TUTTI_DDP_OPTIONS;
        tutti_module *net = network(7), *copy = network(7);
        tutti_tensor *const *params, *const *theirs, *kept[4];
        tutti_ddp *ddp;
        int n;

        opts.gradient_as_bucket_view = views;
        ddp = wrap(t, net, opts, &mp);
        tutti_scope_begin();
        params = tutti_module_parameters(net, &n);
        theirs = tutti_module_parameters(copy, &n);
        OK(tutti_tensor_backward(loss_of(tutti_ddp_forward(ddp, input(0, t->rank))))); /* buckets are rebuilt after it */
        tutti_module_zero_grad(net);
        for (int step = 1; step < 4; step++) {
            (void)tutti_ddp_set_sync(ddp, step == 3);
            OK(tutti_tensor_backward(loss_of(tutti_ddp_forward(ddp, input(step, t->rank)))));
            expect_f32(net);
        }
        for (int step = 1; step < 4; step++) { /* sums of averages, which are sums in another order */
            step_by_hand(t, copy, &mp, step);
            for (int i = 0; i < n; i++)
                kept[i] = step == 1 ? tutti_tensor_clone(tutti_tensor_grad(theirs[i]))
                                    : tutti_tensor_add(kept[i], tutti_tensor_grad(theirs[i]));
        }
        for (int i = 0; i < n; i++) {
            const tutti_tensor *off = tutti_tensor_norm(tutti_tensor_sub(tutti_tensor_grad(params[i]), kept[i]), NULL, 0, false);

            assert_true(value_of(off) <= 1e-6 * (1.0 + value_of(tutti_tensor_norm(kept[i], NULL, 0, false))));
        }
        tutti_scope_end();
        tutti_ddp_free(ddp);
        tutti_module_free(net);
        tutti_module_free(copy);
    }
}

/* Parameters come back wherever a step ends: without recording, without a backward, with a failure. */
static void parameters_come_back(tt_ctx *t)
{
    tutti_mixed_precision mp = TUTTI_MIXED_PRECISION;
    tutti_ddp_options opts = TUTTI_DDP_OPTIONS;
    tutti_module *net = network(7), *copy = network(7);
    tutti_ddp *ddp = wrap(t, net, opts, &mp);
    tutti_tensor *w = tutti_module_parameter(net, "fc1.weight"), *y;
    tutti_status st;

    tutti_scope_begin();
    (void)tutti_set_grad_enabled(false);
    y = tutti_ddp_forward(ddp, input(0, t->rank));
    (void)tutti_set_grad_enabled(true);
    assert_int_equal(tutti_tensor_dtype(y), TUTTI_BF16);
    expect_equal(net, copy, false);

    y = tutti_ddp_forward(ddp, input(0, t->rank)); /* one that is not recorded, between another and its backward */
    (void)tutti_set_grad_enabled(false);
    (void)tutti_ddp_forward(ddp, input(1, t->rank));
    (void)tutti_set_grad_enabled(true);
    OK(tutti_tensor_backward(loss_of(y)));
    expect_equal(net, copy, false);

    y = tutti_ddp_forward(ddp, input(0, t->rank));
    assert_int_equal(tutti_tensor_dtype(w), TUTTI_BF16);
    y = tutti_ddp_forward(ddp, input(0, t->rank)); /* from the f32 elements, again */
    OK(tutti_tensor_backward(loss_of(y)));
    expect_equal(net, copy, false);

    y = tutti_ddp_forward(ddp, t->rank == 0 ? tutti_tensor_ones(TUTTI_F32, 1, SHAPE(IN + 1)) : input(0, t->rank));
    st = tutti_tensor_backward(t->rank == 0 ? y : loss_of(y));
    assert_int_equal(st, t->rank == 0 ? TUTTI_E_ARG : TUTTI_E_REMOTE);
    expect_equal(net, copy, false);

    y = tutti_ddp_forward(ddp, input(0, t->rank));
    st = tutti_tensor_backward(t->rank == 0 ? NULL : loss_of(y));
    assert_int_equal(st, t->rank == 0 ? TUTTI_E_ARG : TUTTI_E_REMOTE);
    expect_equal(net, copy, false);

    y = tutti_ddp_forward(ddp, input(0, t->rank));
    st = tutti_backward(&(tutti_tensor *){ loss_of(y) }, NULL, 1, TUTTI_RETAIN_GRAPH);
    assert_int_equal(st, TUTTI_OK);
    y = tutti_ddp_forward(ddp, input(0, t->rank));
    OK(tutti_ddp_reset(ddp));
    expect_equal(net, copy, false);
    (void)tutti_ddp_forward(ddp, input(0, t->rank));
    tutti_scope_end();
    tutti_ddp_free(ddp);
    expect_equal(net, copy, false);
    tutti_module_free(net);
    tutti_module_free(copy);
    OK(tutti_tensor_check());
}

static void buffers_change_once(tt_ctx *t)
{
    static const char *const ignored[] = { "seen" };
    tutti_mixed_precision mp = TUTTI_MIXED_PRECISION;
    tutti_ddp_options opts = TUTTI_DDP_OPTIONS;
    tutti_module *net = network(7);
    tutti_tensor *buffer = tutti_module_buffer(net, "seen");
    tutti_ddp *ddp;

    ddp = wrap(t, net, opts, &mp);
    assert_int_equal(tutti_tensor_dtype(buffer), TUTTI_F32);
    tutti_ddp_free(ddp);
    mp.buffer_dtype = TUTTI_F16;
    opts.ignored = ignored;
    opts.n_ignored = 1;
    ddp = wrap(t, net, opts, &mp);
    assert_int_equal(tutti_tensor_dtype(buffer), TUTTI_F32);
    tutti_ddp_free(ddp);
    opts.n_ignored = 0;
    ddp = wrap(t, net, opts, &mp);
    assert_int_equal(tutti_tensor_dtype(buffer), TUTTI_F16);
    tutti_scope_begin();
    OK(tutti_tensor_backward(loss_of(tutti_ddp_forward(ddp, input(0, t->rank)))));
    OK(tutti_tensor_backward(loss_of(tutti_ddp_forward(ddp, input(0, t->rank)))));
    tutti_scope_end();
    tutti_ddp_free(ddp);
    tutti_module_free(net);
}

static void what_makes_no_sense(tt_ctx *t)
{
    tutti_mixed_precision mp = TUTTI_MIXED_PRECISION;
    tutti_ddp_options opts = TUTTI_DDP_OPTIONS;
    tutti_module *net = network(7);
    tutti_ddp *ddp = NULL;

    opts.group = t->group;
    opts.mixed_precision = &mp;
    mp.param_dtype = TUTTI_F32;
    REFUSED(tutti_ddp_create(net, &opts, &ddp), TUTTI_E_ARG, "mixed precision in f32");
    mp.param_dtype = TUTTI_F16;
    mp.reduce_dtype = TUTTI_I64;
    REFUSED(tutti_ddp_create(net, &opts, &ddp), TUTTI_E_ARG, "averaged in i64");
    mp.reduce_dtype = TUTTI_F32;
    mp.buffer_dtype = TUTTI_BOOL;
    REFUSED(tutti_ddp_create(net, &opts, &ddp), TUTTI_E_ARG, "buffers in bool");
    mp.size = 0;
    REFUSED(tutti_ddp_create(net, &opts, &ddp), TUTTI_E_ARG, "TUTTI_MIXED_PRECISION");
    mp = (tutti_mixed_precision)TUTTI_MIXED_PRECISION;
    mp.reduce_dtype = TUTTI_BF16;
    OK(tutti_ddp_create(net, &opts, &ddp)); /* and its own hook keeps others out */
    REFUSED(tutti_reducer_register_builtin_comm_hook(tutti_ddp_reducer(ddp), TUTTI_HOOK_ALLREDUCE), TUTTI_E_STATE,
            "can only be called once");
    tutti_ddp_free(ddp);
    tutti_module_free(net);
}

int main(void)
{
    static const tt_test tests[] = {
        TT_TEST(computes_with_rounded_parameters, .ranks = 2, .transports = "shm,tcp,threads", .limit_ms = 60000),
        TT_TEST(computes_with_rounded_parameters, .ranks = 3, .limit_ms = 60000),
        TT_TEST(gradients_accumulate_in_f32, .ranks = 2),
        TT_TEST(parameters_come_back, .ranks = 2, .transports = "shm,threads"),
        TT_TEST(buffers_change_once, .ranks = 2),
        TT_TEST(what_makes_no_sense, .ranks = 2),
    };

    return tt_main(tests, sizeof tests / sizeof tests[0]);
}
