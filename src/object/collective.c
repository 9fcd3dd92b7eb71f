/* SPDX-License-Identifier: BSD-3-Clause
 *
 * collective.c - gathering, broadcasting and scattering objects.
 *
 * How     Each meets (meet.c), so that all sizes are known and allowed, takes one block for what comes, and
 *         lets the group's own collectives put the bytes where they stay: nothing is padded to the largest.
 *         broadcast and scatter tell single sizes in a second step, as the meeting has only sums.
 * Fails   After the meeting nobody may stay away. A rank without memory ends the group for all
 *         (tti_object_give_up): the others hear of it at once. */
#include "object/object.h"

#include <stdlib.h>
#include <string.h>
#include <tutti/private.h>

/* An object as a span that is only read. */
static tutti_span span_of(const tutti_bytes *bytes)
{
    return tutti_span_of(bytes->data, (int64_t)bytes->size, TUTTI_U8);
}

/* [members] zeroed numbers, or spans of objects. */
static tutti_status take_sizes(const tutti_group *group, int64_t **sizes_out)
{
    *sizes_out = calloc((size_t)group->size, sizeof **sizes_out);
    if (*sizes_out == NULL)
        return tti_fail(TUTTI_E_NOMEM, "no memory for the sizes of %d ranks", group->size);
    return TUTTI_OK;
}

static tutti_status take_spans(const tutti_bytes *list, int n, tutti_span **spans_out)
{
    tutti_span *spans = calloc((size_t)n, sizeof *spans);
    int         i;

    if (spans == NULL)
        return tti_fail(TUTTI_E_NOMEM, "no memory for a list of %d objects", n);
    for (i = 0; i < n; i++)
        spans[i] = span_of(&list[i]);
    *spans_out = spans;
    return TUTTI_OK;
}

/* ---- gathering, to all or to one ---- */

/* One object comes from each rank: room for them, and the spans that they go to. */
static tutti_status take_room(tutti_group *group, const char *what, const int64_t *sizes,
                              tutti_objects *objects, tutti_span **spans)
{
    tutti_status st = tti_objects_create(sizes, group->size, objects);

    if (st == TUTTI_OK)
        st = take_spans(objects->at, group->size, spans);
    return st == TUTTI_OK ? st : tti_object_give_up(group, what, st);
}

tutti_status tti_object_all_gather(tutti_group *group, const char *what, const tti_offer *offer,
                                   tutti_objects *objects_out)
{
    tutti_objects objects = { 0 };
    tutti_span   *spans = NULL;
    int64_t      *sizes = NULL;
    int64_t       largest;
    tutti_status  st = take_sizes(group, &sizes);

    if (st == TUTTI_OK)
        st = tti_object_meet(group, what, TTI_OBJECT_ALL_GATHER, -1, offer, false, sizes, &largest);
    if (st == TUTTI_OK)
        st = take_room(group, what, sizes, &objects, &spans);
    if (st == TUTTI_OK)
        st = tutti_all_gather(spans, group->size, span_of(offer->list), group);
    if (st == TUTTI_OK)
        *objects_out = objects;
    else
        tutti_objects_free(&objects);
    free(spans);
    free(sizes);
    return st;
}

tutti_status tti_object_gather(tutti_group *group, const char *what, const tti_offer *offer, int dst,
                               tutti_objects *objects_out)
{
    const bool    mine = group->rank == dst;
    tutti_objects objects = { 0 };
    tutti_span   *spans = NULL;
    int64_t      *sizes = NULL;
    int64_t       largest;
    tutti_status  st = take_sizes(group, &sizes);

    if (st == TUTTI_OK)
        st = tti_object_meet(group, what, TTI_OBJECT_GATHER, dst, offer, false, sizes, &largest);
    if (st == TUTTI_OK && mine)
        st = take_room(group, what, sizes, &objects, &spans);
    if (st == TUTTI_OK)
        st = tutti_gather_v(spans, mine ? group->size : 0, span_of(offer->list), group->ranks[dst], group);
    if (st == TUTTI_OK && mine)
        *objects_out = objects;
    else
        tutti_objects_free(&objects);
    free(spans);
    free(sizes);
    return st;
}

/* ---- broadcasting ---- */

/* The list as it travels: src has it, the others have room for it. */
static tutti_status lay_out(const tti_offer *offer, const int64_t *sizes, tutti_objects *objects)
{
    tutti_status st = tti_objects_create(sizes, offer->n, objects);
    int          i;

    for (i = 0; st == TUTTI_OK && offer->list != NULL && i < offer->n; i++)
        if (offer->list[i].size > 0)
            memcpy(objects->at[i].data, offer->list[i].data, offer->list[i].size);
    return st;
}

/* What src says about single objects fits what it said about all of them. */
static tutti_status check_told(const tutti_group *group, const char *what, const int64_t *sizes, int n,
                               int64_t total, int64_t largest)
{
    int64_t sum = 0;
    int     i;

    for (i = 0; i < n; i++) {
        if (sizes[i] < 0 || sizes[i] > largest || sizes[i] > total - sum)
            return tti_fail(TUTTI_E_MISMATCH, "%s on group '%s': object %d has %lld bytes, of %lld for all",
                            what, group->name, i, (long long)sizes[i], (long long)total);
        sum += sizes[i];
    }
    return TUTTI_OK;
}

/* The meeting is over. */
static tutti_status spread(tutti_group *group, const char *what, const tti_offer *offer, int src, int64_t total,
                           int64_t largest, tutti_objects *objects)
{
    int64_t     *sizes = calloc((size_t)offer->n, sizeof *sizes);
    tutti_status st;
    int          i;

    if (sizes == NULL)
        return tti_object_give_up(group, what, tti_fail(TUTTI_E_NOMEM, "no memory for %d sizes", offer->n));
    for (i = 0; offer->list != NULL && i < offer->n; i++)
        sizes[i] = (int64_t)offer->list[i].size;
    st = tutti_broadcast(tutti_span_of(sizes, offer->n, TUTTI_I64), group->ranks[src], group);
    if (st == TUTTI_OK) {
        st = check_told(group, what, sizes, offer->n, total, largest);
        if (st == TUTTI_OK)
            st = lay_out(offer, sizes, objects);
        if (st != TUTTI_OK)
            st = tti_object_give_up(group, what, st);
    }
    free(sizes);
    return st == TUTTI_OK ? tutti_broadcast(tti_objects_payload(objects), group->ranks[src], group) : st;
}

tutti_status tti_object_broadcast(tutti_group *group, const char *what, const tti_offer *offer, int src,
                                  tutti_objects *objects_out)
{
    tutti_objects objects = { 0 };
    int64_t      *sizes = NULL;
    int64_t       largest = 0;
    tutti_status  st = take_sizes(group, &sizes);

    if (st == TUTTI_OK)
        st = tti_object_meet(group, what, TTI_OBJECT_BROADCAST, src, offer, true, sizes, &largest);
    if (st == TUTTI_OK && offer->n > 0)
        st = spread(group, what, offer, src, sizes[src], largest, &objects);
    if (st == TUTTI_OK && group->rank != src)
        *objects_out = objects;
    else
        tutti_objects_free(&objects);
    free(sizes);
    return st;
}

/* ---- scattering ---- */

/* Each rank hears the size of its object. */
static tutti_status tell_sizes(tutti_group *group, const tti_offer *offer, int src, int64_t *sizes,
                               int64_t *mine)
{
    const bool   root = group->rank == src;
    tutti_span  *spans = NULL;
    tutti_status st;
    int          r;

    if (root) {
        spans = calloc((size_t)group->size, sizeof *spans);
        if (spans == NULL)
            return tti_object_give_up(group, "scatter_object_list",
                                      tti_fail(TUTTI_E_NOMEM, "no memory for %d sizes", group->size));
    }
    for (r = 0; root && r < group->size; r++) {
        sizes[r] = (int64_t)offer->list[r].size;
        spans[r] = tutti_span_of(&sizes[r], 1, TUTTI_I64);
    }
    st = tutti_scatter(tutti_span_of(mine, 1, TUTTI_I64), spans, root ? group->size : 0, group->ranks[src],
                       group);
    free(spans);
    return st;
}

/* Who does not believe its size cannot stay away: the others are on their way to the scatter. */
static tutti_status take_told(tutti_group *group, const char *what, int64_t mine, int64_t total, int64_t largest)
{
    const tutti_status st = check_told(group, what, &mine, 1, total, largest);

    return st == TUTTI_OK ? st : tti_object_give_up(group, what, st);
}

static tutti_status hand_out(tutti_group *group, const char *what, const tti_offer *offer, int src,
                             int64_t size, tutti_objects *objects)
{
    const bool   root = group->rank == src;
    tutti_span  *spans = NULL;
    tutti_status st = tti_objects_create(&size, 1, objects);

    if (st == TUTTI_OK && root)
        st = take_spans(offer->list, offer->n, &spans);
    if (st != TUTTI_OK)
        return tti_object_give_up(group, what, st);
    st = tutti_scatter_v(span_of(&objects->at[0]), spans, root ? group->size : 0, group->ranks[src], group);
    free(spans);
    return st;
}

tutti_status tti_object_scatter(tutti_group *group, const char *what, const tti_offer *offer, int src,
                                tutti_objects *objects_out)
{
    tutti_objects objects = { 0 };
    int64_t      *sizes = NULL;
    int64_t       largest = 0, total, mine = 0;
    tutti_status  st = take_sizes(group, &sizes);

    if (st == TUTTI_OK)
        st = tti_object_meet(group, what, TTI_OBJECT_SCATTER, src, offer, false, sizes, &largest);
    if (st == TUTTI_OK) {
        total = sizes[src];
        st = tell_sizes(group, offer, src, sizes, &mine);
        if (st == TUTTI_OK)
            st = take_told(group, what, mine, total, largest);
    }
    if (st == TUTTI_OK)
        st = hand_out(group, what, offer, src, mine, &objects);
    if (st == TUTTI_OK)
        *objects_out = objects;
    else
        tutti_objects_free(&objects);
    free(sizes);
    return st;
}
