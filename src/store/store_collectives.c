/* SPDX-License-Identifier: BSD-3-Clause
 *
 * store_collectives.c - barrier, broadcast, gather, scatter, all_gather, all_sum over a store's keys.
 *
 * How     broadcast          key          the value
 *         gather, scatter    key/RANK     the value from, or for, that rank
 *         barrier            key/RANK     empty: this rank has come; set first, so that a time-out can
 *                                         say who has not
 *                            key/came     how many have; whoever makes it world_size sets
 *                            key/all      which all wait for
 *         all_sum            key          the sum, complete behind the barrier
 * True    `used` has every key that a call of this instance began with; it only grows. `lock` guards
 *         it, and is not held across a call on the store. */
#include <tutti/store_collectives.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tutti/private.h>
#include "base/map.h"
#include "base/thread.h"
#include "store/store_front.h"

enum {
    SUFFIX_MAX = 16, /* "/2147483647" and less */
    NAMED_MAX = 8    /* ranks that a time-out names */
};


struct tutti_store_collectives {
    tutti_store *store;
    tti_port    *port;
    int          rank, world_size;
    tti_mutex    lock; /* guards used */
    tti_map      used;
};

typedef struct one_key {
    char text[TUTTI_STORE_KEY_MAX + SUFFIX_MAX];
} one_key;

/* A call: what it is called in words, its key, and how long it may take. */
typedef struct call {
    tutti_store_collectives *c;
    const char              *what;
    const char              *key;
    int64_t                  start_ns;
    int64_t                  deadline_ns;
} call;

tutti_status tutti_store_collectives_create(tutti_store *store, int rank, int world_size,
                                            tutti_store_collectives **collectives_out)
{
    tutti_store_collectives *c;
    tutti_status             st;

    if (store == NULL || collectives_out == NULL)
        return tti_fail(TUTTI_E_ARG, "store collectives need a store and an output\n  next: let neither be NULL");
    if (world_size < 1 || rank < 0 || rank >= world_size)
        return tti_fail(TUTTI_E_ARG, "store collectives for rank %d of %d\n  next: pass a rank of 0 .. world_size - 1", rank,
                        world_size);
    st = tti_store_check_own(store);
    if (st != TUTTI_OK)
        return st;
    c = calloc(1, sizeof *c);
    if (c == NULL)
        return tti_fail(TUTTI_E_NOMEM, "no memory for store collectives");
    c->store = tutti_store_retain(store);
    c->port = tti_store_port(store);
    c->rank = rank;
    c->world_size = world_size;
    tti_mutex_init(&c->lock);
    tti_map_init(&c->used, c->port);
    *collectives_out = c;
    return TUTTI_OK;
}

void tutti_store_collectives_free(tutti_store_collectives *collectives)
{
    if (collectives == NULL)
        return;
    tti_map_release(&collectives->used);
    tti_mutex_release(&collectives->lock);
    tutti_store_close(collectives->store);
    free(collectives);
}

/* ---- keys -------------------------------------------------------------------------------------- */

/* From now on key belongs to this call. */
static tutti_status use_key(tutti_store_collectives *c, const char *key)
{
    const size_t size = strlen(key);
    tutti_status st = TUTTI_OK;

    tti_lock(&c->lock);
    if (tti_map_get(&c->used, key, size, NULL, NULL))
        st = tti_fail(TUTTI_E_STATE,
                      "store collectives of rank %d have used the key '%s' before\n"
                      "  next: give every call a key of its own",
                      c->rank, key);
    else
        st = tti_map_put(&c->used, key, size, NULL, 0);
    tti_unlock(&c->lock);
    return st;
}

static tutti_status begin(call *out, tutti_store_collectives *c, const char *what, const char *key,
                          bool outputs, int64_t timeout_ms)
{
    tutti_status st;

    if (c == NULL || !outputs)
        return tti_fail(TUTTI_E_ARG, "%s over a store: %s is NULL", what,
                        c == NULL ? "collectives" : "an argument");
    if (timeout_ms < TUTTI_INFINITE)
        return tti_fail(TUTTI_E_ARG, "a time-out of %" PRId64 " ms\n  next: 0 for 5 minutes, -1 for none", timeout_ms);
    st = tti_store_check_own(c->store);
    if (st == TUTTI_OK)
        st = tti_store_check_key(key);
    if (st == TUTTI_OK && strlen(key) > TUTTI_STORE_KEY_MAX - SUFFIX_MAX)
        st = tti_fail(TUTTI_E_ARG, "%s over a store: a key of %zu bytes, %d is the most\n  next: use a shorter one", what,
                      strlen(key), TUTTI_STORE_KEY_MAX - SUFFIX_MAX);
    if (st == TUTTI_OK)
        st = use_key(c, key);
    if (st != TUTTI_OK)
        return st;
    *out = (call){ .c = c, .what = what, .key = key, .start_ns = tti_port_now(c->port) };
    out->deadline_ns = tti_deadline(c->port, timeout_ms, TUTTI_STORE_COLLECTIVES_TIMEOUT_MS);
    return TUTTI_OK;
}

static const char *under(const call *k, const char *suffix, one_key *room)
{
    snprintf(room->text, sizeof room->text, "%s/%s", k->key, suffix);
    return room->text;
}

static const char *of_rank(const call *k, int rank, one_key *room)
{
    snprintf(room->text, sizeof room->text, "%s/%d", k->key, rank);
    return room->text;
}

/* The keys of all ranks: one block, pointers first, the caller frees it. NULL: no memory (worded). */
static const char **of_all_ranks(const call *k)
{
    const int    n = k->c->world_size;
    const size_t each = strlen(k->key) + SUFFIX_MAX;
    const char **keys = malloc((size_t)n * (sizeof *keys + each));
    char        *at = (char *)(keys + n);
    int          i;

    if (keys == NULL) {
        tti_fail(TUTTI_E_NOMEM, "no memory for the keys of %d ranks", n);
        return NULL;
    }
    for (i = 0; i < n; i++, at += each) {
        snprintf(at, each, "%s/%d", k->key, i);
        keys[i] = at;
    }
    return keys;
}

/* ---- who is missing ---------------------------------------------------------------------------- */

/* "1, 4, 5 and 2 more": the ranks without a key; how many of those that were asked for, before the store's grace was over. */
static int list_missing(const call *k, char *out, size_t bytes, int *asked_out)
{
    const int64_t until = tti_store_grace(k->c->store);
    size_t        used = 0;
    int           missing = 0, i;

    out[0] = '\0';
    for (i = 0; i < k->c->world_size; i++) {
        one_key     room;
        const char *key = of_rank(k, i, &room);
        bool        there = false;

        if (tti_store_check_until(k->c->store, &key, 1, until, &there) != TUTTI_OK)
            break;
        if (!there && missing++ < NAMED_MAX)
            used += (size_t)snprintf(out + used, bytes - used, "%s%d", used > 0 ? ", " : "", i);
    }
    if (missing > NAMED_MAX)
        snprintf(out + used, bytes - used, " and %d more", missing - NAMED_MAX);
    *asked_out = i;
    return missing;
}

/* Word a time-out of a call in which every rank has a key; everything else has its words. */
static tutti_status late(const call *k, tutti_status st)
{
    const int64_t ms = (tti_port_now(k->c->port) - k->start_ns) / TTI_MS;
    char          ranks[NAMED_MAX * 12 + 32];
    int           missing, asked = 0;

    if (st != TUTTI_E_TIMEOUT)
        return st;
    missing = list_missing(k, ranks, sizeof ranks, &asked);
    if (missing <= 0)
        return tti_fail(st, "%s '%s' over a store timed out after %" PRId64 " ms", k->what, k->key,
                        ms);
    return tti_fail(st,
                    "%s '%s' over a store: %s%d of %d ranks did not come within %" PRId64 " ms\n"
                    "  not arrived: ranks %s",
                    k->what, k->key, asked < k->c->world_size ? "at least " : "", missing, k->c->world_size, ms,
                    ranks);
}

/* The same where one value of somebody else is waited for. */
static tutti_status late_from_root(const call *k, tutti_status st)
{
    if (st != TUTTI_E_TIMEOUT)
        return st;
    return tti_fail(TUTTI_E_TIMEOUT,
                    "%s '%s' over a store: nothing came for rank %d within %" PRId64 " ms", k->what,
                    k->key, k->c->rank, (tti_port_now(k->c->port) - k->start_ns) / TTI_MS);
}

/* ---- barrier, all_sum -------------------------------------------------------------------------- */

static tutti_status arrive(const call *k)
{
    tutti_store *store = k->c->store;
    one_key      room;
    int64_t      came = 0;
    tutti_status st;

    st = tti_store_set_until(store, of_rank(k, k->c->rank, &room), "", 0, k->deadline_ns);
    if (st == TUTTI_OK)
        st = tti_store_add_until(store, under(k, "came", &room), 1, k->deadline_ns, &came);
    if (st == TUTTI_OK && came > k->c->world_size)
        st = tti_fail(TUTTI_E_STATE,
                      "%s '%s' over a store: rank %d is number %" PRId64 " to come, of %d\n"
                      "  next: give every call a key of its own",
                      k->what, k->key, k->c->rank, came, k->c->world_size);
    if (st == TUTTI_OK && came == k->c->world_size)
        st = tti_store_set_until(store, under(k, "all", &room), "", 0, k->deadline_ns);
    return st;
}

static tutti_status wait_for_all(const call *k)
{
    one_key     room;
    const char *all = under(k, "all", &room);

    return late(k, tti_store_wait_until(k->c->store, &all, 1, k->deadline_ns));
}

tutti_status tutti_store_collectives_barrier(tutti_store_collectives *collectives, const char *key,
                                             int64_t timeout_ms, bool blocking)
{
    call         k = { 0 };
    tutti_status st = begin(&k, collectives, "barrier", key, true, timeout_ms);

    if (st == TUTTI_OK)
        st = arrive(&k);
    return st == TUTTI_OK && blocking ? wait_for_all(&k) : st;
}

tutti_status tutti_store_collectives_all_sum(tutti_store_collectives *collectives, const char *key,
                                             int64_t number, int64_t timeout_ms, int64_t *sum_out)
{
    call         k = { 0 };
    tutti_status st = begin(&k, collectives, "all_sum", key, sum_out != NULL, timeout_ms);

    if (st == TUTTI_OK)
        st = tti_store_add_until(k.c->store, key, number, k.deadline_ns, NULL);
    if (st == TUTTI_OK)
        st = arrive(&k);
    if (st == TUTTI_OK)
        st = wait_for_all(&k);
    return st == TUTTI_OK ? tti_store_add_until(k.c->store, key, 0, k.deadline_ns, sum_out) : st;
}

/* ---- broadcast, gather, scatter, all_gather ---------------------------------------------------- */

tutti_status tutti_store_collectives_broadcast_send(tutti_store_collectives *collectives,
                                                    const char *key, const void *data, size_t size,
                                                    int64_t timeout_ms)
{
    call         k = { 0 };
    tutti_status st = begin(&k, collectives, "broadcast", key, true, timeout_ms);

    return st == TUTTI_OK ? tti_store_set_until(k.c->store, key, data, size, k.deadline_ns) : st;
}

tutti_status tutti_store_collectives_broadcast_recv(tutti_store_collectives *collectives,
                                                    const char *key, int64_t timeout_ms,
                                                    tutti_bytes *value_out)
{
    call         k = { 0 };
    tutti_status st = begin(&k, collectives, "broadcast", key, value_out != NULL, timeout_ms);

    if (st != TUTTI_OK)
        return st;
    return late_from_root(&k, tti_store_get_until(k.c->store, key, k.deadline_ns, value_out));
}

static tutti_status give_own(const call *k, const void *data, size_t size)
{
    one_key room;

    return tti_store_set_until(k->c->store, of_rank(k, k->c->rank, &room), data, size,
                               k->deadline_ns);
}

/* Everybody's value, by rank, this rank's own too. */
static tutti_status take_all(const call *k, tutti_bytes *values_out)
{
    const char **keys = of_all_ranks(k);
    tutti_status st;

    if (keys == NULL)
        return TUTTI_E_NOMEM;
    st = tti_store_multi_get_until(k->c->store, keys, (size_t)k->c->world_size, k->deadline_ns,
                                   values_out);
    free(keys);
    return late(k, st);
}

tutti_status tutti_store_collectives_gather_send(tutti_store_collectives *collectives,
                                                 const char *key, const void *data, size_t size,
                                                 int64_t timeout_ms)
{
    call         k = { 0 };
    tutti_status st = begin(&k, collectives, "gather", key, true, timeout_ms);

    return st == TUTTI_OK ? give_own(&k, data, size) : st;
}

static tutti_status give_and_take(tutti_store_collectives *c, const char *what, const char *key,
                                  const void *data, size_t size, int64_t timeout_ms,
                                  tutti_bytes *values_out)
{
    call         k = { 0 };
    tutti_status st = begin(&k, c, what, key, values_out != NULL, timeout_ms);

    if (st == TUTTI_OK)
        st = give_own(&k, data, size);
    return st == TUTTI_OK ? take_all(&k, values_out) : st;
}

tutti_status tutti_store_collectives_gather_recv(tutti_store_collectives *collectives,
                                                 const char *key, const void *data, size_t size,
                                                 int64_t timeout_ms, tutti_bytes *values_out)
{
    return give_and_take(collectives, "gather", key, data, size, timeout_ms, values_out);
}

tutti_status tutti_store_collectives_all_gather(tutti_store_collectives *collectives,
                                                const char *key, const void *data, size_t size,
                                                int64_t timeout_ms, tutti_bytes *values_out)
{
    return give_and_take(collectives, "all_gather", key, data, size, timeout_ms, values_out);
}

tutti_status tutti_store_collectives_scatter_send(tutti_store_collectives *collectives,
                                                  const char *key, const tutti_bytes *values,
                                                  int64_t timeout_ms)
{
    const char **keys;
    tutti_bytes *others;
    size_t       n = 0;
    int          i;
    call         k = { 0 };
    tutti_status st = begin(&k, collectives, "scatter", key, values != NULL, timeout_ms);

    if (st != TUTTI_OK)
        return st;
    keys = of_all_ranks(&k);
    others = malloc((size_t)k.c->world_size * sizeof *others);
    if (keys == NULL || others == NULL) {
        st = tti_fail(TUTTI_E_NOMEM, "no memory to scatter to %d ranks", k.c->world_size);
        goto out;
    }
    for (i = 0; i < k.c->world_size; i++)
        if (i != k.c->rank) {
            keys[n] = keys[i];
            others[n++] = values[i];
        }
    st = tti_store_multi_set_until(k.c->store, keys, others, n, k.deadline_ns);

out:
    free(others);
    free(keys);
    return st;
}

tutti_status tutti_store_collectives_scatter_recv(tutti_store_collectives *collectives,
                                                  const char *key, int64_t timeout_ms,
                                                  tutti_bytes *value_out)
{
    one_key      room;
    call         k = { 0 };
    tutti_status st = begin(&k, collectives, "scatter", key, value_out != NULL, timeout_ms);

    if (st != TUTTI_OK)
        return st;
    return late_from_root(&k, tti_store_get_until(k.c->store, of_rank(&k, k.c->rank, &room),
                                                  k.deadline_ns, value_out));
}
