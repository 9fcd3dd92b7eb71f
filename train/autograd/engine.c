/* SPDX-License-Identifier: BSD-3-Clause
 *
 * engine.c - backward: run the tape from the roots to the leaves.
 *
 * How     1. Walk all nodes below the roots; count for each how many edges lead to it.
 *         2. A node is ready when all of them have delivered. Of the ready ones the latest made runs
 *            first (a heap); leaves, whose number is the largest, run at once. Ties: first ready first.
 *         3. Run it with the sum of what was delivered; fit each result to the input's shape and type
 *            and deliver it along the edge.
 * True    A node runs once, also if nothing but zeros (NULL) came: who waits for it must be served.
 *         The order depends on the graph alone, so sums have the same bits every time, and ranks
 *         with equal graphs finish their leaves in the same order.
 *         All state is in a task on the caller's stack: threads may run graphs that share nodes.
 *         A backward that a hook starts is a task of its own, run to its end before the other goes on.
 * Fails   The first failure ends the task; leaves reached before keep what they got, callbacks are not
 *         called. */
#include "autograd/autograd.h"

#include <string.h>
#include <tutti/private.h>

typedef struct entry {
    tti_node *node;     /* counted: hooks may drop the roots meanwhile */
    int deps;           /* edges that have not delivered yet */
    uint64_t turn;      /* when it became ready */
    tutti_tensor *grad; /* sum of what was delivered; counted; NULL: zero */
} entry;

/* What is to be called when a backward is through. */
typedef struct callback {
    tutti_status (*fn)(void *ctx);
    void *ctx;
} callback;

typedef struct task {
    entry *entries; /* in the order of their discovery */
    int n, cap;
    int *table; /* open addressing: entry number + 1 by the node's address; 0: free */
    int table_size;
    int *heap; /* entry numbers, best first */
    int n_heap;
    uint64_t turns;
    bool keep; /* TUTTI_RETAIN_GRAPH */
    callback *callbacks;
    int n_callbacks;
    struct task *outer; /* the backward, on this thread, from whose hook this one was called */
} task;

/* Per thread, as a backward runs on the thread that calls it: the innermost one. */
static _Thread_local task *running;

/* ---- nodes to entries ------------------------------------------------------------------------- */

static int *table_slot(const task *k, const tti_node *node)
{
    const uint64_t hash = (uint64_t)(uintptr_t)node * 0x9e3779b97f4a7c15u;
    int i = (int)(hash >> 33) & (k->table_size - 1);

    while (k->table[i] != 0 && k->entries[k->table[i] - 1].node != node)
        i = (i + 1) & (k->table_size - 1);
    return &k->table[i];
}

/* Twice the room for entries. The table stays at most half full. */
static tutti_status grow(task *k)
{
    const int cap = k->cap == 0 ? 64 : 2 * k->cap;
    entry *entries;
    int *table = tti_mem_zalloc((size_t)cap * 2 * sizeof *table);

    entries = table == NULL ? NULL
                            : tti_mem_grow(k->entries, (size_t)k->cap * sizeof *entries,
                                           (size_t)cap * sizeof *entries);
    if (entries == NULL) {
        tti_mem_free(table, (size_t)cap * 2 * sizeof *table);
        return tti_fail(TUTTI_E_NOMEM, "backward: no memory for a graph of %d nodes", cap);
    }
    tti_mem_free(k->table, (size_t)k->table_size * sizeof *table);
    k->entries = entries;
    k->table = table;
    k->table_size = 2 * cap;
    k->cap = cap;
    for (int i = 0; i < k->n; i++)
        *table_slot(k, k->entries[i].node) = i + 1;
    return TUTTI_OK;
}

/* The entry of a node, made if there is none. */
static tutti_status visit(task *k, tti_node *node, int *entry_out)
{
    int *slot;

    if (k->n == k->cap && grow(k) != TUTTI_OK)
        return TUTTI_E_NOMEM;
    slot = table_slot(k, node);
    if (*slot == 0) {
        k->entries[k->n] = (entry){ .node = tti_node_retain(node) };
        *slot = ++k->n;
    }
    *entry_out = *slot - 1;
    return TUTTI_OK;
}

/* Count the edges to every node below the entries there are. Entries double as the list of work. */
static tutti_status count_edges(task *k)
{
    int target;

    for (int i = 0; i < k->n; i++) {
        const tti_node *node = k->entries[i].node;

        for (int e = 0; e < node->n_edges; e++) {
            if (node->edge[e].node == NULL)
                continue;
            if (visit(k, node->edge[e].node, &target) != TUTTI_OK)
                return TUTTI_E_NOMEM;
            k->entries[target].deps++;
        }
    }
    return TUTTI_OK;
}

/* ---- the ready ones --------------------------------------------------------------------------- */

static bool before(const task *k, int a, int b)
{
    const entry *x = &k->entries[a], *y = &k->entries[b];

    if (x->node->seq != y->node->seq)
        return x->node->seq > y->node->seq;
    return x->turn < y->turn;
}

static void push(task *k, int number)
{
    int i = k->n_heap++;

    k->entries[number].turn = k->turns++;
    while (i > 0 && before(k, number, k->heap[(i - 1) / 2])) {
        k->heap[i] = k->heap[(i - 1) / 2];
        i = (i - 1) / 2;
    }
    k->heap[i] = number;
}

static int pop(task *k)
{
    const int best = k->heap[0];
    const int last = k->heap[--k->n_heap];
    int i = 0;

    for (;;) {
        int child = 2 * i + 1;

        if (child >= k->n_heap)
            break;
        if (child + 1 < k->n_heap && before(k, k->heap[child + 1], k->heap[child]))
            child++;
        if (!before(k, k->heap[child], last))
            break;
        k->heap[i] = k->heap[child];
        i = child;
    }
    k->heap[i] = last;
    return best;
}

/* ---- running ---------------------------------------------------------------------------------- */

/* Add a gradient, one reference of which is handed over, to what an entry has. NULL: nothing. */
static void deliver(entry *to, tutti_tensor *grad)
{
    if (to->grad == NULL || grad == NULL) {
        to->grad = to->grad == NULL ? grad : to->grad;
        return;
    }
    if (tti_is_sole(to->grad) && tutti_tensor_is_contiguous(to->grad)) {
        (void)tti_raw_op2_(TTI_ADD, to->grad, grad, 1.0);
    } else {
        tutti_tensor *sum = tti_raw_op2(TTI_ADD, to->grad, grad, 1.0);

        tutti_tensor_release(to->grad);
        to->grad = sum;
    }
    tutti_tensor_release(grad);
}

/* grad, one reference of which is handed over, in the shape and type of the input behind an edge. */
static tutti_tensor *fit(tutti_tensor *grad, const tti_edge *edge)
{
    tutti_tensor *sum, *y;

    if (grad == NULL)
        return NULL;
    sum = tti_raw_reduce_to(grad, edge->nd, edge->shape);
    tutti_tensor_release(grad);
    y = tti_raw_to(sum, edge->dtype);
    tutti_tensor_release(sum);
    return y;
}

static tutti_status check_saved(const tti_node *node)
{
    if (node->freed)
        return tti_fail(TUTTI_E_STATE,
                        "backward: what '%s' had saved was freed by an earlier backward"
                        "\n  next: pass TUTTI_RETAIN_GRAPH to the first of the two",
                        node->cls->name);
    for (int i = 0; i < TTI_SAVED; i++) {
        const tti_saved_tensor *s = &node->saved[i];

        if (s->tensor != NULL && tti_version_of(s->tensor) != s->version)
            return tti_fail(TUTTI_E_STATE,
                            "backward: a tensor of shape %s that '%s' had saved was changed in "
                            "place: version %u, saved at %u"
                            "\n  next: change a tutti_tensor_clone() of it",
                            tti_shape_str(s->tensor->nd, s->tensor->shape).s, node->cls->name,
                            tti_version_of(s->tensor), s->version);
    }
    return TUTTI_OK;
}

/* What a checkpoint dropped is computed again now. */
static tutti_status restore_saved(tti_node *node)
{
    tutti_status st = TUTTI_OK;

    for (int i = 0; i < TTI_SAVED && st == TUTTI_OK; i++)
        if (node->saved[i].region != NULL)
            st = tti_region_restore(&node->saved[i]);
    return st;
}

/* Run an operation's apply; out has room for a gradient for each edge. */
static tutti_status apply(tti_node *node, tutti_tensor *grad, tutti_tensor **out)
{
    tutti_status st = check_saved(node);

    if (st == TUTTI_OK)
        st = restore_saved(node);
    if (st != TUTTI_OK)
        return st;
    tutti_scope_begin();
    node->cls->apply(node, grad, out);
    tutti_scope_end();
    return tti_kept();
}

/* What hooks make of the gradient of the tensor that node computed; it may keep it. */
static tutti_status pass_hooks(tti_node *node, tutti_tensor **grad)
{
    const tutti_status st = node->hooks.n > 0 ? tti_hooks_replace(&node->hooks, grad) : TUTTI_OK;

    return st == TUTTI_OK && node->keeps_grad != NULL ? tti_keep_grad(node->keeps_grad, *grad) : st;
}

/* Run entry number `number` and serve those behind its edges. Hooks may run other backwards, which have
 * entries of their own. */
static tutti_status run_entry(task *k, int number)
{
    tutti_tensor *few[4] = { NULL };
    tti_node *node = k->entries[number].node;
    tutti_tensor *grad = k->entries[number].grad;
    tutti_tensor **out = few;
    tutti_status st = TUTTI_OK;

    k->entries[number].grad = NULL;
    if (node->leaf != NULL) {
        st = tti_accumulate(node->leaf, grad);
        return st != TUTTI_OK ? st : tti_kept();
    }
    if (grad != NULL)
        st = pass_hooks(node, &grad);
    if (st != TUTTI_OK) {
        tutti_tensor_release(grad);
        return st;
    }
    if (node->n_edges > 4)
        out = tti_mem_zalloc((size_t)node->n_edges * sizeof *out);
    if (out == NULL)
        st = tti_fail(TUTTI_E_NOMEM, "backward: no memory for %d gradients", node->n_edges);
    else if (grad != NULL)
        st = apply(node, grad, out);
    tutti_tensor_release(grad);
    if (!k->keep)
        tti_node_free_saved(node);
    for (int e = 0; e < node->n_edges && out != NULL; e++) {
        const int *slot = node->edge[e].node != NULL ? table_slot(k, node->edge[e].node) : NULL;

        if (slot == NULL) {
            tutti_tensor_release(out[e]);
            continue;
        }
        deliver(&k->entries[*slot - 1], fit(out[e], &node->edge[e]));
        if (--k->entries[*slot - 1].deps == 0)
            push(k, *slot - 1);
    }
    if (out != few)
        tti_mem_free(out, (size_t)node->n_edges * sizeof *out);
    return st != TUTTI_OK ? st : tti_kept();
}

/* ---- roots ------------------------------------------------------------------------------------ */

static tutti_status check_root(const tutti_tensor *root, const tutti_tensor *grad, int i)
{
    if (root == NULL)
        return tti_fail(TUTTI_E_ARG, "backward: root %d is NULL", i);
    if (!tutti_tensor_requires_grad(root))
        return tti_fail(TUTTI_E_ARG, "backward: root %d requires no gradient", i);
    if (grad == NULL && root->numel != 1)
        return tti_fail(TUTTI_E_ARG,
                        "backward: root %d has shape %s and no gradient is given"
                        "\n  next: pass one, or sum the root",
                        i, tti_shape_str(root->nd, root->shape).s);
    if (grad != NULL && (!tti_same_shape(root, grad) || root->dtype != grad->dtype))
        return tti_fail(TUTTI_E_ARG, "backward: root %d is %s of shape %s, its gradient %s of %s",
                        i, tutti_dtype_name(root->dtype), tti_shape_str(root->nd, root->shape).s,
                        tutti_dtype_name(grad->dtype), tti_shape_str(grad->nd, grad->shape).s);
    return TUTTI_OK;
}

/* Make the entry of a root and deliver its gradient. */
static tutti_status add_root(task *k, tutti_tensor *root, tutti_tensor *grad)
{
    tti_node *node = tti_gradient_node(root);
    tutti_status st = TUTTI_E_NOMEM;
    int number;

    if (node != NULL)
        st = visit(k, node, &number);
    tti_node_release(node); /* the entry holds it */
    if (st != TUTTI_OK)
        return st;
    if (grad != NULL)
        deliver(&k->entries[number], tutti_tensor_retain(grad));
    else
        deliver(&k->entries[number], tti_raw_full(root->dtype, root->nd, root->shape, 1.0));
    return tti_kept();
}

static tutti_status run(task *k, tutti_tensor *const *roots, tutti_tensor *const *grads, int n)
{
    tutti_status st = TUTTI_OK;

    for (int i = 0; i < n && st == TUTTI_OK; i++)
        st = add_root(k, roots[i], grads != NULL ? grads[i] : NULL);
    if (st == TUTTI_OK)
        st = count_edges(k);
    if (st != TUTTI_OK)
        return st;
    k->heap = tti_mem_alloc((size_t)k->n * sizeof *k->heap);
    if (k->heap == NULL)
        return tti_fail(TUTTI_E_NOMEM, "backward: no memory for a graph of %d nodes", k->n);
    for (int i = 0; i < k->n; i++)
        if (k->entries[i].deps == 0)
            push(k, i);
    while (k->n_heap > 0 && st == TUTTI_OK)
        st = run_entry(k, pop(k));
    for (int i = 0; i < k->n_callbacks && st == TUTTI_OK; i++) /* one may queue another */
        st = k->callbacks[i].fn(k->callbacks[i].ctx);
    return st;
}

static void task_free(task *k)
{
    for (int i = 0; i < k->n; i++) {
        tutti_tensor_release(k->entries[i].grad);
        tti_node_release(k->entries[i].node);
    }
    tti_mem_free(k->entries, (size_t)k->cap * sizeof *k->entries);
    tti_mem_free(k->table, (size_t)k->table_size * sizeof *k->table);
    tti_mem_free(k->heap, (size_t)k->n * sizeof *k->heap);
    tti_mem_free(k->callbacks, (size_t)k->n_callbacks * sizeof *k->callbacks);
}

tutti_status tutti_backward(tutti_tensor *const *roots, tutti_tensor *const *grads, int n,
                            unsigned flags)
{
    task k = { .keep = (flags & TUTTI_RETAIN_GRAPH) != 0 };
    tutti_status st = tti_take_kept();
    bool was;

    if (st == TUTTI_OK && (n < 1 || roots == NULL))
        st = tti_fail(TUTTI_E_ARG, "backward: no roots");
    for (int i = 0; i < n && st == TUTTI_OK; i++)
        st = check_root(roots[i], grads != NULL ? grads[i] : NULL, i);
    if (st != TUTTI_OK)
        return tti_backward_missed(st);
    was = tutti_set_grad_enabled(false);
    k.outer = running;
    running = &k;
    tti_backward_begins();
    st = run(&k, roots, grads, n);
    running = k.outer;
    if (tti_kept() != TUTTI_OK)
        st = tti_take_kept();
    task_free(&k);
    st = tti_backward_ends(st);
    tutti_set_grad_enabled(was);
    return st;
}

tutti_status tutti_backward_queue_callback(tutti_status (*fn)(void *ctx), void *ctx)
{
    callback *callbacks;

    if (fn == NULL)
        return tti_fail(TUTTI_E_ARG, "queue_callback: the callback is NULL");
    if (running == NULL)
        return tti_fail(TUTTI_E_STATE, "queue_callback: no backward is running on this thread");
    callbacks = tti_mem_grow(running->callbacks, (size_t)running->n_callbacks * sizeof *callbacks,
                             (size_t)(running->n_callbacks + 1) * sizeof *callbacks);
    if (callbacks == NULL)
        return tti_fail(TUTTI_E_NOMEM, "queue_callback: no memory for %d callbacks",
                        running->n_callbacks + 1);
    running->callbacks = callbacks;
    callbacks[running->n_callbacks++] = (callback){ fn, ctx };
    return TUTTI_OK;
}

tutti_status tutti_backward_reaches(tutti_tensor *const *roots, int n, tutti_tensor *const *leaves,
                                    int n_leaves, bool *reached_out)
{
    tutti_status st = TUTTI_OK;
    task k = { 0 };
    int number;

    for (int i = 0; i < n && st == TUTTI_OK; i++) {
        tti_node *node = tutti_tensor_requires_grad(roots[i]) ? tti_gradient_node(roots[i]) : NULL;

        if (node != NULL)
            st = visit(&k, node, &number);
        tti_node_release(node);
    }
    if (st == TUTTI_OK)
        st = count_edges(&k);
    for (int i = 0; i < n_leaves && st == TUTTI_OK; i++) {
        const tti_node *node = tti_accumulator_of(leaves[i]);

        reached_out[i] = node != NULL && k.n > 0 && *table_slot(&k, node) != 0;
    }
    task_free(&k);
    return st;
}

tutti_status tutti_tensor_backward(tutti_tensor *root)
{
    return tutti_backward(&root, NULL, 1, 0);
}
