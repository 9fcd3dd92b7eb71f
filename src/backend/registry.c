/* SPDX-License-Identifier: BSD-3-Clause
 *
 * registry.c - the backends of this build; the only file that names them. */
#include "backend/registry.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <tutti/private.h>
#include "backend/native/native.h"

/* Ends with NULL. */
static const tutti_backend_ops *const known[] = {
    &tti_native_backend_ops,
    NULL,
};

static void list_names(char *out, size_t bytes)
{
    size_t used = 0;
    size_t i;

    snprintf(out, bytes, "none");
    for (i = 0; known[i] != NULL && used < bytes; i++)
        used += (size_t)snprintf(out + used, bytes - used, "%s'%s'", i == 0 ? "" : ", ",
                                 known[i]->name);
}

tutti_status tti_backend_find(const char *name, const tutti_backend_ops **ops_out)
{
    const char  *wanted = name != NULL ? name : TTI_BACKEND_DEFAULT;
    char         names[256];
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
    list_names(names, sizeof names);
    return tti_fail(TUTTI_E_ARG, "there is no backend '%.64s'\n  next: use one of this build: %s",
                    wanted, names);
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
