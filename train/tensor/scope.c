/* SPDX-License-Identifier: BSD-3-Clause
 *
 * scope.c - who drops the temporaries of an expression.
 *
 * How     Each thread has a stack of references, in chunks; a scope is a mark on that stack, and
 *         its end pops down to the mark. Beyond DEPTH open scopes no marks are set: the deepest
 *         marked one then owns what is made.
 * True    The stack is empty while no scope is open, so a thread leaves nothing behind. */
#include "tensor/tensor.h"

enum { DEPTH = 64, CHUNK = 510 };

typedef struct chunk {
    struct chunk *below;
    int n;
    tutti_tensor *item[CHUNK];
} chunk;

static _Thread_local struct {
    chunk *top;
    int64_t count;       /* references on the stack */
    int64_t mark[DEPTH]; /* count when the scope began */
    int depth;           /* open scopes, marked or not */
} stack;

void tutti_scope_begin(void)
{
    if (stack.depth < DEPTH)
        stack.mark[stack.depth] = stack.count;
    stack.depth++;
}

static tutti_tensor *pop(void)
{
    chunk *c = stack.top;
    tutti_tensor *t = c->item[--c->n];

    stack.count--;
    if (c->n == 0) {
        stack.top = c->below;
        tti_mem_free(c, sizeof *c);
    }
    return t;
}

void tutti_scope_end(void)
{
    if (stack.depth == 0)
        return;
    stack.depth--;
    if (stack.depth >= DEPTH)
        return;
    while (stack.count > stack.mark[stack.depth])
        tutti_tensor_release(pop());
}

static bool need_chunk(void)
{
    chunk *c;

    if (stack.top != NULL && stack.top->n < CHUNK)
        return true;
    c = tti_mem_alloc(sizeof *c);
    if (c == NULL)
        return false;
    c->below = stack.top;
    c->n = 0;
    stack.top = c;
    return true;
}

tutti_tensor *tti_temp(tutti_tensor *t)
{
    if (t == NULL || stack.depth == 0)
        return t;
    if (!need_chunk()) {
        tutti_tensor_release(t);
        return tti_poison(TUTTI_E_NOMEM, "scope", "no memory to note a temporary");
    }
    stack.top->item[stack.top->n++] = t;
    stack.count++;
    return t;
}
