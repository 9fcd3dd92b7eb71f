/* SPDX-License-Identifier: BSD-3-Clause
 *
 * gpt_ddp_golden_test.c
 * Goal    a small GPT-2 under a ddp, its batch divided among 1, 2 and 4 ranks, goes the way that PyTorch goes with
 *         the whole batch: losses to 1e-5 relative over 10 steps and 1e-4 over 50, each averaged gradient of the
 *         first step norm-wise to 1e-4; with gradients beside buckets, and in several of them.
 * Method  gpt.tsv, whose losses are means over rows of equal length: the mean of the ranks' losses is that of the
 *         batch; gpt_grads.safetensors, which has the whole batch's gradients, against those of every rank. */
#include "harness/harness.h"
#include "small_gpt.h"

#include <stdio.h>
#include <string.h>
#include <tutti/ddp.h>
#include <tutti/tutti.h>

#define OK(call)                                           \
    do {                                                   \
        if ((call) != TUTTI_OK)                            \
            fail_msg("%s: %s", #call, tutti_last_error()); \
    } while (0)

enum { FIRST = 10 };

/* The losses of the file, in f64: the way that both go, but for rounding. */
static void read_golden(double want[STEPS])
{
    FILE *file = fopen(GOLDEN_GPT, "r");
    int step, losses = 0;
    char line[4096];
    double single;

    assert_non_null(file);
    while (fgets(line, sizeof line, file) != NULL) {
        if (sscanf(line, "loss\t%d %lf", &step, &single) == 2) {
            assert_int_equal(step, losses);
            assert_int_equal(sscanf(line, "loss\t%*d %*f %lf", &want[losses++]), 1);
        }
    }
    fclose(file);
    assert_int_equal(losses, STEPS);
}

static void make(gpt *m, tutti_module **net_out)
{
    tutti_module *net = tutti_module_create("gpt", NULL, NULL, NULL);
    char name[16];

    gpt_init(m, TUTTI_F32);
    for (int k = 0; k < PARAMS; k++) {
        snprintf(name, sizeof name, "p%d", k);
        OK(tutti_module_register_parameter(net, name, m->p[k]));
    }
    OK(tutti_tensor_check());
    *net_out = net;
}

static void check_gradients(tt_ctx *t, const gpt *m)
{
    char who[32];

    snprintf(who, sizeof who, "%d ranks, rank %d", t->size, t->rank);
    gpt_check_gradients(m, GOLDEN_GRADS, who, t->rank == 0);
}

/* The mean loss over all ranks, before the step. */
static double step_together(tt_ctx *t, const gpt *m, tutti_ddp *ddp, tutti_optim *adamw, int step)
{
    const int rows = B / t->size;
    tutti_tensor *tokens, *scores, *loss;
    double value = NAN;

    tutti_scope_begin();
    tokens = gpt_tokens(step, rows * t->rank, rows);
    OK(tutti_ddp_before_forward(ddp));
    scores = gpt_scores(m, tokens);
    OK(tutti_ddp_after_forward(ddp, &scores, 1));
    loss = gpt_loss(scores, tokens);
    tutti_optim_zero_grad(adamw);
    OK(tutti_tensor_backward(loss));
    if (step == 0)
        check_gradients(t, m);
    OK(tutti_tensor_item(loss, &value));
    OK(tutti_optim_step(adamw));
    tutti_scope_end();
    OK(tutti_all_reduce(TUTTI_SPAN(&value, 1), TUTTI_AVG, t->group));
    return value;
}

static void train(tt_ctx *t, bool views, const double want[STEPS])
{
    tutti_ddp_options opts = TUTTI_DDP_OPTIONS;
    tutti_ddp *ddp = NULL;
    tutti_optim *adamw;
    tutti_module *net;
    gpt m;

    make(&m, &net);
    opts.group = t->group;
    opts.gradient_as_bucket_view = views;
    opts.bucket_cap_bytes = 20000; /* of 112 kB */
    OK(tutti_ddp_create(net, &opts, &ddp));
    adamw = gpt_adamw(&m);
    for (int step = 0; step < STEPS; step++) {
        const double got = step_together(t, &m, ddp, adamw, step);

        if (!(fabs(got - want[step]) <= (step < FIRST ? 1e-5 : 1e-4) * want[step]))
            fail_msg("%d ranks, step %d: loss %.9g instead of %.9g", t->size, step, got, want[step]);
    }
    tutti_optim_free(adamw);
    tutti_ddp_free(ddp);
    tutti_module_free(net);
    for (int k = 0; k < PARAMS; k++)
        tutti_tensor_release(m.p[k]);
}

static void goes_pytorchs_way(tt_ctx *t)
{
    double want[STEPS];

    read_golden(want);
    train(t, false, want);
    train(t, true, want);
    OK(tutti_tensor_check());
}

int main(void)
{
    static const tt_test tests[] = {
        TT_TEST(goes_pytorchs_way, .ranks = 1, .limit_ms = 90000),
        TT_TEST(goes_pytorchs_way, .ranks = 2, .transports = "shm,threads-tcp", .limit_ms = 90000),
        TT_TEST(goes_pytorchs_way, .ranks = 4, .limit_ms = 90000),
    };

    return tt_main(tests, sizeof tests / sizeof tests[0]);
}
