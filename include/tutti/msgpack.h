/* SPDX-License-Identifier: BSD-3-Clause
 *
 * tutti/msgpack.h - the calls of tutti/object.h for msgpack values (msgpack-c's msgpack_object). Not part of
 * tutti/tutti.h: who includes it needs msgpack-c's headers.
 *
 * Each is the call of the same name in tutti/object.h, whose rules, limits and errors hold, with values packed
 * before and unpacked after. A rank may as well bring bytes that are msgpack already to the call there. Beside
 * them:
 * - What comes is walked before memory is taken for it: arrays and maps at most 31 deep, and TUTTI_MSGPACK_MAX
 *   values in an object, keys included. What does not pass is TUTTI_E_MISMATCH on the rank that got it; the text
 *   names whose it was. All bytes have arrived then, and the group goes on.
 * - A value that cannot be packed fails its rank's call; the other ranks get TUTTI_E_REMOTE. */
#ifndef TUTTI_MSGPACK_H
#define TUTTI_MSGPACK_H

#include <msgpack.h>
#include <tutti/object.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { TUTTI_MSGPACK_MAX = 1 << 24 /* values in an object */ };

/** Values that the caller owns, with the memory that they point into: release them with tutti_msgpack_free(). */
typedef struct tutti_msgpack {
    msgpack_object *at; /* [n] */
    int             n;
    msgpack_zone   *zone;  /* what holds arrays and maps */
    tutti_objects   bytes; /* what holds strings */
} tutti_msgpack;

#define TUTTI_MSGPACK_NONE                                                                             \
    {                                                                                                  \
        0, 0, 0, TUTTI_OBJECTS_NONE                                                                    \
    }

/** Release values, and make them none. NULL and none are fine.
 * @threads one
 * @source  ours */
TUTTI_API void tutti_msgpack_free(tutti_msgpack *values);

/** Pack a value.
 * @param bytes_out  the caller frees it with tutti_bytes_free()
 * @errors  TUTTI_E_ARG, TUTTI_E_NOMEM
 * @threads any
 * @source  ours */
TUTTI_API tutti_status tutti_msgpack_pack(const msgpack_object *value, tutti_bytes *bytes_out);

/** Unpack objects, one value each.
 *
 * @param bytes       values_out's from now on, if this succeeds, and TUTTI_OBJECTS_NONE
 * @errors  TUTTI_E_MISMATCH  one is no msgpack value, or is beyond the limits; the text tells which
 *          TUTTI_E_NOMEM, TUTTI_E_ARG
 * @threads any
 * @source  ours */
TUTTI_API tutti_status tutti_msgpack_unpack(tutti_objects *bytes, tutti_msgpack *values_out);

/** tutti_all_gather_object of a value: one comes from each rank.
 * @threads one per group
 * @source  torch.distributed.all_gather_object */
TUTTI_API tutti_status tutti_all_gather_msgpack(const msgpack_object *value, tutti_group *group,
                                                tutti_msgpack *values_out);

/** tutti_gather_object of a value; values_out is NULL elsewhere than on dst.
 * @threads one per group
 * @source  torch.distributed.gather_object */
TUTTI_API tutti_status tutti_gather_msgpack(const msgpack_object *value, int dst, tutti_group *group,
                                            tutti_msgpack *values_out);

/** tutti_broadcast_object_list of values: values is NULL elsewhere than on src, values_out is NULL there.
 * @threads one per group
 * @source  torch.distributed.broadcast_object_list */
TUTTI_API tutti_status tutti_broadcast_msgpack_list(const msgpack_object *values, int n, int src,
                                                    tutti_group *group, tutti_msgpack *values_out);

/** tutti_scatter_object_list of values: NULL and 0 elsewhere than on src; one comes.
 * @threads one per group
 * @source  torch.distributed.scatter_object_list */
TUTTI_API tutti_status tutti_scatter_msgpack_list(const msgpack_object *values, int n, int src,
                                                  tutti_group *group, tutti_msgpack *values_out);

/** tutti_send_object_list of values.
 * @threads any, with tags of their own
 * @source  torch.distributed.send_object_list */
TUTTI_API tutti_status tutti_send_msgpack_list(const msgpack_object *values, int n, int dst, int tag,
                                               tutti_group *group);

/** tutti_recv_object_list of values; src_out may be NULL.
 * @threads any, with tags of their own
 * @source  torch.distributed.recv_object_list */
TUTTI_API tutti_status tutti_recv_msgpack_list(int src, int tag, tutti_group *group, tutti_msgpack *values_out,
                                               int *src_out);

#ifdef __cplusplus
}
#endif
#endif
