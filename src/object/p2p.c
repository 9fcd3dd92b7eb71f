/* SPDX-License-Identifier: BSD-3-Clause
 *
 * p2p.c - lists of objects as messages.
 *
 * How     One tag, in this order, all from one rank to one rank:
 *           head    HEAD_BYTES: magic, version, how many objects, bytes of the largest and of all
 *           table   int64 per object: its size. Neither it nor what follows where there are no objects
 *           pieces  the objects as they lie in their block (objects.c), PIECE_BYTES each, the last one shorter
 *         With any source the head decides whose table and pieces are waited for.
 * True    Nothing is allocated from a number before it was compared with a limit: the table's length with
 *         TUTTI_OBJECT_LIST_MAX, the objects' sizes with TUTTI_OBJECT_MAX and TUTTI_OBJECTS_MAX of this process.
 * Fails   A receiver that refuses or has no memory still takes the pieces, one after the other, into one
 *         piece of memory, so that the sender is through and the tag is free for what comes next. A head or a
 *         table that nobody could have sent is TUTTI_E_MISMATCH at once. */
#include "object/object.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "wire/bytes.h"
#include <tutti/private.h>

enum { HEAD_BYTES = 32, MAGIC = 0x424f5454 /* "TTOB" */, VERSION = 1 };
static const int64_t PIECE_BYTES = INT64_C(4) << 20;

/* Where a list goes, or comes from. */
typedef struct route {
    const char  *what;
    tutti_group *group;
    int          peer; /* global */
    int          tag;
} route;

typedef struct head {
    int64_t n;
    int64_t largest;
    int64_t total;
} head;

static void write_head(uint8_t *at, const head *h)
{
    at = tti_put_u32(at, MAGIC);
    at = tti_put_u32(at, VERSION);
    at = tti_put_u64(at, (uint64_t)h->n);
    at = tti_put_u64(at, (uint64_t)h->largest);
    tti_put_u64(at, (uint64_t)h->total);
}

static tutti_status read_head(const route *r, const uint8_t *at, head *head_out)
{
    const uint32_t magic = tti_get_u32(at), version = tti_get_u32(at + 4);
    const uint64_t n = tti_get_u64(at + 8), largest = tti_get_u64(at + 16), total = tti_get_u64(at + 24);

    if (magic != MAGIC)
        return tti_fail(TUTTI_E_MISMATCH, "%s on group '%s': rank %d sent no list of objects, tag %d", r->what,
                        r->group->name, r->peer, r->tag);
    if (version != VERSION)
        return tti_fail(TUTTI_E_MISMATCH, "%s on group '%s': rank %d sends objects in version %u, here it is %d",
                        r->what, r->group->name, r->peer, version, VERSION);
    if (n > TUTTI_OBJECT_LIST_MAX || largest > total || total > UINT64_C(1) << 50)
        return tti_fail(TUTTI_E_MISMATCH,
                        "%s on group '%s': rank %d announces %llu objects of at most %llu bytes, %llu together",
                        r->what, r->group->name, r->peer, (unsigned long long)n, (unsigned long long)largest,
                        (unsigned long long)total);
    *head_out = (head){ .n = (int64_t)n, .largest = (int64_t)largest, .total = (int64_t)total };
    return TUTTI_OK;
}

/* ---- sending ---- */

static tutti_status send_pieces(const route *r, tutti_span all)
{
    uint8_t     *at = all.data;
    int64_t      left = all.count;
    int64_t      piece;
    tutti_status st = TUTTI_OK;

    for (; left > 0 && st == TUTTI_OK; left -= piece, at += piece) {
        piece = left < PIECE_BYTES ? left : PIECE_BYTES;
        st = tutti_send(TUTTI_SPAN(at, piece), r->peer, r->tag, r->group);
    }
    return st;
}

/* The list as it travels, and the sizes in it. */
static tutti_status prepare(const tutti_bytes *list, int n, int64_t **sizes_out, tutti_objects *objects)
{
    int64_t     *sizes = calloc((size_t)n + 1, sizeof *sizes);
    tutti_status st;
    int          i;

    if (sizes == NULL)
        return tti_fail(TUTTI_E_NOMEM, "no memory for the sizes of %d objects", n);
    for (i = 0; i < n; i++)
        sizes[i] = (int64_t)list[i].size;
    st = tti_objects_create(sizes, n, objects);
    if (st != TUTTI_OK) {
        free(sizes);
        return st;
    }
    for (i = 0; i < n; i++)
        if (list[i].size > 0)
            memcpy(objects->at[i].data, list[i].data, list[i].size);
    *sizes_out = sizes;
    return TUTTI_OK;
}

static tutti_status check_limits(const route *r, const head *h, const char *whose)
{
    tti_object_limits limits;
    tutti_status      st = tti_object_limits_read(&limits);

    return st == TUTTI_OK ? tti_object_limits_check(r->group, r->what, whose, h->largest, h->total, &limits)
                          : st;
}

static tutti_status send_list(const route *r, const tutti_bytes *list, int n)
{
    head          h = { .n = n };
    tutti_objects objects = { 0 };
    uint8_t       bytes[HEAD_BYTES];
    int64_t      *sizes = NULL;
    tutti_status  st;

    tti_objects_measure(list, n, &h.largest, &h.total);
    st = check_limits(r, &h, "this rank");
    if (st == TUTTI_OK)
        st = prepare(list, n, &sizes, &objects);
    if (st != TUTTI_OK)
        return st;
    write_head(bytes, &h);
    st = tutti_send(TUTTI_SPAN(bytes, HEAD_BYTES), r->peer, r->tag, r->group);
    if (st == TUTTI_OK && n > 0)
        st = tutti_send(TUTTI_SPAN(sizes, n), r->peer, r->tag, r->group);
    if (st == TUTTI_OK)
        st = send_pieces(r, tti_objects_payload(&objects));
    tutti_objects_free(&objects);
    free(sizes);
    return st;
}

tutti_status tutti_send_object_list(const tutti_bytes *list, int n, int dst, int tag, tutti_group *group)
{
    route        r = { .what = "send_object_list", .peer = dst, .tag = tag };
    tutti_status st = tti_group_resolve(group, r.what, &r.group);

    if (st != TUTTI_OK || r.group == NULL)
        return st;
    st = tti_objects_check(r.group, r.what, list, n);
    return st == TUTTI_OK ? send_list(&r, list, n) : st;
}

/* ---- receiving ---- */

static tutti_status recv_pieces(const route *r, tutti_span all)
{
    uint8_t     *at = all.data;
    int64_t      left = all.count;
    int64_t      piece;
    tutti_status st = TUTTI_OK;

    for (; left > 0 && st == TUTTI_OK; left -= piece, at += piece) {
        piece = left < PIECE_BYTES ? left : PIECE_BYTES;
        st = tutti_recv(TUTTI_SPAN(at, piece), r->peer, r->tag, r->group, NULL);
    }
    return st;
}

/* Take what belongs to a list that is not wanted. Returns st, with its words, if that works. */
static tutti_status drain(const route *r, int64_t left, tutti_status st)
{
    char         words[TTI_GROUP_WORDS_MAX];
    uint8_t     *scratch = malloc((size_t)PIECE_BYTES);
    int64_t      piece;
    tutti_status taken = TUTTI_OK;

    snprintf(words, sizeof words, "%s", tutti_last_error());
    if (scratch == NULL)
        return tti_object_give_up(r->group, r->what, st);
    for (; left > 0 && taken == TUTTI_OK; left -= piece) {
        piece = left < PIECE_BYTES ? left : PIECE_BYTES;
        taken = tutti_recv(TUTTI_SPAN(scratch, piece), r->peer, r->tag, r->group, NULL);
    }
    free(scratch);
    return taken == TUTTI_OK ? tti_fail(st, "%s", words) : taken;
}

/* The table adds up to what the head says. */
static tutti_status check_table(const route *r, const head *h, const int64_t *sizes)
{
    int64_t left = h->total;
    int64_t i;

    for (i = 0; i < h->n && sizes[i] >= 0 && sizes[i] <= h->largest && sizes[i] <= left; i++)
        left -= sizes[i];
    if (i < h->n || left != 0)
        return tti_fail(TUTTI_E_MISMATCH,
                        "%s on group '%s': the sizes that rank %d sent do not add up to the %lld bytes that it "
                        "announced",
                        r->what, r->group->name, r->peer, (long long)h->total);
    return TUTTI_OK;
}

static tutti_status recv_objects(const route *r, const head *h, const int64_t *sizes, tutti_objects *objects)
{
    tutti_status st = check_limits(r, h, "the sender");

    if (st == TUTTI_OK)
        st = tti_objects_create(sizes, (int)h->n, objects);
    if (st != TUTTI_OK)
        return drain(r, tti_objects_payload_bytes(sizes, (int)h->n), st);
    return recv_pieces(r, tti_objects_payload(objects));
}

static tutti_status recv_list(route *r, tutti_objects *objects)
{
    uint8_t      bytes[HEAD_BYTES];
    int64_t     *sizes = NULL;
    head         h = { 0 };
    tutti_status st = tutti_recv(TUTTI_SPAN(bytes, HEAD_BYTES), r->peer, r->tag, r->group, &r->peer);

    if (st == TUTTI_OK)
        st = read_head(r, bytes, &h);
    if (st != TUTTI_OK || h.n == 0)
        return st;
    sizes = calloc((size_t)h.n, sizeof *sizes);
    if (sizes == NULL)
        return tti_object_give_up(r->group, r->what,
                                  tti_fail(TUTTI_E_NOMEM, "no memory for %lld sizes", (long long)h.n));
    st = tutti_recv(TUTTI_SPAN(sizes, h.n), r->peer, r->tag, r->group, NULL);
    if (st == TUTTI_OK)
        st = check_table(r, &h, sizes);
    if (st == TUTTI_OK)
        st = recv_objects(r, &h, sizes, objects);
    free(sizes);
    return st;
}

tutti_status tutti_recv_object_list(int src, int tag, tutti_group *group, tutti_objects *objects_out,
                                    int *src_out)
{
    route         r = { .what = "recv_object_list", .peer = src, .tag = tag };
    tutti_objects objects = { 0 };
    tutti_status  st = tti_group_resolve(group, r.what, &r.group);

    if (st == TUTTI_OK && r.group == NULL && src_out != NULL)
        *src_out = -1;
    if (st != TUTTI_OK || r.group == NULL)
        return st;
    if (objects_out == NULL)
        return tti_fail(TUTTI_E_ARG, "%s on group '%s': objects_out is NULL", r.what, r.group->name);
    st = recv_list(&r, &objects);
    if (st != TUTTI_OK) {
        tutti_objects_free(&objects);
        return st;
    }
    *objects_out = objects;
    if (src_out != NULL)
        *src_out = r.peer;
    return TUTTI_OK;
}

/* ---- the peer as a rank of the group ---- */

static tutti_status translate(const char *what, const tutti_group *group, int group_rank, int *rank_out)
{
    const tutti_group *g = tti_group_peek(group);

    if (g != NULL && (group_rank < 0 || group_rank >= g->size))
        return tti_fail(TUTTI_E_ARG, "%s on group '%s': group rank %d is outside of 0 .. %d", what, g->name,
                        group_rank, g->size - 1);
    *rank_out = g != NULL ? g->ranks[group_rank] : group_rank;
    return TUTTI_OK;
}

tutti_status tutti_send_object_list_in_group(const tutti_bytes *list, int n, int group_dst, int tag,
                                             tutti_group *group)
{
    int          dst = -1;
    tutti_status st = translate("send_object_list_in_group", group, group_dst, &dst);

    return st == TUTTI_OK ? tutti_send_object_list(list, n, dst, tag, group) : st;
}

tutti_status tutti_recv_object_list_in_group(int group_src, int tag, tutti_group *group,
                                             tutti_objects *objects_out, int *src_out)
{
    int          src = TUTTI_ANY_SOURCE;
    tutti_status st = TUTTI_OK;

    if (group_src != TUTTI_ANY_SOURCE)
        st = translate("recv_object_list_in_group", group, group_src, &src);
    return st == TUTTI_OK ? tutti_recv_object_list(src, tag, group, objects_out, src_out) : st;
}
