/* SPDX-License-Identifier: BSD-3-Clause
 *
 * feed.c - from samples to batches.
 *
 * How     As in the tutorial, each rank owns a slice of the training set and shuffles it by itself.
 *         With --global-batches all ranks shuffle the whole set alike, and rank r takes part r of
 *         each batch: what they train on together does not depend on how many they are.
 * True    Shared batches are the same on all ranks although dropout draws other numbers on each:
 *         their order has a generator of its own, which begins where the default one stood. */
#include "feed.h"

#include <inttypes.h>
#include <stdlib.h>

#include "examples/common/say.h"
#include "net.h"
#include "sets.h"

int64_t feed_part(int64_t n, int rank, int size, int64_t *first_out)
{
    *first_out = n * rank / size;
    return n * (rank + 1) / size - *first_out;
}

static bool prepare_loader(feed *f, const options *opts)
{
    const int64_t all = tutti_dataset_length(f->train);
    const int rank = f->shared ? 0 : f->rank;
    const int size = f->shared ? 1 : f->size;
    int64_t n;

    TRY(tutti_partition_length(all, rank, size, &n));
    if (all < f->size)
        return say("%" PRId64 " training samples are too few for %d ranks", all, f->size);
    f->memory = malloc((size_t)n * 2 * sizeof *f->memory);
    if (f->memory == NULL)
        return say("no memory for the order of %" PRId64 " samples", n);
    TRY(tutti_partition(opts->seed, all, rank, size, f->memory));
    TRY(tutti_loader_init(&f->loader, f->memory, n, opts->batch / size, f->memory + n));
    return true;
}

bool feed_open(feed *f, const options *opts, int rank, int size)
{
    f->shared = opts->global_batches;
    f->rank = rank;
    f->size = size;
    return sets_open(opts->data, &f->train, &f->test) && prepare_loader(f, opts);
}

static bool fork_default_generator(tutti_generator **gen_out)
{
    const size_t bytes = tutti_generator_state_bytes();
    void *state = malloc(bytes);
    tutti_status st = TUTTI_OK;

    *gen_out = tutti_generator_create(0);
    if (state != NULL && *gen_out != NULL) {
        tutti_generator_get_state(NULL, state);
        st = tutti_generator_set_state(*gen_out, state, bytes);
    }
    free(state);
    if (state == NULL || *gen_out == NULL)
        return say("no memory for a generator of %zu bytes", bytes);
    TRY(st);
    return true;
}

static uint64_t draw(void *gen)
{
    return tutti_generator_random64(gen);
}

bool feed_shuffle(feed *f)
{
    if (f->shared && f->order == NULL && !fork_default_generator(&f->order))
        return false;
    TRY(tutti_loader_shuffle(&f->loader, draw, f->order));
    return true;
}

bool feed_fetch(const tutti_dataset *ds, const int64_t *samples, int64_t n, batch *batch_out)
{
    tutti_tensor *x = tutti_tensor_empty(TUTTI_F32, 4, (int64_t[]){ n, 1, NET_SIDE, NET_SIDE });
    tutti_tensor *y = tutti_tensor_empty(TUTTI_I64, 1, &n);

    TRY(tutti_tensor_check());
    TRY(tutti_dataset_fetch(ds, samples, n, tutti_tensor_data(x), tutti_tensor_data(y)));
    *batch_out = (batch){ .x = x, .y = y, .n = n, .all = n };
    return true;
}

bool feed_next(feed *f, batch *batch_out, bool *more_out)
{
    const int64_t *samples = NULL;
    int64_t all = tutti_loader_next(&f->loader, &samples), n = all, first = 0;

    if (!(*more_out = all > 0))
        return true;
    if (f->shared)
        n = feed_part(all, f->rank, f->size, &first);
    if (!feed_fetch(f->train, samples + first, n, batch_out))
        return false;
    batch_out->all = f->shared ? all : all * f->size;
    return true;
}

int64_t feed_samples(const feed *f)
{
    return f->shared ? f->loader.n : f->loader.n * f->size;
}

void feed_close(feed *f)
{
    tutti_dataset_free(f->train);
    tutti_dataset_free(f->test);
    tutti_generator_free(f->order);
    free(f->memory);
}
