/* SPDX-License-Identifier: BSD-3-Clause
 *
 * ddp_modes_test.c
 * Goal    parameters that steps leave out, on some ranks or on all, outputs that the loss leaves out, parameters that are
 *         used several times, static graphs, backwards inside of backwards, communication hooks and inputs of different
 *         lengths come out as torch has them, wherever gradients live.
 * Method  four numbers whose gradients are told in advance. */
#include "ddp_nets.h"

static void wrap(numbers *n, tt_ctx *t, bool views, bool find_unused, bool static_graph)
{
    tutti_ddp_options opts = TUTTI_DDP_OPTIONS;

    opts.gradient_as_bucket_view = views;
    opts.find_unused_parameters = find_unused;
    opts.static_graph = static_graph;
    opts.bucket_cap_bytes = 8; /* two numbers a bucket */
    numbers_wrap(n, t, &opts);
}

/* ---- unused parameters ------------------------------------------------------------------------ */

/* "a" is used everywhere, "b" on rank 0 alone, "c" on the last rank alone, "d" nowhere. */
static void leave_out(tt_ctx *t, bool views)
{
    const double b = t->rank == 0 ? 6.0 : 0.0, c = t->rank == t->size - 1 ? 8.0 : 0.0;
    numbers n;

    wrap(&n, t, views, true, false);
    for (int step = 0; step < 3; step++) {
        OK(numbers_step(&n, (double[]){ t->rank + 1, b, c, 0 }));
        expect_grad(&n, 0, (t->size + 1) / 2.0);
        expect_grad(&n, 1, 6.0 / t->size);
        expect_grad(&n, 2, 8.0 / t->size);
        expect_grad(&n, 3, NAN);
        for (int i = 0; i < 3; i++)
            expect_same_bits(t, tutti_tensor_grad(n.p[i]));
        tutti_module_zero_grad(n.m);
    }
    numbers_free(&n);
}

static void parameters_may_be_left_out(tt_ctx *t)
{
    leave_out(t, false);
    leave_out(t, true);
}

/* What nobody uses keeps its gradient; what somebody uses adds to it, also where it is left out. */
static void stale(tt_ctx *t, bool views)
{
    numbers n;

    wrap(&n, t, views, true, false);
    OK(numbers_step(&n, (double[]){ 1, 2, 3, t->rank + 4 }));
    expect_grad(&n, 3, 4 + (t->size - 1) / 2.0);
    OK(numbers_step(&n, (double[]){ 1, 2, 3, 0 }));
    expect_grad(&n, 3, 4 + (t->size - 1) / 2.0); /* stale, and not summed */
    expect_grad(&n, 0, 2.0);
    OK(numbers_step(&n, (double[]){ 1, 2, 3, t->rank == 0 ? t->size : 0 }));
    expect_grad(&n, 3, 4 + (t->size - 1) / 2.0 + 1); /* the stale ones count, as if accumulated */
    numbers_free(&n);
}

static void gradients_of_unused_parameters_stay(tt_ctx *t)
{
    stale(t, false);
    stale(t, true);
}

/* Uses of steps without sync count to the step with. */
static void uses_accumulate_without_sync(tt_ctx *t)
{
    numbers n;

    wrap(&n, t, false, true, false);
    (void)tutti_ddp_set_sync(n.ddp, false);
    OK(numbers_step(&n, (double[]){ 1, 0, 0, t->rank == 0 ? 6 : 0 }));
    (void)tutti_ddp_set_sync(n.ddp, true);
    OK(numbers_step(&n, (double[]){ 1, 1, 1, 0 }));
    expect_grad(&n, 0, 2.0);
    expect_grad(&n, 3, 6.0 / t->size);
    numbers_free(&n);
}

static void forward_with_outputs(numbers *n, tutti_tensor *outs[3])
{
    OK(tutti_ddp_before_forward(n->ddp));
    outs[0] = weighted(n, (double[]){ n->t->rank + 1, 1, 0, 0 });
    outs[1] = NULL;
    outs[2] = weighted(n, (double[]){ 1, 0, 5, 1 });
    OK(tutti_ddp_after_forward(n->ddp, outs, 3));
}

/* The loss is made of the first output on all ranks, of the other one on rank 0 alone. */
static void leave_outputs_out(tt_ctx *t, bool static_graph, bool views)
{
    const bool both = t->rank == 0;
    tutti_tensor *outs[3];
    numbers n;

    wrap(&n, t, views, true, static_graph);
    for (int step = 0; step < 4; step++) {
        tutti_scope_begin();
        forward_with_outputs(&n, outs);
        assert_null(outs[1]);
        OK(tutti_tensor_backward(both ? tutti_tensor_add(outs[0], outs[2]) : outs[0]));
        tutti_scope_end();
        expect_grad(&n, 0, (t->size + 1) / 2.0 + 1.0 / t->size);
        expect_grad(&n, 1, 1.0);
        expect_grad(&n, 2, 5.0 / t->size);
        expect_same_bits(t, tutti_tensor_grad(n.p[2]));
        tutti_module_zero_grad(n.m);
    }
    numbers_free(&n);
}

static void outputs_may_be_left_out(tt_ctx *t)
{
    leave_outputs_out(t, false, false);
    leave_outputs_out(t, false, true);
    leave_outputs_out(t, true, false);
    leave_outputs_out(t, true, true);
}

/* A rank whose output depends on no parameter at all takes part with zeros. */
static void a_rank_may_use_nothing(tt_ctx *t)
{
    tutti_tensor *x, *y;
    numbers n;

    wrap(&n, t, false, true, false);
    tutti_scope_begin();
    OK(tutti_ddp_before_forward(n.ddp));
    x = tutti_tensor_requires_grad_(tutti_tensor_ones(TUTTI_F32, 1, SHAPE(1)), true);
    y = t->rank == 0 ? tutti_tensor_exp(x) : weighted(&n, (double[]){ 1, 1, 1, 1 });
    OK(tutti_ddp_after_forward(n.ddp, &y, 1));
    OK(tutti_tensor_backward(y));
    for (int i = 0; i < NUMBERS; i++)
        expect_grad(&n, i, (t->size - 1.0) / t->size);
    tutti_scope_end();
    numbers_free(&n);
}

static void reduced(const char *key, const char *value, void *ctx)
{
    if (strcmp(key, "num_buckets_reduced") == 0)
        *(int *)ctx = atoi(value);
}

/* A bucket of unused parameters alone is not reduced: its gradients stay, whatever they are, and hooks see the others. */
static void leave_out_buckets(tt_ctx *t, bool views, bool with_hook)
{
    tutti_ddp_options opts = TUTTI_DDP_OPTIONS;
    int n_reduced = -1;
    numbers n;

    opts.find_unused_parameters = opts.skip_all_reduce_unused_params = true;
    opts.gradient_as_bucket_view = views;
    opts.bucket_cap_bytes = 8;
    numbers_wrap(&n, t, &opts);
    if (with_hook)
        OK(tutti_reducer_register_builtin_comm_hook(tutti_ddp_reducer(n.ddp), TUTTI_HOOK_ALLREDUCE));
    for (int step = 0; step < 4; step++) {
        const bool left_out = step % 2 == 1;

        OK(numbers_step(&n, (double[]){ left_out ? 0 : t->rank + 1, left_out ? 0 : 2, t->rank + 3, 4 }));
        tutti_ddp_logging_data(n.ddp, reduced, &n_reduced);
        assert_int_equal(n_reduced, left_out ? 1 : 2);
        expect_grad(&n, 0, (t->size + 1) / 2.0); /* stale in every other step */
        expect_grad(&n, 1, 2.0);
        expect_grad(&n, 2, 3 + (t->size - 1) / 2.0);
        if (left_out)
            tutti_module_zero_grad(n.m);
        else {
            OK(tutti_tensor_set_grad(n.p[2], NULL));
            OK(tutti_tensor_set_grad(n.p[3], NULL));
        }
    }
    OK(numbers_step(&n, (double[]){ 0, 0, 1, 1 })); /* undefined stays undefined */
    expect_grad(&n, 0, NAN);
    OK(numbers_step(&n, (double[]){ 1, 2, 0, 0 })); /* and so the last bucket, in which ranks tell of failures */
    expect_grad(&n, 0, 1.0);
    tutti_ddp_logging_data(n.ddp, reduced, &n_reduced);
    assert_int_equal(n_reduced, 1);
    numbers_free(&n);
}

static void buckets_may_be_left_out(tt_ctx *t)
{
    leave_out_buckets(t, false, false);
    leave_out_buckets(t, true, false);
    leave_out_buckets(t, false, true);
}

/* Leaving out different ones is what the program has promised not to do: an error on all ranks, no wrong average. */
static void ranks_must_leave_out_the_same(tt_ctx *t)
{
    tutti_ddp_options opts = TUTTI_DDP_OPTIONS;
    tutti_joinable joinable;
    tutti_status st;
    numbers n;

    opts.find_unused_parameters = opts.skip_all_reduce_unused_params = true;
    opts.bucket_cap_bytes = 8;
    numbers_wrap(&n, t, &opts);
    REFUSED(tutti_ddp_joinable(n.ddp, NULL, &joinable), TUTTI_E_UNSUPPORTED, "skip_all_reduce_unused_params");
    st = numbers_step(&n, (double[]){ 1, 2, t->rank == 0 ? 0 : 3, t->rank == 0 ? 0 : 4 });
    if (st != TUTTI_E_MISMATCH && st != TUTTI_E_ABORTED && st != TUTTI_E_REMOTE)
        fail_msg("rank %d: %s: %s", t->rank, tutti_status_name(st), tutti_last_error());
    numbers_free(&n);
}

/* A rank that fails before it knows which buckets are left out cannot follow the others: an error on all ranks. */
static void a_rank_fails_that_does_not_know(tt_ctx *t)
{
    tutti_ddp_options opts = TUTTI_DDP_OPTIONS;
    tutti_status st;
    numbers n;

    opts.find_unused_parameters = opts.skip_all_reduce_unused_params = true;
    opts.bucket_cap_bytes = 8;
    numbers_wrap(&n, t, &opts);
    OK(numbers_step(&n, (double[]){ 1, 2, 3, 4 }));
    tt_post(t, 0);
    tt_await(t, 0, (uint32_t)t->size); /* two that differ end the group, also for a third one that is still in the step before */
    st = t->rank == 0 ? tutti_ddp_fail(n.ddp, TUTTI_E_IO, "cannot open 'data.bin'")
                      : numbers_step(&n, (double[]){ 0, 0, 3, 4 });
    assert_int_not_equal(st, TUTTI_OK);
    if (t->rank != 0 && st != TUTTI_E_MISMATCH && st != TUTTI_E_ABORTED && st != TUTTI_E_REMOTE)
        fail_msg("rank %d: %s: %s", t->rank, tutti_status_name(st), tutti_last_error());
    numbers_free(&n);
}

static void varies(const char *key, const char *value, void *ctx)
{
    if (strcmp(key, "can_set_static_graph") == 0)
        *(int *)ctx = atoi(value);
}

static void graphs_that_vary_are_seen(tt_ctx *t)
{
    int same = -1;
    numbers n;

    wrap(&n, t, false, true, false);
    for (int step = 0; step < 3; step++)
        OK(numbers_step(&n, (double[]){ 1, 1, 0, 1 }));
    tutti_ddp_logging_data(n.ddp, varies, &same);
    assert_int_equal(same, 1);
    OK(numbers_step(&n, (double[]){ 1, 1, 1, 0 }));
    tutti_ddp_logging_data(n.ddp, varies, &same);
    assert_int_equal(same, 0);
    numbers_free(&n);
}

/* ---- parameters that are used several times --------------------------------------------------- */

/* "b" stands in two places of the module, and is multiplied by itself. */
static void tied_parameters_are_reduced_once(tt_ctx *t)
{
    tutti_ddp_options opts = TUTTI_DDP_OPTIONS;
    tutti_module *other = tutti_module_create("other", NULL, NULL, NULL);
    tutti_tensor *y;
    numbers n;

    numbers_make(&n, t);
    OK(tutti_module_register_parameter(other, "tied", n.p[1]));
    tutti_module_add(n.m, "other", other);
    opts.group = t->group;
    OK(tutti_ddp_create(n.m, &opts, &n.ddp));
    for (int step = 0; step < 3; step++) {
        tutti_scope_begin();
        OK(tutti_ddp_before_forward(n.ddp));
        y = tutti_tensor_mul(n.p[1], tutti_tensor_mul_scalar(n.p[1], t->rank + 1));
        y = tutti_tensor_add(y, weighted(&n, (double[]){ 1, 0, 1, 1 }));
        OK(tutti_ddp_after_forward(n.ddp, &y, 1));
        OK(tutti_tensor_backward(y));
        expect_grad(&n, 1, 4.0 * (t->size + 1) / 2.0); /* 2 b (rank + 1), b = 2 */
        tutti_scope_end();
        tutti_module_zero_grad(n.m);
    }
    numbers_free(&n);
}

/* A backward of its own inside of a hook, that reaches "b" once more. */
static tutti_status backward_inside(tutti_tensor *leaf, void *ctx)
{
    numbers *n = ctx;
    tutti_status st;

    (void)leaf;
    (void)tutti_set_grad_enabled(true);
    tutti_scope_begin();
    st = tutti_tensor_backward(tutti_tensor_mul_scalar(n->p[1], 10.0));
    tutti_scope_end();
    (void)tutti_set_grad_enabled(false);
    return st;
}

/* The same parameter comes twice in every step: a static graph knows it. */
static void use_again(tt_ctx *t, bool views)
{
    numbers n;
    int handle;

    wrap(&n, t, views, false, true);
    OK(tutti_tensor_register_post_accumulate_grad_hook(n.p[3], backward_inside, &n, &handle));
    for (int step = 0; step < 4; step++) {
        OK(numbers_step(&n, (double[]){ 0, t->rank + 1, 1, 1 }));
        expect_grad(&n, 0, NAN); /* unused in all steps */
        expect_grad(&n, 1, 10 + (t->size + 1) / 2.0);
        expect_grad(&n, 3, 1);
        tutti_module_zero_grad(n.m);
    }
    numbers_free(&n);
}

static void static_graphs_know_how_often(tt_ctx *t)
{
    use_again(t, false);
    use_again(t, true);
}

/* The end of a step is that of the outermost backward. */
static void a_step_ends_with_its_outermost_backward(tt_ctx *t)
{
    tutti_tensor *y;
    numbers n;
    int handle;

    numbers_wrap(&n, t, NULL);
    OK(tutti_tensor_register_post_accumulate_grad_hook(n.p[0], backward_inside, &n, &handle));
    for (int step = 0; step < 3; step++) {
        tutti_scope_begin();
        y = ahead(&n, (double[]){ t->rank + 1, 0, 1, t->rank + 1 }); /* "b" comes from the hook alone */
        OK(tutti_tensor_backward(y));
        tutti_scope_end();
        expect_grad(&n, 0, (t->size + 1) / 2.0);
        expect_grad(&n, 1, 10.0);
        expect_grad(&n, 3, (t->size + 1) / 2.0);
        tutti_module_zero_grad(n.m);
    }
    numbers_free(&n);
}

/* The same layer twice, both times as a checkpoint, or neither time. */
static tutti_tensor *layers_forward(tutti_module *m, tutti_tensor *x)
{
    tutti_module *fc = tutti_module_child(m, "fc");
    const bool checkpoints = *(const bool *)tutti_module_context(m);

    for (int k = 0; k < 2; k++)
        x = tutti_tensor_tanh(checkpoints ? tutti_checkpoint_forward(fc, x) : tutti_forward(fc, x));
    return tutti_forward(tutti_module_child(m, "out"), x);
}

static tutti_module *layers(const bool *checkpoints, uint64_t seed)
{
    tutti_module *m = tutti_module_create("layers", layers_forward, (void *)(uintptr_t)checkpoints, NULL);

    tutti_manual_seed(seed);
    (void)tutti_module_add(m, "fc", tutti_linear(5, 5, true));
    (void)tutti_module_add(m, "out", tutti_linear(5, 1, true));
    return m;
}

static tutti_tensor *sample(tt_ctx *t)
{
    tutti_manual_seed(50 + (uint64_t)t->rank);
    return tutti_tensor_randn(TUTTI_F32, 2, SHAPE(3, 5), NULL);
}

static void check_checkpoints(tt_ctx *t, bool views, bool static_graph)
{
    static const bool with = true, without = false;
    tutti_module *net = layers(&with, 3 + (uint64_t)t->rank), *copy = layers(&without, 3);
    tutti_ddp_options opts = TUTTI_DDP_OPTIONS;
    tutti_ddp *ddp = NULL;
    int n;
    tutti_tensor *const *ours = tutti_module_parameters(net, &n), *const *theirs = tutti_module_parameters(copy, &n);

    opts.group = t->group;
    opts.gradient_as_bucket_view = views;
    opts.static_graph = static_graph;
    opts.bucket_cap_bytes = 32;
    OK(tutti_ddp_create(net, &opts, &ddp));
    for (int step = 0; step < 4; step++) {
        tutti_scope_begin();
        OK(tutti_tensor_backward(tutti_tensor_sum(tutti_ddp_forward(ddp, sample(t)), NULL, 0, false)));
        OK(tutti_tensor_backward(tutti_tensor_sum(tutti_forward(copy, sample(t)), NULL, 0, false)));
        for (int i = 0; i < n; i++) {
            OK(tutti_all_reduce(tutti_tensor_span(tutti_tensor_grad(theirs[i])), TUTTI_AVG, t->group));
            assert_true(tutti_tensor_equal(tutti_tensor_grad(ours[i]), tutti_tensor_grad(theirs[i])));
        }
        tutti_scope_end();
        tutti_module_zero_grad(net);
        tutti_module_zero_grad(copy);
    }
    tutti_ddp_free(ddp);
    tutti_module_free(net);
    tutti_module_free(copy);
}

static void checkpoints_and_layers_used_twice(tt_ctx *t)
{
    check_checkpoints(t, false, false);
    check_checkpoints(t, true, false);
    check_checkpoints(t, false, true);
    check_checkpoints(t, true, true);
}

/* ---- what is said ------------------------------------------------------------------------------- */

typedef struct said {
    int needless, without_effect;
} said;

static void note_line(tutti_log_level level, const char *line, void *ctx)
{
    said *s = ctx;

    (void)level;
    s->needless += strstr(line, "no parameter is unused in the first step") != NULL;
    s->without_effect += strstr(line, "has no effect with static_graph") != NULL;
}

static void options_that_are_needless_are_told_once(tt_ctx *t)
{
    said s = { 0, 0 };
    numbers n;

    OK(tutti_log_set_sink("test", note_line, &s));
    wrap(&n, t, false, true, false);
    for (int step = 0; step < 3; step++)
        OK(numbers_step(&n, (double[]){ 1, 1, 1, 1 }));
    assert_int_equal(s.needless, 1);
    numbers_free(&n);
    wrap(&n, t, false, true, false);
    OK(numbers_step(&n, (double[]){ 1, 0, 1, 1 })); /* one is: the option is of use */
    OK(numbers_step(&n, (double[]){ 1, 1, 1, 1 }));
    numbers_free(&n);
    assert_int_equal(s.needless, 1);
    assert_int_equal(s.without_effect, 0);
    wrap(&n, t, false, true, true);
    assert_int_equal(s.without_effect, 1);
    numbers_free(&n);
    OK(tutti_log_set_sink("test", NULL, NULL));
}

/* ---- other types -------------------------------------------------------------------------------- */

/* "a" is f32, "b" bf16, "c" f16, "d" f64: a bucket for each, and a step of an optimizer. */
static void train_in_all_types(tt_ctx *t, bool views)
{
    const tutti_dtype types[NUMBERS] = { TUTTI_F32, TUTTI_BF16, TUTTI_F16, TUTTI_F64 };
    tutti_ddp_options opts = TUTTI_DDP_OPTIONS;
    tutti_adam_options aopts = TUTTI_ADAMW_OPTIONS;
    tutti_optim *optim;
    double before[NUMBERS];
    numbers n;

    numbers_make(&n, t);
    for (int i = 0; i < NUMBERS; i++) { /* each by itself */
        tutti_module *one = tutti_module_create("one", NULL, NULL, NULL);

        OK(tutti_module_register_parameter(one, "p", n.p[i]));
        OK(tutti_module_to(one, types[i]));
        tutti_module_free(one);
        assert_int_equal(tutti_tensor_dtype(n.p[i]), types[i]);
    }
    opts.group = t->group;
    opts.gradient_as_bucket_view = views;
    OK(tutti_ddp_create(n.m, &opts, &n.ddp));
    REFUSED(tutti_module_to(n.m, TUTTI_F32), TUTTI_E_STATE, "before it is wrapped");
    aopts.lr = 0.25;
    optim = tutti_adamw(n.p, NUMBERS, &aopts);
    for (int step = 0; step < 3; step++) {
        OK(numbers_step(&n, (double[]){ t->rank + 1, t->rank + 2, t->rank + 3, t->rank + 4 }));
        for (int i = 0; i < NUMBERS; i++) {
            assert_int_equal(tutti_tensor_dtype(tutti_tensor_grad(n.p[i])), types[i]);
            expect_grad(&n, i, i + 1 + (t->size - 1) / 2.0); /* which all types have */
            before[i] = value_of(n.p[i]);
        }
        OK(tutti_optim_step(optim));
        for (int i = 0; i < NUMBERS; i++) {
            expect_same_bits(t, n.p[i]);
            assert_true(value_of(n.p[i]) < before[i]);
        }
        tutti_module_zero_grad(n.m);
    }
    tutti_optim_free(optim);
    numbers_free(&n);
}

static void parameters_of_16_bits(tt_ctx *t)
{
    train_in_all_types(t, false);
    train_in_all_types(t, true);
}

/* ---- hooks ------------------------------------------------------------------------------------ */

static void hooks_reduce_in_the_place_of_the_average(tt_ctx *t)
{
    for (int kind = TUTTI_HOOK_ALLREDUCE; kind <= TUTTI_HOOK_NOOP; kind++) {
        numbers n;

        wrap(&n, t, kind % 2 == 0, false, false);
        OK(tutti_reducer_register_builtin_comm_hook(tutti_ddp_reducer(n.ddp), (tutti_builtin_comm_hook)kind));
        for (int step = 0; step < 3; step++) {
            OK(numbers_step(&n, (double[]){ t->rank + 1, 4, 1, 1 }));
            expect_grad(&n, 0, kind == TUTTI_HOOK_NOOP ? t->rank + 1 : (t->size + 1) / 2.0);
            expect_grad(&n, 1, 4.0);
            tutti_module_zero_grad(n.m);
        }
        numbers_free(&n);
    }
}

/* ---- inputs of different lengths -------------------------------------------------------------- */

/* Rank r has r inputs: in step s those above s are left. */
static void run_out(tt_ctx *t, bool views, bool divide_by_active)
{
    tutti_ddp_join_options opts = TUTTI_DDP_JOIN_OPTIONS;
    tutti_tensor *buffer;
    tutti_joinable joinable;
    tutti_join *join = NULL;
    tutti_status st = TUTTI_OK;
    tutti_ddp_options dopts = TUTTI_DDP_OPTIONS;
    numbers n;

    numbers_make(&n, t);
    tutti_scope_begin();
    buffer = tutti_tensor_zeros(TUTTI_F32, 1, SHAPE(1));
    OK(tutti_module_register_buffer(n.m, "seen", buffer, true));
    dopts.group = t->group;
    dopts.gradient_as_bucket_view = views;
    dopts.bucket_cap_bytes = 8;
    OK(tutti_ddp_create(n.m, &dopts, &n.ddp));
    opts.divide_by_active = divide_by_active;
    OK(tutti_ddp_joinable(n.ddp, &opts, &joinable));
    OK(tutti_join_begin(&joinable, 1, NULL, &join));
    for (int s = 0; s < t->rank && st == TUTTI_OK; s++) {
        OK(tutti_tensor_fill_(buffer, t->rank));
        st = numbers_step(&n, (double[]){ 1, 2, 3, 4 });
        assert_true(value_of(buffer) == t->size - 1.0); /* of the highest rank that has inputs */
        for (int i = 0; i < NUMBERS; i++)
            expect_grad(&n, i, divide_by_active ? i + 1 : (i + 1) * (t->size - 1.0 - s) / t->size);
        tutti_module_zero_grad(n.m);
    }
    (void)tutti_set_grad_enabled(false);
    OK(tutti_tensor_fill_(n.p[2], t->rank == t->size - 1 ? 77.0 : 0.0));
    (void)tutti_set_grad_enabled(true);
    OK(tutti_join_end(join, st));
    assert_true(value_of(n.p[2]) == 77.0); /* of the last one */
    OK(numbers_step(&n, (double[]){ t->rank + 1, 1, 1, 1 })); /* outside of the scope */
    expect_grad(&n, 0, (t->size + 1) / 2.0);
    tutti_scope_end();
    numbers_free(&n);
}

static void inputs_run_out(tt_ctx *t)
{
    run_out(t, false, false);
    run_out(t, false, true);
    run_out(t, true, false);
    run_out(t, true, true);
}

/* ---- PowerSGD ---------------------------------------------------------------------------------- */

/* The mean square of what a layer still lacks to another one, over rows that are this rank's own; and a step. */
static double learn(tutti_ddp *ddp, tutti_module *teacher, tutti_optim *sgd, int step, int rank)
{
    tutti_generator *gen = tutti_generator_create((uint64_t)(1000 * step + rank));
    tutti_tensor *x, *off, *loss;
    double value = NAN;

    tutti_scope_begin();
    x = tutti_tensor_randn(TUTTI_F32, 2, SHAPE(64, 24), gen);
    off = tutti_tensor_sub(tutti_ddp_forward(ddp, x), tutti_forward(teacher, x));
    loss = tutti_tensor_mean(tutti_tensor_mul(off, off), NULL, 0, false);
    tutti_optim_zero_grad(sgd);
    OK(tutti_tensor_backward(loss));
    OK(tutti_tensor_item(loss, &value));
    OK(tutti_optim_step(sgd));
    tutti_scope_end();
    tutti_generator_free(gen);
    return value;
}

static tutti_module *layer(uint64_t seed)
{
    tutti_manual_seed(seed);
    return tutti_linear(24, 16, true);
}

/* One direction of sixteen in a step, and all of them in the end: errors are fed back. */
static void a_layer_learns_by_powersgd(tt_ctx *t)
{
    tutti_ddp_options opts = TUTTI_DDP_OPTIONS;
    tutti_powersgd_options popts = TUTTI_POWERSGD_OPTIONS;
    tutti_sgd_options sopts = TUTTI_SGD_OPTIONS;
    tutti_module *net = layer(7), *teacher = layer(11);
    tutti_powersgd_stats stats;
    tutti_powersgd *power = NULL;
    tutti_ddp *ddp = NULL;
    tutti_optim *sgd;
    double first, last = NAN;
    int n;

    opts.group = t->group;
    OK(tutti_ddp_create(net, &opts, &ddp));
    popts.start_iter = 2;
    OK(tutti_powersgd_create(tutti_ddp_reducer(ddp), &popts, &power));
    OK(tutti_reducer_register_comm_hook(tutti_ddp_reducer(ddp), tutti_powersgd_hook(power), power));
    sopts.lr = 0.5;
    sgd = tutti_sgd(tutti_module_parameters(net, &n), 2, &sopts);
    first = learn(ddp, teacher, sgd, 0, t->rank);
    for (int step = 1; step < 300; step++)
        last = learn(ddp, teacher, sgd, step, t->rank);
    if (!(last < 1e-3 * first))
        fail_msg("%g at first, %g at last", first, last);
    expect_same_bits(t, tutti_module_parameters(net, &n)[0]);
    expect_same_bits(t, tutti_module_parameters(net, &n)[1]);
    OK(tutti_powersgd_get_stats(power, &stats));
    assert_true(stats.iter == 300 && stats.rate == (24.0 * 16 + 16) / (24 + 16 + 16));
    tutti_optim_free(sgd);
    tutti_ddp_free(ddp);
    tutti_module_free(net);
    tutti_module_free(teacher);
}

int main(void)
{
    static const tt_test tests[] = {
        TT_TEST(parameters_may_be_left_out, .ranks = 2, .transports = "shm,tcp,threads"),
        TT_TEST(parameters_may_be_left_out, .ranks = 4, .transports = "shm"),
        TT_TEST(gradients_of_unused_parameters_stay, .ranks = 2),
        TT_TEST(uses_accumulate_without_sync, .ranks = 3),
        TT_TEST(outputs_may_be_left_out, .ranks = 2, .transports = "shm,threads-tcp"),
        TT_TEST(outputs_may_be_left_out, .ranks = 4),
        TT_TEST(a_rank_may_use_nothing, .ranks = 3),
        TT_TEST(buckets_may_be_left_out, .ranks = 2, .transports = "shm,tcp,threads"),
        TT_TEST(buckets_may_be_left_out, .ranks = 4),
        TT_TEST(a_rank_fails_that_does_not_know, .ranks = 3, .transports = "shm,tcp"),
        TT_TEST(ranks_must_leave_out_the_same, .ranks = 2, .transports = "shm,tcp"),
        TT_TEST(graphs_that_vary_are_seen),
        TT_TEST(tied_parameters_are_reduced_once),
        TT_TEST(static_graphs_know_how_often, .ranks = 2, .transports = "shm,threads"),
        TT_TEST(checkpoints_and_layers_used_twice, .ranks = 2, .transports = "shm,threads"),
        TT_TEST(options_that_are_needless_are_told_once),
        TT_TEST(a_step_ends_with_its_outermost_backward),
        TT_TEST(parameters_of_16_bits, .ranks = 2, .transports = "shm,tcp,threads"),
        TT_TEST(parameters_of_16_bits, .ranks = 3),
        TT_TEST(hooks_reduce_in_the_place_of_the_average, .ranks = 2, .transports = "shm,tcp"),
        TT_TEST(a_layer_learns_by_powersgd, .ranks = 3, .transports = "shm,threads", .limit_ms = 60000),
        TT_TEST(inputs_run_out, .ranks = 4, .transports = "shm,threads"),
    };

    return tt_main(tests, sizeof tests / sizeof tests[0]);
}
