/* SPDX-License-Identifier: BSD-3-Clause
 *
 * sink.c - outputs that a loss may leave out.
 *
 * Why     The graph says which parameters the outputs depend on; it does not say which outputs the loss will be made of.
 *         What only a left-out output depends on would be waited for, and never come.
 * How     Each output goes through a node that also has edges to all other outputs. A backward through any of them
 *         so reaches everything: the gradient goes on unchanged to the one it belongs to, nothing to the others, and
 *         hooks fire there without a gradient. The node tells the ddp of the backward, too, so that it is finished
 *         even if it reaches no parameter at all.
 * True    Nodes outlive the ddp: they know it through a link that is cut. */
#include "ddp/ddp.h"

#include <stdlib.h>
#include <tutti/private.h>

enum { LINK = 0 }; /* the number of a node that has its link */

tti_ddp_link *tti_ddp_link_make(tutti_ddp *ddp)
{
    tti_ddp_link *link = calloc(1, sizeof *link);

    if (link != NULL) {
        atomic_init(&link->refs, 1);
        link->ddp = ddp;
    }
    return link;
}

void tti_ddp_link_release(tti_ddp_link *link)
{
    if (link != NULL && atomic_fetch_sub_explicit(&link->refs, 1, memory_order_acq_rel) == 1)
        free(link);
}

static tti_ddp_link *link_of(const tti_node *node)
{
    return (tti_ddp_link *)(intptr_t)node->number[LINK];
}

static void sink_apply(tti_node *node, tutti_tensor *grad, tutti_tensor **grad_out)
{
    tti_ddp_link *link = link_of(node);

    if (tti_wants(node, 0))
        grad_out[0] = tutti_tensor_retain(grad);
    if (link->ddp != NULL && tti_ddp_in_backward(link->ddp) != TUTTI_OK)
        (void)tti_refuse(TUTTI_E_NOMEM, "ddp", "no memory for the end of a backward");
}

static void sink_release(tti_node *node)
{
    tti_ddp_link_release(link_of(node));
}

static const tti_node_class sink_class = { .name = "ddp", .apply = sink_apply, .release = sink_release };

/* A tensor with the elements of outputs[k], behind a node; NULL and kept. */
static tutti_tensor *pass(tutti_ddp *ddp, tutti_tensor *const *outputs, int n, int k, tutti_tensor **inputs)
{
    tutti_tensor *y = tti_raw_detach(outputs[k]);
    tti_node *node;
    int at = 1;

    inputs[0] = outputs[k];
    for (int i = 0; i < n; i++)
        if (i != k)
            inputs[at++] = outputs[i];
    node = tti_record(&y, &sink_class, n, inputs);
    if (node != NULL) {
        atomic_fetch_add_explicit(&ddp->link->refs, 1, memory_order_relaxed);
        node->number[LINK] = (int64_t)(intptr_t)ddp->link;
    }
    return tti_temp(y);
}

tutti_status tti_ddp_sink(tutti_ddp *ddp, tutti_tensor **outputs, int n)
{
    tutti_tensor **room = tti_mem_zalloc(2 * (size_t)n * sizeof *room);
    tutti_tensor **inputs = room, **passed = room + n;
    tutti_status st = TUTTI_OK;

    if (room == NULL)
        return tti_fail(TUTTI_E_NOMEM, "ddp: no memory for %d outputs", n);
    for (int k = 0; k < n && st == TUTTI_OK; k++) {
        passed[k] = outputs[k];
        if (tutti_tensor_requires_grad(outputs[k])) {
            passed[k] = pass(ddp, outputs, n, k, inputs);
            st = passed[k] != NULL ? TUTTI_OK : tti_take_kept();
        }
    }
    for (int k = 0; k < n && st == TUTTI_OK; k++)
        outputs[k] = passed[k];
    tti_mem_free(room, 2 * (size_t)n * sizeof *room);
    return st;
}
