/* SPDX-License-Identifier: BSD-3-Clause
 *
 * msgpack.c - msgpack values as objects: packed, sent as bytes, checked, unpacked.
 *
 * Strings of unpacked values point into the bytes that came, so a list of values keeps them. A rank that
 * cannot pack comes to a collective all the same, with its failure (object.h, tti_offer). */
#include <tutti/msgpack.h>
#include "object/object.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "group/collective.h"
#include "wire/msgpack_check.h"
#include <tutti/private.h>

enum { ZONE_BYTES = 8192 };

static const tti_msgpack_limits limits = { .depth = TTI_MSGPACK_DEPTH_MAX, .values = TUTTI_MSGPACK_MAX };

void tutti_msgpack_free(tutti_msgpack *values)
{
    if (values == NULL)
        return;
    if (values->zone != NULL)
        msgpack_zone_free(values->zone);
    free(values->at);
    tutti_objects_free(&values->bytes);
    *values = (tutti_msgpack){ 0 };
}

/* ---- packing ---- */

tutti_status tutti_msgpack_pack(const msgpack_object *value, tutti_bytes *bytes_out)
{
    msgpack_sbuffer buffer;
    msgpack_packer  packer;

    if (value == NULL || bytes_out == NULL)
        return tti_fail(TUTTI_E_ARG, "msgpack_pack: the %s is NULL", value == NULL ? "value" : "output");
    msgpack_sbuffer_init(&buffer);
    msgpack_packer_init(&packer, &buffer, msgpack_sbuffer_write);
    /* and the NUL behind bytes, which is not counted */
    if (msgpack_pack_object(&packer, *value) != 0 || msgpack_sbuffer_write(&buffer, "", 1) != 0) {
        msgpack_sbuffer_destroy(&buffer);
        return tti_fail(TUTTI_E_NOMEM, "no memory to pack a value, of which %zu bytes were packed", buffer.size);
    }
    *bytes_out = (tutti_bytes){ .data = buffer.data, .size = buffer.size - 1 };
    return TUTTI_OK;
}

static void free_packed(tutti_bytes *list, int n)
{
    int i;

    for (i = 0; list != NULL && i < n; i++)
        tutti_bytes_free(&list[i]);
    free(list);
}

/* n values as a list of bytes, NULL for NULL. */
static tutti_status pack_list(const msgpack_object *values, int n, tutti_bytes **list_out)
{
    tutti_bytes *list;
    tutti_status st = TUTTI_OK;
    int          i;

    *list_out = NULL;
    if (values == NULL || n <= 0)
        return TUTTI_OK;
    list = calloc((size_t)n, sizeof *list);
    if (list == NULL)
        return tti_fail(TUTTI_E_NOMEM, "no memory for a list of %d values", n);
    for (i = 0; i < n && st == TUTTI_OK; i++)
        st = tutti_msgpack_pack(&values[i], &list[i]);
    if (st == TUTTI_OK)
        *list_out = list;
    else
        free_packed(list, n);
    return st;
}

/* ---- unpacking ---- */

static tutti_status unpack_one(const tutti_bytes *bytes, const char *whose, msgpack_zone *zone,
                               msgpack_object *value_out)
{
    size_t                at = 0;
    msgpack_unpack_return got;
    tutti_status          st = tti_msgpack_check(bytes->data, bytes->size, &limits, whose);

    if (st != TUTTI_OK)
        return st;
    got = msgpack_unpack(bytes->data, bytes->size, &at, zone, value_out);
    if (got == MSGPACK_UNPACK_NOMEM_ERROR)
        return tti_fail(TUTTI_E_NOMEM, "no memory to unpack the %zu bytes of %s", bytes->size, whose);
    if (got != MSGPACK_UNPACK_SUCCESS && got != MSGPACK_UNPACK_EXTRA_BYTES)
        return tti_fail(TUTTI_E_MISMATCH, "msgpack cannot unpack the %zu bytes of %s", bytes->size, whose);
    return TUTTI_OK;
}

/* Whose an object is: one of each member of group (NULL: of nobody in particular), or all of rank from. */
static tutti_status unpack(tutti_objects *bytes, const tutti_group *group, int from, tutti_msgpack *values_out)
{
    tutti_msgpack values = { .n = bytes->n };
    char          whose[48];
    tutti_status  st = TUTTI_OK;
    int           i;

    values.at = calloc((size_t)bytes->n + 1, sizeof *values.at);
    values.zone = msgpack_zone_new(ZONE_BYTES);
    if (values.at == NULL || values.zone == NULL)
        st = tti_fail(TUTTI_E_NOMEM, "no memory to unpack %d values", bytes->n);
    for (i = 0; i < bytes->n && st == TUTTI_OK; i++) {
        if (group == NULL)
            snprintf(whose, sizeof whose, "object %d", i);
        else
            snprintf(whose, sizeof whose, "object %d, of rank %d", i, from >= 0 ? from : group->ranks[i]);
        st = unpack_one(&bytes->at[i], whose, values.zone, &values.at[i]);
    }
    if (st != TUTTI_OK) {
        tutti_msgpack_free(&values);
        return st;
    }
    values.bytes = *bytes;
    *bytes = (tutti_objects){ 0 };
    *values_out = values;
    return TUTTI_OK;
}

tutti_status tutti_msgpack_unpack(tutti_objects *bytes, tutti_msgpack *values_out)
{
    if (bytes == NULL || values_out == NULL)
        return tti_fail(TUTTI_E_ARG, "msgpack_unpack: the %s is NULL", bytes == NULL ? "list" : "output");
    return unpack(bytes, NULL, -1, values_out);
}

/* Unpack what came, if anything did; bytes are released on failure. */
static tutti_status take(tutti_status st, tutti_objects *bytes, const tutti_group *group, int from, bool came,
                         tutti_msgpack *values_out)
{
    if (st == TUTTI_OK && came)
        st = unpack(bytes, group, from, values_out);
    tutti_objects_free(bytes);
    return st;
}

/* ---- collectives ---- */

static tutti_status check(const tutti_group *group, const char *what, const char *name, const void *given,
                          bool wanted)
{
    if (wanted == (given != NULL))
        return TUTTI_OK;
    return tti_fail(TUTTI_E_ARG, "%s on group '%s': %s is %s on rank %d", what, group->name, name,
                    wanted ? "NULL" : "given", group->ranks[group->rank]);
}

static tutti_status check_length(const tutti_group *group, const char *what, int n, int least, int most)
{
    if (n >= least && n <= most)
        return TUTTI_OK;
    return tti_fail(TUTTI_E_ARG, "%s on group '%s': a list of %d values on rank %d, not of %d .. %d", what,
                    group->name, n, group->ranks[group->rank], least, most);
}

tutti_status tutti_all_gather_msgpack(const msgpack_object *value, tutti_group *group, tutti_msgpack *values_out)
{
    const char   *what = "all_gather_msgpack";
    tutti_objects bytes = { 0 };
    tutti_bytes   own = { 0 };
    tti_offer     offer = { .list = &own, .n = 1 };
    tutti_group  *g = NULL;
    tutti_status  st = tti_group_resolve(group, what, &g);

    if (st != TUTTI_OK || g == NULL)
        return st;
    st = check(g, what, "value", value, true);
    if (st == TUTTI_OK)
        st = check(g, what, "values_out", values_out, true);
    if (st != TUTTI_OK)
        return st;
    offer.st = tutti_msgpack_pack(value, &own);
    st = tti_object_all_gather(g, what, &offer, &bytes);
    tutti_bytes_free(&own);
    return take(st, &bytes, g, -1, true, values_out);
}

tutti_status tutti_gather_msgpack(const msgpack_object *value, int dst, tutti_group *group,
                                  tutti_msgpack *values_out)
{
    const char   *what = "gather_msgpack";
    tutti_objects bytes = { 0 };
    tutti_bytes   own = { 0 };
    tti_offer     offer = { .list = &own, .n = 1 };
    tutti_group  *g = NULL;
    int           root = -1;
    tutti_status  st = tti_group_resolve(group, what, &g);

    if (st != TUTTI_OK || g == NULL)
        return st;
    st = tti_check_root(g, what, "dst", dst, &root);
    if (st == TUTTI_OK)
        st = check(g, what, "value", value, true);
    if (st == TUTTI_OK)
        st = check(g, what, "values_out", values_out, g->rank == root);
    if (st != TUTTI_OK)
        return st;
    offer.st = tutti_msgpack_pack(value, &own);
    st = tti_object_gather(g, what, &offer, root, &bytes);
    tutti_bytes_free(&own);
    return take(st, &bytes, g, -1, g->rank == root, values_out);
}

tutti_status tutti_broadcast_msgpack_list(const msgpack_object *values, int n, int src, tutti_group *group,
                                          tutti_msgpack *values_out)
{
    const char   *what = "broadcast_msgpack_list";
    tutti_objects bytes = { 0 };
    tutti_bytes  *list = NULL;
    tti_offer     offer = { .n = n };
    tutti_group  *g = NULL;
    int           root = -1;
    tutti_status  st = tti_group_resolve(group, what, &g);

    if (st != TUTTI_OK || g == NULL)
        return st;
    st = tti_check_root(g, what, "src", src, &root);
    if (st == TUTTI_OK)
        st = check_length(g, what, n, 0, TUTTI_OBJECT_LIST_MAX);
    if (st == TUTTI_OK && n > 0)
        st = check(g, what, "values", values, g->rank == root);
    if (st == TUTTI_OK)
        st = check(g, what, "values_out", values_out, g->rank != root);
    if (st != TUTTI_OK)
        return st;
    offer.st = pack_list(values, n, &list);
    offer.list = list;
    st = tti_object_broadcast(g, what, &offer, root, &bytes);
    free_packed(list, n);
    return take(st, &bytes, g, src, g->rank != root, values_out);
}

tutti_status tutti_scatter_msgpack_list(const msgpack_object *values, int n, int src, tutti_group *group,
                                        tutti_msgpack *values_out)
{
    const char   *what = "scatter_msgpack_list";
    tutti_objects bytes = { 0 };
    tutti_bytes  *list = NULL;
    tti_offer     offer = { .n = n };
    tutti_group  *g = NULL;
    int           root = -1;
    tutti_status  st = tti_group_resolve(group, what, &g);

    if (st != TUTTI_OK || g == NULL)
        return st;
    st = tti_check_root(g, what, "src", src, &root);
    if (st == TUTTI_OK)
        st = check_length(g, what, n, g->rank == root ? g->size : 0, g->rank == root ? g->size : 0);
    if (st == TUTTI_OK)
        st = check(g, what, "values", values, g->rank == root);
    if (st == TUTTI_OK)
        st = check(g, what, "values_out", values_out, true);
    if (st != TUTTI_OK)
        return st;
    offer.st = pack_list(values, n, &list);
    offer.list = list;
    st = tti_object_scatter(g, what, &offer, root, &bytes);
    free_packed(list, n);
    return take(st, &bytes, g, src, true, values_out);
}

/* ---- messages ---- */

tutti_status tutti_send_msgpack_list(const msgpack_object *values, int n, int dst, int tag, tutti_group *group)
{
    tutti_bytes *list = NULL;
    tutti_status st = TUTTI_OK;

    if (n < 0 || n > TUTTI_OBJECT_LIST_MAX || (values == NULL && n > 0))
        return tti_fail(TUTTI_E_ARG, "send_msgpack_list: a list of %d values%s", n, values == NULL ? " that is NULL" : "");
    st = pack_list(values, n, &list);
    if (st == TUTTI_OK)
        st = tutti_send_object_list(list, n, dst, tag, group);
    free_packed(list, n);
    return st;
}

tutti_status tutti_recv_msgpack_list(int src, int tag, tutti_group *group, tutti_msgpack *values_out, int *src_out)
{
    tutti_objects bytes = { 0 };
    int           from = -1;
    tutti_status  st;

    if (values_out == NULL)
        return tti_fail(TUTTI_E_ARG, "recv_msgpack_list: values_out is NULL");
    st = tutti_recv_object_list(src, tag, group, &bytes, &from);
    st = take(st, &bytes, tti_group_peek(group), from, from >= 0, values_out);
    if (st == TUTTI_OK && src_out != NULL)
        *src_out = from;
    return st;
}
