/* SPDX-License-Identifier: BSD-3-Clause
 *
 * device.c - tables of devices: looked at, and known from then on.
 *
 * True    There is one kind of device, so one table: written once, by the one thread that loads (load.c), with release order,
 *         and read by any with acquire order. It is the plug-in's own, which is never unloaded. */
#include "backend/plugin/device.h"

#include <stdatomic.h>
#include <string.h>
#include <tutti/private.h>
#include "backend/plugin/load.h"

static _Atomic(const tutti_device_ops *) the_one;

static const uint32_t plugin_bytes[] = { sizeof(tutti_device_plugin) };
static const uint32_t table_bytes[] = { sizeof(tutti_device_ops) };

_Static_assert(sizeof plugin_bytes == sizeof table_bytes, "both have one version number");

static const void *find_known(const char *name)
{
    const tutti_device_ops *ops = atomic_load_explicit(&the_one, memory_order_acquire);

    return ops != NULL && strcmp(ops->name, name) == 0 ? ops : NULL;
}

static tutti_status check_entries(const char *path, const tutti_device_ops *ops)
{
    const tti_plugin_entry required[] = {
        { "stream_make", ops->stream_make != NULL }, { "stream_drop", ops->stream_drop != NULL },
        { "event_make", ops->event_make != NULL },   { "event_drop", ops->event_drop != NULL },
        { "record", ops->record != NULL },           { "stream_wait", ops->stream_wait != NULL },
        { "has_come", ops->has_come != NULL },       { "copy", ops->copy != NULL },
        { "pin", ops->pin != NULL },                 { "unpin", ops->unpin != NULL },
    };

    return tti_plugin_check_entries(path, required, sizeof required / sizeof required[0]);
}

static tutti_status check_table(const char *path, const char *name, const tutti_device_ops *ops)
{
    const tti_plugin_versions taken = { TUTTI_DEVICE_API, table_bytes, 1 };
    tutti_status              st = tti_plugin_check_version(path, ops->api, ops->size, &taken);

    if (st == TUTTI_OK)
        st = tti_plugin_check_name(path, name, ops->name);
    return st == TUTTI_OK ? check_entries(path, ops) : st;
}

static tutti_status take_in(const char *path, const char *name, const void *shown)
{
    const tutti_device_plugin *plugin = shown;
    const tti_plugin_versions  taken = { TUTTI_DEVICE_API, plugin_bytes, 1 };
    tutti_status               st = tti_plugin_check_version(path, plugin->api, plugin->size, &taken);

    if (st == TUTTI_OK)
        st = tti_plugin_check_name(path, name, plugin->name);
    if (st == TUTTI_OK && (plugin->ops == NULL || plugin->init == NULL))
        st = tti_plugin_fail_bare(path, plugin->ops == NULL ? "table" : "init");
    if (st == TUTTI_OK)
        st = check_table(path, name, plugin->ops);
    if (st == TUTTI_OK)
        st = tti_plugin_start(path, plugin->init);
    if (st == TUTTI_OK)
        atomic_store_explicit(&the_one, plugin->ops, memory_order_release);
    return st;
}

tutti_status tti_device_ops_find(const char *name, const tutti_device_ops **ops_out, char places_out[TTI_PLACES_TEXT])
{
    static const tti_plugin_kind devices = { .what = "device", .symbol = "tutti_device_entry", .known = find_known,
                                             .take_in = take_in };
    const void                  *found = NULL;
    tutti_status                 st;

    places_out[0] = '\0';
    st = tti_plugin_find_of(&devices, name, &found, places_out);
    if (st == TUTTI_OK)
        *ops_out = found;
    return st;
}

/* The one kind there is; its name is that of backend strings. */
tutti_status tti_device_ops_of(tutti_device_type type, const tutti_device_ops **ops_out)
{
    const tutti_device_ops *ops = NULL;
    char                    places[TTI_PLACES_TEXT];
    tutti_status            st;

    if (type != TUTTI_CUDA)
        return tti_fail(TUTTI_E_ARG, "device type %d is none that a plug-in is for, only TUTTI_CUDA is\n"
                                     "  next: pass that, or work on memory of the host without one",
                        (int)type);
    st = tti_device_ops_find("cuda", &ops, places);
    if (st == TUTTI_OK && ops == NULL)
        st = tti_fail(TUTTI_E_UNSUPPORTED,
                      "memory of 'cuda' is reached by a plug-in, and 'tutti-device-cuda.so' is not in %s\n  next: install it there, "
                      "name its directory in TUTTI_PLUGIN_PATH, or copy to the host first", places);
    if (st == TUTTI_OK)
        *ops_out = ops;
    return st;
}
