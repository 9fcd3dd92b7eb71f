/* SPDX-License-Identifier: BSD-3-Clause
 *
 * variant.c - a plug-in that is built many times, each time with another thing wrong (CMakeLists.txt says which).
 *
 * NAME is what it is called, and what else is given says what is wrong. As it is, it is a backend that waits for nobody, has
 * no messages, and does barriers; it refuses everything else. */
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
#include <tutti/plugin/plugin.h>

#ifndef PLUGIN_API
#define PLUGIN_API TUTTI_PLUGIN_API
#endif
#ifndef PLUGIN_SIZE
#define PLUGIN_SIZE sizeof(tutti_plugin)
#endif
#ifndef TABLE_API
#define TABLE_API TUTTI_BACKEND_API
#endif
#ifndef TABLE_SIZE
#define TABLE_SIZE sizeof(tutti_backend_ops)
#endif
#ifndef DEVICES
#define DEVICES (1u << TUTTI_CPU)
#endif
#ifndef RUN
#define RUN run
#endif
#ifndef POST
#define POST NULL
#endif
#ifndef TABLE
#define TABLE &ops
#endif
#ifndef INIT
#define INIT init
#endif

static const tutti_plugin_host *host;
static uint64_t                 n_inits;

static const tutti_backend_ops ops;

static tutti_status create(const tutti_backend_config *config, tutti_backend **backend_out)
{
    tutti_backend *b = malloc(sizeof *b);

    (void)config;
    if (b == NULL)
        return host->fail(TUTTI_E_NOMEM, "no memory for a backend");
    b->ops = &ops;
    *backend_out = b;
    return TUTTI_OK;
}

__attribute__((unused)) static tutti_status run(tutti_backend *backend, const tutti_call *call)
{
    (void)backend;
    if (call->kind == TUTTI_CALL_BARRIER)
        return TUTTI_OK;
    return host->fail(TUTTI_E_UNSUPPORTED, "this backend has barriers only, not %d", (int)call->kind);
}

__attribute__((unused)) static tutti_status post(tutti_backend *backend, const tutti_message *message, tutti_request **request_out)
{
    (void)backend;
    (void)message;
    (void)request_out;
    return host->fail(TUTTI_E_BACKEND, "nobody should come here");
}

static void abort_it(tutti_backend *backend)
{
    (void)backend;
}

static void destroy(tutti_backend *backend)
{
    free(backend);
}

/* How often init was called. */
static uint64_t inits(tutti_backend *backend)
{
    (void)backend;
    return n_inits;
}

static const tutti_backend_ops ops = {
    .api = TABLE_API,
    .size = TABLE_SIZE,
    .name = NAME,
    .create = create,
    .run = RUN,
    .post = POST,
    .abort = abort_it,
    .destroy = destroy,
    .needs_no_peers = true,
    .world_id = inits,
};

/* Something that a plug-in may well do: run a program, or fork. */
static bool child_comes_back(void)
{
    const pid_t child = fork();
    int         status = 1;

    if (child == 0)
        _exit(0);
    return child > 0 && waitpid(child, &status, 0) == child && status == 0;
}

__attribute__((unused)) static tutti_status init(const tutti_plugin_host *given)
{
    host = given;
    n_inits++;
    if (host->api < TUTTI_PLUGIN_API || host->size < sizeof *host || host->version[0] == '\0')
        return host->fail(TUTTI_E_BACKEND, "this is no host for this plug-in");
    if (getenv("VARIANT_IS_MUTE") != NULL)
        return TUTTI_E_NETWORK;
    if (getenv("VARIANT_IS_ODD") != NULL) {
        (void)host->fail(TUTTI_E_IO, "the library below is new");
        return (tutti_status)4711;
    }
    if (getenv("VARIANT_IS_SHY") != NULL)
        return host->fail(TUTTI_E_IO, "the library below is not there");
    if (!child_comes_back())
        return host->fail(TUTTI_E_BACKEND, "cannot fork");
    return TUTTI_OK;
}

const tutti_plugin tutti_plugin_entry = {
    .api = PLUGIN_API,
    .size = PLUGIN_SIZE,
    .name = NAME,
    .devices = DEVICES,
    .backend = TABLE,
    .init = INIT,
};
