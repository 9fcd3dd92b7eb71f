/* SPDX-License-Identifier: BSD-3-Clause
 *
 * deadlines.h - one case for each public function that waits: what the runner shares with the files of cases.
 *
 * A case is one call of one function by one rank, the caller, whose peer takes no part. Its name is the function's, so
 * that the generated list (make_cases.py, functions.tsv) and the cases cannot differ: they would not link. */
#ifndef TT_DEADLINES_H
#define TT_DEADLINES_H

#include "harness/harness.h"
#include <tutti/tutti.h>

enum { TT_FEW = 64, TT_DEADLINE_MS = 100, TT_BOUND_MS = TT_DEADLINE_MS + 100 };

/** What a case works on. */
typedef enum tt_on {
    TT_ON_GROUP, /* a group of both ranks, whose time-out is TT_DEADLINE_MS */
    TT_ON_WORLD, /* the same, a world of its own, which NULL means in the caller */
    TT_ON_STORE, /* the same time-out; a client of a store that the peer serves */
    TT_ON_NOTHING
} tt_on;

/** One run of a case. Memory is the cell's, because what failed may still be lent. */
typedef struct tt_cell {
    tt_ctx      *t;
    int          me;
    int          peer;
    int          number;    /* of the case */
    int          pass;      /* 0, 1, ...: names that must be new */
    tutti_group *group;     /* both ranks; NULL for TT_ON_STORE and TT_ON_NOTHING */
    tutti_store *store;     /* of TT_ON_STORE, on the caller */
    void        *made;      /* by prepare */
    void        *more;
    float        x[TT_FEW], y[TT_FEW];
    tutti_span   parts_x[2], parts_y[2]; /* halves of 4 elements */
    tutti_span   whole_x, whole_y;       /* 8 elements */
    int64_t      counts[2];
} tt_cell;

typedef tutti_status tt_step(tt_cell *c);

typedef struct tt_case {
    const char *function;
    tt_on       on;
    bool        may_end; /* it may end well: it needs the peer's memory, or nothing of it */
    bool        names_nobody; /* its words cannot name the peer: it waits for something else */
    bool        needs_stop; /* it waits only for a peer that is stopped */
    tt_step    *prepare; /* on both ranks, before the peer stalls; NULL: nothing */
    tt_step    *call;
} tt_case;

#define TT_CASE(name, ...)                                                                             \
    static tutti_status call_##name(tt_cell *c);                                                       \
    extern const tt_case tt_case_##name;                                                               \
    const tt_case tt_case_##name = { .function = #name, .call = call_##name, ##__VA_ARGS__ };          \
    static tutti_status call_##name(tt_cell *c)

/** The generated list. */
extern const tt_case *const tt_cases[];
extern const int            tt_n_cases;

/** Enough that no ring and no socket takes it. */
tutti_span tt_large(void);

/** Wait for a work, and drop it; st is what issuing it gave. */
tutti_status tt_wait(tutti_status st, tutti_work *work);

/** All of a cell's x, its first four elements, and so on. */
#define TT_X  TUTTI_SPAN(c->x, 4)
#define TT_Y  TUTTI_SPAN(c->y, 4)
#define TT_Y2 TUTTI_SPAN(c->y, 8)
#define TT_X2 TUTTI_SPAN(c->x, 8)

#endif
