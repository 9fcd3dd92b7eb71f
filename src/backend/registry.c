/* SPDX-License-Identifier: BSD-3-Clause
 *
 * registry.c - the backends of this build; the only file that names them. */
#include "backend/registry.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <tutti/private.h>
#include "backend/device_map.h"
#include "backend/fake/fake.h"
#include "backend/native/native.h"

/* Ends with NULL. */
static const tutti_backend_ops *const known[] = {
    &tti_native_backend_ops,
    &tti_fake_backend_ops,
    NULL,
};

enum { ON_CPU = 1u << TUTTI_CPU, ON_CUDA = 1u << TUTTI_CUDA };

/* Whose memory each backend takes, those of plug-ins included. */
static const struct {
    const char *name;
    unsigned    devices;
    bool        is_plugin;
} claims[] = {
    { "native", ON_CPU, false },
    { "fake", ON_CPU | ON_CUDA, false },
    { "nccl", ON_CUDA, true },
    { "mpi", ON_CPU | ON_CUDA, true },
    { "ucc", ON_CPU | ON_CUDA, true },
};

enum { N_CLAIMS = sizeof claims / sizeof claims[0] };

static int claim_of(const char *name)
{
    int i;

    for (i = 0; i < N_CLAIMS; i++)
        if (strcasecmp(claims[i].name, name) == 0)
            return i;
    return -1;
}

const char *tti_backend_default_of(tutti_device_type device)
{
    return device == TUTTI_CUDA ? "nccl" : TTI_BACKEND_DEFAULT;
}

static void list_names(char *out, size_t bytes)
{
    size_t used = 0;
    size_t i;

    snprintf(out, bytes, "none");
    for (i = 0; known[i] != NULL && used < bytes; i++)
        used += (size_t)snprintf(out + used, bytes - used, "%s'%s'", i == 0 ? "" : ", ",
                                 known[i]->name);
}

static tutti_status no_such_backend(const char *wanted)
{
    char names[256];

    list_names(names, sizeof names);
    return tti_fail(TUTTI_E_ARG, "there is no backend '%.64s'\n  next: use one of this build: %s",
                    wanted, names);
}

tutti_status tti_backend_find(const char *name, const tutti_backend_ops **ops_out)
{
    const char  *wanted = name != NULL ? name : TTI_BACKEND_DEFAULT;
    tutti_status st;
    size_t       i;

    for (i = 0; known[i] != NULL; i++) {
        if (strcasecmp(known[i]->name, wanted) != 0)
            continue;
        st = tti_backend_check(known[i]);
        if (st == TUTTI_OK)
            *ops_out = known[i];
        return st;
    }
    i = (size_t)claim_of(wanted);
    if (i < N_CLAIMS && claims[i].is_plugin)
        return tti_fail(TUTTI_E_UNSUPPORTED,
                        "backend '%s' is not in this build: it would be the plug-in 'libtutti_%s.so', and "
                        "this version has none",
                        claims[i].name, claims[i].name);
    return no_such_backend(wanted);
}

tutti_status tti_backend_devices(const char *name, unsigned *devices_out)
{
    const int i = claim_of(name);

    if (i < 0)
        return no_such_backend(name);
    *devices_out = claims[i].devices;
    return TUTTI_OK;
}

/* The first required entry that is missing; NULL: none is. */
static const char *missing_entry(const tutti_backend_ops *ops)
{
    const struct {
        const char *name;
        bool        there;
    } required[] = {
        { "create", ops->create != NULL },   { "run", ops->run != NULL },
        { "post", ops->post != NULL },       { "wait", ops->wait != NULL },
        { "test", ops->test != NULL },       { "source", ops->source != NULL },
        { "release", ops->release != NULL }, { "abort", ops->abort != NULL },
        { "destroy", ops->destroy != NULL },
    };
    size_t i;

    for (i = 0; i < sizeof required / sizeof required[0]; i++)
        if (!required[i].there)
            return required[i].name;
    return NULL;
}

tutti_status tti_backend_check(const tutti_backend_ops *ops)
{
    const char *missing;

    if (ops->api != TUTTI_BACKEND_API || ops->size != sizeof *ops)
        return tti_fail(
            TUTTI_E_UNSUPPORTED,
            "a backend's table has version %u and %u bytes, this library drives version "
            "%d with %zu\n  next: build both from the same headers",
            ops->api, ops->size, TUTTI_BACKEND_API, sizeof *ops);
    if (ops->name == NULL || ops->name[0] == '\0')
        return tti_fail(TUTTI_E_ARG, "a backend's table has no name");
    missing = missing_entry(ops);
    if (missing != NULL)
        return tti_fail(TUTTI_E_ARG, "the table of backend '%s' has no entry '%s'", ops->name,
                        missing);
    return TUTTI_OK;
}

tutti_status tti_backend_check_env(const tutti_backend_ops *ops)
{
    return ops == &tti_native_backend_ops ? tti_native_check_env() : TUTTI_OK;
}
