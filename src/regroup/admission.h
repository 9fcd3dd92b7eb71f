/* SPDX-License-Identifier: BSD-3-Clause
 *
 * regroup/admission.h - where the members of a world and those that come into it meet.
 *
 * How     Both sides meet in the store that the world was found with, in the folder "tutti/grow/<name>":
 *             "asked"      counts those that came: each one's number
 *             "ask/T"      written by number T behind it: "<host> <number there>" of a replacement that a launcher started,
 *                          "rank <R>" of a rank of a launcher's that has lost its world, "newcomer" of others. Once: by rank 0 if
 *                          it is silent for too long, and then T has to take another number
 *             "gone/T"     said by the store when number T has ended before it wrote here/T (store/store_will.c)
 *             "admitted"   numbers up to this one have been let in, or tried
 *             "attempts"   counts the calls of tutti_grow_group()
 *             "place/T"    "<attempt> <rank> <size> <generation>": what number T is to be; size 0: nothing, it has to ask anew
 *             "here/T"     number T has read that, and its end would be told in the folder of the attempt (gathering.h)
 *         and, below the attempt's number, in the folder of the new world.
 * Order   Rank 0 meets first, then writes places; number T meets first, then writes here/T; the members hear of the attempt when
 *         everybody is here. So at no time somebody is waited for whose end nobody would tell. */
#ifndef TTI_REGROUP_ADMISSION_H
#define TTI_REGROUP_ADMISSION_H

#include "regroup/gathering.h"

enum { TTI_ADMISSION_KEY_MAX = 48, TTI_ADMISSION_NAME_MAX = 64 /* bytes */ };

/** Rank 0 in the place of what a silent number would write. */
#define TTI_PASSED_OVER "passed over"

/** What all that found the new world know. All zero: nothing yet. */
typedef struct tti_admission {
    tti_port    *port;
    tti_join     join;
    tutti_store *folder; /* tutti/grow/<name> */
    tutti_store *part;   /* the attempt's; NULL: there is none yet */
    int64_t      attempt;
    int          size;
    uint32_t     generation;
    tti_gathering gathering; /* since part is there */
} tti_admission;

/** Whether what stands under ask/T is TTI_PASSED_OVER. */
bool tti_is_passed_over(const tutti_bytes *asked);

/** The name that is meant by it: NULL is "default". */
const char *tti_admission_name(const char *name);
/** @errors TUTTI_E_ARG  a bad name */
tutti_status tti_admission_open(const char *what, tutti_store *root, const char *name, tti_admission *to);
/** Attempt, size and join.rank are known: meet there. old: the world that this process is a member of, or NULL. */
tutti_status tti_admission_meet(tti_admission *to, tutti_group *old);
/** Found the world of the attempt. */
tutti_status tti_admission_found(tti_admission *to, const tti_backing *backing, tutti_group **group_out);
/** It has come to st, whose words stay. */
void tti_admission_close(tti_admission *to, tutti_status st);

#endif
