/* SPDX-License-Identifier: BSD-3-Clause
 *
 * ddp_test.c
 * Goal    a wrapped module trains as the same module whose gradients are averaged by hand, in every mode, with the
 *         same bits on all ranks; accumulation, buffers, names, gradients that outlive their bucket, and
 *         taking everything off again are as promised.
 * Method  a network beside its copy; for single rules four numbers whose gradients are told in advance. */
#include "ddp_nets.h"

enum { STEPS = 6, IN = 6, HIDDEN = 40, OUT = 3, ROWS = 5 };

/* ---- beside its copy -------------------------------------------------------------------------- */

typedef struct mode {
    bool views, find_unused, static_graph, keep_zeros;
    int64_t cap;
} mode;

static tutti_module *network(uint64_t seed)
{
    tutti_module *net = tutti_sequential();

    tutti_manual_seed(seed);
    tutti_module_add(net, "fc1", tutti_linear(IN, HIDDEN, true));
    tutti_module_add(net, "norm", tutti_layer_norm(1, SHAPE(HIDDEN), 1e-5));
    tutti_module_add(net, "gelu", tutti_gelu(false));
    tutti_module_add(net, "fc2", tutti_linear(HIDDEN, OUT, true));
    OK(tutti_tensor_check());
    return net;
}

static tutti_tensor *input(int step, int rank)
{
    tutti_generator *gen = tutti_generator_create((uint64_t)(1000 * step + rank));
    tutti_tensor *x = tutti_tensor_randn(TUTTI_F32, 2, SHAPE(ROWS, IN), gen);

    tutti_generator_free(gen);
    return x;
}

static tutti_tensor *loss_of(tutti_tensor *y)
{
    return tutti_tensor_mean(tutti_tensor_mul(y, y), NULL, 0, false);
}

/* The copy's step, its gradients averaged one by one. */
static void step_by_hand(tt_ctx *t, tutti_module *net, tutti_optim *sgd, int step)
{
    int n;
    tutti_tensor *const *params = tutti_module_parameters(net, &n);

    tutti_optim_zero_grad(sgd);
    OK(tutti_tensor_backward(loss_of(tutti_forward(net, input(step, t->rank)))));
    for (int i = 0; i < n; i++)
        OK(tutti_all_reduce(tutti_tensor_span(tutti_tensor_grad(params[i])), TUTTI_AVG, t->group));
}

static void expect_close(const tutti_tensor *got, const tutti_tensor *want, const char *name)
{
    const float *a = tutti_tensor_data(got), *b = tutti_tensor_data(want);
    double off = 0.0, size = 0.0;

    for (int64_t i = 0; i < tutti_tensor_numel(want); i++) {
        off += ((double)a[i] - (double)b[i]) * ((double)a[i] - (double)b[i]);
        size += (double)b[i] * (double)b[i];
    }
    if (!(sqrt(off) <= 1e-6 * (sqrt(size) + 1e-3)))
        fail_msg("%s is off by %g of %g", name, sqrt(off), sqrt(size));
}

static void compare(tt_ctx *t, tutti_module *net, tutti_module *copy)
{
    int n;
    tutti_tensor *const *ours = tutti_module_parameters(net, &n);
    tutti_tensor *const *theirs = tutti_module_parameters(copy, &n);
    const char *const *names = tutti_module_parameter_names(net, &n);

    for (int i = 0; i < n; i++) {
        expect_close(tutti_tensor_grad(ours[i]), tutti_tensor_grad(theirs[i]), names[i]);
        expect_same_bits(t, tutti_tensor_grad(ours[i]));
        expect_same_bits(t, ours[i]);
    }
}

static tutti_optim *optimizer(tutti_module *net)
{
    tutti_sgd_options opts = TUTTI_SGD_OPTIONS;
    int n;
    tutti_tensor *const *params = tutti_module_parameters(net, &n);

    opts.lr = 0.1;
    opts.momentum = 0.5;
    return tutti_sgd(params, n, &opts);
}

static void drop(tutti_module *net, tutti_optim *sgd, bool keep_zeros)
{
    int n;
    tutti_tensor *const *params = tutti_module_parameters(net, &n);

    if (!keep_zeros)
        tutti_optim_zero_grad(sgd);
    for (int i = 0; i < n && keep_zeros; i++)
        if (tutti_tensor_grad(params[i]) != NULL)
            OK(tutti_tensor_zero_(tutti_tensor_grad(params[i])));
}

static void train_beside_copy(tt_ctx *t, const mode *m)
{
    tutti_ddp_options opts = TUTTI_DDP_OPTIONS;
    tutti_module *net = network((uint64_t)(7 + t->rank)), *copy = network(7);
    tutti_optim *sgd = optimizer(net), *hand = optimizer(copy);
    tutti_ddp *ddp = NULL;

    opts.group = t->group;
    opts.bucket_cap_bytes = m->cap;
    opts.gradient_as_bucket_view = m->views;
    opts.find_unused_parameters = m->find_unused;
    opts.static_graph = m->static_graph;
    OK(tutti_ddp_create(net, &opts, &ddp));
    for (int step = 0; step < STEPS; step++) {
        tutti_tensor *loss;

        tutti_scope_begin();
        loss = loss_of(tutti_ddp_forward(ddp, input(step, t->rank)));
        drop(net, sgd, m->keep_zeros);
        OK(tutti_tensor_backward(loss));
        step_by_hand(t, copy, hand, step);
        compare(t, net, copy);
        OK(tutti_optim_step(sgd));
        OK(tutti_optim_step(hand));
        tutti_scope_end();
    }
    tutti_ddp_free(ddp);
    compare(t, net, copy);
    tutti_optim_free(sgd);
    tutti_optim_free(hand);
    tutti_module_free(net);
    tutti_module_free(copy);
    tutti_empty_cache();
    OK(tutti_tensor_check());
}

static void as_averaged_by_hand(tt_ctx *t)
{
    static const mode modes[] = {
        { .cap = 0 },
        { .cap = 300 },
        { .views = true, .cap = 300 },
        { .views = true, .keep_zeros = true },
        { .find_unused = true, .cap = 300 },
        { .static_graph = true, .cap = 300 },
        { .static_graph = true, .views = true, .keep_zeros = true, .cap = 300 },
        { .find_unused = true, .views = true },
    };

    for (size_t i = 0; i < sizeof modes / sizeof modes[0]; i++)
        train_beside_copy(t, &modes[i]);
}

/* ---- the state to begin with ------------------------------------------------------------------ */

static void everybody_begins_as_rank_0(tt_ctx *t)
{
    static const char *const ignored[] = { "b", "mine" };
    tutti_ddp_options opts = TUTTI_DDP_OPTIONS;
    tutti_tensor *mean, *mine, *turned;
    numbers n;

    tutti_scope_begin();
    numbers_make(&n, t);
    (void)tutti_tensor_requires_grad_(n.p[3], false); /* frozen: sent, not averaged */
    mean = tutti_tensor_full(TUTTI_F64, 1, SHAPE(3), (double)t->rank);
    mine = tutti_tensor_full(TUTTI_F32, 0, NULL, (double)t->rank);
    turned = tutti_tensor_transpose(
        tutti_tensor_full(TUTTI_I64, 2, SHAPE(2, 3), (double)(t->rank + 5)), 0, 1);
    OK(tutti_module_register_buffer(n.m, "mean", mean, true));
    OK(tutti_module_register_buffer(n.m, "mine", mine, true));
    OK(tutti_module_register_buffer(n.m, "turned", turned, false));
    opts.group = t->group;
    opts.ignored = ignored;
    opts.n_ignored = 2;
    OK(tutti_ddp_create(n.m, &opts, &n.ddp));
    assert_true(value_of(n.p[0]) == 1.0 && value_of(n.p[3]) == 4.0);
    assert_true(value_of(n.p[1]) == (double)(100 * t->rank + 2)); /* left alone */
    assert_true(((double *)tutti_tensor_data(mean))[2] == 0.0);
    assert_true(((int64_t *)tutti_tensor_data(turned))[5] == 5);
    assert_true(value_of(mine) == (double)t->rank);

    OK(numbers_step(&n, (double[]){ t->rank + 1, t->rank + 1, 1, 0 }));
    expect_grad(&n, 0, (t->size + 1) / 2.0);
    expect_grad(&n, 1, t->rank + 1); /* as it was computed */
    expect_grad(&n, 3, NAN);
    tutti_scope_end();
    numbers_free(&n);
}

/* NULL is the thread's world of the moment: the ddp keeps to that of its making. */
static void the_group_stays_that_of_the_beginning(tt_ctx *t)
{
    tutti_group *own = NULL;
    tutti_tensor *buffer;
    tutti_ddp *ddp = NULL;
    numbers n;

    numbers_make(&n, t);
    tutti_scope_begin();
    buffer = tutti_tensor_full(TUTTI_F32, 1, SHAPE(1), (double)t->rank);
    OK(tutti_module_register_buffer(n.m, "mean", buffer, true));
    OK(tutti_ddp_create(n.m, NULL, &ddp));
    n.ddp = ddp;
    OK(tutti_tensor_fill_(buffer, 50.0 + t->rank));
    for (int r = 0; r < t->size; r++) {
        tutti_group *made = NULL;

        OK(tutti_new_group((const int[]){ r }, 1, NULL, &made));
        own = r == t->rank ? made : own;
    }
    tutti_use_group(own);
    OK(numbers_step(&n, (double[]){ t->rank + 1, 2, 3, 4 }));
    tutti_use_group(NULL);
    expect_grad(&n, 0, (t->size + 1) / 2.0);
    assert_true(value_of(buffer) == 50.0);
    tutti_scope_end();
    numbers_free(&n);
}

static void without_synchronisation_nothing_is_sent(tt_ctx *t)
{
    tutti_ddp_options opts = TUTTI_DDP_OPTIONS;
    numbers n;

    opts.skip_init_sync = true;
    numbers_wrap(&n, t, &opts);
    assert_true(value_of(n.p[0]) == (double)(100 * t->rank + 1));
    OK(numbers_step(&n, (double[]){ t->rank + 1, 1, 1, 1 }));
    expect_grad(&n, 0, (t->size + 1) / 2.0);
    numbers_free(&n);
}

/* ---- accumulation ----------------------------------------------------------------------------- */

/* Inputs 1 and 2 locally, then 10 and 20: ((1 + 10) + (2 + 20)) / 2 = 16.5. */
static void accumulate(tt_ctx *t, bool views, bool static_graph)
{
    const double one = t->rank + 1, ten = 10 * (t->rank + 1);
    tutti_ddp_options opts = TUTTI_DDP_OPTIONS;
    numbers n;

    opts.gradient_as_bucket_view = views;
    opts.static_graph = static_graph;
    numbers_wrap(&n, t, &opts);
    for (int round = 0; round < 4; round++) {
        assert_true(tutti_ddp_set_sync(n.ddp, false));
        OK(numbers_step(&n, (double[]){ one, 1, 1, 1 }));
        expect_grad(&n, 0, one);
        assert_false(tutti_ddp_set_sync(n.ddp, true));
        OK(numbers_step(&n, (double[]){ ten, 1, 1, 1 }));
        expect_grad(&n, 0, 16.5);
        expect_grad(&n, 1, 2.0);
        tutti_module_zero_grad(n.m);
    }
    numbers_free(&n);
}

static void gradients_accumulate_without_sync(tt_ctx *t)
{
    accumulate(t, false, false);
    accumulate(t, true, false);
    accumulate(t, false, true);
    accumulate(t, true, true);
}

static void the_forward_decides(tt_ctx *t)
{
    const double factors[NUMBERS] = { t->rank + 1, 1, 1, 1 };
    tutti_tensor *y;
    numbers n;

    numbers_wrap(&n, t, NULL);
    tutti_scope_begin();
    y = ahead(&n, factors);
    (void)tutti_ddp_set_sync(n.ddp, false);
    OK(tutti_tensor_backward(y));
    expect_grad(&n, 0, (t->size + 1) / 2.0); /* averaged, although its backward came without sync */

    tutti_module_zero_grad(n.m);
    y = ahead(&n, factors);
    (void)tutti_ddp_set_sync(n.ddp, true);
    OK(tutti_tensor_backward(y));
    expect_grad(&n, 0, t->rank + 1);
    tutti_scope_end();
    numbers_free(&n);
}

/* The second backward through one forward adds to what is there. */
static void a_second_backward_is_local(tt_ctx *t)
{
    const double average = (t->size + 1) / 2.0;
    tutti_tensor *y;
    numbers n;

    numbers_wrap(&n, t, NULL);
    tutti_scope_begin();
    y = ahead(&n, (double[]){ t->rank + 1, 1, 1, 1 });
    OK(tutti_backward(&y, NULL, 1, TUTTI_RETAIN_GRAPH));
    expect_grad(&n, 0, average);
    OK(tutti_tensor_backward(y));
    expect_grad(&n, 0, average + t->rank + 1);
    tutti_scope_end();
    numbers_free(&n);
}

/* ---- buffers ---------------------------------------------------------------------------------- */

static void forward_only(numbers *n, bool recording)
{
    const bool was = tutti_set_grad_enabled(recording);

    tutti_scope_begin();
    (void)ahead(n, (double[]){ 1, 1, 1, 1 });
    tutti_scope_end();
    (void)tutti_set_grad_enabled(was);
}

/* Each rank's own value is in the buffer; after a forward it is rank 0's if it was sent. */
static void expect_sent(numbers *n, tutti_tensor *buffer, bool sent)
{
    assert_true(value_of(buffer) == (sent ? 50.0 : 50.0 + n->t->rank));
    OK(tutti_tensor_fill_(buffer, 50.0 + n->t->rank));
}

static void buffers_follow_the_forward_before(tt_ctx *t)
{
    tutti_ddp_options opts = TUTTI_DDP_OPTIONS;
    tutti_tensor *buffer;
    numbers n;

    numbers_make(&n, t);
    tutti_scope_begin();
    buffer = tutti_tensor_full(TUTTI_F32, 1, SHAPE(1), 0.0);
    OK(tutti_module_register_buffer(n.m, "mean", buffer, true));
    opts.group = t->group;
    OK(tutti_ddp_create(n.m, &opts, &n.ddp));
    OK(tutti_tensor_fill_(buffer, 50.0 + t->rank));

    OK(numbers_step(&n, (double[]){ 1, 1, 1, 1 })); /* the first one */
    expect_sent(&n, buffer, true);
    forward_only(&n, false); /* after a step, although not recorded */
    expect_sent(&n, buffer, true);
    OK(numbers_step(&n, (double[]){ 1, 1, 1, 1 })); /* after one that was not recorded */
    expect_sent(&n, buffer, false);
    (void)tutti_ddp_set_sync(n.ddp, false);
    OK(numbers_step(&n, (double[]){ 1, 1, 1, 1 })); /* after a step */
    expect_sent(&n, buffer, true);
    (void)tutti_ddp_set_sync(n.ddp, true);
    OK(numbers_step(&n, (double[]){ 1, 1, 1, 1 })); /* after one without sync */
    expect_sent(&n, buffer, false);

    buffer = tutti_tensor_full(TUTTI_F32, 1, SHAPE(1), 50.0 + t->rank); /* one that came later */
    OK(tutti_module_register_buffer(n.m, "later", buffer, true));
    OK(numbers_step(&n, (double[]){ 1, 1, 1, 1 }));
    expect_sent(&n, buffer, true);
    tutti_scope_end();
    numbers_free(&n);
}

static void buffers_may_be_local(tt_ctx *t)
{
    tutti_ddp_options opts = TUTTI_DDP_OPTIONS;
    tutti_tensor *buffer;
    numbers n;

    numbers_make(&n, t);
    tutti_scope_begin();
    buffer = tutti_tensor_full(TUTTI_F32, 1, SHAPE(1), 50.0 + t->rank);
    OK(tutti_module_register_buffer(n.m, "mean", buffer, true));
    opts.group = t->group;
    opts.local_buffers = true;
    OK(tutti_ddp_create(n.m, &opts, &n.ddp));
    expect_sent(&n, buffer, true); /* to begin with */
    OK(numbers_step(&n, (double[]){ 1, 1, 1, 1 }));
    expect_sent(&n, buffer, false);
    tutti_scope_end();
    numbers_free(&n);
}

/* ---- gradients that outlive their bucket ------------------------------------------------------ */

static void kept_gradients_outlive_buckets(tt_ctx *t)
{
    tutti_ddp_options opts = TUTTI_DDP_OPTIONS;
    tutti_tensor *first, *part, *last;
    numbers n;

    opts.gradient_as_bucket_view = true;
    numbers_wrap(&n, t, &opts);
    tutti_scope_begin();
    OK(numbers_step(&n, (double[]){ 4, 3, 2, 1 }));
    assert_ptr_equal(tutti_tensor_data(tutti_tensor_grad(n.p[0])),
                     tutti_reducer_bucket_view(tutti_ddp_reducer(n.ddp), 0).data);
    first = tutti_tensor_retain(tutti_tensor_grad(n.p[0]));
    part = tutti_tensor_retain(tutti_tensor_narrow(tutti_tensor_grad(n.p[1]), 0, 0, 1));
    tutti_module_zero_grad(n.m);
    OK(numbers_step(&n, (double[]){ 40, 30, 20, 10 })); /* buckets are rebuilt */
    assert_true(value_of(first) == 4.0 && value_of(part) == 3.0);
    last = tutti_tensor_retain(tutti_tensor_grad(n.p[2]));
    assert_ptr_equal(tutti_tensor_data(last), tutti_reducer_bucket_view(tutti_ddp_reducer(n.ddp), 2).data);
    OK(numbers_step(&n, (double[]){ 1, 1, 1, 1 })); /* added in place, to the same tensor */
    assert_ptr_equal(last, tutti_tensor_grad(n.p[2]));
    expect_grad(&n, 2, 21.0);
    tutti_ddp_free(n.ddp);
    n.ddp = NULL;
    expect_grad(&n, 0, 41.0);
    assert_true(value_of(first) == 4.0 && value_of(part) == 3.0 && value_of(last) == 21.0);
    tutti_tensor_release(first);
    tutti_tensor_release(part);
    tutti_tensor_release(last);
    tutti_scope_end();
    numbers_free(&n);
}

/* A gradient of the program's own that does not lie row by row. */
static void strange_strides_are_straightened(tt_ctx *t)
{
    tutti_module *m = tutti_module_create("square", NULL, NULL, NULL);
    tutti_ddp_options opts = TUTTI_DDP_OPTIONS;
    tutti_ddp *ddp = NULL;
    tutti_tensor *w, *y;
    const float *g;

    tutti_scope_begin();
    w = tutti_tensor_zeros(TUTTI_F32, 2, SHAPE(2, 3));
    OK(tutti_module_register_parameter(m, "w", w));
    opts.group = t->group;
    OK(tutti_ddp_create(m, &opts, &ddp));
    OK(tutti_tensor_set_grad(
        w, tutti_tensor_transpose(tutti_tensor_full(TUTTI_F32, 2, SHAPE(3, 2), (double)t->rank), 0, 1)));
    OK(tutti_ddp_before_forward(ddp));
    y = tutti_tensor_sum(w, NULL, 0, false);
    OK(tutti_ddp_after_forward(ddp, &y, 1));
    OK(tutti_tensor_backward(y));
    g = tutti_tensor_data(tutti_tensor_grad(w));
    assert_true(tutti_tensor_is_contiguous(tutti_tensor_grad(w)));
    for (int i = 0; i < 6; i++)
        assert_true((double)g[i] == 1.0 + (t->size - 1) / 2.0);
    tutti_scope_end();
    tutti_ddp_free(ddp);
    tutti_module_free(m);
}

/* ---- wrapping --------------------------------------------------------------------------------- */

static void expect_key(const tutti_state_dict *sd, const char *name)
{
    if (tutti_state_dict_get(sd, name) == NULL)
        fail_msg("no '%s'", name);
}

static void names_begin_with_module(tt_ctx *t)
{
    tutti_ddp_options opts = TUTTI_DDP_OPTIONS;
    tutti_module *net = network(1), *wrapper, *root;
    tutti_state_dict *sd = NULL;
    tutti_ddp *ddp = NULL;
    tutti_tensor *y;
    int n;

    opts.group = t->group;
    OK(tutti_ddp_create(net, &opts, &ddp));
    wrapper = tutti_ddp_module(ddp);
    assert_ptr_equal(tutti_module_child(wrapper, "module"), net);
    assert_string_equal(tutti_module_parameter_names(wrapper, &n)[0], "module.fc1.weight");
    OK(tutti_module_state_dict(wrapper, &sd));
    assert_int_equal(tutti_state_dict_length(sd), 6);
    expect_key(sd, "module.fc2.bias");
    OK(tutti_module_load_state_dict(wrapper, sd, true, NULL));
    tutti_state_dict_free(sd);

    tutti_module_train(wrapper, false);
    assert_false(tutti_module_is_training(net));
    root = tutti_sequential(); /* as a part of something larger */
    tutti_module_add(root, "ddp", wrapper);
    tutti_scope_begin();
    y = tutti_forward(root, input(0, t->rank));
    OK(tutti_tensor_backward(loss_of(y)));
    expect_same_bits(t, tutti_tensor_grad(tutti_module_parameter(net, "fc1.weight")));
    tutti_scope_end();
    tutti_ddp_free(ddp);
    assert_null(tutti_module_child(root, "ddp"));
    assert_string_equal(tutti_module_parameter_names(net, &n)[0], "fc1.weight");
    tutti_module_free(root);
    tutti_module_free(net);
}

static void whoever_owns_the_wrapper_may_free_it(tt_ctx *t)
{
    tutti_ddp_options opts = TUTTI_DDP_OPTIONS;
    tutti_module *root = tutti_sequential();
    tutti_ddp *ddp = NULL;

    opts.group = t->group;
    OK(tutti_ddp_create(network(1), &opts, &ddp));
    tutti_module_add(root, "ddp", tutti_ddp_module(ddp));
    tutti_module_free(root); /* and the network with it */
    assert_null(tutti_ddp_module(ddp));
    REFUSED(tutti_ddp_before_forward(ddp), TUTTI_E_ARG, "its module was freed");
    tutti_ddp_free(ddp);
}

/* Nothing of it is left: neither hooks nor nodes that would call it. */
static void freeing_takes_everything_off(tt_ctx *t)
{
    tutti_ddp_options opts = TUTTI_DDP_OPTIONS;
    tutti_tensor *y;
    numbers n;

    opts.find_unused_parameters = true;
    numbers_wrap(&n, t, &opts);
    tutti_scope_begin();
    y = ahead(&n, (double[]){ t->rank + 1, 1, 1, 1 });
    tutti_ddp_free(n.ddp);
    OK(tutti_tensor_backward(y)); /* over a graph that it was made in */
    expect_grad(&n, 0, t->rank + 1);
    tutti_module_zero_grad(n.m);

    opts.group = t->group;
    OK(tutti_ddp_create(n.m, &opts, &n.ddp));
    OK(numbers_step(&n, (double[]){ t->rank + 1, 1, 1, 1 }));
    expect_grad(&n, 0, (t->size + 1) / 2.0);
    tutti_scope_end();
    numbers_free(&n);
    tutti_ddp_free(NULL);
}

typedef struct entries {
    int found;
    int64_t buffers, iteration;
} entries;

static void look(const char *key, const char *value, void *ctx)
{
    entries *e = ctx;

    e->found += strcmp(key, "module_name") == 0 && strcmp(value, "numbers") == 0;
    e->found += strcmp(key, "broadcast_buffers") == 0 && strcmp(value, "1") == 0;
    e->found += strcmp(key, "num_parameter_tensors") == 0 && strcmp(value, "4") == 0;
    e->found += strcmp(key, "torch_distributed_debug") == 0 && strcmp(value, "DETAIL") == 0;
    e->found += strcmp(key, "join_uneven_inputs") == 0 && strcmp(value, "0") == 0;
    e->found += strcmp(key, "can_set_static_graph") == 0 && strcmp(value, "1") == 0;
    if (strcmp(key, "iteration") == 0)
        e->iteration = atoll(value);
}

static void logging_data_has_what_torch_has(tt_ctx *t)
{
    tutti_ddp_options opts = TUTTI_DDP_OPTIONS;
    entries e = { .found = 0 };
    numbers n;

    opts.find_unused_parameters = true;
    OK(tutti_set_debug_level(TUTTI_DEBUG_DETAIL));
    numbers_wrap(&n, t, &opts);
    for (int i = 0; i < 3; i++)
        OK(numbers_step(&n, (double[]){ 1, 1, 0, 1 }));
    tutti_ddp_logging_data(n.ddp, look, &e);
    assert_int_equal(e.found, 6);
    assert_int_equal(e.iteration, 3);
    OK(tutti_set_debug_level(TUTTI_DEBUG_OFF));
    numbers_free(&n);
}

int main(void)
{
    static const tt_test tests[] = {
        TT_TEST(as_averaged_by_hand, .ranks = 2, .transports = "shm,tcp,threads", .limit_ms = 60000),
        TT_TEST(as_averaged_by_hand, .ranks = 4, .transports = "shm,threads-tcp", .limit_ms = 60000),
        TT_TEST(as_averaged_by_hand, .ranks = 4, .transports = "tcp", .hosts = 2, .limit_ms = 60000),
        TT_TEST(the_group_stays_that_of_the_beginning, .ranks = 3),
        TT_TEST(everybody_begins_as_rank_0, .ranks = 3, .transports = "shm,threads"),
        TT_TEST(without_synchronisation_nothing_is_sent),
        TT_TEST(gradients_accumulate_without_sync, .transports = "shm,tcp"),
        TT_TEST(the_forward_decides),
        TT_TEST(a_second_backward_is_local),
        TT_TEST(buffers_follow_the_forward_before, .ranks = 3),
        TT_TEST(buffers_may_be_local),
        TT_TEST(kept_gradients_outlive_buckets, .transports = "shm,threads"),
        TT_TEST(strange_strides_are_straightened),
        TT_TEST(names_begin_with_module),
        TT_TEST(whoever_owns_the_wrapper_may_free_it),
        TT_TEST(freeing_takes_everything_off),
        TT_TEST(logging_data_has_what_torch_has),
    };

    return tt_main(tests, sizeof tests / sizeof tests[0]);
}
