/* SPDX-License-Identifier: BSD-3-Clause
 *
 * store_board.c - put once, wait, look: three calls over the store's interface. */
#include "backend/native/store_board.h"

#include <string.h>
#include <tutti/private.h>

/* compare_set against "missing" stores only the first value and returns what is there. */
static tutti_status put(void *context, const char *key, const void *data, size_t bytes)
{
    tutti_bytes  now = { 0 };
    bool         mine;
    tutti_status st = tutti_store_compare_set(context, key, "", 0, data, bytes, &now);

    if (st != TUTTI_OK)
        return st;
    mine = now.size == bytes && memcmp(now.data, data, bytes) == 0;
    tutti_bytes_free(&now);
    return mine ? TUTTI_OK : tti_fail(TUTTI_E_STATE, "key '%s' is in the store already", key);
}

static tutti_status get(void *context, const char *key, void *out, size_t bytes, int64_t deadline_ns)
{
    int64_t      left_ms = tti_left_ms(tti_port_system(), deadline_ns);
    tutti_bytes  value = { 0 };
    tutti_status st;

    if (left_ms == 0)
        left_ms = 1; /* 0 would mean the store's default */
    st = tutti_store_get(context, key, left_ms, &value);
    if (st != TUTTI_OK)
        return st;
    if (value.size != bytes)
        st = tti_fail(TUTTI_E_STORE, "key '%s' has %zu bytes, not %zu: another version of tutti wrote it", key,
                      value.size, bytes);
    else
        memcpy(out, value.data, bytes);
    tutti_bytes_free(&value);
    return st;
}

static tutti_status has(void *context, const char *key, bool *there_out)
{
    return tutti_store_check(context, &key, 1, there_out);
}

tti_board tti_store_board(tutti_store *store)
{
    return (tti_board){ .context = store, .put = put, .get = get, .has = has };
}
