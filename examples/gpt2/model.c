/* SPDX-License-Identifier: BSD-3-Clause
 *
 * model.c - the layers of GPT-2, and its first parameters.
 *
 * How     bytes -> wte + wpe -> [x + attn(ln_1(x)), x + mlp(ln_2(x))] per layer -> ln_f -> lm_head, whose weight is
 *         that of wte. Names are those of PyTorch's GPT-2 ("transformer.h.0.attn.c_attn.weight"); weights of linear
 *         layers lie as torch.nn.Linear has them, [out, in].
 * True    Weights begin with deviation 0.02, those that lead back into the residual with 0.02 / sqrt(2 layers), so
 *         that the sum over layers does not grow with their number. Biases begin at zero. */
#include "model.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What the forward functions need to know. */
typedef struct part {
    model_shape shape;
    tutti_module *a, *b, *c, *d; /* children: see each forward */
    tutti_tensor *tied;          /* of the whole: the weight of wte, and of lm_head; borrowed */
} part;

static tutti_module *make(const char *kind, tutti_forward_fn forward, const model_shape *shape, part **part_out)
{
    part *p = calloc(1, sizeof *p);
    tutti_module *m;

    *part_out = NULL;
    if (p == NULL)
        return NULL;
    p->shape = *shape;
    m = tutti_module_create(kind, forward, p, free);
    if (m == NULL)
        free(p);
    else
        *part_out = p;
    return m;
}

/* ---- attention: a c_attn, b c_proj ------------------------------------------------------------- */

/* [B, T, width] as [B, heads, T, width / heads], a view. */
static tutti_tensor *heads_of(tutti_tensor *x, const model_shape *s)
{
    const int64_t shape[4] = { tutti_tensor_size(x, 0), tutti_tensor_size(x, 1), s->heads, s->width / s->heads };

    return tutti_tensor_transpose(tutti_tensor_view(x, 4, shape), 1, 2);
}

static tutti_tensor *attention_forward(tutti_module *m, tutti_tensor *x)
{
    tutti_attention_options opts = TUTTI_ATTENTION_OPTIONS;
    const part *p = tutti_module_context(m);
    const int64_t shape[3] = { tutti_tensor_size(x, 0), tutti_tensor_size(x, 1), p->shape.width };
    tutti_tensor *qkv[3] = { NULL, NULL, NULL }, *y;

    opts.is_causal = true;
    opts.dropout_p = tutti_module_is_training(m) ? p->shape.dropout : 0.0;
    if (tutti_tensor_chunk(tutti_forward(p->a, x), 3, -1, qkv) != TUTTI_OK)
        return NULL;
    y = tutti_tensor_scaled_dot_product_attention(heads_of(qkv[0], &p->shape), heads_of(qkv[1], &p->shape),
                                                  heads_of(qkv[2], &p->shape), &opts);
    y = tutti_tensor_reshape(tutti_tensor_transpose(y, 1, 2), 3, shape);
    return tutti_tensor_dropout(tutti_forward(p->b, y), p->shape.dropout, tutti_module_is_training(m));
}

static tutti_module *attention(const model_shape *s)
{
    part *p;
    tutti_module *m = make("attention", attention_forward, s, &p);

    if (m == NULL)
        return NULL;
    p->a = tutti_module_add(m, "c_attn", tutti_linear(s->width, 3 * s->width, true));
    p->b = tutti_module_add(m, "c_proj", tutti_linear(s->width, s->width, true));
    return m;
}

/* ---- a layer: a ln_1, b attn, c ln_2, d mlp ---------------------------------------------------- */

static tutti_module *mlp(const model_shape *s)
{
    tutti_module *m = tutti_sequential();

    tutti_module_add(m, "c_fc", tutti_linear(s->width, 4 * s->width, true));
    tutti_module_add(m, "act", tutti_gelu(true));
    tutti_module_add(m, "c_proj", tutti_linear(4 * s->width, s->width, true));
    tutti_module_add(m, "dropout", tutti_dropout(s->dropout));
    return m;
}

static tutti_tensor *layer_forward(tutti_module *m, tutti_tensor *x)
{
    const part *p = tutti_module_context(m);

    x = tutti_tensor_add(x, tutti_forward(p->b, tutti_forward(p->a, x)));
    return tutti_tensor_add(x, tutti_forward(p->d, tutti_forward(p->c, x)));
}

static tutti_module *layer(const model_shape *s)
{
    part *p;
    tutti_module *m = make("layer", layer_forward, s, &p);

    if (m == NULL)
        return NULL;
    p->a = tutti_module_add(m, "ln_1", tutti_layer_norm(1, &s->width, 1e-5));
    p->b = tutti_module_add(m, "attn", attention(s));
    p->c = tutti_module_add(m, "ln_2", tutti_layer_norm(1, &s->width, 1e-5));
    p->d = tutti_module_add(m, "mlp", mlp(s));
    return m;
}

/* ---- all layers: a wte, b wpe, c h, d ln_f ----------------------------------------------------- */

static tutti_tensor *transformer_forward(tutti_module *m, tutti_tensor *x)
{
    const part *p = tutti_module_context(m);
    tutti_tensor *places = tutti_tensor_arange(TUTTI_I64, 0.0, (double)tutti_tensor_size(x, 1), 1.0);

    x = tutti_tensor_add(tutti_forward(p->a, x), tutti_forward(p->b, places));
    x = tutti_tensor_dropout(x, p->shape.dropout, tutti_module_is_training(m));
    return tutti_forward(p->d, tutti_forward(p->c, x));
}

static tutti_module *transformer(const model_shape *s)
{
    part *p;
    tutti_module *m = make("transformer", transformer_forward, s, &p);
    char name[24];

    if (m == NULL)
        return NULL;
    p->a = tutti_module_add(m, "wte", tutti_embedding(MODEL_BYTES, s->width, -1));
    p->b = tutti_module_add(m, "wpe", tutti_embedding(s->context, s->width, -1));
    p->c = tutti_module_add(m, "h", tutti_sequential());
    for (int64_t i = 0; i < s->layers; i++) {
        snprintf(name, sizeof name, "%lld", (long long)i);
        tutti_module_add(p->c, name, layer(s));
    }
    p->d = tutti_module_add(m, "ln_f", tutti_layer_norm(1, &s->width, 1e-5));
    return m;
}

/* ---- the whole: a transformer ------------------------------------------------------------------ */

static tutti_tensor *gpt2_forward(tutti_module *m, tutti_tensor *x)
{
    const part *p = tutti_module_context(m);
    const int64_t rows[2] = { -1, p->shape.width };

    x = tutti_tensor_reshape(tutti_forward(p->a, x), 2, rows);
    return tutti_tensor_linear(x, p->tied, NULL);
}

static bool ends_with(const char *name, const char *end)
{
    const size_t n = strlen(name), k = strlen(end);

    return n >= k && strcmp(name + n - k, end) == 0;
}

static void draw(tutti_module *m, const model_shape *s)
{
    const bool recorded = tutti_set_grad_enabled(false);
    int n;
    tutti_tensor *const *params = tutti_module_parameters(m, &n);
    const char *const *names = tutti_module_parameter_names(m, &n);

    for (int i = 0; i < n; i++) {
        if (ends_with(names[i], "c_proj.weight"))
            (void)tutti_tensor_normal_(params[i], 0.0, 0.02 / sqrt(2.0 * (double)s->layers), NULL);
        else if (tutti_tensor_dim(params[i]) == 2)
            (void)tutti_tensor_normal_(params[i], 0.0, 0.02, NULL);
        else if (ends_with(names[i], ".bias"))
            (void)tutti_tensor_zero_(params[i]);
    }
    tutti_set_grad_enabled(recorded);
}

tutti_module *model_create(const model_shape *s)
{
    tutti_module *m, *head = tutti_module_create("lm_head", NULL, NULL, NULL);
    part *p;

    m = make("gpt2", gpt2_forward, s, &p);
    if (m == NULL || head == NULL) {
        tutti_module_free(m);
        tutti_module_free(head);
        return NULL;
    }
    p->a = tutti_module_add(m, "transformer", transformer(s));
    p->tied = tutti_module_parameter(m, "transformer.wte.weight");
    tutti_module_add(m, "lm_head", head);
    (void)tutti_module_register_parameter(head, "weight", p->tied);
    draw(m, s);
    return m;
}
