/* SPDX-License-Identifier: BSD-3-Clause
 *
 * held_out.c - windows over the held-out bytes, half a window apart.
 *
 * How     Window k ends at byte train + (k + 1) stride, the last one at the end of the text; of each only the bytes
 *         count that no window before it had, at most stride. Ranks take every size-th.
 * True    Every byte counts once, and has context - stride bytes before it: for the first ones they are the end of what
 *         was learned from, which is known to everybody who reads on there. */
#include "held_out.h"

#include <math.h>
#include <tutti/group.h>

#include "examples/common/say.h"
#include "model.h"

enum { BATCH = 8 };

typedef struct view {
    const text *text;
    int64_t context, stride;
} view;

/* The first byte that counts in window k; that of the window behind the last one is the end. */
static int64_t begin_of(const view *v, int64_t k)
{
    const int64_t at = v->text->train + k * v->stride;

    return at < v->text->n ? at : v->text->n;
}

/* What window k adds, in nats, as scores [context, MODEL_BYTES] have it; the window's input begins at from. */
static double nats_of(const view *v, int64_t k, int64_t from, const float *scores)
{
    double nats = 0.0;

    for (int64_t i = begin_of(v, k); i < begin_of(v, k + 1); i++) {
        const float *row = scores + (i - 1 - from) * MODEL_BYTES;
        double sum = 0.0, most = (double)row[0];

        for (int c = 1; c < MODEL_BYTES; c++)
            most = fmax(most, (double)row[c]);
        for (int c = 0; c < MODEL_BYTES; c++)
            sum += exp((double)row[c] - most);
        nats += log(sum) + most - (double)row[v->text->bytes[i]];
    }
    return nats;
}

/* Windows k, k + step, ... */
static bool measure(tutti_module *net, const view *v, int64_t k, int64_t step, int64_t n, double *nats)
{
    const int64_t shape[2] = { n, v->context };
    tutti_tensor *x = tutti_tensor_empty(TUTTI_I64, 2, shape), *scores;
    int64_t *to = tutti_tensor_data(x);

    TRY(tutti_tensor_check());
    for (int64_t b = 0; b < n; b++)
        for (int64_t i = 0, from = begin_of(v, k + b * step + 1) - 1 - v->context; i < v->context; i++)
            to[b * v->context + i] = v->text->bytes[from + i];
    scores = tutti_forward(net, x);
    TRY(tutti_tensor_check());
    for (int64_t b = 0; b < n; b++)
        *nats += nats_of(v, k + b * step, begin_of(v, k + b * step + 1) - 1 - v->context,
                         (const float *)tutti_tensor_data(scores) + b * v->context * MODEL_BYTES);
    return true;
}

bool held_out_bits(tutti_module *net, const text *t, int64_t context, double *bits_out)
{
    const view v = { .text = t, .context = context, .stride = (context + 1) / 2 };
    const int64_t all = (t->n - t->train + v.stride - 1) / v.stride, size = tutti_get_world_size(NULL);
    const bool recorded = tutti_set_grad_enabled(false);
    double nats = 0.0;
    bool ok = true;

    tutti_module_train(net, false);
    for (int64_t k = tutti_get_rank(NULL), n; k < all && ok; k += n * size) {
        n = (all - k + size - 1) / size;
        n = n < BATCH ? n : BATCH;
        tutti_scope_begin();
        ok = measure(net, &v, k, size, n, &nats);
        tutti_scope_end();
    }
    tutti_module_train(net, true);
    (void)tutti_set_grad_enabled(recorded);
    if (!ok)
        return false;
    TRY(tutti_all_reduce(TUTTI_SPAN(&nats, 1), TUTTI_SUM, NULL));
    *bits_out = nats / (double)(t->n - t->train) / M_LN2;
    return true;
}
