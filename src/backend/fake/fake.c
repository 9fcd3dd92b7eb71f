/* SPDX-License-Identifier: BSD-3-Clause
 *
 * fake.c - a backend that moves nothing.
 *
 * Why     Code that lays out meshes, cuts parameters or plans schedules for 64 ranks can be run and
 *         tested in one process, as any one of them.
 * How     Every operation is complete at once. A kind of all_gather copies the caller's part into every
 *         entry of its list, as if all ranks had the same; everything else leaves buffers as they are. A
 *         message has been sent, or received as it was, when it is posted.
 * Fails   With TUTTI_FAKE_ERROR every collective fails, messages do not: what a program does then can be
 *         tested as well. */
#include "backend/fake/fake.h"

#include <stdlib.h>
#include <string.h>
#include <tutti/private.h>

typedef struct fake {
    tutti_backend base;
    int           rank;
    int           n_ranks;
    bool          fails;
} fake;

struct tutti_request {
    int source;
};

static tutti_status fake_create(const tutti_backend_config *config, tutti_backend **backend_out)
{
    const char *error = tti_env("TUTTI_FAKE_ERROR");
    fake       *f = calloc(1, sizeof *f);

    if (f == NULL)
        return tti_fail(TUTTI_E_NOMEM, "no memory for a backend");
    f->base.ops = &tti_fake_backend_ops;
    f->rank = config->rank;
    f->n_ranks = config->n_ranks;
    f->fails = strcmp(error, "0") != 0;
    *backend_out = &f->base;
    return TUTTI_OK;
}

static void copy_part(void *to, const void *from, int64_t count, size_t element)
{
    if (count > 0 && to != from)
        memmove(to, from, (size_t)count * element);
}

/* list[n] of parts like in; parts of other sizes get as much of it as fits. */
static void spread(const fake *f, const tutti_call *call, const void *in, void *const *list, int64_t count)
{
    const size_t element = tutti_dtype_size(call->dtype);
    int64_t      own = call->list_counts != NULL ? call->list_counts[f->rank] : count;
    int64_t      room;
    int          r;

    for (r = 0; r < f->n_ranks; r++) {
        room = call->list_counts != NULL ? call->list_counts[r] : count;
        copy_part(list[r], in, room < own ? room : own, element);
    }
}

static tutti_status fake_run(tutti_backend *backend, const tutti_call *call)
{
    const fake *f = (const fake *)backend;
    int         i;

    if (f->fails)
        return tti_fail(TUTTI_E_BACKEND, "collective #%llu: backend 'fake' was told to fail (TUTTI_FAKE_ERROR)",
                        (unsigned long long)call->seq);
    if (call->kind != TUTTI_CALL_ALL_GATHER || call->device != TUTTI_CPU)
        return TUTTI_OK;
    if (call->n_segments == 0)
        spread(f, call, call->in, call->list, call->count);
    for (i = 0; i < call->n_segments; i++)
        spread(f, call, call->segments[i].in, call->list + (size_t)i * (size_t)f->n_ranks,
               call->segments[i].count);
    return TUTTI_OK;
}

static tutti_status fake_post(tutti_backend *backend, const tutti_message *message, tutti_request **request_out)
{
    const fake    *f = (const fake *)backend;
    tutti_request *request = calloc(1, sizeof *request);

    if (request == NULL)
        return tti_fail(TUTTI_E_NOMEM, "no memory for a request");
    request->source = message->peer;
    if (message->is_send)
        request->source = -1;
    else if (message->peer < 0)
        request->source = (f->rank + 1) % f->n_ranks;
    *request_out = request;
    return TUTTI_OK;
}

static tutti_status fake_wait(tutti_request *request, int64_t deadline_ns)
{
    (void)request;
    (void)deadline_ns;
    return TUTTI_OK;
}

static bool fake_test(tutti_request *request)
{
    (void)request;
    return true;
}

static int fake_source(const tutti_request *request)
{
    return request->source;
}

static void fake_release(tutti_request *request)
{
    free(request);
}

/* Nothing ever waits. */
static void fake_abort(tutti_backend *backend)
{
    (void)backend;
}

static void fake_destroy(tutti_backend *backend)
{
    free(backend);
}

const tutti_backend_ops tti_fake_backend_ops = {
    .api = TUTTI_BACKEND_API,
    .size = sizeof(tutti_backend_ops),
    .name = "fake",
    .create = fake_create,
    .run = fake_run,
    .post = fake_post,
    .wait = fake_wait,
    .test = fake_test,
    .source = fake_source,
    .release = fake_release,
    .abort = fake_abort,
    .destroy = fake_destroy,
    .needs_no_peers = true,
    .takes_segments = true,
};
