/* SPDX-License-Identifier: BSD-3-Clause
 *
 * store/store_queue.h - named queues of values: first in, first out.
 *
 * True    Not locked: the owner guards it. A queue exists while it holds something. Zeroed memory
 *         can be released, nothing else. */
#ifndef TTI_STORE_STORE_QUEUE_H
#define TTI_STORE_STORE_QUEUE_H

#include "base/map.h"

typedef struct tti_store_queues {
    tti_map map;   /* name -> its queue */
    size_t  bytes; /* of all values, and a fixed sum for each */
} tti_store_queues;

void tti_store_queues_init(tti_store_queues *queues, tti_port *port);
void tti_store_queues_release(tti_store_queues *queues);

/** Put a copy of val[size] at the end.
 * @errors TUTTI_E_NOMEM  nothing was changed */
tutti_status tti_store_queues_push(tti_store_queues *queues, const void *key, size_t key_size,
                                   const void *val, size_t size);
/** The value at the front, until it is dropped; false: none. */
bool tti_store_queues_front(const tti_store_queues *queues, const void *key, size_t key_size,
                            const void **val_out, size_t *size_out);
/** Remove the value at the front, which must be there. */
void tti_store_queues_drop(tti_store_queues *queues, const void *key, size_t key_size);
/** How many values there are; 0: no such queue. */
int64_t tti_store_queues_len(const tti_store_queues *queues, const void *key, size_t key_size);

#endif
