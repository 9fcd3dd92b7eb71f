/* SPDX-License-Identifier: BSD-3-Clause
 *
 * in_group.c - rooted collectives and messages with the peer as a rank of the group.
 *
 * Each translates the peer and is then the call that takes a global rank. Groups that are none, or
 * not this rank's, are left to that call, which has the words for them. */
#include "group/group.h"

#include <tutti/private.h>

static tutti_status translate(const char *what, const tutti_group *group, int group_rank,
                              int *rank_out)
{
    const tutti_group *g = tti_group_peek(group);

    if (g != NULL && (group_rank < 0 || group_rank >= g->size))
        return tti_fail(TUTTI_E_ARG, "%s on group '%s': group rank %d is outside of 0 .. %d\n"
                                     "  next: number members by their place in the group, or use the twin without _in_group",
                        what, g->name, group_rank, g->size - 1);
    *rank_out = g != NULL ? g->ranks[group_rank] : group_rank;
    return TUTTI_OK;
}

/* The same for a receive, which may come from anybody. */
static tutti_status translate_source(const char *what, const tutti_group *group, int group_rank,
                                     int *rank_out)
{
    if (group_rank != TUTTI_ANY_SOURCE)
        return translate(what, group, group_rank, rank_out);
    *rank_out = TUTTI_ANY_SOURCE;
    return TUTTI_OK;
}

/* ---- collectives ---- */

tutti_status tutti_broadcast_in_group(tutti_span buf, int group_src, tutti_group *group)
{
    int          src = -1;
    tutti_status st = translate("broadcast_in_group", group, group_src, &src);

    return st == TUTTI_OK ? tutti_broadcast(buf, src, group) : st;
}

tutti_status tutti_broadcast_in_group_async(tutti_span buf, int group_src, tutti_group *group,
                                            tutti_work **work_out)
{
    int          src = -1;
    tutti_status st = translate("broadcast_in_group_async", group, group_src, &src);

    return st == TUTTI_OK ? tutti_broadcast_async(buf, src, group, work_out) : st;
}

tutti_status tutti_reduce_in_group(tutti_span buf, int group_dst, tutti_op op, tutti_group *group)
{
    int          dst = -1;
    tutti_status st = translate("reduce_in_group", group, group_dst, &dst);

    return st == TUTTI_OK ? tutti_reduce(buf, dst, op, group) : st;
}

tutti_status tutti_reduce_in_group_async(tutti_span buf, int group_dst, tutti_op op,
                                         tutti_group *group, tutti_work **work_out)
{
    int          dst = -1;
    tutti_status st = translate("reduce_in_group_async", group, group_dst, &dst);

    return st == TUTTI_OK ? tutti_reduce_async(buf, dst, op, group, work_out) : st;
}

tutti_status tutti_gather_in_group(const tutti_span *outs, int n_outs, tutti_span in, int group_dst,
                                   tutti_group *group)
{
    int          dst = -1;
    tutti_status st = translate("gather_in_group", group, group_dst, &dst);

    return st == TUTTI_OK ? tutti_gather(outs, n_outs, in, dst, group) : st;
}

tutti_status tutti_gather_in_group_async(const tutti_span *outs, int n_outs, tutti_span in,
                                         int group_dst, tutti_group *group, tutti_work **work_out)
{
    int          dst = -1;
    tutti_status st = translate("gather_in_group_async", group, group_dst, &dst);

    return st == TUTTI_OK ? tutti_gather_async(outs, n_outs, in, dst, group, work_out) : st;
}

tutti_status tutti_scatter_in_group(tutti_span out, const tutti_span *ins, int n_ins, int group_src,
                                    tutti_group *group)
{
    int          src = -1;
    tutti_status st = translate("scatter_in_group", group, group_src, &src);

    return st == TUTTI_OK ? tutti_scatter(out, ins, n_ins, src, group) : st;
}

tutti_status tutti_scatter_in_group_async(tutti_span out, const tutti_span *ins, int n_ins,
                                          int group_src, tutti_group *group, tutti_work **work_out)
{
    int          src = -1;
    tutti_status st = translate("scatter_in_group_async", group, group_src, &src);

    return st == TUTTI_OK ? tutti_scatter_async(out, ins, n_ins, src, group, work_out) : st;
}

tutti_status tutti_gather_v_in_group(const tutti_span *outs, int n_outs, tutti_span in, int group_dst,
                                     tutti_group *group)
{
    int          dst = -1;
    tutti_status st = translate("gather_v_in_group", group, group_dst, &dst);

    return st == TUTTI_OK ? tutti_gather_v(outs, n_outs, in, dst, group) : st;
}

tutti_status tutti_gather_v_in_group_async(const tutti_span *outs, int n_outs, tutti_span in,
                                           int group_dst, tutti_group *group, tutti_work **work_out)
{
    int          dst = -1;
    tutti_status st = translate("gather_v_in_group_async", group, group_dst, &dst);

    return st == TUTTI_OK ? tutti_gather_v_async(outs, n_outs, in, dst, group, work_out) : st;
}

tutti_status tutti_scatter_v_in_group(tutti_span out, const tutti_span *ins, int n_ins, int group_src,
                                      tutti_group *group)
{
    int          src = -1;
    tutti_status st = translate("scatter_v_in_group", group, group_src, &src);

    return st == TUTTI_OK ? tutti_scatter_v(out, ins, n_ins, src, group) : st;
}

tutti_status tutti_scatter_v_in_group_async(tutti_span out, const tutti_span *ins, int n_ins,
                                            int group_src, tutti_group *group, tutti_work **work_out)
{
    int          src = -1;
    tutti_status st = translate("scatter_v_in_group_async", group, group_src, &src);

    return st == TUTTI_OK ? tutti_scatter_v_async(out, ins, n_ins, src, group, work_out) : st;
}

/* ---- messages ---- */

tutti_status tutti_send_in_group(tutti_span buf, int group_dst, int tag, tutti_group *group)
{
    int          dst = -1;
    tutti_status st = translate("send_in_group", group, group_dst, &dst);

    return st == TUTTI_OK ? tutti_send(buf, dst, tag, group) : st;
}

tutti_status tutti_recv_in_group(tutti_span buf, int group_src, int tag, tutti_group *group,
                                 int *src_out)
{
    int          src = -1;
    tutti_status st = translate_source("recv_in_group", group, group_src, &src);

    return st == TUTTI_OK ? tutti_recv(buf, src, tag, group, src_out) : st;
}

tutti_status tutti_isend_in_group(tutti_span buf, int group_dst, int tag, tutti_group *group,
                                  tutti_work **work_out)
{
    int          dst = -1;
    tutti_status st = translate("isend_in_group", group, group_dst, &dst);

    return st == TUTTI_OK ? tutti_isend(buf, dst, tag, group, work_out) : st;
}

tutti_status tutti_irecv_in_group(tutti_span buf, int group_src, int tag, tutti_group *group,
                                  tutti_work **work_out)
{
    int          src = -1;
    tutti_status st = translate_source("irecv_in_group", group, group_src, &src);

    return st == TUTTI_OK ? tutti_irecv(buf, src, tag, group, work_out) : st;
}
