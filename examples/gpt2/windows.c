/* SPDX-License-Identifier: BSD-3-Clause
 *
 * windows.c - the text cut into windows, shuffled, dealt out.
 *
 * How     An epoch cuts the text from some byte on into windows of equal length, side by side: from another byte in
 *         each epoch, so that windows are never the same twice. All ranks shuffle them alike, and the rank takes every
 *         size-th; a step of all ranks therefore has the same windows however many ranks there are.
 * True    The place in the order is two numbers: epoch and step. Whoever sets them goes on from there. */
#include "windows.h"

#include <inttypes.h>
#include <stdlib.h>

#include "examples/common/say.h"

/* The byte that windows of an epoch begin at, 0 .. context - 1 (splitmix64). */
static int64_t first_byte(const windows *w)
{
    uint64_t x = w->seed + ((uint64_t)w->epoch + 1) * 0x9e3779b97f4a7c15u;

    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return (int64_t)((x ^ x >> 31) % (uint64_t)w->context);
}

bool windows_open(windows *w, const text *t, int64_t context, int64_t batch, uint64_t seed, int rank, int size)
{
    tutti_distributed_sampler_options opts = TUTTI_DISTRIBUTED_SAMPLER_OPTIONS;
    const int64_t n = t->train / context - 1; /* wherever the first one begins, each followed by a byte */

    w->text = t;
    w->context = context;
    w->batch = batch / size;
    w->seed = seed;
    w->loaded = -1;
    if (n < batch)
        return say_once("the text is too short: a step takes %" PRId64 " windows of %" PRId64 " bytes, and of %" PRId64
                        " bytes %" PRId64 " are there to learn from\n  next: a longer text, or smaller --batch, "
                        "--context", batch, context, t->n, t->train);
    opts.seed = seed;
    opts.drop_last = true;
    TRY(tutti_distributed_sampler_init(&w->sampler, n, size, rank, &opts));
    w->steps = tutti_distributed_sampler_length(&w->sampler) / w->batch;
    w->index = malloc((size_t)tutti_distributed_sampler_length(&w->sampler) * sizeof *w->index);
    return w->index != NULL || say("no memory for the order of %" PRId64 " windows", n);
}

/* The order of the epoch. */
static bool load(windows *w)
{
    if (w->loaded == w->epoch)
        return true;
    tutti_distributed_sampler_set_epoch(&w->sampler, (uint64_t)w->epoch);
    TRY(tutti_distributed_sampler_indices(&w->sampler, w->index));
    w->loaded = w->epoch;
    return true;
}

static void copy(const windows *w, int64_t *x, int64_t *y)
{
    const int64_t *index = w->index + w->step * w->batch;
    const int64_t first = first_byte(w);

    for (int64_t b = 0; b < w->batch; b++) {
        const uint8_t *from = w->text->bytes + first + index[b] * w->context;

        for (int64_t i = 0; i < w->context; i++) {
            x[b * w->context + i] = from[i];
            y[b * w->context + i] = from[i + 1];
        }
    }
}

bool windows_next(windows *w, tutti_tensor **x_out, tutti_tensor **y_out)
{
    const int64_t shape[2] = { w->batch, w->context }, all = w->batch * w->context;
    tutti_tensor *x = tutti_tensor_empty(TUTTI_I64, 2, shape);
    tutti_tensor *y = tutti_tensor_empty(TUTTI_I64, 1, &all);

    TRY(tutti_tensor_check());
    if (!load(w))
        return false;
    copy(w, tutti_tensor_data(x), tutti_tensor_data(y));
    if (++w->step == w->steps) {
        w->step = 0;
        w->epoch++;
    }
    *x_out = x;
    *y_out = y;
    return true;
}

void windows_close(windows *w)
{
    free(w->index);
}
