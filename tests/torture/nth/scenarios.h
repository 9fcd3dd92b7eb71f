/* SPDX-License-Identifier: BSD-3-Clause
 *
 * scenarios.h - what is done while calls fail: every family of public calls, on few ranks and small numbers.
 *
 * A scenario belongs to a family, which is a file (calls_*.c) with a table. Ranks are threads. Most scenarios find a world of
 * all ranks; those that are about worlds make their own, or have ranks that come later. coverage.py compares what
 * scenarios call with all that is public and waits. */
#ifndef TT_TORTURE_SCENARIOS_H
#define TT_TORTURE_SCENARIOS_H

#include <pthread.h>
#include <stdbool.h>
#include <tutti/tutti.h>

enum { TT_SCENARIO_RANKS = 3, TT_FEW = 96, TT_ROOM = 64 * TT_FEW };

/** A rank in a scenario. Its numbers are here, and not on a stack, because what failed may be lent until the world ends. */
typedef struct tt_actor {
    int          rank, size;
    tutti_group *group;     /* its world; NULL: it has none. A scenario that replaces it says so here */
    tutti_store *store;     /* of this run alone, for all ranks */
    const char  *dir;
    int          port;      /* nobody else's */
    int64_t      timeout_ms; /* of worlds that a body makes */
    pthread_barrier_t *meeting; /* of all ranks: tt_meet() */
    struct tt_actor   *all; /* [size]; what others write may be read behind a meeting */
    char         handle[256];
    float        in[TT_ROOM], out[TT_ROOM];
    int          taken;     /* of out: tt_room() */
    bool         failed;    /* a call has failed: */
    tutti_status st;        /* the first one, */
    const char  *call;      /* and which, */
    char         words[400]; /* and its words */
    const char  *wrong;     /* what must not be, in words; NULL: nothing */
} tt_actor;

/** Calls fail in the body, from the making of the world on, or while it is destroyed. */
typedef enum tt_when { TT_IN_BODY, TT_IN_ALL, TT_IN_END } tt_when;

/** How the ranks of a world find each other. */
typedef enum tt_found { TT_BY_STORE, TT_BY_FILE, TT_BY_TCP } tt_found;

typedef struct tt_scenario {
    const char *name;
    int         ranks;
    void (*body)(tt_actor *a);
    tt_when     when;
    int         late;   /* that many of the last ranks have no world; all of one rank has none either */
    bool        own;    /* no rank has one: bodies make their own */
    tt_found    found;
} tt_scenario;

#define TT_PLAY(word, of, what, ...) { .name = word, .ranks = of, .body = what, ##__VA_ARGS__ }

typedef struct tt_family {
    const char        *name;
    const tt_scenario *at;
    int                n;
} tt_family;

/** The families of a program. */
const tt_family *tt_families(int *n_out);

extern const tt_family tt_world_calls, tt_group_calls, tt_collective_calls, tt_message_calls, tt_object_calls,
    tt_parallel_calls, tt_store_calls, tt_tensor_calls, tt_train_calls;

#define TT_FAMILY(variable, word, table)                                                               \
    const tt_family variable = { word, table, (int)(sizeof table / sizeof table[0]) }

/* ---- for bodies ----------------------------------------------------------------------------------- */

/** A public call has returned: false, and noted, if it failed. One that fails must say why. */
bool tt_went_well(tt_actor *a, tutti_status st, const char *call);
#define TRY(expression) tt_went_well(a, (expression), #expression)
/** Not called any more when one has failed. */
#define THEN(expression) (!a->failed && TRY(expression))

void tt_must_be(tt_actor *a, bool right, const char *what);

/** Wait for all ranks of the scenario: whatever has failed, each comes as often as the others. */
void tt_meet(tt_actor *a);

/** rank + 1, n times: what this rank gives. */
void   tt_fill(const tt_actor *a, float *x, int n);
bool   tt_all_are(const float *x, int n, float value);
/** What a sum of ranks that gave that is. */
float  tt_sum_of(const tt_actor *a);
/** The next n floats of out. */
float *tt_room(tt_actor *a, int n);

#endif
