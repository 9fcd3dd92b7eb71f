/* SPDX-License-Identifier: BSD-3-Clause
 *
 * assign.c - who gets which parameter of the buckets of a ddp: whole buckets in turn, or runs of about the same size.
 *
 * How     Runs: the smallest bucket first; a run ends before the parameter with which it would reach its share of all
 *         elements, and goes to the rank that has least and has none of this bucket yet, if there is one.
 * True    No run reaches over two buckets, none is empty. The answer is the same on all ranks. */
#include "zero/zero.h"

#include <stdlib.h>

typedef struct bucket {
    int index, from, to;
    int64_t numel;
} bucket;

static int smaller_first(const void *a, const void *b)
{
    const bucket *x = a, *y = b;

    if (x->numel != y->numel)
        return x->numel < y->numel ? -1 : 1;
    return x->index < y->index ? -1 : 1;
}

static void whole(const int *ends, int n_buckets, int size, int *owner_out)
{
    for (int b = 0; b < n_buckets; b++)
        for (int k = b > 0 ? ends[b - 1] : 0; k < ends[b]; k++)
            owner_out[k] = b % size;
}

/* The rank that has least, of those that have nothing of this bucket; -1: all have something. */
static int least_unused(const int64_t *load, const bool *used, int size)
{
    int best = -1;

    for (int r = 0; r < size; r++)
        if ((used == NULL || !used[r]) && (best < 0 || load[r] < load[best]))
            best = r;
    return best;
}

static void give(int from, int to, const int64_t *numel, int64_t *load, bool *used, int size, int *owner_out)
{
    int r = least_unused(load, used, size);

    if (r < 0)
        r = least_unused(load, NULL, size);
    for (int k = from; k < to; k++) {
        owner_out[k] = r;
        load[r] += numel[k];
    }
    used[r] = true;
}

static void cut(const bucket *b, const int64_t *numel, double share, int64_t *load, bool *used, int size, int *owner_out)
{
    int64_t run = 0;
    int from = b->from;

    for (int r = 0; r < size; r++)
        used[r] = false;
    for (int k = b->from; k < b->to; k++) {
        if ((double)(run + numel[k]) >= share && k > from) {
            give(from, k, numel, load, used, size, owner_out);
            from = k;
            run = 0;
        }
        run += numel[k];
    }
    give(from, b->to, numel, load, used, size, owner_out);
}

bool tti_zero_assign(const int64_t *numel, const int *ends, int n_buckets, int size, bool cuts, int *owner_out)
{
    bucket *buckets = calloc((size_t)n_buckets + 1, sizeof *buckets);
    int64_t *load = calloc((size_t)size, sizeof *load), all = 0;
    bool *used = calloc((size_t)size, sizeof *used);
    const bool ok = buckets != NULL && load != NULL && used != NULL;

    for (int b = 0; b < n_buckets && ok; b++) {
        buckets[b] = (bucket){ .index = b, .from = b > 0 ? ends[b - 1] : 0, .to = ends[b] };
        for (int k = buckets[b].from; k < ends[b]; k++)
            buckets[b].numel += numel[k];
        all += buckets[b].numel;
    }
    if (ok && !cuts)
        whole(ends, n_buckets, size, owner_out);
    if (ok && cuts) {
        qsort(buckets, (size_t)n_buckets, sizeof *buckets, smaller_first);
        for (int b = 0; b < n_buckets; b++)
            cut(&buckets[b], numel, (double)all / size, load, used, size, owner_out);
    }
    free(buckets);
    free(load);
    free(used);
    return ok;
}
