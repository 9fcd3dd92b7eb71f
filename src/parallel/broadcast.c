/* SPDX-License-Identifier: BSD-3-Clause
 *
 * broadcast.c - the same values everywhere, to begin with.
 *
 * How     Spans are sorted into groups of one dtype as gradients are into buckets, with one limit. A group travels as
 *         one buffer, and is copied out of it when it has come; a span alone from where it lies. Two are on the way at a
 *         time: before a third one begins the oldest is finished.
 * True    Groups depend on counts and dtypes alone: they are the same on all ranks. */
#include "parallel/assign.h"

#include <stdlib.h>
#include <string.h>
#include <tutti/parallel.h>
#include <tutti/private.h>

enum { ON_THE_WAY = 2 };

#define DEFAULT_CAP (250 * TTI_MIB)

typedef struct parcel {
    const int  *spans; /* [n] */
    int         n;
    char       *flat; /* NULL: one span, in place */
    tutti_work *work;
} parcel;

typedef struct shipment {
    const tutti_span *spans;
    tutti_group      *group;
    int               src;
    parcel            open[ON_THE_WAY];
} shipment;

static size_t bytes_of(tutti_span span)
{
    return (size_t)span.count * tutti_dtype_size(span.dtype);
}

/* Copy the spans into their buffer, or out of it. */
static void copy(const shipment *s, const parcel *p, bool out)
{
    char *at = p->flat;
    int   k;

    for (k = 0; k < p->n; k++) {
        const tutti_span span = s->spans[p->spans[k]];

        if (bytes_of(span) > 0)
            memcpy(out ? (char *)span.data : at, out ? at : (char *)span.data, bytes_of(span));
        at += bytes_of(span);
    }
}

static tutti_status finish(const shipment *s, parcel *p)
{
    tutti_status st = TUTTI_OK;

    if (p->work != NULL)
        st = tutti_work_wait(p->work);
    if (st == TUTTI_OK && p->flat != NULL)
        copy(s, p, true);
    tutti_work_free(p->work);
    free(p->flat);
    *p = (parcel){ 0 };
    return st;
}

static tutti_status begin(const shipment *s, parcel *p)
{
    tutti_span whole = s->spans[p->spans[0]];
    int        k;

    for (k = 1; k < p->n; k++)
        whole.count += s->spans[p->spans[k]].count;
    if (p->n > 1) {
        p->flat = malloc(bytes_of(whole) + 1);
        if (p->flat == NULL)
            return tti_fail(TUTTI_E_NOMEM, "no memory to broadcast %zu bytes at once", bytes_of(whole));
        copy(s, p, false);
        whole.data = p->flat;
    }
    return tutti_broadcast_async(whole, s->src, s->group, &p->work);
}

static tutti_status ship(shipment *s, const tti_layout *layout)
{
    tutti_status st = TUTTI_OK, last;
    int          b, k;

    for (b = 0; b < layout->n_buckets && st == TUTTI_OK; b++) {
        parcel *p = &s->open[b % ON_THE_WAY];

        st = finish(s, p);
        p->spans = layout->params + layout->first[b];
        p->n = layout->first[b + 1] - layout->first[b];
        if (st == TUTTI_OK)
            st = begin(s, p);
    }
    for (k = 0; k < ON_THE_WAY; k++, b++) { /* the older one first */
        last = finish(s, &s->open[b % ON_THE_WAY]);
        st = st == TUTTI_OK ? last : st;
    }
    return st;
}

static tutti_status check(const tutti_span *spans, int n, int64_t cap)
{
    int i;

    if (n < 0 || cap < 0 || (n > 0 && spans == NULL))
        return tti_fail(TUTTI_E_ARG, "broadcast_coalesced: %d spans%s in groups of %lld bytes", n,
                        n > 0 && spans == NULL ? " at NULL" : "", (long long)cap);
    for (i = 0; i < n; i++)
        if (spans[i].count < 0 || (spans[i].data == NULL && spans[i].count > 0) ||
            tutti_dtype_size(spans[i].dtype) == 0 || spans[i].device.type != TUTTI_CPU)
            return tti_fail(TUTTI_E_ARG, "broadcast_coalesced: span %d is no host memory of %lld elements", i,
                            (long long)spans[i].count);
    return TUTTI_OK;
}

tutti_status tutti_broadcast_coalesced(const tutti_span *spans, int n_spans, int64_t cap_bytes, int src,
                                       tutti_group *group)
{
    shipment     s = { .spans = spans, .group = group, .src = src };
    int64_t      limit = cap_bytes > 0 ? cap_bytes : DEFAULT_CAP;
    tti_layout   layout = { 0 };
    tti_sized   *items = NULL;
    tutti_status st = check(spans, n_spans, cap_bytes);
    int          i;

    if (st != TUTTI_OK || n_spans == 0)
        return st;
    items = calloc((size_t)n_spans, sizeof *items);
    if (items == NULL)
        return tti_fail(TUTTI_E_NOMEM, "no memory to sort %d spans", n_spans);
    for (i = 0; i < n_spans; i++)
        items[i] = (tti_sized){ .dtype = spans[i].dtype, .bytes = (int64_t)bytes_of(spans[i]) };
    st = tti_assign_buckets(items, n_spans, &limit, 1, NULL, &layout);
    free(items);
    if (st == TUTTI_OK)
        st = ship(&s, &layout);
    tti_layout_release(&layout);
    return st;
}
