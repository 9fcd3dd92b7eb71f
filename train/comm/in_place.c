/* SPDX-License-Identifier: BSD-3-Clause
 *
 * in_place.c - the collectives of tutti/group.h on tensors of any strides.
 *
 * How     A contiguous tensor is its own span. Any other one travels through a row-major copy: packed
 *         before, unpacked after, so that ranks may have different strides of one shape. Lists are
 *         packed and unpacked entry by entry.
 * True    As all operations in place they are never recorded, refused where a gradient would be lost,
 *         and raise the version of what they write. Outputs are written only when all went well,
 *         unless they are contiguous: then as tutti/group.h says. */
#include "autograd/autograd.h"
#include "comm/comm.h"

#include <stdlib.h>

typedef enum use { READ = 1, WRITE = 2, BOTH = 3 } use;

/* Tensors as spans. */
typedef struct packed {
    const char *what;
    use how;
    int n;
    tutti_tensor *const *ts; /* the caller's */
    tutti_tensor **flat;     /* owned: each itself, or its copy */
    tutti_span *spans;
} packed;

static tutti_status check(const char *what, const tutti_tensor *t, use how)
{
    if (t == NULL)
        return tti_refuse_null(what);
    if ((how & WRITE) != 0 && tti_repeats_elements(t))
        return tti_refuse(TUTTI_E_ARG, what,
                          "the tensor repeats elements"
                          "\n  next: pass a tutti_tensor_clone() of it");
    if (tutti_is_grad_enabled() && tutti_tensor_requires_grad(t))
        return tti_refuse(TUTTI_E_STATE, what,
                          "the tensor requires gradients, which would be lost"
                          "\n  next: use the form without '_', or tutti_tensor_detach() it");
    return TUTTI_OK;
}

/* Let go of what is packed; with ok put what was written where it belongs. */
static tutti_status close_pack(packed *p, bool ok)
{
    tutti_status status = TUTTI_OK;

    for (int i = 0; i < p->n && p->flat != NULL; i++) {
        if (ok && (p->how & WRITE) != 0 && p->flat[i] == p->ts[i])
            tti_version_bump(p->ts[i]);
        else if (ok && (p->how & WRITE) != 0 && status == TUTTI_OK)
            status = tti_raw_copy_(p->ts[i], p->flat[i]);
        tutti_tensor_release(p->flat[i]);
    }
    free(p->flat);
    free(p->spans);
    return status;
}

static tutti_tensor *pack(tutti_tensor *t, use how)
{
    if ((how & READ) != 0 || tutti_tensor_is_contiguous(t))
        return tti_raw_contiguous(t);
    return tti_raw_empty(t->dtype, t->nd, t->shape);
}

/* A failure is kept, and leaves nothing open. */
static tutti_status open_pack(packed *p, const char *what, tutti_tensor *const *ts, int n, use how)
{
    tutti_status status = TUTTI_OK;

    *p = (packed){ .what = what, .how = how, .ts = ts };
    if (ts == NULL || n <= 0)
        return TUTTI_OK; /* no list: the collective says whether there must be one */
    for (int i = 0; i < n && status == TUTTI_OK; i++)
        status = check(what, ts[i], how);
    if (status != TUTTI_OK)
        return status;
    p->flat = calloc((size_t)n, sizeof(tutti_tensor *));
    p->spans = calloc((size_t)n, sizeof *p->spans);
    p->n = p->flat != NULL && p->spans != NULL ? n : 0;
    if (p->n == 0)
        status = tti_refuse(TUTTI_E_NOMEM, what, "no memory for a list of %d", n);
    for (int i = 0; i < p->n && status == TUTTI_OK; i++) {
        p->flat[i] = pack(ts[i], how);
        if (p->flat[i] == NULL || tti_ready(p->flat[i]) != TUTTI_OK)
            status = tti_refused();
        else
            p->spans[i] = tutti_tensor_span(p->flat[i]);
    }
    if (status != TUTTI_OK)
        (void)close_pack(p, false);
    return status;
}

/* The collective ended with status: unpack, and keep what went wrong. b may be NULL. */
static tutti_status end(packed *a, packed *b, tutti_status status)
{
    tutti_status unpacked;

    if (status != TUTTI_OK)
        (void)tti_refuse_collective(status, a->what);
    unpacked = close_pack(a, status == TUTTI_OK);
    if (b != NULL)
        (void)close_pack(b, status == TUTTI_OK);
    return status != TUTTI_OK ? status : unpacked;
}

/* Two lists, of which the first is written. */
static tutti_status open_two(packed *out, packed *in, const char *what, tutti_tensor *const *outs,
                             int n_outs, tutti_tensor *const *ins, int n_ins)
{
    tutti_status status = open_pack(out, what, outs, n_outs, WRITE);

    if (status != TUTTI_OK)
        return status;
    status = open_pack(in, what, ins, n_ins, READ);
    if (status != TUTTI_OK)
        (void)close_pack(out, false);
    return status;
}

/* ---- one tensor ------------------------------------------------------------------------------- */

tutti_status tutti_tensor_all_reduce_(tutti_tensor *t, tutti_op op, tutti_group *group)
{
    packed p;
    const tutti_status status = open_pack(&p, "all_reduce_", &t, 1, BOTH);

    return status != TUTTI_OK ? status : end(&p, NULL, tutti_all_reduce(p.spans[0], op, group));
}

tutti_status tutti_tensor_broadcast_(tutti_tensor *t, int src, tutti_group *group)
{
    packed p;
    const tutti_status status = open_pack(&p, "broadcast_", &t, 1, BOTH);

    return status != TUTTI_OK ? status : end(&p, NULL, tutti_broadcast(p.spans[0], src, group));
}

tutti_status tutti_tensor_reduce_(tutti_tensor *t, int dst, tutti_op op, tutti_group *group)
{
    packed p;
    const tutti_status status = open_pack(&p, "reduce_", &t, 1, BOTH);

    return status != TUTTI_OK ? status : end(&p, NULL, tutti_reduce(p.spans[0], dst, op, group));
}

tutti_status tutti_tensor_send(tutti_tensor *t, int dst, int tag, tutti_group *group)
{
    packed p;
    const tutti_status status = open_pack(&p, "send", &t, 1, READ);

    return status != TUTTI_OK ? status : end(&p, NULL, tutti_send(p.spans[0], dst, tag, group));
}

tutti_status tutti_tensor_recv_(tutti_tensor *t, int src, int tag, tutti_group *group, int *src_out)
{
    packed p;
    const tutti_status status = open_pack(&p, "recv_", &t, 1, BOTH);

    return status != TUTTI_OK ? status
                              : end(&p, NULL, tutti_recv(p.spans[0], src, tag, group, src_out));
}

/* ---- two tensors ------------------------------------------------------------------------------ */

tutti_status tutti_tensor_all_gather_into_tensor_(tutti_tensor *out, tutti_tensor *in,
                                                  tutti_group *group)
{
    packed o, i;
    const tutti_status status = open_two(&o, &i, "all_gather_into_tensor_", &out, 1, &in, 1);

    if (status != TUTTI_OK)
        return status;
    return end(&o, &i, tutti_all_gather_into_tensor(o.spans[0], i.spans[0], group));
}

tutti_status tutti_tensor_reduce_scatter_tensor_(tutti_tensor *out, tutti_tensor *in, tutti_op op,
                                                 tutti_group *group)
{
    packed o, i;
    const tutti_status status = open_two(&o, &i, "reduce_scatter_tensor_", &out, 1, &in, 1);

    if (status != TUTTI_OK)
        return status;
    return end(&o, &i, tutti_reduce_scatter_tensor(o.spans[0], i.spans[0], op, group));
}

/* The elements of each block of t whose rows splits count; *elements_out NULL for NULL. */
static tutti_status elements_of(const char *what, const tutti_tensor *t, const int64_t *splits,
                                int n, int64_t **elements_out)
{
    int64_t row = 1;
    int64_t *elements;

    *elements_out = NULL;
    if (splits == NULL || n < 1)
        return TUTTI_OK;
    if (t->nd < 1)
        return tti_refuse(TUTTI_E_ARG, what, "a scalar tensor has no rows to be split");
    for (int d = 1; d < t->nd; d++)
        row *= t->shape[d];
    elements = malloc((size_t)n * sizeof *elements);
    if (elements == NULL)
        return tti_refuse(TUTTI_E_NOMEM, what, "no memory for %d splits", n);
    for (int r = 0; r < n; r++) {
        /* also of rows without elements, where the sum of elements would not tell */
        if (splits[r] < 0 || splits[r] > t->shape[0]) {
            free(elements);
            return tti_refuse(TUTTI_E_ARG, what, "split %lld of rank %d of %lld rows",
                              (long long)splits[r], r, (long long)t->shape[0]);
        }
        elements[r] = splits[r] * row;
    }
    *elements_out = elements;
    return TUTTI_OK;
}

tutti_status tutti_tensor_all_to_all_single_(tutti_tensor *out, tutti_tensor *in,
                                             const int64_t *out_splits, const int64_t *in_splits,
                                             tutti_group *group)
{
    static const char what[] = "all_to_all_single_";
    const int n = tutti_get_world_size(group);
    int64_t *outs = NULL, *ins = NULL;
    packed o, i;
    tutti_status status = open_two(&o, &i, what, &out, 1, &in, 1);

    if (status != TUTTI_OK)
        return status;
    status = elements_of(what, out, out_splits, n, &outs);
    if (status == TUTTI_OK)
        status = elements_of(what, in, in_splits, n, &ins);
    if (status == TUTTI_OK)
        status = tutti_all_to_all_single(o.spans[0], i.spans[0], outs, ins, group);
    free(outs);
    free(ins);
    return end(&o, &i, status);
}

/* ---- lists ------------------------------------------------------------------------------------ */

tutti_status tutti_tensor_all_gather_(tutti_tensor *const *outs, int n_outs, tutti_tensor *in,
                                      tutti_group *group)
{
    packed o, i;
    const tutti_status status = open_two(&o, &i, "all_gather_", outs, n_outs, &in, 1);

    if (status != TUTTI_OK)
        return status;
    return end(&o, &i, tutti_all_gather(o.spans, n_outs, i.spans[0], group));
}

tutti_status tutti_tensor_gather_(tutti_tensor *const *outs, int n_outs, tutti_tensor *in, int dst,
                                  tutti_group *group)
{
    packed o, i;
    const tutti_status status = open_two(&o, &i, "gather_", outs, n_outs, &in, 1);

    if (status != TUTTI_OK)
        return status;
    return end(&o, &i, tutti_gather(o.spans, n_outs, i.spans[0], dst, group));
}

tutti_status tutti_tensor_scatter_(tutti_tensor *out, tutti_tensor *const *ins, int n_ins, int src,
                                   tutti_group *group)
{
    packed o, i;
    const tutti_status status = open_two(&o, &i, "scatter_", &out, 1, ins, n_ins);

    if (status != TUTTI_OK)
        return status;
    return end(&o, &i, tutti_scatter(o.spans[0], i.spans, n_ins, src, group));
}

tutti_status tutti_tensor_reduce_scatter_(tutti_tensor *out, tutti_tensor *const *ins, int n_ins,
                                          tutti_op op, tutti_group *group)
{
    packed o, i;
    const tutti_status status = open_two(&o, &i, "reduce_scatter_", &out, 1, ins, n_ins);

    if (status != TUTTI_OK)
        return status;
    return end(&o, &i, tutti_reduce_scatter(o.spans[0], i.spans, n_ins, op, group));
}

tutti_status tutti_tensor_all_to_all_(tutti_tensor *const *outs, int n_outs,
                                      tutti_tensor *const *ins, int n_ins, tutti_group *group)
{
    packed o, i;
    const tutti_status status = open_two(&o, &i, "all_to_all_", outs, n_outs, ins, n_ins);

    if (status != TUTTI_OK)
        return status;
    return end(&o, &i, tutti_all_to_all(o.spans, n_outs, i.spans, n_ins, group));
}
