/* SPDX-License-Identifier: BSD-3-Clause
 *
 * store/store_needs.h - who still needs answers of a store that may be about to end.
 *
 * Why     Who makes something with others asks the store until it has what all have left there. Whoever serves the store may
 *         have all of it sooner, and be the one that ends first.
 * How     A client says that it needs the store under a key of its own, and that it does no more (NEED, store_proto.h); the
 *         server keeps a list. Whoever serves looks there before it goes: until nothing is left below a key, or time is up.
 * True    A need ends with the connection that told of it, so that nobody waits for a process that is gone.
 *         The server's thread begins and ends needs; any thread looks. lock guards the map; `fewer` is signalled behind every
 *         change that takes something out of it. */
#ifndef TTI_STORE_STORE_NEEDS_H
#define TTI_STORE_STORE_NEEDS_H

#include "base/map.h"
#include "base/thread.h"

enum { TTI_STORE_NEEDS_MAX = 1024 /* of one connection; of more nothing is known */ };

typedef struct tti_store_needs {
    tti_port *port;
    tti_mutex lock;
    tti_map   map; /* key -> the count of needs of the connection that told of it, which names that one */
    tti_event fewer;
} tti_store_needs;

void tti_store_needs_init(tti_store_needs *needs, tti_port *port);
void tti_store_needs_release(tti_store_needs *needs);

/** A connection, whose needs are counted in n_of, needs the store under key. Another one that has said so has it no more. */
void tti_store_needs_begin(tti_store_needs *needs, const void *key, size_t bytes, uint32_t *n_of);
/** It is over, whoever says so. */
void tti_store_needs_end(tti_store_needs *needs, const void *key, size_t bytes);
/** The connection is gone. */
void tti_store_needs_drop(tti_store_needs *needs, const uint32_t *n_of);

/** Wait until nobody needs the store under a key that begins with below; false: somebody does, and it is until_ns. */
bool tti_store_needs_await(tti_store_needs *needs, const void *below, size_t bytes, int64_t until_ns);

#endif
