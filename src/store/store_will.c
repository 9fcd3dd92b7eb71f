/* SPDX-License-Identifier: BSD-3-Clause
 *
 * store_will.c - last words that a store says for a process which has ended.
 *
 * Why     Who waits for another in a store has no connection to it. The store has: it alone sees a process end that has told
 *         nobody yet where it is.
 * How     The will goes over a connection that is taken out of the pool, and has no other use: the kernel ends it with the process,
 *         and the server then appends what was left (store_serve.c). Nothing is asked of it until the will is taken back.
 * True    It is carried out once at most, and never before the process has ended, or lost its way to the store.
 * Fails   What cannot be taken back is said, although the process lives: whoever reads it must be able to bear that. */
#include "store/store.h"

#include <stdlib.h>
#include <string.h>
#include <tutti/private.h>
#include "store/store_front.h"
#include "store/tcp_call.h"

_Static_assert((int)TTI_STORE_WILL_BYTES == (int)TTI_STORE_WILL_MAX, "what is promised goes over the wire");

struct tti_store_will {
    tutti_store *keeper; /* the tcp store below all views */
    tti_handle   handle;
    uint32_t     led; /* as the pool's, when handle was taken */
    char         key[TUTTI_STORE_KEY_MAX + 1]; /* there */
};

/* The store below all views, and the key in it. */
static tutti_status find_keeper(tutti_store *store, const char *key, tti_store_will *will)
{
    tutti_status st = tti_store_check_key(key);

    if (st != TUTTI_OK)
        return st;
    memcpy(will->key, key, strlen(key) + 1);
    while (tti_prefix_store_key(store, will->key, will->key, sizeof will->key, &store))
        continue;
    if (tti_tcp_store_pool(store) == NULL)
        return tti_store_lacks(store, "wills");
    will->keeper = tutti_store_retain(store);
    return TUTTI_OK;
}

/* Without a value: the one that is there is taken back. */
static tutti_status tell(tti_store_will *will, const void *value, size_t size, int64_t deadline_ns)
{
    tti_tcp_call call;
    tti_tcp_key  room;
    tutti_status st;

    tti_tcp_call_begin(&call, tti_tcp_store_pool(will->keeper), TTI_STORE_WILL, will->key, deadline_ns);
    tti_tcp_call_key(&call, will->key, &room);
    call.request.value = (tti_slice){ .data = value, .size = size };
    if (will->handle == TTI_NO_HANDLE)
        will->led = call.led;
    call.handle = will->handle;
    call.led = will->led;
    will->handle = TTI_NO_HANDLE;
    st = tti_tcp_call_keep(&call);
    if (st != TUTTI_OK)
        return st;
    will->handle = call.handle;
    tutti_bytes_free(&call.body);
    return TUTTI_OK;
}

static void free_will(tti_store_will *will)
{
    tutti_store_close(will->keeper);
    free(will);
}

tutti_status tti_store_will_leave(tutti_store *store, const char *key, const void *value, size_t size, int64_t deadline_ns,
                                  tti_store_will **will_out)
{
    tti_store_will *will = calloc(1, sizeof *will);
    tutti_status    st;

    if (will == NULL)
        return tti_fail(TUTTI_E_NOMEM, "no memory for a will");
    will->handle = TTI_NO_HANDLE;
    st = size > 0 && size <= TTI_STORE_WILL_BYTES ? find_keeper(store, key, will)
                                                  : tti_fail(TUTTI_E_ARG, "a will of %zu bytes", size);
    if (st == TUTTI_OK)
        st = tell(will, value, size, deadline_ns);
    if (st == TUTTI_OK)
        *will_out = will;
    else
        free_will(will);
    return st;
}

void tti_store_will_take_back(tti_store_will *will, int64_t deadline_ns)
{
    if (will == NULL)
        return;
    if (tell(will, NULL, 0, deadline_ns) == TUTTI_OK)
        tti_tcp_pool_put_back(tti_tcp_store_pool(will->keeper), will->handle, will->led);
    free_will(will);
}
