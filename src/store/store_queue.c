/* SPDX-License-Identifier: BSD-3-Clause
 *
 * store_queue.c - a map of linked lists. */
#include "store/store_queue.h"

#include <stdlib.h>
#include <string.h>
#include <tutti/private.h>

typedef struct item {
    struct item *next;
    size_t       size;
    uint8_t      data[];
} item;

typedef struct queue {
    item   *first, *last;
    int64_t len;
} queue;

static size_t cost_of(const item *it)
{
    return sizeof *it + it->size;
}

void tti_store_queues_init(tti_store_queues *queues, tti_port *port)
{
    tti_map_init(&queues->map, port);
    queues->bytes = 0;
}

static void free_queue(queue *q)
{
    while (q->first != NULL) {
        item *next = q->first->next;

        free(q->first);
        q->first = next;
    }
    free(q);
}

static bool free_each(void *arg, const void *key, size_t key_size, const void *val, size_t val_size)
{
    queue *q;

    (void)arg;
    (void)key;
    (void)key_size;
    memcpy(&q, val, val_size);
    free_queue(q);
    return true;
}

void tti_store_queues_release(tti_store_queues *queues)
{
    tti_map_each(&queues->map, free_each, NULL);
    tti_map_release(&queues->map);
    queues->bytes = 0;
}

/* The queue of that name, made if need be. NULL: no memory (worded). */
static queue *queue_for(tti_store_queues *queues, const void *key, size_t key_size)
{
    queue *q = tti_map_get_ptr(&queues->map, key, key_size);

    if (q != NULL)
        return q;
    q = calloc(1, sizeof *q);
    if (q == NULL)
        tti_fail(TUTTI_E_NOMEM, "no memory for a queue");
    else if (tti_map_put_ptr(&queues->map, key, key_size, q) != TUTTI_OK) {
        free(q);
        q = NULL;
    }
    return q;
}

tutti_status tti_store_queues_push(tti_store_queues *queues, const void *key, size_t key_size,
                                   const void *val, size_t size)
{
    item  *it = malloc(sizeof *it + size);
    queue *q;

    if (it == NULL)
        return tti_fail(TUTTI_E_NOMEM, "no memory for %zu bytes of a queue", size);
    it->next = NULL;
    it->size = size;
    if (size > 0)
        memcpy(it->data, val, size);
    q = queue_for(queues, key, key_size);
    if (q == NULL) {
        free(it);
        return TUTTI_E_NOMEM;
    }
    *(q->last != NULL ? &q->last->next : &q->first) = it;
    q->last = it;
    q->len++;
    queues->bytes += cost_of(it);
    return TUTTI_OK;
}

bool tti_store_queues_front(const tti_store_queues *queues, const void *key, size_t key_size,
                            const void **val_out, size_t *size_out)
{
    const queue *q = tti_map_get_ptr(&queues->map, key, key_size);

    if (q == NULL)
        return false;
    *val_out = q->first->data;
    *size_out = q->first->size;
    return true;
}

void tti_store_queues_drop(tti_store_queues *queues, const void *key, size_t key_size)
{
    queue *q = tti_map_get_ptr(&queues->map, key, key_size);
    item  *it = q->first;

    q->first = it->next;
    q->len--;
    queues->bytes -= cost_of(it);
    free(it);
    if (q->first != NULL)
        return;
    tti_map_delete(&queues->map, key, key_size);
    free(q);
}

int64_t tti_store_queues_len(const tti_store_queues *queues, const void *key, size_t key_size)
{
    const queue *q = tti_map_get_ptr(&queues->map, key, key_size);

    return q != NULL ? q->len : 0;
}
