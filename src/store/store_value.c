/* SPDX-License-Identifier: BSD-3-Clause
 *
 * store_value.c - values of stores: numbers as text, comparing, copies. */
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

tutti_status tti_store_timed_out(tti_port *port, const char *key, int64_t start_ns)
{
    return tti_fail(TUTTI_E_TIMEOUT, "key '%s' did not come within %" PRId64 " ms", key,
                    (tti_port_now(port) - start_ns) / TTI_MS);
}
