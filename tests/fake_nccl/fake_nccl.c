/* SPDX-License-Identifier: BSD-3-Clause
 *
 * fake_nccl.c - a stand-in for NCCL, for tests: the entry points that backend "nccl" calls, on memory of the host. Nothing of
 * NVIDIA's is in it but the names and the types of its headers.
 *
 * How     A communicator is a world of our own backend "native", made by a thread of its own, as non-blocking communicators of NCCL
 *         are. What is given to a stream runs there (cudaLaunchHostFunc), as blocking calls on that world. The id of a
 *         communicator says where its world meets: a store in the process that made the id.
 *         One group of operations in IN_PROGRESS, drawn from FAKE_CUDA_SEED, is in progress for a while, and only comes to its
 *         stream when the communicator was asked a few times: who records an event before that records it too early. Who gives
 *         it more meanwhile is refused. The first group of a communicator is in progress until all its ranks have given theirs, as
 *         NCCL's is while it connects them.
 * Split   As NCCL, it wants all ranks of the communicator, which is in progress until they have come, and has nothing else under
 *         way: a rank whose stream still has some of it is refused. Where the new one is it writes when it is no more in progress.
 * Counts  fake_nccl_counts() tells how many ids, communicators of an id and splits this process has asked for; fake_nccl_alive() how
 *         many communicators it has, and has not given back.
 * Fails   FAKE_NCCL_SPLIT_ERROR=1: no split is taken; 2: the old communicator has an error when the new one is there. A call that fails on the stream is the communicator's asynchronous error from then on; one that differs between ranks is
 *         found by "native", where NCCL would hang. FAKE_NCCL_ERROR_AT=N: the Nth group of operations of this process fails so.
 * True    comm->lock guards what is told of below. A communicator lives until its owner has given it back, and no thread or
 *         stream has it any more: refs. */
#include <limits.h>
#include <nccl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <tutti/tutti.h>

#define SHOWN __attribute__((visibility("default")))
#define HAS_F8 (NCCL_VERSION_CODE >= NCCL_VERSION(2, 24, 0)) /* the header */

/* The header leaves their arguments open. */
ncclResult_t ncclGroupStart(void);
ncclResult_t ncclGroupEnd(void);
/* Headers before 2.18 do not have it. */
ncclResult_t ncclCommSplit(ncclComm_t from, int color, int key, ncclComm_t *comm_out, ncclConfig_t *config);

enum { TIMEOUT_MS = 600000, IN_PROGRESS = 4, ASKED_MOST = 4, OPS_MOST = 16, ERROR_TEXT = 256, VERSION = NCCL_VERSION_CODE };

typedef struct place {
    char     magic[12];
    int32_t  port;
    uint64_t number;
} place;

static const char magic[12] = "fake_nccl-1";

_Static_assert(sizeof(place) <= sizeof(ncclUniqueId), "an id has room for where to meet");

typedef enum kind { ALL_REDUCE, REDUCE, BROADCAST, ALL_GATHER, REDUCE_SCATTER, SEND, RECV } kind;

typedef struct operation {
    struct operation *next;
    kind              kind;
    const void       *in;
    void             *out;
    int64_t           count;
    tutti_dtype       dtype;
    tutti_op          op;
    int               peer; /* or root */
    cudaStream_t      stream;
    ncclComm_t        comm;
} operation;

/* What one communicator was given in one group. */
typedef struct batch {
    ncclComm_t   comm;
    operation   *first;
    cudaStream_t stream;
} batch;

struct ncclComm {
    place place;
    int   rank, n;

    pthread_mutex_t lock;
    pthread_cond_t  given_up; /* signalled when aborted is set */
    int          refs;
    tutti_group *group;   /* once it is made */
    ncclResult_t state;   /* what it is asked for: ncclInProgress while it is made */
    bool         aborted;
    batch       *held;    /* in progress, */
    int          asked;   /* until it was asked so many times more */
    bool         has_met; /* the others, for the first of them */
    int          running; /* batches that were taken, and are not through */
    uint64_t     n_splits;
    uint64_t     random;
    double       factors[OPS_MOST];
    bool         has_factor[OPS_MOST];
    char         error[ERROR_TEXT];
};

static _Thread_local int        depth;
static _Thread_local operation *grouped, *grouped_last;
static _Atomic int              n_batches;
static _Atomic int              n_ids, n_inits, n_splits, n_alive;

/* ---- random choices ---- */

static uint64_t number_in(const char *variable, uint64_t unset)
{
    const char *text = getenv(variable);

    return text != NULL && text[0] != '\0' ? strtoull(text, NULL, 10) : unset;
}

static uint64_t draw(ncclComm_t comm)
{
    comm->random ^= comm->random << 13;
    comm->random ^= comm->random >> 7;
    comm->random ^= comm->random << 17;
    return comm->random >> 11;
}

/* ---- ids ---- */

SHOWN ncclResult_t ncclGetVersion(int *version)
{
    *version = (int)number_in("FAKE_NCCL_VERSION", VERSION);
    return ncclSuccess;
}

/* The process's store, which stays until it ends. 0: there is none. */
static int port_of_store(void)
{
    static pthread_mutex_t  guard = PTHREAD_MUTEX_INITIALIZER;
    static tutti_store     *store;
    tutti_tcp_store_options how = TUTTI_TCP_STORE_OPTIONS;
    int                     port;

    how.host = "127.0.0.1";
    how.is_master = true;
    how.timeout_ms = TIMEOUT_MS;
    pthread_mutex_lock(&guard);
    if (store == NULL && tutti_tcp_store_open(&how, &store) != TUTTI_OK) {
        fprintf(stderr, "fake_nccl: %s\n", tutti_last_error());
        store = NULL;
    }
    port = store != NULL ? tutti_tcp_store_port(store) : 0;
    pthread_mutex_unlock(&guard);
    return port;
}

SHOWN ncclResult_t ncclGetUniqueId(ncclUniqueId *id)
{
    place p = { .port = port_of_store() };

    if (p.port == 0 || getrandom(&p.number, sizeof p.number, 0) != (ssize_t)sizeof p.number)
        return ncclSystemError;
    atomic_fetch_add(&n_ids, 1);
    memcpy(p.magic, magic, sizeof magic);
    memset(id, 0, sizeof *id);
    memcpy(id, &p, sizeof p);
    return ncclSuccess;
}

/* ---- communicators ---- */

static void drop(ncclComm_t comm)
{
    bool last;

    pthread_mutex_lock(&comm->lock);
    last = --comm->refs == 0;
    pthread_mutex_unlock(&comm->lock);
    if (!last)
        return;
    if (comm->group != NULL)
        tutti_destroy_process_group(comm->group);
    pthread_cond_destroy(&comm->given_up);
    pthread_mutex_destroy(&comm->lock);
    free(comm);
}

static ncclResult_t result_of(tutti_status st)
{
    return st == TUTTI_E_PEER ? ncclRemoteError : ncclInternalError;
}

/* The first error stays. */
static void note(ncclComm_t comm, ncclResult_t code, const char *words)
{
    pthread_mutex_lock(&comm->lock);
    if (comm->state == ncclSuccess || comm->state == ncclInProgress) {
        comm->state = code;
        snprintf(comm->error, sizeof comm->error, "%.*s", (int)strcspn(words, "\n"), words);
    }
    pthread_mutex_unlock(&comm->lock);
}

static tutti_status make_world(ncclComm_t comm, tutti_group **group_out)
{
    tutti_tcp_store_options how = TUTTI_TCP_STORE_OPTIONS;
    tutti_init_options      opts = TUTTI_INIT_OPTIONS;
    tutti_store            *store = NULL;
    char                    name[32];
    tutti_status            st;

    how.host = "127.0.0.1";
    how.port = comm->place.port;
    how.timeout_ms = TIMEOUT_MS;
    st = tutti_tcp_store_open(&how, &store);
    if (st != TUTTI_OK)
        return st;
    snprintf(name, sizeof name, "fake-%016llx", (unsigned long long)comm->place.number);
    opts.store = store;
    opts.rank = comm->rank;
    opts.world_size = comm->n;
    opts.timeout_ms = TIMEOUT_MS;
    opts.backend = "native";
    opts.group_name = name;
    st = tutti_create_process_group(&opts, group_out);
    tutti_store_close(store);
    return st;
}

static void *connect_comm(void *arg)
{
    ncclComm_t         comm = arg;
    tutti_group       *group = NULL;
    const tutti_status st = make_world(comm, &group);

    if (st != TUTTI_OK)
        note(comm, ncclSystemError, tutti_last_error());
    pthread_mutex_lock(&comm->lock);
    comm->group = group;
    if (comm->state == ncclInProgress)
        comm->state = ncclSuccess;
    pthread_mutex_unlock(&comm->lock);
    drop(comm);
    return NULL;
}

/* One that a thread of its own makes. */
static ncclResult_t begin_comm(const place *where, int n, int rank, ncclComm_t *comm_out)
{
    ncclComm_t comm = calloc(1, sizeof *comm);
    pthread_t  thread;

    if (comm == NULL)
        return ncclSystemError;
    comm->place = *where;
    comm->rank = rank;
    comm->n = n;
    comm->refs = 2;
    comm->state = ncclInProgress;
    comm->random = (number_in("FAKE_CUDA_SEED", 1) + 1) * 0x9e3779b97f4a7c15u ^ comm->place.number;
    pthread_mutex_init(&comm->lock, NULL);
    pthread_cond_init(&comm->given_up, NULL);
    if (pthread_create(&thread, NULL, connect_comm, comm) != 0) {
        pthread_cond_destroy(&comm->given_up);
        pthread_mutex_destroy(&comm->lock);
        free(comm);
        return ncclSystemError;
    }
    pthread_detach(thread);
    atomic_fetch_add(&n_alive, 1);
    *comm_out = comm;
    return ncclInProgress;
}

SHOWN ncclResult_t ncclCommInitRankConfig(ncclComm_t *comm_out, int n, ncclUniqueId id, int rank, ncclConfig_t *config)
{
    place where;

    memcpy(&where, &id, sizeof where);
    if (config == NULL || config->blocking != 0 || memcmp(where.magic, magic, sizeof magic) != 0 || rank < 0 || rank >= n)
        return ncclInvalidArgument; /* this one has no blocking ones */
    atomic_fetch_add(&n_inits, 1);
    return begin_comm(&where, n, rank, comm_out);
}

/* ---- splitting ---- */

enum { COLOR, KEY, FACTS };

typedef struct division {
    ncclComm_t  from;
    ncclComm_t *out;
    int64_t     own[FACTS];
    uint64_t    number; /* of the division */
} division;

/* This rank's communicator among those of its color; NULL: it has none. */
static ncclResult_t begin_part(const division *d, const int64_t *all, ncclComm_t *comm_out)
{
    place where = d->from->place;
    int   n = 0, rank = 0, i;

    if (d->own[COLOR] < 0)
        return ncclSuccess;
    for (i = 0; i < d->from->n; i++) {
        const int64_t *other = &all[i * FACTS];

        n += other[COLOR] == d->own[COLOR];
        rank += other[COLOR] == d->own[COLOR] &&
                (other[KEY] < d->own[KEY] || (other[KEY] == d->own[KEY] && i < d->from->rank));
    }
    where.number = (where.number ^ d->number << 32 ^ (uint64_t)d->own[COLOR]) * 0x9e3779b97f4a7c15u;
    return begin_comm(&where, n, rank, comm_out);
}

static void *divide(void *arg)
{
    division    *d = arg;
    ncclComm_t   from = d->from, part = NULL;
    int64_t     *all = calloc((size_t)from->n * FACTS, sizeof *all);
    ncclResult_t code = ncclSystemError;
    tutti_status st = TUTTI_E_NOMEM;

    if (all != NULL)
        st = tutti_all_gather_into_tensor(TUTTI_SPAN(all, from->n * FACTS), TUTTI_SPAN(d->own, FACTS), from->group);
    if (st == TUTTI_OK)
        code = begin_part(d, all, &part);
    if (st != TUTTI_OK && st != TUTTI_E_ABORTED) /* of which NCCL hears nothing */
        note(from, result_of(st), tutti_last_error());
    pthread_mutex_lock(&from->lock);
    if (st == TUTTI_OK && !from->aborted) { /* else nobody looks there any more */
        *d->out = part;
        from->state = number_in("FAKE_NCCL_SPLIT_ERROR", 0) == 2 ? ncclInternalError : code == ncclInProgress ? ncclSuccess : code;
        part = NULL;
    }
    pthread_mutex_unlock(&from->lock);
    if (part != NULL)
        ncclCommAbort(part);
    drop(from);
    free(all);
    free(d);
    return NULL;
}

static ncclResult_t begin_division(division *d)
{
    pthread_t thread;

    if (d->from->state != ncclSuccess || d->from->held != NULL || d->from->running > 0)
        return ncclInvalidUsage; /* something is under way */
    d->number = ++d->from->n_splits;
    if (pthread_create(&thread, NULL, divide, d) != 0)
        return ncclSystemError;
    pthread_detach(thread);
    d->from->refs++;
    d->from->state = ncclInProgress;
    return ncclInProgress;
}

SHOWN ncclResult_t ncclCommSplit(ncclComm_t from, int color, int key, ncclComm_t *comm_out, ncclConfig_t *config)
{
    division    *d = calloc(1, sizeof *d);
    ncclResult_t code;

    if (d == NULL || config != NULL || number_in("FAKE_NCCL_SPLIT_ERROR", 0) == 1) {
        free(d);
        return d == NULL ? ncclSystemError : ncclInternalError;
    }
    atomic_fetch_add(&n_splits, 1);
    d->from = from;
    d->out = comm_out;
    d->own[COLOR] = color;
    d->own[KEY] = key;
    pthread_mutex_lock(&from->lock);
    code = begin_division(d);
    pthread_mutex_unlock(&from->lock);
    if (code != ncclInProgress)
        free(d);
    return code;
}

SHOWN void fake_nccl_counts(int *ids, int *inits, int *splits);

SHOWN void fake_nccl_counts(int *ids, int *inits, int *splits)
{
    *ids = atomic_load(&n_ids);
    *inits = atomic_load(&n_inits);
    *splits = atomic_load(&n_splits);
}

SHOWN int fake_nccl_alive(void);

SHOWN int fake_nccl_alive(void)
{
    return atomic_load(&n_alive);
}

static void free_batch(batch *b)
{
    operation *op;

    while ((op = b->first) != NULL) {
        b->first = op->next;
        free(op);
    }
    free(b);
}

SHOWN ncclResult_t ncclCommAbort(ncclComm_t comm)
{
    batch       *held;
    tutti_group *group;

    atomic_fetch_sub(&n_alive, 1);
    pthread_mutex_lock(&comm->lock);
    comm->aborted = true;
    pthread_cond_broadcast(&comm->given_up);
    held = comm->held;
    comm->held = NULL;
    group = comm->group;
    pthread_mutex_unlock(&comm->lock);
    if (held != NULL) {
        free_batch(held);
        drop(comm);
    }
    if (group != NULL)
        tutti_abort_process_group(group);
    drop(comm);
    return ncclSuccess;
}

SHOWN ncclResult_t ncclCommFinalize(ncclComm_t comm)
{
    ncclResult_t state;

    pthread_mutex_lock(&comm->lock);
    state = comm->state;
    pthread_mutex_unlock(&comm->lock);
    return state;
}

SHOWN ncclResult_t ncclCommDestroy(ncclComm_t comm)
{
    atomic_fetch_sub(&n_alive, 1);
    drop(comm);
    return ncclSuccess;
}

SHOWN const char *ncclGetErrorString(ncclResult_t code)
{
    static const char *const names[] = { "no error", "unhandled cuda error", "unhandled system error", "internal error",
                                         "invalid argument", "invalid usage", "remote process exited or there was a network error",
                                         "NCCL operation in progress" };

    return (unsigned)code < sizeof names / sizeof names[0] ? names[code] : "unknown result code";
}

SHOWN const char *ncclGetLastError(ncclComm_t comm)
{
    return comm != NULL ? comm->error : "";
}

/* ---- what a stream does ---- */

static tutti_span span_of(const void *data, int64_t count, tutti_dtype dtype)
{
    return tutti_span_of(data, count, dtype);
}

static void copy(const operation *op, int64_t count)
{
    if (op->in != op->out && count > 0)
        memmove(op->out, op->in, (size_t)count * tutti_dtype_size(op->dtype));
}

static tutti_status do_collective(const operation *op, tutti_group *group)
{
    const ncclComm_t comm = op->comm;
    const bool       is_root = comm->rank == op->peer;

    switch (op->kind) {
    case ALL_REDUCE: copy(op, op->count); return tutti_all_reduce(span_of(op->out, op->count, op->dtype), op->op, group);
    case REDUCE:
        if (is_root)
            copy(op, op->count);
        return tutti_reduce(span_of(is_root ? op->out : op->in, op->count, op->dtype), op->peer, op->op, group);
    case BROADCAST:
        if (is_root)
            copy(op, op->count);
        return tutti_broadcast(span_of(op->out, op->count, op->dtype), op->peer, group);
    case ALL_GATHER:
        return tutti_all_gather_into_tensor(span_of(op->out, op->count * comm->n, op->dtype), span_of(op->in, op->count, op->dtype),
                                            group);
    case REDUCE_SCATTER:
        return tutti_reduce_scatter_tensor(span_of(op->out, op->count, op->dtype), span_of(op->in, op->count * comm->n, op->dtype),
                                           op->op, group);
    default: return TUTTI_OK;
    }
}

static tutti_status post(const operation *op, tutti_group *group, tutti_work **work)
{
    if (op->kind == SEND)
        return tutti_isend(span_of(op->in, op->count, op->dtype), op->peer, 0, group, work);
    return tutti_irecv(span_of(op->out, op->count, op->dtype), op->peer, 0, group, work);
}

/* All of them are begun before one is waited for. */
static tutti_status do_messages(const batch *b, tutti_group *group)
{
    const operation *op;
    tutti_work     **works;
    tutti_status     st = TUTTI_OK;
    int              n = 0, begun = 0, i;

    for (op = b->first; op != NULL; op = op->next)
        n += op->kind >= SEND;
    works = calloc((size_t)n + 1, sizeof(tutti_work *));
    if (works == NULL)
        return TUTTI_E_NOMEM;
    for (op = b->first; op != NULL && st == TUTTI_OK; op = op->next)
        if (op->kind >= SEND) {
            st = post(op, group, &works[begun]);
            begun += st == TUTTI_OK;
        }
    for (i = 0; i < begun; i++) {
        if (st == TUTTI_OK)
            st = tutti_work_wait(works[i]);
        tutti_work_free(works[i]);
    }
    free(works);
    return st;
}

/* Another rank has given up: of that NCCL's kernels hear nothing, and wait on. */
static void wait_on(ncclComm_t comm)
{
    pthread_mutex_lock(&comm->lock);
    while (!comm->aborted)
        pthread_cond_wait(&comm->given_up, &comm->lock);
    pthread_mutex_unlock(&comm->lock);
}

static void run_batch(void *arg)
{
    batch       *b = arg;
    operation   *op;
    tutti_group *group;
    tutti_status st = TUTTI_OK;
    bool         goes;

    pthread_mutex_lock(&b->comm->lock);
    group = b->comm->group;
    goes = !b->comm->aborted && b->comm->state == ncclSuccess;
    pthread_mutex_unlock(&b->comm->lock);
    if (goes && (uint64_t)(atomic_fetch_add(&n_batches, 1) + 1) == number_in("FAKE_NCCL_ERROR_AT", 0)) {
        note(b->comm, ncclInternalError, "this is the one that FAKE_NCCL_ERROR_AT names");
        goes = false;
    }
    for (op = b->first; goes && op != NULL && st == TUTTI_OK; op = op->next)
        st = do_collective(op, group);
    if (goes && st == TUTTI_OK)
        st = do_messages(b, group);
    if (st == TUTTI_E_ABORTED)
        wait_on(b->comm);
    else if (st != TUTTI_OK)
        note(b->comm, result_of(st), tutti_last_error());
    pthread_mutex_lock(&b->comm->lock);
    b->comm->running--;
    pthread_mutex_unlock(&b->comm->lock);
    drop(b->comm);
    free_batch(b);
}

/* ---- giving ---- */

static ncclResult_t to_stream(batch *b)
{
    return cudaLaunchHostFunc(b->stream, run_batch, b) == cudaSuccess ? ncclSuccess : ncclUnhandledCudaError;
}

SHOWN ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t *state)
{
    batch *ready = NULL;

    pthread_mutex_lock(&comm->lock);
    if (comm->held != NULL && --comm->asked <= 0) {
        ready = comm->held;
        comm->held = NULL;
    }
    *state = comm->state == ncclSuccess && comm->held != NULL ? ncclInProgress : comm->state;
    if (ready != NULL && to_stream(ready) != ncclSuccess) /* before the next one is let in */
        *state = ncclUnhandledCudaError;
    pthread_mutex_unlock(&comm->lock);
    return ncclSuccess;
}

static void *meet_others(void *arg)
{
    ncclComm_t         comm = arg;
    const tutti_status st = tutti_barrier(comm->group);

    if (st == TUTTI_OK) {
        pthread_mutex_lock(&comm->lock);
        comm->asked = 1;
        pthread_mutex_unlock(&comm->lock);
    } else if (st != TUTTI_E_ABORTED) { /* of which NCCL hears nothing */
        note(comm, result_of(st), tutti_last_error());
    }
    drop(comm);
    return NULL;
}

/* Lock held. */
static ncclResult_t begin_to_meet(ncclComm_t comm)
{
    pthread_t thread;

    comm->has_met = true;
    if (pthread_create(&thread, NULL, meet_others, comm) != 0)
        return ncclSystemError;
    pthread_detach(thread);
    comm->refs++;
    comm->asked = INT_MAX;
    return ncclInProgress;
}

static ncclResult_t give(batch *b)
{
    ncclComm_t   comm = b->comm;
    ncclResult_t code = ncclSuccess;

    pthread_mutex_lock(&comm->lock);
    comm->refs++;
    comm->running++;
    if (comm->held != NULL || comm->state == ncclInProgress) {
        code = ncclInvalidUsage;
    } else if (comm->state != ncclSuccess) {
        code = comm->state;
    } else if (!comm->has_met) {
        code = begin_to_meet(comm);
        comm->held = code == ncclInProgress ? b : NULL;
    } else if (draw(comm) % IN_PROGRESS == 0) {
        comm->held = b;
        comm->asked = 1 + (int)(draw(comm) % ASKED_MOST);
        code = ncclInProgress;
    } else {
        code = to_stream(b);
    }
    if (code != ncclSuccess && code != ncclInProgress) {
        comm->refs--;
        comm->running--;
    }
    pthread_mutex_unlock(&comm->lock);
    return code;
}

/* Out of what was grouped, all of the first one's communicator. */
static batch *take_batch(void)
{
    batch      *b = calloc(1, sizeof *b);
    operation **at = &grouped, **end = &b->first, *op;

    if (b == NULL)
        abort();
    b->comm = grouped->comm;
    b->stream = grouped->stream;
    while ((op = *at) != NULL) {
        if (op->comm != b->comm) {
            at = &op->next;
            continue;
        }
        *at = op->next;
        op->next = NULL;
        *end = op;
        end = &op->next;
    }
    return b;
}

static bool one_stream(const batch *b)
{
    const operation *op;

    for (op = b->first; op != NULL; op = op->next)
        if (op->stream != b->stream)
            return false;
    return true;
}

SHOWN ncclResult_t ncclGroupStart(void)
{
    depth++;
    return ncclSuccess;
}

SHOWN ncclResult_t ncclGroupEnd(void)
{
    ncclResult_t code = ncclSuccess, one;
    batch       *b;

    if (depth == 0)
        return ncclInvalidUsage;
    if (--depth > 0)
        return ncclSuccess;
    while (grouped != NULL) {
        b = take_batch();
        one = one_stream(b) ? give(b) : ncclInvalidUsage;
        if (one != ncclSuccess && one != ncclInProgress)
            free_batch(b);
        if (code == ncclSuccess || code == ncclInProgress)
            code = one == ncclSuccess ? code : one;
    }
    grouped_last = NULL;
    return code;
}

static ncclResult_t add(operation what)
{
    operation *op = malloc(sizeof *op);

    if (op == NULL)
        return ncclSystemError;
    *op = what;
    op->next = NULL;
    ncclGroupStart();
    if (grouped_last != NULL)
        grouped_last->next = op;
    else
        grouped = op;
    grouped_last = op;
    return ncclGroupEnd();
}

/* ---- operations ---- */

static tutti_dtype dtype_of(ncclDataType_t type)
{
    static const tutti_dtype dtypes[ncclNumTypes] = {
        [ncclInt8] = TUTTI_I8,         [ncclUint8] = TUTTI_U8,       [ncclInt32] = TUTTI_I32,
        [ncclUint32] = TUTTI_U32,      [ncclInt64] = TUTTI_I64,      [ncclUint64] = TUTTI_U64,
        [ncclFloat16] = TUTTI_F16,     [ncclFloat32] = TUTTI_F32,    [ncclFloat64] = TUTTI_F64,
        [ncclBfloat16] = TUTTI_BF16,
#if HAS_F8
        [ncclFloat8e4m3] = TUTTI_F8E4M3FN, [ncclFloat8e5m2] = TUTTI_F8E5M2,
#endif
    };

    return dtypes[type];
}

static tutti_op op_of(ncclComm_t comm, ncclRedOp_t op)
{
    switch (op) {
    case ncclSum: return TUTTI_SUM;
    case ncclProd: return TUTTI_PRODUCT;
    case ncclMax: return TUTTI_MAX;
    case ncclMin: return TUTTI_MIN;
    case ncclAvg: return TUTTI_AVG;
    default: return tutti_premul_sum(comm->factors[(int)op - (int)ncclNumOps]);
    }
}

/* What a factor of one of NCCL's types is as a number: "native" finds it, as its own kernels do. */
static double value_of(const void *scalar, ncclDataType_t type)
{
    float  f;
    double d;

    switch (type) {
    case ncclFloat32: memcpy(&f, scalar, sizeof f); return (double)f;
    case ncclFloat64: memcpy(&d, scalar, sizeof d); return d;
    default: break;
    }
    return 0;
}

static uint32_t bits_of(const void *scalar, ncclDataType_t type)
{
    uint16_t two;
    uint8_t  one;

    if (type == ncclFloat16 || type == ncclBfloat16) {
        memcpy(&two, scalar, sizeof two);
        return two;
    }
    memcpy(&one, scalar, sizeof one);
    return one;
}

/* Of a format with so many bits of exponent and mantissa; finite numbers are all that a factor is. */
static double small_value(uint32_t bits, int exponent_bits, int mantissa_bits)
{
    const int      bias = (1 << (exponent_bits - 1)) - 1;
    const uint32_t mantissa = bits & ((1u << mantissa_bits) - 1);
    const int      exponent = (int)(bits >> mantissa_bits & ((1u << exponent_bits) - 1));
    const bool     negative = (bits >> (exponent_bits + mantissa_bits) & 1) != 0;
    double         x = (double)mantissa / (double)(1u << mantissa_bits) + (exponent != 0 ? 1.0 : 0.0);
    int            e = (exponent != 0 ? exponent : 1) - bias;

    for (; e > 0; e--)
        x *= 2.0;
    for (; e < 0; e++)
        x /= 2.0;
    return negative ? -x : x;
}

static double factor_of(const void *scalar, ncclDataType_t type)
{
    switch (type) {
    case ncclFloat16: return small_value(bits_of(scalar, type), 5, 10);
    case ncclBfloat16: return small_value(bits_of(scalar, type), 8, 7);
#if HAS_F8
    case ncclFloat8e4m3: return small_value(bits_of(scalar, type), 4, 3);
    case ncclFloat8e5m2: return small_value(bits_of(scalar, type), 5, 2);
#endif
    default: return value_of(scalar, type);
    }
}

SHOWN ncclResult_t ncclRedOpCreatePreMulSum(ncclRedOp_t *op, void *scalar, ncclDataType_t type, ncclScalarResidence_t where,
                                            ncclComm_t comm)
{
    int i;

    for (i = 0; i < OPS_MOST && comm->has_factor[i]; i++)
        ;
    if (i == OPS_MOST || where != ncclScalarHostImmediate)
        return ncclInvalidArgument;
    comm->has_factor[i] = true;
    comm->factors[i] = factor_of(scalar, type);
    *op = (ncclRedOp_t)((int)ncclNumOps + i);
    return ncclSuccess;
}

SHOWN ncclResult_t ncclRedOpDestroy(ncclRedOp_t op, ncclComm_t comm)
{
    const int i = (int)op - (int)ncclNumOps;

    if (i < 0 || i >= OPS_MOST || !comm->has_factor[i])
        return ncclInvalidArgument;
    comm->has_factor[i] = false;
    return ncclSuccess;
}

SHOWN ncclResult_t ncclAllReduce(const void *in, void *out, size_t count, ncclDataType_t type, ncclRedOp_t op, ncclComm_t comm,
                                 cudaStream_t stream)
{
    return add((operation){ .kind = ALL_REDUCE, .in = in, .out = out, .count = (int64_t)count, .dtype = dtype_of(type),
                            .op = op_of(comm, op), .stream = stream, .comm = comm });
}

SHOWN ncclResult_t ncclReduce(const void *in, void *out, size_t count, ncclDataType_t type, ncclRedOp_t op, int root,
                              ncclComm_t comm, cudaStream_t stream)
{
    return add((operation){ .kind = REDUCE, .in = in, .out = out, .count = (int64_t)count, .dtype = dtype_of(type),
                            .op = op_of(comm, op), .peer = root, .stream = stream, .comm = comm });
}

SHOWN ncclResult_t ncclBroadcast(const void *in, void *out, size_t count, ncclDataType_t type, int root, ncclComm_t comm,
                                 cudaStream_t stream)
{
    return add((operation){ .kind = BROADCAST, .in = in, .out = out, .count = (int64_t)count, .dtype = dtype_of(type),
                            .peer = root, .stream = stream, .comm = comm });
}

SHOWN ncclResult_t ncclAllGather(const void *in, void *out, size_t count, ncclDataType_t type, ncclComm_t comm, cudaStream_t stream)
{
    return add((operation){ .kind = ALL_GATHER, .in = in, .out = out, .count = (int64_t)count, .dtype = dtype_of(type),
                            .stream = stream, .comm = comm });
}

SHOWN ncclResult_t ncclReduceScatter(const void *in, void *out, size_t count, ncclDataType_t type, ncclRedOp_t op, ncclComm_t comm,
                                     cudaStream_t stream)
{
    return add((operation){ .kind = REDUCE_SCATTER, .in = in, .out = out, .count = (int64_t)count, .dtype = dtype_of(type),
                            .op = op_of(comm, op), .stream = stream, .comm = comm });
}

SHOWN ncclResult_t ncclSend(const void *in, size_t count, ncclDataType_t type, int peer, ncclComm_t comm, cudaStream_t stream)
{
    return add((operation){ .kind = SEND, .in = in, .count = (int64_t)count, .dtype = dtype_of(type), .peer = peer,
                            .stream = stream, .comm = comm });
}

SHOWN ncclResult_t ncclRecv(void *out, size_t count, ncclDataType_t type, int peer, ncclComm_t comm, cudaStream_t stream)
{
    return add((operation){ .kind = RECV, .out = out, .count = (int64_t)count, .dtype = dtype_of(type), .peer = peer,
                            .stream = stream, .comm = comm });
}
