/* SPDX-License-Identifier: BSD-3-Clause
 *
 * model_test.c
 * Goal    the network has GPT-2's parameters, under its names and as large as they should begin; what it says about a
 *         byte depends on that byte and those before it; samples are drawn with the probabilities that it gives.
 * Method  names in full, moments of what was drawn, scores of texts that differ from one place on, bit by bit; networks
 *         that always say the same for samples. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "model.h"
#include "sample.h"

enum { LAYERS = 2, WIDTH = 48, CONTEXT = 24, DRAWS = 4000 };

static const model_shape shape = { .layers = LAYERS, .heads = 3, .width = WIDTH, .context = CONTEXT };

static tutti_module *made(void)
{
    tutti_module *net;

    tutti_manual_seed(1);
    net = model_create(&shape);
    assert_int_equal(tutti_tensor_check(), TUTTI_OK);
    assert_non_null(net);
    return net;
}

/* ---- parameters ------------------------------------------------------------------------------- */

static void names_are_gpt2s(void **state)
{
    static const char *const want[] = {
        "transformer.wte.weight",
        "transformer.wpe.weight",
        "transformer.h.0.ln_1.weight",
        "transformer.h.0.ln_1.bias",
        "transformer.h.0.attn.c_attn.weight",
        "transformer.h.0.attn.c_attn.bias",
        "transformer.h.0.attn.c_proj.weight",
        "transformer.h.0.attn.c_proj.bias",
        "transformer.h.0.ln_2.weight",
        "transformer.h.0.ln_2.bias",
        "transformer.h.0.mlp.c_fc.weight",
        "transformer.h.0.mlp.c_fc.bias",
        "transformer.h.0.mlp.c_proj.weight",
        "transformer.h.0.mlp.c_proj.bias",
        "transformer.h.1.ln_1.weight",
    };
    tutti_module *net = made();
    int n;
    const char *const *names = tutti_module_parameter_names(net, &n);

    (void)state;
    assert_int_equal(n, 2 + 12 * LAYERS + 2);
    for (size_t i = 0; i < sizeof want / sizeof want[0]; i++)
        assert_string_equal(names[i], want[i]);
    assert_string_equal(names[n - 1], "transformer.ln_f.bias");
    assert_ptr_equal(tutti_module_parameter(net, "lm_head.weight"),
                     tutti_module_parameter(net, "transformer.wte.weight")); /* one and the same */
    tutti_module_free(net);
}

/* Root of the mean square of a parameter's elements. */
static double size_of(tutti_module *net, const char *name)
{
    const tutti_tensor *t = tutti_module_parameter(net, name);
    const float *x = tutti_tensor_data(t);
    const int64_t n = tutti_tensor_numel(t);
    double sum = 0.0;

    for (int64_t i = 0; i < n; i++)
        sum += (double)x[i] * (double)x[i];
    return sqrt(sum / (double)n);
}

static void near(double got, double want)
{
    if (!(fabs(got - want) <= 0.1 * want))
        fail_msg("%g instead of about %g", got, want);
}

static void they_begin_small(void **state)
{
    tutti_module *net = made();

    (void)state;
    near(size_of(net, "transformer.wte.weight"), 0.02);
    near(size_of(net, "transformer.h.1.attn.c_attn.weight"), 0.02);
    near(size_of(net, "transformer.h.1.attn.c_proj.weight"), 0.02 / 2.0);
    near(size_of(net, "transformer.h.1.mlp.c_proj.weight"), 0.02 / 2.0);
    assert_true(size_of(net, "transformer.h.0.mlp.c_fc.bias") == 0.0);
    assert_true(size_of(net, "transformer.h.0.ln_1.weight") == 1.0);
    tutti_module_free(net);
}

/* ---- scores ----------------------------------------------------------------------------------- */

static void scores_of(tutti_module *net, const int64_t *tokens, float *scores_out)
{
    tutti_tensor *y;

    tutti_scope_begin();
    y = tutti_forward(net, tutti_tensor_from_data(tokens, TUTTI_I64, 2, (int64_t[]){ 1, CONTEXT }));
    assert_int_equal(tutti_tensor_check(), TUTTI_OK);
    assert_int_equal(tutti_tensor_numel(y), CONTEXT * MODEL_BYTES);
    memcpy(scores_out, tutti_tensor_data(y), CONTEXT * MODEL_BYTES * sizeof *scores_out);
    tutti_scope_end();
}

static void what_comes_later_does_not_matter(void **state)
{
    static float before[CONTEXT * MODEL_BYTES], after[CONTEXT * MODEL_BYTES];
    tutti_module *net = made();
    int64_t tokens[CONTEXT];

    (void)state;
    for (int i = 0; i < CONTEXT; i++)
        tokens[i] = (i * 37) % MODEL_BYTES;
    scores_of(net, tokens, before);
    for (int at = 0; at < CONTEXT; at++) {
        tokens[at] ^= 1;
        scores_of(net, tokens, after);
        assert_memory_equal(after, before, (size_t)at * MODEL_BYTES * sizeof after[0]);
        for (int i = at; i < CONTEXT; i++) /* and what came before does */
            assert_memory_not_equal(after + i * MODEL_BYTES, before + i * MODEL_BYTES, MODEL_BYTES * sizeof after[0]);
        tokens[at] ^= 1;
    }
    tutti_module_free(net);
}

/* ---- samples ---------------------------------------------------------------------------------- */

/* Says 'a' three times as often as 'b', and nothing else. */
static tutti_tensor *a_or_b(tutti_module *m, tutti_tensor *x)
{
    const int64_t n = tutti_tensor_numel(x), rows[2] = { n, MODEL_BYTES };
    tutti_tensor *y = tutti_tensor_full(TUTTI_F32, 2, rows, -1000.0);
    float *scores = tutti_tensor_data(y);

    (void)m;
    assert_true(n <= CONTEXT);
    for (int64_t i = 0; i < n; i++) {
        scores[i * MODEL_BYTES + 'a'] = (float)log(3.0) + 7.0f;
        scores[i * MODEL_BYTES + 'b'] = 7.0f;
    }
    return y;
}

/* How many of the bytes drawn are 'a'; all others are 'b'. */
static int drawn(double temperature, uint64_t seed, uint8_t text[DRAWS])
{
    const sample_options opts = { .context = CONTEXT, .temperature = temperature, .seed = seed };
    tutti_module *net = tutti_module_create("a_or_b", a_or_b, NULL, NULL);
    int n = 0;

    text[0] = '\n';
    assert_true(sample_text(net, &opts, text, 1, DRAWS));
    for (int i = 1; i < DRAWS; i++) {
        assert_true(text[i] == 'a' || text[i] == 'b');
        n += text[i] == 'a';
    }
    tutti_module_free(net);
    return n;
}

static void samples_are_as_likely_as_said(void **state)
{
    static uint8_t one[DRAWS], other[DRAWS];

    (void)state;
    near(drawn(1.0, 1, one), 0.75 * DRAWS);
    near(drawn(0.5, 1, one), 0.9 * DRAWS); /* 9 to 1 */
    assert_int_equal(drawn(0.0, 1, one), DRAWS - 1);
    drawn(1.0, 1, one);
    drawn(1.0, 1, other);
    assert_memory_equal(one, other, DRAWS);
    drawn(1.0, 2, other);
    assert_memory_not_equal(one, other, DRAWS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_are_gpt2s),
        cmocka_unit_test(they_begin_small),
        cmocka_unit_test(what_comes_later_does_not_matter),
        cmocka_unit_test(samples_are_as_likely_as_said),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
