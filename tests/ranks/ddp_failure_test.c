/* SPDX-License-Identifier: BSD-3-Clause
 *
 * ddp_failure_test.c
 * Goal    what is wrong on one rank is an error on all of them, in the same call, with the parameter's name where it
 *         happened; nobody waits for ever, and training goes on after.
 * Method  mistakes on rank 0 alone, and on all; after each the same ddp, or another one over the same module, makes a
 *         good step. */
#include "ddp_nets.h"

#include <stdio.h>
#include <tutti/private.h>

static void good_step(numbers *n)
{
    tutti_module_zero_grad(n->m);
    OK(numbers_step(n, (double[]){ n->t->rank + 1, 2, 3, 4 }));
    expect_grad(n, 0, (n->t->size + 1) / 2.0);
    expect_grad(n, 3, 4.0);
    tutti_module_zero_grad(n->m);
}

/* A call that fails on rank 0 in these words, and on the others because of it. */
static void expect_told(tt_ctx *t, tutti_status st, tutti_status on_0, const char *words)
{
    const char *expected = t->rank == 0 ? words : "rank 0";

    if (st != (t->rank == 0 ? on_0 : TUTTI_E_REMOTE) || strstr(tutti_last_error(), expected) == NULL)
        fail_msg("rank %d: %s instead of '%s': %s", t->rank, tutti_status_name(st), expected, tutti_last_error());
}

/* ---- wrapping --------------------------------------------------------------------------------- */

static void models_that_differ(tt_ctx *t)
{
    tutti_ddp_options opts = TUTTI_DDP_OPTIONS;
    tutti_module *net = tutti_sequential();
    tutti_ddp *ddp = NULL;
    numbers n;

    opts.group = t->group;
    tutti_module_add(net, "fc", tutti_linear(3, t->rank == 1 ? 5 : 4, true));
    REFUSED(tutti_ddp_create(net, &opts, &ddp), TUTTI_E_MISMATCH, "'fc.weight'");
    assert_null(ddp);
    tutti_module_free(net); /* it is ours again */

    numbers_make(&n, t);
    if (t->rank == 1)
        (void)tutti_tensor_requires_grad_(n.p[2], false);
    REFUSED(tutti_ddp_create(n.m, &opts, &n.ddp), TUTTI_E_MISMATCH, "rank");
    (void)tutti_tensor_requires_grad_(n.p[2], true);
    OK(tutti_ddp_create(n.m, &opts, &n.ddp)); /* the same module, once it is right */
    good_step(&n);
    numbers_free(&n);
}

static void a_rank_cannot_wrap(tt_ctx *t)
{
    tutti_ddp_options opts = TUTTI_DDP_OPTIONS;
    tutti_module *root = tutti_sequential();
    tutti_ddp *other = NULL;
    numbers n;

    opts.group = t->group;
    numbers_make(&n, t);
    if (t->rank == 0)
        for (int i = 0; i < NUMBERS; i++)
            (void)tutti_tensor_requires_grad_(n.p[i], false);
    expect_told(t, tutti_ddp_create(n.m, &opts, &n.ddp), TUTTI_E_ARG,
                "doesn't have any parameter that requires a gradient");
    for (int i = 0; i < NUMBERS; i++)
        (void)tutti_tensor_requires_grad_(n.p[i], true);

    expect_told(t, tutti_ddp_create(t->rank == 0 ? NULL : n.m, &opts, &n.ddp), TUTTI_E_ARG, "the module is NULL");
    if (t->rank != 0)
        assert_non_null(strstr(tutti_last_error(), "next: see what that rank reports"));
    OK(tutti_ddp_create(n.m, &opts, &n.ddp));
    REFUSED(tutti_ddp_create(n.m, &opts, &other), TUTTI_E_STATE, "is wrapped already");
    good_step(&n); /* the first one still works */
    tutti_ddp_free(n.ddp);

    tutti_module_add(root, "child", n.m);
    REFUSED(tutti_ddp_create(n.m, &opts, &n.ddp), TUTTI_E_ARG, "is a child of");
    tutti_module_free(root);
    assert_int_equal(tutti_ddp_create(NULL, &(tutti_ddp_options){ .size = 1 }, &other), TUTTI_E_ARG);
    OK(tutti_tensor_check());
}

/* ---- a backward that does not reach everything ------------------------------------------------ */

static void leave_out_by_mistake(tt_ctx *t, bool views, bool static_graph)
{
    tutti_ddp_options opts = TUTTI_DDP_OPTIONS;
    tutti_status st;
    numbers n;

    opts.gradient_as_bucket_view = views;
    opts.static_graph = static_graph;
    opts.bucket_cap_bytes = 8;
    numbers_wrap(&n, t, &opts);
    good_step(&n);
    for (int round = 0; round < 2; round++) {
        st = numbers_step(&n, (double[]){ 1, 2, t->rank == 0 ? 0 : 3, 4 });
        expect_told(t, st, TUTTI_E_STATE, "Parameter indices which did not receive grad for rank 0: 2");
        if (t->rank == 0) {
            assert_non_null(strstr(tutti_last_error(), "Expected to have finished reduction in the prior iteration"));
            assert_non_null(strstr(tutti_last_error(), "Parameters which did not receive grad for rank 0: c"));
        }
        good_step(&n);
    }
    st = numbers_step(&n, (double[]){ 1, 0, 0, 4 }); /* on all ranks: each has its own words */
    REFUSED(st, TUTTI_E_STATE, "did not receive grad");
    assert_non_null(strstr(tutti_last_error(), ": 1 2"));
    good_step(&n);
    numbers_free(&n);
}

static void parameters_left_out_by_mistake(tt_ctx *t)
{
    leave_out_by_mistake(t, false, false);
    leave_out_by_mistake(t, true, false);
    leave_out_by_mistake(t, false, true);
    leave_out_by_mistake(t, true, true);
}

typedef struct lines {
    char text[8192];
} lines;

static void note_line(tutti_log_level level, const char *line, void *ctx)
{
    lines *l = ctx;

    (void)level;
    if (strlen(l->text) + strlen(line) + 2 < sizeof l->text)
        strcat(strcat(l->text, line), "\n");
}

/* What a debug level adds: names, one by one, in the log. */
static void debug_levels_name_parameters(tt_ctx *t)
{
    tutti_ddp_options opts = TUTTI_DDP_OPTIONS;
    lines l = { "" };
    numbers n;

    OK(tutti_log_set_sink("test", note_line, &l));
    numbers_wrap(&n, t, NULL);
    REFUSED(numbers_step(&n, (double[]){ 1, 0, 3, 4 }), TUTTI_E_STATE, "did not receive grad");
    assert_null(strstr(l.text, "did not receive a gradient"));
    OK(tutti_set_debug_level(TUTTI_DEBUG_INFO));
    REFUSED(numbers_step(&n, (double[]){ 1, 0, 3, 4 }), TUTTI_E_STATE, "did not receive grad");
    assert_non_null(strstr(l.text, "parameter 1 ('b') did not receive a gradient"));
    assert_null(strstr(l.text, "('a')"));
    numbers_free(&n);

    assert_int_equal(setenv("TUTTI_LOG", "info", 1), 0);
    OK(tutti_set_debug_level(TUTTI_DEBUG_DETAIL));
    opts.static_graph = true;
    numbers_wrap(&n, t, &opts);
    OK(numbers_step(&n, (double[]){ 1, 2, 0, 4 }));
    assert_non_null(strstr(l.text, "unused in the first step of a static graph: {c, 2}"));
    assert_non_null(strstr(l.text, "ddp: step 1: "));
    assert_non_null(strstr(l.text, "module_name=numbers"));
    numbers_free(&n);
    OK(tutti_set_debug_level(TUTTI_DEBUG_OFF));
    OK(tutti_log_set_sink("test", NULL, NULL));
}

/* ---- a backward that fails -------------------------------------------------------------------- */

static tutti_status refuse(tutti_tensor *leaf, void *ctx)
{
    (void)leaf;
    return *(bool *)ctx ? tti_fail(TUTTI_E_IO, "a hook of the program has failed") : TUTTI_OK;
}

/* In the middle, on rank 0: some gradients are handed in, others never come. */
static void a_backward_fails_on_one_rank(tt_ctx *t)
{
    tutti_ddp_options opts = TUTTI_DDP_OPTIONS;
    bool fails = t->rank == 0;
    numbers n;
    int handle;

    opts.bucket_cap_bytes = 4;
    numbers_wrap(&n, t, &opts);
    OK(tutti_tensor_register_post_accumulate_grad_hook(n.p[1], refuse, &fails, &handle));
    for (int round = 0; round < 3; round++) {
        const tutti_status st = numbers_step(&n, (double[]){ 1, 2, 3, 4 });

        expect_told(t, st, TUTTI_E_IO, "a hook of the program has failed");
        fails = false;
        good_step(&n);
        fails = t->rank == 0;
    }
    numbers_free(&n);
}

static tutti_status refuse_silently(tutti_tensor *leaf, void *ctx)
{
    (void)leaf;
    return *(bool *)ctx ? TUTTI_E_IO : TUTTI_OK;
}

/* What failed before is not what it says. */
static void a_hook_fails_without_words(tt_ctx *t)
{
    static const char silent[] = "a gradient hook of the program failed with TUTTI_E_IO, and gave no words";
    bool fails = t->rank == 0;
    numbers n;
    int handle;

    numbers_wrap(&n, t, NULL);
    OK(tutti_tensor_register_post_accumulate_grad_hook(n.p[1], refuse_silently, &fails, &handle));
    (void)tti_fail(TUTTI_E_ARG, "something older");
    expect_told(t, numbers_step(&n, (double[]){ 1, 2, 3, 4 }), TUTTI_E_IO, silent);
    assert_non_null(strstr(tutti_last_error(), silent));
    assert_null(strstr(tutti_last_error(), "something older"));
    numbers_free(&n);
}

/* ---- a step that does not come to its backward ------------------------------------------------ */

/* What a module may be asked to do wrong. */
typedef struct faulty {
    tutti_tensor *w;
    bool fails;
} faulty;

static tutti_tensor *faulty_forward(tutti_module *m, tutti_tensor *x)
{
    const faulty *f = tutti_module_context(m);

    return f->fails ? tutti_tensor_mm(x, x) : tutti_tensor_linear(x, f->w, NULL);
}

typedef enum fault { NO_INPUT, IN_FORWARD, NO_LOSS, LOSS_OF_MANY, NO_DATA, FAULTS } fault;

static const char *const fault_words[FAULTS] = { [NO_INPUT] = "mm", [IN_FORWARD] = "mm", [NO_LOSS] = "is none of 4 classes",
                                                 [LOSS_OF_MANY] = "no gradient is given", [NO_DATA] = "no such file" };

/* Forward, loss and backward, with a fault on rank 0 at one place. */
static tutti_status faulty_step(tt_ctx *t, tutti_ddp *ddp, faulty *f, fault what)
{
    const bool here = t->rank == 0;
    tutti_tensor *x, *y, *target;
    tutti_status st;

    if (here && what == NO_DATA)
        return tutti_ddp_fail(ddp, TUTTI_E_IO, "cannot open 'data.bin': no such file");
    tutti_scope_begin();
    f->fails = here && what == IN_FORWARD;
    x = tutti_tensor_full(TUTTI_F32, 2, SHAPE(2, 3), t->rank + 1.0);
    target = tutti_tensor_full(TUTTI_I64, 1, SHAPE(2), here && what == NO_LOSS ? 7.0 : 1.0);
    y = tutti_ddp_forward(ddp, here && what == NO_INPUT ? tutti_tensor_mm(x, x) : x);
    if (!(here && what == LOSS_OF_MANY))
        y = tutti_tensor_cross_entropy(y, target, NULL);
    st = tutti_tensor_backward(y);
    tutti_scope_end();
    return st;
}

static void faults_with(tt_ctx *t, const tutti_ddp_options *opts, bool with_hook)
{
    const tutti_status on_0[FAULTS] = { TUTTI_E_ARG, TUTTI_E_ARG, TUTTI_E_ARG, TUTTI_E_ARG, TUTTI_E_IO };
    tutti_ddp_options o = *opts;
    faulty f = { NULL, false };
    tutti_module *net = tutti_module_create("faulty", faulty_forward, &f, NULL);
    tutti_ddp *ddp = NULL;
    tutti_status st;

    tutti_scope_begin();
    f.w = tutti_tensor_full(TUTTI_F32, 2, SHAPE(4, 3), 0.5);
    OK(tutti_module_register_parameter(net, "w", f.w));
    tutti_scope_end();
    o.group = t->group;
    OK(tutti_ddp_create(net, &o, &ddp));
    if (with_hook)
        OK(tutti_reducer_register_builtin_comm_hook(tutti_ddp_reducer(ddp), TUTTI_HOOK_BF16_COMPRESS));
    for (int round = 0; round < 2; round++)
        for (fault what = 0; what < FAULTS; what++) {
            st = faulty_step(t, ddp, &f, what);
            expect_told(t, st, on_0[what], fault_words[what]);
            if (t->rank != 0)
                assert_non_null(strstr(tutti_last_error(), fault_words[what])); /* the words, too */
            tutti_module_zero_grad(net);
            OK(faulty_step(t, ddp, &f, FAULTS));
            expect_same_bits(t, tutti_tensor_grad(f.w));
        }
    OK(tutti_tensor_check());
    tutti_ddp_free(ddp);
    tutti_module_free(net);
}

/* A forward that is not recorded is nobody else's, also between another one and its backward. */
static void a_forward_without_recording_fails(tt_ctx *t)
{
    tutti_mixed_precision mp = TUTTI_MIXED_PRECISION;
    tutti_ddp_options opts = TUTTI_DDP_OPTIONS;
    faulty f = { NULL, false };
    tutti_module *net = tutti_module_create("faulty", faulty_forward, &f, NULL);
    tutti_tensor *x, *y;
    tutti_ddp *ddp = NULL;

    tutti_scope_begin();
    f.w = tutti_tensor_full(TUTTI_F32, 2, SHAPE(4, 3), 0.5);
    x = tutti_tensor_full(TUTTI_F32, 2, SHAPE(2, 3), t->rank + 1.0);
    OK(tutti_module_register_parameter(net, "w", f.w));
    opts.group = t->group;
    for (int mixed = 0; mixed < 2; mixed++) {
        opts.mixed_precision = mixed ? &mp : NULL;
        OK(tutti_ddp_create(net, &opts, &ddp));
        for (int step = 0; step < 3; step++) {
            y = tutti_ddp_forward(ddp, x);
            if (t->rank == 0) {
                (void)tutti_set_grad_enabled(false);
                f.fails = true;
                assert_null(tutti_ddp_forward(ddp, x));
                REFUSED(tutti_tensor_check(), TUTTI_E_ARG, "mm");
                f.fails = false;
                assert_non_null(tutti_ddp_forward(ddp, x));
                (void)tutti_set_grad_enabled(true);
            }
            OK(tutti_tensor_backward(tutti_tensor_sum(y, NULL, 0, false)));
            expect_same_bits(t, tutti_tensor_grad(f.w));
            assert_int_equal(tutti_tensor_dtype(f.w), TUTTI_F32);
        }
        tutti_ddp_free(ddp);
        tutti_module_zero_grad(net);
    }
    tutti_scope_end();
    tutti_module_free(net);
}

static void a_step_fails_before_its_backward(tt_ctx *t)
{
    tutti_ddp_options opts = TUTTI_DDP_OPTIONS;

    faults_with(t, &opts, false);
    faults_with(t, &opts, true);
    opts.gradient_as_bucket_view = true;
    faults_with(t, &opts, false);
    opts.find_unused_parameters = true;
    faults_with(t, &opts, false);
    opts.find_unused_parameters = false;
    opts.static_graph = true;
    faults_with(t, &opts, false);
}

/* What is nobody else's business fails here alone: no step that averages is under way. */
static void failures_of_one_rank(tt_ctx *t)
{
    const double ones[NUMBERS] = { 1, 1, 1, 1 };
    tutti_status st;
    numbers n;

    numbers_wrap(&n, t, NULL);
    assert_int_equal(tutti_ddp_fail(n.ddp, TUTTI_OK, "?"), TUTTI_E_ARG);
    assert_int_equal(tutti_ddp_fail(n.ddp, TUTTI_E_IO, NULL), TUTTI_E_ARG);
    assert_int_equal(tutti_ddp_fail(NULL, TUTTI_E_IO, "?"), TUTTI_E_ARG);
    if (t->rank == 0)
        REFUSED(tutti_tensor_backward(NULL), TUTTI_E_ARG, "root 0 is NULL"); /* no forward: nothing is awaited */
    assert_true(tutti_ddp_set_sync(n.ddp, false));
    st = t->rank == 0 ? tutti_ddp_fail(n.ddp, TUTTI_E_IO, "not read") : numbers_step(&n, ones);
    assert_int_equal(st, t->rank == 0 ? TUTTI_E_IO : TUTTI_OK);
    if (t->rank == 0) {
        tutti_scope_begin();
        (void)ahead(&n, ones); /* without sync no backward is awaited either */
        REFUSED(tutti_tensor_backward(NULL), TUTTI_E_ARG, "root 0 is NULL");
        tutti_scope_end();
    }
    assert_false(tutti_ddp_set_sync(n.ddp, true));
    good_step(&n);
    numbers_free(&n);
}

/* Rank 0 has run out of inputs and plays along: it hears of rank 1's failure as rank 2 does, which has some. */
static void a_failure_reaches_ranks_without_inputs(tt_ctx *t)
{
    tutti_joinable joinable;
    tutti_join *join = NULL;
    tutti_status st = TUTTI_OK;
    numbers n;

    numbers_wrap(&n, t, NULL);
    OK(tutti_ddp_joinable(n.ddp, NULL, &joinable));
    OK(tutti_join_begin(&joinable, 1, NULL, &join));
    for (int step = 0; step < 4 * t->rank && st == TUTTI_OK; step++) {
        if (t->rank == 1 && step == 2)
            st = tutti_ddp_fail(n.ddp, TUTTI_E_IO, "cannot open 'data.bin'");
        else
            st = numbers_step(&n, (double[]){ 1, 2, 3, 4 });
        assert_true(st == TUTTI_OK || step == 2);
    }
    st = tutti_join_end(join, st);
    assert_int_equal(st, t->rank == 1 ? TUTTI_E_IO : TUTTI_E_REMOTE);
    assert_non_null(strstr(tutti_last_error(), "cannot open 'data.bin'"));
    if (t->rank != 1)
        assert_non_null(strstr(tutti_last_error(), "rank 1 failed"));
    tutti_module_zero_grad(n.m);
    OK(numbers_step(&n, (double[]){ t->rank + 1, 2, 3, 4 })); /* outside of the scope */
    expect_grad(&n, 0, (t->size + 1) / 2.0);
    numbers_free(&n);
}

/* Two modules in one loss, which fails on rank 0: the others hear of it, and the next step is a good one. */
static void two_modules_in_a_loss_that_fails(tt_ctx *t)
{
    const double ones[NUMBERS] = { 1, 1, 1, 1 };
    tutti_ddp_options opts = TUTTI_DDP_OPTIONS;
    tutti_tensor *y;
    tutti_status st;
    numbers a, b;

    opts.bucket_cap_bytes = 8;
    numbers_wrap(&a, t, &opts);
    numbers_wrap(&b, t, &opts);
    for (int step = 0; step < 5; step++) {
        const bool fails = step % 2 == 1;

        tutti_scope_begin();
        y = tutti_tensor_add(ahead(&a, ones), ahead(&b, ones));
        st = tutti_tensor_backward(t->rank == 0 && fails ? NULL : y);
        tutti_scope_end();
        if (fails)
            expect_told(t, st, TUTTI_E_ARG, "root 0 is NULL");
        else
            OK(st);
        for (int i = 0; i < NUMBERS && !fails; i++) {
            expect_grad(&a, i, 1.0);
            expect_grad(&b, i, 1.0);
        }
        tutti_module_zero_grad(a.m);
        tutti_module_zero_grad(b.m);
    }
    numbers_free(&a);
    numbers_free(&b);
}

/* A parameter of the unused ones comes all the same: it is in the loss, but not in the outputs. */
static void unused_and_used(tt_ctx *t)
{
    tutti_ddp_options opts = TUTTI_DDP_OPTIONS;
    tutti_tensor *y;
    tutti_status st;
    numbers n;

    opts.find_unused_parameters = true;
    numbers_wrap(&n, t, &opts);
    good_step(&n);
    tutti_scope_begin();
    y = ahead(&n, (double[]){ 1, 2, 0, 4 });
    if (t->rank == 0)
        y = tutti_tensor_add(y, tutti_tensor_exp(n.p[2]));
    st = tutti_tensor_backward(y);
    tutti_scope_end();
    expect_told(t, st, TUTTI_E_STATE, "Expected to mark a variable ready only once");
    if (t->rank == 0)
        assert_non_null(strstr(tutti_last_error(), "Parameter at index 2 with name c has been marked as ready twice"));
    good_step(&n);
    numbers_free(&n);
}

/* A static graph in which a parameter comes more often than in the first step, while others are still to come. */
static tutti_status come_twice(tutti_tensor *leaf, void *ctx)
{
    tutti_status st;

    (void)leaf;
    (void)tutti_set_grad_enabled(true);
    tutti_scope_begin();
    st = tutti_tensor_backward(tutti_tensor_exp(ctx));
    if (st == TUTTI_OK)
        st = tutti_tensor_backward(tutti_tensor_exp(ctx));
    tutti_scope_end();
    (void)tutti_set_grad_enabled(false);
    return st;
}

static void a_static_graph_changes(tt_ctx *t)
{
    tutti_ddp_options opts = TUTTI_DDP_OPTIONS;
    tutti_status st;
    numbers n;
    int handle = 0;

    opts.static_graph = true;
    numbers_wrap(&n, t, &opts);
    good_step(&n);
    if (t->rank == 0)
        OK(tutti_tensor_register_post_accumulate_grad_hook(n.p[3], come_twice, n.p[0], &handle));
    st = numbers_step(&n, (double[]){ 1, 2, 3, 4 });
    expect_told(t, st, TUTTI_E_STATE, "Your training graph has changed in this iteration");
    tutti_tensor_remove_hook(n.p[3], handle);
    good_step(&n);
    numbers_free(&n);
}

/* ---- giving up, and ranks that go ------------------------------------------------------------- */

static void a_step_may_be_given_up(tt_ctx *t)
{
    tutti_ddp_options opts = TUTTI_DDP_OPTIONS;
    numbers n;

    opts.gradient_as_bucket_view = true;
    numbers_wrap(&n, t, &opts);
    good_step(&n);
    tutti_scope_begin();
    (void)ahead(&n, (double[]){ 1, 2, 3, 4 }); /* and no backward */
    tutti_scope_end();
    OK(tutti_ddp_reset(n.ddp));
    good_step(&n);
    good_step(&n);
    numbers_free(&n);
    assert_int_equal(tutti_ddp_reset(NULL), TUTTI_E_ARG);
}

enum { VICTIM = 1 };

static void a_rank_dies_in_its_backward(tt_ctx *t)
{
    numbers n;

    numbers_wrap(&n, t, NULL);
    good_step(&n);
    REFUSED(step_with_a_death(&n, VICTIM), TUTTI_E_PEER, "rank 1");
    REFUSED(numbers_step(&n, (double[]){ 1, 2, 3, 4 }), TUTTI_E_PEER, "rank 1"); /* so does all that comes after */
    numbers_free(&n);
}

int main(void)
{
    static const tt_test tests[] = {
        TT_TEST(models_that_differ, .ranks = 3, .transports = "shm,tcp"),
        TT_TEST(a_rank_cannot_wrap, .ranks = 3),
        TT_TEST(parameters_left_out_by_mistake, .ranks = 2, .transports = "shm,tcp,threads"),
        TT_TEST(parameters_left_out_by_mistake, .ranks = 4),
        TT_TEST(debug_levels_name_parameters),
        TT_TEST(a_backward_fails_on_one_rank, .ranks = 3, .transports = "shm,threads"),
        TT_TEST(a_hook_fails_without_words, .ranks = 3, .transports = "shm,threads"),
        TT_TEST(a_step_fails_before_its_backward, .ranks = 3, .transports = "shm,tcp,threads"),
        TT_TEST(failures_of_one_rank),
        TT_TEST(a_forward_without_recording_fails),
        TT_TEST(a_failure_reaches_ranks_without_inputs, .ranks = 3, .transports = "shm,tcp"),
        TT_TEST(two_modules_in_a_loss_that_fails, .ranks = 2, .transports = "shm,tcp"),
        TT_TEST(unused_and_used, .ranks = 2),
        TT_TEST(a_static_graph_changes, .ranks = 2),
        TT_TEST(a_step_may_be_given_up),
        TT_TEST(a_rank_dies_in_its_backward, .ranks = 3, .transports = "shm,tcp", .dies = VICTIM),
    };

    return tt_main(tests, sizeof tests / sizeof tests[0]);
}
