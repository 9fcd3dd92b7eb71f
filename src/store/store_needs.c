/* SPDX-License-Identifier: BSD-3-Clause
 *
 * store_needs.c - the list of store_needs.h. */
#include "store/store_needs.h"

#include <string.h>
#include <tutti/private.h>

void tti_store_needs_init(tti_store_needs *needs, tti_port *port)
{
    needs->port = port;
    tti_mutex_init(&needs->lock);
    tti_map_init(&needs->map, port);
}

void tti_store_needs_release(tti_store_needs *needs)
{
    tti_map_release(&needs->map);
    tti_mutex_release(&needs->lock);
}

/* Lock held. False: there was none. */
static bool take_out(tti_store_needs *needs, const void *key, size_t bytes)
{
    uint32_t *n_of = tti_map_get_ptr(&needs->map, key, bytes);

    if (n_of == NULL)
        return false;
    --*n_of;
    return tti_map_delete(&needs->map, key, bytes);
}

void tti_store_needs_begin(tti_store_needs *needs, const void *key, size_t bytes, uint32_t *n_of)
{
    if (*n_of >= TTI_STORE_NEEDS_MAX)
        return;
    tti_lock(&needs->lock);
    (void)take_out(needs, key, bytes);
    if (tti_map_put_ptr(&needs->map, key, bytes, n_of) == TUTTI_OK)
        ++*n_of;
    else
        tti_log(TTI_LOG_DEBUG, "store: %s: whoever serves it may end before a client has its answers", tutti_last_error());
    tti_unlock(&needs->lock);
}

void tti_store_needs_end(tti_store_needs *needs, const void *key, size_t bytes)
{
    bool was_there;

    tti_lock(&needs->lock);
    was_there = take_out(needs, key, bytes);
    tti_unlock(&needs->lock);
    if (was_there)
        tti_event_signal(needs->port, &needs->fewer);
}

/* A look for one that is below a key, or of a connection. */
typedef struct search {
    const void     *below;
    size_t          bytes;
    const uint32_t *n_of; /* NULL: any */
    const void     *found;
    size_t          found_bytes;
} search;

/* False ends the look. */
static bool look_at(void *arg, const void *key, size_t bytes, const void *val, size_t val_bytes)
{
    search         *s = arg;
    const uint32_t *n_of = NULL;

    memcpy(&n_of, val, val_bytes < sizeof n_of ? val_bytes : sizeof n_of);
    if (bytes < s->bytes || memcmp(key, s->below, s->bytes) != 0 || (s->n_of != NULL && s->n_of != n_of))
        return true;
    s->found = key;
    s->found_bytes = bytes;
    return false;
}

/* Lock held. */
static bool find(const tti_store_needs *needs, search *s)
{
    s->found = NULL;
    tti_map_each(&needs->map, look_at, s);
    return s->found != NULL;
}

void tti_store_needs_drop(tti_store_needs *needs, const uint32_t *n_of)
{
    search s = { .below = "", .n_of = n_of };

    if (*n_of == 0)
        return;
    tti_lock(&needs->lock);
    while (find(needs, &s))
        (void)take_out(needs, s.found, s.found_bytes);
    tti_unlock(&needs->lock);
    tti_event_signal(needs->port, &needs->fewer);
}

bool tti_store_needs_await(tti_store_needs *needs, const void *below, size_t bytes, int64_t until_ns)
{
    for (;;) {
        const uint32_t seen = tti_event_now(&needs->fewer);
        search         s = { .below = below, .bytes = bytes };
        bool           is_needed;

        tti_lock(&needs->lock);
        is_needed = find(needs, &s);
        tti_unlock(&needs->lock);
        if (!is_needed)
            return true;
        if (tti_port_now(needs->port) >= until_ns)
            return false;
        tti_event_wait(needs->port, &needs->fewer, seen, until_ns);
    }
}
