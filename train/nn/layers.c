/* SPDX-License-Identifier: BSD-3-Clause
 *
 * layers.c - the modules that come with the library.
 *
 * True    Parameters are drawn weight first, then bias, both uniform within 1/sqrt(fan_in), as
 *         PyTorch draws them: equal seeds and equal order of construction give equal networks. */
#include "nn/nn.h"

#include <limits.h>
#include <math.h>
#include <tutti/private.h>

/* What the forward functions here need to know; each uses its part. */
typedef struct layer {
    tutti_tensor *weight, *bias; /* borrowed: they are the module's parameters */
    tutti_conv2d_options conv;
    double p;
    int n; /* window of a pooling, dimension of a softmax */
} layer;

static tutti_module *layer_make(const char *kind, tutti_forward_fn forward, const layer *init)
{
    return tti_module_of(kind, forward, init, sizeof *init);
}

/* A parameter drawn uniformly within bound; borrowed from the module, NULL and kept on failure. */
static tutti_tensor *drawn(tutti_module *m, const char *name, int nd, const int64_t *shape,
                           double bound)
{
    tutti_tensor *t = tti_raw_empty(TUTTI_F32, nd, shape);
    const bool ok = t != NULL && tti_raw_uniform_(t, -bound, bound, NULL) == TUTTI_OK &&
                    tutti_module_register_parameter(m, name, t) == TUTTI_OK;

    tutti_tensor_release(t);
    return ok ? t : NULL;
}

/* Weight and bias of a new module. The weight's bound goes the way of Kaiming's rule with slope
 * sqrt(5), which is 1/sqrt(fan_in) again, rounded elsewhere. Frees m on failure. */
static tutti_module *draw_both(tutti_module *m, int nd, const int64_t *shape, bool bias)
{
    layer *l = tutti_module_context(m);
    double fan_in = 1.0;
    bool ok;

    if (m == NULL)
        return NULL;
    for (int d = 1; d < nd; d++)
        fan_in *= (double)shape[d];
    l->weight = drawn(m, "weight", nd, shape, sqrt(3.0) * (sqrt(2.0 / (1.0 + 5.0)) / sqrt(fan_in)));
    ok = l->weight != NULL;
    if (ok && bias) {
        l->bias = drawn(m, "bias", 1, shape, 1.0 / sqrt(fan_in));
        ok = l->bias != NULL;
    }
    if (!ok) {
        tutti_module_free(m);
        return NULL;
    }
    return m;
}

static tutti_tensor *linear_forward(tutti_module *m, tutti_tensor *x)
{
    const layer *l = tutti_module_context(m);

    return tutti_tensor_linear(x, l->weight, l->bias);
}

tutti_module *tutti_linear(int64_t in, int64_t out, bool bias)
{
    const int64_t shape[2] = { out, in };

    if (in < 1 || out < 1 || in > INT_MAX || out > INT_MAX || in * out > INT64_MAX / 16) {
        (void)tti_refuse(in < 1 || out < 1 ? TUTTI_E_ARG : TUTTI_E_UNSUPPORTED, "linear",
                         "%lld inputs, %lld outputs: 1 to %d of each are offered, and 2^59 weights",
                         (long long)in, (long long)out, INT_MAX);
        return NULL;
    }
    return draw_both(layer_make("linear", linear_forward, &(layer){ 0 }), 2, shape, bias);
}

static tutti_tensor *conv2d_forward(tutti_module *m, tutti_tensor *x)
{
    const layer *l = tutti_module_context(m);

    return tutti_tensor_conv2d(x, l->weight, l->bias, &l->conv);
}

tutti_module *tutti_conv2d(int64_t in, int64_t out, int kh, int kw,
                           const tutti_conv2d_options *opts)
{
    int64_t shape[4] = { out, 0, kh, kw };
    layer init = { 0 };

    if (!tti_conv2d_options_get("conv2d", opts, &init.conv))
        return NULL;
    if (in < 1 || out < 1 || kh < 1 || kw < 1 || in % init.conv.groups != 0 ||
        out % init.conv.groups != 0) {
        (void)tti_refuse(TUTTI_E_ARG, "conv2d",
                         "%lld channels in, %lld out, kernels of %d x %d, %d groups", (long long)in,
                         (long long)out, kh, kw, init.conv.groups);
        return NULL;
    }
    shape[1] = in / init.conv.groups;
    if (out > INT_MAX / kh / kw || shape[1] > INT_MAX / kh / kw / out) {
        (void)tti_refuse(TUTTI_E_UNSUPPORTED, "conv2d", "weight %s has more than %d elements",
                         tti_shape_str(4, shape).s, INT_MAX);
        return NULL;
    }
    return draw_both(layer_make("conv2d", conv2d_forward, &init), 4, shape, true);
}

static tutti_tensor *dropout_forward(tutti_module *m, tutti_tensor *x)
{
    const layer *l = tutti_module_context(m);

    return tutti_tensor_dropout(x, l->p, tutti_module_is_training(m));
}

static tutti_tensor *dropout2d_forward(tutti_module *m, tutti_tensor *x)
{
    const layer *l = tutti_module_context(m);

    return tutti_tensor_dropout2d(x, l->p, tutti_module_is_training(m));
}

static tutti_module *dropout_make(const char *kind, tutti_forward_fn forward, double p)
{
    if (p >= 0.0 && p <= 1.0)
        return layer_make(kind, forward, &(layer){ .p = p });
    (void)tti_refuse(TUTTI_E_ARG, kind, "the probability %g is not within 0..1", p);
    return NULL;
}

tutti_module *tutti_dropout(double p)
{
    return dropout_make("dropout", dropout_forward, p);
}

tutti_module *tutti_dropout2d(double p)
{
    return dropout_make("dropout2d", dropout2d_forward, p);
}

static tutti_tensor *max_pool2d_forward(tutti_module *m, tutti_tensor *x)
{
    const layer *l = tutti_module_context(m);

    return tutti_tensor_max_pool2d(x, l->n, l->n, NULL);
}

tutti_module *tutti_max_pool2d(int k)
{
    if (k >= 1)
        return layer_make("max_pool2d", max_pool2d_forward, &(layer){ .n = k });
    (void)tti_refuse(TUTTI_E_ARG, "max_pool2d", "a window of %d", k);
    return NULL;
}

static tutti_tensor *log_softmax_forward(tutti_module *m, tutti_tensor *x)
{
    const layer *l = tutti_module_context(m);

    return tutti_tensor_log_softmax(x, l->n);
}

tutti_module *tutti_log_softmax(int dim)
{
    return layer_make("log_softmax", log_softmax_forward, &(layer){ .n = dim });
}

static tutti_tensor *relu_forward(tutti_module *m, tutti_tensor *x)
{
    (void)m;
    return tutti_tensor_relu(x);
}

tutti_module *tutti_relu(void)
{
    return tutti_module_create("relu", relu_forward, NULL, NULL);
}

static tutti_tensor *flatten_forward(tutti_module *m, tutti_tensor *x)
{
    (void)m;
    return tutti_tensor_flatten(x, 1);
}

tutti_module *tutti_flatten(void)
{
    return tutti_module_create("flatten", flatten_forward, NULL, NULL);
}

tutti_module *tutti_sequential(void)
{
    return tutti_module_create("sequential", NULL, NULL, NULL);
}
