/* SPDX-License-Identifier: BSD-3-Clause
 *
 * gpt_golden_test.c
 * Goal    a small GPT-2 trains here as it does in PyTorch, and modules are seeded alike.
 * Method  gpt.tsv against the same model here: parameters by formula, 50 steps of AdamW, in f32 and in f64.
 *         Losses in f32 to 1e-5 relative over 10 steps and 1e-4 over 50, in f64 to 1e-9; gradients of the
 *         first step by their norms and sums, and element by element against gpt_grads.safetensors: norm-wise 1e-4
 *         for each tensor. Every line of the file is compared, and each kind must be there. */
#include "small_gpt.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What a run came to: losses, and sum and norm of the gradients of the first step. */
typedef struct run {
    double loss[STEPS], sum[PARAMS], norm[PARAMS];
} run;

static void note_gradients(const gpt *m, run *r)
{
    for (int k = 0; k < PARAMS; k++) {
        tutti_tensor *g = tutti_tensor_to(tutti_tensor_grad(m->p[k]), TUTTI_F64);

        assert_int_equal(tutti_tensor_item(tutti_tensor_sum(g, NULL, 0, false), &r->sum[k]),
                         TUTTI_OK);
        assert_int_equal(tutti_tensor_item(tutti_tensor_norm(g, NULL, 0, false), &r->norm[k]),
                         TUTTI_OK);
    }
}

static void train(tutti_dtype dtype, run *r)
{
    tutti_optim *opt;
    gpt m;

    gpt_init(&m, dtype);
    opt = gpt_adamw(&m);
    for (int step = 0; step < STEPS; step++) {
        tutti_tensor *tokens, *loss;

        tutti_scope_begin();
        tokens = gpt_tokens(step, 0, B);
        loss = gpt_loss(gpt_scores(&m, tokens), tokens);
        tutti_optim_zero_grad(opt);
        if (tutti_tensor_backward(loss) != TUTTI_OK)
            fail_msg("%s", tutti_last_error());
        if (step == 0) {
            note_gradients(&m, r);
            gpt_check_gradients(&m, GOLDEN_GRADS, dtype == TUTTI_F32 ? "in f32" : "in f64", true);
        }
        assert_int_equal(tutti_optim_step(opt), TUTTI_OK);
        assert_int_equal(tutti_tensor_item(loss, &r->loss[step]), TUTTI_OK);
        tutti_scope_end();
    }
    tutti_optim_free(opt);
    for (int k = 0; k < PARAMS; k++)
        tutti_tensor_release(m.p[k]);
}

/* ---- the file --------------------------------------------------------------------------------- */

static void near(const char *what, double got, double want, double scale, double bound)
{
    if (!(fabs(got - want) <= bound * scale))
        fail_msg("%s: %.12g, PyTorch has %.12g, %.2e away", what, got, want,
                 fabs(got - want) / scale);
}

static void check_loss(const char *rest, const run *one, const run *two)
{
    double single, wide;
    int step;

    assert_int_equal(sscanf(rest, "%d %lf %lf", &step, &single, &wide), 3);
    assert_in_range(step, 0, STEPS - 1);
    near("loss in f32", one->loss[step], wide, wide, step < 10 ? 1e-5 : 1e-4);
    near("loss in f32", one->loss[step], single, single, step < 10 ? 1e-5 : 1e-4);
    near("loss in f64", two->loss[step], wide, wide, 1e-9);
}

static void check_gradient(const char *rest, int k, const run *one, const run *two)
{
    double sum, size;
    char name[64];

    assert_int_equal(sscanf(rest, "%63s %lf %lf", name, &sum, &size), 3);
    near(name, one->norm[k], size, size, 1e-5);
    near(name, two->norm[k], size, size, 1e-9);
    near(name, one->sum[k], sum, size, 1e-4);
    near(name, two->sum[k], sum, size, 1e-9);
}

/* The losses and gradients of the file; how many of each. */
static void compare(const run *one, const run *two, int *losses_out, int *gradients_out)
{
    FILE *file = fopen(GOLDEN_GPT, "r");
    char line[4096];

    assert_non_null(file);
    *losses_out = *gradients_out = 0;
    while (fgets(line, sizeof line, file) != NULL) {
        if (strncmp(line, "loss\t", 5) == 0) {
            check_loss(line + 5, one, two);
            ++*losses_out;
        } else if (strncmp(line, "grad\t", 5) == 0) {
            assert_in_range(*gradients_out, 0, PARAMS - 1);
            check_gradient(line + 5, *gradients_out, one, two);
            ++*gradients_out;
        }
    }
    fclose(file);
}

static void a_small_gpt_goes_pytorchs_way(void **state)
{
    static run one, two;
    int losses, lines;

    (void)state;
    train(TUTTI_F32, &one);
    train(TUTTI_F64, &two);
    compare(&one, &two, &losses, &lines);
    assert_int_equal(losses, STEPS);
    assert_int_equal(lines, PARAMS);
    assert_int_equal(tutti_tensor_check(), TUTTI_OK);
}

/* ---- seeds ------------------------------------------------------------------------------------ */

/* The values of a line against those of the parameter that it names. Vectorised builds of PyTorch take
 * their own cosine, so normal numbers may differ in the last places. */
static void check_values(tutti_module *all, char *rest)
{
    char *name = strsep(&rest, "\t");
    const tutti_tensor *t = tutti_module_parameter(all, name);
    const float *x = tutti_tensor_data(t);
    int64_t n = 0;

    assert_non_null(t);
    for (char *word; (word = strsep(&rest, " \n")) != NULL && *word != '\0'; n++) {
        assert_true(n < tutti_tensor_numel(t));
        near(name, (double)x[n], strtod(word, NULL), 1.0, 1e-6);
    }
    assert_true(n == tutti_tensor_numel(t));
}

static void modules_are_seeded_alike(void **state)
{
    FILE *file = fopen(GOLDEN_GPT, "r");
    tutti_module *all = tutti_sequential();
    char line[8192];
    int lines = 0, n;

    (void)state;
    assert_non_null(file);
    tutti_manual_seed(1234);
    tutti_module_add(all, "embedding", tutti_embedding(7, 5, 2));
    tutti_module_add(all, "attention", tutti_multihead_attention(8, 2, NULL));
    tutti_module_add(all, "norm", tutti_layer_norm(2, SHAPE(3, 2), 1e-5));
    (void)tutti_module_parameters(all, &n);
    while (fgets(line, sizeof line, file) != NULL)
        if (strncmp(line, "init\t", 5) == 0) {
            check_values(all, line + 5);
            lines++;
        }
    assert_int_equal(lines, n);
    fclose(file);
    tutti_module_free(all);
    assert_int_equal(tutti_tensor_check(), TUTTI_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_small_gpt_goes_pytorchs_way),
        cmocka_unit_test(modules_are_seeded_alike),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
