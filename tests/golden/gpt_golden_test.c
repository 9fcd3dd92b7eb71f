/* SPDX-License-Identifier: BSD-3-Clause
 *
 * gpt_golden_test.c
 * Goal    a small GPT-2 trains here as it does in PyTorch, and modules are seeded alike.
 * Method  gpt.tsv against the same model here: parameters by formula, 50 steps of AdamW, in f32 and in f64.
 *         Losses in f32 to 1e-5 relative over 10 steps and 1e-4 over 50, in f64 to 1e-9; gradients of the
 *         first step by their norms. Every line of the file is compared, and each kind must be there. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tutti/nn.h>
#include <tutti/optim.h>

#define SHAPE(...) ((const int64_t[]){ __VA_ARGS__ })

enum { V = 61, T = 16, B = 4, D = 32, HEADS = 4, LAYERS = 2, STEPS = 50, PARTS = 12, PARAMS = 28 };

/* Parameters in the order of the file: wte, wpe, of each layer those below, ln_f. */
enum { WTE, WPE, FIRST_LAYER, LN_F = FIRST_LAYER + LAYERS * PARTS };
enum { LN_1, C_ATTN = 2, ATTN_PROJ = 4, LN_2 = 6, C_FC = 8, MLP_PROJ = 10 };

typedef struct gpt {
    tutti_tensor *p[PARAMS];
} gpt;

/* ---- the model -------------------------------------------------------------------------------- */

/* Rows and columns (0: a vector) of the parameters of a layer. */
static const int layer_shapes[PARTS][2] = { { D, 0 },     { D, 0 },     { 3 * D, D }, { 3 * D, 0 },
                                            { D, D },     { D, 0 },     { D, 0 },     { D, 0 },
                                            { 4 * D, D }, { 4 * D, 0 }, { D, 4 * D }, { D, 0 } };

/* 0.2 sin(0.37 i + k), and 1 more for the weights of norms; owned. */
static tutti_tensor *start(int k, tutti_dtype dtype, int rows, int cols, bool norm_weight)
{
    const int64_t shape[2] = { rows, cols };
    tutti_tensor *t = tutti_tensor_empty(TUTTI_F64, cols > 0 ? 2 : 1, shape);
    double *x = tutti_tensor_data(t);

    for (int64_t i = 0; i < tutti_tensor_numel(t); i++)
        x[i] = 0.2 * sin(0.37 * (double)i + k) + (norm_weight ? 1.0 : 0.0);
    t = tutti_tensor_to(tutti_tensor_to(t, TUTTI_F32), dtype);
    return tutti_tensor_retain(tutti_tensor_requires_grad_(t, true));
}

static void gpt_init(gpt *m, tutti_dtype dtype)
{
    tutti_scope_begin();
    m->p[WTE] = start(WTE, dtype, V, D, false);
    m->p[WPE] = start(WPE, dtype, T, D, false);
    for (int i = 0; i < LAYERS * PARTS; i++) {
        const int *shape = layer_shapes[i % PARTS], k = FIRST_LAYER + i;

        m->p[k] = start(k, dtype, shape[0], shape[1], i % PARTS == LN_1 || i % PARTS == LN_2);
    }
    m->p[LN_F] = start(LN_F, dtype, D, 0, true);
    m->p[LN_F + 1] = start(LN_F + 1, dtype, D, 0, false);
    tutti_scope_end();
}

static tutti_tensor *norm(tutti_tensor *x, tutti_tensor *const *p)
{
    return tutti_tensor_layer_norm(x, 1, SHAPE(D), p[0], p[1], 1e-5);
}

static tutti_tensor *heads(tutti_tensor *x)
{
    return tutti_tensor_transpose(tutti_tensor_reshape(x, 4, SHAPE(B, T, HEADS, D / HEADS)), 1, 2);
}

static tutti_tensor *layer(tutti_tensor *x, tutti_tensor *const *p)
{
    tutti_attention_options opts = TUTTI_ATTENTION_OPTIONS;
    tutti_tensor *h = norm(x, p + LN_1), *part[3];

    opts.is_causal = true;
    h = tutti_tensor_linear(h, p[C_ATTN], p[C_ATTN + 1]);
    assert_int_equal(tutti_tensor_chunk(h, 3, -1, part), TUTTI_OK);
    h = tutti_tensor_scaled_dot_product_attention(heads(part[0]), heads(part[1]), heads(part[2]),
                                                  &opts);
    h = tutti_tensor_reshape(tutti_tensor_transpose(h, 1, 2), 3, SHAPE(B, T, D));
    x = tutti_tensor_add(x, tutti_tensor_linear(h, p[ATTN_PROJ], p[ATTN_PROJ + 1]));
    h = tutti_tensor_linear(norm(x, p + LN_2), p[C_FC], p[C_FC + 1]);
    h = tutti_tensor_linear(tutti_tensor_gelu_tanh(h), p[MLP_PROJ], p[MLP_PROJ + 1]);
    return tutti_tensor_add(x, h);
}

static tutti_tensor *loss_of(const gpt *m, int step)
{
    int64_t data[B][T + 1];
    tutti_tensor *tokens, *x, *target;

    for (int b = 0; b < B; b++)
        for (int t = 0; t <= T; t++)
            data[b][t] = (7 * step + 13 * b + t * t) % V;
    tokens = tutti_tensor_from_data(data, TUTTI_I64, 2, SHAPE(B, T + 1));
    target = tutti_tensor_reshape(tutti_tensor_narrow(tokens, 1, 1, T), 1, SHAPE(-1));
    x = tutti_tensor_embedding(m->p[WTE], tutti_tensor_narrow(tokens, 1, 0, T), -1);
    x = tutti_tensor_add(x, m->p[WPE]);
    for (int i = 0; i < LAYERS; i++)
        x = layer(x, m->p + FIRST_LAYER + i * PARTS);
    x = tutti_tensor_linear(norm(x, m->p + LN_F), m->p[WTE], NULL);
    return tutti_tensor_cross_entropy(tutti_tensor_reshape(x, 2, SHAPE(-1, V)), target, NULL);
}

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
    tutti_adam_options opts = TUTTI_ADAMW_OPTIONS;
    tutti_optim *opt;
    gpt m;

    gpt_init(&m, dtype);
    opts.betas[1] = 0.95;
    opts.weight_decay = 0.1;
    opt = tutti_adamw(m.p, PARAMS, &opts);
    for (int step = 0; step < STEPS; step++) {
        tutti_tensor *loss;

        tutti_scope_begin();
        loss = loss_of(&m, step);
        tutti_optim_zero_grad(opt);
        if (tutti_tensor_backward(loss) != TUTTI_OK)
            fail_msg("%s", tutti_last_error());
        if (step == 0)
            note_gradients(&m, r);
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
    int losses, gradients;

    (void)state;
    train(TUTTI_F32, &one);
    train(TUTTI_F64, &two);
    compare(&one, &two, &losses, &gradients);
    assert_int_equal(losses, STEPS);
    assert_int_equal(gradients, PARAMS);
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
