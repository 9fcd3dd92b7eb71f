/* SPDX-License-Identifier: BSD-3-Clause
 *
 * record.c - the tape: one node for every operation that gradients may flow back through.
 *
 * How     result --grad_fn--> node --edge--> node of each input. Inputs are held as they are; a result
 *         is held as an alias without history, for a node that held its own result would never be
 *         freed. seq numbers the nodes of a thread in the order of their making.
 * True    Edges point to older nodes only, so there is no cycle. Freeing is a loop, not a recursion:
 *         a chain of a million operations does not use up the stack. */
#include "autograd/autograd.h"

#include <string.h>

/* Per thread: recording is a matter of the code that runs, and order only matters within a graph,
 * which one thread makes. */
static _Thread_local bool grad_off;
static _Thread_local uint64_t next_seq;

bool tutti_is_grad_enabled(void)
{
    return !grad_off;
}

bool tutti_set_grad_enabled(bool on)
{
    const bool was = !grad_off;

    grad_off = !on;
    return was;
}

static size_t node_bytes(int n_edges)
{
    return sizeof(tti_node) + (size_t)n_edges * sizeof(tti_edge);
}

tti_node *tti_node_make(const tti_node_class *cls, int n_edges)
{
    tti_node *node = tti_mem_zalloc(node_bytes(n_edges));

    if (node == NULL) {
        (void)tti_refuse(TUTTI_E_NOMEM, cls->name, "no memory to record it");
        return NULL;
    }
    node->cls = cls;
    atomic_init(&node->refs, 1);
    node->n_edges = n_edges;
    return node;
}

tti_node *tti_node_retain(tti_node *node)
{
    if (node != NULL)
        atomic_fetch_add_explicit(&node->refs, 1, memory_order_relaxed);
    return node;
}

void tti_node_free_saved(tti_node *node)
{
    for (int i = 0; i < TTI_SAVED; i++) {
        if (node->saved[i].tensor == NULL && node->saved[i].region == NULL)
            continue;
        tutti_tensor_release(node->saved[i].tensor);
        tti_region_release(node->saved[i].region);
        node->saved[i] = (tti_saved_tensor){ 0 };
        node->freed = true;
    }
}

static void destroy(tti_node *node)
{
    tti_node_free_saved(node);
    if (node->cls->release != NULL)
        node->cls->release(node);
    for (int i = 0; i < node->n_edges; i++)
        tti_node_release(node->edge[i].node);
    tti_hooks_free(&node->hooks);
    if (node->leaf != NULL) {
        tti_leaf_forget(node->leaf, node);
        tutti_tensor_release(node->leaf);
    }
    tti_mem_free(node, node_bytes(node->n_edges));
}

void tti_node_release(tti_node *node)
{
    static _Thread_local tti_node *waiting; /* to be freed by the outermost call on this thread */
    static _Thread_local bool busy;

    if (node == NULL || atomic_fetch_sub_explicit(&node->refs, 1, memory_order_acq_rel) != 1)
        return;
    node->free_next = waiting;
    waiting = node;
    if (busy)
        return;
    busy = true;
    while (waiting != NULL) {
        tti_node *next = waiting;

        waiting = next->free_next;
        destroy(next);
    }
    busy = false;
}

static bool any_requires_grad(int n, tutti_tensor *const *inputs)
{
    for (int i = 0; i < n; i++)
        if (tutti_tensor_requires_grad(inputs[i]))
            return true;
    return false;
}

/* Fill the edge to t. False when out of memory. */
static bool connect(tti_edge *edge, tutti_tensor *t)
{
    if (!tutti_tensor_requires_grad(t))
        return true;
    edge->node = tti_gradient_node(t);
    edge->dtype = t->dtype;
    edge->nd = t->nd;
    memcpy(edge->shape, t->shape, sizeof edge->shape);
    return edge->node != NULL;
}

tti_node *tti_record(tutti_tensor **y, const tti_node_class *cls, int n,
                     tutti_tensor *const *inputs)
{
    tti_grad_info *info;
    tti_node *node;
    bool connected = true;

    if (*y == NULL || grad_off || !tti_is_floating((*y)->dtype) || !any_requires_grad(n, inputs))
        return NULL;
    node = tti_node_make(cls, n);
    info = node != NULL ? tti_info_make(*y) : NULL;
    for (int i = 0; i < n && node != NULL && connected; i++)
        connected = connect(&node->edge[i], inputs[i]);
    if (info == NULL || !connected) {
        tti_node_release(node);
        tutti_tensor_release(*y);
        *y = NULL;
        return NULL;
    }
    node->seq = next_seq++;
    info->requires_grad = true;
    info->grad_fn = node;
    return node;
}

void tti_save(tti_node *node, int slot, tutti_tensor *t)
{
    if (tti_region_takes(&node->saved[slot], t))
        return;
    node->saved[slot].tensor = tutti_tensor_retain(t);
    node->saved[slot].version = tti_version_of(t);
}

void tti_save_result(tti_node *node, int slot, tutti_tensor *y)
{
    tutti_tensor *alias = tti_raw_detach(y); /* NULL is kept as the failure */

    if (alias != NULL)
        tti_save(node, slot, alias);
    tutti_tensor_release(alias);
}
