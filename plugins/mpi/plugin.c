/* SPDX-License-Identifier: BSD-3-Clause
 *
 * plugin.c - what this object shows.
 *
 * MPI begins with the first group, not here: a program may ask whether the plug-in is there, and go on without. */
#include "mpi_backend.h"

const tutti_plugin_host *tmpi_host;

static tutti_status init(const tutti_plugin_host *host)
{
    tmpi_host = host;
    return TUTTI_OK;
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
};

const tutti_plugin tutti_plugin_entry = {
    .api = TUTTI_PLUGIN_API,
    .size = sizeof(tutti_plugin),
    .name = "mpi",
    .devices = 1u << TUTTI_CPU,
    .backend = &tmpi_ops,
    .init = init,
};
