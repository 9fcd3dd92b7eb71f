/* SPDX-License-Identifier: BSD-3-Clause
 *
 * store_board.c - put once, wait, look: three calls over the store's interface. */
#include "backend/native/store_board.h"

#include <string.h>
#include <tutti/private.h>
#include "store/store.h"

/* compare_set against "missing" stores only the first value and returns what is there. */
static tutti_status put(void *context, const char *key, const void *data, size_t bytes, int64_t deadline_ns)
{
    tutti_bytes  now = { 0 };
    bool         mine;
    tutti_status st = tti_store_compare_set_until(context, key, "", 0, data, bytes, deadline_ns, &now);

    if (st != TUTTI_OK)
        return st;
    mine = now.size == bytes && memcmp(now.data, data, bytes) == 0;
    tutti_bytes_free(&now);
    return mine ? TUTTI_OK : tti_fail(TUTTI_E_STATE, "key '%s' is in the store already", key);
}

static tutti_status get(void *context, const char *key, void *out, size_t bytes, int64_t deadline_ns)
{
    tutti_bytes  value = { 0 };
    tutti_status st = tti_store_get_until(context, key, deadline_ns, &value);

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

static tutti_status has(void *context, const char *key, int64_t deadline_ns, bool *there_out)
{
    return tti_store_check_until(context, &key, 1, deadline_ns, there_out);
}

tti_board tti_store_board(tutti_store *store)
{
    return (tti_board){ .context = store, .put = put, .get = get, .has = has };
}
