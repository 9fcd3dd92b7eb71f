/* SPDX-License-Identifier: BSD-3-Clause
 *
 * nccl_backend.h - what the files of this plug-in share.
 *
 *   plugin.c      the symbol that is shown, and the table
 *   library.c     NCCL and the CUDA runtime, found at run time
 *   backend.c     a group: its communicator, how it fails, how it ends
 *   meet.c        NCCL's id, given to all through the store; who has not come
 *   split.c       communicators out of another one, where all of its ranks come
 *   collective.c  one call, from its turn to the device
 *   motion.c      what a call is in NCCL's operations
 *   ticket.c      the place of a call in streams: what it waits for, who waits for it
 *   lane.c        messages of one direction between two ranks: a communicator and a stream of their own
 *   message.c     messages as the library sees them
 *   watchdog.c    the thread that looks for calls that are late, and errors that come by themselves
 *
 * Locking  One mutex for each group, b->lock, is held around every call of NCCL that has one of its communicators, and guards
 *          every field that is not constant from creation on. Communicators are non-blocking ones, so that none of these calls
 *          waits for another rank; who waits releases the lock between two looks, and finds b->status set if the group has
 *          failed meanwhile: then its communicators are gone.
 * Device   A group works on the device that was current on the thread that made it. Every entry makes it current, and what was
 *          current before again when it leaves (tnccl_enter, tnccl_leave). */
#ifndef TUTTI_PLUGINS_NCCL_BACKEND_H
#define TUTTI_PLUGINS_NCCL_BACKEND_H

#include <cuda_runtime_api.h>
#include <nccl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <tutti/plugin/plugin.h>

enum {
    TNCCL_WORDS = 768,     /* bytes of the words of a failure */
    TNCCL_WHAT = 128,      /* of "all_reduce #7 (sum, 4 f32)" */
    TNCCL_NAME = 64,
    TNCCL_SPARE = 64,      /* tickets that are kept for later calls */
    TNCCL_PIECE_MS = 200,  /* of a wait for the store */
    TNCCL_SCRATCH = 256,   /* bytes on the device that nobody looks at: an element for barriers, and of messages without elements */
    TNCCL_SCRATCH_SEND = 64,
    TNCCL_SCRATCH_RECV = 128
};

/** Given by init; constant from then on. */
extern const tutti_plugin_host *tnccl_host;

/* ---- library.c ---- */

#define TNCCL_OF_NCCL(X)                                                                                                \
    X(ncclGetVersion) X(ncclGetUniqueId) X(ncclCommInitRankConfig) X(ncclCommFinalize) X(ncclCommDestroy) X(ncclCommAbort)       \
    X(ncclCommGetAsyncError) X(ncclGetErrorString) X(ncclGetLastError) X(ncclGroupStart) X(ncclGroupEnd) X(ncclAllReduce)        \
    X(ncclReduce) X(ncclBroadcast) X(ncclAllGather) X(ncclReduceScatter) X(ncclSend) X(ncclRecv) X(ncclRedOpCreatePreMulSum)     \
    X(ncclRedOpDestroy)
#define TNCCL_OF_CUDA(X)                                                                                                \
    X(cudaGetDeviceCount) X(cudaGetDevice) X(cudaSetDevice) X(cudaStreamCreateWithFlags) X(cudaStreamDestroy)                    \
    X(cudaStreamWaitEvent) X(cudaEventCreateWithFlags) X(cudaEventRecord) X(cudaEventQuery) X(cudaEventDestroy) X(cudaMalloc)    \
    X(cudaMemcpyAsync) X(cudaGetErrorString) X(cudaGetLastError)

/** The functions that are used, as the two libraries have them. */
typedef struct tnccl_functions {
#define TNCCL_MEMBER(name) __typeof__(name) *name;
    TNCCL_OF_NCCL(TNCCL_MEMBER)
    TNCCL_OF_CUDA(TNCCL_MEMBER)
#undef TNCCL_MEMBER
    /* NULL: it has none; from 2.18 on. Not every header that this can be built with knows it. */
    ncclResult_t (*ncclCommSplit)(ncclComm_t comm, int color, int key, ncclComm_t *split_out, ncclConfig_t *config);
    int version; /* of NCCL */
} tnccl_functions;

/** Constant once tnccl_load() has succeeded. */
extern tnccl_functions tnccl;

/** Find both libraries, all functions in them, and a GPU.
 * @errors TUTTI_E_UNSUPPORTED  one is not there, too old, or lacks a function, or there is no GPU; the text names the variable to set */
tutti_status tnccl_load(void);

/* ---- backend.c ---- */

typedef struct tnccl_lane tnccl_lane;

typedef struct tnccl_backend {
    tutti_backend base;
    _Atomic int   refs; /* the library's, and one for each ticket and message */

    /* Constant from creation on. */
    int          rank;
    int          n_ranks;
    int         *global_ranks; /* [n_ranks], for words */
    char         name[TNCCL_NAME];
    int          device;
    tutti_store *store;     /* until destroy */
    cudaStream_t stream;    /* of all collectives */
    void        *scratch;   /* TNCCL_SCRATCH bytes */

    pthread_mutex_t lock;
    ncclComm_t      comm;   /* its ranks are the group's; NULL once it is gone */
    ncclComm_t      split;  /* what NCCL splits from it, while the group is divided; NULL once somebody has taken it */
    tutti_status    status; /* what the group has failed with */
    char            words[TNCCL_WORDS];
    bool            is_told;     /* others know, or need not */
    atomic_bool    ends;       /* destroy has begun; written under the lock */
    tutti_ticket   *under_way;   /* begun, and not ended */
    tutti_ticket   *spare;
    int             n_spare;
    tnccl_lane     *lanes;
    uint64_t        begun_seq;   /* the call that run has begun last, and */
    char            begun[TNCCL_WHAT]; /* what it is */
    int64_t         taking_ns;   /* since when NCCL is about to take that one; 0: it is not */
    int64_t         taking_deadline_ns;

    tutti_plugin_thread *watchdog; /* NULL: there is none */
    tutti_word news; /* grows when the watchdog has something new to look at */
    int64_t    store_rests_ns; /* the watchdog's alone: it asks the store nothing until then */
} tnccl_backend;

extern const tutti_backend_ops tnccl_ops;

tutti_status tnccl_create(const tutti_backend_config *config, tutti_backend **backend_out);
void tnccl_abort(tutti_backend *backend);
void tnccl_fail(tutti_backend *backend, tutti_status status);
void tnccl_destroy(tutti_backend *backend);

/** Make the group's device current on this thread; gives the one that was. */
int  tnccl_enter(const tnccl_backend *b);
void tnccl_leave(int device);

/** Under the lock. The first one who says so finishes the group: what has not ended by now fails with it. */
void tnccl_finish(tnccl_backend *b, tutti_status status, const char *words);
/** Under the lock: whether NCCL has an error to tell by itself, which finishes the group then. */
bool tnccl_has_error(tnccl_backend *b);
/** Under the lock: this thread's last error becomes the group's words. */
tutti_status tnccl_say(const tnccl_backend *b);
void tnccl_hold(tnccl_backend *b);
void tnccl_drop(tnccl_backend *b);
/** Under the lock: nothing of the communicator is under way, and it was finalized, which gave code. */
void tnccl_give_back(ncclComm_t comm, ncclResult_t code, int64_t until_ns);
/** Let the watchdog look. */
void tnccl_news(tnccl_backend *b);

/** Words for what one of the libraries has returned. what: "all_reduce #7 (...)"; comm may be NULL. */
tutti_status tnccl_fail_nccl(ncclResult_t code, ncclComm_t comm, const char *what, const char *group);
tutti_status tnccl_fail_cuda(cudaError_t code, const char *what, const char *group);

/** Under the lock, released between looks: until NCCL has taken what it was given on the group's communicator, the call begun
 * last. The watchdog has its deadline meanwhile.
 * @errors TUTTI_E_BACKEND, TUTTI_E_TIMEOUT, or what the group has failed with */
tutti_status tnccl_settle(tnccl_backend *b, ncclResult_t code, int64_t deadline_ns);

/* ---- meet.c ---- */

/** Make the group's communicator, with all members, by the time-out of the configuration. Under the lock. */
tutti_status tnccl_connect(tnccl_backend *b, const tutti_backend_config *config);
/** On the clock of the host; times that are too long to count, and -1, are INT64_MAX. */
int64_t tnccl_deadline(int64_t timeout_ms);
/** Look for key for TNCCL_PIECE_MS, or until the library ends it (store_stops of the host).
 * @errors TUTTI_E_TIMEOUT  it is not there yet, or the store is out of reach, which may pass
 *         TUTTI_E_...      of the store's */
tutti_status tnccl_look_for(tutti_store *store, const char *key, tutti_bytes *found_out);

/* ---- split.c ---- */

/** Split b's communicator from the one of config->split_from, if all members of that can. Not there afterwards: it is to be made by
 * an id. Lock held. */
tutti_status tnccl_split(tnccl_backend *b, const tutti_backend_config *config, int64_t deadline_ns);
/** This member could not make its group, because of this thread's last error, which stays: the others do without it, if it was to be
 * split, and NCCL does not do that yet. */
void tnccl_split_leave(const tutti_backend_config *config);
tutti_status tnccl_sit_out(tutti_backend *backend, uint64_t step, int64_t timeout_ms, bool has_failed_here);

/* ---- motion.c ---- */

/** Whether NCCL has what the call is; nothing was done if not.
 * @errors TUTTI_E_UNSUPPORTED */
tutti_status tnccl_check_call(const tnccl_backend *b, const tutti_call *call);
/** Under the lock: give the whole call to NCCL, in one group of operations. */
ncclResult_t tnccl_move(tnccl_backend *b, const tutti_call *call);
void tnccl_describe(const tutti_call *call, char text[TNCCL_WHAT]);

/* ---- collective.c ---- */

tutti_status tnccl_run(tutti_backend *backend, const tutti_call *call);

/* ---- ticket.c ---- */

typedef enum tnccl_state { TNCCL_MARKED, TNCCL_BEGUN, TNCCL_ENDED } tnccl_state;

struct tutti_ticket {
    tutti_ticket  *next, **link; /* among those under way; next alone among spare ones */
    tnccl_backend *b;
    cudaEvent_t    before; /* how far the caller's stream had come */
    cudaEvent_t    after;  /* the end of the call, once it is begun */
    tnccl_state    state;
    bool           released;
    bool           has_come; /* its event, when it was queried last */
    tutti_status   status; /* once ended; its words are the group's */
    uint64_t       seq;
    int64_t        began_ns;
    int64_t        deadline_ns;
    char           what[TNCCL_WHAT];
};

extern const tutti_stream_ops tnccl_stream_ops;

/** Under the lock: a ticket whose place nobody has marked. */
tutti_status tnccl_ticket_new(tnccl_backend *b, tutti_ticket **ticket_out);
/** Under the lock: the call is with the device; its end is that of what the stream was given by now. */
tutti_status tnccl_ticket_begin(tutti_ticket *t, const tutti_call *call, const char *what);
/** Under the lock: notice the ends of all calls, and errors. */
void tnccl_tickets_look(tnccl_backend *b);
/** Under the lock: see which events have come; then NCCL is asked for errors; then, if it has none, those calls have ended well. */
void tnccl_tickets_query(tnccl_backend *b);
void tnccl_tickets_end(tnccl_backend *b);
/** Ask for an event. What CUDA says is not left for the program, which asks for the last error of its own thread. */
cudaError_t tnccl_query(cudaEvent_t event);
/** Of an event that was queried. */
bool tnccl_is_pending(cudaError_t code);
/** Under the lock: those that have not ended have failed with the group. */
void tnccl_tickets_fail(tnccl_backend *b);
void tnccl_tickets_free(tnccl_backend *b);
void tnccl_ticket_release(tutti_ticket *t);
tutti_status tnccl_ticket_wait(tutti_ticket *t, int64_t deadline_ns);
/** Whether what is waited for has ended, and how; the backend's lock is held. */
typedef bool tnccl_look(void *what, tutti_status *status_out);
/** Words it that it has not ended in time. */
typedef tutti_status tnccl_late(const void *what);
/** Look until it has ended or the deadline has passed; one that failed is told with the words of the group. */
tutti_status tnccl_await(tnccl_backend *b, int64_t deadline_ns, tnccl_look *look_at, tnccl_late *late, void *what);

/* ---- lane.c ---- */

struct tutti_request {
    tutti_request *next; /* of its lane, in order */
    tnccl_backend *b;
    tnccl_lane    *lane; /* stays as long as the group */
    cudaEvent_t    before, after;
    size_t         bytes;
    void          *data;
    bool           is_given;  /* to NCCL, */
    bool           is_running; /* and NCCL has given it to the device */
    bool           has_come; /* its event */
    bool           ended, released;
    tutti_status   status;
};

/** Under the lock: the lane to or from a member; made if it is the first message.
 * @errors TUTTI_E_NOMEM */
tutti_status tnccl_lane_of(tnccl_backend *b, int peer, bool is_send, tnccl_lane **lane_out);
/** Under the lock: one more message. */
void tnccl_lane_add(tnccl_lane *lane, tutti_request *r);
int tnccl_lane_peer(const tnccl_lane *lane);
bool tnccl_lane_sends(const tnccl_lane *lane);
/** The watchdog's, under the lock, which is released in between: let lanes find their other ends. False: some have not yet. */
bool tnccl_lanes_meet(tnccl_backend *b);
/** Under the lock: do for all lanes what can be done now; whether one has to be asked again soon. */
bool tnccl_lanes_advance(tnccl_backend *b);
/** Under the lock, of an orderly end, one after the other: lanes whose messages have all ended are finalized, and given back. */
void tnccl_lanes_finalize(tnccl_backend *b);
void tnccl_lanes_give_back(tnccl_backend *b, int64_t until_ns);
/** Under the lock: their messages that have not ended fail with the group, their communicators go. */
void tnccl_lanes_fail(tnccl_backend *b);
void tnccl_lanes_free(tnccl_backend *b);

/* ---- message.c ---- */

tutti_status tnccl_post(tutti_backend *backend, const tutti_message *message, tutti_request **request_out);
tutti_status tnccl_post_all(tutti_backend *backend, const tutti_message *messages, int n, tutti_request **requests_out,
                            int *n_out);
tutti_status tnccl_request_wait(tutti_request *request, int64_t deadline_ns);
bool tnccl_request_test(tutti_request *request);
int tnccl_request_source(const tutti_request *request);
void tnccl_request_release(tutti_request *request);
/** Under the lock: nobody has it any more. */
void tnccl_request_free(tutti_request *r);

/* ---- watchdog.c ---- */

tutti_status tnccl_watch(tnccl_backend *b);
void tnccl_watch_end(tnccl_backend *b);

/** The watchdog's, without the lock: put, or look once. None takes longer than about a second; after one that had no answer none is
 * asked for as long, so that a store which is stopped holds up no deadline.
 * @errors TUTTI_E_TIMEOUT  it is not there
 *         TUTTI_E_NETWORK  no answer */
bool tnccl_store_put(tnccl_backend *b, const char *key, const void *data, size_t bytes);
tutti_status tnccl_store_look(tnccl_backend *b, const char *key, tutti_bytes *found_out);

#endif
