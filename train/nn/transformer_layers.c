/* SPDX-License-Identifier: BSD-3-Clause
 *
 * transformer_layers.c - the modules that transformers are made of.
 *
 * True    Parameters are registered in PyTorch's order and drawn in its order, which differs for attention:
 *         the child's weight and bias come first, then the projection's, and biases are set to zero. */
#include "nn/nn.h"

#include <limits.h>
#include <math.h>
#include <tutti/private.h>

/* What the forward functions here need to know; each uses its part. */
typedef struct layer {
    tutti_tensor *weight, *bias; /* borrowed: they are the module's parameters */
    double eps, dropout;
    int64_t padding;
    int nd, heads, dim;
    bool tanh, causal;
    tutti_module *out; /* a child */
    int64_t shape[TUTTI_MAX_DIMS];
} layer;

static tutti_module *make(const char *kind, tutti_forward_fn forward, const layer *init)
{
    return tti_module_of(kind, forward, init, sizeof *init);
}

/* A parameter of f32 filled with value; borrowed from the module, NULL and kept on failure. */
static tutti_tensor *filled(tutti_module *m, const char *name, int nd, const int64_t *shape,
                            double value)
{
    tutti_tensor *t = tti_raw_full(TUTTI_F32, nd, shape, value);
    const bool ok = t != NULL && tutti_module_register_parameter(m, name, t) == TUTTI_OK;

    tutti_tensor_release(t);
    return ok ? t : NULL;
}

/* ---- embedding ------------------------------------------------------------------------------------ */

static tutti_tensor *embedding_forward(tutti_module *m, tutti_tensor *x)
{
    const layer *l = tutti_module_context(m);

    return tutti_tensor_embedding(l->weight, x, l->padding);
}

static tutti_status draw_table(tutti_tensor *weight, int64_t padding)
{
    const bool was = tutti_set_grad_enabled(false);
    tutti_status st = tti_raw_normal_(weight, 0.0, 1.0, NULL);
    tutti_tensor *row = padding >= 0 ? tti_raw_select(weight, 0, padding) : NULL;

    if (st == TUTTI_OK && row != NULL)
        st = tti_raw_fill_(row, 0.0);
    tutti_tensor_release(row);
    tutti_set_grad_enabled(was);
    return st;
}

tutti_module *tutti_embedding(int64_t count, int64_t dim, int64_t padding_idx)
{
    const int64_t shape[2] = { count, dim };
    tutti_module *m;
    layer *l;

    if (count < 1 || dim < 1 || padding_idx >= count) {
        (void)tti_refuse(TUTTI_E_ARG, "embedding", "%lld rows of %lld, padding %lld",
                         (long long)count, (long long)dim, (long long)padding_idx);
        return NULL;
    }
    m = make("embedding", embedding_forward, &(layer){ .padding = padding_idx });
    l = tutti_module_context(m);
    if (m != NULL)
        l->weight = filled(m, "weight", 2, shape, 0.0);
    if (m != NULL && (l->weight == NULL || draw_table(l->weight, padding_idx) != TUTTI_OK)) {
        tutti_module_free(m);
        return NULL;
    }
    return m;
}

/* ---- norms ---------------------------------------------------------------------------------------- */

static tutti_tensor *layer_norm_forward(tutti_module *m, tutti_tensor *x)
{
    const layer *l = tutti_module_context(m);

    return tutti_tensor_layer_norm(x, l->nd, l->shape, l->weight, l->bias, l->eps);
}

static tutti_tensor *rms_norm_forward(tutti_module *m, tutti_tensor *x)
{
    const layer *l = tutti_module_context(m);

    return tutti_tensor_rms_norm(x, l->nd, l->shape, l->weight, l->eps);
}

static tutti_module *norm_make(const char *kind, tutti_forward_fn forward, int nd,
                               const int64_t *shape, double eps, bool bias)
{
    layer init = { .nd = nd, .eps = eps }, *l;
    tutti_module *m;
    int64_t numel;

    if (nd < 1 || tti_shape_check(kind, nd, shape, &numel) != TUTTI_OK) {
        if (nd < 1)
            (void)tti_refuse(TUTTI_E_ARG, kind, "a shape of %d dimensions", nd);
        return NULL;
    }
    for (int d = 0; d < nd; d++)
        init.shape[d] = shape[d];
    m = make(kind, forward, &init);
    l = tutti_module_context(m);
    if (m == NULL)
        return NULL;
    l->weight = filled(m, "weight", nd, shape, 1.0);
    if (l->weight != NULL && bias)
        l->bias = filled(m, "bias", nd, shape, 0.0);
    if (l->weight == NULL || (bias && l->bias == NULL)) {
        tutti_module_free(m);
        return NULL;
    }
    return m;
}

tutti_module *tutti_layer_norm(int nd, const int64_t *shape, double eps)
{
    return norm_make("layer_norm", layer_norm_forward, nd, shape, eps, true);
}

tutti_module *tutti_rms_norm(int nd, const int64_t *shape, double eps)
{
    return norm_make("rms_norm", rms_norm_forward, nd, shape, eps, false);
}

/* ---- attention ------------------------------------------------------------------------------------ */

/* [B, T, dim] as [B, heads, T, dim/heads], a view. */
static tutti_tensor *heads_of(tutti_tensor *x, const layer *l)
{
    const int64_t shape[4] = { tutti_tensor_size(x, 0), tutti_tensor_size(x, 1), l->heads,
                               l->dim / l->heads };

    return tutti_tensor_transpose(tutti_tensor_view(x, 4, shape), 1, 2);
}

/* Inside of a scope. */
static tutti_tensor *attend(tutti_module *m, const layer *l, tutti_tensor *x)
{
    tutti_attention_options opts = TUTTI_ATTENTION_OPTIONS;
    tutti_tensor *part[3] = { NULL, NULL, NULL };
    tutti_tensor *all = tutti_tensor_linear(x, l->weight, l->bias), *y;

    opts.is_causal = l->causal;
    opts.dropout_p = tutti_module_is_training(m) ? l->dropout : 0.0;
    if (tutti_tensor_chunk(all, 3, -1, part) != TUTTI_OK)
        return NULL;
    y = tutti_tensor_scaled_dot_product_attention(heads_of(part[0], l), heads_of(part[1], l),
                                                  heads_of(part[2], l), &opts);
    y = tutti_tensor_reshape(tutti_tensor_transpose(y, 1, 2), 3, x->shape);
    return tutti_forward(l->out, y);
}

static tutti_tensor *multihead_forward(tutti_module *m, tutti_tensor *x)
{
    const layer *l = tutti_module_context(m);
    tutti_tensor *y;

    if (x->nd != 3 || x->shape[2] != l->dim)
        return tti_poison(TUTTI_E_ARG, "multihead_attention", "input %s is not [B, T, %d]",
                          tti_shape_str(x->nd, x->shape).s, l->dim);
    tutti_scope_begin();
    y = tutti_tensor_retain(attend(m, l, x));
    tutti_scope_end();
    return tti_temp(y);
}

static bool multihead_options_get(int64_t dim, int heads, const tutti_multihead_options *opts,
                                  tutti_multihead_options *full_out)
{
    tutti_multihead_options o = TUTTI_MULTIHEAD_OPTIONS;

    if (opts != NULL)
        o = *opts;
    if (o.size != sizeof o || !(o.dropout >= 0.0 && o.dropout <= 1.0) || dim < 1 || heads < 1 ||
        dim > INT_MAX / 3 || dim % heads != 0) {
        (void)tti_refuse(TUTTI_E_ARG, "multihead_attention",
                         "dimension %lld in %d heads, dropout %g, options of %zu bytes"
                         "\n  next: begin with TUTTI_MULTIHEAD_OPTIONS",
                         (long long)dim, heads, o.dropout, o.size);
        return false;
    }
    *full_out = o;
    return true;
}

/* Parameters and child of a new module, drawn in PyTorch's order. */
static tutti_status multihead_build(tutti_module *m, layer *l, bool bias)
{
    const int64_t shape[2] = { 3 * (int64_t)l->dim, l->dim };
    const double bound = sqrt(3.0) * sqrt(2.0 / (double)(shape[0] + shape[1])); /* Xavier's rule */
    tutti_tensor *out_bias;

    l->weight = filled(m, "in_proj_weight", 2, shape, 0.0);
    if (l->weight != NULL && bias)
        l->bias = filled(m, "in_proj_bias", 1, shape, 0.0);
    if (l->weight == NULL || (bias && l->bias == NULL))
        return tti_refused();
    l->out = tutti_module_add(m, "out_proj", tutti_linear(l->dim, l->dim, bias));
    if (l->out == NULL)
        return tti_refused();
    out_bias = tutti_module_parameter(l->out, "bias");
    if (out_bias != NULL)
        (void)tti_raw_fill_(out_bias, 0.0);
    return tti_raw_uniform_(l->weight, -bound, bound, NULL);
}

tutti_module *tutti_multihead_attention(int64_t dim, int heads, const tutti_multihead_options *opts)
{
    tutti_multihead_options o;
    tutti_module *m;

    if (!multihead_options_get(dim, heads, opts, &o))
        return NULL;
    m = make(
        "multihead_attention", multihead_forward,
        &(layer){ .dim = (int)dim, .heads = heads, .dropout = o.dropout, .causal = o.is_causal });
    if (m != NULL && multihead_build(m, tutti_module_context(m), !o.no_bias) != TUTTI_OK) {
        tutti_module_free(m);
        return NULL;
    }
    return m;
}

/* ---- without parameters --------------------------------------------------------------------------- */

static tutti_tensor *gelu_forward(tutti_module *m, tutti_tensor *x)
{
    const layer *l = tutti_module_context(m);

    return l->tanh ? tutti_tensor_gelu_tanh(x) : tutti_tensor_gelu(x);
}

tutti_module *tutti_gelu(bool tanh)
{
    return make("gelu", gelu_forward, &(layer){ .tanh = tanh });
}

static tutti_tensor *silu_forward(tutti_module *m, tutti_tensor *x)
{
    (void)m;
    return tutti_tensor_silu(x);
}

tutti_module *tutti_silu(void)
{
    return tutti_module_create("silu", silu_forward, NULL, NULL);
}

static tutti_tensor *softmax_forward(tutti_module *m, tutti_tensor *x)
{
    const layer *l = tutti_module_context(m);

    return tutti_tensor_softmax(x, l->dim);
}

tutti_module *tutti_softmax(int dim)
{
    return make("softmax", softmax_forward, &(layer){ .dim = dim });
}
