/* SPDX-License-Identifier: BSD-3-Clause
 *
 * transport_variant.c - a transport that carries nothing, built many times, each time with another thing wrong (CMakeLists.txt
 * says which). NAME is what it is called. */
#include <errno.h>
#include <stdlib.h>
#include <tutti/plugin/transport.h>

#ifndef PLUGIN_API
#define PLUGIN_API TUTTI_TRANSPORT_API
#endif
#ifndef PLUGIN_SIZE
#define PLUGIN_SIZE sizeof(tutti_transport_plugin)
#endif
#ifndef TABLE_API
#define TABLE_API TUTTI_TRANSPORT_API
#endif
#ifndef TABLE_SIZE
#define TABLE_SIZE sizeof(tutti_transport_ops)
#endif
#ifndef TABLE_NAME
#define TABLE_NAME NAME
#endif
#ifndef TABLE
#define TABLE &ops
#endif
#ifndef INIT
#define INIT init
#endif
#ifndef SEND
#define SEND send_it
#endif
#ifndef HANDLE
#define HANDLE NULL
#endif

struct tutti_transport {
    char address[4];
};

static const tutti_plugin_host *host;

static tutti_status open_it(const tutti_transport_config *config, tutti_transport **transport_out)
{
    (void)config;
    if (getenv("VARIANT_HAS_NO_CABLE") != NULL)
        return host->fail(TUTTI_E_BACKEND, "there is no cable");
    *transport_out = calloc(1, sizeof **transport_out);
    return *transport_out != NULL ? TUTTI_OK : host->fail(TUTTI_E_NOMEM, "no memory for a transport");
}

static const void *address(tutti_transport *transport, size_t *bytes_out)
{
    *bytes_out = sizeof transport->address;
    return transport->address;
}

static int connect_it(tutti_transport *transport, const void *to, size_t bytes, void *peer, tutti_transport_way **way_out)
{
    (void)transport;
    (void)to;
    (void)bytes;
    (void)peer;
    (void)way_out;
    return -EHOSTUNREACH;
}

__attribute__((unused)) static int send_it(tutti_transport_way *way, const void *parcel, size_t bytes, void *cookie)
{
    (void)way;
    (void)parcel;
    (void)bytes;
    (void)cookie;
    return -EIO;
}

__attribute__((unused)) static int handle(tutti_transport *transport)
{
    (void)transport;
    return -1;
}

static bool progress(tutti_transport *transport)
{
    (void)transport;
    return false;
}

static void give_back(tutti_transport *transport, void *loan)
{
    (void)transport;
    (void)loan;
}

static void disconnect(tutti_transport_way *way)
{
    (void)way;
}

static void close_it(tutti_transport *transport)
{
    free(transport);
}

__attribute__((unused)) static const tutti_transport_ops ops = {
    .api = TABLE_API,
    .size = TABLE_SIZE,
    .name = TABLE_NAME,
    .open = open_it,
    .address = address,
    .connect = connect_it,
    .send = SEND,
    .progress = progress,
    .handle = HANDLE,
    .give_back = give_back,
    .disconnect = disconnect,
    .close = close_it,
};

__attribute__((unused)) static tutti_status init(const tutti_plugin_host *given)
{
    host = given;
    if (getenv("VARIANT_IS_SHY") != NULL)
        return host->fail(TUTTI_E_IO, "the library below is not there");
    return TUTTI_OK;
}

const tutti_transport_plugin tutti_transport_entry = {
    .api = PLUGIN_API,
    .size = PLUGIN_SIZE,
    .name = NAME,
    .transport = TABLE,
    .init = INIT,
};
