/* SPDX-License-Identifier: BSD-3-Clause
 *
 * coll/choice.h - how a group comes to its choice of algorithms: the environment, this machine, rank 0. */
#ifndef TTI_COLL_CHOICE_H
#define TTI_COLL_CHOICE_H

#include "coll/choose.h"

enum { TTI_LINK_MBIT_MAX = 10 * 1000 * 1000 }; /* of TUTTI_LINK_MBIT */

typedef struct tti_choice {
    tti_wishes   wishes;
    tti_tune     tune;
    bool         reproducible;
    bool         asks_wire; /* the kernel tells what the link of a host carries: TUTTI_LINK_MBIT says nothing */
    double       wire; /* ns that a byte takes on that link, as TUTTI_LINK_MBIT says; 0: it does not */
    tti_decision decision; /* once settled */
    tti_decision in_one_go; /* the same for calls that need all contributions at once: tti_needs_one_go() */
} tti_choice;

/** Read what the environment asks for. TUTTI_E_ARG: it asks for what there is not. */
tutti_status tti_choice_read(tti_choice *choice_out);
/** Zeroed memory is fine. */
void tti_choice_release(tti_choice *choice);

/** What this rank tells the others: what it was asked for, for them to compare, and what the machine takes,
 * which counts if it is rank 0. machine: NULL measures this one, where that matters. */
void tti_choice_announce(const tti_choice *choice, const tti_team *team, const tti_machine *machine,
                         tti_join *mine);
/** Decide, from what all have told each other. levels: NULL, or the group's, with all members met; they settle, too. */
void tti_choice_settle(tti_choice *choice, const tti_team *team, const tti_join *all, tti_levels *levels);

#endif
