/* SPDX-License-Identifier: BSD-3-Clause
 *
 * reducer_torture_test.c
 * Goal    whatever comes in whatever order: steps with and without sync, parameters that ranks use or not, hooks, rebuilt
 *         buckets, ranks that run out of inputs, ranks that forget a parameter or mark it twice; every gradient of every
 *         rank is what a plain loop says, and every mistake is an error on all ranks in its step.
 * Method  all ranks draw the same plan, and each computes what all of them have; small whole numbers, so that sums
 *         and averages over 2 and 4 ranks are exact. REDUCER_SEED and REDUCER_ROUNDS choose another plan, or a longer one. */
#include <stdlib.h>
#include <string.h>
#include "harness/harness.h"
#include <tutti/tutti.h>

#define OK(call)                                                                                       \
    do {                                                                                               \
        if ((call) != TUTTI_OK)                                                                        \
            fail_msg("seed %u, round %d, step %d: %s: %s", seed, round_no, step_no, #call, tutti_last_error());  \
    } while (0)

enum { MAX_PARAMS = 12, MAX_RANKS = 4, LARGEST = 300, STEPS = 12 };

typedef struct plan {
    uint64_t state; /* the same on all ranks */
    int      n, size;
    int      numel[MAX_PARAMS];
    bool     views, find_unused, hook;
    /* What gradients are: all elements of a rank's gradient have one value. */
    float    grad[MAX_RANKS][MAX_PARAMS];
    bool     used[MAX_RANKS][MAX_PARAMS]; /* since the last average */
} plan;

static _Thread_local unsigned seed;
static _Thread_local int      round_no, step_no;

static int draw(plan *p, int n)
{
    p->state ^= p->state << 13;
    p->state ^= p->state >> 7;
    p->state ^= p->state << 17;
    return (int)(p->state >> 11) & 0x7fffffff ? (int)((p->state >> 11) % (uint64_t)n) : 0;
}

static void set_grad(tutti_reducer *r, const plan *p, int i, float value)
{
    float *grad = tutti_reducer_grad(r, i);
    int    k;

    for (k = 0; k < p->numel[i]; k++)
        grad[k] = value;
}

static void expect_all(tutti_reducer *r, const plan *p, int rank)
{
    int i, k;

    for (i = 0; i < p->n; i++) {
        const float *grad = tutti_reducer_grad(r, i);

        for (k = 0; k < p->numel[i]; k++)
            if (grad[k] != p->grad[rank][i])
                fail_msg("seed %u, round %d, step %d: gradient %d[%d] is %g, not %g", seed, round_no, step_no, i, k,
                         (double)grad[k], (double)p->grad[rank][i]);
    }
}

static tutti_reducer *make(tt_ctx *t, plan *p)
{
    tutti_reducer_options opts = TUTTI_REDUCER_OPTIONS;
    tutti_reducer_param   params[MAX_PARAMS] = { { 0 } };
    tutti_reducer        *r = NULL;
    int                   i;

    p->n = 1 + draw(p, MAX_PARAMS);
    p->views = draw(p, 2);
    p->find_unused = draw(p, 2);
    p->hook = draw(p, 4) == 0;
    opts.group = t->group;
    opts.bucket_cap_bytes = 1 + draw(p, 2000);
    opts.gradient_as_bucket_view = p->views;
    opts.find_unused_parameters = p->find_unused;
    for (i = 0; i < p->n; i++) {
        p->numel[i] = draw(p, LARGEST);
        params[i] = (tutti_reducer_param){ .dtype = TUTTI_F32, .numel = p->numel[i],
                                           .grad = p->views ? NULL : tt_floats(t, (size_t)p->numel[i] + 1, 0.0f) };
    }
    OK(tutti_reducer_create(params, p->n, &opts, &r));
    if (p->hook)
        OK(tutti_reducer_register_builtin_comm_hook(r, TUTTI_HOOK_ALLREDUCE));
    memset(p->grad, 0, sizeof p->grad);
    memset(p->used, 0, sizeof p->used);
    return r;
}

/* Which parameters a rank uses in a step, in which order, with which values: drawn for all ranks by all. */
typedef struct part {
    int   order[MAX_PARAMS], n, unused[MAX_PARAMS], n_unused;
    float value[MAX_PARAMS];
    int   mistake; /* 0: none, 1: forgets the last one of order, 2: marks its first one twice */
} part;

static void draw_part(plan *p, part *of)
{
    int i, k, t;

    of->n = of->n_unused = of->mistake = 0;
    for (i = 0; i < p->n; i++) {
        of->value[i] = (float)(4 * (draw(p, 21) - 10));
        if (p->find_unused && draw(p, 3) == 0)
            of->unused[of->n_unused++] = i;
        else
            of->order[of->n++] = i;
    }
    for (i = of->n - 1; i > 0; i--) {
        k = draw(p, i + 1);
        t = of->order[i];
        of->order[i] = of->order[k];
        of->order[k] = t;
    }
}

static void zero_all(plan *p, tutti_reducer *r)
{
    int q, i;

    for (q = 0; q < p->size; q++)
        for (i = 0; i < p->n; i++)
            p->grad[q][i] = 0.0f;
    for (i = 0; i < p->n; i++)
        set_grad(r, p, i, 0.0f);
}

/* What the gradients of the ranks are after a step that goes well. */
static void model_step(plan *p, const part *parts, bool sync)
{
    float sum;
    int   q, i, k, users;

    for (q = 0; q < p->size; q++)
        for (k = 0; k < parts[q].n; k++) {
            p->grad[q][parts[q].order[k]] += parts[q].value[parts[q].order[k]];
            p->used[q][parts[q].order[k]] = true;
        }
    for (i = 0; i < p->n && sync; i++) {
        for (sum = 0.0f, users = 0, q = 0; q < p->size; q++) {
            sum += p->grad[q][i];
            users += p->used[q][i];
        }
        for (q = 0; q < p->size && (users > 0 || !p->find_unused); q++)
            p->grad[q][i] = sum / (float)p->size;
    }
    if (sync)
        memset(p->used, 0, sizeof p->used);
}

static tutti_status run_step(plan *p, tutti_reducer *r, const part *mine, bool sync)
{
    tutti_status st;
    int          k, n = mine->n - (mine->mistake == 1);

    tutti_reducer_set_sync(r, sync);
    OK(tutti_reducer_prepare_for_forward(r));
    OK(tutti_reducer_prepare_for_backward(r, mine->unused, mine->n_unused));
    for (k = 0; k < n; k++) {
        const int i = mine->order[k];
        float    *grad = tutti_reducer_grad(r, i);

        set_grad(r, p, i, p->numel[i] > 0 ? grad[0] + mine->value[i] : 0.0f);
        OK(tutti_reducer_mark_ready(r, i));
        if (mine->mistake == 2 && k == 0)
            assert_int_equal(tutti_reducer_mark_ready(r, i), TUTTI_E_STATE);
    }
    st = tutti_reducer_finish(r);
    return st;
}

/* A rank makes a mistake: all hear of it in this step. One of marking twice may come too late to be others' concern. */
static void bad_step(plan *p, tutti_reducer *r, part *parts, int rank)
{
    const int    culprit = draw(p, p->size);
    tutti_status st;

    parts[culprit].mistake = 1 + draw(p, 2);
    if (parts[culprit].n < 2) /* nothing to forget, or everything had begun */
        parts[culprit].mistake = 0;
    st = run_step(p, r, &parts[rank], true);
    if (parts[culprit].mistake == 0)
        assert_int_equal(st, TUTTI_OK);
    else
        assert_int_equal(st, rank == culprit ? TUTTI_E_STATE : TUTTI_E_REMOTE);
}

static void run_round(tt_ctx *t, plan *p)
{
    tutti_reducer *r = make(t, p);
    part           parts[MAX_RANKS];
    bool           sync;
    int            q;

    for (step_no = 0; step_no < STEPS; step_no++) {
        for (q = 0; q < p->size; q++)
            draw_part(p, &parts[q]);
        if (draw(p, 6) == 0) {
            bad_step(p, r, parts, t->rank);
            memset(p->used, 0, sizeof p->used);
            zero_all(p, r);
            continue;
        }
        if (draw(p, 2))
            zero_all(p, r);
        sync = draw(p, 3) > 0;
        OK(run_step(p, r, &parts[t->rank], sync));
        model_step(p, parts, sync);
        expect_all(r, p, t->rank);
        if (sync) /* averages of averages would not be whole numbers for long */
            zero_all(p, r);
    }
    tutti_reducer_free(r);
}

static void any_order_of_anything(tt_ctx *t)
{
    const char *text = getenv("REDUCER_SEED"), *rounds = getenv("REDUCER_ROUNDS");
    const int   n = rounds != NULL ? atoi(rounds) : 40;
    plan        p = { 0 };

    seed = text != NULL ? (unsigned)atoi(text) : 1u;
    p.state = UINT64_C(0x9e3779b97f4a7c15) * (seed + 1);
    p.size = t->size;
    for (round_no = 0; round_no < n; round_no++)
        run_round(t, &p);
}

int main(void)
{
    static const tt_test tests[] = {
        TT_TEST(any_order_of_anything, .ranks = 2, .transports = "shm,tcp,threads", .limit_ms = 120000),
        TT_TEST(any_order_of_anything, .ranks = 4, .transports = "shm", .hosts = 2, .limit_ms = 120000),
        TT_TEST(any_order_of_anything, .ranks = 4, .transports = "shm,threads-tcp", .limit_ms = 120000),
    };

    return tt_main(tests, sizeof tests / sizeof tests[0]);
}
