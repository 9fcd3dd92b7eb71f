/* SPDX-License-Identifier: BSD-3-Clause
 *
 * assign.c - which parameter goes into which bucket.
 *
 * How     Buckets get numbers as they are opened. When one is full its number goes to the end of a list; what is never
 *         full is put behind, in order of number. Without a given order of items, numbers are the order itself, as
 *         a bucket's first item is its smallest.
 * True    A bucket has more than its limit by at most its last item, without which it would have less. The same items
 *         give the same buckets everywhere. */
#include "parallel/assign.h"

#include <stdlib.h>
#include <string.h>
#include <tutti/private.h>

typedef struct filling {
    int     number; /* of the open bucket; -1: none is */
    int     limit;  /* index of its limit */
    int64_t bytes;
} filling;

tutti_status tti_layout_create(int n_params, tti_layout *layout_out)
{
    const size_t n = (size_t)n_params + 1;
    tti_layout   layout = { .n_params = n_params };

    layout.params = calloc(n, sizeof *layout.params);
    layout.first = calloc(n, sizeof *layout.first);
    layout.limits = calloc(n, sizeof *layout.limits);
    if (layout.params == NULL || layout.first == NULL || layout.limits == NULL) {
        tti_layout_release(&layout);
        return tti_fail(TUTTI_E_NOMEM, "no memory for the buckets of %d parameters", n_params);
    }
    *layout_out = layout;
    return TUTTI_OK;
}

void tti_layout_release(tti_layout *layout)
{
    free(layout->params);
    free(layout->first);
    free(layout->limits);
    *layout = (tti_layout){ 0 };
}

/* Give each item the number of its bucket, limits to buckets, and the order of buckets by number.
 * @return how many buckets there are */
static int fill(const tti_sized *items, int n, const int64_t *limits, int n_limits, const int *order, int *number_of,
                int64_t *limit_of, int *sequence)
{
    filling open[TUTTI_DTYPE_COUNT];
    int     n_buckets = 0, n_full = 0;
    int     p, i, k;

    for (k = 0; k < TUTTI_DTYPE_COUNT; k++)
        open[k] = (filling){ .number = -1 };
    for (p = 0; p < n; p++) {
        filling *f;

        i = order != NULL ? order[p] : p;
        f = &open[items[i].dtype];
        if (f->number < 0) {
            f->number = n_buckets++;
            f->bytes = 0;
        }
        number_of[i] = f->number;
        limit_of[f->number] = limits[f->limit];
        f->bytes += items[i].bytes;
        if (f->bytes < limits[f->limit])
            continue;
        sequence[n_full++] = f->number;
        f->number = -1;
        f->limit += f->limit + 1 < n_limits;
    }
    for (k = 0; k < TUTTI_DTYPE_COUNT; k++) /* a handful: the smallest number first */
        for (i = k + 1; i < TUTTI_DTYPE_COUNT; i++)
            if (open[i].number < open[k].number) {
                const filling other = open[i];

                open[i] = open[k];
                open[k] = other;
            }
    for (k = 0; k < TUTTI_DTYPE_COUNT; k++)
        if (open[k].number >= 0)
            sequence[n_full++] = open[k].number;
    return n_buckets;
}

/* Sort items by bucket, keeping their order inside of one: count, then place. */
static void place(const int *number_of, const int64_t *limit_of, const int *sequence, const int *order,
                  int *position_of, tti_layout *layout)
{
    int b, p, i;

    for (b = 0; b < layout->n_buckets; b++) {
        position_of[sequence[b]] = b;
        layout->limits[b] = limit_of[sequence[b]];
    }
    for (i = 0; i < layout->n_params; i++)
        layout->first[position_of[number_of[i]] + 1]++;
    for (b = 0; b < layout->n_buckets; b++)
        layout->first[b + 1] += layout->first[b];
    for (p = 0; p < layout->n_params; p++) {
        i = order != NULL ? order[p] : p;
        layout->params[layout->first[position_of[number_of[i]]]++] = i;
    }
    for (b = layout->n_buckets; b > 0; b--) /* placing has moved each beginning to the next one's */
        layout->first[b] = layout->first[b - 1];
    layout->first[0] = 0;
}

tutti_status tti_assign_buckets(const tti_sized *items, int n, const int64_t *limits, int n_limits, const int *order,
                                tti_layout *layout_out)
{
    tti_layout   layout = { 0 };
    int         *room = calloc((size_t)n * 3 + 1, sizeof *room);
    int64_t     *limit_of = calloc((size_t)n + 1, sizeof *limit_of);
    tutti_status st = room != NULL && limit_of != NULL ? tti_layout_create(n, &layout)
                                                       : tti_fail(TUTTI_E_NOMEM, "no memory to sort %d parameters", n);
    int i;

    if (st == TUTTI_OK) {
        layout.n_buckets = fill(items, n, limits, n_limits, order, room, limit_of, room + n);
        if (order == NULL)
            for (i = 0; i < layout.n_buckets; i++)
                room[n + i] = i;
        place(room, limit_of, room + n, order, room + 2 * (size_t)n, &layout);
        *layout_out = layout;
    }
    free(room);
    free(limit_of);
    return st;
}

tutti_status tti_layout_reverse(tti_layout *layout)
{
    tti_layout   turned = { 0 };
    tutti_status st = tti_layout_create(layout->n_params, &turned);
    int          b, from, n;

    if (st != TUTTI_OK)
        return st;
    for (b = 0; b < layout->n_buckets; b++) {
        from = layout->n_buckets - 1 - b;
        n = layout->first[from + 1] - layout->first[from];
        memcpy(turned.params + turned.first[b], layout->params + layout->first[from], (size_t)n * sizeof(int));
        turned.first[b + 1] = turned.first[b] + n;
        turned.limits[b] = layout->limits[from];
    }
    turned.n_buckets = layout->n_buckets;
    tti_layout_release(layout);
    *layout = turned;
    return TUTTI_OK;
}

bool tti_layout_is_whole(const tti_layout *layout)
{
    bool *seen = calloc((size_t)layout->n_params + 1, sizeof *seen);
    bool  whole = seen != NULL && layout->first[0] == 0 && layout->first[layout->n_buckets] == layout->n_params;
    int   b, p;

    for (b = 0; b < layout->n_buckets && whole; b++)
        whole = layout->first[b + 1] > layout->first[b];
    for (p = 0; p < layout->n_params && whole; p++) {
        whole = layout->params[p] >= 0 && layout->params[p] < layout->n_params && !seen[layout->params[p]];
        if (whole)
            seen[layout->params[p]] = true;
    }
    free(seen);
    return whole;
}

/* ---- limits ---- */

/* The small bucket, if the cap is unset, and the others. */
static int first_and_cap(const tti_caps *caps, int64_t room[2])
{
    room[0] = caps->cap != 0 ? caps->cap : TTI_FIRST_BUCKET;
    room[1] = TTI_BUCKET_CAP;
    return caps->cap != 0 ? 1 : 2;
}

int tti_initial_limits(const tti_caps *caps, int64_t room[2], const int64_t **limits_out)
{
    *limits_out = caps->n_list > 0 ? caps->list : room;
    if (caps->n_list > 0)
        return caps->n_list;
    if (caps->find_unused && !caps->static_graph)
        return first_and_cap(caps, room);
    room[0] = TTI_NO_LIMIT; /* until the order of gradients is known nothing is to be gained */
    return 1;
}

int tti_rebuilt_limits(const tti_caps *caps, int64_t room[2], const int64_t **limits_out)
{
    *limits_out = caps->n_list > 0 ? caps->list : room;
    return caps->n_list > 0 ? caps->n_list : first_and_cap(caps, room);
}
