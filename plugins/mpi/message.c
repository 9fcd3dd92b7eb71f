/* SPDX-License-Identifier: BSD-3-Clause
 *
 * message.c - messages, and the thread that asks for them.
 *
 * How      A message is one of MPI's, in memory of ours: a head with dtype and count, then the data. What was posted is
 *          never seen by MPI: so a receive knows what was sent, and an abort frees the caller's memory at once, also of a
 *          send that nobody has taken, which MPI cannot take back.
 * Others   The head has the number of the group's meeting, too: MPI may give a new group the communicator of one that is
 *          gone, and what was sent on that, and not taken, is met again. A receive that meets it is posted again; but not
 *          if another one was posted after it, as messages would change places: then it fails.
 * Thread   MPI moves on when it is asked. While messages are under way a thread of ours asks for them, every
 *          millisecond at the latest, so that they end while the program computes; who waits asks by himself. The
 *          thread sleeps for good while there are none.
 * States   under way -> ended (for its caller: data are there, or words) -> over (MPI has nothing of it any more). A
 *          message that the group's failure ends is not over yet. It is freed when it is over and released; before that it
 *          is in the list. All under the lock. */
#include "mpi_backend.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { HEAD_MAGIC = 0x74746d31, PLAIN_MOST = 1 << 30, LEAVE_NS = 70 * 1000000 };

typedef struct head {
    uint32_t magic;
    uint32_t dtype;
    int64_t  count;
    uint64_t token; /* of the group's meeting */
} head;

struct tutti_request {
    tutti_request *next, **link; /* in the list, while it is not over */
    tmpi_home     *home;
    MPI_Request    mpi;
    unsigned char *frame; /* head and data; NULL once it is over */
    size_t         frame_bytes;
    bool           is_send, ended, over, released;
    int            peer; /* group rank; -1: any source. Of a receive that has ended well: who sent */
    int            tag;
    uint64_t       place; /* of a receive: among those of its group */
    tutti_dtype    dtype;
    int64_t        count;
    void          *data;
    tutti_status   status;
    bool           by_group; /* it has failed because the group has: whose words it has then */
    char           words[256];
    void         (*told)(void *ctx);
    void          *told_ctx;
};

static struct {
    tutti_request *first;
    tutti_word     news; /* grows when something is put into the list, and to stop: the thread sleeps on it */
    tutti_plugin_thread *thread; /* NULL: there is none */
    bool           stop;
    bool           closed; /* MPI is about to end, or the process: it is asked for nothing any more */
} mail;

/* ---- the list ---- */

static void put_in(tutti_request *r)
{
    r->next = mail.first;
    r->link = &mail.first;
    if (mail.first != NULL)
        mail.first->link = &r->next;
    mail.first = r;
    mail.news++;
    tmpi_host->wake_word(&mail.news);
}

static void drop(tutti_request *r)
{
    tmpi_home_drop(r->home);
    free(r->frame);
    free(r);
}

static void be_over(tutti_request *r)
{
    r->over = true;
    *r->link = r->next;
    if (r->next != NULL)
        r->next->link = r->link;
    free(r->frame);
    r->frame = NULL;
    if (r->released)
        drop(r);
}

/* ---- ending ---- */

static void be_ended(tutti_request *r, tutti_status status)
{
    r->status = status;
    r->ended = true;
    if (r->told != NULL)
        r->told(r->told_ctx);
}

static int named(const tutti_request *r, int peer)
{
    const tmpi_backend *b = r->home->backend;

    return b != NULL && peer >= 0 && peer < b->n_ranks ? b->global_ranks[peer] : peer;
}

/* What MPI says of a message that it could not bring. */
static tutti_status bad_code(tutti_request *r, int code, int source)
{
    int error = MPI_SUCCESS;

    MPI_Error_class(code, &error);
    if (!r->is_send && error == MPI_ERR_TRUNCATE) {
        snprintf(r->words, sizeof r->words, "a message from rank %d with tag %d has more than the %lld %s that the receive is for\n"
                 "  next: let a send and its receive be of the same count and dtype",
                 named(r, source), r->tag, (long long)r->count, tmpi_host->dtype_name(r->dtype));
        return TUTTI_E_MISMATCH;
    }
    (void)tmpi_fail_mpi(code, r->is_send ? "send" : "recv", r->home->backend != NULL ? r->home->backend->name : "?");
    snprintf(r->words, sizeof r->words, "%s", tmpi_host->last_error());
    return TUTTI_E_BACKEND;
}

static tutti_status take(tutti_request *r, int source)
{
    head h;

    memcpy(&h, r->frame, sizeof h);
    if (h.magic != HEAD_MAGIC || h.dtype != (uint32_t)r->dtype || h.count != r->count) {
        snprintf(r->words, sizeof r->words, "a message from rank %d with tag %d has %lld %s, the receive is for %lld %s\n"
                 "  next: let a send and its receive be of the same count and dtype",
                 named(r, source), r->tag, (long long)h.count, tmpi_host->dtype_name((tutti_dtype)h.dtype),
                 (long long)r->count, tmpi_host->dtype_name(r->dtype));
        return TUTTI_E_MISMATCH;
    }
    if (r->count > 0)
        memcpy(r->data, r->frame + sizeof h, (size_t)r->count * tmpi_host->dtype_size(r->dtype));
    r->peer = source;
    return TUTTI_OK;
}

/* How MPI counts a frame: an int is not enough for the bytes of a large one. */
static int units(size_t bytes, MPI_Datatype *type_out)
{
    *type_out = bytes <= PLAIN_MOST ? MPI_BYTE : tmpi_engine_facts()->block;
    return (int)(bytes <= PLAIN_MOST ? bytes : (bytes + TMPI_BLOCK - 1) / TMPI_BLOCK);
}

/* Whether what has come was sent in another group. Of a message that is too long some libraries bring nothing, and so
 * it counts as this group's: an error, though not the right one. */
static bool is_of_another(const tutti_request *r)
{
    head h;

    memcpy(&h, r->frame, sizeof h);
    return !r->is_send && h.magic == HEAD_MAGIC && h.token != r->home->backend->token;
}

static int listen(tutti_request *r)
{
    const head   none = { 0 };
    MPI_Datatype type;
    const int    count = units(r->frame_bytes, &type);

    memcpy(r->frame, &none, sizeof none);
    return MPI_Irecv(r->frame, count, type, r->peer < 0 ? MPI_ANY_SOURCE : r->peer, r->tag, r->home->backend->comm, &r->mpi);
}

/* What a receive has ended with, in MPI; false: it has begun again. */
static bool receive(tutti_request *r, int code, int source, tutti_status *status_out)
{
    if (is_of_another(r) && r->place == r->home->places) {
        code = listen(r);
        if (code == MPI_SUCCESS)
            return false;
    } else if (is_of_another(r)) {
        snprintf(r->words, sizeof r->words, "in place of a message with tag %d there is one of a group that was destroyed\n"
                                            "  next: receive all messages before a group is destroyed", r->tag);
        *status_out = TUTTI_E_BACKEND;
        return true;
    }
    *status_out = code == MPI_SUCCESS ? take(r, source) : bad_code(r, code, source);
    return true;
}

/* Ask MPI. r may be gone afterwards, if it was released. */
static void look(tutti_request *r)
{
    MPI_Status   status = { .MPI_SOURCE = r->peer };
    tutti_status st = TUTTI_OK;
    int          done = 0, code;

    if (r->over || mail.closed || tmpi_has_ended())
        return;
    code = MPI_Test(&r->mpi, &done, &status);
    if (!done && code == MPI_SUCCESS)
        return;
    if (!r->ended) {
        if (!r->is_send && !receive(r, code, status.MPI_SOURCE, &st))
            return;
        if (r->is_send && code != MPI_SUCCESS)
            st = bad_code(r, code, status.MPI_SOURCE);
        be_ended(r, st);
    }
    be_over(r);
}

static void look_at_all(void)
{
    tutti_request *r, *next;

    for (r = mail.first; r != NULL; r = next) {
        next = r->next;
        look(r);
    }
}

void tmpi_messages_end(const tmpi_home *home)
{
    tutti_request *r;

    for (r = mail.first; r != NULL; r = r->next) {
        if (r->home != home || r->ended)
            continue;
        r->by_group = true;
        be_ended(r, home->status);
        if (!r->is_send)
            (void)TMPI_CALL(MPI_Cancel(&r->mpi));
    }
}

/* ---- the thread ---- */

static void ask(void *unused)
{
    uint32_t rounds = 0, seen;
    bool     stop = false, idle;

    (void)unused;
    while (!stop) {
        tmpi_lock();
        look_at_all();
        idle = mail.first == NULL;
        stop = mail.stop;
        seen = mail.news;
        tmpi_unlock();
        if (stop)
            break;
        if (idle) {
            tmpi_host->wait_word(&mail.news, seen, INT64_MAX);
            rounds = 0;
        } else {
            tmpi_host->idle(&rounds, true);
        }
    }
}

static tutti_status have_thread(void)
{
    return mail.thread != NULL ? TUTTI_OK : tmpi_host->thread_start("tutti-mpi", ask, NULL, &mail.thread);
}

bool tmpi_messages_left(void)
{
    return mail.first != NULL;
}

/* MPI is about to end: what others are to be told has a moment to leave. What MPI still has then stays until the process ends. */
void tmpi_messages_stop(void)
{
    const int64_t until = tmpi_host->now_ns() + LEAVE_NS;
    uint32_t      rounds = 0;
    tutti_plugin_thread *thread;
    bool          left = true;

    tmpi_lock();
    mail.stop = true;
    thread = mail.thread;
    mail.thread = NULL;
    mail.news++;
    tmpi_host->wake_word(&mail.news);
    tmpi_unlock();
    if (thread != NULL)
        tmpi_host->thread_join(thread);
    while (left && tmpi_host->now_ns() < until) {
        tmpi_lock();
        look_at_all();
        left = mail.first != NULL;
        tmpi_unlock();
        if (left)
            tmpi_host->idle(&rounds, true);
    }
    tmpi_lock();
    mail.closed = true;
    tmpi_unlock();
}

/* ---- beginning ---- */

static size_t room_for(size_t bytes)
{
    return bytes <= PLAIN_MOST ? bytes : (bytes + TMPI_BLOCK - 1) / TMPI_BLOCK * TMPI_BLOCK;
}

static tutti_status start(tmpi_backend *b, tutti_request *r)
{
    MPI_Datatype type;
    const int    count = units(r->frame_bytes, &type);
    tutti_status st = tmpi_has_ended() ? tmpi_fail_ended() : have_thread();
    int          code;

    if (st != TUTTI_OK)
        return st;
    r->home = b->home;
    if (r->is_send)
        code = MPI_Isend(r->frame, count, type, r->peer, r->tag, b->comm, &r->mpi);
    else
        code = listen(r);
    if (code != MPI_SUCCESS)
        return tmpi_fail_mpi(code, r->is_send ? "send" : "recv", b->name);
    if (!r->is_send)
        r->place = ++r->home->places;
    r->home->refs++;
    put_in(r);
    return TUTTI_OK;
}

static tutti_request *new_request(size_t frame_bytes)
{
    tutti_request *r = calloc(1, sizeof *r);

    if (r != NULL)
        r->frame = malloc(room_for(frame_bytes));
    if (r == NULL || r->frame == NULL) {
        free(r);
        return NULL;
    }
    r->frame_bytes = frame_bytes;
    return r;
}

static void fill(tutti_request *r, const tutti_message *message, uint64_t token)
{
    const head h = { .magic = HEAD_MAGIC, .dtype = (uint32_t)message->dtype, .count = message->count, .token = token };

    r->is_send = message->is_send;
    r->peer = message->peer;
    r->tag = message->tag;
    r->dtype = message->dtype;
    r->count = message->count;
    r->data = message->data;
    if (message->is_send)
        memcpy(r->frame, &h, sizeof h);
    if (message->is_send && message->count > 0)
        memcpy(r->frame + sizeof h, message->data, r->frame_bytes - sizeof h);
}

static tutti_status check_message(const tmpi_backend *b, const tutti_message *message)
{
    if (message->device != TUTTI_CPU)
        return tmpi_refuse_message(b);
    if (message->tag >= tmpi_engine_facts()->tag_most - 1)
        return tmpi_host->fail(TUTTI_E_ARG, "group '%s': tag %d is above %d, the largest that this MPI library leaves (%s)", b->name,
                               message->tag, tmpi_engine_facts()->tag_most - 2, tmpi_engine_facts()->library);
    return TUTTI_OK;
}

tutti_status tmpi_post(tutti_backend *backend, const tutti_message *message, tutti_request **request_out)
{
    tmpi_backend  *b = (tmpi_backend *)backend;
    tutti_request *r;
    tutti_status   st = check_message(b, message);

    if (st != TUTTI_OK)
        return st;
    r = new_request(sizeof(head) + (size_t)message->count * tmpi_host->dtype_size(message->dtype));
    if (r == NULL)
        return tmpi_host->fail(TUTTI_E_NOMEM, "group '%s': no memory for a message of %lld %s", b->name, (long long)message->count,
                               tmpi_host->dtype_name(message->dtype));
    fill(r, message, b->token);
    tmpi_lock();
    st = b->home->status != TUTTI_OK ? tmpi_say(b->home) : start(b, r);
    tmpi_unlock();
    if (st != TUTTI_OK) {
        free(r->frame);
        free(r);
        return st;
    }
    *request_out = r;
    return TUTTI_OK;
}

void tmpi_post_copy(tmpi_backend *b, int peer, int tag, const void *data, size_t bytes)
{
    tutti_request *r = new_request(bytes);

    if (r == NULL)
        return;
    r->is_send = r->ended = r->released = true;
    r->peer = peer;
    r->tag = tag;
    memcpy(r->frame, data, bytes);
    if (start(b, r) != TUTTI_OK) {
        free(r->frame);
        free(r);
    }
}

/* ---- what callers do with one ---- */

static tutti_status outcome(const tutti_request *r)
{
    if (r->status == TUTTI_OK)
        return TUTTI_OK;
    return r->by_group ? tmpi_host->fail(r->status, "%s", r->home->words) : tmpi_host->fail(r->status, "%s", r->words);
}

static tutti_status still_waiting(const tutti_request *r)
{
    if (r->is_send)
        return tmpi_host->fail(TUTTI_E_TIMEOUT, "rank %d has not taken the message", named(r, r->peer));
    if (r->peer < 0)
        return tmpi_host->fail(TUTTI_E_TIMEOUT, "no rank has sent a message with tag %d", r->tag);
    return tmpi_host->fail(TUTTI_E_TIMEOUT, "rank %d has not sent a message with tag %d", named(r, r->peer), r->tag);
}

tutti_status tmpi_request_wait(tutti_request *r, int64_t deadline_ns)
{
    tutti_status st = TUTTI_OK;
    uint32_t     rounds = 0;
    bool         ended = false, late = false;

    while (!ended && !late) {
        tmpi_lock();
        look(r);
        if (!r->ended && r->home->backend != NULL)
            tmpi_notices_look(r->home->backend);
        ended = r->ended;
        late = !ended && tmpi_host->now_ns() >= deadline_ns;
        if (ended)
            st = outcome(r);
        else if (late)
            st = still_waiting(r);
        tmpi_unlock();
        if (!ended && !late)
            tmpi_host->idle(&rounds, false);
    }
    return st;
}

bool tmpi_request_test(tutti_request *r)
{
    bool ended;

    tmpi_lock();
    look(r);
    if (!r->ended && r->home->backend != NULL)
        tmpi_notices_look(r->home->backend);
    ended = r->ended;
    tmpi_unlock();
    return ended;
}

int tmpi_request_source(const tutti_request *r)
{
    int source;

    tmpi_lock();
    source = !r->is_send && r->ended && r->status == TUTTI_OK ? r->peer : -1;
    tmpi_unlock();
    return source;
}

void tmpi_request_notify(tutti_request *r, void (*fn)(void *ctx), void *ctx)
{
    tmpi_lock();
    if (r->ended) {
        fn(ctx);
    } else {
        r->told = fn;
        r->told_ctx = ctx;
    }
    tmpi_unlock();
}

void tmpi_request_release(tutti_request *r)
{
    tmpi_lock();
    r->released = true;
    if (r->over)
        drop(r);
    tmpi_unlock();
}
