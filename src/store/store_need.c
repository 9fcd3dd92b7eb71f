/* SPDX-License-Identifier: BSD-3-Clause
 *
 * store_need.c - telling whoever serves a store that it is still needed, and waiting for those that do.
 *
 * Why     What several processes make by way of a store is whole for one of them first. If that one serves the store and ends it, the
 *         others lose what they have come for.
 * How     Each says NEED in front of its first request, and takes that back behind its last one (store_proto.h); neither has an
 *         answer. Whoever serves the store looks at the server's list (store_needs.h) before it goes on, which asks nobody.
 * True    Who has left a piece in the store has said before that it needs it. So whoever serves and has read all pieces
 *         knows of everybody who still asks.
 *         A need ends with its connection: a process that has ended is not waited for.
 * Fails   A need that is lost, for want of memory or with a connection that was given up, is one that nobody waits for: as if
 *         this file was not there. */
#include "store/store.h"

#include <stdlib.h>
#include <string.h>
#include <tutti/private.h>
#include "store/store_front.h"
#include "store/store_server.h"
#include "store/tcp_call.h"

struct tti_store_need {
    tutti_store *keeper;                       /* the tcp store below all views */
    char         key[TUTTI_STORE_KEY_MAX + 1]; /* there */
};

/* The store below all views, with the key there. NULL: it is no tcp store, or the key is none. */
static tutti_store *keeper_of(tutti_store *store, const char *key, char out[TUTTI_STORE_KEY_MAX + 1])
{
    if (strlen(key) > TUTTI_STORE_KEY_MAX)
        return NULL;
    strcpy(out, key);
    while (tti_prefix_store_key(store, out, out, TUTTI_STORE_KEY_MAX + 1, &store))
        continue;
    return tti_tcp_store_pool(store) != NULL ? store : NULL;
}

tti_store_need *tti_store_need_begin(tutti_store *store, const char *key)
{
    tti_store_need *need = calloc(1, sizeof *need);
    tutti_store    *keeper = need != NULL ? keeper_of(store, key, need->key) : NULL;

    if (keeper == NULL || tti_tcp_store_server(keeper) != NULL) {
        free(need);
        return NULL;
    }
    need->keeper = tutti_store_retain(keeper);
    tti_tcp_call_need(tti_tcp_store_pool(keeper), need->key);
    return need;
}

/* The same connection, as a rule: the latest one that was given back. */
static void say_over(const tti_store_need *need)
{
    tti_tcp_pool *pool = tti_tcp_store_pool(need->keeper);
    tti_tcp_call  call;
    tti_tcp_key   room;

    tti_tcp_call_begin(&call, pool, TTI_STORE_NEED, need->key, tti_port_now(pool->port) + tti_tcp_pool_grace_ns(pool));
    tti_tcp_call_key(&call, need->key, &room);
    call.request.id = atomic_fetch_add(&pool->next_id, 1) + 1;
    if (tti_tcp_call_say(&call) != TUTTI_OK)
        tti_log(TTI_LOG_DEBUG, "a store was not told that it is needed no more: %s", tutti_last_error());
}

void tti_store_need_end(tti_store_need *need)
{
    if (need == NULL)
        return;
    if (!tti_tcp_call_need_not())
        say_over(need);
    tutti_store_close(need->keeper);
    free(need);
}

bool tti_store_await_unneeded(tutti_store *store, tutti_store *server, const char *below, int64_t until_ns)
{
    char                key[TUTTI_STORE_KEY_MAX + 1];
    tti_tcp_key         room;
    tutti_store        *keeper = keeper_of(store, below, key);
    tutti_store_server *serves = keeper != NULL ? tti_tcp_store_server(keeper) : NULL;
    tti_tcp_call        call;

    if (serves == NULL && keeper != NULL && server != NULL)
        serves = tti_tcp_store_server(server);
    if (serves == NULL)
        return true;
    tti_tcp_call_begin(&call, tti_tcp_store_pool(keeper), TTI_STORE_NEED, key, until_ns);
    tti_tcp_call_key(&call, key, &room); /* as it is over the wire */
    return tti_store_server_await_unneeded(serves, call.request.keys[0].data, call.request.keys[0].size, until_ns);
}
