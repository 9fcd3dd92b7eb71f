/* SPDX-License-Identifier: BSD-3-Clause
 *
 * mesh_context.c - the mesh that a thread works on, and a mesh in words. */
#include "device_mesh/mesh_object.h"

#include <stdarg.h>
#include <stdio.h>
#include <tutti/debug.h>
#include <tutti/private.h>

/* Per thread, because threads can be ranks: what one works on is not another's. */
static _Thread_local struct {
    tutti_device_mesh *meshes[TUTTI_MESH_CONTEXTS_MAX];
    int n;
} stack;

tutti_status tutti_device_mesh_push(tutti_device_mesh *mesh)
{
    if (mesh == NULL)
        return tti_fail(TUTTI_E_ARG, "device mesh: mesh is NULL");
    if (stack.n == TUTTI_MESH_CONTEXTS_MAX)
        return tti_fail(TUTTI_E_UNSUPPORTED,
                        "device mesh: %d are pushed, one inside of the other, no more fit",
                        stack.n);
    stack.meshes[stack.n++] = tti_mesh_retain(mesh);
    return TUTTI_OK;
}

static tutti_status none_active(void)
{
    return tti_fail(TUTTI_E_STATE, "device mesh: none is pushed on this thread\n"
                                   "  next: tutti_device_mesh_push()");
}

tutti_status tutti_device_mesh_pop(void)
{
    if (stack.n == 0)
        return none_active();
    tutti_device_mesh_free(stack.meshes[--stack.n]);
    return TUTTI_OK;
}

tutti_status tutti_device_mesh_current(tutti_device_mesh **mesh_out)
{
    if (mesh_out == NULL)
        return tti_fail(TUTTI_E_ARG, "device mesh: mesh_out is NULL");
    if (stack.n == 0)
        return none_active();
    *mesh_out = stack.meshes[stack.n - 1];
    return TUTTI_OK;
}

/* ---- in words ---- */

typedef struct text {
    char *to;
    size_t room;
    size_t length; /* that all of it needs */
} text;

TUTTI_PRINTF(2, 3) static void put(text *t, const char *fmt, ...)
{
    const bool fits = t->length < t->room;
    va_list args;
    int n;

    va_start(args, fmt);
    n = vsnprintf(fits ? t->to + t->length : NULL, fits ? t->room - t->length : 0, fmt, args);
    va_end(args);
    t->length += n > 0 ? (size_t)n : 0;
}

/* "4", or "(8, 1)" for dimensions that were flattened and are not one step after the other. */
static void put_stride(text *t, const tti_mesh_layout *layout, tti_mesh_dims dims)
{
    int strides[TUTTI_MESH_DIMS_MAX];
    int n = 0;
    int d;

    for (d = 0; d < layout->ndim; d++) {
        if ((dims >> d & 1) == 0)
            continue;
        if (n > 0 && strides[n - 1] == layout->shape[d] * layout->stride[d])
            n--; /* the two are one */
        strides[n++] = layout->stride[d];
    }
    for (d = 0; d < n; d++)
        put(t, "%s%d", d > 0 ? ", " : n > 1 ? "(" : "", strides[d]);
    put(t, "%s", n > 1 ? ")" : "");
}

static void put_ranks(text *t, const tutti_device_mesh *mesh)
{
    int i;

    for (i = 0; i < mesh->size && mesh->ranks != NULL; i++)
        put(t, "%s%d", i > 0 ? ", " : ", ranks=[", mesh->ranks[i]);
    put(t, "%s", mesh->ranks != NULL ? "]" : "");
}

size_t tutti_device_mesh_to_string(const tutti_device_mesh *mesh, char *text_out, size_t bytes)
{
    text t = { .to = text_out, .room = bytes };
    int d;

    if (bytes > 0)
        text_out[0] = '\0';
    if (mesh == NULL)
        return 0;
    for (d = 0; d < mesh->ndim; d++)
        put(&t, "%s%s%s%d", d > 0 ? ", " : "DeviceMesh((",
            mesh->axes[d]->name != NULL ? mesh->axes[d]->name : "",
            mesh->axes[d]->name != NULL ? "=" : "", mesh->shape[d]);
    put(&t, "), '%s', stride=", mesh->family->device_type == TUTTI_CPU ? "cpu" : "cuda");
    for (d = 0; d < mesh->ndim; d++) {
        put(&t, "%s", d > 0 ? ", " : "(");
        put_stride(&t, &mesh->family->layout, mesh->axes[d]->dims);
    }
    put(&t, ")");
    if (tutti_get_debug_level() == TUTTI_DEBUG_DETAIL)
        put_ranks(&t, mesh);
    put(&t, ")");
    return t.length;
}
