/* SPDX-License-Identifier: BSD-3-Clause
 *
 * coll/choose.h - the table of algorithms, and which of them a call is done by. */
#ifndef TTI_COLL_CHOOSE_H
#define TTI_COLL_CHOOSE_H

#include "coll/host/staged.h"
#include "coll/net/plan.h"

/** Exactly one of staged and plan says how; neither: a group of one. */
typedef struct tti_algorithm {
    tutti_call_kind kind;
    const char     *name;
    tti_staged     *staged;     /* all members on one host */
    tti_plan       *plan;       /* members anywhere */
    int             ranks_max;  /* it cannot serve more */
    int64_t         bytes_best; /* of one rank's part: up to this many it is taken unasked */
} tti_algorithm;

/** What TUTTI_ALGO asks for, per kind. */
typedef struct tti_choice {
    const tti_algorithm *wanted[TUTTI_CALL_KIND_COUNT];
} tti_choice;

/** Read "op=name,op=name,...". NULL: nothing is wanted. TUTTI_E_ARG lists the names there are. */
tutti_status tti_choice_parse(const char *text, tti_choice *choice_out);
/** Equal on all ranks that choose alike. */
uint64_t tti_choice_fingerprint(const tti_choice *choice);

/** The algorithm for a call. Depends only on what all members share. NULL: a group of one needs
 * none. */
const tti_algorithm *tti_choose(const tti_choice *choice, tutti_call_kind kind, bool one_host,
                                int n_ranks, int64_t bytes);

#endif
