/* SPDX-License-Identifier: BSD-3-Clause
 *
 * map.c - uthash with a keyed hash and without exit().
 *
 * Source  Aumasson, Bernstein 2012, "SipHash: a fast short-input PRF". */
#include "base/map.h"

#include <stdlib.h>
#include <string.h>
#include <tutti/private.h>

/* What uthash asks of its user; `map` is the variable of that name where its macros are used. */
#define HASH_NONFATAL_OOM          1
#define uthash_nonfatal_oom(entry) ((void)(entry))
#define HASH_FUNCTION(data, bytes, hash_out) \
    ((hash_out) = (unsigned)tti_siphash(map->key, (data), (bytes)))
#include <uthash.h>

typedef struct tti_map_entry {
    UT_hash_handle hh;
    void          *val;
    size_t         val_size;
    size_t         key_size;
    char           key[]; /* NUL behind it */
} tti_map_entry;

static uint64_t rotate(uint64_t x, int bits)
{
    return (x << bits) | (x >> (64 - bits));
}

static void sip_round(uint64_t v[4])
{
    v[0] += v[1];
    v[1] = rotate(v[1], 13) ^ v[0];
    v[0] = rotate(v[0], 32);
    v[2] += v[3];
    v[3] = rotate(v[3], 16) ^ v[2];
    v[0] += v[3];
    v[3] = rotate(v[3], 21) ^ v[0];
    v[2] += v[1];
    v[1] = rotate(v[1], 17) ^ v[2];
    v[2] = rotate(v[2], 32);
}

static void sip_word(uint64_t v[4], uint64_t word)
{
    v[3] ^= word;
    sip_round(v);
    sip_round(v);
    v[0] ^= word;
}

static uint64_t little_endian(const uint8_t *at, size_t bytes)
{
    uint64_t word = 0;
    size_t   i;

    for (i = 0; i < bytes; i++)
        word |= (uint64_t)at[i] << (8 * i);
    return word;
}

uint64_t tti_siphash(const uint64_t key[2], const void *data, size_t bytes)
{
    uint64_t v[4] = { key[0] ^ UINT64_C(0x736f6d6570736575), key[1] ^ UINT64_C(0x646f72616e646f6d),
                      key[0] ^ UINT64_C(0x6c7967656e657261),
                      key[1] ^ UINT64_C(0x7465646279746573) };
    const uint8_t *at = data;
    size_t         left = bytes;
    int            i;

    for (; left >= 8; at += 8, left -= 8)
        sip_word(v, little_endian(at, 8));
    sip_word(v, little_endian(at, left) | ((uint64_t)bytes << 56));
    v[2] ^= 0xff;
    for (i = 0; i < 4; i++)
        sip_round(v);
    return v[0] ^ v[1] ^ v[2] ^ v[3];
}

void tti_map_init(tti_map *map, tti_port *port)
{
    *map = (tti_map){ .head = NULL };
    port->ops->random(port, map->key, sizeof map->key);
}

static void free_entry(tti_map_entry *entry)
{
    if (entry != NULL)
        free(entry->val);
    free(entry);
}

static void drop_entry(tti_map *map, tti_map_entry *entry)
{
    HASH_DELETE(hh, map->head, entry);
    map->count--;
    map->bytes -= entry->key_size + entry->val_size;
    free_entry(entry);
}

void tti_map_release(tti_map *map)
{
    while (map->head != NULL)
        drop_entry(map, map->head);
}

static tti_map_entry *find(const tti_map *map, const void *key, size_t key_size)
{
    tti_map_entry *entry = NULL;

    HASH_FIND(hh, map->head, key, key_size, entry);
    return entry;
}

/* A copy of val[size]; one byte for nothing, so that NULL means "no memory". */
static void *copy_of(const void *val, size_t size)
{
    void *copy = malloc(size > 0 ? size : 1);

    if (copy != NULL && size > 0)
        memcpy(copy, val, size);
    return copy;
}

static tti_map_entry *add_entry(tti_map *map, const void *key, size_t key_size)
{
    tti_map_entry *entry = calloc(1, sizeof *entry + key_size + 1);

    if (entry == NULL)
        return NULL;
    memcpy(entry->key, key, key_size);
    entry->key_size = key_size;
    HASH_ADD_KEYPTR(hh, map->head, entry->key, key_size, entry);
    if (entry->hh.tbl == NULL) { /* uthash's sign for "no memory" */
        free(entry);
        return NULL;
    }
    map->count++;
    map->bytes += key_size;
    return entry;
}

tutti_status tti_map_put(tti_map *map, const void *key, size_t key_size, const void *val,
                         size_t val_size)
{
    tti_map_entry *entry = find(map, key, key_size);
    void          *copy;

    if (entry != NULL && entry->val_size == val_size) { /* in place: cannot fail */
        if (val_size > 0)
            memcpy(entry->val, val, val_size);
        return TUTTI_OK;
    }
    copy = copy_of(val, val_size);
    if (copy != NULL && entry == NULL)
        entry = add_entry(map, key, key_size);
    if (copy == NULL || entry == NULL) {
        free(copy);
        return tti_fail(TUTTI_E_NOMEM, "no memory for %zu bytes of a map", key_size + val_size);
    }
    map->bytes += val_size - entry->val_size;
    free(entry->val);
    entry->val = copy;
    entry->val_size = val_size;
    return TUTTI_OK;
}

bool tti_map_get(const tti_map *map, const void *key, size_t key_size, const void **val_out,
                 size_t *val_size_out)
{
    const tti_map_entry *entry = find(map, key, key_size);

    if (entry == NULL)
        return false;
    if (val_out != NULL)
        *val_out = entry->val;
    if (val_size_out != NULL)
        *val_size_out = entry->val_size;
    return true;
}

bool tti_map_delete(tti_map *map, const void *key, size_t key_size)
{
    tti_map_entry *entry = find(map, key, key_size);

    if (entry == NULL)
        return false;
    drop_entry(map, entry);
    return true;
}

tutti_status tti_map_put_ptr(tti_map *map, const void *key, size_t key_size, void *ptr)
{
    return tti_map_put(map, key, key_size, &ptr, sizeof ptr);
}

void *tti_map_get_ptr(const tti_map *map, const void *key, size_t key_size)
{
    const tti_map_entry *entry = find(map, key, key_size);
    void                *ptr = NULL;

    if (entry != NULL && entry->val_size == sizeof ptr)
        memcpy(&ptr, entry->val, sizeof ptr);
    return ptr;
}

void tti_map_each(const tti_map *map,
                  bool (*each)(void *arg, const void *key, size_t key_size, const void *val,
                               size_t val_size),
                  void *arg)
{
    const tti_map_entry *entry;

    for (entry = map->head; entry != NULL; entry = entry->hh.next)
        if (!each(arg, entry->key, entry->key_size, entry->val, entry->val_size))
            return;
}
