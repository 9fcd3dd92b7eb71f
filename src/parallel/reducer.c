/* SPDX-License-Identifier: BSD-3-Clause
 *
 * reducer.c - the object: reading what the program gives, and giving it back. */
#include "parallel/parallel.h"

#include <stdlib.h>
#include <string.h>
#include "base/options.h"
#include <tutti/private.h>

/* ---- parameters ---- */

/* Sizes and strides in elements; a parameter without them is a row. */
static void take_shape(tti_reducer_slot *s, const tutti_reducer_param *p)
{
    int64_t stride = 1;
    int     d;

    for (d = s->ndim - 1; d >= 0; d--) {
        s->sizes[d] = p->ndim > 0 ? p->sizes[d] : p->numel;
        s->sizes[s->ndim + d] = p->ndim > 0 && p->strides != NULL ? p->strides[d] : stride;
        stride *= s->sizes[d];
    }
}

static tutti_status check_param(const tutti_reducer_param *p, int i)
{
    const char *name = p->name != NULL ? p->name : "";
    int64_t     numel = 1;
    int         d;

    if (tutti_op_check(TUTTI_AVG, p->dtype) != TUTTI_OK)
        return tti_fail(TUTTI_E_ARG, "reducer_create: parameter %d ('%s') is %s, which cannot be averaged", i, name,
                        tutti_dtype_name(p->dtype));
    if (p->numel < 0 || p->ndim < 0 || (p->ndim > 0 && p->sizes == NULL))
        return tti_fail(TUTTI_E_ARG, "reducer_create: parameter %d ('%s') has %lld elements and %d dimensions%s", i, name,
                        (long long)p->numel, p->ndim, p->sizes == NULL ? " without sizes" : "");
    for (d = 0; d < p->ndim; d++)
        if (p->sizes[d] < 0 || __builtin_mul_overflow(numel, p->sizes[d], &numel))
            return tti_fail(TUTTI_E_ARG, "reducer_create: size %d of parameter %d ('%s') is %lld", d, i, name,
                            (long long)p->sizes[d]);
    if (p->ndim > 0 && numel != p->numel)
        return tti_fail(TUTTI_E_ARG, "reducer_create: the sizes of parameter %d ('%s') make %lld elements, not %lld", i,
                        name, (long long)numel, (long long)p->numel);
    return TUTTI_OK;
}

/* Whether the strides are those of memory without gaps: each dimension, but those of one element, begins where the ones
 * inside of it end. */
static bool has_no_gaps(const tti_reducer_slot *s)
{
    const int64_t *sizes = s->sizes, *strides = s->sizes + s->ndim;
    int64_t        inside = 1;
    int            found, d, k;

    for (k = 0; k < s->ndim && inside < s->numel; k++) {
        found = -1;
        for (d = 0; d < s->ndim; d++)
            if (sizes[d] != 1 && strides[d] == inside)
                found = d;
        if (found < 0)
            return false;
        inside *= sizes[found];
    }
    return inside == s->numel || s->numel == 0;
}

static tutti_status take_param(tti_reducer_slot *s, const tutti_reducer_param *p, int i)
{
    tutti_status st = check_param(p, i);

    if (st != TUTTI_OK)
        return st;
    *s = (tti_reducer_slot){ .dtype = p->dtype, .numel = p->numel, .grad = p->grad };
    s->bytes = (size_t)p->numel * tutti_dtype_size(p->dtype);
    s->ndim = p->ndim > 0 ? p->ndim : 1;
    s->sizes = calloc(2 * (size_t)s->ndim, sizeof *s->sizes);
    s->name = p->name != NULL ? strdup(p->name) : NULL;
    if (s->sizes == NULL || (p->name != NULL && s->name == NULL))
        return tti_fail(TUTTI_E_NOMEM, "no memory for parameter %d of a reducer", i);
    take_shape(s, p);
    if (!has_no_gaps(s))
        return tti_fail(TUTTI_E_ARG, "reducer_create: the strides of parameter %d ('%s') leave gaps, or overlap", i,
                        p->name != NULL ? p->name : "");
    return TUTTI_OK;
}

static tutti_status take_params(tutti_reducer *r, const tutti_reducer_param *params, int n)
{
    tutti_status st = TUTTI_OK;
    int          i;

    if (n <= 0 || params == NULL)
        return tti_fail(TUTTI_E_ARG, "reducer_create: the model doesn't have any parameter that requires a gradient");
    r->n = n;
    r->slots = calloc((size_t)n, sizeof *r->slots);
    r->used = calloc((size_t)n, sizeof *r->used);
    r->used_sum = calloc((size_t)n + 1, sizeof *r->used_sum);
    r->arrived = calloc((size_t)n * 3, sizeof *r->arrived);
    if (r->slots == NULL || r->used == NULL || r->used_sum == NULL || r->arrived == NULL)
        return tti_fail(TUTTI_E_NOMEM, "no memory for the %d parameters of a reducer", n);
    r->recorded = r->arrived + n;
    r->order_before = r->arrived + 2 * (size_t)n;
    for (i = 0; i < n && st == TUTTI_OK; i++)
        st = take_param(&r->slots[i], &params[i], i);
    return st;
}

/* ---- options ---- */

static tutti_status take_caps(tutti_reducer *r, const tutti_reducer_options *opts)
{
    int i;

    if (opts->bucket_cap_bytes < 0 || opts->n_bucket_caps < 0 || (opts->n_bucket_caps > 0 && opts->bucket_caps == NULL))
        return tti_fail(TUTTI_E_ARG, "reducer_create: bucket_cap_bytes is %lld, and there are %d bucket_caps%s",
                        (long long)opts->bucket_cap_bytes, opts->n_bucket_caps,
                        opts->bucket_caps == NULL ? " at NULL" : "");
    r->caps = (tti_caps){ .cap = opts->bucket_cap_bytes, .find_unused = opts->find_unused_parameters,
                          .static_graph = opts->static_graph };
    if (opts->n_bucket_caps == 0)
        return TUTTI_OK;
    r->cap_list = calloc((size_t)opts->n_bucket_caps, sizeof *r->cap_list);
    if (r->cap_list == NULL)
        return tti_fail(TUTTI_E_NOMEM, "no memory for %d caps of buckets", opts->n_bucket_caps);
    r->caps.list = r->cap_list;
    for (i = 0; i < opts->n_bucket_caps; i++) {
        if (opts->bucket_caps[i] <= 0)
            return tti_fail(TUTTI_E_ARG, "reducer_create: bucket_caps[%d] is %lld", i, (long long)opts->bucket_caps[i]);
        r->cap_list[i] = opts->bucket_caps[i];
    }
    r->caps.n_list = opts->n_bucket_caps;
    return TUTTI_OK;
}

static tutti_status take_options(tutti_reducer *r, const tutti_reducer_options *opts)
{
    r->views = opts->gradient_as_bucket_view;
    r->skips = opts->skip_all_reduce_unused_params;
    r->sync = true;
    r->divisor = r->size;
    r->reports = calloc(1, tti_reports_bytes(r->size));
    r->name = opts->name != NULL ? strdup(opts->name) : NULL;
    if (r->reports == NULL || (opts->name != NULL && r->name == NULL))
        return tti_fail(TUTTI_E_NOMEM, "no memory for a reducer on %d ranks", r->size);
    if (opts->static_graph && opts->find_unused_parameters)
        tti_log(TTI_LOG_WARN, "reducer: find_unused_parameters has no effect with static_graph");
    return take_caps(r, opts);
}

/* ---- making one ---- */

static tutti_status make_buckets(tutti_reducer *r)
{
    tti_layout          layout = { 0 };
    tti_reducer_bucket *buckets = NULL;
    tutti_status        st = tti_layout_for(r, NULL, &layout);
    int                 i;

    if (st == TUTTI_OK)
        st = tti_buckets_create(r, &layout, &buckets);
    if (st == TUTTI_OK)
        tti_buckets_adopt(r, &layout, buckets);
    tti_layout_release(&layout);
    for (i = 0; i < r->n && st == TUTTI_OK && r->views; i++)
        if (r->slots[i].grad == NULL)
            r->slots[i].grad = tti_place(r, i);
    return st;
}

static tutti_status fill(tutti_reducer *r, const tutti_reducer_param *params, int n, const tutti_reducer_options *opts)
{
    tutti_status st = take_options(r, opts);

    if (st == TUTTI_OK)
        st = take_params(r, params, n);
    if (st == TUTTI_OK)
        st = make_buckets(r);
    return st;
}

/* The group, which NULL may mean something else for on another thread. */
static tutti_status find_group(const char *op, tutti_group *given, tutti_reducer *place)
{
    place->group = given != NULL ? given : tutti_current_group();
    place->rank = place->group != NULL ? tutti_get_rank(place->group) : -1;
    place->size = place->rank >= 0 ? tutti_get_world_size(place->group) : 0;
    if (place->rank < 0)
        return tti_fail(TUTTI_E_STATE, "%s: this rank is not in the group, or there is none\n"
                                       "  next: tutti_init_process_group()", op);
    return TUTTI_OK;
}

tutti_status tutti_reducer_create(const tutti_reducer_param *params, int n_params, const tutti_reducer_options *opts,
                                  tutti_reducer **reducer_out)
{
    tutti_reducer_options known = TUTTI_REDUCER_OPTIONS;
    tutti_reducer         bare = { 0 };
    tutti_reducer        *r;
    tutti_status          st = TUTTI_OK;

    if (reducer_out == NULL)
        return tti_fail(TUTTI_E_ARG, "reducer_create: reducer_out is NULL");
    if (opts != NULL)
        st = tti_options_read(&known, sizeof known, opts, "TUTTI_REDUCER_OPTIONS");
    if (st == TUTTI_OK)
        st = find_group("reducer_create", known.group, &bare);
    if (st != TUTTI_OK)
        return st;
    r = calloc(1, sizeof *r);
    if (r != NULL) {
        *r = bare;
        tti_mutex_init(&r->lock);
        r->port = tti_port_system();
    }
    st = r != NULL ? fill(r, params, n_params, &known) : tti_fail(TUTTI_E_NOMEM, "no memory for a reducer");
    if (!known.skip_init_sync) /* whatever it came to: the others wait */
        st = tti_reducer_verify(r != NULL ? r : &bare, st);
    if (st == TUTTI_OK)
        *reducer_out = r;
    else
        tutti_reducer_free(r);
    return st;
}

void tutti_reducer_free(tutti_reducer *reducer)
{
    tutti_reducer *r = reducer;
    int            i;

    if (r == NULL)
        return;
    if (r->expect)
        tti_reducer_drain(r);
    if (r->join.flag_work != NULL)
        tutti_work_wait(r->join.flag_work);
    tutti_work_free(r->join.flag_work);
    if (r->hook != NULL && r->hook->free_state != NULL)
        r->hook->free_state(r->hook_state);
    tti_buckets_free(r->buckets, r->layout.n_buckets);
    tti_layout_release(&r->layout);
    for (i = 0; r->slots != NULL && i < r->n; i++) {
        free(r->slots[i].name);
        free(r->slots[i].sizes);
        free(r->slots[i].kept);
    }
    tti_mutex_release(&r->lock);
    free(r->slots);
    free(r->used);
    free(r->used_sum);
    free(r->arrived);
    free(r->cap_list);
    free(r->reports);
    free(r->name);
    free(r);
}

/* ---- looking, and setting ---- */

void tutti_reducer_set_sync(tutti_reducer *reducer, bool sync)
{
    if (reducer != NULL)
        reducer->sync = sync;
}

void *tutti_reducer_grad(const tutti_reducer *reducer, int index)
{
    return reducer != NULL && index >= 0 && index < reducer->n ? reducer->slots[index].grad : NULL;
}

tutti_status tutti_reducer_set_grad(tutti_reducer *reducer, int index, void *grad)
{
    if (reducer == NULL || index < 0 || index >= reducer->n)
        return tti_fail(TUTTI_E_ARG, "reducer_set_grad: there is no parameter %d", index);
    reducer->slots[index].grad = grad;
    return TUTTI_OK;
}

tutti_status tutti_reducer_update_process_group(tutti_reducer *reducer, tutti_group *group)
{
    static const char op[] = "reducer_update_process_group";
    tutti_reducer    *r = reducer, next = { 0 };
    tutti_status      st;
    void             *reports;

    if (r == NULL)
        return tti_fail(TUTTI_E_ARG, "%s: the reducer is NULL", op);
    if (r->join.scope != NULL || (r->expect && (r->begun || r->next > 0)))
        return tti_fail(TUTTI_E_STATE, "%s: %s is under way", op, r->join.scope != NULL ? "a join" : "a step");
    st = find_group(op, group, &next);
    if (st != TUTTI_OK)
        return st;
    reports = calloc(1, tti_reports_bytes(next.size));
    if (reports == NULL)
        return tti_fail(TUTTI_E_NOMEM, "%s: no memory for a group of %d ranks", op, next.size);
    free(r->reports);
    r->reports = reports;
    r->group = next.group;
    r->rank = next.rank;
    r->size = r->divisor = next.size;
    r->expect = false; /* of a forward without a backward */
    tti_comm_hook_tell_group(r->hook, r->hook_state);
    return TUTTI_OK;
}
