/* SPDX-License-Identifier: BSD-3-Clause
 *
 * lane.c - messages of one direction between two ranks: a communicator and a stream of their own.
 *
 * Why      On one stream a message waits for the one before it, whoever that goes to: two ranks that both send first, and then
 *          receive, would wait for each other for ever. Lanes know nothing of each other, so messages may be begun in any
 *          order, as everywhere else in the library; those of one lane are taken in the order they were sent.
 * How      A lane is made at its first message. The sender has NCCL make an id, and puts it into the store; the receiver looks for
 *          it. What has been posted meanwhile waits in the lane; then all of it is given to NCCL in one group of operations, and so is what
 *          comes later.
 * States   new -> (watchdog) meeting -> connecting -> ready <-> giving. Messages: waiting -> given -> running -> ended, in order.
 *          All under the group's lock. Only the watchdog asks the store, which may take long, and releases the lock for that;
 *          lanes stay as long as the group, so the one it is at does. */
#include "nccl_backend.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { KEY_BYTES = 48, QUEUES = 8, QUEUES_MOST = 32 /* of CUDA */ };

static const int64_t LOOK_FIRST_NS = 2 * 1000000, LOOK_MOST_NS = 100 * 1000000;

typedef enum lane_state { LANE_NEW, LANE_MEETING, LANE_CONNECTING, LANE_READY, LANE_GIVING } lane_state;

struct tnccl_lane {
    tnccl_lane     *next;
    tnccl_backend  *b;
    int             peer;
    bool            sends;
    lane_state      state;
    ncclComm_t      comm; /* the sender is its rank 0 */
    cudaStream_t    stream;
    tutti_request  *first, *last; /* those that have not ended */
    bool            is_final; /* finalized, which gave final */
    ncclResult_t    final;
    int64_t         next_look_ns, pause_ns;
    bool            has_id; /* the sender's: made once, as one that was put may be there though nobody said so */
    ncclUniqueId    id;     /* the watchdog's alone */
};

/* ---- making ---- */

/* As the driver reads it. */
static int queues_of_a_process(void)
{
    const char *text = getenv("CUDA_DEVICE_MAX_CONNECTIONS");
    const long  n = text != NULL ? strtol(text, NULL, 10) : 0;

    return n >= 1 && n <= QUEUES_MOST ? (int)n : QUEUES;
}

/* Beside the lanes there are the group's stream and the program's. Said once, by the lane that is one too many. */
static void tell_of_queues(const tnccl_backend *b)
{
    const int         queues = queues_of_a_process();
    const tnccl_lane *lane;
    int               n = 2;

    for (lane = b->lanes; lane != NULL; lane = lane->next)
        n++;
    if (n == queues + 1)
        tnccl_host->log(TUTTI_LOG_WARN, "group '%s': rank %d has messages with so many others that %d streams share the %d queues of a "
                        "GPU: where ranks all send first, large messages may wait for each other; set CUDA_DEVICE_MAX_CONNECTIONS, up "
                        "to %d", b->name, b->global_ranks[b->rank], n, queues, (int)QUEUES_MOST);
}

tutti_status tnccl_lane_of(tnccl_backend *b, int peer, bool is_send, tnccl_lane **lane_out)
{
    tnccl_lane *lane;
    cudaError_t code;

    for (lane = b->lanes; lane != NULL; lane = lane->next)
        if (lane->peer == peer && lane->sends == is_send) {
            *lane_out = lane;
            return TUTTI_OK;
        }
    lane = calloc(1, sizeof *lane);
    if (lane == NULL)
        return tnccl_host->fail(TUTTI_E_NOMEM, "no memory for messages of group '%s'", b->name);
    code = tnccl.cudaStreamCreateWithFlags(&lane->stream, cudaStreamNonBlocking);
    if (code != cudaSuccess) {
        free(lane);
        return tnccl_fail_cuda(code, "making a stream for messages", b->name);
    }
    lane->b = b;
    lane->peer = peer;
    lane->sends = is_send;
    lane->pause_ns = LOOK_FIRST_NS;
    lane->next = b->lanes;
    b->lanes = lane;
    tell_of_queues(b);
    *lane_out = lane;
    return TUTTI_OK;
}

int tnccl_lane_peer(const tnccl_lane *lane)
{
    return lane->peer;
}

bool tnccl_lane_sends(const tnccl_lane *lane)
{
    return lane->sends;
}

void tnccl_lane_add(tnccl_lane *lane, tutti_request *r)
{
    r->lane = lane;
    r->next = NULL;
    if (lane->last != NULL)
        lane->last->next = r;
    else
        lane->first = r;
    lane->last = r;
}

/* ---- meeting ---- */

static void lane_key(const tnccl_lane *lane, char key[KEY_BYTES])
{
    const int from = lane->sends ? lane->b->rank : lane->peer, to = lane->sends ? lane->peer : lane->b->rank;

    snprintf(key, KEY_BYTES, "nccl/lane/%d-%d", from, to);
}

/* Without the lock. False: not yet. */
static bool exchange_id(tnccl_lane *lane)
{
    tutti_bytes found = { 0 };
    char        key[KEY_BYTES];
    bool        there;

    lane_key(lane, key);
    if (lane->sends) {
        lane->has_id = lane->has_id || tnccl.ncclGetUniqueId(&lane->id) == ncclSuccess;
        return lane->has_id && tnccl_store_put(lane->b, key, &lane->id, sizeof lane->id);
    }
    if (tnccl_store_look(lane->b, key, &found) != TUTTI_OK)
        return false;
    there = found.size == sizeof lane->id;
    if (there)
        memcpy(&lane->id, found.data, sizeof lane->id);
    tnccl_host->bytes_free(&found);
    return there;
}

static void lane_broken(tnccl_lane *lane, ncclResult_t code)
{
    char what[64];

    snprintf(what, sizeof what, "messages %s rank %d", lane->sends ? "to" : "from", lane->b->global_ranks[lane->peer]);
    tnccl_fail_nccl(code, lane->comm, what, lane->b->name);
    tnccl_finish(lane->b, TUTTI_E_BACKEND, tnccl_host->last_error());
}

static void connect_lane(tnccl_lane *lane)
{
    ncclConfig_t how = NCCL_CONFIG_INITIALIZER;
    ncclResult_t code;

    how.blocking = 0;
    code = tnccl.ncclCommInitRankConfig(&lane->comm, 2, lane->id, lane->sends ? 0 : 1, &how);
    lane->state = LANE_CONNECTING;
    if (code != ncclSuccess && code != ncclInProgress)
        lane_broken(lane, code);
}

/* The watchdog's, with the lock, which is released in between. */
static void meet(tnccl_lane *lane)
{
    tnccl_backend *b = lane->b;
    bool           met;

    if (lane->state != LANE_NEW || tnccl_host->now_ns() < lane->next_look_ns)
        return;
    lane->state = LANE_MEETING;
    pthread_mutex_unlock(&b->lock);
    met = exchange_id(lane);
    pthread_mutex_lock(&b->lock);
    lane->state = LANE_NEW;
    if (met && b->status == TUTTI_OK) {
        connect_lane(lane);
        return;
    }
    lane->next_look_ns = tnccl_host->now_ns() + lane->pause_ns;
    lane->pause_ns = 2 * lane->pause_ns < LOOK_MOST_NS ? 2 * lane->pause_ns : LOOK_MOST_NS;
}

bool tnccl_lanes_meet(tnccl_backend *b)
{
    tnccl_lane *lane;
    bool        all = true;

    for (lane = b->lanes; lane != NULL && b->status == TUTTI_OK; lane = lane->next) {
        meet(lane);
        all = all && lane->state >= LANE_READY;
    }
    return all || b->status != TUTTI_OK;
}

/* ---- giving to NCCL ---- */

/* A message without elements is a byte of ours: its receive ends with its send, as everywhere else. */
static ncclResult_t give_one(tnccl_lane *lane, tutti_request *r)
{
    const size_t bytes = r->bytes > 0 ? r->bytes : 1;
    void        *ours = (char *)lane->b->scratch + (lane->sends ? TNCCL_SCRATCH_SEND : TNCCL_SCRATCH_RECV);
    void        *data = r->bytes > 0 ? r->data : ours;

    if (tnccl.cudaStreamWaitEvent(lane->stream, r->before, 0) != cudaSuccess)
        return ncclUnhandledCudaError;
    r->is_given = true;
    if (lane->sends)
        return tnccl.ncclSend(data, bytes, ncclUint8, 1, lane->comm, lane->stream);
    return tnccl.ncclRecv(data, bytes, ncclUint8, 0, lane->comm, lane->stream);
}

static bool is_bad(ncclResult_t code)
{
    return code != ncclSuccess && code != ncclInProgress;
}

/* NCCL has given all that it was given to the device: the ends are those of what is in the stream. */
static void run_given(tnccl_lane *lane)
{
    tutti_request *r;

    lane->state = LANE_READY;
    for (r = lane->first; r != NULL && r->is_given; r = r->next) {
        if (r->is_running)
            continue;
        r->is_running = true;
        if (tnccl.cudaEventRecord(r->after, lane->stream) != cudaSuccess) {
            lane_broken(lane, ncclUnhandledCudaError);
            return;
        }
    }
}

static void give_waiting(tnccl_lane *lane)
{
    ncclResult_t   code = ncclSuccess, end;
    tutti_request *r;

    for (r = lane->first; r != NULL && r->is_given; r = r->next)
        ;
    if (r == NULL)
        return;
    tnccl.ncclGroupStart();
    for (; r != NULL && !is_bad(code); r = r->next)
        code = give_one(lane, r);
    end = tnccl.ncclGroupEnd();
    if (is_bad(code) || is_bad(end)) {
        lane_broken(lane, is_bad(code) ? code : end);
        return;
    }
    if (end == ncclInProgress)
        lane->state = LANE_GIVING;
    else
        run_given(lane);
}

/* ---- ending ---- */

static void end_request(tnccl_lane *lane, tutti_status status)
{
    tutti_request *r = lane->first;

    lane->first = r->next;
    if (lane->first == NULL)
        lane->last = NULL;
    r->next = NULL;
    r->status = status;
    r->ended = true;
    if (r->released)
        tnccl_request_free(r);
}

/* See which events have come: these have ended once NCCL has no error to tell, as its kernels also return when they give up. */
static cudaError_t query_running(tnccl_lane *lane)
{
    tutti_request *r;
    cudaError_t    code;

    for (r = lane->first; r != NULL && r->is_running; r = r->next) {
        code = tnccl_query(r->after);
        if (code != cudaSuccess)
            return tnccl_is_pending(code) ? cudaSuccess : code;
        r->has_come = true;
    }
    return cudaSuccess;
}

static ncclResult_t async_error(const tnccl_lane *lane)
{
    ncclResult_t code = ncclSuccess;

    if (lane->comm != NULL && tnccl.ncclCommGetAsyncError(lane->comm, &code) != ncclSuccess)
        code = ncclInternalError;
    return code;
}

static void end_come(tnccl_lane *lane)
{
    while (lane->first != NULL && lane->first->has_come)
        end_request(lane, TUTTI_OK);
}

/* Whether it has to be looked at again soon. */
static bool advance(tnccl_lane *lane)
{
    const cudaError_t  come = query_running(lane);
    const ncclResult_t code = come == cudaSuccess ? async_error(lane) : ncclUnhandledCudaError;

    if (is_bad(code)) {
        lane_broken(lane, code);
        return false;
    }
    end_come(lane);
    if (lane->state == LANE_CONNECTING && code == ncclSuccess)
        lane->state = LANE_READY;
    if (lane->state == LANE_GIVING && code == ncclSuccess)
        run_given(lane);
    if (lane->state == LANE_READY)
        give_waiting(lane);
    return lane->first != NULL;
}

bool tnccl_lanes_advance(tnccl_backend *b)
{
    tnccl_lane *lane;
    bool        again = false;

    for (lane = b->lanes; lane != NULL && b->status == TUTTI_OK; lane = lane->next)
        again = advance(lane) || again;
    return again;
}

void tnccl_lanes_finalize(tnccl_backend *b)
{
    tnccl_lane *lane;

    for (lane = b->lanes; lane != NULL; lane = lane->next) {
        lane->is_final = lane->state == LANE_READY && lane->first == NULL;
        if (lane->is_final)
            lane->final = tnccl.ncclCommFinalize(lane->comm);
    }
}

void tnccl_lanes_give_back(tnccl_backend *b, int64_t until_ns)
{
    tnccl_lane *lane;

    for (lane = b->lanes; lane != NULL; lane = lane->next) {
        if (!lane->is_final)
            continue;
        tnccl_give_back(lane->comm, lane->final, until_ns);
        lane->comm = NULL;
        lane->state = LANE_NEW;
    }
}

void tnccl_lanes_fail(tnccl_backend *b)
{
    tnccl_lane *lane;

    for (lane = b->lanes; lane != NULL; lane = lane->next) {
        (void)query_running(lane);
        if (!is_bad(async_error(lane)))
            end_come(lane); /* what has ended by now has ended well */
        while (lane->first != NULL)
            end_request(lane, b->status);
        if (lane->comm != NULL)
            tnccl.ncclCommAbort(lane->comm);
        lane->comm = NULL;
    }
}

void tnccl_lanes_free(tnccl_backend *b)
{
    tnccl_lane *lane;

    while ((lane = b->lanes) != NULL) {
        b->lanes = lane->next;
        if (lane->stream != NULL)
            tnccl.cudaStreamDestroy(lane->stream);
        free(lane);
    }
}
