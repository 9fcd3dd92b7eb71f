/* SPDX-License-Identifier: BSD-3-Clause
 *
 * store/store_value.h - what all stores do alike with values: numbers, comparing, copies, words. */
#ifndef TTI_STORE_STORE_VALUE_H
#define TTI_STORE_STORE_VALUE_H

#include "base/map.h"
#include <tutti/store.h>

enum { TTI_STORE_NUMBER_MAX = 24 }; /* bytes of the longest number as text, NUL included */

/** A copy of data[size] with a NUL behind it.
 * @errors TUTTI_E_NOMEM */
tutti_status tti_bytes_copy(const void *data, size_t size, tutti_bytes *out);

/** What stands at the start of val as a decimal number: blanks, a sign, digits, then anything. Too
 * large ones become the nearest int64. False: no digits there. */
bool tti_store_number(const void *val, size_t size, int64_t *out);

/** The add of a store that is a map: parses, wraps around, keeps the text.
 * @errors TUTTI_E_STORE  not a number; `shown` is the key to quote */
tutti_status tti_store_map_add(tti_map *map, const char *key, size_t key_size, int64_t delta,
                               const char *shown, int64_t *sum_out);

/** The compare_set of a store that is a map, by the table of tutti_store_compare_set(). Fills
 * *val_out with what to answer (borrowed from map or the arguments) and says whether it changed. */
tutti_status tti_store_map_compare_set(tti_map *map, const char *key, size_t key_size,
                                       const void *expected, size_t expected_size,
                                       const void *desired, size_t desired_size,
                                       const void **val_out, size_t *size_out, bool *changed_out);

/** The append of a store that is a map.
 * @errors TUTTI_E_STORE  the value would be too large; `shown` is the key to quote */
tutti_status tti_store_map_append(tti_map *map, const char *key, size_t key_size, const void *val,
                                  size_t size, const char *shown);

/** The list_keys of a store that is a map: names that begin with prefix, without their first skip
 * bytes, which prefix has at least. */
tutti_status tti_store_map_list(const tti_map *map, const char *prefix, size_t skip,
                                tutti_store_keys *out);

/** A list of names in the making: exactly the names that were announced are added. */
typedef struct tti_key_filler {
    tutti_store_keys keys;
    char            *at;
} tti_key_filler;

/** Room for n names with text_bytes of text, their NULs not counted.
 * @errors TUTTI_E_NOMEM */
tutti_status tti_key_filler_begin(tti_key_filler *filler, size_t n, size_t text_bytes);
void         tti_key_filler_add(tti_key_filler *filler, const void *name, size_t size);

/** "key 'x' did not come within 300 ms": TUTTI_E_TIMEOUT. */
tutti_status tti_store_timed_out(tti_port *port, const char *key, int64_t start_ns);
/** "nothing came to queue 'x' within 300 ms": TUTTI_E_TIMEOUT. */
tutti_status tti_store_pop_timed_out(tti_port *port, const char *key, int64_t start_ns);
/** "queue 'x' is empty": TUTTI_E_EMPTY. */
tutti_status tti_store_queue_empty(const char *key);

#endif
