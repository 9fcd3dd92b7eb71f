/* SPDX-License-Identifier: BSD-3-Clause
 *
 * object/object.h - the object calls on a known group, for the forms that are made of them. what is the
 * call's name, for words. */
#ifndef TTI_OBJECT_OBJECT_H
#define TTI_OBJECT_OBJECT_H

#include "group/group.h"
#include <tutti/object.h>

/** Which call it is: ranks compare it. The numbers are on the wire. */
typedef enum tti_object_kind {
    TTI_OBJECT_ALL_GATHER = 1,
    TTI_OBJECT_GATHER = 2,
    TTI_OBJECT_BROADCAST = 3,
    TTI_OBJECT_SCATTER = 4
} tti_object_kind;

/** What this rank brings to a collective. One that could not make its objects comes all the same, with the
 * failure, so that the others do not wait for it: they hear of it. */
typedef struct tti_offer {
    const tutti_bytes *list;
    int                n;
    tutti_status       st; /* not TUTTI_OK: what making them failed with; this thread's words are its words */
} tti_offer;

/* objects.c */

/** Room for n objects of known sizes, all zero, in one block: each begins at a multiple of 16 bytes and has
 * a NUL behind it. The sizes have been checked: their sum does not overflow. */
tutti_status tti_objects_create(const int64_t *sizes, int n, tutti_objects *objects_out);
/** The part of the block that has the objects, padding included: the same for the same sizes. */
tutti_span tti_objects_payload(const tutti_objects *objects);
/** Its bytes for objects of these sizes. */
int64_t tti_objects_payload_bytes(const int64_t *sizes, int n);
/** A list that a caller gave is one.
 * @errors TUTTI_E_ARG */
tutti_status tti_objects_check(const tutti_group *group, const char *what, const tutti_bytes *list, int n);

/* meet.c */

/** How large objects may be, as this process's environment says. */
typedef struct tti_object_limits {
    int64_t each;
    int64_t total;
} tti_object_limits;

tutti_status tti_object_limits_read(tti_object_limits *limits_out);
/** @errors TUTTI_E_ARG  beyond limits; whose says whose objects they are, for words */
tutti_status tti_object_limits_check(const tutti_group *group, const char *what, const char *whose,
                                     int64_t largest, int64_t total, const tti_object_limits *limits);
/** The largest of list, and all of them. */
void tti_objects_measure(const tutti_bytes *list, int n, int64_t *largest_out, int64_t *total_out);

/** Tell all members what this rank brings and hear what they do; every rank comes to the same verdict.
 * root is a group rank, -1: none. agreed_n: all ranks must have the same offer->n.
 * @param sizes_out  [members] bytes of each one's objects, together
 * @param largest_out  bytes of the largest object of all
 * @errors TUTTI_E_MISMATCH  calls, roots or lengths differ
 *         TUTTI_E_ARG       an object, or all together, is larger than allowed
 *         TUTTI_E_REMOTE    another rank could not make its object
 *         offer->st         this rank could not */
tutti_status tti_object_meet(tutti_group *group, const char *what, tti_object_kind kind, int root,
                             const tti_offer *offer, bool agreed_n, int64_t *sizes_out,
                             int64_t *largest_out);
/** This rank cannot go on where others wait for it: end the group, on all members. Returns st. */
tutti_status tti_object_give_up(tutti_group *group, const char *what, tutti_status st);

/* collective.c: offers have been checked, roots are group ranks */

tutti_status tti_object_all_gather(tutti_group *group, const char *what, const tti_offer *offer,
                                   tutti_objects *objects_out);
/** objects_out is written on dst alone. */
tutti_status tti_object_gather(tutti_group *group, const char *what, const tti_offer *offer, int dst,
                               tutti_objects *objects_out);
/** offer->list counts on src, offer->n everywhere; objects_out is written elsewhere. */
tutti_status tti_object_broadcast(tutti_group *group, const char *what, const tti_offer *offer, int src,
                                  tutti_objects *objects_out);
/** offer has one object per member on src, none elsewhere; objects_out gets one. */
tutti_status tti_object_scatter(tutti_group *group, const char *what, const tti_offer *offer, int src,
                                tutti_objects *objects_out);

#endif
