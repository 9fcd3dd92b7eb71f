/* SPDX-License-Identifier: BSD-3-Clause
 *
 * store_backend.c - a whole plug-in: the backend "store", whose members hand each other everything through the store.
 *
 * Why     To read, and to begin one's own with. It needs no network of its own, is slow, and moves every collective.
 * How     A collective is one question: what goes from this member to that one? between() answers it for every kind. The
 *         rest is the same for all: put what is given under "call/round/from/to", get what is taken, combine it if the
 *         kind says so. Large buffers go in rounds. It has no messages, and takes one buffer at a time: what it leaves out
 *         of its table the library refuses, or does by itself. PREMUL_SUM it refuses itself.
 * Fails   A member that gives nothing is named when time is up. The store has to outlive the last call: a launcher's does.
 * Build   cc -shared -fPIC $(pkg-config --cflags tutti) store_backend.c -o tutti-backend-store.so
 *         and use it with TUTTI_PLUGIN_PATH=$PWD, as tutti_init_options.backend "store"; see tutti/plugin/plugin.h */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tutti/plugin/plugin.h>

enum { KEY_BYTES = 96, ROUND_BYTES = 1 << 20, LOOK_MS = 200 };
static const tutti_plugin_host *host; /* written once, by init, before anything else is called */

typedef struct store_backend {
    tutti_backend base; /* first: the two pointers convert both ways */
    tutti_store  *store;
    int           rank, n_ranks;
    uint64_t      calls; /* of run, the same on all members */
    tutti_word    ended; /* abort sets it, on any thread; who waits looks at it */
    const void  **in;    /* [n_ranks], behind got: what they gave in this round, */
    tutti_bytes   got[]; /* [n_ranks]; and whose memory that is */
} store_backend;

typedef struct part {
    const void *in;    /* right where this member gives it */
    void       *out;   /* right where it takes it; NULL: it has it already */
    int64_t     count; /* elements; -1: nothing goes there */
} part;
static const part none = { NULL, NULL, -1 };

static part between(const store_backend *b, const tutti_call *c, int from, int to)
{
    const int64_t *counts = c->list_counts; /* NULL: all parts have count */
    switch (c->kind) {
    case TUTTI_CALL_BARRIER: return (part){ NULL, NULL, 0 };
    case TUTTI_CALL_ALL_REDUCE: return (part){ c->in, c->out, c->count };
    case TUTTI_CALL_REDUCE: return to == c->root ? (part){ c->in, c->out, c->count } : none;
    case TUTTI_CALL_BROADCAST: return from == c->root ? (part){ c->in, c->out, c->count } : none;
    case TUTTI_CALL_ALL_GATHER: return (part){ c->in, c->list[from], counts != NULL ? counts[from] : c->count };
    case TUTTI_CALL_REDUCE_SCATTER: return (part){ c->list[to], c->out, counts != NULL ? counts[to] : c->count };
    case TUTTI_CALL_GATHER:
        return to == c->root ? (part){ c->in, b->rank == to ? c->list[from] : NULL, c->count } : none;
    case TUTTI_CALL_SCATTER:
        return from == c->root ? (part){ b->rank == from ? c->list[to] : NULL, c->out, c->count } : none;
    default: return (part){ c->ins[to], c->list[from], b->rank == from ? c->in_counts[to] : counts[from] };
    }
}

static bool combines(tutti_call_kind kind)
{
    return kind == TUTTI_CALL_ALL_REDUCE || kind == TUTTI_CALL_REDUCE || kind == TUTTI_CALL_REDUCE_SCATTER;
}

/* What of it goes in one round. A part of no elements goes, too, in the first: others wait for it. */
static part in_round(const store_backend *b, const tutti_call *c, int from, int to, int64_t round)
{
    const int64_t size = (int64_t)host->dtype_size(c->dtype), most = ROUND_BYTES / size, first = round * most;
    part          p = between(b, c, from, to);

    if (p.count < 0 || (round > 0 && first >= p.count))
        return none;
    p.in = p.in != NULL ? (const char *)p.in + first * size : NULL;
    p.out = p.out != NULL ? (char *)p.out + first * size : NULL;
    p.count = p.count - first < most ? p.count - first : most;
    return p;
}

/* The store knows nothing of abort: look again and again. Once at least: taking from others may have used up the time. */
static tutti_status take(store_backend *b, const tutti_call *c, int64_t round, int from, part p, size_t bytes)
{
    tutti_status st;
    char         key[KEY_BYTES], why[256];

    snprintf(key, sizeof key, "%llu/%lld/%d/%d", (unsigned long long)b->calls, (long long)round, from, b->rank);
    do
        st = host->store_get(b->store, key, LOOK_MS, &b->got[from]);
    while (st == TUTTI_E_TIMEOUT && atomic_load(&b->ended) == 0 && host->now_ns() < c->deadline_ns);
    snprintf(why, sizeof why, "%s", st != TUTTI_OK ? host->last_error() : "");
    if (st != TUTTI_OK)
        return atomic_load(&b->ended) != 0 ? host->fail(TUTTI_E_ABORTED, "collective #%d was aborted", (int)c->seq)
               : st != TUTTI_E_TIMEOUT     ? st
               : host->fail(st, "collective #%d: nothing came from rank %d of the group, last: %s", (int)c->seq, from, why);
    host->store_delete_key(b->store, key, NULL); /* nobody else reads it; a store that cannot delete keeps it */
    if (b->got[from].size != bytes)
        return host->fail(TUTTI_E_MISMATCH, "collective #%d: rank %d of the group gave %zu bytes, and %zu were to come",
                          (int)c->seq, from, b->got[from].size, bytes);
    b->in[from] = b->got[from].data;
    if (!combines(c->kind) && p.out != NULL && bytes > 0)
        memcpy(p.out, b->in[from], bytes);
    return TUTTI_OK;
}

/* more_out: there may be another round. Giver and taker have the same counts, so they agree. */
static tutti_status run_round(store_backend *b, const tutti_call *c, int64_t round, bool *more_out)
{
    const part   own = in_round(b, c, b->rank, b->rank, round); /* where sums go */
    tutti_status st = TUTTI_OK;
    char         key[KEY_BYTES];
    int          i;

    *more_out = false;
    for (i = 0; i < 2 * b->n_ranks && st == TUTTI_OK; i++) { /* first give to all, then take from all */
        const int    r = i % b->n_ranks;
        const part   p = i < b->n_ranks ? in_round(b, c, b->rank, r, round) : in_round(b, c, r, b->rank, round);
        const size_t bytes = p.count < 0 ? 0 : (size_t)p.count * host->dtype_size(c->dtype);

        snprintf(key, sizeof key, "%llu/%lld/%d/%d", (unsigned long long)b->calls, (long long)round, b->rank, r);
        if (p.count >= 0)
            st = i < b->n_ranks ? host->store_set(b->store, key, p.in, bytes) : take(b, c, round, r, p, bytes);
        *more_out = *more_out || bytes == ROUND_BYTES;
    }
    if (st == TUTTI_OK && combines(c->kind) && own.count > 0)
        host->reduce(c->op.kind, c->dtype, own.out, b->in, b->n_ranks, own.count, b->n_ranks);
    for (i = 0; i < b->n_ranks; i++)
        host->bytes_free(&b->got[i]);
    return st;
}

static tutti_status store_run(tutti_backend *backend, const tutti_call *call)
{
    store_backend *b = (store_backend *)backend;
    tutti_status   st = TUTTI_OK;
    bool           more = true;

    if (combines(call->kind) && call->op.kind == TUTTI_OP_PREMUL_SUM)
        return host->fail(TUTTI_E_UNSUPPORTED, "backend 'store' does not offer '%s'", host->op_name(call->op.kind));
    b->calls++;
    for (int64_t round = 0; st == TUTTI_OK && more; round++)
        st = run_round(b, call, round, &more);
    return st;
}

static void store_abort(tutti_backend *backend)
{
    atomic_store(&((store_backend *)backend)->ended, 1);
}

static void store_destroy(tutti_backend *backend)
{
    free(backend);
}

static tutti_status meet(const tutti_backend_config *config)
{
    const int64_t end_ns = host->now_ns() + config->timeout_ms * 1000000;
    char          key[KEY_BYTES];
    tutti_status  st;

    snprintf(key, sizeof key, "here/%d", config->rank);
    st = host->store_set(config->store, key, "", 0);
    for (int r = 0; r < config->n_ranks && st == TUTTI_OK && !config->lazy; r++) {
        const int64_t left_ms = (end_ns - host->now_ns()) / 1000000;

        snprintf(key, sizeof key, "here/%d", r);
        st = host->store_wait(config->store, &(const char *){ key }, 1, config->timeout_ms < 0 ? -1 : left_ms > 0 ? left_ms : 1);
        if (st == TUTTI_E_TIMEOUT)
            st = host->fail(st, "rank %d has not come to group '%s'", config->global_ranks[r], config->name);
    }
    return st;
}

static const tutti_backend_ops ops; /* below */

static tutti_status store_create(const tutti_backend_config *config, tutti_backend **backend_out)
{
    const size_t   n = (size_t)config->n_ranks;
    store_backend *b = calloc(1, sizeof *b + n * (sizeof b->got[0] + sizeof b->in[0]));
    tutti_status   st = b != NULL ? meet(config) : host->fail(TUTTI_E_NOMEM, "no memory for a backend");

    if (st == TUTTI_OK) {
        *b = (store_backend){ .base = { &ops }, .store = config->store, .rank = config->rank, .n_ranks = config->n_ranks };
        b->in = (const void **)(void *)(b->got + n);
        *backend_out = &b->base;
    } else {
        free(b);
    }
    return st;
}

static const tutti_backend_ops ops = { .api = TUTTI_BACKEND_API, .size = sizeof(tutti_backend_ops), .name = "store",
                                       .create = store_create, .run = store_run, .abort = store_abort,
                                       .destroy = store_destroy };

static tutti_status init(const tutti_plugin_host *given)
{
    host = given;
    return TUTTI_OK;
}

const tutti_plugin tutti_plugin_entry = { .api = TUTTI_PLUGIN_API, .size = sizeof(tutti_plugin), .name = "store",
                                          .devices = 1u << TUTTI_CPU, .backend = &ops, .init = init };
