/* SPDX-License-Identifier: BSD-3-Clause
 *
 * transformer.c - embeddings, blocks of causal attention and two linear layers, a head; forward and backward.
 *
 * Rows are positions of all sequences of the batch, one after the other. A block is
 *     x += proj(attention(qkv(norm(x))));  x += down(gelu(up(norm(x)))) */
#include "transformer.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { HEAD = WIDTH / HEADS, INNER = 4 * WIDTH };
/* Parameters of a layer, from 2 on; behind the layers the last norm and the head. */
enum { NORM1_G, NORM1_B, QKV_W, QKV_B, PROJ_W, PROJ_B, NORM2_G, NORM2_B, UP_W, UP_B, DOWN_W, DOWN_B };
enum { TOKENS, POSITIONS, FIRST_LAYER, NORM_G = FIRST_LAYER + LAYERS * PER_LAYER, NORM_B, HEAD_W };

/* What a layer's forward leaves for its backward: rows of each. */
typedef struct layer {
    float *in, *normed1, *stats1, *qkv, *weights, *mixed, *middle, *normed2, *stats2, *up, *act;
} layer;

struct transformer {
    int            batch, rows;
    parameter      params[N_PARAMS];
    layer          layers[LAYERS];
    float         *out, *normed, *stats, *probs; /* behind the layers */
    float         *d, *d2, *d_inner, *d_qkv;     /* gradients on the way back */
    float         *memory;
    int64_t        used; /* of it */
    const uint8_t *bytes;
};

/* ---- pieces ---- */

/* y = x w' + b */
static void linear(const float *x, const float *w, const float *b, float *y, int rows, int in, int out)
{
    int r, o, i;

    for (r = 0; r < rows; r++)
        for (o = 0; o < out; o++) {
            float sum = b != NULL ? b[o] : 0.0f;

            for (i = 0; i < in; i++)
                sum += x[r * in + i] * w[o * in + i];
            y[r * out + o] = sum;
        }
}

static void linear_back(const float *dy, const float *x, const float *w, float *dx, float *dw, float *db, int rows,
                        int in, int out)
{
    int r, o, i;

    memset(dx, 0, sizeof *dx * (size_t)(rows * in));
    for (r = 0; r < rows; r++)
        for (o = 0; o < out; o++) {
            const float d = dy[r * out + o];

            if (db != NULL)
                db[o] += d;
            for (i = 0; i < in; i++) {
                dx[r * in + i] += d * w[o * in + i];
                dw[o * in + i] += d * x[r * in + i];
            }
        }
}

/* Each row to mean 0 and variance 1, times g plus b; stats keeps mean and 1/deviation. */
static void norm(const float *x, const float *g, const float *b, float *y, float *stats, int rows)
{
    int r, i;

    for (r = 0; r < rows; r++, x += WIDTH, y += WIDTH, stats += 2) {
        float mean = 0.0f, var = 0.0f;

        for (i = 0; i < WIDTH; i++)
            mean += x[i] / WIDTH;
        for (i = 0; i < WIDTH; i++)
            var += (x[i] - mean) * (x[i] - mean) / WIDTH;
        stats[0] = mean;
        stats[1] = 1.0f / sqrtf(var + 1e-5f);
        for (i = 0; i < WIDTH; i++)
            y[i] = (x[i] - mean) * stats[1] * g[i] + b[i];
    }
}

/* Adds to dx, which has what goes past the norm. */
static void norm_back(const float *dy, const float *x, const float *g, const float *stats, float *dx, float *dg,
                      float *db, int rows)
{
    int r, i;

    for (r = 0; r < rows; r++, x += WIDTH, dy += WIDTH, dx += WIDTH, stats += 2) {
        float sum = 0.0f, dot = 0.0f;

        for (i = 0; i < WIDTH; i++) {
            const float n = (x[i] - stats[0]) * stats[1];

            dg[i] += dy[i] * n;
            db[i] += dy[i];
            sum += dy[i] * g[i] / WIDTH;
            dot += dy[i] * g[i] * n / WIDTH;
        }
        for (i = 0; i < WIDTH; i++)
            dx[i] += (dy[i] * g[i] - sum - (x[i] - stats[0]) * stats[1] * dot) * stats[1];
    }
}

/* One head of one sequence: queries, keys and values are columns of rows of 3 * WIDTH. */
static void attend(const float *qkv, float *weights, float *mixed)
{
    const float scale = 1.0f / sqrtf(HEAD);
    int         t, s, i;

    for (t = 0; t < CONTEXT; t++, weights += CONTEXT) {
        float most = -1e30f, sum = 0.0f;

        for (s = 0; s <= t; s++) {
            weights[s] = 0.0f;
            for (i = 0; i < HEAD; i++)
                weights[s] += qkv[t * 3 * WIDTH + i] * qkv[s * 3 * WIDTH + WIDTH + i] * scale;
            most = weights[s] > most ? weights[s] : most;
        }
        for (s = 0; s <= t; s++)
            sum += weights[s] = expf(weights[s] - most);
        for (i = 0; i < HEAD; i++)
            mixed[t * WIDTH + i] = 0.0f;
        for (s = 0; s <= t; s++) {
            weights[s] /= sum;
            for (i = 0; i < HEAD; i++)
                mixed[t * WIDTH + i] += weights[s] * qkv[s * 3 * WIDTH + 2 * WIDTH + i];
        }
    }
}

static void attend_back(const float *d_mixed, const float *qkv, const float *weights, float *d_qkv)
{
    const float scale = 1.0f / sqrtf(HEAD);
    int         t, s, i;

    for (t = 0; t < CONTEXT; t++, weights += CONTEXT) {
        float d_weights[CONTEXT], dot = 0.0f;

        for (s = 0; s <= t; s++) {
            d_weights[s] = 0.0f;
            for (i = 0; i < HEAD; i++) {
                d_weights[s] += d_mixed[t * WIDTH + i] * qkv[s * 3 * WIDTH + 2 * WIDTH + i];
                d_qkv[s * 3 * WIDTH + 2 * WIDTH + i] += d_mixed[t * WIDTH + i] * weights[s];
            }
            dot += d_weights[s] * weights[s];
        }
        for (s = 0; s <= t; s++) {
            const float d = weights[s] * (d_weights[s] - dot) * scale;

            for (i = 0; i < HEAD; i++) {
                d_qkv[t * 3 * WIDTH + i] += d * qkv[s * 3 * WIDTH + WIDTH + i];
                d_qkv[s * 3 * WIDTH + WIDTH + i] += d * qkv[t * 3 * WIDTH + i];
            }
        }
    }
}

static float gelu(float x, float *slope)
{
    const float u = 0.79788456f * (x + 0.044715f * x * x * x), t = tanhf(u);

    *slope = 0.5f * (1.0f + t) + 0.5f * x * (1.0f - t * t) * 0.79788456f * (1.0f + 3.0f * 0.044715f * x * x);
    return 0.5f * x * (1.0f + t);
}

/* ---- layers ---- */

static void layer_forward(const transformer *m, const layer *l, const parameter *p, float *x)
{
    const int rows = m->rows;
    float     slope;
    int       b, h, i;

    memcpy(l->in, x, sizeof *x * (size_t)(rows * WIDTH));
    norm(x, p[NORM1_G].value, p[NORM1_B].value, l->normed1, l->stats1, rows);
    linear(l->normed1, p[QKV_W].value, p[QKV_B].value, l->qkv, rows, WIDTH, 3 * WIDTH);
    for (b = 0; b < m->batch; b++)
        for (h = 0; h < HEADS; h++)
            attend(l->qkv + b * CONTEXT * 3 * WIDTH + h * HEAD, l->weights + (b * HEADS + h) * CONTEXT * CONTEXT,
                   l->mixed + b * CONTEXT * WIDTH + h * HEAD);
    linear(l->mixed, p[PROJ_W].value, p[PROJ_B].value, l->middle, rows, WIDTH, WIDTH);
    for (i = 0; i < rows * WIDTH; i++)
        l->middle[i] += x[i];
    norm(l->middle, p[NORM2_G].value, p[NORM2_B].value, l->normed2, l->stats2, rows);
    linear(l->normed2, p[UP_W].value, p[UP_B].value, l->up, rows, WIDTH, INNER);
    for (i = 0; i < rows * INNER; i++)
        l->act[i] = gelu(l->up[i], &slope);
    linear(l->act, p[DOWN_W].value, p[DOWN_B].value, x, rows, INNER, WIDTH);
    for (i = 0; i < rows * WIDTH; i++)
        x[i] += l->middle[i];
}

typedef struct way_back {
    float *const *grads;
    void (*ready)(void *ctx, int i);
    void *ctx;
} way_back;

static void done(const way_back *w, int first, int last)
{
    int i;

    for (i = last; i >= first; i--)
        w->ready(w->ctx, i);
}

/* m->d has the gradient of the output, and that of the input at the end. */
static void layer_backward(transformer *m, const layer *l, int first, const way_back *w)
{
    const parameter *p = m->params + first;
    float *const    *g = w->grads + first;
    const int        rows = m->rows;
    float            slope;
    int              i, b, h;

    linear_back(m->d, l->act, p[DOWN_W].value, m->d_inner, g[DOWN_W], g[DOWN_B], rows, INNER, WIDTH);
    done(w, first + DOWN_W, first + DOWN_B);
    for (i = 0; i < rows * INNER; i++) {
        gelu(l->up[i], &slope);
        m->d_inner[i] *= slope;
    }
    linear_back(m->d_inner, l->normed2, p[UP_W].value, m->d2, g[UP_W], g[UP_B], rows, WIDTH, INNER);
    done(w, first + UP_W, first + UP_B);
    norm_back(m->d2, l->middle, p[NORM2_G].value, l->stats2, m->d, g[NORM2_G], g[NORM2_B], rows);
    done(w, first + NORM2_G, first + NORM2_B);
    linear_back(m->d, l->mixed, p[PROJ_W].value, m->d2, g[PROJ_W], g[PROJ_B], rows, WIDTH, WIDTH);
    done(w, first + PROJ_W, first + PROJ_B);
    memset(m->d_qkv, 0, sizeof *m->d_qkv * (size_t)(rows * 3 * WIDTH));
    for (b = 0; b < m->batch; b++)
        for (h = 0; h < HEADS; h++)
            attend_back(m->d2 + b * CONTEXT * WIDTH + h * HEAD, l->qkv + b * CONTEXT * 3 * WIDTH + h * HEAD,
                        l->weights + (b * HEADS + h) * CONTEXT * CONTEXT,
                        m->d_qkv + b * CONTEXT * 3 * WIDTH + h * HEAD);
    linear_back(m->d_qkv, l->normed1, p[QKV_W].value, m->d2, g[QKV_W], g[QKV_B], rows, WIDTH, 3 * WIDTH);
    done(w, first + QKV_W, first + QKV_B);
    norm_back(m->d2, l->in, p[NORM1_G].value, l->stats1, m->d, g[NORM1_G], g[NORM1_B], rows);
    done(w, first + NORM1_G, first + NORM1_B);
}

/* ---- the model ---- */

static int byte_of(const transformer *m, int row, int next)
{
    return m->bytes[row / CONTEXT * (CONTEXT + 1) + row % CONTEXT + next] % VOCAB;
}

float transformer_forward(transformer *m, const uint8_t *bytes)
{
    float *x = m->out, loss = 0.0f;
    int    r, i, l;

    m->bytes = bytes;
    for (r = 0; r < m->rows; r++)
        for (i = 0; i < WIDTH; i++)
            x[r * WIDTH + i] = m->params[TOKENS].value[byte_of(m, r, 0) * WIDTH + i] +
                               m->params[POSITIONS].value[r % CONTEXT * WIDTH + i];
    for (l = 0; l < LAYERS; l++)
        layer_forward(m, &m->layers[l], m->params + FIRST_LAYER + l * PER_LAYER, x);
    norm(x, m->params[NORM_G].value, m->params[NORM_B].value, m->normed, m->stats, m->rows);
    linear(m->normed, m->params[HEAD_W].value, NULL, m->probs, m->rows, WIDTH, VOCAB);
    for (r = 0; r < m->rows; r++) {
        float *p = m->probs + r * VOCAB, most = p[0], sum = 0.0f;

        for (i = 1; i < VOCAB; i++)
            most = p[i] > most ? p[i] : most;
        for (i = 0; i < VOCAB; i++)
            sum += p[i] = expf(p[i] - most);
        for (i = 0; i < VOCAB; i++)
            p[i] /= sum;
        loss -= logf(p[byte_of(m, r, 1)] + 1e-30f) / (float)m->rows;
    }
    return loss;
}

void transformer_backward(transformer *m, float *const *grads, void (*ready)(void *ctx, int i), void *ctx)
{
    const way_back w = { grads, ready, ctx };
    int            r, i, l;

    for (r = 0; r < m->rows; r++) { /* of the loss, in the place of the probabilities */
        m->probs[r * VOCAB + byte_of(m, r, 1)] -= 1.0f;
        for (i = 0; i < VOCAB; i++)
            m->probs[r * VOCAB + i] /= (float)m->rows;
    }
    linear_back(m->probs, m->normed, m->params[HEAD_W].value, m->d2, grads[HEAD_W], NULL, m->rows, WIDTH, VOCAB);
    done(&w, HEAD_W, HEAD_W);
    memset(m->d, 0, sizeof *m->d * (size_t)(m->rows * WIDTH));
    norm_back(m->d2, m->out, m->params[NORM_G].value, m->stats, m->d, grads[NORM_G], grads[NORM_B], m->rows);
    done(&w, NORM_G, NORM_B);
    for (l = LAYERS - 1; l >= 0; l--)
        layer_backward(m, &m->layers[l], FIRST_LAYER + l * PER_LAYER, &w);
    for (r = 0; r < m->rows; r++)
        for (i = 0; i < WIDTH; i++) {
            grads[TOKENS][byte_of(m, r, 0) * WIDTH + i] += m->d[r * WIDTH + i];
            grads[POSITIONS][r % CONTEXT * WIDTH + i] += m->d[r * WIDTH + i];
        }
    done(&w, TOKENS, POSITIONS);
}

/* ---- making one ---- */

static void describe(parameter *p, const char *name, int l, int64_t rows, int64_t columns)
{
    if (l >= 0)
        snprintf(p->name, sizeof p->name, "layer%d.%s", l, name);
    else
        snprintf(p->name, sizeof p->name, "%s", name);
    p->sizes[0] = rows;
    p->sizes[1] = columns;
    p->numel = rows * columns;
}

static void describe_all(parameter *p)
{
    static const struct { const char *name; int rows, columns; } each[PER_LAYER] = {
        { "norm1.weight", 1, WIDTH }, { "norm1.bias", 1, WIDTH }, { "qkv.weight", 3 * WIDTH, WIDTH },
        { "qkv.bias", 1, 3 * WIDTH }, { "proj.weight", WIDTH, WIDTH }, { "proj.bias", 1, WIDTH },
        { "norm2.weight", 1, WIDTH }, { "norm2.bias", 1, WIDTH }, { "up.weight", INNER, WIDTH },
        { "up.bias", 1, INNER }, { "down.weight", WIDTH, INNER }, { "down.bias", 1, WIDTH },
    };
    int i;

    describe(&p[TOKENS], "tokens", -1, VOCAB, WIDTH);
    describe(&p[POSITIONS], "positions", -1, CONTEXT, WIDTH);
    for (i = 0; i < LAYERS * PER_LAYER; i++)
        describe(&p[FIRST_LAYER + i], each[i % PER_LAYER].name, i / PER_LAYER, each[i % PER_LAYER].rows,
                 each[i % PER_LAYER].columns);
    describe(&p[NORM_G], "norm.weight", -1, 1, WIDTH);
    describe(&p[NORM_B], "norm.bias", -1, 1, WIDTH);
    describe(&p[HEAD_W], "head.weight", -1, VOCAB, WIDTH);
}

/* An array of the memory, behind those before it; without memory it is only counted. */
static void take(transformer *m, float **array, int64_t numel)
{
    *array = m->memory != NULL ? m->memory + m->used : NULL;
    m->used += numel;
}

static void cut(transformer *m)
{
    const int64_t rows = m->rows;
    int           i;

    m->used = 0;
    for (i = 0; i < N_PARAMS; i++)
        take(m, &m->params[i].value, m->params[i].numel);
    for (i = 0; i < LAYERS; i++) {
        layer *l = &m->layers[i];

        take(m, &l->in, rows * WIDTH);
        take(m, &l->normed1, rows * WIDTH);
        take(m, &l->stats1, rows * 2);
        take(m, &l->qkv, rows * 3 * WIDTH);
        take(m, &l->weights, rows * HEADS * CONTEXT);
        take(m, &l->mixed, rows * WIDTH);
        take(m, &l->middle, rows * WIDTH);
        take(m, &l->normed2, rows * WIDTH);
        take(m, &l->stats2, rows * 2);
        take(m, &l->up, rows * INNER);
        take(m, &l->act, rows * INNER);
    }
    take(m, &m->out, rows * WIDTH);
    take(m, &m->normed, rows * WIDTH);
    take(m, &m->stats, rows * 2);
    take(m, &m->probs, rows * VOCAB);
    take(m, &m->d, rows * WIDTH);
    take(m, &m->d2, rows * WIDTH);
    take(m, &m->d_inner, rows * INNER);
    take(m, &m->d_qkv, rows * 3 * WIDTH);
}

/* Weights drawn evenly around 0, gains 1, biases 0. */
static void draw(parameter *p, unsigned *seed)
{
    const float range = 0.5f / sqrtf((float)p->sizes[1]);
    const float rest = strstr(p->name, "norm") != NULL && strstr(p->name, "weight") != NULL ? 1.0f : 0.0f;
    int64_t     k;

    for (k = 0; k < p->numel; k++) {
        *seed = *seed * 1664525u + 1013904223u;
        p->value[k] = p->sizes[0] > 1 ? ((float)(*seed >> 8) / (float)(1 << 23) - 1.0f) * range : rest;
    }
}

transformer *transformer_create(int batch, unsigned seed)
{
    transformer *m = calloc(1, sizeof *m);
    int          i;

    if (m == NULL)
        return NULL;
    m->batch = batch;
    m->rows = batch * CONTEXT;
    describe_all(m->params);
    cut(m);
    m->memory = calloc((size_t)m->used, sizeof(float));
    if (m->memory == NULL) {
        free(m);
        return NULL;
    }
    cut(m);
    for (i = 0; i < N_PARAMS; i++)
        draw(&m->params[i], &seed);
    return m;
}

void transformer_free(transformer *m)
{
    if (m != NULL)
        free(m->memory);
    free(m);
}

parameter *transformer_parameters(transformer *m)
{
    return m->params;
}
