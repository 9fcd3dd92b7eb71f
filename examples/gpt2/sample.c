/* SPDX-License-Identifier: BSD-3-Clause
 *
 * sample.c - a byte drawn, put behind the others, and so on. Of what was said before, the network sees one context; for
 * each byte it computes all of it again. */
#include "sample.h"

#include <math.h>
#include <tutti/tensor.h>

#include "examples/common/say.h"
#include "model.h"

static uint8_t likeliest(const float *scores)
{
    int best = 0;

    for (int c = 1; c < MODEL_BYTES; c++)
        if (scores[c] > scores[best])
            best = c;
    return (uint8_t)best;
}

/* The byte at which the sum of probabilities reaches a random part of 1. */
static uint8_t draw(const float *scores, double temperature, tutti_generator *gen)
{
    const double most = (double)scores[likeliest(scores)];
    double weight[MODEL_BYTES], sum = 0.0, left;
    int c = 0;

    for (int i = 0; i < MODEL_BYTES; i++)
        sum += weight[i] = exp(((double)scores[i] - most) / temperature);
    left = (double)(tutti_generator_random64(gen) >> 11) * 0x1p-53 * sum;
    while (c < MODEL_BYTES - 1 && left >= weight[c])
        left -= weight[c++];
    return (uint8_t)c;
}

/* The byte behind text[at - 1]. */
static bool next(tutti_module *net, const sample_options *opts, tutti_generator *gen, uint8_t *text, int64_t at)
{
    const int64_t n = at < opts->context ? at : opts->context, shape[2] = { 1, n };
    tutti_tensor *x = tutti_tensor_empty(TUTTI_I64, 2, shape), *y;
    const float *scores;

    TRY(tutti_tensor_check());
    for (int64_t i = 0; i < n; i++)
        ((int64_t *)tutti_tensor_data(x))[i] = text[at - n + i];
    y = tutti_forward(net, x);
    TRY(tutti_tensor_check());
    scores = (const float *)tutti_tensor_data(y) + (n - 1) * MODEL_BYTES;
    text[at] = opts->temperature > 0.0 ? draw(scores, opts->temperature, gen) : likeliest(scores);
    return true;
}

bool sample_text(tutti_module *net, const sample_options *opts, uint8_t *text, int64_t prompt, int64_t n)
{
    const bool recorded = tutti_set_grad_enabled(false);
    tutti_generator *gen = tutti_generator_create(opts->seed);
    bool ok = gen != NULL;

    tutti_module_train(net, false);
    for (int64_t at = prompt; at < n && ok; at++) {
        tutti_scope_begin();
        ok = next(net, opts, gen, text, at);
        tutti_scope_end();
    }
    tutti_module_train(net, true);
    tutti_generator_free(gen);
    (void)tutti_set_grad_enabled(recorded);
    TRY(tutti_tensor_check());
    return ok;
}
