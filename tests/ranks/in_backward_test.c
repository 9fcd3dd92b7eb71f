/* SPDX-License-Identifier: BSD-3-Clause
 *
 * in_backward_test.c
 * Goal    parameters that are stepped inside of the backward have the bits of a step after it: by hooks on leaves, and by
 *         buckets of a ddp, in all of its modes, with a hook that leaves its results elsewhere; also where parameters are
 *         unused; what fails on one rank fails on all, and ranks stay together.
 * Method  the same network twice, once stepped as always. */
#include "zero_nets.h"

#include <tutti/private.h>

static const tutti_optim_option decay[] = { { "lr", { 0.1 } }, { "momentum", { 0.9 } }, { "weight_decay", { 0.1 } } };

/* ---- one process ------------------------------------------------------------------------------- */

static tutti_status simple_backward(tutti_module *net, int step)
{
    tutti_tensor *x, *y;
    tutti_status st;

    tutti_scope_begin();
    x = tutti_tensor_empty(TUTTI_F32, 2, SHAPE(ROWS, 5));
    for (int64_t k = 0; k < ROWS * 5; k++)
        ((float *)tutti_tensor_data(x))[k] = (float)formula(3, k, step);
    y = tutti_forward(net, x);
    st = tutti_tensor_backward(tutti_tensor_mean(tutti_tensor_mul(y, y), NULL, 0, false));
    tutti_scope_end();
    return st;
}

static void expect_same_params(const char *what, tutti_tensor *const *a, tutti_tensor *const *b, int n, int step)
{
    for (int i = 0; i < n; i++)
        if (!same_bits(a[i], b[i]))
            fail_msg("%s, step %d: parameter %d has other bits", what, step, i);
}

static void alone(const char *name, const tutti_optim_option *options, int n_options, bool keep)
{
    tutti_in_backward_options opts = TUTTI_IN_BACKWARD_OPTIONS;
    tutti_module *net[2] = { make_net(), make_net() };
    tutti_in_backward *handle = NULL;
    tutti_tensor *const *p[2];
    tutti_optim *o[2];
    int n;

    for (int k = 0; k < 2; k++) {
        p[k] = tutti_module_parameters(net[k], &n);
        o[k] = tutti_optim_create(name, p[k], n, options, n_options);
    }
    opts.keep_gradients = keep;
    OK(tutti_apply_optimizer_in_backward(o[1], &opts, &handle));
    for (int step = 0; step < 5; step++) {
        OK(simple_backward(net[0], step));
        OK(tutti_optim_step(o[0]));
        if (!keep)
            tutti_optim_zero_grad(o[0]);
        OK(simple_backward(net[1], step));
        expect_same_params(name, p[0], p[1], n, step);
        for (int i = 0; i < n; i++)
            assert_int_equal(tutti_tensor_grad(p[1][i]) != NULL, keep);
    }
    tutti_in_backward_free(handle);
    OK(simple_backward(net[1], 5)); /* and that was no step */
    expect_same_params(name, p[0], p[1], n, 5);
    for (int k = 0; k < 2; k++) {
        tutti_optim_free(o[k]);
        tutti_module_free(net[k]);
    }
    OK(tutti_tensor_check());
}

static void each_backward_is_a_step(tt_ctx *t)
{
    (void)t;
    alone("adam", NULL, 0, false);
    alone("sgd", decay, 3, false);
    alone("sgd", decay, 3, true);
}

/* Two optimizers on one parameter, and one on the other; a backward that comes to one of them alone. */
static void several_optimizers_for_a_parameter(tt_ctx *t)
{
    tutti_in_backward *handle[2] = { NULL };
    tutti_sgd_options opts = TUTTI_SGD_OPTIONS;
    tutti_optim *o[2];
    numbers n;

    numbers_make(&n, t);
    opts.lr = 1;
    o[0] = tutti_sgd(n.p, 2, &opts);
    opts.lr = 10;
    o[1] = tutti_sgd(n.p, 1, &opts);
    for (int k = 0; k < 2; k++)
        OK(tutti_apply_optimizer_in_backward(o[k], NULL, &handle[k]));
    tutti_scope_begin();
    OK(tutti_tensor_backward(weighted(&n, (double[]){ 2, 3, 0, 0 })));
    OK(tutti_tensor_backward(weighted(&n, (double[]){ 0, 3, 0, 0 })));
    tutti_scope_end();
    assert_true(value_of(n.p[0]) == 1 - 22);
    assert_true(value_of(n.p[1]) == 2 - 6);
    for (int k = 0; k < 2; k++) {
        tutti_in_backward_free(handle[k]);
        tutti_optim_free(o[k]);
    }
    numbers_free(&n);
}

/* ---- under a ddp ------------------------------------------------------------------------------- */

typedef struct mode {
    const char *name;
    bool views, drop, is_static, find_unused, elsewhere, in_part, accumulate, mixed;
} mode;

/* Gradients as they are without, or dropped. */
static void expect_gradients(const mode *m, tutti_tensor *const *plain, tutti_tensor *const *fused, int n)
{
    for (int i = 0; i < n; i++) {
        tutti_tensor *g = tutti_tensor_grad(fused[i]);

        if (!m->drop)
            assert_true(same_bits(g, tutti_tensor_grad(plain[i])));
        else if (!m->views)
            assert_null(g);
        else
            assert_true(((const float *)tutti_tensor_data(g))[0] == 0.0f);
    }
}

static void both_step(tt_ctx *t, const mode *m)
{
    tutti_fused_optim_options fopts = TUTTI_FUSED_OPTIM_OPTIONS;
    tutti_mixed_precision bf16 = TUTTI_MIXED_PRECISION;
    tutti_ddp_options opts = TUTTI_DDP_OPTIONS;
    tutti_module *net[2] = { make_net(), make_net() };
    tutti_ddp *ddp[2] = { NULL };
    tutti_tensor *const *p[2];
    tutti_optim *o[2], *rest = NULL;
    int n;

    opts.group = t->group;
    opts.gradient_as_bucket_view = m->views;
    opts.static_graph = m->is_static;
    opts.find_unused_parameters = m->find_unused;
    opts.mixed_precision = m->mixed ? &bf16 : NULL;
    opts.bucket_cap_bytes = 100;
    for (int k = 0; k < 2; k++) {
        p[k] = tutti_module_parameters(net[k], &n);
        OK(tutti_ddp_create(net[k], &opts, &ddp[k]));
        o[k] = tutti_optim_create(m->name, p[k], k == 1 && m->in_part ? 2 : n, decay, m->name[0] == 's' ? 3 : 0);
    }
    if (m->elsewhere)
        OK(tutti_reducer_register_comm_hook(tutti_ddp_reducer(ddp[0]), &elsewhere_hook, NULL));
    else
        OK(tutti_reducer_register_builtin_comm_hook(tutti_ddp_reducer(ddp[0]), TUTTI_HOOK_ALLREDUCE));
    fopts.drop_gradients = m->drop;
    fopts.hook = m->elsewhere ? &elsewhere_hook : NULL;
    OK(tutti_ddp_register_fused_optim(ddp[1], o[1], &fopts));
    if (m->in_part)
        rest = tutti_optim_create(m->name, p[1] + 2, n - 2, decay, m->name[0] == 's' ? 3 : 0);
    for (int step = 0; step < 6; step++) {
        for (int k = 0; k < 2; k++) {
            if (k == 0)
                tutti_optim_zero_grad(o[0]);
            else if (!m->drop)
                tutti_module_zero_grad(net[1]);
            if (m->accumulate) {
                (void)tutti_ddp_set_sync(ddp[k], false);
                OK(net_backward(t, ddp[k], NULL, 100 + step));
                (void)tutti_ddp_set_sync(ddp[k], true);
            }
            OK(net_backward(t, ddp[k], NULL, step));
            if (k == 0)
                OK(tutti_optim_step(o[0]));
            else if (rest != NULL)
                OK(tutti_optim_step(rest));
        }
        expect_same_params(m->name, p[0], p[1], n, step);
        for (int i = 0; i < n; i++)
            expect_same_bits(t, p[1][i]);
        expect_gradients(m, p[0], p[1], n);
    }
    for (int k = 0; k < 2; k++) {
        tutti_ddp_free(ddp[k]);
        tutti_optim_free(o[k]);
        tutti_module_free(net[k]);
    }
    tutti_optim_free(rest);
    OK(tutti_tensor_check());
}

static void buckets_are_stepped_as_they_come(tt_ctx *t)
{
    static const mode modes[] = {
        { .name = "adam" },
        { "sgd", .views = true },
        { "adamw", .drop = true },
        { "sgd", .drop = true, .views = true },
        { "adam", .is_static = true },
        { "sgd", .is_static = true, .drop = true, .views = true },
        { "adam", .find_unused = true, .drop = true },
        { "sgd", .elsewhere = true },
        { "adam", .elsewhere = true, .views = true, .drop = true },
        { "sgd", .in_part = true },
        { "adam", .accumulate = true },
        { "sgd", .accumulate = true, .views = true },
        { "adam", .mixed = true },
        { "sgd", .mixed = true, .is_static = true, .drop = true },
    };

    for (size_t k = 0; k < sizeof modes / sizeof modes[0]; k++)
        both_step(t, &modes[k]);
}

/* A parameter that nobody uses does not even decay; one that another rank uses follows the average. */
static void unused(tt_ctx *t, bool is_static)
{
    const double c = is_static || t->rank == 0 ? 4.0 : 0.0;
    tutti_ddp_options opts = TUTTI_DDP_OPTIONS;
    tutti_fused_optim_options fopts = TUTTI_FUSED_OPTIM_OPTIONS;
    tutti_sgd_options sgd = TUTTI_SGD_OPTIONS;
    tutti_optim *o;
    numbers n;

    opts.find_unused_parameters = !is_static;
    opts.static_graph = is_static;
    fopts.drop_gradients = true;
    numbers_wrap(&n, t, &opts);
    sgd.lr = 0.5;
    sgd.weight_decay = 1;
    o = tutti_sgd(n.p, NUMBERS, &sgd);
    OK(tutti_ddp_register_fused_optim(n.ddp, o, &fopts));
    for (int step = 0; step < 3; step++) {
        double before[NUMBERS];

        for (int i = 0; i < NUMBERS; i++)
            before[i] = value_of(n.p[i]);
        OK(numbers_step(&n, (double[]){ t->rank + 1, 2, c, 0 }));
        assert_true(value_of(n.p[0]) == before[0] - 0.5 * ((t->size + 1) / 2.0 + before[0]));
        assert_true(value_of(n.p[1]) == before[1] - 0.5 * (2 + before[1]));
        assert_true(value_of(n.p[2]) == before[2] - 0.5 * ((is_static ? 4 : 4.0 / t->size) + before[2]));
        assert_true(value_of(n.p[3]) == before[3]);
    }
    numbers_free(&n);
    tutti_optim_free(o);
}

static void what_nobody_uses_rests(tt_ctx *t)
{
    unused(t, false);
    unused(t, true);
}

/* A rank without inputs makes the steps of the others, and what the optimizer remembers goes along. */
static void uneven_inputs(tt_ctx *t)
{
    tutti_ddp_options opts = TUTTI_DDP_OPTIONS;
    tutti_module *net = make_net();
    tutti_status st = TUTTI_OK;
    tutti_joinable joinable;
    tutti_join *join = NULL;
    tutti_ddp *ddp = NULL;
    tutti_optim *o;
    int n;
    tutti_tensor *const *p = tutti_module_parameters(net, &n);

    opts.group = t->group;
    opts.bucket_cap_bytes = 100;
    OK(tutti_ddp_create(net, &opts, &ddp));
    o = tutti_optim_create("sgd", p, n, decay, 3);
    OK(tutti_ddp_register_fused_optim(ddp, o, NULL));
    OK(tutti_ddp_joinable(ddp, NULL, &joinable));
    OK(tutti_join_begin(&joinable, 1, NULL, &join));
    for (int step = 0; step < 2 + t->rank && st == TUTTI_OK; step++) {
        tutti_module_zero_grad(net);
        st = net_backward(t, ddp, NULL, step);
    }
    OK(tutti_join_end(join, st));
    for (int step = 0; step < 2; step++) {
        for (int i = 0; i < n; i++)
            expect_same_bits(t, p[i]);
        tutti_module_zero_grad(net);
        OK(net_backward(t, ddp, NULL, step));
    }
    for (int i = 0; i < n; i++)
        expect_same_bits(t, p[i]);
    tutti_ddp_free(ddp);
    tutti_optim_free(o);
    tutti_module_free(net);
    OK(tutti_tensor_check());
}

/* Steps at the end of a backward are none on a rank that has no backward: it would go its own way after the scope. */
static void uneven_inputs_and_unused_parameters(tt_ctx *t)
{
    for (int k = 0; k < 4; k++) {
        tutti_ddp_options opts = TUTTI_DDP_OPTIONS;
        const bool joinable_first = k >= 2;
        tutti_joinable joinable;
        tutti_optim *o;
        numbers n;

        opts.find_unused_parameters = k % 2 == 0;
        opts.static_graph = k % 2 == 1;
        numbers_wrap(&n, t, &opts);
        o = tutti_optim_create("sgd", n.p, NUMBERS, NULL, 0);
        if (joinable_first) {
            OK(tutti_ddp_joinable(n.ddp, NULL, &joinable));
            REFUSED(tutti_ddp_register_fused_optim(n.ddp, o, NULL), TUTTI_E_UNSUPPORTED, "inputs may be uneven");
        } else {
            OK(tutti_ddp_register_fused_optim(n.ddp, o, NULL));
            REFUSED(tutti_ddp_joinable(n.ddp, NULL, &joinable), TUTTI_E_UNSUPPORTED, "at the end of each backward");
        }
        numbers_free(&n);
        tutti_optim_free(o);
    }
}

/* ---- what is refused, and what fails ------------------------------------------------------------ */

static void wrong_order_and_wrong_parameters(tt_ctx *t)
{
    tutti_ddp_options opts = TUTTI_DDP_OPTIONS;
    tutti_in_backward *handle = NULL;
    tutti_optim *o, *other, *zero;
    tutti_ddp *ddp = NULL;
    numbers n, m;

    opts.group = t->group;
    numbers_make(&n, t);
    numbers_make(&m, t);
    o = tutti_optim_create("sgd", n.p, NUMBERS, NULL, 0);
    other = tutti_optim_create("sgd", (tutti_tensor *[]){ n.p[0], m.p[0] }, 2, NULL, 0);
    zero = zero_of(t, "sgd", n.p, NUMBERS, NULL, 0, false);
    OK(tutti_apply_optimizer_in_backward(o, NULL, &handle));
    REFUSED(tutti_ddp_create(n.m, &opts, &ddp), TUTTI_E_STATE, "is stepped in its backward");
    tutti_in_backward_free(handle);
    OK(tutti_ddp_create(n.m, &opts, &ddp));
    REFUSED(tutti_apply_optimizer_in_backward(o, NULL, &handle), TUTTI_E_STATE, "belongs to a ddp");
    REFUSED(tutti_apply_optimizer_in_backward(zero, NULL, &handle), TUTTI_E_ARG, "divided among ranks");
    REFUSED(tutti_apply_optimizer_in_backward(NULL, NULL, &handle), TUTTI_E_ARG, "the optimizer is NULL");
    REFUSED(tutti_ddp_register_fused_optim(ddp, other, NULL), TUTTI_E_ARG, "1 of the 2 parameters");
    REFUSED(tutti_ddp_register_fused_optim(ddp, zero, NULL), TUTTI_E_ARG, "divided among ranks");
    REFUSED(tutti_ddp_register_fused_optim(NULL, o, NULL), TUTTI_E_ARG, "the ddp is NULL");
    OK(tutti_ddp_register_fused_optim(ddp, o, NULL));
    REFUSED(tutti_ddp_register_fused_optim(ddp, o, NULL), TUTTI_E_STATE, "can only be called once");
    tutti_ddp_free(ddp);
    tutti_optim_free(o);
    tutti_optim_free(other);
    tutti_optim_free(zero);
    numbers_free(&n);
    numbers_free(&m);
}

/* A parameter is left out on rank 0 by mistake: an error of all, and ranks still have the same parameters. */
static void ranks_stay_together(tt_ctx *t)
{
    tutti_ddp_options opts = TUTTI_DDP_OPTIONS;
    tutti_status st;
    tutti_optim *o;
    numbers n;

    opts.bucket_cap_bytes = 4;
    numbers_wrap(&n, t, &opts);
    o = tutti_optim_create("sgd", n.p, NUMBERS, NULL, 0);
    OK(tutti_ddp_register_fused_optim(n.ddp, o, NULL));
    for (int round = 0; round < 3; round++) {
        tutti_module_zero_grad(n.m);
        st = numbers_step(&n, (double[]){ 1, 2, t->rank == 0 ? 0 : 3, 4 });
        assert_int_equal(st, t->rank == 0 ? TUTTI_E_STATE : TUTTI_E_REMOTE);
        tutti_module_zero_grad(n.m);
        OK(numbers_step(&n, (double[]){ t->rank + 1, 2, 3, 4 }));
        expect_grad(&n, 0, (t->size + 1) / 2.0);
        for (int i = 0; i < NUMBERS; i++)
            expect_same_bits(t, n.p[i]);
    }
    numbers_free(&n);
    tutti_optim_free(o);
}

enum { VICTIM = 1 };

static void a_rank_dies(tt_ctx *t)
{
    tutti_optim *o;
    numbers n;

    numbers_wrap(&n, t, NULL);
    o = tutti_optim_create("adam", n.p, NUMBERS, NULL, 0);
    OK(tutti_ddp_register_fused_optim(n.ddp, o, NULL));
    OK(numbers_step(&n, (double[]){ 1, 2, 3, 4 }));
    REFUSED(step_with_a_death(&n, VICTIM), TUTTI_E_PEER, "rank 1");
    numbers_free(&n);
    tutti_optim_free(o);
}

int main(void)
{
    static const tt_test tests[] = {
        TT_TEST(each_backward_is_a_step, .ranks = 1),
        TT_TEST(several_optimizers_for_a_parameter, .ranks = 1),
        TT_TEST(buckets_are_stepped_as_they_come, .ranks = 1),
        TT_TEST(buckets_are_stepped_as_they_come, .ranks = 2, .transports = "shm,tcp,threads", .limit_ms = 40000),
        TT_TEST(buckets_are_stepped_as_they_come, .ranks = 4, .transports = "shm,threads-tcp", .limit_ms = 60000),
        TT_TEST(what_nobody_uses_rests, .ranks = 2, .transports = "shm,tcp"),
        TT_TEST(what_nobody_uses_rests, .ranks = 4),
        TT_TEST(uneven_inputs, .ranks = 3, .transports = "shm,tcp"),
        TT_TEST(uneven_inputs_and_unused_parameters, .ranks = 2),
        TT_TEST(wrong_order_and_wrong_parameters),
        TT_TEST(ranks_stay_together, .ranks = 3, .transports = "shm,tcp,threads"),
        TT_TEST(a_rank_dies, .ranks = 3, .transports = "shm,tcp", .dies = VICTIM),
    };

    return tt_main(tests, sizeof tests / sizeof tests[0]);
}
