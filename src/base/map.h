/* SPDX-License-Identifier: BSD-3-Clause
 *
 * base/map.h - a hash map from byte strings to byte strings.
 *
 * Why     The one wrapper around uthash: keys come from peers, so the hash is SipHash-2-4 with a
 *         random key of this map's own, and a failed allocation is a status instead of the end of
 *         the process.
 * How     Keys and values are copied. A caller that wants objects stores pointers: the value is
 *         then the pointer's bytes (tti_map_put_ptr, tti_map_get_ptr).
 * True    Not locked: the owner guards it. Pointers into it hold until the next change. */
#ifndef TTI_BASE_MAP_H
#define TTI_BASE_MAP_H

#include "base/port.h"

struct tti_map_entry;

typedef struct tti_map {
    struct tti_map_entry *head;
    uint64_t              key[2]; /* of the hash */
    size_t                count;
    size_t                bytes; /* of all keys and values */
} tti_map;

/** Make an empty map; port gives the key of its hash. */
void tti_map_init(tti_map *map, tti_port *port);
/** Remove everything; the map is empty afterwards, also one that is all zeros. */
void tti_map_release(tti_map *map);

/** Keep a copy of val[val_size] under key, replacing an older one. val may be NULL for size 0.
 * @errors TUTTI_E_NOMEM  nothing was changed; cannot happen when the older value has its size */
tutti_status tti_map_put(tti_map *map, const void *key, size_t key_size, const void *val,
                         size_t val_size);
/** Whether key is there; then its value. val_out and val_size_out may be NULL. */
bool tti_map_get(const tti_map *map, const void *key, size_t key_size, const void **val_out,
                 size_t *val_size_out);
/** Whether key was there. */
bool tti_map_delete(tti_map *map, const void *key, size_t key_size);

tutti_status tti_map_put_ptr(tti_map *map, const void *key, size_t key_size, void *ptr);
/** NULL: not there. */
void *tti_map_get_ptr(const tti_map *map, const void *key, size_t key_size);

/** Call each(arg, key, key_size, val, val_size) for all entries in order of insertion, until it
 * says false. It must not change the map. */
void tti_map_each(const tti_map *map,
                  bool (*each)(void *arg, const void *key, size_t key_size, const void *val,
                               size_t val_size),
                  void *arg);

/** SipHash-2-4 of data under a 128-bit key. */
uint64_t tti_siphash(const uint64_t key[2], const void *data, size_t bytes);

#endif
