/* SPDX-License-Identifier: BSD-3-Clause
 *
 * rehearse/world.h - the rehearsed world as its files see it.
 *
 *   world.c    processes and their fibers, who goes on next, the clock
 *   wires.c    handles: listeners, streams, bells, signs of life; what is on its way between hosts
 *   stage.c    the table of the port
 *   faults.c   what goes wrong, and when
 *
 * All of it is used by one thread of the machine, from fibers and between them. */
#ifndef TTI_REHEARSE_WORLD_H
#define TTI_REHEARSE_WORLD_H

#include <tutti/rehearse.h>
#include "base/port.h"
#include "rehearse/fiber.h"

enum { TTI_STAGE_NAME_MAX = 32, TTI_STAGE_HOSTS_MAX = 64, TTI_STAGE_FAULTS_MAX = 8, TTI_STAGE_FAULTS_ROOM = 40 };

/* Handles begin here; what is below is a descriptor of the machine's, say of shared memory. */
enum { TTI_FIRST_HANDLE = 1 << 24 };

typedef struct tti_stage tti_stage;

typedef struct tti_process {
    char    name[TTI_STAGE_NAME_MAX];
    int     index;
    int     host;
    int     rank; /* -1: it is none */
    int     n_fibers; /* that have not returned */
    uint64_t turns;
    uint64_t changes; /* of things that its players may poll: who found nothing need not look again before the next */
    int64_t stopped_until_ns;
    bool    done;  /* its first player has returned */
    bool    dead;  /* for the others */
    bool    ghost; /* and runs on all the same, at the end, to give back what it has */
    int64_t dead_ns;
} tti_process;

typedef enum tti_wait_kind { TTI_GOES_ON, TTI_WAITS_TIME, TTI_WAITS_WORD, TTI_WAITS_POLL, TTI_WAITS_END, TTI_HAS_ENDED } tti_wait_kind;

/** A thread of the world's. */
typedef struct tti_player {
    tti_stage   *stage;
    tti_process *process;
    tti_fiber   *fiber;
    char         name[TTI_STAGE_NAME_MAX];
    void (*body)(void *arg);
    void *arg;
    int   index;  /* never another's */
    bool  is_first;
    int   yields; /* in a row */
    /* what it waits for */
    tti_wait_kind           kind;
    int64_t                 deadline_ns;
    const _Atomic uint32_t *word;
    bool                    woken; /* or there is nothing to wait for */
    tti_poll               *set;
    int                     n_set;
    uint64_t                looked; /* at the set, after so many changes, and found nothing, */
    int64_t                 look_ns; /* which time alone does not change before then; nor does the deadline */
    struct tti_player      *other; /* whose end */
    bool                    joined;
} tti_player;

/** What goes with the first byte of a message on a stream inside a host. */
typedef struct tti_passed {
    int               n;
    struct tti_thing *things[TTI_FDS_MAX]; /* NULL: a descriptor of the machine's, duplicated */
    int               fds[TTI_FDS_MAX];
} tti_passed;

/** Bytes on their way, or the end of a stream. */
typedef struct tti_piece {
    struct tti_piece *next;
    bool              end;
    int64_t           arrives_ns; /* TTI_FOREVER: not before the hosts reach each other again */
    tti_passed       *passed; /* NULL: nothing */
    size_t            size, read;
    uint8_t           data[];
} tti_piece;

typedef enum tti_thing_kind { TTI_THING_LISTENER, TTI_THING_STREAM, TTI_THING_BELL, TTI_THING_LIFE } tti_thing_kind;

enum { TTI_PENDING_MAX = 256, TTI_HEARD_MAX = 256 };

/** What handles stand for; several may. */
typedef struct tti_thing {
    tti_thing_kind kind;
    int            refs;
    tti_process   *process; /* whose it was first */
    int            host;
    tti_addr       addr, far;
    /* listener */
    struct tti_thing *pending[TTI_PENDING_MAX];
    int               n_pending;
    /* stream */
    struct tti_thing *peer; /* NULL: gone, or not there yet */
    tti_process      *whose; /* was the other end, as the kernel remembers it; NULL: there was none */
    bool              connecting;
    int64_t           connect_ns;
    int               error; /* errno that sending and receiving say; 0: none */
    int64_t           reset_ns; /* when it hears that the other end is gone; 0: it is not, or said so with an end */
    int64_t           parted_ns; /* since when nothing reaches it; 0: something does */
    tti_piece        *first, *last;
    size_t            queued;
    struct tti_thing *door; /* the listener that it came to, of the end that called, until something is sent; NULL: none */
    uint8_t           heard[TTI_HEARD_MAX]; /* listener: what somebody who called said first */
    size_t            n_heard;
    bool              rung; /* bell */
    struct tti_thing *prev, *next; /* of all */
} tti_thing;

typedef struct tti_fault {
    tutti_fault_kind kind;
    uint64_t         at_step;
    bool             of_rank; /* a turn of the target's, not of the run */
    int              target; /* rank, or host */
    int64_t          lasts_ns;
    bool             done;
} tti_fault;

typedef struct tti_slot {
    tti_thing *thing; /* NULL: free */
    int        owner; /* process */
} tti_slot;

struct tti_stage {
    tti_port port; /* first: the two pointers convert both ways */
    tti_crew crew;
    uint64_t dice;
    uint64_t trace;
    bool     tells;
    int64_t  now_ns;
    uint64_t steps, steps_max;
    int64_t  limit_ns;
    uint16_t next_port;
    /* how this seed is: */
    int      preempt_every; /* locks and calls, on average */
    size_t   room;          /* of a stream, bytes */
    int64_t  latency_ns, jitter_ns;
    bool     crumbles; /* streams give and take less than they could */
    tti_process **processes;
    int           n_processes;
    tti_player  **players;
    int           n_players, room_players;
    int           next_index;
    tti_player   *running; /* NULL: the director */
    tti_slot     *slots;
    int           n_slots;
    tti_thing    *things;
    int64_t       settle_ns; /* when connections end their way, or are unheard for too long, next; 0: look at all */
    int           n_hosts;
    int64_t       parted_until[TTI_STAGE_HOSTS_MAX]; /* from everybody else; 0: not */
    int64_t       clogged_until[TTI_STAGE_HOSTS_MAX];
    int64_t       slow_until[TTI_STAGE_HOSTS_MAX];
    tti_fault     faults[TTI_STAGE_FAULTS_ROOM]; /* drawn, and then those that the program asked for */
    int           n_faults;
    int           n_ranks;
    int           n_live;       /* players that have not ended */
    int           n_ranks_left; /* ranks that are alive and have not returned */
    _Atomic uint32_t over;      /* there are none: whoever serves them may go */
    int           n_done[TUTTI_FAULT_KINDS]; /* faults, by kind */
    int64_t       longest_ns;  /* stop or part */
    uint64_t      lost;        /* ranks, as bits */
};

/* ---- world.c ---- */

uint64_t tti_stage_dice(tti_stage *stage);
/** 0 .. n-1 */
uint64_t tti_stage_roll(tti_stage *stage, uint64_t n);
/** One event, into the trace. */
void tti_stage_note(tti_stage *stage, const char *what, int64_t a, int64_t b);
/** The running player has filled in what it waits for: others go on until it can. */
void tti_stage_wait(tti_stage *stage);
/** Others go on for a moment. */
void tti_stage_yield(tti_stage *stage);
/** Perhaps others go on here. */
void tti_stage_preempt(tti_stage *stage);

tutti_status tti_stage_add_process(tti_stage *stage, const char *name, int host, int rank, tti_process **process_out);
tutti_status tti_stage_add_player(tti_stage *stage, tti_process *process, const char *name, void (*body)(void *arg), void *arg,
                                  tti_player **player_out);
/** Until every player of a rank that is alive has returned, then the others; TUTTI_E_TIMEOUT: somebody has not. */
tutti_status tti_stage_play(tti_stage *stage);
/** All that is left of it. */
void tti_stage_free(tti_stage *stage);

/* ---- wires.c ---- */

/** Do what is due by now. */
void tti_wires_settle(tti_stage *stage);
/** Which hosts reach each other has changed. */
void tti_wires_unsettle(tti_stage *stage);
/** Fill in what is ready: how many are. */
int tti_wires_look(tti_stage *stage, tti_poll *set, int n);
/** When time alone may make one of them ready; TTI_FOREVER: never. */
int64_t tti_wires_due(tti_stage *stage, const tti_poll *set, int n);
/** Its sign of life has changed. */
void tti_wires_note_end(tti_stage *stage, const tti_process *process);
/** As the kernel does for a process that is gone. */
void tti_wires_end_process(tti_stage *stage, const tti_process *process);
/** Everything that is held back to or from the host sets out. */
void tti_wires_release(tti_stage *stage, int host);
/** Cut one stream between two processes, by the dice; false: there is none. */
bool tti_wires_reset_one(tti_stage *stage, int rank);
/** Somebody connects to a listener of the rank's a second time, as if a first packet had come twice. */
bool tti_wires_double_one(tti_stage *stage, int rank);
void tti_wires_free(tti_stage *stage);

int     tti_wire_connect(tti_port *port, const tti_addr *to, tti_handle *handle_out);
int     tti_wire_connect_result(tti_port *port, tti_handle handle);
int     tti_wire_listen(tti_port *port, const tti_addr *at, int backlog, tti_addr *bound_out, tti_handle *handle_out);
int     tti_wire_accept(tti_port *port, tti_handle listener, tti_addr *from_out);
int     tti_wire_local_addr(tti_port *port, tti_handle handle, tti_addr *addr_out);
int64_t tti_wire_send(tti_port *port, tti_handle handle, const tti_part *parts, int n_parts);
int64_t tti_wire_recv(tti_port *port, tti_handle handle, void *out, size_t bytes);
void    tti_wire_close(tti_port *port, tti_handle handle);
int     tti_wire_send_fds(tti_port *port, tti_handle handle, const void *data, size_t bytes, const int *fds, int n_fds);
int64_t tti_wire_recv_fds(tti_port *port, tti_handle handle, void *out, size_t bytes, int *fds_out, int n_fds_max, int *n_fds_out);
int     tti_wire_peer_cred(tti_port *port, tti_handle handle, tti_peer_cred *cred_out);
int     tti_wire_bell_create(tti_port *port, tti_handle *bell_out);
void    tti_wire_bell_ring(tti_port *port, tti_handle bell);
void    tti_wire_bell_clear(tti_port *port, tti_handle bell);
int     tti_wire_life_create(tti_port *port, tti_handle *life_out);

/* ---- stage.c ---- */

extern const tti_port_ops tti_stage_ops;

tti_addr tti_stage_addr(int host, uint16_t tcp_port);
/** What a process of the world's has for a pid. */
static inline int64_t tti_stage_pid(const tti_process *process)
{
    return 1000 + process->index;
}
static inline tti_stage *tti_stage_of(tti_port *port)
{
    return (tti_stage *)port;
}

/* ---- faults.c ---- */

/** Draw what goes wrong. */
void tti_faults_draw(tti_stage *stage, const tutti_rehearse_options *options);
/** One more; false: there is no room. */
bool tti_faults_add(tti_stage *stage, tutti_fault_kind kind, int target, int64_t in_turns, int64_t lasts_ns);
/** Whether kinds happen to a host, not to a rank. */
bool tti_fault_is_of_host(tutti_fault_kind kind);
/** Do what is due. */
void tti_faults_do(tti_stage *stage);
/** When one that lasts is over next. */
int64_t tti_faults_next(const tti_stage *stage);

#endif
