/* SPDX-License-Identifier: BSD-3-Clause
 *
 * fake_backend.c - ranks as threads, meeting under one lock.
 *
 * A collective is two meetings: at the first everybody has shown its call and then computes its
 * result aside, at the second everybody has finished reading and then writes. A message is copied
 * into a list when it is sent and taken out by whoever receives. */
#include "fake_backend.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tutti/private.h>

enum { NUMBERED_MAX = 32, GROUPS_MAX = 64, RANKS_MAX = 9, RUNS_MAX = 64, LOOK_MS = 20000 };

typedef struct meeting {
    int               members; /* backends alive */
    int               arrived;
    uint32_t          round;
    const tutti_call *calls[RANKS_MAX];
} meeting;

typedef struct letter {
    struct letter *next;
    uint32_t       group_id;
    int            src;
    int            dst;
    int            tag;
    tutti_dtype    dtype;
    int64_t        count;
    char           data[];
} letter;

struct tutti_request {
    struct fake_backend *backend; /* NULL after destroy */
    tutti_request       *next;
    tutti_message        message;
    bool                 done;
    bool                 released;
    tutti_status         status;
    int                  source;
};

typedef struct fake_backend {
    tutti_backend  base;
    uint32_t       group_id;
    int            rank;
    int            n_ranks;
    bool           aborted;
    tutti_request *open; /* not released, or not done */
} fake_backend;

static struct {
    tti_mutex    lock;
    tti_event    changed;
    meeting      meetings[GROUPS_MAX];
    letter      *letters;
    bool         held;
    uint64_t     fail_seq;
    tutti_status fail_status;
    int          posts_left; /* until one fails with post_status; 0: none does */
    tutti_status post_status;
    int          running;
    int          aborts;
    int          looks; /* at whether a member is alive */
    bool         looks_wait;
    int          alive;
    int          failures;
    int          n_runs;
    int          runs[RUNS_MAX];
    pthread_t    runner;
    int64_t      create_timeout_ms;
    char         create_host[TTI_HOST_MAX];
} hub = { .lock = { .m = PTHREAD_MUTEX_INITIALIZER } };

static void announce(void)
{
    tti_event_signal(tti_port_system(), &hub.changed);
}

/* Sleep until something changes: false at the deadline. Lock held. */
static bool sleep_until(int64_t deadline_ns)
{
    const uint32_t seen = tti_event_now(&hub.changed);

    if (tti_now_ns() >= deadline_ns)
        return false;
    tti_unlock(&hub.lock);
    tti_event_wait(tti_port_system(), &hub.changed, seen, deadline_ns);
    tti_lock(&hub.lock);
    return true;
}

/* ---- controls ---- */

void fake_reset(void)
{
    tti_lock(&hub.lock);
    assert(hub.alive == 0);
    while (hub.letters != NULL) {
        letter *next = hub.letters->next;

        free(hub.letters);
        hub.letters = next;
    }
    memset(hub.meetings, 0, sizeof hub.meetings);
    hub.held = false;
    hub.fail_seq = 0;
    hub.posts_left = 0;
    hub.looks_wait = false;
    hub.aborts = hub.failures = hub.n_runs = hub.looks = 0;
    tti_unlock(&hub.lock);
}

void fake_hold(bool held)
{
    tti_lock(&hub.lock);
    hub.held = held;
    announce();
    tti_unlock(&hub.lock);
}

void fake_fail_at(uint64_t seq, tutti_status st)
{
    tti_lock(&hub.lock);
    hub.fail_seq = seq;
    hub.fail_status = st;
    tti_unlock(&hub.lock);
}

void fake_fail_post(int n, tutti_status st)
{
    tti_lock(&hub.lock);
    hub.posts_left = n;
    hub.post_status = st;
    tti_unlock(&hub.lock);
}

void fake_look_long(void)
{
    tti_lock(&hub.lock);
    hub.looks_wait = true;
    tti_unlock(&hub.lock);
}

void fake_await_look(void)
{
    tti_lock(&hub.lock);
    while (hub.looks == 0)
        sleep_until(TTI_FOREVER);
    tti_unlock(&hub.lock);
}

void fake_await_running(int n)
{
    tti_lock(&hub.lock);
    while (hub.running != n)
        sleep_until(TTI_FOREVER);
    tti_unlock(&hub.lock);
}

static int read_int(const int *value)
{
    int now;

    tti_lock(&hub.lock);
    now = *value;
    tti_unlock(&hub.lock);
    return now;
}

int fake_aborts(void)
{
    return read_int(&hub.aborts);
}

int fake_alive(void)
{
    return read_int(&hub.alive);
}

int fake_failures(void)
{
    return read_int(&hub.failures);
}

int fake_runs(int *out, int n)
{
    int i;

    tti_lock(&hub.lock);
    for (i = 0; i < hub.n_runs && i < n; i++)
        out[i] = hub.runs[i];
    n = hub.n_runs;
    tti_unlock(&hub.lock);
    return n;
}

pthread_t fake_runner(void)
{
    pthread_t runner;

    tti_lock(&hub.lock);
    runner = hub.runner;
    tti_unlock(&hub.lock);
    return runner;
}

int64_t fake_create_timeout_ms(void)
{
    return hub.create_timeout_ms;
}

const char *fake_create_host(void)
{
    return hub.create_host;
}

bool fake_check(bool ok, const char *text, const char *file, int line)
{
    if (ok)
        return true;
    fprintf(stderr, "%s:%d: check failed: %s\n  last error: %s\n", file, line, text,
            tutti_last_error());
    tti_lock(&hub.lock);
    hub.failures++;
    tti_unlock(&hub.lock);
    return false;
}

/* ---- meeting ---- */

/* Everybody of the group comes here; lock held. */
static tutti_status meet(fake_backend *fake, int64_t deadline_ns)
{
    meeting       *m = &hub.meetings[fake->group_id];
    const uint32_t round = m->round;

    if (++m->arrived == fake->n_ranks) {
        m->arrived = 0;
        m->round++;
        announce();
        return TUTTI_OK;
    }
    while (m->round == round) {
        if (fake->aborted) {
            m->arrived--;
            return tti_fail(TUTTI_E_ABORTED, "fake: aborted");
        }
        if (!sleep_until(deadline_ns)) {
            m->arrived--;
            return tti_fail(TUTTI_E_TIMEOUT, "fake: somebody did not come");
        }
    }
    return TUTTI_OK;
}

/* Where the groups of an id meet: those that were numbered, then those whose number was agreed. */
static uint32_t place_of(uint32_t id)
{
    const uint32_t place = id >> 31 != 0 ? NUMBERED_MAX + (id & UINT32_C(0x7fffffff)) : id;

    assert(place < (id >> 31 != 0 ? GROUPS_MAX : NUMBERED_MAX));
    return place;
}

static tutti_status fake_create(const tutti_backend_config *config, tutti_backend **backend_out)
{
    fake_backend *fake = calloc(1, sizeof *fake);
    tutti_status  st;

    assert(fake != NULL && config->n_ranks <= RANKS_MAX);
    assert((config->group_id == 0) == (config->parent == NULL));
    fake->base.ops = &fake_ops;
    fake->group_id = place_of(config->group_id);
    fake->rank = config->rank;
    fake->n_ranks = config->n_ranks;
    st = tutti_store_set(config->store, "hello", "x", 1);
    tti_lock(&hub.lock);
    hub.create_timeout_ms = config->timeout_ms;
    snprintf(hub.create_host, sizeof hub.create_host, "%s", config->listen_host);
    if (st == TUTTI_OK && !config->lazy)
        st = meet(fake, tti_deadline(tti_port_system(), config->timeout_ms, -1));
    if (st == TUTTI_OK)
        hub.alive++;
    tti_unlock(&hub.lock);
    if (st == TUTTI_OK)
        *backend_out = &fake->base;
    else
        free(fake);
    return st;
}

/* ---- collectives ---- */

static void sum_i32(const meeting *m, int n, int32_t *out, int64_t count)
{
    int64_t i;
    int     r;

    for (i = 0; i < count; i++) {
        out[i] = 0;
        for (r = 0; r < n; r++)
            out[i] += ((const int32_t *)m->calls[r]->in)[i];
    }
}

static int64_t part_count(const tutti_call *call, int rank)
{
    return call->n_parts > 0 ? call->list_counts[rank] : call->count;
}

/* The own part of everybody's list. */
static void sum_parts(const fake_backend *fake, const tutti_call *call, int32_t *out)
{
    const meeting *m = &hub.meetings[fake->group_id];
    int64_t        i;
    int            r;

    for (i = 0; i < part_count(call, fake->rank); i++) {
        out[i] = 0;
        for (r = 0; r < fake->n_ranks; r++)
            out[i] += ((const int32_t *)m->calls[r]->list[fake->rank])[i];
    }
}

static bool has_blocks(const tutti_call *call)
{
    return call->kind == TUTTI_CALL_ALL_TO_ALL || call->kind == TUTTI_CALL_GATHER_V ||
           call->kind == TUTTI_CALL_SCATTER_V;
}

/* Everybody's part at a distance of bytes, or, write, from there into the list. */
static void move_parts(const fake_backend *fake, const tutti_call *call, size_t bytes, char *result,
                       bool write)
{
    const meeting *m = &hub.meetings[fake->group_id];
    int            r;

    for (r = 0; r < fake->n_ranks; r++) {
        const size_t part = (size_t)part_count(call, r) * tutti_dtype_size(call->dtype);
        char        *at = result + (size_t)r * bytes;

        if (part > 0)
            memcpy(write ? call->list[r] : at, write ? at : m->calls[r]->in, part);
    }
}

/* What the others have for this rank, one after the other, or, write, from there into the list. */
static void move_blocks(const fake_backend *fake, const tutti_call *call, char *result, bool write)
{
    const meeting *m = &hub.meetings[fake->group_id];
    int            r;

    for (r = 0; r < fake->n_ranks; r++) {
        const size_t bytes = (size_t)call->list_counts[r] * tutti_dtype_size(call->dtype);

        if (bytes == 0)
            continue;
        if (write)
            memcpy(call->list[r], result, bytes);
        else
            memcpy(result, m->calls[r]->ins[fake->rank], bytes);
        result += bytes;
    }
}

/* Room for all that a call may bring. */
static size_t result_bytes(const fake_backend *fake, const tutti_call *call)
{
    int64_t count = call->count * fake->n_ranks;
    int     r;

    for (r = 0; r < call->n_parts; r++)
        count += call->list_counts[r];
    return (size_t)count * tutti_dtype_size(call->dtype) + 1;
}

/* What this rank will write: one part, or with is_list n parts. Lock held. */
static void compute(const fake_backend *fake, const tutti_call *call, size_t bytes, char *result)
{
    const meeting *m = &hub.meetings[fake->group_id];

    if (has_blocks(call))
        move_blocks(fake, call, result, false);
    if (bytes == 0)
        return;
    if (call->kind == TUTTI_CALL_REDUCE_SCATTER)
        sum_parts(fake, call, (int32_t *)(void *)result);
    else if (call->kind == TUTTI_CALL_ALL_REDUCE || call->kind == TUTTI_CALL_REDUCE)
        sum_i32(m, fake->n_ranks, (int32_t *)(void *)result, call->count);
    else if (call->kind == TUTTI_CALL_BROADCAST)
        memcpy(result, m->calls[call->root]->in, bytes);
    else if (call->kind == TUTTI_CALL_SCATTER)
        memcpy(result, m->calls[call->root]->list[fake->rank], bytes);
    else
        move_parts(fake, call, bytes, result, false);
}

static void write_result(const fake_backend *fake, const tutti_call *call, size_t bytes,
                         char *result)
{
    const bool gathers = call->kind == TUTTI_CALL_ALL_GATHER || call->kind == TUTTI_CALL_GATHER;

    if (has_blocks(call))
        move_blocks(fake, call, result, true);
    if (bytes == 0)
        return;
    if (call->kind == TUTTI_CALL_REDUCE_SCATTER)
        bytes = (size_t)part_count(call, fake->rank) * tutti_dtype_size(call->dtype);
    if (gathers && call->list != NULL)
        move_parts(fake, call, bytes, result, true);
    if (!gathers && call->out != NULL && bytes > 0)
        memcpy(call->out, result, bytes);
}

/* Lock held. */
static tutti_status exchange(fake_backend *fake, const tutti_call *call)
{
    const size_t bytes = (size_t)call->count * tutti_dtype_size(call->dtype);
    char        *result = calloc(1, result_bytes(fake, call));
    tutti_status st;

    assert(result != NULL);
    hub.meetings[fake->group_id].calls[fake->rank] = call;
    st = meet(fake, call->deadline_ns);
    if (st == TUTTI_OK) {
        compute(fake, call, bytes, result);
        st = meet(fake, call->deadline_ns);
    }
    if (st == TUTTI_OK)
        write_result(fake, call, bytes, result);
    free(result);
    return st;
}

static void note_run(const fake_backend *fake, const tutti_call *call)
{
    if (hub.n_runs < RUNS_MAX)
        hub.runs[hub.n_runs] = (int)fake->group_id * 1000 + (int)call->seq;
    hub.n_runs++;
    hub.runner = pthread_self();
}

static tutti_status fake_run(tutti_backend *backend, const tutti_call *call)
{
    fake_backend *fake = (fake_backend *)backend;
    tutti_status  st = TUTTI_OK;

    tti_lock(&hub.lock);
    hub.running++;
    announce();
    note_run(fake, call);
    while (st == TUTTI_OK && hub.held) {
        if (fake->aborted)
            st = tti_fail(TUTTI_E_ABORTED, "fake: aborted while held");
        else if (!sleep_until(call->deadline_ns))
            st = tti_fail(TUTTI_E_TIMEOUT, "fake: held for too long");
    }
    if (st == TUTTI_OK && call->seq == hub.fail_seq)
        st = tti_fail(hub.fail_status, "fake: told to fail at %llu", (unsigned long long)call->seq);
    if (st == TUTTI_OK)
        st = exchange(fake, call);
    hub.running--;
    announce();
    tti_unlock(&hub.lock);
    return st;
}

/* ---- messages ---- */

static void mail(const fake_backend *fake, const tutti_message *message)
{
    const size_t bytes = (size_t)message->count * tutti_dtype_size(message->dtype);
    letter      *sent = calloc(1, sizeof *sent + bytes);
    letter     **at = &hub.letters;

    assert(sent != NULL);
    sent->group_id = fake->group_id;
    sent->src = fake->rank;
    sent->dst = message->peer;
    sent->tag = message->tag;
    sent->dtype = message->dtype;
    sent->count = message->count;
    if (bytes > 0)
        memcpy(sent->data, message->data, bytes);
    while (*at != NULL)
        at = &(*at)->next;
    *at = sent;
    announce();
}

static void deliver(tutti_request *request, const letter *came)
{
    request->done = true;
    request->source = came->src;
    if (came->dtype != request->message.dtype || came->count != request->message.count)
        request->status = TUTTI_E_MISMATCH;
    else if (came->count > 0)
        memcpy(request->message.data, came->data,
               (size_t)came->count * tutti_dtype_size(came->dtype));
}

/* Take the first letter for request, if there is one. Lock held. */
static void try_match(tutti_request *request)
{
    const tutti_message *wanted = &request->message;
    letter             **at;
    letter              *came;

    for (at = &hub.letters; !request->done && (came = *at) != NULL; at = &came->next) {
        if (came->group_id != request->backend->group_id || came->tag != wanted->tag ||
            came->dst != request->backend->rank || (wanted->peer >= 0 && came->src != wanted->peer))
            continue;
        deliver(request, came);
        *at = came->next;
        free(came);
        return;
    }
}

/* Whether it is the turn of the message that cannot be posted. Lock held. */
static bool post_fails(void)
{
    return hub.posts_left > 0 && --hub.posts_left == 0;
}

static tutti_status fake_post(tutti_backend *backend, const tutti_message *message,
                              tutti_request **request_out)
{
    fake_backend  *fake = (fake_backend *)backend;
    tutti_request *request = calloc(1, sizeof *request);

    assert(request != NULL);
    tti_lock(&hub.lock);
    if (post_fails()) {
        tti_unlock(&hub.lock);
        free(request);
        return tti_fail(hub.post_status, "fake: told not to post");
    }
    request->backend = fake;
    request->message = *message;
    request->source = -1;
    request->done = message->is_send;
    if (message->is_send)
        mail(fake, message);
    request->next = fake->open;
    fake->open = request;
    tti_unlock(&hub.lock);
    *request_out = request;
    return TUTTI_OK;
}

static tutti_status fake_post_all(tutti_backend *backend, const tutti_message *messages, int n,
                                  tutti_request **requests_out, int *n_out)
{
    tutti_status st = TUTTI_OK;

    for (*n_out = 0; *n_out < n; ++*n_out) {
        st = fake_post(backend, &messages[*n_out], &requests_out[*n_out]);
        if (st != TUTTI_OK)
            break;
    }
    return st;
}

static tutti_status outcome(const tutti_request *request)
{
    if (request->status == TUTTI_OK)
        return TUTTI_OK;
    return tti_fail(request->status, "fake: message with tag %d ended so", request->message.tag);
}

static tutti_status fake_wait(tutti_request *request, int64_t deadline_ns)
{
    tutti_status st;

    tti_lock(&hub.lock);
    for (;;) {
        if (!request->done)
            try_match(request);
        if (request->done) {
            st = outcome(request);
            break;
        }
        if (request->backend->aborted) {
            st = tti_fail(TUTTI_E_ABORTED, "fake: aborted");
            break;
        }
        if (!sleep_until(deadline_ns)) {
            st = tti_fail(TUTTI_E_TIMEOUT, "fake: no message with tag %d", request->message.tag);
            break;
        }
    }
    tti_unlock(&hub.lock);
    return st;
}

static bool fake_test(tutti_request *request)
{
    bool done;

    tti_lock(&hub.lock);
    if (!request->done)
        try_match(request);
    done = request->done;
    tti_unlock(&hub.lock);
    return done;
}

static tutti_status fake_look(tutti_backend *backend, int rank)
{
    const int64_t deadline_ns = tti_now_ns() + LOOK_MS * TTI_MS;

    (void)backend;
    (void)rank;
    tti_lock(&hub.lock);
    hub.looks++;
    announce();
    while (hub.looks_wait && hub.letters == NULL && sleep_until(deadline_ns))
        continue;
    tti_unlock(&hub.lock);
    return TUTTI_OK;
}

static int fake_source(const tutti_request *request)
{
    return request->done && request->status == TUTTI_OK ? request->source : -1;
}

static void unlink_request(fake_backend *fake, tutti_request *request)
{
    tutti_request **at;

    for (at = &fake->open; *at != request; at = &(*at)->next)
        continue;
    *at = request->next;
}

static void fake_release(tutti_request *request)
{
    tti_lock(&hub.lock);
    request->released = true;
    if (request->backend == NULL || request->done) {
        if (request->backend != NULL)
            unlink_request(request->backend, request);
        free(request);
    }
    tti_unlock(&hub.lock);
}

/* ---- ending ---- */

static void fake_abort(tutti_backend *backend)
{
    tti_lock(&hub.lock);
    ((fake_backend *)backend)->aborted = true;
    hub.aborts++;
    announce();
    tti_unlock(&hub.lock);
}

static void fake_destroy(tutti_backend *backend)
{
    fake_backend  *fake = (fake_backend *)backend;
    tutti_request *request;
    tutti_request *next;

    tti_lock(&hub.lock);
    for (request = fake->open; request != NULL; request = next) {
        next = request->next;
        request->backend = NULL;
        if (!request->done)
            request->status = TUTTI_E_ABORTED;
        request->done = true;
        if (request->released)
            free(request);
    }
    hub.alive--;
    tti_unlock(&hub.lock);
    free(fake);
}

const tutti_backend_ops fake_ops = {
    .api = TUTTI_BACKEND_API,
    .size = sizeof(tutti_backend_ops),
    .name = "fake",
    .create = fake_create,
    .run = fake_run,
    .post = fake_post,
    .post_all = fake_post_all,
    .wait = fake_wait,
    .test = fake_test,
    .source = fake_source,
    .release = fake_release,
    .alive = fake_look,
    .abort = fake_abort,
    .destroy = fake_destroy,
};

/* ---- ranks as threads ---- */

tutti_status fake_world(tutti_store *store, int rank, int size, int64_t timeout_ms,
                        tutti_group **world_out)
{
    tti_port *port = tti_port_system();
    tti_join  join = {
         .store = store,
         .user_store = true,
         .rank = rank,
         .world_size = size,
         .timeout_ms = timeout_ms,
         .deadline_ns = tti_deadline(port, timeout_ms, timeout_ms),
         .listen_host = "127.0.0.1",
    };

    return tti_world_create(port, &(tti_backing){ .ops = &fake_ops }, &join, world_out);
}

tutti_group *fake_world_of_one(int64_t timeout_ms)
{
    tutti_group *world = NULL;
    tutti_store *store = NULL;

    if (tutti_hash_store_open(&store) == TUTTI_OK)
        CHECK(fake_world(store, 0, 1, timeout_ms, &world) == TUTTI_OK);
    tutti_store_close(store);
    return world;
}

typedef struct rank_thread {
    fake_rank    rank;
    tutti_store *store;
    void (*body)(fake_rank *r);
    tti_thread thread;
} rank_thread;

static void rank_main(void *arg)
{
    rank_thread *t = arg;

    if (!CHECK(fake_world(t->store, t->rank.rank, t->rank.size, 30000, &t->rank.world) == TUTTI_OK))
        return;
    tutti_use_group(t->rank.world);
    t->body(&t->rank);
    CHECK(tutti_destroy_process_group(t->rank.world) == TUTTI_OK);
}

int fake_ranks(int n, void (*body)(fake_rank *r), void *arg)
{
    rank_thread  threads[RANKS_MAX] = { 0 };
    tutti_store *store = NULL;
    int          i;

    assert(n <= RANKS_MAX);
    CHECK(tutti_hash_store_open(&store) == TUTTI_OK);
    for (i = 0; i < n; i++) {
        threads[i].rank = (fake_rank){ .rank = i, .size = n, .arg = arg };
        threads[i].store = store;
        threads[i].body = body;
        CHECK(tti_thread_start(&threads[i].thread, "rank", rank_main, &threads[i]) == TUTTI_OK);
    }
    for (i = 0; i < n; i++)
        tti_thread_join(&threads[i].thread);
    tutti_store_close(store);
    return fake_failures();
}

int fake_setup(void **state)
{
    (void)state;
    fake_reset();
    return 0;
}

int fake_teardown(void **state)
{
    (void)state;
    return fake_failures() + fake_alive();
}
