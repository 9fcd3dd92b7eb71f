/* SPDX-License-Identifier: BSD-3-Clause
 *
 * coll_ranks.h - for tests: the ranks of a world as threads of this process, over real heaps, rings
 * and sockets, with a board in memory. */
#ifndef TTI_COLL_COLL_RANKS_H
#define TTI_COLL_COLL_RANKS_H

#include <pthread.h>
#include <stdio.h>
#include <tutti/private.h>
#include "base/thread.h"
#include "coll/coll.h"
#include "coll/cost.h"

enum { TT_RANKS_MAX = 5, TT_RANKS_MOST = 8 /* that a world can have */, TT_LIMIT_MS = 240000, TT_LONG_MS = 30000, TT_KEPT_MS = 2 };

/** The machine's port, which counts how often its owner looks whether another member of its host lives. */
typedef struct tt_port {
    tti_port     base; /* first: the two pointers convert both ways */
    tti_port_ops ops;
    _Atomic int  n_looks;
    _Atomic int  n_given;   /* times that the core was given away, where setting.kept */
    _Atomic int  n_idle;    /* and that, or slept on a word, since the test set it to 0 */
    _Atomic int  n_unended; /* sleeps of the rank's own thread that nobody ended, where setting.long_sleeps */
} tt_port;

typedef struct tt_rank tt_rank;
typedef void tt_body(tt_rank *t);

struct tt_rank {
    int                 rank, size;
    const int          *hosts; /* [size] which each is on; NULL: one, or as many as ranks */
    bool                tcp; /* no shared memory: every rank a host of its own */
    struct tt_world    *world;
    tti_mesh           *mesh;
    tti_messenger      *messenger;
    tti_coll           *coll; /* of group 0, with all ranks; made before the body runs */
    uint64_t            seq;  /* of its last call */
    tt_port             port;
    int64_t             deadline_ns;
    const _Atomic bool *board_lost; /* NULL; or when that of the groups that it makes is lost, behind its own piece */
    char                failure[2048]; /* empty: fine */
    char                said[2048];    /* for the test, after all have ended */
};

/* Assertions of cmocka belong to the test's thread: ranks note what went wrong. */
#define TT_CHECK(t, cond)                                                                          \
    do {                                                                                           \
        if (!(cond) && (t)->failure[0] == '\0')                                                    \
            snprintf((t)->failure, sizeof(t)->failure, "rank %d of %d, %s:%d: %s (%s)", (t)->rank, \
                     (t)->size, __FILE__, __LINE__, #cond, tutti_last_error());                    \
    } while (0)

/** Run body on size ranks; fails the test with what the first of them noted. */
void tt_run(int size, bool tcp, tt_body *body, tt_rank *ranks_out);
/** What a world is like. */
typedef struct tt_setting {
    const tti_machine              *machine;  /* that algorithms are chosen for */
    const struct tti_host_patience *patience; /* how its ranks wait; NULL: as usual */
    const int *hosts; /* [size] as if on so many, numbered from 0; NULL: as tcp says */
    int  cores;       /* that its ranks believe to have; 0: as it is */
    bool fenceless;   /* the port has no fence_others() */
    bool long_sleeps; /* of TT_LONG_MS, unless woken */
    bool kept;        /* who gives his core away has it back after TT_KEPT_MS, as beside a thread that computes */
    int  together_from;   /* as in tti_mesh_config */
    bool patient_readers; /* who waits for what is said in his host, or was left by a rank, looks at nothing else meanwhile, however
                           * long that takes */
    const char *given_up_for; /* NULL, or what rank 0 gives up for when it has met the others, before its group is made; what
                               * the group came to is said by each of the others, and there is no body */
} tt_setting;

void tt_run_in(const tt_setting *setting, int size, bool tcp, tt_body *body, tt_rank *ranks_out);
/** The same, with algorithms chosen for another machine than the usual one. */
void tt_run_on(const tti_machine *machine, int size, bool tcp, tt_body *body, tt_rank *ranks_out);

/** A machine as there is none: every figure drawn by itself. */
tti_machine tt_drawn_machine(uint32_t *state);

/** Wait until all threads of the world are here; says nothing to the code under test. */
void tt_all_here(tt_rank *t);

/** Wait until rank has looked at another member n times from now. */
void tt_await_looks(tt_rank *t, int rank, int n);

/** How many values were read of the world's board whose keys begin so, with a prefix "g0/" of a group, or none. */
int tt_count_read(tt_rank *t, const char *begin);

/** Another group of all ranks; every rank gives it the same id, never used before. */
tutti_status tt_open(tt_rank *t, uint32_t group_id, int64_t deadline_ns, tti_coll **coll_out);
/** Leave the world at once: close everything. */
void tt_leave(tt_rank *t);

/** A call of the rank's group 0, numbered. */
tutti_call   tt_call(tt_rank *t, tutti_call_kind kind, tutti_dtype dtype, int64_t count);
tutti_status tt_barrier(tt_rank *t);
int64_t      tt_in_ms(int64_t ms);

#endif
