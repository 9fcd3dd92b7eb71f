/* SPDX-License-Identifier: BSD-3-Clause
 *
 * mem_world.h - the insides of mem_port.h, shared by the world (threads, clock), the streams and
 * the table of the port. */
#ifndef TT_HARNESS_MEM_WORLD_H
#define TT_HARNESS_MEM_WORLD_H

#include <pthread.h>
#include "harness/mem_port.h"

enum { THREADS_MAX = 64, HOSTS_MAX = 64, HANDLES_MAX = 1024, NAME_MAX_BYTES = 32, MAIN = -1 };
enum { STREAM_ROOM = 256 * 1024 }; /* bytes on the way or unread, per direction */

typedef enum wait_kind { WAIT_NONE, WAIT_TIME, WAIT_WORD, WAIT_POLL } wait_kind;

typedef struct mem_thread {
    struct tt_mem_world *world;
    pthread_t            id;
    pthread_cond_t       turn;
    char                 name[NAME_MAX_BYTES];
    void (*body)(void *arg);
    void *arg;
    bool  done;
    /* what it waits for */
    wait_kind               kind;
    int64_t                 deadline_ns;
    const _Atomic uint32_t *word;
    uint32_t                seen;
    bool                    woken;
    tti_poll               *set;
    int                     n_set;
} mem_thread;

typedef struct mem_host {
    tti_port             port; /* first: the two pointers convert both ways */
    struct tt_mem_world *world;
    char                 name[NAME_MAX_BYTES];
    int                  index;
    bool                 isolated;
    bool                 unrouted;
    int64_t              cut_after; /* bytes; negative: never */
    uint16_t             next_port;
    tti_addr             place; /* family NONE: that of its index */
} mem_host;

/* Bytes, or the end of the stream, on their way. */
typedef struct segment {
    struct segment *next;
    int64_t         arrives_ns;
    bool            end;
    size_t          size, read;
    uint8_t         data[];
} segment;

typedef enum handle_kind { FREE, LISTENER, STREAM, BELL } handle_kind;

typedef struct mem_handle {
    handle_kind kind;
    mem_host   *host;
    tti_addr    addr; /* listener: where; stream: this end */
    tti_addr    far;  /* stream: the other end */
    /* listener: streams that wait to be accepted */
    tti_handle pending[128];
    int        n_pending;
    /* stream */
    int      peer; /* handle of the other end; TTI_NO_HANDLE: gone, or not there yet */
    bool     connecting;
    int64_t  connect_ns;
    int      error; /* errno that recv and send report; 0: none */
    segment *first, *last;
    size_t   queued; /* bytes of segments */
    bool     rung;   /* bell */
} mem_handle;

struct tt_mem_world {
    pthread_mutex_t lock; /* of turn */
    pthread_cond_t  main_turn;
    int             turn; /* whose baton: a thread, or MAIN */
    int64_t         now_ns;
    int64_t         latency_ns;
    uint64_t        dice;
    uint64_t        trace;
    mem_thread      threads[THREADS_MAX];
    int             n_threads;
    mem_host        hosts[HOSTS_MAX];
    int             n_hosts;
    mem_handle      handles[HANDLES_MAX];
};

static inline mem_host *host_of(tti_port *port)
{
    return (mem_host *)port;
}

/* mem_world.c */

/** The next number of the seed. */
uint64_t tt_mem_dice(tt_mem_world *w);
/** One event into the trace. */
void tt_mem_note(tt_mem_world *w, char what, int64_t a, int64_t b);
/** The running thread has filled in what it waits for: let others run until it can go on. */
void tt_mem_wait_turn(tt_mem_world *w);
/** The running thread. */
mem_thread *tt_mem_self(tt_mem_world *w);
/** NULL: there is none. */
mem_host *tt_mem_find_host(tt_mem_world *w, const char *name);

/* mem_stream.c */

/** A handle that is in use, else the test ends. */
mem_handle *tt_mem_handle_at(tt_mem_world *w, tti_handle handle);
/** Forget what is on the way to it. */
void tt_mem_drop_segments(mem_handle *h);
/** Do what is due by now. */
void tt_mem_settle(tt_mem_world *w);
/** Fill in what is ready: how many are. */
int tt_mem_look(tt_mem_world *w, tti_poll *set, int n);
/** Where a host is. */
tti_addr tt_mem_addr(const mem_host *host, uint16_t tcp_port);

/* Entries of the port's table. */
int     tt_mem_connect(tti_port *port, const tti_addr *to, tti_handle *handle_out);
int     tt_mem_connect_result(tti_port *port, tti_handle handle);
int     tt_mem_listen(tti_port *port, const tti_addr *at, int backlog, tti_addr *bound_out,
                      tti_handle *handle_out);
int     tt_mem_accept(tti_port *port, tti_handle listener, tti_addr *from_out);
int     tt_mem_local_addr(tti_port *port, tti_handle handle, tti_addr *addr_out);
int64_t tt_mem_send(tti_port *port, tti_handle handle, const tti_part *parts, int n_parts);
int64_t tt_mem_recv(tti_port *port, tti_handle handle, void *out, size_t bytes);
void    tt_mem_close(tti_port *port, tti_handle handle);
int     tt_mem_bell_create(tti_port *port, tti_handle *bell_out);
void    tt_mem_bell_ring(tti_port *port, tti_handle bell);
void    tt_mem_bell_clear(tti_port *port, tti_handle bell);

#endif
