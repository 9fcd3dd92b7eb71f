/* SPDX-License-Identifier: BSD-3-Clause
 *
 * ddp_nets.c - two networks.
 *
 *   mnist  the tutorial's: two convolutions, two linear layers, dropout; SGD with momentum. 21,840 parameters
 *   gpt    a GPT-2 of 6 layers, width 384, 6 heads, 128 places, 256 tokens, the head tied to the embedding, no
 *          dropout; AdamW. 10.8 million parameters */
#include "ddp_nets.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define SHAPE(...) ((const int64_t[]){ __VA_ARGS__ })

/* ---- numbers by formula ----------------------------------------------------------------------- */

/* Number i of stream k, in [0, 1), a multiple of 2^-24. */
static double unit(uint64_t k, uint64_t i)
{
    uint64_t z = (k << 32 | i) + 0x9e3779b97f4a7c15u;

    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return (double)((z ^ z >> 31) >> 40) * 0x1p-24;
}

/* around + (2u - 1) bound, in f64, rounded once. */
static void fill(tutti_tensor *t, int k, double around, double bound)
{
    float *x = tutti_tensor_data(t);

    for (int64_t i = 0; i < tutti_tensor_numel(t); i++)
        x[i] = (float)(around + (2.0 * unit((uint64_t)k, (uint64_t)i) - 1.0) * bound);
}

/* Matrices by what goes into a row; vectors within 0.05 of 0, weights of norms of 1. */
static void fill_parameter(tutti_tensor *t, int k, bool is_norm_weight)
{
    const double row = (double)(tutti_tensor_numel(t) / tutti_tensor_size(t, 0));

    if (tutti_tensor_dim(t) > 1)
        fill(t, k, 0.0, 1.0 / sqrt(row));
    else
        fill(t, k, is_norm_weight ? 1.0 : 0.0, 0.05);
}

/* ---- the tutorial's --------------------------------------------------------------------------- */

enum { SIDE = 28, CLASSES = 10 };

static tutti_module *mnist_make(void)
{
    tutti_module *net = tutti_sequential();
    tutti_tensor *const *params;
    int n;

    tutti_module_add(net, "conv1", tutti_conv2d(1, 10, 5, 5, NULL));
    tutti_module_add(net, "pool1", tutti_max_pool2d(2));
    tutti_module_add(net, "relu1", tutti_relu());
    tutti_module_add(net, "conv2", tutti_conv2d(10, 20, 5, 5, NULL));
    tutti_module_add(net, "drop2", tutti_dropout2d(0.5));
    tutti_module_add(net, "pool2", tutti_max_pool2d(2));
    tutti_module_add(net, "relu2", tutti_relu());
    tutti_module_add(net, "flatten", tutti_flatten());
    tutti_module_add(net, "fc1", tutti_linear(320, 50, true));
    tutti_module_add(net, "relu3", tutti_relu());
    tutti_module_add(net, "drop3", tutti_dropout(0.5));
    tutti_module_add(net, "fc2", tutti_linear(50, CLASSES, true));
    tutti_module_add(net, "log_softmax", tutti_log_softmax(1));
    params = tutti_module_parameters(net, &n);
    for (int k = 0; k < n; k++)
        fill_parameter(params[k], k, false);
    return net;
}

static tutti_optim *mnist_optim(tutti_tensor *const *params, int n)
{
    tutti_sgd_options opts = TUTTI_SGD_OPTIONS;

    opts.lr = 0.01;
    opts.momentum = 0.5;
    return tutti_sgd(params, n, &opts);
}

static void mnist_batch(int number, int64_t n, tutti_tensor **x_out, tutti_tensor **target_out)
{
    tutti_tensor *x = tutti_tensor_empty(TUTTI_F32, 4, SHAPE(n, 1, SIDE, SIDE));
    tutti_tensor *target = tutti_tensor_empty(TUTTI_I64, 1, &n);
    int64_t *t = tutti_tensor_data(target);

    if (x == NULL || t == NULL)
        return;
    fill(x, 1000 + number, 1.0, 1.5);
    for (int64_t i = 0; i < n; i++)
        t[i] = (number + 3 * i) % CLASSES;
    *x_out = x;
    *target_out = target;
}

static tutti_tensor *mnist_loss(tutti_tensor *y, tutti_tensor *target)
{
    return tutti_tensor_nll_loss(y, target, NULL);
}

/* ---- the GPT ---------------------------------------------------------------------------------- */

enum { LAYERS = 6, D = 384, HEADS = 6, T = 128, V = 256, PARTS = 12 };
enum { WTE, WPE, FIRST_LAYER, LN_F = FIRST_LAYER + LAYERS * PARTS, PARAMS = LN_F + 2 };
enum { LN_1, C_ATTN = 2, ATTN_PROJ = 4, LN_2 = 6, C_FC = 8, MLP_PROJ = 10 };

typedef struct gpt {
    tutti_tensor *p[PARAMS]; /* the module's */
} gpt;

/* Rows and columns (0: a vector) of the parameters of a layer. */
static const int layer_shapes[PARTS][2] = { { D, 0 },     { D, 0 },     { 3 * D, D }, { 3 * D, 0 },
                                            { D, D },     { D, 0 },     { D, 0 },     { D, 0 },
                                            { 4 * D, D }, { 4 * D, 0 }, { D, 4 * D }, { D, 0 } };

static tutti_tensor *norm(tutti_tensor *x, tutti_tensor *const *p)
{
    return tutti_tensor_layer_norm(x, 1, SHAPE(D), p[0], p[1], 1e-5);
}

static tutti_tensor *heads(tutti_tensor *x)
{
    return tutti_tensor_transpose(tutti_tensor_view(x, 4, SHAPE(tutti_tensor_size(x, 0), T, HEADS, D / HEADS)), 1, 2);
}

static tutti_tensor *layer(tutti_tensor *x, tutti_tensor *const *p)
{
    tutti_attention_options opts = TUTTI_ATTENTION_OPTIONS;
    tutti_tensor *h = norm(x, p + LN_1), *part[3] = { NULL, NULL, NULL };

    opts.is_causal = true;
    h = tutti_tensor_linear(h, p[C_ATTN], p[C_ATTN + 1]);
    if (tutti_tensor_chunk(h, 3, -1, part) != TUTTI_OK)
        return NULL;
    h = tutti_tensor_scaled_dot_product_attention(heads(part[0]), heads(part[1]), heads(part[2]), &opts);
    h = tutti_tensor_reshape(tutti_tensor_transpose(h, 1, 2), 3, SHAPE(tutti_tensor_size(x, 0), T, D));
    x = tutti_tensor_add(x, tutti_tensor_linear(h, p[ATTN_PROJ], p[ATTN_PROJ + 1]));
    h = tutti_tensor_linear(norm(x, p + LN_2), p[C_FC], p[C_FC + 1]);
    h = tutti_tensor_linear(tutti_tensor_gelu_tanh(h), p[MLP_PROJ], p[MLP_PROJ + 1]);
    return tutti_tensor_add(x, h);
}

static tutti_tensor *gpt_forward(tutti_module *m, tutti_tensor *tokens)
{
    const gpt *g = tutti_module_context(m);
    tutti_tensor *x = tutti_tensor_embedding(g->p[WTE], tokens, -1);

    x = tutti_tensor_add(x, g->p[WPE]);
    for (int i = 0; i < LAYERS; i++)
        x = layer(x, g->p + FIRST_LAYER + i * PARTS);
    return tutti_tensor_linear(norm(x, g->p + LN_F), g->p[WTE], NULL);
}

/* Rows and columns of parameter k. */
static const int *shape_of(int k)
{
    static const int tables[2][2] = { { V, D }, { T, D } }, last[2] = { D, 0 };

    return k < FIRST_LAYER ? tables[k] : k < LN_F ? layer_shapes[(k - FIRST_LAYER) % PARTS] : last;
}

static bool is_norm_weight(int k)
{
    const int part = (k - FIRST_LAYER) % PARTS;

    return k == LN_F || (k >= FIRST_LAYER && k < LN_F && (part == LN_1 || part == LN_2));
}

static tutti_module *gpt_make(void)
{
    gpt *g = calloc(1, sizeof *g);
    tutti_module *m = g != NULL ? tutti_module_create("gpt", gpt_forward, g, free) : NULL;
    char name[] = "p00";

    for (int k = 0; m != NULL && k < PARAMS; k++) {
        const int *shape = shape_of(k);

        name[1] = (char)('0' + k / 10);
        name[2] = (char)('0' + k % 10);
        tutti_scope_begin();
        g->p[k] = tutti_tensor_empty(TUTTI_F32, shape[1] > 0 ? 2 : 1, SHAPE(shape[0], shape[1]));
        if (g->p[k] != NULL)
            fill_parameter(g->p[k], k, is_norm_weight(k));
        (void)tutti_module_register_parameter(m, name, g->p[k]); /* a failure is kept */
        tutti_scope_end();
    }
    return m;
}

static tutti_optim *gpt_optim(tutti_tensor *const *params, int n)
{
    tutti_adam_options opts = TUTTI_ADAMW_OPTIONS;

    opts.betas[1] = 0.95;
    opts.weight_decay = 0.1;
    return tutti_adamw(params, n, &opts);
}

static void gpt_batch(int number, int64_t n, tutti_tensor **x_out, tutti_tensor **target_out)
{
    tutti_tensor *x = tutti_tensor_empty(TUTTI_I64, 2, SHAPE(n, T));
    tutti_tensor *target = tutti_tensor_empty(TUTTI_I64, 1, SHAPE(n * T));
    int64_t *in = tutti_tensor_data(x), *to = tutti_tensor_data(target);

    for (int64_t i = 0; in != NULL && to != NULL && i < n * T; i++) {
        const int64_t b = i / T, t = i % T;

        in[i] = (7 * number + 13 * b + t * t) % V;
        to[i] = (7 * number + 13 * b + (t + 1) * (t + 1)) % V;
    }
    *x_out = x;
    *target_out = target;
}

static tutti_tensor *gpt_loss(tutti_tensor *y, tutti_tensor *target)
{
    return tutti_tensor_cross_entropy(tutti_tensor_view(y, 2, SHAPE(-1, V)), target, NULL);
}

/* ---- by name ---------------------------------------------------------------------------------- */

const bench_net *bench_net_of(const char *name)
{
    static const bench_net nets[] = {
        { "mnist", mnist_make, mnist_optim, mnist_batch, mnist_loss },
        { "gpt", gpt_make, gpt_optim, gpt_batch, gpt_loss },
    };

    for (size_t i = 0; i < sizeof nets / sizeof nets[0]; i++)
        if (strcmp(nets[i].name, name) == 0)
            return &nets[i];
    return NULL;
}
