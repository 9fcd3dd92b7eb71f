/* SPDX-License-Identifier: BSD-3-Clause
 *
 * plugin.c - what this object shows.
 *
 * MPI begins with the first group, not here: a program may ask whether the plug-in is there, and go on without. What is looked
 * at here is whether it could: a program that runs with another MPI library than ours would be ended by it. MPI encrypts nothing: where
 * all connections of a job are to be encrypted, this is none for it. */
#include "mpi_backend.h"

#include <stdlib.h>
#include <string.h>

const tutti_plugin_host *tmpi_host;

static tutti_status init(const tutti_plugin_host *host)
{
    const char *tls = getenv("TUTTI_TLS");

    tmpi_host = host;
    if (tls == NULL || strcmp(tls, "1") != 0)
        return tmpi_library_check();
    return host->fail(TUTTI_E_UNSUPPORTED, "the backend 'mpi' sends in the clear, and TUTTI_TLS asks for encryption\n"
                                           "  next: unset TUTTI_TLS, or ask for another backend");
}

const tutti_backend_ops tmpi_ops = {
    .api = TUTTI_BACKEND_API,
    .size = sizeof(tutti_backend_ops),
    .name = "mpi",
    .create = tmpi_create,
    .run = tmpi_run,
    .post = tmpi_post,
    .wait = tmpi_request_wait,
    .test = tmpi_request_test,
    .source = tmpi_request_source,
    .release = tmpi_request_release,
    .abort = tmpi_abort,
    .destroy = tmpi_destroy,
    .fail = tmpi_fail,
    .notify = tmpi_request_notify,
    .takes_segments = true,
    .streams = &tmpi_stream_ops,
    .usable = tmpi_usable,
    .fixed_world = true,
};

const tutti_plugin tutti_plugin_entry = {
    .api = TUTTI_PLUGIN_API,
    .size = sizeof(tutti_plugin),
    .name = "mpi",
    .devices = 1u << TUTTI_CPU | 1u << TUTTI_CUDA, /* the second: if MPI says so, once it has begun */
    .backend = &tmpi_ops,
    .init = init,
};
