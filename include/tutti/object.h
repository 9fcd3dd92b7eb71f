/* SPDX-License-Identifier: BSD-3-Clause
 *
 * tutti/object.h - collectives and messages of objects: byte strings of any sizes, which only their makers
 * know. What torch pickles is here bytes that the program makes and reads; tutti/msgpack.h has the same calls
 * for msgpack values.
 *
 * What holds for all of them, beside what tutti/group.h says at its top:
 * - What is given is borrowed for the call. What comes is one block that the caller owns and releases with
 *   tutti_objects_free(), also the own object: each entry begins at a multiple of 16 bytes and has one NUL
 *   behind it, not counted, so that text can be used as such. Empty objects are legal (their data is not
 *   NULL when they come), and so are empty lists.
 * - objects_out is for ranks that something comes to; the others pass NULL. It is written only on success,
 *   and never for TUTTI_NON_MEMBER: begin with TUTTI_OBJECTS_NONE.
 * - Limits: TUTTI_OBJECT_MAX bytes (256 MiB) an object, TUTTI_OBJECTS_MAX bytes (1 GiB) for all objects of a
 *   call, both environment variables, and TUTTI_OBJECT_LIST_MAX objects in a list. Ranks keep to the smallest limit
 *   that any of them has, and compare sizes with it before memory is taken. A collective beyond it fails with
 *   TUTTI_E_ARG on all ranks, nothing was sent, and the group goes on.
 * - Calls, roots and lengths of lists that differ between ranks are TUTTI_E_MISMATCH on all ranks; the group
 *   goes on.
 * - A collective is several operations of the group: no other thread of the process may issue on the group
 *   meanwhile. There are no asynchronous forms, as in torch. In a coalescing scope they are done at once.
 * - Objects lie in memory of the host: a group without a backend for that ("nccl" alone) refuses them with TUTTI_E_UNSUPPORTED.
 * - A rank that runs out of memory when others wait for it ends the group on all of them. */
#ifndef TUTTI_OBJECT_H
#define TUTTI_OBJECT_H

#include <tutti/group.h>
#include <tutti/store.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { TUTTI_OBJECT_LIST_MAX = 1 << 20 /* objects in a list */ };

/** Objects that the caller owns, in one block: release them with tutti_objects_free(). */
typedef struct tutti_objects {
    tutti_bytes *at; /* [n]; not to be freed one by one. NULL when n is 0 */
    int          n;
} tutti_objects;

#define TUTTI_OBJECTS_NONE                                                                             \
    {                                                                                                  \
        0, 0                                                                                           \
    }

/** A string of bytes to give, which stays the caller's: an entry of a list. Not for tutti_bytes_free().
 * @threads any
 * @source  ours */
static inline tutti_bytes tutti_bytes_of(const void *data, size_t size)
{
    tutti_bytes bytes;

    bytes.data = (void *)(uintptr_t)data;
    bytes.size = size;
    return bytes;
}

/** Release objects, and make them none. NULL and none are fine.
 * @threads one
 * @source  ours */
TUTTI_API void tutti_objects_free(tutti_objects *objects);

/** Collect every rank's object on every rank.
 *
 * @param data         size bytes, borrowed; may be NULL when size is 0
 * @param objects_out  one object per rank, in group order
 *
 * @errors   TUTTI_E_ARG       data is NULL and size is not 0, objects_out is NULL, or an object is too large
 *           TUTTI_E_MISMATCH  ranks make different calls
 *           TUTTI_E_REMOTE    a rank could not take part; the text names it
 * @threads  one per group
 * @cost     two all_gathers: one of 64 bytes, one of the objects; nothing is padded
 * @source   torch.distributed.all_gather_object */
TUTTI_API tutti_status tutti_all_gather_object(const void *data, size_t size, tutti_group *group,
                                               tutti_objects *objects_out);

/** Collect every rank's object on dst.
 *
 * @param data         size bytes, borrowed; may be NULL when size is 0
 * @param objects_out  on dst: one object per rank, in group order; elsewhere NULL
 *
 * @errors   as tutti_all_gather_object; TUTTI_E_ARG also when dst is no member, or objects_out is given elsewhere
 * @threads  one per group
 * @cost     an all_gather of 64 bytes and a tutti_gather_v
 * @source   torch.distributed.gather_object */
TUTTI_API tutti_status tutti_gather_object(const void *data, size_t size, int dst, tutti_group *group,
                                           tutti_objects *objects_out);

/** tutti_gather_object to a rank of the group.
 * @source torch.distributed.gather_object(group_dst=) */
TUTTI_API tutti_status tutti_gather_object_in_group(const void *data, size_t size, int group_dst,
                                                    tutti_group *group, tutti_objects *objects_out);

/** Copy src's list of objects to every rank.
 *
 * @param list         on src: n objects, borrowed and left as they are; elsewhere NULL
 * @param n            the same on all ranks; 0 is legal
 * @param objects_out  on src NULL; elsewhere n objects
 *
 * @errors   as tutti_all_gather_object; TUTTI_E_MISMATCH also when n differs
 *           TUTTI_E_ARG  also when src is no member, or an argument is given where it has to be NULL
 * @threads  one per group
 * @cost     an all_gather of 64 bytes, a broadcast of the sizes, one of the objects
 * @source   torch.distributed.broadcast_object_list */
TUTTI_API tutti_status tutti_broadcast_object_list(const tutti_bytes *list, int n, int src,
                                                   tutti_group *group, tutti_objects *objects_out);

/** tutti_broadcast_object_list from a rank of the group.
 * @source torch.distributed.broadcast_object_list(group_src=) */
TUTTI_API tutti_status tutti_broadcast_object_list_in_group(const tutti_bytes *list, int n, int group_src,
                                                            tutti_group *group, tutti_objects *objects_out);

/** Hand each rank its own of src's objects.
 *
 * @param list         on src: one object per rank, in group order, borrowed; elsewhere NULL
 * @param n            on src the group's size; elsewhere 0
 * @param objects_out  one object
 *
 * @errors   as tutti_broadcast_object_list
 * @threads  one per group
 * @cost     an all_gather of 64 bytes, a scatter of the sizes, a tutti_scatter_v
 * @source   torch.distributed.scatter_object_list */
TUTTI_API tutti_status tutti_scatter_object_list(const tutti_bytes *list, int n, int src, tutti_group *group,
                                                 tutti_objects *objects_out);

/** tutti_scatter_object_list from a rank of the group.
 * @source torch.distributed.scatter_object_list(group_src=) */
TUTTI_API tutti_status tutti_scatter_object_list_in_group(const tutti_bytes *list, int n, int group_src,
                                                          tutti_group *group, tutti_objects *objects_out);

/** Send a list of objects to one rank. Returns when the list may be reused.
 *
 * @param list  n objects, borrowed
 * @param n     0 is legal: the other rank receives an empty list
 * @param dst   global rank, not this one
 * @param tag   0 or more. The list is several messages of this tag: nothing else may be sent to dst with it
 *              meanwhile
 *
 * @errors   TUTTI_E_ARG  a bad list, an object is too large, dst is no member or this rank, tag is negative
 *           and what tutti_send fails with
 * @threads  any, with tags of their own
 * @source   torch.distributed.send_object_list (which has no tag) */
TUTTI_API tutti_status tutti_send_object_list(const tutti_bytes *list, int n, int dst, int tag,
                                              tutti_group *group);

/** Receive a list of objects.
 *
 * @param src          global rank, or TUTTI_ANY_SOURCE: whose list begins first, all of it
 * @param objects_out  as many objects as were sent
 * @param src_out      the sender's global rank; may be NULL
 *
 * @errors   TUTTI_E_ARG       objects_out is NULL, src is no member or this rank, tag is negative; or the list is
 *                             larger than this process allows: it is taken and dropped, the group goes on
 *           TUTTI_E_NOMEM     the same for want of memory
 *           TUTTI_E_MISMATCH  what came is no list of objects
 *           and what tutti_recv fails with
 * @threads  any, with tags of their own
 * @source   torch.distributed.recv_object_list (which has no tag, and needs a list of the same length) */
TUTTI_API tutti_status tutti_recv_object_list(int src, int tag, tutti_group *group,
                                              tutti_objects *objects_out, int *src_out);

/** tutti_send_object_list to a rank of the group.
 * @source torch.distributed.send_object_list(group_dst=) */
TUTTI_API tutti_status tutti_send_object_list_in_group(const tutti_bytes *list, int n, int group_dst, int tag,
                                                       tutti_group *group);
/** tutti_recv_object_list from a rank of the group, or TUTTI_ANY_SOURCE; src_out is a global rank all the same.
 * @source torch.distributed.recv_object_list(group_src=) */
TUTTI_API tutti_status tutti_recv_object_list_in_group(int group_src, int tag, tutti_group *group,
                                                       tutti_objects *objects_out, int *src_out);

#ifdef __cplusplus
}
#endif
#endif
