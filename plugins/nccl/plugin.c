/* SPDX-License-Identifier: BSD-3-Clause
 *
 * plugin.c - what this object shows.
 *
 * The two libraries and a GPU are looked for here: where they are missing, a program that asks is told that there is no such backend. NCCL encrypts
 * nothing: where all connections of a job are to be encrypted, this is none for it. */
#include "nccl_backend.h"

#include <stdlib.h>
#include <string.h>

const tutti_plugin_host *tnccl_host;

static tutti_status init(const tutti_plugin_host *host)
{
    const char *tls = getenv("TUTTI_TLS");

    tnccl_host = host;
    if (tls == NULL || strcmp(tls, "1") != 0)
        return tnccl_load();
    return host->fail(TUTTI_E_UNSUPPORTED, "the backend 'nccl' sends in the clear, and TUTTI_TLS asks for encryption\n"
                                           "  next: unset TUTTI_TLS, or ask for another backend");
}

const tutti_backend_ops tnccl_ops = {
    .api = TUTTI_BACKEND_API,
    .size = sizeof(tutti_backend_ops),
    .name = "nccl",
    .create = tnccl_create,
    .run = tnccl_run,
    .post = tnccl_post,
    .wait = tnccl_request_wait,
    .test = tnccl_request_test,
    .source = tnccl_request_source,
    .release = tnccl_request_release,
    .abort = tnccl_abort,
    .destroy = tnccl_destroy,
    .fail = tnccl_fail,
    .post_all = tnccl_post_all,
    .takes_segments = true,
    .streams = &tnccl_stream_ops,
    .sit_out = tnccl_sit_out,
};

const tutti_plugin tutti_plugin_entry = {
    .api = TUTTI_PLUGIN_API,
    .size = sizeof(tutti_plugin),
    .name = "nccl",
    .devices = 1u << TUTTI_CUDA,
    .backend = &tnccl_ops,
    .init = init,
};
