/* SPDX-License-Identifier: BSD-3-Clause
 *
 * bundle.c - calls that become the segments of one.
 *
 * A bundle of one is that call, so that it can meet the same call made alone on another rank. */
#include "group/bundle.h"

#include <stdlib.h>
#include <string.h>
#include <tutti/coalesce.h>
#include <tutti/private.h>
#include "watch/control.h"

void tti_bundle_init(tti_bundle *bundle, tutti_group *group)
{
    bundle->group = group;
    bundle->n = 0;
    bundle->segments = bundle->few_segments;
    bundle->segments_room = TTI_BUNDLE_ON_STACK;
    bundle->list = bundle->few_list;
    bundle->list_room = TTI_LIST_ON_STACK;
}

void tti_bundle_release(tti_bundle *bundle)
{
    if (bundle->segments != bundle->few_segments)
        free(bundle->segments);
    if (bundle->list != bundle->few_list)
        free(bundle->list);
}

/* Room for `need` items, of which `used` are there; they stand in few, or on the heap. NULL: none. */
static void *grow(void *items, void *few, int used, int need, int *room_io, size_t item)
{
    const int room = *room_io > need / 2 ? 2 * *room_io : need;
    void     *grown;

    if (need <= *room_io)
        return items;
    grown = realloc(items != few ? items : NULL, (size_t)room * item);
    if (grown == NULL)
        return NULL;
    if (items == few)
        memcpy(grown, few, (size_t)used * item);
    *room_io = room;
    return grown;
}

static tutti_status make_room(tti_bundle *bundle, int n_list)
{
    const int n = bundle->n;
    void     *segments = grow(bundle->segments, bundle->few_segments, n, n + 1,
                              &bundle->segments_room, sizeof *bundle->segments);
    void     *list = NULL;

    if (segments != NULL) {
        bundle->segments = segments;
        list = grow(bundle->list, bundle->few_list, n * n_list, (n + 1) * n_list,
                    &bundle->list_room, sizeof *bundle->list);
    }
    if (list == NULL)
        return tti_fail(TUTTI_E_NOMEM, "no memory for %d buffers of one operation", n + 1);
    bundle->list = list;
    return TUTTI_OK;
}

static tutti_status fail_mixed(const tti_bundle *bundle, const char *what, const char *sort,
                               const char *mine, const char *first)
{
    return tti_fail(TUTTI_E_ARG,
                    "%s on group '%s': %s is %s, but that of the calls before it is %s\n"
                    "  next: let the buffers of one operation have one kind, dtype and op",
                    what, bundle->group->name, sort, mine, first);
}

static tutti_status check_alike(const tti_bundle *bundle, const char *what, const tutti_call *call)
{
    const tutti_call *like = &bundle->like;

    if (call->kind != like->kind)
        return fail_mixed(bundle, what, "its kind", tti_call_kind_name(call->kind),
                          tti_call_kind_name(like->kind));
    if (call->dtype != like->dtype)
        return fail_mixed(bundle, what, "its dtype", tutti_dtype_name(call->dtype),
                          tutti_dtype_name(like->dtype));
    if (call->device != like->device)
        return fail_mixed(bundle, what, "its device", tti_device_name(call->device),
                          tti_device_name(like->device));
    if (call->op.kind != like->op.kind)
        return fail_mixed(bundle, what, "its op", tutti_op_name(call->op.kind),
                          tutti_op_name(like->op.kind));
    if (call->op.kind == TUTTI_OP_PREMUL_SUM &&
        (call->op.factor < like->op.factor || call->op.factor > like->op.factor))
        return fail_mixed(bundle, what, "its factor", "another one", "one");
    return TUTTI_OK;
}

/* All elements of a bundle, on all ranks, must stay a number. */
static tutti_status check_sizes(const tti_bundle *bundle, const char *what, const tutti_call *call)
{
    const int64_t room = PTRDIFF_MAX / bundle->group->size / (int64_t)tutti_dtype_size(call->dtype);

    if (call->n_parts > 0)
        return tti_fail(TUTTI_E_ARG,
                        "%s on group '%s': parts have different sizes from rank to rank\n"
                        "  next: gather them one by one",
                        what, bundle->group->name);
    if (bundle->n == TUTTI_COALESCED_MAX)
        return tti_fail(TUTTI_E_ARG, "%s on group '%s': one operation has at most %d buffers", what,
                        bundle->group->name, TUTTI_COALESCED_MAX);
    if (bundle->n > 0 && call->count > room - bundle->like.count)
        return tti_fail(TUTTI_E_ARG, "%s on group '%s': there are more bytes than memory", what,
                        bundle->group->name);
    return TUTTI_OK;
}

tutti_status tti_bundle_add(tti_bundle *bundle, const char *what, const tutti_call *call, int n_list)
{
    tutti_status st = check_sizes(bundle, what, call);

    if (st == TUTTI_OK && bundle->n > 0)
        st = check_alike(bundle, what, call);
    if (st == TUTTI_OK)
        st = make_room(bundle, n_list);
    if (st != TUTTI_OK)
        return st;
    if (n_list > 0)
        memcpy(bundle->list + (size_t)bundle->n * (size_t)n_list, call->list,
               (size_t)n_list * sizeof *call->list);
    bundle->segments[bundle->n] = (tutti_segment){ .count = call->count, .in = call->in,
                                                   .out = call->out };
    if (bundle->n++ == 0)
        bundle->like = *call;
    else
        bundle->like.count += call->count;
    return TUTTI_OK;
}

tutti_status tti_bundle_issue(tti_bundle *bundle, tti_how h)
{
    const bool   has_list = bundle->like.list != NULL;
    tutti_call   call = bundle->like;
    tutti_status st;

    call.list = has_list ? bundle->list : NULL;
    if (bundle->n > 1) {
        call.in = call.out = NULL;
        call.n_segments = bundle->n;
        call.segments = bundle->segments;
    }
    st = tti_collective_issue(bundle->group, &call, has_list ? bundle->n * bundle->group->size : 0, h);
    bundle->like.seq = call.seq;
    return st;
}
