/* SPDX-License-Identifier: BSD-3-Clause
 *
 * zero_overlap_test.c
 * Goal    a divided optimizer that steps inside of the backward of a ddp has the bits of the whole one that is stepped
 *         after it, from the first step on, in all modes; buckets have the owners that torch gives them, and what these
 *         remember moves along when buckets are rebuilt; what fails on one rank fails on all.
 * Method  the same network twice, once stepped as always. */
#include "zero_nets.h"

#include <tutti/private.h>

static const tutti_optim_option decay[] = { { "lr", { 0.1 } }, { "momentum", { 0.9 } }, { "weight_decay", { 0.1 } } };

typedef struct mode {
    const char *name;
    bool interleaved, shard, views, ddp_views, is_static, elsewhere, accumulate;
} mode;

/* A network with a whole optimizer, and one with a divided one. */
typedef struct pair {
    tt_ctx *t;
    const mode *m;
    tutti_module *net[2];
    tutti_ddp *ddp[2];
    tutti_tensor *const *p[2];
    tutti_optim *o[2];
    int n;
} pair;

static void pair_make(pair *a, tt_ctx *t, const mode *m)
{
    tutti_zero_overlap_options zopts = TUTTI_ZERO_OVERLAP_OPTIONS;
    tutti_ddp_options opts = TUTTI_DDP_OPTIONS;
    const int n_options = m->name[0] == 's' ? 3 : 0;

    *a = (pair){ .t = t, .m = m };
    opts.group = t->group;
    opts.gradient_as_bucket_view = m->ddp_views;
    opts.static_graph = m->is_static;
    opts.bucket_cap_bytes = 100;
    for (int k = 0; k < 2; k++) {
        a->net[k] = make_net();
        a->p[k] = tutti_module_parameters(a->net[k], &a->n);
        OK(tutti_ddp_create(a->net[k], &opts, &a->ddp[k]));
    }
    a->o[0] = tutti_optim_create(m->name, a->p[0], a->n, decay, n_options);
    a->o[1] = zero_of(t, m->name, a->p[1], a->n, decay, n_options, m->views);
    if (m->elsewhere)
        OK(tutti_reducer_register_comm_hook(tutti_ddp_reducer(a->ddp[0]), &elsewhere_hook, NULL));
    else
        OK(tutti_reducer_register_builtin_comm_hook(tutti_ddp_reducer(a->ddp[0]), TUTTI_HOOK_ALLREDUCE));
    zopts.interleaved = m->interleaved;
    zopts.shard_buckets = m->shard;
    zopts.hook = m->elsewhere ? &elsewhere_hook : NULL;
    OK(tutti_zero_overlap_with_ddp(a->o[1], a->ddp[1], &zopts));
}

static void pair_step(pair *a, int step)
{
    for (int k = 0; k < 2; k++) {
        tutti_module_zero_grad(a->net[k]);
        if (a->m->accumulate) {
            (void)tutti_ddp_set_sync(a->ddp[k], false);
            OK(net_backward(a->t, a->ddp[k], NULL, 100 + step));
            (void)tutti_ddp_set_sync(a->ddp[k], true);
        }
        OK(net_backward(a->t, a->ddp[k], NULL, step));
        OK(tutti_optim_step(a->o[k])); /* of the second one: does nothing, and says so once */
    }
    for (int i = 0; i < a->n; i++) {
        if (!same_bits(a->p[0][i], a->p[1][i]))
            fail_msg("%s, step %d: parameter %d has other bits", a->m->name, step, i);
        expect_same_bits(a->t, a->p[1][i]);
        assert_true(same_bits(tutti_tensor_grad(a->p[0][i]), tutti_tensor_grad(a->p[1][i])));
    }
}

static void pair_free(pair *a)
{
    for (int k = 0; k < 2; k++) {
        tutti_ddp_free(a->ddp[k]);
        tutti_optim_free(a->o[k]);
        tutti_module_free(a->net[k]);
    }
    OK(tutti_tensor_check());
}

static void expect_whole_state(pair *a)
{
    tutti_state_dict *want = NULL, *got = NULL;

    OK(tutti_optim_state_dict(a->o[0], &want));
    OK(tutti_zero_consolidate_state_dict(a->o[1], 0));
    if (a->t->rank == 0) {
        OK(tutti_zero_state_dict(a->o[1], &got));
        expect_same_state(want, got);
    }
    tutti_state_dict_free(want);
    tutti_state_dict_free(got);
}

/* Parameters of bucket b are rank b's, mod the size. After the step: buckets are those that it had. */
static void expect_owners(pair *a, int step)
{
    tutti_reducer *r = tutti_ddp_reducer(a->ddp[1]);

    assert_true(step < 2 || tutti_reducer_bucket_count(r) > 1); /* there is one at first */
    for (int b = 0; b < tutti_reducer_bucket_count(r); b++) {
        const tutti_grad_bucket bucket = tutti_reducer_bucket(r, b);

        for (int k = 0; k < bucket.n_params; k++)
            assert_int_equal(tutti_zero_owner(a->o[1], a->p[1][bucket.params[k]]), b % a->t->size);
    }
}

static void the_bits_of_steps_after_the_backward(tt_ctx *t)
{
    static const mode modes[] = {
        { .name = "adam" },
        { "sgd", .interleaved = true },
        { "adam", .views = true },
        { "sgd", .interleaved = true, .views = true },
        { "adam", .shard = true },
        { "adamw", .shard = true, .interleaved = true, .views = true },
        { "adam", .ddp_views = true, .interleaved = true },
        { "adam", .is_static = true },
        { "sgd", .is_static = true, .interleaved = true, .views = true, .ddp_views = true },
        { "sgd", .elsewhere = true },
        { "adam", .elsewhere = true, .interleaved = true, .views = true },
        { "adam", .accumulate = true, .interleaved = true },
    };

    for (size_t k = 0; k < sizeof modes / sizeof modes[0]; k++) {
        pair a;

        pair_make(&a, t, &modes[k]);
        for (int step = 0; step < 6; step++) {
            pair_step(&a, step);
            if (step == 0 || step == 4)
                expect_whole_state(&a);
            if (!modes[k].shard)
                expect_owners(&a, step);
        }
        pair_free(&a);
    }
}

/* Inputs of different lengths: all play along until the last one has run out. */
static void uneven_inputs(tt_ctx *t)
{
    static const mode m = { .name = "sgd", .interleaved = true };
    tutti_joinable joinable;
    tutti_join *join = NULL;
    tutti_status st = TUTTI_OK;
    pair a;

    pair_make(&a, t, &m);
    OK(tutti_ddp_joinable(a.ddp[1], NULL, &joinable));
    OK(tutti_join_begin(&joinable, 1, NULL, &join));
    for (int step = 0; step < 2 + t->rank && st == TUTTI_OK; step++)
        st = net_backward(t, a.ddp[1], a.o[1], step);
    OK(tutti_join_end(join, st));
    for (int i = 0; i < a.n; i++)
        expect_same_bits(t, a.p[1][i]);
    pair_free(&a);
}

/* ---- what is refused, and what fails ------------------------------------------------------------ */

static void wrong_modes_and_wrong_parameters(tt_ctx *t)
{
    tutti_zero_overlap_options zopts = TUTTI_ZERO_OVERLAP_OPTIONS;
    tutti_ddp_options opts = TUTTI_DDP_OPTIONS;
    tutti_optim *plain, *zero, *other;
    tutti_ddp *ddp = NULL;
    tutti_status st;
    numbers n, m;

    opts.group = t->group;
    numbers_make(&n, t);
    numbers_make(&m, t);
    plain = tutti_optim_create("sgd", n.p, NUMBERS, NULL, 0);
    zero = zero_of(t, "sgd", n.p, NUMBERS, NULL, 0, false);
    other = zero_of(t, "sgd", (tutti_tensor *[]){ n.p[0], m.p[0] }, 2, NULL, 0, false);
    opts.find_unused_parameters = true;
    OK(tutti_ddp_create(n.m, &opts, &ddp));
    REFUSED(tutti_zero_overlap_with_ddp(zero, ddp, NULL), TUTTI_E_UNSUPPORTED, "find_unused_parameters");
    tutti_ddp_free(ddp);
    opts.find_unused_parameters = false;
    OK(tutti_ddp_create(n.m, &opts, &ddp));
    REFUSED(tutti_zero_overlap_with_ddp(plain, ddp, NULL), TUTTI_E_ARG, "not divided");
    REFUSED(tutti_zero_overlap_with_ddp(zero, NULL, NULL), TUTTI_E_ARG, "the ddp is NULL");
    REFUSED(tutti_zero_overlap_with_ddp(other, ddp, NULL), TUTTI_E_ARG, "1 of the 2 parameters");
    zopts.interleaved = t->rank == 0;
    REFUSED(tutti_zero_overlap_with_ddp(zero, ddp, &zopts), TUTTI_E_MISMATCH, "different modes");
    zopts.size = t->rank == 0 ? 1 : sizeof zopts;
    st = tutti_zero_overlap_with_ddp(zero, ddp, &zopts);
    assert_int_equal(st, t->rank == 0 ? TUTTI_E_ARG : TUTTI_E_REMOTE);
    OK(tutti_zero_overlap_with_ddp(zero, ddp, NULL));
    REFUSED(tutti_zero_overlap_with_ddp(zero, ddp, NULL), TUTTI_E_STATE, "already");
    REFUSED(tutti_optim_add_param_group(zero, m.p, 1, NULL), TUTTI_E_STATE, "inside of the backward");
    n.ddp = ddp;
    OK(numbers_step(&n, (double[]){ 1, 2, 3, 4 }));
    (void)tutti_tensor_requires_grad_(n.p[1], false);
    assert_int_not_equal(numbers_step(&n, (double[]){ 1, 2, 3, 4 }), TUTTI_OK);
    (void)tutti_tensor_requires_grad_(n.p[1], true);
    OK(numbers_step(&n, (double[]){ 1, 2, 3, 4 }));
    tutti_optim_free(zero); /* before the ddp: its steps fail from now on */
    REFUSED(numbers_step(&n, (double[]){ 1, 2, 3, 4 }), TUTTI_E_STATE, "has no optimizer");
    tutti_optim_free(plain);
    tutti_optim_free(other);
    numbers_free(&n);
    numbers_free(&m);
}

/* A parameter is left out on rank 0 by mistake: an error of all, and ranks still have the same parameters. */
static void ranks_stay_together(tt_ctx *t)
{
    for (int interleaved = 0; interleaved < 2; interleaved++) {
        tutti_zero_overlap_options zopts = TUTTI_ZERO_OVERLAP_OPTIONS;
        tutti_ddp_options opts = TUTTI_DDP_OPTIONS;
        tutti_status st;
        tutti_optim *o;
        numbers n;

        opts.bucket_cap_bytes = 4;
        numbers_wrap(&n, t, &opts);
        o = zero_of(t, "sgd", n.p, NUMBERS, NULL, 0, false);
        zopts.interleaved = interleaved;
        OK(tutti_zero_overlap_with_ddp(o, n.ddp, &zopts));
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
        tutti_ddp_free(n.ddp);
        n.ddp = NULL;
        tutti_optim_free(o);
        numbers_free(&n);
    }
}

enum { VICTIM = 1 };

static void a_rank_dies(tt_ctx *t)
{
    tutti_zero_overlap_options zopts = TUTTI_ZERO_OVERLAP_OPTIONS;
    tutti_ddp_options opts = TUTTI_DDP_OPTIONS;
    tutti_optim *o;
    numbers n;

    opts.bucket_cap_bytes = 4;
    zopts.interleaved = true;
    numbers_wrap(&n, t, &opts);
    o = zero_of(t, "adam", n.p, NUMBERS, NULL, 0, true);
    OK(tutti_zero_overlap_with_ddp(o, n.ddp, &zopts));
    for (int step = 0; step < 2; step++)
        OK(numbers_step(&n, (double[]){ 1, 2, 3, 4 }));
    REFUSED(step_with_a_death(&n, VICTIM), TUTTI_E_PEER, "rank 1");
    numbers_free(&n);
    tutti_optim_free(o);
}

int main(void)
{
    static const tt_test tests[] = {
        TT_TEST(the_bits_of_steps_after_the_backward, .ranks = 1),
        TT_TEST(the_bits_of_steps_after_the_backward, .ranks = 2, .transports = "shm,tcp,threads", .limit_ms = 60000),
        TT_TEST(the_bits_of_steps_after_the_backward, .ranks = 4, .transports = "shm,threads-tcp", .limit_ms = 60000),
        TT_TEST(uneven_inputs, .ranks = 3, .transports = "shm,tcp"),
        TT_TEST(wrong_modes_and_wrong_parameters, .ranks = 2, .transports = "shm,tcp"),
        TT_TEST(ranks_stay_together, .ranks = 3, .transports = "shm,tcp,threads"),
        TT_TEST(a_rank_dies, .ranks = 3, .transports = "shm,tcp", .dies = VICTIM),
    };

    return tt_main(tests, sizeof tests / sizeof tests[0]);
}
