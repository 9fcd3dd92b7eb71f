/* SPDX-License-Identifier: BSD-3-Clause
 *
 * faults.h - ranks that die, stop or are cut off at a counted point, and what the others make of it.
 *
 * How     A job is 2 to 8 processes, which the runner forks. They go through rounds. In each, one rank, the victim,
 *         does something to itself in the middle of a call: at its n-th point (points.h), where n is drawn from as
 *         many as it passed when all went well a moment before. The others find an error, shrink to those that are
 *         left, check a sum, let new processes in for those that are gone, and begin the next round.
 *             draw.c     what happens in a round: a function of the job's seed and the round, so that all know
 *             act.c      points are counted, and the fault
 *             calls.c    the calls in which it happens, and whether their results are right
 *             words.c    whom an error accuses
 *             cut.c      connections are lost while ranks shrink, which may do no harm
 *             rank.c     one rank's way through the rounds
 *             net.c      hosts: namespaces around a bridge
 *             job.c      processes, the time they may take, and what became of them
 *             main.c     jobs until the time is up, rows for the table
 *         The runner is the launcher as well: it serves the store, and tells who has ended.
 * True    Ranks tell each other and the runner what they do on a page that they share, the board; nothing of the
 *         library takes part in that, and nothing of it knows of faults.
 * Fails   A round that lasts longer than HANG_MS is a hang: who was where is printed, and the job is killed. */
#ifndef TT_TORTURE_FAULTS_H
#define TT_TORTURE_FAULTS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <tutti/tutti.h>
#include "harness/hosts.h"
#include "torture/points.h"
#include "watch/bulletin.h"

enum {
    RANKS_MAX = 8,
    ROUNDS_MAX = 20,
    WORDS_MAX = 600,
    CALL_NAME_MAX = 48,
    BEAT_MS = 250,          /* between heartbeats: silence is to be reported within four of them */
    TIMEOUT_MS = 1250,      /* of operations in which a rank falls silent: by then that has been reported */
    CALM_MS = 20000,        /* of all others: time is not what ends them */
    JOIN_FAULT_MS = 4000,   /* of joining and shrinking while a rank fails */
    HANG_MS = 45000
};

typedef enum tt_fault { F_KILL, F_STOP, F_EXIT, F_SEGV, F_ABORT, F_RESET, F_HOLE, F_HALF, FAULTS, F_NONE = FAULTS } tt_fault;
typedef enum tt_phase { P_CONNECT, P_HANDSHAKE, P_ALGORITHM, P_P2P, P_TEARDOWN, P_SHRINK, PHASES } tt_phase;
typedef enum tt_layout { L_SHM, L_TCP, L_TWO_LEVEL, LAYOUTS } tt_layout;

typedef enum tt_verdict { TT_ACCUSES_RIGHT, TT_ACCUSES_NOBODY, TT_ACCUSES_ANOTHER } tt_verdict;

/** What happens in a round. */
typedef struct tt_draw {
    tt_fault what;
    tt_phase    when;
    int      call;    /* of the table in calls.c */
    int64_t  count;   /* elements */
    int      victim;  /* rank in the world of this round */
    int      leaves;  /* P_SHRINK: who is excluded without a fault; -1 */
    uint64_t dice;    /* where: dice % points + 1 */
    unsigned points;  /* bits: those that count */
} tt_draw;

/** What a rank came to know in a round. */
typedef struct seen {
    tutti_status status;   /* of the call that ended with an error; TUTTI_OK: none did */
    int64_t      begun_ns; /* when the calls began that were to fail */
    int64_t      ended_ns; /* when that call returned */
    int64_t      on_ns;    /* when a sum was right after shrinking; 0: never */
    bool         wrong;    /* a call succeeded with wrong values */
    tt_verdict   verdict;  /* on the words */
    bool         said;     /* the words tell how the silent one is */
    unsigned     world;    /* bits: the ranks of this round that the world has in which this one went on; 0: it did not */
    char         words[WORDS_MAX];
} seen;

/** One round, as all of them left it. */
typedef struct round_page {
    tt_draw          plan;
    int              size;           /* of the world */
    int              slots[RANKS_MAX]; /* of its ranks */
    _Atomic int64_t  points;         /* that the victim passed when all went well */
    _Atomic int64_t  nth;            /* at which it happens */
    _Atomic int64_t  hit_ns;         /* 0: it has not happened */
    _Atomic int      hit_at;         /* the tt_point; TT_POINTS: after the call */
    seen             by[RANKS_MAX];  /* by rank */
    char             call[CALL_NAME_MAX];
    _Atomic int      let_go_pid;     /* a process that was stopped and may go on; 0: none */
    _Atomic bool     over;           /* every survivor is done with it */
} round_page;

enum { MEETINGS = 64 * ROUNDS_MAX };

/** What a job's processes share. */
typedef struct tt_board {
    _Atomic uint32_t met[MEETINGS];
    _Atomic int      round;
    _Atomic int      pids[RANKS_MAX];
    _Atomic unsigned wanted;            /* bits: slots for which the runner is to start a process */
    int              places[RANKS_MAX]; /* by rank of the world that has grown: its slot */
    int              attempt, salt, meeting, world_round; /* where newcomers come in */
    char             where[RANKS_MAX][WORDS_MAX];
    round_page       rounds[ROUNDS_MAX];
    _Atomic int64_t  next[2]; /* --every: the call and the point whose turn it is */
} tt_board;

typedef struct tt_job {
    uint64_t    seed;
    tt_layout   layout;
    int         size;
    int         hosts;     /* 1 .. size */
    int         faults[FAULTS]; /* weights; 0: never */
    bool        lenient;   /* a short run */
    bool        no_launcher; /* nobody tells who has ended */
    unsigned    phases;    /* bits: which are drawn; 0: all */
    bool        every;     /* no dice: each store of each small call, one after the other */
    char        dir[160];
    int         store_port;
    const char *store_host;
    tti_bulletin *bulletin; /* the runner is the launcher: who has ended, for those that join */
    int           bulletin_fd;
    tt_hosts   *net;       /* NULL: there is one host */
    int         switch_fd; /* a socket of the namespace of the bridge */
    tt_board   *board;
} tt_job;

/* draw.c */
uint64_t    tt_dice(uint64_t seed, uint64_t what);
/** What a whole job is like; its layout is chosen by the caller. */
void        tt_draw_job(uint64_t seed, tt_job *job);
tt_draw tt_draw_round(const tt_job *job, int round, int size, const int *slots);
int         tt_host_of_slot(const tt_job *job, int slot);
/** How many rounds it may have. */
int         tt_rounds(const tt_job *job);
const char *tt_fault_name(tt_fault what);
const char *tt_phase_name(tt_phase when);
const char *tt_layout_name(tt_layout where);
/** Whether the process of the victim goes on. */
bool        tt_fault_leaves_alive(tt_fault what);
/** Dead is proved; silent is not. */
bool        tt_fault_is_silent(tt_fault what);

/* act.c */
/** Count this process's points of those kinds from now on. */
void    tt_count(unsigned points);
/** The same, and let it happen at the n-th, which goes to page. */
void    tt_arm(const tt_job *job, round_page *page, int slot, int64_t nth);
/** Stop counting: how many there were. */
int64_t tt_counted(void);
/** It has not happened by itself: now. */
void    tt_act_now(void);
/** Whether it has happened to this process. */
bool    tt_acted(void);
/** It has happened, and nobody was concerned: kill this process. */
void    tt_act_instead(void);

/* cut.c */
typedef enum tt_outcome {
    CUT_FAILED,     /* somebody has an error */
    CUT_LEFT_OUT,   /* all others have gone on without it */
    CUT_KEPT,       /* all have gone on with it */
    CUT_TWO_WORLDS, /* never to be: ranks have gone on in different worlds */
} tt_outcome;

/** Whether only connections are lost by it. */
bool       tt_fault_cuts(tt_fault what);
/** Whether it is connections that the victim loses, while ranks shrink. */
bool       tt_is_cut(const round_page *page);
/** What became of that, once all have noted it. */
tt_outcome tt_cut_outcome(const round_page *page);

/* calls.c */
typedef struct call_args {
    tutti_group *world;
    int          rank, size;
    int64_t      count;
    int          salt; /* other values for another round */
} call_args;

int         tt_n_calls(tt_phase when);
const char *tt_call_name(tt_phase when, int call);
/** Every rank makes it; wrong_out: it returned TUTTI_OK, and values that are not right. */
tutti_status tt_call(tt_phase when, int call, const call_args *args, bool *wrong_out);
/** TUTTI_ALGO for the next world: for every operation one of its algorithms, or none. */
void         tt_wish_algorithms(uint64_t dice, bool every);

/* words.c */
/** Whom an error's words accuse, of a world of that size: one or more of the guilty, and nobody else; or not. cut: it is
 * connections that were taken from the guilty, who live. */
tt_verdict tt_words_judge(const char *words, const bool *guilty, int size, bool cut);
/** Whether they say of somebody that he is silent, and how. */
bool tt_words_tell_silence(const char *words);

/* rank.c */
_Noreturn void tt_fault_rank(const tt_job *job, int slot);
/** One that comes into the world that is at work, in the place of one that is gone. */
_Noreturn void tt_fault_newcomer(const tt_job *job, int slot);

/* net.c */
typedef struct tt_net {
    tt_hosts hosts;     /* 0 .. n-2 have ranks, the last one the bridge and the store */
    int      switch_fd;
} tt_net;

bool tt_net_open(tt_net *net_out, char *reason_out, size_t bytes);
void tt_net_close(tt_net *net);
const char *tt_net_store_host(void);
/** Whether packets of a host pass the bridge. */
bool tt_net_plug(int switch_fd, int host, bool in);

/* job.c */
typedef enum job_end { JOB_OVER, JOB_HUNG, JOB_BROKEN } job_end;

/** Run it to its end. words_out: what was wrong, where something was. */
job_end tt_job_run(tt_job *job, char *words_out, size_t bytes);

#endif
