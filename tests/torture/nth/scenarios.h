/* SPDX-License-Identifier: BSD-3-Clause
 *
 * scenarios.h - what is done while calls fail: every family of public calls, on few ranks and small numbers. */
#ifndef TT_TORTURE_SCENARIOS_H
#define TT_TORTURE_SCENARIOS_H

#include <stdbool.h>
#include <tutti/tutti.h>

enum { TT_SCENARIO_RANKS = 3, TT_SCENARIO_TIMEOUT_MS = 1000 };

/** A rank in a scenario. */
typedef struct tt_actor {
    int          rank, size;
    tutti_group *group;     /* its world; NULL: the scenario needs none. A scenario that replaces it says so here */
    const char  *dir;
    bool         failed;    /* a call has failed: */
    tutti_status st;        /* the first one, */
    const char  *call;      /* and which */
    const char  *wrong;     /* what must not be, in words; NULL: nothing */
} tt_actor;

typedef enum tt_when { TT_IN_ALL, TT_IN_BODY, TT_IN_END } tt_when;

typedef struct tt_scenario {
    const char *name;
    int         ranks; /* 1: no world */
    tt_when     when;  /* calls fail from the making of the world on, in the body, or while it is destroyed */
    void (*body)(tt_actor *a);
} tt_scenario;

const tt_scenario *tt_scenarios(int *n_out);

/** A public call has returned: false, and noted, if it failed. One that fails must say why. */
bool tt_went_well(tt_actor *a, tutti_status st, const char *call);

#endif
