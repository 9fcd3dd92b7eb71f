/* SPDX-License-Identifier: BSD-3-Clause
 *
 * device_variant.c - a device that is a plug-in and does nothing, and by definitions of the build is wrong in one way. */
#include <tutti/plugin/device.h>

#ifndef PLUGIN_API
#define PLUGIN_API TUTTI_DEVICE_API
#endif
#ifndef PLUGIN_SIZE
#define PLUGIN_SIZE sizeof(tutti_device_plugin)
#endif
#ifndef TABLE
#define TABLE &ops
#endif
#ifndef INIT
#define INIT init
#endif
#ifndef TABLE_API
#define TABLE_API TUTTI_DEVICE_API
#endif
#ifndef TABLE_SIZE
#define TABLE_SIZE sizeof(tutti_device_ops)
#endif
#ifndef COPY
#define COPY copy
#endif

static tutti_status make(int device, void **made_out)
{
    (void)device;
    *made_out = NULL;
    return TUTTI_OK;
}

static void drop(int device, void *made)
{
    (void)device;
    (void)made;
}

static tutti_status record(int device, void *event, void *stream)
{
    (void)device;
    (void)event;
    (void)stream;
    return TUTTI_OK;
}

static tutti_status has_come(int device, void *event, bool *come_out)
{
    (void)device;
    (void)event;
    *come_out = true;
    return TUTTI_OK;
}

__attribute__((unused)) static tutti_status copy(int device, void *stream, void *to, const void *from, size_t bytes)
{
    (void)device;
    (void)stream;
    (void)to;
    (void)from;
    (void)bytes;
    return TUTTI_OK;
}

static tutti_status pin(int device, size_t bytes, void **memory_out)
{
    (void)bytes;
    return make(device, memory_out);
}

__attribute__((unused)) static const tutti_device_ops ops = {
    .api = TABLE_API,
    .size = TABLE_SIZE,
    .name = NAME,
    .stream_make = make,
    .stream_drop = drop,
    .event_make = make,
    .event_drop = drop,
    .record = record,
    .stream_wait = record,
    .has_come = has_come,
    .copy = COPY,
    .pin = pin,
    .unpin = drop,
};

__attribute__((unused)) static tutti_status init(const tutti_plugin_host *host)
{
    (void)host;
    return TUTTI_OK;
}

const tutti_device_plugin tutti_device_entry = {
    .api = PLUGIN_API,
    .size = PLUGIN_SIZE,
    .name = NAME,
    .ops = TABLE,
    .init = INIT,
};
