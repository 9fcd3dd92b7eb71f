/* SPDX-License-Identifier: BSD-3-Clause
 *
 * store_board.c - put once, wait, look: calls over the store's interface, one request each, or one for every 256 keys
 * of a list. */
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

/* Copy a value out, if it is one of bytes. */
static tutti_status take(const char *key, const tutti_bytes *value, void *out, size_t bytes)
{
    if (value->size != bytes)
        return tti_fail(TUTTI_E_STORE, "key '%s' has %zu bytes, not %zu: another version of tutti wrote it", key,
                        value->size, bytes);
    memcpy(out, value->data, bytes);
    return TUTTI_OK;
}

static tutti_status get(void *context, const char *key, void *out, size_t bytes, int64_t deadline_ns)
{
    tutti_bytes  value = { 0 };
    tutti_status st = tti_store_get_until(context, key, deadline_ns, &value);

    if (st == TUTTI_OK)
        st = take(key, &value, out, bytes);
    tutti_bytes_free(&value);
    return st;
}

static tutti_status get_all(void *context, const char *const *keys, int n, void *out, size_t bytes,
                            int64_t deadline_ns)
{
    tutti_bytes  values[TTI_BOARD_KEYS_MAX];
    tutti_status st = tti_store_multi_get_until(context, keys, (size_t)n, deadline_ns, values);
    int          i;

    if (st != TUTTI_OK)
        return st;
    for (i = 0; i < n; i++) {
        if (st == TUTTI_OK)
            st = take(keys[i], &values[i], (char *)out + (size_t)i * bytes, bytes);
        tutti_bytes_free(&values[i]);
    }
    return st;
}

static tutti_status has(void *context, const char *key, int64_t deadline_ns, bool *there_out)
{
    return tti_store_check_until(context, &key, 1, deadline_ns, there_out);
}

static tutti_status has_all(void *context, const char *const *keys, int n, int64_t deadline_ns, bool *all_out)
{
    return tti_store_check_until(context, keys, (size_t)n, deadline_ns, all_out);
}

static tutti_status read(void *context, const char *key, void *out, size_t most, int64_t deadline_ns, size_t *bytes_out)
{
    tutti_bytes  value = { 0 };
    tutti_status st = tti_store_get_until(context, key, deadline_ns, &value);

    if (st == TUTTI_OK) {
        *bytes_out = value.size < most ? value.size : most;
        memcpy(out, value.data, *bytes_out);
    }
    tutti_bytes_free(&value);
    return st;
}

static int64_t grace(void *context)
{
    return tti_store_grace(context);
}

static void heed(void *context, const _Atomic bool *stop)
{
    (void)context;
    tti_store_heed(stop);
}

static void heed_news(void *context, const _Atomic uint32_t *news)
{
    (void)context;
    tti_store_heed_news(news);
}

static void catch_up(void *context)
{
    (void)context;
    (void)tti_store_catch_up();
}

tti_board tti_store_board(tutti_store *store)
{
    return (tti_board){ .context = store, .put = put, .get = get, .has = has, .get_all = get_all,
                        .has_all = has_all, .read = read, .grace = grace, .heed = heed, .heed_news = heed_news, .catch_up = catch_up };
}
