/* SPDX-License-Identifier: BSD-3-Clause
 *
 * torch_newer.c - what older servers of PyTorch do not know: queues, and the list of keys. */
#include <string.h>
#include <tutti/private.h>
#include "store/store_value.h"
#include "store/torch_store_core.h"

static tutti_status not_known(const tti_torch_store *ts, const char *what)
{
    return tti_fail(TUTTI_E_UNSUPPORTED,
                    "%s has no %s: it closes connections that ask for them\n"
                    "  next: a current PyTorch, with use_libuv, has them",
                    ts->pool.who, what);
}

/* Find out, with a request that changes nothing, whether the server knows `what`. */
static tutti_status try_out(tti_torch_store *ts, _Atomic int *known,
                            const tti_torch_request *request, const char *what)
{
    tti_torch_reader reader;
    tutti_status st;

    if (atomic_load(known) == TTI_TORCH_UNTRIED) {
        st = tti_torch_run_apart(&ts->pool, request, "", tti_torch_overdue(&ts->pool), &reader);
        if (st == TUTTI_OK)
            tti_torch_reader_release(&reader);
        if (st == TUTTI_OK)
            atomic_store(known, TTI_TORCH_KNOWN);
        else if (st == TUTTI_E_NETWORK && tti_torch_alive(&ts->pool))
            atomic_store(known, TTI_TORCH_UNKNOWN);
        else
            return st;
    }
    return atomic_load(known) == TTI_TORCH_KNOWN ? TUTTI_OK : not_known(ts, what);
}

static tutti_status try_queues(tti_torch_store *ts)
{
    static const char *const any = "tutti";
    const tti_torch_request request = { .op = TTI_TORCH_QUEUE_LEN, .keys = &any, .n_keys = 1 };

    return try_out(ts, &ts->queues, &request, "queues");
}

tutti_status tti_torch_queue_push(tutti_store *store, const char *key, const void *val, size_t len,
                                  int64_t deadline_ns)
{
    const tutti_status st = try_queues((tti_torch_store *)store);

    return st != TUTTI_OK ? st
                          : tti_torch_give(tti_torch_pool(store), TTI_TORCH_QUEUE_PUSH, key, val,
                                           len, deadline_ns);
}

tutti_status tti_torch_queue_len(tutti_store *store, const char *key, int64_t deadline_ns,
                                 int64_t *n_out)
{
    const tti_torch_request request = { .op = TTI_TORCH_QUEUE_LEN, .keys = &key, .n_keys = 1 };
    const tutti_status st = try_queues((tti_torch_store *)store);

    return st != TUTTI_OK
               ? st
               : tti_torch_run_number(tti_torch_pool(store), &request, deadline_ns, n_out);
}

static tutti_status pop_now(tti_torch_store *ts, const char *key, bool *there_out,
                            tutti_bytes *val_out)
{
    const tti_torch_request request = { .op = TTI_TORCH_QUEUE_POP, .keys = &key, .n_keys = 1 };
    tti_torch_reader reader;
    tutti_status st;

    st = tti_torch_run(&ts->pool, &request, NULL, tti_torch_overdue(&ts->pool), &reader);
    if (st != TUTTI_OK)
        return st;
    *there_out = reader.has_value;
    if (reader.has_value)
        *val_out = reader.value;
    return TUTTI_OK;
}

tutti_status tti_torch_queue_pop(tutti_store *store, const char *key, bool block,
                                 int64_t deadline_ns, tutti_bytes *val_out)
{
    tti_torch_store *ts = (tti_torch_store *)store;
    tti_torch_patience p = { .start_ns = tti_port_now(ts->pool.port), .deadline_ns = deadline_ns };
    bool there = false, again = true;
    tutti_status st = try_queues(ts);

    if (st != TUTTI_OK)
        return st;
    while (again) {
        st = pop_now(ts, key, &there, val_out);
        if (st != TUTTI_OK || there)
            return st;
        if (!block)
            return tti_store_queue_empty(key);
        st = tti_torch_wait_more(ts, key, &p, &again);
        if (st != TUTTI_OK)
            return st;
    }
    return tti_store_pop_timed_out(ts->pool.port, key, p.start_ns);
}

static tutti_status copy_names(const tti_torch_reader *reader, tutti_store_keys *keys_out)
{
    const char *name = (const char *)tti_buffer_data(&reader->names);
    tti_key_filler filler;
    tutti_status st;
    size_t i, size;

    st = tti_key_filler_begin(&filler, reader->n_names, reader->names.size - reader->n_names);
    if (st != TUTTI_OK)
        return st;
    for (i = 0; i < reader->n_names; i++, name += size + 1) {
        size = strlen(name);
        tti_key_filler_add(&filler, name, size);
    }
    *keys_out = filler.keys;
    return TUTTI_OK;
}

tutti_status tti_torch_list_keys(tutti_store *store, const char *prefix, int64_t deadline_ns,
                                 tutti_store_keys *keys_out)
{
    static const tti_torch_request request = { .op = TTI_TORCH_LIST_KEYS };
    tti_torch_store *ts = (tti_torch_store *)store;
    tti_torch_reader reader;
    tutti_status st = try_out(ts, &ts->names, &request, "list of keys");

    if (st == TUTTI_OK)
        st = tti_torch_run(&ts->pool, &request, prefix, deadline_ns, &reader);
    if (st != TUTTI_OK)
        return st;
    st = copy_names(&reader, keys_out);
    tti_torch_reader_release(&reader);
    return st;
}
