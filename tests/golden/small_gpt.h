/* SPDX-License-Identifier: BSD-3-Clause
 *
 * small_gpt.h - the GPT-2 of two layers that gpt.tsv is about: parameters and batches by formula. */
#ifndef GOLDEN_SMALL_GPT_H
#define GOLDEN_SMALL_GPT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <tutti/nn.h>
#include <tutti/optim.h>

#include "gradients.h"

#define SHAPE(...) ((const int64_t[]){ __VA_ARGS__ })

enum { V = 61, T = 16, B = 4, D = 32, HEADS = 4, LAYERS = 2, STEPS = 50, PARTS = 12, PARAMS = 28 };

/* Parameters in the order of the file: wte, wpe, of each layer those below, ln_f. */
enum { WTE, WPE, FIRST_LAYER, LN_F = FIRST_LAYER + LAYERS * PARTS };
enum { LN_1, C_ATTN = 2, ATTN_PROJ = 4, LN_2 = 6, C_FC = 8, MLP_PROJ = 10 };

typedef struct gpt {
    tutti_tensor *p[PARAMS];
} gpt;

/* Rows and columns (0: a vector) of the parameters of a layer. */
static const int layer_shapes[PARTS][2] = { { D, 0 },     { D, 0 },     { 3 * D, D }, { 3 * D, 0 },
                                            { D, D },     { D, 0 },     { D, 0 },     { D, 0 },
                                            { 4 * D, D }, { 4 * D, 0 }, { D, 4 * D }, { D, 0 } };

/* The parameter's name in the files. */
static inline void gpt_name(int k, size_t bytes, char *name_out)
{
    static const char *const parts[PARTS / 2] = { "ln_1", "attn.c_attn", "attn.c_proj",
                                                  "ln_2", "mlp.c_fc",    "mlp.c_proj" };
    const char *last = k % 2 == 0 ? "weight" : "bias";
    const int at = k - FIRST_LAYER;

    if (k < FIRST_LAYER)
        snprintf(name_out, bytes, "%s.weight", k == WTE ? "wte" : "wpe");
    else if (k >= LN_F)
        snprintf(name_out, bytes, "ln_f.%s", last);
    else
        snprintf(name_out, bytes, "h.%d.%s.%s", at / PARTS, parts[at % PARTS / 2], last);
}

/* 0.2 sin(0.37 i + k), and 1 more for the weights of norms; owned. */
static inline tutti_tensor *start(int k, tutti_dtype dtype, int rows, int cols, bool norm_weight)
{
    const int64_t shape[2] = { rows, cols };
    tutti_tensor *t = tutti_tensor_empty(TUTTI_F64, cols > 0 ? 2 : 1, shape);
    double *x = tutti_tensor_data(t);

    for (int64_t i = 0; i < tutti_tensor_numel(t); i++)
        x[i] = 0.2 * sin(0.37 * (double)i + k) + (norm_weight ? 1.0 : 0.0);
    t = tutti_tensor_to(tutti_tensor_to(t, TUTTI_F32), dtype);
    return tutti_tensor_retain(tutti_tensor_requires_grad_(t, true));
}

static inline void gpt_init(gpt *m, tutti_dtype dtype)
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

static inline tutti_tensor *norm(tutti_tensor *x, tutti_tensor *const *p)
{
    return tutti_tensor_layer_norm(x, 1, SHAPE(D), p[0], p[1], 1e-5);
}

static inline tutti_tensor *heads(tutti_tensor *x)
{
    return tutti_tensor_transpose(tutti_tensor_reshape(x, 4, SHAPE(-1, T, HEADS, D / HEADS)), 1, 2);
}

static inline tutti_tensor *layer(tutti_tensor *x, tutti_tensor *const *p)
{
    tutti_attention_options opts = TUTTI_ATTENTION_OPTIONS;
    tutti_tensor *h = norm(x, p + LN_1), *part[3];

    opts.is_causal = true;
    h = tutti_tensor_linear(h, p[C_ATTN], p[C_ATTN + 1]);
    assert_int_equal(tutti_tensor_chunk(h, 3, -1, part), TUTTI_OK);
    h = tutti_tensor_scaled_dot_product_attention(heads(part[0]), heads(part[1]), heads(part[2]),
                                                  &opts);
    h = tutti_tensor_reshape(tutti_tensor_transpose(h, 1, 2), 3, SHAPE(-1, T, D));
    x = tutti_tensor_add(x, tutti_tensor_linear(h, p[ATTN_PROJ], p[ATTN_PROJ + 1]));
    h = tutti_tensor_linear(norm(x, p + LN_2), p[C_FC], p[C_FC + 1]);
    h = tutti_tensor_linear(tutti_tensor_gelu_tanh(h), p[MLP_PROJ], p[MLP_PROJ + 1]);
    return tutti_tensor_add(x, h);
}

/* Rows first .. first + rows - 1 of the batch of a step, [rows, T + 1]: input, and one further on, what comes next. */
static inline tutti_tensor *gpt_tokens(int step, int first, int rows)
{
    int64_t data[B][T + 1];

    for (int b = 0; b < rows; b++)
        for (int t = 0; t <= T; t++)
            data[b][t] = (7 * step + 13 * (first + b) + t * t) % V;
    return tutti_tensor_from_data(data, TUTTI_I64, 2, SHAPE(rows, T + 1));
}

static inline tutti_tensor *gpt_scores(const gpt *m, tutti_tensor *tokens)
{
    tutti_tensor *x = tutti_tensor_embedding(m->p[WTE], tutti_tensor_narrow(tokens, 1, 0, T), -1);

    x = tutti_tensor_add(x, m->p[WPE]);
    for (int i = 0; i < LAYERS; i++)
        x = layer(x, m->p + FIRST_LAYER + i * PARTS);
    return tutti_tensor_linear(norm(x, m->p + LN_F), m->p[WTE], NULL);
}

static inline tutti_tensor *gpt_loss(tutti_tensor *scores, tutti_tensor *tokens)
{
    tutti_tensor *target = tutti_tensor_reshape(tutti_tensor_narrow(tokens, 1, 1, T), 1, SHAPE(-1));

    return tutti_tensor_cross_entropy(tutti_tensor_reshape(scores, 2, SHAPE(-1, V)), target, NULL);
}

/* The gradients of step 0, all of them, against the file of PyTorch's. */
static inline void gpt_check_gradients(const gpt *m, const char *path, const char *who, bool tell)
{
    char name[64];
    gradients g;

    gradients_open(&g, path);
    for (int k = 0; k < PARAMS; k++) {
        gpt_name(k, sizeof name, name);
        gradients_compare(&g, who, name, m->p[k]);
    }
    gradients_close(&g, who, tell);
}

/* AdamW as the file has it. */
static inline tutti_optim *gpt_adamw(gpt *m)
{
    tutti_adam_options opts = TUTTI_ADAMW_OPTIONS;

    opts.betas[1] = 0.95;
    opts.weight_decay = 0.1;
    return tutti_adamw(m->p, PARAMS, &opts);
}

#endif
