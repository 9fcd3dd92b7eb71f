/* SPDX-License-Identifier: BSD-3-Clause
 *
 * backend.c - a group: its communicator, how it fails, how it ends.
 *
 * Group    A communicator of its members, made from an id that only they have (meet.c), and a stream of the group's own, which
 *          waits for no other. Messages have communicators of their own (lane.c).
 * Failure  The first one is kept, with its words, and is what every later call returns. What has ended by then has ended well;
 *          all else fails, and the communicators are aborted: NCCL's kernels, which wait for other ranks for ever, return. Who
 *          finishes a group holds the lock, so that nobody is inside a call of NCCL's with one of them. The watchdog tells the
 *          other members.
 * End      destroy waits for calls that are under way, each until its deadline, as their data are the program's, which has perhaps
 *          only told its stream to wait. Then communicators, those of messages too, are given back in order: what NCCL still holds
 *          of data that this rank is through with goes to the others. As destroy waits for no other rank this may take
 *          LEAVE_NS, for all of them together; then they are aborted, and a rank that has not taken its data by then does
 *          not get them. Who cannot know that all have taken theirs has a barrier before destroy. */
#include "nccl_backend.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DEVICES_MOST = 64 };

static const int64_t LEAVE_NS = 70 * 1000000;

/* ---- small things ---- */

int tnccl_enter(const tnccl_backend *b)
{
    int device = b->device;

    tnccl.cudaGetDevice(&device);
    if (device != b->device)
        tnccl.cudaSetDevice(b->device);
    return device;
}

void tnccl_leave(int device)
{
    int now = device;

    tnccl.cudaGetDevice(&now);
    if (now != device)
        tnccl.cudaSetDevice(device);
}

tutti_status tnccl_fail_nccl(ncclResult_t code, ncclComm_t comm, const char *what, const char *group)
{
    const char *more = tnccl.ncclGetLastError(comm);

    return tnccl_host->fail(TUTTI_E_BACKEND, "%s on group '%s': NCCL says '%s'%s%.300s\n  next: set NCCL_DEBUG=WARN to see more", what,
                            group, tnccl.ncclGetErrorString(code), more != NULL && more[0] != '\0' ? ": " : "",
                            more != NULL ? more : "");
}

tutti_status tnccl_fail_cuda(cudaError_t code, const char *what, const char *group)
{
    tnccl.cudaGetLastError(); /* is told here, and not left for the program */
    return tnccl_host->fail(TUTTI_E_BACKEND, "%s on group '%s': CUDA says '%s'", what, group, tnccl.cudaGetErrorString(code));
}

void tnccl_hold(tnccl_backend *b)
{
    atomic_fetch_add_explicit(&b->refs, 1, memory_order_relaxed);
}

void tnccl_drop(tnccl_backend *b)
{
    if (atomic_fetch_sub_explicit(&b->refs, 1, memory_order_acq_rel) != 1)
        return;
    tnccl_tickets_free(b);
    tnccl_lanes_free(b);
    pthread_mutex_destroy(&b->lock);
    free(b->global_ranks);
    free(b);
}

void tnccl_news(tnccl_backend *b)
{
    atomic_fetch_add(&b->news, 1);
    tnccl_host->wake_word(&b->news);
}

/* ---- failing ---- */

/* What NCCL tells by itself; being in progress is no error. */
static ncclResult_t async_error(const tnccl_backend *b)
{
    ncclResult_t code = ncclSuccess;

    if (b->comm == NULL)
        return ncclSuccess;
    if (tnccl.ncclCommGetAsyncError(b->comm, &code) != ncclSuccess)
        code = ncclInternalError;
    return code == ncclInProgress ? ncclSuccess : code;
}

bool tnccl_has_error(tnccl_backend *b)
{
    const ncclResult_t code = b->status == TUTTI_OK ? async_error(b) : ncclSuccess;
    const char        *what = b->begun;
    tutti_ticket      *t;

    if (code == ncclSuccess)
        return false;
    for (t = b->under_way; t != NULL; t = t->next)
        what = t->what; /* the oldest is the last */
    tnccl_fail_nccl(code, b->comm, what, b->name);
    tnccl_finish(b, TUTTI_E_BACKEND, tnccl_host->last_error());
    return true;
}

void tnccl_finish(tnccl_backend *b, tutti_status status, const char *words)
{
    if (b->status != TUTTI_OK)
        return;
    tnccl_tickets_query(b);
    if (async_error(b) == ncclSuccess)
        tnccl_tickets_end(b);
    snprintf(b->words, sizeof b->words, "%s", words);
    b->status = status;
    tnccl_tickets_fail(b);
    tnccl_lanes_fail(b);
    if (b->comm != NULL)
        tnccl.ncclCommAbort(b->comm);
    b->comm = NULL;
    if (b->split != NULL) /* read behind the abort: NCCL writes no other one there any more */
        tnccl.ncclCommAbort(b->split);
    b->split = NULL;
    tnccl_news(b);
}

tutti_status tnccl_say(const tnccl_backend *b)
{
    return tnccl_host->fail(b->status, "%s", b->words);
}

static void finish(tutti_backend *backend, tutti_status status, const char *words, bool others_know)
{
    tnccl_backend *b = (tnccl_backend *)backend;
    const int      device = tnccl_enter(b);

    pthread_mutex_lock(&b->lock);
    if (b->status == TUTTI_OK)
        b->is_told = others_know;
    tnccl_finish(b, status, words);
    pthread_mutex_unlock(&b->lock);
    tnccl_leave(device);
}

void tnccl_fail(tutti_backend *backend, tutti_status status)
{
    char words[TNCCL_WORDS];

    snprintf(words, sizeof words, "%s", tnccl_host->last_error());
    finish(backend, status, words, false);
}

void tnccl_abort(tutti_backend *backend)
{
    finish(backend, TUTTI_E_ABORTED, "the group was aborted on this rank", false);
}

/* ---- waiting for NCCL ---- */

tutti_status tnccl_settle(tnccl_backend *b, ncclResult_t code, int64_t deadline_ns)
{
    uint32_t rounds = 0;

    if (code == ncclInProgress) { /* perhaps until another rank comes */
        b->taking_ns = tnccl_host->now_ns();
        b->taking_deadline_ns = deadline_ns != 0 ? deadline_ns : INT64_MAX;
        tnccl_news(b);
    }
    while (code == ncclInProgress) {
        pthread_mutex_unlock(&b->lock);
        tnccl_host->idle(&rounds, false);
        pthread_mutex_lock(&b->lock);
        if (b->status != TUTTI_OK)
            break;
        if (tnccl.ncclCommGetAsyncError(b->comm, &code) != ncclSuccess)
            code = ncclInternalError;
    }
    b->taking_ns = 0;
    if (b->status != TUTTI_OK)
        return tnccl_say(b);
    if (code == ncclSuccess)
        return TUTTI_OK;
    tnccl_fail_nccl(code, b->comm, b->begun, b->name);
    tnccl_finish(b, TUTTI_E_BACKEND, tnccl_host->last_error());
    return tnccl_say(b);
}

/* ---- making ---- */

static tutti_status find_device(const tutti_backend_config *config, int *device_out)
{
    const cudaError_t code = tnccl.cudaGetDevice(device_out);

    return code == cudaSuccess ? TUTTI_OK : tnccl_fail_cuda(code, "asking for the current device", config->name);
}

/* Some bytes of each device, for all groups, that nobody looks at. They stay: freeing them would wait for all that
 * the device does, and that may wait for other ranks. */
static cudaError_t find_scratch(int device, void **scratch_out)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static void           *scratch[DEVICES_MOST];
    cudaError_t            code = device < DEVICES_MOST ? cudaSuccess : cudaErrorInvalidDevice;

    pthread_mutex_lock(&lock);
    if (code == cudaSuccess && scratch[device] == NULL)
        code = tnccl.cudaMalloc(&scratch[device], TNCCL_SCRATCH);
    if (code == cudaSuccess)
        *scratch_out = scratch[device];
    pthread_mutex_unlock(&lock);
    return code;
}

static tutti_status take_device_memory(tnccl_backend *b)
{
    cudaError_t code = tnccl.cudaStreamCreateWithFlags(&b->stream, cudaStreamNonBlocking);

    if (code == cudaSuccess)
        code = find_scratch(b->device, &b->scratch);
    return code == cudaSuccess ? TUTTI_OK : tnccl_fail_cuda(code, "making a stream", b->name);
}

static tnccl_backend *allocate(const tutti_backend_config *config)
{
    const size_t   bytes = (size_t)config->n_ranks * sizeof(int);
    tnccl_backend *b = calloc(1, sizeof *b);

    if (b != NULL)
        b->global_ranks = malloc(bytes);
    if (b == NULL || b->global_ranks == NULL) {
        free(b);
        return NULL;
    }
    memcpy(b->global_ranks, config->global_ranks, bytes);
    atomic_init(&b->refs, 1);
    pthread_mutex_init(&b->lock, NULL);
    b->base.ops = &tnccl_ops;
    b->rank = config->rank;
    b->n_ranks = config->n_ranks;
    b->store = config->store;
    b->is_told = true; /* until there is a group that can fail */
    snprintf(b->name, sizeof b->name, "%s", config->name);
    return b;
}

static tutti_status open_group(tnccl_backend *b, const tutti_backend_config *config)
{
    const int    device = tnccl_enter(b);
    tutti_status st;

    pthread_mutex_lock(&b->lock);
    st = take_device_memory(b);
    if (st == TUTTI_OK)
        st = tnccl_connect(b, config);
    pthread_mutex_unlock(&b->lock);
    tnccl_leave(device);
    return st == TUTTI_OK ? tnccl_watch(b) : st;
}

static tutti_status make(const tutti_backend_config *config, tutti_backend **backend_out)
{
    tnccl_backend *b;
    tutti_status   st;
    int            device = 0;

    if (config->lazy)
        return tnccl_host->fail(TUTTI_E_UNSUPPORTED, "group '%s': backend 'nccl' makes a group when all its members are there\n"
                                                     "  next: make it without use_local_synchronization", config->name);
    st = find_device(config, &device);
    if (st != TUTTI_OK)
        return st;
    b = allocate(config);
    if (b == NULL)
        return tnccl_host->fail(TUTTI_E_NOMEM, "no memory for a group of %d", config->n_ranks);
    b->device = device;
    st = open_group(b, config);
    if (st != TUTTI_OK) {
        char words[TNCCL_WORDS];

        snprintf(words, sizeof words, "%s", tnccl_host->last_error());
        tnccl_destroy(&b->base);
        return tnccl_host->fail(st, "%s", words);
    }
    b->is_told = false;
    *backend_out = &b->base;
    return TUTTI_OK;
}

tutti_status tnccl_create(const tutti_backend_config *config, tutti_backend **backend_out)
{
    const tutti_status st = make(config, backend_out);

    if (st != TUTTI_OK)
        tnccl_split_leave(config);
    return st;
}

/* ---- ending ---- */

/* Lock held, also on return, and released in between. */
static void wait_for_calls(tnccl_backend *b)
{
    uint32_t rounds = 0;

    for (;;) {
        tnccl_tickets_look(b);
        if (b->status != TUTTI_OK || b->under_way == NULL)
            return;
        pthread_mutex_unlock(&b->lock);
        tnccl_host->idle(&rounds, true); /* the watchdog ends those that are late */
        pthread_mutex_lock(&b->lock);
    }
}

void tnccl_give_back(ncclComm_t comm, ncclResult_t code, int64_t until_ns)
{
    uint32_t rounds = 0;

    while (code == ncclInProgress && tnccl_host->now_ns() < until_ns) {
        tnccl_host->idle(&rounds, true);
        if (tnccl.ncclCommGetAsyncError(comm, &code) != ncclSuccess)
            code = ncclInternalError;
    }
    if (code == ncclSuccess)
        tnccl.ncclCommDestroy(comm);
    else
        tnccl.ncclCommAbort(comm);
}

/* All are finalized before one is waited for. Lock held. */
static void give_all_back(tnccl_backend *b)
{
    const int64_t      until_ns = tnccl_host->now_ns() + LEAVE_NS;
    const ncclResult_t code = tnccl.ncclCommFinalize(b->comm);

    tnccl_lanes_finalize(b);
    tnccl_give_back(b->comm, code, until_ns);
    b->comm = NULL;
    tnccl_lanes_give_back(b, until_ns);
}

void tnccl_destroy(tutti_backend *backend)
{
    tnccl_backend *b = (tnccl_backend *)backend;
    const int      device = tnccl_enter(b);
    const bool     was_made = b->watchdog != NULL;

    pthread_mutex_lock(&b->lock);
    if (was_made)
        wait_for_calls(b);
    b->ends = true;
    pthread_mutex_unlock(&b->lock);
    tnccl_watch_end(b);
    pthread_mutex_lock(&b->lock);
    if (was_made)
        tnccl_lanes_advance(b); /* messages that have ended need not have been asked for */
    if (b->status == TUTTI_OK && was_made)
        give_all_back(b);
    tnccl_finish(b, TUTTI_E_ABORTED, "the group was destroyed");
    tnccl_tickets_look(b);
    pthread_mutex_unlock(&b->lock);
    if (b->stream != NULL)
        tnccl.cudaStreamDestroy(b->stream); /* waits for nothing */
    tnccl_leave(device);
    tnccl_drop(b);
}
