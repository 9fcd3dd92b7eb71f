/* SPDX-License-Identifier: BSD-3-Clause
 *
 * transport.c - tables of transports: looked at, and known from then on.
 *
 * True    The list grows at its head only, by the one thread that loads (load.c); an entry is whole before it is in
 *         it, and never changes or goes. So readers need an acquire load of the head, and no lock. */
#include "backend/plugin/transport.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <tutti/private.h>
#include "backend/plugin/load.h"

typedef struct known {
    const tutti_transport_ops *ops; /* the plug-in's own, which is never unloaded */
    struct known              *next;
} known;

static _Atomic(known *) all;

static const uint32_t plugin_bytes[] = { sizeof(tutti_transport_plugin) };
static const uint32_t table_bytes[] = { sizeof(tutti_transport_ops) };

_Static_assert(sizeof plugin_bytes == sizeof table_bytes, "both have one version number");

static const void *find_known(const char *name)
{
    const known *k;

    for (k = atomic_load_explicit(&all, memory_order_acquire); k != NULL; k = k->next)
        if (strcmp(k->ops->name, name) == 0)
            return k->ops;
    return NULL;
}

static tutti_status check_entries(const char *path, const tutti_transport_ops *ops)
{
    const tti_plugin_entry required[] = {
        { "open", ops->open != NULL },
        { "address", ops->address != NULL },
        { "connect", ops->connect != NULL },
        { "send", ops->send != NULL },
        { "progress", ops->progress != NULL },
        { "give_back", ops->give_back != NULL },
        { "disconnect", ops->disconnect != NULL },
        { "close", ops->close != NULL },
        { "arm", (ops->arm != NULL) >= (ops->handle != NULL) },
        { "handle", (ops->handle != NULL) >= (ops->arm != NULL) },
    };

    return tti_plugin_check_entries(path, required, sizeof required / sizeof required[0]);
}

static tutti_status check_table(const char *path, const char *name, const tutti_transport_ops *ops)
{
    const tti_plugin_versions taken = { TUTTI_TRANSPORT_API, table_bytes, 1 };
    tutti_status              st = tti_plugin_check_version(path, ops->api, ops->size, &taken);

    if (st == TUTTI_OK)
        st = tti_plugin_check_name(path, name, ops->name);
    return st == TUTTI_OK ? check_entries(path, ops) : st;
}

static tutti_status make_known(const tutti_transport_ops *ops)
{
    known *k = malloc(sizeof *k);

    if (k == NULL)
        return tti_fail(TUTTI_E_NOMEM, "no memory for the table of transport '%s'", ops->name);
    *k = (known){ .ops = ops, .next = atomic_load_explicit(&all, memory_order_relaxed) }; /* this thread alone writes it */
    atomic_store_explicit(&all, k, memory_order_release);
    return TUTTI_OK;
}

static tutti_status take_in(const char *path, const char *name, const void *shown)
{
    const tutti_transport_plugin *plugin = shown;
    const tti_plugin_versions     taken = { TUTTI_TRANSPORT_API, plugin_bytes, 1 };
    tutti_status                  st = tti_plugin_check_version(path, plugin->api, plugin->size, &taken);

    if (st == TUTTI_OK)
        st = tti_plugin_check_name(path, name, plugin->name);
    if (st == TUTTI_OK && (plugin->transport == NULL || plugin->init == NULL))
        st = tti_plugin_fail_bare(path, plugin->transport == NULL ? "table" : "init");
    if (st == TUTTI_OK)
        st = check_table(path, name, plugin->transport);
    if (st == TUTTI_OK)
        st = tti_plugin_start(path, plugin->init);
    return st == TUTTI_OK ? make_known(plugin->transport) : st;
}

tutti_status tti_transport_find(const char *name, const tutti_transport_ops **ops_out, char places_out[TTI_PLACES_TEXT])
{
    static const tti_plugin_kind transports = { .what = "transport", .symbol = "tutti_transport_entry", .known = find_known,
                                                .take_in = take_in };
    const void                  *found = NULL;
    tutti_status                 st = TUTTI_OK;

    places_out[0] = '\0';
    if (tti_backend_is_name(name))
        st = tti_plugin_find_of(&transports, name, &found, places_out);
    if (st == TUTTI_OK)
        *ops_out = found;
    return st;
}
