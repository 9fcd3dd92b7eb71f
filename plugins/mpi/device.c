/* SPDX-License-Identifier: BSD-3-Clause
 *
 * device.c - memory of GPUs, where the MPI library takes pointers to it.
 *
 * Asked    MPI itself, once it has begun, by the function that Open MPI and MPICH have for that. What says no, or has no such
 *          function, would read the pointers as ones of the host: there everything is refused, in one place (refuse).
 * Stream   A call is issued behind what its thread's stream has been given. The device, a plug-in of the library's, marks that with
 *          an event; the thread that runs the call waits until it has come, by the call's deadline, and MPI hears of the memory
 *          only then. When run ends the data are where they belong: streams have nothing to wait for, and a ticket is its event.
 * Moved    straight from the memory of one GPU to that of another, as messages: the nonblocking collectives of Open MPI are for
 *          memory of the host alone, and the blocking ones know no deadline. Each member sends to each that wants something.
 * Added    by our kernels, on the host, as all else that is added (motion.c): MPI brings slices there and back, as messages of a
 *          member to itself.
 * Fails    What MPI has been given it keeps until it is through, and here that is memory of the caller's: of a call that failed
 *          it may read and write the rest for as long as the process lives. */
#include "mpi_backend.h"

#include <stdio.h>
#include <stdlib.h>

enum { PIECE_MOST = 1 << 30 }; /* bytes of one message: an int counts them */

struct tutti_ticket {
    const tutti_device_ops *dev;
    void                   *event; /* NULL: the call has no buffers */
    int                     device;
};

/* ---- whether there is a way ---- */

static tutti_status refuse(const tmpi_backend *b, const char *what)
{
    const tmpi_facts *mpi = tmpi_engine_facts();

    if (mpi->takes_cuda)
        return tmpi_host->fail(TUTTI_E_UNSUPPORTED, "group '%s': backend 'mpi' has no %s of memory of a GPU\n"
                                                    "  next: use a collective, or copy it to the host first", b->name, what);
    return tmpi_host->fail(TUTTI_E_UNSUPPORTED,
                           "group '%s': a %s of memory of a GPU, which this MPI library does not take (%s: MPIX_Query_cuda_support %s)\n"
                           "  next: use one that is built for CUDA, another backend for such memory, as \"cpu:mpi,cuda:nccl\", or copy "
                           "it to the host first",
                           b->name, what, mpi->library, mpi->tells_of_cuda ? "says no" : "is not there");
}

tutti_status tmpi_refuse_message(const tmpi_backend *b)
{
    return refuse(b, "message");
}

/* ---- tickets ---- */

static void release(tutti_ticket *t)
{
    if (t->event != NULL)
        t->dev->event_drop(t->device, t->event);
    free(t);
}

static tutti_status record(tutti_ticket *t, void *stream)
{
    tutti_status st = tmpi_host->device(TUTTI_CUDA, &t->dev);

    if (st == TUTTI_OK)
        st = t->dev->event_make(t->device, &t->event);
    return st == TUTTI_OK ? t->dev->record(t->device, t->event, stream) : st;
}

static tutti_status mark(tutti_backend *backend, int device_index, void *stream, tutti_ticket **ticket_out)
{
    const tmpi_backend *b = (const tmpi_backend *)backend;
    tutti_ticket       *t;
    tutti_status        st = TUTTI_OK;

    if (!tmpi_engine_facts()->takes_cuda)
        return refuse(b, "collective");
    t = calloc(1, sizeof *t);
    if (t == NULL)
        return tmpi_host->fail(TUTTI_E_NOMEM, "no memory for a call on group '%s'", b->name);
    t->device = device_index;
    if (device_index >= 0)
        st = record(t, stream);
    if (st == TUTTI_OK)
        *ticket_out = t;
    else
        release(t);
    return st;
}

/* All there is to wait for has been when run is through. */

static tutti_status follow(tutti_ticket *t, void *stream)
{
    (void)t;
    (void)stream;
    return TUTTI_OK;
}

static bool test(tutti_ticket *t)
{
    (void)t;
    return true;
}

static tutti_status await(tutti_ticket *t, int64_t deadline_ns)
{
    (void)t;
    (void)deadline_ns;
    return TUTTI_OK;
}

const tutti_stream_ops tmpi_stream_ops = {
    .size = sizeof(tutti_stream_ops),
    .mark = mark,
    .follow = follow,
    .test = test,
    .wait = await,
    .release = release,
};

/* Others may have ended the group meanwhile. */
static tutti_status look_at_group(tmpi_backend *b)
{
    tutti_status st = TUTTI_OK;

    tmpi_lock();
    tmpi_notices_look(b);
    if (b->home->status != TUTTI_OK)
        st = tmpi_say(b->home);
    tmpi_unlock();
    return st;
}

tutti_status tmpi_await_stream(tmpi_backend *b, const tutti_call *call, const tmpi_wait *wait)
{
    const tutti_ticket *t = call->ticket;
    uint32_t            rounds = 0;
    bool                come = false;
    tutti_status        st;

    if (t == NULL || t->event == NULL)
        return TUTTI_OK;
    st = t->dev->has_come(t->device, t->event, &come);
    while (st == TUTTI_OK && !come) {
        if (tmpi_host->now_ns() >= wait->deadline_ns)
            return tmpi_host->fail(TUTTI_E_TIMEOUT,
                                   "%s on group '%s' timed out after %lld ms on rank %d of %d members\n"
                                   "  the stream of GPU %d that it was issued behind has not come to it\n"
                                   "  next: see what that stream waits for, or give the group a longer time-out",
                                   wait->what, b->name, (long long)((tmpi_host->now_ns() - wait->began_ns) / 1000000),
                                   b->global_ranks[b->rank], b->n_ranks, t->device);
        tmpi_host->idle(&rounds, wait->in_background);
        st = look_at_group(b);
        if (st == TUTTI_OK)
            st = t->dev->has_come(t->device, t->event, &come);
    }
    return st;
}

/* ---- messages between members ---- */

/* What this member gives one of them, and takes of it. */
typedef struct part {
    const void *out;
    void       *in;
    int64_t     gives, takes; /* bytes */
} part;

static int piece(int64_t bytes, int64_t at)
{
    const int64_t left = bytes - at;

    return left <= 0 ? 0 : left < PIECE_MOST ? (int)left : PIECE_MOST;
}

/* Under the lock: begin one piece with each member; [2 * n_ranks] requests. */
static int begin_pieces(tmpi_backend *b, const part *parts, int64_t at, MPI_Request *requests)
{
    const int tag = tmpi_engine_facts()->tag_most - 1;
    int       code = MPI_SUCCESS, r, n;

    for (r = 0; r < b->n_ranks && code == MPI_SUCCESS; r++) {
        n = piece(parts[r].takes, at);
        if (n > 0)
            code = MPI_Irecv((char *)parts[r].in + at, n, MPI_BYTE, r, tag, b->comm, &requests[2 * r]);
        n = piece(parts[r].gives, at);
        if (n > 0 && code == MPI_SUCCESS)
            code = MPI_Isend((const char *)parts[r].out + at, n, MPI_BYTE, r, tag, b->comm, &requests[2 * r + 1]);
    }
    return code;
}

/* Two members cut what they have between them alike, so pieces meet their like, whatever others have. */
static tutti_status swap_pieces(tmpi_backend *b, const part *parts, int64_t at, MPI_Request *requests, const tmpi_wait *wait)
{
    tutti_status st = TUTTI_OK;
    int          code, i;

    for (i = 0; i < 2 * b->n_ranks; i++)
        requests[i] = MPI_REQUEST_NULL;
    tmpi_lock();
    code = TMPI_CALL(begin_pieces(b, parts, at, requests));
    tmpi_unlock();
    if (code != MPI_SUCCESS)
        st = tmpi_fail_mpi(code, wait->what, b->name);
    for (i = 0; i < 2 * b->n_ranks && st == TUTTI_OK; i++)
        st = tmpi_await(b, &requests[i], wait);
    return st;
}

static int64_t longest(const tmpi_backend *b, const part *parts)
{
    int64_t most = 0;
    int     r;

    for (r = 0; r < b->n_ranks; r++) {
        most = parts[r].gives > most ? parts[r].gives : most;
        most = parts[r].takes > most ? parts[r].takes : most;
    }
    return most;
}

static tutti_status swap(tmpi_backend *b, part *parts, const tmpi_wait *wait)
{
    MPI_Request *requests = malloc(2 * (size_t)b->n_ranks * sizeof(MPI_Request));
    const int64_t most = longest(b, parts);
    tutti_status st = TUTTI_OK;
    int64_t      at;

    if (requests == NULL)
        return tmpi_host->fail(TUTTI_E_NOMEM, "%s on group '%s': no memory for %d messages", wait->what, b->name, 2 * b->n_ranks);
    for (at = 0; at < most && st == TUTTI_OK; at += PIECE_MOST)
        st = swap_pieces(b, parts, at, requests, wait);
    if (st == TUTTI_OK)
        free(requests);
    else
        b->stuck = true; /* MPI may have some of them, and the requests stay */
    return st;
}

static part *new_parts(const tmpi_backend *b, const tmpi_wait *wait)
{
    part *parts = calloc((size_t)b->n_ranks, sizeof *parts);

    if (parts == NULL)
        tmpi_host->fail(TUTTI_E_NOMEM, "%s on group '%s': no memory for the parts of %d ranks", wait->what, b->name, b->n_ranks);
    return parts;
}

tutti_status tmpi_device_copy(tmpi_backend *b, void *to, const void *from, size_t bytes, const tmpi_wait *wait)
{
    part        *parts = new_parts(b, wait);
    tutti_status st;

    if (parts == NULL)
        return TUTTI_E_NOMEM;
    parts[b->rank] = (part){ .out = from, .in = to, .gives = (int64_t)bytes, .takes = (int64_t)bytes };
    st = swap(b, parts, wait);
    free(parts);
    return st;
}

/* ---- what each kind of call gives and takes ---- */

static int64_t part_of(const tutti_call *call, int member)
{
    return call->n_parts > 0 ? call->list_counts[member] : call->count;
}

/* In elements; the own part of lists stays where it is if it is there already. */
static void lay_out(const tmpi_backend *b, const tutti_call *call, part *parts)
{
    const bool is_root = call->root == b->rank;
    int        r;

    for (r = 0; r < b->n_ranks; r++) {
        switch (call->kind) {
        case TUTTI_CALL_BROADCAST:
            if (is_root && r != b->rank)
                parts[r] = (part){ .out = call->in, .gives = call->count };
            else if (!is_root && r == call->root)
                parts[r] = (part){ .in = call->out, .takes = call->count };
            break;
        case TUTTI_CALL_ALL_GATHER:
            parts[r] = (part){ .out = call->in, .gives = part_of(call, b->rank), .in = call->list[r], .takes = part_of(call, r) };
            break;
        case TUTTI_CALL_GATHER:
            if (r == call->root)
                parts[r] = (part){ .out = call->in, .gives = call->count };
            if (is_root) {
                parts[r].in = call->list[r];
                parts[r].takes = call->count;
            }
            break;
        case TUTTI_CALL_SCATTER:
            if (is_root)
                parts[r] = (part){ .out = call->list[r], .gives = call->count };
            if (r == call->root) {
                parts[r].in = call->out;
                parts[r].takes = call->count;
            }
            break;
        default: /* each pair has its own */
            parts[r] = (part){ .out = call->ins[r], .gives = call->in_counts[r], .in = call->list[r], .takes = call->list_counts[r] };
            break;
        }
    }
    if (parts[b->rank].out == parts[b->rank].in)
        parts[b->rank].gives = parts[b->rank].takes = 0;
}

tutti_status tmpi_move_on_device(tmpi_backend *b, const tutti_call *call, const tmpi_wait *wait)
{
    const int64_t element = (int64_t)tmpi_host->dtype_size(call->dtype);
    part         *parts = new_parts(b, wait);
    tutti_status  st;
    int           r;

    if (parts == NULL)
        return TUTTI_E_NOMEM;
    lay_out(b, call, parts);
    for (r = 0; r < b->n_ranks; r++) {
        parts[r].gives *= element;
        parts[r].takes *= element;
    }
    st = swap(b, parts, wait);
    free(parts);
    return st;
}
