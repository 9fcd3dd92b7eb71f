/* SPDX-License-Identifier: BSD-3-Clause
 *
 * store_value.c - values of stores: numbers as text, comparing, copies, lists of names. */
#include "store/store_value.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tutti/private.h>

tutti_status tti_bytes_copy(const void *data, size_t size, tutti_bytes *out)
{
    char *copy = malloc(size + 1);

    if (copy == NULL)
        return tti_fail(TUTTI_E_NOMEM, "no memory for a value of %zu bytes", size);
    if (size > 0)
        memcpy(copy, data, size);
    copy[size] = '\0';
    *out = (tutti_bytes){ .data = copy, .size = size };
    return TUTTI_OK;
}

static bool is_blank(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

/* Digits of text[at..size) as a magnitude, no larger than max. */
static uint64_t read_digits(const char *text, size_t at, size_t size, uint64_t max)
{
    uint64_t value = 0;

    for (; at < size && text[at] >= '0' && text[at] <= '9'; at++) {
        const uint64_t digit = (uint64_t)(text[at] - '0');

        if (value > (max - digit) / 10)
            return max;
        value = value * 10 + digit;
    }
    return value;
}

bool tti_store_number(const void *val, size_t size, int64_t *out)
{
    const char *text = val;
    bool        negative = false;
    size_t      at = 0;
    uint64_t    value;

    while (at < size && is_blank(text[at]))
        at++;
    if (at < size && (text[at] == '-' || text[at] == '+'))
        negative = text[at++] == '-';
    if (at >= size || text[at] < '0' || text[at] > '9')
        return false;
    value = read_digits(text, at, size, negative ? (uint64_t)INT64_MAX + 1 : (uint64_t)INT64_MAX);
    *out = (int64_t)(negative ? 0 - value : value);
    return true;
}

tutti_status tti_store_map_add(tti_map *map, const char *key, size_t key_size, int64_t delta,
                               const char *shown, int64_t *sum_out)
{
    char         text[TTI_STORE_NUMBER_MAX];
    const void  *val;
    size_t       size;
    int64_t      sum = 0;
    tutti_status st;
    int          n;

    if (tti_map_get(map, key, key_size, &val, &size) && !tti_store_number(val, size, &sum))
        return tti_fail(TUTTI_E_STORE,
                        "cannot add to key '%s': its value of %zu bytes is not a number", shown,
                        size);
    sum = (int64_t)((uint64_t)sum + (uint64_t)delta);
    n = snprintf(text, sizeof text, "%" PRId64, sum);
    st = tti_map_put(map, key, key_size, text, (size_t)n);
    if (st == TUTTI_OK)
        *sum_out = sum;
    return st;
}

tutti_status tti_store_map_compare_set(tti_map *map, const char *key, size_t key_size,
                                       const void *expected, size_t expected_size,
                                       const void *desired, size_t desired_size,
                                       const void **val_out, size_t *size_out, bool *changed_out)
{
    const void  *val = NULL;
    size_t       size = 0;
    const bool   found = tti_map_get(map, key, key_size, &val, &size);
    tutti_status st;

    *changed_out = false;
    if (size != expected_size || (size > 0 && memcmp(val, expected, size) != 0)) {
        *val_out = found ? val : expected;
        *size_out = found ? size : expected_size;
        return TUTTI_OK;
    }
    st = tti_map_put(map, key, key_size, desired, desired_size);
    if (st != TUTTI_OK)
        return st;
    *changed_out = true;
    *val_out = desired;
    *size_out = desired_size;
    return TUTTI_OK;
}

tutti_status tti_store_map_append(tti_map *map, const char *key, size_t key_size, const void *val,
                                  size_t size, const char *shown)
{
    const void  *old = NULL;
    size_t       old_size = 0;
    char        *both;
    tutti_status st;

    tti_map_get(map, key, key_size, &old, &old_size);
    if (old_size + size > TUTTI_STORE_VALUE_MAX)
        return tti_fail(TUTTI_E_STORE,
                        "cannot append to key '%s': its value would have %zu bytes, %d is the most",
                        shown, old_size + size, TUTTI_STORE_VALUE_MAX);
    both = malloc(old_size + size + 1);
    if (both == NULL)
        return tti_fail(TUTTI_E_NOMEM, "no memory for a value of %zu bytes", old_size + size);
    if (old_size > 0)
        memcpy(both, old, old_size);
    if (size > 0)
        memcpy(both + old_size, val, size);
    st = tti_map_put(map, key, key_size, both, old_size + size);
    free(both);
    return st;
}

tutti_status tti_key_filler_begin(tti_key_filler *filler, size_t n, size_t text_bytes)
{
    const size_t table = n * sizeof(char *);
    char        *block = n > 0 ? malloc(table + text_bytes + n) : NULL;

    if (n > 0 && block == NULL)
        return tti_fail(TUTTI_E_NOMEM, "no memory for the names of %zu keys", n);
    *filler = (tti_key_filler){ .keys = { .names = (char **)block } };
    filler->at = n > 0 ? block + table : NULL;
    return TUTTI_OK;
}

void tti_key_filler_add(tti_key_filler *filler, const void *name, size_t size)
{
    filler->keys.names[filler->keys.n++] = filler->at;
    memcpy(filler->at, name, size);
    filler->at[size] = '\0';
    filler->at += size + 1;
}

typedef struct lister {
    const char     *prefix;
    size_t          prefix_size;
    size_t          skip;
    size_t          n, bytes; /* first round */
    tti_key_filler *filler;   /* second round; NULL in the first */
} lister;

static bool list_one(void *arg, const void *key, size_t key_size, const void *val, size_t val_size)
{
    lister *l = arg;

    (void)val;
    (void)val_size;
    if (key_size < l->prefix_size || memcmp(key, l->prefix, l->prefix_size) != 0)
        return true;
    if (l->filler != NULL)
        tti_key_filler_add(l->filler, (const char *)key + l->skip, key_size - l->skip);
    l->n++;
    l->bytes += key_size - l->skip;
    return true;
}

tutti_status tti_store_map_list(const tti_map *map, const char *prefix, size_t skip,
                                tutti_store_keys *out)
{
    lister         l = { .prefix = prefix, .prefix_size = strlen(prefix), .skip = skip };
    tti_key_filler filler;
    tutti_status   st;

    tti_map_each(map, list_one, &l);
    st = tti_key_filler_begin(&filler, l.n, l.bytes);
    if (st != TUTTI_OK)
        return st;
    l.filler = &filler;
    tti_map_each(map, list_one, &l);
    *out = filler.keys;
    return TUTTI_OK;
}

tutti_status tti_store_pop_timed_out(tti_port *port, const char *key, int64_t start_ns)
{
    return tti_fail(TUTTI_E_TIMEOUT, "nothing came to queue '%s' within %" PRId64 " ms", key,
                    (tti_port_now(port) - start_ns) / TTI_MS);
}

tutti_status tti_store_queue_empty(const char *key)
{
    return tti_fail(TUTTI_E_EMPTY, "queue '%s' is empty", key);
}

tutti_status tti_store_timed_out(tti_port *port, const char *key, int64_t start_ns)
{
    return tti_fail(TUTTI_E_TIMEOUT, "key '%s' did not come within %" PRId64 " ms", key,
                    (tti_port_now(port) - start_ns) / TTI_MS);
}
